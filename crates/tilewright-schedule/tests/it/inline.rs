//! Inlining in both directions: what it looks like, what is refused, and that results stay.

use crate::common::{module, same_results, schedule, text};
use expect_test::{Expect, expect};

const CHAIN: &str = r#"
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), E: T.Buffer((4,), "float32"), C: T.Buffer((6, 4), "float32")):
    B = T.alloc_buffer((4, 6))
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for j, i in T.grid(6, 4):
        with T.block("C"):
            vj, vi = T.axis.remap("SS", [j, i])
            T.reads(B[vi, vj], E[vi])
            T.writes(C[vj, vi])
            C[vj, vi] = B[vi, vj] + E[vi]
"#;

fn inline(source: &str, block: &str, reverse: bool) -> Result<String, String> {
    let mut s = schedule(source);
    let done = s
        .get_block(block, "main")
        .and_then(|b| if reverse { s.reverse_compute_inline(&b) } else { s.compute_inline(&b) });
    done.map_err(|e| e.to_string())?;
    same_results(module(source).tensor("main").expect("main"), s.func("main").expect("main"));
    Ok(text(&s))
}

#[track_caller]
fn check(source: &str, block: &str, reverse: bool, expected: Expect) {
    expected.assert_eq(&inline(source, block, reverse).unwrap_or_else(|e| e));
}

#[test]
fn both_directions() {
    check(
        CHAIN,
        "B",
        false,
        expect![[r#"
        for j, i in T.grid(6, 4):
            with T.block("C"):
                vj, vi = T.axis.remap("SS", [j, i])
                T.writes(C[vj, vi])
                C[vj, vi] = A[vi, vj] * T.float32(2.0) + E[vi]
    "#]],
    );
    check(
        CHAIN,
        "C",
        true,
        expect![[r#"
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vj, vi] = A[vi, vj] * T.float32(2.0) + E[vi]
    "#]],
    );
}

#[test]
fn a_window_reads_the_value_at_each_place() {
    let source = CHAIN
        .replace(
            "C[vj, vi] = B[vi, vj] + E[vi]",
            "C[vj, vi] = B[vi, vj] + B[3 - vi, T.max(vj - 1, 0)]",
        )
        .replace("            T.reads(B[vi, vj], E[vi])\n", "");
    check(
        &source,
        "B",
        false,
        expect![[r#"
        for j, i in T.grid(6, 4):
            with T.block("C"):
                vj, vi = T.axis.remap("SS", [j, i])
                T.writes(C[vj, vi])
                C[vj, vi] = A[vi, vj] * T.float32(2.0) + A[3 - vi, T.max(vj - 1, 0)] * T.float32(2.0)
    "#]],
    );
    check(
        &source,
        "C",
        true,
        expect!["`reverse_compute_inline`: the block `C` reads several cells of `B`"],
    );
}

#[test]
fn refusals_name_the_reason() {
    let drop = |s: &str| s.replace("            T.reads(A[vi, vj])\n", "");
    // Of the block itself.
    check(
        CHAIN,
        "C",
        false,
        expect![
            "`compute_inline`: `C` is not allocated by the scope of the block, and others may see it"
        ],
    );
    check(
        CHAIN,
        "B",
        true,
        expect!["`reverse_compute_inline`: the block `B` reads no buffer that its scope allocates"],
    );
    check(
        &drop(CHAIN).replace("A[vi, vj] * T.float32(2)", "T.undef(dtype=\"float32\")"),
        "B",
        false,
        expect![[
            r#"`compute_inline`: the block `B` computes `T.undef(dtype="float32")`, which may differ each time"#
        ]],
    );
    check(
        &CHAIN
            .replace("for i, j in T.grid(4, 6)", "for i, j in T.grid(4, 5)")
            .replace("remap(\"SS\", [i, j])", "remap(\"SS\", [i, j])\n            T.where(j < 4)"),
        "B",
        false,
        expect!["`compute_inline`: the buffer must be filled as a whole: `B[0, 4]` is left out"],
    );
    check(
        &CHAIN
            .replace("B[vi, vj] = A", "B[vi, 5 - vj] = A")
            .replace("T.writes(B[vi, vj])", "T.writes(B[vi, 5 - vj])"),
        "B",
        false,
        expect![
            "`compute_inline`: the block `B` accesses `B` at `5 - vj`, not at an iteration variable of its own for each axis"
        ],
    );
    // Of what is around.
    let clobber = "    for i, j in T.grid(4, 6):\n        with T.block(\"A\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n            A[vi, vj] = T.float32(1)\n    for j, i in";
    let source = CHAIN.replace("    for j, i in", clobber);
    check(
        &source,
        "B",
        false,
        expect![
            "`compute_inline`: `A` is written between the block `B` and where its result is used"
        ],
    );
    let source = CHAIN.replace(
        "    for j, i in",
        &clobber.replace("A[vi, vj] =", "E[vi] =").replace("\"A\"", "\"E\""),
    );
    check(
        &source,
        "C",
        true,
        expect![
            "`reverse_compute_inline`: `E` is written between the block `B` and where its result is used"
        ],
    );
    let source = CHAIN.replace(
        "    for j, i in",
        &clobber.replace("A[vi, vj] =", "C[vj, vi] =").replace("\"A\"", "\"X\""),
    );
    check(
        &source,
        "C",
        true,
        expect![
            "`reverse_compute_inline`: `C` is used between the block `B` and where its result is used"
        ],
    );
    let source = CHAIN.replace(
        "    for j, i in",
        &clobber.replace("A[vi, vj] = T.float32(1)", "A[vi, vj] = B[vi, vj]"),
    );
    check(&source, "C", true, expect!["`reverse_compute_inline`: `B` is read by others, too"]);
    let source = CHAIN.replace(
        "    for j, i in",
        &clobber.replace("A[vi, vj] =", "B[vi, vj] =").replace("\"A\"", "\"X\""),
    );
    check(
        &source,
        "B",
        false,
        expect!["`compute_inline`: `B` is not written by the block `B` alone"],
    );
}

#[test]
fn an_update_in_place_of_what_the_value_reads_is_seen() {
    let source = r#"
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            A[vi] = B[3 - vi]
"#;
    check(
        source,
        "B",
        false,
        expect![
            "`compute_inline`: `A` is written where the value of the block `B` would be computed from it"
        ],
    );
    check(
        source,
        "C",
        true,
        expect![
            "`reverse_compute_inline`: the block `B` uses `A`, which would be written too early"
        ],
    );
}

/// Stages in one loop, which hand over a cell in each iteration.
#[test]
fn stages_that_share_a_loop() {
    let source = r#"
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    X = T.alloc_buffer((4,))
    B = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("X"):
            vi = T.axis.spatial(4, i)
            X[vi] = A[vi] + T.float32(1)
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = X[vi] * T.float32(2)
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]
"#;
    check(
        source,
        "X",
        false,
        expect![[r#"
        B = T.alloc_buffer((4,), "float32")
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = (A[vi] + T.float32(1.0)) * T.float32(2.0)
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]
    "#]],
    );
    check(
        source,
        "B",
        false,
        expect![
            "`compute_inline`: `X` is written between the block `B` and where its result is used"
        ],
    );
    check(
        source,
        "B",
        true,
        expect![
            "`reverse_compute_inline`: `B` is used between the block `X` and where its result is used"
        ],
    );
}

/// Stages that each read the one before twice, inlined one after the other.
#[test]
fn a_value_that_doubles_is_refused_before_it_fills_the_memory() {
    let n = 40;
    let mut lines = vec![
        "@T.prim_func".to_owned(),
        "def main(A: T.Buffer((8,), \"int32\"), C: T.Buffer((8,), \"int32\")):".to_owned(),
    ];
    lines.extend((0..n).map(|k| format!("    B{k} = T.alloc_buffer((8,), \"int32\")")));
    for k in 0..=n {
        let from = if k == 0 { "A".to_owned() } else { format!("B{}", k - 1) };
        let to = if k == n { "C".to_owned() } else { format!("B{k}") };
        lines.extend([
            "    for i in range(8):".to_owned(),
            format!("        with T.block(\"{to}\"):"),
            "            vi = T.axis.spatial(8, i)".to_owned(),
            format!("            {to}[vi] = {from}[vi] + {from}[vi]"),
        ]);
    }
    let mut sch = schedule(&(lines.join("\n") + "\n"));
    let refused = (0..n).find_map(|k| {
        let block = sch.get_block(&format!("B{k}"), "main").expect("it is there");
        sch.compute_inline(&block).err()
    });
    let why = refused.expect("2^40 nodes are too many").render();
    assert!(why.contains("places of one statement"), "{why}");
}
