//! Random expressions over a few variables, and brute force over small domains.

use std::sync::LazyLock;

use proptest::prelude::*;
use tilewright_ir::{DType, Expr, Range, Var};
use tilewright_polyhedral::{Bounds, Domain, Engine, Set, budget, evaluate};

/// The variables of all random expressions.
pub static VARS: LazyLock<[Var; 3]> = LazyLock::new(|| ["x", "y", "z"].map(Var::index));

/// The engine; these tests need it.
pub fn engine() -> Engine {
    Engine::new()
}

/// Whether it is seen without sets that a condition holds. It is asked together with another one that is seen to hold,
/// and for which sets take more than the one operation that is allowed here.
pub fn is_seen(domain: &Domain, cond: &Expr) -> bool {
    let [x, y] = ["x", "y"].map(|name| Var::index(name).expr());
    let quotients = x.clone().floordiv(24).equal(y.clone().floordiv(24));
    let remainders = x.clone().floormod(24).equal(y.clone().floormod(24));
    let other = !quotients.and(remainders).and(x.not_equal(y));
    budget::within("asking", 1, || domain.proves(&other.and(cond.clone()))).0
}

/// The smallest box around a set.
pub fn hull(set: &Set) -> Vec<Bounds> {
    let domain = set.domain();
    set.vars().map(|v| domain.tight_bounds(&v.expr(), &[]).expect("decided")).collect()
}

/// A box with guards: `(min, extent)` for the first variables.
#[derive(Clone, Debug)]
pub struct Case {
    pub ranges: Vec<(i64, i64)>,
    pub guards: Vec<Expr>,
}

impl Case {
    pub fn vars(&self) -> &'static [Var] {
        &VARS[..self.ranges.len()]
    }

    pub fn ranges(&self) -> Vec<(Var, Range)> {
        let range = |(lo, n): &(i64, i64)| Range {
            min: Expr::int(*lo, DType::I32),
            extent: Expr::int(*n, DType::I32),
        };
        self.vars().iter().cloned().zip(self.ranges.iter().map(range)).collect()
    }

    pub fn domain(&self) -> Domain {
        engine().domain_of(&self.ranges(), &self.guards)
    }

    /// Every point, in lexicographic order.
    pub fn points(&self) -> Vec<Vec<i64>> {
        let mut points = vec![vec![]];
        for (lo, n) in &self.ranges {
            points = points
                .into_iter()
                .flat_map(|p: Vec<i64>| (*lo..lo + n).map(move |v| [p.as_slice(), &[v]].concat()))
                .collect();
        }
        points.retain(|p| self.guards.iter().all(|g| value(g, p) != 0));
        points
    }
}

/// The value of an expression at a point of the variables.
pub fn value(e: &Expr, point: &[i64]) -> i64 {
    let env = |v: &Var| VARS.iter().position(|x| x == v).and_then(|i| point.get(i).copied());
    evaluate(e, &env).unwrap_or_else(|| panic!("`{e}` has no value at {point:?}"))
}

/// Integer expressions over the first `n` variables.
pub fn index(n: usize) -> BoxedStrategy<Expr> {
    pair(n).0
}

/// Conditions over the first `n` variables.
pub fn condition(n: usize) -> BoxedStrategy<Expr> {
    pair(n).1
}

fn compare(a: Expr, b: Expr, op: u8) -> Expr {
    match op {
        0 => a.less(b),
        1 => a.less_equal(b),
        2 => a.greater(b),
        3 => a.greater_equal(b),
        4 => a.equal(b),
        _ => a.not_equal(b),
    }
}

fn pair(n: usize) -> (BoxedStrategy<Expr>, BoxedStrategy<Expr>) {
    let leaf = prop_oneof![
        3 => (0..n).prop_map(|i| VARS[i].expr()),
        1 => (-6i64..7).prop_map(|v| Expr::int(v, DType::I32)),
    ];
    let flat = leaf.clone();
    let linear = (leaf, flat, -5i64..6, 1i64..6).prop_map(|(a, b, k, m)| a * m + b * k).boxed();
    let index = linear.prop_recursive(3, 12, 3, move |inner| {
        let divisor = prop_oneof![Just(2i64), Just(3), Just(4), Just(8), Just(-3)];
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            3 => (two.clone(), -3i64..4).prop_map(|((a, b), k)| a + b * k),
            3 => (inner.clone(), divisor.clone()).prop_map(|(a, k)| a.floordiv(k)),
            3 => (inner.clone(), divisor.clone()).prop_map(|(a, k)| a.floormod(k)),
            1 => (inner.clone(), divisor.clone(), any::<bool>()).prop_map(|(a, k, d)| {
                use tilewright_ir::BinOp::*;
                let k = Expr::int(k, DType::I32);
                Expr::binary(if d { TruncDiv } else { TruncMod }, a, k)
            }),
            1 => two.clone().prop_map(|(a, b)| a.min(b)),
            1 => two.clone().prop_map(|(a, b)| a.max(b)),
            1 => (two, 0u8..6, inner).prop_map(|((a, b), op, c)| {
                Expr::select(compare(a.clone(), c.clone(), op), b, c)
            }),
        ]
    });
    let index = index.boxed();
    let compared = (index.clone(), index.clone(), 0u8..6, -4i64..10)
        .prop_map(|(a, b, op, k)| compare(a, if k < 6 { Expr::int(k, DType::I32) } else { b }, op));
    let condition = compared.prop_recursive(2, 4, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            2 => two.clone().prop_map(|(a, b)| a.and(b)),
            2 => two.prop_map(|(a, b)| a.or(b)),
            1 => inner.prop_map(|a| !a),
        ]
    });
    (index, condition.boxed())
}

/// Boxes of one to three variables with at most two guards.
pub fn case() -> BoxedStrategy<Case> {
    (1usize..4)
        .prop_flat_map(|n| {
            let ranges = prop::collection::vec((-3i64..4, 1i64..6), n);
            (ranges, prop::collection::vec(condition(n), 0..2))
        })
        .prop_map(|(ranges, guards)| Case { ranges, guards })
        .boxed()
}

/// A case with something over its variables.
pub fn with<T: std::fmt::Debug + Clone + 'static>(
    of: impl Fn(usize) -> BoxedStrategy<T> + 'static,
) -> impl Strategy<Value = (Case, T)> {
    case().prop_flat_map(move |c| {
        let n = c.ranges.len();
        (Just(c), of(n))
    })
}

/// The configuration of all property tests: quick, and with the same cases in every run.
pub fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    }
}
