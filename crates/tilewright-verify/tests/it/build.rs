//! Small functions, and running them.

use tilewright_interp::{Arg, Output, RunOptions, run_func};
use tilewright_ir::{Buffer, DType, Expr, Param, Result, Stmt, Tensor, TensorFunc, Var};

/// A buffer with constant extents.
pub fn buffer(name: &str, shape: &[i64], dtype: DType) -> Buffer {
    Buffer::with_extents(name, shape, dtype)
}

/// A function of these buffers.
pub fn func(params: &[&Buffer], body: Stmt) -> TensorFunc {
    TensorFunc::new(params.iter().map(|b| Param::tensor(b)).collect(), body)
}

/// A serial loop over `0..n`.
pub fn serial(v: &Var, n: i64, body: Stmt) -> Stmt {
    Stmt::serial(v, Expr::int(n, v.dtype()), body)
}

/// The outputs of a function: the parameters after the arguments.
pub fn run(f: &TensorFunc, args: &[Tensor]) -> Result<Vec<Tensor>> {
    let mut all: Vec<Arg> = args.iter().cloned().map(Arg::Tensor).collect();
    all.resize(f.params.len(), Arg::Fresh(None));
    let outputs = run_func(f, &all, &RunOptions::default())?.outputs;
    outputs.into_iter().map(Output::into_tensor).collect()
}
