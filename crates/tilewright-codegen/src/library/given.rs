//! What a library is made from.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use tilewright_ir::TensorFunc;
use tilewright_runtime::plan::program;
use tilewright_target::Target;

use crate::entry::Planned;

/// What a library is made from.
pub struct Library<'a> {
    /// Prefix of all symbols, a C identifier.
    pub name: &'a str,
    /// The name by which programs that are linked with it ask for it, that of its file.
    pub soname: Option<&'a OsStr>,
    /// What to run; of a model with control flow the inputs and outputs, as [`signature`](super::signature) says.
    pub program: Program<'a>,
    /// What runs instead where it fits: the same for some of the sizes that are open in `program`.
    pub versions: &'a [Program<'a>],
    /// What runs instead, where there is control flow; then versions are not looked at.
    pub control: Option<&'a Control<'a>>,
    /// Objects and libraries with the C functions that the functions call.
    pub link: &'a [PathBuf],
    /// The machine, which has to be one that the C compiler generates code for.
    pub target: &'a Target,
}

/// A plan with what it calls.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    /// The steps.
    pub plan: &'a Planned,
    /// The lowered functions that they call.
    pub funcs: &'a [(Arc<str>, &'a TensorFunc)],
}

/// What runs instead of a plan.
pub struct Control<'a> {
    /// Which pieces run in which order.
    pub program: &'a program::Program,
    pub pieces: &'a [Program<'a>],
}
