//! What a SCoP is made of, and what can be asked of it.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use crate::{Access, Domain, Engine, ScheduleDim, Statement};
use tilewright_ir::equal::same_expr;
use tilewright_ir::{Buffer, Expr, ForKind, Range, Span, Stmt, StmtKind, Var};

use super::memory::Memory;

/// A function, or a part of one: its polyhedral statements in the order of the text.
#[derive(Clone)]
pub struct Scop {
    /// What it does.
    pub stmts: Vec<ScopStmt>,
    /// The statements of the text by their places.
    pub text: Vec<Stmt>,
    /// For each place, the last one inside of it, or itself.
    pub last: Vec<usize>,
    pub(super) engine: Engine,
    pub(super) memory: Memory,
    /// What holds everywhere: sizes are not negative, what the caller knows.
    pub(super) base: Domain,
    /// Numbers of loops around allocations, by pointer.
    pub(super) lifetime: HashMap<Var, usize>,
    /// The buffers whose content is seen at the end.
    pub(super) observed: Vec<Buffer>,
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
    pub(super) fn new(id: Option<GuardId>, cond: Expr) -> Guard {
        Guard { id, opposite: None, cond }
    }

    /// The other side of one.
    pub(super) fn other(opposite: Option<GuardId>, cond: Expr) -> Guard {
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
        let Some(cell) = self.target().filter(|_| matches!(self.act, Act::Store(_))) else {
            return false;
        };
        same_access(cell, access)
            && self.accesses.iter().any(|t| !t.is_write && same_access(cell, t))
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

fn same_access(a: &Access, b: &Access) -> bool {
    a.buffer == b.buffer && a.indices.iter().zip(&b.indices).all(|(x, y)| same_expr(x, y))
}

impl Scop {
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
        let guards = stmt.guards.iter().filter(|g| {
            g.id.or(g.opposite)
                .as_ref()
                .is_some_and(|id| id.part == 0 && around.contains(&id.place))
        });
        guards.fold(domain, |d, g| d.with_guard(&g.cond))
    }

    /// The points that a statement would have more if a condition around it, or the opposite of
    /// one, were not there: those where that is false and the others hold.
    pub fn without(&self, stmt: &ScopStmt, id: GuardId, opposite: bool) -> Domain {
        let loops = stmt.loops.iter().fold(self.base.clone(), |d, l| d.with_var(&l.var, &l.range));
        stmt.guards.iter().fold(loops, |d, g| {
            if g.is(id, opposite) { d.with_guard(&!g.cond.clone()) } else { d.with_guard(&g.cond) }
        })
    }
}
