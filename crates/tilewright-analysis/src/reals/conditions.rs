//! Conditions of floats, and what is chosen by them.
//!
//! A comparison is one of the difference of both sides with zero, whatever positive factor that has. In the reals all
//! numbers are ordered: what is not less is at least as large, and what is less or equal is one comparison. A choice
//! between two values by a comparison of these is their minimum or maximum, and what both values are multiplied by or
//! add goes out of a choice.

use tilewright_ir::{BinOp, Expr, ExprKind};

use super::polynomial::{Poly, constant, number, plus};
use super::{Atom, Reals};

/// Whether an expression compares floats, or combines such.
pub(super) fn is_of_floats(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Binary(op, a, _) if op.is_compare() => a.dtype().is_float(),
        ExprKind::Binary(op, a, b) if op.is_logic() => is_of_floats(a) || is_of_floats(b),
        ExprKind::Not(a) => is_of_floats(a),
        _ => false,
    }
}

impl Reals {
    /// A condition: of integers as it is written, of floats by what it compares.
    pub(super) fn poly_of_condition(&mut self, side: usize, e: &Expr) -> Option<Poly> {
        match e.kind() {
            ExprKind::Binary(op, a, b) if op.is_compare() && a.dtype().is_float() => {
                let (a, b) = (self.poly(side, a)?, self.poly(side, b)?);
                self.comparison(*op, a, b)
            }
            ExprKind::Binary(op, a, b) if op.is_logic() => {
                let parts =
                    vec![self.poly_of_condition(side, a)?, self.poly_of_condition(side, b)?];
                if let (BinOp::Or, [a, b]) = (op, &parts[..])
                    && let Some(joined) =
                        self.less_or_equal(a, b).or_else(|| self.less_or_equal(b, a))
                {
                    return Some(joined);
                }
                Some(self.of_atom(Atom::Of(format!("{op:?}"), parts)))
            }
            ExprKind::Not(a) => {
                let a = self.poly_of_condition(side, a)?;
                Some(match self.as_comparison(&a) {
                    Some((op, by)) => {
                        let (op, sign) = match op {
                            BinOp::Lt => (BinOp::Le, -1.0),
                            BinOp::Le => (BinOp::Lt, -1.0),
                            BinOp::Eq => (BinOp::Ne, 1.0),
                            _ => (BinOp::Eq, 1.0),
                        };
                        let by = scaled(by.clone(), sign);
                        self.of_atom(Atom::Of(format!("{op:?}"), vec![by]))
                    }
                    None => self.of_atom(Atom::Of("not".to_owned(), vec![a])),
                })
            }
            _ => self.poly(side, e),
        }
    }

    fn comparison(&mut self, op: BinOp, a: Poly, b: Poly) -> Option<Poly> {
        let (op, a, b) = match op {
            BinOp::Gt => (BinOp::Lt, b, a),
            BinOp::Ge => (BinOp::Le, b, a),
            _ => (op, a, b),
        };
        let by = plus(a.clone(), &b, -1.0);
        // What is compared with itself, as what may be no number is.
        if number(&by).is_some() {
            return Some(self.of_atom(Atom::Of(format!("{op:?}"), vec![a, b])));
        }
        let factor = if self.has_constants(&by) { None } else { first_factor(&by) };
        let factor = match op {
            BinOp::Lt | BinOp::Le => factor.map(f64::abs),
            _ => factor,
        };
        let by = scaled(by, 1.0 / factor.unwrap_or(1.0));
        Some(self.of_atom(Atom::Of(format!("{op:?}"), vec![by])))
    }

    /// Of a comparison with zero, which one it is, and what is compared.
    fn as_comparison(&self, p: &Poly) -> Option<(BinOp, &Poly)> {
        let (m, factor) = p.first_key_value().filter(|_| p.len() == 1)?;
        let [(atom, 1)] = m[..] else { return None };
        let Atom::Of(name, parts) = &self.atoms[atom] else { return None };
        let [by] = &parts[..] else { return None };
        let mut all = [BinOp::Lt, BinOp::Le, BinOp::Eq, BinOp::Ne].into_iter();
        Some((all.find(|op| *factor == 1.0 && *name == format!("{op:?}"))?, by))
    }

    /// Less, or equal: of the same two values.
    fn less_or_equal(&mut self, less: &Poly, equal: &Poly) -> Option<Poly> {
        let (BinOp::Lt, by) = self.as_comparison(less)? else { return None };
        let (BinOp::Eq, same) = self.as_comparison(equal)? else { return None };
        let turned = scaled(same.clone(), -1.0);
        let rounding = self.differences(by, same).or_else(|| self.differences(by, &turned))?;
        let by = by.clone();
        self.worst = self.worst.max(rounding);
        Some(self.of_atom(Atom::Of(format!("{:?}", BinOp::Le), vec![by])))
    }

    /// A choice: what both values have in common goes out.
    pub(super) fn choice(&mut self, c: Poly, t: Poly, f: Poly) -> Poly {
        if let Some(end) = self.choice_of_end(&c, &t, &f) {
            return end;
        }
        let shift = f.get(&Vec::new()).copied().filter(|c| c.is_finite());
        let shift = constant(shift.unwrap_or(0.0));
        let (t, f) = (plus(t, &shift, -1.0), plus(f, &shift, -1.0));
        let has_constants = self.has_constants(&t) || self.has_constants(&f);
        let factor = first_factor(&f).filter(|_| !has_constants).unwrap_or(1.0);
        let parts = vec![c, scaled(t, 1.0 / factor), scaled(f, 1.0 / factor)];
        let chosen = self.of_atom(Atom::Of("select".to_owned(), parts));
        plus(scaled(chosen, factor), &shift, 1.0)
    }

    /// The smaller or the larger one of two values, where these are what is compared.
    fn choice_of_end(&mut self, c: &Poly, t: &Poly, f: &Poly) -> Option<Poly> {
        let (BinOp::Lt | BinOp::Le, by) = self.as_comparison(c)? else { return None };
        let apart = plus(t.clone(), f, -1.0);
        if self.has_constants(by) || self.has_constants(&apart) {
            return None;
        }
        let (m, _) = by.iter().find(|(m, _)| !m.is_empty())?;
        let factor = apart.get(m)? / by[m];
        let rounding = self.differences(&apart, &scaled(by.clone(), factor))?;
        self.worst = self.worst.max(rounding);
        let op = if factor > 0.0 { BinOp::Min } else { BinOp::Max };
        self.binary(op, t.clone(), f.clone())
    }
}

fn scaled(p: Poly, factor: f64) -> Poly {
    p.into_iter().map(|(m, c)| (m, c * factor)).collect()
}

/// The factor of the first part that is no number.
fn first_factor(p: &Poly) -> Option<f64> {
    let (_, factor) = p.iter().find(|(m, _)| !m.is_empty())?;
    Some(*factor).filter(|c| c.is_finite() && *c != 0.0)
}
