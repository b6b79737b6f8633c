//! What must hold of open sizes for two sizes to be equal.

use tilewright_ir::dim::{Fact, MAX_CELLS, Remainders, SizeRange};
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

#[test]
fn halved_by_different_ways_a_size_is_next_to_multiples() {
    let v = Var::new("v", DType::I64);
    let n = Dim::open(&v);
    let next = |below, count| Some(Fact::Next(v.clone(), Remainders { modulus: 32, below, count }));
    assert_eq!(fact_of(n.ceildiv(16), n.ceildiv(32) * 2), next(15, 16));
    assert_eq!(fact_of(n.ceildiv(8), n.ceildiv(32) * 4), next(7, 8));
    assert_eq!(fact_of(n.floordiv(16), n.floordiv(32) * 2), next(0, 16));
    assert_eq!(fact_of((n + 3).floordiv(16), (n + 3).floordiv(32) * 2), next(3, 16));
    // One remainder only: what it is would be written in two ways.
    assert_eq!(fact_of(n.floordiv(2) * 2 + 1, n), None);
    // Every second size.
    let halves = (n + 1).floordiv(4) + (n + 3).floordiv(4);
    assert_eq!(fact_of(halves, n.floordiv(2)), Some(Fact::Multiple(v.clone(), 2)));
    // Every size, in two forms.
    assert_eq!(fact_of(n.floordiv(4) + (n + 2).floordiv(4), n.floordiv(2)), None);
    // What is known already is kept.
    let range = SizeRange::ALL.with_remainders(Remainders { modulus: 32, below: 15, count: 16 });
    let w = Var::size("w", DType::I64, range);
    let m = Dim::open(&w);
    assert_eq!(m.ceildiv(16), m.ceildiv(32) * 2);
    let remainders = Remainders { modulus: 32, below: 7, count: 8 };
    assert_eq!(fact_of(m.ceildiv(8), m.ceildiv(16) * 2), Some(Fact::Next(w.clone(), remainders)));
    // So often a number is a size without these remainders.
    assert_eq!(fact_of(m.ceildiv(32) * 32, m), Some(Fact::Multiple(w.clone(), 32)));
    assert_eq!(fact_of(m.ceildiv(2) * 2, m), Some(Fact::Multiple(w, 2)));
}

#[test]
fn quotients_of_sizes_next_to_multiples_keep_their_values() {
    let mut written_by_multiples = 0;
    for (modulus, below, count) in [(32, 15, 16), (32, 7, 8), (12, 3, 7), (6, 5, 3), (4, 0, 2)] {
        let range = SizeRange::ALL.with_remainders(Remainders { modulus, below, count });
        let v = Var::size("v", DType::I64, range);
        let n = Dim::open(&v);
        for by in (2..=modulus).filter(|by| modulus % by == 0) {
            for more in 0..2 * by {
                let quotient = (n + more).floordiv(by);
                written_by_multiples += usize::from(quotient.quotient().is_none());
                for size in (1..5 * modulus).filter(|size| range.contains(*size)) {
                    assert_eq!(
                        quotient.value(&|_| Some(size)),
                        Some((size + more) / by),
                        "({size} + {more}) / {by}, {range}"
                    );
                }
            }
        }
    }
    assert!(written_by_multiples > 100, "{written_by_multiples}");
}

#[test]
fn remainders_are_next_to_each_other() {
    for modulus in 1..9usize {
        for set in 1..1usize << modulus {
            let all: Vec<usize> = (0..modulus).filter(|r| set >> r & 1 == 1).collect();
            let Some(remainders) = Remainders::of(modulus, &all) else {
                let runs = (0..modulus)
                    .filter(|r| all.contains(r) && !all.contains(&((r + modulus - 1) % modulus)));
                assert!(runs.count() > 1, "{all:?} of {modulus}");
                continue;
            };
            assert!(
                (0..3 * modulus).all(|n| remainders.contains(n) == all.contains(&(n % modulus)))
            );
        }
    }
    let said = |modulus, below, count| {
        SizeRange::ALL.with_remainders(Remainders { modulus, below, count }).to_string()
    };
    let ends = SizeRange::ALL.to_string();
    assert_eq!(said(32, 15, 16), format!("{ends} and a multiple of 32 or at most 15 less"));
    assert_eq!(said(32, 0, 16), format!("{ends} and a multiple of 32 or at most 15 more"));
    assert_eq!(
        said(32, 3, 16),
        format!("{ends} and a multiple of 32, at most 3 less, or at most 12 more")
    );
    assert_eq!(said(32, 20, 3), format!("{ends} and 18 to 20 less than a multiple of 32"));
    let range = SizeRange::new(1, 100).expect("a range");
    let range = range.with_remainders(Remainders { modulus: 32, below: 3, count: 4 });
    assert_eq!([1, 30, 33, 65, 99, 500].map(|n| range.next(n)), [29, 30, 61, 93, 96, 96]);
}

fn fact_of(a: Dim, b: Dim) -> Option<Fact> {
    Fact::of_equal(a, b, &|_| true)
}
