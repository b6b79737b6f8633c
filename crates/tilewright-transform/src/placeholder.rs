//! The end of `T.assume` and `T.undef()`: what they allowed has been done.
//!
//! [`remove_assume`] drops every assumption. [`remove_store_undef`] leaves no `T.undef()`: a store of
//! an arbitrary value is no store; one that is arbitrary under a condition becomes one under the
//! opposite; an assumption about one is a permission, and goes; what is left elsewhere
//! becomes zero, which is as good as any other value.

use tilewright_ir::visit::{fold_expr_children, fold_stmt_children, walk_expr};
use tilewright_ir::{
    BinOp, CallTarget, Expr, ExprKind, Fold, Stmt, StmtKind, TensorFunc, Var, Visit,
};

use crate::pass::{Pass, Run};
use tilewright_ir::prune::{only_effects, prune};
use tilewright_polyhedral::scop::rewrite;

/// `remove_assume` by name.
pub(crate) const ASSUME: Pass = Pass {
    name: "remove_assume",
    summary: "drop assumptions",
    options: &[],
    run: Run::Tensor(|f, _, _| Ok(remove_assume(f))),
};

/// `remove_store_undef` by name.
pub(crate) const STORE: Pass = Pass {
    name: "remove_store_undef",
    summary: "drop stores of arbitrary values; what is arbitrary elsewhere becomes zero",
    options: &[],
    run: Run::Tensor(|f, _, _| Ok(remove_store_undef(f))),
};

/// Drops assumptions, and what was only there for them.
pub fn remove_assume(func: &TensorFunc) -> TensorFunc {
    TensorFunc {
        body: prune(&rewrite(&func.body, &mut |_, s| match s.kind() {
            StmtKind::Assume(cond) => Some(only_effects([cond])),
            _ => None,
        })),
        ..func.clone()
    }
}

/// Drops stores of arbitrary values and assumptions about them, and makes all other arbitrary values
/// zero.
pub fn remove_store_undef(func: &TensorFunc) -> TensorFunc {
    let dropped = Stores.stmt(&func.body);
    TensorFunc { body: prune(&Zero.stmt(&dropped)), ..func.clone() }
}

/// When a value is arbitrary: always, never, or where a condition does not hold, under which it is
/// another one.
enum When {
    Never,
    Unless(Expr, Expr),
    Always,
}

/// Whether an expression is a product with the constant zero.
fn is_zero_times(e: &Expr) -> bool {
    matches!(e.kind(), ExprKind::Binary(BinOp::Mul, a, b) if is_zero(a) || is_zero(b))
}

fn is_zero(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Int(v) => *v == 0,
        ExprKind::Float(v) => *v == 0.0,
        _ => false,
    }
}

/// When a value is arbitrary. A pure expression of an arbitrary value is one, but for zero times
/// anything.
fn arbitrary(e: &Expr) -> When {
    match e.kind() {
        ExprKind::Undef => When::Always,
        _ if is_zero_times(e) => When::Never,
        ExprKind::Binary(BinOp::And | BinOp::Or, a, _) => when_any(&[a]),
        ExprKind::Binary(_, a, b) => when_any(&[a, b]),
        ExprKind::Cast(a) | ExprKind::Not(a) | ExprKind::Broadcast(a) => when_any(&[a]),
        ExprKind::Call(CallTarget::Intrin(_) | CallTarget::Reinterpret(_), args) => {
            when_any(&args.iter().collect::<Vec<_>>())
        }
        ExprKind::Select(c, a, b) | ExprKind::IfThenElse(c, a, b) if c.dtype().lanes == 1 => {
            match (arbitrary(c), arbitrary(a), arbitrary(b)) {
                (When::Always, ..) | (_, When::Always, When::Always) => When::Always,
                (_, When::Always, When::Never) => When::Unless(!c.clone(), b.clone()),
                (_, When::Never, When::Always) => When::Unless(c.clone(), a.clone()),
                _ => When::Never,
            }
        }
        _ => When::Never,
    }
}

fn when_any(parts: &[&Expr]) -> When {
    if parts.iter().any(|e| matches!(arbitrary(e), When::Always)) {
        When::Always
    } else {
        When::Never
    }
}

/// Drops stores of arbitrary values. A binding of one that is used once, and not repeatedly, is
/// put where it is used: all uses of a binding have one value, as long as there are several.
struct Stores;

impl Fold for Stores {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Let { var, value, body } if matches!(arbitrary(value), When::Always) => {
                let mut uses = Uses { var, count: 0, repeated: 1 };
                uses.stmt(body);
                if uses.count <= 1 {
                    let value = Expr::new(ExprKind::Undef, var.dtype());
                    let mut put = tilewright_ir::visit::Subst::vars([(var.clone(), value)]);
                    self.stmt(&put.stmt(body))
                } else {
                    fold_stmt_children(self, s)
                }
            }
            StmtKind::Store { buffer, indices, value } => match arbitrary(value) {
                When::Never => s.clone(),
                When::Always => only_effects(indices.iter().chain([value])),
                When::Unless(cond, _) if cond.effects().arbitrary || value.effects().calls => {
                    s.clone()
                }
                When::Unless(cond, value) => {
                    let (buffer, indices) = (buffer.clone(), indices.clone());
                    let kind = StmtKind::Store { buffer, indices, value };
                    Stmt::guard(cond, Stmt::spanned(kind, s.span()))
                }
            },
            StmtKind::Assume(cond) if cond.effects().arbitrary => only_effects([cond]),
            _ => fold_stmt_children(self, s),
        }
    }
}

/// How often a variable is used when a statement runs, at most; in a loop, often.
struct Uses<'a> {
    var: &'a Var,
    count: usize,
    repeated: usize,
}

impl Visit for Uses<'_> {
    fn expr(&mut self, e: &Expr) {
        if e.as_var() == Some(self.var) {
            self.count += self.repeated;
        }
        walk_expr(self, e);
    }

    fn stmt(&mut self, s: &Stmt) {
        let before = self.repeated;
        if matches!(s.kind(), StmtKind::For { .. }) {
            self.repeated = 2;
        }
        tilewright_ir::visit::walk_stmt(self, s);
        self.repeated = before;
    }
}

/// Zero for every arbitrary value, and for zero times one.
struct Zero;

impl Fold for Zero {
    fn expr(&mut self, e: &Expr) -> Expr {
        let vanishes = is_zero_times(e) && e.effects().arbitrary && !e.effects().calls;
        if !vanishes && !matches!(e.kind(), ExprKind::Undef) {
            return fold_expr_children(self, e);
        }
        let zero = Expr::constant(0.0, e.dtype().scalar());
        match e.dtype().lanes {
            1 => zero,
            lanes => Expr::broadcast(zero, lanes),
        }
    }
}
