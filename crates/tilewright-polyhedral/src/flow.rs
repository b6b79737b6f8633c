//! Which write gives a statement the value that it reads, for one memory of a [`Scop`].
//!
//! A [`MemoryFlow`] is [`crate::Flow`] together with its participants: statements of the
//! SCoP, instances that a pass considers adding, and the reader at the end. It knows the values
//! that were written, and so what a cell holds where a read sees it.

use crate::{
    Access, AccessId, Domain, Edge, Flow, Known, ScheduleDim, Set, Statement, Uninitialised,
    Witness, evaluate,
};
use tilewright_ir::visit::Subst;
use tilewright_ir::{Buffer, CallTarget, Expr, ExprKind, Fold, Var};

use crate::scop::{Act, Scop, ScopStmt};
use tilewright_ir::index::is_index;

/// A participant of the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A statement of the SCoP, by its number.
    Stmt(usize),
    /// The added instances of a statement, by its number.
    Added(usize),
    /// The reader of everything, at the end.
    End,
}

impl Who {
    /// The statement's number, unless it is the reader at the end.
    pub fn stmt(self) -> Option<usize> {
        match self {
            Who::Stmt(k) | Who::Added(k) => Some(k),
            Who::End => None,
        }
    }
}

/// A participant with what it does to one memory.
#[derive(Clone)]
pub struct Run {
    /// Which one it is.
    pub who: Who,
    /// When it runs, and what it does to the memory.
    pub statement: Statement,
    /// For each of its accesses: its number in the statement. `None` for a look at the cell that is
    /// about to be written ([`Run::looking`]).
    pub accesses: Vec<Option<usize>>,
}

impl Run {
    /// The statement of this number, where it touches the memory.
    pub fn from_statement(scop: &Scop, k: usize, memory: &Buffer) -> Option<Run> {
        Run::new(scop, Who::Stmt(k), scop.stmts.get(k)?, memory)
    }

    /// All statements that touch the memory.
    pub fn all<'a>(scop: &'a Scop, memory: &'a Buffer) -> impl Iterator<Item = Run> + 'a {
        (0..scop.stmts.len()).filter_map(|k| Run::from_statement(scop, k, memory))
    }

    /// A statement as another participant.
    pub fn new(scop: &Scop, who: Who, stmt: &ScopStmt, memory: &Buffer) -> Option<Run> {
        let (statement, accesses) = scop.restricted(stmt, memory)?;
        Some(Run { who, statement, accesses: accesses.into_iter().map(Some).collect() })
    }

    /// The same with only some of its accesses, since the analysis is expensive.
    pub fn only(self, keep: impl Fn(&Access) -> bool) -> Run {
        self.only_where(|t, _| keep(t))
    }

    /// The same by an access and its number.
    pub fn only_where(mut self, keep: impl Fn(&Access, Option<usize>) -> bool) -> Run {
        let each = self.statement.accesses.into_iter().zip(self.accesses);
        (self.statement.accesses, self.accesses) = each.filter(|(t, n)| keep(t, *n)).unzip();
        self
    }

    /// The first cell of some reads of it that are not written, with the point, as text.
    pub fn example(&self, scop: &Scop, reads: &Uninitialised) -> Option<String> {
        let number = self.accesses.get(reads.reader.access).copied().flatten()?;
        let access = scop.stmts.get(self.who.stmt()?)?.accesses.get(number)?;
        let at = reads.instances.point().ok()??;
        Some(format!("at {at}: {}", cell(scop, access, &at)))
    }

    /// The same with one access.
    fn only_access(mut self, n: usize) -> Run {
        self.accesses = self.accesses.get(n).into_iter().copied().collect();
        self.statement.accesses = self.statement.accesses.get(n).into_iter().cloned().collect();
        self
    }

    /// The same, also looking at the cell before it is written, if the statement is a store.
    pub fn looking(mut self, stmt: &ScopStmt) -> Run {
        if let Act::Store(_) = stmt.act
            && let Some(last) = self.statement.accesses.last().filter(|t| t.is_write).cloned()
        {
            self.statement.accesses.push(Access { is_write: false, ..last });
            self.accesses.push(None);
        }
        self
    }
}

/// The flow through one memory.
pub struct MemoryFlow<'a> {
    scop: &'a Scop,
    /// The participants.
    pub runs: Vec<Run>,
    /// Which write gives each read its value.
    pub flow: Flow,
}

impl<'a> MemoryFlow<'a> {
    /// The flow between these.
    ///
    /// # Errors
    /// What the engine could not decide.
    pub fn between(scop: &'a Scop, runs: Vec<Run>) -> Known<MemoryFlow<'a>> {
        let statements: Vec<Statement> = runs.iter().map(|r| r.statement.clone()).collect();
        let flow = Flow::compute(scop.engine(), &statements)?;
        Ok(MemoryFlow { scop, runs, flow })
    }

    /// Every statement that touches a memory, each store looking at its cell first, and the end.
    /// Permissions to read change nothing.
    pub fn runs(scop: &Scop, memory: &Buffer) -> Vec<Run> {
        let stmts = scop.stmts.iter().enumerate();
        let stmts = stmts.filter(|(_, s)| !matches!(s.act, Act::Permit));
        let mut runs: Vec<Run> = stmts
            .filter_map(|(k, s)| Some(Run::new(scop, Who::Stmt(k), s, memory)?.looking(s)))
            .collect();
        runs.extend(MemoryFlow::end(scop, memory));
        runs
    }

    /// The reader at the end, where the memory is visible to the caller.
    pub fn end(scop: &Scop, memory: &Buffer) -> Option<Run> {
        let statement = scop.observer(memory)?;
        Some(Run { who: Who::End, statement, accesses: vec![Some(0)] })
    }

    /// The number of an access in its statement; `None` for a look.
    pub fn access(&self, id: AccessId) -> Option<usize> {
        self.runs.get(id.statement)?.accesses.get(id.access).copied().flatten()
    }

    /// Whether an access only looks at what a store overwrites.
    pub fn is_look(&self, id: AccessId) -> bool {
        let run = self.runs.get(id.statement);
        run.is_some_and(|r| matches!(r.accesses.get(id.access), Some(None)))
    }

    /// The look of a run.
    pub fn look(&self, run: usize) -> Option<AccessId> {
        let access = self.runs.get(run)?.accesses.iter().position(Option::is_none)?;
        Some(AccessId { statement: run, access })
    }

    /// The participant of an access.
    pub fn who(&self, id: AccessId) -> Who {
        self.runs.get(id.statement).map_or(Who::End, |r| r.who)
    }

    fn stmt(&self, id: AccessId) -> Option<&'a ScopStmt> {
        self.scop.stmts.get(self.who(id).stmt()?)
    }

    /// Whether it is certain, for all that an access reads, which write it sees.
    fn is_certain(&self, reader: AccessId) -> bool {
        self.flow.sources(reader).all(|e| e.certain)
            && self.flow.uninitialised.iter().all(|u| u.reader != reader)
    }

    /// Whether every cell that an access reads holds `value`, which is in terms of its loops.
    pub fn holds(&self, reader: AccessId, value: &Expr) -> bool {
        self.is_certain(reader)
            && self.flow.sources(reader).all(|e| {
                let Some(there) = self.value(e.writer) else { return false };
                // What was read may have changed since.
                same_constant(there, value)
                    || (!self.scop.reads_what_changes(there)
                        && !self.scop.reads_what_changes(value)
                        && self.is_written(e, there, value))
            })
    }

    /// The value that is written at an access.
    fn value(&self, writer: AccessId) -> Option<&'a Expr> {
        match &self.stmt(writer)?.act {
            Act::Store(value) | Act::Fact(value) => Some(value),
            _ => None,
        }
    }

    /// Whether what is written at an edge is `value` for the reader.
    fn is_written(&self, e: &Edge, there: &Expr, value: &Expr) -> bool {
        let Some((pairs, vars)) = self.pairs(e) else { return false };
        let vars = vars.iter().map(|(v, there)| (v.clone(), there.expr()));
        same(self.scop, &pairs, there, &Subst::vars(vars).expr(value))
    }

    /// The pairs of iterations at an edge, with the reader's loops by their names in there.
    fn pairs(&self, e: &Edge) -> Option<(Domain, Vec<(Var, Var)>)> {
        let split = self.runs.get(e.writer.statement)?.statement.domain.vars().count();
        let reader = &self.runs.get(e.reader.statement)?.statement.domain;
        let pairs = e.pairs().ok()?;
        let vars = reader.vars().cloned().zip(pairs.vars().skip(split).cloned()).collect();
        Some((pairs.domain(), vars))
    }

    /// A pair of iterations at an edge, as text: which read gets the value of the first.
    pub fn witness(&self, e: &Edge) -> Option<String> {
        let (at_write, at_read) = e.witness().ok()?;
        let writer = self.stmt(e.writer)?;
        let cell = cell(self.scop, writer.accesses.get(self.access(e.writer)?)?, &at_write);
        let mut text =
            if at_write.values.is_empty() { String::new() } else { format!("at {at_write}: ") };
        match self.stmt(e.reader) {
            None => text += &format!("{cell} is seen by the caller"),
            Some(reader) => {
                text += &format!("{cell} is read");
                if let Some(block) = reader.block() {
                    text += &format!(" by block \"{block}\"");
                }
                let elsewhere = at_read.to_string();
                if !elsewhere.is_empty() && elsewhere != at_write.to_string() {
                    text += &format!(" at {elsewhere}");
                }
                text += " before it is written again";
            }
        }
        Some(text)
    }

    /// A constant that an access reads, and where it certainly does: points of its loops. Of
    /// several constants the first.
    pub fn constant(&self, reader: AccessId) -> Option<(Expr, Set)> {
        let mut found: Option<(Expr, Set)> = None;
        for e in self.flow.sources(reader).filter(|e| e.certain && e.reads.is_exact()) {
            for (value, points) in self.constants(e) {
                found = Some(match found {
                    None => (value, points),
                    Some((known, before)) if same_constant(&known, &value) => {
                        (known, before.union(&points).ok()?)
                    }
                    other => other?,
                });
            }
        }
        found
    }

    /// The constants that are read at an edge, each with the reader's iterations that do.
    fn constants(&self, e: &Edge) -> Vec<(Expr, Set)> {
        match self.value(e.writer) {
            Some(value) if is_constant(value) => vec![(value.clone(), e.reads.clone())],
            Some(value) if is_choice(value) => self.chosen(e, value).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// The same where the writer's iteration decides which constant it is.
    fn chosen(&self, e: &Edge, value: &Expr) -> Option<Vec<(Expr, Set)>> {
        let (pairs, vars) = self.pairs(e)?;
        let names: Vec<Var> = vars.iter().map(|(_, there)| there.clone()).collect();
        let loops = || vars.iter().map(|(v, _)| v.clone());
        let mut all = Vec::new();
        for (value, pairs) in constants(value, &pairs) {
            let Some(pairs) = pairs.to_set().ok().filter(Set::is_exact) else { continue };
            // The other side of the choice may be all that is read.
            if pairs.is_void() {
                continue;
            }
            all.push((value, pairs.project(&names).ok()?.over(loops()).ok()?));
        }
        Some(all)
    }
}

/// The reads of one memory that may read a cell that is never written before.
pub struct Unwritten {
    runs: Vec<Run>,
    found: Vec<Uninitialised>,
}

impl Unwritten {
    /// Those among these.
    ///
    /// # Errors
    /// What the engine could not decide.
    pub fn new(scop: &Scop, runs: Vec<Run>) -> Known<Unwritten> {
        let statements: Vec<Statement> = runs.iter().map(|r| r.statement.clone()).collect();
        let found = Flow::uninitialised(scop.engine(), &statements)?;
        Ok(Unwritten { runs, found })
    }

    /// The reads that certainly find memory as it was before, as writes before all else: they show
    /// that there is something.
    ///
    /// # Errors
    /// What the engine could not decide.
    pub fn found(&self) -> Known<Vec<Run>> {
        let certain = self.reads().filter(|(_, u)| u.certain);
        certain
            .map(|(run, u)| {
                let mut found = run.clone().only_access(u.reader.access);
                found.statement.domain = u.instances.domain();
                found.statement.schedule = vec![ScheduleDim::Sequence(-1)];
                found.statement.accesses.iter_mut().for_each(|t| t.is_write = true);
                Ok(found)
            })
            .collect()
    }

    /// The reader, and where it reads.
    pub fn reads(&self) -> impl Iterator<Item = (&Run, &Uninitialised)> {
        self.found.iter().filter_map(|u| Some((self.runs.get(u.reader.statement)?, u)))
    }
}

/// The cell of an access at a point, as text: `B[3, 2]`.
pub fn cell(scop: &Scop, access: &Access, at: &Witness) -> String {
    let indices = access.indices.iter().skip(scop.lifetime(&access.buffer));
    let indices: Vec<String> = indices
        .map(|e| match evaluate(e, &|v| at.get(v)) {
            Some(value) => value.to_string(),
            None => e.to_string(),
        })
        .collect();
    format!("{}[{}]", access.buffer.name, indices.join(", "))
}

/// Whether a value is a number.
pub fn is_constant(value: &Expr) -> bool {
    matches!(value.kind(), ExprKind::Int(_) | ExprKind::Float(_))
}

fn is_choice(value: &Expr) -> bool {
    matches!(value.kind(), ExprKind::IfThenElse(..) | ExprKind::Select(..))
}

/// The constants that a value is, each with the part of a domain in which it is that: the sides of
/// choices by indices.
fn constants(value: &Expr, domain: &Domain) -> Vec<(Expr, Domain)> {
    match value.kind() {
        _ if is_constant(value) => vec![(value.clone(), domain.clone())],
        ExprKind::IfThenElse(c, yes, no) | ExprKind::Select(c, yes, no) if is_index(c) => {
            let mut all = constants(yes, &domain.with_guard(c));
            all.extend(constants(no, &domain.with_guard(&!c.clone())));
            all
        }
        _ => Vec::new(),
    }
}

/// Whether two constants are one value, to the bit.
pub fn same_constant(a: &Expr, b: &Expr) -> bool {
    match (a.kind(), b.kind()) {
        (ExprKind::Int(x), ExprKind::Int(y)) => x == y,
        (ExprKind::Float(x), ExprKind::Float(y)) => x.to_bits() == y.to_bits(),
        _ => false,
    }
}

/// The operands of two expressions, in pairs, if the same operator is outermost in both: then these are
/// the same where their operands are.
pub fn operands<'e>(a: &'e Expr, b: &'e Expr) -> Option<Vec<(&'e Expr, &'e Expr)>> {
    match (a.kind(), b.kind()) {
        (ExprKind::Int(_) | ExprKind::Float(_), _) => same_constant(a, b).then(Vec::new),
        (ExprKind::Var(x), ExprKind::Var(y)) => (x == y).then(Vec::new),
        (ExprKind::Cast(x), ExprKind::Cast(y))
        | (ExprKind::Not(x), ExprKind::Not(y))
        | (ExprKind::Broadcast(x), ExprKind::Broadcast(y)) => Some(vec![(x, y)]),
        (ExprKind::Binary(f, x, y), ExprKind::Binary(g, u, v)) => {
            (f == g).then(|| vec![(x, u), (y, v)])
        }
        (ExprKind::Ramp(x, y), ExprKind::Ramp(u, v)) => Some(vec![(x, u), (y, v)]),
        (ExprKind::Select(c, x, y), ExprKind::Select(d, u, v))
        | (ExprKind::IfThenElse(c, x, y), ExprKind::IfThenElse(d, u, v)) => {
            Some(vec![(c, d), (x, u), (y, v)])
        }
        (ExprKind::Load(x, i), ExprKind::Load(y, j)) => {
            (x.data == y.data && i.len() == j.len()).then(|| i.iter().zip(j).collect())
        }
        (ExprKind::Call(f, x), ExprKind::Call(g, y)) => {
            (f == g && x.len() == y.len()).then(|| x.iter().zip(y).collect())
        }
        _ => None,
    }
}

/// Whether two values are the same at every point of a domain, whenever they are computed.
pub fn same(scop: &Scop, domain: &Domain, a: &Expr, b: &Expr) -> bool {
    Same { scop, domain, at_once: false }.values(a, b)
}

/// Whether two values are the same at every point of a domain if they are computed at one moment.
pub fn same_at_once(scop: &Scop, domain: &Domain, a: &Expr, b: &Expr) -> bool {
    Same { scop, domain, at_once: true }.values(a, b)
}

struct Same<'a> {
    scop: &'a Scop,
    domain: &'a Domain,
    /// Whether memory is the same for both.
    at_once: bool,
}

impl Same<'_> {
    fn values(&self, a: &Expr, b: &Expr) -> bool {
        if a.dtype() != b.dtype() {
            return false;
        }
        let counts = a.dtype().lanes == 1 && (a.dtype().is_int() || a.dtype().is_bool());
        if counts && is_index(a) && is_index(b) {
            return self.domain.is_equal(a, b);
        }
        let stays = match (a.kind(), b.kind()) {
            (ExprKind::Load(x, _), ExprKind::Load(y, _)) => {
                x == y && (self.at_once || !self.scop.changes(x))
            }
            (ExprKind::Call(f, _), _) => {
                matches!(f, CallTarget::Intrin(_) | CallTarget::Reinterpret(_))
            }
            _ => true,
        };
        let operands = operands(a, b).filter(|_| stays);
        operands.is_some_and(|pairs| pairs.into_iter().all(|(x, y)| self.values(x, y)))
    }
}
