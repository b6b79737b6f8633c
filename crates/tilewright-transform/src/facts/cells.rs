//! One fact, by its cells: which they are, what they hold, and what a write leaves of them.

use std::borrow::Borrow;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{Buffer, Expr, Fold, Range, Var};
use tilewright_sets::{Domain, Known, Set};

/// For all points of the domain, `buffer[indices]` is the value.
#[derive(Clone)]
pub(super) struct Fact {
    pub buffer: Buffer,
    pub domain: Domain,
    pub indices: Vec<Expr>,
    pub value: Expr,
    /// Versions of the memory that the value reads.
    pub reads: Vec<(Var, usize)>,
    /// When it was learned.
    pub born: usize,
    /// The depth of the scope that it ends with; zero for none.
    pub until: usize,
    pub form: RefCell<Option<Rc<Form>>>,
}

/// A fact in terms of its cells.
pub(super) struct Form {
    /// The loops around that the fact depends on.
    pub around: Vec<Var>,
    /// The place of a cell: one variable an axis, and one for each of those loops.
    pub cells: Vec<Var>,
    /// Which they are, and what they hold. `None` where that cannot be said.
    pub known: Option<(Set, Expr)>,
}

/// A store, with the points at which it runs.
pub(super) struct Write {
    pub buffer: Buffer,
    pub domain: Domain,
    /// `None` for anywhere.
    pub indices: Option<Vec<Expr>>,
    pub value: Expr,
}

/// The facts at the cells that writes leave alone. `place` says where one of them is, by indices
/// and `over`; `None` for anywhere. Writes of other iterations of the loop `apart` that have it for
/// an index are elsewhere.
pub(super) fn cut<W: Borrow<Write>>(
    facts: &[Rc<Fact>],
    writes: &[W],
    place: impl Fn(&Write) -> Option<Set>,
    over: &[(Var, Range)],
    apart: Option<&Var>,
) -> Vec<Rc<Fact>> {
    let places: Vec<OnceCell<Option<Set>>> = vec![OnceCell::new(); writes.len()];
    let left = |fact: &Rc<Fact>| -> Option<Rc<Fact>> {
        let mut domain: Option<Domain> = None;
        for (write, known) in writes.iter().map(Borrow::borrow).zip(&places) {
            if write.buffer != fact.buffer {
                return None;
            }
            if changes_nothing(write, fact) || apart.is_some_and(|v| differ_by(v, write, fact)) {
                continue;
            }
            let place = known.get_or_init(|| place(write)).as_ref()?;
            let before = domain.unwrap_or_else(|| {
                let missing = |d: &Domain, v: &Var| d.vars().all(|x| x != v);
                over.iter().fold(fact.domain.clone(), |d, (v, range)| match missing(&d, v) {
                    true => d.with_var(v, range),
                    false => d,
                })
            });
            let over = over.iter().map(|(v, _)| v.expr());
            let at: Vec<Expr> = fact.indices.iter().cloned().chain(over).collect();
            domain = Some(before.outside(&at, place).ok()?);
        }
        let Some(domain) = domain else { return Some(fact.clone()) };
        let left = Fact { domain, form: RefCell::default(), ..fact.as_ref().clone() };
        (!left.domain.is_empty().is_yes()).then(|| Rc::new(left))
    };
    facts.iter().filter_map(left).collect()
}

/// Whether the cells of two iterations of a loop differ because it is an index of both.
pub(super) fn differ_by(var: &Var, write: &Write, fact: &Fact) -> bool {
    let both = |(a, b): (&Expr, &Expr)| a.as_var() == Some(var) && b.as_var() == Some(var);
    write.indices.iter().any(|at| at.iter().zip(&fact.indices).any(both))
}

/// Whether a write stores what the fact says about all cells.
pub(super) fn changes_nothing(write: &Write, fact: &Fact) -> bool {
    let free = free_vars(&fact.value);
    !fact.domain.vars().any(|v| free.contains(v)) && same_expr(&write.value, &fact.value)
}

/// The values that some expressions take on a domain.
pub(super) fn image(domain: &Domain, exprs: &[Expr]) -> Known<Set> {
    let cells: Vec<Var> = exprs.iter().map(|e| Var::new("cell", e.dtype())).collect();
    domain.map(exprs)?.range(&cells)
}

/// A fact's cells and what they hold.
pub(super) fn by_cells(
    fact: &Fact,
    place: &[Expr],
    cells: &[Var],
    around: &[Var],
) -> Known<(Set, Expr)> {
    let map = fact.domain.map(place)?;
    let set = map.range(cells)?;
    let free = free_vars(&fact.value);
    let wanted: Vec<Var> =
        fact.domain.vars().filter(|v| free.contains(v) && !around.contains(v)).cloned().collect();
    if wanted.is_empty() {
        return Ok((set, fact.value.clone()));
    }
    let solved: Vec<(Var, Expr)> = match map.inverse(cells) {
        Ok(inverse) => fact.domain.vars().cloned().zip(inverse).collect(),
        // Variables that do not matter may be what makes it ambiguous.
        Err(_) => {
            let mut with = place.to_vec();
            with.extend(wanted.iter().map(Var::expr));
            let columns: Vec<Var> = cells.iter().chain(&wanted).cloned().collect();
            let points = fact.domain.map(&with)?.range(&columns)?.domain()?;
            let exprs: Vec<Expr> = cells.iter().map(Var::expr).collect();
            let names: Vec<Var> = cells.iter().map(Var::fresh).collect();
            let back = Subst::vars(names.iter().zip(&exprs).map(|(n, e)| (n.clone(), e.clone())));
            let inverse = points.map(&exprs)?.inverse(&names)?;
            let inverse = inverse.iter().map(|e| back.clone().expr(e));
            columns.into_iter().zip(inverse).collect()
        }
    };
    Ok((set, Subst::vars(solved).expr(&fact.value)))
}
