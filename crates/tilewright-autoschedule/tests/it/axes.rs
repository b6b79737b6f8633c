//! Iteration variables that act as one.

use tilewright_autoschedule::axes::{Access, fuse, loose_vars};
use tilewright_ir::{Buffer, DType, Dim, Expr, IterKind, Var, dim};

#[test]
fn pixels_fuse_and_channels_stay() {
    let [c, h, w] = ["c", "h", "w"].map(Var::index);
    let b = Buffer::with_extents("B", &[4, 5, 6], DType::F32);
    let bias = Buffer::with_extents("bias", &[4], DType::F32);
    let value = b.load([c.expr(), h.expr(), w.expr()]) + bias.load([c.expr()]);
    let iters = [(c, 4), (h, 5), (w, 6)].map(|(v, n)| (v, Dim::from(n), IterKind::Spatial));
    let axes = fuse(&iters, &Access::loads(&value), &loose_vars(&value));
    assert_eq!(axes.iter().map(|a| a.extent).collect::<Vec<_>>(), dim::shape(&[4, 30]));
}

#[test]
fn a_variable_in_a_condition_is_not_fused() {
    let [h, w] = ["h", "w"].map(Var::index);
    let b = Buffer::with_extents("B", &[5, 6], DType::F32);
    let inside = b.load([h.expr(), w.expr()]);
    let value = Expr::if_then_else(w.expr().less(3), inside.clone(), inside);
    let iters = [(h, 5), (w, 6)].map(|(v, n)| (v, Dim::from(n), IterKind::Spatial));
    assert_eq!(fuse(&iters, &Access::loads(&value), &loose_vars(&value)).len(), 2);
}
