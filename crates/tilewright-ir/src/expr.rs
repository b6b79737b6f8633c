//! Expressions.
//!
//! An [`Expr`] is a shared immutable tree whose every node knows its type. Two ways to build one:
//! the *raw* constructors ([`Expr::binary`], [`Expr::not_node`], ...) make exactly the node that is
//! asked for, and the operators (`a + b`, [`Expr::floordiv`], ... in [`operators`](crate::operators))
//! first bring both sides to one type and fold constants and neutral elements of **integers** (`i + 0`,
//! `i * 1`, `3 * 4`).
//!
//! Division comes in two kinds that are kept apart: *floor* (`//`, `%` of Python) and
//! *truncating* (`T.truncdiv`, `T.truncmod`, those of C). `Div` is the true division of floats.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::Buffer;
use crate::dim::{Dim, SizeRange, USUAL_SIZE};
use crate::dtype::DType;
use crate::effects::{Effects, Summary};
pub use crate::intrinsic::Intrin;
use crate::scalar::Scalar;
pub use crate::scalar::{eval_int, round_to, wrap};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A fresh identity for a variable or buffer.
pub(crate) fn fresh_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// A scalar variable: loop variables, block iteration variables, shapes, let bindings, handles.
///
/// Equality and hashing go by identity, never by name.
#[derive(Clone)]
pub struct Var(Arc<VarData>);

struct VarData {
    id: u64,
    name: Arc<str>,
    dtype: DType,
    range: SizeRange,
    usual: usize,
    stands_for: Option<Dim>,
}

impl Var {
    /// A new variable, different from every other.
    pub fn new(name: impl Into<Arc<str>>, dtype: DType) -> Self {
        Self::size(name, dtype, SizeRange::ALL)
    }

    /// A new variable that, where it is a size, has its values in a range.
    pub fn size(name: impl Into<Arc<str>>, dtype: DType, range: SizeRange) -> Self {
        Self::usually(name, dtype, range, USUAL_SIZE)
    }

    /// The same, with the size that decisions about speed take it for, and nothing else does.
    pub fn usually(
        name: impl Into<Arc<str>>,
        dtype: DType,
        range: SizeRange,
        usual: usize,
    ) -> Self {
        let name = name.into();
        Var(Arc::new(VarData { id: fresh_id(), name, dtype, range, usual, stands_for: None }))
    }

    /// A new variable that stands for an expression of other sizes: proofs about it may ask which.
    pub fn standing_for(name: impl Into<Arc<str>>, dtype: DType, value: Dim) -> Self {
        let (name, range, usual) = (name.into(), value.range(), USUAL_SIZE);
        let stands_for = Some(value);
        Var(Arc::new(VarData { id: fresh_id(), name, dtype, range, usual, stands_for }))
    }

    /// A new `int32` variable, the usual type of indices.
    pub fn index(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, DType::I32)
    }

    /// A new variable with the same name, type and range.
    pub fn fresh(&self) -> Self {
        let VarData { name, dtype, range, usual, stands_for, .. } = &*self.0;
        let (name, dtype, range, usual) = (name.clone(), *dtype, *range, *usual);
        let stands_for = *stands_for;
        Var(Arc::new(VarData { id: fresh_id(), name, dtype, range, usual, stands_for }))
    }

    /// The name: a hint for printing.
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// The type of its values.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// What the variable may be where it is a size; it says nothing of other variables.
    pub fn range(&self) -> SizeRange {
        self.0.range
    }

    /// What decisions about speed take it for where it is a size, and nothing else does.
    pub fn usual(&self) -> usize {
        self.0.usual
    }

    /// The expression of other sizes that it stands for.
    pub fn stands_for(&self) -> Option<Dim> {
        self.0.stands_for
    }

    /// The identity.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// An expression that reads the variable.
    pub fn expr(&self) -> Expr {
        Expr::var(self)
    }
}

/// Equality and hashing by identity, and the name with the identity for debugging.
macro_rules! by_identity {
    ($t:ident) => {
        impl PartialEq for $t {
            fn eq(&self, other: &Self) -> bool {
                self.0.id == other.0.id
            }
        }
        impl Eq for $t {}
        impl std::hash::Hash for $t {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.0.id.hash(state);
            }
        }
        impl std::fmt::Debug for $t {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}#{}", self.0.name, self.0.id)
            }
        }
    };
}
pub(crate) use by_identity;

by_identity!(Var);
impl PartialOrd for Var {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Var {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.id.cmp(&other.0.id)
    }
}

/// Its name.
impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}

/// Operators of two operands of one type. Comparisons and logic give `bool` of the same lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// `a + b`; integers wrap.
    Add,
    /// `a - b`; integers wrap.
    Sub,
    /// `a * b`; integers wrap.
    Mul,
    /// `a / b` of floats.
    Div,
    /// `a // b` of integers, rounded towards minus infinity.
    FloorDiv,
    /// `a % b` of integers, with the sign of `b`.
    FloorMod,
    /// Integer division rounded towards zero.
    TruncDiv,
    /// Remainder with the sign of `a`.
    TruncMod,
    /// The smaller; `NaN` if either is `NaN`.
    Min,
    /// The larger; `NaN` if either is `NaN`.
    Max,
    /// `a == b`.
    Eq,
    /// `a != b`.
    Ne,
    /// `a < b`.
    Lt,
    /// `a <= b`.
    Le,
    /// `a > b`.
    Gt,
    /// `a >= b`.
    Ge,
    /// Both, of `bool`; the right side is evaluated only if the left is true.
    And,
    /// Either, of `bool`; the right side is evaluated only if the left is false.
    Or,
}

impl BinOp {
    /// Whether the result is `bool` although the operands need not be.
    pub fn is_compare(self) -> bool {
        matches!(self, BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge)
    }

    /// Whether operands and result are `bool`.
    pub fn is_logic(self) -> bool {
        matches!(self, BinOp::And | BinOp::Or)
    }

    /// Whether it stands between its operands in text; else it is a function.
    pub fn is_infix(self) -> bool {
        !matches!(self, BinOp::TruncDiv | BinOp::TruncMod | BinOp::Min | BinOp::Max)
    }

    /// What it is called in text.
    pub fn symbol(self) -> &'static str {
        match self {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::FloorDiv => "//",
            BinOp::FloorMod => "%",
            BinOp::TruncDiv => "truncdiv",
            BinOp::TruncMod => "truncmod",
            BinOp::Min => "min",
            BinOp::Max => "max",
            BinOp::Eq => "==",
            BinOp::Ne => "!=",
            BinOp::Lt => "<",
            BinOp::Le => "<=",
            BinOp::Gt => ">",
            BinOp::Ge => ">=",
            BinOp::And => "and",
            BinOp::Or => "or",
        }
    }
}

/// What a call calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CallTarget {
    /// A built-in without side effects.
    Intrin(Intrin),
    /// `T.reinterpret(dtype, value)`: the bits of a number as one of this scalar type, which has as
    /// many. Integers and floats; `bool` has no bits of its own.
    Reinterpret(DType),
    /// `T.call_extern(dtype, name, args...)`: a C function; it may have any effect.
    Extern(Arc<str>),
    /// `T.<name>(args...)` that we keep but do not understand; it may have any effect.
    Opaque(Arc<str>),
}

/// An expression: a shared immutable tree.
#[derive(Clone)]
pub struct Expr(Arc<ExprData>);

struct ExprData {
    dtype: DType,
    /// Derived from the node when it is made, and the same ever after.
    summary: Summary,
    kind: ExprKind,
}

/// The node of an [`Expr`].
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// Integer or `bool` constant (0 or 1); `u64` above `i64::MAX` by its bits.
    Int(i64),
    /// Floating-point constant, already rounded to the node's type.
    Float(f64),
    /// Text; only as an argument of calls.
    Str(Arc<str>),
    /// The value of a variable.
    Var(Var),
    /// Conversion to the node's type: float to int truncates, to `bool` compares with zero.
    Cast(Expr),
    /// Two operands.
    Binary(BinOp, Expr, Expr),
    /// Negation of a `bool`.
    Not(Expr),
    /// `c ? t : f`, with both evaluated.
    Select(Expr, Expr, Expr),
    /// `c ? t : f`, with only the taken side evaluated.
    IfThenElse(Expr, Expr, Expr),
    /// The element of a buffer at the indices.
    Load(Buffer, Vec<Expr>),
    Call(CallTarget, Vec<Expr>),
    /// Binds a variable in the last expression: variable, value, body.
    Let(Var, Expr, Expr),
    /// `base, base + stride, ...` for the node's lanes.
    Ramp(Expr, Expr),
    /// The scalar in each of the node's lanes.
    Broadcast(Expr),
    /// Some valid but arbitrary value; two of them are not equal.
    Undef,
}

impl ExprKind {
    /// The type of the node, where it follows from its parts. Of a call that is the `given` type,
    /// with as many lanes as its arguments have; of a vector, its lanes are given.
    pub(crate) fn dtype(&self, given: DType) -> DType {
        match self {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Cast(_)
            | ExprKind::Undef => given,
            ExprKind::Var(v) => v.dtype(),
            ExprKind::Binary(op, a, _) if op.is_compare() || op.is_logic() => {
                DType::BOOL.with_lanes(a.dtype().lanes)
            }
            ExprKind::Binary(_, a, _)
            | ExprKind::Not(a)
            | ExprKind::Select(_, a, _)
            | ExprKind::IfThenElse(_, a, _)
            | ExprKind::Let(.., a) => a.dtype(),
            // The lanes follow those of the last index.
            ExprKind::Load(buffer, indices) => {
                let lanes = indices.last().map_or(1, |e| e.dtype().lanes);
                buffer.dtype().with_lanes(lanes.saturating_mul(buffer.dtype().lanes))
            }
            ExprKind::Call(_, args) => given.with_lanes(
                args.iter().map(|e| e.dtype().lanes).fold(given.lanes.max(1), u16::max),
            ),
            ExprKind::Ramp(a, _) | ExprKind::Broadcast(a) => a.dtype().with_lanes(given.lanes),
        }
    }
}

impl Expr {
    /// A node whose type follows from its parts.
    fn of_parts(kind: ExprKind) -> Self {
        let dtype = kind.dtype(DType::VOID);
        Self::new(kind, dtype)
    }

    /// A node of a given type, unchecked; prefer the other constructors.
    pub fn new(kind: ExprKind, dtype: DType) -> Self {
        let summary = Summary::from_kind(&kind, dtype);
        Expr(Arc::new(ExprData { dtype, summary, kind }))
    }

    /// The node.
    pub fn kind(&self) -> &ExprKind {
        &self.0.kind
    }

    /// The type of the value.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// What the node keeps of itself and its parts.
    pub(crate) fn summary(&self) -> Summary {
        self.0.summary
    }

    /// What evaluating it may do.
    pub fn effects(&self) -> Effects {
        self.0.summary.effects
    }

    /// The number of nodes as text, where a shared node counts each time that it occurs there; at
    /// most `u32::MAX`.
    pub fn size(&self) -> u32 {
        self.0.summary.size
    }

    /// A bit for each variable that is read; other variables may have the same.
    pub(crate) fn var_bits(&self) -> u64 {
        self.0.summary.vars
    }

    /// Whether the node has parts and several owners, so that a walk may come to it again.
    pub fn is_shared(&self) -> bool {
        self.0.summary.size > 1 && Arc::strong_count(&self.0) > 1
    }

    /// Whether both are the same node in memory.
    pub fn ptr_eq(&self, other: &Expr) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Address of the node, as a key for memo tables that live shorter than the expression.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// An integer or `bool` constant of a type, wrapped to its width.
    pub fn int(value: i64, dtype: DType) -> Self {
        Self::new(ExprKind::Int(wrap(value, dtype)), dtype)
    }

    /// An `int32` constant.
    pub fn i32(value: i32) -> Self {
        Self::int(i64::from(value), DType::I32)
    }

    /// A `bool` constant.
    pub fn bool(value: bool) -> Self {
        Self::int(i64::from(value), DType::BOOL)
    }

    /// A floating-point constant, rounded to the type.
    pub fn float(value: f64, dtype: DType) -> Self {
        Self::new(ExprKind::Float(round_to(value, dtype)), dtype)
    }

    /// A constant of any type: `value` as float, integer or `bool`.
    pub fn constant(value: f64, dtype: DType) -> Self {
        if dtype.is_float() { Self::float(value, dtype) } else { Self::int(value as i64, dtype) }
    }

    /// Text, for arguments of calls.
    pub fn str(text: impl Into<Arc<str>>) -> Self {
        Self::new(ExprKind::Str(text.into()), DType::HANDLE)
    }

    /// The value of a variable.
    pub fn var(var: &Var) -> Self {
        Self::of_parts(ExprKind::Var(var.clone()))
    }

    /// Conversion; nothing where the type is already right, and integer constants fold.
    pub fn cast(self, dtype: DType) -> Self {
        match self.kind() {
            _ if self.dtype() == dtype => self,
            ExprKind::Int(v) if dtype.is_int() && dtype.lanes == 1 => Self::int(*v, dtype),
            _ => Self::cast_node(self, dtype),
        }
    }

    /// Raw conversion node.
    pub fn cast_node(value: Expr, dtype: DType) -> Self {
        Self::new(ExprKind::Cast(value), dtype)
    }

    /// Raw node of two operands, which must have one type.
    pub fn binary(op: BinOp, a: Expr, b: Expr) -> Self {
        Self::of_parts(ExprKind::Binary(op, a, b))
    }

    /// Raw negation of a `bool`.
    pub fn not_node(value: Expr) -> Self {
        Self::of_parts(ExprKind::Not(value))
    }

    /// Eager selection; both values have one type.
    pub fn select(cond: Expr, t: Expr, f: Expr) -> Self {
        Self::of_parts(ExprKind::Select(cond, t, f))
    }

    /// Lazy selection; both values have one type.
    pub fn if_then_else(cond: Expr, t: Expr, f: Expr) -> Self {
        Self::of_parts(ExprKind::IfThenElse(cond, t, f))
    }

    /// An element of a buffer. The lanes follow those of the last index.
    pub fn load(buffer: &Buffer, indices: Vec<Expr>) -> Self {
        Self::of_parts(ExprKind::Load(buffer.clone(), indices))
    }

    /// A call with a result of the given type.
    pub fn call(target: CallTarget, args: Vec<Expr>, dtype: DType) -> Self {
        Self::new(ExprKind::Call(target, args), dtype)
    }

    /// A call of a built-in; the type follows the first argument (`bool` for predicates).
    pub fn intrin(op: Intrin, args: Vec<Expr>) -> Self {
        let first = args.first().map_or(DType::VOID, Expr::dtype);
        Self::call(CallTarget::Intrin(op), args, op.result(first))
    }

    /// The bits of a number as one of another scalar type, in each lane; a constant folds, unless the
    /// result is a `NaN`, whose bits a constant does not keep.
    pub fn reinterpret(value: Expr, dtype: DType) -> Self {
        let known = Scalar::constant(&value).map(|v| v.reinterpret(dtype));
        match known {
            Some(v) if !v.as_f64().is_nan() => v.expr(),
            _ => Self::reinterpret_node(value, dtype),
        }
    }

    /// [`Expr::reinterpret`] as it stands.
    pub fn reinterpret_node(value: Expr, dtype: DType) -> Self {
        let lanes = value.dtype().lanes;
        let target = CallTarget::Reinterpret(dtype.scalar());
        Self::call(target, vec![value], dtype.with_lanes(lanes))
    }

    /// `let var = value in body`.
    pub fn let_in(var: Var, value: Expr, body: Expr) -> Self {
        Self::of_parts(ExprKind::Let(var, value, body))
    }

    /// `base + stride * [0, lanes)`.
    pub fn ramp(base: Expr, stride: Expr, lanes: u16) -> Self {
        let dtype = base.dtype().with_lanes(lanes);
        Self::new(ExprKind::Ramp(base, stride), dtype)
    }

    /// A scalar in each lane.
    pub fn broadcast(value: Expr, lanes: u16) -> Self {
        let dtype = value.dtype().with_lanes(lanes);
        Self::new(ExprKind::Broadcast(value), dtype)
    }

    /// Some valid but arbitrary value.
    pub fn undef(dtype: DType) -> Self {
        Self::new(ExprKind::Undef, dtype)
    }

    /// The value of an integer or `bool` constant.
    pub fn as_int(&self) -> Option<i64> {
        match self.kind() {
            ExprKind::Int(v) => Some(*v),
            _ => None,
        }
    }

    /// The value of a floating-point constant.
    pub fn as_float(&self) -> Option<f64> {
        match self.kind() {
            ExprKind::Float(v) => Some(*v),
            _ => None,
        }
    }

    /// The variable, if the expression is just that.
    pub fn as_var(&self) -> Option<&Var> {
        match self.kind() {
            ExprKind::Var(v) => Some(v),
            _ => None,
        }
    }

    /// Whether this is the constant `true`.
    pub fn is_true(&self) -> bool {
        self.dtype().is_bool() && self.as_int() == Some(1)
    }

    /// Whether this is the constant `false`.
    pub fn is_false(&self) -> bool {
        self.dtype().is_bool() && self.as_int() == Some(0)
    }

    /// Whether this is `T.undef()`, in each lane.
    pub fn is_undef(&self) -> bool {
        match self.kind() {
            ExprKind::Undef => true,
            ExprKind::Broadcast(inner) => inner.is_undef(),
            _ => false,
        }
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
