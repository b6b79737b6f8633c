//! A graph while it is imported: what makes each of its values, and what still reads them.

use std::collections::{HashMap, HashSet};

use tilewright_ir::{Error, Result};

use crate::imported::Imported;
use crate::label::label;
use crate::model::Model;
use crate::order::read_inside;
use crate::proto::{GraphProto, TensorProto};

/// A graph that is being imported.
#[derive(Clone)]
pub(crate) struct Scope<'a> {
    pub graph: &'a GraphProto,
    pub initializers: HashMap<&'a str, &'a TensorProto>,
    /// The node that computes a value.
    pub producers: HashMap<&'a str, usize>,
    /// What is known and still needed.
    pub values: HashMap<&'a str, Imported>,
    /// How often the rest of the graph reads a value.
    pub uses: HashMap<&'a str, usize>,
}

/// Uses of a value that graphs of nodes read: more than are counted down.
pub(crate) const READ_INSIDE: usize = 1 << 32;

impl<'a> Scope<'a> {
    /// A graph with values for its inputs.
    ///
    /// # Errors
    /// [`Error::Model`] where a name is defined twice.
    pub fn new(graph: &'a GraphProto, model: &Model) -> Result<Scope<'a>> {
        let mut initializers = HashMap::new();
        for t in &graph.initializer {
            if initializers.insert(t.name.as_str(), t).is_some() {
                return Err(Error::model(format!("two constants are named `{}`", t.name)));
            }
        }
        let inputs: HashSet<&str> = graph.input.iter().map(|v| v.name.as_str()).collect();
        let mut producers = HashMap::new();
        for (at, node) in graph.node.iter().enumerate() {
            for name in node.output.iter().filter(|n| !n.is_empty()) {
                let known =
                    inputs.contains(name.as_str()) || initializers.contains_key(name.as_str());
                if known || producers.insert(name.as_str(), at).is_some() {
                    return Err(Error::model(format!("`{name}` is defined a second time"))
                        .context(label(node, at, model)));
                }
            }
        }
        let (values, uses) = (HashMap::new(), HashMap::new());
        Ok(Scope { graph, initializers, producers, values, uses })
    }

    /// Which nodes the outputs need; also counts the uses of each value.
    pub fn live(&mut self) -> Vec<bool> {
        let graph = self.graph;
        let mut live = vec![false; graph.node.len()];
        let mut open: Vec<(&'a str, usize)> =
            graph.output.iter().map(|v| (v.name.as_str(), 1)).collect();
        while let Some((name, count)) = open.pop() {
            *self.uses.entry(name).or_insert(0) += count;
            if let Some(&at) = self.producers.get(name)
                && !live[at]
            {
                live[at] = true;
                let node = &graph.node[at];
                let inputs = node.input.iter().filter(|n| !n.is_empty());
                open.extend(inputs.map(|n| (n.as_str(), 1)));
                let mut inside = Vec::new();
                read_inside(node, &mut inside);
                open.extend(inside.into_iter().map(|n| (n, READ_INSIDE)));
            }
        }
        live
    }
}
