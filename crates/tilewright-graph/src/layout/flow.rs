//! Layouts flow through the graph.
//!
//! A logical value of the graph may exist in several *versions*: as it is, or in physical layouts
//! ([`super::physical`]). Conversions between them are made where somebody needs a version that is
//! not there, and only then, so that conversions move past the calls that can do without, and
//! pairs that undo each other never arise.
//!
//! 1. *Backward*: what each value is wanted as. Calls in a fixed layout say it, graph outputs want
//!    the logical layout, and every other call hands on what its result is wanted as, as far as its
//!    accesses carry it ([`super::carry`]).
//! 2. *Forward*: each call is computed in the layout that moves the fewest bytes: those of the
//!    versions of its operands that would have to be made, and those of its result that are wanted
//!    and are not what it gives. Constants cost nothing, since their conversions run at compile
//!    time. So a contradiction, two operands in different layouts, is resolved at its cheapest edge.
//!
//! Pad values go along. A version whose padding is known, or does not matter, serves as it is;
//! else the call that made it gets a selection, or, where its padding is already relied on, the
//! value is padded anew.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use tilewright_ir::{
    Binding, BindingBlock, Buffer, Error, Expr, Function, GraphExpr, GraphFunc, GraphType,
    GraphVar, Module, Remarks, Result, Span, TensorFunc, TensorType,
};
use tilewright_sets::Engine;

use super::carry::Carry;
use super::conversion::{Conversion, Pad};
use super::known::{Region, Values, same_constant};
use super::physical::Layout;
use super::recognise::Recognised;
use crate::functions::Functions;
use crate::merge::{Member, Source, merge};
use crate::normal::{needed, normalize, results};

/// Layouts that a function is to be computed in, whatever that costs.
pub type Anchors<'a> = &'a dyn Fn(&TensorFunc) -> Option<Vec<(Buffer, Layout)>>;

/// What [`flow_layout`] may do.
pub struct Options<'a> {
    /// The functions that say in which layout they are computed; padding that they read is zero.
    pub anchors: Anchors<'a>,
    /// Results of graph functions may be in physical layout, with any values in their padding.
    pub physical_outputs: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { anchors: &|_| None, physical_outputs: false }
    }
}

/// A conversion that is left.
#[derive(Clone, Debug)]
pub struct Left {
    /// The value that is converted.
    pub value: Arc<str>,
    /// The layout that it is in.
    pub from: Layout,
    /// The layout that it gets.
    pub to: Layout,
    /// Bytes that are read and written.
    pub bytes: u64,
    /// Why.
    pub reason: String,
}

/// Moves layout conversions through every graph function; see the head of this module. Each
/// conversion that is made and not of a constant is one of the result's list.
///
/// # Errors
/// Those of [`normalize`]; `Toolchain` where libisl is missing.
pub fn flow_layout(
    module: &Module,
    options: &Options<'_>,
    why: &mut Remarks,
) -> Result<(Module, Vec<Left>)> {
    let mut functions = Functions::new(module);
    let mut graphs: HashMap<Arc<str>, GraphFunc> = HashMap::new();
    let mut left = Vec::new();
    for (name, func) in module.graphs() {
        let normal = normalize(module, name, func)?;
        let mut flow = Flow::new(&normal, options, &mut functions, why)?;
        flow.backward(&normal);
        let new = flow.forward(&normal)?;
        left.append(&mut flow.left);
        graphs.insert(name.clone(), new);
    }
    let flowed = functions.finish(&graphs, |_, f| f.clone());
    // What nobody needs any more goes.
    let mut out = flowed.clone();
    for (name, func) in flowed.graphs() {
        let func = Function::Graph(Arc::new(normalize(&flowed, name, func)?));
        out.functions.insert(name.clone(), func);
    }
    Ok((out, left))
}

/// A value in a layout.
#[derive(Clone)]
struct Version {
    layout: Layout,
    expr: GraphExpr,
    /// What the padding holds, where that is known.
    pad: Option<Expr>,
    /// The call that made it was written here, so that nobody else looks at its padding.
    own: bool,
}

/// Why a conversion is made.
#[derive(Clone)]
struct Need {
    reason: String,
    span: Option<Span>,
}

/// A way to compute a call.
struct Choice {
    carry: Option<Carry>,
    /// Layouts of the arguments, then of the results.
    layouts: Vec<Layout>,
}

struct Flow<'a, 'm> {
    options: &'a Options<'a>,
    functions: &'a mut Functions<'m>,
    why: &'a mut Remarks,
    /// Values that are conversions of others to physical layouts.
    packs: HashMap<u64, (GraphVar, Layout, Pad, Rc<Conversion>)>,
    /// Values that are physical ones in logical layout.
    crops: HashMap<u64, (GraphVar, Layout)>,
    /// Constants, by the variables that are bound to them.
    consts: HashMap<u64, GraphExpr>,
    /// Types of logical values that are items of calls with several results.
    items: HashMap<u64, Vec<GraphVar>>,
    wanted: HashMap<u64, Vec<Layout>>,
    versions: HashMap<u64, Vec<Version>>,
    /// Values that are made by a call.
    made: HashSet<u64>,
    /// Why calls stay in the logical layout.
    stays: HashMap<u64, String>,
    bindings: Vec<Binding>,
    /// What is known of the cells of values that are bound.
    values: Values,
    left: Vec<Left>,
}

impl<'a, 'm> Flow<'a, 'm> {
    fn new(
        func: &GraphFunc,
        options: &'a Options<'a>,
        functions: &'a mut Functions<'m>,
        why: &'a mut Remarks,
    ) -> Result<Self> {
        let mut flow = Flow {
            options,
            functions,
            why,
            packs: HashMap::new(),
            crops: HashMap::new(),
            consts: HashMap::new(),
            items: HashMap::new(),
            wanted: HashMap::new(),
            versions: HashMap::new(),
            made: func.bindings().map(|b| b.var.id()).collect(),
            stays: HashMap::new(),
            bindings: Vec::new(),
            values: Values::new(&Engine::new()?),
            left: Vec::new(),
        };
        let mut recognised = Recognised::default();
        for b in func.bindings() {
            match &b.value {
                GraphExpr::Const(_) => {
                    flow.consts.insert(b.var.id(), b.value.clone());
                }
                GraphExpr::Item(of, _) => {
                    if let GraphExpr::Var(of) = &**of {
                        flow.items.entry(of.id()).or_default().push(b.var.clone());
                    }
                }
                GraphExpr::CallTir { func, args, .. } => {
                    let Some(f) = flow.functions.get(func) else { continue };
                    let (Some(c), [GraphExpr::Var(from)]) =
                        (recognised.call(func, f, &b.value)?, &args[..])
                    else {
                        continue;
                    };
                    flow.conversion(&b.var, from, &c);
                }
                _ => {}
            }
        }
        Ok(flow)
    }

    /// Takes note of a conversion that is there already. What only reorders is a change of layout
    /// either way; it counts as the way to the physical one.
    fn conversion(&mut self, to: &GraphVar, from: &GraphVar, c: &Rc<Conversion>) {
        let (mut from, mut c) = (from.clone(), c.clone());
        let before = self.packs.get(&from.id());
        let composed = before.is_some();
        if let Some((root, .., inner)) = before {
            let Some(both) = inner.then(&c) else { return };
            (from, c) = (root.clone(), Rc::new(both));
        }
        let changes = |l: &Layout| composed || !l.is_identity();
        if c.keeps_all()
            && let Some(layout) = Layout::of_pack(&c).filter(changes)
        {
            self.packs.insert(to.id(), (from, layout, c.pad.clone(), c));
        } else if c.is_total()
            && let Some(back) = c.inverse(Pad::Undef)
            && let Some(layout) = Layout::of_pack(&back).filter(changes)
        {
            self.crops.insert(to.id(), (from, layout));
        }
    }

    fn want(&mut self, v: &GraphVar, layout: Layout) {
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
            self.want(v, Layout::identity(&shape));
        }
    }

    fn backward(&mut self, func: &GraphFunc) {
        if !self.options.physical_outputs {
            results(&func.ret).into_iter().for_each(|e| self.want_as_is(e));
        }
        let bindings: Vec<&Binding> = func.bindings().collect();
        for b in bindings.into_iter().rev() {
            if let Some((from, layout, ..)) = self.packs.get(&b.var.id()).cloned() {
                self.want(&from, layout);
                continue;
            }
            let GraphExpr::CallTir { args, .. } = &b.value else {
                needed(&b.value, &mut |v| self.want_as_is(&v.expr()));
                continue;
            };
            let (mut choices, mut as_is) = (Vec::new(), true);
            if let Some((f, outs)) = self.call(b) {
                choices = self.choices(&b.var, &f, args.len(), &outs, &[]);
                let logical = |v: &GraphVar| {
                    let wanted = self.wanted.get(&v.id()).into_iter().flatten();
                    wanted.into_iter().any(Layout::is_identity)
                };
                choices.retain(|c| c.carry.is_some());
                as_is = choices.is_empty()
                    || (self.options.anchors)(&f).is_none() && outs.iter().any(logical);
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

    /// The function of a call that may be computed in other layouts, and its results.
    fn call(&self, b: &Binding) -> Option<(Arc<TensorFunc>, Vec<GraphVar>)> {
        let GraphExpr::CallTir { func, args, outs, scalars } = &b.value else { return None };
        let f = self.functions.get(func)?.clone();
        let id = b.var.id();
        let physical =
            |a: &GraphExpr| matches!(a, GraphExpr::Var(v) if self.packs.contains_key(&v.id()));
        let results = match outs.len() {
            1 => vec![b.var.clone()],
            // An item that nobody reads is not there.
            n => self.items.get(&id).filter(|i| i.len() == n)?.clone(),
        };
        let fixed = !scalars.is_empty()
            || self.crops.contains_key(&id)
            || self.packs.contains_key(&id)
            || args.iter().any(physical)
            || f.buffers().count() != args.len() + outs.len();
        (!fixed).then_some((f, results))
    }

    /// The ways to compute a call: the one that an anchor says, or those that what its results are
    /// wanted as, and what its operands come in, allow; the logical layout is the last.
    fn choices(
        &mut self,
        var: &GraphVar,
        func: &Arc<TensorFunc>,
        args: usize,
        outs: &[GraphVar],
        come: &[(usize, Layout)],
    ) -> Vec<Choice> {
        let buffers: Vec<Buffer> = func.buffers().cloned().collect();
        let logical: Vec<Layout> = buffers
            .iter()
            .map(|b| Layout::identity(&b.const_shape().unwrap_or_default()))
            .collect();
        let mut given: Vec<Vec<(Buffer, Layout)>> = Vec::new();
        let anchor = (self.options.anchors)(func);
        match &anchor {
            Some(layouts) => given.push(layouts.clone()),
            None => {
                for (k, layout) in come {
                    given.push(vec![(buffers[*k].clone(), layout.clone())]);
                }
                for (out, buffer) in outs.iter().zip(&buffers[args..]) {
                    for layout in self.wanted.get(&out.id()).into_iter().flatten() {
                        if !layout.is_identity() {
                            given.push(vec![(buffer.clone(), layout.clone())]);
                        }
                    }
                }
            }
        }
        let mut choices: Vec<Choice> = Vec::new();
        for given in given {
            match Carry::new(func, &given) {
                Ok(carry) => {
                    let layouts = carry.params();
                    if !choices.iter().any(|c| c.layouts == layouts) {
                        choices.push(Choice { carry: Some(carry), layouts });
                    }
                }
                Err(e) => {
                    let reason = e.diagnostic().message.clone();
                    if self.stays.insert(var.id(), reason).is_none() {
                        let name = var.name();
                        self.why.push(e.context(format_args!("`{name}` keeps its layout")));
                    }
                }
            }
        }
        if anchor.is_none() || choices.is_empty() {
            choices.push(Choice { carry: None, layouts: logical });
        }
        choices
    }

    fn forward(&mut self, func: &GraphFunc) -> Result<GraphFunc> {
        for p in &func.params {
            self.arrive(p, p.expr());
        }
        for b in func.bindings() {
            self.binding(b)?;
        }
        let ret = self.result(&func.ret, func.span)?;
        let mut outputs: Vec<GraphVar> = Vec::new();
        let dataflow = func.blocks.iter().all(|b| b.dataflow);
        let bound: HashSet<u64> = self.bindings.iter().map(|b| b.var.id()).collect();
        needed(&ret, &mut |v| {
            if dataflow && bound.contains(&v.id()) && !outputs.contains(v) {
                outputs.push(v.clone());
            }
        });
        let bindings = std::mem::take(&mut self.bindings);
        let blocks = match bindings.is_empty() {
            true => Vec::new(),
            false => vec![BindingBlock { dataflow, bindings, outputs }],
        };
        let ret_ty = func.ret_ty.clone().filter(|_| !self.options.physical_outputs);
        Ok(GraphFunc { blocks, ret, ret_ty, ..func.clone() })
    }

    /// A value in logical layout is there.
    fn arrive(&mut self, v: &GraphVar, expr: GraphExpr) {
        if let Some(shape) = extents(v) {
            let version = Version { layout: Layout::identity(&shape), expr, pad: None, own: false };
            self.versions.entry(v.id()).or_default().push(version);
        }
    }

    fn binding(&mut self, b: &Binding) -> Result<()> {
        let id = b.var.id();
        if self.packs.contains_key(&id) {
            return Ok(());
        }
        if let Some((from, layout)) = self.crops.get(&id).cloned() {
            let expr =
                self.as_is(&from.expr(), &need(&b.var, "changes the layout itself", b.span))?;
            let pad = self.known_padding(&expr, &layout);
            let version = Version { layout, expr, pad, own: false };
            self.versions.entry(id).or_default().push(version);
            return Ok(());
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
            _ => {
                let why = need(&b.var, "takes it as it is", b.span);
                let value = self.mapped(&b.value, &why)?;
                self.bind(Binding { var: b.var.clone(), value, span: b.span });
                self.arrive(&b.var, b.var.expr());
                Ok(())
            }
        }
    }

    fn bind(&mut self, binding: Binding) {
        self.values.bound(&binding, self.functions);
        if let GraphExpr::CallTir { func, args, .. } = &binding.value
            && let Some(f) = self.functions.get(func)
        {
            self.values.assumptions(f, args);
        }
        self.bindings.push(binding);
    }

    /// What the padding of a physical value holds, as its maker or an assumption tells.
    fn known_padding(&self, e: &GraphExpr, layout: &Layout) -> Option<Expr> {
        let cells = layout.cells();
        let data = layout.is_data(&layout.join(&cells));
        let region = Region { cells, shape: layout.physical(), cond: Expr::not_node(data) };
        self.values.constant(e, &region).ok().filter(|_| layout.is_padded())
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
                let versions = self.versions.get(&v.id()).into_iter().flatten();
                let physical = versions.filter(|v| !v.layout.is_identity());
                come.extend(physical.map(|v| (k, v.layout.clone())));
            }
        }
        let anchored = (self.options.anchors)(func).is_some();
        let mut choices = self.choices(&b.var, func, args.len(), outs, &come);
        choices.sort_by_key(|c| self.cost(c, args, outs));
        for choice in choices {
            let Some(carry) = &choice.carry else {
                let stays = self.stays.get(&b.var.id());
                let reason = stays.map_or("is computed in the logical layout", |r| r);
                let why = need(&b.var, reason, b.span);
                let value = self.mapped(&b.value, &why)?;
                self.bind(Binding { var: b.var.clone(), value, span: b.span });
                self.arrive(&b.var, b.var.expr());
                self.spread(b, outs, None)?;
                return Ok(());
            };
            let why = need(&b.var, "is computed in this layout", b.span);
            // The padding that each argument has, or gets.
            let zero = |k: usize| {
                let dtype = func.buffers().nth(k).map(|b| b.dtype());
                dtype.map(|d| Expr::constant(0.0, d))
            };
            let mut pads: Vec<Option<Expr>> = Vec::new();
            for (k, (arg, layout)) in args.iter().zip(&choice.layouts).enumerate() {
                let there = self.version(arg, layout).filter(|_| !anchored);
                pads.push(there.map_or_else(|| zero(k), |v| v.pad));
            }
            pads.resize(choice.layouts.len(), None);
            let carried = match carry.build(&pads) {
                Ok(carried) => carried,
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
            let func = match choice.layouts.iter().all(Layout::is_identity) {
                true => name.clone(),
                false => self.functions.add(carried.func, &format!("{name}_physical")),
            };
            let layouts = &choice.layouts[args.len()..];
            let types: Vec<TensorType> =
                outs.iter().zip(layouts).filter_map(|(v, l)| typed(v, l)).collect();
            let value = GraphExpr::call_tir(func, values, types.clone());
            let mut types = types.into_iter().map(GraphType::Tensor);
            let ty = match outs {
                [_] => types.next().unwrap_or_else(|| b.var.ty().clone()),
                _ => GraphType::Tuple(types.collect()),
            };
            let var = match layouts.iter().all(Layout::is_identity) {
                true => b.var.clone(),
                false => GraphVar::new(b.var.name().clone(), ty),
            };
            self.bind(Binding { var: var.clone(), value, span: b.span });
            let pads = carried.pads[args.len()..].to_vec();
            return self.spread(b, outs, Some((var, layouts.to_vec(), pads)));
        }
        Err(Error::internal(format!("no way to compute `{name}`")))
    }

    /// The results of a call that was bound, each as a version of its own.
    fn spread(
        &mut self,
        b: &Binding,
        outs: &[GraphVar],
        physical: Option<(GraphVar, Vec<Layout>, Vec<Option<Expr>>)>,
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
            let version = Version { layout, expr, pad, own: true };
            self.versions.entry(out.id()).or_default().push(version);
        }
        Ok(())
    }

    /// Bytes that conversions move if a call is computed in some way.
    fn cost(&self, choice: &Choice, args: &[GraphExpr], outs: &[GraphVar]) -> u64 {
        let (ins, results) = choice.layouts.split_at(args.len());
        let mut sum = 0u64;
        for (arg, layout) in args.iter().zip(ins) {
            if let GraphExpr::Var(v) = arg
                && !self.is_const(arg)
                && self.version(arg, layout).is_none()
                && let Some(from) = self.cheapest(v)
            {
                sum = sum.saturating_add(moved(v, &from.layout, layout));
            }
        }
        for (out, layout) in outs.iter().zip(results) {
            let wanted = self.wanted.get(&out.id()).into_iter().flatten();
            for other in wanted.filter(|w| *w != layout) {
                sum = sum.saturating_add(moved(out, layout, other));
            }
        }
        sum
    }

    fn is_const(&self, e: &GraphExpr) -> bool {
        match e {
            GraphExpr::Const(_) => true,
            GraphExpr::Var(v) => self.consts.contains_key(&v.id()),
            _ => false,
        }
    }

    fn version(&self, e: &GraphExpr, layout: &Layout) -> Option<Version> {
        let GraphExpr::Var(v) = e else { return None };
        self.versions.get(&v.id())?.iter().find(|v| v.layout == *layout).cloned()
    }

    /// The version that is the smallest.
    fn cheapest(&self, v: &GraphVar) -> Option<&Version> {
        self.versions.get(&v.id())?.iter().min_by_key(|version| bytes(v, &version.layout))
    }

    /// An expression in which every variable is there as it is said to be.
    fn mapped(&mut self, e: &GraphExpr, why: &Need) -> Result<GraphExpr> {
        let all = |flow: &mut Self, list: &[GraphExpr]| -> Result<Vec<GraphExpr>> {
            list.iter().map(|e| flow.mapped(e, why)).collect()
        };
        Ok(match e {
            GraphExpr::Var(_) => self.as_is(e, why)?,
            GraphExpr::Const(_) => e.clone(),
            GraphExpr::CallTir { func, args, outs, scalars } => GraphExpr::CallTir {
                func: func.clone(),
                args: all(self, args)?,
                outs: outs.clone(),
                scalars: scalars.clone(),
            },
            GraphExpr::Call { op, args, attrs } => {
                let args = all(self, args)?;
                GraphExpr::Call { op: op.clone(), args, attrs: attrs.clone() }
            }
            GraphExpr::Tuple(items) => GraphExpr::Tuple(all(self, items)?),
            GraphExpr::Item(of, k) => GraphExpr::Item(Box::new(self.mapped(of, why)?), *k),
        })
    }

    /// The result of the graph function.
    fn result(&mut self, e: &GraphExpr, span: Option<Span>) -> Result<GraphExpr> {
        match e {
            GraphExpr::Tuple(items) => {
                let items = items.iter().map(|i| self.result(i, span)).collect::<Result<_>>()?;
                Ok(GraphExpr::Tuple(items))
            }
            GraphExpr::Var(v) => {
                if self.options.physical_outputs
                    && let Some(first) = self.versions.get(&v.id()).and_then(|list| list.first())
                {
                    return Ok(first.expr.clone());
                }
                let reason = "it is a result of the graph, which keeps its layout".to_owned();
                self.as_is(e, &Need { reason, span })
            }
            other => Ok(other.clone()),
        }
    }

    /// A value as a function takes it that is not computed in another layout.
    fn as_is(&mut self, e: &GraphExpr, why: &Need) -> Result<GraphExpr> {
        let GraphExpr::Var(v) = e else { return Ok(e.clone()) };
        if let Some((from, layout, pad, _)) = self.packs.get(&v.id()).cloned() {
            let pad = match pad {
                Pad::Value(e) => Some(e),
                Pad::None | Pad::Undef => None,
            };
            return self.obtain(&from.expr(), &layout, pad.as_ref(), why);
        }
        match extents(v) {
            Some(shape) if self.versions.contains_key(&v.id()) => {
                self.obtain(e, &Layout::identity(&shape), None, why)
            }
            _ => Ok(e.clone()),
        }
    }

    /// A value in a layout, with a value in its padding or any.
    fn obtain(
        &mut self,
        e: &GraphExpr,
        layout: &Layout,
        pad: Option<&Expr>,
        why: &Need,
    ) -> Result<GraphExpr> {
        let pad = pad.filter(|_| layout.is_padded());
        let logical = Layout::identity(&layout.logical);
        if let Some(found) = self.version(e, layout) {
            let held = |p: &Expr| found.pad.as_ref().is_some_and(|f| same_constant(f, p));
            match pad {
                Some(pad) if !held(pad) => {
                    // A conversion of a conversion would be one too many.
                    if found.own || self.version(e, &logical).is_none() {
                        return self.pad_anew(e, found, pad, why);
                    }
                }
                _ => return Ok(found.expr),
            }
        }
        if layout.is_identity()
            && !matches!(e, GraphExpr::Var(v) if self.versions.contains_key(&v.id()))
        {
            return Ok(e.clone());
        }
        let (dtype, name) = match e {
            GraphExpr::Var(v) => (v.ty().as_tensor().map(|t| t.dtype), v.name().clone()),
            GraphExpr::Const(t) => (Some(t.dtype()), "constant".into()),
            _ => (None, "value".into()),
        };
        let Some(dtype) = dtype else {
            return Err(Error::internal("a layout of what is no tensor"));
        };
        let from = match e {
            GraphExpr::Var(v) => self.version(e, &logical).or_else(|| self.cheapest(v).cloned()),
            _ => None,
        };
        let logical = Version { layout: logical, expr: e.clone(), pad: None, own: false };
        let from = from.unwrap_or(logical);
        let (func, base) = match (from.layout.is_identity(), layout.is_identity()) {
            (true, _) => (layout.pack(dtype, pad), "pack"),
            (_, true) => (from.layout.crop(dtype), "crop"),
            _ => {
                let crop = Conversion::of(&from.layout.crop(dtype))?;
                let pack = Conversion::of(&layout.pack(dtype, pad))?;
                let both = crop.zip(pack).and_then(|(crop, pack)| crop.then(&pack));
                match both {
                    Some(both) => (both.to_func("relayout"), "relayout"),
                    None => return Err(Error::internal("conversions that do not compose")),
                }
            }
        };
        let func = self.functions.add(func, base);
        let ty = typed_as(dtype, layout);
        let var = GraphVar::tensor(name.clone(), ty.clone());
        let value = GraphExpr::call_tir(func, vec![from.expr.clone()], vec![ty]);
        self.bind(Binding { var: var.clone(), value, span: why.span });
        if let GraphExpr::Var(v) = e {
            let bytes = moved(v, &from.layout, layout);
            if bytes > 0 && !self.is_const(e) {
                let origin = match (self.made.contains(&v.id()), self.stays.get(&v.id())) {
                    (false, _) => format!(", and `{}` is an argument of the graph", v.name()),
                    (true, Some(why)) if from.layout.is_identity() => {
                        format!(", and `{}` is not: {why}", v.name())
                    }
                    _ => String::new(),
                };
                self.left.push(Left {
                    value: name,
                    bytes,
                    from: from.layout,
                    to: layout.clone(),
                    reason: why.reason.clone() + &origin,
                });
            }
            let (layout, expr, pad) = (layout.clone(), var.expr(), pad.cloned());
            let version = Version { layout, expr, pad, own: false };
            self.versions.entry(v.id()).or_default().insert(0, version);
        }
        Ok(var.expr())
    }

    /// A version with another value in its padding.
    fn pad_anew(
        &mut self,
        e: &GraphExpr,
        found: Version,
        pad: &Expr,
        why: &Need,
    ) -> Result<GraphExpr> {
        let (GraphExpr::Var(root), GraphExpr::Var(at)) = (e, &found.expr) else {
            return Err(Error::internal("padding of what is no variable"));
        };
        let dtype = pad.dtype();
        let repad = repad(&found.layout, dtype, pad)?;
        let new = self.padded_by_maker(at, &found, &repad);
        let (expr, replaced) = match new {
            true => (found.expr.clone(), true),
            false => {
                let func = self.functions.add(repad, "pad");
                let ty = typed_as(dtype, &found.layout);
                let var = GraphVar::tensor(at.name().clone(), ty.clone());
                let value = GraphExpr::call_tir(func, vec![found.expr.clone()], vec![ty]);
                self.bind(Binding { var: var.clone(), value, span: why.span });
                self.left.push(Left {
                    value: root.name().clone(),
                    bytes: 2 * bytes(root, &found.layout),
                    from: found.layout.clone(),
                    to: found.layout.clone(),
                    reason: format!("{}, with {pad} in the padding", why.reason),
                });
                (var.expr(), false)
            }
        };
        let versions = self.versions.entry(root.id()).or_default();
        let (own, layout) = (found.own && replaced, found.layout);
        let version = Version { layout, expr: expr.clone(), pad: Some(pad.clone()), own };
        match versions.iter_mut().find(|v| replaced && v.layout == version.layout) {
            Some(old) => *old = version,
            None => versions.insert(0, version),
        }
        Ok(expr)
    }

    /// Lets the call that made a version select the pad value itself, if nobody can rely on what
    /// its padding held before.
    fn padded_by_maker(&mut self, at: &GraphVar, found: &Version, repad: &TensorFunc) -> bool {
        let mut read = false;
        for b in &self.bindings {
            needed(&b.value, &mut |v| read |= v == at);
        }
        let Some(maker) = self.bindings.iter_mut().find(|b| b.var == *at) else { return false };
        let GraphExpr::CallTir { func, args, outs, .. } = &mut maker.value else { return false };
        let Some(f) = self.functions.get(func).cloned() else { return false };
        let fits = outs.len() == 1
            && found.own
            && (found.pad.is_none() || !read)
            && tilewright_transform::stages(&f).is_some()
            && Conversion::of(&f).is_ok_and(|c| c.is_none());
        if !fits {
            return false;
        }
        let sources = (0..args.len()).map(Source::Param).collect();
        let second = Arc::new(repad.clone());
        let members = [
            Member { func: f, sources },
            Member { func: second, sources: vec![Source::Member(0)] },
        ];
        let merged = merge(&members, args.len());
        let base = func.to_string();
        *func = self.functions.add(merged, &base);
        let made = maker.clone();
        self.values.bound(&made, self.functions);
        true
    }
}

/// The function that keeps the data of a layout and puts a value into its padding.
fn repad(layout: &Layout, dtype: tilewright_ir::DType, pad: &Expr) -> Result<TensorFunc> {
    let crop = Conversion::of(&layout.crop(dtype))?;
    let pack = Conversion::of(&layout.pack(dtype, Some(pad)))?;
    let both = crop.zip(pack).and_then(|(crop, pack)| crop.then(&pack));
    match both {
        Some(both) => Ok(both.to_func("pad")),
        None => Err(Error::internal("a layout whose conversions do not compose")),
    }
}

fn need(who: &GraphVar, what: &str, span: Option<Span>) -> Need {
    Need { reason: format!("`{}`: {what}", who.name()), span }
}

/// The extents of a tensor value, where they are constants.
fn extents(v: &GraphVar) -> Option<Vec<i64>> {
    let shape = v.ty().as_tensor()?.const_shape()?;
    shape.into_iter().map(|d| i64::try_from(d).ok()).collect()
}

fn typed(v: &GraphVar, layout: &Layout) -> Option<TensorType> {
    Some(typed_as(v.ty().as_tensor()?.dtype, layout))
}

fn typed_as(dtype: tilewright_ir::DType, layout: &Layout) -> TensorType {
    let shape: Vec<usize> =
        layout.physical().iter().map(|d| usize::try_from(*d).unwrap_or(0)).collect();
    TensorType::fixed(&shape, dtype)
}

/// Bytes that a conversion reads and writes; none where both are the same memory.
fn moved(v: &GraphVar, from: &Layout, to: &Layout) -> u64 {
    match from.is_row_major() && to.is_row_major() {
        true => 0,
        false => bytes(v, from).saturating_add(bytes(v, to)),
    }
}

/// Bytes of a value in a layout.
fn bytes(v: &GraphVar, layout: &Layout) -> u64 {
    let size = v.ty().as_tensor().map_or(0, |t| t.dtype.bytes() as u64);
    layout.physical().iter().fold(size, |n, d| n.saturating_mul(d.unsigned_abs()))
}
