//! Loops whose iterations run at once, and whether these depend on one another.
//!
//! A parallel, vectorised or thread-bound loop promises that no two of its iterations touch a cell
//! that one of them writes. The loop runs in order here, and a [`History`] of each cell keeps which
//! iterations did what to it, so that the promise is checked and not believed. What is permitted:
//!
//! * in a vectorised loop, updates by one operator that commutes;
//! * the same work done again: writes of one value to a cell by several iterations, and reads of
//!   it by those that have written it themselves.
//!
//! Memory that is allocated in an iteration is its own, and is not watched. Programs without such
//! loops are compiled without any of this.

use std::sync::Arc;

use tilewright_ir::AtOnce;
use tilewright_ir::update::Combine;

/// What an iteration does to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Read,
    /// Writes it.
    Write,
    /// Combines something into it: reads and writes.
    Update(Combine),
}

/// Up to two different iterations, counted from one; zero is none.
type Two = [u32; 2];

fn note(two: &mut Two, iteration: u32) {
    match two {
        [0, _] => two[0] = iteration,
        [a, 0] if *a != iteration => two[1] = iteration,
        _ => {}
    }
}

/// One of them that is another iteration than this one.
fn other(two: Two, iteration: u32) -> Option<u32> {
    two.into_iter().find(|k| *k != 0 && *k != iteration)
}

/// What iterations of one run of a loop did to a cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct History {
    /// The run of the loop that this is about.
    run: u32,
    readers: Two,
    writers: Two,
    /// The last one that wrote.
    writer: u32,
    /// Whether a write made another value of it.
    changed: bool,
    /// Whether it was written with several values.
    varied: bool,
    updaters: Two,
    by: Option<Combine>,
}

impl History {
    /// Notes what an iteration does in a run of the loop. `changes` says whether a write gives the
    /// cell another value.
    ///
    /// # Errors
    /// Another iteration that this one depends on, or that depends on this one.
    pub fn access(
        &mut self,
        run: u32,
        iteration: u32,
        how: AtOnce,
        act: Act,
        changes: bool,
    ) -> Result<(), u32> {
        if self.run != run {
            *self = History { run, ..History::default() };
        }
        let act = match (act, how) {
            (Act::Update(_), AtOnce::Threads) => {
                self.access(run, iteration, how, Act::Read, false)?;
                Act::Write
            }
            _ => act,
        };
        let updater = other(self.updaters, iteration);
        let writer = other(self.writers, iteration);
        let reader = other(self.readers, iteration);
        let against = match act {
            Act::Read => {
                let own = self.writer == iteration;
                writer.filter(|_| self.varied || (self.changed && !own)).or(updater)
            }
            Act::Write if changes => writer.or(reader).or(updater),
            Act::Write => writer.filter(|_| self.varied).or(updater),
            Act::Update(op) => writer.or(reader).or(updater.filter(|_| self.by != Some(op))),
        };
        if let Some(against) = against {
            return Err(against);
        }
        match act {
            Act::Read => note(&mut self.readers, iteration),
            Act::Write => {
                self.varied |= changes && self.writer != 0;
                self.changed |= changes;
                self.writer = iteration;
                note(&mut self.writers, iteration);
            }
            Act::Update(op) => {
                note(&mut self.updaters, iteration);
                self.by = Some(op);
            }
        }
        Ok(())
    }
}

/// A loop that is compiled.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The name of its variable.
    pub name: Arc<str>,
    /// How its iterations run.
    pub how: AtOnce,
}

/// A loop that runs.
#[derive(Debug, Default)]
pub struct Watch {
    /// Number of the run, from one.
    run: u32,
    /// Number of the iteration, from one.
    iteration: u32,
    /// The value of the variable in the first iteration.
    first: i64,
    /// Histories by memory and cell.
    cells: Vec<Vec<History>>,
}

impl Watch {
    /// Another run begins.
    pub fn begin(&mut self, first: i64) {
        if self.run == u32::MAX {
            *self = Watch::default();
        }
        self.run += 1;
        self.first = first;
        self.iteration = 0;
    }

    /// The next iteration begins.
    pub fn next(&mut self) {
        self.iteration = self.iteration.saturating_add(1);
    }

    /// The value of the variable in an iteration.
    pub fn value(&self, iteration: u32) -> i64 {
        self.first.wrapping_add(i64::from(iteration)).wrapping_sub(1)
    }

    /// Notes what the iteration does to a cell. Errors as [`History::access`], with the values of
    /// the variable in the other iteration and this one.
    pub fn access(
        &mut self,
        (memory, cell): (usize, usize),
        how: AtOnce,
        act: Act,
        changes: bool,
    ) -> Result<(), (i64, i64)> {
        if self.cells.len() <= memory {
            self.cells.resize_with(memory + 1, Vec::new);
        }
        let cells = &mut self.cells[memory];
        if cells.len() <= cell {
            cells.resize(cell + 1, History::default());
        }
        let done = cells[cell].access(self.run, self.iteration, how, act, changes);
        done.map_err(|other| (self.value(other), self.value(self.iteration)))
    }
}

/// What is said of two iterations that depend on each other.
pub fn message(name: &str, how: AtOnce, (a, b): (i64, i64), cell: &str) -> String {
    let how = match how {
        AtOnce::Threads => "run on threads at the same time",
        AtOnce::Lanes => "run as lanes of vectors",
    };
    format!(
        "the iterations {name}={a} and {name}={b} of a loop {how}, and both access `{cell}`, which one of them writes"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The iterations that conflict when each `(iteration, act, changes)` happens in turn.
    fn conflict(how: AtOnce, acts: &[(u32, Act, bool)]) -> Option<(u32, u32)> {
        let mut h = History::default();
        acts.iter().find_map(|&(i, act, changes)| {
            h.access(1, i, how, act, changes).err().map(|other| (other, i))
        })
    }

    #[test]
    fn what_iterations_may_do_to_a_cell() {
        use Act::{Read, Update, Write};
        assert_eq!(conflict_of_both(&[(1, Read, false), (2, Read, false)]), None);
        assert_eq!(conflict_of_both(&[(1, Write, true), (1, Read, false), (1, Write, true)]), None);
        assert_eq!(conflict_of_both(&[(1, Write, true), (2, Read, false)]), Some((1, 2)));
        assert_eq!(conflict_of_both(&[(1, Read, false), (2, Write, true)]), Some((1, 2)));
        assert_eq!(
            conflict_of_both(&[(2, Read, false), (1, Read, false), (2, Write, true)]),
            Some((1, 2))
        );
        assert_eq!(conflict_of_both(&[(1, Write, true), (2, Write, true)]), Some((1, 2)));
        // The same work again.
        let again = [(1, Write, true), (1, Read, false), (2, Write, false), (2, Read, false)];
        assert_eq!(conflict_of_both(&again), None);
        assert_eq!(
            conflict_of_both(&[(1, Write, true), (2, Write, false), (3, Read, false)]),
            Some((1, 3))
        );
        // Not where one iteration makes something else of the cell in between.
        assert_eq!(
            conflict_of_both(&[(1, Write, true), (1, Write, true), (2, Write, false)]),
            Some((1, 2))
        );
        let later = [(1, Write, true), (2, Write, false), (2, Write, true)];
        assert_eq!(conflict_of_both(&later), Some((1, 2)));
        assert_eq!(conflict_of_both(&[(1, Write, false), (2, Read, false)]), None);
        // Updates.
        let (sum, max) = (Update(Combine::Sum), Update(Combine::Max));
        let lanes = |acts: &[(u32, Act, bool)]| conflict(AtOnce::Lanes, acts);
        let threads = |acts: &[(u32, Act, bool)]| conflict(AtOnce::Threads, acts);
        assert_eq!(lanes(&[(1, sum, true), (2, sum, true), (1, sum, true)]), None);
        assert_eq!(threads(&[(1, sum, true), (2, sum, true)]), Some((1, 2)));
        assert_eq!(conflict_of_both(&[(1, sum, true), (2, max, true)]), Some((1, 2)));
        assert_eq!(conflict_of_both(&[(1, sum, true), (2, Read, false)]), Some((1, 2)));
        assert_eq!(conflict_of_both(&[(1, Write, true), (2, sum, true)]), Some((1, 2)));
        assert_eq!(conflict_of_both(&[(1, Write, true), (1, sum, true)]), None);
    }

    fn conflict_of_both(acts: &[(u32, Act, bool)]) -> Option<(u32, u32)> {
        let found = conflict(AtOnce::Threads, acts);
        assert_eq!(found, conflict(AtOnce::Lanes, acts));
        found
    }

    #[test]
    fn another_run_of_the_loop_begins_afresh() {
        let mut w = Watch::default();
        for _ in 0..2 {
            w.begin(5);
            w.next();
            assert_eq!(w.access((0, 3), AtOnce::Threads, Act::Write, true), Ok(()));
        }
        w.next();
        assert_eq!(w.access((0, 3), AtOnce::Threads, Act::Read, false), Err((5, 6)));
    }
}
