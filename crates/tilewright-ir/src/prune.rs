//! What does nothing, judged by the text alone, goes.
//!
//! Empty loops, branches, blocks and sequences; branches whose condition is a constant; bindings
//! that are never read; memory that is never accessed; evaluations without effect. What has an effect
//! stays: a call to C is kept wherever it stood.

use crate::hash::HashSet;
use std::sync::Arc;

use crate::visit::{
    Fold, Visit, fold_block_children, fold_stmt_children, walk_buffer, walk_expr, walk_stmt,
};
use crate::{Block, Buffer, CallTarget, Expr, ExprKind, Stmt, StmtKind, Var};

/// A statement without what does nothing.
pub fn prune(s: &Stmt) -> Stmt {
    Prune.stmt(s)
}

/// The outermost calls of an expression that may have effects, in order; none where they are only
/// evaluated sometimes, in which case the whole expression is the effect.
fn outermost_calls(e: &Expr) -> Vec<Expr> {
    struct Effects {
        found: Vec<Expr>,
        lazy: bool,
    }
    impl Visit for Effects {
        fn expr(&mut self, e: &Expr) {
            match e.kind() {
                _ if !e.effects().calls => {}
                ExprKind::Call(CallTarget::Extern(_) | CallTarget::Opaque(_), _) => {
                    self.found.push(e.clone());
                }
                _ => {
                    // Under a condition, or with a variable of the expression itself.
                    self.lazy |= e.dtype().is_bool() || {
                        matches!(e.kind(), ExprKind::IfThenElse(..) | ExprKind::Let(..))
                    };
                    walk_expr(self, e);
                }
            }
        }
    }
    let mut effects = Effects { found: Vec::new(), lazy: false };
    effects.expr(e);
    if effects.lazy && !effects.found.is_empty() { vec![e.clone()] } else { effects.found }
}

/// What is left of expressions whose values are not used.
pub fn only_effects<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> Stmt {
    let calls = exprs.into_iter().flat_map(outermost_calls);
    Stmt::seq(calls.map(|e| Stmt::new(StmtKind::Evaluate(e))))
}

/// The variables and the memory that a statement uses, its own definitions included.
#[derive(Default)]
struct Used {
    vars: HashSet<Var>,
    memory: HashSet<Var>,
}

impl Used {
    fn by(s: &Stmt) -> Used {
        let mut used = Used::default();
        used.stmt(s);
        used
    }

    fn buffer(&self, b: &Buffer) -> bool {
        self.memory.contains(&b.data) || self.vars.contains(&b.data)
    }
}

impl Visit for Used {
    fn expr(&mut self, e: &Expr) {
        if let ExprKind::Var(v) = e.kind() {
            self.vars.insert(v.clone());
        }
        walk_expr(self, e);
    }

    fn stmt(&mut self, s: &Stmt) {
        // A view uses the memory that it looks at.
        if let StmtKind::Declare { buffer, .. } = s.kind() {
            self.memory.insert(buffer.data.clone());
        }
        walk_stmt(self, s);
    }

    fn buffer_use(&mut self, b: &Buffer) {
        self.memory.insert(b.data.clone());
        walk_buffer(self, b);
    }
}

struct Prune;

impl Fold for Prune {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let s = fold_stmt_children(self, s);
        match s.kind() {
            StmtKind::For { range, body, .. } => {
                let none = range.extent.as_int().is_some_and(|n| n <= 0);
                if none || body.is_nop() { only_effects([&range.min, &range.extent]) } else { s }
            }
            StmtKind::If { cond, then, otherwise } => {
                let other = otherwise.as_ref().filter(|o| !o.is_nop());
                match (cond.as_int(), then.is_nop(), other) {
                    (Some(0), _, other) => other.cloned().unwrap_or_else(Stmt::nop),
                    (Some(_), ..) => then.clone(),
                    (None, true, None) => only_effects([cond]),
                    (None, true, Some(other)) => Stmt::spanned(
                        StmtKind::If { cond: !cond.clone(), then: other.clone(), otherwise: None },
                        s.span(),
                    ),
                    (None, false, None) if otherwise.is_some() => Stmt::spanned(
                        StmtKind::If { cond: cond.clone(), then: then.clone(), otherwise: None },
                        s.span(),
                    ),
                    _ => s,
                }
            }
            StmtKind::Let { var, value, body } => {
                if value.effects().calls || Used::by(body).vars.contains(var) {
                    s
                } else {
                    body.clone()
                }
            }
            StmtKind::Allocate { buffer, body, .. } | StmtKind::Constant { buffer, body, .. } => {
                if Used::by(body).buffer(buffer) {
                    s
                } else {
                    body.clone()
                }
            }
            StmtKind::Declare { buffer, body } => {
                let mut view = View(buffer, false);
                view.stmt(body);
                if view.1 { s } else { body.clone() }
            }
            StmtKind::Block { bindings, predicate, block } => {
                if block.body.is_nop() && block.init.is_none() {
                    return only_effects(bindings.iter().chain([predicate]));
                }
                let bare = block.is_plain_root() && block.allocs.is_empty();
                if bare && predicate.is_true() { block.body.clone() } else { s }
            }
            StmtKind::Evaluate(e) if !e.effects().calls => Stmt::nop(),
            StmtKind::Assert { cond: e, .. } | StmtKind::Assume(e) if e.is_true() => Stmt::nop(),
            _ => s,
        }
    }

    fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
        let b = fold_block_children(self, b);
        let mut used = Used::by(&b.body);
        b.init.iter().for_each(|s| used.stmt(s));
        let regions = b.matches.iter().map(|m| &m.source);
        regions.for_each(|r| used.buffer_use(&r.buffer));
        let no_init = b.init.as_ref().is_some_and(Stmt::is_nop);
        if !no_init && !b.allocs.iter().any(|a| !used.buffer(a)) {
            return b;
        }
        let mut new = (*b).clone();
        new.allocs.retain(|a| used.buffer(a));
        new.init = new.init.filter(|i| !i.is_nop());
        // What is declared to be touched is there.
        let gone: HashSet<&Buffer> = b.allocs.iter().filter(|a| !used.buffer(a)).collect();
        for list in [&mut new.reads, &mut new.writes].into_iter().flatten() {
            list.retain(|r| !gone.contains(&r.buffer));
        }
        Arc::new(new)
    }
}

/// Whether a buffer is named.
struct View<'a>(&'a Buffer, bool);

impl Visit for View<'_> {
    fn buffer_use(&mut self, b: &Buffer) {
        self.1 |= b == self.0;
    }
}
