//! `reverse_compute_at`: a stage that runs where what it reads is computed.
//!
//! ```text
//! for i in range(8):                                for i in range(8):
//!     for j in range(8): B[i, j] = A[i, j] * 2          for j in range(8): B[i, j] = A[i, j] * 2
//! for i, j in grid(8, 8): C[i, j] = B[i, j] + 1         for j in range(8): C[i, j] = B[i, j] + 1
//! ```
//!
//! In each iteration of the loop the block runs for those values of its spatial variables that
//! read the box written there; its reductions run as a whole. Three things make that right, and
//! each is asked of the set engine:
//!
//! * the iterations together run each instance of the block that ran before, and each once;
//! * instances with different values of the spatial variables do not meet in a cell that one of
//!   them writes, so that their order is free;
//! * nothing that ran before the block, and meets it in such a cell, now runs after it.

use std::collections::BTreeSet;
use tilewright_ir::hash::HashMap;

use tilewright_analysis::footprint::{self, Footprint, known_around};
use tilewright_analysis::regions::declared_or_inferred;
use tilewright_ir::index::{Ranges, simplify};
use tilewright_ir::visit::free_vars;
use tilewright_ir::{
    AtOnce, Block, Buffer, Error, Expr, Fold, IterKind, IterVar, Range, Region, Result, Stmt,
    StmtKind, TensorFunc, Var,
};
use tilewright_polyhedral::dependence::{self, PlacedAccess, before};
use tilewright_polyhedral::{Domain, Engine, Proof};

use crate::compute::{Placement, Position, elements};
use crate::copying::{Change, InsertionPoint, fit, hull};
use crate::cursor::{
    BlockCursor, Cursor, as_loop, loop_cursor, loop_ranges, the_block, the_loop, within,
};
use crate::disjoint::require_disjoint;
use crate::inline::removed;
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::{BlockRef, LoopRef};

primitives! {
    /// Moves a block under a loop, behind the last that writes what it reads there; it then runs
    /// for what is written in one iteration.
    ///
    /// # Errors
    /// `Refused` where the loop is not before the block in the same scope, the loops of the block
    /// hold other statements or conditions, an instance of it would be left out, run twice, or run
    /// before something that it depends on.
    reverse_compute_at(
        block: &BlockRef,
        l "loop": &LoopRef,
        preserve_unit_loops: bool = false,
        index: Position = Position::Last
    ), edit |f| {
        reverse_compute_at(f, block, l, Placement { preserve_unit_loops, position: index })
    };
}

fn reverse_compute_at(
    func: &TensorFunc,
    block: &BlockRef,
    l: &LoopRef,
    placement: Placement,
) -> Result<Edited> {
    let own = the_block(func, block)?;
    let target = loop_cursor(func, l)?;
    let moving = Moving::new(&own, &target)?;
    let nest = moving.nest(&placement)?;
    moving.same_instances(&nest)?;
    moving.crosses_nothing(&nest)?;
    let body = elements(the_loop(&target.stmt)?.2);
    let first = body
        .iter()
        .rposition(|s| moving.produced.iter().any(|x| footprint::touches(s, x).1))
        .map_or(0, |k| k + 1);
    let mut wrong = None;
    let candidates = placement.candidates(first, body.len());
    for at in candidates.map_err(|e| e.at(target.stmt.span()))? {
        if let Err(e) = moving.keeps_order(&nest, &body, at) {
            wrong = wrong.or(Some(e));
            continue;
        }
        let around = target.with_own();
        let (node, before) = match body.get(at) {
            Some(next) => (next.clone(), true),
            None => (body[at - 1].clone(), false),
        };
        let change = Change {
            swap: vec![(moving.gone.clone(), Stmt::nop())],
            insert: vec![(InsertionPoint { node, before, around }, nest.stmt.clone())],
            ..Change::default()
        };
        return Ok((change.apply(func), ()));
    }
    Err(wrong.unwrap_or_else(|| Error::internal("no position was tried")))
}

/// A block on its way from its loops to the loop of what it reads.
struct Moving<'a> {
    own: &'a BlockCursor,
    /// The loop around its body.
    target: &'a Stmt,
    /// From the statement beside the block's loops down to the loop.
    path: Vec<Stmt>,
    /// What is between that statement and the block's loops.
    between: Vec<Stmt>,
    /// The loops of the block, which go.
    gone: Stmt,
    /// Those loops, outermost first.
    old: Vec<(Var, Range)>,
    /// How many statements are around both.
    common: usize,
    /// What is known around both.
    known: Vec<Expr>,
    /// Buffers that the block reads and the body of the loop writes.
    produced: Vec<Buffer>,
    engine: Engine,
}

/// The block in its new loops.
struct Nest {
    loops: Vec<(Var, Range)>,
    /// One value an iteration variable.
    values: Vec<Expr>,
    predicate: Expr,
    stmt: Stmt,
}

impl<'a> Moving<'a> {
    fn new(own: &'a BlockCursor, target: &'a Cursor) -> Result<Self> {
        let (var, _, inner) = the_loop(&target.stmt)?;
        let (l, block, name) = (var.name(), &own.block, &own.block.name);
        let common = own.around.iter().zip(&target.around).take_while(|(a, b)| a.ptr_eq(b)).count();
        let (from, to) = (
            own.around.get(common).unwrap_or(&own.stmt),
            target.around.get(common).unwrap_or(&target.stmt),
        );
        let list = match own.around[..common].last().map(Stmt::kind) {
            Some(StmtKind::Seq(list)) if !from.ptr_eq(to) => list.as_slice(),
            _ => &[],
        };
        let (Some(from_at), Some(to_at)) =
            (list.iter().position(|x| x.ptr_eq(from)), list.iter().position(|x| x.ptr_eq(to)))
        else {
            return Err(Error::refused(format!(
                "the loop `{l}` is around the block `{name}`, or in another branch"
            )));
        };
        if to_at > from_at {
            return Err(Error::refused(format!("the loop `{l}` comes after the block `{name}`")));
        }
        let path = target.with_own().split_off(common);
        if let Some(s) =
            path.iter().find(|s| !matches!(s.kind(), StmtKind::For { .. } | StmtKind::Seq(_)))
        {
            return Err(Error::refused(format!(
                "the loop `{l}` is in another scope than the block `{name}`, or under a condition"
            ))
            .at(s.span()));
        }
        let gone = removed(own);
        if !gone.ptr_eq(from) {
            return Err(Error::refused(format!(
                "the loops of the block `{name}` hold other statements"
            )));
        }
        let own_loops = &own.around[common..];
        if own_loops.iter().any(|s| as_loop(s).is_none()) {
            return Err(own.refuse("runs under a condition"));
        }
        own.nothing_opaque()?;
        let (reads, _) = declared_or_inferred(block);
        let mut produced: Vec<Buffer> = reads.into_iter().map(|r| r.buffer).collect();
        produced.retain(|x| footprint::touches(inner, x).1);
        if produced.is_empty() {
            return Err(Error::refused(format!(
                "the loop `{l}` writes nothing that the block `{name}` reads"
            )));
        }
        Ok(Moving {
            own,
            target: &target.stmt,
            path,
            between: list[to_at + 1..from_at].to_vec(),
            gone,
            old: loop_ranges(own_loops),
            common,
            known: known_around(&own.around[..common]),
            produced,
            engine: Engine::new(),
        })
    }

    /// The loops on the way to the new place, with how they run.
    fn outer(&self) -> Vec<(Var, Range)> {
        loop_ranges(&self.path)
    }

    /// The box that an iteration of the loop writes of each buffer.
    fn written(&self) -> Vec<Region> {
        let inner = as_loop(self.target).map(|(.., inner)| inner);
        let around = [&self.own.around[..self.common], &self.path].concat();
        let known = known_around(&around);
        let hull_of = |x: &Buffer| hull(inner?, x, true, &around);
        self.produced.iter().filter_map(|x| Some(fit(&hull_of(x)?, &known).0)).collect()
    }

    /// The values of an iteration variable that read a box: where an index is the variable and a
    /// constant, what the index says; else the tightest range that loses none.
    fn range_of(&self, i: &IterVar, written: &[Region]) -> Result<Range> {
        let block = &self.own.block;
        let mut guards = Vec::new();
        let mut best: Option<Range> = None;
        for w in written {
            let reads = Footprint::collect(&block.body, &w.buffer).reads;
            let pairs = reads.iter().flat_map(|r| r.indices.iter().zip(&w.ranges));
            // What varies inside of the block is for the check of the order.
            for (at, cells) in pairs.filter(|(at, _)| {
                free_vars(at).iter().all(|v| block.iters.iter().any(|i| i.var == *v))
            }) {
                let end = cells.min.clone() + &cells.extent;
                guards.push(at.clone().greater_equal(cells.min.clone()));
                guards.push(at.clone().less(end));
                let offset = simplify(&(at.clone() - &i.var), &Ranges::default());
                if offset.as_int().is_none() {
                    continue;
                }
                let dtype = i.var.dtype();
                let min = simplify(&(cells.min.clone().cast(dtype) - &offset), &Ranges::default());
                let range = Range { min, extent: cells.extent.clone().cast(dtype) };
                let smaller = best.as_ref().is_none_or(|b| {
                    range.extent.as_int().unwrap_or(i64::MAX)
                        < b.extent.as_int().unwrap_or(i64::MAX)
                });
                if smaller {
                    best = Some(range);
                }
            }
        }
        if let Some(range) = best {
            return Ok(range);
        }
        if !guards.iter().any(|e| free_vars(e).contains(&i.var)) {
            return Ok(i.domain.clone());
        }
        let iters = block.iters.iter().map(|i| (i.var.clone(), i.domain.clone()));
        let outer = self.outer();
        let all: Vec<(Var, Range)> = outer.iter().cloned().chain(iters).collect();
        let kept: Vec<Var> = outer.into_iter().map(|(v, _)| v).collect();
        let domain = self.engine.domain_of(&all, &[self.known.clone(), guards].concat());
        let min = domain.tight_bounds(&i.var.expr(), &kept)?.min;
        let place = i.var.expr() - &min;
        // A constant extent, where there is one: what is beyond the end of an open one runs not.
        let last = match domain.bounds(&place)? {
            (_, Some(most)) => Expr::int(most, i.var.dtype()),
            _ => domain.tight_bounds(&place, &[])?.max,
        };
        let extent = simplify(&(last + 1), &Ranges::default());
        Ok(Range { min, extent })
    }

    fn nest(&self, placement: &Placement) -> Result<Nest> {
        let written = self.written();
        let outer = self.outer();
        let mut loops: Vec<(Var, Range)> = Vec::new();
        let mut values: Vec<Expr> = Vec::new();
        let mut bounds = Vec::new();
        // Reductions in the order in which their loops stood.
        let mut reduced: Vec<(usize, usize)> = Vec::new();
        for (k, (i, e)) in self.own.pairs().enumerate() {
            if i.kind == IterKind::Reduce {
                reduced.push((self.own.own_loop(i, e, &self.old)?, k));
                values.push(i.var.expr());
                continue;
            }
            let range = self.range_of(i, &written)?;
            let value = match placement.axis(loops.len(), &range) {
                None => range.min.clone(),
                Some(ax) => {
                    let value = simplify(&(range.min.clone() + &ax), &Ranges::default());
                    loops.push((ax, Range::upto(range.extent.clone())));
                    value
                }
            };
            let value = value.cast(i.var.dtype());
            let end = i.domain.min.clone() + &i.domain.extent;
            bounds.push(value.clone().greater_equal(i.domain.min.clone()));
            bounds.push(value.clone().less(end));
            values.push(value);
        }
        reduced.sort_unstable();
        for (_, k) in reduced {
            let i = &self.own.block.iters[k];
            let ax = Var::new(format!("ax{}", loops.len()), i.var.dtype());
            values[k] = ax.expr();
            loops.push((ax, i.domain.clone()));
        }
        // What does not depend on its loops decides as before whether it runs at all.
        let old: BTreeSet<Var> = self.old.iter().map(|(v, _)| v.clone()).collect();
        let conditions = self.own.predicate.conjuncts().into_iter();
        bounds.extend(conditions.filter(|p| !p.mentions_any(&old)));
        let all: Vec<(Var, Range)> = outer.iter().chain(&loops).cloned().collect();
        let domain = self.engine.domain_of(&all, &self.known);
        bounds.retain(|e| !domain.proves(e));
        let predicate = Expr::all(bounds);
        let stmt = Stmt::block(values.clone(), predicate.clone(), (*self.own.block).clone());
        let stmt = Stmt::nest(loops.iter().cloned(), stmt);
        Ok(Nest { loops, values, predicate, stmt })
    }

    /// The block must run for the same values of its variables as before, and once for each.
    fn same_instances(&self, nest: &Nest) -> Result<()> {
        let block = &self.own.block;
        let vars: Vec<Var> = block.iters.iter().map(|i| i.var.fresh()).collect();
        let all: Vec<(Var, Range)> = self.outer().into_iter().chain(nest.loops.clone()).collect();
        let before = self.domain_with(&self.old, &self.own.predicate).map(&self.own.bindings)?;
        let after = self.domain_with(&all, &nest.predicate).map(&nest.values)?;
        for (which, map) in [("runs", &before), ("would run", &after)] {
            if let Some(c) = map.collision()? {
                let why = format!("{which} several times for the same values of its variables");
                return Err(self.own.refuse(why).note(c.to_string()));
            }
        }
        let (before, after) = (before.range(&vars)?, after.range(&vars)?);
        let name = &block.name;
        for (proof, what) in [
            (before.is_subset(&after), "no iteration of the loop would run"),
            (after.is_subset(&before), "an iteration of the loop would run, without need,"),
        ] {
            match proof {
                Proof::Yes => {}
                Proof::No { witness } => {
                    let e = Error::refused(format!(
                        "{what} the block `{name}` at {}",
                        instance_text(&witness, block, &vars)
                    ));
                    return Err(e);
                }
                Proof::Unknown(why) => {
                    return Err(Error::refused(format!(
                        "it is not known which instances of the block `{name}` the loop would run"
                    ))
                    .note(why.to_string()));
                }
            }
        }
        Ok(())
    }

    fn domain_with(&self, ranges: &[(Var, Range)], predicate: &Expr) -> Domain {
        let guards: Vec<Expr> = self.known.iter().chain([predicate]).cloned().collect();
        self.engine.domain_of(ranges, &guards)
    }

    /// The loops around a statement on the path, as a domain.
    fn domain(&self, depth: usize) -> Domain {
        within(self.engine.domain_of(&[], &self.known), &self.path[..depth])
    }

    /// What the block touches in its new place.
    fn accesses(&self, nest: &Nest) -> Result<Vec<PlacedAccess>> {
        dependence::accesses(&nest.stmt, &self.domain(self.path.len()))
    }

    /// Refuses where two accesses meet, as [`require_disjoint`] does.
    fn require_disjoint(
        &self,
        ours: &[PlacedAccess],
        others: &[PlacedAccess],
        when: impl Fn(&HashMap<Var, Var>) -> Vec<Expr>,
    ) -> Result<()> {
        let vars: Vec<Var> = self.path.iter().filter_map(Stmt::loop_var).cloned().collect();
        require_disjoint(ours, others, &vars, when)
    }

    /// What is between the loop and the block is passed by, and instances of the block with
    /// different values of the spatial variables are mixed.
    fn crosses_nothing(&self, nest: &Nest) -> Result<()> {
        let ours = self.accesses(nest)?;
        for s in &self.between {
            let theirs = dependence::accesses(s, &self.domain(0))?;
            self.require_disjoint(&ours, &theirs, |_| Vec::new()).map_err(|e| match s.span() {
                Some(span) => e.label(span, "this stands between the loop and the block"),
                None => e,
            })?;
        }
        let values = self.own.block.iters.iter().zip(&nest.values);
        let spatial: Vec<&Expr> =
            values.filter(|(i, _)| i.kind == IterKind::Spatial).map(|(_, e)| e).collect();
        self.require_disjoint(&ours, &ours, |names| {
            let mut other = dependence::renaming(names);
            let differ = spatial.iter().map(|e| {
                let twin = other.expr(e);
                (*e).clone().not_equal(twin)
            });
            vec![differ.reduce(|a, b| a.or(b)).unwrap_or_else(|| Expr::bool(false))]
        })
    }

    /// What ran before the block and depends on it, or it on that, must not run later now.
    fn keeps_order(&self, nest: &Nest, body: &[Stmt], at: usize) -> Result<()> {
        let ours = self.accesses(nest)?;
        for (k, s) in self.path.iter().enumerate() {
            let (list, split) = match s.kind() {
                StmtKind::Seq(list) => {
                    let next = self.path.get(k + 1);
                    let here = list.iter().position(|x| next.is_some_and(|n| x.ptr_eq(n)));
                    (list.as_slice(), here.unwrap_or(0))
                }
                _ if k + 1 == self.path.len() => (body, at),
                _ => continue,
            };
            let domain = self.domain(k + 1);
            let around = &self.path[..=k];
            let outer: Vec<Expr> =
                around.iter().filter_map(Stmt::loop_var).map(Var::expr).collect();
            let at_once = around.iter().filter(|s| AtOnce::of_loop(s).is_some());
            let at_once: Vec<&Var> = at_once.filter_map(Stmt::loop_var).collect();
            for (j, s) in list.iter().enumerate() {
                if self.path.get(k + 1).is_some_and(|next| next.ptr_eq(s)) {
                    continue;
                }
                let theirs = dependence::accesses(s, &domain)?;
                self.require_disjoint(&ours, &theirs, |names| {
                    let mut rename = dependence::renaming(names);
                    let other: Vec<Expr> = outer.iter().map(|e| rename.expr(e)).collect();
                    // A statement behind the block runs later in the same iteration, too.
                    let later =
                        if j < split { before(&outer, &other) } else { !before(&other, &outer) };
                    let differ = at_once.iter().map(|v| v.expr().not_equal(rename.expr(&v.expr())));
                    vec![differ.fold(later, |all, e| all.or(e))]
                })?;
            }
        }
        Ok(())
    }
}

fn instance_text(witness: &tilewright_polyhedral::Witness, block: &Block, vars: &[Var]) -> String {
    block
        .iters
        .iter()
        .zip(vars)
        .map(|(i, v)| {
            let x = witness.get(v).map_or("?".to_owned(), |x| x.to_string());
            format!("{}={x}", i.var.name())
        })
        .collect::<Vec<_>>()
        .join(", ")
}
