//! Operators that a model defines itself: each call becomes the nodes of the function's body.
//!
//! Values of a body get names of their own for each call. Functions may call each other, but not
//! themselves; depth and number of nodes are bounded, since a small file can describe many.

use tilewright_ir::hash::HashMap;

use tilewright_ir::{Error, Result};

use crate::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto};

/// Most calls inside of each other.
const DEPTH: usize = 64;

/// Most nodes that a graph has once all calls are gone.
const NODES: usize = 1 << 20;

/// Domain, name and overload of an operator.
type Key = (String, String, String);

struct Inliner {
    functions: HashMap<Key, FunctionProto>,
    calls: usize,
    /// How many nodes there are, those of inner graphs included.
    count: usize,
}

/// A graph without calls of the model's own functions. Nodes of a function keep the version of operators that it is
/// written in.
///
/// # Errors
/// [`Error::Model`] where a function is defined twice, calls itself, or is called with more operands
/// than it has.
pub(crate) fn inline(mut graph: GraphProto, functions: Vec<FunctionProto>) -> Result<GraphProto> {
    if functions.is_empty() {
        return Ok(graph);
    }
    let mut all = HashMap::default();
    for f in functions {
        let key = (f.domain.clone(), f.name.clone(), f.overload.clone());
        let name = f.name.clone();
        if all.insert(key, f).is_some() {
            return Err(Error::model(format!("the function `{name}` is defined twice")));
        }
    }
    let mut inliner = Inliner { functions: all, calls: 0, count: 0 };
    inliner.graph(&mut graph, 0)?;
    Ok(graph)
}

impl Inliner {
    fn graph(&mut self, graph: &mut GraphProto, depth: usize) -> Result<()> {
        let mut nodes = Vec::with_capacity(graph.node.len());
        for node in std::mem::take(&mut graph.node) {
            self.node(node, depth, &mut nodes)?;
        }
        graph.node = nodes;
        Ok(())
    }

    /// The nodes that a node becomes; so do those of its graphs.
    fn node(&mut self, mut node: NodeProto, depth: usize, out: &mut Vec<NodeProto>) -> Result<()> {
        let key = (node.domain.clone(), node.op_type.clone(), node.overload.clone());
        let Some(function) = self.functions.get(&key) else {
            for graph in node.attribute.iter_mut().filter_map(|a| a.g.as_deref_mut()) {
                self.graph(graph, depth)?;
            }
            self.count += 1;
            if self.count > NODES {
                return Err(Error::model(format!(
                    "the functions of the model become more than {NODES} nodes"
                )));
            }
            out.push(node);
            return Ok(());
        };
        let function = function.clone();
        if depth >= DEPTH {
            return Err(Error::model("its calls are nested too deeply, or form a cycle")
                .context(format!("function `{}`", function.name)));
        }
        self.call(&node, &function, depth, out)
            .map_err(|e| e.context(format!("function `{}`", function.name)))
    }

    fn call(
        &mut self,
        node: &NodeProto,
        function: &FunctionProto,
        depth: usize,
        out: &mut Vec<NodeProto>,
    ) -> Result<()> {
        for (what, have, most) in [
            ("inputs", node.input.len(), function.input.len()),
            ("outputs", node.output.len(), function.output.len()),
        ] {
            if have > most {
                return Err(Error::model(format!(
                    "it has {most} {what}, but is called with {have}"
                )));
            }
        }
        self.calls += 1;
        let prefix = format!("{}#{}/", function.name, self.calls);
        let mut names: HashMap<&str, String> = HashMap::default();
        for (k, name) in function.input.iter().enumerate() {
            names.insert(name, node.input.get(k).cloned().unwrap_or_default());
        }
        let mut passed = Vec::new();
        for (k, name) in function.output.iter().enumerate() {
            let Some(given) = node.output.get(k).filter(|n| !n.is_empty()) else { continue };
            if let Some(source) = names.get(name.as_str()) {
                // It passes through, or is returned twice.
                passed.push(NodeProto {
                    input: vec![source.clone()],
                    output: vec![given.clone()],
                    op_type: "Identity".to_owned(),
                    ..Default::default()
                });
                continue;
            }
            names.insert(name, given.clone());
        }
        let label = match node.name.as_str() {
            "" => &function.name,
            name => name,
        };
        for inner in &function.node {
            let mut copy = in_call(inner, node, function, &|name| match names.get(name.as_str()) {
                Some(own) => own.clone(),
                None if name.is_empty() => String::new(),
                None => format!("{prefix}{name}"),
            });
            copy.name = format!("{label}/{}", inner.name);
            self.node(copy, depth + 1, out)?;
        }
        out.extend(passed);
        Ok(())
    }
}

/// A node of a body with the names and attributes of a call, also in the graphs inside of it.
fn in_call(
    inner: &NodeProto,
    call: &NodeProto,
    function: &FunctionProto,
    renamed: &dyn Fn(&String) -> String,
) -> NodeProto {
    let mut attribute = Vec::with_capacity(inner.attribute.len());
    for own in &inner.attribute {
        let Some(mut a) = resolved(own, call, function) else { continue };
        // A graph of the call sees what is around the call.
        let own = own.ref_attr_name.is_empty();
        let Some(graph) = a.g.as_deref_mut().filter(|_| own) else {
            attribute.push(a);
            continue;
        };
        for value in graph.input.iter_mut().chain(&mut graph.output) {
            value.name = renamed(&value.name);
        }
        graph.initializer.iter_mut().for_each(|t| t.name = renamed(&t.name));
        for node in &mut graph.node {
            *node = in_call(node, call, function, renamed);
        }
        attribute.push(a);
    }
    NodeProto {
        input: inner.input.iter().map(renamed).collect(),
        output: inner.output.iter().map(renamed).collect(),
        attribute,
        written_in: function.opset_import.clone(),
        ..inner.clone()
    }
}

/// An attribute of a node of a body, where it may stand for one of the call; nothing where the call
/// does not give it.
fn resolved(
    a: &AttributeProto,
    call: &NodeProto,
    function: &FunctionProto,
) -> Option<AttributeProto> {
    if a.ref_attr_name.is_empty() {
        return Some(a.clone());
    }
    let mut all = call.attribute.iter().chain(&function.attribute_proto);
    let value = all.find(|b| b.name == a.ref_attr_name)?.clone();
    Some(AttributeProto { name: a.name.clone(), ..value })
}
