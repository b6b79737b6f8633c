//! The parts that loops around a tile are taken apart into, and the blocks in them.

use std::sync::Arc;

use tilewright_analysis::stage::Extent;
use tilewright_ir::visit::accessed;
use tilewright_ir::{Attr, Block, Buffer, DType, Dim, Error, Expr, Module, Result, TensorFunc};
use tilewright_layout::marks::PRE;
use tilewright_schedule::compute::Position;
use tilewright_schedule::value::{Lambda, Value};
use tilewright_schedule::{BlockRef, BufferArg, LoopRef, Permissions, Schedule};
use tilewright_transform::cursor;

/// The longest innermost loop that LLVM unrolls to interleave vectors along the one around it.
pub(crate) const INTERLEAVED: usize = 8;

/// How many iterations a part of a loop has, as primitives take it: `None`, for all that are left over, where
/// `int32` does not hold the number.
pub(crate) fn number(n: i64) -> Option<Expr> {
    i32::try_from(n).ok().map(Expr::i32)
}

/// How many iterations a part of a loop has, open or not, as primitives take it; see [`number`].
pub(crate) fn amount(n: Dim) -> Option<Expr> {
    n.fits_int32().then(|| n.typed(DType::I32))
}

/// The least multiple of a positive number that is not below another one.
pub(crate) fn round_up(n: i64, by: i64) -> i64 {
    (n + by - 1) / by * by
}

/// A schedule of a module with one function.
pub(crate) fn alone(name: &Arc<str>, func: &TensorFunc) -> Schedule {
    let mut module = Module::new();
    module.insert(name.clone(), func.clone());
    Schedule::new(module, Permissions::default())
}

/// Whether a block reads a buffer of a name.
pub(crate) fn block_reads(sch: &Schedule, block: &BlockRef, buffer: &str) -> bool {
    let all = blocks(sch, &block.func).unwrap_or_default();
    let found = all.iter().find(|b| b.name == block.name);
    found.is_some_and(|b| accessed(&b.body).0.iter().any(|b| *b.name == *buffer))
}

/// The loop at a depth around a block.
pub(crate) fn loop_at(sch: &mut Schedule, block: &BlockRef, depth: usize) -> Result<LoopRef> {
    let found = sch.get_loops(block)?.into_iter().nth(depth);
    found.ok_or_else(|| Error::internal("a block has fewer loops around it"))
}

/// The innermost loop around a block.
pub(crate) fn innermost(sch: &mut Schedule, block: &BlockRef) -> Result<LoopRef> {
    sch.get_loops(block)?.pop().ok_or_else(|| Error::internal("a block without loops"))
}

/// Splits a loop into two, the inner one of so many iterations.
pub(crate) fn split(
    sch: &mut Schedule,
    l: &LoopRef,
    count: Option<Expr>,
    size: i64,
) -> Result<[LoopRef; 2]> {
    let both = sch.split(l, &[count, number(size)])?;
    both.try_into().map_err(|_| Error::internal("a loop that was split has other parts"))
}

/// Makes a loop over so many values one over the lanes of a vector, with one over vectors around it where
/// there are several. Returns that over lanes first.
pub(crate) fn vectors(
    sch: &mut Schedule,
    lane: &LoopRef,
    width: i64,
    lanes: i64,
) -> Result<(LoopRef, Option<LoopRef>)> {
    if width <= lanes {
        return Ok((lane.clone(), None));
    }
    let [vectors, lane] = split(sch, lane, None, lanes)?;
    Ok((lane, Some(vectors)))
}

/// Makes vectors of the innermost loop around a block, an open number of values in a row; of the last vector
/// lanes are left out. LLVM vectorises long rows by itself, and leaves the rest of a row, which may be all of a
/// short one, single.
pub(crate) fn row_of_vectors(sch: &mut Schedule, block: &BlockRef, lanes: i64) -> Result<()> {
    let row = innermost(sch, block)?;
    loop_of_vectors(sch, &row, None, lanes)
}

/// The same of rows that are long: whole vectors, which ask for no lane, are apart from the last one.
pub(crate) fn long_row_of_vectors(
    sch: &mut Schedule,
    block: &BlockRef,
    length: Dim,
    lanes: i64,
) -> Result<()> {
    let row = innermost(sch, block)?;
    let vectors = length.floordiv(lanes.dim());
    let rest = copies(sch, &block.func, &row, &[amount(vectors * lanes.dim()), None])?;
    loop_of_vectors(sch, &row, amount(vectors), lanes)?;
    rest.iter().try_for_each(|b| row_of_vectors(sch, b, lanes))
}

/// Makes vectors of the innermost loop around a block, of so many values: the widest, and narrower ones of what these
/// leave over.
pub(crate) fn row_in_pieces(
    sch: &mut Schedule,
    block: &BlockRef,
    length: Dim,
    lanes: i64,
) -> Result<()> {
    let row = innermost(sch, block)?;
    let all = pieces(length, lanes);
    let mut blocks = vec![block.clone()];
    if all.len() > 1 {
        blocks.extend(copies(sch, &block.func, &row, &sizes(&all))?);
    }
    for (piece, block) in all.iter().zip(&blocks).filter(|(piece, _)| piece.width > 1) {
        let row = innermost(sch, block)?;
        loop_of_vectors(sch, &row, amount(piece.count), piece.width)?;
    }
    Ok(())
}

/// Makes a loop over values one over vectors, of which there are so many, or as many as it takes.
fn loop_of_vectors(
    sch: &mut Schedule,
    row: &LoopRef,
    count: Option<Expr>,
    lanes: i64,
) -> Result<()> {
    let [vectors, lane] = split(sch, row, count, lanes)?;
    no_unroll(sch, &vectors)?;
    sch.vectorize(&lane)
}

/// Has LLVM leave a loop of a few iterations, whose number is open, as it is.
pub(crate) fn few_iterations(sch: &mut Schedule, l: &LoopRef) -> Result<()> {
    no_unroll(sch, l)?;
    sch.annotate(l, "pragma_vectorize", Attr::Int(0))
}

/// Has LLVM leave a loop as it is.
pub(crate) fn no_unroll(sch: &mut Schedule, l: &LoopRef) -> Result<()> {
    sch.annotate(l, "pragma_no_unroll", Attr::Int(1))
}

/// Lays out what a block writes.
pub(crate) fn lay_out(sch: &mut Schedule, block: &BlockRef, map: &Lambda) -> Result<()> {
    sch.transform_layout(block, ("write", 0usize), map, &Value::None, false)
}

/// Lets a block read a copy of a buffer. Returns the block that copies.
pub(crate) fn copied(sch: &mut Schedule, block: &BlockRef, buffer: &Buffer) -> Result<BlockRef> {
    sch.cache_read(block, BufferArg::Name(buffer.name.clone()), "global", &[])
}

/// Lays out a copy of an operand. What is `free` is the same in every run, and marked: the copy can be made
/// once.
pub(crate) fn packed(sch: &mut Schedule, copy: &BlockRef, map: &Lambda, free: bool) -> Result<()> {
    lay_out(sch, copy, map)?;
    if free {
        sch.annotate(copy, PRE, Attr::Str("layout".into()))
    } else {
        sch.transform_block_layout(copy, map)
    }
}

/// Computes a block in a loop at a depth around what reads it, and what pads there apart. Returns the blocks
/// that it became; `None` where that is refused.
pub(crate) fn computed_at(
    sch: &mut Schedule,
    block: &BlockRef,
    around: &LoopRef,
    depth: usize,
) -> Result<Option<Vec<BlockRef>>> {
    if sch.compute_at(block, around, false, Position::default()).is_err() {
        return Ok(None);
    }
    let mut all = vec![block.clone()];
    if let Some(first) = sch.get_loops(block)?.get(depth + 1) {
        all.extend(sch.decompose_padding(block, first).ok());
    }
    Ok(Some(all))
}

/// Blocks of a tile, in the order of their kinds.
#[derive(Clone)]
pub(crate) struct TileBlocks {
    pub(crate) blocks: Vec<BlockRef>,
    /// Whether it is what the last partition left over.
    pub(crate) ragged: bool,
    /// Whether it has the last tile of columns, which is smaller.
    pub(crate) last: bool,
    /// Whether its tiles have one row each, while others have several.
    pub(crate) single: bool,
}

impl TileBlocks {
    /// Blocks of which nothing has been taken apart.
    pub(crate) fn whole(blocks: Vec<BlockRef>) -> TileBlocks {
        TileBlocks { blocks, ragged: false, last: false, single: false }
    }
}

/// Takes a loop of a function apart into parts of so many iterations. Returns the blocks of those behind the
/// first one, in order: copies of its blocks.
pub(crate) fn copies(
    sch: &mut Schedule,
    func: &str,
    l: &LoopRef,
    sizes: &[Option<Expr>],
) -> Result<Vec<BlockRef>> {
    made_by(sch, func, |sch| sch.loop_partition(l, Some(sizes)).map(drop))
}

/// The blocks of a function that primitives make, in order.
pub(crate) fn made_by(
    sch: &mut Schedule,
    func: &str,
    primitives: impl FnOnce(&mut Schedule) -> Result<()>,
) -> Result<Vec<BlockRef>> {
    let before = blocks(sch, func)?;
    primitives(sch)?;
    let made = blocks(sch, func)?.into_iter();
    let made = made.filter(|b| before.iter().all(|x| x.name != b.name));
    made.map(|b| sch.get_block(&b.name, func)).collect()
}

/// Gives a tile of several vectors, of which so many lanes are left, a version for each number of vectors. Returns the
/// blocks of each, those of the fewest vectors first; `blocks` are all that are in the loop over such tiles. A number
/// that never comes has no version.
pub(crate) fn few_vectors(
    sch: &mut Schedule,
    tiles: &LoopRef,
    blocks: &[BlockRef],
    left: Dim,
    (vectors, lanes): (i64, i64),
) -> Result<Vec<Vec<BlockRef>>> {
    let cases: Vec<i64> = (1..vectors).collect();
    let count = left.ceildiv(lanes.dim()).typed(DType::I32);
    let copies =
        made_by(sch, &tiles.func, |sch| sch.loop_versions(tiles, &count, &cases).map(drop))?;
    let all = [blocks, &copies].concat();
    Ok(all.chunks(blocks.len().max(1)).map(<[_]>::to_vec).collect())
}

/// Takes so many vectors of a block with loops over vectors and their lanes inside apart from the last ones, of which
/// lanes may be left out. Returns the blocks of both.
pub(crate) fn whole_vectors(
    sch: &mut Schedule,
    block: &BlockRef,
    whole: usize,
) -> Result<Vec<BlockRef>> {
    let depth = sch.get_loops(block)?.len().saturating_sub(2);
    let sizes = [number(whole as i64), None];
    cut(sch, block, depth, &sizes[usize::from(whole == 0)..])
}

/// Takes the loop at a depth of each part apart, the first ones from the last one; what comes of it
/// are twice as many parts.
pub(crate) fn partition(
    sch: &mut Schedule,
    parts: &mut Vec<TileBlocks>,
    depth: usize,
    full: &[Option<Expr>],
) -> Result<()> {
    for k in 0..parts.len() {
        let Some(first) = parts[k].blocks.first().cloned() else { continue };
        let around = loop_at(sch, &first, depth)?;
        let mut copies = copies(sch, &first.func, &around, full)?;
        // What is computed for the tiles comes before them.
        let Some(others) = copies.len().checked_sub(parts[k].blocks.len()) else {
            return Err(Error::internal("a part of a loop has other blocks"));
        };
        let copies = copies.split_off(others);
        parts.push(TileBlocks { blocks: copies, ragged: true, ..parts[k] });
    }
    Ok(())
}

/// Takes the loop around a block at a depth apart into parts of so many iterations. Returns the blocks in
/// them, in order; the first one is that which is given.
pub(crate) fn cut(
    sch: &mut Schedule,
    block: &BlockRef,
    depth: usize,
    sizes: &[Option<Expr>],
) -> Result<Vec<BlockRef>> {
    let mut all = vec![block.clone()];
    if sizes.len() < 2 {
        return Ok(all);
    }
    let around = loop_at(sch, block, depth)?;
    all.extend(copies(sch, &block.func, &around, sizes)?);
    if all.len() == sizes.len() {
        Ok(all)
    } else {
        Err(Error::internal(format!(
            "{} parts of a loop around `{}` have other blocks",
            sizes.len(),
            block.name
        )))
    }
}

/// Takes the nest around a block apart at the loop of a depth, into a nest for each part of so many
/// iterations; `outer` loops around stay one. Returns the blocks in them, in order.
pub(crate) fn split_nest(
    sch: &mut Schedule,
    block: &BlockRef,
    (outer, depth): (usize, usize),
    sizes: &[Option<Expr>],
) -> Result<Vec<BlockRef>> {
    if sizes.len() < 2 {
        return Ok(vec![block.clone()]);
    }
    let all = cut(sch, block, depth, sizes)?;
    if outer == depth {
        return Ok(all);
    }
    for l in sch.get_loops(block)?[outer..depth].iter().rev() {
        // The second one has the variable of the loop.
        (1..sizes.len()).try_for_each(|_| sch.fission(l, 1).map(drop))?;
    }
    Ok(all)
}

/// The fewest lanes of a vector of what whole ones leave over.
pub(crate) const FEWEST: i64 = 4;

/// A number of lanes and its halves down to the fewest, and one.
pub(crate) fn halves(lanes: i64) -> impl Iterator<Item = i64> {
    let halves = std::iter::successors(Some(lanes), |n| Some(n / 2));
    halves.take_while(|n| *n >= FEWEST).chain([1])
}

/// A part of an axis: how many tiles of which width.
pub(crate) struct Piece {
    pub(crate) count: Dim,
    pub(crate) width: i64,
}

impl Piece {
    /// How many tiles of another width, which divides that of these, it has.
    pub(crate) fn tiles(&self, width: i64) -> Dim {
        self.count * (self.width / width).dim()
    }
}

/// How many values each piece has.
pub(crate) fn sizes(all: &[Piece]) -> Vec<Option<Expr>> {
    all.iter().map(|p| amount(p.tiles(1))).collect()
}

/// An axis in tiles of a width, half of it and so on; what is left is single. Each width of an open axis, of
/// which any number may be left, is a nest: there are fewer.
pub(crate) fn pieces(extent: Dim, width: i64) -> Vec<Piece> {
    let (mut left, mut all) = (extent, Vec::new());
    let is_open = extent.known().is_none();
    let widths = halves(width)
        .filter(|n| !is_open || [1, width].contains(n) || *n * 2 < width && *n < 2 * FEWEST);
    for width in widths {
        let count = left.floordiv(width.dim());
        if count != 0 {
            all.push(Piece { count, width });
            left = left.modulo(width.dim());
        }
    }
    all
}

/// Some of the indices, with their extents, as one, the first the slowest.
pub(crate) fn as_one(at: &[Expr], places: &[(usize, Dim)]) -> Expr {
    let Some(((first, _), rest)) = places.split_first() else { return Expr::i32(0) };
    rest.iter().fold(at[*first].clone(), |sum, (d, extent)| {
        sum * extent.typed(DType::I32) + at[*d].clone()
    })
}

/// The map that makes a variable of each group of indices.
pub(crate) fn in_groups(rank: usize, all: Vec<Vec<(usize, Dim)>>) -> Lambda {
    Lambda::over_indices(rank, move |at| all.iter().map(|p| as_one(at, p)).collect())
}

/// The name of the buffer that a block writes.
pub(crate) fn written(sch: &Schedule, block: &BlockRef) -> Result<Arc<str>> {
    let (_, writes) = accessed(&self::block(sch, block)?.body);
    let name = writes.first().map(|b| b.name.clone());
    name.ok_or_else(|| Error::internal("a block of sums writes nothing"))
}

/// The block that is meant.
pub(crate) fn block(sch: &Schedule, block: &BlockRef) -> Result<Arc<Block>> {
    let found = blocks(sch, &block.func)?.into_iter().find(|b| b.name == block.name);
    found.ok_or_else(|| Error::internal("a block is gone"))
}

/// The blocks of a function with iteration variables, in the order of the text.
pub(crate) fn blocks(sch: &Schedule, func: &str) -> Result<Vec<Arc<Block>>> {
    let mut all = cursor::blocks(sch.func(func)?);
    all.retain(|b| !b.iters.is_empty());
    Ok(all)
}
