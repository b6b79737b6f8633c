//! Measured times, kept by content.
//!
//! What a function costs in a layout can be estimated, or measured on the machine that it is to run
//! on. A measurement is kept under a [`key`]: a hash of the function up to names, of the arguments that
//! are the same in every run, of the target and of the number of threads. So every model that holds
//! the same function uses it.
//!
//! * [`key`]: what a measurement is of.
//! * [`record`]: measurements and calibrations.
//! * [`store`]: the file that keeps them (SQLite), which several processes may use at once. Without the
//!   feature `sqlite` there is none, and a file that is named is refused.
//! * [`worker`]: measuring in a process of its own, so that a candidate that crashes or does not end
//!   costs only itself.
//!
//! **Architecture invariant:** nothing in here compiles or measures. Who asks brings a program that
//! does.

pub mod key;
pub mod record;
#[cfg(feature = "sqlite")]
pub mod store;
#[cfg(any(test, not(feature = "sqlite")))]
#[cfg_attr(feature = "sqlite", allow(dead_code))]
mod without;
pub mod worker;

pub use key::{Key, Scope};
pub use record::{Calibration, Kind, Measured, MeasuredPlan, Record};
#[cfg(feature = "sqlite")]
pub use store::Store;
#[cfg(not(feature = "sqlite"))]
pub use without::Store;
pub use worker::{Answer, Worker};
