//! Sets and relations of integers that linear constraints describe, exactly.
//!
//! A [`Relation`] is a union of conjunctions of equalities and inequalities over parameters, inputs,
//! outputs and integer divisions; a [`Set`] is one without inputs. What Presburger arithmetic can say
//! is closed under all operations here: intersection, union, difference, complement, projection,
//! composition, images, least elements. [`PwAff`] is a quasi-affine function that is given piece by
//! piece. Every answer is exact, or a [`Stop`] that says why there is none.
//!
//! ```
//! use presburger::{Budget, Relation};
//! let budget = Budget::new(1_000_000);
//! let loops = Relation::parse("{ [i, j] : 0 <= i < 4 and 0 <= j < 4 and 4i + j < 14 }")?;
//! let flat = Relation::parse("{ [i, j] -> [4i + j] }")?;
//! let touched = loops.apply(&flat, &budget)?;
//! assert!(touched.is_equal(&Relation::parse("{ [c] : 0 <= c <= 13 }")?, &budget)?);
//! assert!(flat.intersect_domain(&loops, &budget)?.is_injective(&budget)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! * Rows of coefficients lie flat in one allocation (`matrix`); values are immutable and shared by
//!   reference counts, without any global state, so that threads may share them.
//! * A conjunction is brought into its shortest form by what is seen at once (`basic`): equalities
//!   with a coefficient 1, common divisors, opposite inequalities, definitions of divisions.
//! * Emptiness (`system`) is decided by propagating bounds and trying a corner of what is left; only
//!   then by the simplex (`tableau`), branches, and a reduced lattice basis (`lattice`), which makes it
//!   complete for unbounded and for thin sets.
//! * Projection keeps what is not cheap to eliminate as an integer that *exists*; it is eliminated
//!   for good (`eliminate`) where a set has to be negated.
//! * Least elements as functions of parameters, inverses and the elimination of what is not cheap to
//!   eliminate are parametric integer programs (`parametric`).
//! * Numbers have 128 bits and take the time of 64 where that is enough; the tableau goes on in big
//!   integers. A coefficient of a *result* beyond 128 bits is [`Stop::TooLarge`].
//! * Every operation is charged to a [`Budget`], so that the same question ends at the same place on
//!   every machine.

mod aff;
mod basic;
mod branch;
mod coalesce;
mod corner;
mod eliminate;
mod ends;
mod flow;
mod gist;
mod hull;
mod lattice;
mod matrix;
mod num;
mod optimum;
mod parametric;
mod parse;
mod relation;
mod subtract;
mod system;
mod tableau;
mod text;

pub use aff::{Aff, PwAff};
pub use flow::{Flow, Source, last_writers};
pub use num::{Budget, Int, Res, Stop};
pub use parse::ParseError;
pub use relation::{Dim, Relation, Set, Space};
