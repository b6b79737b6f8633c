//! Scalar replacement across iterations: a cell that the iteration before wrote is kept in a register.
//!
//! ```text
//!                                                      last[0] = 0.0
//! for i in range(n):                               →   for i in range(n):
//!     y[i] = if_then_else(i > 0, y[i - 1], 0.0) + x[i]     value = last[0] + x[i]
//!                                                          last[0] = value
//!                                                          y[i] = value
//! ```
//!
//! A running sum otherwise waits for memory in each step, which takes four times as long as the addition.

use tilewright_ir::equal::same_expr;
use tilewright_ir::index::Linear;
use tilewright_ir::visit::{Subst, fold_expr_children, fold_func, fold_stmt_children, free_vars};
use tilewright_ir::{
    BinOp, Buffer, DType, Expr, ExprKind, Fold, ForKind, Range, Stmt, StmtKind, TensorFunc, Var,
};

/// A function whose loops keep what they read of the iteration before.
pub(super) fn carry_values(func: &TensorFunc) -> TensorFunc {
    fold_func(&mut Carry, func)
}

/// Most nodes of a loop's body as text.
const MOST_NODES: u32 = 1 << 12;

struct Carry;

impl Fold for Carry {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        carried(s).unwrap_or_else(|| fold_stmt_children(self, s))
    }
}

/// A loop over one store that reads what it stored before, with that in a register; `None` for all others.
fn carried(s: &Stmt) -> Option<Stmt> {
    let StmtKind::For { var, range, kind: ForKind::Serial, body, .. } = s.kind() else {
        return None;
    };
    let StmtKind::Store { buffer, indices, value } = body.kind() else { return None };
    if body.size() > MOST_NODES {
        return None;
    }
    let [index] = &indices[..] else { return None };
    if index.dtype().lanes != 1 || value.dtype().lanes != 1 || buffer.dtype().lanes != 1 {
        return None;
    }
    let here = Linear::from_expr(index)?;
    let step = here.coefficient(var).filter(|step| *step != 0)?;
    let before = here.plus(&Linear::constant(step, index.dtype()), -1)?;
    let last = local("last", value.dtype());
    let mut kept = Kept { var, range, buffer, before, last: &last, first: None, sometimes: false };
    let new = kept.expr(value);
    let first = kept.first?;
    let now = Var::new("value", value.dtype());
    let place = || vec![Expr::int(0, DType::I32)];
    let stores = Stmt::seq([
        Stmt::store(&last, place(), Expr::var(&now)),
        Stmt::store(buffer, indices.clone(), Expr::var(&now)),
    ]);
    let body = Stmt::let_in(&now, new, stores);
    Some(Stmt::allocate(&last, Stmt::seq([Stmt::store(&last, place(), first), s.with_body(body)])))
}

fn local(name: &str, dtype: DType) -> Buffer {
    Buffer::with_extents(name, &[1], dtype).derive(|b| b.scope = "local".into())
}

/// Replaces the read of the cell that the iteration before wrote.
struct Kept<'a> {
    var: &'a Var,
    range: &'a Range,
    buffer: &'a Buffer,
    /// The index of the iteration before.
    before: Linear,
    last: &'a Buffer,
    /// What the first iteration takes in its place.
    first: Option<Expr>,
    /// Whether a condition decides what is read here.
    sometimes: bool,
}

impl Kept<'_> {
    fn is_before(&self, e: &Expr) -> bool {
        let ExprKind::Load(buffer, indices) = e.kind() else { return false };
        let [index] = &indices[..] else { return false };
        let ahead = Linear::from_expr(index).and_then(|i| i.plus(&self.before, -1));
        buffer.data == self.buffer.data && ahead.and_then(|a| a.as_constant()) == Some(0)
    }

    /// Whether a condition holds in all iterations but the first one.
    fn is_later(&self, cond: &Expr) -> bool {
        let ExprKind::Binary(op, a, b) = cond.kind() else { return false };
        let distance = |a: &Expr, b: &Expr| {
            let of_loop = Linear::from_expr(a)?.plus(&Linear::from_expr(b)?, -1)?;
            let first = Linear::from_expr(&self.range.min)?;
            let from_first = Linear::atom(Expr::var(self.var)).plus(&first, -1)?;
            of_loop.plus(&from_first, -1)?.as_constant()
        };
        match op {
            BinOp::Gt | BinOp::Ne => distance(a, b) == Some(0),
            BinOp::Ge => distance(a, b) == Some(-1),
            BinOp::Lt => distance(b, a) == Some(0),
            BinOp::Le => distance(b, a) == Some(-1),
            _ => false,
        }
    }

    /// The register in the place of a read, where all reads agree on what it holds at first.
    fn take(&mut self, read: &Expr, first: Expr) -> Expr {
        if self.first.as_ref().is_some_and(|known| !same_expr(known, &first)) {
            return read.clone();
        }
        self.first = Some(first);
        Expr::load(self.last, vec![Expr::int(0, DType::I32)])
    }
}

impl Fold for Kept<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::IfThenElse(cond, later, first)
                if self.is_later(cond)
                    && self.is_before(later)
                    && first.effects().constant()
                    && !free_vars(first).contains(self.var) =>
            {
                self.take(e, first.clone())
            }
            ExprKind::IfThenElse(..) | ExprKind::Binary(BinOp::And | BinOp::Or, ..) => {
                let around = std::mem::replace(&mut self.sometimes, true);
                let new = fold_expr_children(self, e);
                self.sometimes = around;
                new
            }
            // The first iteration reads what memory held before.
            ExprKind::Load(buffer, indices)
                if !self.sometimes
                    && self.is_before(e)
                    && self.range.extent.as_int().is_some_and(|n| n > 0) =>
            {
                let mut at_start = Subst::vars([(self.var.clone(), self.range.min.clone())]);
                let first = indices.iter().map(|i| at_start.expr(i)).collect();
                self.take(e, Expr::load(buffer, first))
            }
            _ => fold_expr_children(self, e),
        }
    }
}
