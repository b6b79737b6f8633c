//! What belongs to the kernel of a reduction beside its sums: what pads its operand, what is computed of its result,
//! and the copies that make ragged axes whole.

use tilewright_analysis::Stage;
use tilewright_ir::visit::accessed;
use tilewright_ir::{Result, Var};
use tilewright_schedule::{BlockRef, Schedule};

use crate::canonical::{Stages, follows};
use crate::padding::moves;
use crate::parts::blocks;

/// A reduction with its surroundings.
pub(super) struct Follow<'a> {
    pub stage: &'a Stage,
    /// What alone reads the result, cell by cell, and its number.
    pub epilogue: Option<(usize, &'a Stage)>,
    /// What alone it reads and only moves, where a guard may say which cells are of an image and which pad it; and their
    /// numbers.
    pub pads: Vec<(usize, &'a Stage)>,
}

/// What [`Follow::padded`] makes.
pub(super) struct Padded {
    /// The block that stores the result.
    pub finish: BlockRef,
    /// The blocks that make padded copies.
    pub copies: Vec<BlockRef>,
}

impl<'a> Follow<'a> {
    /// What belongs to the kernel of a stage with a number; nothing but the stage where that is no reduction.
    pub fn recognise(all: &'a Stages, k: usize, stage: &'a Stage) -> Follow<'a> {
        let epilogue = all.epilogue(k).filter(|_| stage.is_reduction()).map(|e| (k + 1, e));
        let pairs = all.pairs().into_iter().filter(|pair| pair.1 == k);
        let read = pairs.filter_map(|(pad, _)| Some((pad, all.get(pad)?)));
        Follow { stage, epilogue, pads: read.filter(|(_, stage)| moves(&stage.value)).collect() }
    }

    /// Makes axes multiples of numbers, with copies of what is read in which the cells beyond the end are zero, and
    /// puts the sums into registers.
    pub fn padded(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        multiples: &[(usize, i64)],
    ) -> Result<Padded> {
        let func = &block.func;
        let mut padding = vec![1; self.stage.dims().count()];
        let mut is_ragged = false;
        for (axis, size) in multiples {
            let extent = self.stage.dims().nth(*axis).and_then(|d| d.1.known());
            if extent.is_none_or(|n| n as i64 % size != 0) {
                (padding[*axis], is_ragged) = (*size, true);
            }
        }
        let (mut back, mut copies) = (None, Vec::new());
        if is_ragged {
            let before = blocks(sch, func)?;
            sch.pad_einsum(block, &padding)?;
            for b in blocks(sch, func)? {
                if before.iter().any(|x| x.name == b.name) {
                    continue;
                }
                let made = sch.get_block(&b.name, func)?;
                if accessed(&b.body).1.contains(&self.stage.buffer) {
                    back = Some(made);
                } else {
                    copies.push(made);
                }
            }
        }
        Ok(Padded { finish: self.finish(sch, block, back)?, copies })
    }

    /// Puts the result into registers. Returns the block that stores it, or what is computed of it; one that copies
    /// it back may be there.
    pub fn finish(
        &self,
        sch: &mut Schedule,
        block: &BlockRef,
        back: Option<BlockRef>,
    ) -> Result<BlockRef> {
        let finish = match (back, self.epilogue) {
            (None, None) => return sch.cache_write(block, 0usize, "local", &[]),
            (Some(back), None) => back,
            (back, Some((_, epilogue))) => {
                if let Some(back) = back {
                    sch.compute_inline(&back)?;
                }
                sch.get_block(epilogue.name(), &block.func)?
            }
        };
        sch.set_scope(block, 0usize, "local")?;
        Ok(finish)
    }

    /// The iteration variables of the stage, by their positions, in the order of the loops of what stores its result.
    pub fn order(&self) -> Vec<usize> {
        let position = |v: &Var| self.stage.dims().position(|d| d.0 == v);
        match self.epilogue {
            Some((_, epilogue)) => {
                let map = follows(self.stage, epilogue).unwrap_or_default();
                let of = epilogue.dims().filter_map(|d| map.get(d.0)?.as_var().cloned());
                of.filter_map(|v| position(&v)).collect()
            }
            None => self.stage.indices.iter().filter_map(|i| position(i.as_var()?)).collect(),
        }
    }

    /// Computes what pads where copies for a group are made. Returns the numbers of those stages that are gone.
    pub fn inline_pads(&self, sch: &mut Schedule, block: &BlockRef) -> Vec<usize> {
        let mut gone = Vec::new();
        for (number, pad) in &self.pads {
            let mut trial = sch.clone();
            let of = trial.get_block(pad.name(), &block.func);
            if of.and_then(|pad| trial.compute_inline(&pad)).is_ok() {
                *sch = trial;
                gone.push(*number);
            }
        }
        gone
    }
}
