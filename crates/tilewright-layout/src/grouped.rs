//! Views that make one axis of neighbouring axes of a tensor, or take such an axis apart again.

use tilewright_ir::{Attr, DType, Dim, Error, Expr, Result, TensorFunc, TensorType, dim};

use tilewright_graph::call_sizes::{inside, outside};
use tilewright_graph::marks::VIEW;
use tilewright_graph::stages::{Iter, at, buffer, cells, one_stage};

/// How many axes of a tensor become one, for each axis that it has then.
pub(crate) type Groups = Vec<usize>;

/// A type of a tensor of the graph with groups of its axes as one.
pub(crate) fn grouped(ty: &TensorType, groups: &Groups) -> TensorType {
    let shape = inside(ty).unwrap_or_default();
    outside(&in_groups(&shape, groups), ty.dtype)
}

/// The extents of groups of axes.
pub(crate) fn in_groups(shape: &[Dim], groups: &Groups) -> Vec<Dim> {
    let mut axes = shape.iter().copied();
    groups.iter().map(|n| dim::product(axes.by_ref().take(*n))).collect()
}

/// A function whose result is its input with groups of axes as one, or the other way round.
pub(crate) fn view(ty: &TensorType, groups: &Groups, merges: bool) -> Result<TensorFunc> {
    let Some(shape) = inside(ty) else {
        return Err(Error::internal("a view of a tensor of unknown shape"));
    };
    let iters = cells("v", &shape);
    let mut rest: &[Iter] = &iters;
    let mut merged = Vec::with_capacity(groups.len());
    for n in groups {
        let (group, behind) = rest.split_at(*n);
        let index = group.iter().fold(None, |index: Option<Expr>, (var, n, _)| {
            Some(index.map_or(var.expr(), |i| i * n.typed(DType::I32) + var.expr()))
        });
        merged.push(index.unwrap_or_else(|| Expr::i32(0)));
        rest = behind;
    }
    let fine = buffer("x", &shape, ty.dtype);
    let coarse = buffer("view", &in_groups(&shape, groups), ty.dtype);
    let (from, to, read, written) = if merges {
        (&fine, &coarse, at(&iters), merged)
    } else {
        (&coarse, &fine, merged, at(&iters))
    };
    let mut func = one_stage("view", &iters, [from, to], written, from.load(read));
    func.attrs.insert(VIEW.into(), Attr::Int(1));
    Ok(func)
}
