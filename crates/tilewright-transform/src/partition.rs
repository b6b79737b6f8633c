//! Loops taken apart where their guards change.
//!
//! ```text
//! for jo in range(4):                       for jo in range(3):
//!     for ji in range(32):                      for ji in range(32):
//!         if jo * 32 + ji < 127:       →            C[jo * 32 + ji] = ...
//!             C[jo * 32 + ji] = ...         for ji in range(31):
//!                                               C[96 + ji] = ...
//! ```
//!
//! For each comparison in the body the iterations are sought in which it holds at every point of
//! the loops inside, and those in which it holds at none. Where one of these sets is an interval,
//! its ends are places to cut. The parts start at zero, and what is decided in them is gone; loops
//! inside of a part are taken apart in turn. The extents of the parts may also be given.
//!
//! Any cut is right, so where a bound depends on sizes that are open it is brought into the range
//! by `min` and `max`; of loops that nobody asked to take apart, there are parts for sizes for which it is in the range,
//! and the whole loop for others. Sets that are no interval (`i % 2 == 0`) give no cut.

use std::fmt::Display;

use tilewright_ir::visit::{Subst, fold_expr_children, fold_stmt_children};
use tilewright_ir::{
    BinOp, Block, DType, Error, Expr, ExprKind, Fold, ForKind, Range, Remarks, Result, Stmt,
    StmtKind, TensorFunc, Var, Visit,
};
use tilewright_polyhedral::{Known, Proof, Set};

use crate::pass::{self, Flag, Run};
use crate::settle::settle;
use tilewright_polyhedral::place::{Placed, walk_expr_placed, walk_stmt_placed};
use tilewright_polyhedral::scope::{
    Copies, MAX_COPIED, Scope, Scoped, fold_scoped, hinted, likely, under,
};

/// Also loops with constant bounds that have no hint.
const CONSTANT_LOOPS: Flag = Flag {
    name: "partition_const_loop",
    summary: "also loops with constant bounds, at their conditions in T.likely",
    default: false,
};

/// Keep loops of one iteration.
const KEEP_SINGLE: Flag = Flag {
    name: "no_unroll_loop_with_extent_one",
    summary: "keep loops of one iteration",
    default: false,
};

/// Unroll what cannot be taken apart.
const UNROLL_WHOLE: Flag = Flag {
    name: "unroll_loop_with_partition_hint_no_interval",
    summary: "unroll loops with a hint that no condition takes apart",
    default: false,
};

/// `loop_partition` by name.
pub const PASS: pass::Pass = pass::Pass {
    name: "loop_partition",
    summary: "take loops apart at their hints and T.likely, so that most of them has no guards",
    options: &[&CONSTANT_LOOPS, &KEEP_SINGLE, &UNROLL_WHOLE],
    run: Run::Tensor(|f, given, why| {
        let how = Partition {
            constant_loops: given.get(&CONSTANT_LOOPS)?,
            keep_single: given.get(&KEEP_SINGLE)?,
            unroll_whole: given.get(&UNROLL_WHOLE)?,
            unscheduled: false,
        };
        loop_partition(f, how, why)
    }),
};

/// The annotation of a loop that is to be taken apart.
pub const HINT: &str = "pragma_loop_partition_hint";

/// Most parts of one loop.
const MAX_PARTS: usize = 16;

/// Iterations from which on a loop that nobody asked to take apart is worth it.
const LONG: i64 = 16;

/// Most nodes of the parts of a loop that nobody asked to take apart.
const MAX_UNASKED: usize = 1 << 11;

/// Which loops are taken apart, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// Also loops with constant bounds that have no hint.
    pub constant_loops: bool,
    /// Keep loops of one iteration.
    pub keep_single: bool,
    /// Unroll loops with a hint that cannot be taken apart.
    pub unroll_whole: bool,
    /// Also loops of open extents and long ones without a hint, at every condition.
    unscheduled: bool,
}

/// Takes apart the loops of a function: those with the annotation [`HINT`] at every condition that is
/// not in `T.ignore_loop_partition`, others at conditions in `T.likely`. All these hints are gone
/// afterwards.
pub fn loop_partition(func: &TensorFunc, how: Partition, why: &mut Remarks) -> Result<TensorFunc> {
    let mut partitioner = Partitioner::new(func, how, None, why);
    let body = Unhinted.stmt(&partitioner.stmt(&func.body));
    Ok(TensorFunc { body, ..func.clone() })
}

/// Whether a function was scheduled: it has a loop that is not serial, or has an annotation.
pub(crate) fn is_scheduled(func: &TensorFunc) -> bool {
    let mut found = false;
    func.body.for_each(|s| {
        if let StmtKind::For { kind, annotations, .. } = s.kind() {
            found |= *kind != ForKind::Serial || !annotations.is_empty();
        }
    });
    found
}

/// Takes apart the loops of open extents and the long ones of a function without blocks at the conditions in them, so
/// that most iterations have none. A function that was scheduled stays as it is.
pub(crate) fn partition_unscheduled(func: &TensorFunc) -> TensorFunc {
    if is_scheduled(func) {
        return func.clone();
    }
    let how = Partition { unscheduled: true, ..Partition::default() };
    let why = &mut Remarks::new();
    let body = Partitioner::new(func, how, None, why).stmt(&func.body);
    TensorFunc { body, ..func.clone() }
}

/// Takes one loop apart, the same node in memory: into consecutive parts of these extents, of which
/// one may be open, or else at every condition in it. What the extents leave over is a part too.
/// Second, the variables of the loops that it became, in order.
pub fn partition_loop(
    func: &TensorFunc,
    target: &Stmt,
    extents: Option<&[Option<Expr>]>,
    why: &mut Remarks,
) -> Result<(TensorFunc, Vec<Var>)> {
    let how = Partition { keep_single: true, ..Partition::default() };
    let mut partitioner = Partitioner::new(func, how, Some((target, extents)), why);
    let body = partitioner.stmt(&func.body);
    Ok((TensorFunc { body, ..func.clone() }, partitioner.parts))
}

/// A loop, and the extents of its parts if they are given.
type Target<'a> = (&'a Stmt, Option<&'a [Option<Expr>]>);

struct Partitioner<'a> {
    how: Partition,
    scope: Scope,
    copies: Copies,
    /// The loop that is meant, where it is one, with the extents that its parts are to have.
    only: Option<Target<'a>>,
    /// The variables of the parts of that loop.
    parts: Vec<Var>,
    why: &'a mut Remarks,
}

impl Scoped for Partitioner<'_> {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Fold for Partitioner<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::For { .. } => self.loop_parts(s).unwrap_or_else(|| fold_scoped(self, s)),
            _ => fold_scoped(self, s),
        }
    }
}

impl<'a> Partitioner<'a> {
    fn new(
        func: &TensorFunc,
        how: Partition,
        only: Option<Target<'a>>,
        why: &'a mut Remarks,
    ) -> Partitioner<'a> {
        let (scope, copies) = (Scope::at_entry(func), Copies::within(func));
        Partitioner { how, scope, copies, only, parts: Vec::new(), why }
    }

    fn refuse(&mut self, s: &Stmt, var: &Var, note: String) {
        let text = format!("the loop `{}` is not taken apart", var.name());
        self.why.push(Error::refused(text).at(s.span()).note(note));
    }

    /// The parts of a loop; `None` where it stays whole.
    fn loop_parts(&mut self, s: &Stmt) -> Option<Stmt> {
        let StmtKind::For { var, range, kind, annotations, body } = s.kind() else { return None };
        let hinted = annotations.contains_key(HINT);
        let constant = range.min.as_int().is_some() && range.extent.as_int().is_some();
        let (all, extents) = match self.only {
            Some((only, _)) if !s.ptr_eq(only) => return None,
            Some((_, extents)) => (true, extents),
            None => {
                let is_long = range.extent.as_int().is_none_or(|n| n >= LONG);
                (hinted || self.how.unscheduled && is_long, None)
            }
        };
        let mut conditions = Conditions { scope: self.scope.clone(), hot: all, found: Vec::new() };
        conditions.scope.enter(var, range);
        conditions.stmt(body);

        let found: Vec<Condition> = conditions.found.into_iter().filter(|c| c.uses(var)).collect();
        if matches!(kind, ForKind::ThreadBinding(_)) {
            if all {
                self.refuse(s, var, "it runs over threads".into());
            }
            return None;
        }
        if found.is_empty() && !all {
            return None;
        }
        if !all && constant && !self.how.constant_loops {
            self.refuse(s, var, "its bounds are constant, and it has no hint".into());
            return None;
        }
        let (Some(min), Some(extent)) =
            (self.scope.index(&range.min), self.scope.index(&range.extent))
        else {
            self.refuse(s, var, "its bounds depend on memory".into());
            return None;
        };
        if let Some(extents) = extents {
            return match parts_of_extents(&self.scope, var, &min, &extent, extents) {
                Ok(parts) => Some(self.in_parts(s, &parts)),
                Err(note) => {
                    self.refuse(s, var, note);
                    None
                }
            };
        }
        let bounds = Bounds { min: min.clone(), end: &min + &extent };
        let mut inside = self.scope.clone();
        inside.enter(var, range);
        let mut cuts = Cuts {
            scope: self.scope.clone(),
            inside,
            var,
            conditions: &found,
            needs: self.how.unscheduled.then(Vec::new),
            ends: Vec::new(),
            full: false,
            unknown: None,
        };
        cuts.part(bounds);
        let (parts, full, unknown) = (cuts.ends, cuts.full, cuts.unknown);
        let needs = cuts.needs.into_iter().flatten().reduce(Expr::and);
        if full {
            self.refuse(s, var, format!("it would have more than {MAX_PARTS} parts"));
        }
        if parts.len() < 2 {
            if !full && !found.is_empty() {
                self.refuse(
                    s,
                    var,
                    unknown.unwrap_or_else(|| "no condition changes at one place of it".into()),
                );
            }
            if hinted && self.how.unroll_whole && self.only.is_none() {
                let (var, range) = (var.clone(), range.clone());
                let (kind, annotations) = (ForKind::Unrolled, annotations.clone());
                let body = body.clone();
                let new = StmtKind::For { var, range, kind, annotations, body };
                return Some(fold_scoped(self, &Stmt::spanned(new, s.span())));
            }
            return None;
        }
        if self.how.unscheduled && s.size() as usize * (parts.len() + 1) > MAX_UNASKED {
            return None;
        }
        let times = parts.len() - usize::from(needs.is_none());
        if !self.copies.allows(s, times) {
            self.refuse(s, var, format!("its copies would have more than {MAX_COPIED} nodes"));
            return None;
        }
        let Some(cond) = needs else { return Some(self.in_parts(s, &parts)) };
        let then = under(self, &cond, true, |p| p.in_parts(s, &parts));
        let whole = self.copies.copy(s);
        let otherwise = Some(under(self, &cond, false, |p| fold_scoped(p, &whole)));
        Some(Stmt::spanned(StmtKind::If { cond, then, otherwise }, s.span()))
    }

    /// A loop in parts, one after the other.
    fn in_parts(&mut self, s: &Stmt, parts: &[Bounds]) -> Stmt {
        let mut new = Vec::new();
        for (k, part) in parts.iter().enumerate() {
            let one = self.part(s, part);
            let is_loop =
                matches!(one.kind(), StmtKind::For { var, .. } if s.loop_var() == Some(var));
            let one = if k == 0 { one } else { self.copies.copy(&one) };
            if let (true, StmtKind::For { var, .. }) = (is_loop, one.kind()) {
                self.parts.push(var.clone());
            }
            new.push(match self.only {
                Some(_) => one,
                // The loop itself is done with.
                None if is_loop => fold_scoped(self, &one),
                None => self.stmt(&one),
            });
        }
        Stmt::seq(new)
    }

    /// A part of a loop, from zero, without what is decided in it.
    fn part(&mut self, s: &Stmt, part: &Bounds) -> Stmt {
        let StmtKind::For { var, annotations, body, .. } = s.kind() else { return s.clone() };
        let (min, extent) = (
            self.scope.domain().simplify(&part.min),
            self.scope.domain().simplify(&(&part.end - &part.min)),
        );
        let others = annotations.keys().any(|k| &**k != HINT);
        if extent.as_int() == Some(1) && !others && !self.how.keep_single {
            let body = Subst::vars([(var.clone(), min)]).stmt(body);
            return settle(&body, &self.scope);
        }
        let body = match min.as_int() {
            Some(0) => body.clone(),
            _ => Subst::vars([(var.clone(), var + &min)]).stmt(body),
        };
        let range = Range::upto(extent);
        let mut scope = self.scope.clone();
        scope.enter(var, &range);
        let body = settle(&body, &scope);
        if body.is_nop() {
            return body;
        }
        without_hint(&s.with_loop(range, body))
    }
}

/// The loop without the annotation that asks for parts.
fn without_hint(s: &Stmt) -> Stmt {
    let mut kind = s.kind().clone();
    match &mut kind {
        StmtKind::For { annotations, .. } if annotations.contains_key(HINT) => {
            annotations.remove(HINT);
            Stmt::spanned(kind, s.span())
        }
        _ => s.clone(),
    }
}

/// The parts of a loop that have given extents; else the reason why there are none.
fn parts_of_extents(
    scope: &Scope,
    var: &Var,
    min: &Expr,
    extent: &Expr,
    extents: &[Option<Expr>],
) -> Result<Vec<Bounds>, String> {
    let open = extents.iter().filter(|e| e.is_none()).count();
    if open > 1 {
        return Err(format!("{open} extents are open, at most one may be"));
    }
    for e in extents.iter().flatten() {
        // A part of open extent may be empty.
        match e.as_int() {
            Some(_) => check_certain(
                e.clone().greater(0),
                format!("the extent {e} is not positive"),
                scope,
            )?,
            None => check_certain(
                e.clone().greater_equal(0),
                format!("the extent {e} is negative"),
                scope,
            )?,
        }
    }
    let total = extents.iter().flatten().map(|e| e.as_int().map(i128::from)).sum::<Option<i128>>();
    match total.zip(extent.as_int().map(i128::from)) {
        Some((total, extent)) if total <= extent => {}
        Some((total, _)) => return Err(too_many(&total, extent)),
        None if total.is_some_and(|total| total > i64::MAX.into()) => {
            return Err(too_many(&total.unwrap_or_default(), extent));
        }
        None => {
            let all =
                extents.iter().flatten().fold(Expr::int(0, DType::I64), |sum, e| sum + as_int64(e));
            let says =
                total.map_or_else(|| too_many(&all, extent), |total| too_many(&total, extent));
            check_certain(all.less_equal(as_int64(extent)), says, scope)?;
        }
    }
    let known: Vec<Option<Expr>> =
        extents.iter().map(|e| e.clone().map(|e| e.cast(var.dtype()))).collect();
    let zero = Expr::int(0, var.dtype());
    let covered = known.iter().flatten().fold(zero, |sum, e| sum + e);
    let rest = scope.domain().simplify(&(extent - &covered));
    let mut parts: Vec<Expr> = known.into_iter().map(|e| e.unwrap_or(rest.clone())).collect();
    if open == 0 {
        parts.push(rest);
    }
    parts.retain(|e| e.as_int() != Some(0));
    if parts.len() < 2 {
        return Err("it would be one part".into());
    }
    let mut start = min.clone();
    Ok(parts
        .into_iter()
        .map(|extent| {
            let end = &start + &extent;
            Bounds { min: std::mem::replace(&mut start, end.clone()), end }
        })
        .collect())
}

fn as_int64(e: &Expr) -> Expr {
    e.clone().cast(DType::I64)
}

/// As numbers that do not wrap; the type of the loop need not hold what is asked for.
fn check_certain(cond: Expr, else_says: String, scope: &Scope) -> Result<(), String> {
    match scope.domain().prove(&cond) {
        Proof::Yes => Ok(()),
        _ if cond.as_int().is_some() => Err(else_says),
        Proof::No { witness } => Err(format!("{else_says} at {witness}")),
        Proof::Unknown(why) => Err(format!("{else_says}, perhaps: {why}")),
    }
}

fn too_many(total: &dyn Display, extent: &Expr) -> String {
    format!("the extents take {total} iterations, more than the {extent} of the loop")
}

/// From `min` up to before `end`.
#[derive(Clone)]
struct Bounds {
    min: Expr,
    end: Expr,
}

/// A comparison in the body of a loop, and what is known at its place.
struct Condition {
    cond: Expr,
    scope: Scope,
}

impl Condition {
    fn uses(&self, var: &Var) -> bool {
        self.cond.mentions(var)
    }
}

/// Collects the comparisons of a loop's body.
struct Conditions {
    scope: Scope,
    /// Whether those at this place count.
    hot: bool,
    found: Vec<Condition>,
}

impl Placed for Conditions {
    type At = Scope;

    fn at(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn condition(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Binary(BinOp::And | BinOp::Or, a, b) => {
                self.condition(a);
                self.condition(b);
            }
            ExprKind::Not(a) => self.condition(a),
            _ => match likely(e) {
                Some(inner) => {
                    let before = std::mem::replace(&mut self.hot, true);
                    self.condition(inner);
                    self.hot = before;
                }
                // A condition that is to be left alone.
                None if hinted(e).is_some() => {}
                None => {
                    if let (true, Some(cond)) = (self.hot, self.scope.index(e)) {
                        self.found.push(Condition { cond, scope: self.scope.clone() });
                    }
                    walk_expr_placed(self, e);
                }
            },
        }
    }

    /// Inside of a block only its own variables are known.
    fn inside(&mut self, _: &Block) {}
}

impl Visit for Conditions {
    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Select(c, a, b) => {
                self.condition(c);
                self.expr(a);
                self.expr(b);
            }
            _ => walk_expr_placed(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Assume(_) | StmtKind::Assert { .. } => {}
            _ => walk_stmt_placed(self, s),
        }
    }
}

/// Looks for the places to cut a loop at.
struct Cuts<'a> {
    /// What is known in front of the loop.
    scope: Scope,
    /// What is known in it.
    inside: Scope,
    var: &'a Var,
    conditions: &'a [Condition],
    /// Conditions in front of the loop for which its parts are right, so far; `None` where parts are to be right whatever
    /// sizes are.
    needs: Option<Vec<Expr>>,
    /// The parts so far.
    ends: Vec<Bounds>,
    /// Whether there were too many.
    full: bool,
    /// Why a set is not known.
    unknown: Option<String>,
}

impl Cuts<'_> {
    /// Cuts a part until nothing more is decided by that.
    fn part(&mut self, bounds: Bounds) {
        let cut = if self.ends.len() + 1 < MAX_PARTS {
            let all = self.conditions;
            all.iter().find_map(|c| match self.find_cut(c, &bounds) {
                Ok(cut) => cut,
                Err(unknown) => {
                    self.unknown = Some(unknown.to_string());
                    None
                }
            })
        } else {
            self.full = true;
            None
        };
        match cut {
            Some(at) => {
                self.part(Bounds { min: bounds.min, end: at.clone() });
                self.part(Bounds { min: at, end: bounds.end });
            }
            None => self.ends.push(bounds),
        }
    }

    /// A place at which a condition begins or ends to be decided.
    fn find_cut(&mut self, c: &Condition, bounds: &Bounds) -> Known<Option<Expr>> {
        let outer = self.scope.vars();
        let kept: Vec<Var> = outer.iter().chain([self.var]).cloned().collect();
        let inside =
            self.var.expr().greater_equal(&bounds.min).and(self.var.expr().less(&bounds.end));
        let inside = self.needs.iter().flatten().fold(inside, |all, need| all.and(need.clone()));
        let here = c.scope.domain().with_guard(&inside);
        let reached = here.to_set()?.project(&kept)?;
        let holds = here.with_guard(&c.cond).to_set()?.project(&kept)?;
        let fails = here.with_guard(&!c.cond.clone()).to_set()?.project(&kept)?;
        if holds.is_void() || fails.is_void() {
            return Ok(None);
        }
        for decided in [reached.subtract(&fails)?, reached.subtract(&holds)?] {
            if decided.is_void() {
                continue;
            }
            let range = decided.domain().tight_range(self.var, &outer)?;
            let end = &range.min + &range.extent;
            let within = self.var.expr().greater_equal(&range.min).and(self.var.expr().less(&end));
            let interval: Set =
                reached.intersect(&self.inside.domain().with_guard(&within).to_set()?)?;
            if !interval.is_within(&decided) {
                continue;
            }
            if let Some(at) = [range.min, end].into_iter().find_map(|at| self.between(at, bounds)) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// A place brought into the bounds; `None` if it is at one of them.
    fn between(&mut self, at: Expr, bounds: &Bounds) -> Option<Expr> {
        if self.scope.unmet(&at).is_some() {
            return None;
        }
        let scope = self.scope.clone();
        let d = scope.domain();
        if d.proves(&at.clone().less_equal(&bounds.min))
            || d.proves(&at.clone().greater_equal(&bounds.end))
        {
            return None;
        }
        // A loop without iterations has only such parts.
        let within = at.clone().greater_equal(&bounds.min).and(at.clone().less_equal(&bounds.end));
        let empty = at.clone().greater_equal(&bounds.end).and(at.clone().less_equal(&bounds.min));
        let runs = bounds.min.clone().less(&bounds.end);
        if d.with_guard(&runs).proves(&within) && d.with_guard(&!runs).proves(&empty) {
            return Some(d.simplify(&at));
        }
        let ends = [at.clone().greater_equal(&bounds.min), at.clone().less_equal(&bounds.end)];
        let [above, below] = ends.map(|cond| if d.proves(&cond) { None } else { Some(cond) });
        if let Some(needs) = &mut self.needs {
            for need in above.into_iter().chain(below) {
                self.scope.learn(&need, true);
                self.inside.learn(&need, true);
                needs.push(need);
            }
            return Some(self.scope.domain().simplify(&at));
        }
        let at = if above.is_none() { at } else { at.max(&bounds.min) };
        let at = if below.is_none() { at } else { at.min(&bounds.end) };
        Some(d.simplify(&at))
    }
}

/// Drops hints, `T.likely` and `T.ignore_loop_partition`.
struct Unhinted;

impl Fold for Unhinted {
    fn expr(&mut self, e: &Expr) -> Expr {
        match hinted(e) {
            Some(inner) => self.expr(inner),
            None => fold_expr_children(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        without_hint(&fold_stmt_children(self, s))
    }
}
