//! What this rank and one member of a group have open with each other, on one rail.

use std::collections::VecDeque;

use tailback_transport::{Span, Tag};

use super::marks::Marks;
use crate::Lane;

/// See the module. `F` is what the wire knows about the member's segment.
#[derive(Debug, Default)]
pub struct Member<F> {
    /// Receives that wait for their message.
    posted: VecDeque<(Lane, Tag, Span)>,
    /// Whole messages that wait for their receive.
    held: VecDeque<(Lane, Tag, Vec<u8>)>,
    /// Messages to it whose memory is still needed, per lane.
    pub(super) sending: [u32; Lane::COUNT],
    /// On the home rail: accesses with parts on others.
    pub(super) marks: Option<Box<Marks>>,
    /// The wire's own.
    pub far: F,
}

impl<F> Member<F> {
    /// Lets a receive wait.
    #[inline]
    pub(super) fn post(&mut self, lane: Lane, tag: Tag, span: Span) {
        self.posted.push_back((lane, tag, span));
    }

    /// Takes the oldest receive, if it is for this lane, tag and length, and gives its place in the segment.
    #[inline]
    pub(super) fn take_first(&mut self, lane: Lane, tag: Tag, len: usize) -> Option<usize> {
        let &(of, with, span) = self.posted.front()?;
        if of != lane || with != tag || span.len != len {
            return None;
        }
        self.posted.pop_front();
        Some(span.offset)
    }

    /// Takes the oldest receive that a message with this lane and tag completes.
    #[inline]
    pub(super) fn take_posted(&mut self, lane: Lane, tag: Tag) -> Option<Span> {
        take(&mut self.posted, lane, tag)
    }

    /// Lets a message wait.
    pub(super) fn keep(&mut self, lane: Lane, tag: Tag, data: Vec<u8>) {
        self.held.push_back((lane, tag, data));
    }

    /// Takes the oldest held message with this lane and tag.
    #[inline]
    pub(super) fn take_held(&mut self, lane: Lane, tag: Tag) -> Option<Vec<u8>> {
        if self.held.is_empty() { None } else { take(&mut self.held, lane, tag) }
    }

    /// Receives that wait, and how many of them are the kernel's own.
    pub(super) fn receives(&self) -> (usize, usize) {
        (self.posted.len(), self.posted.iter().filter(|(lane, ..)| *lane == Lane::Data).count())
    }

    /// Lengths of the messages that wait.
    pub(super) fn held(&self) -> impl Iterator<Item = usize> + '_ {
        self.held.iter().map(|(_, _, data)| data.len())
    }
}

/// Takes the first with this lane and tag.
#[inline]
fn take<T>(from: &mut VecDeque<(Lane, Tag, T)>, lane: Lane, tag: Tag) -> Option<T> {
    let fits = |&(l, t, _): &(Lane, Tag, T)| l == lane && t == tag;
    // The first as a rule.
    if from.front().is_some_and(fits) {
        return from.pop_front().map(|(_, _, what)| what);
    }
    let at = from.iter().position(fits)?;
    from.remove(at).map(|(_, _, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_match_by_lane_and_tag_in_order() {
        let mut member = Member::<()>::default();
        member.keep(Lane::Data, Tag(1), vec![1]);
        member.keep(Lane::Data, Tag(2), vec![2, 2]);
        member.keep(Lane::Data, Tag(1), vec![3]);
        assert_eq!(member.take_held(Lane::Barrier, Tag(1)), None);
        assert_eq!(member.take_held(Lane::Data, Tag(1)), Some(vec![1]));
        assert_eq!(member.take_held(Lane::Data, Tag(1)), Some(vec![3]));
        assert_eq!(member.held().collect::<Vec<_>>(), [2]);
        member.post(Lane::Data, Tag(5), Span::new(0, 8));
        member.post(Lane::Barrier, Tag(5), Span::new(16, 8));
        member.post(Lane::Data, Tag(5), Span::new(8, 8));
        assert_eq!(member.take_posted(Lane::Data, Tag(5)), Some(Span::new(0, 8)));
        assert_eq!(member.take_first(Lane::Data, Tag(5), 8), None, "another is older");
        assert_eq!(member.receives(), (2, 1));
        assert_eq!(member.take_first(Lane::Barrier, Tag(5), 8), Some(16));
    }
}
