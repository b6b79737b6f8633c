//! Vectors of every second, third or fourth element: whole vectors, and shuffles.
//!
//! `A[a : a + L*s : s]` lies in `s` vectors, of which the last ends with the last element. All that is
//! read lies between the first and the last element, so it is memory of the buffer. Where a mask says which elements
//! take part, the vectors follow one another, and of each the cells of these elements alone are read.

use tilewright_ir::{Buffer, Result};

use super::address::Base;
use super::code::{Ty, Val};
use super::func::Func;
use super::memory::Cells;

impl Func<'_> {
    /// Every `step`-th element from one on, as they lie in memory, of those that a mask has; `ty` is the type in
    /// registers.
    pub(super) fn every(
        &mut self,
        b: &Buffer,
        start: &Base,
        (from, step): (&Val, usize),
        ty: Ty,
        mask: Option<&Val>,
    ) -> Result<Val> {
        let lanes = usize::from(ty.lanes);
        let mut all: Option<Val> = None;
        // The lanes that are there already stay.
        let mut done = 0;
        for k in 0..step {
            let is_last = mask.is_none() && k + 1 == step;
            let first = if is_last { k * (lanes - 1) } else { k * lanes };
            let at = self.code.add_index(from, &Val::int(Ty::I64, first as i64), true);
            let cells = self.cells(b, start, &at)?;
            let next = match mask {
                Some(mask) => self.load_cells_of(&cells, mask, step, first),
                None => self.load_lanes(b, &cells, ty.lanes),
            };
            let here = |lane: usize| (first..first + lanes).contains(&(lane * step));
            let order: Vec<usize> = (0..lanes)
                .map(|lane| match &all {
                    None if here(lane) => lane * step,
                    Some(_) if lane >= done && here(lane) => lanes + lane * step - first,
                    _ => lane,
                })
                .collect();
            let new = self.code.shuffle(all.as_ref().unwrap_or(&next), &next, &order);
            done = (0..lanes).take_while(|l| *l < done || here(*l)).count();
            all = Some(new);
        }
        all.ok_or_else(|| tilewright_ir::Error::internal("a vector of no elements"))
    }

    /// The cells from one on, as many as a mask has lanes, that are elements of these: cell `start + k` is one
    /// where `step` divides that. The others are zero.
    fn load_cells_of(&mut self, cells: &Cells, mask: &Val, step: usize, start: usize) -> Val {
        let lanes = usize::from(mask.lanes());
        let nothing = Val::zero(mask.ty);
        let order: Vec<usize> = (start..start + lanes)
            .map(|cell| if cell.is_multiple_of(step) { cell / step } else { lanes })
            .collect();
        let mask = self.code.shuffle(mask, &nothing, &order);
        let zero = Val::zero(mask.ty.with_scalar(cells.element));
        self.code.load_masked(cells, &mask, &zero)
    }
}
