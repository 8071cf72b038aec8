//! Histograms as text: HdrHistogram's compressed V2 format in base64, which its plotting tools read as it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A histogram in HdrHistogram's V2 compressed encoding, base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct EncodedHistogram(pub String);

impl EncodedHistogram {
    /// Encodes.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(histogram, &mut bytes).expect("a Vec takes every byte");
        EncodedHistogram(STANDARD.encode(bytes))
    }

    /// Decodes.
    pub fn decode(&self) -> Result<Histogram<u64>, String> {
        let bytes = STANDARD.decode(&self.0).map_err(|error| format!("histogram is no base64: {error}"))?;
        Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| format!("damaged histogram: {error}"))
    }
}
