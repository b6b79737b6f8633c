//! The integration tests of this crate, one binary.

mod by_flow;
mod facts;
mod reals;
