//! Traces of stages without reduction: elementwise functions, copies, padding.
//!
//! Loops are fused as far as the accesses allow; the innermost one is left to LLVM's vectoriser,
//! the outer ones run in parallel.
//!
//! A loop over a variable of which quotients and remainders are taken is split into digits
//! ([`digits`](crate::digits)), unless they walk as one, and taken apart before where these are not
//! whole.
//!
//! Where the compiler of the target makes no vectors of loops, the innermost loop is one over vectors, and the rest one
//! over narrower vectors. Rows of an open length, of which there are several, run in vectors. Those that are all pixels
//! of an image are long: then whole vectors are apart from the last one, of which lanes are left out.
//!
//! What copies across runs in square tiles ([`Tile`]); what weaves rows, in vectors of all ([`Weave`]). Where an open
//! size, such as a batch, becomes the last axis, a batch of one has a version of its own (`loop_versions`), in which
//! other axes are copied across.
//!
//! Padding, `if_then_else(inside, value, constant)` where `inside` bounds single variables, runs
//! as two nests without conditions (`decompose_padding`): the constant everywhere, then the value
//! inside the box.

use std::sync::Arc;

use crate::axes::{Access, FusedAxis, Move, fuse, loose_vars, widest_word};
use crate::padding::{Iters, iters, padding};
use crate::share::{share, shared_inside};
use crate::subdomains::subdomains;
use tilewright_analysis::Stage;
use tilewright_analysis::stage::Extent;
use tilewright_ir::visit::Subst;
use tilewright_ir::{DType, Dim, Error, Expr, Fold, Result, Var, dim};
use tilewright_layout::marks::{POST, PRE};
use tilewright_schedule::{BlockRef, LoopRef, Schedule};
use tilewright_target::Target;

use crate::canonical::Stages;
use crate::digits::{Digits, digits};
use crate::parts::{
    FEWEST, INTERLEAVED, amount, long_row_of_vectors, loop_at, made_by, row_in_pieces,
    row_of_vectors, split_nest,
};
use crate::price::operations::operations;
use crate::sides::is_of_pixels;
use crate::transpose::Tile;
use crate::weave::Weave;

/// Schedules the stages of a function that are no reductions, and no part of the loops of one. Says
/// why where a primitive refuses: such a stage has fewer primitives applied, or none. Stages that are `marked`,
/// to be lifted out of the function, can be left as they are.
pub(crate) fn schedule(
    sch: &mut Schedule,
    func: &Arc<str>,
    marked: bool,
    target: &Target,
) -> Vec<Error> {
    let Some(all) = sch.func(func).ok().and_then(|f| Stages::from_func(f)) else {
        return Vec::new();
    };
    let mut remarks = Vec::new();
    for (_, stage) in all.each(false) {
        let is_marked = [PRE, POST].iter().any(|key| stage.block.annotations.contains_key(*key));
        if stage.dims().any(|d| d.1 == 0) || (is_marked && !marked) {
            continue;
        }
        for cut in [true, false] {
            // What a refusal leaves half done is thrown away.
            let mut trial = sch.clone();
            match (Spatial { stage, target, cut, whole: false }).nests(&mut trial, func) {
                Ok(()) => {
                    // What only asks leaves no trace.
                    let both = sch.func(func).ok().zip(trial.func(func).ok());
                    if !both.is_some_and(|(f, g)| Arc::ptr_eq(f, g)) {
                        *sch = trial;
                    }
                    break;
                }
                Err(e) => remarks.push(e.context(format_args!("function `{func}`"))),
            }
        }
    }
    remarks
}

/// A stage without reduction.
struct Spatial<'a> {
    stage: &'a Stage,
    target: &'a Target,
    /// Whether it may be taken apart.
    cut: bool,
    /// Whether it has no versions for sizes.
    whole: bool,
}

impl Spatial<'_> {
    fn nests(&self, sch: &mut Schedule, func: &Arc<str>) -> Result<()> {
        let Stage { value, indices, .. } = self.stage;
        let iters = iters(self.stage);
        if iters.iter().all(|i| i.1 == 1) {
            return Ok(());
        }
        let block = sch.get_block(self.stage.name(), func)?;
        if !self.cut {
            return self.loops(sch, &block, &iters, value, indices);
        }
        let cut = subdomains(&iters, value, indices);
        let mut blocks = vec![block];
        for (k, pieces) in cut.pieces.iter().enumerate().filter(|(_, p)| p.len() > 1) {
            let sizes: Vec<_> = pieces.iter().map(|(_, n)| amount(*n)).collect();
            let mut all = Vec::new();
            for block in &blocks {
                all.extend(split_nest(sch, block, (0, k), &sizes)?);
            }
            blocks = all;
        }
        for (own, block) in cut.all.iter().zip(&blocks) {
            let (value, indices) = own.at(value, indices);
            self.padded(sch, block, &own.iters, &value, &indices)?;
        }
        Ok(())
    }

    /// The loops of a block that stores `value` for every point of a box, padding apart.
    fn padded(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        iters: &Iters,
        value: &Expr,
        indices: &[Expr],
    ) -> Result<()> {
        let Some((inside, inner, outside)) = padding(iters, value) else {
            return self.loops(sch, block, iters, value, indices);
        };
        let boxed: Iters = iters
            .iter()
            .map(|(v, e, k)| (v.clone(), inside.get(v).map_or(*e, |(lo, hi)| *hi - lo.dim()), *k))
            .collect();
        let loops = sch.get_loops(block)?;
        let Some(outermost) = loops.first() else {
            return self.loops(sch, block, iters, &outside, indices);
        };
        let fill = sch.decompose_padding(block, outermost)?;
        self.loops(sch, &fill, iters, &outside, indices)?;
        let moved = inside.iter().filter(|(_, (lo, _))| *lo != 0);
        let mut moved = Subst::vars(moved.map(|(v, (lo, _))| (v.clone(), v.expr() + *lo)));
        let indices: Vec<Expr> = indices.iter().map(|i| moved.expr(i)).collect();
        self.loops(sch, block, &boxed, &moved.expr(&inner), &indices)
    }

    /// The loops of a block that stores `value` for every point of a box.
    fn loops(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        iters: &Iters,
        value: &Expr,
        indices: &[Expr],
    ) -> Result<()> {
        if self.cut
            && !self.whole
            && let Some(size) = self.last_size(iters, value, indices)
        {
            return self.versions(sch, block, (iters, value, indices), &size);
        }
        let Digits { iters, counts, value, indices } =
            digits(iters, value.clone(), indices.to_vec());
        let mut accesses = Access::loads(&value);
        accesses.push(Access::new(&self.stage.buffer, &indices));
        let axes = fuse(&iters, &accesses, &loose_vars(&value));
        // How many loops each axis has, with those of one iteration that stand before them.
        let (mut loops, mut of_axes) = (Vec::new(), Vec::new());
        let mut at = &iters[..];
        for (l, count) in sch.get_loops(block)?.into_iter().zip(counts) {
            let (digits, rest) = at.split_at(count);
            at = rest;
            let all: Vec<Option<usize>> = digits
                .iter()
                .map(|d| axes.iter().position(|a| a.parts.iter().any(|p| p.0 == d.0)))
                .collect();
            let mut known = all.iter().flatten();
            let first = known.next();
            if known.all(|axis| Some(axis) == first) {
                loops.push(l);
                of_axes.push(first.copied());
            } else {
                let sizes: Vec<_> = digits.iter().map(|d| amount(d.1)).collect();
                loops.extend(sch.split(&l, &sizes)?);
                of_axes.extend(all);
            }
        }
        let mut rest = &loops[..];
        let mut own: Vec<&[LoopRef]> = Vec::new();
        for k in 0..axes.len() {
            let last = of_axes.iter().rposition(|axis| *axis == Some(k));
            let end = last.map_or(0, |last| last + 1 + rest.len() - loops.len());
            let (loops, behind) = rest.split_at(end);
            own.push(loops);
            rest = behind;
        }
        if self.cut {
            let tile = Tile::recognise(self.stage, &value, &axes, &accesses, self.target);
            let weave = Weave::recognise(self.stage, &value, &axes, &accesses, self.target);
            if tile.is_some() {
                let last = own.pop().map_or(0, |last| last.len()) + rest.len();
                own.push(&loops[loops.len() - last..]);
            }
            if tile.is_some() || weave.is_some() {
                own.iter()
                    .filter(|own| own.len() > 1)
                    .try_for_each(|own| sch.fuse(own).map(drop))?;
            }
            match (tile, weave) {
                (Some(tile), _) => return tile.loops(sch, block, &axes),
                (None, Some(weave)) => return weave.loops(sch, block, &axes),
                (None, None) => {}
            }
        }
        let extents: Vec<Dim> = axes.iter().map(|a| a.extent).collect();
        let work = dim::product(extents.iter().copied()).estimate();
        // The innermost loop stays whole, for the vectoriser, unless it is the only one; so does the
        // one around it where LLVM unrolls the innermost and interleaves vectors.
        let short = extents.last().is_some_and(|n| n.known().is_some_and(|n| n <= INTERLEAVED));
        let fusible = extents.len().saturating_sub(1 + usize::from(short)).max(1);
        let shared = shared_inside(&extents, fusible, work);
        for (k, own) in own.iter().enumerate().filter(|(k, _)| !shared.contains(k)) {
            if of_axes.iter().filter(|axis| **axis == Some(k)).count() > 1 {
                sch.fuse(own)?;
            }
        }
        let [from, to] =
            [shared.start, shared.end].map(|k| own[..k].iter().map(|own| own.len()).sum::<usize>());
        share(sch, &loops[from..to])?;
        match self.lanes_of_rows(&axes, &accesses, &value).filter(|_| self.cut) {
            Some(lanes) => match extents.last() {
                Some(row) if is_of_pixels(*row) && operations(&value) == 0.0 => {
                    long_row_of_vectors(sch, block, *row, lanes)
                }
                _ => row_of_vectors(sch, block, lanes),
            },
            None => match (self.lanes_of_loop(&axes, &accesses, &value), axes.split_last()) {
                (Some(lanes), Some((row, _))) if !shared.contains(&(axes.len() - 1)) => {
                    row_in_pieces(sch, block, row.extent, lanes)
                }
                _ => Ok(()),
            },
        }
    }

    /// The tile of what copies across, with its axes.
    fn tile(
        &self,
        iters: &Iters,
        value: &Expr,
        indices: &[Expr],
    ) -> Option<(Tile, Vec<FusedAxis>)> {
        let Digits { iters, value, indices, .. } = digits(iters, value.clone(), indices.to_vec());
        let mut accesses = Access::loads(&value);
        accesses.push(Access::new(&self.stage.buffer, &indices));
        let axes = fuse(&iters, &accesses, &loose_vars(&value));
        let tile = Tile::recognise(self.stage, &value, &axes, &accesses, self.target)?;
        Some((tile, axes))
    }

    /// The size that is the last axis of a result that is copied across, as a batch may be, where it would be copied
    /// across still if that were one.
    fn last_size(&self, iters: &Iters, value: &Expr, indices: &[Expr]) -> Option<Var> {
        let (tile, axes) = self.tile(iters, value, indices)?;
        let size = tile.columns(&axes).typed(DType::I32).as_var()?.clone();
        let (stage, iters, value) = self.at_one((iters, value), &size);
        let one = Spatial { stage: &stage, whole: true, ..*self };
        one.tile(&iters, &value, indices)?;
        Some(size)
    }

    /// The stage, its iterations and its value where a size is one.
    fn at_one(&self, (iters, value): (&Iters, &Expr), size: &Var) -> (Stage, Iters, Expr) {
        let one = |v: &Var| (v == size).then_some(Dim::from(1));
        let iters = iters.iter().map(|(v, n, kind)| (v.clone(), n.substitute(&one), *kind));
        let mut known = Subst::vars([(size.clone(), Expr::int(1, size.dtype()))]);
        let loads = Access::loads(value);
        for b in loads.iter().map(|a| &a.buffer).chain([&self.stage.buffer]) {
            let shape = b.shape.iter().map(|n| known.expr(n)).collect();
            known.buffers.insert(b.clone(), b.derive_storage(|d| d.shape = shape));
        }
        let buffer = known.buffer_use(&self.stage.buffer);
        (Stage { buffer, ..self.stage.clone() }, iters.collect(), known.expr(value))
    }

    /// The loops of a block in a version where a size is one, and in one for other values.
    fn versions(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        (iters, value, indices): (&Iters, &Expr, &[Expr]),
        size: &Var,
    ) -> Result<()> {
        let outermost = loop_at(sch, block, 0)?;
        let made = made_by(sch, &block.func, |sch| {
            sch.loop_versions(&outermost, &size.expr(), &[1]).map(drop)
        })?;
        for other in made {
            Spatial { whole: true, ..*self }.loops(sch, &other, iters, value, indices)?;
        }
        let (stage, iters, value) = self.at_one((iters, value), size);
        Spatial { stage: &stage, whole: true, ..*self }.loops(sch, block, &iters, &value, indices)
    }

    /// The lanes of vectors along rows of an open length, of which there are several, where all that is accessed
    /// lies side by side along them and the machine leaves out lanes.
    fn lanes_of_rows(&self, axes: &[FusedAxis], accesses: &[Access], value: &Expr) -> Option<i64> {
        let (row, [_, ..]) = axes.split_last()? else { return None };
        let is_open = row.extent.known().is_none() && row.parts.len() == 1;
        let bytes = widest_word(self.stage, value, accesses)?;
        (self.target.vectors.leaves_out(bytes) && is_open && is_beside(row, accesses))
            .then(|| self.target.vectors.lanes(bytes))
    }

    /// The lanes of vectors along the innermost axis, of a known length, where the compiler makes none.
    fn lanes_of_loop(&self, axes: &[FusedAxis], accesses: &[Access], value: &Expr) -> Option<i64> {
        let row = axes.last()?;
        let lanes = self.target.vectors.lanes(widest_word(self.stage, value, accesses)?);
        let is_long = row.extent.known().is_some_and(|n| n >= FEWEST as usize);
        (self.cut && !self.target.vectors.by_compiler && is_long && is_beside(row, accesses))
            .then_some(lanes)
            .filter(|lanes| *lanes >= FEWEST)
    }
}

/// Whether all that is accessed lies side by side along an axis, or is one cell.
fn is_beside(row: &FusedAxis, accesses: &[Access]) -> bool {
    accesses.split_last().is_some_and(|(store, loads)| {
        row.moves(store) == Some(Move::By(1))
            && loads.iter().all(|a| matches!(row.moves(a), Some(Move::By(0 | 1))))
    })
}
