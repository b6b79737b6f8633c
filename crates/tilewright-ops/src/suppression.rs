//! Boxes without those that lie over better ones.
//!
//! The boxes of a class become a heap (J. W. J. Williams, *Heapsort*, 1964), the best one at its root. It is
//! taken off again and again, and kept if it overlaps none of those that are kept. So `n` boxes of which `k`
//! are looked at until there are enough take `O(n + k log n)` steps, and `k` comparisons with what is kept,
//! which are loops for vectors.

use tilewright_ir::{Buffer, DType, Dim, Error, Expr, Intrin, Result, Stmt, TensorFunc, Var};

use crate::dynamic::{block, buffer};
use crate::keys::{self, rank};
use crate::loops::{Lets, each, get, load, one_cell, set, store, with};
use crate::operand::{Operand, call, unequal, unsupported_type};

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
    let cell = |name: &str| one_cell(name, DType::I32);
    let heap =
        Heap { keys: buffer("keys", &[n], DType::I64), n, size: cell("size"), node: cell("node") };
    let kept = Kept {
        parts: ["low_y", "high_y", "low_x", "high_x", "area"]
            .map(|name| buffer(name, &[p.most], f)),
        most: p.most,
        count: cell("count"),
        covered: cell("covered"),
    };
    let body = each("b", b, |b| {
        each("c", c, |c| {
            let fill = each("i", n, |i| {
                let score = load(&scores, &[b, c, i]);
                heap.append(&score, i, score.clone().greater(get(&least)))
            });
            let clear = each("s", p.most, |s| store(&keep, &[b, c, s], Expr::int(-1, DType::I64)));
            let look = each("look", n, |_| {
                let take = with("i", heap.best(), |i| {
                    let corner = |k: i64| load(&boxes, &[b, i, &Expr::int(k, DType::I32)]);
                    let put = |at: &Expr| store(&keep, &[b, c, at], i.clone().cast(DType::I64));
                    let (y, x) = (ends(&corner, 0, p.centred), ends(&corner, 1, p.centred));
                    Stmt::seq([heap.pop(), kept.consider([y, x], &get(&overlap), put)])
                });
                let room = get(&kept.count).less(p.most.expr());
                Stmt::guard(get(&heap.size).greater(0).and(room), take)
            });
            let start = [&heap.size, &kept.count].map(|cell| set(cell, Expr::i32(0)));
            Stmt::seq(start.into_iter().chain([fill, clear, heap.build(), look]))
        })
    });
    let params = [&boxes, &scores, &overlap, &least, &keep];
    let Heap { keys, size, node, .. } = heap;
    let Kept { parts, count, covered, .. } = kept;
    let allocs = [keys, size, node, count, covered].into_iter().chain(parts).collect();
    block(name, &params, allocs, body)
}

/// A heap of keys, the greatest at its root.
struct Heap {
    keys: Buffer,
    /// Most keys.
    n: Dim,
    size: Buffer,
    /// The node that sinks, or the size of the heap once it has come to rest.
    node: Buffer,
}

impl Heap {
    fn key(&self, at: &Expr) -> Expr {
        load(&self.keys, &[at])
    }

    /// A place in the heap, which is one of its memory, although that is not seen.
    fn within(&self, at: Expr) -> Expr {
        at.min(self.n.expr() - 1).max(0)
    }

    /// Puts a score with its position behind the others. It stays there where it counts.
    fn append(&self, score: &Expr, position: &Expr, counts: Expr) -> Stmt {
        let put = with("at", self.within(get(&self.size)), |at| {
            store(&self.keys, &[at], keys::key(rank(score), position))
        });
        Stmt::seq([put, set(&self.size, get(&self.size) + counts.cast(DType::I32))])
    }

    /// Makes a heap of what has been appended.
    fn build(&self) -> Stmt {
        with("half", get(&self.size).floordiv(2), |half| {
            let inner = Var::index("inner");
            Stmt::serial(&inner, half.clone(), self.sink(half.clone() - 1 - inner.expr()))
        })
    }

    /// The position in the root.
    fn best(&self) -> Expr {
        keys::position(&self.key(&Expr::i32(0)), self.n).cast(DType::I32)
    }

    /// Takes the root off.
    fn pop(&self) -> Stmt {
        let root = Expr::i32(0);
        let last = with("at", self.within(get(&self.size)), |at| {
            store(&self.keys, &[&root], self.key(at))
        });
        Stmt::seq([set(&self.size, get(&self.size) - 1), last, self.sink(root)])
    }

    /// Lets a key sink until none below it is greater.
    fn sink(&self, from: Expr) -> Stmt {
        let size = get(&self.size);
        let levels = Expr::i32(32) - call(Intrin::Clz, size.clone());
        let step = with("left", self.within(get(&self.node) * 2 + 1), |left| {
            // At the end of the heap the right child is the left one again.
            with("right", self.within((left.clone() + 1).min(size.clone() - 1)), |right| {
                let greater = self.key(right).greater(self.key(left));
                with("child", Expr::select(greater, right.clone(), left.clone()), |child| {
                    with("upper", self.within(get(&self.node)), |node| self.exchange(node, child))
                })
            })
        });
        let step = Stmt::guard((get(&self.node) * 2 + 1).less(size.clone()), step);
        let steps = Stmt::serial(&Var::index("level"), levels, step);
        Stmt::seq([set(&self.node, from), steps])
    }

    /// Exchanges a key with a greater one below it, which ends where there is none.
    fn exchange(&self, node: &Expr, child: &Expr) -> Stmt {
        with("above", self.key(node), |above| {
            with("below", self.key(child), |below| {
                let exchanged = [
                    store(&self.keys, &[node], below.clone()),
                    store(&self.keys, &[child], above.clone()),
                    set(&self.node, child.clone()),
                ];
                let done = set(&self.node, get(&self.size));
                Stmt::if_else(below.clone().greater(above.clone()), Stmt::seq(exchanged), done)
            })
        })
    }
}

/// The boxes of a class that are kept.
struct Kept {
    /// Their ends along both axes, low and high, and their areas.
    parts: [Buffer; 5],
    most: Dim,
    count: Buffer,
    /// Whether one of them overlaps another box.
    covered: Buffer,
}

impl Kept {
    /// Keeps a box, given its ends along both axes, if none of the others overlaps it by more than the limit;
    /// then runs a statement that sees its number.
    fn consider(
        &self,
        [(a, b), (c, d)]: [(Expr, Expr); 2],
        overlap: &Expr,
        then: impl FnOnce(&Expr) -> Stmt,
    ) -> Stmt {
        let mut lets = Lets(Vec::new());
        let [a, b, c, d] =
            [("y", a), ("to_y", b), ("x", c), ("to_x", d)].map(|(n, v)| lets.add(n, v));
        let area = (b.clone() - a.clone()) * (d.clone() - c.clone());
        let parts = [a, b, c, d].into_iter().chain([lets.add("extent", area)]);
        let parts: Vec<Expr> = parts.collect();
        let other = Var::index("other");
        let of_other: Vec<Expr> = self.parts.iter().map(|p| load(p, &[&other.expr()])).collect();
        let over = shared(&of_other, &parts).greater(overlap.clone()).cast(DType::I32);
        let compare = set(&self.covered, get(&self.covered).max(over));
        let others = get(&self.count).min(self.most.expr());
        let compare = Stmt::serial(&other, others, compare);
        let put = with("at", get(&self.count).min(self.most.expr() - 1).max(0), |at| {
            let stores = self.parts.iter().zip(parts).map(|(p, v)| store(p, &[at], v));
            let count = set(&self.count, get(&self.count) + 1);
            Stmt::seq(stores.chain([then(at), count]))
        });
        let put = Stmt::guard(get(&self.covered).equal(0), put);
        lets.around(Stmt::seq([set(&self.covered, Expr::i32(0)), compare, put]))
    }
}

/// The part of the union of two boxes that both share, given their ends and areas.
fn shared(a: &[Expr], b: &[Expr]) -> Expr {
    let none = Expr::float(0.0, DType::F32);
    let along = |low: usize, high: usize| {
        let high = a[high].clone().min(b[high].clone());
        (high - a[low].clone().max(b[low].clone())).max(none.clone())
    };
    let both = along(0, 1) * along(2, 3);
    let all = a[4].clone() + b[4].clone() - both.clone();
    // Boxes without an area share nothing.
    let some = all.clone().greater(none.clone()).and(both.clone().greater(none.clone()));
    let all = Expr::select(some.clone(), all, Expr::float(1.0, DType::F32));
    Expr::select(some, both / all, none)
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
