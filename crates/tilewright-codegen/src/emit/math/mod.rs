//! Elementary functions.
//!
//! LLVM turns `llvm.exp` and its like into calls of the C library for one number at a time. The
//! functions that models spend time in are therefore written here, as polynomials without
//! branches: internal functions that are always inlined, so that loops with them vectorise, and
//! the same for vector operands. The others call the C library in `float64`, lane by lane, and
//! `float64` always does.
//!
//! Largest error of the `float32` functions, in units in the last place of the exact result, over
//! every 256th of all inputs (a test holds them to it, with every 4099th):
//!
//! | function | error | method |
//! |---|---|---|
//! | `exp` | 1.0 | x = n ln 2 + r, polynomial of degree 6 |
//! | `log` | 0.8 | x = 2^e (1 + f), polynomial of degree 11 |
//! | `tanh` | 1.3 | odd polynomial below 0.625, 1 - 2 / (e^2x + 1) above |
//! | `sigmoid` | 2.2 | 1 / (1 + e^-x), or e^x / (1 + e^x) below 0 |
//! | `erf` | 1.0 | odd polynomial below 1, 1 - e^-q(x) above |
//! | `sin`, `cos` | 1.6 | multiples of pi/2 removed exactly for all inputs, then polynomials |
//! | `asin`, `acos` | 1.3 | odd polynomial below 1/2, of sqrt((1 - x) / 2) above |
//! | `atan` | 1.2 | odd polynomial, of 1 / x above 1 |
//! | `exp2`, `exp10`, `log2`, `log10`, `log1p`, `pow` | 0.51 | in `float64`, to 34 bits or more |
//! | `sinh`, `cosh`, `asinh`, `acosh`, `atanh`, `tan` | 0.51 | in `float64`, to 34 bits or more |
//!
//! `sqrt`, division and rounding to integers are exact in the sense of IEEE 754; `rsqrt` is a
//! division by a square root. Special values are those of C99: `NaN` gives `NaN`, except that
//! `pow(x, 0)` and `pow(1, y)` are 1; subnormal inputs and results are right.
//!
//! The coefficients are weighted minimax fits of our own (Lawson's algorithm on Chebyshev nodes,
//! against the relative error of the function), rounded to `float32` one after the other with
//! those that follow fitted anew.

mod arcs;
mod hyperbolic;
pub(super) mod intrinsic;
mod single;
mod trig;
mod wide;

use super::code::{Code, Scalar, Shared, Ty, Val};

/// Instructions for a function of some values.
type Build = fn(&mut Code<'_>, &[Val]) -> Val;

/// Calls an internal function on values of one type, which is made when it is first asked for.
fn helper(c: &mut Code<'_>, name: &str, args: &[&Val], build: Build) -> Val {
    let ty = args.first().map_or(Ty::I32, |a| a.ty);
    let name = format!("tw.{name}.{}", ty.suffix());
    c.shared.helper(&name, |shared| define(shared, &name, ty, args.len(), build));
    c.call(&name, ty, args)
}

fn define(shared: &Shared, name: &str, ty: Ty, arity: usize, build: Build) -> String {
    let mut c = Code::new(shared);
    let params: Vec<Val> = (0..arity).map(|k| Val::new(ty, format!("%x{k}"))).collect();
    let result = build(&mut c, &params);
    c.line(format_args!("ret {result}"));
    let params: Vec<String> = params.iter().map(Val::to_string).collect();
    c.finish(&format!("define internal {ty} @{name}({}) #1", params.join(", ")))
}

/// A call of the C library's function of `float64`, for each lane.
fn library(c: &mut Code<'_>, name: &str, args: &[&Val]) -> Val {
    let one = Ty { scalar: Scalar::F64, lanes: 1 };
    let params = vec!["double"; args.len()].join(", ");
    c.shared.declare(name, || format!("declare double @{name}({params}) #2"));
    let lanes = args.first().map_or(1, |a| a.lanes());
    c.lane_by_lane(one.with_lanes(lanes), |c, lane| {
        let parts: Vec<Val> = args.iter().map(|a| c.extract(a, lane)).collect();
        c.call(name, one, &parts.iter().collect::<Vec<_>>())
    })
}

/// `1 / (1 + e^-x)`, without the loss of small results: the exponential is of `-|x|`.
fn sigmoid(c: &mut Code<'_>, x: &Val, exp: impl FnOnce(&mut Code<'_>, &Val) -> Val) -> Val {
    let one = Val::float(x.ty, 1.0);
    let magnitude = c.math("fabs", &[x]);
    let negative = c.emit(x.ty, format_args!("fneg {magnitude}"));
    let e = exp(c, &negative);
    let numerator = c.select_cmp("fcmp oge", x, &Val::zero(x.ty), &one, &e);
    let denominator = c.bin("fadd", &one, &e);
    c.bin("fdiv", &numerator, &denominator)
}

/// A polynomial by Horner's rule; coefficients from the constant term upwards.
fn polynomial(c: &mut Code<'_>, x: &Val, coefficients: &[f64]) -> Val {
    let mut rest = coefficients.iter().rev().map(|&k| Val::float(x.ty, k));
    let first = rest.next().unwrap_or_else(|| Val::zero(x.ty));
    rest.fold(first, |sum, k| c.fma(&sum, x, &k))
}

/// `x` to the power `y` of integers, by squaring, with the wrap-around of the type. A negative
/// power is the quotient 1 / x^-y rounded towards zero: 0 unless x is 1 or -1, and 0 for x = 0.
fn integer_power(c: &mut Code<'_>, x: &Val, y: &Val, signed: bool) -> Val {
    let build: Build = if signed {
        |c, v| power(c, &v[0], &v[1], true)
    } else {
        |c, v| power(c, &v[0], &v[1], false)
    };
    let name = if signed { "spow" } else { "upow" };
    c.lane_by_lane(x.ty, |c, lane| {
        let (a, b) = (c.extract(x, lane), c.extract(y, lane));
        helper(c, name, &[&a, &b], build)
    })
}

fn power(c: &mut Code<'_>, x: &Val, y: &Val, signed: bool) -> Val {
    let ty = x.ty;
    let (zero, one) = (Val::zero(ty), Val::int(ty, 1));
    let [head, end] = ["loop", "done"].map(|hint| c.new_label(hint));
    let from = c.label();
    c.jump(&head);
    c.begin(&head);
    let [base, rest, product] = [ty, ty, ty].map(|ty| c.name(ty));
    let [square, next, bigger] = [ty, ty, ty].map(|ty| c.name(ty));
    for (v, first, again) in [(&base, x, &square), (&rest, y, &next), (&product, &one, &bigger)] {
        let ways = format!("[ {}, %{from} ], [ {}, %{head} ]", first.text, again.text);
        c.define(v, format_args!("phi {ty} {ways}"));
    }
    let odd = c.bin("and", &rest, &one);
    let odd = c.cmp("icmp ne", &odd, &zero);
    let multiplied = c.bin("mul", &product, &base);
    c.define(&bigger, format_args!("select {odd}, {multiplied}, {product}"));
    c.define(&square, format_args!("mul {base}, {}", base.text));
    // As unsigned, so that a negative power ends too; its result is replaced below.
    c.define(&next, format_args!("lshr {rest}, 1"));
    let more = c.cmp("icmp ne", &next, &zero);
    c.branch(&more, &head, &end);
    c.begin(&end);
    if !signed {
        return bigger;
    }
    let negative = c.cmp("icmp slt", y, &zero);
    let is_one = c.cmp("icmp eq", x, &one);
    let is_minus_one = c.cmp("icmp eq", x, &Val::int(ty, -1));
    let odd = c.bin("and", y, &one);
    let sign = c.select_cmp("icmp ne", &odd, &zero, &Val::int(ty, -1), &one);
    let small = c.select(&is_minus_one, &sign, &zero);
    let small = c.select(&is_one, &one, &small);
    c.select(&negative, &small, &bigger)
}
