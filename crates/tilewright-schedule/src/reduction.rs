//! Primitives on reductions: `decompose_reduction`.
//!
//! ```text
//! for i, k: with init: C[i] = 0              for i: C[i] = 0
//!           C[i] = C[i] + A[i, k]            for i, k: C[i] = C[i] + A[i, k]
//! ```

use std::sync::Arc;

use tilewright_analysis::dependence;
use tilewright_analysis::index::{Ranges, simplify};
use tilewright_ir::visit::{Subst, accessed, free_vars};
use tilewright_ir::{
    Block, Error, Expr, Fold, IterKind, IterVar, Range, Result, Stmt, StmtKind, TensorFunc, Var,
};
use tilewright_sets::Engine;

use crate::cache::the_block;
use crate::cursor::{
    Cursor, around, as_loop, fresh_block_name, loop_cursor, replace, replace_in, with_block,
};
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::{BlockRef, LoopRef};
use tilewright_analysis::footprint::{known_around, touches};

primitives! {
    /// Moves the initialisation of a reduction into a block `NAME_init` of its own before a loop.
    /// Returns that block; what is left is `NAME_update`, which references to the block in a
    /// script then mean.
    ///
    /// # Errors
    /// `Refused` where the block has no initialisation, the loop is not around it or lies inside
    /// of a loop over the reduction, or something else in the loop uses what is initialised.
    decompose_reduction(block: &BlockRef, l "loop": &LoopRef) -> BlockRef, run |sch, step| {
        let update = fresh_block_name(sch.func(&block.func)?, &format!("{}_update", block.name));
        let init = sch.edit(block, step, |f| decompose(f, block, l, &update))?;
        sch.rename(block, BlockRef { func: block.func.clone(), name: update });
        Ok(init)
    };
}

/// A block whose initialisation goes before a loop.
struct Decomposed<'a> {
    /// The block in its scope.
    cursor: &'a Cursor,
    b: &'a Block,
    bindings: &'a [Expr],
    init: &'a Stmt,
    /// The loop.
    outer: &'a Cursor,
    l: &'a LoopRef,
}

fn decompose(
    func: &TensorFunc,
    block: &BlockRef,
    l: &LoopRef,
    update: &Arc<str>,
) -> Result<Edited<BlockRef>> {
    let (cursor, b) = the_block(func, block)?;
    let outer = loop_cursor(func, l)?;
    let StmtKind::Block { bindings, predicate, .. } = cursor.stmt.kind() else {
        return Err(Error::internal("a block cursor is no block"));
    };
    let refuse = |why: String| Error::refused(why).at(cursor.stmt.span());
    let Some(init) = &b.init else {
        return Err(refuse(format!("the block `{}` has no initialisation", b.name)));
    };
    if !b.matches.is_empty() || !b.allocs.is_empty() {
        return Err(refuse(format!("the block `{}` allocates or views buffers", b.name)));
    }
    let scope_loops = cursor.loops();
    let Some(first) = scope_loops.iter().position(|s| s.ptr_eq(&outer.stmt)) else {
        return Err(refuse(format!(
            "the loop `{}` is not around the block `{}`",
            l.var.name(),
            b.name
        )));
    };
    let parts = Decomposed { cursor: &cursor, b: &b, bindings, init, outer: &outer, l };
    parts.begins_once(&scope_loops, first)?;
    parts.nothing_else_sees_it()?;
    // The initialisation over the loops that its spatial variables use.
    let mut needed: Vec<Var> = Vec::new();
    for (_, e) in b.iters.iter().zip(bindings).filter(|(i, _)| is_spatial(i)) {
        needed.extend(free_vars(e));
    }
    let loops: Vec<&Stmt> = scope_loops[first..].iter().collect();
    let dropped: Vec<Var> = loops
        .iter()
        .filter_map(|s| as_loop(s))
        .filter(|(v, ..)| !needed.contains(v))
        .map(|(v, ..)| v.clone())
        .collect();
    let kept = parts.kept(predicate, &loops, &needed, &dropped)?;
    check_once(&b, bindings, init, &loops, &dropped, predicate, &known_around(&outer.around))
        .map_err(|e| e.at(cursor.stmt.span()))?;
    runs_first(&cursor.stmt, &b, &outer, &loops).map_err(|e| e.at(cursor.stmt.span()))?;
    let name = fresh_block_name(func, &format!("{}_init", b.name));
    let first_nest = parts.nest(&name, kept, &loops, &needed);
    let update =
        Block { name: update.clone(), init: None, reads: None, writes: None, ..(*b).clone() };
    let update = with_block(&cursor.stmt, update);
    let updated = replace(&outer.stmt, &cursor.stmt, &update);
    let func = replace_in(func, &outer.stmt, &Stmt::seq([first_nest, updated]));
    Ok((func, BlockRef { func: block.func.clone(), name }))
}

fn is_spatial(i: &IterVar) -> bool {
    i.kind != IterKind::Reduce
}

impl Decomposed<'_> {
    fn refuse(&self, why: String) -> Error {
        Error::refused(why).at(self.cursor.stmt.span())
    }

    /// The variables of the reduction, with what they are bound to.
    fn reduced(&self) -> impl Iterator<Item = (&IterVar, &Expr)> {
        self.b.iters.iter().zip(self.bindings).filter(|(i, _)| i.kind == IterKind::Reduce)
    }

    /// Whether the reduction moves with a variable.
    fn reduces(&self, v: &Var) -> bool {
        self.reduced().any(|(_, e)| free_vars(e).contains(v))
    }

    /// The reduction must begin once in each iteration of the loops before the `first` one.
    fn begins_once(&self, scope_loops: &[Stmt], first: usize) -> Result<()> {
        if let Some(i) = self.b.iters.iter().find(|i| i.kind == IterKind::Opaque) {
            return Err(self.refuse(format!("`{}` of `{}` is opaque", i.var.name(), self.b.name)));
        }
        for s in &scope_loops[..first] {
            if let Some((v, ..)) = as_loop(s)
                && self.reduces(v)
            {
                return Err(self.refuse(format!(
                    "the loop `{}` is over the reduction and around the loop `{}`, so that the \
                     initialisation would run again and again",
                    v.name(),
                    self.l.var.name()
                )));
            }
        }
        // The reduction must be whole inside of its scope.
        for (i, e) in self.reduced() {
            let free = free_vars(e);
            let local = |v: &Var| scope_loops.iter().filter_map(as_loop).any(|(x, ..)| x == v);
            if let Some(v) = free.iter().find(|v| !local(v)) {
                return Err(self.refuse(format!(
                    "the reduction over `{}` depends on `{}`, which is outside of the scope",
                    i.var.name(),
                    v.name()
                )));
            }
        }
        Ok(())
    }

    /// Nothing else in the loop may see the cells early, nor may the initialisation read what the loop has
    /// not written yet.
    fn nothing_else_sees_it(&self) -> Result<()> {
        let Decomposed { cursor, b, outer, l, .. } = *self;
        let StmtKind::Store { buffer: target, .. } = self.init.kind() else {
            return Err(self.refuse(format!("the initialisation of `{}` is not one store", b.name)));
        };
        let others = replace(&outer.stmt, &cursor.stmt, &Stmt::nop());
        if touches(&others, target) != (false, false) {
            return Err(self.refuse(format!(
                "the loop `{}` holds more that uses `{}`, which would find it initialised too early",
                l.var.name(),
                target.name
            )));
        }
        for read in accessed(self.init).0 {
            if touches(&others, &read).1 {
                return Err(self.refuse(format!(
                    "the loop `{}` writes `{}`, which the initialisation reads, and would read too early",
                    l.var.name(),
                    read.name
                )));
            }
        }
        let inner = &cursor.around[cursor.around.len() - inner_len(&cursor.around, &outer.stmt)..];
        if let Some(s) =
            inner.iter().find(|s| !matches!(s.kind(), StmtKind::For { .. } | StmtKind::Seq(_)))
        {
            return Err(Error::refused(format!(
                "the block `{}` runs under a condition or a binding inside the loop `{}`",
                b.name,
                l.var.name()
            ))
            .at(s.span()));
        }
        Ok(())
    }

    /// What of the predicate the initialisation keeps, over the `needed` loops; the `dropped` ones are at
    /// their first values, where the reduction must begin.
    fn kept(
        &self,
        predicate: &Expr,
        loops: &[&Stmt],
        needed: &[Var],
        dropped: &[Var],
    ) -> Result<Expr> {
        // A loop over both kinds of variables starts some reductions late.
        for (v, ..) in loops.iter().filter_map(|s| as_loop(s)) {
            if needed.contains(v) && self.reduces(v) {
                return Err(self.refuse(format!(
                    "the loop `{}` is over spatial and reduction variables at once",
                    v.name()
                )));
            }
        }
        let mut first_of = First::of(loops, dropped);
        for (i, e) in self.reduced() {
            let start = first_of.expr_at(&e.clone().equal(i.domain.min.clone()));
            if !start.is_true() {
                return Err(self.refuse(format!(
                    "`{}` is not known to begin at {} where the loops begin, so that the \
                     initialisation may run at another time or never",
                    i.var.name(),
                    i.domain.min
                )));
            }
        }
        let mut kept = Expr::bool(true);
        for p in predicate.conjuncts() {
            let free = free_vars(&p);
            match dropped.iter().any(|v| free.contains(v)) {
                // What an instance misses for lack of iterations, it initialises in vain.
                true if needed.iter().any(|v| free.contains(v)) => {
                    return Err(self.refuse(format!(
                        "the predicate `{p}` is over spatial and reduction loops at once"
                    )));
                }
                true if !first_of.expr_at(&p).is_true() => {
                    return Err(self.refuse(format!(
                        "the predicate `{p}` is not known to hold where the reduction begins"
                    )));
                }
                true => {}
                false => kept = kept.and(&p),
            }
        }
        for (v, r, _) in loops.iter().filter_map(|s| as_loop(s)) {
            let free: Vec<Var> =
                free_vars(&r.min).into_iter().chain(free_vars(&r.extent)).collect();
            let extent = r.extent.as_int();
            let mixed = needed.contains(v) && dropped.iter().any(|d| free.contains(d));
            if mixed || (dropped.contains(v) && extent.is_none_or(|n| n < 1)) {
                return Err(self.refuse(format!(
                    "the loop `{}` may run for no iteration, or depends on one over the reduction",
                    v.name()
                )));
            }
        }
        Ok(kept)
    }

    /// The initialisation as a block of its own, over the loops that it needs.
    fn nest(&self, name: &Arc<str>, kept: Expr, loops: &[&Stmt], needed: &[Var]) -> Stmt {
        let (iters, bindings): (Vec<IterVar>, Vec<Expr>) =
            (self.b.iters.iter().cloned().zip(self.bindings.iter().cloned()))
                .filter(|(i, _)| is_spatial(i))
                .unzip();
        let new = Block {
            name: name.clone(),
            iters,
            reads: None,
            writes: None,
            init: None,
            body: self.init.clone(),
            ..self.b.clone()
        };
        let mut nest = Stmt::block(bindings, kept, new);
        for s in loops.iter().rev() {
            if let StmtKind::For { var, range, kind, .. } = s.kind()
                && needed.contains(var)
            {
                nest = Stmt::for_loop(var, range.clone(), kind.clone(), nest);
            }
        }
        Subst::refresh().stmt(&nest)
    }
}

/// Loops at their first values.
pub(crate) struct First(Subst);

impl First {
    pub fn of(loops: &[&Stmt], which: &[Var]) -> First {
        let mins = loops
            .iter()
            .filter_map(|s| as_loop(s))
            .filter(|(v, ..)| which.contains(v))
            .map(|(v, r, _)| (v.clone(), r.min.clone().cast(v.dtype())));
        First(Subst::vars(mins))
    }

    pub(crate) fn expr_at(&mut self, e: &Expr) -> Expr {
        simplify(&self.0.expr(e), &Ranges::default())
    }
}

/// Each cell must be initialised for one value of the loops only: in the block as it was at one
/// point of the loops over the reduction, and by one of the others.
pub(crate) fn check_once(
    b: &Block,
    bindings: &[Expr],
    init: &Stmt,
    loops: &[&Stmt],
    dropped: &[Var],
    predicate: &Expr,
    known: &[Expr],
) -> Result<()> {
    let StmtKind::Store { indices, value, .. } = init.kind() else {
        return Err(Error::internal("the initialisation is not a store"));
    };
    let reduced = |e: &Expr| {
        let free = free_vars(e);
        b.iters.iter().find(|i| i.kind == IterKind::Reduce && free.contains(&i.var))
    };
    if let Some(i) = indices.iter().chain([value]).find_map(reduced) {
        return Err(Error::refused(format!(
            "the initialisation of `{}` depends on `{}`",
            b.name,
            i.var.name()
        )));
    }
    let all: Vec<(&Var, &Range)> =
        loops.iter().filter_map(|s| as_loop(s)).map(|(v, r, _)| (v, r)).collect();
    let one = |r: &Range| r.extent.as_int() == Some(1);
    // Loops one to one with variables, and those of the cells one to one with indices.
    let plain = predicate.is_true()
        && all.iter().all(|(v, r)| {
            let binds = b.iters.iter().zip(bindings).find(|(_, e)| e.as_var() == Some(v));
            one(r)
                || binds.is_some_and(|(i, _)| {
                    dropped.contains(v) || indices.iter().any(|e| e.as_var() == Some(&i.var))
                })
        });
    if plain {
        return Ok(());
    }
    let mut bind =
        Subst::vars(b.iters.iter().zip(bindings).map(|(i, e)| (i.var.clone(), e.clone())));
    let engine = Engine::new()?;
    let ranges: Vec<(Var, Range)> = all.iter().map(|(v, r)| ((*v).clone(), (*r).clone())).collect();
    let mut guards: Vec<Expr> = known.to_vec();
    guards.push(predicate.clone());
    let cells: Vec<Expr> = indices.iter().map(|e| bind.expr(e)).collect();
    let kept: Vec<(Var, Range)> =
        ranges.iter().filter(|(v, _)| !dropped.contains(v)).cloned().collect();
    if let Some(c) = engine.domain_of(&kept, known).map(&cells)?.collision()? {
        return Err(Error::refused(format!(
            "the block `{}` reduces into one cell for several values of its loops",
            b.name
        ))
        .note(c.to_string()));
    }
    for (i, e) in b.iters.iter().zip(bindings).filter(|(i, _)| i.kind == IterKind::Reduce) {
        guards.push(e.clone().equal(i.domain.min.clone()));
    }
    let starts = engine.domain_of(&ranges, &guards);
    for (v, r) in all.iter().filter(|(v, r)| dropped.contains(v) && !one(r)) {
        if !starts.proves(&v.expr().equal(r.min.clone())) {
            return Err(Error::refused(format!(
                "the initialisation of `{}` runs for several values of the loop `{}`",
                b.name,
                v.name()
            )));
        }
    }
    Ok(())
}

/// Every initialisation in the loops will run before every update. Refuses where an update that ran
/// before one depends on it.
fn runs_first(stmt: &Stmt, b: &Block, outer: &Cursor, loops: &[&Stmt]) -> Result<()> {
    let engine = Engine::new()?;
    let ranges = || loops.iter().filter_map(|s| as_loop(s));
    let domain = ranges().fold(around(&engine, outer), |d, (v, r, _)| d.with_var(v, r));
    let vars: Vec<Var> = ranges().map(|(v, ..)| v.clone()).collect();
    let at: Vec<Expr> = vars.iter().map(Var::expr).collect();
    let init = with_block(stmt, Block { body: Stmt::nop(), ..b.clone() });
    let update = with_block(stmt, Block { init: None, ..b.clone() });
    let (inits, updates) =
        (dependence::accesses(&init, &domain)?, dependence::accesses(&update, &domain)?);
    for x in &inits {
        for y in updates.iter().filter(|y| y.buffer == x.buffer && (x.write || y.write)) {
            let all: Vec<Var> = y.at.domain.vars().cloned().collect();
            let (other, names) = y.at.elsewhere_in(&all);
            let mut renamed = dependence::renaming(&names);
            let earlier: Vec<Expr> = at.iter().map(|e| renamed.expr(e)).collect();
            let when = [dependence::before(&earlier, &at)];
            let proof = x.at.independent(&other, &when);
            dependence::refuse(&proof, x, y, &vars, &names)?;
        }
    }
    Ok(())
}

/// How many statements are inside of `outer`.
fn inner_len(around: &[Stmt], outer: &Stmt) -> usize {
    around.iter().rev().take_while(|s| !s.ptr_eq(outer)).count()
}
