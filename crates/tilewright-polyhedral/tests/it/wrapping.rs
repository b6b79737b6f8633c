//! Arithmetic on data, which wraps, beside that on loops and sizes, which does not.

use proptest::prelude::*;
use tilewright_ir::{Buffer, DType, Expr, Range, Var};
use tilewright_polyhedral::{Domain, Proof};

use crate::common::{VARS, condition, config, engine, index, value};

const MIN: i64 = i32::MIN as i64;
const MAX: i64 = i32::MAX as i64;

/// Values of data, most of them near the ends of their type.
const VALUES: [i64; 12] = [MIN, MIN + 1, MIN + 3, -4, -1, 0, 1, 5, MAX / 2, MAX - 3, MAX - 1, MAX];

/// `x` and `y` are data, of which `x` is within bounds; `z` is a loop over `0..4`.
fn domain(low: i64, high: i64) -> Domain {
    let [x, y, z] = &*VARS;
    let engine = engine().with_data([x.clone(), y.clone()]);
    let domain = engine.domain_of(&[(z.clone(), Range::upto(Expr::i32(4)))], &[]);
    let bound = |v: i64| Expr::int(v, DType::I32);
    domain
        .with_guard(&x.expr().greater_equal(bound(low)))
        .with_guard(&x.expr().less_equal(bound(high)))
}

fn points(low: i64, high: i64) -> impl Iterator<Item = [i64; 3]> {
    let within = move |x: &i64| (low..=high).contains(x);
    let xs = VALUES.into_iter().chain([low, high]).filter(within);
    xs.flat_map(|x| VALUES.into_iter().flat_map(move |y| (0..4).map(move |z| [x, y, z])))
}

fn bounds() -> impl Strategy<Value = (i64, i64)> {
    prop_oneof![
        2 => Just((MIN, MAX)),
        1 => Just((0, MAX)),
        1 => Just((MIN, 10)),
        1 => Just((MIN + 3, MAX - 3)),
        2 => (-9i64..9, 0i64..9).prop_map(|(low, n)| (low, low + n)),
    ]
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn proofs_hold_at_the_ends_of_the_type((low, high) in bounds(), cond in condition(3)) {
        let proof = domain(low, high).prove(&cond);
        match proof {
            Proof::Yes => {
                for p in points(low, high) {
                    prop_assert!(value(&cond, &p) != 0, "`{cond}` fails at {p:?}");
                }
            }
            Proof::No { witness } => {
                let p: Vec<i64> = VARS.iter().map(|v| witness.get(v).unwrap_or(0)).collect();
                prop_assert_eq!(value(&cond, &p), 0, "{} holds at {:?}", cond, p);
            }
            Proof::Unknown(_) => {}
        }
    }

    #[test]
    fn simplified_indices_have_their_value((low, high) in bounds(), e in index(3)) {
        let new = domain(low, high).simplify(&e);
        for p in points(low, high) {
            prop_assert_eq!(value(&new, &p), value(&e, &p), "{} for {} at {:?}", new, e, p);
        }
    }

    #[test]
    fn simplified_conditions_hold_where_they_did((low, high) in bounds(), e in condition(3)) {
        let new = domain(low, high).simplify(&e);
        for p in points(low, high) {
            prop_assert_eq!(value(&new, &p), value(&e, &p), "{} for {} at {:?}", new, e, p);
        }
    }
}

#[test]
fn a_sum_of_data_is_larger_only_where_it_does_not_wrap() {
    let a = Buffer::with_extents("A", &[8], DType::I32);
    let small = Buffer::with_extents("S", &[8], DType::I8);
    let i = Var::index("i");
    let d = engine().box_of(&[(i.clone(), 8)]);
    let grows = |x: &Expr| (x.clone() + 1).greater(x.clone());
    let x = a.load([i.expr()]);
    assert!(!d.prove(&grows(&x)).is_yes());
    assert!(d.with_guard(&x.clone().less(100)).prove(&grows(&x)).is_yes());
    // Types bound it: -128 .. 127, and one more.
    assert!(d.prove(&grows(&small.load([i.expr()]).cast(DType::I32))).is_yes());
    assert!(d.prove(&grows(&i.expr())).is_yes());
    // What is exact modulo the width stays so.
    let [back, sum] = [x.clone() + 1 - 1, x.clone() + &i];
    assert_eq!(d.simplify(&back).to_string(), "A[i]");
    assert!(d.equal(&(sum.clone() - &i), &x).is_yes());
    assert!(!d.prove(&(x.clone() * 2).floordiv(2).equal(&x)).is_yes());
    assert!(!d.prove(&(x.clone() * &x).greater_equal(0)).is_yes());
}

/// A product by what wrapped is one by what it was before, as far as it wraps in the same way.
#[test]
fn products_of_sums_of_data_are_expanded() {
    let [x, y] = ["x", "y"].map(Var::index);
    let (z, u) = (Var::new("z", DType::I64), Var::new("u", DType::U8));
    let engine = engine().with_data([x.clone(), y.clone(), z.clone(), u.clone()]);
    let d = engine.domain_of(&[], &[]);
    let [x, y, z, u] = [x, y, z, u].map(|v| v.expr());
    let (more, product) = (x.clone() + 1, x.clone() * &y);
    assert!(d.equal(&(more.clone() * &y), &(product.clone() + &y)).is_yes());
    assert!(d.equal(&(more.clone() * (x.clone() - 1)), &(x.clone() * &x - 1)).is_yes());
    let one = Expr::int(1, DType::U8);
    let square = (u.clone() + one.clone()) * (u.clone() + one.clone());
    assert!(d.equal(&square, &(u.clone() * &u + &u + &u + one)).is_yes());
    assert!(!d.prove(&(more.clone() * &y).greater_equal(product)).is_yes());
    // The sum wraps in fewer bits than the product.
    let wide = |e: &Expr| e.clone().cast(DType::I64) * &z;
    assert!(!d.equal(&wide(&more), &(wide(&x) + &z)).is_yes());
}

#[test]
fn a_size_is_no_data() {
    let [n, x, i] = ["n", "x", "i"].map(Var::index);
    let engine = engine().with_data([x.clone()]);
    let loops = [(i.clone(), Range::upto(n.expr()))];
    let d = engine.domain_of(&loops, &[]);
    assert!(d.prove(&(&i * 4 + 3).less(&n * 4)).is_yes());
    let d = engine.domain_of(&[(i.clone(), Range::upto(x.expr()))], &[]);
    assert!(!d.prove(&(&i * 4 + 3).less(&x * 4)).is_yes());
}
