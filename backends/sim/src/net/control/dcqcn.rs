//! DCQCN: a sender's rate is cut when marks come back, at most once per interval, and rises again: first half-way back
//! to where it was, a few times, then step by step beyond.
//!
//! Timers are not events: what they would have done since the last look is done at the next one.

use super::input::{Common, Heard};
use crate::machine;

/// A flow's rate, in bytes per picosecond.
#[derive(Clone, Debug)]
pub(crate) struct Dcqcn {
    rate: f64,
    target: f64,
    alpha: f64,
    /// The last cut, the last fall of alpha, the last rise.
    cut_at: u64,
    alpha_at: u64,
    rise_at: u64,
    rises: usize,
}

/// Rises looked at in one go: after this many, a flow is at its full rate whatever it was.
const MOST_RISES: u64 = 10_000;

impl Dcqcn {
    pub(super) fn new(common: &Common) -> Self {
        let line = common.line.bytes_per_ps();
        Dcqcn { rate: line, target: line, alpha: 1.0, cut_at: 0, alpha_at: 0, rise_at: 0, rises: 0 }
    }

    pub(super) fn pause(&mut self, spec: &machine::Dcqcn, common: &Common, now: u64, bytes: u32) -> u64 {
        let line = common.line.bytes_per_ps();
        if self.rate >= line {
            return 0;
        }
        self.catch_up(spec, line, now);
        (f64::from(bytes) / self.rate) as u64
    }

    pub(super) fn acknowledged(&mut self, spec: &machine::Dcqcn, common: &Common, heard: Heard) {
        let line = common.line.bytes_per_ps();
        self.catch_up(spec, line, heard.now);
        if !heard.marked || (self.cut_at > 0 && heard.now < self.cut_at + spec.cnp_interval.0) {
            return;
        }
        self.target = self.rate;
        self.alpha += spec.g * (1.0 - self.alpha);
        self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(line * 1e-4);
        (self.cut_at, self.alpha_at, self.rise_at, self.rises) = (heard.now, heard.now, heard.now, 0);
    }

    fn catch_up(&mut self, spec: &machine::Dcqcn, line: f64, now: u64) {
        let falls = (now - self.alpha_at) / spec.alpha_interval.0.max(1);
        if falls > 0 {
            self.alpha *= (1.0 - spec.g).powi(falls.min(MOST_RISES) as i32);
            self.alpha_at += falls * spec.alpha_interval.0;
        }
        let rises = (now - self.rise_at) / spec.increase_interval.0.max(1);
        for _ in 0..rises.min(MOST_RISES) {
            if self.rate >= line {
                break;
            }
            self.rises = self.rises.saturating_add(1);
            if self.rises > spec.recovery_rounds {
                self.target = (self.target + spec.additive * line).min(line);
            }
            self.rate = (0.5 * (self.rate + self.target)).min(line);
            if line - self.rate < 1e-6 * line {
                self.rate = line;
            }
        }
        self.rise_at += rises * spec.increase_interval.0;
    }
}
