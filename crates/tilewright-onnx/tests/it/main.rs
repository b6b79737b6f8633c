//! The integration tests of this crate, one binary.

mod common;
mod control;
mod digits;
mod fuzz;
mod import;
mod open;
mod refused;
