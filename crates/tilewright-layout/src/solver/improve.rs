//! Good choices early, so that the search can exclude much: a choice is read off the tables after
//! message passing, and then improved by large neighbourhood search (Shaw 1998) whose steps are
//! exact: some connected variables are set free among the fixed rest, and solved by elimination.

use std::time::Instant;

use crate::solver::elimination::order;
use crate::solver::network::{FORBIDDEN, Network, Table, add};
use crate::solver::reduce::{eliminate, reduce};
use crate::solver::statistics::Statistics;

/// Variables that are free together.
const FREE: usize = 24;
/// Sums that one step may take.
const SUMS: u64 = 1 << 14;

/// A choice (values by index) that takes each variable in order, at what it costs together with the
/// variables before it, and at least with those after.
pub(crate) fn decode(net: &Network) -> Vec<usize> {
    let mut choice = vec![0; net.variables.len()];
    for v in net.live() {
        choice[v] = (0..net.size(v))
            .min_by_key(|&value| {
                choice[v] = value;
                let tables = net.tables_of(v).map(|table| known(net, table, v, &choice));
                tables.fold(net.variables[v].own[value], add)
            })
            .unwrap_or_default();
    }
    choice
}

/// The least entry of a table that agrees with the choice of the variables up to `v`.
fn known(net: &Network, table: &Table, v: usize, choice: &[usize]) -> i64 {
    let before = table.scope.iter().take_while(|&&u| u <= v);
    let start = before.fold(0, |at, &u| at * net.size(u) + choice[u]);
    let rest: usize = table.scope.iter().filter(|&&u| u > v).map(|&u| net.size(u)).product();
    table.entries[start * rest..(start + 1) * rest].iter().copied().min().unwrap_or(FORBIDDEN)
}

/// Improves a choice that is allowed until no step does, or the time is over.
pub(crate) fn improve(net: &Network, choice: &mut [usize], deadline: Instant) {
    let live: Vec<usize> = net.live().collect();
    let mut stale = 0;
    let mut covered = vec![0usize; net.variables.len()];
    let mut round = 0;
    while stale < live.len() {
        round += 1;
        for &start in &live {
            if Instant::now() > deadline {
                return;
            }
            stale += 1;
            // Later rounds look at what no step of the round has covered yet.
            if covered[start] >= round {
                continue;
            }
            let free = around(net, start);
            free.iter().for_each(|&v| covered[v] = round);
            if step(net, &free, choice) {
                stale = 0;
            }
        }
    }
}

/// Some variables around one, the nearest ones first; in order.
fn around(net: &Network, start: usize) -> Vec<usize> {
    let mut found = vec![start];
    let mut next = 0;
    while next < found.len() && found.len() < FREE {
        for u in net.neighbours(found[next]) {
            if !found.contains(&u) && found.len() < FREE {
                found.push(u);
            }
        }
        next += 1;
    }
    found.sort_unstable();
    found
}

/// Chooses the best for some variables, the others as they are. True if that is better.
fn step(net: &Network, free: &[usize], choice: &mut [usize]) -> bool {
    let mut part = net.part(free, choice);
    let here: Vec<usize> = free.iter().map(|&v| choice[v]).collect();
    let before = part.cost(&here);
    let (mut steps, mut statistics) = (Vec::new(), Statistics::default());
    if !reduce(&mut part, &mut steps, &mut statistics) {
        return false;
    }
    let Some(order) = order(&part, SUMS) else { return false };
    for v in order.variables {
        eliminate(&mut part, v, &mut steps);
    }
    if part.constant >= before {
        return false;
    }
    let mut names = Vec::new();
    let mut scratch = vec![0; net.variables.iter().map(|v| v.name + 1).max().unwrap_or(0)];
    part.complete(&mut names, &mut scratch);
    for &v in free {
        let variable = &net.variables[v];
        let value = variable.values.iter().position(|&value| value == scratch[variable.name]);
        choice[v] = value.expect("the values of a part are those of the whole");
    }
    true
}
