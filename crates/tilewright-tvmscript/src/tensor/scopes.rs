//! Statements with suites: loops, conditions, `with`.

use super::*;

/// The kinds of loops by their names, beside those of threads.
pub(crate) const LOOPS: &[(&str, ForKind)] = &[
    ("serial", ForKind::Serial),
    ("parallel", ForKind::Parallel),
    ("vectorized", ForKind::Vectorized),
    ("unroll", ForKind::Unrolled),
];

impl TensorParser<'_> {
    /// `T.launch_thread("threadIdx.x", 128)`, without a body; it defines its variable.
    pub(super) fn launch_thread(
        &mut self,
        c: &ast::ExprCall,
        name: Option<&str>,
    ) -> Result<StmtKind> {
        let args = Args::bind(c, "T.launch_thread", &["thread", "extent"])?;
        let thread = args.need("thread")?;
        let extent = self.x.integer(args.need("extent")?)?;
        let (tag, own): (Arc<str>, String) = match thread {
            ast::Expr::Name(n) => match self.x.env.get(&n.id) {
                Some(Item::Thread(tag)) => (tag.clone(), n.id.to_string()),
                _ => return Err(self.x.error(thread, "expected a thread axis")),
            },
            _ => {
                let tag = string(thread)?;
                (tag.into(), tag.replace('.', "_"))
            }
        };
        let var = self.x.env.define(name.unwrap_or(&own), extent.dtype());
        let range = Range::upto(extent);
        self.loops.insert(var.clone(), range.clone());
        let (kind, annotations) = (ForKind::ThreadBinding(tag), Attrs::new());
        Ok(StmtKind::For { var, range, kind, annotations, body: Stmt::nop() })
    }

    pub(super) fn for_loop(&mut self, f: &ast::StmtFor) -> Result<Stmt> {
        let span = Span::new(self.x.span(f).start, self.x.span(&*f.iter).end);
        if f.is_async || !f.orelse.is_empty() {
            return Err(Error::syntax("a loop has no `async` and no `else`").at(span));
        }
        let targets = match &*f.target {
            ast::Expr::Tuple(t) => t.elts.as_slice(),
            other => std::slice::from_ref(other),
        };
        let ast::Expr::Call(c) = &*f.iter else { return Err(self.no_loop_kind(f)) };
        let Some((Space::T | Space::Bare, name)) = self.x.path(&c.func) else {
            return Err(self.no_loop_kind(f));
        };
        let (ranges, kind, annotations) = match name.as_str() {
            "grid" => {
                let args = Args::bind_variadic(c, "T.grid", &[])?;
                let mut ranges = Vec::new();
                for e in args.rest {
                    ranges.push(Range::upto(self.x.integer(e)?));
                }
                (ranges, ForKind::Serial, Attrs::new())
            }
            "range" => self.one_loop(&name, ForKind::Serial, c)?,
            "thread_binding" => self.one_loop(&name, ForKind::ThreadBinding("".into()), c)?,
            _ => match LOOPS.iter().find(|(n, _)| *n == name) {
                Some((_, kind)) => self.one_loop(&name, kind.clone(), c)?,
                None => return Err(self.no_loop_kind(f)),
            },
        };
        if ranges.len() != targets.len() {
            let message = format!("{} loop variables for {} extents", targets.len(), ranges.len());
            return Err(Error::syntax(message).at(span));
        }
        let mut vars = Vec::new();
        let body = self.scoped(|p| {
            for (target, range) in targets.iter().zip(&ranges) {
                let ast::Expr::Name(n) = target else {
                    return Err(p.x.error(target, "expected a name"));
                };
                p.deeper(span)?;
                let var = p.x.env.define(&n.id, range.min.dtype());
                p.loops.insert(var.clone(), range.clone());
                vars.push(var);
            }
            p.suite(&f.body, Level::Inner)
        });
        let mut stmt = sequence(body?);
        for (var, range) in vars.into_iter().zip(ranges).rev() {
            let (kind, annotations) = (kind.clone(), annotations.clone());
            let node = StmtKind::For { var, range, kind, annotations, body: stmt };
            stmt = Stmt::spanned(node, Some(span));
        }
        Ok(stmt)
    }

    fn no_loop_kind(&self, f: &ast::StmtFor) -> Error {
        self.x.error(&*f.iter, "expected a kind of loop").help(
            "write range, T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding or T.grid",
        )
    }

    /// The range, kind and annotations of a loop of one variable.
    pub(super) fn one_loop(
        &mut self,
        name: &str,
        kind: ForKind,
        c: &ast::ExprCall,
    ) -> Result<(Vec<Range>, ForKind, Attrs)> {
        let thread = matches!(kind, ForKind::ThreadBinding(_));
        let what = if name == "range" { "range".to_owned() } else { format!("T.{name}") };
        let names: &[&'static str] = if thread {
            &["start", "stop", "thread", "annotations"]
        } else if name == "range" {
            &["start", "stop", "step"]
        } else {
            &["start", "stop", "annotations", "step"]
        };
        let args = Args::bind(c, what, names)?;
        let start = args.need("start")?;
        let mut stop = args.get("stop");
        let mut tag = args.get("thread");
        // `T.thread_binding(128, "threadIdx.x")`
        if thread && tag.is_none() && stop.is_some_and(|e| e.is_string_literal_expr()) {
            tag = stop.take();
        }
        if names.contains(&"step")
            && let Some(e) = args.get("step")
            && self.x.constant(e)? != 1
        {
            return Err(self.x.unsupported(e, "loops have the step 1"));
        }
        let range = match stop {
            None => Range::upto(self.x.integer(start)?),
            Some(stop) => {
                let (a, b) = (self.x.value(start)?, self.x.value(stop)?);
                let at = Span::new(self.x.span(start).start, self.x.span(stop).end);
                self.x.range(a, b).map_err(|err| err.at(at))?
            }
        };
        if range.min.dtype().lanes != 1 {
            return Err(self.x.error(start, "the bounds of a loop are scalars"));
        }
        let annotations = match names.contains(&"annotations").then(|| args.get("annotations")) {
            Some(Some(e)) => self.x.attrs(e)?,
            _ => Attrs::new(),
        };
        let kind = match (thread, tag) {
            (true, Some(e)) => ForKind::ThreadBinding(string(e)?.into()),
            (true, None) => {
                let error = self.x.error(c, "`T.thread_binding` needs the argument `thread`");
                return Err(error.help("write T.thread_binding(extent, thread=\"threadIdx.x\")"));
            }
            (false, _) => kind,
        };
        Ok((vec![range], kind, annotations))
    }

    pub(super) fn branches(&mut self, i: &ast::StmtIf) -> Result<Stmt> {
        let span = Span::new(self.x.span(i).start, self.x.span(&*i.test).end);
        let mut parts: Vec<(Span, Expr, Stmt)> = Vec::new();
        self.deeper(span)?;
        let cond = self.x.condition(&i.test)?;
        parts.push((span, cond, sequence(self.suite(&i.body, Level::Inner)?)));
        let mut otherwise = None;
        for clause in &i.elif_else_clauses {
            let start = self.x.span(clause).start;
            match &clause.test {
                Some(test) => {
                    let span = Span::new(start, self.x.span(test).end);
                    self.deeper(span)?;
                    let cond = self.x.condition(test)?;
                    parts.push((span, cond, sequence(self.suite(&clause.body, Level::Inner)?)));
                }
                None => otherwise = Some(sequence(self.suite(&clause.body, Level::Inner)?)),
            }
        }
        for (span, cond, then) in parts.into_iter().rev() {
            let kind = StmtKind::If { cond, then, otherwise: otherwise.take() };
            otherwise = Some(Stmt::spanned(kind, Some(span)));
        }
        otherwise.ok_or_else(|| Error::internal("a condition without branches"))
    }

    pub(super) fn with(
        &mut self,
        w: &ast::StmtWith,
        level: Level,
        out: &mut Vec<Piece>,
    ) -> Result<()> {
        let end = w.items.last().map_or(self.x.span(w).end, |i| self.x.span(i).end);
        let span = Span::new(self.x.span(w).start, end);
        let stmts = self.scoped(|p| p.with_items(&w.items, &w.body, span, level))?;
        out.extend(stmts.into_iter().map(Piece::Stmt));
        Ok(())
    }

    /// The first of several items, around the rest.
    pub(super) fn with_items(
        &mut self,
        items: &[ast::WithItem],
        body: &[ast::Stmt],
        span: Span,
        level: Level,
    ) -> Result<Vec<Stmt>> {
        let Some((item, rest)) = items.split_first() else {
            return self.suite(body, Level::Inner);
        };
        let at = self.x.span(&item.context_expr);
        let ast::Expr::Call(c) = &item.context_expr else { return Err(no_scope(at)) };
        let Some((Space::T | Space::Bare, name)) = self.x.path(&c.func) else {
            return Err(no_scope(at));
        };
        if matches!(name.as_str(), "block" | "sblock") {
            if !rest.is_empty() {
                return Err(Error::syntax("a block is the last item of `with`").at(span));
            }
            self.deeper(span)?;
            return self.block(c, body, span).map(|s| vec![s]);
        }
        let bound = match item.optional_vars.as_deref() {
            None => None,
            Some(ast::Expr::Name(n)) => Some(n.id.as_str()),
            Some(e) => return Err(self.x.error(e, "expected a name")),
        };
        self.deeper(span)?;
        let binding = match name.as_str() {
            "init" => {
                if level != Level::Block || !rest.is_empty() {
                    return Err(Error::syntax("`T.init` belongs directly in a block").at(span));
                }
                Args::bind(c, "T.init", &[])?;
                let init = sequence(self.suite(body, Level::Inner)?);
                return match self.frame(span)?.block.init.replace(init) {
                    None => Ok(Vec::new()),
                    Some(_) => Err(Error::syntax("`T.init` stands twice in this block").at(span)),
                };
            }
            "launch_thread" => self.launch_thread(c, bound)?,
            "LetStmt" | "let" => {
                let (name, value) = if name == "let" {
                    let args = Args::bind(c, "T.let", &["var", "value"])?;
                    (args.need("var")?, args.need("value")?)
                } else {
                    let args = Args::bind(c, "T.LetStmt", &["value", "type_annotation", "var"])?;
                    let value = args.need("value")?;
                    (item.optional_vars.as_deref().or(args.get("var")).unwrap_or(value), value)
                };
                let ast::Expr::Name(n) = name else {
                    return Err(Error::syntax("expected `with T.LetStmt(value) as x`").at(span));
                };
                let value = self.x.expr(value)?;
                self.let_value(&n.id, value)
            }
            "allocate" | "allocate_const" | "alloc_local" | "alloc_shared" | "decl_buffer"
            | "alloc_buffer" => {
                let bound = bound.ok_or_else(|| {
                    Error::syntax(format!("expected `with T.{name}(...) as A`")).at(span)
                })?;
                self.memory(bound, &name, c)?
            }
            "Assert" => {
                let args = Args::bind(c, "T.Assert", &["condition", "message"])?;
                let cond = self.x.condition(args.need("condition")?)?;
                let message = string(args.need("message")?)?.into();
                let check = Stmt::spanned(
                    StmtKind::Assert { cond, message, values: Vec::new() },
                    Some(span),
                );
                let mut stmts = vec![check];
                stmts.extend(self.with_items(rest, body, span, Level::Inner)?);
                return Ok(stmts);
            }
            "attr" | "realize" | "While" => return Err(unsupported(&name).at(span)),
            _ => return Err(no_scope(at)),
        };
        let inner = sequence(self.with_items(rest, body, span, Level::Inner)?);
        Ok(vec![Stmt::spanned(binding, Some(span)).with_body(inner)])
    }
}

fn no_scope(at: Span) -> Error {
    Error::syntax("expected a block or another scope").at(at).help(
        "write T.block, T.init, T.launch_thread, T.LetStmt, T.allocate, T.decl_buffer or T.Assert",
    )
}
