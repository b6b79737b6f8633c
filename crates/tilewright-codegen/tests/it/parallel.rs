//! Parallel loops, and the calling convention.

use crate::common::*;
use tilewright_ir::{
    BinOp, Buffer, CallTarget, DType, Expr, ForKind, Intrin, Param, Range, Stmt, StmtKind, Tensor,
    TensorFunc, Var,
};

fn parallel(var: &Var, extent: Expr, body: Stmt) -> Stmt {
    Stmt::for_loop(var, Range::upto(extent), ForKind::Parallel, body)
}

fn assert_that(cond: Expr, message: &str) -> Stmt {
    Stmt::assert(cond, message)
}

fn f32s(t: &Tensor) -> &[f32] {
    t.as_slice::<f32>().expect("floats")
}

/// Each row of `B` becomes the row of `A` times the row's number plus `s`, through a local buffer
/// and a binding from outside the loop.
fn rows() -> TensorFunc {
    let (a, b) = (buffer("A", &[37, 5], DType::F32), buffer("B", &[37, 5], DType::F32));
    let t = buffer("T", &[5], DType::F32).derive_storage(|d| d.scope = "local".into());
    let (i, j, k) = (Var::index("i"), Var::index("j"), Var::index("k"));
    let (s, twice) = (Var::new("s", DType::F32), Var::new("twice", DType::F32));
    let five = || Expr::i32(5);
    let fill = Stmt::store(
        &t,
        vec![j.expr()],
        a.load([i.expr(), j.expr()]) * i.expr().cast(DType::F32) + &twice,
    );
    let copy = Stmt::store(&b, vec![i.expr(), k.expr()], t.load([k.expr()]));
    let body = Stmt::seq([Stmt::serial(&j, five(), fill), Stmt::serial(&k, five(), copy)]);
    let body = parallel(&i, Expr::i32(37), Stmt::allocate(&t, body));
    let body = Stmt::let_in(&twice, &s + &s, body);
    let mut f = func(&[&a, &b], body);
    f.params.insert(1, Param::Scalar(s));
    f
}

#[test]
fn a_parallel_loop_gives_what_a_serial_one_does() {
    let native = compile(&rows());
    let mut a = floats(&(0..185).map(|k| k as f32 * 0.5 - 3.0).collect::<Vec<_>>());
    let expected: Vec<f32> = (0..185).map(|k| f32s(&a)[k] * (k / 5) as f32 + 2.0 * 1.25).collect();
    for parallel_for in [None, Some(threads as ParallelFor)] {
        let before = PARALLEL_CALLS.get();
        let mut b = zeros(DType::F32, &[185]);
        let scalar = Arg::Bits(u64::from(1.25f32.to_bits()));
        let args = vec![Arg::Tensor(&mut a), scalar, Arg::Tensor(&mut b)];
        assert_eq!(native.call_with(args, parallel_for), 0);
        assert_eq!(f32s(&b), expected);
        let threads = PARALLEL_CALLS.get() - before;
        assert!(parallel_for.is_none() || threads > 0);
    }
}

#[test]
fn iterations_of_a_thread_name_the_first_of_them() {
    let b = buffer("B", &[37], DType::I32);
    let i = Var::index("i");
    let first = Expr::intrin(Intrin::FirstOfTask, vec![i.expr()]);
    let body = Stmt::store(&b, vec![i.expr()], first * 2);
    let native = compile(&func(&[&b], parallel(&i, Expr::i32(37), body)));
    let run = |parallel_for| {
        let mut t = zeros(DType::I32, &[37]);
        assert_eq!(native.call_with(vec![Arg::Tensor(&mut t)], parallel_for), 0);
        t.as_slice::<i32>().expect("integers").to_vec()
    };
    assert_eq!(run(None), [0; 37]);
    let found = run(Some(threads as ParallelFor));
    for (k, first) in found.iter().map(|twice| (twice / 2) as usize).enumerate() {
        assert!(first <= k && found[first..=k].iter().all(|f| *f == 2 * first as i32), "{found:?}");
    }
    assert!(found.iter().any(|first| *first > 0), "{found:?}");
}

#[test]
fn without_a_context_everything_is_serial() {
    let b = buffer("B", &[9], DType::I32);
    let i = Var::index("i");
    let native =
        compile(&func(&[&b], parallel(&i, Expr::i32(9), Stmt::store(&b, vec![i.expr()], &i * 3))));
    let mut t = zeros(DType::I32, &[9]);
    assert_eq!(native.call_without_context(&mut [&mut t]), 0);
    assert_eq!(t.as_slice::<i32>(), Some(&[0, 3, 6, 9, 12, 15, 18, 21, 24][..]));
}

#[test]
fn an_inner_parallel_loop_is_serial_and_bounds_may_be_expressions() {
    // for i in parallel(2, n): for j in parallel(1, i): B[i, j] = 10 i + j
    let b = buffer("B", &[8, 8], DType::I32);
    let (i, j, n) = (Var::index("i"), Var::index("j"), Var::index("n"));
    let store = Stmt::store(&b, vec![i.expr(), j.expr()], &i * 10 + &j);
    let range = |min: i32, extent: Expr| Range { min: Expr::i32(min), extent };
    let inner = Stmt::for_loop(&j, range(1, i.expr()), ForKind::Parallel, store);
    let outer = Stmt::for_loop(&i, range(2, n.expr()), ForKind::Parallel, inner);
    let mut f = func(&[&b], outer);
    f.params.push(Param::Scalar(n));
    let native = compile(&f);
    for (n, threaded) in [(0i64, true), (-3, true), (1, true), (5, true), (5, false)] {
        let mut t = zeros(DType::I32, &[8, 8]);
        let args = vec![Arg::Tensor(&mut t), Arg::Bits(n as u64)];
        assert_eq!(native.call_with(args, threaded.then_some(threads as ParallelFor)), 0);
        let mut expected = [0; 64];
        for i in 2..2 + n {
            for j in 1..1 + i {
                expected[(i * 8 + j) as usize] = (10 * i + j) as i32;
            }
        }
        assert_eq!(t.as_slice::<i32>(), Some(&expected[..]), "n = {n}");
    }
}

#[test]
fn little_work_of_an_open_size_stays_on_one_thread() {
    // for i in parallel(n): for j in range(m): for k in range(min(m - j, 4)): B[0] = j
    let b = buffer("B", &[1], DType::I32);
    let [i, j, k, n, m] = ["i", "j", "k", "n", "m"].map(Var::index);
    let rest = Expr::binary(BinOp::Min, m.expr() - &j, Expr::i32(4));
    let store = Stmt::store(&b, vec![Expr::i32(0)], j.expr());
    let body = Stmt::serial(&j, m.expr(), Stmt::serial(&k, rest, store));
    let mut f = func(&[&b], parallel(&i, n.expr(), body));
    f.params.extend([n, m].map(Param::Scalar));
    let native = compile(&f);
    for (n, m, shared) in [(8, 100, false), (8, 1000, true), (900, 1, false), (8000, 1, true)] {
        let before = PARALLEL_CALLS.get();
        let mut t = zeros(DType::I32, &[1]);
        let args = vec![Arg::Tensor(&mut t), Arg::Bits(n), Arg::Bits(m)];
        assert_eq!(native.call_with(args, Some(threads as ParallelFor)), 0);
        assert_eq!(t.as_slice::<i32>(), Some(&[m as i32 - 1][..]));
        assert_eq!(PARALLEL_CALLS.get() - before > 0, shared, "{n} x {m}");
    }
}

#[test]
fn a_failed_assertion_is_the_result() {
    // Two messages, one of them twice.
    let (a, b) = (buffer("A", &[64], DType::I32), buffer("B", &[64], DType::I32));
    let (i, j) = (Var::index("i"), Var::index("j"));
    let at = |v: &Var| a.load([v.expr()]);
    let body = |v: &Var| {
        Stmt::seq([
            assert_that(at(v).greater_equal(0), "not negative"),
            assert_that(at(v).less(100), "below \"100\""),
            Stmt::store(&b, vec![v.expr()], at(v)),
        ])
    };
    let n = || Expr::i32(64);
    let f =
        func(&[&a, &b], Stmt::seq([parallel(&i, n(), body(&i)), Stmt::serial(&j, n(), body(&j))]));
    let assertions = tilewright_codegen::emit::assertions(&f);
    let messages: Vec<_> = assertions.into_iter().map(|a| a.message).collect();
    assert_eq!(messages, [name("not negative"), name("below \"100\"")]);
    let native = compile(&f);
    for (value, result) in [(5, 0), (-1, 1), (100, 2)] {
        for threaded in [false, true] {
            let mut values = vec![1i32; 64];
            values[41] = value;
            let mut tensors =
                [Tensor::from_slice(&[64], &values).expect("a tensor"), zeros(DType::I32, &[64])];
            let got = if threaded {
                native.call_threads(&mut tensors)
            } else {
                native.call(&mut tensors)
            };
            assert_eq!(got, result);
        }
    }
}

#[test]
fn sizes_come_after_the_parameters_in_the_order_of_their_first_mention() {
    // A: [n, m], s: float64, B: [m, n + m]
    let (n, m, s) = (Var::index("n"), Var::new("m", DType::I64), Var::new("s", DType::F64));
    let a = Buffer::new("A", vec![n.expr().cast(DType::I64), m.expr()], DType::F64);
    let width = n.expr().cast(DType::I64) + &m;
    let b = Buffer::new("B", vec![m.expr(), width.clone()], DType::F64);
    let (i, j) = (Var::new("i", DType::I64), Var::new("j", DType::I64));
    let inside = j.expr().less(n.expr().cast(DType::I64));
    let value = Expr::if_then_else(
        inside,
        a.load([j.expr(), i.expr()]) * &s,
        Expr::float(-1.0, DType::F64),
    );
    let store = Stmt::store(&b, vec![i.expr(), j.expr()], value);
    let body = parallel(&i, m.expr(), Stmt::serial(&j, width, store));
    let params = vec![Param::tensor(&a), Param::Scalar(s), Param::tensor(&b)];
    let f = TensorFunc::new(params, body);
    assert_eq!(f.shape_vars(), [n, m]);
    let native = compile(&f);
    let mut a = Tensor::from_slice(&[2, 3], &[1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0]).expect("a tensor");
    let mut b = zeros(DType::F64, &[3, 5]);
    let args = vec![
        Arg::Tensor(&mut a),
        Arg::Bits(0.5f64.to_bits()),
        Arg::Tensor(&mut b),
        Arg::Bits(2),
        Arg::Bits(3),
    ];
    assert_eq!(native.call_with(args, Some(threads)), 0);
    let expected =
        [[0.5, 2.0, -1.0, -1.0, -1.0], [1.0, 2.5, -1.0, -1.0, -1.0], [1.5, 3.0, -1.0, -1.0, -1.0]];
    assert_eq!(b.as_slice::<f64>(), Some(expected.as_flattened()));
}

#[test]
fn what_is_known_of_pointers_is_told() {
    let a = buffer("A", &[6, 5], DType::F16);
    let n = Var::index("n");
    let open = Buffer::new("B", vec![n.expr()], DType::F32);
    let empty = buffer("C", &[0], DType::F32);
    let strided = buffer("D", &[4], DType::F32).derive(|d| d.strides = vec![Expr::i32(2)]);
    let mut f = func(&[&a, &open, &empty, &strided], Stmt::nop());
    let text = ir(&f, &baseline()).expect("it is lowered");
    let line = |text: &str| text.lines().find(|l| l.contains("@tw_k_f.impl(")).map(str::to_owned);
    let expected = "(ptr %ctx, ptr noalias noundef dereferenceable(60) %p0, ptr noalias noundef %p1, \
                    ptr noalias noundef %p2, ptr noalias noundef %p3, i32 %p4)";
    assert!(line(&text).is_some_and(|l| l.contains(expected)), "{text}");
    f.attrs.insert(tilewright_codegen::emit::ALIGNED.into(), tilewright_ir::Attr::Int(1));
    let text = ir(&f, &baseline()).expect("it is lowered");
    let expected =
        "ptr noalias noundef dereferenceable(60) align 64 %p0, ptr noalias noundef align 64 %p1";
    assert!(line(&text).is_some_and(|l| l.contains(expected)), "{text}");
}

#[test]
fn scalars_of_every_type_are_unpacked() {
    let types = [
        (DType::BOOL, 1u64, 1.0),
        (DType::I8, -5i64 as u64, -5.0),
        (DType::U8, 200, 200.0),
        (DType::I16, -300i64 as u64, -300.0),
        (DType::U16, 60000, 60000.0),
        (DType::I32, -70000i64 as u64, -70000.0),
        (DType::U32, 4_000_000_000, 4e9),
        (DType::I64, -5_000_000_000i64 as u64, -5e9),
        (DType::U64, 1 << 63, 2f64.powi(63)),
        (DType::F16, u64::from(half::f16::from_f32(1.5).to_bits()), 1.5),
        (DType::BF16, u64::from(half::bf16::from_f32(-2.5).to_bits()), -2.5),
        (DType::F32, u64::from(0.1f32.to_bits()), f64::from(0.1f32)),
        (DType::F64, 0.1f64.to_bits(), 0.1),
    ];
    let out = buffer("O", &[types.len() as i64], DType::F64);
    let vars: Vec<Var> = types.iter().map(|(d, ..)| Var::new("v", *d)).collect();
    let stores = vars.iter().enumerate().map(|(k, v)| {
        let value = v.expr();
        let value =
            if v.dtype() == DType::F64 { value } else { Expr::cast_node(value, DType::F64) };
        Stmt::store(&out, vec![Expr::i32(k as i32)], value)
    });
    let mut f = func(&[&out], Stmt::seq(stores));
    f.params.extend(vars.iter().cloned().map(Param::Scalar));
    for target in [tilewright_codegen::llvm::Llvm::get().expect("an LLVM").host(), baseline()] {
        let native = compile_for(&f, &target, tilewright_codegen::llvm::OptLevel::Full);
        let mut t = zeros(DType::F64, &[types.len()]);
        let mut args = vec![Arg::Tensor(&mut t)];
        args.extend(types.iter().map(|(_, bits, _)| Arg::Bits(*bits)));
        assert_eq!(native.call_with(args, None), 0);
        let expected: Vec<f64> = types.iter().map(|(.., v)| *v).collect();
        assert_eq!(t.as_slice::<f64>(), Some(&expected[..]));
    }
}

extern "C" fn scaled(x: f32, k: i8, on: bool) -> f32 {
    if on { x * f32::from(k) } else { -1.0 }
}

extern "C" fn sum_of_two(p: *const f32, q: *const f32) -> f64 {
    // SAFETY: the test passes pointers to elements of its tensors.
    unsafe { f64::from(*p) + f64::from(*q) }
}

unsafe extern "C" fn put(p: *mut f32, value: f64) -> i32 {
    // SAFETY: as above.
    unsafe { *p = value as f32 }
    0
}

extern "C" fn length(text: *const std::ffi::c_char) -> i16 {
    // SAFETY: the test passes text that ends with a zero.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_bytes().len() as i16
}

#[test]
fn c_functions_are_called_with_scalars_pointers_and_text() {
    let (a, b) = (buffer("A", &[16], DType::F32), buffer("B", &[4, 16], DType::F32));
    let i = Var::index("i");
    let call = |name: &str, args: Vec<Expr>, dtype| {
        Expr::call(CallTarget::Extern(name.into()), args, dtype)
    };
    let address =
        |e: Expr| Expr::call(CallTarget::Opaque("address_of".into()), vec![e], DType::HANDLE);
    let row = |k: i32| vec![Expr::i32(k), i.expr()];
    let x = a.load([i.expr()]);
    let k = Expr::cast_node(&i - 3, DType::I8);
    let sum = call("tw_sum", vec![a.data.expr(), address(x.clone())], DType::F64);
    let before = b.load(row(2));
    // What was read before the call is read again after it.
    let changed = Expr::binary(
        BinOp::Add,
        Expr::binary(BinOp::Add, before.clone(), {
            let effect = call(
                "tw_put",
                vec![address(b.load(row(2))), Expr::float(7.0, DType::F64)],
                DType::I32,
            );
            Expr::cast_node(effect, DType::F32)
        }),
        before,
    );
    let text = Expr::str("né\"\\\n");
    let body = Stmt::seq([
        Stmt::store(&b, row(0), call("tw_scaled", vec![x, k, i.expr().less(14)], DType::F32)),
        Stmt::store(&b, row(1), Expr::cast_node(sum, DType::F32)),
        Stmt::store(&b, row(2), Expr::float(3.0, DType::F32)),
        Stmt::store(&b, row(3), changed),
        Stmt::new(StmtKind::Evaluate(call(
            "tw_put",
            vec![address(b.load(row(2))), Expr::float(9.0, DType::F64)],
            DType::VOID,
        ))),
        Stmt::store(
            &b,
            row(1),
            b.load(row(1)) + Expr::cast_node(call("tw_length", vec![text], DType::I16), DType::F32),
        ),
    ]);
    // Once as it is, once in a parallel loop, where the pointers go through a closure.
    for kind in [ForKind::Serial, ForKind::Parallel] {
        let f = func(&[&a, &b], Stmt::for_loop(&i, Range::upto(Expr::i32(16)), kind, body.clone()));
        let native = compile_with(
            &f,
            &[
                (
                    "define float @tw_scaled(float %x, i8 signext %k, i1 zeroext %on) {
                       %r = call float ADDRESS(float %x, i8 signext %k, i1 zeroext %on)
                       ret float %r
                     }",
                    scaled as *mut std::ffi::c_void,
                ),
                (
                    "define double @tw_sum(ptr %p, ptr %q) {
                       %r = call double ADDRESS(ptr %p, ptr %q)
                       ret double %r
                     }",
                    sum_of_two as *mut std::ffi::c_void,
                ),
                (
                    "define i32 @tw_put(ptr %p, double %value) {
                       %r = call i32 ADDRESS(ptr %p, double %value)
                       ret i32 %r
                     }",
                    put as *mut std::ffi::c_void,
                ),
                (
                    "define signext i16 @tw_length(ptr %text) {
                       %r = call signext i16 ADDRESS(ptr %text)
                       ret i16 %r
                     }",
                    length as *mut std::ffi::c_void,
                ),
            ],
        );
        let input: Vec<f32> = (0..16).map(|k| k as f32 + 0.5).collect();
        let mut tensors = [floats(&input), zeros(DType::F32, &[4, 16])];
        assert_eq!(native.call_threads(&mut tensors), 0);
        let got = f32s(&tensors[1]);
        for k in 0..16 {
            let factor = if k < 14 { input[k] * (k as f32 - 3.0) } else { -1.0 };
            assert_eq!(got[k], factor, "{k}");
            assert_eq!(got[16 + k], 0.5 + input[k] + 6.0, "{k}");
            assert_eq!(got[32 + k], 9.0);
            assert_eq!(got[48 + k], 3.0 + 7.0, "{k}");
        }
    }
}
