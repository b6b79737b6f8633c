//! Lower bounds by moving costs: sequential tree-reweighted message passing (Kolmogorov 2006,
//! "Convergent tree-reweighted message passing for energy minimization"; Kolmogorov 2015 for larger
//! tables) in integers. Each variable in turn collects from its tables what each of its values costs
//! there at least, keeps the minimum of it, and moves the rest to the tables of the variables that
//! follow. The sum of all tables never changes, and the bound never falls.

use std::rc::Rc;
use std::time::Instant;

use crate::solver::certificate::ProofStep;
use crate::solver::network::{FORBIDDEN, Network, Table};
use crate::solver::reduce::strides;

/// Entries beyond this are not increased further.
const LARGE: i64 = 1 << 60;
/// In so many rounds the bound must rise by this share of what is missing.
const PATIENCE: usize = 8;
const HOPELESS: i64 = 200;

struct Side {
    /// The places of the table's entries, by the value of the variable.
    stride: usize,
    /// What the variable got from the table, for the proof.
    moved: Vec<i64>,
}

/// Raises `Network::lower` until it reaches `enough`, hardly rises, or the rounds or the time are
/// over. Each value must be allowed with some other in each table.
pub(crate) fn ascend(
    net: &mut Network,
    enough: i64,
    rounds: usize,
    deadline: Instant,
    steps: &mut Vec<ProofStep>,
) -> usize {
    let live: Vec<usize> = net.live().collect();
    let mut sides: Vec<Vec<Side>> = net
        .tables
        .iter()
        .map(|table| {
            let scope = table.iter().flat_map(|table| &table.scope);
            scope
                .map(|&v| {
                    let (stride, size) = strides(net, table.as_deref().expect("it has a scope"), v);
                    Side { stride, moved: vec![0; size] }
                })
                .collect()
        })
        .collect();
    let mut last = net.lower();
    let mut round = 0;
    while round < rounds {
        let forward = round % 2 == 0;
        let mut largest = 0;
        for k in 0..live.len() {
            let v = if forward { live[k] } else { live[live.len() - 1 - k] };
            visit(net, v, forward, &mut sides, &mut largest);
        }
        round += 1;
        if largest > LARGE || Instant::now() > deadline {
            break;
        }
        if round % PATIENCE == 0 {
            let now = net.lower();
            let missing = if enough == FORBIDDEN { now } else { enough - now };
            if now >= enough || now - last <= missing / HOPELESS {
                break;
            }
            last = now;
        }
    }
    emit(net, &sides, steps);
    round
}

/// One variable collects, and gives what it has beyond its least entry.
fn visit(net: &mut Network, v: usize, forward: bool, sides: &mut [Vec<Side>], largest: &mut i64) {
    let mut own = std::mem::take(&mut net.variables[v].own);
    let tables = std::mem::take(&mut net.variables[v].tables);
    let (mut onwards, mut back) = (0, 0);
    for &t in &tables {
        let table = Rc::make_mut(net.tables[t].as_mut().expect("variables list what is there"));
        let (first, last) = ends(table);
        onwards += usize::from(v != if forward { last } else { first });
        back += usize::from(v != if forward { first } else { last });
        let side = side(&mut sides[t], table, v);
        let least = least_entries(table, side.stride, own.len());
        shift(table, side, &mut own, &least);
    }
    let base = own.iter().copied().min().unwrap_or(0);
    let shares = onwards.max(back) as i64;
    if shares > 0 {
        let share: Vec<i64> = own.iter().map(|&entry| -((entry - base) / shares)).collect();
        for &t in &tables {
            let table = Rc::make_mut(net.tables[t].as_mut().expect("variables list what is there"));
            let (first, last) = ends(table);
            if v != if forward { last } else { first } {
                let side = side(&mut sides[t], table, v);
                shift(table, side, &mut own, &share);
            }
        }
    }
    *largest = own.iter().copied().fold(*largest, i64::max);
    net.variables[v].own = own;
    net.variables[v].tables = tables;
}

fn ends(table: &Table) -> (usize, usize) {
    (table.scope[0], table.scope[table.scope.len() - 1])
}

fn side<'s>(sides: &'s mut [Side], table: &Table, v: usize) -> &'s mut Side {
    let axis = table.scope.binary_search(&v).expect("the table has the variable");
    &mut sides[axis]
}

fn least_entries(table: &Table, stride: usize, size: usize) -> Vec<i64> {
    let mut least = vec![FORBIDDEN; size];
    for block in table.entries.chunks_exact(stride * size) {
        for (least, entries) in least.iter_mut().zip(block.chunks_exact(stride)) {
            *least = entries.iter().copied().fold(*least, i64::min);
        }
    }
    least
}

/// Moves so much from a table to the own table of a variable.
fn shift(table: &mut Table, side: &mut Side, own: &mut [i64], amounts: &[i64]) {
    for block in table.entries.chunks_exact_mut(side.stride * amounts.len()) {
        for (&amount, entries) in amounts.iter().zip(block.chunks_exact_mut(side.stride)) {
            for entry in entries.iter_mut().filter(|entry| **entry != FORBIDDEN) {
                *entry -= amount;
            }
        }
    }
    for (k, &amount) in amounts.iter().enumerate() {
        own[k] += amount;
        side.moved[k] += amount;
    }
}

/// The steps for all that was moved.
fn emit(net: &Network, sides: &[Vec<Side>], steps: &mut Vec<ProofStep>) {
    for (t, sides) in sides.iter().enumerate() {
        for (axis, side) in sides.iter().enumerate().filter(|(_, side)| any(&side.moved)) {
            let scope = &net.table(t).scope;
            let variable = &net.variables[scope[axis]];
            // The numbers of values that are gone do not matter.
            let mut amounts = vec![0; variable.values.iter().max().map_or(0, |most| most + 1)];
            for (&value, &amount) in variable.values.iter().zip(&side.moved) {
                amounts[value] = amount;
            }
            let scope = scope.iter().map(|&v| net.variables[v].name).collect();
            steps.push(ProofStep::Shift { scope, variable: variable.name, amounts });
        }
    }
}

fn any(amounts: &[i64]) -> bool {
    amounts.iter().any(|&amount| amount != 0)
}
