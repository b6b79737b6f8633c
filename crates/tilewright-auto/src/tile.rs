//! The choice of a register tile, by a written cost model.
//!
//! A tile is `rows` values along one axis times `width` values along another, the *vector* axis,
//! which only the *vector operand* moves along; the other operand is *broadcast*. Its sums stay in
//! registers while the reduction runs:
//!
//! ```text
//! for each step of the reduction:
//!     load the vectors of one operand                 width / lanes registers
//!     for each row:
//!         broadcast one value of the other operand    one register
//!         sums[row] += value * vectors                rows * width / lanes registers
//! ```
//!
//! The price of a tile of `r` rows and `n` vectors, in cycles, with `k` steps:
//!
//! ```text
//! step  = max(r * n * FMA, (r + n) * LOAD, LATENCY)
//! price = k * step + r * n * STORE (contiguous) or r * width * STORE (not) + TILE
//! ```
//!
//! and the price of a contraction is that of all its tiles, ragged ones included, plus `MOVE` for
//! each cell that is packed at run time and `LINE` for each vector that is read from far away. So
//! padded work, the number of tiles and bytes streamed all count, and a ragged size takes the tile
//! that wastes least: 65 columns are 3 tiles of 24 rather than 5 of 16.

use tilewright_ir::IterKind;
use tilewright_target::Target;

use crate::contraction::Contraction;

/// Cycles of a fused multiply-add of vectors: two start in each cycle.
const FMA: f64 = 0.5;
/// Cycles of a load: two in each cycle.
const LOAD: f64 = 0.5;
/// Cycles from a fused multiply-add to the next one of the same sum.
const LATENCY: f64 = 4.0;
/// Cycles of a store.
const STORE: f64 = 1.0;
/// Cycles that a tile costs beside its arithmetic.
const TILE: f64 = 20.0;
/// Cycles for a cell that is packed at run time.
const MOVE: f64 = 1.0;
/// Cycles of a vector whose line no neighbour shares.
const LINE: f64 = 2.0;
/// The largest part of the price that packing in a run may be: where an operand is hardly used
/// again, copying it costs more than reading it as it lies.
const PACKING: f64 = 0.25;
/// The fewest steps of a reduction, and of products in all, for which tiles pay.
const WORK: (i64, i64) = (4, 1 << 12);

/// How the vectors of the vector operand are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From where they lie, one beside the other.
    Direct,
    /// From a copy in the order of the tiles; the axis of the buffer that is split is given.
    Packed {
        /// The axis.
        axis: usize,
    },
}

/// A register tile.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    /// The axis of the rows, where there is one.
    pub row_axis: Option<usize>,
    /// How many rows.
    pub rows: i64,
    /// The vector axis.
    pub vector_axis: usize,
    /// How many values along it.
    pub width: i64,
    /// The operand that moves along the vector axis.
    pub vector: usize,
    /// How it is read.
    pub source: Source,
    /// The estimated cycles of the whole contraction.
    pub price: f64,
}

/// The best tile for a contraction; `None` where no axis can be vectorised, or tiles do not pay.
pub fn choose(c: &Contraction, target: &Target) -> Option<Tile> {
    let all: Vec<usize> = (0..c.axes.len()).collect();
    let steps = c.count(&c.axes_where(IterKind::Reduce, |_| true));
    if steps < WORK.0 || c.count(&all) < WORK.1 {
        return None;
    }
    let mut best: Option<Tile> = None;
    for vector in [0, 1] {
        let broadcast = 1 - vector;
        let moves = |operand: usize, k: usize| c.operands[operand].steps[k] != 0;
        let columns = c.axes_where(IterKind::Spatial, |k| moves(vector, k) && !moves(broadcast, k));
        let rows = c.axes_where(IterKind::Spatial, |k| moves(broadcast, k) && !moves(vector, k));
        let rows: Vec<Option<usize>> = match rows.is_empty() {
            true => vec![None],
            false => rows.into_iter().map(Some).collect(),
        };
        for v in columns {
            for source in sources(c, vector, v) {
                for &r in &rows {
                    for tile in tiles(c, target, vector, v, r, source) {
                        if best.is_none_or(|b| tile.price < b.price) {
                            best = Some(tile);
                        }
                    }
                }
            }
        }
    }
    best
}

/// The ways in which an operand can give vectors along an axis.
fn sources(c: &Contraction, operand: usize, v: usize) -> Vec<Source> {
    let o = &c.operands[operand];
    let mut all = Vec::new();
    if o.steps[v] == 1 {
        all.push(Source::Direct);
    }
    let alone = o.indices.iter().position(|i| i.as_var() == Some(&c.axes[v].var));
    let shape = o.buffer.const_shape().unwrap_or_default();
    // A window that slides reads cells of a copy at places that depend on two axes.
    let whole = alone.filter(|d| shape[*d] == c.axes[v].extent);
    all.extend(whole.map(|axis| Source::Packed { axis }));
    all
}

/// Tiles of all sizes that the registers hold.
fn tiles(
    c: &Contraction,
    target: &Target,
    vector: usize,
    v: usize,
    r: Option<usize>,
    source: Source,
) -> Vec<Tile> {
    let lanes = target.vectors.lanes(c.bytes);
    let registers = target.vectors.registers as i64;
    let n = c.axes[v].extent;
    let m = r.map_or(1, |r| c.axes[r].extent);
    let mut all = Vec::new();
    // Where nothing is used again, what lies as it does is better read once, in its own order.
    if n < lanes || (m == 1 && source == Source::Direct) {
        return all;
    }
    for vectors in 1..=8 {
        let width = vectors * lanes;
        // Narrower tiles have the same price, and pad less.
        if vectors > 1 && width >= n + lanes {
            break;
        }
        let divides = n % width == 0;
        if !divides && source == Source::Direct {
            continue;
        }
        let most = ((registers - 1 - vectors) / vectors).min(m);
        if most < 1 {
            break;
        }
        for rows in 1..=most {
            let mut tile =
                Tile { row_axis: r, rows, vector_axis: v, width, vector, source, price: 0.0 };
            let (work, pack) = price(c, target, &tile);
            tile.price = work + pack;
            if pack <= tile.price * PACKING {
                all.push(tile);
            }
        }
    }
    all
}

/// The estimated cycles of a contraction in these tiles, and of what is packed in a run.
fn price(c: &Contraction, target: &Target, t: &Tile) -> (f64, f64) {
    let lanes = target.vectors.lanes(c.bytes);
    let vectors = (t.width / lanes) as f64;
    let reduce = c.axes_where(IterKind::Reduce, |_| true);
    let steps = c.count(&reduce) as f64;
    let operand = &c.operands[t.vector];
    let tile = |rows: i64| {
        if rows == 0 {
            return 0.0;
        }
        let rows = rows as f64;
        let far = match t.source {
            Source::Packed { .. } => 0.0,
            // Each step of the reduction reads another line.
            Source::Direct => {
                let near = reduce.iter().any(|k| {
                    let step = operand.steps[*k].abs();
                    step != 0 && step <= 2 * t.width
                });
                if near { 0.0 } else { vectors * LINE }
            }
        };
        let step = (rows * vectors * FMA).max((rows + vectors) * LOAD).max(LATENCY) + far;
        let store = match c.out[t.vector_axis] {
            Some(1) => rows * vectors * STORE,
            _ => rows * t.width as f64 * STORE,
        };
        steps * step + store + TILE
    };
    let spatial = c.axes_where(IterKind::Spatial, |k| k != t.vector_axis && Some(k) != t.row_axis);
    let columns = (c.axes[t.vector_axis].extent as u64).div_ceil(t.width as u64) as f64;
    let m = t.row_axis.map_or(1, |r| c.axes[r].extent);
    let (full, rest) = (m / t.rows, m % t.rows);
    let strip = full as f64 * tile(t.rows) + tile(rest);
    let pack = match t.source {
        Source::Packed { .. } if !operand.free => c.size(t.vector) as f64 / c.bytes as f64 * MOVE,
        _ => 0.0,
    };
    (c.count(&spatial) as f64 * columns * strip, pack)
}
