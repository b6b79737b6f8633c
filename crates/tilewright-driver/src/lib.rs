//! From a file to a running program: what the command line, the Python package and the facade call.
//!
//! * [`mod@load`], [`model`]: files to modules, and the sizes that they leave open.
//! * [`session`]: the one way from a model to something that runs, by [`options`].
//! * [`pipeline`], [`program`]: modules to native code, stage by stage.
//! * [`assume`]: what functions assume, used before they are compiled.
//! * [`passes`]: every pass by its name.
//! * [`schedule_script`]: schedules written as scripts.
//! * [`layout`]: how the tensors of a whole model lie in memory.
//! * [`timings`], [`tune`], [`measuring`]: what that costs, by estimates and by measurements.
//! * [`calibrate`], [`calibrated`]: the constants of the cost model, fitted to this machine, and kept.
//! * [`winograd`]: convolutions by fewer products, within an error.
//! * [`pricing`]: what a change of a model's sizes would save.
//! * [`library`]: shared libraries with a C interface.
//! * [`saved`], [`kept`]: compiled modules as files, which start without a compiler, and those of the cache.
//! * [`compare`], [`random`], [`verify`]: comparing outputs, making inputs, comparing modules.

#![warn(missing_docs)]

pub mod assume;
pub mod calibrate;
pub mod calibrated;
pub mod certificate;
mod checked;
pub mod compare;
mod congruence;
mod constant_views;
mod constants;
mod definitions;
mod derivations;
mod file_state;
mod folded;
mod forms;
mod found_sizes;
mod groups;
pub mod kept;
pub mod layout;
pub mod library;
mod lines;
pub mod load;
pub mod measuring;
#[cfg(feature = "onnx")]
pub mod model;
#[cfg(not(feature = "onnx"))]
#[path = "no_models.rs"]
pub mod model;
#[cfg(all(test, feature = "onnx"))]
#[allow(dead_code, reason = "without the feature, this is `model`; here it is tested")]
mod no_models;
pub mod options;
pub mod passes;
pub mod pipeline;
pub mod pricing;
mod probes;
pub mod program;
pub mod random;
mod rounding_noise;
mod rules;
mod runs;
pub mod saved;
pub mod schedule_script;
pub mod session;
mod side_by_side;
mod textures;
pub mod timings;
pub mod tune;
mod values;
pub mod verify;
pub mod whole;
pub mod winograd;

pub use load::{load, parse, print};
pub use options::{IoLayout, LayoutPolicy, Options};
pub use session::{Session, compile, compile_file};
pub use tilewright_graph::sizes::Sizes;
pub use tilewright_ir::dim::SizeRange;
pub use tilewright_ir::{DType, Error, Module, Result, Tensor};
pub use tilewright_runtime::Executable;
pub use tilewright_target::{OptLevel, Target};
