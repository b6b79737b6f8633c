//! What loops and shapes say of variables: bounds for [`Ranges`].
//!
//! A loop bounds its variable by its ends, also where these are open. No extent of a tensor is negative, and no tensor
//! of open size has more than [`MAX_CELLS`] cells.

use crate::control::NEEDS_ELEMENTS;
use crate::dim::{self, MAX_CELLS};
use crate::expr::{Expr, Var};
use crate::func::TensorFunc;
use crate::index::linear::Linear;
use crate::index::{Interval, Ranges};
use crate::stmt::Range;
use crate::visit::accessed;

impl Ranges {
    /// Says that a variable runs through a range.
    pub fn bind_loop(&mut self, var: &Var, range: &Range) {
        let is_tight = self.exact(&range.min).is_some() && self.exact(&range.extent).is_some();
        let (min, extent) = (self.of_sum(&range.min), self.of_sum(&range.extent));
        let values = Interval { lo: min.lo, hi: min.hi + (extent.hi - 1).max(0) };
        let values = values.meet(Interval::all(var.dtype()));
        if is_tight {
            self.bind_exact(var, values)
        } else {
            self.bind(var, values)
        }
        self.bind_ends(var, (!is_tight).then(|| range.clone()));
    }

    /// [`Ranges::interval`], with the quotients of a sum taken together.
    fn of_sum(&self, e: &Expr) -> Interval {
        let plain = self.interval(e);
        let sum = Linear::from_expr(e).filter(|sum| sum.terms.len() > 1);
        match sum.and_then(|sum| sum.fits(self)) {
            Some(values) => values.meet(plain),
            None => plain,
        }
    }

    /// Says what the shapes of a function's arguments say of its sizes: no extent is negative, or zero where
    /// what is only read has elements ([`NEEDS_ELEMENTS`]), and no tensor of open size has more than
    /// [`MAX_CELLS`] cells, so that no extent, and no size that one is or exceeds by a number, has more.
    pub fn bind_sizes(&mut self, func: &TensorFunc) {
        func.sizes().iter().for_each(|v| self.bind_size(v));
        // What stands for a size is a size, also where no parameter is as long.
        func.scalars().filter(|v| v.stands_for().is_some()).for_each(|v| self.bind_size(v));
        self.bind_cells(&func.buffers().map(|b| &b.shape[..]).collect::<Vec<_>>());
        let needs_elements = func.attrs.contains_key(NEEDS_ELEMENTS);
        let written = if needs_elements { accessed(&func.body).1 } else { Vec::new() };
        let least_of = |b| i128::from(needs_elements && !written.contains(b));
        for b in func.buffers() {
            let sums = b.shape.iter().filter(|e| e.as_int().is_none() && e.as_var().is_none());
            for e in sums {
                self.bind_extent(e, Interval { lo: least_of(b), hi: MAX_CELLS as i128 });
                self.bind_terms(e);
            }
        }
        for b in func.buffers() {
            let least = least_of(b);
            for (v, by) in
                b.shape.iter().filter(|e| e.as_int().is_none()).filter_map(Linear::shifted)
            {
                let hi = Interval::all(v.dtype()).hi;
                self.narrow(&v, Interval { lo: (least - i128::from(by)).max(0), hi });
            }
        }
    }

    /// Says that memory of open size, which who calls a function gives, has at most [`MAX_CELLS`] cells.
    pub fn bind_memory(&mut self, shape: &[Expr]) {
        self.bind_cells(&[shape]);
    }

    /// Says that no tensor of these shapes has more than [`MAX_CELLS`] cells, of the sizes that an extent is or
    /// exceeds by a number.
    fn bind_cells(&mut self, shapes: &[&[Expr]]) {
        let cells = shapes.iter().filter_map(|shape| dim::of_shape(shape)).map(dim::product);
        for (v, most) in cells.flat_map(|cells| cells.limits(MAX_CELLS)) {
            let is_extent =
                |e: &Expr| Linear::shifted(e).is_some_and(|(size, by)| size == v && by >= 0);
            if shapes.iter().any(|shape| shape.iter().any(is_extent)) {
                self.narrow(&v, Interval { lo: 0, hi: most as i128 });
            }
        }
    }

    /// Says that an extent of at most [`MAX_CELLS`] cells has no larger term, where none is negative: in `n * 3`, `n`
    /// is at most a third of them.
    fn bind_terms(&mut self, extent: &Expr) {
        let Some(Linear { terms, constant: constant @ 0.., .. }) = Linear::from_expr(extent) else {
            return;
        };
        let grows = |(atom, by): &(Expr, i128)| *by > 0 && self.interval(atom).lo >= 0;
        if terms.len() > 1 && !terms.iter().all(grows) {
            return;
        }
        for (atom, by) in &terms {
            let values = Interval { lo: 0, hi: (MAX_CELLS as i128 - constant).max(0) / by.max(&1) };
            match atom.as_var() {
                Some(v) => self.narrow(v, values),
                // Of a multiple of a product the product is an atom.
                None => self.bind_extent(atom, values),
            }
        }
    }

    /// Says that the values of a variable are in an interval as well.
    fn narrow(&mut self, var: &Var, values: Interval) {
        let known = self.interval(&var.expr());
        self.bind(var, known.meet(values));
    }
}
