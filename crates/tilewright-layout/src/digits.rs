//! Index maps with bit operations: which digits or numbers they are of, and what leads back.
//!
//! A map is linear in the digits of its parameters, or of numbers that other arithmetic makes of these:
//! [`tilewright_polyhedral::bits`] inverts the first, and `index_map` what makes the numbers.

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::free_vars;
use tilewright_ir::{CallTarget, Expr, ExprKind, Intrin, Range, Var};
use tilewright_polyhedral::Domain;
use tilewright_polyhedral::bits::BitMap;

use crate::program::{Points, Program};

/// Most points at which an index is computed to find its greatest value.
pub(crate) const MOST_POINTS: u64 = 1 << 20;

/// Whether an index has an operation on bits.
pub(crate) fn has_bits(e: &Expr) -> bool {
    e.any(|part| match part.kind() {
        ExprKind::Call(CallTarget::Intrin(op), _) => matches!(
            op,
            Intrin::BitXor | Intrin::BitAnd | Intrin::BitOr | Intrin::Shl | Intrin::Shr
        ),
        _ => false,
    })
}

/// The map that expressions are of the digits of variables, and how many digits each variable has.
pub(crate) fn bit_map(
    domain: &Domain,
    ranges: &[(Var, Range)],
    indices: &[Expr],
) -> Option<(BitMap, Vec<u32>)> {
    let widths: Vec<u32> = ranges
        .iter()
        .map(|(v, r)| match (r.min.as_int(), r.extent.as_int()) {
            (Some(0), Some(n @ 1..)) => Some(64 - (n - 1).leading_zeros()),
            // An index of an open axis is any that its type holds.
            (Some(0), None) => Some(u32::from(v.dtype().bits).saturating_sub(1)),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let params: Vec<(Var, u32)> =
        ranges.iter().zip(&widths).map(|((v, _), w)| (v.clone(), *w)).collect();
    let map = BitMap::from_indices(&params, indices).or_else(|| {
        // Digits in another base, which are put together again, are none of two.
        let indices: Vec<Expr> = indices.iter().map(|e| domain.simplify(e)).collect();
        BitMap::from_indices(&params, &indices)
    })?;
    Some((map, widths))
}

/// The arguments of a map of digits as expressions of its results, and what holds at cells that it does not reach:
/// where what the inverse gives is no index, or does not lead back.
pub(crate) fn digits_back(
    domain: &Domain,
    map: &BitMap,
    widths: &[u32],
    ranges: &[(Var, Range)],
    cells: &[Var],
) -> Option<(Vec<Expr>, Vec<Expr>)> {
    let inverse = map.inverse(cells)?;
    let beyond = inverse.values.iter().zip(ranges).zip(widths);
    let beyond = beyond.filter_map(|((value, (_, r)), width)| {
        let full = r.extent.as_int().is_some_and(|n| 1i64.checked_shl(*width) == Some(n));
        (!full).then(|| value.clone().greater_equal(r.extent.clone()))
    });
    let outside =
        beyond.chain(inverse.outside.iter().cloned()).map(|e| domain.simplify(&e)).collect();
    Some((inverse.values.iter().map(|e| domain.simplify(e)).collect(), outside))
}

/// Indices as bit operations on numbers, of which each index has one: the numbers, and the indices with the cells in
/// their place. `None` where an index is of several numbers.
///
/// ```text
/// (i % 5 * 7 + j) ^ (i % 5 * 7 + j) // 8 % 4     is     c0 ^ c0 // 8 % 4  of  i % 5 * 7 + j
/// ```
pub(crate) fn numbers(indices: &[Expr], cells: &[Var]) -> Option<(Vec<Expr>, Vec<Expr>)> {
    let pairs = indices.iter().zip(cells).map(|(index, cell)| {
        if !has_bits(index) {
            return Some((index.clone(), cell.expr()));
        }
        let params = free_vars(index);
        // The largest part without bit operations comes first.
        let mut parts: Vec<Expr> = Vec::new();
        index.for_each(|part| {
            let found = !has_bits(part) && free_vars(part) == params;
            if found && !parts.iter().any(|p| same_expr(p, part)) {
                parts.push(part.clone());
            }
            !found
        });
        parts.into_iter().find_map(|part| {
            let cell = cell.expr().cast(part.dtype());
            let of_cell = index.replace(|e| same_expr(e, &part).then(|| cell.clone()));
            free_vars(&of_cell).is_disjoint(&params).then_some((part, of_cell))
        })
    });
    Some(pairs.collect::<Option<Vec<_>>>()?.into_iter().unzip())
}

/// The smallest box of what indices are over a constant box, by computing them everywhere.
pub(crate) fn box_of(
    ranges: &[(Var, Range)],
    indices: &[Expr],
    cells: &[Var],
) -> Option<Vec<Expr>> {
    let extents: Vec<i64> = ranges
        .iter()
        .map(|(_, r)| r.extent.as_int().filter(|_| r.min.as_int() == Some(0)))
        .collect::<Option<_>>()?;
    let count = extents.iter().try_fold(1i64, |p, n| p.checked_mul(*n))?;
    let params: Vec<Var> = ranges.iter().map(|(v, _)| v.clone()).collect();
    let programs: Vec<Program> =
        indices.iter().map(|e| Program::compile(&params, e).ok()).collect::<Option<_>>()?;
    let mut greatest = vec![-1i64; indices.len()];
    let mut stack = Vec::new();
    for at in Points::new(&extents, Some(count).filter(|n| *n as u64 <= MOST_POINTS)?) {
        for (program, greatest) in programs.iter().zip(&mut greatest) {
            *greatest = program.execute(&at, &mut stack).ok().filter(|v| *v >= 0)?.max(*greatest);
        }
    }
    Some(greatest.iter().zip(cells).map(|(n, c)| Expr::int(n + 1, c.dtype())).collect())
}
