//! Values that are others under other axes ([`Regrouping`]): reshapes, and conversions that only reorder. Each is a
//! view of a version of the other one, or that itself.

use std::rc::Rc;

use tilewright_ir::{Binding, GraphExpr, GraphVar, Result};

use super::forward::need;
use super::versions::{Need, typed};
use super::{Anchor, Flow, Padding, Regrouped, TiledLayout, Version, extents};
use crate::regroup::Regrouping;

impl Flow<'_, '_> {
    /// The layouts of a value and of the one that it is under other axes, as an anchor says them.
    pub(super) fn carried(&self, b: &Binding) -> Option<(GraphVar, [TiledLayout; 2])> {
        let of = self.regrouped.get(&b.var.id())?;
        let GraphExpr::CallTir { func, .. } = &b.value else { return None };
        let Anchor { layouts, .. } = (self.options.anchors)(&b.var, self.functions.get(func)?)?;
        let [(_, from), (_, to)] = &layouts[..] else { return None };
        Some((of.from.clone(), [from.clone(), to.clone()]))
    }

    /// A value that is another one under other axes, in the layouts that an anchor says: a view of a version
    /// of the other one, or that itself.
    pub(super) fn regroup(
        &mut self,
        b: &Binding,
        of: &GraphVar,
        [from, to]: [TiledLayout; 2],
    ) -> Result<()> {
        let why: Need = need(&b.var, "is read in this layout", b.span);
        if from.is_identity() && to.is_identity() {
            return self.bind_as_is(b, &why);
        }
        let expr = self.obtain(&of.expr(), &from, None, &why)?;
        let pad = self.version(&of.expr(), &from).and_then(|v| self.padding(&v));
        let (before, after) = (from.physical(), to.physical());
        let view = Regrouping::of_shapes(&before, &after).filter(|_| before != after);
        let expr = match (view, typed(&b.var, &to)) {
            (Some(view), Some(ty)) => {
                let func = view.func("view", ty.dtype);
                let var = GraphVar::tensor(b.var.name().clone(), ty);
                let made = self.functions.made((func, "view"), vec![expr], &var, b.span)?;
                self.bind(made);
                var.expr()
            }
            _ if pad.is_some() => self.relied_on(expr),
            _ => expr,
        };
        let version = Version { layout: to, expr, pad: Padding::Known(pad), own: false };
        self.versions.entry(b.var.id()).or_default().push(version);
        Ok(())
    }

    /// Takes note of a call whose result is its argument under other axes, and not only permuted.
    pub(super) fn note_regrouped(
        &mut self,
        var: &GraphVar,
        from: &GraphVar,
        regrouping: Rc<Regrouping>,
    ) -> bool {
        let fits = extents(from).as_deref() == Some(regrouping.from())
            && extents(var).as_deref() == Some(regrouping.to());
        if fits {
            self.regrouped.insert(var.id(), Regrouped { from: from.clone(), regrouping });
        }
        fits
    }
}
