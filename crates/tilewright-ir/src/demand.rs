//! What evaluating an expression demands, and which of its parts decide that.
//!
//! * [`demand`]: the condition on an operand under which one operation is defined; [`unmet`]: the
//!   first operation of an expression for which it is not proven.
//! * [`decisive_loads`]: the loads whose values decide more than the value of the expression. In
//!   `B[i] + A[B[j]] // B[k]`, these are `B[j]`, which says what is read, and `B[k]`, which must not
//!   be zero. A pass that changes what such a load reads has to show that the program still may run,
//!   even where the result is unused.
//!
//! A load counts as something that may fail: whether its indices are in range is asked elsewhere.
//! Shared nodes are visited once.

use crate::hash::HashSet;
use std::fmt;

use crate::dtype::DType;
use crate::expr::{BinOp, CallTarget, Expr, ExprKind, Var};
use crate::visit::{Visit, walk_expr};

/// What an operation needs of one of its operands to be defined.
#[derive(Clone, Debug)]
pub struct Demand {
    pub operand: Expr,
    /// The condition on it.
    pub holds: Expr,
    kind: Need,
}

/// The kinds of such needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Divisor,
    Shift,
    Exponent,
}

impl fmt::Display for Demand {
    /// What the operation does, and why that may be undefined.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operand = &self.operand;
        match self.kind {
            Need::Divisor => write!(f, "divides by `{operand}`, which may be zero"),
            Need::Shift => write!(f, "shifts by `{operand}`, which may be out of range"),
            Need::Exponent => write!(f, "raises to the power `{operand}`, which may be negative"),
        }
    }
}

/// The operand of a node that an operation is not defined for all values of, and what it needs;
/// `None` where the operand is a constant that is in range.
fn need(kind: &ExprKind, dtype: DType) -> Option<(&Expr, Need)> {
    let (operand, need) = match kind {
        ExprKind::Binary(
            BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod,
            _,
            by,
        ) => (by, Need::Divisor),
        ExprKind::Call(CallTarget::Intrin(op), args) => (args.get(1)?, op.need(dtype)?),
        _ => return None,
    };
    (!scalar(operand).as_int().is_some_and(|k| match need {
        Need::Divisor => k != 0,
        Need::Shift => (0..i64::from(dtype.bits)).contains(&k),
        Need::Exponent => k >= 0,
    }))
    .then_some((operand, need))
}

/// Whether a node, apart from its parts, is not defined for all operands.
pub(crate) fn is_partial(kind: &ExprKind, dtype: DType) -> bool {
    need(kind, dtype).is_some()
}

/// What the outermost operation of an expression needs; `None` where it is always defined.
pub fn demand(e: &Expr) -> Option<Demand> {
    let (operand, kind) = need(e.kind(), e.dtype())?;
    let holds = match kind {
        Need::Divisor => operand.clone().not_equal(0),
        Need::Shift => {
            operand.clone().greater_equal(0).and(operand.clone().less(i64::from(e.dtype().bits)))
        }
        Need::Exponent => operand.clone().greater_equal(0),
    };
    Some(Demand { operand: operand.clone(), holds, kind })
}

/// The value of every lane, where it is the same.
fn scalar(e: &Expr) -> &Expr {
    match e.kind() {
        ExprKind::Broadcast(inner) => inner,
        _ => e,
    }
}

/// The first operation in an expression whose demand is not proven.
pub fn unmet(e: &Expr, proves: impl Fn(&Expr) -> bool) -> Option<Demand> {
    let mut found = Vec::new();
    e.for_each(|part| {
        found.extend(demand(part));
        part.effects().partial
    });
    found.into_iter().find(|d| !proves(&d.holds))
}

/// The loads in an expression whose values decide more than its value: what is read, whether an
/// operation is defined, whether something that may fail is evaluated, what a call gets.
pub fn decisive_loads(e: &Expr) -> Vec<Expr> {
    let mut decisive = Decisive::default();
    decisive.expr(e);
    decisive.found
}

#[derive(Default)]
struct Decisive {
    found: Vec<Expr>,
    /// Variables of bindings whose values decide something.
    vars: HashSet<Var>,
    /// Whether the value of what is visited decides something.
    decides: bool,
    seen: HashSet<(usize, bool)>,
}

impl Decisive {
    /// Visits a part whose value decides something if `decides`, or if that of the whole does.
    fn part(&mut self, e: &Expr, decides: bool) {
        let before = self.decides;
        self.decides |= decides;
        self.expr(e);
        self.decides = before;
    }
}

impl Visit for Decisive {
    fn expr(&mut self, e: &Expr) {
        if !self.seen.insert((e.address(), self.decides)) {
            return;
        }
        match e.kind() {
            ExprKind::Var(v) if self.decides => {
                self.vars.insert(v.clone());
            }
            ExprKind::Load(_, indices) => {
                if self.decides {
                    self.found.push(e.clone());
                }
                indices.iter().for_each(|i| self.part(i, true));
            }
            ExprKind::Call(CallTarget::Extern(_) | CallTarget::Opaque(_), args) => {
                args.iter().for_each(|a| self.part(a, true));
            }
            ExprKind::IfThenElse(c, yes, no) => {
                self.part(c, may_fail(yes) || may_fail(no));
                self.expr(yes);
                self.expr(no);
            }
            ExprKind::Binary(BinOp::And | BinOp::Or, a, b) => {
                self.part(a, may_fail(b));
                self.expr(b);
            }
            ExprKind::Let(v, value, body) => {
                self.expr(body);
                // In a part that decides, every variable does that the body uses.
                let before = std::mem::replace(&mut self.decides, self.vars.contains(v));
                self.expr(value);
                self.decides = before;
            }
            _ => {
                if let Some(d) = demand(e) {
                    self.part(&d.operand, true);
                }
                walk_expr(self, e);
            }
        }
    }
}

fn may_fail(e: &Expr) -> bool {
    e.effects().may_fail()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Intrin;
    use crate::buffer::Buffer;
    use crate::dtype::DType;

    fn decisive(e: &Expr) -> Vec<String> {
        decisive_loads(e).iter().map(Expr::to_string).collect()
    }

    #[test]
    fn indices_divisors_shifts_calls_and_conditions_of_what_may_fail_decide() {
        let (a, b) = (
            Buffer::with_extents("A", &[8], DType::I32),
            Buffer::with_extents("B", &[8], DType::I32),
        );
        let at = |k: i32| b.load([Expr::i32(k)]);
        let from = |e: Expr| a.load([e]);
        let cond = || at(1).greater(0);
        for (e, loads) in [
            (at(0) + at(1) * from(Expr::i32(2)), vec![]),
            (at(0) + from(at(1)), vec!["B[1]"]),
            (from(from(at(1))), vec!["A[B[1]]", "B[1]"]),
            (at(0).floordiv(at(1)), vec!["B[1]"]),
            (at(0).floordiv(3), vec![]),
            (Expr::binary(BinOp::TruncMod, Expr::i32(5), at(1)), vec!["B[1]"]),
            (call_of(Intrin::Shl, at(0), at(1)), vec!["B[1]"]),
            (call_of(Intrin::Shl, at(0), Expr::i32(3)), vec![]),
            (call_of(Intrin::Pow, at(0), at(1)), vec!["B[1]"]),
            (Expr::call(CallTarget::Extern("f".into()), vec![at(1)], DType::I32), vec!["B[1]"]),
            (Expr::if_then_else(cond(), Expr::i32(1), Expr::i32(2)), vec![]),
            (Expr::if_then_else(cond(), from(Expr::i32(1)), Expr::i32(2)), vec!["B[1]"]),
            (Expr::select(cond(), from(Expr::i32(1)), Expr::i32(2)), vec![]),
            (
                Expr::select(
                    cond().and(Expr::i32(1).floordiv(at(2)).greater(0)),
                    Expr::i32(1),
                    Expr::i32(2),
                ),
                vec!["B[1]", "B[2]"],
            ),
        ] {
            assert_eq!(decisive(&e), loads, "{e}");
        }
    }

    fn call_of(f: Intrin, x: Expr, y: Expr) -> Expr {
        Expr::call(CallTarget::Intrin(f), vec![x, y], DType::I32)
    }

    #[test]
    fn a_binding_decides_where_its_variable_does() {
        let b = Buffer::with_extents("B", &[8], DType::I32);
        let (x, y) = (Var::index("x"), Var::index("y"));
        let at = |k: i32| b.load([Expr::i32(k)]);
        let inner = Expr::let_in(y.clone(), x.expr() + 1, b.load([y.expr()]) + x.expr());
        assert_eq!(decisive(&Expr::let_in(x.clone(), at(1), inner)), ["B[1]"]);
        let value = Expr::let_in(x.clone(), at(1), x.expr() + 1);
        assert!(decisive(&value).is_empty());
        assert_eq!(decisive(&b.load([value])), ["B[1]"]);
    }

    #[test]
    fn shared_terms_are_visited_once() {
        let b = Buffer::with_extents("B", &[8], DType::I32);
        let mut e = b.load([b.load([Expr::i32(1)])]);
        for _ in 0..60 {
            e = &e + &e;
        }
        assert_eq!(decisive(&e), ["B[1]"]);
        assert!(e.effects().loads && unmet(&e, |_| false).is_none());
    }

    #[test]
    fn what_is_always_defined_demands_nothing() {
        let x = Var::index("x").expr();
        let wide = Expr::new(ExprKind::Broadcast(Expr::i32(4)), DType::I32.with_lanes(4));
        assert!(demand(&x.clone().floordiv(2)).is_none());
        assert!(demand(&Expr::binary(BinOp::FloorDiv, wide.clone(), wide)).is_none());
        let shift = |by: i32| {
            let args = vec![x.clone(), Expr::i32(by)];
            Expr::call(CallTarget::Intrin(Intrin::Shr), args, DType::I32)
        };
        assert!(demand(&shift(31)).is_none() && demand(&shift(32)).is_some());
        let by = Expr::i32(7).floordiv(&x);
        let text = demand(&by).map(|d| format!("{d}: {}", d.holds));
        assert_eq!(text.as_deref(), Some("divides by `x`, which may be zero: x != 0"));
    }
}
