//! What every rank of a job knows and nobody else does.
//!
//! Whoever connects to a rank of the job proves it ([`crate::handshake`]); greetings over verbs are sealed with
//! it. libfabric's endpoints have no connections that could be proven: docs/security.md says what that means. The
//! secret itself never travels.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tailback_transport::{Error, Result};

/// What every rank of a job knows and nobody else does.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A new secret from the system's random numbers.
    pub fn random() -> Result<Self> {
        random_bytes().map(Secret)
    }

    /// Reads 64 hexadecimal digits; white space around them is allowed. Errors do not repeat the text.
    pub fn from_hex(text: &str) -> Result<Self> {
        let digits = text.trim().as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(Error::Setup(format!("a job secret has 64 hexadecimal digits, this one has {}", digits.len())));
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |c: u8| char::from(c).to_digit(16);
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                return Err(Error::Setup("a job secret has only hexadecimal digits (0-9, a-f)".into()));
            };
            *byte = (high << 4 | low) as u8;
        }
        Ok(Secret(bytes))
    }

    /// A secret that is known by other means, such as a test's.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Secret(bytes)
    }

    /// HMAC-SHA256 of `parts`, one after the other: shows that its maker knows the secret. The first part says what it is
    /// for and each has a fixed length, so that no two uses have the same bytes.
    #[must_use]
    pub fn seal(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.mac(parts).finalize().into_bytes().into()
    }

    /// Whether `seal` is that of `parts`. Takes the same time wherever the first wrong byte is.
    #[must_use]
    pub fn verify(&self, parts: &[&[u8]], seal: &[u8]) -> bool {
        self.mac(parts).verify_slice(seal).is_ok()
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        parts.iter().for_each(|part| mac.update(part));
        mac
    }

    /// The secret as 64 hexadecimal digits. Goes into an environment or a private file, never on a command line.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

pub(crate) fn random_bytes() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| Error::Setup(format!("the system gave no random numbers: {e}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trip_and_refusals() {
        let secret = Secret::random().unwrap();
        assert_eq!(Secret::from_hex(&format!(" {}\n", secret.to_hex().to_uppercase())).unwrap(), secret);
        assert!(Secret::from_hex("abc").unwrap_err().to_string().contains("64 hexadecimal digits, this one has 3"));
        assert!(Secret::from_hex(&"+f".repeat(32)).unwrap_err().to_string().contains("only hexadecimal"));
        assert_ne!(secret, Secret::random().unwrap());
        assert_eq!(format!("{secret:?}"), "Secret(hidden)");
    }
}
