//! Functions of indices: what a lambda of a script returns, over variables of its own.
//!
//! Index maps and pad values are given as such functions: the reader of scripts makes them, the
//! primitives of a schedule take them.

use std::fmt;
use std::sync::Arc;

use crate::text::float_text;
use crate::{Buffer, DType, Error, Expr, Result, Var};

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

/// Most items of a lambda: axes of a buffer, or loops of a nest.
const MAX_ITEMS: usize = 64;

/// A lambda in a script: index maps and pad values. The number and types of its parameters are
/// known only when a primitive meets its buffer, so binding comes later.
#[derive(Clone)]
pub struct Lambda {
    bind: Arc<BindLambda>,
    text: Arc<str>,
}

type BindLambda = dyn Fn(&[DType], &[Buffer]) -> Result<LambdaBody> + Send + Sync;

impl Lambda {
    /// A lambda from its text and a function that binds parameters of the given types; with a
    /// star parameter it takes any number of them, otherwise another number is an error.
    pub fn new(
        text: impl Into<Arc<str>>,
        bind: impl Fn(&[DType]) -> Result<LambdaBody> + Send + Sync + 'static,
    ) -> Self {
        Lambda::over_buffers(text, move |dtypes, _| bind(dtypes))
    }

    /// Like [`Lambda::new`], for a body that may read buffers by name: those that it is given come
    /// before all others of the same name.
    pub fn over_buffers(
        text: impl Into<Arc<str>>,
        bind: impl Fn(&[DType], &[Buffer]) -> Result<LambdaBody> + Send + Sync + 'static,
    ) -> Self {
        Lambda { bind: Arc::new(bind), text: text.into() }
    }

    /// A lambda of Rust, over parameters with these names.
    pub fn from_fn<N: Into<Arc<str>>>(
        params: impl IntoIterator<Item = N>,
        f: impl Fn(&[Expr]) -> Vec<LambdaItem> + Send + Sync + 'static,
    ) -> Self {
        Lambda::over_vars(params.into_iter().map(|n| Var::index(n)).collect(), f)
    }

    /// The same, printed in terms of variables.
    pub fn over_vars(
        vars: Vec<Var>,
        f: impl Fn(&[Expr]) -> Vec<LambdaItem> + Send + Sync + 'static,
    ) -> Self {
        let over = move |params: &[Var]| f(&params.iter().map(Var::expr).collect::<Vec<_>>());
        let names: Vec<&str> = vars.iter().map(|v| &**v.name()).collect();
        let items: Vec<String> = over(&vars).iter().map(LambdaItem::to_string).collect();
        let text = format!("lambda {}: [{}]", names.join(", "), items.join(", "));
        Lambda::new(text, move |dtypes| {
            if dtypes.len() == vars.len() {
                let pairs = vars.iter().zip(dtypes);
                let params: Vec<Var> = pairs.map(|(v, d)| Var::new(v.name().clone(), *d)).collect();
                Ok(LambdaBody { items: over(&params), params })
            } else {
                let (takes, given) = (vars.len(), dtypes.len());
                Err(Error::input(format!("the function takes {takes} indices, not {given}")))
            }
        })
    }

    /// An index map of Rust, over so many indices `i0`, `i1` and so on.
    pub fn over_indices(
        rank: usize,
        map: impl Fn(&[Expr]) -> Vec<Expr> + Send + Sync + 'static,
    ) -> Self {
        let names = (0..rank).map(|d| format!("i{d}"));
        Lambda::from_fn(names, move |at| map(at).into_iter().map(LambdaItem::Expr).collect())
    }

    /// The body over new parameters of these types.
    pub fn bind(&self, params: &[DType]) -> Result<LambdaBody> {
        self.bind_with(params, &[])
    }

    /// The body over new parameters of these types, where names of buffers mean these first: a pad
    /// value reads the buffer as it lies after the transformation.
    pub fn bind_with(&self, params: &[DType], buffers: &[Buffer]) -> Result<LambdaBody> {
        let body = (self.bind)(params, buffers)?;
        if body.items.len() > MAX_ITEMS {
            Err(Error::input(format!(
                "the lambda gives {} items, at most {MAX_ITEMS} are allowed",
                body.items.len()
            )))
        } else {
            Ok(body)
        }
    }
}

impl fmt::Debug for Lambda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
