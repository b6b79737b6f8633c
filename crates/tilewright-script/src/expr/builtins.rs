//! `T.*` as expressions.

use super::*;

/// Built-ins of two operands that are operators of ours.
fn binary_builtin(name: &str) -> Option<BinOp> {
    Some(match name {
        "min" | "Min" => BinOp::Min,
        "max" | "Max" => BinOp::Max,
        "truncdiv" => BinOp::TruncDiv,
        "truncmod" | "Mod" => BinOp::TruncMod,
        "floordiv" | "indexdiv" | "FloorDiv" => BinOp::FloorDiv,
        "floormod" | "indexmod" | "FloorMod" => BinOp::FloorMod,
        "Add" => BinOp::Add,
        "Sub" => BinOp::Sub,
        "Mul" => BinOp::Mul,
        "Div" | "div" => BinOp::Div,
        "EQ" => BinOp::Eq,
        "NE" => BinOp::Ne,
        "LT" => BinOp::Lt,
        "LE" => BinOp::Le,
        "GT" => BinOp::Gt,
        "GE" => BinOp::Ge,
        "And" => BinOp::And,
        "Or" => BinOp::Or,
        _ => return None,
    })
}

/// Names of `T.*` expressions that have a meaning of their own, for suggestions.
const KNOWN: &[&str] = &[
    "Broadcast",
    "Cast",
    "FloatImm",
    "IntImm",
    "Let",
    "Not",
    "Ramp",
    "Select",
    "StringImm",
    "broadcast",
    "call_extern",
    "call_intrin",
    "call_pure_extern",
    "cast",
    "ceildiv",
    "fabs",
    "floordiv",
    "floormod",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "max",
    "max_value",
    "min",
    "min_value",
    "power",
    "ramp",
    "reinterpret",
    "truncdiv",
    "truncmod",
    "type_annotation",
    "undef",
];

/// Names of `T.*` that stand for statements or scopes.
const STATEMENTS: &[&str] = &[
    "Assert",
    "Buffer",
    "LetStmt",
    "alloc_buffer",
    "allocate",
    "allocate_const",
    "assume",
    "attr",
    "block",
    "block_attr",
    "decl_buffer",
    "evaluate",
    "func_attr",
    "grid",
    "init",
    "launch_thread",
    "match_buffer",
    "parallel",
    "prim_func",
    "reads",
    "sblock",
    "sblock_alloc_buffer",
    "sblock_attr",
    "serial",
    "thread_binding",
    "unroll",
    "vectorized",
    "where",
    "writes",
];

/// The largest, smallest or infinite value of a type.
fn limit(name: &str, dtype: DType) -> Option<Expr> {
    let max = match (dtype.kind, dtype.bits) {
        (TypeKind::Float, 16) => 65504.0,
        (TypeKind::Float, 32) => f64::from(f32::MAX),
        (TypeKind::Float, _) => f64::MAX,
        (TypeKind::BFloat, _) => f64::from(f32::from_bits(0x7f7f_0000)),
        _ => 0.0,
    };
    match (name, dtype.is_float(), dtype.lanes) {
        (.., 2..) => None,
        ("infinity", true, _) => Some(Expr::float(f64::INFINITY, dtype)),
        ("max_value", true, _) => Some(Expr::float(max, dtype)),
        ("min_value", true, _) => Some(Expr::float(-max, dtype)),
        ("max_value", false, _) => dtype.max_int().map(|v| Expr::int(v as i64, dtype)),
        ("min_value", false, _) => dtype.min_int().map(|v| Expr::int(v as i64, dtype)),
        _ => None,
    }
}

fn scalar(e: &Expr) -> Result<()> {
    match e.dtype() {
        d if d.lanes == 1 && !matches!(d.kind, TypeKind::Void) => Ok(()),
        d => Err(Error::syntax(format!("expected a scalar, found {d}"))),
    }
}

impl ExprParser {
    /// `T.<name>(...)` as an expression.
    pub(super) fn builtin(&mut self, name: &str, c: &ast::ExprCall) -> Result<TextValue> {
        if let Ok(dtype) = name.parse::<DType>() {
            return self.typed_literal(dtype, c);
        }
        if let Some(op) = binary_builtin(name) {
            return self.binary_call(op, name, c);
        }
        let intrinsic = match name {
            "likely" => None,
            _ => Intrin::from_name(name),
        };
        if let Some(op) = intrinsic {
            let names: &[&'static str] = if op.arity() == 1 { &["x"] } else { &["x", "y"] };
            let args = Args::bind(c, format!("T.{name}"), names)?;
            let values = names.iter().map(|n| self.value(args.need(n)?)).collect::<Result<_>>()?;
            return self.intrinsic(op, values);
        }
        self.other_builtin(name, c)
    }

    fn binary_call(&mut self, op: BinOp, name: &str, c: &ast::ExprCall) -> Result<TextValue> {
        let args = Args::bind(c, format!("T.{name}"), &["a", "b", "span"])?;
        let (a, b) = (self.value(args.need("a")?)?, self.value(args.need("b")?)?);
        // `T.Div` of integers truncates, that of floats divides.
        let int = self.int;
        let (a, b) = match op.is_logic() {
            true => (a.condition(int)?, b.condition(int)?),
            false => crate::value::unify(a, b, int)?,
        };
        let op = match op {
            BinOp::Div if a.dtype().is_int() => BinOp::TruncDiv,
            op => op,
        };
        self.binary(op, TextValue::Typed(a), TextValue::Typed(b))
    }

    fn other_builtin(&mut self, name: &str, c: &ast::ExprCall) -> Result<TextValue> {
        let what = format!("T.{name}");
        let bind = |names| Args::bind(c, what.as_str(), names);
        let typed = |e| Ok(TextValue::Typed(e));
        match name {
            "Cast" | "reinterpret" => {
                let args = bind(&["dtype", "value", "span"])?;
                let dtype = self.dtype(args.need("dtype")?)?;
                let value = self.expr(args.need("value")?)?;
                match name {
                    "Cast" => typed(cast(value, dtype)?),
                    _ => typed(Expr::reinterpret_node(value, dtype)),
                }
            }
            "cast" => {
                let args = bind(&["value", "dtype", "span"])?;
                let value = self.expr(args.need("value")?)?;
                typed(cast(value, self.dtype(args.need("dtype")?)?)?)
            }
            "if_then_else" | "Select" => {
                let args = bind(&["condition", "true_value", "false_value", "span"])?;
                let cond = self.condition(args.need("condition")?)?;
                let t = self.value(args.need("true_value")?)?;
                let f = self.value(args.need("false_value")?)?;
                let (t, f) = self.same_type(t, f)?;
                match name {
                    "Select" => typed(Expr::select(cond, t, f)),
                    _ => typed(Expr::if_then_else(cond, t, f)),
                }
            }
            "likely" => {
                let args = bind(&["cond", "dtype"])?;
                let cond = self.value(args.need("cond")?)?;
                self.intrinsic(Intrin::Likely, vec![cond])
            }
            "Not" => {
                let args = bind(&["a", "span"])?;
                typed(Expr::not_node(self.condition(args.need("a")?)?))
            }
            "ceildiv" => {
                let args = bind(&["lhs", "rhs", "span"])?;
                let lhs = self.value(args.need("lhs")?)?;
                let at = args.need("rhs")?;
                let rhs = self.copied(|p| p.value(at))?;
                let sum = self.binary(BinOp::Add, lhs, rhs.clone())?;
                let sum = self.binary(BinOp::Sub, sum, TextValue::Int(1))?;
                self.binary(BinOp::FloorDiv, sum, rhs)
            }
            "infinity" | "max_value" | "min_value" => {
                let args = bind(&["dtype", "span"])?;
                let at = args.need("dtype")?;
                let dtype = self.dtype(at)?;
                limit(name, dtype)
                    .map(TextValue::Typed)
                    .ok_or_else(|| self.error(at, format!("`{what}` of {dtype} does not exist")))
            }
            "undef" => {
                let args = bind(&["dtype"])?;
                match args.get("dtype") {
                    Some(d) => typed(Expr::undef(self.dtype(d)?)),
                    None => Ok(TextValue::Undef),
                }
            }
            "ramp" | "Ramp" => {
                let args = bind(&["base", "stride", "lanes", "span"])?;
                let base = self.value(args.need("base")?)?;
                let stride = self.value(args.need("stride")?)?;
                let (base, stride) = self.same_type(base, stride)?;
                let lanes = self.lanes(args.need("lanes")?)?;
                scalar(&base)?;
                typed(Expr::ramp(base, stride, lanes))
            }
            "broadcast" | "Broadcast" => {
                let args = bind(&["value", "lanes", "span"])?;
                let value = self.expr(args.need("value")?)?;
                let lanes = self.lanes(args.need("lanes")?)?;
                scalar(&value)?;
                typed(Expr::broadcast(value, lanes))
            }
            "Let" => self.let_in(c),
            "call_extern" | "call_pure_extern" => self.call_extern(c),
            "call_intrin" => {
                let args = Args::bind_variadic(c, what.as_str(), &["dtype", "op_name"])?;
                let dtype = self.dtype(args.need("dtype")?)?;
                let op = string(args.need("op_name")?)?;
                let op = op.strip_prefix("tir.").or_else(|| op.strip_prefix("tirx.")).unwrap_or(op);
                let rest = args.rest.iter().map(|e| self.argument(e)).collect::<Result<_>>()?;
                typed(Expr::call(CallTarget::Opaque(op.into()), rest, dtype))
            }
            "type_annotation" => {
                let args = bind(&["dtype"])?;
                let dtype = self.dtype(args.need("dtype")?)?;
                typed(Expr::call(CallTarget::Opaque(name.into()), Vec::new(), dtype))
            }
            "StringImm" => typed(Expr::str(string(bind(&["value", "span"])?.need("value")?)?)),
            "IntImm" | "FloatImm" => {
                let args = bind(&["dtype", "value", "span"])?;
                let dtype = self.dtype(args.need("dtype")?)?;
                typed(self.expr_of(args.need("value")?, dtype)?)
            }
            _ => self.opaque(name, c),
        }
    }

    /// A call that is only passed on; the error says which names there are.
    fn opaque(&mut self, name: &str, c: &ast::ExprCall) -> Result<TextValue> {
        let what = format!("T.{name}");
        if let Some((_, dtype)) = text::OPAQUE_CALLS.iter().find(|(n, _)| *n == name) {
            let args = Args::bind_variadic(c, what.as_str(), &[])?;
            let rest = args.rest.iter().map(|e| self.argument(e)).collect::<Result<_>>()?;
            let call = Expr::call(CallTarget::Opaque(name.into()), rest, *dtype);
            return Ok(TextValue::Typed(call));
        }
        if STATEMENTS.contains(&name) {
            return Err(Error::syntax(format!("`{what}` cannot be used as an expression")));
        }
        let intrinsics = Intrin::ALL.iter().map(|i| i.name());
        let opaque = text::OPAQUE_CALLS.iter().map(|(n, _)| *n);
        let known = KNOWN.iter().copied().chain(intrinsics).chain(opaque);
        let error = Error::syntax(format!("unknown function `{what}`"));
        let error = error.at(self.span(&*c.func));
        Err(match closest(name, known) {
            Some(near) => error.help(format!("did you mean `T.{near}`?")),
            None => error.help(format!(
                "a call that is only passed on is written \
                 T.call_intrin(\"int32\", \"{name}\", ...)"
            )),
        })
    }

    /// Two values of one type.
    fn same_type(&mut self, a: TextValue, b: TextValue) -> Result<(Expr, Expr)> {
        a.operand().and_then(|()| b.operand())?;
        crate::value::unify(a, b, self.int)
    }

    fn lanes(&mut self, e: &ast::Expr) -> Result<u16> {
        match self.count::<u16>(e)? {
            n @ 2.. => Ok(n),
            n => Err(self.error(e, format!("a vector has at least two lanes, found {n}"))),
        }
    }

    /// `T.float32(x)`: a constant, or a conversion. `T.float32("inf")` and `"nan"` are constants.
    fn typed_literal(&mut self, dtype: DType, c: &ast::ExprCall) -> Result<TextValue> {
        let args = Args::bind_variadic(c, format!("T.{dtype}"), &["expr"])?;
        let Some(e) = args.get("expr") else {
            return Err(Error::syntax(format!("`T.{dtype}()` declares a variable"))
                .help(format!("write `n = T.{dtype}()`")));
        };
        let value = match (e, dtype.kind) {
            (ast::Expr::StringLiteral(s), _) => {
                let special = special_float(s.value.to_str()).filter(|_| dtype.is_float());
                let v = special
                    .ok_or_else(|| self.error(e, format!("expected {dtype}, found a string")))?;
                Expr::float(v, dtype.scalar())
            }
            (_, TypeKind::Handle) => match self.value(e)? {
                TextValue::Int(v) => Expr::int(
                    i64::try_from(v).map_err(|_| Error::syntax("the number is too large"))?,
                    dtype,
                ),
                v => v.convert(dtype, self.int)?,
            },
            (_, TypeKind::Void) => return Err(Error::syntax("there is no value of type void")),
            _ => match self.value(e)? {
                TextValue::Typed(x) if x.dtype() == dtype => x,
                TextValue::Typed(x) => {
                    let lanes = x.dtype().lanes;
                    cast(x, dtype.with_lanes(lanes))?
                }
                v @ (TextValue::Str(_) | TextValue::None | TextValue::Buffer(_)) => {
                    return Err(self.error(e, format!("expected {dtype}, found {}", v.describe())));
                }
                v => {
                    let x = v.convert(dtype.scalar(), self.int)?;
                    match x.kind() {
                        ExprKind::Cast(_) => {
                            return Err(self.error(e, format!("not a constant of type {dtype}")));
                        }
                        _ => x,
                    }
                }
            },
        };
        Ok(TextValue::Typed(match (value.dtype().lanes, dtype.lanes) {
            (a, b) if a == b => value,
            (1, b) => Expr::broadcast(value, b),
            (a, b) => return Err(Error::syntax(format!("expected {b} lanes, found {a}"))),
        }))
    }

    /// `T.Let(body, where={x: value, ...})`, or the older `T.Let(x, value, body)`.
    fn let_in(&mut self, c: &ast::ExprCall) -> Result<TextValue> {
        let mut pairs: Vec<(&ast::Expr, &ast::Expr)> = Vec::new();
        let body = if c.arguments.args.len() == 3 {
            let args = Args::bind(c, "T.Let", &["var", "value", "body"])?;
            pairs.push((args.need("var")?, args.need("value")?));
            args.need("body")?
        } else {
            let args = Args::bind(c, "T.Let", &["expr", "where"])?;
            let bindings = args.need("where")?;
            let ast::Expr::Dict(d) = bindings else {
                return Err(self.error(bindings, "expected `{variable: value}`"));
            };
            for item in &d.items {
                let key = item.key.as_ref().ok_or_else(|| Error::syntax("expected `x: value`"))?;
                pairs.push((key, &item.value));
            }
            args.need("expr")?
        };
        let mut bound = Vec::new();
        self.env.push();
        let mut read = || {
            for (name, value) in &pairs {
                let ast::Expr::Name(n) = name else {
                    return Err(self.error(*name, "expected a variable"));
                };
                let value = self.expr(value)?;
                bound.push((self.env.define(&n.id, value.dtype()), value));
            }
            self.expr(body)
        };
        let result = read();
        self.env.pop();
        let body = result?;
        let wrap = |body, (var, value)| Expr::let_in(var, value, body);
        Ok(TextValue::Typed(bound.into_iter().rev().fold(body, wrap)))
    }

    /// `T.call_extern("float32", "name", args...)`, or the older `T.call_extern("name", args...,
    /// dtype="float32")`.
    fn call_extern(&mut self, c: &ast::ExprCall) -> Result<TextValue> {
        let mut positional: Vec<&ast::Expr> = c.arguments.args.iter().collect();
        let keyword = c.arguments.keywords.iter();
        let mut dtype = None;
        let mut named = None;
        for k in keyword {
            match k.arg.as_ref().map(|a| a.as_str()) {
                Some("dtype") => dtype = Some(self.dtype(&k.value)?),
                Some("func_name" | "global_symbol" | "name") => named = Some(&k.value),
                _ => {
                    return Err(self
                        .error(k, "`T.call_extern` has no such parameter")
                        .help("write T.call_extern(dtype, name, args...)"));
                }
            }
        }
        let first = positional.first().and_then(|e| string(e).ok()?.parse::<DType>().ok());
        if dtype.is_none()
            && let Some(d) = first
        {
            dtype = Some(d);
            positional.remove(0);
        }
        let name = match named {
            Some(e) => e,
            None if positional.is_empty() => {
                return Err(Error::syntax("`T.call_extern` needs the name of a function")
                    .help("write T.call_extern(dtype, name, args...)"));
            }
            None => positional.remove(0),
        };
        let name: Arc<str> = string(name)?.into();
        let args = positional.into_iter().map(|e| self.argument(e)).collect::<Result<_>>()?;
        let dtype = dtype.unwrap_or(DType::I32);
        Ok(TextValue::Typed(Expr::call(CallTarget::Extern(name), args, dtype)))
    }
}
