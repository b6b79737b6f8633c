//! Layouts in the graph.

mod conversion;
mod random;
mod stages;
mod why;
