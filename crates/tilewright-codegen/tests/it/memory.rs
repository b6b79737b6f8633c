//! Loads, stores, views and vectors: generated code against the interpreter.

use crate::common::*;
use tilewright_codegen::llvm::Llvm;
use tilewright_ir::operators::IntoExpr;
use tilewright_ir::{
    BinOp, Buffer, CallTarget, DType, Expr, ExprKind, ForKind, Intrin, Param, Range, Stmt,
    StmtKind, Tensor, TensorFunc, Var,
};

fn lanes(base: impl IntoExpr, stride: i32, n: u16) -> Expr {
    Expr::ramp(base.into_expr(DType::I32), Expr::i32(stride), n)
}

fn check(buffers: &[&Buffer], body: Stmt) {
    let f = func(buffers, body);
    compare(&f, &arguments(&f, 7));
}

fn declare(buffer: &Buffer, body: Stmt) -> Stmt {
    Stmt::new(StmtKind::Declare { buffer: buffer.clone(), body })
}

fn int(n: i32) -> Expr {
    Expr::i32(n)
}

#[test]
fn buffers_of_any_rank() {
    let (a, b, c) = (
        buffer("A", &[3, 5, 7], DType::F32),
        buffer("B", &[7, 3, 5], DType::F32),
        buffer("C", &[], DType::F32),
    );
    let [i, j, k] = ["i", "j", "k"].map(Var::index);
    let from = a.load([i.expr(), j.expr(), k.expr()]);
    let body = Stmt::seq([
        Stmt::store(&b, vec![k.expr(), i.expr(), j.expr()], from.clone() + c.load([])),
        Stmt::store(&c, Vec::new(), from),
    ]);
    let body = Stmt::serial(&k, int(7), body);
    check(&[&a, &b, &c], Stmt::serial(&i, int(3), Stmt::serial(&j, int(5), body)));
}

#[test]
fn every_type_is_loaded_and_stored() {
    let types = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"];
    for dtype in types.into_iter().chain(["float16", "bfloat16", "float32", "float64"]) {
        let dtype: DType = dtype.parse().expect("a type");
        let (a, b) = (buffer("A", &[40], dtype), buffer("B", &[40], dtype));
        let i = Var::index("i");
        let plain = Stmt::store(&b, vec![i.expr()], a.load([int(39) - i.expr()]));
        let vector = Stmt::store(&b, vec![lanes(4, 1, 8)], a.load([lanes(20, 1, 8)]));
        let strided = Stmt::store(&b, vec![lanes(3, 9, 4)], a.load([lanes(1, 12, 4)]));
        let back = Stmt::store(&b, vec![lanes(16, -1, 5)], a.load([lanes(39, -1, 5)]));
        let same = Stmt::store(&b, vec![lanes(30, 1, 4)], a.load([Expr::broadcast(int(2), 4)]));
        check(
            &[&a, &b],
            Stmt::seq([Stmt::serial(&i, int(40), plain), vector, strided, back, same]),
        );
    }
}

/// Lanes at constant distances: rows in turn, one row twice, rows of which one is used once, and distances that
/// are no runs.
#[test]
fn runs_of_neighbours_are_woven() {
    for dtype in ["bool", "int8", "int32", "uint16", "int64", "float16", "float32", "float64"] {
        let dtype: DType = dtype.parse().expect("a type");
        let (a, b) = (buffer("A", &[200], dtype), buffer("B", &[40], dtype));
        let i = Var::index("i");
        for (rows, n) in [(2, 16u16), (3, 12), (4, 8), (3, 7), (2, 5), (5, 10)] {
            let all = |k: i32| Expr::broadcast(int(k), n);
            let (turn, step) =
                (lanes(0, 1, n).floormod(all(rows)), lanes(0, 1, n).floordiv(all(rows)));
            let start = Expr::broadcast(i.expr() * 3, n);
            let indices = [
                start.clone() + turn.clone() * all(37) + step.clone(),
                start.clone() + step.clone(),
                start.clone() + turn.clone() * all(20) + lanes(1, 1, n),
                start.clone() + step * all(5) + turn,
                lanes(int(199) - i.expr(), -1, n) - start,
            ];
            for index in indices {
                let body = Stmt::store(&b, vec![lanes(i.expr(), 1, n)], a.load([index]));
                check(&[&a, &b], Stmt::serial(&i, int(8), body));
            }
        }
    }
}

/// Lanes in rows whose distance is known when the code runs, also none, and also of several such distances.
#[test]
fn runs_of_rows_at_any_distance_are_woven() {
    for dtype in ["bool", "int16", "float32", "float64"] {
        let dtype: DType = dtype.parse().expect("a type");
        let (a, b) = (buffer("A", &[200], dtype), buffer("B", &[160], dtype));
        let [i, j] = ["i", "j"].map(Var::index);
        for (rows, n) in [(2, 16u16), (3, 12), (4, 8), (3, 7), (5, 10)] {
            let all = |e: Expr| Expr::broadcast(e, n);
            let (turn, step) =
                (lanes(0, 1, n).floormod(all(int(rows))), lanes(0, 1, n).floordiv(all(int(rows))));
            let start = all(i.expr() * 3);
            let row = turn.clone() * all(j.expr() * 5);
            let indices = [
                start.clone() + row.clone() + step.clone(),
                row.clone() + start.clone() + turn.clone() * all(int(2)) + step.clone(),
                (row.clone() + step.clone()) * all(int(2)) + start.clone(),
                start.clone() + row.clone() + lanes(1, 1, n),
                row + start + step * all(j.expr()) + turn,
            ];
            for index in indices {
                let at = i.expr() + j.expr() * 20;
                let body = Stmt::store(&b, vec![lanes(at, 1, n)], a.load([index]));
                check(&[&a, &b], Stmt::serial(&i, int(8), Stmt::serial(&j, int(5), body)));
            }
        }
    }
}

#[test]
fn views_at_offsets_with_strides_and_other_types_share_memory() {
    // W: float32[64]; X: its elements 8.. as [3, 4] with row stride 6; Y: 40.. as [3, 4]; Z: all
    // of it again, overlapping both.
    let (w, o) = (buffer("W", &[64], DType::F32), buffer("O", &[64], DType::F32));
    let view = |offset: i32, strides: &[i32]| {
        w.derive(|d| {
            d.shape = vec![int(3), int(4)];
            d.strides = strides.iter().map(|&s| int(s)).collect();
            d.elem_offset = Some(int(offset));
        })
    };
    let (x, y, z) = (view(8, &[6, 1]), view(40, &[]), w.derive(|d| d.shape = vec![int(64)]));
    let [i, j, k] = ["i", "j", "k"].map(Var::index);
    let at = || vec![i.expr(), j.expr()];
    let body = Stmt::seq([
        Stmt::store(&x, at(), y.load(at()) * 2.0),
        Stmt::store(&y, at(), x.load(at()) + z.load([&i * 6 + &j + 8])),
        Stmt::store(&z, vec![&i * 4 + &j + 40], y.load(at()) + 1.0),
    ]);
    let nest = Stmt::serial(&i, int(3), Stmt::serial(&j, int(4), body));
    let copy = Stmt::serial(&k, int(64), Stmt::store(&o, vec![k.expr()], z.load([k.expr()])));
    let body = declare(&x, declare(&y, declare(&z, Stmt::seq([nest, copy]))));
    check(&[&w, &o], body);
}

#[test]
fn views_that_lie_apart_are_known_to() {
    // C += A * B row by row, all three in one memory: the sum over k stays in a register only
    // where the store is known not to touch what is loaded.
    let w = buffer("W", &[3 * 256], DType::F32);
    let view = |n: i32| {
        w.derive(|d| {
            d.shape = vec![int(16), int(16)];
            d.elem_offset = Some(int(n * 256));
        })
    };
    let (a, b, c) = (view(0), view(1), view(2));
    let [i, j, k] = ["i", "j", "k"].map(Var::index);
    let at = |x: &Var, y: &Var| vec![x.expr(), y.expr()];
    let value = c.load(at(&i, &j)) + a.load(at(&i, &k)) * b.load(at(&k, &j));
    let body = Stmt::serial(&k, int(16), Stmt::store(&c, at(&i, &j), value));
    let body = Stmt::serial(&i, int(16), Stmt::serial(&j, int(16), body));
    let f = func(&[&w], declare(&a, declare(&b, declare(&c, body))));
    compare(&f, &arguments(&f, 3));
    let text = ir(&f, &baseline()).expect("it is lowered");
    let store = text.lines().find(|l| l.contains("store float")).expect("a store");
    assert!(store.contains("!alias.scope") && store.contains("!noalias"), "{store}");
}

#[test]
fn vector_indices_of_every_kind() {
    let (a, b) = (buffer("A", &[8, 64], DType::F32), buffer("B", &[8, 64], DType::F32));
    let idx = buffer("I", &[8], DType::I32);
    let (i, n) = (Var::index("i"), 8u16);
    let spread = |e: Expr| Expr::broadcast(e, n);
    let ramp = lanes(&i * 2, 1, n);
    // Indices from memory, brought into range.
    let loaded = Expr::binary(BinOp::FloorMod, idx.load([lanes(0, 1, n)]), spread(int(64)));
    let wide = |e: Expr| Expr::cast_node(e, DType::I64.with_lanes(n));
    let places = vec![
        ramp.clone(),
        Expr::binary(BinOp::Add, spread(&i * 3), lanes(1, 1, n)),
        Expr::binary(BinOp::Sub, lanes(40, 2, n), lanes(i.expr(), 1, n)),
        Expr::binary(BinOp::Mul, lanes(i.expr(), 1, n), spread(int(3))),
        Expr::binary(BinOp::Mul, spread(&i + 1), lanes(0, 1, n)),
        Expr::ramp(i.expr(), i.expr(), n),
        Expr::binary(BinOp::FloorDiv, lanes(&i * 5, 3, n), spread(int(2))),
        Expr::binary(BinOp::FloorMod, lanes(&i * 5, 3, n), spread(int(7))),
        loaded.clone(),
        Expr::binary(BinOp::Add, loaded, spread(int(0))),
        wide(Expr::binary(BinOp::Add, lanes(3, 1, n), spread(i.expr()))),
        Expr::ramp(Expr::int(5, DType::I64), Expr::int(2, DType::I64), n),
        Expr::cast_node(lanes(&i * 2, 1, n), DType::U8.with_lanes(n)),
        lanes(int(63) - i.expr(), -1, n),
        lanes(63, -8, n),
    ];
    for place in places {
        let read =
            Stmt::store(&b, vec![i.expr(), lanes(0, 1, n)], a.load([i.expr(), place.clone()]));
        let write = Stmt::store(&b, vec![i.expr(), place], a.load([i.expr(), lanes(8, 1, n)]));
        check(&[&a, &b, &idx], Stmt::serial(&i, int(8), Stmt::seq([read, write])));
    }
}

#[test]
fn lanes_along_an_outer_axis() {
    let (a, b) = (buffer("A", &[16, 9], DType::F32), buffer("B", &[16, 9], DType::F32));
    let j = Var::index("j");
    let flat = |e: Expr| {
        Expr::binary(
            BinOp::Add,
            Expr::binary(BinOp::Mul, e, Expr::broadcast(int(9), 16)),
            Expr::broadcast(j.expr(), 16),
        )
    };
    let view = |b: &Buffer| b.derive(|d| d.shape = vec![int(16 * 9)]);
    let (x, y) = (view(&a), view(&b));
    let body = Stmt::store(&y, vec![flat(lanes(0, 1, 16))], x.load([flat(lanes(0, 1, 16))]));
    check(&[&a, &b], declare(&x, declare(&y, Stmt::serial(&j, int(9), body))));
}

#[test]
fn a_lazy_choice_does_not_read_what_is_not_there() {
    // The padding of a convolution, scalar and vector; outside of the guard the index is far out.
    let (a, b) = (buffer("A", &[5], DType::F32), buffer("B", &[16], DType::F32));
    let far = |e: Expr| {
        Expr::binary(BinOp::Mul, e.clone() - 3, Expr::select(e.less(8), int(1), int(1 << 24)))
    };
    let i = Var::index("i");
    let inside = |e: &Expr| e.clone().greater_equal(3).and(e.clone().less(8));
    let zero = Expr::float(0.0, DType::F32);
    let scalar = Expr::if_then_else(inside(&i.expr()), a.load([far(i.expr())]), zero.clone());
    let f = func(&[&a, &b], Stmt::serial(&i, int(16), Stmt::store(&b, vec![i.expr()], scalar)));
    // The interpreter refuses an index out of range only where it is used.
    compare(&f, &arguments(&f, 1));

    let n = 16;
    let ramp = lanes(0, 1, n);
    let spread = |e: Expr| Expr::broadcast(e, n);
    let at = Expr::binary(BinOp::Sub, ramp.clone(), spread(int(3)));
    let lower = Expr::binary(BinOp::Ge, ramp.clone(), spread(int(3)));
    let upper = Expr::binary(BinOp::Lt, ramp.clone(), spread(int(8)));
    let cond = Expr::binary(BinOp::And, lower, upper);
    for place in [at.clone(), Expr::binary(BinOp::Mul, at, spread(int(1)))] {
        let value = Expr::if_then_else(cond.clone(), a.load([place.clone()]), spread(zero.clone()));
        check(&[&a, &b], Stmt::store(&b, vec![ramp.clone()], value));
        // The condition itself reads what only its left side allows to read.
        let positive = Expr::binary(BinOp::Gt, a.load([place.clone()]), spread(zero.clone()));
        let both = Expr::binary(BinOp::And, cond.clone(), positive);
        let value = Expr::if_then_else(both, a.load([place]), spread(Expr::float(5.0, DType::F32)));
        check(&[&a, &b], Stmt::store(&b, vec![ramp.clone()], value));
    }
}

#[test]
fn lazy_logic_does_not_evaluate_what_is_decided() {
    let (a, b) = (buffer("A", &[5], DType::F32), buffer("B", &[16], DType::F32));
    let i = Var::index("i");
    let outside = i.expr().less(3).or(i.expr().greater_equal(8));
    let read = a.load([&i - 3]).greater(0.0);
    let or = Expr::binary(BinOp::Or, outside.clone(), read.clone());
    let and = Expr::binary(BinOp::And, Expr::not_node(outside), read);
    let value = Expr::cast_node(or, DType::F32) + Expr::cast_node(and, DType::F32) * 2.0;
    check(&[&a, &b], Stmt::serial(&i, int(16), Stmt::store(&b, vec![i.expr()], value)));
}

#[test]
fn conditions_of_vectors_store_the_lanes_that_hold() {
    let n = 8u16;
    let (a, b, c) = (
        buffer("A", &[8], DType::F32),
        buffer("B", &[16], DType::F32),
        buffer("C", &[4], DType::BF16),
    );
    let spread = |e: Expr| Expr::broadcast(e, n);
    let x = a.load([lanes(0, 1, n)]);
    let zero = spread(Expr::float(0.0, DType::F32));
    let cond = Expr::binary(BinOp::Gt, x.clone(), zero);
    let low = Expr::binary(BinOp::Lt, lanes(0, 1, n), spread(int(4)));
    let narrow = Expr::cast_node(x.clone(), DType::BF16.with_lanes(n));
    let then = Stmt::seq([
        Stmt::store(&b, vec![lanes(0, 1, n)], x.clone()),
        Stmt::guard(low.clone(), Stmt::store(&c, vec![lanes(0, 1, n)], narrow)),
    ]);
    let otherwise = Stmt::store(&b, vec![lanes(1, 2, n)], x);
    let f = func(&[&a, &b, &c], Stmt::if_else(cond, then, otherwise));
    // The interpreter knows scalar conditions only, so the result is computed here.
    let tensors = arguments(&f, 11);
    for target in [Llvm::get().expect("an LLVM").host(), baseline()] {
        let mut got = tensors.clone();
        let native = compile_for(&f, &target, Default::default());
        assert_eq!(native.call(&mut got), 0);
        let a = |k: usize| tensors[0].get_f64(k);
        let mut b: Vec<f64> = (0..16).map(|k| tensors[1].get_f64(k)).collect();
        let mut c: Vec<f64> = (0..4).map(|k| tensors[2].get_f64(k)).collect();
        for k in (0..8).filter(|&k| a(k) > 0.0) {
            b[k] = a(k);
            if k < 4 {
                c[k] = a(k);
            }
        }
        for k in (0..8).filter(|&k| a(k) <= 0.0) {
            b[1 + 2 * k] = a(k);
        }
        assert_eq!((0..16).map(|k| got[1].get_f64(k)).collect::<Vec<_>>(), b);
        assert_eq!((0..4).map(|k| got[2].get_f64(k)).collect::<Vec<_>>(), c);
    }
}

/// `B[n, :n] = sum of A[k, :n]` for each `n` up to 16, in vectors of 16 lanes; the sums of lanes from `n` on are left
/// as they are, or those from `n - 1` on.
fn masked_sums(less: i32) -> TensorFunc {
    let [n, k] = ["n", "k"].map(Var::index);
    let (a, b) = (buffer("A", &[48], DType::F32), buffer("B", &[272], DType::F32));
    let sums = buffer("sums", &[16], DType::F32).derive(|d| d.scope = "local".into());
    let first = |count: Expr, s: Stmt| {
        let mask = Expr::binary(BinOp::Lt, lanes(0, 1, 16), Expr::broadcast(count, 16));
        Stmt::guard(mask, s)
    };
    let all = || vec![lanes(0, 1, 16)];
    let sum = sums.load(all()) + a.load([lanes(&k * 16, 1, 16)]);
    let zero = Expr::broadcast(Expr::float(0.0, DType::F32), 16);
    let body = Stmt::seq([
        first(n.expr(), Stmt::store(&sums, all(), zero)),
        Stmt::serial(&k, int(3), first(n.expr() - int(less), Stmt::store(&sums, all(), sum))),
        first(n.expr(), Stmt::store(&b, vec![lanes(&n * 16, 1, 16)], sums.load(all()))),
    ]);
    let annotations = Default::default();
    let body = Stmt::new(StmtKind::Allocate { buffer: sums, annotations, body });
    func(&[&a, &b], Stmt::serial(&n, int(17), body))
}

#[test]
fn sums_of_which_masks_leave_out_the_same_lanes_are_not_selected() {
    for less in [0, 1] {
        let f = masked_sums(less);
        let tensors = arguments(&f, 5);
        for target in [Llvm::get().expect("an LLVM").host(), baseline()] {
            let text = ir(&f, &target).expect("text");
            assert_eq!(text.contains(" select "), less > 0, "{text}");
            let mut got = tensors.clone();
            assert_eq!(compile_for(&f, &target, Default::default()).call(&mut got), 0);
            for (n, j) in (0..17).flat_map(|n| (0..16).map(move |j| (n, j))) {
                let sum = (0..3).fold(0f32, |sum, k| sum + tensors[0].get_f64(k * 16 + j) as f32);
                let expected = match j {
                    _ if j + (less as usize) < n => f64::from(sum),
                    _ if j < n => 0.0,
                    _ => tensors[1].get_f64(n * 16 + j),
                };
                assert_eq!(got[1].get_f64(n * 16 + j), expected, "{n} {j}");
            }
        }
    }
}

/// `B[n + 16 * i + lane] = 2 * A[n + 16 * i + lane]` for three vectors, of the last one so many lanes as `m` says; nothing
/// is known of `n`, so that its vectors might wrap in `int32`.
fn at_any_place() -> TensorFunc {
    let (a, b) = (buffer("A", &[64], DType::F32), buffer("B", &[64], DType::F32));
    let [i, n, m] = ["i", "n", "m"].map(Var::index);
    let wide = |at: Expr| vec![lanes(at, 1, 16).cast(DType::I64.with_lanes(16))];
    let copy = |at: Expr| {
        let value = a.load(wide(at.clone()));
        Stmt::store(&b, wide(at), value.clone() + value)
    };
    let some = Expr::binary(BinOp::Lt, lanes(0, 1, 16), Expr::broadcast(m.expr(), 16));
    let whole = Stmt::serial(&i, int(2), copy(&n + &i * 16));
    let mut f = func(&[&a, &b], Stmt::seq([whole, Stmt::guard(some, copy(&n + 32))]));
    f.params.extend([n, m].map(Param::Scalar));
    f
}

#[test]
fn vectors_at_any_place_are_accessed_as_vectors() {
    let f = at_any_place();
    let text = ir(&f, &Llvm::get().expect("an LLVM").host()).expect("text");
    assert!(!text.contains("insertelement <16 x float>"), "{text}");
    let native = compile(&f);
    for (first, m) in [(0, 16), (7, 3), (1, 0), (16, 16)] {
        let (mut a, mut b) = (random(DType::F32, &[64], 3), random(DType::F32, &[64], 4));
        let before = [a.clone(), b.clone()];
        let args = vec![
            Arg::Tensor(&mut a),
            Arg::Tensor(&mut b),
            Arg::Bits(first as u64),
            Arg::Bits(m as u64),
        ];
        assert_eq!(native.call_with(args, None), 0);
        for k in 0..64 {
            let inside = (first..first + 32 + m).contains(&k);
            let expected = if inside {
                2.0 * before[0].get_f64(k as usize)
            } else {
                before[1].get_f64(k as usize)
            };
            assert_eq!(b.get_f64(k as usize), expected, "{first} {m}: {k}");
        }
    }
}

#[test]
fn buffers_of_vectors() {
    let four = DType::F32.with_lanes(4);
    let (a, b) = (buffer("A", &[6], four), buffer("B", &[6], four));
    let flat = buffer("F", &[24], DType::F32);
    let i = Var::index("i");
    let sum = Expr::binary(BinOp::Add, a.load([i.expr()]), a.load([int(5) - i.expr()]));
    let body = Stmt::seq([
        Stmt::store(&b, vec![i.expr()], sum),
        Stmt::store(&flat, vec![lanes(&i * 4, 1, 4)], b.load([i.expr()])),
    ]);
    let f = func(&[&a, &b, &flat], Stmt::serial(&i, int(6), body));
    let mut tensors: Vec<_> = [1, 2, 3].map(|k| random(DType::F32, &[24], k)).into();
    let from: Vec<f64> = (0..24).map(|k| tensors[0].get_f64(k)).collect();
    assert_eq!(compile(&f).call(&mut tensors), 0);
    for k in 0..24 {
        let expected = from[k] + from[(5 - k / 4) * 4 + k % 4];
        assert_eq!(tensors[1].get_f64(k), expected);
        assert_eq!(tensors[2].get_f64(k), expected);
    }
}

#[test]
fn local_memory_in_loops() {
    let (a, b) = (buffer("A", &[12, 6], DType::F16), buffer("B", &[12, 6], DType::F16));
    let t = buffer("T", &[6], DType::F32).derive_storage(|d| d.scope = "local".into());
    let u = buffer("U", &[], DType::BOOL).derive_storage(|d| d.scope = "local".into());
    let [i, j, k] = ["i", "j", "k"].map(Var::index);
    let at = |v: &Var| vec![i.expr(), v.expr()];
    let fill =
        Stmt::store(&t, vec![int(5) - j.expr()], Expr::cast_node(a.load(at(&j)), DType::F32));
    let flag = Stmt::store(&u, Vec::new(), t.load([int(2)]).greater(t.load([int(3)])));
    let value = Expr::select(u.load([]), t.load([k.expr()]), t.load([int(5) - k.expr()]) * 0.5);
    let take = Stmt::store(&b, at(&k), Expr::cast_node(value, DType::F16));
    let body = Stmt::seq([Stmt::serial(&j, int(6), fill), flag, Stmt::serial(&k, int(6), take)]);
    let body = Stmt::allocate(&t, Stmt::allocate(&u, body));
    for kind in [ForKind::Serial, ForKind::Parallel, ForKind::Unrolled, ForKind::Vectorized] {
        check(&[&a, &b], Stmt::for_loop(&i, Range::upto(int(12)), kind, body.clone()));
    }
}

#[test]
fn parameters_with_strides_and_offsets_begin_at_their_first_element() {
    let (n, m) = (Var::index("n"), Var::index("m"));
    let a = Buffer::new("A", vec![n.expr(), m.expr()], DType::F32).derive(|d| {
        d.strides = vec![m.expr() * 2, Expr::i32(2)];
        d.elem_offset = Some(n.expr());
    });
    let b = Buffer::new("B", vec![n.expr(), m.expr()], DType::F32);
    let (i, j) = (Var::index("i"), Var::index("j"));
    let at = || vec![i.expr(), j.expr()];
    let body = Stmt::serial(&j, m.expr(), Stmt::store(&b, at(), a.load(at())));
    let f = TensorFunc::new(
        vec![Param::tensor(&a), Param::tensor(&b)],
        Stmt::serial(&i, n.expr(), body),
    );
    let (mut x, mut y) = (random(DType::F32, &[24], 1), zeros(DType::F32, &[3, 4]));
    let args = vec![Arg::Tensor(&mut x), Arg::Tensor(&mut y), Arg::Bits(3), Arg::Bits(4)];
    assert_eq!(compile(&f).call_with(args, None), 0);
    for k in 0..12 {
        assert_eq!(y.get_f64(k), x.get_f64(2 * k));
    }
}

#[test]
fn bindings_assumptions_and_undefined_values() {
    let (a, b) = (buffer("A", &[10], DType::I32), buffer("B", &[10], DType::I32));
    let i = Var::index("i");
    let (x, y) = (Var::index("x"), Var::index("y"));
    let undef = Expr::undef(DType::I32);
    let square = Expr::let_in(y.clone(), &x * 3, y.expr() * &y - &x);
    let hint = Expr::intrin(Intrin::Likely, vec![x.expr().less(1000)]);
    let body = Stmt::seq([
        Stmt::new(StmtKind::Assume(i.expr().greater_equal(0))),
        Stmt::new(StmtKind::Assume(a.load([i.expr()]).less(1000))),
        Stmt::store(&b, vec![i.expr()], undef),
        Stmt::guard(hint, Stmt::store(&b, vec![i.expr()], square)),
    ]);
    let body = Stmt::let_in(&x, a.load([i.expr()]) + 1, body);
    check(&[&a, &b], Stmt::serial(&i, int(10), body));
}

#[test]
fn a_value_that_is_shared_many_times_is_computed_once() {
    let (a, b) = (buffer("A", &[8], DType::I32), buffer("B", &[8], DType::I32));
    let i = Var::index("i");
    // 2^60 leaves as a tree, 60 nodes as it is held.
    let value = (0..60i32).fold(a.load([i.expr()]), |e, k| {
        let sum = Expr::binary(BinOp::Add, e.clone(), e.clone());
        Expr::if_then_else(
            i.expr().less(i64::from(k % 9)),
            sum,
            Expr::binary(BinOp::Sub, e, Expr::i32(k)),
        )
    });
    let f = func(&[&a, &b], Stmt::serial(&i, int(8), Stmt::store(&b, vec![i.expr()], value)));
    let text = ir(&f, &baseline()).expect("it is lowered");
    assert!(text.lines().count() < 2000, "{}", text.lines().count());
    let tensors = arguments(&f, 5);
    let mut got = tensors.clone();
    assert_eq!(compile(&f).call(&mut got), 0);
    for k in 0..8 {
        let mut x = tensors[0].get_i128(k) as i32;
        for step in 0..60 {
            x = if (k as i32) < step % 9 { x.wrapping_add(x) } else { x.wrapping_sub(step) };
        }
        assert_eq!(got[1].get_i128(k), i128::from(x));
    }
}

#[test]
fn what_a_call_may_change_is_read_again() {
    // Not a C function: an address that leaves the function makes nothing else wrong.
    let b = buffer("B", &[4], DType::F32);
    let address = Expr::new(
        ExprKind::Call(CallTarget::Opaque("address_of".into()), vec![b.load([int(1)])]),
        DType::HANDLE,
    );
    let p = Var::new("p", DType::HANDLE);
    let same = Expr::binary(BinOp::Eq, p.expr(), address.clone());
    let body =
        Stmt::let_in(&p, address, Stmt::store(&b, vec![int(0)], Expr::cast_node(same, DType::F32)));
    let mut tensors = [random(DType::F32, &[4], 1)];
    assert_eq!(compile(&func(&[&b], body)).call(&mut tensors), 0);
    assert_eq!(tensors[0].get_f64(0), 1.0);
}

/// Each lane is in range where sums and products wrap, and the parts that it is computed of are not.
#[test]
fn vector_indices_from_data_wrap() {
    let far = 1i64 << 62;
    let (a, b) = (buffer("A", &[8], DType::F32), buffer("B", &[4], DType::F32));
    let x = buffer("X", &[2], DType::I64);
    let (first, second) = (x.load([int(0)]), x.load([int(1)]));
    let wide = |n: i64| Expr::int(n, DType::I64);
    let four = || Expr::broadcast(wide(4), 4);
    let ramp = |base: Expr, stride: Expr| Expr::ramp(base, stride, 4);
    let mixed = Expr::broadcast(second.clone(), 4) * ramp(wide(0), wide(1));
    let indices = [
        ramp(first.clone(), second.clone()) * four(),
        ramp(first.clone(), first.clone()) * four() + ramp(wide(7), wide(-1)),
        ramp(wide(3), second.clone()) - ramp(first.clone() * 4, second.clone() + 1),
        mixed.clone() * four() + Expr::broadcast(first.clone() + first.clone() + first * 2, 4),
    ];
    for index in indices {
        let read = Stmt::store(&b, vec![lanes(0, 1, 4)], a.load([index.clone()]));
        let write = Stmt::store(&a, vec![index], b.load([lanes(0, 1, 4)]));
        for body in [read, write] {
            let f = func(&[&a, &b, &x], body);
            let text = ir(&f, &baseline()).expect("it is lowered");
            assert!(!text.contains("nsw i64") && !text.contains("nsw <"), "{text}");
            let mut tensors = arguments(&f, 3);
            tensors[2] = Tensor::from_slice(&[2], &[far, far]).expect("a tensor");
            compare(&f, &tensors);
        }
    }
}

#[test]
fn elements_at_small_distances_are_read_in_vectors() {
    for dtype in [DType::F32, DType::I8, DType::F64, DType::BOOL, DType::F16] {
        for (step, lanes) in [(2, 16), (3, 8), (4, 4), (2, 3), (4, 15), (5, 8), (-2, 8), (3, 2)] {
            let first = if step < 0 { 60 } else { 1 };
            let (a, o) = (buffer("A", &[64], dtype), buffer("O", &[64], dtype));
            let ramp = |at: i32, step: i32| Expr::ramp(Expr::i32(at), Expr::i32(step), lanes);
            let store = Stmt::store(&o, vec![ramp(3, 1)], a.load([ramp(first, step)]));
            // The last element is that of the buffer.
            let last = 63 - step.max(0) * (i32::from(lanes) - 1);
            let end = Stmt::store(&o, vec![ramp(40, 1)], a.load([ramp(last, step)]));
            let body = if lanes <= 8 && step > 0 { Stmt::seq([store, end]) } else { store };
            let f = func(&[&a, &o], body);
            compare(&f, &arguments(&f, 5));
        }
    }
}
