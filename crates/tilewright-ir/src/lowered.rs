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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Buffer, DType, Expr, Param};

    #[test]
    fn a_block_is_not_lowered() {
        let b = Buffer::with_extents("B", &[4], DType::F32);
        let store = Stmt::store(&b, vec![Expr::i32(0)], Expr::float(1.0, DType::F32));
        let func = |body| TensorFunc::new(vec![Param::tensor(&b)], body);
        let mut module = Module::new();
        module.insert("f", func(store.clone()));
        assert!(Lowered::new(module.clone()).is_ok_and(|m| m.tensor("f").is_ok()));
        let block = Stmt::block(Vec::new(), Expr::bool(true), Block::new("B", store));
        module.insert("g", func(Stmt::seq([Stmt::nop(), block])));
        let error = Lowered::new(module).expect_err("a block").render();
        assert!(
            error.contains("function `g`: the function is not lowered: it has the block `B`"),
            "{error}"
        );
    }
}
