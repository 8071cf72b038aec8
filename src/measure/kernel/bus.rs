//! Algorithm and bus bandwidth of collectives, as NCCL's tests define them.
//!
//! The algorithm bandwidth is the vector's length over the time. It falls with the number of members though the network is
//! as quick, so it is no measure of the network. The bus bandwidth is what a member sends over the time, which a link bounds.

/// How much of the vector each member sends: n members, in the best algorithm for links of equal speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    /// (n-1)/n: what others have or want. Allgather, reduce-scatter, all-to-all.
    Once,
    /// 2(n-1)/n: both of these. Allreduce.
    Twice,
}

impl Bus {
    fn rounds(self) -> usize {
        match self {
            Bus::Once => 1,
            Bus::Twice => 2,
        }
    }

    /// Bus bandwidth over algorithm bandwidth.
    pub fn factor(self, size: usize) -> f64 {
        (self.rounds() * size.saturating_sub(1)) as f64 / size.max(1) as f64
    }

    /// What a member sends of a vector.
    pub fn bytes(self, vector: usize, size: usize) -> usize {
        let sent = (self.rounds() * vector) as u128 * size.saturating_sub(1) as u128;
        (sent / size.max(1) as u128) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_nccls() {
        assert_eq!([2, 4, 8].map(|size| Bus::Twice.factor(size)), [1.0, 1.5, 1.75]);
        assert_eq!([2, 4, 8].map(|size| Bus::Once.factor(size)), [0.5, 0.75, 0.875]);
        assert_eq!((Bus::Twice.factor(1), Bus::Once.factor(1)), (0.0, 0.0));
        assert_eq!((Bus::Twice.bytes(1 << 20, 8), Bus::Once.bytes(1 << 20, 8)), (1_835_008, 917_504));
        assert_eq!(Bus::Twice.bytes(1000, 3), 1333);
    }
}
