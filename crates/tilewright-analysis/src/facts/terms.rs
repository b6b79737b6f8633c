//! What conditions and values say, before the sets look at them.

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::fold_expr_children;
use tilewright_ir::{Expr, ExprKind, Fold};

use crate::neutral::{ANY, step};

/// The elements that a value reads, each once.
pub(crate) fn loads(value: &Expr) -> Vec<Expr> {
    let mut loads: Vec<Expr> = Vec::new();
    value.for_each(|e| {
        if matches!(e.kind(), ExprKind::Load(..)) && !loads.iter().any(|x| same_expr(x, e)) {
            loads.push(e.clone());
        }
        e.effects().loads
    });
    loads
}

/// A value with another one in the place of an operand, reduced.
pub(crate) fn folded(value: &Expr, operand: &Expr, by: &Expr) -> Expr {
    struct Replace<'a>(&'a Expr, &'a Expr);
    impl Fold for Replace<'_> {
        fn expr(&mut self, e: &Expr) -> Expr {
            if same_expr(e, self.0) {
                return self.1.clone();
            }
            step(fold_expr_children(self, e), ANY)
        }
    }
    Replace(operand, by).expr(value)
}
