//! What every rank has some of, added up on rank 0.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tailback_transport::{Bootstrap, Error, Result};

/// The ranks' values `with` each other, on rank 0; nothing on others, and where no rank has one. Collective over the job.
pub(super) fn sum_up<T: Serialize + DeserializeOwned>(
    bootstrap: &mut dyn Bootstrap,
    mine: Option<&T>,
    with: fn(T, T) -> T,
) -> Result<Option<T>> {
    let told = bootstrap.reduce(encode(mine), &mut |mine, theirs| {
        let both = match (decode::<T>(mine)?, decode::<T>(theirs)?) {
            (Some(mine), Some(theirs)) => Some(with(mine, theirs)),
            (one, other) => one.or(other),
        };
        *mine = encode(both.as_ref());
        Ok(())
    })?;
    told.map_or(Ok(None), |told| decode(&told))
}

fn encode<T: Serialize>(value: Option<&T>) -> Vec<u8> {
    serde_json::to_vec(&value).expect("plain data")
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<Option<T>> {
    serde_json::from_slice(bytes).map_err(|error| Error::Protocol {
        operation: "adding up what ranks tell",
        peer: None,
        detail: error.to_string(),
    })
}
