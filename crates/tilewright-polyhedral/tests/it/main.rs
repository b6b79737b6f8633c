//! The integration tests of this crate, one binary.

mod access;
mod bits;
mod common;
mod domain;
mod flow;
mod parts;
mod products;
mod relation;
mod wrapping;
