//! Loops that read across rows, which vectors along the rows and shuffles do.
//!
//! ```text
//! for j in unrolled(T):
//!     B[b + j*t : b + j*t + T] = f(A[a + j : a + j + T*s : s])
//! ```
//!
//! An iteration reads one element of each of `T` rows of `A`, which are `s` elements apart; the whole loop
//! reads `T` neighbours of each. So the rows are read as vectors, and transposed in registers: `T*log(T)`
//! shuffles of two vectors instead of `T*T` loads. Whatever else stands in the value is computed as
//! in any loop. Each backend writes loads and shuffles its own way.

use tilewright_ir::index::Linear;
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, ForKind, Range, Stmt, StmtKind, Var};

/// A load of one element of each row.
pub(crate) struct AcrossRows<'e> {
    pub load: &'e Expr,
    pub buffer: &'e Buffer,
    /// The elements, one of each row.
    pub at: &'e Expr,
}

/// The loads of a loop that read across rows; none where the loop is of another form.
pub(crate) fn across_rows<'e>(
    var: &Var,
    range: &Range,
    kind: &ForKind,
    body: &'e Stmt,
) -> Vec<AcrossRows<'e>> {
    let mut found = Vec::new();
    let StmtKind::Store { buffer, value, .. } = body.kind() else { return found };
    let rows = range.extent.as_int().unwrap_or(0);
    let fits = [4, 8, 16].contains(&rows) && i64::from(value.dtype().lanes) == rows;
    if *kind == ForKind::Unrolled && fits {
        across(value, var, buffer, &mut found);
    }
    found
}

/// The loads of a value that read across rows, of those that each iteration makes.
fn across<'e>(e: &'e Expr, var: &Var, to: &Buffer, found: &mut Vec<AcrossRows<'e>>) {
    match e.kind() {
        ExprKind::Load(buffer, indices) => {
            let [index] = &indices[..] else { return };
            let Some((at, step)) = first_and_step(index) else { return };
            if step.as_int().is_some_and(|s| [0, 1].contains(&s)) {
                return;
            }
            let beside = Linear::from_expr(&at).and_then(|at| at.coefficient(var)) == Some(1);
            let dtype = buffer.dtype();
            let plain = dtype.is_int() || dtype.is_float() || dtype.is_bool();
            // What the loop writes is read after it is written.
            let apart = buffer.data != to.data && buffer.strides.is_empty();
            if beside && plain && apart && dtype.lanes == 1 {
                found.push(AcrossRows { load: e, buffer, at: index });
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
pub(crate) fn first_and_step(index: &Expr) -> Option<(Expr, Expr)> {
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

/// The columns of a square whose rows these vectors are, by shuffles of two vectors each: `shuffle` takes two
/// and the lanes of the result, of which those of the second vector follow those of the first.
pub(crate) fn transposed<V: Clone>(
    rows: Vec<V>,
    bytes: usize,
    mut shuffle: impl FnMut(&V, &V, &[usize]) -> V,
) -> Vec<V> {
    let lanes = rows.len();
    // Each vector with the row and the place that its lanes come from.
    let mut all: Vec<(V, Vec<(usize, usize)>)> = rows
        .into_iter()
        .enumerate()
        .map(|(r, v)| (v, (0..lanes).map(|l| (r, l)).collect()))
        .collect();
    for (pair, order) in rounds(lanes, bytes) {
        for k in (0..lanes).filter(|k| k & pair == 0) {
            let (a, b) = (all[k].clone(), all[k | pair].clone());
            let from = [a.1, b.1].concat();
            for (to, mask) in [(k, &order[0]), (k | pair, &order[1])] {
                all[to] = (shuffle(&a.0, &b.0, mask), mask.iter().map(|l| from[*l]).collect());
            }
        }
    }
    // The lanes of a vector come from one place in all rows.
    all.sort_by_key(|(_, from)| from.first().map(|f| f.1));
    all.into_iter().map(|(v, _)| v).collect()
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
        for (lanes, bytes) in [4, 8, 16].into_iter().flat_map(|n| [1, 2, 4, 8].map(|b| (n, b))) {
            let rows: Vec<Vec<(usize, usize)>> =
                (0..lanes).map(|r| (0..lanes).map(|l| (r, l)).collect()).collect();
            let columns = transposed(rows, bytes, |a, b, mask| {
                let both = [a.clone(), b.clone()].concat();
                mask.iter().map(|l| both[*l]).collect()
            });
            for (j, column) in columns.iter().enumerate() {
                let expected: Vec<(usize, usize)> = (0..lanes).map(|r| (r, j)).collect();
                assert_eq!(*column, expected, "{lanes} {bytes}");
            }
        }
    }
}
