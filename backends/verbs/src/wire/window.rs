//! How many buffers there are for a peer's messages, and who knows of them: flow control without a device.
//!
//! A rank has a window of buffers for each connected peer, and the peer sends no more than it knows to be free: its credits.
//! Freed buffers go back to the device some at a time; from then on the next message tells of them, or one of its own once
//! half of the window is untold.
//!
//! A window begins small, so that memory follows the peers that are used, and doubles when its peer has spent its last
//! credit: then it is the window that limits how much is under way, and not the network. The message that spends it says
//! so. New buffers are credits like freed ones.
//!
//! Messages that tell of credits alone need none. Each tells of half of the window at least, and all that are under way
//! together of no more than the window: two, and one for each time that the window has doubled since. Buffers beyond the
//! window are there for them and for a farewell, so that a receive queue never runs dry.

use crate::config::Buffers;

/// Buffers of a window when it is made.
const FIRST: u32 = 16;
/// Requests that may be under way to a peer, at least.
const SENDS: u32 = 128;
/// Fewer than that no adapter takes, and of fewer not one might tell of its completion.
const FEWEST_SENDS: u32 = 64;
/// So many freed buffers go back to the device together, of a window that has four times as many.
const FREED: u32 = 8;
/// Bytes by which all windows of a rank may have grown: an incast's root has hundreds of hungry peers.
pub(crate) const GROWN_LIMIT: usize = 64 << 20;

/// In the number that a message shows: its sender has no credit left. The rest is how many buffers the sender has freed.
const LAST: u32 = 1 << 31;

/// What all links of a rank have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes of a buffer.
    pub(crate) buffer: usize,
    /// Buffers of a window at first, and at most.
    pub(crate) first: u32,
    pub(crate) most: u32,
    /// Buffers for messages without credit.
    pub(crate) spare: u32,
    /// Requests that may be under way to a peer, a power of two: a whole window of messages, or it would be of no use.
    pub(crate) sends: u32,
}

impl Sizes {
    /// As `wanted`, on a device whose queues take `requests` each.
    pub(crate) fn new(wanted: &Buffers, requests: u32) -> Sizes {
        let spare = |most: u32| 3 + most.div_ceil(FIRST).next_power_of_two().ilog2();
        let most = wanted.credits.min(requests.saturating_sub(spare(wanted.credits))).max(1);
        let sends = most.max(SENDS).next_power_of_two().min(1 << requests.max(FEWEST_SENDS).ilog2());
        Sizes { buffer: wanted.bytes, first: first(most), most, spare: spare(most), sends }
    }

    /// Completions that one peer can cause at a time, as long as its window has not grown.
    pub(crate) fn completions(&self) -> u32 {
        self.first + self.spare + self.sends
    }
}

/// Buffers of a window that grows to `most`, when it is made.
pub(crate) fn first(most: u32) -> u32 {
    FIRST.min(most)
}

/// The window of one link, and the credits of its owner at the other end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Buffers for the peer, and at most.
    own: u32,
    most: u32,
    /// Those that were given to the device and that the peer was not told of.
    untold: u32,
    /// Buffers of the peer's known to be free, and how many it has at most.
    credits: u32,
    theirs: u32,
}

impl Window {
    /// Of a rank with such windows and a peer whose own grow to `theirs`.
    pub(super) fn new(sizes: &Sizes, theirs: u32) -> Window {
        Window { own: sizes.first, most: sizes.most, untold: 0, credits: first(theirs), theirs }
    }

    #[inline]
    pub(super) fn has_credit(&self) -> bool {
        self.credits > 0
    }

    /// Spends a credit: the number that the message has to show.
    #[inline]
    pub(super) fn spend(&mut self) -> u32 {
        self.credits -= 1;
        let last = if self.credits == 0 { LAST } else { 0 };
        self.tell() | last
    }

    /// The number that a message without credit has to show.
    #[inline]
    pub(super) fn tell(&mut self) -> u32 {
        std::mem::take(&mut self.untold)
    }

    /// A message shows `number`: whether that was its sender's last credit, or how many buffers it gives back that this
    /// rank never filled.
    #[inline]
    pub(super) fn hear(&mut self, number: u32) -> Result<bool, u32> {
        let freed = number & !LAST;
        if freed > self.theirs - self.credits {
            return Err(freed);
        }
        self.credits += freed;
        Ok(number & LAST != 0)
    }

    /// How many freed buffers go back to the device together. What is held back until then is less than half of the window, so
    /// a peer that has spent all of its credits is told of the others.
    #[inline]
    pub(super) fn batch(&self) -> usize {
        (self.own / 4).clamp(1, FREED) as usize
    }

    /// So many buffers are the device's: freed, or new.
    #[inline]
    pub(super) fn give(&mut self, buffers: u32) {
        self.untold += buffers;
    }

    /// Whether the peer should be told even without a message.
    #[inline]
    pub(super) fn owes_much(&self) -> bool {
        self.untold >= (self.own / 2).max(1)
    }

    /// By how much it may grow, if it may.
    pub(super) fn growth(&self) -> Option<u32> {
        Some(self.own.min(self.most - self.own)).filter(|&by| by > 0)
    }

    /// It has grown: its new buffers are the device's.
    pub(super) fn grow(&mut self, by: u32) {
        self.own += by;
        self.give(by);
    }

    /// Buffers for the peer.
    pub(super) fn size(&self) -> u32 {
        self.own
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn windows_begin_small_and_have_spare_buffers_for_every_doubling() {
        let of = |credits, requests| Sizes::new(&Buffers { bytes: 8192, credits }, requests);
        let usual = of(256, 16_384);
        assert_eq!(usual, Sizes { buffer: 8192, first: 16, most: 256, spare: 7, sends: 256 });
        assert_eq!(usual.completions(), 279);
        assert_eq!(of(4, 16_384), Sizes { buffer: 8192, first: 4, most: 4, spare: 3, sends: 128 });
        assert_eq!((of(100, 16_384).spare, of(17, 16_384).spare), (6, 4));
        let small = of(8192, 100);
        assert!(small.most + small.spare <= 100 && small.sends == 64, "{small:?}");
        assert_eq!(of(300, 16_384).sends, 512);
    }

    #[test]
    fn what_was_never_filled_is_not_given_back() {
        let sizes = Sizes::new(&Buffers { bytes: 8192, credits: 32 }, 16_384);
        let mut window = Window::new(&sizes, 32);
        assert_eq!(window.hear(16), Ok(false), "the peer's window has grown");
        assert_eq!(window.hear(1), Err(1));
        assert_eq!((window.spend(), window.hear(2), window.hear(1)), (0, Err(2), Ok(false)));
        for left in (0..32).rev() {
            assert_eq!(window.spend(), if left == 0 { LAST } else { 0 });
        }
        assert!(!window.has_credit());
    }

    /// One end of a link whose device and program are two.
    struct LocalPort {
        window: Window,
        /// Buffers that the device has.
        posted: u32,
        freed: usize,
        /// What is on its way to this end, and what has arrived and was not looked at: the number, and whether it has a
        /// credit.
        wire: VecDeque<(u32, bool)>,
        arrived: VecDeque<(u32, bool)>,
        taken: u64,
    }

    impl LocalPort {
        fn new(sizes: &Sizes) -> LocalPort {
            let window = Window::new(sizes, sizes.most);
            let posted = sizes.first + sizes.spare;
            LocalPort { window, posted, freed: 0, wire: VecDeque::new(), arrived: VecDeque::new(), taken: 0 }
        }

        /// The device places what comes next.
        fn place(&mut self) {
            if let Some(message) = self.wire.pop_front() {
                assert!(self.posted > 0, "the receive queue has run dry: {:?}", self.window);
                self.posted -= 1;
                self.arrived.push_back(message);
            }
        }

        /// The program looks at what has arrived.
        fn take(&mut self, grows: bool) {
            let Some((number, with_credit)) = self.arrived.pop_front() else { return };
            let last = self.window.hear(number).expect("no more than was sent");
            if with_credit {
                self.taken += 1;
                self.freed += 1;
                if self.freed >= self.window.batch() {
                    self.posted += self.freed as u32;
                    self.window.give(std::mem::take(&mut self.freed) as u32);
                }
            } else {
                self.posted += 1;
            }
            if let Some(by) = self.window.growth().filter(|_| last && grows) {
                self.posted += by;
                self.window.grow(by);
            }
        }
    }

    /// Sends what may be sent: a message, and a word about freed buffers.
    fn send(from: &mut LocalPort, to: &mut LocalPort, message: bool) -> u64 {
        let goes = message && from.window.has_credit();
        if goes {
            to.wire.push_back((from.window.spend(), true));
        }
        if from.window.owes_much() {
            to.wire.push_back((from.window.tell(), false));
        }
        u64::from(goes)
    }

    #[test]
    fn a_receive_queue_never_runs_dry_and_nobody_waits_for_ever() {
        let mut seed = 1_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for credits in [4, 5, 16, 17, 100, 256, 2048] {
            let sizes = Sizes::new(&Buffers { bytes: 256, credits }, 1 << 16);
            let mut widest = 0;
            for round in 0..30 {
                let mut ends = [LocalPort::new(&sizes), LocalPort::new(&sizes)];
                let mut sent = [0; 2];
                // How eager each end is to send, to place and to look differs from round to round.
                let weights: Vec<u64> = (0..6).map(|_| 1 + random(8)).collect();
                for _ in 0..6000 {
                    let mut pick = random(weights.iter().sum());
                    let act = weights.iter().position(|&weight| {
                        let here = pick < weight;
                        pick = pick.saturating_sub(weight);
                        here
                    });
                    let act = act.unwrap_or_default();
                    let [one, two] = &mut ends;
                    let (own, other) = if act % 2 == 0 { (one, two) } else { (two, one) };
                    match act / 2 {
                        0 => sent[act % 2] += send(own, other, true),
                        1 => own.place(),
                        _ => own.take(round % 3 != 0),
                    }
                    send(own, other, false);
                }
                for _ in 0..20_000 {
                    let [one, two] = &mut ends;
                    one.place();
                    one.take(true);
                    send(one, two, false);
                    two.place();
                    two.take(true);
                    send(two, one, false);
                }
                assert_eq!([ends[1].taken, ends[0].taken], sent, "{credits} credits: all arrived");
                for end in &ends {
                    assert!(end.window.has_credit() && end.window.size() <= credits, "{:?}", end.window);
                }
                widest = ends.iter().map(|end| end.window.size()).chain([widest]).max().unwrap_or_default();
            }
            assert!(credits <= FIRST || widest > FIRST, "{credits} credits: no sender was ever ahead");
        }
    }
}
