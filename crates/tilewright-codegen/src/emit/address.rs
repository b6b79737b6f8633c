//! Addresses loop by loop: a pointer that moves with the outer loops, and an offset behind it.
//!
//! An index is a sum whose terms change with different loops. The terms of each loop move the pointer once, in the
//! order of the nest, so that LLVM's loop-invariant code motion leaves each step in its own loop. The terms of the
//! innermost loop stay as the offset, with the constants and the terms of unrolled loops: these become
//! displacements of one pointer. Added in the order of the axes instead, each unrolled access would keep an
//! address of its own, which costs registers and half of the time that LLVM takes for a tile.

use tilewright_ir::hash::HashSet;

use tilewright_ir::index::divided_by_size;
use tilewright_ir::visit::{free_vars, walk_expr, walk_stmt};
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Result, Stmt, StmtKind, Var, Visit};

use super::code::{Ty, Val};
use super::func::Func;
use super::types::memory;

/// Nesting depth of unrolled loops: their variables become constants, whatever is around them.
pub(super) const UNROLLED: usize = usize::MAX;

/// Most terms of an index that is taken apart. A sum may repeat what is shared, and have many.
const MOST_TERMS: usize = 32;

/// Where the elements of a buffer begin, or a place among them.
pub(super) struct Base {
    pub pointer: Val,
    /// Whether the pointer lies within the buffer for certain, so that addresses behind it may say so, too.
    pub inside: bool,
}

/// A term of a sum.
struct Term {
    value: Expr,
    negative: bool,
    /// The depth of the innermost loop that it changes with.
    depth: usize,
}

impl Func<'_> {
    /// The beginning of a buffer.
    pub(super) fn beginning(&self, buffer: &Buffer) -> Result<Base> {
        Ok(Base { pointer: self.pointer(buffer)?, inside: true })
    }

    /// How deep the innermost loop is that an expression changes with. What reads memory may change anywhere.
    pub(super) fn nesting_of(&self, e: &Expr) -> usize {
        let effects = e.effects();
        if effects.loads || effects.calls {
            return self.nesting;
        }
        let depths = free_vars(e).into_iter().filter_map(|v| self.nests.get(&v).copied());
        depths.max().unwrap_or(0)
    }

    /// A pointer and the indices that are left behind it, those of the innermost loop; no pointer and all of the
    /// indices where these are no sum of terms of several loops.
    pub(super) fn approach(
        &mut self,
        buffer: &Buffer,
        indices: &[Expr],
    ) -> Result<(Option<Base>, Vec<Expr>)> {
        let flat = buffer.strides.is_empty()
            && buffer.elem_offset.is_none()
            && buffer.dtype().lanes == 1
            && &*buffer.scope != "local";
        let [index] = indices else { return Ok((None, indices.to_vec())) };
        let first = match index.kind() {
            ExprKind::Ramp(first, _) => first,
            _ => index,
        };
        if !flat || first.dtype().lanes != 1 || !self.stays_in_index(first) {
            return Ok((None, indices.to_vec()));
        }
        let mut terms = Vec::new();
        self.collect_terms(first, false, &mut terms);
        if terms.len() > MOST_TERMS {
            return Ok((None, indices.to_vec()));
        }
        let exact = terms.iter().all(|t| self.stays_in_index(&t.value));
        let Some(innermost) =
            terms.iter().filter(|t| t.value.as_int().is_none()).map(|t| t.depth).max()
        else {
            return Ok((None, indices.to_vec()));
        };
        if !exact || terms.iter().all(|t| t.depth == innermost || t.value.as_int().is_some()) {
            return Ok((None, indices.to_vec()));
        }
        let (mut outer, inner): (Vec<Term>, Vec<Term>) =
            terms.into_iter().partition(|t| t.depth != innermost && t.value.as_int().is_none());
        outer.sort_by_key(|t| t.depth);
        let inside = outer.iter().chain(&inner).all(|t| self.is_forward(t));
        let mut pointer = self.pointer(buffer)?;
        for terms in outer.chunk_by(|a, b| a.depth == b.depth) {
            let mut by = Val::int(Ty::I64, 0);
            for t in terms {
                let value = self.index64(&t.value)?;
                by = if t.negative {
                    self.code.bin_of_numbers("sub nsw", &by, &value)
                } else {
                    self.code.add_index(&by, &value, true)
                };
            }
            let element =
                Ty::I1.with_scalar(memory(buffer.dtype(), self.code.shared.machine.half)?);
            pointer = self.code.element_address(&pointer, element, &by, inside);
        }
        let rest = sum_of(inner, first);
        let index = match index.kind() {
            ExprKind::Ramp(_, stride) => Expr::ramp(rest, stride.clone(), index.dtype().lanes),
            _ => rest,
        };
        Ok((Some(Base { pointer, inside }), vec![index]))
    }

    fn collect_terms(&self, e: &Expr, negative: bool, terms: &mut Vec<Term>) {
        match e.kind() {
            _ if terms.len() > MOST_TERMS => {}
            ExprKind::Binary(BinOp::Add, a, b) => {
                self.collect_terms(a, negative, terms);
                self.collect_terms(b, negative, terms);
            }
            ExprKind::Binary(BinOp::Sub, a, b) => {
                self.collect_terms(a, negative, terms);
                self.collect_terms(b, !negative, terms);
            }
            _ => terms.push(Term { value: e.clone(), negative, depth: self.depth_of(e) }),
        }
    }

    /// The depth of the innermost loop that a term changes with. A quotient or remainder of the variable of an unrolled
    /// loop is no constant displacement: each copy of the loop has one, which the loops around it compute.
    fn depth_of(&self, e: &Expr) -> usize {
        let depth = self.nesting_of(e);
        if depth != UNROLLED || !self.divides_unrolled(e) {
            return depth;
        }
        let depths = free_vars(e).into_iter().filter_map(|v| self.nests.get(&v).copied());
        depths.filter(|d| *d != UNROLLED).max().unwrap_or(0)
    }

    /// Whether something that changes with an unrolled loop is divided by what is no number.
    fn divides_unrolled(&self, e: &Expr) -> bool {
        e.any(|part| divided_by_size(part).is_some_and(|(_, x, _)| self.nesting_of(x) == UNROLLED))
    }

    /// Whether a term never moves a pointer back.
    fn is_forward(&self, t: &Term) -> bool {
        let range = self.ranges.interval(&t.value);
        if t.negative { range.hi <= 0 } else { range.lo >= 0 }
    }
}

/// Whether statements use a variable in sums of indices alone. Its counter has 64 bits then, as addresses have:
/// widened in each iteration, it would be copied before it is scaled, and what is scaled with it had to be read
/// first. Quotients, conditions and values of a counter are those of `int32`, for which there are vectors.
pub(super) fn is_for_addresses(var: &Var, body: &Stmt) -> bool {
    let mut uses = Uses { var, in_sum: false, others: false, seen: HashSet::default() };
    uses.stmt(body);
    !uses.others
}

/// The uses of a variable.
struct Uses<'a> {
    var: &'a Var,
    /// Whether the expression at hand is a term of an index.
    in_sum: bool,
    /// Whether it is used elsewhere.
    others: bool,
    /// Nodes that were looked at, as terms of indices and elsewhere: trees share what they repeat.
    seen: HashSet<(usize, bool)>,
}

impl Uses<'_> {
    fn indices(&mut self, indices: &[Expr]) {
        let around = std::mem::replace(&mut self.in_sum, true);
        indices.iter().for_each(|i| self.expr(i));
        self.in_sum = around;
    }
}

impl Visit for Uses<'_> {
    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Store { indices, value, .. } => {
                self.indices(indices);
                self.expr(value);
            }
            _ => walk_stmt(self, s),
        }
    }

    fn expr(&mut self, e: &Expr) {
        if self.others || !self.seen.insert((e.address(), self.in_sum)) {
            return;
        }
        let around = self.in_sum;
        match e.kind() {
            ExprKind::Var(v) => self.others |= v == self.var && !self.in_sum,
            ExprKind::Load(_, indices) => self.indices(indices),
            ExprKind::Binary(BinOp::Add | BinOp::Sub, ..)
            | ExprKind::Ramp(..)
            | ExprKind::Broadcast(_) => walk_expr(self, e),
            ExprKind::Binary(BinOp::Mul, a, b) if a.as_int().or(b.as_int()).is_some() => {
                walk_expr(self, e);
            }
            _ => {
                self.in_sum = false;
                walk_expr(self, e);
                self.in_sum = around;
            }
        }
    }
}

/// The sum of terms, of the type of `like`.
fn sum_of(terms: Vec<Term>, like: &Expr) -> Expr {
    let zero = Expr::int(0, like.dtype());
    terms.into_iter().fold(zero, |sum, t| {
        if t.negative {
            Expr::binary(BinOp::Sub, sum, t.value)
        } else if sum.as_int() == Some(0) {
            t.value
        } else {
            Expr::binary(BinOp::Add, sum, t.value)
        }
    })
}
