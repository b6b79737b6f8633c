//! Strided loads made contiguous by a layout of their own.
//!
//! A convolution of stride 2 moves its input by two elements with each step of the output, which
//! would take every lane of a vector from a place of its own. The input is copied once into the
//! layout `w -> [w % s, w // s]` of its last axis; along the output the copy moves by one:
//!
//! ```text
//! x[.., s*v + r]   =   packed[.., r % s, v + r // s]
//! ```
//!
//! Elements of the copy that no `w` reaches (where `s` does not divide the axis) are never read.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use tilewright_ir::visit::{fold_expr_children, free_vars};
use tilewright_ir::{Buffer, DType, Dim, Expr, ExprKind, Fold, ForKind, Stmt, Var};

use tilewright_analysis::index::{Ranges, simplify};
use tilewright_analysis::stage::Extent;

use crate::auto::affine::Affine;
use crate::auto::axes::Axis;
use crate::auto::emit::{Views, for_each, nest};

/// Strides that are worth a copy.
pub const PHASES: RangeInclusive<i64> = 2..=4;

/// A value with contiguous loads, and the copies that it reads.
pub struct Packed {
    /// The value.
    pub value: Expr,
    /// Original, stride and copy.
    copies: Vec<(Buffer, i64, Buffer)>,
}

impl Packed {
    /// Loops that make the copies, which live as long as the function runs.
    pub fn fill(&self, views: &mut Views) -> Stmt {
        Stmt::seq(self.copies.iter().map(|(b, s, copy)| {
            views.allocate(copy);
            fill(b, *s, copy)
        }))
    }
}

/// Replaces the loads in a value that move along the axis by one of [`PHASES`] elements.
pub fn strided_loads(value: &Expr, along: &Axis) -> Packed {
    let [(var, _)] = &along.parts[..] else {
        return Packed { value: value.clone(), copies: Vec::new() };
    };
    let mut pack = Pack { var, copies: HashMap::new(), order: Vec::new() };
    let value = pack.expr(value);
    let copies = pack.order.into_iter().map(|(b, s)| {
        let copy = pack.copies[&(b.clone(), s)].clone();
        (b, s, copy)
    });
    Packed { value, copies: copies.collect() }
}

struct Pack<'a> {
    var: &'a Var,
    copies: HashMap<(Buffer, i64), Buffer>,
    order: Vec<(Buffer, i64)>,
}

impl Pack<'_> {
    /// Stride, and the last index without the axis' variable.
    fn stride(&self, buffer: &Buffer, indices: &[Expr]) -> Option<(i64, Expr)> {
        Affine::of_access(buffer, indices)?;
        let (last, outer) = indices.split_last()?;
        if outer.iter().any(|i| free_vars(i).contains(self.var)) {
            return None;
        }
        let stride = Affine::of(last)?.coefficient(self.var)?;
        let zero = (self.var.clone(), Expr::int(0, self.var.dtype()));
        let rest = tilewright_ir::visit::Subst::vars([zero]).expr(last);
        PHASES.contains(&stride).then(|| (stride, simplify(&rest, &Ranges::default())))
    }

    fn copy(&mut self, buffer: &Buffer, stride: i64) -> Option<Buffer> {
        let key = (buffer.clone(), stride);
        if let Some(copy) = self.copies.get(&key) {
            return Some(copy.clone());
        }
        let mut shape = buffer.const_shape()?;
        let width = shape.pop()?;
        shape.extend([stride, (width + stride - 1) / stride]);
        let size = shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d))?;
        i32::try_from(size).ok()?;
        let copy = Buffer::with_extents(format!("{}_phases", buffer.name), &shape, buffer.dtype());
        self.copies.insert(key.clone(), copy.clone());
        self.order.push(key);
        Some(copy)
    }
}

impl Fold for Pack<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        let ExprKind::Load(buffer, indices) = e.kind() else {
            return fold_expr_children(self, e);
        };
        let packed = self.stride(buffer, indices).and_then(|(stride, rest)| {
            let copy = self.copy(buffer, stride)?;
            let (_, outer) = indices.split_last()?;
            let mut at = outer.to_vec();
            at.push(rest.clone().floormod(stride));
            at.push(self.var.expr() + rest.floordiv(stride));
            Some(copy.load(at))
        });
        packed.unwrap_or_else(|| e.clone())
    }
}

/// Loops that fill the copy of a buffer.
fn fill(buffer: &Buffer, stride: i64, copy: &Buffer) -> Stmt {
    let shape = buffer.const_shape().unwrap_or_default();
    let Some((width, outer)) = shape.split_last() else { return Stmt::nop() };
    let loops: Vec<(String, Dim)> =
        outer.iter().enumerate().map(|(k, d)| (format!("i{k}"), d.dim())).collect();
    nest(&loops, loops.len(), shape.iter().copied().fold(1, i64::saturating_mul), |at| {
        Stmt::seq((0..stride.min(*width)).map(|phase| {
            let count = (width - phase + stride - 1) / stride;
            for_each(ForKind::Serial, "q", count, |q| {
                let phase = Expr::int(phase, DType::I32);
                let from = q.clone() * stride + &phase;
                let to = at.iter().cloned().chain([phase, q]).collect();
                Stmt::store(copy, to, buffer.load(at.iter().cloned().chain([from])))
            })
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::IterKind;

    #[test]
    fn a_stride_becomes_a_phase_and_a_contiguous_index() {
        let [c, v, k] = ["c", "v", "k"].map(Var::index);
        let x = Buffer::with_extents("x", &[3, 31], DType::F32);
        let extent = Dim::from(15);
        let along = Axis { parts: vec![(v.clone(), extent)], extent, kind: IterKind::Spatial };
        let packed = strided_loads(&x.load([c.expr(), &v * 2 + &k]), &along);
        assert_eq!(packed.value.to_string(), "x_phases[c, k % 2, v + k // 2]");
        assert_eq!(packed.copies[0].2.const_shape(), Some(vec![3, 2, 16]));
        let unit = strided_loads(&x.load([c.expr(), &v + &k]), &along);
        assert!(unit.copies.is_empty());
    }
}
