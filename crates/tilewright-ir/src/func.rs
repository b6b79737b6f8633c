//! Tensor functions: loops and blocks over buffers, in destination-passing style.

use crate::buffer::Buffer;
use crate::dim::{Dim, open_size};
use crate::dtype::DType;
use crate::error::Span;
use crate::expr::{Expr, Var};
use crate::stmt::{Attr, Attrs, Block, Stmt, StmtKind};

/// A parameter.
#[derive(Clone, Debug)]
pub enum Param {
    /// A tensor; the handle is the argument, the buffer gives it a type and shape. Variables that
    /// first occur in the shape of a parameter are bound by the argument's shape.
    Buffer {
        /// The argument.
        handle: Var,
        /// How it is accessed.
        buffer: Buffer,
    },
    Scalar(Var),
}

impl Param {
    /// A tensor parameter.
    pub fn tensor(buffer: &Buffer) -> Self {
        let handle = Var::new(buffer.name.clone(), DType::HANDLE);
        Param::Buffer { handle, buffer: buffer.clone() }
    }

    /// The buffer of a tensor parameter.
    pub fn buffer(&self) -> Option<&Buffer> {
        match self {
            Param::Buffer { buffer, .. } => Some(buffer),
            Param::Scalar(_) => None,
        }
    }

    /// The variable of a scalar parameter.
    pub fn scalar(&self) -> Option<&Var> {
        match self {
            Param::Scalar(var) => Some(var),
            Param::Buffer { .. } => None,
        }
    }
}

/// Attribute of a tensor function with the number of trailing parameters that are scratch memory.
///
/// Scratch memory holds anything when the function starts. Who calls the function in a graph does
/// not pass it: memory planning and the interpreters add it.
pub const SCRATCH: &str = "tilewright.workspace";

/// A tensor function. Arguments never overlap in memory.
///
/// Which parameters are outputs follows from the body: those that are written. A graph function
/// calls it with the inputs first and the outputs last.
#[derive(Clone, Debug)]
pub struct TensorFunc {
    /// Parameters in order.
    pub params: Vec<Param>,
    /// What it does. A block named `root` around everything holds the buffers that live for the
    /// whole call, where there are any.
    pub body: Stmt,
    /// Attributes, such as `global_symbol` or `tir.noalias`.
    pub attrs: Attrs,
    /// Result of a function that returns a scalar; `None` for the usual function without result.
    pub ret: Option<DType>,
    /// Not visible outside its module.
    pub private: bool,
    /// Place in the source.
    pub span: Option<Span>,
}

impl TensorFunc {
    /// A public function without attributes.
    pub fn new(params: Vec<Param>, body: Stmt) -> Self {
        TensorFunc { params, body, attrs: Attrs::new(), ret: None, private: false, span: None }
    }

    /// How many trailing parameters are scratch memory ([`SCRATCH`]).
    pub fn scratch_count(&self) -> usize {
        match self.attrs.get(SCRATCH) {
            Some(Attr::Int(n)) => usize::try_from(*n).unwrap_or(0).min(self.params.len()),
            _ => 0,
        }
    }

    /// The parameters that a caller gives values to, and those that are scratch memory.
    pub fn split_params(&self) -> (&[Param], &[Param]) {
        self.params.split_at(self.params.len() - self.scratch_count())
    }

    /// Buffers of the tensor parameters, in order.
    pub fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        self.params.iter().filter_map(Param::buffer)
    }

    /// Variables of the scalar parameters, in order.
    pub fn scalars(&self) -> impl Iterator<Item = &Var> {
        self.params.iter().filter_map(Param::scalar)
    }

    /// Adds a scalar parameter for each of these sizes that no parameter gives: neither as an
    /// extent nor as a number. Scratch memory gives none, and stays last.
    pub fn pass_sizes(&mut self, sizes: impl IntoIterator<Item = Var>) {
        for v in sizes {
            let (given, scratch) = self.split_params();
            let at = self.params.len() - scratch.len();
            let extents = given.iter().filter_map(Param::buffer).flat_map(|b| &b.shape);
            if !extents.filter_map(Expr::as_var).chain(self.scalars()).any(|given| *given == v) {
                self.params.insert(at, Param::Scalar(v));
            }
        }
    }

    /// What a call in a graph passes for the scalar parameters, which are open sizes of the graph
    /// ([`open_size`]).
    ///
    /// # Errors
    /// The first parameter that is no open size.
    pub fn size_arguments(&self) -> std::result::Result<Vec<Expr>, &Var> {
        self.scalars()
            .map(|v| open_size(v).map(|size| Dim::open(&size).argument()).ok_or(v))
            .collect()
    }

    /// The variables that the shapes of the arguments give values to, each once, in order. Compiled
    /// functions take them as numbers behind their parameters.
    pub fn shape_vars(&self) -> Vec<Var> {
        self.extent_vars(Vec::new(), |v| self.scalars().all(|s| s != v))
    }

    /// Adds the variables of the parameters' shapes for which `counts` holds, each once.
    fn extent_vars(&self, mut found: Vec<Var>, counts: impl Fn(&Var) -> bool) -> Vec<Var> {
        for extent in self.buffers().flat_map(|b| &b.shape) {
            extent.for_each(|e| {
                found.extend(e.as_var().filter(|v| !found.contains(v) && counts(v)).cloned());
                true
            });
        }
        found
    }

    /// The sizes of the parameters: variables of their shapes, each once, also those that are
    /// passed as numbers. None is negative.
    pub fn sizes(&self) -> Vec<Var> {
        self.extent_vars(self.shape_vars(), |v| v.dtype().is_int())
    }

    /// The root block, where the body is one.
    pub fn root(&self) -> Option<&Block> {
        match self.body.kind() {
            StmtKind::Block { block, .. } if &*block.name == "root" && block.iters.is_empty() => {
                Some(block)
            }
            _ => None,
        }
    }

    /// The buffers that live for the whole call, and the body inside the root block.
    pub fn root_parts(&self) -> (&[Buffer], &Stmt) {
        self.root().map_or((&[], &self.body), |b| (&b.allocs, &b.body))
    }

    /// The same function with other root allocations and another body inside the root block; the
    /// root block goes where it would be empty of allocations and is a plain one.
    pub fn with_root(&self, allocs: Vec<Buffer>, body: Stmt) -> Self {
        let old = self.root().cloned();
        let mut block = old.unwrap_or_else(|| Block::new("root", Stmt::nop()));
        let body = if allocs.is_empty() && block.is_plain_root() {
            body
        } else {
            block.allocs = allocs;
            block.body = body;
            Stmt::block(Vec::new(), Expr::bool(true), block)
        };
        TensorFunc { body, ..self.clone() }
    }

    /// A text attribute.
    pub fn attr_str(&self, key: &str) -> Option<&str> {
        match self.attrs.get(key) {
            Some(Attr::Str(s)) => Some(s),
            _ => None,
        }
    }
}
