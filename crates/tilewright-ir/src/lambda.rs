//! Functions of indices: what a lambda of a script returns, over variables of its own.
//!
//! Index maps and pad values are given as such functions: the reader of scripts makes them, the
//! primitives of a schedule take them.

use std::fmt;

use crate::text::float_text;
use crate::{DType, Expr, Var};

/// A lambda with its parameters.
#[derive(Clone, Debug)]
pub struct LambdaBody {
    /// One variable a parameter, of the types asked for.
    pub params: Vec<Var>,
    /// What it returns; one item where it is not a list or tuple.
    pub items: Vec<LambdaItem>,
}

/// One item of what a lambda returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LambdaItem {
    /// A value.
    Expr(Expr),
    /// A bare number, which takes the type of its surroundings.
    Number(f64),
    /// `None`.
    None,
    /// `AXIS_SEPARATOR`.
    Separator,
}

impl fmt::Display for LambdaItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LambdaItem::Expr(e) => write!(f, "{e}"),
            LambdaItem::Number(v) => f.write_str(&float_text(*v, DType::F64)),
            LambdaItem::None => f.write_str("None"),
            LambdaItem::Separator => f.write_str("AXIS_SEPARATOR"),
        }
    }
}

impl From<Expr> for LambdaItem {
    fn from(e: Expr) -> Self {
        LambdaItem::Expr(e)
    }
}

impl From<&Expr> for LambdaItem {
    fn from(e: &Expr) -> Self {
        LambdaItem::Expr(e.clone())
    }
}
