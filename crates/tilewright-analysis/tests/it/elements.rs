//! Operands without elements, where there is something to compute.

use tilewright_analysis::elements::may_lack_operand;
use tilewright_ir::{Buffer, DType, Expr, Param, Stmt, TensorFunc, Var};

/// `B[0] = A[0]` for two buffers of one axis.
fn copies_first(read: Expr, written: Expr) -> TensorFunc {
    let [a, b] =
        [("A", read), ("B", written)].map(|(name, n)| Buffer::new(name, vec![n], DType::F32));
    let body = Stmt::store(&b, vec![Expr::i32(0)], a.load([Expr::i32(0)]));
    TensorFunc::new([a, b].iter().map(Param::tensor).collect(), body)
}

#[test]
fn an_operand_may_be_empty_where_no_result_follows_its_size() {
    let n = Var::index("n").expr();
    let rest = (n.clone() + 7).floordiv(8) * 8 - &n;
    for (read, written, may) in [
        // Open sizes are at least 1.
        (n.clone(), n.clone(), false),
        (n.clone() - 1, n.clone(), true),
        (n.clone() - 1, n.clone() - 1, false),
        (n.clone() - 1, (n.clone() - 1) * 3, false),
        // A window over what may be empty has no place.
        (n.clone() - 1, n.clone() - 3, false),
        (n.clone() - 1, (n.clone() - 4).floordiv(2) + 1, false),
        // Padding to a multiple may be none.
        (rest.clone(), n.clone() + &rest, true),
        (n.clone(), n.clone() + &rest, false),
        (Expr::i32(4), n.clone() - 1, false),
    ] {
        let func = copies_first(read.clone(), written.clone());
        assert_eq!(may_lack_operand(&func), may, "{read} -> {written}");
    }
}
