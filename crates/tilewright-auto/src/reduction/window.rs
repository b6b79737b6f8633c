//! Windows over a padded image, without a padded copy of the whole of it.
//!
//! Pools and convolutions with padding are two stages: one pads the image, a reduction reads windows
//! of it. There are two ways to do without the memory between them.
//!
//! **Bounds.** Where padding leaves a reduction as it is (a maximum with what it starts from, a sum
//! with zero), windows are read from the image itself, and steps outside of it are left out
//! (`compute_inline`, `remove_overcompute_through_branching`):
//!
//! ```text
//! out[oh] = max(x[oh + kh - 1] for kh in range(max(0, 1 - oh), min(3, 29 - oh)))
//! ```
//!
//! Windows that lie inside have loops of their own, with all of their steps and no condition
//! (`loop_partition`). That is for vectors that do not run along a padded axis, such as those of channels.
//!
//! **Bands.** Else what a few rows of results read is padded right before it is used, in a buffer that
//! stays in the first cache (`compute_at`, `loop_partition`):
//!
//! ```text
//! for c, rows:
//!     band[..] = padded(x[c, ..])
//!     out[c, rows, ..] = reduction of band
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_analysis::affine::Affine;
use tilewright_analysis::neutral::{ANY, step};
use tilewright_analysis::stage::Extent;
use tilewright_ir::visit::{Subst, fold_expr_children, free_vars};
use tilewright_ir::{
    BinOp, Buffer, Dim, Error, Expr, ExprKind, Fold, IterKind, Result, TensorFunc, Var,
};
use tilewright_schedule::compute::Position;
use tilewright_schedule::{BlockRef, Schedule};
use tilewright_target::Target;

use super::choice::{Level, balanced};
use super::tiles::Around;
use super::{Places, Reduction};
use crate::canonical::Stages;
use crate::padding::{Iters, padding};
use crate::parts::{Part, apart, cut, number, partition};
use crate::share::shared;

/// Most bytes of a band: with the results it stays in the first cache, and on the stack.
const BAND_BYTES: i64 = 12 * 1024;

/// Of how many axes each part before, inside and behind an image has loops of its own.
const APART: usize = 2;

/// A stage that pads, and the reduction that alone reads the result.
pub(crate) struct Windows<'a> {
    pad: &'a Stage,
    reader: &'a Stage,
    epilogue: Option<&'a Stage>,
    padded: &'a Buffer,
    op: BinOp,
    /// What the reduction combines.
    combined: Expr,
    /// The axes of the padded image.
    axes: Vec<Axis>,
    /// What is inside, in terms of the variables of the axes, and what is outside.
    value: Expr,
    outside: Expr,
}

/// An axis of a padded image.
struct Axis {
    /// Its variable; none where it has one cell.
    var: Option<Var>,
    extent: i64,
    /// The cells of the image on it.
    inside: (i64, i64),
    /// Where the reduction reads.
    index: Expr,
}

impl Axis {
    fn is_padded(&self) -> bool {
        self.inside != (0, self.extent)
    }
}

/// Bounds of a reduction variable: only the steps with `inside.0 <= index + step * var < inside.1` change
/// anything, such as those that read inside of an image.
pub(crate) struct Guard {
    /// The index where the variable is zero.
    index: Expr,
    /// The reduction variable.
    var: Var,
    /// By how much it moves the index.
    step: i64,
    /// The first index inside, and the end of these.
    inside: (i64, i64),
}

impl Guard {
    /// All variables that decide.
    pub(crate) fn vars(&self) -> HashSet<Var> {
        free_vars(&self.index).into_iter().chain([self.var.clone()]).collect()
    }

    /// The variable of the results that decides which steps are inside, by how much it moves the index, and the
    /// index where both variables are zero; `None` where there are several such variables.
    fn place(&self) -> Option<(Var, i64, i64)> {
        let index = Affine::of(&self.index)?;
        let mut moves = index.vars();
        let (Some((var, by)), None) = (moves.next(), moves.next()) else { return None };
        Some((var.clone(), by, index.constant()))
    }

    /// Of `count` results, those whose windows have all of `steps` inside: the first, and the end of these.
    fn whole(&self, steps: i64, count: i64) -> Option<(i64, i64)> {
        let (_, by, first) = self.place()?;
        let (from, to) = self.inside;
        let up = |n: i64| n.div_euclid(by) + i64::from(n.rem_euclid(by) != 0);
        let start = up(from - first).clamp(0, count);
        let end = ((to - 1 - (steps - 1) * self.step - first).div_euclid(by) + 1).clamp(0, count);
        (by > 0 && start < end).then_some((start, end))
    }
}

/// How windows do without a padded image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    /// Steps have bounds.
    Bounds {
        /// The part of all steps that are inside of the image.
        inside: f64,
    },
    /// Bands are padded in the first cache.
    Bands,
}

/// A [`Way`] with what its loops are made of.
enum Plan<'a> {
    Bounds { reduction: Reduction<'a>, v: usize, guards: Vec<Guard> },
    Bands(Split),
}

/// An image in bands.
struct Split {
    /// The variables of the reduction along axes that bands do not have.
    shared: Vec<Var>,
    /// The rows of a band where it has not all of an image.
    rows: Option<Rows>,
}

/// The rows of results that are computed from one band.
struct Rows {
    /// The variable of the reduction that counts rows of results.
    var: Var,
    /// Rows of all results, and of those of a band.
    count: i64,
    each: i64,
}

/// The windows that a reduction reads, if what it reads is padded for it alone.
pub(crate) fn of(all: &Stages, reader: usize) -> Option<Windows<'_>> {
    let (pad, _) = all.pairs().into_iter().find(|pair| pair.1 == reader)?;
    Windows::of(all.get(pad)?, all.get(reader)?, all.epilogue(reader))
}

/// The stages of a function that pad what one reduction reads, with the number of that reduction and how it
/// does without all of the padded image. Stages after the reduction are not looked at.
pub(crate) fn ways(func: &TensorFunc, target: &Target) -> HashMap<usize, (usize, Way)> {
    let Some(all) = Stages::of(func) else { return HashMap::new() };
    let way = |(pad, reader): (usize, usize)| {
        let windows = Windows::of(all.get(pad)?, all.get(reader)?, None)?;
        Some((pad, (reader, windows.way(target)?)))
    };
    all.pairs().into_iter().filter_map(way).collect()
}

impl<'a> Windows<'a> {
    /// `None` where one of the stages is of another form, or has an extent that is open or zero.
    fn of(pad: &'a Stage, reader: &'a Stage, epilogue: Option<&'a Stage>) -> Option<Self> {
        let iters: Iters = pad.dims().map(|(v, e, k)| (v.clone(), e, k)).collect();
        let is_whole = |s: &Stage| s.is_fixed() && s.dims().all(|i| i.1 != 0);
        if pad.is_reduction() || !is_whole(pad) || !is_whole(reader) {
            return None;
        }
        let (inside, value, outside) = padding(&iters, &pad.value)?;
        let reduction = reader.reduction()?;
        let of_padded = |(b, _): &(Buffer, Vec<Expr>)| *b == pad.buffer;
        let mut loads = reader.loads().into_iter().filter(of_padded);
        let (Some((_, at)), None) = (loads.next(), loads.next()) else { return None };
        if reader.init.as_ref()?.loads_from(|b| *b == pad.buffer) {
            return None;
        }
        let shape = pad.buffer.const_shape()?;
        let axes = pad.covers_buffer()?.into_iter().zip(at).zip(shape);
        let axes = axes.map(|((var, index), extent)| {
            let inside = match &var {
                Some(v) => inside.get(v).and_then(|(lo, hi)| Some((*lo, hi.number()?)))?,
                None => (0, 1),
            };
            (inside.0 < inside.1).then_some(Axis { var, extent, inside, index })
        });
        Some(Windows {
            pad,
            reader,
            epilogue,
            padded: &pad.buffer,
            op: reduction.op,
            combined: reduction.value,
            axes: axes.collect::<Option<Vec<Axis>>>()?,
            value,
            outside,
        })
    }

    /// Makes the loops of the reduction without the padded image. Says whether there are any.
    pub(super) fn loops(
        &self,
        padded: &Reduction<'a>,
        sch: &mut Schedule,
        func: &Arc<str>,
        target: &Target,
    ) -> Result<bool> {
        match self.plan(padded, target) {
            Some(Plan::Bounds { reduction, v, guards }) => {
                self.bounds(&reduction, v, &guards, sch, func, target)?;
            }
            Some(Plan::Bands(split)) => return self.bands(&split, sch, func, target),
            None => return Ok(false),
        }
        Ok(true)
    }

    fn way(&self, target: &Target) -> Option<Way> {
        let padded = Reduction::of(self.reader, self.epilogue)?;
        Some(match self.plan(&padded, target)? {
            Plan::Bounds { guards, .. } => Way::Bounds { inside: self.inside(&guards) },
            Plan::Bands(_) => Way::Bands,
        })
    }

    /// How the reduction does without the padded image; `None` where neither way serves: also where vectors
    /// run along an axis of which a band has one cell.
    fn plan(&self, padded: &Reduction<'a>, target: &Target) -> Option<Plan<'a>> {
        let innermost = |r: &Reduction<'_>, k: usize| r.axes[k].parts.last().map(|p| p.0.clone());
        let of_padded = padded.vector_axis(target)?;
        if let Some((value, guards)) = self.guarded()
            && let Some(reduction) = self.with(&value, &guards)
            && let Some(v) = reduction.vector_axis(target)
        {
            // Vectors of the other loops would run along an axis that has bounds, or would be fuller.
            let (lanes, extent) = (reduction.lanes(target), reduction.len(v));
            let is_full = extent % lanes == 0 || extent >= 3 * lanes;
            let same = innermost(padded, of_padded) == innermost(&reduction, v)
                && (is_full || padded.len(of_padded) == extent);
            if same && reduction.axes[v].kind == IterKind::Spatial && !reduction.reads_again(v) {
                return Some(Plan::Bounds { reduction, v, guards });
            }
        }
        let split = self.split()?;
        let along = innermost(padded, of_padded)?;
        (!split.shared.contains(&along)).then_some(Plan::Bands(split))
    }

    /// The reduction of another value, with bounds.
    fn with(&self, value: &Expr, guards: &[Guard]) -> Option<Reduction<'a>> {
        let all: Iters = self.reader.dims().map(|(v, e, k)| (v.clone(), e, k)).collect();
        let vars: HashSet<Var> = guards.iter().flat_map(Guard::vars).collect();
        let found =
            Reduction::over(self.reader, self.epilogue, &all, value, (&vars, &HashSet::new()))?;
        Some(Reduction { is_bounded: true, ..found })
    }

    /// The part of all steps that are inside of the image.
    fn inside(&self, guards: &[Guard]) -> f64 {
        let extent = |v: &Var| self.reader.iters().find(|i| i.0 == v).map(|i| i.1);
        let share = |guard: &Guard| {
            let steps = extent(&guard.var)?;
            let (place, by, start) = guard.place()?;
            let places = extent(&place)?;
            let (first, end) = guard.inside;
            let count = |place: i64| {
                let at = |step: i64| start + by * place + guard.step * step;
                (0..steps).filter(|step| (first..end).contains(&at(*step))).count() as f64
            };
            Some((0..places).map(count).sum::<f64>() / (places * steps) as f64)
        };
        guards.iter().map(|guard| share(guard).unwrap_or(1.0)).product()
    }

    /// What the reduction combines of the image itself, with bounds for its steps.
    fn guarded(&self) -> Option<(Expr, Vec<Guard>)> {
        let ExprKind::Load(image, at) = self.value.kind() else { return None };
        if !self.is_neutral() {
            return None;
        }
        let mut guards: Vec<Guard> = Vec::new();
        for axis in self.axes.iter().filter(|a| a.is_padded()) {
            let index = Affine::of(&axis.index).filter(|i| i.opaque().next().is_none())?;
            let steps = self.reader.reduce().filter(|(_, n)| *n > 1);
            let mut steps =
                steps.filter_map(|(v, _)| Some((v, index.coefficient(v)?)).filter(|s| s.1 != 0));
            let (Some((var, step)), None) = (steps.next(), steps.next()) else { return None };
            if step < 1 || guards.iter().any(|g| g.var == *var) {
                return None;
            }
            let first = Subst::vars([(var.clone(), Expr::int(0, var.dtype()))]).expr(&axis.index);
            guards.push(Guard { index: first, var: var.clone(), step, inside: axis.inside });
        }
        let axes = self.axes.iter();
        let given = axes
            .filter_map(|a| a.var.clone().map(|v| (v.clone(), a.index.clone().cast(v.dtype()))));
        let mut moved = Subst::vars(given.collect::<HashMap<Var, Expr>>());
        let at: Vec<Expr> = at.iter().map(|i| moved.expr(i)).collect();
        let value = Instead { from: self.padded, to: (image, &at) }.expr(&self.combined);
        Some((value, guards))
    }

    /// Whether a step that reads padding changes nothing.
    fn is_neutral(&self) -> bool {
        struct Filled<'a>(&'a Buffer, &'a Expr);
        impl Fold for Filled<'_> {
            fn expr(&mut self, e: &Expr) -> Expr {
                match e.kind() {
                    ExprKind::Load(b, _) if b == self.0 => self.1.clone(),
                    _ => step(fold_expr_children(self, e), ANY),
                }
            }
        }
        let number = |e: &Expr| e.as_float().or_else(|| e.as_int().map(|n| n as f64));
        let value = Filled(self.padded, &self.outside).expr(&self.combined);
        let Some(value) = number(&value) else { return false };
        let start = self.reader.init.as_ref().and_then(number);
        match self.op {
            BinOp::Add => value == 0.0,
            BinOp::Mul => value == 1.0,
            BinOp::Max => start.is_some_and(|start| value <= start),
            BinOp::Min => start.is_some_and(|start| start <= value),
            _ => false,
        }
    }

    /// The reduction of the image itself: windows that are inside as a whole apart from others.
    fn bounds(
        &self,
        r: &Reduction<'_>,
        v: usize,
        guards: &[Guard],
        sch: &mut Schedule,
        func: &Arc<str>,
        target: &Target,
    ) -> Result<()> {
        let pad = sch.get_block(self.pad.name(), func)?;
        sch.compute_inline(&pad)?;
        let places = Places::of(r, sch, func)?;
        let tiling = r.tiling(v, target);
        let mut made = r.tiled(sch, &places, &tiling, target)?;
        let mut parts = vec![made.blocks.concat()];
        let mut taken = 0;
        for (k, level) in tiling.order.iter().enumerate() {
            let depth = made.units + k;
            let Level::Axis(axis) = level else { break };
            if made.parted.is_some_and(|parted| parted < depth) {
                break;
            }
            let var = r.axes[*axis].parts.last().map(|p| &p.0);
            let guard = guards.iter().find(|g| g.place().is_some_and(|(v, ..)| Some(&v) == var));
            let Some((guard, count)) = guard.zip(r.axes[*axis].extent.number()) else { continue };
            let steps = self.reader.reduce().find(|(v, _)| **v == guard.var).map_or(1, |s| s.1);
            let Some((start, end)) = guard.whole(steps, count) else { continue };
            if (start, end) == (0, count) {
                continue;
            }
            // Of more axes, windows that are not inside along one of the others stay together.
            let (now, later) = parts.split_at(if taken < APART { parts.len() } else { 1 });
            let mut all = Vec::new();
            for blocks in now {
                all.extend(three(sch, blocks, depth, [start, end, count])?);
            }
            all.extend_from_slice(later);
            parts = all;
            taken += 1;
            made.parted = Some(made.parted.map_or(depth, |p| p.min(depth)));
        }
        r.parallel(sch, &places, &tiling, &made)
    }

    /// The reduction, in bands that are padded one by one.
    fn bands(
        &self,
        split: &Split,
        sch: &mut Schedule,
        func: &Arc<str>,
        target: &Target,
    ) -> Result<bool> {
        let Split { shared: others, rows } = split;
        let iters = self.reader.dims().map(|(v, n, kind)| match rows {
            Some(rows) if rows.var == *v => (v.clone(), rows.each.dim(), kind),
            _ => (v.clone(), n, kind),
        });
        let iters: Iters = iters.collect();
        let alone: HashSet<Var> =
            others.iter().chain(rows.iter().map(|r| &r.var)).cloned().collect();
        let r = Reduction::over(
            self.reader,
            self.epilogue,
            &iters,
            &self.combined,
            (&HashSet::new(), &alone),
        );
        let Some(r) = r else { return Ok(false) };
        let Some(v) = r.vector_axis(target).filter(|v| r.axes[*v].kind == IterKind::Spatial) else {
            return Ok(false);
        };
        let axis = |v: &Var| r.axes.iter().position(|a| a.parts.iter().any(|p| p.0 == *v));
        let alone: Vec<usize> = others.iter().filter_map(axis).collect();
        let band = rows.as_ref().and_then(|rows| Some((axis(&rows.var)?, rows)));
        let mut tiling = r.tiling(v, target);
        tiling.order.retain(|l| !matches!(l, Level::Axis(k) if alone.contains(k)));

        let places = Places::of(&r, sch, func)?;
        let own = tiling.axes().into_iter().filter(|k| band.is_none_or(|(b, _)| *k != b));
        let levels =
            [&alone[..], &band.map(|b| b.0).into_iter().chain(own).collect::<Vec<_>>()].concat();
        let sums = [&alone[..], &tiling.of_sums()].concat();
        let reduce: Vec<usize> = r.reduce().collect();
        let all = places.lay_out(sch, &r, (&levels, &sums), &reduce)?;
        let units = all - levels.len();
        let finish_units = sch.get_loops(&places.finish)?.len() - sums.len();

        // The loop in which a band is padded.
        let mut depth = units + alone.len();
        let mut ends = vec![(places.block.clone(), places.finish.clone(), None)];
        let mut finish = finish_units + alone.len();
        let mut parted = None;
        if let Some((axis, rows)) = band {
            let loops = sch.get_loops(&places.block)?;
            let split = sch.split(&loops[depth], &[None, number(rows.each)])?;
            let mut inner = loops[depth + 1..all].to_vec();
            let at = tiling.axes().iter().position(|k| *k == axis).unwrap_or(0);
            inner.insert(at, split[1].clone());
            sch.reorder(&[&split[..1], &inner, &loops[all..]].concat())?;
            depth += 1;
            finish += 1;
            self.compute(sch, &places, depth, Some(rows))?;
            let (full, rest) = (rows.count / rows.each, rows.count % rows.each);
            let beside = finish_units + sums.iter().position(|k| *k == axis).unwrap_or(0);
            let sizes = [number(full * rows.each), number(rest)];
            let results = match rest {
                0 => vec![places.finish.clone()],
                _ => {
                    parted = Some(depth - 1);
                    apart(sch, &places.finish, (0, beside), &sizes)?
                }
            };
            if rest != 0 {
                let mut parts =
                    vec![Part { blocks: vec![places.block.clone()], ragged: false, last: false }];
                partition(sch, &mut parts, depth - 1, &[number(full), number(1)])?;
                let last = parts.pop().and_then(|mut p| p.blocks.pop());
                let last = last
                    .ok_or_else(|| Error::internal("a loop that was taken apart has one part"))?;
                let row = sch.get_loops(&last)?.into_iter().nth(depth + at);
                let row = row.ok_or_else(|| Error::internal("a band without rows"))?;
                sch.loop_partition(&row, Some(&[number(rest), number(rows.each - rest)]))?;
                ends.push((last, places.finish.clone(), None));
            }
            for ((end, result), size) in ends.iter_mut().zip(results).zip([rows.each, rest]) {
                let loops = sch.get_loops(&result)?;
                let split = sch.split(&loops[beside], &[None, number(size)])?;
                let others =
                    loops[finish_units + alone.len()..].iter().filter(|l| **l != loops[beside]);
                let mut order: Vec<_> = others.cloned().collect();
                order.insert(beside - finish_units - alone.len(), split[1].clone());
                sch.reorder(&[&split[..1], &order].concat())?;
                (end.1, end.2) = (result, Some((axis, size)));
            }
        } else {
            self.compute(sch, &places, depth, None)?;
        }
        for (block, result, rows) in ends {
            let around = Around { units: depth, finish, rows };
            r.tiles(sch, &places, (block, result), &tiling, &around, target)?;
        }
        let mut extents: Vec<Dim> = alone.iter().map(|k| r.axes[*k].extent).collect();
        extents.extend(band.map(|(_, rows)| rows.count.dim().ceildiv(rows.each.dim())));
        let work = self.reader.iters().map(|i| i.1).fold(1, i64::saturating_mul);
        let count = shared(&extents, extents.len(), work);
        r.share(sch, &places, units, count, parted)?;
        Ok(true)
    }

    /// Pads a band in the last one of so many loops around the sums. What is beside the image along an axis has
    /// loops of its own, but for rows of bands.
    fn compute(
        &self,
        sch: &mut Schedule,
        places: &Places,
        around: usize,
        rows: Option<&Rows>,
    ) -> Result<()> {
        let loops = sch.get_loops(&places.block)?;
        let Some(innermost) = loops.get(around.wrapping_sub(1)) else {
            return Err(Error::internal("a band without a loop around it"));
        };
        let pad = sch.get_block(self.pad.name(), &places.block.func)?;
        sch.compute_at(&pad, innermost, false, Position::default())?;
        let has = |axis: &Axis| rows.is_some_and(|rows| axis.index.mentions(&rows.var));
        let own = self.axes.iter().filter(|a| has(a) || !self.is_shared(a) && a.extent > 1);
        let own: Vec<&Axis> = own.collect();
        if sch.get_loops(&pad)?.len() != around + own.len() {
            return Ok(());
        }
        let mut trial = sch.clone();
        let mut inside = pad;
        for (k, axis) in own.iter().enumerate().filter(|(_, axis)| axis.is_padded() && !has(axis)) {
            let (lo, hi) = axis.inside;
            let sizes = [lo, hi - lo, axis.extent - hi];
            let sizes: Vec<_> = sizes.into_iter().filter(|n| *n > 0).map(number).collect();
            let parts = cut(&mut trial, &inside, around + k, &sizes)?;
            inside = parts.into_iter().nth(usize::from(lo > 0)).unwrap_or(inside);
        }
        *sch = trial;
        Ok(())
    }

    /// Whether what moves along an axis as the results do is no part of a band.
    fn is_shared(&self, axis: &Axis) -> bool {
        let of = |v: &Var| {
            let found = self.reader.spatial().find(|(x, _)| *x == v);
            found.is_some_and(|(_, n)| n == axis.extent)
        };
        !axis.is_padded() && (axis.extent == 1 || axis.index.as_var().is_some_and(of))
    }

    /// How the image is taken in bands, if it is.
    fn split(&self) -> Option<Split> {
        let own: Vec<usize> =
            (0..self.axes.len()).filter(|k| !self.is_shared(&self.axes[*k])).collect();
        let rows = self.rows(&own)?;
        let shared = self.axes.iter().filter(|a| self.is_shared(a) && a.extent > 1);
        let shared: Vec<Var> = shared.filter_map(|a| a.index.as_var().cloned()).collect();
        let distinct: HashSet<&Var> = shared.iter().collect();
        let is_split = distinct.len() == shared.len() && !(shared.is_empty() && rows.is_none());
        is_split.then_some(Split { shared, rows })
    }

    /// The bands that are taken: none in `Some(None)`, where all of an image is one; `None` where none are
    /// small enough, or too much of them is padded twice.
    fn rows(&self, own: &[usize]) -> Option<Option<Rows>> {
        let cell = self.padded.dtype().bytes() as i64;
        let bytes = own.iter().map(|k| self.axes[*k].extent).fold(cell, i64::saturating_mul);
        if bytes <= BAND_BYTES {
            return Some(None);
        }
        let spatial: HashMap<&Var, i64> = self.reader.spatial().collect();
        let reduce: HashMap<&Var, i64> = self.reader.reduce().collect();
        let (axis, index, (var, step)) = own.iter().find_map(|k| {
            let index = Affine::of(&self.axes[*k].index)?;
            let mut moves = index.vars().filter(|(v, _)| spatial.get(v).is_some_and(|n| *n > 1));
            let (Some((var, step)), None) = (moves.next(), moves.next()) else { return None };
            let moved = (var.clone(), step);
            drop(moves);
            Some((*k, index, moved))
        })?;
        let others: Option<Vec<i64>> = index
            .vars()
            .filter(|(v, _)| **v != var)
            .map(|(v, step)| Some(step * (reduce.get(v)? - 1)).filter(|_| step > 0))
            .collect();
        let reach = 1 + others?.iter().sum::<i64>();
        let is_affine = index.opaque().next().is_none();
        let once = own.iter().filter(|k| {
            Affine::of(&self.axes[**k].index).is_none_or(|i| i.coefficient(&var) != Some(0))
        });
        if !is_affine || step < 1 || index.constant() < 0 || once.count() != 1 {
            return None;
        }
        let row = bytes / self.axes[axis].extent;
        let most = (BAND_BYTES / row - reach) / step + 1;
        let count = spatial[&var];
        let each = if BAND_BYTES / row < reach { 0 } else { balanced(count, most) };
        let padded = (each - 1) * step + reach;
        let rows = Rows { var, count, each };
        (each > 0 && 2 * padded <= 3 * each * step).then_some(Some(rows))
    }
}

/// Takes the loop around blocks at a depth apart: before `start`, from there to `end`, and what is left of
/// `count` iterations. Returns the blocks of each part, those of the middle one first.
fn three(
    sch: &mut Schedule,
    blocks: &[BlockRef],
    depth: usize,
    [start, end, count]: [i64; 3],
) -> Result<Vec<Vec<BlockRef>>> {
    let whole = Part { blocks: blocks.to_vec(), ragged: false, last: false };
    let mut parts = vec![whole];
    if start > 0 {
        partition(sch, &mut parts, depth, &[number(start), number(count - start)])?;
    }
    let mut rest = parts.split_off(parts.len() - 1);
    if end < count {
        partition(sch, &mut rest, depth, &[number(end - start), number(count - end)])?;
    }
    Ok(rest.into_iter().chain(parts).map(|p| p.blocks).collect())
}

/// Accesses of one buffer become accesses of another one at given indices.
struct Instead<'a> {
    from: &'a Buffer,
    to: (&'a Buffer, &'a [Expr]),
}

impl Fold for Instead<'_> {
    fn access(&mut self, b: &Buffer, _: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        (b == self.from).then(|| (self.to.0.clone(), self.to.1.to_vec()))
    }
}
