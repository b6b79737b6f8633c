//! isl, the integer set library: found and loaded at run time, behind owning wrappers.
//!
//! Nothing of isl shows outside this crate.

pub(crate) mod api;
pub(crate) mod find;
pub(crate) mod object;

pub(crate) use object::*;
