//! The best elements along an axis, by a heap.
//!
//! The first `k` elements of a row become a heap with the worst of them at its root (J. W. J.
//! Williams, *Heapsort*, 1964; built bottom up as Floyd does). Each further element that comes
//! before the root takes its place and sinks. At the end the root goes last, again and again, as in
//! heapsort. A value of 32 bits or less and its position are one number, so that one comparison decides. A row
//! of `n` elements takes `O(n log k)` steps, and no memory but the results, which hold the heap. Few elements of a long row come before the root: whether one of a chunk does is asked
//! first, by a loop of comparisons only, which runs in vectors.

use tilewright_ir::dim::Integer;
use tilewright_ir::{Buffer, DType, Dim, Error, Expr, Result, Stmt, TensorFunc, Var};

use crate::keys::{self, rank};
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
        let (from, values, positions) = (from.clone(), values.clone(), positions.clone());
        let cells = Cells::of(values.dtype());
        let heap =
            Heap { cells, positions, node, found, at, axis, k, largest, from, extent, values };
        heap.select()
    })
}

/// How many elements are compared with the root before one of them is taken in.
const CHUNK: usize = 16;

/// The heap of one row.
struct Heap {
    cells: Cells,
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
    /// The row's elements, and how many there are.
    from: Buffer,
    extent: Dim,
    /// The values of the result: cells that are pairs have them at once, others at the end.
    values: Buffer,
}

/// What a cell of the heap is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cells {
    /// A value beside its position.
    Pairs,
    /// One number in the place of the position, of which a greater one comes before.
    Keys,
}

impl Cells {
    fn of(dtype: DType) -> Cells {
        if dtype.bits <= 32 { Cells::Keys } else { Cells::Pairs }
    }
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

    /// The row's element at a place.
    fn element(&self, along: &Expr) -> Expr {
        Expr::load(&self.from, self.index(along))
    }

    fn put(&self, along: &Expr, value: Expr, position: Expr) -> Stmt {
        Stmt::seq([
            Stmt::store(&self.values, self.index(along), value),
            Stmt::store(&self.positions, self.index(along), position),
        ])
    }

    /// Puts an element of the row into a cell.
    fn put_element(&self, along: &Expr, at: &Expr) -> Stmt {
        match self.cells {
            Cells::Pairs => self.put(along, self.element(at), at.clone().cast(DType::I64)),
            Cells::Keys => Stmt::store(&self.positions, self.index(along), self.key(at)),
        }
    }

    /// The key of an element of the row.
    fn key(&self, at: &Expr) -> Expr {
        let rank = rank(&self.element(at));
        let rank = if self.largest { rank } else { Expr::int(-1, DType::I64) - rank };
        keys::key(rank, at)
    }

    /// The value of the element that is in a cell.
    fn value_in(&self, cell: &Expr) -> Expr {
        match self.cells {
            Cells::Pairs => self.value(cell),
            Cells::Keys => self.element(&self.position_of(&self.position(cell))),
        }
    }

    /// Where the element with a key is in its row.
    fn position_of(&self, key: &Expr) -> Expr {
        keys::position(key, self.extent)
    }

    /// Whether the first value comes before the second one wherever they stand: a strict weak
    /// order, in which all `NaN` are equal.
    fn before(&self, a: &Expr, b: &Expr) -> Expr {
        let (low, high) = if self.largest { (b, a) } else { (a, b) };
        before(low.clone(), high.clone())
    }

    /// Whether the element of the heap at `a` comes after the one at `b`: a total order.
    fn worse(&self, a: &Expr, b: &Expr) -> Expr {
        if self.cells == Cells::Keys {
            return self.position(a).less(self.position(b));
        }
        let (x, y) = (self.value(a), self.value(b));
        let later = self.position(a).greater(self.position(b));
        self.before(&y, &x).or((!self.before(&x, &y)).and(later))
    }

    /// Exchanges two elements.
    fn swap(&self, a: &Expr, b: &Expr) -> Stmt {
        let [p, q] = ["p", "q"].map(|name| Var::new(name, DType::I64));
        let of_positions = [(q.clone(), self.position(b)), (p.clone(), self.position(a))];
        if self.cells == Cells::Keys {
            let put = |at: &Expr, v: &Var| Stmt::store(&self.positions, self.index(at), v.expr());
            return bound(of_positions, Stmt::seq([put(a, &q), put(b, &p)]));
        }
        let dtype = self.values.dtype();
        let [u, v] = ["u", "v"].map(|name| Var::new(name, dtype));
        let body = Stmt::seq([self.put(a, v.expr(), q.expr()), self.put(b, u.expr(), p.expr())]);
        bound(of_positions.into_iter().chain([(v, self.value(b)), (u, self.value(a))]), body)
    }

    /// Lets an element sink in the heap of the first `size` cells until none below it is worse.
    fn sink(&self, from: Expr, size: &Expr) -> Stmt {
        let step = |_: &Expr| {
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
        };
        // A heap of k nodes has this many levels below its root. One of any size has no more than 30, and few of
        // those as a rule.
        let steps = match self.k.known() {
            Some(k) => each("step", k.max(1).ilog2() as usize, step),
            None => each("steps", 6usize, |_| {
                let goes_on = (get(&self.node).max(0) * 2 + 1).less(size.clone());
                Stmt::guard(goes_on, each("step", 5usize, step))
            }),
        };
        Stmt::seq([set(&self.node, from), steps])
    }

    /// Takes in one element. It comes later than all that are there, so only its value may put it before
    /// them.
    fn take(&self, at: &Expr) -> Stmt {
        let root = Expr::i32(0);
        let put = self.put_element(&root, at);
        let comes_before = match self.cells {
            Cells::Pairs => self.before(&self.element(at), &self.value(&root)),
            Cells::Keys => self.key(at).greater(self.position(&root)),
        };
        Stmt::guard(comes_before, Stmt::seq([put, self.sink(root, &self.k.expr())]))
    }

    /// Takes in the elements of a row that are not in the heap yet.
    fn stream(&self) -> Stmt {
        let root = Expr::i32(0);
        let found = &self.found;
        let chunks = (self.extent - self.k).floordiv(CHUNK);
        let left = self.extent - self.k - chunks * CHUNK;
        let rest = self.k.expr() + (chunks * CHUNK).expr();
        Stmt::seq([
            runs("chunk", chunks, |chunk| {
                let at = |step: &Expr| self.k.expr() + chunk.clone() * CHUNK as i64 + step;
                let all = each("taken", CHUNK, |taken| self.take(&at(taken)));
                // One value for all of them, so that the comparisons are those of vectors.
                let seen = with("worst", self.value_in(&root), |worst| {
                    each("ahead", CHUNK, |ahead| {
                        let comes_before = self.before(&self.element(&at(ahead)), worst);
                        set(found, get(found).max(comes_before.cast(DType::I32)))
                    })
                });
                let taken = Stmt::guard(get(found).greater(Expr::i32(0)), all);
                Stmt::seq([set(found, Expr::i32(0)), seen, taken])
            }),
            runs("more", left, |more| self.take(&(rest.clone() + more))),
        ])
    }

    /// The whole computation for a row.
    fn select(&self) -> Stmt {
        let (k, half) = (self.k.expr(), self.k.floordiv(2));
        let root = Expr::i32(0);
        if self.k == 0 {
            return each("first", self.k, |at| {
                self.put(at, self.element(at), at.clone().cast(DType::I64))
            });
        }
        let fill = each("first", self.k, |at| self.put_element(at, at));
        let build = runs("inner", half, |inner| self.sink(half.expr() - 1 - inner, &k));
        let sort = runs("last", self.k - 1, |last| {
            let size = k.clone() - 1 - last;
            Stmt::seq([self.swap(&root, &size), self.sink(root.clone(), &size)])
        });
        let heap = [fill, build, self.stream(), sort];
        let read = (self.cells == Cells::Keys).then(|| {
            each("best", self.k, |at| {
                with("position", self.position_of(&self.position(at)), |position| {
                    self.put(at, self.element(position), position.clone())
                })
            })
        });
        Stmt::seq(heap.into_iter().chain(read))
    }
}

/// A statement behind bindings, the last of which is outermost.
fn bound(values: impl IntoIterator<Item = (Var, Expr)>, body: Stmt) -> Stmt {
    values.into_iter().fold(body, |body, (var, value)| Stmt::let_in(&var, value, body))
}

/// A loop that runs so often; nothing where that is never, as it would have nothing to bind.
fn runs(name: &str, times: Dim, body: impl FnOnce(&Expr) -> Stmt) -> Stmt {
    if times == 0 { Stmt::nop() } else { each(name, times, body) }
}
