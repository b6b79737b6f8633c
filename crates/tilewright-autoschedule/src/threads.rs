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
//! for groups of rows, of columns:              # the same where operands are boxes
//!     for threads: sums[4][4] = 0
//!     for parts of the reduction:
//!         for threads: A_shared[64][16] = a(..); for threads: B_shared[16][64] = b(..)
//!         for threads: for 16 steps: sums[u][v] += A_shared[u][k] * B_shared[k][v]
//!     for threads: out[u][v] = sums[u][v]
//! ```
//!
//! Threads wait for one another between these loops over threads (`lower::join_phases` makes one nest of them).
//!
//! Reductions by groups are in `rows`, copies across in `transpose`. Tiles of these lie such that the lanes of a warp
//! meet in no bank ([`shared`](crate::shared)).
//!
//! Rows and columns of a contraction that are no multiples of a tile are computed beyond their end: what is
//! read there counts as zero (`pad_einsum`), and is not stored. Threads beyond the last tile do nothing.
//!
//! The cost model: a thread that computes `u x v` sums reads `u + v` values for `u * v` products, and needs
//! `u * v + u + v` registers; a tile of 4 x 4 takes 24 of 255 and reads half a value a product, where single
//! sums read two. Larger tiles leave too few threads to hide how long loads take: a group of eight warps is
//! enough for that. A tile is smaller where there are not [`WARPS`] warps of tiles.

mod grid;
mod rows;
mod transpose;

use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_ir::visit::accessed;
use tilewright_ir::{Dim, Error, IterKind, Remarks, Result, TensorFunc};
use tilewright_schedule::compute::Position;
use tilewright_schedule::{BlockRef, LoopRef, Schedule};
use tilewright_target::ThreadGroups;
use tilewright_transform::warp::WarpMemory;

use crate::canonical::Stages;
use crate::contraction::Contraction;
use crate::parts::{blocks, split};
use crate::share::fused;
use crate::shared;

use self::grid::{GROUP, Grid, MOST_GROUPS, in_three};
use self::rows::Rows;
use self::transpose::Across;

/// Sums along each side of a tile.
const TILE: i64 = 4;

/// Threads along each side of a group that shares its operands.
const SIDE: i64 = 16;

/// Steps of a reduction whose operands a group reads at once.
const STEPS: i64 = 16;

/// Cells that make one loop for the threads of groups, if rows have fewer.
const ALONG: usize = 128;

/// Warps that keep a GPU busy: fewer tiles are smaller instead.
const WARPS: i64 = 64;

/// Schedules the stages of a function. Says why where a primitive refuses: such a stage runs as one thread.
pub(crate) fn schedule(sch: &mut Schedule, func: &Arc<str>, groups: &ThreadGroups) -> Vec<Error> {
    let Some(all) = sch.func(func).ok().and_then(|f| Stages::from_func(f)) else {
        return Vec::new();
    };
    let (mut remarks, mut is_across) = (Vec::new(), false);
    for (_, stage) in all.each(false).chain(all.each(true)) {
        if stage.dims().any(|d| d.1 == 0) {
            continue;
        }
        let threads = Threads { stage, groups };
        for way in threads.ways() {
            // What a refusal leaves half done is thrown away.
            let mut trial = sch.clone();
            match threads.nest(&mut trial, func, &way) {
                Ok(()) => {
                    *sch = trial;
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

/// Bytes of a word of a bank.
const WORD_BYTES: i64 = 4;

/// A stage on such a machine.
struct Threads<'a> {
    stage: &'a Stage,
    groups: &'a ThreadGroups,
}

/// A tile of a contraction: the positions of its two iteration variables, and the sums along each.
#[derive(Clone, Copy, Debug)]
struct Tile {
    rows: (usize, i64),
    columns: (usize, i64),
    /// The position of the axis of the reduction along which a group shares parts of the operands.
    shared: Option<usize>,
}

/// How threads compute a stage.
#[derive(Clone, Debug)]
enum Way {
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
    /// The ways to try, the best one first.
    fn ways(&self) -> Vec<Way> {
        let contraction = Contraction::recognise(self.stage, |_| false);
        let tiled = contraction.and_then(|c| self.tile_of(&c).map(|tile| (c, tile)));
        let mut ways = Vec::new();
        if let Some((c, tile)) = tiled {
            let shared = shared_axis(&c).map(|axis| Tile { shared: Some(axis), ..tile });
            ways.extend(shared.into_iter().chain([tile]).map(Way::Tile));
        } else {
            ways.extend(Rows::recognise(self.stage, self.groups).map(Way::Rows));
            ways.extend(Across::recognise(self.stage, self.groups).map(Way::Across));
        }
        ways.push(Way::Cells);
        ways
    }

    /// The tile of a contraction: columns along which results are neighbours, and the longest axis along which the
    /// other operand moves as rows.
    fn tile_of(&self, c: &Contraction) -> Option<Tile> {
        let moves = |o: usize, k: usize| c.operands[o].steps[k] != 0;
        let alone = |o: usize| {
            c.axes_where(IterKind::Spatial, |k| {
                c.axes[k].extent > 1 && !c.axes[k].is_open() && moves(o, k) && !moves(1 - o, k)
            })
        };
        let columns = [0, 1].into_iter().flat_map(|o| alone(o).into_iter().map(move |k| (o, k)));
        let (operand, columns) = columns.min_by_key(|(_, k)| {
            (c.out[*k].map_or(i64::MAX, i64::abs), std::cmp::Reverse(c.axes[*k].extent))
        })?;
        let rows = alone(1 - operand).into_iter().max_by_key(|k| c.axes[*k].extent)?;
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
        Some(Tile { rows: part(rows, size[0]), columns: part(columns, size[1]), shared: None })
    }

    /// The loops of the stage.
    fn nest(&self, sch: &mut Schedule, func: &Arc<str>, way: &Way) -> Result<()> {
        let block = sch.get_block(self.stage.name(), func)?;
        match way {
            Way::Tile(tile) => match tile.shared {
                Some(along) => self.shared(sch, &block, tile, along),
                None => self.tiled(sch, &block, tile),
            },
            Way::Rows(rows) => rows.nest(sch, &block, self.stage),
            Way::Across(across) => across.nest(sch, &block),
            Way::Cells if self.stage.is_reduction() => {
                let finish = sch.cache_write(&block, 0usize, "local", &[])?;
                let steps = sch.get_loops(&block)?.split_off(self.spatial().len());
                let thread = self.over_cells(sch, &block)?;
                sch.reverse_compute_at(&finish, &thread.inner, false, Position::default())?;
                if let Some(first) = steps.first() {
                    sch.decompose_reduction(&block, first)?;
                }
                thread.bind(sch)
            }
            Way::Cells => self.over_cells(sch, &block)?.bind(sch),
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
        let Padded { finish, copies } = self.padded(sch, block, &multiples)?;
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
        Grid { bound, inner: thread_v }.bind(sch)
    }

    /// A contraction whose threads compute tiles of what their group reads into shared memory, parts of the
    /// reduction at a time.
    fn shared(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        tile: &Tile,
        along: usize,
    ) -> Result<()> {
        let [u, v] = [tile.rows, tile.columns];
        let multiples = [(u.0, SIDE * u.1), (v.0, SIDE * v.1), (along, STEPS)];
        let Padded { finish, mut copies } = self.padded(sch, block, &multiples)?;
        for name in self.operands() {
            if reads(sch.func(&block.func)?, &block.name, &name) {
                copies.push(sch.cache_read(block, &*name, "shared", &[])?);
            }
        }
        let loops = sch.get_loops(block)?;
        let [group_u, thread_u, row] = in_three(sch, &loops[u.0], SIDE, u.1)?;
        let [group_v, thread_v, column] = in_three(sch, &loops[v.0], SIDE, v.1)?;
        let [part, step] = split(sch, &loops[along], None, STEPS)?;
        let cells = self.spatial().len();
        let pick = |from: usize, to: usize, but: &[usize]| -> Vec<LoopRef> {
            (from..to).filter(|k| !but.contains(k)).map(|k| loops[k].clone()).collect()
        };
        let others = pick(0, cells, &[u.0, v.0]);
        let steps = pick(cells, loops.len(), &[along]);
        let outer = [&others[..], &[group_u.clone(), group_v.clone()]].concat();
        let depth = outer.len();
        let parts = [&steps[..], std::slice::from_ref(&part)].concat();
        let threads = [thread_u.clone(), thread_v.clone()];
        sch.reorder(
            &[&outer, &parts, &threads[..], &[step, row.clone(), column.clone()]].concat(),
        )?;
        let mut bound = Vec::new();
        for copy in &copies {
            sch.compute_at(copy, &part, false, Position::default())?;
            sch.set_scope(copy, 0usize, "shared")?;
            let own = sch.get_loops(copy)?.split_off(depth + parts.len());
            let cells = fused(sch, &own)?;
            let [each, y, x] = in_three(sch, &cells, SIDE, SIDE)?;
            sch.reorder(&[y.clone(), x.clone(), each])?;
            bound.extend([(y, "threadIdx.y"), (x, "threadIdx.x")]);
        }
        sch.reverse_compute_at(&finish, &group_v, false, Position::default())?;
        let mut own = sch.get_loops(&finish)?.split_off(depth);
        if self.columns_come_first(tile) {
            own.reverse();
        }
        let [rows, columns] = &own[..] else {
            return Err(Error::refused(format!("the tiles of `{}` are no boxes", block.name)));
        };
        let [y, below] = split(sch, rows, None, u.1)?;
        let [x, beside] = split(sch, columns, None, v.1)?;
        sch.reorder(&[y.clone(), x.clone(), below.clone(), beside.clone()])?;
        bound.extend([(y, "threadIdx.y"), (x, "threadIdx.x")]);
        let first = parts.first().cloned().unwrap_or(part);
        let init = sch.decompose_reduction(block, &first)?;
        let own = sch.get_loops(&init)?.split_off(depth);
        let [y, x, inner @ ..] = &own[..] else {
            return Err(Error::internal("sums that are set by no loops"));
        };
        bound.extend([(y.clone(), "threadIdx.y"), (x.clone(), "threadIdx.x")]);
        for l in [row, column, below, beside].iter().chain(inner) {
            sch.unroll(l)?;
        }
        let [thread_u, thread_v] = threads;
        bound.extend([(thread_u, "threadIdx.y"), (thread_v.clone(), "threadIdx.x")]);
        bound.extend([(group_u, "blockIdx.y"), (group_v, "blockIdx.x")]);
        if !others.is_empty() {
            bound.push((fused_around(sch, &init, &others)?, "blockIdx.z"));
        }
        Grid { bound, inner: thread_v }.bind(sch)
    }

    /// The names of what is multiplied.
    fn operands(&self) -> Vec<Arc<str>> {
        self.stage
            .loads()
            .into_iter()
            .map(|(b, _)| b.name.clone())
            .filter(|n| *n != self.stage.buffer.name)
            .collect()
    }

    /// Whether the axis of columns comes before that of rows where the result is stored.
    fn columns_come_first(&self, tile: &Tile) -> bool {
        let var = |axis: usize| self.stage.dims().nth(axis).map(|d| d.0.clone());
        let at = |axis: usize| {
            let var = var(axis);
            self.stage.indices.iter().position(|i| i.as_var() == var.as_ref())
        };
        at(tile.columns.0) < at(tile.rows.0)
    }

    /// Makes axes multiples of numbers, with copies of what is read in which the cells beyond the end are zero, and
    /// puts the sums into registers.
    fn padded(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        multiples: &[(usize, i64)],
    ) -> Result<Padded> {
        let func = &block.func;
        let mut padding = vec![1; self.stage.dims().count()];
        let mut is_ragged = false;
        for (axis, size) in multiples {
            let extent = self.stage.dims().nth(*axis).and_then(|d| d.1.known());
            if extent.is_none_or(|n| n as i64 % size != 0) {
                (padding[*axis], is_ragged) = (*size, true);
            }
        }
        let (mut finish, mut copies) = (None, Vec::new());
        if is_ragged {
            let before = blocks(sch, func)?;
            sch.pad_einsum(block, &padding)?;
            for b in blocks(sch, func)? {
                if before.iter().any(|x| x.name == b.name) {
                    continue;
                }
                let made = sch.get_block(&b.name, func)?;
                if accessed(&b.body).1.contains(&self.stage.buffer) {
                    finish = Some(made);
                } else {
                    copies.push(made);
                }
            }
        }
        let finish = match finish {
            Some(finish) => {
                sch.set_scope(block, 0usize, "local")?;
                finish
            }
            None => sch.cache_write(block, 0usize, "local", &[])?,
        };
        Ok(Padded { finish, copies })
    }
}

/// What [`Threads::padded`] makes.
struct Padded {
    /// The block that stores the sums.
    finish: BlockRef,
    /// The blocks that make padded copies.
    copies: Vec<BlockRef>,
}

/// The axis of a reduction along which a group can share parts of the operands: each operand is read as a box, at
/// plain variables over whole axes.
fn shared_axis(c: &Contraction) -> Option<usize> {
    let boxes = [0, 1].iter().all(|o| {
        (0..c.axes.len()).all(|k| c.operands[*o].steps[k] == 0 || c.whole(*o, k).is_some())
    });
    let fixed = c.axes.iter().all(|a| !a.is_open() && a.iters.len() == 1);
    let same = c.operands.iter().all(|o| o.buffer.dtype() == c.dtype);
    let along = c.axes_where(IterKind::Reduce, |k| c.axes[k].extent >= STEPS);
    let along = along.into_iter().max_by_key(|k| c.axes[*k].extent)?;
    (boxes && fixed && same).then_some(c.axes[along].iters[0].0)
}

/// Whether a block reads a buffer of a name.
fn reads(func: &TensorFunc, block: &str, buffer: &str) -> bool {
    let all = tilewright_transform::cursor::blocks(func);
    let of = all.iter().find(|b| *b.name == *block);
    of.is_some_and(|b| accessed(&b.body).0.iter().any(|b| *b.name == *buffer))
}

/// The outermost loops around a block, as one.
fn fused_around(sch: &mut Schedule, block: &BlockRef, loops: &[LoopRef]) -> Result<LoopRef> {
    let all = sch.get_loops(block)?;
    fused(sch, &all[..loops.len()])
}
