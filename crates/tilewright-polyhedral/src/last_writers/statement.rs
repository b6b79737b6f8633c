//! The statements of a program: where and when each runs, and what it accesses.

use tilewright_ir::{Buffer, Expr, Range, Var};

use crate::domain::Domain;
use crate::engine::Engine;

/// One component of a schedule vector.
#[derive(Clone, Debug)]
pub enum ScheduleDim {
    /// The place among the statements of a sequence.
    Sequence(i64),
    /// The iteration of a loop.
    Loop(Var),
}

/// Whether all that runs at one time is over before anything that runs at another one.
pub fn is_before(one: &[ScheduleDim], other: &[ScheduleDim]) -> bool {
    for pair in one.iter().zip(other) {
        match pair {
            (ScheduleDim::Sequence(a), ScheduleDim::Sequence(b)) if a == b => {}
            (ScheduleDim::Sequence(a), ScheduleDim::Sequence(b)) => return a < b,
            _ => return false,
        }
    }
    false
}

/// A load or store of a statement.
#[derive(Clone, Debug)]
pub struct Access {
    /// What is accessed.
    pub buffer: Buffer,
    /// Where, over the statement's variables.
    pub indices: Vec<Expr>,
    /// Whether it is a store.
    pub is_write: bool,
}

/// A statement with the points at which it runs.
#[derive(Clone)]
pub struct Statement {
    /// The points, over the loops around the statement.
    pub domain: Domain,
    /// When it runs.
    pub schedule: Vec<ScheduleDim>,
    /// What it reads and writes.
    pub accesses: Vec<Access>,
}

/// An access: the statement's number, and the access's number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessId {
    /// Which statement.
    pub statement: usize,
    /// Which of its accesses.
    pub access: usize,
}

impl Statement {
    /// A statement without accesses.
    pub fn new(domain: &Domain, schedule: Vec<ScheduleDim>) -> Statement {
        Statement { domain: domain.clone(), schedule, accesses: Vec::new() }
    }

    /// With a load.
    pub fn reads(self, buffer: &Buffer, indices: &[Expr]) -> Statement {
        self.accessing(buffer, indices, false)
    }

    /// With a store.
    pub fn writes(self, buffer: &Buffer, indices: &[Expr]) -> Statement {
        self.accessing(buffer, indices, true)
    }

    fn accessing(mut self, buffer: &Buffer, indices: &[Expr], is_write: bool) -> Statement {
        let (buffer, indices) = (buffer.clone(), indices.to_vec());
        self.accesses.push(Access { buffer, indices, is_write });
        self
    }

    /// A statement that reads every cell of a buffer, in place `at` of the outermost sequence. The
    /// variables are fresh and named after the axes: `B0`, `B1`.
    pub fn observe(engine: &Engine, buffer: &Buffer, at: i64) -> Statement {
        let ranges: Vec<(Var, Range)> = (buffer.shape.iter().enumerate())
            .map(|(k, extent)| {
                let var = Var::new(format!("{}{k}", buffer.name), extent.dtype());
                (var, Range::upto(extent.clone()))
            })
            .collect();
        let indices: Vec<Expr> = ranges.iter().map(|(v, _)| v.expr()).collect();
        let mut schedule = vec![ScheduleDim::Sequence(at)];
        schedule.extend(ranges.iter().map(|(v, _)| ScheduleDim::Loop(v.clone())));
        let domain = engine.domain_of(&ranges, &[]);
        Statement::new(&domain, schedule).reads(buffer, &indices)
    }
}
