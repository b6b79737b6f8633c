//! Proofs that two functions agree, and inputs that show where they do not.

use std::time::Instant;

use proptest::prelude::*;
use tilewright_ir::{Block, Buffer, DType, Expr, Module, Result, Stmt, TensorFunc, Var};
use tilewright_verify::{Verdict, VerifyOptions, functions};

use crate::build::{buffer, func, serial};

fn verify(a: TensorFunc, b: TensorFunc, options: &VerifyOptions) -> Result<Verdict> {
    let module = |f| {
        let mut m = Module::new();
        m.insert("f", f);
        m
    };
    functions(&module(a), "f", &module(b), "f", options)
}

fn text(a: TensorFunc, b: TensorFunc) -> String {
    match verify(a, b, &VerifyOptions::default()) {
        Ok(Verdict::Equal(_)) => "equal".to_owned(),
        Ok(Verdict::Differ(d)) => format!("{}: {} and {}", d.cell, d.terms[0], d.terms[1]),
        Ok(Verdict::Undecided(u)) => format!("undecided: {}", u.why),
        Err(e) => e.to_string(),
    }
}

/// `B[i] = value(A[i])` for three elements.
fn map(dtype: DType, value: impl Fn(Expr) -> Expr) -> TensorFunc {
    let (a, b) = (buffer("A", &[3], dtype), buffer("B", &[3], dtype));
    let i = Var::index("i");
    let store = Stmt::store(&b, vec![i.expr()], value(a.load([i.expr()])));
    func(&[&a, &b], serial(&i, 3, store))
}

#[test]
fn what_holds_for_all_data_is_equal() {
    let one = || Expr::int(1, DType::I32);
    for (f, g) in [
        (map(DType::I32, |x| x.clone() + 1 - x), map(DType::I32, |_| one())),
        (map(DType::I32, |x| (x + 1) * 2), map(DType::I32, |x| Expr::i32(2) * (Expr::i32(1) + x))),
        (map(DType::F32, |x| x + 0.0), map(DType::F32, |x| x * 1.0)),
        (
            map(DType::F32, |x| x.max(0.0).max(1.0)),
            map(DType::F32, |x| Expr::float(1.0, DType::F32).max(x)),
        ),
        (
            map(DType::I32, |x| Expr::select(x.clone().less(3), x.clone() + 1, x)),
            map(DType::I32, |x| {
                x.clone() + Expr::select(Expr::i32(3).greater(x), one(), Expr::i32(0))
            }),
        ),
    ] {
        assert_eq!(text(f, g), "equal");
    }
}

#[test]
fn floats_are_not_reassociated_unless_asked() {
    let sum = |left: bool| {
        let (a, b) = (buffer("A", &[3], DType::F32), buffer("B", &[1], DType::F32));
        let at = |i| a.load([Expr::i32(i)]);
        let value = if left { (at(0) + at(1)) + at(2) } else { at(0) + (at(1) + at(2)) };
        func(&[&a, &b], Stmt::store(&b, vec![Expr::i32(0)], value))
    };
    let found = text(sum(true), sum(false));
    assert_eq!(found, "`B`[0]: (A[2] + (A[0] + A[1])) and (A[0] + (A[1] + A[2]))");
    let options = VerifyOptions { reassociate: true, ..VerifyOptions::default() };
    let verdict = verify(sum(true), sum(false), &options);
    assert!(matches!(verdict, Ok(Verdict::Equal(_))), "{verdict:?}");
}

#[test]
fn nan_and_zero_times_anything_differ() {
    let f = map(DType::F32, |x| x * 0.0);
    let g = map(DType::F32, |_| Expr::float(0.0, DType::F32));
    assert_eq!(text(f, g), "`B`[0]: (A[0] * 0.0) and 0.0");
}

#[test]
fn arbitrary_values_are_permission_on_one_side() {
    let any = || map(DType::I32, |_| Expr::undef(DType::I32));
    let five = || map(DType::I32, |_| Expr::i32(5));
    assert_eq!(text(any(), five()), "equal");
    assert_eq!(text(five(), any()), "`B`[0]: 5 and undef");
    // Two arbitrary values are not equal to each other, and an integer zero makes them zero.
    let difference = map(DType::I32, |_| Expr::undef(DType::I32) - Expr::undef(DType::I32));
    assert_eq!(text(map(DType::I32, |_| Expr::i32(0)), difference), "`B`[0]: 0 and undef");
}

#[test]
fn copies_of_unwritten_cells_are_no_use_of_them() {
    // `C` copies the whole of `M`, of which `written` elements are written; `B[i] = C[i] + 1`.
    let through = |written: i64, copied: bool| {
        let [a, b, m, c] = ["A", "B", "M", "C"].map(|name| buffer(name, &[6], DType::I32));
        let each = |n: i64, to: &Buffer, value: &dyn Fn(Expr) -> Expr| {
            let i = Var::index("i");
            serial(&i, n, Stmt::store(to, vec![i.expr()], value(i.expr())))
        };
        let from = if copied { &c } else { &m };
        let body = Stmt::seq([
            each(written, &m, &|i| a.load([i])),
            each(if copied { 6 } else { 0 }, &c, &|i| m.load([i])),
            each(3, &b, &|i| from.load([i]) + 1),
        ]);
        let mut root = Block::new("root", body);
        root.allocs = vec![m.clone(), c.clone()];
        func(&[&a, &b], Stmt::block(Vec::new(), Expr::bool(true), root))
    };
    assert_eq!(text(through(4, false), through(4, true)), "equal");
    let e = text(through(4, false), through(2, true));
    assert!(e.contains("an element of `C` is read that was never written"), "{e}");
}

#[test]
fn what_takes_too_many_terms_is_tried_on_data() {
    // `B[i]` is the sum of `A`; the other one leaves an element out for the last `i`.
    let sums = |whole: bool| {
        let (a, b) = (buffer("A", &[40], DType::I32), buffer("B", &[30], DType::I32));
        let (i, k) = (Var::index("i"), Var::index("k"));
        let zero = Stmt::store(&b, vec![i.expr()], Expr::i32(0));
        let left_out = i.expr().equal(29).and(k.expr().equal(17));
        let term = if whole {
            a.load([k.expr()])
        } else {
            Expr::if_then_else(left_out, Expr::i32(0), a.load([k.expr()]))
        };
        let add = Stmt::store(&b, vec![i.expr()], b.load([i.expr()]) + term);
        func(&[&a, &b], serial(&i, 30, Stmt::seq([zero, serial(&k, 40, add)])))
    };
    let options = VerifyOptions { terms: 75, ..VerifyOptions::default() };
    let Ok(Verdict::Differ(found)) = verify(sums(true), sums(false), &options) else {
        panic!("a difference is not found");
    };
    assert_eq!(found.cell, "`B`[29]");
    let inputs: Vec<&str> = found.inputs.iter().map(|(name, _)| &**name).collect();
    assert_eq!(inputs, ["A[17]", "all else"]);
    assert_eq!(found.values, [found.inputs[0].1.clone(), "0".to_owned()]);
    let same = verify(sums(true), sums(true), &options);
    assert!(matches!(same, Ok(Verdict::Undecided(_))), "{same:?}");
    let off = VerifyOptions { samples: false, ..options };
    let unsampled = verify(sums(true), sums(false), &off);
    assert!(matches!(unsampled, Ok(Verdict::Undecided(_))), "{unsampled:?}");
}

#[test]
fn limits_end_undecided() {
    let f = || map(DType::F32, |x| x + 1.0);
    for options in [
        VerifyOptions { steps: 3, ..VerifyOptions::default() },
        VerifyOptions { terms: 7, ..VerifyOptions::default() },
        VerifyOptions { memory: 2, ..VerifyOptions::default() },
    ] {
        let verdict = verify(f(), f(), &options);
        assert!(matches!(verdict, Ok(Verdict::Undecided(_))), "{verdict:?}");
    }
}

#[test]
fn a_million_terms_take_seconds() {
    // 64 x 64 sums of 64 products, on both sides: about a million term operations.
    let matmul = || {
        let (a, b) = (buffer("A", &[64, 64], DType::F32), buffer("B", &[64, 64], DType::F32));
        let c = buffer("C", &[64, 64], DType::F32);
        let (i, j, k) = (Var::index("i"), Var::index("j"), Var::index("k"));
        let at = vec![i.expr(), j.expr()];
        let product = a.load([i.expr(), k.expr()]) * b.load([k.expr(), j.expr()]);
        let sum = Stmt::store(&c, at.clone(), c.load(at.clone()) + product);
        let zero = Stmt::store(&c, at, Expr::float(0.0, DType::F32));
        let inner = Stmt::seq([zero, serial(&k, 64, sum)]);
        func(&[&a, &b, &c], serial(&i, 64, serial(&j, 64, inner)))
    };
    let start = Instant::now();
    assert_eq!(text(matmul(), matmul()), "equal");
    let seconds = start.elapsed().as_secs_f64();
    println!("{seconds:.2} s");
    assert!(seconds < 20.0, "{seconds} s");
}

/// `B[i, j] = A[i, j] * 2 + j` of 7 x 5, in tiles, with an index and a constant that may be off.
fn tiled(tile: i64, swapped: bool, shift: i64, add: i64) -> TensorFunc {
    let (a, b) = (buffer("A", &[7, 5], DType::I32), buffer("B", &[7, 5], DType::I32));
    let (io, ii, j) = (Var::index("io"), Var::index("ii"), Var::index("j"));
    let i = io.expr() * tile + ii.expr();
    let from = (i.clone() + shift).floormod(7);
    let value = a.load([from, j.expr()]) * 2 + j.expr() + add;
    let store = Stmt::store(&b, vec![i.clone(), j.expr()], value);
    let store = Stmt::guard(i.less(7), store);
    let body = if swapped {
        serial(&j, 5, serial(&ii, tile, store))
    } else {
        serial(&ii, tile, serial(&j, 5, store))
    };
    func(&[&a, &b], serial(&io, (7 + tile - 1) / tile, body))
}

proptest! {
    #[test]
    fn tiles_are_equal_and_mutants_differ(
        tile in 1..9i64,
        swapped: bool,
        shift in 0..7i64,
        add in -3..4i64,
    ) {
        let found = text(tiled(7, false, 0, 0), tiled(tile, swapped, shift, add));
        if shift == 0 && add == 0 {
            prop_assert_eq!(found, "equal");
        } else {
            prop_assert!(found.starts_with("`B`["), "{}", found);
        }
        prop_assert_eq!(text(tiled(7, false, shift, add), tiled(tile, swapped, shift, add)), "equal");
    }
}
