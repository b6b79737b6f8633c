//! Blocks that ask for aligned rows of a buffer, when they become statements.

use std::sync::Arc;

use tilewright_ir::{
    Attr, Attrs, Block, Buffer, DType, Expr, ForKind, Module, Param, Range, Remarks, Result, Stmt,
    StmtKind, TensorFunc, Var,
};
use tilewright_transform::lower::opaque::PASS;
use tilewright_transform::pass::Config;

const DIM_ALIGN: &str = "buffer_dim_align";
const ALIGNMENT: &str = "buffer_data_alignment";

/// `for i in 3: for j in 1: T[i, j] = 0` in a block that asks for an alignment of `T`.
fn sample(annotation: Attr, buffer: &Buffer, alloc: bool) -> TensorFunc {
    let (i, j) = (Var::index("i"), Var::index("j"));
    let store = Stmt::store(buffer, vec![i.expr(), j.expr()], Expr::float(0.0, DType::F32));
    let mut block = Block::new("fill", store);
    block.annotations = Attrs::from([(Arc::from(DIM_ALIGN), annotation)]);
    let block = Stmt::block(Vec::new(), Expr::bool(true), block);
    let loops = Stmt::serial(&i, Expr::i32(3), Stmt::serial(&j, Expr::i32(1), block));
    if alloc {
        TensorFunc::new(Vec::new(), Stmt::allocate(buffer, loops))
    } else {
        TensorFunc::new(vec![Param::tensor(buffer)], loops)
    }
}

/// A function as the pass leaves it.
fn lowered(f: &TensorFunc) -> Result<TensorFunc> {
    let mut module = Module::new();
    module.insert("f", f.clone());
    let module = PASS.apply(&module, &Config::new(), &mut Remarks::new())?;
    Ok(TensorFunc::clone(module.tensor("f").expect("it is there")))
}

fn aligned(entry: &[i64]) -> Attr {
    Attr::List(vec![Attr::List(entry.iter().map(|v| Attr::Int(*v)).collect())])
}

#[test]
fn rows_are_aligned_and_unit_loops_go() {
    let t = Buffer::with_extents("T", &[3, 1], DType::F32);
    let f = lowered(&sample(aligned(&[0, 0, 32, 5]), &t, true)).expect("lowers");
    let StmtKind::Allocate { buffer, annotations, body } = f.body.kind() else { panic!("{f:?}") };
    let strides: Vec<_> = buffer.strides.iter().map(Expr::as_int).collect();
    assert_eq!(strides, [Some(5), Some(1)]);
    assert!(matches!(annotations.get(ALIGNMENT), Some(Attr::Int(64))));
    let StmtKind::For { body, .. } = body.kind() else { panic!("{body:?}") };
    let StmtKind::Store { buffer: stored, indices, .. } = body.kind() else { panic!("{body:?}") };
    assert_eq!((stored, indices[1].as_int()), (buffer, Some(0)));
}

#[test]
fn strides_are_the_next_that_have_the_remainder() {
    let t = Buffer::with_extents("T", &[4, 3, 10], DType::F32);
    let ints = |list: &[[i64; 3]]| -> Vec<i64> {
        let entry = |[axis, factor, offset]: &[i64; 3]| {
            Attr::List([0, *axis, *factor, *offset].map(Attr::Int).to_vec())
        };
        let mut block = Block::new(
            "fill",
            Stmt::store(&t, [0; 3].map(Expr::i32).to_vec(), Expr::float(0.0, DType::F32)),
        );
        block.annotations =
            Attrs::from([(Arc::from(DIM_ALIGN), Attr::List(list.iter().map(entry).collect()))]);
        let body = Stmt::allocate(&t, Stmt::block(Vec::new(), Expr::bool(true), block));
        let f = lowered(&TensorFunc::new(Vec::new(), body)).expect("sizes that fit");
        let StmtKind::Allocate { buffer, .. } = f.body.kind() else { panic!("{f:?}") };
        buffer.strides.iter().filter_map(Expr::as_int).collect()
    };
    assert!(ints(&[]).is_empty(), "rows that nothing aligns lie one behind the other");
    assert_eq!(ints(&[[1, 16, 0]]), [48, 16, 1]);
    assert_eq!(ints(&[[1, 10, 0]]), [30, 10, 1]);
    assert_eq!(ints(&[[0, 32, 1], [1, 8, 3]]), [33, 11, 1]);
}

#[test]
fn alignments_that_cannot_be_are_errors() {
    let t = Buffer::with_extents("T", &[3, 1], DType::F32);
    for bad in [aligned(&[1, 0, 32, 0]), aligned(&[0, 2, 32, 0]), aligned(&[0, 0, 0, 0])] {
        let text = error_text(&sample(bad, &t, true));
        assert!(text.contains("block `fill` has no valid `buffer_dim_align`"), "{text}");
    }
    assert!(error_text(&sample(Attr::Int(1), &t, true)).contains("no valid"));
    let text = error_text(&sample(aligned(&[0, 0, 32, 0]), &t, false));
    assert!(text.contains("buffer `T`: it is not allocated here"), "{text}");
    let strided = t.derive(|d| d.strides = vec![Expr::i32(2), Expr::i32(1)]);
    let text = error_text(&sample(aligned(&[0, 0, 32, 0]), &strided, true));
    assert!(text.contains("it has strides already"), "{text}");
    let viewed = sample(aligned(&[0, 0, 32, 0]), &t, true);
    let StmtKind::Allocate { body, .. } = viewed.body.kind() else { panic!("{viewed:?}") };
    let view = t.derive(|d| d.shape = vec![Expr::i32(3)]);
    let body = Stmt::new(StmtKind::Declare { buffer: view, body: body.clone() });
    let viewed = TensorFunc { body: Stmt::allocate(&t, body), ..viewed };
    assert!(error_text(&viewed).contains("also declared under another name"));
}

fn error_text(f: &TensorFunc) -> String {
    lowered(f).expect_err("refused").render()
}

#[test]
fn loops_that_are_marked_stay() {
    let i = Var::index("i");
    let b = Buffer::with_extents("B", &[1], DType::F32);
    let store = Stmt::store(&b, vec![i.expr()], Expr::float(0.0, DType::F32));
    let kind = ForKind::ThreadBinding("threadIdx.x".into());
    let range = Range::upto(Expr::i32(1));
    let threads = Stmt::for_loop(&i, range.clone(), kind, store.clone());
    let marked = Stmt::new(StmtKind::For {
        var: i,
        range,
        kind: ForKind::Serial,
        annotations: Attrs::from([(Arc::from("pragma_x"), Attr::Int(1))]),
        body: store,
    });
    for body in [threads, marked] {
        let f = TensorFunc::new(vec![Param::tensor(&b)], body);
        let f = lowered(&f).expect("lowers");
        assert!(matches!(f.body.kind(), StmtKind::For { .. }));
    }
}
