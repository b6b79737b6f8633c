//! Expressions in other forms: what the symbolic interpreter proves equal is equal for any data.
//!
//! Random expressions are rewritten at random by rules of which some hold and some do not. Where a
//! pair is proven equal, the interpreter must give the same for extreme and random elements; where
//! only rules that hold were used, it must be proven.

use proptest::prelude::*;
use tilewright_ir::{BinOp, DType, Expr, Module, Stmt, Tensor, TensorFunc, Var};
use tilewright_verify::{Verdict, VerifyOptions, functions};

use crate::build::{buffer, func, run, serial};

#[derive(Clone, Debug)]
enum Tree {
    Input(i64),
    Const(i64),
    Op(BinOp, Box<Tree>, Box<Tree>),
    /// `a < b`, or `a <= b`, decides.
    Select(bool, Box<[Tree; 4]>),
}

use Tree::{Const, Input, Op, Select};

fn op(op: BinOp, a: Tree, b: Tree) -> Tree {
    Op(op, Box::new(a), Box::new(b))
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![3 => (0..3i64).prop_map(Input), 1 => (-4..5i64).prop_map(Const)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let ops = [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Min, BinOp::Max];
        prop_oneof![
            4 => (proptest::sample::select(ops.to_vec()), inner.clone(), inner.clone())
                .prop_map(|(o, a, b)| op(o, a, b)),
            1 => (any::<bool>(), inner.clone(), inner.clone(), inner.clone(), inner)
                .prop_map(|(strict, a, b, c, d)| Select(strict, Box::new([a, b, c, d]))),
        ]
    })
}

/// Rewrites a tree; `holds` becomes false where a rule does not hold for the type.
fn rewrite(
    t: &Tree,
    choices: &mut std::slice::Iter<'_, u8>,
    float: bool,
    holds: &mut bool,
) -> Tree {
    let choice = choices.next().copied().unwrap_or(9) % 10;
    let mut sub = |t: &Tree| rewrite(t, choices, float, holds);
    match t {
        Input(_) | Const(_) => t.clone(),
        Select(strict, parts) => {
            let [a, b, x, y] = &**parts;
            let (a, b, x, y) = (sub(a), sub(b), sub(x), sub(y));
            match choice {
                // Not of floats: no order holds for NaN.
                0 | 1 => {
                    *holds &= !float;
                    Select(!strict, Box::new([b, a, y, x]))
                }
                2 => {
                    *holds = false;
                    Select(!strict, Box::new([a, b, x, y]))
                }
                _ => Select(*strict, Box::new([a, b, x, y])),
            }
        }
        Op(o, a, b) => {
            let (a, b) = (sub(a), sub(b));
            match (choice, o) {
                (0, BinOp::Sub) => {
                    *holds = false;
                    op(*o, b, a)
                }
                (0 | 1, BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max) => op(*o, b, a),
                (2 | 3, BinOp::Sub) => op(BinOp::Add, a, op(BinOp::Mul, b, Const(-1))),
                (2, BinOp::Add) => op(BinOp::Sub, a, op(BinOp::Mul, Const(-1), b)),
                (3, BinOp::Add) => {
                    *holds &= !float;
                    op(BinOp::Add, op(BinOp::Sub, a, Const(3)), op(BinOp::Add, Const(3), b))
                }
                (2, BinOp::Mul) => match a {
                    Op(BinOp::Add, x, y) => {
                        *holds &= !float;
                        op(BinOp::Add, op(*o, *x, b.clone()), op(*o, b, *y))
                    }
                    a => op(*o, a, b),
                },
                (3, BinOp::Mul) => {
                    *holds = false;
                    op(BinOp::Add, a, b)
                }
                (4, BinOp::Min | BinOp::Max) => op(*o, op(*o, b.clone(), a), b),
                _ => op(*o, a, b),
            }
        }
    }
}

fn build(t: &Tree, inputs: &[Expr; 3], dtype: DType) -> Expr {
    match t {
        Input(i) => inputs[*i as usize].clone(),
        Const(v) if dtype.is_float() => Expr::float(*v as f64, dtype),
        Const(v) => Expr::int(*v, dtype),
        Op(o, a, b) => Expr::binary(*o, build(a, inputs, dtype), build(b, inputs, dtype)),
        Select(strict, parts) => {
            let [a, b, x, y] = parts.each_ref().map(|t| build(t, inputs, dtype));
            Expr::select(if *strict { a.less(b) } else { a.less_equal(b) }, x, y)
        }
    }
}

/// `B[i] = t(A[i, 0], A[i, 1], A[i, 2])`.
fn map(t: &Tree, dtype: DType, n: i64) -> TensorFunc {
    let (a, b) = (buffer("A", &[n, 3], dtype), buffer("B", &[n], dtype));
    let i = Var::index("i");
    let inputs = [0, 1, 2].map(|k| a.load([i.expr(), Expr::i32(k)]));
    func(&[&a, &b], serial(&i, n, Stmt::store(&b, vec![i.expr()], build(t, &inputs, dtype))))
}

fn verdict(a: &Tree, b: &Tree, dtype: DType) -> Verdict {
    let module = |t| {
        let mut m = Module::new();
        m.insert("f", map(t, dtype, 1));
        m
    };
    functions(&module(a), "f", &module(b), "f", &VerifyOptions::default())
        .expect("two good functions")
}

/// Checks a pair on rows of three elements.
fn check(
    t: &Tree,
    choices: &[u8],
    dtype: DType,
    data: &Tensor,
    same: fn(&Tensor, &Tensor, usize) -> bool,
) -> Result<(), TestCaseError> {
    let mut holds = true;
    let other = rewrite(t, &mut choices.iter(), dtype.is_float(), &mut holds);
    let verdict = verdict(t, &other, dtype);
    let n = data.shape()[0];
    let of = |t: &Tree| run(&map(t, dtype, n as i64), std::slice::from_ref(data)).expect("it runs");
    let (x, y) = (of(t).remove(0), of(&other).remove(0));
    let differs = (0..n).find(|&i| !same(&x, &y, i));
    if let Verdict::Equal(_) = verdict {
        prop_assert!(differs.is_none(), "{t:?}\n{other:?}\ndiffer in row {differs:?} of {data:?}");
    }
    if holds {
        prop_assert!(matches!(verdict, Verdict::Equal(_)), "{verdict:?}\n{t:?}\n{other:?}");
    }
    Ok(())
}

const EXTREME: [f32; 12] = [
    0.0,
    -0.0,
    1.0,
    -3.5,
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::MAX,
    f32::MIN_POSITIVE,
    1e-42,
    16777217.0,
    0.1,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn integers(
        t in trees(),
        choices in proptest::collection::vec(any::<u8>(), 24),
        data in proptest::collection::vec(prop_oneof![any::<i8>(), Just(i8::MIN), Just(i8::MAX)], 96),
    ) {
        let data = Tensor::from_slice(&[32, 3], &data).expect("96 elements");
        check(&t, &choices, DType::I8, &data, |x, y, i| x.get_i128(i) == y.get_i128(i))?;
    }

    #[test]
    fn floats(
        t in trees(),
        choices in proptest::collection::vec(any::<u8>(), 24),
        data in proptest::collection::vec(
            prop_oneof![any::<f32>(), -4f32..4f32, proptest::sample::select(EXTREME.to_vec())],
            96,
        ),
    ) {
        let data = Tensor::from_slice(&[32, 3], &data).expect("96 elements");
        check(&t, &choices, DType::F32, &data, |x, y, i| {
            let (x, y) = (x.get_f64(i), y.get_f64(i));
            x == y || (x.is_nan() && y.is_nan())
        })?;
    }
}
