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

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_analysis::Stage;
use tilewright_analysis::neutral::{ANY, step};
use tilewright_ir::index::Affine;
use tilewright_ir::visit::{Subst, fold_expr_children, free_vars};
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Fold, IterKind, Result, TensorFunc, Var};
use tilewright_schedule::Schedule;
use tilewright_target::Target;

use super::stage::Reduction;
use crate::axes::balanced;
use crate::canonical::Stages;
use crate::padding::{Iters, iters, padding};

/// Most bytes of a band: with the results it stays in the first cache, and on the stack.
const BAND_BYTES: i64 = 12 * 1024;

/// A stage that pads, and the reduction that alone reads the result.
pub(crate) struct Windows<'a> {
    target: &'a Target,
    pub(super) pad: &'a Stage,
    pub(super) reader: &'a Stage,
    pub(super) epilogue: Option<&'a Stage>,
    padded: &'a Buffer,
    op: BinOp,
    /// What the reduction combines.
    pub(super) combined: Expr,
    /// The axes of the padded image.
    pub(super) axes: Vec<ImageAxis>,
    /// What is inside, in terms of the variables of the axes, and what is outside.
    value: Expr,
    outside: Expr,
}

/// An axis of a padded image.
pub(super) struct ImageAxis {
    /// Its variable; none where it has one cell.
    var: Option<Var>,
    pub(super) extent: i64,
    /// The cells of the image on it.
    pub(super) inside: (i64, i64),
    /// Where the reduction reads.
    pub(super) index: Expr,
}

impl ImageAxis {
    pub(super) fn is_padded(&self) -> bool {
        self.inside != (0, self.extent)
    }
}

/// Bounds of a reduction variable: only the steps with `inside.0 <= index + step * var < inside.1` change
/// anything, such as those that read inside of an image.
pub(crate) struct Guard {
    /// The index where the variable is zero.
    index: Expr,
    /// The reduction variable.
    pub(super) var: Var,
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
    pub(super) fn place(&self) -> Option<(Var, i64, i64)> {
        let index = Affine::from_expr(&self.index)?;
        let mut moves = index.vars();
        let (Some((var, by)), None) = (moves.next(), moves.next()) else { return None };
        Some((var.clone(), by, index.constant()))
    }

    /// Of `count` results, those whose windows have all of `steps` inside: the first, and the end of these.
    pub(super) fn whole(&self, steps: i64, count: i64) -> Option<(i64, i64)> {
        let (_, by, first) = self.place()?;
        let (from, to) = self.inside;
        let gap = from - first;
        let start = (gap.div_euclid(by) + i64::from(gap.rem_euclid(by) != 0)).clamp(0, count);
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
enum WindowLoops<'a> {
    Bounds { reduction: Box<Reduction<'a>>, v: usize, guards: Vec<Guard> },
    Bands(Split),
}

/// An image in bands.
pub(super) struct Split {
    /// The variables of the reduction along axes that bands do not have.
    pub(super) shared: Vec<Var>,
    /// The rows of a band where it has not all of an image.
    pub(super) rows: Option<Rows>,
}

/// The rows of results that are computed from one band.
pub(super) struct Rows {
    /// The variable of the reduction that counts rows of results.
    pub(super) var: Var,
    /// Rows of all results, and of those of a band.
    pub(super) count: i64,
    pub(super) each: i64,
}

/// The windows that a reduction reads, if what it reads is padded for it alone.
pub(crate) fn of<'a>(all: &'a Stages, reader: usize, target: &'a Target) -> Option<Windows<'a>> {
    let (pad, _) = all.pairs().into_iter().find(|pair| pair.1 == reader)?;
    Windows::recognise(all.get(pad)?, all.get(reader)?, all.epilogue(reader), target)
}

/// The stages of a function that pad what one reduction reads, with the number of that reduction and how it
/// does without all of the padded image. Stages after the reduction are not looked at.
pub(crate) fn ways(func: &TensorFunc, target: &Target) -> HashMap<usize, (usize, Way)> {
    let Some(all) = Stages::from_func(func) else { return HashMap::default() };
    all.pairs()
        .into_iter()
        .filter_map(|(pad, reader)| {
            let windows = Windows::recognise(all.get(pad)?, all.get(reader)?, None, target)?;
            Some((pad, (reader, windows.way()?)))
        })
        .collect()
}

impl<'a> Windows<'a> {
    /// `None` where one of the stages is of another form, or has an extent that is open or zero.
    fn recognise(
        pad: &'a Stage,
        reader: &'a Stage,
        epilogue: Option<&'a Stage>,
        target: &'a Target,
    ) -> Option<Self> {
        if pad.is_reduction() || !is_fixed_and_whole(pad) || !is_fixed_and_whole(reader) {
            return None;
        }
        let (inside, value, outside) = padding(&iters(pad), &pad.value)?;
        let reduction = reader.reduction()?;
        let mut loads = reader.loads().into_iter().filter(|(b, _)| *b == pad.buffer);
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
            (inside.0 < inside.1).then_some(ImageAxis { var, extent, inside, index })
        });
        Some(Windows {
            target,
            pad,
            reader,
            epilogue,
            padded: &pad.buffer,
            op: reduction.op,
            combined: reduction.value,
            axes: axes.collect::<Option<Vec<ImageAxis>>>()?,
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
    ) -> Result<bool> {
        match self.plan(padded) {
            Some(WindowLoops::Bounds { reduction, v, guards }) => {
                self.bounds(&reduction, v, &guards, sch, func)?;
            }
            Some(WindowLoops::Bands(split)) => return self.bands(&split, sch, func),
            None => return Ok(false),
        }
        Ok(true)
    }

    fn way(&self) -> Option<Way> {
        let padded = Reduction::recognise(self.reader, self.epilogue, self.target)?;
        Some(match self.plan(&padded)? {
            WindowLoops::Bounds { guards, .. } => Way::Bounds { inside: self.inside(&guards) },
            WindowLoops::Bands(_) => Way::Bands,
        })
    }

    /// How the reduction does without the padded image; `None` where neither way serves: also where vectors
    /// run along an axis of which a band has one cell.
    fn plan(&self, padded: &Reduction<'a>) -> Option<WindowLoops<'a>> {
        let of_padded = padded.vector_axis()?;
        if let Some((value, guards)) = self.guarded()
            && let Some(reduction) = self.with(&value, &guards)
            && let Some(v) = reduction.vector_axis()
        {
            // Vectors of the other loops would run along an axis that has bounds, or would be fuller.
            let (lanes, extent) = (reduction.lanes(), reduction.len(v));
            let is_full = extent % lanes == 0 || extent >= 3 * lanes;
            let same = innermost_var(padded, of_padded) == innermost_var(&reduction, v)
                && (is_full || padded.len(of_padded) == extent);
            if same && reduction.axes[v].kind == IterKind::Spatial {
                return Some(WindowLoops::Bounds { reduction: Box::new(reduction), v, guards });
            }
        }
        let split = self.split()?;
        let along = innermost_var(padded, of_padded)?;
        (!split.shared.contains(&along)).then_some(WindowLoops::Bands(split))
    }

    /// The reduction of another value, with bounds.
    fn with(&self, value: &Expr, guards: &[Guard]) -> Option<Reduction<'a>> {
        let vars: HashSet<Var> = guards.iter().flat_map(Guard::vars).collect();
        let found = self.reduction(&iters(self.reader), value, (&vars, &HashSet::default()))?;
        Some(Reduction { is_bounded: true, ..found })
    }

    /// The reduction over iterations, of a value, with variables that are used or stay alone.
    pub(super) fn reduction(
        &self,
        iters: &Iters,
        value: &Expr,
        vars: (&HashSet<Var>, &HashSet<Var>),
    ) -> Option<Reduction<'a>> {
        Reduction::over((self.reader, self.epilogue), iters, value, vars, self.target)
    }

    /// The part of all steps that are inside of the image.
    fn inside(&self, guards: &[Guard]) -> f64 {
        guards.iter().map(|guard| self.inside_guard(guard).unwrap_or(1.0)).product()
    }

    /// The part of all steps for which one condition holds.
    fn inside_guard(&self, guard: &Guard) -> Option<f64> {
        let steps = self.extent_of(&guard.var)?;
        let (place, by, start) = guard.place()?;
        let places = self.extent_of(&place)?;
        let inside = guard.inside.0..guard.inside.1;
        let all = (0..places).flat_map(|place| (0..steps).map(move |step| (place, step)));
        let count = all
            .filter(|(place, step)| inside.contains(&(start + by * place + guard.step * step)))
            .count();
        Some(count as f64 / (places * steps) as f64)
    }

    fn extent_of(&self, v: &Var) -> Option<i64> {
        self.reader.iters().find(|i| i.0 == v).map(|i| i.1)
    }

    /// What the reduction combines of the image itself, with bounds for its steps.
    fn guarded(&self) -> Option<(Expr, Vec<Guard>)> {
        let ExprKind::Load(image, at) = self.value.kind() else { return None };
        if !self.is_neutral() {
            return None;
        }
        let mut guards: Vec<Guard> = Vec::new();
        for axis in self.axes.iter().filter(|a| a.is_padded()) {
            let index = Affine::from_expr(&axis.index).filter(|i| i.opaque().next().is_none())?;
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
        let value = self.combined.replace(|e| match e.kind() {
            ExprKind::Load(b, _) if b == self.padded => Some(image.load(at.clone())),
            _ => None,
        });
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
        let value = Filled(self.padded, &self.outside).expr(&self.combined);
        let Some(value) = number_of(&value) else { return false };
        let start = self.reader.init.as_ref().and_then(number_of);
        match self.op {
            BinOp::Add => value == 0.0,
            BinOp::Mul => value == 1.0,
            BinOp::Max => start.is_some_and(|start| value <= start),
            BinOp::Min => start.is_some_and(|start| start <= value),
            _ => false,
        }
    }

    /// Whether what moves along an axis as the results do is no part of a band.
    pub(super) fn is_shared(&self, axis: &ImageAxis) -> bool {
        !axis.is_padded()
            && (axis.extent == 1
                || axis.index.as_var().is_some_and(|v| {
                    let found = self.reader.spatial().find(|(x, _)| *x == v);
                    found.is_some_and(|(_, n)| n == axis.extent)
                }))
    }

    /// How the image is taken in bands, if it is.
    fn split(&self) -> Option<Split> {
        let own: Vec<usize> =
            (0..self.axes.len()).filter(|k| !self.is_shared(&self.axes[*k])).collect();
        // A band of one row is as one value of an axis that has no band.
        let (single, rows) = match self.rows(&own)? {
            Some(rows) if rows.each == 1 => (Some(rows.var), None),
            rows => (None, rows),
        };
        let shared = self.axes.iter().filter(|a| self.is_shared(a) && a.extent > 1);
        let shared = shared.filter_map(|a| a.index.as_var().cloned());
        let shared: Vec<Var> = shared.chain(single).collect();
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
            let index = Affine::from_expr(&self.axes[*k].index)?;
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
            Affine::from_expr(&self.axes[**k].index).is_none_or(|i| i.coefficient(&var) != Some(0))
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

fn is_fixed_and_whole(s: &Stage) -> bool {
    s.is_fixed() && s.dims().all(|i| i.1 != 0)
}

fn innermost_var(r: &Reduction<'_>, k: usize) -> Option<Var> {
    r.axes[k].parts.last().map(|p| p.0.clone())
}

fn number_of(e: &Expr) -> Option<f64> {
    e.as_float().or_else(|| e.as_int().map(|n| n as f64))
}
