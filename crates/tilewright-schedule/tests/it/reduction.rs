//! Reductions taken apart: what they look like, what is refused, and that results stay.

use crate::common::{module, same_results, schedule, text};
use expect_test::{Expect, expect};
use proptest::prelude::*;

const MATMUL: &str = r#"
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((3, 6), "float32"), C: T.Buffer((4, 3), "float32")):
    for i, j, k in T.grid(4, 3, 6):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
"#;

fn decompose(source: &str, at: usize) -> Result<String, String> {
    let mut s = schedule(source);
    let done = s.get_block("C", "main").and_then(|b| {
        let l = s.get_loops(&b)?[at].clone();
        s.decompose_reduction(&b, &l)
    });
    done.map_err(|e| e.to_string())?;
    same_results(module(source).tensor("main").expect("main"), s.func("main").expect("main"));
    Ok(text(&s))
}

#[track_caller]
fn check(source: &str, at: usize, expected: Expect) {
    expected.assert_eq(&decompose(source, at).unwrap_or_else(|e| e));
}

#[test]
fn the_initialisation_comes_first() {
    check(
        MATMUL,
        0,
        expect![[r#"
            for i, j in T.grid(4, 3):
                with T.block("C_init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = T.float32(0.0)
            for i, j, k in T.grid(4, 3, 6):
                with T.block("C_update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
        "#]],
    );
    check(
        MATMUL,
        2,
        expect![[r#"
            for i, j in T.grid(4, 3):
                with T.block("C_init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = T.float32(0.0)
                for k in range(6):
                    with T.block("C_update"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
        "#]],
    );
}

#[test]
fn instances_that_begin_keep_no_condition_of_later_steps() {
    // Of the cells the fewest have a second step, and all have a first one.
    let lanes = |cells: i64, most: i64| {
        format!(
            r#"
@T.prim_func
def main(A: T.Buffer((11,), "float32"), C: T.Buffer(({cells},), "float32")):
    for i, k in T.grid({cells}, 2):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(k * 8 + i < {most})
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vk * 8 + vi]
"#
        )
    };
    check(
        &lanes(8, 11),
        0,
        expect![[r#"
            for i in range(8):
                with T.block("C_init"):
                    vi = T.axis.spatial(8, i)
                    C[vi] = T.float32(0.0)
            for i, k in T.grid(8, 2):
                with T.block("C_update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.where(k * 8 + i < 11)
                    C[vi] = C[vi] + A[vk * 8 + vi]
        "#]],
    );
    check(
        &lanes(8, 7),
        0,
        expect![
            "`decompose_reduction`: the predicate `k * 8 + i < 7` is over spatial and reduction loops at once"
        ],
    );
}

#[test]
fn refusals_name_the_reason() {
    let turned = MATMUL.replace("for i, j, k in T.grid(4, 3, 6)", "for k, i, j in T.grid(6, 4, 3)");
    check(
        &turned,
        1,
        expect![
            "`decompose_reduction`: the loop `k` is over the reduction and around the loop `i`, so that the initialisation would run again and again"
        ],
    );
    let bare = MATMUL
        .replace("            with T.init():\n                C[vi, vj] = T.float32(0)\n", "");
    check(&bare, 0, expect!["`decompose_reduction`: the block `C` has no initialisation"]);
    let late = MATMUL.replace("[i, j, k])", "[i, j, k])\n            T.where(k >= 1)");
    check(
        &late,
        0,
        expect![
            "`decompose_reduction`: the predicate `k >= 1` is not known to hold where the reduction begins"
        ],
    );
    let again =
        MATMUL.replace("for i, j, k in T.grid(4, 3, 6)", "for t, i, j, k in T.grid(2, 4, 3, 6)");
    check(
        &again,
        0,
        expect![
            "`decompose_reduction`: the initialisation of `C` runs for several values of the loop `t`"
        ],
    );
    let folded = MATMUL.replace("T.grid(4, 3, 6)", "T.grid(8, 3, 6)").replace(
        "vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
        "vi = T.axis.spatial(4, i // 2)\n            vj, vk = T.axis.remap(\"SR\", [j, k])",
    );
    check(
        &folded,
        0,
        expect![
            "`decompose_reduction`: the block `C` reduces into one cell for several values of its loops"
        ],
    );
    let twice = MATMUL.replace("T.grid(4, 3, 6)", "T.grid(4, 3, 12)").replace(
        "vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
        "vk = T.axis.reduce(6, k // 2)\n            vi, vj = T.axis.remap(\"SS\", [i, j])",
    );
    check(
        &twice,
        0,
        expect![
            "`decompose_reduction`: the initialisation of `C` runs for several values of the loop `k`"
        ],
    );
    let used = MATMUL.replace(
        "for i, j, k in T.grid(4, 3, 6):\n",
        "for i in range(4):\n      for j, k in T.grid(3, 6):\n",
    ) + "      for j in range(3):\n        with T.block(\"U\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n            A[vi, vj] = C[vi, vj]\n";
    check(
        &used,
        0,
        expect![
            "`decompose_reduction`: the loop `i` holds more that uses `C`, which would find it initialised too early"
        ],
    );
    check(
        &used,
        1,
        expect![[r#"
            for i in range(4):
                for j in range(3):
                    with T.block("C_init"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        C[vi, vj] = T.float32(0.0)
                for j, k in T.grid(3, 6):
                    with T.block("C_update"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
                for j in range(3):
                    with T.block("U"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        A[vi, vj] = C[vi, vj]
        "#]],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Loops in any order, split or not, with guards: what is accepted computes the same.
    #[test]
    fn results_stay(
        order in Just(vec!["i0", "i1", "j", "k0", "k1"]).prop_shuffle(),
        (n, k, tile, ktile, at) in (1i64..=5, 1i64..=5, 1i64..=3, 1i64..=3, 0usize..5),
    ) {
        let extent = |v: &str| match v {
            "i0" => (n + tile - 1) / tile,
            "i1" => tile,
            "j" => 2,
            "k0" => (k + ktile - 1) / ktile,
            _ => ktile,
        };
        let extents: Vec<String> = order.iter().map(|v| extent(v).to_string()).collect();
        let source = format!(
            "@T.prim_func
def main(A: T.Buffer(({n}, {k}), \"float32\"), C: T.Buffer(({n}, 2), \"float32\")):
    for {} in T.grid({}):
        with T.block(\"C\"):
            vi = T.axis.spatial({n}, i0 * {tile} + i1)
            vj = T.axis.spatial(2, j)
            vk = T.axis.reduce({k}, k0 * {ktile} + k1)
            T.where(i0 * {tile} + i1 < {n} and k0 * {ktile} + k1 < {k})
            with T.init():
                C[vi, vj] = T.float32(3)
            C[vi, vj] = C[vi, vj] + A[vi, vk]
",
            order.join(", "),
            extents.join(", ")
        );
        let spatial_first = order[..at].iter().all(|v| !v.starts_with('k'));
        match decompose(&source, at) {
            Ok(_) => prop_assert!(spatial_first, "{source}"),
            Err(e) => prop_assert!(!spatial_first, "{e}\n{source}"),
        }
    }
}
