//! The integration tests of this crate, one binary.

mod dialects;
mod errors;
mod fuzz;
mod limits;
mod round_trip;
