//! The integration tests of this crate, one binary.

mod backend;
mod control;
mod device;
mod dots;
mod faults;
mod in_place;
mod kept;
mod kernels;
mod library;
mod operators;
mod padding;
mod quantized;
mod schedules;
mod shared;
mod sharing;
mod textures;
mod threads;
mod time;
mod traces;
mod tuning;
mod winograd;

/// The allocator of the command: a tenth of what these tests take.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
