//! Parameters and their types.

use super::buffers::BUFFER;
use super::*;

/// The types of variables that a body declares with `n = T.int64()`.
pub(crate) fn declared_types(x: &ExprParser, body: &[ast::Stmt]) -> HashMap<String, DType> {
    let mut types = HashMap::default();
    for s in body {
        if let ast::Stmt::Assign(a) = s
            && let [ast::Expr::Name(n)] = a.targets.as_slice()
            && let ast::Expr::Call(c) = &*a.value
            && let Some(dtype) = x.declared(c)
        {
            types.entry(n.id.to_string()).or_insert(dtype);
        }
    }
    types
}

/// Defines what the names in the text of a dimension stand for, where that is nothing yet.
pub(crate) fn define_dimensions(
    x: &mut ExprParser,
    e: &ast::Expr,
    declared: &HashMap<String, DType>,
    default: DType,
) -> Result<()> {
    let text = string(e)?;
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
    let names = words.filter(|w| !w.contains('.') && w.starts_with(|c: char| !c.is_ascii_digit()));
    for name in names {
        if matches!(name, "min" | "max") || x.env.get(name).is_some() {
            continue;
        }
        let dtype = declared.get(name).copied().unwrap_or(default);
        let var = x.size_var(name, dtype);
        x.env.insert(name, Item::Var(var));
    }
    Ok(())
}

impl TensorParser<'_> {
    /// Reads the parameters. Scalars and names of extents come first, since a shape may name
    /// what comes further right.
    pub(super) fn parameters(&mut self, f: &ast::StmtFunctionDef) -> Result<()> {
        let head = self.head;
        let params = parameters(&f.parameters)?;
        let mut scalars = HashMap::default();
        for p in &params {
            let name = p.name.as_str();
            let Some(annotation) = p.annotation.as_deref() else {
                return Err(self.x.error(*p, format!("the parameter `{name}` needs a type")).help(
                    format!("write `{name}: T.Buffer((16,), \"float32\")` or `{name}: T.int32`"),
                ));
            };
            if let Some(dtype) = self.scalar_type(annotation)? {
                let var = Var::new(head.real_name(name), dtype);
                self.x.env.insert(name, Item::Var(var.clone()));
                scalars.insert(name, var);
            }
        }
        let declared = declared_types(self.x, &f.body);
        for p in &params {
            if let Some(annotation) = p.annotation.as_deref() {
                self.dimensions(annotation, &declared)?;
            }
        }
        for p in params {
            let name = p.name.as_str();
            let param = match (scalars.remove(name), p.annotation.as_deref()) {
                (Some(var), _) => Param::Scalar(var),
                (None, Some(annotation)) => {
                    let buffer = self.buffer_annotation(head.real_name(name), annotation)?;
                    self.x.env.define_buffer(name, &buffer);
                    Param::tensor(&buffer)
                }
                (None, None) => return Err(self.x.error(p, format!("`{name}` stands twice"))),
            };
            self.params.push(param);
        }
        Ok(())
    }

    /// The type of a scalar annotation; `None` for that of a buffer.
    pub(super) fn scalar_type(&self, e: &ast::Expr) -> Result<Option<DType>> {
        let callee = match e {
            ast::Expr::Call(c) => &*c.func,
            ast::Expr::Subscript(s) => &*s.value,
            other => other,
        };
        let name = match (self.x.path(callee), e) {
            (Some((Space::T, name)), _) => name,
            (None, ast::Expr::StringLiteral(s)) => s.value.to_str().to_owned(),
            _ => return Err(self.no_param_type(e)),
        };
        match name.as_str() {
            "Buffer" => Ok(None),
            "Ptr" | "handle" => Ok(Some(DType::HANDLE)),
            name => match name.parse::<DType>() {
                Ok(dtype) if dtype != DType::VOID => Ok(Some(dtype)),
                _ => Err(self.no_param_type(e)),
            },
        }
    }

    fn no_param_type(&self, e: &ast::Expr) -> Error {
        self.x
            .error(e, "expected the type of a parameter")
            .help("write T.Buffer(shape, dtype), T.handle, or a type such as T.int32")
    }

    /// Defines the variables that strings in a shape (`T.Buffer(("n", 128))`) name.
    pub(super) fn dimensions(
        &mut self,
        e: &ast::Expr,
        declared: &HashMap<String, DType>,
    ) -> Result<()> {
        let (args, keywords): (&[ast::Expr], &[ast::Keyword]) = match e {
            ast::Expr::Call(c) => (&c.arguments.args, &c.arguments.keywords),
            ast::Expr::Subscript(s) => (elements(&s.slice), &[]),
            _ => return Ok(()),
        };
        let named = keywords.iter().filter(|k| {
            k.arg
                .as_ref()
                .is_some_and(|a| matches!(a.as_str(), "shape" | "strides" | "elem_offset"))
        });
        for e in args.first().into_iter().chain(named.map(|k| &k.value)) {
            for d in elements(e).iter().filter(|d| d.is_string_literal_expr()) {
                define_dimensions(self.x, d, declared, DType::I32)?;
            }
        }
        Ok(())
    }

    /// `T.Buffer((16,), "float32", ...)`, or the older `T.Buffer[16, "float32"]`.
    pub(super) fn buffer_annotation(&mut self, name: &str, e: &ast::Expr) -> Result<Buffer> {
        match e {
            ast::Expr::Call(c) => {
                let args = Args::bind(c, "T.Buffer", BUFFER)?;
                let shape = self.x.extents(args.need("shape")?)?;
                self.buffer_from(name, shape, &args)
            }
            ast::Expr::Subscript(s) => {
                let (shape, dtype) = self.x.subscripted_type(&s.slice)?;
                Ok(Buffer::new(name, shape, dtype))
            }
            _ => Err(self.x.error(e, "expected `T.Buffer(shape, dtype)`")),
        }
    }
}
