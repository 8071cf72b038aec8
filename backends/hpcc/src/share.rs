//! What global kernels do with a group besides their own messages: sums, maxima, trees, long messages.
//!
//! Numbers lie in the segment as bytes of the machine's own order: all ranks run the same program.

use tailback_transport::{Group, Rank, Result, Span, Tag};

/// Bytes of a number.
pub(crate) const WORD: usize = 8;

/// Longer messages go in parts: no transport has to carry more at once.
const LONGEST: usize = 32 << 20;

/// The largest of the members' values, none of which is negative; what is no number is larger than any.
///
/// # Errors
/// What the group says.
pub fn largest<G: Group>(group: &mut G, mine: f64) -> Result<f64> {
    // Bits of numbers that are not negative have the order of the numbers.
    group.start_agreement([mine.abs().to_bits(), 0, 0, 0])?;
    Ok(f64::from_bits(group.wait_agreement()?[0]))
}

/// Replaces numbers by their sums over the members; `offset` of the segment has room for them.
///
/// # Errors
/// What the group says.
pub fn sum<G: Group>(group: &mut G, offset: usize, numbers: &mut [f64]) -> Result<()> {
    group.write(offset, bytemuck::cast_slice(numbers));
    group.allreduce(Span::new(offset, numbers.len() * WORD))?;
    group.read(offset, bytemuck::cast_slice_mut(numbers));
    Ok(())
}

/// Posts a message of any length.
pub(crate) fn send<G: Group>(group: &mut G, to: Rank, tag: Tag, span: Span) -> Result<()> {
    parts(span).try_for_each(|part| group.post_send(to, tag, part))
}

/// Posts the receives of a message of any length.
pub(crate) fn receive<G: Group>(group: &mut G, from: Rank, tag: Tag, span: Span) -> Result<()> {
    parts(span).try_for_each(|part| group.post_recv(from, tag, part))
}

/// A span cut into messages; nothing of an empty one.
fn parts(span: Span) -> impl Iterator<Item = Span> {
    let starts = (0..span.len).step_by(LONGEST);
    starts.map(move |start| Span::new(span.offset + start, LONGEST.min(span.len - start)))
}

/// A binomial tree over the members of a line: what HPL hands its panels along.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// The members.
    pub line: &'a [Rank],
    /// Which of them has what is handed along.
    pub root: usize,
    /// Which of them this is.
    pub me: usize,
}

impl Tree<'_> {
    fn place(&self) -> usize {
        (self.me + self.line.len() - self.root) % self.line.len()
    }

    fn at(&self, place: usize) -> Rank {
        self.line[(place + self.root) % self.line.len()]
    }

    /// The lowest bit of a place says in which round it is told, and by whom.
    fn reach(&self) -> usize {
        match self.place() {
            0 => self.line.len().next_power_of_two(),
            place => 1 << place.trailing_zeros(),
        }
    }

    /// Posts the receive from the member above; nothing at the root.
    ///
    /// # Errors
    /// What the group says.
    pub fn receive<G: Group>(&self, group: &mut G, tag: Tag, span: Span) -> Result<()> {
        if self.place() == 0 {
            return Ok(());
        }
        receive(group, self.at(self.place() - self.reach()), tag, span)
    }

    /// Posts the messages to the members below.
    ///
    /// # Errors
    /// What the group says.
    pub fn send<G: Group>(&self, group: &mut G, tag: Tag, span: Span) -> Result<()> {
        let mut reach = self.reach();
        while reach > 1 {
            reach /= 2;
            if self.place() + reach < self.line.len() {
                send(group, self.at(self.place() + reach), tag, span)?;
            }
        }
        Ok(())
    }
}

/// Members of a group by turns: everyone begins with another, so that no one is everyone's first.
pub(crate) fn others(me: Rank, size: usize) -> impl Iterator<Item = Rank> {
    (1..size).map(move |step| Rank::from((me.index() + step) % size))
}

#[cfg(test)]
mod tests {
    use tailback_engine::Collective;
    use tailback_testkit::loopback::Job;
    use tailback_transport::{Error, Transport};

    use super::*;

    #[test]
    fn everyone_gets_the_roots_bytes() {
        for size in [1usize, 2, 3, 4, 5, 6, 7, 8] {
            let all = Job::new(size).run(|_, raw| {
                let members: Vec<Rank> = (0..size).map(Rank::from).collect();
                let mut group = Collective::new(raw).group(&members, 16)?;
                let me = group.rank().index();
                let mut seen = Vec::new();
                for root in 0..size {
                    group.write(0, &[(10 * root + me) as u8; 16]);
                    let (tree, span) = (Tree { line: &members, root, me }, Span::new(0, 16));
                    tree.receive(&mut group, Tag(1), span)?;
                    group.wait_all()?;
                    tree.send(&mut group, Tag(1), span)?;
                    group.wait_all()?;
                    let mut bytes = [0; 16];
                    group.read(0, &mut bytes);
                    seen.push(bytes[3]);
                }
                let most = largest(&mut group, me as f64 / 2.0)?;
                let mut numbers = [me as f64, 1.0];
                sum(&mut group, 0, &mut numbers)?;
                Ok::<_, Error>((seen, most, numbers))
            });
            let expected: Vec<u8> = (0..size).map(|root| (11 * root) as u8).collect();
            let (half, total) = ((size - 1) as f64 / 2.0, (size * (size - 1) / 2) as f64);
            for found in all.unwrap() {
                assert_eq!(found, (expected.clone(), half, [total, size as f64]));
            }
        }
    }

    #[test]
    fn long_messages_are_cut_without_a_gap() {
        let all: Vec<Span> = parts(Span::new(5, 2 * LONGEST + 3)).collect();
        assert_eq!(all.iter().map(|part| part.len).collect::<Vec<_>>(), [LONGEST, LONGEST, 3]);
        assert!(all.windows(2).all(|two| two[0].end() == two[1].offset));
        assert_eq!(parts(Span::new(5, 0)).count(), 0);
    }
}
