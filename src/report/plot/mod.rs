//! Plots as SVG, one file each. A plot is at most 440 units wide, so that its text stays readable on a phone.

mod bands;
mod burst;
mod contention;
mod counters;
mod history;
mod hpcc;
mod impact;
mod load;
mod map;
mod maxrate;
mod panels;
mod queues;
mod samples;
mod sizes;
mod sweep;

use crate::engine::LoadState;
use crate::text::{Table, escape};

pub use bands::bands;
pub use burst::bursts;
pub use contention::contention;
pub use counters::{conditions, devices, ports};
pub use history::history;
pub use hpcc::{System, balance, beff, kiviat};
pub use impact::{heat, impact, overview};
pub use load::{load, nodes};
pub use map::map;
pub use maxrate::maxrate;
pub use panels::panels;
pub use queues::{queues, trees};
pub use samples::{distribution, percentiles, repetitions};
pub use sizes::sizes;
pub use sweep::sweep;

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
    /// What it shows, for other programs.
    pub data: Table,
    height: f64,
    body: String,
}

impl Plot {
    fn new(parts: &[&str], title: String, summary: String, height: f64, body: String, data: Table) -> Self {
        let words = parts.iter().flat_map(|part| part.split(|c: char| !c.is_ascii_alphanumeric()));
        let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect();
        let id = words.join("-");
        Plot { id, title, summary, data, height, body }
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

/// A line through points.
fn polyline(points: impl Iterator<Item = (f64, f64)>, class: &str) -> String {
    let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    format!("<polyline points=\"{}\" class=\"curve {class}\"/>", points.join(" "))
}

/// A cell of a map with a value to show on hovering.
fn cell((x, y): (f64, f64), (width, height): (f64, f64), class: &str, opacity: f64, title: &str) -> String {
    format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {class} fill-opacity=\"{opacity:.2}\">\
         <title>{}</title></rect>",
        escape(title)
    )
}

/// The colour of a state.
fn class_of(state: Option<LoadState>) -> &'static str {
    if state == Some(LoadState::Isolated) { "calm" } else { "busy" }
}

/// The rectangle between the axes of a plot.
#[derive(Clone, Copy)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    /// A point by its parts of the width and of the height.
    fn at(&self, across: f64, up: f64) -> (f64, f64) {
        (self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top))
    }

    /// An axis over the width.
    fn across(&self, low: f64, high: f64) -> LogAxis {
        LogAxis::new(low, high, self.left, self.right)
    }

    /// An axis over the height.
    fn up(&self, low: f64, high: f64) -> LogAxis {
        LogAxis::new(low, high, self.bottom, self.top)
    }

    /// A level line with its label to the left.
    fn level(&self, y: f64, class: &str, label: &str) -> String {
        line((self.left, y), (self.right, y), class) + &text(self.left - 5.0, y + 4.0, "end", "tick", label)
    }

    /// Level lines at the ticks of an axis that goes up.
    fn levels(&self, axis: &LogAxis) -> String {
        axis.ticks().into_iter().map(|tick| self.level(axis.at(tick), "grid", &label(tick))).collect()
    }

    /// The label of a place below the area.
    fn below(&self, x: f64, label: &str) -> String {
        text(x, self.bottom + 14.0, "middle", "tick", label)
    }

    /// An upright line with its label below.
    fn upright(&self, x: f64, label: &str) -> String {
        line((x, self.top), (x, self.bottom), "grid") + &self.below(x, label)
    }

    /// Upright lines at the ticks of an axis that goes across.
    fn uprights(&self, axis: &LogAxis) -> String {
        axis.ticks().into_iter().map(|tick| self.upright(axis.at(tick), &label(tick))).collect()
    }

    /// The axis at its bottom.
    fn base(&self) -> String {
        line((self.left, self.bottom), (self.right, self.bottom), "axis")
    }

    /// What the axis at the bottom is of, so far below it.
    fn title(&self, below: f64, words: &str) -> String {
        text((self.left + self.right) / 2.0, self.bottom + below, "middle", "axis-title", words)
    }
}

/// The least and the most of some values above zero.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, 0.0), |(low, high), value| (low.min(value), high.max(value)))
}

/// The distance of lines of text.
const LINE: f64 = 13.0;

/// Text in lines of at most so many letters. A line ends after a word, or a sign between two; what has none goes on in the next
/// line all the same: nothing is cut.
fn lines(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive([' ', '+', ',', '/', '_', '-']) {
        let mut rest: Vec<char> = word.chars().collect();
        loop {
            let last = lines.last_mut().expect("there is a line");
            let (used, letters) = (last.chars().count(), rest.iter().collect::<String>().trim_end().chars().count());
            if used + letters <= most.max(1) {
                last.extend(rest);
                break;
            }
            if used == 0 {
                last.extend(rest.drain(..most.max(1)));
            }
            lines.push(String::new());
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Lines of text one below the other, the first at this height.
fn block(x: f64, y: f64, anchor: &str, class: &str, lines: &[String]) -> String {
    lines.iter().enumerate().map(|(at, line)| text(x, y + at as f64 * LINE, anchor, class, line)).collect()
}

/// Maps values to positions, by their logarithm.
struct LogAxis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogAxis {
    /// An axis over positive values from `low` to `high`, drawn between two positions. Narrow ranges are widened: noise
    /// is not to look like a mountain.
    fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        const NARROWEST: f64 = 4.0;
        let (mut low, mut high) = (low.clamp(1e-9, 1e15), high.clamp(1e-9, 1e15));
        if low > high {
            (low, high) = (high, low);
        }
        let spare = (NARROWEST / (high / low)).max(1.0).sqrt();
        LogAxis { low: low / spare, high: high * spare, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.clamp(self.low, self.high) / self.low).ln() / (self.high / self.low).ln();
        self.from + part * (self.to - self.from)
    }

    /// Values worth a label: decades, and the steps between them when there are few.
    fn ticks(&self) -> Vec<f64> {
        const STEPS: [&[f64]; 3] = [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0]];
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let with = |steps: &[f64]| -> Vec<f64> {
            let all = (first..=last).flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
            all.filter(|&tick| tick >= self.low * 0.999 && tick <= self.high * 1.001).collect()
        };
        let found = STEPS.iter().map(|steps| with(steps)).find(|ticks| ticks.len() >= 3);
        let ticks = found.unwrap_or_else(|| with(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]));
        let every = ticks.len().div_ceil(8).max(1);
        ticks.into_iter().step_by(every).collect()
    }
}

/// A tick's label: short, with k, M and G for large values.
fn label(value: f64) -> String {
    let short = |value: f64| {
        let text = if value < 10.0 { format!("{value:.3}") } else { format!("{value:.1}") };
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match value {
        v if v >= 0.999e9 => format!("{}G", short(v / 1e9)),
        v if v >= 0.999e6 => format!("{}M", short(v / 1e6)),
        v if v >= 0.999e4 => format!("{}k", short(v / 1e3)),
        v => short(v),
    }
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

    #[test]
    fn ticks_are_few_and_inside_for_any_range() {
        for (low, high) in [(1.0, 1.0), (0.3, 0.31), (1.0, 10.0), (2.0, 9e6), (1e-9, 1e15), (7.0, 3.0)] {
            let axis = LogAxis::new(low, high, 0.0, 100.0);
            let ticks = axis.ticks();
            assert!((2..=9).contains(&ticks.len()), "{low}..{high}: {ticks:?}");
            assert!(ticks.iter().all(|&tick| (-1.0..=101.0).contains(&axis.at(tick))), "{low}..{high}: {ticks:?}");
        }
    }

    #[test]
    fn lines_hold_all_of_a_text() {
        assert_eq!(lines("a2a+incast+bcast", 11), ["a2a+incast+", "bcast"]);
        assert_eq!(lines("a name of words", 6), ["a name", "of", "words"]);
        assert_eq!(lines("unbreakable", 4), ["unbr", "eaka", "ble"]);
        assert_eq!(lines("ab cdefghij", 4), ["ab", "cdef", "ghij"]);
        assert_eq!(lines("", 4), [""; 0]);
        assert_eq!(lines("x", 0), ["x"]);
    }

    #[test]
    fn labels_are_short() {
        assert_eq!([0.5, 1.0, 1500.0, 20_000.0, 3e6, 1e9].map(label), ["0.5", "1", "1500", "20k", "3M", "1G"]);
    }
}
