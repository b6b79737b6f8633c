//! Bounded sets and injective relations: where bounds or equalities alone say so, and where points have to be asked.

use presburger::{Budget, Relation};

fn parsed(text: &str) -> Relation {
    Relation::parse(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn sets_with_ends_are_bounded() {
    for (text, bounded) in [
        ("{ [i, j] : 0 <= i <= 5 and i <= j <= 2i + 3 }", true),
        ("{ [i, j] : 0 <= i + j <= 5 and 0 <= i - j <= 3 }", true),
        ("{ [i, q] : 3q <= i <= 3q + 2 and 0 <= q <= 4 }", true),
        ("{ [i, j] : 0 <= floor(i/3) <= 4 and j = 2i - 1 }", true),
        ("[n] -> { [i, j] : 0 <= i < n and i - n <= j <= n }", true),
        ("{ [i] : i >= 3 and i <= 1 }", true),
        ("{ [i] : 0 <= i <= 4; [i] : 7 <= i }", false),
        ("{ [i, j] : 0 <= i and j = i }", false),
        ("{ [i, j] : 0 <= i - j <= 3 }", false),
        ("{ [i] : 2*floor(i/2) = i }", false),
    ] {
        let set = parsed(text);
        assert_eq!(set.is_bounded(&Budget::new(100_000)).expect("an answer"), bounded, "{text}");
    }
}

#[test]
fn relations_whose_outputs_give_inputs_are_injective() {
    for (text, injective) in [
        ("{ [i, j] -> [i + j, j] }", true),
        ("{ [i, j] -> [j, 3, 2i] : 0 <= i and 0 <= j }", true),
        ("{ [i, j] -> [4i + j] : 0 <= i <= 3 and 0 <= j <= 3 }", true),
        ("{ [i, j] -> [4i + j] : 0 <= i <= 3 and 0 <= j <= 4 }", false),
        ("{ [i] -> [floor(i/2), i - 2*floor(i/2)] }", true),
        ("{ [i] -> [floor(i/2)] }", false),
        ("{ [i] -> [i] : i >= 0; [i] -> [i + 1] : i < 0 }", false),
        ("{ [i, j] -> [i] : j = 2 }", true),
        ("{ [i, j] -> [i] : 0 <= j <= 1 }", false),
    ] {
        let map = parsed(text);
        assert_eq!(
            map.is_injective(&Budget::new(100_000)).expect("an answer"),
            injective,
            "{text}"
        );
    }
}
