//! Stages without reduction against the interpreter: as they are, scheduled, and replayed from traces.

use proptest::prelude::*;
use tilewright_autoschedule::{auto_schedule, others};
use tilewright_interp::run_module;
use tilewright_ir::equal::{Equality, tensor_funcs};
use tilewright_ir::{
    DType, ForKind, Module, Remarks, Result, Source, Stmt, StmtKind, Tensor, TensorFunc,
};
use tilewright_ops::elementwise::{Binary, Unary, binary, unary};
use tilewright_ops::{Operand, movement, pad};
use tilewright_schedule::{Permissions, Schedule};
use tilewright_target::Target;
use tilewright_transform::lower;
use tilewright_tvmscript::parse_module;

/// Machines with vectors of 64, 32 and 16 bytes.
fn targets() -> [Target; 3] {
    ["x86-64-v4", "x86-64-v3", "x86-64"].map(|cpu| Target::new("x86_64-unknown-linux-gnu", cpu, ""))
}

/// Numbers that say where they are.
fn inputs(func: &TensorFunc) -> Result<Vec<Tensor>> {
    let mut buffers: Vec<_> = func.buffers().collect();
    buffers.pop();
    let one = |b: &&tilewright_ir::Buffer| {
        let shape = b.const_shape().unwrap_or_default();
        let shape: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
        let n: usize = shape.iter().product();
        match b.dtype() {
            DType::I32 => Tensor::from_slice(&shape, &(0..n as i32).collect::<Vec<_>>()),
            DType::U8 => Tensor::from_slice(&shape, &(0..n).map(|k| k as u8).collect::<Vec<_>>()),
            DType::I16 => Tensor::from_slice(&shape, &(0..n).map(|k| k as i16).collect::<Vec<_>>()),
            _ => Tensor::from_slice(&shape, &(0..n).map(|k| k as f32 - 7.0).collect::<Vec<_>>()),
        }
    };
    buffers.iter().map(one).collect()
}

fn alone(func: TensorFunc) -> Module {
    let mut module = Module::new();
    module.insert("main", func);
    module
}

fn run(func: TensorFunc, inputs: &[Tensor]) -> Result<Tensor> {
    Ok(run_module(&alone(func), "main", inputs)?.swap_remove(0))
}

/// Runs a function as it is, scheduled, and scheduled and lowered, on every machine. Traces give the
/// same function when they are replayed, and no primitive is refused.
fn check(func: &TensorFunc) {
    let inputs = inputs(func).expect("inputs");
    let expected = run(func.clone(), &inputs).expect("the function runs");
    for target in &targets() {
        let module = alone(func.clone());
        let mut why = Remarks::new();
        let (traced, trace) = auto_schedule(&module, target, &mut why).expect("a schedule");
        assert!(why.is_empty(), "{}", why[0].render());
        let mut replayed = Schedule::new(module, Permissions::default());
        replayed.replay(&trace).expect("the trace runs");
        let traced = traced.tensor("main").expect("a function");
        let again = replayed.func("main").expect("a function");
        tensor_funcs(traced, again, &Equality::default()).expect("the same function");
        let scheduled = others(func, target, &mut why).expect("loops");
        let lowered = lower(&scheduled).expect("lowers");
        for (what, f) in [("scheduled", scheduled), ("lowered", lowered)] {
            let found = run(f, &inputs).unwrap_or_else(|e| panic!("{what}: {}", e.render()));
            assert_eq!(found.shape(), expected.shape());
            for i in 0..found.len() {
                let (x, y) = (found.get_f64(i), expected.get_f64(i));
                assert!(x == y, "{what} for {}: element {i} is {x}, not {y}\n{trace}", target.cpu);
            }
        }
    }
}

/// The only function of a text.
fn text(text: &str) -> TensorFunc {
    let module = parse_module(&Source::new("test.py", format!("@T.prim_func\n{text}")));
    let module = module.unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, func) = module.tensors().next().expect("a function");
    (**func).clone()
}

/// Blocks of one name are told apart.
#[test]
fn names_of_blocks_may_be_the_same() {
    let stage = "    for i, j in T.grid(64, 400):
        with T.block('y'):
            vi, vj = T.axis.remap('SS', [i, j])
            R[vi, vj] = x[vi, vj] + T.float32(1)
";
    let buffer = "T.Buffer((64, 400), 'float32')";
    let func = text(&format!(
        "def f(x: {buffer}, y: {buffer}, z: {buffer}):\n{}{}",
        stage.replace('R', "y"),
        stage.replace('R', "z")
    ));
    let mut why = Remarks::new();
    let scheduled = others(&func, &targets()[1], &mut why).expect("loops");
    assert!(why.is_empty(), "{}", why[0].render());
    let parallel = |s: &Stmt| matches!(s.kind(), StmtKind::For { kind: ForKind::Parallel, .. });
    let (_, body) = scheduled.root_parts();
    assert!(matches!(body.kind(), StmtKind::Seq(list) if list.iter().all(parallel)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn copies_across((a, b, c) in (1usize..4, 1usize..40, 1usize..40), size in 1usize..4) {
        let x = Operand::f32(&[a, b, c]);
        check(&movement::transpose(&x, &[0, 2, 1]).expect("a permutation"));
        check(&movement::transpose(&x, &[2, 1, 0]).expect("a permutation"));
        for dtype in [DType::U8, DType::I16] {
            let x = Operand::new(&[a, b, c], dtype);
            check(&movement::transpose(&x, &[0, 2, 1]).expect("a permutation"));
        }
        check(&movement::tile(&x, &[size, 1, 2]).expect("copies"));
        let image = Operand::f32(&[a, b * size * size, c, size]);
        let depth = movement::depth_to_space(&image, size, movement::DepthOrder::Dcr).expect("an image");
        check(&depth);
        let rows = Operand::f32(&[a, b, c * size, size]);
        check(&movement::space_to_depth(&rows, size).expect("an image"));
    }

    #[test]
    fn blocks_with_padding(n in 1i64..70, block in 1i64..20, pixels in 1i64..40, shift in 0i64..5) {
        let blocks = (n + block - 1) / block;
        let all = blocks * block;
        check(&text(&format!(
            "def f(x: T.Buffer(({n}, {pixels}), 'float32'), y: T.Buffer(({blocks}, {pixels}, {block}), 'float32')):
    for i, p, j in T.grid({blocks}, {pixels}, {block}):
        with T.block('y'):
            vi, vp, vj = T.axis.remap('SSS', [i, p, j])
            y[vi, vp, vj] = T.if_then_else(vi * {block} + vj < {n}, x[vi * {block} + vj, vp], T.float32(3))
"
        )));
        check(&text(&format!(
            "def f(x: T.Buffer(({all}, {pixels}), 'float32'), y: T.Buffer(({n}, {pixels}), 'float32')):
    for i, p in T.grid({n}, {pixels}):
        with T.block('y'):
            vi, vp = T.axis.remap('SS', [i, p])
            y[vi, vp] = x[(vi + {shift}) % {block} * {blocks} + vi // {block}, vp]
"
        )));
    }

    #[test]
    fn maps(shape in prop::array::uniform3(1usize..20), pads in prop::array::uniform3(-1i64..4)) {
        let x = Operand::f32(&shape);
        check(&unary(Unary::Relu, &x).expect("a map"));
        let row = Operand::f32(&[shape[1], 1]);
        check(&binary(Binary::Mul, &x, &row).expect("a map"));
        check(&movement::transpose(&x, &[2, 0, 1]).expect("a permutation"));
        let after = [pads[2], pads[0], pads[1]];
        let cut = |k: usize| shape[k] as i64 + pads[k] + after[k] > 0;
        if (0..3).all(cut) {
            let mode = pad::PadMode::Constant(tilewright_ops::Scalar::Float(3.0));
            check(&pad::pad(&x, &pads, &after, mode).expect("padding"));
        }
    }
}
