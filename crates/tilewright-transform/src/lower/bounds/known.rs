//! What is known of indices at a place without sets: an interval for each variable, and linear
//! facts from loops and conditions.
//!
//! A fact is a linear form that is not negative. The least value of a form is found from the
//! intervals of its atoms, and from facts that have an atom in common with it: where `g >= 0` and
//! `p*form - q*g` has the lower bound `x` for positive `p` and `q`, the form is at least `x / p`
//! (one step of Fourier-Motzkin elimination; at most [`STEPS`] of them follow each other). A `min` or `max` has the value
//! of one of its operands: what holds of the form with either holds of it (a step, too).
//!
//! Facts are about values of the machine. A condition is learned only where its two sides do not
//! leave their type, since only then is it one about integers.

use std::cell::Cell;
use tilewright_ir::hash::HashMap;

use tilewright_ir::condition::parts;
use tilewright_ir::dim::MAX_CELLS;
use tilewright_ir::equal::same_expr;
use tilewright_ir::index::{Interval, Linear, Ranges, divided, is_index_type, linear, simplify};
use tilewright_ir::visit::{free_vars, walk_expr, walk_stmt};
use tilewright_ir::{
    BinOp, DType, Expr, ExprKind, Fold, ForKind, Range, Stmt, StmtKind, TensorFunc, Var, Visit,
};

use tilewright_polyhedral::scope::likely;

/// Facts that one proof may use, one after the other.
const STEPS: usize = 3;
/// Forms that one proof may look at.
const BUDGET: usize = 400;
/// Forms that a proof and those inside of it may look at: whether what is divided stays in its type is a proof, too.
const TOGETHER: usize = 4 * BUDGET;
/// Proofs inside of which another one may begin. A fact about what is divided may be one about the quotient.
const NESTED: usize = 3;
/// Nodes of an index that is worth looking at. Parts that are shared count each time.
const LARGEST: u32 = 2000;

/// What is known at a place.
#[derive(Default)]
pub(super) struct PlaceFacts {
    ranges: Ranges,
    /// Each is not negative.
    facts: Vec<Linear>,
    /// Extents of loops that start at zero, of which no value is as large, whatever arithmetic made them.
    extents: HashMap<Var, Expr>,
    /// How many proofs are under way, each inside of the one before, and how many forms they may still look at.
    proofs: Cell<(usize, usize)>,
}

/// A value, and the values of variables that give it.
type Corner = (i128, Vec<(Var, i128)>);

impl PlaceFacts {
    /// The place that [`PlaceFacts::back`] returns to, by the number of facts. Variables are unique, so that
    /// what is known of their intervals need not be forgotten.
    pub fn mark(&self) -> usize {
        self.facts.len()
    }

    /// Forgets what was learned since.
    pub fn back(&mut self, mark: usize) {
        self.facts.truncate(mark);
    }

    /// What the shapes of a function's arguments say.
    pub fn sizes(&mut self, func: &TensorFunc) {
        self.ranges.bind_sizes(func);
        let mut given = GivenMemory { sizes: func.sizes(), shapes: Vec::new() };
        given.stmt(&func.body);
        given.shapes.iter().for_each(|shape| self.ranges.bind_memory(shape));
        func.buffers().flat_map(|b| &b.shape).for_each(|e| self.learn_extent(e));
    }

    /// Takes it that an extent, of which its terms alone may say less, is that of a tensor.
    fn learn_extent(&mut self, extent: &Expr) {
        let is_sum = extent.as_int().is_none() && extent.as_var().is_none() && small(extent);
        let Some(form) = is_sum.then(|| linear(extent, &self.ranges)).flatten() else { return };
        if form.terms.len() > 1 {
            self.learn_above(&form, &Linear::constant(0, DType::I64), 0);
            self.learn_above(&Linear::constant(MAX_CELLS as i128, DType::I64), &form, 0);
        }
        if let [(atom, 1)] = &form.terms[..] {
            self.learn_divided(atom, form.constant);
        }
    }

    /// Takes it that a quotient and a number make an extent: the size that is divided is no larger than that allows.
    /// `(n + 11) // 8` cells say so of `n` even where the sum could wrap, since what wrapped and then was divided
    /// is a number of cells, too.
    fn learn_divided(&mut self, quotient: &Expr, more: i128) {
        let Some((of, by)) = divided(quotient, BinOp::FloorDiv) else { return };
        let Some((size, plus)) = Linear::shifted(of) else { return };
        let cells = Interval::new(-more, MAX_CELLS as i128 - more);
        let sum =
            Interval::new(cells.lo * by, cells.hi * by + by - 1).meet(Interval::all(of.dtype()));
        let values = Interval::new(sum.lo - i128::from(plus), sum.hi - i128::from(plus));
        // A sum in a wider type than the size's does not wrap.
        if size.dtype() != of.dtype() || values.within(Interval::all(size.dtype())) {
            let known = self.ranges.interval(&size.expr());
            self.ranges.bind(&size, known.meet(values));
        }
    }

    /// Enters a loop.
    pub fn enter(&mut self, var: &Var, range: &Range) {
        self.enter_unknown(var, range);
        if range.min.as_int() == Some(0) {
            self.extents.insert(var.clone(), range.extent.clone());
        }
        if range.min.as_int().is_none() {
            self.learn(&Expr::binary(BinOp::Ge, var.expr(), range.min.clone()), true);
        }
        if range.min.as_int().is_none() || range.extent.as_int().is_none() {
            let mut ends = Vec::new();
            each_part(&range.extent, BinOp::Min, &mut ends);
            for extent in ends {
                let end = Expr::binary(BinOp::Add, range.min.clone(), extent);
                self.learn(&Expr::binary(BinOp::Lt, var.expr(), end), true);
            }
        }
    }

    /// Enters a loop whose bounds may have other values inside of it.
    pub fn enter_unknown(&mut self, var: &Var, range: &Range) {
        if small(&range.min) && small(&range.extent) {
            self.ranges.bind_loop(var, range);
        }
    }

    /// Gives a variable a value that an expression may not have later.
    pub fn bind_unknown(&mut self, var: &Var, value: &Expr) {
        if let Some(values) = self.values(value) {
            self.ranges.bind(var, values);
        }
    }

    /// Gives a variable its value, which does not depend on memory.
    pub fn bind(&mut self, var: &Var, value: &Expr) {
        self.bind_unknown(var, value);
        if is_index_type(value.dtype()) {
            self.learn(&Expr::binary(BinOp::Eq, var.expr(), value.clone()), true);
        }
    }

    /// Takes a condition as true, or as false.
    pub fn learn(&mut self, cond: &Expr, holds: bool) {
        for (part, holds) in parts(cond, holds) {
            match likely(&part) {
                Some(inner) => self.learn(inner, holds),
                None => self.compare(&part, holds),
            }
        }
    }

    /// Takes a comparison as true, or as false.
    fn compare(&mut self, cond: &Expr, holds: bool) {
        let ExprKind::Binary(op, a, b) = cond.kind() else { return };
        let op = match (*op, holds) {
            (op, true) => op,
            (BinOp::Lt, _) => BinOp::Ge,
            (BinOp::Le, _) => BinOp::Gt,
            (BinOp::Gt, _) => BinOp::Le,
            (BinOp::Ge, _) => BinOp::Lt,
            (BinOp::Eq, _) => BinOp::Ne,
            (BinOp::Ne, _) => BinOp::Eq,
            _ => return,
        };
        let (Some(x), Some(y)) = (self.exact(a), self.exact(b)) else { return };
        match op {
            BinOp::Lt => self.learn_above(&y, &x, 1),
            BinOp::Le => self.learn_above(&y, &x, 0),
            BinOp::Gt => self.learn_above(&x, &y, 1),
            BinOp::Ge => self.learn_above(&x, &y, 0),
            BinOp::Eq => {
                self.learn_above(&x, &y, 0);
                self.learn_above(&y, &x, 0);
            }
            _ => {}
        }
    }

    /// Takes `greater - less - by >= 0` as true.
    fn learn_above(&mut self, greater: &Linear, less: &Linear, by: i128) {
        let difference = greater.clone().plus(less, -1);
        let by = Linear::constant(by, DType::I64);
        self.facts.extend(difference.and_then(|d| d.plus(&by, -1)));
    }

    /// The linear form of an expression that does not leave its type.
    pub fn exact(&self, e: &Expr) -> Option<Linear> {
        let x = small(e).then(|| linear(e, &self.ranges))??;
        self.fits(&x).then(|| self.without_casts(x))
    }

    /// A form with what is cast in the place of casts that keep the value.
    fn without_casts(&self, form: Linear) -> Linear {
        let each = form.terms.iter().filter_map(|(atom, c)| {
            let ExprKind::Cast(a) = atom.kind() else { return None };
            let keeps = self.values(a)?.within(Interval::of_type(atom.dtype())?);
            Some((atom, *c, self.exact(a).filter(|_| keeps)?))
        });
        let each: Vec<(&Expr, i128, Linear)> = each.collect();
        let replaced = each.iter().try_fold(form.clone(), |form, (atom, c, value)| {
            form.plus(&Linear::atom((*atom).clone()), -c)?.plus(value, *c)
        });
        replaced.unwrap_or(form)
    }

    /// A statement whose expressions are as short as intervals allow.
    pub fn simplified(&self, s: &Stmt) -> Stmt {
        Simplified(&self.ranges).stmt(s)
    }

    /// The values of an integer expression.
    pub fn values(&self, e: &Expr) -> Option<Interval> {
        (small(e) && Interval::of_type(e.dtype()).is_some()).then(|| self.ranges.interval(e))
    }

    /// The linear form of an index, whose value it has modulo the size of the type.
    fn form(&self, e: &Expr) -> Option<Linear> {
        match e.kind() {
            // A wider type holds the value as it is.
            ExprKind::Cast(a) if is_index_type(a.dtype()) && a.dtype().bits <= e.dtype().bits => {
                self.exact(a)
            }
            _ => Some(self.without_casts(small(e).then(|| linear(e, &self.ranges))??)),
        }
    }

    /// Whether `0 <= index`, and whether `index < extent`, wherever the place is reached.
    pub fn within(&self, index: &Expr, extent: &Expr) -> (bool, bool) {
        if !is_index_type(index.dtype()) {
            let Some(Interval { lo, hi }) = self.values(index) else { return (false, false) };
            let below = extent.as_int().is_some_and(|n| hi < i128::from(n));
            return (lo >= 0, below);
        }
        if index.as_var().is_some_and(|v| self.is_extent_of(v, extent)) {
            return (true, true);
        }
        let (Some(x), Some(n)) = (self.form(index), self.exact(extent)) else {
            return (false, false);
        };
        // Each side is proved of exact values; where both hold the machine's value is the exact
        // one. Where only one does, the index must not leave its type.
        let one = Linear::constant(1, DType::I64);
        let room = n.plus(&x, -1).and_then(|d| d.plus(&one, -1));
        let (above, below) = (
            self.least(&x).is_some_and(|lo| lo >= 0),
            room.as_ref().is_some_and(|form| self.least(form).is_some_and(|lo| lo >= 0)),
        );
        if above && below || self.fits(&x) { (above, below) } else { (false, false) }
    }

    /// Whether a loop runs from zero to an extent, as both are written.
    fn is_extent_of(&self, var: &Var, extent: &Expr) -> bool {
        self.extents.get(var).is_some_and(|own| small(own) && same_expr(own, extent))
    }

    /// A lower bound of a form.
    fn least(&self, form: &Linear) -> Option<i128> {
        let (around, left) = self.proofs.get();
        if around > NESTED {
            return None;
        }
        let left = if around == 0 { TOGETHER } else { left };
        self.proofs.set((around + 1, left));
        let least = Search { known: self, left: Cell::new(BUDGET) }.least(form, STEPS);
        self.proofs.set((around, self.proofs.get().1));
        least
    }

    /// The least and the greatest value of an index, each with the variables that give it; only
    /// for an index that is linear in variables which are `free` to take all values of their
    /// intervals.
    pub fn corners(&self, index: &Expr, free: &dyn Fn(&Var) -> bool) -> Option<[Corner; 2]> {
        let x = self.form(index)?;
        let Interval { lo, hi } = x.fits(&self.ranges)?;
        let (mut least, mut most) = (Vec::new(), Vec::new());
        for (atom, c) in &x.terms {
            let var = atom.as_var().filter(|v| free(v))?;
            let Interval { lo, hi } = self.values(atom)?;
            let (a, b) = if *c > 0 { (lo, hi) } else { (hi, lo) };
            least.push((var.clone(), a));
            most.push((var.clone(), b));
        }
        Some([(lo, least), (hi, most)])
    }

    /// Whether sums and products of an index, taken in 64 bits without wrapping, have the value
    /// that they have in `bits` bits: what code generation may take for granted.
    pub fn stays(&self, e: &Expr, bits: u16) -> bool {
        small(e) && self.wide(e, bits).is_some()
    }

    /// The exact values of an index all of whose sums and products fit so many bits.
    fn wide(&self, e: &Expr, bits: u16) -> Option<Interval> {
        let ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), a, b) = e.kind() else {
            return match e.kind() {
                // A value that wraps is not what is widened.
                ExprKind::Cast(a) if e.dtype() == DType::I64 && a.dtype() == DType::I32 => {
                    self.wide(a, 32)
                }
                _ => Some(self.ranges.interval(e)),
            };
        };
        let (x, y) = (self.wide(a, bits)?, self.wide(b, bits)?);
        if e.dtype() != DType::I32 {
            return Some(self.ranges.interval(e));
        }
        let limit = 1i128 << (bits - 1);
        let all = Interval::new(-limit, limit - 1);
        Interval::binary(*op, x, y).filter(|i| i.within(all))
    }

    /// Whether the value of no integer arithmetic inside leaves its type, so that what is true of integers is
    /// true of the machine's. Sums on the way to another sum may: they wrap, and it does not.
    pub fn integral(&self, e: &Expr) -> bool {
        if !small(e) {
            return false;
        }
        let mut sums = Sums { known: self, wraps: false };
        sums.expr(e);
        !sums.wraps
    }

    /// Whether a sum or product stays in its type, by intervals, or by facts.
    fn stays_in_type(&self, e: &Expr) -> bool {
        linear(e, &self.ranges).is_some_and(|x| self.fits(&x))
    }

    /// Whether the values of a form are those of its type, by intervals, or by facts.
    fn fits(&self, x: &Linear) -> bool {
        if x.fits(&self.ranges).is_some() {
            return true;
        }
        let Some(all) = Interval::of_type(x.dtype) else { return false };
        self.least(x).is_some_and(|lo| lo >= all.lo)
            && x.clone().times(-1).and_then(|x| self.least(&x)).is_some_and(|lo| -lo <= all.hi)
    }
}

/// Simplifies the expressions of statements.
struct Simplified<'a>(&'a Ranges);

impl Fold for Simplified<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        if small(e) { simplify(e, self.0) } else { e.clone() }
    }
}

/// Looks for sums that may leave their type.
struct Sums<'a> {
    known: &'a PlaceFacts,
    wraps: bool,
}

impl Sums<'_> {
    /// What a sum is made of, apart from sums of the same type.
    fn terms(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) => {
                self.terms(a);
                self.terms(b);
            }
            ExprKind::Binary(BinOp::Mul, a, b) if b.as_int().is_some() => self.terms(a),
            ExprKind::Binary(BinOp::Mul, a, b) if a.as_int().is_some() => self.terms(b),
            ExprKind::Binary(BinOp::Mul, a, b) => {
                self.expr(a);
                self.expr(b);
            }
            _ => self.expr(e),
        }
    }
}

impl Visit for Sums<'_> {
    fn expr(&mut self, e: &Expr) {
        let grows = matches!(e.kind(), ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, ..));
        if self.wraps || !grows || !e.dtype().is_int() {
            return walk_expr(self, e);
        }
        self.wraps = !self.known.stays_in_type(e);
        self.terms(e);
    }
}

/// Whether an expression has few nodes.
fn small(e: &Expr) -> bool {
    e.size() <= LARGEST
}

/// The operands of nested `min` or `max`.
fn each_part(e: &Expr, op: BinOp, out: &mut Vec<Expr>) {
    match e.kind() {
        ExprKind::Binary(found, a, b) if *found == op => {
            each_part(a, op, out);
            each_part(b, op, out);
        }
        _ => out.push(e.clone()),
    }
}

/// One proof.
struct Search<'a> {
    known: &'a PlaceFacts,
    left: Cell<usize>,
}

impl Search<'_> {
    /// A lower bound of a form that follows from at most `steps` facts.
    fn least(&self, form: &Linear, steps: usize) -> Option<i128> {
        let (around, together) = self.known.proofs.get();
        let (left, together) = (self.left.get().checked_sub(1)?, together.checked_sub(1)?);
        self.left.set(left);
        self.known.proofs.set((around, together));
        let mut best = self.by_intervals(form, 0);
        if steps == 0 || best.is_some_and(|lo| lo >= 0) {
            return best;
        }
        best = best.max(self.by_intervals(form, steps - 1));
        for (atom, c) in &form.terms {
            best = best.max(self.by_cases(form, atom, *c, steps - 1));
        }
        let mut others: Vec<Linear> = Vec::new();
        for (atom, _) in &form.terms {
            self.about(atom, &mut others);
        }
        for fact in self.known.facts.iter().chain(&others) {
            if best.is_some_and(|lo| lo >= 0) {
                break;
            }
            for (atom, q) in &form.terms {
                let Some((_, p)) =
                    fact.terms.iter().find(|t| tilewright_ir::equal::same_expr(&t.0, atom))
                else {
                    continue;
                };
                if p.signum() != q.signum() {
                    continue;
                }
                let (p, q) = (p.abs(), q.abs());
                let rest = form.times(p).and_then(|f| f.plus(fact, -q));
                let lo = rest.and_then(|rest| self.least(&rest, steps - 1));
                // The form is an integer: round up.
                best = best.max(lo.map(|lo| -((-lo).div_euclid(p))));
            }
        }
        best
    }

    /// A lower bound of a form with an atom that has one of two values: the lesser of those with either.
    fn by_cases(&self, form: &Linear, atom: &Expr, c: i128, steps: usize) -> Option<i128> {
        let ExprKind::Binary(BinOp::Min | BinOp::Max, a, b) = atom.kind() else { return None };
        let without = form.clone().plus(&Linear::atom(atom.clone()), -c)?;
        let with =
            |value: &Expr| self.least(&without.clone().plus(&self.known.exact(value)?, c)?, steps);
        Some(with(a)?.min(with(b)?))
    }

    /// The sum of the least values of the terms; those of quotients from facts about what is
    /// divided.
    fn by_intervals(&self, form: &Linear, steps: usize) -> Option<i128> {
        form.terms.iter().try_fold(form.constant, |sum, (atom, c)| {
            let Interval { lo, hi } = self.ends(atom, steps)?;
            sum.checked_add(c.checked_mul(if *c > 0 { lo } else { hi })?)
        })
    }

    fn ends(&self, atom: &Expr, steps: usize) -> Option<Interval> {
        let known = self.known.ranges.interval(atom);
        let quotient = divided(atom, BinOp::FloorDiv).filter(|_| steps > 0);
        let exact = quotient.and_then(|(y, by)| Some((self.known.exact(y)?, by)));
        let Some((y, by)) = exact else { return Some(known) };
        let least = self.least(&y, steps - 1).map_or(known.lo, |y| y.div_euclid(by));
        let most = y.times(-1).and_then(|y| self.least(&y, steps - 1));
        let most = most.map_or(known.hi, |y| (-y).div_euclid(by));
        Some(known.meet(Interval::new(least, most)))
    }

    /// Facts that hold of an atom by what it is.
    fn about(&self, atom: &Expr, out: &mut Vec<Linear>) {
        let ExprKind::Binary(op, a, b) = atom.kind() else { return };
        let zero = Linear::constant(0, DType::I64);
        match op {
            BinOp::Min | BinOp::Max => {
                let sign = if *op == BinOp::Min { -1 } else { 1 };
                for part in [a, b] {
                    let part = self.known.exact(part);
                    out.extend(part.and_then(|x| multiple_of(sign, atom, &zero).plus(&x, -sign)));
                }
            }
            // 0 <= y - c * (y // c) <= c - 1
            BinOp::FloorDiv => {
                let quotient = divided(atom, BinOp::FloorDiv);
                let exact = quotient.and_then(|(y, by)| Some((self.known.exact(y)?, by)));
                let Some((y, by)) = exact else { return };
                let last = Linear::constant(by - 1, DType::I64);
                out.extend(multiple_of(-by, atom, &zero).plus(&y, 1));
                out.extend(
                    multiple_of(by, atom, &zero).plus(&y, -1).and_then(|x| x.plus(&last, 1)),
                );
            }
            // y % c = y - c * (y // c), which is at most y where y is not negative.
            BinOp::FloorMod => {
                let Some(y) = self.known.exact(a) else { return };
                if y.values(&self.known.ranges).is_some_and(|i| i.lo >= 0) {
                    out.extend(multiple_of(-1, atom, &zero).plus(&y, 1));
                }
                let Some(by) = b.as_int().filter(|by| *by > 0) else { return };
                let quotient = Expr::binary(BinOp::FloorDiv, a.clone(), b.clone());
                for sign in [1, -1] {
                    let whole = multiple_of(sign * i128::from(by), &quotient, &zero);
                    let rest = multiple_of(sign, atom, &zero).plus(&whole, 1);
                    out.extend(rest.and_then(|x| x.plus(&y, -sign)));
                }
            }
            _ => {}
        }
    }
}

/// The memory of open size that becomes parameters (`scratch`): it is allocated outside of parallel loops.
struct GivenMemory {
    sizes: Vec<Var>,
    shapes: Vec<Vec<Expr>>,
}

impl Visit for GivenMemory {
    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::For { kind: ForKind::Parallel, .. } => return,
            StmtKind::Allocate { buffer, .. } if buffer.const_shape().is_none() => {
                let is_size = |v: &Var| self.sizes.contains(v);
                if buffer.shape.iter().all(|e| free_vars(e).iter().all(is_size)) {
                    self.shapes.push(buffer.shape.to_vec());
                }
            }
            _ => {}
        }
        walk_stmt(self, s);
    }
}

fn multiple_of(c: i128, atom: &Expr, zero: &Linear) -> Linear {
    Linear { terms: vec![(atom.clone(), c)], ..zero.clone() }
}
