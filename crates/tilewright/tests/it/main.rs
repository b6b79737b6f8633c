//! The integration tests of this crate, one binary.

mod library;
mod operators;
mod padding;
mod schedules;
mod te;
mod time;
