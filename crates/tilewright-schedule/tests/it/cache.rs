//! Caches: what they look like, what is refused, and that results stay.

use crate::common::{module, same_results, schedule, text};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use tilewright_ir::Result;
use tilewright_schedule::{Permissions, Schedule};

const ELEMENTWISE: &str = r#"
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8))
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"#;

const SCOPED: &str = r#"
@T.prim_func
def main(B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    A = T.alloc_buffer((8, 8))
    for i0, j0 in T.grid(2, 2):
        with T.block("scope"):
            i, j = T.axis.remap("SS", [i0, j0])
            for x, y in T.grid(4, 4):
                with T.block("A"):
                    vi = T.axis.spatial(8, i * 4 + x)
                    vj = T.axis.spatial(8, j * 4 + y)
                    A[vi, vj] = T.float32(1)
            for x, y in T.grid(4, 4):
                with T.block("B"):
                    vi = T.axis.spatial(8, i * 4 + x)
                    vj = T.axis.spatial(8, j * 4 + y)
                    B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2)
"#;

#[track_caller]
fn refused<T>(result: Result<T>, expected: Expect) {
    match result {
        Ok(_) => panic!("it was accepted"),
        Err(e) => expected.assert_eq(&e.to_string()),
    }
}

#[track_caller]
fn check(source: &str, apply: impl FnOnce(&mut Schedule) -> Result<()>) -> Schedule {
    let mut sch = schedule(source);
    apply(&mut sch).unwrap_or_else(|e| panic!("{}", e.render()));
    let func = |s: &Schedule| s.func("main").expect("main").clone();
    same_results(&func(&schedule(source)), &func(&sch));
    sch
}

#[test]
fn a_cache_for_reading_stands_before_its_consumer() {
    let sch = check(ELEMENTWISE, |s| {
        let c = s.get_block("C", "main")?;
        let copy = s.cache_read(&c, 0, "local", &[])?;
        assert_eq!(&*copy.name, "B_local");
        Ok(())
    });
    expect![[r#"
        B = T.alloc_buffer((8, 8), "float32")
        B_local = T.alloc_buffer((8, 8), "float32", scope="local")
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
        for ax0, ax1 in T.grid(8, 8):
            with T.block("B_local"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(B[v0, v1])
                T.writes(B_local[v0, v1])
                B_local[v0, v1] = B[v0, v1]
        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B_local[vi, vj] + T.float32(1.0)
    "#]]
    .assert_eq(&text(&sch));
    expect![[r#"
        def apply_trace(sch):
            b0 = sch.get_block(name="C", func_name="main")
            b1 = sch.cache_read(block=b0, read_buffer_index=0, storage_scope="local")
    "#]]
    .assert_eq(&sch.trace().to_string());
}

#[test]
fn a_cache_in_a_scope_has_the_size_of_the_part() {
    let sch = check(SCOPED, |s| {
        let (a, b) = (s.get_block("A", "main")?, s.get_block("B", "main")?);
        s.cache_read(&b, "A", "shared", &[])?;
        s.cache_write(&a, 0, "local", &[])?;
        Ok(())
    });
    expect![[r#"
        A = T.alloc_buffer((8, 8), "float32")
        for i0, j0 in T.grid(2, 2):
            with T.block("scope"):
                i, j = T.axis.remap("SS", [i0, j0])
                A_shared = T.alloc_buffer((4, 4), "float32", scope="shared")
                A_local = T.alloc_buffer((4, 4), "float32", scope="local")
                for x, y in T.grid(4, 4):
                    with T.block("A"):
                        vi = T.axis.spatial(8, i * 4 + x)
                        vj = T.axis.spatial(8, j * 4 + y)
                        A_local[vi - i * 4, vj - j * 4] = T.float32(1.0)
                for ax0, ax1 in T.grid(4, 4):
                    with T.block("A_local"):
                        v0, v1 = T.axis.remap("SS", [ax0, ax1])
                        T.reads(A_local[v0, v1])
                        T.writes(A[i * 4 + v0, j * 4 + v1])
                        A[i * 4 + v0, j * 4 + v1] = A_local[v0, v1]
                for ax0, ax1 in T.grid(4, 4):
                    with T.block("A_shared"):
                        v0, v1 = T.axis.remap("SS", [ax0, ax1])
                        T.reads(A[i * 4 + v0, j * 4 + v1])
                        T.writes(A_shared[v0, v1])
                        A_shared[v0, v1] = A[i * 4 + v0, j * 4 + v1]
                for x, y in T.grid(4, 4):
                    with T.block("B"):
                        vi = T.axis.spatial(8, i * 4 + x)
                        vj = T.axis.spatial(8, j * 4 + y)
                        B[vi, vj] = A_shared[vi - i * 4, vj - j * 4] + T.float32(1.0)
        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * T.float32(2.0)
    "#]]
    .assert_eq(&text(&sch));
}

#[test]
fn caches_stand_outside_of_every_loop_with_the_scope_of_the_buffer() {
    let sch = check(ELEMENTWISE, |s| {
        let (b, c) = (s.get_block("B", "main")?, s.get_block("C", "main")?);
        s.cache_read(&b, "A", "global", &[])?;
        s.cache_write(&c, "C", "global", &[])?;
        Ok(())
    });
    expect![[r#"
        B = T.alloc_buffer((8, 8), "float32")
        A_global = T.alloc_buffer((8, 8), "float32")
        C_global = T.alloc_buffer((8, 8), "float32")
        for ax0, ax1 in T.grid(8, 8):
            with T.block("A_global"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(A[v0, v1])
                T.writes(A_global[v0, v1])
                A_global[v0, v1] = A[v0, v1]
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A_global[vi, vj] * T.float32(2.0)
        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C_global[vi, vj] = B[vi, vj] + T.float32(1.0)
        for ax0, ax1 in T.grid(8, 8):
            with T.block("C_global"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(C_global[v0, v1])
                T.writes(C[v0, v1])
                C[v0, v1] = C_global[v0, v1]
    "#]]
    .assert_eq(&text(&sch));
}

#[test]
fn what_is_not_there_is_refused() {
    let mut s = schedule(ELEMENTWISE);
    let (b, c) = (s.get_block("B", "main").expect("B"), s.get_block("C", "main").expect("C"));
    refused(
        s.cache_read(&b, 0, "attic", &[]),
        expect!["`cache_read`: the storage scope `attic` is not known"],
    );
    refused(
        s.cache_read(&b, 1, "local", &[]),
        expect!["`cache_read`: the block `B` reads no buffer of number 1"],
    );
    refused(
        s.cache_read(&b, "B", "local", &[]),
        expect!["`cache_read`: the block `B` reads no buffer `B`"],
    );
    refused(
        s.cache_write(&b, "C", "local", &[]),
        expect!["`cache_write`: the block `B` writes no buffer `C`"],
    );
    refused(
        s.cache_inplace(&b, 0, "local"),
        expect!["`cache_inplace`: the block `B` reads `A` and does not write it"],
    );
    refused(
        s.cache_write(&b, 0, "local", std::slice::from_ref(&b)),
        expect![
            "`cache_write`: `B` is no consumer of `B` in the scope of `B`: it writes the buffer"
        ],
    );
    assert_eq!(s.trace().instructions.len(), 2);
    assert!(s.cache_write(&b, 0, "local", &[c]).is_ok());
}

/// An update in place, a store to every other cell, and one to the first cells.
const UPDATES: &str = r#"
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("U"):
            vi = T.axis.spatial(8, i)
            B[vi] = B[vi] + T.float32(1)
    for i in range(4):
        with T.block("even"):
            vi = T.axis.spatial(4, i)
            C[vi * 2] = B[vi * 2]
    for i in range(8):
        with T.block("last"):
            vi = T.axis.spatial(8, i)
            T.where(i < 5)
            A[vi] = B[vi]
"#;

#[test]
fn illegal_caches_are_refused_with_the_missing_fact() {
    let mut s = schedule(UPDATES);
    let names = ["B", "U", "even", "last"];
    let [b, u, even, last] = names.map(|n| s.get_block(n, "main").expect("a block"));
    refused(
        s.cache_read(&u, "B", "local", &[]),
        expect!["`cache_read`: the block `U` also writes `B`, and would not see that in a copy"],
    );
    refused(
        s.cache_write(&u, "B", "local", &[]),
        expect![
            "`cache_write`: the block `U` needs what was in `B` before: `B` is read before all that is read is written"
        ],
    );
    refused(
        s.cache_write(&even, "C", "local", &[]),
        expect![
            "`cache_write`: the block `even` must write all that is copied from the cache to `C`: `C[1]` is left out"
        ],
    );
    refused(
        s.cache_read(&even, "B", "local", std::slice::from_ref(&b)),
        expect!["`cache_read`: `B` is written between any place for its copy and the consumer `B`"],
    );
    refused(
        s.cache_read(&last, "B", "local", &[u.clone(), last.clone()]),
        expect!["`cache_read`: `B` is written between any place for its copy and the consumer `U`"],
    );
    refused(
        s.cache_write(&b, "B", "local", std::slice::from_ref(&even)),
        expect![
            "`cache_write`: other blocks write `B` too, so that its cache does not hold all that a consumer reads"
        ],
    );
    refused(
        s.cache_write(&last, "A", "local", &[]),
        expect![
            "`cache_write`: the block `last` must write all that is copied from the cache to `A`: `A[5]` is left out"
        ],
    );
    check(UPDATES, |s| {
        let (u, even) = (s.get_block("U", "main")?, s.get_block("even", "main")?);
        s.cache_inplace(&u, "B", "local")?;
        s.cache_read(&even, "B", "shared", &[])?;
        Ok(())
    });
}

#[test]
fn pointers_and_views_are_seen() {
    let source = r#"
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    V = T.decl_buffer((2, 4), "int32", data=A.data)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] + V[0, 0]
"#;
    let mut s = schedule(source);
    let c = s.get_block("C", "main").expect("C");
    refused(
        s.cache_read(&c, "A", "local", &[]),
        expect!["`cache_read`: `V` is a view of the memory of `A`, which a cache would not serve"],
    );
}

/// A function of stages over `B` whose shape, loops, nesting and accesses vary.
fn program(n: i64, tile: i64, shape: u8, window: i64, halves: bool) -> String {
    let tiles = (n + tile - 1) / tile;
    let (rows, guard) = match shape % 3 {
        0 => (format!("for i in range({n}):\n"), String::new()),
        _ => (
            format!("for i0, i1 in T.grid({tiles}, {tile}):\n"),
            format!("            T.where(i0 * {tile} + i1 < {n})\n"),
        ),
    };
    let row = if shape.is_multiple_of(3) { "i".to_owned() } else { format!("i0 * {tile} + i1") };
    let m = n + window;
    let mut out = format!(
        "@T.prim_func\ndef main(A: T.Buffer(({m}, 3), \"float32\"), C: T.Buffer(({n}, 3), \
         \"float32\"), D: T.Buffer(({n},), \"float32\")):\n    B = T.alloc_buffer(({m}, 3))\n"
    );
    let block = |indent: &str, name: &str, extent: i64, at: &str, guard: &str, body: &str| {
        format!(
            "{indent}for j in range(3):\n{indent}    with T.block(\"{name}\"):\n\
             {indent}        vi = T.axis.spatial({extent}, {at})\n\
             {indent}        vj = T.axis.spatial(3, j)\n{guard}{indent}        {body}\n"
        )
    };
    let far = format!("B[vi + {window}, vj]");
    let consume = format!("C[vi, vj] = B[vi, vj] + {far}");
    match shape / 3 % 3 {
        // One stage after the other.
        0 => {
            out += &format!("    for i in range({m}):\n");
            out += &block("        ", "B", m, "i", "", "B[vi, vj] = A[vi, vj] * T.float32(2)");
            let guard = guard.replace("            T.where", "                T.where");
            out += &format!("    {rows}");
            out += &block("        ", "C", n, &row, &guard, &consume);
        }
        // Both in one loop, the consumer reading what earlier iterations wrote.
        1 => {
            out += &format!("    for i in range({m}):\n");
            out += &block("        ", "B", m, "i", "", "B[vi, vj] = A[vi, vj] * T.float32(2)");
            let consume = format!("C[vi, vj] = B[vi, vj] + B[vi + {window}, vj]");
            let guard = format!("                T.where(i >= {window})\n");
            out += &block("        ", "C", n, &format!("i - {window}"), &guard, &consume);
        }
        // Tiles in a scope of their own.
        _ => {
            let tile = if n % tile == 0 { tile } else { 1 };
            let tiles = n / tile;
            out += &format!("    for t in range({tiles}):\n        with T.block(\"scope\"):\n");
            out += &format!("            vt = T.axis.spatial({tiles}, t)\n");
            out += &format!("            for i in range({}):\n", tile + window);
            let at = format!("vt * {tile} + i");
            out +=
                &block("                ", "B", m, &at, "", "B[vi, vj] = A[vi, vj] * T.float32(2)");
            out += &format!("            for i in range({tile}):\n");
            out += &block("                ", "C", n, &at, "", &consume);
        }
    }
    if halves {
        out += &format!("    for i in range({}):\n", (n + 1) / 2);
        out += &block("        ", "H", (n + 1) / 2, "i", "", "C[vi * 2, vj] = A[vi, vj]");
    }
    out += &format!(
        "    for i, j in T.grid({n}, 3):\n        with T.block(\"D\"):\n            vi, vj = \
         T.axis.remap(\"SR\", [i, j])\n            with T.init():\n                D[vi] = \
         T.float32(0)\n            D[vi] = D[vi] + C[vi, vj]\n"
    );
    out
}

/// Whatever is accepted computes the same, and enough is accepted for that to say something.
#[test]
fn results_stay() {
    use proptest::test_runner::TestRunner;
    let accepted = std::cell::Cell::new(0);
    let step = (0usize..5, 0usize..4, 0usize..2, 0usize..5, any::<bool>());
    let cases =
        ((1i64..=6, 1i64..=3, 0u8..9, 0i64..=2, any::<bool>()), prop::collection::vec(step, 1..=3));
    let config =
        ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() };
    let run = TestRunner::new(config).run(&cases, |((n, tile, shape, window, halves), steps)| {
        let source = program(n, tile, shape, window, halves);
        let before = module(&source);
        let mut sch = Schedule::new(before.clone(), Permissions::default());
        let names = ["B", "C", "D", "H", "scope"];
        for (block, primitive, index, consumer, listed) in steps {
            let Ok(b) = sch.get_block(names[block], "main") else { continue };
            let list = match (listed, sch.get_block(names[consumer], "main")) {
                (true, Ok(c)) => vec![c],
                _ => Vec::new(),
            };
            let result = match primitive {
                0 => sch.cache_read(&b, index, "local", &list).map(|_| ()),
                1 | 2 => sch.cache_write(&b, index, "shared", &list).map(|_| ()),
                _ => sch.cache_inplace(&b, index, "global").map(|_| ()),
            };
            match result {
                Ok(()) => accepted.set(accepted.get() + 1),
                Err(e) => {
                    prop_assert!(matches!(e, tilewright_ir::Error::Refused(_)), "{}", e.render());
                }
            }
        }
        let (x, y) = (before.tensor("main"), sch.module().tensor("main"));
        let (x, y) = (x.expect("main"), y.expect("main"));
        let same = std::panic::AssertUnwindSafe(|| same_results(x, y));
        if let Err(e) = std::panic::catch_unwind(same) {
            let why = e.downcast_ref::<String>().cloned().unwrap_or_default();
            let after = tilewright_tvmscript::print_module(sch.module());
            prop_assert!(false, "{why}\n{source}\n{}\n{after}", sch.trace());
        }
        Ok(())
    });
    run.unwrap_or_else(|e| panic!("{e}"));
    assert!(accepted.get() > 500, "only {} were accepted", accepted.get());
}
