//! Latencies of known law, recorded as a canary records them: several ranks, each sending one message after the other,
//! in passes that end together. What congests the network is the same for all ranks of a block.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tailback::stats::Samples;

const RANKS: usize = 4;
/// Iterations in a pass, as the lab and quick presets have them.
const PASS: usize = 40;
const US: f64 = 1e3;
const MS: f64 = 1e6;
/// Quiet network.
const QUIET_NS: f64 = 100.0 * US;
/// Loaded network, where it has one speed.
const LOADED_NS: f64 = MS;
const CONGESTED_NS: f64 = 5.0 * MS;

/// Seeded noise.
pub struct Draw(SmallRng);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Draw(SmallRng::seed_from_u64(seed))
    }

    fn uniform(&mut self) -> f64 {
        self.0.random()
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// Standard normal, after Box and Muller.
    pub fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (self.uniform() * std::f64::consts::TAU).cos()
    }
}

/// A law of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Process {
    /// The isolated network: 100 us, sd of ln 0.15, independent.
    Isolated,
    /// 1 ms, sd of ln 0.5, every message for itself.
    Independent,
    /// 1 ms, ln follows itself with a correlation time of one pass (40 ms) and sd 0.5, and 0.2 for every message.
    Autocorrelated,
    /// Quiet or congested (5 ms), for exponential times with these means in ms.
    Bimodal { quiet_ms: f64, congested_ms: f64 },
    /// As independent with sd of ln 0.3, but one message in 100 stalls: Pareto from 2 ms, exponent 1.5, cut at 1 s.
    HeavyTail,
}

impl Process {
    pub const LOADED: [Process; 5] = [
        Process::Independent,
        Process::Autocorrelated,
        Process::Bimodal { quiet_ms: 10.0, congested_ms: 200.0 },
        Process::Bimodal { quiet_ms: 300.0, congested_ms: 700.0 },
        Process::HeavyTail,
    ];

    pub fn name(self) -> String {
        match self {
            Process::Isolated => "isolated".into(),
            Process::Independent => "independent".into(),
            Process::Autocorrelated => "autocorrelated".into(),
            Process::Bimodal { quiet_ms, congested_ms } => format!("bimodal {quiet_ms}/{congested_ms} ms"),
            Process::HeavyTail => "heavy tail".into(),
        }
    }

    /// Adds a block of `length_ns` to `samples`. `effect` is what the placement does to ln(latency under load): of the
    /// congested state only, where there are two.
    pub fn block(self, effect: f64, length_ns: f64, draw: &mut Draw, samples: &mut Samples) {
        let mut state = State::new(self, draw);
        let mut now = 0.0;
        while now < length_ns {
            let begin = now;
            state.forget(begin);
            for _ in 0..RANKS {
                let mut at = begin;
                for _ in 0..PASS {
                    let took = self.latency(effect, at, &mut state, draw).round().max(1.0);
                    samples.record(took as u64);
                    at += took;
                    if at >= length_ns {
                        break;
                    }
                }
                now = at.max(now);
            }
            samples.close_pass(None);
        }
    }

    fn latency(self, effect: f64, at: f64, state: &mut State, draw: &mut Draw) -> f64 {
        match self {
            Process::Isolated => QUIET_NS * (0.15 * draw.normal()).exp(),
            Process::Independent => LOADED_NS * (effect + 0.5 * draw.normal()).exp(),
            Process::Autocorrelated => {
                let common = state.at(at, draw);
                LOADED_NS * (effect + 0.5 * common + 0.2 * draw.normal()).exp()
            }
            Process::Bimodal { .. } => {
                let noise = (0.15 * draw.normal()).exp();
                if state.at(at, draw) > 0.5 { CONGESTED_NS * effect.exp() * noise } else { QUIET_NS * noise }
            }
            Process::HeavyTail if draw.uniform() < 0.01 => {
                (2.0 * LOADED_NS * (1.0 - draw.uniform()).powf(-1.0 / 1.5)).min(1000.0 * MS) * effect.exp()
            }
            Process::HeavyTail => LOADED_NS * (effect + 0.3 * draw.normal()).exp(),
        }
    }
}

/// What all ranks of a block have in common: a value that changes with time, made as far as it is asked for.
struct State {
    process: Process,
    /// Ends of stretches in ns, ascending, with the value in each.
    stretches: Vec<(f64, f64)>,
    last: f64,
}

impl State {
    fn new(process: Process, draw: &mut Draw) -> Self {
        let last = match process {
            Process::Autocorrelated => draw.normal(),
            // The state before the first stretch, drawn so that the first has the long-run odds.
            Process::Bimodal { quiet_ms, congested_ms } => {
                f64::from(u8::from(draw.uniform() * (quiet_ms + congested_ms) < quiet_ms))
            }
            _ => 0.0,
        };
        State { process, stretches: Vec::new(), last }
    }

    /// The value at a time not before the last one forgotten.
    fn at(&mut self, ns: f64, draw: &mut Draw) -> f64 {
        while self.stretches.last().is_none_or(|&(end, _)| end <= ns) {
            let begin = self.stretches.last().map_or(0.0, |&(end, _)| end);
            let length = match self.process {
                Process::Bimodal { quiet_ms, congested_ms } => {
                    self.last = 1.0 - self.last;
                    (if self.last > 0.5 { congested_ms } else { quiet_ms }) * MS * draw.exponential()
                }
                // Steps of 1 ms of a correlation time of a pass.
                _ => {
                    let follows = (-1.0 / PASS as f64).exp();
                    self.last = follows * self.last + (1.0 - follows * follows).sqrt() * draw.normal();
                    MS
                }
            };
            self.stretches.push((begin + length, self.last));
        }
        let at = self.stretches.partition_point(|&(end, _)| end <= ns);
        self.stretches[at].1
    }

    fn forget(&mut self, before: f64) {
        let past = self.stretches.partition_point(|&(end, _)| end <= before);
        // The last one stays: its end is where the next begins.
        self.stretches.drain(..past.min(self.stretches.len().saturating_sub(1)));
    }
}
