//! Bytes of the bootstrap's messages: little-endian numbers, strings and byte strings with a 32-bit length in front.
//!
//! Decoding never trusts a length: it is checked against what is left before anything is taken.

use std::net::SocketAddr;

use tailback_transport::{Error, Result};

#[derive(Debug, Default)]
pub(crate) struct Encoder(pub(crate) Vec<u8>);

impl Encoder {
    pub(crate) fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Bytes whose number both sides know.
    pub(crate) fn raw(mut self, value: &[u8]) -> Self {
        self.0.extend_from_slice(value);
        self
    }

    pub(crate) fn text(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    pub(crate) fn bytes(self, value: &[u8]) -> Self {
        self.u32(u32::try_from(value.len()).expect("messages are far below 4 GiB")).raw(value)
    }

    pub(crate) fn optional(self, value: Option<&str>) -> Self {
        match value {
            None => self.u8(0),
            Some(text) => self.u8(1).text(text),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Decoder(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count).ok_or_else(|| malformed("a message ends too early"))?;
        self.0 = tail;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("took N bytes"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| malformed("a text is not UTF-8"))
    }

    pub(crate) fn optional(&mut self) -> Result<Option<String>> {
        match self.u8()? {
            0 => Ok(None),
            1 => self.text().map(Some),
            _ => Err(malformed("an optional text is neither there nor absent")),
        }
    }

    pub(crate) fn optional_address(&mut self) -> Result<Option<SocketAddr>> {
        let text = self.optional()?;
        text.map(|t| t.parse().map_err(|_| malformed("an address does not parse"))).transpose()
    }
}

/// What a peer that proved the secret sent makes no sense.
pub(crate) fn malformed(detail: &str) -> Error {
    Error::Protocol { operation: "bootstrap", peer: None, detail: detail.to_owned() }
}
