//! Padded copies taken apart: what they look like, what is refused, and that results stay.

use crate::common::{module, same_results, schedule, text};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use tilewright_ir::{Dim, Expr, Var};
use tilewright_schedule::decompose_padding::box_of;

const PAD: &str = r#"
@T.prim_func
def main(x: T.Buffer((4, 6), "int32"), y: T.Buffer((4, 9), "int32")):
    for i, j in T.grid(4, 9):
        with T.block("pad"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.if_then_else(2 <= vj and vj < 8, x[vi, vj - 2], 7)
"#;

#[track_caller]
fn refused(source: &str, at: usize, expected: Expect) {
    let mut s = schedule(source);
    let result = s.get_block("pad", "main").and_then(|b| {
        let l = s.get_loops(&b)?[at].clone();
        s.decompose_padding(&b, &l)
    });
    expected.assert_eq(&result.map_or_else(|e| e.to_string(), |_| "accepted".into()));
}

#[test]
fn a_fill_and_a_copy() {
    for (at, expected) in [
        (
            0,
            expect![[r#"
        for i, j in T.grid(4, 9):
            with T.block("pad_pad_const"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = 7
        for i, j in T.grid(4, 6):
            with T.block("pad"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj + 2] = x[vi, vj]
    "#]],
        ),
        (
            1,
            expect![[r#"
        for i in range(4):
            for j in range(9):
                with T.block("pad_pad_const"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = 7
            for j in range(6):
                with T.block("pad"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj + 2] = x[vi, vj]
    "#]],
        ),
    ] {
        let mut s = schedule(PAD);
        let b = s.get_block("pad", "main").expect("pad");
        let l = s.get_loops(&b).expect("loops")[at].clone();
        let fill = s.decompose_padding(&b, &l).expect("legal");
        assert_eq!(&*fill.name, "pad_pad_const");
        expected.assert_eq(&text(&s));
        same_results(module(PAD).tensor("main").expect("main"), s.func("main").expect("main"));
    }
}

#[test]
fn refusals_name_the_reason() {
    refused(
        &PAD.replace("vj < 8", "vj < vi + 5"),
        0,
        expect![
            "`decompose_padding`: the condition `vj < vi + 5` is no constant bound of one iteration variable"
        ],
    );
    refused(
        &PAD.replace("vj < 8", "vj < 2"),
        0,
        expect!["`decompose_padding`: the condition `2 <= vj and vj < 2` never holds"],
    );
    refused(
        &PAD.replace("vj - 2], 7", "vj - 2], x[0, 0]"),
        0,
        expect!["`decompose_padding`: the pad value `x[0, 0]` is not a constant"],
    );
    refused(
        &PAD.replace("x[vi, vj - 2]", "y[vi, vj - 2]"),
        0,
        expect!["`decompose_padding`: the block `pad` reads `y`, which it writes"],
    );
    refused(
        &PAD.replace("T.if_then_else(2 <= vj and vj < 8, x[vi, vj - 2], 7)", "7"),
        0,
        expect!["`decompose_padding`: the block `pad` does not store an `if_then_else`"],
    );
    refused(
        &PAD.replace("y[vi, vj] =", "y[0, vj] ="),
        0,
        expect![
            "`decompose_padding`: the block `pad` may write a cell for several values of `vi`, which is not an index of `y`"
        ],
    );
    refused(
        &PAD.replace("remap(\"SS\"", "remap(\"RS\""),
        0,
        expect!["`decompose_padding`: the block `pad` has `vi`, which is not spatial"],
    );
}

#[test]
fn what_else_the_loops_do_stays() {
    let more = PAD.replace(
        "    for i, j in T.grid(4, 9):\n",
        "    for i in range(4):\n      for j in range(9):\n",
    );
    let more = more.replace(
        "        with T.block",
        "        T.evaluate(T.call_extern(\"int32\", \"f\"))\n        with T.block",
    );
    let mut s = schedule(&more);
    let b = s.get_block("pad", "main").expect("pad");
    let l = s.get_loops(&b).expect("loops")[0].clone();
    s.decompose_padding(&b, &l).expect("legal");
    expect![[r#"
        for i, j in T.grid(4, 9):
            with T.block("pad_pad_const"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = 7
        for i, j in T.grid(4, 9):
            T.evaluate(T.call_extern("int32", "f"))
            with T.block("pad"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(6, j - 2)
                T.where(2 <= j and j < 8)
                y[vi, vj + 2] = x[vi, vj]
    "#]]
    .assert_eq(&text(&s));
}

/// Blocks of four cells: the last one has what pads, for certain cells once the loop is taken apart.
#[test]
fn what_a_partition_decides_is_no_part_of_the_condition() {
    let source = r#"
@T.prim_func
def main(x: T.Buffer((10,), "int32"), y: T.Buffer((3, 4), "int32")):
    for i, j in T.grid(3, 4):
        with T.block("pad"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.if_then_else(vi * 4 + vj < 10, x[vi * 4 + vj], 7)
"#;
    let mut s = schedule(source);
    let b = s.get_block("pad", "main").expect("pad");
    let loops = s.get_loops(&b).expect("loops");
    let whole = s.decompose_padding(&b, &loops[0]).expect_err("no box").to_string();
    assert!(whole.contains("vi * 4 + vj < 10"), "{whole}");
    s.loop_partition(&loops[0], Some(&[2, 1].map(|n| Some(Expr::i32(n))))).expect("two parts");
    let last = s.get_block("pad_1", "main").expect("the last block");
    let loops = s.get_loops(&last).expect("loops");
    s.decompose_padding(&last, &loops[0]).expect("a box");
    expect![[r#"
        for i, j in T.grid(2, 4):
            with T.block("pad"):
                vi = T.axis.spatial(3, i)
                vj = T.axis.spatial(4, j)
                y[vi, vj] = T.if_then_else(vi * 4 + vj < 10, x[vi * 4 + vj], 7)
        for i, j in T.grid(1, 4):
            with T.block("pad_1_pad_const"):
                vi = T.axis.spatial(3, 2)
                vj = T.axis.spatial(4, j)
                y[vi, vj] = 7
        for i, j in T.grid(1, 2):
            with T.block("pad_1"):
                vi = T.axis.spatial(3, 2)
                vj = T.axis.spatial(2, j)
                y[vi, vj] = x[vj + 8]
    "#]]
    .assert_eq(&text(&s));
    same_results(module(source).tensor("main").expect("main"), s.func("main").expect("main"));
}

#[test]
fn what_is_inside_may_end_at_an_open_size() {
    let source = r#"
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    x = T.match_buffer(a, (n,), "int32")
    y = T.match_buffer(b, (n + 3,), "int32")
    for i in range(n + 3):
        with T.block("pad"):
            vi = T.axis.spatial(n + 3, i)
            y[vi] = T.if_then_else(1 <= vi and vi < n + 1, x[vi - 1], 7)
"#;
    let mut s = schedule(source);
    let b = s.get_block("pad", "main").expect("pad");
    let l = s.get_loops(&b).expect("loops")[0].clone();
    s.decompose_padding(&b, &l).expect("a box");
    expect![[r#"
        n = T.int32()
        x = T.match_buffer(a, (n,), "int32")
        y = T.match_buffer(b, (n + 3,), "int32")
        for i in range(n + 3):
            with T.block("pad_pad_const"):
                vi = T.axis.spatial(n + 3, i)
                y[vi] = 7
        for i in range(n):
            with T.block("pad"):
                vi = T.axis.spatial(n, i)
                y[vi + 1] = x[vi]
    "#]]
    .assert_eq(&text(&s));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn results_stay(
        (n, m, low, high) in (1i64..=5, 1i64..=6, 0i64..=3, 0i64..=3),
        (at, tile, split) in (0usize..2, 1i64..=4, any::<bool>()),
    ) {
        let wide = m + low + high;
        let condition = format!("vj >= {low} and {m} + {low} > vj");
        let tiles = (wide + tile - 1) / tile;
        let (loops, bind, guard) = match split {
            false => (format!("for j in range({wide})"), "j".to_owned(), String::new()),
            true => (
                format!("for j, k in T.grid({tiles}, {tile})"),
                format!("j * {tile} + k"),
                format!("T.where(j * {tile} + k < {wide})"),
            ),
        };
        let source = format!(
            "@T.prim_func
def main(x: T.Buffer(({n}, {m}), \"float32\"), y: T.Buffer(({n}, {wide}), \"float32\")):
    for i in range({n}):
        {loops}:
            with T.block(\"pad\"):
                vi = T.axis.spatial({n}, i)
                vj = T.axis.spatial({wide}, {bind})
                {guard}
                y[vi, vj] = T.if_then_else({condition}, x[vi, vj - {low}], T.float32(5))
"
        );
        let mut s = schedule(&source);
        let b = s.get_block("pad", "main").expect("pad");
        let l = s.get_loops(&b).expect("loops")[at].clone();
        s.decompose_padding(&b, &l).expect("legal");
        let after = s.func("main").expect("main").clone();
        same_results(module(&source).tensor("main").expect("main"), &after);
    }
}

#[test]
fn conditions_as_boxes() {
    let (i, j) = (Var::index("i"), Var::index("j"));
    let text = |e: Expr| match box_of(&e, &[&i, &j], |k| Ok(Dim::from([20usize, 10][k]))) {
        Ok(list) => list
            .iter()
            .map(|b| b.as_ref().map_or("-".into(), |b| format!("{}..{}", b.from, b.end)))
            .collect::<Vec<_>>()
            .join(" "),
        Err(e) => e.to_string(),
    };
    let at_least = i.expr().greater_equal(6);
    assert_eq!(text(at_least.clone().and(i.expr().less(14))), "6..14 -");
    assert_eq!(text((&i * 2 + 1).greater(6).and(Expr::i32(3).greater(&j))), "3..20 0..3");
    assert_eq!(text((Expr::i32(7) - &j * 2).greater_equal(0)), "- 0..4");
    assert_eq!(text(i.expr().less(20)), "- -");
    assert_eq!(
        text(at_least.and(i.expr().less(5))),
        "the condition `i >= 6 and i < 5` never holds"
    );
    assert_eq!(
        text(i.expr().less(&j)),
        "the condition `i < j` is no constant bound of one iteration variable"
    );
}
