//! Functions that only relabel: the result is the input in row-major order under another shape.
//!
//! Such a function needs no code. The memory planner gives its result the memory of its input.

use tilewright_analysis::open_stages;
use tilewright_ir::index::simplify;
use tilewright_ir::{Buffer, DType, Dim, Expr, ExprKind, TensorFunc, dim};

/// Whether a function of one input and one result copies the input, element by element in
/// row-major order. Decided by the position of the loaded and the stored element in memory: their
/// difference must simplify to zero. `false` where that is not so or not proven.
pub fn relabels(func: &TensorFunc) -> bool {
    let Some(found) = open_stages(func) else { return false };
    let buffers: Vec<_> = func.buffers().collect();
    let ([stage], [input, output]) = (&found[..], &buffers[..]) else { return false };
    let ExprKind::Load(from, at) = stage.value.kind() else { return false };
    if buffers.len() != 2
        || stage.is_reduction()
        || from != *input
        || stage.buffer != **output
        || !is_compact(input)
        || !is_compact(output)
        || input.dtype() != output.dtype()
        || stage.covers_buffer().is_none()
    {
        return false;
    }
    let shapes = (dim::of_shape(&input.shape), dim::of_shape(&output.shape));
    let (Some(from), Some(to)) = shapes else { return false };
    let cells = dim::product(to.iter().copied());
    if dim::product(from.iter().copied()) != cells || !cells.fits_int32() {
        return false;
    }
    let difference =
        simplify(&(flat_index(at, &from) - flat_index(&stage.indices, &to)), &stage.ranges());
    // Products of open sizes and loop variables cancel as polynomials do.
    Dim::from_expr(&difference).is_some_and(|d| d == 0)
}

fn flat_index(at: &[Expr], shape: &[Dim]) -> Expr {
    at.iter().zip(shape).fold(Expr::i32(0), |sum, (i, d)| sum * d.typed(DType::I32) + i)
}

/// A shape of constants and open sizes, row-major, memory of its own.
pub fn is_compact(b: &Buffer) -> bool {
    dim::of_shape(&b.shape).is_some()
        && b.strides.is_empty()
        && b.elem_offset.is_none()
        && b.axis_separators.is_empty()
        && &*b.scope == "global"
}
