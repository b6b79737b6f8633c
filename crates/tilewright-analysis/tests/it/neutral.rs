//! Neutral elements, and constants in their types.

use tilewright_analysis::neutral::{ANY, is, number, reduced, step};
use tilewright_ir::{BinOp, Buffer, DType, Expr, Var};
use tilewright_polyhedral::Engine;

#[test]
fn neutral_elements_go_and_a_zero_of_floats_absorbs_nothing() {
    let engine = Engine::new();
    let i = Var::index("i");
    let at = engine.box_of(&[(i.clone(), 1)]);
    for t in [DType::F32, DType::I32] {
        let x = Buffer::with_extents("X", &[4], t).load([Expr::i32(0)]);
        let c = |v: f64| Expr::constant(v, t);
        let gone = |e: Expr| reduced(&e, &at, ANY).ptr_eq(&x);
        assert!(
            gone(binary_of(BinOp::Add, &c(0.0), &x)) && gone(binary_of(BinOp::Sub, &x, &c(0.0)))
        );
        assert!(gone(binary_of(BinOp::Mul, &x, &c(1.0))));
        assert!(!gone(binary_of(BinOp::Max, &x, &c(-5.0))));
        let low = if t.is_float() {
            Expr::float(f64::NEG_INFINITY, t)
        } else {
            Expr::int(i64::from(i32::MIN), t)
        };
        assert!(gone(binary_of(BinOp::Max, &low, &x)) && !gone(binary_of(BinOp::Min, &low, &x)));
        let product = binary_of(BinOp::Mul, &binary_of(BinOp::Mul, &c(0.0), &c(7.0)), &x);
        let sum = binary_of(BinOp::Add, &x, &product);
        assert_eq!(reduced(&sum, &at, ANY).ptr_eq(&x), t.is_int(), "{sum}");
        assert!(reduced(&sum, &at, &|_| true).ptr_eq(&x));
        // What is computed from finite numbers need not be one.
        let squared = binary_of(BinOp::Add, &x, &binary_of(BinOp::Mul, &c(0.0), &(&x * &x)));
        assert_eq!(reduced(&squared, &at, &|_| true).ptr_eq(&x), t.is_int(), "{squared}");
        let chosen = Expr::select(i.expr().less(1), x.clone(), c(3.0));
        assert!(gone(chosen));
    }
}

fn binary_of(op: BinOp, a: &Expr, b: &Expr) -> Expr {
    Expr::binary(op, a.clone(), b.clone())
}

#[test]
fn constants_are_rounded_in_their_type() {
    let half = DType::F16;
    let c = |v: f64| Expr::float(v, half);
    let folded = |op, a: f64, b: f64| step(Expr::binary(op, c(a), c(b)), ANY);
    // Above 2048 every other integer is there.
    assert!(is(&folded(BinOp::Add, 2048.0, 1.0), 2048.0));
    assert!(is(&folded(BinOp::Div, 1.0, 0.0), f64::INFINITY));
    assert!(number(&folded(BinOp::Div, 0.0, 0.0)).is_none());
    assert!(folded(BinOp::Le, 1.0, 1.0).is_true());
    let wide = Expr::int(16_777_217, DType::I32).cast(DType::F32);
    assert!(is(&step(wide, ANY), 16_777_216.0));
    let negative = Expr::float(-1.0, DType::F32).cast(DType::U8);
    assert!(number(&step(negative, ANY)).is_none());
}
