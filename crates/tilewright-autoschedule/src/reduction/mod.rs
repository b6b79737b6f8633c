//! Traces of reductions that are no contractions in register tiles: pools, sums, maxima, and products
//! that are too small for these or of other types.
//!
//! The result is computed in tiles that stay in registers. One axis is the *vector* axis `v`, along
//! which a tile is a few vectors long; another may be the *row* axis `u`, along which a tile has several
//! rows, so that each vector that is loaded serves all rows ([`tiles`]):
//!
//! ```text
//! for the other spatial axes, tiles of v, tiles of u:
//!     sums[rows][vectors] = identity
//!     for the reduction axes:
//!         sums[u][v] = op(sums[u][v], value(u, v))
//!     out[u][v] = epilogue(sums[u][v])
//! ```
//!
//! Both axes come from the accesses: `v` should move each load by one or not at all, `u` should leave the
//! loads that move along `v` where they are. Nothing depends on what the operator is called.
//!
//! Where only a reduction axis runs along memory (a sum of rows), the vector axis is that axis: each result
//! has vectors of partial results, which are combined at the end ([`partial`]). This is the one case that
//! changes the order of a reduction.
//!
//! An elementwise stage that follows and reads the result point by point is computed from the registers (the
//! epilogue). Windows over a padded image do without a copy of all of it ([`window`]).

mod bands;
mod bounds;
pub(crate) mod choice;
mod inlined;
mod partial;
mod stage;
mod tiles;
pub(crate) mod window;

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_analysis::Stage;
use tilewright_analysis::stage::Extent;
use tilewright_ir::{DType, Dim, Error, Expr, IterKind, Result, Var};
use tilewright_schedule::compute::Position;
use tilewright_schedule::value::Lambda;
use tilewright_schedule::{BlockRef, LoopRef, Schedule};
use tilewright_target::Target;

use crate::canonical::{Stages, follows, refusal};
use crate::padding::{iters, padding};
use crate::parallel::behind;
use crate::parts::{
    self, computed_at, cut, few_iterations, innermost, no_unroll, row_of_vectors, written,
};
use crate::share::{share, shared};

use self::choice::{Level, Tiling};
pub(crate) use self::stage::Reduction;
use self::window::Windows;

/// Schedules the reductions of a function that have no loops yet. Says why where a primitive refuses, and second
/// which reductions stay as they are for it.
pub(crate) fn schedule(
    sch: &mut Schedule,
    func: &Arc<str>,
    target: &Target,
) -> (Vec<Error>, Vec<String>) {
    let (mut remarks, mut plain) = (Vec::new(), Vec::new());
    let Some(all) = sch.func(func).ok().and_then(|f| Stages::from_func(f)) else {
        return (remarks, plain);
    };
    for (k, stage) in all.each(true) {
        let Some(reduction) = Reduction::recognise(stage, all.epilogue(k), target) else {
            continue;
        };
        let windows = window::of(&all, k, target);
        let pad = all.pairs().into_iter().find(|(_, reader)| *reader == k);
        let pad = pad.and_then(|(pad, _)| all.get(pad)).filter(|_| !stage.is_fixed());
        let inlined = pad.and_then(|pad| inlined::of(pad, stage, all.epilogue(k), target));
        let ways = windows.iter().map(Way::Windows);
        let ways = ways.chain(inlined.iter().zip(pad).map(|(r, pad)| Way::Inlined(r, pad)));
        let mut refused = None;
        // A simpler way is tried where a primitive refuses; what it leaves half done is thrown away.
        for way in ways.chain([Way::Padded(pad)]) {
            let mut trial = sch.clone();
            match reduction.loops(&mut trial, func, &way) {
                Ok(true) => {
                    *sch = trial;
                    refused = None;
                    break;
                }
                Ok(false) => {}
                Err(e) => {
                    refused = Some(refusal(stage.name(), &e));
                    remarks.push(e.context(format_args!("function `{func}`")));
                }
            }
        }
        plain.extend(refused);
    }
    (remarks, plain)
}

/// What becomes of the padded image that a reduction reads, where it reads one.
enum Way<'a, 'b> {
    /// Of known size: there is none, or bands of it.
    Windows(&'b Windows<'a>),
    /// Of open size: there is none. The reduction of the image, and the stage that pads it.
    Inlined(&'b Reduction<'a>, &'b Stage),
    /// It is made by a stage.
    Padded(Option<&'b Stage>),
}

impl<'a> Reduction<'a> {
    /// Makes its loops. Says whether there are any.
    fn loops(&self, sch: &mut Schedule, func: &Arc<str>, way: &Way<'a, '_>) -> Result<bool> {
        let pad = match way {
            Way::Windows(windows) => return windows.loops(self, sch, func),
            Way::Inlined(inlined, pad) => {
                let pad = sch.get_block(pad.name(), func)?;
                sch.compute_inline(&pad)?;
                return inlined.loops(sch, func, &Way::Padded(None));
            }
            Way::Padded(pad) => *pad,
        };
        // Nothing runs at all.
        if self.axes.iter().any(|a| a.extent == 0) {
            return Ok(false);
        }
        match self.vector_axis() {
            Some(v) if self.axes[v].kind == IterKind::Spatial => {
                let places = Places::prepare(self, sch, func)?;
                let tiling = self.tiling(v);
                let made = self.tiled(sch, &places, &tiling)?;
                if let Some(pad) = pad {
                    self.pad(sch, &places, &tiling, pad)?;
                }
                self.parallel(sch, &places, &tiling, &made)?;
            }
            v => {
                let places = Places::prepare(self, sch, func)?;
                self.one_by_one(sch, &places, v)?;
            }
        }
        Ok(true)
    }

    /// Computes what makes the image right before it is read: in the loops over the images that it has. What is
    /// beside the image along an axis has loops of its own; along the last one, where it is open, it is in the vectors
    /// of its rows, if the machine leaves out lanes.
    fn pad(&self, sch: &mut Schedule, places: &Places, tiling: &Tiling, pad: &Stage) -> Result<()> {
        let images: Vec<&Level> =
            tiling.order.iter().take_while(|l| self.is_image(l, pad)).collect();
        let Some(last) = images.len().checked_sub(1) else { return Ok(()) };
        let depth = places.units + last;
        let head = sch.latest(places.block.clone());
        let Some(around) = sch.get_loops(&head)?.into_iter().nth(depth) else { return Ok(()) };
        let block = sch.get_block(pad.name(), &places.block.func)?;
        let bytes = pad.buffer.dtype().bytes();
        // Rows of an image are short, and where their length is open, a vector has more lanes than they have left.
        let is_open = pad.dims().last().is_some_and(|row| row.1.known().is_none());
        let masks = is_open && self.target.vectors.leaves_out(bytes);
        let lanes = masks.then(|| self.target.vectors.lanes(bytes));
        let mut trial = sch.clone();
        let edges = self.edges(&images, pad);
        if edges.and_then(|e| padded_at(&mut trial, &block, &around, depth, &e, lanes)).is_some() {
            *sch = trial;
            return Ok(());
        }
        trial = sch.clone();
        let Some(all) = computed_at(&mut trial, &block, &around, depth)? else { return Ok(()) };
        *sch = trial.clone();
        if let Some(lanes) = lanes
            && all.iter().try_for_each(|b| row_of_vectors(&mut trial, b, lanes)).is_ok()
        {
            *sch = trial;
        }
        Ok(())
    }

    /// The cells before, in and behind the image along each axis of a stage that pads, but for those along which
    /// the loops over images go; `None` where it does not pad so.
    fn edges(&self, images: &[&Level], pad: &Stage) -> Option<Vec<Edges>> {
        let (inside, ..) = padding(&iters(pad), &pad.value)?;
        let load = self.loads.iter().find(|l| l.buffer == pad.buffer)?;
        let goes = |index: &Expr| {
            images.iter().any(|l| match l {
                Level::Axis(k) => {
                    self.axes[*k].parts.iter().any(|(v, _)| index.as_var() == Some(v))
                }
                Level::Vectors | Level::Rows => false,
            })
        };
        let axes = pad.covers_buffer()?.into_iter().zip(&load.indices);
        let own = axes.filter_map(|(v, index)| v.filter(|_| !goes(index)));
        own.map(|v| {
            let extent = pad.dims().find(|d| *d.0 == v)?.1;
            let (first, end) = *inside.get(&v)?;
            Some(Edges { first: first.dim(), inside: end - first.dim(), behind: extent - end })
        })
        .collect()
    }

    fn is_image(&self, l: &&Level, pad: &Stage) -> bool {
        match l {
            Level::Axis(k) => self.axes[*k].parts.iter().all(|(v, _)| self.is_alone(v, pad)),
            Level::Vectors | Level::Rows => false,
        }
    }

    /// Whether a variable is an axis of an image, and in no other axis of it. What a loop over another variable
    /// computes of the image is the same each time.
    fn is_alone(&self, v: &Var, pad: &Stage) -> bool {
        let loads = self.loads.iter().filter(|l| l.buffer == pad.buffer);
        let (mut own, mut others) = (false, false);
        for index in loads.flat_map(|l| &l.indices) {
            let is_it = index.as_var() == Some(v);
            own |= is_it;
            others |= !is_it && index.mentions(v);
        }
        own && !others
    }

    /// Results in vectors of partial ones along an axis of the reduction, or one by one.
    fn one_by_one(&self, sch: &mut Schedule, places: &Places, v: Option<usize>) -> Result<()> {
        let levels: Vec<usize> = self.spatial().collect();
        let reduce: Vec<usize> = self.reduce().filter(|k| Some(*k) != v).chain(v).collect();
        let around = places.lay_out(sch, self, (&levels, &levels), &reduce)?;
        places.meet(sch, &places.block, &places.finish, around)?;
        match v {
            Some(v) => self.partial(sch, &places.block, v, around)?,
            None => {
                let loops = sch.get_loops(&places.block)?;
                if let Some(first) = loops.get(around) {
                    sch.decompose_reduction(&places.block, first)?;
                }
                loops[around..].iter().try_for_each(|l| no_unroll(sch, l))?;
            }
        }
        let extents: Vec<Dim> = levels.iter().map(|k| self.axes[*k].extent).collect();
        let count = shared(&extents, extents.len(), self.work());
        self.share(sch, places, around - extents.len(), count, None)
    }

    /// Shares the iterations of so many loops, behind those of one iteration: those before one that is in
    /// several `parts`, or with it, as one loop again.
    fn share(
        &self,
        sch: &mut Schedule,
        places: &Places,
        units: usize,
        count: usize,
        parts: Option<usize>,
    ) -> Result<()> {
        let head = sch.latest(places.block.clone());
        let whole = parts.map_or(count, |at| count.min(at - units));
        if whole < count {
            let mut trial = sch.clone();
            let result = written(&trial, &places.finish)?;
            let parts = behind(&mut trial, &head, units + whole, &result)?;
            if trial
                .join_loops(&parts)
                .and_then(|_| share_loops(&mut trial, whole + 1, &head, units))
                .is_ok()
            {
                *sch = trial;
                return Ok(());
            }
        }
        share_loops(sch, whole, &head, units)
    }
}

/// Along an axis of a padded image: how many cells are before the image, in it, and behind it.
struct Edges {
    first: Dim,
    inside: Dim,
    behind: Dim,
}

/// Computes a stage that pads in a loop at a depth, with loops of their own for what is before and behind the image
/// along each of its axes. Where vectors of so many `lanes` may leave out some, they run over whole rows:
///
/// ```text
/// for rows before the image, and behind it, vectors:   padded[row, vector] = constant
/// for vectors, rows of the image:                      padded[row, vector] = where inside: image[row, vector]
/// ```
///
/// What a vector leaves out is the same for all rows of the image. `None` where that is refused.
fn padded_at(
    sch: &mut Schedule,
    block: &BlockRef,
    around: &LoopRef,
    depth: usize,
    edges: &[Edges],
    lanes: Option<i64>,
) -> Option<()> {
    sch.compute_at(block, around, false, Position::default()).ok()?;
    if sch.get_loops(block).ok()?.len() != depth + 1 + edges.len() {
        return None;
    }
    let mut inside = block.clone();
    let apart = edges.len() - usize::from(lanes.is_some());
    for (k, axis) in edges.iter().take(apart).enumerate() {
        let all = [axis.first, axis.inside, axis.behind];
        let all: Vec<Dim> = all.into_iter().filter(|n| *n != 0).collect();
        let mut sizes: Vec<Option<Expr>> = all.iter().map(|n| Some(n.typed(DType::I32))).collect();
        sizes.iter_mut().rev().take(1).for_each(|n| *n = None);
        let mut parts = cut(sch, &inside, depth + 1 + k, &sizes).ok()?;
        inside = parts.remove(usize::from(axis.first != 0));
        if let Some(lanes) = lanes {
            parts.iter().try_for_each(|b| row_of_vectors(sch, b, lanes)).ok()?;
        } else if k + 1 == edges.len() {
            let ends = all.iter().filter(|n| **n != axis.inside).zip(&parts);
            for (_, end) in ends.filter(|(n, _)| n.known().is_none()) {
                let cells = innermost(sch, end).ok()?;
                few_iterations(sch, &cells).ok()?;
            }
        }
    }
    let lanes = match lanes {
        Some(lanes) => lanes,
        None => return Some(()),
    };
    row_of_vectors(sch, &inside, lanes).ok()?;
    if edges.len() > 1 {
        let mut loops = sch.get_loops(&inside).ok()?.split_off(depth + edges.len() - 1);
        loops.swap(0, 1);
        sch.reorder(&loops).ok()?;
    }
    Some(())
}

/// Shares the iterations of so many loops; those of the inner ones alone where something stands between them and the
/// others, as the copy of an image does inside of a batch.
fn share_loops(sch: &mut Schedule, count: usize, head: &BlockRef, units: usize) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let loops = sch.get_loops(head)?;
    let wanted = &loops[units..units + count];
    let mut refused = Ok(());
    for first in 0..count {
        let mut trial = sch.clone();
        match share(&mut trial, &wanted[first..]) {
            Ok(()) => {
                *sch = trial;
                return Ok(());
            }
            Err(e) => refused = refused.and(Err(e)),
        }
    }
    refused
}

/// The blocks of a reduction, and where its variables stand in them.
struct Places {
    block: BlockRef,
    /// The block that makes the result.
    finish: BlockRef,
    /// The number of each variable among those of the reduction, its spatial ones among the axes of its buffer
    /// and among the variables of the block that makes the result.
    own: HashMap<Var, usize>,
    dims: HashMap<Var, usize>,
    last: HashMap<Var, usize>,
    /// How many variables each of the three has.
    ranks: [usize; 3],
    /// How many spatial variables have one value.
    units: usize,
    /// The variables of the reduction.
    reduced: HashSet<Var>,
}

impl Places {
    /// Puts the sums of a reduction into registers, and what is made of them into a block of its own.
    fn prepare(r: &Reduction<'_>, sch: &mut Schedule, func: &Arc<str>) -> Result<Places> {
        let block = sch.get_block(r.stage.name(), func)?;
        let spatial = r.stage.dims().filter(|d| d.2 == IterKind::Spatial).map(|d| d.0.clone());
        let spatial: Vec<Var> = spatial.collect();
        let own = r.stage.dims().enumerate().map(|(k, (v, ..))| (v.clone(), k));
        let own: HashMap<Var, usize> = own.collect();
        let (finish, dims, last, ranks) = match (r.epilogue, r.stage.covers_buffer()) {
            (Some(next), Some(dims)) => {
                let map = follows(r.stage, next)
                    .ok_or_else(|| Error::internal("a stage that follows no longer does"))?;
                let last: HashMap<Var, usize> = next
                    .dims()
                    .enumerate()
                    .filter_map(|(k, (v, ..))| Some((map.get(v)?.as_var()?.clone(), k)))
                    .collect();
                sch.set_scope(&block, 0usize, "local")?;
                let numbered = dims.iter().enumerate().filter_map(|(d, v)| Some((v.clone()?, d)));
                let ranks = [dims.len(), next.dims().count()];
                (sch.get_block(next.name(), func)?, numbered.collect(), last, ranks)
            }
            _ => {
                // Sums, and the copy of them, have the variables of the reduction.
                let places: Vec<usize> = spatial.iter().map(|v| own[v]).collect();
                let count = places.len();
                let map = Lambda::over_indices(own.len(), move |at| {
                    places.iter().map(|k| at[*k].clone()).collect()
                });
                let finish = sch.reindex_cache_write(&block, 0usize, "local", &map)?;
                let numbered = spatial.iter().enumerate().map(|(k, v)| (v.clone(), k));
                let numbered: HashMap<Var, usize> = numbered.collect();
                (finish, numbered.clone(), numbered, [count, count])
            }
        };
        Ok(Places {
            block,
            finish,
            ranks: [own.len(), ranks[0], ranks[1]],
            own,
            dims,
            last,
            units: r.stage.dims().filter(|d| d.1 == 1 && d.2 == IterKind::Spatial).count(),
            reduced: r.stage.reduce().map(|(v, _)| v.clone()).collect(),
        })
    }

    /// Gives both blocks loops over axes: those of one iteration, `levels` from outside, and the axes of the
    /// reduction; sums lie in an order of their own, in which the result is made as well. Returns how many loops
    /// are around the reduction.
    fn lay_out(
        &self,
        sch: &mut Schedule,
        r: &Reduction<'_>,
        (levels, sums): (&[usize], &[usize]),
        reduce: &[usize],
    ) -> Result<usize> {
        let (spatial, in_order, reduced) =
            (parts_of(levels, r), parts_of(sums, r), parts_of(reduce, r));
        let [rank, of_sums, of_result] = self.ranks;
        if let Some(sums) = layout(&in_order, of_sums, &self.dims, &HashSet::default()) {
            parts::lay_out(sch, &self.block, &sums)?;
        }
        let all = [&spatial[..], &reduced].concat();
        if let Some(own) = layout(&all, rank, &self.own, &self.reduced) {
            sch.transform_block_layout(&self.block, &own)?;
        }
        if let Some(last) = layout(&in_order, of_result, &self.last, &HashSet::default()) {
            sch.transform_block_layout(&self.finish, &last)?;
        }
        Ok(self.units + levels.len())
    }

    /// Computes what is made of sums in the last one of so many loops around them.
    fn meet(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        finish: &BlockRef,
        around: usize,
    ) -> Result<()> {
        match sch.get_loops(block)?[..around].last() {
            Some(innermost) => {
                sch.reverse_compute_at(finish, innermost, false, Position::default())
            }
            // One result is in no loop.
            None => Ok(()),
        }
    }
}

fn parts_of(all: &[usize], r: &Reduction<'_>) -> Vec<Vec<(Var, i64)>> {
    all.iter()
        .map(|k| r.axes[*k].parts.iter().map(|(v, n)| (v.clone(), n.estimate())).collect())
        .collect()
}

/// The map that makes a variable of each group of variables, in their order, from `rank` indices; those that
/// are in no group come before, or, if they are `reduced`, before the first group of these. `None` where it
/// changes nothing.
fn layout(
    groups: &[Vec<(Var, i64)>],
    rank: usize,
    place: &HashMap<Var, usize>,
    reduced: &HashSet<Var>,
) -> Option<Lambda> {
    let (mut before, mut after, mut used) = (Vec::new(), Vec::new(), HashSet::default());
    for group in groups {
        let at: Vec<(usize, Dim)> =
            group.iter().filter_map(|(v, n)| Some((*place.get(v)?, n.dim()))).collect();
        used.extend(at.iter().map(|(k, _)| *k));
        let is_reduced = group.iter().any(|(v, _)| reduced.contains(v));
        if is_reduced { after.push(at) } else { before.push(at) }
    }
    let last: HashSet<usize> = reduced.iter().filter_map(|v| place.get(v).copied()).collect();
    let all: Vec<Vec<(usize, Dim)>> = unit_groups(false, rank, &used, &last)
        .into_iter()
        .chain(before)
        .chain(unit_groups(true, rank, &used, &last))
        .chain(after)
        .collect();
    let same = all.iter().enumerate().all(|(k, g)| matches!(g[..], [(at, _)] if at == k));
    (!same).then(|| parts::in_groups(rank, all))
}

fn unit_groups(
    wanted: bool,
    rank: usize,
    used: &HashSet<usize>,
    last: &HashSet<usize>,
) -> Vec<Vec<(usize, Dim)>> {
    let units = (0..rank).filter(|k| !used.contains(k));
    units.filter(|k| last.contains(k) == wanted).map(|k| vec![(k, Dim::from(1))]).collect()
}
