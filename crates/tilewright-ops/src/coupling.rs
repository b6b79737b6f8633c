//! Probabilities of classes from those of pairs of classes.
//!
//! For each pair `(i, j)` it is known how likely `i` is where one of both is right. The probabilities that fit
//! all pairs best are the minimum of a quadratic form, which is approached coordinate by coordinate (T.-F. Wu,
//! C.-J. Lin, R. C. Weng, *Probability estimates for multi-class classification by pairwise coupling*, 2004,
//! second approach). Like its users it stops where the gradient is small, at 0.005 over the number of classes,
//! or after a hundred rounds.

use tilewright_ir::{Buffer, DType, Dim, Error, Expr, Intrin, Result, Stmt, TensorFunc};

use crate::loops::{cells, each, get, load, one_cell, set, with};
use crate::operand::{Operand, call, unsupported_type};

/// Most rounds.
const ROUNDS: usize = 100;

/// See the module. Parameters: `[N, K, K]`, how likely the first class of each pair is; the probabilities
/// `[N, K]`.
///
/// # Errors
/// [`Error::Input`] for other shapes, [`Error::Unsupported`] for other types than `float32`.
pub fn coupled(pairs: &Operand) -> Result<TensorFunc> {
    let (name, f) = ("coupled", DType::F32);
    if pairs.dtype != f {
        return Err(unsupported_type(name, pairs.dtype, "float32"));
    }
    let (n, k) = match pairs.shape[..] {
        [n, k, l] if k == l && k != 0 => (n, k.fixed(name)?),
        _ => return Err(Error::input(format!("{name}: {pairs} are no pairs"))),
    };
    let from = Buffer::new("pairs", extents_of(&pairs.shape), f);
    let out = Buffer::new("out", extents_of(&[n, k.into()]), f);

    let rounds = Rounds {
        k,
        q: Buffer::with_extents("q", &[k as i64, k as i64], f),
        p: Buffer::with_extents("p", &[k as i64], f),
        qp: Buffer::with_extents("qp", &[k as i64], f),
        value: one_cell("value", f),
        worst: one_cell("worst", f),
    };
    let allocs = [&rounds.q, &rounds.p, &rounds.qp, &rounds.value, &rounds.worst];
    let allocs = allocs.map(Clone::clone).to_vec();
    cells(name, &[&from, &out], &[n], allocs, |row| {
        let store = each("t", k, |t| {
            Stmt::store(&out, vec![row[0].clone(), t.clone()], rounds.p.load([t.clone()]))
        });
        Stmt::seq([
            rounds.start(&|i, j| from.load([row[0].clone(), i.clone(), j.clone()])),
            each("round", ROUNDS, |_| rounds.round()),
            store,
        ])
    })
}

fn extents_of(shape: &[Dim]) -> Vec<Expr> {
    shape.iter().map(|d| d.expr()).collect::<Vec<_>>()
}

/// The memory of one row.
struct Rounds {
    /// Number of classes.
    k: usize,
    /// The quadratic form.
    q: Buffer,
    /// The probabilities.
    p: Buffer,
    /// The product of both.
    qp: Buffer,
    /// The value of the form.
    value: Buffer,
    /// How far the gradient is from that of the minimum.
    worst: Buffer,
}

impl Rounds {
    fn start(&self, pair: &dyn Fn(&Expr, &Expr) -> Expr) -> Stmt {
        each("t", self.k, |t| {
            let own = vec![t.clone(), t.clone()];
            let sums = each("j", self.k, |j| {
                let back = pair(j, t);
                let more = self.q.load(own.clone()) + back.clone() * back.clone();
                let both = number(0.0) - back * pair(t, j);
                let sum = Stmt::store(&self.q, own.clone(), more);
                let other = Stmt::store(&self.q, vec![t.clone(), j.clone()], both);
                Stmt::guard(j.clone().not_equal(t.clone()), Stmt::seq([sum, other]))
            });
            Stmt::seq([
                Stmt::store(&self.p, vec![t.clone()], number(1.0 / self.k as f64)),
                Stmt::store(&self.q, own.clone(), number(0.0)),
                sums,
                set(&self.worst, number(f64::from(f32::MAX))),
            ])
        })
    }

    /// One round, where the last one did not end near the minimum.
    fn round(&self) -> Stmt {
        let product = each("t", self.k, |t| {
            let sum = each("j", self.k, |j| {
                let more = load(&self.qp, &[t]) + load(&self.q, &[t, j]) * load(&self.p, &[j]);
                Stmt::store(&self.qp, vec![t.clone()], more)
            });
            let value = get(&self.value) + load(&self.p, &[t]) * load(&self.qp, &[t]);
            let clear = Stmt::store(&self.qp, vec![t.clone()], number(0.0));
            Stmt::seq([clear, sum, set(&self.value, value)])
        });
        let measure = each("t", self.k, |t| {
            let off = call(Intrin::Abs, load(&self.qp, &[t]) - get(&self.value));
            set(&self.worst, get(&self.worst).max(off))
        });
        let limit = number(0.005 / self.k as f64);
        let improve = each("t", self.k, |t| {
            let step = (get(&self.value) - load(&self.qp, &[t])) / load(&self.q, &[t, t]);
            with("step", step, |step| {
                let scale = step.clone() + 1.0;
                let change = step.clone() * load(&self.q, &[t, t]) + load(&self.qp, &[t]) * 2.0;
                let value = (get(&self.value) + step.clone() * change) / &scale / &scale;
                let moved = Stmt::store(&self.p, vec![t.clone()], load(&self.p, &[t]) + step);
                let rest = each("j", self.k, |j| {
                    let product =
                        (load(&self.qp, &[j]) + step.clone() * load(&self.q, &[t, j])) / &scale;
                    Stmt::seq([
                        Stmt::store(&self.qp, vec![j.clone()], product),
                        Stmt::store(&self.p, vec![j.clone()], load(&self.p, &[j]) / &scale),
                    ])
                });
                Stmt::seq([moved, set(&self.value, value), rest])
            })
        });
        let body = Stmt::seq([
            set(&self.value, number(0.0)),
            product,
            set(&self.worst, number(0.0)),
            measure,
            Stmt::guard(get(&self.worst).greater_equal(limit.clone()), improve),
        ]);
        Stmt::guard(get(&self.worst).greater_equal(limit), body)
    }
}

fn number(v: f64) -> Expr {
    Expr::float(v, DType::F32)
}
