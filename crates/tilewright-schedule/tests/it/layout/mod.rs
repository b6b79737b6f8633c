//! Layouts by schedule primitives: what they make of a function, and that it computes the same.

mod common;
mod random;
mod sequential;
mod transform;
