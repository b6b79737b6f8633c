//! Modules: graph functions and tensor functions by name, in the order of their definition.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::error::{Error, Result, Source};
use crate::func::TensorFunc;
use crate::graph::{self, GraphExpr, GraphFunc};
use crate::stmt::Attrs;
use crate::text::commas;

/// A function of a module.
#[derive(Clone, Debug)]
pub enum Function {
    /// Loops and blocks.
    Tensor(Arc<TensorFunc>),
    /// Dataflow.
    Graph(Arc<GraphFunc>),
}

impl From<TensorFunc> for Function {
    fn from(f: TensorFunc) -> Self {
        Function::Tensor(Arc::new(f))
    }
}

impl From<GraphFunc> for Function {
    fn from(f: GraphFunc) -> Self {
        Function::Graph(Arc::new(f))
    }
}

/// A module. Cloning is cheap: functions are shared.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Functions by name.
    pub functions: IndexMap<Arc<str>, Function>,
    /// Attributes of the module.
    pub attrs: Attrs,
    /// The text that the spans inside point into.
    pub source: Option<Arc<Source>>,
}

impl Module {
    /// An empty module.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a function.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, func: impl Into<Function>) {
        self.functions.insert(name.into(), func.into());
    }

    /// A tensor function alone, with the text that it was read from.
    pub fn alone(&self, name: &Arc<str>, func: &Arc<TensorFunc>) -> Module {
        let mut alone = Module { source: self.source.clone(), ..Module::new() };
        alone.functions.insert(name.clone(), Function::Tensor(func.clone()));
        alone
    }

    /// The tensor function of this name; an error says what there is instead.
    pub fn tensor(&self, name: &str) -> Result<&Arc<TensorFunc>> {
        match self.functions.get(name) {
            Some(Function::Tensor(f)) => Ok(f),
            Some(Function::Graph(_)) => {
                Err(Error::input(format!("`{name}` is a graph function, not a tensor function")))
            }
            None => Err(self.missing(name)),
        }
    }

    /// The graph function of this name; an error says what there is instead.
    pub fn graph(&self, name: &str) -> Result<&Arc<GraphFunc>> {
        match self.functions.get(name) {
            Some(Function::Graph(f)) => Ok(f),
            Some(Function::Tensor(_)) => {
                Err(Error::input(format!("`{name}` is a tensor function, not a graph function")))
            }
            None => Err(self.missing(name)),
        }
    }

    fn missing(&self, name: &str) -> Error {
        Error::input(format!("the module has no function `{name}`"))
            .note(format!("it has: {}", commas(self.functions.keys())))
    }

    /// The tensor functions in order.
    pub fn tensors(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<TensorFunc>)> {
        self.functions.iter().filter_map(|(n, f)| match f {
            Function::Tensor(f) => Some((n, f)),
            Function::Graph(_) => None,
        })
    }

    /// The graph functions in order.
    pub fn graphs(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<GraphFunc>)> {
        self.functions.iter().filter_map(|(n, f)| match f {
            Function::Graph(f) => Some((n, f)),
            Function::Tensor(_) => None,
        })
    }

    /// The function that running the module means: `main`, or the only graph function that is not
    /// private, or the only graph function, or the only function.
    pub fn entry(&self) -> Result<&Arc<str>> {
        if let Some((name, _)) = self.functions.get_key_value("main") {
            return Ok(name);
        }
        let mut public = self.graphs().filter(|(_, f)| !f.private);
        if let (Some((name, _)), None) = (public.next(), public.next()) {
            return Ok(name);
        }
        let mut graphs = self.graphs();
        match (graphs.next(), graphs.next(), self.functions.len()) {
            (Some((name, _)), None, _) => Ok(name),
            (None, None, 0) => Err(Error::input("the module has no functions")),
            (None, None, 1) => self.functions.keys().next().ok_or_else(|| self.missing("main")),
            _ => Err(Error::input("the module has several functions and none is called `main`")),
        }
    }

    /// Whether a function, or a graph function that it calls, has control flow, so that running it takes
    /// a program over pieces.
    pub fn has_control(&self, entry: &str) -> bool {
        let (mut open, mut seen): (Vec<Arc<str>>, Vec<Arc<str>>) = (vec![entry.into()], Vec::new());
        while let Some(name) = open.pop() {
            let Some(Function::Graph(f)) = self.functions.get(&name) else { continue };
            if f.has_control() {
                return true;
            }
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            f.for_each_expr(&mut |e| {
                if let GraphExpr::Call { op, .. } = e {
                    open.extend(graph::callee(op).map(Arc::from));
                }
            });
        }
        false
    }

    /// A name that no function has yet: `base`, `base_1`, `base_2`, ...
    pub fn fresh_name(&self, base: &str) -> Arc<str> {
        if self.is_free(base) {
            return base.into();
        }
        (1usize..)
            .map(|i| format!("{base}_{i}"))
            .find(|n| self.is_free(n))
            .unwrap_or_else(|| base.to_owned())
            .into()
    }

    fn is_free(&self, n: &str) -> bool {
        !self.functions.contains_key(n)
    }
}
