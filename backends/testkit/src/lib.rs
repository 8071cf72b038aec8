//! For tests: the [`conformance`] suite that defines what a backend is, and [`loopback`], a job of threads in one process.
//!
//! A backend is what passes the suite; a kernel that runs on the loopback runs on every backend. `examples/kernel.rs` is one of one's own:
//!
//! ```
//! use tailback_engine::Collective;
//! use tailback_testkit::loopback;
//! use tailback_transport::{Bootstrap as _, Group as _, Transport as _};
//!
//! let ranks = loopback::run(3, |bootstrap, transport| {
//!     let mut group = Collective::new(transport).group(&bootstrap.everyone(), 64)?;
//!     group.barrier()?;
//!     Ok::<_, tailback_transport::Error>(group.rank().0)
//! });
//! assert_eq!(ranks.unwrap(), [0, 1, 2]);
//! ```

#![forbid(unsafe_code)]

pub mod conformance;
pub mod loopback;
