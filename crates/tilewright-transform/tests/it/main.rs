//! The integration tests of this crate, one binary.

mod lower;
mod random_programs;
mod simplify;
