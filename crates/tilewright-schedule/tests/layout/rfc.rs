//! The examples of the two designs that layouts come from: Apache TVM RFC 0039 (buffer physical
//! layout) and RFC 0077 (layout transform padding), each run before and after.

use expect_test::{Expect, expect};
use tilewright_ir::{DType, Expr};
use tilewright_schedule::Schedule;
use tilewright_schedule::trace::Value;

use crate::common::{Moved, Pad, block, lambda, moved, schedule, shown, verify};

const MAP: &str = "i: i // 4, i % 4";
const OFFSET: &str = "i: (i + 2) // 8, (i + 2) % 8";

fn undef(dtype: DType) -> Value {
    Value::Expr(Expr::undef(dtype))
}

/// Applies steps to a function, shows the body of the result, and compares it with the function.
fn check(text: &str, steps: impl FnOnce(&mut Schedule), layouts: &[Moved], expected: Expect) {
    let mut sch = schedule(text);
    steps(&mut sch);
    let shown = shown(&sch);
    let body: String = shown
        .lines()
        .skip_while(|l| !l.contains("def main"))
        .map(|l| format!("{}\n", l.strip_prefix("    ").unwrap_or(l)))
        .collect();
    expected.assert_eq(&body);
    verify(text, &sch, layouts);
}

fn layout(sch: &mut Schedule, buffer: &str, map: &str, pad: Value) {
    let b = block(sch, "compute");
    sch.transform_layout(&b, buffer, &lambda(map), &pad, false)
        .unwrap_or_else(|e| panic!("{}", e.render()));
}

fn follow(sch: &mut Schedule, buffer: &str) {
    let b = block(sch, "compute");
    sch.sequential_buffer_access(&b, buffer).unwrap_or_else(|e| panic!("{}", e.render()));
}

/// 0077, "Padded Transformations".
#[test]
fn where_the_padding_lies() {
    for (extent, map) in
        [(16, "i: i // 8, i % 8"), (14, "i: i // 8, i % 8"), (14, OFFSET), (16, OFFSET)]
    {
        let text = format!(
            "@T.prim_func
def main(B: T.Buffer(({extent},), \"float32\")):
    for i in range({extent}):
        with T.block(\"compute\"):
            vi = T.axis.spatial({extent}, i)
            B[vi] = T.Cast(\"float32\", vi)
"
        );
        let expected = match (extent, map) {
            (16, OFFSET) => expect![[r#"
                def main(B: T.Buffer((3, 8), "float32")):
                    for i_0, i_1 in T.grid(3, 8):
                        with T.block("compute"):
                            v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                            B[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 0 and v_i_1 < 2 or v_i_0 == 2 and v_i_1 >= 2, T.float32(0.0), T.Cast("float32", v_i_0 * 8 + v_i_1 - 2))
            "#]],
            (_, OFFSET) => expect![[r#"
                def main(B: T.Buffer((2, 8), "float32")):
                    for i_0, i_1 in T.grid(2, 8):
                        with T.block("compute"):
                            v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                            B[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 0 and v_i_1 < 2, T.float32(0.0), T.Cast("float32", v_i_0 * 8 + v_i_1 - 2))
            "#]],
            (16, _) => expect![[r#"
                def main(B: T.Buffer((2, 8), "float32")):
                    for i in range(16):
                        with T.block("compute"):
                            vi = T.axis.spatial(16, i)
                            B[vi // 8, vi % 8] = T.Cast("float32", vi)
            "#]],
            _ => expect![[r#"
                def main(B: T.Buffer((2, 8), "float32")):
                    for i_0, i_1 in T.grid(2, 8):
                        with T.block("compute"):
                            v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                            B[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 1 and v_i_1 >= 6, T.float32(0.0), T.Cast("float32", v_i_0 * 8 + v_i_1))
            "#]],
        };
        let steps = |sch: &mut Schedule| layout(sch, "B", map, Value::Float(0.0));
        check(&text, steps, &[moved(0, map, Pad::Is(0.0))], expected);
    }
}

/// 0077, "Overcompute vs Branching".
#[test]
fn row_summation() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32")):
    with T.block("compute"):
        for i in range(16):
            B[i] = T.float32(0)
            for j in range(14):
                B[i] = B[i] + A[i, j]
"#;
    let map = "i, j: i, j // 4, j % 4";
    let steps = |sch: &mut Schedule| {
        layout(sch, "A", map, Value::Float(0.0));
        let j = tilewright_schedule::site::find(&sch.func("main").unwrap().body, |s| {
            tilewright_schedule::site::as_loop(s).is_some_and(|(v, ..)| &**v.name() == "j")
        });
        let (var, ..) = tilewright_schedule::site::as_loop(&j[0].stmt).unwrap();
        let l = tilewright_schedule::LoopRef { func: "main".into(), var: var.clone() };
        sch.transform_loops(&[l], &lambda("j: j // 4, j % 4")).unwrap();
    };
    check(
        text,
        steps,
        &[moved(0, map, Pad::Is(0.0))],
        expect![[r#"
        def main(A: T.Buffer((16, 4, 4), "float32"), B: T.Buffer((16,), "float32")):
            for i, j_0, j_1 in T.grid(16, 4, 4):
                with T.block("buffer_A_assumption"):
                    v_i, v_j_0, v_j_1 = T.axis.remap("SSS", [i, j_0, j_1])
                    T.assume(not (v_j_0 == 3 and v_j_1 >= 2) or A[v_i, v_j_0, v_j_1] == T.float32(0.0))
            with T.block("compute"):
                for i in range(16):
                    B[i] = T.float32(0.0)
                    for j_0, j_1 in T.grid(4, 4):
                        if j_0 * 4 + j_1 < 14:
                            B[i] = B[i] + A[i, j_0, j_1]
    "#]],
    );
}

const CACHED: &str = r#"
@T.prim_func
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    A_cache = T.alloc_buffer((14,), "float32")
    B_cache = T.alloc_buffer((14,), "float32")
    for i in range(14):
        with T.block("A_cache"):
            vi = T.axis.spatial(14, i)
            A_cache[vi] = A[vi]
    for i in range(14):
        with T.block("compute"):
            vi = T.axis.spatial(14, i)
            B_cache[vi] = T.float32(2) * A_cache[vi]
    for i in range(14):
        with T.block("B_cache"):
            vi = T.axis.spatial(14, i)
            B[vi] = B_cache[vi]
"#;

/// 0077, "Enhancement - transform_layout", on caches: the interface stays.
#[test]
fn caches_are_padded() {
    let steps = |sch: &mut Schedule| {
        layout(sch, "A_cache", MAP, Value::Int(-1));
        layout(sch, "B_cache", MAP, Value::Int(-2));
    };
    check(
        CACHED,
        steps,
        &[],
        expect![[r#"
        def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
            A_cache = T.alloc_buffer((4, 4), "float32")
            B_cache = T.alloc_buffer((4, 4), "float32")
            for i_0, i_1 in T.grid(4, 4):
                with T.block("A_cache"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    A_cache[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 3 and v_i_1 >= 2, T.float32(-1.0), A[v_i_0 * 4 + v_i_1])
            for i_0, i_1 in T.grid(4, 4):
                with T.block("compute"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    B_cache[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 3 and v_i_1 >= 2, T.float32(-2.0), T.float32(2.0) * A_cache[v_i_0, v_i_1])
            for i in range(14):
                with T.block("B_cache"):
                    vi = T.axis.spatial(14, i)
                    B[vi] = B_cache[vi // 4, vi % 4]
    "#]],
    );
}

const DOUBLE: &str = r#"
@T.prim_func
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    for i in range(14):
        with T.block("compute"):
            B[i] = 2 * A[i]
"#;

/// 0077, "Enhancement - transform_layout", on arguments.
#[test]
fn arguments_are_padded() {
    let steps = |sch: &mut Schedule| {
        layout(sch, "A", MAP, Value::Int(-1));
        layout(sch, "B", MAP, Value::Int(-2));
    };
    let layouts = [moved(0, MAP, Pad::Is(-1.0)), moved(1, MAP, Pad::Is(-2.0))];
    check(
        DOUBLE,
        steps,
        &layouts,
        expect![[r#"
        def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
            for i_0, i_1 in T.grid(4, 4):
                with T.block("buffer_A_assumption"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    T.assume(not (v_i_0 == 3 and v_i_1 >= 2) or A[v_i_0, v_i_1] == -1)
            for i_0, i_1 in T.grid(4, 4):
                with T.block("compute"):
                    B[i_0, i_1] = T.if_then_else(i_0 == 3 and i_1 >= 2, -2, 2 * A[i_0, i_1])
    "#]],
    );
}

/// 0077, "Apply operator element-wise over the transformation padding".
#[test]
fn elementwise_with_undefined_padding() {
    let steps = |sch: &mut Schedule| {
        layout(sch, "A", MAP, undef(DType::I32));
        layout(sch, "B", MAP, undef(DType::I32));
        follow(sch, "B");
    };
    check(
        DOUBLE,
        steps,
        &[moved(0, MAP, Pad::Undef), moved(1, MAP, Pad::Undef)],
        expect![[r#"
        def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
            for i_0, i_1 in T.grid(4, 4):
                with T.block("buffer_A_assumption"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    T.assume(not (v_i_0 == 3 and v_i_1 >= 2) or A[v_i_0, v_i_1] == T.undef(dtype="int32"))
            for i_0, i_1 in T.grid(4, 4):
                with T.block("compute"):
                    T.where(i_0 * 4 + i_1 < 14)
                    B[i_0, i_1] = 2 * A[i_0, i_1]
            for i_0, i_1 in T.grid(4, 4):
                with T.block("buffer_B_padding"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    T.where(i_0 == 3 and i_1 >= 2)
                    B[v_i_0, v_i_1] = T.undef(dtype="int32")
    "#]],
    );
}

/// 0077, "Never write to transformation padding" and "Never read ...".
#[test]
fn padding_that_nobody_touches() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
    with T.block("compute"):
        B[0] = 0
        for i in range(14):
            B[0] = B[0] + A[i]
"#;
    let steps = |sch: &mut Schedule| {
        layout(sch, "A", MAP, Value::None);
        follow(sch, "A");
    };
    check(
        text,
        steps,
        &[moved(0, MAP, Pad::Nothing)],
        expect![[r#"
        def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((1,), "int32")):
            with T.block("compute"):
                B[0] = 0
                for i_0, i_1 in T.grid(4, 4):
                    if i_0 * 4 + i_1 < 14:
                        B[0] = B[0] + A[i_0, i_1]
    "#]],
    );
    let text = r#"
@T.prim_func
def main(A: T.Buffer((14,), "int32")):
    with T.block("compute"):
        for i in range(14):
            A[i] = 42
"#;
    let steps = |sch: &mut Schedule| {
        layout(sch, "A", MAP, Value::None);
        follow(sch, "A");
    };
    check(
        text,
        steps,
        &[moved(0, MAP, Pad::Nothing)],
        expect![[r#"
        def main(A: T.Buffer((4, 4), "int32")):
            with T.block("compute"):
                for i_0, i_1 in T.grid(4, 4):
                    if i_0 * 4 + i_1 < 14:
                        A[i_0, i_1] = 42
    "#]],
    );
}

/// 0077, "Allocate internal buffer containing transformation padding", from the cache on.
#[test]
fn an_internal_buffer_holds_the_padding() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
    A_local = T.alloc_buffer((14,), "int32", scope="local")
    for i in range(14):
        with T.block("A_local"):
            vi = T.axis.spatial(14, i)
            A_local[vi] = A[vi]
    with T.block("compute"):
        B[0] = 0
        for i in range(14):
            B[0] = B[0] + A_local[i]
"#;
    let steps = |sch: &mut Schedule| {
        layout(sch, "A_local", MAP, Value::Int(0));
        follow(sch, "A_local");
    };
    check(
        text,
        steps,
        &[],
        expect![[r#"
        def main(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
            A_local = T.alloc_buffer((4, 4), "int32", scope="local")
            for i_0, i_1 in T.grid(4, 4):
                with T.block("A_local"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    A_local[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 3 and v_i_1 >= 2, 0, A[v_i_0 * 4 + v_i_1])
            with T.block("compute"):
                B[0] = 0
                for i_0, i_1 in T.grid(4, 4):
                    if i_0 * 4 + i_1 < 14:
                        B[0] = B[0] + A_local[i_0, i_1]
    "#]],
    );
}

/// 0077, "Explicitly write next operator's desired default at end of function".
#[test]
fn a_producer_and_a_consumer() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((14,), "int32")):
    with T.block("compute"):
        for i in range(14):
            A[i] = 1000 + i
"#;
    let steps = |sch: &mut Schedule| layout(sch, "A", MAP, Value::Int(0));
    check(
        text,
        steps,
        &[moved(0, MAP, Pad::Is(0.0))],
        expect![[r#"
        def main(A: T.Buffer((4, 4), "int32")):
            with T.block("compute"):
                for i_0, i_1 in T.grid(4, 4):
                    A[i_0, i_1] = T.if_then_else(i_0 == 3 and i_1 >= 2, 0, 1000 + (i_0 * 4 + i_1))
    "#]],
    );
    let text = r#"
@T.prim_func
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
    with T.block("compute"):
        B[0] = 0
        for i in range(14):
            B[0] = B[0] + A[i]
"#;
    let steps = |sch: &mut Schedule| {
        layout(sch, "A", MAP, Value::Int(0));
        follow(sch, "A");
    };
    check(
        text,
        steps,
        &[moved(0, MAP, Pad::Is(0.0))],
        expect![[r#"
        def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((1,), "int32")):
            for i_0, i_1 in T.grid(4, 4):
                with T.block("buffer_A_assumption"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    T.assume(not (v_i_0 == 3 and v_i_1 >= 2) or A[v_i_0, v_i_1] == 0)
            with T.block("compute"):
                B[0] = 0
                for i_0, i_1 in T.grid(4, 4):
                    if i_0 * 4 + i_1 < 14:
                        B[0] = B[0] + A[i_0, i_1]
    "#]],
    );
}

const CONV: &str = r#"
@T.prim_func
def main(A: T.Buffer((16,), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((18,), "float32")):
    with T.block("compute"):
        for Bi in range(18):
            B[Bi] = T.float32(0)
            for fi in range(3):
                if 0 <= Bi - fi and Bi - fi < 16:
                    B[Bi] = B[Bi] + F[fi] * A[Bi - fi]
"#;

/// 0077, "Implicitly write default value of next operator": padding at both ends.
#[test]
fn a_convolution_with_padding_at_both_ends() {
    let both = [moved(0, OFFSET, Pad::Is(0.0)), moved(2, OFFSET, Pad::Is(0.0))];
    let pads = |sch: &mut Schedule| {
        layout(sch, "A", OFFSET, Value::Float(0.0));
        layout(sch, "B", OFFSET, Value::Float(0.0));
    };
    check(
        CONV,
        pads,
        &both,
        expect![[r#"
        def main(A: T.Buffer((3, 8), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((3, 8), "float32")):
            for i_0, i_1 in T.grid(3, 8):
                with T.block("buffer_A_assumption"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    T.assume(not (v_i_0 == 0 and v_i_1 < 2 or v_i_0 == 2 and v_i_1 >= 2) or A[v_i_0, v_i_1] == T.float32(0.0))
            with T.block("compute"):
                for Bi in range(18):
                    B[(Bi + 2) // 8, (Bi + 2) % 8] = T.float32(0.0)
                    for fi in range(3):
                        if 0 <= Bi - fi and Bi - fi < 16:
                            B[(Bi + 2) // 8, (Bi + 2) % 8] = B[(Bi + 2) // 8, (Bi + 2) % 8] + F[fi] * A[(Bi - fi + 2) // 8, (Bi - fi + 2) % 8]
                for i_0, i_1 in T.grid(3, 8):
                    with T.block("buffer_B_padding"):
                        v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                        T.where(i_0 == 0 and i_1 < 2 or i_0 == 2 and i_1 >= 4)
                        B[v_i_0, v_i_1] = T.float32(0.0)
    "#]],
    );
    for buffer in ["A", "B"] {
        let steps = |sch: &mut Schedule| {
            pads(sch);
            follow(sch, buffer);
        };
        let expected = match buffer {
            "A" => expect![[r#"
                def main(A: T.Buffer((3, 8), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((3, 8), "float32")):
                    for i_0, i_1 in T.grid(3, 8):
                        with T.block("buffer_A_assumption"):
                            v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                            T.assume(not (v_i_0 == 0 and v_i_1 < 2 or v_i_0 == 2 and v_i_1 >= 2) or A[v_i_0, v_i_1] == T.float32(0.0))
                    with T.block("compute"):
                        for Bi in range(18):
                            B[(Bi + 2) // 8, (Bi + 2) % 8] = T.float32(0.0)
                        for Bi_fi_0, Bi_fi_1, fi in T.grid(3, 8, 3):
                            if Bi_fi_0 * 8 + Bi_fi_1 + fi - 2 >= 0 and Bi_fi_0 * 8 + Bi_fi_1 + fi - 2 < 18:
                                if (Bi_fi_0 >= 1 or Bi_fi_1 >= 2) and (Bi_fi_0 < 2 or Bi_fi_1 < 2):
                                    B[Bi_fi_0 + (Bi_fi_1 + fi) // 8, (Bi_fi_1 + fi) % 8] = B[Bi_fi_0 + (Bi_fi_1 + fi) // 8, (Bi_fi_1 + fi) % 8] + F[fi] * A[Bi_fi_0, Bi_fi_1]
                        for i_0, i_1 in T.grid(3, 8):
                            with T.block("buffer_B_padding"):
                                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                                T.where(i_0 == 0 and i_1 < 2 or i_0 == 2 and i_1 >= 4)
                                B[v_i_0, v_i_1] = T.float32(0.0)
            "#]],
            _ => expect![[r#"
                def main(A: T.Buffer((3, 8), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((3, 8), "float32")):
                    for i_0, i_1 in T.grid(3, 8):
                        with T.block("buffer_A_assumption"):
                            v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                            T.assume(not (v_i_0 == 0 and v_i_1 < 2 or v_i_0 == 2 and v_i_1 >= 2) or A[v_i_0, v_i_1] == T.float32(0.0))
                    with T.block("compute"):
                        for Bi_0, Bi_1 in T.grid(3, 8):
                            if Bi_0 * 8 + Bi_1 - 2 >= 0 and Bi_0 * 8 + Bi_1 - 2 < 18:
                                B[Bi_0, Bi_1] = T.float32(0.0)
                                for fi in range(3):
                                    if (Bi_0 >= 1 or Bi_1 >= fi + 2) and (Bi_0 < 2 or Bi_1 < fi + 2):
                                        B[Bi_0, Bi_1] = B[Bi_0, Bi_1] + F[fi] * A[Bi_0 + (Bi_1 - fi) // 8, (Bi_1 - fi) % 8]
                        for i_0, i_1 in T.grid(3, 8):
                            with T.block("buffer_B_padding"):
                                v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                                T.where(i_0 == 0 and i_1 < 2 or i_0 == 2 and i_1 >= 4)
                                B[v_i_0, v_i_1] = T.float32(0.0)
            "#]],
        };
        check(CONV, steps, &both, expected);
    }
}

/// 0077, "Remove Branching Through Overcompute": the layouts that it starts from.
#[test]
fn a_convolution_by_its_output() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((16,), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((14,), "float32")):
    with T.block("compute"):
        for i in range(14):
            B[i] = T.float32(0)
            for f in range(3):
                B[i] = B[i] + A[i + f]
"#;
    let steps = |sch: &mut Schedule| {
        layout(sch, "A", MAP, Value::None);
        layout(sch, "B", MAP, Value::Float(0.0));
        follow(sch, "B");
    };
    check(
        text,
        steps,
        &[moved(0, MAP, Pad::Nothing), moved(2, MAP, Pad::Is(0.0))],
        expect![[r#"
        def main(A: T.Buffer((4, 4), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((4, 4), "float32")):
            with T.block("compute"):
                for i_0, i_1 in T.grid(4, 4):
                    if i_0 * 4 + i_1 < 14:
                        B[i_0, i_1] = T.float32(0.0)
                        for f in range(3):
                            B[i_0, i_1] = B[i_0, i_1] + A[i_0 + (f + i_1) // 4, (f + i_1) % 4]
                for i_0, i_1 in T.grid(4, 4):
                    with T.block("buffer_B_padding"):
                        v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                        T.where(i_0 == 3 and i_1 >= 2)
                        B[v_i_0, v_i_1] = T.float32(0.0)
    "#]],
    );
}

/// 0077, "Multiple Buffer Semantics".
#[test]
fn each_padding_has_its_own_rule() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((14, 60), "int32"), B: T.Buffer((14,), "int32")):
    for i, j in T.grid(14, 60):
        with T.block("compute"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vj]
"#;
    let steps = |sch: &mut Schedule| {
        layout(sch, "A", "i, j: i // 4, i % 4, j", undef(DType::I32));
        layout(sch, "A", "io, ii, j: io, ii, j // 8, j % 8", Value::Int(0));
        layout(sch, "B", MAP, undef(DType::I32));
        follow(sch, "A");
    };
    // Padding of `A` by rows is arbitrary, by columns it is zero; zero satisfies both.
    let map = "i, j: i // 4, i % 4, j // 8, j % 8";
    check(
        text,
        steps,
        &[moved(0, map, Pad::Is(0.0)), moved(1, MAP, Pad::Undef)],
        expect![[r#"
        def main(A: T.Buffer((4, 4, 8, 8), "int32"), B: T.Buffer((4, 4), "int32")):
            for io, ii, j_0, j_1 in T.grid(4, 4, 8, 8):
                with T.block("buffer_A_assumption_1"):
                    v_io, v_ii, v_j_0, v_j_1 = T.axis.remap("SSSS", [io, ii, j_0, j_1])
                    T.assume(not (v_j_0 == 7 and v_j_1 >= 4) or A[v_io, v_ii, v_j_0, v_j_1] == 0)
            for i_0, i_1, j in T.grid(4, 4, 60):
                with T.block("buffer_A_assumption"):
                    v_i_0, v_i_1, v_j = T.axis.remap("SSS", [i_0, i_1, j])
                    T.assume(not (v_i_0 == 3 and v_i_1 >= 2) or A[v_i_0, v_i_1, v_j // 8, v_j % 8] == T.undef(dtype="int32"))
            for i_0, i_1, j_0, j_1 in T.grid(4, 4, 8, 8):
                with T.block("compute"):
                    vi = T.axis.spatial(14, i_0 * 4 + i_1)
                    vj = T.axis.reduce(60, j_0 * 8 + j_1)
                    T.where(i_0 * 4 + i_1 < 14 and j_0 * 8 + j_1 < 60)
                    with T.init():
                        B[vi // 4, vi % 4] = 0
                    B[vi // 4, vi % 4] = B[vi // 4, vi % 4] + A[vi // 4, vi % 4, vj // 8, vj % 8]
            for i_0, i_1 in T.grid(4, 4):
                with T.block("buffer_B_padding"):
                    v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                    T.where(i_0 == 3 and i_1 >= 2)
                    B[v_i_0, v_i_1] = T.undef(dtype="int32")
    "#]],
    );
}

/// 0039, the worked examples: row-major, transposed, `NCHWc` in one and in two physical axes.
#[test]
fn physical_layouts() {
    let text = r#"
@T.prim_func
def main(x: T.Buffer((2, 3, 2, 8), "int32"), y: T.Buffer((2, 3, 2, 8), "int32")):
    for n, h, w, c in T.grid(2, 3, 2, 8):
        with T.block("compute"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            y[vn, vh, vw, vc] = x[vn, vh, vw, vc] + 1
"#;
    let transposed = "n, h, w, c: c, w, h, n";
    let packed = "n, h, w, c: n, c // 4, h, w, c % 4";
    let steps = |sch: &mut Schedule| {
        layout(sch, "x", transposed, Value::None);
        layout(sch, "y", packed, Value::None);
    };
    let layouts = [moved(0, transposed, Pad::Nothing), moved(1, packed, Pad::Nothing)];
    check(
        text,
        steps,
        &layouts,
        expect![[r#"
        def main(x: T.Buffer((8, 2, 3, 2), "int32"), y: T.Buffer((2, 2, 3, 2, 4), "int32")):
            for n, h, w, c in T.grid(2, 3, 2, 8):
                with T.block("compute"):
                    vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
                    y[vn, vc // 4, vh, vw, vc % 4] = x[vc, vw, vh, vn] + 1
    "#]],
    );
    let texture = "n, h, w, c: n, c // 4, h, AXIS, w, c % 4";
    let steps = |sch: &mut Schedule| {
        layout(sch, "x", "n, h, w, c: n, h, AXIS, w, c", Value::None);
        layout(sch, "y", texture, Value::None);
    };
    check(
        text,
        steps,
        &[moved(1, packed, Pad::Nothing)],
        expect![[r#"
        def main(x: T.Buffer((2, 3, 2, 8), "int32", axis_separators=[2]), y: T.Buffer((2, 2, 3, 2, 4), "int32", axis_separators=[3])):
            for n, h, w, c in T.grid(2, 3, 2, 8):
                with T.block("compute"):
                    vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
                    y[vn, vc // 4, vh, vw, vc % 4] = x[vn, vh, vw, vc] + 1
    "#]],
    );
}
