//! Whatever a connection carries: headers that are what their bytes say, or the connection's end.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../backends/tcp/src/header.rs"]
mod header;

use header::{HEADER, Header, MAX_LENGTH, Message};

fuzz_target!(|bytes: &[u8]| {
    let mut left = bytes;
    while let Some((head, rest)) = left.split_first_chunk::<HEADER>() {
        let Ok(header) = Header::decode(head) else { return };
        assert_eq!(header.encode(), *head, "{header:?}");
        assert!(header.length <= MAX_LENGTH && header.payload() as u64 <= header.length, "{header:?}");
        if let Message::Put { offset } | Message::Get { offset } = header.message {
            assert!(offset.checked_add(header.length).is_some(), "{header:?} wraps around");
        }
        left = rest.get(header.payload()..).unwrap_or_default();
    }
});
