//! Integer sets and relations: one exact engine for everything about indices.
//!
//! Iteration domains, index maps, what a statement touches, padding, guards and dependences are
//! sets and relations of integers. This crate asks questions about them and gives expressions
//! back:
//!
//! * [`Domain`]: variables with ranges, symbolic sizes and guards; `prove`, `equal`, `disjoint`,
//!   bounds (constant and symbolic), and [`Proof`]s with a witness.
//! * [`simplify`]: the simplest equal index or condition under a domain.
//! * [`Relation`]: index maps; injectivity with the points that collide, physical shape, padding,
//!   inverse, composition.
//! * [`bits`]: maps that are linear in binary digits, with their inverses.
//! * [`Set`]: sets by themselves, and back to conditions.
//! * [`AccessRelation`]: touched cells with their condition, and independence of two accesses.
//! * [`Flow`]: which write gives a read its value; reads of unwritten cells.
//!
//! One way through, for a guard that a layout has brought (`i -> [i // 4, i % 4]`, 14 elements):
//!
//! ```
//! use tilewright_ir::Var;
//! use tilewright_polyhedral::{AccessRelation, Engine};
//! let engine = Engine::new();
//! let (io, ii) = (Var::index("io"), Var::index("ii"));
//! let loops = engine.box_of(&[(io.clone(), 4), (ii.clone(), 4)]);
//! let guarded = loops.with_guard(&(&io * 4 + &ii).less(14));
//! // Under the guard the flat index stays in range, and the guard does not follow from the loops.
//! assert!(guarded.prove(&(&io * 4 + &ii).less_equal(13)).is_yes());
//! assert_eq!(loops.prove(&(&io * 4 + &ii).less(14)).to_string(), "no, at io=3, ii=2");
//! // What a store under it touches, and what it leaves out.
//! let cells = [Var::index("a"), Var::index("b")];
//! let touched = AccessRelation::new(&guarded, &[io.expr(), ii.expr()]).touched(&cells)?;
//! let all = engine.box_of(&[(cells[0].clone(), 4), (cells[1].clone(), 4)]);
//! assert_eq!(touched.condition(&all)?.to_string(), "a < 3 or b < 2");
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! Sets and relations are those of the crate `presburger`, charged to the question that is asked
//! (`charged`). Nothing of it shows in the interface.
//!
//! Every answer is exact or [`Unknown`] with its [`Reason`]; work is bounded by a quota for each
//! question, and by a [`budget`] for all questions of a pass.
//!
//! **Architecture invariant:** no other crate keeps rewrite rules for indices or makes sets of its
//! own.

mod access;
mod answer;
pub mod at_once;
pub mod bits;
mod bitwise;
mod bounds;
pub mod budget;
mod charged;
pub mod dependence;
mod domain;
mod engine;
mod equality;
mod eval;
pub mod flow;
mod form;
mod inverse;
mod last_writers;
mod memory;
mod normalizer;
mod outline;
pub mod overflow;
pub mod place;
pub mod points;
mod product;
mod quick;
mod radix;
mod relation;
mod render;
pub mod scop;
pub mod scope;
mod set;
pub mod simplify;
pub mod sizes;
mod space;
mod unknowns;
mod witness;

pub use access::AccessRelation;
pub use answer::{Known, Proof, Reason, Unknown, Witness};
pub use bounds::Bounds;
pub use domain::Domain;
pub use engine::{DEFAULT_QUOTA, Engine, Questions};
pub use eval::evaluate;
pub use last_writers::{
    Access, AccessId, Edge, Flow, ScheduleDim, Statement, Uninitialised, is_before,
};
pub use relation::{Collision, Image, Relation};
pub use render::cost;
pub use set::Set;
