use tilewright_ir::DType;
use tilewright_ops::Operand;
use tilewright_ops::elementwise::{Binary, Unary, Variadic, binary, cast, unary, variadic, where_};

use crate::nd::{Nd, check, check_f32, refused, run};

const SHAPE: [usize; 2] = [5, 13];

/// The error function by the series whose terms are all of one sign, so that nothing cancels.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    sum * (-x * x).exp() * 2.0 / std::f64::consts::PI.sqrt()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    (1.0 + x.exp()).ln()
}

type Table = Vec<(Unary, fn(f64) -> f64)>;
type Two = fn(f64, f64) -> f64;
type Compare = fn(f64, f64) -> bool;
type Logic = fn(bool, bool) -> bool;
type All = fn(Vec<f64>) -> f64;

/// Operators on all numbers, with what they compute.
fn everywhere() -> Table {
    vec![
        (Unary::Identity, |x| x),
        (Unary::Relu, |x| x.max(0.0)),
        (Unary::LeakyRelu { alpha: 0.125 }, |x| if x < 0.0 { 0.125 * x } else { x }),
        (Unary::ThresholdedRelu { alpha: 1.5 }, |x| if x > 1.5 { x } else { 0.0 }),
        (Unary::Sigmoid, sigmoid),
        (Unary::HardSigmoid { alpha: 0.25, beta: 0.5 }, |x| (0.25 * x + 0.5).clamp(0.0, 1.0)),
        (Unary::HardSwish, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        (Unary::Swish { alpha: 1.0 }, |x| x * sigmoid(x)),
        (Unary::Swish { alpha: 0.5 }, |x| x * sigmoid(0.5 * x)),
        (Unary::Mish, |x| x * softplus(x).tanh()),
        (Unary::Softplus, softplus),
        (Unary::Softsign, |x| x / (1.0 + x.abs())),
        (Unary::Elu { alpha: 1.5 }, |x| if x < 0.0 { 1.5 * (x.exp() - 1.0) } else { x }),
        (Unary::Selu { alpha: 1.5, gamma: 2.0 }, |x| {
            2.0 * if x < 0.0 { 1.5 * (x.exp() - 1.0) } else { x }
        }),
        (Unary::Celu { alpha: 2.0 }, |x| x.max(0.0) + (2.0 * ((x / 2.0).exp() - 1.0)).min(0.0)),
        (Unary::Gelu { tanh: false }, |x| x * 0.5 * (1.0 + erf(x / 2f64.sqrt()))),
        (Unary::Gelu { tanh: true }, |x| {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            x * 0.5 * (1.0 + inner.tanh())
        }),
        (Unary::Clip { low: Some((-1.5).into()), high: Some(2.0.into()) }, |x| x.clamp(-1.5, 2.0)),
        (Unary::Clip { low: None, high: Some(0.5.into()) }, |x| x.min(0.5)),
        (Unary::Clip { low: Some(2.0.into()), high: Some((-1.0).into()) }, |_| -1.0),
        (Unary::Shrink { lambd: 1.5, bias: 0.25 }, |x| match x {
            x if x < -1.5 => x + 0.25,
            x if x > 1.5 => x - 0.25,
            _ => 0.0,
        }),
        (Unary::PowConst(0.0), |_| 1.0),
        (Unary::PowConst(1.0), |x| x),
        (Unary::PowConst(2.0), |x| x * x),
        (Unary::PowConst(3.0), |x| x * x * x),
        (Unary::PowConst(5.0), |x| x.powi(5)),
        (Unary::Tanh, f64::tanh),
        (Unary::Exp, f64::exp),
        (Unary::Neg, |x| -x),
        (Unary::Abs, f64::abs),
        (Unary::Sign, |x| if x == 0.0 { 0.0 } else { x.signum() }),
        (Unary::Erf, erf),
        (Unary::Floor, f64::floor),
        (Unary::Ceil, f64::ceil),
        (Unary::Round, f64::round_ties_even),
        (Unary::Sin, f64::sin),
        (Unary::Cos, f64::cos),
        (Unary::Tan, f64::tan),
        (Unary::Atan, f64::atan),
        (Unary::Sinh, f64::sinh),
        (Unary::Cosh, f64::cosh),
        (Unary::Asinh, f64::asinh),
    ]
}

#[test]
fn unary_operators_compute_what_they_say() {
    // Halves and quarters too, for the ties of rounding.
    let x = Nd::build(&SHAPE, |i| (i[0] * 13 + i[1]) as f64 / 8.0 - 4.0);
    for (op, f) in everywhere() {
        check_f32(unary(op, &Operand::f32(&SHAPE)), &[x.f32()], &x.map(f));
    }
    // Operators with a domain of their own, on numbers from 1/16 or inside of (-1, 1).
    let positive = x.map(|v| v.abs() + 0.0625);
    let above: Table = vec![
        (Unary::Log, f64::ln),
        (Unary::Sqrt, f64::sqrt),
        (Unary::Reciprocal, f64::recip),
        (Unary::PowConst(0.5), f64::sqrt),
        (Unary::PowConst(-0.5), |x| 1.0 / x.sqrt()),
        (Unary::PowConst(-1.0), f64::recip),
        (Unary::PowConst(0.7), |x| x.powf(0.7)),
    ];
    for (op, f) in above {
        check_f32(unary(op, &Operand::f32(&SHAPE)), &[positive.f32()], &positive.map(f));
    }
    let small = x.map(|v| v / 8.0);
    let inside: Table =
        vec![(Unary::Asin, f64::asin), (Unary::Acos, f64::acos), (Unary::Atanh, f64::atanh)];
    for (op, f) in inside {
        check_f32(unary(op, &Operand::f32(&SHAPE)), &[small.f32()], &small.map(f));
    }
    let one_up = positive.map(|v| v + 1.0);
    check_f32(unary(Unary::Acosh, &Operand::f32(&SHAPE)), &[one_up.f32()], &one_up.map(f64::acosh));
}

#[test]
fn narrow_and_wide_floats_work() {
    let x = Nd::random(&SHAPE, 4);
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        for (op, f) in everywhere() {
            let func = unary(op, &Operand::new(&SHAPE, dtype));
            check(func, &[x.tensor(dtype)], &[(&x.map(f), dtype)]);
        }
    }
}

#[test]
fn extreme_values_neither_overflow_nor_vanish() {
    let x = Nd { shape: vec![6], data: vec![-1e4, -90.0, 90.0, 1e4, f64::INFINITY, f64::NAN] };
    let cases: Table = vec![
        (Unary::Softplus, |x| if x > 0.0 { x } else { x.exp() }),
        (Unary::Sigmoid, |x| if x < 0.0 { x.exp() } else { 1.0 }),
        (Unary::Relu, |x| if x < 0.0 { 0.0 } else { x }),
        (Unary::Clip { low: Some((-1.0).into()), high: Some(1.0.into()) }, |x| x.clamp(-1.0, 1.0)),
        (Unary::Sign, |x| if x.is_nan() { x } else { x.signum() }),
    ];
    for (op, f) in cases {
        // The error is NaN's own.
        let expected = Nd {
            shape: vec![6],
            data: x.data.iter().map(|&v| if v.is_nan() { v } else { f(v) }).collect(),
        };
        check_f32(unary(op, &Operand::f32(&[6])), &[x.f32()], &expected);
    }
    let is = |op, expected: [f64; 6]| {
        let expected = Nd { shape: vec![6], data: expected.to_vec() };
        check(unary(op, &Operand::f32(&[6])), &[x.f32()], &[(&expected, DType::BOOL)]);
    };
    is(Unary::IsNan, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    is(Unary::IsInf { negative: true, positive: true }, [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    is(Unary::IsInf { negative: true, positive: false }, [0.0; 6]);
    is(Unary::IsInf { negative: false, positive: true }, [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    is(Unary::IsInf { negative: false, positive: false }, [0.0; 6]);
}

#[test]
fn integers_and_truth_values_work() {
    let x = Nd::integers(&SHAPE, 9, -9, 9);
    let cases: Table = vec![
        (Unary::Relu, |x| x.max(0.0)),
        (Unary::Neg, |x| -x),
        (Unary::Abs, f64::abs),
        (Unary::Sign, |x| if x == 0.0 { 0.0 } else { x.signum() }),
        (Unary::Clip { low: Some(3i64.into()), high: None }, |x| x.max(3.0)),
        (Unary::PowConst(2.0), |x| x * x),
        (Unary::PowConst(4.0), |x| x.powi(4)),
        (Unary::BitNot, |x| -x - 1.0),
    ];
    for dtype in [DType::I32, DType::I64] {
        for (op, f) in &cases {
            let func = unary(*op, &Operand::new(&SHAPE, dtype));
            check(func, &[x.tensor(dtype)], &[(&x.map(f), dtype)]);
        }
    }
    let byte = Nd::integers(&SHAPE, 9, 0, 255);
    let unsigned: Table =
        vec![(Unary::Abs, |x| x), (Unary::Sign, |x| x.min(1.0)), (Unary::BitNot, |x| 255.0 - x)];
    for (op, f) in unsigned {
        let func = unary(op, &Operand::new(&SHAPE, DType::U8));
        check(func, &[byte.tensor(DType::U8)], &[(&byte.map(f), DType::U8)]);
    }
    let truth = Nd::integers(&SHAPE, 2, 0, 1);
    let func = unary(Unary::Not, &Operand::new(&SHAPE, DType::BOOL));
    let expected = truth.map(|x| 1.0 - x);
    check(func, &[truth.tensor(DType::BOOL)], &[(&expected, DType::BOOL)]);
}

#[test]
fn a_bound_of_clip_is_exact_for_large_integers() {
    let x = Operand::new(&[1], DType::I64);
    let low = (1i64 << 60) + 1;
    let func = unary(Unary::Clip { low: Some(low.into()), high: None }, &x);
    let zero = tilewright_ir::Tensor::from_slice(&[1], &[0i64]).unwrap();
    assert_eq!(run(func, &[zero])[0].get_i128(0), i128::from(low));
}

#[test]
fn casts_convert() {
    let x = Nd::random(&SHAPE, 7);
    let to = |to, f: fn(f64) -> f64| {
        check(cast(&Operand::f32(&SHAPE), to), &[x.f32()], &[(&x.map(f), to)]);
    };
    to(DType::I64, f64::trunc);
    to(DType::I32, f64::trunc);
    to(DType::BOOL, |v| f64::from(v != 0.0));
    to(DType::F64, |v| v);
    to(DType::F16, |v| v);
    to(DType::F32, |v| v);
    let truth = Nd::integers(&SHAPE, 7, 0, 1);
    for dtype in [DType::F32, DType::I64] {
        let func = cast(&Operand::new(&SHAPE, DType::BOOL), dtype);
        check(func, &[truth.tensor(DType::BOOL)], &[(&truth, dtype)]);
    }
}

/// Operand shapes, and what they broadcast to.
const BROADCASTS: [(&[usize], &[usize], &[usize]); 6] = [
    (&[3, 7], &[3, 7], &[3, 7]),
    (&[3, 7], &[7], &[3, 7]),
    (&[3, 1, 5], &[4, 1], &[3, 4, 5]),
    (&[], &[2, 3], &[2, 3]),
    (&[1], &[1, 1], &[1, 1]),
    (&[2, 0], &[1], &[2, 0]),
];

fn checked(op: Binary, f: Two, x: (DType, i64, i64), y: (DType, i64, i64), to: DType) {
    for (a, b, out) in BROADCASTS {
        let scale = |d: DType| if d.is_float() { 0.25 } else { 1.0 };
        let p = Nd::integers(a, 5, x.1, x.2).map(|v| v * scale(x.0));
        let q = Nd::integers(b, 6, y.1, y.2).map(|v| v * scale(y.0));
        let expected = Nd::build(out, |i| f(p.broadcast(i), q.broadcast(i)));
        let func = binary(op, &Operand::new(a, x.0), &Operand::new(b, y.0));
        check(func, &[p.tensor(x.0), q.tensor(y.0)], &[(&expected, to)]);
    }
}

#[test]
fn binary_operators_of_floats() {
    let cases: [(Binary, Two); 10] = [
        (Binary::Add, |a, b| a + b),
        (Binary::Sub, |a, b| a - b),
        (Binary::Mul, |a, b| a * b),
        (Binary::Div, |a, b| a / b),
        (Binary::Pow, f64::powf),
        (Binary::Min, f64::min),
        (Binary::Max, f64::max),
        (Binary::Fmod, |a, b| a % b),
        (Binary::Mod, |a, b| a - b * (a / b).floor()),
        (Binary::PRelu, |a, b| if a < 0.0 { a * b } else { a }),
    ];
    for dtype in [DType::F32, DType::F64, DType::F16] {
        for (op, f) in cases {
            let low = if op == Binary::Pow { 1 } else { -20 };
            if op == Binary::PRelu {
                let (p, q) = (Nd::random(&[2, 3, 4], 1), Nd::random(&[3, 1], 2));
                let expected = Nd::build(&[2, 3, 4], |i| f(p.at(i), q.broadcast(i)));
                let func =
                    binary(op, &Operand::new(&p.shape, dtype), &Operand::new(&q.shape, dtype));
                check(func, &[p.tensor(dtype), q.tensor(dtype)], &[(&expected, dtype)]);
                continue;
            }
            checked(op, f, (dtype, low, 20), (dtype, 1, 9), dtype);
        }
    }
}

#[test]
fn binary_operators_of_integers() {
    let cases: [(Binary, Two); 10] = [
        (Binary::Add, |a, b| a + b),
        (Binary::Sub, |a, b| a - b),
        (Binary::Mul, |a, b| a * b),
        (Binary::Div, |a, b| (a / b).trunc()),
        (Binary::Min, f64::min),
        (Binary::Max, f64::max),
        (Binary::Fmod, |a, b| a % b),
        (Binary::Mod, |a, b| a - b * (a / b).floor()),
        (Binary::BitAnd, |a, b| (a as i64 & b as i64) as f64),
        (Binary::BitXor, |a, b| (a as i64 ^ b as i64) as f64),
    ];
    for dtype in [DType::I32, DType::I64] {
        for (op, f) in cases {
            checked(op, f, (dtype, -20, 20), (dtype, -7, -1), dtype);
            checked(op, f, (dtype, -20, 20), (dtype, 1, 7), dtype);
        }
        checked(Binary::Pow, f64::powf, (dtype, -5, 5), (dtype, 0, 5), dtype);
        checked(
            Binary::BitOr,
            |a, b| (a as i64 | b as i64) as f64,
            (dtype, 0, 99),
            (dtype, 0, 99),
            dtype,
        );
    }
    checked(
        Binary::ShiftLeft,
        |a, b| f64::from((a as u8) << b as u8),
        (DType::U8, 0, 255),
        (DType::U8, 0, 7),
        DType::U8,
    );
    checked(
        Binary::ShiftRight,
        |a, b| f64::from(a as u8 >> b as u8),
        (DType::U8, 0, 255),
        (DType::U8, 0, 7),
        DType::U8,
    );
    // Signed numbers, and by more bits than there are.
    let far = |b: f64| if (0.0..8.0).contains(&b) { b as u32 } else { 8 };
    let pairs = [(Binary::ShiftLeft, true), (Binary::ShiftRight, false)];
    for (op, left) in pairs {
        let a = Nd::integers(&[40], 1, -128, 127);
        let b = Nd::integers(&[40], 2, -3, 12);
        let expected = Nd::build(&[40], |i| {
            let (value, by) = (a.at(i) as i64, far(b.at(i)));
            f64::from(if left { (value << by) as i8 } else { (value >> by) as i8 })
        });
        let of = Operand::new(&[40], DType::I8);
        check(
            binary(op, &of, &of),
            &[a.tensor(DType::I8), b.tensor(DType::I8)],
            &[(&expected, DType::I8)],
        );
    }
}

#[test]
fn powers_mix_types() {
    checked(Binary::Pow, f64::powf, (DType::F32, 1, 9), (DType::I64, -2, 3), DType::F32);
    checked(
        Binary::Pow,
        |a, b| a.powf(b).trunc(),
        (DType::I32, 1, 9),
        (DType::F32, 1, 9),
        DType::I32,
    );
}

#[test]
fn comparisons_and_logic_give_bool() {
    let cases: [(Binary, Compare); 5] = [
        (Binary::Equal, |a, b| a == b),
        (Binary::Less, |a, b| a < b),
        (Binary::LessEqual, |a, b| a <= b),
        (Binary::Greater, |a, b| a > b),
        (Binary::GreaterEqual, |a, b| a >= b),
    ];
    for (a, b, out) in BROADCASTS {
        for dtype in [DType::F32, DType::I64, DType::U8] {
            for (op, f) in cases {
                let (p, q) = (Nd::integers(a, 1, 0, 2), Nd::integers(b, 2, 0, 2));
                let expected = Nd::build(out, |i| f64::from(f(p.broadcast(i), q.broadcast(i))));
                let func = binary(op, &Operand::new(a, dtype), &Operand::new(b, dtype));
                check(func, &[p.tensor(dtype), q.tensor(dtype)], &[(&expected, DType::BOOL)]);
            }
        }
    }
    let logic: [(Binary, Logic); 4] = [
        (Binary::And, |a, b| a && b),
        (Binary::Or, |a, b| a || b),
        (Binary::Xor, |a, b| a != b),
        (Binary::Equal, |a, b| a == b),
    ];
    for (a, b, out) in BROADCASTS {
        for (op, f) in logic {
            let (p, q) = (Nd::integers(a, 1, 0, 1), Nd::integers(b, 2, 0, 1));
            let expected =
                Nd::build(out, |i| f64::from(f(p.broadcast(i) != 0.0, q.broadcast(i) != 0.0)));
            let d = DType::BOOL;
            let func = binary(op, &Operand::new(a, d), &Operand::new(b, d));
            check(func, &[p.tensor(d), q.tensor(d)], &[(&expected, d)]);
        }
    }
}

#[test]
fn variadic_operators_combine_all() {
    let shapes: [&[usize]; 3] = [&[3, 1, 5], &[4, 1], &[5]];
    let data: Vec<Nd> = (0..).zip(shapes).map(|(k, s)| Nd::random(s, k)).collect();
    let all = |i: &[usize]| data.iter().map(|x| x.broadcast(i)).collect::<Vec<_>>();
    let cases: [(Variadic, All); 4] = [
        (Variadic::Sum, |v| v.iter().sum()),
        (Variadic::Mean, |v| v.iter().sum::<f64>() / 3.0),
        (Variadic::Min, |v| v.into_iter().fold(f64::INFINITY, f64::min)),
        (Variadic::Max, |v| v.into_iter().fold(f64::NEG_INFINITY, f64::max)),
    ];
    for dtype in [DType::F32, DType::F16] {
        let operands: Vec<Operand> = shapes.iter().map(|s| Operand::new(s, dtype)).collect();
        let inputs: Vec<_> = data.iter().map(|x| x.tensor(dtype)).collect();
        for (op, f) in cases {
            let expected = Nd::build(&[3, 4, 5], |i| f(all(i)));
            check(variadic(op, &operands), &inputs, &[(&expected, dtype)]);
        }
    }
    let x = Nd::integers(&[3], 1, -5, 5);
    let func = variadic(Variadic::Max, &[Operand::new(&[3], DType::I64)]);
    check(func, &[x.tensor(DType::I64)], &[(&x, DType::I64)]);
}

#[test]
fn where_chooses() {
    let (c, x, y) =
        (Nd::integers(&[4, 1], 1, 0, 1), Nd::random(&[3, 1, 5], 2), Nd::random(&[5], 3));
    let expected =
        Nd::build(
            &[3, 4, 5],
            |i| if c.broadcast(i) != 0.0 { x.broadcast(i) } else { y.broadcast(i) },
        );
    let func = where_(&c.shape, &Operand::f32(&x.shape), &Operand::f32(&y.shape));
    check_f32(func, &[c.tensor(DType::BOOL), x.f32(), y.f32()], &expected);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (f, i, b) =
        (Operand::f32(&[3]), Operand::new(&[3], DType::I64), Operand::new(&[3], DType::BOOL));
    let u = Operand::new(&[3], DType::U8);
    let messages = [
        refused(unary(Unary::Exp, &i)),
        refused(unary(Unary::Not, &f)),
        refused(unary(Unary::BitNot, &f)),
        refused(unary(Unary::Neg, &u)),
        refused(unary(Unary::Abs, &b)),
        refused(unary(Unary::PowConst(0.5), &i)),
        refused(binary(Binary::Add, &f, &i)),
        refused(binary(Binary::Add, &f, &Operand::f32(&[4]))),
        refused(binary(Binary::Add, &b, &b)),
        refused(binary(Binary::And, &f, &f)),
        refused(binary(Binary::Mod, &b, &b)),
        refused(binary(Binary::ShiftLeft, &f, &f)),
        refused(binary(Binary::Pow, &b, &f)),
        refused(binary(Binary::PRelu, &f, &Operand::f32(&[2, 3]))),
        refused(binary(Binary::PRelu, &u, &u)),
        refused(variadic(Variadic::Sum, &[])),
        refused(variadic(Variadic::Mean, std::slice::from_ref(&i))),
        refused(variadic(Variadic::Sum, &[f.clone(), i.clone()])),
        refused(where_(&[3], &f, &i)),
        refused(where_(&[4], &f, &f)),
    ];
    expect_test::expect![[r#"
        unsupported: exp: int64 is not supported
        unsupported: not: float32 is not supported
        unsupported: bit_not: float32 is not supported
        unsupported: neg: uint8 is not supported
        unsupported: abs: bool is not supported
        unsupported: pow_const: int64 to the power 0.5
        input: add: the types float32 and int64 differ
        input: add: the shapes [[3], [4]] do not broadcast together
        unsupported: add: bool is not supported
        unsupported: and: float32 is not supported
        unsupported: mod: bool is not supported
        unsupported: shift_left: float32 is not supported
        unsupported: pow: bool is not supported
        input: p_relu: a slope of shape [2, 3] does not broadcast to [3]
        unsupported: p_relu: uint8 is not supported
        input: sum: there is no operand
        unsupported: mean: int64 is not supported
        input: sum: the types float32 and int64 differ
        input: where: the types float32 and int64 differ
        input: where: the shapes [[4], [3], [3]] do not broadcast together
    "#]]
    .assert_eq(&(messages.join("\n") + "\n"));
}
