//! How a tensor lies in memory: the distances of neighbours along each axis, and functions whose
//! parameters lie with them.
//!
//! Strides are sizes of the graph, which may be open; inside of a function they are expressions of the
//! numbers that it is passed.

use tilewright_analysis::footprint::by_indices_alone;
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    Buffer, Dim, Error, Expr, Fold, Param, Result, TensorFunc, TensorType, dim, tensor,
};

use tilewright_graph::view::is_compact;

/// Distances of neighbours along each axis, in elements; zero along axes of extent one.
pub(crate) type Strides = Vec<Dim>;

/// The strides of a compact tensor.
pub(crate) fn row_major(shape: &[Dim]) -> Strides {
    let all = tensor::row_major_with(shape, Dim::from(1), |stride, extent| Ok(*stride * *extent));
    let all = all.unwrap_or_default().into_iter().zip(shape);
    all.map(|(stride, extent)| if *extent == 1 { Dim::from(0) } else { stride }).collect()
}

/// How a parameter lies: its strides where it has some that are not those of a compact tensor, in the
/// sizes that the function has.
///
/// # Errors
/// `Unsupported` for an offset, and for strides that are no sizes.
pub(crate) fn strides_of(b: &Buffer) -> Result<Option<Strides>> {
    if b.is_row_major() {
        return Ok(None);
    }
    let shape = dim::of_shape(&b.shape).ok_or_else(|| refuse_strides(b))?;
    let starts = b.elem_offset.as_ref().is_none_or(|o| o.as_int() == Some(0));
    let strides = b
        .strides
        .iter()
        .zip(&shape)
        .map(
            |(stride, extent)| {
                if *extent == 1 { Some(Dim::from(0)) } else { Dim::from_expr(stride) }
            },
        )
        .collect::<Option<Strides>>();
    let strides = strides.filter(|_| starts).ok_or_else(|| refuse_strides(b))?;
    Ok(Some(strides).filter(|strides| row_major(&shape) != *strides))
}

fn refuse_strides(b: &Buffer) -> Error {
    Error::unsupported(format!(
        "the parameter `{}` has an offset, or strides that are no sizes: such a tensor cannot be \
             planned",
        b.name
    ))
}

/// The strides of a tensor seen under another shape, element by element in row-major order; `None`
/// where it has none, or open sizes do not say.
pub(crate) fn reshaped(from: &[Dim], strides: &[Dim], to: &[Dim]) -> Option<Strides> {
    if from == to {
        return Some(strides.to_vec());
    }
    if row_major(from) == strides {
        return Some(row_major(to));
    }
    let old: Vec<(Dim, Dim)> =
        from.iter().copied().zip(strides.iter().copied()).filter(|(n, _)| *n != 1).collect();
    let new: Vec<usize> = (0..to.len()).filter(|k| to[*k] != 1).collect();
    let (mut old, mut new) = (&old[..], &new[..]);
    let mut found = vec![Dim::from(0); to.len()];
    // Axes are taken from both until they have as many elements.
    while !old.is_empty() || !new.is_empty() {
        let (taken, group) = as_many(old, new, to)?;
        let mut stride = old[taken - 1].1;
        // The axes must lie as one.
        if !old[..taken].windows(2).all(|pair| pair[0].1 == pair[1].0 * pair[1].1) {
            return None;
        }
        for k in new[..group].iter().rev() {
            found[*k] = stride;
            stride = stride * to[*k];
        }
        (old, new) = (&old[taken..], &new[group..]);
    }
    Some(found)
}

/// The fewest first axes, some of each of two shapes, that have as many elements, whatever open sizes are.
fn as_many(old: &[(Dim, Dim)], new: &[usize], to: &[Dim]) -> Option<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> =
        (1..=old.len()).flat_map(|i| (1..=new.len()).map(move |j| (i, j))).collect();
    pairs.sort_by_key(|(i, j)| i + j);
    pairs.into_iter().find(|(i, j)| {
        dim::product(old[..*i].iter().map(|(n, _)| *n))
            == dim::product(new[..*j].iter().map(|k| to[*k]))
    })
}

/// How a part lies in a whole with strides, where it is not contiguous.
pub(super) fn part_strides(ty: &TensorType, whole: &[Dim]) -> Option<Strides> {
    let shape = dim::of_shape(&ty.shape)?;
    let strides = moving(&shape, whole);
    (row_major(&shape) != strides).then_some(strides)
}

/// Strides where something moves: zero along axes of extent one.
pub(crate) fn moving(shape: &[Dim], strides: &[Dim]) -> Strides {
    shape.iter().zip(strides).map(|(d, s)| if *d == 1 { Dim::from(0) } else { *s }).collect()
}

/// Whether a parameter is accessed by indices alone, so that it may lie with strides.
pub(super) fn takes_strides(func: &TensorFunc, buffer: &Buffer) -> bool {
    is_compact(buffer) && func.ret.is_none() && by_indices_alone(&func.body, buffer)
}

/// A function whose parameters lie with strides, which it is passed the open sizes of.
///
/// # Errors
/// `Internal` for strides that `int32` does not hold.
pub(super) fn strided(func: &TensorFunc, strides: &[Option<Strides>]) -> Result<TensorFunc> {
    let buffers: Vec<Buffer> = func.buffers().cloned().collect();
    let (mut pairs, mut sizes) = (Vec::new(), Vec::new());
    for (buffer, strides) in buffers.iter().zip(strides) {
        let Some(strides) = strides else { continue };
        let shape = dim::of_shape(&buffer.shape).ok_or_else(too_large_strides)?;
        // Along an axis of extent one nothing moves: what is written there is for people.
        let mut given = strides.clone();
        for k in (0..shape.len()).rev().filter(|k| shape[*k] == 1) {
            let next = given.get(k + 1).zip(shape.get(k + 1));
            given[k] = next.map_or(Dim::from(1), |(stride, extent)| *stride * extent.outside());
        }
        if !given.iter().all(|d| d.fits_int32()) {
            return Err(too_large_strides());
        }
        sizes.extend(given.iter().flat_map(|d| d.inside().vars()));
        let given: Vec<Expr> = given.into_iter().map(Dim::expr).collect();
        pairs.push((buffer.clone(), buffer.derive(|d| d.strides = given)));
    }
    let mut new = with_buffers(func, pairs);
    new.pass_sizes(sizes);
    Ok(new)
}

fn too_large_strides() -> Error {
    Error::internal("strides that `int32` does not hold")
}

/// A function whose parameters have no strides, which is the same to callers that pass tensors; `None`
/// where none has.
pub(crate) fn without_strides(func: &TensorFunc) -> Option<TensorFunc> {
    let strided = func.buffers().filter(|b| !b.strides.is_empty());
    let pairs: Vec<(Buffer, Buffer)> =
        strided.map(|b| (b.clone(), b.derive(|d| d.strides.clear()))).collect();
    (!pairs.is_empty()).then(|| with_buffers(func, pairs))
}

/// A function with others in the place of its buffers.
fn with_buffers(func: &TensorFunc, pairs: Vec<(Buffer, Buffer)>) -> TensorFunc {
    let mut subst = Subst::buffers(pairs);
    let params = func
        .params
        .iter()
        .map(|p| match p {
            Param::Buffer { handle, buffer } => {
                let buffer = subst.buffers.get(buffer).unwrap_or(buffer).clone();
                Param::Buffer { handle: handle.clone(), buffer }
            }
            Param::Scalar(_) => p.clone(),
        })
        .collect();
    TensorFunc { params, body: subst.stmt(&func.body), ..func.clone() }
}
