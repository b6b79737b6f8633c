//! Whether two expressions have one value at every point of a domain.

use tilewright_ir::Expr;

use crate::answer::{Known, Proof};
use crate::domain::Domain;
use crate::form::Pred;
use crate::normalizer::canonical;
use crate::product::without_quotients;

impl Domain {
    /// Whether two expressions have one value at every point: integers, or conditions.
    pub fn equal(&self, a: &Expr, b: &Expr) -> Proof {
        self.differ(a, b).and_then(|(d, differ)| d.refuted(differ)).into()
    }

    /// Whether it is certain that two expressions have one value at every point: [`Domain::equal`] without the
    /// witness, which takes longer to find.
    pub fn is_equal(&self, a: &Expr, b: &Expr) -> bool {
        self.differ(a, b).and_then(|(d, differ)| d.is_refuted(&differ)) == Ok(true)
    }

    /// That two expressions have different values, and the domain where that is asked.
    fn differ(&self, a: &Expr, b: &Expr) -> Known<(Domain, Pred)> {
        self.form(|n| {
            if a.dtype().is_bool() || b.dtype().is_bool() {
                return Pred::differ(n.pred(a)?, n.pred(b)?);
            }
            // With remainders as differences, most of what is equal cancels.
            let d = canonical(&n.sum(a)?.plus(&n.sum(b)?, -1)?)?;
            Pred::eq(without_quotients(&d)?).negate()
        })
    }
}
