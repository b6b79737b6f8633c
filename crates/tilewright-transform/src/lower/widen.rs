//! A loop whose bounds are computed in 64 bits and narrowed counts in 64 bits.
//!
//! ```text
//! for k in range(T.Cast("int32", T.max(n - i, T.int64(0))), 3):
//!     B[i] = B[i] + F[k] * A[i - T.Cast("int64", k)]
//!         →
//! for k in range(T.max(n - i, T.int64(0)), T.int64(3)):
//!     B[i] = B[i] + F[k] * A[i - k]
//! ```
//!
//! The iterations stay: the bounds are the same numbers, which sets prove. Intervals of what is narrowed are known
//! only where it certainly fits, and bounds of accesses are derived from those of loops.

use tilewright_ir::visit::{fold_expr_children, fold_stmt_children};
use tilewright_ir::{
    BinOp, DType, Expr, ExprKind, Fold, ForKind, Range, Stmt, StmtKind, TensorFunc, Var,
};
use tilewright_polyhedral::scope::{Scope, Scoped, fold_scoped};

/// A function whose loops count in the types of their bounds.
pub(super) fn widen_loops(func: &TensorFunc) -> TensorFunc {
    let mut widen = Widen { scope: Scope::at_entry(func) };
    TensorFunc { body: widen.stmt(&func.body), ..func.clone() }
}

struct Widen {
    scope: Scope,
}

impl Scoped for Widen {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Fold for Widen {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match self.widened(s) {
            Some(new) => fold_scoped(self, &new),
            None => fold_scoped(self, s),
        }
    }
}

impl Widen {
    /// The same loop in 64 bits; `None` where its bounds are not narrowed, or might be other numbers.
    fn widened(&self, s: &Stmt) -> Option<Stmt> {
        let StmtKind::For { var, range, kind: ForKind::Serial, annotations, body } = s.kind()
        else {
            return None;
        };
        let Range { min, extent } = range;
        if var.dtype() != DType::I32 || !is_narrowed(min) && !is_narrowed(extent) {
            return None;
        }
        let wide = Range { min: wide(min), extent: wide(extent) };
        let is_same = |e: &Expr, wide: &Expr| {
            self.scope.proves(&e.clone().cast(DType::I64).equal(wide.clone()))
        };
        if !is_same(min, &wide.min) || !is_same(extent, &wide.extent) {
            return None;
        }
        let new = Var::new(var.name().clone(), DType::I64);
        let body = Retype { var, new: &new }.stmt(body);
        let annotations = annotations.clone();
        let kind =
            StmtKind::For { var: new, range: wide, kind: ForKind::Serial, annotations, body };
        Some(Stmt::spanned(kind, s.span()))
    }
}

/// Whether a bound was computed in 64 bits.
fn is_narrowed(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Cast(of) => e.dtype() == DType::I32 && of.dtype() == DType::I64,
        ExprKind::Binary(op, a, b) => has_wide_form(*op) && (is_narrowed(a) || is_narrowed(b)),
        _ => false,
    }
}

fn has_wide_form(op: BinOp) -> bool {
    matches!(op, BinOp::Add | BinOp::Sub | BinOp::Min | BinOp::Max)
}

/// A number of 32 bits as one of 64, if no operation in it wraps.
fn wide(e: &Expr) -> Expr {
    match e.kind() {
        ExprKind::Cast(of) if of.dtype() == DType::I64 => of.clone(),
        ExprKind::Binary(op, a, b) if has_wide_form(*op) => Expr::binary(*op, wide(a), wide(b)),
        _ => e.clone().cast(DType::I64),
    }
}

/// Puts a variable of 64 bits in the place of one of 32: as it is where an index or a wider number is meant.
struct Retype<'a> {
    var: &'a Var,
    new: &'a Var,
}

impl Retype<'_> {
    fn is_var(&self, e: &Expr) -> bool {
        e.as_var() == Some(self.var)
    }

    fn indices(&mut self, indices: &[Expr]) -> Vec<Expr> {
        let index = |e: &Expr| if self.is_var(e) { self.new.expr() } else { self.expr(e) };
        indices.iter().map(index).collect()
    }
}

impl Fold for Retype<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Load(buffer, indices) => buffer.load(self.indices(indices)),
            ExprKind::Cast(of) if self.is_var(of) && e.dtype() == DType::I64 => self.new.expr(),
            _ if self.is_var(e) => self.new.expr().cast(DType::I32),
            _ => fold_expr_children(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let StmtKind::Store { buffer, indices, value } = s.kind() else {
            return fold_stmt_children(self, s);
        };
        let (indices, value) = (self.indices(indices), self.expr(value));
        Stmt::spanned(StmtKind::Store { buffer: buffer.clone(), indices, value }, s.span())
    }
}
