//! Layouts in the graph.

mod conversion;
mod flow;
mod random;
mod stages;
mod why;
