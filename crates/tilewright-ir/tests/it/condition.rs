//! Conditions taken apart and put together, and what they say about cells of memory.

use tilewright_ir::condition::{CellFact, parts};
use tilewright_ir::{Buffer, DType, Expr, Var};

fn text(all: &[Expr]) -> Vec<String> {
    all.iter().map(Expr::to_string).collect()
}

#[test]
fn a_conjunction_comes_apart_and_together() {
    let [i, j, k] = ["i", "j", "k"].map(|n| Var::index(n).expr());
    let [a, b, c] = [i.less(3), j.less(4), k.less(5)];
    let both = a.clone().and(!(b.clone().or(!c.clone())));
    assert_eq!(text(&both.conjuncts()), ["i < 3", "not j < 4", "k < 5"]);
    assert_eq!(text(&a.clone().or(b.clone()).conjuncts()), ["i < 3 or j < 4"]);
    assert!(Expr::bool(true).conjuncts().is_empty());
    assert_eq!(Expr::all([a.clone(), c.clone()]).to_string(), "i < 3 and k < 5");
    assert!(Expr::all([]).is_true());
    // What fails where a disjunction fails.
    let fails = parts(&a.or(!c), false);
    let fails: Vec<Expr> = fails.into_iter().map(|(part, holds)| part.being(holds)).collect();
    assert_eq!(text(&fails), ["not i < 3", "k < 5"]);
}

#[test]
fn a_condition_about_a_cell_gives_its_value() {
    let a = Buffer::with_extents("A", &[8], DType::I32);
    let flag = Buffer::with_extents("F", &[8], DType::BOOL);
    let i = Var::index("i");
    let cell = || a.load([i.expr()]);
    let below = || i.expr().less(4);
    assert_eq!(facts_of(cell().equal(7)), ["A = 7 unless []"]);
    assert_eq!(facts_of(below().or(cell().equal(7))), [r#"A = 7 unless ["i < 4"]"#]);
    assert_eq!(facts_of(!(below().and(cell().not_equal(7)))), [r#"A = 7 unless ["not i < 4"]"#]);
    assert_eq!(facts_of(!flag.load([i.expr()])), ["F = T.bool(False) unless []"]);
    let two = facts_of(cell().equal(1).or(cell().equal(2)));
    assert_eq!(two, [r#"A = 1 unless ["A[i] == 2"]"#, r#"A = 2 unless ["A[i] == 1"]"#]);
    assert!(facts_of(cell().not_equal(7)).is_empty() && facts_of(below()).is_empty());
    assert!(facts_of(below().and(cell().equal(7))).is_empty());
}

fn facts_of(cond: Expr) -> Vec<String> {
    let all = CellFact::all(&cond).into_iter();
    all.map(|f| format!("{} = {} unless {:?}", f.buffer.name, f.value, text(&f.unless))).collect()
}
