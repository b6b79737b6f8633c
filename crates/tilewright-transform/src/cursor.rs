//! Finding a statement with what is around it, and putting another one in its place.

use std::ops::Deref;
use std::sync::Arc;

use tilewright_analysis::footprint::known_around;
use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::walk_stmt;
use tilewright_ir::{
    Block, Buffer, Error, Expr, IterKind, IterVar, Range, Result, Stmt, StmtKind, TensorFunc, Var,
    Visit,
};
use tilewright_polyhedral::{Domain, Engine};

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
        in_scope(&self.around).iter().filter(|s| as_loop(s).is_some()).cloned().collect()
    }

    /// The innermost block that encloses it, if there is one.
    pub fn scope(&self) -> Option<&Stmt> {
        self.around.iter().rev().find(|s| as_block(s).is_some())
    }

    /// Whether a loop around both may run more than once.
    pub fn shares_loop(&self, other: &Cursor) -> bool {
        self.around.iter().filter_map(as_loop).any(|(v, r, _)| {
            r.extent.as_int().is_none_or(|n| n > 1)
                && other.around.iter().any(|s| s.loop_var() == Some(v))
        })
    }

    /// What is around what is inside of it.
    pub fn with_own(&self) -> Vec<Stmt> {
        self.around.iter().chain([&self.stmt]).cloned().collect()
    }

    /// Whether `other` is around it.
    pub fn inside(&self, other: &Stmt) -> bool {
        self.around.iter().any(|s| s.ptr_eq(other))
    }
}

/// The innermost ones of some statements around each other, from behind the last block.
pub fn in_scope(around: &[Stmt]) -> &[Stmt] {
    let inner = around.iter().rposition(|s| as_block(s).is_some()).map_or(0, |k| k + 1);
    &around[inner..]
}

/// A block of a function: where it is, and the values of its iteration variables there.
#[derive(Clone)]
pub struct BlockCursor {
    /// Where it is.
    pub at: Cursor,
    pub block: Arc<Block>,
    /// One value an iteration variable.
    pub bindings: Vec<Expr>,
    /// The block runs only where this holds.
    pub predicate: Expr,
}

impl Deref for BlockCursor {
    type Target = Cursor;
    fn deref(&self) -> &Cursor {
        &self.at
    }
}

impl BlockCursor {
    /// A refusal that says something of the block.
    pub fn refuse(&self, why: impl std::fmt::Display) -> Error {
        Error::refused(format!("the block `{}` {why}", self.block.name))
    }

    /// The iteration variables with their values.
    pub fn pairs(&self) -> impl Iterator<Item = (&IterVar, &Expr)> {
        self.block.iters.iter().zip(&self.bindings)
    }

    /// Those of a kind.
    pub fn of_kind(&self, kind: IterKind) -> impl Iterator<Item = (&IterVar, &Expr)> {
        self.pairs().filter(move |(i, _)| i.kind == kind)
    }

    /// Which of some loops is the one that an iteration variable is bound to, and stands for as a whole.
    ///
    /// # Errors
    /// `Refused` where there is none.
    pub fn own_loop(&self, i: &IterVar, value: &Expr, loops: &[(Var, Range)]) -> Result<usize> {
        loops
            .iter()
            .position(|(v, r)| {
                value.as_var() == Some(v)
                    && same_as_loop(&r.min, &i.domain.min, v)
                    && same_as_loop(&r.extent, &i.domain.extent, v)
            })
            .ok_or_else(|| {
                Error::refused(format!(
                    "`{}` of `{}` is bound to `{value}`, not to a loop of its own",
                    i.var, self.block.name
                ))
            })
    }

    /// Refuses a block with an opaque variable.
    pub fn nothing_opaque(&self) -> Result<()> {
        match self.of_kind(IterKind::Opaque).next() {
            None => Ok(()),
            Some((i, _)) => {
                let (var, block) = (i.var.name(), &self.block.name);
                Err(Error::refused(format!("`{var}` of `{block}` is opaque")))
            }
        }
    }

    /// Where the block is one store, without buffers of its own: what is stored.
    ///
    /// # Errors
    /// `Refused` for another block.
    pub fn store(&self) -> Result<(&Buffer, &[Expr], &Expr)> {
        let StmtKind::Store { buffer, indices, value } = self.block.body.kind() else {
            return Err(self.refuse("does not consist of one store"));
        };
        if self.block.allocs.is_empty() && self.block.matches.is_empty() {
            Ok((buffer, indices, value))
        } else {
            Err(self.refuse("allocates or views buffers"))
        }
    }

    /// The statement with another block, and with the bindings and the predicate that are here, which
    /// need not be its own any more.
    pub fn with_block(&self, block: Block) -> Stmt {
        let (bindings, predicate) = (self.bindings.clone(), self.predicate.clone());
        let kind = StmtKind::Block { bindings, predicate, block: Arc::new(block) };
        Stmt::spanned(kind, self.stmt.span())
    }
}

fn same_as_loop(a: &Expr, b: &Expr, v: &Var) -> bool {
    same_expr(&a.clone().cast(v.dtype()), &b.clone().cast(v.dtype()))
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
pub fn replace_in(func: &TensorFunc, old: &Stmt, new: &Stmt) -> TensorFunc {
    TensorFunc { body: replace(&func.body, old, new), ..func.clone() }
}

/// The block of a block statement.
pub fn as_block(s: &Stmt) -> Option<&Arc<Block>> {
    match s.kind() {
        StmtKind::Block { block, .. } => Some(block),
        _ => None,
    }
}

/// The same block statement with another block.
pub fn with_block(s: &Stmt, block: Block) -> Stmt {
    match s.kind() {
        StmtKind::Block { bindings, predicate, .. } => {
            let (bindings, predicate) = (bindings.clone(), predicate.clone());
            let kind = StmtKind::Block { bindings, predicate, block: Arc::new(block) };
            Stmt::spanned(kind, s.span())
        }
        _ => s.clone(),
    }
}

/// Variable, range and body of a loop.
pub fn as_loop(s: &Stmt) -> Option<(&Var, &Range, &Stmt)> {
    match s.kind() {
        StmtKind::For { var, range, body, .. } => Some((var, range, body)),
        _ => None,
    }
}

/// Variable, range and body of a statement that is a loop.
pub fn the_loop(s: &Stmt) -> Result<(&Var, &Range, &Stmt)> {
    as_loop(s).ok_or_else(|| Error::internal("a loop cursor is no loop"))
}

/// The loops among statements, with their values.
pub fn loop_ranges<'a>(list: impl IntoIterator<Item = &'a Stmt>) -> Vec<(Var, Range)> {
    let loops = list.into_iter().filter_map(as_loop);
    loops.map(|(v, r, _)| (v.clone(), r.clone())).collect()
}

/// Whether a loop of an extent runs at least once, whatever the sizes are.
pub fn runs(extent: &Expr) -> bool {
    match extent.as_int() {
        Some(n) => n > 0,
        None => Engine::new().domain().proves(&extent.clone().greater(0)),
    }
}

/// A domain with the loops among statements around.
pub fn within<'a>(domain: Domain, list: impl IntoIterator<Item = &'a Stmt>) -> Domain {
    let loops = list.into_iter().filter_map(as_loop);
    loops.fold(domain, |domain, (v, r, _)| domain.with_var(v, r))
}

/// Loops and iteration variables around a cursor, with their values.
pub fn ranges_around(cursor: &Cursor) -> Vec<(Var, Range)> {
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
pub fn around(engine: &Engine, cursor: &Cursor) -> Domain {
    engine.domain_of(&[], &known_around(&cursor.around))
}

/// Where the block of this name is.
pub fn block_cursor(func: &TensorFunc, name: &str) -> Result<BlockCursor> {
    let mut cursors = find(&func.body, |s| as_block(s).is_some_and(|b| &*b.name == name));
    match cursors.len() {
        1 => {
            let at = cursors.swap_remove(0);
            let StmtKind::Block { bindings, predicate, block } = at.stmt.kind() else {
                return Err(Error::internal("a block cursor is no block"));
            };
            let (block, bindings, predicate) = (block.clone(), bindings.clone(), predicate.clone());
            Ok(BlockCursor { at, block, bindings, predicate })
        }
        0 => {
            let names: Vec<Arc<str>> = blocks(func).iter().map(|b| b.name.clone()).collect();
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

/// The blocks of a function, in the order of the text.
pub fn blocks(func: &TensorFunc) -> Vec<Arc<Block>> {
    let mut all = Vec::new();
    func.body.for_each(|s| all.extend(as_block(s).cloned()));
    all
}
