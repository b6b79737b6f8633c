//! The integration tests of this crate, one binary.

mod by_flow;
mod elements;
mod facts;
mod footprint;
mod magnitude;
mod neutral;
mod reals;
mod regions;
mod stage;
