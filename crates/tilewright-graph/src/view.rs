//! Functions that only relabel: the result is the input in row-major order under another shape.
//!
//! Such a function needs no code. The memory planner gives its result the memory of its input.

use tilewright_analysis::open_stages;
use tilewright_ir::index::{same_all, simplify};
use tilewright_ir::visit::{Visit, walk_stmt};
use tilewright_ir::{Buffer, DType, Dim, Expr, ExprKind, Stmt, StmtKind, TensorFunc, Var, dim};

/// Whether a function of one input and one result copies the input, element by element in
/// row-major order. Decided by the position of the loaded and the stored element in memory: their
/// difference must simplify to zero. `false` where that is not so or not proven.
pub fn relabels(func: &TensorFunc) -> bool {
    let Some(found) = open_stages(func) else { return relabels_flat(func) };
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

/// [`relabels`] of a lowered function, which accesses its buffers by one axis: it writes nothing but elements of the
/// input where they are in the result. What it leaves out may be anything, as the input's element.
fn relabels_flat(func: &TensorFunc) -> bool {
    let buffers: Vec<_> = func.buffers().collect();
    let [from, to] = buffers[..] else { return false };
    let cells = |b: &Buffer| dim::of_shape(&b.shape).map(dim::product);
    let same_cells =
        cells(from).is_some() && cells(from) == cells(to) && from.dtype() == to.dtype();
    if func.ret.is_some() || !same_cells || !is_compact(from) || !is_compact(to) {
        return false;
    }
    let mut copies = FlatCopies { from, to, only: true };
    copies.stmt(&func.body);
    copies.only
}

/// Whether statements are loops, conditions, and copies of elements to the same place of another buffer.
struct FlatCopies<'a> {
    from: &'a Buffer,
    to: &'a Buffer,
    only: bool,
}

impl Visit for FlatCopies<'_> {
    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                let is_copied = matches!(value.kind(), ExprKind::Load(from, at)
                    if is_flat(from, self.from) && same_all(at, indices));
                self.only &= is_flat(buffer, self.to) && is_copied;
            }
            StmtKind::For { .. }
            | StmtKind::If { .. }
            | StmtKind::Let { .. }
            | StmtKind::Seq(_)
            | StmtKind::Declare { .. } => walk_stmt(self, s),
            _ => self.only = false,
        }
    }

    fn expr(&mut self, e: &Expr) {
        self.only &= !e.effects().impure();
    }
}

/// Whether a buffer is the memory of another one, as one axis of its elements.
fn is_flat(b: &Buffer, memory: &Buffer) -> bool {
    b.data == memory.data && b.dtype() == memory.dtype() && b.shape.len() == 1 && is_compact(b)
}

/// A function that [relabels], as a copy of elements in one loop: nothing is to be derived or checked in it.
pub fn flat_copy(func: &TensorFunc) -> Option<TensorFunc> {
    let buffers: Vec<&Buffer> = func.buffers().collect();
    let [from, to] = buffers[..] else { return None };
    let cells = dim::product(dim::of_shape(&to.shape)?).typed(DType::I32);
    let flat = |b: &Buffer| b.derive(|d| d.shape = vec![cells.clone()]);
    let (x, y) = (flat(from), flat(to));
    let i = Var::new("i", DType::I32);
    let copy =
        Stmt::serial(&i, cells.clone(), Stmt::store(&y, vec![i.expr()], x.load(vec![i.expr()])));
    let declared = [y, x].into_iter();
    let body = declared.fold(copy, |body, buffer| Stmt::new(StmtKind::Declare { buffer, body }));
    Some(TensorFunc { body, ..func.clone() })
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
