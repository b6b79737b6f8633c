//! Who wrote what I read: exact last-writer flow.
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
//! (Feautrier 1991, "Dataflow analysis of array and scalar references", as implemented by isl's
//! `isl_union_access_info`). From it follow the reads that see no write, and the writes that no
//! read sees. What is observable at the end is a read like any other: [`Statement::observe`].
//!
//! A write whose place or condition is not affine *may* happen: it can be the source of a read and
//! ends no earlier one. A read whose place is not affine may read any cell that is not excluded.
//!
//! **Limits.** Buffers are told apart by the identity of their pointer. Two views of one memory
//! with different shapes must be given as one buffer. A pair of schedules that are equal has no
//! order: neither instance is the other's source.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;

use tilewright_ir::{Buffer, Expr, Range, Var};

use crate::answer::{Known, Reason, Unknown, Witness, not_affine};
use crate::domain::Domain;
use crate::engine::Engine;
use crate::form::{Atom, Sum};
use crate::former::Former;
use crate::frame::Frame;
use crate::isl::api::{IN, PARAM, SET};
use crate::isl::{Map, Set as Raw, UnionMap};
use crate::set::Set;

/// One component of a schedule vector.
#[derive(Clone, Debug)]
pub enum Time {
    /// The place among the statements of a sequence.
    At(i64),
    /// The iteration of a loop.
    Loop(Var),
}

/// A load or store of a statement.
#[derive(Clone, Debug)]
pub struct Touch {
    /// What is accessed.
    pub buffer: Buffer,
    /// Where, over the statement's variables.
    pub indices: Vec<Expr>,
    /// Whether it is a store.
    pub is_write: bool,
}

/// A statement with the points at which it runs.
#[derive(Clone)]
pub struct Statement {
    /// The points, over the loops around the statement.
    pub domain: Domain,
    /// When it runs.
    pub schedule: Vec<Time>,
    /// What it reads and writes.
    pub touches: Vec<Touch>,
}

/// An access: the statement's number, and the access's number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessId {
    /// Which statement.
    pub statement: usize,
    /// Which of its touches.
    pub touch: usize,
}

impl Statement {
    /// A statement without accesses.
    pub fn new(domain: &Domain, schedule: Vec<Time>) -> Statement {
        Statement { domain: domain.clone(), schedule, touches: Vec::new() }
    }

    /// With a load.
    pub fn reads(mut self, buffer: &Buffer, indices: &[Expr]) -> Statement {
        let (buffer, indices) = (buffer.clone(), indices.to_vec());
        self.touches.push(Touch { buffer, indices, is_write: false });
        self
    }

    /// With a store.
    pub fn writes(mut self, buffer: &Buffer, indices: &[Expr]) -> Statement {
        let (buffer, indices) = (buffer.clone(), indices.to_vec());
        self.touches.push(Touch { buffer, indices, is_write: true });
        self
    }

    /// A statement that reads every cell of a buffer, in place `at` of the outermost sequence. The
    /// variables are fresh and named after the axes: `B0`, `B1`.
    pub fn observe(engine: &Engine, buffer: &Buffer, at: i64) -> Statement {
        let ranges: Vec<(Var, Range)> = (buffer.shape.iter().enumerate())
            .map(|(k, extent)| {
                let var = Var::new(format!("{}{k}", buffer.name), extent.dtype());
                (var, Range::upto(extent.clone()))
            })
            .collect();
        let indices: Vec<Expr> = ranges.iter().map(|(v, _)| v.expr()).collect();
        let mut schedule = vec![Time::At(at)];
        schedule.extend(ranges.iter().map(|(v, _)| Time::Loop(v.clone())));
        let domain = engine.domain_of(&ranges, &[]);
        Statement::new(&domain, schedule).reads(buffer, &indices)
    }
}

/// A write that a read gets its value from, with the pairs of instances.
#[derive(Clone)]
pub struct Edge {
    /// The write.
    pub writer: AccessId,
    /// The read.
    pub reader: AccessId,
    /// Whether the write is certainly the last one before the read.
    pub certain: bool,
    /// The pairs: the writer's variables, then the reader's. Variables of the reader that are also
    /// the writer's are renamed.
    pub pairs: Set,
    /// Number of the writer's variables.
    split: usize,
    writer_vars: Vec<Var>,
    reader_vars: Vec<Var>,
}

impl Edge {
    /// A pair of instances, in the variables of their statements.
    pub fn witness(&self) -> Known<(Witness, Witness)> {
        let point = self.pairs.point()?.ok_or_else(|| Unknown::from(Reason::Empty))?;
        let named = |vars: &[Var], values: &[(Var, i64)]| Witness {
            values: vars.iter().cloned().zip(values.iter().map(|(_, v)| *v)).collect(),
        };
        let (first, rest) = point.values.split_at(self.split.min(point.values.len()));
        Ok((named(&self.writer_vars, first), named(&self.reader_vars, rest)))
    }
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

/// A write that nobody reads.
#[derive(Clone)]
pub struct DeadWrite {
    /// The write.
    pub writer: AccessId,
    /// Whether no instance is read.
    pub entirely: bool,
    /// The instances that are not read, over the statement's variables.
    pub instances: Set,
}

/// The result of the analysis.
#[derive(Clone)]
pub struct Flow {
    /// The value of each read, in the order of writers and readers.
    pub edges: Vec<Edge>,
    /// Reads without a certain write before them.
    pub uninitialised: Vec<Uninitialised>,
    /// Writes whose value is never read.
    pub dead: Vec<DeadWrite>,
}

/// An access brought into the engine.
struct Entry {
    id: AccessId,
    vars: Vec<Var>,
    /// The instances, without a name.
    instances: Raw,
    vague: Option<Unknown>,
    is_write: bool,
}

/// What every relation of one analysis has in common.
struct Common {
    engine: Engine,
    symbolic: Vec<Atom>,
    names: Vec<String>,
}

impl Flow {
    /// Analyses a program. Its statements may come in any order.
    pub fn compute(engine: &Engine, program: &[Statement]) -> Known<Flow> {
        engine.ask(|| analyse(engine, program))
    }

    /// The edges that end in a read.
    pub fn sources(&self, reader: AccessId) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |e| e.reader == reader)
    }
}

fn analyse(engine: &Engine, program: &[Statement]) -> Known<Flow> {
    let mut prepared = Vec::new();
    let mut symbolic: BTreeSet<Atom> = BTreeSet::new();
    for s in program {
        let mut former = Former::default();
        let mut places = Vec::new();
        for t in &s.touches {
            places.push(t.indices.iter().map(|e| former.sum(e)).collect::<Known<Vec<Sum>>>()?);
        }
        let d = s.domain.reach(|f| places.iter().flatten().for_each(|p| p.atoms(f)))?;
        let hidden = d.hidden();
        symbolic.extend(d.frame.atoms[d.vars..].iter().filter(|a| !hidden.contains(a)).cloned());
        prepared.push((d, hidden, places));
    }
    let symbolic: Vec<Atom> = symbolic.into_iter().collect();
    let names = symbolic.iter().map(Atom::name).collect();
    let common = Common { engine: engine.clone(), symbolic, names };

    let length = program.iter().map(|s| s.schedule.len()).max().unwrap_or(0);
    let mut buffers: Vec<(u64, usize)> = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    let mut schedule = common.nothing()?;
    let (mut reads, mut must, mut may) = (common.nothing()?, common.nothing()?, common.nothing()?);
    for (statement, (s, (d, hidden, places))) in program.iter().zip(&prepared).enumerate() {
        let vague = match d.vague() {
            Some(why) => Some(why.clone()),
            None if hidden.is_empty() => None,
            None => Some(not_affine(hidden.iter().map(Atom::expr))),
        };
        let instances = common.relation(d, &[])?.domain()?;
        let mut times = Vec::new();
        for step in &s.schedule {
            times.push(match step {
                Time::At(k) => Sum::constant(i128::from(*k)),
                Time::Loop(v) => Sum::var(v),
            });
        }
        times.resize(length, Sum::default());
        for (touch, (t, place)) in s.touches.iter().zip(places).enumerate() {
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
            let here = label('A', entries.len());
            let map = common.relation(d, place)?.set_tuple(IN, &here)?;
            let map = map.set_tuple(SET, &label('B', buffer))?;
            let mut when = times.clone();
            when.push(Sum::constant(i128::from(t.is_write)));
            let time = common.relation(d, &when)?.set_tuple(IN, &here)?;
            schedule = schedule.union(time.union_map()?)?;
            let into = match (t.is_write, &vague) {
                (false, _) => &mut reads,
                (true, None) => &mut must,
                (true, Some(_)) => &mut may,
            };
            *into = into.clone().union(map.union_map()?)?;
            entries.push(Entry {
                id: AccessId { statement, touch },
                vars: d.vars().cloned().collect(),
                instances: instances.clone(),
                vague: vague.clone(),
                is_write: t.is_write,
            });
        }
    }
    let info = reads.sink()?.must_source(must)?.may_source(may)?.schedule(schedule)?;
    let flow = info.flow()?;

    let certain = common.by_ends(&flow.must()?)?;
    let all = common.by_ends(&flow.may()?)?;
    let mut edges = Vec::new();
    let mut used: BTreeMap<usize, Raw> = BTreeMap::new();
    for ((w, r), map) in &all {
        let (Some(writer), Some(reader)) = (entries.get(*w), entries.get(*r)) else { continue };
        let from = map.clone().domain()?.reset_tuple()?;
        let seen = match used.remove(w) {
            Some(before) => before.union(from)?,
            None => from,
        };
        used.insert(*w, seen);
        let is_certain = match certain.get(&(*w, *r)) {
            Some(c) => map.is_subset(c)? && writer.vague.is_none() && reader.vague.is_none(),
            None => false,
        };
        edges.push(common.edge(writer, reader, map, is_certain)?);
    }
    let mut uninitialised = Vec::new();
    for map in flow.may_no_source()?.list()? {
        let Some(r) = map.tuple(IN).and_then(|n| number(&n)) else { continue };
        let Some(reader) = entries.get(r) else { continue };
        let instances = map.domain()?.reset_tuple()?;
        if instances.is_empty()? {
            continue;
        }
        let possible = edges.iter().any(|e| e.reader == reader.id && !e.certain);
        let certain = reader.vague.is_none() && !possible;
        let instances = common.set(&reader.vars, instances, reader.vague.clone())?;
        uninitialised.push(Uninitialised { reader: reader.id, certain, instances });
    }
    let mut dead = Vec::new();
    for (k, writer) in entries.iter().enumerate().filter(|(_, e)| e.is_write) {
        let unread = match used.get(&k) {
            Some(seen) => writer.instances.clone().subtract(seen.clone())?,
            None => writer.instances.clone(),
        };
        if unread.is_empty()? {
            continue;
        }
        let entirely = !used.contains_key(&k);
        let instances = common.set(&writer.vars, unread.coalesce()?, writer.vague.clone())?;
        dead.push(DeadWrite { writer: writer.id, entirely, instances });
    }
    uninitialised.sort_by_key(|u| u.reader);
    Ok(Flow { edges, uninitialised, dead })
}

fn label(kind: char, number: usize) -> CString {
    CString::new(format!("{kind}{number}")).unwrap_or_default()
}

fn number(name: &str) -> Option<usize> {
    name.get(1..)?.parse().ok()
}

impl Common {
    fn nothing(&self) -> Known<UnionMap> {
        let names = self.names.iter().map(String::as_str);
        self.engine.ctx.space(names, 0)?.empty_union()
    }

    /// The relation from the points of a domain to sums, with the symbolic sizes as parameters in
    /// their common order. What is not affine and varies is eliminated.
    fn relation(&self, d: &Domain, sums: &[Sum]) -> Known<Map> {
        let n = d.frame.len();
        let mut map = d.frame.graph(sums)?.on_domain(d.set.clone())?;
        // The symbolic sizes that this domain does not mention have any value.
        let mut place: Vec<Option<usize>> =
            self.symbolic.iter().map(|a| d.frame.position(a)).collect();
        let mut total = n;
        for at in place.iter_mut().filter(|p| p.is_none()) {
            map = map.insert_dims(IN, total as u32, 1)?;
            *at = Some(total);
            total += 1;
        }
        // Each symbolic size in turn becomes the next parameter; what is behind it moves up.
        let mut left: Vec<usize> = (0..total).collect();
        for (k, at) in place.iter().enumerate() {
            let Some(now) = left.iter().position(|x| Some(*x) == *at) else { continue };
            left.remove(now);
            map = map.move_dims(PARAM, k as u32, IN, now as u32, 1)?;
        }
        for (k, name) in self.names.iter().enumerate() {
            map = map.name_param(k, name)?;
        }
        map.project_out(IN, d.vars as u32, (left.len() - d.vars) as u32)
    }

    /// A set of the analysis as one over variables. Its parameters may come in any order.
    fn set(&self, vars: &[Var], raw: Raw, vague: Option<Unknown>) -> Known<Set> {
        let names = raw.param_names()?;
        let (dims, n) = (vars.len() as u32, names.len() as u32);
        let raw = raw.move_dims(SET, dims, PARAM, 0, n)?;
        let mut atoms: Vec<Atom> = vars.iter().map(Atom::var).collect();
        for name in &names {
            let known = self.names.iter().position(|x| x == name);
            let atom = known.and_then(|k| self.symbolic.get(k));
            let lost = || Unknown::from(Reason::Engine(format!("unknown parameter {name}")));
            atoms.push(atom.ok_or_else(lost)?.clone());
        }
        let frame = Frame::new(&self.engine.ctx, atoms)?;
        let engine = self.engine.clone();
        Ok(Set { engine, frame: frame.into(), dims: vars.len(), raw, vague })
    }

    /// The relations by the numbers of their ends.
    fn by_ends(&self, union: &UnionMap) -> Known<BTreeMap<(usize, usize), Map>> {
        let mut out = BTreeMap::new();
        for map in union.list()? {
            let end = |kind| map.tuple(kind).and_then(|n| number(&n));
            if let (Some(from), Some(to)) = (end(IN), end(SET))
                && !map.is_empty()?
            {
                out.insert((from, to), map);
            }
        }
        Ok(out)
    }

    fn edge(&self, writer: &Entry, reader: &Entry, map: &Map, certain: bool) -> Known<Edge> {
        let rename = |v: &Var| if writer.vars.contains(v) { v.fresh() } else { v.clone() };
        let vars: Vec<Var> =
            writer.vars.iter().cloned().chain(reader.vars.iter().map(rename)).collect();
        let vague = writer.vague.clone().or_else(|| reader.vague.clone());
        let pairs = self.set(&vars, map.clone().coalesce()?.wrap()?.flatten()?, vague)?;
        Ok(Edge {
            writer: writer.id,
            reader: reader.id,
            certain,
            pairs,
            split: writer.vars.len(),
            writer_vars: writer.vars.clone(),
            reader_vars: reader.vars.clone(),
        })
    }
}
