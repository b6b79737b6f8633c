//! Assertions on their way outwards.
//!
//! A [`Check`] is an assertion under the conditions, bindings and loops that it was moved out of.
//! It may pass a statement that does not write what it reads. One that reads memory may not pass
//! an assertion either: that may be what keeps its own reads in range. Where one that reads memory
//! stays, those after it that do so stay as well.

use tilewright_ir::hash::HashSet;

use tilewright_ir::equal::{Equality, stmts};
use tilewright_ir::visit::{Subst, accessed, fold_stmt_children};
use tilewright_ir::{Expr, Fold, ForKind, Range, Stmt, StmtKind, Var};

use super::ends::at_ends;
use super::known::PlaceFacts;

/// An assertion before the statement that needs it.
pub(super) struct Check {
    stmt: Stmt,
    /// Pointers of the buffers that it reads.
    reads: HashSet<Var>,
}

impl Check {
    /// An assertion whose definitions are its own.
    pub fn new(stmt: Stmt) -> Check {
        let reads = accessed(&stmt).0.into_iter().map(|b| b.data.clone()).collect();
        Check { stmt, reads }
    }

    fn under(self, around: impl FnOnce(Stmt) -> Stmt) -> Check {
        Check::new(around(self.stmt))
    }

    /// Whether another one cannot fail behind this one: it asserts the same, whatever it would say.
    fn decides(&self, other: &Check) -> bool {
        let [one, other] = [self, other].map(|check| Silent.stmt(&check.stmt));
        stmts(&one, &other, &Equality::default()).is_ok()
    }
}

/// Takes the messages out of assertions.
struct Silent;

impl Fold for Silent {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Assert { cond, .. } => {
                let (message, values) = ("".into(), Vec::new());
                Stmt::new(StmtKind::Assert { cond: cond.clone(), message, values })
            }
            _ => fold_stmt_children(self, s),
        }
    }
}

/// A statement with assertions in front of it.
pub(super) fn flush(checks: Vec<Check>, s: Stmt) -> Stmt {
    if checks.is_empty() {
        return s;
    }
    Stmt::seq(checks.into_iter().map(|c| c.stmt).chain([s]))
}

/// What keeps assertions from moving up over a statement.
struct Barrier {
    writes: HashSet<Var>,
    /// It asserts, or calls what may do anything.
    closed: bool,
}

impl Barrier {
    fn from_stmt(s: &Stmt) -> Barrier {
        let effects = s.effects();
        Barrier {
            writes: accessed(s).1.into_iter().map(|b| b.data.clone()).collect(),
            closed: effects.asserts || effects.impure(),
        }
    }

    fn lets(&self, check: &Check) -> bool {
        check.reads.is_empty() || !self.closed && self.writes.is_disjoint(&check.reads)
    }
}

/// Takes the checks that may leave apart from those that stay.
fn part(checks: Vec<Check>, may_leave: impl Fn(&Check) -> bool) -> (Vec<Check>, Vec<Check>) {
    let (mut stay, mut leave): (Vec<Check>, Vec<Check>) = (Vec::new(), Vec::new());
    for check in checks {
        let behind = stay.iter().any(|c| !c.reads.is_empty()) && !check.reads.is_empty();
        if !behind && may_leave(&check) { leave.push(check) } else { stay.push(check) }
    }
    (stay, leave)
}

/// Out of a loop: the body, and what goes in front of the loop, which is a loop only where an iteration in the
/// middle may decide ([`at_ends`]).
pub(super) fn out_of_loop(
    (var, range, kind): (&Var, &Range, &ForKind),
    known: &PlaceFacts,
    body: Stmt,
    checks: Vec<Check>,
) -> (Stmt, Vec<Check>) {
    if checks.is_empty() {
        return (body, checks);
    }
    let barrier = Barrier::from_stmt(&body);
    let head = range.min.effects().impure() || range.extent.effects().impure();
    let (stay, leave) = part(checks, |c| !head && barrier.lets(c));
    let kind = if *kind == ForKind::Parallel { ForKind::Parallel } else { ForKind::Serial };
    let mut out = Vec::new();
    let mut run: Vec<Stmt> = Vec::new();
    for check in leave {
        let ends = if check.stmt.any_expr(|e| e.as_var() == Some(var)) {
            let Some(made) = at_ends(&check.stmt, var, range, known) else {
                run.push(check.stmt);
                continue;
            };
            made.into_iter().map(Check::new).collect()
        } else {
            vec![check]
        };
        add_run(&mut run, &mut out, var, range, &kind);
        let some = Expr::binary(
            tilewright_ir::BinOp::Gt,
            range.extent.clone(),
            Expr::int(0, range.extent.dtype()),
        );
        for check in ends {
            let check = match range.extent.as_int() {
                Some(1..) => check,
                _ => check.under(|s| Stmt::guard(some.clone(), s)),
            };
            if !out.iter().any(|before| before.decides(&check)) {
                out.push(check);
            }
        }
    }
    add_run(&mut run, &mut out, var, range, &kind);
    (flush(stay, body), out)
}

fn add_run(run: &mut Vec<Stmt>, out: &mut Vec<Check>, var: &Var, range: &Range, kind: &ForKind) {
    if !run.is_empty() {
        let body = Stmt::seq(run.drain(..));
        let own = Stmt::for_loop(var, range.clone(), kind.clone(), body);
        out.push(Check::new(Subst::refresh().stmt(&own)));
    }
}

/// Out of a branch, if it is `movable`.
pub(super) fn out_of_branch(
    cond: &Expr,
    holds: bool,
    movable: bool,
    body: Stmt,
    checks: Vec<Check>,
) -> (Stmt, Vec<Check>) {
    if !movable || cond.effects().impure() {
        return (flush(checks, body), Vec::new());
    }
    let cond = if holds { cond.clone() } else { Expr::not_node(cond.clone()) };
    let out = checks.into_iter().map(|c| c.under(|s| Stmt::guard(cond.clone(), s)));
    (body, out.collect())
}

/// Out of a binding, if it is `movable`.
pub(super) fn out_of_let(
    var: &Var,
    value: &Expr,
    movable: bool,
    body: Stmt,
    checks: Vec<Check>,
) -> (Stmt, Vec<Check>) {
    if !movable || value.effects().impure() {
        return (flush(checks, body), Vec::new());
    }
    (body, checks.into_iter().map(|c| bound_check(c, var, value)).collect())
}

fn bound_check(c: Check, var: &Var, value: &Expr) -> Check {
    if c.stmt.any_expr(|e| e.as_var() == Some(var)) {
        c.under(|s| Subst::refresh().stmt(&Stmt::let_in(var, value.clone(), s)))
    } else {
        c
    }
}

/// Out of the scope of a buffer.
pub(super) fn out_of_scope(data: &Var, body: Stmt, checks: Vec<Check>) -> (Stmt, Vec<Check>) {
    let (stay, leave) = part(checks, |c| !c.reads.contains(data));
    (flush(stay, body), leave)
}

/// To the front of the statements before it; those that cannot are put behind them. Gives those
/// that can.
pub(super) fn to_the_front(out: &mut Vec<Stmt>, movable: bool, checks: Vec<Check>) -> Vec<Check> {
    if checks.is_empty() {
        return checks;
    }
    let barriers: Vec<Barrier> = out.iter().map(Barrier::from_stmt).collect();
    let (stay, leave) = part(checks, |c| movable && barriers.iter().all(|b| b.lets(c)));
    out.extend(stay.into_iter().map(|c| c.stmt));
    leave
}
