//! Exact last-writer flow: which write gives each read its value.
//!
//! A program is a list of [`Statement`]s: each has a domain, its accesses, and a schedule vector of
//! constants and loop variables that says in which order instances run (lexicographically; in one
//! instance, reads come before writes). For
//!
//! ```text
//! for i in range(8): B[i] = 0            # schedule (0, i)
//! for i in range(8): B[i] = B[i] + A[i]  # schedule (1, i)
//! ```
//!
//! [`Flow::compute`] finds, for every read instance, the write instance that produced the value
//! (Feautrier 1991, "Dataflow analysis of array and scalar references"), and the reads that see no
//! write. What is observable at the end is a
//! read like any other: [`Statement::observe`].
//!
//! That analysis is expensive, and most of it is not needed. Stages of a program run one after the
//! other: a read finds its cells in the latest stage that writes them, which is an intersection of
//! sets of cells, and only among statements that take turns in common loops is there a last write
//! to be searched for. Which *instance* of a write it was is found on demand ([`Edge::pairs`]).
//!
//! A write whose place or condition is not affine *may* happen: it can be the source of a read and
//! ends no earlier one. A read whose place is not affine may read any cell that is not excluded.
//!
//! **Limits.** Buffers are told apart by the identity of their pointer. Two views of one memory
//! with different shapes must be given as one buffer. A pair of schedules that are equal has no
//! order: neither instance is the other's source.

mod accesses;
mod statement;

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::rc::Rc;

use self::accesses::Accesses;
pub use self::statement::{Access, AccessId, ScheduleDim, Statement, is_before};
use tilewright_ir::Var;

use crate::answer::{Known, Reason, Unknown, Witness};
use crate::charged::{Map, Set as Raw};
use crate::engine::Engine;
use crate::set::Set;

/// A write that a read gets its value from.
#[derive(Clone)]
pub struct Edge {
    /// The write.
    pub writer: AccessId,
    /// The read.
    pub reader: AccessId,
    /// Whether the write is certainly the last one before the read.
    pub certain: bool,
    /// The instances of the read that get it, over the variables of its statement.
    pub reads: Set,
    accesses: Rc<Accesses>,
    /// The numbers of both accesses.
    ends: (usize, usize),
    /// The part of the read that gets it.
    part: Map,
    pairs: OnceCell<Known<Set>>,
}

/// A read that may see a cell that was never written.
#[derive(Clone)]
pub struct Uninitialised {
    /// The read.
    pub reader: AccessId,
    /// Whether nothing that may write comes before, and the read certainly happens.
    pub certain: bool,
    /// The instances, over the statement's variables.
    pub instances: Set,
}

/// The result of the analysis.
#[derive(Clone)]
pub struct Flow {
    /// The value of each read, in the order of writers and readers.
    pub edges: Vec<Edge>,
    /// Reads without a certain write before them.
    pub uninitialised: Vec<Uninitialised>,
}

impl Flow {
    /// Analyses a program. Its statements may come in any order.
    pub fn compute(engine: &Engine, program: &[Statement]) -> Known<Flow> {
        engine.ask(|| {
            let accesses = Rc::new(Accesses::collect(engine, program)?);
            let mut flow = Flow { edges: Vec::new(), uninitialised: Vec::new() };
            for (reader, entry) in accesses.entries.iter().enumerate() {
                if !entry.is_write {
                    Search::new(&accesses, reader).run(&mut flow)?;
                }
            }
            flow.edges.sort_by_key(|e| e.ends);
            Ok(flow)
        })
    }

    /// Only the reads without a certain write before them, which takes less time.
    pub fn uninitialised(engine: &Engine, program: &[Statement]) -> Known<Vec<Uninitialised>> {
        engine.ask(|| {
            let accesses = Rc::new(Accesses::collect(engine, program)?);
            let readers = accesses.entries.iter().enumerate().filter(|(_, e)| !e.is_write);
            let lost = readers.map(|(k, _)| Search::new(&accesses, k).run_unwritten());
            lost.filter_map(Known::transpose).collect()
        })
    }

    /// The edges that end in a read.
    pub fn sources(&self, reader: AccessId) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |e| e.reader == reader)
    }
}

/// Writers that take turns with each other.
struct Group {
    writers: Vec<usize>,
    /// Whether they do so with the reader too.
    in_turns: bool,
}

/// Number of writers among which comparing boxes first takes longer.
const FEW: usize = 8;

/// A union with one more part.
fn added<T>(all: Option<T>, part: T, union: fn(&T, &T) -> T) -> T {
    match all {
        None => part,
        Some(all) => union(&all, &part),
    }
}

/// The way of one read back through time.
struct Search<'a> {
    accesses: &'a Rc<Accesses>,
    reader: usize,
    /// What of the read has no certain write so far: from instances to cells.
    rest: Map,
    /// The instances that a write was met for which may not happen.
    uncertain: Option<Raw>,
}

impl<'a> Search<'a> {
    fn new(accesses: &'a Rc<Accesses>, reader: usize) -> Search<'a> {
        let rest = accesses.entries[reader].relation.clone();
        Search { accesses, reader, rest, uncertain: None }
    }

    fn run(mut self, flow: &mut Flow) -> Known<()> {
        let first = flow.edges.len();
        for group in self.groups()?.into_iter().rev() {
            if self.rest.is_empty()? {
                return Ok(());
            }
            self.meet(&group, flow)?;
        }
        let possible = flow.edges[first..].iter().any(|e| !e.certain);
        flow.uninitialised.extend(self.unwritten(possible)?);
        Ok(())
    }

    /// Only what is not written before: in which order does not matter, and what is hard comes last.
    fn run_unwritten(mut self) -> Known<Option<Uninitialised>> {
        let entries = &self.accesses.entries;
        let (in_turns, before): (Vec<Group>, Vec<Group>) =
            self.groups()?.into_iter().partition(|g| g.in_turns);
        let mut possible = false;
        let mut written: Option<Raw> = None;
        for w in before.iter().flat_map(|g| &g.writers).map(|w| &entries[*w]) {
            possible |= w.vague.is_some();
            if w.vague.is_none() {
                written = Some(added(written, w.cells()?, Raw::union));
            }
        }
        if let Some(written) = written {
            self.rest = self.rest.subtract_range(&written.coalesce()?)?;
        }
        for group in in_turns {
            if !self.rest.is_empty()? {
                let last = self.accesses.last_writes(self.reader, &self.rest, &group.writers)?;
                possible |= last.possible.keys().any(|w| entries[*w].vague.is_some());
                self.rest = last.rest;
            }
        }
        self.unwritten(possible)
    }

    /// What is left of the read. `possible` says whether it may have been written.
    fn unwritten(self, possible: bool) -> Known<Option<Uninitialised>> {
        let reader = &self.accesses.entries[self.reader];
        let instances = self.rest.domain()?;
        if instances.is_empty()? {
            return Ok(None);
        }
        let certain = reader.vague.is_none() && !possible;
        let instances = self.accesses.set(&reader.vars, instances, reader.vague.clone())?;
        Ok(Some(Uninitialised { reader: reader.id, certain, instances }))
    }

    /// The writers that the read may see, in the order of time: all of a group are before all of a
    /// later one.
    fn groups(&self) -> Known<Vec<Group>> {
        let entries = &self.accesses.entries;
        let reader = &entries[self.reader];
        let mut all: Vec<usize> = (0..entries.len()).collect();
        all.retain(|k| {
            let w = &entries[*k];
            w.is_write && w.buffer == reader.buffer && w.when(reader) != Some(Ordering::Greater)
        });
        if all.len() > FEW {
            let mut near = Vec::new();
            for k in all {
                if !entries[k].is_far_from(reader)? {
                    near.push(k);
                }
            }
            all = near;
        }
        all.push(self.reader);
        all.sort_by_cached_key(|k| entries[*k].in_text());
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for k in all {
            let settled = groups
                .iter()
                .take_while(|g| {
                    g.iter().all(|j| entries[*j].when(&entries[k]) == Some(Ordering::Less))
                })
                .count();
            let mut group = groups.split_off(settled).concat();
            group.push(k);
            groups.push(group);
        }
        let with_reader = groups.iter().position(|g| g.contains(&self.reader));
        groups.truncate(with_reader.map_or(0, |n| n + 1));
        Ok(groups
            .into_iter()
            .map(|mut writers| {
                let n = writers.len();
                writers.retain(|w| *w != self.reader);
                Group { in_turns: n > writers.len(), writers }
            })
            .filter(|g| !g.writers.is_empty())
            .collect())
    }

    /// What the writers of one group give.
    fn meet(&mut self, group: &Group, flow: &mut Flow) -> Known<()> {
        let entries = &self.accesses.entries;
        let mut met: Vec<(usize, Map)> = Vec::new();
        let mut all: Option<Map> = None;
        let mut in_turns = group.in_turns;
        for w in &group.writers {
            let part = self.rest.intersect_range(&entries[*w].cells()?)?;
            if part.is_empty()? {
                continue;
            }
            if let Some(before) = &all {
                in_turns = in_turns || !before.intersect(&part)?.is_empty()?;
            }
            all = Some(added(all, part.clone(), Map::union));
            met.push((*w, part));
        }
        if in_turns {
            return self.meet_in_turns(met.into_iter().map(|(w, _)| w).collect(), flow);
        }
        for (w, part) in met {
            let reads = part.domain()?;
            self.record_writer(w, part, None, true, flow)?;
            match entries[w].vague {
                None => self.rest = self.rest.subtract_range(&entries[w].cells()?)?,
                Some(_) => self.add_uncertain(reads),
            }
        }
        self.rest = self.rest.coalesce()?;
        Ok(())
    }

    /// What writers give that take turns with each other, or with the reader.
    fn meet_in_turns(&mut self, writers: Vec<usize>, flow: &mut Flow) -> Known<()> {
        if writers.is_empty() {
            return Ok(());
        }
        let last = self.accesses.last_writes(self.reader, &self.rest, &writers)?;
        let mut unsure = Vec::new();
        for (w, pairs) in last.possible {
            let reads = pairs.range()?;
            let certain = match last.certain.get(&w) {
                None => false,
                Some(sure) => pairs.is_subset(sure)?,
            };
            if !certain {
                unsure.push(reads.clone());
            }
            let part = self.rest.intersect_domain(&reads)?;
            self.record_writer(w, part, Some(pairs), certain, flow)?;
        }
        self.rest = last.rest.coalesce()?;
        unsure.into_iter().for_each(|u| self.add_uncertain(u));
        Ok(())
    }

    fn add_uncertain(&mut self, reads: Raw) {
        self.uncertain = Some(added(self.uncertain.take(), reads, Raw::union));
    }

    /// A writer that gives its value to a part of the read.
    fn record_writer(
        &self,
        writer: usize,
        part: Map,
        pairs: Option<Map>,
        certain: bool,
        flow: &mut Flow,
    ) -> Known<()> {
        let (w, r) = (&self.accesses.entries[writer], &self.accesses.entries[self.reader]);
        let reads = part.domain()?.coalesce()?;
        let is_clear = match &self.uncertain {
            None => true,
            Some(cloud) => cloud.intersect(&reads)?.is_empty()?,
        };
        let vague = w.vague.clone().or_else(|| r.vague.clone());
        let edge = Edge {
            writer: w.id,
            reader: r.id,
            certain: certain && is_clear && vague.is_none(),
            reads: self.accesses.set(&r.vars, reads, vague)?,
            accesses: self.accesses.clone(),
            ends: (writer, self.reader),
            part,
            pairs: OnceCell::new(),
        };
        if let Some(pairs) = pairs {
            let _ = edge.pairs.set(edge.name_pairs(pairs));
        }
        flow.edges.push(edge);
        Ok(())
    }
}

impl Edge {
    /// The pairs of instances: the writer's variables, then the reader's. Variables of the reader
    /// that are also the writer's are renamed.
    ///
    /// # Errors
    /// What the engine could not decide.
    pub fn pairs(&self) -> Known<&Set> {
        self.pairs
            .get_or_init(|| {
                self.accesses.engine.ask(|| self.name_pairs(self.last_instances(&self.part)?))
            })
            .as_ref()
            .map_err(Clone::clone)
    }

    /// The last instance of the write before each instance of a part of the read.
    fn last_instances(&self, part: &Map) -> Known<Map> {
        let (writer, reader) = self.ends;
        let w = &self.accesses.entries[writer];
        let is_before = w.when(&self.accesses.entries[reader]) == Some(Ordering::Less);
        if is_before && w.relation.is_injective()? {
            return w.relation.then(&part.reverse());
        }
        let mut last = self.accesses.last_writes(reader, part, &[writer])?;
        last.possible
            .remove(&writer)
            .ok_or_else(|| Unknown::from(Reason::Engine("a write has gone".into())))
    }

    /// Pairs in the variables of both statements.
    fn name_pairs(&self, pairs: Map) -> Known<Set> {
        let (w, r) = (&self.accesses.entries[self.ends.0], &self.accesses.entries[self.ends.1]);
        let vars: Vec<Var> = w
            .vars
            .iter()
            .cloned()
            .chain(r.vars.iter().map(|v| if w.vars.contains(v) { v.fresh() } else { v.clone() }))
            .collect();
        let vague = w.vague.clone().or_else(|| r.vague.clone());
        self.accesses.set(&vars, pairs.coalesce()?.wrap(), vague)
    }

    /// A pair of instances, in the variables of their statements.
    ///
    /// # Errors
    /// What the engine could not decide.
    pub fn witness(&self) -> Known<(Witness, Witness)> {
        let pairs = match self.pairs.get() {
            Some(pairs) => pairs.clone()?,
            // One read is enough, and easier to follow: the first, where there is a first.
            None => self.accesses.engine.ask(|| {
                let part = match self.part.domain()?.lexmin() {
                    Ok(first) => self.part.intersect_domain(&first)?,
                    Err(_) => self.part.clone(),
                };
                self.name_pairs(self.last_instances(&part)?)
            })?,
        };
        let point = pairs.point()?.ok_or_else(|| Unknown::from(Reason::Empty))?;
        let (from, to) = (self.vars_of(self.ends.0), self.vars_of(self.ends.1));
        let (first, rest) = point.values.split_at(from.len().min(point.values.len()));
        Ok((named_witness(from, first), named_witness(to, rest)))
    }

    fn vars_of(&self, entry: usize) -> &[Var] {
        &self.accesses.entries[entry].vars
    }
}

fn named_witness(vars: &[Var], values: &[(Var, i64)]) -> Witness {
    Witness { values: vars.iter().cloned().zip(values.iter().map(|(_, v)| *v)).collect() }
}
