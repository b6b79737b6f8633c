//! Results whose sizes data decide: how many elements count, and then which ones.
//!
//! A function has results of the shapes that its caller says, so that each of these comes in two: one
//! counts, and the other is called with that count as a size. Nothing is larger than what is found.
//! All of them are right for operands without elements, too.

use tilewright_ir::control::TAKES_EMPTY;
use tilewright_ir::{Attr, Buffer, DType, Dim, Error, Expr, Result, Stmt, TensorFunc, Var};

use crate::loops::{cells, each, get, load, one_cell, set, store, with};
use crate::operand::{Operand, Scalar, require_number};

fn zero() -> Expr {
    Expr::i32(0)
}

pub(crate) fn buffer(name: &str, shape: &[Dim], dtype: DType) -> Buffer {
    Buffer::new(name, shape.iter().map(|d| d.expr()).collect::<Vec<_>>(), dtype)
}

/// A function of one block.
pub(crate) fn block(
    name: &str,
    params: &[&Buffer],
    allocs: Vec<Buffer>,
    body: Stmt,
) -> Result<TensorFunc> {
    let mut func = cells(name, params, &[], allocs, |_| body)?;
    func.attrs.insert(TAKES_EMPTY.into(), Attr::Int(1));
    Ok(func)
}

pub(crate) fn flat(name: &str, x: &Operand) -> Result<Dim> {
    match x.shape.as_slice() {
        [n] => Ok(*n),
        _ => Err(Error::input(format!("{name}: {x} is no list"))),
    }
}

/// Whether an element counts: whether it is not zero.
fn counts(x: &Buffer, at: &[&Expr]) -> Expr {
    let value = load(x, at);
    if value.dtype().is_bool() {
        value
    } else {
        let none = Scalar::Int(0).expr(value.dtype());
        value.not_equal(none)
    }
}

/// How many elements of a list are not zero: `int64[1]`. Parameters: the list, the count.
///
/// # Errors
/// [`Error::Input`] for what is no list.
pub fn count(x: &Operand) -> Result<TensorFunc> {
    let n = flat("count", x)?;
    let (from, out) = (buffer("x", &x.shape, x.dtype), one_cell("count", DType::I64));
    let sum = one_cell("sum", DType::I32);
    let body = Stmt::seq([
        set(&sum, zero()),
        each("i", n, |i| set(&sum, get(&sum) + counts(&from, &[i]).cast(DType::I32))),
        set(&out, get(&sum).cast(DType::I64)),
    ]);
    block("count", &[&from, &out], vec![sum], body)
}

/// The positions of the elements of a list that are not zero, of which there are `found`: `int64`, in
/// order. Parameters: the list, the positions.
///
/// # Errors
/// As [`count`].
pub fn positions(x: &Operand, found: Dim) -> Result<TensorFunc> {
    flat("positions", x)?;
    let out = buffer("positions", &[found], DType::I64);
    find("positions", x, &out, found, |at, next| {
        store(&out, &[next], at[0].clone().cast(DType::I64))
    })
}

/// The indices of the elements that are not zero, of which there are `found`: `int64[rank, found]`, in the
/// order of the elements. Parameters: the tensor, the indices.
///
/// # Errors
/// [`Error::Input`] for a tensor without axes.
pub fn indices(x: &Operand, found: Dim) -> Result<TensorFunc> {
    let name = "indices";
    if x.shape.is_empty() {
        return Err(Error::input(format!("{name}: {x} has no axes")));
    }
    let out = buffer(name, &[x.rank().into(), found], DType::I64);
    find(name, x, &out, found, |at, next| {
        let rows = at
            .iter()
            .zip(0..)
            .map(|(i, axis)| store(&out, &[&Expr::i32(axis), next], i.clone().cast(DType::I64)));
        Stmt::seq(rows)
    })
}

/// Calls a statement for the elements that are not zero, with the indices of each and its number.
fn find(
    name: &str,
    x: &Operand,
    out: &Buffer,
    found: Dim,
    put: impl FnOnce(&[Expr], &Expr) -> Stmt,
) -> Result<TensorFunc> {
    let from = buffer("x", &x.shape, x.dtype);
    let next = one_cell("next", DType::I32);
    let loops: Vec<Var> = x.shape.iter().map(|_| Var::index("i")).collect();
    let at: Vec<Expr> = loops.iter().map(Var::expr).collect();
    let counts = counts(&from, &at.iter().collect::<Vec<_>>());
    // An element that does not count is put, too: the next one takes its place. So there is no branch
    // that depends on an element.
    let put = with("number", get(&next), |number| {
        let room = number.clone().greater_equal(0).and(number.clone().less(found.expr()));
        Stmt::guard(room, put(&at, number))
    });
    let visit = Stmt::seq([put, set(&next, get(&next) + counts.cast(DType::I32))]);
    let all = loops
        .iter()
        .zip(&x.shape)
        .rev()
        .fold(visit, |body, (var, extent)| Stmt::serial(var, extent.expr(), body));
    block(name, &[&from, out], vec![next.clone()], Stmt::seq([set(&next, zero()), all]))
}

/// How many numbers there are from `start` up to `limit`, in steps of `delta`: `int64[1]`. Parameters:
/// the three, without axes; the count. A step of zero gives none.
///
/// # Errors
/// [`Error::Unsupported`] for `bool`.
pub fn range_count(dtype: DType) -> Result<TensorFunc> {
    let name = "range_count";
    require_number(name, dtype)?;
    let [start, limit, delta] = ["start", "limit", "delta"].map(|name| buffer(name, &[], dtype));
    let out = one_cell("count", DType::I64);
    let none = Scalar::Int(0).expr(dtype);
    let zero_step = load(&delta, &[]).equal(none.clone());
    let count = if dtype.is_float() {
        let work = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let count = (load(&limit, &[]).cast(work) - load(&start, &[]).cast(work))
            / load(&delta, &[]).cast(work);
        let count = Expr::intrin(tilewright_ir::Intrin::Ceil, vec![count]);
        count.max(Expr::float(0.0, work)).min(Expr::float(2f64.powi(31), work)).cast(DType::I64)
    } else {
        let one = Expr::int(1, DType::I64);
        let up = load(&delta, &[]).cast(DType::I64).greater(Expr::int(0, DType::I64));
        // Never zero, so that the quotient exists; what it gives for zero is not used.
        let step = Expr::select(zero_step.clone(), one.clone(), load(&delta, &[]).cast(DType::I64));
        let edge = Expr::select(up, Expr::int(-1, DType::I64), one);
        let span = load(&limit, &[]).cast(DType::I64) - load(&start, &[]).cast(DType::I64);
        (span + step.clone() + edge).floordiv(step).max(Expr::int(0, DType::I64))
    };
    let body = Stmt::if_else(zero_step, set(&out, Expr::int(0, DType::I64)), set(&out, count));
    block(name, &[&start, &limit, &delta, &out], Vec::new(), body)
}
