//! The integration tests of this crate, one binary.

mod build;
mod forms;
mod integers;
mod symbolic;
