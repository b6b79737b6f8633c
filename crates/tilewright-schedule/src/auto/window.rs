//! Windows over a padded image, without a padded copy of the whole of it.
//!
//! Pools and convolutions with padding are two stages: one pads the image, a reduction reads windows
//! of it. There are two ways to do without the memory between them.
//!
//! **Bounds.** Where padding leaves a reduction as it is (a maximum with what it starts from, a sum
//! with zero), windows are read from the image itself, and steps outside of it are left out:
//!
//! ```text
//! out[oh] = max(x[oh + kh - 1] for kh in range(max(0, 1 - oh), min(3, 29 - oh)))
//! ```
//!
//! Windows that lie inside have all of their steps, without a condition. That is for vectors that do
//! not run along a padded axis, such as those of channels.
//!
//! **Bands.** Else what a few rows of results read is padded right before it is used, in a buffer that
//! stays in the first cache:
//!
//! ```text
//! for c, rows:
//!     band[..] = padded(x[c, ..])
//!     out[c, rows, ..] = reduction of band
//! ```

use std::collections::{HashMap, HashSet};

use tilewright_analysis::Stage;
use tilewright_analysis::neutral::{ANY, step};
use tilewright_analysis::stage::{Extent, Reduction};
use tilewright_ir::visit::{Subst, accessed, fold_expr_children};
use tilewright_ir::{BinOp, Buffer, Dim, Expr, ExprKind, Fold, ForKind, Stmt, TensorFunc, Var};
use tilewright_target::Target;

use crate::auto::affine::Affine;
use crate::auto::emit::{Views, for_each, nest};
use crate::auto::padding::{Iters, padding};
use crate::auto::reduce::{self, Bounded, Contraction, Guard, Left};
use crate::auto::tiles::{Tiles, balanced};

/// Most bytes of a band: with the results it stays in the first cache, and on the stack.
const BAND_BYTES: i64 = 12 * 1024;

/// A stage that pads, and the reduction that alone reads the result.
pub(crate) struct Windows<'a> {
    reader: &'a Stage,
    reduction: Reduction,
    padded: &'a Buffer,
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

/// How windows do without a padded image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// Steps have bounds.
    Bounds {
        /// The part of all steps that are inside of the image.
        inside: f64,
    },
    /// Bands are padded in the first cache.
    Bands,
}

/// A [`Way`] with all that its code is made of.
enum Plan<'a> {
    Bounds { reduction: Box<Bounded>, inside: f64 },
    Bands(Split<'a>),
}

impl Plan<'_> {
    fn way(&self) -> Way {
        match self {
            Plan::Bounds { inside, .. } => Way::Bounds { inside: *inside },
            Plan::Bands(_) => Way::Bands,
        }
    }
}

/// An image in bands.
struct Split<'a> {
    /// The axes that a band has.
    own: Vec<usize>,
    /// The others that have more than one cell, each with the variable of the reduction along it.
    shared: Vec<(&'a Axis, &'a Var)>,
    /// The rows of a band where it has not all of an image, and the loop over bands of them.
    rows: Option<Rows>,
    tiles: Option<Tiles>,
    /// The loops around bands.
    loops: Vec<(String, Dim)>,
}

/// The rows of results that are computed from one band.
struct Rows {
    /// The axis of the padded image that is taken in bands.
    axis: usize,
    /// The variable of the reduction that counts rows of results.
    var: Var,
    /// Rows of all results, and of those of a band.
    count: i64,
    each: i64,
    /// By how many rows of the image a row of results moves, the first of these, and how many a row of
    /// results reads.
    step: i64,
    first: i64,
    reach: i64,
}

impl<'a> Windows<'a> {
    /// `None` where one of the stages is of another form, or has an extent that is open or zero.
    pub(crate) fn of(pad: &'a Stage, reader: &'a Stage) -> Option<Self> {
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
        let axes = axes.collect::<Option<Vec<Axis>>>()?;
        Some(Windows { reader, reduction, padded: &pad.buffer, axes, value, outside })
    }

    /// The reduction, and the stage after it where there is one, without the padded image; `None` where
    /// neither way serves.
    pub(crate) fn schedule(
        &self,
        epilogue: Option<&Stage>,
        target: &Target,
        views: &mut Views,
    ) -> Option<Stmt> {
        match self.plan(epilogue, target)? {
            Plan::Bounds { reduction, .. } => Some(reduction.loops(target, views)),
            Plan::Bands(split) => self.bands(split, epilogue, target),
        }
    }

    /// Whether [`Windows::schedule`] does without the padded image.
    pub(crate) fn serves(&self, epilogue: Option<&Stage>, target: &Target) -> bool {
        self.plan(epilogue, target).is_some()
    }

    /// How the reduction does without the padded image; `None` where neither way serves: also where vectors
    /// run along an axis of which a band has one cell.
    fn plan(&self, epilogue: Option<&Stage>, target: &Target) -> Option<Plan<'_>> {
        let padded = Contraction::of(self.reader, epilogue)?;
        if let Some((stage, guards)) = self.guarded()
            && let Some(bounded) = padded.bounded(&stage, &guards, epilogue, target)
        {
            let (reduction, inside) = (Box::new(bounded), self.inside(&guards));
            return Some(Plan::Bounds { reduction, inside });
        }
        let split = self.split()?;
        let along = padded.vector_variable(target)?;
        split.shared.iter().all(|(_, var)| *var != along).then_some(Plan::Bands(split))
    }

    /// The part of all steps that are inside of the image.
    fn inside(&self, guards: &[Guard]) -> f64 {
        let extent = |v: &Var| self.reader.iters().find(|i| i.0 == v).map(|i| i.1);
        let share = |guard: &Guard| {
            let steps = extent(&guard.var)?;
            let index = Affine::of(&guard.index)?;
            let mut moves = index.vars();
            let (place, by) = moves.next()?;
            let (places, None) = (extent(place)?, moves.next()) else { return None };
            let (first, end) = guard.inside;
            let count = |place: i64| {
                let at = |step: i64| index.constant() + by * place + guard.step * step;
                (0..steps).filter(|step| (first..end).contains(&at(*step))).count() as f64
            };
            Some((0..places).map(count).sum::<f64>() / (places * steps) as f64)
        };
        guards.iter().map(|guard| share(guard).unwrap_or(1.0)).product()
    }

    /// The reduction of the image itself, with bounds for its steps.
    fn guarded(&self) -> Option<(Stage, Vec<Guard>)> {
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
        let mut moved = Subst::vars(self.given());
        let at: Vec<Expr> = at.iter().map(|i| moved.expr(i)).collect();
        let value = Instead { from: self.padded, to: (image, &at) }.expr(&self.reader.value);
        Some((self.reader.with_value(value), guards))
    }

    /// The variables of the padding where the reduction reads.
    fn given(&self) -> HashMap<Var, Expr> {
        let axes = self.axes.iter();
        axes.filter_map(|a| a.var.clone().map(|v| (v.clone(), a.index.clone().cast(v.dtype()))))
            .collect()
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
        let value = Filled(self.padded, &self.outside).expr(&self.reduction.value);
        let Some(value) = number(&value) else { return false };
        let start = self.reader.init.as_ref().and_then(number);
        match self.reduction.op {
            BinOp::Add => value == 0.0,
            BinOp::Mul => value == 1.0,
            BinOp::Max => start.is_some_and(|start| value <= start),
            BinOp::Min => start.is_some_and(|start| start <= value),
            _ => false,
        }
    }

    /// The reduction, in bands that are padded one by one.
    fn bands(&self, split: Split<'_>, epilogue: Option<&Stage>, target: &Target) -> Option<Stmt> {
        let Split { own, shared, rows, tiles, loops } = split;
        let work = self.reader.iters().map(|i| i.1).fold(1, i64::saturating_mul);
        let mut failed = false;
        let stmt = nest(&loops, loops.len(), work, |mut at| {
            let number = rows.as_ref().and_then(|_| at.pop());
            let units = self.axes.iter().filter(|a| a.extent == 1 && !a.is_padded());
            let units =
                units.filter_map(|a| a.var.clone().map(|v| (v.clone(), Expr::int(0, v.dtype()))));
            let mut given: HashMap<Var, Expr> = units.collect();
            for ((axis, var), at) in shared.iter().zip(at) {
                given.insert((*var).clone(), at.clone().cast(var.dtype()));
                given.extend(axis.var.iter().map(|v| (v.clone(), at.clone().cast(v.dtype()))));
            }
            let mut one = |rows: Option<(&Rows, Expr, i64)>| {
                let band = Band { windows: self, own: &own, given: &given, rows };
                let stmt = band.stmt(epilogue, target);
                failed |= stmt.is_none();
                stmt.unwrap_or_else(Stmt::nop)
            };
            match (&rows, &tiles, number) {
                (Some(rows), Some(tiles), Some(number)) => {
                    tiles.each(&number, |start, count| one(Some((rows, start, count))))
                }
                _ => one(None),
            }
        });
        (!failed).then_some(stmt)
    }

    /// How the image is taken in bands, if it is.
    fn split(&self) -> Option<Split<'_>> {
        // What moves along an axis as the results do is no part of a band.
        let is_shared = |a: &Axis| {
            let of = |v: &Var| {
                let found = self.reader.spatial().find(|(x, _)| *x == v);
                found.is_some_and(|(_, n)| n == a.extent)
            };
            !a.is_padded() && (a.extent == 1 || a.index.as_var().is_some_and(of))
        };
        let own: Vec<usize> = (0..self.axes.len()).filter(|k| !is_shared(&self.axes[*k])).collect();
        let rows = self.rows(&own)?;
        let shared = self.axes.iter().filter(|a| is_shared(a) && a.extent > 1);
        let shared: Vec<(&Axis, &Var)> =
            shared.filter_map(|a| Some((a, a.index.as_var()?))).collect();
        let distinct: HashSet<&Var> = shared.iter().map(|s| s.1).collect();
        let tiles = rows.as_ref().map(|r| Tiles::new(r.count.dim(), r.each, vec![1]));
        let mut loops: Vec<(String, Dim)> =
            shared.iter().map(|(a, v)| (v.name().to_string(), a.extent.dim())).collect();
        if let (Some(rows), Some(tiles)) = (&rows, &tiles) {
            loops.push((format!("{}_band", rows.var.name()), tiles.count()));
        }
        let is_split = distinct.len() == shared.len() && !loops.is_empty();
        is_split.then_some(Split { own, shared, rows, tiles, loops })
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
        let rows = Rows { axis, var, count, each, step, first: index.constant(), reach };
        (each > 0 && 2 * padded <= 3 * each * step).then_some(Some(rows))
    }
}

/// One band: the cells that some results read.
struct Band<'a> {
    windows: &'a Windows<'a>,
    /// The axes of the padded image that it has.
    own: &'a [usize],
    /// Values of the variables that it does not have.
    given: &'a HashMap<Var, Expr>,
    /// The rows of results, the first of these, and how many they are.
    rows: Option<(&'a Rows, Expr, i64)>,
}

impl Band<'_> {
    fn extent(&self, axis: usize) -> i64 {
        match &self.rows {
            Some((rows, _, count)) if rows.axis == axis => (count - 1) * rows.step + rows.reach,
            _ => self.windows.axes[axis].extent,
        }
    }

    /// What pads the band, and the reduction of it.
    fn stmt(&self, epilogue: Option<&Stage>, target: &Target) -> Option<Stmt> {
        let w = self.windows;
        let shape: Vec<i64> = self.own.iter().map(|k| self.extent(*k)).collect();
        let band =
            Buffer::with_extents(format!("{}_band", w.padded.name), &shape, w.padded.dtype());
        let fill = self.fill(&band, Vec::new(), self.given.clone(), true);

        let mut given = self.given.clone();
        let mut local = None;
        if let Some((rows, start, _)) = &self.rows {
            let row = rows.var.fresh();
            given.insert(rows.var.clone(), row.expr() + start.clone().cast(row.dtype()));
            local = Some((rows.var.clone(), row));
        }
        let mut in_band = Subst::vars(local.iter().map(|(var, row)| (var.clone(), row.expr())));
        let at = self.own.iter().map(|k| {
            let first = self.rows.as_ref().filter(|r| r.0.axis == *k).map_or(0, |r| r.0.first);
            in_band.expr(&w.axes[*k].index) - first
        });
        let at: Vec<Expr> = at.collect();
        let value = Instead { from: w.padded, to: (&band, &at) }.expr(&w.reader.value);
        let stage = w.reader.with_value(value);
        let iters = w.reader.dims().filter_map(|(v, n, kind)| match (&local, &self.rows) {
            (Some((var, row)), Some((_, _, count))) if var == v => {
                Some((row.clone(), count.dim(), kind))
            }
            _ => (!given.contains_key(v)).then(|| (v.clone(), n, kind)),
        });
        let left = Left { iters: iters.collect(), given };
        let mut views = Views::default();
        let sums = reduce::left(&stage, &left, epilogue, target, &mut views)?;
        let body = views.define(Stmt::seq([fill, sums]));
        Some(Stmt::allocate(&band, body))
    }

    /// Stores the cells of a band from an axis on: of the image, where it is `inside` so far.
    fn fill(&self, band: &Buffer, at: Vec<Expr>, given: HashMap<Var, Expr>, inside: bool) -> Stmt {
        let Some(&k) = self.own.get(at.len()) else {
            let value = match inside {
                true => Subst::vars(given).expr(&self.windows.value),
                false => self.windows.outside.clone(),
            };
            return Stmt::store(band, at, value);
        };
        let axis = &self.windows.axes[k];
        let name = axis.var.as_ref().map_or("i", |v| v.name());
        let rows = self.rows.as_ref().filter(|r| r.0.axis == k);
        let first = rows.map(|(rows, start, _)| start.clone() * rows.step + rows.first);
        let next = |here: Expr, inside: bool| {
            let (mut at, mut given) = (at.clone(), given.clone());
            let cell = match &first {
                Some(first) => first.clone() + &here,
                None => here.clone(),
            };
            given.extend(axis.var.iter().map(|v| (v.clone(), cell.clone().cast(v.dtype()))));
            at.push(here);
            self.fill(band, at, given, inside)
        };
        let run = |from: i64, to: i64, inside: bool| match from < to {
            true => for_each(ForKind::Serial, name, to - from, |i| next(i + from, inside)),
            false => Stmt::nop(),
        };
        let (extent, (lo, hi)) = (self.extent(k), axis.inside);
        match first.clone() {
            _ if !inside || !axis.is_padded() => run(0, extent, inside),
            None => Stmt::seq([run(0, lo, false), run(lo, hi, true), run(hi, extent, false)]),
            Some(first) => for_each(ForKind::Serial, name, extent, |i| {
                let cell = first + &i;
                let inside = Expr::i32(lo as i32).less_equal(cell.clone());
                let inside = inside.and(cell.less(Expr::i32(hi as i32)));
                Stmt::if_else(inside, next(i.clone(), true), next(i, false))
            }),
        }
    }
}

/// The stages of a function that pad what one reduction reads, with the number of that reduction and how it
/// does without all of the padded image. Stages after the reduction are not looked at.
pub fn ways(func: &TensorFunc, stages: &[Stage], target: &Target) -> HashMap<usize, (usize, Way)> {
    let (allocs, _) = func.root_parts();
    let list: Vec<Stmt> = stages.iter().map(|s| s.stmt.clone()).collect();
    let found: Vec<Option<Stage>> = stages.iter().cloned().map(Some).collect();
    let pairs = pairs(&list, &found, |b| allocs.contains(b)).into_iter();
    let way = |(pad, reader): (usize, usize)| {
        let windows = Windows::of(&stages[pad], &stages[reader])?;
        Some((pad, (reader, windows.plan(None, target)?.way())))
    };
    pairs.filter_map(way).collect()
}

/// The pairs of a stage that pads and the reduction that alone reads it, by their numbers. `stages` are
/// statements of a function, `local` says which buffers are its own.
pub(crate) fn pairs(
    list: &[Stmt],
    stages: &[Option<Stage>],
    local: impl Fn(&Buffer) -> bool,
) -> Vec<(usize, usize)> {
    let touched: Vec<_> = list.iter().map(accessed).collect();
    let found = |k: usize| {
        let pad = stages[k].as_ref().filter(|s| local(&s.buffer) && !s.is_reduction())?;
        let mut users = (0..list.len()).filter(|i| {
            *i != k && (touched[*i].0.contains(&pad.buffer) || touched[*i].1.contains(&pad.buffer))
        });
        let (Some(reader), None) = (users.next(), users.next()) else { return None };
        // What is padded must stay until it is read.
        let changed = |i: usize| touched[i].1.iter().any(|b| touched[k].0.contains(b));
        let stays = reader > k && !(k..=reader).any(changed);
        (stays && stages[reader].as_ref()?.is_reduction()).then_some((k, reader))
    };
    (0..list.len()).filter_map(found).collect()
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
