//! The integration tests of this crate, one binary.

mod alignment;
mod facts;
mod inline;
mod lower;
mod pass;
mod random_programs;
mod reach;
mod simplify;
