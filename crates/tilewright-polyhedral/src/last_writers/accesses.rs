//! The loads and stores of a program as relations of the engine, over common symbolic sizes.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::{Expr, Var};

use super::statement::{AccessId, ScheduleDim, Statement};
use crate::answer::{Known, Reason, Unknown};
use crate::charged::{Ends, Map, Set as Raw, Source, last_writers};
use crate::domain::Domain;
use crate::domain::forgotten;
use crate::engine::Engine;
use crate::form::{Atom, Sum};
use crate::set::Set;

/// A load or store.
pub(super) struct Entry {
    pub id: AccessId,
    /// The variables of its statement.
    pub vars: Vec<Var>,
    /// From instances to cells.
    pub relation: Map,
    /// Why not all of these need happen.
    pub vague: Option<Unknown>,
    pub is_write: bool,
    pub buffer: usize,
    domain: Domain,
    schedule: Vec<ScheduleDim>,
    indices: Vec<Expr>,
    cells: OnceCell<Known<Raw>>,
    hull: OnceCell<Known<Hull>>,
    spans: Vec<OnceCell<Ends>>,
}

/// The ends on each axis.
type Hull = Vec<Ends>;

/// All accesses of a program.
pub(super) struct Accesses {
    pub engine: Engine,
    pub entries: Vec<Entry>,
    symbolic: Vec<Atom>,
    names: Vec<String>,
}

/// The last writes before a sink, among some sources: by source, the pairs of instances.
pub(super) struct LastWrites {
    /// Those that are certainly the last ones.
    pub certain: BTreeMap<usize, Map>,
    /// Those that may be.
    pub possible: BTreeMap<usize, Map>,
    /// What of the sink has no certain write before it.
    pub rest: Map,
}

impl Entry {
    /// The cells that are touched.
    pub fn cells(&self) -> Known<Raw> {
        self.cells.get_or_init(|| self.relation.range()?.compute_divs()?.coalesce()).clone()
    }

    /// Whether the boxes around what two accesses touch have nothing in common.
    pub fn is_far_from(&self, other: &Entry) -> Known<bool> {
        Ok(self
            .hull()?
            .iter()
            .zip(other.hull()?)
            .any(|(a, b)| is_below(a.1, b.0) || is_below(b.1, a.0)))
    }

    /// Whether this comes before another access of the same cell, or after it, each time. `None`
    /// where they take turns.
    ///
    /// Within a loop whose variable is an index of both on one axis, one cell belongs to one
    /// iteration. What only runs in the first iterations (an initialisation) is there before what
    /// runs from then on.
    pub fn when(&self, other: &Entry) -> Option<Ordering> {
        // Whether the loops so far have this at most, at least as far as the other.
        let (mut behind, mut ahead) = (true, true);
        for (a, b) in self.schedule.iter().zip(&other.schedule) {
            match (a, b) {
                (ScheduleDim::Sequence(a), ScheduleDim::Sequence(b)) if a == b => {}
                (ScheduleDim::Sequence(a), ScheduleDim::Sequence(b)) => {
                    let order = a.cmp(b);
                    let holds = if order == Ordering::Less { behind } else { ahead };
                    return holds.then_some(order);
                }
                (ScheduleDim::Loop(v), ScheduleDim::Loop(w))
                    if v == w && self.indexes_by(v, other) => {}
                (ScheduleDim::Loop(v), ScheduleDim::Loop(w)) if v == w => {
                    let (mine, theirs) = (self.span(v), other.span(v));
                    behind &= is_up_to(mine.1, theirs.0);
                    ahead &= is_up_to(theirs.1, mine.0);
                    if !behind && !ahead {
                        return None;
                    }
                }
                _ => return None,
            }
        }
        // In one instance, reads come before writes.
        let order = self.is_write.cmp(&other.is_write);
        let same = self.id.statement == other.id.statement;
        (same && behind && ahead && order.is_ne()).then_some(order)
    }

    fn indexes_by(&self, v: &Var, other: &Entry) -> bool {
        let mut axes = self.indices.iter().zip(&other.indices);
        axes.any(|(a, b)| a.as_var() == Some(v) && b.as_var() == Some(v))
    }

    /// The ends of a variable.
    fn span(&self, v: &Var) -> Ends {
        let Some(k) = self.vars.iter().position(|x| x == v) else { return (None, None) };
        let find = || self.relation.domain()?.ends(k);
        *self.spans[k].get_or_init(|| find().unwrap_or((None, None)))
    }

    /// A key for the order of the text.
    pub fn in_text(&self) -> impl Ord + use<> {
        (self.schedule.iter().map(sequence_number).collect::<Vec<i64>>(), self.id)
    }

    fn hull(&self) -> Known<&Hull> {
        self.hull
            .get_or_init(|| {
                let cells = self.relation.range()?;
                (0..cells.dims()).map(|k| cells.ends(k)).collect()
            })
            .as_ref()
            .map_err(Clone::clone)
    }
}

fn is_below(hi: Option<i64>, lo: Option<i64>) -> bool {
    hi.zip(lo).is_some_and(|(h, l)| h < l)
}

fn is_up_to(hi: Option<i64>, lo: Option<i64>) -> bool {
    hi.zip(lo).is_some_and(|(h, l)| h <= l)
}

fn sequence_number(t: &ScheduleDim) -> i64 {
    match t {
        ScheduleDim::Sequence(k) => *k,
        ScheduleDim::Loop(_) => 0,
    }
}

impl Accesses {
    pub fn collect(engine: &Engine, program: &[Statement]) -> Known<Accesses> {
        let mut prepared = Vec::new();
        let mut symbolic: BTreeSet<Atom> = BTreeSet::new();
        for s in program {
            let mut normalizer = s.domain.normalizer();
            let places: Vec<Vec<Sum>> = s
                .accesses
                .iter()
                .map(|t| t.indices.iter().map(|e| normalizer.sum(e)).collect())
                .collect::<Known<_>>()?;
            let d = s.domain.reach(|f| places.iter().flatten().for_each(|p| p.atoms(f)))?;
            let hidden = d.hidden();
            let outer = d.space.atoms[d.vars..].iter().filter(|a| !hidden.contains(a));
            symbolic.extend(outer.cloned());
            prepared.push((d, hidden, places));
        }
        let symbolic: Vec<Atom> = symbolic.into_iter().collect();
        let names = symbolic.iter().map(Atom::name).collect();
        let mut all = Accesses { engine: engine.clone(), entries: Vec::new(), symbolic, names };
        let mut buffers: Vec<(u64, usize)> = Vec::new();
        for (statement, (s, (d, hidden, places))) in program.iter().zip(&prepared).enumerate() {
            let vague = d.vague().or_else(|| forgotten(hidden));
            for (access, (t, place)) in s.accesses.iter().zip(places).enumerate() {
                let storage = t.buffer.data.id();
                let known = buffers.iter().position(|(b, _)| *b == storage);
                let buffer = known.unwrap_or(buffers.len());
                match known.and_then(|b| buffers.get(b)) {
                    Some((_, rank)) if *rank != place.len() => {
                        let what = format!("views of `{}` of different rank", t.buffer.name);
                        return Err(Reason::Mismatch(what).into());
                    }
                    Some(_) => {}
                    None => buffers.push((storage, place.len())),
                }
                all.entries.push(Entry {
                    id: AccessId { statement, access },
                    vars: d.vars().cloned().collect(),
                    relation: all.relation(d, place, d.set()?)?,
                    vague: vague.clone(),
                    is_write: t.is_write,
                    buffer,
                    domain: d.clone(),
                    schedule: s.schedule.clone(),
                    indices: t.indices.clone(),
                    cells: OnceCell::new(),
                    hull: OnceCell::new(),
                    spans: vec![OnceCell::new(); d.vars],
                });
            }
        }
        Ok(all)
    }

    /// Which of some sources writes last before a sink, in the order of the schedules. `wanted` is the
    /// part of the sink that is asked about.
    pub fn last_writes(&self, sink: usize, wanted: &Map, sources: &[usize]) -> Known<LastWrites> {
        let takes_part: Vec<usize> = [sink].into_iter().chain(sources.iter().copied()).collect();
        let times = self.times(&takes_part)?;
        let writes = sources.iter().copied().zip(&times[1..]).map(|(k, time)| {
            let entry: &Entry = &self.entries[k];
            Source { cells: &entry.relation, time, is_certain: entry.vague.is_none() }
        });
        let last = last_writers(wanted, &times[0], &writes.collect::<Vec<_>>())?;
        Ok(LastWrites {
            certain: by_writer(sources, last.certain)?,
            possible: by_writer(sources, last.possible)?,
            rest: last.rest,
        })
    }

    /// When instances of some accesses happen: times that can be compared, of any values of the
    /// variables, since domains of several parts would be multiplied with those of the accesses.
    fn times(&self, accesses: &[usize]) -> Known<Vec<Map>> {
        let entries = || accesses.iter().map(|k| &self.entries[*k]);
        let length = entries().map(|e| e.schedule.len()).max().unwrap_or(0);
        entries()
            .map(|entry| {
                let times = entry.schedule.iter().map(|step| match step {
                    ScheduleDim::Sequence(k) => Sum::constant(i128::from(*k)),
                    ScheduleDim::Loop(v) => Sum::var(v),
                });
                let mut times: Vec<Sum> = times.collect();
                times.resize(length, Sum::default());
                times.push(Sum::constant(i128::from(entry.is_write)));
                self.relation(&entry.domain, &times, entry.domain.space.universe())
            })
            .collect()
    }

    /// The relation from some points of a domain's space to sums, with the symbolic sizes as parameters
    /// in their common order. What is not affine and varies is eliminated.
    fn relation(&self, d: &Domain, sums: &[Sum], points: Raw) -> Known<Map> {
        let n = d.space.len();
        let mut map = d.space.graph(sums)?.intersect_domain(&points)?;
        // The symbolic sizes that this domain does not mention have any value.
        let mut place: Vec<Option<usize>> =
            self.symbolic.iter().map(|a| d.space.position(a)).collect();
        let mut total = n;
        for at in place.iter_mut().filter(|p| p.is_none()) {
            map = map.insert_inputs(total, 1);
            *at = Some(total);
            total += 1;
        }
        // Each symbolic size in turn becomes the next parameter; what is behind it moves up.
        let mut left: Vec<usize> = (0..total).collect();
        for (k, at) in place.iter().enumerate() {
            let Some(now) = left.iter().position(|x| Some(*x) == *at) else { continue };
            left.remove(now);
            map = map.input_to_param(now, k, &self.names[k]);
        }
        map.project_out_inputs(d.vars, left.len() - d.vars)
    }

    /// A set of the analysis as one over variables. Its parameters may come in any order.
    pub fn set(&self, vars: &[Var], raw: Raw, vague: Option<Unknown>) -> Known<Set> {
        let names = raw.param_names()?;
        let raw = raw.params_to_dims(vars.len());
        let mut atoms: Vec<Atom> = vars.iter().map(Atom::var).collect();
        for name in &names {
            let known = self.names.iter().position(|x| x == name);
            let atom = known.and_then(|k| self.symbolic.get(k));
            atoms.push(
                atom.ok_or_else(|| {
                    Unknown::from(Reason::Engine(format!("unknown parameter {name}")))
                })?
                .clone(),
            );
        }
        let points = Domain::of_raw(&self.engine, atoms, vars.len(), raw);
        Ok(Set { points: points.blurred(vague) })
    }
}

/// The relations that have a pair, by the numbers of their writers.
fn by_writer(writers: &[usize], maps: Vec<Map>) -> Known<BTreeMap<usize, Map>> {
    let mut out = BTreeMap::new();
    for (writer, map) in writers.iter().zip(maps) {
        if !map.is_empty()? {
            out.insert(*writer, map);
        }
    }
    Ok(out)
}
