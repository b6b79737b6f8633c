//! How large values are at most.

use tilewright_analysis::magnitude::magnitude;
use tilewright_ir::{BinOp, Buffer, CallTarget, DType, Expr, ExprKind, Intrin};

#[test]
fn what_is_loaded_is_finite_and_what_is_computed_only_if_it_cannot_overflow() {
    let a = Buffer::with_extents("A", &[4], DType::F32);
    let b = Buffer::with_extents("B", &[4], DType::F32);
    let n = Buffer::with_extents("N", &[4], DType::I64);
    let (x, y) = (a.load([Expr::i32(0)]), b.load([Expr::i32(0)]));
    let half = binary_of(BinOp::Mul, &x, &float32(0.25));
    let known = |e: &Expr| magnitude(e, &|b| b.name.as_ref() == "A").is_some();
    for (e, finite) in [
        (x.clone(), true),
        (y.clone(), false),
        (binary_of(BinOp::Sub, &float32(0.0), &x), true),
        (binary_of(BinOp::Mul, &float32(-1.0), &x), true),
        (binary_of(BinOp::Max, &x, &float32(3.0)), true),
        (binary_of(BinOp::Max, &x, &y), false),
        (Expr::select(x.clone().greater(0), x.clone(), float32(0.0)), true),
        (Expr::select(y.clone().greater(0), x.clone(), half.clone()), true),
        (binary_of(BinOp::Mul, &x, &x), false),
        (binary_of(BinOp::Add, &x, &x), false),
        (binary_of(BinOp::Add, &half, &half), true),
        (binary_of(BinOp::Div, &x, &float32(2.0)), true),
        (binary_of(BinOp::Div, &float32(1.0), &x), false),
        (call_of(Intrin::Exp, &x), false),
        (call_of(Intrin::Exp, &call_of(Intrin::Tanh, &x)), true),
        (call_of(Intrin::Tanh, &y), false),
        (call_of(Intrin::Sqrt, &x), false),
        (x.clone().cast(DType::F64), true),
        (x.clone().cast(DType::F16), false),
        (x.clone().cast(DType::BF16), false),
        (call_of(Intrin::Tanh, &x).cast(DType::F16), true),
        (n.load([Expr::i32(0)]).cast(DType::F32), true),
        (n.load([Expr::i32(0)]).cast(DType::F16), false),
        (Expr::new(ExprKind::Undef, DType::F32), false),
        (Expr::var(&tilewright_ir::Var::new("s", DType::F32)), false),
        (float32(f64::INFINITY), false),
    ] {
        assert_eq!(known(&e), finite, "{e}");
    }
}

fn binary_of(op: BinOp, a: &Expr, b: &Expr) -> Expr {
    Expr::binary(op, a.clone(), b.clone())
}

fn float32(v: f64) -> Expr {
    Expr::float(v, DType::F32)
}

fn call_of(f: Intrin, e: &Expr) -> Expr {
    Expr::call(CallTarget::Intrin(f), vec![e.clone()], e.dtype())
}
