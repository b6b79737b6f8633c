//! Calls of graph functions that are being expanded, so that one that calls itself ends.

use std::sync::Arc;

use tilewright_ir::{Error, GraphFunc, Module, Result, Span};

/// How deep tuples, and calls of graph functions, may be nested.
pub(crate) const MAX_DEPTH: usize = 64;

/// The functions whose calls are under way, the outermost first.
pub(crate) struct CallStack(Vec<Arc<str>>);

impl CallStack {
    /// Only the function that is rewritten.
    pub fn new(name: &str) -> Self {
        CallStack(vec![name.into()])
    }

    /// Whether nothing is expanded.
    pub fn is_outermost(&self) -> bool {
        self.0.len() == 1
    }

    /// Begins the expansion of a call with so many arguments.
    ///
    /// # Errors
    /// At `span`: those of [`Module::graph`], [`Error::Malformed`] where it takes another number of
    /// arguments, [`Error::Unsupported`] where it calls itself or calls are nested too deeply.
    pub fn enter(
        &mut self,
        module: &Module,
        name: &str,
        args: usize,
        span: Option<Span>,
    ) -> Result<Arc<GraphFunc>> {
        let func = module.graph(name).map_err(|e| e.at(span))?;
        if self.0.iter().any(|c| **c == *name) || self.0.len() >= MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "the graph function `{name}` calls itself, or calls are nested deeper than {MAX_DEPTH}"
            ))
            .at(span));
        }
        if func.params.len() != args {
            return Err(Error::malformed(format!(
                "`{name}` takes {} arguments and is given {args}",
                func.params.len()
            ))
            .at(span));
        }
        self.0.push(name.into());
        Ok(func.clone())
    }

    /// Ends the innermost expansion.
    pub fn leave(&mut self) {
        self.0.pop();
    }
}
