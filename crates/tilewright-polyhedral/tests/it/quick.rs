//! Conditions that are seen to be false without sets.

use crate::common::is_seen;
use tilewright_ir::{Expr, Var};
use tilewright_polyhedral::{Domain, Engine, evaluate};

/// `0 <= v < extent` for each.
fn ranges(vars: &[(&Var, i64)]) -> Domain {
    Engine::new().box_of(&vars.iter().map(|(v, n)| ((*v).clone(), *n)).collect::<Vec<_>>())
}

/// Whether it is seen without sets that a condition holds at no point.
fn is_never(domain: &Domain, cond: &Expr) -> bool {
    is_seen(domain, &!cond.clone())
}

#[test]
fn tiles_meet_only_where_they_are_the_same() {
    let [i, j, k, l] = ["i", "j", "k", "l"].map(Var::index);
    let guards = ranges(&[(&i, 8), (&j, 4), (&k, 8), (&l, 4)]);
    let meet = (&i * 4 + &j).equal(&k * 4 + &l);
    let differ = |a: &Var, b: &Var| a.expr().not_equal(b);
    for (a, b) in [(&i, &k), (&j, &l)] {
        assert!(is_never(&guards, &meet.clone().and(differ(a, b))));
    }
    // Tiles that overlap may.
    let wide = ranges(&[(&i, 8), (&j, 5), (&k, 8), (&l, 5)]);
    assert!(!is_never(&wide, &meet.clone().and(differ(&i, &k))));
    // Another order of two loops does not change the order of what is the same but for one.
    let swapped = (i.expr().less(&k).or(i.expr().equal(&k).and(j.expr().less(&l))))
        .and(l.expr().less(&j).or(l.expr().equal(&j).and(k.expr().less(&i))));
    assert!(is_never(&guards, &i.expr().equal(&k).and(swapped.clone())));
    assert!(!is_never(&guards, &swapped));
}

#[test]
fn equal_digits_are_equal_numbers() {
    let [i, j, u] = ["i", "j", "u"].map(Var::index);
    let guards = ranges(&[(&i, 90), (&j, 90), (&u, 1)]);
    let quotients = (i.expr().floordiv(24) + &u).equal(j.expr().floordiv(24));
    let remainders = i.expr().floormod(24).equal(j.expr().floormod(24));
    let differ = i.expr().not_equal(&j);
    assert!(is_never(&guards, &all_of(&[&quotients, &remainders, &differ])));
    assert!(!is_never(&guards, &all_of(&[&remainders, &differ])));
    assert!(!is_never(&guards, &all_of(&[&quotients, &differ])));
    // Three digits.
    let low = i.expr().floormod(6).equal(j.expr().floormod(6));
    let digits = [&quotients, &middle_digit(&i).equal(middle_digit(&j)), &low, &differ];
    assert!(is_never(&guards, &all_of(&digits)));
    assert!(!is_never(&guards, &all_of(&[digits[0], digits[1], digits[3]])));
}

fn all_of(parts: &[&Expr]) -> Expr {
    parts.iter().fold(Expr::bool(true), |all, p| all.and((*p).clone()))
}

fn middle_digit(v: &Var) -> Expr {
    v.expr().floordiv(6).floormod(4)
}

#[test]
fn what_is_never_holds_at_no_point() {
    // A generator of its own: the same conditions in every run.
    let mut state = 7u64;
    let mut draw = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % n) as i64
    };
    let vars = ["a", "b", "c", "d"].map(Var::index);
    let mut denied = 0;
    for _ in 0..4000 {
        let extents = [0; 4].map(|_| draw(4) + 1);
        let guards = ranges(&[0, 1, 2, 3].map(|k| (&vars[k], extents[k])));
        let mut sum = |most: u64| {
            let start = Expr::i32(draw(9) as i32 - 4);
            vars.iter().fold(start, |s, v| s + v.expr() * (draw(most) - (most / 2) as i64))
        };
        let parts = [
            sum(9).equal(sum(3)),
            sum(5).greater_equal(sum(5)),
            sum(3).not_equal(sum(3)),
            sum(5).floordiv(3).less(sum(3)),
            (sum(3) + 20).floormod(4).equal((sum(3) + 20).floormod(4)),
            (sum(3) + 20).floordiv(4).equal((sum(3) + 20).floordiv(4)),
        ];
        let mut cond = Expr::bool(true);
        for part in parts {
            cond = match draw(3) {
                0 => cond,
                1 => cond.and(part),
                _ => part.or(cond.clone().and(vars[0].expr().less(&vars[1]))),
            };
        }
        if !is_never(&guards, &cond) {
            continue;
        }
        denied += 1;
        let points: i64 = extents.iter().product();
        for point in 0..points {
            let mut rest = point;
            let at = extents.map(|n| {
                let value = rest % n;
                rest /= n;
                value
            });
            let env = |v: &Var| vars.iter().position(|w| w == v).map(|k| at[k]);
            assert_eq!(evaluate(&cond, &env), Some(0), "{cond} at {at:?}");
        }
    }
    assert!(denied > 300, "{denied}");
}
