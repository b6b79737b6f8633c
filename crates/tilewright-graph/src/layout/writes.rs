//! What a tensor function stores, store by store: each with the loops and conditions around it.
//!
//! Iteration variables of blocks and `let` variables are replaced by what they stand for, so that
//! indices, conditions and values are expressions of loop variables alone. This is the view from
//! which conversions are recognised and values of cells are derived; it does not care how loops
//! are nested or split.

use tilewright_ir::visit::Subst;
use tilewright_ir::{Buffer, Expr, Fold, Range, Stmt, StmtKind, Var, Visit};
use tilewright_sets::{Domain, Engine};

/// The loops around a place and the conditions under which it is reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// Loop variables, outermost first.
    pub loops: Vec<(Var, Range)>,
    /// Conditions, which all hold.
    pub guards: Vec<Expr>,
}

impl Place {
    /// The points at which the place is reached.
    pub fn domain(&self, engine: &Engine) -> Domain {
        engine.domain_of(&self.loops, &self.guards)
    }
}

/// `buffer[indices] = value` at a place.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub place: Place,
    pub buffer: Buffer,
    pub indices: Vec<Expr>,
    pub value: Expr,
    /// It initialises a reduction.
    pub init: bool,
}

/// The stores and assumptions of a statement, in the order of the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writes {
    pub stores: Vec<Write>,
    pub assumes: Vec<Assumed>,
}

/// `T.assume(cond)` at a place.
#[derive(Clone, Debug)]
pub(crate) struct Assumed {
    pub place: Place,
    pub cond: Expr,
    /// How many stores stand before it.
    pub after: usize,
}

impl Writes {
    /// `None` where there are statements of other kinds: calls, views, allocations inside.
    pub fn of(body: &Stmt) -> Option<Writes> {
        let mut scan = Scan {
            place: Place::default(),
            subst: Subst::default(),
            init: false,
            out: Writes::default(),
            other: false,
        };
        scan.stmt(body);
        (!scan.other).then_some(scan.out)
    }
}

struct Scan {
    place: Place,
    subst: Subst,
    init: bool,
    out: Writes,
    other: bool,
}

impl Scan {
    fn guarded(&mut self, cond: Expr, inside: &Stmt) {
        let depth = self.place.guards.len();
        if !cond.is_true() {
            self.place.guards.push(cond);
        }
        self.stmt(inside);
        self.place.guards.truncate(depth);
    }
}

impl Visit for Scan {
    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                let indices = indices.iter().map(|i| self.subst.expr(i)).collect();
                let value = self.subst.expr(value);
                let (place, buffer, init) = (self.place.clone(), buffer.clone(), self.init);
                self.out.stores.push(Write { place, buffer, indices, value, init });
            }
            StmtKind::For { var, range, body, .. } => {
                let range = Range {
                    min: self.subst.expr(&range.min),
                    extent: self.subst.expr(&range.extent),
                };
                self.place.loops.push((var.clone(), range));
                self.stmt(body);
                self.place.loops.pop();
            }
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.subst.expr(cond);
                self.guarded(cond.clone(), then);
                if let Some(otherwise) = otherwise {
                    self.guarded(Expr::not_node(cond), otherwise);
                }
            }
            StmtKind::Let { var, value, body } => {
                let value = self.subst.expr(value);
                self.subst.vars.insert(var.clone(), value);
                self.stmt(body);
            }
            StmtKind::Seq(list) => list.iter().for_each(|s| self.stmt(s)),
            StmtKind::Block { bindings, predicate, block } => {
                self.other |= !block.allocs.is_empty() || !block.matches.is_empty();
                let predicate = self.subst.expr(predicate);
                for (iter, value) in block.iters.iter().zip(bindings) {
                    let value = self.subst.expr(value);
                    self.subst.vars.insert(iter.var.clone(), value);
                }
                if let Some(init) = &block.init {
                    self.init = true;
                    self.guarded(predicate.clone(), init);
                    self.init = false;
                }
                self.guarded(predicate, &block.body);
            }
            StmtKind::Assume(cond) => {
                let cond = self.subst.expr(cond);
                let (place, after) = (self.place.clone(), self.out.stores.len());
                self.out.assumes.push(Assumed { place, cond, after });
            }
            _ if s.is_nop() => {}
            _ => self.other = true,
        }
    }
}
