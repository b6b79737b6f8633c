//! The integration tests of this crate, one binary.

#[path = "../../../tilewright-interp/tests/it/build.rs"]
mod build;
mod forms;
mod integers;
mod symbolic;
