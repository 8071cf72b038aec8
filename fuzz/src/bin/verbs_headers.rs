//! Whatever a queue pair or a datagram carries: headers, greetings and addresses that are what their bytes say, or nothing.
//! The module alone: the crate around it needs libibverbs' headers.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "only what reads is fuzzed")]
#[path = "../../../backends/verbs/src/header.rs"]
mod header;

use header::{ADDRESS, Address, HEADER, HELLO, Header, Hello, LONG_HEADER, Message, POSITIONS};

fuzz_target!(|bytes: &[u8]| {
    // As from a buffer: what did not arrive is what was there before.
    let mut head = [0; LONG_HEADER];
    let there = bytes.len().min(LONG_HEADER);
    head[..there].copy_from_slice(&bytes[..there]);
    if let Some((header, taken)) = Header::decode(&head, bytes.len()) {
        assert!(taken == HEADER || taken == LONG_HEADER, "{header:?}");
        assert!(taken <= bytes.len() && (header.from as usize) < POSITIONS, "{header:?}");
        // Only what a message says of its own length may be more than arrived.
        let whole = header.length <= (bytes.len() - taken) as u64;
        assert!(whole || matches!(header.message, Message::Send { .. }), "{header:?}");
        // In the same form again; nobody sends what does not fit into memory.
        if header.length < 1 << 48 {
            let (again, _) = header.encode(if taken == HEADER { usize::MAX } else { 0 });
            assert_eq!(Header::decode(&again, bytes.len()), Some((header, taken)));
        }
    }
    if let Some(hello) = bytes.first_chunk::<HELLO>().and_then(Hello::decode) {
        assert_eq!(Hello::decode(&hello.encode()), Some(hello));
    }
    if let Some(address) = Address::decode(bytes) {
        assert!(address.buffer as usize > LONG_HEADER && address.credits > 0 && bytes.len() >= ADDRESS);
        assert_eq!(Address::decode(&address.encode()), Some(address));
    }
});
