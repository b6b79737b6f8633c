//! Local buffers are allocated where they are used, with the cells that live at once.
//!
//! ```text
//! L = alloc((32, 21, 6, 16))           for j, i in grid(32, 21):
//! for j, i in grid(32, 21):                L = alloc((1, 1, 6, 16))
//!     for r, l in grid(6, 16):     →       for r, l in grid(6, 16):
//!         L[j, i, r, l] = 0                    L[0, 0, r, l] = 0
//!     ...                                  ...
//! ```
//!
//! First the allocation moves inward, as long as no value is lost: into a loop of which no iteration
//! reads what another one wrote; into the only part of a sequence that uses the buffer; and, as a
//! buffer each, into parts of a sequence of which none reads what another one wrote, if these need
//! no more memory together (loops that were taken apart have such copies), or a known amount in the
//! place of an open one. TVM does the first two in
//! `plan_and_update_buffer_allocation_location`.
//!
//! There the buffer keeps, on each axis, the smallest range that holds all indices for given values
//! of the loops outside (`sides`; TVM's `compact_buffer_region`); its start is subtracted from the indices.
//! Strides stay what they are. An axis keeps its extent where an access is not known to be in range,
//! so that an access is out of range afterwards exactly where it was before.

mod hidden;
mod moved;
pub mod reach;
mod relations;
mod sides;

use std::cell::OnceCell;

use tilewright_analysis::footprint::{
    Cells, Footprint, in_range, plainly_reads_own_writes, reads_own_writes, touches,
};
use tilewright_ir::data;
use tilewright_ir::index;
use tilewright_ir::index::{Interval, Linear, Ranges};
use tilewright_ir::visit::{Subst, fold_stmt_children};
use tilewright_ir::{
    Attrs, Buffer, Error, Expr, Fold, ForKind, Range, Remarks, Stmt, StmtKind, TensorFunc, Var,
};
use tilewright_polyhedral::sizes::given;
use tilewright_polyhedral::{Domain, Engine};

use crate::pass::{Pass, Run};

use self::moved::Moved;
use self::relations::{
    Compared, ComparedIndex, IndexTerms, Relations, is_dense, is_told_by_digits,
};

/// `compact_buffer` by name.
pub const PASS: Pass = Pass {
    name: "compact_buffer",
    summary: "allocate buffers where they are used, with the cells that live at once; \
              blocks must be lowered",
    options: &[],
    run: Run::Tensor(|f, _, why| Ok(compact_buffers(f, why))),
};

/// Moves the allocations of a function inward and shrinks them. A buffer that stays as it is because
/// something is not known has a remark.
pub(crate) fn compact_buffers(func: &TensorFunc, why: &mut Remarks) -> TensorFunc {
    let mut ranges = Ranges::default();
    ranges.bind_sizes(func);
    let sizes = func.sizes().into_iter().map(|v| v.expr().greater_equal(0));
    let around = sizes.chain(given(func)).map(Around::Holds).collect();
    let mut growing = Ranges::default();
    func.sizes().iter().for_each(|v| growing.bind_size(v));
    let mut compact = Compact { around, ranges, growing, data: data::variables(func), why };
    TensorFunc { body: compact.stmt(&func.body), ..func.clone() }
}

struct Compact<'a> {
    /// The loops and conditions around the place, outermost first; of a condition its branch.
    around: Vec<Around>,
    /// The values of the loops seen so far.
    ranges: Ranges,
    /// The same as if tensors could have any number of cells: what has an end then does not grow with sizes.
    growing: Ranges,
    /// Variables that hold data, whose arithmetic wraps.
    data: Vec<Var>,
    why: &'a mut Remarks,
}

/// What is around a place.
enum Around {
    Loop(Var, Range),
    /// A condition that holds, or the value of a binding.
    Holds(Expr),
}

/// An allocation on its way.
struct Local {
    buffer: Buffer,
    annotations: Attrs,
    /// The statement that it was in.
    from: Stmt,
}

impl Local {
    /// The same for a buffer of its own, and what puts that into statements.
    fn another(&self) -> (Local, Subst) {
        let buffer = self.buffer.derive_storage(|_| {});
        let renamed = Subst::buffers([(self.buffer.clone(), buffer.clone())]);
        let (annotations, from) = (self.annotations.clone(), self.from.clone());
        (Local { buffer, annotations, from }, renamed)
    }
}

/// A statement with an allocation in it, or around it.
struct Placed {
    stmt: Stmt,
    /// How many elements are allocated at once; unknown for open sizes.
    elements: Option<i64>,
}

impl Placed {
    /// The same inside of a statement.
    fn inside(self, s: &Stmt) -> Placed {
        Placed { stmt: s.with_body(self.stmt), ..self }
    }
}

/// Whether each iteration of a loop of a kind may have memory of a buffer by itself: a thread has what is
/// `local`, and a group what is `shared`.
fn may_hold(kind: &ForKind, buffer: &Buffer) -> bool {
    match kind {
        ForKind::Vectorized => false,
        ForKind::ThreadBinding(_) => match &*buffer.scope {
            "local" => true,
            "shared" => kind.group_axis().is_some(),
            _ => false,
        },
        _ => true,
    }
}

impl Fold for Compact<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Allocate { .. } => {
                let inner = fold_stmt_children(self, s);
                self.place(&inner)
            }
            StmtKind::If { cond, then, otherwise } => {
                let yes = self.under(cond.clone(), |c| c.stmt(then));
                let no = otherwise.as_ref().map(|o| self.under(!cond.clone(), |c| c.stmt(o)));
                if yes.ptr_eq(then) && no.iter().zip(otherwise).all(|(a, b)| a.ptr_eq(b)) {
                    return s.clone();
                }
                let kind = StmtKind::If { cond: cond.clone(), then: yes, otherwise: no };
                Stmt::spanned(kind, s.span())
            }
            StmtKind::For { .. } | StmtKind::Let { .. } => {
                self.inside(s, |c| fold_stmt_children(c, s))
            }
            _ => fold_stmt_children(self, s),
        }
    }
}

impl Compact<'_> {
    /// Does what is inside of a loop or a binding.
    fn inside<R>(&mut self, s: &Stmt, work: impl FnOnce(&mut Self) -> R) -> R {
        let more = match s.kind() {
            StmtKind::For { var, range, .. } => {
                self.bind_loop(var, range);
                Around::Loop(var.clone(), range.clone())
            }
            StmtKind::Let { var, value, .. } if index::is_index(value) && var.dtype().is_int() => {
                self.bind_loop(var, &Range::point(value.clone()));
                Around::Holds(var.expr().equal(value))
            }
            _ => Around::Holds(Expr::bool(true)),
        };
        self.within(more, work)
    }

    /// Does what runs where a condition holds.
    fn under<R>(&mut self, cond: Expr, work: impl FnOnce(&mut Self) -> R) -> R {
        let bounds: Vec<(Var, Interval)> =
            cond.conjuncts().iter().filter_map(|c| reach::bound(c, &self.ranges)).collect();
        let mut before = Vec::new();
        for (var, values) in bounds {
            let Some(known) = self.ranges.exact(&var.expr()) else { continue };
            let values = known.meet(values);
            if !values.is_empty() && values != known {
                before.push((var.clone(), known));
                self.bind_exact(&var, values);
            }
        }
        let result = self.within(Around::Holds(cond), work);
        before.into_iter().rev().for_each(|(var, known)| self.bind_exact(&var, known));
        result
    }

    fn bind_exact(&mut self, var: &Var, values: Interval) {
        self.ranges.bind_exact(var, values);
        self.growing.bind_exact(var, values);
    }

    fn within<R>(&mut self, more: Around, work: impl FnOnce(&mut Self) -> R) -> R {
        self.around.push(more);
        let result = work(self);
        self.around.pop();
        result
    }

    /// What is known at the place, whatever memory holds.
    fn known(&self) -> Vec<Expr> {
        let mut known = Vec::new();
        for around in &self.around {
            match around {
                Around::Loop(var, range) => known.extend(in_range(var, range)),
                Around::Holds(cond) => known.push(cond.clone()),
            }
        }
        known.retain(|cond| !cond.is_true() && cond.effects().constant());
        known
    }

    fn remark(&mut self, local: &Local, what: &str, note: impl Into<String>) {
        let text = format!("the buffer `{}` {what}", local.buffer.name);
        self.why.push(Error::refused(text).at(local.from.span()).note(note.into()));
    }

    /// An allocation at its best place.
    fn place(&mut self, s: &Stmt) -> Stmt {
        let StmtKind::Allocate { buffer, annotations, body } = s.kind() else { return s.clone() };
        let (buffer, annotations) = (buffer.clone(), annotations.clone());
        let local = Local { buffer, annotations, from: s.clone() };
        if let Some(note) = hidden::hidden(&local.buffer, body) {
            self.remark(&local, "stays as it is", note);
            return s.clone();
        }
        match touches(body, &local.buffer) {
            (false, false) => body.clone(),
            _ => self.sink(&local, body).stmt,
        }
    }

    /// A statement with the allocation as deep in it as can be.
    fn sink(&mut self, local: &Local, s: &Stmt) -> Placed {
        let uses = |e: &Expr| e.loads_from(|b| *b == local.buffer);
        match s.kind() {
            StmtKind::For { var, range, kind, body, .. }
                if may_hold(kind, &local.buffer)
                    && !uses(&range.min)
                    && !uses(&range.extent)
                    && (self.runs_once(range)
                        || self.inside(s, |c| c.is_new_each_time(local, var, body))) =>
            {
                self.inside(s, |c| c.sink(local, body)).inside(s)
            }
            StmtKind::If { cond, .. } if !uses(cond) => self.sink_into_branches(local, s),
            StmtKind::Let { value, body, .. } if !uses(value) => {
                self.inside(s, |c| c.sink(local, body)).inside(s)
            }
            StmtKind::Allocate { body, .. } | StmtKind::Declare { body, .. } => {
                self.sink(local, body).inside(s)
            }
            StmtKind::Seq(parts) => self.sink_into_sequence(local, parts),
            _ => self.here(local, s),
        }
    }

    /// A statement with branches, with an allocation in each that uses the buffer: only one of them
    /// runs.
    fn sink_into_branches(&mut self, local: &Local, s: &Stmt) -> Placed {
        let StmtKind::If { cond, then, otherwise } = s.kind() else { return self.here(local, s) };
        let then = self.sink_into_branch(local, cond.clone(), then);
        let otherwise = otherwise.as_ref().map(|o| self.sink_into_branch(local, !cond.clone(), o));
        let elements = match &otherwise {
            Some(otherwise) => then.elements.zip(otherwise.elements).map(|(a, b)| a.max(b)),
            None => then.elements,
        };
        let (then, otherwise) = (then.stmt, otherwise.map(|o| o.stmt));
        let kind = StmtKind::If { cond: cond.clone(), then, otherwise };
        Placed { stmt: Stmt::spanned(kind, s.span()), elements }
    }

    /// A branch that runs where a condition holds, with an allocation of its own if it uses the buffer.
    fn sink_into_branch(&mut self, local: &Local, holds: Expr, s: &Stmt) -> Placed {
        if touches(s, &local.buffer) == (false, false) {
            return Placed { stmt: s.clone(), elements: Some(0) };
        }
        let (own, mut renamed) = local.another();
        let s = renamed.stmt(s);
        self.under(holds, |c| c.sink(&own, &s))
    }

    fn sink_into_sequence(&mut self, local: &Local, parts: &[Stmt]) -> Placed {
        let used: Vec<usize> = (0..parts.len())
            .filter(|k| touches(&parts[*k], &local.buffer) != (false, false))
            .collect();
        let (Some(first), Some(last)) = (used.first(), used.last()) else {
            return self.here(local, &Stmt::seq(parts.to_vec()));
        };
        // Runs of parts from one cut to the next.
        let mut runs: Vec<std::ops::RangeInclusive<usize>> = Vec::new();
        let mut start = *first;
        for pair in used.windows(2) {
            let before = Stmt::seq(parts[*first..=pair[0]].to_vec());
            let after = Stmt::seq(parts[pair[1]..=*last].to_vec());
            if !self.hands_over(local, &before, &after) {
                runs.push(start..=pair[0]);
                start = pair[1];
            }
        }
        runs.push(start..=*last);
        let mut placed: Vec<Placed> = Vec::new();
        if runs.len() > 1 {
            for r in &runs {
                let (own, mut renamed) = local.another();
                let parts: Vec<Stmt> = parts[r.clone()].iter().map(|s| renamed.stmt(s)).collect();
                placed.push(self.run(&own, &parts));
            }
            let together = placed.iter().try_fold(0i64, |sum, p| sum.checked_add(p.elements?));
            // A number of elements is taken to be less than an open one.
            let more = match together {
                None => true,
                Some(_) if count(&local.buffer.shape).is_none() => false,
                Some(together) => {
                    let whole = self.elements(local, &Stmt::seq(parts.to_vec()));
                    whole.is_some_and(|whole| together > whole)
                }
            };
            if more {
                runs = vec![*first..=*last];
                placed.clear();
            }
        }
        if placed.is_empty() {
            placed.extend(runs.iter().map(|r| self.run(local, &parts[r.clone()])));
        }
        let elements = placed.iter().try_fold(0i64, |sum, p| sum.checked_add(p.elements?));
        let mut all: Vec<Stmt> = Vec::new();
        let mut next = 0;
        for (r, p) in runs.iter().zip(placed) {
            all.extend(parts[next..*r.start()].iter().cloned());
            all.push(p.stmt);
            next = r.end() + 1;
        }
        all.extend(parts[next..].iter().cloned());
        Placed { stmt: Stmt::seq(all), elements }
    }

    /// Neighbours in a sequence that share one allocation.
    fn run(&mut self, local: &Local, parts: &[Stmt]) -> Placed {
        match parts {
            [one] => self.sink(local, one),
            _ => self.here(local, &Stmt::seq(parts.to_vec())),
        }
    }

    /// Whether a loop has one iteration at most.
    fn runs_once(&self, range: &Range) -> bool {
        let extent = index::linear(&range.extent, &self.ranges);
        let extent = extent.filter(|_| !range.extent.mentions_any(&self.data));
        extent.and_then(|e| e.span(&self.ranges)).is_some_and(|values| values.hi <= 1)
    }

    /// Whether every iteration of a loop, whose body this is, may have memory of its own: it reads
    /// only what it wrote itself.
    fn is_new_each_time(&mut self, local: &Local, var: &Var, body: &Stmt) -> bool {
        if plainly_reads_own_writes(body, &local.buffer) {
            return true;
        }
        let cells = Footprint::collect(body, &local.buffer);
        self.learn_inner(&cells);
        self.are_disjoint(&cells.writes, &cells.reads, Some(var))
            || reads_own_writes(body, &local.buffer, &self.known()).is_ok()
    }

    /// Whether a statement may read what an earlier one wrote.
    fn hands_over(&mut self, local: &Local, before: &Stmt, after: &Stmt) -> bool {
        if plainly_reads_own_writes(after, &local.buffer) {
            return false;
        }
        let writes = Footprint::collect(before, &local.buffer).writes;
        let cells = Footprint::collect(after, &local.buffer);
        self.learn_inner(&cells);
        !self.are_disjoint(&writes, &cells.reads, None)
            && reads_own_writes(after, &local.buffer, &self.known()).is_err()
    }

    /// Takes down the values of loops inside.
    fn learn_inner(&mut self, footprint: &Footprint) {
        for (var, range) in footprint.reads.iter().chain(&footprint.writes).flat_map(|c| &c.vars) {
            self.bind_loop(var, range);
        }
    }

    /// Whether no write meets a read: at all, or in another iteration of the loop over `var`.
    fn are_disjoint(&self, writes: &[Cells], reads: &[Cells], var: Option<&Var>) -> bool {
        let looped = var.map(|v| (v, loop_range(v, &self.around)));
        let sets = Relations::new(self.known(), looped);
        let [writes, reads] = [writes, reads]
            .map(|all| all.iter().map(|c| self.compared(c, var)).collect::<Vec<_>>());
        let meet = |w: &Compared| reads.iter().any(|r| self.plainly_meet(w, r));
        if var.is_none() && writes.iter().any(meet) {
            return false;
        }
        writes.iter().all(|w| {
            reads.iter().all(|r| {
                let mut axes = w.axes.iter().zip(&r.axes);
                var.is_some_and(|v| is_told_by_digits(w.cells, r.cells, v))
                    || axes.any(|(i, k)| self.differ((i, w), (k, r), var))
                    || sets.are_disjoint(w, r)
            })
        })
    }

    /// An access, taken apart once for all that it is compared with.
    fn compared<'c>(&self, cells: &'c Cells, var: Option<&Var>) -> Compared<'c> {
        let terms = cells.indices.iter().map(|e| self.parts(e, &cells.vars, var));
        let axes = terms.map(|terms| ComparedIndex { terms, ends: OnceCell::new() }).collect();
        Compared { cells, axes, points: OnceCell::new() }
    }

    /// Whether all cells of one access are among those of another one, as far as intervals say and a guard does not
    /// keep it from them: then nothing tells them apart, and the sets need not be asked.
    fn plainly_meet(&self, one: &Compared, other: &Compared) -> bool {
        let is_among = |(a, b): (&ComparedIndex, &ComparedIndex)| {
            let (Some(a), Some(b)) = (&a.terms, &b.terms) else { return false };
            let offset = a.outer.clone().plus(&b.outer, -1).and_then(|o| o.span(&self.ranges));
            let cells = offset.zip(a.inner).and_then(|(offset, inner)| inner.plus(offset));
            let all = b.inner.filter(|_| b.reached && is_dense(b, other.cells));
            cells.zip(all).is_some_and(|(cells, all)| cells.within(all))
        };
        let plain = one.cells.guards.is_empty() || other.cells.guards.is_empty();
        plain && one.axes.iter().zip(&other.axes).all(|(a, b)| is_among((a, b)) || is_among((b, a)))
    }

    /// Whether an index of one access differs from that of another one, by intervals: at any
    /// iterations, or at those with different values of `var`.
    fn differ(
        &self,
        (i, one): (&ComparedIndex, &Compared),
        (k, other): (&ComparedIndex, &Compared),
        var: Option<&Var>,
    ) -> bool {
        let (Some(a), Some(b)) = (&i.terms, &k.terms) else { return false };
        if self.differ_by_intervals(a, b, var).unwrap_or(false) {
            return true;
        }
        if a.step != 0 || b.step != 0 {
            return false;
        }
        let (one, other) = (i.ends(one, &self.ranges), k.ends(other, &self.ranges));
        let (Some((first, last)), Some((from, to))) = (one, other) else { return false };
        self.is_below(last, from) || self.is_below(to, first)
    }

    /// The difference is `step * (one iteration - another one)` and something in `low..=high`.
    fn differ_by_intervals(
        &self,
        a: &IndexTerms,
        b: &IndexTerms,
        var: Option<&Var>,
    ) -> Option<bool> {
        let offset = a.outer.clone().plus(&b.outer, -1)?.span(&self.ranges)?;
        let (one, other) = (a.inner?, b.inner?);
        let (low, high) = (offset.lo + one.lo - other.hi, offset.hi + one.hi - other.lo);
        Some(match a.step == b.step {
            true if a.step == 0 => low > 0 || high < 0,
            true => var.is_some() && low > -a.step.abs() && high < a.step.abs(),
            false => false,
        })
    }

    /// Whether one form is less than another one.
    fn is_below(&self, one: &Linear, other: &Linear) -> bool {
        let distance = other.clone().plus(one, -1);
        distance.and_then(|d| d.span(&self.ranges)).is_some_and(|d| d.lo > 0)
    }

    /// The allocation around a statement.
    fn here(&mut self, local: &Local, s: &Stmt) -> Placed {
        let (sides, notes) = self.sides(local, s);
        for note in notes {
            self.remark(local, "keeps its extent", note);
        }
        let old = &local.buffer;
        if sides.iter().all(Option::is_none) {
            return Placed {
                stmt: allocated(old.clone(), s.clone(), local),
                elements: count(&old.shape),
            };
        }
        let new = old.derive_storage(|d| {
            for (extent, side) in d.shape.iter_mut().zip(&sides) {
                if let Some(side) = side {
                    *extent = Expr::int(side.extent, extent.dtype());
                }
            }
        });
        let elements = count(&new.shape);
        let mut moved = Moved { old, new: &new, sides: &sides, ranges: &self.ranges };
        let body = moved.stmt(s);
        Placed { stmt: allocated(new.clone(), body, local), elements }
    }

    /// How many elements the allocation would have around a statement.
    fn elements(&mut self, local: &Local, s: &Stmt) -> Option<i64> {
        let extents = local.buffer.shape.iter().zip(self.sides(local, s).0);
        extents
            .map(|(e, side)| side.map_or(e.as_int(), |side| Some(side.extent)))
            .try_fold(1i64, |all, n| all.checked_mul(n?))
    }

    /// Says what values the variable of a loop or binding has.
    fn bind_loop(&mut self, var: &Var, range: &Range) {
        self.ranges.bind_loop(var, range);
        self.growing.bind_loop(var, range);
    }

    /// The points at which the place is reached.
    fn loops(&self, engine: &Engine) -> Domain {
        let (mut loops, mut holds) = (Vec::new(), Vec::new());
        for around in &self.around {
            match around {
                Around::Loop(var, range) => loops.push((var.clone(), range.clone())),
                Around::Holds(cond) => holds.push(cond.clone()),
            }
        }
        holds.retain(|cond| cond.effects().constant());
        engine.domain_of(&loops, &holds)
    }
}

fn allocated(buffer: Buffer, body: Stmt, local: &Local) -> Stmt {
    let annotations = local.annotations.clone();
    let kind = StmtKind::Allocate { buffer, annotations, body };
    Stmt::spanned(kind, local.from.span())
}

/// The variable of the loop is no variable of the domains of accesses.
fn loop_range(var: &Var, around: &[Around]) -> Option<Range> {
    around.iter().rev().find_map(|a| match a {
        Around::Loop(v, range) if v == var => Some(range.clone()),
        _ => None,
    })
}

fn count(shape: &[Expr]) -> Option<i64> {
    shape.iter().try_fold(1i64, |all, n| all.checked_mul(n.as_int()?))
}
