//! The expressions of a function alone: what a flat index was split into shows again
//! (`(i * 32 + t) // 128` is `i // 4` for `0 <= t < 32`), and every statement stays.

use tilewright_ir::visit::fold_stmt_children;
use tilewright_ir::{Expr, Fold, Remarks, Stmt, StmtKind, TensorFunc};

use super::{Simplify, SimplifyOptions};
use crate::pass::{Pass, Run};

/// `renormalize_split_pattern` by name.
pub const PASS: Pass = Pass {
    name: "renormalize_split_pattern",
    summary: "quotients and remainders of flat indices by their parts; statements stay",
    options: &[],
    run: Run::Tensor(|f, _, _| Ok(indices(f))),
};

/// Simplifies indices, bounds, conditions and values by loops, guards and assumptions. Memory is
/// not followed, and no statement goes.
pub fn indices(func: &TensorFunc) -> TensorFunc {
    let (options, mut why) = (SimplifyOptions { values: false, conditions: false }, Remarks::new());
    let mut fold = Indices(Simplify::new(func, options, &mut why));
    TensorFunc { body: fold.stmt(&func.body), ..func.clone() }
}

struct Indices<'a>(Simplify<'a>);

impl Indices<'_> {
    fn scoped<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let saved = self.0.points.clone();
        let result = work(self);
        self.0.know(saved);
        result
    }

    fn under(&mut self, cond: &Expr, s: &Stmt) -> Stmt {
        self.scoped(|me| {
            me.learn(cond);
            me.stmt(s)
        })
    }

    fn learn(&mut self, cond: &Expr) {
        if !cond.effects().loads {
            self.0.learn(cond);
        }
    }
}

impl Fold for Indices<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        self.0.expression(e)
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                let indices = indices.iter().map(|i| self.0.index(i)).collect();
                let (buffer, value) = (buffer.clone(), self.0.value(value));
                Stmt::spanned(StmtKind::Store { buffer, indices, value }, s.span())
            }
            StmtKind::For { var, range, .. } => self.scoped(|me| {
                me.0.enter(var, range);
                fold_stmt_children(me, s)
            }),
            StmtKind::Block { block, .. } => self.scoped(|me| {
                for iter in &block.iters {
                    me.0.enter(&iter.var, &iter.domain);
                }
                fold_stmt_children(me, s)
            }),
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.0.index(cond);
                let then = self.under(&cond, then);
                let otherwise = otherwise.as_ref().map(|o| self.under(&!cond.clone(), o));
                Stmt::spanned(StmtKind::If { cond, then, otherwise }, s.span())
            }
            StmtKind::Assume(cond) => {
                self.learn(cond);
                s.clone()
            }
            _ => fold_stmt_children(self, s),
        }
    }
}
