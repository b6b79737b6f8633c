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

mod partial;

use std::collections::{HashMap, HashSet};

use tilewright_analysis::Stage;
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    Attr, Attrs, BinOp, Buffer, DType, Dim, Expr, Fold, ForKind, IterKind, Range, Stmt, StmtKind,
    Var,
};

use crate::auto::affine::Affine;
use crate::auto::axes::{Access, Axis, fuse, loose_vars, units};
use crate::auto::emit::{Point, Views, for_each, nest};
use crate::auto::pack;
use crate::auto::slide::Slide;
use crate::auto::tiles::{Tiles, balanced, balanced_rows, halves};
use tilewright_target::Target;

/// The most updates of vectors that a tile unrolls: windows of pools, and of a channel each.
const UNROLLED: i64 = 36;

/// The most updates of vectors in a tile of rows whose windows overlap.
const SLID: i64 = 200;

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
pub(crate) struct Contraction {
    op: BinOp,
    value: Expr,
    init: Expr,
    axes: Vec<Axis>,
    units: HashMap<Var, Expr>,
    loads: Vec<Access>,
    finish: Finish,
    dtype: DType,
    /// Bounds of steps.
    guards: Vec<Bounds>,
    /// Variables whose values are used directly, also in bounds.
    loose: HashSet<Var>,
    /// Whether loops around it are shared by threads, and none of its own.
    is_inside: bool,
}

/// Bounds of a reduction variable: only the steps with `inside.0 <= index + step * var < inside.1` change
/// anything, such as those that read inside of an image.
pub(crate) struct Guard {
    /// The index where the variable is zero.
    pub index: Expr,
    /// The reduction variable.
    pub var: Var,
    /// By how much it moves the index.
    pub step: i64,
    /// The first index inside, and the end of these.
    pub inside: (i64, i64),
}

impl Guard {
    /// All variables that decide.
    pub(crate) fn vars(&self) -> HashSet<Var> {
        free_vars(&self.index).into_iter().chain([self.var.clone()]).collect()
    }
}

/// A [`Guard`] of the axis of a reduction variable.
struct Bounds {
    axis: usize,
    index: Expr,
    step: i64,
    inside: (i64, i64),
}

/// The loops of a reduction stage, and of the elementwise stage after it where there is one that
/// [`follows`]. `None` if the stage is not of the form `acc = op(acc, value)`.
pub(crate) fn schedule(
    stage: &Stage,
    epilogue: Option<&Stage>,
    target: &Target,
    views: &mut Views,
) -> Option<Stmt> {
    Some(Contraction::of(stage, epilogue)?.loops(target, views))
}

/// Whether [`schedule`] makes loops of a stage.
pub(crate) fn has_loops(stage: &Stage, epilogue: Option<&Stage>) -> bool {
    Contraction::new(stage, epilogue, None, &[]).is_some()
}

/// The iterations of a stage that are left where loops around it have the others.
pub(crate) struct Left {
    /// Variables with extents and kinds, in the order of the stage.
    pub iters: Vec<(Var, Dim, IterKind)>,
    /// The values of variables of the stage that are none of these.
    pub given: HashMap<Var, Expr>,
}

/// As [`schedule`], of the iterations that are left. Its loops run one after the other.
pub(crate) fn left(
    stage: &Stage,
    left: &Left,
    epilogue: Option<&Stage>,
    target: &Target,
    views: &mut Views,
) -> Option<Stmt> {
    Some(Contraction::new(stage, epilogue, Some(left), &[])?.loops(target, views))
}

/// A reduction with bounds for its steps, whose vectors run along an axis without them.
pub(crate) struct Bounded {
    reduction: Contraction,
    vector_axis: usize,
}

impl Bounded {
    /// Its loops.
    pub(crate) fn loops(&self, target: &Target, views: &mut Views) -> Stmt {
        self.reduction.spatial_vector(self.vector_axis, target, views)
    }
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
    /// `None` if the stage is not of the form `acc = op(acc, value)`.
    pub(crate) fn of(stage: &Stage, epilogue: Option<&Stage>) -> Option<Self> {
        Contraction::new(stage, epilogue, None, &[])
    }

    /// The same reduction with bounds for its steps, as a stage of its own. `None` where vectors of the
    /// one without run along an axis that has them, or would be fuller than those beside it.
    pub(crate) fn bounded(
        &self,
        stage: &Stage,
        guards: &[Guard],
        epilogue: Option<&Stage>,
        target: &Target,
    ) -> Option<Bounded> {
        let c = Contraction::new(stage, epilogue, None, guards)?;
        let (of_free, v) = (self.vector_axis(target)?, c.vector_axis(target)?);
        let (lanes, extent) = (c.lanes(target), c.len(v));
        let is_full = extent % lanes == 0 || extent >= 3 * lanes;
        let same =
            self.innermost(of_free) == c.innermost(v) && (is_full || self.len(of_free) == extent);
        let is_spatial = c.axes[v].kind == IterKind::Spatial && !c.reads_again(v);
        (same && is_spatial).then_some(Bounded { reduction: c, vector_axis: v })
    }

    /// The variable along which its vectors run, where they do.
    pub(crate) fn vector_variable(&self, target: &Target) -> Option<&Var> {
        self.innermost(self.vector_axis(target)?)
    }

    /// The variable of an axis that moves first.
    fn innermost(&self, axis: usize) -> Option<&Var> {
        self.axes[axis].parts.last().map(|p| &p.0)
    }

    fn new(
        stage: &Stage,
        epilogue: Option<&Stage>,
        left: Option<&Left>,
        guards: &[Guard],
    ) -> Option<Self> {
        let mut reduction = stage.reduction()?;
        let mut finish = match epilogue {
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
        let mut iters: Vec<(Var, Dim, IterKind)> =
            stage.dims().map(|(v, e, k)| (v.clone(), e, k)).collect();
        // It runs where every reduction variable has its first value.
        let first = stage.iters().filter(|(_, _, kind)| *kind == IterKind::Reduce);
        let first: HashMap<Var, Expr> =
            first.map(|(v, ..)| (v.clone(), Expr::int(0, v.dtype()))).collect();
        let mut init = Subst::vars(first).expr(stage.init.as_ref()?);
        if let Some(left) = left {
            let mut given = Subst::vars(left.given.clone());
            iters.clone_from(&left.iters);
            init = given.expr(&init);
            reduction.value = given.expr(&reduction.value);
            finish.indices = finish.indices.iter().map(|i| given.expr(i)).collect();
            finish.value = given.expr(&finish.value);
        }
        let loads = Access::loads(&reduction.value);
        let mut accesses = loads.clone();
        accesses.extend(Access::loads(&init));
        accesses.push(Access::new(&finish.buffer, &finish.indices));
        accesses
            .extend(Access::loads(&finish.value).into_iter().filter(|a| a.buffer != finish.result));
        let mut loose = loose_vars(&reduction.value);
        loose.extend(loose_vars(&init));
        loose.extend(loose_vars(&finish.value));
        loose.extend(guards.iter().flat_map(Guard::vars));
        let axes = fuse(&iters, &accesses, &loose);
        let bounds = guards.iter().map(|g| {
            let axis = axes.iter().position(|a| a.parts.iter().any(|(v, _)| *v == g.var))?;
            Some(Bounds { axis, index: g.index.clone(), step: g.step, inside: g.inside })
        });
        let mut loose = loose_vars(&reduction.value);
        loose.extend(guards.iter().flat_map(Guard::vars));
        Some(Contraction {
            guards: bounds.collect::<Option<_>>()?,
            loose,
            is_inside: left.is_some(),
            op: reduction.op,
            axes,
            units: units(&iters),
            init,
            dtype: stage.buffer.dtype(),
            value: reduction.value,
            loads,
            finish,
        })
    }

    fn loops(mut self, target: &Target, views: &mut Views) -> Stmt {
        match self.vector_axis(target) {
            Some(v) if self.axes[v].kind == IterKind::Spatial => {
                if !self.reads_again(v) {
                    return self.spatial_vector(v, target, views);
                }
                let packed = pack::strided_loads(&self.value, &self.axes[v]);
                self.loads = Access::loads(&packed.value);
                self.value = packed.value.clone();
                Stmt::seq([packed.fill(views), self.spatial_vector(v, target, views)])
            }
            Some(v) => self.reduce_vector(v, target, views),
            None => self.scalar(views),
        }
    }

    fn spatial(&self) -> impl Iterator<Item = usize> {
        (0..self.axes.len()).filter(|&k| self.axes[k].kind == IterKind::Spatial)
    }

    fn reduce(&self) -> impl Iterator<Item = usize> {
        (0..self.axes.len()).filter(|&k| self.axes[k].kind == IterKind::Reduce)
    }

    /// Product of all extents, to decide whether threads share it: nothing where they share what is around.
    fn work(&self) -> i64 {
        if self.is_inside {
            return 0;
        }
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

    /// Whether what moves along an axis by more than one element is read again for each place along another
    /// one. Then a copy in which the elements are neighbours pays.
    fn reads_again(&self, v: usize) -> bool {
        let far = |s: Option<i64>| s.is_some_and(|s| ![0, 1].contains(&s));
        self.spatial().filter(|k| *k != v).any(|k| {
            self.steps(v).zip(self.steps(k)).any(|(along, other)| far(along) && other == Some(0))
        })
    }

    /// The axis to vectorise: the one with the least estimated cost for each useful lane.
    fn vector_axis(&self, target: &Target) -> Option<usize> {
        let lanes = self.lanes(target);
        let spatial = self.spatial().map(|k| self.len(k)).fold(1, i64::saturating_mul);
        let reduced = self.reduce().map(|k| self.len(k)).fold(1, i64::saturating_mul);
        let store = Affine::of_access(&self.finish.buffer, &self.finish.indices);
        let mut best: Option<(f64, usize)> = None;
        for k in 0..self.axes.len() {
            let extent = self.len(k);
            let lazy = self.axes[k].parts.iter().any(|(v, _)| self.loose.contains(v));
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
        self.spatial()
            .filter(|&u| u != v && gain(u) > 0)
            .filter(|&u| self.axes[u].parts.iter().all(|(x, _)| !self.loose.contains(x)))
            .max_by_key(|&u| (gain(u), self.len(u)))
    }

    /// Rows of windows that overlap: what moves along the vector axis `v` moves along another axis as well,
    /// by less than a window reaches. Where nothing stays along an axis, and all steps are known. Maxima wait for
    /// arithmetic and not for loads: they share where rows have most in common.
    fn slide(&self, v: usize) -> Option<Slide> {
        let known = self.reduce().all(|k| self.axes[k].extent.known().is_some());
        if !known || self.row_axis(v).is_some() {
            return None;
        }
        let found = |rows: usize, window: usize| {
            let both = self.steps(rows).zip(self.steps(window)).zip(self.steps(v));
            let moving: Vec<_> = both.filter(|(_, along)| *along != Some(0)).map(|m| m.0).collect();
            let &(Some(by), Some(step)) = moving.first()? else { return None };
            let overlap = 0 < step && 0 < by && by < step * self.len(window);
            let same = moving.iter().all(|m| *m == (Some(by), Some(step)));
            let dense = by == step || matches!(self.op, BinOp::Add | BinOp::Mul);
            (overlap && same && dense && by % step == 0).then(|| Slide {
                rows,
                window,
                by: by / step,
            })
        };
        let is_free = |u: &usize| {
            *u != v
                && self.axes[*u].extent.known().is_some_and(|n| n > 1)
                && self.axes[*u].parts.iter().all(|(x, _)| !self.loose.contains(x))
        };
        let rows: Vec<usize> = self.spatial().filter(is_free).collect();
        rows.into_iter().find_map(|u| self.reduce().find_map(|k| found(u, k)))
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
        let slide = self.slide(v);
        let u = slide.as_ref().map(|s| s.rows).or_else(|| self.row_axis(v));
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
        let most = match (u, &slide) {
            (_, Some(_)) => 4,
            (Some(_), None) => (2..=4).rev().find(fits).unwrap_or(2),
            (None, None) => budget.min(8),
        };
        let per_row = balanced(vectors, most);
        let rows = match u {
            Some(u) if slide.is_some() => {
                let steps = self.reduce().map(|k| self.len(k)).fold(per_row, i64::saturating_mul);
                // What is read, weights and masks need some as well.
                let budget = target.vectors.registers as i64 / 2;
                let most = (budget / per_row).min(SLID / steps).clamp(1, 8);
                balanced(self.len(u), most)
            }
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

    /// One tile. Where steps of the reduction have bounds, those of windows that are inside as a whole are
    /// all of them.
    fn tile(
        &self,
        fixed: &[(usize, Expr)],
        v: (usize, &Expr, i64),
        u_start: Option<(usize, Expr)>,
        rows: i64,
        lanes: i64,
        views: &mut Views,
    ) -> Stmt {
        if self.guards.is_empty() {
            return self.steps_of_tile(fixed, v, u_start, rows, lanes, &[], views);
        }
        let axes = fixed.iter().map(|(k, e)| (&self.axes[*k], e.clone())).collect();
        let point = Point::new(&self.units, axes);
        let number = |n: i64| Expr::int(n, DType::I32);
        let mut whole = Expr::bool(true);
        let mut can_be_whole = true;
        let mut ranges = Vec::new();
        for guard in &self.guards {
            let (lo, hi) = guard.inside;
            let first = point.value(&guard.index, views, None).cast(DType::I32);
            let (count, step) = (self.len(guard.axis), guard.step);
            let last = hi - 1 - (count - 1) * step;
            can_be_whole &= lo <= last;
            let is_inside = number(lo).less_equal(first.clone());
            whole = whole.and(is_inside.and(first.clone().less_equal(number(last))));
            // The least and the first too large number of steps with `lo <= first + step * k < hi`.
            let from = (number(lo + step - 1) - &first).floordiv(step).max(number(0));
            let end = ((number(hi - 1) - first).floordiv(step) + 1).min(number(count));
            ranges.push((guard.axis, Range { extent: (end - &from).max(number(0)), min: from }));
        }
        let mut tile = |ranges: &[_]| {
            self.steps_of_tile(fixed, v, u_start.clone(), rows, lanes, ranges, views)
        };
        let some = tile(&ranges);
        match can_be_whole {
            true => Stmt::if_else(whole, tile(&[]), some),
            false => some,
        }
    }

    /// One tile: `rows` along the row axis, `v_len` along the vector axis; reduction axes with their ranges
    /// where these are not their extents.
    #[allow(clippy::too_many_arguments)]
    fn steps_of_tile(
        &self,
        fixed: &[(usize, Expr)],
        (v, v_start, v_len): (usize, &Expr, i64),
        u_start: Option<(usize, Expr)>,
        rows: i64,
        lanes: i64,
        ranges: &[(usize, Range)],
        views: &mut Views,
    ) -> Stmt {
        // A last vector whose lanes are no power of two begins earlier: it computes some results again.
        let again =
            !self.finish.value.loads_from(|b| *b == self.finish.buffer && *b != self.finish.result);
        let chunk = |start: i64| match v_len - start {
            rest if rest >= lanes => (start, lanes),
            rest if again && v_len > lanes && rest.count_ones() > 1 => (v_len - lanes, lanes),
            rest => (start, rest),
        };
        let chunks: Vec<(i64, i64)> = (0..v_len).step_by(lanes as usize).map(chunk).collect();
        let accs: Vec<Buffer> = chunks
            .iter()
            .map(|(_, len)| {
                let acc = Buffer::with_extents("acc", &[rows * len], self.dtype);
                acc.derive_storage(|d| d.scope = "local".into())
            })
            .collect();
        // A statement for every lane of a vector.
        type Cell<'a> = &'a dyn Fn(&Point, &Buffer, Expr, &mut Views) -> Stmt;
        let vector =
            |views: &mut Views, row: &Expr, k: usize, reduce: &[(usize, Expr)], stmt: Cell| {
                let ((start, len), acc) = (chunks[k], &accs[k]);
                for_each(ForKind::Vectorized, "lane", len, |lane| {
                    let at = row.clone() * len + &lane;
                    let mut axes: Vec<(&Axis, Expr)> =
                        fixed.iter().map(|(k, e)| (&self.axes[*k], e.clone())).collect();
                    axes.push((&self.axes[v], v_start + start + &lane));
                    if let Some((u, start)) = &u_start {
                        axes.push((&self.axes[*u], start + row));
                    }
                    axes.extend(reduce.iter().map(|(k, e)| (&self.axes[*k], e.clone())));
                    stmt(&Point::new(&self.units, axes), acc, at, views)
                })
            };
        // And for every row and vector of the tile.
        let cells = |views: &mut Views, reduce: &[(usize, Expr)], stmt: Cell| -> Stmt {
            for_each(ForKind::Unrolled, "row", rows, |row| {
                Stmt::seq((0..chunks.len()).map(|k| vector(views, &row, k, reduce, stmt)))
            })
        };
        let clear = cells(views, &[], &|point, acc, at, views| {
            Stmt::store(acc, vec![at], point.value(&self.init, views, None))
        });
        let reduce: Vec<usize> = self.reduce().collect();
        let add = |point: &Point, acc: &Buffer, at: Expr, views: &mut Views| {
            let value = point.value(&self.value, views, None);
            let sum = Expr::binary(self.op, acc.load([at.clone()]), value);
            Stmt::store(acc, vec![at], sum)
        };
        let updates = rows * chunks.len() as i64;
        let steps = reduce.iter().map(|&k| self.len(k)).fold(updates, i64::saturating_mul);
        let slide = self.slide(v).filter(|_| rows > 1 && steps <= SLID && ranges.is_empty());
        let window = slide.as_ref().map_or(1, |s| self.len(s.window));
        let others = reduce.iter().filter(|k| slide.as_ref().is_none_or(|s| s.window != **k));
        let others: Vec<(usize, i64)> = others.map(|&k| (k, self.len(k))).collect();
        let update = match slide {
            // What is read at one place is used by all rows before the next is read.
            Some(slide) => {
                Stmt::seq(slide.order(rows, window, &others).into_iter().flat_map(|(used, at)| {
                    let vectors = 0..chunks.len();
                    let each = vectors.flat_map(|k| used.iter().map(move |pair| (k, *pair)));
                    let each = each.map(|(k, (row, step))| {
                        let step = (slide.window, Expr::i32(step as i32));
                        let at: Vec<(usize, Expr)> = at.iter().cloned().chain([step]).collect();
                        vector(views, &Expr::i32(row as i32), k, &at, &add)
                    });
                    each.collect::<Vec<Stmt>>()
                }))
            }
            None => self.reduce_loops(&reduce, updates, ranges, |at| cells(views, &at, &add)),
        };
        let finish = cells(views, &[], &|point, acc, at, views| {
            self.finish_at(point, acc.load([at]), views)
        });
        let body = Stmt::seq([clear, update, finish]);
        accs.iter().rev().fold(body, |body, acc| Stmt::allocate(acc, body))
    }

    /// Loops over reduction axes, or `ranges` of them, around so many updates: unrolled where that leaves few
    /// in all, else serial, and the innermost is not unrolled further.
    fn reduce_loops(
        &self,
        reduce: &[usize],
        updates: i64,
        ranges: &[(usize, Range)],
        body: impl FnOnce(Vec<(usize, Expr)>) -> Stmt,
    ) -> Stmt {
        let vars: Vec<Var> = reduce.iter().map(|&k| Var::index(self.axes[k].name())).collect();
        let at = reduce.iter().zip(&vars).map(|(&k, v)| (k, v.expr())).collect();
        let body = body(at);
        let steps = reduce.iter().map(|&k| self.len(k)).fold(updates, i64::saturating_mul);
        let known = reduce.iter().all(|&k| self.axes[k].extent.known().is_some());
        let known = known && ranges.is_empty();
        let (kind, annotations) = match known && steps <= UNROLLED {
            true => (ForKind::Unrolled, Attrs::default()),
            false => (ForKind::Serial, [("pragma_no_unroll".into(), Attr::Int(1))].into()),
        };
        reduce.iter().zip(&vars).rev().fold(body, |body, (&k, var)| {
            let given = ranges.iter().find(|r| r.0 == k).map(|r| r.1.clone());
            let range = given.unwrap_or_else(|| Range::upto(self.axes[k].extent.typed(DType::I32)));
            let (kind, annotations) = (kind.clone(), annotations.clone());
            Stmt::new(StmtKind::For { var: var.clone(), range, kind, annotations, body })
        })
    }

    /// Stores the finished value of the output element at a point.
    fn finish_at(&self, point: &Point, value: Expr, views: &mut Views) -> Stmt {
        let f = &self.finish;
        let value = point.value(&f.value, views, Some((&f.result, &value)));
        point.store(&f.buffer, &f.indices, value, views)
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
            let update = self.reduce_loops(&reduce, i64::MAX, &[], |reduce| {
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
