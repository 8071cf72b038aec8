//! A window: it grows by a packet per round trip, is cut by the fraction of marked bytes (as DCTCP does), and halved by a
//! loss (as TCP does). Without marks it is TCP's without its many refinements.

use super::input::{Common, Heard};
use crate::machine;

/// A flow's window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(super) bytes: f64,
    /// Below this the window doubles per round trip.
    threshold: f64,
    alpha: f64,
    seen: f64,
    marked: f64,
    round_ends: u64,
    halved_at: u64,
    rtt: u64,
}

impl Window {
    pub(super) fn new(spec: &machine::Window) -> Self {
        let most = spec.most.0 as f64;
        Window {
            bytes: (spec.initial.0 as f64).min(most),
            threshold: most,
            alpha: 1.0,
            seen: 0.0,
            marked: 0.0,
            round_ends: 0,
            halved_at: 0,
            rtt: 0,
        }
    }

    pub(super) fn acknowledged(&mut self, spec: &machine::Window, common: &Common, heard: Heard) {
        let (bytes, packet) = (f64::from(heard.bytes), f64::from(common.packet));
        self.rtt = heard.rtt;
        self.seen += bytes;
        if heard.marked {
            self.marked += bytes;
            self.threshold = self.threshold.min(self.bytes);
        }
        self.bytes += if self.bytes < self.threshold { bytes } else { packet * bytes / self.bytes };
        if heard.now >= self.round_ends {
            self.alpha += spec.g * (self.marked / self.seen - self.alpha);
            if self.marked > 0.0 {
                self.bytes *= 1.0 - self.alpha / 2.0;
                self.threshold = self.bytes;
            }
            (self.seen, self.marked, self.round_ends) = (0.0, 0.0, heard.now + heard.rtt);
        }
        self.bytes = self.bytes.clamp(packet, spec.most.0 as f64);
    }

    pub(super) fn lost(&mut self, packet: f64, now: u64, silence: bool) {
        if now < self.halved_at + self.rtt && !silence {
            return;
        }
        self.threshold = (self.bytes / 2.0).max(packet);
        self.bytes = if silence { packet } else { self.threshold };
        self.halved_at = now;
    }
}
