//! Congestion control: who slows down, and by how much. One small state per pair of endpoints and class.
//!
//! A control answers two questions before a packet is sent: how much may be under way, and how long to wait after the
//! packet before. It learns from acknowledgements and from losses, and from nothing else. To add one: a file here, a
//! variant in [`State`] and in the machine file's `control`.

mod dcqcn;
mod input;
mod pair;
mod swift;
mod window;

use crate::machine::Control;

pub(crate) use input::{Common, Heard};

/// One flow's state.
#[derive(Clone, Debug)]
pub(crate) enum State {
    None,
    Dcqcn(dcqcn::Dcqcn),
    Window(window::Window),
    Swift(swift::Swift),
    Pair(pair::Pair),
}

impl State {
    pub(crate) fn new(common: &Common) -> Self {
        match &common.spec {
            Control::None => State::None,
            Control::Dcqcn(_) => State::Dcqcn(dcqcn::Dcqcn::new(common)),
            Control::Window(spec) => State::Window(window::Window::new(spec)),
            Control::Swift(spec) => State::Swift(swift::Swift::new(spec)),
            Control::Pair(spec) => State::Pair(pair::Pair::new(spec)),
        }
    }

    /// Bytes that may be under way. At least a packet: less is said by [`State::pause`].
    #[inline]
    pub(crate) fn allowance(&self, common: &Common) -> u64 {
        let bytes = match self {
            State::None | State::Dcqcn(_) => return u64::MAX,
            State::Window(window) => window.bytes,
            State::Swift(swift) => swift.window,
            State::Pair(pair) => pair.allowance,
        };
        (bytes as u64).max(u64::from(common.packet))
    }

    /// How long after the start of a packet of `bytes` the next may start, in picoseconds.
    #[inline]
    pub(crate) fn pause(&mut self, common: &Common, now: u64, bytes: u32) -> u64 {
        match (self, &common.spec) {
            (State::Dcqcn(dcqcn), Control::Dcqcn(spec)) => dcqcn.pause(spec, common, now, bytes),
            (State::Swift(swift), Control::Swift(spec)) if swift.window < spec.most.0 as f64 => {
                spread(swift.window, common.base + spec.target.0, bytes)
            }
            (State::Pair(pair), Control::Pair(spec)) if pair.allowance < spec.most.0 as f64 => {
                spread(pair.allowance, common.base, bytes)
            }
            _ => 0,
        }
    }

    #[inline]
    pub(crate) fn acknowledged(&mut self, common: &Common, heard: Heard) {
        match (self, &common.spec) {
            (State::Dcqcn(dcqcn), Control::Dcqcn(spec)) => dcqcn.acknowledged(spec, common, heard),
            (State::Window(window), Control::Window(spec)) => window.acknowledged(spec, common, heard),
            (State::Swift(swift), Control::Swift(spec)) => swift.acknowledged(spec, common, heard),
            (State::Pair(pair), Control::Pair(spec)) => pair.acknowledged(spec, heard),
            _ => {}
        }
    }

    /// Packets were lost; `silence` if nothing at all came back for long.
    pub(crate) fn lost(&mut self, common: &Common, now: u64, silence: bool) {
        let packet = f64::from(common.packet);
        match self {
            State::Window(window) => window.lost(packet, now, silence),
            State::Swift(swift) => swift.lost(packet, now, silence),
            State::Pair(pair) => pair.allowance = (pair.allowance / 2.0).max(packet),
            State::None | State::Dcqcn(_) => {}
        }
    }
}

/// The time between packets that spreads a window evenly over a round trip: a burst would meet itself in the queue, and
/// windows of less than a packet are only this. The round trip is what it should be, not what it was, or a queue that is
/// gone would hold senders back.
fn spread(window: f64, rtt: u64, bytes: u32) -> u64 {
    (rtt as f64 * f64::from(bytes) / window) as u64
}
