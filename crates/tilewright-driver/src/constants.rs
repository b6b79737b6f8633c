//! Constants that functions make of constants, when a module is compiled: that may need a compilation of
//! its own. Constants that are bytes of the model's file, which a program is not to be.

use std::collections::HashMap;

use tilewright_graph::fold::interpret;
use tilewright_graph::rewrite::{GraphFold, fold_blocks, fold_children};
use tilewright_ir::{GraphExpr, GraphFunc, Module, Result, Tensor, TensorFunc};

use super::options::{LayoutPolicy, Options};
use super::session::compile;

/// Constants of fewer bytes are made by the interpreter, before a backend would be done compiling.
const SMALL: usize = 1 << 18;

/// Runs a function on constants: natively where that pays. Those that lie in a file are most often needed once: their
/// pages are let go of.
pub(super) fn evaluate(func: &TensorFunc, args: &[Tensor]) -> Result<Vec<Tensor>> {
    let made = if args.iter().map(|t| t.bytes().len()).sum::<usize>() < SMALL {
        interpret(func, args)
    } else {
        let mut module = Module::new();
        module.insert("main", func.clone());
        compile(&module, &Options::new().layout(LayoutPolicy::AsWritten))?.run(args)
    };
    args.iter().for_each(Tensor::release);
    made
}

/// The module with constants of its own in the place of bytes of the model's file.
///
/// # Errors
/// None of its own.
pub(super) fn copy_mapped_constants(module: &Module) -> Result<Module> {
    let mut copied = module.clone();
    let mut fold = CopyMapped::default();
    for (name, func) in module.graphs() {
        let blocks = fold_blocks(&mut fold, &func.blocks)?;
        let ret = fold.expr(&func.ret)?;
        copied.insert(name.clone(), GraphFunc { blocks, ret, ..(**func).clone() });
    }
    Ok(copied)
}

/// Puts constants of their own in the place of others; what shares memory does so afterwards.
#[derive(Default)]
struct CopyMapped {
    done: HashMap<(*const u8, Vec<usize>), Tensor>,
}

impl GraphFold for CopyMapped {
    fn expr(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
        let GraphExpr::Const(t) = e else { return fold_children(self, e) };
        let key = (t.bytes().as_ptr(), t.shape().to_vec());
        Ok(GraphExpr::Const(self.done.entry(key).or_insert_with(|| t.copied_from_file()).clone()))
    }
}
