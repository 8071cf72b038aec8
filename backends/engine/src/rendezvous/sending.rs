//! What a member sends by rendezvous: messages that are announced, places that announcements leave from and answers arrive
//! in, and messages that wait for a place.

use std::collections::VecDeque;

use tailback_transport::{Rank, Span, Tag};

/// A message to one member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) to: Rank,
    pub(super) tag: Tag,
    pub(super) span: Span,
}

/// A message whose put was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub(super) number: usize,
    /// The receiver's slot.
    pub(super) slot: usize,
    /// It was the last of so many accesses to the receiver.
    pub(super) accesses: u64,
}

/// What this member sends to one other.
#[derive(Clone, Debug)]
struct Window {
    /// A bit per place that an RTS can leave from.
    free: u64,
    /// Messages that wait for a place, and those behind them.
    queue: VecDeque<Message>,
    /// Answers that are to come, and how many of them a receive is posted for: those of the places from `head` on.
    expected: usize,
    posted: usize,
    head: usize,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Sending {
    /// Made with the first message: most groups announce none, and the largest, that of all ranks, never does.
    windows: Vec<Window>,
    members: usize,
    places: usize,
    /// Announced messages by their numbers, which are given again.
    announced: Vec<Option<(Rank, Span)>>,
    vacant: Vec<usize>,
    puts: Vec<Moving>,
    queued: usize,
    /// Members whose answers are to come, and members with a queue.
    awaited: Vec<Rank>,
    queues: Vec<Rank>,
}

impl Sending {
    /// To `members`, with `places` for each.
    pub(super) fn new(members: usize, places: usize) -> Sending {
        Sending {
            windows: Vec::new(),
            members,
            places,
            announced: Vec::new(),
            vacant: Vec::new(),
            puts: Vec::new(),
            queued: 0,
            awaited: Vec::new(),
            queues: Vec::new(),
        }
    }

    fn window(&mut self, to: Rank) -> &mut Window {
        if self.windows.is_empty() {
            let free = u64::MAX >> (64 - self.places);
            let window = Window { free, queue: VecDeque::new(), expected: 0, posted: 0, head: 0 };
            self.windows = vec![window; self.members];
        }
        &mut self.windows[to.index()]
    }

    /// Members of the group, or none where nothing is announced.
    pub(super) fn members(&self) -> usize {
        self.members
    }

    /// Messages that are announced or wait to be.
    pub(super) fn under_way(&self) -> usize {
        self.queued + self.announced.len() - self.vacant.len()
    }

    /// Messages that wait.
    #[inline]
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    pub(super) fn has_queue(&self, to: Rank) -> bool {
        self.windows.get(to.index()).is_some_and(|window| !window.queue.is_empty())
    }

    /// Lets a message wait.
    pub(super) fn queue(&mut self, message: Message) {
        let queue = &mut self.window(message.to).queue;
        let first = queue.is_empty();
        queue.push_back(message);
        if first {
            self.queues.push(message.to);
        }
        self.queued += 1;
    }

    /// How many members have a queue.
    pub(super) fn queues(&self) -> usize {
        self.queues.len()
    }

    pub(super) fn queue_at(&self, at: usize) -> Rank {
        self.queues[at]
    }

    pub(super) fn first_queued(&self, to: Rank) -> Option<Message> {
        self.windows.get(to.index())?.queue.front().copied()
    }

    pub(super) fn unqueue(&mut self, to: Rank) {
        self.window(to).queue.pop_front();
        self.queued -= 1;
    }

    /// Whether an RTS can leave.
    pub(super) fn has_place(&self, to: Rank) -> bool {
        self.windows.get(to.index()).is_none_or(|window| window.free != 0)
    }

    /// All RTSs to `to` have left.
    pub(super) fn free_places(&mut self, to: Rank) {
        let places = self.places;
        self.window(to).free = u64::MAX >> (64 - places);
    }

    /// Takes a free place and gives the message a number.
    pub(super) fn begin(&mut self, message: Message) -> (usize, usize) {
        let Message { to, span, .. } = message;
        let window = self.window(to);
        let free = window.free.trailing_zeros() as usize;
        window.free &= window.free - 1;
        window.expected += 1;
        let first = window.expected == 1;
        let place = to.index() * self.places + free;
        if first {
            self.awaited.push(to);
        }
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.announced.push(None);
            self.announced.len() - 1
        });
        self.announced[number] = Some((to, span));
        (place, number)
    }

    /// The place for the next receive of an answer, if one is to be posted.
    pub(super) fn await_answer(&mut self, from: Rank) -> Option<usize> {
        let places = self.places;
        let window = self.window(from);
        if window.posted == window.expected.min(places) {
            return None;
        }
        let place = (window.head + window.posted) % places;
        window.posted += 1;
        Some(from.index() * places + place)
    }

    /// How many members' answers are to come.
    pub(super) fn awaited(&self) -> usize {
        self.awaited.len()
    }

    pub(super) fn awaited_at(&self, at: usize) -> Rank {
        self.awaited[at]
    }

    /// The place of the answer that comes next.
    pub(super) fn next_answer(&self, from: Rank) -> Option<usize> {
        let window = self.windows.get(from.index())?;
        (window.posted > 0).then(|| from.index() * self.places + window.head)
    }

    /// It was read.
    pub(super) fn take_answer(&mut self, from: Rank) {
        let places = self.places;
        let window = self.window(from);
        window.head = (window.head + 1) % places;
        window.posted -= 1;
        window.expected -= 1;
    }

    /// Where the message with this number is, if it was announced to `to`.
    pub(super) fn span(&self, to: Rank, number: usize) -> Option<Span> {
        self.announced.get(number).copied().flatten().filter(|(peer, _)| *peer == to).map(|(_, span)| span)
    }

    /// The put of a message was made.
    pub(super) fn put(&mut self, moving: Moving) {
        self.puts.push(moving);
    }

    /// One of the messages whose put was made, and its receiver.
    pub(super) fn put_at(&self, at: usize) -> Option<(Rank, Moving)> {
        let &moving = self.puts.get(at)?;
        self.announced[moving.number].map(|(to, _)| (to, moving))
    }

    pub(super) fn end_put(&mut self, at: usize) {
        self.puts.swap_remove(at);
    }

    /// The message with this number is over.
    pub(super) fn end(&mut self, number: usize) {
        self.announced[number] = None;
        self.vacant.push(number);
    }

    /// Forgets members of which nothing more is to come, and those whose queue is empty.
    pub(super) fn tidy(&mut self) {
        let windows = &self.windows;
        self.awaited.retain(|member| windows[member.index()].expected > 0);
        self.queues.retain(|member| !windows[member.index()].queue.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(to: u32) -> Message {
        Message { to: Rank(to), tag: Tag(0), span: Span::new(to as usize, 100) }
    }

    #[test]
    fn places_are_a_window_and_numbers_are_not() {
        let mut sending = Sending::new(2, 8);
        let places: Vec<_> = (0..8).map(|_| sending.begin(message(1))).collect();
        assert!(places.iter().enumerate().all(|(at, &found)| found == (8 + at, at)));
        assert!(!sending.has_place(Rank(1)) && sending.has_place(Rank(0)));
        sending.free_places(Rank(1));
        assert_eq!(sending.begin(message(1)), (8, 8));
        assert_eq!(sending.under_way(), 9);
        assert_eq!(sending.span(Rank(1), 8), Some(Span::new(1, 100)));
        assert_eq!(sending.span(Rank(0), 8), None);
        sending.end(3);
        assert_eq!(sending.span(Rank(1), 3), None);
        assert_eq!(sending.begin(message(0)), (0, 3));
    }

    #[test]
    fn answers_arrive_in_the_order_of_their_places_and_go_round() {
        let mut sending = Sending::new(1, 8);
        let mut places = Vec::new();
        for _ in 0..12 {
            sending.free_places(Rank(0));
            sending.begin(message(0));
            places.extend(sending.await_answer(Rank(0)));
        }
        assert_eq!(places, (0..8).collect::<Vec<_>>());
        for turn in 0..12 {
            assert_eq!(sending.next_answer(Rank(0)), Some(turn % 8));
            sending.take_answer(Rank(0));
            assert_eq!(sending.await_answer(Rank(0)), (turn < 4).then_some(turn % 8), "turn {turn}");
        }
        assert_eq!((sending.next_answer(Rank(0)), sending.awaited()), (None, 1));
        sending.tidy();
        assert_eq!(sending.awaited(), 0);
    }
}
