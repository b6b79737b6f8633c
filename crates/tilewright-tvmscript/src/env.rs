//! Names in scope.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::{Buffer, DType, GraphVar, Var};

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// A scalar variable.
    Var(Var),
    Buffer(Buffer),
    /// A graph value.
    Graph(GraphVar),
    /// The module itself (`cls`).
    Module,
    /// A function inside of a graph function, by its number: the body of a loop.
    Local(usize),
    /// Several axes, of which an index says one: the parameters of a lambda.
    Axes(Arc<[Var]>),
    /// A thread axis without an extent yet (`T.env_thread`).
    Thread(Arc<str>),
}

/// Nested scopes, innermost last. A name hides the same name further out.
#[derive(Debug)]
pub(crate) struct Env {
    scopes: Vec<HashMap<String, Item>>,
}

impl Env {
    /// One empty scope.
    pub(crate) fn new() -> Self {
        Env { scopes: vec![HashMap::default()] }
    }

    /// Opens a scope.
    pub(crate) fn push(&mut self) {
        self.scopes.push(HashMap::default());
    }

    /// Closes the innermost scope.
    pub(crate) fn pop(&mut self) {
        self.scopes.pop();
    }

    /// Adds a name to the innermost scope.
    pub(crate) fn insert(&mut self, name: impl Into<String>, item: Item) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.into(), item);
        }
    }

    /// Adds a new variable to the innermost scope.
    pub(crate) fn define(&mut self, name: &str, dtype: DType) -> Var {
        let var = Var::new(name, dtype);
        self.insert(name, Item::Var(var.clone()));
        var
    }

    /// Adds a buffer to the innermost scope.
    pub(crate) fn define_buffer(&mut self, name: &str, buffer: &Buffer) {
        self.insert(name, Item::Buffer(buffer.clone()));
    }

    /// What a name stands for.
    pub(crate) fn get(&self, name: &str) -> Option<&Item> {
        self.scopes.iter().rev().find_map(|s| s.get(name))
    }

    /// Every name in scope.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.scopes.iter().flat_map(|s| s.keys().map(String::as_str))
    }
}
