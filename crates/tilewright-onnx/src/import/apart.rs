//! An `If` whose branches give values of different ranks: what follows it is another program in each branch.

use tilewright_ir::{Error, Result};

use super::Importer;
use crate::graphs::{Graphs, Misfit, Rest, Stop};
use crate::imported::{Imported, RanksDiffer};
use crate::label::{label, opset_of};
use crate::node::Node;
use crate::ops::nested;
use crate::proto::{GraphProto, declared_rank};

/// As many `If`s whose branches differ in rank may follow each other: what follows is imported once for each
/// combination.
const MOST_APART: usize = 4;

impl<'a> Importer<'a> {
    /// Imports the rest of the innermost graph in each branch of an `If`, whose branches give values of
    /// different ranks.
    pub(super) fn import_in_branches(
        &mut self,
        graph: &'a GraphProto,
        cond: &Imported,
        rest: Rest<'_>,
    ) -> Result<(), Stop> {
        if self.apart >= MOST_APART {
            let error =
                format!("more than {MOST_APART} branches of different ranks, one after the other");
            return Err(Stop::Error(Error::unsupported(error)));
        }
        let proto = &graph.node[rest.branches];
        let (named, opset) = (label(proto, rest.branches, self.model), opset_of(self.model, proto));
        let inputs = vec![Some(cond.clone())];
        let node = Node::new(proto, named, opset, inputs, self.model.folder.as_ref())?;
        self.apart += 1;
        let mut results = nested::branches_apart(self, &node, cond, rest);
        // What is declared counts for all outputs, of those around as well, or for none.
        if self.apart == 1
            && let Err(Stop::Error(e)) = &results
            && e.cause::<RanksDiffer>().is_some()
        {
            self.declared = true;
            results = nested::branches_apart(self, &node, cond, rest);
            self.declared = false;
        }
        self.apart -= 1;
        let results = results?;
        let Some(scope) = self.scopes.last_mut() else { return Ok(()) };
        scope.values.extend(graph.output.iter().map(|v| v.name.as_str()).zip(results));
        Ok(())
    }

    /// The outputs of the innermost graph, with what a branch of one of its nodes gives in the place of the
    /// node.
    pub(super) fn continued(
        &mut self,
        branch: &'a GraphProto,
        rest: &Rest<'_>,
    ) -> Result<Vec<Imported>, Stop> {
        let results = self.graph(branch, &[])?;
        let Some(scope) = self.scopes.last_mut() else { return Ok(Vec::new()) };
        let graph = scope.graph;
        let names = graph.node[rest.branches].output.iter().map(String::as_str);
        let used =
            names.zip(results).filter(|(name, _)| scope.uses.get(name).is_some_and(|n| *n > 0));
        scope.values.extend(used);
        self.ordered(graph, rest.nodes)?;
        let mut outputs = Vec::with_capacity(graph.output.len());
        for info in &graph.output {
            let value = self.output(&info.name)?;
            if self.declared
                && let Some(rank) = declared_rank(info).filter(|rank| *rank != value.rank())
            {
                let misfit = Error::model(format!(
                    "the output `{}` has {} dimensions, and the file declares {rank}",
                    info.name,
                    value.rank()
                ));
                return Err(misfit.because(Misfit).into());
            }
            outputs.push(value);
        }
        Ok(outputs)
    }
}
