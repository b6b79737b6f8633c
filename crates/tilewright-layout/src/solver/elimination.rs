//! Orders of elimination, which are tree decompositions (Bertelè and Brioschi 1972; Dechter 1999,
//! "Bucket elimination"): eliminating a variable makes a table of its neighbours, and the order
//! decides how large the tables become. Two greedy rules are tried, of which min-fill is the better
//! one on most graphs: the variable whose neighbours lack the fewest edges among themselves goes
//! first; or the one whose table is smallest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::solver::network::Network;

/// An order of all live variables, with what it takes.
pub(crate) struct Order {
    pub variables: Vec<usize>,
    /// The entries of all tables that are made, added up; what is stored.
    pub entries: u64,
    /// The sums that are computed for them.
    pub sums: u64,
    /// The most neighbours that a variable has when it is eliminated.
    pub width: usize,
}

#[derive(Clone, Copy)]
enum Rule {
    Fill,
    Size,
}

/// The cheaper order of the two rules, unless it makes more than so many entries or sums.
pub(crate) fn order(net: &Network, most: u64) -> Option<Order> {
    let graph = Graph::new(net);
    [Rule::Fill, Rule::Size]
        .into_iter()
        .filter_map(|rule| graph.clone().eliminate(rule, most))
        .min_by_key(|order| order.sums)
}

/// Neighbours as bit sets.
#[derive(Clone)]
struct Graph {
    around: Vec<Vec<u64>>,
    sizes: Vec<u64>,
    live: Vec<bool>,
}

fn members(set: &[u64]) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(k, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(k * 64 + bit)
        })
    })
}

impl Graph {
    fn new(net: &Network) -> Graph {
        let count = net.variables.len();
        let mut around = vec![vec![0u64; count.div_ceil(64)]; count];
        for table in net.all_tables() {
            for &v in &table.scope {
                for &u in table.scope.iter().filter(|&&u| u != v) {
                    around[v][u / 64] |= 1 << (u % 64);
                }
            }
        }
        let sizes = (0..count).map(|v| net.size(v) as u64).collect();
        let live = (0..count).map(|v| net.size(v) > 0).collect();
        Graph { around, sizes, live }
    }

    fn entries(&self, v: usize) -> u64 {
        members(&self.around[v]).fold(1, |product, u| product.saturating_mul(self.sizes[u]))
    }

    fn score(&self, rule: Rule, v: usize) -> (u64, u64) {
        let entries = self.entries(v);
        match rule {
            Rule::Size => (entries, 0),
            Rule::Fill => {
                let own = &self.around[v];
                let degree = members(own).count() as u64;
                let missing: u64 =
                    members(own).map(|u| degree - 1 - self.common_neighbours(u, own)).sum();
                (missing, entries)
            }
        }
    }

    fn common_neighbours(&self, u: usize, own: &[u64]) -> u64 {
        own.iter().zip(&self.around[u]).map(|(a, b)| u64::from((a & b).count_ones())).sum()
    }

    fn eliminate(mut self, rule: Rule, most: u64) -> Option<Order> {
        let mut scores: Vec<(u64, u64)> =
            (0..self.live.len()).map(|v| self.score(rule, v)).collect();
        let live = (0..self.live.len()).filter(|&v| self.live[v]);
        let mut heap: BinaryHeap<_> = live.map(|v| Reverse((scores[v], v))).collect();
        let mut order = Order { variables: Vec::new(), entries: 0, sums: 0, width: 0 };
        while let Some(Reverse((score, v))) = heap.pop() {
            if !self.live[v] || score != scores[v] {
                continue;
            }
            self.live[v] = false;
            let entries = self.entries(v);
            order.variables.push(v);
            order.entries = order.entries.saturating_add(entries);
            order.sums = order.sums.saturating_add(entries.saturating_mul(self.sizes[v]));
            if order.sums > most {
                return None;
            }
            let own = std::mem::take(&mut self.around[v]);
            let neighbours: Vec<usize> = members(&own).collect();
            order.width = order.width.max(neighbours.len());
            let mut affected = own.clone();
            for &u in &neighbours {
                for (word, new) in self.around[u].iter_mut().zip(&own) {
                    *word |= new;
                }
                self.around[u][u / 64] &= !(1 << (u % 64));
                self.around[u][v / 64] &= !(1 << (v % 64));
                if matches!(rule, Rule::Fill) {
                    affected.iter_mut().zip(&self.around[u]).for_each(|(a, b)| *a |= b);
                }
            }
            for u in members(&affected) {
                let new = self.score(rule, u);
                if new != scores[u] {
                    scores[u] = new;
                    heap.push(Reverse((new, u)));
                }
            }
        }
        Some(order)
    }
}
