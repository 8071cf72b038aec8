//! The heat map of victims and aggressors: a cell is as dark as the impact is large, on a logarithmic scale, and says it.

use super::{Plot, WIDTH, escape, fit, text};
use crate::compare::Aggressors;
use crate::text::{factor, with_interval};

/// Room for the victims' names.
const LEFT: f64 = 150.0;
const ROW: f64 = 26.0;
const TOP: f64 = 22.0;
/// An impact of so much is as dark as it gets.
const DARKEST: f64 = 100.0;

/// The map.
pub fn heat(of: &Aggressors) -> Plot {
    let width = (WIDTH - LEFT - 4.0) / of.loads.len().max(1) as f64;
    let mut body = String::new();
    for (at, load) in of.loads.iter().enumerate() {
        let most = (width / 6.0) as usize;
        body += &text(LEFT + (at as f64 + 0.5) * width, TOP - 8.0, "middle", "tick", &fit(load, most.max(3)));
    }
    let mut told = Vec::new();
    for (row, victim) in of.victims.iter().enumerate() {
        let y = TOP + row as f64 * ROW;
        body += &text(LEFT - 6.0, y + ROW / 2.0 + 3.0, "end", "tick", &fit(&victim.title, 26));
        for (at, (load, impact)) in of.loads.iter().zip(&victim.impacts).enumerate() {
            let Some(impact) = impact else { continue };
            let share = (impact.factor.max(1.0).ln() / DARKEST.ln()).clamp(0.0, 1.0);
            let title = format!("{} beside {load}: {}", victim.title, with_interval(*impact));
            let x = LEFT + at as f64 * width;
            body += &format!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\" class=\"cell busy\" \
                 fill-opacity=\"{:.2}\"><title>{}</title></rect>",
                width - 2.0,
                ROW - 2.0,
                0.08 + 0.6 * share,
                escape(&title)
            );
            body += &text(x + width / 2.0 - 1.0, y + ROW / 2.0 + 3.0, "middle", "value", &factor(impact.factor));
            told.push(title);
        }
    }
    let height = TOP + of.victims.len() as f64 * ROW + 8.0;
    Plot::new(&["victims", "aggressors"], "Victims and aggressors".into(), told.join("; "), height, body)
}
