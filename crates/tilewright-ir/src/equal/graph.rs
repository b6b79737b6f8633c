//! Equality of graph functions.

use super::*;

impl Matcher<'_> {
    pub(super) fn graph_func(&mut self, a: &GraphFunc, b: &GraphFunc) -> Check {
        self.graph_func_parts(a, b).spanned(a.span, b.span)
    }

    fn graph_func_parts(&mut self, a: &GraphFunc, b: &GraphFunc) -> Check {
        for (x, y) in pairs("parameters", &a.params, &b.params)? {
            let defined = self.defining(|m| m.graph_var_def(x, y));
            defined.within(format_args!("parameter `{}`", x.name()))?;
        }
        self.func_attrs(&a.attrs, &b.attrs, a.private, b.private)?;
        match (&a.ret_ty, &b.ret_ty) {
            (Some(x), Some(y)) => self.graph_type(x, y),
            (None, None) => Ok(()),
            (Some(_), None) => differ("declared", "not declared"),
            (None, Some(_)) => differ("not declared", "declared"),
        }
        .within("result type")?;
        self.binding_blocks(&a.blocks, &b.blocks)?;
        self.graph_expr(&a.ret, &b.ret).within("result")
    }

    fn binding_blocks(&mut self, a: &[BindingBlock], b: &[BindingBlock]) -> Check {
        for (x, y) in pairs("binding blocks", a, b)? {
            agree("binding block", &x.dataflow, &y.dataflow, |d| {
                if *d { "a dataflow region" } else { "plain bindings" }.to_owned()
            })?;
            for (n, m) in x.bindings.iter().zip(&y.bindings) {
                self.binding(n, m)
                    .within(format_args!("binding `{}`", n.var.name()))
                    .spanned(n.span, m.span)?;
            }
            if x.bindings.len() != y.bindings.len() {
                let n = x.bindings.len().min(y.bindings.len());
                return differ(binding_text(x.bindings.get(n)), binding_text(y.bindings.get(n)));
            }
            let mut outputs = pairs("outputs", &x.outputs, &y.outputs)?;
            outputs.try_for_each(|(x, y)| self.graph_var(x, y)).within("outputs")?;
        }
        Ok(())
    }

    fn body(&mut self, a: &Body, b: &Body, what: &str) -> Check {
        self.binding_blocks(&a.blocks, &b.blocks)
            .and_then(|()| self.graph_expr(&a.ret, &b.ret))
            .within(what)
    }

    fn graph_loop(&mut self, a: &Loop, b: &Loop) -> Check {
        agree("operands", &parts_given(a), &parts_given(b), |n| format!("{n:?}"))?;
        a.operands().zip(b.operands()).try_for_each(|(x, y)| self.graph_expr(x, y))?;
        for (x, y) in pairs("parameters", &a.params, &b.params)? {
            self.defining(|m| m.graph_var_def(x, y))?;
        }
        self.body(&a.body, &b.body, "loop")
    }

    fn binding(&mut self, a: &Binding, b: &Binding) -> Check {
        self.graph_expr(&a.value, &b.value)?;
        // What is computed otherwise than by tensor functions may bring new sizes.
        match a.value {
            GraphExpr::CallTir { .. } | GraphExpr::Const(_) => self.graph_var_def(&a.var, &b.var),
            _ => self.defining(|m| m.graph_var_def(&a.var, &b.var)),
        }
    }

    fn graph_var_def(&mut self, a: &GraphVar, b: &GraphVar) -> Check {
        self.graph_type(a.ty(), b.ty())?;
        self.graph_vars.define(a, b);
        Ok(())
    }

    fn graph_var(&mut self, a: &GraphVar, b: &GraphVar) -> Check {
        if self.graph_vars.paired(a, b).unwrap_or(a == b) {
            Ok(())
        } else if a.name() == b.name() {
            let name = a.name();
            differ(format!("one variable `{name}`"), format!("another variable `{name}`"))
        } else {
            differ(quoted(a.name()), quoted(b.name()))
        }
    }

    fn graph_type(&mut self, a: &GraphType, b: &GraphType) -> Check {
        match (a, b) {
            (GraphType::Tensor(x), GraphType::Tensor(y)) => self.tensor_type(x, y),
            (GraphType::Tuple(x), GraphType::Tuple(y)) if x.len() == y.len() => {
                x.iter().zip(y).try_for_each(|(x, y)| self.graph_type(x, y))
            }
            (GraphType::Shape(x), GraphType::Shape(y)) => self.expr_list("shape", x, y),
            (GraphType::Opaque(x), GraphType::Opaque(y)) if x == y => Ok(()),
            _ => differ(type_text(a), type_text(b)),
        }
    }

    fn tensor_type(&mut self, a: &TensorType, b: &TensorType) -> Check {
        agree("type", &a.dtype, &b.dtype, |t| t.to_string())?;
        self.expr_list("shape", &a.shape, &b.shape)
    }

    fn graph_expr(&mut self, a: &GraphExpr, b: &GraphExpr) -> Check {
        match (a, b) {
            (GraphExpr::Var(x), GraphExpr::Var(y)) => self.graph_var(x, y),
            (GraphExpr::Const(x), GraphExpr::Const(y)) => tensors(x, y),
            (
                GraphExpr::CallTir { func: f, args: x, outs: p, scalars: s },
                GraphExpr::CallTir { func: g, args: y, outs: q, scalars: t },
            ) => {
                if !self.same_function(f, g) || x.len() != y.len() || p.len() != q.len() {
                    return differ(graph_text(a), graph_text(b));
                }
                self.graph_exprs(x, y)?;
                p.iter().zip(q).try_for_each(|(x, y)| self.tensor_type(x, y))?;
                self.expr_list("scalars", s, t)
            }
            (
                GraphExpr::Call { op: f, args: x, attrs: m },
                GraphExpr::Call { op: g, args: y, attrs: n },
            ) => {
                let same = match (callee(f), callee(g)) {
                    (Some(f), Some(g)) => self.same_function(f, g),
                    _ => f == g,
                };
                if !same || x.len() != y.len() {
                    return differ(graph_text(a), graph_text(b));
                }
                self.graph_exprs(x, y)?;
                self.attrs(m, n, "attribute", "")
            }
            (GraphExpr::Tuple(x), GraphExpr::Tuple(y)) if x.len() == y.len() => {
                self.graph_exprs(x, y)
            }
            (GraphExpr::Item(x, i), GraphExpr::Item(y, j)) if i == j => self.graph_expr(x, y),
            (GraphExpr::If(x), GraphExpr::If(y)) => {
                self.graph_expr(&x.cond, &y.cond).within("condition")?;
                self.body(&x.then, &y.then, "branch")?;
                self.body(&x.otherwise, &y.otherwise, "other branch")
            }
            (GraphExpr::Loop(x), GraphExpr::Loop(y)) => self.graph_loop(x, y),
            _ => differ(graph_text(a), graph_text(b)),
        }
    }

    /// Lists of one length.
    fn graph_exprs(&mut self, a: &[GraphExpr], b: &[GraphExpr]) -> Check {
        a.iter().zip(b).try_for_each(|(x, y)| self.graph_expr(x, y))
    }

    fn same_function(&self, a: &str, b: &str) -> bool {
        match &self.funcs {
            Some(renamed) => renamed.get(a).map_or(a == b, |x| &**x == b),
            None => a == b,
        }
    }
}

fn binding_text(n: Option<&Binding>) -> String {
    match n {
        Some(n) => format!("`{} = {}`", n.var.name(), graph_text(&n.value)),
        None => "nothing more".to_owned(),
    }
}

fn parts_given(l: &Loop) -> (bool, bool, usize) {
    (l.trip.is_some(), l.cond.is_some(), l.carried.len())
}

pub(super) fn tensors(a: &Tensor, b: &Tensor) -> Check {
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        return differ(tensor_text(a), tensor_text(b));
    }
    if a.same(b) {
        return Ok(());
    }
    let size = a.dtype().bytes().max(1);
    let (x, y) = (a.bytes(), b.bytes());
    let at = (0..a.len()).find(|&i| {
        let bytes = i * size..(i + 1) * size;
        x[bytes.clone()] != y[bytes]
            && !(a.dtype().is_float() && a.get_f64(i).is_nan() && b.get_f64(i).is_nan())
    });
    at.map_or(Ok(()), |i| {
        differ(element_text(a, i), element_text(b, i)).within(format_args!("constant, element {i}"))
    })
}

fn element_text(t: &Tensor, i: usize) -> String {
    if t.dtype().is_float() { format!("{:?}", t.get_f64(i)) } else { t.get_i128(i).to_string() }
}

fn tensor_text(t: &Tensor) -> String {
    format!("a constant of {}{:?}", t.dtype(), t.shape())
}

fn graph_text(e: &GraphExpr) -> String {
    match e {
        GraphExpr::Var(v) => format!("`{}`", v.name()),
        GraphExpr::Const(t) => tensor_text(t),
        GraphExpr::CallTir { func, args, outs, .. } => {
            format!("call_tir of `{func}` ({} arguments, {} outputs)", args.len(), outs.len())
        }
        GraphExpr::Call { op, args, .. } => format!("call of `{op}` ({} arguments)", args.len()),
        GraphExpr::Tuple(items) => format!("a tuple of {}", items.len()),
        GraphExpr::Item(e, i) => format!("item {i} of {}", graph_text(e)),
        GraphExpr::If(_) => "branches".to_owned(),
        GraphExpr::Loop(_) => "a loop".to_owned(),
    }
}

fn type_text(t: &GraphType) -> String {
    match t {
        GraphType::Tensor(t) => {
            format!("a {} tensor of shape ({})", t.dtype, commas(t.shape.iter().map(brief)))
        }
        GraphType::Tuple(items) => format!("a tuple of {}", items.len()),
        GraphType::Shape(sizes) => format!("a shape of {} sizes", sizes.len()),
        GraphType::Opaque(text) => format!("`{text}`"),
    }
}
