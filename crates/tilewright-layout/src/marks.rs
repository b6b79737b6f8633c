//! Marks that schedules leave for layouts in the graph.

/// Annotation of the block of a stage that converts an argument to another layout: it can leave the
/// function.
pub const PRE: &str = "preproc";

/// Annotation of the block of a stage that converts a result.
pub const POST: &str = "postproc";

/// Attribute of a function: the numbers of the parameters that are the same in every run, so that
/// they may be stored in any layout.
pub const FREE_LAYOUT: &str = "layout_free_buffers";
