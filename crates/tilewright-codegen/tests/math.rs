//! Accuracy of the elementary functions, against the C library in twice the precision.

mod common;

use common::*;
use tilewright_codegen::llvm::{Llvm, OptLevel, Target};
use tilewright_ir::{DType, Expr, Intrin, Stmt, Var};

unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
}

/// Distance of a result from the exact value in units in the last place of the nearest `f32`.
fn ulps(got: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if got.is_nan() || exact.is_nan() {
        return if got.is_nan() == exact.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got == nearest {
        let sign = got.is_sign_negative() == nearest.is_sign_negative();
        return if sign || exact != 0.0 { 0.0 } else { f64::INFINITY };
    }
    if got.is_infinite() || nearest.is_infinite() {
        return f64::INFINITY;
    }
    let exponent = nearest.abs().max(f32::MIN_POSITIVE).log2().floor() as i32;
    (f64::from(got) - exact).abs() / 2f64.powi(exponent - 23)
}

fn sample(step: usize) -> Vec<f32> {
    let mut xs: Vec<f32> = (0..=u32::MAX).step_by(step).map(f32::from_bits).collect();
    xs.extend([0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX]);
    xs.extend([f32::MIN, f32::MIN_POSITIVE, 1e-45, -1e-45, 88.72, 88.73, -87.3, -103.9, -104.1]);
    xs
}

/// The results of a function of one argument, in blocks of `lanes` (1 for a plain loop).
fn apply(op: Intrin, xs: &[f32], lanes: u16, target: &Target) -> Vec<f32> {
    let n = xs.len().div_ceil(usize::from(lanes)) * usize::from(lanes);
    let (a, b) = (buffer("A", &[n as i64], DType::F32), buffer("B", &[n as i64], DType::F32));
    let i = Var::index("i");
    let at = match lanes {
        1 => i.expr(),
        _ => Expr::ramp(&i * i64::from(lanes), Expr::i32(1), lanes),
    };
    let value = Expr::intrin(op, vec![a.load([at.clone()])]);
    let extent = Expr::int((n / usize::from(lanes)) as i64, DType::I32);
    let f = func(&[&a, &b], Stmt::serial(&i, extent, Stmt::store(&b, vec![at], value)));
    let mut padded = xs.to_vec();
    padded.resize(n, 0.5);
    let mut tensors = [floats(&padded), zeros(DType::F32, &[n])];
    assert_eq!(compile_for(&f, target, OptLevel::Full).call(&mut tensors), 0);
    tensors[1].as_slice::<f32>().expect("floats")[..xs.len()].to_vec()
}

fn exact(op: Intrin, x: f64) -> f64 {
    match op {
        Intrin::Exp => x.exp(),
        Intrin::Exp2 => x.exp2(),
        Intrin::Exp10 => (x * std::f64::consts::LN_10).exp(),
        Intrin::Log => x.ln(),
        Intrin::Log2 => x.log2(),
        Intrin::Log10 => x.log10(),
        Intrin::Log1p => x.ln_1p(),
        Intrin::Sqrt => x.sqrt(),
        Intrin::Rsqrt => 1.0 / x.sqrt(),
        Intrin::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Intrin::Erf => erf(x),
        Intrin::Sin => x.sin(),
        Intrin::Cos => x.cos(),
        Intrin::Tan => x.tan(),
        Intrin::Sinh => x.sinh(),
        Intrin::Cosh => x.cosh(),
        Intrin::Tanh => x.tanh(),
        Intrin::Asin => x.asin(),
        Intrin::Acos => x.acos(),
        Intrin::Atan => x.atan(),
        Intrin::Asinh => x.asinh(),
        Intrin::Acosh => x.acosh(),
        Intrin::Atanh => x.atanh(),
        _ => panic!("{op:?} is not a function of one float"),
    }
}

fn check(op: Intrin, limit: f64, step: usize) {
    let xs = sample(step);
    let host = Llvm::get().expect("an LLVM").host();
    let mut worst = (0.0, 0.0, 0.0);
    for (lanes, target) in [(1, &host), (1, &baseline()), (16, &host)] {
        let count = if lanes == 1 && *target == host { xs.len() } else { xs.len() / 16 };
        let xs: Vec<f32> = xs.iter().rev().take(count).copied().collect();
        for (&x, &got) in xs.iter().zip(&apply(op, &xs, lanes, target)) {
            let error = ulps(got, exact(op, f64::from(x)));
            if error > worst.0 {
                worst = (error, x, got);
            }
        }
    }
    println!("{}: {:.3} at {:e} gives {:e}", op.name(), worst.0, worst.1, worst.2);
    assert!(worst.0 <= limit, "{op:?}({:e}) = {:e}: {} ulp", worst.1, worst.2, worst.0);
}

#[test]
fn functions_of_one_argument_are_accurate() {
    check(Intrin::Exp, 2.0, 4099);
    check(Intrin::Log, 2.0, 4099);
    check(Intrin::Tanh, 2.0, 4099);
    check(Intrin::Sigmoid, 2.2, 4099);
    check(Intrin::Erf, 2.0, 4099);
    check(Intrin::Sin, 2.0, 4099);
    check(Intrin::Cos, 2.0, 4099);
    for op in [Intrin::Exp2, Intrin::Exp10, Intrin::Log2, Intrin::Log10, Intrin::Log1p] {
        check(op, 0.6, 4099);
    }
    for op in [Intrin::Sqrt, Intrin::Rsqrt, Intrin::Tan, Intrin::Sinh, Intrin::Cosh, Intrin::Asin] {
        check(op, 2.0, 40009);
    }
    for op in [Intrin::Acos, Intrin::Atan, Intrin::Asinh, Intrin::Acosh, Intrin::Atanh] {
        check(op, 2.0, 40009);
    }
}
