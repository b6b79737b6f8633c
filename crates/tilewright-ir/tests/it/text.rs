//! Expressions as text, and messages that show values.

use tilewright_ir::text::{brief, fill, without_values};
use tilewright_ir::{BinOp, CallTarget, DType, Expr, Intrin, Var};

#[test]
fn a_message_without_values_leaves_out_what_shows_them() {
    let of = without_values;
    assert_eq!(of("the size `n` must be at least 1, and is {}"), "the size `n` must be at least 1");
    assert_eq!(of("index {} of {}, in `A`, not {}"), "index ? of ?, in `A`");
    assert_eq!(of("nothing, to show"), "nothing, to show");
    assert_eq!(
        of("`A[{}, {}]` is out of range: axis 1 has extent 5"),
        "`A[?, ?]` is out of range: axis 1 has extent 5"
    );
}

#[test]
fn the_text_of_shared_terms_is_not_written_out() {
    let mut e = Var::index("i").expr();
    for _ in 0..40 {
        e = Expr::binary(BinOp::Mul, e.clone(), e);
    }
    let text = e.to_string();
    assert!(text.len() < 1000 && text.contains("..."), "{text}");
}

#[test]
fn parentheses_keep_the_tree() {
    let (i, j) = (Var::index("i"), Var::index("j"));
    let e = (&i + 2).floordiv(8) * 4 - (&j - (&i - 1));
    assert_eq!(e.to_string(), "(i + 2) // 8 * 4 - (j - (i - 1))");
    let c = (&i * 4 + &j).less(14).and(!i.expr().equal(3).or(j.expr().greater(-1)));
    assert_eq!(c.to_string(), "i * 4 + j < 14 and not (i == 3 or j > -1)");
    let min = (i.expr().min(3) * j.expr().less(2).cast(DType::I32)).to_string();
    assert_eq!(min, "T.min(i, 3) * T.Cast(\"int32\", j < 2)");
}

#[test]
fn plain_numbers_stand_only_where_they_read_back() {
    let (i, l) = (Var::index("i").expr(), Var::new("l", DType::I64).expr());
    let (two, three) = (Expr::i32(2), Expr::i32(3));
    assert_eq!(binary_text(BinOp::Mul, &two, &three), "T.int32(2) * 3");
    assert_eq!(binary_text(BinOp::Add, &i, &three), "i + 3");
    assert_eq!(binary_text(BinOp::Add, &l, &Expr::int(3, DType::I64)), "l + T.int64(3)");
    let shift = Expr::intrin(Intrin::Shl, vec![l, three]);
    assert_eq!(shift.to_string(), "T.shift_left(l, T.int32(3))");
}

fn binary_text(op: BinOp, a: &Expr, b: &Expr) -> String {
    Expr::binary(op, a.clone(), b.clone()).to_string()
}

#[test]
fn opaque_calls_keep_their_type() {
    assert_eq!(call_text("ret", DType::HANDLE), "T.ret(1)");
    assert_eq!(call_text("ret", DType::I32), "T.call_intrin(\"int32\", \"ret\", 1)");
    assert_eq!(call_text("min", DType::HANDLE), "T.call_intrin(\"handle\", \"min\", 1)");
}

fn call_text(name: &str, dtype: DType) -> String {
    Expr::call(CallTarget::Opaque(name.into()), vec![Expr::i32(1)], dtype).to_string()
}

#[test]
fn large_expressions_are_abbreviated() {
    // A tree of 2^40 nodes whose halves are shared.
    let mut e = &Var::index("i") + 1;
    for _ in 0..40 {
        e = &e * &e;
    }
    let text = brief(&e);
    assert!(text.len() < 200 && text.contains("..."), "{text}");
    assert_eq!(brief(&(&Var::index("i") + 1)), "i + 1");
}

#[test]
fn floats_read_back() {
    assert_eq!(Expr::float(0.1, DType::F32).to_string(), "T.float32(0.1)");
    assert_eq!(Expr::float(1e30, DType::F32).to_string(), "T.float32(1e30)");
    assert_eq!(Expr::float(f64::NEG_INFINITY, DType::F32).to_string(), "T.float32(\"-inf\")");
}

#[test]
fn a_message_takes_its_values_in_order() {
    assert_eq!(fill("`A[{}, {}]` is out", &[3, -1]), "`A[3, -1]` is out");
    assert_eq!(fill("{} of {}", &[3]), "3 of ?");
    assert_eq!(fill::<i64>("a {} without values", &[]), "a {} without values");
}
