//! The way back: guards around what changes nothing where they are false.
//!
//! ```text
//! for io, ii in grid(4, 4):                for io, ii in grid(4, 4):
//!     B[io, ii] = f(io, ii)                    if io < 3 or ii < 2:
//! for ii in range(2):                              B[io, ii] = f(io, ii)
//!     B[3, ii + 2] = 0                     ...
//! ```
//!
//! Where a guard could be of use is seen from the cells: those that are written later, and those
//! whose value is a constant or assumed; and from conditions by which the value of an update is chosen
//! (`B[i] = max(B[i], if_then_else(inside, A[i], -inf))`). A guard that keeps the body of a loop away from them is
//! put around it and stays there if it could be removed again ([`super::remove_branching`]): then
//! both functions are the same. What it keeps from being written must not be read afterwards
//! either, not even by an update whose result is unused (`starved`); so an initialisation gets its
//! guard once the updates have theirs, in another round.

use tilewright_ir::hash::HashSet;

use tilewright_ir::demand::unmet;
use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    Buffer, Error, Expr, ExprKind, Fold, Range, Remarks, Result, Stmt, StmtKind, TensorFunc, Var,
};
use tilewright_polyhedral::{AccessRelation, Known, Set};

use super::guard::OvercomputeOptions;
use super::rewrite::without;
use crate::pass::{self, Pass};
use tilewright_polyhedral::flow::{Run, Unwritten, is_constant};
use tilewright_polyhedral::scop::{Act, Scop, ScopStmt, rewrite};

/// `remove_overcompute_through_branching` by name.
pub const PASS: Pass = Pass {
    name: "remove_overcompute_through_branching",
    summary: "put guards around statements that change nothing where the guards are false",
    options: &[],
    run: pass::Run::Tensor(|f, _, why| remove_overcompute(f, None, why)),
};

/// Puts guards around the bodies of loops, of one block or everywhere.
pub fn remove_overcompute(
    func: &TensorFunc,
    block: Option<&str>,
    why: &mut Remarks,
) -> Result<TensorFunc> {
    let mut func = func.clone();
    loop {
        let mut round = Round::default();
        let new = round.run(&func, block)?;
        let changed = !new.body.ptr_eq(&func.body);
        func = new;
        if !(changed && round.starved) {
            why.append(&mut round.remarks);
            return Ok(func);
        }
    }
}

/// One way through the function.
#[derive(Default)]
struct Round {
    /// Whether a guard was refused only because of what is read.
    starved: bool,
    remarks: Remarks,
}

impl Round {
    fn run(&mut self, func: &TensorFunc, block: Option<&str>) -> Result<TensorFunc> {
        let mut func = func.clone();
        let mut next = 0;
        loop {
            let scop = Scop::extract(&func);
            let mut places = next..scop.text.len();
            let Some(place) = places.find(|p| is_body(&scop, *p, block)) else {
                return Ok(func);
            };
            next = place + 1;
            let mut refused = None;
            for guard in candidates(&scop, place) {
                let new = guarded(&func, place, &guard);
                // What runs less often reads less.
                let mut without = without(&new, place, &OvercomputeOptions::default(), false)?;
                if without.is_ok()
                    && let Some(e) = starved(&scop, &Scop::extract(&new), place)
                {
                    self.starved = true;
                    without = Err(e);
                }
                match without {
                    Ok(_) => {
                        // What is inside has its guard.
                        next = scop.last[place] + 2;
                        (func, refused) = (new, None);
                        break;
                    }
                    Err(e) => {
                        let says = format!("the guard `{guard}` would make a difference");
                        let remark = Error::refused(says).at(scop.text[place].span());
                        let notes = e.diagnostic().notes.iter();
                        refused = refused.or(Some(notes.fold(remark, |r, n| r.note(n))));
                    }
                }
            }
            self.remarks.extend(refused);
        }
    }
}

/// Why a program with a guard around the statement at a place may read a cell that is not written
/// and the one without it does not (rule 5 of `docs/semantics.md`). Both have the same statements.
fn starved(before: &Scop, after: &Scop, place: usize) -> Option<Error> {
    if before.stmts.len() != after.stmts.len() {
        return Some(Error::refused("what is read then cannot be compared"));
    }
    let memories = before.inside(place).filter_map(|s| match s.act {
        Act::Store(_) => s.target(),
        _ => None,
    });
    let memories: HashSet<&Buffer> = memories.map(|t| &t.buffer).collect();
    for memory in memories {
        let found = match unwritten(after, memory) {
            Ok(found) => found,
            Err(unknown) => return refuse_read(unknown.to_string(), memory),
        };
        if found.reads().next().is_none() {
            continue;
        }
        let known = match unwritten(before, memory) {
            Ok(known) => known,
            Err(unknown) => return refuse_read(unknown.to_string(), memory),
        };
        for (run, u) in found.reads() {
            let was = known.reads().any(|(r, v)| {
                r.who == run.who && v.reader == u.reader && u.instances.is_within(&v.instances)
            });
            if was {
                continue;
            }
            return refuse_read(
                match run.example(after, u) {
                    Some(cell) => format!("{cell} is read"),
                    None => format!("`{}` is read", memory.name),
                },
                memory,
            );
        }
    }
    None
}

fn unwritten(scop: &Scop, memory: &Buffer) -> Known<Unwritten> {
    Unwritten::new(scop, Run::all(scop, memory).collect())
}

fn refuse_read(note: String, memory: &Buffer) -> Option<Error> {
    let what = format!("`{}` would be read where nothing has been written", memory.name);
    Some(Error::refused(what).note(note))
}

/// Whether a statement is the body of a loop and no loop itself, in the block.
fn is_body(scop: &Scop, place: usize, block: Option<&str>) -> bool {
    let parent = scop.around(place).next().map(|p| scop.text[p].kind());
    let Some(s) = scop.text.get(place) else { return false };
    let takes_guard = match s.kind() {
        StmtKind::For { .. } | StmtKind::If { .. } => false,
        StmtKind::Block { predicate, .. } => predicate.is_true(),
        _ => true,
    };
    takes_guard
        && matches!(parent, Some(StmtKind::For { .. }))
        && (block.is_none()
            || scop.inside(place).any(|s| s.blocks.iter().any(|b| Some(&**b) == block)))
}

/// Conditions under which a loop body may be of use.
fn candidates(scop: &Scop, place: usize) -> Vec<Expr> {
    // A block only knows its own variables.
    let mut outer: Vec<Var> = Vec::new();
    for p in scop.around(place) {
        match scop.text[p].kind() {
            StmtKind::For { var, .. } => outer.push(var.clone()),
            StmtKind::Block { block, .. } if !block.iters.is_empty() => break,
            _ => {}
        }
    }
    let mut found: Vec<Expr> = Vec::new();
    for stmt in scop.inside(place) {
        let outside = scop.outside(stmt, place);
        let mut conditions = Vec::new();
        for t in stmt.accesses.iter().filter(|t| scop.lifetime(&t.buffer) == 0) {
            let Ok(Some((cells, set))) = settled(scop, place, &t.buffer, t.is_write) else {
                continue;
            };
            let axes = t.buffer.shape.iter().cloned().map(Range::upto);
            let axes: Vec<(Var, Range)> = cells.iter().cloned().zip(axes).collect();
            let whole = scop.engine().domain_of(&axes, &[]);
            let Ok(cond) = set.condition(&whole) else { continue };
            let at = cells.into_iter().zip(&t.indices).map(|(v, e)| {
                let e = e.clone().cast(v.dtype());
                (v, e)
            });
            conditions.push(!Subst::vars(at).expr(&cond));
        }
        // An update by a value that is chosen may change nothing where the other one is.
        if let Act::Store(value) = &stmt.act
            && let ExprKind::Binary(_, _, by) = value.kind()
            && let ExprKind::IfThenElse(cond, ..) = by.kind()
            && is_index_condition(cond)
        {
            conditions.push(cond.clone());
        }
        for cond in conditions {
            let guard = stmt.domain.simplify_predicate(&cond);
            // What keeps a divisor from zero may stand inside.
            let undefined = unmet(&guard, |d| outside.proves(d)).is_some();
            let known = free_vars(&guard);
            let fits = known
                .iter()
                .filter(|v| stmt.loops.iter().any(|l| l.var == **v))
                .all(|v| outer.contains(v));
            let decided = guard.as_int().is_some();
            let new = !found.iter().any(|g| same_expr(g, &guard));
            if fits && !decided && !undefined && new {
                found.push(guard);
            }
        }
    }
    found
}

/// Whether a condition depends on loops alone.
fn is_index_condition(cond: &Expr) -> bool {
    !cond.effects().calls && cond.loaded_buffers().is_empty()
}

/// Cells that need not be looked at in a statement: what is written later, for a store; what is
/// known to be a constant, for a load.
fn settled(
    scop: &Scop,
    place: usize,
    buffer: &Buffer,
    is_write: bool,
) -> Known<Option<(Vec<Var>, Set)>> {
    let last = scop.last.get(place).copied().unwrap_or(place);
    let cells: Vec<Var> = buffer.shape.iter().map(|e| Var::new("cell", e.dtype())).collect();
    let all = Set::union_of(
        scop.stmts.iter().filter(|s| counts(s, is_write, last, place)).filter_map(|stmt| {
            let t = stmt.target().filter(|t| t.buffer.data == buffer.data)?;
            Some(AccessRelation::new(&stmt.domain, &t.indices).touched(&cells))
        }),
    )?;
    Ok(all.filter(Set::is_exact).map(|set| (cells, set)))
}

fn counts(stmt: &ScopStmt, is_write: bool, last: usize, place: usize) -> bool {
    let constant = match &stmt.act {
        Act::Store(v) | Act::Fact(v) => is_constant(v) || v.is_undef(),
        _ => false,
    };
    if is_write {
        stmt.place > last && matches!(stmt.act, Act::Store(_))
    } else {
        constant && !(place..=last).contains(&stmt.place)
    }
}

/// The function with a guard around the statement at a place.
fn guarded(func: &TensorFunc, place: usize, guard: &Expr) -> TensorFunc {
    TensorFunc {
        body: rewrite(&func.body, &mut |p, s| match s.kind() {
            _ if p != place => None,
            StmtKind::Block { bindings, block, .. } => {
                let (bindings, predicate) = (bindings.clone(), guard.clone());
                let kind = StmtKind::Block { bindings, predicate, block: block.clone() };
                Some(Stmt::spanned(kind, s.span()))
            }
            _ => Some(Stmt::guard(guard.clone(), s.clone())),
        }),
        ..func.clone()
    }
}
