//! Sizes in branches that run where a size has a value.
//!
//! ```text
//! if n == 1:                                  if n == 1:
//!     B[ramp(i * n, n, 16)] = ...      →          B[ramp(i, 1, 16)] = ...
//! ```
//!
//! What lies `n` cells apart lies side by side where `n` is one, and is one vector.

use tilewright_ir::visit::{Subst, fold_stmt_children};
use tilewright_ir::{BinOp, Expr, ExprKind, Fold, Stmt, StmtKind, TensorFunc, Var};

/// A function in whose branches a variable that their condition says the value of is that number.
pub(super) fn sizes_in_branches(func: &TensorFunc) -> TensorFunc {
    TensorFunc { body: Known.stmt(&func.body), ..func.clone() }
}

struct Known;

impl Fold for Known {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let StmtKind::If { cond, then, otherwise } = s.kind() else {
            return fold_stmt_children(self, s);
        };
        let Some((var, value)) = value_of(cond) else { return fold_stmt_children(self, s) };
        let then = Subst::vars([(var, value)]).stmt(&self.stmt(then));
        let otherwise = otherwise.as_ref().map(|s| self.stmt(s));
        Stmt::spanned(StmtKind::If { cond: cond.clone(), then, otherwise }, s.span())
    }
}

/// The variable that has a value where a condition holds.
fn value_of(cond: &Expr) -> Option<(Var, Expr)> {
    let ExprKind::Binary(BinOp::Eq, a, b) = cond.kind() else { return None };
    let (var, value) = if b.as_int().is_some() { (a, b) } else { (b, a) };
    value.as_int()?;
    Some((var.as_var().filter(|v| v.dtype().is_int())?.clone(), value.clone()))
}
