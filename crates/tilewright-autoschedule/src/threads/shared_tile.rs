//! Contractions whose groups share what their threads read.
//!
//! ```text
//! for groups of rows, of columns:
//!     for threads y, x: sums[i][j] = 0
//!     for windows, for parts of the reduction:
//!         for threads: A_shared[..] = a(..)                  # what pads an image is computed here
//!         for threads: B_shared[..] = b(..)
//!         for threads y, x, for steps of the part: sums[i][j] += A_shared[..] * B_shared[..]
//!     for threads y, x: out[..] = f(sums[i][j])              # with what follows the contraction
//! ```
//!
//! Rows move one operand, columns the other, along which results are neighbours. Where rows of an image are short,
//! the columns of a tile are of several of them. A thread has every sixteenth row and column of the tile of its
//! group: its neighbours read neighbours in shared memory, which lie in other banks, and store neighbours.
//!
//! The cost model: a processor of a GPU loads a quarter as many words of shared memory a cycle as it multiplies. A
//! thread with `u x v` sums loads `u + v` words for `u * v` products, so that large tiles are cheaper; these
//! compute more beyond the end of what is ragged, take more registers, and leave fewer groups to share.

use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_ir::index::Affine;
use tilewright_ir::{Error, Expr, IterKind, Result};
use tilewright_schedule::compute::Position;
use tilewright_schedule::value::Lambda;
use tilewright_schedule::{BlockRef, LoopRef, Schedule};
use tilewright_target::ThreadGroups;

use super::follow::{Follow, Padded};
use super::grid::{ADDRESSES, bind, copies, expect, fill_ahead, in_three};
use crate::contraction::Contraction;
use crate::halves::is_half;
use crate::parts::{block_reads, lay_out, round_up, split};
use crate::share::fused;

/// Threads along each side of a group.
const SIDE: i64 = 16;

/// Steps of a reduction whose operands a group reads at once: the first of those that add the fewest.
const STEPS: [i64; 2] = [16, 8];

/// Sums of a thread along a side.
const SUMS: [i64; 4] = [8, 4, 2, 1];

/// Multiplications in the time of a load from shared memory.
pub(super) const LOAD: i64 = 4;

/// An axis of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    /// Its position among the iteration variables.
    iter: usize,
    threads: i64,
    /// Cells of a thread.
    each: i64,
}

impl Axis {
    fn size(&self) -> i64 {
        self.threads * self.each
    }
}

/// The tile of a group.
#[derive(Clone, Debug)]
pub(super) struct SharedTile {
    rows: Axis,
    /// The slowest one first.
    columns: Vec<Axis>,
    /// The position of the axis of the reduction that is taken apart.
    along: usize,
    /// Into parts of so many steps.
    steps: i64,
}

impl SharedTile {
    /// The cheapest tile of a contraction; `None` where groups cannot share its operands.
    pub fn recognise(c: &Contraction, groups: &ThreadGroups) -> Option<SharedTile> {
        if groups.threads < SIDE * SIDE || !is_shareable(c) {
            return None;
        }
        let along = c.axes_where(IterKind::Reduce, |k| {
            c.axes[k].extent >= STEPS[1] && [0, 1].iter().all(|o| c.whole(*o, k).is_some())
        });
        let along = along.into_iter().max_by_key(|k| c.axes[*k].extent)?;
        let extent = c.axes[along].extent;
        let steps = STEPS.into_iter().min_by_key(|s| round_up(extent, *s))?;
        let (operand, fast) = c.columns()?;
        let rows = c.rows(operand)?;
        let slow = c.alone(operand).into_iter().filter(|k| *k != fast);
        let slow = slow.min_by_key(|k| c.out[*k].map_or(i64::MAX, i64::abs));
        let mut all = Vec::new();
        for (u, v) in SUMS.iter().flat_map(|u| SUMS.map(|v| (*u, v))) {
            let apart = (0..).map(|k| 1 << k).take_while(|n| *n <= SIDE * v);
            for high in apart.filter(|n| *n == 1 || slow.is_some()) {
                let wide = SIDE * v / high;
                let threads = wide.min(SIDE);
                let mut columns = vec![Axis { iter: fast, threads, each: wide / threads }];
                if let Some(iter) = slow.filter(|_| high > 1) {
                    let threads = SIDE / threads;
                    columns.insert(0, Axis { iter, threads, each: high / threads });
                }
                let rows = Axis { iter: rows, threads: SIDE, each: u };
                let tile = SharedTile { rows, columns, along, steps };
                all.extend(tile.fits(c, groups).then(|| (tile.cost(c, groups), tile)));
            }
        }
        all.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, tile)| tile)
    }

    /// Sums of a thread along rows and columns.
    fn sums(&self) -> [i64; 2] {
        [self.rows.each, self.columns.iter().map(|a| a.each).product()]
    }

    /// All axes, by the extents of their part of a group.
    fn axes(&self) -> impl Iterator<Item = &Axis> {
        std::iter::once(&self.rows).chain(&self.columns)
    }

    /// The registers that a thread takes, as they are predicted.
    fn registers(&self, bytes: i64) -> i64 {
        let [u, v] = self.sums();
        (u * v + u + v) * (bytes / 4).max(1) + ADDRESSES
    }

    /// Whether the machine has room for it.
    fn fits(&self, c: &Contraction, groups: &ThreadGroups) -> bool {
        self.registers(c.bytes as i64) <= groups.registers
            && self
                .words(c)
                .is_some_and(|n| n.saturating_mul(c.bytes as i64 * copies(groups)) <= groups.shared)
    }

    /// Bytes that a group shares.
    fn shared_bytes(&self, c: &Contraction, groups: &ThreadGroups) -> Option<i64> {
        self.words(c)?.checked_mul(c.bytes as i64 * copies(groups))
    }

    /// Words of shared memory: of each operand the box that a part reads.
    fn words(&self, c: &Contraction) -> Option<i64> {
        let sizes = self.axes().map(|a| (a.iter, a.size())).chain([(self.along, self.steps)]);
        let sizes: Vec<_> = sizes.collect();
        let mut all = 0i64;
        for o in &c.operands {
            let mut words = 1i64;
            for index in &o.indices {
                let form = Affine::from_expr(index)?;
                let mut extent = 1i64;
                for (k, size) in &sizes {
                    let step = form.coefficient(&c.axes[*k].var)?;
                    extent = extent.checked_add(step.abs().checked_mul(size - 1)?)?;
                }
                words = words.checked_mul(extent)?;
            }
            all = all.checked_add(words)?;
        }
        Some(all)
    }

    /// The time of all sums, that of a product on a busy machine being one.
    pub fn cost(&self, c: &Contraction, machine: &ThreadGroups) -> f64 {
        let mut cells = 1.0;
        let mut groups = 1.0;
        for (k, axis) in c.axes.iter().enumerate() {
            let size = match self.axes().find(|a| a.iter == k) {
                Some(a) => a.size(),
                None if k == self.along => self.steps,
                None => 1,
            };
            cells *= round_up(axis.extent, size) as f64;
            if axis.kind == IterKind::Spatial {
                groups *= (round_up(axis.extent, size) / size) as f64;
            }
        }
        let [u, v] = self.sums().map(|n| n as f64);
        let loads = LOAD as f64 * (u + v) / (u * v);
        cells * loads.max(1.0) * (machine.costs.processors as f64 / groups).max(1.0)
    }

    /// The loops of the stage. Returns the numbers of the stages whose work is done where it is.
    pub fn nest(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        c: &Contraction,
        follow: &Follow<'_>,
        machine: &ThreadGroups,
    ) -> Result<Vec<usize>> {
        let stage = follow.stage;
        let multiples: Vec<(usize, i64)> =
            self.axes().map(|a| (a.iter, a.size())).chain([(self.along, self.steps)]).collect();
        let Padded { finish, mut copies } = follow.padded(sch, block, &multiples)?;
        for name in operands(stage) {
            if block_reads(sch, block, &name) {
                copies.push(sch.cache_read(block, &*name, "shared", &[])?);
            }
        }
        let pads = follow.inline_pads(sch, block);
        let loops = sch.get_loops(block)?;
        let mut parts_of = Vec::new();
        for axis in self.axes() {
            parts_of.push(in_three(sch, &loops[axis.iter], axis.each, axis.threads)?);
        }
        let [part, step] = split(sch, &loops[self.along], None, self.steps)?;
        let cells = stage.dims().filter(|d| d.2 == IterKind::Spatial).count();
        let pick = |from: usize, to: usize| -> Vec<LoopRef> {
            let taken = |k: &usize| *k == self.along || self.axes().any(|a| a.iter == *k);
            (from..to).filter(|k| !taken(k)).map(|k| loops[k].clone()).collect()
        };
        let others = pick(0, cells);
        let of = |at: usize| parts_of.iter().map(move |p| p[at].clone());
        let (groups, each, threads): (Vec<_>, Vec<_>, Vec<_>) =
            (of(0).collect(), of(1).collect(), of(2).collect());
        let ([rows, slow @ .., fast], true) = (&groups[..], groups.len() > 1) else {
            return Err(Error::internal("a tile without axes"));
        };
        let far = [&others[..], slow].concat();
        let outer = [&far[..], &[rows.clone(), fast.clone()]].concat();
        let depth = outer.len();
        let parts = [pick(cells, loops.len()), vec![part.clone()]].concat();
        sch.reorder(&[&outer, &parts, &threads, std::slice::from_ref(&step), &each].concat())?;
        let mut bound = vec![(rows.clone(), "blockIdx.y"), (fast.clone(), "blockIdx.x")];
        for copy in &copies {
            sch.compute_at(copy, &part, false, Position::default())?;
            sch.set_scope(copy, 0usize, "shared")?;
            let own = sch.get_loops(copy)?.split_off(depth + parts.len());
            let cells = fused(sch, &own)?;
            let [each, y, x] = in_three(sch, &cells, SIDE, SIDE)?;
            sch.reorder(&[y.clone(), x.clone(), each])?;
            bound.extend([(y, "threadIdx.y"), (x, "threadIdx.x")]);
        }
        sch.reverse_compute_at(&finish, fast, false, Position::default())?;
        let own = sch.get_loops(&finish)?.split_off(depth);
        bound.extend(self.tile_loops(sch, own, &follow.order())?);
        let [row, columns @ ..] = &threads[..] else {
            return Err(Error::internal("a tile without axes"));
        };
        bound.extend([(row.clone(), "threadIdx.y"), (fused(sch, columns)?, "threadIdx.x")]);
        each.iter().try_for_each(|l| sch.unroll(l))?;
        let init = sch.decompose_reduction(block, &parts[0])?;
        let own = sch.get_loops(&init)?.split_off(depth);
        let [y, x, inner @ ..] = &own[..] else {
            return Err(Error::internal("sums that are set by no loops"));
        };
        bound.extend([(y.clone(), "threadIdx.y"), (x.clone(), "threadIdx.x")]);
        inner.iter().try_for_each(|l| sch.unroll(l))?;
        self.lay_out_sums(sch, &init, stage)?;
        if !far.is_empty() {
            let all = sch.get_loops(&init)?;
            bound.push((fused(sch, &all[..far.len()])?, "blockIdx.z"));
        }
        fill_ahead(sch, machine, &part)?;
        let shared = self.shared_bytes(c, machine).unwrap_or(0);
        expect(sch, fast, self.registers(c.bytes as i64), shared)?;
        bind(sch, &bound)?;
        Ok(pads)
    }

    /// Takes the loops over a tile that stores it apart into threads and the cells of each; they are in the order of
    /// some iteration variables. Returns what threads are bound to.
    fn tile_loops(
        &self,
        sch: &mut Schedule,
        own: Vec<LoopRef>,
        order: &[usize],
    ) -> Result<Vec<(LoopRef, &'static str)>> {
        let found = order.iter().filter_map(|k| self.axes().position(|a| a.iter == *k));
        let places: Vec<usize> = found.filter(|at| self.size_at(*at) > 1).collect();
        if places.len() != own.len() || places.len() != self.axes().filter(|a| a.size() > 1).count()
        {
            return Err(Error::refused("the tiles are no boxes where they are stored"));
        }
        let mut all = Vec::new();
        for (at, l) in places.into_iter().zip(own) {
            let axis = self.axes().nth(at).copied();
            let threads = axis.map_or(1, |a| a.threads);
            let [each, thread] = split(sch, &l, None, threads)?;
            all.push((at, thread, each));
        }
        all.sort_by_key(|x| x.0);
        let threads: Vec<LoopRef> = all.iter().map(|x| x.1.clone()).collect();
        let each: Vec<LoopRef> = all.iter().map(|x| x.2.clone()).collect();
        sch.reorder(&[&threads[..], &each].concat())?;
        let [y, columns @ ..] = &threads[..] else {
            return Err(Error::internal("a tile without axes"));
        };
        let x = fused(sch, columns)?;
        each.iter().try_for_each(|l| sch.unroll(l))?;
        Ok(vec![(y.clone(), "threadIdx.y"), (x, "threadIdx.x")])
    }

    /// Lays the sums out such that those of a thread are neighbours.
    fn lay_out_sums(&self, sch: &mut Schedule, block: &BlockRef, stage: &Stage) -> Result<()> {
        let axis_of = |index: &Expr| {
            let at = stage.dims().position(|d| Some(d.0) == index.as_var())?;
            self.axes().find(|a| a.iter == at).copied()
        };
        let axes: Vec<Option<Axis>> = stage.indices.iter().map(axis_of).collect();
        let map = Lambda::over_indices(axes.len(), move |at| {
            let parts = at.iter().zip(&axes).map(|(at, axis)| match axis {
                Some(Axis { threads, each, .. }) => vec![
                    at.clone().floordiv(threads * each),
                    at.clone().floormod(*threads),
                    at.clone().floordiv(*threads).floormod(*each),
                ],
                None => vec![at.clone()],
            });
            parts.flatten().collect()
        });
        lay_out(sch, block, &map)
    }

    fn size_at(&self, at: usize) -> i64 {
        self.axes().nth(at).map_or(1, Axis::size)
    }
}

/// Whether a group can have parts of both operands: all axes are fixed, each an iteration variable of its own, and
/// the factors have the type of the sums, or are halves.
fn is_shareable(c: &Contraction) -> bool {
    c.axes.iter().all(|a| !a.is_open() && a.iters.len() == 1)
        && c.operands.iter().all(|o| o.buffer.dtype() == c.dtype || is_half(o.buffer.dtype()))
}

/// The names of what is multiplied.
fn operands(stage: &Stage) -> Vec<Arc<str>> {
    let loads = stage.loads().into_iter().map(|(b, _)| b.name.clone());
    loads.filter(|n| *n != stage.buffer.name).collect()
}
