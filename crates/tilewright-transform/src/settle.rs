//! Conditions that are decided where they stand.
//!
//! [`settle`] drops branches that are never taken and guards that always hold, given what is known
//! around a statement, and leaves all else as it is: what a pass has made of a loop then shows
//! without a simplification of the whole function.

use tilewright_ir::visit::fold_expr_children;
use tilewright_ir::{BinOp, Expr, ExprKind, Fold, Stmt, StmtKind};

use tilewright_polyhedral::scope::{Scope, Scoped, fold_scoped, hinted, scoped, under};

/// A statement without the branches that are decided where `scope` holds.
pub(crate) fn settle(s: &Stmt, scope: &Scope) -> Stmt {
    Settle { scope: scope.clone() }.stmt(s)
}

struct Settle {
    scope: Scope,
}

impl Scoped for Settle {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Settle {
    fn condition(&mut self, e: &Expr) -> Expr {
        if e.as_int().is_some() {
            return e.clone();
        }
        if e.dtype().lanes == 1 && !e.effects().partial {
            if self.scope.proves(e) {
                return Expr::bool(true);
            }
            if self.scope.proves(&!e.clone()) {
                return Expr::bool(false);
            }
        }
        match e.kind() {
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) if e.dtype().lanes == 1 => {
                let first = self.condition(a);
                let second = under(self, &first, *op == BinOp::And, |s| s.condition(b));
                // What acts stays.
                let acts = second.as_int().is_some() && first.effects().impure();
                let decided = first.as_int().or(second.as_int()).is_some() && !acts;
                if first.ptr_eq(a) && second.ptr_eq(b) && !decided {
                    e.clone()
                } else if !decided {
                    Expr::binary(*op, first, second)
                } else if *op == BinOp::And {
                    first.and(second)
                } else {
                    first.or(second)
                }
            }
            ExprKind::Not(a) => {
                let inner = self.condition(a);
                if inner.ptr_eq(a) && a.as_int().is_none() { e.clone() } else { !inner }
            }
            _ => match hinted(e) {
                Some(inner) => {
                    let new = self.condition(inner);
                    match new.as_int() {
                        Some(_) => new,
                        None if new.ptr_eq(inner) => e.clone(),
                        None => e.replace(|part| part.ptr_eq(inner).then(|| new.clone())),
                    }
                }
                None => fold_expr_children(self, e),
            },
        }
    }
}

/// Nothing, where a statement is around nothing.
pub(crate) fn without_nothing(s: Stmt) -> Stmt {
    if s.body().is_some_and(Stmt::is_nop) { Stmt::nop() } else { s }
}

impl Fold for Settle {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::IfThenElse(cond, a, b) => {
                let new = self.condition(cond);
                if let Some(taken) = new.as_int() {
                    return self.expr(if taken != 0 { a } else { b });
                }
                let x = under(self, &new, true, |s| s.expr(a));
                let y = under(self, &new, false, |s| s.expr(b));
                if new.ptr_eq(cond) && x.ptr_eq(a) && y.ptr_eq(b) {
                    e.clone()
                } else {
                    Expr::if_then_else(new, x, y)
                }
            }
            ExprKind::Select(cond, a, b) if cond.dtype().lanes == 1 => {
                let new = self.condition(cond);
                match new.as_int() {
                    Some(0) if !a.effects().impure() => self.expr(b),
                    Some(v) if v != 0 && !b.effects().impure() => self.expr(a),
                    _ => fold_expr_children(self, e),
                }
            }
            ExprKind::Binary(BinOp::And | BinOp::Or, ..) => self.condition(e),
            _ => fold_expr_children(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::If { cond, then, otherwise } => {
                let new = self.condition(cond);
                if let Some(taken) = new.as_int() {
                    return match (taken != 0, otherwise) {
                        (true, _) => self.stmt(then),
                        (false, Some(otherwise)) => self.stmt(otherwise),
                        (false, None) => Stmt::nop(),
                    };
                }
                let yes = under(self, &new, true, |f| f.stmt(then));
                let no = otherwise.as_ref().map(|o| under(self, &new, false, |f| f.stmt(o)));
                let no = no.filter(|o| !o.is_nop());
                let gone = yes.is_nop() && !new.effects().impure();
                match no {
                    None if gone => yes,
                    Some(no) if gone => {
                        let cond = !new;
                        Stmt::spanned(StmtKind::If { cond, then: no, otherwise: None }, s.span())
                    }
                    no => {
                        let kind = StmtKind::If { cond: new, then: yes, otherwise: no };
                        Stmt::spanned(kind, s.span())
                    }
                }
            }
            StmtKind::Block { bindings, predicate, block } => {
                let predicate = self.condition(predicate);
                if predicate.is_false() {
                    return Stmt::nop();
                }
                let bindings = bindings.iter().map(|b| self.expr(b)).collect();
                let block = scoped(self, |f| {
                    f.scope.enter_block(block);
                    f.block(block)
                });
                Stmt::spanned(StmtKind::Block { bindings, predicate, block }, s.span())
            }
            StmtKind::For { range, .. } => {
                let pure = [&range.min, &range.extent].iter().all(|e| !e.effects().impure());
                if pure && self.scope.proves(&range.extent.clone().less_equal(0)) {
                    return Stmt::nop();
                }
                let new = fold_scoped(self, s);
                if pure { without_nothing(new) } else { new }
            }
            StmtKind::Let { value, .. } if value.effects().impure() => fold_scoped(self, s),
            StmtKind::Let { .. }
            | StmtKind::Allocate { .. }
            | StmtKind::Declare { .. }
            | StmtKind::Constant { .. } => without_nothing(fold_scoped(self, s)),
            // What it says may rest on all of it.
            StmtKind::Assume(_) => s.clone(),
            _ => fold_scoped(self, s),
        }
    }
}
