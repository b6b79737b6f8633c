//! The price of loops that are no stages, as those of recurrent operators: statement by statement.
//!
//! Each store takes its accesses and its operations as often as it runs; in vectors where the innermost loop
//! around it walks along all that it accesses.

use tilewright_ir::visit::{Fold, Subst};
use tilewright_ir::{Block, Dim, Expr, Range, Stmt, StmtKind, TensorFunc, Var, Visit};
use tilewright_polyhedral::place::{Place, Placed, ScopeStep, walk_stmt_placed};
use tilewright_target::Target;

use super::memory::{access, bytes};
use super::operations::operations;
use crate::axes::Access;
use crate::tile::LINE_BYTES;

/// Cycles of the statements of a function.
pub(crate) fn statements(func: &TensorFunc, target: &Target) -> f64 {
    let at = Here { times: 1.0, innermost: None, values: Vec::new() };
    let mut walk = Statements { target, at, cycles: 0.0 };
    walk.stmt(&func.body);
    walk.cycles
}

/// What the price of a statement depends on around it.
#[derive(Clone)]
struct Here {
    /// How often the statement runs.
    times: f64,
    /// The variable of the innermost loop.
    innermost: Option<Var>,
    /// The variables of blocks, with the values that they have here.
    values: Vec<(Var, Expr)>,
}

impl Here {
    /// An expression with the values that variables of blocks have here.
    fn expr(&self, e: &Expr) -> Expr {
        Subst::vars(self.values.iter().cloned()).expr(e)
    }
}

impl Place for Here {
    fn enter(&mut self, var: &Var, range: &Range) {
        self.times *= Dim::from_expr(&range.extent).map_or(1.0, |n| n.estimate() as f64);
        self.innermost = Some(var.clone());
    }

    fn bind(&mut self, var: &Var, value: &Expr) {
        self.values.push((var.clone(), self.expr(value)));
    }

    fn learn(&mut self, _: &Expr, _: bool) {}

    fn go(&mut self, step: ScopeStep<'_>) {
        match step {
            ScopeStep::Loop(var, range, _) => self.enter(var, range),
            ScopeStep::Block(bindings, block) => {
                let vars = block.iters.iter().zip(bindings);
                vars.for_each(|(iter, value)| self.bind(&iter.var, value));
            }
            // What a name stands for is computed once, where it gets its value.
            ScopeStep::Value(..) | ScopeStep::Holds(..) | ScopeStep::Memory(_) => {}
        }
    }
}

/// A walk that adds up statements.
struct Statements<'a> {
    target: &'a Target,
    at: Here,
    cycles: f64,
}

impl Placed for Statements<'_> {
    type At = Here;

    fn at(&mut self) -> &mut Here {
        &mut self.at
    }

    fn inside(&mut self, block: &Block) {
        self.stmt(&block.body);
    }
}

impl Visit for Statements<'_> {
    /// Expressions are counted with their statements.
    fn expr(&mut self, _: &Expr) {}

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt.kind() {
            // One of the two sides runs: on average, half of both.
            StmtKind::If { otherwise: Some(_), .. } => {
                let times = self.at.times;
                self.at.times *= 0.5;
                walk_stmt_placed(self, stmt);
                self.at.times = times;
            }
            StmtKind::Store { buffer, indices, value } => {
                let value = self.at.expr(value);
                let indices: Vec<Expr> = indices.iter().map(|i| self.at.expr(i)).collect();
                let mut accesses = Access::loads(&value);
                accesses.push(Access::new(buffer, &indices));
                self.work(&value, accesses);
            }
            StmtKind::Let { value, .. } => {
                let value = self.at.expr(value);
                self.work(&value, Access::loads(&value));
                walk_stmt_placed(self, stmt);
            }
            _ => walk_stmt_placed(self, stmt),
        }
    }
}

impl Statements<'_> {
    /// Counts a value with its accesses.
    fn work(&mut self, value: &Expr, accesses: Vec<Access>) {
        let costs = &self.target.costs;
        let widest = accesses.iter().map(|a| a.buffer.dtype().bytes()).max().unwrap_or(1);
        let work = operations(value) * costs.operation;
        self.cycles += self.at.times
            * if accesses.iter().all(|a| matches!(self.step_of(a), Some(0 | 1))) {
                // What does not move is loaded before the loop.
                let moving = accesses.iter().filter(|a| self.step_of(a) == Some(1));
                let lines: f64 =
                    moving.map(|a| access(bytes(&a.buffer).unwrap_or(0.0), self.target)).sum();
                let part = self.target.vectors.lanes(1) as f64 / LINE_BYTES;
                (lines * part + work) / self.target.vectors.lanes(widest) as f64
            } else {
                accesses.len() as f64 * costs.element + work
            };
    }

    fn step_of(&self, a: &Access) -> Option<i64> {
        match (&a.offset, &self.at.innermost) {
            (Some(offset), Some(var)) => offset.coefficient(var),
            _ => None,
        }
    }
}
