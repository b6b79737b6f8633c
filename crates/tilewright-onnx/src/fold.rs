//! Computing constants at import.
//!
//! Anything can be computed by running its tensor function in the interpreter. What only moves or
//! relabels data, and conversions, are done here directly: weights are large, and pass through
//! such operators often.

use half::{bf16, f16};
use tilewright_interp::{Arg, Mode, Output, Program, RunOptions};
use tilewright_ir::{DType, Error, Result, Tensor, TensorFunc, TypeKind, dim, tensor};
use tilewright_ops::Operand;
use tilewright_runtime::parallel;

/// Makes a function ready to run on constants: `inputs` of them come before the results. `name`
/// is for messages.
pub(crate) fn compile(name: &str, func: &TensorFunc, inputs: usize) -> Result<Program> {
    let modes: Vec<Mode> = (0..func.params.len())
        .map(|at| if at < inputs { Mode::Given } else { Mode::Fresh })
        .collect();
    Program::new(name, func, &modes, &RunOptions::default())
}

/// Runs a function on constants; its last parameters, of these shapes, are the results.
pub(crate) fn run(program: &Program, args: &[Tensor], outs: &[Operand]) -> Result<Vec<Tensor>> {
    let inputs = args.iter().cloned().map(Arg::Tensor);
    let mut args: Vec<Arg> = inputs.collect();
    for out in outs {
        args.push(Arg::Fresh(Some(dim::fixed(&out.shape, "a constant")?)));
    }
    let outcome = program.run(&args).map_err(|e| match e {
        Error::Execution(d) => Error::Model(d).context("computing a constant"),
        e => e,
    })?;
    let results: Vec<Tensor> =
        outcome.outputs.into_iter().map(Output::into_tensor).collect::<Result<_>>()?;
    if results.len() == outs.len() {
        Ok(results)
    } else {
        Err(Error::internal("a function writes another number of results"))
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

impl View {
    /// A tensor of shape `own` stretched to a shape that it broadcasts to.
    pub(crate) fn stretched(own: &[usize], shape: &[usize]) -> View {
        let (added, steps) = (shape.len() - own.len(), row_major(own));
        let own = own.iter().zip(steps).map(|(extent, step)| if *extent == 1 { 0 } else { step });
        let steps = std::iter::repeat_n(0, added).chain(own).collect();
        View { offset: 0, shape: shape.to_vec(), steps }
    }
}

/// Distance of neighbours along each axis of a row-major tensor.
pub(crate) fn row_major(shape: &[usize]) -> Vec<i64> {
    let strides = tensor::row_major(shape);
    strides.into_iter().map(|n| i64::try_from(n).unwrap_or(i64::MAX)).collect()
}

/// Copies a view into a tensor of its own.
pub(crate) fn materialize(t: &Tensor, view: &View) -> Result<Tensor> {
    if view.shape.contains(&0) {
        return Tensor::zeros(t.dtype(), &view.shape);
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
    // Elements that lie together need not be copied where they lie in a file.
    if view.steps == row_major(&view.shape)
        && let Some(part) = t.part(view.offset as usize, &view.shape)
    {
        return Ok(part);
    }
    let mut out = Tensor::zeros(t.dtype(), &view.shape)?;
    match t.dtype().bytes() {
        1 => copy::<1>(t.unaligned_bytes(), out.bytes_mut(), view),
        2 => copy::<2>(t.unaligned_bytes(), out.bytes_mut(), view),
        4 => copy::<4>(t.unaligned_bytes(), out.bytes_mut(), view),
        _ => copy::<8>(t.unaligned_bytes(), out.bytes_mut(), view),
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
    let bytes = t.bytes_mut();
    if bytes.is_empty() || element.iter().all(|&b| b == 0) {
        return Ok(t);
    }
    // A block of them, then blocks: a copy of one element costs as much as one of many.
    let block = element.repeat(1 << 10);
    parallel::map_parts(bytes, block.len() << 10, |_, part| {
        part.chunks_mut(block.len()).for_each(|c| c.copy_from_slice(&block[..c.len()]));
    });
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
                .copy_from_slice(&part.unaligned_bytes()[row * own..][..own]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ops::{elementwise, movement};

    fn bytes(count: usize, seed: u32) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..count).map(|_| next()).collect()
    }

    /// The result of a function of one operand in the interpreter.
    fn interpreted(func: Result<TensorFunc>, x: &Tensor, out: &Operand) -> Result<Tensor> {
        let program = compile("f", &func?, 1)?;
        run(&program, std::slice::from_ref(x), std::slice::from_ref(out))?
            .pop()
            .ok_or_else(|| Error::internal("no result"))
    }

    #[test]
    fn conversions_agree_with_the_interpreter() -> Result<()> {
        let types = [
            DType::BOOL,
            DType::I8,
            DType::I16,
            DType::I32,
            DType::I64,
            DType::U8,
            DType::U16,
            DType::U32,
            DType::U64,
            DType::F16,
            DType::BF16,
            DType::F32,
            DType::F64,
        ];
        for from in types {
            // Any bits, so that infinities, NaN and numbers out of range are among them.
            let mut raw = bytes(257 * from.bytes(), 7);
            if from.is_bool() {
                raw.iter_mut().for_each(|b| *b &= 1);
            }
            let t = Tensor::from_bytes(from, &[257], &raw)?;
            // And numbers that fit.
            let small: Vec<f64> = (0..257).map(|i| f64::from(i) / 2.0 - 60.0).collect();
            let small = cast(&Tensor::from_slice(&[257], &small)?, from)?;
            for to in types {
                for t in [&t, &small] {
                    let of = Operand::new(&[257], from);
                    let expected =
                        interpreted(elementwise::cast(&of, to), t, &Operand::new(&[257], to))?;
                    let got = cast(t, to)?;
                    for i in 0..257 {
                        let same = if to.is_float() {
                            let (a, b) = (got.get_f64(i), expected.get_f64(i));
                            a == b || (a.is_nan() && b.is_nan())
                        } else {
                            got.get_i128(i) == expected.get_i128(i)
                        };
                        assert!(
                            same,
                            "{from} to {to} of {:?}: {:?}, expected {:?}",
                            t.get_f64(i),
                            got.get_f64(i),
                            expected.get_f64(i)
                        );
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn views_agree_with_the_interpreter() -> Result<()> {
        for dtype in [DType::U8, DType::F16, DType::F32, DType::I64] {
            let shape = [3, 1, 5, 4];
            let t = Tensor::from_bytes(dtype, &shape, &bytes(60 * dtype.bytes(), 3))?;
            let of = Operand::new(&shape, dtype);
            let own = row_major(&shape);
            assert_eq!(own, [20, 20, 4, 1]);
            let turned = View {
                offset: 0,
                shape: vec![4, 3, 1, 5],
                steps: vec![own[3], own[0], own[1], own[2]],
            };
            let expected = interpreted(
                movement::transpose(&of, &[3, 0, 1, 2]),
                &t,
                &Operand::new(&turned.shape, dtype),
            )?;
            assert!(materialize(&t, &turned)?.same(&expected));
            // Every second row from the end, and every column backwards.
            let cut =
                View { offset: 40 + 16 + 3, shape: vec![2, 1, 3, 4], steps: vec![-40, 20, -8, -1] };
            let expected = interpreted(
                movement::slice(
                    &of,
                    &[-1, -1, -1],
                    &[i64::MIN, i64::MIN, i64::MIN],
                    &[0, 2, 3],
                    &[-2, -2, -1],
                ),
                &t,
                &Operand::new(&cut.shape, dtype),
            )?;
            assert!(materialize(&t, &cut)?.same(&expected));
            let stretched =
                View { offset: 0, shape: vec![2, 3, 7, 5, 4], steps: vec![0, 20, 0, 4, 1] };
            let expected = interpreted(
                movement::expand(&of, &stretched.shape),
                &t,
                &Operand::new(&stretched.shape, dtype),
            )?;
            assert!(materialize(&t, &stretched)?.same(&expected));
            let outside = View { offset: 1, shape: vec![60], steps: vec![1] };
            assert!(materialize(&t, &outside).is_err());
            let scalar = View { offset: 59, shape: vec![], steps: vec![] };
            assert!(materialize(&t, &scalar)?.bytes() == &t.bytes()[59 * dtype.bytes()..]);
        }
        Ok(())
    }

    #[test]
    fn joined_parts_keep_their_order() -> Result<()> {
        let a = Tensor::from_slice(&[2, 1, 2], &[1i16, 2, 3, 4])?;
        let b = Tensor::from_slice(&[2, 2, 2], &[5i16, 6, 7, 8, 9, 10, 11, 12])?;
        let joined = concat(&[a.clone(), b], 1)?;
        assert_eq!(joined.shape(), [2, 3, 2]);
        let expected = [1i16, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12];
        assert_eq!(joined.as_slice(), Some(&expected[..]));
        let stacked = concat(&[a.clone(), a], 0)?;
        assert_eq!(stacked.as_slice(), Some(&[1i16, 2, 3, 4, 1, 2, 3, 4][..]));
        let filled = full(DType::F32, &[3], &1.5f32.to_le_bytes())?;
        assert_eq!(filled.as_slice(), Some(&[1.5f32; 3][..]));
        Ok(())
    }
}
