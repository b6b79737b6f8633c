//! Graph functions: `@R.function`.
//!
//! A call of an operator keeps its tensors as arguments and everything else as attributes: named
//! arguments under their names, others under `_0`, `_1`, ... after their position.

use ruff_python_ast as ast;
use tilewright_ir::control::{MATCH_CAST, WHY};
use tilewright_ir::suggest::closest;
use tilewright_ir::{
    Attr, Attrs, Binding, BindingBlock, Body, DType, Error, Expr, GraphExpr, GraphFunc, GraphType,
    GraphVar, Result, Span, Tensor, TensorType, Var, graph,
};

mod control;

use crate::args::{Args, elements, parameters, string};
use crate::consts::ConstTable;
use crate::env::Item;
use crate::expr::{ExprParser, Space};
use crate::functions::{Entry, FuncHead, Functions};
use crate::tensor::{declared_types, define_dimensions};

/// Constants that a text names without spelling them out.
pub(crate) struct Constants<'a> {
    /// `R.const_ref`
    pub(crate) table: &'a ConstTable,
    /// `metadata["relax.expr.Constant"]`
    pub(crate) metadata: Option<&'a [Tensor]>,
}

struct GraphParser<'a> {
    x: &'a mut ExprParser,
    text: &'a str,
    functions: &'a Functions<'a>,
    constants: &'a Constants<'a>,
    attrs: Attrs,
    blocks: Vec<BindingBlock>,
    /// Whether the last block has ended, so that bindings start a new one.
    ended: bool,
    /// Functions inside of this one, until they are used.
    locals: Vec<Option<Local>>,
}

/// A function inside of a graph function.
struct Local {
    params: Vec<GraphVar>,
    body: Body,
}

/// Reads a function.
pub(crate) fn graph_func(
    x: &mut ExprParser,
    text: &str,
    functions: &Functions,
    constants: &Constants,
    entry: &Entry,
) -> Result<GraphFunc> {
    let int = std::mem::replace(&mut x.int, DType::I64);
    x.env.push();
    let (attrs, blocks, locals) = (Attrs::new(), Vec::new(), Vec::new());
    let mut parser =
        GraphParser { x, text, functions, constants, attrs, blocks, ended: true, locals };
    let result = parser.function(&entry.head, entry.def);
    x.env.pop();
    x.int = int;
    result
}

/// Names of types.
const TYPES: &[&str] = &["Tensor", "Tuple", "Shape", "Object", "Prim", "Callable", "Opaque"];

impl GraphParser<'_> {
    fn function(&mut self, head: &FuncHead, f: &ast::StmtFunctionDef) -> Result<GraphFunc> {
        self.x.find_ranges(&f.body);
        let params = self.parameters(head, f)?;
        let ret_ty = match f.returns.as_deref() {
            None | Some(ast::Expr::NoneLiteral(_)) => None,
            Some(e) => Some(self.graph_type(e)?),
        };
        let ret = self.statements(&f.body)?;
        Ok(GraphFunc {
            params,
            blocks: std::mem::take(&mut self.blocks),
            // Loose code leaves the result out.
            ret: ret.unwrap_or(GraphExpr::Tuple(Vec::new())),
            ret_ty,
            attrs: std::mem::take(&mut self.attrs),
            private: head.private,
            span: Some(self.x.span(&f.name)),
        })
    }

    /// Reads the parameters. Their types and that of the result may name sizes of each other.
    fn parameters(&mut self, head: &FuncHead, f: &ast::StmtFunctionDef) -> Result<Vec<GraphVar>> {
        let declared = declared_types(self.x, &f.body);
        let params = parameters(&f.parameters)?;
        let annotations = params.iter().filter_map(|p| p.annotation());
        for e in annotations.chain(f.returns.as_deref()) {
            self.dimensions(e, &declared)?;
        }
        let mut vars = Vec::new();
        for p in params {
            let ty = match p.annotation() {
                Some(e) => self.graph_type(e)?,
                None => GraphType::Opaque("R.Object".into()),
            };
            let var = GraphVar::new(head.real_name(&p.name), ty);
            self.x.env.insert(p.name.as_str(), Item::Graph(var.clone()));
            vars.push(var);
        }
        Ok(vars)
    }

    /// Statements up to `return`, and what is returned.
    fn statements(&mut self, body: &[ast::Stmt]) -> Result<Option<GraphExpr>> {
        let mut ret = None;
        for s in body {
            if ret.is_some() {
                return Err(self.x.error(s, "nothing may follow `return`"));
            }
            match s {
                ast::Stmt::Return(r) => {
                    ret = Some(match r.value.as_deref() {
                        None | Some(ast::Expr::NoneLiteral(_)) => GraphExpr::Tuple(Vec::new()),
                        Some(e) => self.value(e)?,
                    });
                }
                ast::Stmt::With(w) => self.region(w)?,
                _ => {
                    if self.ended {
                        self.open(false);
                    }
                    self.statement(s)?;
                    if self.blocks.last().is_some_and(|b| b.bindings.is_empty()) {
                        self.blocks.pop();
                        self.ended = true;
                    }
                }
            }
        }
        Ok(ret)
    }

    fn open(&mut self, dataflow: bool) {
        self.blocks.push(BindingBlock { dataflow, bindings: Vec::new(), outputs: Vec::new() });
        self.ended = false;
    }

    /// Defines the variables that strings in a type name.
    fn dimensions(
        &mut self,
        e: &ast::Expr,
        declared: &tilewright_ir::hash::HashMap<String, DType>,
    ) -> Result<()> {
        match e {
            ast::Expr::StringLiteral(_) => define_dimensions(self.x, e, declared, DType::I64),
            ast::Expr::Tuple(_) | ast::Expr::List(_) => {
                elements(e).iter().try_for_each(|e| self.dimensions(e, declared))
            }
            ast::Expr::Call(c) => {
                c.arguments.args.iter().try_for_each(|e| self.dimensions(e, declared))?;
                let shapes = c.arguments.keywords.iter().filter(|k| {
                    k.arg.as_ref().is_some_and(|a| matches!(a.as_str(), "shape" | "values"))
                });
                shapes.map(|k| &k.value).try_for_each(|e| self.dimensions(e, declared))
            }
            ast::Expr::Subscript(s) => match elements(&s.slice).first() {
                Some(e @ (ast::Expr::Tuple(_) | ast::Expr::List(_))) => {
                    self.dimensions(e, declared)
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// `with R.dataflow():`, or `with R.bindings():` for bindings outside of one.
    fn region(&mut self, w: &ast::StmtWith) -> Result<()> {
        let [item] = w.items.as_slice() else { return Err(self.no_dataflow(w)) };
        let dataflow = match &item.context_expr {
            ast::Expr::Call(c) => match self.x.path(&c.func) {
                Some((Space::R, n)) if n == "dataflow" => true,
                Some((Space::R, n)) if n == "bindings" => false,
                _ => return Err(self.no_dataflow(w)),
            },
            _ => return Err(self.no_dataflow(w)),
        };
        self.open(dataflow);
        w.body.iter().try_for_each(|s| self.statement(s))?;
        self.ended = true;
        Ok(())
    }

    fn no_dataflow(&self, w: &ast::StmtWith) -> Error {
        self.x.error(w, "expected `with R.dataflow():`")
    }

    fn statement(&mut self, s: &ast::Stmt) -> Result<()> {
        let span = self.x.span(s);
        match s {
            ast::Stmt::Pass(_) => Ok(()),
            ast::Stmt::Assign(a) => match a.targets.as_slice() {
                [ast::Expr::Name(n)] => self.assign(&n.id, None, &a.value, span),
                _ => Err(Error::syntax("expected one name on the left").at(span)),
            },
            ast::Stmt::AnnAssign(a) => match (&*a.target, &a.value) {
                (ast::Expr::Name(n), Some(v)) => self.assign(&n.id, Some(&a.annotation), v, span),
                (ast::Expr::Name(n), None) => {
                    Err(Error::syntax(format!("`{}` needs a value", n.id)).at(span))
                }
                _ => Err(Error::syntax("expected one name on the left").at(span)),
            },
            ast::Stmt::Expr(e) => match &*e.value {
                ast::Expr::StringLiteral(_) | ast::Expr::EllipsisLiteral(_) => Ok(()),
                ast::Expr::Call(c) => self.call_statement(c, &e.value, span),
                _ => Err(Error::syntax("expected a binding").at(span)),
            },
            ast::Stmt::If(i) => self.branches(i, span),
            ast::Stmt::FunctionDef(f) => self.local(f),
            ast::Stmt::Return(_) => {
                Err(Error::syntax("`return` belongs after the dataflow region").at(span))
            }
            _ => Err(Error::syntax("expected a statement of a graph function").at(span)),
        }
    }

    fn call_statement(&mut self, c: &ast::ExprCall, e: &ast::Expr, span: Span) -> Result<()> {
        match self.x.path(&c.func) {
            Some((Space::R, name)) if name == "func_attr" => {
                let args = Args::bind(c, "R.func_attr", &["attrs"])?;
                let attrs = self.x.func_attrs(args.need("attrs")?)?;
                self.attrs.extend(attrs);
                Ok(())
            }
            Some((Space::R, name)) if name == "output" => {
                let args = Args::bind_variadic(c, "R.output", &[])?;
                let mut outputs = Vec::new();
                for e in args.rest {
                    match self.value(e)? {
                        GraphExpr::Var(v) => outputs.push(v),
                        _ => return Err(self.x.error(e, "expected a variable")),
                    }
                }
                match self.blocks.last_mut() {
                    Some(b) => b.outputs.extend(outputs),
                    None => return Err(Error::internal("an output outside of a block")),
                }
                Ok(())
            }
            _ => {
                let value = self.value(e)?;
                let ty = value.ty();
                self.bind("_", ty, value, span)
            }
        }
    }

    fn bind(&mut self, name: &str, ty: GraphType, value: GraphExpr, span: Span) -> Result<()> {
        let var = GraphVar::new(name, ty);
        self.x.env.insert(name, Item::Graph(var.clone()));
        match self.blocks.last_mut() {
            Some(b) => b.bindings.push(Binding { var, value, span: Some(span) }),
            None => return Err(Error::internal("a binding outside of a block")),
        }
        Ok(())
    }

    fn assign(
        &mut self,
        name: &str,
        annotation: Option<&ast::Expr>,
        value: &ast::Expr,
        span: Span,
    ) -> Result<()> {
        match value {
            // `cls = Module`
            ast::Expr::Name(n) if matches!(self.x.env.get(&n.id), Some(Item::Module)) => {
                self.x.env.insert(name, Item::Module);
                return Ok(());
            }
            // `n = T.int64()`
            ast::Expr::Call(c) => {
                if let Some(dtype) = self.x.declared(c) {
                    self.x.declare_var(name, dtype);
                    return Ok(());
                }
            }
            _ => {}
        }
        if let Some((value, ty)) = self.match_cast(value)? {
            return self.bind(name, ty, value, span);
        }
        let value_expr = self.value(value)?;
        let ty = match annotation {
            Some(a) => self.graph_type(a)?,
            None => self.inferred(&value_expr),
        };
        self.bind(name, ty, value_expr, span)
    }

    /// The type of a value that the text does not say.
    fn inferred(&mut self, value: &GraphExpr) -> GraphType {
        if let GraphExpr::Call { op, .. } = value
            && let Some(name) = graph::callee(op)
            && let Some(entry) = self.functions.by_key(name)
            && let Some(e) = entry.def.returns.as_deref()
            && let Ok(ty) = self.graph_type(e)
            && is_constant(&ty)
        {
            return ty;
        }
        value.ty()
    }

    /// `R.Tensor((2, 3), dtype="float32")`, `R.Tuple(...)`, or a type that is kept as text.
    fn graph_type(&mut self, e: &ast::Expr) -> Result<GraphType> {
        let (callee, call) = match e {
            ast::Expr::Call(c) => (&*c.func, Some(c)),
            ast::Expr::Subscript(s) => (&*s.value, None),
            other => (other, None),
        };
        let name = match self.x.path(callee) {
            Some((Space::R, name)) => name,
            // Loose code writes `T.Tensor[14, "int32"]`.
            Some((Space::T, name)) if name == "Tensor" => name,
            _ => {
                let error = self.x.error(e, "expected the type of a tensor");
                return Err(error.help("write R.Tensor((2, 3), dtype=\"float32\")"));
            }
        };
        match (name.as_str(), call, e) {
            ("Tensor", Some(c), _) => {
                let args = Args::bind(c, "R.Tensor", &["shape", "dtype", "vdevice", "ndim"])?;
                if let Some(device) = args.get("vdevice") {
                    return Err(self.x.unsupported(device, "devices of tensors are not supported"));
                }
                match args.get("shape") {
                    Some(shape) if args.get("ndim").is_none() => {
                        let dtype = args.get("dtype").map(|e| self.x.dtype(e)).transpose()?;
                        let shape = self.x.extents(shape)?;
                        let dtype = dtype.unwrap_or(DType::F32);
                        Ok(GraphType::Tensor(TensorType { shape, dtype }))
                    }
                    _ => Ok(self.opaque(e)),
                }
            }
            ("Tensor", None, ast::Expr::Subscript(s)) => {
                let (shape, dtype) = self.x.subscripted_type(&s.slice)?;
                Ok(GraphType::Tensor(TensorType { shape, dtype }))
            }
            ("Tuple", Some(c), _) if c.arguments.keywords.is_empty() => {
                let parts: &[ast::Expr] = match &*c.arguments.args {
                    [list @ (ast::Expr::List(_) | ast::Expr::Tuple(_))] => elements(list),
                    parts => parts,
                };
                parts
                    .iter()
                    .map(|e| self.graph_type(e))
                    .collect::<Result<_>>()
                    .map(GraphType::Tuple)
            }
            ("Shape", Some(c), _) if has_values(c) => {
                let args = Args::bind(c, "R.Shape", &["values", "ndim"])?;
                self.x.extents(args.need("values")?).map(GraphType::Shape)
            }
            ("Opaque", Some(c), _) => {
                let args = Args::bind(c, "R.Opaque", &["text"])?;
                Ok(GraphType::Opaque(string(args.need("text")?)?.into()))
            }
            (name, ..) if TYPES.contains(&name) => Ok(self.opaque(e)),
            (name, ..) => {
                let error = self.x.error(e, format!("unknown type `R.{name}`"));
                Err(match closest(name, TYPES.iter().copied()) {
                    Some(near) => error.help(format!("did you mean `R.{near}`?")),
                    None => error,
                })
            }
        }
    }

    /// A type as its text, on one line.
    fn opaque(&self, e: &ast::Expr) -> GraphType {
        let span = self.x.span(e);
        let text = self.text.get(span.start as usize..span.end as usize).unwrap_or("");
        if text.contains(['\n', '\r']) {
            GraphType::Opaque(text.lines().map(str::trim).collect::<String>().into())
        } else {
            GraphType::Opaque(text.into())
        }
    }

    /// The name in the module of the function that an expression names.
    fn callee(&self, e: &ast::Expr) -> Option<(String, Span)> {
        match e {
            ast::Expr::Attribute(a) => match &*a.value {
                ast::Expr::Name(n) if matches!(self.x.env.get(&n.id), Some(Item::Module)) => {
                    Some((a.attr.to_string(), self.x.span(&a.attr)))
                }
                _ => None,
            },
            ast::Expr::Name(n) if self.x.env.get(&n.id).is_none() => {
                Some((n.id.to_string(), self.x.span(n)))
            }
            // The printer's form for a function that the module does not have.
            ast::Expr::StringLiteral(s) => {
                return Some((s.value.to_str().to_owned(), self.x.span(s)));
            }
            _ => None,
        }
        .map(|(name, span)| match self.functions.get(&name) {
            Some(entry) => (entry.key.to_string(), span),
            None => (name, span),
        })
    }

    fn value(&mut self, e: &ast::Expr) -> Result<GraphExpr> {
        match e {
            ast::Expr::Name(n) => match self.x.env.get(&n.id) {
                Some(Item::Graph(v)) => Ok(v.expr()),
                Some(Item::Var(v)) => {
                    let value = Attr::Expr(v.expr());
                    let attrs = Attrs::from([("_0".into(), value)]);
                    Ok(GraphExpr::Call { op: "R.prim_value".into(), args: Vec::new(), attrs })
                }
                Some(Item::Module) => self.no_tensor("the module", e),
                Some(_) => self.no_tensor("something else", e),
                None => Err(self.x.unknown(&n.id).at(self.x.span(e))),
            },
            ast::Expr::Tuple(_) | ast::Expr::List(_) => {
                let items = elements(e).iter().map(|e| self.value(e));
                items.collect::<Result<_>>().map(GraphExpr::Tuple)
            }
            ast::Expr::Subscript(s) => {
                if let Some(t) = self.metadata(s)? {
                    return Ok(GraphExpr::Const(t));
                }
                let value = self.value(&s.value)?;
                let index = self.x.count(&s.slice)?;
                Ok(GraphExpr::Item(Box::new(value), index))
            }
            ast::Expr::Call(c) => self.call(c),
            ast::Expr::NumberLiteral(_) | ast::Expr::BooleanLiteral(_) => Err(self
                .x
                .error(e, "expected a tensor, found a number")
                .help("write R.const(1.0, \"float32\")")),
            _ => Err(self.x.error(e, "expected a tensor")),
        }
    }

    fn no_tensor(&self, found: &str, e: &ast::Expr) -> Result<GraphExpr> {
        Err(self.x.error(e, format!("expected a tensor, found {found}")))
    }

    /// `metadata["relax.expr.Constant"][0]`
    fn metadata(&mut self, s: &ast::ExprSubscript) -> Result<Option<Tensor>> {
        let ast::Expr::Subscript(inner) = &*s.value else { return Ok(None) };
        match &*inner.value {
            ast::Expr::Name(n) if n.id.as_str() == "metadata" => {}
            _ => return Ok(None),
        }
        let at = self.x.span(s);
        let index: usize = self.x.count(&s.slice)?;
        let constants = self
            .constants
            .metadata
            .filter(|_| string(&inner.slice).is_ok_and(|s| s == "relax.expr.Constant"));
        let found = constants.and_then(|c| c.get(index));
        found
            .cloned()
            .map(Some)
            .ok_or_else(|| Error::syntax("the metadata of this text has no such constant").at(at))
    }

    fn call(&mut self, c: &ast::ExprCall) -> Result<GraphExpr> {
        match self.x.path(&c.func) {
            Some((Space::R | Space::Bare, name)) if name == "call_tir" => self.call_tir(c),
            Some((Space::R, name)) => {
                match name.as_str() {
                    "const" => self.x.constant_tensor(c).map(GraphExpr::Const),
                    "const_ref" => self.const_ref(c),
                    "tuple" => {
                        let args = Args::bind_variadic(c, "R.tuple", &[])?;
                        let items = args.rest.iter().map(|e| self.value(e));
                        items.collect::<Result<_>>().map(GraphExpr::Tuple)
                    }
                    name if TYPES.contains(&name) => {
                        Err(self.x.error(c, "expected a tensor, found a type"))
                    }
                    "loop" => self.graph_loop(c),
                    "match_cast" => Err(self.x.error(c, "a cast is the value of a binding").help(
                        "give it a name: y = R.match_cast(x, R.Tensor((n, 4), \"float32\"))",
                    )),
                    "call" => {
                        // The printer's form for operators whose name is not a Python name.
                        let name =
                            c.arguments.args.first().ok_or_else(|| {
                                self.x.error(c, "expected the name of an operator")
                            })?;
                        self.operator(string(name)?.to_owned(), c, 1)
                    }
                    name => self.operator(format!("R.{name}"), c, 0),
                }
            }
            _ => match self.callee(&c.func) {
                Some((name, at)) => match self.functions.by_key(&name) {
                    Some(_) => self.operator(graph::call_of(&name), c, 0),
                    None => Err(self.unknown_function(&name).at(at)),
                },
                None => Err(self.x.error(&*c.func, "this cannot be called in a graph function")),
            },
        }
    }

    fn unknown_function(&self, name: &str) -> Error {
        let error = Error::syntax(format!("unknown function `{name}`"));
        error.did_you_mean(name, self.functions.names())
    }

    /// Whether an argument is a tensor rather than an attribute.
    fn is_tensor(&self, e: &ast::Expr) -> bool {
        match e {
            ast::Expr::Name(n) => matches!(self.x.env.get(&n.id), Some(Item::Graph(_))),
            ast::Expr::Tuple(_) | ast::Expr::List(_) => {
                !elements(e).is_empty() && elements(e).iter().all(|e| self.is_tensor(e))
            }
            ast::Expr::Subscript(s) => {
                self.is_tensor(&s.value)
                    || matches!(&*s.value, ast::Expr::Subscript(inner)
                        if matches!(&*inner.value, ast::Expr::Name(n) if n.id.as_str() == "metadata"))
            }
            ast::Expr::Call(c) => match self.x.path(&c.func) {
                Some((Space::R, name)) => !TYPES.contains(&name.as_str()),
                Some(_) => false,
                None => self.callee(&c.func).is_some(),
            },
            _ => false,
        }
    }

    /// A call of an operator or function; `skip` positional arguments are not its own.
    fn operator(&mut self, op: String, c: &ast::ExprCall, skip: usize) -> Result<GraphExpr> {
        let mut args = Vec::new();
        let mut attrs = Attrs::new();
        for (i, e) in c.arguments.args.iter().enumerate().skip(skip) {
            if self.is_tensor(e) {
                args.push(self.value(e)?)
            } else {
                let attr = self.attr(e)?;
                attrs.insert(format!("_{}", i - skip).into(), attr);
            }
        }
        for k in &c.arguments.keywords {
            let Some(name) = &k.arg else {
                // `**{"a key": value}`, the printer's form for keys that are not Python names.
                attrs.extend(self.x.attrs(&k.value)?);
                continue;
            };
            if self.is_tensor(&k.value) {
                return Err(self.x.unsupported(k, "tensors are passed by position"));
            }
            let attr = self.attr(&k.value)?;
            attrs.insert(name.as_str().into(), attr);
        }
        Ok(GraphExpr::Call { op: op.into(), args, attrs })
    }

    /// An attribute of a call; a type is kept as text.
    fn attr(&mut self, e: &ast::Expr) -> Result<Attr> {
        if let ast::Expr::Call(c) = e
            && matches!(self.x.path(&c.func), Some((Space::R, n)) if TYPES.contains(&n.as_str()))
        {
            return Ok(match self.opaque(e) {
                GraphType::Opaque(text) => Attr::Str(text),
                _ => Attr::None,
            });
        }
        self.x.attr(e)
    }

    /// `R.call_tir(cls.f, (x, y), out_sinfo=R.Tensor(...), tir_vars=R.shape([n]))`; the newer
    /// dialect says `out_ty`.
    fn call_tir(&mut self, c: &ast::ExprCall) -> Result<GraphExpr> {
        let names = &["func", "args", "out_sinfo", "tir_vars", "out_ty"];
        let args = Args::bind(c, "R.call_tir", names)?;
        let at = args.need("func")?;
        let Some((func, _)) = self.callee(at) else {
            let error = self.x.error(at, "expected the name of a function");
            return Err(error.help("write `cls.name`"));
        };
        let inputs = match args.get("args") {
            None => Vec::new(),
            Some(e) => match self.value(e)? {
                GraphExpr::Tuple(items) if !matches!(e, ast::Expr::Name(_)) => items,
                one => vec![one],
            },
        };
        let outs = args.get("out_sinfo").or(args.get("out_ty")).map(|e| self.outputs(e));
        let outs = outs.transpose()?.unwrap_or_default();
        let scalars = match args.get("tir_vars") {
            None => Vec::new(),
            Some(ast::Expr::Call(c)) => {
                let args = Args::bind(c, "R.shape", &["values"])?;
                self.scalars(args.need("values")?)?
            }
            Some(e) => self.scalars(e)?,
        };
        Ok(GraphExpr::CallTir { func: func.into(), args: inputs, outs, scalars })
    }

    fn scalars(&mut self, e: &ast::Expr) -> Result<Vec<Expr>> {
        elements(e).iter().map(|e| self.x.expr(e)).collect()
    }

    /// One type, a list of types, or (in loose code) a shape.
    fn outputs(&mut self, e: &ast::Expr) -> Result<Vec<TensorType>> {
        match e {
            ast::Expr::List(l) if l.elts.is_empty() => Ok(Vec::new()),
            ast::Expr::List(_) | ast::Expr::Tuple(_) if elements(e).iter().any(is_type) => {
                elements(e).iter().map(|e| Self::tensor_type(self, e)).collect()
            }
            e if is_type(e) => Ok(vec![Self::tensor_type(self, e)?]),
            _ => Ok(vec![TensorType { shape: self.x.extents(e)?, dtype: DType::F32 }]),
        }
    }

    fn tensor_type(p: &mut Self, e: &ast::Expr) -> Result<TensorType> {
        match p.graph_type(e)? {
            GraphType::Tensor(t) => Ok(t),
            _ => Err(p.x.error(e, "expected the type of a tensor with its shape")),
        }
    }

    fn const_ref(&mut self, c: &ast::ExprCall) -> Result<GraphExpr> {
        let args = Args::bind(c, "R.const_ref", &["name", "ty"])?;
        let at = args.need("name")?;
        let name = string(at)?;
        let tensor = self.constants.table.get(name).cloned().ok_or_else(|| {
            self.x.error(at, format!("the constant `{name}` is not in the table of constants"))
        })?;
        if let Some(e) = args.get("ty") {
            let fits = match self.graph_type(e)? {
                GraphType::Tensor(t) => {
                    t.dtype == tensor.dtype() && t.const_shape().as_deref() == Some(tensor.shape())
                }
                _ => true,
            };
            if !fits {
                let message = format!(
                    "the constant `{name}` is a {} tensor of shape {:?}",
                    tensor.dtype(),
                    tensor.shape()
                );
                return Err(self.x.error(e, message));
            }
        }
        Ok(GraphExpr::Const(tensor))
    }
}

fn is_type(e: &ast::Expr) -> bool {
    matches!(e, ast::Expr::Call(_) | ast::Expr::Subscript(_) | ast::Expr::Attribute(_))
}

/// Whether a type of a shape says its sizes.
fn has_values(c: &ast::ExprCall) -> bool {
    !c.arguments.args.is_empty() || c.arguments.find_keyword("values").is_some()
}

/// Whether every extent of a type is a constant.
fn is_constant(ty: &GraphType) -> bool {
    match ty {
        GraphType::Tensor(t) => t.const_shape().is_some(),
        GraphType::Tuple(items) => items.iter().all(is_constant),
        GraphType::Shape(_) | GraphType::Opaque(_) => false,
    }
}

/// Whether the text of a type that is kept as text reads back as that text.
pub(crate) fn keeps_text(text: &str) -> bool {
    if text.contains(['\n', '\r', '#']) || text.trim() != text {
        return false;
    }
    let Ok(e) = crate::syntax::parse_expression(text) else { return false };
    let (callee, call) = match &e {
        ast::Expr::Call(c) => (&*c.func, Some(c)),
        other => (other, None),
    };
    let Some((Space::R, name)) = ExprParser::new(DType::I64).path(callee) else { return false };
    // A parenthesis around the whole is not part of the expression's place.
    let whole = crate::syntax::span(&e) == Span::new(0, text.len() as u32);
    whole
        && match name.as_str() {
            "Shape" => call.is_none_or(|c| !has_values(c)),
            "Object" | "Prim" | "Callable" => true,
            "Tensor" => match call {
                None => true,
                Some(c) => {
                    c.arguments.args.is_empty()
                        && c.arguments.keywords.iter().all(|k| {
                            k.arg.as_ref().is_some_and(|a| matches!(a.as_str(), "dtype" | "ndim"))
                        })
                }
            },
            _ => false,
        }
}
