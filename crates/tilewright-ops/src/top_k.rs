//! The best elements along an axis, by a heap.
//!
//! The first `k` elements of a row become a heap with the worst of them at its root (J. W. J.
//! Williams, *Heapsort*, 1964; built bottom up as Floyd does). Each further element that comes
//! before the root takes its place and sinks. At the end the root goes last, again and again, as in
//! heapsort. A row of `n` elements takes `O(n log k)` steps, and no memory but the results, which
//! hold the heap. Few elements of a long row come before the root: whether one of a chunk does is asked
//! first, by a loop of comparisons only, which runs in vectors.

use tilewright_ir::dim::Integer;
use tilewright_ir::well_formed::check_tensor;
use tilewright_ir::{
    Block, Buffer, DType, Dim, Error, Expr, Intrin, IterKind, IterVar, Param, Range, Result, Stmt,
    TensorFunc, Var,
};

use crate::loops::size_params;
use crate::operand::{Operand, normalize_axis, require_number};
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
    tensors.iter().try_for_each(te::check_type)?;
    let [from, values, positions] = tensors.map(|t| t.buffer().clone());
    let mut params = [&from, &values, &positions].map(Param::tensor).to_vec();
    params.extend(size_params(&[&from, &values, &positions], &[]));
    let rows: Vec<(usize, Var, Var)> = (0..x.rank())
        .filter(|&a| a != axis)
        .map(|a| (a, Var::index(format!("i{a}")), Var::index(format!("v{a}"))))
        .collect();
    let mut at = vec![Expr::i32(0); x.rank()];
    for (a, _, v) in &rows {
        at[*a] = v.expr();
    }
    let [node, found] = ["node", "found"].map(|n| Buffer::with_extents(n, &[1], DType::I32));
    let allocs = vec![node.clone(), found.clone()];
    let heap = Heap { values, positions, node, found, at, axis, k, largest };
    let mut block = Block::new(name, heap.select(&from, extent));
    block.allocs = allocs;
    let whole = |a: usize| x.shape[a].expr();
    block.iters = rows
        .iter()
        .map(|(a, _, v)| IterVar {
            var: v.clone(),
            domain: Range::upto(whole(*a)),
            kind: IterKind::Spatial,
        })
        .collect();
    let bindings = rows.iter().map(|(_, i, _)| i.expr()).collect();
    let body = Stmt::block(bindings, Expr::bool(true), block);
    let body = rows.iter().rev().fold(body, |s, (a, i, _)| Stmt::serial(i, whole(*a), s));
    let func = TensorFunc::new(params, Stmt::nop()).with_root(Vec::new(), body);
    check_tensor(name, &func)?;
    Ok(func)
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
        let less = low.clone().less(high.clone());
        match a.dtype().is_float() {
            false => less,
            true => {
                let nan = |e: &Expr| Expr::intrin(Intrin::IsNan, vec![e.clone()]);
                less.or(nan(high).and(!nan(low)))
            }
        }
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
        let here = || vec![Expr::i32(0)];
        let [step, node, left, right, child] =
            ["step", "n", "left", "right", "child"].map(Var::index);
        let below =
            Expr::select(self.worse(&right.expr(), &left.expr()), right.expr(), left.expr());
        let moved = Stmt::seq([
            self.swap(&node.expr(), &child.expr()),
            Stmt::store(&self.node, here(), child.expr()),
        ]);
        let done = Stmt::store(&self.node, here(), size.clone());
        let body = Stmt::if_else(self.worse(&child.expr(), &node.expr()), moved, done);
        // At the end of the heap the right child is the left one again.
        let next = (left.expr() + 1).min(size.clone() - 1);
        let body = Stmt::let_in(&child, below, body);
        let body = Stmt::let_in(&right, next, body);
        let body = Stmt::let_in(&left, node.expr() * 2 + 1, body);
        let body = Stmt::guard((node.expr() * 2 + 1).less(size.clone()), body);
        let body = Stmt::let_in(&node, Expr::load(&self.node, here()).max(0), body);
        // A heap of k nodes has this many levels below its root; one of any size, no more than these.
        let levels = i64::from(self.k.known().map_or(30, |k| k.max(1).ilog2()));
        Stmt::seq([
            Stmt::store(&self.node, here(), from),
            Stmt::serial(&step, Expr::int(levels, DType::I32), body),
        ])
    }

    /// Takes in the elements of a row of `extent` that are not in the heap yet.
    fn stream(&self, from: &Buffer, extent: Dim) -> Stmt {
        let root = Expr::i32(0);
        let load = |along: &Expr| Expr::load(from, self.index(along));
        // It comes later than all that are there, so only its value may put it before them.
        let comes = |at: &Expr| self.before(&load(at), &self.value(&root));
        let take = |at: &Expr| {
            let put = self.put(&root, load(at), at.clone().cast(DType::I64));
            Stmt::guard(comes(at), Stmt::seq([put, self.sink(root.clone(), &self.k.expr())]))
        };
        let [chunk, ahead, taken, more] = ["chunk", "ahead", "taken", "more"].map(Var::index);
        let chunks = (extent - self.k).floordiv(CHUNK);
        let left = extent - self.k - chunks * CHUNK;
        let found = || Expr::load(&self.found, vec![Expr::i32(0)]);
        let set = |value: Expr| Stmt::store(&self.found, vec![Expr::i32(0)], value);
        let chunk_size = || Expr::i32(CHUNK as i32);
        let at = |step: &Var| self.k.expr() + chunk.expr() * CHUNK as i64 + step.expr();
        let ask = set(found().max(comes(&at(&ahead)).cast(DType::I32)));
        let whole = Stmt::seq([
            set(Expr::i32(0)),
            Stmt::serial(&ahead, chunk_size(), ask),
            Stmt::guard(
                found().greater(Expr::i32(0)),
                Stmt::serial(&taken, chunk_size(), take(&at(&taken))),
            ),
        ]);
        let at = self.k.expr() + (chunks * CHUNK).expr() + more.expr();
        Stmt::seq([
            runs(chunks, Stmt::serial(&chunk, chunks.expr(), whole)),
            runs(left, Stmt::serial(&more, left.expr(), take(&at))),
        ])
    }

    /// The whole computation for a row of `extent` elements of `from`.
    fn select(&self, from: &Buffer, extent: Dim) -> Stmt {
        let (k, half) = (self.k.expr(), self.k.floordiv(2).expr());
        let root = Expr::i32(0);
        let [first, inner, last] = ["first", "inner", "last"].map(Var::index);
        let load = |along: &Expr| Expr::load(from, self.index(along));
        let at = first.expr();
        let fill = self.put(&at, load(&at), at.clone().cast(DType::I64));
        let fill = Stmt::serial(&first, k.clone(), fill);
        if self.k == 0 {
            return fill;
        }
        let build = self.sink(half.clone() - 1 - inner.expr(), &k);
        let build = Stmt::serial(&inner, half, build);
        let stream = self.stream(from, extent);
        let size = k.clone() - 1 - last.expr();
        let sort = Stmt::seq([self.swap(&root, &size), self.sink(root.clone(), &size)]);
        let sort = Stmt::serial(&last, k - 1, sort);
        Stmt::seq([fill, runs(self.k.floordiv(2), build), stream, runs(self.k - 1, sort)])
    }
}

/// A loop that runs so often; nothing where that is never, as it would have nothing to bind.
fn runs(times: Dim, body: Stmt) -> Stmt {
    if times == 0 { Stmt::nop() } else { body }
}
