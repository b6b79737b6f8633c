//! From the text of a function to its SCoP: one walk that keeps loops, conditions and schedules.

use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use crate::{Access, Domain, ScheduleDim};
use tilewright_ir::condition::CellFact;
use tilewright_ir::demand::decisive_loads;
use tilewright_ir::visit::{Subst, walk_expr};
use tilewright_ir::{
    BinOp, Block, Buffer, CallTarget, DType, Expr, ExprKind, Fold, Range, Span, Stmt, StmtKind,
    Var, Visit,
};

use super::model::{Act, Guard, GuardId, Loop, Scop, ScopStmt};
use crate::place::first;
use crate::scope::MAX_VALUE;
use tilewright_ir::index::{Ranges, simplify};

/// Adds what a statement of the text does to a SCoP. What holds around it comes as a domain.
pub fn collect(scop: &mut Scop, domain: Domain, body: &Stmt) {
    let mut c = Collect {
        scop,
        domain,
        bind: Subst::default(),
        phantoms: HashSet::default(),
        loops: Vec::new(),
        guards: Vec::new(),
        time: vec![ScheduleDim::Sequence(0)],
        blocks: Vec::new(),
    };
    c.stmt(body);
}

struct Collect<'a> {
    scop: &'a mut Scop,
    domain: Domain,
    /// Values of iteration variables and of `let`.
    bind: Subst,
    /// Buffers that stand for values that were read.
    phantoms: HashSet<Buffer>,
    loops: Vec<Loop>,
    guards: Vec<Guard>,
    time: Vec<ScheduleDim>,
    blocks: Vec<Arc<str>>,
}

/// Loads of an expression, apart by the conditions under which they happen.
struct Reads<'a, 'b> {
    collect: &'a mut Collect<'b>,
    place: usize,
    /// Conditions, and the accesses under them. The first has no conditions.
    parts: Vec<GuardedLoads>,
    current: usize,
    /// Number of `if_then_else` so far; `None` where they have no number.
    choices: Option<usize>,
    calls: bool,
}

impl Reads<'_, '_> {
    fn under(&mut self, mut guard: Guard, e: &Expr) {
        guard.cond = self.collect.frozen(&guard.cond);
        let before = self.current;
        let mut guards = self.parts[before].0.clone();
        guards.push(guard);
        self.parts.push((guards, Vec::new()));
        self.current = self.parts.len() - 1;
        self.expr(e);
        self.current = before;
    }
}

impl Visit for Reads<'_, '_> {
    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Load(b, indices) => {
                if !self.collect.phantoms.contains(b)
                    && let Some(access) = self.collect.access(b, indices, false)
                {
                    self.parts[self.current].1.push(access);
                }
                walk_expr(self, e);
            }
            ExprKind::IfThenElse(c, yes, no) => {
                let id = self.choices.as_mut().map(|k| {
                    *k += 1;
                    GuardId { place: self.place, part: *k }
                });
                self.expr(c);
                self.under(Guard::new(id, c.clone()), yes);
                self.under(Guard::other(id, !c.clone()), no);
            }
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                self.expr(a);
                let cond = if *op == BinOp::And { a.clone() } else { !a.clone() };
                self.under(Guard::new(None, cond), b);
            }
            ExprKind::Let(v, value, body) => {
                self.expr(value);
                let value = self.collect.value(value);
                let body = Subst::vars([(v.clone(), value)]).expr(body);
                self.expr(&body);
            }
            ExprKind::Call(CallTarget::Extern(_) | CallTarget::Opaque(_), _) => {
                self.calls = true;
                walk_expr(self, e);
            }
            _ => walk_expr(self, e),
        }
    }
}

/// Simplifies where loads look, and nothing else: choices keep their numbers.
struct Places<'a> {
    ranges: &'a Ranges,
}

impl Fold for Places<'_> {
    fn access(&mut self, b: &Buffer, at: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        Some((b.clone(), at.iter().map(|i| simpler(&self.expr(i), self.ranges)).collect()))
    }
}

/// A simpler index; one that loads stays, since what its value does not depend on is still read.
fn simpler(index: &Expr, ranges: &Ranges) -> Expr {
    if index.effects().loads { index.clone() } else { simplify(index, ranges) }
}

/// An unknown value: an element of a buffer that no function has, one for each iteration.
fn phantom(phantoms: &mut HashSet<Buffer>, loops: &[Loop], dtype: DType) -> Expr {
    let shape = loops.iter().map(|l| l.range.extent.clone()).collect();
    let unknown = Buffer::new("unknown", shape, dtype);
    phantoms.insert(unknown.clone());
    unknown.load(loops.iter().map(|l| l.var.expr()))
}

impl Collect<'_> {
    /// An expression over loops, which has the same value wherever it occurs: what was read from memory
    /// that may change is a value of its own.
    fn frozen(&mut self, e: &Expr) -> Expr {
        let Collect { scop, phantoms, loops, .. } = self;
        e.replace(|e| {
            let known = matches!(e.kind(), ExprKind::Load(b, _) if phantoms.contains(b));
            let differs = !known && scop.memory.differs(e);
            differs.then(|| phantom(phantoms, loops, e.dtype()))
        })
    }

    fn unknown(&mut self) -> Expr {
        phantom(&mut self.phantoms, &self.loops, DType::I32)
    }

    /// An access, where the memory is followed. The indices are in terms of loops.
    fn access(&mut self, buffer: &Buffer, indices: &[Expr], is_write: bool) -> Option<Access> {
        if !self.scop.follows(buffer) {
            return None;
        }
        let outer = self.scop.lifetime(buffer);
        let mut at: Vec<Expr> = self.loops.iter().take(outer).map(|l| l.var.expr()).collect();
        for i in indices {
            at.push(match i.dtype().lanes {
                1 => self.frozen(i),
                _ => self.unknown(),
            });
        }
        Some(Access { buffer: buffer.clone(), indices: at, is_write })
    }

    /// An expression in terms of loops. What split loops make of indices, `A[(io * 4 + ii) // 4]`,
    /// is simplified: divisions make a flow analysis expensive.
    fn resolve(&mut self, e: &Expr) -> Expr {
        Places { ranges: &self.ranges() }.expr(&self.bind.expr(e))
    }

    /// The values of the loops around, where they are known.
    fn ranges(&self) -> Ranges {
        let mut ranges = Ranges::default();
        self.loops.iter().for_each(|l| ranges.bind_loop(&l.var, &l.range));
        ranges
    }

    fn reads(&mut self, place: usize, choices: bool, exprs: &[&Expr]) -> Vec<GuardedLoads> {
        let choices = choices.then_some(0);
        let parts = vec![(Vec::new(), Vec::new())];
        let mut r = Reads { collect: self, place, parts, current: 0, choices, calls: false };
        exprs.iter().for_each(|e| r.expr(e));
        let (parts, calls) = (r.parts, r.calls);
        if calls {
            self.call(place);
        }
        parts
    }

    /// A call that may touch any cell of every parameter, before the rest of its statement.
    fn call(&mut self, place: usize) {
        let mut all: Vec<Buffer> = self.scop.memories().into_iter().cloned().collect();
        all.retain(|b| self.scop.is_observed(b));
        let mut accesses = Vec::new();
        for is_write in [false, true] {
            for b in &all {
                let at: Vec<Expr> = b.shape.iter().map(|_| self.unknown()).collect();
                accesses.extend(self.access(b, &at, is_write));
            }
        }
        self.time.push(ScheduleDim::Sequence(0));
        self.emit(place, None, Act::Call, &[], accesses);
        self.time.pop();
        self.time.push(ScheduleDim::Sequence(1));
    }

    fn emit(
        &mut self,
        place: usize,
        span: Option<Span>,
        act: Act,
        more: &[Guard],
        accesses: Vec<Access>,
    ) {
        let domain = more.iter().fold(self.domain.clone(), |d, g| d.with_guard(&g.cond));
        let decisive = match &act {
            Act::Store(value) => {
                decisive_loads(value).into_iter().filter_map(loaded_data).collect()
            }
            _ => HashSet::default(),
        };
        self.scop.stmts.push(ScopStmt {
            place,
            span,
            blocks: self.blocks.clone(),
            act,
            loops: self.loops.clone(),
            guards: self.guards.iter().chain(more).cloned().collect(),
            domain,
            schedule: self.time.clone(),
            accesses,
            decisive,
        });
    }

    /// Emits the loads of expressions.
    fn evaluate(&mut self, place: usize, s: &Stmt, parts: Vec<GuardedLoads>) {
        for (guards, accesses) in parts {
            if !accesses.is_empty() {
                self.emit(place, s.span(), Act::Read, &guards, accesses);
            }
        }
    }

    /// Evaluates what decides about the statements inside; `inside` comes after that.
    fn head(&mut self, place: usize, s: &Stmt, exprs: &[&Expr], inside: impl FnOnce(&mut Self)) {
        let length = self.time.len();
        let exprs: Vec<Expr> = exprs.iter().map(|e| self.resolve(e)).collect();
        let parts = self.reads(place, false, &exprs.iter().collect::<Vec<_>>());
        if parts.iter().any(|(_, accesses)| !accesses.is_empty()) {
            self.time.push(ScheduleDim::Sequence(0));
            self.evaluate(place, s, parts);
            self.time.pop();
            self.time.push(ScheduleDim::Sequence(1));
        }
        inside(self);
        self.time.truncate(length);
    }

    fn at(&mut self, place: i64, inside: impl FnOnce(&mut Self)) {
        self.time.push(ScheduleDim::Sequence(place));
        inside(self);
        self.time.pop();
    }

    fn under(&mut self, guard: Guard, inside: impl FnOnce(&mut Self)) {
        if guard.cond.is_true() {
            return inside(self);
        }
        let before = self.domain.clone();
        self.domain = before.with_guard(&guard.cond);
        self.guards.push(guard);
        inside(self);
        self.guards.pop();
        self.domain = before;
    }

    /// What replaces a variable with this value: an unknown one where that would be
    /// too large as text, since values of values double each time that they stand twice.
    fn value(&mut self, value: &Expr) -> Expr {
        if value.size() <= MAX_VALUE {
            self.frozen(value)
        } else {
            phantom(&mut self.phantoms, &self.loops, value.dtype())
        }
    }

    fn bind(&mut self, var: &Var, value: &Expr) {
        let value = self.bind.expr(value);
        let value = self.value(&value);
        self.bind.vars.insert(var.clone(), value);
    }

    fn store(&mut self, place: usize, s: &Stmt, buffer: &Buffer, at: &[Expr], value: &Expr) {
        let length = self.time.len();
        let ranges = self.ranges();
        let at: Vec<Expr> = at.iter().map(|i| simpler(&self.bind.expr(i), &ranges)).collect();
        let value = self.resolve(value);
        let mut parts = self.reads(place, true, &[&value]);
        let places = self.reads(place, false, &at.iter().collect::<Vec<_>>());
        let (mut accesses, rest) = (std::mem::take(&mut parts[0].1), places);
        for (k, (guards, more)) in rest.into_iter().enumerate() {
            match k {
                0 => accesses.extend(more),
                _ => parts.push((guards, more)),
            }
        }
        self.evaluate(place, s, parts);
        accesses.extend(self.access(buffer, &at, true));
        self.emit(place, s.span(), Act::Store(value), &[], accesses);
        self.time.truncate(length);
    }

    fn assume(&mut self, place: usize, s: &Stmt, cond: &Expr) {
        let parts = self.resolve(cond).conjuncts();
        match parts.as_slice() {
            [part] => self.part(place, s, part),
            _ => {
                for (k, part) in (0..).zip(&parts) {
                    self.at(k, |c| c.part(place, s, part));
                }
            }
        }
    }

    /// A part of an assumption.
    fn part(&mut self, place: usize, s: &Stmt, cond: &Expr) {
        let length = self.time.len();
        // One fact about a cell; if there are several, one that depends on no other cell.
        let mut facts = CellFact::all(cond);
        let fact = match facts.iter().rposition(|f| f.unless.iter().all(|e| e.effects().constant()))
        {
            Some(k) => Some(facts.swap_remove(k)),
            None => facts.pop(),
        };
        // A permission does not look at the cell.
        let permits = fact.as_ref().filter(|fact| fact.value.is_undef());
        let looked_at: Vec<&Expr> =
            permits.map_or_else(|| vec![cond], |fact| fact.unless.iter().collect());
        let parts = self.reads(place, false, &looked_at);
        self.evaluate(place, s, parts);
        if let Some(CellFact { unless, buffer, indices, value }) = fact
            && let Some(access) = self.access(&buffer, &indices, true)
        {
            let act = if value.is_undef() { Act::Permit } else { Act::Fact(self.frozen(&value)) };
            let guard = Guard::new(None, self.frozen(&Expr::all(unless.into_iter().map(|e| !e))));
            self.emit(place, s.span(), act, &[guard], vec![access]);
        }
        self.time.truncate(length);
    }

    fn enter(&mut self, place: usize, bindings: &[Expr], predicate: &Expr, block: &Block) {
        for (iter, value) in block.iters.iter().zip(bindings) {
            self.bind(&iter.var, value);
        }
        let first = self.bind.expr(&first(block));
        for a in &block.allocs {
            self.scop.lifetime.insert(a.data.clone(), self.loops.len());
        }
        let predicate = self.bind.expr(predicate);
        let predicate = self.frozen(&predicate);
        let values = block.iters.iter().filter_map(|i| self.bind.vars.get(&i.var).cloned());
        let enter = Act::Enter(values.collect());
        self.blocks.push(block.name.clone());
        let guard = Guard::new(Some(GuardId { place, part: 0 }), predicate);
        self.under(guard, |c| {
            c.emit(place, None, enter, &[], Vec::new());
            match &block.init {
                None => c.stmt(&block.body),
                Some(init) => {
                    c.at(0, |c| c.under(Guard::new(None, first), |c| c.stmt(init)));
                    c.at(1, |c| c.stmt(&block.body));
                }
            }
        });
        self.blocks.pop();
    }
}

fn loaded_data(e: Expr) -> Option<Var> {
    match e.kind() {
        ExprKind::Load(b, _) => Some(b.data.clone()),
        _ => None,
    }
}

/// Loads that happen under the same conditions.
type GuardedLoads = (Vec<Guard>, Vec<Access>);

impl Visit for Collect<'_> {
    fn stmt(&mut self, s: &Stmt) {
        let place = self.scop.text.len();
        self.scop.text.push(s.clone());
        self.scop.last.push(place);
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                self.store(place, s, buffer, indices, value);
            }
            StmtKind::For { var, range, kind, body, .. } => {
                self.head(place, s, &[&range.min, &range.extent], |c| {
                    let mut bound = |e: &Expr| {
                        let e = c.bind.expr(e);
                        c.frozen(&e)
                    };
                    let range = Range { min: bound(&range.min), extent: bound(&range.extent) };
                    let before = c.domain.clone();
                    c.domain = before.with_var(var, &range);
                    c.loops.push(Loop { var: var.clone(), range, kind: kind.clone() });
                    c.time.push(ScheduleDim::Loop(var.clone()));
                    c.stmt(body);
                    c.time.pop();
                    c.loops.pop();
                    c.domain = before;
                });
            }
            StmtKind::If { cond, then, otherwise } => self.head(place, s, &[cond], |c| {
                let cond = c.bind.expr(cond);
                let cond = c.frozen(&cond);
                let id = Some(GuardId { place, part: 0 });
                c.under(Guard::new(id, cond.clone()), |c| c.at(0, |c| c.stmt(then)));
                if let Some(o) = otherwise {
                    c.under(Guard::other(id, !cond), |c| c.at(1, |c| c.stmt(o)));
                }
            }),
            StmtKind::Let { var, value, body } => self.head(place, s, &[value], |c| {
                c.bind(var, value);
                c.stmt(body);
            }),
            StmtKind::Seq(list) => {
                for (k, s) in list.iter().enumerate() {
                    self.at(k as i64, |c| c.stmt(s));
                }
            }
            StmtKind::Allocate { buffer, body, .. } => {
                self.scop.lifetime.insert(buffer.data.clone(), self.loops.len());
                self.stmt(body);
            }
            StmtKind::Constant { body, .. } | StmtKind::Declare { body, .. } => self.stmt(body),
            StmtKind::Block { bindings, predicate, block } => {
                let exprs: Vec<&Expr> = bindings.iter().chain([predicate]).collect();
                self.head(place, s, &exprs, |c| c.enter(place, bindings, predicate, block));
            }
            StmtKind::Assume(cond) => self.assume(place, s, cond),
            StmtKind::Assert { cond: e, .. } | StmtKind::Evaluate(e) => {
                self.head(place, s, &[e], |_| ());
            }
        }
        self.scop.last[place] = self.scop.text.len() - 1;
    }
}
