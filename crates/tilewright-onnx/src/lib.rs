//! ONNX models to modules.
//!
//! A model file is read ([`Model::read`]), asked for its inputs ([`Model::signature`]), and
//! imported ([`Model::import`]). A dimension that the file leaves open and no size is given for stays
//! open: a variable of the graph function's types.
//!
//! ```no_run
//! use tilewright_onnx::{ImportOptions, import_path};
//! let options = ImportOptions { dims: [("N".into(), 1)].into(), ..Default::default() };
//! let module = import_path("model.onnx", &options)?;
//! assert!(module.graph("main").is_ok());
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! * [`proto`]: the messages of the file format.
//! * `wire`, `model`, `data`: from bytes to a decoded model and to tensors, safely.
//! * `functions`: calls of operators that a model defines itself, replaced by their nodes.
//! * `dims`: the sizes that a model leaves open.
//! * `order`: nodes behind those that they read from. `import`: the way through a graph. `node`: what an operator's importer sees. `build`: the
//!   module that comes about. `fold`: constants that are computed on the way.
//! * `narrow`: element types of less than a byte, and floats of a byte.
//! * `texts`: tensors of strings, which are known at import only.
//! * `graphs`: what the importers of operators with graphs of their own are given.
//! * `ops::nested`: branches and loops, whose graphs are attributes of nodes.
//! * `sizes`: shape arithmetic with open sizes, computed on expressions.
//! * `registry`: which operators there are. `ops`: how each is imported.
//!
//! Nothing in a file is trusted: whatever is in it, importing ends in bounded time and memory, with a
//! module or an error.
//!
//! **Architecture invariant:** nothing behind this crate knows of ONNX; nothing in here knows of
//! layouts, schedules or targets.

mod build;
mod data;
mod dims;
mod extents;
mod facts;
mod fold;
mod functions;
mod graphs;
mod import;
mod imported;
mod label;
mod model;
mod narrow;
mod node;
mod operator;
mod ops;
mod order;
pub mod proto;
mod ratio;
mod registry;
mod scope;
mod sizes;
mod texts;
mod wire;

pub use import::{ImportOptions, import_bytes, import_path};
pub use model::Model;
pub use registry::{SupportedOp, supported_ops};
pub use tilewright_ir::signature::{DataFile, Dim, Signature, ValueKind, ValueType};
