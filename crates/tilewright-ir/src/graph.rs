//! Graph functions: dataflow over tensors whose work is done by calls of tensor functions.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Span;
use crate::expr::{Expr, Var, by_identity, fresh_id};
use crate::list::ListOp;
use crate::stmt::Attrs;
use crate::tensor::Tensor;

/// Element type and shape of a tensor value.
#[derive(Clone, Debug)]
pub struct TensorType {
    /// Extents, outermost first; may contain variables.
    pub shape: Vec<Expr>,
    /// Element type.
    pub dtype: DType,
}

impl TensorType {
    /// A type with constant `int64` extents.
    pub fn fixed(shape: &[usize], dtype: DType) -> Self {
        let shape = shape.iter().map(|&d| Expr::int(d as i64, DType::I64)).collect();
        TensorType { shape, dtype }
    }

    /// The extents, where all are constants that are not negative.
    pub fn const_shape(&self) -> Option<Vec<usize>> {
        self.shape.iter().map(|e| e.as_int().and_then(|v| usize::try_from(v).ok())).collect()
    }
}

/// Type of a graph value.
#[derive(Clone, Debug)]
pub enum GraphType {
    /// A tensor of known rank.
    Tensor(TensorType),
    /// Several values.
    Tuple(Vec<GraphType>),
    /// A list of sizes: `R.Shape([n, 4])`.
    Shape(Vec<Expr>),
    /// Anything else, lists and optionals among it; the text of its annotation.
    Opaque(Arc<str>),
}

impl GraphType {
    /// The tensor type, where it is one.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            GraphType::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// That of a call with these outputs: one is a tensor, several are a tuple.
    pub fn of_outputs(outs: &[TensorType]) -> GraphType {
        match outs {
            [one] => GraphType::Tensor(one.clone()),
            _ => GraphType::Tuple(outs.iter().cloned().map(GraphType::Tensor).collect()),
        }
    }

    /// The variables that stand alone as an extent or a size: a value of the type says what they are.
    pub fn bound_sizes(&self) -> Vec<Var> {
        match self {
            GraphType::Tensor(TensorType { shape, .. }) | GraphType::Shape(shape) => {
                shape.iter().filter_map(Expr::as_var).cloned().collect()
            }
            GraphType::Tuple(items) => items.iter().flat_map(GraphType::bound_sizes).collect(),
            GraphType::Opaque(_) => Vec::new(),
        }
    }
}

/// A variable of a graph function. Equality goes by identity.
#[derive(Clone)]
pub struct GraphVar(Arc<GraphVarData>);

struct GraphVarData {
    id: u64,
    name: Arc<str>,
    ty: GraphType,
}

impl GraphVar {
    /// A new variable, different from every other.
    pub fn new(name: impl Into<Arc<str>>, ty: GraphType) -> Self {
        GraphVar(Arc::new(GraphVarData { id: fresh_id(), name: name.into(), ty }))
    }

    /// A new tensor variable.
    pub fn tensor(name: impl Into<Arc<str>>, ty: TensorType) -> Self {
        Self::new(name, GraphType::Tensor(ty))
    }

    /// The name: for parameters and outputs of a model, the name that its user knows.
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// The type.
    pub fn ty(&self) -> &GraphType {
        &self.0.ty
    }

    /// The identity.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// An expression that reads the variable.
    pub fn expr(&self) -> GraphExpr {
        GraphExpr::Var(self.clone())
    }
}

by_identity!(GraphVar);

/// What the name of an operator begins with that calls a graph function of the module.
const OF_MODULE: &str = "cls.";

/// The graph function of the module that an operator calls.
pub fn callee(op: &str) -> Option<&str> {
    op.strip_prefix(OF_MODULE)
}

/// The operator that calls a graph function of the module.
pub fn call_of(func: &str) -> String {
    format!("{OF_MODULE}{func}")
}

/// A graph expression.
#[derive(Clone, Debug)]
pub enum GraphExpr {
    /// The value of a variable.
    Var(GraphVar),
    /// A constant tensor.
    Const(Tensor),
    /// `R.call_tir(cls.func, args, outs)`: runs a tensor function with the arguments, then the
    /// freshly allocated outputs, then the scalars. One output gives a tensor, several a tuple.
    CallTir {
        /// Name of the tensor function in the module.
        func: Arc<str>,
        /// Inputs.
        args: Vec<GraphExpr>,
        /// Types of the outputs.
        outs: Vec<TensorType>,
        /// Scalar arguments (`tir_vars=`).
        scalars: Vec<Expr>,
    },
    /// A call of an operator (`R.add`) or of another graph function (`cls.f`).
    Call {
        /// `R.<name>` or `cls.<name>`.
        op: Arc<str>,
        /// Arguments.
        args: Vec<GraphExpr>,
        /// Attributes.
        attrs: Attrs,
    },
    /// Several values.
    Tuple(Vec<GraphExpr>),
    /// One value of a tuple.
    Item(Box<GraphExpr>, usize),
    /// One of two bodies.
    If(Arc<Branches>),
    /// Iterations of a body.
    Loop(Arc<Loop>),
}

impl GraphExpr {
    /// A call with one or more outputs and no scalars.
    pub fn call_tir(
        func: impl Into<Arc<str>>,
        args: Vec<GraphExpr>,
        outs: Vec<TensorType>,
    ) -> Self {
        GraphExpr::CallTir { func: func.into(), args, outs, scalars: Vec::new() }
    }

    /// Its type, as far as it follows from the expression alone: calls of operators and of graph
    /// functions are `R.Object`.
    pub fn ty(&self) -> GraphType {
        let object = || GraphType::Opaque("R.Object".into());
        match self {
            GraphExpr::Var(v) => v.ty().clone(),
            GraphExpr::Const(t) => GraphType::Tensor(TensorType::fixed(t.shape(), t.dtype())),
            GraphExpr::CallTir { outs, .. } => GraphType::of_outputs(outs),
            GraphExpr::Tuple(items) => GraphType::Tuple(items.iter().map(GraphExpr::ty).collect()),
            GraphExpr::Item(tuple, i) => match tuple.ty() {
                GraphType::Tuple(items) => items.get(*i).cloned().unwrap_or_else(object),
                _ => object(),
            },
            GraphExpr::Call { op, .. } => ListOp::find(op)
                .and_then(ListOp::scalar)
                .map_or_else(object, |dtype| GraphType::Tensor(TensorType::fixed(&[], dtype))),
            GraphExpr::If(_) | GraphExpr::Loop(_) => object(),
        }
    }

    /// Whether it is written where it is used, and computes nothing: a constant, or a shape, number,
    /// text or type (`R.shape([n, 4])`), or a tuple of such.
    pub fn is_literal(&self) -> bool {
        match self {
            GraphExpr::Const(_) => true,
            GraphExpr::Tuple(items) => items.iter().all(GraphExpr::is_literal),
            GraphExpr::Call { op, args, .. } => args.is_empty() && LITERALS.contains(&&**op),
            GraphExpr::Var(_)
            | GraphExpr::CallTir { .. }
            | GraphExpr::Item(..)
            | GraphExpr::If(_)
            | GraphExpr::Loop(_) => false,
        }
    }
}

/// Operators that only write down a value which is no tensor.
const LITERALS: [&str; 4] = ["R.shape", "R.prim_value", "R.str", "R.dtype"];

/// `var = value`.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Bound variable.
    pub var: GraphVar,
    pub value: GraphExpr,
    /// Place in the source.
    pub span: Option<Span>,
}

/// Bindings in order.
#[derive(Clone, Debug)]
pub struct BindingBlock {
    /// Whether this is an `R.dataflow()` region, whose bindings have no side effects.
    pub dataflow: bool,
    pub bindings: Vec<Binding>,
    /// Variables of a dataflow region that are known after it (`R.output`).
    pub outputs: Vec<GraphVar>,
}

/// A graph function.
#[derive(Clone, Debug)]
pub struct GraphFunc {
    /// Parameters.
    pub params: Vec<GraphVar>,
    /// Bindings.
    pub blocks: Vec<BindingBlock>,
    /// The result.
    pub ret: GraphExpr,
    /// Its type, where the text says it.
    pub ret_ty: Option<GraphType>,
    /// Attributes; `output_names` lists the outputs' names as the user knows them.
    pub attrs: Attrs,
    /// Not visible outside its module.
    pub private: bool,
    /// Place in the source.
    pub span: Option<Span>,
}

impl GraphFunc {
    /// A function of dataflow alone, which gives these variables: one value, or a tuple of several.
    pub fn of_dataflow(
        params: Vec<GraphVar>,
        bindings: Vec<Binding>,
        results: Vec<GraphVar>,
    ) -> GraphFunc {
        let types = results.iter().map(|v| v.ty().clone());
        let (ret, ret_ty) = match &results[..] {
            [one] => (one.expr(), one.ty().clone()),
            all => {
                let values = all.iter().map(GraphVar::expr);
                (GraphExpr::Tuple(values.collect()), GraphType::Tuple(types.collect()))
            }
        };
        let block = BindingBlock { dataflow: true, bindings, outputs: results };
        let (blocks, ret_ty, attrs) = (vec![block], Some(ret_ty), Attrs::new());
        GraphFunc { params, ret_ty, blocks, ret, attrs, private: false, span: None }
    }

    /// All bindings in order.
    pub fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.blocks.iter().flat_map(|b| &b.bindings)
    }
}

/// Bindings and a result, inside of a graph function.
#[derive(Clone, Debug)]
pub struct Body {
    /// Bindings.
    pub blocks: Vec<BindingBlock>,
    /// The result.
    pub ret: GraphExpr,
}

impl Body {
    /// All bindings of its own in order.
    pub fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.blocks.iter().flat_map(|b| &b.bindings)
    }
}

/// One of two bodies, which give values of the same kinds.
#[derive(Clone, Debug)]
pub struct Branches {
    /// Which one: one `bool`.
    pub cond: GraphExpr,
    /// Where it is true.
    pub then: Body,
    /// Where it is false.
    pub otherwise: Body,
}

/// Iterations of a body, as long as fewer ran than `trip` says and `cond`, later what the body says,
/// is true.
#[derive(Clone, Debug)]
pub struct Loop {
    /// How many iterations there are at most: one `int64`. Without it, any number.
    pub trip: Option<GraphExpr>,
    /// Whether there is a first iteration: one `bool`.
    pub cond: Option<GraphExpr>,
    /// The first values of what is carried.
    pub carried: Vec<GraphExpr>,
    /// The number of the iteration from zero on, one `int64`; then the carried values.
    pub params: Vec<GraphVar>,
    /// Gives a tuple: whether there is another iteration, one `bool`; the carried values for it; then
    /// what is scanned. The value of the loop is a tuple of the carried and the scanned values.
    pub body: Body,
}

impl Loop {
    /// The values that it is given, in order.
    pub fn operands(&self) -> impl Iterator<Item = &GraphExpr> {
        self.trip.iter().chain(&self.cond).chain(&self.carried)
    }
}
