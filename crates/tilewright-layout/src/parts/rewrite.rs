//! The graph function in which parts lie in place: calls of functions that take strides, joins and
//! slices that run no code, and copies of what is not placed.

use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use tilewright_analysis::Stage;
use tilewright_ir::{
    Binding, DType, Dim, Error, Expr, GraphExpr, GraphFunc, GraphVar, Param, Result, Stmt,
    TensorFunc, TensorType, dim,
};

use super::join::parts_attr;
use super::placement::{JoinOperand, Placement, Placing, shape_of};
use super::slice::Sliced;
use super::strides::{Strides, part_strides, reshaped, row_major, strided};
use crate::grouped::{Groups, grouped, in_groups, view};
use tilewright_graph::functions::Functions;
use tilewright_graph::legalize::copy_func;
use tilewright_graph::marks::{PARTS, SLICE};
use tilewright_graph::normal::one_block;
use tilewright_graph::stages::{at, buffer, cells};

/// The bindings of a graph function as they are made anew.
struct Rewrite<'a, 'm> {
    placing: &'a Placing<'a>,
    placed: &'a Placement,
    functions: &'a mut Functions<'m>,
    bindings: Vec<Binding>,
    /// Calls of several results that became one call for each.
    apart: HashSet<u64>,
}

impl Placement {
    /// The graph function in which parts lie so.
    pub(super) fn rewrite(
        &self,
        placing: &Placing<'_>,
        functions: &mut Functions<'_>,
    ) -> Result<GraphFunc> {
        let (bindings, apart) = (Vec::new(), HashSet::default());
        let mut new = Rewrite { placing, placed: self, functions, bindings, apart };
        for (n, b) in placing.bindings.iter().enumerate() {
            new.binding(n, b)?;
        }
        let func = placing.graph.func;
        Ok(one_block(func, new.bindings, func.ret.clone()))
    }
}

impl Rewrite<'_, '_> {
    fn binding(&mut self, n: usize, b: &Binding) -> Result<()> {
        let graph = self.placing.graph;
        if let GraphExpr::Item(of, _) = &b.value
            && matches!(&**of, GraphExpr::Var(v) if self.apart.contains(&v.id()))
        {
            return Ok(());
        }
        let (GraphExpr::CallTir { args, outs, scalars, .. }, Some((name, func, _))) =
            (&b.value, graph.call(self.placing.bindings[n]))
        else {
            self.bindings.push(b.clone());
            return Ok(());
        };
        if let Some(parts) = self.placed.joined.get(&n) {
            return self.join(b, name, func, parts);
        }
        if let (Some(lies), Some(sliced)) =
            (self.placed.sliced.get(&n), self.placing.movers.slices.get(name))
        {
            return self.slice(n, name, func, args, (sliced, lies));
        }
        let mut given: Vec<Option<Strides>> = args.iter().map(|arg| self.strides(arg)).collect();
        let results = graph.results_of(self.placing.bindings[n], outs.len());
        given.extend(results.into_iter().map(|v| self.strides(&GraphExpr::Var(v?.clone()))));
        // A view says nothing of memory: it has that of what it views.
        if given.iter().all(Option::is_none) || graph.origins.is_view(&b.value) {
            self.bindings.push(b.clone());
            return Ok(());
        }
        let new = strided(func, &given)?;
        let value = self.called((new, name), args.clone(), outs, scalars)?;
        self.bindings.push(Binding { value, ..b.clone() });
        Ok(())
    }

    /// A call of a function that takes sizes of the graph behind what a call passes it.
    fn called(
        &mut self,
        (func, name): (TensorFunc, &Arc<str>),
        args: Vec<GraphExpr>,
        outs: &[TensorType],
        scalars: &[Expr],
    ) -> Result<GraphExpr> {
        let sizes = func.scalars().skip(scalars.len());
        let sizes = sizes.map(|v| dim::open_size(v).map(|size| Dim::open(&size).argument()));
        let sizes: Option<Vec<Expr>> = sizes.collect();
        let sizes = sizes.ok_or_else(|| Error::internal("strides of sizes that are none"))?;
        let func = self.functions.add(func, name);
        let scalars = scalars.iter().cloned().chain(sizes).collect();
        Ok(GraphExpr::CallTir { func, args, outs: outs.to_vec(), scalars })
    }

    /// How a value lies, where it is not compact.
    fn strides(&self, e: &GraphExpr) -> Option<Strides> {
        self.placed.strides(self.placing.graph, e)
    }

    /// A call of a join whose parts are in place.
    fn join(
        &mut self,
        b: &Binding,
        name: &Arc<str>,
        func: &TensorFunc,
        parts: &[JoinOperand],
    ) -> Result<()> {
        let (shape, dtype) = shape_of(&b.var).ok_or_else(unknown_shape)?;
        let own = self.strides(&GraphExpr::Var(b.var.clone()));
        let whole = own.clone().unwrap_or_else(|| row_major(&shape));
        let (mut args, mut given) = (Vec::with_capacity(parts.len()), Vec::new());
        let mut shapes = Vec::with_capacity(parts.len());
        for part in parts {
            let ty = part.value.ty().as_tensor().cloned().ok_or_else(unknown_shape)?;
            let strides = part_strides(&ty, &whole);
            shapes.push(dim::of_shape(&ty.shape).ok_or_else(unknown_shape)?);
            args.push(if part.placed {
                part.value.clone()
            } else {
                let lies = [self.strides(&part.value), strides.clone()];
                self.copied(&part.value, b.var.name(), ty, &lies)?
            });
            given.push(strides);
        }
        given.push(own);
        let GraphExpr::CallTir { outs, scalars, .. } = &b.value else {
            return Err(Error::internal("a join that is no call"));
        };
        let (joins, scalars) = if parts.len() + 1 == func.buffers().count() {
            (func.clone(), &scalars[..])
        } else {
            (join_func(dtype, &shape, &shapes, parts), &[][..])
        };
        let mut new = strided(&joins, &given)?;
        let corners: Vec<Vec<Dim>> = parts.iter().map(|part| part.corner.clone()).collect();
        let attr = parts_attr(&corners, &shapes).ok_or_else(unknown_shape)?;
        new.attrs.insert(PARTS.into(), attr);
        let value = self.called((new, name), args, outs, scalars)?;
        self.bindings.push(Binding { value, ..b.clone() });
        Ok(())
    }

    /// A call of a function for each of its results, some of which are in place.
    fn slice(
        &mut self,
        n: usize,
        name: &Arc<str>,
        func: &TensorFunc,
        args: &[GraphExpr],
        (sliced, lies): (&Sliced, &[bool]),
    ) -> Result<()> {
        let b = self.placing.bindings[n];
        let results = self.placing.graph.results_of(b, sliced.results.len());
        for (k, (result, (input, slice, _))) in results.into_iter().zip(&sliced.results).enumerate()
        {
            let Some(result) = result else { continue };
            let alone = sliced.alone(func, k).ok_or_else(|| Error::internal("a result is gone"))?;
            let source = &args[*input];
            let given = [self.strides(source), self.strides(&GraphExpr::Var(result.clone()))];
            let mut new = strided(&alone, &given)?;
            if lies[k] {
                new.attrs.insert(SLICE.into(), slice.attr());
            }
            let args = vec![source.clone()];
            self.bindings.push(self.functions.made((new, name), args, result, b.span)?);
        }
        if b.var.ty().as_tensor().is_none() {
            self.apart.insert(b.var.id());
        }
        Ok(())
    }

    /// A copy of a value, which lies as its box does: `lies` says how both do. It has the name of the
    /// whole, as which its time counts.
    fn copied(
        &mut self,
        value: &GraphExpr,
        name: &Arc<str>,
        ty: TensorType,
        lies: &[Option<Strides>],
    ) -> Result<GraphExpr> {
        let shape = dim::of_shape(&ty.shape)
            .ok_or_else(|| Error::internal("a part whose size is not known"))?;
        let groups = lying_as_one(&shape, lies);
        let steps = |strides: &Strides| last_of_groups(strides, &groups);
        let coarse_lies: Vec<_> = lies.iter().map(|lies| lies.as_ref().map(steps)).collect();
        let coarse_shape = in_groups(&shape, &groups);
        // Where an extent may be zero, views may not say how the groups lie.
        let is_seen = |(fine, coarse): (&Strides, &Strides)| {
            reshaped(&shape, fine, &coarse_shape).as_ref() == Some(coarse)
                && reshaped(&coarse_shape, coarse, &shape).as_ref() == Some(fine)
        };
        let mut both = lies.iter().flatten().zip(coarse_lies.iter().flatten());
        if groups.len() == shape.len() || !both.all(is_seen) {
            return self.copy_of(value.clone(), name, ty, &shape, lies);
        }
        let coarse = GraphVar::tensor(name.clone(), grouped(&ty, &groups));
        let seen = (view(&ty, &groups, true)?, "view");
        self.bindings.push(self.functions.made(seen, vec![value.clone()], &coarse, None)?);
        let own = grouped(&ty, &groups);
        let copy = self.copy_of(coarse.expr(), name, own, &coarse_shape, &coarse_lies)?;
        let fine = GraphVar::tensor(name.clone(), ty.clone());
        let seen = (view(&ty, &groups, false)?, "view");
        self.bindings.push(self.functions.made(seen, vec![copy], &fine, None)?);
        Ok(fine.expr())
    }

    fn copy_of(
        &mut self,
        value: GraphExpr,
        name: &Arc<str>,
        ty: TensorType,
        shape: &[Dim],
        lies: &[Option<Strides>],
    ) -> Result<GraphExpr> {
        let copy = strided(&copy_func(ty.dtype, shape)?, lies)?;
        let var = GraphVar::tensor(name.clone(), ty);
        let copy = self.functions.made((copy, "copy"), vec![value], &var, None)?;
        self.bindings.push(copy);
        Ok(var.expr())
    }
}

/// The groups of neighbouring axes that lie as one wherever a tensor lies, of which one is open: a loop over all of
/// their cells goes on where that over one axis ends.
fn lying_as_one(shape: &[Dim], lies: &[Option<Strides>]) -> Groups {
    let joined = |d: usize| lies.iter().flatten().all(|s| s[d] == s[d + 1] * shape[d + 1]);
    let mut groups = Groups::new();
    let mut at = 0;
    while at < shape.len() {
        let end = (at + 1..shape.len()).find(|d| !joined(d - 1)).unwrap_or(shape.len());
        if shape[at..end].iter().all(|n| n.known().is_some()) {
            groups.extend((at..end).map(|_| 1));
        } else {
            groups.push(end - at);
        }
        at = end;
    }
    groups
}

/// The stride of each group of axes that lie as one.
fn last_of_groups(strides: &Strides, groups: &Groups) -> Strides {
    let ends = groups.iter().scan(0, |end, n| {
        *end += n;
        Some(*end)
    });
    ends.filter_map(|end| strides.get(end.checked_sub(1)?).copied()).collect()
}

fn unknown_shape() -> Error {
    Error::internal("a part or whole whose shape is not known")
}

/// A function that copies parts of these shapes into their boxes.
fn join_func(
    dtype: DType,
    shape: &[Dim],
    shapes: &[Vec<Dim>],
    parts: &[JoinOperand],
) -> TensorFunc {
    let whole = buffer("whole", shape, dtype);
    let (mut params, mut stages) = (Vec::new(), Vec::new());
    for (k, (part, own)) in parts.iter().zip(shapes).enumerate() {
        let from = buffer(format!("part{k}"), own, dtype);
        let iters = cells("v", own);
        let at = at(&iters);
        let to = at
            .iter()
            .zip(&part.corner)
            .map(|(i, c)| if *c == 0 { i.clone() } else { i.clone() + c.expr() })
            .collect();
        stages.push(Stage::build(format!("part{k}"), &iters, &whole, to, from.load(at), None).stmt);
        params.push(Param::tensor(&from));
    }
    params.push(Param::tensor(&whole));
    let mut func = TensorFunc::new(params, Stmt::seq(stages));
    func.pass_sizes(func.shape_vars());
    func
}
