//! Questions about what an expression is made of: nodes with a property, variables, loads; and
//! other nodes in the place of some.
//!
//! Each question walks over the nodes once, also where they are shared, and ends as soon as the answer is
//! known. What each node keeps from the time when it was made ([`Expr::effects`],
//! [`Expr::size`], the variables that it may mention) says where there is nothing to find.

use crate::hash::HashSet;
use std::ops::ControlFlow;

use crate::buffer::Buffer;
use crate::effects::var_bit;
use crate::expr::{Expr, ExprKind, Var};
use crate::stmt::Stmt;
use crate::visit::{Fold, Visit, fold_expr_children, fold_stmt_children, walk_expr, walk_stmt};

/// Nodes that a walk has met, of those that may be met again. The expressions that it walks over
/// must live as long as it.
#[derive(Debug, Default)]
pub struct Met(HashSet<usize>);

impl Met {
    /// Whether this is the first time. Nodes with a single owner and leaves are not remembered: it
    /// is always their first time.
    pub fn is_first(&mut self, e: &Expr) -> bool {
        !e.is_shared() || self.0.insert(e.address())
    }
}

/// A walk over the nodes of an expression or a statement, outermost first, each shared one once.
struct Walk<'a> {
    met: Met,
    /// Whether to look at the parts of a node, or to end the walk.
    look: &'a mut dyn FnMut(&Expr) -> ControlFlow<(), bool>,
    ended: bool,
}

impl Visit for Walk<'_> {
    fn expr(&mut self, e: &Expr) {
        if self.ended || !self.met.is_first(e) {
            return;
        }
        match (self.look)(e) {
            ControlFlow::Break(()) => self.ended = true,
            ControlFlow::Continue(true) => walk_expr(self, e),
            ControlFlow::Continue(false) => {}
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        if !self.ended {
            walk_stmt(self, s);
        }
    }
}

/// Whether a node has a property; the parts of nodes are looked at where they may have it.
fn search(
    start: impl FnOnce(&mut Walk<'_>),
    may: impl Fn(&Expr) -> bool,
    mut test: impl FnMut(&Expr) -> bool,
) -> bool {
    walk(start, &mut |e| match may(e) {
        true if test(e) => ControlFlow::Break(()),
        inside => ControlFlow::Continue(inside),
    })
}

/// Whether the walk was ended.
fn walk(
    start: impl FnOnce(&mut Walk<'_>),
    look: &mut dyn FnMut(&Expr) -> ControlFlow<(), bool>,
) -> bool {
    let mut walk = Walk { met: Met::default(), look, ended: false };
    start(&mut walk);
    walk.ended
}

impl Expr {
    /// Whether the expression or a part of it has a property.
    pub fn any(&self, test: impl FnMut(&Expr) -> bool) -> bool {
        search(|w| w.expr(self), |_| true, test)
    }

    /// The first part that has a property, outermost first in the order of the text.
    pub fn find(&self, test: impl Fn(&Expr) -> bool) -> Option<Expr> {
        let mut found = None;
        self.any(|e| {
            let is = test(e);
            if is {
                found = Some(e.clone());
            }
            is
        });
        found
    }

    /// Calls back for each node, outermost first in the order of the text. The parts of a node
    /// come only if the answer is `true`.
    pub fn for_each(&self, mut each: impl FnMut(&Expr) -> bool) {
        walk(|w| w.expr(self), &mut |e| ControlFlow::Continue(each(e)));
    }

    /// The expression with others in the place of parts for which there is one, outermost first.
    pub fn replace(&self, with: impl FnMut(&Expr) -> Option<Expr>) -> Expr {
        struct Replace<F>(F);
        impl<F: FnMut(&Expr) -> Option<Expr>> Fold for Replace<F> {
            fn expr(&mut self, e: &Expr) -> Expr {
                (self.0)(e).unwrap_or_else(|| fold_expr_children(self, e))
            }
        }
        Replace(with).expr(self)
    }

    /// Whether a variable is read, bound inside or not.
    pub fn mentions(&self, v: &Var) -> bool {
        self.mentions_any(std::slice::from_ref(v))
    }

    /// Whether one of the variables is read, bound inside or not.
    pub fn mentions_any<'a>(&self, vars: impl IntoIterator<Item = &'a Var> + Clone) -> bool {
        let mask = vars.clone().into_iter().fold(0, |mask, v| mask | var_bit(v));
        search(
            |w| w.expr(self),
            |e| e.var_bits() & mask != 0,
            |e| e.as_var().is_some_and(|v| vars.clone().into_iter().any(|x| x == v)),
        )
    }

    /// Calls back for each load, outermost first in the order of the text; for a shared one once.
    pub fn for_each_load(&self, mut each: impl FnMut(&Buffer, &[Expr])) {
        self.for_each(|e| {
            if let ExprKind::Load(b, at) = e.kind() {
                each(b, at);
            }
            e.effects().loads
        });
    }

    /// Whether a load of a buffer with a property is part of the expression.
    pub fn loads_from(&self, test: impl Fn(&Buffer) -> bool) -> bool {
        search(
            |w| w.expr(self),
            |e| e.effects().loads,
            |e| matches!(e.kind(), ExprKind::Load(b, _) if test(b)),
        )
    }

    /// The buffers that are loaded from, each once, in the order of the text.
    pub fn loaded_buffers(&self) -> Vec<Buffer> {
        let mut all: Vec<Buffer> = Vec::new();
        self.for_each_load(|b, _| {
            if !all.contains(b) {
                all.push(b.clone());
            }
        });
        all
    }
}

impl Stmt {
    /// Calls back for the statement and each one inside, outermost first in the order of the text.
    pub fn for_each(&self, each: impl FnMut(&Stmt)) {
        struct Each<F>(F);
        impl<F: FnMut(&Stmt)> Visit for Each<F> {
            fn expr(&mut self, _: &Expr) {}
            fn stmt(&mut self, s: &Stmt) {
                (self.0)(s);
                walk_stmt(self, s);
            }
        }
        Each(each).stmt(self);
    }

    /// Whether an expression in the statement, or a part of one, has a property. Shapes of buffers
    /// and annotations count.
    pub fn any_expr(&self, test: impl FnMut(&Expr) -> bool) -> bool {
        search(|w| w.stmt(self), |_| true, test)
    }

    /// The statement with others in the place of those for which there is one, outermost first;
    /// expressions stay.
    pub fn replace(&self, with: impl FnMut(&Stmt) -> Option<Stmt>) -> Stmt {
        struct Replace<F>(F);
        impl<F: FnMut(&Stmt) -> Option<Stmt>> Fold for Replace<F> {
            fn expr(&mut self, e: &Expr) -> Expr {
                e.clone()
            }
            fn stmt(&mut self, s: &Stmt) -> Stmt {
                (self.0)(s).unwrap_or_else(|| fold_stmt_children(self, s))
            }
        }
        Replace(with).stmt(self)
    }
}
