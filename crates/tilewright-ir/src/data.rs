//! Which variables of a function hold data.
//!
//! Integers are used in two ways. *Index arithmetic* counts: loops, iteration variables of blocks,
//! and sizes, which are the variables that shapes, strides and bounds of loops are made of. It stays
//! in its type (`docs/semantics.md`, *Values*). All else is *data*, any value of its type, and its
//! arithmetic wraps: what is read from memory, scalar parameters that are no sizes, and bindings of
//! such values.

use crate::hash::HashSet;

use crate::buffer::Buffer;
use crate::expr::{Expr, ExprKind, Var};
use crate::func::TensorFunc;
use crate::stmt::{Block, Range, Stmt, StmtKind};
use crate::visit::{Visit, free_vars, walk_block, walk_buffer, walk_stmt};

/// The variables of a function that hold data.
pub fn variables(func: &TensorFunc) -> Vec<Var> {
    let mut uses = Uses::default();
    func.buffers().for_each(|b| uses.buffer_def(b));
    uses.stmt(&func.body);
    let mut data: Vec<Var> = func.scalars().filter(|v| !uses.sizes.contains(v)).cloned().collect();
    for (var, value) in uses.bindings {
        let effects = value.effects();
        if !effects.constant() || effects.floats || value.mentions_any(&data) {
            data.push(var);
        }
    }
    data
}

/// What variables are used for.
#[derive(Default)]
struct Uses {
    sizes: HashSet<Var>,
    /// Bindings, outermost first.
    bindings: Vec<(Var, Expr)>,
}

impl Uses {
    /// Also counts what a variable stands for, which was there before it.
    fn size(&mut self, e: &Expr) {
        let found = free_vars(e);
        let of = found.iter().filter_map(Var::stands_for).flat_map(|of| of.vars());
        self.sizes.extend(of);
        self.sizes.extend(found);
    }

    fn range(&mut self, range: &Range) {
        self.size(&range.min);
        self.size(&range.extent);
    }
}

impl Visit for Uses {
    fn expr(&mut self, e: &Expr) {
        e.for_each(|part| {
            if let ExprKind::Let(var, value, _) = part.kind() {
                self.bindings.push((var.clone(), value.clone()));
            }
            part.effects().binds
        });
    }

    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::For { range, .. } => self.range(range),
            StmtKind::Let { var, value, .. } => self.bindings.push((var.clone(), value.clone())),
            _ => {}
        }
        walk_stmt(self, s);
    }

    fn block(&mut self, b: &Block) {
        b.iters.iter().for_each(|i| self.range(&i.domain));
        walk_block(self, b);
    }

    fn buffer_def(&mut self, b: &Buffer) {
        let parts = b.shape.iter().chain(&b.strides).chain(&b.elem_offset);
        parts.for_each(|e| self.size(e));
        walk_buffer(self, b);
    }
}
