//! Caches with an order of their own.

use crate::common::{module, same_results, schedule, text};
use expect_test::{Expect, expect};
use tilewright_ir::{DType, Error, Expr, Var};
use tilewright_schedule::value::{Lambda, LambdaBody, LambdaItem};

const SOURCE: &str = r#"
@T.prim_func
def main(A: T.Buffer((4, 6, 3), "float32"), C: T.Buffer((4, 6), "float32"), D: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4, 6))
    for i, j in T.grid(4, 6):
        for k in range(3):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    B[vi, vj] = T.float32(0)
                B[vi, vj] = B[vi, vj] + A[vi, vj, vk]
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]
    for i, j in T.grid(4, 6):
        with T.block("D"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                D[vi] = T.float32(0)
            D[vi] = D[vi] + C[vi, vj]
"#;

/// A map from a function of variables.
fn map(text: &str, f: impl Fn(&[Expr]) -> Vec<Expr> + Send + Sync + 'static) -> Lambda {
    Lambda::new(text, move |types: &[DType]| {
        let params: Vec<Var> = types.iter().map(|t| Var::new("p", *t)).collect();
        let at: Vec<Expr> = params.iter().map(Var::expr).collect();
        if at.len() < 2 {
            return Err(Error::input("too few parameters"));
        }
        Ok(LambdaBody { params, items: f(&at).into_iter().map(LambdaItem::Expr).collect() })
    })
}

#[test]
fn the_cache_has_the_order_of_the_map() {
    let mut s = schedule(SOURCE);
    let names = ["B", "D"];
    let [b, d] = names.map(|n| s.get_block(n, "main").expect("a block"));
    let turned = map("lambda i, j, k: (j, i)", |p| vec![p[1].clone(), p[0].clone()]);
    s.reindex_cache_write(&b, 0, "shared", &turned).expect("legal");
    let split = map("lambda i, j: (j // 4, i, j % 4)", |p| {
        vec![p[1].clone().floordiv(4), p[0].clone(), p[1].clone().floormod(4)]
    });
    s.reindex_cache_read(&d, 0, "local", &split).expect("legal");
    expect![[r#"
        B = T.alloc_buffer((4, 6), "float32")
        B_shared = T.alloc_buffer((6, 4), "float32", scope="shared")
        C_local = T.alloc_buffer((2, 4, 4), "float32", scope="local")
        for i, j in T.grid(4, 6):
            for k in range(3):
                with T.block("B"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        B_shared[vj, vi] = T.float32(0.0)
                    B_shared[vj, vi] = B_shared[vj, vi] + A[vi, vj, vk]
            with T.block("B_shared"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B_shared[vj, vi])
                T.writes(B[vi, vj])
                B[vi, vj] = B_shared[vj, vi]
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]
        for i, j in T.grid(4, 6):
            with T.block("C_local"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(C[vi, vj])
                T.writes(C_local[vj // 4, vi, vj % 4])
                C_local[vj // 4, vi, vj % 4] = C[vi, vj]
        for i, j in T.grid(4, 6):
            with T.block("D"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    D[vi] = T.float32(0.0)
                D[vi] = D[vi] + C_local[vj // 4, vi, vj % 4]
    "#]]
    .assert_eq(&text(&s));
    expect![[r#"
        def apply_trace(sch):
            b0 = sch.get_block(name="B", func_name="main")
            b1 = sch.get_block(name="D", func_name="main")
            b2 = sch.reindex_cache_write(block=b0, write_buffer_index=0, storage_scope="shared", index_map=lambda i, j, k: (j, i))
            b3 = sch.reindex_cache_read(block=b1, read_buffer_index=0, storage_scope="local", index_map=lambda i, j: (j // 4, i, j % 4))
    "#]].assert_eq(&s.trace().to_string());
    same_results(module(SOURCE).tensor("main").expect("main"), s.func("main").expect("main"));
}

#[test]
fn refusals_name_the_reason() {
    let check = |block: &str, lambda: Lambda, expected: Expect| {
        let mut s = schedule(SOURCE);
        let b = s.get_block(block, "main").expect("a block");
        let result = match block {
            "D" => s.reindex_cache_read(&b, 0, "local", &lambda),
            _ => s.reindex_cache_write(&b, 0, "local", &lambda),
        };
        expected.assert_eq(&result.map_or_else(|e| e.to_string(), |_| "accepted".into()));
    };
    check(
        "D",
        map("lambda i, j: j * 2", |p| vec![&p[1] * 2]),
        expect!["`reindex_cache_read`: the map sends two cells of the buffer to one of the cache"],
    );
    check(
        "B",
        map("lambda i, j, k: (i, k)", |p| vec![p[0].clone(), p[2].clone()]),
        expect![
            "`reindex_cache_write`: the map uses `vk`, on which the cell of `B` does not depend"
        ],
    );
    check(
        "C",
        map("lambda i, j: (i - 1, j)", |p| vec![&p[0] - 1, p[1].clone()]),
        expect!["`reindex_cache_write`: the index `vi - 1` may be negative"],
    );
    let wide = SOURCE.replace("C[vi, vj] = B[vi, vj]", "C[vi, vj] = B[vi, vj] + B[vi, 0]");
    let mut s = schedule(&wide);
    let c = s.get_block("C", "main").expect("C");
    let same = map("lambda i, j: (i, j)", <[Expr]>::to_vec);
    let e = s.reindex_cache_read(&c, 0, "local", &same).map_err(|e| e.to_string());
    expect!["`reindex_cache_read`: the block `C` does not access a single cell of `B`"]
        .assert_eq(&e.err().unwrap_or_default());
}
