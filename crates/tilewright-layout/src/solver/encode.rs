//! The network of a problem, as `certificate` defines it.

use crate::solver::Problem;
use crate::solver::network::{FORBIDDEN, Network};
use crate::solver::{Cost, Tensor, Use};

fn entry(cost: Cost) -> i64 {
    // Valid problems have small costs.
    cost.get().map_or(FORBIDDEN, |units| i64::try_from(units).unwrap_or(FORBIDDEN))
}

pub(crate) fn encode(problem: &Problem) -> Network {
    let mut network = Network::default();
    for (c, call) in problem.calls.iter().enumerate() {
        network.variable(c, call.alternatives.iter().map(|a| entry(a.cost)).collect());
    }
    let mut wants = Vec::with_capacity(problem.tensors.len());
    for tensor in &problem.tensors {
        wants.push(network.variables.len());
        for layout in 0..tensor.layouts.len() {
            let unwanted = if tensor.required.contains(&layout) { FORBIDDEN } else { 0 };
            let wanted = match tensor.given {
                Some(from) if from != layout => entry(tensor.conversions[from][layout]),
                _ => 0,
            };
            network.variable(network.variables.len(), vec![unwanted, wanted]);
        }
    }
    for (c, call) in problem.calls.iter().enumerate() {
        let mut reads: Vec<Use> =
            call.alternatives.iter().flat_map(|a| a.reads.iter().copied()).collect();
        reads.sort_unstable();
        reads.dedup();
        for used in reads {
            let needs = call.alternatives.iter().map(|a| a.reads.contains(&used));
            let entries = needs.flat_map(|needs| [if needs { FORBIDDEN } else { 0 }, 0]).collect();
            network.add(vec![c, wants[used.tensor] + used.layout], entries);
        }
        for written in &call.alternatives[0].writes {
            let tensor = &problem.tensors[written.tensor];
            for to in 0..tensor.layouts.len() {
                let from = call.alternatives.iter().flat_map(|a| {
                    a.writes.iter().filter(|w| w.tensor == written.tensor).map(|w| w.layout)
                });
                let entries =
                    from.flat_map(|from| [0, conversion_cost(from, to, tensor)]).collect();
                network.add(vec![c, wants[written.tensor] + to], entries);
            }
        }
    }
    network
}

fn conversion_cost(from: usize, to: usize, tensor: &Tensor) -> i64 {
    if from == to { 0 } else { entry(tensor.conversions[from][to]) }
}
