//! The integration tests of this crate, one binary.

mod access;
mod at_once;
mod bits;
mod budget;
mod common;
mod domain;
mod flow;
mod memory;
mod parts;
mod products;
mod quick;
mod relation;
mod render;
mod scop;
mod wrapping;
