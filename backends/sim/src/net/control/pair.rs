//! Endpoint-pair throttling, as Slingshot is described to do: the network knows what every pair of endpoints has under
//! way; when the queue in front of an endpoint grows, the pairs that feed it are held back at their sources, at once and
//! far below a packet if need be, and nobody else is.
//!
//! How the real one measures and decides is not public. Here the last switch sets a flag on packets that find more than
//! a threshold in front of their endpoint, and the acknowledgement takes it to the source.

use super::input::Heard;
use crate::machine;

/// What a pair may have under way.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(super) allowance: f64,
    cut_at: u64,
}

impl Pair {
    pub(super) fn new(spec: &machine::PairThrottle) -> Self {
        Pair { allowance: spec.most.0 as f64, cut_at: 0 }
    }

    pub(super) fn acknowledged(&mut self, spec: &machine::PairThrottle, heard: Heard) {
        if !heard.endpoint {
            let per_round = spec.additive.0 as f64 * f64::from(heard.bytes);
            self.allowance += per_round / self.allowance.max(f64::from(heard.bytes));
        } else if heard.now >= self.cut_at + heard.rtt {
            self.allowance *= spec.cut;
            self.cut_at = heard.now;
        }
        self.allowance = self.allowance.clamp(spec.least.0 as f64, spec.most.0 as f64);
    }
}
