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
