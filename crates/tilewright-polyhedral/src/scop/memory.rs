//! The memory that a function accesses: by which buffers, and whether it is followed.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::visit::{walk_expr, walk_stmt};
use tilewright_ir::{
    Block, Buffer, CallTarget, DType, Expr, ExprKind, Stmt, StmtKind, Var, Visit, extent,
};

/// What memory there is, and how it is seen.
#[derive(Clone, Default)]
pub(super) struct Memory {
    /// The buffer by which a memory is accessed, by pointer.
    pub buffers: HashMap<Var, Buffer>,
    /// Memory that is not followed.
    pub opaque: HashSet<Var>,
    /// Allocated inside.
    pub local: HashSet<Var>,
    pub written: HashSet<Var>,
    pub calls: bool,
}

impl Memory {
    pub fn collect(body: &Stmt, params: Vec<Buffer>) -> Memory {
        let mut m = Memory::default();
        m.stmt(body);
        for param in &params {
            match m.buffers.get(&param.data) {
                Some(view) if is_whole_view(view, param) => {}
                _ => m.note_buffer(param),
            }
        }
        m
    }

    fn note_buffer(&mut self, b: &Buffer) {
        let first = self.buffers.entry(b.data.clone()).or_insert_with(|| b.clone());
        // With strides, two indices may name one cell.
        if first != b || !b.strides.is_empty() {
            self.opaque.insert(b.data.clone());
        }
    }

    pub fn follows(&self, data: &Var) -> bool {
        !self.opaque.contains(data)
    }

    /// Whether an expression, apart from what is in it, may be another value next time.
    pub fn differs(&self, e: &Expr) -> bool {
        match e.kind() {
            ExprKind::Load(b, _) => self.changes(&b.data),
            ExprKind::Call(CallTarget::Extern(_) | CallTarget::Opaque(_), _) => true,
            ExprKind::Undef => true,
            _ => false,
        }
    }

    pub fn changes(&self, data: &Var) -> bool {
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
        self.note_buffer(b);
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
    let same = [view, whole].into_iter().all(Buffer::is_row_major)
        && cell_count(view) == cell_count(whole);
    same && cell_count(view).is_some() && view.dtype() == whole.dtype()
}

fn cell_count(b: &Buffer) -> Option<i64> {
    extent::product(DType::I64, &b.shape).ok()?.as_int()
}
