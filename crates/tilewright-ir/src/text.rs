//! Expressions as TVMScript text.
//!
//! [`Names`] supplies the names of variables and buffers: the script printer makes them unique,
//! [`Expr`]'s `Display` uses the plain hints. Operators take Python's precedence and the fewest
//! parentheses that keep the tree.
//!
//! An integer constant of the default type (`int32`) is a plain number, any other is typed
//! (`T.int64(3)`). Python computes with plain numbers itself, and a plain number takes the type of
//! what it meets; a constant for which that would change the tree is typed too.

use std::fmt::{self, Write};

use crate::buffer::Buffer;
use crate::dtype::{DType, TypeKind};
use crate::expr::{BinOp, CallTarget, Expr, ExprKind, Var};
use crate::show::is_hidden;
use crate::visit::{self, Fold};

/// Names for what an expression mentions.
pub trait Names {
    /// Name of a variable.
    fn var(&mut self, v: &Var) -> String;
    /// Name of a buffer.
    fn buffer(&mut self, b: &Buffer) -> String;
    /// The type of integer constants that are plain numbers in the text.
    fn default_int(&self) -> DType {
        DType::I32
    }
}

/// Calls that are kept without being understood and have a text of their own, `T.<name>(...)`,
/// each with the type of its result; others are `T.call_intrin(type, name, ...)`.
pub const OPAQUE_CALLS: &[(&str, DType)] = &[
    ("address_of", DType::HANDLE),
    ("ret", DType::HANDLE),
    ("tvm_access_ptr", DType::HANDLE),
    ("tvm_bmma_sync", DType::HANDLE),
    ("tvm_fill_fragment", DType::HANDLE),
    ("tvm_load_matrix_sync", DType::HANDLE),
    ("tvm_mma_sync", DType::HANDLE),
    ("tvm_stack_alloca", DType::HANDLE),
    ("tvm_storage_sync", DType::HANDLE),
    ("tvm_store_matrix_sync", DType::HANDLE),
    ("vscale", DType::I32),
];

/// The plain hints, not made unique, and the type of integer constants that are plain numbers.
pub struct Hints(pub DType);

impl Names for Hints {
    fn var(&mut self, v: &Var) -> String {
        v.name().to_string()
    }
    fn buffer(&mut self, b: &Buffer) -> String {
        b.name.to_string()
    }
    fn default_int(&self) -> DType {
        self.0
    }
}

/// Binding strength, after Python's grammar; a larger number binds tighter.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARE: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const UNARY: u8 = 7;
const ATOM: u8 = 8;

/// The text of an expression.
pub fn expr_to_string(e: &Expr, names: &mut dyn Names) -> String {
    let mut out = String::new();
    Printer { names, out: &mut out }.expr(e, 0);
    out
}

/// The text of an expression for a message: the parts of a large one are left out (`...`).
pub fn brief(e: &Expr) -> String {
    const NODES: u32 = 48;
    if e.size() <= NODES {
        return e.to_string();
    }
    let short = (1..6).rev().map(|depth| Cut { depth }.expr(e)).find(|e| e.size() <= NODES);
    short.map_or_else(|| "...".to_owned(), |e| e.to_string())
}

/// Replaces everything below a depth by `...`.
struct Cut {
    depth: usize,
}

impl Fold for Cut {
    fn expr(&mut self, e: &Expr) -> Expr {
        if self.depth == 0 && e.size() > 1 {
            return Var::new("...", e.dtype()).expr();
        }
        self.depth = self.depth.saturating_sub(1);
        let cut = visit::fold_expr_children(self, e);
        self.depth += 1;
        cut
    }
}

/// The texts of items, with commas between them.
pub fn commas<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::new();
    for (i, item) in items.into_iter().enumerate() {
        let sep = if i > 0 { ", " } else { "" };
        let _ = write!(out, "{sep}{item}");
    }
    out
}

/// Python text of a tuple: `(a, b)`, `(a,)`, `()`.
pub fn tuple<T: fmt::Display>(
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
) -> String {
    let items = items.into_iter();
    let comma = if items.len() == 1 { "," } else { "" };
    format!("({}{comma})", commas(items))
}

/// Python text of a string literal; characters that act instead of being seen are escaped.
pub fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_hidden(c) => {
                let _ = match c as u32 {
                    code @ ..0x100 => write!(out, "\\x{code:02x}"),
                    code => write!(out, "\\u{code:04x}"),
                };
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The message of an assertion with its values: each `{}` becomes the next of them, or `?` where
/// there is none any more. Without values the text stays as it is.
pub fn fill<T: fmt::Display>(message: &str, values: &[T]) -> String {
    if values.is_empty() {
        return message.to_owned();
    }
    let mut values = values.iter();
    let mut parts = message.split("{}");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match values.next() {
            Some(value) => out.push_str(&value.to_string()),
            None => out.push('?'),
        }
        out.push_str(part);
    }
    out
}

/// The message of an assertion whose values are not known: without the clauses behind a comma that show
/// one, and with `?` in the place of those of the first clause.
pub fn without_values(message: &str) -> String {
    let mut clauses = clauses(message).into_iter();
    let first = clauses.next().unwrap_or_default().replace("{}", "?");
    let known = clauses.filter(|clause| !clause.contains("{}"));
    std::iter::once(first.as_str()).chain(known).collect::<Vec<_>>().join(", ")
}

/// What stands between commas, but for those of the indices of an access.
fn clauses(message: &str) -> Vec<&str> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for (at, c) in message.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 && message[at..].starts_with(", ") => {
                found.push(&message[start..at]);
                start = at + 2;
            }
            _ => {}
        }
    }
    found.push(&message[start..]);
    found
}

/// Shortest text of a finite float that reads back as the same value.
pub fn float_text(value: f64, dtype: DType) -> String {
    let text = match (dtype.kind, dtype.bits) {
        (TypeKind::Float, 32) => format!("{:?}", value as f32),
        _ => format!("{value:?}"),
    };
    if text.contains(['.', 'e', 'n', 'N']) { text } else { text + ".0" }
}

struct Printer<'a> {
    names: &'a mut dyn Names,
    out: &'a mut String,
}

impl Printer<'_> {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn list(&mut self, items: &[Expr]) {
        for (i, e) in items.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            self.expr(e, 0);
        }
    }

    /// Prints a call; `first` come before the other arguments. A constant is printed with its type
    /// where the arguments are `typed`.
    fn call<'e>(
        &mut self,
        name: &str,
        first: &[String],
        args: impl IntoIterator<Item = &'e Expr>,
        typed: bool,
    ) {
        self.put(&format!("{name}({}", first.join(", ")));
        for (i, e) in args.into_iter().enumerate() {
            if i + first.len() > 0 {
                self.put(", ");
            }
            if typed { self.typed(e) } else { self.expr(e, 0) }
        }
        self.put(")");
    }

    /// Whether the expression is a plain number in the text.
    fn is_plain(&self, e: &Expr) -> bool {
        let dtype = e.dtype();
        matches!(e.kind(), ExprKind::Int(_)) && dtype.is_int() && dtype == self.names.default_int()
    }

    /// Prints an expression, a constant with its type.
    fn typed(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Int(v) if self.is_plain(e) => self.put(&format!("T.{}({v})", e.dtype())),
            _ => self.expr(e, 0),
        }
    }

    /// Prints an operator or built-in in which plain numbers take the type of the other arguments.
    fn operands(&mut self, name: &str, args: &[&Expr]) {
        let mixed = args.windows(2).any(|w| w[0].dtype() != w[1].dtype());
        self.call(&format!("T.{name}"), &[], args.iter().copied(), mixed);
    }

    /// Prints with parentheses where the expression binds weaker than `min`.
    fn expr(&mut self, e: &Expr, min: u8) {
        let strength = strength(e);
        if strength < min {
            self.put("(");
        }
        self.node(e, strength);
        if strength < min {
            self.put(")");
        }
    }

    fn node(&mut self, e: &Expr, strength: u8) {
        let dtype = e.dtype();
        match e.kind() {
            ExprKind::Int(v) => match dtype.kind {
                TypeKind::Bool => self.put(if *v != 0 { "T.bool(True)" } else { "T.bool(False)" }),
                _ if self.is_plain(e) => self.put(&v.to_string()),
                TypeKind::UInt => self.put(&format!("T.{dtype}({})", *v as u64)),
                _ => self.put(&format!("T.{dtype}({v})")),
            },
            ExprKind::Float(v) => {
                if v.is_finite() {
                    self.put(&format!("T.{dtype}({})", float_text(*v, dtype)))
                } else if v.is_nan() {
                    self.put(&format!("T.{dtype}(\"nan\")"))
                } else if *v > 0.0 {
                    self.put(&format!("T.{dtype}(\"inf\")"))
                } else {
                    self.put(&format!("T.{dtype}(\"-inf\")"))
                }
            }
            ExprKind::Str(s) => self.put(&quote(s)),
            ExprKind::Var(v) => {
                let name = self.names.var(v);
                self.put(&name);
            }
            ExprKind::Cast(a) => {
                self.call("T.Cast", &[format!("\"{dtype}\"")], [a], false);
            }
            ExprKind::Binary(op, a, b) => {
                if op.is_infix() {
                    // Comparisons chain in Python, so that neither side may be one without parentheses;
                    // the other operators associate to the left.
                    if self.is_plain(a) && (self.is_plain(b) || a.dtype() != b.dtype()) {
                        self.typed(a)
                    } else {
                        self.expr(a, if op.is_compare() { strength + 1 } else { strength })
                    }
                    self.put(&format!(" {} ", op.symbol()));
                    self.expr(b, strength + 1);
                } else {
                    self.operands(op.symbol(), &[a, b])
                }
            }
            ExprKind::Not(a) => {
                self.put("not ");
                self.expr(a, NOT);
            }
            ExprKind::Select(c, t, f) => self.call("T.Select", &[], [c, t, f], false),
            ExprKind::IfThenElse(c, t, f) => self.call("T.if_then_else", &[], [c, t, f], false),
            ExprKind::Load(b, indices) => {
                let name = self.names.buffer(b);
                self.put(&name);
                self.put("[");
                if indices.is_empty() {
                    self.put("()")
                } else {
                    self.list(indices)
                }
                self.put("]");
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => {
                self.operands(op.name(), &args.iter().collect::<Vec<_>>());
            }
            ExprKind::Call(CallTarget::Reinterpret(_), args) => {
                self.call("T.reinterpret", &[format!("\"{dtype}\"")], args, true);
            }
            ExprKind::Call(CallTarget::Extern(name), args) => {
                let first = [format!("\"{dtype}\""), quote(name)];
                self.call("T.call_extern", &first, args, false);
            }
            ExprKind::Call(CallTarget::Opaque(name), args) => {
                let first = [format!("\"{dtype}\""), quote(name)];
                if OPAQUE_CALLS.contains(&(name, dtype)) {
                    self.call(&format!("T.{name}"), &[], args, false)
                } else {
                    self.call("T.call_intrin", &first, args, false)
                }
            }
            ExprKind::Let(v, value, body) => {
                self.put("T.Let(");
                self.expr(body, 0);
                let name = self.names.var(v);
                self.put(&format!(", where={{{name}: "));
                self.expr(value, 0);
                self.put("})");
            }
            ExprKind::Ramp(base, stride) => {
                self.put("T.Ramp(");
                self.list(&[base.clone(), stride.clone()]);
                self.put(&format!(", {})", dtype.lanes));
            }
            ExprKind::Broadcast(a) => {
                self.put("T.Broadcast(");
                self.expr(a, 0);
                self.put(&format!(", {})", dtype.lanes));
            }
            ExprKind::Undef => self.put(&format!("T.undef(dtype=\"{dtype}\")")),
        }
    }
}

fn strength(e: &Expr) -> u8 {
    match e.kind() {
        ExprKind::Binary(op, ..) => match op {
            BinOp::Or => OR,
            BinOp::And => AND,
            _ if op.is_compare() => COMPARE,
            BinOp::Add | BinOp::Sub => SUM,
            BinOp::Mul | BinOp::Div | BinOp::FloorDiv | BinOp::FloorMod => PRODUCT,
            _ => ATOM,
        },
        ExprKind::Not(_) => NOT,
        ExprKind::Int(v) if *v < 0 && e.dtype().is_int() => UNARY,
        _ => ATOM,
    }
}

/// The text for messages: that of a very large expression is [`brief`], since terms that are shared
/// stand in it each time.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NODES: u32 = 1 << 12;
        if self.size() <= NODES {
            f.write_str(&expr_to_string(self, &mut Hints(DType::I32)))
        } else {
            f.write_str(&brief(self))
        }
    }
}
