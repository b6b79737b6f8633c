//! `sequential_buffer_access`, `transform_loops`, `fission`.

use expect_test::{Expect, expect};
use tilewright_schedule::LoopRef;
use tilewright_schedule::value::Value;

use super::common::{Pad, block, lambda, moved, schedule, shown, verify};

const MAP: &str = "i: i // 4, i % 4";

const FILL: &str = r#"
@T.prim_func
def main(A: T.Buffer((16,), "int32")):
    with T.block("compute"):
        for i in range(16):
            A[i] = i
"#;

const CONV: &str = r#"
@T.prim_func
def main(A: T.Buffer((16,), "int32"), F: T.Buffer((3,), "int32"), B: T.Buffer((14,), "int32")):
    with T.block("compute"):
        for i in range(14):
            B[i] = 0
            for f in range(3):
                B[i] = B[i] + F[f] * A[i + f]
"#;

#[test]
fn exact_and_ragged_division() {
    for extent in ["16", "14"] {
        let text = &FILL.replace("16", extent);
        let mut sch = schedule(text);
        let b = block(&mut sch, "compute");
        sch.transform_layout(&b, "A", &lambda(MAP), &Value::None, false).unwrap();
        sch.sequential_buffer_access(&b, "A").unwrap();
        let expected = match extent {
            "16" => expect![[r#"
                from tvm.script import ir as I
                from tvm.script import tir as T


                @I.ir_module
                class Module:
                    @T.prim_func
                    def main(A: T.Buffer((4, 4), "int32")):
                        with T.block("compute"):
                            for i_0, i_1 in T.grid(4, 4):
                                A[i_0, i_1] = i_0 * 4 + i_1
            "#]],
            _ => expect![[r#"
                from tvm.script import ir as I
                from tvm.script import tir as T


                @I.ir_module
                class Module:
                    @T.prim_func
                    def main(A: T.Buffer((4, 4), "int32")):
                        with T.block("compute"):
                            for i_0, i_1 in T.grid(4, 4):
                                if i_0 * 4 + i_1 < 14:
                                    A[i_0, i_1] = i_0 * 4 + i_1
            "#]],
        };
        expected.assert_eq(&shown(&sch));
        verify(text, &sch, &[moved(0, MAP, Pad::Nothing)]);
    }
}

#[test]
fn by_output() {
    let mut sch = schedule(CONV);
    let b = block(&mut sch, "compute");
    sch.transform_layout(&b, "A", &lambda(MAP), &Value::None, false).unwrap();
    sch.transform_layout(&b, "B", &lambda(MAP), &Value::None, false).unwrap();
    sch.sequential_buffer_access(&b, "B").unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((4, 4), "int32"), F: T.Buffer((3,), "int32"), B: T.Buffer((4, 4), "int32")):
                with T.block("compute"):
                    for i_0, i_1 in T.grid(4, 4):
                        if i_0 * 4 + i_1 < 14:
                            B[i_0, i_1] = 0
                            for f in range(3):
                                B[i_0, i_1] = B[i_0, i_1] + F[f] * A[i_0 + (f + i_1) // 4, (f + i_1) % 4]
    "#]].assert_eq(&shown(&sch));
    expect![[r#"
        def apply_trace(sch):
            b0 = sch.get_block(name="compute", func_name="main")
            sch.transform_layout(block=b0, buffer="A", index_map=lambda i: i // 4, i % 4)
            sch.transform_layout(block=b0, buffer="B", index_map=lambda i: i // 4, i % 4)
            l1, l2 = sch.get_inner_loops(block=b0)
            l3, l4 = sch.transform_loops(loops=[l1], index_map=lambda i: [i // 4, i % 4])
    "#]]
    .assert_eq(&sch.trace().to_string());
    verify(CONV, &sch, &[moved(0, MAP, Pad::Nothing), moved(2, MAP, Pad::Nothing)]);
}

#[test]
fn by_input_with_the_initialisation_split_off() {
    let mut sch = schedule(CONV);
    let b = block(&mut sch, "compute");
    sch.transform_layout(&b, "A", &lambda(MAP), &Value::None, false).unwrap();
    sch.transform_layout(&b, "B", &lambda(MAP), &Value::None, false).unwrap();
    sch.sequential_buffer_access(&b, "A").unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((4, 4), "int32"), F: T.Buffer((3,), "int32"), B: T.Buffer((4, 4), "int32")):
                with T.block("compute"):
                    for i in range(14):
                        B[i // 4, i % 4] = 0
                    for i_f_0, i_f_1, f in T.grid(4, 4, 3):
                        if i_f_0 * 4 + i_f_1 - f >= 0 and i_f_0 * 4 + i_f_1 - f < 14:
                            B[i_f_0 + (i_f_1 - f) // 4, (i_f_1 - f) % 4] = B[i_f_0 + (i_f_1 - f) // 4, (i_f_1 - f) % 4] + F[f] * A[i_f_0, i_f_1]
    "#]].assert_eq(&shown(&sch));
    expect![[r#"
        def apply_trace(sch):
            b0 = sch.get_block(name="compute", func_name="main")
            sch.transform_layout(block=b0, buffer="A", index_map=lambda i: i // 4, i % 4)
            sch.transform_layout(block=b0, buffer="B", index_map=lambda i: i // 4, i % 4)
            l1, l2 = sch.get_inner_loops(block=b0)
            l3, l4 = sch.fission(loop=l1, at=1)
            l5, l6, l7 = sch.transform_loops(loops=[l4, l2], index_map=lambda i, f: [(i + f) // 4, (i + f) % 4, f])
    "#]].assert_eq(&sch.trace().to_string());
    verify(CONV, &sch, &[moved(0, MAP, Pad::Nothing), moved(2, MAP, Pad::Nothing)]);
}

#[test]
fn a_cumulative_sum_keeps_its_order() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((16,), "int32"), F: T.Buffer((3,), "int32"), B: T.Buffer((14,), "int32")):
    with T.block("compute"):
        for i in range(14):
            if i == 0:
                B[i] = 0
            else:
                B[i] = B[i - 1]
            for f in range(3):
                B[i] = B[i] + F[f] * A[i + f]
"#;
    let mut sch = schedule(text);
    let b = block(&mut sch, "compute");
    sch.transform_layout(&b, "A", &lambda(MAP), &Value::None, false).unwrap();
    sch.transform_layout(&b, "B", &lambda(MAP), &Value::None, false).unwrap();
    let before = (shown(&sch), sch.trace().to_string());
    let e = sch.sequential_buffer_access(&b, "A").unwrap_err();
    expect![[r#"
        error: `sequential_buffer_access`: `fission`: the read `B[(i - 1) // 4, (i - 1) % 4]` and the write `B[i // 4, i % 4]` may touch one cell in iterations whose order would change
          --> case.py:5:9
           5 |         for i in range(14):
             |         ^^^^^^^^^^^^^^^^^^
        note: at i=1 and at i=0
    "#]].assert_eq(&e.render());
    assert_eq!((shown(&sch), sch.trace().to_string()), before);
    // In the order of the output, each sum comes after the one that it begins with.
    sch.sequential_buffer_access(&b, "B").unwrap();
    verify(text, &sch, &[moved(0, MAP, Pad::Nothing), moved(2, MAP, Pad::Nothing)]);
}

#[test]
fn blocks_with_iteration_variables() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((5, 14), "int32"), B: T.Buffer((5, 14), "int32")):
    for b, i in T.grid(5, 14):
        with T.block("compute"):
            vb, vi = T.axis.remap("SS", [b, i])
            B[vb, vi] = A[vb, vi]
"#;
    let map = "b, i: b, i // 4, i % 4";
    let mut sch = schedule(text);
    let b = block(&mut sch, "compute");
    sch.transform_layout(&b, "B", &lambda(map), &Value::None, false).unwrap();
    sch.sequential_buffer_access(&b, "B").unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((5, 14), "int32"), B: T.Buffer((5, 4, 4), "int32")):
                for b, i_0, i_1 in T.grid(5, 4, 4):
                    with T.block("compute"):
                        vb = T.axis.spatial(5, b)
                        vi = T.axis.spatial(14, i_0 * 4 + i_1)
                        T.where(i_0 * 4 + i_1 < 14)
                        B[vb, vi // 4, vi % 4] = A[vb, vi]
    "#]]
    .assert_eq(&shown(&sch));
    verify(text, &sch, &[moved(1, map, Pad::Nothing)]);
}

fn loops(sch: &tilewright_schedule::Schedule, names: &[&str]) -> Vec<LoopRef> {
    let func = sch.func("main").unwrap();
    let all = tilewright_transform::cursor::find(&func.body, |s| {
        tilewright_transform::cursor::as_loop(s).is_some()
    });
    let named = |name: &&str| {
        let found = all.iter().find_map(|s| {
            let (v, ..) = tilewright_transform::cursor::as_loop(&s.stmt)?;
            (&**v.name() == *name).then(|| v.clone())
        });
        LoopRef { func: "main".into(), var: found.unwrap() }
    };
    names.iter().map(named).collect()
}

#[test]
fn loops_take_another_order_only_where_nothing_depends_on_it() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((6, 8), "int32"), B: T.Buffer((6, 8), "int32")):
    for i in range(6):
        for j in range(7):
            B[i, j + 1] = B[i, j] + A[i, j]
    for k in range(6):
        A[k, 0] = 0
"#;
    let refuse = |names: &[&str], map: &str, expected: Expect| {
        let mut sch = schedule(text);
        let l = loops(&sch, names);
        let e = sch.transform_loops(&l, &lambda(map)).unwrap_err();
        expected.assert_eq(&e.render());
    };
    refuse(
        &["i", "j"],
        "i, j: i, 6 - j",
        expect![[r#"
        error: `transform_loops`: the write `B[i, j + 1]` and the read `B[i, j]` may touch one cell in iterations whose order would change
          --> case.py:4:5
           4 |     for i in range(6):
             |     ^^^^^^^^^^^^^^^^^
        note: at i=0, j=0 and at i=0, j=1
    "#]],
    );
    refuse(
        &["i", "k"],
        "i, k: k, i",
        expect![[r#"
        error: `transform_loops`: the loop `k` is not directly inside the loop `i`
          --> case.py:5:9
           5 |         for j in range(7):
             |         ^^^^^^^^^^^^^^^^^
    "#]],
    );
    refuse(
        &["j"],
        "j: j // 2",
        expect![[r#"
            error: `transform_loops`: the index map is not injective
              --> case.py:5:9
               5 |         for j in range(7):
                 |         ^^^^^^^^^^^^^^^^^
            note: (j=0, i=0) and (j=1, i=0) have one image
        "#]],
    );
    let mut sch = schedule(text);
    let l = loops(&sch, &["i", "j"]);
    sch.transform_loops(&l, &lambda("i, j: j, i")).unwrap();
    expect![[r#"
        from tvm.script import ir as I
        from tvm.script import tir as T


        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((6, 8), "int32"), B: T.Buffer((6, 8), "int32")):
                for j, i in T.grid(7, 6):
                    B[i, j + 1] = B[i, j] + A[i, j]
                for k in range(6):
                    A[k, 0] = 0
    "#]]
    .assert_eq(&shown(&sch));
    let l = loops(&sch, &["k"]);
    let e = sch.fission(&l[0], 1).unwrap_err();
    expect![[r#"
        error: `fission`: the body of the loop `k` is one statement
          --> case.py:7:5
           7 |     for k in range(6):
             |     ^^^^^^^^^^^^^^^^^
    "#]]
    .assert_eq(&e.render());
}

/// What sugar leaves in the trace does the same in another schedule.
#[test]
fn the_trace_replays() {
    let mut sch = schedule(CONV);
    let b = block(&mut sch, "compute");
    sch.transform_layout(&b, "B", &lambda(MAP), &Value::Int(0), false).unwrap();
    sch.sequential_buffer_access(&b, "A").unwrap();
    let mut again = schedule(CONV);
    again.replay(sch.trace()).unwrap();
    assert_eq!(shown(&again), shown(&sch));
}
