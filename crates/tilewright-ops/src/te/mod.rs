//! Tensor expressions: a tensor is what each of its elements is.
//!
//! ```
//! use tilewright_ir::DType;
//! use tilewright_ops::te::{self, Reducer};
//!
//! // C[i, j] = sum over k of A[i, k] * B[k, j], then D = max(C, 0).
//! let a = te::placeholder("A", &[65, 77], DType::F32);
//! let b = te::placeholder("B", &[77, 33], DType::F32);
//! let k = te::reduce_axis(77, "k");
//! let c = te::compute("C", &[65, 33], |i| {
//!     let (row, col) = (&i[0], &i[1]);
//!     te::reduce(Reducer::Sum, a.at([row, &k.expr()]) * b.at([&k.expr(), col]), [&k])
//! });
//! let d = te::compute("D", &[65, 33], |i| c.at(i).max(0.0));
//! let func = te::func([&a, &b], [&d])?;
//! assert_eq!(func.params.len(), 3);
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! [`compute`] records an expression and runs nothing. [`func`] collects everything that the
//! outputs need and writes it down as a tensor function: one perfect loop nest a tensor, in the
//! order of their dependence, tensors that are neither input nor output as allocations of the
//! root block. What one expression cannot say (a concatenation, a scatter, a scan) is a list of
//! [`Stage`]s that write parts of one tensor: [`stages`].
//!
//! Building never fails; a mistake (an index too many, a type that does not fit) is reported by
//! [`func`] with the name of the tensor.
//!
//! Sizes are numbers or [`Dim`]s, which may be open: expressions of sizes that are known when the
//! function runs.
//!
//! The buffer of a tensor holds what computes it, and so does an expression that reads it.

mod func;

use std::sync::Arc;

use tilewright_ir::operators::IntoExpr;
use tilewright_ir::{BinOp, Buffer, DType, Dim, Error, Expr, IterKind, TypeKind, Var};

pub(crate) use func::check_type;
pub use func::func;

/// A tensor: an input, or what some stages compute. Cloning shares it.
#[derive(Clone)]
pub struct Tensor {
    /// Its producer is `node`, so that who reads the buffer finds it.
    buffer: Buffer,
    node: Arc<Node>,
}

struct Node {
    shape: Vec<Dim>,
    /// How it comes about; nothing for an input.
    stages: Option<Vec<Stage>>,
    /// Buffers that the stages read, each once, in the order of the text.
    reads: Vec<Buffer>,
}

impl Drop for Node {
    fn drop(&mut self) {
        // One after the other, because a chain of tensors may be longer than the stack is deep. What the stages
        // read is held by the list as well.
        self.stages = None;
        let mut reads = std::mem::take(&mut self.reads);
        while let Some(buffer) = reads.pop() {
            if let Some(mut node) = buffer.into_producer::<Node>() {
                node.stages = None;
                reads.append(&mut node.reads);
            }
        }
    }
}

impl Tensor {
    fn new(buffer: &Buffer, shape: &[Dim], stages: Option<Vec<Stage>>) -> Tensor {
        let mut reads: Vec<Buffer> = Vec::new();
        for stage in stages.iter().flatten() {
            let init = stage.init.iter();
            stage.indices.iter().chain([&stage.value]).chain(init).for_each(|e| {
                let new = e.loaded_buffers().into_iter().filter(|b| b != buffer);
                let new: Vec<Buffer> = new.filter(|b| !reads.contains(b)).collect();
                reads.extend(new);
            });
        }
        let node = Arc::new(Node { shape: shape.to_vec(), stages, reads });
        Tensor { buffer: buffer.produced_by(node.clone()), node }
    }

    /// The tensor that a buffer stands for; `None` for any other buffer.
    fn from_buffer(buffer: &Buffer) -> Option<Tensor> {
        Some(Tensor { buffer: buffer.clone(), node: buffer.producer()? })
    }

    pub fn name(&self) -> &Arc<str> {
        &self.buffer.name
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.buffer.dtype()
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> &[Dim] {
        &self.node.shape
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.node.shape.len()
    }

    /// The buffer that stands for it in expressions.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// The element at the indices, one an axis: expressions, variables, axes or numbers.
    pub fn at<I: IntoExpr>(&self, indices: impl IntoIterator<Item = I>) -> Expr {
        self.buffer().load(indices.into_iter().map(|i| i.into_expr(DType::I32)))
    }

    /// The one element of a tensor without axes.
    pub fn scalar(&self) -> Expr {
        self.at::<Expr>([])
    }
}

/// A range `0..extent` that a stage runs over.
#[derive(Clone, Debug)]
pub struct Axis {
    name: Arc<str>,
    var: Var,
    extent: Dim,
    kind: IterKind,
}

impl Axis {
    fn new(extent: Dim, name: impl Into<Arc<str>>, kind: IterKind) -> Self {
        let name = name.into();
        let var = Var::index(format!("v{name}"));
        Axis { name, var, extent, kind }
    }

    /// Its position, as an expression.
    pub fn expr(&self) -> Expr {
        self.var.expr()
    }

    /// Number of positions.
    pub fn extent(&self) -> Dim {
        self.extent
    }
}

impl IntoExpr for &Axis {
    fn into_expr(self, _: DType) -> Expr {
        self.expr()
    }
}

/// An axis along which every position writes elements of its own.
pub fn axis(extent: impl Into<Dim>, name: impl Into<Arc<str>>) -> Axis {
    Axis::new(extent.into(), name, IterKind::Spatial)
}

/// An axis whose positions are combined.
pub fn reduce_axis(extent: impl Into<Dim>, name: impl Into<Arc<str>>) -> Axis {
    Axis::new(extent.into(), name, IterKind::Reduce)
}

/// An axis whose positions run one after the other, each seeing what the one before wrote.
pub fn scan_axis(extent: impl Into<Dim>, name: impl Into<Arc<str>>) -> Axis {
    Axis::new(extent.into(), name, IterKind::Opaque)
}

/// Axes along a shape, of which some are scanned.
pub(crate) fn axes_along(shape: &[Dim], is_scanned: impl Fn(usize) -> bool) -> Vec<Axis> {
    let mut axes = Vec::new();
    for (k, &d) in shape.iter().enumerate() {
        let make = if is_scanned(k) { scan_axis } else { axis };
        axes.push(make(d, format!("i{k}")));
    }
    axes
}

/// How a reduction combines values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reducer {
    /// Their sum; nothing gives 0.
    Sum,
    /// Their product; nothing gives 1.
    Prod,
    /// The largest; nothing gives the lowest value of the type (minus infinity of floats). `NaN`
    /// if any is `NaN`.
    Max,
    /// The smallest; nothing gives the highest value of the type (infinity of floats). `NaN` if
    /// any is `NaN`.
    Min,
}

impl Reducer {
    /// What combining nothing gives.
    pub fn identity(self, dtype: DType) -> Expr {
        match self {
            Reducer::Sum => Expr::constant(0.0, dtype),
            Reducer::Prod => Expr::constant(1.0, dtype),
            Reducer::Max => lowest(dtype),
            Reducer::Min => highest(dtype),
        }
    }

    /// Both values combined.
    pub fn combine(self, a: Expr, b: Expr) -> Expr {
        let op = match self {
            Reducer::Sum => BinOp::Add,
            Reducer::Prod => BinOp::Mul,
            Reducer::Max => BinOp::Max,
            Reducer::Min => BinOp::Min,
        };
        Expr::binary(op, a, b)
    }
}

/// The lowest value of a type: minus infinity of floats.
pub fn lowest(dtype: DType) -> Expr {
    match dtype.min_int() {
        Some(v) => Expr::int(v as i64, dtype),
        None => Expr::float(f64::NEG_INFINITY, dtype),
    }
}

/// The highest value of a type: infinity of floats.
pub fn highest(dtype: DType) -> Expr {
    match dtype.kind {
        // The bits of the largest unsigned number are those of -1.
        TypeKind::UInt => Expr::int(-1, dtype),
        _ => match dtype.max_int() {
            Some(v) => Expr::int(v as i64, dtype),
            None => Expr::float(f64::INFINITY, dtype),
        },
    }
}

/// A reduction: what [`reduce`] gives and the function of a [`compute`] returns.
#[derive(Clone, Debug)]
pub struct Reduction {
    reducer: Reducer,
    value: Expr,
    axes: Vec<Axis>,
}

/// Combines the values of an expression over all positions of some axes. It accumulates in the
/// type of the expression: cast a narrow float to `float32` first.
pub fn reduce<'a>(
    reducer: Reducer,
    value: Expr,
    axes: impl IntoIterator<Item = &'a Axis>,
) -> Reduction {
    Reduction { reducer, value, axes: axes.into_iter().cloned().collect() }
}

/// What an element of a computed tensor is: an expression, or a reduction of one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Body {
    /// Just the value.
    Value(Expr),
    /// Values combined.
    Reduce(Reduction),
}

impl From<Expr> for Body {
    fn from(e: Expr) -> Self {
        Body::Value(e)
    }
}

impl From<Reduction> for Body {
    fn from(r: Reduction) -> Self {
        Body::Reduce(r)
    }
}

impl Body {
    fn dtype(&self) -> DType {
        match self {
            Body::Value(e) => e.dtype(),
            Body::Reduce(r) => r.value.dtype(),
        }
    }
}

/// One loop nest that stores one value at each of its positions.
#[derive(Clone, Debug)]
pub struct Stage {
    axes: Vec<Axis>,
    indices: Vec<Expr>,
    value: Expr,
    init: Option<Expr>,
}

impl Stage {
    /// Stores the body at the indices, for every position of the axes. A reduction's axes are
    /// added behind the others.
    pub fn new(
        out: &Buffer,
        axes: impl IntoIterator<Item = Axis>,
        indices: Vec<Expr>,
        body: impl Into<Body>,
    ) -> Stage {
        let mut axes: Vec<Axis> = axes.into_iter().collect();
        let (value, init) = match body.into() {
            Body::Value(value) => (value, None),
            Body::Reduce(r) if r.axes.is_empty() => (r.value, None),
            Body::Reduce(r) => {
                let identity = r.reducer.identity(r.value.dtype());
                // A loop without iterations initialises nothing.
                if r.axes.iter().any(|a| a.extent == 0) {
                    (identity, None)
                } else {
                    axes.extend(r.axes);
                    let acc = Expr::load(out, indices.clone());
                    (r.reducer.combine(acc, r.value), Some(identity))
                }
            }
        };
        Stage { axes, indices, value, init }
    }
}

fn buffer(name: impl Into<Arc<str>>, shape: &[Dim], dtype: DType) -> Buffer {
    Buffer::new(name, shape.iter().map(extent_of).collect(), dtype)
}

/// Extents past the range of `int32` are refused by `func`.
fn extent_of(d: &Dim) -> Expr {
    match d.known() {
        Some(n) => Expr::i32(i32::try_from(n).unwrap_or(i32::MAX)),
        None => d.expr(),
    }
}

/// A shape of numbers or sizes as sizes.
pub(crate) fn dims<D: Into<Dim> + Copy>(shape: &[D]) -> Vec<Dim> {
    shape.iter().map(|d| (*d).into()).collect()
}

/// An input.
pub fn placeholder<D: Into<Dim> + Copy>(
    name: impl Into<Arc<str>>,
    shape: &[D],
    dtype: DType,
) -> Tensor {
    let shape = dims(shape);
    Tensor::new(&buffer(name, &shape, dtype), &shape, None)
}

/// The tensor whose element at `i` is `f(i)`; its type is that of the expression.
pub fn compute<D: Into<Dim> + Copy, B: Into<Body>>(
    name: impl Into<Arc<str>>,
    shape: &[D],
    f: impl FnOnce(&[Expr]) -> B,
) -> Tensor {
    compute_over(name, axes_along(&dims(shape), |_| false), f)
}

/// Like [`compute`], with axes that have names of their own.
///
/// ```
/// use tilewright_ir::DType;
/// use tilewright_ops::te;
/// let x = te::placeholder("x", &[3, 5], DType::F32);
/// let y = te::compute_over("y", [te::axis(5, "col"), te::axis(3, "row")], |i| {
///     x.at([&i[1], &i[0]])
/// });
/// assert_eq!(y.shape(), [5, 3]);
/// ```
pub fn compute_over<B: Into<Body>>(
    name: impl Into<Arc<str>>,
    axes: impl IntoIterator<Item = Axis>,
    f: impl FnOnce(&[Expr]) -> B,
) -> Tensor {
    let axes: Vec<Axis> = axes.into_iter().collect();
    let indices: Vec<Expr> = axes.iter().map(Axis::expr).collect();
    let body = f(&indices).into();
    computed(name.into(), axes, indices, body)
}

/// [`compute_over`] of a body, compiled once.
fn computed(name: Arc<str>, axes: Vec<Axis>, indices: Vec<Expr>, body: Body) -> Tensor {
    let shape: Vec<Dim> = axes.iter().map(Axis::extent).collect();
    let out = buffer(name, &shape, body.dtype());
    let stage = Stage::new(&out, axes, indices, body);
    Tensor::new(&out, &shape, Some(vec![stage]))
}

/// A tensor that several stages write, one after the other; a stage may read what stages before
/// it wrote. Together they must write every element.
///
/// ```
/// use tilewright_ir::DType;
/// use tilewright_ops::te::{self, Stage};
/// // Two rows, one below the other.
/// let a = te::placeholder("a", &[7], DType::F32);
/// let b = te::placeholder("b", &[7], DType::F32);
/// let both = te::stages("both", &[2, 7], DType::F32, |out| {
///     let row = |t: &te::Tensor, row: i32| {
///         let j = te::axis(7, "j");
///         Stage::new(out, [j.clone()], vec![tilewright_ir::Expr::i32(row), j.expr()], t.at([&j]))
///     };
///     vec![row(&a, 0), row(&b, 1)]
/// });
/// te::func([&a, &b], [&both])?;
/// # Ok::<(), tilewright_ir::Error>(())
/// ```
pub fn stages<D: Into<Dim> + Copy>(
    name: impl Into<Arc<str>>,
    shape: &[D],
    dtype: DType,
    f: impl FnOnce(&Buffer) -> Vec<Stage>,
) -> Tensor {
    let shape = dims(shape);
    let out = buffer(name, &shape, dtype);
    let stages = f(&out);
    Tensor::new(&out, &shape, Some(stages))
}

/// Names what is wrong with a tensor.
fn invalid(tensor: &Tensor, what: impl std::fmt::Display) -> Error {
    Error::input(format!("tensor `{}`: {what}", tensor.name()))
}
