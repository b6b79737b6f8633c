//! Random graphs of concatenations, splits and slices: parts that lie in the whole compute what copies
//! do.

use tilewright_autoschedule as auto;
use tilewright_driver::compare::compare;
use tilewright_driver::pipeline::PipelineStage;
use tilewright_driver::program::Program;
use tilewright_driver::random::Random;
use tilewright_driver::{DType, LayoutPolicy, Options, Result, Session, Sizes, Tensor, compile};
use tilewright_graph::sizes::fill;
use tilewright_interp::run_module;
use tilewright_ir::{Dim, GraphVar, Lowered, Module, TensorType, Var, dim};
use tilewright_layout::parts::place_parts;
use tilewright_ops::contraction::{Conv, conv, matmul};
use tilewright_ops::elementwise::{Binary, Unary, binary, unary};
use tilewright_ops::movement::{concat, reshape, slice, split, transpose};
use tilewright_ops::pool::{Pool, max_pool};
use tilewright_ops::{Operand, results};
use tilewright_transform::pass::Config;

use super::{Graph, input, tolerance};

/// Graphs that are tried, unless the environment variable `TILEWRIGHT_FUZZ_ITERS` says how many; the
/// first one is that of `TILEWRIGHT_FUZZ_SEED`, else of 0.
const GRAPHS: u64 = 40;

/// Functions of a graph.
const CALLS: usize = 16;

/// Elements that no tensor has more of.
const LARGEST: usize = 20_000;

fn seeds() -> std::ops::Range<u64> {
    let asked = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let first = asked("TILEWRIGHT_FUZZ_SEED").unwrap_or(0);
    first..first + asked("TILEWRIGHT_FUZZ_ITERS").unwrap_or(GRAPHS)
}

/// A graph under construction: tensors of four axes.
struct Maker {
    random: Random,
    graph: Graph,
    /// Extents are multiples of it, or of anything.
    wide: usize,
    values: Vec<(GraphVar, Operand)>,
    /// What has been an operand of a concatenation.
    joined: Vec<(GraphVar, Operand)>,
}

impl Maker {
    fn new(seed: u64, wide: usize, [batch, rows]: [Option<Dim>; 2]) -> Result<Maker> {
        let mut maker = Maker {
            random: Random::new(seed),
            graph: Graph::new(Vec::new()),
            wide,
            values: Vec::new(),
            joined: Vec::new(),
        };
        let batch = batch.unwrap_or(Dim::from(1 + maker.below(2)));
        let (h, w) = (2 + maker.below(4), 2 + maker.below(4));
        let h = rows.unwrap_or(Dim::from(h));
        for i in 0..1 + maker.below(2) {
            let c = wide * (1 + maker.below(3));
            let shape = [batch, c.into(), h, w.into()];
            let of = Operand::f32(&shape);
            let var = GraphVar::tensor(format!("x{i}"), tensor_type(&of));
            maker.graph.params.push(var.clone());
            maker.values.push((var, of));
        }
        let mut calls = 0;
        while calls < CALLS {
            calls += usize::from(maker.add()?);
        }
        Ok(maker)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.random.bits() % n.max(1) as u64) as usize
    }

    /// The last ones more often.
    fn any(&mut self) -> (GraphVar, Operand) {
        let n = self.values.len();
        let back = self.below(n).min(self.below(n));
        self.values[n - 1 - back].clone()
    }

    fn call(&mut self, func: tilewright_ir::TensorFunc, args: &[GraphVar], count: usize) -> bool {
        let outs = results(&func, count);
        let large = |of: &Operand| {
            let cells = dim::product(of.shape.iter().copied()).value(&|_| Some(3));
            cells.is_none_or(|n| n > LARGEST || n == 0)
        };
        if outs.iter().any(large) {
            return false;
        }
        let types: Vec<TensorType> = outs.iter().map(tensor_type).collect();
        let vars = self.graph.call(func, args, &types);
        self.values.extend(vars.into_iter().zip(outs));
        true
    }

    fn constant(&mut self, shape: &[usize]) -> Result<(GraphVar, Operand)> {
        let tensor = input(&mut self.random, DType::F32, shape)?;
        let terms = shape.get(1..).unwrap_or_default().iter().product::<usize>().max(1) as f32;
        let values = tensor.as_slice::<f32>().unwrap_or_default();
        let values: Vec<f32> = values.iter().map(|v| v / terms).collect();
        let tensor = Tensor::from_slice(shape, &values)?;
        let ty = TensorType::fixed(shape, DType::F32);
        let value = tilewright_ir::GraphExpr::Const(tensor);
        let var = self.graph.bind(tilewright_ir::GraphType::Tensor(ty), value);
        Ok((var, Operand::f32(shape)))
    }

    /// Adds a call, or nothing where what was drawn does not fit together.
    fn add(&mut self) -> Result<bool> {
        let (x, of) = self.any();
        let shape = of.shape.clone();
        let axis = 1 + self.below(3);
        let along = shape[axis].known().unwrap_or(1);
        match self.below(14) {
            0..=3 => {
                let mut parts = vec![(x, of)];
                for _ in 0..1 + self.below(3) {
                    let (y, other) = self.any();
                    let fits = |k: usize| k == axis || other.shape[k] == shape[k];
                    if (0..4).all(fits) {
                        parts.push((y, other));
                    }
                }
                let known = dim::known(&shape);
                if let (0, Some(shape)) = (self.below(5), known) {
                    parts.push(self.constant(&shape)?);
                }
                let at = self.below(parts.len());
                parts.swap(0, at);
                if parts.len() < 2 {
                    return Ok(false);
                }
                // Most are computed for this alone.
                for part in &mut parts {
                    let func = unary(Unary::Neg, &part.1)?;
                    if self.below(3) > 0 && self.call(func, std::slice::from_ref(&part.0), 1) {
                        *part = self.values[self.values.len() - 1].clone();
                    }
                }
                self.joined.extend(parts.iter().cloned());
                let (vars, operands): (Vec<GraphVar>, Vec<Operand>) = parts.into_iter().unzip();
                Ok(self.call(concat(&operands, axis as i64)?, &vars, 1))
            }
            4 | 12 if along > 1 => {
                let at = match axis {
                    1 if along > self.wide => self.wide * (1 + self.below(along / self.wide - 1)),
                    1 => return Ok(false),
                    _ => 1 + self.below(along - 1),
                };
                let func = split(&of, axis as i64, &[at, along - at])?;
                Ok(self.call(func, &[x], 2))
            }
            5 | 13 if along > 1 => {
                // Channels mostly by whole blocks.
                let by = if axis == 1 && self.below(3) > 0 { self.wide } else { 1 };
                let (along, step) = (along / by, 1 + self.below(2) as i64);
                let from = self.below(along.max(2) - 1);
                let to = from + 1 + self.below(along - from);
                let [from, to] = [from, to].map(|n| (n * by) as i64);
                Ok(self.call(slice(&of, &[from], &[to], &[axis as i64], &[step])?, &[x], 1))
            }
            6 if shape[1].known().is_some() => {
                let out = self.wide * (1 + self.below(3));
                let kernel = 1 + 2 * self.below(2);
                let (w, weights) =
                    self.constant(&[out, shape[1].known().unwrap_or(1), kernel, kernel])?;
                let pads = vec![kernel / 2; 2];
                let p = Conv { pads_begin: pads.clone(), pads_end: pads, ..Conv::new(of, weights) };
                Ok(self.call(conv(&p)?, &[x, w], 1))
            }
            7 if shape[2].at_least(3) && shape[3].at_least(3) => {
                let pads = vec![1; 2];
                let p = Pool { pads_begin: pads.clone(), pads_end: pads, ..Pool::new(of, &[3, 3]) };
                Ok(self.call(max_pool(&p)?, &[x], 1))
            }
            8 => {
                // There and back: a view.
                let flat = vec![shape[0], shape[1], shape[2] * shape[3], Dim::from(1)];
                Ok(self.call(reshape(&of, &flat)?, &[x], 1))
            }
            9 if self.below(3) == 0 => {
                let axes = [[0, 1, 3, 2], [0, 2, 1, 3], [0, 2, 3, 1]][self.below(3)];
                Ok(self.call(transpose(&of, &axes)?, &[x], 1))
            }
            9 if shape[3].known().is_some() => {
                let to = self.wide * (1 + self.below(2));
                let (w, weights) = self.constant(&[shape[3].known().unwrap_or(1), to])?;
                Ok(self.call(matmul(&of, &weights)?, &[x, w], 1))
            }
            10 => {
                let (y, other) = self.any();
                match binary(Binary::Add, &of, &other) {
                    Ok(func) if other.shape.len() == 4 => Ok(self.call(func, &[x, y], 1)),
                    _ => Ok(false),
                }
            }
            _ => {
                let op = [Unary::Relu, Unary::Neg, Unary::Abs][self.below(3)];
                Ok(self.call(unary(op, &of)?, &[x], 1))
            }
        }
    }

    /// The module, with the last value and some others as results: parts among them.
    fn finish(mut self) -> (Module, Vec<GraphVar>, Random) {
        let mut outputs: Vec<_> = self.values.last().map(|v| v.0.expr()).into_iter().collect();
        for _ in 0..self.below(3) {
            outputs.push(self.any().0.expr());
        }
        if let (0, n @ 1..) = (self.below(3), self.joined.len()) {
            let k = self.below(n);
            outputs.push(self.joined[k].0.expr());
        }
        let params = self.graph.params.clone();
        (self.graph.returning(outputs), params, self.random)
    }
}

fn tensor_type(of: &Operand) -> TensorType {
    TensorType { shape: of.shape.iter().map(|d| d.wide()).collect(), dtype: of.dtype }
}

fn inputs(params: &[GraphVar], batch: usize, random: &mut Random) -> Result<Vec<Tensor>> {
    let one = |p: &GraphVar| {
        let ty = p.ty().as_tensor().expect("a tensor");
        let shape = dim::of_shape(&ty.shape).expect("sizes").into_iter();
        let shape: Option<Vec<usize>> = shape.map(|d| d.value(&|_| Some(batch))).collect();
        input(random, DType::F32, &shape.expect("numbers"))
    };
    params.iter().map(one).collect()
}

fn assert_agree(what: &str, got: &[Tensor], expected: &[Tensor]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (got, expected) in got.iter().zip(expected) {
        let values = (0..expected.len()).map(|k| expected.get_f64(k).abs());
        let largest = values.filter(|v| v.is_finite()).fold(0.0, f64::max);
        let mut tolerance = tolerance(expected.dtype());
        tolerance.absolute += tolerance.relative * largest;
        let comparison = compare(got, expected, tolerance);
        assert!(comparison.agrees(), "{what}: {comparison}");
    }
}

/// Ends the test with an error.
fn fails<T>(what: &str) -> impl Fn(tilewright_driver::Error) -> T {
    move |e| panic!("{what}: {}", e.render())
}

fn options(layout: LayoutPolicy, threads: usize) -> Options {
    Options::new().threads(threads).cache(false).check(true).layout(layout)
}

/// How many functions of a module run no code, since what they join, and what they cut out, lies in
/// place.
fn in_place(module: &Module) -> [usize; 2] {
    ["tilewright.parts", "tilewright.slice"]
        .map(|key| module.tensors().filter(|(_, f)| f.attrs.contains_key(key)).count())
}

fn add(to: &mut [usize; 2], found: [usize; 2]) {
    to.iter_mut().zip(found).for_each(|(to, n)| *to += n);
}

/// Each graph in some layout, on one thread and on two.
#[test]
fn graphs_of_parts_compute_what_they_mean() {
    let layouts = [
        LayoutPolicy::AsWritten,
        LayoutPolicy::Plan,
        LayoutPolicy::Blocked(16),
        LayoutPolicy::ChannelsLast,
    ];
    let mut placed = [[0; 2]; 4];
    for seed in seeds() {
        let maker = Maker::new(seed, 16, [None; 2]).expect("a graph");
        let (module, params, mut random) = maker.finish();
        let inputs = inputs(&params, 1, &mut random).expect("inputs");
        let expected = run_module(&module, "main", &inputs).expect("it runs");
        let k = seed as usize % layouts.len();
        let options = options(layouts[k], 1 + seed as usize / 4 % 2);
        let what = format!("graph {seed} in {:?}", layouts[k]);
        let program = Session::new(options.clone()).lower(&module).map(|lowering| lowering.program);
        let program = program.unwrap_or_else(fails(&what));
        add(&mut placed[k], in_place(&program.module));
        let got = program.load(&options).and_then(|e| e.run(&inputs));
        assert_agree(&what, &got.unwrap_or_else(fails(&what)), &expected);
    }
    if seeds() == (0..GRAPHS) {
        let sum = |k: usize| placed.iter().map(|n| n[k]).sum::<usize>();
        assert!(sum(0) > 12 && sum(1) > 8, "{placed:?}");
    }
}

/// Extents of anything, and parts in place wherever they can be, not only where that pays.
#[test]
fn parts_of_any_extent_compute_what_they_mean() {
    let mut placed = [0; 2];
    for seed in seeds() {
        let maker = Maker::new(seed, 1, [None; 2]).expect("a graph");
        let (module, params, mut random) = maker.finish();
        let inputs = inputs(&params, 1, &mut random).expect("inputs");
        let expected = run_module(&module, "main", &inputs).expect("it runs");
        let options = options(LayoutPolicy::AsWritten, 1);
        let what = format!("graph {seed}");
        let run = || {
            let legal = Session::new(options.clone())
                .stages(&module, PipelineStage::Legalize)
                .map(|staged| staged.module)?;
            let together = place_parts(&legal, true, &mut Vec::new())?;
            assert_agree(&what, &run_module(&together, "main", &inputs)?, &expected);
            // What was placed stays where it is.
            let together = place_parts(&together, true, &mut Vec::new())?;
            let scheduled =
                auto::STAGES.apply(&together, &Config::new(), &mut Default::default())?;
            let lowered = PipelineStage::Lower.run(&scheduled, &options)?;
            let program = Program::plan(Lowered::new(lowered)?)?;
            let got = program.load(&options)?.run(&inputs)?;
            Ok::<_, tilewright_driver::Error>((in_place(&program.module), got))
        };
        let (count, got) = run().unwrap_or_else(fails(&what));
        add(&mut placed, count);
        assert_agree(&what, &got, &expected);
    }
    assert!(placed.iter().all(|n| *n > seeds().count() / 2), "{placed:?}");
}

/// An open batch, or an open number of rows, which strides depend on: one compilation for all of them.
#[test]
fn parts_of_open_sizes_compute_what_they_mean() {
    let layouts = [LayoutPolicy::AsWritten, LayoutPolicy::ChannelsLast, LayoutPolicy::Blocked(16)];
    let mut placed = [0; 2];
    for seed in seeds().step_by(2) {
        let size = Some(Dim::open(&Var::new("n", DType::I64)));
        let open = [[size, None], [None, size], [size, size]][seed as usize / 2 % 3];
        let maker = Maker::new(seed, 16, open).expect("a graph");
        let (module, params, mut random) = maker.finish();
        let options = options(layouts[seed as usize / 6 % layouts.len()], 1);
        let what = format!("open graph {seed}");
        let program = Session::new(options.clone()).lower(&module).map(|lowering| lowering.program);
        add(&mut placed, in_place(&program.unwrap_or_else(fails(&what)).module));
        let executable = compile(&module, &options).unwrap_or_else(fails(&what));
        for n in [1, 3] {
            let inputs = inputs(&params, n, &mut random).expect("inputs");
            let mut given = Sizes::new();
            for (param, tensor) in params.iter().zip(&inputs) {
                given = given.shape(&**param.name(), tensor.shape());
            }
            let expected = fill(&module, &given).and_then(|m| run_module(&m, "main", &inputs));
            let got = executable.run(&inputs).unwrap_or_else(fails(&what));
            assert_agree(&what, &got, &expected.unwrap_or_else(fails(&what)));
        }
    }
    assert!(placed.iter().all(|n| *n > 0), "{placed:?}");
}

/// What passes print is compiled like any other text, in every layout: where values lay is decided anew.
#[test]
fn placed_parts_are_text_that_compiles_again() {
    let layouts = [
        LayoutPolicy::AsWritten,
        LayoutPolicy::Plan,
        LayoutPolicy::Blocked(16),
        LayoutPolicy::ChannelsLast,
    ];
    let size = Some(Dim::open(&Var::new("n", DType::I64)));
    let (mut placed, mut tried) = ([0; 2], 0);
    for seed in seeds().step_by(3) {
        let open = if seed % 2 == 0 { [None; 2] } else { [size, None] };
        let maker = Maker::new(seed, 4, open).expect("a graph");
        let (module, params, mut random) = maker.finish();
        let what = format!("graph {seed} again");
        let inputs = inputs(&params, 2, &mut random).expect("inputs");
        let mut given = Sizes::new();
        for (param, tensor) in params.iter().zip(&inputs) {
            given = given.shape(&**param.name(), tensor.shape());
        }
        let expected = fill(&module, &given).and_then(|m| run_module(&m, "main", &inputs));
        let expected = expected.unwrap_or_else(fails(&what));
        for until in [PipelineStage::Legalize, PipelineStage::Schedule, PipelineStage::Lower] {
            let staged = Session::new(options(LayoutPolicy::AsWritten, 1))
                .stages(&module, until)
                .map(|staged| staged.module);
            let mut staged = staged.unwrap_or_else(fails(&what));
            if until == PipelineStage::Legalize {
                staged = place_parts(&staged, true, &mut Vec::new()).unwrap_or_else(fails(&what));
                add(&mut placed, in_place(&staged));
            }
            let text = tilewright_driver::print(&staged);
            let again = tilewright_driver::parse(&text, &Sizes::new());
            let again = again.unwrap_or_else(fails(&what));
            tried += 1;
            let layout = layouts[tried % layouts.len()];
            let what = format!("{what} behind {} in {layout:?}", until.name());
            let executable = compile(&again, &options(layout, 1));
            let got = executable.and_then(|e| e.run(&inputs)).unwrap_or_else(fails(&what));
            assert_agree(&what, &got, &expected);
        }
    }
    assert!(placed.iter().all(|n| *n > 0), "{placed:?}");
}
