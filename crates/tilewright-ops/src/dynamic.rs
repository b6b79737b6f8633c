//! Results whose sizes data decide: how many elements count, and then which ones.
//!
//! A function has results of the shapes that its caller says, so that each of these comes in two: one
//! counts, and the other is called with that count as a size. Nothing is larger than what is found.
//! All of them are right for operands without elements, too.

use tilewright_ir::control::TAKES_EMPTY;
use tilewright_ir::{Attr, Buffer, DType, Dim, Error, Expr, Result, Stmt, TensorFunc};

use crate::loops::{cells, each, get, load, one_cell, set, store};
use crate::operand::{Operand, Scalar, before, require_number, unequal, unsupported_type};

fn zero() -> Expr {
    Expr::i32(0)
}

fn buffer(name: &str, shape: &[Dim], dtype: DType) -> Buffer {
    Buffer::new(name, shape.iter().map(|d| d.expr()).collect::<Vec<_>>(), dtype)
}

/// A function of one block.
fn block(name: &str, params: &[&Buffer], allocs: Vec<Buffer>, body: Stmt) -> Result<TensorFunc> {
    let mut func = cells(name, params, &[], allocs, |_| body)?;
    func.attrs.insert(TAKES_EMPTY.into(), Attr::Int(1));
    Ok(func)
}

fn flat(name: &str, x: &Operand) -> Result<Dim> {
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

/// Which rows of a matrix are the first of their kind, and the number of the kind of each row: in the
/// order of the rows, or where `sorted` in the order of their elements, column by column. `NaN` is equal
/// to itself and comes after all numbers, as in numpy. Parameters:
/// the matrix `[n, m]`, whether each row is a first one `bool[n]`, the numbers `int64[n]`. Takes time
/// in proportion to the square of the number of rows.
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
    let (order, seen) = (one_cell("order", DType::I32), one_cell("seen", DType::I32));

    let is_first = each("i", n, |i| {
        let before = each("j", n, |j| {
            let here = Stmt::seq([
                compare_rows(&from, m, j, i, &order),
                Stmt::guard(get(&order).equal(0), set(&seen, Expr::i32(1))),
            ]);
            Stmt::guard(j.clone().less(i).and(get(&seen).equal(0)), here)
        });
        let store = Stmt::store(&first, vec![i.clone()], get(&seen).equal(0));
        Stmt::seq([set(&seen, zero()), before, store])
    });
    let numbers = each("i", n, |i| {
        let more =
            Stmt::store(&kind, vec![i.clone()], load(&kind, &[i]) + Expr::int(1, DType::I64));
        let none = Stmt::store(&kind, vec![i.clone()], Expr::int(0, DType::I64));
        let body = if sorted {
            each("j", n, |j| {
                let less = Stmt::guard(get(&order).less(0), more);
                Stmt::guard(
                    load(&first, &[j]),
                    Stmt::seq([compare_rows(&from, m, j, i, &order), less]),
                )
            })
        } else {
            // The kinds that come before the first row like this one.
            each("j", n, |j| {
                let same = set(&seen, Expr::i32(1));
                let here = Stmt::if_else(get(&order).equal(0), same, more);
                let open = load(&first, &[j]).and(get(&seen).equal(0));
                Stmt::guard(open, Stmt::seq([compare_rows(&from, m, j, i, &order), here]))
            })
        };
        Stmt::seq([set(&seen, zero()), none, body])
    });
    let body = Stmt::seq([is_first, numbers]);
    block(name, &[&from, &first, &kind], vec![order, seen], body)
}

/// Sets `order` to less than zero, zero or more where row `a` of a matrix of `m` columns is less than row
/// `b`, equal to it, or more.
fn compare_rows(from: &Buffer, m: Dim, a: &Expr, b: &Expr, order: &Buffer) -> Stmt {
    let columns = each("c", m, |c| {
        let less = set(order, Expr::i32(-1));
        let more =
            Stmt::guard(before(load(from, &[b, c]), load(from, &[a, c])), set(order, Expr::i32(1)));
        let decide = Stmt::if_else(before(load(from, &[a, c]), load(from, &[b, c])), less, more);
        Stmt::guard(get(order).equal(0), decide)
    });
    Stmt::seq([set(order, zero()), columns])
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
