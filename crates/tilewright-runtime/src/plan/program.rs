//! What a graph function with control flow becomes: straight-line pieces, and a small program that
//! runs them.
//!
//! Values lie in registers, sizes that are found on the way in slots. A [`Block`] is operations in
//! order; branches and loops have blocks of their own. Each piece is a plan by itself, whose sizes may
//! be open: the program says those that no input of the piece has as an extent.

use std::sync::Arc;

use super::MemoryPlan;
use tilewright_ir::dim::Dim;
use tilewright_ir::dtype::DType;
use tilewright_ir::expr::Var;
use tilewright_ir::list::ListOp;
use tilewright_ir::stmt::Attrs;
use tilewright_ir::tensor::Tensor;

/// The place of a value.
pub type Register = usize;

/// The place of a size: a position in [`Program::sizes`].
pub type Slot = usize;

/// A program over pieces.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Inputs and outputs, without steps. Inputs lie in the first registers when it starts, and their
    /// sizes in the first slots.
    pub signature: MemoryPlan,
    /// The graph functions that the pieces are.
    pub pieces: Vec<Arc<str>>,
    /// The variables of sizes, by slot.
    pub sizes: Vec<Var>,
    /// How many registers there are.
    pub registers: usize,
    /// What runs; its results are the outputs.
    pub body: Block,
}

/// Operations in order, and the values that are left after them.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub operations: Vec<Operation>,
    /// The values.
    pub results: Vec<Register>,
}

/// One operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What it does.
    pub what: What,
    /// Registers that nothing reads after it.
    pub free: Vec<Register>,
}

/// What an operation does.
#[derive(Clone, Debug)]
pub enum What {
    /// Puts a constant into a register.
    Constant(Tensor, Register),
    /// The same value in another register.
    Copy(Register, Register),
    /// Runs a piece.
    Piece {
        /// Which one.
        piece: usize,
        /// Its inputs.
        args: Vec<Register>,
        /// The sizes that it is told ([`MemoryPlan::given`]).
        sizes: Vec<Slot>,
        /// Its outputs.
        outs: Vec<Register>,
    },
    /// Refuses a tensor of another type, and finds sizes.
    Bind {
        /// The tensor.
        of: Register,
        /// What messages call it.
        name: Arc<str>,
        /// Element type.
        dtype: DType,
        /// Extents; those that this brings are known then.
        shape: Vec<Dim>,
        /// Axes whose extents give sizes their values.
        brings: Vec<(usize, Slot)>,
        /// Why it must be so, where that is known.
        why: Option<Arc<str>>,
    },
    /// Finds sizes in the elements of a list of integers, and refuses other ones.
    Sizes {
        /// The list.
        of: Register,
        /// What messages call it.
        name: Arc<str>,
        /// What its elements must be.
        shape: Vec<Dim>,
        /// Elements that give sizes their values.
        brings: Vec<(usize, Slot)>,
        /// Why they must be so, where that is known.
        why: Option<Arc<str>>,
    },
    /// An operator on lists and optionals.
    List {
        /// Which one.
        op: ListOp,
        /// Its attributes.
        attrs: Attrs,
        /// Its arguments.
        args: Vec<Register>,
        /// Its result.
        to: Register,
    },
    /// One of two blocks.
    If {
        /// Which one.
        cond: Register,
        /// Where it is true.
        then: Block,
        /// Where it is false.
        otherwise: Block,
        /// Where the results go.
        outs: Vec<Register>,
    },
    /// Iterations of a block.
    Loop {
        /// How many at most.
        trip: Option<Register>,
        /// Whether there is one.
        cond: Option<Register>,
        /// First values of what is carried.
        carried: Vec<Register>,
        /// The number of the iteration, then what is carried into it.
        params: Vec<Register>,
        /// Registers that the body reads from around it.
        captured: Vec<Register>,
        /// Gives whether to go on, what is carried, and what is stacked.
        body: Block,
        /// Types of an iteration's part of what is stacked.
        stacked: Vec<(DType, Vec<Dim>)>,
        /// Where the carried values go, and what is stacked.
        outs: Vec<Register>,
    },
}

impl What {
    /// The registers that it reads, those that its blocks read from around them included.
    pub fn reads(&self) -> Vec<Register> {
        match self {
            What::Constant(..) => Vec::new(),
            What::Copy(from, _) => vec![*from],
            What::Piece { args, .. } | What::List { args, .. } => args.clone(),
            What::Bind { of, .. } | What::Sizes { of, .. } => vec![*of],
            What::If { cond, then, otherwise, .. } => {
                let mut all = vec![*cond];
                all.extend(then.reads(&[]));
                all.extend(otherwise.reads(&[]));
                all
            }
            What::Loop { trip, cond, carried, captured, .. } => {
                trip.iter().chain(cond).chain(carried).chain(captured).copied().collect()
            }
        }
    }

    /// The registers that it writes, without those of its blocks.
    pub fn writes(&self) -> Vec<Register> {
        match self {
            What::Constant(_, to) | What::Copy(_, to) | What::List { to, .. } => vec![*to],
            What::Piece { outs, .. } | What::If { outs, .. } | What::Loop { outs, .. } => {
                outs.clone()
            }
            What::Bind { .. } | What::Sizes { .. } => Vec::new(),
        }
    }
}

impl Block {
    /// The registers that it reads and does not write before; `params` are written when it starts.
    pub fn reads(&self, params: &[Register]) -> Vec<Register> {
        let mut written: Vec<Register> = params.to_vec();
        let mut read = Vec::new();
        for operation in &self.operations {
            read.extend(operation.what.reads().into_iter().filter(|r| !written.contains(r)));
            written.extend(operation.what.writes());
        }
        read.extend(self.results.iter().filter(|r| !written.contains(r)));
        read
    }

    /// Notes for each operation which registers nothing reads after it, of those that the block
    /// writes itself and of its `params`.
    pub fn free(&mut self, params: &[Register]) {
        let mut needed: std::collections::HashSet<Register> =
            self.results.iter().copied().collect();
        let mut own: std::collections::HashSet<Register> = params.iter().copied().collect();
        own.extend(self.operations.iter().flat_map(|o| o.what.writes()));
        for operation in self.operations.iter_mut().rev() {
            let mut free = operation.what.reads();
            free.extend(operation.what.writes());
            free.retain(|r| own.contains(r) && needed.insert(*r));
            operation.free = free;
        }
    }
}

impl Program {
    /// The slot of a size, where it has one.
    pub fn slot(&self, var: &Var) -> Option<Slot> {
        self.sizes.iter().position(|v| v == var)
    }
}
