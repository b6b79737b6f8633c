//! Accuracy of the elementary functions, against the C library in twice the precision.

use crate::common::*;
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

/// Holds a function to its accuracy: a loop on this machine over every `step`th bit pattern, and
/// over a part of them vectors on this machine and a loop on one without extensions.
fn check(op: Intrin, limit: f64, step: usize) {
    let step = step / density();
    let xs = sample(step);
    let host = Llvm::get().expect("an LLVM").host();
    let mut worst = (0.0, 0.0, 0.0);
    for (lanes, target, part) in [(1, &host, 1), (16, &host, 16), (1, &baseline(), 16)] {
        let xs: Vec<f32> = xs.iter().rev().take(xs.len() / part).copied().collect();
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

/// How many times denser than usual to sample; set `TILEWRIGHT_FUZZ_ITERS` for more.
fn density() -> usize {
    std::env::var("TILEWRIGHT_FUZZ_ITERS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1)
        .clamp(1, 16)
}

#[test]
fn functions_that_are_made_here_are_accurate() {
    check(Intrin::Exp, 1.0, 4099);
    check(Intrin::Log, 0.9, 4099);
    check(Intrin::Tanh, 1.4, 4099);
    check(Intrin::Sigmoid, 2.2, 4099);
    check(Intrin::Erf, 1.0, 4099);
    check(Intrin::Sin, 1.6, 4099);
    check(Intrin::Cos, 1.6, 4099);
    check(Intrin::Asin, 1.4, 4099);
    check(Intrin::Acos, 1.2, 4099);
    check(Intrin::Atan, 1.2, 4099);
    for op in [Intrin::Exp2, Intrin::Exp10, Intrin::Log2, Intrin::Log10, Intrin::Log1p] {
        check(op, 0.51, 4099);
    }
    for op in [Intrin::Sinh, Intrin::Cosh, Intrin::Asinh, Intrin::Acosh, Intrin::Atanh] {
        check(op, 0.51, 4099);
    }
    check(Intrin::Tan, 0.51, 4099);
}

#[test]
fn functions_of_the_machine_are_accurate() {
    check(Intrin::Sqrt, 0.5, 40009);
    check(Intrin::Rsqrt, 1.5, 40009);
}

#[test]
fn powers_are_accurate() {
    // Results over the whole range of the type: exponents up to 150 / log2 |x|, whole ones too.
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for k in 0..200_000 {
        let x = (next() * 254.0 - 127.0).exp2();
        let most = (150.0 / x.log2().abs()).min(1e6);
        let y = (next() * 2.0 - 1.0) * most;
        xs.push(if k % 3 == 0 { -x } else { x });
        ys.push(if k % 3 == 0 || k % 5 == 0 { y.round() } else { y });
    }
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        3.0,
        -3.0,
        0.5,
        -0.5,
        16777215.0,
        16777216.0,
        1e-45,
        -1e-45,
        f32::MAX,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    for x in special {
        for y in special {
            xs.push(x);
            ys.push(y);
        }
    }
    let n = xs.len() as i64;
    let [a, b, c] = ["A", "B", "C"].map(|name| buffer(name, &[n], DType::F32));
    let body = elementwise(&c, n, |i| {
        Expr::intrin(Intrin::Pow, vec![a.load([i.expr()]), b.load([i.expr()])])
    });
    let mut tensors = [floats(&xs), floats(&ys), zeros(DType::F32, &[xs.len()])];
    assert_eq!(compile(&func(&[&a, &b, &c], body)).call(&mut tensors), 0);
    let got = tensors[2].as_slice::<f32>().expect("floats");
    let mut worst = 0.0f64;
    for ((&x, &y), &got) in xs.iter().zip(&ys).zip(got) {
        let exact = f64::from(x).powf(f64::from(y));
        let error = ulps(got, exact);
        assert!(error <= 0.51, "{x:e} ** {y:e} = {got:e}, not {exact:e}: {error} ulp");
        worst = worst.max(error);
    }
    println!("pow: {worst:.3}");
}

#[test]
fn powers_with_a_constant_exponent_are_accurate() {
    let special = [
        0.0,
        -0.0,
        1.0,
        -2.5,
        1e-30,
        -1e30,
        1e-45,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        7.0,
    ];
    let n = special.len() as i64;
    for exponent in [0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -0.5, 4.0, 1.5] {
        let (a, b) = (buffer("A", &[n], DType::F32), buffer("B", &[n], DType::F32));
        let body = elementwise(&b, n, |i| {
            let x = a.load([i.expr()]);
            Expr::intrin(Intrin::Pow, vec![x, Expr::float(exponent, DType::F32)])
        });
        let mut tensors = [floats(&special), zeros(DType::F32, &[special.len()])];
        assert_eq!(compile(&func(&[&a, &b], body)).call(&mut tensors), 0);
        for (k, &x) in special.iter().enumerate() {
            let got = tensors[1].as_slice::<f32>().expect("floats")[k];
            let error = ulps(got, f64::from(x).powf(exponent));
            assert!(error <= 1.0, "{x:e} ** {exponent} = {got:e}: {error} ulp");
        }
    }
}
