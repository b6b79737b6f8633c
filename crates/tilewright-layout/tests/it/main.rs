//! The integration tests of this crate, one binary.

mod apply;
#[path = "../../../tilewright-graph/tests/it/common/mod.rs"]
mod common;
mod conversion;
mod flow;
mod index_map;
mod memory;
mod notation;
mod parts;
mod plan;
mod random;
mod regroup;
mod stages;
mod why;
