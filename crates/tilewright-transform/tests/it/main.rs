//! The integration tests of this crate, one binary.

mod ahead;
mod alignment;
mod facts;
mod inline;
mod lanes;
mod lower;
mod pass;
mod random_programs;
mod reach;
mod repeat_rows;
mod simplify;

/// The allocator of the command: a tenth of what these tests take.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
