//! Tightest bounds, constant and symbolic.
//!
//! The largest value of `e` over a domain, as an expression of the symbolic sizes and of those
//! variables that are kept: the engine eliminates the others exactly (parametric integer
//! programming) and gives a piecewise affine function, which is written as one sum, a `min` or
//! `max`, or a selection. For `i` with `0 <= 4*i < n` the bounds are `0` and `(n + 3) // 4 - 1`;
//! inside a loop over `io < 4` the guard `4*io + ii < 14` gives `ii <= min(3, 13 - 4*io)`.
//!
//! **Limits.** Terms that are not affine and depend on what is eliminated are eliminated with it:
//! bounds then hold but may be wider than needed.

use std::collections::BTreeSet;

use tilewright_ir::{DType, Expr, Range, Var};

use crate::answer::{Known, Reason, Unknown};
use crate::charged::{PwAff, Set as Raw};
use crate::domain::Domain;
use crate::form::{Atom, Pred, Sum};
use crate::render;

/// Most pieces of a function that is written out.
const MAX_PIECES: usize = 6;

/// Inclusive bounds.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The least value.
    pub min: Expr,
    /// The greatest value.
    pub max: Expr,
}

impl Domain {
    /// The tightest bounds of an integer expression that hold at every point of the domain with
    /// the same values of `kept` and of the symbolic sizes. Both are reached wherever there is
    /// such a point.
    ///
    /// # Errors
    /// [`Reason::Unbounded`], [`Reason::Empty`], [`Reason::NoClosedForm`].
    pub fn tight_bounds(&self, e: &Expr, kept: &[Var]) -> Known<Bounds> {
        self.ask(|| {
            let s = self.normalizer().sum(e)?;
            let d = self.reach(|f| s.atoms(f))?;
            let t = e.dtype();
            Ok(Bounds { min: d.extreme(&s, kept, false, t)?, max: d.extreme(&s, kept, true, t)? })
        })
    }

    /// The smallest range of a variable of the domain that loses no point, for given values of
    /// `kept` (the loops outside) and of the symbolic sizes.
    pub fn tight_range(&self, var: &Var, kept: &[Var]) -> Known<Range> {
        self.ask(|| {
            let value = Sum::var(var);
            let d = self.reach(|f| value.atoms(f))?;
            let t = var.dtype();
            let min = d.extreme(&value, kept, false, t)?;
            let count = value.offset(1)?.plus(&self.normalizer().sum(&min)?, -1)?;
            let extent = d.reach(|f| count.atoms(f))?.extreme(&count, kept, true, t)?;
            Ok(Range { min, extent })
        })
    }

    /// The domain of what stays: the kept variables and what is symbolic. Second, its atoms.
    pub(crate) fn outer(&self, kept: &[Var]) -> Known<(Domain, Vec<Atom>)> {
        let gone: BTreeSet<Var> = self.vars().filter(|v| !kept.contains(v)).cloned().collect();
        let atoms: Vec<Atom> = self
            .space
            .atoms
            .iter()
            .filter(|a| match a.as_var() {
                Some(v) => !gone.contains(v),
                None => !a.varies_with(&gone),
            })
            .cloned()
            .collect();
        let set = self.space.scatter(self.set()?, &atoms)?;
        let vars = atoms.iter().filter(|a| a.as_var().is_some_and(|v| kept.contains(v))).count();
        Ok((Domain::of_raw(&self.engine, atoms.clone(), vars, set), atoms))
    }

    /// The extreme of a sum over everything but `kept` and what is symbolic.
    pub(crate) fn extreme(&self, s: &Sum, kept: &[Var], largest: bool, t: DType) -> Known<Expr> {
        let (outer, atoms) = self.outer(kept)?;
        if outer.set()?.is_empty()? {
            return Err(Reason::Empty.into());
        }
        let mut sums: Vec<Sum> = atoms.iter().cloned().map(Sum::atom).collect();
        sums.push(s.clone());
        let graph = self.set()?.apply(&self.space.graph(&sums)?)?;
        let graph = graph.coalesce()?.dims_to_params(atoms.len());
        outer.write_params(&graph.extreme(0, largest)?, t)
    }

    /// A function of this domain's atoms, given as one of parameters, as an expression.
    pub(crate) fn write_params(&self, f: &PwAff, t: DType) -> Known<Expr> {
        let f = f.coalesce()?;
        self.write_pieces(
            f.pieces()
                .map(|(set, aff)| Ok((set.params_to_dims(0), self.space.lift(aff)?)))
                .collect::<Known<_>>()?,
            t,
        )
    }

    /// A function that is given piece by piece, as an expression under the domain.
    pub(crate) fn write_pieces(&self, pieces: Vec<(Raw, Sum)>, t: DType) -> Known<Expr> {
        let mut live: Vec<(Raw, Sum)> = Vec::new();
        for (set, sum) in pieces {
            let set = set.intersect(&self.set()?)?;
            if set.is_empty()? {
                continue;
            }
            match live.iter().position(|(_, s)| *s == sum) {
                Some(at) => live[at].0 = live[at].0.union(&set).coalesce()?,
                None => live.push((set, sum)),
            }
        }
        if live.len() > MAX_PIECES {
            return Err(Reason::NoClosedForm.into());
        }
        let [(_, first), rest @ ..] = live.as_slice() else {
            return Err(Reason::Empty.into());
        };
        for smaller in [true, false] {
            let folded = rest.iter().try_fold(first.clone(), |a, (_, b)| {
                if smaller { a.min(b.clone()) } else { a.max(b.clone()) }
            })?;
            if self.agrees_on(&folded, &live)? {
                return write_sum(self, &folded, t);
            }
        }
        // Where one piece's function is right everywhere, the others are the same there.
        for (_, s) in &live {
            if self.agrees_on(s, &live)? {
                return write_sum(self, s, t);
            }
        }
        let mut out: Option<Expr> = None;
        for (set, sum) in live.iter().rev() {
            let value = write_sum(&self.within(set.clone()), sum, t)?;
            out = Some(match out {
                None => value,
                Some(other) => {
                    let cond = self.closed_form(set, None, None)?.ok_or_else(no_closed_form)?;
                    Expr::select(cond, value, other)
                }
            });
        }
        out.ok_or_else(no_closed_form)
    }

    fn agrees_on(&self, s: &Sum, live: &[(Raw, Sum)]) -> Known<bool> {
        for (set, value) in live {
            let differ = Pred::eq(s.clone().plus(value, -1)?).negate()?;
            if !set.intersect(&self.space.pred(&differ)?)?.is_empty()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn no_closed_form() -> Unknown {
    Unknown::from(Reason::NoClosedForm)
}

fn write_sum(d: &Domain, s: &Sum, t: DType) -> Known<Expr> {
    d.simplest(s, t, None)?.or_else(|| render::sum(s, t)).ok_or_else(no_closed_form)
}
