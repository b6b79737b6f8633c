//! Accesses as affine functions of iteration variables.

use tilewright_ir::index::Affine;
use tilewright_ir::{Buffer, DType, Expr, Var};

#[test]
fn coefficients_of_a_strided_access() {
    let (h, w) = (Var::index("h"), Var::index("w"));
    let b = Buffer::with_extents("B", &[3, 10, 7], DType::F32);
    let at = [Expr::i32(2), &h * 2 + 1, w.expr() - 3];
    let a = Affine::of_access(&b, &at).expect("affine");
    let steps = (a.coefficient(&h), a.coefficient(&w));
    assert_eq!((a.constant(), steps), (140 + 7 - 3, (Some(14), Some(1))));
}

#[test]
fn what_is_not_affine_is_opaque() {
    let (h, w) = (Var::index("h"), Var::index("w"));
    let a = Affine::from_expr(&(h.expr().floordiv(2) * 6 + &w)).expect("fits");
    assert_eq!((a.coefficient(&h), a.coefficient(&w)), (None, Some(1)));
    assert_eq!(a.opaque().map(|(_, k)| k).collect::<Vec<_>>(), [6]);
    assert_eq!(Affine::from_expr(&(h.expr() * &w)).and_then(|a| a.coefficient(&w)), None);
}
