//! Assertions that a loop would repeat, as assertions of the iteration that decides.
//!
//! What a comparison of sums and quotients leaves room for grows or falls with a loop variable, where neither side
//! leaves its type: where it holds at one end of the loop, it holds in all of its iterations. One in which the
//! variable does not occur is decided by any of them. So such an assertion needs no loop in front of the loop that
//! it was moved out of, which would run as often as the loop itself.

use tilewright_ir::condition::parts;
use tilewright_ir::index::{Linear, divided};
use tilewright_ir::visit::{Subst, fold_stmt_children};
use tilewright_ir::{BinOp, Expr, ExprKind, Fold, Range, Stmt, StmtKind, Var};

use super::known::PlaceFacts;

/// An end of a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

/// A statement with one assertion under conditions, bindings and loops, for all iterations of a loop that has
/// some: an assertion for each end that decides a part of it. `None` where another iteration may.
pub(super) fn at_ends(
    check: &Stmt,
    var: &Var,
    range: &Range,
    known: &PlaceFacts,
) -> Option<Vec<Stmt>> {
    let (mut asserts, mut around) = (Vec::new(), Replaced { with: Stmt::nop() });
    check.for_each(|s| {
        if matches!(s.kind(), StmtKind::Assert { .. }) {
            asserts.push(s.clone());
        }
    });
    let [assert] = &asserts[..] else { return None };
    let StmtKind::Assert { cond, message, values } = assert.kind() else { return None };
    if around.stmt(check).any_expr(|e| e.as_var() == Some(var)) {
        return None;
    }
    let mut by_end: [Option<Expr>; 2] = [None, None];
    for (part, holds) in parts(cond, true) {
        let part = if holds { part } else { Expr::not_node(part) };
        let all = &mut by_end[usize::from(decides(&part, var, known)? == End::Last)];
        *all = Some(match all.take() {
            Some(others) => Expr::binary(BinOp::And, others, part),
            None => part,
        });
    }
    let ends = [End::First, End::Last].into_iter().zip(by_end);
    let made = ends.filter_map(|(end, cond)| {
        let kind =
            StmtKind::Assert { cond: cond?, message: message.clone(), values: values.clone() };
        let own = Stmt::spanned(kind, assert.span());
        let mut at = Subst::vars([(var.clone(), end.of(range))]);
        around.with = known.simplified(&at.stmt(&own));
        Some(around.stmt(check))
    });
    Some(made.map(|s| Subst::refresh().stmt(&s)).collect())
}

impl End {
    /// The value of the variable of a loop with iterations.
    fn of(self, range: &Range) -> Expr {
        match self {
            End::First => range.min.clone(),
            End::Last => {
                let last = range.extent.clone() - Expr::int(1, range.extent.dtype());
                range.min.clone() + last
            }
        }
    }
}

/// The end of a loop at which a condition holds only if it does in all iterations.
fn decides(cond: &Expr, var: &Var, known: &PlaceFacts) -> Option<End> {
    if !cond.mentions(var) {
        return Some(End::First);
    }
    let ExprKind::Binary(op, a, b) = cond.kind() else { return None };
    let (less, greater) = match op {
        BinOp::Lt | BinOp::Le => (a, b),
        BinOp::Gt | BinOp::Ge => (b, a),
        _ => return None,
    };
    let room = known.exact(greater)?.plus(&known.exact(less)?, -1)?;
    Some(if growth(&room, var, known)? < 0 { End::Last } else { End::First })
}

/// Whether a sum grows with a variable (1), falls (-1), or does neither (0); `None` where that is not seen.
fn growth(sum: &Linear, var: &Var, known: &PlaceFacts) -> Option<i128> {
    sum.terms.iter().filter(|(atom, _)| atom.mentions(var)).try_fold(0, |all, (atom, c)| {
        let of_atom = match (atom.as_var(), divided(atom, BinOp::FloorDiv)) {
            (Some(_), _) => 1,
            (None, Some((y, _))) => growth(&known.exact(y)?, var, known)?,
            (None, None) => return None,
        };
        let own = of_atom * c.signum();
        (all * own >= 0).then_some(if all == 0 { own } else { all })
    })
}

/// Puts a statement in the place of assertions.
struct Replaced {
    with: Stmt,
}

impl Fold for Replaced {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Assert { .. } => self.with.clone(),
            _ => fold_stmt_children(self, s),
        }
    }
}
