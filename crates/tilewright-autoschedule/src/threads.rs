//! Traces for machines with groups of threads: GPUs.
//!
//! Each stage becomes a kernel of its own. Groups and threads run over what is stored, the innermost axis along
//! the threads, so that the threads of a warp access neighbours:
//!
//! ```text
//! for groups, threads of the cells:            # stages without reduction
//!     B[..] = value
//! for groups, threads of the cells:            # reductions: the sum is a register of the thread
//!     for the reduction axes: sum = op(sum, value)
//!     B[..] = sum
//! for groups of rows, of columns:              # contractions: a tile of sums in registers
//!     for threads of rows, of columns:
//!         sums[4][4] = 0
//!         for the reduction axes: sums[u][v] += a(u) * b(v)
//!         out[u][v] = sums[u][v]
//! ```
//!
//! Contractions by tensor instructions are in `warp_tile`, convolutions that become such in `as_product`, those whose groups share their operands in `shared_tile`,
//! reductions by groups in `rows`, copies across in `transpose`: threads wait for one another between loops over
//! threads (`lower::join_phases` makes one nest of them). Tiles of copies lie such that the lanes of a warp meet in no bank ([`shared`](crate::shared)).
//!
//! Loops that are no stages are shared by [`plain`](crate::plain).
//!
//! What alone reads the result of a reduction, cell by cell, is computed by the thread that has it (`follow`).
//!
//! Rows and columns of a contraction that are no multiples of a tile are computed beyond their end: what is
//! read there counts as zero (`pad_einsum`), and is not stored. Threads beyond the last tile do nothing.
//!
//! The cost model: a thread that computes `u x v` sums reads `u + v` values for `u * v` products, and needs
//! `u * v + u + v` registers; a tile of 4 x 4 takes 24 of 255 and reads half a value a product, where single
//! sums read two. Larger tiles leave too few threads to hide how long loads take: a group of eight warps is
//! enough for that. A tile is smaller where there are not [`WARPS`] warps of tiles.

pub(crate) mod as_product;
mod follow;
mod grid;
mod instructions;
pub(crate) mod price;
mod rows;
mod shared_tile;
mod transpose;
mod warp_tile;

use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_ir::{Dim, Error, IterKind, Remarks, Result};
use tilewright_schedule::compute::Position;
use tilewright_schedule::{BlockRef, LoopRef, Schedule};
use tilewright_target::{Target, TensorInstruction, ThreadGroups};
use tilewright_transform::lower::check_instructions;
use tilewright_transform::warp::WarpMemory;

use crate::canonical::Stages;
use crate::contraction::Contraction;
use crate::parts::split;
use crate::share::fused;
use crate::shared;

use self::follow::{Follow, Padded};
use self::grid::{ADDRESSES, GROUP, Grid, MOST_GROUPS, WORD_BYTES, expect};
use self::instructions::instructions;
use self::rows::Rows;
use self::shared_tile::SharedTile;
use self::transpose::Across;
use self::warp_tile::WarpTile;

/// Sums along each side of a tile.
const TILE: i64 = 4;

/// Cells that make one loop for the threads of groups, if rows have fewer.
const ALONG: usize = 128;

/// Warps that keep a GPU busy: fewer tiles are smaller instead.
const WARPS: i64 = 64;

/// Schedules the stages of a function. Says why where a primitive refuses: such a stage runs as one thread.
pub(crate) fn schedule(
    sch: &mut Schedule,
    func: &Arc<str>,
    groups: &ThreadGroups,
    target: &Target,
) -> Vec<Error> {
    let instructions = instructions(target);
    let Some(all) = sch.func(func).ok().and_then(|f| Stages::from_func(f)) else {
        return Vec::new();
    };
    let (mut remarks, mut is_across) = (Vec::new(), false);
    // Stages that are computed where another one is.
    let mut gone: Vec<usize> = Vec::new();
    for (k, stage) in all.each(true).chain(all.each(false)) {
        if gone.contains(&k) || stage.dims().any(|d| d.1 == 0) {
            continue;
        }
        let threads = Threads { stage, follow: Follow::recognise(&all, k, stage), groups };
        let (ways, missing) = threads.ways(&instructions);
        remarks.extend(missing.map(|e| e.context(format_args!("function `{func}`"))));
        for way in ways {
            // What a refusal leaves half done is thrown away.
            let mut trial = sch.clone();
            let nested = threads.nest(&mut trial, func, &way).and_then(|with| match way {
                Way::Warps(..) => check_instructions(trial.func(func)?).map(|()| with),
                _ => Ok(with),
            });
            match nested {
                Ok(with) => {
                    *sch = trial;
                    gone.extend(with);
                    is_across |= matches!(way, Way::Across(_));
                    break;
                }
                Err(e) => remarks.push(e.context(format_args!("function `{func}`"))),
            }
        }
    }
    let (warp, banks, segment) = (groups.warp, groups.banks, groups.segment);
    let machine = WarpMemory { lanes: warp, banks, word: WORD_BYTES, segment };
    let (mut trial, mut why) = (sch.clone(), Remarks::new());
    // What operands of contractions are read along is a broadcast to most lanes; to try layouts of them takes long.
    if is_across && shared::lay_out(&mut trial, func, machine, &mut why).is_ok() {
        *sch = trial;
        remarks.extend(why);
    }
    remarks
}

/// A stage on such a machine.
struct Threads<'a> {
    stage: &'a Stage,
    follow: Follow<'a>,
    groups: &'a ThreadGroups,
}

/// A tile of a contraction: the positions of its two iteration variables, and the sums along each.
#[derive(Clone, Copy, Debug)]
struct Tile {
    rows: (usize, i64),
    columns: (usize, i64),
}

/// How threads compute a stage.
#[derive(Clone, Debug)]
enum Way {
    /// A contraction by tensor instructions.
    Warps(WarpTile, Box<Contraction>),
    /// A contraction whose groups share its operands.
    Shared(SharedTile, Box<Contraction>),
    /// A contraction in tiles of registers.
    Tile(Tile),
    /// A reduction by the threads of a group.
    Rows(Rows),
    /// A copy across through shared memory.
    Across(Across),
    /// A cell a thread.
    Cells,
}

impl Threads<'_> {
    /// The ways to try, the best one first. Second, why tensor instructions are none.
    fn ways(&self, instructions: &[&'static TensorInstruction]) -> (Vec<Way>, Option<Error>) {
        let mut missing = None;
        let contraction = Contraction::of_any_type(self.stage, |_| false);
        let tiled = contraction.and_then(|c| self.tile_of(&c).map(|tile| (c, tile)));
        let mut ways = Vec::new();
        if let Some((c, tile)) = tiled {
            match WarpTile::recognise(&c, self.groups, instructions) {
                Ok(warps) => ways.push(Way::Warps(warps, Box::new(c.clone()))),
                Err(why) if c.is_widened() && !instructions.is_empty() => {
                    let text =
                        format!("`{}` is computed without tensor instructions: {why}", c.block);
                    missing = Some(Error::refused(text));
                }
                Err(_) => {}
            }
            let shared = SharedTile::recognise(&c, self.groups);
            ways.extend(shared.map(|tile| Way::Shared(tile, Box::new(c))));
            ways.push(Way::Tile(tile));
        } else {
            ways.extend(Rows::recognise(self.stage, self.groups).map(Way::Rows));
            ways.extend(Across::recognise(self.stage, self.groups).map(Way::Across));
        }
        ways.push(Way::Cells);
        (ways, missing)
    }

    /// The tile of a contraction: columns along which results are neighbours, and the longest axis along which the
    /// other operand moves as rows.
    fn tile_of(&self, c: &Contraction) -> Option<Tile> {
        let (operand, columns) = c.columns()?;
        let rows = c.rows(operand)?;
        let spatial = c.axes_where(IterKind::Spatial, |_| true);
        let mut size = [TILE, TILE];
        // Rows first: columns are what the loads of a warp share segments along.
        while c.count(&spatial) / (size[0] * size[1]) < WARPS * self.groups.warp && size != [1, 1] {
            let larger = usize::from(size[0] == 1);
            size[larger] /= 2;
        }
        let part = |axis: usize, most: i64| {
            let fits = most.min(c.axes[axis].extent as u64 as i64);
            (c.axes[axis].iters[0].0, 1 << fits.ilog2())
        };
        Some(Tile { rows: part(rows, size[0]), columns: part(columns, size[1]) })
    }

    /// The loops of the stage. Returns the numbers of the stages whose work is done where it is.
    fn nest(&self, sch: &mut Schedule, func: &Arc<str>, way: &Way) -> Result<Vec<usize>> {
        let block = sch.get_block(self.stage.name(), func)?;
        let with = self.follow.epilogue.iter().map(|e| e.0);
        match way {
            Way::Warps(tile, c) => {
                let pads = tile.nest(sch, &block, c, &self.follow, self.groups)?;
                Ok(with.chain(pads).collect())
            }
            Way::Shared(tile, c) => {
                let pads = tile.nest(sch, &block, c, &self.follow, self.groups)?;
                Ok(with.chain(pads).collect())
            }
            Way::Tile(tile) => {
                self.tiled(sch, &block, tile)?;
                Ok(with.collect())
            }
            Way::Rows(rows) => rows.nest(sch, &block, self.stage).map(|()| Vec::new()),
            Way::Across(across) => across.nest(sch, &block).map(|()| Vec::new()),
            Way::Cells if self.stage.is_reduction() => {
                let pads = self.follow.inline_pads(sch, &block);
                let finish = self.follow.finish(sch, &block, None)?;
                let steps = sch.get_loops(&block)?.split_off(self.spatial().len());
                let thread = self.over_cells(sch, &block)?;
                sch.reverse_compute_at(&finish, &thread.inner, false, Position::default())?;
                if let Some(first) = steps.first() {
                    sch.decompose_reduction(&block, first)?;
                }
                thread.bind(sch)?;
                Ok(with.chain(pads).collect())
            }
            Way::Cells => self.over_cells(sch, &block)?.bind(sch).map(|()| Vec::new()),
        }
    }

    /// How many of the loops of the stage run over cells, and their extents.
    fn spatial(&self) -> Vec<Dim> {
        self.stage.dims().filter(|d| d.2 == IterKind::Spatial).map(|d| d.1).collect()
    }

    /// Threads for the cells of a block, each for one, and the loops of a reduction inside.
    fn over_cells(&self, sch: &mut Schedule, block: &BlockRef) -> Result<Grid> {
        let extents = self.spatial();
        let loops = sch.get_loops(block)?;
        let (cells, _) = loops.split_at(extents.len());
        // Quotients by open sizes are not linear: only what is constant becomes one loop.
        let known = extents.iter().rev().take_while(|n| n.known().is_some()).count();
        let (mut inner, mut many) = (0, 1usize);
        while inner < known && many < ALONG {
            inner += 1;
            many = many.saturating_mul(extents[extents.len() - inner].known().unwrap_or(1));
        }
        let (outer, along) = cells.split_at(cells.len() - inner.max(1).min(cells.len()));
        let (open, fixed) = outer.split_at(outer.len() - (known - inner).min(outer.len()));
        if along.is_empty() {
            return Err(Error::refused(format!("`{}` has one cell", block.name)));
        }
        let along = fused(sch, along)?;
        let wide = if inner == 0 { GROUP } else { (many as u64).next_power_of_two() as i64 };
        let wide = wide.clamp(self.groups.warp, GROUP).min(self.groups.threads);
        let [group, thread] = split(sch, &along, None, wide)?;
        let mut bound = vec![(thread.clone(), "threadIdx.x")];
        // Only the first axis of groups may be long.
        let around: usize =
            extents[open.len()..outer.len()].iter().filter_map(|n| n.known()).product();
        let axes = if around > MOST_GROUPS {
            ["blockIdx.x", "blockIdx.y"]
        } else {
            ["blockIdx.y", "blockIdx.x"]
        };
        let mut open = open.to_vec();
        match fixed {
            [] => bound.extend(open.pop().map(|l| (l, axes[0]))),
            _ => bound.push((fused(sch, fixed)?, axes[0])),
        }
        bound.push((group, axes[1]));
        bound.extend(open.pop().map(|l| (l, "blockIdx.z")));
        Ok(Grid { bound, inner: thread })
    }

    /// A contraction whose threads compute tiles.
    fn tiled(&self, sch: &mut Schedule, block: &BlockRef, tile: &Tile) -> Result<()> {
        let multiples = [tile.rows, tile.columns];
        let Padded { finish, copies } = self.follow.padded(sch, block, &multiples)?;
        copies.iter().try_for_each(|copy| sch.compute_inline(copy))?;
        let extents = self.spatial();
        let loops = sch.get_loops(block)?;
        let (cells, steps) = loops.split_at(extents.len());
        let [u, v] = [tile.rows, tile.columns];
        let [rows, row] = split(sch, &cells[u.0], None, u.1)?;
        let [columns, column] = split(sch, &cells[v.0], None, v.1)?;
        let wide = GROUP.min(self.groups.threads);
        let (across, down) = (self.groups.warp, wide / self.groups.warp);
        let [group_u, thread_u] = split(sch, &rows, None, down)?;
        let [group_v, thread_v] = split(sch, &columns, None, across)?;
        let others: Vec<LoopRef> =
            (0..cells.len()).filter(|k| *k != u.0 && *k != v.0).map(|k| cells[k].clone()).collect();
        let outer = [&others[..], &[group_u.clone(), group_v.clone()]].concat();
        let threads = [thread_u.clone(), thread_v.clone()];
        sch.reorder(&[&outer, &threads[..], steps, &[row.clone(), column.clone()]].concat())?;
        let known = extents.iter().enumerate().filter(|(k, _)| *k != u.0 && *k != v.0);
        let groups = group_v.clone();
        let mut bound = vec![
            (group_u, "blockIdx.y"),
            (group_v, "blockIdx.x"),
            (thread_u, "threadIdx.y"),
            (thread_v.clone(), "threadIdx.x"),
        ];
        if !others.is_empty() && known.into_iter().all(|(_, n)| n.known().is_some()) {
            bound.push((fused(sch, &others)?, "blockIdx.z"));
        }
        sch.reverse_compute_at(&finish, &thread_v, false, Position::default())?;
        let first = steps.first().cloned().unwrap_or_else(|| row.clone());
        let init = sch.decompose_reduction(block, &first)?;
        let mut inside = vec![row, column];
        for made in [&init, &finish] {
            let loops = sch.get_loops(made)?;
            inside.extend(loops.into_iter().skip_while(|l| *l != thread_v).skip(1));
        }
        inside.iter().try_for_each(|l| sch.unroll(l))?;
        let sums = u.1 * v.1 + u.1 + v.1;
        let words = (self.stage.buffer.dtype().bytes() as i64 / 4).max(1);
        // What it loads, with guards, for several steps at once.
        expect(sch, &groups, 2 * sums * words + ADDRESSES, 0)?;
        Grid { bound, inner: thread_v }.bind(sch)
    }
}
