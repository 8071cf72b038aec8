//! Values of ranks as JSON: told by rank 0, and added up or gathered there.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tailback_transport::{Bootstrap, Error, Result};

/// Rank 0's value, on every rank; what others have is ignored. Collective over the job.
pub(super) fn tell<T: Serialize + DeserializeOwned>(bootstrap: &mut dyn Bootstrap, mine: Option<&T>) -> Result<T> {
    let told = bootstrap.broadcast(mine.map(encode).unwrap_or_default())?;
    decode(&told)
}

/// The ranks' values `with` each other, on rank 0; nothing on others, and where no rank has one. Collective over the job.
pub(super) fn reduce_json<T: Serialize + DeserializeOwned>(
    bootstrap: &mut dyn Bootstrap,
    mine: Option<&T>,
    with: fn(T, T) -> T,
) -> Result<Option<T>> {
    let told = bootstrap.reduce(encode(&mine), &mut |mine, theirs| {
        let both = match (decode::<Option<T>>(mine)?, decode::<Option<T>>(theirs)?) {
            (Some(mine), Some(theirs)) => Some(with(mine, theirs)),
            (one, other) => one.or(other),
        };
        *mine = encode(&both);
        Ok(())
    })?;
    told.map_or(Ok(None), |told| decode(&told))
}

/// All ranks' values, on rank 0, in no order; nothing on others. Collective over the job.
pub(super) fn gather<T: Serialize + DeserializeOwned>(bootstrap: &mut dyn Bootstrap, mine: &[T]) -> Result<Vec<T>> {
    // A value is a line: lines need not be read on the way.
    let lines = mine.iter().flat_map(|value| [encode(value), b"\n".to_vec()].concat()).collect();
    let told = bootstrap.reduce(lines, &mut |mine, theirs| {
        mine.extend(theirs);
        Ok(())
    })?;
    let told = told.unwrap_or_default();
    told.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(decode).collect()
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data")
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::Protocol {
        operation: "reading what ranks tell",
        peer: None,
        detail: error.to_string(),
    })
}
