//! Expressions: from Python's tree to [`TextValue`]s, in an environment of names.
//!
//! The tree of the text is kept: nothing is folded or reordered, except that Python's own
//! arithmetic on plain numbers is carried out (see [`crate::value`]).

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::dim::SizeRange;
use tilewright_ir::intrinsic::Operands;
use tilewright_ir::suggest::closest;
use tilewright_ir::{
    BinOp, Buffer, CallTarget, DType, Error, Expr, ExprKind, Intrin, Range, Result, Span, TypeKind,
    equal, text,
};

use crate::args::{Args, elements, string};
use crate::env::{Env, Item};
use crate::syntax;
use crate::value::{TextValue, binary, constant_value, int_literal};

mod builtins;

/// The vocabularies of TVMScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// `T`: tensor functions.
    T,
    /// `R`: graph functions.
    R,
    /// `I`: modules.
    I,
    /// A bare name, as loose code writes `grid(...)`.
    Bare,
}

/// Most nested constructs whose text stands for two copies of a part of it
/// (`0 <= x < n`, `T.ceildiv(x, n)`): each level may double the tree.
const MAX_COPIES: usize = 4;

/// Reads expressions.
pub(crate) struct ExprParser {
    /// Names in scope.
    pub(crate) env: Env,
    /// The type of a plain integer that meets nothing.
    pub(crate) int: DType,
    /// What the sizes of the function may be, by name.
    pub(crate) ranges: HashMap<String, SizeRange>,
    /// Names of the vocabularies.
    pub(crate) spaces: HashMap<String, Space>,
    /// Where everything is that has no place of its own in the source: text inside a string.
    place: Option<Span>,
    copies: usize,
}

/// One index of a buffer.
pub(crate) enum Index {
    /// One element, or a vector of them.
    Point(Expr),
    /// `a:b` with the step.
    Slice(Range, i64),
}

impl ExprParser {
    /// A parser without names, whose plain integers have the given type.
    pub(crate) fn new(int: DType) -> Self {
        let spaces = [
            ("T", Space::T),
            ("tir", Space::T),
            ("tirx", Space::T),
            ("R", Space::R),
            ("relax", Space::R),
            ("I", Space::I),
        ];
        let spaces = spaces.into_iter().map(|(n, s)| (n.to_owned(), s)).collect();
        ExprParser {
            env: Env::new(),
            int,
            ranges: HashMap::default(),
            spaces,
            place: None,
            copies: 0,
        }
    }

    /// The place of a node.
    pub(crate) fn span(&self, node: &impl Ranged) -> Span {
        self.place.unwrap_or_else(|| syntax::span(node))
    }

    /// An error of syntax at a node.
    pub(crate) fn error(&self, node: &impl Ranged, message: impl Into<String>) -> Error {
        Error::syntax(message).at(self.span(node))
    }

    /// The error for what is right and not covered, at a node.
    pub(crate) fn unsupported(&self, node: &impl Ranged, message: impl Into<String>) -> Error {
        Error::unsupported(message).at(self.span(node))
    }

    /// Reads the text of a string literal at `place` with `read`.
    pub(crate) fn inside<T>(
        &mut self,
        e: &ast::Expr,
        read: impl FnOnce(&mut Self, &ast::Expr) -> Result<T>,
    ) -> Result<T> {
        let place = self.span(e);
        let inner = syntax::parse_expression(string(e)?)
            .map_err(|err| Error::syntax(format!("in this string: {err}")).at(place))?;
        let outer = self.place.replace(place);
        let result = read(self, &inner);
        self.place = outer;
        result
    }

    /// A typed expression; plain numbers have their default type.
    pub(crate) fn expr(&mut self, e: &ast::Expr) -> Result<Expr> {
        let value = self.value(e)?;
        let described =
            matches!(value, TextValue::Str(_) | TextValue::Buffer(_)).then(|| value.describe());
        match described {
            Some(found) => Err(self.error(e, format!("expected an expression, found {found}"))),
            None => value.typed(self.int).map_err(|err| err.at(self.span(e))),
        }
    }

    /// An expression of a type: plain numbers take it, others are converted.
    pub(crate) fn expr_of(&mut self, e: &ast::Expr, to: DType) -> Result<Expr> {
        let value = self.value(e)?;
        if let TextValue::Buffer(_) | TextValue::Str(_) = value {
            return Err(self.error(e, format!("expected {to}, found {}", value.describe())));
        }
        value.convert(to, self.int).map_err(|err| err.at(self.span(e)))
    }

    /// An argument of a call that may be anything: a buffer stands for its pointer.
    pub(crate) fn argument(&mut self, e: &ast::Expr) -> Result<Expr> {
        self.value(e)?.typed(self.int).map_err(|err| err.at(self.span(e)))
    }

    pub(crate) fn condition(&mut self, e: &ast::Expr) -> Result<Expr> {
        self.value(e)?.condition(self.int).map_err(|err| err.at(self.span(e)))
    }

    /// An integer, such as an index or an extent.
    pub(crate) fn integer(&mut self, e: &ast::Expr) -> Result<Expr> {
        let x = self.expr(e)?;
        if x.dtype().is_int() {
            Ok(x)
        } else {
            Err(self.error(e, format!("expected an integer, found {}", x.dtype())))
        }
    }

    /// A constant integer.
    pub(crate) fn constant(&mut self, e: &ast::Expr) -> Result<i64> {
        let value = match self.value(e)? {
            TextValue::Int(v) => i64::try_from(v).ok(),
            TextValue::Typed(x) if x.dtype().is_int() => x.as_int(),
            _ => None,
        };
        value.ok_or_else(|| self.error(e, "expected a constant integer"))
    }

    /// A constant that counts something.
    pub(crate) fn count<T: TryFrom<i64>>(&mut self, e: &ast::Expr) -> Result<T> {
        let v = self.constant(e)?;
        if v < 0 {
            Err(self.out_of_range(e, v))
        } else {
            T::try_from(v).map_err(|_| self.out_of_range(e, v))
        }
    }

    fn out_of_range(&self, e: &ast::Expr, v: i64) -> Error {
        self.error(e, format!("{v} is out of range here"))
    }

    /// A data type: a string, or `T.float32`.
    pub(crate) fn dtype(&mut self, e: &ast::Expr) -> Result<DType> {
        let name = match e {
            ast::Expr::StringLiteral(s) => s.value.to_str().to_owned(),
            _ => match self.path(e) {
                Some((Space::T, name)) => name,
                _ => return Err(self.error(e, "expected a data type, such as \"float32\"")),
            },
        };
        name.parse::<DType>().map_err(|err| err.at(self.span(e)))
    }

    /// The vocabulary and the name in it that a callee means, if it means one.
    pub(crate) fn path(&self, e: &ast::Expr) -> Option<(Space, String)> {
        let mut parts = Vec::new();
        let mut at = e;
        loop {
            match at {
                ast::Expr::Attribute(a) => {
                    parts.push(a.attr.as_str());
                    at = &a.value;
                }
                ast::Expr::Name(n) => {
                    parts.push(n.id.as_str());
                    break;
                }
                _ => return None,
            }
        }
        parts.reverse();
        let (root, mut rest) = parts.split_first()?;
        if self.env.get(root).is_some() {
            return None;
        }
        if *root == "tvm" {
            // `tvm.script.ir_module`, `tvm.tir.undef`
            if rest.first() == Some(&"script") {
                rest = &rest[1..];
            }
            let space = rest.first().and_then(|s| self.spaces.get(*s));
            return Some(match space {
                Some(space) => (*space, rest[1..].join(".")),
                None => (Space::I, rest.join(".")),
            });
        }
        match (self.spaces.get(*root), rest.is_empty()) {
            (Some(space), false) => Some((*space, rest.join("."))),
            (Some(_), true) => None,
            (None, true) => Some((Space::Bare, (*root).to_owned())),
            (None, false) => None,
        }
    }

    /// What an expression stands for.
    pub(crate) fn value(&mut self, e: &ast::Expr) -> Result<TextValue> {
        let result = match e {
            ast::Expr::BinOp(_) => self.chain(e),
            ast::Expr::BoolOp(b) => self.logic(b),
            ast::Expr::UnaryOp(u) => self.unary(u),
            ast::Expr::Compare(c) => self.comparison(c),
            ast::Expr::Call(c) => self.call(c),
            ast::Expr::Subscript(s) => self.element(s),
            ast::Expr::Attribute(a) => self.attribute(e, a),
            _ => self.atom(e),
        };
        result.map_err(|err| err.at(self.span(e)))
    }

    fn atom(&mut self, e: &ast::Expr) -> Result<TextValue> {
        match e {
            ast::Expr::NumberLiteral(n) => match &n.value {
                ast::Number::Int(v) => match v.as_u64() {
                    Some(v) => Ok(TextValue::Int(i128::from(v))),
                    None => Err(Error::syntax("the number does not fit in 64 bits")),
                },
                ast::Number::Float(v) => Ok(TextValue::Float(*v)),
                ast::Number::Complex { .. } => Err(Error::syntax("complex numbers are not values")),
            },
            ast::Expr::BooleanLiteral(b) => Ok(TextValue::Bool(b.value)),
            ast::Expr::StringLiteral(s) => Ok(TextValue::Str(s.value.to_str().into())),
            ast::Expr::NoneLiteral(_) => Ok(TextValue::None),
            ast::Expr::Name(n) => self.name(&n.id),
            ast::Expr::If(_) => Err(Error::syntax("`a if c else b` is not an expression here")
                .help("write T.if_then_else(c, a, b), or T.Select(c, a, b) to evaluate both")),
            ast::Expr::Tuple(_) => Err(Error::syntax("expected an expression, found a tuple")),
            ast::Expr::List(_) => Err(Error::syntax("expected an expression, found a list")),
            ast::Expr::Slice(_) => Err(Error::syntax("expected an expression, found a slice")),
            _ => Err(Error::syntax("expected an expression")),
        }
    }

    fn name(&self, name: &str) -> Result<TextValue> {
        match self.env.get(name) {
            Some(Item::Var(v)) => Ok(TextValue::Typed(v.expr())),
            Some(Item::Buffer(b)) => Ok(TextValue::Buffer(b.clone())),
            Some(Item::Graph(_)) => {
                Err(Error::syntax(format!("`{name}` is a tensor, not a scalar expression")))
            }
            Some(Item::Module) => Err(Error::syntax(format!("`{name}` is the module"))),
            Some(Item::Local(_)) => {
                Err(Error::syntax(format!("`{name}` is a function, not a scalar expression")))
            }
            Some(Item::Axes(axes)) => {
                Err(Error::syntax(format!("`{name}` stands for {} axes", axes.len())))
            }
            Some(Item::Thread(_)) => {
                Err(Error::syntax(format!("the thread axis `{name}` has no extent yet"))
                    .help(format!("write `T.launch_thread({name}, extent)` first")))
            }
            None => Err(self.unknown(name)),
        }
    }

    /// The error for a name that stands for nothing.
    pub(crate) fn unknown(&self, name: &str) -> Error {
        Error::syntax(format!("unknown name `{name}`")).did_you_mean(name, self.env.names())
    }

    /// Operators that associate to the left, without recursion along the chain.
    fn chain(&mut self, e: &ast::Expr) -> Result<TextValue> {
        let mut links = Vec::new();
        let mut at = e;
        while let ast::Expr::BinOp(b) = at {
            links.push(b);
            at = &b.left;
        }
        let mut value = self.value(at)?;
        for b in links.into_iter().rev() {
            let right = self.value(&b.right)?;
            value = self.operator(b.op, value, right).map_err(|err| err.at(self.span(b)))?;
        }
        Ok(value)
    }

    /// A Python operator on two values.
    pub(crate) fn operator(
        &mut self,
        op: ast::Operator,
        a: TextValue,
        b: TextValue,
    ) -> Result<TextValue> {
        use ast::Operator::*;
        let op = match op {
            Add => BinOp::Add,
            Sub => BinOp::Sub,
            Mult => BinOp::Mul,
            Div => BinOp::Div,
            FloorDiv => BinOp::FloorDiv,
            Mod => BinOp::FloorMod,
            LShift => return self.intrinsic(Intrin::Shl, vec![a, b]),
            RShift => return self.intrinsic(Intrin::Shr, vec![a, b]),
            BitAnd => return self.intrinsic(Intrin::BitAnd, vec![a, b]),
            BitOr => return self.intrinsic(Intrin::BitOr, vec![a, b]),
            BitXor => return self.intrinsic(Intrin::BitXor, vec![a, b]),
            Pow => return self.intrinsic(Intrin::Pow, vec![a, b]),
            MatMult => return Err(Error::syntax("`@` is not an operator of scalars")),
        };
        self.binary(op, a, b)
    }

    fn binary(&mut self, op: BinOp, a: TextValue, b: TextValue) -> Result<TextValue> {
        a.operand().and_then(|()| b.operand())?;
        binary(op, a, b, self.int)
    }

    fn logic(&mut self, b: &ast::ExprBoolOp) -> Result<TextValue> {
        let op = match b.op {
            ast::BoolOp::And => BinOp::And,
            ast::BoolOp::Or => BinOp::Or,
        };
        let mut values = b.values.iter();
        let first = values.next().ok_or_else(|| Error::internal("an empty condition"))?;
        let mut value = self.value(first)?;
        for (i, e) in values.enumerate() {
            let right = self.value(e)?;
            // A wrong operand is reported at its own place.
            let (l, r) = (value.clone(), right.clone());
            value = match self.binary(op, value, right) {
                Ok(v) => v,
                Err(err) => {
                    let at = match (i, l.condition(self.int), r.condition(self.int)) {
                        (0, Err(_), _) => first,
                        _ => e,
                    };
                    return Err(err.at(self.span(at)));
                }
            };
        }
        Ok(value)
    }

    fn unary(&mut self, u: &ast::ExprUnaryOp) -> Result<TextValue> {
        let value = self.value(&u.operand)?;
        match (u.op, value) {
            (
                ast::UnaryOp::UAdd,
                v @ (TextValue::Int(_) | TextValue::Float(_) | TextValue::Typed(_)),
            ) => Ok(v),
            (ast::UnaryOp::USub, TextValue::Int(v)) => Ok(TextValue::Int(-v)),
            (ast::UnaryOp::USub, TextValue::Float(v)) => Ok(TextValue::Float(-v)),
            (ast::UnaryOp::USub, TextValue::Typed(e)) => match e.kind() {
                ExprKind::Int(v) if e.dtype().is_int() => {
                    Ok(TextValue::Typed(Expr::int(v.wrapping_neg(), e.dtype())))
                }
                ExprKind::Float(v) => Ok(TextValue::Typed(Expr::float(-v, e.dtype()))),
                _ => self.binary(BinOp::Mul, TextValue::Typed(e), TextValue::Int(-1)),
            },
            (ast::UnaryOp::Invert, v) => self.intrinsic(Intrin::BitNot, vec![v]),
            (ast::UnaryOp::Not, TextValue::Bool(v)) => Ok(TextValue::Bool(!v)),
            (ast::UnaryOp::Not, v) => {
                let e = v.condition(self.int).map_err(|err| err.at(self.span(&*u.operand)))?;
                Ok(TextValue::Typed(Expr::not_node(e)))
            }
            (_, v) => Err(Error::syntax(format!("this operator does not take {}", v.describe()))),
        }
    }

    /// `a < b < c` is `a < b and b < c`.
    fn comparison(&mut self, c: &ast::ExprCompare) -> Result<TextValue> {
        let chained = c.ops.len() > 1;
        let mut left = self.value(&c.left)?;
        let mut result: Option<TextValue> = None;
        for (i, (op, e)) in c.ops.iter().zip(&c.comparators).enumerate() {
            let op = match op {
                ast::CmpOp::Eq => BinOp::Eq,
                ast::CmpOp::NotEq => BinOp::Ne,
                ast::CmpOp::Lt => BinOp::Lt,
                ast::CmpOp::LtE => BinOp::Le,
                ast::CmpOp::Gt => BinOp::Gt,
                ast::CmpOp::GtE => BinOp::Ge,
                _ => return Err(Error::syntax("`is` and `in` do not compare values")),
            };
            let right = if chained && i + 1 < c.ops.len() {
                self.copied(|p| p.value(e))?
            } else {
                self.value(e)?
            };
            let term = self.binary(op, left, right.clone())?;
            result = Some(match result {
                None => term,
                Some(so_far) => self.binary(BinOp::And, so_far, term)?,
            });
            left = right;
        }
        result.ok_or_else(|| Error::internal("an empty comparison"))
    }

    /// Reads a part of the text that will stand in the tree twice.
    fn copied<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.copies += 1;
        let result = if self.copies <= MAX_COPIES {
            read(self)
        } else {
            Err(Error::syntax("chained comparisons are nested too deeply"))
        };
        self.copies -= 1;
        result
    }

    /// `A.data`, `A.elem_offset`.
    fn attribute(&mut self, e: &ast::Expr, a: &ast::ExprAttribute) -> Result<TextValue> {
        let attr = a.attr.as_str();
        if let ast::Expr::Name(n) = &*a.value
            && let Some(Item::Buffer(b)) = self.env.get(&n.id)
        {
            return match attr {
                "data" => Ok(TextValue::Typed(b.data.expr())),
                "elem_offset" => Ok(TextValue::Typed(
                    b.elem_offset.clone().unwrap_or_else(|| Expr::int(0, DType::I32)),
                )),
                _ => Err(Error::syntax(format!("a buffer has no attribute `{attr}` here"))
                    .help("`data` and `elem_offset` can be used")),
            };
        }
        match self.path(e) {
            Some((Space::T, name)) => Err(Error::syntax(format!("`T.{name}` is not a value"))),
            _ => match &*a.value {
                ast::Expr::Name(n) if self.env.get(&n.id).is_none() => Err(self.unknown(&n.id)),
                _ => Err(Error::syntax(format!("unknown attribute `{attr}`"))),
            },
        }
    }

    /// The buffer that a subscripted name means.
    pub(crate) fn buffer(&mut self, e: &ast::Expr) -> Result<Buffer> {
        match self.value(e)? {
            TextValue::Buffer(b) => Ok(b),
            v => Err(self.error(e, format!("expected a buffer, found {}", v.describe()))),
        }
    }

    /// `A[i, j]`, or one of several axes, of which negative positions count from the end.
    fn element(&mut self, s: &ast::ExprSubscript) -> Result<TextValue> {
        if let ast::Expr::Name(n) = &*s.value
            && let Some(Item::Axes(axes)) = self.env.get(&n.id).cloned()
        {
            let at = self.constant(&s.slice).ok();
            let at =
                at.map(|k| if k < 0 { k.saturating_add_unsigned(axes.len() as u64) } else { k });
            let axis = at.and_then(|k| axes.get(usize::try_from(k).ok()?));
            return match axis {
                Some(axis) => Ok(TextValue::Typed(axis.expr())),
                None => {
                    Err(self
                        .error(&*s.slice, format!("there are {} axes, counted from 0", axes.len())))
                }
            };
        }
        let buffer = self.buffer(&s.value)?;
        let indices = self.point(&buffer, s)?;
        Ok(TextValue::Typed(Expr::load(&buffer, indices)))
    }

    /// The indices of a load or store; a slice is a vector of them.
    pub(crate) fn point(&mut self, buffer: &Buffer, s: &ast::ExprSubscript) -> Result<Vec<Expr>> {
        let indices = self.indices(buffer, s)?;
        let parts = elements(&s.slice);
        indices.into_iter().zip(parts).map(|index| self.point_index(index)).collect()
    }

    fn point_index(&self, (index, at): (Index, &ast::Expr)) -> Result<Expr> {
        match index {
            Index::Point(e) => Ok(e),
            Index::Slice(range, step) => {
                let extent = range.extent.as_int().filter(|v| *v > 0 && step > 0);
                let lanes = extent.map(|v| (v - 1) / step + 1).and_then(|v| u16::try_from(v).ok());
                match lanes {
                    Some(1) => Ok(range.min),
                    Some(lanes) => {
                        let step = Expr::int(step, range.min.dtype());
                        Ok(Expr::ramp(range.min, step, lanes))
                    }
                    None => Err(self
                        .error(at, "the number of elements of this slice is not known")
                        .help("write `a:a + n` with a constant n, or T.Ramp(a, step, n)")),
                }
            }
        }
    }

    /// The indices inside the brackets, as many as the buffer has axes.
    pub(crate) fn indices(
        &mut self,
        buffer: &Buffer,
        s: &ast::ExprSubscript,
    ) -> Result<Vec<Index>> {
        let parts = elements(&s.slice);
        if parts.len() != buffer.rank() {
            let axes = counted(buffer.rank(), "axis", "axes");
            let found = counted(parts.len(), "index", "indices");
            return Err(self.error(s, format!("`{}` has {axes}, found {found}", buffer.name)));
        }
        parts
            .iter()
            .zip(&buffer.shape)
            .map(|(e, extent)| match e {
                ast::Expr::Slice(s) => self.slice(s, extent),
                _ => self.integer(e).map(Index::Point),
            })
            .collect()
    }

    fn slice(&mut self, s: &ast::ExprSlice, whole: &Expr) -> Result<Index> {
        let step = s.step.as_ref().map_or(Ok(1), |step| self.constant(step))?;
        let min = s.lower.as_ref().map_or(Ok(TextValue::Int(0)), |e| self.value(e))?;
        let whole = TextValue::Typed(whole.clone());
        let end = s.upper.as_ref().map_or(Ok(whole), |e| self.value(e))?;
        Ok(Index::Slice(self.range(min, end).map_err(|err| err.at(self.span(s)))?, step))
    }

    /// The range from `min` up to `end`.
    pub(crate) fn range(&mut self, min: TextValue, end: TextValue) -> Result<Range> {
        let (min, end) = crate::value::unify(min, end, self.int)?;
        if !min.dtype().is_int() || min.dtype().lanes != 1 {
            return Err(Error::syntax(format!("expected integers, found {}", min.dtype())));
        }
        Ok(range_between(min, end))
    }

    /// Extents of a shape: a tuple, a list, or one extent.
    pub(crate) fn extents(&mut self, e: &ast::Expr) -> Result<Vec<Expr>> {
        elements(e).iter().map(|e| self.extent(e)).collect()
    }

    /// An extent or offset. A string holds an expression.
    pub(crate) fn extent(&mut self, e: &ast::Expr) -> Result<Expr> {
        match e {
            ast::Expr::StringLiteral(_) => self.inside(e, |p, e| p.integer(e)),
            _ => self.integer(e),
        }
    }

    /// The extents and the element type of the older form of a type: `[16, n, "float32"]`, where
    /// the element type may be left out.
    pub(crate) fn subscripted_type(&mut self, e: &ast::Expr) -> Result<(Vec<Expr>, DType)> {
        let parts = elements(e);
        let (dtype, shape) = match parts.split_last() {
            Some((d @ ast::Expr::StringLiteral(_), shape)) if !shape.is_empty() => {
                (self.dtype(d)?, shape)
            }
            _ => (DType::F32, parts),
        };
        let mut extents = Vec::new();
        for e in shape {
            extents.extend(self.extents(e)?);
        }
        Ok((extents, dtype))
    }

    fn call(&mut self, c: &ast::ExprCall) -> Result<TextValue> {
        match self.path(&c.func) {
            Some((Space::T, name)) => self.builtin(&name, c),
            Some((Space::Bare, name)) if BARE.contains(&name.as_str()) => self.builtin(&name, c),
            Some((Space::Bare, name)) if name == "float" => {
                let args = Args::bind(c, "float", &["x"])?;
                let x = args.need("x")?;
                match x {
                    ast::Expr::StringLiteral(s) => special_float(s.value.to_str())
                        .map(TextValue::Float)
                        .ok_or_else(|| self.error(x, "expected \"inf\" or \"nan\"")),
                    _ => match self.value(x)? {
                        TextValue::Int(v) => Ok(TextValue::Float(v as f64)),
                        v @ TextValue::Float(_) => Ok(v),
                        v => {
                            Err(Error::syntax(format!("expected a number, found {}", v.describe())))
                        }
                    },
                }
            }
            Some((Space::Bare, name)) => Err(Error::syntax(format!("unknown function `{name}`"))),
            Some((Space::R, name)) => {
                Err(Error::syntax(format!("`R.{name}` belongs in a graph function")))
            }
            Some((Space::I, name)) => Err(Error::syntax(format!("`I.{name}` belongs in a module"))),
            None => self.method(c),
        }
    }

    /// `x.astype("float32")`
    fn method(&mut self, c: &ast::ExprCall) -> Result<TextValue> {
        let ast::Expr::Attribute(a) = &*c.func else {
            return Err(Error::syntax("this cannot be called"));
        };
        if a.attr.as_str() != "astype" {
            if let ast::Expr::Name(n) = &*a.value
                && self.env.get(&n.id).is_none()
            {
                return Err(self.unknown(&n.id));
            }
            return Err(Error::syntax(format!("unknown method `{}`", a.attr)));
        }
        let args = Args::bind(c, "astype", &["dtype", "span"])?;
        let dtype = self.dtype(args.need("dtype")?)?;
        let value = self.expr(&a.value)?;
        Ok(TextValue::Typed(cast(value, dtype)?))
    }

    /// An intrinsic, by Python operator or by name.
    fn intrinsic(&mut self, op: Intrin, values: Vec<TextValue>) -> Result<TextValue> {
        values.iter().try_for_each(TextValue::operand)?;
        let int = self.int;
        let mut values = values.into_iter();
        let args = match (values.next(), values.next()) {
            // Of integers the wider type counts, as in arithmetic.
            (Some(TextValue::Typed(a)), Some(TextValue::Typed(b)))
                if a.dtype() == b.dtype() || !a.dtype().is_int() || !b.dtype().is_int() =>
            {
                vec![a, b]
            }
            (Some(a), Some(b)) => {
                let (a, b) = crate::value::unify(a, b, int)?;
                vec![a, b]
            }
            (Some(TextValue::Int(v)), None) if op.operands() == Operands::Float => {
                vec![Expr::float(v as f64, DType::F32)]
            }
            (Some(a), None) if op.is_hint() => vec![a.condition(int)?],
            (Some(a), None) => vec![a.typed(int)?],
            (None, _) => return Err(Error::internal("an intrinsic without arguments")),
        };
        if let Some(bad) =
            args.iter().find(|e| matches!(e.dtype().kind, TypeKind::Handle | TypeKind::Void))
        {
            return Err(Error::syntax(format!("`T.{}` does not take {}", op.name(), bad.dtype())));
        }
        Ok(TextValue::Typed(Expr::intrin(op, args)))
    }
}

fn counted(n: usize, one: &str, many: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    }
}

/// The range from `min` up to `end`, both of one type. The extent is recognised where the text
/// says it (`a:a + n`, two constants, from zero), and is the difference otherwise.
pub(crate) fn range_between(min: Expr, end: Expr) -> Range {
    let extent = match (constant_value(&min), constant_value(&end), end.kind()) {
        (Some(0), ..) => end,
        (Some(a), Some(b), _) => {
            int_literal(b - a, min.dtype()).unwrap_or_else(|_| difference(end, &min))
        }
        (.., ExprKind::Binary(BinOp::Add, x, n)) if equal::same_expr(x, &min) => n.clone(),
        _ => difference(end, &min),
    };
    Range { min, extent }
}

fn difference(end: Expr, min: &Expr) -> Expr {
    Expr::binary(BinOp::Sub, end, min.clone())
}

/// Built-ins that loose code writes without `T.`.
pub(crate) const BARE: &[&str] =
    &["if_then_else", "min", "max", "abs", "pow", "exp", "sqrt", "tanh", "undef"];

/// `inf`, `-inf` or `nan`.
pub(crate) fn special_float(text: &str) -> Option<f64> {
    match text {
        "inf" | "+inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        "nan" => Some(f64::NAN),
        _ => None,
    }
}

/// A conversion, as the text says it.
fn cast(e: Expr, dtype: DType) -> Result<Expr> {
    let from = e.dtype();
    if (is_bare(from) || is_bare(dtype)) && from != dtype || from.lanes != dtype.lanes {
        Err(Error::syntax(format!("{from} cannot be converted to {dtype}")))
    } else {
        Ok(Expr::cast_node(e, dtype))
    }
}

fn is_bare(d: DType) -> bool {
    matches!(d.kind, TypeKind::Void | TypeKind::Handle)
}
