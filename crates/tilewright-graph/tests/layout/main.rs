//! Layouts in the graph.

#[path = "../common/mod.rs"]
mod common;
mod conversion;
mod flow;
mod random;
mod stages;
mod why;
