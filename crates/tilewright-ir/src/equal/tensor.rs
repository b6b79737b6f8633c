//! Equality of tensor functions, statements and expressions.

use super::*;

impl Matcher<'_> {
    pub(super) fn tensor_func(&mut self, a: &TensorFunc, b: &TensorFunc) -> Check {
        self.tensor_func_parts(a, b).spanned(a.span, b.span)
    }

    fn tensor_func_parts(&mut self, a: &TensorFunc, b: &TensorFunc) -> Check {
        // Scalars first: shapes of tensors may name a scalar that comes after them.
        for (i, (x, y)) in pairs("parameters", &a.params, &b.params)?.enumerate() {
            match (x, y) {
                (Param::Scalar(x), Param::Scalar(y)) => self.var_def(x, y),
                (Param::Buffer { .. }, Param::Buffer { .. }) => Ok(()),
                (Param::Scalar(_), _) => differ("a scalar", "a tensor"),
                (Param::Buffer { .. }, _) => differ("a tensor", "a scalar"),
            }
            .within(format_args!("parameter {i}"))?;
        }
        for (i, pair) in a.params.iter().zip(&b.params).enumerate() {
            if let (
                Param::Buffer { handle: h, buffer: x },
                Param::Buffer { handle: k, buffer: y },
            ) = pair
            {
                self.var_def(h, k)?;
                self.defining(|m| m.buffer_def(x, y)).within(format_args!("parameter {i}"))?;
            }
        }
        self.func_attrs(&a.attrs, &b.attrs, a.private, b.private)?;
        agree("result", &a.ret, &b.ret, |t| t.map_or("none".into(), |t| t.to_string()))?;
        self.stmt(&a.body, &b.body)
    }

    pub(super) fn var_def(&mut self, a: &Var, b: &Var) -> Check {
        if a.dtype() != b.dtype() {
            return differ(typed_name(a), typed_name(b));
        }
        if a.range() != b.range() {
            return differ(sized_name(a), sized_name(b));
        }
        if self.vars.define(a, b) {
            self.same.clear();
        }
        Ok(())
    }

    fn var(&mut self, a: &Var, b: &Var) -> Check {
        let named = self.options.free == Free::Named && a.name() == b.name();
        let ok = match self.vars.paired(a, b) {
            Some(paired) => paired,
            None if a.dtype() != b.dtype() || a.range() != b.range() => false,
            None if self.pairing || a == b || named => {
                self.vars.define(a, b);
                true
            }
            None => false,
        };
        let text = |v: &Var| match (a.name() == b.name(), a.dtype() == b.dtype()) {
            (false, _) => format!("`{}`", v.name()),
            (true, false) => format!("`{}` of {}", v.name(), v.dtype()),
            (true, true) => format!("one variable `{}`", v.name()),
        };
        if ok {
            Ok(())
        } else if a.name() == b.name() && a.dtype() == b.dtype() {
            differ(text(a), format!("another variable `{}`", b.name()))
        } else {
            differ(text(a), text(b))
        }
    }

    fn buffer_def(&mut self, a: &Buffer, b: &Buffer) -> Check {
        self.buffer_parts(a, b).within(format_args!("buffer `{}`", a.name))?;
        if self.buffers.define(a, b) {
            self.same.clear();
        }
        Ok(())
    }

    fn buffer_parts(&mut self, a: &Buffer, b: &Buffer) -> Check {
        agree("type", &a.dtype(), &b.dtype(), |t| t.to_string())?;
        self.expr_list("shape", &a.shape, &b.shape)?;
        self.expr_list("strides", &a.strides, &b.strides)?;
        match (offset_of(a), offset_of(b)) {
            (Some(x), Some(y)) => self.expr(&x, &y),
            (None, None) => Ok(()),
            (x, y) => differ(offset_text(x), offset_text(y)),
        }
        .within("offset")?;
        agree("scope", &a.scope, &b.scope, |s| quoted(s))?;
        agree("axis separators", &a.axis_separators, &b.axis_separators, |s| format!("{s:?}"))?;
        agree("alignment", &a.align, &b.align, |n| n.to_string())?;
        agree("offset factor", &a.offset_factor, &b.offset_factor, |n| n.to_string())?;
        // Two views of one memory on one side are two views of one memory on the other.
        match self.vars.paired(&a.data, &b.data) {
            Some(true) => Ok(()),
            None => self.var_def(&a.data, &b.data),
            Some(false) => {
                let (x, y) = (&a.data, &b.data);
                let (x, y) = (self.vars.forth.contains_key(x), self.vars.back.contains_key(y));
                if x == y {
                    differ("a view of one memory", "a view of another")
                } else {
                    differ(memory_text(x), memory_text(y))
                }
            }
        }
        .within("memory")
    }

    pub(super) fn buffer(&mut self, a: &Buffer, b: &Buffer) -> Check {
        match self.buffers.paired(a, b) {
            Some(true) => Ok(()),
            None if a == b => {
                self.buffers.define(a, b);
                Ok(())
            }
            None if self.pairing => self.buffer_def(a, b),
            _ if a.name == b.name => {
                differ(format!("buffer `{}`", a.name), format!("another buffer `{}`", b.name))
            }
            _ => differ(format!("buffer `{}`", a.name), format!("buffer `{}`", b.name)),
        }
    }

    pub(super) fn expr_list(&mut self, what: &str, a: &[Expr], b: &[Expr]) -> Check {
        if a.len() != b.len() {
            return differ(list_text(a), list_text(b)).within(what);
        }
        self.exprs(a, b).within(what)
    }

    /// Lists of one length.
    fn exprs(&mut self, a: &[Expr], b: &[Expr]) -> Check {
        a.iter().zip(b).try_for_each(|(x, y)| self.expr(x, y))
    }

    pub(super) fn expr(&mut self, a: &Expr, b: &Expr) -> Check {
        let key = (a.address(), b.address());
        if self.same.contains(&key) {
            return Ok(());
        }
        match self.expr_parts(a, b) {
            Ok(()) => {
                self.same.insert(key);
                Ok(())
            }
            // The text of the whole expression says more, as long as it is short and shows the
            // difference.
            Err(mut d) => {
                let (x, y) = (brief(a), brief(b));
                if d.path.is_empty() && x != y && x.len().max(y.len()) <= 80 {
                    (d.left, d.right) = (quoted(&x), quoted(&y));
                }
                Err(d)
            }
        }
    }

    fn expr_parts(&mut self, a: &Expr, b: &Expr) -> Check {
        if a.dtype() != b.dtype() {
            return match (a.kind(), b.kind()) {
                (ExprKind::Var(x), ExprKind::Var(y)) => self.var(x, y),
                _ => differ_whole(a, b),
            };
        }
        match (a.kind(), b.kind()) {
            (ExprKind::Int(x), ExprKind::Int(y)) if x == y => Ok(()),
            (ExprKind::Float(x), ExprKind::Float(y)) if same_float(*x, *y) => Ok(()),
            (ExprKind::Str(x), ExprKind::Str(y)) if x == y => Ok(()),
            (ExprKind::Undef, ExprKind::Undef) => Ok(()),
            (ExprKind::Var(x), ExprKind::Var(y)) => self.var(x, y),
            (ExprKind::Cast(x), ExprKind::Cast(y))
            | (ExprKind::Not(x), ExprKind::Not(y))
            | (ExprKind::Broadcast(x), ExprKind::Broadcast(y)) => self.expr(x, y),
            (ExprKind::Binary(o, ..), ExprKind::Binary(p, ..)) if o != p => differ_whole(a, b),
            (ExprKind::Binary(_, x1, x2), ExprKind::Binary(_, y1, y2))
            | (ExprKind::Ramp(x1, x2), ExprKind::Ramp(y1, y2)) => {
                self.expr(x1, y1)?;
                self.expr(x2, y2)
            }
            (ExprKind::Select(x1, x2, x3), ExprKind::Select(y1, y2, y3))
            | (ExprKind::IfThenElse(x1, x2, x3), ExprKind::IfThenElse(y1, y2, y3)) => {
                self.expr(x1, y1)?;
                self.expr(x2, y2)?;
                self.expr(x3, y3)
            }
            (ExprKind::Load(x, i), ExprKind::Load(y, j)) if i.len() == j.len() => {
                self.buffer(x, y)?;
                self.exprs(i, j)
            }
            (ExprKind::Call(f, x), ExprKind::Call(g, y)) if f == g && x.len() == y.len() => {
                self.exprs(x, y)
            }
            (ExprKind::Let(v, x, s), ExprKind::Let(w, y, t)) => {
                self.expr(x, y)?;
                self.var_def(v, w)?;
                self.expr(s, t)
            }
            _ => differ_whole(a, b),
        }
    }

    fn range(&mut self, a: &Range, b: &Range) -> Check {
        self.expr(&a.min, &b.min).within("first value")?;
        self.expr(&a.extent, &b.extent).within("extent")
    }

    fn region(&mut self, a: &Region, b: &Region) -> Check {
        self.buffer(&a.buffer, &b.buffer)?;
        let check = pairs("axes", &a.ranges, &b.ranges)?.try_for_each(|(x, y)| self.range(x, y));
        check.within(format_args!("region of `{}`", a.buffer.name))
    }

    fn regions(&mut self, what: &str, a: &Option<Vec<Region>>, b: &Option<Vec<Region>>) -> Check {
        let check = match (a, b) {
            (Some(x), Some(y)) if x.len() == y.len() => {
                x.iter().zip(y).try_for_each(|(x, y)| self.region(x, y))
            }
            (None, None) => Ok(()),
            (Some(_), Some(_)) => differ(regions_text(a), regions_text(b)),
            _ if self.options.regions == Regions::WhereBoth => Ok(()),
            _ => differ(regions_text(a), regions_text(b)),
        };
        check.within(what)
    }

    fn optional_stmt(&mut self, a: Option<&Stmt>, b: Option<&Stmt>) -> Check {
        match (a, b) {
            (Some(x), Some(y)) => self.stmt(x, y),
            (None, None) => Ok(()),
            _ => differ(a.map_or("nothing".into(), describe), b.map_or("nothing".into(), describe)),
        }
    }

    pub(super) fn stmt(&mut self, a: &Stmt, b: &Stmt) -> Check {
        let check = match (a.kind(), b.kind()) {
            (StmtKind::Seq(_), _) | (_, StmtKind::Seq(_)) => {
                let (x, y) = (sequence(a), sequence(b));
                x.iter().zip(y).try_for_each(|(x, y)| self.stmt(x, y)).and_then(|()| {
                    let n = x.len().min(y.len());
                    if x.len() == y.len() {
                        Ok(())
                    } else {
                        differ(
                            x.get(n).map_or("nothing more".into(), describe),
                            y.get(n).map_or("nothing more".into(), describe),
                        )
                    }
                })
            }
            _ => self.stmt_parts(a, b),
        };
        check.spanned(a.span(), b.span())
    }

    fn stmt_parts(&mut self, a: &Stmt, b: &Stmt) -> Check {
        match (a.kind(), b.kind()) {
            (
                StmtKind::Store { buffer: p, indices: i, value: x },
                StmtKind::Store { buffer: q, indices: j, value: y },
            ) => {
                let mut parts = || {
                    self.buffer(p, q)?;
                    self.expr_list("indices", i, j)?;
                    self.expr(x, y).within("value")
                };
                parts().within(format_args!("store to `{}`", p.name))
            }
            (
                StmtKind::For { var: v, range: r, kind: k, annotations: m, body: x },
                StmtKind::For { var: w, range: s, kind: l, annotations: n, body: y },
            ) => {
                let mut parts = || {
                    self.range(r, s)?;
                    agree("kind", k, l, |k| for_kind(k).to_owned())?;
                    self.attrs(m, n, "annotation", "")?;
                    self.var_def(v, w)?;
                    self.stmt(x, y)
                };
                parts().within(format_args!("loop `{}`", v.name()))
            }
            (
                StmtKind::If { cond: c, then: x, otherwise: p },
                StmtKind::If { cond: d, then: y, otherwise: q },
            ) => {
                self.expr(c, d).within("condition")?;
                self.stmt(x, y).within("true branch")?;
                self.optional_stmt(p.as_ref(), q.as_ref()).within("false branch")
            }
            (
                StmtKind::Let { var: v, value: x, body: s },
                StmtKind::Let { var: w, value: y, body: t },
            ) => {
                let bound = self.expr(x, y).and_then(|()| self.var_def(v, w));
                bound.within(format_args!("value of `{}`", v.name()))?;
                self.stmt(s, t)
            }
            (
                StmtKind::Allocate { buffer: p, annotations: m, body: x },
                StmtKind::Allocate { buffer: q, annotations: n, body: y },
            ) => {
                self.buffer_def(p, q)?;
                let notes = self.attrs(m, n, "annotation", "");
                notes.within(format_args!("allocation of `{}`", p.name))?;
                self.stmt(x, y)
            }
            (
                StmtKind::Constant { buffer: p, value: v, body: x },
                StmtKind::Constant { buffer: q, value: w, body: y },
            ) => {
                self.buffer_def(p, q)?;
                graph::tensors(v, w).within(format_args!("buffer `{}`", p.name))?;
                self.stmt(x, y)
            }
            (
                StmtKind::Declare { buffer: p, body: x },
                StmtKind::Declare { buffer: q, body: y },
            ) => {
                self.buffer_def(p, q)?;
                self.stmt(x, y)
            }
            (
                StmtKind::Block { bindings: i, predicate: p, block: x },
                StmtKind::Block { bindings: j, predicate: q, block: y },
            ) => {
                let mut parts = || {
                    self.expr_list("bindings", i, j)?;
                    self.expr(p, q).within("predicate")?;
                    self.block(x, y)
                };
                parts().within(format_args!("block `{}`", x.name))
            }
            (StmtKind::Assume(x), StmtKind::Assume(y)) => self.expr(x, y).within("assumption"),
            (
                StmtKind::Assert { cond: x, message: m, values: v },
                StmtKind::Assert { cond: y, message: n, values: w },
            ) => {
                self.expr(x, y).within("assertion")?;
                if !self.options.messages {
                    return Ok(());
                }
                self.expr_list("values", v, w).within("assertion")?;
                agree("message", m, n, |m| format!("{m:?}"))
            }
            (StmtKind::Evaluate(x), StmtKind::Evaluate(y)) => {
                self.expr(x, y).within("evaluated expression")
            }
            _ => differ(describe(a), describe(b)),
        }
    }

    fn block(&mut self, a: &Block, b: &Block) -> Check {
        if self.options.block_names {
            agree("name", &a.name, &b.name, |n| quoted(n))?;
        }
        for (x, y) in pairs("iteration variables", &a.iters, &b.iters)? {
            let mut parts = || {
                self.range(&x.domain, &y.domain)?;
                agree("kind", &x.kind, &y.kind, |k| format!("{k:?}").to_lowercase())?;
                self.var_def(&x.var, &y.var)
            };
            parts().within(format_args!("iteration variable `{}`", x.var.name()))?;
        }
        pairs("allocations", &a.allocs, &b.allocs)?.try_for_each(|(x, y)| self.buffer_def(x, y))?;
        for (x, y) in pairs("views", &a.matches, &b.matches)? {
            self.region(&x.source, &y.source)?;
            // Strides and offset of a view may be variables that the view defines.
            self.defining(|m| m.buffer_def(&x.buffer, &y.buffer))?;
        }
        self.regions("reads", &a.reads, &b.reads)?;
        self.regions("writes", &a.writes, &b.writes)?;
        self.attrs(&a.annotations, &b.annotations, "annotation", "")?;
        self.optional_stmt(a.init.as_ref(), b.init.as_ref()).within("initialisation")?;
        self.stmt(&a.body, &b.body)
    }
}

fn typed_name(v: &Var) -> String {
    format!("`{}` of {}", v.name(), v.dtype())
}

fn sized_name(v: &Var) -> String {
    format!("the size `{}` in {}", v.name(), v.range())
}

fn offset_of(x: &Buffer) -> Option<Expr> {
    x.elem_offset.clone().filter(|e| e.as_int() != Some(0))
}

fn offset_text(e: Option<Expr>) -> String {
    quoted(&e.map_or("0".into(), |e| brief(&e)))
}

fn memory_text(shared: bool) -> &'static str {
    if shared { "a view of other memory" } else { "own memory" }
}

fn list_text(items: &[Expr]) -> String {
    format!("`({})`", commas(items.iter().map(brief)))
}

fn differ_whole(a: &Expr, b: &Expr) -> Result<(), Box<Difference>> {
    let (x, y) = (brief(a), brief(b));
    if x == y && a.dtype() != b.dtype() {
        differ(format!("`{x}` of {}", a.dtype()), format!("`{y}` of {}", b.dtype()))
    } else {
        differ(quoted(&x), quoted(&y))
    }
}

fn regions_text(r: &Option<Vec<Region>>) -> String {
    match r {
        None => "not declared".to_owned(),
        Some(r) => format!("{} regions", r.len()),
    }
}

/// The statements of a sequence, or the one statement.
fn sequence(s: &Stmt) -> &[Stmt] {
    match s.kind() {
        StmtKind::Seq(stmts) => stmts,
        _ => std::slice::from_ref(s),
    }
}

fn for_kind(k: &ForKind) -> &str {
    match k {
        ForKind::Serial => "serial",
        ForKind::Parallel => "parallel",
        ForKind::Vectorized => "vectorized",
        ForKind::Unrolled => "unrolled",
        ForKind::ThreadBinding(axis) => axis,
    }
}
