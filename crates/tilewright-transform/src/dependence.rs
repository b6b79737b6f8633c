//! Whether iterations may run in another order.
//!
//! Two iterations of a nest depend on each other where one writes a cell that the other reads or
//! writes. Another order of iterations is legal if every dependent pair keeps its order. The set
//! engine answers it exactly: the pairs that meet in a cell, ran in one order before and run in the
//! other one after, must be none; one of them is the witness of a refusal.
//!
//! Updates `B[i] = B[i] + x` of one cell (also by `*`, `min` and `max`) may change their order among
//! themselves: whoever asks for another order of iterations asks for another order of the sum.

use std::collections::HashMap;

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{Subst, accessed, walk_expr, walk_stmt};
use tilewright_ir::{
    BinOp, Block, Buffer, CallTarget, Error, Expr, ExprKind, Fold, Range, Result, Stmt, StmtKind,
    Var, Visit,
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
    /// The operator of the update `B[i] = B[i] op x` that this is a part of.
    pub update: Option<BinOp>,
    /// The indices as they stand in the text, with iteration variables replaced by their bindings.
    pub indices: Vec<Expr>,
}

/// Every access of a statement, on the domain around it. What is allocated inside is left out.
///
/// # Errors
/// `Refused` where accesses cannot be seen: pointers, views, calls with effects.
pub fn touches(s: &Stmt, around: &Domain) -> Result<Vec<Touch>> {
    let mut c = Collect {
        domain: around.clone(),
        bind: Subst::default(),
        local: Vec::new(),
        update: None,
        out: Vec::new(),
        error: None,
    };
    c.stmt(s);
    let local = c.local;
    match c.error {
        Some(e) => Err(e),
        None => Ok(c.out.into_iter().filter(|t| !local.contains(&t.buffer)).collect()),
    }
}

struct Collect {
    domain: Domain,
    bind: Subst,
    local: Vec<Buffer>,
    /// The buffer and operator of the update that is being looked at.
    update: Option<(Buffer, BinOp)>,
    out: Vec<Touch>,
    error: Option<Error>,
}

impl Collect {
    fn touch(&mut self, buffer: &Buffer, indices: &[Expr], write: bool) {
        let indices: Vec<Expr> = indices.iter().map(|i| self.bind.expr(i)).collect();
        if indices.iter().any(|i| i.dtype().lanes != 1) {
            self.fail(format!("`{}` is accessed by vectors", buffer.name));
        }
        let at = Access::new(&self.domain, &indices);
        let update = self.update.as_ref().filter(|(b, _)| b == buffer).map(|(_, op)| *op);
        self.out.push(Touch { buffer: buffer.clone(), write, at, update, indices });
    }

    fn fail(&mut self, why: String) {
        self.error.get_or_insert(Error::refused(why));
    }

    fn under(&mut self, cond: &Expr, work: impl FnOnce(&mut Self)) {
        let before = self.domain.clone();
        self.assume(cond);
        work(self);
        self.domain = before;
    }

    /// Takes a condition as given, except for what it reads from memory: that may change.
    fn assume(&mut self, cond: &Expr) {
        for part in conjuncts(&self.bind.expr(cond)) {
            if !part.effects().loads {
                self.domain = self.domain.with_guard(&part);
            }
        }
    }

    /// A bound of a loop: what is read from memory is some number.
    fn bound(&mut self, e: &Expr) -> Expr {
        let e = self.bind.expr(e);
        if e.effects().loads { Var::new("bound", e.dtype()).expr() } else { e }
    }
}

impl Visit for Collect {
    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Load(b, indices) => {
                self.touch(b, indices, false);
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
            ExprKind::Var(v) if v.dtype() == tilewright_ir::DType::HANDLE => {
                self.fail(format!("the pointer `{}` is used", v.name()));
            }
            _ => walk_expr(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                indices.iter().for_each(|i| self.expr(i));
                self.update = update(buffer, indices, value).map(|op| (buffer.clone(), op));
                self.expr(value);
                self.touch(buffer, indices, true);
                self.update = None;
            }
            StmtKind::For { var, range, body, .. } => {
                self.expr(&range.min);
                self.expr(&range.extent);
                let before = self.domain.clone();
                let range =
                    Range { min: self.bound(&range.min), extent: self.bound(&range.extent) };
                self.domain = before.with_var(var, &range);
                self.stmt(body);
                self.domain = before;
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
                for (iter, b) in block.iters.iter().zip(bindings) {
                    let value = self.bind.expr(b);
                    self.bind.vars.insert(iter.var.clone(), value);
                }
                self.under(predicate, |c| c.inside(block));
            }
            _ => walk_stmt(self, s),
        }
    }
}

impl Collect {
    fn inside(&mut self, block: &Block) {
        self.local.extend(block.allocs.iter().cloned());
        if let Some(m) = block.matches.first() {
            self.fail(format!("the block `{}` works on the view `{}`", block.name, m.buffer.name));
        }
        // The initialisation counts as running in every iteration; it runs in some of them.
        block.init.iter().for_each(|s| self.stmt(s));
        self.stmt(&block.body);
    }
}

/// The operator of a store that is an update of its own cell, where its order does not matter.
pub fn update(buffer: &Buffer, indices: &[Expr], value: &Expr) -> Option<BinOp> {
    let ExprKind::Binary(op @ (BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max), a, b) =
        value.kind()
    else {
        return None;
    };
    let cell = |e: &Expr| match e.kind() {
        ExprKind::Load(l, at) => {
            l == buffer && at.iter().zip(indices).all(|(x, y)| same_expr(x, y))
        }
        _ => false,
    };
    let other = if cell(a) { b } else { a };
    let reads = accessed(&Stmt::new(StmtKind::Evaluate(other.clone()))).0;
    ((cell(a) || cell(b)) && !reads.contains(buffer)).then_some(*op)
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
/// and `new` its place in the order before and after, in terms of them. Iterations with the same
/// values of `apart`, where it is given, may change their order: they are one reduction.
///
/// # Errors
/// `Refused` with the two accesses and the iterations, or with the reason why it is not known.
pub fn keeps_order(
    nest: &Domain,
    touches: &[Touch],
    vars: &[Var],
    (old, new): (&[Expr], &[Expr]),
    apart: Option<&[Expr]>,
) -> Result<()> {
    // Variables of the nest that are the same in both iterations stay; all of it may differ.
    let renamed = |e: &[Expr], names: &HashMap<Var, Var>| -> Vec<Expr> {
        let mut subst = renaming(names);
        e.iter().map(|e| subst.expr(e)).collect()
    };
    let swapped = |names: &HashMap<Var, Var>| {
        let mut when = vec![before(old, &renamed(old, names)), before(&renamed(new, names), new)];
        if let Some(apart) = apart {
            let other = renamed(apart, names);
            let differ = apart.iter().zip(other).map(|(a, b)| a.clone().not_equal(b));
            when.push(differ.reduce(|a, b| a.or(b)).unwrap_or_else(|| Expr::bool(false)));
        }
        when
    };
    let everywhere = Access::new(nest, &[]);
    let (other, names) = everywhere.elsewhere_in(vars);
    if everywhere.independent(&other, &swapped(&names)).is_yes() {
        return Ok(());
    }
    for a in touches {
        let conflicts = |b: &&Touch| {
            let one_sum = a.update.is_some() && a.update == b.update;
            b.buffer.data == a.buffer.data && (a.write || b.write) && !one_sum
        };
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

/// Turns a proof that two accesses do not meet into a result.
pub fn refuse(
    proof: &Proof,
    a: &Touch,
    b: &Touch,
    vars: &[Var],
    names: &HashMap<Var, Var>,
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
    let what = format!(
        "{} and {} may touch one cell in iterations whose order would change",
        does(a),
        does(b)
    );
    match proof {
        Proof::Yes => Ok(()),
        Proof::No { witness } => {
            let at = |value: &dyn Fn(&Var) -> Option<i64>| {
                let known = vars.iter().filter_map(|v| Some((v, value(v)?)));
                known.map(|(v, x)| format!("{}={x}", v.name())).collect::<Vec<_>>().join(", ")
            };
            let points =
                [at(&|v| witness.get(v)), at(&|v| names.get(v).and_then(|w| witness.get(w)))];
            let e = Error::refused(what);
            let known: Vec<String> =
                points.iter().filter(|p| !p.is_empty()).map(|p| format!("at {p}")).collect();
            Err(if known.is_empty() { e } else { e.note(known.join(" and ")) })
        }
        Proof::Unknown(why) => Err(Error::refused(what).note(why.to_string())),
    }
}

/// Variables of `vars` that an expression depends on.
pub fn uses(e: &Expr, vars: &[Var]) -> bool {
    e.mentions_any(vars)
}
