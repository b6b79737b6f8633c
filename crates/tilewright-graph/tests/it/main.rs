//! The integration tests of this crate, one binary.

mod common;
mod fuse;
mod layout;
mod memory;
mod normal;
mod parts;
mod resize;
mod semantics;
mod text;
