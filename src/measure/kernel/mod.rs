//! The communication kernels: what one iteration of a canary or a congestor does.
//!
//! A kernel is a struct with a [`Kernel::iterate`] that is generic over the group, so that the timed loop is monomorphised
//! per backend. To add one: a file, and its line in the table below, of which the command line, plans, tables and result
//! files know it. Sizes, counts and names are GPCNeT's unless a plan says otherwise; receives never overlap in memory, and
//! received data is checked between passes.

mod allreduce;
mod alltoall;
mod application;
mod at_once;
mod bus;
mod clock;
mod experts;
mod one_to_one;
mod panel;
mod pipeline;
mod repeat;
mod ring;
mod ring_collective;
mod rooted;
mod storage;
mod traits;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_transport::{Bytes, Operation};

use crate::stats::{Direction, Statistic};

use at_once::{AtOnce, Everyone, Transposed, Updates};
use one_to_one::{Permutation, Tornado};
use ring::{One, RingExchange, Synchronised};
use ring_collective::{Allgather, ReduceScatter, RingAllreduce, RingCollective};
use rooted::{Broadcast, Incast};
use traits::{Gets, Messages, Puts};

pub use bus::Bus;
pub(crate) use clock::{CLOCK_SEGMENT, SharedClock};
pub(crate) use repeat::until_steady;
pub use traits::{Kernel, Sizes};
pub(crate) use traits::{check_pattern, fill_pattern};

/// Who a kernel's neighbours are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// A new random ring each pass.
    Random,
    /// The order of the nodes.
    Natural,
    /// It has none.
    None,
}

/// What is known of a kernel before it runs. Counts are GPCNeT's.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Info {
    /// As the user types it.
    pub key: &'static str,
    /// As GPCNeT's tables print it, without the size.
    pub title: &'static str,
    /// What one iteration does, for help texts.
    pub what: &'static str,
    pub ring: Ring,
    pub direction: Direction,
    pub needs: &'static [Operation],
    pub bytes: usize,
    pub window: usize,
    pub iterations: u32,
    pub warmup: u32,
    pub rings: u32,
    pub measurements: u32,
    /// Teams larger than this do proportionally fewer iterations, at least one.
    pub full_up_to: Option<usize>,
    /// Message sizes are multiples of this.
    pub multiple_of: usize,
    /// What its bus bandwidth is, where it is the custom to tell of one.
    pub bus: Option<Bus>,
}

impl Info {
    /// How it is named with its size wherever it is shown: its key, and the size as people write it.
    pub fn name(&self, bytes: usize) -> String {
        // What needs nothing of the network sends no messages of ours, and has no size.
        if self.needs.is_empty() { self.title.to_owned() } else { format!("{} {}", self.key, Bytes(bytes as u64)) }
    }

    /// The row title of GPCNeT's tables.
    pub fn row(&self, bytes: usize) -> String {
        if self.needs.is_empty() { self.title.to_owned() } else { format!("{} ({bytes} B)", self.title) }
    }

    /// Iterations for a team of `size`, by GPCNeT's scaling rule.
    pub fn scaled(&self, iterations: u32, size: usize) -> u32 {
        match self.full_up_to {
            Some(limit) if size > limit => ((u64::from(iterations) * limit as u64 / size as u64) as u32).max(1),
            _ => iterations,
        }
    }
}

/// The name of what a row of GPCNeT's tables, or of a result file before 0.3, is titled with; any other text as it is.
pub fn plain_name(title: String) -> String {
    let name = || {
        let (title, size) = title.split_once(" (")?;
        let bytes = size.strip_suffix(" B)")?.parse().ok()?;
        let mut all = Canary::kernels().map(Canary::info).chain(Congestor::ALL.iter().map(|kernel| kernel.info()));
        Some(all.find(|info| info.title == title)?.name(bytes))
    };
    name().unwrap_or(title)
}

/// What is done with a kernel once its type is known.
pub trait KernelVisitor {
    /// What the visit gives.
    type Output;
    /// The visit.
    fn visit<K: Kernel>(self) -> Self::Output;
}

macro_rules! kernels {
    ($(#[$doc:meta])* $kind:ident, $word:literal { $($name:ident $type:ty = $info:expr,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum $kind { $($name),+ }

        impl $kind {
            /// All of them, in the order of the tables.
            pub const ALL: &[$kind] = &[$($kind::$name),+];

            /// As the user types them, with commas; of canaries, those that are Tailback's own.
            pub fn keys() -> String {
                let own = Self::ALL.iter().map(|kernel| kernel.info()).filter(|info| !info.needs.is_empty());
                own.map(|info| info.key).collect::<Vec<_>>().join(", ")
            }

            /// What is known of it.
            pub fn info(self) -> Info {
                match self { $($kind::$name => $info),+ }
            }

            /// Runs `visitor` with the kernel's type, so that its loop is compiled for it alone.
            pub fn visit<V: KernelVisitor>(self, visitor: V) -> V::Output {
                match self { $($kind::$name => visitor.visit::<$type>()),+ }
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.info().key)
            }
        }

        impl FromStr for $kind {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|kernel| kernel.info().key == text).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|kernel| kernel.info().key).collect();
                    format!(concat!("unknown ", $word, " '{}': choose from {}"), text, known.join(", "))
                })
            }
        }

        impl Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.info().key)
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $kind {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($kind).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let keys: Vec<&str> = Self::ALL.iter().map(|kernel| kernel.info().key).collect();
                schemars::json_schema!({ "type": "string", "enum": keys })
            }
        }
    };
}

const TWO_SIDED: &[Operation] = &[Operation::TwoSided];
const PUT: &[Operation] = &[Operation::Put];
const GET: &[Operation] = &[Operation::Get];
const ALLREDUCE: &[Operation] = &[Operation::Allreduce];

const LATENCY: Info = Info {
    key: "lat",
    title: "RR Two-sided Lat",
    what: "exchange a small message with both neighbours of a random ring",
    ring: Ring::Random,
    direction: Direction::Latency,
    needs: TWO_SIDED,
    bytes: 8,
    window: 1,
    iterations: 200,
    warmup: 200,
    rings: 30,
    measurements: 10_000,
    full_up_to: None,
    multiple_of: 1,
    bus: None,
};

const BANDWIDTH: Info = Info {
    key: "bw",
    title: "RR Two-sided BW",
    what: "stream a window of large messages to both neighbours of a random ring",
    direction: Direction::Bandwidth,
    bytes: 131_072,
    window: 8,
    iterations: 8,
    warmup: 1,
    ..LATENCY
};

/// A program needs nothing of the network under test: what it uses is its own affair.
const APPLICATION: Info = Info {
    key: "app",
    title: "Application",
    what: "run a program and take its wall time, or a figure from its output of which less is better",
    ring: Ring::None,
    needs: &[],
    bytes: 1,
    iterations: 1,
    warmup: 1,
    rings: 1,
    measurements: 1,
    ..LATENCY
};

/// The length of the whole vector is its size.
const VECTOR: Info = Info {
    ring: Ring::None,
    bytes: 1 << 20,
    window: 1,
    rings: 1,
    full_up_to: Some(64),
    multiple_of: ring_collective::WORD,
    bus: Some(Bus::Once),
    ..BANDWIDTH
};

const CONGESTOR: Info = Info {
    key: "a2a",
    title: "Alltoall",
    what: "everyone exchanges with everyone, pair by pair",
    ring: Ring::None,
    direction: Direction::Bandwidth,
    needs: TWO_SIDED,
    bytes: 4096,
    window: 1,
    iterations: 512,
    warmup: 1,
    rings: 1,
    measurements: 256,
    full_up_to: Some(32),
    multiple_of: 1,
    bus: None,
};

kernels! {
    /// A kernel that is measured.
    Canary, "canary" {
        Lat RingExchange<One<Messages>> = LATENCY,
        GetLat RingExchange<One<Gets>> = Info {
            key: "get-lat", title: "RR Get Lat", needs: GET,
            what: "get a small message from both neighbours of a random ring", ..LATENCY
        },
        Bw RingExchange<Messages> = BANDWIDTH,
        PutBw RingExchange<Puts> = Info {
            key: "put-bw", title: "RR Put BW", needs: PUT,
            what: "put a window of large messages to both neighbours of a random ring", ..BANDWIDTH
        },
        BwSync RingExchange<Synchronised> = Info {
            key: "bw-sync", title: "RR Two-sided BW+Sync",
            what: "bw with a barrier in the timed region", ..BANDWIDTH
        },
        NatBw RingExchange<Messages> = Info {
            key: "nat-bw", title: "Nat Two-sided BW", ring: Ring::Natural,
            what: "bw on the ring of the nodes' own order", ..BANDWIDTH
        },
        Allreduce allreduce::Allreduce = Info {
            key: "allreduce", title: "Multiple Allreduce", ring: Ring::None, needs: ALLREDUCE,
            what: "sum one double over the slice, all slices at once",
            warmup: 1, rings: 1, measurements: 100_000, multiple_of: ring_collective::WORD, ..LATENCY
        },
        AllToAll alltoall::AllToAll = Info {
            key: "a2a", title: "Multiple Alltoall", ring: Ring::None,
            what: "all-to-all of the slice, pair by pair, all slices at once",
            bytes: 4096, window: 1, iterations: 64, rings: 1, full_up_to: Some(64), bus: Some(Bus::Once), ..BANDWIDTH
        },
        RingAllreduce RingCollective<RingAllreduce> = Info {
            key: "ring-allreduce", title: "Ring Allreduce", bus: Some(Bus::Twice),
            what: "sum a large vector of 64-bit integers over the slice, around a ring", ..VECTOR
        },
        ReduceScatter RingCollective<ReduceScatter> = Info {
            key: "reduce-scatter", title: "Ring Reduce-Scatter",
            what: "the first half of ring-allreduce: each of the slice has one part of the sum", ..VECTOR
        },
        Allgather RingCollective<Allgather> = Info {
            key: "allgather", title: "Ring Allgather", multiple_of: 1,
            what: "the second half: everyone has all parts of a large vector", ..VECTOR
        },
        Moe experts::Experts = Info {
            key: "moe", title: "MoE Alltoall", ring: Ring::None,
            what: "all-to-all with skew and back, as a mixture of experts does: some members are wanted more than others",
            bytes: 4096, iterations: 64, warmup: 1, rings: 1, full_up_to: Some(64), ..LATENCY
        },
        Pipeline pipeline::Pipeline = Info {
            key: "pipeline", title: "Pipeline Step", ring: Ring::None,
            what: "hand a window of large messages from stage to stage along the slice, and one back",
            bytes: 65_536, window: 4, iterations: 64, warmup: 1, rings: 1, full_up_to: Some(64), ..LATENCY
        },
        Ptrans AtOnce<Transposed> = Info {
            key: "ptrans", title: "PTRANS Exchange", ring: Ring::None,
            what: "exchange a large message with those a transpose pairs one with, as PTRANS does",
            window: 1, rings: 1, ..BANDWIDTH
        },
        Gups AtOnce<Updates> = Info {
            key: "gups", title: "RandomAccess Round", ring: Ring::None,
            what: "send everyone of the slice its part of 1024 updates at once, as RandomAccess does",
            bytes: 8192, iterations: 64, warmup: 1, rings: 1, full_up_to: Some(64), ..LATENCY
        },
        Fft AtOnce<Everyone> = Info {
            key: "fft", title: "FFT Transpose", ring: Ring::None,
            what: "send everyone of the slice its part of a matrix at once, as a transform over all ranks does",
            bytes: 16_384, window: 1, rings: 1, full_up_to: Some(64), ..BANDWIDTH
        },
        Panel panel::PanelBroadcast = Info {
            key: "panel", title: "HPL Panel Bcast", ring: Ring::None,
            what: "hand a large message of each of the slice in turn along a tree to all others, as HPL does its panels",
            window: 1, rings: 1, full_up_to: Some(64), ..BANDWIDTH
        },
        App application::Application = APPLICATION,
        AppRate application::Application = Info {
            key: "app-rate", direction: Direction::Bandwidth,
            what: "run a program and take a figure from its output of which more is better", ..APPLICATION
        },
    }
}

impl Canary {
    /// Whether it is a program of the user's rather than a kernel.
    pub fn is_application(self) -> bool {
        matches!(self, Canary::App | Canary::AppRate)
    }

    /// Those that are Tailback's own, in the order of the tables.
    pub fn kernels() -> impl Iterator<Item = Canary> {
        Self::ALL.iter().copied().filter(|canary| !canary.is_application())
    }

    /// Those that GPCNeT has: what the network test runs where nothing else is named.
    pub const GPCNETS: &[Canary] = &[
        Canary::Lat,
        Canary::GetLat,
        Canary::Bw,
        Canary::PutBw,
        Canary::BwSync,
        Canary::NatBw,
        Canary::Allreduce,
        Canary::AllToAll,
    ];

    /// The figure that is claimed first of it. A program has one figure a repetition, and few repetitions; a rate is bytes
    /// over time.
    pub fn headline(self) -> Statistic {
        match self.info().direction {
            Direction::Latency if !self.is_application() => Statistic::HEADLINE,
            _ => Statistic::Avg,
        }
    }
}

kernels! {
    /// A kernel that loads the network.
    Congestor, "congestor" {
        AllToAll alltoall::AllToAll = CONGESTOR,
        Incast Incast<Messages> = Info {
            key: "incast", title: "Two-sided Incast", what: "everyone sends to one root", ..CONGESTOR
        },
        PutIncast Incast<Puts> = Info {
            key: "put-incast", title: "Put Incast", what: "everyone puts to one root", needs: PUT, ..CONGESTOR
        },
        GetIncast Incast<Gets> = Info {
            key: "get-incast", title: "Get Incast", what: "one root gets from everyone", needs: GET, ..CONGESTOR
        },
        GetBcast Broadcast<Gets> = Info {
            key: "get-bcast", title: "Get Bcast", what: "everyone gets the same bytes from one root", needs: GET,
            ..CONGESTOR
        },
        Bcast Broadcast<Messages> = Info {
            key: "bcast", title: "Two-sided Bcast", what: "one root sends the same bytes to everyone", ..CONGESTOR
        },
        PutBcast Broadcast<Puts> = Info {
            key: "put-bcast", title: "Put Bcast", what: "one root puts the same bytes to everyone", needs: PUT,
            ..CONGESTOR
        },
        Allreduce allreduce::Allreduce = Info {
            key: "allreduce", title: "Allreduce", what: "sum megabytes of doubles over the team", needs: ALLREDUCE,
            bytes: 6_553_600, multiple_of: ring_collective::WORD, ..CONGESTOR
        },
        Permutation AtOnce<Permutation> = Info {
            key: "permutation", title: "Permutation", what: "everyone sends to one other, by a random permutation",
            bytes: 131_072, ..CONGESTOR
        },
        Tornado AtOnce<Tornado> = Info {
            key: "tornado", title: "Tornado", what: "everyone sends to the one that is just under half of the team further",
            bytes: 131_072, ..CONGESTOR
        },
        Moe experts::Experts = Info {
            key: "moe", title: "MoE Alltoall", what: "all-to-all with skew and back, as a mixture of experts does",
            ..CONGESTOR
        },
        Storage storage::Storage = Info {
            key: "storage", title: "Storage Bursts",
            what: "all clients write a stripe to few servers at once, then pause for three times as long",
            bytes: 65_536, window: 8, ..CONGESTOR
        },
        RingAllreduce RingCollective<RingAllreduce> = Info {
            key: "ring-allreduce", title: "Ring Allreduce", what: "sum a large vector over the team, around a ring",
            bytes: 1 << 20, multiple_of: ring_collective::WORD, ..CONGESTOR
        },
        ReduceScatter RingCollective<ReduceScatter> = Info {
            key: "reduce-scatter", title: "Ring Reduce-Scatter", what: "the first half of ring-allreduce",
            bytes: 1 << 20, multiple_of: ring_collective::WORD, ..CONGESTOR
        },
        Allgather RingCollective<Allgather> = Info {
            key: "allgather", title: "Ring Allgather", what: "the second half of ring-allreduce", bytes: 1 << 20,
            ..CONGESTOR
        },
        Pipeline pipeline::Pipeline = Info {
            key: "pipeline", title: "Pipeline Steps", what: "a window of large messages from stage to stage, and back",
            bytes: 65_536, window: 4, ..CONGESTOR
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_gpcnets() {
        let rows: Vec<String> = Canary::GPCNETS.iter().map(|c| c.info().row(c.info().bytes)).collect();
        assert_eq!(
            rows,
            [
                "RR Two-sided Lat (8 B)",
                "RR Get Lat (8 B)",
                "RR Two-sided BW (131072 B)",
                "RR Put BW (131072 B)",
                "RR Two-sided BW+Sync (131072 B)",
                "Nat Two-sided BW (131072 B)",
                "Multiple Allreduce (8 B)",
                "Multiple Alltoall (4096 B)"
            ]
        );
    }

    #[test]
    fn names_are_keys_and_titles_become_names() {
        let names: Vec<String> = Canary::GPCNETS.iter().map(|c| c.info().name(c.info().bytes)).collect();
        assert_eq!(names[..3], ["lat 8 B", "get-lat 8 B", "bw 128 KiB"]);
        for info in Canary::kernels().map(Canary::info).chain(Congestor::ALL.iter().map(|of| of.info())) {
            assert_eq!(plain_name(info.row(info.bytes)), info.name(info.bytes));
        }
        for text in ["lat 8 B", "Application (8 B)", "RR Two-sided Lat", "RR Two-sided Lat (8 KB)", "all canaries", ""]
        {
            assert_eq!(plain_name(text.to_owned()), text);
        }
    }

    #[test]
    fn large_teams_do_fewer_iterations() {
        let (canary, congestor) = (Canary::AllToAll.info(), Congestor::Incast.info());
        assert_eq!([1, 64, 128, 100_000].map(|n| canary.scaled(64, n)), [64, 64, 32, 1]);
        assert_eq!([32, 64, 1_000_000].map(|n| congestor.scaled(512, n)), [512, 256, 1]);
        assert_eq!(Canary::Lat.info().scaled(200, 1_000_000), 200);
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        let error = "latency".parse::<Canary>().unwrap_err();
        assert!(error.starts_with("unknown canary 'latency': choose from lat, get-lat, "), "{error}");
    }
}
