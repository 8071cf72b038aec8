//! Plots as SVG, one file each. A plot is at most 440 units wide, so that its text stays readable on a phone.

mod axis;
mod beff;
pub mod contention;
mod devices;
mod distribution;
mod heat;
pub mod hpcc;
mod impact;
mod load;
pub mod maxrate;
mod nodes;
mod percentiles;
mod ports;
mod queues;
mod repetitions;
mod scatter;
mod sizes;
mod spread;
mod tree;
mod violin;

use axis::{LogAxis, label};

use crate::text::escape;

pub use beff::beff;
pub use devices::devices;
pub use distribution::distribution;
pub use heat::heat;
pub use impact::impact;
pub use load::load;
pub use nodes::nodes;
pub use percentiles::percentiles;
pub use ports::ports;
pub use queues::queues;
pub use repetitions::repetitions;
pub use scatter::scatter;
pub use sizes::sizes;
pub use spread::spread;
pub use tree::trees;

/// Width of every plot.
const WIDTH: f64 = 440.0;

/// Colours and strokes, shared by the page and by plots that stand alone.
pub const STYLE: &str = include_str!("plot.css");

/// One finished plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// A file name without its end, unique within a report.
    pub id: String,
    /// The heading.
    pub title: String,
    /// What a reader who cannot see it is told.
    pub summary: String,
    height: f64,
    body: String,
}

impl Plot {
    fn new(parts: &[&str], title: String, summary: String, height: f64, body: String) -> Self {
        let words = parts.iter().flat_map(|part| part.split(|c: char| !c.is_ascii_alphanumeric()));
        let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect();
        let id = words.join("-");
        Plot { id, title, summary, height, body }
    }

    /// For inside a page that has [`STYLE`].
    pub fn inline(&self) -> String {
        self.element("")
    }

    /// A file of its own.
    pub fn standalone(&self) -> String {
        let (width, height) = (WIDTH, self.height);
        let head = format!("<style>{STYLE}</style><rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>");
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", self.element(&head))
    }

    /// The same for programs that know no variables in style sheets: light colours, written out.
    #[cfg_attr(not(feature = "png"), allow(dead_code, reason = "the painter of PNG files asks for it"))]
    pub(super) fn flat(&self) -> String {
        let (width, height) = (WIDTH, self.height);
        let head =
            format!("<style>{}</style><rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>", flat_style());
        self.element(&head).replacen("<svg ", &format!("<svg width=\"{width}\" height=\"{height:.0}\" "), 1)
    }

    fn element(&self, head: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
             aria-label=\"{}\">{head}{}</svg>",
            self.height,
            escape(&format!("{}: {}", self.title, self.summary)),
            self.body
        )
    }
}

/// [`STYLE`] with the light colours in the place of variables, and without what depends on a screen.
fn flat_style() -> String {
    let (light, rest) = STYLE.split_once('}').expect("the first rule has the light colours");
    let colours = light.trim_start_matches(":root{").split(';').filter_map(|pair| pair.trim().split_once(':'));
    let rules = rest.lines().skip_while(|line| !line.starts_with(".plot{")).filter(|line| !line.contains(":hover"));
    let plain: String = rules.flat_map(|line| [line, "\n"]).collect();
    colours.fold(plain, |style, (name, value)| style.replace(&format!("var({name})"), value))
}

/// A text at a point. `anchor` is start, middle or end.
fn text(x: f64, y: f64, anchor: &str, class: &str, content: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>", escape(content))
}

/// A dot with a value to show on hovering.
fn dot((x, y): (f64, f64), radius: u32, class: &str, title: &str) -> String {
    format!(
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" class=\"dot {class}\"><title>{}</title></circle>",
        escape(title)
    )
}

/// Texts (height, class, words) beside the ends of their lines, from `top` down, each at least a line below the one before.
fn stacked(mut labels: Vec<(f64, String, String)>, x: f64, top: f64) -> String {
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut out, mut free) = (String::new(), top);
    for (y, class, words) in labels {
        let y = y.max(free);
        out += &text(x, y + 4.0, "start", &class, &words);
        free = y + 13.0;
    }
    out
}

/// A bar with a value to show on hovering.
fn bar(x: f64, y: f64, width: f64, height: f64, class: &str, title: &str) -> String {
    format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" class=\"{class}\"><title>{}</title></rect>",
        width.max(0.5),
        escape(title)
    )
}

fn line(from: (f64, f64), to: (f64, f64), class: &str) -> String {
    format!("<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\"/>", from.0, from.1, to.0, to.1)
}

/// Upright lines at the ticks of an axis that goes across, with their labels under `bottom`.
fn grid_across(axis: &LogAxis, top: f64, bottom: f64) -> String {
    let tick = |tick: f64| {
        let x = axis.at(tick);
        line((x, top), (x, bottom), "grid") + &text(x, bottom + 14.0, "middle", "tick", &label(tick))
    };
    axis.ticks().into_iter().map(tick).collect()
}

/// Level lines at the ticks of an axis that goes up, with their labels to the left.
fn grid_up(axis: &LogAxis, left: f64, right: f64) -> String {
    let tick = |tick: f64| {
        let y = axis.at(tick);
        line((left, y), (right, y), "grid") + &text(left - 5.0, y + 4.0, "end", "tick", &label(tick))
    };
    axis.ticks().into_iter().map(tick).collect()
}

/// The least and the most of some values above zero.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, 0.0), |(low, high), value| (low.min(value), high.max(value)))
}

/// Text cut to what fits a plot's width.
fn fit(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_styles_have_no_variables_left() {
        let style = flat_style();
        assert!(style.starts_with(".plot{") && style.contains("fill:#2a6fb5"), "{style}");
        assert!(!style.contains("var(") && !style.contains("@media") && !style.contains(":hover"), "{style}");
    }
}
