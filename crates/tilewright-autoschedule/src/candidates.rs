//! The tiles that a contraction may get, the cheapest first.
//!
//! A tile of rows and columns that registers hold has a price ([`crate::tile`]). Of all tiles whose loops are made in
//! one way the cheapest counts; where a primitive refuses it, the best one of another way is made.
//!
//! Open sizes are taken to be of usual sizes, which say nothing about a run. So tiles along an open axis
//! are narrow, and only where no other axis gives vectors or the axis is one of an image, whose sides are many; they are
//! read where they lie where the machine leaves out lanes behind the last value; and rows are not those of an open axis,
//! as a batch often is, where others lie closer together.

use std::cmp::Ordering;

use tilewright_ir::IterKind;
use tilewright_target::Target;

use crate::contraction::Contraction;
use crate::parts::round_up;
use crate::sides::is_of_pixels;
use crate::tile::{FEWEST, Source, Tile, mean, price};

/// The largest part of the price that packing in a run may be: where an operand is hardly used
/// again, copying it costs more than reading it as it lies.
const PACKING: f64 = 0.25;
/// The most rows of a tile that have a pointer each: what general registers hold beside other numbers.
const POINTERS: i64 = 10;
/// The most vectors of a tile along an open axis.
const WIDEST_OPEN: i64 = 2;
/// The fewest steps of a reduction, and of products in all, for which tiles pay.
const WORK: (i64, i64) = (4, 1 << 12);

/// The tiles that a contraction may get, the cheapest first: of those whose loops are made in one way the
/// best, for its axes as they are and merged. None where no axis can be vectorised, or tiles do not pay.
pub(crate) fn candidates(c: Contraction, target: &Target) -> Vec<(Contraction, Tile)> {
    let merged = c.merged();
    let flat = c.flattened();
    let mut all = Vec::new();
    for c in [Some(c), merged, flat].into_iter().flatten() {
        let Some(c) = c.grouped(target) else { continue };
        all.extend(best(&c, target).into_iter().map(|tile| (c.clone(), tile)));
    }
    // Of two equal ones the first.
    all.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    all
}

/// How the loops of a tile are made, apart from its sizes: what a primitive refuses of one tile it may refuse
/// of all that are made so.
#[derive(PartialEq)]
struct Way {
    vector: usize,
    vector_axis: usize,
    row_axis: Option<usize>,
    source: Source,
    along: bool,
    /// Whether a tile has several rows, and whether rows and columns are left over.
    several: bool,
    left: [bool; 2],
}

impl Way {
    fn new(c: &Contraction, t: &Tile) -> Way {
        let rows = t.row_axis.map(|r| &c.axes[r]);
        Way {
            vector: t.vector,
            vector_axis: t.vector_axis,
            row_axis: t.row_axis,
            source: t.source,
            along: t.along.is_some(),
            several: t.rows > 1,
            left: [
                rows.is_some_and(|r| t.rows > 1 && (r.is_open() || r.extent % t.rows != 0)),
                t.columns(c).1 != 0,
            ],
        }
    }
}

/// The best tile of each way for the axes of a contraction as they are, the cheapest first.
fn best(c: &Contraction, target: &Target) -> Vec<Tile> {
    let all: Vec<usize> = (0..c.axes.len()).collect();
    let steps = c.count(&c.axes_where(IterKind::Reduce, |_| true));
    let smaller = c.smaller();
    let mut found: Vec<(Way, Tile)> = Vec::new();
    if steps < WORK.0 || c.count(&all) < WORK.1 {
        return Vec::new();
    }
    // Of two equal ones that whose rows lie closer together.
    for vector in [0, 1] {
        let broadcast = 1 - vector;
        if c.group.as_ref().is_some_and(|g| g.instructions[vector].is_none()) {
            continue;
        }
        // What is read in vectors along an open axis is packed with room for whole tiles.
        let columns = c.axes_where(IterKind::Spatial, |k| {
            moves_along(vector, k, c)
                && c.axes[k].is_even
                && (if c.axes[k].is_open() {
                    c.operands[broadcast].steps[k] == 0 && (all_open(c) || are_many(c, vector, k))
                } else {
                    matches!((c.operands[broadcast].steps[k], &c.group), (0, _) | (1, None))
                })
        });
        let (rows, others) = (axes_of_one(broadcast, c), axes_of_one(vector, c));
        for v in columns {
            // Else rows of a window that slides over the vectors read what other rows read.
            let rows: Vec<usize> = if !rows.is_empty() {
                rows.clone()
            } else if moves_along(broadcast, v, c) {
                Vec::new()
            } else {
                let others = others.iter().copied().filter(|r| *r != v && c.axes[*r].is_even);
                others.filter(|r| slides(c, vector, *r)).collect()
            };
            let rows = nearest(c, rows);
            let rows: Vec<Option<usize>> =
                if rows.is_empty() { vec![None] } else { rows.into_iter().map(Some).collect() };
            for source in sources(c, target, vector, v) {
                for &r in &rows {
                    for tile in tiles((c, &smaller), target, vector, v, r, source) {
                        let way = Way::new(c, &tile);
                        match found.iter_mut().find(|(other, _)| *other == way) {
                            Some((_, best)) if tile_key(&tile, c) < tile_key(best, c) => {
                                *best = tile
                            }
                            Some(_) => {}
                            None => found.push((way, tile)),
                        }
                    }
                }
            }
        }
    }
    let mut best: Vec<Tile> = found.into_iter().map(|(_, tile)| tile).collect();
    best.sort_by(|a, b| tile_key(a, c).partial_cmp(&tile_key(b, c)).unwrap_or(Ordering::Equal));
    best
}

fn tile_key(t: &Tile, c: &Contraction) -> (f64, i64) {
    (t.mean, row_step(c, t))
}

fn axes_of_one(operand: usize, c: &Contraction) -> Vec<usize> {
    c.axes_where(IterKind::Spatial, |k| {
        moves_along(operand, k, c) && !moves_along(1 - operand, k, c)
    })
}

fn moves_along(operand: usize, k: usize, c: &Contraction) -> bool {
    c.operands[operand].steps[k] != 0
}

/// The axes along which a tile may have rows, without open ones beside which others lie closer: what an open
/// extent is taken for says nothing, and a batch is often one.
fn nearest(c: &Contraction, rows: Vec<usize>) -> Vec<usize> {
    rows.iter().copied().filter(|k| !c.axes[*k].is_open() || !is_closer(*k, &rows, c)).collect()
}

fn is_closer(k: usize, rows: &[usize], c: &Contraction) -> bool {
    rows.iter().any(|other| {
        c.operands.iter().map(|o| o.steps[*other].abs()).max()
            < c.operands.iter().map(|o| o.steps[k].abs()).max()
            && c.axes[*other].extent >= FEWEST
    })
}

/// Whether all axes that move one operand alone are open, so that no other axis gives vectors: along an open
/// one, which may have one value, any number of lanes may be for nothing.
fn all_open(c: &Contraction) -> bool {
    c.axes_where(IterKind::Spatial, |k| {
        (c.operands[0].steps[k] == 0) != (c.operands[1].steps[k] == 0) && c.axes[k].extent > 1
    })
    .into_iter()
    .all(|k| c.axes[k].is_open())
}

/// The most axes of images, a batch among them; volumes have more, and short sides.
const OF_IMAGES: usize = 3;

/// Whether an open axis is one of an image, which has many values as a rule. What instructions multiply together with
/// its neighbours they multiply along other axes.
fn are_many(c: &Contraction, vector: usize, axis: usize) -> bool {
    let open = c.axes_where(IterKind::Spatial, |k| c.axes[k].is_open()).len();
    let is_side = c.slides_along(vector, axis) && open <= OF_IMAGES;
    c.group.is_none() && (is_of_pixels(c.axes[axis].dim) || is_side)
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

/// Whether the machine leaves out lanes of loads of an operand.
fn leaves_out_lanes(c: &Contraction, target: &Target, operand: usize) -> bool {
    target.vectors.leaves_out(c.operands[operand].buffer.dtype().bytes())
}

/// The ways in which an operand can give vectors along an axis.
fn sources(c: &Contraction, target: &Target, operand: usize, v: usize) -> Vec<Source> {
    let o = &c.operands[operand];
    let mut all = Vec::new();
    // Of an open axis lanes are left out where it ends.
    let ends = !c.axes[v].is_open() || leaves_out_lanes(c, target, operand) && c.out[v] == Some(1);
    if o.steps[v] == 1 && c.group.is_none() && ends {
        all.push(Source::Direct);
    }
    // What is packed is used again: nothing is where both operands move.
    let again = c.operands[1 - operand].steps[v] == 0;
    let packed = c.whole(operand, v).filter(|_| again);
    all.extend(packed.map(|axis| Source::Packed { axis }));
    all
}

/// Tiles of all sizes that the registers hold, of a contraction that may also have smaller sizes.
fn tiles(
    (c, smaller): (&Contraction, &[Contraction]),
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
    let masks = leaves_out_lanes(c, target, vector);
    let padded = both && [0, 1].iter().all(|o| c.whole(*o, v).is_some());
    let mut all = Vec::new();
    // Fewer columns than lanes are padded where they are more than half of them, and there are rows enough that no sum
    // waits for the one before: else other axes give vectors.
    let waits = (m as f64) < target.costs.latency / target.costs.fma;
    let unpadded = source == Source::Direct || c.group.is_some();
    let few = n < lanes && (2 * n <= lanes || waits || unpadded);
    // Where nothing is used again, what lies as it does is better read once, in its own order.
    if few || (m == 1 && source == Source::Direct) || c.is_half(1 - vector) {
        return all;
    }
    for vectors in 1..=8 {
        let width = vectors * lanes;
        // Narrower tiles have the same price, and pad less; of an open axis a wide one may be padding alone.
        if vectors > 1 && width >= n + lanes || c.axes[v].is_open() && vectors > WIDEST_OPEN {
            break;
        }
        // Cells beyond the last one are read as zeros, where the axis alone says where they lie.
        let divides = n % width == 0 && !c.axes[v].is_open();
        let to = round_up(n, width);
        // A whole tile comes before the one that is read beyond the last value.
        let fits = n > width && c.out[v] == Some(1) && !both;
        let mut tile = Tile {
            row_axis: r,
            rows: 1,
            vector_axis: v,
            width,
            vectors,
            vector,
            source,
            along: None,
            price: 0.0,
            mean: 0.0,
        };
        let apart = padded || tile.exact(c);
        let ends = apart || tile.masked(c) || masks && tile.zeros(c);
        if !divides
            && source == Source::Direct
            && !ends
            && (!fits || c.stretched(vector, v, to).is_none())
        {
            continue;
        }
        let most = (registers - ahead - 1 - vectors) / vectors;
        // Where arithmetic takes no operand from memory, but a lane of a register, LLVM loads a register for
        // each row (tiles of 8 x 3 vectors spill, those of 6 x 4 do not). So it does elsewhere for many rows of two
        // vectors (tiles of 11 to 13 x 2 spill, and take twice their time; those of 10 x 2 do not).
        // Rows that jump have a pointer each, and where registers are many, all are loaded first.
        let jumps = r.is_some_and(|r| !c.axes[r].is_even);
        let spare = if jumps { 0 } else { ahead };
        let values_of_rows = (registers + spare - vectors) / (vectors + 1);
        let loads_first = ahead > 0 && (jumps || !target.vectors.broadcasts || vectors == 2);
        let most = if loads_first { most.min(values_of_rows) } else { most }.min(m);
        let most = if jumps { most.min(POINTERS) } else { most };
        if most < 1 {
            break;
        }
        for rows in 1..=most {
            tile.rows = rows;
            // Along a side of an image the loops of `crate::reduction` share what they read: tiles whose sums wait for
            // one another are no better.
            let sums = (rows * vectors) as f64;
            if tile.is_of_side(c) && sums * target.costs.fma < target.costs.latency {
                continue;
            }
            // What is left over of the columns may be computed in another way; where results lie apart,
            // only where it is all that is left over.
            let whole = n / width > 0 && n % lanes > 0;
            let whole = whole && (c.out[v] == Some(1) || n % width < lanes);
            let along = reduction_axis(c, &tile, lanes).filter(|_| whole);
            for along in [None].into_iter().chain(along.map(Some)) {
                tile.along = along;
                let Some((work, pack)) = price(c, target, &tile) else { continue };
                tile.price = work + pack;
                let own = mean((c, tile.price), smaller, target, &tile);
                let Some(own) = own else { continue };
                tile.mean = own;
                if pack <= tile.price * PACKING {
                    all.push(tile);
                }
            }
        }
    }
    all
}

/// The axis of the reduction along which few columns can be computed in vectors: the operand that
/// tiles broadcast lies so, and the other one can be packed so. The longest one of several.
fn reduction_axis(c: &Contraction, tile: &Tile, lanes: i64) -> Option<usize> {
    let Source::Packed { .. } = tile.source else { return None };
    let steps = &c.operands[1 - tile.vector].steps;
    let open = tile.row_axis.is_none_or(|r| c.axes[r].is_open());
    let open = open || c.axes[tile.vector_axis].is_open();
    let along = c.axes_where(IterKind::Reduce, |k| {
        let axis = &c.axes[k];
        steps[k] == 1
            && !axis.is_open()
            && axis.extent >= lanes
            && c.whole(tile.vector, k).is_some()
    });
    let plain = c.group.is_none() && !tile.both(c) && !open;
    along.into_iter().filter(|_| plain).max_by_key(|k| c.axes[*k].extent)
}
