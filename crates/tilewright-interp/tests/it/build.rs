//! Small functions, and running them.

use tilewright_interp::{Arg, Output, RunOptions, run_func};
use tilewright_ir::{
    Buffer, DType, Error, Expr, Param, Range, Result, Stmt, Tensor, TensorFunc, Var,
};

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

/// A `float32` constant.
pub fn f32(v: f64) -> Expr {
    Expr::float(v, DType::F32)
}

/// `min..min + extent`.
pub fn range(min: i64, extent: i64) -> Range {
    Range { min: Expr::int(min, DType::I32), extent: Expr::int(extent, DType::I32) }
}

/// Runs a function; parameters after the arguments are outputs.
pub fn run_with(f: &TensorFunc, args: &[Tensor], options: &RunOptions) -> Result<Vec<Output>> {
    let mut all: Vec<Arg> = args.iter().cloned().map(Arg::Tensor).collect();
    all.resize(f.params.len(), Arg::Fresh(None));
    run_func(f, &all, options).map(|o| o.outputs)
}

/// Runs a function and returns its outputs.
pub fn run(f: &TensorFunc, args: &[Tensor]) -> Result<Vec<Tensor>> {
    run_with(f, args, &RunOptions::default())?.into_iter().map(Output::into_tensor).collect()
}

/// The elements of the only output.
pub fn values(f: &TensorFunc, args: &[Tensor]) -> Vec<f64> {
    let outputs = run(f, args).unwrap_or_else(|e| panic!("{}", e.render()));
    assert_eq!(outputs.len(), 1);
    (0..outputs[0].len()).map(|i| outputs[0].get_f64(i)).collect()
}

/// The error of a run, as text.
pub fn error(f: &TensorFunc, args: &[Tensor]) -> String {
    error_with(f, args, &RunOptions::default())
}

/// The error of a run, as text.
pub fn error_with(f: &TensorFunc, args: &[Tensor], options: &RunOptions) -> String {
    match run_with(f, args, options) {
        Ok(outputs) => panic!("no error, but {outputs:?}"),
        Err(e) => kind(&e).to_owned() + ": " + e.render().trim_start_matches("error: "),
    }
}

/// The variant of an error.
pub fn kind(e: &Error) -> &'static str {
    match e {
        Error::Malformed(_) => "malformed",
        Error::Unsupported(_) => "unsupported",
        Error::Input(_) => "input",
        Error::Execution(_) => "execution",
        _ => "other",
    }
}

/// A one-dimensional tensor.
pub fn tensor<T: tilewright_ir::tensor::Element>(values: &[T]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap_or_else(|e| panic!("{e}"))
}

/// `0, 1, 2, ...` of a shape.
pub fn iota(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
    Tensor::from_slice(shape, &values).unwrap_or_else(|e| panic!("{e}"))
}
