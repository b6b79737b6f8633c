//! How long primitives take, and a schedule of a hundred: `cargo bench -p tilewright-schedule`.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use tilewright_ir::{DType, Expr, Result, Source, Var};
use tilewright_schedule::value::{Lambda, LambdaBody, LambdaItem, Value};
use tilewright_schedule::{Permissions, Schedule};
use tilewright_tvmscript::parse_module;

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

/// Fifty stages, one after the other: elementwise ones, transposes, windows and row sums.
fn stages() -> String {
    let shape = "T.Buffer((30, 30), \"float32\")";
    let mut text = format!("@T.prim_func\ndef main(B0: {shape}, B50: {shape}):\n");
    for k in 1..50 {
        text += &format!("    B{k} = T.alloc_buffer((30, 30))\n");
    }
    for k in 1..=50 {
        let x = format!("B{}", k - 1);
        let (axes, kinds, extents) = match k % 5 {
            4 => ("i, j, k", "SSR", "30, 30, 30"),
            _ => ("i, j", "SS", "30, 30"),
        };
        let vars: Vec<String> = axes.split(", ").map(|a| format!("v{a}")).collect();
        text += &format!(
            "    for {axes} in T.grid({extents}):\n        with T.block(\"B{k}\"):\n            {} = \
             T.axis.remap(\"{kinds}\", [{axes}])\n",
            vars.join(", ")
        );
        let value = match k % 5 {
            0 => format!("T.max({x}[vi, vj], 0.0)"),
            1 => format!("{x}[vj, vi]"),
            2 => format!("{x}[vi, vj] + {x}[vi, (vj + 1) % 30]"),
            3 => format!("{x}[vi, vj] * 2.0"),
            _ => {
                text +=
                    &format!("            with T.init():\n                B{k}[vi, vj] = 0.0\n");
                format!("B{k}[vi, vj] + {x}[vi, vk]")
            }
        };
        text += &format!("            B{k}[vi, vj] = {value}\n");
    }
    text
}

/// Two primitives a block.
fn schedule(s: &mut Schedule) -> Result<()> {
    let tiled = |i: &[Expr]| -> Vec<LambdaItem> {
        let (outer, inner) = (i[1].clone().floordiv(8), i[1].clone().floormod(8));
        vec![outer.into(), (&i[0]).into(), inner.into()]
    };
    for k in 1..=50 {
        let name = format!("B{k}");
        let block = s.get_block(&name, "main")?;
        let loops = s.get_loops(&block)?;
        match k % 5 {
            0 => {
                s.split(&loops[1], &[None, Some(Expr::i32(8))])?;
                s.parallel(&loops[0])?;
            }
            1 => {
                s.cache_read(&block, 0, "local", std::slice::from_ref(&block))?;
                s.reorder(&[loops[1].clone(), loops[0].clone()])?;
            }
            2 => {
                let map = Lambda::from_fn(["i", "j"], tiled);
                s.transform_layout(&block, ("write", 0), &map, &Value::Int(0), false)?;
                let loops = s.get_loops(&block)?;
                s.parallel(&loops[0])?;
            }
            3 => {
                s.split(&loops[0], &[None, Some(Expr::i32(4))])?;
                s.vectorize(&loops[1])?;
            }
            _ => {
                s.decompose_reduction(&block, &loops[1])?;
                let init = s.get_block(&format!("{name}_init"), "main")?;
                s.annotate(&init, "note", tilewright_ir::Attr::Int(1))?;
            }
        }
    }
    Ok(())
}

fn bench_trace(c: &mut Criterion) {
    let module = parse_module(&Source::new("stages.py", stages())).expect("the text is right");
    c.bench_function("a hundred primitives on fifty blocks", |b| {
        b.iter(|| {
            let mut s = Schedule::new(module.clone(), Permissions::default());
            schedule(&mut s).expect("it is legal");
            s
        });
    });
}

criterion_group!(benches, bench, bench_trace);
criterion_main!(benches);
