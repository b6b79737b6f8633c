//! What a running program consists of: variables, memories, and the first thing that went wrong.
//!
//! A memory is a row of bytes, cut into equal *cells* of which each knows whether it was
//! written. A cell is as large as the smallest element with which anything in the program looks
//! at the memory, so that views of different types may share it.

use std::borrow::Cow;
use std::sync::Arc;

use tilewright_ir::{DType, Error, Span, TypeKind, random};

use crate::RunOptions;
use crate::race::Watch;
use crate::scalar::{self, Scalar};

/// Never written.
pub const UNWRITTEN: u8 = 0;
/// Written with an arbitrary value.
pub const UNDEF: u8 = 1;
pub const WRITTEN: u8 = 2;

/// A value that may be arbitrary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Bits as in [`crate::scalar`].
    pub bits: u64,
    /// Whether any other value would do as well.
    pub undef: bool,
}

impl Cell {
    /// A value that is not arbitrary.
    pub fn new(bits: u64) -> Self {
        Cell { bits, undef: false }
    }
}

/// One memory.
#[derive(Default)]
pub struct Memory<'a> {
    /// The bytes; borrowed where the program does not write them.
    pub data: Cow<'a, [u8]>,
    /// State of each cell; empty where all are written from the start and nothing else happens.
    pub state: Vec<u8>,
}

/// What arbitrary values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fill {
    /// Zero.
    #[default]
    Zero,
    /// `NaN`; for integers the largest value.
    Nan,
    /// Any bits, from a seed.
    Random(u64),
}

impl Fill {
    /// The next arbitrary value of a scalar type.
    pub fn next(&mut self, dtype: DType) -> u64 {
        match self {
            Fill::Zero => 0,
            Fill::Nan if dtype.is_float() => scalar::from_f64(f64::NAN, dtype),
            Fill::Nan => dtype.max_int().unwrap_or(0) as u64,
            Fill::Random(state) => {
                let z = random::bits(state);
                match dtype.is_float() {
                    true if dtype.bits < 64 => z & ((1 << dtype.bits) - 1),
                    true => z,
                    false => Scalar::int(z as i64, dtype).bits(),
                }
            }
        }
    }
}

/// Where a statement is, for messages.
#[derive(Debug, Default)]
pub struct Location {
    /// Place in the source.
    pub span: Option<Span>,
    /// Innermost block.
    pub block: Option<Arc<str>>,
    /// Names and slots of the loop variables around.
    pub loops: Vec<(Arc<str>, usize)>,
}

/// The first thing that went wrong.
#[derive(Debug)]
pub struct Trap {
    /// What, without the place.
    pub message: String,
    /// Where; known once the statement ends.
    pub location: Option<Arc<Location>>,
}

/// A running program.
pub struct Machine<'a> {
    /// Values of variables by slot, as in [`crate::scalar`].
    pub frame: Vec<u64>,
    /// Which of them are arbitrary.
    pub undef: Vec<bool>,
    /// Memories by number.
    pub memories: Vec<Memory<'a>>,
    /// The lane that is being evaluated.
    pub lane: usize,
    /// The lanes of vectors that are not stored, inside of conditions that differ between lanes.
    pub left_out: Vec<bool>,
    /// What went wrong. Expressions go on with some value; statements stop.
    pub trap: Option<Box<Trap>>,
    /// Steps that are left.
    pub steps: u64,
    /// Bytes of memory that are left.
    pub budget: usize,
    /// Arbitrary values.
    pub fill: Fill,
    /// The value of `T.ret`.
    pub ret: Option<u64>,
    /// Loops whose iterations run at once, by number.
    pub watches: Vec<Watch>,
}

impl Machine<'_> {
    /// One for a program of so many slots, memories, and loops whose iterations run at once.
    pub fn new(slots: usize, memories: usize, watches: usize, options: &RunOptions) -> Self {
        Machine {
            frame: vec![0; slots],
            undef: vec![false; slots],
            memories: (0..memories).map(|_| Memory::default()).collect(),
            lane: 0,
            left_out: Vec::new(),
            trap: None,
            steps: options.steps.unwrap_or(u64::MAX),
            budget: options.memory,
            fill: options.fill,
            ret: None,
            watches: (0..watches).map(|_| Watch::default()).collect(),
        }
    }

    /// Notes what went wrong, unless something already did.
    #[cold]
    pub fn fail(&mut self, message: impl Into<String>) {
        if self.trap.is_none() {
            self.trap = Some(Box::new(Trap { message: message.into(), location: None }));
        }
    }

    /// Whether nothing went wrong; notes the place if something did.
    #[inline]
    pub fn fine(&mut self, location: &Arc<Location>) -> bool {
        match &mut self.trap {
            None => true,
            Some(trap) => {
                trap.location.get_or_insert_with(|| location.clone());
                false
            }
        }
    }

    /// Counts a step.
    #[inline]
    pub fn step(&mut self) {
        match self.steps.checked_sub(1) {
            Some(left) => self.steps = left,
            None => self.fail("too many steps"),
        }
    }

    /// Makes a memory of `bytes` bytes in cells of `cell` bytes, never written.
    pub fn allocate(&mut self, number: usize, bytes: usize, cell: usize, state: u8) {
        let old = self.memories[number].data.len() + self.memories[number].state.len();
        self.memories[number] = Memory::default();
        self.budget = self.budget.saturating_add(old);
        let cells = bytes.div_ceil(cell.max(1));
        let total = bytes.saturating_add(cells);
        if total > self.budget {
            return self.fail(format!("allocation of {bytes} bytes is over the memory limit"));
        }
        let (mut data, mut states) = (Vec::new(), Vec::new());
        if data.try_reserve_exact(bytes).is_err() || states.try_reserve_exact(cells).is_err() {
            return self.fail(format!("no memory for an allocation of {bytes} bytes"));
        }
        self.budget -= total;
        data.resize(bytes, 0);
        states.resize(cells, state);
        self.memories[number] = Memory { data: Cow::Owned(data), state: states };
    }

    /// Fills a memory with what is given.
    pub fn fill(&mut self, number: usize, bytes: &[u8]) {
        let memory = &mut self.memories[number];
        // An allocation that failed is empty, and has been reported.
        if memory.data.len() == bytes.len() {
            memory.data.to_mut().copy_from_slice(bytes);
            memory.state.fill(WRITTEN);
        }
    }

    /// Fills a memory with arbitrary values of a type.
    pub fn scramble(&mut self, number: usize, dtype: DType) {
        let mut fill = self.fill;
        let data = self.memories[number].data.to_mut();
        for bytes in data.chunks_mut(dtype.bytes().max(1)) {
            encode(fill.next(dtype), bytes);
        }
        self.fill = fill;
    }

    /// The error for what went wrong.
    pub fn error(&mut self) -> Error {
        let Some(trap) = self.trap.take() else {
            return Error::internal("a run stopped without a reason");
        };
        let location = trap.location.unwrap_or_default();
        let message = match &location.block {
            Some(block) => format!("{} in block `{block}`", trap.message),
            None => trap.message,
        };
        let mut e = Error::execution(message).at(location.span);
        let value = |slot: usize| self.frame.get(slot).map_or(0, |v| *v as i64);
        let loops: Vec<String> = location
            .loops
            .iter()
            .map(|(name, slot)| format!("{name} = {}", value(*slot)))
            .collect();
        if !loops.is_empty() {
            e = e.note(format!("with {}", loops.join(", ")));
        }
        e
    }
}

/// Reads an element's bits from its bytes; both have the size of the type.
pub fn decode(bytes: &[u8], dtype: DType) -> u64 {
    let mut raw = [0; 8];
    let n = bytes.len().min(8);
    raw[..n].copy_from_slice(&bytes[..n]);
    let bits = u64::from_le_bytes(raw);
    match dtype.kind {
        TypeKind::Int => tilewright_ir::scalar::wrap(bits as i64, dtype) as u64,
        TypeKind::Bool => u64::from(bits != 0),
        _ => bits,
    }
}

/// Writes an element's bits to its bytes.
pub fn encode(bits: u64, bytes: &mut [u8]) {
    let raw = bits.to_le_bytes();
    let n = bytes.len().min(8);
    bytes[..n].copy_from_slice(&raw[..n]);
}
