//! How messages name nodes and operators.

use crate::model::Model;
use crate::proto::NodeProto;
use crate::registry;

/// The version that operators of a domain are written in; 0 where the file does not say it.
pub(crate) fn opset_of(model: &Model, domain: &str) -> i64 {
    match registry::versions_of(domain) {
        "" => model.opset(),
        other => model.opsets.get(other).copied().unwrap_or(0),
    }
}

/// How messages name a node with its operator.
pub(crate) fn label(node: &NodeProto, at: usize, model: &Model) -> String {
    let opset = opset_of(model, &node.domain);
    let operator = operator_name(&node.domain, &node.op_type);
    format!("{} ({operator}, opset {opset})", node_name(node, at))
}

/// How messages name a node.
pub(crate) fn node_name(node: &NodeProto, at: usize) -> String {
    match node.name.as_str() {
        "" => format!("node {at}"),
        name => format!("node `{name}`"),
    }
}

/// How messages name an operator: with its domain, unless that is ONNX's own.
pub(crate) fn operator_name(domain: &str, name: &str) -> String {
    match domain {
        "" | "ai.onnx" => name.to_owned(),
        domain => format!("{domain}.{name}"),
    }
}
