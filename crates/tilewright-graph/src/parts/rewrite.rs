//! The graph function in which parts lie in place: calls of functions that take strides, joins and
//! slices that run no code, and copies of what is not placed.

use std::collections::HashSet;
use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_ir::{
    Attr, Binding, BindingBlock, Buffer, DType, Dim, Error, Expr, GraphExpr, GraphFunc, GraphVar,
    IterKind, Param, Result, Stmt, TensorFunc, TensorType, Var, dim,
};

use super::placement::{JoinOperand, Placement, Placing, shape_of};
use super::slice::Sliced;
use super::strides::{Strides, part_strides, row_major, strided};
use crate::functions::Functions;
use crate::legalize::copy_func;
use crate::marks::{PARTS, SLICE};

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
        let (bindings, apart) = (Vec::new(), HashSet::new());
        let mut new = Rewrite { placing, placed: self, functions, bindings, apart };
        for (n, b) in placing.bindings.iter().enumerate() {
            new.binding(n, b)?;
        }
        let bindings = new.bindings;
        let func = placing.graph.func;
        let one = func.blocks.first().map(|b| BindingBlock { bindings, ..b.clone() });
        Ok(GraphFunc { blocks: one.into_iter().collect(), ..func.clone() })
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
        let sizes = new.scalars().skip(scalars.len());
        let sizes = sizes.map(|v| dim::open_size(v).map(|size| Dim::open(&size).argument()));
        let sizes: Option<Vec<Expr>> = sizes.collect();
        let sizes = sizes.ok_or_else(|| Error::internal("strides of sizes that are none"))?;
        let func = self.functions.add(new, name);
        let scalars = scalars.iter().cloned().chain(sizes).collect();
        let value = GraphExpr::CallTir { func, args: args.clone(), outs: outs.clone(), scalars };
        self.bindings.push(Binding { value, ..b.clone() });
        Ok(())
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
        let unknown = || Error::internal("a part or whole whose shape is not known");
        let (shape, dtype) = shape_of(&b.var).ok_or_else(unknown)?;
        let own = self.strides(&GraphExpr::Var(b.var.clone()));
        let whole = own.clone().unwrap_or_else(|| row_major(&shape));
        let (mut args, mut given) = (Vec::with_capacity(parts.len()), Vec::new());
        let mut shapes = Vec::with_capacity(parts.len());
        for part in parts {
            let ty = part.value.ty().as_tensor().cloned().ok_or_else(unknown)?;
            let strides = part_strides(&ty, &whole);
            shapes.push(dim::of_shape(&ty.shape).ok_or_else(unknown)?);
            args.push(match part.placed {
                true => part.value.clone(),
                false => {
                    let lies = [self.strides(&part.value), strides.clone()];
                    self.copied(&part.value, b.var.name(), ty, &lies)?
                }
            });
            given.push(strides);
        }
        given.push(own);
        let joins = match parts.len() + 1 == func.buffers().count() {
            true => func.clone(),
            false => join_func(dtype, &shape, &shapes, parts),
        };
        let mut new = strided(&joins, &given)?;
        let corner = |part: &JoinOperand| {
            Attr::List(part.corner.iter().map(|n| Attr::Int(*n as i64)).collect())
        };
        new.attrs.insert(PARTS.into(), Attr::List(parts.iter().map(corner).collect()));
        let func = self.functions.add(new, name);
        let outs = b.var.ty().as_tensor().cloned().into_iter().collect();
        let value = self.functions.call(func, args, outs)?;
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
            let func = self.functions.add(new, name);
            let outs = result.ty().as_tensor().cloned().into_iter().collect();
            let value = self.functions.call(func, vec![source.clone()], outs)?;
            self.bindings.push(Binding { var: result.clone(), value, span: b.span });
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
        let copy = strided(&copy_func(ty.dtype, &shape)?, lies)?;
        let func = self.functions.add(copy, "copy");
        let call = self.functions.call(func, vec![value.clone()], vec![ty.clone()])?;
        let var = GraphVar::tensor(name.clone(), ty);
        self.bindings.push(Binding { var: var.clone(), value: call, span: None });
        Ok(GraphExpr::Var(var))
    }
}

/// A function that copies parts of these shapes into their boxes.
fn join_func(
    dtype: DType,
    shape: &[Dim],
    shapes: &[Vec<Dim>],
    parts: &[JoinOperand],
) -> TensorFunc {
    let extents = |shape: &[Dim]| shape.iter().map(|d| d.expr()).collect::<Vec<Expr>>();
    let whole = Buffer::new("whole", extents(shape), dtype);
    let (mut params, mut stages) = (Vec::new(), Vec::new());
    for (k, (part, own)) in parts.iter().zip(shapes).enumerate() {
        let from = Buffer::new(format!("part{k}"), extents(own), dtype);
        let iters: Vec<(Var, Dim, IterKind)> = own
            .iter()
            .enumerate()
            .map(|(axis, d)| (Var::index(format!("v{axis}")), d.inside(), IterKind::Spatial))
            .collect();
        let at: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
        let moved = |(i, c): (&Expr, &usize)| match *c {
            0 => i.clone(),
            c => i.clone() + Expr::i32(i32::try_from(c).unwrap_or(i32::MAX)),
        };
        let to = at.iter().zip(&part.corner).map(moved).collect();
        stages.push(Stage::build(format!("part{k}"), &iters, &whole, to, from.load(at), None).stmt);
        params.push(Param::tensor(&from));
    }
    params.push(Param::tensor(&whole));
    let mut func = TensorFunc::new(params, Stmt::seq(stages));
    let sizes = shapes.iter().flatten().chain(shape).flat_map(|d| d.inside().vars());
    func.pass_sizes(sizes.collect::<Vec<_>>());
    func
}
