//! Conditions on integers: what is proven equal is equal for every integer of the type.
//!
//! The type is `int8`, so that every value can be tried and sums wrap often.

use proptest::prelude::*;
use tilewright_ir::{BinOp, DType, Expr, Module, Stmt, Tensor, TensorFunc, Var};
use tilewright_verify::{Verdict, VerifyOptions, functions};

use crate::build::{buffer, func, run, serial};

/// An integer of `x` and `y`.
#[derive(Clone, Debug)]
enum Int {
    X,
    Y,
    Const(i64),
    Op(BinOp, Box<Int>, Box<Int>),
    /// Division or remainder by a constant.
    By(BinOp, Box<Int>, i64),
    Pick(Box<Cond>, Box<Int>, Box<Int>),
}

#[derive(Clone, Debug)]
enum Cond {
    Compare(BinOp, Box<Int>, Box<Int>),
    Logic(BinOp, Box<Cond>, Box<Cond>),
    Not(Box<Cond>),
}

fn ints() -> impl Strategy<Value = Int> {
    let leaf = prop_oneof![
        3 => Just(Int::X),
        1 => Just(Int::Y),
        2 => (-9..10i64).prop_map(Int::Const),
        1 => proptest::sample::select(vec![-128, -127, 100, 126, 127]).prop_map(Int::Const),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let ops = vec![BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Min, BinOp::Max];
        let divides =
            vec![BinOp::FloorDiv, BinOp::FloorMod, BinOp::TruncDiv, BinOp::TruncMod];
        let pair = (inner.clone(), inner.clone());
        let cond = compare(pair.clone().boxed());
        prop_oneof![
            4 => (proptest::sample::select(ops), pair.clone())
                .prop_map(|(op, (a, b))| Int::Op(op, Box::new(a), Box::new(b))),
            2 => (proptest::sample::select(divides), inner, prop_oneof![2..6i64, -4..-1i64])
                .prop_map(|(op, a, k)| Int::By(op, Box::new(a), k)),
            1 => (cond, pair).prop_map(|(c, (a, b))| Int::Pick(Box::new(c), Box::new(a), Box::new(b))),
        ]
    })
}

fn compare(pair: BoxedStrategy<(Int, Int)>) -> impl Strategy<Value = Cond> {
    let ops = vec![BinOp::Lt, BinOp::Le, BinOp::Gt, BinOp::Ge, BinOp::Eq, BinOp::Ne];
    (proptest::sample::select(ops), pair)
        .prop_map(|(op, (a, b))| Cond::Compare(op, Box::new(a), Box::new(b)))
}

fn conds() -> impl Strategy<Value = Cond> {
    compare((ints(), ints()).boxed()).prop_recursive(2, 6, 2, |inner| {
        let logic = proptest::sample::select(vec![BinOp::And, BinOp::Or]);
        prop_oneof![
            3 => (logic, inner.clone(), inner.clone())
                .prop_map(|(op, a, b)| Cond::Logic(op, Box::new(a), Box::new(b))),
            1 => inner.prop_map(|c| Cond::Not(Box::new(c))),
        ]
    })
}

fn int(t: &Int, x: &[Expr; 2]) -> Expr {
    let constant = |v: i64| Expr::int(v, DType::I8);
    match t {
        Int::X => x[0].clone(),
        Int::Y => x[1].clone(),
        Int::Const(v) => constant(*v),
        Int::Op(op, a, b) => Expr::binary(*op, int(a, x), int(b, x)),
        Int::By(op, a, k) => Expr::binary(*op, int(a, x), constant(*k)),
        Int::Pick(c, a, b) => Expr::select(cond(c, x), int(a, x), int(b, x)),
    }
}

fn cond(c: &Cond, x: &[Expr; 2]) -> Expr {
    match c {
        Cond::Compare(op, a, b) => Expr::binary(*op, int(a, x), int(b, x)),
        Cond::Logic(op, a, b) => Expr::binary(*op, cond(a, x), cond(b, x)),
        Cond::Not(c) => Expr::not_node(cond(c, x)),
    }
}

/// The same in other words, or nearly: `holds` becomes false where it is only nearly.
fn rewrite(c: &Cond, choices: &mut std::slice::Iter<'_, u8>, holds: &mut bool) -> Cond {
    let choice = choices.next().copied().unwrap_or(0) % 8;
    let not = |c: Cond| Cond::Not(Box::new(c));
    match c {
        Cond::Compare(op, a, b) => {
            use BinOp::*;
            let mirrored = match op {
                Lt => Gt,
                Le => Ge,
                Gt => Lt,
                Ge => Le,
                other => *other,
            };
            let negated = match op {
                Lt => Ge,
                Le => Gt,
                Gt => Le,
                Ge => Lt,
                Eq => Ne,
                _ => Eq,
            };
            match choice {
                0 | 1 => Cond::Compare(mirrored, b.clone(), a.clone()),
                2 | 3 => not(Cond::Compare(negated, a.clone(), b.clone())),
                4 => {
                    let both = |op| Cond::Compare(op, a.clone(), b.clone());
                    match op {
                        Eq => Cond::Logic(And, Box::new(both(Le)), Box::new(both(Ge))),
                        Le => Cond::Logic(Or, Box::new(both(Lt)), Box::new(both(Eq))),
                        other => both(*other),
                    }
                }
                5 => {
                    *holds = false;
                    let one = Box::new(Int::Const(1));
                    Cond::Compare(*op, Box::new(Int::Op(Add, a.clone(), one.clone())), {
                        Box::new(Int::Op(Add, b.clone(), one))
                    })
                }
                _ => c.clone(),
            }
        }
        Cond::Logic(op, a, b) => {
            let (a, b) = (rewrite(a, choices, holds), rewrite(b, choices, holds));
            let other = if *op == BinOp::And { BinOp::Or } else { BinOp::And };
            let logic = |op, a, b| Cond::Logic(op, Box::new(a), Box::new(b));
            match choice {
                0 | 1 => logic(*op, b, a),
                2 => not(logic(other, not(a), not(b))),
                3 => {
                    *holds = false;
                    logic(other, a, b)
                }
                _ => logic(*op, a, b),
            }
        }
        Cond::Not(c) => not(rewrite(c, choices, holds)),
    }
}

/// `if c: B[i] = e` over rows of `A`.
fn program(c: &Cond, e: &Int, n: i64) -> TensorFunc {
    let (a, b) = (buffer("A", &[n, 2], DType::I8), buffer("B", &[n], DType::I8));
    let i = Var::index("i");
    let x = [0, 1].map(|k| a.load([i.expr(), Expr::i32(k)]));
    let store = Stmt::store(&b, vec![i.expr()], int(e, &x));
    func(&[&a, &b], serial(&i, n, Stmt::guard(cond(c, &x), store)))
}

fn verdict(f: &TensorFunc, g: &TensorFunc, sets: bool) -> Verdict {
    let module = |f: &TensorFunc| {
        let mut m = Module::new();
        m.insert("f", f.clone());
        m
    };
    let options = VerifyOptions { sets, ..VerifyOptions::default() };
    functions(&module(f), "f", &module(g), "f", &options).expect("two good functions")
}

/// Every first integer, with some of the second.
fn rows() -> Vec<i8> {
    let second = [-128, -127, -5, -1, 0, 1, 2, 3, 8, 100, 126, 127];
    (-128..=127i8).flat_map(|x| second.iter().flat_map(move |y| [x, *y])).collect()
}

#[test]
fn intervals_answer_where_there_are_no_sets() {
    let x = || Box::new(Int::X);
    let int = |v: i64| Box::new(Int::Const(v));
    let is = |op, a, b| Box::new(Cond::Compare(op, a, b));
    let both = |a, b| Cond::Logic(BinOp::And, a, b);
    let zero = both(is(BinOp::Le, x(), int(0)), is(BinOp::Le, int(0), x()));
    let equal = *is(BinOp::Eq, x(), int(0));
    let tiles = Int::Op(
        BinOp::Add,
        Box::new(Int::Op(BinOp::Mul, Box::new(Int::By(BinOp::FloorDiv, x(), 4)), int(4))),
        Box::new(Int::By(BinOp::FloorMod, x(), 4)),
    );
    let small = both(is(BinOp::Le, int(0), x()), is(BinOp::Lt, x(), int(9)));
    let proven = |c: &Cond, e: &Int, d: &Cond, f: &Int, sets| {
        matches!(verdict(&program(c, e, 1), &program(d, f, 1), sets), Verdict::Equal(_))
    };
    for sets in [false, true] {
        assert!(proven(&zero, &Int::X, &equal, &Int::Const(0), sets), "{sets}");
        let strict = *is(BinOp::Lt, x(), int(1));
        let wide = *is(BinOp::Le, x(), int(0));
        assert!(proven(&strict, &Int::X, &wide, &Int::X, sets), "{sets}");
        // What takes more than intervals.
        assert_eq!(proven(&small, &tiles, &small, &Int::X, sets), sets);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_proven_holds_for_every_integer(
        c in conds(),
        e in ints(),
        choices in proptest::collection::vec(any::<u8>(), 12),
        sets: bool,
    ) {
        let mut holds = true;
        let d = rewrite(&c, &mut choices.iter(), &mut holds);
        let verdict = verdict(&program(&c, &e, 1), &program(&d, &e, 1), sets);
        let data = rows();
        let n = data.len() / 2;
        let rows = Tensor::from_slice(&[n, 2], &data).expect("a tensor");
        let zero = Tensor::from_slice(&[n], &vec![0i8; n]).expect("a tensor");
        let of = |c: &Cond| run(&program(c, &e, n as i64), &[rows.clone(), zero.clone()]);
        let (Ok(x), Ok(y)) = (of(&c), of(&d)) else { return Ok(()) };
        let bytes = |t: &[Tensor]| t.iter().map(|t| t.bytes().to_vec()).collect::<Vec<_>>();
        let same = bytes(&x) == bytes(&y);
        match verdict {
            Verdict::Equal(_) => prop_assert!(same, "proven equal, and is not"),
            Verdict::Differ(_) => prop_assert!(!holds, "shown to differ, and is the same"),
            Verdict::Undecided(_) => {}
        }
    }
}
