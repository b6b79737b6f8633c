//! The trace of a product with weights in blocks: primitives that keep what is taken apart in registers.
//!
//! What [`super`] makes of such a product is found by its accesses: a reduction writes sums of tiles
//! (rows, tiles of columns, vectors, lanes), and reads either integers' sums of a block, which another
//! reduction makes, or weights, which a stage takes apart. For each part of the rows:
//!
//! ```text
//! for tiles of columns, tiles of rows:                     reorder, parallel
//!     sums = 0                                              cache_write, decompose_reduction
//!     for blocks:
//!         block sums = 0                                    compute_at, decompose_reduction
//!         for chunks of a block:
//!             take the weights of the chunk apart           compute_at, unroll, vectorize
//!             block sums += x * w                           unroll, tensorize or vectorize
//!         sums += block sums * scales                       unroll, vectorize
//!     store the sums                                        reverse_compute_at
//! ```
//!
//! Where tiles of rows share a panel of weights that are numbers, it is taken apart before them:
//!
//! ```text
//! for tiles of columns:                                     reorder, parallel
//!     sums = 0                                              decompose_reduction
//!     for panels:
//!         take the weights of the panel apart               compute_at, unroll, vectorize
//!         for tiles of rows:
//!             panel sums = 0                                compute_at, decompose_reduction
//!             for blocks of the panel, chunks of a block, steps:
//!                 panel sums += x * w                       split, unroll, vectorize
//!             sums += panel sums                            unroll, vectorize
//! ```
//!
//! The loops over tiles of columns of all parts become one (`merge_loops`), so that weights are read once.

use std::sync::Arc;

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::{Attr, DType, Dim, Error, ExprKind, IterKind, Result, TensorFunc};
use tilewright_schedule::compute::Position;
use tilewright_schedule::{BlockRef, LoopRef, Schedule};
use tilewright_target::Target;

use super::tiles::{SHARING, count_of};
use crate::canonical::{reads, sole_reader};
use crate::parts::{amount, split};

/// The stages of a part of a product.
struct Part<'a> {
    sums: &'a Stage,
    /// The sums of blocks, where they are integers.
    dots: Option<&'a Stage>,
    /// The sums of panels, where tiles of rows share these.
    panels: Option<&'a Stage>,
    /// What takes the weights apart; whole bytes are read where they lie.
    apart: Option<&'a Stage>,
}

/// Steps of a panel's sums between two branches. LLVM reads ahead for more of them, and keeps what it read in memory.
const STRAIGHT: i64 = 4;

/// How many axes a sum of a tile has: tiles of rows, rows, tiles of columns, vectors, lanes.
const TILE: usize = 5;

/// Whether a stage writes sums of tiles: its innermost axes are those of the buffer.
fn is_tile(stage: &Stage) -> bool {
    let spatial: Vec<_> = stage.dims().filter(|d| d.2 == IterKind::Spatial).collect();
    let last = stage.indices.len().checked_sub(TILE - 2);
    let lanes = last.map(|at| &stage.indices[at..]);
    let same = lanes.is_some_and(|lanes| {
        lanes.iter().zip(spatial.iter().skip(2)).all(|(i, d)| i.as_var() == Some(d.0))
    });
    spatial.len() == TILE && stage.indices.len() == TILE - 1 && same && stage.reduction().is_some()
}

/// The stage that makes what another one alone reads.
fn maker<'a>(
    func: &TensorFunc,
    stages: &'a [Stage],
    reader: &Stage,
    rank: usize,
) -> Option<&'a Stage> {
    let (allocs, _) = func.root_parts();
    let made = (0..stages.len()).find(|k| {
        let alone = sole_reader(allocs, stages, *k);
        alone.is_some_and(|(_, s)| s.stmt.ptr_eq(&reader.stmt)) && stages[*k].indices.len() == rank
    })?;
    Some(&stages[made])
}

/// The stages that a stage of sums of a tile is made with, if it is one.
fn part<'a>(func: &TensorFunc, stages: &'a [Stage], sums: &'a Stage) -> Option<Part<'a>> {
    if !is_tile(sums) || sums.buffer.dtype() != DType::F32 {
        return None;
    }
    let inner = maker(func, stages, sums, TILE + 1)
        .filter(|s| s.is_reduction() && reads(sums, &s.buffer).len() == 1);
    let [dots, panels] =
        [DType::I32, DType::F32].map(|dtype| inner.filter(|s| s.buffer.dtype() == dtype));
    let reader = inner.unwrap_or(sums);
    // A tile, its block, chunk, step, vector and lane, and the element of a group.
    let rank = if dots.is_some() { TILE + 2 } else { TILE + 1 };
    let apart = maker(func, stages, reader, rank).filter(|s| !s.is_reduction());
    (dots.is_some() || apart.is_some()).then_some(Part { sums, dots, panels, apart })
}

/// The schedule of the products with weights in blocks of a function; `None` where there are none, or a
/// primitive refuses.
pub(crate) fn schedule(
    sch: &Schedule,
    name: &Arc<str>,
    func: &TensorFunc,
    target: &Target,
) -> Option<Result<Schedule>> {
    let stages = open_stages(func)?;
    let parts: Vec<Part> = stages.iter().filter_map(|sums| part(func, &stages, sums)).collect();
    if parts.is_empty() {
        return None;
    }
    Some(scheduled(sch.clone(), name, &parts, target))
}

fn scheduled(
    mut sch: Schedule,
    name: &Arc<str>,
    parts: &[Part<'_>],
    target: &Target,
) -> Result<Schedule> {
    let mut outer = Vec::new();
    for part in parts {
        outer.push(part.schedule(&mut sch, name, target)?);
    }
    let shared = match &outer[..] {
        [one] => one.clone(),
        all => {
            let mut trial = sch.clone();
            match trial.merge_loops(all) {
                Ok(one) => {
                    sch = trial;
                    one
                }
                // Each part reads all weights then.
                Err(_) => {
                    all.iter().try_for_each(|l| sch.parallel(l))?;
                    return Ok(sch);
                }
            }
        }
    };
    sch.parallel(&shared)?;
    Ok(sch)
}

/// The innermost loops around a block, so many.
fn inner(sch: &mut Schedule, block: &BlockRef, count: usize) -> Result<Vec<LoopRef>> {
    let mut loops = sch.get_loops(block)?;
    match loops.len().checked_sub(count) {
        Some(at) => Ok(loops.split_off(at)),
        None => Err(Error::internal("a tile has fewer loops")),
    }
}

/// Makes statements on vectors of the loops over rows, vectors and lanes, the innermost ones around a block.
fn on_vectors(sch: &mut Schedule, block: &BlockRef) -> Result<()> {
    let loops = inner(sch, block, 3)?;
    sch.vectorize(&loops[2])?;
    loops[..2].iter().try_for_each(|l| sch.unroll(l))
}

impl Part<'_> {
    /// Makes the loops of a part. Returns the one over tiles of columns.
    fn schedule(&self, sch: &mut Schedule, func: &Arc<str>, target: &Target) -> Result<LoopRef> {
        let sums = sch.get_block(self.sums.name(), func)?;
        let loops = sch.get_loops(&sums)?;
        let (spatial, reduced) = loops.split_at(TILE);
        let [r, m, t, v, l] = spatial else { return Err(Error::internal("axes of a tile")) };
        if let Some(panels) = self.panels {
            let [panel] = reduced else { return Err(Error::internal("axes of panels")) };
            let tiles = self.sums.dims().next().map_or(Dim::from(0), |(_, tiles, _)| tiles);
            let (group, tile) = match tiles.known() {
                Some(_) => (None, r.clone()),
                None => {
                    let groups = tiles.ceildiv(count_of(SHARING));
                    let [group, tile] = split(sch, r, amount(groups), SHARING)?;
                    (Some(group), tile)
                }
            };
            let outside = [t].into_iter().chain(&group).chain([panel, &tile, m, v, l]);
            sch.reorder(&outside.cloned().collect::<Vec<_>>())?;
            self.of_panels(sch, panels, &sums, panel, &tile)?;
            return Ok(t.clone());
        }
        let order = [&[t.clone(), r.clone()], reduced, &[m.clone(), v.clone(), l.clone()]].concat();
        sch.reorder(&order)?;
        let copy = sch.cache_write(&sums, 0usize, "local", &[])?;
        sch.reverse_compute_at(&copy, r, true, Position::default())?;
        let block = &reduced[0];
        match self.dots {
            Some(dots) => self.integers(sch, dots, &sums, block, target)?,
            None => self.numbers(sch, &sums, reduced)?,
        }
        let init = sch.decompose_reduction(&sums, block)?;
        let sums = sch.latest(sums);
        on_vectors(sch, &init)?;
        on_vectors(sch, &sums)?;
        // The copy has a loop of one tile of columns in between.
        let loops = inner(sch, &copy, 4)?;
        sch.vectorize(&loops[3])?;
        sch.unroll(&loops[2])?;
        sch.unroll(&loops[0])?;
        sch.annotate(block, "pragma_no_unroll", Attr::Int(1))?;
        Ok(t.clone())
    }

    /// The sums of tiles of rows that share panels of weights.
    fn of_panels(
        &self,
        sch: &mut Schedule,
        panels: &Stage,
        sums: &BlockRef,
        panel: &LoopRef,
        rows: &LoopRef,
    ) -> Result<()> {
        let panels = sch.get_block(panels.name(), &sums.func)?;
        sch.compute_at(&panels, rows, true, Position::default())?;
        sch.set_scope(&panels, 0usize, "local")?;
        let loops = inner(sch, &panels, 9)?;
        let [r, m, o, t, v, l, b, c, s] = &loops[..] else {
            return Err(Error::internal("axes of sums of panels"));
        };
        sch.reorder(&[r, o, t, b, c, s, m, v, l].map(Clone::clone))?;
        let [s, few] = split(sch, s, None, STRAIGHT)?;
        sch.unroll(&few)?;
        sch.annotate(&s, "pragma_no_unroll", Attr::Int(1))?;
        sch.annotate(b, "pragma_no_unroll", Attr::Int(1))?;
        let init = sch.decompose_reduction(&panels, b)?;
        let panels = sch.latest(panels);
        on_vectors(sch, &init)?;
        on_vectors(sch, &panels)?;
        self.unpack_weights(sch, &sums.func, panel, 1)?;
        let init = sch.decompose_reduction(sums, panel)?;
        let sums = sch.latest(sums.clone());
        on_vectors(sch, &init)?;
        on_vectors(sch, &sums)
    }

    /// The sums of blocks, and the weights for them.
    fn integers(
        &self,
        sch: &mut Schedule,
        dots: &Stage,
        sums: &BlockRef,
        block: &LoopRef,
        target: &Target,
    ) -> Result<()> {
        let instruction = self.instruction(dots, target)?;
        let dots = sch.get_block(dots.name(), &sums.func)?;
        sch.compute_at(&dots, block, true, Position::default())?;
        sch.set_scope(&dots, 0usize, "local")?;
        let loops = inner(sch, &dots, 9)?;
        let [r, m, b, t, v, l, c, s, e] = &loops[..] else {
            return Err(Error::internal("axes of sums of blocks"));
        };
        sch.reorder(&[r, b, t, c, s, m, v, l, e].map(Clone::clone))?;
        self.unpack_weights(sch, &sums.func, c, 2)?;
        let init = sch.decompose_reduction(&dots, c)?;
        let dots = sch.latest(dots);
        on_vectors(sch, &init)?;
        let loops = inner(sch, &dots, 5)?;
        sch.tensorize(&loops[3], instruction)?;
        loops[..3].iter().try_for_each(|l| sch.unroll(l))
    }

    /// The instruction that multiplies, by the types of the factors.
    fn instruction(&self, dots: &Stage, target: &Target) -> Result<&'static str> {
        let lanes = target.vectors.lanes(DType::F32.bytes());
        let mut types = Vec::new();
        dots.value.any(|e| {
            if let ExprKind::Cast(x) = e.kind()
                && matches!(x.kind(), ExprKind::Load(..))
            {
                types.push(x.dtype());
            }
            false
        });
        let found = target.tensor_instructions().find(|i| {
            i.is_dot()
                && i.c.columns == lanes
                && i.implementation().is_some()
                && types == [i.a.dtype, i.b.dtype]
        });
        let found = found.map(|i| i.name);
        found.ok_or_else(|| Error::refused(format!("no instruction multiplies {types:?}")))
    }

    /// Takes the weights of a chunk apart where they are used; `grouped` innermost loops are one vector.
    fn unpack_weights(
        &self,
        sch: &mut Schedule,
        func: &Arc<str>,
        chunk: &LoopRef,
        grouped: usize,
    ) -> Result<()> {
        let Some(apart) = self.apart else { return Ok(()) };
        let apart = sch.get_block(apart.name(), func)?;
        sch.compute_at(&apart, chunk, true, Position::default())?;
        let loops = inner(sch, &apart, 2 + grouped)?;
        let (outside, lanes) = loops.split_at(2);
        let lanes = match lanes {
            [one] => one.clone(),
            several => sch.fuse(several)?,
        };
        sch.vectorize(&lanes)?;
        outside.iter().try_for_each(|l| sch.unroll(l))
    }

    /// Products of numbers: the weights of a chunk are used where they are taken apart.
    fn numbers(&self, sch: &mut Schedule, sums: &BlockRef, reduced: &[LoopRef]) -> Result<()> {
        let [_, chunk, step] = reduced else { return Err(Error::internal("axes of a sum")) };
        self.unpack_weights(sch, &sums.func, chunk, 1)?;
        sch.unroll(step)
    }
}
