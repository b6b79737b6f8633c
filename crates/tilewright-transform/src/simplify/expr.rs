//! Expressions: indices and conditions by the sets, data by what its type allows.

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{fold_expr_children, free_vars};
use tilewright_ir::{BinOp, Expr, ExprKind};
use tilewright_polyhedral::{Domain, cost};

use super::{Simplify, data};
use tilewright_analysis::equivalence::same_value;
use tilewright_ir::index::multiply_out;
use tilewright_polyhedral::overflow::overflows;

/// How many forms are remembered at a place: an element is often read and written.
const REMEMBERED: usize = 16;

impl Simplify<'_> {
    /// An index, a bound or a condition.
    pub(super) fn index(&mut self, e: &Expr) -> Expr {
        self.within(false, |s| s.expression(e))
    }

    /// A value that is stored or passed on.
    pub(super) fn value(&mut self, e: &Expr) -> Expr {
        self.within(true, |s| s.expression(e))
    }

    pub(super) fn within<R>(&mut self, data: bool, work: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.data, data);
        let result = work(self);
        self.data = outer;
        result
    }

    /// A condition; what is known of memory may decide it without standing in it.
    pub(super) fn condition(&mut self, cond: &Expr) -> Expr {
        let cond = self.index(cond);
        match self.by_memory(&cond) {
            Some(decided) => Expr::bool(decided),
            None => cond,
        }
    }

    /// Whether a condition holds, by what is known of the memory that it reads.
    pub(super) fn by_memory(&mut self, cond: &Expr) -> Option<bool> {
        if !self.options.conditions || !cond.effects().loads {
            return None;
        }
        let known = self.memory.resolve(cond);
        if known.ptr_eq(cond) || overflows(&known, &self.domain()) {
            return None;
        }
        self.index(&known).as_int().map(|v| v != 0)
    }

    /// The value in the place of a load, where that is known and no more work.
    fn cell(&mut self, e: &Expr) -> Expr {
        let ExprKind::Load(buffer, indices) = e.kind() else { return e.clone() };
        if !self.options.values {
            return e.clone();
        }
        let value = self.memory.value(buffer, indices).filter(|v| v.effects().constant());
        let Some(value) = value.map(|v| self.value(&v)) else { return e.clone() };
        // Index arithmetic must not take over what has wrapped, and a block stands for itself.
        if cost(&value) > cost(e)
            || free_vars(&value).iter().any(|v| self.foreign.contains(v))
            || overflows(&value, &self.domain())
        {
            return e.clone();
        }
        value
    }

    /// The simplest form of an expression whose parts may be evaluated in any order.
    fn simplest(&mut self, e: &Expr) -> Expr {
        if e.as_int().is_some() || (e.as_var().is_some() && !e.dtype().is_bool()) {
            return e.clone();
        }
        if let Some((.., done)) = self
            .simplest
            .borrow()
            .iter()
            .find(|(of, data, _)| *data == self.data && same_expr(of, e))
        {
            return done.clone();
        }
        let domain = self.points.domain();
        let new = if self.data && overflows(e, domain) { e.clone() } else { simplest(domain, e) };
        let mut done = self.simplest.borrow_mut();
        done.truncate(REMEMBERED - 1);
        done.push_front((e.clone(), self.data, new.clone()));
        new
    }

    /// `a and b` (`op` is `And`) or `a or b`: the side that is evaluated second is simplified
    /// under the first.
    fn logic(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr) -> Expr {
        let decided = op == BinOp::Or;
        let a2 = self.expression(a);
        let b2 = self.under(&a2.clone().being(!decided), |s| s.expression(b));
        match (a2.as_int(), b2.as_int()) {
            (Some(v), _) if (v != 0) == decided => Expr::bool(decided),
            (Some(_), _) => b2,
            (_, Some(v)) if (v != 0) != decided => a2,
            (_, Some(_)) if !a2.effects().impure() => Expr::bool(decided),
            _ if a2.ptr_eq(a) && b2.ptr_eq(b) => e.clone(),
            _ => Expr::binary(op, a2, b2),
        }
    }

    /// The value of a choice that is that of both sides.
    fn one_value(&mut self, cond: &Expr, yes: &Expr, no: &Expr) -> Option<Expr> {
        let data = self.data;
        self.one_for_both(cond, yes, no, |at, x, y| same_value(at, x, y, data))
    }

    pub(super) fn expression(&mut self, e: &Expr) -> Expr {
        let t = e.dtype();
        let traits = e.effects();
        if traits.calls {
            return e.clone();
        }
        let e = &match e.kind() {
            ExprKind::Load(..) => {
                let load = self.within(false, |s| fold_expr_children(s, e));
                self.cell(&load)
            }
            _ => e.clone(),
        };
        if t.lanes == 1 && (t.is_int() || t.is_bool()) && traits.free_order() {
            let inner = match e.kind() {
                ExprKind::Load(..) => e.clone(),
                _ if traits.loads || traits.floats => data::reduced(fold_expr_children(self, e)),
                _ => e.clone(),
            };
            self.bound_calls(&inner);
            return self.simplest(&inner);
        }
        match e.kind() {
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) if t.lanes == 1 => {
                self.logic(e, *op, a, b)
            }
            ExprKind::IfThenElse(cond, a, b) => {
                let cond2 = self.condition(cond);
                if let Some(taken) = cond2.as_int() {
                    return self.expression(if taken != 0 { a } else { b });
                }
                let x = self.under(&cond2, |s| s.expression(a));
                let y = self.under(&!cond2.clone(), |s| s.expression(b));
                match self.one_value(&cond2, &x, &y) {
                    Some(one) => one,
                    None if cond2.ptr_eq(cond) && x.ptr_eq(a) && y.ptr_eq(b) => e.clone(),
                    None => Expr::if_then_else(cond2, x, y),
                }
            }
            ExprKind::Select(cond, a, b) if cond.dtype().lanes == 1 => {
                let cond = self.condition(cond);
                match cond.as_int() {
                    Some(0) if !a.effects().calls => return self.expression(b),
                    Some(v) if v != 0 && !b.effects().calls => return self.expression(a),
                    _ => {}
                }
                let (x, y) = (self.expression(a), self.expression(b));
                let one = self.one_value(&cond, &x, &y);
                one.unwrap_or_else(|| Expr::select(cond, x, y))
            }
            ExprKind::Load(..) => e.clone(),
            ExprKind::Let(var, value, body) => {
                let value = self.expression(value);
                let body = self.scoped(|s| {
                    s.bind(var, &value);
                    s.expression(body)
                });
                Expr::let_in(var.clone(), value, body)
            }
            _ => {
                let new = data::reduced(fold_expr_children(self, e));
                if traits.impure() && !new.effects().impure() { self.expression(&new) } else { new }
            }
        }
    }
}

/// The simplest form under a domain.
fn simplest(domain: &Domain, e: &Expr) -> Expr {
    let plain = domain.simplify(e);
    if !e.dtype().is_int() {
        return plain;
    }
    let expanded = multiply_out(e);
    if expanded.ptr_eq(e) {
        return plain;
    }
    let expanded = domain.simplify(&expanded);
    if cost(&expanded) <= cost(&plain) { expanded } else { plain }
}
