//! Loops that read across rows: vectors along the rows, and shuffles.
//!
//! ```text
//! for j in unrolled(T):
//!     B[b + j*t : b + j*t + T] = f(A[a + j : a + j + T*s : s])
//! ```
//!
//! An iteration reads one element of each of `T` rows of `A`, which are `s` elements apart; the whole loop
//! reads `T` neighbours of each. So the rows are read as vectors, and transposed in registers: `T*log(T)`
//! shuffles of two vectors instead of `T*T` loads. Whatever else stands in the value is computed as
//! in any loop.

use tilewright_ir::index::Linear;
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, ForKind, Result, StmtKind, Var};

use super::code::{Ty, Val};
use super::func::Func;
use super::stmt::Loop;
use super::types::register;

/// A load of one element of each row.
struct Across<'e> {
    load: &'e Expr,
    buffer: &'e Buffer,
    /// The elements, one of each row.
    at: &'e Expr,
}

impl Func<'_> {
    /// Whether a loop reads across rows.
    pub(super) fn is_transposing(&self, l: &Loop<'_>) -> bool {
        !self.find_across(l).is_empty()
    }

    fn find_across<'e>(&self, l: &Loop<'e>) -> Vec<Across<'e>> {
        let mut found = Vec::new();
        let StmtKind::Store { buffer, value, .. } = l.body.kind() else { return found };
        let rows = l.range.extent.as_int().unwrap_or(0);
        let fits = [4, 8, 16].contains(&rows) && i64::from(value.dtype().lanes) == rows;
        if *l.kind == ForKind::Unrolled && fits && self.mask.is_none() {
            across(value, l.var, buffer, &mut found);
        }
        found
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
    fn columns(&mut self, load: &Across<'_>) -> Result<Option<Vec<Val>>> {
        let ty = register(load.load.dtype())?;
        let Some((first, step)) = self.even_places(load.buffer, load.at)? else {
            return Ok(None);
        };
        let start = self.beginning(load.buffer)?;
        let mut rows = Vec::new();
        for row in 0..i64::from(ty.lanes) {
            let from_first = self.code.mul_index(&step, &Val::int(Ty::I64, row), true);
            let at = self.code.add_index(&first, &from_first, true);
            let cells = self.cells(load.buffer, &start, &at)?;
            rows.push(self.code.load(ty, &cells));
        }
        let lanes = usize::from(ty.lanes);
        let mut columns = rows.clone();
        // The row and the place that each lane of each vector has.
        let mut from: Vec<Vec<(usize, usize)>> =
            (0..lanes).map(|r| (0..lanes).map(|l| (r, l)).collect()).collect();
        for (pair, order) in rounds(lanes, ty.scalar.bytes()) {
            for k in (0..lanes).filter(|k| k & pair == 0) {
                let both = [columns[k].clone(), columns[k | pair].clone()];
                let labels = [from[k].clone(), from[k | pair].clone()].concat();
                for (to, mask) in [(k, &order[0]), (k | pair, &order[1])] {
                    columns[to] = self.code.shuffle(&both[0], &both[1], mask);
                    from[to] = mask.iter().map(|l| labels[*l]).collect();
                }
            }
        }
        let all: Option<Vec<Val>> = (0..lanes)
            .map(|j| {
                from.iter()
                    .position(|l| l.iter().copied().eq((0..lanes).map(|r| (r, j))))
                    .map(|k| columns[k].clone())
            })
            .collect();
        all.map(Some)
            .ok_or_else(|| tilewright_ir::Error::internal("shuffles that do not transpose"))
    }
}

/// The loads of a value that read across rows, of those that each iteration makes.
fn across<'e>(e: &'e Expr, var: &Var, to: &Buffer, found: &mut Vec<Across<'e>>) {
    match e.kind() {
        ExprKind::Load(buffer, indices) => {
            let [index] = &indices[..] else { return };
            let Some((at, step)) = first_and_step(index) else { return };
            if step.as_int().is_some_and(|s| [0, 1].contains(&s)) {
                return;
            }
            let beside = Linear::from_expr(&at).and_then(|at| at.coefficient(var)) == Some(1);
            let dtype = buffer.dtype();
            let plain = (dtype.is_int() || dtype.is_float()) && [4, 8].contains(&dtype.bytes());
            // What the loop writes is read after it is written.
            let apart = buffer.data != to.data && buffer.strides.is_empty();
            if beside && plain && apart && dtype.lanes == 1 {
                found.push(Across { load: e, buffer, at: index });
            }
        }
        ExprKind::Binary(op, a, b) if !op.is_logic() => {
            across(a, var, to, found);
            across(b, var, to, found);
        }
        ExprKind::Select(c, t, f) => [c, t, f].into_iter().for_each(|x| across(x, var, to, found)),
        ExprKind::Cast(a) | ExprKind::Not(a) => across(a, var, to, found),
        ExprKind::Call(_, args) => args.iter().for_each(|a| across(a, var, to, found)),
        _ => {}
    }
}

/// The first lane of an index, and how far the next one is from it.
fn first_and_step(index: &Expr) -> Option<(Expr, Expr)> {
    Some(match index.kind() {
        _ if index.dtype().lanes == 1 => (index.clone(), zero_like(index)),
        ExprKind::Broadcast(x) => (x.clone(), zero_like(index)),
        ExprKind::Ramp(first, step) => (first.clone(), step.clone()),
        ExprKind::Cast(x) if index.dtype().bits >= x.dtype().bits => {
            let (first, step) = first_and_step(x)?;
            let wide = index.dtype().scalar();
            (first.cast(wide), step.cast(wide))
        }
        ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub), a, b) => {
            let ((a, s), (b, t)) = (first_and_step(a)?, first_and_step(b)?);
            (Expr::binary(*op, a, b), Expr::binary(*op, s, t))
        }
        ExprKind::Binary(BinOp::Mul, a, b) => {
            let ((a, s), (b, t)) = (first_and_step(a)?, first_and_step(b)?);
            let step = match (s.as_int(), t.as_int()) {
                (Some(0), _) => &a * &t,
                (_, Some(0)) => &s * &b,
                _ => return None,
            };
            (a * b, step)
        }
        _ => return None,
    })
}

fn zero_like(e: &Expr) -> Expr {
    Expr::int(0, e.dtype().scalar())
}

/// Which vectors meet in each round, by the bit in which their numbers differ, and the lanes of the two
/// that come of them. Neighbours in the 16 bytes that instructions shuffle within come first, then
/// these 16 bytes as wholes.
fn rounds(lanes: usize, bytes: usize) -> Vec<(usize, [Vec<usize>; 2])> {
    let within = (16 / bytes).min(lanes);
    let mut rounds = Vec::new();
    let mut pair = 1;
    let mut run = 1;
    while run < within {
        rounds.push((pair, [halves(0, lanes, within, run), halves(1, lanes, within, run)]));
        (pair, run) = (2 * pair, 2 * run);
    }
    while pair < lanes {
        rounds.push((pair, [every_other(0, lanes, within), every_other(1, lanes, within)]));
        pair *= 2;
    }
    rounds
}

/// In every 16 bytes, runs of the lower or upper half of one and of the other in turn.
fn halves(upper: usize, lanes: usize, within: usize, run: usize) -> Vec<usize> {
    let groups = (0..lanes).step_by(within);
    groups
        .flat_map(|g| {
            (0..within / 2).step_by(run).flat_map(move |r| {
                let at = g + upper * within / 2 + r;
                [at, lanes + at].into_iter().flat_map(move |at| at..at + run)
            })
        })
        .collect()
}

/// Every second 16 bytes of one, then of the other.
fn every_other(odd: usize, lanes: usize, within: usize) -> Vec<usize> {
    let starts = (0..2 * lanes).step_by(2 * within).map(|s| s + odd * within);
    starts.flat_map(|s| s..s + within).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_rows_is_transposed() {
        for (lanes, bytes) in [(4, 4), (8, 4), (16, 4), (4, 8), (8, 8), (16, 8), (2, 8)] {
            let mut all: Vec<Vec<(usize, usize)>> =
                (0..lanes).map(|r| (0..lanes).map(|l| (r, l)).collect()).collect();
            for (pair, order) in rounds(lanes, bytes) {
                for k in (0..lanes).filter(|k| k & pair == 0) {
                    let both = [all[k].clone(), all[k | pair].clone()].concat();
                    all[k] = order[0].iter().map(|l| both[*l]).collect();
                    all[k | pair] = order[1].iter().map(|l| both[*l]).collect();
                }
            }
            for j in 0..lanes {
                let column: Vec<(usize, usize)> = (0..lanes).map(|r| (r, j)).collect();
                assert!(all.contains(&column), "{lanes} {bytes}: {all:?}");
            }
        }
    }
}
