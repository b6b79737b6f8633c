//! `transform_layout`, `set_axis_separator`, `transform_block_layout`.

use expect_test::{Expect, expect};
use tilewright_ir::Expr;
use tilewright_schedule::value::Value;
use tilewright_schedule::{Permissions, Schedule};

use super::common::{
    Pad, block, free_sizes, lambda, lambda_with, moved, parse, schedule, shown, verify, wrap,
};

const COPY: &str = r#"
@T.prim_func
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    for i in range(14):
        with T.block("compute"):
            vi = T.axis.spatial(14, i)
            B[vi] = 2 * A[vi]
"#;

const MAP: &str = "i: i // 4, i % 4";

fn refused(text: &str, buffer: &str, map: &str, pad: &Value, expected: Expect) {
    let mut sch = schedule(text);
    let b = block(&mut sch, "compute");
    let before = shown(&sch);
    let e = sch.transform_layout(&b, buffer, &lambda(map), pad, false).unwrap_err();
    expected.assert_eq(&e.render());
    assert_eq!(shown(&sch), before);
}

#[test]
fn no_padding_changes_indices_only() {
    let text = &COPY.replace("14", "16");
    let mut sch = schedule(text);
    let b = block(&mut sch, "compute");
    sch.transform_layout(&b, "A", &lambda(MAP), &Value::Int(5), false).unwrap();
    sch.transform_layout(&b, "B", &lambda("i: i % 4, i // 4"), &Value::None, false).unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
                for i in range(16):
                    with T.block("compute"):
                        vi = T.axis.spatial(16, i)
                        B[vi % 4, vi // 4] = 2 * A[vi // 4, vi % 4]
    "#]]
    .assert_eq(&shown(&sch));
    verify(text, &sch, &[moved(0, MAP, Pad::Nothing), moved(1, "i: i % 4, i // 4", Pad::Nothing)]);
}

#[test]
fn padding_that_is_not_accessed() {
    let mut sch = schedule(COPY);
    let b = block(&mut sch, "compute");
    sch.transform_layout(&b, "A", &lambda(MAP), &Value::None, false).unwrap();
    let none = Value::Lambda(lambda("a, b: None"));
    sch.transform_layout(&b, "B", &lambda("i: (i + 2) // 8, (i + 2) % 8"), &none, false).unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((2, 8), "int32")):
                for i in range(14):
                    with T.block("compute"):
                        vi = T.axis.spatial(14, i)
                        B[(vi + 2) // 8, (vi + 2) % 8] = 2 * A[vi // 4, vi % 4]
    "#]]
    .assert_eq(&shown(&sch));
    let offset = moved(1, "i: (i + 2) // 8, (i + 2) % 8", Pad::Nothing);
    verify(COPY, &sch, &[moved(0, MAP, Pad::Nothing), offset]);
}

#[test]
fn an_output_is_padded_in_its_loop_and_an_input_is_assumed() {
    let mut sch = schedule(COPY);
    let b = block(&mut sch, "compute");
    sch.transform_layout(&b, "A", &lambda(MAP), &Value::Int(-1), false).unwrap();
    sch.transform_layout(&b, "B", &lambda(MAP), &Value::Lambda(lambda("a, b: -2")), false).unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
                for i_0, i_1 in T.grid(4, 4):
                    with T.block("buffer_A_assumption"):
                        v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                        T.assume(not (v_i_0 == 3 and v_i_1 >= 2) or A[v_i_0, v_i_1] == -1)
                for i_0, i_1 in T.grid(4, 4):
                    with T.block("compute"):
                        v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                        B[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 3 and v_i_1 >= 2, -2, 2 * A[v_i_0, v_i_1])
    "#]].assert_eq(&shown(&sch));
    expect![[r#"
        def apply_trace(sch):
            b0 = sch.get_block(name="compute", func_name="main")
            sch.transform_layout(block=b0, buffer="A", index_map=lambda i: i // 4, i % 4, pad_value=-1)
            sch.transform_layout(block=b0, buffer="B", index_map=lambda i: i // 4, i % 4, pad_value=lambda a, b: -2)
    "#]].assert_eq(&sch.trace().to_string());
    verify(COPY, &sch, &[moved(0, MAP, Pad::Is(-1.0)), moved(1, MAP, Pad::Is(-2.0))]);
}

#[test]
fn undefined_padding() {
    let mut sch = schedule(COPY);
    let b = block(&mut sch, "compute");
    let undef = Value::Expr(Expr::undef(tilewright_ir::DType::I32));
    sch.transform_layout(&b, "A", &lambda(MAP), &undef, false).unwrap();
    sch.transform_layout(&b, "B", &lambda(MAP), &undef, false).unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
                for i_0, i_1 in T.grid(4, 4):
                    with T.block("buffer_A_assumption"):
                        v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                        T.assume(not (v_i_0 == 3 and v_i_1 >= 2) or A[v_i_0, v_i_1] == T.undef(dtype="int32"))
                for i in range(14):
                    with T.block("compute"):
                        vi = T.axis.spatial(14, i)
                        B[vi // 4, vi % 4] = 2 * A[vi // 4, vi % 4]
                for i_0, i_1 in T.grid(4, 4):
                    with T.block("buffer_B_padding"):
                        v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                        T.where(i_0 == 3 and i_1 >= 2)
                        B[v_i_0, v_i_1] = T.undef(dtype="int32")
    "#]].assert_eq(&shown(&sch));
    verify(COPY, &sch, &[moved(0, MAP, Pad::Undef), moved(1, MAP, Pad::Undef)]);
}

#[test]
fn padding_that_wraps_around_reads_the_buffer() {
    let module = parse(COPY);
    let buffer = module.tensor("main").unwrap().buffers().nth(1).unwrap().clone();
    let mut sch = Schedule::new(module, Permissions { change_interface: true });
    let b = block(&mut sch, "compute");
    let pad = wrap(buffer.clone(), "io, ii: 0, (io * 4 + ii - 14) % 4");
    sch.transform_layout(&b, "B", &lambda(MAP), &pad, false).unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((14,), "int32"), B: T.Buffer((4, 4), "int32")):
                for i in range(14):
                    with T.block("compute"):
                        vi = T.axis.spatial(14, i)
                        B[vi // 4, vi % 4] = 2 * A[vi]
                for i_0, i_1 in T.grid(4, 4):
                    with T.block("buffer_B_padding"):
                        v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                        T.where(i_0 == 3 and i_1 >= 2)
                        B[v_i_0, v_i_1] = B[0, (v_i_0 * 4 + v_i_1 - 14) % 4]
    "#]]
    .assert_eq(&shown(&sch));

    let module = parse(COPY);
    let buffer = module.tensor("main").unwrap().buffers().nth(1).unwrap().clone();
    let mut sch = Schedule::new(module, Permissions { change_interface: true });
    let b = block(&mut sch, "compute");
    let pad = wrap(buffer, "io, ii: 3, ii - 1");
    let e = sch.transform_layout(&b, "B", &lambda(MAP), &pad, false).unwrap_err();
    expect![[r#"
        error: `transform_layout`: the pad value reads `B[3, i_1 - 1]`, which is not data
          --> case.py:5:9
           5 |         with T.block("compute"):
             |         ^^^^^^^^^^^^^^^^^^^^^^^
        note: at i_0=3, i_1=3
    "#]]
    .assert_eq(&e.render());
}

#[test]
fn a_reduction_gets_a_stage_after_it() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((14, 3), "float32"), C: T.Buffer((14,), "float32")):
    B = T.alloc_buffer((14,), "float32")
    for i, k in T.grid(14, 3):
        with T.block("compute"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi]
"#;
    let mut sch = schedule(text);
    let b = block(&mut sch, "compute");
    sch.transform_layout(&b, ("write", 0), &lambda(MAP), &Value::Float(0.5), false).unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((14, 3), "float32"), C: T.Buffer((14,), "float32")):
                B = T.alloc_buffer((4, 4), "float32")
                for i_0, i_1, k in T.grid(4, 4, 3):
                    with T.block("compute"):
                        v_i_0, v_i_1, vk = T.axis.remap("SSR", [i_0, i_1, k])
                        with T.init():
                            B[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 3 and v_i_1 >= 2, T.float32(0.5), T.float32(0.0))
                        B[v_i_0, v_i_1] = T.if_then_else(v_i_0 == 3 and v_i_1 >= 2, T.float32(0.5), B[v_i_0, v_i_1] + A[v_i_0 * 4 + v_i_1, vk])
                for i in range(14):
                    with T.block("C"):
                        vi = T.axis.spatial(14, i)
                        C[vi] = B[vi // 4, vi % 4]
    "#]]
    .assert_eq(&shown(&sch));
    verify(text, &sch, &[]);
}

#[test]
fn each_transformation_keeps_its_own_assumption() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((14, 6), "int32"), B: T.Buffer((14, 6), "int32")):
    for i, j in T.grid(14, 6):
        with T.block("compute"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
"#;
    let mut sch = schedule(text);
    let b = block(&mut sch, "compute");
    let undef = Value::Expr(Expr::undef(tilewright_ir::DType::I32));
    sch.transform_layout(&b, "A", &lambda("i, j: i // 4, i % 4, j"), &undef, false).unwrap();
    let second = lambda("a, b, j: a, b, j // 4, j % 4");
    sch.transform_layout(&b, "A", &second, &Value::Int(0), false).unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((4, 4, 2, 4), "int32"), B: T.Buffer((14, 6), "int32")):
                for a, b, j_0, j_1 in T.grid(4, 4, 2, 4):
                    with T.block("buffer_A_assumption_1"):
                        v_a, v_b, v_j_0, v_j_1 = T.axis.remap("SSSS", [a, b, j_0, j_1])
                        T.assume(not (v_j_0 == 1 and v_j_1 >= 2) or A[v_a, v_b, v_j_0, v_j_1] == 0)
                for i_0, i_1, j in T.grid(4, 4, 6):
                    with T.block("buffer_A_assumption"):
                        v_i_0, v_i_1, v_j = T.axis.remap("SSS", [i_0, i_1, j])
                        T.assume(not (v_i_0 == 3 and v_i_1 >= 2) or A[v_i_0, v_i_1, v_j // 4, v_j % 4] == T.undef(dtype="int32"))
                for i, j in T.grid(14, 6):
                    with T.block("compute"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[vi // 4, vi % 4, vj // 4, vj % 4]
    "#]].assert_eq(&shown(&sch));
}

#[test]
fn symbolic_sizes() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((16,), "int32"), n: T.int32):
    B = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("compute"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
"#;
    let mut sch = schedule(text);
    let b = block(&mut sch, "compute");
    let map = lambda_with("i: i // n, i % n", &free_sizes(sch.module()));
    sch.transform_layout(&b, "B", &map, &Value::Int(0), false).unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((16,), "int32"), n: T.int32):
                B = T.alloc_buffer(((n + 15) // n, n), "int32")
                for i_0, i_1 in T.grid((n + 15) // n, n):
                    with T.block("compute"):
                        v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                        B[v_i_0, v_i_1] = T.if_then_else(v_i_0 * n + v_i_1 >= 16, 0, A[v_i_0 * n + v_i_1])
    "#]].assert_eq(&shown(&sch));

    let text = r#"
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (n,), "int32")
    for i in range(n):
        with T.block("compute"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi]
"#;
    let mut sch = schedule(text);
    let b = block(&mut sch, "compute");
    sch.transform_layout(&b, "A", &lambda("i: i // 4, i % 4"), &Value::Int(0), false).unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(a: T.handle, b: T.handle):
                n = T.int32()
                A = T.match_buffer(a, ((n + 3) // 4, 4), "int32")
                B = T.match_buffer(b, (n,), "int32")
                for i_0, i_1 in T.grid((n + 3) // 4, 4):
                    with T.block("buffer_A_assumption"):
                        v_i_0, v_i_1 = T.axis.remap("SS", [i_0, i_1])
                        T.assume(not v_i_0 * 4 + v_i_1 >= n or A[v_i_0, v_i_1] == 0)
                for i in range(n):
                    with T.block("compute"):
                        vi = T.axis.spatial(n, i)
                        B[vi] = A[vi // 4, vi % 4]
    "#]]
    .assert_eq(&shown(&sch));
    let e = sch.transform_layout(&b, "B", &lambda(MAP), &Value::Int(0), false).unwrap_err();
    expect![[r#"
        error: `transform_layout`: the size `n` is known from the shape of `B` alone, and the new shape does not tell it
          --> case.py:8:9
           8 |         with T.block("compute"):
             |         ^^^^^^^^^^^^^^^^^^^^^^^
    "#]].assert_eq(&e.render());
}

#[test]
fn separators_come_with_the_map_or_later_and_views_follow() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((8, 12), "int32"), C: T.Buffer((8, 12), "int32")):
    B = T.alloc_buffer((8, 12), "int32")
    for i, j in T.grid(8, 12):
        with T.block("compute"):
            vi, vj = T.axis.remap("SS", [i, j])
            view = T.match_buffer(B[vi, vj], (), "int32", offset_factor=1)
            view[()] = A[vi, vj]
    for i, j in T.grid(8, 12):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]
"#;
    let mut sch = schedule(text);
    let b = block(&mut sch, "compute");
    let map = lambda("i, j: i // 4, j // 4, AXIS, i % 4, j % 4");
    sch.transform_layout(&b, "A", &map, &Value::None, false).unwrap();
    sch.set_axis_separator(&b, ("write", 0), &[1]).unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((2, 3, 4, 4), "int32", axis_separators=[2]), C: T.Buffer((8, 12), "int32")):
                B = T.alloc_buffer((8, 12), "int32", axis_separators=[1])
                for i, j in T.grid(8, 12):
                    with T.block("compute"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        view = T.match_buffer(B[vi, vj], (), "int32", offset_factor=1, axis_separators=[0])
                        view[()] = A[vi // 4, vj // 4, vi % 4, vj % 4]
                for i, j in T.grid(8, 12):
                    with T.block("C"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        C[vi, vj] = B[vi, vj]
    "#]].assert_eq(&shown(&sch));
    verify(text, &sch, &[moved(0, "i, j: i // 4, j // 4, i % 4, j % 4", Pad::Nothing)]);
    let e = sch.set_axis_separator(&b, ("write", 0), &[3]).unwrap_err();
    expect![[r#"
        error: `set_axis_separator`: axis separators [3] do not fit the 2 axes of `B`
          --> case.py:6:9
           6 |         with T.block("compute"):
             |         ^^^^^^^^^^^^^^^^^^^^^^^
    "#]]
    .assert_eq(&e.render());
    let e = sch.set_axis_separator(&b, ("write", 1), &[1]).unwrap_err();
    expect![[r#"
        error: `set_axis_separator`: the block `compute` writes no buffer of number 1
          --> case.py:6:9
           6 |         with T.block("compute"):
             |         ^^^^^^^^^^^^^^^^^^^^^^^
        note: it writes: B
    "#]]
    .assert_eq(&e.render());
}

#[test]
fn blocks_run_over_another_space() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((6, 4, 3), "int32"), B: T.Buffer((6, 4), "int32")):
    for i, j, k in T.grid(6, 4, 3):
        with T.block("compute"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vj, vk])
            T.writes(B[vi, vj])
            with T.init():
                B[vi, vj] = 0
            B[vi, vj] = B[vi, vj] + A[vi, vj, vk]
"#;
    let mut sch = schedule(text);
    let b = block(&mut sch, "compute");
    sch.transform_block_layout(&b, &lambda("i, j, k: i * 4 + j, k")).unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((6, 4, 3), "int32"), B: T.Buffer((6, 4), "int32")):
                for i_j, k in T.grid(24, 3):
                    with T.block("compute"):
                        v_i_j, v_k = T.axis.remap("SR", [i_j, k])
                        T.reads(A[v_i_j // 4, v_i_j % 4, v_k])
                        T.writes(B[v_i_j // 4, v_i_j % 4])
                        with T.init():
                            B[v_i_j // 4, v_i_j % 4] = 0
                        B[v_i_j // 4, v_i_j % 4] = B[v_i_j // 4, v_i_j % 4] + A[v_i_j // 4, v_i_j % 4, v_k]
    "#]].assert_eq(&shown(&sch));
    verify(text, &sch, &[]);
    let refuse = |map: &str, expected: Expect| {
        let mut sch = schedule(text);
        let b = block(&mut sch, "compute");
        let e = sch.transform_block_layout(&b, &lambda(map)).unwrap_err();
        expected.assert_eq(&e.render());
    };
    refuse(
        "i, j, k: i, j * 3 + k",
        expect![[r#"
        error: `transform_block_layout`: the index `j * 3 + k` mixes the spatial and the reduction variable `vj` and `vk`
          --> case.py:5:9
           5 |         with T.block("compute"):
             |         ^^^^^^^^^^^^^^^^^^^^^^^
    "#]],
    );
    refuse(
        "i, j, k: i, j // 3, j % 3, k",
        expect![[r#"
        error: `transform_block_layout`: the index map does not fill its box
          --> case.py:5:9
           5 |         with T.block("compute"):
             |         ^^^^^^^^^^^^^^^^^^^^^^^
        note: no iteration is where j_0 == 1 and j_1 >= 1
    "#]],
    );
    refuse(
        "i, j, k: i, j",
        expect![[r#"
            error: `transform_block_layout`: the index map is not injective
              --> case.py:5:9
               5 |         with T.block("compute"):
                 |         ^^^^^^^^^^^^^^^^^^^^^^^
            note: the logical indices [0, 0, 0] and [0, 0, 1] have one physical index
        "#]],
    );
}

#[test]
fn refusals_say_what_is_missing() {
    refused(
        COPY,
        "B",
        "i: i // 4",
        &Value::None,
        expect![[r#"
            error: `transform_layout`: the index map is not injective
              --> case.py:5:9
               5 |         with T.block("compute"):
                 |         ^^^^^^^^^^^^^^^^^^^^^^^
            note: the logical indices [0] and [1] have one physical index
        "#]],
    );
    refused(
        COPY,
        "B",
        "i: i - 2",
        &Value::None,
        expect![[r#"
            error: `transform_layout`: the index map is no layout: `i - 2` is negative at i=0
              --> case.py:5:9
               5 |         with T.block("compute"):
                 |         ^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
    refused(
        COPY,
        "B",
        "i, j: i, j",
        &Value::None,
        expect![[r#"
            error: `transform_layout`: the lambda takes 2 indices
              --> case.py:5:9
               5 |         with T.block("compute"):
                 |         ^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
    refused(
        COPY,
        "X",
        MAP,
        &Value::None,
        expect![[r#"
        error: `transform_layout`: there is no buffer `X`
          --> case.py:5:9
           5 |         with T.block("compute"):
             |         ^^^^^^^^^^^^^^^^^^^^^^^
        note: the function has the buffers: A, B
    "#]],
    );
    refused(
        COPY,
        "B",
        MAP,
        &Value::Float(0.5),
        expect![[r#"
            error: `transform_layout`: the pad value 0.5 does not fit int32
              --> case.py:5:9
               5 |         with T.block("compute"):
                 |         ^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
    refused(
        COPY,
        "B",
        MAP,
        &Value::Int(1 << 40),
        expect![[r#"
            error: `transform_layout`: the pad value 1099511627776 does not fit int32
              --> case.py:5:9
               5 |         with T.block("compute"):
                 |         ^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
    let other = parse(COPY).tensor("main").unwrap().buffers().next().unwrap().clone();
    refused(
        COPY,
        "B",
        MAP,
        &wrap(other, "a, b: 0"),
        expect![[r#"
            error: `transform_layout`: the pad value of `B` depends on another buffer, `A`
              --> case.py:5:9
               5 |         with T.block("compute"):
                 |         ^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
    let mut sch = Schedule::new(parse(COPY), Permissions::default());
    let b = block(&mut sch, "compute");
    let e = sch.transform_layout(&b, "B", &lambda(MAP), &Value::None, false).unwrap_err();
    expect![[r#"
        error: `transform_layout`: `B` is an argument of `main`, whose interface must stay
          --> case.py:5:9
           5 |         with T.block("compute"):
             |         ^^^^^^^^^^^^^^^^^^^^^^^
        help: transform a copy instead: `cache_read` or `cache_write` outside of any loop
    "#]]
    .assert_eq(&e.render());
    let pointer = &COPY.replace(
        "B[vi] = 2",
        "T.evaluate(T.call_extern(\"int32\", \"f\", B.data))\n            B[vi] = 2",
    );
    refused(
        pointer,
        "B",
        MAP,
        &Value::None,
        expect![[r#"
        error: `transform_layout`: the pointer of `B` is used, so that its accesses are not all known
          --> case.py:7:13
           7 |             T.evaluate(T.call_extern("int32", "f", B.data))
             |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#]],
    );
}
