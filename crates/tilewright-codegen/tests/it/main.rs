//! The integration tests of this crate, one binary.

mod common;
mod device_text;
mod errors;
mod families;
mod library;
mod loops;
mod math;
mod memory;
mod operators;
mod parallel;
