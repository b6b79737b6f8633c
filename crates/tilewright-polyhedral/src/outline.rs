//! Accesses as one iteration of a loop bounds them.
//!
//! Whether two iterations touch one cell is asked for each two accesses of the body. Most of these differ in loops
//! further inside only, and what tells the iterations apart stands outside of those:
//!
//! ```text
//! for v in T.parallel(2 * n):
//!     if v % 2 < 1:
//!         for i in range(48): B[v // 2, i] = ...           B[v // 2, 0..47]  where v % 2 < 1
//!     else:
//!         for i in range(37): B[v // 2, 48 + i] = ...      B[v // 2, 48..84] where v % 2 >= 1
//! ```
//!
//! An outline keeps of an access the conditions without variables of loops inside, and on each axis what the index is
//! without them, with how far they reach; an axis on which that is not known is left out. It touches more cells than
//! the access, so that outlines that do not meet are accesses that do not. Many accesses have the same one.

use std::collections::BTreeSet;

use tilewright_ir::{Expr, Var};

use crate::access::AccessRelation;
use crate::answer::Known;
use crate::domain::Domain;
use crate::form::{Atom, Pred, Sum};
use crate::quick;

/// What one iteration bounds of an access.
#[derive(PartialEq)]
pub(crate) struct Outline {
    guards: Vec<Pred>,
    /// By axis the index without variables inside, and the least and the greatest that these add.
    axes: Vec<Option<(Sum, (i128, i128))>>,
}

impl Outline {
    /// That of an access in an iteration, whose variables and those around it `iteration` has.
    pub fn of(access: &AccessRelation, iteration: &Domain) -> Known<Outline> {
        let outer: BTreeSet<&Var> = iteration.vars().collect();
        let inner = access.domain.vars().filter(|v| !outer.contains(v));
        let inner: BTreeSet<Var> = inner.cloned().collect();
        let is_outside = |a: &Atom| a.expr().effects().constant() && !a.varies_with(&inner);
        let guards = access.domain.guards.iter().filter(|guard| {
            let mut outside = true;
            guard.atoms(&mut |a| outside &= is_outside(a));
            outside
        });
        let mut normalizer = access.domain.engine().normalizer().under(&access.domain.guards);
        let mut axes = Vec::with_capacity(access.indices.len());
        for index in &access.indices {
            if !index.effects().constant() {
                axes.push(None);
                continue;
            }
            let (mut outside, mut inside) = (normalizer.sum(index)?, Sum::default());
            let (kept, moved) =
                std::mem::take(&mut outside.terms).into_iter().partition(|(term, _)| {
                    let mut outside = true;
                    Sum::term(term.clone()).atoms(&mut |a| outside &= is_outside(a));
                    outside
                });
            (outside.terms, inside.terms) = (kept, moved);
            let (least, most) = quick::ends(access.domain.constraints(), &inside);
            axes.push(least.zip(most).map(|ends| (outside, ends)));
        }
        Ok(Outline { guards: guards.cloned().collect(), axes })
    }

    /// Whether this in one iteration certainly meets another outline nowhere in another one, where a condition on both
    /// holds.
    pub fn is_apart(
        &self,
        iteration: &Domain,
        (other, elsewhere): (&Outline, &Domain),
        when: &Expr,
    ) -> Known<bool> {
        let mut meet = vec![iteration.engine().normalizer().pred(when)?];
        for (a, b) in self.axes.iter().zip(&other.axes) {
            let (Some((x, (least, most))), Some((y, (low, high)))) = (a, b) else { continue };
            // x + a = y + b for some a and b.
            let apart = x.clone().plus(y, -1)?;
            let ends = low.checked_sub(*most).zip(high.checked_sub(*least));
            meet.extend(ends.map(|ends| Pred::between(&apart, ends)).transpose()?);
        }
        let [ours, theirs] = [(iteration, self), (elsewhere, other)].map(|(domain, outline)| {
            AccessRelation::new(&domain.constrain(outline.guards.clone()), &[])
        });
        ours.meets_nowhere(&theirs, &Pred::and(meet))
    }
}
