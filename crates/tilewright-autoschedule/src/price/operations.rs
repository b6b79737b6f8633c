//! Operations that take longer than simple ones, which run while memory is waited for.

use tilewright_ir::visit::{Visit, walk_expr};
use tilewright_ir::{BinOp, CallTarget, Expr, ExprKind, Stmt};
use tilewright_target::costs::DIVISION;

/// How many operations an expression takes beside simple ones, which run while memory is waited for.
pub(crate) fn operations(e: &Expr) -> f64 {
    let mut all = Operations(0);
    all.expr(e);
    all.0 as f64
}

/// How many operations a statement takes beside simple ones, each time that it runs.
pub(crate) fn operations_of(s: &Stmt) -> f64 {
    let mut all = Operations(0);
    all.stmt(s);
    all.0 as f64
}

/// Operations beside simple ones.
struct Operations(usize);

impl Visit for Operations {
    fn expr(&mut self, e: &Expr) {
        self.0 += match e.kind() {
            ExprKind::Binary(BinOp::Div, ..) if e.dtype().is_float() => DIVISION,
            ExprKind::Call(CallTarget::Intrin(op), _) if op.cost() > 1 => op.cost(),
            _ => 0,
        };
        walk_expr(self, e);
    }
}
