//! Primitives on reductions: `decompose_reduction`.
//!
//! ```text
//! for i, k: with init: C[i] = 0              for i: C[i] = 0
//!           C[i] = C[i] + A[i, k]            for i, k: C[i] = C[i] + A[i, k]
//! ```

use std::sync::Arc;

use tilewright_ir::index::{Ranges, simplify};
use tilewright_ir::visit::{Subst, accessed, free_vars};
use tilewright_ir::{
    Block, Error, Expr, Fold, IterKind, IterVar, Range, Result, Stmt, StmtKind, TensorFunc, Var,
};
use tilewright_polyhedral::Engine;
use tilewright_polyhedral::dependence;

use crate::cursor::{
    BlockCursor, Cursor, around, as_loop, loop_cursor, loop_ranges, replace, replace_in, runs,
    the_block, within,
};
use crate::disjoint::require_disjoint;
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::{BlockRef, LoopRef};
use tilewright_analysis::footprint::{known_around, touches};
use tilewright_transform::names::fresh_block_name;

primitives! {
    /// Moves the initialisation of a reduction into a block `NAME_init` of its own before a loop.
    /// Returns that block. The rest is called `NAME_update`, and references of a script to the old
    /// block mean it.
    ///
    /// # Errors
    /// `Refused` where the block has no initialisation, the loop is not around it or lies inside
    /// of a loop over the reduction, or something else in the loop uses what is initialised.
    decompose_reduction(block: &BlockRef, l "loop": &LoopRef) -> BlockRef, run |sch, step| {
        let update = fresh_block_name(sch.func(&block.func)?, &format!("{block}_update"));
        let init = sch.edit(block, step, |f| decompose(f, block, l, &update))?;
        sch.rename(block, BlockRef { func: block.func.clone(), name: update });
        Ok(init)
    };
}

/// A block whose initialisation goes before a loop.
struct Decomposed<'a> {
    /// The block in its scope.
    cursor: &'a BlockCursor,
    init: &'a Stmt,
    /// The loop.
    outer: &'a Cursor,
    l: &'a LoopRef,
    /// Whether what is reduced over nothing is what the reduction begins with.
    takes_empty: bool,
}

fn decompose(
    func: &TensorFunc,
    block: &BlockRef,
    l: &LoopRef,
    update: &Arc<str>,
) -> Result<Edited<BlockRef>> {
    let cursor = the_block(func, block)?;
    let b = &cursor.block;
    let outer = loop_cursor(func, l)?;
    let Some(init) = &b.init else {
        return Err(cursor.refuse("has no initialisation"));
    };
    if !b.matches.is_empty() || !b.allocs.is_empty() {
        return Err(cursor.refuse("allocates or views buffers"));
    }
    let scope_loops = cursor.loops();
    let Some(first) = scope_loops.iter().position(|s| s.ptr_eq(&outer.stmt)) else {
        return Err(Error::refused(format!(
            "the loop `{}` is not around the block `{}`",
            l.var, b.name
        )));
    };
    let takes_empty = func.takes_empty();
    let parts = Decomposed { cursor: &cursor, init, outer: &outer, l, takes_empty };
    parts.begins_once(&scope_loops, first)?;
    parts.nothing_else_sees_it()?;
    // The initialisation over the loops that its spatial variables use.
    let spatial = cursor.pairs().filter(|(i, _)| is_spatial(i));
    let needed: Vec<Var> = spatial.flat_map(|(_, e)| free_vars(e)).collect();
    let loops = &scope_loops[first..];
    let vars = loops.iter().filter_map(Stmt::loop_var);
    let dropped: Vec<Var> = vars.filter(|v| !needed.contains(v)).cloned().collect();
    let kept = parts.keep_predicate(loops, &needed, &dropped)?;
    check_once(&cursor, init, loops, &dropped, &known_around(&outer.around))?;
    runs_first(&cursor, &outer, loops)?;
    let name = fresh_block_name(func, &format!("{}_init", b.name));
    let first_nest = parts.nest(&name, kept, loops, &needed);
    let update =
        Block { name: update.clone(), init: None, reads: None, writes: None, ..(**b).clone() };
    let updated = replace(&outer.stmt, &cursor.stmt, &cursor.with_block(update));
    let func = replace_in(func, &outer.stmt, &Stmt::seq([first_nest, updated]));
    Ok((func, BlockRef { func: block.func.clone(), name }))
}

fn is_spatial(i: &IterVar) -> bool {
    i.kind != IterKind::Reduce
}

impl Decomposed<'_> {
    /// Whether the reduction moves with a variable.
    fn reduces(&self, v: &Var) -> bool {
        self.cursor.of_kind(IterKind::Reduce).any(|(_, e)| e.mentions(v))
    }

    /// The reduction must begin once in each iteration of the loops before the `first` one.
    fn begins_once(&self, scope_loops: &[Stmt], first: usize) -> Result<()> {
        self.cursor.nothing_opaque()?;
        let mut before = scope_loops[..first].iter().filter_map(Stmt::loop_var);
        if let Some(v) = before.find(|v| self.reduces(v)) {
            return Err(Error::refused(format!(
                "the loop `{v}` is over the reduction and around the loop `{}`, so that the \
                 initialisation would run again and again",
                self.l.var.name()
            )));
        }
        // The reduction must be whole inside of its scope.
        for (i, e) in self.cursor.of_kind(IterKind::Reduce) {
            let free = free_vars(e);
            if let Some(v) =
                free.iter().find(|v| !scope_loops.iter().any(|s| s.loop_var() == Some(v)))
            {
                return Err(Error::refused(format!(
                    "the reduction over `{}` depends on `{v}`, which is outside of the scope",
                    i.var.name()
                )));
            }
        }
        Ok(())
    }

    /// Nothing else in the loop may see the cells early, nor may the initialisation read what the loop has
    /// not written yet.
    fn nothing_else_sees_it(&self) -> Result<()> {
        let Decomposed { cursor, outer, l, .. } = *self;
        let name = &cursor.block.name;
        let StmtKind::Store { buffer: target, .. } = self.init.kind() else {
            let what = format!("the initialisation of `{name}` is not one store");
            return Err(Error::refused(what));
        };
        let others = replace(&outer.stmt, &cursor.stmt, &Stmt::nop());
        if touches(&others, target) != (false, false) {
            return Err(Error::refused(format!(
                "the loop `{}` holds more that uses `{target}`, which would find it initialised too early",
                l.var.name()
            )));
        }
        for read in accessed(self.init).0 {
            if touches(&others, &read).1 {
                return Err(Error::refused(format!(
                    "the loop `{}` writes `{}`, which the initialisation reads, and would read too early",
                    l.var, read.name
                )));
            }
        }
        let inner = cursor.around.iter().skip_while(|s| !s.ptr_eq(&outer.stmt));
        if let Some(s) =
            inner.skip(1).find(|s| !matches!(s.kind(), StmtKind::For { .. } | StmtKind::Seq(_)))
        {
            let l = l.var.name();
            let why = format!("runs under a condition or a binding inside the loop `{l}`");
            return Err(cursor.refuse(why).at(s.span()));
        }
        Ok(())
    }

    /// What of the predicate the initialisation keeps, over the `needed` loops; the `dropped` ones are at
    /// their first values, where the reduction must begin.
    fn keep_predicate(&self, loops: &[Stmt], needed: &[Var], dropped: &[Var]) -> Result<Expr> {
        // A loop over both kinds of variables starts some reductions late.
        let mut vars = loops.iter().filter_map(Stmt::loop_var);
        if let Some(v) = vars.find(|v| needed.contains(v) && self.reduces(v)) {
            return Err(over_both(v));
        }
        let mut first_of = First::new(loops, dropped);
        for (i, e) in self.cursor.of_kind(IterKind::Reduce) {
            let start = first_of.expr_at(&e.clone().equal(i.domain.min.clone()));
            if !start.is_true() {
                return Err(Error::refused(format!(
                    "`{}` is not known to begin at {} where the loops begin, so that the \
                     initialisation may run at another time or never",
                    i.var, i.domain.min
                )));
            }
        }
        let mut kept = Expr::bool(true);
        for p in self.cursor.predicate.conjuncts() {
            match p.mentions_any(dropped) {
                // Every instance has the first iteration of the reduction, and perhaps not all others.
                true if p.mentions_any(needed)
                    && self.always(&first_of.expr_at(&p), loops, dropped) => {}
                true if p.mentions_any(needed) => {
                    let why = "is over spatial and reduction loops at once";
                    return Err(Error::refused(format!("the predicate `{p}` {why}")));
                }
                true if !first_of.expr_at(&p).is_true() => {
                    let why = "is not known to hold where the reduction begins";
                    return Err(Error::refused(format!("the predicate `{p}` {why}")));
                }
                true => {}
                false => kept = kept.and(&p),
            }
        }
        for (v, r, _) in loops.iter().filter_map(as_loop) {
            let bounds = r.min.mentions_any(dropped) || r.extent.mentions_any(dropped);
            let mixed = needed.contains(v) && bounds;
            let begins = runs(&r.extent) || self.takes_empty && self.reduces(v);
            if mixed || (dropped.contains(v) && !begins) {
                return Err(Error::refused(format!(
                    "the loop `{v}` may run for no iteration, or depends on one over the reduction"
                )));
            }
        }
        Ok(kept)
    }

    /// Whether a condition holds in all iterations of the loops that are not `dropped`.
    fn always(&self, condition: &Expr, loops: &[Stmt], dropped: &[Var]) -> bool {
        let mut kept = loop_ranges(loops);
        kept.retain(|(v, _)| !dropped.contains(v));
        let facts = known_around(&self.outer.around);
        Engine::new().domain_of(&kept, &facts).proves(condition)
    }

    /// The initialisation as a block of its own, over the loops that it needs.
    fn nest(&self, name: &Arc<str>, kept: Expr, loops: &[Stmt], needed: &[Var]) -> Stmt {
        let spatial = self.cursor.pairs().filter(|(i, _)| is_spatial(i));
        let (iters, bindings): (Vec<IterVar>, Vec<Expr>) =
            spatial.map(|(i, e)| (i.clone(), e.clone())).unzip();
        let new = Block {
            name: name.clone(),
            iters,
            reads: None,
            writes: None,
            init: None,
            body: self.init.clone(),
            ..(*self.cursor.block).clone()
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
    pub fn new(loops: &[Stmt], which: &[Var]) -> First {
        let mins = loops
            .iter()
            .filter_map(as_loop)
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
    at: &BlockCursor,
    init: &Stmt,
    loops: &[Stmt],
    dropped: &[Var],
    known: &[Expr],
) -> Result<()> {
    let b = &at.block;
    let StmtKind::Store { indices, value, .. } = init.kind() else {
        return Err(Error::internal("the initialisation is not a store"));
    };
    if let Some(i) = indices.iter().chain([value]).find_map(|e| reduction_of(e, at)) {
        return Err(Error::refused(format!(
            "the initialisation of `{}` depends on `{}`",
            b.name, i.var
        )));
    }
    let ranges = loop_ranges(loops);
    // Loops one to one with variables, and those of the cells one to one with indices.
    let plain = at.predicate.is_true()
        && ranges.iter().all(|(v, r)| {
            let binds = at.pairs().find(|(_, e)| e.as_var() == Some(v));
            is_single(r)
                || binds.is_some_and(|(i, _)| {
                    dropped.contains(v) || indices.iter().any(|e| e.as_var() == Some(&i.var))
                })
        });
    if plain {
        return Ok(());
    }
    let mut bind = Subst::vars(at.pairs().map(|(i, e)| (i.var.clone(), e.clone())));
    let engine = Engine::new();
    let mut guards: Vec<Expr> = known.iter().chain([&at.predicate]).cloned().collect();
    let cells: Vec<Expr> = indices.iter().map(|e| bind.expr(e)).collect();
    let kept: Vec<(Var, Range)> =
        ranges.iter().filter(|(v, _)| !dropped.contains(v)).cloned().collect();
    if let Some(c) = engine.domain_of(&kept, known).map(&cells)?.collision()? {
        let why = "reduces into one cell for several values of its loops";
        return Err(at.refuse(why).note(c.to_string()));
    }
    for (i, e) in at.of_kind(IterKind::Reduce) {
        guards.push(e.clone().equal(i.domain.min.clone()));
    }
    let starts = engine.domain_of(&ranges, &guards);
    for (v, r) in ranges.iter().filter(|(v, r)| dropped.contains(v) && !is_single(r)) {
        if !starts.proves(&v.expr().equal(r.min.clone())) {
            return Err(Error::refused(format!(
                "the initialisation of `{}` runs for several values of the loop `{v}`",
                b.name
            )));
        }
    }
    Ok(())
}

fn reduction_of<'a>(e: &Expr, at: &'a BlockCursor) -> Option<&'a IterVar> {
    at.of_kind(IterKind::Reduce).map(|(i, _)| i).find(|i| e.mentions(&i.var))
}

fn is_single(r: &Range) -> bool {
    r.extent.as_int() == Some(1)
}

/// A loop over both kinds of variables.
pub(crate) fn over_both(v: &Var) -> Error {
    let v = v.name();
    Error::refused(format!("the loop `{v}` is over spatial and reduction variables at once"))
}

/// Every initialisation in the loops will run before every update. Refuses where an update that ran
/// before one depends on it.
fn runs_first(at: &BlockCursor, outer: &Cursor, loops: &[Stmt]) -> Result<()> {
    let domain = within(around(&Engine::new(), outer), loops);
    let vars: Vec<Var> = loops.iter().filter_map(Stmt::loop_var).cloned().collect();
    let here: Vec<Expr> = vars.iter().map(Var::expr).collect();
    let init = at.with_block(Block { body: Stmt::nop(), ..(*at.block).clone() });
    let update = at.with_block(Block { init: None, ..(*at.block).clone() });
    let (inits, updates) =
        (dependence::accesses(&init, &domain)?, dependence::accesses(&update, &domain)?);
    require_disjoint(&inits, &updates, &vars, |names| {
        let mut renamed = dependence::renaming(names);
        let earlier: Vec<Expr> = here.iter().map(|e| renamed.expr(e)).collect();
        vec![dependence::before(&earlier, &here)]
    })
}
