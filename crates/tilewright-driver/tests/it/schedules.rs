//! Automatic schedules of contractions: their traces, and the constants that they pack.

use tilewright_autoschedule::auto_schedule;
use tilewright_autoschedule::price::{Beside, KernelLoops, price};
use tilewright_driver::layout;
use tilewright_driver::passes::{self, Config};
use tilewright_driver::pipeline::PipelineStage;
use tilewright_driver::random::Random;
use tilewright_driver::schedule_script::apply;
use tilewright_driver::timings::Timings;
use tilewright_driver::{
    DType, IoLayout, LayoutPolicy, Module, Options, Session, Sizes, Target, Tensor, compile, parse,
    print,
};
use tilewright_interp as interp;
use tilewright_ir::equal::{Equality, tensor_funcs};
use tilewright_ir::{
    Attr, Attrs, Binding, BindingBlock, GraphExpr, GraphFunc, GraphType, GraphVar, Remarks, Source,
    TensorFunc, TensorType,
};
use tilewright_layout::marks::FREE_LAYOUT;
use tilewright_ops::Operand;
use tilewright_ops::contraction::{Conv, conv, matmul};
use tilewright_ops::elementwise::{Binary, binary};
use tilewright_schedule::{Permissions, Schedule};

/// A convolution of an image with so many channels, and as many results.
pub(crate) fn image(channels: usize, size: usize, kernel: usize, stride: usize) -> TensorFunc {
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

/// A convolution in groups, padded such that its result has the size of the image.
pub(crate) fn grouped(
    groups: usize,
    (inside, out): (usize, usize),
    size: usize,
    kernel: usize,
) -> TensorFunc {
    let pad = kernel / 2;
    let x = Operand::f32(&[1, groups * inside, size, size]);
    let p = Conv {
        bias: true,
        groups,
        pads_begin: vec![pad, pad],
        pads_end: vec![pad, pad],
        ..Conv::new(x, Operand::f32(&[groups * out, inside, kernel, kernel]))
    };
    conv(&p).expect("a convolution in groups")
}

/// A convolution of one channel each with channels innermost: what a layout of channels last makes
/// of it.
pub(crate) fn depthwise(channels: usize, size: usize) -> TensorFunc {
    let text = format!(
        "@T.prim_func
def main(x: T.Buffer(({size}, {size}, {channels}), \"float32\"), w: T.Buffer((3, 3, {channels}), \"float32\"), y: T.Buffer(({size}, {size}, {channels}), \"float32\")):
    p = T.alloc_buffer(({size} + 2, {size} + 2, {channels}), \"float32\")
    s = T.alloc_buffer(({size}, {size}, {channels}), \"float32\")
    for i, j, c in T.grid({size} + 2, {size} + 2, {channels}):
        with T.block(\"p\"):
            vi, vj, vc = T.axis.remap(\"SSS\", [i, j, c])
            p[vi, vj, vc] = T.if_then_else(vi >= 1 and vi < {size} + 1 and vj >= 1 and vj < {size} + 1, x[vi - 1, vj - 1, vc], T.float32(0))
    for i, j, c, ki, kj in T.grid({size}, {size}, {channels}, 3, 3):
        with T.block(\"s\"):
            vi, vj, vc, vki, vkj = T.axis.remap(\"SSSRR\", [i, j, c, ki, kj])
            with T.init():
                s[vi, vj, vc] = T.float32(0)
            s[vi, vj, vc] = s[vi, vj, vc] + p[vi + vki, vj + vkj, vc] * w[vki, vkj, vc]
    for i, j, c in T.grid({size}, {size}, {channels}):
        with T.block(\"y\"):
            vi, vj, vc = T.axis.remap(\"SSS\", [i, j, c])
            y[vi, vj, vc] = T.max(s[vi, vj, vc], T.float32(0))
"
    );
    let module = parse(&text, &Sizes::new()).expect("a module");
    module.tensor("main").expect("a function").as_ref().clone()
}

/// A convolution with channels innermost and a padded image: what a layout of channels last makes of it.
pub(crate) fn channels_last((inside, out): (usize, usize), size: usize) -> TensorFunc {
    let text = format!(
        "@T.prim_func
def main(x: T.Buffer(({size}, {size}, {inside}), \"float32\"), w: T.Buffer((3, 3, {inside}, {out}), \"float32\"), y: T.Buffer(({size}, {size}, {out}), \"float32\")):
    p = T.alloc_buffer(({size} + 2, {size} + 2, {inside}), \"float32\")
    s = T.alloc_buffer(({size}, {size}, {out}), \"float32\")
    for i, j, c in T.grid({size} + 2, {size} + 2, {inside}):
        with T.block(\"p\"):
            vi, vj, vc = T.axis.remap(\"SSS\", [i, j, c])
            p[vi, vj, vc] = T.if_then_else(vi >= 1 and vi < {size} + 1 and vj >= 1 and vj < {size} + 1, x[vi - 1, vj - 1, vc], T.float32(0))
    for i, j, c, k, ki, kj in T.grid({size}, {size}, {out}, {inside}, 3, 3):
        with T.block(\"s\"):
            vi, vj, vc, vk, vki, vkj = T.axis.remap(\"SSSRRR\", [i, j, c, k, ki, kj])
            with T.init():
                s[vi, vj, vc] = T.float32(0)
            s[vi, vj, vc] = s[vi, vj, vc] + p[vi + vki, vj + vkj, vk] * w[vki, vkj, vk, vc]
    for i, j, c in T.grid({size}, {size}, {out}):
        with T.block(\"y\"):
            vi, vj, vc = T.axis.remap(\"SSS\", [i, j, c])
            y[vi, vj, vc] = T.max(s[vi, vj, vc], T.float32(0))
"
    );
    let module = parse(&text, &Sizes::new()).expect("a module");
    module.tensor("main").expect("a function").as_ref().clone()
}

pub(crate) fn product(m: usize, k: usize, n: usize) -> TensorFunc {
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
    for func in [
        product(13, 37, 27),
        image(17, 9, 3, 1),
        image(16, 12, 1, 2),
        grouped(2, (16, 21), 7, 3),
        depthwise(36, 7),
        channels_last((19, 33), 6),
    ] {
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

const COPIES: &str = r#"
@T.prim_func
def scale(x: T.Buffer((6, 33, 20, 20), "float32"), s: T.Buffer((33,), "float32"), y: T.Buffer((6, 33, 20, 20), "float32")):
    for n, c, h, w in T.grid(6, 33, 20, 20):
        with T.block("scale"):
            vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
            y[vn, vc, vh, vw] = x[vn, vc, vh, vw] * s[vc]

@T.prim_func
def across(x: T.Buffer((24, 41), "float32"), y: T.Buffer((41, 24), "float32")):
    for i, j in T.grid(41, 24):
        with T.block("across"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vj, vi]

@T.prim_func
def shuffle(x: T.Buffer((5, 24), "float32"), y: T.Buffer((5, 24), "float32")):
    for i, c in T.grid(5, 24):
        with T.block("shuffle"):
            vi, vc = T.axis.remap("SS", [i, c])
            y[vi, vc] = x[vi, vc % 4 * 6 + vc // 4]

@T.prim_func
def pad(x: T.Buffer((3, 12, 12), "float32"), y: T.Buffer((3, 14, 14), "float32")):
    for c, h, w in T.grid(3, 14, 14):
        with T.block("pad"):
            vc, vh, vw = T.axis.remap("SSS", [c, h, w])
            y[vc, vh, vw] = T.if_then_else(vh >= 1 and vh < 13 and vw < 12, x[vc, vh - 1, vw], T.float32(2))
"#;

/// The trace of several functions without reductions is one script, which can be edited.
#[test]
fn a_trace_of_copies_that_is_edited_computes_the_same() {
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "");
    let module = parse(COPIES, &Sizes::default()).expect("it reads");
    let mut why = Remarks::new();
    let (_, trace) = auto_schedule(&module, &target, &mut why).expect("a schedule");
    assert!(why.is_empty(), "{}", why[0].render());
    let trace = trace.to_string();
    let edits = [
        ("factors=[5, 8]", "factors=[10, 4]"),
        ("factors=[6, 4]", "factors=[3, 8]"),
        ("sch.parallel(", "sch.unroll("),
        ("", ""),
    ];
    for (from, to) in edits {
        assert!(trace.contains(from), "{from}: {trace}");
        let mut edited = Schedule::new(module.clone(), Permissions::default());
        let script = Source::new("trace.py", trace.replace(from, to));
        apply(&mut edited, &script, |_, _| Ok(())).unwrap_or_else(|e| panic!("{}", e.render()));
        for (name, func) in module.tensors() {
            let mut buffers: Vec<_> = func.buffers().collect();
            buffers.pop();
            let mut random = Random::new(5);
            let given: Vec<Tensor> = buffers
                .iter()
                .map(|b| {
                    let shape = b.const_shape().expect("a shape");
                    let shape: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
                    let n: usize = shape.iter().product();
                    let data: Vec<f32> = (0..n).map(|_| (random.bits() % 100) as f32).collect();
                    Tensor::from_slice(&shape, &data).expect("a tensor")
                })
                .collect();
            let [expected, found] = [&module, edited.module()].map(|m| {
                let out = interp::run_module(m, name, &given).expect("it runs").swap_remove(0);
                (0..out.len()).map(|i| out.get_f64(i)).collect::<Vec<_>>()
            });
            assert_eq!(expected, found, "{name} with {to}");
        }
    }
}

/// Few channels of rows that are no whole vectors: pixels are the lanes, and what the last vector of a
/// row computes beyond it is not stored.
#[test]
fn vectors_of_pixels_end_behind_their_row() {
    for cpu in ["x86-64-v3", "x86-64-v4"] {
        let target = Target::new("x86_64-unknown-linux-gnu", cpu, "");
        let mut why = Remarks::new();
        let (scheduled, trace) =
            auto_schedule(&alone(image(5, 28, 3, 1)), &target, &mut why).expect("a schedule");
        assert!(why.is_empty(), "{}", why[0].render());
        let (trace, text) = (trace.to_string(), print(&scheduled));
        assert!(trace.contains("remove_branching_through_overcompute"), "{cpu}: {trace}");
        // The guard of the last vector is that of what stores alone.
        assert_eq!(text.matches("T.where").count(), 1, "{cpu}: {text}");
    }
}

/// The interpreter runs both modules on some inputs, which should give the same.
fn compute_the_same(scheduled: &Module, module: &Module, given: &[Tensor], cpu: &str) {
    let run =
        |module: &Module| interp::run_module(module, "main", given).expect("it runs").remove(0);
    let (found, expected) = (run(scheduled), run(module));
    for k in 0..expected.len() {
        let (a, b) = (found.get_f64(k), expected.get_f64(k));
        assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{cpu}: {k} is {a}, not {b}");
    }
}

/// Few columns that whole vectors leave over are vectors along the reduction, of every number of rows,
/// whatever is left over of the reduction, and with each of both operands.
#[test]
fn few_columns_are_vectors_along_the_reduction() {
    let linux = |arch: &str, cpu: &str| Target::new(format!("{arch}-unknown-linux-gnu"), cpu, "");
    let targets = [("x86_64", "x86-64-v3"), ("x86_64", "x86-64-v4"), ("aarch64", "neoverse-n1")];
    let mut random = Random::new(12);
    for (arch, cpu) in targets {
        let target = linux(arch, cpu);
        let lanes = target.vectors.lanes(4) as usize;
        let mut narrow = 0;
        for round in 0..16 {
            let mut below = |most: u64| (random.bits() % most) as usize;
            let few = 1 + round % 7 % 3;
            let columns = lanes * (1 + round % 5) + few;
            let func = match round % 4 {
                0 => product(1 + below(15), 1 + below(200), columns),
                3 => channels_last((lanes + below(9), columns), 2 + round % 5),
                _ => product(4 + below(12), lanes * (5 + below(6)) + below(4), columns),
            };
            let module = alone(func.clone());
            let mut why = Remarks::new();
            let (scheduled, trace) = auto_schedule(&module, &target, &mut why).expect("tiles");
            assert!(why.is_empty(), "{cpu}: {}", why[0].render());
            narrow += usize::from(trace.to_string().contains("rfactor"));
            let buffers: Vec<_> = func.buffers().collect();
            let given: Vec<Tensor> = buffers[..buffers.len() - 1]
                .iter()
                .map(|b| {
                    let shape = b.const_shape().expect("a shape");
                    let shape: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
                    random.tensor(DType::F32, &shape).expect("a tensor")
                })
                .collect();
            compute_the_same(&scheduled, &module, &given, cpu);
        }
        assert!(narrow > 0, "{cpu}");
    }
}

/// A product and what a sigmoid makes of it, as one function.
fn with_sigmoid(m: usize, n: usize, k: usize) -> Module {
    let text = format!(
        "@T.prim_func
def main(A: T.Buffer(({m}, {k})), B: T.Buffer(({k}, {n})), D: T.Buffer(({m}, {n}))):
    T.func_attr({{'layout_free_buffers': [1]}})
    C = T.alloc_buffer(({m}, {n}))
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block('C'):
            vi, vj, vk = T.axis.remap('SSR', [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid({m}, {n}):
        with T.block('D'):
            vi, vj = T.axis.remap('SS', [i, j])
            D[vi, vj] = C[vi, vj] * T.sigmoid(C[vi, vj])
"
    );
    parse(&text, &Sizes::default()).expect("a module")
}

/// Where much follows of a sum, it is in a loop over the rows of a copy of the sums, whatever is left over of
/// rows and columns.
#[test]
fn long_epilogues_are_loops() {
    let mut random = Random::new(3);
    let sizes = [(12, 64, 66), (13, 70, 33), (5, 33, 9), (29, 16, 40), (1, 64, 16), (31, 129, 20)];
    for cpu in ["x86-64-v3", "x86-64-v4"] {
        let target = Target::new("x86_64-unknown-linux-gnu", cpu, "");
        let mut copied = 0;
        for (m, n, k) in sizes {
            let module = with_sigmoid(m, n, k);
            let mut why = Remarks::new();
            let (scheduled, trace) = auto_schedule(&module, &target, &mut why).expect("tiles");
            assert!(why.is_empty(), "{cpu}: {}", why[0].render());
            let trace = trace.to_string();
            let of_sums = |l: &str| l.contains("cache_read") && l.contains("\"local\"");
            copied += usize::from(trace.lines().any(of_sums));
            let mut tensor = |shape: &[usize]| random.tensor(DType::F32, shape).expect("a tensor");
            let given = [tensor(&[m, k]), tensor(&[k, n])];
            compute_the_same(&scheduled, &module, &given, cpu);
        }
        assert!(copied >= 3, "{cpu}: {copied}");
    }
}

/// A graph that calls a function on one input and on constants for all others, and so many times in
/// all on what came before.
pub(crate) fn chain(func: &TensorFunc, times: usize, random: &mut Random) -> Module {
    let types: Vec<TensorType> =
        func.buffers().map(|b| TensorType { shape: b.shape.clone(), dtype: b.dtype() }).collect();
    let (out, given) = types.split_last().expect("a result");
    let x = GraphVar::tensor("x", given[0].clone());
    let mut bindings: Vec<Binding> = Vec::new();
    for _ in 0..times {
        let last = bindings.last().map_or_else(|| x.expr(), |b| b.var.expr());
        let mut args = vec![last];
        for ty in &given[1..] {
            let shape = ty.const_shape().expect("a constant shape");
            args.push(GraphExpr::Const(random.tensor(DType::F32, &shape).expect("a tensor")));
        }
        let value = GraphExpr::call_tir("f", args, vec![out.clone()]);
        bindings.push(Binding { var: GraphVar::tensor("y", out.clone()), value, span: None });
    }
    let y = bindings.last().expect("a call").var.clone();
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

/// How many functions a run calls.
fn calls(module: &Module) -> usize {
    let graph = module.graphs().next().expect("a graph").1;
    graph.bindings().filter(|b| matches!(b.value, GraphExpr::CallTir { .. })).count()
}

/// Compiles a module and runs it; the interpreter runs another one, which should give the same.
fn agree(compiled: &Module, interpreted: &Module, func: &TensorFunc, random: &mut Random) {
    let shape = &func.buffers().next().expect("an input").const_shape().unwrap();
    let shape: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
    let x = random.tensor(DType::F32, &shape).expect("a tensor");
    let options = Options::new().threads(1).cache(false);
    let executable = compile(compiled, &options).expect("it compiles");
    let found = executable.run(std::slice::from_ref(&x)).unwrap();
    let expected: Vec<Tensor> = interp::run_module(interpreted, "main", &[x]).expect("it runs");
    for k in 0..expected[0].len() {
        let (a, b) = (found[0].get_f64(k), expected[0].get_f64(k));
        assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "element {k} is {a}, not {b}");
    }
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
        let module = chain(&func, 1, &mut random);
        let scheduled = tiled(&module, &target);
        assert_eq!(calls(&scheduled), 1, "nothing is packed in a run");
        agree(&scheduled, &module, &func, &mut random);
    }
}

#[test]
fn compilation_packs_constants() {
    let mut random = Random::new(6);
    // 24 lanes of 3 vectors, a tail of rows, results whose lanes lie apart, and lanes that end early.
    let images = [image(17, 9, 3, 1), image(24, 7, 1, 1), image(65, 6, 3, 2)];
    // Few channels of rows that are no whole vectors, shorter and longer than a tile.
    let rows = [image(5, 20, 3, 1), image(3, 17, 5, 1), image(7, 57, 3, 1), image(5, 41, 3, 1)];
    // Groups of whole vectors, and of a vector and a part; a window for each channel.
    let apart = [grouped(2, (16, 32), 7, 3), grouped(3, (9, 21), 8, 3), depthwise(48, 9)];
    let parts = [depthwise(40, 9), depthwise(88, 10), depthwise(100, 7), depthwise(20, 11)];
    // Few columns more than whole vectors.
    let few = [product(29, 77, 65), product(40, 64, 34), channels_last((37, 33), 9)];
    let all = [product(13, 37, 27)]
        .into_iter()
        .chain(images)
        .chain(rows)
        .chain(apart)
        .chain(parts)
        .chain(few);
    for func in all {
        let module = chain(&func, 1, &mut random);
        let options = Options::new().threads(1).layout(LayoutPolicy::AsWritten);
        let done = Session::new(options.clone())
            .stages(&module, PipelineStage::Schedule)
            .map(|staged| staged.module)
            .expect("it runs");
        assert_eq!(calls(&done), 1, "nothing is packed in a run");
        agree(&module, &module, &func, &mut random);
    }
}

#[test]
fn layouts_are_chosen_by_price() {
    let mut random = Random::new(7);
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "");
    let timings = Timings::estimated(&target, 1);
    let choose = |module: &Module| {
        layout::choose(module, &timings, IoLayout::Logical, &mut Remarks::new()).expect("a layout")
    };
    // Products have no such layout, and one small convolution does not pay for two conversions.
    let module = chain(&product(64, 64, 64), 1, &mut random);
    assert_eq!(print(&choose(&module).0), print(&module));
    assert!(choose(&chain(&image(3, 8, 3, 1), 1, &mut random)).1.is_empty());
    // Results of one by one convolutions with many channels are written in vectors there.
    let module = chain(&image(128, 14, 1, 1), 8, &mut random);
    let chosen = print(&choose(&module).0);
    assert!(chosen.contains("(1, 14, 14, 128)"), "{}", &chosen[..2000]);
}

#[test]
fn prices_of_groups_of_threads_count_kernels_and_bytes() {
    let mut random = Random::new(11);
    let target = Target::new("cuda", "sm_90", "");
    let costs = target.groups.as_ref().expect("groups of threads").costs;
    let launch = costs.launch as f64;
    // What pays on a processor does not pay for two kernels more.
    let timings = Timings::estimated(&target, 1);
    let module = chain(&image(128, 14, 1, 1), 2, &mut random);
    let choice = layout::choose(&module, &timings, IoLayout::Logical, &mut Remarks::new());
    let (chosen, moved) = choice.expect("a layout");
    assert!(moved.is_empty() && !print(&chosen).contains("(1, 14, 14, 128)"));
    let cost = |lines: &str, beside: &Beside<'_>| {
        let text = format!(
            "@T.prim_func\ndef f(x: T.Buffer((4096, 3001), 'float32'), y: T.Buffer((3001, 4096), \
             'float32'), z: T.Buffer((4096, 3001), 'float32')):\n    {lines}\n"
        );
        let module = parse(&text, &Sizes::new()).expect("it parses");
        KernelLoops::from_func(module.tensor("f").expect("f"), beside, &target).cycles(0, &target)
    };
    let stage = |value: &str| {
        format!(
            "for i, j in T.grid(4096, 3001):\n        with T.sblock('b'):\n            \
             vi, vj = T.axis.remap('SS', [i, j])\n            z[vi, vj] = {value}"
        )
    };
    let cells = 4096.0 * 3001.0 * 4.0 / costs.bytes as f64;
    let beside = Beside::default();
    let copy = cost(&stage("x[vi, vj] + 1.0"), &beside);
    assert!((copy - launch - 2.0 * cells).abs() < 1.0, "{copy}");
    // A copy across goes through shared memory; a column of every row is a segment each.
    let across = cost(&stage("y[vj, vi] + 1.0"), &beside);
    assert!((across - copy).abs() < 1.0, "{across} {copy}");
    let twice = cost(&stage("x[vi, vj] * y[vj, vi] + x[(vi + 1) % 4096, vj]"), &beside);
    assert!((twice - launch - 3.0 * cells).abs() < 1.0, "{twice}");
    let columns = cost(&stage("y[(vj * 2) % 3001, vi] + y[vj, vi]"), &beside);
    assert!(columns > 2.0 * copy, "{columns} {copy}");
    // What is in registers costs what else is read.
    let joined = Beside { joined: &[true, false, false], ..beside };
    let after = cost(&stage("x[vi, vj] + 1.0"), &joined);
    assert!(after < 0.1 * launch, "{after}");
}

#[test]
fn prices_of_loops_that_are_no_stages_count_what_runs() {
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "");
    let cost = |steps: usize, at: &str| {
        let text = format!(
            "@T.prim_func\ndef f(x: T.Buffer((64, 768), 'float32'), y: T.Buffer((768,), 'float32')):\n    \
             for t in range({steps}):\n        for k, i in T.grid(16, 768):\n            \
             y[i] = y[i] * x[k, {at}] + x[t, 0]\n"
        );
        let module = parse(&text, &Sizes::new());
        price(module.expect("it parses").tensor("f").expect("f"), &[], 0, &target).cycles
    };
    let (few, many) = (cost(8, "i"), cost(64, "i"));
    assert!(7.0 * few < many && many < 8.5 * few, "{few} {many}");
    // Without vectors, eight times as much at the least.
    assert!(cost(64, "767 - i") > 4.0 * many);
}

#[test]
fn prices_count_work_and_packing() {
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "");
    let cost = |func: &TensorFunc, free: &[bool]| price(func, free, 0, &target).cycles;
    let (small, large) = (product(64, 64, 64), product(64, 64, 128));
    assert!(cost(&small, &[false, true]) < cost(&large, &[false, true]));
    assert!(cost(&large, &[false, true]) < 3.0 * cost(&small, &[false, true]));
    assert!(cost(&small, &[false, true]) <= cost(&small, &[false, false]));
    // Half of the products in two groups; rows of 14 pixels are no vectors, but images are.
    let free = [false, true, false];
    let (one, two) = (grouped(1, (128, 128), 14, 3), grouped(2, (64, 64), 14, 3));
    let (one, two) = (cost(&one, &free), cost(&two, &free));
    assert!(0.4 * one < two && two < 0.7 * one, "{one} {two}");
    assert!(price(&depthwise(64, 14), &free, 0, &target).tiled);
    // Elementwise work costs little where it joins the function before it, and loads once what it reads
    // twice.
    let shape = Operand::f32(&[1, 64, 28, 28]);
    let sum = binary(Binary::Add, &shape, &shape).expect("a sum");
    let double = binary(Binary::Add, &shape, &Operand::f32(&[1, 64, 1, 1])).expect("a sum");
    let cost = |f: &TensorFunc, joined: [bool; 2]| {
        let beside = Beside { joined: &joined, ..Beside::default() };
        KernelLoops::from_func(f, &beside, &target).cycles(0, &target)
    };
    let [apart, joined] = [[false; 2], [true, false]];
    assert!(cost(&double, joined) < 0.5 * cost(&double, apart));
    assert!(cost(&double, apart) < cost(&sum, apart));
    assert!(cost(&sum, [true; 2]) < cost(&sum, joined) && cost(&sum, joined) < cost(&sum, apart));
    // A kernel begins once, and stores its result once.
    let beside = Beside { further: true, reduced: true, ..Beside::default() };
    let further = KernelLoops::from_func(&sum, &beside, &target).cycles(0, &target);
    assert!(further < 0.8 * cost(&sum, apart) && further > 0.5 * cost(&sum, apart));
}
