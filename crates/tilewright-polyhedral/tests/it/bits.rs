//! Operations on bits: proofs, bounds and inverses against all points.

use proptest::prelude::*;
use tilewright_ir::{Expr, Intrin, Var};
use tilewright_polyhedral::bits::BitMap;
use tilewright_polyhedral::{Engine, evaluate};

fn op(op: Intrin, a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    Expr::intrin(op, vec![a.into(), b.into()])
}

fn int(v: i64) -> Expr {
    Expr::i32(v as i32)
}

#[test]
fn identities_of_bits_are_proved() {
    let engine = Engine::new();
    let (i, j) = (Var::index("i"), Var::index("j"));
    let d = engine.box_of(&[(i.clone(), 21), (j.clone(), 8)]);
    let (x, y) = (i.expr(), j.expr());
    let xor = |a: &Expr, b: &Expr| op(Intrin::BitXor, a.clone(), b.clone());
    let and = |a: &Expr, b: &Expr| op(Intrin::BitAnd, a.clone(), b.clone());
    let or = |a: &Expr, b: &Expr| op(Intrin::BitOr, a.clone(), b.clone());
    assert!(d.equal(&xor(&xor(&x, &y), &y), &x).is_yes());
    assert!(d.equal(&(and(&x, &y) + or(&x, &y)), &(x.clone() + &y)).is_yes());
    assert!(d.equal(&(xor(&x, &y) + and(&x, &y) * 2), &(x.clone() + &y)).is_yes());
    assert!(d.prove(&xor(&x, &y).less(24)).is_yes());
    assert_eq!(d.bounds(&xor(&x, &y)).unwrap(), (Some(0), Some(23)));
    assert!(d.equal(&xor(&x, &y), &or(&x, &y)).is_no());
    // By constants, of numbers that may be negative.
    let n = engine
        .domain_of(&[(i.clone(), tilewright_ir::Range { min: int(-9), extent: int(20) })], &[]);
    assert!(n.equal(&xor(&x, &int(-1)), &(x.clone() * -1 - 1)).is_yes());
    assert!(n.equal(&and(&x, &int(12)), &(x.clone().floordiv(4).floormod(4) * 4)).is_yes());
    // Of numbers without an end, the digits of one that has few.
    let open =
        engine.domain_of(&[(i.clone(), tilewright_ir::Range::upto(Var::index("n").expr()))], &[]);
    let low = x.clone().floormod(8);
    assert!(open.equal(&xor(&xor(&x, &low), &low), &x).is_yes());
    assert!(open.equal(&xor(&x, &low), &(x.floordiv(8) * 8)).is_yes());
}

/// Expressions of two indices with operations on bits.
fn expressions(i: Var, j: Var) -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![Just(i.expr()), Just(j.expr()), (0i64..12).prop_map(int)];
    leaf.prop_recursive(3, 12, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            pair.clone().prop_map(|(a, b)| op(Intrin::BitXor, a, b)),
            pair.clone().prop_map(|(a, b)| op(Intrin::BitAnd, a, b)),
            pair.clone().prop_map(|(a, b)| op(Intrin::BitOr, a, b)),
            pair.prop_map(|(a, b)| a + b),
            (inner.clone(), 0i64..3).prop_map(|(a, k)| op(Intrin::Shl, a, int(k))),
            (inner.clone(), 0i64..3).prop_map(|(a, k)| op(Intrin::Shr, a, int(k))),
            (inner, 1i64..9).prop_map(|(a, k)| a.floormod(k)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Bounds, proofs and the form by digits agree with what is computed at each point.
    #[test]
    fn random_expressions(
        (i, j, e) in Just((Var::index("i"), Var::index("j")))
            .prop_flat_map(|(i, j)| (Just(i.clone()), Just(j.clone()), expressions(i, j))),
        n in 1i64..12,
        m in 1i64..9,
    ) {
        let at = |x: i64, y: i64| {
            evaluate(&e, &|v: &Var| Some(if *v == i { x } else { y })).expect("a value")
        };
        let all: Vec<i64> = (0..n).flat_map(|x| (0..m).map(move |y| (x, y))).map(|(x, y)| at(x, y)).collect();
        let (least, most) = (*all.iter().min().unwrap(), *all.iter().max().unwrap());
        let engine = Engine::new();
        let d = engine.box_of(&[(i.clone(), n), (j.clone(), m)]);
        if let Ok((low, high)) = d.bounds(&e) {
            prop_assert_eq!((low, high), (Some(least), Some(most)), "{}", e);
        }
        prop_assert!(!d.prove(&e.clone().less_equal(most)).is_no(), "{}", e);
        prop_assert!(!d.prove(&e.clone().less(most)).is_yes(), "{}", e);
        let simple = d.simplify(&e);
        let value = |s: &Expr, x: i64, y: i64| evaluate(s, &|v: &Var| Some(if *v == i { x } else { y }));
        for x in 0..n {
            for y in 0..m {
                prop_assert_eq!(value(&simple, x, y), Some(at(x, y)), "{} as {}", e, simple);
            }
        }
        let width = |n: i64| 64 - (n - 1).leading_zeros();
        if let Some(map) = BitMap::from_indices(&[(i.clone(), width(n)), (j.clone(), width(m))], std::slice::from_ref(&e)) {
            let written = &map.expressions(e.dtype())[0];
            for x in 0..n {
                for y in 0..m {
                    prop_assert_eq!(value(written, x, y), Some(at(x, y)), "{} as {}", e, written);
                }
            }
            prop_assert_eq!(map.greatest(0, &[Some(n), Some(m)], 1 << 10), Some(most));
        }
    }

    /// Random linear maps: the inverse leads back, and what is outside of the image is seen.
    #[test]
    fn random_maps(bases in prop::collection::vec((0u64..16, 0u64..16), 5)) {
        let (i, j) = (Var::index("i"), Var::index("j"));
        let params = [(i, 3), (j, 2)];
        let rows: Vec<Vec<u64>> = bases.iter().map(|(a, b)| vec![*a, *b]).collect();
        let map = BitMap::from_bases(&params, &rows, 2).unwrap();
        let image = |at: u64| {
            let used = rows.iter().enumerate().filter(|(k, _)| at >> k & 1 == 1);
            used.fold((0, 0), |(a, b), (_, r)| (a ^ r[0], b ^ r[1]))
        };
        let all: Vec<(u64, u64)> = (0..32).map(image).collect();
        let different: std::collections::BTreeSet<(u64, u64)> = all.iter().copied().collect();
        let cells = [Var::index("a"), Var::index("b")];
        let Some(inverse) = map.inverse(&cells) else {
            prop_assert!(different.len() < 32);
            let meets = map.collision(&[None, None]).expect("two points");
            prop_assert_eq!(all[(meets[0] | meets[1] << 3) as usize], (0, 0));
            return Ok(());
        };
        prop_assert_eq!(different.len(), 32);
        let lengths = map.lengths();
        for a in 0..1i64 << lengths[0] {
            for b in 0..1i64 << lengths[1] {
                let env = |v: &Var| Some(if *v == cells[0] { a } else { b });
                let outside = inverse.outside.iter().any(|e| evaluate(e, &env) == Some(1));
                let found = all.iter().position(|p| *p == (a as u64, b as u64));
                prop_assert_eq!(outside, found.is_none());
                if let Some(at) = found {
                    let back: Vec<i64> = inverse.values.iter().map(|e| evaluate(e, &env).unwrap()).collect();
                    prop_assert_eq!(back, vec![(at & 7) as i64, (at >> 3) as i64]);
                }
            }
        }
    }
}
