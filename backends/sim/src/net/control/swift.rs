//! Delay-based control as Swift does it: the window grows while the round trip is below a target and is cut, once per
//! round trip, by as much as the delay is above it. The target counts from one round trip for all flows, or the late ones, who
//! have never seen an empty network, would drive out the early ones; small windows may wait longer than large ones.

use super::input::{Common, Heard};
use crate::machine;

/// A flow's window.
#[derive(Clone, Debug)]
pub(crate) struct Swift {
    pub(super) window: f64,
    rtt: u64,
    cut_at: u64,
}

/// The least window, as a part of a packet.
const LEAST: f64 = 1e-3;

/// The delay that the smallest windows are held at, in targets.
const PATIENCE: f64 = 5.0;
/// Windows between which the delay is scaled, in packets.
const SMALL: f64 = 0.1;
/// See above.
const LARGE: f64 = 64.0;

impl Swift {
    pub(super) fn new(spec: &machine::Swift) -> Self {
        Swift { window: spec.most.0 as f64, rtt: 0, cut_at: 0 }
    }

    pub(super) fn acknowledged(&mut self, spec: &machine::Swift, common: &Common, heard: Heard) {
        let packet = f64::from(common.packet);
        self.rtt = heard.rtt;
        let target = heard.base + (spec.target.0 as f64 * self.patience(packet)) as u64;
        if heard.rtt <= target {
            self.window += spec.additive.0 as f64 * f64::from(heard.bytes) / self.window.max(packet);
        } else if heard.now >= self.cut_at + heard.rtt {
            let above = (heard.rtt - target) as f64 / heard.rtt as f64;
            self.window *= 1.0 - (spec.beta * above).min(spec.most_cut);
            self.cut_at = heard.now;
        }
        self.window = self.window.clamp(LEAST * packet, spec.most.0 as f64);
    }

    /// How many times the common delay this flow may wait: the smaller its window, the more, up to [`PATIENCE`]. Without it,
    /// who has a shorter way than the others drives them out of a queue that they share.
    fn patience(&self, packet: f64) -> f64 {
        let of = |packets: f64| packets.powf(-0.5);
        let window = (self.window / packet).clamp(SMALL, LARGE);
        1.0 + (PATIENCE - 1.0) * (of(window) - of(LARGE)) / (of(SMALL) - of(LARGE))
    }

    pub(super) fn lost(&mut self, packet: f64, now: u64, silence: bool) {
        if now >= self.cut_at + self.rtt || silence {
            self.window = if silence { packet } else { (self.window / 2.0).max(LEAST * packet) };
            self.cut_at = now;
        }
    }
}
