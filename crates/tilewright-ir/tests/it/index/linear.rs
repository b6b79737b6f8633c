//! Linear forms of integer expressions.

use tilewright_ir::index::Linear;
use tilewright_ir::{DType, Var};

#[test]
fn sums_are_multiplied_out_and_written_in_one_order() {
    let [i, j] = ["i", "j"].map(Var::index);
    let form = Linear::from_expr(&((&i * 3 + &j - 5) * 4 + &i)).expect("small");
    assert_eq!((form.coefficient(&i), form.coefficient(&j)), (Some(13), Some(4)));
    assert_eq!(form.to_expr().map(|e| e.to_string()).as_deref(), Some("i * 13 + j * 4 - 20"));
    assert_eq!(Linear::from_expr(&(i.expr() - &i)).and_then(|l| l.as_constant()), Some(0));
}

#[test]
fn what_is_not_linear_hides_its_variables() {
    let [i, j] = ["i", "j"].map(Var::index);
    let form = Linear::from_expr(&(i.expr().floordiv(2) * 6 + &j)).expect("small");
    assert_eq!((form.coefficient(&i), form.coefficient(&j)), (None, Some(1)));
    assert_eq!(form.terms[0].1, 6);
    let narrow = Var::new("k", DType::I8);
    let form = Linear::from_expr(&(narrow.expr() + narrow.expr())).expect("small");
    assert_eq!(form.coefficient(&narrow), None);
}
