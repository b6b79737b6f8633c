//! The intermediate representation that every other crate reads and writes.
//!
//! A [`Module`] holds *graph functions* ([`GraphFunc`]: dataflow over tensors) and *tensor
//! functions* ([`TensorFunc`]: loops, blocks and buffers). Trees are immutable and shared by
//! reference counting: a transformation returns a new tree and keeps the parts that it did not
//! touch. Variables and buffers have an identity of their own; their names are hints.
//!
//! * [`dtype`], [`tensor`]: element types and dense tensors.
//! * [`expr`], [`buffer`], [`stmt`], [`func`], [`graph`], [`module`]: the tree itself.
//! * [`lowered`]: modules that memory planning and backends take.
//! * [`scalar`]: the arithmetic of constants; [`intrinsic`]: the table of built-in functions.
//! * [`dim`]: sizes that may be open, in normal form; [`extent`]: the type that holds a size.
//! * [`index`]: the arithmetic of indices: their values as intervals, their linear forms, and what is simpler.
//! * [`condition`]: the parts of a condition, and what it says about cells of memory.
//! * [`visit`]: the one recursion scheme, [`Visit`] and [`Fold`], with substitution on top.
//! * [`effects`], [`query`]: what evaluating an expression may do, and what it is made of.
//! * [`demand`]: when evaluating it is defined, and which loads decide more than a value.
//! * [`equal`]: structural equality modulo names, with the first difference.
//! * [`mod@prune`]: a statement without what does nothing, by the text alone.
//! * [`mod@update`]: stores that combine something into their own cell.
//! * [`well_formed`]: the check that every stage may rely on.
//! * [`suggest`]: names that were meant.
//! * [`text`]: expressions as TVMScript text (statements are printed by the script crate).
//! * [`error`]: the one error type of the whole project.
//!
//! **Architecture invariant:** no IO, no knowledge of any pass, layout or target in here.

pub mod buffer;
pub mod condition;
pub mod control;
pub mod data;
pub mod demand;
pub mod dim;
pub mod dtype;
pub mod effects;
pub mod equal;
pub mod error;
pub mod expr;
pub mod extent;
pub mod func;
pub mod graph;
pub mod hash;
pub mod index;
pub mod intrinsic;
pub mod lambda;
pub mod list;
pub mod lowered;
pub mod module;
pub mod operators;
pub mod phases;
pub mod prune;
pub mod query;
pub mod random;
pub mod scalar;
pub mod show;
pub mod signature;
pub mod stmt;
mod subst;
pub mod suggest;
pub mod tensor;
pub mod text;
pub mod update;
pub mod visit;
pub mod well_formed;

pub use buffer::Buffer;
pub use dim::Dim;
pub use dtype::{DType, TypeKind};
pub use effects::Effects;
pub use error::{Diagnostic, Error, Remarks, Result, Source, Span};
pub use expr::{BinOp, CallTarget, Expr, ExprKind, Var};
pub use func::{Param, TensorFunc};
pub use graph::{
    Binding, BindingBlock, Body, Branches, GraphExpr, GraphFunc, GraphType, GraphVar, Loop,
    TensorType,
};
pub use intrinsic::Intrin;
pub use lowered::Lowered;
pub use module::{Function, Module};
pub use stmt::{
    AtOnce, Attr, Attrs, Block, ForKind, IterKind, IterVar, MatchRegion, Range, Region, Stmt,
    StmtKind,
};
pub use tensor::{Tensor, TensorIdentity};
pub use visit::{Fold, Visit};
