//! How long layout primitives take: `cargo bench -p tilewright-schedule`.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use tilewright_ir::{DType, Source, Var};
use tilewright_schedule::trace::{Lambda, LambdaBody, LambdaItem, Value};
use tilewright_schedule::{Permissions, Schedule};
use tilewright_script::parse_module;

/// A convolution over a blocked activation: five axes, none a multiple of the new tile.
const CONV: &str = r#"
@T.prim_func
def main(
    X: T.Buffer((1, 5, 30, 30, 13), "float32"),
    W: T.Buffer((65, 5, 3, 3, 13), "float32"),
    Y: T.Buffer((1, 65, 28, 28), "float32"),
):
    P = T.alloc_buffer((1, 5, 30, 30, 13), "float32")
    for n, co, h, w, ci in T.grid(1, 5, 30, 30, 13):
        with T.block("P"):
            vn, vco, vh, vw, vci = T.axis.remap("SSSSS", [n, co, h, w, ci])
            P[vn, vco, vh, vw, vci] = T.max(X[vn, vco, vh, vw, vci], T.float32(0))
    for n, o, h, w, co, ci, r, s in T.grid(1, 65, 28, 28, 5, 13, 3, 3):
        with T.block("conv"):
            vn, vo, vh, vw, vco, vci, vr, vs = T.axis.remap("SSSSRRRR", [n, o, h, w, co, ci, r, s])
            with T.init():
                Y[vn, vo, vh, vw] = T.float32(0)
            Y[vn, vo, vh, vw] = Y[vn, vo, vh, vw] + P[vn, vco, vh + vr, vw + vs, vci] * W[vo, vco, vr, vs, vci]
"#;

/// `lambda n, co, h, w, ci: [n, h, w, (co * 13 + ci) // 16, (co * 13 + ci) % 16]`.
fn blocked() -> Lambda {
    Lambda::new("blocked", |dtypes: &[DType]| {
        let params: Vec<Var> = dtypes.iter().map(|d| Var::new("i", *d)).collect();
        let channel = &params[1] * 13 + &params[4];
        let items = vec![
            params[0].expr(),
            params[2].expr(),
            params[3].expr(),
            channel.clone().floordiv(16),
            channel.floormod(16),
        ];
        let items = items.into_iter().map(LambdaItem::Expr).collect();
        Ok(LambdaBody { params, items })
    })
}

fn bench(c: &mut Criterion) {
    let module = parse_module(&Source::new("conv.py", CONV)).expect("the text is right");
    let map = blocked();
    for (name, pad) in [("without padding", Value::None), ("padded", Value::Int(0))] {
        c.bench_function(&format!("transform_layout of a 5-d buffer, {name}"), |b| {
            let start = || {
                let mut s = Schedule::new(module.clone(), Permissions::default());
                let block = s.get_block("P", "main").expect("the block is there");
                (s, block)
            };
            let run = |(mut s, block): (Schedule, _)| {
                s.transform_layout(&block, ("write", 0), &map, &pad, false).expect("it is legal");
                s
            };
            b.iter_batched(start, run, BatchSize::SmallInput);
        });
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
