//! Layouts in the graph.

mod conversion;
mod stages;
