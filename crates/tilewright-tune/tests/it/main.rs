//! Measurements from outside: what they are kept under, the file, and the processes that make them.

mod key;
#[cfg(feature = "sqlite")]
mod store;
mod worker;
