//! The traffic class of packets, as users write it for networks that carry it as a byte.

/// The byte that packets carry: given as such, or as its upper six bits (`dscp:26`).
///
/// # Errors
/// What is neither, with what would be.
pub fn traffic_class(text: &str) -> Result<u8, String> {
    let bits = match text.strip_prefix("dscp:") {
        Some(number) => number.parse().ok().filter(|&dscp: &u8| dscp < 64).map(|dscp| dscp << 2),
        None => text.parse().ok(),
    };
    bits.ok_or_else(|| format!("traffic class {text}: write dscp:0 to dscp:63, or the whole byte, 0 to 255"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_classes_are_bytes_or_code_points() {
        assert_eq!(traffic_class("106"), Ok(106));
        assert_eq!(traffic_class("dscp:26"), Ok(104));
        for wrong in ["dscp:64", "256", "-1", "bulk-data", ""] {
            assert!(traffic_class(wrong).is_err(), "{wrong}");
        }
    }
}
