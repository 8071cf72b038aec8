//! Exchanges with both neighbours of a ring: a small message each way for latency, a window of large ones for bandwidth.

use std::marker::PhantomData;

use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::traits::{Gets, Kernel, Messages, Puts, Sizes, check_pattern};
use crate::layout::Neighbours;

const RIGHTWARD: Tag = Tag(0);
const LEFTWARD: Tag = Tag(1);

/// Where a window's messages lie. Segment: [sent | window from left | window from right].
#[derive(Clone, Copy)]
pub struct Windows {
    bytes: usize,
    window: usize,
}

impl Windows {
    /// Every message of a window leaves from the same place: sends only read it.
    fn sent(self) -> Span {
        Span::new(0, self.bytes)
    }

    fn left_span(self, message: usize) -> Span {
        Span::new(self.bytes * (1 + message), self.bytes)
    }

    fn right_span(self, message: usize) -> Span {
        Span::new(self.bytes * (1 + self.window + message), self.bytes)
    }
}

/// How a member exchanges with its neighbours.
pub trait Exchange {
    /// Whether it puts: see [`Kernel::PUTS`].
    const PUTS: bool = false;

    /// Messages outstanding per neighbour.
    fn window(sizes: Sizes) -> usize {
        sizes.window
    }

    /// One iteration of one member.
    fn iterate<G: Group>(windows: Windows, group: &mut G, ring: Neighbours) -> Result<()>;

    /// See [`Kernel::message`].
    #[inline]
    fn message<G: Group>(windows: Windows, group: &mut G, ring: Neighbours, _turn: u64) -> Result<()> {
        Self::iterate(windows, group, ring)
    }
}

/// One message instead of a window of them.
pub struct One<M>(PhantomData<M>);

/// Two receives and two sends, one with each neighbour, then a wait for all.
impl Exchange for One<Messages> {
    fn window(_: Sizes) -> usize {
        1
    }

    #[inline]
    fn iterate<G: Group>(windows: Windows, group: &mut G, ring: Neighbours) -> Result<()> {
        group.post_recv(ring.left, RIGHTWARD, windows.left_span(0))?;
        group.post_recv(ring.right, LEFTWARD, windows.right_span(0))?;
        group.post_send(ring.right, RIGHTWARD, windows.sent())?;
        group.post_send(ring.left, LEFTWARD, windows.sent())?;
        group.wait_all()
    }

    /// To the right and to the left in turn.
    #[inline]
    fn message<G: Group>(windows: Windows, group: &mut G, ring: Neighbours, turn: u64) -> Result<()> {
        let (from, to, tag, received) = match turn % 2 {
            0 => (ring.left, ring.right, RIGHTWARD, windows.left_span(0)),
            _ => (ring.right, ring.left, LEFTWARD, windows.right_span(0)),
        };
        group.post_recv(from, tag, received)?;
        group.post_send(to, tag, windows.sent())?;
        group.wait_all()
    }
}

/// A get from each neighbour, then a flush of both.
impl Exchange for One<Gets> {
    fn window(_: Sizes) -> usize {
        1
    }

    #[inline]
    fn iterate<G: Group>(windows: Windows, group: &mut G, ring: Neighbours) -> Result<()> {
        group.get(ring.left, windows.left_span(0), 0)?;
        group.get(ring.right, windows.right_span(0), 0)?;
        group.flush(ring.left)?;
        group.flush(ring.right)
    }

    /// From the left and from the right in turn.
    #[inline]
    fn message<G: Group>(windows: Windows, group: &mut G, ring: Neighbours, turn: u64) -> Result<()> {
        let (from, received) = match turn % 2 {
            0 => (ring.left, windows.left_span(0)),
            _ => (ring.right, windows.right_span(0)),
        };
        group.get(from, received, 0)?;
        group.flush(from)
    }
}

/// A window of receives and sends with each neighbour, then a wait for all.
impl Exchange for Messages {
    #[inline]
    fn iterate<G: Group>(windows: Windows, group: &mut G, ring: Neighbours) -> Result<()> {
        for message in 0..windows.window {
            group.post_recv(ring.left, RIGHTWARD, windows.left_span(message))?;
            group.post_recv(ring.right, LEFTWARD, windows.right_span(message))?;
        }
        for _ in 0..windows.window {
            group.post_send(ring.right, RIGHTWARD, windows.sent())?;
            group.post_send(ring.left, LEFTWARD, windows.sent())?;
        }
        group.wait_all()
    }
}

/// Messages, and a barrier of the team inside the timed region.
pub struct Synchronised;

impl Exchange for Synchronised {
    #[inline]
    fn iterate<G: Group>(windows: Windows, group: &mut G, ring: Neighbours) -> Result<()> {
        Messages::iterate(windows, group, ring)?;
        group.barrier()
    }
}

/// A window of puts to each neighbour, then a flush of both.
impl Exchange for Puts {
    const PUTS: bool = true;

    #[inline]
    fn iterate<G: Group>(windows: Windows, group: &mut G, ring: Neighbours) -> Result<()> {
        for message in 0..windows.window {
            group.put(ring.right, windows.sent(), windows.left_span(message).offset)?;
            group.put(ring.left, windows.sent(), windows.right_span(message).offset)?;
        }
        group.flush(ring.right)?;
        group.flush(ring.left)
    }
}

/// An exchange with both neighbours.
pub struct RingExchange<E>(Windows, PhantomData<E>);

impl<E: Exchange> Kernel for RingExchange<E> {
    /// A latency is that of one neighbour's exchange.
    const PARTS: u64 = 2;
    const PUTS: bool = E::PUTS;

    fn new(sizes: Sizes, _size: usize, _rank: Rank) -> Self {
        RingExchange(Windows { bytes: sizes.bytes, window: E::window(sizes) }, PhantomData)
    }

    fn segment(sizes: Sizes, _size: usize) -> usize {
        sizes.bytes * (1 + 2 * E::window(sizes))
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        E::iterate(self.0, group, ring)
    }

    #[inline]
    fn message<G: Group>(&self, group: &mut G, ring: Neighbours, turn: u64) -> Result<()> {
        E::message(self.0, group, ring, turn)
    }

    fn check<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        let windows = self.0;
        (0..windows.window).try_for_each(|message| {
            check_pattern(group, ring.left, windows.left_span(message).offset, windows.bytes)?;
            check_pattern(group, ring.right, windows.right_span(message).offset, windows.bytes)
        })
    }

    fn payload(&self) -> usize {
        2 * self.0.window * self.0.bytes
    }
}
