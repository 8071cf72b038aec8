//! HPCC's names of figures, with what they mean, for views and comparisons.

/// Whether more of a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Good {
    More,
    Less,
    /// It is a size, not a merit.
    Neither,
}

/// A figure.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Name {
    /// HPCC's.
    pub theirs: &'static str,
    pub ours: &'static str,
    pub unit: &'static str,
    pub good: Good,
}

const fn more(theirs: &'static str, ours: &'static str, unit: &'static str) -> Name {
    Name { theirs, ours, unit, good: Good::More }
}

const fn less(theirs: &'static str, ours: &'static str, unit: &'static str) -> Name {
    Name { theirs, ours, unit, good: Good::Less }
}

const fn size(theirs: &'static str, ours: &'static str, unit: &'static str) -> Name {
    Name { theirs, ours, unit, good: Good::Neither }
}

/// Those of HPCC's summary that are shown, in the order they are shown.
pub const NAMES: &[Name] = &[
    more("HPL_Tflops", "HPL, all ranks", "Tflop/s"),
    more("StarDGEMM_Gflops", "DGEMM, mean of all ranks at once", "Gflop/s"),
    more("SingleDGEMM_Gflops", "DGEMM, one rank", "Gflop/s"),
    more("PTRANS_GBs", "PTRANS, all ranks", "GB/s"),
    more("StarSTREAM_Copy", "STREAM copy, mean of all ranks at once", "GB/s"),
    more("StarSTREAM_Scale", "STREAM scale, mean of all ranks at once", "GB/s"),
    more("StarSTREAM_Add", "STREAM add, mean of all ranks at once", "GB/s"),
    more("StarSTREAM_Triad", "STREAM triad, mean of all ranks at once", "GB/s"),
    more("SingleSTREAM_Copy", "STREAM copy, one rank", "GB/s"),
    more("SingleSTREAM_Scale", "STREAM scale, one rank", "GB/s"),
    more("SingleSTREAM_Add", "STREAM add, one rank", "GB/s"),
    more("SingleSTREAM_Triad", "STREAM triad, one rank", "GB/s"),
    more("MPIRandomAccess_GUPs", "RandomAccess, all ranks", "Gupdate/s"),
    more("StarRandomAccess_GUPs", "RandomAccess, mean of all ranks at once", "Gupdate/s"),
    more("SingleRandomAccess_GUPs", "RandomAccess, one rank", "Gupdate/s"),
    more("MPIFFT_Gflops", "FFT, all ranks", "Gflop/s"),
    more("StarFFT_Gflops", "FFT, mean of all ranks at once", "Gflop/s"),
    more("SingleFFT_Gflops", "FFT, one rank", "Gflop/s"),
    less("MaxPingPongLatency_usec", "ping-pong latency, worst pair", "us"),
    less("AvgPingPongLatency_usec", "ping-pong latency, mean", "us"),
    less("MinPingPongLatency_usec", "ping-pong latency, best pair", "us"),
    less("NaturallyOrderedRingLatency_usec", "natural ring latency", "us"),
    less("RandomlyOrderedRingLatency_usec", "random rings latency", "us"),
    more("MinPingPongBandwidth_GBytes", "ping-pong bandwidth, worst pair", "GB/s"),
    more("AvgPingPongBandwidth_GBytes", "ping-pong bandwidth, mean", "GB/s"),
    more("MaxPingPongBandwidth_GBytes", "ping-pong bandwidth, best pair", "GB/s"),
    more("NaturallyOrderedRingBandwidth_GBytes", "natural ring bandwidth, a rank", "GB/s"),
    more("RandomlyOrderedRingBandwidth_GBytes", "random rings bandwidth, a rank", "GB/s"),
    size("HPL_N", "order of HPL's matrix", ""),
    size("HPL_NB", "block of HPL", ""),
    size("HPL_nprow", "rows of HPL's grid", ""),
    size("HPL_npcol", "columns of HPL's grid", ""),
    size("HPL_time", "time of HPL", "s"),
    size("PTRANS_n", "order of PTRANS' matrix", ""),
    size("PTRANS_nb", "block of PTRANS", ""),
    size("PTRANS_time", "time of PTRANS", "s"),
    size("DGEMM_N", "order of DGEMM's matrices", ""),
    size("STREAM_VectorSize", "words of a vector of STREAM", ""),
    size("MPIRandomAccess_N", "words of the table of all ranks", ""),
    size("MPIRandomAccess_time", "time of RandomAccess of all ranks", "s"),
    size("MPIRandomAccess_ExeUpdates", "updates of all ranks", ""),
    size("RandomAccess_N", "words of a rank's own table", ""),
    size("MPIFFT_N", "points of the transform of all ranks", ""),
    size("FFT_N", "points of a rank's own transform", ""),
];

/// What is known of a figure by HPCC's name.
pub fn name(theirs: &str) -> Option<&'static Name> {
    NAMES.iter().find(|name| name.theirs == theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_there_once() {
        let mut all: Vec<&str> = NAMES.iter().map(|name| name.theirs).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|two| two[0] != two[1]));
        assert_eq!(name("HPL_Tflops").map(|name| name.unit), Some("Tflop/s"));
        assert!(name("HPL_Petaflops").is_none());
    }
}
