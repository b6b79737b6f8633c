//! A buffer of a function under another layout.
//!
//! [`relayout_buffer`] is the whole of it: the map on the buffer's shape is a `PhysicalLayout`,
//! accesses follow it ([`relayout`](mod@crate::relayout)), and code says what the padding holds
//! ([`padding`](crate::padding)).
//!
//! Semantics: Apache TVM RFC 0039 (buffer physical layout) and RFC 0077 (layout transform padding).

use tilewright_ir::lambda::Lambda;
use tilewright_ir::visit::{Subst, fold_func, free_vars};
use tilewright_ir::{Buffer, DType, Error, Expr, Param, Range, Result, TensorFunc, Var};
use tilewright_polyhedral::Engine;
use tilewright_transform::cursor::{blocks, replace_in};

use crate::index_map::IndexMap;
use crate::padding::{PadValue, Padding, is_written, pad_value};
use crate::relayout::relayout;

/// A function in which a buffer lies as an index map says, everywhere; `pad` says what its padding
/// holds. Injectivity is proven unless it is to be assumed. Who calls the function has to know
/// where the buffer is an argument.
///
/// # Errors
/// `Refused` where the map is not injective or gives negative indices, the accesses of the buffer
/// cannot be followed, the pad value depends on another buffer, or a size would be lost.
pub fn relayout_buffer(
    func: &TensorFunc,
    old: &Buffer,
    lambda: &Lambda,
    pad: &PadValue,
    assume_injective: bool,
) -> Result<TensorFunc> {
    let whole: Vec<(DType, Range)> =
        old.shape.iter().map(|e| (e.dtype(), Range::upto(e.clone()))).collect();
    let map = IndexMap::bind_over(lambda, &whole)?;
    let wide = map.params.iter().zip(&whole).any(|(p, (t, _))| p.dtype() != *t);
    let layout = map.on(&old.shape, assume_injective)?;
    let new = old.derive(|d| {
        d.shape = layout.physical.clone();
        d.axis_separators = map.separators.clone();
    });
    check_sizes(func, old, &new)?;
    let value = pad_value(pad, func, &layout, old, &new)?;
    let (known, value) = match (&layout.known, value) {
        (Ok(known), Some(value)) if !known.padding.is_false() => (known, value),
        (Err(why), Some(_)) => return Err(why.clone()),
        _ => return relayout(func, old, &new, lambda, wide),
    };
    let engine = Engine::new();
    let padding = Padding { layout: &layout, known, value, old, new: &new, engine: &engine };
    let out = if !is_written(func, old) {
        if !is_param(func, old) {
            return Err(Error::refused(format!("`{old}` is never written")));
        }
        padding.assumed(&relayout(func, old, &new, lambda, wide)?)
    } else if let Some((nest, folded)) = padding.fold_padding(func) {
        relayout(&replace_in(func, &nest, &folded), old, &new, lambda, wide)?
    } else {
        padding.written_after(&relayout(func, old, &new, lambda, wide)?)
    };
    Ok(plain_root(&out))
}

/// What the root block declares is what is accessed: it declares nothing.
fn plain_root(func: &TensorFunc) -> TensorFunc {
    let Some(root) = func.root() else { return func.clone() };
    if root.reads.is_none() && root.writes.is_none() {
        return func.clone();
    }
    let bare = tilewright_ir::Block { reads: None, writes: None, ..root.clone() };
    let body = tilewright_ir::Stmt::block(Vec::new(), Expr::bool(true), bare);
    let out = TensorFunc { body, ..func.clone() };
    let (allocs, body) = out.root_parts();
    out.with_root(allocs.to_vec(), body.clone())
}

/// A size that only the shape of this argument tells must stay readable there.
fn check_sizes(func: &TensorFunc, old: &Buffer, new: &Buffer) -> Result<()> {
    if !is_param(func, old) {
        return Ok(());
    }
    let mut sizes: Vec<Var> = old.shape.iter().flat_map(free_vars).collect();
    sizes.sort();
    match sizes.iter().find(|v| !is_size_of_params(v, func, old, new)) {
        None => Ok(()),
        Some(v) => Err(Error::refused(format!(
            "the size `{v}` is known from the shape of `{old}` alone, and the new shape does not tell it"
        ))),
    }
}

fn is_size_of_params(v: &Var, func: &TensorFunc, old: &Buffer, new: &Buffer) -> bool {
    func.params.iter().any(|p| match p {
        Param::Scalar(s) => s == v,
        Param::Buffer { buffer, .. } => {
            let b = if buffer == old { new } else { buffer };
            b.shape.iter().any(|e| e.as_var() == Some(v))
        }
    })
}

/// A function in which the axes of a buffer, and of its views, are grouped into physical axes by
/// separators: positions between axes, ascending.
///
/// # Errors
/// `Refused` where positions are not ascending or out of range.
pub fn separate_axes(func: &TensorFunc, old: &Buffer, separators: &[usize]) -> Result<TensorFunc> {
    let rank = old.rank();
    if !separators.is_sorted() || separators.iter().any(|s| *s > rank) {
        return Err(Error::refused(format!(
            "axis separators {separators:?} do not fit the {rank} axes of `{old}`"
        )));
    }
    // A view has the last axes of its region; the first ones may be left out.
    let mut known = vec![(old.clone(), separators.to_vec())];
    for m in blocks(func).iter().flat_map(|b| &b.matches) {
        let source = &m.source.buffer;
        let Some((_, of_source)) = known.iter().find(|(b, _)| b == source) else { continue };
        let left_out = source.rank().saturating_sub(m.buffer.rank());
        let moved: Vec<usize> = of_source.iter().map(|s| s.saturating_sub(left_out)).collect();
        known.push((m.buffer.clone(), moved));
    }
    let mut subst = Subst::default();
    for (buffer, separators) in known {
        let new = buffer.derive(|d| d.axis_separators = separators);
        subst.buffers.insert(buffer, new);
    }
    Ok(fold_func(&mut subst, func))
}

/// Whether a buffer is an argument of a function.
fn is_param(func: &TensorFunc, buffer: &Buffer) -> bool {
    func.buffers().any(|b| b == buffer)
}
