//! Operators that a model defines itself: each call becomes the nodes of the function's body.
//!
//! Values of a body get names of their own for each call. Functions may call each other, but not
//! themselves; depth and number of nodes are bounded, since a small file can describe many.

use std::collections::HashMap;

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
    opset: i64,
    calls: usize,
    nodes: Vec<NodeProto>,
}

/// A graph without calls of the model's own functions.
///
/// # Errors
/// [`Error::Model`] where a function is defined twice, calls itself, or is called with more operands
/// than it has; [`Error::Unsupported`] where it is written in another version of ONNX's operators
/// than the graph.
pub(crate) fn inline(
    mut graph: GraphProto,
    functions: Vec<FunctionProto>,
    opset: i64,
) -> Result<GraphProto> {
    if functions.is_empty() {
        return Ok(graph);
    }
    let mut all = HashMap::new();
    for f in functions {
        let key = (f.domain.clone(), f.name.clone(), f.overload.clone());
        let name = f.name.clone();
        if all.insert(key, f).is_some() {
            return Err(Error::model(format!("the function `{name}` is defined twice")));
        }
    }
    let mut inliner = Inliner { functions: all, opset, calls: 0, nodes: Vec::new() };
    for node in std::mem::take(&mut graph.node) {
        inliner.node(node, 0)?;
    }
    graph.node = inliner.nodes;
    Ok(graph)
}

impl Inliner {
    fn node(&mut self, node: NodeProto, depth: usize) -> Result<()> {
        let key = (node.domain.clone(), node.op_type.clone(), node.overload.clone());
        let Some(function) = self.functions.get(&key) else {
            if self.nodes.len() >= NODES {
                return Err(Error::model(format!(
                    "the functions of the model become more than {NODES} nodes"
                )));
            }
            self.nodes.push(node);
            return Ok(());
        };
        let function = function.clone();
        let said = |e: Error| e.context(format!("function `{}`", function.name));
        if depth >= DEPTH {
            return Err(said(Error::model("its calls are nested too deeply, or form a cycle")));
        }
        self.call(&node, &function, depth).map_err(said)
    }

    fn call(&mut self, node: &NodeProto, function: &FunctionProto, depth: usize) -> Result<()> {
        let standard = function.opset_import.iter().find(|o| matches!(&*o.domain, "" | "ai.onnx"));
        if let Some(own) = standard
            && own.version != self.opset
        {
            return Err(Error::unsupported(format!(
                "it uses the operators of opset {}, the graph those of opset {}",
                own.version, self.opset
            ))
            .help("inline the model's functions, for example with `onnx.inliner`"));
        }
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
        let mut names: HashMap<&str, String> = HashMap::new();
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
        let renamed = |name: &String| match names.get(name.as_str()) {
            Some(own) => own.clone(),
            None if name.is_empty() => String::new(),
            None => format!("{prefix}{name}"),
        };
        let label = match node.name.as_str() {
            "" => &function.name,
            name => name,
        };
        for inner in &function.node {
            let attribute = inner.attribute.iter();
            let attribute = attribute.filter_map(|a| resolved(a, node, function)).collect();
            let copy = NodeProto {
                input: inner.input.iter().map(renamed).collect(),
                output: inner.output.iter().map(renamed).collect(),
                name: format!("{label}/{}", inner.name),
                attribute,
                ..inner.clone()
            };
            self.node(copy, depth + 1)?;
        }
        self.nodes.extend(passed);
        Ok(())
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
    let named = |all: &[AttributeProto]| all.iter().find(|b| b.name == a.ref_attr_name).cloned();
    let value = named(&call.attribute).or_else(|| named(&function.attribute_proto))?;
    Some(AttributeProto { name: a.name.clone(), ..value })
}
