//! All-to-all with skew, as a mixture of experts has it: everyone sends its tokens to the experts, some of which are wanted more
//! than others, and has their answers back.

use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::traits::{Kernel, Sizes, check_pattern, fill_pattern};
use crate::layout::{Neighbours, order};

const DISPATCH: Tag = Tag(0);
const COMBINE: Tag = Tag(1);
/// Of which members' experts are wanted most.
const SEED: u64 = 0x6578_7065;

/// One expert on each member. Everyone sends an expert as many tokens as it is wanted, which falls with the square root of its
/// place in a random order: of 8 the first is wanted 1.8 times as much as they are in the mean, of 64 it is 4.4 times.
pub struct Experts {
    /// The length of a message to each member's expert, and of its answer.
    lengths: Vec<usize>,
    rank: usize,
}

impl Experts {
    /// Lengths whose mean is `bytes`, rounded; at least a byte each.
    fn lengths(bytes: usize, size: usize) -> Vec<usize> {
        let places = order(SEED, size as u64, size);
        let wanted = |place: usize| 1.0 / ((place + 1) as f64).sqrt();
        let sum: f64 = (0..size).map(wanted).sum();
        let length = |&place: &usize| ((bytes as f64 * size as f64 * wanted(place) / sum).round() as usize).max(1);
        places.iter().map(length).collect()
    }

    fn longest(lengths: &[usize]) -> usize {
        lengths.iter().copied().max().unwrap_or_default()
    }

    /// The others, from the next on, so that not everyone begins with the same.
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (rank, size) = (self.rank, self.lengths.len());
        (1..size).map(move |step| (rank + step) % size)
    }

    /// Where tokens for this member's expert lie, by their sender.
    fn tokens(&self, sender: usize) -> Span {
        let own = self.lengths[self.rank];
        Span::new(Self::longest(&self.lengths) + sender * own, own)
    }

    /// Where answers begin that experts give this member: behind all tokens.
    fn answers(&self) -> usize {
        Self::longest(&self.lengths) * (1 + self.lengths.len())
    }

    /// What comes with a tag: from whom, and where it lies.
    fn coming(&self, tag: Tag) -> impl Iterator<Item = (Rank, Span)> + '_ {
        let mut answers = self.answers();
        self.others().map(move |other| {
            if tag == DISPATCH {
                return (Rank::from(other), self.tokens(other));
            }
            let span = Span::new(answers, self.lengths[other]);
            answers += span.len;
            (Rank::from(other), span)
        })
    }
}

/// Segment: [sent | tokens from member 0 | from member 1 | ... | answers].
impl Kernel for Experts {
    fn new(sizes: Sizes, size: usize, rank: Rank) -> Self {
        Experts { lengths: Self::lengths(sizes.bytes, size), rank: rank.index() }
    }

    fn segment(sizes: Sizes, size: usize) -> usize {
        let lengths = Self::lengths(sizes.bytes, size);
        Self::longest(&lengths) * (1 + size) + lengths.iter().sum::<usize>()
    }

    fn fill<G: Group>(&self, group: &mut G, _: Sizes) {
        fill_pattern(group, 0, Self::longest(&self.lengths));
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        for tag in [DISPATCH, COMBINE] {
            self.coming(tag).try_for_each(|(from, span)| group.post_recv(from, tag, span))?;
            for other in self.others() {
                let expert = if tag == DISPATCH { other } else { self.rank };
                group.post_send(Rank::from(other), tag, Span::new(0, self.lengths[expert]))?;
            }
            group.wait_all()?;
        }
        Ok(())
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        let mut came = self.coming(DISPATCH).chain(self.coming(COMBINE));
        came.try_for_each(|(sender, span)| check_pattern(group, sender, span.offset, span.len))
    }

    fn payload(&self) -> usize {
        let others = self.lengths.len() - 1;
        self.others().map(|other| self.lengths[other]).sum::<usize>() + others * self.lengths[self.rank]
    }
}

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback::Job;

    use super::super::traits::{BadCard, run_on_loopback as run};
    use super::*;

    #[test]
    fn some_experts_are_wanted_more_than_others() {
        let mut lengths = Experts::lengths(1000, 8);
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(lengths, [1830, 1294, 1057, 915, 818, 747, 692, 647]);
        assert_eq!(Experts::longest(&Experts::lengths(1000, 64)), 4383);
        assert_eq!((Experts::lengths(8, 1), Experts::lengths(1, 3).len()), (vec![8], 3));
        assert!(Experts::lengths(1, 100).iter().all(|length| *length >= 1));
    }

    #[test]
    fn tokens_and_answers_arrive_on_any_number_of_members() {
        for size in [1, 2, 3, 7, 8] {
            let lengths = Experts::lengths(1000, size);
            let all: usize = lengths.iter().sum();
            let sent: Vec<usize> = lengths.iter().map(|own| all - own + (size - 1) * own).collect();
            assert_eq!(run::<Experts>(Job::new(size), size).unwrap(), sent);
        }
    }

    #[test]
    fn corruption_is_detected() {
        let found = run::<Experts>(Job::new(3).fault(BadCard), 3).unwrap_err().to_string();
        assert!(found.contains("byte 77 of") && found.contains("from member 1"), "{found}");
    }
}
