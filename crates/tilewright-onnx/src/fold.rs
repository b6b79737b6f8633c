//! Computing constants at import.
//!
//! Anything can be computed by running its tensor function in the interpreter. What only moves or
//! relabels data, and conversions, are done here directly: weights are large, and pass through
//! such operators often.

use half::{bf16, f16};
use tilewright_interp::{Arg, Mode, Options, Output, Program};
use tilewright_ir::{DType, Error, Result, Tensor, TensorFunc, TypeKind};
use tilewright_ops::Operand;

/// Runs a function on constants; its last parameters, of these shapes, are the results. `name` is
/// for messages.
pub(crate) fn run(
    name: &str,
    func: &TensorFunc,
    args: &[Tensor],
    outs: &[Operand],
) -> Result<Vec<Tensor>> {
    let mode = |arg: &Arg| match arg {
        Arg::Fresh(_) => Mode::Fresh,
        _ => Mode::Given,
    };
    let inputs = args.iter().cloned().map(Arg::Tensor);
    let fresh = outs.iter().map(|o| Arg::Fresh(Some(o.shape.clone())));
    let args: Vec<Arg> = inputs.chain(fresh).collect();
    let modes: Vec<Mode> = args.iter().map(mode).collect();
    let program = Program::new(name, func, &modes, &Options::default())?;
    let outcome = program.run(&args).map_err(|e| match e {
        Error::Execution(d) => Error::Model(d).context("computing a constant"),
        e => e,
    })?;
    let results: Vec<Tensor> =
        outcome.outputs.into_iter().map(Output::into_tensor).collect::<Result<_>>()?;
    match results.len() == outs.len() {
        true => Ok(results),
        false => Err(Error::internal("a function writes another number of results")),
    }
}

/// Where the elements of a view lie in a tensor: an offset and a step for each axis of the view,
/// counted in elements.
pub(crate) struct View {
    /// Position of the first element.
    pub(crate) offset: i64,
    /// Extents of the view.
    pub(crate) shape: Vec<usize>,
    /// Distance of neighbours along each axis; 0 repeats, negative ones go backwards.
    pub(crate) steps: Vec<i64>,
}

/// Distance of neighbours along each axis of a row-major tensor.
pub(crate) fn row_major(shape: &[usize]) -> Vec<i64> {
    let mut steps = vec![1i64; shape.len()];
    for k in (1..shape.len()).rev() {
        steps[k - 1] = steps[k].saturating_mul(shape[k] as i64);
    }
    steps
}

/// Copies a view into a tensor of its own.
pub(crate) fn materialize(t: &Tensor, view: &View) -> Result<Tensor> {
    let mut out = Tensor::zeros(t.dtype(), &view.shape)?;
    if out.is_empty() {
        return Ok(out);
    }
    // The corners of the view must lie inside.
    let (mut low, mut high) = (i128::from(view.offset), i128::from(view.offset));
    for (&d, &s) in view.shape.iter().zip(&view.steps) {
        let span = (d as i128 - 1) * i128::from(s);
        low += span.min(0);
        high += span.max(0);
    }
    if low < 0 || high >= t.len() as i128 {
        return Err(Error::internal("a view reaches out of its tensor"));
    }
    match t.dtype().bytes() {
        1 => copy::<1>(t.bytes(), out.bytes_mut(), view),
        2 => copy::<2>(t.bytes(), out.bytes_mut(), view),
        4 => copy::<4>(t.bytes(), out.bytes_mut(), view),
        _ => copy::<8>(t.bytes(), out.bytes_mut(), view),
    }
    Ok(out)
}

/// The loop of [`materialize`] for elements of `N` bytes.
fn copy<const N: usize>(from: &[u8], to: &mut [u8], view: &View) {
    let (from, _) = from.as_chunks::<N>();
    let (to, _) = to.as_chunks_mut::<N>();
    let (inner, inner_step) = match (view.shape.last(), view.steps.last()) {
        (Some(&d), Some(&s)) => (d, s),
        _ => (1, 0),
    };
    let outer = view.shape.len().saturating_sub(1);
    let mut index = vec![0usize; outer];
    let mut start = view.offset;
    for row in to.chunks_mut(inner) {
        match inner_step {
            1 => row.copy_from_slice(&from[start as usize..start as usize + inner]),
            step => {
                let mut at = start;
                for cell in row {
                    *cell = from[at as usize];
                    at += step;
                }
            }
        }
        for k in (0..outer).rev() {
            index[k] += 1;
            start += view.steps[k];
            if index[k] < view.shape[k] {
                break;
            }
            start -= view.steps[k] * view.shape[k] as i64;
            index[k] = 0;
        }
    }
}

/// A tensor that has the bytes of `element` everywhere.
pub(crate) fn full(dtype: DType, shape: &[usize], element: &[u8]) -> Result<Tensor> {
    let mut t = Tensor::zeros(dtype, shape)?;
    if element.iter().any(|&b| b != 0) {
        t.bytes_mut().chunks_exact_mut(element.len()).for_each(|c| c.copy_from_slice(element));
    }
    Ok(t)
}

/// Tensors one behind the other along an axis; their other extents agree.
pub(crate) fn concat(parts: &[Tensor], axis: usize) -> Result<Tensor> {
    let Some(first) = parts.first() else { return Err(Error::internal("nothing to join")) };
    let mut shape = first.shape().to_vec();
    shape[axis] = parts.iter().map(|p| p.shape()[axis]).sum();
    let mut out = Tensor::zeros(first.dtype(), &shape)?;
    let size = first.dtype().bytes();
    let rows: usize = shape[..axis].iter().product();
    let inner: usize = shape[axis + 1..].iter().product::<usize>() * size;
    let width = shape[axis] * inner;
    let mut at = 0;
    for part in parts {
        let own = part.shape()[axis] * inner;
        for row in 0..rows {
            out.bytes_mut()[row * width + at..][..own]
                .copy_from_slice(&part.bytes()[row * own..][..own]);
        }
        at += own;
    }
    Ok(out)
}

/// Converts the elements: floats to integers by truncation, saturating at the ends (`NaN` gives
/// 0), integers to narrower ones by their low bits, anything to `bool` by comparison with zero.
pub(crate) fn cast(t: &Tensor, to: DType) -> Result<Tensor> {
    if t.dtype() == to {
        return Ok(t.clone());
    }
    let mut out = Tensor::zeros(to, t.shape())?;
    macro_rules! target {
        ($values:expr, $zero:expr) => {
            match (to.kind, to.bits) {
                (TypeKind::Bool, _) => write(&mut out, $values.map(|v| u8::from(v != $zero))),
                (TypeKind::Int, 8) => write(&mut out, $values.map(|v| v as i8)),
                (TypeKind::Int, 16) => write(&mut out, $values.map(|v| v as i16)),
                (TypeKind::Int, 32) => write(&mut out, $values.map(|v| v as i32)),
                (TypeKind::Int, 64) => write(&mut out, $values.map(|v| v as i64)),
                (TypeKind::UInt, 8) => write(&mut out, $values.map(|v| v as u8)),
                (TypeKind::UInt, 16) => write(&mut out, $values.map(|v| v as u16)),
                (TypeKind::UInt, 32) => write(&mut out, $values.map(|v| v as u32)),
                (TypeKind::UInt, 64) => write(&mut out, $values.map(|v| v as u64)),
                (TypeKind::Float, 16) => write(&mut out, $values.map(|v| f16::from_f64(v as f64))),
                (TypeKind::Float, 32) => write(&mut out, $values.map(|v| v as f32)),
                (TypeKind::Float, 64) => write(&mut out, $values.map(|v| v as f64)),
                (TypeKind::BFloat, _) => write(&mut out, $values.map(|v| bf16::from_f64(v as f64))),
                _ => return Err(Error::internal(format!("no conversion to {to}"))),
            }
        };
    }
    macro_rules! source {
        ($t:ty, $convert:expr, $zero:expr) => {
            target!(t.as_slice::<$t>().unwrap_or_default().iter().copied().map($convert), $zero)
        };
    }
    match (t.dtype().kind, t.dtype().bits) {
        (TypeKind::Bool, _) => target!(t.bytes().iter().map(|&b| i32::from(b != 0)), 0i32),
        (TypeKind::Int, 8) => source!(i8, |v| v, 0i8),
        (TypeKind::Int, 16) => source!(i16, |v| v, 0i16),
        (TypeKind::Int, 32) => source!(i32, |v| v, 0i32),
        (TypeKind::Int, 64) => source!(i64, |v| v, 0i64),
        (TypeKind::UInt, 8) => source!(u8, |v| v, 0u8),
        (TypeKind::UInt, 16) => source!(u16, |v| v, 0u16),
        (TypeKind::UInt, 32) => source!(u32, |v| v, 0u32),
        (TypeKind::UInt, 64) => source!(u64, |v| v, 0u64),
        (TypeKind::Float, 16) => source!(f16, f16::to_f32, 0f32),
        (TypeKind::Float, 32) => source!(f32, |v| v, 0f32),
        (TypeKind::Float, 64) => source!(f64, |v| v, 0f64),
        (TypeKind::BFloat, _) => source!(bf16, bf16::to_f32, 0f32),
        (kind, _) => return Err(Error::internal(format!("no conversion from {kind:?}"))),
    }
    Ok(out)
}

/// Writes elements in order.
fn write<T: bytemuck::Pod>(out: &mut Tensor, values: impl Iterator<Item = T>) {
    let cells = bytemuck::cast_slice_mut::<u8, T>(out.bytes_mut());
    cells.iter_mut().zip(values).for_each(|(cell, v)| *cell = v);
}
