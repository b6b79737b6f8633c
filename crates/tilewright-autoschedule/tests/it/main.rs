//! The integration tests of this crate, one binary.

mod axes;
mod empty;
mod open;
mod plain;
mod products;
mod reductions;
mod spatial;
mod windows;

/// The allocator of the command: a tenth of what these tests take.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
