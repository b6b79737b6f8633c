//! Products of numbers that 8-bit integers stand for, computed by the integers: against the numbers
//! themselves, and native code against the interpreter.

use tilewright_driver::random::Random;
use tilewright_driver::{DType, Options, Tensor, compile};
use tilewright_graph::fold::interpret;
use tilewright_graph::quantized::integer_products;
use tilewright_interp as interp;
use tilewright_ir::{
    Attrs, BinOp, Binding, BindingBlock, GraphExpr, GraphFunc, GraphVar, Module, Remarks,
    TensorFunc, TensorType, well_formed,
};
use tilewright_ops::Operand;
use tilewright_ops::contraction::{Conv, Gemm, conv, gemm, matmul};
use tilewright_ops::elementwise::{Unary, unary};
use tilewright_ops::movement::{concat, transpose};
use tilewright_ops::pool::{Pool, max_pool};
use tilewright_ops::quantize::{Quantization, dequantize_linear, quantize_linear};

/// A graph in the making.
struct Graph {
    module: Module,
    params: Vec<GraphVar>,
    inputs: Vec<Tensor>,
    bindings: Vec<Binding>,
    random: Random,
}

/// A value of the graph.
#[derive(Clone)]
struct Value {
    expr: GraphExpr,
    of: Operand,
}

impl Graph {
    fn new(seed: u64) -> Self {
        Graph {
            module: Module::new(),
            params: Vec::new(),
            inputs: Vec::new(),
            bindings: Vec::new(),
            random: Random::new(seed),
        }
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.bits() as usize % from.len()]
    }

    fn bytes(&mut self, dtype: DType, shape: &[usize]) -> Tensor {
        let len = shape.iter().product();
        let bytes: Vec<u8> = (0..len).map(|_| self.random.bits() as u8).collect();
        Tensor::from_bytes(dtype, shape, &bytes).expect("a tensor")
    }

    fn constant(t: Tensor) -> Value {
        Value { of: Operand::new(t.shape(), t.dtype()), expr: GraphExpr::Const(t) }
    }

    /// Integers that are given when the graph runs.
    fn input(&mut self, dtype: DType, shape: &[usize]) -> Value {
        let name = format!("x{}", self.params.len());
        let param = GraphVar::tensor(name, TensorType::fixed(shape, dtype));
        let value = self.bytes(dtype, shape);
        self.inputs.push(value);
        self.params.push(param.clone());
        Value { expr: param.expr(), of: Operand::new(shape, dtype) }
    }

    fn call(&mut self, func: TensorFunc, args: &[&Value]) -> Value {
        let name = format!("f{}", self.bindings.len());
        let out = func.buffers().last().expect("a result").clone();
        let shape: Vec<usize> =
            out.const_shape().expect("fixed").into_iter().map(|d| d as usize).collect();
        self.module.insert(name.as_str(), func);
        let ty = TensorType::fixed(&shape, out.dtype());
        let var = GraphVar::tensor(format!("v{}", self.bindings.len()), ty.clone());
        let args = args.iter().map(|a| a.expr.clone()).collect();
        let value = GraphExpr::call_tir(name.as_str(), args, vec![ty]);
        self.bindings.push(Binding { var: var.clone(), value, span: None });
        Value { expr: var.expr(), of: Operand::new(&shape, out.dtype()) }
    }

    /// The numbers that integers stand for.
    fn numbers(
        &mut self,
        x: &Value,
        scales: &[f32],
        zeros: Option<Tensor>,
        axis: Option<i64>,
    ) -> Value {
        let shape: &[usize] = if axis.is_some() { &[scales.len()] } else { &[] };
        let q = Quantization { scale: DType::F32, axis, zero_point: zeros.is_some(), bits: None };
        let func = dequantize_linear(&x.of, &q).expect("a function");
        let scale = Self::constant(Tensor::from_slice(shape, scales).expect("a tensor"));
        let zeros = zeros.map(Self::constant);
        let args: Vec<&Value> = [x, &scale].into_iter().chain(&zeros).collect();
        self.call(func, &args)
    }

    /// Integers for numbers, with one scale.
    fn quantized(&mut self, x: &Value, scale: f32, zero: &Tensor) -> Value {
        let q = Quantization { scale: DType::F32, axis: None, zero_point: true, bits: None };
        let func = quantize_linear(&x.of, &q, zero.dtype()).expect("a function");
        let scale = Self::constant(Tensor::from_slice(&[], &[scale]).expect("a tensor"));
        let zero = Self::constant(zero.clone());
        self.call(func, &[x, &scale, &zero])
    }

    /// Numbers for weights with `count` channels along an axis, and their scales.
    fn weights(&mut self, shape: &[usize], axis: usize) -> (Value, Vec<f32>) {
        let dtype = self.pick(&[DType::I8, DType::U8]);
        let lists = self.pick(&[true, false]);
        let count = if lists { shape[axis] } else { 1 };
        let scales: Vec<f32> =
            (0..count).map(|_| 0.002 + 0.01 * self.random.unit().abs() as f32).collect();
        let extents: &[usize] = if lists { &[count] } else { &[] };
        let zeros = match self.random.bits() % 3 {
            0 => None,
            1 => Some(self.bytes(dtype, extents)),
            _ => Some(Tensor::from_bytes(dtype, extents, &vec![128; count]).expect("a tensor")),
        };
        let w = self.bytes(dtype, shape);
        let axis = lists.then_some(axis as i64);
        (self.numbers(&Self::constant(w), &scales, zeros, axis), scales)
    }

    /// The module whose graph gives a value.
    fn finish(mut self, result: &Value) -> (Module, Vec<Tensor>) {
        let GraphExpr::Var(var) = &result.expr else { panic!("a variable") };
        let outputs = vec![var.clone()];
        let graph = GraphFunc {
            params: self.params,
            ret_ty: None,
            blocks: vec![BindingBlock { dataflow: true, bindings: self.bindings, outputs }],
            ret: var.expr(),
            attrs: Attrs::default(),
            private: false,
            span: None,
        };
        self.module.insert("main", graph);
        (self.module, self.inputs)
    }
}

/// The functions that sum up products of floats.
fn float_sums(module: &Module) -> Vec<String> {
    module
        .tensors()
        .filter(|(_, f)| {
            let stages = tilewright_analysis::open_stages(f).unwrap_or_default();
            stages.iter().any(|s| {
                let r = s.reduction();
                r.is_some_and(|r| r.op == BinOp::Add && s.buffer.dtype() == DType::F32)
            })
        })
        .map(|(name, _)| name.to_string())
        .collect()
}

fn rewritten(module: &Module) -> Module {
    let new = integer_products(module, &mut interpret, &mut Remarks::new())
        .unwrap_or_else(|e| panic!("{}", e.render()));
    well_formed::check_module(&new).unwrap_or_else(|e| panic!("{}", e.render()));
    new
}

/// Compares the integers that a graph gives with those of its numbers: they are at most one apart, and
/// that where a number lies between two of them. Then native code with the interpreter.
#[track_caller]
fn check(what: &str, module: &Module, inputs: &[Tensor], exact: bool) {
    let expected = interp::run_module(module, "main", inputs).expect("it runs");
    let new = rewritten(module);
    let found = interp::run_module(&new, "main", inputs).expect("it runs");
    assert_eq!(float_sums(&new), [""; 0], "{what}");
    let (a, b) = (&expected[0], &found[0]);
    assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()), "{what}");
    let apart = (0..a.len()).map(|k| (a.get_i128(k) - b.get_i128(k)).abs());
    let apart: Vec<i128> = apart.filter(|d| *d != 0).collect();
    let few = if exact { 0 } else { 1 + a.len() / 200 };
    assert!(
        apart.iter().all(|d| *d == 1) && apart.len() <= few,
        "{what}: {apart:?} of {}",
        a.len()
    );
    let made =
        compile(&new, &Options::new().threads(1)).unwrap_or_else(|e| panic!("{}", e.render()));
    let results = made.run(inputs).unwrap_or_else(|e| panic!("{}", e.render()));
    assert!(results[0].bytes() == found[0].bytes(), "{what}: native");
}

fn zero_point(g: &mut Graph) -> Tensor {
    let dtype = g.pick(&[DType::I8, DType::U8]);
    g.bytes(dtype, &[])
}

#[test]
fn convolutions_of_numbers_are_those_of_their_integers() {
    for seed in 0..24 {
        let mut g = Graph::new(seed);
        let (groups, channels, results) = g.pick(&[(1, 8, 16), (1, 5, 17), (2, 8, 32), (6, 6, 6)]);
        let (kernel, stride, pad) = g.pick(&[(3, 1, 1), (1, 1, 0), (3, 2, 1), (2, 1, 0)]);
        let zero = zero_point(&mut g);
        let x = g.input(zero.dtype(), &[2, channels, 9, 7]);
        let x_scale = 0.02 + 0.03 * g.random.unit().abs() as f32;
        let x = g.numbers(&x, &[x_scale], Some(zero), None);
        let (w, scales) = g.weights(&[results, channels / groups, kernel, kernel], 0);
        let bias = match seed % 3 {
            0 => None,
            // Integers of the scale of the sums, or of another.
            1 => {
                let list: Vec<i32> = (0..results).map(|_| g.random.bits() as i32 % 5000).collect();
                let list = Graph::constant(Tensor::from_slice(&[results], &list).expect("a list"));
                let of = |k: usize| x_scale * scales[k % scales.len()];
                let scales: Vec<f32> = match scales.len() {
                    1 => vec![of(0)],
                    _ => (0..results).map(of).collect(),
                };
                let axis = (scales.len() > 1).then_some(0);
                Some(g.numbers(&list, &scales, None, axis))
            }
            _ => {
                let list: Vec<f32> = (0..results).map(|_| g.random.unit() as f32).collect();
                Some(Graph::constant(Tensor::from_slice(&[results], &list).expect("a list")))
            }
        };
        let func = conv(&Conv {
            bias: bias.is_some(),
            strides: vec![stride; 2],
            pads_begin: vec![pad; 2],
            pads_end: vec![pad; 2],
            groups,
            ..Conv::new(x.of.clone(), w.of.clone())
        });
        let args: Vec<&Value> = [&x, &w].into_iter().chain(&bias).collect();
        let mut y = g.call(func.expect("a convolution"), &args);
        if g.pick(&[true, false]) {
            y = g.call(unary(Unary::Relu, &y.of).expect("a map"), &[&y]);
        }
        let zero = zero_point(&mut g);
        let y = g.quantized(&y, 0.171, &zero);
        let (module, inputs) = g.finish(&y);
        check(&format!("convolution {seed}"), &module, &inputs, false);
    }
}

#[test]
fn products_of_numbers_are_those_of_their_integers() {
    for seed in 100..120 {
        let mut g = Graph::new(seed);
        let (m, k, n) = g.pick(&[(1, 64, 33), (13, 70, 50), (5, 16, 16), (31, 3, 7)]);
        let zero = zero_point(&mut g);
        let x = g.input(zero.dtype(), &[m, k]);
        let x = g.numbers(&x, &[0.031], Some(zero), None);
        let y = match seed % 4 {
            // Of two values of a run.
            0 => {
                let zero = zero_point(&mut g);
                let y = g.input(zero.dtype(), &[k, n]);
                let y = g.numbers(&y, &[0.007], Some(zero), None);
                g.call(matmul(&x.of, &y.of).expect("a product"), &[&x, &y])
            }
            1 => {
                let (w, _) = g.weights(&[k, n], 1);
                g.call(matmul(&x.of, &w.of).expect("a product"), &[&x, &w])
            }
            // Weights that are transposed.
            2 => {
                let (w, _) = g.weights(&[n, k], 0);
                let w = g.call(transpose(&w.of, &[1, 0]).expect("a map"), &[&w]);
                g.call(matmul(&x.of, &w.of).expect("a product"), &[&x, &w])
            }
            _ => {
                let (w, _) = g.weights(&[n, k], 0);
                let p = Gemm { trans_b: true, alpha: 0.5, ..Gemm::new(x.of.clone(), w.of.clone()) };
                g.call(gemm(&p).expect("a product"), &[&x, &w])
            }
        };
        let zero = zero_point(&mut g);
        let y = g.quantized(&y, 0.371, &zero);
        let (module, inputs) = g.finish(&y);
        check(&format!("product {seed}"), &module, &inputs, false);
    }
}

#[test]
fn what_selects_numbers_selects_integers() {
    for seed in 200..208 {
        let mut g = Graph::new(seed);
        let zero = zero_point(&mut g);
        let [x, y] = [0, 1].map(|_| g.input(zero.dtype(), &[1, 4, 8, 6]));
        let [x, y] = [x, y].map(|v| g.numbers(&v, &[0.25], Some(zero.clone()), None));
        let joined = g.call(concat(&[x.of.clone(), y.of.clone()], 1).expect("a map"), &[&x, &y]);
        let pool = Pool {
            strides: vec![2, 1],
            pads_begin: vec![1, 0],
            pads_end: vec![1, 1],
            ..Pool::new(joined.of.clone(), &[3, 2])
        };
        let y = g.call(max_pool(&pool).expect("a pooling"), &[&joined]);
        let y = g.call(transpose(&y.of, &[0, 2, 3, 1]).expect("a map"), &[&y]);
        // Again as they were, or otherwise.
        let same = seed % 2 == 0;
        let y = g.quantized(&y, if same { 0.25 } else { 0.3 }, &zero);
        let y = match same {
            // A result is not replaced.
            true => g.call(transpose(&y.of, &[3, 0, 1, 2]).expect("a map"), &[&y]),
            false => y,
        };
        let (module, inputs) = g.finish(&y);
        check(&format!("selection {seed}"), &module, &inputs, true);
        let new = rewritten(&module);
        let floats = new.tensors().filter(|(_, f)| f.buffers().any(|b| b.dtype() == DType::F32));
        assert_eq!(floats.count(), if same { 0 } else { 2 }, "selection {seed}");
    }
}

/// A window of padding alone has no element, and what it gives then stays that of numbers.
#[test]
fn maxima_of_padding_alone_stay() {
    let mut g = Graph::new(7);
    let zero = Tensor::from_slice(&[], &[3u8]).expect("a number");
    let x = g.input(DType::U8, &[1, 2, 1, 4]);
    let x = g.numbers(&x, &[0.25], Some(zero), None);
    let pool = Pool {
        dilations: vec![2, 1],
        pads_begin: vec![2, 0],
        pads_end: vec![2, 0],
        ..Pool::new(x.of.clone(), &[2, 1])
    };
    let y = g.call(max_pool(&pool).expect("a pooling"), &[&x]);
    let (module, inputs) = g.finish(&y);
    let [a, b] = [module.clone(), rewritten(&module)]
        .map(|m| interp::run_module(&m, "main", &inputs).expect("it runs").remove(0));
    assert!((0..a.len()).any(|k| a.get_f64(k) == f64::NEG_INFINITY));
    assert!(a.same(&b));
}

/// Sums that may leave `int32`, and scales that change within a sum, stay.
#[test]
fn what_integers_would_not_compute_stays() {
    let mut g = Graph::new(9);
    let x = g.input(DType::U8, &[1, 33_100]);
    let x = g.numbers(&x, &[0.25], None, None);
    let w = Graph::constant(g.bytes(DType::I8, &[33_100, 1]));
    let w = g.numbers(&w, &[0.5], None, None);
    let y = g.call(matmul(&x.of, &w.of).expect("a product"), &[&x, &w]);
    let (module, _) = g.finish(&y);
    assert_eq!(float_sums(&rewritten(&module)).len(), 1);

    let mut g = Graph::new(9);
    let x = g.input(DType::U8, &[5, 8]);
    let x = g.numbers(&x, &[0.25], None, None);
    let w = Graph::constant(g.bytes(DType::I8, &[8, 4]));
    let scales: Vec<f32> = (1u8..9).map(f32::from).collect();
    let w = g.numbers(&w, &scales, None, Some(0));
    let y = g.call(matmul(&x.of, &w.of).expect("a product"), &[&x, &w]);
    let (module, _) = g.finish(&y);
    assert_eq!(float_sums(&rewritten(&module)).len(), 1);
}
