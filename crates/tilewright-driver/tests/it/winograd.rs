//! Convolutions by transforms against sums of products as the interpreter makes them.

use tilewright_driver::layout;
use tilewright_driver::pipeline::PipelineStage;
use tilewright_driver::random::Random;
use tilewright_driver::winograd::{Chosen, allowed, apply, chosen};
use tilewright_driver::{DType, IoLayout, LayoutPolicy, Options, Session, Target, Tensor, compile};
use tilewright_interp as interp;
use tilewright_ir::{
    Attrs, Binding, BindingBlock, GraphExpr, GraphFunc, GraphVar, Module, Remarks, TensorType,
};
use tilewright_ops::Operand;
use tilewright_ops::contraction::{Conv, conv};
use tilewright_ops::elementwise::{Binary, Unary, binary, unary};

/// The largest error, as a part of the largest result.
const ERROR: f64 = 2e-5;

/// A convolution with what follows it.
#[derive(Clone, Debug)]
struct Case {
    batch: usize,
    channels: [usize; 2],
    groups: usize,
    size: [usize; 2],
    before: [usize; 2],
    after: [usize; 2],
    bias: bool,
    relu: bool,
    /// Whether the data are added to the result.
    residual: bool,
    /// Whether the weights are given when it runs.
    given: bool,
    strides: [usize; 2],
    kernel: [usize; 2],
}

impl Case {
    fn new(channels: usize, size: usize) -> Case {
        Case {
            batch: 1,
            channels: [channels; 2],
            groups: 1,
            size: [size; 2],
            before: [1; 2],
            after: [1; 2],
            bias: false,
            relu: false,
            residual: false,
            given: false,
            strides: [1; 2],
            kernel: [3; 2],
        }
    }

    /// A convolution with few enough products for the interpreter.
    fn random(random: &mut Random) -> Case {
        loop {
            let mut upto = |n: usize| random.bits() as usize % n;
            let groups = [1, 1, 1, 2, 3][upto(5)];
            let channels = [1 + upto(70), 1 + upto(70)].map(|n| n.next_multiple_of(groups));
            let size = [1 + upto(40), 1 + upto(40)];
            let case = Case {
                batch: 1 + upto(2),
                channels,
                groups,
                size,
                before: [upto(3), upto(3)],
                after: [upto(3), upto(3)],
                bias: upto(2) == 0,
                relu: upto(2) == 0,
                residual: upto(3) == 0,
                ..Case::new(1, 1)
            };
            let fits = (0..2).all(|d| size[d] + case.before[d] + case.after[d] >= 3);
            let work = size[0] * size[1] * channels[0] / groups * channels[1] * case.batch;
            if fits && channels[0] > groups && work < 60_000 {
                return case;
            }
        }
    }

    fn tensor(random: &mut Random, shape: &[usize]) -> Tensor {
        random.tensor(DType::F32, shape).expect("a tensor")
    }

    /// The module, and its inputs.
    fn module(&self, random: &mut Random) -> (Module, Vec<Tensor>) {
        let [inputs, outputs] = self.channels;
        let x = [self.batch, inputs, self.size[0], self.size[1]];
        let w = [outputs, inputs / self.groups, self.kernel[0], self.kernel[1]];
        let p = Conv {
            groups: self.groups,
            bias: self.bias,
            pads_begin: self.before.to_vec(),
            pads_end: self.after.to_vec(),
            strides: self.strides.to_vec(),
            ..Conv::new(Operand::f32(&x), Operand::f32(&w))
        };
        let mut module = Module::new();
        let param = |name: &str, shape: &[usize]| {
            GraphVar::tensor(name, TensorType::fixed(shape, DType::F32))
        };
        let mut params = vec![param("x", &x)];
        let mut given = vec![Self::tensor(random, &x)];
        let mut args = vec![params[0].expr()];
        let weights = Self::tensor(random, &w);
        if self.given {
            params.push(param("w", &w));
            args.push(params[1].expr());
            given.push(weights);
        } else {
            args.push(GraphExpr::Const(weights));
        }
        args.extend(self.bias.then(|| GraphExpr::Const(Self::tensor(random, &[outputs]))));
        let func = conv(&p).expect("a convolution");
        let shape = func.buffers().last().and_then(|b| b.const_shape()).expect("fixed");
        let shape: Vec<usize> = shape.into_iter().map(|n| n as usize).collect();
        let ty = TensorType::fixed(&shape, DType::F32);
        let mut bindings: Vec<Binding> = Vec::new();
        let mut call = |module: &mut Module, name: &str, func, args| {
            module.insert(name, func);
            let var = GraphVar::tensor(format!("v_{name}"), ty.clone());
            let value = GraphExpr::call_tir(name, args, vec![ty.clone()]);
            bindings.push(Binding { var: var.clone(), value, span: None });
            var.expr()
        };
        let mut value = call(&mut module, "conv", func, args);
        let of = Operand::f32(&shape);
        if self.residual {
            params.push(param("y", &shape));
            given.push(Self::tensor(random, &shape));
            let args = vec![value, params[params.len() - 1].expr()];
            let add = binary(Binary::Add, &of, &of).expect("a sum");
            value = call(&mut module, "add", add, args);
        }
        if self.relu {
            let relu = unary(Unary::Relu, &of).expect("a map");
            value = call(&mut module, "relu", relu, vec![value]);
        }
        let outputs = bindings.last().map(|b| b.var.clone()).into_iter().collect();
        let block = BindingBlock { dataflow: true, bindings, outputs };
        let main = GraphFunc {
            params,
            ret_ty: None,
            blocks: vec![block],
            ret: value,
            attrs: Attrs::default(),
            private: false,
            span: None,
        };
        module.insert("main", main);
        (module, given)
    }
}

/// A module in a layout with its convolutions by transforms, and which these are.
fn transformed(
    module: &Module,
    layout: LayoutPolicy,
    error: f64,
    tile: Option<usize>,
    why: &mut Remarks,
) -> (Module, Vec<Chosen>) {
    let options = Options::new().threads(1);
    let laid_out = layout::lay_out(module, &options.clone().layout(layout)).expect("a layout").0;
    let options = options.layout(LayoutPolicy::AsWritten);
    let fused = Session::new(options.clone())
        .stages(&laid_out, PipelineStage::Fuse)
        .map(|staged| staged.module)
        .expect("fused");
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "");
    let made = apply(&fused, error, tile, &target, why).expect("transforms");
    let list = chosen(&made);
    (made, list)
}

/// By how much results differ, as a part of the largest.
fn difference(got: &[Tensor], exact: &[Tensor]) -> f64 {
    let numbers = |t: &[Tensor]| t[0].as_slice::<f32>().expect("floats").to_vec();
    let (got, exact) = (numbers(got), numbers(exact));
    assert_eq!(got.len(), exact.len());
    let largest = exact.iter().fold(f32::MIN_POSITIVE, |m, x| m.max(x.abs()));
    let worst = got
        .iter()
        .zip(&exact)
        .map(|(a, b)| if a.is_finite() { (a - b).abs() } else { f32::INFINITY });
    f64::from(worst.fold(0.0, f32::max) / largest)
}

const LAYOUTS: [LayoutPolicy; 4] = [
    LayoutPolicy::AsWritten,
    LayoutPolicy::ChannelsLast,
    LayoutPolicy::Blocked(16),
    LayoutPolicy::Plan,
];

/// Any sizes, channels, padding and groups, in any layout, with both tiles, compiled.
#[test]
fn transforms_compute_convolutions() {
    let mut random = Random::new(1);
    for k in 0..24 {
        let case = Case::random(&mut random);
        let (module, given) = case.module(&mut random);
        let exact = interp::run_module(&module, "main", &given).expect("exact");
        let (layout, tile) = (LAYOUTS[k % 4], [2, 4][k / 4 % 2]);
        let mut why = Remarks::new();
        let (made, list) = transformed(&module, layout, 1e-3, Some(tile), &mut why);
        assert_eq!(list.len(), 1, "{case:?} {layout:?} {why:?}");
        assert_eq!(list[0].tile, tile);
        let threads = 1 + k % 2;
        let options = Options::new().threads(threads).check(true).layout(LayoutPolicy::AsWritten);
        let got = compile(&made, &options).expect("compiled").run(&given).expect("a run");
        let error = difference(&got, &exact);
        assert!(error < ERROR, "{case:?} {layout:?} {tile}: {error}");
    }
}

/// What the interpreter makes of the functions is the convolution.
#[test]
fn the_functions_say_what_is_computed() {
    let mut random = Random::new(2);
    for tile in [2, 4] {
        for (rows, columns) in [(4, 8), (5, 3), (1, 6), (2, 2)] {
            let case = Case { size: [rows, columns], relu: true, ..Case::new(3, 1) };
            let (module, given) = case.module(&mut random);
            let exact = interp::run_module(&module, "main", &given).expect("exact");
            let (made, list) = transformed(
                &module,
                LayoutPolicy::AsWritten,
                1e-3,
                Some(tile),
                &mut Remarks::new(),
            );
            assert_eq!(list.len(), 1);
            let got = interp::run_module(&made, "main", &given).expect("transforms");
            assert!(difference(&got, &exact) < ERROR, "{case:?} {tile}");
        }
    }
}

/// The error that is measured is at least a third of what happens, and not more than a few times it.
#[test]
fn errors_are_those_that_are_measured() {
    let mut random = Random::new(3);
    let case = Case { channels: [40, 5], ..Case::new(40, 12) };
    let (module, given) = case.module(&mut random);
    let exact = interp::run_module(&module, "main", &given).expect("exact");
    for tile in [2, 4] {
        let (made, list) =
            transformed(&module, LayoutPolicy::AsWritten, 1e-3, Some(tile), &mut Remarks::new());
        let got = compile(&made, &Options::new().threads(1).layout(LayoutPolicy::AsWritten))
            .expect("compiled")
            .run(&given);
        let error = difference(&got.expect("a run"), &exact);
        let measured = list[0].error;
        assert!(error < 3.0 * measured && measured < 10.0 * error, "{tile}: {error}, {measured}");
    }
}

/// Data up to the limit overflow nowhere, and the limit is not far from where they do.
#[test]
fn data_up_to_the_limit_do_not_overflow() {
    let mut random = Random::new(8);
    for (k, tile) in [2, 4, 2, 4, 4, 2, 4, 2].into_iter().enumerate() {
        let case = Case { channels: [24, 20], groups: 1 + k % 2, size: [9, 9], ..Case::new(1, 1) };
        let (module, given) = case.module(&mut random);
        let layout = LAYOUTS[k % 4];
        let (made, list) = transformed(&module, layout, 1e-3, Some(tile), &mut Remarks::new());
        let program = compile(&made, &Options::new().threads(1).layout(LayoutPolicy::AsWritten))
            .expect("compiled");
        let overflows = |largest: f64| {
            // The signs decide what adds up.
            (0..50).any(|_| {
                let data: Vec<f32> = (0..given[0].bytes().len() / 4)
                    .map(|_| if random.unit() < 0.5 { -largest as f32 } else { largest as f32 })
                    .collect();
                let data = Tensor::from_slice(given[0].shape(), &data).expect("data");
                let got = program.run(&[data]).expect("a run");
                got[0].as_slice::<f32>().expect("floats").iter().any(|x| !x.is_finite())
            })
        };
        let mut overflows = overflows;
        assert!(list[0].limit > 1e30 && list[0].limit < 1e37, "{list:?}");
        assert!(!overflows(list[0].limit), "{case:?} {layout:?} {list:?}");
        assert!(overflows((list[0].limit * 200.0).min(3e38)), "{case:?} {layout:?} {list:?}");
    }
}

/// A tile whose error is too large is not taken, nor any without a budget.
#[test]
fn the_budget_decides() {
    let mut random = Random::new(4);
    let (module, _) = Case::new(64, 28).module(&mut random);
    let errors = [2, 4].map(|tile| {
        let (_, list) =
            transformed(&module, LayoutPolicy::AsWritten, 1e-3, Some(tile), &mut Remarks::new());
        list[0].error
    });
    assert!(errors[0] < errors[1], "{errors:?}");
    for (budget, tile, reason) in
        [(errors[1] / 2.0, 4, "tiles of 4 x 4 have an error of"), (0.0, 2, "more than 0.0e0")]
    {
        let mut why = Remarks::new();
        let (made, list) =
            transformed(&module, LayoutPolicy::AsWritten, budget, Some(tile), &mut why);
        assert!(list.is_empty() && made.tensors().count() == 1);
        let text: String = why.iter().map(|e| e.render()).collect();
        assert!(text.contains(reason), "{text}");
    }
    let options = Options::new().fast_math(0.0);
    let staged = Session::new(options.clone())
        .stages(&module, PipelineStage::Winograd)
        .map(|staged| staged.module)
        .expect("stages");
    assert!(chosen(&staged).is_empty());
}

/// What is no convolution of this kind stays, and it is said why.
#[test]
fn refusals_have_reasons() {
    let mut random = Random::new(5);
    let case = Case::new(8, 9);
    for (case, reason) in [
        (Case { strides: [2, 1], ..case.clone() }, "its windows move by more than a pixel"),
        (Case { kernel: [5, 3], ..case.clone() }, "its windows are 5 pixels long, not 3"),
        (Case { given: true, ..case.clone() }, "its weights are no constant"),
        (Case { groups: 8, ..case.clone() }, "its results are sums over one channel"),
    ] {
        let (module, _) = case.module(&mut random);
        let mut why = Remarks::new();
        let (_, list) = transformed(&module, LayoutPolicy::AsWritten, 1e-3, Some(4), &mut why);
        let text: String = why.iter().map(|e| e.render()).collect();
        assert!(list.is_empty() && text.contains(reason), "{case:?}: {text}");
    }
}

/// Without the option nothing changes; with it, convolutions of many channels are transformed.
#[test]
fn the_option_decides() {
    let mut random = Random::new(6);
    let (module, _) = Case::new(128, 28).module(&mut random);
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "");
    let of = |fast_math| {
        let options = Options::new().fast_math(fast_math).target(target.clone());
        let staged = Session::new(options.clone())
            .stages(&module, PipelineStage::Winograd)
            .map(|staged| staged.module);
        chosen(&staged.expect("stages")).len()
    };
    assert_eq!((of(None), of(Some(1e-3))), (0, 1));
}

/// What a plan costs: that of a convolution by transforms where an error allows it, and that of the sums
/// otherwise; and the pass computes what the plan counts on.
#[test]
fn plans_are_priced_with_transforms() {
    let mut random = Random::new(7);
    let case = Case { relu: true, ..Case::new(128, 28) };
    let (module, _) = case.module(&mut random);
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "");
    let planned = |module: &Module, fast_math| {
        let options = Options::new().threads(1).fast_math(fast_math).target(target.clone());
        let timings = options.timings_of(module).expect("timings");
        let (io, mut why) = (IoLayout::Logical, Remarks::new());
        let (after, plans, _) = layout::plan(module, &timings, io, &mut why).expect("a plan");
        let staged = Session::new(options.clone())
            .stages(&after, PipelineStage::Winograd)
            .map(|staged| staged.module)
            .expect("stages");
        let plan = &plans[0].plan;
        assert!(plan.alternatives.values().all(|c| c.get().is_none_or(|c| c >= plan.objective)));
        (plan.objective, chosen(&staged).len())
    };
    let direct = planned(&module, None);
    let (cost, count) = planned(&module, Some(1e-3));
    assert!(count == 1 && cost * 10 < direct.0 * 9, "{cost} of {}", direct.0);
    // No tile is exact enough, or the weights are not known.
    assert_eq!(planned(&module, Some(1e-12)), direct);
    let given = Case { given: true, ..case }.module(&mut random).0;
    assert_eq!(planned(&given, Some(1e-3)), planned(&given, None));
}

/// Of calls of one function, all have to be within the error.
#[test]
fn a_function_is_priced_by_the_worst_of_its_weights() {
    let mut random = Random::new(8);
    let (module, _) = Case::new(64, 14).module(&mut random);
    let worst = |module: &Module| {
        let (_, list) =
            transformed(module, LayoutPolicy::AsWritten, 1e-3, Some(4), &mut Remarks::new());
        list.iter().map(|c| c.error).fold(0.0, f64::max)
    };
    let error = worst(&module);
    let is_allowed = |module: &Module, error| !allowed(module, error).expect("errors").is_empty();
    // Tiles of 2 x 2 are more exact.
    assert!(is_allowed(&module, error * 4.0) && is_allowed(&module, error));
    assert!(!is_allowed(&module, error / 1e4));
    // A second call, whose weights are given when it runs.
    let entry = module.graph("main").expect("a graph").clone();
    let mut two = module.clone();
    let mut main = (*entry).clone();
    let block = &mut main.blocks[0];
    let first = block.bindings[0].clone();
    let GraphExpr::CallTir { func, args, outs, .. } = &first.value else { panic!("no call") };
    let w = GraphVar::tensor("w", TensorType::fixed(&[64, 64, 3, 3], DType::F32));
    let mut args = args.clone();
    args[1] = w.expr();
    let value = GraphExpr::call_tir(&**func, args, outs.clone());
    let var = GraphVar::tensor("second", outs[0].clone());
    block.bindings.push(Binding { var: var.clone(), value, span: None });
    block.outputs = vec![var.clone()];
    main.params.push(w);
    main.ret = var.expr();
    two.insert("main", main);
    assert!(!is_allowed(&two, error * 4.0));
}
