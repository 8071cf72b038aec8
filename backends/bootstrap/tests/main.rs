//! The tests with ranks as threads, linked once. Those with ranks as processes (`processes`) have a program of their own,
//! which starts itself as ranks.

mod address;
mod threads;
