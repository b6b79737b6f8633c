//! Tensor instructions of a target: their layouts are what `transform_layout` takes, and their
//! descriptions what `tensorize` looks for.

use tilewright_ir::{DType, Expr};
use tilewright_schedule::value::{Lambda, LambdaItem, Value};
use tilewright_schedule::{Permissions, Schedule};
use tilewright_target::Target;

use crate::common::{module, same_results, text};

const PRODUCT: &str = r#"
@T.prim_func
def main(A: T.Buffer((32, 128), "int8"), B: T.Buffer((128, 32), "int8"), C: T.Buffer((32, 32), "int32")):
    for i, j, k in T.grid(32, 32, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk, vj])
"#;

#[test]
fn a_matrix_product_becomes_tiles_of_amx() {
    let target = Target::new("x86_64-unknown-linux-gnu", "", "+amx-int8");
    let amx = target.tensor_instructions().find(|i| i.name == "tdpbssd").expect("it is there");
    let mut with = module(PRODUCT);
    // As if there were code for it: what it computes, in plain loops.
    for part in ["desc", "impl"] {
        with.insert(format!("{}_{part}", amx.name).as_str(), amx.description());
    }
    let mut s = Schedule::new(with, Permissions::default());
    let before = s.func("main").expect("a function").clone();

    let block = s.get_block("C", "main").expect("C");
    s.cache_read(&block, "B", "global", &[]).expect("legal");
    let tile = amx.b;
    let map = Lambda::from_fn(["k", "j"], move |i| {
        tile.layout(&i[0], &i[1]).into_iter().map(LambdaItem::Expr).collect()
    });
    s.transform_layout(&block, "B_global", &map, &Value::None, false).expect("legal");

    let loops = s.get_loops(&block).expect("loops");
    let mut outer = Vec::new();
    let mut inner = Vec::new();
    for (l, extent) in loops.iter().zip([amx.c.rows, amx.c.columns, amx.a.columns]) {
        let parts = s.split(l, &[None, Some(Expr::int(extent, DType::I32))]).expect("legal");
        outer.push(parts[0].clone());
        inner.push(parts[1].clone());
    }
    s.reorder(&[&outer[..], &inner[..]].concat()).expect("legal");
    s.decompose_reduction(&block, &outer[2]).expect("legal");
    s.tensorize(&inner[0], amx.name).expect("it is that product");

    let after = s.func("main").expect("a function");
    same_results(&before, after);
    let text = text(&s);
    assert!(text.contains("T.match_buffer(B_global["), "{text}");
}
