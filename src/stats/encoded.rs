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
const COMPRESSED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;

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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    /// What a text says of itself: word 1 the length, word 3 the digits, then lowest and highest value.
    fn header(length: u32, digits: u32, low: u64, high: u64) -> Vec<u8> {
        let words = [PLAIN, length, 0, digits].map(u32::to_be_bytes).concat();
        [words, [low, high, 1f64.to_bits()].map(u64::to_be_bytes).concat()].concat()
    }

    fn encoded(plain: &[u8]) -> EncodedHistogram {
        let mut deflated = ZlibEncoder::new(Vec::new(), Compression::best());
        deflated.write_all(plain).unwrap();
        let deflated = deflated.finish().unwrap();
        let length = deflated.len() as u32;
        EncodedHistogram(STANDARD.encode([&COMPRESSED.to_be_bytes(), &length.to_be_bytes(), &deflated[..]].concat()))
    }

    fn refusal(plain: &[u8]) -> String {
        let said = encoded(plain).decode().unwrap_err();
        assert!(said.starts_with("damaged histogram: "), "{said}");
        said
    }

    #[test]
    fn what_is_encoded_comes_back() {
        for high in [2, 60_000_000_000, 120_000_000_000] {
            let mut histogram = Histogram::new_with_bounds(1, high, 3).unwrap();
            (1..=high).step_by(high as usize / 2).for_each(|ns| histogram.record_n(ns, 1 << 40).unwrap());
            assert_eq!(EncodedHistogram::of(&histogram).decode().unwrap(), histogram);
        }
        assert!(encoded(&header(0, 3, 1, 1000)).decode().unwrap().is_empty());
    }

    #[test]
    fn a_header_takes_no_memory_that_its_text_does_not() {
        // Each took between 50 MB and 4 GiB by what the header says.
        for (length, digits, low, high) in [
            (0x6000_0000, 3, 1, 1000),
            (u32::MAX, 3, 1, 1000),
            (0, 5, 1, u64::MAX / 2),
            (0, 4, 1, 1000),
            (0, 3, 1, u64::MAX),
            (0, 3, 0, 1000),
            (0, 3, 1 << 62, u64::MAX),
            (1, 3, 1, 1000),
        ] {
            let said = refusal(&header(length, digits, low, high));
            assert!(said.ends_with("its header or a count cannot be"), "{said}");
        }
    }

    #[test]
    fn text_that_inflates_without_end_is_refused() {
        let said = refusal(&vec![0; 4 << 20]);
        assert!(said.ends_with("it is longer than 589864 bytes"), "{said}");
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        let with = |counts: &[u8]| [header(counts.len() as u32, 3, 1, 1000), counts.to_vec()].concat();
        let two = [&[0xff; 9][..], &[0x04; 9]].concat();
        // The smallest number there is, a cut one, and 2^61 samples.
        for counts in [&[0xff; 9][..], &two, &[0x80; 3], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40]] {
            assert!(refusal(&with(counts)).ends_with("its header or a count cannot be"));
        }
        assert!(refusal(&with(&[0x02; 3000])).contains("longer than it should be"));
        assert_eq!(encoded(&with(&[0x02, 0x03, 0x06])).decode().unwrap().len(), 4);
    }

    #[test]
    fn as_many_samples_as_a_job_can_have_are_accepted_and_no_more() {
        let accepted = |counts: &[(u64, u64)]| {
            let mut histogram = Histogram::new_with_bounds(1, 1000, 3).unwrap();
            counts.iter().for_each(|&(ns, samples)| histogram.record_n(ns, samples).unwrap());
            EncodedHistogram::of(&histogram).decode().is_ok_and(|of| of == histogram)
        };
        // 2^53, in one count or in two.
        assert!(accepted(&[(1, 1 << 53)]) && !accepted(&[(1, (1 << 53) + 1)]));
        assert!(accepted(&[(1, 1 << 52), (500, 1 << 52)]) && !accepted(&[(1, 1 << 52), (500, (1 << 52) + 1)]));
    }

    #[test]
    fn other_formats_and_lengths_are_refused() {
        let whole = encoded(&header(0, 3, 1, 1000)).0;
        let bytes = STANDARD.decode(whole).unwrap();
        for bytes in [&bytes[..3], &bytes[..7], &bytes[..20], &header(u32::MAX, 3, 1, 1000)] {
            let said = EncodedHistogram(STANDARD.encode(bytes)).decode().unwrap_err();
            assert!(said.starts_with("damaged histogram"), "{said}");
        }
    }
}
