//! Reductions that keep the optimum (partitioned boolean quadratic programming: Scholz and Eckstein
//! 2002, "Register allocation for irregular architectures"; Hames and Scholz 2006, "Nearly optimal
//! register allocation with PBQP"): values without a partner or with a better rival go, variables
//! with one value go, and so do those with at most two neighbours, whose minimum is a table of the
//! neighbours (rules R0, R1 and R2).

use crate::solver::certificate::ProofStep;
use crate::solver::network::{FORBIDDEN, Network, Table};
use crate::solver::statistics::Statistics;

/// Tables that the rules make are no larger.
const LARGEST: usize = 1 << 14;

/// Reduces until no rule applies. False if some variable has no value left: then no choice of the
/// network is allowed.
pub(crate) fn reduce(
    net: &mut Network,
    steps: &mut Vec<ProofStep>,
    statistics: &mut Statistics,
) -> bool {
    while let Some(v) = net.changed() {
        if net.size(v) == 0 {
            continue; // Eliminated since it was queued.
        }
        if !impossible(net, v, steps, statistics) {
            return false;
        }
        dominated(net, v, steps, statistics);
        if net.size(v) == 1 {
            statistics.single += 1;
        } else {
            let neighbours = net.neighbours(v);
            // Of many neighbours the number of entries may be larger than any integer.
            if neighbours.len() > 2
                || neighbours.iter().map(|&u| net.size(u)).product::<usize>() > LARGEST
            {
                continue;
            }
            statistics.degree[neighbours.len()] += 1;
        }
        eliminate(net, v, steps);
    }
    true
}

/// Eliminates a variable, and says so in the proof.
pub(crate) fn eliminate(net: &mut Network, v: usize, steps: &mut Vec<ProofStep>) {
    steps.push(ProofStep::Eliminate { variable: net.variables[v].name });
    net.eliminate(v);
}

/// Removes the values of which some table allows nothing.
fn impossible(
    net: &mut Network,
    v: usize,
    steps: &mut Vec<ProofStep>,
    statistics: &mut Statistics,
) -> bool {
    for value in (0..net.size(v)).rev() {
        let own = net.variables[v].own[value] == FORBIDDEN;
        if own || net.tables_of(v).any(|table| least(net, table, v, value) == FORBIDDEN) {
            exclude(net, v, value, steps);
            statistics.excluded += 1;
            if net.size(v) == 0 {
                return false;
            }
        }
    }
    true
}

/// Removes a value, and says in the proof that it is excluded.
pub(crate) fn exclude(net: &mut Network, v: usize, value: usize, steps: &mut Vec<ProofStep>) {
    let variable = &net.variables[v];
    steps.push(ProofStep::Exclude { variable: variable.name, value: variable.values[value] });
    net.delete(v, value);
}

fn dominated(net: &mut Network, v: usize, steps: &mut Vec<ProofStep>, statistics: &mut Statistics) {
    let mut value = net.size(v);
    while value > 0 {
        value -= 1;
        let rival = (0..net.size(v)).find(|&by| by != value && replaces(net, v, value, by));
        if let Some(by) = rival {
            let Network { variables, .. } = &*net;
            let (name, values) = (variables[v].name, &variables[v].values);
            let step =
                ProofStep::Dominated { variable: name, value: values[value], by: values[by] };
            steps.push(step);
            net.delete(v, value);
            statistics.dominated += 1;
        }
    }
}

/// Whether the value `by` costs no more than `value` whatever the neighbours are; both are allowed
/// by themselves.
fn replaces(net: &Network, v: usize, value: usize, by: usize) -> bool {
    let own = &net.variables[v].own;
    let mut worst = own[by] - own[value];
    // Tables with the greatest differences mostly decide; any order is right.
    for table in net.tables_of(v) {
        match difference(net, table, v, value, by) {
            Some(more) => worst = worst.saturating_add(more),
            None => return false,
        }
    }
    worst <= 0
}

/// How much more `by` costs at most than `value` in a table; `None` if it is forbidden where `value`
/// is not. Some entry of `value` is allowed.
fn difference(net: &Network, table: &Table, v: usize, value: usize, by: usize) -> Option<i64> {
    let mut most = i64::MIN;
    for (a, b) in slice(net, table, v, value).zip(slice(net, table, v, by)) {
        if a != FORBIDDEN {
            if b == FORBIDDEN {
                return None;
            }
            most = most.max(b - a);
        }
    }
    Some(most)
}

/// The least entry of a table with a value of one of its variables.
pub(crate) fn least(net: &Network, table: &Table, v: usize, value: usize) -> i64 {
    slice(net, table, v, value).min().unwrap_or(FORBIDDEN)
}

/// The entries of a table with a value of one of its variables.
pub(crate) fn slice<'n>(
    net: &'n Network,
    table: &'n Table,
    v: usize,
    value: usize,
) -> impl Iterator<Item = i64> + 'n {
    let (inner, size) = strides(net, table, v);
    let blocks = table.entries.chunks_exact(inner * size);
    blocks.flat_map(move |block| block[value * inner..(value + 1) * inner].iter().copied())
}

/// The number of entries between two values of a variable in a table, and the number of values.
pub(crate) fn strides(net: &Network, table: &Table, v: usize) -> (usize, usize) {
    let later = table.scope.iter().rev().take_while(|&&u| u != v);
    (later.map(|&u| net.size(u)).product(), net.size(v))
}
