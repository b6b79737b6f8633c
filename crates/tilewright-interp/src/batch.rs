//! Running a loop nest in batches: `float32` elements that are computed together.
//!
//! [`crate::nest`] says which nests these are, and why the result is the same.

use tilewright_ir::BinOp;

use crate::code::{Affine, Code};
use crate::compile::Run;
use crate::machine::{Machine, Memory, WRITTEN};
use crate::place::Access;
use crate::race::Act;
use crate::scalar;

/// Elements that are computed together.
pub const BATCH: usize = 128;

/// Computes the elements of a batch; the slot of the batched loop holds its first value.
pub type Batch = Box<dyn Fn(&mut Machine<'_>, &mut [f32]) + Send + Sync>;

/// A loop.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    /// Slot of the variable.
    pub slot: usize,
    /// First value.
    pub min: i64,
    /// Number of values, at least one.
    pub extent: i64,
}

/// What gives the elements of a batch.
pub enum Operand {
    /// All the same.
    Const(f32),
    /// Elements of a buffer.
    Lanes(Lanes),
    /// Computed.
    Batch(Batch),
}

/// Elements of a buffer at a constant distance.
pub struct Lanes {
    access: Access,
    /// Position of the first one.
    at: Affine,
    /// Distance.
    step: i64,
}

/// `element = element op rest`, or `rest op element`.
#[derive(Clone, Copy)]
pub struct Fold {
    /// The operator.
    pub op: BinOp,
    /// Whether the element is on the left.
    pub element_first: bool,
}

/// Calls a function with a closure for an operator, so that the function is compiled for each
/// one; `None` for an operator that batches do not have.
macro_rules! with_operator {
    ($op:expr, $f:ident => $call:expr) => {
        match $op {
            BinOp::Add => {
                let $f = |a: f32, b: f32| a + b;
                Some($call)
            }
            BinOp::Sub => {
                let $f = |a: f32, b: f32| a - b;
                Some($call)
            }
            BinOp::Mul => {
                let $f = |a: f32, b: f32| a * b;
                Some($call)
            }
            BinOp::Div => {
                let $f = |a: f32, b: f32| a / b;
                Some($call)
            }
            BinOp::Min => {
                let $f = scalar::minimum32;
                Some($call)
            }
            BinOp::Max => {
                let $f = scalar::maximum32;
                Some($call)
            }
            _ => None,
        }
    };
}
pub(crate) use with_operator;

impl Fold {
    /// Combines elements with as many others.
    fn across(self, elements: &mut [f32], rest: &[f32]) {
        with_operator!(self.op, f => if self.element_first {
            elements.iter_mut().zip(rest).for_each(|(x, y)| *x = f(*x, *y))
        } else {
            elements.iter_mut().zip(rest).for_each(|(x, y)| *x = f(*y, *x))
        });
    }

    /// Combines an element with others in order.
    fn along(self, element: f32, rest: &[f32]) -> f32 {
        with_operator!(self.op, f => if self.element_first {
            rest.iter().fold(element, |x, y| f(x, *y))
        } else {
            rest.iter().fold(element, |x, y| f(*y, x))
        })
        .unwrap_or(element)
    }
}

/// A nest that runs in batches.
pub struct Nest {
    /// Spatial loops but the batched one.
    pub spatial: Vec<Loop>,
    /// Loops that reduce, but the batched one.
    pub reduce: Vec<Loop>,
    /// The loop whose iterations are computed together: a spatial one, or else the innermost one
    /// that reduces.
    pub batched: Loop,
    /// Whether the batched loop is spatial.
    pub across: bool,
    /// What is stored to.
    pub to: Lanes,
    /// First value of an element, where it is set here.
    pub init: Option<Operand>,
    /// How values are combined; without, they are stored.
    pub fold: Option<Fold>,
    pub value: Operand,
    /// Whether elements begin as copies, which may be copies of unwritten ones. They do not depend
    /// on what the elements were, so that the nest may run again.
    pub copies: bool,
    /// Steps that the loops take.
    pub steps: u64,
}

/// Evaluates with each value of the batched loop in turn.
pub fn one_by_one(code: Code<f32>, slot: usize) -> Batch {
    Box::new(move |m, out| {
        let first = m.frame[slot];
        for (i, x) in out.iter_mut().enumerate() {
            m.frame[slot] = first.wrapping_add(i as u64);
            *x = code(m);
        }
        m.frame[slot] = first;
    })
}

/// An operator on the elements of two operands.
pub fn combine<F>(f: F, a: Operand, b: Operand) -> Batch
where
    F: Fn(f32, f32) -> f32 + Send + Sync + 'static,
{
    Box::new(move |m, out| {
        a.eval(m, out);
        match &b {
            Operand::Const(c) => out.iter_mut().for_each(|x| *x = f(*x, *c)),
            b => {
                let mut other = [0.0; BATCH];
                let other = &mut other[..out.len()];
                b.eval(m, other);
                out.iter_mut().zip(&*other).for_each(|(x, y)| *x = f(*x, *y));
            }
        }
    })
}

impl Lanes {
    pub fn new(access: Access, slot: usize) -> Option<Self> {
        let at = access.direct()?.clone();
        let step = at.coefficient(slot);
        Some(Lanes { access, at, step })
    }

    /// Position of an element of a batch.
    fn position(&self, first: i64, i: usize) -> usize {
        first.wrapping_add(self.step.wrapping_mul(i as i64)) as usize
    }

    fn load(&self, m: &mut Machine<'_>, out: &mut [f32]) {
        let first = self.at.eval(m);
        let memory = &m.memories[self.access.memory()];
        let (data, n) = (&*memory.data, out.len());
        let mut ok = true;
        match self.step {
            0 => match data.get((first as usize) * 4..).and_then(|b| b.first_chunk::<4>()) {
                Some(bytes) => out.fill(f32::from_le_bytes(*bytes)),
                None => ok = false,
            },
            1 => match data.get(first as usize * 4..(first as usize + n) * 4) {
                Some(bytes) => {
                    for (x, bytes) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                        *x = f32::from_le_bytes(*bytes);
                    }
                }
                None => ok = false,
            },
            _ => {
                for (i, x) in out.iter_mut().enumerate() {
                    match data.get(self.position(first, i) * 4..).and_then(|b| b.first_chunk::<4>())
                    {
                        Some(bytes) => *x = f32::from_le_bytes(*bytes),
                        None => ok = false,
                    }
                }
            }
        }
        if let Some(cells) = self.access.cells() {
            ok &= match self.step {
                0 => is_written(first as usize, memory, cells),
                1 => {
                    let range = first as usize * cells..(first as usize + n) * cells;
                    let states = memory.state.get(range).unwrap_or_default();
                    states.iter().fold(true, |ok, s| ok & (*s == WRITTEN))
                }
                _ => (0..n)
                    .fold(true, |ok, i| ok & is_written(self.position(first, i), memory, cells)),
            };
        }
        if !ok {
            return m.fail("a batch meets an element without a value");
        }
        if self.access.watching().is_some_and(|w| w.act == Act::Read) {
            let n = if self.step == 0 { 1 } else { n };
            (0..n).for_each(|i| self.access.note_read(m, self.position(first, i)));
        }
    }

    fn store(&self, m: &mut Machine<'_>, values: &[f32]) {
        if m.trap.is_some() {
            return;
        }
        let first = self.at.eval(m);
        if self.access.watching().is_some() {
            let mut values = values.iter().enumerate();
            let at = |i| self.position(first, i);
            if !values.all(|(i, x)| self.access.note_write(m, at(i), &x.to_le_bytes(), WRITTEN)) {
                return;
            }
        }
        let memory = &mut m.memories[self.access.memory()];
        let data = memory.data.to_mut();
        let mut ok = true;
        for (i, x) in values.iter().enumerate() {
            let at = self.position(first, i);
            match data.get_mut(at * 4..).and_then(|b| b.first_chunk_mut::<4>()) {
                Some(to) => *to = x.to_le_bytes(),
                None => ok = false,
            }
            if let Some(cells) = self.access.cells()
                && let Some(states) = memory.state.get_mut(at * cells..(at + 1) * cells)
            {
                states.fill(WRITTEN);
            }
        }
        if !ok {
            m.fail("a batch leaves its memory");
        }
    }
}

fn is_written(at: usize, memory: &Memory<'_>, cells: usize) -> bool {
    let states = memory.state.get(at * cells..(at + 1) * cells).unwrap_or_default();
    states.iter().fold(true, |ok, s| ok & (*s == WRITTEN))
}

impl Operand {
    /// The elements of a batch.
    pub fn eval(&self, m: &mut Machine<'_>, out: &mut [f32]) {
        match self {
            Operand::Const(c) => out.fill(*c),
            Operand::Lanes(lanes) => lanes.load(m, out),
            Operand::Batch(code) => code(m, out),
        }
    }
}

/// Calls back for each point of some loops, outermost first in order; stops at a trap.
fn each_point(loops: &[Loop], m: &mut Machine<'_>, f: &mut dyn FnMut(&mut Machine<'_>)) {
    match loops.split_first() {
        None => f(m),
        Some((l, rest)) => {
            for i in 0..l.extent {
                if m.trap.is_some() {
                    return;
                }
                m.frame[l.slot] = (l.min + i) as u64;
                each_point(rest, m, f);
            }
        }
    }
}

impl Nest {
    /// Runs it, with the loops as they stand to fall back to.
    pub fn or(self, loops: Run) -> Run {
        Box::new(move |m| {
            if m.trap.is_none() && m.steps >= self.steps {
                self.run(m);
                if m.trap.is_none() {
                    m.steps -= self.steps;
                    return true;
                }
                m.trap = None;
                // What went wrong happens again and is reported; elements that were combined
                // twice until then do not matter. Only a copy of an unwritten cell is
                // no error.
                let fine = loops(m);
                if fine && !self.copies {
                    m.fail("a loop nest and its batches disagree");
                }
                return fine && self.copies;
            }
            loops(m)
        })
    }

    fn run(&self, m: &mut Machine<'_>) {
        each_point(&self.spatial, m, &mut |m| {
            if self.across { self.across(m) } else { self.along(m) }
        });
    }

    /// The batches of the batched loop, as the first value and the number of elements.
    fn batches(&self) -> impl Iterator<Item = (i64, usize)> {
        let (min, end) = (self.batched.min, self.batched.min + self.batched.extent);
        (min..end).step_by(BATCH).map(move |first| {
            let n = usize::try_from(end - first).unwrap_or(BATCH);
            (first, n.min(BATCH))
        })
    }

    fn reset(&self, m: &mut Machine<'_>) {
        self.reduce.iter().for_each(|l| m.frame[l.slot] = l.min as u64);
    }

    /// The batched loop is spatial: as many elements at once.
    fn across(&self, m: &mut Machine<'_>) {
        for (first, n) in self.batches() {
            let mut elements = [0.0; BATCH];
            let elements = &mut elements[..n];
            m.frame[self.batched.slot] = first as u64;
            self.reset(m);
            match (self.fold, &self.init) {
                (None, _) => self.value.eval(m, elements),
                (Some(fold), init) => {
                    match init {
                        Some(init) => init.eval(m, elements),
                        None => self.to.load(m, elements),
                    }
                    let mut rest = [0.0; BATCH];
                    let rest = &mut rest[..n];
                    each_point(&self.reduce, m, &mut |m| {
                        self.value.eval(m, rest);
                        fold.across(elements, rest);
                    });
                }
            }
            self.to.store(m, elements);
            if m.trap.is_some() {
                return;
            }
        }
    }

    /// The batched loop is the innermost one that reduces: one element.
    fn along(&self, m: &mut Machine<'_>) {
        let Some(fold) = self.fold else {
            return m.fail("a reduction that is none");
        };
        self.reset(m);
        m.frame[self.batched.slot] = self.batched.min as u64;
        let mut element = [0.0];
        match &self.init {
            Some(init) => init.eval(m, &mut element),
            None => self.to.load(m, &mut element),
        }
        let mut rest = [0.0; BATCH];
        each_point(&self.reduce, m, &mut |m| {
            for (first, n) in self.batches() {
                m.frame[self.batched.slot] = first as u64;
                let rest = &mut rest[..n];
                self.value.eval(m, rest);
                element[0] = fold.along(element[0], rest);
            }
        });
        self.to.store(m, &element);
    }
}
