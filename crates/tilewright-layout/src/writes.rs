//! What a tensor function stores, store by store: each with the loops and conditions around it.
//!
//! Iteration variables of blocks and `let` variables are replaced by what they stand for, so that
//! indices, conditions and values are expressions of loop variables alone. This is the view from
//! which conversions are recognised and values of cells are derived; it does not depend on how loops
//! are nested or split.

use tilewright_ir::{Block, Buffer, Expr, Stmt, StmtKind, Visit};
use tilewright_polyhedral::place::{Around, Placed, walk_stmt_placed};

/// `buffer[indices] = value` at a place.
#[derive(Clone)]
pub(crate) struct Write {
    pub place: Around,
    pub buffer: Buffer,
    pub indices: Vec<Expr>,
    pub value: Expr,
    /// It initialises a reduction.
    pub init: bool,
}

/// The stores and assumptions of a statement, in the order of the text.
#[derive(Clone, Default)]
pub(crate) struct Writes {
    pub stores: Vec<Write>,
    pub assumes: Vec<Assumed>,
}

/// `T.assume(cond)` at a place.
#[derive(Clone)]
pub(crate) struct Assumed {
    pub place: Around,
    pub cond: Expr,
    /// How many stores stand before it.
    pub after: usize,
}

impl Writes {
    /// `None` where there are statements of other kinds: calls, views, allocations inside.
    pub fn collect(body: &Stmt) -> Option<Writes> {
        let mut scan = Scan::default();
        scan.stmt(body);
        (!scan.other).then_some(scan.out)
    }
}

#[derive(Default)]
struct Scan {
    place: Around,
    init: bool,
    out: Writes,
    other: bool,
}

impl Placed for Scan {
    type At = Around;
    fn at(&mut self) -> &mut Around {
        &mut self.place
    }

    fn inside(&mut self, block: &Block) {
        self.other |= !block.allocs.is_empty() || !block.matches.is_empty();
        if let Some(init) = &block.init {
            self.init = true;
            self.stmt(init);
            self.init = false;
        }
        self.stmt(&block.body);
    }
}

impl Visit for Scan {
    fn expr(&mut self, _: &Expr) {}

    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                let (indices, value) = (self.place.exprs(indices), self.place.expr(value));
                let (place, buffer, init) = (self.place.clone(), buffer.clone(), self.init);
                self.out.stores.push(Write { place, buffer, indices, value, init });
            }
            StmtKind::Assume(cond) => {
                let cond = self.place.expr(cond);
                let (place, after) = (self.place.clone(), self.out.stores.len());
                self.out.assumes.push(Assumed { place, cond, after });
            }
            StmtKind::Allocate { .. }
            | StmtKind::Constant { .. }
            | StmtKind::Declare { .. }
            | StmtKind::Assert { .. } => self.other = true,
            StmtKind::Evaluate(_) => self.other |= !s.is_nop(),
            _ => walk_stmt_placed(self, s),
        }
    }
}
