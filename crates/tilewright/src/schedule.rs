//! Schedules: how the loops of a function run, and how its buffers lie in memory.
//!
//! A [`Schedule`] holds a module and is changed by primitives, each a method that either keeps what
//! the module computes, or refuses. [`run_script`] runs the same primitives from text:
//!
//! ```
//! use tilewright::schedule::{Permissions, Schedule, run_script};
//! use tilewright::{Sizes, parse, print};
//! let module = parse("
//! @T.prim_func
//! def double(A: T.Buffer((64,), 'float32'), B: T.Buffer((64,), 'float32')):
//!     for i in range(64):
//!         with T.block('B'):
//!             vi = T.axis.spatial(64, i)
//!             B[vi] = A[vi] * 2.0
//! ", &Sizes::new())?;
//! let mut schedule = Schedule::new(module, Permissions::default());
//! run_script(&mut schedule, "
//! b0 = sch.get_block(name='B')
//! l1, = sch.get_loops(block=b0)
//! l2, l3 = sch.split(loop=l1, factors=[None, 16])
//! sch.vectorize(loop=l3)
//! ")?;
//! assert!(print(schedule.module()).contains("T.vectorized(16)"));
//! # Ok::<(), tilewright::Error>(())
//! ```

use tilewright_ir::{Result, Source};
pub use tilewright_schedule::value::{BlockRef, Lambda, LambdaItem, LoopRef, Value};
pub use tilewright_schedule::{BlockOrLoop, BufferArg, Permissions, Schedule};

use tilewright_driver::schedule_script;

/// Runs the text of a schedule script.
///
/// # Errors
/// Those of reading it and of the primitives, with the place in the text; the schedule keeps what
/// was applied before.
pub fn run_script(schedule: &mut Schedule, text: &str) -> Result<()> {
    schedule_script::apply(schedule, &Source::new("<schedule>", text), |_, _| Ok(()))
}
