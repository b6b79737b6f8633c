//! The one walk that knows what surrounds each place: loops, conditions and bindings.
//!
//! [`walk_stmt_placed`] and [`walk_expr_placed`] go into the parts of a statement or an expression
//! by a [`ScopeStep`] each, and come back with the place as it was. [`Place`] is what a walk keeps of the
//! steps: [`Around`] as they stand in the text, [`Scope`] as a domain of integers. A visitor does itself
//! what it is for, and leaves the rest to the walk:
//!
//! ```
//! # use tilewright_polyhedral::place::{Around, Placed, walk_expr_placed, walk_stmt_placed};
//! # use tilewright_ir::{Buffer, DType, Expr, ExprKind, Stmt, Var, Visit};
//! /// Loads with the conditions under which they happen.
//! #[derive(Default)]
//! struct Loads(Around, Vec<String>);
//! impl Placed for Loads {
//!     type At = Around;
//!     fn at(&mut self) -> &mut Around {
//!         &mut self.0
//!     }
//! }
//! impl Visit for Loads {
//!     fn expr(&mut self, e: &Expr) {
//!         if let ExprKind::Load(..) = e.kind() {
//!             self.1.push(format!("{e} under {:?}", self.0.guards));
//!         }
//!         walk_expr_placed(self, e);
//!     }
//!     fn stmt(&mut self, s: &Stmt) {
//!         walk_stmt_placed(self, s);
//!     }
//! }
//! let (a, i) = (Buffer::with_extents("A", &[8], DType::I32), Var::index("i"));
//! let value = Expr::if_then_else(i.expr().less(4), a.load([i.expr()]), Expr::i32(0));
//! let mut loads = Loads::default();
//! loads.stmt(&Stmt::serial(&i, Expr::i32(8), Stmt::store(&a, vec![i.expr()], value)));
//! assert_eq!(loads.1, ["A[i] under [i < 4]"]);
//! ```

use crate::{Domain, Engine};
use tilewright_ir::condition::parts;
use tilewright_ir::visit::{Subst, walk_expr, walk_stmt};
use tilewright_ir::{
    BinOp, Block, Buffer, Expr, ExprKind, Fold, ForKind, IterKind, Range, Stmt, StmtKind, Var,
    Visit,
};

use crate::scope::Scope;

/// One step of a walk to the inside.
#[derive(Clone, Copy)]
pub enum ScopeStep<'a> {
    /// Into a loop.
    Loop(&'a Var, &'a Range, &'a ForKind),
    /// To where a variable has a value.
    Value(&'a Var, &'a Expr),
    /// To where a condition is true, or is false.
    Holds(&'a Expr, bool),
    /// Into the life of memory, or of a view of some.
    Memory(&'a Buffer),
    /// Into a block, with the values of its variables.
    Block(&'a [Expr], &'a Block),
}

/// What is kept of the surroundings of a place.
pub trait Place: Clone {
    /// Goes into a loop.
    fn enter(&mut self, var: &Var, range: &Range);
    /// Gives a variable its value.
    fn bind(&mut self, var: &Var, value: &Expr);
    /// Takes a condition as true, or as false.
    fn learn(&mut self, cond: &Expr, holds: bool);

    /// Goes one step.
    fn go(&mut self, step: ScopeStep<'_>) {
        match step {
            ScopeStep::Loop(var, range, _) => self.enter(var, range),
            ScopeStep::Value(var, value) => self.bind(var, value),
            ScopeStep::Holds(cond, holds) => self.learn(cond, holds),
            ScopeStep::Memory(_) => {}
            ScopeStep::Block(bindings, block) => {
                for (iter, value) in block.iters.iter().zip(bindings) {
                    self.bind(&iter.var, value);
                }
            }
        }
    }
}

impl Place for Scope {
    fn enter(&mut self, var: &Var, range: &Range) {
        Scope::enter(self, var, range);
    }
    fn bind(&mut self, var: &Var, value: &Expr) {
        Scope::bind(self, var, value);
    }
    fn learn(&mut self, cond: &Expr, holds: bool) {
        Scope::learn(self, cond, holds);
    }
}

/// The points of a place whose variables are not bound: loops, and conditions that memory does not
/// decide.
impl Place for Domain {
    fn enter(&mut self, var: &Var, range: &Range) {
        *self = self.with_var(var, range);
    }
    fn bind(&mut self, _: &Var, _: &Expr) {}
    fn learn(&mut self, cond: &Expr, holds: bool) {
        for (part, holds) in parts(cond, holds) {
            if part.effects().constant() {
                *self = self.with_guard(&part.being(holds));
            }
        }
    }
}

/// The loops and conditions around a place, as they stand in the text: in terms of loop variables,
/// with values in the place of variables that are bound to them.
#[derive(Clone, Default)]
pub struct Around {
    /// Loop variables, outermost first.
    pub loops: Vec<(Var, Range)>,
    /// Conditions, which all hold.
    pub guards: Vec<Expr>,
    bound: Subst,
}

impl Around {
    /// An expression in terms of loop variables.
    pub fn expr(&mut self, e: &Expr) -> Expr {
        self.bound.expr(e)
    }

    /// Each of some expressions in terms of loop variables.
    pub fn exprs(&mut self, list: &[Expr]) -> Vec<Expr> {
        list.iter().map(|e| self.bound.expr(e)).collect()
    }

    /// The points at which the place is reached.
    pub fn domain(&self, engine: &Engine) -> Domain {
        engine.domain_of(&self.loops, &self.guards)
    }
}

impl Place for Around {
    fn enter(&mut self, var: &Var, range: &Range) {
        let range = Range { min: self.expr(&range.min), extent: self.expr(&range.extent) };
        self.loops.push((var.clone(), range));
    }

    fn bind(&mut self, var: &Var, value: &Expr) {
        let value = self.expr(value);
        self.bound.vars.insert(var.clone(), value);
    }

    fn learn(&mut self, cond: &Expr, holds: bool) {
        let cond = self.expr(cond).being(holds);
        if !cond.is_true() {
            self.guards.push(cond);
        }
    }
}

/// A visitor that knows the place it is at.
pub trait Placed: Visit + Sized {
    /// What it keeps of the place.
    type At: Place;

    /// The place.
    fn at(&mut self) -> &mut Self::At;

    /// Visits the parts of a block, whose variables are bound: the initialisation where all
    /// reduction variables have their first values, and the body.
    fn inside(&mut self, block: &Block) {
        if let Some(init) = &block.init {
            self.under(&first(block), true, |v| v.stmt(init));
        }
        self.stmt(&block.body);
    }

    /// A condition that decides what runs; its parts are visited by [`Visit::expr`].
    fn condition(&mut self, e: &Expr) {
        self.expr(e);
    }

    /// Works one step further inside.
    fn within(&mut self, step: ScopeStep<'_>, work: impl FnOnce(&mut Self)) {
        let here = self.at().clone();
        self.at().go(step);
        work(self);
        *self.at() = here;
    }

    /// Works where a condition is true, or is false.
    fn under(&mut self, cond: &Expr, holds: bool, work: impl FnOnce(&mut Self)) {
        self.within(ScopeStep::Holds(cond, holds), work);
    }
}

/// Where the initialisation of a block runs: every reduction variable has its first value.
pub fn first(block: &Block) -> Expr {
    let reduced = block.iters.iter().filter(|i| i.kind == IterKind::Reduce);
    Expr::all(reduced.map(|i| i.var.expr().equal(&i.domain.min)))
}

/// Visits the parts of an expression, each at its place.
pub fn walk_expr_placed<V: Placed>(v: &mut V, e: &Expr) {
    match e.kind() {
        ExprKind::IfThenElse(c, yes, no) => {
            v.condition(c);
            v.under(c, true, |v| v.expr(yes));
            v.under(c, false, |v| v.expr(no));
        }
        ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
            v.expr(a);
            v.under(a, *op == BinOp::And, |v| v.expr(b));
        }
        ExprKind::Let(var, value, body) => {
            v.expr(value);
            v.within(ScopeStep::Value(var, value), |v| v.expr(body));
        }
        _ => walk_expr(v, e),
    }
}

/// Visits the parts of a statement, each at its place.
pub fn walk_stmt_placed<V: Placed>(v: &mut V, s: &Stmt) {
    match s.kind() {
        StmtKind::For { var, range, kind, body, .. } => {
            v.expr(&range.min);
            v.expr(&range.extent);
            v.within(ScopeStep::Loop(var, range, kind), |v| v.stmt(body));
        }
        StmtKind::If { cond, then, otherwise } => {
            v.condition(cond);
            v.under(cond, true, |v| v.stmt(then));
            if let Some(otherwise) = otherwise {
                v.under(cond, false, |v| v.stmt(otherwise));
            }
        }
        StmtKind::Let { var, value, body } => {
            v.expr(value);
            v.within(ScopeStep::Value(var, value), |v| v.stmt(body));
        }
        StmtKind::Allocate { buffer, body, .. }
        | StmtKind::Constant { buffer, body, .. }
        | StmtKind::Declare { buffer, body } => {
            v.buffer_def(buffer);
            v.within(ScopeStep::Memory(buffer), |v| v.stmt(body));
        }
        StmtKind::Block { bindings, predicate, block } => {
            bindings.iter().for_each(|b| v.expr(b));
            v.condition(predicate);
            v.within(ScopeStep::Block(bindings, block), |v| {
                if predicate.is_true() {
                    v.inside(block)
                } else {
                    v.under(predicate, true, |v| v.inside(block))
                }
            });
        }
        _ => walk_stmt(v, s),
    }
}
