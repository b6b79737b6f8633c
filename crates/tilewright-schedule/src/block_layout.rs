//! `transform_block_layout`: another iteration space for a block.
//!
//! The block's iteration variables are mapped by an index map without padding; the loops around it,
//! one for each variable, become loops over the map's box:
//!
//! ```text
//! transform_block_layout(B, lambda i, j: [i * 128 + j])
//!
//! for i, j in T.grid(128, 128):              for i_j in range(16384):
//!     vi, vj = T.axis.remap("SS", [i, j])        v = T.axis.spatial(16384, i_j)
//!     B[vi, vj] = A[vi, vj]                      B[v // 128, v % 128] = A[v // 128, v % 128]
//! ```
//!
//! Variables of different kinds are not mixed in one index. Iterations that depend on each other
//! keep their order, updates of one cell by one operator that commutes excepted.

use std::sync::Arc;

use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    Block, DType, Error, Expr, Fold, IterKind, IterVar, Range, Result, Stmt, TensorFunc, Var,
};
use tilewright_polyhedral::Engine;
use tilewright_polyhedral::dependence::{accesses, keeps_order};

use crate::cursor::{BlockCursor, loop_ranges, replace_in, the_block};
use crate::loops::serial;
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::{BlockRef, Lambda};
use tilewright_layout::index_map::IndexMap;
use tilewright_layout::padding::same_extent;
use tilewright_layout::relayout::Tidy;

primitives! {
    /// Maps the iteration variables of a block and the loops around it.
    ///
    /// # Errors
    /// `Refused` where the map is not one-to-one onto a box or mixes kinds of variables, where the
    /// loops around the block are not plain ones bound to its variables, and where iterations that
    /// depend on each other would change their order.
    transform_block_layout(block: &BlockRef, index_map: &Lambda),
        edit |f| transform(f, block, index_map);
}

fn transform(func: &TensorFunc, block: &BlockRef, lambda: &Lambda) -> Result<Edited> {
    let cursor = the_block(func, block)?;
    let b = &cursor.block;
    let nest = nest(&cursor).map_err(|why| {
        let name = &block.name;
        Error::refused(format!("the loops around the block `{name}` cannot be mapped: {why}"))
    })?;
    let whole: Vec<(DType, Range)> =
        b.iters.iter().map(|i| (i.var.dtype(), i.domain.clone())).collect();
    let map = IndexMap::bind_over(lambda, &whole)?;
    let extents: Vec<Expr> = b.iters.iter().map(|i| i.domain.extent.clone()).collect();
    let layout = map.on(&extents, false)?;
    let known = layout.known.as_ref().map_err(Clone::clone)?;
    if !known.padding.is_false() {
        return Err(Error::refused("the index map does not fill its box")
            .note(format!("no iteration is where {}", known.padding)));
    }
    let kinds = kinds(&map, b)?;
    let outer = nest.first().unwrap_or(&cursor.stmt);
    let ranges = loop_ranges(nest);
    let in_order = ranges.iter().map(|(v, _)| Some(v)).eq(cursor.bindings.iter().map(Expr::as_var));
    if !(known.ordered && in_order) {
        let domain = Engine::new().domain_of(&ranges, &[]);
        let vars: Vec<Var> = ranges.into_iter().map(|(v, _)| v).collect();
        let old: Vec<Expr> = vars.iter().map(Var::expr).collect();
        let new = map.apply(&cursor.bindings);
        keeps_order(&domain, &accesses(&cursor.stmt, &domain)?, &vars, (&old, &new))?;
    }
    let mut iters = layout.iters();
    iters.iter_mut().zip(kinds).for_each(|(i, kind)| i.kind = kind);
    let cells = layout.cells.iter().cloned();
    let mut to_iters = Subst::vars(cells.zip(iters.iter().map(|i| i.var.expr())));
    let values = known.inverse.iter().map(|e| to_iters.expr(e));
    let values = b.iters.iter().zip(values).map(|(i, e)| (i.var.clone(), e.cast(i.var.dtype())));
    let mut inverse = Subst::vars(values);
    let body = inverse.block(&Arc::new(Block { iters: Vec::new(), ..(**b).clone() }));
    let engine = Engine::new();
    let vars: Vec<Var> = iters.iter().map(|i| i.var.clone()).collect();
    let new = Block { iters, ..(*body).clone() };
    let bindings = layout.cells.iter().map(Var::expr).collect();
    let new = BlockCursor { bindings, ..cursor.clone() }.with_block(new);
    let new = Tidy::new(&engine, Vec::new(), vars, Vec::new()).stmt(&new);
    Ok((replace_in(func, outer, &Stmt::nest(layout.ranges().into_iter(), new)), ()))
}

/// The loops directly around a block, outermost first, if each stands for one of its variables.
fn nest(cursor: &BlockCursor) -> std::result::Result<&[Stmt], String> {
    let (predicate, around) = (&cursor.predicate, &cursor.around);
    if !predicate.is_true() {
        return Err(format!("the block has the predicate `{predicate}`"));
    }
    let from = around.len().checked_sub(cursor.block.iters.len()).ok_or("there are too few")?;
    for s in &around[from..] {
        let Ok((var, range, _)) = serial(s, "mapped") else {
            return Err("they are not plain serial loops directly around it".into());
        };
        let Some((iter, _)) = cursor.pairs().find(|(_, e)| e.as_var() == Some(var)) else {
            return Err(format!("no variable is bound to the loop `{var}`"));
        };
        let same = same_extent(&range.extent, &iter.domain.extent)
            && range.min.as_int() == Some(0)
            && iter.domain.min.as_int() == Some(0);
        if !same {
            let name = iter.var.name();
            return Err(format!("`{name}` and the loop `{var}` differ"));
        }
    }
    Ok(&around[from..])
}

/// The kind of each physical index.
fn kinds(map: &IndexMap, b: &Block) -> Result<Vec<IterKind>> {
    map.indices.iter().map(|e| kind_of(e, map, b)).collect()
}

fn kind_of(e: &Expr, map: &IndexMap, b: &Block) -> Result<IterKind> {
    let free = free_vars(e);
    let mut found: Option<&IterVar> = None;
    for (p, iter) in map.params.iter().zip(&b.iters) {
        let unit = iter.domain.extent.as_int() == Some(1);
        if !free.contains(p) || (unit && iter.kind != IterKind::Opaque) {
            continue;
        }
        match found {
            _ if iter.kind == IterKind::Opaque => {
                return Err(Error::refused(format!("`{}` is opaque", iter.var.name())));
            }
            Some(other) if other.kind != iter.kind => {
                return Err(Error::refused(format!(
                    "the index `{e}` mixes the spatial and the reduction variable `{}` and `{}`",
                    other.var,
                    iter.var.name()
                )));
            }
            _ => found = Some(iter),
        }
    }
    Ok(found.map_or(IterKind::Spatial, |i| i.kind))
}
