//! Statements and blocks.
//!
//! A *block* is a unit of computation in the sense of TensorIR: iteration variables bound to
//! expressions of the loops around it, a predicate, the regions that it reads and writes, an
//! optional initialisation for reductions, and a body. A block without iteration variables is a
//! named region.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::dtype::DType;
use crate::effects::{Effects, Summary};
use crate::error::Span;
use crate::expr::{Expr, Var};
use crate::extent::holds;
use crate::tensor::Tensor;

/// Most loops, conditions, blocks and bindings that may be around each other in a program.
pub const MAX_NESTING: usize = 300;

/// A statement: a shared immutable tree.
#[derive(Clone, Debug)]
pub struct Stmt(Arc<StmtData>);

#[derive(Debug)]
struct StmtData {
    kind: StmtKind,
    span: Option<Span>,
    /// Derived from the node when it is made, and the same ever after.
    summary: Summary,
}

/// Value of an annotation.
#[derive(Clone, Debug)]
pub enum Attr {
    /// Nothing.
    None,
    /// Truth.
    Bool(bool),
    /// Number.
    Int(i64),
    /// Number.
    Float(f64),
    /// Text.
    Str(Arc<str>),
    /// An expression that is not a plain constant (a typed literal, a variable).
    Expr(Expr),
    /// A list or tuple.
    List(Vec<Attr>),
    /// A dictionary with text keys.
    Map(Attrs),
}

/// Annotations by name.
pub type Attrs = BTreeMap<Arc<str>, Attr>;

/// How a loop runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForKind {
    /// One iteration after the other.
    Serial,
    /// Iterations in any order, possibly at once.
    Parallel,
    /// One instruction for many iterations.
    Vectorized,
    /// A copy of the body for each iteration.
    Unrolled,
    /// One iteration for each thread of the named axis, such as `threadIdx.x`.
    ThreadBinding(Arc<str>),
}

impl ForKind {
    /// What a loop over threads is bound to, such as `threadIdx.x`.
    pub fn thread_name(&self) -> Option<&str> {
        match self {
            ForKind::ThreadBinding(name) => Some(name),
            _ => None,
        }
    }

    /// The axis of a loop over the threads of a group: 0 for `threadIdx.x`, 1 for `y`, 2 for `z`.
    pub fn thread_axis(&self) -> Option<usize> {
        self.thread_name()?.strip_prefix("threadIdx.").and_then(axis_number)
    }

    /// The axis of a loop over groups of threads: 0 for `blockIdx.x`, 1 for `y`, 2 for `z`.
    pub fn group_axis(&self) -> Option<usize> {
        self.thread_name()?.strip_prefix("blockIdx.").and_then(axis_number)
    }
}

fn axis_number(axis: &str) -> Option<usize> {
    ["x", "y", "z"].iter().position(|a| *a == axis)
}

/// How the iterations of a loop run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOnce {
    /// On several threads, at any speed.
    Threads,
    /// As lanes of vectors: each statement for all iterations.
    Lanes,
}

impl AtOnce {
    /// That of a kind of loop; `None` where iterations run one after the other.
    pub fn from_kind(kind: &ForKind) -> Option<AtOnce> {
        match kind {
            ForKind::Serial | ForKind::Unrolled => None,
            ForKind::Parallel | ForKind::ThreadBinding(_) => Some(AtOnce::Threads),
            ForKind::Vectorized => Some(AtOnce::Lanes),
        }
    }

    pub fn of_loop(s: &Stmt) -> Option<AtOnce> {
        match s.kind() {
            StmtKind::For { kind, .. } => AtOnce::from_kind(kind),
            _ => None,
        }
    }
}

/// What a block's iteration variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IterKind {
    /// Each value writes cells of its own.
    Spatial,
    /// Values are combined into the same cells.
    Reduce,
    /// Nothing is known.
    Opaque,
}

/// `min, min + 1, ..., min + extent - 1`.
#[derive(Clone, Debug)]
pub struct Range {
    /// First value.
    pub min: Expr,
    /// Number of values.
    pub extent: Expr,
}

impl Range {
    /// `0..extent`, with the type of `extent`.
    pub fn upto(extent: Expr) -> Self {
        Range { min: Expr::int(0, extent.dtype()), extent }
    }

    /// `start..end`, where a type holds the ends and how many values are between them.
    pub fn between(start: i64, end: i64, dtype: DType) -> Option<Self> {
        let of = |v: i128| holds(dtype, v).then(|| Expr::int(v as i64, dtype));
        Some(Range { min: of(start.into())?, extent: of(i128::from(end) - i128::from(start))? })
    }

    /// The one value `index`.
    pub fn point(index: Expr) -> Self {
        let extent = Expr::int(1, index.dtype().scalar());
        Range { min: index, extent }
    }

    /// Whether the extent is the constant one.
    pub fn is_point(&self) -> bool {
        self.extent.as_int() == Some(1)
    }
}

/// A box of a buffer: one range an axis.
#[derive(Clone, Debug)]
pub struct Region {
    pub buffer: Buffer,
    /// One range an axis.
    pub ranges: Vec<Range>,
}

impl Region {
    /// All of a buffer.
    pub fn whole(buffer: &Buffer) -> Self {
        let ranges = buffer.shape.iter().cloned().map(Range::upto).collect();
        Region { buffer: buffer.clone(), ranges }
    }

    /// One cell of a buffer.
    pub fn cell(buffer: &Buffer, indices: &[Expr]) -> Self {
        let ranges = indices.iter().cloned().map(Range::point).collect();
        Region { buffer: buffer.clone(), ranges }
    }
}

/// A block's iteration variable.
#[derive(Clone, Debug)]
pub struct IterVar {
    /// The variable.
    pub var: Var,
    /// Its values.
    pub domain: Range,
    /// What it stands for.
    pub kind: IterKind,
}

impl IterVar {
    /// One that stands for a loop whose iterations are independent of each other.
    pub fn spatial(var: &Var, domain: Range) -> Self {
        IterVar { var: var.clone(), domain, kind: IterKind::Spatial }
    }
}

/// `buffer` is the part of another buffer that `source` says.
#[derive(Clone, Debug)]
pub struct MatchRegion {
    /// The view.
    pub buffer: Buffer,
    /// What it views.
    pub source: Region,
}

/// A block. Its bindings to loops are in [`StmtKind::Block`].
#[derive(Clone, Debug)]
pub struct Block {
    /// Name, by which schedules find it.
    pub name: Arc<str>,
    /// Iteration variables.
    pub iters: Vec<IterVar>,
    /// What is read, where the text says it.
    pub reads: Option<Vec<Region>>,
    /// What is written, where the text says it.
    pub writes: Option<Vec<Region>>,
    pub annotations: Attrs,
    /// Buffers that live while the block runs.
    pub allocs: Vec<Buffer>,
    /// Views of parts of buffers.
    pub matches: Vec<MatchRegion>,
    /// Runs before the body where every reduction variable has its first value.
    pub init: Option<Stmt>,
    /// The computation.
    pub body: Stmt,
}

impl Block {
    /// A block with nothing but a name and a body.
    pub fn new(name: impl Into<Arc<str>>, body: Stmt) -> Self {
        Block {
            name: name.into(),
            iters: Vec::new(),
            reads: None,
            writes: None,
            annotations: Attrs::new(),
            allocs: Vec::new(),
            matches: Vec::new(),
            init: None,
            body,
        }
    }

    /// Whether this is a plain container for allocations: no variables, regions, annotations,
    /// views or initialisation, and the name `root`.
    pub fn is_plain_root(&self) -> bool {
        &*self.name == "root"
            && self.iters.is_empty()
            && self.reads.is_none()
            && self.writes.is_none()
            && self.annotations.is_empty()
            && self.matches.is_empty()
            && self.init.is_none()
    }
}

/// The node of a [`Stmt`].
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `buffer[indices] = value`.
    Store {
        /// Written buffer.
        buffer: Buffer,
        /// One index an axis; the last may have lanes.
        indices: Vec<Expr>,
        /// The new element.
        value: Expr,
    },
    /// A loop.
    For {
        /// Loop variable.
        var: Var,
        /// Its values.
        range: Range,
        /// How it runs.
        kind: ForKind,
        annotations: Attrs,
        /// What is repeated.
        body: Stmt,
    },
    /// `if cond: then else: otherwise`.
    If {
        /// Condition.
        cond: Expr,
        /// Where it is true.
        then: Stmt,
        /// Where it is false.
        otherwise: Option<Stmt>,
    },
    /// Binds a variable in the body.
    Let {
        /// Variable.
        var: Var,
        value: Expr,
        /// Where it is bound.
        body: Stmt,
    },
    /// One after the other; never directly inside another sequence, never of length one.
    Seq(Vec<Stmt>),
    /// Memory for the buffer while the body runs; its content is not initialised.
    Allocate {
        /// The buffer, whose pointer this defines.
        buffer: Buffer,
        annotations: Attrs,
        /// Where it lives.
        body: Stmt,
    },
    /// Memory that holds a tensor while the body runs; nothing writes it.
    Constant {
        /// The buffer, whose pointer this defines; compact, and of the tensor's type and shape.
        buffer: Buffer,
        /// What it holds.
        value: Tensor,
        /// Where it lives.
        body: Stmt,
    },
    /// Another view (`T.decl_buffer`) of memory that exists, for the body.
    Declare {
        /// The view; its pointer is defined outside.
        buffer: Buffer,
        /// Where it is known.
        body: Stmt,
    },
    /// A block with the values of its iteration variables.
    Block {
        /// One value an iteration variable.
        bindings: Vec<Expr>,
        /// The block runs only where this holds (`T.where`).
        predicate: Expr,
        block: Arc<Block>,
    },
    /// The expression holds here.
    Assume(Expr),
    /// Stop with the message if the condition is false.
    Assert {
        /// Condition.
        cond: Expr,
        /// Message; each `{}` in it stands for one of `values`, see
        /// [`fill`](crate::text::fill).
        message: Arc<str>,
        /// Integers of the message, evaluated only where the condition is false.
        values: Vec<Expr>,
    },
    /// Evaluate for the side effects; a constant does nothing.
    Evaluate(Expr),
}

impl Stmt {
    /// Stops with a fixed message where the condition is false.
    pub fn assert(cond: Expr, message: impl Into<Arc<str>>) -> Self {
        Self::new(StmtKind::Assert { cond, message: message.into(), values: Vec::new() })
    }

    /// A statement without a place in a source.
    pub fn new(kind: StmtKind) -> Self {
        Self::spanned(kind, None)
    }

    /// A statement with its place.
    pub fn spanned(kind: StmtKind, span: Option<Span>) -> Self {
        let summary = Summary::of_stmt(&kind);
        Stmt(Arc::new(StmtData { kind, span, summary }))
    }

    /// What running it may do, all that is inside of it included.
    pub fn effects(&self) -> Effects {
        self.0.summary.effects
    }

    /// The number of nodes as text, of statements and of expressions; at most `u32::MAX`.
    pub fn size(&self) -> u32 {
        self.0.summary.size
    }

    /// How many loops, conditions, blocks and bindings are around each other in it, itself included.
    /// A program has at most [`MAX_NESTING`]; walks over the tree call themselves as often.
    pub fn nesting(&self) -> u32 {
        self.0.summary.nesting
    }

    /// What the node keeps of itself and its parts.
    pub(crate) fn summary(&self) -> Summary {
        self.0.summary
    }

    /// The node.
    pub fn kind(&self) -> &StmtKind {
        &self.0.kind
    }

    /// The place in the source, where there is one.
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// Where the statement is kept: the same for no two statements that are kept at once.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Whether both are the same node in memory.
    pub fn ptr_eq(&self, other: &Stmt) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// `buffer[indices] = value`.
    pub fn store(buffer: &Buffer, indices: Vec<Expr>, value: Expr) -> Self {
        Self::new(StmtKind::Store { buffer: buffer.clone(), indices, value })
    }

    /// A loop over `range`.
    pub fn for_loop(var: &Var, range: Range, kind: ForKind, body: Stmt) -> Self {
        let annotations = Attrs::new();
        Self::new(StmtKind::For { var: var.clone(), range, kind, annotations, body })
    }

    /// A serial loop over `0..extent`.
    pub fn serial(var: &Var, extent: Expr, body: Stmt) -> Self {
        Self::for_loop(var, Range::upto(extent), ForKind::Serial, body)
    }

    /// Serial loops around a body, outermost first.
    pub fn nest(loops: impl DoubleEndedIterator<Item = (Var, Range)>, body: Stmt) -> Self {
        loops.rev().fold(body, |body, (v, range)| Self::for_loop(&v, range, ForKind::Serial, body))
    }

    /// `if cond: then`; just `then` where the condition is the constant true.
    pub fn guard(cond: Expr, then: Stmt) -> Self {
        if cond.is_true() { then } else { Self::new(StmtKind::If { cond, then, otherwise: None }) }
    }

    /// `if cond: then else: otherwise`.
    pub fn if_else(cond: Expr, then: Stmt, otherwise: Stmt) -> Self {
        Self::new(StmtKind::If { cond, then, otherwise: Some(otherwise) })
    }

    /// `let var = value` for the body.
    pub fn let_in(var: &Var, value: Expr, body: Stmt) -> Self {
        Self::new(StmtKind::Let { var: var.clone(), value, body })
    }

    /// Memory for the buffer while the body runs.
    pub fn allocate(buffer: &Buffer, body: Stmt) -> Self {
        Self::new(StmtKind::Allocate { buffer: buffer.clone(), annotations: Attrs::new(), body })
    }

    /// A block with values for its iteration variables.
    pub fn block(bindings: Vec<Expr>, predicate: Expr, block: Block) -> Self {
        Self::new(StmtKind::Block { bindings, predicate, block: Arc::new(block) })
    }

    /// The statements one after the other: sequences inside are flattened, those that do nothing
    /// are dropped, and a single one stands for itself.
    pub fn seq(stmts: impl IntoIterator<Item = Stmt>) -> Self {
        let mut flat: Vec<Stmt> = Vec::new();
        for s in stmts {
            match s.kind() {
                StmtKind::Seq(inner) => flat.extend(inner.iter().cloned()),
                _ if s.is_nop() => {}
                _ => flat.push(s),
            }
        }
        match flat.len() {
            0 => Self::nop(),
            1 => flat.swap_remove(0),
            _ => Self::new(StmtKind::Seq(flat)),
        }
    }

    /// The variable of a loop.
    pub fn loop_var(&self) -> Option<&Var> {
        match self.kind() {
            StmtKind::For { var, .. } => Some(var),
            _ => None,
        }
    }

    /// What a loop, a binding, an allocation, a constant or a view is around.
    pub fn body(&self) -> Option<&Stmt> {
        match self.kind() {
            StmtKind::For { body, .. }
            | StmtKind::Let { body, .. }
            | StmtKind::Allocate { body, .. }
            | StmtKind::Constant { body, .. }
            | StmtKind::Declare { body, .. } => Some(body),
            _ => None,
        }
    }

    /// The same around another body; what is around none becomes that body.
    pub fn with_body(&self, new: Stmt) -> Stmt {
        let mut kind = self.kind().clone();
        match &mut kind {
            StmtKind::For { body, .. }
            | StmtKind::Let { body, .. }
            | StmtKind::Allocate { body, .. }
            | StmtKind::Constant { body, .. }
            | StmtKind::Declare { body, .. } => *body = new,
            _ => return new,
        }
        Stmt::spanned(kind, self.span())
    }

    /// The same loop over another range, around another body.
    pub fn with_loop(&self, over: Range, new: Stmt) -> Stmt {
        let mut kind = self.kind().clone();
        match &mut kind {
            StmtKind::For { range, body, .. } => (*range, *body) = (over, new),
            _ => return new,
        }
        Stmt::spanned(kind, self.span())
    }

    /// Does nothing.
    pub fn nop() -> Self {
        Self::new(StmtKind::Evaluate(Expr::i32(0)))
    }

    /// Whether it is the statement that does nothing.
    pub fn is_nop(&self) -> bool {
        matches!(self.kind(), StmtKind::Evaluate(e) if e.as_int().is_some())
    }
}
