//! The best elements along an axis, by a heap.
//!
//! The first `k` elements of a row become a heap with the worst of them at its root (J. W. J.
//! Williams, *Heapsort*, 1964; built bottom up as Floyd does). Each further element that comes
//! before the root takes its place and sinks. At the end the root goes last, again and again, as in
//! heapsort. A row of `n` elements takes `O(n log k)` steps, and no memory but the results, which
//! hold the heap. Few elements of a long row come before the root: whether one of a chunk does is asked
//! first, by a loop of comparisons only, which runs in vectors.

use tilewright_ir::dim::Integer;
use tilewright_ir::{Buffer, DType, Dim, Error, Expr, Result, Stmt, TensorFunc, Var};

use crate::loops::{buffers, cells_along, each, get, one_cell, set, with};
use crate::operand::{Operand, before, normalize_axis, require_number};
use crate::te;

/// The `k` largest or smallest elements along an axis, the best first; of equal ones that with the
/// lower position. `NaN` is larger than every number, and equal to itself. Parameters: `x`, the
/// values, their `int64` positions.
///
/// # Errors
/// [`Error::Input`] if there is no such axis, or it has less than `k` elements, or there are more
/// than 2^31 - 1 elements; [`Error::Unsupported`] for `bool`. Where one of both is open, a run ends
/// that asks for more than there are.
pub fn top_k(x: &Operand, axis: i64, k: impl Into<Dim>, largest: bool) -> Result<TensorFunc> {
    let (name, k) = ("top_k", k.into());
    require_number(name, x.dtype)?;
    let axis = normalize_axis(name, axis, x.rank())?;
    let extent = x.shape[axis];
    if Integer::from(extent).is_less(k) == Some(true) {
        return Err(Error::input(format!("{name}: {k} of {extent} elements along axis {axis}")));
    }
    let mut shape = x.shape.clone();
    shape[axis] = k;
    let tensors = [
        x.placeholder("x"),
        te::placeholder("values", &shape, x.dtype),
        te::placeholder("positions", &shape, DType::I64),
    ];
    let [from, values, positions] = buffers(tensors)?;
    let rows: Vec<(usize, Dim)> =
        x.shape.iter().copied().enumerate().filter(|(a, _)| *a != axis).collect();
    let [node, found] = ["node", "found"].map(|n| one_cell(n, DType::I32));
    let allocs = vec![node.clone(), found.clone()];
    cells_along(name, &[&from, &values, &positions], &rows, allocs, |row| {
        let mut at = row.to_vec();
        at.insert(axis, Expr::i32(0));
        let (values, positions) = (values.clone(), positions.clone());
        Heap { values, positions, node, found, at, axis, k, largest }.select(&from, extent)
    })
}

/// How many elements are compared with the root before one of them is taken in.
const CHUNK: usize = 16;

/// The heap of one row.
struct Heap {
    values: Buffer,
    positions: Buffer,
    /// One cell: the node that sinks, or the size of the heap once it has come to rest.
    node: Buffer,
    /// One cell: whether a chunk has an element that comes before the root.
    found: Buffer,
    /// The row: indices, of which the one along the axis is to be filled in.
    at: Vec<Expr>,
    axis: usize,
    /// Number of elements wanted.
    k: Dim,
    largest: bool,
}

impl Heap {
    fn index(&self, along: &Expr) -> Vec<Expr> {
        let mut index = self.at.clone();
        index[self.axis] = along.clone();
        index
    }

    fn value(&self, along: &Expr) -> Expr {
        Expr::load(&self.values, self.index(along))
    }

    fn position(&self, along: &Expr) -> Expr {
        Expr::load(&self.positions, self.index(along))
    }

    fn put(&self, along: &Expr, value: Expr, position: Expr) -> Stmt {
        Stmt::seq([
            Stmt::store(&self.values, self.index(along), value),
            Stmt::store(&self.positions, self.index(along), position),
        ])
    }

    /// Whether the first value comes before the second one wherever they stand: a strict weak
    /// order, in which all `NaN` are equal.
    fn before(&self, a: &Expr, b: &Expr) -> Expr {
        let (low, high) = if self.largest { (b, a) } else { (a, b) };
        before(low.clone(), high.clone())
    }

    /// Whether the element of the heap at `a` comes after the one at `b`: a total order.
    fn worse(&self, a: &Expr, b: &Expr) -> Expr {
        let (x, y) = (self.value(a), self.value(b));
        let later = self.position(a).greater(self.position(b));
        self.before(&y, &x).or((!self.before(&x, &y)).and(later))
    }

    /// Exchanges two elements.
    fn swap(&self, a: &Expr, b: &Expr) -> Stmt {
        let dtype = self.values.dtype();
        let [u, v] = ["u", "v"].map(|name| Var::new(name, dtype));
        let [p, q] = ["p", "q"].map(|name| Var::new(name, DType::I64));
        let body = Stmt::seq([self.put(a, v.expr(), q.expr()), self.put(b, u.expr(), p.expr())]);
        [(q, self.position(b)), (p, self.position(a)), (v, self.value(b)), (u, self.value(a))]
            .into_iter()
            .fold(body, |body, (var, value)| Stmt::let_in(&var, value, body))
    }

    /// Lets an element sink in the heap of the first `size` cells until none below it is worse.
    fn sink(&self, from: Expr, size: &Expr) -> Stmt {
        // A heap of k nodes has this many levels below its root; one of any size, no more than these.
        let levels = self.k.known().map_or(30, |k| k.max(1).ilog2());
        let steps = each("step", levels as usize, |_| {
            with("n", get(&self.node).max(0), |node| {
                let below = with("left", node.clone() * 2 + 1, |left| {
                    // At the end of the heap the right child is the left one again.
                    with("right", (left.clone() + 1).min(size.clone() - 1), |right| {
                        let worse = self.worse(right, left);
                        let child = Expr::select(worse, right.clone(), left.clone());
                        with("child", child, |child| {
                            let moved = [self.swap(node, child), set(&self.node, child.clone())];
                            let done = set(&self.node, size.clone());
                            Stmt::if_else(self.worse(child, node), Stmt::seq(moved), done)
                        })
                    })
                });
                Stmt::guard((node.clone() * 2 + 1).less(size.clone()), below)
            })
        });
        Stmt::seq([set(&self.node, from), steps])
    }

    /// Takes in one element. It comes later than all that are there, so only its value may put it before
    /// them.
    fn take(&self, from: &Buffer, at: &Expr) -> Stmt {
        let root = Expr::i32(0);
        let put = self.put(&root, self.load_along(at, from), at.clone().cast(DType::I64));
        Stmt::guard(
            self.before(&self.load_along(at, from), &self.value(&root)),
            Stmt::seq([put, self.sink(root, &self.k.expr())]),
        )
    }

    /// Takes in the elements of a row of `extent` that are not in the heap yet.
    fn stream(&self, from: &Buffer, extent: Dim) -> Stmt {
        let root = Expr::i32(0);
        let found = &self.found;
        let chunks = (extent - self.k).floordiv(CHUNK);
        let left = extent - self.k - chunks * CHUNK;
        let rest = self.k.expr() + (chunks * CHUNK).expr();
        Stmt::seq([
            runs("chunk", chunks, |chunk| {
                let at = |step: &Expr| self.k.expr() + chunk.clone() * CHUNK as i64 + step;
                let all = each("taken", CHUNK, |taken| self.take(from, &at(taken)));
                Stmt::seq([
                    set(found, Expr::i32(0)),
                    each("ahead", CHUNK, |ahead| {
                        set(
                            found,
                            get(found).max(
                                self.before(&self.load_along(&at(ahead), from), &self.value(&root))
                                    .cast(DType::I32),
                            ),
                        )
                    }),
                    Stmt::guard(get(found).greater(Expr::i32(0)), all),
                ])
            }),
            runs("more", left, |more| self.take(from, &(rest.clone() + more))),
        ])
    }

    fn load_along(&self, along: &Expr, from: &Buffer) -> Expr {
        Expr::load(from, self.index(along))
    }

    /// The whole computation for a row of `extent` elements of `from`.
    fn select(&self, from: &Buffer, extent: Dim) -> Stmt {
        let (k, half) = (self.k.expr(), self.k.floordiv(2));
        let root = Expr::i32(0);
        let fill = each("first", self.k, |at| {
            self.put(at, Expr::load(from, self.index(at)), at.clone().cast(DType::I64))
        });
        if self.k == 0 {
            return fill;
        }
        let build = runs("inner", half, |inner| self.sink(half.expr() - 1 - inner, &k));
        let sort = runs("last", self.k - 1, |last| {
            let size = k.clone() - 1 - last;
            Stmt::seq([self.swap(&root, &size), self.sink(root.clone(), &size)])
        });
        Stmt::seq([fill, build, self.stream(from, extent), sort])
    }
}

/// A loop that runs so often; nothing where that is never, as it would have nothing to bind.
fn runs(name: &str, times: Dim, body: impl FnOnce(&Expr) -> Stmt) -> Stmt {
    if times == 0 { Stmt::nop() } else { each(name, times, body) }
}
