//! The points at which a place is reached, as a domain that is built on first use.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::Domain;
use tilewright_ir::{Expr, Range, Var};

/// A domain by its parts: those of the place around, and a loop or a guard. A clone shares them.
#[derive(Clone)]
pub struct Points(Rc<Node>);

struct Node {
    around: Option<(Points, Part)>,
    domain: OnceCell<Domain>,
    middle: OnceCell<Option<Domain>>,
}

#[derive(Clone)]
enum Part {
    Loop(Var, Range),
    Guard(Expr),
}

impl Points {
    /// Those of a domain.
    pub fn new(domain: Domain) -> Points {
        Points(Rc::new(Node { around: None, domain: domain.into(), middle: OnceCell::new() }))
    }

    fn inside(&self, part: Part) -> Points {
        let around = Some((self.clone(), part));
        Points(Rc::new(Node { around, domain: OnceCell::new(), middle: OnceCell::new() }))
    }

    /// Each of them with each value of a variable.
    pub fn with_var(&self, var: &Var, range: &Range) -> Points {
        self.inside(Part::Loop(var.clone(), range.clone()))
    }

    /// Those at which a condition holds.
    pub fn with_guard(&self, cond: &Expr) -> Points {
        self.inside(Part::Guard(cond.clone()))
    }

    pub fn domain(&self) -> &Domain {
        self.0.domain.get_or_init(|| match &self.0.around {
            Some((around, Part::Loop(var, range))) => around.domain().with_var(var, range),
            Some((around, Part::Guard(cond))) => around.domain().with_guard(cond),
            // Only those of a domain are inside of nothing.
            None => unreachable!("points without a domain"),
        })
    }

    /// One of them, away from the ends of loops.
    pub fn middle(&self) -> Option<&Domain> {
        self.0.middle.get_or_init(|| self.domain().middle().ok()).as_ref()
    }

    /// The conditions, the outermost last.
    pub fn guards(&self) -> impl Iterator<Item = &Expr> {
        self.outwards().filter_map(|p| match &p.0.around {
            Some((_, Part::Guard(cond))) => Some(cond),
            _ => None,
        })
    }

    /// The same without some of the conditions, and these, outermost first. What is outside of all
    /// of them stays as it was built.
    pub fn without(&self, gone: impl Fn(&Expr) -> bool) -> (Points, Vec<Expr>) {
        let places: Vec<&Points> = self.outwards().collect();
        let mut lost = Vec::new();
        let mut kept: Option<Points> = None;
        for place in places.into_iter().rev() {
            match (&place.0.around, &kept) {
                (Some((around, Part::Guard(cond))), _) if gone(cond) => {
                    lost.push(cond.clone());
                    kept = Some(kept.unwrap_or_else(|| around.clone()));
                }
                (Some((_, part)), Some(outside)) => kept = Some(outside.inside(part.clone())),
                _ => {}
            }
        }
        (kept.unwrap_or_else(|| self.clone()), lost)
    }

    /// This place and those around it, innermost first.
    fn outwards(&self) -> impl Iterator<Item = &Points> {
        std::iter::successors(Some(self), |p| p.0.around.as_ref().map(|(around, _)| around))
    }

    /// The variables of loops.
    pub fn vars(&self) -> impl Iterator<Item = &Var> {
        self.outwards().filter_map(|p| match &p.0.around {
            Some((_, Part::Loop(var, _))) => Some(var),
            _ => None,
        })
    }

    /// Whether a place is this one or inside of it.
    pub fn contain(&self, place: &Points) -> bool {
        place.outwards().any(|p| Rc::ptr_eq(&p.0, &self.0))
    }
}
