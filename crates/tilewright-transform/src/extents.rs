//! Loops that run only where their body does something.
//!
//! ```text
//! for io, ii in T.grid(4, 4):            io = 3
//!     if 4 * io + ii >= 14:       →      for ii in range(2, 4):
//!         A[io, ii] = 0.0                    A[io, ii] = 0.0
//! ```
//!
//! The iterations in which something happens are a set: those for which the guards around some
//! store hold at some point of the loops inside. The loop gets the tightest range around that set,
//! in terms of the loops outside, and guards that then always hold go. A loop that is left with one
//! iteration becomes a binding of its variable, one with none goes.
//!
//! Only guards on indices count, as nothing else is known before the loop runs. Vectorised loops
//! and loops over threads keep their extent, which is part of what they ask for. A loop with
//! annotations stays a loop.

use tilewright_ir::visit::free_vars;
use tilewright_ir::{
    Block, Error, Expr, Fold, ForKind, Range, Remarks, Stmt, StmtKind, TensorFunc, Var, Visit,
};
use tilewright_polyhedral::{Known, Set, cost};

use crate::pass::{self, Run};
use crate::settle::settle;
use tilewright_polyhedral::place::{Place, Placed, ScopeStep, walk_stmt_placed};
use tilewright_polyhedral::scope::{Scope, Scoped, fold_scoped};

/// `reduce_loop_extents` by name.
pub const PASS: pass::Pass = pass::Pass {
    name: "reduce_loop_extents",
    summary: "run loops only over the iterations that their guards let do something",
    options: &[],
    run: Run::Tensor(|f, _, why| Ok(reduce_loop_extents(f, None, why))),
};

/// Reduces the ranges of loops in a function, or in a part of it: a statement of its body, the same
/// node in memory.
pub fn reduce_loop_extents(
    func: &TensorFunc,
    part: Option<&Stmt>,
    why: &mut Remarks,
) -> TensorFunc {
    let scope = Scope::at_entry(func);
    let mut tightener = Tightener { part: part.unwrap_or(&func.body), active: false, scope, why };
    TensorFunc { body: tightener.stmt(&func.body), ..func.clone() }
}

struct Tightener<'a> {
    part: &'a Stmt,
    active: bool,
    scope: Scope,
    why: &'a mut Remarks,
}

impl Scoped for Tightener<'_> {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Fold for Tightener<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        if !self.active && s.ptr_eq(self.part) {
            self.active = true;
            let new = self.stmt(s);
            self.active = false;
            return new;
        }
        match self.active.then(|| self.reduced(s)).flatten() {
            // What is left may be no loop, or one with nothing more to gain.
            Some(new) => match new.kind() {
                StmtKind::For { .. } => fold_scoped(self, &new),
                _ => self.stmt(&new),
            },
            None => fold_scoped(self, s),
        }
    }
}

impl Tightener<'_> {
    /// A loop over fewer iterations; `None` where there is nothing to gain.
    fn reduced(&mut self, s: &Stmt) -> Option<Stmt> {
        let StmtKind::For { var, range, kind, annotations, body } = s.kind() else { return None };
        if !matches!(kind, ForKind::Serial | ForKind::Parallel | ForKind::Unrolled) {
            return None;
        }
        let old =
            Range { min: self.scope.index(&range.min)?, extent: self.scope.index(&range.extent)? };
        let outer = self.scope.vars();
        let acting = Acting::new(var, &old, body, &self.scope);
        if !acting.depends_on(var, body) {
            return None;
        }
        // A loop that becomes statements, or is shared, keeps a number of them that is known: what is in it then has
        // known bounds.
        let is_counted = matches!(kind, ForKind::Unrolled | ForKind::Parallel) && is_known(&old);
        if is_counted && acting.may_act_at_ends(var, &old) {
            return None;
        }
        let active = acting.values(var, &outer);
        let Some(active) = self.known(s, var, active)? else { return self.stays(s, var, &acting) };
        if active.is_void() {
            return Some(Stmt::nop());
        }
        let tight = active.domain().tight_range(var, &outer);
        let new = self.known(s, var, tight)?;
        if is_counted && !is_known(&new) {
            return None;
        }
        if self.is_equal(&new.min, &old.min) && self.is_equal(&new.extent, &old.extent) {
            return self.stays(s, var, &acting);
        }
        if let Some(demand) = [&new.min, &new.extent].into_iter().find_map(|e| self.scope.unmet(e))
        {
            self.remark(s, var, format!("one of its bounds {demand}"));
            return None;
        }
        // Where nothing happens for some iterations of the loops outside, the bounds there may be
        // any.
        let [end, old_end] = [&new, &old].map(|r| &r.min + &r.extent);
        let inside = new.min.clone().greater_equal(&old.min).and(end.clone().less_equal(&old_end));
        let new = if self.scope.proves(&new.extent.clone().less_equal(0).or(inside)) {
            match self.tidy(end) {
                // Its end is the simpler bound.
                end if cost(&end) < cost(&new.extent) => {
                    Range { extent: &end - &new.min, min: new.min }
                }
                _ => new,
            }
        } else {
            // Of data the end may be beyond its type where the last value is not.
            let empty = new.extent.clone().less_equal(0);
            let end = if self.scope.proves(&is_above(&end, &new, &empty)) {
                self.tidy(end.min(old_end))
            } else {
                let last = self.tidy(end - 1);
                if !self.scope.proves(&is_above(&last, &new, &empty)) {
                    self.remark(s, var, "its new end may be beyond its type".to_owned());
                    return None;
                }
                last.min(self.tidy(old_end - 1)) + 1
            };
            let min = self.tidy(new.min.max(&old.min));
            Range { extent: &end - &min, min }
        };
        let single = annotations.is_empty() && self.scope.proves(&new.extent.clone().equal(1));
        let mut scope = self.scope.clone();
        Some(if single {
            scope.bind(var, &new.min);
            match settle(body, &scope) {
                body if body.is_nop() => body,
                body => Stmt::spanned(
                    StmtKind::Let { var: var.clone(), value: new.min, body },
                    s.span(),
                ),
            }
        } else {
            scope.enter(var, &new);
            s.with_loop(new, settle(body, &scope))
        })
    }

    fn is_equal(&self, a: &Expr, b: &Expr) -> bool {
        self.scope.domain().is_equal(a, b)
    }

    fn tidy(&self, e: Expr) -> Expr {
        self.scope.domain().simplify(&e)
    }

    /// A loop that guards do not let be shorter; a remark if that is because of what is not known.
    fn stays(&mut self, s: &Stmt, var: &Var, acting: &Acting) -> Option<Stmt> {
        if !acting.unguarded
            && let Some(note) = acting.guards.iter().find_map(|(e, scope)| missing(e, scope, var))
        {
            self.remark(s, var, note);
        }
        None
    }

    /// What is known; if it is not, a remark says why.
    fn known<T>(&mut self, s: &Stmt, var: &Var, what: Known<T>) -> Option<T> {
        what.map_err(|unknown| self.remark(s, var, unknown.to_string())).ok()
    }

    fn remark(&mut self, s: &Stmt, var: &Var, note: String) {
        let text = format!("the range of the loop `{}` stays as it is", var.name());
        self.why.push(Error::refused(text).at(s.span()).note(note));
    }
}

fn is_known(r: &Range) -> bool {
    r.min.as_int().is_some() && r.extent.as_int().is_some()
}

fn is_above(e: &Expr, new: &Range, empty: &Expr) -> Expr {
    e.clone().greater_equal(&new.min).or(empty.clone())
}

/// What is not known of a guard that depends on a variable.
fn missing(guard: &Expr, scope: &Scope, var: &Var) -> Option<String> {
    let depends = free_vars(&scope.inlined(guard)).contains(var);
    match scope.index(guard) {
        _ if !depends => None,
        Some(cond) => scope.domain().doubt(&cond).map(|why| format!("`{guard}` {why}")),
        None => Some(format!("`{guard}` depends on memory")),
    }
}

/// The places at which something happens, and what is known there.
struct Acting {
    scope: Scope,
    /// Each once, whatever number of statements are there.
    places: Vec<Scope>,
    /// Whether the last one is this place.
    is_noted: bool,
    /// The guards of the body, and what is known in front of them.
    guards: Vec<(Expr, Scope)>,
    /// How many of them are around.
    depth: usize,
    /// Whether one of the places has no guard on indices.
    always: bool,
    /// Whether one of the places has no guard at all.
    unguarded: bool,
}

impl Acting {
    /// Of the body of a loop.
    fn new(var: &Var, range: &Range, body: &Stmt, scope: &Scope) -> Acting {
        let mut scope = scope.clone();
        scope.enter(var, range);
        scope.guards = 0;
        let mut acting = Acting {
            scope,
            places: Vec::new(),
            is_noted: false,
            guards: Vec::new(),
            depth: 0,
            always: false,
            unguarded: false,
        };
        let both = acts_both_ways(body);
        (acting.always, acting.unguarded) = (both, both);
        acting.stmt(body);
        acting
    }

    /// Whether it may depend on a variable that something happens in the body of its loop. Where it does not, all of its
    /// iterations do something, or none.
    fn depends_on(&self, var: &Var, body: &Stmt) -> bool {
        let mut ranges = false;
        body.for_each(|s| {
            if let StmtKind::For { range, .. } = s.kind() {
                ranges |= range.min.mentions(var) || range.extent.mentions(var);
            }
        });
        let in_guard = |(guard, scope): &(Expr, Scope)| scope.inlined(guard).mentions(var);
        ranges || self.guards.iter().any(in_guard)
    }

    /// Whether something may happen in the first iteration of a loop, and in the last one.
    fn may_act_at_ends(&self, var: &Var, range: &Range) -> bool {
        let last = &range.min + &range.extent - 1;
        [&range.min, &last].into_iter().all(|end| {
            let at_end = var.expr().equal(end.clone());
            let acts = |p: &Scope| !p.domain().with_guard(&at_end).proves(&Expr::bool(false));
            self.always || self.places.iter().any(acts)
        })
    }

    /// The values of the loop's variable for which something happens, over the variables of the
    /// loops outside and the variable; `None` if that is always.
    fn values(&self, var: &Var, outer: &[Var]) -> Known<Option<Set>> {
        if self.always {
            return Ok(None);
        }
        let kept: Vec<Var> = outer.iter().chain([var]).cloned().collect();
        Set::union_of(self.places.iter().map(|p| p.domain().to_set()?.project(&kept)))
    }

    fn here(&mut self) {
        self.always |= self.scope.guards == 0;
        self.unguarded |= self.depth == 0;
        if !std::mem::replace(&mut self.is_noted, true) {
            self.places.push(self.scope.clone());
        }
    }
}

/// Whether something happens in a statement whichever of its guards hold: at least in both branches of one.
fn acts_both_ways(s: &Stmt) -> bool {
    match s.kind() {
        _ if s.is_nop() => false,
        StmtKind::Store { .. }
        | StmtKind::Assume(_)
        | StmtKind::Assert { .. }
        | StmtKind::Evaluate(_) => true,
        StmtKind::If { then, otherwise: Some(other), .. } => {
            acts_both_ways(then) && acts_both_ways(other)
        }
        StmtKind::Seq(all) => all.iter().any(acts_both_ways),
        _ => s.body().is_some_and(acts_both_ways),
    }
}

impl Placed for Acting {
    type At = Scope;
    fn at(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn within(&mut self, step: ScopeStep<'_>, work: impl FnOnce(&mut Self)) {
        let before = (self.scope.clone(), self.depth);
        if let ScopeStep::Holds(guard, _) = step {
            self.guards.push((guard.clone(), self.scope.clone()));
            self.depth += 1;
        }
        self.scope.go(step);
        self.is_noted = false;
        work(self);
        (self.scope, self.depth) = before;
        self.is_noted = false;
    }

    fn inside(&mut self, block: &Block) {
        match &block.init {
            Some(_) => self.here(),
            None => self.stmt(&block.body),
        }
    }
}

impl Visit for Acting {
    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            _ if self.unguarded || s.is_nop() => {}
            StmtKind::Store { .. }
            | StmtKind::Assume(_)
            | StmtKind::Assert { .. }
            | StmtKind::Evaluate(_) => self.here(),
            _ => walk_stmt_placed(self, s),
        }
    }

    /// Evaluating an expression may do something.
    fn expr(&mut self, e: &Expr) {
        if e.effects().impure() {
            self.here();
        }
    }
}
