//! Integer sets and relations: one exact engine for everything about indices.
//!
//! Iteration domains, index maps, what a statement touches, padding, guards and dependences are
//! sets and relations of integers. This crate asks questions about them and gives expressions
//! back:
//!
//! * [`Domain`]: variables with ranges, symbolic sizes and guards; `prove`, `equal`, `disjoint`,
//!   `bounds`, and [`Proof`]s with a witness.
//! * [`simplify`]: the simplest equal index or condition under a domain.
//!
//! The engine is isl, the library of GCC and LLVM's Polly (Verdoolaege 2010, "isl: An Integer Set
//! Library for the Polyhedral Model"), loaded at run time; [`Engine::new`] says how to get it where
//! it is missing. Nothing of it shows in the interface.
//!
//! Every answer is exact or [`Unknown`] with its [`Reason`]; work is bounded by a quota.
//!
//! **Architecture invariant:** no other crate keeps rewrite rules for indices or talks to isl.

mod answer;
mod domain;
mod engine;
mod eval;
mod form;
mod frame;
mod isl;
mod render;
pub mod simplify;

pub use answer::{Known, Proof, Reason, Unknown, Witness};
pub use domain::Domain;
pub use engine::{DEFAULT_QUOTA, Engine};
pub use eval::evaluate;
pub use isl::find::OVERRIDE;
pub use render::cost;
