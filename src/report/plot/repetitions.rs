//! Every repetition of an application as a dot, placement by placement, alone above and under load below.

use super::axis::LogAxis;
use super::{Plot, WIDTH, dot, extent, grid_across, text};
use crate::compare::Side;
use crate::engine::Phase;
use crate::kernel::Canary;
use crate::text::figure;

const LEFT: f64 = 92.0;
const RIGHT: f64 = WIDTH - 16.0;
const ROW: f64 = 24.0;

/// The repetitions on one side; nothing for kernels, which have distributions.
pub fn repetitions(side: &Side<'_>, kernel: Canary) -> Option<Plot> {
    let test = side.run.tests.iter().find(|test| test.kernel == kernel && kernel.is_application())?;
    let figures = |placement: usize, phase: Phase| -> Vec<f64> {
        let of = side.run.placements[placement].test(kernel, phase);
        of.map_or_else(Vec::new, |test| test.blocks.iter().filter_map(|block| block.headline).collect())
    };
    let placements = side.run.placements.len();
    let all = (0..placements).flat_map(|at| [figures(at, Phase::Isolated), figures(at, Phase::Loaded)].concat());
    let (low, high) = extent(all);
    if !(low > 0.0 && high.is_finite() && high > 0.0) {
        return None;
    }
    let axis = LogAxis::new(low, high, LEFT, RIGHT);
    let bottom = 8.0 + placements as f64 * ROW;
    let mut body = grid_across(&axis, 4.0, bottom);
    for at in 0..placements {
        let top = 8.0 + at as f64 * ROW;
        body += &text(LEFT - 8.0, top + 13.0, "end", "tick", &format!("placement {}", at + 1));
        for (phase, class, y) in [(Phase::Isolated, "calm", top + 5.0), (Phase::Loaded, "busy", top + 14.0)] {
            for value in figures(at, phase) {
                let title = format!("placement {}, {}: {} {}", at + 1, phase.word(), figure(value), test.unit);
                body += &dot((axis.at(value), y), 4, class, &title);
            }
        }
    }
    body += &text((LEFT + RIGHT) / 2.0, bottom + 30.0, "middle", "axis-title", &test.unit);
    let title = format!("{}, {}", test.title, side.label);
    let told = format!("{placements} placements, figures from {} to {} {}", figure(low), figure(high), test.unit);
    Some(Plot::new(&["repetitions", kernel.info().key, &side.label], title, told, bottom + 38.0, body))
}
