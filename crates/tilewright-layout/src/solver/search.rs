//! The search: reduce, bound, exclude, and branch where that is not enough (depth-first branch and
//! bound over soft local consistency, as in toulbar2: Cooper et al. 2010, Hurley et al. 2016).
//!
//! At each node the reductions run first, and then the tree decomposition if its tables are small.
//! Otherwise message passing raises the bound, a choice is read off and improved, and values that
//! cannot be part of anything better go. What falls into parts is solved part by part (AND/OR
//! search, Dechter and Mateescu 2007). The proof is written on the way.

use std::time::Instant;

use crate::solver::Cost;
use crate::solver::certificate::{Case, Component, ProofStep};
use crate::solver::dual::ascend;
use crate::solver::elimination::order;
use crate::solver::improve::{decode, improve};
use crate::solver::network::{FORBIDDEN, Network, Variable, add};
use crate::solver::reduce::{eliminate, exclude, least, reduce};
use crate::solver::statistics::Statistics;

/// Sums that a tree decomposition may take before anything else is tried.
const CHEAP: u64 = 1 << 16;
/// Sums that it may take at the root for each entry of the memory limit, and below the root.
const SUMS: u64 = 8;
const BELOW: u64 = 1 << 20;
/// Rounds of message passing at the root, and below.
const ROUNDS: (usize, usize) = (1000, 24);
/// How often a node passes messages again after values went.
const AGAIN: usize = 20;

pub(crate) struct Search {
    pub lists: Vec<Vec<ProofStep>>,
    pub statistics: Statistics,
    /// Entries that the tables of a tree decomposition may have.
    entries: u64,
    /// Whether something was left for lack of time.
    late: bool,
    /// A place for each variable of the problem.
    scratch: Vec<usize>,
}

/// What a search found.
pub(crate) struct Answer {
    /// The value of each variable, if there is a choice that is better than what was known.
    pub choice: Option<Vec<usize>>,
    pub bound: u64,
    /// Whether the bound is that of the best choice.
    pub complete: bool,
}

impl Search {
    pub fn new(variables: usize, memory: usize) -> Search {
        Search {
            lists: Vec::new(),
            statistics: Statistics::default(),
            // Each entry comes with the value by which it was reached.
            entries: (memory / size_of::<(i64, usize)>()) as u64,
            late: false,
            scratch: vec![0; variables],
        }
    }

    /// Finds the best choice of a network that costs less than `upper`.
    pub fn run(&mut self, network: Network, upper: Cost, deadline: Instant) -> Answer {
        let upper = upper.get().and_then(|units| i64::try_from(units).ok()).unwrap_or(FORBIDDEN);
        let mut root = Node::new(self, network, upper, deadline, true);
        root.prepare(self);
        root.explore(self);
        let choice = root.best.map(|found| {
            let mut values = vec![0; self.scratch.len()];
            found.choice.into_iter().for_each(|(name, value)| values[name] = value);
            values
        });
        let bound = u64::try_from(root.bound).unwrap_or(0);
        Answer { choice, bound, complete: !self.late }
    }
}

struct Found {
    cost: i64,
    /// Names of variables and values.
    choice: Vec<(usize, usize)>,
}

/// A network on the way to its optimum.
struct Node {
    net: Network,
    /// Only choices below count.
    upper: i64,
    /// No choice costs less, as far as it costs less than `upper`.
    bound: i64,
    /// The best choice that was found.
    best: Option<Found>,
    /// Whether nothing is left to do.
    done: bool,
    deadline: Instant,
    /// Whether no branch led here.
    root: bool,
    /// The steps of the proof, and their place.
    steps: Vec<ProofStep>,
    list: usize,
}

impl Node {
    fn new(search: &mut Search, net: Network, upper: i64, deadline: Instant, root: bool) -> Node {
        search.statistics.nodes += 1;
        search.lists.push(Vec::new());
        let (bound, list) = (net.lower(), search.lists.len() - 1);
        let (best, done, steps) = (None, false, Vec::new());
        Node { net, upper, bound, best, done, deadline, root, steps, list }
    }

    /// Notes that no choice costs less, and that nothing more can be said.
    fn done(&mut self, bound: i64) {
        self.done = true;
        self.bound = bound.min(self.upper);
    }

    fn is_late(&self, search: &mut Search) -> bool {
        let late = Instant::now() > self.deadline;
        search.late |= late;
        late
    }

    /// All that is done before cases or parts are looked at.
    fn prepare(&mut self, search: &mut Search) {
        if !self.root && self.is_late(search) {
            return self.done(self.bound);
        }
        for again in 0..=AGAIN {
            if !reduce(&mut self.net, &mut self.steps, &mut search.statistics) {
                return self.done(self.upper);
            }
            if self.decomposed(search, CHEAP) {
                self.note_choice(search, self.net.constant, Vec::new());
                return self.done(self.net.constant);
            }
            if again == AGAIN || self.net.components().len() > 1 {
                break;
            }
            let rounds = if self.root { ROUNDS.0 } else { ROUNDS.1 };
            search.statistics.rounds +=
                ascend(&mut self.net, self.upper, rounds, self.deadline, &mut self.steps);
            if again == 0 && self.net.lower() < self.upper {
                self.guess(search);
            }
            match self.exclude(search) {
                None => return self.done(self.upper),
                Some(0) => break,
                Some(_) => (),
            }
        }
        self.bound = self.net.lower().min(self.upper);
    }

    /// The rest after `prepare`; `upper` may have become smaller since.
    fn explore(&mut self, search: &mut Search) {
        if !self.done {
            let components = self.net.components();
            let most = search.entries.saturating_mul(SUMS);
            if components.len() > 1 {
                self.split(search, &components);
            } else if self.decomposed(search, if self.root { most } else { most.min(BELOW) }) {
                self.note_choice(search, self.net.constant, Vec::new());
                self.done(self.net.constant);
            } else if self.bound < self.upper && !self.is_late(search) {
                self.branch(search);
            }
        }
        self.bound = self.bound.min(self.upper);
        search.lists[self.list] = std::mem::take(&mut self.steps);
    }

    /// Eliminates all variables along a tree decomposition, if one is small enough.
    fn decomposed(&mut self, search: &mut Search, most: u64) -> bool {
        let Some(order) = order(&self.net, most) else { return false };
        if order.entries > search.entries {
            return false;
        }
        let statistics = &mut search.statistics;
        statistics.decomposed += order.variables.len();
        statistics.width = statistics.width.max(order.width);
        for v in order.variables {
            eliminate(&mut self.net, v, &mut self.steps);
        }
        true
    }

    /// Notes a choice of what is left (by names), if it is better than what is known.
    fn note_choice(&mut self, search: &mut Search, cost: i64, mut choice: Vec<(usize, usize)>) {
        if cost < self.upper {
            self.net.complete(&mut choice, &mut search.scratch);
            self.upper = cost;
            self.best = Some(Found { cost, choice });
        }
    }

    /// Reads a choice off the tables and improves it.
    fn guess(&mut self, search: &mut Search) {
        let mut choice = decode(&self.net);
        if self.net.cost(&choice) == FORBIDDEN {
            return;
        }
        improve(&self.net, &mut choice, self.deadline);
        let live = self.net.live().map(|v| (&self.net.variables[v], choice[v]));
        let named = live.map(|(variable, k)| (variable.name, variable.values[k])).collect();
        self.note_choice(search, self.net.cost(&choice), named);
    }

    /// Removes the values with which nothing costs less than `upper`, and says how many these are;
    /// `None` if nothing is left.
    fn exclude(&mut self, search: &mut Search) -> Option<usize> {
        let net = &mut self.net;
        // What is removed raises the sum; the old one is a lower bound of it.
        let lower = net.lower();
        let mut count = 0;
        for v in net.live().collect::<Vec<usize>>() {
            let mut usual = net.variables[v].own.iter().copied().min().unwrap_or(0);
            let mut with = net.variables[v].own.clone();
            for table in net.tables_of(v) {
                let each: Vec<i64> = (0..with.len()).map(|k| least(net, table, v, k)).collect();
                usual = add(usual, each.iter().copied().min().unwrap_or(0));
                with.iter_mut().zip(each).for_each(|(with, each)| *with = add(*with, each));
            }
            for value in (0..with.len()).rev() {
                // The same values cost the same in both sums, so that none is forbidden alone.
                if with[value] == FORBIDDEN || lower - usual + with[value] >= self.upper {
                    exclude(net, v, value, &mut self.steps);
                    count += 1;
                }
            }
            if net.size(v) == 0 {
                return None;
            }
        }
        search.statistics.excluded += count;
        Some(count)
    }

    /// Solves parts that no table connects. All of them are prepared before one is explored, since
    /// each bound makes the others' easier; the time is shared.
    fn split(&mut self, search: &mut Search, components: &[Vec<usize>]) {
        let parts: Vec<Network> = components.iter().map(|part| self.net.part(part, &[])).collect();
        let mut bounds: Vec<i64> = parts.iter().map(Network::lower).collect();
        let (constant, upper) = (self.net.constant, self.upper);
        let mut nodes = Vec::new();
        for (k, part) in parts.into_iter().enumerate() {
            let mut node = Node::new(
                search,
                part,
                room_for(&bounds, k, upper, constant),
                self.deadline,
                self.root,
            );
            node.prepare(search);
            bounds[k] = node.bound;
            nodes.push(node);
        }
        // The easy ones first, so that the hard ones get the time that is left.
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by_key(|&k| nodes[k].upper - nodes[k].bound);
        let mut open = nodes.iter().filter(|node| !node.done).count() as u32;
        for k in order {
            let node = &mut nodes[k];
            node.upper = node.upper.min(room_for(&bounds, k, upper, constant));
            if !node.done {
                let now = Instant::now();
                node.deadline = now + self.deadline.saturating_duration_since(now) / open;
                open -= 1;
            }
            node.explore(search);
            bounds[k] = node.bound;
        }
        let parts = components.iter().zip(&nodes).map(|(own, node)| Component {
            variables: own.iter().map(|v| self.net.variables[*v].name).collect(),
            target: node.bound,
            list: node.list,
        });
        self.steps.push(ProofStep::Split { parts: parts.collect() });
        let found: Option<Vec<Found>> = nodes.into_iter().map(|node| node.best).collect();
        if let Some(found) = found {
            let cost = found.iter().fold(constant, |sum, found| sum + found.cost);
            let choice = found.into_iter().flat_map(|found| found.choice).collect();
            self.note_choice(search, cost, choice);
        }
        self.done(bounds.into_iter().fold(constant, add));
    }

    /// Tries each value of a variable.
    fn branch(&mut self, search: &mut Search) {
        if search.statistics.searched == 0 {
            search.statistics.searched = self.net.live().count();
        }
        let v = self.widest();
        let mut children: Vec<Network> = (0..self.net.size(v))
            .map(|value| {
                let mut child = self.net.clone();
                child.decisions.clear();
                child.keep(v, &[value]);
                child
            })
            .collect();
        children.sort_by_cached_key(Network::lower);
        let mut bound = FORBIDDEN;
        let mut cases = Vec::new();
        for child in children {
            let value = child.variables[v].values[0];
            let mut node = Node::new(search, child, self.upper, self.deadline, false);
            cases.push(Case { value, list: node.list });
            if node.bound < self.upper {
                node.prepare(search);
                node.explore(search);
            }
            bound = bound.min(node.bound);
            if let Some(found) = node.best {
                self.note_choice(search, found.cost, found.choice);
            }
        }
        self.steps.push(ProofStep::Branch { variable: self.net.variables[v].name, cases });
        self.done(bound);
    }

    /// The variable to branch on: one with the most tables, and among these one whose values differ
    /// most.
    fn widest(&self) -> usize {
        self.net
            .live()
            .max_by_key(|&v| {
                let Variable { own, tables, .. } = &self.net.variables[v];
                let least = own.iter().copied().min().unwrap_or(0);
                let more = own.iter().map(|&entry| entry - least).fold(0, i64::saturating_add);
                (tables.len(), more)
            })
            .expect("something is left")
    }
}

/// What a part may cost, if nothing costs less than the bounds of the others.
fn room_for(bounds: &[i64], k: usize, upper: i64, constant: i64) -> i64 {
    let others = (0..bounds.len()).filter(|&j| j != k).map(|j| bounds[j]);
    if upper == FORBIDDEN { FORBIDDEN } else { upper - others.fold(constant, add) }
}
