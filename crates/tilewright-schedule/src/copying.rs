//! Copies of buffers in a function: the block that copies, and accesses that go to the copy.
//!
//! A [`Copying`] is a region of a buffer, a buffer that holds it, and the loops that copy between
//! the two. A [`Change`] redirects statements, puts copies before or after others, and allocates
//! in the scope.

use std::sync::Arc;

use tilewright_analysis::regions::{infer, infer_within};
use tilewright_ir::equal::same_expr;
use tilewright_ir::index::{Ranges, simplify};
use tilewright_ir::visit::{fold_block_children, fold_stmt_children};
use tilewright_ir::{
    Block, Buffer, Error, Expr, ExprKind, Fold, IterVar, Range, Region, Result, Stmt, TensorFunc,
    Var,
};

use crate::cursor::{as_block, as_loop, find, in_scope, with_block};
use tilewright_analysis::footprint::{uses_pointer, view_of};

/// A copy to be inserted.
pub(crate) struct InsertionPoint {
    pub node: Stmt,
    pub before: bool,
    /// What is around the node, outermost first.
    pub around: Vec<Stmt>,
}

impl InsertionPoint {
    /// Whether no loop of the scope is around it.
    pub fn in_scope_directly(&self) -> bool {
        in_scope(&self.around).iter().all(|s| as_loop(s).is_none())
    }
}

/// Where accesses go that are redirected.
#[derive(Clone, Copy)]
pub(crate) enum Redirected<'a> {
    /// To their indices less these.
    Less(&'a [Expr]),
    /// All to one cell.
    Cell(&'a [Expr]),
}

/// Accesses of `from` go to `to`.
pub(crate) struct Redirect<'a> {
    pub from: &'a Buffer,
    pub to: &'a Buffer,
    pub place: Redirected<'a>,
}

impl Redirect<'_> {
    fn moved(&self, ranges: impl Iterator<Item = Range>) -> Vec<Range> {
        match self.place {
            Redirected::Cell(at) => at.iter().cloned().map(Range::point).collect(),
            Redirected::Less(offsets) => ranges
                .zip(offsets)
                .map(|(r, offset)| match offset.as_int() {
                    Some(0) => r,
                    _ => {
                        let min = r.min.clone() - &offset.clone().cast(r.min.dtype().scalar());
                        Range { min: simplify(&min, &Ranges::default()), extent: r.extent }
                    }
                })
                .collect(),
        }
    }

    fn region(&self, r: &Region) -> Region {
        if r.buffer == *self.from {
            let ranges = self.moved(r.ranges.iter().cloned());
            Region { buffer: self.to.clone(), ranges }
        } else {
            r.clone()
        }
    }
}

impl Fold for Redirect<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Var(v) if *v == self.from.data => self.to.data.expr(),
            _ => tilewright_ir::visit::fold_expr_children(self, e),
        }
    }

    fn access(&mut self, b: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        (b == self.from).then(|| {
            let indices: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect();
            let moved = self.moved(indices.into_iter().map(Range::point));
            (self.to.clone(), moved.into_iter().map(|r| r.min).collect())
        })
    }

    fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
        let mut new = (**b).clone();
        for list in [&mut new.reads, &mut new.writes].into_iter().flatten() {
            *list = list.iter().map(|r| self.region(r)).collect();
        }
        for m in &mut new.matches {
            m.source = self.region(&m.source);
        }
        fold_block_children(self, &Arc::new(new))
    }
}

/// One change of a function: statements redirected to a copy or swapped for others, copies
/// inserted, buffers allocated in the scope (of a block, or of the whole function).
#[derive(Default)]
pub(crate) struct Change<'a> {
    pub scope: Option<&'a Stmt>,
    pub allocs: Vec<Buffer>,
    pub swap: Vec<(Stmt, Stmt)>,
    pub redirect: Vec<(Stmt, Redirect<'a>)>,
    pub insert: Vec<(InsertionPoint, Stmt)>,
}

impl Change<'_> {
    pub fn apply(mut self, func: &TensorFunc) -> TensorFunc {
        let body = self.stmt(&func.body);
        let new = TensorFunc { body, ..func.clone() };
        match self.scope {
            Some(_) => new,
            None if self.allocs.is_empty() => new,
            None => new.with_root(self.allocs, new.body.clone()),
        }
    }
}

impl Fold for Change<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let mut out = match self.redirect.iter_mut().find(|(node, _)| node.ptr_eq(s)) {
            Some((_, redirect)) => redirect.stmt(s),
            None => match self.swap.iter().find(|(node, _)| node.ptr_eq(s)) {
                Some((_, new)) => new.clone(),
                None => fold_stmt_children(self, s),
            },
        };
        if self.scope.is_some_and(|scope| scope.ptr_eq(s))
            && let Some(b) = as_block(&out)
        {
            let mut b = (**b).clone();
            b.allocs.extend(self.allocs.iter().cloned());
            out = with_block(&out, b);
        }
        for (place, copy) in self.insert.iter().filter(|(p, _)| p.node.ptr_eq(s)) {
            out = if place.before {
                Stmt::seq([copy.clone(), out])
            } else {
                Stmt::seq([out, copy.clone()])
            };
        }
        out
    }
}

/// A region with bounds of the types of its buffer's extents, cut to the buffer where both are
/// known; the buffer's own extent stands for itself. Second, the conditions without which a cell
/// of the region might lie outside the buffer, as functions of a cell.
pub(crate) fn fit(region: &Region, known: &[Expr]) -> (Region, Vec<(usize, Bound)>) {
    let mut bounds = Vec::new();
    let ranges = region
        .ranges
        .iter()
        .zip(&region.buffer.shape)
        .enumerate()
        .map(|(k, (r, extent))| {
            let dtype = extent.dtype();
            let min = r.min.clone().cast(dtype);
            let length = r.extent.clone().cast(dtype);
            if min.as_int() == Some(0) && same_expr(&length, extent) {
                return Range { min, extent: extent.clone() };
            }
            if let (Some(a), Some(n), Some(e)) = (min.as_int(), length.as_int(), extent.as_int()) {
                let (first, end) = (a.max(0), a.saturating_add(n).min(e));
                return Range {
                    min: Expr::int(first, dtype),
                    extent: Expr::int((end - first).max(0), dtype),
                };
            }
            let domain = tilewright_polyhedral::Engine::new().domain_of(&[], known);
            if !domain.proves(&min.clone().greater_equal(0)) {
                bounds.push((k, Bound::Low));
            }
            if !domain.proves(&(min.clone() + &length).less_equal(extent)) {
                bounds.push((k, Bound::High));
            }
            Range { min, extent: length }
        })
        .collect();
    (Region { buffer: region.buffer.clone(), ranges }, bounds)
}

/// A side of a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Low,
    High,
}

/// A condition, and those without which an index along an axis might leave an extent.
pub(crate) fn within(
    condition: Expr,
    bounds: &[(usize, Bound)],
    axis: usize,
    at: &Expr,
    extent: &Expr,
) -> Expr {
    let of_axis = bounds.iter().filter(|(k, _)| *k == axis);
    of_axis.fold(condition, |all, (_, bound)| {
        all.and(match bound {
            Bound::Low => at.clone().greater_equal(0),
            Bound::High => at.clone().less(extent),
        })
    })
}

/// The cache of a region and the block that copies.
pub(crate) struct Copying {
    pub cache: Buffer,
    /// Taken from the indices of the buffer for those of the cache.
    pub offsets: Vec<Expr>,
    pub region: Region,
    pub bounds: Vec<(usize, Bound)>,
    /// The cache has the size of the region, not that of the buffer.
    pub cropped: bool,
}

/// A buffer like another one, of a name and a shape, in memory of its own that has no gaps.
pub(crate) fn compact(buffer: &Buffer, name: &str, shape: Vec<Expr>) -> Buffer {
    compact_in(buffer, name, &buffer.scope, shape)
}

/// The same in a storage scope.
pub(crate) fn compact_in(buffer: &Buffer, name: &str, scope: &str, shape: Vec<Expr>) -> Buffer {
    buffer.derive_storage(|d| {
        (d.name, d.scope, d.shape) = (name.into(), scope.into(), shape);
        (d.strides, d.elem_offset, d.offset_factor) = (Vec::new(), None, 0);
    })
}

/// The name of a cache, and of the block that fills it.
pub(crate) fn name_in(buffer: &Buffer, storage_scope: &str) -> String {
    format!("{buffer}_{}", storage_scope.replace('.', "_"))
}

impl Copying {
    pub fn new(region: &Region, storage_scope: &str, cropped: bool, known: &[Expr]) -> Copying {
        let (region, bounds) = fit(region, known);
        let shape = if cropped {
            region.ranges.iter().map(|r| r.extent.clone()).collect()
        } else {
            region.buffer.shape.clone()
        };
        let name = name_in(&region.buffer, storage_scope);
        let cache = compact_in(&region.buffer, &name, storage_scope, shape);
        let offsets = region
            .ranges
            .iter()
            .map(|r| if cropped { r.min.clone() } else { Expr::int(0, r.min.dtype()) })
            .collect();
        Copying { cache, offsets, region, bounds, cropped }
    }

    /// The block that copies, in loops over the region.
    pub fn block(&self, name: &Arc<str>, into_cache: bool) -> Stmt {
        let cropped = self.cropped;
        let mut loops = Vec::new();
        let mut iters = Vec::new();
        let mut bindings = Vec::new();
        let mut predicate = Expr::bool(true);
        let (mut outside, mut inside) = (Vec::new(), Vec::new());
        for (k, (r, full)) in self.region.ranges.iter().zip(&self.region.buffer.shape).enumerate() {
            let dtype = r.extent.dtype();
            let ax = Var::new(format!("ax{k}"), dtype);
            let v = Var::new(format!("v{k}"), dtype);
            let extent = if cropped { &r.extent } else { full };
            iters.push(IterVar::spatial(&v, Range::upto(extent.clone())));
            let cell = simplify(&(r.min.clone() + &ax), &Ranges::default());
            bindings.push(if cropped { ax.expr() } else { cell.clone() });
            outside.push(if cropped {
                simplify(&(r.min.clone() + &v), &Ranges::default())
            } else {
                v.expr()
            });
            inside.push(v.expr());
            predicate = within(predicate, &self.bounds, k, &cell, full);
            loops.push((ax, Range::upto(r.extent.clone())));
        }
        let (buffer, cache) = ((&self.region.buffer, outside), (&self.cache, inside));
        let (from, to) = if into_cache { (buffer, cache) } else { (cache, buffer) };
        let value = Expr::load(from.0, from.1.clone());
        let block = cell_block(name, iters, (from.0, &from.1), to, value);
        Stmt::nest(loops.into_iter(), Stmt::block(bindings, predicate, block))
    }

    /// Whether a cell lies elsewhere in the cache than in the buffer.
    fn is_part(&self) -> bool {
        self.offsets.iter().any(|o| o.as_int() != Some(0))
            || !self.cache.shape.iter().zip(&self.region.buffer.shape).all(|(a, b)| same_expr(a, b))
    }

    /// Refuses where code uses the pointer of a buffer whose cache is only a part of it.
    pub fn check_pointers(&self, func: &TensorFunc, nodes: &[Stmt]) -> Result<()> {
        let buffer = &self.region.buffer;
        if let Some(view) = view_of(&func.body, buffer) {
            return Err(Error::refused(format!(
                "`{view}` is a view of the memory of `{buffer}`, which a cache would not serve"
            )));
        }
        for s in nodes {
            let strided = find(s, |s| {
                as_block(s).is_some_and(|b| {
                    b.matches
                        .iter()
                        .any(|m| m.source.buffer == *buffer && !m.buffer.strides.is_empty())
                })
            });
            if self.is_part() && (uses_pointer(s, buffer) || !strided.is_empty()) {
                return Err(Error::refused(format!(
                    "the block uses the pointer or the strides of `{buffer}`, and its cache would \
                     be smaller"
                ))
                .at(s.span()));
            }
        }
        Ok(())
    }
}

/// A block that stores a value, made of one cell, in another cell.
pub(crate) fn cell_block(
    name: &Arc<str>,
    iters: Vec<IterVar>,
    from: (&Buffer, &[Expr]),
    (to, there): (&Buffer, Vec<Expr>),
    value: Expr,
) -> Block {
    Block {
        iters,
        reads: Some(vec![Region::cell(from.0, from.1)]),
        writes: Some(vec![Region::cell(to, &there)]),
        ..Block::new(name.clone(), Stmt::store(to, there, value))
    }
}

/// The box that a statement reads, or writes, of a buffer; the whole buffer where it cannot be
/// said in terms of what is defined outside. Along an axis where memory decides, it is the whole
/// axis: the statement may change that memory, or read it under a condition only. `around` are the statements
/// around it, outermost first.
pub(crate) fn hull(s: &Stmt, buffer: &Buffer, write: bool, around: &[Stmt]) -> Option<Region> {
    let (reads, writes) = infer_within(&Block::new("", s.clone()), around);
    let list = if write { writes } else { reads };
    let mut found = list.into_iter().find(|r| r.buffer == *buffer)?;
    for (range, extent) in found.ranges.iter_mut().zip(&buffer.shape) {
        if range.min.effects().loads || range.extent.effects().loads {
            *range = Range::upto(extent.clone());
        }
    }
    Some(found)
}

/// One box around several of a buffer.
pub(crate) fn join(mut regions: Vec<Region>) -> Option<Region> {
    if regions.len() < 2 {
        return regions.pop();
    }
    // The inference joins the accesses of a block, so it is asked about a block that has them all.
    let whole = Region::whole(&regions[0].buffer);
    let list = regions.into_iter().map(|r| {
        let empty = Block::new("", Stmt::nop());
        let b = Block { reads: Some(vec![r]), writes: Some(Vec::new()), ..empty };
        Stmt::block(Vec::new(), Expr::bool(true), b)
    });
    let block = Block::new("", Stmt::seq(list));
    let joined = infer(&block).0.into_iter().find(|r| r.buffer == whole.buffer);
    Some(joined.unwrap_or(whole))
}
