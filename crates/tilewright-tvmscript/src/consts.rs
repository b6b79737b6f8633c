//! Constant tensors as text.
//!
//! Three forms, all exact:
//! * `R.const([[1.0, 2.0]], "float32")` for a few elements;
//! * `R.const(b64="...", shape=(64, 3, 7, 7), dtype="float32")`: the bytes, row-major and
//!   little-endian, in base 64, for many of them, and wherever a list could not say the bits
//!   (`NaN`) or the shape (no elements);
//!   `T.allocate_const` takes both forms, with the type and the extents;
//! * `R.const_ref("c0", R.Tensor((64, 3, 7, 7), dtype="float32"))`: an entry of a
//!   [`ConstTable`] that is kept beside the text.

use std::fmt::Write;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use indexmap::IndexMap;
use ruff_python_ast as ast;
use tilewright_ir::scalar::Scalar;
use tilewright_ir::{DType, Error, Result, Tensor, TypeKind, text};

use crate::args::{Args, elements, string};
use crate::expr::ExprParser;
use crate::value::{TextValue, int_literal};

/// Most elements of a constant that is printed as a list.
const LISTED: usize = 64;

/// Constants by name, kept beside a text that names them.
#[derive(Clone, Debug, Default)]
pub struct ConstTable {
    entries: IndexMap<Arc<str>, Tensor>,
}

impl ConstTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces an entry.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, tensor: Tensor) {
        self.entries.insert(name.into(), tensor);
    }

    /// The entry of this name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.entries.get(name)
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Tensor)> {
        self.entries.iter()
    }

    /// The name of a tensor, which is added where it is new.
    fn name_of(&mut self, tensor: &Tensor) -> Arc<str> {
        if let Some((name, _)) = self.entries.iter().find(|(_, t)| has_bytes_of(t, tensor)) {
            return name.clone();
        }
        let names = (self.entries.len()..).map(|i| format!("c{i}"));
        let free = names.map(Arc::<str>::from).find(|n| !self.entries.contains_key(n));
        let name = free.unwrap_or_else(|| "c".into());
        self.entries.insert(name.clone(), tensor.clone());
        name
    }
}

fn bytes_of(t: &Tensor) -> (*const u8, DType) {
    (t.bytes().as_ptr(), t.dtype())
}

fn has_bytes_of(t: &Tensor, tensor: &Tensor) -> bool {
    bytes_of(t) == bytes_of(tensor) && t.shape() == tensor.shape() && !t.is_empty()
}

/// The type of a constant as text.
fn type_text(t: &Tensor) -> String {
    format!("R.Tensor({}, dtype=\"{}\")", text::tuple(t.shape()), t.dtype())
}

/// The text of a constant; large ones go to the table, where there is one.
pub(crate) fn print(t: &Tensor, table: Option<&mut ConstTable>) -> String {
    let small = t.len() <= LISTED && can_be_listed(t);
    match table {
        Some(table) if !small => {
            let name = table.name_of(t);
            format!("R.const_ref({}, {})", text::quote(&name), type_text(t))
        }
        None if !small => {
            let shape = text::tuple(t.shape());
            format!("R.const({}, shape={shape}, dtype=\"{}\")", encoded(t), t.dtype())
        }
        _ => format!("R.const({}, \"{}\")", list(t, t.shape()), t.dtype()),
    }
}

/// The elements of a constant of a tensor function, with their type and their extents.
pub(crate) fn print_elements(t: &Tensor) -> String {
    let (dtype, extents) = (t.dtype(), t.shape());
    if t.len() <= LISTED && can_be_listed(t) {
        format!("{}, \"{dtype}\", {extents:?}", list(t, &[t.len()]))
    } else {
        format!("{}, dtype=\"{dtype}\", extents={extents:?}", encoded(t))
    }
}

fn encoded(t: &Tensor) -> String {
    format!("b64=\"{}\"", STANDARD.encode(t.bytes()))
}

fn list(t: &Tensor, shape: &[usize]) -> String {
    let mut out = String::new();
    print_list(t, shape, &mut 0, &mut out);
    out
}

/// Whether a list of numbers says every bit and the shape.
fn can_be_listed(t: &Tensor) -> bool {
    let kind = t.dtype().kind;
    let known = !matches!(kind, TypeKind::Handle | TypeKind::Void) && t.dtype().lanes == 1;
    known
        && !t.is_empty()
        && match kind {
            TypeKind::Bool => t.bytes().iter().all(|b| *b <= 1),
            TypeKind::Float | TypeKind::BFloat => (0..t.len()).all(|i| !t.get_f64(i).is_nan()),
            _ => true,
        }
}

fn print_list(t: &Tensor, shape: &[usize], next: &mut usize, out: &mut String) {
    let Some((n, inner)) = shape.split_first() else {
        let i = *next;
        *next += 1;
        let _ = match t.dtype().kind {
            TypeKind::Bool => write!(out, "{}", if t.get_i128(i) != 0 { "True" } else { "False" }),
            TypeKind::Float | TypeKind::BFloat => {
                write!(out, "{}", float_literal(t.get_f64(i), t.dtype()))
            }
            _ => write!(out, "{}", t.get_i128(i)),
        };
        return;
    };
    out.push('[');
    for i in 0..*n {
        if i > 0 {
            out.push_str(", ");
        }
        print_list(t, inner, next, out);
    }
    out.push(']');
}

/// Python text of a float.
pub(crate) fn float_literal(v: f64, dtype: DType) -> String {
    match v {
        v if v.is_nan() => "float(\"nan\")".to_owned(),
        f64::INFINITY => "float(\"inf\")".to_owned(),
        f64::NEG_INFINITY => "float(\"-inf\")".to_owned(),
        v => text::float_text(v, dtype),
    }
}

impl ExprParser {
    /// `R.const(...)`
    pub(crate) fn constant_tensor(&mut self, c: &ast::ExprCall) -> Result<Tensor> {
        let args = Args::bind(c, "R.const", &["value", "dtype", "b64", "shape"])?;
        if args.get("b64").is_none() {
            if args.get("value").is_none() {
                return Err(self.error(c, "a constant needs its elements").help(
                    "write R.const([[1.0, 2.0]], \"float32\"); a value that is not known \
                     is a parameter of the function",
                ));
            }
            return self.listed(&args);
        }
        self.shaped(&args, args.need("shape")?)
    }

    /// Elements in base 64 or as a list, with their type, in the shape that is given.
    pub(crate) fn shaped(&mut self, args: &Args, shape: &ast::Expr) -> Result<Tensor> {
        let dtype = self.dtype(args.need("dtype")?)?;
        let extents = elements(shape);
        let extents: Vec<usize> = extents.iter().map(|e| self.count(e)).collect::<Result<_>>()?;
        let Some(encoded) = args.get("b64") else {
            let listed = self.listed(args)?;
            let shaped = listed.reshape(&extents);
            return shaped.map_err(|e| self.error(shape, e.to_string()));
        };
        let bytes = STANDARD
            .decode(string(encoded)?)
            .map_err(|_| self.error(encoded, "the text is not base 64"))?;
        Tensor::from_bytes(dtype, &extents, &bytes).map_err(|e| self.error(encoded, e.to_string()))
    }

    fn listed(&mut self, args: &Args) -> Result<Tensor> {
        let value = args.need("value")?;
        let mut values = Vec::new();
        let mut shape = Vec::new();
        self.list(value, 0, &mut shape, &mut values)?;
        let dtype = match args.get("dtype") {
            Some(e) => self.dtype(e)?,
            // As NumPy would, in the widths that models use.
            None if values.iter().any(|(v, _)| matches!(v, TextValue::Float(_))) => DType::F32,
            None if values.iter().any(|(v, _)| matches!(v, TextValue::Int(_))) => DType::I32,
            None => DType::BOOL,
        };
        let mut bytes = Vec::with_capacity(values.len().saturating_mul(dtype.bytes()));
        for (v, at) in &values {
            element(v, dtype, &mut bytes).map_err(|e| e.at(*at))?;
        }
        Tensor::from_bytes(dtype, &shape, &bytes).map_err(|e| self.error(value, e.to_string()))
    }

    /// Elements of nested lists, and their shape.
    fn list(
        &mut self,
        e: &ast::Expr,
        depth: usize,
        shape: &mut Vec<usize>,
        values: &mut Vec<(TextValue, tilewright_ir::Span)>,
    ) -> Result<()> {
        if !matches!(e, ast::Expr::List(_) | ast::Expr::Tuple(_)) {
            if depth < shape.len() {
                return Err(ragged().at(self.span(e)));
            }
            values.push((self.value(e)?, self.span(e)));
            return Ok(());
        }
        let inner = elements(e);
        match shape.get(depth) {
            // Only the way to the first element makes the shape longer.
            None if values.is_empty() => shape.push(inner.len()),
            Some(n) if *n == inner.len() => {}
            _ => return Err(ragged().at(self.span(e))),
        }
        inner.iter().try_for_each(|e| self.list(e, depth + 1, shape, values))
    }
}

fn ragged() -> Error {
    Error::syntax("the lists of a constant have different lengths")
}

/// Appends the bytes of an element.
fn element(v: &TextValue, dtype: DType, bytes: &mut Vec<u8>) -> Result<()> {
    let wrong = || Error::syntax(format!("expected {dtype}, found {}", v.describe()));
    let number = match v {
        TextValue::Int(v) => *v as f64,
        TextValue::Float(v) => *v,
        TextValue::Bool(v) => f64::from(u8::from(*v)),
        _ => return Err(wrong()),
    };
    let value = match (dtype.kind, v) {
        _ if dtype.lanes != 1 => return Err(wrong()),
        (TypeKind::Float | TypeKind::BFloat, _) => Scalar::float(number, dtype),
        (TypeKind::Bool, _) => Scalar::from(number != 0.0),
        (TypeKind::Int | TypeKind::UInt, TextValue::Int(v)) => {
            Scalar::int(int_literal(*v, dtype)?.as_int().unwrap_or(0), dtype)
        }
        (TypeKind::Int | TypeKind::UInt, TextValue::Bool(v)) => Scalar::int((*v).into(), dtype),
        _ => return Err(wrong()),
    };
    bytes.extend(&value.bits().to_le_bytes()[..dtype.bytes()]);
    Ok(())
}
