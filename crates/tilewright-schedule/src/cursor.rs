//! Finding a statement with what is around it, and putting another one in its place.

use std::sync::Arc;

use tilewright_ir::visit::walk_stmt;
use tilewright_ir::{Block, Error, Expr, Range, Result, Stmt, StmtKind, TensorFunc, Var, Visit};
use tilewright_sets::{Domain, Engine};

use crate::value::LoopRef;

/// A statement of a function, with the statements around it.
#[derive(Clone, Debug)]
pub struct Cursor {
    /// The statement.
    pub stmt: Stmt,
    /// What is around it, outermost first: loops, conditions, blocks, sequences, ...
    pub around: Vec<Stmt>,
}

impl Cursor {
    /// The loops around it up to the innermost block that encloses it, outermost first.
    pub fn loops(&self) -> Vec<Stmt> {
        let inner = self.around.iter().rposition(|s| as_block(s).is_some()).map_or(0, |k| k + 1);
        self.around[inner..].iter().filter(|s| as_loop(s).is_some()).cloned().collect()
    }

    /// The innermost block that encloses it, if there is one.
    pub fn scope(&self) -> Option<&Stmt> {
        self.around.iter().rev().find(|s| as_block(s).is_some())
    }

    /// Whether `other` is around it.
    pub fn inside(&self, other: &Stmt) -> bool {
        self.around.iter().any(|s| s.ptr_eq(other))
    }
}

/// Every statement that satisfies a condition, in the order of the text.
pub fn find(body: &Stmt, wanted: impl Fn(&Stmt) -> bool) -> Vec<Cursor> {
    struct Find<F> {
        wanted: F,
        around: Vec<Stmt>,
        found: Vec<Cursor>,
    }
    impl<F: Fn(&Stmt) -> bool> Visit for Find<F> {
        fn expr(&mut self, _: &Expr) {}
        fn stmt(&mut self, s: &Stmt) {
            if (self.wanted)(s) {
                self.found.push(Cursor { stmt: s.clone(), around: self.around.clone() });
            }
            self.around.push(s.clone());
            walk_stmt(self, s);
            self.around.pop();
        }
    }
    let mut f = Find { wanted, around: Vec::new(), found: Vec::new() };
    f.stmt(body);
    f.found
}

/// Puts `new` in the place of `old` (the same node in memory) everywhere in `body`.
pub fn replace(body: &Stmt, old: &Stmt, new: &Stmt) -> Stmt {
    body.replace(|s| s.ptr_eq(old).then(|| new.clone()))
}

/// [`replace`] in a function.
pub(crate) fn replace_in(func: &TensorFunc, old: &Stmt, new: &Stmt) -> TensorFunc {
    TensorFunc { body: replace(&func.body, old, new), ..func.clone() }
}

/// The block of a block statement.
pub(crate) fn as_block(s: &Stmt) -> Option<&Arc<Block>> {
    match s.kind() {
        StmtKind::Block { block, .. } => Some(block),
        _ => None,
    }
}

/// Variable, range and body of a loop.
pub fn as_loop(s: &Stmt) -> Option<(&Var, &Range, &Stmt)> {
    match s.kind() {
        StmtKind::For { var, range, body, .. } => Some((var, range, body)),
        _ => None,
    }
}

/// Loops and iteration variables around a cursor, with their values.
pub(crate) fn ranges_around(cursor: &Cursor) -> Vec<(Var, Range)> {
    let mut out = Vec::new();
    for s in &cursor.around {
        if let Some((v, r, _)) = as_loop(s) {
            out.push((v.clone(), r.clone()));
        }
        if let Some(b) = as_block(s) {
            out.extend(b.iters.iter().map(|i| (i.var.clone(), i.domain.clone())));
        }
    }
    out
}

/// What holds around a cursor: the ranges as conditions, so that their variables are the same for
/// every iteration inside.
pub(crate) fn around(engine: &Engine, cursor: &Cursor) -> Domain {
    let guards: Vec<Expr> = ranges_around(cursor)
        .into_iter()
        .flat_map(|(v, r)| {
            let end = r.min.clone() + &r.extent;
            [v.expr().greater_equal(r.min), v.expr().less(end)]
        })
        .collect();
    engine.domain_of(&[], &guards)
}

/// Where the block of this name is.
pub(crate) fn block_cursor(func: &TensorFunc, name: &str) -> Result<Cursor> {
    let mut cursors = find(&func.body, |s| as_block(s).is_some_and(|b| &*b.name == name));
    match cursors.len() {
        1 => Ok(cursors.swap_remove(0)),
        0 => {
            let all = find(&func.body, |s| as_block(s).is_some());
            let names: Vec<&str> =
                all.iter().filter_map(|s| as_block(&s.stmt)).map(|b| &*b.name).collect();
            Err(Error::refused(format!("there is no block `{name}`"))
                .note(format!("the function has the blocks: {}", names.join(", "))))
        }
        n => {
            let labels = cursors.iter().filter_map(|s| s.stmt.span());
            let e = Error::refused(format!("{n} blocks are called `{name}`"))
                .at(cursors[0].stmt.span());
            Err(labels.skip(1).fold(e, |e, span| e.label(span, "another one")))
        }
    }
}

/// Where the loop with this variable is.
pub(crate) fn loop_cursor(func: &TensorFunc, l: &LoopRef) -> Result<Cursor> {
    let mut cursors = find(&func.body, |s| as_loop(s).is_some_and(|(v, ..)| *v == l.var));
    match cursors.len() {
        1 => Ok(cursors.swap_remove(0)),
        0 => Err(Error::refused(format!("the loop `{}` no longer exists", l.var.name()))),
        n => Err(Error::refused(format!("the loop `{}` exists {n} times", l.var.name()))),
    }
}

/// A name for a new block that no block of the function has: `base`, `base_1`, ...
pub(crate) fn fresh_block_name(func: &TensorFunc, base: &str) -> Arc<str> {
    let taken = |name: &str| {
        !find(&func.body, |s| as_block(s).is_some_and(|b| &*b.name == name)).is_empty()
    };
    let mut name = base.to_owned();
    let mut k = 0;
    while taken(&name) {
        k += 1;
        name = format!("{base}_{k}");
    }
    name.into()
}

/// The same block statement with another block.
pub(crate) fn with_block(s: &Stmt, block: Block) -> Stmt {
    match s.kind() {
        StmtKind::Block { bindings, predicate, .. } => Stmt::spanned(
            StmtKind::Block {
                bindings: bindings.clone(),
                predicate: predicate.clone(),
                block: Arc::new(block),
            },
            s.span(),
        ),
        _ => s.clone(),
    }
}
