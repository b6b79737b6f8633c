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
//! Where each channel has a window of its own (a convolution in groups of one channel), both operands
//! move along the vector axis: then the other operand is read in vectors, too, `n` of them for each row.
//! Where rows move the vector operand alone, its vectors are read for each row, and the broadcast
//! value serves all of them.
//!
//! The price of a tile of `r` rows and `n` vectors, in cycles, with `k` steps, of `l` loads each (`r + n`
//! of a product):
//!
//! ```text
//! step  = max(r * n * FMA, l * LOAD, LATENCY, (r * n + l + COUNT / u) * ISSUE) + lines * LINE
//! price = k * step + r * n * STORE (contiguous) or r * width * SCATTER (not) + TILE
//! ```
//!
//! where `u` steps are unrolled, and `lines` counts the cache lines that a step of the reduction reads
//! and the one before did not: rows that lie beside one another share theirs, and so do steps. The
//! price of a contraction is that of all its tiles, ragged ones included, plus `MOVE` for
//! each cell that is packed at run time. Of an open number of rows, what is left over runs in tiles of
//! fewer rows ([`Tile::remainders`]). So
//! padded work, the number of tiles and bytes streamed all count, and a ragged size takes the tile
//! that wastes least: 65 columns are 3 tiles of 24 rather than 5 of 16. What is left over of the
//! columns takes the vectors that it needs: 13 vectors are 4 tiles of 3 and one of 1.

use tilewright_ir::IterKind;
use tilewright_target::Target;

use crate::contraction::Contraction;

/// How many steps of a reduction run between two of its branches, where that many do.
const UNROLL: i64 = 4;
/// Cycles of a fused multiply-add of vectors: two start in each cycle.
const FMA: f64 = 0.5;
/// Cycles of a load: two in each cycle.
const LOAD: f64 = 0.5;
/// Cycles from a fused multiply-add to the next one of the same sum.
const LATENCY: f64 = 4.0;
/// Cycles of a store.
const STORE: f64 = 1.0;
/// Cycles of a store of one cell, with the load of it from the tile.
const SCATTER: f64 = 2.0;
/// Cycles to issue an instruction, where another thread takes every second turn of the core: its
/// caches and registers are shared by two in most machines that are rented (measured: tiles of 6 x 16
/// and 4 x 24 in both states of such a core; alone it issues twice as fast, and other terms decide).
const ISSUE: f64 = 0.34;
/// Instructions that count a step, or several that are unrolled.
const COUNT: f64 = 3.0;
/// Bytes of a cache line.
const LINE_BYTES: f64 = 64.0;
/// Cycles that a tile costs beside its arithmetic.
const TILE: f64 = 20.0;
/// Cycles for a cell that is packed at run time.
const MOVE: f64 = 1.0;
/// Cycles of a cache line that no step before has read.
const LINE: f64 = 1.0;
/// Cycles of a line of a packed operand whose panel is in the second cache, and of one whose panel is
/// in none (measured: products with panels of 8 kB to 720 kB).
const STREAM: [f64; 2] = [0.15, 0.6];
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
    /// How many vectors these are.
    pub vectors: i64,
    /// The operand that moves along the vector axis.
    pub vector: usize,
    /// How it is read.
    pub source: Source,
    /// The estimated cycles of the whole contraction.
    pub price: f64,
}

impl Tile {
    /// The rows of the tiles in which an open number of rows that is left over runs, fewer than a
    /// tile has: powers of two, each at most once, the largest first.
    pub fn remainders(&self) -> Vec<i64> {
        let powers = std::iter::successors(Some(1i64), |n| n.checked_mul(2));
        let mut all: Vec<i64> = powers.take_while(|n| *n < self.rows).collect();
        all.reverse();
        all
    }

    /// How many whole tiles there are along the vector axis, and how many values are left over. Where
    /// there are fewer values than a tile has, they are one that is left over.
    pub fn columns(&self, c: &Contraction) -> (i64, i64) {
        let n = c.axes[self.vector_axis].extent;
        (n / self.width, n % self.width)
    }

    /// Whether vectors are read where they lie beyond the last value of the axis, in rows that are made
    /// longer for it ([`Contraction::stretched`]). What comes of that is not stored.
    pub fn beyond(&self, c: &Contraction) -> bool {
        self.source == Source::Direct && !self.both(c) && self.columns(c).1 > 0
    }

    /// Whether both operands are read in vectors.
    pub fn both(&self, c: &Contraction) -> bool {
        c.operands[1 - self.vector].steps[self.vector_axis] != 0
    }

    /// How many steps of the reduction run between two branches of its innermost loop.
    ///
    /// Several take fewer instructions each, which counts where a core shares its front end with
    /// another thread. A loop of few steps stays one: LLVM would take apart all around it, too. So
    /// does one whose steps read the same cells for different rows or vectors, as the window of a
    /// convolution does: LLVM would keep each of these for the steps that follow, and the sums no
    /// longer in registers (measured: windows of 4 to 27 cells, where four steps between branches
    /// take up to twice as long as one).
    pub fn unrolled(&self, c: &Contraction) -> i64 {
        let Some(&innermost) = c.reduction(self.vector).last() else { return 1 };
        if c.axes[innermost].extent <= 2 * UNROLL {
            return 1;
        }
        if self.both(c) {
            return 1;
        }
        // Along each operand: by how much a step moves, and how far apart what it reads lies.
        let [vector, broadcast] = [self.vector, 1 - self.vector].map(|o| &c.operands[o].steps);
        let apart = vector[self.vector_axis] * (self.width / self.vectors);
        let across = (vector[innermost], apart, self.vectors);
        let down = self.row_axis.map(|r| (broadcast[innermost], broadcast[r], self.rows));
        let shared = |(step, apart, count): (i64, i64, i64)| {
            (1..UNROLL).map(|n| n * step.abs()).any(|moved| {
                apart != 0
                    && moved % apart.abs() == 0
                    && (1..count).contains(&(moved / apart.abs()))
            })
        };
        // What is packed lies in the order in which it is read.
        let across = Some(across).filter(|_| self.source == Source::Direct);
        match across.into_iter().chain(down).any(shared) {
            true => 1,
            false => UNROLL,
        }
    }
}

/// The best tile for a contraction, with its axes merged where that is better; `None` where no axis
/// can be vectorised, or tiles do not pay.
pub fn choose(c: Contraction, target: &Target) -> Option<(Contraction, Tile)> {
    let tiled = |c: Contraction| {
        let c = c.grouped(target)?;
        best(&c, target).map(|tile| (c, tile))
    };
    let merged = c.merged().and_then(tiled);
    let apart = tiled(c);
    match (merged, apart) {
        (Some(m), Some(a)) => Some(if m.1.price < a.1.price { m } else { a }),
        (m, a) => m.or(a),
    }
}

/// The best tile for the axes of a contraction as they are.
fn best(c: &Contraction, target: &Target) -> Option<Tile> {
    let all: Vec<usize> = (0..c.axes.len()).collect();
    let steps = c.count(&c.axes_where(IterKind::Reduce, |_| true));
    if steps < WORK.0 || c.count(&all) < WORK.1 {
        return None;
    }
    let mut best: Option<Tile> = None;
    for vector in [0, 1] {
        let broadcast = 1 - vector;
        if c.group.as_ref().is_some_and(|g| g.instructions[vector].is_none()) {
            continue;
        }
        let moves = |operand: usize, k: usize| c.operands[operand].steps[k] != 0;
        // Tiles have constant sizes: along an open axis only their number can be open.
        let columns = c.axes_where(IterKind::Spatial, |k| {
            moves(vector, k)
                && matches!((c.operands[broadcast].steps[k], &c.group), (0, _) | (1, None))
                && !c.axes[k].is_open()
        });
        let alone = |operand: usize| {
            c.axes_where(IterKind::Spatial, |k| moves(operand, k) && !moves(1 - operand, k))
        };
        let (rows, others) = (alone(broadcast), alone(vector));
        for v in columns {
            // Else rows of a window that slides over the vectors read what other rows read.
            let slide = |r: &usize| *r != v && !moves(broadcast, v) && slides(c, vector, *r);
            let rows: Vec<usize> = match rows.is_empty() {
                true => others.iter().copied().filter(slide).collect(),
                false => rows.clone(),
            };
            let rows: Vec<Option<usize>> = match rows.is_empty() {
                true => vec![None],
                false => rows.into_iter().map(Some).collect(),
            };
            for source in sources(c, vector, v) {
                for &r in &rows {
                    for tile in tiles(c, target, vector, v, r, source) {
                        // Of two equal ones that whose rows lie closer together.
                        let key = |t: &Tile| (t.price, row_step(c, t));
                        if best.is_none_or(|b| key(&tile) < key(&b)) {
                            best = Some(tile);
                        }
                    }
                }
            }
        }
    }
    best
}

/// Whether an operand is read at the same cells for different places along an axis, in other steps of
/// the reduction.
fn slides(c: &Contraction, operand: usize, r: usize) -> bool {
    let steps = &c.operands[operand].steps;
    c.axes_where(IterKind::Reduce, |k| steps[k] != 0).into_iter().any(|k| {
        steps[r] % steps[k] == 0 && (1..c.axes[k].extent).contains(&(steps[r] / steps[k]).abs())
    })
}

/// By how many cells the broadcast operand moves from row to row.
fn row_step(c: &Contraction, t: &Tile) -> i64 {
    t.row_axis.map_or(0, |r| c.operands[1 - t.vector].steps[r].abs())
}

/// The ways in which an operand can give vectors along an axis.
fn sources(c: &Contraction, operand: usize, v: usize) -> Vec<Source> {
    let o = &c.operands[operand];
    let mut all = Vec::new();
    if o.steps[v] == 1 && c.group.is_none() {
        all.push(Source::Direct);
    }
    // What is packed is used again: nothing is where both operands move.
    let again = c.operands[1 - operand].steps[v] == 0;
    let packed = c.whole(operand, v).filter(|_| again);
    all.extend(packed.map(|axis| Source::Packed { axis }));
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
    // What LLVM loads early where it has many: unrolled steps of 9 x 3 vectors spill one of 32
    // otherwise, and those of 4 x 3 none of 16.
    let ahead = (registers - 16).max(0) / 8;
    let n = c.axes[v].extent;
    let m = r.map_or(1, |r| c.axes[r].extent);
    let both = c.operands[1 - vector].steps[v] != 0;
    let padded = both && [0, 1].iter().all(|o| c.whole(*o, v).is_some());
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
        // Cells beyond the last one are read as zeros, where the axis alone says where they lie.
        let divides = n % width == 0;
        let to = (n as u64).next_multiple_of(width as u64) as i64;
        // A whole tile comes before the one that is read beyond the last value.
        let fits = n > width && c.out[v] == Some(1) && !both;
        let beyond = || fits && c.stretched(vector, v, to).is_some();
        if !divides && source == Source::Direct && !padded && !beyond() {
            continue;
        }
        let most = ((registers - ahead - 1 - vectors) / vectors).min(m);
        if most < 1 {
            break;
        }
        for rows in 1..=most {
            let mut tile = Tile {
                row_axis: r,
                rows,
                vector_axis: v,
                width,
                vectors,
                vector,
                source,
                price: 0.0,
            };
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
    let reduce = c.axes_where(IterKind::Reduce, |_| true);
    let steps = c.count(&reduce) as f64;
    let operand = &c.operands[t.vector];
    let panel = (steps * t.width as f64) as usize * c.bytes;
    let line = match t.source {
        Source::Packed { .. } if panel > target.caches.l2 / 2 => STREAM[1],
        Source::Packed { .. } if panel > target.caches.l1 => STREAM[0],
        _ => 0.0,
    };
    let packed = line * (lanes as usize * c.bytes) as f64 / LINE_BYTES;
    let count = COUNT / t.unrolled(c) as f64;
    // A tile of so many rows and vectors.
    let tile = |rows: i64, vectors: i64| {
        if rows == 0 {
            return 0.0;
        }
        let (width, vectors) = (vectors * lanes, vectors as f64);
        let window = windows(c, t, &reduce, rows, width);
        let rows = rows as f64;
        let lines = match window {
            Some(lines) => lines,
            None => {
                new_lines(c, 1 - t.vector, &reduce, t.row_axis, rows)
                    + match t.source {
                        Source::Packed { .. } => 0.0,
                        Source::Direct => {
                            let all = width as f64 * c.bytes as f64 / LINE_BYTES;
                            all * fresh(c, t.vector, &reduce, width)
                        }
                    }
            }
        };
        let moves = |operand: usize, axis: Option<usize>, count: f64| {
            if axis.is_some_and(|k| c.operands[operand].steps[k] != 0) { count } else { 1.0 }
        };
        let read = |operand: usize| {
            moves(operand, t.row_axis, rows) * moves(operand, Some(t.vector_axis), vectors)
        };
        let (work, loads) = (rows * vectors, read(0) + read(1));
        // A vector that is used once is an operand of the arithmetic.
        let instructions = work + count + if t.both(c) { vectors } else { loads };
        let issue = instructions * ISSUE;
        let step = (work * FMA).max(loads * LOAD).max(LATENCY).max(issue);
        let step = step + lines * LINE + packed * vectors;
        let store = match c.out[t.vector_axis] {
            Some(1) => rows * vectors * STORE,
            _ => rows * width as f64 * SCATTER,
        };
        steps * step + store + TILE
    };
    let spatial = c.axes_where(IterKind::Spatial, |k| k != t.vector_axis && Some(k) != t.row_axis);
    let m = t.row_axis.map_or(1, |r| c.axes[r].extent);
    let strip = |vectors: i64| match t.row_axis.is_some_and(|r| c.axes[r].is_open()) {
        false => (m / t.rows) as f64 * tile(t.rows, vectors) + tile(m % t.rows, vectors),
        // Any number of rows may be left over: on average, each tile of them runs every second time.
        true => {
            let left = t.remainders();
            let (rows, half) = (left.iter().sum::<i64>() as f64 / 2.0, 0.5);
            let full = (m as f64 - rows).max(0.0) / t.rows as f64;
            let left = left.into_iter().map(|rows| tile(rows, vectors)).sum::<f64>();
            full * tile(t.rows, vectors) + half * left
        }
    };
    // What is left over of the columns takes the vectors that it needs.
    let (whole, rest) = t.columns(c);
    let rest = (rest as u64).div_ceil(lanes as u64) as i64;
    let strips = match rest {
        0 => whole as f64 * strip(t.vectors),
        _ => whole as f64 * strip(t.vectors) + strip(rest),
    };
    let pack = match t.source {
        Source::Packed { .. } if !operand.free => {
            c.size(t.vector) as f64 / operand.buffer.dtype().bytes() as f64 * MOVE
        }
        _ => 0.0,
    };
    // The operand that is the same in all lanes, where its groups do not lie beside one another.
    let other = &c.operands[1 - t.vector];
    let regrouped = match &c.group {
        Some(group) if !other.free && !group.lies_so(1 - t.vector, other) => {
            c.size(1 - t.vector) as f64 / other.buffer.dtype().bytes() as f64 * MOVE
        }
        _ => 0.0,
    };
    // Longer rows have more cells to compute.
    let to = ((whole + i64::from(rest > 0)) * t.width) as f64;
    let longer = match t.beyond(c) {
        true => to / c.axes[t.vector_axis].extent as f64 - 1.0,
        false => 0.0,
    };
    let longer = longer * (c.size(t.vector) / operand.buffer.dtype().bytes() as i64) as f64 * MOVE;
    (c.count(&spatial) as f64 * strips + regrouped + longer, pack)
}

/// How many new lines a step reads of operands that lie as they are, of which one is used by all rows;
/// `None` where both are used again. Steps of a window read what other rows read before.
fn windows(c: &Contraction, t: &Tile, reduce: &[usize], rows: i64, width: i64) -> Option<f64> {
    let data = [0, 1].into_iter().find(|o| {
        let moves = |k: usize| c.operands[*o].steps[k] != 0;
        moves(t.vector_axis) && t.row_axis.is_some_and(moves)
    })?;
    let steps = &c.operands[data].steps;
    let row = t.row_axis.map_or(0, |r| steps[r]);
    let lines = (width as usize * c.bytes) as f64 / LINE_BYTES;
    // Along one axis of the window a tile has several rows, along others the next tiles are.
    let share = |k: &usize| {
        let n = c.axes[*k].extent;
        let spatial = c.axes_where(IterKind::Spatial, |a| {
            a != t.vector_axis && steps[a] != 0 && steps[*k] != 0 && steps[a] % steps[*k] == 0
        });
        let stride = spatial.iter().map(|a| (steps[*a] / steps[*k]).abs()).filter(|s| *s < n).min();
        match stride {
            None => 1.0,
            Some(_) if row != 0 && row % steps[*k] == 0 && (row / steps[*k]).abs() < n => {
                let last = (row / steps[*k]).abs() * (rows - 1) + n;
                last.min(n * rows) as f64 / (n * rows) as f64
            }
            Some(stride) => stride as f64 / n as f64,
        }
    };
    Some(rows as f64 * lines * reduce.iter().map(share).product::<f64>())
}

/// How many lines of an operand a step of the reduction reads for some rows, without those that the
/// step before has read.
fn new_lines(
    c: &Contraction,
    operand: usize,
    reduce: &[usize],
    row_axis: Option<usize>,
    rows: f64,
) -> f64 {
    let step = row_axis.map_or(0, |r| c.operands[operand].steps[r]);
    let apart = (step.abs() as f64 * c.bytes as f64 / LINE_BYTES).min(1.0);
    (1.0 + (rows - 1.0) * apart) * fresh(c, operand, reduce, 1)
}

/// Which part of the lines of `width` cells is new in a step of the reduction, as the axis of it
/// moves that moves the least.
fn fresh(c: &Contraction, operand: usize, reduce: &[usize], width: i64) -> f64 {
    let nearest = reduce.iter().filter_map(|k| {
        let step = c.operands[operand].steps[*k].abs();
        (step != 0).then(|| {
            let cells = (LINE_BYTES / c.bytes as f64).max(width as f64);
            let moved = step as f64 / cells;
            moved.max(1.0 / c.axes[*k].extent as f64).min(1.0)
        })
    });
    nearest.fold(1.0, f64::min)
}
