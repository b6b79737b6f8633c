//! The integration tests of this crate, one binary.

mod reductions;
mod spatial;
mod windows;
