//! Contractions, recognised from their accesses.
//!
//! A contraction is a stage `out[s] += a[..] * b[..]` of floats, whose loads are affine in the
//! iteration variables. What an operator is called, and how many axes it has, does not matter; all
//! that a schedule needs is by how many cells each access moves along each axis:
//!
//! | | `a` | `b` | out |
//! |---|---|---|---|
//! | batch | moves | moves | moves |
//! | rows of `a` | moves | stays | moves |
//! | columns of `b` | stays | moves | moves |
//! | reduction | moves | moves | stays |
//!
//! A matrix product has one axis of each of the last three kinds, a convolution has pixels as rows
//! and output channels as columns, whatever the order of axes in memory.

use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, IterKind, Var};
use tilewright_schedule::auto::affine::Affine;

/// An iteration variable of a contraction.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The block's variable.
    pub var: Var,
    /// The number of its values, which start at zero.
    pub extent: i64,
    /// Spatial or reduction.
    pub kind: IterKind,
}

/// A factor of the product.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The buffer that is read.
    pub buffer: Buffer,
    /// Where, in terms of the axes.
    pub indices: Vec<Expr>,
    /// By how many cells it moves along each axis.
    pub steps: Vec<i64>,
    /// Whether its layout is free: it is the same in every run, and may be stored as the kernel
    /// reads it.
    pub free: bool,
}

/// A contraction.
#[derive(Clone, Debug)]
pub struct Contraction {
    /// The name of its block.
    pub block: Arc<str>,
    /// Iteration variables in the order of the loops, spatial ones first.
    pub axes: Vec<Axis>,
    /// The factors.
    pub operands: [Operand; 2],
    /// For each axis of the buffer of sums the axis that runs along it, where its extent is not one.
    pub dims: Vec<Option<usize>>,
    /// By how many cells the place of the finished value moves along each axis; `None` where that is
    /// not even.
    pub out: Vec<Option<i64>>,
    /// Bytes of an element.
    pub bytes: usize,
}

impl Contraction {
    /// The contraction that a stage is, if it is one. `is_free` says which buffers have a free layout.
    pub fn of(stage: &Stage, is_free: impl Fn(&Buffer) -> bool) -> Option<Contraction> {
        let reduction = stage.reduction().filter(|r| r.op == BinOp::Add)?;
        let ExprKind::Binary(BinOp::Mul, a, b) = reduction.value.kind() else { return None };
        let dtype = stage.buffer.dtype();
        stage.init.as_ref().filter(|e| dtype.is_float() && e.as_float() == Some(0.0))?;
        let axes: Vec<Axis> = stage
            .iters()
            .map(|(var, extent, kind)| Axis { var: var.clone(), extent, kind })
            .collect();
        let operand = |e: &Expr| {
            let ExprKind::Load(buffer, indices) = e.kind() else { return None };
            let steps = steps(buffer, indices, &axes)?;
            let (buffer, indices) = (buffer.clone(), indices.clone());
            let free = is_free(&buffer);
            (buffer.dtype() == dtype).then_some(Operand { buffer, indices, steps, free })
        };
        let operands = [operand(a)?, operand(b)?];
        if operands[0].buffer == operands[1].buffer {
            return None;
        }
        let out = steps(&stage.buffer, &stage.indices, &axes)?;
        let position = |v: Option<Var>| v.and_then(|v| axes.iter().position(|a| a.var == v));
        let dims = stage.covers_buffer()?.into_iter().map(position).collect();
        Some(Contraction {
            block: stage.name().clone(),
            operands,
            dims,
            out: out.into_iter().map(Some).collect(),
            bytes: dtype.bytes(),
            axes,
        })
    }

    /// The axes of a kind that satisfy a condition, by their position.
    pub fn axes_where(&self, kind: IterKind, wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..self.axes.len()).filter(|k| self.axes[*k].kind == kind && wanted(*k)).collect()
    }

    /// The product of the extents of some axes.
    pub fn count(&self, axes: &[usize]) -> i64 {
        axes.iter().map(|k| self.axes[*k].extent).fold(1, i64::saturating_mul)
    }

    /// Bytes that an operand has in all.
    pub fn size(&self, operand: usize) -> i64 {
        let shape = self.operands[operand].buffer.const_shape().unwrap_or_default();
        shape.iter().fold(self.bytes as i64, |n, d| n.saturating_mul(*d))
    }
}

/// By how many cells an access moves along each axis; `None` where that is not even.
pub fn steps(buffer: &Buffer, indices: &[Expr], axes: &[Axis]) -> Option<Vec<i64>> {
    let offset = Affine::of_access(buffer, indices)?;
    axes.iter().map(|a| offset.coefficient(&a.var)).collect()
}
