//! Accesses that must not meet: what runs in another order than before.

use tilewright_ir::hash::HashMap;

use tilewright_ir::{Expr, Result, Var};
use tilewright_polyhedral::dependence::{PlacedAccess, refuse};

/// Refuses where two accesses of one buffer, one of them a write, may meet under conditions that `when`
/// gives for the names that the variables of the second one have. `vars` are the variables of the
/// iterations that a refusal names.
pub(crate) fn require_disjoint(
    ours: &[PlacedAccess],
    others: &[PlacedAccess],
    vars: &[Var],
    when: impl Fn(&HashMap<Var, Var>) -> Vec<Expr>,
) -> Result<()> {
    for a in ours {
        for b in others.iter().filter(|b| b.buffer == a.buffer && (a.write || b.write)) {
            let all: Vec<Var> = b.at.domain.vars().cloned().collect();
            let (other, names) = b.at.elsewhere_in(&all);
            refuse(&a.at.independent(&other, &when(&names)), a, b, vars, &names)?;
        }
    }
    Ok(())
}
