//! The integration tests of this crate, one binary.

mod classical;
mod common;
mod control;
mod digits;
mod fuzz;
mod import;
mod microsoft;
mod narrow;
mod open;
mod refused;
mod size_arithmetic;
mod values;
