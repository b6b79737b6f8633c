//! Blocks, and what their suites say about them.

use super::*;

/// The kinds of the axes of blocks, by their names and in short.
const AXES: [(IterKind, &str, &str); 3] = [
    (IterKind::Spatial, "spatial", "S"),
    (IterKind::Reduce, "reduce", "R"),
    (IterKind::Opaque, "opaque", "O"),
];

/// The name of a kind, in full and in short.
pub(crate) fn axis_names(kind: IterKind) -> (&'static str, &'static str) {
    AXES.iter().find(|(k, ..)| *k == kind).map_or(("", ""), |(_, long, short)| (long, short))
}

/// The kind of a name, in full or in short.
pub(super) fn axis_kind(name: &str) -> Option<IterKind> {
    AXES.iter().find(|(_, long, short)| name == *long || name == *short).map(|(kind, ..)| *kind)
}

impl TensorParser<'_> {
    /// What a block says about itself.
    pub(super) fn block_clause(
        &mut self,
        name: &str,
        c: &ast::ExprCall,
        level: Level,
    ) -> Result<()> {
        let what = format!("T.{name}");
        let span = self.x.span(c);
        if level != Level::Block {
            return Err(Error::syntax(format!("`{what}` belongs directly in a block"))
                .at(span)
                .help("write it as a statement of `with T.block(...):`"));
        }
        match name {
            "where" => {
                let args = Args::bind(c, what.as_str(), &["predicate"])?;
                let cond = self.x.condition(args.need("predicate")?)?;
                match self.frame(span)?.predicate.replace(cond) {
                    None => Ok(()),
                    Some(_) => stands_twice(span, &what),
                }
            }
            "reads" | "writes" => {
                let args = Args::bind_variadic(c, what.as_str(), &[])?;
                let mut regions = Vec::new();
                for e in args.rest.into_iter().flat_map(elements) {
                    regions.push(self.region(e)?);
                }
                let block = &mut self.frame(span)?.block;
                let slot = if name == "reads" { &mut block.reads } else { &mut block.writes };
                match slot.replace(regions) {
                    None => Ok(()),
                    Some(_) => stands_twice(span, &what),
                }
            }
            _ => {
                // Loose code writes `T.block_attr("key", value)`.
                let args = Args::bind(c, what.as_str(), &["attrs", "value"])?;
                let (first, second) = (args.need("attrs")?, args.get("value"));
                let attrs = match second {
                    Some(v) => Attrs::from([(string(first)?.into(), self.x.attr(v)?)]),
                    None => self.x.attrs(first)?,
                };
                self.frame(span)?.block.annotations.extend(attrs);
                Ok(())
            }
        }
    }

    pub(super) fn frame(&mut self, at: Span) -> Result<&mut Frame> {
        self.blocks
            .last_mut()
            .ok_or_else(|| Error::internal("a block clause without a block").at(at))
    }

    /// `A[i, 0:4]`, or `A` for all of it.
    pub(super) fn region(&mut self, e: &ast::Expr) -> Result<Region> {
        if let ast::Expr::Subscript(s) = e {
            let buffer = self.x.buffer(&s.value)?;
            let ranges = self.x.indices(&buffer, s)?.into_iter().zip(elements(&s.slice));
            let ranges = ranges
                .map(|(index, at)| match index {
                    Index::Point(e) => Ok(Range::point(e)),
                    Index::Slice(range, 1) => Ok(range),
                    Index::Slice(..) => Err(self.x.unsupported(at, "regions have no steps")),
                })
                .collect::<Result<_>>()?;
            return Ok(Region { buffer, ranges });
        }
        let buffer = self.x.buffer(e)?;
        Ok(Region::whole(&buffer))
    }

    /// `vi = T.axis.spatial(16, i)`
    pub(super) fn axis(
        &mut self,
        name: &str,
        kind: IterKind,
        c: &ast::ExprCall,
        level: Level,
    ) -> Result<()> {
        let args = Args::bind(c, "T.axis.spatial", &["dom", "binding", "dtype"])?;
        let span = self.x.span(c);
        self.in_block(level, span)?;
        let dom = args.need("dom")?;
        let binding = self.x.value(args.need("binding")?)?;
        let (domain, binding) = match dom {
            ast::Expr::Tuple(t) => match t.elts.as_slice() {
                [min, end] => {
                    let (min, end) = (self.x.value(min)?, self.x.value(end)?);
                    let range = self.x.range(min, end).map_err(|err| err.at(self.x.span(dom)))?;
                    let dtype = range.min.dtype();
                    (range, binding.convert(dtype, self.x.int))
                }
                _ => return Err(self.x.error(dom, "expected an extent or `(begin, end)`")),
            },
            _ => {
                let extent = self.x.value(dom)?;
                let (extent, binding) = match (extent, binding) {
                    (TextValue::Typed(e), b) => {
                        let dtype = e.dtype();
                        (e, b.convert(dtype, self.x.int))
                    }
                    (e, b) => {
                        let (e, b) = unify(e, b, self.x.int).map_err(|err| err.at(span))?;
                        (e, Ok(b))
                    }
                };
                if !extent.dtype().is_int() {
                    let message = format!("expected an integer, found {}", extent.dtype());
                    return Err(self.x.error(dom, message));
                }
                (Range::upto(extent), binding)
            }
        };
        let binding = binding.map_err(|err| err.at(span))?;
        if let Some(e) = args.get("dtype")
            && self.x.dtype(e)? != domain.min.dtype()
        {
            return Err(self.x.error(e, format!("the type of the axis is {}", domain.min.dtype())));
        }
        self.add_axis(name, kind, domain, binding, span)
    }

    /// `vi, vj = T.axis.remap("SR", [i, j])`: the domains are those of the loops.
    pub(super) fn remap(
        &mut self,
        targets: &[ast::Expr],
        c: &ast::ExprCall,
        level: Level,
    ) -> Result<()> {
        let span = self.x.span(c);
        let args = Args::bind(c, "T.axis.remap", &["kinds", "bindings", "dtype"])?;
        self.in_block(level, span)?;
        let at = args.need("kinds")?;
        let kinds = string(at)?;
        let bindings = elements(args.need("bindings")?);
        if kinds.chars().count() != targets.len() || bindings.len() != targets.len() {
            let message = format!(
                "expected {} kinds and bindings, found {} and {}",
                targets.len(),
                kinds.chars().count(),
                bindings.len()
            );
            return Err(Error::syntax(message).at(span));
        }
        for ((target, kind), binding) in targets.iter().zip(kinds.chars()).zip(bindings) {
            let ast::Expr::Name(n) = target else {
                return Err(self.x.error(target, "expected a name"));
            };
            let kind = axis_kind(&kind.to_string()).ok_or_else(|| {
                let error = self.x.error(at, format!("unknown kind `{kind}` of a block axis"));
                error.help("S is spatial, R is reduce, O is opaque")
            })?;
            let value = self.x.integer(binding)?;
            let range = value.as_var().and_then(|v| self.loops.get(v)).cloned();
            let range = range.ok_or_else(|| {
                self.x
                    .error(binding, "expected the variable of a loop")
                    .help("write `T.axis.spatial(extent, value)` for another value")
            })?;
            self.add_axis(&n.id, kind, range, value, span)?;
        }
        Ok(())
    }

    pub(super) fn in_block(&self, level: Level, at: Span) -> Result<()> {
        match level {
            Level::Block => Ok(()),
            _ => Err(Error::syntax("a block axis belongs directly in a block").at(at)),
        }
    }

    pub(super) fn add_axis(
        &mut self,
        name: &str,
        kind: IterKind,
        domain: Range,
        binding: Expr,
        at: Span,
    ) -> Result<()> {
        let var = self.x.env.define(name, domain.min.dtype());
        let frame = self.frame(at)?;
        frame.block.iters.push(IterVar { var, domain, kind });
        frame.bindings.push(binding);
        Ok(())
    }

    pub(super) fn block(
        &mut self,
        c: &ast::ExprCall,
        body: &[ast::Stmt],
        span: Span,
    ) -> Result<Stmt> {
        let args = Args::bind(c, "T.block", &["name_hint", "no_realize"])?;
        let name = match args.get("name_hint") {
            Some(e @ (ast::Expr::List(_) | ast::Expr::Tuple(_))) => {
                return Err(self
                    .x
                    .unsupported(e, "blocks with extents in the header are not supported")
                    .help("write `vi = T.axis.spatial(16, i)` in the block"));
            }
            Some(e) => string(e)?,
            None => "",
        };
        let name = if name.is_empty() { "block" } else { name };
        if let Some(e) = args.get("no_realize")
            && !matches!(e, ast::Expr::BooleanLiteral(b) if !b.value)
        {
            return Err(self.x.unsupported(e, "blocks without bindings are not supported"));
        }
        let block = Block::new(name, Stmt::nop());
        self.blocks.push(Frame { block, bindings: Vec::new(), predicate: None });
        let result = self.suite(body, Level::Block);
        let frame = self.blocks.pop().ok_or_else(|| Error::internal("a block that is not open"))?;
        let mut body = sequence(result?);
        let mut views = Vec::new();
        while let StmtKind::Declare { buffer, body: rest } = body.kind()
            && frame.names_outside(buffer)
        {
            views.push(buffer.clone());
            body = rest.clone();
        }
        let block = Block { body, ..frame.block };
        let kind = StmtKind::Block {
            bindings: frame.bindings,
            predicate: frame.predicate.unwrap_or_else(|| Expr::bool(true)),
            block: Arc::new(block),
        };
        let block = Stmt::spanned(kind, Some(span));
        Ok(views.into_iter().rfold(block, |body, buffer| {
            Stmt::spanned(StmtKind::Declare { buffer, body }, Some(span))
        }))
    }
}

fn stands_twice(span: Span, what: &str) -> Result<()> {
    Err(Error::syntax(format!("`{what}` stands twice in this block")).at(span))
}
