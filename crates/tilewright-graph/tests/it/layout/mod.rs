//! Layouts in the graph.

mod conversion;
mod flow;
mod plan;
mod random;
mod stages;
mod why;
