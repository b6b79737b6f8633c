//! Equality of tensor functions, statements and expressions.

use super::*;

impl Matcher<'_> {
    pub(super) fn tensor_func(&mut self, a: &TensorFunc, b: &TensorFunc) -> Check {
        let check = self.tensor_func_parts(a, b);
        check.map_err(|d| spanned(d, a.span, b.span))
    }

    fn tensor_func_parts(&mut self, a: &TensorFunc, b: &TensorFunc) -> Check {
        agree("parameters", &a.params.len(), &b.params.len(), |n| n.to_string())?;
        // Scalars first: shapes of tensors may name a scalar that comes after them.
        for (i, (x, y)) in a.params.iter().zip(&b.params).enumerate() {
            match (x, y) {
                (Param::Scalar(x), Param::Scalar(y)) => self.var_def(x, y),
                (Param::Buffer { .. }, Param::Buffer { .. }) => Ok(()),
                (Param::Scalar(_), _) => differ("a scalar", "a tensor"),
                (Param::Buffer { .. }, _) => differ("a tensor", "a scalar"),
            }
            .map_err(|d| within(d, format!("parameter {i}")))?;
        }
        let before = std::mem::replace(&mut self.pairing, true);
        let shapes = a.params.iter().zip(&b.params).enumerate().try_for_each(|(i, pair)| {
            let (Param::Buffer { handle: h, buffer: x }, Param::Buffer { handle: k, buffer: y }) =
                pair
            else {
                return Ok(());
            };
            self.var_def(h, k)?;
            self.buffer_def(x, y).map_err(|d| within(d, format!("parameter {i}")))
        });
        self.pairing = before;
        shapes?;
        self.func_attrs(&a.attrs, &b.attrs, a.private, b.private)?;
        agree("result", &a.ret, &b.ret, |t| t.map_or("none".into(), |t| t.to_string()))?;
        self.stmt(&a.body, &b.body)
    }

    pub(super) fn var_def(&mut self, a: &Var, b: &Var) -> Check {
        if a.dtype() != b.dtype() {
            let text = |v: &Var| format!("`{}` of {}", v.name(), v.dtype());
            return differ(text(a), text(b));
        }
        if a.range() != b.range() {
            let text = |v: &Var| format!("the size `{}` in {}", v.name(), v.range());
            return differ(text(a), text(b));
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
        match ok {
            true => Ok(()),
            false if a.name() == b.name() && a.dtype() == b.dtype() => {
                differ(text(a), format!("another variable `{}`", b.name()))
            }
            false => differ(text(a), text(b)),
        }
    }

    fn buffer_def(&mut self, a: &Buffer, b: &Buffer) -> Check {
        self.buffer_parts(a, b).map_err(|d| within(d, format!("buffer `{}`", a.name)))?;
        if self.buffers.define(a, b) {
            self.same.clear();
        }
        Ok(())
    }

    fn buffer_parts(&mut self, a: &Buffer, b: &Buffer) -> Check {
        agree("type", &a.dtype(), &b.dtype(), |t| t.to_string())?;
        self.expr_list("shape", &a.shape, &b.shape)?;
        self.expr_list("strides", &a.strides, &b.strides)?;
        let offset = |x: &Buffer| x.elem_offset.clone().filter(|e| e.as_int() != Some(0));
        match (offset(a), offset(b)) {
            (Some(x), Some(y)) => self.expr(&x, &y),
            (None, None) => Ok(()),
            (x, y) => {
                let text = |e: Option<Expr>| quoted(&e.map_or("0".into(), |e| brief(&e)));
                differ(text(x), text(y))
            }
        }
        .map_err(|d| within(d, "offset"))?;
        agree("scope", &a.scope, &b.scope, |s| quoted(s))?;
        agree("axis separators", &a.axis_separators, &b.axis_separators, |s| format!("{s:?}"))?;
        agree("alignment", &a.align, &b.align, |n| n.to_string())?;
        agree("offset factor", &a.offset_factor, &b.offset_factor, |n| n.to_string())?;
        // Two views of one memory on one side are two views of one memory on the other.
        match self.vars.paired(&a.data, &b.data) {
            Some(true) => Ok(()),
            None => self.var_def(&a.data, &b.data),
            Some(false) => {
                let text = |shared| if shared { "a view of other memory" } else { "own memory" };
                let (x, y) = (&a.data, &b.data);
                let (x, y) = (self.vars.forth.contains_key(x), self.vars.back.contains_key(y));
                match x == y {
                    true => differ("a view of one memory", "a view of another"),
                    false => differ(text(x), text(y)),
                }
            }
        }
        .map_err(|d| within(d, "memory"))
    }

    pub(super) fn buffer(&mut self, a: &Buffer, b: &Buffer) -> Check {
        let text = |x: &Buffer| format!("buffer `{}`", x.name);
        match self.buffers.paired(a, b) {
            Some(true) => Ok(()),
            None if a == b => {
                self.buffers.define(a, b);
                Ok(())
            }
            None if self.pairing => self.buffer_def(a, b),
            _ if a.name == b.name => differ(text(a), format!("another buffer `{}`", b.name)),
            _ => differ(text(a), text(b)),
        }
    }

    pub(super) fn expr_list(&mut self, what: &str, a: &[Expr], b: &[Expr]) -> Check {
        let text = |items: &[Expr]| {
            let items: Vec<String> = items.iter().map(brief).collect();
            format!("`({})`", items.join(", "))
        };
        if a.len() != b.len() {
            return differ(text(a), text(b)).map_err(|d| within(d, what));
        }
        a.iter().zip(b).try_for_each(|(x, y)| self.expr(x, y)).map_err(|d| within(d, what))
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
        let whole = || {
            let (x, y) = (brief(a), brief(b));
            match x == y && a.dtype() != b.dtype() {
                true => {
                    differ(format!("`{x}` of {}", a.dtype()), format!("`{y}` of {}", b.dtype()))
                }
                false => differ(quoted(&x), quoted(&y)),
            }
        };
        if a.dtype() != b.dtype() {
            return match (a.kind(), b.kind()) {
                (ExprKind::Var(x), ExprKind::Var(y)) => self.var(x, y),
                _ => whole(),
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
            (ExprKind::Binary(o, x1, x2), ExprKind::Binary(p, y1, y2)) if o == p => {
                self.expr(x1, y1)?;
                self.expr(x2, y2)
            }
            (ExprKind::Ramp(x1, x2), ExprKind::Ramp(y1, y2)) => {
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
                i.iter().zip(j).try_for_each(|(i, j)| self.expr(i, j))
            }
            (ExprKind::Call(f, x), ExprKind::Call(g, y)) if f == g && x.len() == y.len() => {
                x.iter().zip(y).try_for_each(|(x, y)| self.expr(x, y))
            }
            (ExprKind::Let(v, x, s), ExprKind::Let(w, y, t)) => {
                self.expr(x, y)?;
                self.var_def(v, w)?;
                self.expr(s, t)
            }
            _ => whole(),
        }
    }

    fn range(&mut self, a: &Range, b: &Range) -> Check {
        self.expr(&a.min, &b.min).map_err(|d| within(d, "first value"))?;
        self.expr(&a.extent, &b.extent).map_err(|d| within(d, "extent"))
    }

    fn region(&mut self, a: &Region, b: &Region) -> Check {
        self.buffer(&a.buffer, &b.buffer)?;
        agree("axes", &a.ranges.len(), &b.ranges.len(), |n| n.to_string())?;
        let check = a.ranges.iter().zip(&b.ranges).try_for_each(|(x, y)| self.range(x, y));
        check.map_err(|d| within(d, format!("region of `{}`", a.buffer.name)))
    }

    fn regions(&mut self, what: &str, a: &Option<Vec<Region>>, b: &Option<Vec<Region>>) -> Check {
        let text = |r: &Option<Vec<Region>>| match r {
            None => "not declared".to_owned(),
            Some(r) => format!("{} regions", r.len()),
        };
        let check = match (a, b) {
            _ if self.options.regions == Regions::Ignore => Ok(()),
            (Some(x), Some(y)) if x.len() == y.len() => {
                x.iter().zip(y).try_for_each(|(x, y)| self.region(x, y))
            }
            (None, None) => Ok(()),
            (Some(_), Some(_)) => differ(text(a), text(b)),
            _ if self.options.regions == Regions::WhereBoth => Ok(()),
            _ => differ(text(a), text(b)),
        };
        check.map_err(|d| within(d, what))
    }

    pub(super) fn stmt(&mut self, a: &Stmt, b: &Stmt) -> Check {
        let check = match (a.kind(), b.kind()) {
            (StmtKind::Seq(_), _) | (_, StmtKind::Seq(_)) => {
                let (x, y) = (sequence(a), sequence(b));
                x.iter().zip(y).try_for_each(|(x, y)| self.stmt(x, y)).and_then(|()| {
                    let text = |s: Option<&Stmt>| s.map_or("nothing more".into(), describe);
                    let n = x.len().min(y.len());
                    match x.len() == y.len() {
                        true => Ok(()),
                        false => differ(text(x.get(n)), text(y.get(n))),
                    }
                })
            }
            _ => self.stmt_parts(a, b),
        };
        check.map_err(|d| spanned(d, a.span(), b.span()))
    }

    fn stmt_parts(&mut self, a: &Stmt, b: &Stmt) -> Check {
        match (a.kind(), b.kind()) {
            (
                StmtKind::Store { buffer: p, indices: i, value: x },
                StmtKind::Store { buffer: q, indices: j, value: y },
            ) => {
                let place = format!("store to `{}`", p.name);
                self.buffer(p, q)
                    .and_then(|()| self.expr_list("indices", i, j))
                    .and_then(|()| self.expr(x, y).map_err(|d| within(d, "value")))
                    .map_err(|d| within(d, place))
            }
            (
                StmtKind::For { var: v, range: r, kind: k, annotations: m, body: x },
                StmtKind::For { var: w, range: s, kind: l, annotations: n, body: y },
            ) => {
                let place = |d| within(d, format!("loop `{}`", v.name()));
                self.range(r, s).map_err(place)?;
                agree("kind", k, l, |k| for_kind(k).to_owned()).map_err(place)?;
                self.attrs(m, n, "annotation", "").map_err(place)?;
                self.var_def(v, w).map_err(place)?;
                self.stmt(x, y).map_err(place)
            }
            (
                StmtKind::If { cond: c, then: x, otherwise: p },
                StmtKind::If { cond: d, then: y, otherwise: q },
            ) => {
                self.expr(c, d).map_err(|d| within(d, "condition"))?;
                self.stmt(x, y).map_err(|d| within(d, "true branch"))?;
                match (p, q) {
                    (Some(p), Some(q)) => self.stmt(p, q),
                    (None, None) => Ok(()),
                    (Some(p), None) => differ(describe(p), "nothing"),
                    (None, Some(q)) => differ("nothing", describe(q)),
                }
                .map_err(|d| within(d, "false branch"))
            }
            (
                StmtKind::Let { var: v, value: x, body: s },
                StmtKind::Let { var: w, value: y, body: t },
            ) => {
                let place = |d| within(d, format!("value of `{}`", v.name()));
                self.expr(x, y).map_err(place)?;
                self.var_def(v, w).map_err(place)?;
                self.stmt(s, t)
            }
            (
                StmtKind::Allocate { buffer: p, annotations: m, body: x },
                StmtKind::Allocate { buffer: q, annotations: n, body: y },
            ) => {
                let place = |d| within(d, format!("allocation of `{}`", p.name));
                self.buffer_def(p, q)?;
                self.attrs(m, n, "annotation", "").map_err(place)?;
                self.stmt(x, y)
            }
            (
                StmtKind::Constant { buffer: p, value: v, body: x },
                StmtKind::Constant { buffer: q, value: w, body: y },
            ) => {
                self.buffer_def(p, q)?;
                graph::tensors(v, w).map_err(|d| within(d, format!("buffer `{}`", p.name)))?;
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
                let place = |d| within(d, format!("block `{}`", x.name));
                self.expr_list("bindings", i, j).map_err(place)?;
                self.expr(p, q).map_err(|d| within(d, "predicate")).map_err(place)?;
                self.block(x, y).map_err(place)
            }
            (StmtKind::Assume(x), StmtKind::Assume(y)) => {
                self.expr(x, y).map_err(|d| within(d, "assumption"))
            }
            (
                StmtKind::Assert { cond: x, message: m, values: v },
                StmtKind::Assert { cond: y, message: n, values: w },
            ) => {
                self.expr(x, y).map_err(|d| within(d, "assertion"))?;
                self.expr_list("values", v, w).map_err(|d| within(d, "assertion"))?;
                agree("message", m, n, |m| format!("{m:?}"))
            }
            (StmtKind::Evaluate(x), StmtKind::Evaluate(y)) => {
                self.expr(x, y).map_err(|d| within(d, "evaluated expression"))
            }
            _ => differ(describe(a), describe(b)),
        }
    }

    fn block(&mut self, a: &Block, b: &Block) -> Check {
        if self.options.block_names {
            agree("name", &a.name, &b.name, |n| quoted(n))?;
        }
        agree("iteration variables", &a.iters.len(), &b.iters.len(), |n| n.to_string())?;
        for (x, y) in a.iters.iter().zip(&b.iters) {
            let place = |d| within(d, format!("iteration variable `{}`", x.var.name()));
            self.range(&x.domain, &y.domain).map_err(place)?;
            agree("kind", &x.kind, &y.kind, |k| format!("{k:?}").to_lowercase()).map_err(place)?;
            self.var_def(&x.var, &y.var).map_err(place)?;
        }
        agree("allocations", &a.allocs.len(), &b.allocs.len(), |n| n.to_string())?;
        a.allocs.iter().zip(&b.allocs).try_for_each(|(x, y)| self.buffer_def(x, y))?;
        agree("views", &a.matches.len(), &b.matches.len(), |n| n.to_string())?;
        for (x, y) in a.matches.iter().zip(&b.matches) {
            self.region(&x.source, &y.source)?;
            // Strides and offset of a view may be variables that the view defines.
            let before = std::mem::replace(&mut self.pairing, true);
            let check = self.buffer_def(&x.buffer, &y.buffer);
            self.pairing = before;
            check?;
        }
        self.regions("reads", &a.reads, &b.reads)?;
        self.regions("writes", &a.writes, &b.writes)?;
        self.attrs(&a.annotations, &b.annotations, "annotation", "")?;
        match (&a.init, &b.init) {
            (Some(x), Some(y)) => self.stmt(x, y),
            (None, None) => Ok(()),
            (Some(x), None) => differ(describe(x), "nothing"),
            (None, Some(y)) => differ("nothing", describe(y)),
        }
        .map_err(|d| within(d, "initialisation"))?;
        self.stmt(&a.body, &b.body)
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
