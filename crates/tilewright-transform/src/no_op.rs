//! What changes nothing goes: dead stores, stores of what is there, and what is empty afterwards.
//!
//! By exact flow over the whole function ([`tilewright_polyhedral::flow`]):
//!
//! * a store whose value is not used goes: each of its cells is written again, or freed, before
//!   anything looks at it that is used itself. So a chain of stages without a reader goes as a
//!   whole;
//! * a store of the value that its cell holds already goes: what was just loaded from it, what was
//!   written or assumed before.
//!
//! What an output holds at the end is used, and so is what decides a branch, an index or a bound of
//! something used, and what an assumption or an assertion is about. Effects stay: of a store whose
//! value calls C, the call is left. What is empty after that goes by the rules of
//! [`tilewright_ir::prune`].
//!
//! A store that some iterations need stays for all of them, with a remark that shows one.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{Buffer, Error, ExprKind, Remarks, Result, StmtKind, TensorFunc, Var};
use tilewright_polyhedral::{AccessId, Edge, Set};

use crate::pass::{Flag, Number, Pass, Run};
use tilewright_ir::prune::{only_effects, prune};
use tilewright_polyhedral::flow::{MemoryFlow, same};
use tilewright_polyhedral::scop::{Act, Scop, ScopStmt, rewrite};

/// Whether values are followed through memory.
const FLOW: Flag = Flag {
    name: "use_dataflow_analysis",
    summary: "follow values through memory, and look at more than the text",
    default: true,
};

/// `remove_no_op` by name.
pub const PASS: Pass = Pass {
    name: "remove_no_op",
    summary: "remove stores whose values are not used or that change nothing, and loops and blocks without a body",
    options: &[
        &FLOW,
        &Number {
            name: "max_simplification_steps",
            summary: "no effect: every question has a quota of its own",
            default: 0,
            most: u32::MAX,
        },
        &Flag { name: "ignore_profiler_call", summary: "no effect", default: false },
    ],
    run: Run::Tensor(|f, given, why| remove_no_op(f, given.get(&FLOW)?, why)),
};

/// Removes what changes nothing; values are followed through memory if `by_flow`, else by the text.
pub fn remove_no_op(func: &TensorFunc, by_flow: bool, why: &mut Remarks) -> Result<TensorFunc> {
    let mut func = TensorFunc { body: prune(&func.body), ..func.clone() };
    let mut stale: Option<HashSet<Buffer>> = None;
    loop {
        let scop = Scop::extract(&func);
        let mut idle = Idle::default();
        idle.copies(&scop);
        if by_flow {
            idle.flow(&scop, stale.as_ref());
        }
        if idle.places.is_empty() {
            why.append(&mut idle.remarks);
            return Ok(func);
        }
        stale = Some(idle.touched);
        let body = prune(&rewrite(&func.body, &mut |place, s| match s.kind() {
            StmtKind::Store { indices, value, .. } if idle.places.contains(&place) => {
                Some(only_effects(indices.iter().chain([value])))
            }
            _ => None,
        }));
        func = TensorFunc { body, ..func };
    }
}

/// Stores that change nothing.
#[derive(Default)]
struct Idle {
    places: HashSet<usize>,
    /// Memories whose flow is another one without these stores.
    touched: HashSet<Buffer>,
    remarks: Remarks,
}

impl Idle {
    fn add(&mut self, scop: &Scop, stmt: &ScopStmt) {
        if self.places.insert(stmt.place) {
            let all = scop.stmts.iter().filter(|s| s.place == stmt.place);
            self.touched.extend(all.flat_map(|s| &s.accesses).map(|t| t.buffer.clone()));
        }
    }

    /// Stores of what was just loaded from the same cell.
    fn copies(&mut self, scop: &Scop) {
        for stmt in &scop.stmts {
            if let (Act::Store(value), Some(target)) = (&stmt.act, stmt.target())
                && let ExprKind::Load(from, at) = value.kind()
                && *from == target.buffer
            {
                let at_target = &target.indices[scop.lifetime(from)..];
                if at.iter().zip(at_target).all(|(x, y)| same(scop, &stmt.domain, x, y)) {
                    self.add(scop, stmt);
                }
            }
        }
    }

    /// Stores that are not used, and stores of what is known to be there. `stale` are the memories
    /// to look at again; `None` for all.
    fn flow(&mut self, scop: &Scop, stale: Option<&HashSet<Buffer>>) {
        let mut flows = Vec::new();
        for memory in scop.memories() {
            let written = scop.changes(memory);
            if written && stale.is_none_or(|s| s.contains(memory)) {
                let runs = MemoryFlow::runs(scop, memory);
                flows.push((memory, MemoryFlow::between(scop, runs)));
            }
        }
        let known: HashMap<&Buffer, &MemoryFlow<'_>> =
            flows.iter().filter_map(|(b, t)| Some((*b, t.as_ref().ok()?))).collect();
        let dead = dead(scop, &known);
        for k in &dead {
            if let Some(stmt) = scop.stmts.get(*k) {
                self.add(scop, stmt);
            }
        }
        for (_, t) in &flows {
            let Ok(t) = t else { continue };
            self.redundant(scop, t);
        }
    }

    /// Stores of a value that is there. Where a store of the memory has gone already, what is there
    /// may rest on it.
    fn redundant(&mut self, scop: &Scop, t: &MemoryFlow<'_>) {
        if t.runs.iter().any(|r| self.is_gone(r, scop)) {
            return;
        }
        for (k, run) in t.runs.iter().enumerate() {
            let Some(stmt) = run.who.stmt().and_then(|k| scop.stmts.get(k)) else { continue };
            let (Act::Store(value), Some(look)) = (&stmt.act, t.look(k)) else { continue };
            if t.flow.sources(look).next().is_some() && t.holds(look, value) {
                self.add(scop, stmt);
            } else {
                self.remarks.extend(needed(t, k, stmt));
            }
        }
    }

    fn is_gone(&self, r: &tilewright_polyhedral::flow::Run, scop: &Scop) -> bool {
        let stmt = r.who.stmt().and_then(|k| scop.stmts.get(k));
        stmt.is_some_and(|s| self.places.contains(&s.place))
    }
}

/// The numbers of the stores whose values are never used. Memories that are not known are used.
fn dead(scop: &Scop, known: &HashMap<&Buffer, &MemoryFlow<'_>>) -> Vec<usize> {
    // What one statement of the text does is used or not as a whole.
    let mut stores: HashMap<usize, usize> = HashMap::default();
    for (k, stmt) in scop.stmts.iter().enumerate() {
        if let (Act::Store(_), Some(t)) = (&stmt.act, stmt.target())
            && known.contains_key(&t.buffer)
        {
            stores.insert(stmt.place, k);
        }
    }

    // For each statement, the writers that it reads from.
    let mut sources: HashMap<Option<usize>, Vec<usize>> = HashMap::default();
    for t in known.values() {
        for e in t.flow.edges.iter().filter(|e| !t.is_look(e.reader)) {
            if let Some(writer @ ScopStmt { act: Act::Store(_), .. }) =
                statement_of(scop, t, e.writer)
            {
                let reader = statement_of(scop, t, e.reader).map(|s| s.place);
                sources.entry(reader).or_default().push(writer.place);
            }
        }
    }
    let mut used: HashSet<usize> = HashSet::default();
    // What is used by itself: the reader at the end, calls, and all but known stores.
    let mut work: Vec<Option<usize>> = vec![None];
    for s in &scop.stmts {
        if matches!(s.act, Act::Call) || !stores.contains_key(&s.place) {
            work.push(Some(s.place));
        }
    }
    let mut seen: HashSet<Option<usize>> = work.iter().copied().collect();
    while let Some(place) = work.pop() {
        for writer in sources.get(&place).into_iter().flatten() {
            used.insert(*writer);
            if seen.insert(Some(*writer)) {
                work.push(Some(*writer));
            }
        }
    }
    stores.into_iter().filter(|(place, _)| !used.contains(place)).map(|(_, k)| k).collect()
}

fn statement_of<'s>(scop: &'s Scop, t: &MemoryFlow<'_>, access: AccessId) -> Option<&'s ScopStmt> {
    scop.stmts.get(t.who(access).stmt()?)
}

/// Why a store stays that some iterations do not need.
fn needed(t: &MemoryFlow<'_>, run: usize, stmt: &ScopStmt) -> Option<Error> {
    let (overwritten, used): (Vec<&Edge>, Vec<&Edge>) = t
        .flow
        .edges
        .iter()
        .filter(|e| e.writer.statement == run)
        .partition(|e| t.is_look(e.reader));
    overwritten.first()?;
    let loops: Vec<Var> = stmt.domain.vars().cloned().collect();
    let used_at = Set::union_of(used.iter().map(|e| e.pairs()?.project(&loops))).ok()??;
    let partly = stmt.domain.to_set().ok()?.is_subset(&used_at).is_no();
    let buffer = &stmt.target()?.buffer.name;
    let remark = Error::refused(format!("the store to `{buffer}` stays: some iterations need it"));
    partly.then_some(remark.at(stmt.span).note(t.witness(used.first()?)?))
}
