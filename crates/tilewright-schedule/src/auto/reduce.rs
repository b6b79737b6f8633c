//! Loops for a reduction: contractions, pooling, sums and maxima.
//!
//! The result is computed in tiles that stay in registers. One axis is the *vector* axis `v`,
//! along which a tile is a few vectors long; another may be the *row* axis `u`, along which a
//! tile has several rows, so that each vector that is loaded serves all rows:
//!
//! ```text
//! for the other spatial axes, tiles of v, tiles of u:
//!     acc[rows][vectors] = identity
//!     for the reduction axes:
//!         acc[u][v] = op(acc[u][v], value(u, v))
//!     out[u][v] = epilogue(acc[u][v])
//! ```
//!
//! Both axes come from the accesses: `v` should move each load by one or not at all, `u` should
//! leave the loads that move along `v` where they are. Nothing depends on what the operator is
//! called. Ragged extents give a second, smaller tile, never a condition inside of the tile.
//!
//! Tiles of `v` are outside of tiles of `u`, or inside, by which operand is cheaper to read again. A
//! tile is as many vectors long as leave what they are made of in the second-level cache.
//!
//! Where only a reduction axis runs along memory (a matrix times a vector), the vector axis is
//! that axis: each output has one vector of partial results, which are combined at the end. This
//! is the one case that changes the order of a reduction.
//!
//! An elementwise stage that follows and reads the result point by point is computed from the
//! registers (the epilogue).

use std::collections::HashMap;

use tilewright_analysis::Stage;
use tilewright_analysis::stage::Extent;
use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    Attr, BinOp, Buffer, DType, Dim, Expr, Fold, ForKind, IterKind, Range, Stmt, StmtKind, Var,
};

use crate::auto::affine::Affine;
use crate::auto::axes::{Access, Axis, fuse, loose_vars, units};
use crate::auto::emit::{Point, Views, for_each, nest};
use crate::auto::pack;
use tilewright_target::Target;

/// What is done with the finished value of each output element.
struct Finish {
    buffer: Buffer,
    indices: Vec<Expr>,
    /// The stored value, with loads of `result` for the reduced value.
    value: Expr,
    /// The reduction's own buffer.
    result: Buffer,
}

/// A reduction, prepared for scheduling.
struct Contraction {
    op: BinOp,
    value: Expr,
    init: Expr,
    axes: Vec<Axis>,
    units: HashMap<Var, Expr>,
    loads: Vec<Access>,
    finish: Finish,
    dtype: DType,
}

/// The loops of a reduction stage, and of the elementwise stage after it where there is one that
/// [`follows`]. `None` if the stage is not of the form `acc = op(acc, value)`.
pub fn schedule(
    stage: &Stage,
    epilogue: Option<&Stage>,
    target: &Target,
    views: &mut Views,
) -> Option<Stmt> {
    let mut c = Contraction::new(stage, epilogue)?;
    let v = c.vector_axis(target);
    Some(match v {
        Some(v) if c.axes[v].kind == IterKind::Spatial => {
            let packed = pack::strided_loads(&c.value, &c.axes[v]);
            c.loads = Access::loads(&packed.value);
            c.value = packed.value.clone();
            Stmt::seq([packed.fill(views), c.spatial_vector(v, target, views)])
        }
        Some(v) => c.reduce_vector(v, target, views),
        None => c.scalar(views),
    })
}

/// Whether `next` only maps the result of the reduction `stage` point by point: for each of its
/// iteration variables, the reduction's variable that it stands for.
pub fn follows(stage: &Stage, next: &Stage) -> Option<HashMap<Var, Expr>> {
    if next.is_reduction() || stage.loads().iter().any(|(b, _)| *b == next.buffer) {
        return None;
    }
    // Where it is stored must not depend on the result.
    if next.indices.iter().any(|i| i.loaded_buffers().contains(&stage.buffer)) {
        return None;
    }
    let axes = stage.covers_buffer()?;
    let mut map: HashMap<Var, Expr> = HashMap::new();
    let mut seen = false;
    for (_, indices) in next.loads().into_iter().filter(|(b, _)| *b == stage.buffer) {
        for (index, axis) in indices.iter().zip(&axes) {
            match (index.as_var(), axis) {
                (Some(v), Some(axis)) => match map.get(v) {
                    Some(old) if old.as_var() != Some(axis) => return None,
                    _ => {
                        map.insert(v.clone(), axis.expr());
                    }
                },
                (None, None) if index.as_int() == Some(0) => {}
                (Some(_), None) => {}
                (None, Some(_)) if index.as_int() == Some(0) => {}
                _ => return None,
            }
        }
        seen = true;
    }
    // Each variable of the reduction stands for exactly one of `next`, of the same extent.
    let mut taken: Vec<Var> = Vec::new();
    for (v, extent, _) in next.dims() {
        match map.get(v).and_then(Expr::as_var) {
            Some(axis) => {
                let (_, of, _) = stage.dims().find(|(s, ..)| *s == axis)?;
                if of != extent || taken.contains(axis) {
                    return None;
                }
                taken.push(axis.clone());
            }
            None if extent == 1 => {
                map.insert(v.clone(), Expr::int(0, v.dtype()));
            }
            None => return None,
        }
    }
    let spatial = stage.dims().filter(|i| i.2 == IterKind::Spatial);
    let all = spatial.into_iter().all(|(v, extent, _)| extent == 1 || taken.contains(v));
    (seen && all).then_some(map)
}

impl Contraction {
    fn new(stage: &Stage, epilogue: Option<&Stage>) -> Option<Self> {
        let reduction = stage.reduction()?;
        let finish = match epilogue {
            None => Finish {
                buffer: stage.buffer.clone(),
                indices: stage.indices.clone(),
                value: stage.buffer.load(stage.indices.clone()),
                result: stage.buffer.clone(),
            },
            Some(next) => {
                let mut rename = Subst::vars(follows(stage, next)?);
                Finish {
                    buffer: next.buffer.clone(),
                    indices: next.indices.iter().map(|i| rename.expr(i)).collect(),
                    value: rename.expr(&next.value),
                    result: stage.buffer.clone(),
                }
            }
        };
        let iters: Vec<(Var, Dim, IterKind)> =
            stage.dims().map(|(v, e, k)| (v.clone(), e, k)).collect();
        // It runs where every reduction variable has its first value.
        let first = stage.iters().filter(|(_, _, kind)| *kind == IterKind::Reduce);
        let first: HashMap<Var, Expr> =
            first.map(|(v, ..)| (v.clone(), Expr::int(0, v.dtype()))).collect();
        let init = Subst::vars(first).expr(stage.init.as_ref()?);
        let loads = Access::loads(&reduction.value);
        let mut accesses = loads.clone();
        accesses.extend(Access::loads(&init));
        accesses.push(Access::new(&finish.buffer, &finish.indices));
        accesses
            .extend(Access::loads(&finish.value).into_iter().filter(|a| a.buffer != finish.result));
        let mut loose = loose_vars(&reduction.value);
        loose.extend(loose_vars(&init));
        loose.extend(loose_vars(&finish.value));
        Some(Contraction {
            op: reduction.op,
            axes: fuse(&iters, &accesses, &loose),
            units: units(&iters),
            init,
            dtype: stage.buffer.dtype(),
            value: reduction.value,
            loads,
            finish,
        })
    }

    fn spatial(&self) -> impl Iterator<Item = usize> {
        (0..self.axes.len()).filter(|&k| self.axes[k].kind == IterKind::Spatial)
    }

    fn reduce(&self) -> impl Iterator<Item = usize> {
        (0..self.axes.len()).filter(|&k| self.axes[k].kind == IterKind::Reduce)
    }

    /// Product of all extents, for decisions.
    fn work(&self) -> i64 {
        (0..self.axes.len()).map(|k| self.len(k)).fold(1, i64::saturating_mul)
    }

    /// The extent of an axis, for decisions.
    fn len(&self, axis: usize) -> i64 {
        self.axes[axis].extent.estimate()
    }

    fn lanes(&self, target: &Target) -> i64 {
        let widest = self.loads.iter().map(|l| l.buffer.dtype().bytes()).max().unwrap_or(1);
        target.vectors.lanes(widest.max(self.dtype.bytes()))
    }

    /// By how much each load moves along an axis; `None` where it does not move evenly.
    fn steps(&self, axis: usize) -> impl Iterator<Item = Option<i64>> {
        self.loads.iter().map(move |l| self.axes[axis].step(l.offset.as_ref()?))
    }

    /// The axis to vectorise: the one with the least estimated cost for each useful lane.
    fn vector_axis(&self, target: &Target) -> Option<usize> {
        let lanes = self.lanes(target);
        let spatial = self.spatial().map(|k| self.len(k)).fold(1, i64::saturating_mul);
        let reduced = self.reduce().map(|k| self.len(k)).fold(1, i64::saturating_mul);
        let store = Affine::of_access(&self.finish.buffer, &self.finish.indices);
        let loose = loose_vars(&self.value);
        let mut best: Option<(f64, usize)> = None;
        for k in 0..self.axes.len() {
            let extent = self.len(k);
            let lazy = self.axes[k].parts.iter().any(|(v, _)| loose.contains(v));
            if extent < lanes.min(4) || lazy {
                continue;
            }
            let loads: f64 = self
                .steps(k)
                .map(|s| match s {
                    Some(0) => 0.5,
                    Some(1) => 1.0,
                    Some(s) if pack::PHASES.contains(&s) => 1.5,
                    _ => lanes as f64,
                })
                .sum();
            let used = extent as f64 / (extent as f64 / lanes as f64).ceil() / lanes as f64;
            let finish = match self.axes[k].kind {
                // A vector of partial results takes about this many steps to combine.
                IterKind::Reduce if extent >= 2 * lanes => {
                    2.0 * lanes as f64 / (reduced as f64 / lanes as f64)
                }
                IterKind::Reduce => continue,
                _ => match store.as_ref().and_then(|a| self.axes[k].step(a)) {
                    Some(1) => 1.0 / reduced as f64,
                    _ => lanes as f64 / reduced as f64,
                },
            };
            let cost = (loads + finish) / used;
            if best.is_none_or(|(b, _)| cost < b) {
                best = Some((cost, k));
            }
        }
        let scalar = (self.loads.len() as f64) * lanes as f64;
        best.filter(|(cost, _)| *cost < scalar && spatial > 0).map(|(_, k)| k)
    }

    /// The spatial axis along which a tile has rows: the loads that move along `v` stay where
    /// they are along it, so that it shares them.
    fn row_axis(&self, v: usize) -> Option<usize> {
        let moves_along_v: Vec<bool> = self.steps(v).map(|s| s != Some(0)).collect();
        let gain = |u: usize| -> usize {
            let shared = |(s, &moves): (Option<i64>, &bool)| moves && s == Some(0);
            self.steps(u).zip(&moves_along_v).filter(|(s, m)| shared((*s, m))).count()
        };
        let loose = loose_vars(&self.value);
        self.spatial()
            .filter(|&u| u != v && gain(u) > 0)
            .filter(|&u| self.axes[u].parts.iter().all(|(x, _)| !loose.contains(x)))
            .max_by_key(|&u| (gain(u), self.len(u)))
    }

    /// Bytes that the loads which move along an axis touch while each axis goes so far.
    fn footprint(&self, axis: usize, far: impl Fn(usize) -> i64) -> i64 {
        let size = |l: &Access| {
            // Axes that move a load by the same step, as those of a window and of what it slides
            // over, meet at the same elements.
            let mut spans: HashMap<Option<i64>, i64> = HashMap::new();
            for (k, a) in self.axes.iter().enumerate() {
                let step = l.offset.as_ref().and_then(|offset| a.step(offset));
                let span = spans.entry(step).or_insert(1);
                *span = match step {
                    Some(0) => 1,
                    Some(_) => *span + far(k) - 1,
                    None => span.saturating_mul(far(k)),
                };
            }
            let bytes = l.buffer.dtype().bytes() as i64;
            spans.values().fold(bytes, |n, span| n.saturating_mul(*span))
        };
        let moved = self.loads.iter().zip(self.steps(axis)).filter(|(_, s)| *s != Some(0));
        moved.map(|(l, _)| size(l)).fold(0, i64::saturating_add)
    }

    /// Tiles along a spatial axis `v`, with rows along `u` where there is such an axis.
    fn spatial_vector(&self, v: usize, target: &Target, views: &mut Views) -> Stmt {
        let lanes = self.lanes(target);
        let u = self.row_axis(v);
        let vectors = (self.len(v) as u64).div_ceil(lanes as u64) as i64;
        // Registers: accumulators, the vectors of one step, and one broadcast.
        let budget = target.vectors.registers as i64 * 3 / 4;
        // What the vectors of a tile are made of stays in the cache while tiles of rows go by.
        let fits = |n: &i64| {
            let read = self.footprint(v, |k| match self.axes[k].kind {
                _ if k == v => n * lanes,
                IterKind::Reduce => self.len(k),
                _ => 1,
            });
            read <= target.caches.l2 as i64
        };
        let most = match u {
            Some(_) => (2..=4).rev().find(fits).unwrap_or(2),
            None => budget.min(8),
        };
        let per_row = balanced(vectors, most);
        let rows = match u {
            Some(u) => balanced_rows(self.len(u), (budget / per_row).clamp(1, 14)),
            None => 1,
        };
        let v_tiles = Tiles::new(self.axes[v].extent, per_row * lanes, halves(lanes));
        let u_tiles = u.map(|u| Tiles::new(self.axes[u].extent, rows, vec![1]));

        // Axes that move every operand go outermost. The others go with the tiles that they share
        // an operand with, and the operand that is cheaper to read again for each tile of the other
        // decides the order.
        let others: Vec<usize> = self.spatial().filter(|&k| k != v && Some(k) != u).collect();
        let moves = |k: usize, along: usize| {
            self.steps(k).zip(self.steps(along)).any(|(a, b)| a != Some(0) && b != Some(0))
        };
        let with_u = |k: &usize| u.is_some_and(|u| moves(*k, u));
        let (near_u, near_v): (Vec<usize>, Vec<usize>) = others.iter().partition(|k| with_u(k));
        let (outer, near_u): (Vec<usize>, Vec<usize>) =
            near_u.into_iter().partition(|k| moves(*k, v));
        #[derive(Clone, Copy)]
        enum Loop {
            Axis(usize),
            VTile,
            UTile,
        }
        let along = |near: &[usize], tile| -> Vec<Loop> {
            near.iter().map(|&k| Loop::Axis(k)).chain([tile]).collect()
        };
        let along_v = along(&near_v, Loop::VTile);
        let mut order: Vec<Loop> = outer.iter().map(|&k| Loop::Axis(k)).collect();
        match (u, &u_tiles) {
            (Some(u), Some(u_tiles)) => {
                let along_u = along(&near_u, Loop::UTile);
                // Bytes that are read if the tiles of one are inside of those of the other.
                let read = |outside: &Tiles, near: &[usize], inside: usize| {
                    let extents = near.iter().map(|&k| self.len(k));
                    let count = extents.fold(outside.count().estimate(), i64::saturating_mul);
                    count.saturating_mul(self.footprint(inside, |k| self.len(k)))
                };
                match read(&v_tiles, &near_v, u) <= read(u_tiles, &near_u, v) {
                    true => order.extend(along_v.into_iter().chain(along_u)),
                    false => order.extend(along_u.into_iter().chain(along_v)),
                }
            }
            _ => order.extend(along_v),
        }
        let loops: Vec<(String, Dim)> = order
            .iter()
            .map(|l| match l {
                Loop::Axis(k) => (self.axes[*k].name(), self.axes[*k].extent),
                Loop::VTile => (format!("{}_tile", self.axes[v].name()), v_tiles.count()),
                Loop::UTile => (
                    u.map_or(String::new(), |u| format!("{}_tile", self.axes[u].name())),
                    u_tiles.as_ref().map_or(Dim::from(1), Tiles::count),
                ),
            })
            .collect();
        nest(&loops, loops.len(), self.work(), |at| {
            let mut fixed: Vec<(usize, Expr)> = Vec::new();
            let (mut v_tile, mut u_tile) = (Expr::i32(0), Expr::i32(0));
            for (l, at) in order.iter().zip(at) {
                match l {
                    Loop::Axis(k) => fixed.push((*k, at)),
                    Loop::VTile => v_tile = at,
                    Loop::UTile => u_tile = at,
                }
            }
            v_tiles.each(&v_tile, |v_start, v_len| {
                let tile = |u_start: Option<(usize, Expr)>, rows: i64, views: &mut Views| {
                    self.tile(&fixed, (v, &v_start, v_len), u_start, rows, lanes, views)
                };
                match (u, &u_tiles) {
                    (Some(u), Some(tiles)) => {
                        tiles.each(&u_tile, |start, rows| tile(Some((u, start)), rows, views))
                    }
                    _ => tile(None, 1, views),
                }
            })
        })
    }

    /// One tile: `rows` along the row axis, `v_len` along the vector axis.
    fn tile(
        &self,
        fixed: &[(usize, Expr)],
        (v, v_start, v_len): (usize, &Expr, i64),
        u_start: Option<(usize, Expr)>,
        rows: i64,
        lanes: i64,
        views: &mut Views,
    ) -> Stmt {
        let chunks: Vec<(i64, i64)> = (0..v_len)
            .step_by(lanes as usize)
            .map(|start| (start, lanes.min(v_len - start)))
            .collect();
        let accs: Vec<Buffer> = chunks
            .iter()
            .map(|(_, len)| {
                let acc = Buffer::with_extents("acc", &[rows * len], self.dtype);
                acc.derive_storage(|d| d.scope = "local".into())
            })
            .collect();
        // A statement for every row, vector and lane of the tile.
        let cells = |views: &mut Views,
                     reduce: &[(usize, Expr)],
                     stmt: &dyn Fn(&Point, &Buffer, Expr, &mut Views) -> Stmt|
         -> Stmt {
            for_each(ForKind::Unrolled, "row", rows, |row| {
                Stmt::seq(chunks.iter().zip(&accs).map(|((start, len), acc)| {
                    for_each(ForKind::Vectorized, "lane", *len, |lane| {
                        let at = row.clone() * *len + &lane;
                        let mut axes: Vec<(&Axis, Expr)> =
                            fixed.iter().map(|(k, e)| (&self.axes[*k], e.clone())).collect();
                        axes.push((&self.axes[v], v_start + *start + &lane));
                        if let Some((u, start)) = &u_start {
                            axes.push((&self.axes[*u], start + &row));
                        }
                        axes.extend(reduce.iter().map(|(k, e)| (&self.axes[*k], e.clone())));
                        stmt(&Point::new(&self.units, axes), acc, at, views)
                    })
                }))
            })
        };
        let clear = cells(views, &[], &|point, acc, at, views| {
            Stmt::store(acc, vec![at], point.value(&self.init, views, None))
        });
        let reduce: Vec<usize> = self.reduce().collect();
        let update = self.reduce_loops(&reduce, |at| {
            cells(views, &at, &|point, acc, at, views| {
                let value = point.value(&self.value, views, None);
                let sum = Expr::binary(self.op, acc.load([at.clone()]), value);
                Stmt::store(acc, vec![at], sum)
            })
        });
        let finish = cells(views, &[], &|point, acc, at, views| {
            self.finish_at(point, acc.load([at]), views)
        });
        let body = Stmt::seq([clear, update, finish]);
        accs.iter().rev().fold(body, |body, acc| Stmt::allocate(acc, body))
    }

    /// Serial loops over reduction axes; the innermost is not unrolled further.
    fn reduce_loops(
        &self,
        reduce: &[usize],
        body: impl FnOnce(Vec<(usize, Expr)>) -> Stmt,
    ) -> Stmt {
        let vars: Vec<Var> = reduce.iter().map(|&k| Var::index(self.axes[k].name())).collect();
        let at = reduce.iter().zip(&vars).map(|(&k, v)| (k, v.expr())).collect();
        let body = body(at);
        reduce.iter().zip(&vars).rev().fold(body, |body, (&k, var)| {
            let range = Range::upto(self.axes[k].extent.typed(DType::I32));
            let annotations = [("pragma_no_unroll".into(), Attr::Int(1))].into();
            Stmt::new(StmtKind::For {
                var: var.clone(),
                range,
                kind: ForKind::Serial,
                annotations,
                body,
            })
        })
    }

    /// Stores the finished value of the output element at a point.
    fn finish_at(&self, point: &Point, value: Expr, views: &mut Views) -> Stmt {
        let f = &self.finish;
        let value = point.value(&f.value, views, Some((&f.result, &value)));
        point.store(&f.buffer, &f.indices, value, views)
    }

    /// Partial results in the lanes of a vector along the reduction axis `v`.
    fn reduce_vector(&self, v: usize, target: &Target, views: &mut Views) -> Stmt {
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
            let main = self.reduce_loops(&inner, |reduce| {
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
                _ => self.reduce_loops(&inner, |reduce| {
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

    /// One output element after the other.
    fn scalar(&self, views: &mut Views) -> Stmt {
        let spatial: Vec<usize> = self.spatial().collect();
        let reduce: Vec<usize> = self.reduce().collect();
        let loops: Vec<(String, Dim)> =
            spatial.iter().map(|&k| (self.axes[k].name(), self.axes[k].extent)).collect();
        nest(&loops, loops.len(), self.work(), |at| {
            let fixed: Vec<(&Axis, Expr)> =
                spatial.iter().map(|&k| &self.axes[k]).zip(at).collect();
            let acc = Buffer::with_extents("acc", &[1], self.dtype)
                .derive_storage(|d| d.scope = "local".into());
            let zero = Expr::i32(0);
            let init = Point::new(&self.units, fixed.clone()).value(&self.init, views, None);
            let clear = Stmt::store(&acc, vec![zero.clone()], init);
            let update = self.reduce_loops(&reduce, |reduce| {
                let mut axes = fixed.clone();
                axes.extend(reduce.iter().map(|(k, e)| (&self.axes[*k], e.clone())));
                let value = Point::new(&self.units, axes).value(&self.value, views, None);
                let sum = Expr::binary(self.op, acc.load([zero.clone()]), value);
                Stmt::store(&acc, vec![zero.clone()], sum)
            });
            let point = Point::new(&self.units, fixed.clone());
            let finish = self.finish_at(&point, acc.load([zero.clone()]), views);
            Stmt::allocate(&acc, Stmt::seq([clear, update, finish]))
        })
    }
}

/// Tiles of one size along an axis, and a smaller one at the end where the size does not divide.
struct Tiles {
    size: i64,
    full: Dim,
    rest: Dim,
    /// What an open rest is made of: sizes of which each divides the one before, the last one 1.
    parts: Vec<i64>,
}

impl Tiles {
    fn new(extent: Dim, size: i64, parts: Vec<i64>) -> Self {
        let known = extent.known().and_then(|n| i64::try_from(n).ok());
        let size = known.map_or(size, |n| size.min(n)).max(1);
        let (full, rest) = (extent.floordiv(size.dim()), extent.modulo(size.dim()));
        Tiles { size, full, rest, parts }
    }

    /// Where the length of the last one is open, there is one more, which may be empty.
    fn count(&self) -> Dim {
        if self.rest == 0 { self.full } else { self.full + 1 }
    }

    /// The code of a rest of open length, which begins at `start`.
    fn open_rest(&self, start: &Expr, body: &mut impl FnMut(Expr, i64) -> Stmt) -> Stmt {
        let mut around = None;
        Stmt::seq(self.parts.iter().filter(|part| **part < self.size).map(|&part| {
            // What is left of the part before.
            let (skip, left) = match around.replace(part) {
                None => (Dim::from(0), self.rest),
                Some(n) => (self.rest.floordiv(n.dim()) * n.dim(), self.rest.modulo(n.dim())),
            };
            let start = start.clone() + skip.typed(DType::I32);
            for_each(ForKind::Serial, "rest", left.floordiv(part.dim()), |k| {
                body(start + k * part, part)
            })
        }))
    }

    /// The code of tile number `at`, given its start and length.
    fn each(&self, at: &Expr, mut body: impl FnMut(Expr, i64) -> Stmt) -> Stmt {
        let start = at.clone() * self.size;
        let number = |d: Dim| d.known().and_then(|n| i64::try_from(n).ok());
        match (number(self.full), number(self.rest)) {
            (_, Some(0)) => body(start, self.size),
            (Some(0), Some(rest)) => body(start, rest),
            (_, rest) => {
                let then = body(start.clone(), self.size);
                let otherwise = match rest {
                    Some(rest) => body(start, rest),
                    // Tiles have constant sizes.
                    None => self.open_rest(&start, &mut body),
                };
                Stmt::if_else(at.clone().less(self.full.typed(DType::I32)), then, otherwise)
            }
        }
    }
}

/// A number of lanes and its halves down to four, and one.
fn halves(lanes: i64) -> Vec<i64> {
    let halves = std::iter::successors(Some(lanes), |n| Some(n / 2));
    halves.take_while(|n| *n >= 4).chain([1]).collect()
}

/// The largest number up to `max` for the parts that `total` is cut into evenly.
fn balanced(total: i64, max: i64) -> i64 {
    let parts = (total as u64).div_ceil(max.max(1) as u64).max(1);
    (total as u64).div_ceil(parts) as i64
}

/// Rows of a tile: an exact divisor near the limit, else a balanced number.
fn balanced_rows(total: i64, max: i64) -> i64 {
    let divisor = (1..=max.min(total)).rev().find(|r| total % r == 0).unwrap_or(1);
    if divisor * 3 >= max * 2 { divisor } else { balanced(total, max) }
}
