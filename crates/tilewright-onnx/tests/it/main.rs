//! The integration tests of this crate, one binary.

mod classical;
mod common;
mod control;
mod digits;
mod fuzz;
mod images;
mod import;
mod microsoft;
mod narrow;
mod open;
mod quantized;
mod refused;
mod size_arithmetic;
mod values;
