//! Vectors along the reduction: partial results in lanes, which are combined at the end.

use tilewright_analysis::stage::Extent;
use tilewright_ir::equal::same_expr;
use tilewright_ir::{BinOp, Buffer, DType, Dim, Expr, ForKind, Stmt};
use tilewright_target::Target;

use super::Contraction;
use crate::auto::axes::Axis;
use crate::auto::emit::{Point, Views, for_each, nest};

impl Contraction {
    /// Partial results in the lanes of a vector along the reduction axis `v`.
    pub(super) fn reduce_vector(&self, v: usize, target: &Target, views: &mut Views) -> Stmt {
        let lanes = self.lanes(target);
        let extent = self.axes[v].extent;
        let length = extent.estimate();
        // Several vectors, so that one addition need not wait for the one before.
        let vectors = match length / lanes {
            0..2 => 1,
            2..4 => 2,
            _ => 4,
        };
        let width = vectors * lanes;
        let (full, rest) = (extent.floordiv(width.dim()), extent.modulo(width.dim()));
        let spatial: Vec<usize> = self.spatial().collect();
        let inner: Vec<usize> = self.reduce().filter(|&k| k != v).collect();
        let loops: Vec<(String, Dim)> =
            spatial.iter().map(|&k| (self.axes[k].name(), self.axes[k].extent)).collect();
        nest(&loops, loops.len(), self.work(), |at| {
            let fixed: Vec<(usize, Expr)> = spatial.iter().copied().zip(at).collect();
            let local = |name: &str, n: i64| {
                Buffer::with_extents(name, &[n], self.dtype)
                    .derive_storage(|d| d.scope = "local".into())
            };
            let (partial, total) = (local("partial", width), local("total", 1));
            let zero = Expr::i32(0);
            let point = |reduce: &[(usize, Expr)], along: Expr| {
                let mut axes: Vec<(&Axis, Expr)> =
                    fixed.iter().map(|(k, e)| (&self.axes[*k], e.clone())).collect();
                axes.extend(reduce.iter().map(|(k, e)| (&self.axes[*k], e.clone())));
                axes.push((&self.axes[v], along));
                Point::new(&self.units, axes)
            };
            let each_lane = |stmt: &mut dyn FnMut(Expr) -> Stmt| {
                Stmt::seq((0..vectors).map(|k| {
                    for_each(ForKind::Vectorized, "lane", lanes, |lane| stmt(lane + k * lanes))
                }))
            };
            let add = |acc: &Buffer, at: Expr, value: Expr| {
                let sum = Expr::binary(self.op, acc.load([at.clone()]), value);
                Stmt::store(acc, vec![at], sum)
            };
            // What the reduction starts from counts once. For `min` and `max` it may count again.
            let init = point(&[], zero.clone()).value(&self.init, views, None);
            let (neutral, start) = match self.op {
                BinOp::Add => (Expr::constant(0.0, self.dtype), Some(init)),
                BinOp::Mul => (Expr::constant(1.0, self.dtype), Some(init)),
                _ => (init, None),
            };
            let start = start.filter(|init| !same_expr(init, &neutral));
            let clear = each_lane(&mut |at| Stmt::store(&partial, vec![at], neutral.clone()));
            let main = self.reduce_loops(&inner, i64::MAX, &[], |reduce| {
                let name = self.axes[v].name();
                for_each(ForKind::Serial, &name, full, |step| {
                    each_lane(&mut |lane| {
                        let p = point(&reduce, step.clone() * width + &lane);
                        add(&partial, lane, p.value(&self.value, views, None))
                    })
                })
            });
            // Halve the vector of partial results until one is left.
            let halves = std::iter::successors(Some(width / 2), |n| Some(n / 2));
            let join = Stmt::seq(halves.take_while(|n| *n > 0).map(|n| {
                for_each(ForKind::Vectorized, "lane", n, |lane| {
                    add(&partial, lane.clone(), partial.load([lane + n]))
                })
            }));
            let joined = partial.load([zero.clone()]);
            let joined = match start {
                Some(init) => Expr::binary(self.op, init, joined),
                None => joined,
            };
            let start = Stmt::store(&total, vec![zero.clone()], joined);
            let tail = match rest.known() {
                Some(0) => Stmt::nop(),
                _ => self.reduce_loops(&inner, i64::MAX, &[], |reduce| {
                    for_each(ForKind::Serial, "rest", rest, |step| {
                        let p = point(&reduce, step + (full * width.dim()).typed(DType::I32));
                        add(&total, zero.clone(), p.value(&self.value, views, None))
                    })
                }),
            };
            // The finished value does not depend on the reduction axis: any value will do.
            let finish =
                self.finish_at(&point(&[], zero.clone()), total.load([zero.clone()]), views);
            let body = Stmt::seq([clear, main, join, start, tail, finish]);
            Stmt::allocate(&partial, Stmt::allocate(&total, body))
        })
    }
}
