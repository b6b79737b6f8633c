//! Lowering, step by step, seen through the stores that are left.

use tilewright_ir::visit::{walk_func, walk_stmt};
use tilewright_ir::{
    Attr, Block, Buffer, DType, Dim, Error, Expr, ForKind, IterKind, IterVar, MatchRegion, Param,
    Range, Region, Stmt, StmtKind, TensorFunc, Var, Visit,
};
use tilewright_transform::lower::{blocks, flatten, scratch, vectorize};

/// The statements of a function that matter here, one a line, with conditions around them.
fn outline(func: &TensorFunc) -> Vec<String> {
    struct Outline(Vec<String>);
    impl Visit for Outline {
        fn stmt(&mut self, s: &Stmt) {
            match s.kind() {
                StmtKind::Store { buffer, indices, value } => {
                    let at: Vec<String> = indices.iter().map(Expr::to_string).collect();
                    self.0.push(format!("{}[{}] = {value}", buffer.name, at.join(", ")));
                }
                StmtKind::If { cond, .. } => self.0.push(format!("if {cond}")),
                StmtKind::For { var, range, kind, .. } => {
                    self.0.push(format!("{kind:?} {} < {}", var.name(), range.extent));
                }
                StmtKind::Allocate { buffer, .. } => {
                    self.0.push(format!("allocate {} {:?}", buffer.name, buffer.shape));
                }
                _ => {}
            }
            walk_stmt(self, s);
        }
    }
    let mut o = Outline(Vec::new());
    walk_func(&mut o, func);
    o.0
}

fn func(buffers: &[&Buffer], body: Stmt) -> TensorFunc {
    TensorFunc::new(buffers.iter().map(|b| Param::tensor(b)).collect(), body)
}

fn f32s(name: &str, shape: &[i64]) -> Buffer {
    Buffer::with_extents(name, shape, DType::F32)
}

#[test]
fn a_reduction_starts_at_the_first_value_of_every_reduction_variable() {
    let (a, b) = (f32s("A", &[4, 6]), f32s("B", &[4]));
    let [i, k, vi, vk] = ["i", "k", "vi", "vk"].map(Var::index);
    let sum = b.load([vi.expr()]) + a.load([vi.expr(), vk.expr()]);
    let mut block = Block::new("B", Stmt::store(&b, vec![vi.expr()], sum));
    let iter = |var: &Var, extent, kind| IterVar {
        var: var.clone(),
        domain: Range::upto(Expr::i32(extent)),
        kind,
    };
    block.iters = vec![iter(&vi, 4, IterKind::Spatial), iter(&vk, 6, IterKind::Reduce)];
    block.init = Some(Stmt::store(&b, vec![vi.expr()], Expr::float(0.0, DType::F32)));
    let predicate = (i.expr() * 2 + &k).less(9);
    let stmt = Stmt::block(vec![i.expr(), &k + 1], predicate, block);
    let stmt = Stmt::serial(&i, Expr::i32(4), Stmt::serial(&k, Expr::i32(5), stmt));
    let lowered = blocks::lower_blocks(&func(&[&a, &b], stmt)).expect("lowers");
    assert_eq!(
        outline(&lowered),
        [
            "Serial i < 4",
            "Serial k < 5",
            "if i * 2 + k < 9",
            "if k + 1 == 0",
            "B[i] = T.float32(0.0)",
            "B[i] = B[i] + A[i, k + 1]",
        ]
    );
}

#[test]
fn a_view_of_a_region_becomes_an_offset() {
    let (a, row) = (f32s("A", &[8, 6]), f32s("row", &[6]));
    let [i, vi, j] = ["i", "vi", "j"].map(Var::index);
    let body = Stmt::store(&row, vec![j.expr()], row.load([j.expr() + 0]) * 2.0);
    let mut block = Block::new("row", Stmt::serial(&j, Expr::i32(6), body));
    block.iters = vec![IterVar {
        var: vi.clone(),
        domain: Range::upto(Expr::i32(8)),
        kind: IterKind::Spatial,
    }];
    let source = Region {
        buffer: a.clone(),
        ranges: vec![Range::point(vi.expr()), Range::upto(Expr::i32(6))],
    };
    block.matches = vec![MatchRegion { buffer: row.clone(), source }];
    let stmt = Stmt::block(vec![i.expr()], Expr::bool(true), block.clone());
    let stmt = Stmt::serial(&i, Expr::i32(8), stmt);
    let lowered = blocks::lower_blocks(&func(&[&a], stmt)).expect("lowers");
    assert_eq!(
        outline(&lowered),
        ["Serial i < 8", "Serial j < 6", "A[i, j] = A[i, j] * T.float32(2.0)"]
    );

    block.matches[0].source.ranges[0].extent = Expr::i32(2);
    let stmt = Stmt::block(vec![i.expr()], Expr::bool(true), block);
    let error = blocks::lower_blocks(&func(&[&a], Stmt::serial(&i, Expr::i32(8), stmt)));
    assert!(matches!(error, Err(Error::Unsupported(_))), "{error:?}");
}

/// The four worked examples of RFC 0039: a load at given indices of a buffer with a layout.
#[test]
fn flattening_follows_the_axis_separators() {
    type Case<'a> = (&'a [i64], &'a [usize], &'a [i64], &'a [i64], &'a [i64]);
    let cases: [Case; 5] = [
        (&[20, 30], &[], &[10, 15], &[600], &[10 * 30 + 15]),
        (&[3, 2], &[], &[1, 1], &[6], &[3]),
        (
            &[16, 32, 64, 64, 4],
            &[],
            &[11, 25, 37, 23, 1],
            &[16 * 32 * 64 * 64 * 4],
            &[(((11 * 32 + 25) * 64 + 37) * 64 + 23) * 4 + 1],
        ),
        (
            &[16, 32, 64, 64, 4],
            &[3],
            &[11, 25, 37, 23, 1],
            &[16 * 32 * 64, 64 * 4],
            &[(11 * 32 + 25) * 64 + 37, 4 * 23 + 1],
        ),
        (&[2, 3, 5, 7], &[1, 3], &[1, 2, 3, 4], &[2, 15, 7], &[1, 13, 4]),
    ];
    for (shape, separators, at, physical, flat) in cases {
        let x = f32s("x", shape).derive(|d| d.axis_separators = separators.to_vec());
        let at = at.iter().map(|&i| Expr::int(i, DType::I32)).collect();
        let f = func(&[&x], Stmt::store(&x, at, Expr::float(7.0, DType::F32)));
        let f = flatten::flatten_buffers(&f).expect("flattens");
        let StmtKind::Declare { buffer, body } = f.body.kind() else { panic!("{:?}", f.body) };
        let StmtKind::Store { indices, .. } = body.kind() else { panic!("{body:?}") };
        assert_eq!(buffer.const_shape().as_deref(), Some(physical));
        assert_eq!(indices.iter().filter_map(Expr::as_int).collect::<Vec<_>>(), flat);
        assert_eq!(buffer.data, x.data);
    }
}

#[test]
fn strides_and_offsets_are_part_of_the_flat_index() {
    let i = Var::index("i");
    let x = f32s("x", &[4, 5]).derive(|d| {
        d.strides = vec![Expr::i32(8), Expr::i32(1)];
        d.elem_offset = Some(Expr::i32(3));
    });
    let store = Stmt::store(&x, vec![i.expr(), Expr::i32(2)], Expr::float(0.0, DType::F32));
    let f = flatten::flatten_buffers(&func(&[&x], Stmt::serial(&i, Expr::i32(4), store)));
    assert_eq!(outline(&f.expect("flattens"))[1], "x[3 + i * 8 + 2] = T.float32(0.0)");
}

#[test]
fn large_buffers_are_indexed_in_64_bits() {
    let (i, x) = (Var::index("i"), f32s("x", &[100_000, 100_000]));
    let store = Stmt::store(&x, vec![i.expr(), i.expr()], Expr::float(0.0, DType::F32));
    let f = flatten::flatten_buffers(&func(&[&x], Stmt::serial(&i, Expr::i32(9), store)));
    let at = "T.Cast(\"int64\", i) * T.int64(100000) + T.Cast(\"int64\", i)";
    assert_eq!(outline(&f.expect("flattens"))[1], format!("x[{at}] = T.float32(0.0)"));
}

#[test]
fn a_vectorised_loop_becomes_ramps() {
    let (a, b) = (f32s("A", &[64]), f32s("B", &[64]));
    let (i, v) = (Var::index("i"), Var::index("v"));
    let at = i.expr() * 8 + &v;
    let value = a.load([at.clone()]) * 2.0 + a.load([i.expr()]);
    let inner = Stmt::for_loop(
        &v,
        Range::upto(Expr::i32(8)),
        ForKind::Vectorized,
        Stmt::store(&b, vec![at], value),
    );
    let f = func(&[&a, &b], Stmt::serial(&i, Expr::i32(8), inner));
    assert_eq!(
        outline(&vectorize::vectorize_loops(&f))[1],
        "B[T.Ramp(i * 8, 1, 8)] = A[T.Ramp(i * 8, 1, 8)] * T.Broadcast(T.float32(2.0), 8) \
         + T.Broadcast(A[i], 8)"
    );
}

#[test]
fn what_has_no_vector_form_stays_a_loop() {
    let (a, b) = (f32s("A", &[8]), f32s("B", &[8]));
    let v = Var::index("v");
    let vectorized =
        |body| Stmt::for_loop(&v, Range::upto(Expr::i32(8)), ForKind::Vectorized, body);
    // A condition that differs between lanes is a mask of a store of neighbours, and of no other.
    let guarded =
        |at: Expr| Stmt::guard(v.expr().less(5), Stmt::store(&b, vec![v.expr()], a.load([at])));
    let masked = vectorized(guarded(v.expr()));
    let lines = outline(&vectorize::vectorize_loops(&func(&[&a, &b], masked)));
    assert_eq!(lines[0], "if T.Ramp(0, 1, 8) < T.Broadcast(5, 8)", "{lines:?}");
    // A store to one place.
    let sum = Stmt::store(&b, vec![Expr::i32(0)], b.load([Expr::i32(0)]) + a.load([v.expr()]));
    for body in [guarded((v.expr() * 3).floormod(8)), sum] {
        let lines = outline(&vectorize::vectorize_loops(&func(&[&a, &b], vectorized(body))));
        assert_eq!(lines[0], "Serial v < 8", "{lines:?}");
    }
    // A binding that the condition uses has a value for each lane.
    let x = Var::new("x", DType::F32);
    let body = Stmt::let_in(
        &x,
        a.load([v.expr()]),
        Stmt::guard(x.expr().less(1.0), Stmt::store(&b, vec![v.expr()], x.expr())),
    );
    let lines = outline(&vectorize::vectorize_loops(&func(&[&a, &b], vectorized(body))));
    assert_eq!(lines, ["if x < T.Broadcast(T.float32(1.0), 8)", "B[T.Ramp(0, 1, 8)] = x"]);
}

#[test]
fn conditions_of_lanes_stay_together_behind_what_is_the_same_in_all() {
    let b = f32s("B", &[8, 8]);
    let (i, v) = (Var::index("i"), Var::index("v"));
    let row = i.expr().greater_equal(1);
    let cond = v.expr().greater_equal(2).and(row).and(v.expr().less(5)).and(i.expr().less(6));
    let store = Stmt::store(&b, vec![i.expr(), v.expr()], Expr::float(0.0, DType::F32));
    let guarded = Stmt::guard(cond, store);
    let inner = Stmt::for_loop(&v, Range::upto(Expr::i32(8)), ForKind::Vectorized, guarded);
    let f = func(&[&b], Stmt::serial(&i, Expr::i32(8), inner));
    let lines = outline(&vectorize::vectorize_loops(&f));
    let lanes = "T.Ramp(0, 1, 8) >= T.Broadcast(2, 8) and T.Ramp(0, 1, 8) < T.Broadcast(5, 8)";
    assert_eq!(lines[1], format!("if T.Broadcast(i >= 1 and i < 6, 8) and ({lanes})"), "{lines:?}");
}

#[test]
fn allocations_become_scratch_parameters() {
    let b = f32s("B", &[8]);
    let (outer, small, large) =
        (f32s("outer", &[100]), f32s("small", &[8]), f32s("large", &[9000]));
    let i = Var::index("i");
    let zero = || Expr::float(0.0, DType::F32);
    let inside = Stmt::seq([
        Stmt::store(&small, vec![Expr::i32(1)], zero()),
        Stmt::store(&large, vec![Expr::i32(2)], small.load([Expr::i32(1)])),
        Stmt::store(&b, vec![i.expr()], large.load([Expr::i32(2)])),
    ]);
    let inside = Stmt::allocate(&small, Stmt::allocate(&large, inside));
    for (kind, line, size) in [
        (ForKind::Serial, "large[2] = small[1]", 9000),
        (ForKind::Parallel, "large[T.first_of_task(i) * 9000 + 2] = small[1]", 72000),
    ] {
        let nest = Stmt::for_loop(&i, Range::upto(Expr::i32(8)), kind, inside.clone());
        let f = func(&[&b], Stmt::allocate(&outer, nest));
        let f = scratch::lift_scratch(&f).expect("lifts");
        assert_eq!(f.scratch_count(), 2);
        let sizes: Vec<_> = f.buffers().map(|b| b.const_shape()).collect();
        assert_eq!(sizes, [Some(vec![8]), Some(vec![100]), Some(vec![size])]);
        let lines = outline(&f);
        assert_eq!(lines[1], "allocate small [8]");
        assert_eq!(lines[3], line);
        assert!(matches!(f.attrs.get(tilewright_ir::func::SCRATCH), Some(Attr::Int(2))));
    }
}

#[test]
fn runs_of_iterations_share_a_copy() {
    let b = f32s("B", &[100]);
    let large = f32s("large", &[9000]);
    let i = Var::index("i");
    let inside = Stmt::seq([
        Stmt::store(&large, vec![Expr::i32(2)], Expr::float(0.0, DType::F32)),
        Stmt::store(&b, vec![i.expr()], large.load([Expr::i32(2)])),
    ]);
    let nest = Stmt::for_loop(
        &i,
        Range::upto(Expr::i32(100)),
        ForKind::Parallel,
        Stmt::allocate(&large, inside),
    );
    let f = scratch::lift_scratch(&func(&[&b], nest)).expect("lifts");
    let sizes: Vec<_> = f.buffers().map(|b| b.const_shape()).collect();
    assert_eq!(sizes, [Some(vec![100]), Some(vec![9000 * scratch::COPIES as i64])]);
    let lines = outline(&f);
    assert_eq!(
        lines[..3],
        [
            "Parallel i_run < 25",
            "Serial i < T.min(100 - i_run * 4, 4)",
            "large[T.first_of_task(i_run) * 9000 + 2] = T.float32(0.0)"
        ],
        "{lines:?}"
    );
}

#[test]
fn an_allocation_of_open_size_is_given_and_one_of_unknown_size_refused() {
    let (n, b) = (Var::index("n"), f32s("B", &[8]));
    let t = Buffer::new("T", vec![n.expr()], DType::F32);
    let store = Stmt::store(&b, vec![Expr::i32(0)], t.load([Expr::i32(0)]));
    let allocated = Stmt::allocate(&t, store);
    let mut f = func(&[&b], allocated.clone());
    f.params.push(Param::Scalar(n.clone()));
    assert_eq!(scratch::lift_scratch(&f).expect("lifts").scratch_count(), 1);
    // Iterations that run at once have one each, or runs of these.
    let i = Var::index("i");
    let nest = Stmt::for_loop(&i, Range::upto(n.expr()), ForKind::Parallel, allocated.clone());
    let mut f = func(&[&b], nest);
    f.params.push(Param::Scalar(n.clone()));
    let lifted = scratch::lift_scratch(&f).expect("lifts");
    let copies = lifted.buffers().last().and_then(|all| Dim::from_expr(&all.shape[0]));
    assert_eq!(copies, Some(Dim::open(&n).min(scratch::COPIES) * Dim::open(&n)));
    // Nobody outside knows the variable of a loop.
    let f = func(&[&b], Stmt::serial(&n, Expr::i32(8), allocated));
    let e = scratch::lift_scratch(&f).expect_err("refused");
    assert_eq!(e.to_string(), "the size of the buffer `T` is not a constant");
}
