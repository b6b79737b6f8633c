//! What the importer of an operator whose attributes are graphs is given: the way to import these.
//!
//! The walk through a model ([`crate::import`]) knows all operators by the table, and the table knows
//! their importers. These know neither: the walk hands itself to them as [`Graphs`].

use std::sync::Arc;

use tilewright_ir::{Dim, Error, Result, Tensor};

use crate::build::Builder;
use crate::imported::Imported;
use crate::proto::GraphProto;

/// An import that goes on, into which the graphs of a node are imported.
pub(crate) trait Graphs<'a> {
    /// Where the calls are collected.
    fn builder(&mut self) -> &mut Builder;

    /// The name and the value of a parameter of the model, where it is given.
    fn given(&self, value: &Imported) -> Option<(Arc<str>, Tensor)>;

    /// Imports a graph inside of those that are imported, with values for its inputs, and gives its
    /// outputs.
    fn graph(&mut self, graph: &'a GraphProto, inputs: &[Imported]) -> Result<Vec<Imported>, Stop>;

    /// Imports a branch and what follows its node in the graph around it, and gives the outputs of that
    /// one. What is known of the graphs around stays as it was before.
    fn graph_and_rest(
        &mut self,
        branch: &'a GraphProto,
        rest: &Rest<'_>,
    ) -> Result<Vec<Imported>, Stop>;
}

/// What follows an `If` in its graph.
#[derive(Clone, Copy)]
pub(crate) struct Rest<'r> {
    /// The node.
    pub(crate) branches: usize,
    /// The nodes after it, in an order in which each finds its inputs.
    pub(crate) nodes: &'r [usize],
}

/// Why an import ends without a module.
pub(crate) enum Stop {
    /// It fails.
    Error(Error),
    /// Something must be known that depends on these inputs, whose values are given.
    Fix(Vec<Arc<str>>),
    /// The branches of an `If` with this condition give values of different ranks, so that what follows
    /// is another program in each.
    Apart(Imported),
}

impl From<Error> for Stop {
    fn from(e: Error) -> Self {
        Stop::Error(e)
    }
}

/// The cause of an error: operands do not fit their operator, which is no matter where it never runs.
pub(crate) struct Misfit;

/// The cause of an error: a node needs two sizes to be equal.
pub(crate) struct NeedsEqual {
    pub(crate) sizes: (Dim, Dim),
    /// What messages call the node.
    pub(crate) node: String,
}

/// The cause of an error: a node needs a size not to be one.
pub(crate) struct NeedsMany {
    pub(crate) size: Dim,
    /// What messages call the node.
    pub(crate) node: String,
}
