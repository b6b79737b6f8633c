//! Conditions with two sides of which one does what the other does.
//!
//! ```text
//! if 4 * io + ii < 14:                     T.assume(4 * io + ii < 14 or A[io, ii] == 0)
//!     B[io, ii] = A[io, ii] * 2            ...
//! else:                                    B[io, ii] = A[io, ii] * 2
//!     B[io, ii] = 0
//! ```
//!
//! Where the condition is false, the values that the first side would store are simplified by what
//! is known of what they read. If they are those of the second side, in the same cells, the first
//! side may run everywhere; and the other way round. So it is with the two values of an
//! `if_then_else` that is stored.

use std::collections::BTreeMap;

use tilewright_ir::visit::walk_expr;
use tilewright_ir::{Expr, ExprKind, Remarks, Result, Stmt, StmtKind, TensorFunc, Visit};

use super::added::{Added, More, more};
use super::candidates::{Candidates, Extra};
use super::guard::{Analysed, Guard, OvercomputeOptions};
use super::unchanged::{Knowledge, Look, Read};
use tilewright_analysis::neutral::{ANY, Floats, reduced};
use tilewright_polyhedral::flow::same_at_once;
use tilewright_polyhedral::scop::{Act, GuardId, Scop, ScopStmt, rewrite};

/// Removes sides, outermost ones first, as long as there are such.
pub(super) fn one_side(
    mut now: Analysed,
    options: &OvercomputeOptions<'_>,
    why: &mut Remarks,
) -> Result<TensorFunc> {
    loop {
        let Analysed { func, scop } = &now;
        let mut candidates = Candidates::empty(scop);
        let mut left: BTreeMap<GuardId, bool> = BTreeMap::new();
        for (id, stmts) in two_sided(scop, options) {
            let found = [false, true].into_iter().find_map(|opposite| {
                let (added, looks) = does_both(scop, id, opposite, &stmts)?;
                Some((opposite, added, looks))
            });
            let Some((opposite, added, looks)) = found.filter(|_| {
                !left.keys().any(|p| p.place == id.place || scop.last[p.place] >= id.place)
            }) else {
                continue;
            };
            for a in added {
                let mut extra = Extra::new(id, a);
                // What it writes is written anyway.
                (extra.writes, extra.judged) = (None, true);
                candidates.extras.insert(extra.added.stmt, extra);
            }
            candidates.depend_on(looks);
            let span = scop.text[id.place].span();
            let stmts: Vec<usize> = stmts.into_iter().flatten().collect();
            let cond = stmts_cond(scop, id, &stmts);
            candidates.guards.insert(id, Guard { depth: 0, stmts, cond, span });
            left.insert(id, opposite);
        }
        candidates.decide(true, why);
        left.retain(|id, _| candidates.guards.contains_key(id));
        if left.is_empty() {
            return Ok(now.func);
        }
        let body = rewrite(&func.body, &mut |place, s| match s.kind() {
            StmtKind::If { then, otherwise: Some(other), .. } => {
                let opposite = left.get(&GuardId { place, part: 0 })?;
                Some(if *opposite { other.clone() } else { then.clone() })
            }
            StmtKind::Store { buffer, indices, value } => {
                let here = left.iter().find(|(id, _)| id.place == place && id.part > 0);
                let (id, opposite) = here?;
                let mut seen = 0;
                let value = value.replace(|e| {
                    let ExprKind::IfThenElse(_, yes, no) = e.kind() else { return None };
                    seen += 1;
                    (seen == id.part).then(|| if *opposite { no } else { yes }.clone())
                });
                let (buffer, indices) = (buffer.clone(), indices.clone());
                Some(Stmt::spanned(StmtKind::Store { buffer, indices, value }, s.span()))
            }
            _ => None,
        });
        now = Analysed::new(&TensorFunc { body, ..func.clone() });
    }
}

/// Steps under each condition that has two sides, and under its opposite.
fn two_sided(scop: &Scop, options: &OvercomputeOptions<'_>) -> BTreeMap<GuardId, [Vec<usize>; 2]> {
    let mut all: BTreeMap<GuardId, [Vec<usize>; 2]> = BTreeMap::new();
    for (k, stmt) in scop.stmts.iter().enumerate() {
        let asked = options.block.is_none_or(|name| stmt.blocks.iter().any(|b| **b == *name));
        for g in stmt.guards.iter().filter(|_| asked) {
            for (side, id) in [g.id, g.opposite].into_iter().enumerate() {
                if let Some(id) = id {
                    all.entry(id).or_default()[side].push(k);
                }
            }
        }
    }
    all.retain(|id, _| match scop.text[id.place].kind() {
        StmtKind::If { otherwise, .. } => otherwise.is_some(),
        StmtKind::Store { value, .. } => id.part > 0 && numbered(scop, id.place, value),
        _ => false,
    });
    all
}

/// The condition under which statements run.
fn stmts_cond(scop: &Scop, id: GuardId, stmts: &[usize]) -> Expr {
    let guards = stmts.iter().filter_map(|k| scop.stmts.get(*k)).flat_map(|s| &s.guards);
    let mut found = guards.filter(|g| g.id == Some(id) || g.opposite == Some(id));
    found.next().map_or_else(|| Expr::bool(true), |g| g.cond.clone())
}

/// Whether the choices of a stored value have the numbers of those in the text.
fn numbered(scop: &Scop, place: usize, text: &Expr) -> bool {
    !has_let(text)
        && store_at(scop, place).is_some_and(|(_, value)| {
            !has_let(value) && choices(value).len() == choices(text).len()
        })
}

fn has_let(e: &Expr) -> bool {
    e.any(|e| matches!(e.kind(), ExprKind::Let(..)))
}

/// The store at a place: its number, and the value.
fn store_at(scop: &Scop, place: usize) -> Option<(usize, &Expr)> {
    scop.stmts.iter().enumerate().find_map(|(k, s)| match &s.act {
        Act::Store(value) if s.place == place => Some((k, value)),
        _ => None,
    })
}

/// What one side does more if it runs everywhere, if that is what the other side does; and
/// what that depends on.
fn does_both(
    scop: &Scop,
    id: GuardId,
    opposite: bool,
    stmts: &[Vec<usize>; 2],
) -> Option<(Vec<Added>, Vec<Read>)> {
    let (this, other) = (&stmts[usize::from(opposite)], &stmts[usize::from(!opposite)]);
    let more = more(scop, id, opposite, this, false).ok()?;
    if !more.wider.is_empty() {
        return None;
    }
    let added: Vec<&Added> = more.added.iter().collect();
    let knowledge = Knowledge::new(scop);
    let mut looks = Vec::new();
    let mut equal = |a: &Added, mine: &Expr, theirs: &Expr| {
        let look = Look { partly: false, but: None, floats: Floats::Any };
        let (mine, known) = knowledge.value(a, &added, mine, look).ok()?;
        looks.extend(known.depends_on);
        let at = &a.what.domain;
        let theirs = reduced(theirs, at, ANY);
        let equal = same_at_once(scop, at, &mine, &theirs) || at.proves(&Expr::bool(false));
        equal.then_some(())
    };
    if id.part > 0 {
        let (k, value) = store_at(scop, id.place)?;
        let (cond, yes, no) = choices(value).into_iter().nth(id.part - 1)?;
        let stmt = scop.stmts.get(k)?;
        let (mine, theirs, runs) = if opposite { (&no, &yes, cond) } else { (&yes, &no, !cond) };
        let domain = stmt.domain.with_guard(&runs);
        equal(&Added { stmt: k, what: ScopStmt { domain, ..stmt.clone() } }, mine, theirs)?;
        return Some((more.added, looks));
    }
    // Store by store, without loops or conditions of their own.
    let depth = scop.around(id.place);
    let depth = depth.filter(|p| matches!(scop.text[*p].kind(), StmtKind::For { .. })).count();
    let mine: Vec<&Added> =
        more.added.iter().filter(|a| matches!(a.what.act, Act::Store(_))).collect();
    let theirs = other.iter().filter_map(|k| scop.stmts.get(*k));
    let theirs: Vec<&ScopStmt> = theirs.filter(|s| matches!(s.act, Act::Store(_))).collect();
    if mine.is_empty() || mine.len() != theirs.len() {
        return None;
    }
    for (a, b) in mine.iter().zip(theirs) {
        let (Act::Store(x), Act::Store(y)) = (&a.what.act, &b.act) else { return None };
        let (from, to) = (a.what.target()?, b.target()?);
        let plain = a.what.loops.len() == depth
            && b.loops.len() == depth
            && a.what.guards.len() == b.guards.len()
            && b.guards.last().is_some_and(|g| g.is(id, !opposite));
        let one_cell = from.buffer == to.buffer
            && (from.indices.iter().zip(&to.indices))
                .all(|(i, j)| same_at_once(scop, &a.what.domain, i, j));
        if !plain || !one_cell {
            return None;
        }
        equal(a, x, y)?;
    }
    if mine.len() > 1 && looks.iter().any(|read| is_target(read, &more, &mine)) {
        None
    } else {
        Some((more.added, looks))
    }
}

/// What is known of a cell was so before the first of several stores.
fn is_target(&(stmt, access): &Read, more: &More, mine: &[&Added]) -> bool {
    let read = more.added.iter().find(|a| a.stmt == stmt);
    let read = read.zip(access).and_then(|(a, t)| a.what.accesses.get(t));
    let written = mine.iter().filter_map(|a| a.what.target());
    read.is_some_and(|r| written.clone().any(|t| t.buffer == r.buffer))
}

/// The choices of a value, in the order of their numbers: the first has number one.
fn choices(value: &Expr) -> Vec<(Expr, Expr, Expr)> {
    struct Choices(Vec<(Expr, Expr, Expr)>);
    impl Visit for Choices {
        fn expr(&mut self, e: &Expr) {
            if let ExprKind::IfThenElse(c, yes, no) = e.kind() {
                self.0.push((c.clone(), yes.clone(), no.clone()));
            }
            walk_expr(self, e);
        }
    }
    let mut all = Choices(Vec::new());
    all.expr(value);
    all.0
}
