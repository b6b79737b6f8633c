//! Whether iterations may run in another order.
//!
//! Two iterations of a nest depend on each other where one writes a cell that the other reads or
//! writes. Another order of iterations is legal if every dependent pair keeps its order. The set
//! engine answers it exactly: the pairs that meet in a cell, ran in one order before and run in the
//! other one after, must be none; one of them is the witness of a refusal.
//!
//! Updates of one cell by one operator that commutes ([`tilewright_ir::update`]) may change their
//! order among themselves: whoever asks for another order of iterations asks for another order of the
//! sum. What they combine into the cell is an access like any other, also where it is another cell of
//! the same buffer. Whether iteration variables are called spatial or reduced decides nothing here:
//! only when an initialisation runs.

use std::collections::HashMap;

use tilewright_ir::update::{Combine, is_cell, update};
use tilewright_ir::visit::{Subst, walk_expr, walk_stmt};
use tilewright_ir::{
    Block, Buffer, CallTarget, DType, Error, Expr, ExprKind, Fold, IterKind, Range, Result, Stmt,
    StmtKind, Var, Visit,
};
use tilewright_sets::{Access, Domain, Proof};

use crate::index::conjuncts;

/// One load or store, in terms of loops.
#[derive(Clone)]
pub struct Touch {
    /// The buffer.
    pub buffer: Buffer,
    /// Whether it is a store.
    pub write: bool,
    /// Where, and the points at which it runs.
    pub at: Access,
    /// The operator of the update `B[i] = B[i] op x` whose cell this reads or writes.
    pub update: Option<Combine>,
    /// The indices as they stand in the text, with iteration variables replaced by their bindings.
    pub indices: Vec<Expr>,
    /// What a store writes, in the same terms.
    pub value: Option<Expr>,
    /// Whether it runs at all points of `at`. It may run at fewer where something that was read
    /// from memory decides.
    pub certain: bool,
}

/// What a statement touches.
pub struct Touches {
    /// Every access of memory that is not allocated inside.
    pub all: Vec<Touch>,
    /// What is allocated inside.
    pub local: Vec<Buffer>,
}

/// Every access of a statement, on the domain around it. What is allocated inside is left out.
///
/// # Errors
/// `Refused` where accesses cannot be seen: pointers, views, calls with effects.
pub fn touches(s: &Stmt, around: &Domain) -> Result<Vec<Touch>> {
    touches_and_local(s, around).map(|t| t.all)
}

/// The same, and what is allocated inside. Errors as [`touches`].
pub fn touches_and_local(s: &Stmt, around: &Domain) -> Result<Touches> {
    let mut c = Collect {
        domain: around.clone(),
        bind: Subst::default(),
        local: Vec::new(),
        update: None,
        certain: true,
        out: Vec::new(),
        error: None,
    };
    c.stmt(s);
    let Collect { mut out, local, error, .. } = c;
    match error {
        Some(e) => Err(e),
        None => {
            out.retain(|t| !local.contains(&t.buffer));
            Ok(Touches { all: out, local })
        }
    }
}

struct Collect {
    domain: Domain,
    bind: Subst,
    local: Vec<Buffer>,
    /// The cell and operator of the update that is being looked at.
    update: Option<(Expr, Combine)>,
    /// Whether everything around is known that decides whether a statement runs.
    certain: bool,
    out: Vec<Touch>,
    error: Option<Error>,
}

impl Collect {
    fn touch(&mut self, buffer: &Buffer, indices: &[Expr], value: Option<&Expr>) {
        let update = self.update.as_ref().filter(|(cell, _)| is_cell(buffer, indices, cell));
        let update = update.map(|(_, op)| *op);
        let indices: Vec<Expr> = indices.iter().map(|i| self.bind.expr(i)).collect();
        if indices.iter().any(|i| i.dtype().lanes != 1) {
            self.fail(format!("`{}` is accessed by vectors", buffer.name));
        }
        self.out.push(Touch {
            buffer: buffer.clone(),
            write: value.is_some(),
            at: Access::new(&self.domain, &indices),
            update,
            indices,
            value: value.map(|v| self.bind.expr(v)),
            certain: self.certain,
        });
    }

    fn fail(&mut self, why: String) {
        self.error.get_or_insert(Error::refused(why));
    }

    fn under(&mut self, cond: &Expr, work: impl FnOnce(&mut Self)) {
        let before = (self.domain.clone(), self.certain);
        self.assume(cond);
        work(self);
        (self.domain, self.certain) = before;
    }

    /// Takes a condition as given, except for what it reads from memory: that may change.
    fn assume(&mut self, cond: &Expr) {
        for part in conjuncts(&self.bind.expr(cond)) {
            match part.effects().constant() {
                true => self.domain = self.domain.with_guard(&part),
                false => self.certain = false,
            }
        }
    }

    /// A bound of a loop: what is read from memory is some number.
    fn bound(&mut self, e: &Expr) -> Expr {
        let e = self.bind.expr(e);
        match e.effects().constant() {
            true => e,
            false => {
                self.certain = false;
                Var::new("bound", e.dtype()).expr()
            }
        }
    }
}

impl Visit for Collect {
    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Load(b, indices) => {
                self.touch(b, indices, None);
                walk_expr(self, e);
            }
            ExprKind::IfThenElse(c, t, f) => {
                self.expr(c);
                self.under(c, |s| s.expr(t));
                self.under(&!c.clone(), |s| s.expr(f));
            }
            ExprKind::Let(v, value, body) => {
                self.expr(value);
                let value = self.bind.expr(value);
                self.bind.vars.insert(v.clone(), value);
                self.expr(body);
            }
            ExprKind::Call(CallTarget::Extern(name) | CallTarget::Opaque(name), _) => {
                self.fail(format!("`{name}` may have any effect"));
            }
            ExprKind::Var(v) if v.dtype() == DType::HANDLE => {
                self.fail(format!("the pointer `{}` is used", v.name()));
            }
            _ => walk_expr(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                indices.iter().for_each(|i| self.expr(i));
                let cell = Expr::load(buffer, indices.clone());
                self.update = update(buffer, indices, value).map(|op| (cell, op));
                self.expr(value);
                self.touch(buffer, indices, Some(value));
                self.update = None;
            }
            StmtKind::For { var, range, body, .. } => {
                self.expr(&range.min);
                self.expr(&range.extent);
                let before = (self.domain.clone(), self.certain);
                let range =
                    Range { min: self.bound(&range.min), extent: self.bound(&range.extent) };
                self.domain = before.0.with_var(var, &range);
                self.stmt(body);
                (self.domain, self.certain) = before;
            }
            StmtKind::If { cond, then, otherwise } => {
                self.expr(cond);
                self.under(cond, |c| c.stmt(then));
                if let Some(o) = otherwise {
                    self.under(&!cond.clone(), |c| c.stmt(o));
                }
            }
            StmtKind::Let { var, value, body } => {
                self.expr(value);
                let value = self.bind.expr(value);
                self.bind.vars.insert(var.clone(), value);
                self.stmt(body);
            }
            StmtKind::Allocate { buffer, body, .. } => {
                self.local.push(buffer.clone());
                self.stmt(body);
            }
            StmtKind::Declare { buffer, .. } => {
                self.fail(format!("`{}` is a view of other memory", buffer.name));
            }
            StmtKind::Block { bindings, predicate, block } => {
                bindings.iter().for_each(|b| self.expr(b));
                self.expr(predicate);
                let mut first = Expr::bool(true);
                for (iter, b) in block.iters.iter().zip(bindings) {
                    let value = self.bind.expr(b);
                    if iter.kind == IterKind::Reduce {
                        let start = self.bind.expr(&iter.domain.min);
                        first = first.and(value.clone().equal(start));
                    }
                    self.bind.vars.insert(iter.var.clone(), value);
                }
                self.under(predicate, |c| c.inside(block, &first));
            }
            _ => walk_stmt(self, s),
        }
    }
}

impl Collect {
    /// The parts of a block, of which the initialisation runs where `first` holds.
    fn inside(&mut self, block: &Block, first: &Expr) {
        self.local.extend(block.allocs.iter().cloned());
        if let Some(m) = block.matches.first() {
            self.fail(format!("the block `{}` works on the view `{}`", block.name, m.buffer.name));
        }
        if let Some(init) = &block.init {
            self.under(first, |c| c.stmt(init));
        }
        self.stmt(&block.body);
    }
}

/// `a < b` in lexicographic order.
pub fn before(a: &[Expr], b: &[Expr]) -> Expr {
    let mut less = Expr::bool(false);
    for (x, y) in a.iter().zip(b).rev() {
        let here = x.clone().less(y.clone());
        less = match less.is_false() {
            true => here,
            false => here.or(x.clone().equal(y.clone()).and(less)),
        };
    }
    less
}

/// The substitution of variables by their names elsewhere.
pub fn renaming(names: &HashMap<Var, Var>) -> Subst {
    Subst::vars(names.iter().map(|(v, w)| (v.clone(), w.expr())))
}

/// Checks that dependent iterations keep their order. `vars` are the variables of the nest; `old`
/// and `new` its place in the order before and after, in terms of them.
///
/// # Errors
/// `Refused` with the two accesses and the iterations, or with the reason why it is not known.
pub fn keeps_order(
    nest: &Domain,
    touches: &[Touch],
    vars: &[Var],
    (old, new): (&[Expr], &[Expr]),
) -> Result<()> {
    // Variables of the nest that are the same in both iterations stay; all of it may differ.
    let renamed = |e: &[Expr], names: &HashMap<Var, Var>| -> Vec<Expr> {
        let mut subst = renaming(names);
        e.iter().map(|e| subst.expr(e)).collect()
    };
    let swapped = |names: &HashMap<Var, Var>| {
        [before(old, &renamed(old, names)), before(&renamed(new, names), new)]
    };
    let everywhere = Access::new(nest, &[]);
    let (other, names) = everywhere.elsewhere_in(vars);
    if everywhere.independent(&other, &swapped(&names)).is_yes() {
        return Ok(());
    }
    for a in touches {
        let conflicts =
            |b: &&Touch| b.buffer.data == a.buffer.data && (a.write || b.write) && !exchange(a, b);
        for b in touches.iter().filter(conflicts) {
            one_view(a, b)?;
            let all: Vec<Var> = b.at.domain.vars().cloned().collect();
            let (other, names) = b.at.elsewhere_in(&all);
            let proof = a.at.independent(&other, &swapped(&names));
            refuse(&proof, a, b, vars, &names)?;
        }
    }
    Ok(())
}

/// Whether two accesses are parts of updates that may change their order.
pub fn exchange(a: &Touch, b: &Touch) -> bool {
    a.update.is_some() && a.update == b.update && a.buffer == b.buffer
}

/// Checks that two accesses of one memory go through one buffer, so that their indices compare.
///
/// # Errors
/// `Refused` with the names of both.
pub fn one_view(a: &Touch, b: &Touch) -> Result<()> {
    match a.buffer == b.buffer {
        true => Ok(()),
        false => Err(Error::refused(format!(
            "`{}` and `{}` are views of one memory",
            a.buffer.name, b.buffer.name
        ))),
    }
}

/// Turns a proof that two accesses do not meet in iterations whose order would change into a result.
pub fn refuse(
    proof: &Proof,
    a: &Touch,
    b: &Touch,
    vars: &[Var],
    names: &HashMap<Var, Var>,
) -> Result<()> {
    report(proof, a, b, vars, names, "may touch one cell in iterations whose order would change")
}

/// The same for two accesses of which `what` is said. `vars` are the variables of the iterations,
/// `names` what they are called for the second access.
pub fn report(
    proof: &Proof,
    a: &Touch,
    b: &Touch,
    vars: &[Var],
    names: &HashMap<Var, Var>,
    what: &str,
) -> Result<()> {
    let does = |t: &Touch| {
        let at: Vec<String> = t.indices.iter().map(Expr::to_string).collect();
        format!(
            "the {} `{}[{}]`",
            if t.write { "write" } else { "read" },
            t.buffer.name,
            at.join(", ")
        )
    };
    let error = || Error::refused(format!("{} and {} {what}", does(a), does(b)));
    match proof {
        Proof::Yes => Ok(()),
        Proof::No { witness } => {
            let at = |value: &dyn Fn(&Var) -> Option<i64>| {
                let known = vars.iter().filter_map(|v| Some((v, value(v)?)));
                known.map(|(v, x)| format!("{}={x}", v.name())).collect::<Vec<_>>().join(", ")
            };
            let points =
                [at(&|v| witness.get(v)), at(&|v| names.get(v).and_then(|w| witness.get(w)))];
            let known: Vec<String> =
                points.iter().filter(|p| !p.is_empty()).map(|p| format!("at {p}")).collect();
            Err(if known.is_empty() { error() } else { error().note(known.join(" and ")) })
        }
        Proof::Unknown(why) => Err(error().note(why.to_string())),
    }
}

/// Variables of `vars` that an expression depends on.
pub fn uses(e: &Expr, vars: &[Var]) -> bool {
    e.mentions_any(vars)
}
