//! The trace of a contraction: primitives that make its register tiles.
//!
//! ```text
//! pack the vector operand, padded to whole tiles              pad_einsum, cache_read,
//!                                                              transform_layout
//! for other axes, tiles of columns, tiles of rows:             split, reorder
//!     sums = 0                                                 set_scope, decompose_reduction
//!     for the reduction:
//!         for rows, lanes: sums += a * b                       unroll, vectorize or tensorize
//!     for rows, lanes: out = what follows of sums              reverse_compute_at
//! ```
//!
//! Sums of products of integers are made by dot-product instructions: both operands then lie with the
//! elements that an instruction multiplies beside one another, and the loops over lanes and these
//! elements are tensorised.
//!
//! Where the lanes of a tile do not lie beside one another in the result, the sums leave the
//! registers first, to a copy from which the result is made cell by cell (`cache_read`). So they do where
//! what follows of a sum is long, such as a sigmoid: a loop over the rows of the copy has it once for a row, and
//! not once for each vector of the tile.
//!
//! The last tiles of rows and of columns are made apart where they are smaller (`loop_partition`), so
//! that nothing is guarded inside of the reduction, and no lane of a whole tile where it is stored.
//! Sums of the last columns that nothing reads are no code. Vectors that are read where they lie may
//! end behind their row: what makes the operand makes its rows longer (`transform_layout`), the last
//! tile computes all lanes (`remove_branching_through_overcompute`), and stores those that there are.
//! Where open sizes leave the choice, vectors that change from run to run have zeros behind their last column
//! ([`Tile::zeros`]), and the last tile of open columns has a version for each number of vectors.
//! Where both operands are read in vectors, it has as many lanes as there are columns left ([`Tile::exact`]).
//! Columns that whole vectors leave over may be vectors along the reduction (`columns`). An open
//! number of rows has tiles of several sizes (`open_rows`).

use std::sync::Arc;

use tilewright_ir::visit::accessed;
use tilewright_ir::{Attr, DType, Dim, Error, Expr, Result};
use tilewright_schedule::compute::Position;
use tilewright_schedule::value::{Lambda, Value};
use tilewright_schedule::{BlockRef, BufferArg, LoopRef, Schedule};
use tilewright_target::Target;

use crate::columns::Columns;
use crate::contraction::{Contraction, Group};
use crate::merge::{digits_in_range, merge, with_sizes_of};
use crate::open_rows::OpenRows;
use crate::order::{Order, Outer};
use crate::parallel::Parallel;
use crate::partial::begun;
use crate::parts::{
    self, TileBlocks, as_one, block, blocks, computed_at, copied, copies, lay_out, loop_at,
    no_unroll, number, packed, partition, split, vectors, written,
};
use crate::price;
use crate::tile::{Source, Tile};

/// Makes the tiles of a contraction. `epilogue` is the block that alone maps its result point by
/// point, `apart` are blocks that copy its operands, which are read where they lie instead.
///
/// # Errors
/// Those of the primitives: the function then is not to be used.
pub fn tiled(
    sch: &mut Schedule,
    func: &Arc<str>,
    c: &Contraction,
    tile: &Tile,
    epilogue: Option<&str>,
    apart: &[Arc<str>],
    target: &Target,
) -> Result<()> {
    let block = sch.get_block(&c.block, func)?;
    let finish = pack(sch, &block, c, tile, epilogue, apart)?;
    let Some(merged) = merge(sch, &block, &finish, c)? else {
        return tiles(sch, &block, &finish, c, tile, apart, target);
    };
    sch.with_products_as_sizes(func, |sch| {
        let made = parts::block(sch, &block)?;
        let c = with_sizes_of(merged, &made);
        if c.axes.iter().any(|a| !a.is_even) {
            digits_in_range(sch, &[&block, &finish])?;
        }
        tiles(sch, &block, &finish, &c, tile, apart, target)
    })
}

/// Makes the tiles of a contraction, in whose block each axis is one loop. What `finish` makes of its sums is the
/// result.
fn tiles(
    sch: &mut Schedule,
    block: &BlockRef,
    finish: &BlockRef,
    c: &Contraction,
    tile: &Tile,
    apart: &[Arc<str>],
    target: &Target,
) -> Result<()> {
    let func = &block.func;
    let order = Order::choose(c, tile, target);
    let sums = digits(
        c,
        tile,
        &order,
        c.dims.len(),
        |k| c.dims.iter().position(|d| *d == Some(k)),
        &[],
        Some(tile.width),
    );
    // Then the vector axis is guarded where it ends, and not padded.
    let guarded = tile.guarded(c);
    if !guarded {
        lay_out(sch, block, &sums)?;
    }
    let lanes = (!guarded).then_some(tile.width);
    let iters = digits(c, tile, &order, c.rank(), Some, &order.reduce, lanes);
    sch.transform_block_layout(block, &iters)?;

    let columns = order.outer.iter().position(|o| matches!(o, Outer::Columns));
    let (outer, reduce) = nest(sch, block, c, tile, &order, columns.filter(|_| guarded))?;
    let Some(innermost) = outer.last().filter(|_| !reduce.is_empty()) else {
        return Err(Error::internal("a tile has no loop around it"));
    };
    let open_rows = OpenRows::new(c, tile, target, outer.len(), reduce.len());
    sch.reverse_compute_at(finish, innermost, false, Position::default())?;
    if guarded {
        lay_out(sch, block, &sums)?;
    }
    let (whole, rest) = tile.columns(c);
    let mut last = Vec::new();
    let mut head = None;
    if let (Some(along), Some(axis), Some(at)) = (tile.along, tile.packed(), columns) {
        let few = Columns { c, tile, target, along, outer: outer.len() };
        last = few.split_last_tile(sch, block, finish, at)?;
        few.pack(sch, block, &last, tiles_outermost(c, tile, axis))?;
        unread(sch, func, apart)?;
        head = Some(few.tiled(sch, &last)?);
    }
    let copied = c.out[tile.vector_axis] != Some(1) || is_long(sch, finish, tile)?;
    let result = written(sch, finish)?;
    let banded = order.shared > 0 && band(sch, c, tile, block, order.shared - 1, target)?;
    let mut blocks = vec![block.clone(), finish.clone()];
    let mut kinds = vec![TileBlock::Init, TileBlock::Update];
    if copied {
        let sums = BufferArg::Name(written(sch, block)?);
        let only = head.iter().map(|_| finish.clone()).collect::<Vec<_>>();
        blocks.insert(1, sch.cache_read(finish, sums, "local", &only)?);
        kinds.push(TileBlock::Copy);
    }
    kinds.push(TileBlock::Finish);
    let mut parts = vec![TileBlocks::whole(blocks)];
    if open_rows.is_none() {
        begin(sch, &mut parts, outer.len())?;
    }
    // The last tile of columns is apart where it is smaller: it alone has fewer lanes to store, and
    // no sums that nothing reads.
    let cut = columns.filter(|_| whole > 0 && rest > 0);
    if let Some(at) = cut.filter(|_| head.is_none()) {
        let axis = &c.axes[tile.vector_axis];
        let sizes = if axis.is_open() {
            [Some(axis.dim.floordiv(tile.width as usize).typed(DType::I32)), None]
        } else {
            [number(whole), number(1)]
        };
        partition(sch, &mut parts, at, &sizes)?;
        for p in &mut parts {
            p.last = std::mem::take(&mut p.ragged);
        }
    }
    let of_columns = parts.len();
    let ragged = tile.row_axis.filter(|r| tile.rows > 1 && c.axes[*r].extent % tile.rows != 0);
    if let Some(rows) = &open_rows {
        rows.tiles(sch, &mut parts)?;
        begin(sch, &mut parts, outer.len())?;
    } else if let Some(r) = ragged {
        let full = [number(c.axes[r].extent / tile.rows), number(1)];
        partition(sch, &mut parts, outer.len() - 1, &full)?;
    }
    let first = parts.iter().take(of_columns).filter_map(|p| p.blocks.first().cloned());
    let heads: Vec<BlockRef> = first.chain(head).collect();
    for [sums, finish] in last.into_iter().filter_map(|l| l.vectors) {
        parts.push(vectors_of_columns(sch, sums, finish, outer.len())?);
    }
    trim(sch, &parts, &kinds, c, tile)?;
    let inside = Inside { c, tile, target, outer: outer.len(), reduce: reduce.len() };
    parts.iter().try_for_each(|part| inside.part(sch, part, &kinds))?;
    if let Some(rows) = &open_rows {
        rows.versions(sch, &parts)?;
    }
    if let Some(at) = columns.filter(|_| tile.masked(c) && tile.vectors > 1) {
        few_vectors(sch, &parts, at, c, tile)?;
    }
    Parallel {
        c,
        tile,
        order: &order,
        heads: &heads,
        result: &result,
        cut,
        ragged: open_rows.is_some() || ragged.is_some(),
        nested: if banded { order.shared } else { outer.len() },
    }
    .run(sch)
}

/// Begins the sums of parts, whose first block has them, apart from the steps of the reduction.
fn begin(sch: &mut Schedule, parts: &mut [TileBlocks], outer: usize) -> Result<()> {
    parts.iter_mut().try_for_each(|part| {
        let Some(sums) = part.blocks.first() else { return Ok(()) };
        let both = begun(sch, sums, outer)?;
        part.blocks.splice(0..1, both);
        Ok(())
    })
}

/// Gives the last tile of an open number of columns a version for each number of vectors that these take. Where lanes
/// are left out of sums, they are of the last vector, which is apart.
fn few_vectors(
    sch: &mut Schedule,
    parts: &[TileBlocks],
    at: usize,
    c: &Contraction,
    tile: &Tile,
) -> Result<()> {
    let last = parts.iter().filter(|p| p.last).flat_map(|p| p.blocks.clone());
    let last: Vec<BlockRef> = last.collect();
    let Some(first) = last.first() else { return Ok(()) };
    let tiles = loop_at(sch, first, at)?;
    let left = c.axes[tile.vector_axis].dim.modulo(tile.width as usize);
    let lanes = tile.width / tile.vectors;
    let versions = parts::few_vectors(sch, &tiles, &last, left, (tile.vectors, lanes))?;
    if tile.zeros(c) {
        return Ok(());
    }
    for (whole, version) in versions.iter().enumerate() {
        version.iter().try_for_each(|b| parts::whole_vectors(sch, b, whole).map(drop))?;
    }
    Ok(())
}

/// Operations of a tile's results above which they are made in a loop: LLVM takes long for straight code, and
/// it leaves less of the instruction cache to others.
const LONG: f64 = 100.0;

/// Whether the operations that follow of the sums of a tile are many. Sums of columns in vectors along the
/// reduction would not be in the copy.
fn is_long(sch: &Schedule, finish: &BlockRef, tile: &Tile) -> Result<bool> {
    let count = price::operations_of(&block(sch, finish)?.body);
    let several = tile.rows > 1 && tile.along.is_none();
    Ok(several && count * (tile.rows * tile.vectors) as f64 > LONG)
}

/// The blocks of whole vectors in a last tile of columns, under so many loops.
fn vectors_of_columns(
    sch: &mut Schedule,
    sums: BlockRef,
    finish: BlockRef,
    outer: usize,
) -> Result<TileBlocks> {
    let [init, update] = begun(sch, &sums, outer)?;
    Ok(TileBlocks::whole(vec![init, update, finish]))
}

/// Has the last tile of columns compute only the lanes that there are, or, where vectors may end behind
/// their row, all lanes without a branch.
fn trim(
    sch: &mut Schedule,
    parts: &[TileBlocks],
    kinds: &[TileBlock],
    c: &Contraction,
    tile: &Tile,
) -> Result<()> {
    let (beyond, exact, (_, rest)) = (tile.beyond(c), tile.exact(c), tile.columns(c));
    for part in parts.iter().filter(|p| exact && p.last) {
        for block in &part.blocks {
            let Some(lane) = sch.get_loops(block)?.pop() else { continue };
            sch.loop_partition(&lane, Some(&[number(rest), number(tile.width - rest)]))?;
        }
    }
    for part in parts.iter().filter(|p| beyond && p.last) {
        let sums = part.blocks.iter().zip(kinds);
        sums.filter(|(_, kind)| matches!(kind, TileBlock::Init | TileBlock::Update))
            .try_for_each(|(b, _)| sch.remove_branching_through_overcompute(b, false, false))?;
    }
    Ok(())
}

/// Makes tiles of the loops around the sums: all that are around a tile, the reduction, rows, lanes, and the
/// elements that an instruction multiplies. `guarded` is the place of the tiles of columns where the vector axis
/// is still one loop. Returns the loops around a tile, and those of the reduction.
fn nest(
    sch: &mut Schedule,
    block: &BlockRef,
    c: &Contraction,
    tile: &Tile,
    order: &Order,
    guarded: Option<usize>,
) -> Result<(Vec<LoopRef>, Vec<LoopRef>)> {
    let mut loops = sch.get_loops(block)?;
    let around = order.outer.len();
    if let Some(columns) = guarded {
        // The last tile has lanes that are guarded, and computed nevertheless or not there.
        let lane = loops.remove(around - 1);
        let split = split(sch, &lane, None, tile.width)?;
        [columns, around].into_iter().zip(split).for_each(|(at, part)| loops.insert(at, part));
    }
    let (mut outer, lane) = (loops[..around].to_vec(), loops[around].clone());
    let last = loops.len() - usize::from(c.group.is_some());
    let reduce = loops[around + 1..last].to_vec();
    let mut inner = reduce.clone();
    // Those of an open number of rows are made later.
    if tile.row_axis.is_some()
        && tile.open_rows(c).is_none()
        && let Some(rows) = outer.pop()
    {
        let [tiles, row] = split(sch, &rows, None, tile.rows)?;
        outer.push(tiles);
        inner.push(row);
    }
    inner.push(lane);
    inner.extend_from_slice(&loops[last..]);
    sch.reorder(&[&outer[..], &inner].concat())?;
    Ok((outer, reduce))
}

/// The loops inside of tiles: rows and vectors become statements.
struct Inside<'a> {
    c: &'a Contraction,
    tile: &'a Tile,
    target: &'a Target,
    /// How many loops are around a tile, and how many the reduction has.
    outer: usize,
    reduce: usize,
}

impl Inside<'_> {
    /// Those of all blocks of a part, which are of these kinds.
    fn part(&self, sch: &mut Schedule, part: &TileBlocks, kinds: &[TileBlock]) -> Result<()> {
        let copied = kinds.contains(&TileBlock::Copy);
        part.blocks.iter().zip(kinds).try_for_each(|(block, kind)| {
            // Places that vary keep a copy in memory.
            let rolled = *kind == TileBlock::Finish && copied;
            let around = match kind {
                TileBlock::Update => self.outer + self.reduce,
                TileBlock::Init | TileBlock::Copy | TileBlock::Finish => self.outer,
            };
            self.block(sch, block, *kind, around, part.last, !rolled)?;
            if !rolled || part.single {
                return Ok(());
            }
            let row = sch.get_loops(block)?.into_iter().nth(around);
            row.map_or(Ok(()), |row| no_unroll(sch, &row))
        })
    }

    /// Those of a block under so many loops, in the `last` tile of columns or in others. Rows become statements
    /// where their number is `counted`, and not open.
    fn block(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        kind: TileBlock,
        around: usize,
        last: bool,
        counted: bool,
    ) -> Result<()> {
        let (c, tile) = (self.c, self.tile);
        let instruction = c.group.as_ref().and_then(|g| g.instructions[tile.vector]);
        let instruction = instruction.filter(|_| kind == TileBlock::Update);
        let loops = sch.get_loops(block)?;
        let inside = loops.get(around..loops.len() - usize::from(instruction.is_some()));
        let Some((lane, rows)) = inside.and_then(|l| l.split_last()) else { return Ok(()) };
        let direct = c.out[tile.vector_axis] == Some(1);
        let columns = &c.axes[tile.vector_axis];
        let lanes = self.target.vectors.lanes(c.bytes);
        let ragged = columns.dim.modulo(lanes as usize) != 0;
        let is_last = last || columns.dim.known().is_some_and(|n| (n as i64) < tile.width);
        let ends = kind == TileBlock::Finish && direct && is_last && ragged;
        if ends && !self.stores_masked(sch, block)? {
            match columns.dim.known() {
                None => self.open_lanes(sch, block, lane, columns.dim)?,
                Some(count) => self.last_lanes(sch, block, lane, count as i64 % tile.width)?,
            }
            return rows.iter().filter(|_| counted).try_for_each(|l| sch.unroll(l));
        }
        // Only constant places in the tile keep it in registers.
        if kind != TileBlock::Finish || direct {
            // One vector of the machine at a time: LLVM takes others apart, some of them cell by cell.
            let short = tile.exact(c) && last && tile.columns(c).1 <= lanes;
            let width = if short { 1 } else { tile.width };
            let (lane, vectors) = vectors(sch, lane, width, lanes)?;
            match instruction {
                Some(i) => sch.tensorize(&lane, i.name)?,
                None => sch.vectorize(&lane)?,
            }
            let rows = rows.iter().filter(|_| counted);
            rows.chain(&vectors).try_for_each(|l| sch.unroll(l))?;
        }
        match kind {
            TileBlock::Update => {
                let how = match tile.straight(c) {
                    1 => ("pragma_no_unroll", 1),
                    count => ("pragma_unroll_count", count),
                };
                sch.annotate(&loops[around - 1], how.0, Attr::Int(how.1))
            }
            _ => Ok(()),
        }
    }
}

impl Inside<'_> {
    /// Whether the machine leaves out lanes of all that a block reads and writes.
    fn stores_masked(&self, sch: &Schedule, block: &BlockRef) -> Result<bool> {
        let (reads, writes) = accessed(&parts::block(sch, block)?.body);
        // A number is no vector.
        let reads = reads.iter().filter(|b| b.rank() > 0);
        let mut types = reads.chain(&writes).map(|b| b.dtype().bytes());
        Ok(types.all(|n| self.target.vectors.leaves_out(n)))
    }

    /// Stores so many lanes of a last tile: whole vectors, then one of the lanes that are left. The others are no code.
    fn last_lanes(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        lane: &LoopRef,
        left: i64,
    ) -> Result<()> {
        let lanes = self.target.vectors.lanes(self.c.bytes);
        let (whole, single) = (left / lanes * lanes, left % lanes);
        let sizes: Vec<Option<Expr>> =
            [whole, single].into_iter().filter(|n| *n > 0).map(number).chain([None]).collect();
        let made = copies(sch, &block.func, lane, &sizes)?;
        if whole == 0 {
            return sch.vectorize(lane);
        }
        let [vectors, lane] = split(sch, lane, None, lanes)?;
        sch.vectorize(&lane)?;
        sch.unroll(&vectors)?;
        match made.first().filter(|_| single > 0) {
            Some(rest) => {
                let lane = parts::innermost(sch, rest)?;
                sch.vectorize(&lane)
            }
            None => Ok(()),
        }
    }

    /// Stores the lanes of a last tile that an open number of columns leaves over: whole vectors, then one by
    /// one. The others are no code.
    fn open_lanes(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        lane: &LoopRef,
        columns: Dim,
    ) -> Result<()> {
        let lanes = self.target.vectors.lanes(self.c.bytes) as usize;
        let left = columns.modulo(self.tile.width as usize);
        let whole = left.floordiv(lanes) * Dim::from(lanes);
        let sizes = [whole, left.modulo(lanes)].map(|d| Some(d.typed(DType::I32)));
        if self.tile.vectors == 1 {
            let sizes = [sizes[1].clone(), None];
            return copies(sch, &block.func, lane, &sizes).map(drop);
        }
        let [whole, single] = sizes;
        copies(sch, &block.func, lane, &[whole, single, None])?;
        let [vectors, lane] = split(sch, lane, None, lanes as i64)?;
        sch.vectorize(&lane)?;
        no_unroll(sch, &vectors)
    }
}

/// Computes what a stage of the function gives an operand, such as its padding, in the loop at a
/// depth around the tiles, for what they read there: it then comes from a near cache, and lies in the
/// order in which it is read. Stages for which that is refused stay where
/// they are. Says whether there is one for which it is not.
fn band(
    sch: &mut Schedule,
    c: &Contraction,
    tile: &Tile,
    update: &BlockRef,
    depth: usize,
    target: &Target,
) -> Result<bool> {
    let lanes = target.vectors.lanes(c.bytes);
    let mut any = false;
    for data in
        [0, 1].into_iter().filter(|o| c.operands[*o].steps[tile.vector_axis] != 0 && c.slides(*o))
    {
        let buffer = &c.operands[data].buffer;
        let all = blocks(sch, &update.func)?;
        let Some(made) = all.iter().find(|b| accessed(&b.body).1.contains(buffer)) else {
            continue;
        };
        let made = sch.get_block(&made.name, &update.func)?;
        let Some(around) = sch.get_loops(update)?.into_iter().nth(depth) else { continue };
        let Some(copies) = computed_at(sch, &made, &around, depth)? else { continue };
        any = true;
        for copy in copies.iter().filter(|_| tile.both(c)) {
            let Some(lane) = sch.get_loops(copy)?.pop() else { continue };
            let mut trial = sch.clone();
            let (lane, _) = vectors(&mut trial, &lane, tile.width, lanes)?;
            if trial.vectorize(&lane).is_ok() {
                *sch = trial;
            }
        }
    }
    Ok(any)
}

/// What a block of a tile does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TileBlock {
    /// Sets the sums to zero.
    Init,
    /// Adds products to them.
    Update,
    /// Moves them out of the registers, to where the next block reads them one by one.
    Copy,
    /// Writes the result.
    Finish,
}

/// The index map from iteration variables to the loops of tiles: what is outside in its order, the
/// lanes, and what comes last. `place` says which of `rank` indices an iteration variable of the
/// contraction is; indices that are none come first. Without a number of `lanes` the vector axis stays
/// whole.
fn digits(
    c: &Contraction,
    tile: &Tile,
    order: &Order,
    rank: usize,
    place: impl Fn(usize) -> Option<usize>,
    last: &[usize],
    lanes: Option<i64>,
) -> Lambda {
    let places = |k: usize| -> Option<Vec<(usize, Dim)>> {
        let iters = c.axes[k].iters.iter();
        let all: Vec<_> = iters.filter_map(|(i, n)| place(*i).map(|at| (at, *n))).collect();
        (!all.is_empty()).then_some(all)
    };
    let mut list: Vec<Digit> = Vec::new();
    for o in &order.outer {
        list.extend(match o {
            Outer::Axis(k) => places(*k).map(Digit::Whole),
            Outer::Columns => {
                places(tile.vector_axis).zip(lanes).map(|(p, n)| Digit::Quotient(p, n))
            }
            Outer::Rows => tile.row_axis.and_then(places).map(Digit::Whole),
        });
    }
    list.extend(places(tile.vector_axis).map(|p| match lanes {
        Some(lanes) => Digit::Remainder(p, lanes),
        None => Digit::Whole(p),
    }));
    list.extend(last.iter().filter_map(|k| {
        let places = places(*k)?;
        Some(match group_size(*k, c) {
            Some(size) => Digit::Quotient(places, size),
            None => Digit::Whole(places),
        })
    }));
    let within = last.iter().find_map(|k| Some((places(*k)?, group_size(*k, c)?)));
    list.extend(within.map(|(places, size)| Digit::Remainder(places, size)));
    let units: Vec<Digit> = (0..rank)
        .filter(|d| !is_used(*d, &list))
        .map(|d| Digit::Whole(vec![(d, Dim::from(1))]))
        .collect();
    let list = [units, list].concat();
    Lambda::over_indices(rank, move |at| {
        list.iter()
            .map(|d| match d {
                Digit::Whole(p) => as_one(at, p),
                Digit::Quotient(p, size) => as_one(at, p).floordiv(*size),
                Digit::Remainder(p, size) => as_one(at, p).floormod(*size),
            })
            .collect()
    })
}

/// A part of the place of a cell: axes as one, with their extents.
#[derive(Clone)]
enum Digit {
    Whole(Vec<(usize, Dim)>),
    /// Which tile, or which group.
    Quotient(Vec<(usize, Dim)>, i64),
    /// Where in it.
    Remainder(Vec<(usize, Dim)>, i64),
}

fn is_used(d: usize, list: &[Digit]) -> bool {
    list.iter().any(|x| match x {
        Digit::Whole(p) | Digit::Quotient(p, _) | Digit::Remainder(p, _) => {
            p.iter().any(|(at, _)| *at == d)
        }
    })
}

fn group_size(k: usize, c: &Contraction) -> Option<i64> {
    c.group.as_ref().filter(|g| g.axis == k).map(|g| g.size)
}

/// Gives the vector operand its layout and the sums their place. Returns the block that makes the
/// result of the sums.
fn pack(
    sch: &mut Schedule,
    block: &BlockRef,
    c: &Contraction,
    tile: &Tile,
    epilogue: Option<&str>,
    apart: &[Arc<str>],
) -> Result<BlockRef> {
    let func = &block.func;
    let operand = &c.operands[tile.vector];
    if tile.beyond(c) {
        stretch(sch, func, c, tile)?;
    }
    let mut finish = epilogue.map(|name| sch.get_block(name, func)).transpose()?;
    let ragged = tile.columns(c).1 != 0 && !tile.guarded(c);
    let ragged_group = c.group.as_ref().filter(|g| g.extent % g.size != 0);
    let mut copies = Vec::new();
    let mut other = None;
    if ragged || ragged_group.is_some() {
        let before = blocks(sch, func)?;
        // An axis that is padded has one iteration variable.
        let mut padding = vec![1; c.rank()];
        let columns = ragged.then_some((tile.vector_axis, tile.width));
        for (axis, multiple) in columns.into_iter().chain(ragged_group.map(|g| (g.axis, g.size))) {
            let first = c.axes[axis].iters.first().and_then(|(k, _)| padding.get_mut(*k));
            first.into_iter().for_each(|p| *p = multiple);
        }
        sch.pad_einsum(block, &padding)?;
        for b in blocks(sch, func)? {
            if before.iter().any(|x| x.name == b.name) {
                continue;
            }
            let made = sch.get_block(&b.name, func)?;
            let reads = accessed(&b.body).0;
            match c.operands.iter().any(|o| reads.contains(&o.buffer)) {
                true if c.group.is_some() && !reads.contains(&operand.buffer) => other = Some(made),
                true => copies.push(made),
                // What cuts off the padding of the result.
                false if finish.is_some() => sch.compute_inline(&made)?,
                false => finish = Some(made),
            }
        }
    }
    if tile.source == Source::Direct {
        // Beyond the last column zeros are read, and nothing is copied.
        copies.drain(..).try_for_each(|copy| sch.compute_inline(&copy))?;
        unread(sch, func, apart)?;
    }
    // What is left over of the columns has a layout of its own: they are packed when they are apart.
    if let Some(axis) = tile.packed().filter(|_| tile.along.is_none()) {
        let copy = match copies.pop() {
            Some(copy) => copy,
            None => copied(sch, block, &operand.buffer)?,
        };
        unread(sch, func, apart)?;
        packed(sch, &copy, &tiles_outermost(c, tile, axis), operand.free)?;
    }
    if let Some(group) = &c.group {
        in_groups(sch, block, c, group, 1 - tile.vector, other)?;
    }
    match finish {
        Some(finish) => {
            sch.set_scope(block, 0usize, "local")?;
            Ok(finish)
        }
        None => sch.cache_write(block, 0usize, "local", &[]),
    }
}

/// Lets blocks that copy operands apart be read where they lie.
fn unread(sch: &mut Schedule, func: &Arc<str>, apart: &[Arc<str>]) -> Result<()> {
    apart.iter().try_for_each(|name| {
        let copy = sch.get_block(name, func)?;
        sch.compute_inline(&copy)
    })
}

/// Makes the rows of what is read in vectors as long as tiles are: each is two halves, which lie one
/// behind the other, of more cells in all than it had.
fn stretch(sch: &mut Schedule, func: &Arc<str>, c: &Contraction, tile: &Tile) -> Result<()> {
    let operand = &c.operands[tile.vector];
    let (whole, _) = tile.columns(c);
    let half = c.stretched(tile.vector, tile.vector_axis, (whole + 1) * tile.width);
    let all = blocks(sch, func)?;
    let made = all.iter().find(|b| accessed(&b.body).1.contains(&operand.buffer));
    let (Some(half), Some(made)) = (half, made) else {
        return Err(Error::internal("rows that cannot be made longer"));
    };
    let made = sch.get_block(&made.name, func)?;
    let last = operand.indices.len().saturating_sub(1);
    let map = Lambda::over_indices(last + 1, move |at| {
        let halves = [at[last].clone().floordiv(half), at[last].clone().floormod(half)];
        at[..last].iter().cloned().chain(halves).collect()
    });
    sch.transform_layout(&made, ("write", 0usize), &map, &Value::Float(0.0), false)
}

/// Lets the operand that is the same in all lanes lie with the elements of a group beside one another,
/// as `padded` where its groups had to be filled up.
fn in_groups(
    sch: &mut Schedule,
    block: &BlockRef,
    c: &Contraction,
    group: &Group,
    broadcast: usize,
    padded: Option<BlockRef>,
) -> Result<()> {
    let (operand, axis) = (&c.operands[broadcast], group.dims[broadcast]);
    let rank = operand.indices.len();
    let innermost = axis + 1 == rank;
    if group.lies_so(broadcast, operand) || innermost && padded.is_some() {
        return Ok(());
    }
    let copy = match padded {
        Some(copy) => copy,
        None => copied(sch, block, &operand.buffer)?,
    };
    let size = group.size;
    let map = Lambda::over_indices(rank, move |at| {
        (0..rank)
            .map(|d| if d == axis { at[d].clone().floordiv(size) } else { at[d].clone() })
            .chain([at[axis].clone().floormod(size)])
            .collect()
    });
    packed(sch, &copy, &map, operand.free)
}

/// The layout of a packed operand: batch axes, tiles of the vector axis, all else in its order, and
/// the lanes of a tile; where an instruction takes groups, each lane has the elements of one.
fn tiles_outermost(c: &Contraction, tile: &Tile, axis: usize) -> Lambda {
    let operand = &c.operands[tile.vector];
    let rank = operand.indices.len();
    let batch = tile.batch(c);
    let rest: Vec<usize> = (0..rank).filter(|d| *d != axis && !batch.contains(d)).collect();
    let width = tile.width;
    let group = c.group.as_ref().map(|g| (g.dims[tile.vector], g.size));
    Lambda::over_indices(rank, move |at| {
        let mut items: Vec<Expr> = batch.iter().map(|d| at[*d].clone()).collect();
        items.push(at[axis].clone().floordiv(width));
        items.extend(rest.iter().map(|d| match group {
            Some((dim, size)) if dim == *d => at[*d].clone().floordiv(size),
            _ => at[*d].clone(),
        }));
        items.push(at[axis].clone().floormod(width));
        items.extend(group.map(|(dim, size)| at[dim].clone().floormod(size)));
        items
    })
}
