//! How much of the machine the data filled, and whether that is enough for HPCC's rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The paper wants data that fills almost all memory, and a table of RandomAccess in half of it. Such a table is the largest
/// power of two, so a quarter is the least that its rule gives; what needs less is too small.
const LEAST_MEMORY: f64 = 0.25;
/// STREAM's rule: each vector is at least four times all caches that are used.
const LEAST_CACHES: f64 = 4.0;

/// How much of the machine the data filled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DataSize {
    /// HPL's matrix, as a part of the memory of all hosts; null where that is not known.
    pub matrix_of_memory: Option<f64>,
    /// One of STREAM's vectors on all ranks of a host, in multiples of the host's largest caches: the least of all hosts;
    /// null where they are not known.
    pub vector_of_caches: Option<f64>,
}

impl DataSize {
    pub(super) fn is_in_caches(&self) -> bool {
        self.vector_of_caches.is_some_and(|multiple| multiple < LEAST_CACHES)
    }

    /// Which rules of HPCC the sizes do not meet, in words.
    pub(super) fn too_small(&self) -> Vec<String> {
        let of_memory = self.matrix_of_memory.filter(|part| *part < LEAST_MEMORY).map(|part| {
            format!(
                "HPL's matrix takes {:.2}% of the memory, and HPC Challenge's data fills it: from {:.0}% on figures may be \
                 published (--memory {:.0}%)",
                100.0 * part,
                100.0 * LEAST_MEMORY,
                100.0 * LEAST_MEMORY
            )
        });
        let in_caches = self.vector_of_caches.filter(|_| self.is_in_caches()).map(|multiple| {
            format!("STREAM's vectors are {multiple:.1} times the caches, and its rule is {LEAST_CACHES:.0} times")
        });
        of_memory.into_iter().chain(in_caches).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_small_is_said_by_its_rule() {
        let of = |memory, caches| DataSize { matrix_of_memory: Some(memory), vector_of_caches: Some(caches) };
        assert!(of(0.25, 4.0).too_small().is_empty() && !of(0.25, 4.0).is_in_caches());
        let said = of(0.0125, 0.5).too_small();
        assert!(said[0].contains("takes 1.25% of the memory") && said[1].contains("0.5 times the caches"), "{said:?}");
        let unknown = DataSize { matrix_of_memory: None, vector_of_caches: None };
        assert!(unknown.too_small().is_empty() && !unknown.is_in_caches());
    }
}
