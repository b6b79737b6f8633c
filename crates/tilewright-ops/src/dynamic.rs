//! Results whose sizes data decide: how many elements count, and then which ones.
//!
//! A function has results of the shapes that its caller says, so that each of these comes in two: one
//! counts, and the other is called with that count as a size. Nothing is larger than what is found.
//! All of them are right for operands without elements, too.

use tilewright_ir::control::TAKES_EMPTY;
use tilewright_ir::{Attr, Buffer, DType, Dim, Error, Expr, Result, Stmt, TensorFunc};

use crate::loops::{cells, each, get, load, one_cell, set, store};
use crate::operand::{Operand, Scalar, require_number, unequal, unsupported_type};

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
fn counts(x: &Buffer, at: &Expr) -> Expr {
    let value = Expr::load(x, vec![at.clone()]);
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
    let more = set(&out, get(&out) + Expr::int(1, DType::I64));
    let body = Stmt::seq([
        set(&out, Expr::int(0, DType::I64)),
        each("i", n, |i| Stmt::guard(counts(&from, i), more)),
    ]);
    block("count", &[&from, &out], Vec::new(), body)
}

/// The positions of the elements of a list that are not zero, of which there are `found`: `int64`, in
/// order. Parameters: the list, the positions.
///
/// # Errors
/// As [`count`].
pub fn positions(x: &Operand, found: Dim) -> Result<TensorFunc> {
    let n = flat("positions", x)?;
    let (from, out) = (buffer("x", &x.shape, x.dtype), buffer("positions", &[found], DType::I64));
    let next = one_cell("next", DType::I32);
    let body = Stmt::seq([
        set(&next, zero()),
        each("i", n, |i| {
            let room = get(&next).less(found.expr());
            let put = Stmt::store(&out, vec![get(&next)], i.clone().cast(DType::I64));
            let put = Stmt::seq([put, set(&next, get(&next) + 1)]);
            Stmt::guard(counts(&from, i), Stmt::guard(get(&next).greater_equal(0).and(room), put))
        }),
    ]);
    block("positions", &[&from, &out], vec![next], body)
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

/// What [`non_max_suppression`] works on.
#[derive(Clone, Debug)]
pub struct Suppression {
    /// `[B, N, 4]`: two corners of each box, or its centre and extents.
    pub boxes: Operand,
    /// `[B, C, N]`: the scores of the boxes in each class.
    pub scores: Operand,
    /// Most boxes of a class.
    pub most: Dim,
    /// Whether boxes are given by their centres.
    pub centred: bool,
}

/// The boxes of each class that are kept: again and again the one with the best score above a limit that
/// overlaps no better one by more than another limit; of equal scores the first one. Parameters: boxes,
/// scores, the limit of the overlap `float32[1]`, that of the scores `float32[1]`, and the positions
/// `int64[B, C, most]`, which are -1 where there is no box.
///
/// # Errors
/// [`Error::Input`] where shapes do not fit, [`Error::Unsupported`] for other types than `float32`.
pub fn non_max_suppression(p: &Suppression) -> Result<TensorFunc> {
    let name = "non_max_suppression";
    let f = DType::F32;
    if p.boxes.dtype != f || p.scores.dtype != f {
        return Err(unsupported_type(name, p.boxes.dtype, "float32"));
    }
    let (&[b, n, four], &[b2, c, n2]) = (&p.boxes.shape[..], &p.scores.shape[..]) else {
        return Err(Error::input(format!("{name}: {} and {} do not fit", p.boxes, p.scores)));
    };
    if four != 4 || b != b2 || n != n2 {
        let error = Error::input(format!("{name}: {} and {} do not fit", p.boxes, p.scores));
        return Err(unequal(error, [(b, b2), (n, n2)]));
    }
    let boxes = buffer("boxes", &p.boxes.shape, f);
    let scores = buffer("scores", &p.scores.shape, f);
    let (overlap, least) = (one_cell("overlap", f), one_cell("least", f));
    let keep = buffer("keep", &[b, c, p.most], DType::I64);
    let gone = buffer("gone", &[n], DType::I32);
    let (best, top) = (one_cell("best", DType::I32), one_cell("top", f));
    let chosen = Buffer::with_extents("chosen", &[4], f);
    let body = each("b", b, |b| {
        each("c", c, |c| {
            let start = each("i", n, |i| {
                let out = load(&scores, &[b, c, i]).greater(get(&least));
                let flag = Expr::select(out, zero(), Expr::i32(1));
                Stmt::store(&gone, vec![i.clone()], flag)
            });
            let rounds = each("s", p.most, |s| {
                let find = each("i", n, |i| {
                    let values = (0..4).map(|k| {
                        let corner = load(&boxes, &[b, i, &Expr::int(k, DType::I32)]);
                        Stmt::store(&chosen, vec![Expr::int(k, DType::I32)], corner)
                    });
                    let take = Stmt::seq(
                        [set(&best, i.clone()), set(&top, load(&scores, &[b, c, i]))]
                            .into_iter()
                            .chain(values),
                    );
                    let better =
                        get(&best).less(0).or(load(&scores, &[b, c, i]).greater(get(&top)));
                    Stmt::guard(is_open(i, &gone), Stmt::guard(better, take))
                });
                let at = vec![b.clone(), c.clone(), s.clone()];
                let none = Stmt::store(&keep, at.clone(), Expr::int(-1, DType::I64));
                let put = Stmt::store(&keep, at, get(&best).cast(DType::I64));
                let drop = each("i", n, |i| {
                    let area = shared(
                        &|k| Expr::load(&chosen, vec![Expr::int(k, DType::I32)]),
                        &|k| load(&boxes, &[b, i, &Expr::int(k, DType::I32)]),
                        p.centred,
                    );
                    let over = area.greater(get(&overlap)).or(i.clone().equal(get(&best)));
                    Stmt::guard(
                        is_open(i, &gone),
                        Stmt::guard(over, store(&gone, &[i], Expr::i32(1))),
                    )
                });
                let found = Stmt::guard(get(&best).greater_equal(0), Stmt::seq([put, drop]));
                Stmt::seq([set(&best, Expr::i32(-1)), find, none, found])
            });
            Stmt::seq([start, rounds])
        })
    });
    let params = [&boxes, &scores, &overlap, &least, &keep];
    block(name, &params, vec![gone, best, top, chosen], body)
}

fn is_open(i: &Expr, gone: &Buffer) -> Expr {
    Expr::load(gone, vec![i.clone()]).equal(0)
}

/// The four numbers of a box.
type Corners<'a> = &'a dyn Fn(i64) -> Expr;

/// The low and the high end of a box along its first or second axis. A centred box is given by its middle
/// and its extents.
fn ends(corners: Corners, axis: i64, centred: bool) -> (Expr, Expr) {
    let (first, second) = (corners(axis), corners(axis + 2));
    if centred {
        let extent = second * Expr::float(0.5, DType::F32);
        (first.clone() - extent.clone(), first + extent)
    } else {
        (first.clone().min(second.clone()), first.max(second))
    }
}

fn box_area(corners: Corners, centred: bool) -> Expr {
    let ((a, b), (c, d)) = (ends(corners, 0, centred), ends(corners, 1, centred));
    (b - a) * (d - c)
}

/// How far two boxes lie over one another along an axis.
fn overlap_along(a: Corners, b: Corners, axis: i64, centred: bool) -> Expr {
    let ((a, b), (c, d)) = (ends(a, axis, centred), ends(b, axis, centred));
    (b.min(d) - a.max(c)).max(Expr::float(0.0, DType::F32))
}

/// The part of the union of two boxes that both share.
fn shared(a: Corners, b: Corners, centred: bool) -> Expr {
    let both = overlap_along(a, b, 0, centred) * overlap_along(a, b, 1, centred);
    let all = box_area(a, centred) + box_area(b, centred) - both.clone();
    // Boxes without an area share nothing.
    let some = all
        .clone()
        .greater(Expr::float(0.0, DType::F32))
        .and(both.clone().greater(Expr::float(0.0, DType::F32)));
    Expr::select(
        some.clone(),
        both / Expr::select(some, all, Expr::float(1.0, DType::F32)),
        Expr::float(0.0, DType::F32),
    )
}
