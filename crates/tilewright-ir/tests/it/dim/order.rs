//! Which of two sizes is larger for all values of open ones.

use tilewright_ir::dim::Integer;
use tilewright_ir::{DType, Dim, Var};

#[test]
fn what_variables_stand_for_is_known_of_them() {
    let n = Dim::open(&Var::index("n"));
    let half = (n + 1).floordiv(2usize);
    let q = Dim::open(&Var::standing_for("q", DType::I32, half));
    assert!((q * 2usize).at_least(n) && (n + 1).at_least(q * 2usize));
    assert!(!n.at_least(q * 2usize) && !(q * 2usize).at_least(n + 1));
    assert_eq!((q * 2usize + 1usize).min(n + 1), n + 1);
    let other = Dim::open(&Var::index("q"));
    assert!(!(other * 2usize).at_least(n));
}

#[test]
fn the_larger_one_of_several_is_not_spent_on_a_number() {
    let n = Dim::open(&Var::index("n"));
    let part = (n * 7usize).floordiv(8usize) * 2usize + 1usize;
    let count = Integer::from(part.max((n * 2usize).max(part))).minus(part).expect("small");
    assert_eq!(count.is_less(0), Some(false));
    assert_eq!(count.equals(-1), Some(false));
    assert_eq!(count.is_less(1), Some(false));
    assert_eq!(count.is_less(2), None);
}

#[test]
fn what_is_rounded_up_is_at_least_one_multiple() {
    let n = Dim::open(&Var::index("n"));
    // (n + 7) // 8 * 8, as exporters write it.
    let short = Integer::from((n * 7usize).floordiv(8usize) * 8usize);
    let rounded = Integer::from(n * 8usize).minus(short).expect("small");
    assert_eq!(rounded.is_less(8), Some(false));
    assert_eq!(rounded.is_less(9), None);
    let chunks = Integer::from(n * 2usize).minus((n * 7usize).floordiv(8usize) * 2usize);
    assert_eq!(chunks.expect("small").is_less(2), Some(false));
}

#[test]
fn shared_parts_are_looked_at_once() {
    let [n, m] = ["n", "m"].map(Var::index);
    let mut deep = Dim::open(&n);
    // Twice in each level: 2^60 paths.
    for k in 0..60usize {
        deep = deep.max(Dim::open(&m) * k).floordiv(2usize) + deep.min(k + 900);
    }
    assert_eq!(deep.vars().len(), 2);
    let at = deep.substitute(&|v| (*v == n).then(|| Dim::from(7)));
    assert_eq!(at.vars(), std::slice::from_ref(&m));
}
