//! What loops and shapes say of variables.

use tilewright_ir::dim::MAX_CELLS;
use tilewright_ir::index::{Linear, Ranges};
use tilewright_ir::{Buffer, DType, Expr, Param, Range, Stmt, TensorFunc, Var};

#[test]
fn a_product_that_is_an_extent_is_no_more_than_the_cells_of_a_tensor() {
    let [h, w, i] = ["h", "w", "i"].map(Var::index);
    let cells = h.expr() * &w * 65;
    let x = Buffer::new("x", vec![cells.clone()], DType::F32);
    let func = TensorFunc::new(vec![Param::tensor(&x)], Stmt::seq([]));
    let mut ranges = Ranges::default();
    ranges.bind_sizes(&func);
    assert!(ranges.interval(&cells).hi <= MAX_CELLS as i128);
    ranges.bind_loop(&i, &Range::upto(cells.floordiv(64) + 1));
    assert!(ranges.stays(&(i.expr() * 64 + 63)));
}

#[test]
fn a_term_of_an_extent_is_no_more_than_the_extent() {
    let [n, m, k] = ["n", "m", "k"].map(Var::index);
    let shape = vec![n.expr() * 55, m.expr() * 3 + k.expr() * 2 + 5];
    let x = Buffer::new("x", shape.clone(), DType::F32);
    let func = TensorFunc::new(vec![Param::tensor(&x)], Stmt::seq([]));
    let mut ranges = Ranges::default();
    ranges.bind_sizes(&func);
    let most = |v: &Var| ranges.interval(&v.expr()).hi;
    let cells = MAX_CELLS as i128;
    assert_eq!(most(&n), cells / 55);
    assert_eq!((most(&m), most(&k)), ((cells - 5) / 3, (cells - 5) / 2));
    assert!(ranges.stays(&shape[0]));
    // Memory of its own may be larger than what the function is given.
    ranges.bind_memory(&[n.expr(), Expr::i32(1000)]);
    assert_eq!(ranges.interval(&n.expr()).hi, cells / 1000);
}

#[test]
fn a_size_that_an_extent_exceeds_by_a_number_is_bounded() {
    let [n, w] = ["n", "w"].map(Var::index);
    let x = Buffer::new("x", vec![n.expr(), &w + 1, Expr::i32(252)], DType::F32);
    let func = TensorFunc::new(vec![Param::tensor(&x)], Stmt::seq([]));
    let mut ranges = Ranges::default();
    ranges.bind_sizes(&func);
    assert!(ranges.interval(&w.expr()).hi <= (MAX_CELLS / 252) as i128);
    assert!(ranges.stays(&(w.expr() * 2 + 2)));
}

#[test]
fn loops_know_their_open_ends() {
    let [n, i, j] = ["n", "i", "j"].map(Var::index);
    let mut ranges = Ranges::default();
    ranges.bind_size(&n);
    let values = |e: Expr, ranges: &Ranges| {
        let form = Linear::from_expr(&e).expect("a form");
        form.values(ranges).map(|i| (i.lo, i.hi)).expect("values")
    };
    // `for i in range(n): for j in range(i, n)`.
    ranges.bind_loop(&i, &Range::upto(n.expr()));
    assert_eq!(values(n.expr() - &i, &ranges).0, 1);
    assert_eq!(values(i.expr() - &n + 3, &ranges).1, 2);
    ranges.bind_loop(&j, &Range { min: i.expr(), extent: n.expr() - &i });
    assert_eq!(values(j.expr() - &i, &ranges).0, 0);
    assert_eq!(values(n.expr() - &j, &ranges).0, 1);
    // Another loop over the same variable, of which the ends are numbers.
    ranges.bind_loop(&i, &Range::upto(Expr::i32(5)));
    assert!(values(n.expr() - &i, &ranges).0 < 0);
}
