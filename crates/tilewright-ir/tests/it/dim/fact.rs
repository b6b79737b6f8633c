//! What must hold of open sizes for two sizes to be equal.

use tilewright_ir::dim::{Fact, MAX_CELLS};
use tilewright_ir::{DType, Dim, Var};

#[test]
fn what_two_equal_sizes_say() {
    let [v, w, x] = ["v", "w", "x"].map(|name| Var::new(name, DType::I64));
    let [n, m, k] = [&v, &w, &x].map(Dim::open);
    assert_eq!(fact_of(n, m), Some(Fact::Is(w.clone(), n)));
    assert_eq!(fact_of(n + 1, m + 1), Some(Fact::Is(w.clone(), n)));
    assert_eq!(fact_of(n * k * 12, m * k * 4 * 3), Some(Fact::Is(w.clone(), n)));
    // A sum rather than a difference.
    assert_eq!(fact_of(n + m, k), Some(Fact::Is(x.clone(), n + m)));
    assert_eq!(fact_of(n * 3, m * 3 + 2), None);
    assert_eq!(fact_of(n, n), None);
    assert_eq!(fact_of(n, n + 2), None);
    // A table of positions.
    assert_eq!(fact_of(n.min(512), n), Some(Fact::Within(v.clone(), 1, 512)));
    assert_eq!(fact_of((n - 3).max(0) * 2, n * 2 - 6), Some(Fact::Within(v.clone(), 3, MAX_CELLS)));
    assert_eq!(fact_of(n.min(512), m.min(512)), None);
    assert_eq!(
        fact_of((n + 3).floordiv(8).min(2), Dim::from(2)),
        Some(Fact::Within(v.clone(), 13, MAX_CELLS))
    );
    assert_eq!(
        fact_of(n.floordiv(4).floordiv(2).min(5), n.floordiv(8)),
        Some(Fact::Within(v.clone(), 1, 47))
    );
    // Halved, rounded up, and doubled again.
    assert_eq!(fact_of(n.ceildiv(2) * 2, n), Some(Fact::Multiple(v.clone(), 2)));
    assert_eq!(fact_of(n.ceildiv(8) * 8 * m, n * m), Some(Fact::Multiple(v.clone(), 8)));
    // Equal for some sizes that are no multiples, too.
    assert_eq!(fact_of(n.floordiv(2), n.floordiv(3)), None);
    assert_eq!(Fact::of_equal(n, m, &|x| *x == w), Some(Fact::Is(w.clone(), n)));
}

fn fact_of(a: Dim, b: Dim) -> Option<Fact> {
    Fact::of_equal(a, b, &|_| true)
}
