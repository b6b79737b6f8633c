//! Functions that only relabel: the result is the input in row-major order under another shape.
//!
//! Such a function needs no code. The memory planner gives its result the memory of its input.

use tilewright_analysis::index::simplify;
use tilewright_analysis::stages;
use tilewright_ir::{Expr, ExprKind, TensorFunc};

/// Whether a function of one input and one result copies the input, element by element in
/// row-major order. Decided by the position of the loaded and the stored element in memory: their
/// difference must simplify to zero. `false` where that is not so or not proven.
pub fn relabels(func: &TensorFunc) -> bool {
    let Some(found) = stages(func) else { return false };
    let buffers: Vec<_> = func.buffers().collect();
    let ([stage], [input, output]) = (&found[..], &buffers[..]) else { return false };
    let ExprKind::Load(from, at) = stage.value.kind() else { return false };
    let compact = |b: &tilewright_ir::Buffer| {
        b.strides.is_empty() && b.elem_offset.is_none() && b.axis_separators.is_empty()
    };
    if func.params.len() != 2
        || stage.is_reduction()
        || from != *input
        || stage.buffer != **output
        || !compact(input)
        || !compact(output)
        || input.dtype() != output.dtype()
        || stage.covers_buffer().is_none()
    {
        return false;
    }
    let (Some(from), Some(to)) = (input.const_shape(), output.const_shape()) else { return false };
    let cells = |shape: &[i64]| shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d));
    if cells(&from) != cells(&to) || cells(&to).is_none_or(|n| i32::try_from(n).is_err()) {
        return false;
    }
    let flat = |at: &[Expr], shape: &[i64]| {
        at.iter().zip(shape).fold(Expr::i32(0), |sum, (i, extent)| sum * *extent + i)
    };
    let difference = flat(at, &from) - flat(&stage.indices, &to);
    simplify(&difference, &stage.ranges()).as_int() == Some(0)
}
