//! What each value is wanted as: from the results of a graph function to its parameters.

use tilewright_ir::{Binding, GraphExpr, GraphFunc, GraphVar};

use super::{Ends, Flow, TiledLayout, extents};
use tilewright_graph::normal::{needed, results};

impl Flow<'_, '_> {
    fn want(&mut self, v: &GraphVar, layout: TiledLayout) {
        let (v, layout) = self.rooted(v, &layout);
        let wanted = self.wanted.entry(v.id()).or_default();
        if !wanted.contains(&layout) {
            wanted.push(layout);
        }
    }

    /// What an expression is wanted as that a call takes as it is.
    fn want_as_is(&mut self, e: &GraphExpr) {
        if let GraphExpr::Var(v) = e
            && let Some(shape) = extents(v)
        {
            self.want(v, TiledLayout::identity(&shape));
        }
    }

    /// Says what each value of a graph function is wanted as.
    pub(super) fn backward(&mut self, func: &GraphFunc) {
        for e in results(&func.ret) {
            match (self.options.outputs, e) {
                (Ends::Logical, _) => self.want_as_is(e),
                (Ends::Chosen(of), GraphExpr::Var(v)) => match of(v) {
                    Some(layout) => self.want(v, layout),
                    None => self.want_as_is(e),
                },
                (Ends::Free | Ends::Chosen(_), _) => {}
            }
        }
        let bindings: Vec<&Binding> = func.bindings().collect();
        for b in bindings.into_iter().rev() {
            if let Some((from, layout, ..)) = self.packs.get(&b.var.id()).cloned() {
                // What is only permuted is wanted as its readers want it.
                if self.is_converted(&b.var) {
                    self.want(&from, layout);
                }
                continue;
            }
            if let Some((of, [layout, _])) = self.carried(b) {
                self.want(&of, layout);
                continue;
            }
            let GraphExpr::CallTir { args, .. } = &b.value else {
                needed(&b.value, &mut |v| self.want_as_is(&v.expr()));
                continue;
            };
            let (mut choices, mut as_is) = (Vec::new(), true);
            if let Some((f, outs)) = self.call(b) {
                choices = self.choices(&b.var, &f, args.len(), &outs, &[]);
                choices.retain(|c| c.propagation.is_some());
                as_is = choices.is_empty()
                    || (self.options.anchors)(&b.var, &f).is_none()
                        && outs.iter().any(|v| self.wants_logical(v));
            }
            if as_is {
                args.iter().for_each(|a| self.want_as_is(a));
            }
            for choice in choices {
                for (arg, layout) in args.iter().zip(choice.layouts) {
                    if let GraphExpr::Var(v) = arg {
                        self.want(v, layout);
                    }
                }
            }
        }
    }

    fn wants_logical(&self, v: &GraphVar) -> bool {
        let wanted = self.wanted.get(&v.id()).into_iter().flatten();
        wanted.into_iter().any(TiledLayout::is_identity)
    }
}
