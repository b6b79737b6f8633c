//! Windows over padded bands of an image, by primitives.
//!
//! ```text
//! for other axes, bands of rows:                                        split, loop_partition
//!     band = constant beside the image, the image inside                compute_at, loop_partition
//!     sums of the rows of results that read it, in tiles                (tiles)
//! ```
//!
//! The last band has fewer rows where they do not divide, as loops of their own.

use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use tilewright_analysis::stage::Extent;
use tilewright_ir::index::Affine;
use tilewright_ir::{Dim, Error, IterKind, Result, Var};
use tilewright_schedule::compute::Position;
use tilewright_schedule::{BlockRef, LoopRef, Schedule};

use super::choice::{Level, Tiling};
use super::tiles::Around;
use super::window::{ImageAxis, Rows, Split, Windows};
use super::{Places, Reduction};
use crate::padding::Iters;
use crate::parts::{TileBlocks, cut, loop_at, number, partition, split, split_nest};
use crate::share::shared;

/// The blocks of bands of so many rows: what adds up sums and what makes the result of them.
struct Ends {
    block: BlockRef,
    finish: BlockRef,
    rows: Option<(usize, i64)>,
}

/// The rows that are taken in bands.
#[derive(Clone, Copy)]
struct Band<'a> {
    /// Their axis.
    axis: usize,
    rows: &'a Rows,
    /// The place of their loop among those around a tile.
    place: usize,
}

impl Windows<'_> {
    /// The reduction, in bands that are padded one by one. Says whether there are such loops.
    pub(super) fn bands(&self, split: &Split, sch: &mut Schedule, func: &Arc<str>) -> Result<bool> {
        let Some(r) = self.of_bands(split) else { return Ok(false) };
        let Some(v) = r.vector_axis().filter(|v| r.axes[*v].kind == IterKind::Spatial) else {
            return Ok(false);
        };
        let alone: Vec<usize> = split.shared.iter().filter_map(|v| r.axis_of(v)).collect();
        if alone.contains(&v) {
            return Ok(false);
        }
        let mut tiling = r.tiling(v);
        tiling.order.retain(|l| !matches!(l, Level::Axis(k) if alone.contains(k)));
        let in_tiles = tiling.axes();
        let band = split.rows.as_ref().and_then(|rows| {
            let axis = r.axis_of(&rows.var)?;
            Some(Band { axis, rows, place: in_tiles.iter().position(|k| *k == axis)? })
        });

        // Axes of which bands have one value are outside, then bands of rows, then what a band has.
        let places = Places::prepare(&r, sch, func)?;
        let rows = band.map(|b| b.axis);
        let own = in_tiles.into_iter().filter(|k| Some(*k) != rows);
        let levels: Vec<usize> = alone.iter().copied().chain(rows).chain(own).collect();
        let sums: Vec<usize> = alone.iter().copied().chain(tiling.of_sums()).collect();
        let reduce: Vec<usize> = r.reduce().collect();
        let all = places.lay_out(sch, &r, (&levels, &sums), &reduce)?;
        let units = all - levels.len();
        let finish = sch.get_loops(&places.finish)?.len() - sums.len();
        let depths = [units + alone.len(), finish + alone.len()];
        let (ends, parted) = match band {
            Some(band) => self.in_rows(sch, &places, &tiling, band, (depths, all))?,
            None => {
                self.pad(sch, &places, depths[0], None)?;
                let (block, finish) = (places.block.clone(), places.finish.clone());
                (vec![Ends { block, finish, rows: None }], None)
            }
        };
        let [units_of_tiles, finish] = depths.map(|d| d + usize::from(band.is_some()));
        for Ends { block, finish: result, rows } in ends {
            let around = Around { units: units_of_tiles, finish, rows };
            r.tiles(sch, &places, (block, result), &tiling, &around)?;
        }
        let mut extents: Vec<Dim> = alone.iter().map(|k| r.axes[*k].extent).collect();
        extents.extend(band.map(|b| b.rows.count.dim().ceildiv(b.rows.each.dim())));
        let work = self.reader.iters().map(|i| i.1).fold(1, i64::saturating_mul);
        let count = shared(&extents, extents.len(), work);
        r.share(sch, &places, units, count, parted)?;
        Ok(true)
    }

    /// The reduction of one band.
    fn of_bands(&self, split: &Split) -> Option<Reduction<'_>> {
        let iters = self.reader.dims().map(|(v, n, kind)| match &split.rows {
            Some(rows) if rows.var == *v => (v.clone(), rows.each.dim(), kind),
            _ => (v.clone(), n, kind),
        });
        let iters: Iters = iters.collect();
        let rows = split.rows.iter().map(|r| &r.var);
        let alone: HashSet<Var> = split.shared.iter().chain(rows).cloned().collect();
        let mut found = self.reduction(&iters, &self.combined, (&HashSet::default(), &alone))?;
        // A band has one value of these, so that a tile has no rows of them.
        found.loose.extend(split.shared.iter().cloned());
        Some(found)
    }

    /// Takes rows in bands, at depths in both blocks, where the sums have so many loops around the reduction. Returns
    /// the blocks of whole bands and of the last one where it is smaller, and the depth at which they are apart.
    fn in_rows(
        &self,
        sch: &mut Schedule,
        places: &Places,
        tiling: &Tiling,
        band: Band<'_>,
        ([depth, beside], all): ([usize; 2], usize),
    ) -> Result<(Vec<Ends>, Option<usize>)> {
        let Band { axis, rows: Rows { each, count, .. }, place } = band;
        let loops = sch.get_loops(&places.block)?;
        let [bands, row] = split(sch, &loops[depth], None, *each)?;
        let mut inner = loops[depth + 1..all].to_vec();
        inner.insert(place, row);
        sch.reorder(&[&[bands], &inner[..], &loops[all..]].concat())?;
        self.pad(sch, places, depth + 1, Some(band.rows))?;
        let (full, rest) = (count / each, count % each);
        let at = beside + tiling.of_sums().iter().position(|k| *k == axis).unwrap_or(0);
        let mut ends = Vec::new();
        let mut parts = vec![TileBlocks::whole(vec![places.block.clone()])];
        let mut results = vec![places.finish.clone()];
        if rest != 0 {
            let sizes = [number(full * each), number(rest)];
            results = split_nest(sch, &places.finish, (0, at), &sizes)?;
            partition(sch, &mut parts, depth, &[number(full), number(1)])?;
        }
        for ((part, finish), size) in parts.into_iter().zip(results).zip([*each, rest]) {
            let Some(block) = part.blocks.last().cloned() else {
                return Err(Error::internal("a loop that was taken apart is gone"));
            };
            if part.ragged {
                let rows = loop_at(sch, &block, depth + 1 + place)?;
                sch.loop_partition(&rows, Some(&[number(rest), number(each - rest)]))?;
            }
            let loops = sch.get_loops(&finish)?;
            let [bands, row] = split(sch, &loops[at], None, size)?;
            let mut order: Vec<LoopRef> = loops[beside..].to_vec();
            order[at - beside] = row;
            sch.reorder(&[&[bands], &order[..]].concat())?;
            ends.push(Ends { block, finish, rows: Some((axis, size)) });
        }
        Ok((ends, (rest != 0).then_some(depth)))
    }

    /// Pads a band in the last one of so many loops around the sums. What is beside the image along an axis has
    /// loops of its own, but for rows of bands.
    fn pad(
        &self,
        sch: &mut Schedule,
        places: &Places,
        around: usize,
        rows: Option<&Rows>,
    ) -> Result<()> {
        let loops = sch.get_loops(&places.block)?;
        let Some(innermost) = loops[..around].last() else {
            return Err(Error::internal("a band without a loop around it"));
        };
        let mut inside = sch.get_block(self.pad.name(), &places.block.func)?;
        sch.compute_at(&inside, innermost, false, Position::default())?;
        let own = self
            .axes
            .iter()
            .filter(|a| moves_with_rows(a, rows) || !self.is_shared(a) && a.extent > 1);
        let own: Vec<&ImageAxis> = own.collect();
        // Rows of bands may be one.
        if sch.get_loops(&inside)?.len() != around + own.len() {
            return Ok(());
        }
        for (k, axis) in own
            .iter()
            .enumerate()
            .filter(|(_, axis)| axis.is_padded() && !moves_with_rows(axis, rows))
        {
            let Some((first, end)) = self.read(axis) else { continue };
            let (lo, hi) = (axis.inside.0.clamp(first, end), axis.inside.1.clamp(first, end));
            let sizes = [lo - first, hi - lo, end - hi];
            let mut sizes: Vec<_> = sizes.into_iter().filter(|n| *n > 0).map(number).collect();
            // A box around what axes in one read may be larger.
            sizes.iter_mut().rev().take(1).for_each(|n| *n = None);
            let parts = cut(sch, &inside, around + k, &sizes)?;
            inside = parts.into_iter().nth(usize::from(lo > first)).unwrap_or(inside);
        }
        Ok(())
    }

    /// The first cell along an axis that windows read, and the end of these.
    fn read(&self, axis: &ImageAxis) -> Option<(i64, i64)> {
        let index = Affine::from_expr(&axis.index).filter(|i| i.opaque().next().is_none())?;
        let mut read = (index.constant(), index.constant() + 1);
        for (v, step) in index.vars() {
            let far = step * (self.reader.iters().find(|i| i.0 == v)?.1 - 1);
            read = (read.0 + far.min(0), read.1 + far.max(0));
        }
        Some(read)
    }
}

fn moves_with_rows(axis: &ImageAxis, rows: Option<&Rows>) -> bool {
    rows.is_some_and(|rows| axis.index.mentions(&rows.var))
}
