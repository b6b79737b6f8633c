//! What is said of an operator: its versions, its inputs, and how it is imported.

use tilewright_ir::Result;

use crate::build::Plain;
use crate::graphs::{Graphs, Stop};
use crate::imported::Imported;
use crate::node::Node;

/// Versions of ONNX's operator set that are supported, first and last. Before the seventh, few
/// operators are.
pub(crate) const OPSETS: (i64, i64) = (1, 28);

/// Most inputs of an operator that takes any number, and most outputs.
pub(crate) const MANY: usize = 1024;

/// Turns a node with graphs of its own into values.
pub(crate) type WithGraphs =
    for<'a> fn(&mut dyn Graphs<'a>, &Node<'a>) -> Result<Vec<Imported>, Stop>;

/// How an operator is imported.
#[derive(Clone, Copy)]
pub(crate) enum Import {
    /// From its inputs and attributes.
    Plain(Plain),
    /// With graphs that are attributes.
    WithGraphs(WithGraphs),
}

/// A supported operator.
#[derive(Clone, Copy)]
pub(crate) struct Operator {
    pub(crate) name: &'static str,
    /// The versions in which it is supported, the first and the last.
    pub(crate) versions: (i64, i64),
    pub(crate) max_inputs: usize,
    pub(crate) import: Import,
    /// Whether its inputs may be sequences and optionals.
    pub(crate) takes_lists: bool,
    /// Whether its inputs may be strings.
    pub(crate) takes_texts: bool,
    /// Whether its inputs may be maps.
    pub(crate) takes_maps: bool,
    /// Whether it only moves the elements of its first input, which may be strings then.
    pub(crate) moves: bool,
}

/// An operator that is supported from a version on.
pub(crate) const fn op(
    name: &'static str,
    first: i64,
    max_inputs: usize,
    import: Plain,
) -> Operator {
    let (versions, import) = ((first, OPSETS.1), Import::Plain(import));
    Operator {
        name,
        versions,
        max_inputs,
        import,
        takes_lists: false,
        takes_texts: false,
        takes_maps: false,
        moves: false,
    }
}

/// The same with graphs of its own, whose inputs may be anything.
pub(crate) const fn graphs(
    name: &'static str,
    first: i64,
    max_inputs: usize,
    import: WithGraphs,
) -> Operator {
    let (versions, import) = ((first, OPSETS.1), Import::WithGraphs(import));
    Operator {
        name,
        versions,
        max_inputs,
        import,
        takes_lists: true,
        takes_texts: true,
        takes_maps: false,
        moves: false,
    }
}

/// The same, whose inputs may be sequences and optionals.
pub(crate) const fn lists(operator: Operator) -> Operator {
    Operator { takes_lists: true, ..operator }
}

/// The same, whose inputs may be strings.
pub(crate) const fn texts(operator: Operator) -> Operator {
    Operator { takes_texts: true, ..operator }
}

/// The same, whose inputs may be maps.
pub(crate) const fn maps(operator: Operator) -> Operator {
    Operator { takes_maps: true, ..operator }
}

/// The same, which only moves the elements of its first input.
pub(crate) const fn moves(operator: Operator) -> Operator {
    Operator { moves: true, ..operator }
}

/// The same, up to a version.
pub(crate) const fn until(last: i64, operator: Operator) -> Operator {
    Operator { versions: (operator.versions.0, last), ..operator }
}
