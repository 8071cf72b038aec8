//! Histograms as text: HdrHistogram's compressed V2 format in base64, which its plotting tools read as it is.
//!
//! What a text says of its length and range is checked before memory is taken for it.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A histogram in HdrHistogram's V2 compressed encoding, base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct EncodedHistogram(pub String);

/// Of both forms: a word that names it and a length.
const COMPRESSED_HEADER: usize = 8;
const PLAIN_HEADER: usize = 40;
const COMPRESSED: u32 = 0x1c84_9304;
const PLAIN: u32 = 0x1c84_9303;

/// As precise as they are written; and longer than any sample, of a day. Such a histogram takes 300 KB.
const MOST_DIGITS: u32 = 3;
const LONGEST_NS: u64 = 1 << 47;
/// A number takes up to 9 bytes, and there are fewer than 64 x 1024 counters.
const LONGEST_PLAIN: usize = PLAIN_HEADER + (9 << 16);
/// No job has more samples.
const MOST_SAMPLES: i64 = 1 << 53;

impl EncodedHistogram {
    /// Encodes.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(histogram, &mut bytes).expect("a Vec takes every byte");
        EncodedHistogram(STANDARD.encode(bytes))
    }

    /// Decodes.
    pub fn decode(&self) -> Result<Histogram<u64>, String> {
        let damaged = |detail: &str| format!("damaged histogram: {detail}");
        let bytes = STANDARD.decode(&self.0).map_err(|error| format!("histogram is no base64: {error}"))?;
        let word = |bytes: &[u8], at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        if word(&bytes, 0) != Some(COMPRESSED) {
            return Err(damaged("its first bytes are another format's"));
        }
        let mut plain = Vec::new();
        let deflated = bytes.get(COMPRESSED_HEADER..).unwrap_or_default();
        // A length that is too short leaves out what belongs to it, and one that is too long lies.
        if word(&bytes, 4) != u32::try_from(deflated.len()).ok() {
            return Err(damaged("its length is not what it says"));
        }
        let inflated = ZlibDecoder::new(deflated).take(LONGEST_PLAIN as u64 + 1).read_to_end(&mut plain);
        inflated.map_err(|error| damaged(&error.to_string()))?;
        if plain.len() > LONGEST_PLAIN {
            return Err(damaged(&format!("it is longer than {LONGEST_PLAIN} bytes")));
        }
        check(&plain).ok_or_else(|| damaged("its header or a count cannot be"))?;
        Deserializer::new().deserialize(&mut plain.as_slice()).map_err(|error| damaged(&error.to_string()))
    }
}

/// Whether what a histogram says of itself is true and within the bounds of a result.
fn check(plain: &[u8]) -> Option<()> {
    let (header, counts) = plain.split_at_checked(PLAIN_HEADER)?;
    let word = |at: usize| u32::from_be_bytes(*header[at..].first_chunk().expect("within the header"));
    let long = |at: usize| u64::from_be_bytes(*header[at..].first_chunk().expect("within the header"));
    let fits = word(0) == PLAIN
        && word(4) as usize == counts.len()
        && word(12) <= MOST_DIGITS
        && long(16) == 1
        && long(24) <= LONGEST_NS;
    let mut samples = 0;
    let mut rest = counts;
    while fits && !rest.is_empty() {
        // Seven bits a byte, the lowest first; the ninth byte has eight. Then the sign is the lowest bit. What is negative
        // is a number of empty counters.
        let length = rest.iter().take(8).take_while(|&&byte| byte & 0x80 != 0).count() + 1;
        let (number, after) = rest.split_at_checked(length)?;
        let bits = |(at, &byte): (usize, &u8)| u64::from(if at < 8 { byte & 0x7f } else { byte }) << (7 * at);
        let zigzag = number.iter().enumerate().map(bits).fold(0, |all, bits| all | bits);
        let count = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        if !(-i64::from(u32::MAX)..=MOST_SAMPLES).contains(&count) {
            return None;
        }
        samples += count.max(0);
        (samples <= MOST_SAMPLES).then_some(())?;
        rest = after;
    }
    fits.then_some(())
}
