//! The cost network that the solver works on: variables with values that still count, and tables
//! over some of them, whose sum is minimised. `certificate` says what the network of a problem is.
//!
//! A network may be a part of another; `name` is what a variable, and `values` what its values, are
//! called in the network of the problem. Names ascend with the indices here.

use std::rc::Rc;

/// The entry of a table that no choice may have. All other entries stay far below it.
pub(crate) const FORBIDDEN: i64 = i64::MAX;

/// The sum of two entries.
pub(crate) fn add(a: i64, b: i64) -> i64 {
    if a == FORBIDDEN || b == FORBIDDEN { FORBIDDEN } else { a + b }
}

/// A table over variables in ascending order; the last one runs fastest.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub scope: Vec<usize>,
    pub entries: Vec<i64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub name: usize,
    /// The names of the live values; none once the variable is eliminated.
    pub values: Vec<usize>,
    /// The table of this variable alone.
    pub own: Vec<i64>,
    /// Its other tables.
    pub tables: Vec<usize>,
    /// Whether a table or value has changed since the reductions looked.
    pub queued: bool,
}

/// How an eliminated variable follows from variables that were eliminated later.
#[derive(Debug)]
pub(crate) struct Decision {
    name: usize,
    scope: Vec<(usize, Vec<usize>)>,
    /// For each choice of the scope the name of the best value.
    best: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub constant: i64,
    pub variables: Vec<Variable>,
    pub tables: Vec<Option<Rc<Table>>>,
    /// In the order of elimination.
    pub decisions: Vec<Rc<Decision>>,
    queue: Vec<usize>,
}

impl Network {
    pub fn variable(&mut self, name: usize, own: Vec<i64>) -> usize {
        let values = (0..own.len()).collect();
        self.push(Variable { name, values, own, tables: Vec::new(), queued: false })
    }

    fn push(&mut self, variable: Variable) -> usize {
        self.variables.push(variable);
        self.touch(self.variables.len() - 1);
        self.variables.len() - 1
    }

    pub fn size(&self, v: usize) -> usize {
        self.variables[v].values.len()
    }

    /// The variables that are not eliminated.
    pub fn live(&self) -> impl Iterator<Item = usize> {
        (0..self.variables.len()).filter(|&v| self.size(v) > 0)
    }

    pub fn table(&self, t: usize) -> &Table {
        self.tables[t].as_deref().expect("variables list tables that are there")
    }

    /// The tables of a variable, its own one left out.
    pub fn tables_of(&self, v: usize) -> impl Iterator<Item = &Table> {
        self.variables[v].tables.iter().map(|&t| self.table(t))
    }

    pub fn all_tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter_map(|table| table.as_deref())
    }

    /// The other variables in the tables of a variable, in order.
    pub fn neighbours(&self, v: usize) -> Vec<usize> {
        let mut found: Vec<usize> =
            self.tables_of(v).flat_map(|table| table.scope.iter().copied()).collect();
        found.sort_unstable();
        found.dedup();
        found.retain(|&u| u != v);
        found
    }

    fn touch(&mut self, v: usize) {
        if !std::mem::replace(&mut self.variables[v].queued, true) {
            self.queue.push(v);
        }
    }

    fn touch_around(&mut self, v: usize) {
        self.touch(v);
        for u in self.neighbours(v) {
            self.touch(u);
        }
    }

    /// A variable that has changed.
    pub fn changed(&mut self) -> Option<usize> {
        let v = self.queue.pop()?;
        self.variables[v].queued = false;
        Some(v)
    }

    /// Adds a table; `scope` ascends.
    pub fn add(&mut self, scope: Vec<usize>, entries: Vec<i64>) {
        match scope[..] {
            [] => self.constant = add(self.constant, entries[0]),
            [v] => {
                add_all(&mut self.variables[v].own, &entries);
                self.touch(v);
            }
            [first, ..] => {
                scope.iter().for_each(|&v| self.touch(v));
                let mut same = self.variables[first].tables.iter().copied();
                if let Some(t) = same.find(|&t| self.table(t).scope == scope) {
                    let table = self.tables[t].as_mut().expect("found just now");
                    add_all(&mut Rc::make_mut(table).entries, &entries);
                } else {
                    for &v in &scope {
                        self.variables[v].tables.push(self.tables.len());
                    }
                    self.tables.push(Some(Rc::new(Table { scope, entries })));
                }
            }
        }
    }

    fn take(&mut self, t: usize) -> Rc<Table> {
        let table = self.tables[t].take().expect("variables list tables that are there");
        for &v in &table.scope {
            self.variables[v].tables.retain(|&other| other != t);
        }
        table
    }

    /// Keeps these values (by index, ascending) of a variable alone.
    pub fn keep(&mut self, v: usize, kept: &[usize]) {
        for t in self.variables[v].tables.clone() {
            let table = self.table(t);
            let axis = table.scope.iter().position(|&u| u == v).expect("the table has it");
            let inner: usize = table.scope[axis + 1..].iter().map(|&u| self.size(u)).product();
            let mut entries = Vec::with_capacity(table.entries.len());
            for block in table.entries.chunks_exact(inner * self.size(v)) {
                for &k in kept {
                    entries.extend_from_slice(&block[k * inner..(k + 1) * inner]);
                }
            }
            let scope = table.scope.clone();
            self.tables[t] = Some(Rc::new(Table { scope, entries }));
        }
        let variable = &mut self.variables[v];
        variable.values = kept.iter().map(|&k| variable.values[k]).collect();
        variable.own = kept.iter().map(|&k| variable.own[k]).collect();
        self.touch_around(v);
    }

    /// Takes one value (by index) from a variable that has others.
    pub fn delete(&mut self, v: usize, value: usize) {
        let kept: Vec<usize> = (0..self.size(v)).filter(|&k| k != value).collect();
        self.keep(v, &kept);
    }

    /// Minimises over a variable, as `ProofStep::Eliminate` says.
    pub fn eliminate(&mut self, v: usize) {
        let tables: Vec<Rc<Table>> =
            self.variables[v].tables.clone().into_iter().map(|t| self.take(t)).collect();
        let variable = &mut self.variables[v];
        let (values, own) =
            (std::mem::take(&mut variable.values), std::mem::take(&mut variable.own));
        let name = variable.name;
        if let [only] = values[..] {
            self.constant = add(self.constant, own[0]);
            for table in tables {
                let table = Rc::unwrap_or_clone(table);
                let scope = table.scope.into_iter().filter(|&u| u != v).collect();
                self.add(scope, table.entries);
            }
            self.decisions.push(Rc::new(Decision { name, scope: Vec::new(), best: vec![only] }));
            return;
        }
        let mut scope: Vec<usize> =
            tables.iter().flat_map(|table| &table.scope).copied().filter(|&u| u != v).collect();
        scope.sort_unstable();
        scope.dedup();
        let sizes: Vec<usize> = scope.iter().map(|&u| self.size(u)).collect();
        let (mut entries, mut best) = (Vec::new(), Vec::new());
        let mut sums = vec![0; values.len()];
        let reads: Vec<Reader> = tables
            .iter()
            .map(|table| Reader::new(&table.scope, &scope, &sizes, v, values.len()))
            .collect();
        let mut at = vec![0; scope.len()];
        let mut offsets = vec![0; reads.len()];
        loop {
            sums.copy_from_slice(&own);
            for ((table, read), &offset) in tables.iter().zip(&reads).zip(&offsets) {
                for (k, sum) in sums.iter_mut().enumerate() {
                    *sum = add(*sum, table.entries[offset + k * read.step]);
                }
            }
            let least = (0..sums.len()).min_by_key(|&k| sums[k]).expect("two values or more");
            entries.push(sums[least]);
            best.push(values[least]);
            if !advance(&mut at, &sizes, |axis, by| {
                for (offset, read) in offsets.iter_mut().zip(&reads) {
                    *offset = offset.wrapping_add_signed(by * read.steps[axis]);
                }
            }) {
                break;
            }
        }
        let decision = Decision {
            name,
            scope: scope
                .iter()
                .map(|&u| (self.variables[u].name, self.variables[u].values.clone()))
                .collect(),
            best,
        };
        self.decisions.push(Rc::new(decision));
        self.add(scope, entries);
    }

    /// The sum of the least entries of all tables: no choice costs less.
    pub fn lower(&self) -> i64 {
        let own = self.live().map(|v| least(&self.variables[v].own));
        let all = own.chain(self.all_tables().map(|table| least(&table.entries)));
        all.fold(self.constant, add)
    }

    /// What a choice of values (by index) costs.
    pub fn cost(&self, choice: &[usize]) -> i64 {
        let own = self.live().map(|v| self.variables[v].own[choice[v]]);
        own.chain(self.all_tables().map(|table| self.entry(table, choice))).fold(self.constant, add)
    }

    /// The entry of a table at a choice of values (by index).
    pub fn entry(&self, table: &Table, choice: &[usize]) -> i64 {
        let at = table.scope.iter().fold(0, |at, &v| at * self.size(v) + choice[v]);
        table.entries[at]
    }

    /// The live variables, grouped so that no table connects two groups.
    pub fn components(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.variables.len()];
        let mut groups = Vec::new();
        for start in self.live() {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            let mut group = vec![start];
            let mut next = 0;
            while let Some(&v) = group.get(next) {
                next += 1;
                for table in self.tables_of(v) {
                    for &u in &table.scope {
                        if !std::mem::replace(&mut seen[u], true) {
                            group.push(u);
                        }
                    }
                }
            }
            group.sort_unstable();
            groups.push(group);
        }
        groups
    }

    /// The network of some variables (ascending), with what is fixed around them: `choice` gives a
    /// value (by index) to each other variable that shares a table with one of them.
    pub fn part(&self, variables: &[usize], choice: &[usize]) -> Network {
        let mut part = Network::default();
        for &v in variables {
            let Variable { name, values, own, .. } = &self.variables[v];
            let (values, own) = (values.clone(), own.clone());
            part.push(Variable { name: *name, values, own, tables: Vec::new(), queued: false });
        }
        let mut tables: Vec<usize> =
            variables.iter().flat_map(|&v| self.variables[v].tables.iter().copied()).collect();
        tables.sort_unstable();
        tables.dedup();
        for t in tables {
            let table = self.table(t);
            let scope: Vec<usize> =
                table.scope.iter().filter_map(|v| variables.binary_search(v).ok()).collect();
            if scope.len() == table.scope.len() {
                part.add(scope, table.entries.clone());
                continue;
            }
            let sizes: Vec<usize> = scope.iter().map(|&v| part.size(v)).collect();
            let mut at = vec![0; scope.len()];
            let mut entries = Vec::new();
            loop {
                let mut free = at.iter();
                let offset = table.scope.iter().fold(0, |offset, v| {
                    let value = match variables.binary_search(v).ok() {
                        Some(_) => *free.next().expect("one place for each of the scope"),
                        None => choice[*v],
                    };
                    offset * self.size(*v) + value
                });
                entries.push(table.entries[offset]);
                if !advance(&mut at, &sizes, |_, _| ()) {
                    break;
                }
            }
            part.add(scope, entries);
        }
        part
    }

    /// Completes a choice of what is left, as pairs of names, by the variables that were eliminated.
    /// `scratch` has a place for each variable of the problem.
    pub fn complete(&self, choice: &mut Vec<(usize, usize)>, scratch: &mut [usize]) {
        for &(name, value) in choice.iter() {
            scratch[name] = value;
        }
        for decision in self.decisions.iter().rev() {
            let at = decision.scope.iter().fold(0, |at, (name, values)| {
                let place = values.iter().position(|&value| value == scratch[*name]);
                at * values.len() + place.expect("values that were deleted later are not chosen")
            });
            scratch[decision.name] = decision.best[at];
            choice.push((decision.name, decision.best[at]));
        }
    }
}

fn add_all(old: &mut [i64], entries: &[i64]) {
    old.iter_mut().zip(entries).for_each(|(old, &new)| *old = add(*old, new));
}

fn least(entries: &[i64]) -> i64 {
    entries.iter().copied().min().unwrap_or(0)
}

/// How the offset into a table moves with the variables of a result.
struct Reader {
    steps: Vec<isize>,
    /// With the variable that is eliminated.
    step: usize,
}

impl Reader {
    fn new(table: &[usize], scope: &[usize], sizes: &[usize], v: usize, size: usize) -> Reader {
        let mut reader = Reader { steps: vec![0; scope.len()], step: 0 };
        let mut stride = 1;
        for &u in table.iter().rev() {
            if u == v {
                reader.step = stride;
                stride *= size;
            } else {
                let axis = scope.binary_search(&u).expect("the scope is the union of all");
                reader.steps[axis] = stride as isize;
                stride *= sizes[axis];
            }
        }
        reader
    }
}

/// Steps to the next place, the last axis fastest; `moved` is told each axis with the difference.
/// False after the last place.
pub(crate) fn advance(
    at: &mut [usize],
    sizes: &[usize],
    mut moved: impl FnMut(usize, isize),
) -> bool {
    for axis in (0..at.len()).rev() {
        if at[axis] + 1 < sizes[axis] {
            at[axis] += 1;
            moved(axis, 1);
            return true;
        }
        moved(axis, -(at[axis] as isize));
        at[axis] = 0;
    }
    false
}
