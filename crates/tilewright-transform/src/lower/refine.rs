//! What a schedule leaves to be derived.
//!
//! Primitives bind the variables of blocks to expressions of loops, guard the ends of loops that do
//! not divide, and leave local buffers their full extent. That ends here, where blocks are gone and
//! buffers still have their axes:
//! 0. loops that become statements, and alone decide conditions, become them (`lower::unroll`);
//! 1. intervals, and the conditions around a place, simplify indices and decide conditions;
//! 2. the guards that splits left go where running without them changes nothing
//!    ([`overcompute`], [`tails`](overcompute::OvercomputeOptions)), loops that nobody has
//!    scheduled are taken apart where conditions change ([`partition`](crate::partition)), and loops run only where
//!    guards let something happen ([`extents`]), counting in the type of their bounds (`lower::widen`);
//! 3. exact sets simplify indices and conditions with divisions in them ([`simplify`]);
//! 4. local buffers are allocated where they are used, as small as can be ([`compact`]);
//! 5. phases over which a thread keeps memory become one nest with barriers (`lower::join_phases`);
//! 6. loops that ask for it fill shared memory one iteration ahead (`lower::double_buffer`), which lies such that
//!    lanes meet in no bank (`lower::exchange`).
//!
//! Where index arithmetic leaves its type, only the first step runs.
//!
//! The second step runs only where there are guards, and the third only where intervals leave
//! divisions: most functions need neither. What memory holds is not looked into, which takes long
//! and is left to passes of a schedule.

use tilewright_ir::equal::same_expr;
use tilewright_ir::index::{self, Ranges, divided_by_size, is_index};
use tilewright_ir::prune::prune;
use tilewright_ir::visit::{Subst, fold_func, fold_stmt_children, free_vars, walk_expr, walk_stmt};
use tilewright_ir::{
    BinOp, Error, Expr, ExprKind, Fold, ForKind, Range, Remarks, Result, Stmt, StmtKind,
    TensorFunc, Visit,
};

use tilewright_polyhedral::budget;

use crate::lower::double_buffer::double_buffer;
use crate::lower::exchange::exchange_rows;
use crate::lower::join_phases::join_phases;
use crate::lower::unroll::unroll_conditions;
use crate::lower::widen::widen_loops;
use crate::partition::partition_unscheduled;
use crate::pass::{Pass, Run};
use crate::{compact, extents, overcompute, simplify};

/// `refine` by name.
pub const PASS: Pass = Pass {
    name: "refine",
    summary: "derive the indices, guards, ranges and allocations that a schedule leaves open; \
              blocks must be lowered",
    options: &[],
    run: Run::Tensor(|f, _, why| refine(f, why)),
};

/// What guards, loops and divisions may ask of sets: what comes after, as memory that is registers, matters more.
const GUARDS: u64 = budget::PER_FUNCTION / 2;

/// What loops of them may ask to run over fewer iterations.
const EXTENTS: u64 = GUARDS / 2;

/// Derives indices, guards, ranges and allocations of a function without blocks.
///
/// # Errors
/// `Refused` for an assumption that is provably false.
pub fn refine(func: &TensorFunc, why: &mut Remarks) -> Result<TensorFunc> {
    let unrolled = unroll_conditions(func, false);
    let mut func = fold_func(&mut Settle::new(func), unrolled.as_ref().unwrap_or(func));
    if unrolled.is_some() {
        func.body = prune(&func.body);
    }
    if Wraps::occur_in(&func) {
        return Ok(func);
    }
    let func = match budget::share(GUARDS, || by_sets(&func, why)) {
        Ok(func) => func,
        Err(Error::Toolchain(_)) => func,
        Err(e) => return Err(e),
    };
    let func = compact::compact_buffers(&func, why);
    Ok(match join_phases(&func) {
        // What a thread keeps over phases is smaller in a nest of its own.
        Some(joined) => {
            let compact = compact::compact_buffers(&joined, why);
            exchange_rows(double_buffer(compact, why), why)
        }
        None => func,
    })
}

/// Simplifies the indices of a function with flat memory, where divisions are left in it: places that
/// only together make one index, as `x // 28 * 28 + x % 28` makes `x`, are one there. A loop of at most one
/// iteration, as the rest behind whole tiles has, becomes a condition. Loops that become statements and decide a part
/// of a condition are copies without it.
pub(super) fn simplify_flat(func: &TensorFunc) -> TensorFunc {
    let unrolled = unroll_conditions(func, true);
    let func = unrolled.as_ref().unwrap_or(func);
    if unrolled.is_some() || func.body.any_expr(is_division) {
        fold_func(&mut Settle { once: true, ..Settle::new(func) }, func)
    } else {
        func.clone()
    }
}

fn is_division(e: &Expr) -> bool {
    matches!(e.kind(), ExprKind::Binary(BinOp::FloorDiv | BinOp::FloorMod, ..))
}

fn by_sets(func: &TensorFunc, why: &mut Remarks) -> Result<TensorFunc> {
    let mut func = func.clone();
    let mut left = Left::collect(&func);
    if left.guards {
        let options = overcompute::OvercomputeOptions {
            tails: true,
            ..overcompute::OvercomputeOptions::default()
        };
        func = overcompute::remove_branching(&func, &options, why)?;
    }
    if left.guards || left.choices {
        func = partition_unscheduled(&func);
    }
    if left.guards {
        func =
            budget::share(EXTENTS, || widen_loops(&extents::reduce_loop_extents(&func, None, why)));
        left = Left::collect(&func);
    }
    let options = simplify::SimplifyOptions { values: false, conditions: false };
    if left.divisions { simplify::simplify(&func, options, why) } else { Ok(func) }
}

/// Simplifies indices, and drops branches that are decided, by the values of loops.
struct Settle {
    ranges: Ranges,
    /// Whether loops of at most one iteration become conditions.
    once: bool,
}

impl Settle {
    fn new(func: &TensorFunc) -> Settle {
        let mut ranges = Ranges::default();
        ranges.bind_sizes(func);
        Settle { ranges, once: false }
    }

    fn index(&mut self, e: &Expr) -> Expr {
        index::simplify(e, &self.ranges)
    }

    fn is_at_most_one(&self, extent: &Expr) -> bool {
        let values = index::linear(extent, &self.ranges).and_then(|n| n.fits(&self.ranges));
        values.is_some_and(|i| i.hi <= 1)
    }

    fn under(&mut self, cond: &Expr, holds: bool, s: &Stmt) -> Stmt {
        let outside = self.ranges.enter_guard(cond, holds);
        let new = self.stmt(s);
        self.ranges.leave_guard(outside);
        new
    }
}

impl Fold for Settle {
    fn expr(&mut self, e: &Expr) -> Expr {
        index::simplify_indices(e, &self.ranges)
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                let new: Vec<Expr> = indices.iter().map(|i| self.index(i)).collect();
                let data = self.expr(value);
                if data.ptr_eq(value) && new.iter().zip(indices).all(|(a, b)| a.ptr_eq(b)) {
                    return s.clone();
                }
                let kind = StmtKind::Store { buffer: buffer.clone(), indices: new, value: data };
                Stmt::spanned(kind, s.span())
            }
            StmtKind::For { var, range, kind, body, .. } => {
                let new = Range { min: self.index(&range.min), extent: self.index(&range.extent) };
                let is_plain =
                    matches!(kind, ForKind::Serial | ForKind::Unrolled | ForKind::Parallel);
                if is_plain && new.extent.as_int() == Some(1) {
                    // One iteration is no loop, and places in memory do not vary with it.
                    return self.stmt(&Subst::vars([(var.clone(), new.min)]).stmt(body));
                }
                if self.once && *kind == ForKind::Serial && self.is_at_most_one(&new.extent) {
                    let some = Expr::int(0, new.extent.dtype()).less(new.extent.clone());
                    let body = Subst::vars([(var.clone(), new.min)]).stmt(body);
                    let body = self.under(&some, true, &body);
                    let kind = StmtKind::If { cond: some, then: body, otherwise: None };
                    return Stmt::spanned(kind, s.span());
                }
                self.ranges.bind_loop(var, &new);
                let inside = self.stmt(body);
                let same = new.min.ptr_eq(&range.min) && new.extent.ptr_eq(&range.extent);
                if same && inside.ptr_eq(body) { s.clone() } else { s.with_loop(new, inside) }
            }
            StmtKind::Let { var, value, .. } => {
                if is_index(value) && var.dtype().is_int() {
                    self.ranges.bind_loop(var, &Range::point(value.clone()));
                }
                fold_stmt_children(self, s)
            }
            StmtKind::If { cond, then, otherwise } => {
                let decided = self.index(cond);
                match (decided.as_int(), otherwise) {
                    (Some(0), None) => Stmt::nop(),
                    (Some(0), Some(otherwise)) => self.stmt(otherwise),
                    (Some(_), _) => self.stmt(then),
                    (None, _) => {
                        let new =
                            if same_expr(&decided, cond) { cond.clone() } else { decided.clone() };
                        let yes = self.under(&decided, true, then);
                        let no = otherwise.as_ref().map(|o| self.under(&decided, false, o));
                        let same = new.ptr_eq(cond) && yes.ptr_eq(then);
                        if same
                            && no.as_ref().zip(otherwise.as_ref()).is_none_or(|(a, b)| a.ptr_eq(b))
                        {
                            return s.clone();
                        }
                        let kind = StmtKind::If { cond: new, then: yes, otherwise: no };
                        Stmt::spanned(kind, s.span())
                    }
                }
            }
            _ => fold_stmt_children(self, s),
        }
    }
}

/// Whether index arithmetic leaves its type somewhere, which all that follows takes not to happen.
#[derive(Default)]
struct Wraps {
    known: Ranges,
    found: bool,
}

impl Wraps {
    fn occur_in(func: &TensorFunc) -> bool {
        let mut wraps = Wraps::default();
        wraps.known.bind_sizes(func);
        wraps.stmt(&func.body);
        wraps.found
    }
}

impl Visit for Wraps {
    fn expr(&mut self, e: &Expr) {
        self.found |= self.known.leaves(e).is_some();
        walk_expr(self, e);
    }

    fn stmt(&mut self, s: &Stmt) {
        if let StmtKind::For { var, range, .. } = s.kind() {
            self.known.bind_loop(var, range);
        }
        walk_stmt(self, s);
    }
}

/// What intervals leave to the sets.
#[derive(Default)]
struct Left {
    /// Statements under conditions of indices.
    guards: bool,
    /// Values chosen by conditions of indices.
    choices: bool,
    /// Divisions in indices, bounds and conditions of indices.
    divisions: bool,
}

impl Left {
    fn collect(func: &TensorFunc) -> Left {
        let mut left = Left::default();
        left.stmt(&func.body);
        left
    }

    fn index(&mut self, e: &Expr) {
        self.divisions |= is_index(e) && e.effects().partial && !has_digits_alone(e);
    }
}

/// Whether all that is divided by open sizes has nothing of these in it, but in other quotients: digits of a number,
/// of which sets make nothing else.
fn has_digits_alone(e: &Expr) -> bool {
    !e.any(|part| {
        if let ExprKind::Binary(BinOp::TruncDiv | BinOp::TruncMod, ..) = part.kind() {
            return true;
        }
        let Some((_, number, size)) = divided_by_size(part) else { return false };
        let of = free_vars(size);
        let mut meets = false;
        number.for_each(|inner| {
            meets |= inner.as_var().is_some_and(|v| of.contains(v));
            divided_by_size(inner).is_none()
        });
        meets
    })
}

impl Visit for Left {
    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Select(c, ..) | ExprKind::IfThenElse(c, ..) => {
                self.choices |= is_index(c);
                self.index(c);
            }
            ExprKind::Load(_, indices) => indices.iter().for_each(|i| self.index(i)),
            _ => {}
        }
        walk_expr(self, e);
    }

    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::If { cond, .. } => {
                self.guards |= is_index(cond);
                self.index(cond);
            }
            StmtKind::Store { indices, .. } => indices.iter().for_each(|i| self.index(i)),
            StmtKind::For { range, .. } => {
                self.index(&range.min);
                self.index(&range.extent);
            }
            _ => {}
        }
        walk_stmt(self, s);
    }
}
