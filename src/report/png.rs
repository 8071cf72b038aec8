//! Plots as PNG files: drawn from the same SVG, in the light colours, with a font of the machine.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::plot::Plot;

/// Pixels per unit of a plot: sharp on paper and on dense screens.
const SCALE: f32 = 2.0;

/// Draws plots; fonts are looked for once.
pub struct Painter(Options<'static>);

impl Painter {
    /// Looks for fonts.
    pub fn new() -> Result<Self, String> {
        let mut fonts = fontdb::Database::new();
        fonts.load_system_fonts();
        let sans = ["DejaVu Sans", "Liberation Sans", "Noto Sans", "Arial", "Helvetica"];
        let known = |name: &&&str| fonts.faces().any(|face| face.families.iter().any(|family| family.0 == **name));
        let family = match sans.iter().find(known) {
            Some(name) => (*name).to_owned(),
            None => fonts
                .faces()
                .find_map(|face| Some(face.families.first()?.0.clone()))
                .ok_or("no font on this machine, so PNG files would have no text: install one, such as fonts-dejavu")?,
        };
        fonts.set_sans_serif_family(&family);
        Ok(Painter(Options { fontdb: fonts.into(), font_family: family, ..Options::default() }))
    }

    /// The plot as the bytes of a PNG file.
    pub fn paint(&self, plot: &Plot) -> Result<Vec<u8>, String> {
        let wrong = |what: &str| format!("cannot draw {}: {what}", plot.id);
        let tree = Tree::from_str(&plot.flat(), &self.0).map_err(|error| wrong(&error.to_string()))?;
        let size = tree.size().to_int_size().scale_by(SCALE).ok_or_else(|| wrong("it has no size"))?;
        let mut pixels = Pixmap::new(size.width(), size.height()).ok_or_else(|| wrong("it is too large"))?;
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| wrong(&error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;
    use crate::report::Report;

    #[test]
    fn every_plot_becomes_a_picture_with_something_on_it() {
        let files = vec![("a.json".into(), synthetic::file("tcp", None, 3.0))];
        let painter = Painter::new().unwrap();
        for plot in Report::new(&files, false).plots() {
            let picture = Pixmap::decode_png(&painter.paint(&plot).unwrap()).unwrap();
            let first = picture.pixels()[0];
            assert!(picture.width() >= 880 && picture.pixels().iter().any(|pixel| *pixel != first), "{}", plot.id);
        }
    }
}
