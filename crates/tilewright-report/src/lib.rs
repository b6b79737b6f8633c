//! Plans of layouts for people and for tools: [`page()`], [`drawings`], and as JSON ([`object`]).
//!
//! The command line and the Python package show plans through this crate. The graph is placed by
//! `layers` and drawn as SVG by `graph`; `part` is what is drawn of it, `cells` shows corners of
//! tensors as tables, `memory` where values lie, `steps` how the loops of a call are made, `about`
//! what a plan is for, `why` what wins in a call; `layout` is the page of one layout. [`Times`] is
//! what a [`Profile`] of a run says of a plan.

mod about;
mod cells;
mod function;
mod graph;
mod json;
mod layers;
mod layout;
mod memory;
mod page;
mod steps;
mod times;
mod why;
mod writing;

pub use about::{About, about, source};
pub use cells::tables;
pub use function::Report;
pub use json::{WhatIf, add_ports, add_prices, list, object, what_if};
pub use layout::{Cells, layout_page};
pub use page::{drawings, page};
pub use times::{Kernel, Profile, TimedCall, Times, add_times};
pub use writing::time;
