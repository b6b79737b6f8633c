//! Accesses that may be out of range end the run.
//!
//! Every index of a load or store is proved to lie between zero and the extent of its axis: by
//! intervals and linear facts (`known`), else by exact sets. Where no proof
//! is found an assertion goes in front of the statement, with the buffer, the axis and the values
//! of the indices. An access that is out of range for certain is an error.
//!
//! This runs where blocks are gone and buffers still have their axes: a flat place may be inside of
//! the buffer although an index is not. Proofs use loops, conditions and assertions,
//! which are all evaluated when the function runs, never `T.assume`, which is not.
//!
//! **Places of assertions.** An assertion that is not in a loop costs next to nothing, and a loop
//! with one inside is not vectorised. So an assertion moves out of a loop, if nothing in the loop writes what it
//! reads: to the iteration that decides (`ends`), or into a loop of its own in front where that is not known. When
//! it fails, outputs hold anything, so that the order of assertions and stores is free;
//! what an assertion reads is still behind those that keep it in range.
//!
//! **Widths.** Code generation takes sums of `int32` in an index in 64 bits. An index that may wrap
//! is bound to a variable first, which has the value of its type.
//!
//! Memory that a call of a C function touches is beyond this.

mod ends;
mod hoist;
mod known;

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::text::brief;
use tilewright_ir::visit::{Subst, accessed, fold_expr_children, fold_range, fold_stmt_children};
use tilewright_ir::{
    BinOp, Buffer, DType, Dim, Error, Expr, ExprKind, Fold, Param, Range, Result, Span, Stmt,
    StmtKind, TensorFunc, TypeKind, Var, dim,
};
use tilewright_polyhedral::Proof;

use hoist::{Check, flush};
use known::PlaceFacts;
use tilewright_analysis::lane::lane_of;
use tilewright_polyhedral::scope::Scope;

/// Most nodes that are visited in one function; parts that are shared under different conditions
/// count each time.
const MAX_NODES: usize = 500_000;

/// Operations of the set engine for one access.
const QUOTA: u64 = 200_000;

/// Gives a function without blocks the assertions that keep its accesses in range.
///
/// # Errors
/// `Malformed` for an access that is out of range whenever the function runs, and for a view that
/// is larger than its memory; `Unsupported` for what cannot be checked: a view of memory whose size
/// is not constant, an index that calls a C function, a vector index without a scalar form.
pub(crate) fn check_bounds(func: &TensorFunc) -> Result<TensorFunc> {
    let mut checker = Checker {
        func,
        known: PlaceFacts::default(),
        entries: Vec::new(),
        free: HashSet::default(),
        loops: 0,
        conditions: 0,
        sizes: HashMap::default(),
        pending: Vec::new(),
        span: None,
        error: None,
        nodes: 0,
        done: vec![HashMap::default()],
    };
    for param in &func.params {
        if let Param::Buffer { handle, buffer } = param {
            let bytes = capacity(buffer);
            checker.sizes.insert(handle.clone(), bytes);
            checker.sizes.insert(buffer.data.clone(), bytes);
        }
    }
    checker.known.sizes(func);
    let body = checker.stmt(&func.body);
    let body = flush(checker.pending, body);
    checker.error.map_or_else(|| Ok(TensorFunc { body, ..func.clone() }), Err)
}

/// How many assertions of `check_bounds` a function has.
pub fn count(func: &TensorFunc) -> usize {
    let mut count = 0;
    func.body.for_each(|s| {
        if let StmtKind::Assert { message, values, .. } = s.kind() {
            count += usize::from(!values.is_empty() && message.contains(OUT_OF_RANGE));
        }
    });
    count
}

/// What the message of such an assertion says.
const OUT_OF_RANGE: &str = "is out of range: axis";

/// One thing around a place.
#[derive(Clone)]
enum ScopeEntry {
    Loop(Var, Range),
    Let(Var, Expr),
    Cond(Expr, bool),
    /// A condition of which nothing is known any more.
    Hidden,
}

struct Checker<'a> {
    func: &'a TensorFunc,
    known: PlaceFacts,
    /// What is around the place, outermost first.
    entries: Vec<ScopeEntry>,
    /// Variables of loops whose bounds are constants.
    free: HashSet<Var>,
    /// How many loops are around.
    loops: usize,
    /// How many things are around or before that decide whether the place is reached.
    conditions: usize,
    /// Bytes behind each pointer, where that is constant.
    sizes: HashMap<Var, Option<Dim>>,
    /// Assertions that go before the statement.
    pending: Vec<Check>,
    /// The place of the statement.
    span: Option<Span>,
    error: Option<Error>,
    nodes: usize,
    /// Expressions that were checked, with what became of them; a map for each condition around.
    done: Vec<HashMap<usize, (Expr, Expr)>>,
}

impl Checker<'_> {
    fn fail(&mut self, error: impl FnOnce() -> Error) {
        if self.error.is_none() {
            self.error = Some(error().at(self.span));
        }
    }

    /// Runs with one more thing around.
    fn under<R>(&mut self, entry: ScopeEntry, run: impl FnOnce(&mut Self) -> R) -> R {
        let (mark, conditions) = (self.known.mark(), self.conditions);
        match &entry {
            ScopeEntry::Loop(var, range) => {
                let memory = range.min.effects().loads || range.extent.effects().loads;
                // What was read may change while the loop runs; its interval does not.
                if memory {
                    self.known.enter_unknown(var, range)
                } else {
                    self.known.enter(var, range)
                }
                match (range.min.as_int(), range.extent.as_int()) {
                    (Some(_), Some(1..)) => drop(self.free.insert(var.clone())),
                    _ => self.conditions += 1,
                }
                self.loops += 1;
            }
            ScopeEntry::Let(var, value) => {
                if value.effects().loads {
                    self.known.bind_unknown(var, value)
                } else {
                    self.known.bind(var, value)
                }
            }
            ScopeEntry::Cond(cond, holds) => {
                self.known.learn(cond, *holds);
                self.conditions += 1;
            }
            ScopeEntry::Hidden => self.conditions += 1,
        }
        let is_loop = matches!(entry, ScopeEntry::Loop(..));
        self.entries.push(entry);
        self.done.push(HashMap::default());
        let result = run(self);
        self.done.pop();
        self.entries.pop();
        self.loops -= usize::from(is_loop);
        self.conditions = conditions;
        self.known.back(mark);
        result
    }

    /// Whether what a condition says of memory may end while a statement runs.
    fn changes(&mut self, cond: &Expr, s: &Stmt) -> bool {
        cond.effects().loads && (s.effects().impure() || !accessed(s).1.is_empty())
    }

    /// The indices of an access, which are checked; new ones where one may wrap.
    fn access(&mut self, buffer: &Buffer, indices: Vec<Expr>, around: usize) -> Vec<Expr> {
        let lanes = indices.iter().map(|i| i.dtype().lanes).max().unwrap_or(1);
        let lanes = self.entries[around..].iter().fold(lanes, |n, entry| match entry {
            ScopeEntry::Cond(e, _) | ScopeEntry::Let(_, e) => n.max(e.dtype().lanes),
            ScopeEntry::Loop(..) | ScopeEntry::Hidden => n,
        });
        if lanes == 1 {
            return self.scalar_access(buffer, indices, around);
        }
        let lane = Var::index("lane");
        let new: Option<Vec<Expr>> = indices.iter().map(|e| lane_of(e, &lane)).collect();
        let entries: Option<Vec<ScopeEntry>> = self.entries[around..]
            .iter()
            .map(|entry| match entry {
                ScopeEntry::Cond(e, holds) => Some(ScopeEntry::Cond(lane_of(e, &lane)?, *holds)),
                ScopeEntry::Let(v, e) if v.dtype().lanes == 1 => {
                    Some(ScopeEntry::Let(v.clone(), lane_of(e, &lane)?))
                }
                ScopeEntry::Let(..) => None,
                other => Some(other.clone()),
            })
            .collect();
        let (Some(new), Some(entries)) = (new, entries) else {
            self.fail(|| {
                Error::unsupported(format!(
                    "the vector access of `{}` cannot be checked lane by lane",
                    buffer.name
                ))
                .help("write it as a loop with `T.vectorized`, or compile with --unchecked")
            });
            return indices;
        };
        let outer = self.entries.split_off(around);
        let range = Range::upto(Expr::i32(lanes.into()));
        self.under(ScopeEntry::Loop(lane, range), |c| {
            c.nested(&entries, &mut |c| drop(c.scalar_access(buffer, new.clone(), around)));
        });
        self.entries.extend(outer);
        indices
    }

    fn nested(&mut self, entries: &[ScopeEntry], run: &mut dyn FnMut(&mut Self)) {
        match entries.split_first() {
            None => run(self),
            Some((first, rest)) => self.under(first.clone(), |c| c.nested(rest, run)),
        }
    }

    fn scalar_access(&mut self, buffer: &Buffer, indices: Vec<Expr>, around: usize) -> Vec<Expr> {
        let mut new = indices.clone();
        let mut open = Vec::new();
        for (axis, (index, extent)) in indices.iter().zip(&buffer.shape).enumerate() {
            let (above, below) = self.known.within(index, extent);
            let proved = above && below || self.sets_prove(index, extent);
            if !self.known.stays(index, if proved { 64 } else { 32 }) {
                let value = Var::new("at", index.dtype());
                new[axis] = Expr::let_in(value.clone(), index.clone(), value.expr());
            }
            if !proved {
                open.push((axis, above, below));
            }
        }
        for (axis, above, below) in open {
            if let Some(point) = self.violation(&indices[axis], &buffer.shape[axis]) {
                self.fail(|| out_of_range(buffer, &indices, axis, &point));
                return new;
            }
            let check = self.assertion(buffer, &indices, axis, (above, below));
            self.push(check, around);
        }
        new
    }

    /// Whether exact sets prove that an index is in range.
    fn sets_prove(&self, index: &Expr, extent: &Expr) -> bool {
        if !self.known.integral(index) || !self.known.integral(extent) {
            return false;
        }
        self.scope().0.proves(&in_range(index, extent, (false, false)))
    }

    /// What exact sets know of the place, and whether that is all.
    fn scope(&self) -> (Scope, bool) {
        let mut scope = Scope::at_entry(self.func).with_quota(QUOTA);
        let integral = |e: &Expr| self.known.integral(e);
        let mut all = true;
        for entry in &self.entries {
            match entry {
                ScopeEntry::Loop(var, range) if integral(&range.min) && integral(&range.extent) => {
                    scope.enter(var, range);
                }
                ScopeEntry::Let(var, value) if integral(value) => scope.bind(var, value),
                ScopeEntry::Cond(cond, holds) if integral(cond) => all &= scope.learn(cond, *holds),
                _ => all = false,
            }
        }
        (scope, all)
    }

    /// A point of the loops around at which an index is out of range, if the place is reached there
    /// whenever the function runs.
    fn violation(&self, index: &Expr, extent: &Expr) -> Option<String> {
        let n = i128::from(extent.as_int()?);
        if self.conditions == 0 {
            let corners = self.known.corners(index, &|v| self.free.contains(v))?;
            let (_, at) = corners.into_iter().find(|(value, _)| !(0..n).contains(value))?;
            return Some(point(at.iter().map(|(v, x)| (v, x.to_string()))));
        }
        let (scope, true) = self.scope() else { return None };
        if !self.known.integral(index) {
            return None;
        }
        let cond = scope.index(&in_range(index, extent, (false, false)))?;
        let loops: HashSet<Var> = scope.vars().into_iter().collect();
        match scope.domain().prove(&cond) {
            Proof::No { witness } if witness.values.iter().all(|(v, _)| loops.contains(v)) => {
                Some(point(witness.values.iter().map(|(v, x)| (v, x.to_string()))))
            }
            _ => None,
        }
    }

    /// The assertion that an index is in range, as far as that is not known.
    fn assertion(
        &self,
        buffer: &Buffer,
        indices: &[Expr],
        axis: usize,
        known: (bool, bool),
    ) -> Stmt {
        let extent = &buffer.shape[axis];
        let cond = in_range(&indices[axis], extent, known);
        let shown = vec!["{}"; indices.len()].join(", ");
        let name = buffer.name.replace(['{', '}'], "_");
        let mut values: Vec<Expr> = indices.iter().map(wide).collect();
        let end = match extent.as_int() {
            Some(n) => n.to_string(),
            None => {
                values.push(wide(extent));
                "{}".to_owned()
            }
        };
        let message = format!("`{name}[{shown}]` {OUT_OF_RANGE} {axis} has extent {end}").into();
        Stmt::spanned(StmtKind::Assert { cond, message, values }, self.span)
    }

    /// Puts an assertion before the statement, under what is around the expression.
    fn push(&mut self, check: Stmt, around: usize) {
        let wrapped = self.entries[around..].iter().rev().fold(check, |check, entry| match entry {
            ScopeEntry::Cond(cond, true) => Stmt::guard(cond.clone(), check),
            ScopeEntry::Cond(cond, false) => Stmt::guard(Expr::not_node(cond.clone()), check),
            ScopeEntry::Let(var, value) => Stmt::let_in(var, value.clone(), check),
            ScopeEntry::Loop(var, range) => {
                Stmt::for_loop(var, range.clone(), tilewright_ir::ForKind::Serial, check)
            }
            ScopeEntry::Hidden => check,
        });
        if wrapped.effects().impure() {
            return self.fail(|| {
                Error::unsupported("an index that calls a function cannot be checked")
                    .help("bind the result of the call to a variable in front of the statement")
            });
        }
        self.pending.push(Check::new(Subst::refresh().stmt(&wrapped)));
    }

    /// An expression of the statement; its accesses are checked.
    fn check_expr(&mut self, e: &Expr, around: usize) -> Expr {
        if self.error.is_some() || !e.effects().loads {
            return e.clone();
        }
        if let Some((_, new)) = self.done.iter().rev().find_map(|d| d.get(&e.address())) {
            return new.clone();
        }
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            self.fail(|| Error::unsupported("the function has too many accesses to check"));
            return e.clone();
        }
        let new = match e.kind() {
            ExprKind::Load(buffer, indices) => {
                let new: Vec<Expr> = indices.iter().map(|i| self.check_expr(i, around)).collect();
                let new = self.access(buffer, new, around);
                if new.iter().zip(indices).all(|(x, y)| x.ptr_eq(y)) {
                    e.clone()
                } else {
                    Expr::load(buffer, new)
                }
            }
            _ => fold_expr_children(&mut Parts { checker: self, around, of: e, first: None }, e),
        };
        if let Some(done) = self.done.last_mut() {
            done.insert(e.address(), (e.clone(), new.clone()));
        }
        new
    }

    /// Whether a view lies within its memory.
    fn view(&mut self, buffer: &Buffer) {
        let owner = self.sizes.get(&buffer.data).copied();
        let (have, need) = (owner.flatten(), capacity(buffer));
        match (have, need) {
            (Some(have), Some(need)) if have.at_least(need) => {}
            (Some(have), Some(need)) if have.known().is_some() && need.known().is_some() => self.fail(|| {
                Error::malformed(format!(
                    "`{}` is a view of {need} bytes, and its memory has {have}",
                    buffer.name
                ))
            }),
            _ => self.fail(|| {
                Error::unsupported(format!(
                    "`{}` is a view that cannot be checked: the size of its memory is not a constant",
                    buffer.name
                ))
                .help("give the sizes, or compile with --unchecked")
            }),
        }
    }

    /// A store whose accesses are checked.
    fn store(&mut self, s: &Stmt, around: usize) -> Stmt {
        let StmtKind::Store { buffer, indices, value } = s.kind() else { return s.clone() };
        let value = self.check_expr(value, around);
        let indices: Vec<Expr> = indices.iter().map(|i| self.check_expr(i, around)).collect();
        let indices = self.access(buffer, indices, around);
        Stmt::spanned(StmtKind::Store { buffer: buffer.clone(), indices, value }, s.span())
    }

    /// Stores under a mask, a condition that differs between lanes. Nothing but stores may stand there, so
    /// that what is checked stands in front of the mask, lane by lane.
    fn masked(&mut self, s: &Stmt, around: usize) -> Stmt {
        let StmtKind::Seq(stmts) = s.kind() else { return self.store(s, around) };
        if stmts.iter().skip(1).any(reads_places) {
            self.fail(|| {
                Error::unsupported(
                    "places that are read from memory, in several stores under a mask",
                )
                .help("write them as loops with `T.vectorized`, or compile with --unchecked")
            });
        }
        Stmt::seq(stmts.iter().map(|s| self.store(s, around)).collect::<Vec<_>>())
    }

    /// A branch that runs where a condition holds, or does not. What may be checked before the branch is added
    /// to `before`.
    fn branch(&mut self, cond: &Expr, holds: bool, s: &Stmt, before: &mut Vec<Check>) -> Stmt {
        let entry = if self.changes(cond, s) {
            ScopeEntry::Hidden
        } else {
            ScopeEntry::Cond(cond.clone(), holds)
        };
        let new = self.under(entry, |c| c.stmt(s));
        let inside = std::mem::take(&mut self.pending);
        let (new, out) = hoist::out_of_branch(cond, holds, self.loops > 0, new, inside);
        before.extend(out);
        new
    }

    /// The parts of a statement.
    fn node(&mut self, s: &Stmt) -> Stmt {
        let around = self.entries.len();
        match s.kind() {
            StmtKind::Store { .. } => self.store(s, around),
            StmtKind::For { var, range, kind, body, .. } => {
                let range = fold_range(self, range);
                let mut before = std::mem::take(&mut self.pending);
                let entry = ScopeEntry::Loop(var.clone(), range.clone());
                let body = self.under(entry, |c| c.stmt(body));
                let inside = std::mem::take(&mut self.pending);
                let (body, out) =
                    hoist::out_of_loop((var, &range, kind), &self.known, body, inside);
                before.extend(out);
                self.pending = before;
                s.with_loop(range, body)
            }
            StmtKind::If { cond, then, otherwise } if cond.dtype().lanes > 1 => {
                let cond = self.check_expr(cond, around);
                let holds = ScopeEntry::Cond(cond.clone(), true);
                let then = self.under(holds, |c| c.masked(then, around));
                let otherwise = otherwise.as_ref().map(|o| {
                    let fails = ScopeEntry::Cond(cond.clone(), false);
                    self.under(fails, |c| c.masked(o, around))
                });
                Stmt::spanned(StmtKind::If { cond, then, otherwise }, s.span())
            }
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.check_expr(cond, around);
                let mut before = std::mem::take(&mut self.pending);
                let then = self.branch(&cond, true, then, &mut before);
                let otherwise =
                    otherwise.as_ref().map(|o| self.branch(&cond, false, o, &mut before));
                self.pending = before;
                Stmt::spanned(StmtKind::If { cond, then, otherwise }, s.span())
            }
            StmtKind::Let { var, value, body } => {
                let value = self.check_expr(value, around);
                let mut before = std::mem::take(&mut self.pending);
                let entry = ScopeEntry::Let(var.clone(), value.clone());
                let body = self.under(entry, |c| c.stmt(body));
                let inside = std::mem::take(&mut self.pending);
                let (body, out) = hoist::out_of_let(var, &value, self.loops > 0, body, inside);
                before.extend(out);
                self.pending = before;
                Stmt::spanned(StmtKind::Let { var: var.clone(), value, body }, s.span())
            }
            StmtKind::Seq(stmts) => {
                let (mark, conditions) = (self.known.mark(), self.conditions);
                let entries = self.entries.len();
                let (mut out, mut moved) = (Vec::new(), Vec::new());
                for s in stmts {
                    let new = self.stmt(s);
                    let checks = std::mem::take(&mut self.pending);
                    let movable = self.loops > 0 || out.is_empty();
                    moved.extend(hoist::to_the_front(&mut out, movable, checks));
                    out.push(new);
                    if let StmtKind::Assert { cond, .. } = s.kind() {
                        self.conditions += 1;
                        let fixed = !cond.effects().loads && !cond.effects().impure();
                        if fixed {
                            self.known.learn(cond, true);
                        }
                        self.entries.push(if fixed {
                            ScopeEntry::Cond(cond.clone(), true)
                        } else {
                            ScopeEntry::Hidden
                        });
                    }
                }
                self.known.back(mark);
                self.entries.truncate(entries);
                self.conditions = conditions;
                self.pending = moved;
                Stmt::seq(out)
            }
            StmtKind::Allocate { buffer, .. }
            | StmtKind::Constant { buffer, .. }
            | StmtKind::Declare { buffer, .. } => {
                match s.kind() {
                    StmtKind::Declare { .. } => self.view(buffer),
                    _ => {
                        self.sizes.insert(buffer.data.clone(), capacity(buffer));
                        let back = buffer.strides.iter().chain(&buffer.elem_offset);
                        if back.filter_map(Expr::as_int).any(|v| v < 0) {
                            self.fail(|| {
                                Error::malformed(format!(
                                    "buffer `{}` reaches in front of its memory",
                                    buffer.name
                                ))
                            });
                        }
                    }
                }
                let mut within = Within { checker: self, data: buffer.data.clone() };
                fold_stmt_children(&mut within, s)
            }
            StmtKind::Block { block, .. } => {
                self.fail(|| Error::internal(format!("the block `{}` is left", block.name)));
                s.clone()
            }
            StmtKind::Assume(_) | StmtKind::Assert { .. } | StmtKind::Evaluate(_) => {
                fold_stmt_children(self, s)
            }
        }
    }
}

fn loads_any(at: &[Expr]) -> bool {
    at.iter().any(|i| i.effects().loads)
}

fn reads_places(s: &Stmt) -> bool {
    let StmtKind::Store { indices, value, .. } = s.kind() else { return false };
    let mut found = loads_any(indices);
    value.for_each_load(|_, at| found |= loads_any(at));
    found
}

/// The parts of an expression, each under what decides whether it is evaluated.
struct Parts<'a, 'b> {
    checker: &'a mut Checker<'b>,
    around: usize,
    of: &'a Expr,
    /// The first part, as it is now, and the number of parts so far.
    first: Option<(Expr, usize)>,
}

impl Fold for Parts<'_, '_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        let entry = match (self.of.kind(), &mut self.first) {
            (ExprKind::IfThenElse(..), Some((cond, parts))) => {
                *parts += 1;
                Some(ScopeEntry::Cond(cond.clone(), *parts == 2))
            }
            (ExprKind::Binary(op @ (BinOp::And | BinOp::Or), ..), Some((a, _))) => {
                Some(ScopeEntry::Cond(a.clone(), *op == BinOp::And))
            }
            (ExprKind::Let(var, ..), Some((value, _))) => {
                Some(ScopeEntry::Let(var.clone(), value.clone()))
            }
            _ => None,
        };
        let around = self.around;
        match entry {
            Some(entry) => self.checker.under(entry, |c| c.check_expr(e, around)),
            None => {
                let new = self.checker.check_expr(e, around);
                self.first = Some((new.clone(), 1));
                new
            }
        }
    }
}

/// The body of an allocation or view: what reads it stays inside.
struct Within<'a, 'b> {
    checker: &'a mut Checker<'b>,
    data: Var,
}

impl Fold for Within<'_, '_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let body = self.checker.stmt(s);
        let inside = std::mem::take(&mut self.checker.pending);
        let (body, out) = hoist::out_of_scope(&self.data, body, inside);
        self.checker.pending = out;
        body
    }
}

impl Fold for Checker<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        let around = self.entries.len();
        self.check_expr(e, around)
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        if self.error.is_some() {
            return s.clone();
        }
        let outer = self.span;
        self.span = s.span().or(outer);
        // What was read may have changed since.
        let done = std::mem::replace(&mut self.done, vec![HashMap::default()]);
        let new = self.node(s);
        self.done = done;
        self.span = outer;
        new
    }
}

/// `0 <= index < extent`, without the sides that are known.
fn in_range(index: &Expr, extent: &Expr, (above, below): (bool, bool)) -> Expr {
    let (i, n) = match (index.dtype(), extent.dtype()) {
        (DType::I32, DType::I32) => (index.clone(), extent.clone()),
        (DType::U64, _) => (index.clone(), extent.clone().cast(DType::U64)),
        _ => (wide(index), wide(extent)),
    };
    let not_negative = Expr::binary(BinOp::Ge, i.clone(), Expr::int(0, i.dtype()));
    let less = Expr::binary(BinOp::Lt, i.clone(), n);
    match (above || i.dtype().kind == TypeKind::UInt, below) {
        (false, false) => Expr::binary(BinOp::And, not_negative, less),
        (false, true) => not_negative,
        _ => less,
    }
}

/// An integer in 64 bits.
fn wide(e: &Expr) -> Expr {
    e.clone().cast(DType::I64)
}

/// The bytes that a buffer spans behind its pointer, where that is known and the buffer does not
/// reach in front of it: what lowering allocates, and what a view needs.
fn capacity(b: &Buffer) -> Option<Dim> {
    let element = b.dtype().bytes() * usize::from(b.dtype().lanes);
    if b.const_shape().is_none() && b.strides.is_empty() && b.elem_offset.is_none() {
        return Some(dim::product(dim::of_shape(&b.shape)?) * element);
    }
    let fixed = fixed_capacity(b).and_then(|n| usize::try_from(n).ok()).map(Dim::from);
    fixed.or_else(|| Some(open_span(b)? * element))
}

/// The elements from the first to the last one of a buffer with strides that has elements at every size.
fn open_span(b: &Buffer) -> Option<Dim> {
    if b.elem_offset.is_some() || b.strides.is_empty() {
        return None;
    }
    let (shape, strides) = (dim::of_shape(&b.shape)?, dim::of_shape(&b.strides)?);
    if !shape.iter().all(|extent| extent.at_least(1)) {
        return None;
    }
    let last = shape.into_iter().zip(strides).map(|(extent, stride)| (extent - 1) * stride);
    Some(last.fold(Dim::from(1), |span, step| span + step))
}

/// [`capacity`] of a buffer of constant size.
fn fixed_capacity(b: &Buffer) -> Option<i128> {
    let shape: Vec<i128> = b.shape.iter().map(non_negative).collect::<Option<_>>()?;
    let offset = b.elem_offset.as_ref().map_or(Some(0), non_negative)?;
    let elements = if shape.contains(&0) {
        0
    } else if b.strides.is_empty() {
        shape.iter().try_fold(1i128, |n, d| n.checked_mul(*d))?
    } else {
        let strides: Vec<i128> = b.strides.iter().map(non_negative).collect::<Option<_>>()?;
        let entries = shape.iter().zip(strides).map(|(d, s)| (d - 1).checked_mul(s));
        entries.sum::<Option<i128>>()?.checked_add(1)?
    };
    let element = i128::try_from(b.dtype().bytes() * usize::from(b.dtype().lanes)).ok()?;
    elements.checked_add(offset)?.checked_mul(element)
}

fn non_negative(e: &Expr) -> Option<i128> {
    e.as_int().filter(|v| *v >= 0).map(i128::from)
}

fn point<'v>(values: impl Iterator<Item = (&'v Var, String)>) -> String {
    let text: Vec<String> = values.map(|(v, x)| format!("{}={x}", v.name())).collect();
    text.join(", ")
}

fn out_of_range(buffer: &Buffer, indices: &[Expr], axis: usize, point: &str) -> Error {
    let shown: Vec<String> = indices.iter().map(brief).collect();
    let at = if point.is_empty() { String::new() } else { format!(" at {point}") };
    Error::malformed(format!(
        "`{}[{}]` is out of range{at}: axis {axis} has extent {}",
        buffer.name,
        shown.join(", "),
        brief(&buffer.shape[axis])
    ))
}
