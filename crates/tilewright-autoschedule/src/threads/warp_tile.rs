//! Contractions by tensor instructions: the warps of a group multiply fragments of what the group shares.
//!
//! ```text
//! for groups of rows, of columns:
//!     for warps y, z, lanes x: sums[..] = 0
//!     for parts of the reduction:
//!         for z, y, x: A_shared[..] = a(..)                         # 16 bytes a thread
//!         for z, y, x: B_shared[..] = b(..)
//!         for steps of an instruction:
//!             for y: A_fragments[..] = A_shared[..]                 # ldmatrix
//!             for z: B_fragments[..] = B_shared[..]
//!             for y, z: sums += A_fragments * B_fragments           # mma.sync
//!     for y, z, x: out[..] = f(sums[..])                            # with what follows the contraction
//! ```
//!
//! Where the machine copies while threads go on, the next part of the operands is copied while a part is multiplied
//! (`lower::double_buffer`).
//!
//! Rows move one operand, columns the other, along which results are neighbours. Rows of shared memory have their
//! parts of [`CHUNK`] bytes, which `ldmatrix` reads, exchanged by the number of the row (`j ^ i`): eight rows of a
//! matrix lie in other banks, and so do neighbours of a row, as they are written. Operands of 16 bits are shared as they
//! lie, since `ldmatrix` turns such matrices; of bytes those along the reduction, of which a register has four, are
//! neighbours there.
//! What is read beyond the end counts as zero, and is not stored.
//!
//! The cost model: a warp with fragments of `u` rows and `v` columns of tiles loads `2 * u + v` registers' worth of
//! 16 x 8 elements for `u * v` instructions. Larger tiles load less, compute more beyond the end of what is ragged,
//! and leave fewer groups to share the machine.

use tilewright_analysis::Stage;
use tilewright_ir::index::{Ranges, linear};
use tilewright_ir::{Attr, BinOp, Block, DType, Error, Expr, ExprKind, IterKind, Result, StmtKind};
use tilewright_schedule::compute::Position;
use tilewright_schedule::value::Lambda;
use tilewright_schedule::{BlockRef, LoopRef, Schedule};
use tilewright_target::{
    EXCHANGED_ROWS, ExchangedRows, LOAD_MATRIX, MATRIX_ROW, TENSOR_INSTRUCTION, TensorInstruction,
    ThreadGroups,
};

use super::follow::{Follow, Padded};
use super::grid::{bind, copies, expect, fill_ahead, in_parts, in_three};
use super::instructions::takes;
use crate::contraction::Contraction;
use crate::parts::{block, block_reads, lay_out, round_up, split, written};
use crate::share::fused;

/// Bytes of a row of a matrix that `ldmatrix` reads.
const CHUNK: i64 = MATRIX_ROW;

/// Bytes of one row of all banks of shared memory.
const BANKS: i64 = 128;

/// Bytes that a thread copies at once, where they are neighbours in both memories.
const WIDE: i64 = 16;

/// Bytes along the reduction whose operands a group reads at once.
const STEPS: i64 = 64;

/// The most registers of a thread for addresses and loops (measured with `ptxas`: 12 products and convolutions).
const ADDRESSES: i64 = 64;

/// Bytes of a register.
const REGISTER: i64 = 4;

/// Warps of a group along rows and columns, and the tiles of an instruction that each has along them.
const SHAPES: [[i64; 4]; 6] =
    [[2, 4, 4, 4], [2, 2, 4, 4], [2, 2, 2, 4], [2, 2, 2, 2], [2, 1, 1, 4], [1, 1, 1, 2]];

/// The tile of a group.
#[derive(Clone, Debug)]
pub(super) struct WarpTile {
    instruction: &'static TensorInstruction,
    /// The position of the iteration variables of rows and columns, and of the reduction.
    axes: [usize; 3],
    /// The operand that rows move.
    left: usize,
    /// Warps along rows and columns.
    warps: [i64; 2],
    /// Tiles of a warp along them.
    each: [i64; 2],
    /// Where the factors of each operand are: the place of the axis of rows or columns, and of the reduction.
    places: [[usize; 2]; 2],
}

impl WarpTile {
    /// The cheapest tile of a contraction, or what is missing for one.
    pub fn recognise(
        c: &Contraction,
        groups: &ThreadGroups,
        instructions: &[&'static TensorInstruction],
    ) -> Result<WarpTile, &'static str> {
        if c.axes.iter().any(|a| a.is_open() || a.iters.len() != 1) {
            return Err("a size is open");
        }
        let (right, columns) = c.columns().ok_or("no operand moves along columns alone")?;
        let left = 1 - right;
        let rows = c.rows(right).ok_or("no operand moves along rows alone")?;
        let instruction = instructions.iter().find(|i| takes(i, c, left));
        let instruction = instruction.ok_or("no instruction for these types")?;
        if instruction.a.dtype.bits > 16 {
            return Err("`ldmatrix` reads elements of 8 and of 16 bits");
        }
        let along = c.axes_where(IterKind::Reduce, |k| {
            [0, 1].iter().all(|o| c.whole(*o, k).is_some()) && c.axes[k].extent >= 8
        });
        let along = along.into_iter().max_by_key(|k| c.axes[*k].extent);
        let along = along.ok_or("no axis of the reduction runs along both operands alone")?;
        let place = |o: usize, k: usize| c.whole(o, k).ok_or("windows slide over an operand");
        let places = [
            [place(left, rows)?, place(left, along)?],
            [place(right, columns)?, place(right, along)?],
        ];
        let of = |[m, n, u, v]: [i64; 4]| WarpTile {
            instruction,
            axes: [rows, columns, along],
            left,
            warps: [m, n],
            each: [u, v],
            places,
        };
        let all = SHAPES.into_iter().map(of).filter(|t| t.fits(groups));
        let best = all.min_by(|a, b| a.cost(c, groups).total_cmp(&b.cost(c, groups)));
        best.ok_or("the machine has no room for the tile")
    }

    /// Rows and columns of a group.
    fn size(&self) -> [i64; 2] {
        [
            self.warps[0] * self.each[0] * self.instruction.c.rows,
            self.warps[1] * self.each[1] * self.instruction.c.columns,
        ]
    }

    /// Bytes of an element of a factor.
    fn bytes(&self) -> i64 {
        self.instruction.a.dtype.bytes() as i64
    }

    /// Elements along the reduction whose operands a group reads at once.
    fn steps(&self) -> i64 {
        STEPS / self.bytes()
    }

    /// Whether what a group shares of an operand has the reduction along its rows.
    fn is_along(&self, at: usize) -> bool {
        let [across, along] = self.places[at];
        self.bytes() == 1 || across < along
    }

    /// Bytes that a group shares.
    fn shared_bytes(&self, groups: &ThreadGroups) -> i64 {
        let [m, n] = self.size();
        (m + n) * STEPS * copies(groups)
    }

    /// The most registers that a thread is expected to take.
    fn registers(&self) -> i64 {
        let ([m, n], [u, v]) = (self.size(), self.each);
        // What a thread copies by single elements is on its way at once.
        let copied = (m + n) * STEPS / self.bytes() / (self.warps[0] * self.warps[1] * 32);
        4 * u * v + 4 * u + 2 * v + copied + ADDRESSES
    }

    fn fits(&self, groups: &ThreadGroups) -> bool {
        self.warps[0] * self.warps[1] * groups.warp <= groups.threads
            && self.shared_bytes(groups) <= groups.shared
            && self.registers() <= groups.registers
            && groups.warp == 32
    }

    /// The products of an instruction.
    pub fn products(&self) -> f64 {
        let TensorInstruction { a, c, .. } = self.instruction;
        (c.rows * c.columns * a.columns) as f64
    }

    /// The time of all instructions, that of one on a busy machine being one.
    pub fn cost(&self, c: &Contraction, machine: &ThreadGroups) -> f64 {
        let [m, n] = self.size();
        let (mut tiles, mut groups) = (1.0, 1.0);
        for (k, axis) in c.axes.iter().enumerate() {
            let size = match self.axes.iter().position(|a| *a == k) {
                Some(0) => m,
                Some(1) => n,
                Some(_) => self.steps(),
                None => 1,
            };
            let count = (round_up(axis.extent, size) / size) as f64;
            tiles *= count;
            groups *= if axis.kind == IterKind::Spatial { count } else { 1.0 };
        }
        let [u, v] = self.each.map(|n| n as f64);
        let instructions = tiles * (self.warps[0] * self.warps[1]) as f64 * u * v;
        let loads = (2.0 * u + v) / (u * v);
        instructions * (0.5 + loads) * (machine.costs.processors as f64 / groups).max(1.0)
    }

    /// The loops of the stage. Returns the numbers of the stages whose work is done where it is.
    pub fn nest(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        c: &Contraction,
        follow: &Follow<'_>,
        groups: &ThreadGroups,
    ) -> Result<Vec<usize>> {
        let stage = follow.stage;
        let [rows, columns, along] = self.axes;
        let [m, n] = self.size();
        let (tall, wide, deep) =
            (self.instruction.c.rows, self.instruction.c.columns, self.instruction.a.columns);
        let multiples = [(rows, m), (columns, n), (along, self.steps())];
        let Padded { finish, copies: made } = follow.padded(sch, block, &multiples)?;
        let (mut shared, mut fragments) = (Vec::new(), Vec::new());
        for o in [self.left, 1 - self.left] {
            let name = c.operands[o].buffer.name.clone();
            let padded = made.iter().find(|b| block_reads(sch, b, &name));
            let copy = match padded {
                Some(copy) => copy.clone(),
                None => sch.cache_read(block, &*name, "shared", &[])?,
            };
            sch.set_scope(&copy, 0usize, "shared")?;
            let from = written(sch, &copy)?;
            fragments.push(sch.cache_read(block, &*from, "local", &[])?);
            shared.push(copy);
        }
        let pads = follow.inline_pads(sch, block);
        let loops = sch.get_loops(block)?;
        let [group_i, warp_i, tile_i, i] =
            in_parts(sch, &loops[rows], [self.warps[0], self.each[0], tall])?;
        let [group_j, warp_j, tile_j, j] =
            in_parts(sch, &loops[columns], [self.warps[1], self.each[1], wide])?;
        let [part, step, k] = in_three(sch, &loops[along], self.steps() / deep, deep)?;
        let cells = stage.dims().filter(|d| d.2 == IterKind::Spatial).count();
        let pick = |from: usize, to: usize| -> Vec<LoopRef> {
            (from..to).filter(|k| !self.axes.contains(k)).map(|k| loops[k].clone()).collect()
        };
        let far = pick(0, cells);
        let outer = [&far[..], &[group_i.clone(), group_j.clone()]].concat();
        let parts = [pick(cells, loops.len()), vec![part.clone()]].concat();
        let inner = [&step, &warp_i, &warp_j, &tile_i, &tile_j, &i, &j, &k].map(Clone::clone);
        sch.reorder(&[&outer[..], &parts, &inner].concat())?;
        for copy in &fragments {
            sch.compute_at(copy, &step, false, Position::default())?;
        }
        for copy in &shared {
            sch.compute_at(copy, &part, false, Position::default())?;
        }
        sch.reverse_compute_at(&finish, &group_j, false, Position::default())?;
        let init = sch.decompose_reduction(block, &parts[0])?;
        // Layouts.
        let mut lanes = Vec::new();
        for (at, copy) in shared.iter().enumerate() {
            lanes.push(self.lanes_of_copy(sch, copy, at)?);
        }
        for (at, copy) in shared.iter().enumerate() {
            lay_out(sch, copy, &self.shared_map(at, c))?;
        }
        for (at, copy) in fragments.iter().enumerate() {
            lay_out(sch, copy, &self.fragment_map(at, c))?;
        }
        lay_out(sch, &init, &self.sums_map(stage)?)?;
        // What threads do.
        let mut bound = vec![
            (group_i, "blockIdx.y"),
            (group_j.clone(), "blockIdx.x"),
            (warp_i, "threadIdx.y"),
            (warp_j, "threadIdx.z"),
        ];
        for (at, (copy, lanes)) in shared.iter().zip(lanes).enumerate() {
            let own = sch.get_loops(copy)?.split_off(outer.len() + parts.len());
            let [cells, lanes] = self.in_lanes(sch, own, at, lanes)?;
            let [each, z, y, x] = in_parts(sch, &cells, [self.warps[1], self.warps[0], 32])?;
            sch.reorder(&[z.clone(), y.clone(), x.clone(), each.clone(), lanes.clone()])?;
            sch.unroll(&each)?;
            sch.vectorize(&lanes)?;
            bound.extend([(z, "threadIdx.z"), (y, "threadIdx.y"), (x, "threadIdx.x")]);
        }
        for (at, copy) in fragments.iter().enumerate() {
            self.load(sch, copy, at, outer.len() + parts.len() + 1, &mut bound)?;
        }
        for made in [&init, &finish] {
            let own = sch.get_loops(made)?.split_off(outer.len());
            // Sums are set by loops in the order of the iteration variables.
            let order = if made.name == finish.name {
                follow.order()
            } else {
                (0..stage.dims().count()).collect()
            };
            self.lanes(sch, own, &order, &mut bound)?;
        }
        [&step, &tile_i, &tile_j].into_iter().try_for_each(|l| sch.unroll(l))?;
        if !far.is_empty() {
            let all = sch.get_loops(&init)?;
            bound.push((fused(sch, &all[..far.len()])?, "blockIdx.z"));
        }
        fill_ahead(sch, groups, &part)?;
        expect(sch, &group_j, self.registers(), self.shared_bytes(groups))?;
        let mut exchanged = Vec::new();
        for (at, copy) in shared.iter().enumerate() {
            exchanged.push(self.exchange(at).attr(&written(sch, copy)?));
        }
        sch.annotate(&part, EXCHANGED_ROWS, Attr::List(exchanged))?;
        bind(sch, &bound)?;
        sch.tensorize(&i, self.instruction.name)?;
        Ok(pads)
    }

    /// How many neighbours in shared memory a thread copies at once of an operand: as many as are neighbours where they
    /// come from, and else those of a register.
    fn lanes_of_copy(&self, sch: &Schedule, copy: &BlockRef, at: usize) -> Result<i64> {
        let [across, along] = self.places[at];
        let fast = if self.is_along(at) { along } else { across };
        let block = block(sch, copy)?;
        let bytes = self.bytes();
        let sizes = [WIDE, WIDE / 2, REGISTER].map(|n| n / bytes);
        let found = sizes.into_iter().find(|lanes| copies_vectors(&block, fast, *lanes));
        Ok(found.unwrap_or(if bytes == 1 { REGISTER } else { 1 }))
    }

    /// The loops over what a thread copies at once, and over all else, of the loops over what a group shares of an
    /// operand. Neighbouring threads copy neighbours.
    fn in_lanes(
        &self,
        sch: &mut Schedule,
        own: Vec<LoopRef>,
        at: usize,
        lanes: i64,
    ) -> Result<[LoopRef; 2]> {
        let [first, second] = &own[..] else {
            return Err(Error::refused("what a group shares of an operand is no matrix"));
        };
        let [across, along] = self.places[at];
        // The loop along rows of shared memory.
        let is_second = (across < along) == self.is_along(at);
        let (slow, fast) = if is_second { (first, second) } else { (second, first) };
        let [vectors, lane] = split(sch, fast, None, lanes)?;
        let mut around = [slow.clone(), vectors];
        if !is_second {
            around.reverse();
            sch.reorder(&[&around[..], std::slice::from_ref(&lane)].concat())?;
        }
        Ok([fused(sch, &around)?, lane])
    }

    /// The layout of what a group shares of an operand, whose rows run as its last axis of the tile does.
    fn shared_map(&self, at: usize, c: &Contraction) -> Lambda {
        let [across, along] = self.places[at];
        let (size, steps) = (self.size()[at], self.steps());
        let (slow, fast) = if self.is_along(at) {
            ((across, size), (along, steps))
        } else {
            ((along, steps), (across, size))
        };
        let rank = c.operands[if at == 0 { self.left } else { 1 - self.left }].indices.len();
        Lambda::over_indices(rank, move |index| {
            let mut to: Vec<Expr> = others(index, [across, along]);
            for (place, size) in [slow, fast] {
                to.push(index[place].clone().floordiv(size));
            }
            let [i, j] = [slow, fast].map(|(place, size)| index[place].clone().floormod(size));
            to.push(i * fast.1 + j);
            to
        })
    }

    /// How parts of rows of what a group shares of an operand are exchanged, such that eight rows of a matrix lie in
    /// other banks.
    fn exchange(&self, at: usize) -> ExchangedRows {
        let chunk = CHUNK / self.bytes();
        let row = if self.is_along(at) { self.steps() } else { self.size()[at] };
        // Rows that share one row of banks are exchanged alike.
        let together = (BANKS / (row * self.bytes())).max(1);
        ExchangedRows { row, part: chunk, together, turned: (row / chunk).min(BANKS / CHUNK) }
    }

    /// The layout of the fragments of an operand.
    fn fragment_map(&self, at: usize, c: &Contraction) -> Lambda {
        let [across, along] = self.places[at];
        let tile = if at == 0 { self.instruction.a } else { self.instruction.b };
        let rank = c.operands[if at == 0 { self.left } else { 1 - self.left }].indices.len();
        Lambda::over_indices(rank, move |index| {
            let (row, column) = if at == 0 {
                (&index[across], &index[along])
            } else {
                (&index[along], &index[across])
            };
            fragment(others(index, [across, along]), &tile, row, column)
        })
    }

    /// The layout of the sums.
    fn sums_map(&self, stage: &Stage) -> Result<Lambda> {
        let [row, column] = [0, 1].map(|at| {
            let var = stage.dims().nth(self.axes[at])?.0;
            stage.indices.iter().position(|i| i.as_var() == Some(var))
        });
        let (Some(row), Some(column)) = (row, column) else {
            return Err(Error::refused("the sums do not lie along rows and columns"));
        };
        let tile = self.instruction.c;
        Ok(Lambda::over_indices(stage.indices.len(), move |index| {
            fragment(others(index, [row, column]), &tile, &index[row], &index[column])
        }))
    }

    /// The loops that load the fragments of an operand.
    fn load(
        &self,
        sch: &mut Schedule,
        copy: &BlockRef,
        at: usize,
        depth: usize,
        bound: &mut Vec<(LoopRef, &'static str)>,
    ) -> Result<()> {
        let own = sch.get_loops(copy)?.split_off(depth);
        let [first, second] = &own[..] else {
            return Err(Error::refused("the fragments of an operand are no matrices"));
        };
        let [across, along] = self.places[at];
        let (across, along) = if across < along { (first, second) } else { (second, first) };
        let width = if at == 0 { self.instruction.c.rows } else { self.instruction.c.columns };
        let [warp, tile, cell] = in_three(sch, across, self.each[at], width)?;
        let (i, j) = if at == 0 { (&cell, along) } else { (along, &cell) };
        sch.reorder(&[warp.clone(), tile.clone(), i.clone(), j.clone()])?;
        sch.unroll(&tile)?;
        sch.annotate(i, TENSOR_INSTRUCTION, Attr::Str(LOAD_MATRIX.into()))?;
        bound.push((warp, if at == 0 { "threadIdx.y" } else { "threadIdx.z" }));
        Ok(())
    }

    /// Takes the loops over a tile of sums apart: warps, lanes, and the registers of each. They are in the order of some
    /// iteration variables.
    fn lanes(
        &self,
        sch: &mut Schedule,
        own: Vec<LoopRef>,
        order: &[usize],
        bound: &mut Vec<(LoopRef, &'static str)>,
    ) -> Result<()> {
        let at = |axis: usize| {
            order.iter().filter(|k| self.axes[..2].contains(k)).position(|k| *k == axis)
        };
        let (Some(row), Some(column)) = (at(self.axes[0]), at(self.axes[1])) else {
            return Err(Error::refused("the tiles are no boxes where they are stored"));
        };
        // Sums are set in parts already, or stored as a box.
        let (rows, columns) = match own.len() {
            2 => {
                let rows = in_parts(sch, &own[row], [self.each[0], 2, 8])?;
                (rows, in_parts(sch, &own[column], [self.each[1], 4, 2])?)
            }
            6 => {
                let [a, b] = split(sch, &own[4], None, 8)?;
                let [c, d] = split(sch, &own[5], None, 2)?;
                ([own[0].clone(), own[2].clone(), a, b], [own[1].clone(), own[3].clone(), c, d])
            }
            _ => return Err(Error::refused("the tiles are no boxes where they are stored")),
        };
        let ([warp_i, tile_i, high, low], [warp_j, tile_j, lane, pair]) = (&rows, &columns);
        let inner = [warp_i, warp_j, low, lane, tile_i, tile_j, high, pair].map(Clone::clone);
        sch.reorder(&inner)?;
        let lanes = fused(sch, &[low.clone(), lane.clone()])?;
        [tile_i, tile_j, high, pair].into_iter().try_for_each(|l| sch.unroll(l))?;
        bound.extend([
            (warp_i.clone(), "threadIdx.y"),
            (warp_j.clone(), "threadIdx.z"),
            (lanes, "threadIdx.x"),
        ]);
        Ok(())
    }
}

/// Whether vectors of so many cells that a block copies, along an axis of the copy, are such where they come from, and
/// no guard tells their cells apart.
fn copies_vectors(block: &Block, axis: usize, lanes: i64) -> bool {
    let place = || {
        let StmtKind::Store { indices, value, .. } = block.body.kind() else { return None };
        let (var, mut value) = (indices.get(axis)?.as_var()?, value);
        while let ExprKind::IfThenElse(guard, inside, _) = value.kind() {
            let whole = |c: &Expr| match c.kind() {
                ExprKind::Binary(BinOp::Lt, v, end) if v.as_var() == Some(var) => {
                    end.as_int().is_some_and(|n| n % lanes == 0)
                }
                _ => !c.mentions(var),
            };
            guard.conjuncts().iter().all(whole).then_some(())?;
            value = inside;
        }
        let ExprKind::Load(buffer, at) = value.kind() else { return None };
        let mut ranges = Ranges::default();
        block.iters.iter().for_each(|i| ranges.bind_loop(&i.var, &i.domain));
        let mut place = Expr::i32(0);
        for (index, extent) in at.iter().zip(&buffer.shape) {
            place = place * extent.clone().cast(DType::I32) + index.clone().cast(DType::I32);
        }
        let mut place = linear(&place, &ranges)?;
        let step = place.coefficient(var)?;
        place.terms.retain(|(atom, _)| atom.as_var() != Some(var));
        let lanes = i128::from(lanes);
        let whole = place.constant % lanes == 0 && place.terms.iter().all(|t| t.1 % lanes == 0);
        Some(step == 1 && whole)
    };
    place() == Some(true)
}

/// The indices but for two.
fn others(index: &[Expr], but: [usize; 2]) -> Vec<Expr> {
    let rest = index.iter().enumerate().filter(|(k, _)| !but.contains(k));
    rest.map(|(_, e)| e.clone()).collect()
}

/// Tiles of a fragment, and the places of an element in it.
fn fragment(
    mut outer: Vec<Expr>,
    tile: &tilewright_target::Tile,
    row: &Expr,
    column: &Expr,
) -> Vec<Expr> {
    outer.push(row.clone().floordiv(tile.rows));
    outer.push(column.clone().floordiv(tile.columns));
    let [row, column] =
        [(row, tile.rows), (column, tile.columns)].map(|(e, n)| e.clone().floormod(n));
    outer.extend(tile.layout(&row, &column));
    outer
}
