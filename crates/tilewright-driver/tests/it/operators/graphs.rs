//! Random graphs of small operators: what fusion, memory planning, schedules and native code make
//! of several functions together.

use tilewright_driver::compare::compare;
use tilewright_driver::random::Random;
use tilewright_driver::{DType, LayoutPolicy, Options, Result, Sizes, Tensor, compile};
use tilewright_graph::sizes::fill;
use tilewright_interp::run_module;
use tilewright_ir::{Dim, GraphExpr, GraphVar, TensorFunc, TensorType, Var, dim};
use tilewright_ops::contraction::{Conv, conv, matmul};
use tilewright_ops::elementwise::{Binary, Unary, binary, cast, unary, where_};
use tilewright_ops::movement::{
    concat, expand, gather, gather_elements, reshape, slice, transpose,
};
use tilewright_ops::norm::softmax;
use tilewright_ops::pool::{Pool, average_pool, max_pool};
use tilewright_ops::reduce::{Arg, Reduction, arg_reduce, cumsum, reduce};
use tilewright_ops::{Operand, results};

use super::{Graph, compare_module, input, tolerance};

/// Graphs that are tried, unless the environment variable `TILEWRIGHT_FUZZ_ITERS` says how many; the first
/// one is that of `TILEWRIGHT_FUZZ_SEED`, else of 0.
const GRAPHS: u64 = 30;

/// The seeds of the graphs.
fn seeds() -> std::ops::Range<u64> {
    let asked = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let first = asked("TILEWRIGHT_FUZZ_SEED").unwrap_or(0);
    first..first + asked("TILEWRIGHT_FUZZ_ITERS").unwrap_or(GRAPHS)
}

/// Functions of a graph.
const CALLS: usize = 12;
/// Elements that no tensor has more of: a graph of convolutions grows fast.
const LARGEST: usize = 4000;

#[test]
fn random_graphs_compute_what_they_mean() {
    for seed in seeds() {
        let mut maker = Maker {
            random: Random::new(seed),
            graph: Graph::new(Vec::new()),
            selects: seed % 2 > 0,
            convolves: false,
            open: Vec::new(),
            values: Vec::new(),
        };
        if let Err(e) = maker.make().and_then(|()| maker.check(seed)) {
            panic!("graph {seed}: {}", e.render());
        }
    }
}

/// Sizes at which graphs of open sizes run, the values of `SIZES`.
const AT: [[usize; 3]; 5] = [[1, 1, 1], [3, 7, 5], [2, 9, 4], [8, 6, 17], [5, 16, 3]];

/// The open sizes of a graph.
const SIZES: [&str; 3] = ["n", "m", "k"];

/// The layouts in which graphs of open sizes are compiled, one after the other.
const LAYOUTS: [LayoutPolicy; 5] = [
    LayoutPolicy::AsWritten,
    LayoutPolicy::Plan,
    LayoutPolicy::Blocked(16),
    LayoutPolicy::Blocked(4),
    LayoutPolicy::ChannelsLast,
];

/// One compilation runs at all sizes, as the interpreter does at each, in every layout.
#[test]
fn random_graphs_of_open_sizes_compute_what_they_mean() {
    for seed in seeds() {
        let mut maker = Maker {
            random: Random::new(seed),
            graph: Graph::new(Vec::new()),
            selects: false,
            convolves: seed % 2 > 0,
            open: SIZES.map(|name| Dim::open(&Var::new(name, DType::I64))).to_vec(),
            values: Vec::new(),
        };
        if let Err(e) = maker.make().and_then(|()| maker.check_open(seed)) {
            panic!("open graph {seed}: {}", e.render());
        }
    }
}

struct Maker {
    random: Random,
    graph: Graph,
    /// Sizes of inputs that are open; none for constant sizes only.
    open: Vec<Dim>,
    /// Whether there are positions of extremes, conditions and what is looked up by them.
    selects: bool,
    /// Whether every third call is a convolution, where one fits, whose layout others follow.
    convolves: bool,
    /// What has been computed, the inputs among it.
    values: Vec<(GraphVar, Operand)>,
}

impl Maker {
    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        (self.random.bits() % n.max(1) as u64) as usize
    }

    fn make(&mut self) -> Result<()> {
        for i in 0..1 + self.below(3) {
            let shape =
                [1 + self.below(2), 1 + self.below(5), 3 + self.below(6), 3 + self.below(6)];
            let mut shape = dim::shape(&shape);
            for d in &mut shape {
                if !self.open.is_empty() && self.below(2) == 0 {
                    let k = self.below(self.open.len());
                    *d = self.open[k];
                }
            }
            let of = Operand::f32(&shape);
            let var = GraphVar::tensor(format!("x{i}"), tensor_type(&of));
            self.graph.params.push(var.clone());
            self.values.push((var, of));
        }
        let mut calls = 0;
        while calls < CALLS {
            calls += usize::from(self.add()?);
        }
        Ok(())
    }

    /// A value that was computed, the last ones more often: floats, or what comes from them.
    fn any(&mut self) -> (GraphVar, Operand) {
        let (var, of) = self.of_any_type();
        match of.dtype {
            DType::F32 => (var, of),
            _ => match self.values_of(DType::F32) {
                Some(found) => found,
                None => (var, of),
            },
        }
    }

    /// A value of any type.
    fn of_any_type(&mut self) -> (GraphVar, Operand) {
        let n = self.values.len();
        let back = self.below(n).min(self.below(n));
        self.values[n - 1 - back].clone()
    }

    /// A value of a type, the last ones more often, if there is one.
    fn values_of(&mut self, dtype: DType) -> Option<(GraphVar, Operand)> {
        let of: Vec<_> = self.values.iter().filter(|v| v.1.dtype == dtype).cloned().collect();
        let back = self.below(of.len()).min(self.below(of.len()));
        of.len().checked_sub(1 + back).map(|at| of[at].clone())
    }

    /// Adds a call that makes positions, conditions or what follows from them.
    fn add_selection(&mut self) -> Result<bool> {
        let (x, of) = self.any();
        let rank = of.shape.len();
        let axis = self.below(rank) as i64;
        match self.below(7) {
            0 => {
                let op = [Arg::Max, Arg::Min][self.below(2)];
                let (keep, last) = (self.below(3) > 0, self.below(2) > 0);
                Ok(self.call(arg_reduce(op, &of, axis, keep, last)?, &[x]))
            }
            1 => {
                let Some((at, indices)) = self.values_of(DType::I64) else { return Ok(false) };
                // Positions out of range count as the last ones.
                match gather_elements(&of, &indices, axis) {
                    Ok(func) => Ok(self.call(func, &[x, at])),
                    Err(_) => Ok(false),
                }
            }
            2 => {
                let Some((at, indices)) = self.values_of(DType::I64) else { return Ok(false) };
                let long = rank + indices.shape.len() > 6;
                let (x, of) = match self.below(2) {
                    0 if !long => (x, of),
                    _ => {
                        let rows = 2 + self.below(5);
                        self.constant(&[rows])?
                    }
                };
                Ok(self.call(gather(&of, &indices, 0)?, &[x, at]))
            }
            3 => {
                let (y, other) = self.of_any_type();
                if other.dtype != of.dtype {
                    return Ok(false);
                }
                match binary(Binary::Greater, &of, &other) {
                    Ok(func) => Ok(self.call(func, &[x, y])),
                    Err(_) => Ok(false),
                }
            }
            4 => {
                let Some((c, cond)) = self.values_of(DType::BOOL) else { return Ok(false) };
                let (y, other) = self.any();
                match where_(&cond.shape, &of, &other) {
                    Ok(func) => Ok(self.call(func, &[c, x, y])),
                    Err(_) => Ok(false),
                }
            }
            5 => {
                let (x, of) = self.of_any_type();
                let to = if of.dtype == DType::F32 { DType::BOOL } else { DType::F32 };
                Ok(self.call(cast(&of, to)?, &[x]))
            }
            _ => {
                let (exclusive, reverse) = (self.below(2) > 0, self.below(2) > 0);
                Ok(self.call(cumsum(&of, axis, exclusive, reverse)?, &[x]))
            }
        }
    }

    fn call(&mut self, func: TensorFunc, args: &[GraphVar]) -> bool {
        let out = results(&func, 1).remove(0);
        let cells = dim::product(out.shape.iter().copied());
        let most = cells.value(&|_| Some(9));
        if most.is_none_or(|n| n > LARGEST) {
            return false;
        }
        let mut vars = self.graph.call(func, args, &[tensor_type(&out)]);
        self.values.push((vars.remove(0), out));
        true
    }

    /// A constant, as a variable of the graph.
    fn constant(&mut self, shape: &[usize]) -> Result<(GraphVar, Operand)> {
        let tensor = input(&mut self.random, DType::F32, shape)?;
        self.bound(tensor)
    }

    /// The weights of a convolution. Where there are many, they are small, so that what one after the
    /// other computes does not grow, and the order of sums does not show.
    fn weights(&mut self, shape: &[usize]) -> Result<(GraphVar, Operand)> {
        let tensor = input(&mut self.random, DType::F32, shape)?;
        let terms = if self.convolves { shape[1..].iter().product::<usize>() as f32 } else { 1.0 };
        let values: Vec<f32> = tensor.as_slice::<f32>().unwrap_or_default().to_vec();
        let values: Vec<f32> = values.into_iter().map(|v| v / terms).collect();
        self.bound(Tensor::from_slice(shape, &values)?)
    }

    /// A tensor as a variable of the graph.
    fn bound(&mut self, tensor: Tensor) -> Result<(GraphVar, Operand)> {
        let shape = &tensor.shape().to_vec();
        let ty = TensorType::fixed(shape, DType::F32);
        let var = self.graph.bind(tilewright_ir::GraphType::Tensor(ty), GraphExpr::Const(tensor));
        Ok((var, Operand::f32(shape)))
    }

    /// Adds a call, or nothing where what was drawn does not fit together.
    fn add(&mut self) -> Result<bool> {
        if self.selects && self.below(2) > 0 {
            return self.add_selection();
        }
        let (x, of) = self.any();
        let shape = of.shape.clone();
        let number = |d: Dim| d.known().unwrap_or(0);
        let rank = shape.len();
        let what = if self.convolves && self.below(3) == 0 { 5 } else { self.below(12) };
        match what {
            0 | 1 => {
                let ops = [Unary::Relu, Unary::Sigmoid, Unary::HardSwish, Unary::Neg, Unary::Abs];
                let op = ops[self.below(ops.len())];
                Ok(self.call(unary(op, &of)?, &[x]))
            }
            2 | 3 => {
                let (y, other) = self.any();
                let ops = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Max];
                match binary(ops[self.below(ops.len())], &of, &other) {
                    Ok(func) => Ok(self.call(func, &[x, y])),
                    // Shapes that do not broadcast.
                    Err(_) => Ok(false),
                }
            }
            4 => {
                let mut axes = vec![1; rank];
                axes[self.below(rank)] = 0;
                let kept = |(d, keep): (&Dim, &usize)| if *keep == 0 { d.known() } else { Some(1) };
                let shape: Option<Vec<usize>> = shape.iter().zip(&axes).map(kept).collect();
                let Some(shape) = shape else { return Ok(false) };
                let (b, bias) = self.constant(&shape)?;
                Ok(self.call(binary(Binary::Add, &of, &bias)?, &[x, b]))
            }
            5 if rank == 4 && shape[1].known().is_some() => {
                let kernel = 1 + 2 * self.below(2);
                let (w, weights) = {
                    let out = 1 + self.below(9);
                    self.weights(&[out, number(shape[1]), kernel, kernel])?
                };
                let pads = vec![kernel / 2; 2];
                let p = Conv { pads_begin: pads.clone(), pads_end: pads, ..Conv::new(of, weights) };
                Ok(self.call(conv(&p)?, &[x, w]))
            }
            6 if rank == 4 && shape[2].at_least(2) && shape[3].at_least(2) => {
                let p = Pool { strides: vec![1 + self.below(2), 1], ..Pool::new(of, &[2, 2]) };
                let func = if self.below(2) == 0 { max_pool(&p)? } else { average_pool(&p, true)? };
                Ok(self.call(func, &[x]))
            }
            7 => {
                let mut perm: Vec<usize> = (0..rank).collect();
                perm.rotate_left(self.below(rank));
                Ok(self.call(transpose(&of, &perm)?, &[x]))
            }
            8 => {
                let total = dim::product(shape.iter().copied());
                let one = Dim::from(1);
                let to = if self.below(2) == 0 {
                    vec![shape[0], dim::product(shape[1..].iter().copied())]
                } else {
                    vec![one, total, one, one]
                };
                Ok(self.call(reshape(&of, &to)?, &[x]))
            }
            9 if rank == 2 && shape[1].known().is_some() => {
                let (w, weights) = {
                    let out = 1 + self.below(20);
                    self.constant(&[number(shape[1]), out])?
                };
                Ok(self.call(matmul(&of, &weights)?, &[x, w]))
            }
            9 => {
                let axis = self.below(rank) as i64;
                Ok(self.call(softmax(&of, axis)?, &[x]))
            }
            10 => {
                let at = self.below(rank);
                let axis = at as i64;
                let (func, args) = match self.below(3) {
                    0 => (reduce(Reduction::Mean, &of, &[axis], true)?, vec![x]),
                    1 => (concat(&[of.clone(), of], axis)?, vec![x.clone(), x]),
                    // Nothing may be left of an open axis.
                    _ if shape[at].known().is_none() && !shape[at].at_least(2) => return Ok(false),
                    _ => (slice(&of, &[1], &[i64::MAX], &[axis], &[2])?, vec![x]),
                };
                // Nothing may be left of a short axis.
                if results(&func, 1)[0].shape.contains(&Dim::from(0)) {
                    return Ok(false);
                }
                Ok(self.call(func, &args))
            }
            11 if shape[0] == 1 => {
                let mut to = shape.clone();
                to[0] = (1 + self.below(3)).into();
                Ok(self.call(expand(&of, &to)?, &[x]))
            }
            _ => Ok(false),
        }
    }

    /// Returns some of the values, and runs the module.
    fn check(&mut self, seed: u64) -> Result<()> {
        let outputs = self.outputs();
        let mut inputs: Vec<Tensor> = Vec::new();
        for param in &self.graph.params {
            let shape =
                param.ty().as_tensor().and_then(TensorType::const_shape).unwrap_or_default();
            inputs.push(input(&mut self.random, DType::F32, &shape)?);
        }
        let graph = std::mem::replace(&mut self.graph, Graph::new(Vec::new()));
        compare_module(&format!("graph {seed}"), &graph.returning(outputs), &inputs)
    }

    /// Compiles the module once, and runs it at several sizes.
    fn check_open(&mut self, seed: u64) -> Result<()> {
        let outputs = self.outputs();
        let params = self.graph.params.clone();
        let module = std::mem::replace(&mut self.graph, Graph::new(Vec::new())).returning(outputs);
        let layout = LAYOUTS[seed as usize % LAYOUTS.len()];
        let options = Options::new().threads(2).cache(false).check(true).layout(layout);
        let executable = compile(&module, &options)?;
        for at in AT {
            let sizes = SIZES.iter().zip(at);
            let of = |v: &Var| sizes.clone().find(|(name, _)| **name == &**v.name()).map(|s| s.1);
            let mut inputs: Vec<Tensor> = Vec::new();
            let mut given = Sizes::new();
            for param in &params {
                let shape = param.ty().as_tensor().map(|ty| ty.shape.clone()).unwrap_or_default();
                let shape: Option<Vec<usize>> =
                    shape.iter().map(|e| Dim::from_expr(e).and_then(|d| d.value(&of))).collect();
                let shape = shape.unwrap_or_default();
                given = given.shape(&**param.name(), &shape);
                inputs.push(input(&mut self.random, DType::F32, &shape)?);
            }
            let expected = run_module(&fill(&module, &given)?, "main", &inputs)?;
            let got = executable.run(&inputs)?;
            assert_eq!(got.len(), expected.len(), "{seed}");
            for (got, expected) in got.iter().zip(&expected) {
                // An element may be a small difference of large ones.
                let values = (0..expected.len()).map(|k| expected.get_f64(k).abs());
                let largest = values.filter(|v| v.is_finite()).fold(0.0, f64::max);
                let mut tolerance = tolerance(expected.dtype());
                tolerance.absolute += tolerance.relative / 20.0 * largest;
                let comparison = compare(got, expected, tolerance);
                assert!(
                    comparison.agrees(),
                    "open graph {seed} in {layout:?} at {at:?}: {comparison}"
                );
            }
        }
        Ok(())
    }

    /// Some of the values.
    fn outputs(&mut self) -> Vec<GraphExpr> {
        let mut outputs = Vec::new();
        if let Some((last, _)) = self.values.last() {
            outputs.push(last.expr());
        }
        for _ in 0..self.below(4) {
            // The same one twice, or an input, may be among them.
            outputs.push(self.any().0.expr());
        }
        outputs
    }
}

/// The type of a value in a graph.
fn tensor_type(of: &Operand) -> TensorType {
    TensorType { shape: of.shape.iter().map(|d| d.wide()).collect(), dtype: of.dtype }
}
