//! Blocks become plain statements.
//!
//! Iteration variables are replaced by their bindings, the predicate becomes an `if`, the
//! initialisation runs under the condition that every reduction variable has its first value,
//! allocations become statements, and a view of a region becomes the region's buffer with the
//! region's start added to the indices.

use tilewright_ir::hash::HashMap;

use tilewright_ir::visit::{fold_expr_children, fold_func, fold_stmt_children};
use tilewright_ir::{
    Block, Buffer, Error, Expr, ExprKind, Fold, IterKind, MatchRegion, Result, Stmt, StmtKind,
    TensorFunc, Var,
};

use crate::pass::{Pass, Run};

/// `lower_blocks` by name.
pub const PASS: Pass = Pass {
    name: "lower_blocks",
    summary: "turn blocks into plain statements",
    options: &[],
    run: Run::Tensor(|f, _, _| lower_blocks(f)),
};

/// Replaces every block of a function by its statements.
///
/// # Errors
/// `Unsupported` for a view whose shape does not fit its region axis by axis.
pub fn lower_blocks(func: &TensorFunc) -> Result<TensorFunc> {
    let mut lower = Lower::default();
    let func = fold_func(&mut lower, func);
    lower.error.map_or(Ok(func), Err)
}

#[derive(Default)]
struct Lower {
    /// Iteration variables in scope, by their values.
    vars: HashMap<Var, Expr>,
    /// Views in scope: the buffer behind, and the start of each of its axes.
    views: HashMap<Buffer, (Buffer, Vec<Expr>)>,
    error: Option<Error>,
}

impl Lower {
    fn enter_view(&mut self, m: &MatchRegion, block: &Block) {
        let source = &m.source;
        let (outer, inner) = (source.ranges.len(), m.buffer.rank());
        let dropped = outer.saturating_sub(inner);
        if inner > outer || !source.ranges[..dropped].iter().all(|r| r.is_point()) {
            self.error.get_or_insert_with(|| {
                Error::unsupported(format!(
                    "block `{}` views `{}` as `{}` with a shape that does not fit axis by axis",
                    block.name, source.buffer.name, m.buffer.name
                ))
            });
            return;
        }
        let starts: Vec<Expr> = source.ranges.iter().map(|r| self.expr(&r.min)).collect();
        let (buffer, starts) = self.resolve(&source.buffer, starts);
        // A symbolic shape or offset of the view is bound by the region.
        for (dim, range) in m.buffer.shape.iter().zip(&source.ranges[dropped..]) {
            if let Some(v) = dim.as_var() {
                let extent = self.expr(&range.extent);
                self.vars.insert(v.clone(), extent);
            }
        }
        self.views.insert(m.buffer.clone(), (buffer, starts));
    }

    /// The buffer and indices behind a view; others come back as they are.
    fn resolve(&self, buffer: &Buffer, indices: Vec<Expr>) -> (Buffer, Vec<Expr>) {
        let Some((source, starts)) = self.views.get(buffer) else {
            return (buffer.clone(), indices);
        };
        let dropped = starts.len() - indices.len().min(starts.len());
        let mut full: Vec<Expr> = starts[..dropped].to_vec();
        full.extend(starts[dropped..].iter().zip(indices).map(|(s, i)| s + i));
        (source.clone(), full)
    }
}

impl Fold for Lower {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Var(v) => self.vars.get(v).cloned().unwrap_or_else(|| e.clone()),
            _ => fold_expr_children(self, e),
        }
    }

    fn access(&mut self, buffer: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        self.views.contains_key(buffer).then(|| {
            let indices = indices.iter().map(|i| self.expr(i)).collect();
            self.resolve(buffer, indices)
        })
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Block { bindings, predicate, block } => {
                for (iter, binding) in block.iters.iter().zip(bindings) {
                    let value = self.expr(binding);
                    self.vars.insert(iter.var.clone(), value);
                }
                let predicate = self.expr(predicate);
                block.matches.iter().for_each(|m| self.enter_view(m, block));
                let mut first = Expr::bool(true);
                for (iter, binding) in block.iters.iter().zip(bindings) {
                    if iter.kind == IterKind::Reduce {
                        let (at, min) = (self.expr(binding), self.expr(&iter.domain.min));
                        first = first.and(at.equal(min));
                    }
                }
                let init = block.init.as_ref().map(|i| Stmt::guard(first, self.stmt(i)));
                let body = self.stmt(&block.body);
                let body = Stmt::seq(init.into_iter().chain([body]));
                let body = block.allocs.iter().rev().fold(body, |b, a| Stmt::allocate(a, b));
                Stmt::guard(predicate, body)
            }
            _ => fold_stmt_children(self, s),
        }
    }
}
