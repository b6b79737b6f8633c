//! The search: reduce, bound, exclude, and branch where that is not enough (depth-first branch and
//! bound over soft local consistency, as in toulbar2: Cooper et al. 2010, Hurley et al. 2016).
//!
//! At each node the reductions run first, and then the tree decomposition if its tables are small.
//! Otherwise message passing raises the bound, a choice is read off and improved, and values that
//! cannot be part of anything better go. What falls into parts is solved part by part (AND/OR
//! search, Dechter and Mateescu 2007). The proof is written on the way.

use std::time::Instant;

use crate::certificate::{Case, Part, Step};
use crate::dual::ascend;
use crate::elimination::order;
use crate::improve::{decode, improve};
use crate::network::{FORBIDDEN, Network, add};
use crate::plan::Statistics;
use crate::reduce::{eliminate, exclude, least, reduce};
use crate::Cost;

/// Sums that a tree decomposition may take before anything else is tried.
const CHEAP: u64 = 1 << 16;
/// Sums that it may take at the root for each entry of the memory limit, and below the root.
const SUMS: u64 = 8;
const BELOW: u64 = 1 << 20;
/// Rounds of message passing at the root, and below.
const ROUNDS: (usize, usize) = (1000, 40);
/// How often a node passes messages again after values went.
const AGAIN: usize = 20;

pub(crate) struct Search {
    pub lists: Vec<Vec<Step>>,
    pub statistics: Statistics,
    deadline: Instant,
    entries: u64,
    late: bool,
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

/// What is known of a network: no choice costs less than the bound, which is at most `upper` as the
/// node got it, and at most the best choice that was found below `upper`.
struct Outcome {
    bound: i64,
    best: Option<Found>,
}

struct Found {
    cost: i64,
    /// Names of variables and values.
    choice: Vec<(usize, usize)>,
}

impl Search {
    pub fn new(variables: usize, deadline: Instant, memory: usize) -> Search {
        Search {
            lists: Vec::new(),
            statistics: Statistics::default(),
            deadline,
            entries: (memory / size_of::<i64>()) as u64,
            late: false,
            scratch: vec![0; variables],
        }
    }

    /// Finds the best choice of a network that costs less than `upper`.
    pub fn run(&mut self, network: Network, upper: Cost) -> Answer {
        let upper = upper.get().and_then(|units| i64::try_from(units).ok()).unwrap_or(FORBIDDEN);
        let list = self.list();
        let outcome = self.node(list, network, upper, true);
        let choice = outcome.best.map(|found| {
            let mut values = vec![0; self.scratch.len()];
            found.choice.into_iter().for_each(|(name, value)| values[name] = value);
            values
        });
        let bound = u64::try_from(outcome.bound).unwrap_or(0);
        Answer { choice, bound, complete: !self.late }
    }

    fn list(&mut self) -> usize {
        self.lists.push(Vec::new());
        self.lists.len() - 1
    }

    fn is_late(&mut self) -> bool {
        self.late = self.late || Instant::now() > self.deadline;
        self.late
    }

    fn node(&mut self, list: usize, net: Network, upper: i64, root: bool) -> Outcome {
        self.statistics.nodes += 1;
        let mut node = Node { search: self, net, upper, best: None, steps: Vec::new(), root };
        let bound = node.explore();
        let Node { upper, best, steps, .. } = node;
        self.lists[list] = steps;
        Outcome { bound: bound.min(upper), best }
    }
}

/// A node while it is explored.
struct Node<'s> {
    search: &'s mut Search,
    net: Network,
    /// Only choices below count.
    upper: i64,
    best: Option<Found>,
    steps: Vec<Step>,
    root: bool,
}

impl Node<'_> {
    /// The bound, as far as it is below `upper`.
    fn explore(&mut self) -> i64 {
        if !self.root && self.search.is_late() {
            return self.net.lower();
        }
        for again in 0..AGAIN {
            if !reduce(&mut self.net, &mut self.steps, &mut self.search.statistics) {
                return self.upper;
            }
            if self.decomposed(CHEAP) {
                return self.finish();
            }
            let components = self.net.components();
            if components.len() > 1 {
                return self.split(&components);
            }
            let rounds = if self.root { ROUNDS.0 } else { ROUNDS.1 };
            let deadline = self.search.deadline;
            self.search.statistics.rounds +=
                ascend(&mut self.net, self.upper, rounds, deadline, &mut self.steps);
            if self.net.lower() >= self.upper {
                return self.upper;
            }
            if again == 0 {
                self.guess();
            }
            match self.exclude() {
                None => return self.upper,
                Some(0) => break,
                Some(_) => (),
            }
        }
        if !reduce(&mut self.net, &mut self.steps, &mut self.search.statistics) {
            return self.upper;
        }
        let most = self.search.entries.saturating_mul(SUMS);
        if self.decomposed(if self.root { most } else { most.min(BELOW) }) {
            return self.finish();
        }
        if self.search.is_late() {
            return self.net.lower();
        }
        self.branch()
    }

    /// Eliminates all variables along a tree decomposition, if one is small enough.
    fn decomposed(&mut self, most: u64) -> bool {
        let Some(order) = order(&self.net, most) else { return false };
        if order.entries > self.search.entries {
            return false;
        }
        let statistics = &mut self.search.statistics;
        statistics.decomposed += order.variables.len();
        statistics.width = statistics.width.max(order.width);
        for v in order.variables {
            eliminate(&mut self.net, v, &mut self.steps);
        }
        true
    }

    /// The bound where no variable is left.
    fn finish(&mut self) -> i64 {
        self.found(self.net.constant, Vec::new());
        self.net.constant
    }

    /// Notes a choice of what is left (by names), if it is better than what is known.
    fn found(&mut self, cost: i64, mut choice: Vec<(usize, usize)>) {
        if cost < self.upper {
            self.net.complete(&mut choice, &mut self.search.scratch);
            self.upper = cost;
            self.best = Some(Found { cost, choice });
        }
    }

    /// Reads a choice off the tables and improves it.
    fn guess(&mut self) {
        let mut choice = decode(&self.net);
        if self.net.cost(&choice) == FORBIDDEN {
            return;
        }
        improve(&self.net, &mut choice, self.search.deadline);
        let named = |v: usize| {
            let variable = &self.net.variables[v];
            (variable.name, variable.values[choice[v]])
        };
        self.found(self.net.cost(&choice), self.net.live().map(named).collect());
    }

    /// Removes the values with which nothing costs less than `upper`, and says how many these are;
    /// `None` if nothing is left.
    fn exclude(&mut self) -> Option<usize> {
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
        self.search.statistics.excluded += count;
        Some(count)
    }

    /// Solves parts that no table connects.
    fn split(&mut self, components: &[Vec<usize>]) -> i64 {
        let parts: Vec<Network> = components.iter().map(|part| self.net.part(part, &[])).collect();
        let mut bounds: Vec<i64> = parts.iter().map(Network::lower).collect();
        let lists: Vec<usize> = parts.iter().map(|_| self.search.list()).collect();
        let named = |v: &usize| self.net.variables[*v].name;
        let names: Vec<Vec<usize>> =
            components.iter().map(|part| part.iter().map(named).collect()).collect();
        let mut cost = self.net.constant;
        let mut choice = Some(Vec::new());
        let mut closed = false;
        for (k, part) in parts.into_iter().enumerate() {
            let others = bounds.iter().enumerate().filter(|&(j, _)| j != k);
            let others = others.fold(self.net.constant, |sum, (_, &bound)| sum + bound);
            let upper = if self.upper == FORBIDDEN { FORBIDDEN } else { self.upper - others };
            let outcome = self.search.node(lists[k], part, upper, self.root);
            bounds[k] = outcome.bound;
            closed = outcome.bound >= upper;
            if closed {
                break;
            }
            match (&mut choice, outcome.best) {
                (Some(choice), Some(found)) => {
                    choice.extend(found.choice);
                    cost += found.cost;
                }
                _ => choice = None,
            }
        }
        let parts = lists.into_iter().zip(&bounds).zip(names);
        let part = |((list, &target), variables)| Part { variables, target, list };
        self.steps.push(Step::Split { parts: parts.map(part).collect() });
        if closed {
            return self.upper;
        }
        if let Some(choice) = choice {
            self.found(cost, choice);
        }
        bounds.into_iter().fold(self.net.constant, |sum, bound| sum + bound)
    }

    /// Tries each value of a variable.
    fn branch(&mut self) -> i64 {
        if self.search.statistics.searched == 0 {
            self.search.statistics.searched = self.net.live().count();
        }
        let v = self.widest();
        let mut children: Vec<(i64, usize, Network)> = (0..self.net.size(v))
            .map(|value| {
                let mut child = self.net.clone();
                child.decisions.clear();
                child.keep(v, &[value]);
                (child.lower(), self.net.variables[v].values[value], child)
            })
            .collect();
        children.sort_by_key(|&(lower, value, _)| (lower, value));
        let mut bound = FORBIDDEN;
        let mut cases = Vec::new();
        for (lower, value, child) in children {
            let list = self.search.list();
            cases.push(Case { value, list });
            if lower >= self.upper {
                continue; // So are those that follow.
            }
            let outcome = self.search.node(list, child, self.upper, false);
            bound = bound.min(outcome.bound);
            if let Some(found) = outcome.best {
                self.found(found.cost, found.choice);
            }
        }
        self.steps.push(Step::Branch { variable: self.net.variables[v].name, cases });
        bound
    }

    /// The variable to branch on: one whose values differ much, and that many tables tell of.
    fn widest(&self) -> usize {
        let score = |&v: &usize| {
            let own = &self.net.variables[v].own;
            let least = own.iter().copied().min().unwrap_or(0);
            let more: i64 = own.iter().map(|&entry| entry - least).fold(0, i64::saturating_add);
            let tables = self.net.variables[v].tables.len() as i64;
            (more / own.len() as i64).saturating_add(1).saturating_mul(tables)
        };
        self.net.live().max_by_key(score).expect("something is left")
    }
}
