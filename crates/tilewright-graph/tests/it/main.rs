//! The integration tests of this crate, one binary.

mod common;
mod fuse;
mod normal;
mod resize;
mod semantics;
mod text;
