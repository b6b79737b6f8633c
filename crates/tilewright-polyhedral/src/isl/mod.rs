//! The engine's objects: isl's, found and loaded at run time, or those of `presburger` where this
//! crate is built with the feature of that name.
//!
//! Both have the same methods with the same meanings (`object` names them all). Nothing of either
//! shows outside this crate.

#[cfg(not(feature = "presburger"))]
pub(crate) mod api;
#[cfg(feature = "presburger")]
#[path = "own_api.rs"]
pub(crate) mod api;
#[cfg_attr(feature = "presburger", allow(dead_code))]
pub(crate) mod find;
#[cfg(not(feature = "presburger"))]
pub(crate) mod object;
#[cfg(feature = "presburger")]
pub(crate) mod ours;

#[cfg(not(feature = "presburger"))]
pub(crate) use object::*;
#[cfg(feature = "presburger")]
pub(crate) use ours::*;
