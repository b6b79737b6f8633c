//! Random graphs of small operators: what fusion, memory planning, schedules and native code make
//! of several functions together.

use tilewright::unstable::ir::{GraphExpr, GraphVar, TensorFunc, TensorType, dim};
use tilewright::unstable::ops::contraction::{Conv, conv, matmul};
use tilewright::unstable::ops::elementwise::{Binary, Unary, binary, cast, unary, where_};
use tilewright::unstable::ops::movement::{
    concat, expand, gather, gather_elements, reshape, slice, transpose,
};
use tilewright::unstable::ops::norm::softmax;
use tilewright::unstable::ops::pool::{Pool, average_pool, max_pool};
use tilewright::unstable::ops::reduce::{Arg, Reduction, arg_reduce, cumsum, reduce};
use tilewright::unstable::ops::{Operand, results};
use tilewright::unstable::random::Random;
use tilewright::{DType, Result, Tensor};

use super::{Graph, compare_module, input};

/// Graphs that are tried, unless the environment variable `TILEWRIGHT_FUZZ_ITERS` says how many.
const GRAPHS: u64 = 60;
/// Functions of a graph.
const CALLS: usize = 12;
/// Elements that no tensor has more of: a graph of convolutions grows fast.
const LARGEST: usize = 4000;

#[test]
fn random_graphs_compute_what_they_mean() {
    let asked = std::env::var("TILEWRIGHT_FUZZ_ITERS").ok().and_then(|n| n.parse().ok());
    for seed in 0..asked.unwrap_or(GRAPHS) {
        let mut maker = Maker {
            random: Random::new(seed),
            graph: Graph::new(Vec::new()),
            selects: seed % 2 > 0,
            values: Vec::new(),
        };
        if let Err(e) = maker.make().and_then(|()| maker.check(seed)) {
            panic!("graph {seed}: {}", e.render());
        }
    }
}

struct Maker {
    random: Random,
    graph: Graph,
    /// Whether there are positions of extremes, conditions and what is looked up by them.
    selects: bool,
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
            let var = GraphVar::tensor(format!("x{i}"), TensorType::fixed(&shape, DType::F32));
            self.graph.params.push(var.clone());
            self.values.push((var, Operand::f32(&shape)));
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
        let shape = dim::known(&out.shape).unwrap_or_default();
        if shape.iter().product::<usize>() > LARGEST {
            return false;
        }
        let ty = TensorType::fixed(&shape, out.dtype);
        let mut vars = self.graph.call(func, args, &[ty]);
        self.values.push((vars.remove(0), out));
        true
    }

    /// A constant, as a variable of the graph.
    fn constant(&mut self, shape: &[usize]) -> Result<(GraphVar, Operand)> {
        let tensor = input(&mut self.random, DType::F32, shape)?;
        let ty = TensorType::fixed(shape, DType::F32);
        let var = self
            .graph
            .bind(tilewright::unstable::ir::GraphType::Tensor(ty), GraphExpr::Const(tensor));
        Ok((var, Operand::f32(shape)))
    }

    /// Adds a call, or nothing where what was drawn does not fit together.
    fn add(&mut self) -> Result<bool> {
        if self.selects && self.below(2) > 0 {
            return self.add_selection();
        }
        let (x, of) = self.any();
        let shape = dim::known(&of.shape).unwrap_or_default();
        let rank = shape.len();
        match self.below(12) {
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
                let shape: Vec<usize> = shape
                    .iter()
                    .zip(&axes)
                    .map(|(d, keep)| if *keep == 0 { *d } else { 1 })
                    .collect();
                let (b, bias) = self.constant(&shape)?;
                Ok(self.call(binary(Binary::Add, &of, &bias)?, &[x, b]))
            }
            5 if rank == 4 => {
                let kernel = 1 + 2 * self.below(2);
                let (w, weights) = {
                    let out = 1 + self.below(9);
                    self.constant(&[out, shape[1], kernel, kernel])?
                };
                let pads = vec![kernel / 2; 2];
                let p = Conv { pads_begin: pads.clone(), pads_end: pads, ..Conv::new(of, weights) };
                Ok(self.call(conv(&p)?, &[x, w]))
            }
            6 if rank == 4 && shape[2] >= 2 && shape[3] >= 2 => {
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
                let total = shape.iter().product::<usize>();
                let to = if self.below(2) == 0 {
                    vec![shape[0], total / shape[0]]
                } else {
                    vec![1, total, 1, 1]
                };
                Ok(self.call(reshape(&of, &to)?, &[x]))
            }
            9 if rank == 2 => {
                let (w, weights) = {
                    let out = 1 + self.below(20);
                    self.constant(&[shape[1], out])?
                };
                Ok(self.call(matmul(&of, &weights)?, &[x, w]))
            }
            9 => {
                let axis = self.below(rank) as i64;
                Ok(self.call(softmax(&of, axis)?, &[x]))
            }
            10 => {
                let axis = self.below(rank) as i64;
                let (func, args) = match self.below(3) {
                    0 => (reduce(Reduction::Mean, &of, &[axis], true)?, vec![x]),
                    1 => (concat(&[of.clone(), of], axis)?, vec![x.clone(), x]),
                    _ => (slice(&of, &[1], &[i64::MAX], &[axis], &[2])?, vec![x]),
                };
                // Nothing may be left of a short axis.
                if results(&func, 1)[0].shape.iter().any(|d| *d == 0) {
                    return Ok(false);
                }
                Ok(self.call(func, &args))
            }
            11 if shape[0] == 1 => {
                let mut to = shape.clone();
                to[0] = 1 + self.below(3);
                Ok(self.call(expand(&of, &to)?, &[x]))
            }
            _ => Ok(false),
        }
    }

    /// Returns some of the values, and runs the module.
    fn check(&mut self, seed: u64) -> Result<()> {
        let mut outputs = Vec::new();
        if let Some((last, _)) = self.values.last() {
            outputs.push(last.expr());
        }
        for _ in 0..self.below(4) {
            // The same one twice, or an input, may be among them.
            outputs.push(self.any().0.expr());
        }
        let mut inputs: Vec<Tensor> = Vec::new();
        for param in &self.graph.params {
            let shape =
                param.ty().as_tensor().and_then(TensorType::const_shape).unwrap_or_default();
            inputs.push(input(&mut self.random, DType::F32, &shape)?);
        }
        let graph = std::mem::replace(&mut self.graph, Graph::new(Vec::new()));
        compare_module(&format!("graph {seed}"), &graph.returning(outputs), &inputs)
    }
}
