//! Loops that read across rows ([`crate::across_rows`]), as instructions of LLVM.

use tilewright_ir::{Expr, Result};

use super::code::{Ty, Val};
use super::func::Func;
use super::stmt::Loop;
use super::types::memory;
use crate::across_rows::{AcrossRows, across_rows, transposed};

impl Func<'_> {
    /// Whether a loop reads across rows.
    pub(super) fn is_transposing(&self, l: &Loop<'_>) -> bool {
        !self.find_across(l).is_empty()
    }

    fn find_across<'e>(&self, l: &Loop<'e>) -> Vec<AcrossRows<'e>> {
        if self.mask.is_some() {
            return Vec::new();
        }
        across_rows(l.var, l.range, l.kind, l.body)
    }

    /// The iterations of a loop that [`Func::is_transposing`] accepts, one after the other.
    pub(super) fn transposing(&mut self, l: &Loop<'_>) -> Result<()> {
        let Loop { var, range, body, .. } = *l;
        let min = self.expr(&range.min)?;
        self.bind(var, min.clone());
        self.forget();
        let mut columns: Vec<(&Expr, Vec<Val>)> = Vec::new();
        for load in self.find_across(l) {
            columns.extend(self.columns(&load)?.map(|all| (load.load, all)));
        }
        for j in 0..range.extent.as_int().unwrap_or(0) {
            let at = self.code.bin("add", &min, &Val::int(min.ty, j));
            self.bind(var, if min.is_int(0) { Val::int(min.ty, j) } else { at });
            self.forget();
            for (load, values) in &columns {
                values.get(j as usize).into_iter().for_each(|v| self.remember(load, v));
            }
            self.stmt(body)?;
        }
        self.forget();
        Ok(())
    }

    /// What a load gives in each iteration; `None` where rows are not evenly apart.
    fn columns(&mut self, load: &AcrossRows<'_>) -> Result<Option<Vec<Val>>> {
        let lanes = load.load.dtype().lanes;
        let Some((first, step)) = self.even_places(load.buffer, load.at)? else {
            return Ok(None);
        };
        let start = self.beginning(load.buffer)?;
        let ty = Ty { scalar: memory(load.buffer.dtype(), self.code.shared.machine.half)?, lanes };
        let mut rows = Vec::new();
        for row in 0..i64::from(lanes) {
            let from_first = self.code.mul_index(&step, &Val::int(Ty::I64, row), true);
            let at = self.code.add_index(&first, &from_first, true);
            let cells = self.cells(load.buffer, &start, &at)?;
            rows.push(self.code.load(ty, &cells));
        }
        let shuffle = |a: &Val, b: &Val, mask: &[usize]| self.code.shuffle(a, b, mask);
        let columns = transposed(rows, ty.scalar.bytes(), shuffle);
        Ok(Some(columns.iter().map(|v| self.in_register(v, load.buffer.dtype())).collect()))
    }
}
