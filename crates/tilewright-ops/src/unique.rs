//! Rows of a matrix that are equal are of one kind: which kinds there are, and how often.
//!
//! Rows of one kind come one after the other in the sorted order, the first of the matrix first.

use tilewright_ir::{Buffer, DType, Dim, Error, Expr, Result, Stmt, TensorFunc};

use crate::dynamic::{block, buffer, flat};
use crate::loops::{each, get, load, one_cell, set, store};
use crate::operand::{Operand, require_number};
use crate::sort::Rows;

/// Which rows of a matrix are the first of their kind, and the number of the kind of each row: in the
/// order of the rows, or where `sorted` in the order of their elements, column by column. `NaN` is equal
/// to itself and comes after all numbers, as in numpy. Parameters:
/// the matrix `[n, m]`, whether each row is a first one `bool[n]`, the numbers `int64[n]`.
///
/// # Errors
/// [`Error::Input`] for what is no matrix, [`Error::Unsupported`] for `bool`.
pub fn unique_kinds(x: &Operand, sorted: bool) -> Result<TensorFunc> {
    let name = "unique";
    let [n, m] = x.shape.as_slice() else {
        return Err(Error::input(format!("{name}: {x} is no matrix")));
    };
    let (n, m) = (*n, *m);
    require_number(name, x.dtype)?;
    let from = buffer("x", &x.shape, x.dtype);
    let first = buffer("first", &[n], DType::BOOL);
    let kind = buffer("kind", &[n], DType::I64);
    let (latest, next) = (one_cell("latest", DType::I64), one_cell("next", DType::I64));
    let rows = Rows::new(&from, [n, m]);
    let [none, one] = [0, 1].map(|v| Expr::int(v, DType::I64));

    // The number of each kind, or where those count in the order of the rows, its first row.
    let mark = each("at", n, |at| {
        let row = rows.position(at);
        rows.compared(at, |is_new| {
            let value = if sorted {
                get(&latest) + is_new.clone().cast(DType::I64)
            } else {
                Expr::select(is_new.clone(), row.clone().cast(DType::I64), get(&latest))
            };
            let of_row = [store(&first, &[&row], is_new), store(&kind, &[&row], get(&latest))];
            Stmt::seq([set(&latest, value)].into_iter().chain(of_row))
        })
    });
    let number = each("i", n, |i| {
        let new = [store(&kind, &[i], get(&next)), set(&next, get(&next) + one.clone())];
        // The first row of the kind, which has its number already.
        let row = load(&kind, &[i]).max(none.clone()).min(n.long() - 1);
        let old = store(&kind, &[i], load(&kind, &[&row]));
        Stmt::if_else(load(&first, &[i]), Stmt::seq(new), old)
    });
    let start = set(&latest, Expr::int(if sorted { -1 } else { 0 }, DType::I64));
    let body = [rows.sort(), start, mark];
    let body = match sorted {
        true => Stmt::seq(body),
        false => Stmt::seq(body.into_iter().chain([set(&next, none.clone()), number])),
    };
    let mut allocs = rows.allocs();
    allocs.push(latest);
    if !sorted {
        allocs.push(next);
    }
    block(name, &[&from, &first, &kind], allocs, body)
}

/// For each of `found` kinds, its first row and how many rows there are. Parameters: `first` and `kind`
/// as [`unique_kinds`] gives them, the positions `int64[found]`, the counts `int64[found]`.
///
/// # Errors
/// [`Error::Input`] for what is no list.
pub fn unique_rows(first: &Operand, found: Dim) -> Result<TensorFunc> {
    let name = "unique_rows";
    let n = flat(name, first)?;
    let is_first = buffer("first", &[n], DType::BOOL);
    let kind = buffer("kind", &[n], DType::I64);
    let rows = buffer("rows", &[found], DType::I64);
    let count = buffer("counts", &[found], DType::I64);
    let clear = each("k", found, |k| Stmt::seq([store_zero(&rows, k), store_zero(&count, k)]));
    let fill = each("i", n, |i| {
        let at = Expr::load(&kind, vec![i.clone()]).cast(DType::I32);
        let more = Expr::load(&count, vec![at.clone()]) + Expr::int(1, DType::I64);
        let first = Expr::load(&is_first, vec![i.clone()]);
        let row = Stmt::store(&rows, vec![at.clone()], i.clone().cast(DType::I64));
        let put = Stmt::seq([Stmt::store(&count, vec![at.clone()], more), Stmt::guard(first, row)]);
        Stmt::guard(at.clone().greater_equal(0).and(at.less(found.expr())), put)
    });
    let body = Stmt::seq([clear, fill]);
    block(name, &[&is_first, &kind, &rows, &count], Vec::new(), body)
}

fn store_zero(b: &Buffer, k: &Expr) -> Stmt {
    Stmt::store(b, vec![k.clone()], Expr::int(0, DType::I64))
}
