//! The price of loops that are no stages, as those of recurrent operators: statement by statement.
//!
//! Each store takes its accesses and its operations as often as it runs; in vectors where the innermost loop
//! around it walks along all that it accesses.

use tilewright_ir::visit::{Fold, Subst};
use tilewright_ir::{Buffer, Dim, Expr, Stmt, StmtKind, TensorFunc, Var};
use tilewright_target::Target;

use super::loops::operations;
use super::{access, bytes};
use crate::axes::Access;
use crate::tile::LINE_BYTES;

/// Cycles of the statements of a function.
pub(super) fn statements(func: &TensorFunc, target: &Target) -> f64 {
    let mut walk = Walk { target, times: 1.0, innermost: None, values: Vec::new(), cycles: 0.0 };
    walk.stmt(&func.body);
    walk.cycles
}

/// A walk over statements.
struct Walk<'a> {
    target: &'a Target,
    /// How often the statement runs.
    times: f64,
    /// The variable of the innermost loop.
    innermost: Option<Var>,
    /// The variables of blocks, with the values that they have here.
    values: Vec<(Var, Expr)>,
    cycles: f64,
}

impl Walk<'_> {
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt.kind() {
            StmtKind::For { var, range, body, .. } => {
                let extent = Dim::of(&range.extent).map_or(1.0, |n| n.estimate() as f64);
                let (times, outer) = (self.times, self.innermost.replace(var.clone()));
                self.times *= extent;
                self.stmt(body);
                (self.times, self.innermost) = (times, outer);
            }
            StmtKind::Block { bindings, block, .. } => {
                let known = self.values.len();
                let vars = block.iters.iter().map(|iter| iter.var.clone());
                let here = bindings.iter().map(|value| self.here(value));
                let new: Vec<_> = vars.zip(here).collect();
                self.values.extend(new);
                self.stmt(&block.body);
                self.values.truncate(known);
            }
            // One of the two sides runs: on average, half of both.
            StmtKind::If { then, otherwise: Some(otherwise), .. } => {
                let times = self.times;
                self.times *= 0.5;
                self.stmt(then);
                self.stmt(otherwise);
                self.times = times;
            }
            StmtKind::If { then, otherwise: None, .. } => self.stmt(then),
            StmtKind::Store { buffer, indices, value } => self.store(buffer, indices, value),
            StmtKind::Let { value, body, .. } => {
                let value = self.here(value);
                self.work(&value, Access::loads(&value));
                self.stmt(body);
            }
            StmtKind::Seq(all) => all.iter().for_each(|stmt| self.stmt(stmt)),
            _ => stmt.body().into_iter().for_each(|stmt| self.stmt(stmt)),
        }
    }

    /// An expression with the values that variables of blocks have here.
    fn here(&self, e: &Expr) -> Expr {
        Subst::vars(self.values.iter().cloned()).expr(e)
    }

    fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) {
        let value = self.here(value);
        let indices: Vec<Expr> = indices.iter().map(|i| self.here(i)).collect();
        let mut accesses = Access::loads(&value);
        accesses.push(Access::new(buffer, &indices));
        self.work(&value, accesses);
    }

    /// Counts a value with its accesses.
    fn work(&mut self, value: &Expr, accesses: Vec<Access>) {
        let costs = &self.target.costs;
        let step = |a: &Access| match (&a.offset, &self.innermost) {
            (Some(offset), Some(var)) => offset.coefficient(var),
            _ => None,
        };
        let widest = accesses.iter().map(|a| a.buffer.dtype().bytes()).max().unwrap_or(1);
        let work = operations(value) * costs.operation;
        self.cycles += self.times
            * match accesses.iter().all(|a| matches!(step(a), Some(0 | 1))) {
                // What does not move is loaded before the loop.
                true => {
                    let moving = accesses.iter().filter(|a| step(a) == Some(1));
                    let line = |a: &Access| access(bytes(&a.buffer).unwrap_or(0.0), self.target);
                    let lines: f64 = moving.map(line).sum();
                    let part = self.target.vectors.lanes(1) as f64 / LINE_BYTES;
                    (lines * part + work) / self.target.vectors.lanes(widest) as f64
                }
                false => accesses.len() as f64 * costs.element + work,
            };
    }
}
