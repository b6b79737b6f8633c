//! Whether two functions are the same up to expressions that are provably equal.
//!
//! Statement by statement: the same loops, branches, blocks and stores in the same order, where
//! every index, bound, condition and value is the same expression, or an integer that the sets prove
//! equal at every point at which it is evaluated. That is less than what equal results need, but it
//! holds for all data and all sizes, and takes no longer for larger ones.
//!
//! [`same_outside`] compares what is left without stores that the outside cannot see; [`by_flow`]
//! compares what the outputs are made of, whatever the loops and the memory in between.

mod by_flow;

use tilewright_ir::hash::HashSet;

use tilewright_ir::visit::{Subst, walk_expr, walk_stmt};
use tilewright_ir::{
    Block, Buffer, Expr, ExprKind, Fold, Param, Stmt, StmtKind, TensorFunc, Var, Visit, equal,
};
use tilewright_polyhedral::{Domain, budget};

use tilewright_ir::prune::prune;
use tilewright_polyhedral::flow::operands;
use tilewright_polyhedral::overflow::overflows;
use tilewright_polyhedral::sizes::sizes;

pub use by_flow::by_flow;

/// Whether two functions are the same; no is also the answer where that is not known. The questions
/// have the budget of one pass together.
pub fn equivalent(a: &TensorFunc, b: &TensorFunc) -> bool {
    budget::within("equivalence", budget::PER_FUNCTION, || {
        let domain = sizes(a);
        aligned(&domain, a, b).is_some_and(|b| same_on(&domain, &a.body, &b.body))
    })
    .0
}

/// The second function over the parameters and sizes of the first, on whose domain without loops
/// they must be alike; `None` where they are not.
fn aligned(domain: &Domain, a: &TensorFunc, b: &TensorFunc) -> Option<TensorFunc> {
    let mut names = Subst::default();
    if a.params.len() != b.params.len() || a.ret != b.ret {
        return None;
    }
    // Scalars first: a shape may name one that comes later.
    for pair in a.params.iter().zip(&b.params) {
        if let (Param::Scalar(v), Param::Scalar(w)) = pair {
            if v.dtype() != w.dtype() {
                return None;
            }
            names.vars.insert(w.clone(), v.expr());
        }
    }
    for pair in a.params.iter().zip(&b.params) {
        match pair {
            (Param::Scalar(_), Param::Scalar(_)) => {}
            (Param::Buffer { buffer: p, .. }, Param::Buffer { buffer: q, .. }) => {
                // A size is what a shape gives it.
                for (x, y) in p.shape.iter().zip(&q.shape) {
                    if let (Some(v), Some(w)) = (x.as_var(), y.as_var())
                        && v.dtype() == w.dtype()
                    {
                        names.vars.entry(w.clone()).or_insert_with(|| v.expr());
                    }
                }
                if !pair_buffers(domain, p, q, &mut names) {
                    return None;
                }
                names.vars.insert(q.data.clone(), p.data.expr());
            }
            _ => return None,
        }
    }
    Some(TensorFunc { params: a.params.clone(), body: names.stmt(&b.body), ..b.clone() })
}

/// Whether two functions are the same without what the outside cannot see: stores to memory of their
/// own that nothing reads, and what does nothing. Neither function may do anything illegal.
pub fn same_outside(a: &TensorFunc, b: &TensorFunc) -> bool {
    equivalent(&visible(a), &visible(b))
}

fn visible(func: &TensorFunc) -> TensorFunc {
    let mut func = func.clone();
    loop {
        let mut hidden = Hidden::default();
        hidden.stmt(&func.body);
        hidden.own.retain(|memory| !hidden.read.contains(memory));
        let before = func.body.clone();
        func.body = prune(&hidden.stmt_without(&before));
        if func.body.ptr_eq(&before)
            || equal::stmts(&func.body, &before, &Default::default()).is_ok()
        {
            return func;
        }
    }
}

/// Memory that a function has for itself, and the memory that it reads.
#[derive(Default)]
struct Hidden {
    own: HashSet<Var>,
    read: HashSet<Var>,
}

impl Hidden {
    fn stmt_without(&self, s: &Stmt) -> Stmt {
        s.replace(|s| match s.kind() {
            StmtKind::Store { buffer, indices, value }
                if self.own.contains(&buffer.data)
                    && !indices.iter().chain([value]).any(|e| e.effects().calls) =>
            {
                Some(Stmt::nop())
            }
            _ => None,
        })
    }
}

impl Visit for Hidden {
    fn expr(&mut self, e: &Expr) {
        // A pointer goes somewhere.
        self.read.extend(e.as_var().cloned());
        walk_expr(self, e);
    }

    fn access(&mut self, b: &Buffer, _: &[Expr], write: bool) {
        self.read.extend((!write).then(|| b.data.clone()));
    }

    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Allocate { buffer, .. } | StmtKind::Constant { buffer, .. } => {
                self.own.insert(buffer.data.clone());
            }
            StmtKind::Block { block, .. } => {
                self.own.extend(block.allocs.iter().map(|b| b.data.clone()));
                self.read.extend(block.matches.iter().map(|m| m.source.buffer.data.clone()));
            }
            _ => {}
        }
        walk_stmt(self, s);
    }
}

/// Whether two buffers lie alike in memory; then the second one is called as the first.
fn pair_buffers(domain: &Domain, a: &Buffer, b: &Buffer, names: &mut Subst) -> bool {
    let alike = a.dtype() == b.dtype()
        && a.rank() == b.rank()
        && a.scope == b.scope
        && a.axis_separators == b.axis_separators
        && is_compact(a)
        && is_compact(b)
        && a.shape.iter().zip(&b.shape).all(|(x, y)| same_value(domain, x, &names.expr(y), false));
    if alike {
        names.buffers.insert(b.clone(), a.clone());
    }
    alike
}

fn is_compact(b: &Buffer) -> bool {
    b.strides.is_empty() && b.elem_offset.is_none()
}

/// Whether two statements over the same outer variables and buffers do the same at every point of
/// a domain.
pub fn same_on(domain: &Domain, a: &Stmt, b: &Stmt) -> bool {
    match (a.kind(), b.kind()) {
        (StmtKind::Seq(a), StmtKind::Seq(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_on(domain, a, b))
        }
        (
            StmtKind::Store { buffer: a, indices: at, value: x },
            StmtKind::Store { buffer: b, indices: bt, value: y },
        ) => {
            a == b
                && at.iter().zip(bt).all(|(x, y)| same_value(domain, x, y, false))
                && same_value(domain, x, y, true)
        }
        (
            StmtKind::For { var: i, range: r, kind: k, annotations: m, body: a },
            StmtKind::For { var: j, range: q, kind: l, annotations: n, body: b },
        ) => {
            let alike = k == l && m.is_empty() && n.is_empty() && i.dtype() == j.dtype();
            alike
                && same_value(domain, &r.min, &q.min, false)
                && same_value(domain, &r.extent, &q.extent, false)
                && {
                    let b = Subst::vars([(j.clone(), i.expr())]).stmt(b);
                    same_on(&domain.with_var(i, r), a, &b)
                }
        }
        (
            StmtKind::If { cond: c, then: a, otherwise: x },
            StmtKind::If { cond: d, then: b, otherwise: y },
        ) => {
            same_value(domain, c, d, false)
                && same_on(&under(domain, c), a, b)
                && match (x, y) {
                    (Some(x), Some(y)) => same_on(&under(domain, &!c.clone()), x, y),
                    (None, None) => true,
                    _ => false,
                }
        }
        (
            StmtKind::Let { var: v, value: x, body: a },
            StmtKind::Let { var: w, value: y, body: b },
        ) => {
            v.dtype() == w.dtype()
                && same_value(domain, x, y, true)
                && same_on(domain, a, &Subst::vars([(w.clone(), v.expr())]).stmt(b))
        }
        (
            StmtKind::Allocate { buffer: p, annotations: m, body: a },
            StmtKind::Allocate { buffer: q, annotations: n, body: b },
        ) => {
            let mut names = Subst::vars([(q.data.clone(), p.data.expr())]);
            m.is_empty()
                && n.is_empty()
                && pair_buffers(domain, p, q, &mut names)
                && same_on(domain, a, &names.stmt(b))
        }
        (
            StmtKind::Block { bindings: m, predicate: c, block: a },
            StmtKind::Block { bindings: n, predicate: d, block: b },
        ) if a.annotations.is_empty() && a.matches.is_empty() => {
            same_blocks(domain, (m, c, a), (n, d, b))
        }
        (StmtKind::Declare { buffer: p, body: a }, StmtKind::Declare { buffer: q, body: b }) => {
            let mut names = Subst::default();
            p.data == q.data
                && pair_buffers(domain, p, q, &mut names)
                && same_on(domain, a, &names.stmt(b))
        }
        _ => equal::stmts(a, b, &equal::Equality::default()).is_ok(),
    }
}

/// Whether two blocks run alike: the same iterations with the same values of their variables. What
/// they say of regions that they read and write does not matter.
fn same_blocks(
    domain: &Domain,
    (m, c, a): (&[Expr], &Expr, &Block),
    (n, d, b): (&[Expr], &Expr, &Block),
) -> bool {
    let alike = is_plain(a)
        && is_plain(b)
        && a.iters.len() == b.iters.len()
        && a.allocs.len() == b.allocs.len()
        && a.init.is_some() == b.init.is_some()
        && same_value(domain, c, d, false)
        && m.iter().zip(n).all(|(x, y)| same_value(domain, x, y, false));
    let mut names = Subst::default();
    let mut inner = under(domain, c);
    for (i, j) in a.iters.iter().zip(&b.iters) {
        let (r, q) = (&i.domain, &j.domain);
        if i.kind != j.kind
            || i.var.dtype() != j.var.dtype()
            || !same_value(domain, &r.min, &q.min, false)
            || !same_value(domain, &r.extent, &q.extent, false)
        {
            return false;
        }
        names.vars.insert(j.var.clone(), i.var.expr());
        inner = inner.with_var(&i.var, r);
    }
    let alike = alike
        && a.allocs.iter().zip(&b.allocs).all(|(p, q)| pair_buffers(domain, p, q, &mut names));
    names.vars.extend(a.allocs.iter().zip(&b.allocs).map(|(p, q)| (q.data.clone(), p.data.expr())));
    let mut same_inside = |x: &Stmt, y: &Stmt| same_on(&inner, x, &names.stmt(y));
    alike
        && same_inside(&a.body, &b.body)
        && match (&a.init, &b.init) {
            (Some(x), Some(y)) => same_inside(x, y),
            _ => true,
        }
}

fn is_plain(b: &Block) -> bool {
    b.annotations.is_empty() && b.matches.is_empty()
}

/// The part of a domain where a condition holds, if that is the same from beginning to end.
fn under(domain: &Domain, cond: &Expr) -> Domain {
    if cond.effects().constant() { domain.with_guard(cond) } else { domain.clone() }
}

/// Whether two expressions have one value at every point, and read the same cells. In a stored
/// value (`data`) arithmetic may wrap.
pub fn same_value(domain: &Domain, a: &Expr, b: &Expr, data: bool) -> bool {
    let (t, traits, other) = (a.dtype(), a.effects(), b.effects());
    if t != b.dtype() || traits.impure() || other.impure() {
        return false;
    }
    if equal::same_expr(a, b) {
        return true;
    }
    if traits.constant() && other.constant() && t.lanes == 1 && (t.is_int() || t.is_bool()) {
        return !(data && (overflows(a, domain) || overflows(b, domain))) && domain.is_equal(a, b);
    }
    if let (ExprKind::Load(p, _), ExprKind::Load(q, _)) = (a.kind(), b.kind())
        && p != q
    {
        return false;
    }
    let Some(pairs) = operands(a, b) else { return false };
    // Which operand it is decides where it is evaluated, and whether it is data.
    pairs.into_iter().enumerate().all(|(k, (x, y))| match a.kind() {
        ExprKind::Load(..) => same_value(domain, x, y, false),
        ExprKind::Select(..) | ExprKind::IfThenElse(..) if k == 0 => {
            same_value(domain, x, y, false)
        }
        ExprKind::IfThenElse(c, ..) => {
            let cond = if k == 1 { c.clone() } else { !c.clone() };
            same_value(&under(domain, &cond), x, y, data)
        }
        _ => same_value(domain, x, y, data),
    })
}
