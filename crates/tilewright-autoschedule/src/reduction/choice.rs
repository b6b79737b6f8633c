//! The choice of tiles for a reduction: the axis of vectors, that of rows, how large a tile is, and the order
//! of the loops around it.

use std::ops::RangeInclusive;
use tilewright_ir::hash::HashMap;

use tilewright_ir::index::{Affine, gcd};
use tilewright_ir::{BinOp, Expr, ExprKind, IterKind, Var};

use super::stage::Reduction;
use crate::axes::{Access, balanced};

/// Distances of elements in memory that are read in vectors by shuffles.
pub(crate) const STRIDES: RangeInclusive<i64> = 2..=4;

/// So many rows that more make no tile better: then those that lie next to one another are taken.
const MANY_ROWS: i64 = 64;

/// The most updates of vectors in a tile of rows whose windows overlap.
const OVERLAPPING: i64 = 400;

/// The most steps of a window that overlaps others and becomes statements as a whole: so many weights stay in registers,
/// and the next tiles begin while one waits for its sums.
const WHOLE_WINDOW: i64 = 16;

/// A loop around a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Level {
    /// Over an axis that the tile does not have.
    Axis(usize),
    /// Over tiles along the vector axis.
    Vectors,
    /// Over tiles of rows.
    Rows,
}

/// A register tile and the loops around it.
#[derive(Clone, Debug)]
pub(crate) struct Tiling {
    /// The vector axis, and how many values of it a tile has.
    pub(crate) v: usize,
    pub(crate) width: i64,
    /// The row axis, and how many rows a tile has.
    pub(crate) u: Option<usize>,
    pub(crate) rows: i64,
    /// Lanes of a vector.
    pub(crate) lanes: i64,
    /// Loops around a tile, from outside.
    pub(crate) order: Vec<Level>,
    /// How rows share what they read.
    pub(crate) overlap: Option<Overlap>,
}

impl Tiling {
    /// The axis of a loop around a tile.
    pub(crate) fn axis(&self, level: &Level) -> usize {
        match level {
            Level::Axis(k) => *k,
            Level::Vectors => self.v,
            Level::Rows => self.u.unwrap_or(self.v),
        }
    }

    /// The axes of the loops around a tile, from outside.
    pub(crate) fn axes(&self) -> Vec<usize> {
        self.order.iter().map(|l| self.axis(l)).collect()
    }

    /// How many loops are around those over tiles.
    pub(crate) fn outer(&self) -> usize {
        self.order.iter().take_while(|l| matches!(l, Level::Axis(_))).count()
    }

    /// The axes in the order in which sums lie: rows and vectors last.
    pub(crate) fn of_sums(&self) -> Vec<usize> {
        let outer = self.axes().into_iter().filter(|k| !(*k == self.v || Some(*k) == self.u));
        outer.chain(self.u).chain([self.v]).collect()
    }
}

/// Rows of windows that overlap: what several rows of results read is loaded once for all of them.
///
/// A tile of rows goes through the image in the order of memory, and updates all rows that use a place while
/// it is in a register:
///
/// ```text
/// for place in range(rows + 2), kw in range(3):
///     for row, kh where row + kh == place:
///         sums[row] += x[place, kw : kw + lanes] * w[kh, kw]
/// ```
///
/// Of a large window `kw` is a loop around that: then there are fewer weights at a time than registers, and less code.
/// Where steps of the window are two places apart (a dilation), every second row uses a place.
#[derive(Clone, Debug)]
pub(crate) struct Overlap {
    /// The axis of rows.
    rows: usize,
    /// The axis of the window that moves along them.
    pub(crate) window: usize,
    /// By how many places a row moves, and a step of the window: without a common divisor.
    pub(crate) moves: [i64; 2],
    /// Whether the other axes of the window are loops around the places.
    pub(crate) rolled: bool,
}

impl Reduction<'_> {
    /// The axis to vectorise: the one with the least estimated cost for each useful lane.
    pub(crate) fn vector_axis(&self) -> Option<usize> {
        let lanes = self.lanes();
        let (spatial, reduced) = (self.count(self.spatial()), self.count(self.reduce()));
        let scalar = (self.loads.len() as f64) * lanes as f64;
        let mut best: Option<(f64, usize)> = None;
        for k in 0..self.axes.len() {
            let extent = self.len(k);
            let decides = self.axes[k].parts.iter().any(|(v, _)| self.deciding.contains(v));
            let is_gather = |s: &Option<i64>| s.is_none_or(|s| !(0..=*STRIDES.end()).contains(&s));
            // Lanes that are gathered from rows apart save little, and of an open number there may be one. Where a
            // table says which elements are read, others are read for all lanes alike.
            let apart = self.steps(k).zip(&self.loads);
            let apart = apart.filter(|(s, l)| is_gather(s) && !self.is_picked(k, l));
            let may_be_one = self.is_open(k) && apart.count() > 0;
            if extent < lanes.min(4) || decides || may_be_one {
                continue;
            }
            let loads: f64 = self
                .steps(k)
                .map(|s| match s {
                    Some(0) => 0.5,
                    Some(1) => 1.0,
                    s if is_gather(&s) => lanes as f64,
                    _ => 1.5,
                })
                .sum();
            let used = extent as f64 / (extent as f64 / lanes as f64).ceil() / lanes as f64;
            let finish = match self.axes[k].kind {
                // A vector of partial results takes about this many steps to combine.
                IterKind::Reduce if extent >= 2 * lanes => {
                    2.0 * lanes as f64 / (reduced as f64 / lanes as f64)
                }
                IterKind::Reduce if self.masks() && 2 * extent >= lanes => {
                    1.25 * lanes as f64 / (reduced as f64 / lanes as f64)
                }
                IterKind::Reduce => continue,
                _ => match self.store.as_ref().and_then(|a| self.axes[k].step(a)) {
                    Some(1) => 1.0 / reduced as f64,
                    _ => lanes as f64 / reduced as f64,
                },
            };
            let cost = (loads + finish) / used;
            // Steps of a single result wait for the one before.
            let scalar = match self.axes[k].kind {
                IterKind::Reduce => 3.0 * scalar,
                _ => scalar,
            };
            if cost < scalar && best.is_none_or(|(b, _)| cost < b) {
                best = Some((cost, k));
            }
        }
        best.filter(|_| spatial > 0).map(|(_, k)| k)
    }

    /// The spatial axis along which a tile has rows: the loads that move along `v` stay where
    /// they are along it, so that it shares them.
    fn row_axis(&self, v: usize) -> Option<usize> {
        self.sharing_axis(v, true)
    }

    /// The spatial axis along which a tile has rows that share no vector, but values that are the same in all lanes:
    /// where a result takes many steps, each of which waits for the one before, several results run at a time.
    fn waiting_axis(&self, v: usize) -> Option<usize> {
        let waits = self.known_steps().is_some_and(|n| n > WHOLE_WINDOW);
        self.sharing_axis(v, false).filter(|_| waits)
    }

    /// The spatial axis along which most loads stay of those that move along `v`, or of those that do not.
    fn sharing_axis(&self, v: usize, moving: bool) -> Option<usize> {
        let counts: Vec<bool> = self.steps(v).map(|s| (s != Some(0)) == moving).collect();
        self.spatial()
            .filter(|&u| u != v)
            .filter(|&u| self.axes[u].parts.iter().all(|(x, _)| !self.loose.contains(x)))
            .map(|u| {
                let steps = self.steps(u).zip(&counts);
                (steps.filter(|(step, counts)| **counts && *step == Some(0)).count(), u)
            })
            .filter(|(shared, _)| *shared > 0)
            .max_by_key(|&(shared, u)| (shared, self.len(u).min(MANY_ROWS), u))
            .map(|(_, u)| u)
    }

    /// Rows of windows that overlap: what moves along the vector axis `v` moves along another axis as well,
    /// by less than a window reaches. Where nothing stays along an axis, and all steps are known. Maxima wait for
    /// arithmetic and not for loads: they share where rows have most in common.
    fn overlap(&self, v: usize) -> Option<Overlap> {
        if self.known_steps().is_none() || self.row_axis(v).is_some() {
            return None;
        }
        let rows: Vec<usize> = self
            .spatial()
            .filter(|u| {
                *u != v
                    && self.axes[*u].extent.known().is_none_or(|n| n > 1)
                    && self.axes[*u].parts.iter().all(|(x, _)| !self.loose.contains(x))
            })
            .collect();
        rows.into_iter().find_map(|u| self.reduce().find_map(|k| self.overlap_of(u, k, v)))
    }

    fn overlap_of(&self, rows: usize, window: usize, v: usize) -> Option<Overlap> {
        let both = self.loads.iter().map(|l| self.both_steps(l, rows, window));
        let both = both.zip(self.steps(v));
        let moving: Vec<_> = both.filter(|(_, along)| *along != Some(0)).map(|m| m.0).collect();
        let &(Some(by), Some(step)) = moving.first()? else { return None };
        let overlap = 0 < step && 0 < by && by < step * self.len(window);
        let same = moving.iter().all(|m| *m == (Some(by), Some(step)));
        let dense = by == step || matches!(self.op, BinOp::Add | BinOp::Mul);
        let common = gcd(by.into(), step.into()) as i64;
        let moves = [by / common, step / common];
        (overlap && same && dense).then(|| Overlap {
            rows,
            window,
            moves,
            rolled: self.is_open(rows) && self.count(self.reduce()) > WHOLE_WINDOW,
        })
    }

    /// By how much a load moves along two axes: in cells, or, where these are an open number apart, in indices of
    /// the one axis of its buffer along which both move it alone.
    fn both_steps(&self, load: &Access, a: usize, b: usize) -> (Option<i64>, Option<i64>) {
        let (in_cells, parts) = (
            [self.step_along(a, load), self.step_along(b, load)],
            [a, b].map(|k| &self.axes[k].parts),
        );
        let ([None, None], [[(x, _)], [(y, _)]]) = (in_cells, parts.map(|p| &p[..])) else {
            return in_cells.into();
        };
        let mut moving = load.indices.iter().filter(|i| i.mentions(x) || i.mentions(y));
        let (Some(index), None) = (moving.next(), moving.next()) else { return (None, None) };
        (coefficient_of(x, index), coefficient_of(y, index))
    }

    /// Whether other loads say where along an axis an element is read.
    fn is_picked(&self, axis: usize, load: &Access) -> bool {
        let is_table = |e: &Expr| {
            matches!(e.kind(), ExprKind::Load(_, at)
                if self.axes[axis].parts.iter().any(|(v, _)| at.iter().any(|i| i.mentions(v))))
        };
        load.indices.iter().any(|i| i.any(is_table))
    }

    fn step_along(&self, k: usize, load: &Access) -> Option<i64> {
        load.offset.as_ref().and_then(|offset| self.axes[k].step(offset))
    }

    /// Bytes that the loads which move along an axis touch while each axis goes so far.
    fn footprint(&self, axis: usize, far: impl Fn(usize) -> i64) -> i64 {
        let moved = self.loads.iter().zip(self.steps(axis)).filter(|(_, s)| *s != Some(0));
        let sizes = moved.map(|(load, _)| {
            // Axes that move a load by the same step, as those of a window and of what it slides
            // over, meet at the same elements.
            let mut spans: HashMap<Option<i64>, i64> = HashMap::default();
            for k in 0..self.axes.len() {
                let step = self.step_along(k, load);
                let span = spans.entry(step).or_insert(1);
                *span = match step {
                    Some(0) => 1,
                    Some(_) => span.saturating_add(far(k) - 1),
                    None => span.saturating_mul(far(k)),
                };
            }
            let bytes = load.buffer.dtype().bytes() as i64;
            spans.values().fold(bytes, |n, span| n.saturating_mul(*span))
        });
        sizes.fold(0, i64::saturating_add)
    }

    /// Whether what so many results along `v` are made of stays in the cache while tiles of rows go by.
    fn stays_in_cache(&self, v: usize, count: i64) -> bool {
        let read = self.footprint(v, |k| match self.axes[k].kind {
            _ if k == v => count,
            IterKind::Reduce => self.len(k),
            _ => 1,
        });
        read <= self.target.caches.l2 as i64
    }

    /// The tile along a spatial axis `v`. Tiles of `v` are outside of tiles of `u`, or inside, by which
    /// operand is cheaper to read again. A tile is as many vectors long as leave what they are made of in the
    /// second cache.
    pub(crate) fn tiling(&self, v: usize) -> Tiling {
        let lanes = self.lanes();
        let overlap = self.overlap(v);
        let u = overlap.as_ref().map(|o| o.rows).or_else(|| self.row_axis(v));
        let waiting = u.is_none().then(|| self.waiting_axis(v)).flatten();
        let u = u.or(waiting);
        let vectors = (self.len(v) as u64).div_ceil(lanes as u64) as i64;
        // Registers: accumulators, the vectors of one step, and one broadcast.
        let budget = self.target.vectors.registers as i64 * 3 / 4;

        let open = self.is_open(v);
        let per_row = match (u, &overlap) {
            // A vector that is not full costs what a full one does, where others begin while it is computed: then
            // one loop is enough, and none of its work is for nothing.
            (_, Some(_)) if open && self.masks() => 1,
            (None, None) if open && self.masks() && self.is_short_window(v) => 1,
            // Of an open extent tiles of half the size follow, and of half of that: there are few of them.
            (_, Some(_)) if open => 2,
            (None, None) if open && self.masks() => 8,
            (None, None) if open => 4,
            (Some(_), None) if open => 2,
            (_, Some(_)) => balanced(vectors, 4),
            (Some(_), None) => balanced(
                vectors,
                (2..=4).rev().find(|n| self.stays_in_cache(v, n * lanes)).unwrap_or(2),
            ),
            (None, None) => balanced(vectors, budget.min(8)),
        };
        // The steps of a result that are statements.
        let steps = match &overlap {
            Some(overlap) if overlap.rolled => self.len(overlap.window),
            _ => self.count(self.reduce()),
        };
        let rows = match (u, &overlap) {
            (Some(u), Some(overlap)) => {
                let steps = steps.saturating_mul(per_row);
                // What is read, weights and masks need some as well.
                let budget = self.target.vectors.registers as i64 / 2;
                let most = (budget / per_row).min(OVERLAPPING / steps).clamp(1, 8);
                // Of an open number of rows any may be left over, for smaller tiles: much code where a window is
                // statements as a whole.
                match self.is_open(u) {
                    true if overlap.rolled => most,
                    true => most.min(4),
                    false => balanced(self.len(u), most),
                }
            }
            // Tiles of what an open number of rows leaves over are much code.
            (Some(u), None) if waiting.is_some() && self.is_open(u) => {
                (budget / per_row).clamp(1, 4)
            }
            (Some(u), None) => balanced_rows(self.len(u), (budget / per_row).clamp(1, 14)),
            (None, _) => 1,
        };
        let width = match self.axes[v].extent.number() {
            Some(n) => (per_row * lanes).min(n),
            None => per_row * lanes,
        };
        let order = self.order(v, width, u, rows);
        // Rows that use the same places are in one tile.
        let overlap = overlap
            .filter(|o| rows > o.moves[1] && steps.saturating_mul(rows * per_row) <= OVERLAPPING);
        Tiling { v, width, u, rows, lanes, order, overlap }
    }

    /// How many vectors of what moves along `v` a tile loads for each of its rows.
    pub(super) fn loads_of_row(&self, v: usize) -> i64 {
        let Tiling { overlap, rows, .. } = self.tiling(v);
        let steps = self.count(self.reduce());
        overlap.map_or(steps, |o| {
            let window = self.len(o.window);
            let [row, step] = o.moves;
            let places = (rows - 1) * row + (window - 1) * step + 1;
            places.min(rows * window).saturating_mul(steps / window) / rows
        })
    }

    /// Loops around a tile, from outside.
    ///
    /// Axes that move every operand go outermost. The others go with the tiles that they share
    /// an operand with, and the operand that is cheaper to read again for each tile of the other
    /// decides the order.
    fn order(&self, v: usize, width: i64, u: Option<usize>, rows: i64) -> Vec<Level> {
        let others: Vec<usize> = self.spatial().filter(|&k| k != v && Some(k) != u).collect();
        let (near_u, near_v): (Vec<usize>, Vec<usize>) =
            others.iter().partition(|k| u.is_some_and(|u| self.moves_both(**k, u)));
        let (outer, near_u): (Vec<usize>, Vec<usize>) =
            near_u.into_iter().partition(|k| self.moves_both(*k, v));
        let along_v = levels_to(&near_v, Level::Vectors);
        let mut order: Vec<Level> = outer.iter().map(|&k| Level::Axis(k)).collect();
        let Some(u) = u else {
            order.extend(along_v);
            return order;
        };
        let along_u = levels_to(&near_u, Level::Rows);
        if self.cells_read((v, width), &near_v, u) <= self.cells_read((u, rows), &near_u, v) {
            order.extend(along_v.into_iter().chain(along_u))
        } else {
            order.extend(along_u.into_iter().chain(along_v))
        }
        order
    }

    fn moves_both(&self, k: usize, along: usize) -> bool {
        self.steps(k).zip(self.steps(along)).any(|(a, b)| a != Some(0) && b != Some(0))
    }

    /// Bytes that are read if the tiles of one are inside of those of the other.
    fn cells_read(&self, outside: (usize, i64), near: &[usize], inside: usize) -> i64 {
        let tiles = (self.len(outside.0) as u64).div_ceil(outside.1 as u64) as i64;
        let count = self.count(near.iter().copied()).saturating_mul(tiles);
        count.saturating_mul(self.footprint(inside, |k| self.len(k)))
    }
}

fn coefficient_of(v: &Var, index: &Expr) -> Option<i64> {
    Affine::from_expr(index).and_then(|i| i.coefficient(v))
}

fn levels_to(near: &[usize], tile: Level) -> Vec<Level> {
    near.iter().map(|&k| Level::Axis(k)).chain([tile]).collect()
}

/// Rows of a tile: an exact divisor near the limit, else a balanced number.
fn balanced_rows(total: i64, max: i64) -> i64 {
    let divisor = (1..=max.min(total)).rev().find(|r| total % r == 0).unwrap_or(1);
    if divisor * 3 >= max * 2 { divisor } else { balanced(total, max) }
}
