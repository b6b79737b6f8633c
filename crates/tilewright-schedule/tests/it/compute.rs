//! Stages moved under loops: what it looks like, what is refused, and that results stay.

use crate::common::{module, same_results, schedule, text};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use tilewright_schedule::compute::Position;

fn blur(n: i64, window: i64, tile: i64) -> String {
    let (m, tiles) = (n + window, (n + tile - 1) / tile);
    format!(
        "@T.prim_func
def main(A: T.Buffer(({m}, 3), \"float32\"), C: T.Buffer(({n}, 3), \"float32\")):
    B = T.alloc_buffer(({m},))
    for i, k in T.grid({m}, 3):
        with T.block(\"B\"):
            vi, vk = T.axis.remap(\"SR\", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
    for i0 in range({tiles}):
        for i1, j in T.grid({tile}, 3):
            with T.block(\"C\"):
                vi = T.axis.spatial({n}, i0 * {tile} + i1)
                vj = T.axis.spatial(3, j)
                T.where(i0 * {tile} + i1 < {n})
                C[vi, vj] = B[vi] + B[vi + {window}]
"
    )
}

fn move_to(source: &str, block: &str, consumer: &str, at: usize) -> Result<String, String> {
    let mut s = schedule(source);
    let done = s.get_block(block, "main").and_then(|b| {
        let c = s.get_block(consumer, "main")?;
        let l = s.get_loops(&c)?[at].clone();
        s.compute_at(&b, &l, false, Position::Last)
    });
    done.map_err(|e| e.to_string())?;
    same_results(module(source).tensor("main").expect("main"), s.func("main").expect("main"));
    Ok(text(&s))
}

#[track_caller]
fn check(source: &str, at: usize, expected: Expect) {
    expected.assert_eq(&move_to(source, "B", "C", at).unwrap_or_else(|e| e));
}

#[test]
fn a_tile_computes_what_it_reads() {
    check(
        &blur(8, 1, 4),
        0,
        expect![[r#"
        B = T.alloc_buffer((9,), "float32")
        for i0 in range(2):
            for ax0, ax1 in T.grid(5, 3):
                with T.block("B"):
                    vi = T.axis.spatial(9, i0 * 4 + ax0)
                    vk = T.axis.reduce(3, ax1)
                    with T.init():
                        B[vi] = T.float32(0.0)
                    B[vi] = B[vi] + A[vi, vk]
            for i1, j in T.grid(4, 3):
                with T.block("C"):
                    vi = T.axis.spatial(8, i0 * 4 + i1)
                    vj = T.axis.spatial(3, j)
                    T.where(i0 * 4 + i1 < 8)
                    C[vi, vj] = B[vi] + B[vi + 1]
    "#]],
    );
    check(
        &blur(8, 1, 4),
        1,
        expect![[r#"
        B = T.alloc_buffer((9,), "float32")
        for i0, i1 in T.grid(2, 4):
            for ax0, ax1 in T.grid(2, 3):
                with T.block("B"):
                    vi = T.axis.spatial(9, i0 * 4 + i1 + ax0)
                    vk = T.axis.reduce(3, ax1)
                    with T.init():
                        B[vi] = T.float32(0.0)
                    B[vi] = B[vi] + A[vi, vk]
            for j in range(3):
                with T.block("C"):
                    vi = T.axis.spatial(8, i0 * 4 + i1)
                    vj = T.axis.spatial(3, j)
                    T.where(i0 * 4 + i1 < 8)
                    C[vi, vj] = B[vi] + B[vi + 1]
    "#]],
    );
    check(
        &blur(7, 1, 4),
        0,
        expect![[r#"
        B = T.alloc_buffer((8,), "float32")
        for i0 in range(2):
            for ax0, ax1 in T.grid(5, 3):
                with T.block("B"):
                    vi = T.axis.spatial(8, i0 * 4 + ax0)
                    vk = T.axis.reduce(3, ax1)
                    T.where(i0 * 4 + ax0 < 8)
                    with T.init():
                        B[vi] = T.float32(0.0)
                    B[vi] = B[vi] + A[vi, vk]
            for i1, j in T.grid(4, 3):
                with T.block("C"):
                    vi = T.axis.spatial(7, i0 * 4 + i1)
                    vj = T.axis.spatial(3, j)
                    T.where(i0 * 4 + i1 < 7)
                    C[vi, vj] = B[vi] + B[vi + 1]
    "#]],
    );
}

#[test]
fn refusals_name_the_reason() {
    let source = blur(8, 1, 4);
    let text = |e: Result<String, String>| e.err().unwrap_or_else(|| "accepted".into());
    expect!["`compute_at`: `C` is not allocated by the scope of the block, and others may see it"]
        .assert_eq(&text(move_to(&source, "C", "B", 0)));
    expect!["`compute_at`: the loop `i` is around the block `B` or in another scope"]
        .assert_eq(&text(move_to(&source, "B", "B", 0)));
    let twice = format!(
        "{source}    for i in range(8):\n        with T.block(\"D\"):\n            vi = T.axis.spatial(8, i)\n            A[vi, 0] = B[vi]\n"
    );
    expect!["`compute_at`: `B` is read outside of the loop `i0` or by another block"]
        .assert_eq(&text(move_to(&twice, "B", "C", 0)));
    expect![
        "`compute_at`: `A` is written where the value of the block `B` would be computed from it"
    ]
    .assert_eq(&text(move_to(&source.replace("C[vi, vj] = B", "A[vi, vj] = B"), "B", "C", 0)));
    expect!["`compute_at`: the iterations of the loop `i0` run at the same time, and might compute the same cells of `B`"].assert_eq(&text(move_to(&source.replace("for i0 in range(2)", "for i0 in T.parallel(2)"), "B", "C", 0)));
    expect!["`compute_at`: the buffer must be filled as a whole: `B[7]` is left out"].assert_eq(
        &text(move_to(
            &source.replace("[i, k])", "[i, k])\n            T.where(i < 7)"),
            "B",
            "C",
            0,
        )),
    );
    expect![
        "`compute_at`: the block updates its buffer: `B` is read before all that is read is written"
    ]
    .assert_eq(&text(move_to(
        &source.replace("            with T.init():\n                B[vi] = T.float32(0)\n", ""),
        "B",
        "C",
        0,
    )));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn results_stay(n in 1i64..=7, window in 0i64..=2, tile in 1i64..=3, at in 0usize..3) {
        let source = blur(n, window, tile);
        let moved = move_to(&source, "B", "C", at);
        prop_assert!(moved.is_ok(), "{:?}\n{}", moved, source);
    }
}
