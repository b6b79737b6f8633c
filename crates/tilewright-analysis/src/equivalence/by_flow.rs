//! Whether two functions compute the same outputs, by where their values come from.
//!
//! Both functions are read as SCoPs ([`tilewright_polyhedral::scop`]), and flow says which instance of which
//! store each load gets its value from. So every output cell is an expression over the inputs that
//! unfolds going back in time, and two functions are the same if those expressions are. They are
//! never written down: what is compared is a pair of expressions over a *set of pairs of
//! instances*, one of the first function and one of the second, at all of its points at once. Sizes
//! may be open, and how many cells there are does not matter.
//!
//! ```text
//! for i in range(8): T[i] = A[i] * 2            for io in range(2):
//! for i in range(8): B[i] = T[i] + 1                for ii in range(4):
//!                                                       B[io*4 + ii] = A[io*4 + ii] * 2 + 1
//!
//! the outputs   B[c]       B[c']                        at c == c'
//! the stores    T[i] + 1   A[io*4 + ii] * 2 + 1         at i == io*4 + ii
//! the operands  T[i]       A[io*4 + ii] * 2             at i == io*4 + ii
//!               A[i'] * 2  A[io*4 + ii] * 2             at i' == io*4 + ii
//! the inputs    A[i']      A[io*4 + ii]                 the indices are equal
//! ```
//!
//! A reduction unfolds into itself, one iteration back. A pair of loads that is met again inside of
//! its own proof is taken for equal there: each unfolding goes back in time, so the proof is an
//! induction. Where it is met at points that the assumption does not have, the proof starts again
//! with more points: all instances that satisfy the linear equations which those points have in
//! common. That ends, since each time one equation less is left. (The method is that of
//! Verdoolaege, Janssens and Bruynooghe 2012, "Equivalence checking of static affine programs using
//! widening to handle recurrences".)
//!
//! A yes is a proof for all data and all sizes; every access of both functions is proven to be in
//! range and every cell to be written before it is read. The answer is no wherever anything is not
//! known: conditions or indices from data, another order of a sum, assumptions, arbitrary values.

use std::collections::hash_map::{Entry, HashMap};
use tilewright_ir::hash::HashSet;

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{Subst, walk_expr, walk_stmt};
use tilewright_ir::{
    BinOp, Buffer, CallTarget, DType, Expr, ExprKind, Fold, Range, Stmt, StmtKind, TensorFunc, Var,
    Visit,
};
use tilewright_polyhedral::{AccessId, Domain, Set, budget};

use super::aligned;
use tilewright_polyhedral::at_once::keeps_promises;
use tilewright_polyhedral::flow::{MemoryFlow, Run, Who, operands};
use tilewright_polyhedral::overflow::overflows;
use tilewright_polyhedral::scop::{Act, Scop, ScopStmt};
use tilewright_polyhedral::sizes::sizes;

/// What all questions about two functions may take together.
const BUDGET: u64 = 4 * budget::PER_FUNCTION;

/// Pairs of expressions inside of each other.
const DEPTH: usize = 256;

/// Pairs of expressions that are compared.
const PAIRS: usize = 1 << 14;

/// Whether two functions compute the same outputs, found by flow; no is also the answer where that
/// is not known.
pub fn by_flow(a: &TensorFunc, b: &TensorFunc) -> bool {
    budget::within("equivalence by flow", BUDGET, || {
        let domain = sizes(a);
        let Some(b) = aligned(&domain, a, b) else { return false };
        let (Some(first), Some(second)) = (Side::analyse(a), Side::analyse(&b)) else {
            return false;
        };
        let outputs: Vec<Buffer> = a.buffers().cloned().collect();
        let mut compare = Compare { domain, sides: [first, second], taken: Vec::new(), pairs: 0 };
        outputs.iter().all(|output| compare.output(output).is_some())
    })
    .0
}

/// A point of a function in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramPoint {
    /// A statement, by its number.
    Stmt(usize),
    /// The end, where the memory with this number is seen.
    End(u64),
}

/// An expression at the instances of a place, in terms of the loops there.
#[derive(Clone, Debug)]
struct ValueAt {
    place: ProgramPoint,
    expr: Expr,
    /// Whether it is a load of what the function was given.
    given: bool,
}

impl ValueAt {
    fn new(place: ProgramPoint, expr: &Expr) -> ValueAt {
        ValueAt { place, expr: expr.clone(), given: false }
    }

    fn is(&self, other: &ValueAt) -> bool {
        self.place == other.place && same_expr(&self.expr, &other.expr)
    }
}

/// One of the two functions.
struct Side {
    scop: Scop,
    /// For each statement the variables of its loops, and names for them: those of the instances
    /// that are compared, and those of the instances that come next.
    names: Vec<Names>,
    /// The same of the reader at the end, by the number of the memory.
    ends: HashMap<u64, Names>,
    /// Memory that is written.
    written: HashMap<Var, Source>,
}

struct Names {
    loops: Vec<Var>,
    now: Vec<Var>,
    next: Vec<Var>,
    /// The points, over the names of now.
    points: Set,
}

/// What the readers of a memory get.
struct Source {
    runs: Vec<Run>,
    flow: tilewright_polyhedral::Flow,
}

impl Names {
    fn new(domain: &Domain) -> Option<Names> {
        let loops: Vec<Var> = domain.vars().cloned().collect();
        let (now, next) = (
            loops.iter().map(Var::fresh).collect::<Vec<Var>>(),
            loops.iter().map(Var::fresh).collect::<Vec<Var>>(),
        );
        let points = domain.to_set().ok()?.over(now.iter().cloned()).ok()?;
        Some(Names { loops, now, next, points })
    }

    /// An expression in terms of the instances that are compared.
    fn expr(&self, e: &Expr) -> Expr {
        Subst::vars(self.loops.iter().cloned().zip(self.now.iter().map(Var::expr))).expr(e)
    }
}

impl Side {
    /// A function, if all that it does is known and legal.
    fn analyse(func: &TensorFunc) -> Option<Side> {
        let accessed = plain(func).filter(|_| keeps_promises(func))?;
        let scop = Scop::extract(func);
        let stored: HashSet<&Var> =
            scop.stmts.iter().filter_map(ScopStmt::target).map(|t| &t.buffer.data).collect();
        // A cell that is never written has no value.
        let known = accessed.iter().all(|b| {
            scop.follows(b)
                && (stored.contains(&b.data) || func.buffers().any(|p| p.data == b.data))
        }) && scop.stmts.iter().all(|s| is_legal(&scop, s));
        known.then_some(scop).and_then(Side::new)
    }

    fn new(scop: Scop) -> Option<Side> {
        let names = scop.stmts.iter().map(|s| Names::new(&s.domain));
        let names: Option<Vec<Names>> = names.collect();
        let mut side =
            Side { names: names?, ends: HashMap::default(), written: HashMap::default(), scop };
        let stores = side.scop.stmts.iter().filter_map(ScopStmt::target);
        let written: HashSet<Buffer> = stores.map(|t| t.buffer.clone()).collect();
        for memory in written {
            let mut runs: Vec<Run> = Run::all(&side.scop, &memory).collect();
            runs.extend(MemoryFlow::end(&side.scop, &memory));
            if let Some(end) = runs.iter().find(|r| r.who == Who::End) {
                side.ends.insert(memory.data.id(), Names::new(&end.statement.domain)?);
            }
            let flow = MemoryFlow::between(&side.scop, runs.clone()).ok()?.flow;
            if !side.scop.is_observed(&memory) && !flow.uninitialised.is_empty() {
                return None;
            }
            side.written.insert(memory.data.clone(), Source { runs, flow });
        }
        Some(side)
    }

    /// The names at the place of a value.
    fn names(&self, v: &ValueAt) -> Option<&Names> {
        match v.place {
            ProgramPoint::Stmt(k) => self.names.get(k),
            ProgramPoint::End(memory) => self.ends.get(&memory),
        }
    }

    /// The memory that a load reads, and the indices, if the function writes it.
    fn written_load<'v>(&self, v: &'v ValueAt) -> Option<(&Source, &'v Buffer, &'v [Expr])> {
        match v.expr.kind() {
            ExprKind::Load(b, at) if !v.given => {
                Some((self.written.get(&b.data)?, b, at.as_slice()))
            }
            _ => None,
        }
    }

    /// The accesses that a load at a place is.
    fn accesses(
        &self,
        source: &Source,
        place: ProgramPoint,
        b: &Buffer,
        at: &[Expr],
    ) -> Vec<AccessId> {
        let here = match place {
            ProgramPoint::Stmt(k) => self.place_of(Some(k)),
            ProgramPoint::End(_) => None,
        };
        let outer = self.scop.lifetime(b);
        let mut found = Vec::new();
        for (statement, run) in source.runs.iter().enumerate() {
            if self.place_of(run.who.stmt()) != here {
                continue;
            }
            for (access, t) in run.statement.accesses.iter().enumerate() {
                let indices = t.indices.iter().skip(outer);
                if !t.is_write && indices.zip(at).all(|(x, y)| same_expr(x, y)) {
                    found.push(AccessId { statement, access });
                }
            }
        }
        found
    }

    fn place_of(&self, k: Option<usize>) -> Option<usize> {
        self.scop.stmts.get(k?).map(|s| s.place)
    }
}

/// A pair of loads that is equal at some points, or taken to be while that is being proven.
struct Taken {
    values: [ValueAt; 2],
    points: Set,
    open: bool,
}

/// Why a comparison ended.
enum Stop {
    /// It is not known whether the values are equal.
    Unknown,
    /// What was taken for equal, by its number, has to be proven at more points.
    Widen(usize, Set),
}

type Proven = std::result::Result<(), Stop>;

impl From<tilewright_polyhedral::Unknown> for Stop {
    fn from(_: tilewright_polyhedral::Unknown) -> Stop {
        Stop::Unknown
    }
}

struct Compare {
    /// The sizes.
    domain: Domain,
    sides: [Side; 2],
    taken: Vec<Taken>,
    pairs: usize,
}

impl Compare {
    /// Proves that an output is the same on both sides.
    fn output(&mut self, output: &Buffer) -> Option<()> {
        if self.sides.iter().all(|s| !s.written.contains_key(&output.data)) {
            return Some(());
        }
        // Both see the cell with the same indices. What is not written is what was given.
        let cells: Vec<Var> = output.shape.iter().map(|n| Var::new("c", n.dtype())).collect();
        let ranges = cells.iter().zip(&output.shape);
        let domain =
            ranges.fold(self.domain.clone(), |d, (v, n)| d.with_var(v, &Range::upto(n.clone())));
        let mut values = Vec::new();
        let mut points = domain.to_set().ok()?;
        for side in &mut self.sides {
            let names = match side.ends.entry(output.data.id()) {
                Entry::Occupied(e) => e.into_mut(),
                Entry::Vacant(e) => e.insert(Names::new(&domain)?),
            };
            let same = names
                .now
                .iter()
                .zip(&cells)
                .fold(domain.clone(), |d, (v, c)| d.with_var(v, &Range::point(c.expr())));
            points = points.join(&same.to_set().ok()?).ok()?;
            let load = Expr::load(output, names.loops.iter().map(Var::expr).collect());
            values.push(ValueAt::new(ProgramPoint::End(output.data.id()), &load));
        }
        let [first, second] = <[ValueAt; 2]>::try_from(values).ok()?;
        let vars = self.vars([&first, &second])?;
        let points = points.project(&vars).ok()?;
        self.same([&first, &second], &points, DEPTH).ok()
    }

    /// The variables of a set of pairs of instances.
    fn vars(&self, values: [&ValueAt; 2]) -> Option<Vec<Var>> {
        let [a, b] = &self.sides;
        let (a, b) = (a.names(values[0])?, b.names(values[1])?);
        Some(a.now.iter().chain(&b.now).cloned().collect())
    }

    /// Proves that two values are the same at pairs of instances.
    fn same(&mut self, values: [&ValueAt; 2], points: &Set, depth: usize) -> Proven {
        let depth = depth.checked_sub(1).ok_or(Stop::Unknown)?;
        self.pairs += 1;
        if self.pairs > PAIRS {
            return Err(Stop::Unknown);
        }
        if points.is_void() {
            return Ok(());
        }
        for k in 0..2 {
            if let Some((cond, yes, no)) = choice(&values[k].expr) {
                let names = self.sides[k].names(values[k]).ok_or(Stop::Unknown)?;
                let cond = names.expr(cond);
                if overflows(&cond, &points.domain()) {
                    return Err(Stop::Unknown);
                }
                for (cond, side) in [(cond.clone(), yes), (!cond, no)] {
                    let part = points.domain().with_guard(&cond).to_set()?;
                    let mut values = values;
                    let value = ValueAt::new(values[k].place, side);
                    values[k] = &value;
                    self.same(values, &part, depth)?;
                }
                return Ok(());
            }
        }
        match [0, 1].map(|k| self.sides[k].written_load(values[k]).is_some()) {
            [true, true] => self.loads(values, points, depth),
            [true, false] => self.back(0, values, points, depth),
            [false, true] => self.back(1, values, points, depth),
            [false, false] => self.operators(values, points, depth),
        }
    }

    /// Two loads of what both functions wrote themselves.
    fn loads(&mut self, values: [&ValueAt; 2], points: &Set, depth: usize) -> Proven {
        let mut points = points.clone();
        // Each time one equation less is left.
        for _ in 0..=self.vars(values).map_or(0, |v| v.len()) {
            let before = self.taken.len();
            for (k, t) in self.taken.iter().enumerate() {
                if t.values[0].is(values[0]) && t.values[1].is(values[1]) {
                    if points.is_within(&t.points) {
                        return Ok(());
                    }
                    if t.open {
                        return Err(Stop::Widen(k, t.points.union(&points)?));
                    }
                }
            }
            let values_taken = values.map(ValueAt::clone);
            self.taken.push(Taken { values: values_taken, points: points.clone(), open: true });
            match self.back(0, values, &points, depth) {
                Ok(()) => {
                    self.taken[before].open = false;
                    return Ok(());
                }
                // What was proven meanwhile uses the assumption made here.
                Err(Stop::Widen(k, more)) if k == before => {
                    self.taken.truncate(before);
                    points = self.widened(values, &more)?;
                }
                Err(stop) => {
                    self.taken.truncate(before);
                    return Err(stop);
                }
            }
        }
        Err(Stop::Unknown)
    }

    /// All pairs of instances that satisfy the linear equations that some have in common.
    fn widened(&self, values: [&ValueAt; 2], points: &Set) -> std::result::Result<Set, Stop> {
        let [a, b] = &self.sides;
        let (Some(a), Some(b)) = (a.names(values[0]), b.names(values[1])) else {
            return Err(Stop::Unknown);
        };
        let equations = points.affine_hull()?;
        Ok(a.points.join(&b.points)?.join(&equations)?)
    }

    /// Compares what was stored to the cell that a side loads.
    fn back(&mut self, k: usize, values: [&ValueAt; 2], points: &Set, depth: usize) -> Proven {
        let parts = self.sources(k, values, points)?;
        let both = self.sides[1 - k].written_load(values[1 - k]).is_some();
        for (value, points) in parts {
            let mut values = values;
            values[k] = &value;
            // Of two loads the other one goes back, too: both advance before they are compared.
            if both && !value.given && k == 0 {
                self.back(1, values, &points, depth)?
            } else {
                self.same(values, &points, depth)?
            }
        }
        Ok(())
    }

    /// The values that a load of one side gets, each with the pairs of instances at which it does.
    fn sources(
        &self,
        k: usize,
        values: [&ValueAt; 2],
        points: &Set,
    ) -> std::result::Result<Vec<(ValueAt, Set)>, Stop> {
        let (side, value) = (&self.sides[k], values[k]);
        let (Some((source, b, at)), Some(names)) = (side.written_load(value), side.names(value))
        else {
            return Err(Stop::Unknown);
        };
        let other = self.sides[1 - k].names(values[1 - k]).ok_or(Stop::Unknown)?;
        let mut parts = Vec::new();
        let mut rest = points.clone();
        for access in side.accesses(source, value.place, b, at) {
            if rest.is_void() {
                break;
            }
            let mut seen: Vec<Set> = Vec::new();
            for e in source.flow.sources(access) {
                let reads = rest.join(&e.reads.over(names.now.iter().cloned())?)?;
                if reads.is_void() {
                    continue;
                }
                let writer = source.runs.get(e.writer.statement).and_then(|r| r.who.stmt());
                let writer = writer.ok_or(Stop::Unknown)?;
                let (Some(stmt), Some(there)) =
                    (side.scop.stmts.get(writer), side.names.get(writer))
                else {
                    return Err(Stop::Unknown);
                };
                let Act::Store(stored) = &stmt.act else { return Err(Stop::Unknown) };
                if !e.certain {
                    return Err(Stop::Unknown);
                }
                let pairs = e.pairs()?.over(there.next.iter().chain(&names.now).cloned())?;
                let next = reads.join(&pairs)?.project(&join_sides(k, &there.next, &other.now))?;
                let next = next.over(join_sides(k, &there.now, &other.now))?;
                parts.push((ValueAt::new(ProgramPoint::Stmt(writer), stored), next));
                seen.push(reads);
            }
            for u in source.flow.uninitialised.iter().filter(|u| u.reader == access) {
                let reads = rest.join(&u.instances.over(names.now.iter().cloned())?)?;
                if reads.is_void() {
                    continue;
                }
                if !u.certain || !side.scop.is_observed(b) {
                    return Err(Stop::Unknown);
                }
                parts.push((ValueAt { given: true, ..value.clone() }, reads.clone()));
                seen.push(reads);
            }
            if let Some(seen) = Set::union_of(seen.into_iter().map(Ok))? {
                rest = rest.subtract(&seen)?;
            }
        }
        if rest.is_void() { Ok(parts) } else { Err(Stop::Unknown) }
    }

    /// Two values that are no loads of what the functions wrote: the same operator on the same.
    fn operators(&mut self, values: [&ValueAt; 2], points: &Set, depth: usize) -> Proven {
        let [a, b] =
            [0, 1].map(|k| self.sides[k].names(values[k]).map(|n| n.expr(&values[k].expr)));
        let (Some(x), Some(y)) = (a, b) else { return Err(Stop::Unknown) };
        let (t, constant) = (x.dtype(), |e: &Expr| e.effects().constant());
        if t != y.dtype() {
            return Err(Stop::Unknown);
        }
        if constant(&x) && constant(&y) && (t.is_int() || t.is_bool()) {
            let points = points.domain();
            let exact = [&x, &y].iter().all(|e| !overflows(e, &points));
            if exact && points.is_equal(&x, &y) {
                return Ok(());
            }
        }
        // Variables in terms of the instances, operands as they stand.
        if x.as_var().is_some() {
            return if x.as_var() == y.as_var() { Ok(()) } else { Err(Stop::Unknown) };
        }
        let pairs = operands(&values[0].expr, &values[1].expr).ok_or(Stop::Unknown)?;
        let mut all = |pairs: &[(&Expr, &Expr)]| {
            pairs.iter().try_for_each(|(x, y)| {
                let pair = [ValueAt::new(values[0].place, x), ValueAt::new(values[1].place, y)];
                self.same([&pair[0], &pair[1]], points, depth)
            })
        };
        match (all(&pairs), &pairs[..]) {
            (Err(Stop::Unknown), [(x, u), (y, v)]) if commutes(&values[0].expr) => {
                all(&[(x, v), (y, u)])
            }
            // The same choice of the opposite condition.
            (Err(Stop::Unknown), [(c, d), (x, u), (y, v)]) if c.dtype().is_bool() => {
                let [not_c, not_d] = [c, d].map(|cond| !(*cond).clone());
                all(&[(x, v), (y, u)])?;
                all(&[(c, &not_d)]).or_else(|_| all(&[(&not_c, d)]))
            }
            (proven, _) => proven,
        }
    }
}

/// The variables of a side, and those of the other one, in the order of the sides.
fn join_sides(k: usize, mine: &[Var], other: &[Var]) -> Vec<Var> {
    match k {
        0 => [mine, other].concat(),
        _ => [other, mine].concat(),
    }
}

/// Whether the operands of an operator may change places.
fn commutes(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Binary(op, ..) => {
            matches!(op, BinOp::Add | BinOp::Mul | BinOp::And | BinOp::Or | BinOp::Eq | BinOp::Ne)
        }
        ExprKind::Call(CallTarget::Intrin(f), _) => f.commutes(),
        _ => false,
    }
}

/// A choice that indices decide: the condition and the two sides.
fn choice(e: &Expr) -> Option<(&Expr, &Expr, &Expr)> {
    match e.kind() {
        ExprKind::IfThenElse(c, x, y) | ExprKind::Select(c, x, y)
            if c.effects().constant() && c.dtype().lanes == 1 =>
        {
            Some((c, x, y))
        }
        _ => None,
    }
}

/// The buffers that a function accesses, if all that it does is of the kinds that are followed:
/// loops, conditions, blocks and stores of expressions that are defined for all data.
fn plain(func: &TensorFunc) -> Option<HashSet<Buffer>> {
    struct Plain {
        is_plain: bool,
        accessed: HashSet<Buffer>,
    }
    impl Visit for Plain {
        fn expr(&mut self, e: &Expr) {
            let effects = e.effects();
            let scalar = e.dtype().lanes == 1 && e.dtype() != DType::HANDLE;
            self.is_plain &= scalar && !effects.impure() && !effects.partial && !effects.binds;
            walk_expr(self, e);
        }
        fn access(&mut self, b: &Buffer, _: &[Expr], _: bool) {
            self.accessed.insert(b.clone());
        }
        fn stmt(&mut self, s: &Stmt) {
            self.is_plain &= match s.kind() {
                StmtKind::Store { .. }
                | StmtKind::For { .. }
                | StmtKind::If { .. }
                | StmtKind::Seq(_)
                | StmtKind::Allocate { .. } => true,
                StmtKind::Block { block, .. } => block.matches.is_empty(),
                StmtKind::Let { value, .. } => value.dtype() != DType::HANDLE,
                StmtKind::Evaluate(e) => e.as_int().is_some(),
                _ => false,
            };
            walk_stmt(self, s);
        }
    }
    let scratch = func.scratch_count() != 0;
    let mut plain =
        Plain { is_plain: func.ret.is_none() && !scratch, accessed: HashSet::default() };
    plain.stmt(&func.body);
    plain.is_plain.then_some(plain.accessed)
}

/// Whether a statement does nothing illegal, and all its accesses are known.
fn is_legal(scop: &Scop, stmt: &ScopStmt) -> bool {
    let acts = match &stmt.act {
        Act::Store(_) | Act::Read => true,
        Act::Enter(values) => match scop.text.get(stmt.place).map(Stmt::kind) {
            Some(StmtKind::Block { block, .. }) => {
                block.iters.len() == values.len()
                    && block.iters.iter().zip(values).all(|(i, v)| is_within(v, &i.domain, stmt))
            }
            _ => false,
        },
        Act::Fact(_) | Act::Permit | Act::Call => false,
    };
    acts && stmt.guards.iter().all(|g| !overflows(&g.cond, &stmt.domain))
        && stmt.accesses.iter().all(|t| {
            let own = t.indices.iter().skip(scop.lifetime(&t.buffer));
            own.zip(&t.buffer.shape).all(|(i, n)| is_within(i, &Range::upto(n.clone()), stmt))
        })
}

fn is_within(e: &Expr, range: &Range, stmt: &ScopStmt) -> bool {
    let inside = range.min.clone().less_equal(e.clone());
    let inside = inside.and(e.clone().less(range.min.clone() + range.extent.clone()));
    !overflows(e, &stmt.domain) && stmt.domain.proves(&inside)
}
