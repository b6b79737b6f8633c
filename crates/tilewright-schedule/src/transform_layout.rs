//! `transform_layout` and `set_axis_separator`: how a buffer lies in memory.
//!
//! ```text
//! transform_layout(block, ("write", 0), lambda i: [i // 4, i % 4], pad_value=0)
//!
//! B: (14,)                                     B: (4, 4)
//! for i in range(14):                          for io, ii in T.grid(4, 4):
//!     B[i] = A[i]                                  B[io, ii] = T.if_then_else(io == 3 and ii >= 2,
//!                                                      0, A[io * 4 + ii])
//! ```
//!
//! Without padding only indices change. With padding, `pad_value` says what it holds: nothing
//! (`None`: it exists and is never accessed), a value of the physical indices, `T.undef()`, or
//! elements of the buffer itself. See the module `padding` for how code is derived from it.
//!
//! Semantics: Apache TVM RFC 0039 (buffer physical layout) and RFC 0077 (layout transform padding).

use tilewright_ir::visit::{Subst, fold_func, free_vars};
use tilewright_ir::{Buffer, DType, Error, Expr, Param, Range, Result, TensorFunc, Var};
use tilewright_polyhedral::Engine;

use crate::buffer_arg::{BufferArg, caller, check_interface, is_param};
use crate::cursor::{blocks, replace_in, the_block};
use crate::index_map::IndexMap;
use crate::padding::{Padding, is_written, pad_value};
use crate::primitive::primitives;
use crate::relayout::relayout;
use crate::schedule::{Edited, Invocation, Schedule};
use crate::value::{BlockRef, Lambda, Value};

primitives! {
    /// Lays a buffer of a block out by an index map, everywhere in the function. What padding holds
    /// is `None` where nothing accesses it, a number, an expression, or a lambda over the physical
    /// indices.
    ///
    /// # Errors
    /// `Refused` where the map is not injective (unless `assume_injective_transform`) or gives
    /// negative indices, the buffer is an argument whose layout may not change, its accesses cannot
    /// be followed, or the pad value depends on another buffer.
    transform_layout(
        block: &BlockRef,
        [into] buffer: BufferArg,
        index_map: &Lambda,
        pad_value: &Value = &Value::None,
        assume_injective_transform: bool = false
    ), run |sch, step| sch.edit_buffer(block, &buffer, step, |f, old| {
        transform(f, old, index_map, pad_value, assume_injective_transform)
    });

    /// Groups the axes of a buffer into physical axes: each separator is a position between axes
    /// where one ends. Views of the buffer follow.
    ///
    /// # Errors
    /// `Refused` where positions are not ascending or out of range, or the buffer is an argument
    /// whose type may not change.
    set_axis_separator(
        block: &BlockRef,
        [into] buffer: BufferArg,
        axis_separators: &[usize]
    ), run |sch, step| {
        sch.edit_buffer(block, &buffer, step, |f, old| separate(f, old, axis_separators))
    };
}

impl Schedule {
    /// Changes how a buffer of a block lies, if nothing outside of the function depends on that.
    fn edit_buffer(
        &mut self,
        block: &BlockRef,
        buffer: &BufferArg,
        step: Invocation,
        edit: impl FnOnce(&TensorFunc, &Buffer) -> Result<Edited>,
    ) -> Result<()> {
        let caller = caller(self.module(), &block.func);
        let permissions = self.permissions().clone();
        self.edit(block, step, |func| {
            let old = buffer.find(func, &the_block(func, block)?.block)?;
            check_interface(func, &old, &block.func, &permissions, caller.as_ref())?;
            edit(func, &old)
        })
    }
}

fn transform(
    func: &TensorFunc,
    old: &Buffer,
    lambda: &Lambda,
    pad: &Value,
    assume_injective: bool,
) -> Result<Edited> {
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
        _ => return Ok((relayout(func, old, &new, lambda, wide)?, ())),
    };
    let engine = Engine::new()?;
    let padding = Padding { layout: &layout, known, value, old, new: &new, engine: &engine };
    let out = if !is_written(func, old) {
        if !is_param(func, old) {
            return Err(Error::refused(format!("`{old}` is never written")));
        }
        padding.assumed(&relayout(func, old, &new, lambda, wide)?)
    } else if let Some((nest, folded)) = padding.folded(func) {
        relayout(&replace_in(func, &nest, &folded), old, &new, lambda, wide)?
    } else {
        padding.written_after(&relayout(func, old, &new, lambda, wide)?)
    };
    Ok((plain_root(&out), ()))
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
    let told = |v: &Var| {
        func.params.iter().any(|p| match p {
            Param::Scalar(s) => s == v,
            Param::Buffer { buffer, .. } => {
                let b = if buffer == old { new } else { buffer };
                b.shape.iter().any(|e| e.as_var() == Some(v))
            }
        })
    };
    let mut sizes: Vec<Var> = old.shape.iter().flat_map(free_vars).collect();
    sizes.sort();
    match sizes.iter().find(|v| !told(v)) {
        None => Ok(()),
        Some(v) => Err(Error::refused(format!(
            "the size `{v}` is known from the shape of `{old}` alone, and the new shape does not tell it"
        ))),
    }
}

fn separate(func: &TensorFunc, old: &Buffer, separators: &[usize]) -> Result<Edited> {
    let rank = old.rank();
    if !separators.is_sorted() || separators.iter().any(|s| *s > rank) {
        return Err(Error::refused(format!(
            "axis separators {separators:?} do not fit the {rank} axes of `{old}`"
        )));
    }
    let mut subst = Subst::default();
    let mut with = |b: &Buffer, separators: Vec<usize>| {
        subst.buffers.insert(b.clone(), b.derive(|d| d.axis_separators = separators));
    };
    with(old, separators.to_vec());
    // A view has the last axes of its region; the first ones may be left out.
    let mut known = vec![(old.clone(), separators.to_vec())];
    for m in blocks(func).iter().flat_map(|b| &b.matches) {
        let source = &m.source.buffer;
        let Some((_, of_source)) = known.iter().find(|(b, _)| b == source) else { continue };
        let left_out = source.rank().saturating_sub(m.buffer.rank());
        let moved: Vec<usize> = of_source.iter().map(|s| s.saturating_sub(left_out)).collect();
        with(&m.buffer, moved.clone());
        known.push((m.buffer.clone(), moved));
    }
    Ok((fold_func(&mut subst, func), ()))
}
