//! Expressions that Python functions make: a lambda is traced by calling it with symbols.

use std::sync::Arc;

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyTuple};
use tilewright::schedule;
use tilewright::schedule::LambdaItem;
use tilewright_driver::{DType, Error};
use tilewright_ir::lambda::LambdaBody;
use tilewright_ir::operators::IntoExpr;
use tilewright_ir::{BinOp, Expr as Tree, Intrin, Var};

use crate::error::Result;

/// An expression over indices and elements.
#[pyclass(frozen, module = "tilewright._native", from_py_object)]
#[derive(Clone)]
pub struct Expr(pub Tree);

/// An operand: an expression, or a number that takes the type of the other side.
enum Operand {
    Tree(Tree),
    Int(i64),
    Float(f64),
}

impl Operand {
    fn like(self, dtype: DType) -> Result<Tree> {
        Ok(match self {
            Operand::Tree(e) => e,
            Operand::Int(v) => v.into_expr(dtype),
            Operand::Float(v) if dtype.is_float() => v.into_expr(dtype),
            Operand::Float(v) => {
                let what = format!("the float {v} stands where a {dtype} is: cast with `astype`");
                return Err(PyTypeError::new_err(what).into());
            }
        })
    }
}

fn operand(obj: &Bound<'_, PyAny>) -> Result<Option<Operand>> {
    if let Ok(e) = obj.cast::<Expr>() {
        return Ok(Some(Operand::Tree(e.get().0.clone())));
    }
    if let Ok(b) = obj.cast::<PyBool>() {
        return Ok(Some(Operand::Tree(Tree::bool(b.is_true()))));
    }
    if let Ok(v) = obj.cast::<PyFloat>() {
        return Ok(Some(Operand::Float(v.value())));
    }
    // What counts as a whole number: those of NumPy too.
    if obj.cast::<PyInt>().is_ok() || obj.hasattr("__index__")? {
        let value: i64 = obj.extract().map_err(|_| {
            PyValueError::new_err("a number that does not fit int64 in an expression")
        })?;
        return Ok(Some(Operand::Int(value)));
    }
    // An axis of a tensor expression stands for its position.
    match obj.getattr_opt("expr")? {
        Some(inner) => match inner.cast::<Expr>() {
            Ok(e) => Ok(Some(Operand::Tree(e.get().0.clone()))),
            Err(_) => Ok(None),
        },
        None => Ok(None),
    }
}

/// An expression of an object; a bare number is one of `like`.
pub fn tree(obj: &Bound<'_, PyAny>, like: DType) -> Result<Tree> {
    match operand(obj)? {
        Some(found) => found.like(like),
        None => {
            let name = obj.get_type().name()?;
            let what = format!("expected an expression or a number, found {name}");
            Err(PyTypeError::new_err(what).into())
        }
    }
}

fn apply(op: BinOp, a: Tree, b: Tree) -> Result<Tree> {
    match op {
        BinOp::Add => Ok(a + b),
        BinOp::Sub => Ok(a - b),
        BinOp::Mul => Ok(a * b),
        BinOp::Div if a.dtype().is_float() || b.dtype().is_float() => Ok(a / b),
        BinOp::Div => {
            Err(PyTypeError::new_err("`/` is for floats: write `//` between indices").into())
        }
        BinOp::FloorDiv | BinOp::FloorMod if a.dtype().is_float() || b.dtype().is_float() => {
            Err(PyTypeError::new_err("`//` and `%` are for integers").into())
        }
        BinOp::FloorDiv => Ok(a.floordiv(b)),
        BinOp::FloorMod => Ok(a.floormod(b)),
        BinOp::Min => Ok(a.min(b)),
        BinOp::Max => Ok(a.max(b)),
        BinOp::Eq => Ok(a.equal(b)),
        BinOp::Ne => Ok(a.not_equal(b)),
        BinOp::Lt => Ok(a.less(b)),
        BinOp::Le => Ok(a.less_equal(b)),
        BinOp::Gt => Ok(a.greater(b)),
        BinOp::Ge => Ok(a.greater_equal(b)),
        BinOp::And | BinOp::Or if !(a.dtype().is_bool() && b.dtype().is_bool()) => {
            Err(PyTypeError::new_err("`&` and `|` are for conditions").into())
        }
        BinOp::And => Ok(a.and(b)),
        BinOp::Or => Ok(a.or(b)),
        _ => Err(Error::internal("an operator without a form in Python").into()),
    }
}

impl Expr {
    /// The operator with this on one side; `NotImplemented` lets Python ask the other one.
    fn with(&self, op: BinOp, other: &Bound<'_, PyAny>, first: bool) -> Result<Py<PyAny>> {
        let py = other.py();
        let Some(other) = operand(other)? else { return Ok(py.NotImplemented()) };
        let (own, other) = (self.0.clone(), other.like(self.0.dtype())?);
        let (a, b) = if first { (own, other) } else { (other, own) };
        Ok(Py::new(py, Expr(apply(op, a, b)?))?.into_any())
    }
}

#[pymethods]
impl Expr {
    fn __add__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::Add, other, true)
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::Add, other, false)
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::Sub, other, true)
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::Sub, other, false)
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::Mul, other, true)
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::Mul, other, false)
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::Div, other, true)
    }

    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::Div, other, false)
    }

    fn __floordiv__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::FloorDiv, other, true)
    }

    fn __rfloordiv__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::FloorDiv, other, false)
    }

    fn __mod__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::FloorMod, other, true)
    }

    fn __rmod__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::FloorMod, other, false)
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::And, other, true)
    }

    fn __rand__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::And, other, false)
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::Or, other, true)
    }

    fn __ror__(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::Or, other, false)
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> Result<Py<PyAny>> {
        let op = match op {
            CompareOp::Lt => BinOp::Lt,
            CompareOp::Le => BinOp::Le,
            CompareOp::Eq => BinOp::Eq,
            CompareOp::Ne => BinOp::Ne,
            CompareOp::Gt => BinOp::Gt,
            CompareOp::Ge => BinOp::Ge,
        };
        self.with(op, other, true)
    }

    fn __neg__(&self) -> Expr {
        Expr(-self.0.clone())
    }

    fn __invert__(&self) -> Result<Expr> {
        if self.0.dtype().is_bool() {
            Ok(Expr(!self.0.clone()))
        } else {
            Err(PyTypeError::new_err("`~` is for conditions").into())
        }
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "an expression is not known while it is written: use te.select instead of \
                 `if`, `&` instead of `and`, `|` instead of `or`, and te.min and te.max",
        ))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Expr({}: {})", self.0, self.0.dtype())
    }

    fn __hash__(&self) -> usize {
        self.0.address()
    }

    /// The smaller of two.
    fn min(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::Min, other, true)
    }

    /// The larger of two.
    fn max(&self, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.with(BinOp::Max, other, true)
    }

    /// The value as another type.
    fn astype(&self, dtype: &str) -> Result<Expr> {
        Ok(Expr(self.0.clone().cast(dtype.parse()?)))
    }

    /// The element type.
    #[getter]
    fn dtype(&self) -> String {
        self.0.dtype().to_string()
    }
}

/// `a` where the condition holds, else `b`; only what is chosen is evaluated.
#[pyfunction]
pub fn select(
    condition: &Bound<'_, PyAny>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
) -> Result<Expr> {
    let condition = tree(condition, DType::BOOL)?;
    if !condition.dtype().is_bool() {
        return Err(PyTypeError::new_err("the first argument of select is a condition").into());
    }
    // A number takes the type of the other branch.
    let like = |x: &Bound<'_, PyAny>| -> Result<Option<DType>> {
        Ok(match operand(x)? {
            Some(Operand::Tree(e)) => Some(e.dtype()),
            _ => None,
        })
    };
    let dtype = like(a)?.or(like(b)?).unwrap_or(DType::F32);
    let (a, b) = (tree(a, dtype)?, tree(b, dtype)?);
    if a.dtype() != b.dtype() {
        let what = format!("select between {} and {}: cast one of them", a.dtype(), b.dtype());
        return Err(PyTypeError::new_err(what).into());
    }
    Ok(Expr(Tree::if_then_else(condition, a, b)))
}

/// The built-in functions: name and number of operands of each.
#[pyfunction]
pub fn intrinsics() -> Vec<(&'static str, usize)> {
    Intrin::ALL.iter().filter(|i| !i.is_hint()).map(|i| (i.name(), i.arity())).collect()
}

/// A built-in function of expressions.
#[pyfunction]
#[pyo3(signature = (name, *args))]
pub fn intrinsic(name: &str, args: &Bound<'_, PyTuple>) -> Result<Expr> {
    let op = Intrin::from_name(name)
        .ok_or_else(|| Error::input(format!("there is no built-in function `{name}`")))?;
    if args.len() != op.arity() {
        let what = format!("`{name}` takes {} operands, and was given {}", op.arity(), args.len());
        return Err(PyTypeError::new_err(what).into());
    }
    let mut like = DType::F32;
    for arg in args.iter() {
        if let Some(Operand::Tree(e)) = operand(&arg)? {
            like = e.dtype();
        }
    }
    let args = args.iter().map(|arg| tree(&arg, like)).collect::<Result<Vec<Tree>>>()?;
    if let Some(wrong) = args.iter().find(|e| !op.operands().admit(e.dtype())) {
        let what = format!("`{name}` takes {}, not {}", op.operands().text(), wrong.dtype());
        return Err(PyTypeError::new_err(what).into());
    }
    Ok(Expr(Tree::intrin(op, args)))
}

/// A function of indices, written in Python.
#[pyclass(frozen, module = "tilewright._native", from_py_object)]
#[derive(Clone)]
pub struct Lambda(pub schedule::Lambda);

#[pymethods]
impl Lambda {
    /// Traces a function of as many indices as there are names; `separator` is the object that ends a
    /// group of axes.
    #[new]
    fn new(
        py: Python<'_>,
        function: Py<PyAny>,
        names: Vec<String>,
        separator: Py<PyAny>,
    ) -> Result<Lambda> {
        let indices: Vec<Var> = names.iter().map(|n| Var::index(n.as_str())).collect();
        let traced = trace(function.bind(py), &indices, separator.bind(py))?;
        let items: Vec<String> = traced.items.iter().map(LambdaItem::to_string).collect();
        let text = if traced.is_list {
            format!("lambda {}: [{}]", names.join(", "), items.join(", "))
        } else {
            format!("lambda {}: {}", names.join(", "), items.join(", "))
        };
        let shared = Arc::new((function, separator));
        let bind = move |dtypes: &[DType]| {
            if dtypes.len() != names.len() {
                let (own, wanted) = (names.len(), dtypes.len());
                let what = format!("the function takes {own} indices, and here are {wanted}");
                return Err(Error::input(what));
            }
            let pairs = names.iter().zip(dtypes);
            let params: Vec<Var> = pairs.map(|(n, d)| Var::new(n.as_str(), *d)).collect();
            Python::attach(|py| {
                let traced = trace(shared.0.bind(py), &params, shared.1.bind(py));
                let items = traced.map(|t| t.items).map_err(|e| {
                    let e = PyErr::from(e);
                    Error::input(format!("the function of indices raised {e}"))
                })?;
                Ok(LambdaBody { params, items })
            })
        };
        Ok(Lambda(schedule::Lambda::new(text, bind)))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// What a function gave for symbols.
struct Traced {
    items: Vec<LambdaItem>,
    is_list: bool,
}

fn trace(
    function: &Bound<'_, PyAny>,
    indices: &[Var],
    separator: &Bound<'_, PyAny>,
) -> Result<Traced> {
    let py = function.py();
    let symbols: Vec<Expr> = indices.iter().map(|v| Expr(v.expr())).collect();
    let given = function.call1(PyTuple::new(py, symbols)?)?;
    let item = |obj: &Bound<'_, PyAny>| -> Result<LambdaItem> {
        if obj.is(separator) {
            return Ok(LambdaItem::Separator);
        }
        if obj.is_none() {
            return Ok(LambdaItem::None);
        }
        Ok(match operand(obj)? {
            Some(Operand::Tree(e)) => LambdaItem::Expr(e),
            // Exact in a float, so that it may take any type.
            Some(Operand::Int(v)) if v.unsigned_abs() < 1 << 53 => LambdaItem::Number(v as f64),
            Some(Operand::Int(v)) => LambdaItem::Expr(Tree::int(v, DType::I64)),
            Some(Operand::Float(v)) => LambdaItem::Number(v),
            None => {
                let name = obj.get_type().name()?;
                let what = format!("the function of indices gave {name}: expected expressions");
                return Err(PyTypeError::new_err(what).into());
            }
        })
    };
    let is_list = given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>();
    let items = if is_list {
        given.try_iter()?.map(|obj| item(&obj?)).collect::<Result<Vec<_>>>()?
    } else {
        vec![item(&given)?]
    };
    Ok(Traced { items, is_list })
}
