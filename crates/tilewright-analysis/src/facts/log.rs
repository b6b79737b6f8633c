//! What happened to one memory, as far as it matters at a place.
//!
//! A [`Log`] has what was learned, and what changed, in order. A question about a cell is answered
//! from its end: the first fact about the cell has its value, and the first change that may
//! touch it ends the search. So nothing is worked out for cells that are not asked for.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{Buffer, Expr, Fold, Range, Var};
use tilewright_polyhedral::{AccessRelation, Domain, Set};

use tilewright_polyhedral::points::Points;

/// Most facts about one buffer.
const MAX_FACTS: usize = 16;

/// For all points, `buffer[indices]` is the value.
#[derive(Clone)]
pub(crate) struct Fact {
    pub buffer: Buffer,
    pub points: Points,
    pub indices: Vec<Expr>,
    pub value: Expr,
    /// Versions of the memory that the value reads.
    pub reads: Vec<(Var, usize)>,
    /// The depth of the scope that it ends with; zero for none.
    pub until: usize,
    /// What has changed in loops that are over.
    pub without: Vec<Rc<Change>>,
    form: RefCell<Option<Rc<FactInCells>>>,
}

/// A fact in terms of its cells.
pub(crate) struct FactInCells {
    /// The loops around that the fact depends on.
    around: Vec<Var>,
    /// The place of a cell: one variable an axis, and one for each of those loops.
    cells: Vec<Var>,
    /// Which they are, and what they hold. `None` where that cannot be said.
    known: Option<(Set, Expr)>,
}

/// A store, with the points at which it runs.
pub(crate) struct Write {
    pub buffer: Buffer,
    pub points: Points,
    /// `None` for anywhere.
    pub indices: Option<Vec<Expr>>,
    pub value: Expr,
}

/// Other iterations of a loop, seen from one of them.
#[derive(Clone)]
pub(crate) struct Others {
    pub var: Var,
    pub range: Range,
    /// Whether they run one after the other; else each may be before this one, and after it.
    pub ordered: bool,
    /// Whether these are the earlier ones.
    pub before: bool,
}

/// What a write does at other points than here.
pub(crate) struct Change {
    write: Rc<Write>,
    /// In which iterations; from outside in all of them.
    others: Option<Others>,
    /// Loops around, which have their values of the moment.
    loops: Vec<(Var, Range)>,
    /// Where these cells, by indices of the write's points, are as a fact says, nothing changes.
    except: Vec<(Vec<Expr>, Rc<Fact>)>,
    access: OnceCell<Option<AccessRelation>>,
}

/// A cell that is read at a place.
pub(crate) struct Read<'a> {
    pub buffer: &'a Buffer,
    /// The points of the place, by loops, and of lanes where there are some.
    pub points: Points,
    /// By loops.
    pub at: Vec<Expr>,
    /// As they were given.
    pub indices: &'a [Expr],
    /// The loops around.
    pub loops: &'a [(Var, Range)],
    /// The cell at all points of the place, made when it is asked for.
    pub access: OnceCell<AccessRelation>,
}

impl Read<'_> {
    fn access(&self) -> &AccessRelation {
        self.access.get_or_init(|| AccessRelation::new(self.points.domain(), &self.at))
    }
}

#[derive(Clone)]
enum Event {
    Learned(Rc<Fact>),
    Changed(Rc<Change>),
}

impl Event {
    fn change(&self) -> Option<&Rc<Change>> {
        match self {
            Event::Changed(change) => Some(change),
            Event::Learned(_) => None,
        }
    }
}

/// What happened to one memory. Begins with a fact.
#[derive(Clone, Default)]
pub(crate) struct Log(Vec<(usize, Event)>);

impl Log {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn learn(&mut self, fact: Rc<Fact>, clock: usize) {
        self.0.push((clock, Event::Learned(fact)));
        if self.facts().count() > MAX_FACTS {
            self.0.remove(0);
            self.trim();
        }
    }

    pub fn change(&mut self, change: Change, clock: usize) {
        if !self.is_empty() {
            self.0.push((clock, Event::Changed(Rc::new(change))));
        }
    }

    /// Keeps only some of the facts.
    pub fn retain(&mut self, keep: impl Fn(&Fact) -> bool) {
        self.0.retain(|(_, event)| match event {
            Event::Learned(fact) => keep(fact),
            Event::Changed(_) => true,
        });
        self.trim();
    }

    fn trim(&mut self) {
        let first = self.0.iter().position(|(_, e)| matches!(e, Event::Learned(_)));
        self.0.drain(..first.unwrap_or(self.0.len()));
    }

    fn facts(&self) -> impl Iterator<Item = (usize, &Rc<Fact>)> {
        self.0.iter().enumerate().filter_map(|(at, (_, event))| match event {
            Event::Learned(fact) => Some((at, fact)),
            Event::Changed(_) => None,
        })
    }

    /// The facts since a moment that pass a test, each without what has changed after it.
    pub fn left(&self, since: usize, test: impl Fn(&Fact) -> bool) -> Vec<(usize, Rc<Fact>)> {
        let chosen = self.facts().filter(|(at, fact)| self.0[*at].0 >= since && test(fact));
        let left = chosen.map(|(at, fact)| {
            let later = self.0[at..].iter().filter_map(|(_, event)| event.change());
            (self.0[at].0, fact.except(later.cloned()))
        });
        left.collect()
    }

    /// The value of what is read, by a fact that passes a test.
    pub fn value(&self, read: &Read<'_>, test: impl Fn(&Fact) -> bool) -> Option<Expr> {
        if self.is_gone(read) {
            return None;
        }
        let mut same: Vec<&Write> = Vec::new();
        for (_, event) in self.0.iter().rev() {
            match event {
                Event::Changed(change) if change.leaves(read) => {}
                // It may have stored what was there.
                Event::Changed(change) => {
                    if change.may_be_known() {
                        same.push(&change.write)
                    } else {
                        return None;
                    }
                }
                Event::Learned(fact) => {
                    let stands = same.iter().all(|w| changes_nothing(w, fact));
                    if stands
                        && fact.buffer == *read.buffer
                        && test(fact)
                        && let Some(value) = fact.value_at(read)
                    {
                        return Some(value);
                    }
                }
            }
        }
        None
    }

    /// Whether what was known last has changed at one of the points of the place. That is found
    /// sooner than that it has not changed at any.
    fn is_gone(&self, read: &Read<'_>) -> bool {
        let mut last = self.0.iter().rev().map_while(|(_, event)| event.change()).peekable();
        if last.peek().is_none() {
            return false;
        }
        let Some(middle) = read.points.middle() else { return false };
        let middle = AccessRelation::new(middle, &read.at);
        last.any(|change| !change.may_be_known() && !change.is_elsewhere(read, || &middle))
    }
}

impl Fact {
    pub fn new(
        (buffer, points, indices): (&Buffer, Points, Vec<Expr>),
        value: Expr,
        reads: Vec<(Var, usize)>,
        until: usize,
    ) -> Fact {
        let (buffer, without, form) = (buffer.clone(), Vec::new(), RefCell::default());
        Fact { buffer, points, indices, value, reads, until, without, form }
    }

    /// The fact where some changes leave it.
    pub(crate) fn except(
        self: &Rc<Fact>,
        changes: impl IntoIterator<Item = Rc<Change>>,
    ) -> Rc<Fact> {
        let without: Vec<_> = changes
            .into_iter()
            .filter(|c| {
                let later = c.others.iter().find(|o| !o.before);
                let by_index = later.is_some_and(|o| differ_by(&o.var, &c.write, self));
                !by_index && !changes_nothing(&c.write, self)
            })
            .collect();
        if without.is_empty() {
            self.clone()
        } else {
            let without = [self.without.clone(), without].concat();
            Rc::new(Fact { without, form: RefCell::default(), ..self.as_ref().clone() })
        }
    }

    /// The value of what is read, if all of it is among the cells.
    fn value_at(&self, read: &Read<'_>) -> Option<Expr> {
        let lanes = read.indices.last().map_or(1, |i| i.dtype().lanes);
        let here = lanes == 1 && self.without.is_empty() && self.points.contain(&read.points);
        if here && self.indices.iter().zip(&read.at).all(|(a, b)| same_expr(a, b)) {
            return Some(self.value.clone());
        }
        let form = self.form(read.loops);
        let (set, value) = form.known.as_ref()?;
        let place: Vec<Expr> =
            read.at.iter().cloned().chain(form.around.iter().map(Var::expr)).collect();
        if !read.points.domain().lies_in(&place, set) {
            return None;
        }
        if lanes == 1 {
            let given = read.indices.iter().cloned().chain(form.around.iter().map(Var::expr));
            let cells = form.cells.iter().zip(given);
            let cells = cells.map(|(c, e)| (c.clone(), e.cast(c.dtype())));
            return Some(Subst::vars(cells).expr(value));
        }
        // The same in all lanes.
        let free = free_vars(value);
        let varies = value.dtype().lanes != 1 || form.cells.iter().any(|c| free.contains(c));
        (!varies).then(|| Expr::broadcast(value.clone(), lanes))
    }

    /// The fact by its cells, in some loops.
    fn form(&self, loops: &[(Var, Range)]) -> Rc<FactInCells> {
        let mut around: Vec<Var> = loops.iter().map(|(v, _)| v.clone()).collect();
        around.retain(|v| self.points.vars().any(|x| x == v));
        let made = self.form.borrow().clone().filter(|form| form.around == around);
        made.unwrap_or_else(|| {
            let place: Vec<Expr> =
                self.indices.iter().cloned().chain(around.iter().map(Var::expr)).collect();
            let cells: Vec<Var> = place.iter().map(|e| Var::new("cell", e.dtype())).collect();
            let known = self.by_cells(&place, &cells, &around);
            let form = Rc::new(FactInCells { around, cells, known });
            *self.form.borrow_mut() = Some(form.clone());
            form
        })
    }

    /// The points without what has changed.
    fn domain(&self) -> Option<Domain> {
        let mut domain = self.points.domain().clone();
        for change in &self.without {
            let (place, over) = change.place()?;
            for (var, range) in &over {
                if domain.vars().all(|x| x != var) {
                    domain = domain.with_var(var, range);
                }
            }
            let over = over.iter().map(|(v, _)| v.expr());
            let at: Vec<Expr> = self.indices.iter().cloned().chain(over).collect();
            domain = domain.outside(&at, &place).ok()?;
        }
        Some(domain)
    }

    /// The cells and what they hold.
    fn by_cells(&self, place: &[Expr], cells: &[Var], around: &[Var]) -> Option<(Set, Expr)> {
        let domain = self.domain()?;
        let map = domain.map(place).ok()?;
        let set = map.range(cells).ok()?;
        let free = free_vars(&self.value);
        let wanted: Vec<Var> =
            domain.vars().filter(|v| free.contains(v) && !around.contains(v)).cloned().collect();
        if wanted.is_empty() {
            return Some((set, self.value.clone()));
        }
        let solved: Vec<(Var, Expr)> = match map.inverse(cells) {
            Ok(inverse) => domain.vars().cloned().zip(inverse).collect(),
            // Variables that do not matter may be what makes it ambiguous.
            Err(_) => {
                let mut with = place.to_vec();
                with.extend(wanted.iter().map(Var::expr));
                let columns: Vec<Var> = cells.iter().chain(&wanted).cloned().collect();
                let points = domain.map(&with).and_then(|m| m.range(&columns)).ok()?.domain();
                let exprs: Vec<Expr> = cells.iter().map(Var::expr).collect();
                let names: Vec<Var> = cells.iter().map(Var::fresh).collect();
                let named = names.iter().zip(&exprs);
                let back = Subst::vars(named.map(|(n, e)| (n.clone(), e.clone())));
                let inverse = points.map(&exprs).and_then(|m| m.inverse(&names)).ok()?;
                let inverse = inverse.iter().map(|e| back.clone().expr(e));
                columns.into_iter().zip(inverse).collect()
            }
        };
        Some((set, Subst::vars(solved).expr(&self.value)))
    }
}

impl Change {
    pub fn new(
        write: &Rc<Write>,
        others: Option<Others>,
        loops: &[(Var, Range)],
        except: Vec<(Vec<Expr>, Rc<Fact>)>,
    ) -> Change {
        let (write, loops, access) = (write.clone(), loops.to_vec(), OnceCell::new());
        Change { write, others, loops, except, access }
    }

    /// The variables that [`Change::access`] shares with the place.
    fn over(&self) -> Vec<(Var, Range)> {
        let others = self.others.iter().map(|o| (o.var.clone(), o.range.clone()));
        self.loops.iter().cloned().chain(others).collect()
    }

    /// What is touched, under other names for the variables of other iterations. `None` for
    /// anything.
    fn access(&self) -> Option<&AccessRelation> {
        self.access.get_or_init(|| self.make_access()).as_ref()
    }

    fn make_access(&self) -> Option<AccessRelation> {
        let at = self.write.indices.as_ref()?;
        let mut domain = self.write.points.domain().clone();
        for (place, fact) in &self.except {
            let form = fact.form(&self.loops);
            let Some((set, _)) = form.known.as_ref().filter(|(set, _)| set.is_exact()) else {
                continue;
            };
            let around = form.around.iter().map(Var::expr);
            let place: Vec<Expr> = place.iter().cloned().chain(around).collect();
            domain = domain.outside(&place, set).unwrap_or(domain);
        }
        let inner: Vec<Var> =
            domain.vars().filter(|v| self.loops.iter().all(|(x, _)| x != *v)).cloned().collect();
        let (there, names) = AccessRelation::new(&domain, at).elsewhere_in(&inner);
        let Some(Others { var, range, ordered, before }) = &self.others else { return Some(there) };
        let other = names.get(var)?.expr();
        let order = match before {
            _ if !ordered => other.not_equal(var),
            true => other.less(var),
            false => other.greater(var),
        };
        let domain = there.domain.with_var(var, range).with_guard(&order);
        Some(AccessRelation { domain, ..there })
    }

    /// The cells that are touched, by indices and the variables of [`Change::over`].
    fn place(&self) -> Option<(Set, Vec<(Var, Range)>)> {
        let AccessRelation { domain, indices } = self.access()?;
        let over = self.over();
        let at: Vec<Expr> =
            indices.iter().cloned().chain(over.iter().map(|(v, _)| v.expr())).collect();
        let cells: Vec<Var> = at.iter().map(|e| Var::new("cell", e.dtype())).collect();
        Some((domain.map(&at).and_then(|m| m.range(&cells)).ok()?, over))
    }

    /// Whether it certainly does not touch what is read.
    pub fn leaves(&self, read: &Read<'_>) -> bool {
        self.is_elsewhere(read, || read.access())
    }

    /// Whether a fact may have been derived from what it stores.
    fn may_be_known(&self) -> bool {
        self.write.value.effects().constant()
    }

    /// Whether it certainly does not touch what is read, some points of the place.
    fn is_elsewhere<'r>(
        &self,
        read: &Read<'_>,
        points: impl FnOnce() -> &'r AccessRelation,
    ) -> bool {
        self.write.buffer == *read.buffer
            && (self.write.indices.iter().any(|at| {
                at.iter()
                    .zip(&read.at)
                    .any(|(a, b)| a.as_int().zip(b.as_int()).is_some_and(|(a, b)| a != b))
            }) || self.access().is_some_and(|there| points().is_disjoint(there, &[])))
    }
}

/// Whether the cells of two iterations of a loop differ because it is an index of both.
fn differ_by(var: &Var, write: &Write, fact: &Fact) -> bool {
    write.indices.iter().any(|at| {
        at.iter()
            .zip(&fact.indices)
            .any(|(a, b)| a.as_var() == Some(var) && b.as_var() == Some(var))
    })
}

/// Whether a write stores what the fact says about all cells.
fn changes_nothing(write: &Write, fact: &Fact) -> bool {
    let free = free_vars(&fact.value);
    !fact.points.vars().any(|v| free.contains(v)) && same_expr(&write.value, &fact.value)
}
