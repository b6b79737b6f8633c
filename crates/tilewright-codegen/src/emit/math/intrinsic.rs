//! Built-in functions as machine code: one table.
//!
//! [`made`] says how an intrinsic is made of floats, and how of integers and `bool`. It names every
//! intrinsic, so that the compiler says where one is missing. Values of 16-bit types come as
//! `float32`; the caller rounds what is not exact.

use tilewright_ir::{DType, Intrin};

use super::super::code::{Code, Scalar, Ty, Val};
use super::super::types::is_signed;
use super::{Build, arcs, helper, hyperbolic, integer_power, library, sigmoid, single, trig, wide};

/// How a function of floats is made.
enum Floats {
    /// By these instructions.
    Code(Build),
    /// By a call of the C library's function of this name, in `float64`.
    Library,
    /// `float32` by an internal function, `float64` by the C library's function of this name.
    Own(Build),
    /// `float32` by an internal function, `float64` by these instructions.
    Both(Build, Build),
}

/// Instructions for a function of integers or `bool`.
type Ints = fn(&mut Code<'_>, &Whole) -> Val;

/// How a function is made of what it takes.
enum Lowering {
    Floating(Floats),
    Integral(Ints),
    Either(Floats, Ints),
}

/// How a function is made.
fn choose_lowering(op: Intrin) -> Lowering {
    use Floats::{Both, Code, Library, Own};
    use Lowering::{Either, Floating, Integral};
    match op {
        Intrin::Exp => Floating(Own(|c, x| single::exp(c, &x[0]))),
        Intrin::Exp2 => Floating(Own(|c, x| wide::exp2(c, &x[0]))),
        Intrin::Exp10 => Floating(Both(
            |c, x| wide::exp10(c, &x[0]),
            |c, x| library(c, "pow", &[&Val::float(x[0].ty, 10.0), &x[0]]),
        )),
        Intrin::Log => Floating(Own(|c, x| single::log(c, &x[0]))),
        Intrin::Log2 => Floating(Own(|c, x| wide::log(c, &x[0], 1.0))),
        Intrin::Log10 => Floating(Own(|c, x| wide::log(c, &x[0], std::f64::consts::LOG10_2))),
        Intrin::Log1p => Floating(Own(|c, x| wide::log1p(c, &x[0]))),
        Intrin::Sqrt => Floating(Code(|c, x| c.math("sqrt", &[&x[0]]))),
        Intrin::Rsqrt => Floating(Code(|c, x| {
            let root = c.math("sqrt", &[&x[0]]);
            c.bin("fdiv", &Val::float(x[0].ty, 1.0), &root)
        })),
        Intrin::Sigmoid => Floating(Both(
            |c, x| sigmoid(c, &x[0], |c, v| helper(c, "exp", &[v], |c, x| single::exp(c, &x[0]))),
            |c, x| sigmoid(c, &x[0], |c, v| library(c, "exp", &[v])),
        )),
        Intrin::Erf => Floating(Own(|c, x| single::erf(c, &x[0]))),
        Intrin::Sin => Floating(Own(|c, x| trig::sin(c, &x[0]))),
        Intrin::Cos => Floating(Own(|c, x| trig::cos(c, &x[0]))),
        Intrin::Tanh => Floating(Own(|c, x| single::tanh(c, &x[0]))),
        Intrin::Tan => Floating(Own(|c, x| trig::tan(c, &x[0]))),
        Intrin::Sinh => Floating(Own(|c, x| hyperbolic::sinh(c, &x[0]))),
        Intrin::Cosh => Floating(Own(|c, x| hyperbolic::cosh(c, &x[0]))),
        Intrin::Asin => Floating(Own(|c, x| arcs::asin(c, &x[0]))),
        Intrin::Acos => Floating(Own(|c, x| arcs::acos(c, &x[0]))),
        Intrin::Atan => Floating(Own(|c, x| arcs::atan(c, &x[0]))),
        Intrin::Asinh => Floating(Own(|c, x| hyperbolic::asinh(c, &x[0]))),
        Intrin::Acosh => Floating(Own(|c, x| hyperbolic::acosh(c, &x[0]))),
        Intrin::Atanh => Floating(Own(|c, x| hyperbolic::atanh(c, &x[0]))),
        Intrin::Atan2 | Intrin::Fmod | Intrin::Hypot => Floating(Library),
        Intrin::Floor => Floating(Code(|c, x| c.math("floor", &[&x[0]]))),
        Intrin::Ceil => Floating(Code(|c, x| c.math("ceil", &[&x[0]]))),
        Intrin::Trunc => Floating(Code(|c, x| c.math("trunc", &[&x[0]]))),
        Intrin::Round => Floating(Code(|c, x| c.math("round", &[&x[0]]))),
        Intrin::NearbyInt => Floating(Code(|c, x| c.math("nearbyint", &[&x[0]]))),
        Intrin::IsNan => Floating(Code(|c, x| c.cmp("fcmp uno", &x[0], &x[0]))),
        Intrin::IsInf => Floating(Code(|c, x| against_infinity(c, "fcmp oeq", &x[0]))),
        Intrin::IsFinite => Floating(Code(|c, x| against_infinity(c, "fcmp olt", &x[0]))),
        Intrin::Pow => Either(Own(|c, x| wide::pow(c, &x[0], &x[1])), |c, w| {
            integer_power(c, &w.x, &w.y, is_signed(w.dtype))
        }),
        Intrin::Abs => Either(Code(|c, x| c.math("fabs", &[&x[0]])), |c, w| {
            if is_signed(w.dtype) {
                let may_wrap = Val::int(Ty::I1, 0);
                c.intrinsic("abs", &[w.x.ty], w.x.ty, &[&w.x, &may_wrap])
            } else {
                w.x.clone()
            }
        }),
        Intrin::BitAnd => Integral(|c, w| c.bin("and", &w.x, &w.y)),
        Intrin::BitOr => Integral(|c, w| c.bin("or", &w.x, &w.y)),
        Intrin::BitXor => Integral(|c, w| c.bin("xor", &w.x, &w.y)),
        Intrin::BitNot => Integral(|c, w| c.bin("xor", &w.x, &Val::int(w.x.ty, -1))),
        Intrin::Shl => Integral(|c, w| shift_out(c, "shl", w)),
        Intrin::Shr => Integral(|c, w| match is_signed(w.dtype) {
            true if w.in_width => c.bin("ashr", &w.x, &w.y),
            true => {
                let most = Val::int(w.y.ty, i64::from(w.y.ty.scalar.bits()) - 1);
                let by = c.math("umin", &[&w.y, &most]);
                c.bin("ashr", &w.x, &by)
            }
            false => shift_out(c, "lshr", w),
        }),
        Intrin::Popcount => Integral(|c, w| c.math("ctpop", &[&w.x])),
        Intrin::Clz => Integral(|c, w| {
            let of_zero = Val::int(Ty::I1, 0);
            let count = c.intrinsic("ctlz", &[w.x.ty], w.x.ty, &[&w.x, &of_zero]);
            match w.dtype.bits {
                32 => count,
                64 => c.convert("trunc", &count, Scalar::I32),
                _ => c.convert("zext", &count, Scalar::I32),
            }
        }),
        Intrin::Likely | Intrin::IgnoreLoopPartition | Intrin::FirstOfTask => {
            Integral(|_, w| w.x.clone())
        }
    }
}

/// How the magnitude of a float compares with infinity.
fn against_infinity(c: &mut Code<'_>, op: &str, x: &Val) -> Val {
    let magnitude = c.math("fabs", &[x]);
    c.cmp(op, &magnitude, &Val::float(x.ty, f64::INFINITY))
}

/// Operands that are integers or `bool`, of one type.
pub(in super::super) struct Whole {
    /// The first operand.
    pub x: Val,
    /// The second one; the first again where there is none.
    pub y: Val,
    pub dtype: DType,
    /// Whether the second one is from zero up to the width of the type.
    pub in_width: bool,
}

/// A shift that fills with zeros; one by the width or more shifts everything out.
fn shift_out(c: &mut Code<'_>, op: &str, w: &Whole) -> Val {
    if w.in_width {
        return c.bin(op, &w.x, &w.y);
    }
    let bits = i64::from(w.x.ty.scalar.bits());
    let within = c.cmp("icmp ult", &w.y, &Val::int(w.y.ty, bits));
    let amount = c.bin("and", &w.y, &Val::int(w.y.ty, bits - 1));
    let shifted = c.bin(op, &w.x, &amount);
    c.select(&within, &shifted, &Val::zero(w.x.ty))
}

/// The value of a function of integers or `bool`; `None` where it takes none.
pub(in super::super) fn of_ints(c: &mut Code<'_>, op: Intrin, args: &Whole) -> Option<Val> {
    match choose_lowering(op) {
        Lowering::Integral(build) | Lowering::Either(_, build) => Some(build(c, args)),
        Lowering::Floating(_) => None,
    }
}

/// The value of a function of floats, in the register type; `None` where it takes none.
pub(in super::super) fn of_floats(c: &mut Code<'_>, op: Intrin, args: &[Val]) -> Option<Val> {
    let (Lowering::Floating(how) | Lowering::Either(how, _)) = choose_lowering(op) else {
        return None;
    };
    let single = args.first()?.ty.scalar == Scalar::F32;
    let all: Vec<&Val> = args.iter().collect();
    Some(match (how, single) {
        (Floats::Code(build), _) | (Floats::Both(_, build), false) => build(c, args),
        (Floats::Own(build) | Floats::Both(build, _), true) => helper(c, op.name(), &all, build),
        (Floats::Own(_) | Floats::Library, false) => library(c, op.name(), &all),
        (Floats::Library, true) => {
            let wide: Vec<Val> = args.iter().map(|a| c.convert("fpext", a, Scalar::F64)).collect();
            let v = library(c, op.name(), &wide.iter().collect::<Vec<_>>());
            c.convert("fptrunc", &v, Scalar::F32)
        }
    })
}
