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

use tilewright_analysis::regions::declared_or_inferred;
use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{Subst, accessed, free_vars, walk_block};
use tilewright_ir::{
    Block, Buffer, DType, Error, Expr, Fold, IterKind, IterVar, Range, Region, Result, Stmt,
    StmtKind, TensorFunc, Var, Visit,
};
use tilewright_sets::Engine;

use crate::argument::OptionalName;
use crate::buffer_arg::{BufferArg, Side};
use crate::cache::{must_write, read_place, scope_or_own, write_place};
use crate::copying::{Change, InsertionPoint};
use crate::cursor::{Cursor, as_loop, fresh_block_name};
use crate::index_map::IndexMap;
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::{BlockRef, Lambda};
use tilewright_analysis::footprint::{Footprint, known_around, uses_pointer, view_of};

primitives! {
    /// Copies what a block reads of a buffer into a cache that is indexed by a map of the block's
    /// iteration variables. Returns the block that copies.
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
    let (cursor, b, buffer, place) = match side {
        Side::Read => {
            let p = read_place(func, block, which, std::slice::from_ref(block))?;
            (p.cursor, p.block, p.buffer, p.place)
        }
        Side::Write => {
            let p = write_place(func, block, which, &[])?;
            (p.cursor, p.block, p.buffer, p.place)
        }
    };
    let span = cursor.stmt.span();
    let at = one_cell(&b, &buffer, side).map_err(|e| e.at(span))?;
    each_instance(&cursor, &b, &buffer, side, &at).map_err(|e| e.at(span))?;
    if uses_pointer(&b.body, &buffer) || view_of(&func.body, &buffer).is_some() {
        return Err(Error::refused(format!(
            "the memory of `{}` is also used through a pointer or a view",
            buffer.name
        ))
        .at(span));
    }
    let indices = bind(&b, index_map).map_err(|e| e.at(span))?;
    let shape = cache_shape(&b, &buffer, &at, &indices).map_err(|e| e.at(span))?;
    let name = format!("{}_{}", buffer.name, storage_scope.replace('.', "_"));
    let cache = buffer.derive_storage(|d| {
        d.name = name.as_str().into();
        d.scope = storage_scope.into();
        d.shape = shape;
        d.strides = Vec::new();
        d.elem_offset = None;
        d.offset_factor = 0;
        d.axis_separators = Vec::new();
    });
    let name = fresh_block_name(func, &name);
    let (from, to) = match side {
        Side::Read => ((&buffer, &at[..]), (&cache, &indices[..])),
        Side::Write => ((&cache, &indices[..]), (&buffer, &at[..])),
    };
    let copy = copy_block(&cursor, &b, &place, &at, from, to, &name).map_err(|e| e.at(span))?;
    let mut to_cache = ToCache { from: &buffer, to: &cache, indices: &indices };
    let scope = cursor.scope().cloned();
    let change = Change {
        scope: scope.as_ref(),
        allocs: vec![cache.clone()],
        swap: vec![(cursor.stmt.clone(), to_cache.stmt(&cursor.stmt))],
        insert: vec![(place, copy)],
        ..Change::default()
    };
    let new = BlockRef { func: block.func.clone(), name };
    Ok((change.apply(func), new))
}

/// The one cell that a block accesses, in terms of its iteration variables.
fn one_cell(b: &Block, buffer: &Buffer, side: Side) -> Result<Vec<Expr>> {
    let (reads, writes) = declared_or_inferred(b);
    let list = match side {
        Side::Read => reads,
        Side::Write => writes,
    };
    let region = list.into_iter().find(|r| r.buffer == *buffer);
    let several = || {
        Error::refused(format!(
            "the block `{}` does not access a single cell of `{}`",
            b.name, buffer.name
        ))
    };
    let region = region.ok_or_else(several)?;
    if !region.ranges.iter().all(Range::is_point) {
        return Err(several());
    }
    let at: Vec<Expr> = region.ranges.into_iter().map(|r| r.min).collect();
    let mut seen = Seen { buffer, at: &at, other: false };
    walk_block(&mut seen, b);
    if seen.other { Err(several()) } else { Ok(at) }
}

/// Checks that the copy, which runs for each instance of the block, may access the buffer for each:
/// where the block reads its cell under a condition only, the cell must lie in the buffer
/// otherwise too; where it writes under a condition only, the cache holds nothing otherwise.
fn each_instance(
    cursor: &Cursor,
    b: &Block,
    buffer: &Buffer,
    side: Side,
    at: &[Expr],
) -> Result<()> {
    let known = [known_around(&cursor.around), known_around(std::slice::from_ref(&cursor.stmt))];
    let known = known.concat();
    let footprint = Footprint::of(&b.body, buffer);
    if side == Side::Write {
        let ranges = at.iter().cloned().map(Range::point).collect();
        let cell = Region { buffer: buffer.clone(), ranges };
        // What is written through a pointer is as the block declares it.
        let opaque = !accessed(&b.body).1.contains(buffer);
        if opaque {
            return Ok(());
        }
        must_write(b, &footprint.writes, &cell, &known)?;
        let reduced = b.iters.iter().filter(|i| i.kind == IterKind::Reduce);
        // Not by the loops around: inside of them there is something to reduce.
        let domain = Engine::new()?.domain();
        for iter in reduced.filter(|_| b.init.is_some()) {
            if !domain.proves(&iter.domain.extent.clone().greater(0)) {
                return Err(Error::refused(format!(
                    "the block `{}` may have nothing to reduce, and then its cache holds nothing",
                    b.name
                )));
            }
        }
        return Ok(());
    }
    if footprint.reads.iter().any(|c| c.guards.is_empty() && c.vars.is_empty()) {
        return Ok(());
    }
    let domain = Engine::new()?.domain_of(&[], &known);
    for (i, extent) in at.iter().zip(&buffer.shape) {
        let end = extent.clone().cast(i.dtype());
        if !domain.proves(&i.clone().greater_equal(0)) || !domain.proves(&i.clone().less(end)) {
            let cell = Expr::load(buffer, at.to_vec());
            return Err(Error::refused(format!(
                "the block `{}` reads `{cell}` under a condition, and its copy might read out of \
                 range",
                b.name
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
    match map.separators.is_empty() {
        true => {
            let vars: Vec<Expr> = b.iters.iter().map(|i| i.var.expr()).collect();
            Ok(map.apply(&vars))
        }
        false => Err(Error::refused("the cache has no axis separators")),
    }
}

/// The shape of the cache; refuses a map that does not fit the cells one to one.
fn cache_shape(b: &Block, buffer: &Buffer, at: &[Expr], indices: &[Expr]) -> Result<Vec<Expr>> {
    let used: Vec<&IterVar> =
        b.iters.iter().filter(|i| at.iter().any(|e| free_vars(e).contains(&i.var))).collect();
    for e in indices {
        if let Some(v) = free_vars(e).iter().find(|v| !used.iter().any(|i| i.var == **v)) {
            return Err(Error::refused(format!(
                "the map uses `{}`, on which the cell of `{}` does not depend",
                v.name(),
                buffer.name
            )));
        }
    }
    let engine = Engine::new()?;
    let ranges: Vec<(Var, Range)> =
        used.iter().map(|i| (i.var.clone(), i.domain.clone())).collect();
    let domain = engine.domain_of(&ranges, &[]);
    let map = domain.map(indices)?;
    // What is one cell of the buffer need not be told apart.
    if let Some(c) = map.collision()? {
        let value = |w: &tilewright_sets::Witness| {
            let mut subst =
                Subst::vars(w.values.iter().map(|(v, x)| (v.clone(), Expr::int(*x, v.dtype()))));
            at.iter().map(|e| subst.expr(e)).collect::<Vec<_>>()
        };
        let differ = value(&c.first).iter().zip(&value(&c.second)).any(|(a, b)| !same_expr(a, b));
        let why = match differ {
            true => "the map sends two cells of the buffer to one of the cache",
            false => "the map is not known to tell the cells of the buffer apart",
        };
        return Err(Error::refused(why).note(c.to_string()));
    }
    // Two instances that share a cell of the buffer would have two in the cache.
    if let Some(c) = domain.map(at)?.collision()? {
        return Err(Error::refused(format!(
            "the block `{}` accesses one cell of `{}` for several values of its variables",
            b.name, buffer.name
        ))
        .note(c.to_string()));
    }
    for e in indices {
        if !domain.proves(&e.clone().greater_equal(0)) {
            return Err(Error::refused(format!("the index `{e}` may be negative")));
        }
    }
    Ok(map.physical_shape()?)
}

/// The block that copies one cell for each instance of the block that there is at its place.
fn copy_block(
    cursor: &Cursor,
    b: &Block,
    place: &InsertionPoint,
    at: &[Expr],
    from: (&Buffer, &[Expr]),
    to: (&Buffer, &[Expr]),
    name: &str,
) -> Result<Stmt> {
    let StmtKind::Block { bindings, predicate, .. } = cursor.stmt.kind() else {
        return Err(Error::internal("a block cursor is no block"));
    };
    let inner = &cursor.around[place.around.len().min(cursor.around.len())..];
    let loops: Vec<(&Var, &Range)> =
        inner.iter().filter_map(as_loop).map(|(v, r, _)| (v, r)).collect();
    let used = |i: &IterVar| at.iter().any(|e| free_vars(e).contains(&i.var));
    let mut needed: Vec<Var> = Vec::new();
    for (i, e) in b.iters.iter().zip(bindings) {
        if used(i) {
            needed.extend(free_vars(e));
        }
    }
    let extra = |v: &Var| loops.iter().any(|(x, _)| *x == v) && !needed.contains(v);
    if inner.iter().any(|s| matches!(s.kind(), StmtKind::If { .. } | StmtKind::Let { .. })) {
        return Err(Error::refused(format!(
            "the block `{}` runs under a condition or a binding that its copy would not have",
            b.name
        )));
    }
    if let Some(v) = free_vars(predicate).into_iter().find(extra) {
        return Err(Error::refused(format!(
            "the predicate of `{}` depends on the loop `{}`, over which the copy does not run",
            b.name,
            v.name()
        )));
    }
    let mut outside = Subst::default();
    let mut inside = Subst::default();
    let mut new_loops = Vec::new();
    for (v, r) in loops.iter().filter(|(v, _)| needed.contains(v)) {
        if free_vars(&r.extent).iter().chain(&free_vars(&r.min)).any(extra) {
            return Err(Error::refused(format!(
                "the loop `{}` depends on a loop over which the copy does not run",
                v.name()
            )));
        }
        let fresh = v.fresh();
        let range = Range { min: outside.expr(&r.min), extent: outside.expr(&r.extent) };
        outside.vars.insert((*v).clone(), fresh.expr());
        new_loops.push((fresh, range));
    }
    let mut iters = Vec::new();
    let mut new_bindings = Vec::new();
    for (i, e) in b.iters.iter().zip(bindings).filter(|(i, _)| used(i)) {
        let var = i.var.fresh();
        inside.vars.insert(i.var.clone(), var.expr());
        iters.push(IterVar::spatial(&var, i.domain.clone()));
        new_bindings.push(outside.expr(e));
    }
    let mut own = |at: &[Expr]| at.iter().map(|e| inside.expr(e)).collect::<Vec<_>>();
    let (at, there) = (own(from.1), own(to.1));
    let block = Block {
        iters,
        reads: Some(vec![Region::cell(from.0, &at)]),
        writes: Some(vec![Region::cell(to.0, &there)]),
        ..Block::new(name, Stmt::store(to.0, there, Expr::load(from.0, at)))
    };
    let body = Stmt::block(new_bindings, outside.expr(predicate), block);
    Ok(Stmt::nest(new_loops.into_iter(), body))
}

/// Accesses of the buffer, all at one cell, go to the cell of the cache.
struct ToCache<'a> {
    from: &'a Buffer,
    to: &'a Buffer,
    indices: &'a [Expr],
}

impl Fold for ToCache<'_> {
    fn access(&mut self, b: &Buffer, _: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        (b == self.from).then(|| (self.to.clone(), self.indices.to_vec()))
    }
    fn block(&mut self, b: &std::sync::Arc<Block>) -> std::sync::Arc<Block> {
        let mut new = (**b).clone();
        for r in [&mut new.reads, &mut new.writes].into_iter().flatten().flatten() {
            if r.buffer == *self.from {
                r.buffer = self.to.clone();
                r.ranges = self.indices.iter().cloned().map(Range::point).collect();
            }
        }
        tilewright_ir::visit::fold_block_children(self, &std::sync::Arc::new(new))
    }
}
