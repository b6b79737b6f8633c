//! Parts of guards that go where the whole guard stays.
//!
//! ```text
//! if i < 14 and j < 60:        # columns from 60 on hold zero, rows from 14 on are the caller's
//!     C[i] = C[i] + A[i, j]    # i < 14 stays
//! ```
//!
//! A condition `p and q` is `p` around `q`. Where the guard `p` goes from there, `q` is what is left.

use tilewright_ir::visit::free_vars;
use tilewright_ir::{Expr, ForKind, Remarks, Result, Span, Stmt, StmtKind, TensorFunc, Var};

use super::guard::{Analysed, OvercomputeOptions, guards};
use super::rewrite::without;
use tilewright_polyhedral::scop::{GuardId, Scop, rewrite};

/// Takes out of guards what they do not need.
pub(super) fn remove_parts(
    mut now: Analysed,
    options: &OvercomputeOptions<'_>,
    why: &mut Remarks,
) -> Result<Analysed> {
    let mut next = 0;
    loop {
        let Analysed { func, scop } = &now;
        // Each part is asked for by itself.
        let whole = OvercomputeOptions { tails: false, ..*options };
        let Some((place, mut parts)) =
            guards(scop, &whole).keys().find_map(|id| conjunction(id, scop, next))
        else {
            return Ok(now);
        };
        next = place + 1;
        let span = scop.text.get(place).and_then(Stmt::span);
        let (mut func, mut k, before) = (func.clone(), 0, parts.len());
        while k < parts.len() && parts.len() > 1 {
            // It is no code where loops become statements, and sums of steps that it keeps out are others.
            if options.tails && is_settled(&parts[k], scop) {
                k += 1;
                continue;
            }
            let mut others = parts.clone();
            let part = others.remove(k);
            match without(&split_condition(&func, place, &part, &others), place, options, true)? {
                Ok(new) => (func, parts) = (new, others),
                Err(_) => k += 1,
            }
        }
        if parts.len() < before {
            // The remark is about the guard as it is now.
            if let Err(e) = without(&func, place, options, true)?
                && let Some(old) =
                    why.iter_mut().find(|r| span.is_some() && r.diagnostic().span == span)
            {
                *old = e;
            }
            now = Analysed::new(&func);
        }
    }
}

/// Whether loops that become statements alone decide a condition.
fn is_settled(cond: &Expr, scop: &Scop) -> bool {
    let unrolled = |v: &Var| {
        let mut loops = scop.stmts.iter().flat_map(|s| &s.loops);
        loops.any(|l| l.var == *v && l.kind == ForKind::Unrolled)
    };
    let vars = free_vars(cond);
    !vars.is_empty() && vars.iter().all(unrolled)
}

fn conjunction(id: &GuardId, scop: &Scop, next: usize) -> Option<(usize, Vec<Expr>)> {
    let parts = condition(scop.text.get(id.place)?)?.conjuncts();
    (id.place >= next && parts.len() > 1).then_some((id.place, parts))
}

/// The condition of a statement.
fn condition(s: &Stmt) -> Option<&Expr> {
    match s.kind() {
        StmtKind::If { cond, .. } => Some(cond),
        StmtKind::Block { predicate, .. } => Some(predicate),
        _ => None,
    }
}

/// The function with one part of the condition at a place around the statement with the others.
fn split_condition(func: &TensorFunc, place: usize, part: &Expr, others: &[Expr]) -> TensorFunc {
    let body = rewrite(&func.body, &mut |p, s| match s.kind() {
        _ if p != place => None,
        StmtKind::If { then, otherwise, .. } => {
            let (then, otherwise) = (then.clone(), otherwise.clone());
            guard_with(
                StmtKind::If { cond: Expr::all(others.iter().cloned()), then, otherwise },
                s.span(),
                part,
            )
        }
        StmtKind::Block { bindings, block, .. } => {
            let (bindings, block) = (bindings.clone(), block.clone());
            guard_with(
                StmtKind::Block { bindings, predicate: Expr::all(others.iter().cloned()), block },
                s.span(),
                part,
            )
        }
        _ => None,
    });
    TensorFunc { body, ..func.clone() }
}

fn guard_with(inner: StmtKind, span: Option<Span>, part: &Expr) -> Option<Stmt> {
    let then = Stmt::spanned(inner, span);
    let kind = StmtKind::If { cond: part.clone(), then, otherwise: None };
    Some(Stmt::spanned(kind, span))
}
