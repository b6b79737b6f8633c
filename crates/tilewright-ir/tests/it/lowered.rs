//! Which functions are lowered.

use tilewright_ir::{Block, Buffer, DType, Expr, Lowered, Module, Param, Stmt, TensorFunc};

#[test]
fn a_block_is_not_lowered() {
    let b = Buffer::with_extents("B", &[4], DType::F32);
    let store = Stmt::store(&b, vec![Expr::i32(0)], Expr::float(1.0, DType::F32));
    let func = |body| TensorFunc::new(vec![Param::tensor(&b)], body);
    let mut module = Module::new();
    module.insert("f", func(store.clone()));
    assert!(Lowered::new(module.clone()).is_ok_and(|m| m.tensor("f").is_ok()));
    let block = Stmt::block(Vec::new(), Expr::bool(true), Block::new("B", store));
    module.insert("g", func(Stmt::seq([Stmt::nop(), block])));
    let error = Lowered::new(module).expect_err("a block").render();
    assert!(
        error.contains("function `g`: the function is not lowered: it has the block `B`"),
        "{error}"
    );
}
