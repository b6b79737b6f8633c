//! The checker: is a plan what it says? It shares the types with the solver, and no code.
//!
//! The cost is recomputed from the problem. The bound follows from running the proof on the machine
//! that `certificate` describes, in wide integers; each step is refused where its condition does not
//! hold. Only what this file accepts has to be believed.

use std::collections::{BTreeMap, BTreeSet};

use crate::solver::certificate::{Certificate, ProofStep};
use crate::solver::{Cost, Problem, Solution, Tensor};

/// Why a plan is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The problem itself is not valid.
    #[error(transparent)]
    Problem(#[from] crate::solver::Error),
    /// What the plan says does not follow from its choice.
    #[error("the plan is wrong: {0}")]
    Solution(String),
    /// The proof does not show the bound.
    #[error("the proof is wrong: {0}")]
    Proof(String),
}

type Checked<T> = Result<T, CheckError>;

fn plan<T>(message: String) -> Checked<T> {
    Err(CheckError::Solution(message))
}

fn proof<T>(message: String) -> Checked<T> {
    Err(CheckError::Proof(message))
}

/// Whether a plan costs what it says, and its proof shows its bound.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(problem: &Problem, plan: &Solution) -> Result<(), CheckError> {
    problem.validate()?;
    check_costs(problem, plan)?;
    check_bound(problem, plan)
}

fn check_costs(problem: &Problem, found: &Solution) -> Checked<()> {
    if found.calls.len() != problem.calls.len() || found.tensors.len() != problem.tensors.len() {
        return plan("its calls or tensors are not those of the problem".into());
    }
    let mut total: u128 = 0;
    let mut layout: Vec<Option<usize>> = problem.tensors.iter().map(|t| t.given).collect();
    let mut needed = BTreeSet::new();
    for (c, (call, planned)) in problem.calls.iter().zip(&found.calls).enumerate() {
        let Some(alternative) = call.alternatives.get(planned.choice) else {
            return plan(format!("call `{}` has no alternative {}", call.name, planned.choice));
        };
        if found.fixed.get(&c).is_some_and(|&fixed| fixed != planned.choice) {
            return plan(format!("call `{}` does not run what is fixed", call.name));
        }
        let Some(cost) = alternative.cost.get() else {
            return plan(format!("call `{}` runs what is forbidden", call.name));
        };
        let said = (&planned.name, &planned.chosen, planned.cost);
        if said != (&call.name, &alternative.name, cost) {
            return plan(format!("call `{}` does not run at {}", call.name, planned.cost));
        }
        total += u128::from(cost);
        alternative.writes.iter().for_each(|used| layout[used.tensor] = Some(used.layout));
        needed.extend(alternative.reads.iter().map(|used| (used.tensor, used.layout)));
    }
    for (t, (tensor, planned)) in problem.tensors.iter().zip(&found.tensors).enumerate() {
        if layout[t] != Some(planned.layout)
            || tensor.layouts[planned.layout] != planned.layout_name
        {
            return plan(format!("tensor `{}` is not produced in that layout", tensor.name));
        }
        needed.extend(tensor.required.iter().map(|&required| (t, required)));
    }
    needed.retain(|&(t, wanted)| layout[t] != Some(wanted));
    let listed = found.conversions.iter().map(|conversion| (conversion.tensor, conversion.to));
    if !listed.eq(needed) {
        return plan("its conversions are not those that its calls need".into());
    }
    for conversion in &found.conversions {
        let tensor = &problem.tensors[conversion.tensor];
        let cost = tensor.conversions.get(conversion.from).map(|row| row[conversion.to]);
        let cost = cost.unwrap_or(Cost::FORBIDDEN);
        if layout[conversion.tensor] != Some(conversion.from) || cost.get() != Some(conversion.cost)
        {
            return plan(format!("a conversion of tensor `{}` does not cost that", tensor.name));
        }
        total += u128::from(conversion.cost);
    }
    if total != u128::from(found.objective) {
        return plan(format!("it costs {total}, not {}", found.objective));
    }
    let missing = found.objective.saturating_sub(found.bound) as f64;
    let gap = if found.objective == 0 { 0.0 } else { missing / found.objective as f64 };
    if (gap - found.gap).abs() > 1e-9 {
        return plan(format!("its gap is {gap}, not {}", found.gap));
    }
    Ok(())
}

fn check_bound(problem: &Problem, plan: &Solution) -> Checked<()> {
    let mut machine = first(problem);
    for (&c, &a) in &plan.fixed {
        if problem.calls.get(c).is_none_or(|call| a >= call.alternatives.len()) {
            return proof(format!("call {c} cannot be fixed to {a}"));
        }
        machine.keep(c, a);
    }
    let mut run = Run { certificate: &plan.certificate, used: BTreeSet::new() };
    let target = i128::from(plan.bound);
    let shown = run.list(0, machine, target)?;
    if shown < target {
        return proof(format!("it shows {shown}, and the bound is {target}"));
    }
    Ok(())
}

/// An entry; forbidden ones are greater than all sums of others.
type Entry = i128;
const FORBIDDEN: Entry = i128::MAX;

fn plus(a: Entry, b: Entry) -> Entry {
    if a == FORBIDDEN || b == FORBIDDEN { FORBIDDEN } else { a + b }
}

/// Tables by their variables. Tables have a place for every value, live or not.
#[derive(Clone, Default)]
struct TableSet {
    /// For each variable that is left, which of its values are live.
    live: BTreeMap<usize, Vec<bool>>,
    sizes: Vec<usize>,
    tables: BTreeMap<Vec<usize>, Vec<Entry>>,
    /// For each variable the tables with it.
    around: BTreeMap<usize, BTreeSet<Vec<usize>>>,
    /// The least live entries of tables, as far as they are known.
    least: BTreeMap<Vec<usize>, Entry>,
    /// The sum of those, and the number of forbidden ones among them.
    sum: Entry,
    forbidden: usize,
}

/// The machine before the first step.
fn first(problem: &Problem) -> TableSet {
    let mut machine = TableSet::default();
    let mut producer = vec![None; problem.tensors.len()];
    for (c, call) in problem.calls.iter().enumerate() {
        machine.sizes.push(call.alternatives.len());
        call.alternatives[0].writes.iter().for_each(|used| producer[used.tensor] = Some(c));
    }
    let layouts: usize = problem.tensors.iter().map(|tensor| tensor.layouts.len()).sum();
    machine.sizes.resize(problem.calls.len() + layouts, 2);
    machine.live = machine.sizes.iter().map(|&size| vec![true; size]).enumerate().collect();
    for (c, call) in problem.calls.iter().enumerate() {
        machine.put(vec![c], call.alternatives.iter().map(|a| entry_of(a.cost)).collect());
    }
    let mut want = problem.calls.len();
    for (t, tensor) in problem.tensors.iter().enumerate() {
        for layout in 0..tensor.layouts.len() {
            let unwanted = if tensor.required.contains(&layout) { FORBIDDEN } else { 0 };
            machine.put(
                vec![want],
                vec![
                    unwanted,
                    tensor.given.map_or(0, |from| conversion_entry(from, layout, tensor)),
                ],
            );
            if let Some(c) = producer[t] {
                let mut entries = Vec::new();
                for alternative in &problem.calls[c].alternatives {
                    let mut writes = alternative.writes.iter();
                    let from = writes.find(|used| used.tensor == t).map(|used| used.layout);
                    entries.extend([
                        0,
                        from.map_or(FORBIDDEN, |from| conversion_entry(from, layout, tensor)),
                    ]);
                }
                machine.put(vec![c, want], entries);
            }
            for (c, call) in problem.calls.iter().enumerate() {
                if call.alternatives.iter().any(|a| needs_layout(a, t, layout)) {
                    machine.put(
                        vec![c, want],
                        call.alternatives
                            .iter()
                            .flat_map(|a| {
                                if needs_layout(a, t, layout) { [FORBIDDEN, 0] } else { [0, 0] }
                            })
                            .collect(),
                    );
                }
            }
            want += 1;
        }
    }
    machine
}

fn entry_of(cost: Cost) -> i128 {
    cost.get().map_or(FORBIDDEN, Entry::from)
}

fn conversion_entry(from: usize, layout: usize, tensor: &Tensor) -> i128 {
    if from == layout { 0 } else { entry_of(tensor.conversions[from][layout]) }
}

fn needs_layout(a: &crate::solver::Alternative, t: usize, layout: usize) -> bool {
    a.reads.iter().any(|used| used.tensor == t && used.layout == layout)
}

impl TableSet {
    /// Adds a table to the one of the same variables.
    fn put(&mut self, scope: Vec<usize>, entries: Vec<Entry>) {
        for &v in &scope {
            self.around.entry(v).or_default().insert(scope.clone());
        }
        let table = self.tables.entry(scope.clone()).or_insert_with(|| vec![0; entries.len()]);
        table.iter_mut().zip(entries).for_each(|(old, new)| *old = plus(*old, new));
        self.refresh(&scope);
    }

    /// Takes a table away.
    fn take(&mut self, scope: &[usize]) -> Vec<Entry> {
        for v in scope {
            if let Some(around) = self.around.get_mut(v) {
                around.remove(scope);
            }
        }
        self.forget(scope);
        self.tables.remove(scope).unwrap_or_default()
    }

    fn forget(&mut self, scope: &[usize]) {
        match self.least.remove(scope) {
            Some(FORBIDDEN) => self.forbidden -= 1,
            Some(least) => self.sum -= least,
            None => (),
        }
    }

    fn refresh(&mut self, scope: &[usize]) {
        self.forget(scope);
        let least = self.least_where(scope, None);
        match least {
            FORBIDDEN => self.forbidden += 1,
            least => self.sum += least,
        }
        self.least.insert(scope.to_vec(), least);
    }

    fn tables_with(&self, v: usize) -> Vec<Vec<usize>> {
        self.around.get(&v).into_iter().flatten().cloned().collect()
    }

    /// The least entry of a table over live values, perhaps with one value given.
    fn least_where(&self, scope: &[usize], given: Option<(usize, usize)>) -> Entry {
        let table = &self.tables[scope];
        let mut least = FORBIDDEN;
        self.each(scope, |at| {
            if given.is_none_or(|(axis, value)| at[axis] == value) {
                least = least.min(table[self.place(scope, at)]);
            }
        });
        least
    }

    fn place(&self, scope: &[usize], at: &[usize]) -> usize {
        scope.iter().zip(at).fold(0, |place, (&v, &value)| place * self.sizes[v] + value)
    }

    /// Calls a function with each choice of live values for some variables.
    fn each(&self, scope: &[usize], mut visit: impl FnMut(&[usize])) {
        let values: Vec<Vec<usize>> = scope.iter().map(|v| self.values(*v)).collect();
        if values.iter().any(Vec::is_empty) {
            return;
        }
        let mut index = vec![0; scope.len()];
        let mut at: Vec<usize> = values.iter().map(|values| values[0]).collect();
        loop {
            visit(&at);
            let Some(axis) = (0..index.len()).rev().find(|&k| index[k] + 1 < values[k].len())
            else {
                return;
            };
            index[axis] += 1;
            index[axis + 1..].fill(0);
            for k in axis..index.len() {
                at[k] = values[k][index[k]];
            }
        }
    }

    fn values(&self, v: usize) -> Vec<usize> {
        let live = self.live.get(&v).into_iter().flatten();
        live.enumerate().filter(|(_, live)| **live).map(|(value, _)| value).collect()
    }

    fn is_live(&self, v: usize, value: usize) -> bool {
        self.live.get(&v).and_then(|live| live.get(value)).copied().unwrap_or(false)
    }

    fn remove(&mut self, v: usize, value: usize) {
        if let Some(live) = self.live.get_mut(&v).and_then(|live| live.get_mut(value)) {
            *live = false;
        }
        self.tables_with(v).iter().for_each(|scope| self.refresh(scope));
    }

    fn keep(&mut self, v: usize, value: usize) {
        for other in self.values(v).into_iter().filter(|&other| other != value) {
            self.remove(v, other);
        }
    }

    /// The sum of the least entries of all tables, perhaps with a value given.
    fn bound(&self, given: Option<(usize, usize)>) -> Entry {
        let (mut sum, mut forbidden) = (self.sum, self.forbidden);
        if let Some((v, value)) = given {
            for scope in self.tables_with(v) {
                match self.least[&scope] {
                    FORBIDDEN => forbidden -= 1,
                    least => sum -= least,
                }
                let axis = scope.iter().position(|&u| u == v).unwrap_or_default();
                match self.least_where(&scope, Some((axis, value))) {
                    FORBIDDEN => forbidden += 1,
                    least => sum += least,
                }
            }
        }
        if forbidden > 0 { FORBIDDEN } else { sum }
    }

    fn dominated(&mut self, v: usize, value: usize, by: usize) -> Checked<()> {
        if !self.is_live(v, value) || !self.is_live(v, by) || value == by {
            return proof(format!("values {value} and {by} of {v} are not two live ones"));
        }
        let mut more: Entry = 0;
        for scope in self.tables_with(v) {
            let table = &self.tables[&scope];
            let axis = scope.iter().position(|&u| u == v).unwrap_or_default();
            let mut most: Option<Entry> = None;
            self.each(&scope, |at| {
                let mut other = at.to_vec();
                other[axis] = by;
                let (one, other) = (table[self.place(&scope, at)], self.place(&scope, &other));
                if at[axis] == value && one != FORBIDDEN {
                    let difference = plus(table[other], -one);
                    most = most.max(Some(difference));
                }
            });
            match most {
                // Nothing is allowed with the value at all.
                None => {
                    self.remove(v, value);
                    return Ok(());
                }
                Some(most) => more = plus(more, most),
            }
        }
        if more > 0 {
            return proof(format!("value {by} of {v} does not replace {value}"));
        }
        self.remove(v, value);
        Ok(())
    }

    fn eliminate(&mut self, v: usize) -> Checked<()> {
        let values = self.values(v);
        if values.is_empty() {
            return proof(format!("variable {v} is not there"));
        }
        let scopes = self.tables_with(v);
        let taken: Vec<(Vec<usize>, Vec<Entry>)> =
            scopes.into_iter().map(|scope| (scope.clone(), self.take(&scope))).collect();
        let groups: Vec<Vec<(Vec<usize>, Vec<Entry>)>> = match values.len() {
            1 => taken.into_iter().map(|table| vec![table]).collect(),
            _ => vec![taken],
        };
        for group in groups {
            let union: BTreeSet<usize> =
                group.iter().flat_map(|(scope, _)| scope.clone()).collect();
            let scope: Vec<usize> = union.into_iter().filter(|&u| u != v).collect();
            let count = scope.iter().map(|&u| self.sizes[u]).product();
            // Places of values that are not live do not matter.
            let mut entries = vec![0; count];
            // For each table: by what its place moves with each of the scope, and with `v`.
            let strides: Vec<(Vec<usize>, usize)> = group
                .iter()
                .map(|(table, _)| {
                    (
                        scope.iter().map(|&u| self.stride_in(u, table)).collect(),
                        self.stride_in(v, table),
                    )
                })
                .collect();
            self.each(&scope, |at| {
                let places: Vec<usize> =
                    strides.iter().map(|(other, _)| offset_of(other, at)).collect();
                entries[self.place(&scope, at)] = values
                    .iter()
                    .map(|&value| {
                        let terms = group.iter().zip(&strides).zip(&places);
                        terms.fold(0, |sum, (((_, table), (_, own)), place)| {
                            plus(sum, table[place + own * value])
                        })
                    })
                    .min()
                    .unwrap_or(0);
            });
            self.put(scope, entries);
        }
        self.live.remove(&v);
        Ok(())
    }

    fn stride_in(&self, u: usize, table: &[usize]) -> usize {
        match table.iter().position(|&w| w == u) {
            Some(k) => table[k + 1..].iter().map(|&w| self.sizes[w]).product(),
            None => 0,
        }
    }

    fn shift(&mut self, scope: &[usize], v: usize, amounts: &[i64]) -> Checked<()> {
        let Some(axis) = scope.iter().position(|&u| u == v).filter(|_| scope.len() > 1) else {
            return proof(format!("a shift to {v} does not come from one of its tables"));
        };
        if !self.tables.contains_key(scope) {
            return proof(format!("there is no table of {scope:?}"));
        }
        let inner: usize = scope[axis + 1..].iter().map(|&u| self.sizes[u]).product();
        let size = self.sizes[v];
        if let Some(table) = self.tables.get_mut(scope) {
            for (place, entry) in table.iter_mut().enumerate() {
                *entry = plus(
                    *entry,
                    -amounts.get(place / inner % size).map_or(0, |&amount| Entry::from(amount)),
                );
            }
        }
        self.refresh(scope);
        self.put(
            vec![v],
            (0..size)
                .map(|value| amounts.get(value).map_or(0, |&amount| Entry::from(amount)))
                .collect(),
        );
        Ok(())
    }

    /// The tables of some variables alone.
    fn part(&self, variables: &BTreeSet<usize>) -> Checked<TableSet> {
        let mut part = TableSet { sizes: self.sizes.clone(), ..TableSet::default() };
        for &v in variables {
            let Some(live) = self.live.get(&v) else {
                return proof(format!("variable {v} of a part is not there"));
            };
            part.live.insert(v, live.clone());
        }
        for v in variables {
            for scope in self.tables_with(*v) {
                if !scope.iter().all(|u| variables.contains(u)) {
                    return proof(format!("a table connects the part of {v} with another"));
                }
                if scope[0] == *v {
                    part.put(scope.clone(), self.tables[&scope].clone());
                }
            }
        }
        Ok(part)
    }
}

fn offset_of(strides: &[usize], at: &[usize]) -> usize {
    strides.iter().zip(at).map(|(stride, value)| stride * value).sum()
}

/// A run of a proof.
struct Run<'c> {
    certificate: &'c Certificate,
    used: BTreeSet<usize>,
}

impl Run<'_> {
    /// The lower bound that a list of steps shows, as far as it does not exceed the target.
    fn list(&mut self, list: usize, mut machine: TableSet, target: Entry) -> Checked<Entry> {
        // Each list is used once, so that the proof is a tree and its run ends.
        if !self.used.insert(list) {
            return proof(format!("list {list} is used twice"));
        }
        let Some(steps) = self.certificate.lists.get(list) else {
            return proof(format!("there is no list {list}"));
        };
        for (k, step) in steps.iter().enumerate() {
            match step {
                ProofStep::Dominated { variable, value, by } => {
                    machine.dominated(*variable, *value, *by)?;
                }
                ProofStep::Exclude { variable, value } => {
                    let cost = if machine.is_live(*variable, *value) {
                        machine.bound(Some((*variable, *value)))
                    } else {
                        FORBIDDEN
                    };
                    if cost < target {
                        return proof(format!(
                            "value {value} of {variable} may cost {cost}, and the target is {target}"
                        ));
                    }
                    machine.remove(*variable, *value);
                }
                ProofStep::Eliminate { variable } => machine.eliminate(*variable)?,
                ProofStep::Shift { scope, variable, amounts } => {
                    machine.shift(scope, *variable, amounts)?;
                }
                ProofStep::Branch { variable, cases } => {
                    last(k, steps)?;
                    let values: BTreeSet<usize> = cases.iter().map(|case| case.value).collect();
                    if !machine.values(*variable).iter().all(|value| values.contains(value)) {
                        return proof(format!("a value of {variable} is no case"));
                    }
                    let mut bound = target;
                    for case in cases {
                        let mut branch = machine.clone();
                        branch.keep(*variable, case.value);
                        bound = bound.min(self.list(case.list, branch, target)?);
                    }
                    return Ok(bound);
                }
                ProofStep::Split { parts } => {
                    last(k, steps)?;
                    let mut seen = BTreeSet::new();
                    let mut bound = machine.tables.get(&Vec::new()).map_or(0, |table| table[0]);
                    for part in parts {
                        let variables: BTreeSet<usize> = part.variables.iter().copied().collect();
                        if !seen.is_disjoint(&variables) {
                            return proof("the parts share a variable".into());
                        }
                        let network = machine.part(&variables)?;
                        seen.extend(variables);
                        let target = Entry::from(part.target);
                        bound = plus(bound, self.list(part.list, network, target)?);
                    }
                    if !machine.live.keys().all(|v| seen.contains(v)) {
                        return proof("a variable is in no part".into());
                    }
                    return Ok(bound.min(target));
                }
            }
        }
        Ok(machine.bound(None).min(target))
    }
}

fn last(k: usize, steps: &[ProofStep]) -> Checked<()> {
    if k + 1 == steps.len() { Ok(()) } else { proof("steps follow after cases or parts".into()) }
}
