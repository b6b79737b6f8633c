//! Modules whose tensor functions are lowered: the form that memory planning and backends take.
//!
//! Lowering turns blocks into plain statements. What is left are stores, loops, conditions, bindings,
//! allocations, views, assertions and calls; the trailing parameters of a function may be scratch
//! memory ([`TensorFunc::scratch_count`]). [`Lowered`] is the only thing that says so: it is made by
//! checking the functions, and a module that was printed and read back passes the same check.

use std::ops::Deref;
use std::sync::Arc;

use crate::error::{Error, Result, Span};
use crate::func::TensorFunc;
use crate::module::Module;
use crate::stmt::{Stmt, StmtKind};

/// A module without blocks.
#[derive(Clone, Debug)]
pub struct Lowered(Module);

impl Lowered {
    /// The module, if its tensor functions are lowered.
    ///
    /// # Errors
    /// [`Error::Malformed`] at the first block that is left.
    pub fn new(module: Module) -> Result<Lowered> {
        module.tensors().try_for_each(|(name, f)| check_lowered(name, f, &module))?;
        Ok(Lowered(module))
    }

    pub fn into_module(self) -> Module {
        self.0
    }
}

fn check_lowered(name: &str, f: &TensorFunc, module: &Module) -> Result<()> {
    match first_block(&f.body) {
        None => Ok(()),
        Some((block, span)) => {
            let error = Error::malformed(format!(
                "the function is not lowered: it has the block `{block}`"
            ))
            .context(format!("function `{name}`"))
            .at(span.or(f.span))
            .help("run the pass `lower` first");
            Err(module.source.iter().fold(error, |e, source| e.in_source(source)))
        }
    }
}

impl Deref for Lowered {
    type Target = Module;
    fn deref(&self) -> &Module {
        &self.0
    }
}

/// The name and the place of the first block of a statement.
fn first_block(body: &Stmt) -> Option<(Arc<str>, Option<Span>)> {
    let mut first = None;
    body.for_each(|s| {
        if let (StmtKind::Block { block, .. }, None) = (s.kind(), &first) {
            first = Some((block.name.clone(), s.span()));
        }
    });
    first
}
