//! Graph functions over plain values: what each variable stands for, and the calls of graph functions that
//! are expanded, so that one that calls itself ends.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::{Error, GraphExpr, GraphFunc, Module, Result, Span};

/// How deep tuples, and calls of graph functions, may be nested.
const MAX_DEPTH: usize = 64;

/// The environment of an expression.
pub struct Env<'m> {
    /// The module whose functions are called.
    pub module: &'m Module,
    /// What variables stand for: variables, constants, and tuples of such.
    pub values: HashMap<u64, GraphExpr>,
    /// Where errors are.
    pub span: Option<Span>,
    /// The functions whose calls are under way, the outermost first.
    calls: Vec<Arc<str>>,
    depth: usize,
}

impl<'m> Env<'m> {
    /// The begin of a graph function.
    pub fn new(module: &'m Module, name: &str, span: Option<Span>) -> Self {
        Env { module, values: HashMap::default(), span, calls: vec![name.into()], depth: 0 }
    }

    /// Whether nothing is expanded.
    pub fn is_outermost(&self) -> bool {
        self.calls.len() == 1
    }

    /// The function that a call with so many arguments calls.
    fn callee(&self, name: &str, args: usize) -> Result<Arc<GraphFunc>> {
        let func = self.module.graph(name)?;
        if self.calls.iter().any(|c| **c == *name) || self.calls.len() >= MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "the graph function `{name}` calls itself, or calls are nested deeper than {MAX_DEPTH}"
            )));
        }
        if func.params.len() != args {
            return Err(Error::malformed(format!(
                "`{name}` takes {} arguments and is given {args}",
                func.params.len()
            )));
        }
        Ok(func.clone())
    }
}

/// An item of a tuple.
///
/// # Errors
/// [`Error::Malformed`] where it has fewer.
pub fn tuple_item<T: Clone>(items: &[T], k: usize) -> Result<T> {
    items
        .get(k)
        .cloned()
        .ok_or_else(|| Error::malformed(format!("item {k} of a tuple of {}", items.len())))
}

/// What takes the expressions of a graph function apart. Errors are at the span of the environment.
pub trait Resolve<'m> {
    /// Where it is.
    fn env(&mut self) -> &mut Env<'m>;

    /// An item of a value.
    fn item(&mut self, of: GraphExpr, k: usize) -> Result<GraphExpr>;

    /// A call that stands in an expression.
    fn call(&mut self, e: &GraphExpr) -> Result<GraphExpr>;

    /// What a graph function returns, whose parameters have their values.
    fn body(&mut self, func: &GraphFunc) -> Result<GraphExpr>;

    /// A variable, a constant, or a tuple of such.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where it is nested too deeply, and those of `item` and `call`.
    fn value(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
        let env = self.env();
        env.depth += 1;
        if env.depth > MAX_DEPTH {
            let e = format!("graph expressions nested deeper than {MAX_DEPTH}");
            return Err(Error::unsupported(e).at(env.span));
        }
        let value = match e {
            GraphExpr::Var(v) => env.values.get(&v.id()).unwrap_or(e).clone(),
            GraphExpr::Const(_) => e.clone(),
            GraphExpr::Tuple(items) => GraphExpr::Tuple(self.values(items)?),
            GraphExpr::Item(of, k) => {
                let of = self.value(of)?;
                let item = self.item(of, *k);
                item.map_err(|e| e.at(self.env().span))?
            }
            GraphExpr::CallTir { .. } | GraphExpr::Call { .. } => self.call(e)?,
            GraphExpr::If(_) | GraphExpr::Loop(_) => {
                return Err(Error::internal("control flow in an expression").at(env.span));
            }
        };
        self.env().depth -= 1;
        Ok(value)
    }

    /// Several values in order.
    ///
    /// # Errors
    /// Those of [`Resolve::value`].
    fn values(&mut self, all: &[GraphExpr]) -> Result<Vec<GraphExpr>> {
        all.iter().map(|e| self.value(e)).collect()
    }

    /// The result of a call of a graph function; `enter` sees the function first.
    ///
    /// # Errors
    /// Those of [`Module::graph`], [`Error::Malformed`] where it takes another number of arguments,
    /// [`Error::Unsupported`] where it calls itself or calls are nested too deeply; and those of its body.
    fn expand(
        &mut self,
        name: &str,
        args: Vec<GraphExpr>,
        enter: impl FnOnce(&mut Self, &GraphFunc, &[GraphExpr]),
    ) -> Result<GraphExpr> {
        let env = self.env();
        let func = env.callee(name, args.len()).map_err(|e| e.at(env.span))?;
        enter(self, &func, &args);
        let values = func.params.iter().map(|p| p.id()).zip(args).collect();
        let env = self.env();
        env.calls.push(name.into());
        let outer = std::mem::replace(&mut env.values, values);
        let (span, depth) = (env.span, std::mem::take(&mut env.depth));
        let ret = self.body(&func)?;
        let env = self.env();
        (env.values, env.span, env.depth) = (outer, span, depth);
        env.calls.pop();
        Ok(ret)
    }
}
