//! `T.*` as expressions.

use super::*;

/// Built-ins of two operands that are operators of ours.
const BINARY: &[(&[&str], BinOp)] = &[
    (&["min", "Min"], BinOp::Min),
    (&["max", "Max"], BinOp::Max),
    (&["truncdiv"], BinOp::TruncDiv),
    (&["truncmod", "Mod"], BinOp::TruncMod),
    (&["floordiv", "indexdiv", "FloorDiv"], BinOp::FloorDiv),
    (&["floormod", "indexmod", "FloorMod"], BinOp::FloorMod),
    (&["Add"], BinOp::Add),
    (&["Sub"], BinOp::Sub),
    (&["Mul"], BinOp::Mul),
    (&["Div", "div"], BinOp::Div),
    (&["EQ"], BinOp::Eq),
    (&["NE"], BinOp::Ne),
    (&["LT"], BinOp::Lt),
    (&["LE"], BinOp::Le),
    (&["GT"], BinOp::Gt),
    (&["GE"], BinOp::Ge),
    (&["And"], BinOp::And),
    (&["Or"], BinOp::Or),
];

/// What a call with these arguments means; the name is that of the built-in.
type Reader = fn(&mut ExprParser, &str, &Args) -> Result<TextValue>;

/// `T.*` with a meaning of their own: names, parameters, and how they are read.
const BUILTINS: &[(&[&str], &[&str], Reader)] = &[
    (&["Cast", "reinterpret"], &["dtype", "value", "span"], |p, name, args| {
        let dtype = p.dtype(args.need("dtype")?)?;
        let value = p.expr(args.need("value")?)?;
        Ok(TextValue::Typed(match name {
            "Cast" => cast(value, dtype)?,
            _ => Expr::reinterpret_node(value, dtype),
        }))
    }),
    (&["cast"], &["value", "dtype", "span"], |p, _, args| {
        let value = p.expr(args.need("value")?)?;
        cast(value, p.dtype(args.need("dtype")?)?).map(TextValue::Typed)
    }),
    (
        &["if_then_else", "Select"],
        &["condition", "true_value", "false_value", "span"],
        |p, name, args| {
            let cond = p.condition(args.need("condition")?)?;
            let t = p.value(args.need("true_value")?)?;
            let f = p.value(args.need("false_value")?)?;
            let (t, f) = p.same_type(t, f)?;
            Ok(TextValue::Typed(match name {
                "Select" => Expr::select(cond, t, f),
                _ => Expr::if_then_else(cond, t, f),
            }))
        },
    ),
    (&["likely"], &["cond", "dtype"], |p, _, args| {
        let cond = p.value(args.need("cond")?)?;
        p.intrinsic(Intrin::Likely, vec![cond])
    }),
    (&["Not"], &["a", "span"], |p, _, args| {
        p.condition(args.need("a")?).map(Expr::not_node).map(TextValue::Typed)
    }),
    (&["ceildiv"], &["lhs", "rhs", "span"], |p, _, args| {
        let lhs = p.value(args.need("lhs")?)?;
        let at = args.need("rhs")?;
        let rhs = p.copied(|p| p.value(at))?;
        let sum = p.binary(BinOp::Add, lhs, rhs.clone())?;
        let sum = p.binary(BinOp::Sub, sum, TextValue::Int(1))?;
        p.binary(BinOp::FloorDiv, sum, rhs)
    }),
    (&["infinity", "max_value", "min_value"], &["dtype", "span"], |p, name, args| {
        let at = args.need("dtype")?;
        let dtype = p.dtype(at)?;
        let value = limit(name, dtype).map(TextValue::Typed);
        value.ok_or_else(|| p.error(at, format!("`T.{name}` of {dtype} does not exist")))
    }),
    (&["undef"], &["dtype"], |p, _, args| {
        let dtype = args.read("dtype", |d| p.dtype(d))?;
        Ok(dtype.map_or(TextValue::Undef, |d| TextValue::Typed(Expr::undef(d))))
    }),
    (&["ramp", "Ramp"], &["base", "stride", "lanes", "span"], |p, _, args| {
        let base = p.value(args.need("base")?)?;
        let stride = p.value(args.need("stride")?)?;
        let (base, stride) = p.same_type(base, stride)?;
        let lanes = p.lanes(args.need("lanes")?)?;
        scalar(&base)?;
        Ok(TextValue::Typed(Expr::ramp(base, stride, lanes)))
    }),
    (&["broadcast", "Broadcast"], &["value", "lanes", "span"], |p, _, args| {
        let value = p.expr(args.need("value")?)?;
        let lanes = p.lanes(args.need("lanes")?)?;
        scalar(&value)?;
        Ok(TextValue::Typed(Expr::broadcast(value, lanes)))
    }),
    (&["type_annotation"], &["dtype"], |p, name, args| {
        let dtype = p.dtype(args.need("dtype")?)?;
        Ok(TextValue::Typed(Expr::call(CallTarget::Opaque(name.into()), Vec::new(), dtype)))
    }),
    (&["StringImm"], &["value", "span"], |_, _, args| {
        Ok(TextValue::Typed(Expr::str(string(args.need("value")?)?)))
    }),
    (&["IntImm", "FloatImm"], &["dtype", "value", "span"], |p, _, args| {
        let dtype = p.dtype(args.need("dtype")?)?;
        p.expr_of(args.need("value")?, dtype).map(TextValue::Typed)
    }),
];

/// Further names of such, for suggestions: those whose arguments have forms of their own, and other
/// names of built-in functions.
const OTHERS: &[&str] = &["Let", "call_extern", "call_intrin", "call_pure_extern", "fabs", "power"];

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
        if let Some((_, op)) = BINARY.iter().find(|(names, _)| names.contains(&name)) {
            return self.binary_call(*op, name, c);
        }
        if let Some((_, params, read)) = BUILTINS.iter().find(|(names, ..)| names.contains(&name)) {
            return read(self, name, &Args::bind(c, format!("T.{name}"), params)?);
        }
        if let Some(op) = Intrin::from_name(name) {
            let names: &[&'static str] = if op.arity() == 1 { &["x"] } else { &["x", "y"] };
            let args = Args::bind(c, format!("T.{name}"), names)?;
            let values = names.iter().map(|n| self.value(args.need(n)?)).collect::<Result<_>>()?;
            return self.intrinsic(op, values);
        }
        match name {
            "Let" => self.let_in(c),
            "call_extern" | "call_pure_extern" => self.call_extern(c),
            "call_intrin" => {
                let args = Args::bind_variadic(c, "T.call_intrin", &["dtype", "op_name"])?;
                let dtype = self.dtype(args.need("dtype")?)?;
                let op = string(args.need("op_name")?)?;
                let op = op.strip_prefix("tir.").or_else(|| op.strip_prefix("tirx.")).unwrap_or(op);
                let rest = args.rest.iter().map(|e| self.argument(e)).collect::<Result<_>>()?;
                let call = Expr::call(CallTarget::Opaque(op.into()), rest, dtype);
                Ok(TextValue::Typed(call))
            }
            _ => self.opaque(name, c),
        }
    }

    fn binary_call(&mut self, op: BinOp, name: &str, c: &ast::ExprCall) -> Result<TextValue> {
        let args = Args::bind(c, format!("T.{name}"), &["a", "b", "span"])?;
        let (a, b) = (self.value(args.need("a")?)?, self.value(args.need("b")?)?);
        // `T.Div` of integers truncates, that of floats divides.
        let int = self.int;
        let (a, b) = if op.is_logic() {
            (a.condition(int)?, b.condition(int)?)
        } else {
            crate::value::unify(a, b, int)?
        };
        let op = match op {
            BinOp::Div if a.dtype().is_int() => BinOp::TruncDiv,
            op => op,
        };
        self.binary(op, TextValue::Typed(a), TextValue::Typed(b))
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
        let binary = BINARY.iter().flat_map(|(names, _)| *names);
        let builtins = BUILTINS.iter().flat_map(|(names, ..)| *names);
        let known = builtins.chain(binary).chain(OTHERS).copied();
        let known = known.chain(intrinsics).chain(opaque);
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
        Ok(TextValue::Typed(
            bound.into_iter().rev().fold(body, |body, (var, value)| Expr::let_in(var, value, body)),
        ))
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
                    let error = self.error(k, "`T.call_extern` has no such parameter");
                    return Err(error.help("write T.call_extern(dtype, name, args...)"));
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
