//! Multi-dimensional buffers become buffers with one index for each *physical* axis.
//!
//! A buffer of shape `[d0, ..., dn]` without separators has one physical axis; the element
//! `[i0, ..., in]` lies at `((i0 * d1 + i1) * d2 + ...) * dn + in`, or at
//! `offset + i0 * s0 + ... + in * sn` where the buffer has strides. Axis separators cut the axes
//! into groups, and each group becomes one physical axis, row-major within itself
//! (RFC 0039). Parameters keep their type: the body sees a flat view of them.
//!
//! Where the number of elements may pass `i32::MAX`, the flat index is computed in 64 bits.

use std::collections::HashMap;

use tilewright_ir::visit::{fold_block_children, fold_expr_children, fold_stmt_children};
use tilewright_ir::{
    Block, Buffer, DType, Error, Expr, ExprKind, Fold, Result, Stmt, StmtKind, TensorFunc,
};

/// Flattens every buffer of a function; declared regions of blocks are dropped.
///
/// # Errors
/// `Unsupported` for a buffer that has both strides and axis separators.
pub fn flatten_buffers(func: &TensorFunc) -> Result<TensorFunc> {
    let mut flatten = Flatten { flat: HashMap::new(), error: None };
    let mut views = Vec::new();
    for buffer in func.buffers() {
        let flat = flatten.define(buffer);
        if flat != *buffer {
            views.push(flat);
        }
    }
    let body = flatten.stmt(&func.body);
    if let Some(e) = flatten.error {
        return Err(e);
    }
    let declare = |body, buffer| Stmt::new(StmtKind::Declare { buffer, body });
    let body = views.into_iter().rev().fold(body, declare);
    Ok(TensorFunc { body, ..func.clone() })
}

/// Distance between neighbours along each axis of a compact row-major box.
pub fn row_major_strides(shape: &[Expr]) -> Vec<Expr> {
    let mut strides = vec![Expr::i32(1); shape.len()];
    for k in (0..shape.len().saturating_sub(1)).rev() {
        strides[k] = &strides[k + 1] * &shape[k + 1];
    }
    strides
}

/// The axes of each physical axis of a buffer, as half-open ranges.
pub fn physical_groups(buffer: &Buffer) -> Vec<std::ops::Range<usize>> {
    let inner = buffer.axis_separators.iter().copied();
    let ends = inner.clone().chain([buffer.rank()]);
    std::iter::once(0).chain(inner).zip(ends).map(|(a, b)| a..b.max(a)).collect()
}

struct Flatten {
    flat: HashMap<Buffer, Buffer>,
    error: Option<Error>,
}

impl Flatten {
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
            let size = |dims: &[Expr]| {
                let fits = |n: i64| i32::try_from(n).is_ok();
                let n = dims.iter().map(Expr::as_int).try_fold(1i64, |n, d| n.checked_mul(d?));
                match n {
                    Some(n) => Expr::int(n, if fits(n) { DType::I32 } else { DType::I64 }),
                    None => dims.iter().cloned().reduce(|a, d| a * d).unwrap_or(Expr::i32(1)),
                }
            };
            let mut shape: Vec<Expr> =
                physical_groups(b).into_iter().map(|g| size(&b.shape[g])).collect();
            if !b.strides.is_empty() {
                let last = b.shape.iter().zip(&b.strides).map(|(d, s)| (d - 1) * s);
                shape = vec![last.fold(Expr::i32(1), |a, x| a + x)];
            }
            if let (Some(offset), [first, ..]) = (&b.elem_offset, &mut shape[..]) {
                *first = &*first + offset;
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

    fn index(&self, b: &Buffer, flat: &Buffer, indices: &[Expr]) -> Vec<Expr> {
        if flat == b {
            return indices.to_vec();
        }
        let mut out = Vec::new();
        for (group, extent) in physical_groups(b).into_iter().zip(&flat.shape) {
            let wide = extent.dtype().bits > 32;
            let strides = match b.strides.is_empty() {
                true => row_major_strides(&b.shape[group.clone()]),
                false => b.strides[group.clone()].to_vec(),
            };
            let mut sum = Expr::int(0, if wide { DType::I64 } else { DType::I32 });
            if out.is_empty() {
                sum = b.elem_offset.iter().fold(sum, |s, o| s + o);
            }
            for (i, s) in indices[group].iter().zip(&strides) {
                let i = if wide {
                    i.clone().cast(DType::I64.with_lanes(i.dtype().lanes))
                } else {
                    i.clone()
                };
                sum = sum + i * s;
            }
            out.push(sum);
        }
        out
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
        let block = Block { reads: None, writes: None, ..(**b).clone() };
        fold_block_children(self, &std::sync::Arc::new(block))
    }

    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Load(b, indices) => {
                let flat = self.buffer_use(b);
                let indices: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect();
                Expr::load(&flat, self.index(b, &flat, &indices))
            }
            _ => fold_expr_children(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                let flat = self.buffer_use(buffer);
                let indices: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect();
                let indices = self.index(buffer, &flat, &indices);
                let value = self.expr(value);
                Stmt::spanned(StmtKind::Store { buffer: flat, indices, value }, s.span())
            }
            _ => fold_stmt_children(self, s),
        }
    }
}
