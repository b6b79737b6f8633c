//! Fusion, legalization and planning keep what a graph computes: random graphs, against the
//! interpreter.

use crate::common::{Graph, extents, functions, operand};
use proptest::prelude::*;
use proptest::sample::Index;
use tilewright_graph::{fuse, legalize};
use tilewright_interp::{Arg, RunOptions, run_func, written_params};
use tilewright_ir::{DType, GraphVar, Lowered, Module, Tensor, well_formed};
use tilewright_layout::plan_memory;
use tilewright_ops::contraction::{Conv, conv, matmul};
use tilewright_ops::elementwise::{Binary, Unary, binary, cast, unary, where_};
use tilewright_ops::movement::{concat, expand, gather, reshape, slice, transpose};
use tilewright_ops::norm::softmax;
use tilewright_ops::pad::{PadMode, pad};
use tilewright_ops::pool::{Pool, global_average_pool, max_pool};
use tilewright_ops::reduce::{Reduction, reduce};
use tilewright_ops::{Operand, Scalar};
use tilewright_runtime::{SizedPlan, Slot};
use tilewright_transform::lower;

/// One random call: what, of which earlier values, and a number that says how.
type Pick = (usize, Index, Index, usize);

fn picks(most: usize) -> impl Strategy<Value = Vec<Pick>> {
    prop::collection::vec((0usize..20, any::<Index>(), any::<Index>(), 0usize..8), 1..most)
}

/// A value of the same type as `like`, if there is one at or after `from`, cyclically.
fn partner(values: &[GraphVar], from: &Index, fits: impl Fn(&Operand) -> bool) -> Option<GraphVar> {
    let start = from.index(values.len());
    let mut order = (0..values.len()).map(|k| &values[(start + k) % values.len()]);
    order.find(|v| fits(&operand(v))).cloned()
}

/// The graph that the picks describe over a few ragged shapes.
fn build(picks: &[Pick], outs: &[Index]) -> Module {
    let mut g = Graph::default();
    let mut values = vec![
        g.input("x", &[3, 5]),
        g.input("y", &[1, 3, 4, 5]),
        g.input("z", &[5]),
        g.input("w", &[5, 5]),
    ];
    for (kind, a, b, how) in picks {
        // Mostly of recent values, so that chains arise.
        let recent = &values[if how % 3 == 0 { 0 } else { values.len().saturating_sub(3) }..];
        let v = a.get(recent).clone();
        let x = operand(&v);
        let float = x.dtype == DType::F32;
        let made = match kind {
            0..=2 => {
                let ops = [
                    Unary::Relu,
                    Unary::Tanh,
                    Unary::Neg,
                    Unary::Abs,
                    Unary::HardSwish,
                    Unary::Sigmoid,
                    Unary::Clip { low: Some(Scalar::Float(-1.0)), high: Some(Scalar::Float(0.5)) },
                    Unary::Identity,
                ];
                unary(ops[*how], &x).ok().map(|f| g.call("un", f, &[&v]))
            }
            3..=6 => {
                let op = [Binary::Add, Binary::Mul, Binary::Sub, Binary::Max][how % 4];
                // Operands that broadcast to a small shape.
                let fits = |y: &Operand| {
                    let pairs = x.shape.iter().rev().zip(y.shape.iter().rev());
                    let mut pairs = pairs.map(|(a, b)| a == b || *a == 1 || *b == 1);
                    y.dtype == x.dtype && pairs.all(|p| p)
                };
                partner(&values, b, fits).and_then(|w| {
                    let f = binary(op, &x, &operand(&w)).ok()?;
                    Some(g.call("bin", f, &[&v, &w]))
                })
            }
            7 => {
                let shape = extents(&x);
                let flat = shape.iter().product();
                let to = match how % 4 {
                    0 => vec![flat],
                    1 if flat % 3 == 0 => vec![3, flat / 3],
                    2 => [1].into_iter().chain(shape.iter().copied()).collect(),
                    _ => shape.iter().rev().copied().collect(),
                };
                let small = to.len() <= 5;
                reshape(&x, &to).ok().filter(|_| small).map(|f| g.call("reshape", f, &[&v]))
            }
            8 => {
                let mut perm: Vec<usize> = (0..x.rank()).collect();
                perm.rotate_left(how % x.rank().max(1));
                transpose(&x, &perm).ok().map(|f| g.call("transpose", f, &[&v]))
            }
            9 => {
                let axis = how % x.rank().max(1);
                let (start, end, step) = [(0, 2, 1), (1, 9, 1), (0, 9, 2), (-1, -9, -1)][how % 4];
                let f = slice(&x, &[start], &[end], &[axis as i64], &[step]);
                f.ok().map(|f| g.call("slice", f, &[&v]))
            }
            10 => {
                let to: Vec<usize> =
                    extents(&x).iter().map(|d| if *d == 1 { 3 } else { *d }).collect();
                expand(&x, &to).ok().map(|f| g.call("expand", f, &[&v]))
            }
            11 => softmax(&x, -1).ok().map(|f| g.call("softmax", f, &[&v])),
            12 => {
                let op = [Reduction::Sum, Reduction::Max, Reduction::Mean][how % 3];
                let f = reduce(op, &x, &[(how % x.rank().max(1)) as i64], *how < 4);
                f.ok().map(|f| g.call("reduce", f, &[&v]))
            }
            13 => {
                let fits = |y: &Operand| {
                    y.rank() == 2 && x.rank() == 2 && x.shape[1] == y.shape[0] && y.dtype == x.dtype
                };
                partner(&values, b, fits).and_then(|w| {
                    let f = matmul(&x, &operand(&w)).ok()?;
                    Some(g.call("matmul", f, &[&v, &w]))
                })
            }
            14 if x.rank() == 4 && float => {
                let w = g.input("k", &[2, extents(&x)[1], 3, 3]);
                let mut p = Conv::new(x.clone(), operand(&w));
                (p.pads_begin, p.pads_end) = (vec![1, 1], vec![1, how % 2]);
                conv(&p).ok().map(|f| g.call("conv", f, &[&v, &w]))
            }
            15 if x.rank() == 4 => {
                let mut p = Pool::new(x.clone(), &[2, 2]);
                (p.pads_begin, p.pads_end) = (vec![how % 2, 0], vec![0, 1]);
                let f = if *how < 6 { max_pool(&p) } else { global_average_pool(&x) };
                f.ok().map(|f| g.call("pool", f, &[&v]))
            }
            16 => {
                let fits = |y: &Operand| *y == x;
                partner(&values, b, fits).and_then(|w| {
                    let f = concat(&[x.clone(), x.clone()], (how % x.rank().max(1)) as i64).ok()?;
                    Some(g.call("concat", f, &[&v, &w]))
                })
            }
            17 => {
                let (before, after) = (vec![(how % 2) as i64; x.rank()], vec![1; x.rank()]);
                let mode = PadMode::Constant(Scalar::Float(0.5));
                pad(&x, &before, &after, mode).ok().map(|f| g.call("pad", f, &[&v]))
            }
            18 => {
                let to = if float { DType::I32 } else { DType::F32 };
                cast(&x, to).ok().map(|f| g.call("cast", f, &[&v]))
            }
            _ => {
                let index = partner(&values, b, |y| y.dtype == DType::I32 && y.rank() <= 2);
                match index {
                    // Indices are brought into range first.
                    Some(i) => {
                        let zero = g.constant_of(DType::I32, 0.0);
                        let f = binary(Binary::Mul, &operand(&i), &operand(&zero)).expect("valid");
                        let i = g.call("zeros", f, &[&i, &zero]);
                        gather(&x, &operand(&i), 0).ok().map(|f| g.call("gather", f, &[&v, &i]))
                    }
                    None => {
                        let f = binary(Binary::Less, &x, &x).expect("valid");
                        let c = g.call("less", f, &[&v, &v]);
                        let f = where_(&x.shape, &x, &x).ok();
                        f.map(|f| g.call("where", f, &[&c, &v, &v]))
                    }
                }
            }
        };
        // Shapes stay small, so that the interpreter is quick.
        let small = |v: &GraphVar| {
            let x = operand(v);
            x.rank() <= 5 && (1..=600).contains(&extents(&x).iter().product::<usize>())
        };
        values.extend(made.filter(small));
    }
    let last = values[values.len() - 1].clone();
    let outs: Vec<GraphVar> = outs.iter().map(|o| o.get(&values).clone()).chain([last]).collect();
    g.returns(&outs.iter().collect::<Vec<_>>())
}

/// Inputs with values of either sign.
fn inputs(module: &Module) -> Vec<Tensor> {
    let main = module.graph("main").expect("main");
    let mut seed = 1u32;
    main.params
        .iter()
        .map(|p| {
            let shape = extents(&operand(p));
            let values: Vec<f32> = (0..shape.iter().product())
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (seed >> 16) as f32 / 16384.0 - 2.0
                })
                .collect();
            Tensor::from_slice(&shape, &values).expect("small")
        })
        .collect()
}

fn run(module: &Module, inputs: &[Tensor]) -> Vec<Tensor> {
    tilewright_interp::run_module(module, "main", inputs)
        .unwrap_or_else(|e| panic!("{}", e.render()))
}

/// Runs a plan over lowered functions in the interpreter, with real memory for the arena: what a
/// step wrote over is gone.
fn run_plan(module: &Module, plan: &SizedPlan, inputs: &[Tensor]) -> Vec<Tensor> {
    let mut arena = vec![0xff; plan.arena_bytes];
    let mut outputs: Vec<Tensor> =
        plan.outputs.iter().map(|o| Tensor::zeros(o.dtype, &o.shape).expect("small")).collect();
    for step in &plan.steps {
        let func = module.tensor(&step.func).expect("exists");
        let written = written_params(func);
        let args: Vec<Arg> = func
            .buffers()
            .zip(&step.args)
            .zip(&written)
            .map(|((buffer, slot), written)| {
                let shape = buffer.const_shape().expect("constant");
                let shape: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
                if *written {
                    return Arg::Fresh(Some(shape));
                }
                let size = shape.iter().product::<usize>() * buffer.dtype().bytes();
                let bytes = match slot {
                    Slot::Input(k) => inputs[*k].bytes(),
                    Slot::Output(k) => outputs[*k].bytes(),
                    Slot::InputAt(k, at) => &inputs[*k].bytes()[*at..*at + size],
                    Slot::OutputAt(k, at) => &outputs[*k].bytes()[*at..*at + size],
                    Slot::Constant(k) => plan.constants[*k].bytes(),
                    Slot::Arena(at) => &arena[*at..*at + size],
                    Slot::Number(_) => panic!("{} takes a number", step.func),
                };
                Arg::Tensor(Tensor::from_bytes(buffer.dtype(), &shape, bytes).expect("fits"))
            })
            .collect();
        let outcome = run_func(func, &args, &RunOptions::default())
            .unwrap_or_else(|e| panic!("{}: {}", step.func, e.render()));
        for out in outcome.outputs {
            let bytes = out.tensor.bytes();
            match step.args[out.param] {
                Slot::Output(k) => outputs[k].bytes_mut().copy_from_slice(bytes),
                Slot::OutputAt(k, at) => {
                    outputs[k].bytes_mut()[at..at + bytes.len()].copy_from_slice(bytes);
                }
                Slot::Arena(at) => arena[at..at + bytes.len()].copy_from_slice(bytes),
                slot => panic!("{} writes {slot:?}", step.func),
            }
        }
    }
    outputs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// No order of arithmetic changes, so results agree to the bit.
    #[test]
    fn every_stage_computes_the_same(
        picks in picks(24),
        outs in prop::collection::vec(any::<Index>(), 0..3),
    ) {
        let module = build(&picks, &outs);
        let inputs = inputs(&module);
        let want = run(&module, &inputs);
        let fused = fuse(&module).expect("fuses");
        let ready = legalize(&fused).expect("legalizes");
        let mut lowered = ready.clone();
        for (name, func) in functions(&ready) {
            lowered.insert(name, lower(&func).expect("lowers"));
        }
        let lowered = Lowered::new(lowered).expect("is lowered");
        let plan = plan_memory(&lowered, "main").and_then(|plan| plan.at(&[])).expect("plans");
        for module in [&fused, &ready] {
            well_formed::check_module(module).unwrap_or_else(|e| panic!("{}", e.render()));
        }
        let got = [run(&fused, &inputs), run(&ready, &inputs), run_plan(&lowered, &plan, &inputs)];
        for (stage, got) in ["fused", "legalized", "planned"].iter().zip(got) {
            prop_assert_eq!(want.len(), got.len());
            for (w, g) in want.iter().zip(&got) {
                prop_assert!(w.same(g), "{}: {:?} against {:?}", stage, w, g);
            }
        }
    }
}
