//! Simplification of a whole function by what is known at each place.
//!
//! Known are the ranges of loops and block iteration variables, the conditions that guard a place,
//! let bindings, assumptions and assertions that came before, that extents are not negative, and
//! what memory holds ([`tilewright_analysis::facts`]). Under that, the exact sets of
//! [`tilewright_polyhedral`] simplify indices and conditions:
//!
//! * a branch whose condition is decided becomes one of its sides; two sides that do the same
//!   become one; branches that ask the same or the opposite become one;
//! * a loop without iterations goes, one of a single iteration becomes its body;
//! * a load of a known value becomes that value;
//! * a store of what its cell just gave, and what does nothing, go;
//! * data is simplified as far as that rounds nothing differently, and so is `T.undef()`
//!   (see `data`).
//!
//! **Never more is evaluated than before.** An expression in which something is evaluated only
//! sometimes (`and`, `or`, `if_then_else`) and that loads or may divide by zero is simplified part
//! by part, in its order. Calls of C functions are left alone.
//!
//! **Conditions about memory** hold until a write may touch what they read: a store to one of the
//! elements or to a view of its buffer, a loop that has such a store in any iteration, a call that
//! may do anything.
//!
//! **Stored values wrap.** The sets know which arithmetic wraps and take that on loops and sizes for
//! index arithmetic, which stays in its type. In a stored value it need not: that is simplified only
//! where bounds do not show an operation that overflows.
//!
//! Inside of a block only the domains of its variables are known, not what they are bound to, so
//! that the block still stands for itself afterwards; values of memory are looked up by the
//! bindings. Bindings of `let` stay; loops with annotations and loops for threads stay too, for
//! the passes that look for them.
//!
//! **Limit.** A binding of arithmetic on data (`t = u + u`, where `u` came from memory) wraps, and
//! is one more remainder in every question after it. Of those around a place the first
//! `MAX_WRAPPED` are known.

mod branch;
mod data;
mod ends;
mod expr;
mod indices;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use tilewright_ir::visit::{Subst, fold_block_children, fold_stmt_children, free_vars};
use tilewright_ir::{
    BinOp, Block, Buffer, Error, Expr, ExprKind, Fold, ForKind, IterVar, Range, Remarks, Result,
    Stmt, StmtKind, TensorFunc, Var, data::variables, equal,
};
use tilewright_polyhedral::Domain;

use crate::pass::{Flag, Pass, Run};
use crate::settle::without_nothing;
pub use indices::{PASS as RENORMALIZE, indices};
use tilewright_analysis::facts::Facts;
use tilewright_polyhedral::place::first;
use tilewright_polyhedral::points::Points;
use tilewright_polyhedral::sizes::sizes;

/// Whether what memory holds decides conditions.
const CONDITIONS: Flag = Flag {
    name: "propagate_knowns_to_prove_conditional",
    summary: "what memory is known to hold decides conditions",
    default: true,
};

/// Whether what memory holds replaces loads.
const VALUES: Flag = Flag {
    name: "propagate_knowns_to_simplify_expressions",
    summary: "known values of memory replace loads",
    default: true,
};

/// `simplify` by name. Exact sets have no use for the first three of TVM's switches.
pub const PASS: Pass = Pass {
    name: "simplify",
    summary: "simplify indices, conditions, branches and loops by what is known at each place",
    options: &[
        &Flag {
            name: "transitively_prove_inequalities",
            summary: "no effect: always done",
            default: true,
        },
        &Flag {
            name: "convert_boolean_to_and_of_ors",
            summary: "no effect: the shortest form is taken",
            default: false,
        },
        &Flag {
            name: "apply_constraints_to_boolean_branches",
            summary: "no effect: always done",
            default: true,
        },
        &CONDITIONS,
        &VALUES,
    ],
    run: Run::Tensor(|f, given, why| {
        let (conditions, values) = (given.get(&CONDITIONS)?, given.get(&VALUES)?);
        simplify(f, SimplifyOptions { conditions, values }, why)
    }),
};

/// Which use is made of known values of memory. Each is right by itself; everything by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimplifyOptions {
    /// They replace loads.
    pub values: bool,
    /// They decide conditions.
    pub conditions: bool,
}

impl Default for SimplifyOptions {
    fn default() -> SimplifyOptions {
        SimplifyOptions { values: true, conditions: true }
    }
}

/// Simplifies a function. What stays, and why, is added to `why`.
///
/// # Errors
/// `Refused` for an assumption that is provably false at a
/// place that is reached, with its place.
pub fn simplify(
    func: &TensorFunc,
    options: SimplifyOptions,
    why: &mut Remarks,
) -> Result<TensorFunc> {
    let mut s = Simplify::new(func, options, why);
    let body = s.statement(&func.body);
    s.error.map_or_else(|| Ok(TensorFunc { body, ..func.clone() }), Err)
}

/// Bindings of arithmetic on data that are looked into at a place. The work of a question grows with
/// the third power of their number.
const MAX_WRAPPED: usize = 8;

struct Simplify<'a> {
    /// What holds here; conditions about memory, as long as the elements that they read do not
    /// change.
    points: Points,
    /// What held until something was written.
    lost: Vec<Expr>,
    /// The variables that hold data.
    data_vars: HashSet<Var>,
    /// The arguments that are no buffers.
    params: HashSet<Var>,
    /// How many bindings of arithmetic on data are around, as far as they are known.
    wrapped: usize,
    /// What was found to be the simplest form of something here.
    simplest: Rc<RefCell<VecDeque<Simplest>>>,
    /// What cells hold here.
    memory: Facts,
    /// The loops around, inside of the block.
    loops: Vec<Var>,
    /// The loops outside of the block.
    foreign: HashSet<Var>,
    /// What the variables of the blocks around are, and under which conditions the blocks run.
    bound: Vec<Expr>,
    /// Whether data decides if this place is reached.
    by_data: bool,
    /// Whether this is part of a stored value.
    data: bool,
    options: SimplifyOptions,
    why: &'a mut Remarks,
    error: Option<Error>,
}

/// An expression, whether it is data, and its simplest form.
type Simplest = (Expr, bool, Expr);

impl<'a> Simplify<'a> {
    fn new(func: &TensorFunc, options: SimplifyOptions, why: &'a mut Remarks) -> Simplify<'a> {
        Simplify {
            points: Points::new(sizes(func)),
            lost: Vec::new(),
            data_vars: variables(func).into_iter().collect(),
            params: func.scalars().cloned().collect(),
            wrapped: 0,
            simplest: Rc::default(),
            memory: Facts::new(func),
            loops: Vec::new(),
            foreign: HashSet::default(),
            bound: Vec::new(),
            by_data: false,
            data: false,
            options,
            why,
            error: None,
        }
    }

    fn domain(&mut self) -> Domain {
        self.points.domain().clone()
    }

    /// What holds from here on.
    fn know(&mut self, points: Points) {
        self.points = points;
        self.simplest = Rc::default();
    }

    /// Enters a loop, or the domain of a block's variable.
    fn enter(&mut self, var: &Var, range: &Range) {
        self.know(self.points.with_var(var, range));
    }

    /// Takes a condition as given from here on.
    fn learn(&mut self, cond: &Expr) {
        for part in cond.conjuncts() {
            if !part.effects().impure() && part.dtype().lanes == 1 {
                self.know(self.points.with_guard(&part));
            }
        }
    }

    /// Takes a binding as given.
    fn bind(&mut self, var: &Var, value: &Expr) {
        if (var.dtype().is_int() || var.dtype().is_bool()) && var.dtype().lanes == 1 {
            let plain = matches!(value.kind(), ExprKind::Var(_) | ExprKind::Load(..));
            if !plain && self.data_vars.contains(var) {
                self.wrapped += 1;
                if self.wrapped > MAX_WRAPPED {
                    return;
                }
            }
            self.learn(&Expr::binary(BinOp::Eq, var.expr(), value.clone()));
        }
    }

    /// Forgets the conditions that a statement may have changed.
    fn forget(&mut self, s: &Stmt) {
        if self.points.guards().any(|cond| cond.effects().loads) {
            let written = self.memory.written_by(s);
            let memory = &self.memory;
            let (points, lost) = self
                .points
                .without(|c| c.effects().loads && memory.may_change(&written, c).is_some());
            self.lose(points, lost);
        }
    }

    fn lose(&mut self, points: Points, lost: Vec<Expr>) {
        if !lost.is_empty() {
            self.know(points);
            self.lost.extend(lost);
        }
    }

    /// Runs with the conditions that are learned on the way forgotten afterwards.
    fn scoped<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let saved = (self.points.clone(), self.wrapped, self.simplest.clone(), self.by_data);
        let lost = self.lost.len();
        let result = work(self);
        (self.points, self.wrapped, self.simplest, self.by_data) = saved;
        self.lost.truncate(lost);
        result
    }

    /// Runs where a condition holds.
    fn under<R>(&mut self, cond: &Expr, work: impl FnOnce(&mut Self) -> R) -> R {
        self.scoped(|s| {
            s.by_data |= s.is_data(cond);
            s.learn(cond);
            work(s)
        })
    }

    /// Whether memory or what came from it has to do with a value. The arguments of a function may
    /// have any values.
    fn is_data(&self, e: &Expr) -> bool {
        e.effects().loads
            || free_vars(e).iter().any(|v| self.data_vars.contains(v) && !self.params.contains(v))
    }

    fn for_loop(&mut self, s: &Stmt) -> Stmt {
        let StmtKind::For { var, range, kind, annotations, body } = s.kind() else {
            return s.clone();
        };
        let range = self.range(range);
        let pure = !range.min.effects().impure() && !range.extent.effects().impure();
        let marked = !annotations.is_empty() || matches!(kind, ForKind::ThreadBinding(_));
        if range.is_point() && pure && !marked {
            return self.statement(&Subst::vars([(var.clone(), range.min)]).stmt(body));
        }
        self.forget(s);
        self.memory.enter_loop(var, &range, kind);
        self.loops.push(var.clone());
        let new = self.scoped(|s| {
            s.enter(var, &range);
            s.by_data |= s.is_data(&range.min) || s.is_data(&range.extent);
            if pure && s.domain().proves(&Expr::bool(false)) {
                Stmt::nop()
            } else {
                s.statement(body)
            }
        });
        self.loops.pop();
        self.memory.leave();
        if new.is_nop() && pure { new } else { s.with_loop(range, new) }
    }

    fn range(&mut self, range: &Range) -> Range {
        Range { min: self.index(&range.min), extent: self.index(&range.extent) }
    }

    fn store(&mut self, s: &Stmt) -> Stmt {
        let StmtKind::Store { buffer, indices, value } = s.kind() else { return s.clone() };
        let indices: Vec<Expr> = indices.iter().map(|i| self.index(i)).collect();
        if self.is_there(buffer, &indices, value) {
            return Stmt::nop();
        }
        let value = self.value(value);
        if self.is_there(buffer, &indices, &value) {
            return Stmt::nop();
        }
        self.forget(s);
        self.memory.store(buffer, &indices, &value);
        Stmt::spanned(StmtKind::Store { buffer: buffer.clone(), indices, value }, s.span())
    }

    /// Whether a value is what the cell just gave.
    fn is_there(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> bool {
        let ExprKind::Load(from, at) = value.kind() else { return false };
        if from != buffer || !indices.iter().chain(at).all(|i| !i.effects().impure()) {
            return false;
        }
        let domain = self.domain();
        indices.iter().zip(at).all(|(a, b)| equal::same_expr(a, b) || domain.is_equal(a, b))
    }

    fn assume(&mut self, s: &Stmt, cond: &Expr) {
        let traits = cond.effects();
        if !traits.impure() {
            let domain = self.domain();
            let lies = domain.proves(&!cond.clone()) || self.by_memory(cond) == Some(false);
            if lies && self.is_reached() {
                self.error.get_or_insert_with(|| {
                    Error::refused(format!("the assumption `{cond}` is false here")).at(s.span())
                });
            }
            self.learn(cond);
        }
        self.memory.assume(cond);
    }

    /// Whether this place is reached for certain values of loops and arguments. What only data
    /// decides may never happen: a branch stays where that is not seen.
    fn is_reached(&self) -> bool {
        let exactly = self.bound.iter().fold(self.points.clone(), |p, cond| p.with_guard(cond));
        !self.by_data && exactly.domain().is_empty().is_no()
    }

    fn statement(&mut self, s: &Stmt) -> Stmt {
        if s.own_effects().calls {
            self.memory.forget_all();
            let (points, lost) = self.points.without(|cond| cond.effects().loads);
            self.lose(points, lost);
        }
        match s.kind() {
            StmtKind::Store { .. } => self.store(s),
            StmtKind::For { .. } => self.for_loop(s),
            StmtKind::If { .. } => self.branch(s),
            StmtKind::Seq(parts) => self.sequence(s, parts),
            StmtKind::Let { var, value, body } => {
                let value = self.index(value);
                let body = self.scoped(|f| {
                    f.bind(var, &value);
                    f.memory.enter_let(var, &value);
                    let body = f.statement(body);
                    f.memory.leave();
                    body
                });
                self.forget(s);
                if body.is_nop() && !value.effects().impure() {
                    body
                } else {
                    Stmt::spanned(StmtKind::Let { var: var.clone(), value, body }, s.span())
                }
            }
            StmtKind::Allocate { buffer, .. }
            | StmtKind::Constant { buffer, .. }
            | StmtKind::Declare { buffer, .. } => {
                self.memory.enter_buffer(buffer);
                let new = fold_stmt_children(self, s);
                self.memory.leave();
                without_nothing(new)
            }
            StmtKind::Block { bindings, predicate, block } => {
                let bindings: Vec<Expr> = bindings.iter().map(|b| self.index(b)).collect();
                let predicate = self.condition(predicate);
                if predicate.is_false() {
                    return Stmt::nop();
                }
                self.memory.enter_block(&bindings, &predicate, block);
                let outside = (self.foreign.clone(), std::mem::take(&mut self.loops));
                self.foreign.extend(outside.1.iter().cloned());
                let bound = self.bound.len();
                let block = self.scoped(|s| {
                    s.bound_by(&bindings, &predicate, block);
                    s.block_parts(block)
                });
                self.bound.truncate(bound);
                (self.foreign, self.loops) = outside;
                self.memory.leave_block();
                self.forget(s);
                Stmt::spanned(StmtKind::Block { bindings, predicate, block }, s.span())
            }
            StmtKind::Assume(cond) => {
                self.assume(s, cond);
                s.clone()
            }
            StmtKind::Assert { cond, message, values } => {
                let cond = self.condition(cond);
                if cond.is_true() {
                    return Stmt::nop();
                }
                self.by_data |= self.is_data(&cond);
                self.learn(&cond);
                self.memory.assume(&cond);
                let (message, values) = (message.clone(), values.clone());
                Stmt::spanned(StmtKind::Assert { cond, message, values }, s.span())
            }
            StmtKind::Evaluate(_) => self.within(true, |f| fold_stmt_children(f, s)),
        }
    }

    fn bound_by(&mut self, bindings: &[Expr], predicate: &Expr, block: &Block) {
        let bind = |(iter, value): (&IterVar, &Expr)| iter.var.expr().equal(value.clone());
        self.bound.extend(block.iters.iter().zip(bindings).map(bind));
        self.bound.push(predicate.clone());
        self.by_data |= bindings.iter().chain([predicate]).any(|e| self.is_data(e));
    }

    fn block_parts(&mut self, b: &Arc<Block>) -> Arc<Block> {
        for iter in &b.iters {
            let domain: Range = self.range(&iter.domain);
            self.enter(&iter.var, &domain);
        }
        // The frame first; the initialisation runs in some iterations only.
        let frame = Block { init: None, body: Stmt::nop(), ..b.as_ref().clone() };
        let frame = fold_block_children(self, &Arc::new(frame));
        let init = b.init.as_ref().map(|init| {
            let first = first(b);
            self.memory.enter_branch(&first, true);
            let new = self.under(&first, |s| s.statement(init));
            self.memory.leave();
            self.forget(init);
            new
        });
        let body = self.statement(&b.body);
        Arc::new(Block { init, body, ..frame.as_ref().clone() })
    }
}

impl Fold for Simplify<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        self.expression(e)
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        self.statement(s)
    }
}
