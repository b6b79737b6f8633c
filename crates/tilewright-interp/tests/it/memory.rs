//! Views: buffers that share memory, regions, strides and offsets, reuse of allocations.

use tilewright_interp::{Arg, RunOptions, run_func};
use tilewright_ir::{
    Block, Buffer, DType, Expr, IterKind, IterVar, MatchRegion, Param, Range, Region, Stmt,
    StmtKind, Tensor, TensorFunc, Var,
};

use crate::build::*;

fn declare(view: &Buffer, body: Stmt) -> Stmt {
    Stmt::new(StmtKind::Declare { buffer: view.clone(), body })
}

fn ints(values: &[i64]) -> Vec<Expr> {
    values.iter().map(|&v| Expr::int(v, DType::I32)).collect()
}

#[test]
fn a_declared_buffer_is_a_view_of_its_pointer() {
    let (a, b) = (buffer("A", &[2, 6], DType::F32), buffer("B", &[3, 4], DType::F32));
    let flat = a.derive(|d| d.shape = ints(&[12]));
    // The same memory with the columns of a 3 by 4 matrix side by side.
    let other = b.derive(|d| {
        d.shape = ints(&[4, 3]);
        d.strides = ints(&[1, 4]);
    });
    let (i, j) = (Var::index("i"), Var::index("j"));
    let store = Stmt::store(&other, vec![j.expr(), i.expr()], flat.load([&i * 4 + &j]) + 1.0);
    let body = serial(&i, 3, serial(&j, 4, store));
    let f = func(&[&a, &b], declare(&flat, declare(&other, body)));
    let want: Vec<f64> = (1..13).map(f64::from).collect();
    assert_eq!(values(&f, &[iota(&[2, 6])]), want);
}

#[test]
fn offsets_move_a_view() {
    let (a, b) = (buffer("A", &[10], DType::F32), buffer("B", &[4], DType::F32));
    let tail = a.derive(|d| {
        d.shape = ints(&[4]);
        d.elem_offset = Some(Expr::i32(5));
    });
    let i = Var::index("i");
    let body = serial(&i, 4, Stmt::store(&b, vec![i.expr()], tail.load([i.expr()])));
    let f = func(&[&a, &b], declare(&tail, body.clone()));
    assert_eq!(values(&f, &[iota(&[10])]), [5.0, 6.0, 7.0, 8.0]);
    let over = tail.derive(|d| d.elem_offset = Some(Expr::i32(8)));
    let body = serial(&i, 4, Stmt::store(&b, vec![i.expr()], over.load([i.expr()])));
    let e = error(&func(&[&a, &b], declare(&over, body)), &[iota(&[10])]);
    assert!(e.contains("`A[2]` lies outside of the memory that it is in"), "{e}");
}

#[test]
fn views_of_another_type_see_the_same_bytes() {
    // A workspace of bytes whose halves hold float32 and int16.
    let b = buffer("B", &[4], DType::F32);
    let space = buffer("workspace", &[32], DType::U8);
    let floats = space.derive(|d| {
        d.dtype = DType::F32;
        d.shape = ints(&[4]);
    });
    let shorts = space.derive(|d| {
        d.dtype = DType::I16;
        d.shape = ints(&[4]);
        d.elem_offset = Some(Expr::i32(8));
    });
    let i = Var::index("i");
    let at = || vec![i.expr()];
    let x = Expr::cast_node(i.expr(), DType::F32) + 0.5;
    let body = Stmt::seq([
        Stmt::store(&floats, at(), x),
        Stmt::store(&shorts, at(), Expr::cast_node(&i * 100, DType::I16)),
        Stmt::store(&b, at(), floats.load(at()) + Expr::cast_node(shorts.load(at()), DType::F32)),
    ]);
    let body = declare(&floats, declare(&shorts, serial(&i, 4, body)));
    let f = func(&[&b, &space], body);
    let out = run_with(&f, &[], &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let got: Vec<f64> = (0..4).map(|i| out[0].tensor.get_f64(i)).collect();
    assert_eq!(got, [0.5, 101.5, 202.5, 303.5]);
    // The bytes of 1.5 in little-endian order.
    let byte = |i: usize| out[1].tensor.get_i128(4 + i);
    assert_eq!([byte(0), byte(1), byte(2), byte(3)], [0, 0, 0xc0, 0x3f]);
    assert_eq!(out[1].first_missing().map(|(i, _)| i), Some(vec![24]));
}

#[test]
fn a_half_written_element_is_uninitialised() {
    let b = buffer("B", &[1], DType::I32);
    let space = buffer("T", &[4], DType::U8);
    let word = space.derive(|d| {
        d.dtype = DType::I32;
        d.shape = ints(&[1]);
    });
    let byte = |i| Stmt::store(&space, vec![Expr::i32(i)], Expr::int(1, DType::U8));
    let read = Stmt::store(&b, ints(&[0]), word.load(ints(&[0])).max(Expr::i32(0)));
    let f = |n| {
        let body = Stmt::seq((0..n).map(byte).chain([read.clone()]));
        func(&[&b], Stmt::allocate(&space, declare(&word, body)))
    };
    assert_eq!(values(&f(4), &[]), [f64::from(0x0101_0101)]);
    assert!(error(&f(3), &[]).contains("read of uninitialised `T[0]`"));
}

/// A block that sees row `v` of `A` as `row`, and adds it to row `v` of `B`.
fn rows(edit: impl FnOnce(&mut tilewright_ir::buffer::BufferData)) -> TensorFunc {
    let (a, b) = (buffer("A", &[3, 4], DType::F32), buffer("B", &[3, 4], DType::F32));
    let (i, v, j) = (Var::index("i"), Var::index("v"), Var::index("j"));
    let row = buffer("row", &[4], DType::F32).derive_storage(edit);
    let part = |of: &Buffer| Region {
        buffer: of.clone(),
        ranges: vec![Range::point(v.expr()), range(0, 4)],
    };
    let out = buffer("out", &[1, 4], DType::F32);
    let store =
        Stmt::store(&out, vec![Expr::i32(0), j.expr()], row.load([Expr::i32(3) - j.expr()]));
    let mut block = Block::new("rows", serial(&j, 4, store));
    block.iters = vec![IterVar { var: v.clone(), domain: range(0, 3), kind: IterKind::Spatial }];
    block.matches = vec![
        MatchRegion { buffer: row, source: part(&a) },
        MatchRegion { buffer: out, source: part(&b) },
    ];
    let body = serial(&i, 3, Stmt::block(vec![i.expr()], Expr::bool(true), block));
    func(&[&a, &b], body)
}

#[test]
fn a_view_of_a_region() {
    let want = [3.0, 2.0, 1.0, 0.0, 7.0, 6.0, 5.0, 4.0, 11.0, 10.0, 9.0, 8.0];
    assert_eq!(values(&rows(|_| {}), &[iota(&[3, 4])]), want);
    // Strides and offset that are variables take what they are.
    let (s, o) = (Var::index("s"), Var::index("o"));
    let f = rows(|d| {
        d.strides = vec![s.expr()];
        d.elem_offset = Some(o.expr());
    });
    assert_eq!(values(&f, &[iota(&[3, 4])]), want);
    let wrong = rows(|d| d.strides = ints(&[2]));
    let e = error(&wrong, &[iota(&[3, 4])]);
    assert!(e.contains("stride of view `row` is 1, not 2 in block `rows`"), "{e}");
}

#[test]
fn views_of_views_stay_inside_of_all() {
    // A 4 by 4 tile of a 6 by 6 matrix, and a column of that tile.
    let (a, b) = (buffer("A", &[6, 6], DType::F32), buffer("B", &[4], DType::F32));
    let tile = buffer("tile", &[4, 4], DType::F32);
    let column = buffer("column", &[4, 1], DType::F32);
    let i = Var::index("i");
    let build = |start: i64| {
        let store = Stmt::store(&b, vec![i.expr()], column.load([i.expr(), Expr::i32(0)]));
        let mut inner = Block::new("inner", serial(&i, 4, store));
        let source = Region { buffer: tile.clone(), ranges: vec![range(0, 4), range(2, 1)] };
        inner.matches = vec![MatchRegion { buffer: column.clone(), source }];
        let inner = Stmt::block(Vec::new(), Expr::bool(true), inner);
        let mut outer = Block::new("outer", inner);
        let ranges = vec![range(start, 4), range(1, 4)];
        let source = Region { buffer: a.clone(), ranges };
        outer.matches = vec![MatchRegion { buffer: tile.clone(), source }];
        func(&[&a, &b], Stmt::block(Vec::new(), Expr::bool(true), outer))
    };
    assert_eq!(values(&build(2), &[iota(&[6, 6])]), [15.0, 21.0, 27.0, 33.0]);
    let e = error(&build(3), &[iota(&[6, 6])]);
    assert!(e.contains("`column[3, 0]` is out of range: it is a view of index 6"), "{e}");
}

#[test]
fn an_allocation_is_new_each_time() {
    let (b, t) = (buffer("B", &[3], DType::F32), buffer("T", &[1], DType::F32));
    let i = Var::index("i");
    let zero = || ints(&[0]);
    let first = Stmt::guard(i.expr().equal(0), Stmt::store(&t, zero(), f32(1.0)));
    let read = Stmt::store(&b, vec![i.expr()], t.load(zero()).max(f32(0.0)));
    let body = Stmt::seq([first, read]);
    let inside = func(&[&b], serial(&i, 3, Stmt::allocate(&t, body.clone())));
    assert!(error(&inside, &[]).contains("read of uninitialised `T[0]`\nnote: with i = 1"));
    let outside = func(&[&b], Stmt::allocate(&t, serial(&i, 3, body)));
    assert_eq!(values(&outside, &[]), [1.0, 1.0, 1.0]);
}

#[test]
fn parameters_may_have_strides_and_an_offset() {
    // Rows of 3 elements at a distance of 4, from element 2 on; then symbolic strides.
    let i = Var::index("i");
    let j = Var::index("j");
    let at = || vec![i.expr(), j.expr()];
    let with = |strides: Vec<Expr>, offset: Option<Expr>| {
        let gap = |b: Buffer| {
            b.derive(|d| {
                d.strides = strides.clone();
                d.elem_offset = offset.clone();
            })
        };
        let a = gap(buffer("A", &[2, 3], DType::F32));
        let b = buffer("B", &[2, 3], DType::F32);
        let c = gap(buffer("C", &[2, 3], DType::F32)).derive_storage(|_| {});
        let body = Stmt::seq([
            Stmt::store(&c, at(), a.load(at()) + 10.0),
            Stmt::store(&b, at(), c.load(at())),
        ]);
        func(&[&a, &b, &c], serial(&i, 2, serial(&j, 3, body)))
    };
    let (s, t) = (Var::index("s"), Var::index("t"));
    for f in [
        with(ints(&[4, 1]), Some(Expr::i32(2))),
        with(vec![s.expr(), Expr::i32(1)], Some(t.expr())),
        with(Vec::new(), None),
    ] {
        let out = run(&f, &[iota(&[2, 3])]).unwrap_or_else(|e| panic!("{}", e.render()));
        for t in &out {
            let got: Vec<f64> = (0..6).map(|i| t.get_f64(i)).collect();
            assert_eq!(got, [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]);
        }
        assert_eq!(out.len(), 2);
    }
}

#[test]
fn hostile_strides_are_refused_or_harmless() {
    let a = |strides: &[i64], offset: i64| {
        buffer("A", &[1, 2], DType::F32).derive(|d| {
            d.strides = strides.iter().map(|&s| Expr::int(s, DType::I64)).collect();
            d.elem_offset = Some(Expr::int(offset, DType::I64));
        })
    };
    let run_of = |a: &Buffer| {
        let b = buffer("B", &[1], DType::F32);
        let zero = || ints(&[0]);
        let f = func(&[a, &b], Stmt::store(&b, zero(), a.load(ints(&[0, 1]))));
        run(&f, &[iota(&[1, 2])]).map(|o| o[0].get_f64(0)).map_err(|e| e.to_string())
    };
    // The stride of an axis of extent one does not matter.
    assert_eq!(run_of(&a(&[i64::MAX, 1], 0)), Ok(1.0));
    assert_eq!(run_of(&a(&[i64::MIN, 1], 0)), Ok(1.0));
    let refused = Err("function `main`: argument `A` has no sane size".to_owned());
    assert_eq!(run_of(&a(&[1, -1], 0)), refused);
    assert_eq!(run_of(&a(&[1, i64::MAX], 0)), refused);
    assert_eq!(run_of(&a(&[1, 1], -1)), refused);
    assert_eq!(run_of(&a(&[1, 1], i64::MAX)), refused);
}

#[test]
fn a_pointer_may_be_bound_to_a_name() {
    let (a, b) = (buffer("A", &[4], DType::F32), buffer("B", &[4], DType::F32));
    let p = Var::new("p", DType::HANDLE);
    let view = a.derive(|d| {
        d.data = p.clone();
        d.shape = ints(&[2, 2]);
    });
    let i = Var::index("i");
    let value = view.load([i.expr().floordiv(2), i.expr().floormod(2)]);
    let body = serial(&i, 4, Stmt::store(&b, vec![i.expr()], value));
    let f = func(&[&a, &b], Stmt::let_in(&p, a.data.expr(), declare(&view, body)));
    assert_eq!(values(&f, &[iota(&[4])]), [0.0, 1.0, 2.0, 3.0]);
}

#[test]
fn tensors_without_axes_and_without_elements() {
    let (a, b) = (buffer("A", &[], DType::F32), buffer("B", &[], DType::F32));
    let f = func(&[&a, &b], Stmt::store(&b, Vec::new(), a.load([]) + 1.0));
    assert_eq!(values(&f, &[iota(&[])]), [1.0]);
    let (a, b) = (buffer("A", &[0, 3], DType::F32), buffer("B", &[0], DType::F32));
    let f = func(&[&a, &b], Stmt::store(&b, vec![Expr::i32(0)], a.load(ints(&[0, 0]))));
    let empty = Tensor::zeros(DType::F32, &[0, 3]).unwrap_or_else(|e| panic!("{e}"));
    assert!(error(&f, std::slice::from_ref(&empty)).contains("`A[0, 0]` is out of range"));
    let never = TensorFunc::new(vec![Param::tensor(&a)], Stmt::nop());
    let out = run_func(&never, &[Arg::Tensor(empty)], &RunOptions::default());
    assert!(out.is_ok_and(|o| o.outputs.is_empty()));
}
