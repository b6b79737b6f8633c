//! Multi-dimensional buffers become buffers with one index for each *physical* axis.
//!
//! A buffer of shape `[d0, ..., dn]` without separators has one physical axis; the element
//! `[i0, ..., in]` lies at `((i0 * d1 + i1) * d2 + ...) * dn + in`, or at
//! `offset + i0 * s0 + ... + in * sn` where the buffer has strides. Axis separators cut the axes
//! into groups, and each group becomes one physical axis, row-major within itself
//! (RFC 0039). Parameters keep their type: the body sees a flat view of them.
//!
//! Where the number of elements may pass `i32::MAX`, the flat index is computed in 64 bits. As a
//! pass, [`flatten_buffers`] takes a buffer whose open extents are all `int32` at its word, that
//! its elements are counted by `int32`; before code generation, `flatten_for_code` computes in 64
//! bits whatever is not known to stay in 32.

use tilewright_ir::hash::HashMap;

use tilewright_ir::index::{Ranges, in_64_bits};
use tilewright_ir::visit::{fold_block_children, fold_stmt_children};
use tilewright_ir::{
    Attr, Block, Buffer, DType, Error, Expr, Fold, Result, Stmt, StmtKind, Tensor, TensorFunc, Var,
    extent, tensor,
};

use crate::pass::{Number, Pass, Run};

/// `flatten_buffer` by name.
pub const PASS: Pass = Pass {
    name: "flatten_buffer",
    summary: "one index for each physical axis of a buffer; blocks must be lowered",
    options: &[],
    run: Run::Tensor(|f, _, _| flatten_buffers(f)),
};

/// `storage_flatten` by name.
pub(crate) const STORAGE: Pass = Pass {
    name: "storage_flatten",
    summary: "flatten_buffer for the functions that say from_legacy_te_schedule, as TVM had it",
    options: &[&Number {
        name: "cache_line_size",
        summary: "taken for TVM's sake; has no effect",
        default: 64,
        most: 65536,
    }],
    run: Run::Tensor(|f, _, _| flatten_legacy(f)),
};

/// Flattens every buffer of a function; declared regions of blocks are dropped.
///
/// # Errors
/// `Unsupported` for a buffer that has both strides and axis separators, `Refused` for one of more
/// elements than 64 bits count.
pub fn flatten_buffers(func: &TensorFunc) -> Result<TensorFunc> {
    flatten(func, None)
}

/// [`flatten_buffers`] with every index in 64 bits that is not known to stay in 32.
///
/// # Errors
/// Those of [`flatten_buffers`].
pub(crate) fn flatten_for_code(func: &TensorFunc) -> Result<TensorFunc> {
    let mut known = Ranges::default();
    known.bind_sizes(func);
    flatten(func, Some(known))
}

fn flatten(func: &TensorFunc, ranges: Option<Ranges>) -> Result<TensorFunc> {
    let mut flatten = Flatten { ranges, ..Flatten::default() };
    let mut views = Vec::new();
    for buffer in func.buffers() {
        let flat = flatten.define(buffer);
        if flat != *buffer {
            views.push(flat);
        }
    }
    let body = flatten.stmt(&func.body);
    let body = views
        .into_iter()
        .rev()
        .fold(body, |body, buffer| Stmt::new(StmtKind::Declare { buffer, body }));
    flatten.error.map_or_else(|| Ok(TensorFunc { body, ..func.clone() }), Err)
}

/// Attribute of functions that came from a schedule before TensorIR.
const LEGACY: &str = "from_legacy_te_schedule";

/// Flattens functions that are marked `from_legacy_te_schedule`; others come back as they are.
///
/// # Errors
/// Those of [`flatten_buffers`].
fn flatten_legacy(func: &TensorFunc) -> Result<TensorFunc> {
    let marked = match func.attrs.get(LEGACY) {
        Some(Attr::Bool(marked)) => *marked,
        Some(Attr::Int(marked)) => *marked != 0,
        Some(Attr::Expr(e)) => e.as_int().is_some_and(|v| v != 0),
        _ => false,
    };
    if marked { flatten_buffers(func) } else { Ok(func.clone()) }
}

/// Distance between neighbours along each axis of a compact row-major box.
///
/// # Errors
/// `Refused` where one is beyond 64 bits.
fn row_major_strides(shape: &[Expr]) -> Result<Vec<Expr>> {
    tensor::row_major_with(shape, Expr::i32(1), extent::times)
}

/// The axes of each physical axis of a buffer, as half-open ranges.
fn physical_groups(buffer: &Buffer) -> Vec<std::ops::Range<usize>> {
    let inner = buffer.axis_separators.iter().copied();
    let ends = inner.clone().chain([buffer.rank()]);
    std::iter::once(0).chain(inner).zip(ends).map(|(a, b)| a..b.max(a)).collect()
}

/// Number of elements of a box: the constant extents are multiplied and come last. In 64 bits
/// where a constant does not fit 32.
///
/// # Errors
/// `Refused` where it is beyond 64 bits.
pub(crate) fn dim_product(dims: &[Expr]) -> Result<Expr> {
    let known = extent::product(DType::I32, dims.iter().filter(|d| d.as_int().is_some()))?;
    let known = extent::constant(known.as_int().unwrap_or(1).into(), DType::I32)?;
    let open = dims.iter().filter(|d| d.as_int().is_none()).cloned().reduce(|a, d| a * d);
    Ok(match open {
        Some(open) if known.as_int() == Some(1) => open,
        Some(open) => open * known,
        None => known,
    })
}

#[derive(Default)]
struct Flatten {
    flat: HashMap<Buffer, Buffer>,
    /// Sizes of allocations by their pointers, in elements of a type, where they are constants.
    allocated: HashMap<Var, (i64, DType)>,
    /// What loops say of their variables, where indices must not wrap.
    ranges: Option<Ranges>,
    error: Option<Error>,
}

impl Flatten {
    /// The value, or another one with the error taken down.
    fn or<T>(&mut self, value: Result<T>, other: impl FnOnce() -> T) -> T {
        value.unwrap_or_else(|e| {
            self.error.get_or_insert(e);
            other()
        })
    }

    /// The size, or 1.
    fn or_fail(&mut self, size: Result<Expr>) -> Expr {
        self.or(size, || Expr::i32(1))
    }

    /// Elements that a buffer with strides spans: whole rows where the memory of an allocation is
    /// known to have them, and else not beyond the last element.
    fn strided_size(&self, b: &Buffer) -> Result<Expr> {
        let least = extent::span(&b.shape, &b.strides)?;
        let (Some(d), Some(s)) = (b.shape.first(), b.strides.first()) else { return Ok(least) };
        let rows = extent::times(d, s)?;
        let room = self
            .allocated
            .get(&b.data)
            .filter(|(_, dtype)| *dtype == b.dtype && b.elem_offset.is_none());
        match (rows.as_int(), least.as_int(), room) {
            (Some(n), Some(l), Some((room, _))) if l <= n && n <= *room => Ok(rows),
            _ => Ok(least),
        }
    }

    /// Takes down how much memory an allocation has.
    fn allocate(&mut self, b: &Buffer) {
        let size = match (b.shape.first(), b.strides.first()) {
            (Some(extent), Some(stride)) => extent::times(extent, stride),
            _ => dim_product(&b.shape),
        };
        let size = self.or_fail(size);
        if let (Some(n), None) = (size.as_int(), &b.elem_offset) {
            self.allocated.insert(b.data.clone(), (n, b.dtype));
        }
    }

    /// A constant in the shape of its flat buffer.
    fn reshape(&mut self, value: &Tensor, flat: &Buffer) -> Tensor {
        let shape = flat.const_shape().unwrap_or_default();
        let shape: Vec<usize> = shape.iter().filter_map(|n| usize::try_from(*n).ok()).collect();
        self.or(value.reshape(&shape), || value.clone())
    }

    fn define(&mut self, b: &Buffer) -> Buffer {
        if let Some(f) = self.flat.get(b) {
            return f.clone();
        }
        if !b.strides.is_empty() && !b.axis_separators.is_empty() {
            self.error.get_or_insert_with(|| {
                Error::unsupported(format!(
                    "buffer `{}` has both strides and axis separators",
                    b.name
                ))
            });
        }
        let is_flat = physical_groups(b).len() == b.rank();
        let flat = if is_flat && b.strides.is_empty() && b.elem_offset.is_none() {
            b.clone()
        } else {
            let groups = physical_groups(b).into_iter();
            let mut shape: Vec<Expr> =
                groups.map(|g| self.or_fail(dim_product(&b.shape[g]))).collect();
            if !b.strides.is_empty() {
                shape = vec![self.or_fail(self.strided_size(b))];
            }
            if let (Some(offset), [first, ..]) = (&b.elem_offset, &mut shape[..]) {
                *first = self.or_fail(extent::sum(first, offset));
            }
            b.derive(|d| {
                d.axis_separators = (1..shape.len()).collect();
                d.shape = shape;
                d.strides = Vec::new();
                d.elem_offset = None;
            })
        };
        self.flat.insert(b.clone(), flat.clone());
        flat
    }

    /// Whether an index of a physical axis has to be computed in 64 bits.
    fn is_wide(&mut self, extent: &Expr, indices: &[Expr]) -> bool {
        extent.dtype().bits > 32
            || self.ranges.as_mut().is_some_and(|known| {
                extent.as_int().is_none() || indices.iter().any(|i| known.exact(i).is_none())
            })
    }

    fn index(&mut self, b: &Buffer, flat: &Buffer, indices: &[Expr]) -> Vec<Expr> {
        if flat == b {
            return indices.to_vec();
        }
        let mut out = Vec::new();
        for (group, extent) in physical_groups(b).into_iter().zip(&flat.shape) {
            let wide = self.is_wide(extent, &indices[group.clone()]);
            let strides = if b.strides.is_empty() {
                row_major_strides(&b.shape[group.clone()])
            } else {
                Ok(b.strides[group.clone()].to_vec())
            };
            let strides = self.or(strides, Vec::new);
            let mut sum = Expr::int(0, if wide { DType::I64 } else { DType::I32 });
            if out.is_empty() {
                sum = b.elem_offset.iter().fold(sum, |s, o| s + o);
            }
            for (i, s) in indices[group].iter().zip(&strides) {
                let of_axis = match &self.ranges {
                    Some(known) if wide => in_64_bits(i, known),
                    _ => widened(i, wide, extent),
                };
                sum = sum + of_axis * widened(s, wide, extent);
            }
            out.push(sum);
        }
        out
    }
}

/// A part of an index, in a type that holds the sums of such parts up to an extent.
fn widened(e: &Expr, wide: bool, extent: &Expr) -> Expr {
    // An index of 8 or 16 bits is in the range of its own axis; the sum may not be.
    let fits = e.dtype().bits >= 32
        || extent.as_int().is_some_and(|n| extent::holds(e.dtype().scalar(), n.into()));
    if wide {
        e.clone().cast(DType::I64.with_lanes(e.dtype().lanes))
    } else if !fits {
        e.clone().cast(DType::I32.with_lanes(e.dtype().lanes))
    } else {
        e.clone()
    }
}

impl Fold for Flatten {
    fn buffer_def(&mut self, b: &Buffer) -> Buffer {
        self.define(b)
    }

    fn buffer_use(&mut self, b: &Buffer) -> Buffer {
        self.flat.get(b).cloned().unwrap_or_else(|| b.clone())
    }

    fn block(&mut self, b: &std::sync::Arc<Block>) -> std::sync::Arc<Block> {
        b.allocs.iter().for_each(|a| self.allocate(a));
        let block = Block { reads: None, writes: None, ..(**b).clone() };
        fold_block_children(self, &std::sync::Arc::new(block))
    }

    fn access(&mut self, b: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        let flat = self.buffer_use(b);
        let indices: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect();
        let at = self.index(b, &flat, &indices);
        Some((flat, at))
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::For { var, range, .. } => {
                if let Some(known) = &mut self.ranges {
                    known.bind_loop(var, range);
                }
                fold_stmt_children(self, s)
            }
            StmtKind::Allocate { buffer, .. } => {
                self.allocate(buffer);
                fold_stmt_children(self, s)
            }
            StmtKind::Constant { buffer, value, body } => {
                self.allocate(buffer);
                let buffer = self.buffer_def(buffer);
                let value = self.reshape(value, &buffer);
                let body = self.stmt(body);
                Stmt::spanned(StmtKind::Constant { buffer, value, body }, s.span())
            }
            _ => fold_stmt_children(self, s),
        }
    }
}
