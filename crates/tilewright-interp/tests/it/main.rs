//! The interpreter on functions that the tests build.

mod arithmetic;
mod at_once;
mod batches;
mod blocks;
mod build;
mod errors;
mod forms;
mod graph;
mod integers;
mod memory;
mod symbolic;
mod undef;
