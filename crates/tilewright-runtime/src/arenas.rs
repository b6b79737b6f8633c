//! What a run writes to: arenas, which runs lend and give back.
//!
//! Each run that goes on at the same time as others has an arena of its own. One that is free serves any
//! sizes for which it is large enough.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::{SizedPlan, Slot};
use tilewright_ir::{Error, Result, Tensor};

use crate::home::{Arena, Home, Staging};

pub(crate) fn broken(what: String) -> Error {
    Error::internal(format!("the memory plan is wrong: {what}"))
}

/// The plan for some sizes.
pub(crate) struct Fixed {
    /// The values of the open sizes.
    pub(crate) sizes: Vec<usize>,
    pub(crate) plan: SizedPlan,
    /// Where the arguments of each step lie in [`Memory::args`].
    pub(crate) calls: Vec<Range<usize>>,
    /// The places of inputs and outputs in the argument lists.
    pub(crate) open: Vec<(usize, Slot)>,
    /// Where inputs and outputs lie behind the arena on a device.
    pub(crate) staging: Staging,
}

/// What a run writes to, apart from the outputs.
pub(crate) struct Memory {
    /// The plan that the arguments are those of.
    of: Arc<Fixed>,
    pub(crate) arena: Arena,
    /// The argument lists of all calls.
    pub(crate) args: Vec<u64>,
}

/// What runs write to, for as many of them as go on at the same time.
#[derive(Default)]
pub(crate) struct Arenas {
    state: Mutex<Free>,
    /// An arena was given back.
    freed: Condvar,
}

#[derive(Default)]
struct Free {
    list: Vec<Memory>,
    /// Arenas in all, those in use included.
    made: usize,
    /// How many runs wait for one: to wake none of them asks the system for nothing.
    waiting: usize,
}

/// The memory of one run, which goes back when it ends.
pub(crate) struct Lease<'a> {
    arenas: &'a Arenas,
    /// Empty only while it is dropped.
    memory: Option<Memory>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.arenas.state.lock().unwrap_or_else(PoisonError::into_inner);
        match self.memory.take() {
            Some(memory) => state.list.push(memory),
            None => state.made -= 1,
        }
        let waited_for = state.waiting > 0;
        drop(state);
        if waited_for {
            self.arenas.freed.notify_one();
        }
    }
}

impl Lease<'_> {
    /// What the run writes to.
    ///
    /// # Errors
    /// [`Error::Internal`] after it was given back.
    pub(crate) fn memory(&mut self) -> Result<&mut Memory> {
        self.memory.as_mut().ok_or_else(|| Error::internal("a run without memory"))
    }
}

impl Arenas {
    /// The memory for a run: one that is free, best of the same sizes, else of the most bytes; a new one;
    /// or where there may be no more of them the next one that becomes free.
    pub(crate) fn lease(&self, fixed: &Arc<Fixed>, home: &Home, most: usize) -> Result<Lease<'_>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let same = state.list.iter().rposition(|m| Arc::ptr_eq(&m.of, fixed));
            let made = same
                .or_else(|| (0..state.list.len()).max_by_key(|k| state.list[*k].arena.bytes()))
                .map(|at| state.list.swap_remove(at));
            let new = made.is_none() && state.made < most;
            if new {
                state.made += 1;
            }
            if made.is_some() || new {
                drop(state);
                // If it fails, dropping the lease counts it out again.
                let mut lease = Lease { arenas: self, memory: None };
                lease.memory = Some(match made {
                    Some(memory) if Arc::ptr_eq(&memory.of, fixed) => memory,
                    Some(memory) => Memory::new(fixed, home, Some(memory.arena))?,
                    None => Memory::new(fixed, home, None)?,
                });
                return Ok(lease);
            }
            state.waiting += 1;
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    /// How many there are, and how many of them are free.
    #[cfg(test)]
    pub(crate) fn count(&self) -> (usize, usize) {
        let state = self.state.lock().expect("no panic");
        (state.made, state.list.len())
    }
}

impl Fixed {
    /// Checks that the plan names what is there.
    pub(crate) fn new(sizes: &[usize], plan: SizedPlan) -> Result<Fixed> {
        let (mut calls, mut open, mut count) = (Vec::with_capacity(plan.steps.len()), vec![], 0);
        for step in &plan.steps {
            calls.push(count..count + step.args.len());
            for slot in &step.args {
                match *slot {
                    Slot::Arena(at) if at <= plan.arena_bytes => {}
                    Slot::Constant(i) if i < plan.constants.len() => {}
                    Slot::Input(i) if i < plan.inputs.len() => open.push((count, *slot)),
                    Slot::Output(i) if i < plan.outputs.len() => open.push((count, *slot)),
                    Slot::InputAt(i, _) if i < plan.inputs.len() => open.push((count, *slot)),
                    Slot::OutputAt(i, _) if i < plan.outputs.len() => open.push((count, *slot)),
                    Slot::Number(_) => {}
                    _ => return Err(broken(format!("`{}` uses {slot:?}", step.func))),
                }
                count += 1;
            }
        }
        let staging = Staging::behind(&plan)?;
        Ok(Fixed { sizes: sizes.to_vec(), plan, calls, open, staging })
    }

    /// Tensors for the outputs.
    pub(crate) fn empty_outputs(&self) -> Result<Vec<Tensor>> {
        self.plan.outputs.iter().map(|port| Tensor::zeros(port.dtype, &port.shape)).collect()
    }
}

impl Memory {
    /// An arena, one that was there if it is large enough, and the argument lists with the addresses
    /// in it and of the constants; on a device those of inputs and outputs as well.
    fn new(fixed: &Arc<Fixed>, home: &Home, old: Option<Arena>) -> Result<Memory> {
        let (plan, staging) = (&fixed.plan, &fixed.staging);
        let bytes = if home.is_host() { plan.arena_bytes } else { staging.end };
        // Sizes that grow bit by bit get new memory a few times, not each time; what is not touched
        // costs nothing.
        let more = old.as_ref().map_or(0, |old| old.bytes().saturating_mul(3) / 2);
        let mut arena = match old.filter(|arena| arena.bytes() >= bytes) {
            Some(arena) => arena,
            None => Arena::new(home, bytes.max(more))
                .or_else(|_| Arena::new(home, bytes))
                .map_err(|e| e.context("memory for intermediate results"))?,
        };
        let start = arena.start();
        let slots = plan.steps.iter().flat_map(|step| &step.args);
        let args = slots
            .map(|slot| match *slot {
                Slot::Arena(at) => start + at as u64,
                Slot::Constant(i) => home.constant(&plan.constants, i),
                Slot::Number(n) => n as u64,
                Slot::Input(i) => staged(&staging.inputs, i, home, start),
                Slot::Output(i) => staged(&staging.outputs, i, home, start),
                Slot::InputAt(i, at) => staged(&staging.inputs, i, home, start) + at as u64,
                Slot::OutputAt(i, at) => staged(&staging.outputs, i, home, start) + at as u64,
            })
            .collect();
        Ok(Memory { of: fixed.clone(), arena, args })
    }
}

fn staged(places: &[usize], i: usize, home: &Home, start: u64) -> u64 {
    if home.is_host() { 0 } else { start + places[i] as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(bytes: usize) -> Arc<Fixed> {
        let plan = SizedPlan { arena_bytes: bytes, ..SizedPlan::default() };
        Arc::new(Fixed::new(&[bytes], plan).expect("nothing is used"))
    }

    #[test]
    fn sizes_that_grow_bit_by_bit_share_few_arenas() {
        let arenas = Arenas::default();
        let mut places = std::collections::BTreeSet::new();
        let mut largest = 0;
        for k in 1..=300 {
            let mut lease = arenas.lease(&fixed(k << 12), &Home::Host, 2).expect("memory");
            let arena = &mut lease.memory().expect("lent").arena;
            assert!(arena.bytes() >= k << 12);
            largest = largest.max(arena.bytes());
            places.insert(arena.bytes());
        }
        assert_eq!(arenas.count(), (1, 1));
        assert!(places.len() <= 15 && largest <= 450 << 12, "{places:?}");
        // Two runs at once have two.
        let plan = fixed(1 << 12);
        let (one, other) = (
            arenas.lease(&plan, &Home::Host, 2).expect("memory"),
            arenas.lease(&plan, &Home::Host, 2),
        );
        assert_eq!(arenas.count(), (2, 0));
        drop((one, other.expect("memory")));
        assert_eq!(arenas.count(), (2, 2));
    }
}
