//! What a run on symbols is given, holds and gives.

use std::rc::Rc;
use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::tensor::positions;
use tilewright_ir::{AtOnce, Buffer, DType, Error, Expr, Span, Tensor, TypeKind, Var};

use crate::path::{Integers, Path};
use crate::term::{Fast, Term, Terms, Val, Wrong};
use tilewright_interp::race::History;

/// Why a run ended early.
#[derive(Debug)]
pub enum Stop {
    /// Whether the functions agree cannot be said.
    Undecided(String, Option<Span>),
    /// The program does something illegal whatever the inputs are, or breaks a rule.
    Error(Error),
}

impl Stop {
    pub(super) fn at(self, span: Option<Span>) -> Stop {
        match self {
            Stop::Undecided(why, at) => Stop::Undecided(why, at.or(span)),
            Stop::Error(e) => Stop::Error(e.at(span)),
        }
    }
}

impl From<Error> for Stop {
    fn from(e: Error) -> Self {
        Stop::Error(e)
    }
}

/// A result, or why there is none.
pub type Ran<T> = Result<T, Stop>;

/// Ends a run undecided.
pub fn undecided<T>(why: impl Into<String>) -> Ran<T> {
    Err(Stop::Undecided(why.into(), None))
}

/// A tensor of terms, in row-major order.
#[derive(Clone, Debug)]
pub struct Cells {
    /// Type of the elements.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<usize>,
    /// The elements.
    pub cells: Rc<Vec<Val>>,
}

impl Cells {
    /// The cells of a tensor that is known.
    pub fn constant(t: &Tensor) -> Self {
        let size = t.dtype().bytes().max(1);
        let chunks = t.bytes().chunks_exact(size).take(t.len());
        let cells =
            chunks.map(|b| Val::Known(tilewright_interp::machine::decode(b, t.dtype()))).collect();
        Cells { dtype: t.dtype(), shape: t.shape().to_vec(), cells: Rc::new(cells) }
    }
}

/// An argument of a tensor function.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A tensor.
    Cells(Cells),
    Scalar(Val),
}

/// What the runs of both sides share.
pub struct Shared {
    pub terms: Terms,
    /// What is asked about integers.
    pub integers: Integers,
    /// Expressions that may still be evaluated.
    pub steps: u64,
    /// Elements of memory that may still be allocated.
    pub memory: usize,
    /// What memory holds at first.
    pub fresh: Val,
    /// Conditions on the inputs that both programs are told to rely on.
    pub constraints: Vec<Term>,
    /// Inputs whose value is assumed.
    pub assumed: Fast<Term, u64>,
    /// Texts of the assumptions on inputs of the side that runs.
    pub relied: Vec<String>,
    /// Names and shapes of the inputs: the parameters, then variables that nothing defines.
    pub names: Vec<(String, Vec<usize>)>,
    /// Symbols of variables that nothing defines.
    pub free: HashMap<(Arc<str>, DType), Val>,
}

impl Shared {
    /// The symbol of a variable that nothing defines: one for each name and type.
    pub(super) fn free(&mut self, v: &Var) -> Result<Val, Wrong> {
        let key = (v.name().clone(), v.dtype());
        if let Some(value) = self.free.get(&key) {
            return Ok(*value);
        }
        let number = u32::try_from(self.names.len()).map_err(|_| Wrong::Full)?;
        let value = self.terms.input(number, 0, v.dtype())?;
        self.names.push((v.name().to_string(), Vec::new()));
        self.free.insert(key, value);
        Ok(value)
    }
}

/// One run of a tensor function.
pub struct Run<'s> {
    pub(super) shared: &'s mut Shared,
    pub(super) vars: Fast<(u64, u16), Val>,
    pub(super) pointers: Fast<u64, usize>,
    pub(super) places: Fast<u64, Rc<BufferView>>,
    pub(super) memories: Vec<Memory>,
    pub(super) lane: u16,
    /// The lanes of vectors that are not stored, inside of conditions that differ between lanes.
    pub(super) left_out: Vec<bool>,
    /// Conditions under which this code runs.
    pub(super) path: Path,
    /// Loops around whose iterations run at once.
    pub(super) watches: Vec<Watch>,
    /// The cell that a store updates by an operator that commutes, if any loop has to know.
    pub(super) updating: Option<(Buffer, Vec<Expr>)>,
    /// For each open branch, the cells that it wrote with what was there before.
    pub(super) logs: Vec<Vec<(usize, usize, Val)>>,
    pub(super) ret: Option<Val>,
    pub(super) stopped: bool,
    pub(super) span: Option<Span>,
    /// Loops around with the values of their variables, and the innermost block, for messages.
    pub(super) around: Vec<(Arc<str>, i64)>,
    pub(super) within: Option<Arc<str>>,
}

/// Whether a type can be a symbol.
pub fn is_data(dtype: DType) -> bool {
    dtype.lanes == 1 && !matches!(dtype.kind, TypeKind::Handle | TypeKind::Void)
}

pub(super) struct Memory {
    pub(super) dtype: DType,
    pub(super) cells: Vec<Val>,
}

pub(super) struct Dim {
    pub(super) extent: i64,
    pub(super) stride: i64,
    /// First index of a viewed region and extent of the source, outermost source last.
    pub(super) outer: Vec<(i64, i64)>,
}

pub(super) struct BufferView {
    pub(super) memory: usize,
    pub(super) dims: Vec<Dim>,
    pub(super) offset: i64,
}

/// Positions of the elements of a parameter in its memory, in row-major order.
pub(super) fn offsets(place: &BufferView, shape: &[usize]) -> impl Iterator<Item = i64> {
    let axes = shape.iter().zip(&place.dims).map(|(n, d)| (*n, d.stride));
    positions(axes, place.offset)
}

/// A loop that runs.
pub(super) struct Watch {
    pub(super) name: Arc<str>,
    pub(super) how: AtOnce,
    /// The value of the variable in the first iteration.
    pub(super) first: i64,
    /// Number of the iteration, from one.
    pub(super) iteration: u32,
    /// Number of the first memory that belongs to one iteration.
    pub(super) own: usize,
    /// What was done to each cell, and whether any of it was under a condition on data.
    pub(super) cells: Fast<(usize, usize), (History, bool)>,
}
