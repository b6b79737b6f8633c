//! Small models whose kernels are timed to calibrate a machine: of each kind of work that the cost model
//! tells apart, several kernels, called one after the other as in any model, so that caches hold what
//! they hold there.

use std::sync::Arc;

use tilewright_ir::{
    Binding, DType, Error, GraphExpr, GraphFunc, GraphVar, Module, Remarks, Result, TensorFunc,
    TensorType,
};
use tilewright_layout::flow::{Costs, Surrounding, Surroundings};
use tilewright_layout::free::{constant_bytes, constants, is_constant};
use tilewright_layout::{ConvLayout, Conversion, IoLayout};
use tilewright_ops::Operand;
use tilewright_ops::contraction::{Conv, conv, matmul};
use tilewright_ops::elementwise::{Binary, Unary, binary, unary};
use tilewright_ops::movement::{concat, transpose};
use tilewright_ops::norm::softmax;
use tilewright_ops::pool::{Pool, average_pool, global_average_pool, max_pool};
use tilewright_ops::reduce::{Reduction, reduce};

use super::layout;
use super::random::Random;

/// The layouts in which the convolutional probes run.
const LAYOUTS: [Option<ConvLayout>; 3] =
    [None, Some(ConvLayout::ChannelsLast), Some(ConvLayout::Blocked(16))];

/// A call of a model.
pub struct Called {
    /// The value that it makes.
    pub name: Arc<str>,
    /// What is called; `None` where that only moves data from one layout to another.
    pub func: Option<Arc<TensorFunc>>,
    /// For each argument whether it is the same in every run.
    pub free: Vec<bool>,
    /// What it becomes beside others.
    pub around: Surrounding,
}

/// The models whose kernels are probes.
///
/// # Errors
/// Those of laying them out.
pub fn models() -> Result<Vec<Module>> {
    let images = images()?;
    let mut all = vec![rows()?, small()?];
    for policy in LAYOUTS {
        all.push(match policy {
            Some(policy) => {
                layout::apply(&images, policy, IoLayout::Logical, &mut Remarks::new())?.0
            }
            None => images.clone(),
        });
    }
    Ok(all)
}

/// The bytes of all constants of a model.
pub fn constants_of(module: &Module) -> u64 {
    module.graphs().map(|(_, graph)| constant_bytes(graph)).sum()
}

/// The calls of a model that depend on its inputs, in their order.
pub fn called(module: &Module, costs: &dyn Costs) -> Vec<Called> {
    let mut all = Vec::new();
    for (_, graph) in module.graphs() {
        let (constant, around) = (constants(graph, true), Surroundings::new(module, graph));
        for b in graph.bindings().filter(|b| !constant.contains(&b.var.id())) {
            let GraphExpr::CallTir { func, args, .. } = &b.value else { continue };
            let Ok(func) = module.tensor(func) else { continue };
            let around = around.of_call(b, costs);
            // A join whose parts are all in place runs no code.
            let copies = around.copies(func);
            if copies.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            let moves = copies.is_some() || is_conversion(func);
            all.push(Called {
                name: b.var.name().clone(),
                func: Some(func.clone()).filter(|_| !moves),
                free: args.iter().map(|a| is_constant(a, &constant)).collect(),
                around,
            });
        }
    }
    all
}

/// Whether a function only moves data.
fn is_conversion(func: &TensorFunc) -> bool {
    Conversion::recognise(func).is_some()
}

/// A graph function under construction.
struct Net {
    module: Module,
    params: Vec<GraphVar>,
    bindings: Vec<Binding>,
    random: Random,
}

impl Net {
    fn new() -> Net {
        let (module, random) = (Module::new(), Random::new(17));
        Net { module, params: Vec::new(), bindings: Vec::new(), random }
    }

    fn input(&mut self, shape: &[usize]) -> GraphVar {
        let name = format!("x{}", self.params.len());
        let var = GraphVar::tensor(name, TensorType::fixed(shape, DType::F32));
        self.params.push(var.clone());
        var
    }

    /// Calls a function on values, and on constants for its other arguments.
    fn call(&mut self, func: TensorFunc, values: &[&GraphVar]) -> Result<GraphVar> {
        let types: Vec<TensorType> = func
            .buffers()
            .map(|b| TensorType { shape: b.shape.clone(), dtype: b.dtype() })
            .collect();
        let (out, given) = types.split_last().ok_or_else(no_shapes)?;
        let mut args: Vec<GraphExpr> = values.iter().map(|v| v.expr()).collect();
        for ty in given.iter().skip(values.len()) {
            let shape = ty.const_shape().ok_or_else(no_shapes)?;
            args.push(GraphExpr::Const(self.random.tensor(ty.dtype, &shape)?));
        }
        let k = self.bindings.len();
        let name = format!("f{k}");
        let value = GraphExpr::call_tir(name.as_str(), args, vec![out.clone()]);
        let var = GraphVar::tensor(format!("y{k}"), out.clone());
        self.module.insert(name, func);
        self.bindings.push(Binding { var: var.clone(), value, span: None });
        Ok(var)
    }

    fn finish(mut self, results: &[&GraphVar]) -> Module {
        let results = results.iter().map(|v| (*v).clone()).collect();
        let graph = GraphFunc::of_dataflow(self.params, self.bindings, results);
        self.module.insert("main", graph);
        self.module
    }
}

fn no_shapes() -> Error {
    Error::internal("a probe without fixed shapes")
}

/// A convolution whose result has the size of the image, over the stride.
fn convolution(
    (channels, out): (usize, usize),
    size: usize,
    kernel: usize,
    stride: usize,
    groups: usize,
) -> Result<TensorFunc> {
    let (x, w) = ([1, channels, size, size], [out, channels / groups, kernel, kernel]);
    let pad = vec![kernel / 2; 2];
    conv(&Conv {
        bias: true,
        groups,
        strides: vec![stride; 2],
        pads_begin: pad.clone(),
        pads_end: pad,
        ..Conv::new(Operand::f32(&x), Operand::f32(&w))
    })
}

/// What convolutional models are made of.
fn images() -> Result<Module> {
    let mut net = Net::new();
    let x = net.input(&[1, 3, 112, 112]);
    let x = net.call(unary(Unary::Abs, &image(3, 112))?, &[&x])?;
    let y = net.call(convolution((3, 32), 112, 3, 2, 1)?, &[&x])?;
    let y = net.call(convolution((32, 32), 56, 3, 1, 32)?, &[&y])?;
    let y = net.call(convolution((32, 64), 56, 1, 1, 1)?, &[&y])?;
    let z = net.call(binary(Binary::Mul, &image(64, 56), &image(64, 1))?, &[&y])?;
    let y = net.call(binary(Binary::Mul, &image(64, 56), &image(64, 56))?, &[&y, &z])?;
    let pool = Pool { strides: vec![2, 2], ..Pool::new(image(64, 56), &[2, 2]) };
    let y = net.call(max_pool(&pool)?, &[&y])?;
    let z = net.call(convolution((64, 64), 28, 3, 1, 1)?, &[&y])?;
    let y = net.call(binary(Binary::Add, &image(64, 28), &image(64, 28))?, &[&y, &z])?;
    // What is read twice is no part of its readers.
    let z = net.call(binary(Binary::Mul, &image(64, 28), &image(64, 1))?, &[&y])?;
    let y = net.call(binary(Binary::Mul, &image(64, 28), &image(64, 28))?, &[&y, &z])?;
    let y = net.call(convolution((64, 36), 28, 1, 1, 1)?, &[&y])?;
    let y = net.call(convolution((36, 21), 28, 5, 1, 1)?, &[&y])?;
    let pool = Pool { strides: vec![2, 2], ..Pool::new(image(21, 28), &[2, 2]) };
    let y = net.call(average_pool(&pool, false)?, &[&y])?;
    let y = net.call(convolution((21, 120), 14, 3, 1, 1)?, &[&y])?;
    let y = net.call(convolution((120, 120), 14, 5, 1, 120)?, &[&y])?;
    let y = net.call(convolution((120, 120), 14, 3, 1, 4)?, &[&y])?;
    let z = net.call(convolution((120, 136), 14, 1, 1, 1)?, &[&y])?;
    let y = net.call(concat(&[image(120, 14), image(136, 14)], 1)?, &[&y, &z])?;
    let y = net.call(convolution((256, 128), 14, 3, 2, 1)?, &[&y])?;
    let y = net.call(convolution((128, 512), 7, 1, 1, 1)?, &[&y])?;
    let y = net.call(global_average_pool(&image(512, 7))?, &[&y])?;
    Ok(net.finish(&[&y]))
}

fn image(channels: usize, size: usize) -> Operand {
    Operand::f32(&[1, channels, size, size])
}

/// Products of matrices, and what stands between them.
fn rows() -> Result<Module> {
    let mut net = Net::new();
    let x = net.input(&[96, 256]);
    let x = net.call(unary(Unary::Sigmoid, &matrix(96, 256))?, &[&x])?;
    let y = net.call(matmul(&matrix(96, 256), &matrix(256, 768))?, &[&x])?;
    let y = net.call(unary(Unary::Tanh, &matrix(96, 768))?, &[&y])?;
    let y = net.call(matmul(&matrix(96, 768), &matrix(768, 100))?, &[&y])?;
    let z = net.call(transpose(&matrix(96, 100), &[1, 0])?, &[&y])?;
    let s = net.call(matmul(&matrix(96, 100), &matrix(100, 96))?, &[&y, &z])?;
    let s = net.call(softmax(&matrix(96, 96), -1)?, &[&s])?;
    let y = net.call(matmul(&matrix(96, 96), &matrix(96, 100))?, &[&s, &y])?;
    let y = net.call(reduce(Reduction::Max, &matrix(96, 100), &[0], true)?, &[&y])?;
    let y = net.call(matmul(&matrix(1, 100), &matrix(100, 1000))?, &[&y])?;
    let y = net.call(matmul(&matrix(1, 1000), &matrix(1000, 1500))?, &[&y])?;
    let v = net.input(&[2, 512, 1024]);
    let wide = Operand::f32(&[2, 512, 1024]);
    let d = net.call(binary(Binary::Div, &wide, &wide)?, &[&v, &v])?;
    let s = net.call(reduce(Reduction::Sum, &wide, &[2], true)?, &[&d])?;
    // Two readers, so that nothing joins: large data that are only moved.
    let m = net.call(binary(Binary::Max, &wide, &wide)?, &[&d, &v])?;
    let n = net.call(unary(Unary::Relu, &wide)?, &[&m])?;
    Ok(net.finish(&[&y, &s, &m, &n]))
}

fn matrix(m: usize, n: usize) -> Operand {
    Operand::f32(&[m, n])
}

/// Small kernels, whose constants stay in the second cache.
fn small() -> Result<Module> {
    let mut net = Net::new();
    let x = net.input(&[1, 16, 12, 12]);
    let y = net.call(convolution((16, 16), 12, 3, 1, 16)?, &[&x])?;
    let z = net.call(global_average_pool(&image(16, 12))?, &[&y])?;
    let z = net.call(convolution((16, 8), 1, 1, 1, 1)?, &[&z])?;
    let z = net.call(convolution((8, 16), 1, 1, 1, 1)?, &[&z])?;
    let z = net.call(unary(Unary::Relu, &image(16, 1))?, &[&z])?;
    let y = net.call(binary(Binary::Mul, &image(16, 12), &image(16, 1))?, &[&y, &z])?;
    let y = net.call(convolution((16, 12), 12, 1, 1, 1)?, &[&y])?;
    let y = net.call(convolution((12, 20), 12, 3, 2, 1)?, &[&y])?;
    let y = net.call(global_average_pool(&image(20, 6))?, &[&y])?;
    Ok(net.finish(&[&y]))
}

/// A model that reads one large tensor from memory, and its bytes: more than a third cache of so many
/// bytes holds.
pub fn stream(l3: usize) -> Result<(Module, usize)> {
    let rows = (2 * l3).clamp(64 << 20, 256 << 20) >> 22;
    let mut net = Net::new();
    let x = net.input(&[rows, 1 << 20]);
    let wide = Operand::f32(&[rows, 1 << 20]);
    let y = net.call(reduce(Reduction::Max, &wide, &[1], true)?, &[&x])?;
    Ok((net.finish(&[&y]), rows << 22))
}
