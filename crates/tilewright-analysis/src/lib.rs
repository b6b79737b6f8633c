//! What is known of a tensor function; nothing in here changes one for its user.
//!
//! * [`affine`]: accesses as affine functions of iteration variables.
//! * [`at_once`]: whether the iterations of a loop may run at once.
//! * [`cost`]: what computing a value takes and contains.
//! * [`dependence`]: which cells are touched, and whether iterations may run in another order.
//! * [`domain`]: what is known of a function's sizes.
//! * [`equivalence`]: whether two functions are the same up to equal expressions.
//! * [`facts`]: the values that memory holds at a place.
//! * [`flow`]: which write gives a statement the value that it reads.
//! * [`footprint`]: the accesses of one buffer, and which cells they touch for certain.
//! * [`index`]: index arithmetic simplified by intervals.
//! * [`lane`]: vectors, one lane at a time.
//! * [`magnitude`]: how large the values of an expression may be.
//! * [`neutral`]: what a value becomes when parts of it are known.
//! * [`place`]: walks that know the loops, conditions and bindings around each place.
//! * [`scop`]: a function as a static control part: statements with domains, schedules and
//!   accesses.
//! * [`points`]: the points at which a place is reached, as a domain that is built on first use.
//! * [`regions`]: the boxes of each buffer that a block reads and writes.
//! * [`scope`]: what holds at a place, from loops, guards, bindings and assumptions.
//! * [`mod@stage`]: the canonical form of a tensor function before scheduling, as a view.
//! * [`traits`]: what matters about an expression before it is given to the sets.

pub mod affine;
pub mod at_once;
pub mod cost;
pub mod dependence;
pub mod domain;
pub mod equivalence;
pub mod facts;
pub mod flow;
pub mod footprint;
pub mod index;
pub mod lane;
pub mod magnitude;
pub mod neutral;
pub mod place;
pub mod points;
pub mod regions;
pub mod scop;
pub mod scope;
pub mod stage;
pub mod traits;

pub use stage::{Extent, Stage, open_stages, stage, stages};
