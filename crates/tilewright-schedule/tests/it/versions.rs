//! Versions of loops: what they look like, that results stay, and what is refused.

use expect_test::expect;
use tilewright_ir::visit::Subst;
use tilewright_ir::{Expr, Fold, TensorFunc};
use tilewright_schedule::{LoopRef, Schedule};

use crate::common::{same_results, schedule, text};

const ROWS: &str = r#"
@T.prim_func
def main(n: T.int32, x: T.Buffer((16,), "float32"), y: T.Buffer((16,), "float32")):
    for i in range(T.max(n, 0)):
        with T.block("y"):
            vi = T.axis.spatial(16, i)
            y[vi] = x[vi] + 1.0
"#;

/// What tiles of three rows leave over, and the number of rows.
fn left_over(sch: &mut Schedule) -> (LoopRef, Expr) {
    let size = sch.func("main").expect("a function").scalars().next().expect("a size").expr();
    let n = size.max(0);
    let block = sch.get_block("y", "main").expect("a block");
    let loops = sch.get_loops(&block).expect("loops");
    let tiles = sch.split(&loops[0], &[None, Some(Expr::i32(3))]).expect("a split").swap_remove(0);
    let whole = n.clone().floordiv(3);
    let parts = sch.loop_partition(&tiles, Some(&[Some(whole), None])).expect("parts");
    (parts[1].clone(), n)
}

#[test]
fn a_version_for_each_number_of_rows() {
    let mut sch = schedule(ROWS);
    let before = (**sch.func("main").expect("a function")).clone();
    let (rest, n) = left_over(&mut sch);
    let made = sch.loop_versions(&rest, &n.floormod(3), &[1, 2]).expect("versions");
    assert_eq!(made.len(), 2);
    expect![[r#"
        for i_0, i_1 in T.grid(T.max(n, 0) // 3, 3):
            with T.block("y"):
                vi = T.axis.spatial(16, i_0 * 3 + i_1)
                y[vi] = x[vi] + T.float32(1.0)
        if T.max(n, 0) % 3 == 1:
            for i_0, i_1 in T.grid(1, 1):
                with T.block("y_1"):
                    vi = T.axis.spatial(16, (i_0 + T.max(n, 0) // 3) * 3 + i_1)
                    y[vi] = x[vi] + T.float32(1.0)
        if T.max(n, 0) % 3 == 2:
            for i_0, i_1 in T.grid(1, 2):
                with T.block("y_1_1"):
                    vi = T.axis.spatial(16, (i_0 + T.max(n, 0) // 3) * 3 + i_1)
                    y[vi] = x[vi] + T.float32(1.0)
    "#]]
    .assert_eq(&text(&sch));
    let after = (**sch.func("main").expect("a function")).clone();
    let var = before.scalars().next().expect("a size").clone();
    for size in -1..=16 {
        let at = |f: &TensorFunc| {
            let mut f = f.clone();
            f.params.retain(|p| p.scalar().is_none());
            f.body = Subst::vars([(var.clone(), Expr::i32(size))]).stmt(&f.body);
            f
        };
        same_results(&at(&before), &at(&after));
    }
}

#[test]
fn other_values_keep_the_loop() {
    let mut sch = schedule(ROWS);
    let (rest, n) = left_over(&mut sch);
    let made = sch.loop_versions(&rest, &n.floormod(3), &[1]).expect("versions");
    assert_eq!(made.len(), 2);
    let text = text(&sch);
    assert!(text.contains("% 3 == 1:") && text.contains("% 3 != 1:"), "{text}");
}

#[test]
fn a_value_in_memory_is_refused() {
    let source = ROWS
        .replace("n: T.int32, ", "k: T.Buffer((1,), \"int32\"), ")
        .replace("range(T.max(n, 0))", "range(16)");
    let mut sch = schedule(&source);
    let k = sch.func("main").expect("a function").buffers().next().expect("a buffer").clone();
    let block = sch.get_block("y", "main").expect("a block");
    let loops = sch.get_loops(&block).expect("loops");
    let refused = sch.loop_versions(&loops[0], &k.load(vec![Expr::i32(0)]), &[1]);
    let text = refused.expect_err("refused").render();
    assert!(text.contains("the value k[0] depends on memory"), "{text}");
}
