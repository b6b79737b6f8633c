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

use tilewright_analysis::dependence::{accesses, keeps_order};
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    Block, DType, Error, Expr, Fold, ForKind, IterKind, IterVar, Range, Result, Stmt, StmtKind,
    TensorFunc, Var,
};
use tilewright_sets::Engine;

use crate::cursor::{block_cursor, replace_in};
use crate::index_map::IndexMap;
use crate::padding::same_extent;
use crate::primitive::primitives;
use crate::relayout::Tidy;
use crate::schedule::Edited;
use crate::value::{BlockRef, Lambda};

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
    let cursor = block_cursor(func, &block.name)?;
    let refuse = |why: String| Error::refused(why).at(cursor.stmt.span());
    let StmtKind::Block { bindings, predicate, block: b } = cursor.stmt.kind() else {
        return Err(Error::internal("a block cursor is no block"));
    };
    let nest = nest(&cursor.around, b, bindings, predicate).map_err(|why| {
        refuse(format!("the loops around the block `{}` cannot be mapped: {why}", b.name))
    })?;
    let whole: Vec<(DType, Range)> =
        b.iters.iter().map(|i| (i.var.dtype(), i.domain.clone())).collect();
    let map = IndexMap::bind_over(lambda, &whole)?;
    let extents: Vec<Expr> = b.iters.iter().map(|i| i.domain.extent.clone()).collect();
    let layout = map.on(&extents, false)?;
    let known = layout.known.as_ref().map_err(Clone::clone)?;
    if !known.padding.is_false() {
        return Err(refuse("the index map does not fill its box".into())
            .note(format!("no iteration is where {}", known.padding)));
    }
    let kinds = kinds(&map, b).map_err(|e| e.at(cursor.stmt.span()))?;
    let outer = nest.first().map_or(&cursor.stmt, |(_, s)| s);
    let in_order = nest.iter().map(|(v, _)| Some(v)).eq(bindings.iter().map(Expr::as_var));
    if !(known.ordered && in_order) {
        let engine = Engine::new()?;
        let ranges: Vec<(Var, Range)> = nest
            .iter()
            .filter_map(|(v, s)| crate::cursor::as_loop(s).map(|(_, r, _)| (v.clone(), r.clone())))
            .collect();
        let domain = engine.domain_of(&ranges, &[]);
        let vars: Vec<Var> = ranges.iter().map(|(v, _)| v.clone()).collect();
        let old: Vec<Expr> = vars.iter().map(Var::expr).collect();
        let new = map.apply(bindings);
        keeps_order(&domain, &accesses(&cursor.stmt, &domain)?, &vars, (&old, &new))
            .map_err(|e| e.at(cursor.stmt.span()))?;
    }
    let iters: Vec<IterVar> = layout
        .ranges()
        .into_iter()
        .zip(kinds)
        .map(|((c, domain), kind)| IterVar {
            var: Var::new(format!("v_{}", c.name()), c.dtype()),
            domain,
            kind,
        })
        .collect();
    let cells = layout.cells.iter().cloned();
    let mut to_iters = Subst::vars(cells.zip(iters.iter().map(|i| i.var.expr())));
    let values = known.inverse.iter().map(|e| to_iters.expr(e));
    let values = b.iters.iter().zip(values).map(|(i, e)| (i.var.clone(), e.cast(i.var.dtype())));
    let mut inverse = Subst::vars(values);
    let body = inverse.block(&Arc::new(Block { iters: Vec::new(), ..(**b).clone() }));
    let engine = Engine::new()?;
    let vars: Vec<Var> = iters.iter().map(|i| i.var.clone()).collect();
    let new = Block { iters, ..(*body).clone() };
    let bindings = layout.cells.iter().map(Var::expr).collect();
    let new = Stmt::spanned(
        StmtKind::Block { bindings, predicate: predicate.clone(), block: Arc::new(new) },
        cursor.stmt.span(),
    );
    let new = Tidy::within(&engine, Vec::new(), vars, Vec::new()).stmt(&new);
    Ok((replace_in(func, outer, &Stmt::nest(layout.ranges().into_iter(), new)), ()))
}

/// The loops directly around a block, outermost first, if each stands for one of its variables.
fn nest(
    around: &[Stmt],
    b: &Block,
    bindings: &[Expr],
    predicate: &Expr,
) -> std::result::Result<Vec<(Var, Stmt)>, String> {
    if !predicate.is_true() {
        return Err(format!("the block has the predicate `{predicate}`"));
    }
    let from = around.len().checked_sub(b.iters.len()).ok_or("there are too few")?;
    let mut loops = Vec::new();
    for s in &around[from..] {
        match s.kind() {
            StmtKind::For { var, range, kind: ForKind::Serial, annotations, .. }
                if annotations.is_empty() =>
            {
                let bound = b.iters.iter().zip(bindings).find(|(_, e)| e.as_var() == Some(var));
                let Some((iter, _)) = bound else {
                    return Err(format!("no variable is bound to the loop `{}`", var.name()));
                };
                let same = same_extent(&range.extent, &iter.domain.extent)
                    && range.min.as_int() == Some(0)
                    && iter.domain.min.as_int() == Some(0);
                if !same {
                    let name = iter.var.name();
                    return Err(format!("`{name}` and the loop `{}` differ", var.name()));
                }
                loops.push((var.clone(), s.clone()));
            }
            _ => return Err("they are not plain serial loops directly around it".into()),
        }
    }
    Ok(loops)
}

/// The kind of each physical index.
fn kinds(map: &IndexMap, b: &Block) -> Result<Vec<IterKind>> {
    let kind = |e: &Expr| {
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
                        other.var.name(),
                        iter.var.name()
                    )));
                }
                _ => found = Some(iter),
            }
        }
        Ok(found.map_or(IterKind::Spatial, |i| i.kind))
    };
    map.indices.iter().map(kind).collect()
}
