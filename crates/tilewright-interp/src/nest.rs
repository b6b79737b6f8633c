//! Running a perfect nest of loops around one `float32` store in batches.
//!
//! Most of the work of a model is of this form: `C[i, j] = C[i, j] + A[i, k] * B[k, j]`. Taking
//! one loop as innermost and computing its iterations together costs a closure call for some
//! hundred elements instead of for each one.
//!
//! This gives the same bits as the loops in their order. The *spatial* loops are those that move
//! the stored element, the others *reduce*. A nest is taken only if
//! * different values of the spatial loops store different elements, so that these loops may be
//!   interchanged with each other and with those that reduce;
//! * what reduces is `element = element op rest`, and the loops that reduce keep their order, so
//!   that each element goes through the same operations in the same order;
//! * `rest` does not read the memory that is stored to, and nothing has side effects;
//! * all accesses are within bounds whatever the loop variables are;
//! * no loop that reduces promises that its iterations do not depend on one another, except for a
//!   vectorised one around updates. The spatial loops keep such a promise.
//!
//! What may still go wrong (reading what was never written) sends the nest back to the loops as
//! they stand, which report it, or copy it.

use tilewright_ir::{
    AtOnce, BinOp, Block, Buffer, CallTarget, DType, Expr, ExprKind, ForKind, IterKind, Range,
    Result, Stmt, StmtKind, Var,
};

use crate::batch::{
    BATCH, Batch, Fold, Lanes, Loop, Nest, Operand, combine, one_by_one, with_operator,
};
use crate::code::{Affine, ValueCode, range_of};
use crate::compile::{Bound, Compiler};
use crate::place::Access;
use crate::race::Act;
use crate::scalar;

/// A nest as it is in the tree.
struct Shape<'s> {
    loops: Vec<(&'s Var, &'s Range, &'s ForKind)>,
    block: Option<(&'s [Expr], &'s Block)>,
    init: Option<&'s Stmt>,
    body: &'s Stmt,
}

/// Slots of loops, with how their iterations may run at once.
type Promises = Vec<(usize, AtOnce)>;

/// Takes a statement apart, where it is a nest around one store.
fn shape(s: &Stmt) -> Option<Shape<'_>> {
    let mut loops = Vec::new();
    let mut s = s;
    while let StmtKind::For { var, range, kind, body, .. } = s.kind() {
        loops.push((var, range, kind));
        s = body;
    }
    let (block, init, body) = match s.kind() {
        StmtKind::Store { .. } => (None, None, s),
        StmtKind::Block { bindings, predicate, block } => {
            let plain = predicate.is_true() && block.allocs.is_empty() && block.matches.is_empty();
            let store = matches!(block.body.kind(), StmtKind::Store { .. });
            if !plain || !store {
                return None;
            }
            (Some((bindings.as_slice(), &**block)), block.init.as_ref(), &block.body)
        }
        _ => return None,
    };
    Some(Shape { loops, block, init, body })
}

impl Compiler<'_> {
    /// Compiles a loop nest to batches, if it is of the form that they take.
    pub fn batches(&mut self, s: &Stmt) -> Option<Nest> {
        let shape = self.batching.then(|| shape(s)).flatten()?;
        self.nest(&shape).ok().flatten()
    }

    /// The loops, and what those promise that may run at once; `None` where a bound is open, or not
    /// of the variable's type.
    fn loops_of(&mut self, s: &Shape<'_>) -> Option<(Vec<Loop>, Promises)> {
        let mut all = Vec::new();
        let mut at_once = Vec::new();
        for (var, range, kind) in &s.loops {
            let (min, extent) = range.min.as_int().zip(range.extent.as_int())?;
            let last = min.checked_add(extent).and_then(|end| end.checked_sub(1));
            let (_, most) = range_of(var.dtype());
            if extent < 1 || last.is_none_or(|last| last > most) {
                return None;
            }
            let slot = self.define(var, min, last.unwrap_or(min));
            all.push(Loop { slot, min, extent });
            at_once.extend(AtOnce::from_kind(kind).filter(|_| extent > 1).map(|how| (slot, how)));
        }
        Some((all, at_once))
    }

    /// Binds the variables of the block, and gives those that reduce, with their first values; `None`
    /// where one is not affine, or may leave its domain.
    fn bind_block(&mut self, s: &Shape<'_>) -> Result<Option<Vec<(Affine, i64)>>> {
        let mut firsts = Vec::new();
        let Some((bindings, block)) = s.block else { return Ok(Some(firsts)) };
        for (iter, binding) in block.iters.iter().zip(bindings) {
            let value = self.int(binding)?;
            let domain = iter.domain.min.as_int().zip(iter.domain.extent.as_int());
            let Some((min, extent)) = domain else { return Ok(None) };
            let inside = min <= value.lo && value.hi.checked_sub(min).is_some_and(|d| d < extent);
            let Some(affine) = value.affine().filter(|_| inside).cloned() else {
                return Ok(None);
            };
            if iter.kind == IterKind::Reduce {
                firsts.push((affine.clone(), min));
            }
            let bound = Bound { slot: 0, lo: value.lo, hi: value.hi, affine: Some(affine) };
            self.vars.insert(iter.var.clone(), bound);
        }
        Ok(Some(firsts))
    }

    fn nest(&mut self, s: &Shape<'_>) -> Result<Option<Nest>> {
        let Some((all, at_once)) = self.loops_of(s) else { return Ok(None) };
        let Some(firsts) = self.bind_block(s)? else { return Ok(None) };
        let StmtKind::Store { buffer, indices, value } = s.body.kind() else { return Ok(None) };
        if buffer.dtype() != DType::F32 || value.effects().calls {
            return Ok(None);
        }
        let number = self.memories.number(buffer);
        if self.memories.info.get(number).is_none_or(|i| i.undef) {
            return Ok(None);
        }
        let access = self.access(buffer, indices)?;
        let Some(at) = access.direct().cloned() else { return Ok(None) };
        let (spatial, reduce): (Vec<Loop>, Vec<Loop>) =
            all.iter().partition(|l| at.coefficient(l.slot) != 0);
        if !injective(&at, &spatial) {
            return Ok(None);
        }
        let folded = self.fold_of(buffer, &access, value)?;
        let (fold, rest) = match &folded {
            Some((fold, rest)) => (Some(*fold), rest),
            None => (None, value),
        };
        // Without a fold, only the last value of what reduces would stay; with one, the rest
        // must not see the elements change.
        let reads_own = self.reads(rest, number);
        let runs = reduce.iter().any(|l| l.extent > 1);
        if (fold.is_none() && (runs || s.init.is_some())) || (reads_own && (runs || fold.is_some()))
        {
            return Ok(None);
        }
        if reads_own && !self.reads_only(rest, buffer, &at)? {
            return Ok(None);
        }
        let shares_cells = at_once.iter().any(|(slot, how)| {
            reduce.iter().any(|l| l.slot == *slot) && !(*how == AtOnce::Lanes && s.init.is_none())
        });
        if shares_cells {
            return Ok(None);
        }
        let init = match s.init.map(Stmt::kind) {
            None => None,
            Some(StmtKind::Store { buffer: b, indices, value }) => {
                let same = b == buffer && self.access(b, indices)?.direct() == Some(&at);
                if !same || value.effects().calls || self.reads(value, number) {
                    return Ok(None);
                }
                Some(value)
            }
            Some(_) => return Ok(None),
        };
        // The init runs where every reduction variable is at its first value: that must be the
        // first iteration of the loops that reduce, and no other.
        if init.is_some() && !starts(&firsts, &reduce, &spatial) {
            return Ok(None);
        }
        let Some((batched, across)) = self.choose(rest, &at, &spatial, &reduce)? else {
            return Ok(None);
        };
        let act = match (&folded, &init) {
            (Some(_), None) => self.act(buffer, indices, value),
            _ => Act::Write,
        };
        let access = access.watched(self.watching(buffer, act));
        let copies = match init {
            Some(init) => self.memories.copies(init),
            None => folded.is_none() && self.memories.copies(value),
        };
        let Some(value) = self.operand(rest, batched.slot)? else { return Ok(None) };
        let init = match init {
            None => None,
            Some(e) => match self.operand(e, batched.slot)? {
                Some(operand) => Some(operand),
                None => return Ok(None),
            },
        };
        let Some(to) = Lanes::new(access, batched.slot) else { return Ok(None) };
        let steps = steps(&all, &spatial, init.is_some());
        let (spatial, reduce) = (loops_but(spatial, batched), loops_but(reduce, batched));
        Ok(steps.map(|steps| Nest {
            spatial,
            reduce,
            batched,
            across,
            to,
            init,
            fold,
            value,
            copies,
            steps,
        }))
    }

    /// `element op rest`, where the value is that.
    fn fold_of(
        &mut self,
        buffer: &Buffer,
        to: &Access,
        value: &Expr,
    ) -> Result<Option<(Fold, Expr)>> {
        let ExprKind::Binary(op, a, b) = value.kind() else { return Ok(None) };
        if !matches!(op, BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max) {
            return Ok(None);
        }
        for (element, rest, element_first) in [(a, b, true), (b, a, false)] {
            if let ExprKind::Load(b, indices) = element.kind()
                && b == buffer
                && self.access(b, indices)?.direct() == to.direct()
            {
                return Ok(Some((Fold { op: *op, element_first }, rest.clone())));
            }
        }
        Ok(None)
    }

    /// Whether an expression reads a memory.
    fn reads(&self, e: &Expr, number: usize) -> bool {
        let mut found = false;
        e.for_each_load(|b, _| found |= self.memories.number(b) == number);
        found
    }

    /// Whether an expression reads the memory of a buffer only at one place.
    fn reads_only(&mut self, e: &Expr, buffer: &Buffer, at: &Affine) -> Result<bool> {
        let number = self.memories.number(buffer);
        for (b, indices) in loads(e) {
            if self.memories.number(&b) == number
                && (b != *buffer || self.access(&b, &indices)?.direct() != Some(at))
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The loop whose batches cost least, and whether it is spatial; `None` if none is long
    /// enough to be worth it.
    fn choose(
        &mut self,
        value: &Expr,
        at: &Affine,
        spatial: &[Loop],
        reduce: &[Loop],
    ) -> Result<Option<(Loop, bool)>> {
        let mut places = Vec::new();
        for (b, indices) in loads(value) {
            places.extend(self.access(&b, &indices)?.direct().cloned());
        }
        // In nanoseconds, roughly: a batch, an element of a load, one of a serial reduction.
        let cost = |l: &Loop, across: bool| {
            let loads: f64 = places.iter().map(|a| element_cost(a, l)).sum();
            let last = if across { 0.1 * element_cost(at, l) } else { 1.2 };
            40.0 / l.extent.min(BATCH as i64) as f64 + loads + last
        };
        let mut best: Option<(Loop, bool, f64)> = None;
        let last = reduce.iter().rev().find(|l| l.extent > 1).map(|l| (l, false));
        for (l, across) in spatial.iter().map(|l| (l, true)).chain(last) {
            let cost = cost(l, across);
            if l.extent >= 4 && best.is_none_or(|(_, _, c)| cost < c) {
                best = Some((*l, across, cost));
            }
        }
        Ok(best.map(|(l, across, _)| (l, across)))
    }

    /// Compiles an expression to batches over a loop.
    fn operand(&mut self, e: &Expr, slot: usize) -> Result<Option<Operand>> {
        self.spend()?;
        match e.kind() {
            _ if e.dtype() != DType::F32 => return Ok(None),
            ExprKind::Float(v) => return Ok(Some(Operand::Const(*v as f32))),
            ExprKind::Load(b, indices) if b.dtype() == DType::F32 => {
                let access = self.access(b, indices)?.watched(self.watching(b, Act::Read));
                let undef =
                    self.memories.info.get(self.memories.number(b)).is_some_and(|i| i.undef);
                if let Some(lanes) = Lanes::new(access, slot).filter(|_| !undef) {
                    return Ok(Some(Operand::Lanes(lanes)));
                }
            }
            ExprKind::Binary(op, a, b) if !op.is_compare() && !op.is_logic() => {
                let (a, b) = (self.operand(a, slot)?, self.operand(b, slot)?);
                let Some((a, b)) = a.zip(b) else { return Ok(None) };
                let batch: Option<Batch> = with_operator!(op, f => combine(f, a, b));
                return Ok(batch.map(Operand::Batch));
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => {
                if let ([a], Some(f)) = (args.as_slice(), op.of_float()) {
                    let Some(a) = self.operand(a, slot)? else { return Ok(None) };
                    return Ok(Some(Operand::Batch(Box::new(move |m, out| {
                        a.eval(m, out);
                        out.iter_mut().for_each(|x| *x = f(f64::from(*x)) as f32);
                    }))));
                }
            }
            _ => {}
        }
        // Anything else, element by element.
        let ValueCode::F32(code) = self.value(e)? else { return Ok(None) };
        Ok(Some(Operand::Batch(one_by_one(code, slot))))
    }
}

fn loops_but(loops: Vec<Loop>, batched: Loop) -> Vec<Loop> {
    loops.into_iter().filter(|l| l.slot != batched.slot).collect()
}

fn element_cost(a: &Affine, l: &Loop) -> f64 {
    match a.coefficient(l.slot) {
        0 => 0.1,
        1 => 0.3,
        _ => 1.2,
    }
}

/// The loads of an expression.
fn loads(e: &Expr) -> Vec<(Buffer, Vec<Expr>)> {
    let mut loads = Vec::new();
    e.for_each_load(|b, indices| loads.push((b.clone(), indices.to_vec())));
    loads
}

/// Whether different values of the loops give different positions: sorted by size, each step is
/// larger than what all smaller ones reach together.
fn injective(at: &Affine, loops: &[Loop]) -> bool {
    let mut steps: Vec<(i128, i128)> = loops
        .iter()
        .map(|l| (i128::from(at.coefficient(l.slot)).abs(), i128::from(l.extent)))
        .filter(|(_, n)| *n > 1)
        .collect();
    steps.sort_unstable();
    let mut reach = 0;
    steps.iter().all(|(step, n)| {
        let fits = *step > reach;
        reach += step * (n - 1);
        fits
    })
}

/// Whether the reduction variables are all at their first values exactly in the first iteration
/// of the loops that reduce: each loop that reduces is a variable of its own.
fn starts(firsts: &[(Affine, i64)], reduce: &[Loop], spatial: &[Loop]) -> bool {
    // Every value is above the first one, and each loop moves some variable; then all variables
    // are at their first values only where every loop is.
    firsts.iter().all(|f| is_at_start(f, spatial, reduce) && rises(f))
        && reduce
            .iter()
            .all(|l| l.extent == 1 || firsts.iter().any(|(a, _)| a.coefficient(l.slot) != 0))
}

fn is_at_start((a, min): &(Affine, i64), spatial: &[Loop], reduce: &[Loop]) -> bool {
    is_fixed(a, spatial) && first_value(a, reduce) == Some(*min)
}

fn rises((a, _): &(Affine, i64)) -> bool {
    a.terms.iter().all(|(_, c)| *c > 0)
}

fn is_fixed(a: &Affine, spatial: &[Loop]) -> bool {
    spatial.iter().all(|l| a.coefficient(l.slot) == 0)
}

fn first_value(a: &Affine, reduce: &[Loop]) -> Option<i64> {
    a.terms.iter().try_fold(a.base, |sum, &(slot, c)| {
        let l = reduce.iter().find(|l| l.slot == slot)?;
        sum.checked_add(l.min.checked_mul(c)?)
    })
}

/// Steps that the loops of a nest take: one an iteration and one a store.
fn steps(all: &[Loop], spatial: &[Loop], init: bool) -> Option<u64> {
    let mut points = 1u64;
    let mut steps = 0u64;
    for l in all {
        points = points.checked_mul(u64::try_from(l.extent).ok()?)?;
        steps = steps.checked_add(points)?;
    }
    let mut inits = u64::from(init);
    for l in spatial {
        inits = inits.checked_mul(u64::try_from(l.extent).ok()?)?;
    }
    steps.checked_add(points)?.checked_add(inits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunOptions;
    use crate::alias::{Memories, Mode};
    use tilewright_ir::{IterVar, Param, TensorFunc};

    /// Whether a nest of `loops` around `B[at] = value` runs in batches. `A` has 64 by 64
    /// elements and is given, `B` has as many and is an output.
    fn runs_in_batches(
        loops: &[(&Var, i32)],
        value: impl Fn(&Buffer, &Buffer) -> Expr,
        at: [Expr; 2],
    ) -> bool {
        runs_in_batches_with(loops, value, at, None)
    }

    /// The same in a block with an init, where `reduce` are the reduction variables.
    fn runs_in_batches_with(
        loops: &[(&Var, i32)],
        value: impl Fn(&Buffer, &Buffer) -> Expr,
        at: [Expr; 2],
        reduce: Option<&[&Var]>,
    ) -> bool {
        let [a, b] = ["A", "B"].map(|n| Buffer::with_extents(n, &[64, 64], DType::F32));
        let mut body = Stmt::store(&b, at.to_vec(), value(&a, &b));
        if let Some(reduce) = reduce {
            let mut block = Block::new("block", body);
            block.init = Some(Stmt::store(&b, at.to_vec(), Expr::float(0.0, DType::F32)));
            let mut bindings = Vec::new();
            let mut renamed = tilewright_ir::visit::Subst::default();
            for (v, n) in loops {
                let kind = if reduce.contains(v) { IterKind::Reduce } else { IterKind::Spatial };
                let var = v.fresh();
                renamed.vars.insert((*v).clone(), var.expr());
                bindings.push(v.expr());
                block.iters.push(IterVar { var, domain: Range::upto(Expr::i32(*n)), kind });
            }
            use tilewright_ir::Fold;
            block.body = renamed.stmt(&block.body);
            block.init = block.init.as_ref().map(|s| renamed.stmt(s));
            body = Stmt::block(bindings, Expr::bool(true), block);
        }
        let body = loops.iter().rev().fold(body, |s, (v, n)| Stmt::serial(v, Expr::i32(*n), s));
        let f = TensorFunc::new(vec![Param::tensor(&a), Param::tensor(&b)], body.clone());
        assert_eq!(
            tilewright_ir::well_formed::check_tensor("f", &f).map_err(|e| e.render()),
            Ok(())
        );
        let options = RunOptions::default();
        let memories = Memories::new(&f, &[Mode::Given, Mode::Fresh], false);
        let mut c = Compiler::new(&options, memories);
        for (i, b) in [&a, &b].into_iter().enumerate() {
            assert!(c.place(b, i, &mut Vec::new()).is_ok());
        }
        c.batches(&body).is_some()
    }

    #[test]
    fn what_runs_in_batches() {
        let [i, j, k] = ["i", "j", "k"].map(Var::index);
        let ij = || [i.expr(), j.expr()];
        let two = [(&i, 64), (&j, 64)];
        let three = [(&i, 64), (&j, 64), (&k, 64)];
        let product = |a: &Buffer| a.load([i.expr(), k.expr()]) * a.load([k.expr(), j.expr()]);
        let sum = |a: &Buffer, b: &Buffer| b.load(ij()) + product(a);
        assert!(runs_in_batches(&two, |a, _| a.load([j.expr(), i.expr()]) * 2.0, ij()));
        assert!(runs_in_batches(&two, |_, b| b.load(ij()) * 2.0, ij()));
        assert!(runs_in_batches(&three, sum, ij()));
        assert!(runs_in_batches_with(&three, sum, ij(), Some(&[&k])));
        assert!(runs_in_batches_with(
            &[(&k, 64)],
            |a, b| { b.load([Expr::i32(0), Expr::i32(1)]).max(a.load([k.expr(), k.expr()])) },
            [Expr::i32(0), Expr::i32(1)],
            Some(&[&k])
        ));
        // Not: too short, elements that are stored twice, a reduction that is none, reads of
        // other elements of what is stored to, an init that runs elsewhere, a guard needed.
        assert!(!runs_in_batches(&[(&i, 3), (&j, 2)], |a, _| a.load(ij()), ij()));
        assert!(!runs_in_batches(
            &[(&i, 30), (&j, 30)],
            |a, _| a.load(ij()),
            [&i + &j, Expr::i32(0)]
        ));
        assert!(!runs_in_batches(&three, |a, _| product(a), ij()));
        assert!(!runs_in_batches(&three, |a, b| product(a) - b.load(ij()), ij()));
        assert!(!runs_in_batches(&two, |_, b| b.load([j.expr(), i.expr()]), ij()));
        assert!(!runs_in_batches(
            &three,
            |a, b| b.load(ij()) + b.load([k.expr(), k.expr()]) * product(a),
            ij()
        ));
        assert!(!runs_in_batches_with(&three, sum, ij(), Some(&[&j])));
        assert!(!runs_in_batches_with(&three, sum, ij(), Some(&[])));
        assert!(!runs_in_batches(&two, |a, _| a.load([&i + 1, j.expr()]), [&i + 1, j.expr()]));
    }
}
