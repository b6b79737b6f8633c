//! What memory holds at a place of a function.
//!
//! [`Facts`] goes through a function in the order in which it runs. At each place it knows, for
//! some cells of some buffers, their value as an expression: from `T.assume(A[i] == value)`, from
//! guards (`if A[i] == value`), and from stores. A fact is a statement about many cells,
//!
//! ```text
//! for all x in domain: buffer[indices(x)] == value(x)
//! ```
//!
//! where the loops around the place have their values of the moment and `x` are those that are
//! already over. The rules:
//!
//! * A store takes its cell out of the domains of the facts about its buffer. What was stored is
//!   a fact of its own, unless it was read from the same buffer and is not known.
//! * Inside of a loop, facts from before hold for the cells that no earlier iteration has written.
//!   After it, they hold for the cells that no iteration has written; and those that the body has
//!   left hold for all iterations, without the cells that later iterations have written.
//! * A fact under a guard has the guard in its domain. What was learned under a condition that
//!   depends on memory ends with it, like what the condition itself says.
//! * A value that reads memory holds until that memory may change.
//! * A store of what the cell holds is none: of the fact's own value, or of a sum with what is
//!   known to be zero.
//! * A call that may do anything ends everything.
//!
//! What happens is only noted (`log`); sets are made when a cell is asked for, of what happened to
//! it. All of them are exact or the fact is not used.
//!
//! A pass that walks a function calls `enter_*`, [`Facts::leave`], [`Facts::store`], [`Facts::assume`] where it comes past them, or
//! [`Facts::run`] for a statement that it does not look into, and asks [`Facts::value`]:
//!
//! ```
//! # use tilewright_ir::{Buffer, DType, Expr, Param, Stmt, TensorFunc, Var};
//! # use tilewright_analysis::facts::Facts;
//! let (a, i) = (Buffer::with_extents("A", &[16], DType::I32), Var::index("i"));
//! // for i in range(16): A[i] = i * 2
//! let fill = Stmt::serial(&i, Expr::i32(16), Stmt::store(&a, vec![i.expr()], &i * 2));
//! let func = TensorFunc::new(vec![Param::tensor(&a)], fill.clone());
//! let mut facts = Facts::new(&func);
//! facts.run(&fill);
//! let n = Var::index("n");
//! facts.enter_branch(&n.expr().greater_equal(0).and(n.expr().less(8)), true);
//! assert_eq!(facts.value(&a, &[&n + 8]).map(|e| e.to_string()).as_deref(), Some("(n + 8) * 2"));
//! assert!(facts.value(&a, &[&n + 9]).is_none());
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! **Limits.** Indices, ranges and guards count if they are affine and do not read memory. Facts
//! that a loop leaves for its own later iterations are not found. Sixteen are kept for each
//! buffer, the latest ones.

mod log;
mod terms;

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::condition::CellFact;
use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{fold_expr_children, free_vars};
use tilewright_ir::{
    Block, Buffer, DType, Expr, ExprKind, Fold, ForKind, Range, Stmt, StmtKind, TensorFunc, Var,
    Visit,
};

use crate::lane::lane_of;
use log::{Change, Fact, Log, Others, Read, Write};
use terms::{folded, loads};
use tilewright_polyhedral::place::{Place, Placed, ScopeStep, walk_stmt_placed};
use tilewright_polyhedral::points::Points;
use tilewright_polyhedral::scope::{MAX_VALUE, Scope};

/// The values that cells of memory have at a place; see the module.
pub struct Facts {
    /// What is known at the place of indices alone.
    scope: Scope,
    /// What was entered, outermost first.
    entered: Vec<Entered>,
    /// By the pointer of the memory that they are about.
    logs: HashMap<Var, Log>,
    /// How often memory may have changed, by its pointer.
    version: HashMap<Var, usize>,
    /// What each loop writes.
    written: HashMap<Var, Rc<Written>>,
    /// The pointer that another one was made from.
    origin: HashMap<Var, Var>,
    /// The lane of vectors.
    lane: Var,
    /// How much has happened.
    clock: usize,
    pass: Pass,
    /// Cells that were asked for at this place, and the answers.
    asked: RefCell<Vec<Asked>>,
}

/// A cell and its value.
type Asked = (Buffer, Vec<Expr>, Option<Expr>);

/// What a walk is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Find what each loop writes.
    Survey,
    /// Know what memory holds.
    Run,
    /// Know nothing, because memory is reached in ways that are not understood.
    Off,
}

/// What some statements write.
#[derive(Default)]
pub struct Written {
    /// By the pointer.
    writes: HashMap<Var, Vec<Rc<Write>>>,
    /// Something else may have happened.
    anything: bool,
}

/// Something that was entered.
struct Entered {
    outside: Scope,
    kind: Kind,
    /// Pointers with facts that end here.
    ending: Vec<Var>,
}

enum Kind {
    Loop {
        var: Var,
        range: Range,
        /// Whether its bounds are.
        known: bool,
        ordered: bool,
        /// When it began.
        since: usize,
        /// What there was before about the memory that the loop writes.
        before: HashMap<Var, Log>,
    },
    /// A guard; whether it depends on more than loops and sizes.
    Branch {
        opaque: bool,
    },
    Let,
    /// Memory of its own.
    Allocate(Vec<Buffer>),
}

impl Facts {
    /// Nothing is known yet, and nothing of the function's body has run.
    pub fn new(func: &TensorFunc) -> Facts {
        let mut facts = Facts::survey(Scope::at_entry(func));
        facts.run(&func.body);
        if facts.pass == Pass::Survey {
            facts.pass = Pass::Run;
        }
        facts
    }

    /// What goes through statements at a place, and finds what their loops write.
    fn survey(scope: Scope) -> Facts {
        Facts {
            scope,
            entered: Vec::new(),
            logs: HashMap::default(),
            version: HashMap::default(),
            written: HashMap::default(),
            origin: HashMap::default(),
            lane: Var::index("lane"),
            clock: 0,
            pass: Pass::Survey,
            asked: RefCell::default(),
        }
    }

    /// The value of a cell at this place, in terms of the indices as they are given and of the
    /// loops around the place. It may read other memory, but has no effects.
    pub fn value(&self, buffer: &Buffer, indices: &[Expr]) -> Option<Expr> {
        let log = self.logs.get(self.root(&buffer.data))?;
        let same = |(b, at, _): &&Asked| {
            b == buffer && at.iter().zip(indices).all(|(x, y)| same_expr(x, y))
        };
        if let Some((.., value)) = self.asked.borrow().iter().find(same) {
            return value.clone();
        }
        let read = self.read(buffer, indices)?;
        let value = log.value(&read, |fact| self.is_current(fact));
        self.asked.borrow_mut().push((buffer.clone(), indices.to_vec(), value.clone()));
        value
    }

    /// What a statement at this place writes.
    pub fn written_by(&self, s: &Stmt) -> Rc<Written> {
        let all = Var::index("all");
        let mut survey = Facts {
            written: HashMap::from_iter([(all.clone(), Rc::default())]),
            origin: self.origin.clone(),
            lane: self.lane.clone(),
            ..Facts::survey(self.scope.clone())
        };
        // As the body of a loop whose iterations are one.
        let (var, before) = (all.clone(), HashMap::default());
        let range = Range::upto(Expr::i32(1));
        let kind = Kind::Loop { var, range, known: true, ordered: true, since: 0, before };
        survey.push(self.scope.clone(), kind);
        survey.run(s);
        if survey.pass == Pass::Off || self.pass == Pass::Off {
            survey.forget_all();
        }
        survey.written.remove(&all).unwrap_or_default()
    }

    /// Takes a statement of the function for one of this place, where it ran in part of the cases
    /// only: what its loops write is found anew.
    pub fn move_here(&mut self, s: &Stmt) {
        let (origin, lane) = (self.origin.clone(), self.lane.clone());
        let mut survey = Facts { origin, lane, ..Facts::survey(self.scope.clone()) };
        survey.run(s);
        if survey.pass == Pass::Off {
            self.pass = Pass::Off;
        }
        self.written.extend(survey.written);
    }

    /// The buffer of an element that an expression reads and that may have changed when all of that
    /// is written. The place of both is this one.
    pub fn may_change(&self, written: &Written, e: &Expr) -> Option<Buffer> {
        loads(e).into_iter().find_map(|load| {
            let ExprKind::Load(buffer, indices) = load.kind() else { return None };
            let Some(writes) = written.writes.get(self.root(&buffer.data)) else {
                return written.anything.then(|| buffer.clone());
            };
            let Some(read) = self.read(buffer, indices) else { return Some(buffer.clone()) };
            (written.anything
                || !writes.iter().all(|w| self.change(w, None, written).leaves(&read)))
            .then(|| buffer.clone())
        })
    }

    /// Lets a whole statement happen.
    pub fn run(&mut self, s: &Stmt) {
        self.stmt(s);
    }

    /// Goes into a loop.
    pub fn enter_loop(&mut self, var: &Var, range: &Range, kind: &ForKind) {
        let mut inside = self.scope.clone();
        let known = inside.enter(var, range);
        let range = Range {
            min: self.scope.inlined(&range.min),
            extent: self.scope.inlined(&range.extent),
        };
        let ordered = matches!(kind, ForKind::Serial | ForKind::Unrolled);
        let written = self.written.entry(var.clone()).or_default().clone();
        let mut before = HashMap::default();
        if written.anything {
            self.forget_all();
        }
        for (memory, writes) in &written.writes {
            self.touch(memory);
            let Some(log) = self.logs.remove(memory).filter(|_| known) else { continue };
            let mut inside = log.clone();
            let (var, range) = (var.clone(), range.clone());
            let others = Some(Others { var, range, ordered, before: true });
            for write in writes {
                inside.change(self.change(write, others.clone(), &written), self.clock);
            }
            self.logs.insert(memory.clone(), inside);
            before.insert(memory.clone(), log);
        }
        let since = self.clock + 1;
        let kind = Kind::Loop { var: var.clone(), range, known, ordered, since, before };
        let outside = std::mem::replace(&mut self.scope, inside);
        self.push(outside, kind);
    }

    /// Goes into the part of a branch where a condition holds, or does not.
    pub fn enter_branch(&mut self, cond: &Expr, holds: bool) {
        let outside = self.scope.clone();
        let opaque = !self.scope.learn(cond, holds);
        self.push(outside, Kind::Branch { opaque });
        if opaque {
            self.assume(&cond.clone().being(holds));
        }
    }

    /// Goes into the scope of a binding.
    pub fn enter_let(&mut self, var: &Var, value: &Expr) {
        self.push(self.scope.clone(), Kind::Let);
        if var.dtype() == DType::HANDLE {
            match self.scope.inlined(value).as_var() {
                Some(pointer) => {
                    let root = self.root(pointer).clone();
                    self.origin.insert(var.clone(), root);
                }
                None => self.pass = Pass::Off,
            }
        }
        self.scope.bind(var, value);
    }

    /// Goes into memory that a statement allocates or, for a view, declares.
    pub fn enter_buffer(&mut self, buffer: &Buffer) {
        self.push(self.scope.clone(), Kind::Allocate(vec![buffer.clone()]));
    }

    /// Goes into a block, at the place of its body. The initialisation is a branch of its own in
    /// it, under [`first`](tilewright_polyhedral::place::first).
    pub fn enter_block(&mut self, bindings: &[Expr], predicate: &Expr, block: &Block) {
        self.enter_branch(predicate, true);
        self.scope.go(ScopeStep::Block(bindings, block));
        for m in &block.matches {
            let source = self.root(&m.source.buffer.data).clone();
            self.origin.insert(m.buffer.data.clone(), source);
        }
        let views = block.matches.iter().map(|m| m.buffer.clone());
        let own = block.allocs.iter().cloned().chain(views).collect();
        self.push(self.scope.clone(), Kind::Allocate(own));
    }

    /// Goes out of the block that was entered last.
    pub fn leave_block(&mut self) {
        self.leave();
        self.leave();
    }

    /// Goes out of what was entered last.
    pub fn leave(&mut self) {
        self.asked.take();
        let depth = self.entered.len();
        let Some(Entered { outside, kind, ending }) = self.entered.pop() else { return };
        self.scope = outside;
        for memory in ending {
            if let Some(log) = self.logs.get_mut(&memory) {
                log.retain(|f| f.until < depth);
            }
        }
        match kind {
            Kind::Loop { var, range, known, ordered, since, before } => {
                self.leave_loop(&var, known.then_some(range), ordered, since, before);
            }
            Kind::Allocate(buffers) => {
                for b in buffers {
                    let memory = self.root(&b.data).clone();
                    self.touch(&memory);
                    self.logs.remove(&memory);
                }
            }
            Kind::Branch { .. } | Kind::Let => {}
        }
    }

    fn leave_loop(
        &mut self,
        var: &Var,
        range: Option<Range>,
        ordered: bool,
        since: usize,
        mut before: HashMap<Var, Log>,
    ) {
        let written = self.written.get(var).cloned().unwrap_or_default();
        if written.anything {
            self.forget_all();
            return;
        }
        for (memory, writes) in &written.writes {
            self.touch(memory);
            let inside = self.logs.remove(memory).unwrap_or_default();
            let Some(range) = &range else { continue };
            let mut log = before.remove(memory).unwrap_or_default();
            if !log.is_empty() {
                for write in writes {
                    log.change(self.change(write, None, &written), self.clock);
                }
            }
            let new = inside.left(since, |fact| self.is_current(fact));
            if !new.is_empty() {
                let (var, range) = (var.clone(), range.clone());
                let others = Some(Others { var, range, ordered, before: false });
                let later = writes.iter().map(|w| self.change(w, others.clone(), &written));
                let later: Vec<Rc<Change>> = later.map(Rc::new).collect();
                for (born, fact) in new {
                    log.learn(fact.except(later.iter().cloned()), born);
                }
            }
            if !log.is_empty() {
                self.logs.insert(memory.clone(), log);
            }
        }
    }

    /// The store `buffer[indices] = value` happens.
    pub fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) {
        let memory = self.root(&buffer.data).clone();
        let place = self.place(indices);
        let scalar = lane_of(value, &self.lane);
        let (points, at) = match place {
            Some((points, at)) => (points, at.iter().all(|i| self.scope.knows(i)).then_some(at)),
            None => (self.scope.points().clone(), None),
        };
        let value = match scalar {
            Some(value) => {
                let value = self.scope.inlined(&value);
                let resolved = self.resolve(&value);
                if resolved.size() <= MAX_VALUE { resolved } else { value }
            }
            None => Expr::undef(buffer.dtype()),
        };
        let write = Rc::new(Write { buffer: buffer.clone(), points, indices: at, value });
        if self.pass == Pass::Survey {
            self.inside(|w| w.writes.entry(memory.clone()).or_default().push(write.clone()));
            return;
        }
        self.touch(&memory);
        if let Some(mut log) = self.logs.remove(&memory) {
            let change = self.change(&write, None, &Written::default());
            log.change(change, self.clock);
            self.logs.insert(memory, log);
        }
        if let Some(indices) = &write.indices {
            self.learn(buffer, write.points.clone(), indices.clone(), write.value.clone());
        }
    }

    /// From here on a condition holds.
    pub fn assume(&mut self, cond: &Expr) {
        self.scope.inlined(cond).conjuncts().iter().for_each(|part| self.state(part));
    }

    /// Something happens that may change any memory.
    pub fn forget_all(&mut self) {
        self.asked.take();
        self.logs.clear();
        if self.pass == Pass::Survey {
            self.inside(|written| written.anything = true);
        }
    }

    /// The loops around, as found so far.
    fn inside(&mut self, mut note: impl FnMut(&mut Written)) {
        for entered in &self.entered {
            if let Kind::Loop { var, .. } = &entered.kind
                && let Some(written) = self.written.get_mut(var).and_then(Rc::get_mut)
            {
                note(written);
            }
        }
    }

    fn push(&mut self, outside: Scope, kind: Kind) {
        self.asked.take();
        self.entered.push(Entered { outside, kind, ending: Vec::new() });
    }

    /// The pointer of the memory that a pointer points into.
    fn root<'a>(&'a self, data: &'a Var) -> &'a Var {
        self.origin.get(data).unwrap_or(data)
    }

    fn touch(&mut self, memory: &Var) {
        self.asked.take();
        *self.version.entry(memory.clone()).or_default() += 1;
    }

    fn version(&self, memory: &Var) -> usize {
        self.version.get(memory).copied().unwrap_or_default()
    }

    fn is_current(&self, fact: &Fact) -> bool {
        fact.reads.iter().all(|(memory, version)| self.version(memory) == *version)
    }

    /// A value with what is known of memory in the place of loads, where that reads no memory.
    pub fn resolve(&self, value: &Expr) -> Expr {
        struct Resolve<'a>(&'a Facts);
        impl Fold for Resolve<'_> {
            fn expr(&mut self, e: &Expr) -> Expr {
                let e = fold_expr_children(self, e);
                let ExprKind::Load(buffer, indices) = e.kind() else { return e };
                self.0.value(buffer, indices).filter(|v| v.effects().constant()).unwrap_or(e)
            }
        }
        if self.logs.is_empty() { value.clone() } else { Resolve(self).expr(value) }
    }

    /// Indices in terms of loops, and of the lane where they are vectors.
    fn place(&self, indices: &[Expr]) -> Option<(Points, Vec<Expr>)> {
        let at: Vec<Expr> = indices.iter().map(|i| self.scope.inlined(i)).collect();
        match at.iter().map(|i| i.dtype().lanes).max() {
            None | Some(1) => Some((self.scope.points().clone(), at)),
            Some(lanes) => {
                let lane = Range::upto(Expr::i32(i32::from(lanes)));
                let at = at.iter().map(|i| lane_of(i, &self.lane)).collect::<Option<_>>()?;
                Some((self.scope.points().with_var(&self.lane, &lane), at))
            }
        }
    }

    /// A cell that is read here.
    fn read<'a>(&'a self, buffer: &'a Buffer, indices: &'a [Expr]) -> Option<Read<'a>> {
        let (points, at) = self.place(indices)?;
        let (loops, access) = (self.scope.loops(), OnceCell::new());
        Some(Read { buffer, points, at, indices, loops, access })
    }

    /// What a write does in other iterations, or in all. It changes nothing where one of its operands has a
    /// value, in memory that `written` does not mention, that leaves what the cell holds:
    /// `B[i] + A[j] * x` where `A[j] == 0`.
    fn change(&self, write: &Rc<Write>, others: Option<Others>, written: &Written) -> Change {
        let mut except = Vec::new();
        if let Some(at) = write.indices.as_ref().filter(|_| !self.logs.is_empty()) {
            let own = Expr::load(&write.buffer, at.clone());
            for load in loads(&write.value) {
                let ExprKind::Load(buffer, indices) = load.kind() else { continue };
                let memory = self.root(&buffer.data);
                let Some(log) = self.logs.get(memory) else { continue };
                if written.writes.contains_key(memory)
                    || !indices.iter().all(|i| self.scope.knows(i))
                {
                    continue;
                }
                let left = log
                    .left(0, |fact| {
                        let value = &fact.value;
                        let constant = value.as_int().is_some() || value.as_float().is_some();
                        fact.buffer == *buffer
                            && constant
                            && self.is_current(fact)
                            && same_expr(&folded(&write.value, &load, value), &own)
                    })
                    .into_iter();
                except.extend(left.map(|(_, fact)| (indices.clone(), fact)));
            }
        }
        Change::new(write, others, self.scope.loops(), except)
    }

    /// A part of a conjunction that holds here.
    fn state(&mut self, part: &Expr) {
        let Some(fact) = CellFact::all(part)
            .into_iter()
            .find(|fact| fact.unless.iter().all(|e| self.scope.knows(e)))
        else {
            return;
        };
        let Some((here, at)) = self.place(&fact.indices) else { return };
        if at.iter().all(|i| self.scope.knows(i)) {
            let points = fact.unless.into_iter().fold(here, |p, e| p.with_guard(&!e));
            self.learn(&fact.buffer, points, at, fact.value);
        }
    }

    /// Takes down a fact; everything in terms of loops.
    fn learn(&mut self, buffer: &Buffer, points: Points, indices: Vec<Expr>, value: Expr) {
        let memory = self.root(&buffer.data).clone();
        let read = value.loaded_buffers();
        let read: HashSet<Var> = read.iter().map(|b| self.root(&b.data).clone()).collect();
        let usable = !value.effects().impure() && value.size() <= MAX_VALUE;
        if self.pass != Pass::Run || !usable || read.contains(&memory) {
            return;
        }
        let mut until = self
            .entered
            .iter()
            .rposition(|s| {
                matches!(s.kind, Kind::Branch { opaque: true } | Kind::Loop { known: false, .. })
            })
            .map_or(0, |at| at + 1);
        for v in free_vars(&value).iter().filter(|v| self.scope.hides(v)) {
            until = until.max(self.entered.partition_point(|s| !s.outside.hides(v)));
        }
        if let Some(entered) = until.checked_sub(1).and_then(|at| self.entered.get_mut(at)) {
            entered.ending.push(memory.clone());
        }
        let reads = read.into_iter().map(|m| (m.clone(), self.version(&m))).collect();
        self.asked.take();
        self.clock += 1;
        let fact = Rc::new(Fact::new((buffer, points, indices), value, reads, until));
        self.logs.entry(memory).or_default().learn(fact, self.clock);
    }
}

impl Placed for Facts {
    type At = Scope;

    fn at(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn within(&mut self, step: ScopeStep<'_>, work: impl FnOnce(&mut Self)) {
        let depth = self.entered.len();
        match step {
            ScopeStep::Loop(var, range, kind) => self.enter_loop(var, range, kind),
            ScopeStep::Holds(cond, holds) => self.enter_branch(cond, holds),
            ScopeStep::Value(var, value) => self.enter_let(var, value),
            ScopeStep::Memory(buffer) => self.enter_buffer(buffer),
            ScopeStep::Block(bindings, block) => {
                self.enter_block(bindings, &Expr::bool(true), block);
            }
        }
        work(self);
        while self.entered.len() > depth {
            self.leave();
        }
    }
}

impl Visit for Facts {
    fn expr(&mut self, _: &Expr) {}

    fn stmt(&mut self, s: &Stmt) {
        if s.own_effects().calls {
            self.forget_all();
        }
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => self.store(buffer, indices, value),
            StmtKind::Assume(cond) | StmtKind::Assert { cond, .. } => self.assume(cond),
            _ => walk_stmt_placed(self, s),
        }
    }
}
