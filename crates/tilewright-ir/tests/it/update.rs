//! Which stores update their own cell, and by which operator.

use tilewright_ir::update::{Combine, update};
use tilewright_ir::{Buffer, CallTarget, DType, Expr, Intrin, Var};

#[test]
fn which_stores_are_updates() {
    let b = Buffer::with_extents("B", &[8], DType::I32);
    let a = Buffer::with_extents("A", &[8], DType::I32);
    let i = Var::index("i");
    let at = || vec![i.expr()];
    let cell = || b.load(at());
    let x = || a.load(at());
    let other = || b.load([i.expr() + 1]);
    let check = |value: Expr, expected: Option<Combine>| {
        assert_eq!(update(&b, &at(), &value), expected, "{value}");
    };
    check(cell() + x(), Some(Combine::Sum));
    check(x() + cell(), Some(Combine::Sum));
    check(cell() - x(), Some(Combine::Sum));
    check(cell() + x() - x(), Some(Combine::Sum));
    check(x() + (x() + cell()), Some(Combine::Sum));
    check(cell() + other(), Some(Combine::Sum));
    check(cell() * x(), Some(Combine::Product));
    check(x().max(cell()), Some(Combine::Max));
    check(cell().min(x()), Some(Combine::Min));
    check(
        Expr::call(CallTarget::Intrin(Intrin::BitXor), vec![cell(), x()], DType::I32),
        Some(Combine::BitXor),
    );
    check(Expr::if_then_else(x().less(0), cell() + 1, cell()), Some(Combine::Sum));
    check(x() - cell(), None);
    check(cell() * 2 + x(), None);
    check(cell() + cell(), None);
    check(cell(), None);
    check(x(), None);
    check(x() + other(), None);
    check(cell().max(x()) + 1, None);
    check(Expr::if_then_else(cell().less(0), cell() + 1, cell()), None);
    check(Expr::if_then_else(x().less(0), cell() + 1, cell() * 2), None);
    check(Expr::if_then_else(x().less(0), cell() + 1, x()), None);
}
