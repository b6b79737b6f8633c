//! Constants that functions make of constants, when a module is compiled: that may need a compilation of
//! its own.

use tilewright_graph::fold::interpret;
use tilewright_ir::{Module, Result, Tensor, TensorFunc};

use super::options::{LayoutPolicy, Options};
use super::session::compile;

/// Constants of fewer bytes are made by the interpreter, before a backend would be done compiling.
const SMALL: usize = 1 << 18;

/// Runs a function on constants: natively where that pays.
pub(super) fn evaluate(func: &TensorFunc, args: &[Tensor]) -> Result<Vec<Tensor>> {
    if args.iter().map(|t| t.bytes().len()).sum::<usize>() < SMALL {
        return interpret(func, args);
    }
    let mut module = Module::new();
    module.insert("main", func.clone());
    compile(&module, &Options::new().layout(LayoutPolicy::AsWritten))?.run(args)
}
