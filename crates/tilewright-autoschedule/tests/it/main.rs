//! The integration tests of this crate, one binary.

mod open;
mod reductions;
mod spatial;
mod windows;
