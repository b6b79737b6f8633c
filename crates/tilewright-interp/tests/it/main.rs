//! The interpreter on functions that the tests build.

mod arithmetic;
mod at_once;
mod batches;
mod blocks;
mod build;
mod errors;
mod graph;
mod memory;
mod undef;
