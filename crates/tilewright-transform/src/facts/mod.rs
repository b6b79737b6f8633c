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
//! All sets are exact or the fact is not there. So a pass that walks a function calls `enter_*`,
//! [`Facts::leave`], [`Facts::store`], [`Facts::assume`] where it comes past them, or
//! [`Facts::run`] for a statement that it does not look into, and asks [`Facts::value`]:
//!
//! ```
//! # use tilewright_ir::{Buffer, DType, Expr, Param, Stmt, TensorFunc, Var};
//! # use tilewright_transform::facts::Facts;
//! let (a, i) = (Buffer::with_extents("A", &[16], DType::I32), Var::index("i"));
//! // for i in range(16): A[i] = i * 2
//! let fill = Stmt::serial(&i, Expr::i32(16), Stmt::store(&a, vec![i.expr()], &i * 2));
//! let func = TensorFunc::new(vec![Param::tensor(&a)], fill.clone());
//! let mut facts = Facts::new(&func)?;
//! facts.run(&fill);
//! let n = Var::index("n");
//! facts.enter_branch(&n.expr().greater_equal(0).and(n.expr().less(8)));
//! assert_eq!(facts.value(&a, &[&n + 8]).map(|e| e.to_string()).as_deref(), Some("(n + 8) * 2"));
//! assert!(facts.value(&a, &[&n + 9]).is_none());
//! # Ok::<(), tilewright_ir::Error>(())
//! ```
//!
//! **Limits.** Indices, ranges and guards count if they are affine and do not read memory. Facts
//! that a loop leaves for its own later iterations are not found. [`MAX_FACTS`] are kept for each
//! buffer, the latest ones.

mod cells;
mod terms;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{Subst, fold_expr_children, free_vars, walk_stmt};
use tilewright_ir::{
    Block, Buffer, DType, Expr, ExprKind, Fold, ForKind, IterKind, Range, Result, Stmt, StmtKind,
    TensorFunc, Var, Visit,
};
use tilewright_sets::{Access, Domain, Engine, Set};

use cells::{Fact, Form, Write, by_cells, cut, image};
use terms::{Reads, equation, folded, in_lane, loads, split};
pub(crate) use terms::{calls, is_plain};

/// Most facts about one buffer.
pub const MAX_FACTS: usize = 16;

/// The values that cells of memory have at a place; see the module.
pub struct Facts {
    /// What the loops and guards around the place say, as far as it does not read memory.
    here: Domain,
    /// Loops around the place, outermost first.
    loops: Vec<(Var, Range)>,
    scopes: Vec<Scope>,
    /// Values of block iteration variables and lets, in terms of loops.
    bind: Subst,
    /// Variables whose value is not known, with the depth of their scope.
    opaque: HashMap<Var, usize>,
    /// By the pointer of the memory that they are about.
    facts: HashMap<Var, Vec<Rc<Fact>>>,
    /// How often memory may have changed, by its pointer.
    version: HashMap<Var, usize>,
    /// What each loop writes.
    written: HashMap<Var, Rc<Written>>,
    /// The pointer that another one was made from.
    origin: HashMap<Var, Var>,
    /// The lane of vectors.
    lane: Var,
    /// How many facts there were.
    clock: usize,
    pass: Pass,
}

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

#[derive(Default)]
struct Written {
    /// By the pointer.
    writes: HashMap<Var, Vec<Rc<Write>>>,
    /// Something else may have happened.
    anything: bool,
}

struct Scope {
    /// The domain outside.
    here: Domain,
    kind: Kind,
    /// Variables that are bound here.
    bound: Vec<Var>,
    /// Pointers with facts that end here.
    ending: Vec<Var>,
}

enum Kind {
    Loop {
        var: Var,
        known: bool,
        ordered: bool,
        /// When it began.
        since: usize,
        /// Facts from before about the memory that the loop writes.
        before: HashMap<Var, Vec<Rc<Fact>>>,
    },
    /// A guard; whether it depends on more than loops and sizes.
    Branch {
        opaque: bool,
    },
    Let,
    /// Memory of its own.
    Allocate(Vec<Buffer>),
}

/// Which other iterations of a loop, seen from one of them.
#[derive(Clone, Copy)]
enum Others<'a> {
    Before {
        ordered: bool,
        range: &'a Range,
    },
    After {
        ordered: bool,
        range: &'a Range,
    },
    /// All of them, from outside.
    All,
}

/// A function's domain without loops: its sizes are not negative.
pub(crate) fn sizes(func: &TensorFunc) -> Result<Domain> {
    let mut base = Engine::new()?.domain();
    for dim in func.buffers().flat_map(|b| &b.shape) {
        if dim.as_int().is_none() && is_plain(dim) {
            base = base.with_guard(&dim.clone().greater_equal(0));
        }
    }
    Ok(base)
}

impl Facts {
    /// Nothing is known yet, and nothing of the function's body has run.
    ///
    /// # Errors
    /// `Toolchain` where libisl is missing.
    pub fn new(func: &TensorFunc) -> Result<Facts> {
        let mut facts = Facts {
            here: sizes(func)?,
            loops: Vec::new(),
            scopes: Vec::new(),
            bind: Subst::default(),
            opaque: HashMap::new(),
            facts: HashMap::new(),
            version: HashMap::new(),
            written: HashMap::new(),
            origin: HashMap::new(),
            lane: Var::index("lane"),
            clock: 0,
            pass: Pass::Survey,
        };
        facts.run(&func.body);
        if facts.pass == Pass::Survey {
            facts.pass = Pass::Run;
        }
        Ok(facts)
    }

    /// What the loops and guards around the place say, in terms of loops, as far as it does not
    /// read memory.
    pub fn here(&self) -> &Domain {
        &self.here
    }

    /// The value of a cell at this place, in terms of the indices as they are given and of the
    /// loops around the place. It may read other memory, but has no effects.
    pub fn value(&self, buffer: &Buffer, indices: &[Expr]) -> Option<Expr> {
        let known = self.facts.get(self.root(&buffer.data))?;
        let (here, at) = self.place(indices)?;
        let facts = known.iter().rev().filter(|f| f.buffer == *buffer && self.is_current(f));
        facts.map(|f| self.form(f)).find_map(|form| {
            let (set, value) = form.known.as_ref()?;
            let around = || form.around.iter().map(Var::expr);
            let place: Vec<Expr> = at.iter().cloned().chain(around()).collect();
            let touched = here.map(&place).and_then(|m| m.range(&form.cells)).ok()?;
            if !touched.is_subset(set).is_yes() {
                return None;
            }
            let lanes = indices.last().map_or(1, |i| i.dtype().lanes);
            if lanes == 1 {
                let given = indices.iter().cloned().chain(around());
                let cells = form.cells.iter().zip(given);
                let cells = cells.map(|(c, e)| (c.clone(), e.cast(c.dtype())));
                return Some(Subst::vars(cells).expr(value));
            }
            // The same in all lanes.
            let free = free_vars(value);
            let varies = value.dtype().lanes != 1 || form.cells.iter().any(|c| free.contains(c));
            (!varies).then(|| Expr::broadcast(value.clone(), lanes))
        })
    }

    /// Lets a whole statement happen.
    pub fn run(&mut self, s: &Stmt) {
        self.stmt(s);
    }

    /// Goes into a loop.
    pub fn enter_loop(&mut self, var: &Var, range: &Range, kind: &ForKind) {
        let range =
            Range { min: self.bind.expr(&range.min), extent: self.bind.expr(&range.extent) };
        let known = self.is_known(&range.min) && self.is_known(&range.extent);
        let ordered = matches!(kind, ForKind::Serial | ForKind::Unrolled);
        let outside = self.here.clone();
        let written = self.written.entry(var.clone()).or_default().clone();
        let mut before = HashMap::new();
        if written.anything {
            self.forget_all();
        }
        for (memory, writes) in &written.writes {
            self.touch(memory);
            if let Some(facts) = self.facts.remove(memory) {
                if known {
                    let others = Others::Before { ordered, range: &range };
                    let place = |w: &Write| self.elsewhere(w, var, others, &written);
                    let mut over = self.loops.clone();
                    over.push((var.clone(), range.clone()));
                    let left = cut(&facts, writes, place, &over, None);
                    self.facts.insert(memory.clone(), left);
                }
                before.insert(memory.clone(), facts);
            }
        }
        let since = self.clock + 1;
        self.push(outside, Kind::Loop { var: var.clone(), known, ordered, since, before });
        if known {
            self.here = self.here.with_var(var, &range);
            self.loops.push((var.clone(), range));
        } else {
            self.bind(var, None);
        }
    }

    /// Goes into the part of a branch where a condition holds.
    pub fn enter_branch(&mut self, cond: &Expr) {
        let outside = self.here.clone();
        let mut opaque = false;
        let cond = self.bind.expr(cond);
        let mut parts = Vec::new();
        split(&cond, false, &mut parts);
        for part in &parts {
            match self.is_known(part) {
                true => self.here = self.here.with_guard(part),
                false => opaque = true,
            }
        }
        self.push(outside, Kind::Branch { opaque });
        if opaque {
            parts.iter().for_each(|part| self.state(part));
        }
    }

    /// Goes into the scope of a binding.
    pub fn enter_let(&mut self, var: &Var, value: &Expr) {
        self.push(self.here.clone(), Kind::Let);
        let value = self.bind.expr(value);
        if var.dtype() == DType::HANDLE {
            match value.as_var() {
                Some(pointer) => {
                    let root = self.root(pointer).clone();
                    self.origin.insert(var.clone(), root);
                }
                None => self.pass = Pass::Off,
            }
        }
        self.bind(var, Some(value));
    }

    /// Goes into memory that a statement allocates or, for a view, declares.
    pub fn enter_buffer(&mut self, buffer: &Buffer) {
        self.push(self.here.clone(), Kind::Allocate(vec![buffer.clone()]));
    }

    /// Goes into a block, at the place of its body. The initialisation is a branch of its own in
    /// it, under [`first`].
    pub fn enter_block(&mut self, bindings: &[Expr], predicate: &Expr, block: &Block) {
        self.enter_branch(predicate);
        for (iter, value) in block.iters.iter().zip(bindings) {
            let value = self.bind.expr(value);
            self.bind(&iter.var, Some(value));
        }
        for m in &block.matches {
            let source = self.root(&m.source.buffer.data).clone();
            self.origin.insert(m.buffer.data.clone(), source);
        }
        let views = block.matches.iter().map(|m| m.buffer.clone());
        let own = block.allocs.iter().cloned().chain(views).collect();
        self.push(self.here.clone(), Kind::Allocate(own));
    }

    /// Goes out of the block that was entered last.
    pub fn leave_block(&mut self) {
        self.leave();
        self.leave();
    }

    /// Goes out of what was entered last.
    pub fn leave(&mut self) {
        let depth = self.scopes.len();
        let Some(Scope { here, kind, bound, ending }) = self.scopes.pop() else { return };
        for var in bound {
            self.bind.vars.remove(&var);
            self.opaque.remove(&var);
        }
        for memory in ending {
            if let Some(facts) = self.facts.get_mut(&memory) {
                facts.retain(|f| f.until < depth);
            }
        }
        self.here = here;
        match kind {
            Kind::Loop { var, known, ordered, since, before } => {
                let over = if known { self.loops.pop() } else { None };
                self.leave_loop(&var, over, ordered, since, before);
            }
            Kind::Allocate(buffers) => {
                for b in buffers {
                    let memory = self.root(&b.data).clone();
                    self.touch(&memory);
                    self.facts.remove(&memory);
                }
            }
            Kind::Branch { .. } | Kind::Let => {}
        }
    }

    fn leave_loop(
        &mut self,
        var: &Var,
        range: Option<(Var, Range)>,
        ordered: bool,
        since: usize,
        mut before: HashMap<Var, Vec<Rc<Fact>>>,
    ) {
        let written = self.written.get(var).cloned().unwrap_or_default();
        if written.anything {
            self.forget_all();
            return;
        }
        for (memory, writes) in &written.writes {
            self.touch(memory);
            let inside = self.facts.remove(memory).unwrap_or_default();
            let Some((_, range)) = &range else { continue };
            let mut over = self.loops.clone();
            let mut left = Vec::new();
            if let Some(facts) = before.remove(memory) {
                let place = |w: &Write| self.elsewhere(w, var, Others::All, &written);
                left = cut(&facts, writes, place, &over, None);
            }
            let new: Vec<_> = inside.into_iter().filter(|f| f.born >= since).collect();
            if !new.is_empty() {
                let others = Others::After { ordered, range };
                let place = |w: &Write| self.elsewhere(w, var, others, &written);
                over.push((var.clone(), range.clone()));
                left.extend(cut(&new, writes, place, &over, Some(var)));
            }
            left.retain(|f| self.is_current(f));
            self.facts.insert(memory.clone(), left);
        }
    }

    /// The store `buffer[indices] = value` happens.
    pub fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) {
        let memory = self.root(&buffer.data).clone();
        let place = self.place(indices);
        let scalar = in_lane(value, &self.lane);
        let (domain, at) = match place {
            Some((domain, at)) => (domain, at.iter().all(|i| self.is_known(i)).then_some(at)),
            None => (self.here.clone(), None),
        };
        let value = match scalar {
            Some(value) => {
                let value = self.bind.expr(&value);
                self.resolve(&value)
            }
            None => Expr::undef(buffer.dtype()),
        };
        let write = Write { buffer: buffer.clone(), domain, indices: at, value };
        if self.pass == Pass::Survey {
            let write = Rc::new(write);
            self.inside(|w| w.writes.entry(memory.clone()).or_default().push(write.clone()));
            return;
        }
        self.touch(&memory);
        if let Some(facts) = self.facts.remove(&memory) {
            let place = |w: &Write| {
                let at: Vec<Expr> =
                    w.indices.as_ref()?.iter().cloned().chain(self.loops()).collect();
                image(&self.changing(w, &Written::default()), &at).ok()
            };
            let left = cut(&facts, std::slice::from_ref(&write), place, &self.loops, None);
            self.facts.insert(memory, left);
        }
        if let Some(indices) = &write.indices {
            self.learn(buffer, write.domain.clone(), indices.clone(), write.value.clone());
        }
    }

    /// From here on a condition holds.
    pub fn assume(&mut self, cond: &Expr) {
        let mut parts = Vec::new();
        split(&self.bind.expr(cond), false, &mut parts);
        parts.iter().for_each(|part| self.state(part));
    }

    /// Something happens that may change any memory.
    pub fn forget_all(&mut self) {
        self.facts.clear();
        if self.pass == Pass::Survey {
            self.inside(|written| written.anything = true);
        }
    }

    /// The loops around, as found so far.
    fn inside(&mut self, mut note: impl FnMut(&mut Written)) {
        for scope in &self.scopes {
            if let Kind::Loop { var, .. } = &scope.kind
                && let Some(written) = self.written.get_mut(var).and_then(Rc::get_mut)
            {
                note(written);
            }
        }
    }

    fn push(&mut self, here: Domain, kind: Kind) {
        self.scopes.push(Scope { here, kind, bound: Vec::new(), ending: Vec::new() });
    }

    fn loops(&self) -> impl Iterator<Item = Expr> {
        self.loops.iter().map(|(v, _)| v.expr())
    }

    /// The pointer of the memory that a buffer is, or is a view of.
    pub fn memory_of<'a>(&'a self, buffer: &'a Buffer) -> &'a Var {
        self.root(&buffer.data)
    }

    /// The pointer of the memory that a pointer points into.
    fn root<'a>(&'a self, data: &'a Var) -> &'a Var {
        self.origin.get(data).unwrap_or(data)
    }

    fn touch(&mut self, memory: &Var) {
        *self.version.entry(memory.clone()).or_default() += 1;
    }

    fn version(&self, memory: &Var) -> usize {
        self.version.get(memory).copied().unwrap_or_default()
    }

    fn is_current(&self, fact: &Fact) -> bool {
        fact.reads.iter().all(|(memory, version)| self.version(memory) == *version)
    }

    /// Binds a variable in the innermost scope.
    fn bind(&mut self, var: &Var, value: Option<Expr>) {
        match value.filter(|v| self.is_known(v)) {
            Some(value) => drop(self.bind.vars.insert(var.clone(), value)),
            None => drop(self.opaque.insert(var.clone(), self.scopes.len())),
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.bound.push(var.clone());
        }
    }

    /// A value with what is known of memory in the place of loads, where that reads no memory.
    pub fn resolve(&self, value: &Expr) -> Expr {
        struct Resolve<'a>(&'a Facts);
        impl Fold for Resolve<'_> {
            fn expr(&mut self, e: &Expr) -> Expr {
                let e = fold_expr_children(self, e);
                let ExprKind::Load(buffer, indices) = e.kind() else { return e };
                self.0.value(buffer, indices).filter(is_plain).unwrap_or(e)
            }
        }
        match self.facts.is_empty() {
            true => value.clone(),
            false => Resolve(self).expr(value),
        }
    }

    /// Whether an expression depends on loops and sizes only.
    fn is_known(&self, e: &Expr) -> bool {
        is_plain(e) && free_vars(e).iter().all(|v| !self.opaque.contains_key(v))
    }

    /// Indices in terms of loops, and of the lane where they are vectors.
    fn place(&self, indices: &[Expr]) -> Option<(Domain, Vec<Expr>)> {
        let mut bind = self.bind.clone();
        let at: Vec<Expr> = indices.iter().map(|i| bind.expr(i)).collect();
        match at.iter().map(|i| i.dtype().lanes).max() {
            None | Some(1) => Some((self.here.clone(), at)),
            Some(lanes) => {
                let lane = Range::upto(Expr::i32(i32::from(lanes)));
                let at = at.iter().map(|i| in_lane(i, &self.lane)).collect::<Option<_>>()?;
                Some((self.here.with_var(&self.lane, &lane), at))
            }
        }
    }

    fn form(&self, fact: &Fact) -> Rc<Form> {
        let mut around: Vec<Var> = self.loops.iter().map(|(v, _)| v.clone()).collect();
        around.retain(|v| fact.domain.vars().any(|x| x == v));
        let made = fact.form.borrow().clone().filter(|form| form.around == around);
        made.unwrap_or_else(|| {
            let place: Vec<Expr> =
                fact.indices.iter().cloned().chain(around.iter().map(Var::expr)).collect();
            let named = |e: &Expr| Var::new("cell", e.dtype());
            let cells: Vec<Var> = place.iter().map(named).collect();
            let known = by_cells(fact, &place, &cells, &around).ok();
            let form = Rc::new(Form { around, cells, known });
            *fact.form.borrow_mut() = Some(form.clone());
            form
        })
    }

    /// Where a write of a loop's body changes something in other iterations: by indices, the loops
    /// around, and, unless it is all iterations, the loop itself. `None` for anywhere.
    fn elsewhere(
        &self,
        write: &Write,
        var: &Var,
        others: Others<'_>,
        written: &Written,
    ) -> Option<Set> {
        let at: Vec<Expr> = write.indices.as_ref()?.iter().cloned().chain(self.loops()).collect();
        let domain = self.changing(write, written);
        let outer = |v: &&Var| self.loops.iter().all(|(x, _)| x != *v);
        let inner: Vec<Var> = domain.vars().filter(outer).cloned().collect();
        let (there, names) = Access::new(&domain, &at).elsewhere_in(&inner);
        let (Others::Before { ordered, range } | Others::After { ordered, range }) = others else {
            return image(&there.domain, &there.indices).ok();
        };
        let other = names.get(var)?.expr();
        let domain = there.domain.with_var(var, range).with_guard(&match others {
            _ if !ordered => other.not_equal(var),
            Others::Before { .. } => other.less(var),
            _ => other.greater(var),
        });
        image(&domain, &[there.indices, vec![var.expr()]].concat()).ok()
    }

    /// The points at which a write may change its cell. It does not where one of its operands has
    /// a value, in memory that `written` does not mention, that leaves what the cell holds:
    /// `B[i] + A[j] * x` where `A[j] == 0`.
    fn changing(&self, write: &Write, written: &Written) -> Domain {
        let mut domain = write.domain.clone();
        let Some(at) = &write.indices else { return domain };
        let own = Expr::load(&write.buffer, at.clone());
        for load in loads(&write.value) {
            let ExprKind::Load(buffer, indices) = load.kind() else { continue };
            let memory = self.memory_of(buffer);
            if written.writes.contains_key(memory) || !indices.iter().all(|i| self.is_known(i)) {
                continue;
            }
            for fact in self.facts.get(memory).into_iter().flatten() {
                let form = self.form(fact);
                let Some((set, value)) = &form.known else { continue };
                let constant = value.as_int().is_some() || value.as_float().is_some();
                let usable = fact.buffer == *buffer && self.is_current(fact) && set.is_exact();
                if !usable || !constant || !same_expr(&folded(&write.value, &load, value), &own) {
                    continue;
                }
                let around = form.around.iter().map(Var::expr);
                let place: Vec<Expr> = indices.iter().cloned().chain(around).collect();
                domain = domain.outside(&place, set).unwrap_or(domain);
            }
        }
        domain
    }

    /// A part of a conjunction that holds here.
    fn state(&mut self, part: &Expr) {
        // `a or b or A[i] == v`: A[i] == v where neither a nor b.
        let mut fails = Vec::new();
        split(part, true, &mut fails);
        let (guards, rest): (Vec<Expr>, Vec<Expr>) =
            fails.into_iter().partition(|e| self.is_known(e));
        let [fails] = rest.as_slice() else { return };
        let Some((buffer, indices, value)) = equation(fails, false) else { return };
        let Some((here, at)) = self.place(&indices) else { return };
        if at.iter().all(|i| self.is_known(i)) {
            let domain = guards.iter().fold(here, |d, g| d.with_guard(g));
            self.learn(&buffer, domain, at, value);
        }
    }

    /// Takes down a fact; everything in terms of loops.
    fn learn(&mut self, buffer: &Buffer, domain: Domain, indices: Vec<Expr>, value: Expr) {
        let memory = self.root(&buffer.data).clone();
        let mut reads = Reads::default();
        reads.expr(&value);
        let read: Vec<Var> = reads.memory.iter().map(|m| self.root(m).clone()).collect();
        if self.pass != Pass::Run || !reads.pure || read.contains(&memory) {
            return;
        }
        let conditional = |s: &Scope| {
            matches!(s.kind, Kind::Branch { opaque: true } | Kind::Loop { known: false, .. })
        };
        let mut until = self.scopes.iter().rposition(conditional).map_or(0, |at| at + 1);
        for v in free_vars(&value) {
            until = until.max(self.opaque.get(&v).copied().unwrap_or_default());
        }
        if let Some(scope) = until.checked_sub(1).and_then(|at| self.scopes.get_mut(at)) {
            scope.ending.push(memory.clone());
        }
        let reads = read.into_iter().map(|m| (m.clone(), self.version(&m))).collect();
        self.clock += 1;
        let (buffer, born, form) = (buffer.clone(), self.clock, RefCell::default());
        let facts = self.facts.entry(memory).or_default();
        facts.push(Rc::new(Fact { buffer, domain, indices, value, reads, born, until, form }));
        if facts.len() > MAX_FACTS {
            facts.remove(0);
        }
    }
}

impl Visit for Facts {
    fn stmt(&mut self, s: &Stmt) {
        if calls(s) {
            self.forget_all();
        }
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => self.store(buffer, indices, value),
            StmtKind::For { var, range, kind, body, .. } => {
                self.enter_loop(var, range, kind);
                self.stmt(body);
                self.leave();
            }
            StmtKind::If { cond, then, otherwise } => {
                self.enter_branch(cond);
                self.stmt(then);
                self.leave();
                if let Some(otherwise) = otherwise {
                    self.enter_branch(&!cond.clone());
                    self.stmt(otherwise);
                    self.leave();
                }
            }
            StmtKind::Let { var, value, body } => {
                self.enter_let(var, value);
                self.stmt(body);
                self.leave();
            }
            StmtKind::Allocate { buffer, body, .. }
            | StmtKind::Constant { buffer, body, .. }
            | StmtKind::Declare { buffer, body } => {
                self.enter_buffer(buffer);
                self.stmt(body);
                self.leave();
            }
            StmtKind::Block { bindings, predicate, block } => {
                self.enter_block(bindings, predicate, block);
                if let Some(init) = &block.init {
                    self.enter_branch(&first(block));
                    self.stmt(init);
                    self.leave();
                }
                self.stmt(&block.body);
                self.leave_block();
            }
            StmtKind::Assume(cond) | StmtKind::Assert { cond, .. } => self.assume(cond),
            StmtKind::Seq(_) | StmtKind::Evaluate(_) => walk_stmt(self, s),
        }
    }
    fn expr(&mut self, _: &Expr) {}
}

/// Where the initialisation of a block runs: every reduction variable has its first value.
pub fn first(block: &Block) -> Expr {
    let reduced = block.iters.iter().filter(|i| i.kind == IterKind::Reduce);
    reduced.fold(Expr::bool(true), |all, i| all.and(i.var.expr().equal(&i.domain.min)))
}
