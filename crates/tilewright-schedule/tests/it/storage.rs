//! Storage scopes and annotations of blocks.

use crate::common::{module, same_results, schedule, text};
use expect_test::expect;
use tilewright_ir::Attr;

const SOURCE: &str = r#"
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]
"#;

#[test]
fn a_buffer_moves_to_another_scope() {
    let mut s = schedule(SOURCE);
    let b = s.get_block("B", "main").expect("B");
    s.set_scope(&b, 0, "shared").expect("legal");
    expect![[r#"
        B = T.alloc_buffer((4,), "float32", scope="shared")
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2.0)
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]
    "#]]
    .assert_eq(&text(&s));
    same_results(module(SOURCE).tensor("main").expect("main"), s.func("main").expect("main"));
}

#[test]
fn refusals_name_the_reason() {
    let mut s = schedule(SOURCE);
    let (b, c) = (s.get_block("B", "main").expect("B"), s.get_block("C", "main").expect("C"));
    let text = |r: tilewright_ir::Result<()>| r.map_or_else(|e| e.to_string(), |()| "ok".into());
    expect![
        "`set_scope`: `C` is an argument of the function, and lives where the caller has put it"
    ]
    .assert_eq(&text(s.set_scope(&c, 0, "shared")));
    expect!["`set_scope`: the storage scope `cellar` is not known"]
        .assert_eq(&text(s.set_scope(&b, 0, "cellar")));
    expect!["`set_scope`: the block `B` writes no buffer `A`"]
        .assert_eq(&text(s.set_scope(&b, "A", "shared")));
    expect!["`unannotate`: the block `B` has no annotation `k`"]
        .assert_eq(&text(s.unannotate(&b, "k")));
}

#[test]
fn annotations_come_and_go() {
    let mut s = schedule(SOURCE);
    let b = s.get_block("B", "main").expect("B");
    s.annotate(&b, "k", Attr::Int(3)).expect("legal");
    assert!(text(&s).contains("T.block_attr({\"k\": 3})"), "{}", text(&s));
    s.unannotate(&b, "k").expect("legal");
    assert!(!text(&s).contains("block_attr"));
    expect![[r#"
        def apply_trace(sch):
            b0 = sch.get_block(name="B", func_name="main")
            sch.annotate(block_or_loop=b0, ann_key="k", ann_val=3)
            sch.unannotate(block_or_loop=b0, ann_key="k")
    "#]]
    .assert_eq(&s.trace().to_string());
}
