//! Caches with an order of their own: `reindex_cache_read` and `reindex_cache_write`.
//!
//! The cell of such a cache is a function of the block's iteration variables:
//!
//! ```text
//! for i, j: B[i, j] = A[i, j] * 2          reindex_cache_write(B, lambda i, j: (j, i))
//!
//! for i, j: B_shared[j, i] = A[i, j] * 2
//! for i, j: B[i, j] = B_shared[j, i]
//! ```
//!
//! The copy runs for each instance of the block, so that the cell must lie in the buffer for each,
//! and be written for each; what the block does under a condition of its own may not be enough.
//!
//! The block must access the buffer at one cell only, and that cell and the one of the cache must
//! determine each other: the map takes only variables that are in the indices, and sends no two
//! of their values to one cell.

use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use tilewright_analysis::regions::declared_or_inferred;
use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{Subst, accessed, free_vars, walk_block};
use tilewright_ir::{
    Block, Buffer, DType, Error, Expr, Fold, IterKind, IterVar, Range, Region, Result, Stmt,
    StmtKind, TensorFunc, Var, Visit,
};
use tilewright_polyhedral::Engine;

use crate::argument::OptionalName;
use crate::buffer_arg::{BufferArg, Side};
use crate::cache::{must_write, read_place, scope_or_own, write_place};
use crate::copying::{
    Change, InsertionPoint, Redirect, Redirected, cell_block, compact_in, name_in,
};
use crate::cursor::{BlockCursor, loop_ranges};
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::{BlockRef, Lambda};
use tilewright_analysis::footprint::{Footprint, known_around, uses_pointer, view_of};
use tilewright_layout::index_map::IndexMap;
use tilewright_transform::names::fresh_block_name;

primitives! {
    /// Copies the part of a buffer that a block reads into a cache that is indexed by a map of the
    /// block's iteration variables. Returns the block that copies.
    ///
    /// # Errors
    /// Those of [`Schedule::cache_read`](crate::Schedule::cache_read), and `Refused` where the
    /// block reads more than one cell, or the map does not fit the cells one to one.
    reindex_cache_read(
        block: &BlockRef,
        [into] buffer "read_buffer_index" "buffer" "buffer_index": BufferArg,
        [into] storage_scope: OptionalName = OptionalName::default(),
        index_map: &Lambda
    ) -> BlockRef, edit |f| reindex(f, block, Side::Read, &buffer, storage_scope.get(), index_map);

    /// Lets a block write a cache that is indexed by a map of its iteration variables, and copies
    /// that to the buffer. Returns the block that copies.
    ///
    /// # Errors
    /// Those of [`Schedule::cache_write`](crate::Schedule::cache_write), and `Refused` where the
    /// block writes more than one cell, or the map does not fit the cells one to one.
    reindex_cache_write(
        block: &BlockRef,
        [into] buffer "write_buffer_index" "buffer" "buffer_index": BufferArg,
        [into] storage_scope: OptionalName = OptionalName::default(),
        index_map: &Lambda
    ) -> BlockRef, edit |f| reindex(f, block, Side::Write, &buffer, storage_scope.get(), index_map);
}

fn reindex(
    func: &TensorFunc,
    block: &BlockRef,
    side: Side,
    which: &BufferArg,
    storage_scope: Option<&str>,
    index_map: &Lambda,
) -> Result<Edited<BlockRef>> {
    let storage_scope = &*scope_or_own(func, block, which, side, storage_scope)?;
    let (cursor, buffer, place) = match side {
        Side::Read => {
            let p = read_place(func, block, which, std::slice::from_ref(block))?;
            (p.at, p.buffer, p.place)
        }
        Side::Write => {
            let p = write_place(func, block, which, &[])?;
            (p.at, p.buffer, p.place)
        }
    };
    let b = &*cursor.block;
    let at = one_cell(&cursor, &buffer, side)?;
    let takes_empty = func.takes_empty();
    each_instance(&cursor, &buffer, side, (&at, takes_empty))?;
    if uses_pointer(&b.body, &buffer) || view_of(&func.body, &buffer).is_some() {
        return Err(Error::refused(format!(
            "the memory of `{buffer}` is also used through a pointer or a view"
        )));
    }
    let indices = bind(b, index_map)?;
    let shape = cache_shape(&cursor, &buffer, &at, &indices)?;
    let name = name_in(&buffer, storage_scope);
    let cache = compact_in(&buffer, &name, storage_scope, shape);
    let cache = cache.derive(|d| d.axis_separators.clear());
    let name = fresh_block_name(func, &name);
    let (from, to) = match side {
        Side::Read => ((&buffer, &at[..]), (&cache, &indices[..])),
        Side::Write => ((&cache, &indices[..]), (&buffer, &at[..])),
    };
    let copy = copy_block(&cursor, &place, &at, from, to, &name)?;
    let redirect = Redirect { from: &buffer, to: &cache, place: Redirected::Cell(&indices) };
    let change = Change {
        scope: cursor.scope(),
        allocs: vec![cache.clone()],
        redirect: vec![(cursor.stmt.clone(), redirect)],
        insert: vec![(place, copy)],
        ..Change::default()
    };
    let new = BlockRef { func: block.func.clone(), name };
    Ok((change.apply(func), new))
}

/// The one cell that a block accesses, in terms of its iteration variables.
fn one_cell(cursor: &BlockCursor, buffer: &Buffer, side: Side) -> Result<Vec<Expr>> {
    let (reads, writes) = declared_or_inferred(&cursor.block);
    let list = if side == Side::Read { reads } else { writes };
    let region = list.into_iter().find(|r| r.buffer == *buffer);
    let region = region.filter(|r| r.ranges.iter().all(Range::is_point));
    let at: Option<Vec<Expr>> = region.map(|r| r.ranges.into_iter().map(|r| r.min).collect());
    at.filter(|at| {
        let mut seen = Seen { buffer, at, other: false };
        walk_block(&mut seen, &cursor.block);
        !seen.other
    })
    .ok_or_else(|| cursor.refuse(format!("does not access a single cell of `{buffer}`")))
}

/// Checks that the copy, which runs for each instance of the block, may access the buffer for each:
/// where the block reads its cell under a condition only, the cell must lie in the buffer
/// otherwise too; where it writes under a condition only, the cache holds nothing otherwise. What is reduced over nothing
/// may be what the reduction begins with: then the cache holds that.
fn each_instance(
    cursor: &BlockCursor,
    buffer: &Buffer,
    side: Side,
    (at, takes_empty): (&[Expr], bool),
) -> Result<()> {
    let b = &*cursor.block;
    let known = [known_around(&cursor.around), known_around(std::slice::from_ref(&cursor.stmt))];
    let known = known.concat();
    let footprint = Footprint::collect(&b.body, buffer);
    if side == Side::Write {
        // What is written through a pointer is as the block declares it.
        let opaque = !accessed(&b.body).1.contains(buffer);
        if opaque {
            return Ok(());
        }
        must_write(b, &footprint.writes, &Region::cell(buffer, at), &known)?;
        // Not by the loops around: inside of them there is something to reduce.
        let domain = Engine::new().domain();
        let needs_some = b.init.is_some() && !takes_empty;
        for (iter, _) in cursor.of_kind(IterKind::Reduce).filter(|_| needs_some) {
            if !domain.proves(&iter.domain.extent.clone().greater(0)) {
                let why = "may have nothing to reduce, and then its cache holds nothing";
                return Err(cursor.refuse(why));
            }
        }
        return Ok(());
    }
    if footprint.reads.iter().any(|c| c.guards.is_empty() && c.vars.is_empty()) {
        return Ok(());
    }
    let domain = Engine::new().domain_of(&[], &known);
    for (i, extent) in at.iter().zip(&buffer.shape) {
        let end = extent.clone().cast(i.dtype());
        if !domain.proves(&i.clone().greater_equal(0)) || !domain.proves(&i.clone().less(end)) {
            let cell = Expr::load(buffer, at.to_vec());
            return Err(cursor.refuse(format!(
                "reads `{cell}` under a condition, and its copy might read out of range"
            )));
        }
    }
    Ok(())
}

/// Whether an access is at other indices.
struct Seen<'a> {
    buffer: &'a Buffer,
    at: &'a [Expr],
    other: bool,
}

impl Visit for Seen<'_> {
    fn access(&mut self, buffer: &Buffer, indices: &[Expr], _: bool) {
        let same = indices.iter().zip(self.at).all(|(a, b)| same_expr(a, b));
        self.other |= buffer == self.buffer && !same;
    }
    /// Inside another block the indices are in other variables.
    fn block(&mut self, _: &Block) {
        self.other = true;
    }
}

/// The map over the block's iteration variables.
fn bind(b: &Block, map: &Lambda) -> Result<Vec<Expr>> {
    let types: Vec<DType> = b.iters.iter().map(|i| i.var.dtype()).collect();
    let map = IndexMap::bind(map, &types)?;
    if map.separators.is_empty() {
        let vars: Vec<Expr> = b.iters.iter().map(|i| i.var.expr()).collect();
        Ok(map.apply(&vars))
    } else {
        Err(Error::refused("the cache has no axis separators"))
    }
}

/// The shape of the cache; refuses a map that does not fit the cells one to one.
fn cache_shape(
    cursor: &BlockCursor,
    buffer: &Buffer,
    at: &[Expr],
    indices: &[Expr],
) -> Result<Vec<Expr>> {
    let used = |i: &&IterVar| at.iter().any(|e| e.mentions(&i.var));
    let used: Vec<&IterVar> = cursor.block.iters.iter().filter(used).collect();
    for e in indices {
        if let Some(v) = free_vars(e).iter().find(|v| !used.iter().any(|i| i.var == **v)) {
            return Err(Error::refused(format!(
                "the map uses `{v}`, on which the cell of `{buffer}` does not depend"
            )));
        }
    }
    let engine = Engine::new();
    let ranges: Vec<(Var, Range)> =
        used.iter().map(|i| (i.var.clone(), i.domain.clone())).collect();
    let domain = engine.domain_of(&ranges, &[]);
    let map = domain.map(indices)?;
    // What is one cell of the buffer need not be told apart.
    if let Some(c) = map.collision()? {
        let differ = value_at(&c.first, at)
            .iter()
            .zip(&value_at(&c.second, at))
            .any(|(a, b)| !same_expr(a, b));
        let why = if differ {
            "the map sends two cells of the buffer to one of the cache"
        } else {
            "the map is not known to tell the cells of the buffer apart"
        };
        return Err(Error::refused(why).note(c.to_string()));
    }
    // Two instances that share a cell of the buffer would have two in the cache.
    if let Some(c) = domain.map(at)?.collision()? {
        let name = &buffer.name;
        let why = format!("accesses one cell of `{name}` for several values of its variables");
        return Err(cursor.refuse(why).note(c.to_string()));
    }
    for e in indices {
        if !domain.proves(&e.clone().greater_equal(0)) {
            return Err(Error::refused(format!("the index `{e}` may be negative")));
        }
    }
    Ok(map.physical_shape()?)
}

fn value_at(w: &tilewright_polyhedral::Witness, at: &[Expr]) -> Vec<Expr> {
    let mut subst =
        Subst::vars(w.values.iter().map(|(v, x)| (v.clone(), Expr::int(*x, v.dtype()))));
    at.iter().map(|e| subst.expr(e)).collect::<Vec<_>>()
}

/// The block that copies one cell for each instance of the block that there is at its place.
fn copy_block(
    cursor: &BlockCursor,
    place: &InsertionPoint,
    at: &[Expr],
    from: (&Buffer, &[Expr]),
    to: (&Buffer, &[Expr]),
    name: &Arc<str>,
) -> Result<Stmt> {
    let inner = &cursor.around[place.around.len().min(cursor.around.len())..];
    let loops = loop_ranges(inner);
    let needed: HashSet<Var> = cursor
        .pairs()
        .filter(|(i, _)| at.iter().any(|e| e.mentions(&i.var)))
        .flat_map(|(_, e)| free_vars(e))
        .collect();
    if inner.iter().any(|s| matches!(s.kind(), StmtKind::If { .. } | StmtKind::Let { .. })) {
        let why = "runs under a condition or a binding that its copy would not have";
        return Err(cursor.refuse(why));
    }
    if let Some(v) = free_vars(&cursor.predicate).into_iter().find(|v| is_extra(v, &loops, &needed))
    {
        return Err(Error::refused(format!(
            "the predicate of `{}` depends on the loop `{v}`, over which the copy does not run",
            cursor.block.name
        )));
    }
    let mut outside = Subst::default();
    let mut inside = Subst::default();
    let mut new_loops = Vec::new();
    for (v, r) in loops.iter().filter(|(v, _)| needed.contains(v)) {
        if free_vars(&r.extent)
            .iter()
            .chain(&free_vars(&r.min))
            .any(|v| is_extra(v, &loops, &needed))
        {
            return Err(Error::refused(format!(
                "the loop `{v}` depends on a loop over which the copy does not run"
            )));
        }
        let fresh = v.fresh();
        let range = Range { min: outside.expr(&r.min), extent: outside.expr(&r.extent) };
        outside.vars.insert(v.clone(), fresh.expr());
        new_loops.push((fresh, range));
    }
    let mut iters = Vec::new();
    let mut new_bindings = Vec::new();
    for (i, e) in cursor.pairs().filter(|(i, _)| at.iter().any(|e| e.mentions(&i.var))) {
        let var = i.var.fresh();
        inside.vars.insert(i.var.clone(), var.expr());
        iters.push(IterVar::spatial(&var, i.domain.clone()));
        new_bindings.push(outside.expr(e));
    }
    let [at, there] =
        [from.1, to.1].map(|at| at.iter().map(|e| inside.expr(e)).collect::<Vec<_>>());
    let value = Expr::load(from.0, at.clone());
    let block = cell_block(name, iters, (from.0, &at), (to.0, there), value);
    let body = Stmt::block(new_bindings, outside.expr(&cursor.predicate), block);
    Ok(Stmt::nest(new_loops.into_iter(), body))
}

/// Whether a variable is that of a loop over which a copy does not run.
fn is_extra(v: &Var, loops: &[(Var, Range)], needed: &HashSet<Var>) -> bool {
    loops.iter().any(|(x, _)| x == v) && !needed.contains(v)
}
