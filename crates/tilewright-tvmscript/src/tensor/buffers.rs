//! Buffers: parameters, allocations, views.

use super::*;

/// Arguments of a view, and of what describes memory.
const VIEW: &[&str] = &[
    "param",
    "shape",
    "dtype",
    "data",
    "strides",
    "elem_offset",
    "scope",
    "align",
    "offset_factor",
    "buffer_type",
    "axis_separators",
    "layout",
    "annotations",
];

/// Arguments that describe memory.
pub(super) const MEMORY: &[&str] = VIEW.split_at(1).1;

/// Arguments that describe a buffer.
pub(super) const BUFFER: &[&str] = MEMORY.split_at(11).0;

/// Arguments of a constant.
const CONSTANT: &[&str] =
    &["value", "dtype", "extents", "b64", "scope", "align", "offset_factor", "axis_separators"];

impl TensorParser<'_> {
    /// A buffer with the given shape and whatever else the arguments say.
    pub(super) fn buffer_from(
        &mut self,
        name: &str,
        shape: Vec<Expr>,
        args: &Args,
    ) -> Result<Buffer> {
        let dtype = args.read("dtype", |e| self.x.dtype(e))?.unwrap_or(DType::F32);
        if let Some(e) = args.get("buffer_type")
            && !matches!(string(e)?, "" | "default")
        {
            return Err(self.x.unsupported(e, "broadcasting buffers are not supported"));
        }
        if let Some(e) = args.get("layout") {
            return Err(self.x.unsupported(e, "layouts of buffers are not supported"));
        }
        let strides = args.read("strides", |e| self.x.extents(e))?;
        let elem_offset = args.read("elem_offset", |e| self.x.extent(e))?;
        let scope = args.read("scope", string)?;
        let align = args.read("align", |e| match self.x.constant(e)? {
            -1 => Ok(0),
            _ => self.x.count(e),
        })?;
        let offset_factor = args.read("offset_factor", |e| self.x.count(e))?;
        let axis_separators = args
            .read("axis_separators", |e| elements(e).iter().map(|e| self.x.count(e)).collect())?;
        let data = args.read("data", |e| self.pointer(e))?;
        if let (Some(s), Some(e)) = (&strides, args.get("strides"))
            && !s.is_empty()
            && s.len() != shape.len()
        {
            let message = format!("the buffer has {} axes and {} strides", shape.len(), s.len());
            return Err(self.x.error(e, message));
        }
        let own_offset = elem_offset.is_none() && self.offsets.contains(name);
        Ok(Buffer::new(name, shape, dtype).derive(|d| {
            d.strides = strides.unwrap_or_default();
            d.elem_offset = elem_offset;
            d.scope = scope.unwrap_or("global").into();
            d.align = align.unwrap_or(0);
            d.offset_factor = offset_factor.unwrap_or(0);
            d.axis_separators = axis_separators.unwrap_or_default();
            if let Some(data) = data {
                d.data = data;
            }
            if own_offset {
                d.elem_offset = Some(Var::index(format!("{name}_elem_offset")).expr());
            }
        }))
    }

    /// A pointer: a handle variable, `A.data`, or a buffer for its pointer.
    pub(super) fn pointer(&mut self, e: &ast::Expr) -> Result<Var> {
        let x = self.x.argument(e)?;
        match x.as_var() {
            Some(v) if v.dtype() == DType::HANDLE => Ok(v.clone()),
            _ => Err(self
                .x
                .error(e, "expected a pointer")
                .help("write `A.data`, or the name of a handle")),
        }
    }

    /// `A.view(256)`: the same memory under another shape.
    pub(super) fn view(&mut self, name: &str, b: &Buffer, c: &ast::ExprCall) -> Result<Buffer> {
        let args = Args::bind_variadic(c, "view", &[])?;
        let mut shape = Vec::new();
        for e in &args.rest {
            shape.extend(self.x.extents(e)?);
        }
        let view = b.derive(|d| {
            d.name = name.into();
            d.shape = shape;
            d.strides.clear();
            d.axis_separators.clear();
        });
        self.x.env.define_buffer(name, &view);
        Ok(view)
    }

    /// Memory, or a view of other memory, without a body.
    pub(super) fn memory(
        &mut self,
        name: &str,
        callee: &str,
        c: &ast::ExprCall,
    ) -> Result<StmtKind> {
        match callee {
            "allocate" => self.allocate(name, c),
            "allocate_const" => self.allocate_const(name, c),
            "decl_buffer" | "buffer_decl" | "Buffer" => self.decl_buffer(name, callee, c),
            _ => self.alloc(name, callee, c).map(|(buffer, notes)| allocation(buffer, notes)),
        }
    }

    /// `T.alloc_buffer(shape, dtype, ...)`, `T.alloc_local(shape, dtype)`; loose code gives the
    /// extents one by one.
    pub(super) fn alloc(
        &mut self,
        name: &str,
        callee: &str,
        c: &ast::ExprCall,
    ) -> Result<(Buffer, Attrs)> {
        let what = format!("T.{callee}");
        let numbers = c.arguments.args.len() > 1
            && c.arguments.args.iter().all(|e| e.is_number_literal_expr());
        let (args, shape) = if numbers {
            let args = Args::bind_variadic(c, what, &[])?;
            let shape = args.rest.iter().map(|e| self.x.integer(e)).collect::<Result<_>>()?;
            (args, shape)
        } else {
            let args = Args::bind(c, what, MEMORY)?;
            let shape = self.x.extents(args.need("shape")?)?;
            (args, shape)
        };
        if let Some(e) = args.get("data") {
            let error = self.x.error(e, "an allocation makes its own pointer");
            return Err(
                error.help("a view of other memory is T.decl_buffer(shape, dtype, data=...)")
            );
        }
        let mut buffer = self.buffer_from(name, shape, &args)?;
        if let Some(scope @ ("local" | "shared")) = callee.strip_prefix("alloc_") {
            buffer = buffer.derive(|d| d.scope = scope.into());
        }
        let annotations = args.read("annotations", |e| self.x.attrs(e))?.unwrap_or_default();
        self.x.env.define_buffer(name, &buffer);
        Ok((buffer, annotations))
    }

    /// `T.allocate(extents, dtype, scope)`
    fn allocate(&mut self, name: &str, c: &ast::ExprCall) -> Result<StmtKind> {
        let names = &["extents", "dtype", "scope", "condition", "annotations"];
        let args = Args::bind(c, "T.allocate", names)?;
        if let Some(e) = args.get("condition")
            && !self.x.condition(e)?.is_true()
        {
            return Err(self.x.unsupported(e, "allocation under a condition is not supported"));
        }
        let shape = self.x.extents(args.need("extents")?)?;
        let dtype = self.x.dtype(args.need("dtype")?)?;
        let scope = args.read("scope", string)?.unwrap_or("global");
        let annotations = args.read("annotations", |e| self.x.attrs(e))?.unwrap_or_default();
        let buffer = Buffer::new(name, shape, dtype).derive(|d| d.scope = scope.into());
        self.x.env.define_buffer(name, &buffer);
        Ok(allocation(buffer, annotations))
    }

    /// `T.allocate_const(elements, dtype, extents)`: memory that holds what is given.
    fn allocate_const(&mut self, name: &str, c: &ast::ExprCall) -> Result<StmtKind> {
        let args = Args::bind(c, "T.allocate_const", CONSTANT)?;
        let extents = args.need("extents")?;
        let value = self.x.shaped(&args, extents)?;
        let shape = self.x.extents(extents)?;
        let buffer = self.buffer_from(name, shape, &args)?;
        self.x.env.define_buffer(name, &buffer);
        Ok(StmtKind::Constant { buffer, value, body: Stmt::nop() })
    }

    /// `T.decl_buffer(...)`: a view of `data`, or memory of its own.
    fn decl_buffer(&mut self, name: &str, callee: &str, c: &ast::ExprCall) -> Result<StmtKind> {
        let args = Args::bind(c, format!("T.{callee}"), MEMORY)?;
        if callee == "Buffer" {
            args.need("data")?;
        }
        let shape = self.x.extents(args.need("shape")?)?;
        let buffer = self.buffer_from(name, shape, &args)?;
        let annotations = args.read("annotations", |e| self.x.attrs(e))?.unwrap_or_default();
        self.x.env.define_buffer(name, &buffer);
        Ok(match args.get("data") {
            Some(_) => StmtKind::Declare { buffer, body: Stmt::nop() },
            None => allocation(buffer, annotations),
        })
    }

    /// `T.match_buffer(handle, shape, ...)` of a parameter, or of a region in a block.
    pub(super) fn match_buffer(
        &mut self,
        name: &str,
        c: &ast::ExprCall,
        level: Level,
    ) -> Result<()> {
        let span = self.x.span(c);
        let args = Args::bind(c, "T.match_buffer", VIEW.split_at(12).0)?;
        let shape = args.read("shape", |e| self.x.extents(e))?;
        let source = args.get("param");
        let handle = |p: &Param| match p {
            Param::Buffer { handle, .. } => Some(handle.clone()),
            Param::Scalar(_) => open_handle(p),
        };
        let handle = match source {
            // Loose code leaves the handle out: they come in the order of the parameters.
            None => {
                let found = self.params.iter().position(|p| open_handle(p).is_some());
                Some(found.ok_or_else(|| {
                    Error::syntax("every handle of the function has its buffer already").at(span)
                })?)
            }
            Some(ast::Expr::Name(n)) => match self.x.env.get(&n.id) {
                Some(Item::Var(v)) => {
                    let found = self.params.iter().position(|p| handle(p).as_ref() == Some(v));
                    Some(found.ok_or_else(|| {
                        self.x.error(n, format!("`{}` is not a handle among the parameters", n.id))
                    })?)
                }
                Some(Item::Buffer(_)) => None,
                _ => return Err(self.x.unknown(&n.id).at(self.x.span(n))),
            },
            Some(_) => None,
        };
        let buffer = match (handle, source) {
            (Some(i), _) => {
                let name = self.head.real_name(name);
                let buffer = self.buffer_from(name, shape.ok_or_else(|| no_shape(span))?, &args)?;
                let param = match &self.params[i] {
                    Param::Scalar(v) => Param::Buffer { handle: v.clone(), buffer: buffer.clone() },
                    Param::Buffer { handle, .. } => {
                        let message = format!("`{}` has its buffer already", handle.name());
                        return Err(Error::syntax(message).at(span));
                    }
                };
                self.params[i] = param;
                buffer
            }
            (None, Some(source)) => {
                if level != Level::Block {
                    return Err(
                        Error::syntax("a view of a region belongs directly in a block").at(span)
                    );
                }
                let region = self.region(source)?;
                let shape = shape
                    .unwrap_or_else(|| region.ranges.iter().map(|r| r.extent.clone()).collect());
                let buffer = self.buffer_from(name, shape, &args)?;
                let given = args.get("dtype").is_some();
                let buffer = if given || buffer.dtype() == region.buffer.dtype() {
                    buffer
                } else {
                    buffer.derive(|d| d.dtype = region.buffer.dtype())
                };
                let view = MatchRegion { buffer: buffer.clone(), source: region };
                self.frame(span)?.block.matches.push(view);
                buffer
            }
            (None, None) => return Err(no_shape(span)),
        };
        self.x.env.define_buffer(name, &buffer);
        Ok(())
    }
}

fn open_handle(p: &Param) -> Option<Var> {
    p.scalar().filter(|v| v.dtype() == DType::HANDLE).cloned()
}

fn no_shape(span: Span) -> Error {
    Error::syntax("`T.match_buffer` needs the argument `shape`").at(span)
}
