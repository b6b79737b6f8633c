//! A function as a static control part (SCoP), the model of polyhedral compilers.
//!
//! A [`Scop`] has a [`ScopStmt`] for each store, each assumption about a cell, each read that
//! decides something and each call: when it runs (its loops and guards as a
//! [`Domain`], its place in time as a schedule vector) and its accesses. That is what
//! [`tilewright_sets::Flow`] wants; [`Scop::restricted`] cuts out what concerns one memory,
//! [`Scop::observer`] reads what the caller will see at the end.
//!
//! ```text
//! for i in range(8):           place 1
//!     if i < 6:                place 2
//!         B[i] = A[i]          place 3: 0 <= i < 8, i < 6; at (0, i); reads A[i], writes B[i]
//! ```
//!
//! Memories are independent of each other, so every question is asked of one at a time; a
//! function of many blocks stays cheap.
//!
//! * Iteration variables of blocks and `let` variables are replaced by their values, so that all
//!   is said in terms of loops.
//! * `T.assume(c or B[i] == v)` reads `B[i]` and then counts as a write of the known value `v` to
//!   it where `c` is false ([`Act::Fact`]). It reads, because it is about what was written.
//!   `B[i] == T.undef()` says nothing of the value: it is a permission to read ([`Act::Permit`]).
//! * Memory that is allocated inside of loops is new in each iteration: the variables of those
//!   loops come before the indices of its accesses ([`Scop::lifetime`]).
//! * What was read from memory that may change (in a condition, an index, a bound, a `let`) is a
//!   value of its own from then on: no two of them count as equal. What depends on them *may*
//!   happen.
//! * Memory that is accessed through two buffers, through a part of it or through its pointer is
//!   not followed ([`Scop::follows`]): no statement accesses it. A parameter may have one view of
//!   all its cells, by which it is accessed, as flattening makes them. A call may read and write
//!   every parameter.
//! * Loops run in order, as far as this goes. Iterations of a parallel loop are promised not to
//!   depend on each other; a pass that adds work to one has to keep that promise.

mod collect;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{fold_stmt_children, walk_expr, walk_stmt};
use tilewright_ir::{
    Block, Buffer, CallTarget, DType, Expr, ExprKind, Fold, ForKind, Range, Result, Span, Stmt,
    StmtKind, TensorFunc, Var, Visit, extent,
};
use tilewright_sets::{Access, Domain, Engine, ScheduleDim, Statement};

use self::collect::collect;
use crate::domain::sizes;

/// A function, or a part of one: its polyhedral statements in the order of the text.
#[derive(Clone)]
pub struct Scop {
    /// What it does.
    pub stmts: Vec<ScopStmt>,
    /// The statements of the text by their places.
    pub text: Vec<Stmt>,
    /// For each place, the last one inside of it, or itself.
    pub last: Vec<usize>,
    engine: Engine,
    memory: Memory,
    /// What holds everywhere: sizes are not negative, what the caller knows.
    base: Domain,
    /// Numbers of loops around allocations, by pointer.
    lifetime: HashMap<Var, usize>,
    /// The buffers whose content is seen at the end.
    observed: Vec<Buffer>,
}

/// A loop around a statement.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Its variable.
    pub var: Var,
    /// Its values, in terms of the loops around it.
    pub range: Range,
    /// How it runs.
    pub kind: ForKind,
}

/// A condition in the text: an `if`, the predicate of a block, or an `if_then_else` in a stored
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GuardId {
    /// The statement.
    pub place: usize,
    /// 0 for the condition of the statement itself, `k` for the `k`th `if_then_else` of its value.
    pub part: usize,
}

/// A condition under which a statement runs.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Where it is in the text. `None` for the opposite of a condition, and for what the text does
    /// not say: when an initialisation runs.
    pub id: Option<GuardId>,
    /// The condition in the text whose opposite this is.
    pub opposite: Option<GuardId>,
    /// The condition, in terms of loops.
    pub cond: Expr,
}

impl Guard {
    /// A condition in the text.
    fn new(id: Option<GuardId>, cond: Expr) -> Guard {
        Guard { id, opposite: None, cond }
    }

    /// The other side of one.
    fn other(opposite: Option<GuardId>, cond: Expr) -> Guard {
        Guard { id: None, opposite, cond }
    }

    /// Whether it is a condition in the text, or its opposite.
    pub fn is(&self, id: GuardId, opposite: bool) -> bool {
        Some(id) == if opposite { self.opposite } else { self.id }
    }
}

/// What a statement does with the cells that it accesses.
#[derive(Clone, Debug)]
pub enum Act {
    /// Writes this value, in terms of loops, to the cell of its last access.
    Store(Expr),
    /// Knows that the cell of its last access, which counts as a write, has this value.
    Fact(Expr),
    /// Allows the cell of its last access, which counts as a write, to be read.
    Permit,
    /// Evaluates something.
    Read,
    /// Calls something that may do anything.
    Call,
    /// Enters a block, with these values for its iteration variables.
    Enter(Vec<Expr>),
}

/// A polyhedral statement: one thing that a function does, at each point of a domain. A statement
/// of the text (`Stmt`) has one for each thing that it does.
#[derive(Clone)]
pub struct ScopStmt {
    /// The statement of the text: its number, outermost first, in the order of the text.
    pub place: usize,
    /// Its place in the source.
    pub span: Option<Span>,
    /// The names of the blocks around it, outermost first.
    pub blocks: Vec<Arc<str>>,
    /// What it does.
    pub act: Act,
    /// The loops around it, outermost first.
    pub loops: Vec<Loop>,
    /// The conditions around it, outermost first.
    pub guards: Vec<Guard>,
    /// The loops under the conditions.
    pub domain: Domain,
    /// When it runs, among the others.
    pub schedule: Vec<ScheduleDim>,
    /// What it reads and writes. Writes come last.
    pub accesses: Vec<Access>,
    /// The memory, by pointer, of reads whose values decide more than the value that a store
    /// writes ([`tilewright_ir::demand::decisive_loads`]). Other statements' reads
    /// always decide something.
    pub decisive: HashSet<Var>,
}

impl ScopStmt {
    /// The cell that is stored to or known.
    pub fn target(&self) -> Option<&Access> {
        self.accesses.last().filter(|t| t.is_write)
    }

    /// Whether a read only goes into the value that a store writes to the same cell: the readers
    /// of the cell afterwards are the only users of what it reads.
    pub fn passes_on(&self, access: &Access) -> bool {
        self.updates(access) && !self.decisive.contains(&access.buffer.data)
    }

    /// Whether an access is of the cell that the statement updates: reads and writes.
    pub fn updates(&self, access: &Access) -> bool {
        let same = |a: &Access, b: &Access| {
            a.buffer == b.buffer && a.indices.iter().zip(&b.indices).all(|(x, y)| same_expr(x, y))
        };
        let Some(cell) = self.target().filter(|_| matches!(self.act, Act::Store(_))) else {
            return false;
        };
        same(cell, access) && self.accesses.iter().any(|t| !t.is_write && same(cell, t))
    }

    /// The name of the innermost block around it.
    pub fn block(&self) -> Option<&Arc<str>> {
        self.blocks.last()
    }

    /// Whether the statement runs under a condition.
    pub fn under(&self, id: GuardId) -> bool {
        self.guards.iter().any(|g| g.id == Some(id))
    }
}

impl Scop {
    /// A whole function. Every parameter is observed at the end.
    ///
    /// # Errors
    /// `Toolchain` where libisl is missing.
    pub fn of(func: &TensorFunc) -> Result<Scop> {
        let base = sizes(func)?;
        let params: Vec<Buffer> = func.buffers().cloned().collect();
        Ok(Scop::build(base.engine().clone(), base, &func.body, params))
    }

    /// A part of a function. What holds around it comes as a domain, whose variables are loops
    /// outside: they have one value. All memory that is not allocated inside is observed at the
    /// end.
    pub(crate) fn of_part(body: &Stmt, around: &Domain) -> Scop {
        Scop::build(around.engine().clone(), around.fixed(), body, Vec::new())
    }

    fn build(engine: Engine, base: Domain, body: &Stmt, params: Vec<Buffer>) -> Scop {
        let memory = Memory::of(body, params);
        let mut scop = Scop {
            stmts: Vec::new(),
            text: Vec::new(),
            last: Vec::new(),
            engine,
            memory,
            base: base.clone(),
            lifetime: HashMap::new(),
            observed: Vec::new(),
        };
        collect(&mut scop, base, body);
        let outside = |b: &&Buffer| !scop.memory.local.contains(&b.data);
        let seen = scop.memory.buffers.values().filter(outside).cloned();
        scop.observed = seen.filter(|b| scop.memory.follows(&b.data)).collect();
        scop.observed.sort_by_key(Buffer::id);
        scop
    }

    /// The places of the statements around one, innermost first.
    pub fn around(&self, place: usize) -> impl Iterator<Item = usize> {
        (0..place).rev().filter(move |p| self.last.get(*p).is_some_and(|last| *last >= place))
    }

    /// What a statement of the text does, and those inside of it.
    pub fn inside(&self, place: usize) -> impl Iterator<Item = &ScopStmt> {
        let last = self.last.get(place).copied().unwrap_or(place);
        self.stmts.iter().filter(move |s| (place..=last).contains(&s.place))
    }

    /// The engine that all domains are built with.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The memories that are followed, by their pointers, in the order of their buffers.
    pub fn memories(&self) -> Vec<&Buffer> {
        let mut all: Vec<&Buffer> = self.memory.buffers.values().collect();
        all.retain(|b| self.follows(b));
        all.sort_by_key(|b| b.id());
        all
    }

    /// Whether every access of this memory is known.
    pub fn follows(&self, buffer: &Buffer) -> bool {
        self.memory.follows(&buffer.data)
    }

    /// Whether this is memory of the function, and not a value that was read before.
    pub fn has(&self, buffer: &Buffer) -> bool {
        self.memory.buffers.contains_key(&buffer.data)
    }

    /// Whether the memory may change while the function runs.
    pub fn changes(&self, buffer: &Buffer) -> bool {
        self.memory.changes(&buffer.data)
    }

    /// Whether a value may be another one when it is computed again.
    pub fn reads_what_changes(&self, e: &Expr) -> bool {
        e.any(|part| self.memory.differs(part))
    }

    /// Whether the memory was there before, and is seen afterwards.
    pub fn is_observed(&self, buffer: &Buffer) -> bool {
        !self.memory.local.contains(&buffer.data)
    }

    /// How many of the indices of its accesses say which allocation it is.
    pub fn lifetime(&self, buffer: &Buffer) -> usize {
        self.lifetime.get(&buffer.data).copied().unwrap_or(0)
    }

    /// The part of a statement that concerns one memory, and the numbers of its accesses there.
    pub fn restricted(&self, stmt: &ScopStmt, memory: &Buffer) -> Option<(Statement, Vec<usize>)> {
        let mut statement = Statement::new(&stmt.domain, stmt.schedule.clone());
        let mut which = Vec::new();
        for (k, t) in stmt.accesses.iter().enumerate() {
            if t.buffer.data == memory.data {
                statement.accesses.push(t.clone());
                which.push(k);
            }
        }
        (!which.is_empty()).then_some((statement, which))
    }

    /// A read of all of a memory after everything else, where the caller can read it.
    pub fn observer(&self, memory: &Buffer) -> Option<Statement> {
        let seen = self.observed.iter().find(|b| b.data == memory.data)?;
        Some(Statement::observe(&self.engine, seen, 1))
    }

    /// The points at which a statement of the text runs that contains this one, or is it.
    pub fn outside(&self, stmt: &ScopStmt, place: usize) -> Domain {
        let around: Vec<usize> = self.around(place).collect();
        let is_loop =
            |p: &&usize| matches!(self.text.get(**p).map(Stmt::kind), Some(StmtKind::For { .. }));
        let loops = stmt.loops.iter().take(around.iter().filter(is_loop).count());
        let domain = loops.fold(self.base.clone(), |d, l| d.with_var(&l.var, &l.range));
        let stands = |id: &GuardId| id.part == 0 && around.contains(&id.place);
        let guards =
            stmt.guards.iter().filter(|g| g.id.or(g.opposite).as_ref().is_some_and(stands));
        guards.fold(domain, |d, g| d.with_guard(&g.cond))
    }

    /// The points that a statement would have more if a condition around it, or the opposite of
    /// one, were not there: those where that is false and the others hold.
    pub fn without(&self, stmt: &ScopStmt, id: GuardId, opposite: bool) -> Domain {
        let loops = stmt.loops.iter().fold(self.base.clone(), |d, l| d.with_var(&l.var, &l.range));
        stmt.guards.iter().fold(loops, |d, g| match g.is(id, opposite) {
            true => d.with_guard(&!g.cond.clone()),
            false => d.with_guard(&g.cond),
        })
    }
}

/// What memory there is, and how it is seen.
#[derive(Clone, Default)]
struct Memory {
    /// The buffer by which a memory is accessed, by pointer.
    buffers: HashMap<Var, Buffer>,
    /// Memory that is not followed.
    opaque: HashSet<Var>,
    /// Allocated inside.
    local: HashSet<Var>,
    written: HashSet<Var>,
    calls: bool,
}

impl Memory {
    fn of(body: &Stmt, params: Vec<Buffer>) -> Memory {
        let mut m = Memory::default();
        m.stmt(body);
        for param in &params {
            match m.buffers.get(&param.data) {
                Some(view) if is_whole_view(view, param) => {}
                _ => m.seen(param),
            }
        }
        m
    }

    fn seen(&mut self, b: &Buffer) {
        let first = self.buffers.entry(b.data.clone()).or_insert_with(|| b.clone());
        // With strides, two indices may name one cell.
        if first != b || !b.strides.is_empty() {
            self.opaque.insert(b.data.clone());
        }
    }

    fn follows(&self, data: &Var) -> bool {
        !self.opaque.contains(data)
    }

    /// Whether an expression, apart from what is in it, may be another value next time.
    fn differs(&self, e: &Expr) -> bool {
        match e.kind() {
            ExprKind::Load(b, _) => self.changes(&b.data),
            ExprKind::Call(CallTarget::Extern(_) | CallTarget::Opaque(_), _) => true,
            ExprKind::Undef => true,
            _ => false,
        }
    }

    fn changes(&self, data: &Var) -> bool {
        self.written.contains(data)
            || self.opaque.contains(data)
            || (self.calls && !self.local.contains(data))
    }
}

impl Visit for Memory {
    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Var(v) if v.dtype() == DType::HANDLE => {
                self.opaque.insert(v.clone());
            }
            ExprKind::Call(CallTarget::Extern(_) | CallTarget::Opaque(_), _) => self.calls = true,
            _ => {}
        }
        walk_expr(self, e);
    }

    fn access(&mut self, b: &Buffer, _: &[Expr], write: bool) {
        self.seen(b);
        self.written.extend(write.then(|| b.data.clone()));
    }

    fn stmt(&mut self, s: &Stmt) {
        if let StmtKind::Allocate { buffer, .. } = s.kind() {
            self.local.insert(buffer.data.clone());
        }
        walk_stmt(self, s);
    }

    fn block(&mut self, b: &Block) {
        self.local.extend(b.allocs.iter().map(|a| a.data.clone()));
        for m in &b.matches {
            self.opaque.extend([m.buffer.data.clone(), m.source.buffer.data.clone()]);
        }
        b.init.iter().for_each(|s| self.stmt(s));
        self.stmt(&b.body);
    }
}

/// Whether a buffer has all cells of another one and no others, in the order of their memory.
fn is_whole_view(view: &Buffer, whole: &Buffer) -> bool {
    let cells = |b: &Buffer| extent::product(DType::I64, &b.shape).ok()?.as_int();
    let same = [view, whole].into_iter().all(Buffer::is_row_major) && cells(view) == cells(whole);
    same && cells(view).is_some() && view.dtype() == whole.dtype()
}

/// Rebuilds a statement by places: `edit` gets each statement with its place, after those inside,
/// and gives another one for it.
pub fn rewrite(s: &Stmt, edit: &mut dyn FnMut(usize, &Stmt) -> Option<Stmt>) -> Stmt {
    struct Rewrite<'a> {
        next: usize,
        edit: &'a mut dyn FnMut(usize, &Stmt) -> Option<Stmt>,
    }
    impl Fold for Rewrite<'_> {
        fn stmt(&mut self, s: &Stmt) -> Stmt {
            let place = self.next;
            self.next += 1;
            let s = fold_stmt_children(self, s);
            (self.edit)(place, &s).unwrap_or(s)
        }
    }
    Rewrite { next: 0, edit }.stmt(s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{IterKind, Param};
    use tilewright_sets::Flow;

    fn ints(name: &str) -> Buffer {
        Buffer::with_extents(name, &[16], DType::I32)
    }

    fn scop(params: &[&Buffer], body: Stmt) -> Scop {
        let params = params.iter().map(|b| Param::tensor(b)).collect();
        Scop::of(&TensorFunc::new(params, body)).expect("libisl is there")
    }

    /// The last writers of what each statement reads of a memory, as `reader<-writer` by places;
    /// the observer has no place.
    fn sources(p: &Scop, b: &Buffer) -> Vec<String> {
        let mut list: Vec<(Option<usize>, Statement)> = Vec::new();
        for s in &p.stmts {
            list.extend(p.restricted(s, b).map(|(st, _)| (Some(s.place), st)));
        }
        list.extend(p.observer(b).map(|st| (None, st)));
        let all: Vec<Statement> = list.iter().map(|(_, s)| s.clone()).collect();
        let flow = Flow::compute(p.engine(), &all).expect("decided");
        let name = |k: usize| list[k].0.map_or("end".to_owned(), |p| p.to_string());
        let text = |e: &tilewright_sets::Edge| {
            let sure = if e.certain { "" } else { "?" };
            format!("{}<-{}{sure}", name(e.reader.statement), name(e.writer.statement))
        };
        flow.edges.iter().map(text).collect()
    }

    #[test]
    fn places_are_those_of_a_rewrite() {
        let b = ints("B");
        let i = Var::index("i");
        let set = |v: i32| Stmt::store(&b, vec![i.expr()], Expr::i32(v));
        let both = Stmt::if_else(i.expr().less(4), set(1), set(2));
        let body = Stmt::serial(&i, Expr::i32(16), Stmt::seq([both, set(3)]));
        let p = scop(&[&b], body.clone());
        let places: Vec<usize> = p.stmts.iter().map(|s| s.place).collect();
        let mut stores = Vec::new();
        rewrite(&body, &mut |place, s| {
            if matches!(s.kind(), StmtKind::Store { .. }) {
                stores.push(place);
            }
            None
        });
        assert_eq!((places, stores), (vec![3, 4, 5], vec![3, 4, 5]));
        assert_eq!(sources(&p, &b), ["end<-5"]);
    }

    #[test]
    fn an_initialisation_runs_where_the_reduction_starts() {
        let (a, b) = (ints("A"), ints("B"));
        let (i, k, vi, vk) = (Var::index("i"), Var::index("k"), Var::index("vi"), Var::index("vk"));
        let at = || vec![vi.expr()];
        let sum = Stmt::store(&b, at(), b.load(at()) + a.load([vk.expr()]));
        let mut block = Block::new("sum", sum);
        block.init = Some(Stmt::store(&b, at(), Expr::i32(0)));
        for (var, kind) in [(&vi, IterKind::Spatial), (&vk, IterKind::Reduce)] {
            let domain = Range::upto(Expr::i32(4));
            block.iters.push(tilewright_ir::IterVar { var: var.clone(), domain, kind });
        }
        let block = Stmt::block(vec![i.expr(), k.expr()], Expr::bool(true), block);
        let body = Stmt::serial(&i, Expr::i32(4), Stmt::serial(&k, Expr::i32(4), block));
        let p = scop(&[&a, &b], body);
        assert_eq!(sources(&p, &b), ["4<-3", "4<-4", "end<-4"]);
    }

    #[test]
    fn memory_inside_of_a_loop_is_new_each_time() {
        let (b, l) = (ints("B"), ints("L"));
        let i = Var::index("i");
        let at = || vec![Expr::i32(0)];
        let use_it = Stmt::store(&b, vec![i.expr()], l.load(at()));
        let fill = Stmt::guard(i.expr().equal(0), Stmt::store(&l, at(), Expr::i32(1)));
        let inner = Stmt::seq([fill, use_it]);
        let p = scop(&[&b], Stmt::serial(&i, Expr::i32(4), Stmt::allocate(&l, inner.clone())));
        let flow = |p: &Scop| {
            let stmts = p.stmts.iter().filter_map(|s| p.restricted(s, &l).map(|(s, _)| s));
            let stmts: Vec<Statement> = stmts.collect();
            let flow = Flow::compute(p.engine(), &stmts).expect("decided");
            flow.uninitialised.iter().map(|u| u.instances.size_bound()).collect::<Vec<_>>()
        };
        assert_eq!(flow(&p), [Ok(Some(3))]);
        let p = scop(&[&b], Stmt::allocate(&l, Stmt::serial(&i, Expr::i32(4), inner)));
        assert_eq!(flow(&p), []);
    }

    #[test]
    fn what_was_read_before_a_write_is_not_what_is_read_after_it() {
        // if A[0] == 0: A[0] = 1      if A[0] == 0: B[0] = 1      B[0] = 2 if not (A[0] == 0)
        let (a, b) = (ints("A"), ints("B"));
        let at = || vec![Expr::i32(0)];
        let zero = || a.load(at()).equal(0);
        let set = |b: &Buffer, v: i32| Stmt::store(b, at(), Expr::i32(v));
        let body = Stmt::seq([
            set(&b, 9),
            Stmt::guard(zero(), set(&a, 1)),
            Stmt::guard(zero(), set(&b, 1)),
            Stmt::guard(!zero(), set(&b, 2)),
        ]);
        let p = scop(&[&a, &b], body);
        // Each store of `B` may be the last one.
        assert_eq!(sources(&p, &b), ["end<-1?", "end<-5?", "end<-7?"]);
    }

    #[test]
    fn an_assumption_is_a_write_of_a_known_value_and_reads_what_was_there() {
        let b = ints("B");
        let i = Var::index("i");
        let here = || b.load([i.expr()]);
        let fact = i.expr().less(14).or(here().equal(0));
        let assume = Stmt::serial(&i, Expr::i32(16), Stmt::new(StmtKind::Assume(fact)));
        let set = Stmt::store(&b, vec![Expr::i32(15)], Expr::i32(0));
        let p = scop(&[&b], Stmt::seq([set.clone(), assume]));
        let value = p.stmts.iter().find_map(|s| match &s.act {
            Act::Fact(v) => v.as_int(),
            _ => None,
        });
        assert_eq!(value, Some(0));
        assert_eq!(sources(&p, &b), ["3<-1", "end<-3"]);
        let any = i.expr().less(14).or(here().equal(Expr::new(ExprKind::Undef, DType::I32)));
        let permit = Stmt::serial(&i, Expr::i32(16), Stmt::new(StmtKind::Assume(any)));
        let p = scop(&[&b], Stmt::seq([set, permit]));
        assert!(matches!(p.stmts.last().map(|s| &s.act), Some(Act::Permit)));
        assert_eq!(sources(&p, &b), ["end<-3"]);
    }

    #[test]
    fn a_call_may_change_every_parameter_and_nothing_else() {
        let (b, l) = (ints("B"), ints("L"));
        let at = || vec![Expr::i32(0)];
        let call = Expr::call(CallTarget::Extern("f".into()), vec![], DType::I32);
        let body = Stmt::seq([
            Stmt::store(&b, at(), Expr::i32(1)),
            Stmt::store(&l, at(), Expr::i32(1)),
            Stmt::store(&b, at(), call + l.load(at())),
            Stmt::store(&b, at(), b.load(at()) + 1),
        ]);
        let p = scop(&[&b], Stmt::allocate(&l, body));
        assert_eq!(sources(&p, &b), ["4<-2?", "end<-4?", "5<-4", "end<-5"]);
        assert_eq!(sources(&p, &l), ["4<-3"]);
    }

    #[test]
    fn memory_with_two_faces_is_not_followed() {
        let b = ints("B");
        let view = b.derive(|d| d.shape = vec![Expr::i32(8)]);
        let set = |b: &Buffer| Stmt::store(b, vec![Expr::i32(0)], Expr::i32(1));
        let inner = Stmt::new(StmtKind::Declare { buffer: view.clone(), body: set(&view) });
        let p = scop(&[&b], Stmt::seq([set(&b), inner]));
        assert!(!p.follows(&b) && p.memories().is_empty());
        assert!(p.stmts.iter().all(|s| s.accesses.is_empty()));
    }
}
