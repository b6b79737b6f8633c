//! Which buffers share a memory, and which memories may hold arbitrary values, or none.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::condition::CellFact;
use tilewright_ir::visit::{walk_block, walk_expr, walk_stmt};
use tilewright_ir::{Block, Buffer, Expr, ExprKind, Param, Stmt, StmtKind, TensorFunc, Var, Visit};

/// How the argument of a tensor parameter comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Every element has a value.
    Given,
    /// Some elements are arbitrary or were never written.
    Partial,
    /// Nothing was written.
    Fresh,
}

/// One memory of a program.
#[derive(Clone, Debug)]
pub struct Info {
    /// Bytes of a cell: the smallest element that is accessed.
    pub cell: usize,
    /// Whether it is written.
    pub written: bool,
    /// Whether it may hold arbitrary values.
    pub undef: bool,
    /// Whether the state of its cells is kept; without, all are written.
    pub tracked: bool,
}

/// The memories of a function.
#[derive(Debug, Default)]
pub struct Memories {
    /// Number of the memory that a pointer points to.
    pub numbers: HashMap<Var, usize>,
    /// By number; those of the tensor parameters come first, in order.
    pub info: Vec<Info>,
    /// Variables bound to values that may be arbitrary.
    pub undef_vars: HashSet<Var>,
}

impl Memories {
    /// Finds the memories of a function. `modes` has one entry a tensor parameter; `lenient` says
    /// that a cell which was never written may be read as an arbitrary value.
    pub fn new(func: &TensorFunc, modes: &[Mode], lenient: bool) -> Self {
        let mut m = Memories::default();
        for p in &func.params {
            if let Param::Buffer { handle, buffer } = p {
                m.own(&buffer.data);
                let number = m.number(buffer);
                m.numbers.insert(handle.clone(), number);
            }
        }
        Collect { memories: &mut m }.stmt(&func.body);
        // States that come from outside belong to elements of the parameter.
        for (b, mode) in func.buffers().zip(modes) {
            let number = m.number(b);
            if *mode == Mode::Partial
                && let Some(info) = m.info.get_mut(number)
            {
                info.cell = info.cell.min(b.dtype().bytes().max(1));
            }
        }
        for (i, info) in m.info.iter_mut().enumerate() {
            if info.cell == usize::MAX {
                info.cell = 1;
            }
            let mode = modes.get(i).copied().unwrap_or(Mode::Fresh);
            info.undef = mode == Mode::Partial || (lenient && mode != Mode::Given);
            info.tracked = mode != Mode::Given;
        }
        loop {
            let mut spread = Spread { memories: &mut m, changed: false };
            spread.stmt(&func.body);
            if !spread.changed {
                break;
            }
        }
        for info in &mut m.info {
            info.tracked |= info.undef;
        }
        m
    }

    /// The memory that a buffer views.
    pub fn number(&self, b: &Buffer) -> usize {
        self.numbers.get(&b.data).copied().unwrap_or(0)
    }

    fn own(&mut self, data: &Var) {
        if !self.numbers.contains_key(data) {
            self.numbers.insert(data.clone(), self.info.len());
            let new = Info { cell: usize::MAX, written: false, undef: false, tracked: true };
            self.info.push(new);
        }
    }

    /// Whether a store of an expression may copy an unwritten cell: the expression is a load of a
    /// memory that keeps the state of its cells, or a choice with such a side.
    pub fn copies(&self, e: &Expr) -> bool {
        match e.kind() {
            ExprKind::Load(b, _) => {
                self.info.get(self.number(b)).is_some_and(|i| i.tracked || i.undef)
            }
            ExprKind::Select(_, t, f) | ExprKind::IfThenElse(_, t, f) => {
                self.copies(t) || self.copies(f)
            }
            _ => false,
        }
    }

    /// Whether an expression may have an arbitrary value.
    fn may_be_undef(&self, e: &Expr) -> bool {
        e.any(|part| match part.kind() {
            ExprKind::Undef => true,
            ExprKind::Var(v) => self.undef_vars.contains(v),
            ExprKind::Load(b, _) => self.info.get(self.number(b)).is_some_and(|i| i.undef),
            _ => false,
        })
    }
}

/// Numbers the memories and finds how they are accessed.
struct Collect<'a> {
    memories: &'a mut Memories,
}

impl Visit for Collect<'_> {
    fn access(&mut self, b: &Buffer, _: &[Expr], write: bool) {
        let number = self.memories.number(b);
        if let Some(info) = self.memories.info.get_mut(number) {
            info.cell = info.cell.min(b.dtype().bytes().max(1));
            info.written |= write;
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        if let StmtKind::Let { var, value, .. } = s.kind() {
            let of = value.as_var().and_then(|v| self.memories.numbers.get(v));
            if let Some(number) = of.copied() {
                self.memories.numbers.insert(var.clone(), number);
            }
        }
        walk_stmt(self, s);
    }

    fn block(&mut self, b: &Block) {
        b.allocs.iter().for_each(|a| self.memories.own(&a.data));
        for m in &b.matches {
            let number = self.memories.number(&m.source.buffer);
            self.memories.numbers.entry(m.buffer.data.clone()).or_insert(number);
        }
        walk_block(self, b);
    }

    fn buffer_def(&mut self, b: &Buffer) {
        self.memories.own(&b.data);
    }
}

/// One step of spreading arbitrary values, and unwritten cells, through stores and bindings.
struct Spread<'a> {
    memories: &'a mut Memories,
    changed: bool,
}

impl Spread<'_> {
    fn bind(&mut self, v: &Var, value: &Expr) {
        if self.memories.may_be_undef(value) {
            self.changed |= self.memories.undef_vars.insert(v.clone());
        }
    }

    /// Notes something of the buffer's memory.
    fn mark(&mut self, b: &Buffer, what: impl Fn(&mut Info) -> &mut bool) {
        let number = self.memories.number(b);
        if let Some(info) = self.memories.info.get_mut(number) {
            self.changed |= !std::mem::replace(what(info), true);
        }
    }
}

impl Visit for Spread<'_> {
    fn expr(&mut self, e: &Expr) {
        if let ExprKind::Let(v, value, _) = e.kind() {
            self.bind(v, value);
        }
        walk_expr(self, e);
    }

    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Store { buffer, value, .. } => {
                if self.memories.may_be_undef(value) {
                    self.mark(buffer, |info| &mut info.undef);
                }
                if self.memories.copies(value) {
                    self.mark(buffer, |info| &mut info.tracked);
                }
            }
            StmtKind::Let { var, value, .. } => self.bind(var, value),
            // Permission to read what was never written.
            StmtKind::Assume(e) => e.for_each(|part| {
                permission(part).iter().for_each(|(b, _)| self.mark(b, |info| &mut info.undef));
                true
            }),
            _ => {}
        }
        walk_stmt(self, s);
    }
}

/// The buffer and indices of `A[i] == T.undef()`.
pub fn permission(e: &Expr) -> Option<(Buffer, Vec<Expr>)> {
    let fact = CellFact::from_condition(e, true).filter(|fact| fact.value.is_undef())?;
    Some((fact.buffer, fact.indices))
}
