//! isl, the integer set library: found and loaded at run time, behind owning wrappers.
//!
//! Nothing of isl shows outside this crate.

#[cfg(not(feature = "presburger"))]
pub(crate) mod api;
#[cfg(feature = "presburger")]
#[path = "own_api.rs"]
pub(crate) mod api;
pub(crate) mod find;
#[cfg(not(feature = "presburger"))]
pub(crate) mod object;
#[cfg(feature = "presburger")]
pub(crate) mod ours;

#[cfg(not(feature = "presburger"))]
pub(crate) use object::*;
#[cfg(feature = "presburger")]
pub(crate) use ours::*;
