//! Each call in the layout that moves the fewest bytes: from the parameters of a graph function to
//! its results.

use std::rc::Rc;
use std::sync::Arc;

use tilewright_ir::{
    Attr, Binding, Error, Expr, GraphExpr, GraphFunc, GraphType, GraphVar, Result, Span,
    TensorFunc, TensorType,
};
use tilewright_runtime::Stored;
use tilewright_runtime::plan::stored;

use super::versions::{Need, moved_bytes, typed};
use super::{Choice, Ends, Flow, Padding, TiledLayout, Version, storage};
use crate::known::Region;
use tilewright_graph::normal::{map_results, one_block};
use tilewright_graph::rewrite::{GraphFold, fold_children};

impl Flow<'_, '_> {
    /// The graph function, computed anew.
    pub(super) fn forward(&mut self, func: &GraphFunc) -> Result<GraphFunc> {
        let (mut params, mut inputs) = (Vec::new(), Vec::new());
        for p in &func.params {
            let (param, stored) = self.parameter(p);
            params.push(param);
            inputs.push(stored);
        }
        for b in func.bindings() {
            self.binding(b)?;
        }
        let ret = map_results(&func.ret, &mut |e| self.result(e, func.span))?;
        let bindings = std::mem::take(&mut self.bindings);
        let outputs = std::mem::take(&mut self.results);
        let ret_ty = func.ret_ty.clone().filter(|_| outputs.iter().all(Option::is_none));
        let mut attrs = func.attrs.clone();
        for (key, list) in [(stored::INPUTS, inputs), (stored::OUTPUTS, outputs)] {
            if list.iter().any(Option::is_some) {
                let list = list.iter().map(|s| s.as_ref().map_or(Attr::None, Stored::to_attr));
                attrs.insert(key.into(), Attr::List(list.collect()));
            }
        }
        Ok(GraphFunc { params, ret_ty, attrs, ..one_block(func, bindings, ret) })
    }

    /// A parameter as it comes, and how it is stored if not as it is.
    fn parameter(&mut self, p: &GraphVar) -> (GraphVar, Option<Stored>) {
        let layout = match self.options.inputs {
            Ends::Logical => None,
            Ends::Chosen(of) => of(p),
            Ends::Free => {
                let wanted = self.wanted.get(&p.id()).map_or(&[][..], Vec::as_slice);
                wanted.first().filter(|_| !wanted.iter().any(TiledLayout::is_identity)).cloned()
            }
        };
        let layout = layout.filter(|l| !l.is_identity());
        let zero = p.ty().as_tensor().map(|t| Expr::constant(0.0, t.dtype));
        if let Some(layout) = layout
            && let Some(ty) = typed(p, &layout)
            && let Some(stored) = storage(&layout, zero.as_ref())
        {
            let param = GraphVar::tensor(p.name().clone(), ty);
            let pad = Padding::Known(zero.filter(|_| layout.is_padded()));
            let version = Version { layout, expr: param.expr(), pad, own: false };
            self.versions.entry(p.id()).or_default().push(version);
            return (param, Some(stored));
        }
        self.arrive(p, p.expr());
        (p.clone(), None)
    }

    fn binding(&mut self, b: &Binding) -> Result<()> {
        let id = b.var.id();
        if self.packs.contains_key(&id) {
            return Ok(());
        }
        if let Some((from, layout)) = self.crops.get(&id).cloned() {
            let expr =
                self.as_is(&from.expr(), &need(&b.var, "changes the layout itself", b.span))?;
            let version = Version { layout, expr, pad: Padding::Asked(Rc::default()), own: false };
            self.versions.entry(id).or_default().push(version);
            return Ok(());
        }
        if let Some((of, layouts)) = self.carried(b) {
            return self.regroup(b, &of, layouts);
        }
        match (&b.value, self.call(b)) {
            (GraphExpr::CallTir { func, args, .. }, Some((f, outs))) => {
                self.computed(b, func, &f, args, &outs)
            }
            (GraphExpr::Item(of, _), _)
                if matches!(&**of, GraphExpr::Var(v) if self.items.get(&v.id()).is_some_and(
                    |items| items.iter().all(|i| self.versions.contains_key(&i.id())))) =>
            {
                Ok(())
            }
            _ => self.bind_as_is(b, &need(&b.var, "takes it as it is", b.span)),
        }
    }

    pub(super) fn bind(&mut self, binding: Binding) {
        self.values.bound(&binding, self.functions);
        if let GraphExpr::CallTir { func, args, .. } = &binding.value
            && let Some(f) = self.functions.get(func)
        {
            self.values.assumptions(f, args);
        }
        self.bindings.push(binding);
    }

    /// What the padding of a version holds, where that is known.
    pub(super) fn padding(&self, version: &Version) -> Option<Expr> {
        let Version { layout, expr, pad, .. } = version;
        let answer = match pad {
            Padding::Known(pad) => return pad.clone(),
            Padding::Asked(answer) => answer,
        };
        let ask = || {
            let cells = layout.cells();
            let data = layout.is_data(&layout.join(&cells));
            let region = Region { cells, shape: layout.physical(), cond: Expr::not_node(data) };
            self.values.constant(expr, &region).ok()
        };
        answer.get_or_init(|| layout.is_padded().then(ask).flatten()).clone()
    }

    /// A call in the layout that moves the fewest bytes.
    fn computed(
        &mut self,
        b: &Binding,
        name: &Arc<str>,
        func: &Arc<TensorFunc>,
        args: &[GraphExpr],
        outs: &[GraphVar],
    ) -> Result<()> {
        let mut come = Vec::new();
        for (k, arg) in args.iter().enumerate() {
            if let GraphExpr::Var(v) = arg {
                let permuted = self.permuted(v);
                let root = permuted.as_ref().map_or(v, |t| &t.root);
                let versions = self.versions.get(&root.id()).into_iter().flatten();
                let layouts = versions.map(|version| match &permuted {
                    Some(permuted) => permuted.as_value(&version.layout),
                    None => version.layout.clone(),
                });
                come.extend(layouts.filter(|l| !l.is_identity()).map(|l| (k, l)));
            }
        }
        let anchor = (self.options.anchors)(&b.var, func);
        let (anchored, zeros) = (anchor.is_some(), anchor.is_some_and(|a| a.zero));
        let mut choices = self.choices(&b.var, func, args.len(), outs, &come);
        // What an anchor says is done whatever it costs, if it can be.
        choices.sort_by_key(|c| (anchored && c.propagation.is_none(), self.cost(c, args, outs)));
        for choice in choices {
            let Some(propagation) = &choice.propagation else {
                let stays = self.stays.get(&b.var.id());
                let reason = stays.map_or("is computed in the logical layout", |r| r);
                let why = need(&b.var, reason, b.span);
                self.bind_as_is(b, &why)?;
                return self.spread(b, outs, None);
            };
            let why = need(&b.var, "is computed in this layout", b.span);
            // The padding that each argument has, or gets.
            let mut pads: Vec<Option<Expr>> = Vec::new();
            for (k, (arg, layout)) in args.iter().zip(&choice.layouts).enumerate() {
                let there = self.version(arg, layout).filter(|_| !zeros);
                pads.push(there.map_or_else(|| zero_of(k, func), |v| self.padding(&v)));
            }
            pads.resize(choice.layouts.len(), None);
            let propagated = match propagation.build(&pads) {
                Ok(propagated) => propagated,
                Err(e) => {
                    self.stays.insert(b.var.id(), e.diagnostic().message.clone());
                    self.why.push(e);
                    continue;
                }
            };
            let mut values = Vec::new();
            for ((arg, layout), pad) in args.iter().zip(&choice.layouts).zip(&pads) {
                values.push(self.obtain(arg, layout, pad.as_ref(), &why)?);
            }
            let func = if choice.layouts.iter().all(TiledLayout::is_identity) {
                name.clone()
            } else {
                self.functions.add(propagated.func, &format!("{name}_physical"))
            };
            let layouts = &choice.layouts[args.len()..];
            let types: Vec<TensorType> =
                outs.iter().zip(layouts).filter_map(|(v, l)| typed(v, l)).collect();
            let value = self.functions.call(func, values, types)?;
            let var = if layouts.iter().all(TiledLayout::is_identity) {
                b.var.clone()
            } else {
                GraphVar::new(b.var.name().clone(), value.ty())
            };
            self.bind(Binding { var: var.clone(), value, span: b.span });
            let pads = propagated.pads[args.len()..].to_vec();
            return self.spread(b, outs, Some((var, layouts.to_vec(), pads)));
        }
        Err(Error::internal(format!("no way to compute `{name}`")))
    }

    /// The results of a call that was bound, each as a version of its own.
    fn spread(
        &mut self,
        b: &Binding,
        outs: &[GraphVar],
        physical: Option<(GraphVar, Vec<TiledLayout>, Vec<Option<Expr>>)>,
    ) -> Result<()> {
        let Some((var, layouts, pads)) = physical else {
            for (k, out) in outs.iter().enumerate().filter(|_| outs.len() > 1) {
                let value = GraphExpr::Item(Box::new(b.var.expr()), k);
                self.bind(Binding { var: out.clone(), value, span: b.span });
                self.arrive(out, out.expr());
            }
            return Ok(());
        };
        for (k, (out, (layout, pad))) in outs.iter().zip(layouts.into_iter().zip(pads)).enumerate()
        {
            let mut expr = var.expr();
            if outs.len() > 1 {
                let ty = typed(out, &layout).map(GraphType::Tensor);
                let ty = ty.unwrap_or_else(|| out.ty().clone());
                let item = GraphVar::new(out.name().clone(), ty);
                let value = GraphExpr::Item(Box::new(expr), k);
                self.bind(Binding { var: item.clone(), value, span: b.span });
                expr = item.expr();
            }
            let version = Version { layout, expr, pad: Padding::Known(pad), own: true };
            self.versions.entry(out.id()).or_default().push(version);
        }
        Ok(())
    }

    /// Bytes that conversions move if a call is computed in some way.
    fn cost(&self, choice: &Choice, args: &[GraphExpr], outs: &[GraphVar]) -> u64 {
        let (ins, results) = choice.layouts.split_at(args.len());
        let mut sum = 0u64;
        for (arg, layout) in args.iter().zip(ins) {
            let GraphExpr::Var(v) = arg else { continue };
            let (v, layout) = self.rooted(v, layout);
            if self.constants.get(&v.expr()).is_none()
                && self.version(&v.expr(), &layout).is_none()
                && let Some(from) = self.cheapest(&v, &layout)
            {
                sum = sum.saturating_add(moved_bytes(&v, &from.layout, &layout));
            }
        }
        for (out, layout) in outs.iter().zip(results) {
            let wanted = self.wanted.get(&out.id()).into_iter().flatten();
            for other in wanted.filter(|w| *w != layout) {
                sum = sum.saturating_add(moved_bytes(out, layout, other));
            }
        }
        sum
    }

    /// Binds a value whose variables are there as it is said that they are.
    pub(super) fn bind_as_is(&mut self, b: &Binding, why: &Need) -> Result<()> {
        struct AsIs<'f, 'a, 'm>(&'f mut Flow<'a, 'm>, &'f Need);
        impl GraphFold for AsIs<'_, '_, '_> {
            fn expr(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
                match e {
                    GraphExpr::Var(_) => self.0.as_is(e, self.1),
                    _ => fold_children(self, e),
                }
            }
        }
        let value = AsIs(self, why).expr(&b.value)?;
        self.bind(Binding { value, ..b.clone() });
        self.arrive(&b.var, b.var.expr());
        Ok(())
    }

    /// A result of the graph function.
    fn result(&mut self, e: &GraphExpr, span: Option<Span>) -> Result<GraphExpr> {
        match e {
            GraphExpr::Var(v) => {
                let version = match self.options.outputs {
                    Ends::Logical => None,
                    Ends::Free => self.versions.get(&v.id()).and_then(|l| l.first()).cloned(),
                    Ends::Chosen(of) => of(v).and_then(|layout| self.version(e, &layout)),
                };
                if let Some(version) = version
                    && !version.layout.is_identity()
                    && let Some(stored) = storage(&version.layout, self.padding(&version).as_ref())
                {
                    self.results.push(Some(stored));
                    return Ok(version.expr);
                }
                self.results.push(None);
                let reason = "it is a result of the graph, which keeps its layout".to_owned();
                self.as_is(e, &Need { reason, span })
            }
            other => {
                self.results.push(None);
                Ok(other.clone())
            }
        }
    }
}

fn zero_of(k: usize, func: &TensorFunc) -> Option<Expr> {
    let dtype = func.buffers().nth(k).map(|b| b.dtype());
    dtype.map(|d| Expr::constant(0.0, d))
}

pub(super) fn need(who: &GraphVar, what: &str, span: Option<Span>) -> Need {
    Need { reason: format!("`{}`: {what}", who.name()), span }
}
