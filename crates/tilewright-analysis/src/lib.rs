//! What is known of a tensor function; nothing in here changes one for its user.
//!
//! * [`convolution`]: what the axes of a convolution's operands are.
//! * [`cost`]: what computing a value takes and contains.
//! * [`elements`]: whether an operand may be without elements where there is something to compute.
//! * [`equivalence`]: whether two functions are the same up to equal expressions.
//! * [`facts`]: the values that memory holds at a place.
//! * [`footprint`]: the accesses of one buffer, and which cells they touch for certain.
//! * [`lane`]: vectors, one lane at a time.
//! * [`magnitude`]: how large the values of an expression may be.
//! * [`neutral`]: what a value becomes when parts of it are known.
//! * [`reals`]: whether two functions are equal where floats are real numbers.
//! * [`regions`]: the boxes of each buffer that a block reads and writes.
//! * [`mod@stage`]: the canonical form of a tensor function before scheduling, as a view.

pub mod convolution;
pub mod cost;
pub mod elements;
pub mod equivalence;
pub mod facts;
pub mod footprint;
pub mod lane;
pub mod magnitude;
pub mod neutral;
pub mod reals;
pub mod regions;
pub mod stage;

pub use convolution::{ConvAxes, Convolution};
pub use stage::{Extent, Stage, open_stages, stage, stages};
