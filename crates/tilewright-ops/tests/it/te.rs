//! The tensor functions that te builds, and what it refuses.

use std::collections::HashSet;

use expect_test::{Expect, expect};
use tilewright_ir::{Buffer, DType, Error, Expr, TensorFunc, Var, Visit, visit};
use tilewright_ops::te::{self, Reducer, Stage, Tensor};

use crate::nd::{Nd, check, check_f32, refused};
use crate::text::text;

#[track_caller]
fn shows(inputs: &[&Tensor], outputs: &[&Tensor], expected: Expect) {
    let func = te::func(inputs.iter().copied(), outputs.iter().copied());
    expected.assert_eq(&func.map_or_else(|e| e.render(), |f| text(&f)));
}

fn vector(name: &str, n: usize) -> Tensor {
    te::placeholder(name, &[n], DType::F32)
}

#[test]
fn a_matmul_with_an_epilogue_is_two_stages() {
    let a = te::placeholder("A", &[3, 5], DType::F32);
    let b = te::placeholder("B", &[5, 4], DType::F32);
    let k = te::reduce_axis(5, "k");
    let c = te::compute("C", &[3, 4], |i| {
        te::reduce(Reducer::Sum, a.at([&i[0], &k.expr()]) * b.at([&k.expr(), &i[1]]), [&k])
    });
    let d = te::compute_over("D", [te::axis(3, "row"), te::axis(4, "col")], |i| c.at(i).max(0.0));
    shows(
        &[&a, &b],
        &[&d],
        expect![[r#"
        param A float32[3, 5]
        param B float32[5, 4]
        param D float32[3, 4]
          block root
          alloc C float32[3, 4]
            i0 < 3
              i1 < 4
                k < 5
                    block C S:vi0 S:vi1 R:vk
                    init
                    C[vi0, vi1] = T.float32(0.0)
                    C[vi0, vi1] = C[vi0, vi1] + A[vi0, vk] * B[vk, vi1]
            row < 3
              col < 4
                  block D S:vrow S:vcol
                  D[vrow, vcol] = T.max(C[vrow, vcol], T.float32(0.0))
    "#]],
    );
}

#[test]
fn tensors_without_axes_work() {
    let x = te::placeholder::<usize>("x", &[], DType::F32);
    let k = te::reduce_axis(3, "k");
    let v = vector("v", 3);
    let dot = te::compute::<usize, _>("dot", &[], |_| {
        te::reduce(Reducer::Sum, v.at([&k]) * x.scalar(), [&k])
    });
    let twice = te::compute::<usize, _>("twice", &[], |_| dot.scalar() * 2.0);
    shows(
        &[&x, &v],
        &[&twice],
        expect![[r#"
        param x float32[]
        param v float32[3]
        param twice float32[]
          block root
          alloc dot float32[]
            k < 3
                block dot R:vk
                init
                dot[()] = T.float32(0.0)
                dot[()] = dot[()] + v[vk] * x[()]
              block twice
              twice[()] = dot[()] * T.float32(2.0)
    "#]],
    );
    let (one, three) = (Nd::random::<usize>(&[], 1), Nd::random(&[3], 2));
    let expected = one.map(|x| 2.0 * three.data.iter().map(|v| v * x).sum::<f64>());
    check_f32(te::func([&x, &v], [&twice]), &[one.f32(), three.f32()], &expected);
}

#[test]
fn a_name_that_comes_twice_gets_a_number() {
    let x = vector("x", 2);
    let y = te::compute("y", &[2], |i| x.at(i) + 1.0);
    let z = te::compute("y", &[2], |i| y.at(i) + 1.0);
    let root = te::compute("root", &[2], |i| z.at(i) + 1.0);
    shows(
        &[&x],
        &[&root],
        expect![[r#"
        param x float32[2]
        param root float32[2]
          block root
          alloc y float32[2]
          alloc y float32[2]
            i0 < 2
                block y S:vi0
                y[vi0] = x[vi0] + T.float32(1.0)
            i0 < 2
                block y_1 S:vi0
                y[vi0] = y[vi0] + T.float32(1.0)
            i0 < 2
                block root_1 S:vi0
                root[vi0] = y[vi0] + T.float32(1.0)
    "#]],
    );
}

#[test]
fn an_empty_reduction_stores_what_it_starts_from() {
    for (reducer, value) in [
        (Reducer::Sum, 0.0),
        (Reducer::Prod, 1.0),
        (Reducer::Max, f64::NEG_INFINITY),
        (Reducer::Min, f64::INFINITY),
    ] {
        let x = te::placeholder("x", &[2, 0], DType::F32);
        let k = te::reduce_axis(0, "k");
        let y = te::compute("y", &[2], |i| te::reduce(reducer, x.at([&i[0], &k.expr()]), [&k]));
        let expected = Nd::build(&[2], |_| value);
        check_f32(te::func([&x], [&y]), &[Nd::build(&[2, 0], |_| 0.0).f32()], &expected);
    }
}

#[test]
fn identities_are_the_bounds_of_the_type() {
    let all = |r: Reducer, d| r.identity(d).to_string();
    assert_eq!(all(Reducer::Max, DType::I8), "T.int8(-128)");
    assert_eq!(all(Reducer::Min, DType::I64), "T.int64(9223372036854775807)");
    assert_eq!(all(Reducer::Max, DType::U8), "T.uint8(0)");
    assert_eq!(all(Reducer::Min, DType::U8), "T.uint8(255)");
    assert_eq!(all(Reducer::Min, DType::U64), "T.uint64(18446744073709551615)");
    assert_eq!(all(Reducer::Max, DType::F16), "T.float16(\"-inf\")");
    assert_eq!(all(Reducer::Min, DType::BOOL), "T.bool(True)");
}

#[test]
fn stages_write_parts_of_one_tensor() {
    let (a, b) = (vector("a", 2), vector("b", 3));
    let both = te::stages("both", &[5], DType::F32, |out| {
        let part = |t: &Tensor, from: i64| {
            let j = te::axis(t.shape()[0], "j");
            Stage::new(out, [j.clone()], vec![j.expr() + from], t.at([&j]))
        };
        vec![part(&a, 0), part(&b, 2)]
    });
    shows(
        &[&a, &b],
        &[&both],
        expect![[r#"
        param a float32[2]
        param b float32[3]
        param both float32[5]
          j < 2
              block both S:vj
              both[vj] = a[vj]
          j < 3
              block both_1 S:vj
              both[vj + 2] = b[vj]
    "#]],
    );
}

#[test]
fn a_scan_reads_what_it_wrote() {
    let x = vector("x", 4);
    let sum = te::stages("sum", &[4], DType::F32, |out| {
        let j = te::scan_axis(4, "j");
        let before = Expr::if_then_else(
            j.expr().greater(0),
            out.load([j.expr() - 1]),
            Expr::float(0.0, DType::F32),
        );
        vec![Stage::new(out, [j.clone()], vec![j.expr()], before + x.at([&j]))]
    });
    shows(
        &[&x],
        &[&sum],
        expect![[r#"
        param x float32[4]
        param sum float32[4]
        j < 4
            block sum O:vj
            sum[vj] = T.if_then_else(vj > 0, sum[vj - 1], T.float32(0.0)) + x[vj]
    "#]],
    );
    let data = Nd::random(&[4], 3);
    let expected = Nd::build(&[4], |i| data.data[..=i[0]].iter().sum());
    check_f32(te::func([&x], [&sum]), &[data.f32()], &expected);
}

#[test]
fn several_outputs_may_depend_on_each_other() {
    let x = vector("x", 3);
    let y = te::compute("y", &[3], |i| x.at(i) + 1.0);
    let z = te::compute("z", &[3], |i| y.at(i) * x.at(i));
    let data = Nd::random(&[3], 5);
    let (first, second) = (data.map(|v| v + 1.0), data.map(|v| (v + 1.0) * v));
    let expected = [(&second, DType::F32), (&first, DType::F32)];
    check(te::func([&x], [&z, &y]), &[data.f32()], &expected);
}

#[test]
fn a_chain_may_be_long() {
    let x = vector("x", 1);
    let mut last = x.clone();
    for _ in 0..50_000 {
        let next = te::compute("y", &[1], |i| last.at(i) + 1.0);
        last = next;
    }
    let func = te::func([&x], [&last]).unwrap();
    assert_eq!(func.root_parts().0.len(), 49_999);
}

/// Every variable that a function defines.
fn variables(func: &TensorFunc) -> HashSet<Var> {
    #[derive(Default)]
    struct Defs(HashSet<Var>);
    impl Visit for Defs {
        fn var_def(&mut self, v: &Var) {
            self.0.insert(v.clone());
        }
    }
    let mut defs = Defs::default();
    visit::walk_func(&mut defs, func);
    defs.0
}

#[test]
fn functions_of_the_same_tensors_share_no_variables() {
    let x = vector("x", 3);
    let y = te::compute("y", &[3], |i| x.at(i) + 1.0);
    let [f, g] = [(); 2].map(|()| te::func([&x], [&y]).unwrap());
    assert!(!variables(&f).is_empty());
    assert!(variables(&f).is_disjoint(&variables(&g)));
    assert!(f.buffers().zip(g.buffers()).all(|(a, b)| a != b));
}

#[test]
fn mistakes_are_named() {
    let x = vector("x", 3);
    let y = te::compute("y", &[3], |i| x.at(i) + 1.0);
    let none: [&Tensor; 0] = [];
    let message = |f: tilewright_ir::Result<TensorFunc>| {
        assert!(matches!(f, Err(Error::Input(_))));
        refused(f)
    };
    let of = |t: &Tensor| message(te::func([&x], [t]));
    let mut all = Vec::new();
    all.push(message(te::func([&x], none)));
    all.push(message(te::func([&y], [&y])));
    all.push(message(te::func([&x, &x], [&y])));
    all.push(message(te::func([&x], [&x])));
    all.push(message(te::func([&x], [&y, &y])));
    all.push(message(te::func(none, [&y])));
    all.push(of(&te::compute("rank", &[3], |i| x.at([&i[0], &i[0]]))));
    all.push(of(&te::compute("index", &[3], |i| x.buffer().load([i[0].clone().cast(DType::F32)]))));
    all.push(of(&te::stages("type", &[3], DType::I32, |out| {
        let j = te::axis(3, "j");
        vec![Stage::new(out, [j.clone()], vec![j.expr()], x.at([&j]))]
    })));
    all.push(of(&te::stages("store", &[3], DType::F32, |out| {
        let j = te::axis(3, "j");
        vec![Stage::new(out, [j.clone()], vec![j.expr(), j.expr()], x.at([&j]))]
    })));
    let stray = te::axis(3, "stray");
    all.push(of(&te::compute("axis", &[3], |i| x.at(i) + x.at([&stray]))));
    all.push(of(&te::compute("wide", &[3], |i| Expr::broadcast(x.at(i), 4))));
    let handle = te::placeholder("handle", &[3], DType::HANDLE);
    all.push(message(te::func([&handle], [&te::compute("y", &[3], |i| handle.at(i))])));
    all.push(of(&te::compute("huge", &[1 << 16, 1 << 15], |_| x.at([0i64]))));
    all.push(of(&te::compute("long", &[0, 1 << 31], |_| x.at([0i64]))));
    let k = te::reduce_axis(1 << 40, "k");
    all.push(of(&te::compute("far", &[1], |_| te::reduce(Reducer::Sum, x.at([&k]), [&k]))));
    let foreign = Buffer::with_extents("foreign", &[3], DType::F32);
    all.push(of(&te::compute("late", &[3], |i| foreign.load([i[0].clone()]))));
    expect![[r#"
        input: a tensor function needs an output
        input: tensor `y`: it is computed, so it cannot be an input
        input: tensor `x`: it is an input twice
        input: tensor `x`: it is an input, so it cannot be an output: copy it
        input: tensor `y`: it is an output twice
        input: tensor `x`: it is needed, but is not among the inputs
        input: tensor `rank`: `x` has 1 axes, not 2
        input: tensor `index`: the index `T.Cast("float32", vi0)` of `x` is float32, not an integer
        input: tensor `type`: a float32 value does not fit its type int32
        input: tensor `store`: `store` has 1 axes, not 2
        input: tensor `axis`: it uses `vstray`, which is none of its axes
        input: tensor `wide`: float32x4 is no type of an element
        input: tensor `handle`: handle is no type of an element
        input: tensor `huge`: the shape [65536, 32768] has more than 2^31 - 1 elements
        input: tensor `long`: the shape [0, 2147483648] has more than 2^31 - 1 elements
        input: tensor `far`: the axis `k` is longer than 2^31 - 1
        input: tensor `late`: it reads `foreign`, a buffer that stands for no tensor
    "#]]
    .assert_eq(&(all.join("\n") + "\n"));
}

#[test]
fn an_expression_holds_what_computes_the_tensors_that_it_reads() {
    let x = vector("x", 3);
    let first = te::compute("short", &[3], |i| x.at(i) + 1.0).at([0i64]);
    let y = te::compute("y", &[3], |i| x.at(i) + &first);
    let func = te::func([&x], [&y]).expect("a function");
    assert_eq!(func.buffers().count(), 2);
    let mut names = Vec::new();
    func.body.for_each(|s| {
        if let tilewright_ir::StmtKind::Store { buffer, .. } = s.kind() {
            names.push(buffer.name.to_string());
        }
    });
    assert_eq!(names, ["short", "y"]);
}

#[test]
fn expressions_keep_the_rules_of_the_ir() {
    let x = vector("x", 3);
    let y = te::compute("y", &[3], |i| {
        Expr::binary(tilewright_ir::BinOp::Add, x.at(i), Expr::float(1.0, DType::F64))
    });
    let error = te::func([&x], [&y]).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Malformed(_)));
    expect![[r#"
        function `y`: `x[vi0] + T.float64(1.0)` has operands of types float32 and float64
    "#]]
    .assert_eq(&(error.to_string() + "\n"));
}

#[test]
fn inputs_may_be_too_large_too() {
    let x = te::placeholder("x", &[1 << 20, 1 << 20], DType::F32);
    let y = te::compute("y", &[3], |i| x.at([&i[0], &i[0]]));
    expect![[r#"
        input: tensor `x`: the shape [1048576, 1048576] has more than 2^31 - 1 elements
    "#]]
    .assert_eq(&(refused(te::func([&x], [&y])) + "\n"));
}
