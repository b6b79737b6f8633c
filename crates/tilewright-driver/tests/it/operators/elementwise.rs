//! Elementwise operators.

use tilewright_driver::DType;
use tilewright_ops::elementwise::{
    Binary, Unary, Variadic, binary, cast, reinterpret, unary, variadic, where_,
};
use tilewright_ops::{Operand, Scalar};

use super::{RAGGED, check};

const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];
const INTS: [DType; 8] =
    [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];

fn float_operators() -> Vec<Unary> {
    use Unary::*;
    let (low, high) = (Some(Scalar::Float(-0.5)), Some(Scalar::Float(1.25)));
    vec![
        Identity,
        Relu,
        LeakyRelu { alpha: 0.1 },
        ThresholdedRelu { alpha: 0.7 },
        Sigmoid,
        HardSigmoid { alpha: 0.2, beta: 0.5 },
        HardSwish,
        Swish { alpha: 1.5 },
        Mish,
        Softplus,
        Softsign,
        Elu { alpha: 0.9 },
        Selu { alpha: 1.67, gamma: 1.05 },
        Celu { alpha: 1.2 },
        Gelu { tanh: false },
        Gelu { tanh: true },
        Clip { low, high },
        Clip { low: None, high },
        Shrink { lambd: 0.5, bias: 0.25 },
        PowConst(2.0),
        PowConst(0.5),
        PowConst(-3.0),
        Tanh,
        Exp,
        Log,
        Sqrt,
        Reciprocal,
        Neg,
        Abs,
        Sign,
        Erf,
        Floor,
        Ceil,
        Round,
        Sin,
        Cos,
        Tan,
        Asin,
        Acos,
        Atan,
        Sinh,
        Cosh,
        Asinh,
        Acosh,
        Atanh,
        IsNan,
        IsInf { negative: true, positive: false },
    ]
}

#[test]
fn unary_of_floats() {
    for op in float_operators() {
        for dtype in FLOATS {
            let x = Operand::new(&[3, 13], dtype);
            check(&format!("{op:?} of {x}"), unary(op, &x));
        }
    }
}

#[test]
fn unary_at_every_ragged_length() {
    for n in RAGGED {
        check(&format!("relu of {n}"), unary(Unary::Relu, &Operand::f32(&[n])));
        check(&format!("tanh of {n} x 3"), unary(Unary::Tanh, &Operand::f32(&[n, 3])));
    }
    check("relu of a scalar", unary(Unary::Relu, &Operand::f32(&[0usize; 0])));
    check("relu of nothing", unary(Unary::Relu, &Operand::f32(&[3, 0])));
}

#[test]
fn unary_of_integers_and_bools() {
    for dtype in INTS {
        let x = Operand::new(&[5, 7], dtype);
        let clip = Unary::Clip { low: Some(Scalar::Int(2)), high: Some(Scalar::Int(5)) };
        for op in [clip, Unary::Abs, Unary::Sign, Unary::PowConst(3.0), Unary::BitNot] {
            check(&format!("{op:?} of {x}"), unary(op, &x));
        }
        if dtype.min_int().is_some_and(|low| low < 0) {
            check(&format!("neg of {x}"), unary(Unary::Neg, &x));
            check(&format!("relu of {x}"), unary(Unary::Relu, &x));
        }
    }
    check("not", unary(Unary::Not, &Operand::new(&[33], DType::BOOL)));
}

#[test]
fn bits_of_every_type_are_those_of_all_of_its_width() {
    for from in FLOATS.into_iter().chain(INTS) {
        for to in FLOATS.into_iter().chain(INTS).filter(|to| to.bits == from.bits) {
            for n in [1, 17] {
                let x = Operand::new(&[n], from);
                check(&format!("bits of {x} as {to}"), reinterpret(&x, to));
            }
        }
    }
}

#[test]
fn casts_between_all_types() {
    let all: Vec<DType> = FLOATS.iter().chain(&INTS).copied().chain([DType::BOOL]).collect();
    for from in &all {
        for to in &all {
            let x = Operand::new(&[19], *from);
            check(&format!("cast of {x} to {to}"), cast(&x, *to));
        }
    }
}

#[test]
fn binary_of_floats() {
    use Binary::*;
    for op in [
        Add,
        Sub,
        Mul,
        Div,
        Pow,
        Min,
        Max,
        Fmod,
        Equal,
        Less,
        LessEqual,
        Greater,
        GreaterEqual,
        PRelu,
    ] {
        for dtype in FLOATS {
            let x = Operand::new(&[4, 17], dtype);
            check(&format!("{op:?} of {x}"), binary(op, &x, &x));
        }
    }
}

#[test]
fn binary_of_integers_and_bools() {
    use Binary::*;
    for dtype in INTS {
        let x = Operand::new(&[3, 11], dtype);
        for op in [
            Add,
            Sub,
            Mul,
            Min,
            Max,
            Equal,
            Less,
            LessEqual,
            Greater,
            GreaterEqual,
            BitAnd,
            BitOr,
            BitXor,
        ] {
            check(&format!("{op:?} of {x}"), binary(op, &x, &x));
        }
    }
    let x = Operand::new(&[3, 11], DType::BOOL);
    for op in [And, Or, Xor, Equal] {
        check(&format!("{op:?} of {x}"), binary(op, &x, &x));
    }
}

#[test]
fn binary_broadcasts() {
    for (a, b) in [
        (&[5, 7][..], &[7][..]),
        (&[5, 7], &[5, 1]),
        (&[5, 7], &[]),
        (&[5, 1], &[1, 7]),
        (&[3, 1, 5], &[4, 1]),
        (&[2, 3, 17], &[1, 3, 1]),
    ] {
        let (a, b) = (Operand::f32(a), Operand::f32(b));
        check(&format!("{a} + {b}"), binary(Binary::Add, &a, &b));
        check(&format!("{b} - {a}"), binary(Binary::Sub, &b, &a));
    }
}

#[test]
fn several_operands() {
    let x = [Operand::f32(&[5, 9]), Operand::f32(&[9]), Operand::f32(&[5, 1])];
    for op in [Variadic::Sum, Variadic::Mean, Variadic::Min, Variadic::Max] {
        check(&format!("{op:?}"), variadic(op, &x));
        check(&format!("{op:?} of one"), variadic(op, &x[..1]));
    }
    check("where", where_(&[5, 1], &x[0], &x[1]));
}
