//! Branches, loops and casts of graph functions.
//!
//! Branches are written as in Relax: both bind the same name last, which is known after them. A loop
//! is a call of `R.loop` with a function that is written inside of the graph function, as Relax writes
//! such functions: it sees what is around it.

use std::sync::Arc;

use tilewright_ir::{Branches, Loop};

use super::*;

impl GraphParser<'_> {
    /// Reads a body, apart from what is around it; `read` gives its result.
    fn body(&mut self, read: impl FnOnce(&mut Self) -> Result<GraphExpr>) -> Result<Body> {
        let blocks = std::mem::take(&mut self.blocks);
        let ended = std::mem::replace(&mut self.ended, true);
        self.x.env.push();
        let ret = read(self);
        self.x.env.pop();
        self.ended = ended;
        let blocks = std::mem::replace(&mut self.blocks, blocks);
        Ok(Body { blocks, ret: ret? })
    }

    /// `if cond:` with the same name bound at the end of both branches.
    pub(super) fn branches(&mut self, i: &ast::StmtIf, span: Span) -> Result<()> {
        let at = self.x.span(&*i.test);
        let cond = self.value(&i.test)?;
        let otherwise = match i.elif_else_clauses.as_slice() {
            [one] if one.test.is_none() => &one.body,
            [] => {
                return Err(Error::syntax("a condition needs an `else`")
                    .at(at)
                    .help("bind the same name at the end of both branches"));
            }
            [first, ..] => {
                return Err(Error::syntax("`elif` is not supported")
                    .at(first.test.as_ref().map_or(at, |t| self.x.span(t)))
                    .help("write an `if` inside of the `else`"));
            }
        };
        let (then, name, first) = self.branch(&i.body, at)?;
        let (otherwise, other, second) = self.branch(otherwise, at)?;
        if name != other {
            return Err(Error::syntax(format!(
                "the branches end with different names: `{name}` and `{other}`"
            ))
            .at(at)
            .help("bind the same name at the end of both branches"));
        }
        let ty = common(&name, &first, &second);
        let value = GraphExpr::If(Arc::new(Branches { cond, then, otherwise }));
        self.bind(&name, ty, value, span)
    }

    /// A branch, the name that it binds last, and the type of that.
    fn branch(&mut self, body: &[ast::Stmt], at: Span) -> Result<(Body, String, GraphType)> {
        let mut bound = None;
        let body = self.body(|p| {
            if p.statements(body)?.is_some() {
                return Err(Error::syntax("`return` belongs after the branches").at(at));
            }
            let last = match p.blocks.last_mut() {
                Some(block) if !block.dataflow && !p.ended => block.bindings.pop(),
                _ => None,
            };
            let Some(last) = last else {
                return Err(Error::syntax("a branch ends with a binding")
                    .at(at)
                    .help("bind the same name at the end of both branches"));
            };
            if p.blocks.last().is_some_and(|b| b.bindings.is_empty()) {
                p.blocks.pop();
            }
            bound = Some((last.var.name().to_string(), last.var.ty().clone()));
            Ok(last.value)
        })?;
        let (name, ty) = bound.ok_or_else(|| Error::internal("a branch without a result"))?;
        Ok((body, name, ty))
    }

    /// A function inside of this one.
    pub(super) fn local(&mut self, f: &ast::StmtFunctionDef) -> Result<()> {
        let at = self.x.span(&f.name);
        let mut params = Vec::new();
        let body = self.body(|this| {
            params = this.parameters(&FuncHead::default(), f)?;
            let ret = this.statements(&f.body)?;
            ret.ok_or_else(|| Error::syntax("the body of a loop returns a tuple").at(at))
        })?;
        self.x.env.insert(f.name.as_str(), Item::Local(self.locals.len()));
        self.locals.push(Some(Local { params, body }));
        Ok(())
    }

    /// `R.loop(body, trip, cond, (a, b))`; `None` for no limit or no condition.
    pub(super) fn graph_loop(&mut self, c: &ast::ExprCall) -> Result<GraphExpr> {
        let args = Args::bind(c, "R.loop", &["body", "trip", "cond", "carried"])?;
        let at = args.need("body")?;
        let local = match at {
            ast::Expr::Name(n) => match self.x.env.get(&n.id) {
                Some(Item::Local(k)) => Some(*k),
                _ => None,
            },
            _ => None,
        };
        let Some(k) = local else {
            return Err(self
                .x
                .error(at, "expected a function that is written inside of this one")
                .help("write the body before: @R.function, def body(i, x): ..., return (go, x)"));
        };
        let Some(Local { params, body }) = self.locals.get_mut(k).and_then(Option::take) else {
            return Err(self.x.error(at, "this function is the body of another loop"));
        };
        let mut optional = |name: &str| match args.get(name) {
            None | Some(ast::Expr::NoneLiteral(_)) => Ok(None),
            Some(e) => self.value(e).map(Some),
        };
        let (trip, cond) = (optional("trip")?, optional("cond")?);
        let carried = match args.get("carried") {
            None => Vec::new(),
            Some(e) => match self.value(e)? {
                GraphExpr::Tuple(items) => items,
                one => vec![one],
            },
        };
        Ok(GraphExpr::Loop(Arc::new(Loop { trip, cond, carried, params, body })))
    }

    /// `R.match_cast(x, R.Tensor((n, 4), "float32"))`: the value, and the type that it is to have.
    /// `why=` says why it must have it.
    pub(super) fn match_cast(&mut self, e: &ast::Expr) -> Result<Option<(GraphExpr, GraphType)>> {
        let ast::Expr::Call(c) = e else { return Ok(None) };
        match self.x.path(&c.func) {
            Some((Space::R, name)) if name == "match_cast" => {}
            _ => return Ok(None),
        }
        let args = Args::bind(c, "R.match_cast", &["value", "struct_info", WHY])?;
        let value = self.value(args.need("value")?)?;
        let ty = args.need("struct_info")?;
        self.dimensions(ty, &tilewright_ir::hash::HashMap::default())?;
        let mut attrs = Attrs::new();
        if let Some(why) = args.get(WHY) {
            attrs.insert(WHY.into(), Attr::Str(string(why)?.into()));
        }
        let cast = GraphExpr::Call { op: MATCH_CAST.into(), args: vec![value], attrs };
        Ok(Some((cast, self.graph_type(ty)?)))
    }
}

/// The type of what two branches bind: sizes in which they differ are new ones.
fn common(name: &str, a: &GraphType, b: &GraphType) -> GraphType {
    match (a, b) {
        (GraphType::Tensor(x), GraphType::Tensor(y))
            if x.dtype == y.dtype && x.shape.len() == y.shape.len() =>
        {
            let shape = x
                .shape
                .iter()
                .zip(&y.shape)
                .enumerate()
                .map(|axis| common_extent(axis, name))
                .collect();
            GraphType::Tensor(TensorType { shape, dtype: x.dtype })
        }
        (GraphType::Tuple(x), GraphType::Tuple(y)) if x.len() == y.len() => GraphType::Tuple(
            x.iter()
                .zip(y)
                .enumerate()
                .map(|(k, (x, y))| common(&format!("{name}_{k}"), x, y))
                .collect(),
        ),
        _ => a.clone(),
    }
}

fn common_extent((k, (x, y)): (usize, (&Expr, &Expr)), name: &str) -> Expr {
    if x.to_string() == y.to_string() {
        x.clone()
    } else {
        Var::new(format!("{name}_{k}"), DType::I64).expr()
    }
}
