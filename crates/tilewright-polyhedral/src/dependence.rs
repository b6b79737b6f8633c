//! Whether iterations may run in another order.
//!
//! Two iterations of a nest depend on each other where one writes a cell that the other reads or
//! writes. Another order of iterations is legal if every dependent pair keeps its order. The set
//! engine answers it exactly: the pairs that meet in a cell, ran in one order before and run in the
//! other one after, must be none; one of them is the witness of a refusal.
//!
//! Updates of one cell by one operator that commutes ([`tilewright_ir::update`]) may change their
//! order among themselves: a caller that asks for another order of iterations also accepts another
//! order of the sum. What they combine into the cell is an access like any other, also where it is
//! another cell of the same buffer. Whether iteration variables are called spatial or reduced
//! decides nothing here: only when an initialisation runs.

use std::fmt;
use tilewright_ir::hash::HashMap;

use crate::{AccessRelation, Domain, Proof};
use tilewright_ir::condition::parts;
use tilewright_ir::update::{Combine, is_cell, update};
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    Buffer, CallTarget, DType, Error, Expr, ExprKind, Fold, MatchRegion, Range, Result, Stmt,
    StmtKind, Var, Visit,
};

use crate::place::{Place, Placed, walk_expr_placed, walk_stmt_placed};

/// One load or store, in terms of loops.
#[derive(Clone)]
pub struct PlacedAccess {
    pub buffer: Buffer,
    /// Whether it is a store.
    pub write: bool,
    /// Where, and the points at which it runs.
    pub at: AccessRelation,
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

impl fmt::Display for PlacedAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at: Vec<String> = self.indices.iter().map(Expr::to_string).collect();
        write!(f, "`{}[{}]`", self.buffer.name, at.join(", "))
    }
}

/// What a statement touches.
pub struct PlacedAccesses {
    /// Every access of memory that is not allocated inside.
    pub all: Vec<PlacedAccess>,
    /// What is allocated inside.
    pub local: Vec<Buffer>,
}

/// Every access of a statement, on the domain around it. What is allocated inside is left out.
///
/// # Errors
/// `Refused` where accesses cannot be seen: pointers, calls with effects, and views other than boxes of
/// a buffer.
pub fn accesses(s: &Stmt, around: &Domain) -> Result<Vec<PlacedAccess>> {
    accesses_and_local(s, around).map(|t| t.all)
}

/// The same, and what is allocated inside. Errors as [`accesses`].
pub fn accesses_and_local(s: &Stmt, around: &Domain) -> Result<PlacedAccesses> {
    let at = Reached { domain: around.clone(), bound: Subst::default(), certain: true };
    let (local, out, views) = (Vec::new(), Vec::new(), HashMap::default());
    let mut c = Collect { at, local, views, update: None, out, error: None };
    c.stmt(s);
    let Collect { mut out, local, error, .. } = c;
    out.retain(|t| !local.contains(&t.buffer));
    error.map_or(Ok(PlacedAccesses { all: out, local }), Err)
}

/// The points of a place, as far as they do not depend on memory.
#[derive(Clone)]
struct Reached {
    domain: Domain,
    bound: Subst,
    /// Whether everything around is known that decides whether a statement runs.
    certain: bool,
}

impl Reached {
    /// A bound of a loop: what is read from memory is some number.
    fn end(&mut self, e: &Expr) -> Expr {
        let e = self.bound.expr(e);
        if e.effects().constant() {
            e
        } else {
            self.certain = false;
            Var::new("bound", e.dtype()).expr()
        }
    }
}

impl Place for Reached {
    fn enter(&mut self, var: &Var, range: &Range) {
        let range = Range { min: self.end(&range.min), extent: self.end(&range.extent) };
        self.domain = self.domain.with_var(var, &range);
    }

    fn bind(&mut self, var: &Var, value: &Expr) {
        let value = self.bound.expr(value);
        self.bound.vars.insert(var.clone(), value);
    }

    /// What a condition reads from memory may change.
    fn learn(&mut self, cond: &Expr, holds: bool) {
        for (part, holds) in parts(&self.bound.expr(cond), holds) {
            if part.effects().constant() {
                self.domain = self.domain.with_guard(&part.being(holds))
            } else {
                self.certain = false
            }
        }
    }
}

struct Collect {
    at: Reached,
    local: Vec<Buffer>,
    /// Views that are boxes of a buffer: that buffer, and the corner of the box.
    views: HashMap<Buffer, (Buffer, Vec<Expr>)>,
    /// The cell and operator of the update that is being looked at.
    update: Option<(Expr, Combine)>,
    out: Vec<PlacedAccess>,
    error: Option<Error>,
}

impl Collect {
    fn access(&mut self, buffer: &Buffer, indices: &[Expr], value: Option<&Expr>) {
        let update = self.update.as_ref().filter(|(cell, _)| is_cell(buffer, indices, cell));
        let update = update.map(|(_, op)| *op);
        let (buffer, indices) = self.viewed(buffer, indices);
        let indices: Vec<Expr> = indices.iter().map(|i| self.at.bound.expr(i)).collect();
        if indices.iter().any(|i| i.dtype().lanes != 1) {
            self.fail(format!("`{}` is accessed by vectors", buffer.name));
        }
        self.out.push(PlacedAccess {
            buffer: buffer.clone(),
            write: value.is_some(),
            at: AccessRelation::new(&self.at.domain, &indices),
            update,
            indices,
            value: value.map(|v| self.at.bound.expr(v)),
            certain: self.at.certain,
        });
    }

    /// The cell of memory that an access is, through views that are boxes.
    fn viewed(&self, buffer: &Buffer, indices: &[Expr]) -> (Buffer, Vec<Expr>) {
        let (mut buffer, mut indices) = (buffer.clone(), indices.to_vec());
        while let Some((source, corner)) = self.views.get(&buffer) {
            let more = corner.len().saturating_sub(indices.len());
            let within = corner[more..].iter().zip(indices);
            let within = within.map(|(c, i)| c.clone().cast(i.dtype()) + i);
            indices = corner[..more].iter().cloned().chain(within).collect();
            buffer = source.clone();
        }
        (buffer, indices)
    }

    fn fail(&mut self, why: String) {
        self.error.get_or_insert(Error::refused(why));
    }
}

impl Placed for Collect {
    type At = Reached;
    fn at(&mut self) -> &mut Reached {
        &mut self.at
    }
}

impl Visit for Collect {
    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Load(b, indices) => self.access(b, indices, None),
            ExprKind::Call(CallTarget::Extern(name) | CallTarget::Opaque(name), _) => {
                self.fail(format!("`{name}` may have any effect"));
            }
            ExprKind::Var(v) if v.dtype() == DType::HANDLE => {
                self.fail(format!("the pointer `{}` is used", v.name()));
            }
            _ => {}
        }
        walk_expr_placed(self, e);
    }

    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                indices.iter().for_each(|i| self.expr(i));
                let cell = Expr::load(buffer, indices.clone());
                self.update = update(buffer, indices, value).map(|op| (cell, op));
                self.expr(value);
                self.access(buffer, indices, Some(value));
                self.update = None;
            }
            StmtKind::Allocate { buffer, body, .. } => {
                self.local.push(buffer.clone());
                self.stmt(body);
            }
            StmtKind::Declare { buffer, .. } => {
                self.fail(format!("`{}` is a view of other memory", buffer.name));
            }
            StmtKind::Block { block, .. } => {
                self.local.extend(block.allocs.iter().cloned());
                for m in &block.matches {
                    match corner(m) {
                        Some(corner) => {
                            let source = (m.source.buffer.clone(), corner);
                            self.views.insert(m.buffer.clone(), source);
                        }
                        None => {
                            let (block, view) = (&block.name, &m.buffer.name);
                            self.fail(format!("the block `{block}` works on the view `{view}`"));
                        }
                    }
                }
                walk_stmt_placed(self, s);
            }
            _ => walk_stmt_placed(self, s),
        }
    }
}

/// The corner of the box of a buffer that a view is; `None` where its axes are not the last ones of
/// the buffer.
fn corner(m: &MatchRegion) -> Option<Vec<Expr>> {
    let ranges = &m.source.ranges;
    let more = ranges.len().checked_sub(m.buffer.rank())?;
    let fits = ranges[..more].iter().all(|r| r.extent.as_int() == Some(1))
        && ranges[more..]
            .iter()
            .zip(&m.buffer.shape)
            .all(|(r, extent)| r.extent.as_int().is_some_and(|n| extent.as_int() == Some(n)))
        && m.buffer.dtype() == m.source.buffer.dtype();
    fits.then(|| ranges.iter().map(|r| r.min.clone()).collect())
}

/// `a < b` in lexicographic order.
pub fn before(a: &[Expr], b: &[Expr]) -> Expr {
    let mut less = Expr::bool(false);
    for (x, y) in a.iter().zip(b).rev() {
        let here = x.clone().less(y.clone());
        less = if less.is_false() { here } else { here.or(x.clone().equal(y.clone()).and(less)) };
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
    accesses: &[PlacedAccess],
    vars: &[Var],
    (old, new): (&[Expr], &[Expr]),
) -> Result<()> {
    let all_apart = || {
        for a in accesses {
            for b in accesses.iter().filter(|b| {
                b.buffer.data == a.buffer.data && (a.write || b.write) && !exchange(a, b)
            }) {
                one_view(a, b)?;
                let all: Vec<Var> = b.at.domain.vars().cloned().collect();
                let (other, names) = b.at.elsewhere_in(&all);
                let proof = a.at.independent(&other, &swapped_orders(&names, old, new));
                refuse(&proof, a, b, vars, &names)?;
            }
        }
        Ok(())
    };
    all_apart().or_else(|e| {
        // Asked last: most orders differ, and to find two iterations takes long.
        let everywhere = AccessRelation::new(nest, &[]);
        let (other, names) = everywhere.elsewhere_in(vars);
        if everywhere.is_disjoint(&other, &swapped_orders(&names, old, new)) {
            Ok(())
        } else {
            Err(e)
        }
    })
}

fn swapped_orders(names: &HashMap<Var, Var>, old: &[Expr], new: &[Expr]) -> [Expr; 2] {
    [before(old, &renamed(old, names)), before(&renamed(new, names), new)]
}

/// Variables of the nest that are the same in both iterations stay; all of it may differ.
fn renamed(e: &[Expr], names: &HashMap<Var, Var>) -> Vec<Expr> {
    let mut subst = renaming(names);
    e.iter().map(|e| subst.expr(e)).collect()
}

/// Whether two accesses are parts of updates that may change their order.
pub fn exchange(a: &PlacedAccess, b: &PlacedAccess) -> bool {
    a.update.is_some() && a.update == b.update && a.buffer == b.buffer
}

/// Checks that two accesses of one memory go through one buffer, so that their indices compare.
///
/// # Errors
/// `Refused` with the names of both.
pub fn one_view(a: &PlacedAccess, b: &PlacedAccess) -> Result<()> {
    if a.buffer == b.buffer {
        Ok(())
    } else {
        Err(Error::refused(format!(
            "`{}` and `{}` are views of one memory",
            a.buffer.name, b.buffer.name
        )))
    }
}

/// Turns a proof that two accesses do not meet in iterations whose order would change into a result.
pub fn refuse(
    proof: &Proof,
    a: &PlacedAccess,
    b: &PlacedAccess,
    vars: &[Var],
    names: &HashMap<Var, Var>,
) -> Result<()> {
    report(proof, a, b, vars, names, "may touch one cell in iterations whose order would change")
}

/// The same for two accesses of which `what` is said. `vars` are the variables of the iterations,
/// `names` what they are called for the second access.
pub fn report(
    proof: &Proof,
    a: &PlacedAccess,
    b: &PlacedAccess,
    vars: &[Var],
    names: &HashMap<Var, Var>,
    what: &str,
) -> Result<()> {
    match proof {
        Proof::Yes => Ok(()),
        Proof::No { witness } => {
            let points = [
                point_text(&|v| witness.get(v), vars),
                point_text(&|v| names.get(v).and_then(|w| witness.get(w)), vars),
            ];
            let known: Vec<String> =
                points.iter().filter(|p| !p.is_empty()).map(|p| format!("at {p}")).collect();
            Err(if known.is_empty() {
                conflict(a, b, what)
            } else {
                conflict(a, b, what).note(known.join(" and "))
            })
        }
        Proof::Unknown(why) => Err(conflict(a, b, what).note(why.to_string())),
    }
}

fn access_text(t: &PlacedAccess) -> String {
    format!("the {} {t}", if t.write { "write" } else { "read" })
}

fn conflict(a: &PlacedAccess, b: &PlacedAccess, what: &str) -> Error {
    Error::refused(format!("{} and {} {what}", access_text(a), access_text(b)))
}

fn point_text(value: &dyn Fn(&Var) -> Option<i64>, vars: &[Var]) -> String {
    let known = vars.iter().filter_map(|v| Some((v, value(v)?)));
    known.map(|(v, x)| format!("{}={x}", v.name())).collect::<Vec<_>>().join(", ")
}
