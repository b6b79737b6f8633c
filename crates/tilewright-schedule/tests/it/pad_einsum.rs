//! Padded contractions: what they look like, what is refused, and that results stay.

use crate::common::{module, same_results, schedule, text};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use tilewright_ir::Result;

fn matmul(n: i64, m: i64, k: i64, dtype: &str) -> String {
    format!(
        "@T.prim_func
def main(A: T.Buffer(({n}, {k}), \"{dtype}\"), B: T.Buffer(({m}, {k}), \"{dtype}\"), S: T.Buffer(({n},), \"{dtype}\"), C: T.Buffer(({n}, {m}), \"{dtype}\")):
    for i, j, k in T.grid({n}, {m}, {k}):
        with T.block(\"C\"):
            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])
            with T.init():
                C[vi, vj] = T.{dtype}(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
"
    )
}

/// Sums of `c` channels over windows of `w` cells, `step` apart.
fn windows(n: i64, m: i64, c: i64, w: i64, step: i64) -> String {
    let row = (m - 1) * step + w;
    format!(
        "@T.prim_func
def main(A: T.Buffer(({c}, {row}), \"float32\"), B: T.Buffer(({n}, {c}, {w}), \"float32\"), C: T.Buffer(({n}, {m}), \"float32\")):
    for i, j, k, x in T.grid({n}, {m}, {c}, {w}):
        with T.block(\"C\"):
            vi, vj, vk, vx = T.axis.remap(\"SSRR\", [i, j, k, x])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vk, vj * {step} + vx] * B[vi, vk, vx]
"
    )
}

#[track_caller]
fn refused(source: &str, padding: &[i64], expected: Expect) {
    let mut s = schedule(source);
    let result: Result<()> = s.get_block("C", "main").and_then(|b| s.pad_einsum(&b, padding));
    expected.assert_eq(&result.map_or_else(|e| e.to_string(), |()| "accepted".into()));
}

#[test]
fn pads_what_grows() {
    let mut s = schedule(&matmul(8, 6, 5, "float32"));
    let c = s.get_block("C", "main").expect("C");
    s.pad_einsum(&c, &[4, 4, 2]).expect("legal");
    expect![[r#"
        A_pad = T.alloc_buffer((8, 6), "float32")
        B_pad = T.alloc_buffer((8, 6), "float32")
        C_pad = T.alloc_buffer((8, 8), "float32")
        for i0, i1 in T.grid(8, 6):
            with T.block("A_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                T.reads(A[v0, v1])
                T.writes(A_pad[v0, v1])
                A_pad[v0, v1] = T.if_then_else(v1 < 5, A[v0, v1], T.float32(0.0))
        for i0, i1 in T.grid(8, 6):
            with T.block("B_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                T.reads(B[v0, v1])
                T.writes(B_pad[v0, v1])
                B_pad[v0, v1] = T.if_then_else(v0 < 6 and v1 < 5, B[v0, v1], T.float32(0.0))
        for i, j, k in T.grid(8, 8, 6):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_pad[vi, vj] = T.float32(0.0)
                C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vk] * B_pad[vj, vk]
        for i0, i1 in T.grid(8, 6):
            with T.block("C_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                T.reads(C_pad[v0, v1])
                T.writes(C[v0, v1])
                C[v0, v1] = C_pad[v0, v1]
    "#]]
    .assert_eq(&text(&s));
    expect![[r#"
        def apply_trace(sch):
            b0 = sch.get_block(name="C", func_name="main")
            sch.pad_einsum(block=b0, padding=[4, 4, 2])
    "#]]
    .assert_eq(&s.trace().to_string());
}

#[test]
fn windows_are_padded_by_what_is_read_farther() {
    let mut s = schedule(&windows(4, 5, 3, 3, 2));
    let c = s.get_block("C", "main").expect("C");
    s.pad_einsum(&c, &[4, 8, 2, 1]).expect("legal");
    expect![[r#"
        A_pad = T.alloc_buffer((4, 17), "float32")
        B_pad = T.alloc_buffer((4, 4, 3), "float32")
        C_pad = T.alloc_buffer((4, 8), "float32")
        for i0, i1 in T.grid(4, 17):
            with T.block("A_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                T.reads(A[v0, v1])
                T.writes(A_pad[v0, v1])
                A_pad[v0, v1] = T.if_then_else(v0 < 3 and v1 < 11, A[v0, v1], T.float32(0.0))
        for i0, i1, i2 in T.grid(4, 4, 3):
            with T.block("B_pad"):
                v0, v1, v2 = T.axis.remap("SSS", [i0, i1, i2])
                T.reads(B[v0, v1, v2])
                T.writes(B_pad[v0, v1, v2])
                B_pad[v0, v1, v2] = T.if_then_else(v1 < 3, B[v0, v1, v2], T.float32(0.0))
        for i, j, k, x in T.grid(4, 8, 4, 3):
            with T.block("C"):
                vi, vj, vk, vx = T.axis.remap("SSRR", [i, j, k, x])
                with T.init():
                    C_pad[vi, vj] = T.float32(0.0)
                C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vk, vj * 2 + vx] * B_pad[vi, vk, vx]
        for i0, i1 in T.grid(4, 5):
            with T.block("C_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                T.reads(C_pad[v0, v1])
                T.writes(C[v0, v1])
                C[v0, v1] = C_pad[v0, v1]
    "#]]
    .assert_eq(&text(&s));
    let of = |to: &str| windows(4, 5, 3, 3, 2).replace("vj * 2 + vx", to);
    refused(
        &of("vj * 2 + vx"),
        &[1, 1, 1, 2],
        expect![
            "`pad_einsum`: `A[vk, vj * 2 + vx] * B[vi, vk, vx]` is not known to be zero where `vx` is in the padding"
        ],
    );
    refused(
        &of("10 - vj * 2"),
        &[1, 4, 1, 1],
        expect![
            "`pad_einsum`: `A` is accessed at `10 - vj * 2`, not at `vj` alone, which is to be padded"
        ],
    );
}

#[test]
fn refusals_name_the_reason() {
    let m = matmul(8, 6, 5, "float32");
    refused(&m, &[4, 4], expect!["`pad_einsum`: 2 multiples for the 3 iteration variables of `C`"]);
    refused(&m, &[4, 0, 1], expect!["`pad_einsum`: the multiple 0 is not positive"]);
    let scaled = m.replace("* B[vj, vk]", "* S[vi]");
    refused(
        &scaled,
        &[1, 1, 2],
        expect![
            "`pad_einsum`: `A[vi, vk] * S[vi]` is not known to be zero where `vk` is in the padding"
        ],
    );
    refused(&scaled, &[1, 4, 1], expect!["accepted"]);
    refused(
        &matmul(8, 6, 5, "int32").replace("* B[vj, vk]", "* S[vi]"),
        &[1, 1, 2],
        expect!["accepted"],
    );
    refused(
        &m.replace("C[vi, vj] + A[vi, vk] * B[vj, vk]", "T.max(C[vi, vj], A[vi, vk])"),
        &[1, 1, 2],
        expect![
            "`pad_einsum`: the block `C` does not add up, and what the padding of `vk` adds must be zero"
        ],
    );
    refused(
        &m.replace("A[vi, vk] *", "A[vi // 2, vk] *"),
        &[3, 1, 1],
        expect![
            "`pad_einsum`: `A` is accessed at `vi // 2`, not at `vi` alone, which is to be padded"
        ],
    );
    refused(
        &m.replace("A[vi, vk] *", "A[vj, vk] *"),
        &[1, 4, 1],
        expect![
            "`pad_einsum`: an axis of `A` has the extent 8, and `vj`, by which it is accessed, the extent 6"
        ],
    );
    refused(
        &m.replace("for i, j, k in T.grid(8,", "for i, j, k in T.grid(4,"),
        &[3, 1, 1],
        expect![
            "`pad_einsum`: an axis of `A` has the extent 8, and `vi`, by which it is accessed, the extent 4"
        ],
    );
    refused(
        &m.replace("[i, j, k])", "[i, j, k])\n            T.where(i < 3)"),
        &[3, 1, 1],
        expect!["`pad_einsum`: the block `C` runs under a predicate"],
    );
    refused(
        &m.replace("            with T.init():\n                C[vi, vj] = T.float32(0)\n", ""),
        &[3, 1, 1],
        expect!["`pad_einsum`: the block `C` reads `C` without an initialisation"],
    );
    refused(
        &m.replace(
            "            C[vi, vj] = C",
            "            S[vi] = T.float32(0)\n            C[vi, vj] = C",
        ),
        &[3, 1, 1],
        expect!["`pad_einsum`: the block `C` does not consist of one store"],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn results_stay(
        (n, m, k) in (1i64..=5, 1i64..=5, 1i64..=5),
        padding in prop::array::uniform3(1i64..=4),
        int in any::<bool>(),
    ) {
        let source = matmul(n, m, k, if int { "int32" } else { "float32" });
        let mut s = schedule(&source);
        let c = s.get_block("C", "main").expect("C");
        s.pad_einsum(&c, &padding).expect("legal");
        let after = s.func("main").expect("main").clone();
        same_results(module(&source).tensor("main").expect("main"), &after);
    }

    #[test]
    fn windows_stay(
        (n, m, c, w, step) in (1i64..=3, 1i64..=6, 1i64..=3, 1i64..=3, 1i64..=3),
        padding in prop::array::uniform3(1i64..=5),
    ) {
        let source = windows(n, m, c, w, step);
        let mut s = schedule(&source);
        let block = s.get_block("C", "main").expect("C");
        s.pad_einsum(&block, &[padding[0], padding[1], padding[2], 1]).expect("legal");
        let after = s.func("main").expect("main").clone();
        same_results(module(&source).tensor("main").expect("main"), &after);
    }
}
