//! How messages name nodes and operators.

use crate::model::{Model, is_standard};
use crate::proto::NodeProto;
use crate::registry;

/// The version of its domain's operators that a node is written in; 0 where the file does not say it.
pub(crate) fn opset_of(model: &Model, node: &NodeProto) -> i64 {
    let whose = registry::versions_of(&node.domain);
    let own = node.written_in.iter().rfind(|o| match whose {
        "" => is_standard(&o.domain),
        other => o.domain == other,
    });
    match (own, whose) {
        (Some(own), _) => own.version,
        (None, "") => model.opset(),
        (None, other) => model.opsets.get(other).copied().unwrap_or(0),
    }
}

/// How messages name a node with its operator.
pub(crate) fn label(node: &NodeProto, at: usize, model: &Model) -> String {
    let opset = opset_of(model, node);
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
