//! A graph while it is imported: what makes each of its values, and what still reads them.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{Error, Result};

use crate::imported::Imported;
use crate::label::label;
use crate::model::{Model, is_standard};
use crate::order::read_inside;
use crate::proto::{GraphProto, NodeProto, TensorProto};

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
    /// Of the values that products alone read, as their second operand or by a transpose: how many do.
    products: HashMap<&'a str, usize>,
    /// Whether weights alone are integers: nothing is quantised in a run.
    pub of_numbers: bool,
}

/// Uses of a value that graphs of nodes read: more than are counted down.
pub(crate) const READ_INSIDE: usize = usize::MAX >> (usize::BITS / 2);

impl<'a> Scope<'a> {
    /// A graph with values for its inputs.
    ///
    /// # Errors
    /// [`Error::Model`] where a name is defined twice.
    pub fn new(graph: &'a GraphProto, model: &Model) -> Result<Scope<'a>> {
        let mut initializers = HashMap::default();
        for t in &graph.initializer {
            if initializers.insert(t.name.as_str(), t).is_some() {
                return Err(Error::model(format!("two constants are named `{}`", t.name)));
            }
        }
        let inputs: HashSet<&str> = graph.input.iter().map(|v| v.name.as_str()).collect();
        let mut producers = HashMap::default();
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
        let (values, uses) = (HashMap::default(), HashMap::default());
        let products = read_by_products(graph);
        let quantising = ["QuantizeLinear", "DynamicQuantizeLinear"];
        let of_numbers = !graph.node.iter().any(|node| is_of(node, &quantising));
        Ok(Scope { graph, initializers, producers, values, uses, products, of_numbers })
    }

    /// How many products read the result of a node, as their second operand, where nothing else reads it; 0
    /// otherwise.
    pub fn products(&self, node: &NodeProto) -> usize {
        let name = node.output.first().map_or("", String::as_str);
        self.products.get(name).copied().unwrap_or(0)
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

/// The values of a graph that products alone read, as their second operand or by a transpose, each with the number of
/// these readers. Nothing, where no numbers are made of integers.
fn read_by_products(graph: &GraphProto) -> HashMap<&str, usize> {
    if !graph.node.iter().any(|node| is_of(node, &["DequantizeLinear"])) {
        return HashMap::default();
    }
    // The results of transposes that read a value.
    let mut transposed: HashMap<&str, Vec<&str>> = HashMap::default();
    let mut counts: HashMap<&str, usize> = HashMap::default();
    let mut others: HashSet<&str> = graph.output.iter().map(|v| v.name.as_str()).collect();
    for node in &graph.node {
        for (at, name) in node.input.iter().enumerate() {
            let name = name.as_str();
            if at == 1 && is_of(node, &["MatMul", "Gemm"]) {
                *counts.entry(name).or_default() += 1;
            } else if at == 0 && is_of(node, &["Transpose"]) {
                let result = node.output.first().map_or("", String::as_str);
                transposed.entry(name).or_default().push(result);
                *counts.entry(name).or_default() += 1;
            } else {
                others.insert(name);
            }
        }
        let mut inside = Vec::new();
        read_inside(node, &mut inside);
        others.extend(inside);
    }
    let products_alone = |name: &str| counts.contains_key(name) && !others.contains(name);
    let all = counts.iter().filter(|(name, _)| {
        let mut results = transposed.get(*name).into_iter().flatten();
        products_alone(name) && results.all(|r| products_alone(r) && !transposed.contains_key(*r))
    });
    // What follows a branch may be imported in each of them.
    let again = graph.node.iter().any(|node| node.attribute.iter().any(|a| a.g.is_some()));
    all.map(|(name, count)| (*name, if again { usize::MAX } else { *count })).collect()
}

/// Whether a node is one of ONNX's own operators.
fn is_of(node: &NodeProto, operators: &[&str]) -> bool {
    is_standard(&node.domain) && operators.contains(&node.op_type.as_str())
}
