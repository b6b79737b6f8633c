//! The integration tests of this crate, one binary.

mod call_sizes;
mod common;
mod functions;
mod fuse;
mod normal;
mod resize;
mod semantics;
mod sizes;
mod text;
mod winograd;
