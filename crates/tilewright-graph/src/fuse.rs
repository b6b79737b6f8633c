//! Fusion: calls whose results only feed one other call become part of that call's function.
//!
//! Calls are collected into *groups*, from the last call to the first. Each group has one *sink*,
//! whose result leaves the group; a call joins the group of its readers if all of them are in that
//! one group and nothing else, the function's result included, needs its value. So every path from
//! a member ends in the sink without leaving the group: groups are convex, and no cycle can arise.
//!
//! What a member is read at, seen from the loops in which it will be computed, is its *frame*:
//! the sink's own cell (the first frame), some other cell that is read once (a frame of its own),
//! or many cells.
//!
//! * A map in some frame costs nothing extra: each of its cells is computed once.
//! * A map that is read at many cells joins only if it just moves data.
//! * A source (contraction, pooling, softmax) joins only in the first frame, one a group: the
//!   result is a reduction with one elementwise stage behind it, which the scheduler computes from
//!   registers. Maps that follow a source stay with it rather than join what comes after.
//! * A source may be the sink. A map before a source joins where the source reads each cell once;
//!   that opens a frame inside of the source.
//! * A view is free and stays one, unless that would part two maps.
//! * A constant of one number is a literal of the function, unless groups that share the function have
//!   different ones: vectors of it then need no load in the innermost loops.
//!
//! The work is linear in the number of calls and arguments; groups are bounded.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{Binding, GraphExpr, GraphFunc, GraphVar, Module, Result};
use tilewright_transform::pass::{Pass, Run};

use crate::call_sizes::fits;
use crate::classify::{Facts, Loops, Role};
use crate::functions::Functions;
use crate::merge::{Member, Source, joined_name, merge};
use crate::normal::{changed_graphs, needed, one_block, var};

/// `fuse` by name.
pub const PASS: Pass = Pass {
    name: "fuse",
    summary: "join elementwise work with the functions that make its operands",
    options: &[],
    run: Run::Module(|module, _, _| fuse(module)),
};

/// A group's final value has at most this many nodes, so that compilation stays fast and kernels
/// stay in the instruction cache.
const MAX_NODES: usize = 256;

/// A group has at most this many members.
const MAX_MEMBERS: usize = 48;

/// Fuses calls in every graph function, and inlines the spatial stages of every called function.
/// Functions that are no longer called go; equal ones are shared. Graph functions in which something
/// changes come back in normal form.
///
/// # Errors
/// Those of [`normalize`](crate::normal::normalize).
pub fn fuse(module: &Module) -> Result<Module> {
    let mut fuser = Fuser::new(module);
    let graphs = changed_graphs(module, |_, normal| fuser.graph(normal))?;
    let Fuser { functions, facts, .. } = fuser;
    Ok(functions.finish(&graphs, |name, f| match facts.get(name) {
        Some(Some(facts)) => facts.func.clone(),
        _ => f.clone(),
    }))
}

/// Position in [`Group::frames`], or [`MANY`].
type Frame = usize;

/// The sink's own cell.
const FIRST: Frame = 0;

/// More than one cell, or one cell more than once.
const MANY: Frame = usize::MAX;

/// Which calls of a graph function become one kernel when they are fused.
pub struct Kernels {
    /// By the value of a call, that which its kernel leaves in memory.
    results: HashMap<u64, u64>,
    /// The values that only a reduction of their kernel reads.
    reduced: HashSet<u64>,
    /// The values of calls that read nothing that their kernel makes, less the first of each kernel.
    further: HashSet<u64>,
}

impl Kernels {
    /// The kernels of a graph function in normal form, whose functions are those of a module.
    pub fn collect(module: &Module, func: &GraphFunc) -> Kernels {
        let mut fuser = Fuser::new(module);
        let Grouped { nodes, groups, .. } = fuser.grouped(func);
        let results = nodes.iter().filter_map(|n| {
            let sink = groups[n.group].members.first()?;
            Some((n.binding.var.id(), nodes[*sink].binding.var.id()))
        });
        let results: HashMap<u64, u64> = results.collect();
        let reduced = nodes
            .iter()
            .filter(|n| {
                results.get(&n.binding.var.id()) != Some(&n.binding.var.id())
                    && n.readers.iter().all(|reader| {
                        reader
                            .is_some_and(|(k, _)| nodes[k].group == n.group && is_source(&nodes[k]))
                    })
            })
            .map(|n| n.binding.var.id())
            .collect();
        let mut kernels = Kernels { results, reduced, further: HashSet::default() };
        let mut begun = HashSet::default();
        let further = func
            .bindings()
            .filter(|b| {
                let begins =
                    kernels.results.contains_key(&b.var.id()) && !kernels.joined(b).contains(&true);
                begins && !begun.insert(kernels.of_call(b))
            })
            .map(|b| b.var.id())
            .collect();
        kernels.further = further;
        kernels
    }

    /// Whether only a reduction of its kernel reads the value of a call.
    pub fn is_reduced(&self, b: &Binding) -> bool {
        self.reduced.contains(&b.var.id())
    }

    /// Whether a call reads nothing that its kernel makes, and another one began the kernel.
    pub fn is_further(&self, b: &Binding) -> bool {
        self.further.contains(&b.var.id())
    }

    /// The id of the value that the kernel of a call leaves in memory.
    pub fn of_call(&self, b: &Binding) -> u64 {
        self.results.get(&b.var.id()).copied().unwrap_or(b.var.id())
    }

    /// Whether a call makes the result of its kernel.
    pub fn is_result(&self, b: &Binding) -> bool {
        self.of_call(b) == b.var.id()
    }

    /// Whether a call becomes a kernel of its own.
    pub fn is_alone(&self, b: &Binding) -> bool {
        let id = b.var.id();
        self.results.get(&id) == Some(&id)
            && self.results.values().filter(|of| **of == id).count() == 1
    }

    /// For each argument of a call, whether the same kernel makes it.
    pub fn joined(&self, b: &Binding) -> Vec<bool> {
        let GraphExpr::CallTir { args, .. } = &b.value else { return Vec::new() };
        let own = self.results.get(&b.var.id());
        args.iter()
            .map(|arg| own.is_some() && var(arg).is_some_and(|v| self.results.get(&v.id()) == own))
            .collect()
    }
}

fn is_source(n: &Node) -> bool {
    n.facts.as_ref().is_some_and(|f| matches!(f.role, Role::Source { .. }))
}

struct Group {
    /// Positions of the members, last first; the sink is the first.
    members: Vec<usize>,
    /// No call may join.
    closed: bool,
    has_source: bool,
    nodes: usize,
    frames: Vec<Loops>,
}

/// How a call joins a group.
enum Join {
    In(Frame),
    New(Loops),
}

/// A call and its surroundings.
struct Node<'f> {
    binding: &'f Binding,
    /// The function's facts, for calls that may be fused.
    facts: Option<Arc<Facts>>,
    /// The readers of the result: each a call and the argument's position; `None` for a reader
    /// that is not a call that may be fused.
    readers: Vec<Option<(usize, usize)>>,
    group: usize,
    frame: Frame,
    /// All that some source computes comes through here, cell by cell.
    after_source: bool,
}

/// The calls of a graph function in groups.
struct Grouped<'f> {
    nodes: Vec<Node<'f>>,
    groups: Vec<Group>,
    /// The positions of calls by their values.
    index: HashMap<u64, usize>,
}

struct Fuser<'m> {
    functions: Functions<'m>,
    facts: HashMap<Arc<str>, Option<Arc<Facts>>>,
    /// Groups that were merged: the functions and how they are wired.
    by_key: HashMap<String, Arc<str>>,
}

impl<'m> Fuser<'m> {
    fn new(module: &'m Module) -> Fuser<'m> {
        let functions = Functions::new(module);
        Fuser { functions, facts: HashMap::default(), by_key: HashMap::default() }
    }

    fn facts(&mut self, name: &Arc<str>) -> Option<Arc<Facts>> {
        if let Some(facts) = self.facts.get(name) {
            return facts.clone();
        }
        let facts = self.functions.get(name).and_then(Facts::analyse).map(Arc::new);
        self.facts.insert(name.clone(), facts.clone());
        facts
    }

    /// The facts of a call with one result, whose types and sizes are those of the function.
    fn call_facts(&mut self, value: &GraphExpr) -> Option<Arc<Facts>> {
        let GraphExpr::CallTir { func, outs, .. } = value else { return None };
        let facts = self.facts(func)?;
        // An open size has the same variable in all functions that are merged.
        (outs.len() == 1 && fits(&facts.func, value)).then_some(facts)
    }

    fn graph(&mut self, func: &GraphFunc) -> Result<GraphFunc> {
        let Grouped { nodes, groups, index } = self.grouped(func);
        self.rewrite(func, &nodes, &groups, &index)
    }

    fn grouped<'f>(&mut self, func: &'f GraphFunc) -> Grouped<'f> {
        let bindings: Vec<&Binding> = func.bindings().collect();
        let index: HashMap<u64, usize> =
            bindings.iter().enumerate().map(|(n, b)| (b.var.id(), n)).collect();
        let mut nodes: Vec<Node> = bindings
            .iter()
            .map(|binding| Node {
                binding,
                facts: self.call_facts(&binding.value),
                readers: Vec::new(),
                group: usize::MAX,
                frame: FIRST,
                after_source: false,
            })
            .collect();
        for n in 0..nodes.len() {
            let fused = nodes[n].facts.is_some();
            match (&bindings[n].value, fused) {
                (GraphExpr::CallTir { args, .. }, true) => {
                    for (k, arg) in args.iter().enumerate() {
                        if let GraphExpr::Var(v) = arg
                            && let Some(p) = index.get(&v.id())
                        {
                            nodes[*p].readers.push(Some((n, k)));
                        }
                    }
                }
                (value, _) => needed(value, &mut |v| add_outside_reader(&mut nodes, v, &index)),
            }
        }
        needed(&func.ret, &mut |v| add_outside_reader(&mut nodes, v, &index));
        mark_after_source(&mut nodes, &index);
        let groups = collect(&mut nodes, &index);
        Grouped { nodes, groups, index }
    }

    /// The graph function with one call a group, where the sink stood.
    fn rewrite(
        &mut self,
        func: &GraphFunc,
        nodes: &[Node],
        groups: &[Group],
        index: &HashMap<u64, usize>,
    ) -> Result<GraphFunc> {
        // What is merged, by its sink; and the number that every group which is wired in the same way
        // has as an argument, so that no function is made twice for the sake of it.
        let mut wired: HashMap<usize, Wired> = HashMap::default();
        let mut shared: HashMap<String, Vec<Option<u64>>> = HashMap::default();
        for group in groups.iter().filter(|g| g.members.len() > 1) {
            let Some(found) = Wired::wire(nodes, group, index) else { continue };
            let literals: Vec<Option<u64>> = found.args.iter().map(literal).collect();
            match shared.entry(found.key.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(literals);
                }
                Entry::Occupied(mut entry) => {
                    let both = entry.get_mut().iter_mut().zip(literals);
                    both.filter(|(old, new)| **old != *new).for_each(|(old, _)| *old = None);
                }
            }
            wired.insert(group.members[0], found);
        }
        let mut bindings = Vec::new();
        for (n, node) in nodes.iter().enumerate() {
            let group = &groups[node.group];
            let Some(&sink) = group.members.first() else { continue };
            if sink != n {
                continue;
            }
            let value = match wired.remove(&n) {
                None => node.binding.value.clone(),
                Some(found) => {
                    let literals = shared.get(&found.key).map_or(&[][..], Vec::as_slice);
                    self.merged_call(found.with_literals(literals), &node.binding.value)?
                }
            };
            bindings.push(Binding { value, ..node.binding.clone() });
        }
        Ok(one_block(func, bindings, func.ret.clone()))
    }

    /// The call that does what a group's calls do, of which `sink` is the last.
    fn merged_call(&mut self, wired: Wired, sink: &GraphExpr) -> Result<GraphExpr> {
        let Wired { args, members, names, key } = wired;
        let outs = match sink {
            GraphExpr::CallTir { outs, .. } => outs.clone(),
            _ => Vec::new(),
        };
        let func = match self.by_key.get(&key) {
            Some(name) => name.clone(),
            None => {
                let names: Vec<&str> = names.iter().map(|n| &**n).collect();
                let name = self.functions.add(merge(&members, args.len()), &joined_name(&names));
                self.by_key.insert(key, name.clone());
                name
            }
        };
        // Members with scalars that are no sizes are not merged.
        self.functions.call(func, args, outs)
    }
}

fn add_outside_reader(nodes: &mut [Node], v: &GraphVar, index: &HashMap<u64, usize>) {
    if let Some(p) = index.get(&v.id()) {
        nodes[*p].readers.push(None);
    }
}

/// The finite floating-point number that is all a constant holds. Integers stay arguments: products
/// of integers are recognised by the zero points that they load.
fn literal(arg: &GraphExpr) -> Option<u64> {
    let GraphExpr::Const(t) = arg else { return None };
    let one = t.len() == 1 && t.dtype().is_float();
    one.then(|| t.get_f64(0)).filter(|v| v.is_finite()).map(f64::to_bits)
}

/// What a group's calls are merged from.
struct Wired {
    /// What comes from outside.
    args: Vec<GraphExpr>,
    members: Vec<Member>,
    /// The names of the members' functions.
    names: Vec<Arc<str>>,
    /// The same for groups of the same functions that are wired in the same way.
    key: String,
}

impl Wired {
    /// How a group is wired; `None` where a member is no call that may be merged.
    fn wire(nodes: &[Node], group: &Group, index: &HashMap<u64, usize>) -> Option<Wired> {
        let order: Vec<usize> = group.members.iter().rev().copied().collect();
        let place: HashMap<usize, usize> = order.iter().enumerate().map(|(k, n)| (*n, k)).collect();
        let mut args: Vec<GraphExpr> = Vec::new();
        let mut params: HashMap<u64, usize> = HashMap::default();
        let mut members: Vec<Member> = Vec::new();
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut key = String::new();
        for &n in &order {
            let (GraphExpr::CallTir { func, args: given, .. }, Some(facts)) =
                (&nodes[n].binding.value, &nodes[n].facts)
            else {
                return None;
            };
            let sources: Vec<Source> = given
                .iter()
                .map(|arg| {
                    let known = var(arg).map(GraphVar::id);
                    let inner = known.and_then(|v| index.get(&v)).and_then(|p| place.get(p));
                    if let Some(member) = inner {
                        return Source::Member(*member);
                    }
                    if let Some(param) = known.and_then(|v| params.get(&v)) {
                        return Source::Param(*param);
                    }
                    args.push(arg.clone());
                    known.map(|v| params.insert(v, args.len() - 1));
                    Source::Param(args.len() - 1)
                })
                .collect();
            key.push_str(&format!("{func:?}{sources:?};"));
            names.push(func.clone());
            members.push(Member { func: facts.func.clone(), sources });
        }
        Some(Wired { args, members, names, key })
    }

    /// The same with some arguments as literals of the function.
    fn with_literals(self, literals: &[Option<u64>]) -> Wired {
        if (0..self.args.len()).all(|p| known_literal(p, literals).is_none()) {
            return self;
        }
        let Wired { args, mut members, names, key } = self;
        for source in members.iter_mut().flat_map(|m| &mut m.sources) {
            if let Source::Param(p) = *source {
                *source = match known_literal(p, literals) {
                    Some(bits) => Source::Literal(bits),
                    None => Source::Param(
                        (0..p).filter(|before| known_literal(*before, literals).is_none()).count(),
                    ),
                };
            }
        }
        let args =
            args.into_iter().enumerate().filter(|(p, _)| known_literal(*p, literals).is_none());
        let args = args.map(|(_, arg)| arg).collect();
        Wired { args, members, names, key: format!("{key}{literals:?}") }
    }
}

fn known_literal(p: usize, literals: &[Option<u64>]) -> Option<u64> {
    literals.get(p).copied().flatten()
}

/// Marks the calls through which everything that a source computes has to go, cell by cell.
///
/// The maps that are reached from a source make up its *region*. As long as some reader of a value
/// in the region has not been met, the region is open; a reader that does not read cell by cell
/// is never met. A map at which the region is closed has all of the source's result behind it.
fn mark_after_source(nodes: &mut [Node], index: &HashMap<u64, usize>) {
    let mut region: Vec<Option<usize>> = vec![None; nodes.len()];
    // Readers that have not been met, by the region's source.
    let mut open: Vec<usize> = vec![0; nodes.len()];
    for n in 0..nodes.len() {
        let (GraphExpr::CallTir { args, .. }, Some(facts)) =
            (&nodes[n].binding.value, nodes[n].facts.as_deref())
        else {
            continue;
        };
        let (source, closed) = match &facts.role {
            Role::Source { .. } => (Some(n), true),
            Role::Map { reads, .. } => {
                let mut sources: Vec<usize> = Vec::new();
                for (arg, reads) in args.iter().zip(reads) {
                    let from = var(arg).and_then(|v| region[*index.get(&v.id())?]);
                    if let Some(source) = from
                        && reads.iter().all(|own_cell| *own_cell)
                    {
                        open[source] -= 1;
                        sources.push(source);
                    }
                }
                let closed = sources.iter().find(|s| open[**s] == 0).copied();
                (closed.or(sources.first().copied()), closed.is_some())
            }
        };
        if let Some(source) = source {
            open[source] += nodes[n].readers.len();
        }
        (region[n], nodes[n].after_source) = (source, closed);
    }
}

/// Puts every node into a group.
fn collect(nodes: &mut [Node], index: &HashMap<u64, usize>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for n in (0..nodes.len()).rev() {
        if let Some((group, place)) = joins(nodes, &groups, index, n) {
            let g = &mut groups[group];
            if let Some(facts) = &nodes[n].facts {
                g.nodes += facts.nodes;
                g.has_source |= matches!(facts.role, Role::Source { .. });
            }
            g.members.push(n);
            nodes[n].group = group;
            nodes[n].frame = match place {
                Join::In(frame) => frame,
                Join::New(loops) => {
                    g.frames.push(loops);
                    g.frames.len() - 1
                }
            };
            continue;
        }
        let facts = nodes[n].facts.as_deref();
        nodes[n].group = groups.len();
        groups.push(Group {
            members: vec![n],
            closed: facts.is_none_or(|f| matches!(f.role, Role::Map { view: true, .. })),
            has_source: facts.is_some_and(|f| matches!(f.role, Role::Source { .. })),
            nodes: facts.map_or(0, |f| f.nodes),
            frames: vec![Loops { cells: facts.map_or(0, |f| f.cells), reduction: false }],
        });
    }
    groups
}

/// The group that node `n` joins, and how.
fn joins(
    nodes: &[Node],
    groups: &[Group],
    index: &HashMap<u64, usize>,
    n: usize,
) -> Option<(usize, Join)> {
    let node = &nodes[n];
    let facts = node.facts.as_deref()?;
    let readers: Vec<(usize, usize)> = node.readers.iter().copied().collect::<Option<_>>()?;
    let at = nodes[readers.first()?.0].group;
    let group = groups.get(at)?;
    let full = group.nodes + facts.nodes > MAX_NODES || group.members.len() >= MAX_MEMBERS;
    if group.closed || full || readers.iter().any(|r| nodes[r.0].group != at) {
        return None;
    }
    if let Role::Map { view: true, .. } = facts.role
        && !joins_maps(nodes, index, n)
    {
        return None;
    }
    // By the frame of each member that reads it, whether that is at its own cell.
    let mut seen: Vec<(Frame, bool)> = Vec::new();
    for &(reader, k) in &readers {
        match &nodes[reader].facts.as_deref()?.role {
            Role::Map { reads, .. } => {
                seen.extend(reads.get(k)?.iter().map(|a| (nodes[reader].frame, *a)));
            }
            Role::Source { inlets } => {
                let inlet = inlets.get(k).copied().flatten()?;
                let Role::Map { branches, .. } = facts.role else { return None };
                let alone = readers.len() == 1 && !node.after_source;
                let fits = alone && !(branches && inlet.reduction);
                return fits.then_some((at, Join::New(inlet)));
            }
        }
    }
    let &(frame, _) = seen.first()?;
    let same = seen.iter().all(|s| *s == (frame, true));
    let loops = group.frames.get(frame);
    match &facts.role {
        Role::Source { .. } => {
            (same && frame == FIRST && !group.has_source).then_some((at, Join::In(FIRST)))
        }
        Role::Map { branches: true, .. } if loops.is_some_and(|l| l.reduction) => None,
        Role::Map { .. } if same && loops.is_some() => Some((at, Join::In(frame))),
        Role::Map { .. } if node.after_source => None,
        Role::Map { moves, .. } => match loops {
            Some(l) if seen.len() == 1 && l.cells <= facts.cells => Some((at, Join::New(*l))),
            Some(Loops { reduction: true, .. }) => None,
            _ if seen.iter().any(|s| group.frames.get(s.0).is_some_and(|l| l.reduction)) => None,
            _ if *moves => Some((at, Join::In(MANY))),
            _ => None,
        },
    }
}

/// Whether a view's input is a map that could join through it, at no cost of index arithmetic.
fn joins_maps(nodes: &[Node], index: &HashMap<u64, usize>, n: usize) -> bool {
    let Some(Facts { role: Role::Map { divides: false, .. }, .. }) = nodes[n].facts.as_deref()
    else {
        return false;
    };
    let GraphExpr::CallTir { args, .. } = &nodes[n].binding.value else { return false };
    let Some(GraphExpr::Var(v)) = args.first() else { return false };
    let Some(input) = index.get(&v.id()).map(|p| &nodes[*p]) else { return false };
    let map = matches!(input.facts.as_deref(), Some(Facts { role: Role::Map { .. }, .. }));
    map && !input.after_source && input.readers.len() == 1
}
