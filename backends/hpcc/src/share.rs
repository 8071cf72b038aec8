//! What global kernels do with a group besides their own messages: sums and maxima.
//!
//! Numbers lie in the segment as bytes of the machine's own order: all ranks run the same program.

use tailback_transport::{Group, Rank, Result, Span};

/// Bytes of a number.
pub(crate) const WORD: usize = 8;

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

/// Members of a group by turns: everyone begins with another, so that no one is everyone's first.
pub(crate) fn others(me: Rank, size: usize) -> impl Iterator<Item = Rank> {
    (1..size).map(move |step| Rank::from((me.index() + step) % size))
}

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback::Job;
    use tailback_transport::Tag;
    use tailback_transport::arranged::Tree;

    use super::*;
    use crate::testing::on_ranks;

    #[test]
    fn everyone_gets_the_roots_bytes() {
        for size in [1usize, 2, 3, 4, 5, 6, 7, 8] {
            let members: Vec<Rank> = (0..size).map(Rank::from).collect();
            let all = on_ranks(Job::new(size), size, 16, |group| {
                let me = group.rank().index();
                let mut seen = Vec::new();
                for root in 0..size {
                    group.write(0, &[(10 * root + me) as u8; 16]);
                    let (tree, span) = (Tree { line: &members, root, me }, Span::new(0, 16));
                    tree.receive(group, Tag(1), span)?;
                    group.wait_all()?;
                    tree.send(group, Tag(1), span)?;
                    group.wait_all()?;
                    let mut bytes = [0; 16];
                    group.read(0, &mut bytes);
                    seen.push(bytes[3]);
                }
                let most = largest(group, me as f64 / 2.0)?;
                let mut numbers = [me as f64, 1.0];
                sum(group, 0, &mut numbers)?;
                Ok((seen, most, numbers))
            });
            let expected: Vec<u8> = (0..size).map(|root| (11 * root) as u8).collect();
            let (half, total) = ((size - 1) as f64 / 2.0, (size * (size - 1) / 2) as f64);
            for found in all.unwrap() {
                assert_eq!(found, (expected.clone(), half, [total, size as f64]));
            }
        }
    }
}
