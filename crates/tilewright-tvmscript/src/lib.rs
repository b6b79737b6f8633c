//! TVMScript: text to IR and back.
//!
//! [`parse_module`] reads both dialects of TVMScript, the older one (`T.block`,
//! `T.alloc_buffer`) and the newer one (`T.sblock`, `T.sblock_alloc_buffer`, `T.let[...]`), and
//! the loose code of design documents (`T.Buffer[14, "float32"]`, `with block(...)`, `grid(...)`).
//! [`print_module`] prints the older one. What is printed reads back as the same module, always.
//!
//! ```
//! use tilewright_ir::{Source, equal};
//! use tilewright_tvmscript::{parse_module, print_module};
//! let source = Source::new(
//!     "double.py",
//!     "@T.prim_func
//! def double(A: T.Buffer((14,), \"float32\"), B: T.Buffer((14,), \"float32\")):
//!     for i in range(14):
//!         with T.block(\"B\"):
//!             vi = T.axis.spatial(14, i)
//!             B[vi] = A[vi] * 2.0
//! ",
//! );
//! let module = parse_module(&source)?;
//! let text = print_module(&module);
//! assert!(text.contains("B[vi] = A[vi] * T.float32(2.0)"));
//! let again = parse_module(&Source::new("printed", text))?;
//! assert!(equal::modules(&module, &again, &equal::Equality::default()).is_ok());
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! The way of a text: `syntax` guards and runs Python's parser, `module` finds the `functions`,
//! `tensor` and `graph` read them, `expr` reads their expressions in an `env` of names with the
//! types of `value`. `print` is the way back.
//!
//! **Architecture invariant:** this crate reads and writes text and does nothing else to a
//! program: no simplification, no check beyond what the text itself must satisfy.

mod args;
mod attrs;
mod consts;
mod env;
mod expr;
mod functions;
mod graph;
mod lambda;
mod metadata;
mod module;
mod print;
mod ranges;
mod syntax;
mod tensor;
pub mod trace;
mod value;

use std::sync::Arc;

use tilewright_ir::{Module, Result, Source};

pub use consts::ConstTable;
pub use print::{print_func, print_module, print_module_with};

/// Reads a module: `@I.ir_module class Module:`, or one or more bare functions.
///
/// The module keeps the source, and every statement its place in it. Fails with
/// [`Error::Syntax`] where the text is wrong and with [`Error::Unsupported`] where it says
/// something that the IR cannot, both with the place. The functions are not checked any further:
/// see [`tilewright_ir::well_formed`].
///
/// [`Error::Syntax`]: tilewright_ir::Error::Syntax
/// [`Error::Unsupported`]: tilewright_ir::Error::Unsupported
pub fn parse_module(source: &Arc<Source>) -> Result<Module> {
    module::parse(source, &ConstTable::new())
}

/// Reads a module whose text names constants of a table, as [`print_module_with`] prints it.
pub fn parse_module_with(source: &Arc<Source>, table: &ConstTable) -> Result<Module> {
    module::parse(source, table)
}
