//! The integration tests of this crate, one binary.

mod axes;
mod open;
mod reductions;
mod spatial;
mod windows;
