//! Automatic schedules of contractions: their traces, and the constants that they pack.

use tilewright::schedule::{Permissions, Schedule};
use tilewright::unstable::auto::auto_schedule;
use tilewright::unstable::interp;
use tilewright::unstable::ir::equal::{Equality, tensor_funcs};
use tilewright::unstable::ir::{
    Attr, Attrs, Binding, BindingBlock, GraphExpr, GraphFunc, GraphType, GraphVar, Remarks, Source,
    TensorFunc, TensorType,
};
use tilewright::unstable::ops::Operand;
use tilewright::unstable::ops::contraction::{Conv, conv, matmul};
use tilewright::unstable::passes::{self, Config};
use tilewright::unstable::random::Random;
use tilewright::unstable::schedule::FREE_LAYOUT;
use tilewright::unstable::schedule_script::apply;
use tilewright::{DType, Module, Options, Target, Tensor, compile};

/// A convolution of an image with so many channels, and as many results.
fn image(channels: usize, size: usize, kernel: usize, stride: usize) -> TensorFunc {
    let pad = kernel / 2;
    let (x, w) = ([1, channels, size, size], [channels, channels, kernel, kernel]);
    let p = Conv {
        bias: true,
        strides: vec![stride, stride],
        pads_begin: vec![pad, pad],
        pads_end: vec![pad, pad],
        ..Conv::new(Operand::f32(&x), Operand::f32(&w))
    };
    conv(&p).expect("a convolution")
}

fn product(m: usize, k: usize, n: usize) -> TensorFunc {
    matmul(&Operand::f32(&[m, k]), &Operand::f32(&[k, n])).expect("a product")
}

/// A module of one function whose second argument is the same in every run.
fn alone(mut func: TensorFunc) -> Module {
    func.attrs.insert(FREE_LAYOUT.into(), Attr::List(vec![Attr::Int(1)]));
    let mut module = Module::new();
    module.insert("main", func);
    module
}

#[test]
fn a_trace_that_is_replayed_gives_the_same_module() {
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "");
    for func in [product(13, 37, 27), product(48, 33, 64), image(17, 9, 3, 1), image(16, 12, 1, 2)]
    {
        let module = alone(func);
        let mut why = Remarks::new();
        let (scheduled, trace) = auto_schedule(&module, &target, &mut why).expect("a schedule");
        assert!(why.is_empty(), "{}", why[0].render());
        assert!(!trace.instructions.is_empty());
        let mut replayed = Schedule::new(module, Permissions::default());
        let script = Source::new("trace.py", trace.to_string());
        apply(&mut replayed, &script, |_, _| Ok(())).expect("the trace runs");
        let (a, b) = (scheduled.tensor("main").unwrap(), replayed.func("main").unwrap());
        tensor_funcs(a, b, &Equality::default()).expect("the same function");
    }
}

/// A graph that calls a function on one input and on constants for all others.
fn with_constants(func: &TensorFunc, random: &mut Random) -> Module {
    let types: Vec<TensorType> =
        func.buffers().map(|b| TensorType { shape: b.shape.clone(), dtype: b.dtype() }).collect();
    let (out, given) = types.split_last().expect("a result");
    let x = GraphVar::tensor("x", given[0].clone());
    let mut args = vec![x.expr()];
    for ty in &given[1..] {
        let shape = ty.const_shape().expect("a constant shape");
        args.push(GraphExpr::Const(random.tensor(DType::F32, &shape).expect("a tensor")));
    }
    let y = GraphVar::tensor("y", out.clone());
    let value = GraphExpr::call_tir("f", args, vec![out.clone()]);
    let bindings = vec![Binding { var: y.clone(), value, span: None }];
    let graph = GraphFunc {
        params: vec![x],
        ret_ty: Some(GraphType::Tensor(out.clone())),
        blocks: vec![BindingBlock { dataflow: true, bindings, outputs: vec![y.clone()] }],
        ret: y.expr(),
        attrs: Attrs::default(),
        private: false,
        span: None,
    };
    let mut module = Module::new();
    module.insert("f", func.clone());
    module.insert("main", graph);
    module
}

/// The module with tiles for its contractions, and with their constants packed.
fn tiled(module: &Module, target: &Target) -> Module {
    let config = Config::new()
        .with("auto_schedule.triple", &target.triple)
        .with("auto_schedule.cpu", &target.cpu);
    let names = ["mark_free_layout", "auto_schedule", "lift_layout", "fold_constant"];
    names.iter().fold(module.clone(), |module, name| {
        let pass = passes::find(name).expect("a pass");
        passes::run(pass, &module, &config, &mut Remarks::new()).expect("it runs")
    })
}

#[test]
fn constants_are_packed_when_compiling() {
    let mut random = Random::new(5);
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "");
    for func in [product(13, 37, 27), image(17, 9, 3, 1), image(5, 7, 1, 1), image(33, 8, 3, 2)] {
        let module = with_constants(&func, &mut random);
        let scheduled = tiled(&module, &target);
        let graph = scheduled.graphs().next().expect("a graph").1;
        let calls = graph.bindings().filter(|b| matches!(b.value, GraphExpr::CallTir { .. }));
        assert_eq!(calls.count(), 1, "nothing is packed in a run");
        let shape = &func.buffers().next().expect("an input").const_shape().unwrap();
        let shape: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
        let x = random.tensor(DType::F32, &shape).expect("a tensor");
        let options = Options { cache: false, ..Options::with_threads(1) };
        let found = compile(&scheduled, &options)
            .expect("it compiles")
            .run(std::slice::from_ref(&x))
            .unwrap();
        let expected: Vec<Tensor> = interp::run_module(&module, "main", &[x]).expect("it runs");
        for k in 0..expected[0].len() {
            let (a, b) = (found[0].get_f64(k), expected[0].get_f64(k));
            assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "element {k} is {a}, not {b}");
        }
    }
}
