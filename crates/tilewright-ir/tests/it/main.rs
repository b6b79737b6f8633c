//! The integration tests of this crate, one binary.

mod condition;
mod data;
mod demand;
mod dim;
mod dtype;
mod effects;
mod equal;
mod error;
mod extent;
mod index;
mod intrinsic;
mod list;
mod lowered;
mod operators;
mod query;
mod random;
mod scalar;
mod show;
mod subst;
mod suggest;
mod tensor;
mod text;
mod update;
mod well_formed;
