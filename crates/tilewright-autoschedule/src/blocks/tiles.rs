//! How a product with weights in blocks is taken apart for a machine.

use tilewright_ir::{DType, Dim, Expr};
use tilewright_target::{Target, TensorInstruction};

use super::form::{BlockedProduct, Kind};
use crate::axes::balanced;
use crate::parts::round_up;
use crate::tile::step;

/// The most elements of a block that are multiplied by one copy of the code.
const CHUNK: i64 = 32;

/// The same, where there are few registers for what is taken apart.
const CHUNK_OF_FEW: i64 = 8;

/// By how many columns in a hundred whole tiles may be more than there are, for tiles of several vectors.
const WASTE: i64 = 5;

/// Rows of a tile from which on what it leaves over of an open number has tiles of its own.
const MANY: i64 = 8;

/// How many panels of weights the second cache could hold.
const PANELS: i64 = 16;

/// Instructions that take a vector of weights apart.
const TAKING_APART: f64 = 2.5;

/// Instructions that add a vector of integers' sums of a block to the sums of all.
const SCALING: f64 = 4.0;

/// The most tiles of an open number of rows that share a panel.
pub(super) const SHARING: i64 = 8;

/// How the axes of a product are taken apart.
pub(super) struct Tiles {
    /// The instruction that multiplies, and the type that it takes weights as; none for numbers.
    pub(super) dot: Option<(&'static TensorInstruction, DType)>,
    /// Neighbours that an instruction multiplies.
    pub(super) group: i64,
    pub(super) lanes: i64,
    /// Vectors of columns, and rows, of a tile.
    pub(super) vectors: i64,
    pub(super) rows: i64,
    /// Tiles of columns.
    pub(super) outer: i64,
    /// Elements of a block in a chunk, and chunks in a block.
    pub(super) chunk: i64,
    pub(super) chunks: i64,
    pub(super) per_byte: i64,
    /// Blocks of a panel: weights that are taken apart once for several tiles of rows.
    pub(super) panel: i64,
}

/// Rows of the operand that tiles share, from a first one: tiles of so many.
pub(super) struct Part {
    pub(super) first: Dim,
    pub(super) tiles: Dim,
    pub(super) rows: i64,
    /// Whether its tiles share panels of weights.
    pub(super) panels: bool,
}

impl Tiles {
    pub(super) fn choose(form: &BlockedProduct, target: &Target) -> Option<Tiles> {
        let lanes = target.vectors.lanes(DType::F32.bytes());
        let wide = target.vectors.registers >= 32;
        let dot = match &form.kind {
            Kind::Integers { .. } => Some(Tiles::dot(form.bits, lanes, target)?),
            Kind::Numbers { .. } => None,
        };
        let group = dot.map_or(1, |(i, _)| i.b.group);
        let per_byte = 8 / i64::from(form.bits);
        let unit = group * per_byte;
        let block = form.inner.extent;
        let most = if wide || dot.is_none() { CHUNK } else { CHUNK_OF_FEW };
        let chunk = (1..=most.max(unit).min(block) / unit).map(|n| n * unit);
        let chunk = chunk.rev().find(|n| block % n == 0)?;
        // Sums of a block and of all are in registers at once, where they are integers.
        // A third of the rows of a tile divides them where their number is open.
        let rows = match (&form.kind, wide) {
            (Kind::Integers { .. }, _) => 4,
            (Kind::Numbers { .. }, true) if form.row.1.number().is_none() => 9,
            (Kind::Numbers { .. }, true) => 10,
            (Kind::Numbers { .. }, false) => 6,
        };
        let columns = form.column.extent;
        let several = wide || dot.is_none();
        let fits = round_up(columns, 2 * lanes) * 100 <= columns * (100 + WASTE);
        let vectors = if several && fits { 2 } else { 1 };
        let outer = round_up(columns, vectors * lanes) / (vectors * lanes);
        // A panel stays in the second cache beside the rows that are multiplied by it.
        let of_block = block * vectors * lanes * DType::F32.bytes() as i64;
        let most = target.caches.l2 as i64 / PANELS / of_block;
        let blocks = form.block.extent;
        let panel = (1..=most.clamp(1, blocks)).rev().find(|n| blocks % n == 0)?;
        Some(Tiles {
            dot,
            group,
            lanes,
            vectors,
            rows,
            outer,
            chunk,
            chunks: block / chunk,
            per_byte,
            panel,
        })
    }

    /// Estimated cycles of a product in these tiles, weights being in a cache.
    pub(super) fn cycles(&self, form: &BlockedProduct, target: &Target) -> f64 {
        let (costs, blocks) = (&target.costs, form.block.extent as f64);
        let vectors = self.vectors as f64;
        let steps = (form.inner.extent / self.group) as f64;
        let parts = self.parts(form.row.1);
        let of_tiles = parts.iter().map(|part| {
            let (tiles, rows) = (part.tiles.estimate() as f64, part.rows as f64);
            let work = rows * vectors * steps;
            // A byte is loaded once, and its bits are moved and masked.
            let sharing = if part.panels { tiles.max(1.0) } else { 1.0 };
            let apart = vectors * steps / sharing;
            let loads = rows * steps + apart / self.per_byte as f64;
            // Sums of integers become numbers, which are scaled and added up.
            let of_block = if self.dot.is_some() { SCALING * rows * vectors } else { 0.0 };
            let instructions = work + TAKING_APART * apart + of_block;
            let block = step(target, work + of_block, loads, instructions, 0.0);
            let store = rows * vectors * costs.store + costs.tile;
            tiles * self.outer as f64 * (blocks * block + store)
        });
        let copy = if form.lies_along_blocks() {
            0.0
        } else {
            form.row.1.estimate() as f64 * blocks * form.inner.extent as f64 * costs.convert_cell
        };
        of_tiles.sum::<f64>() + copy
    }

    /// The dot product of signed bytes with weights: as bytes without sign, as signed ones where they are
    /// small, or both as `int16`.
    fn dot(bits: u32, lanes: i64, target: &Target) -> Option<(&'static TensorInstruction, DType)> {
        let small = (bits < 8).then_some((DType::I8, DType::I8));
        let types = [(DType::I8, DType::U8)].into_iter().chain(small);
        types.chain([(DType::I16, DType::I16)]).find_map(|types| {
            let mut all = target.tensor_instructions();
            let dot = all.find(|i| {
                i.is_dot()
                    && i.c.columns == lanes
                    && i.implementation().is_some()
                    && (i.a.dtype, i.b.dtype) == types
            });
            dot.map(|dot| (dot, types.1))
        })
    }

    /// The column at a place.
    pub(super) fn column(&self, [tile, vector, lane]: [&Expr; 3]) -> Expr {
        (tile.clone() * self.vectors + vector.clone()) * self.lanes + lane.clone()
    }

    /// The place of a column.
    pub(super) fn place(&self, column: &Expr) -> [Expr; 3] {
        let width = self.vectors * self.lanes;
        let column = column.clone();
        [
            column.clone().floordiv(width),
            column.clone().floormod(width).floordiv(self.lanes),
            column.floormod(self.lanes),
        ]
    }

    /// The parts that so many rows are taken apart into.
    pub(super) fn parts(&self, rows: Dim) -> Vec<Part> {
        let panels = self.dot.is_none();
        let part = |first, tiles, rows: i64| Part { first, tiles, rows, panels: false };
        let Some(known) = rows.number() else {
            // Tiles of many rows leave over so many that weights would be taken apart often for single ones.
            // Small tiles divide large ones: what they leave over begins at a multiple of theirs.
            let most = if self.rows > MANY { self.rows / 3 } else { 1 };
            let few = (1..=most).rev().find(|n| self.rows % n == 0).unwrap_or(1);
            let [many, few_at_once] = [self.rows, few].map(count_of);
            let from = |width: usize| rows.floordiv(width) * Dim::from(width);
            let whole = part(Dim::from(0), rows.floordiv(many), self.rows);
            let mut all = vec![Part { panels, ..whole }];
            let left = rows.modulo(many).floordiv(few_at_once);
            all.extend((few > 1).then(|| part(from(many), left, few)));
            let last = if few > 1 { few_at_once } else { many };
            all.push(part(from(last), rows.modulo(last), 1));
            // What tiles of the size divide leaves over nothing.
            all.retain(|part| part.tiles != 0);
            return all;
        };
        // Tiles of numbers are of about as many rows each.
        let width = if panels { balanced(known, self.rows).max(1) } else { self.rows };
        let (tiles, left) = (known / width, known % width);
        let first = Dim::from(count_of(tiles * width));
        let whole = part(Dim::from(0), Dim::from(count_of(tiles)), width);
        let rest = part(first, Dim::from(1), left);
        let mut all = Vec::new();
        all.extend((tiles > 0).then_some(Part { panels: panels && tiles > 1, ..whole }));
        all.extend((left > 0).then_some(rest));
        all
    }
}

/// A number that is not negative as a count.
pub(super) fn count_of(n: i64) -> usize {
    usize::try_from(n).unwrap_or(1)
}

impl Part {
    /// The row of a place in a tile.
    pub(super) fn row(&self) -> impl Fn(&Expr, &Expr) -> Expr + use<> {
        let (first, rows) = (self.first, self.rows);
        move |tile, row| {
            let at = tile.clone() * rows + row.clone();
            if first == 0 { at } else { first.typed(DType::I32) + at }
        }
    }
}

/// A number that is not negative as a size.
pub(super) fn size(n: i64) -> Dim {
    Dim::from(usize::try_from(n).unwrap_or(0))
}
