//! Addresses for rank 0 that no other test process uses.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Every process has its own address in 127/8, where no other test's sockets linger, and takes ports below the range of
/// outgoing connections.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, 64 | high, middle, low], NEXT.fetch_add(1, Ordering::Relaxed)));
    TcpListener::bind(address).unwrap_or_else(|e| panic!("{address}: {e}"));
    address
}
