//! What compiled functions and their callers agree on: how arguments are handed over, and how
//! the iterations of a parallel loop are shared.
//!
//! A function gets one word of eight bytes a parameter: the address of a tensor's first element, or
//! a scalar. It shares a parallel loop with other threads through [`Workers`].

use std::ffi::c_void;

/// The body of a parallel loop: runs the iterations from `begin` to before `end`.
pub type Body =
    unsafe extern "C" fn(workers: *const Workers, closure: *mut c_void, begin: i64, end: i64);

/// Runs a parallel loop: calls `body` for parts that together make up `begin..end`, possibly from
/// several threads at once, and returns when all are done. `workers` goes on to the body.
pub type ParallelFor = unsafe extern "C" fn(
    workers: *const Workers,
    body: Body,
    closure: *mut c_void,
    begin: i64,
    end: i64,
);

/// The threads that share parallel loops.
///
/// Code hands on the address that it got, so that a backend may let more follow in memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Workers {
    /// Null: parallel loops run serially.
    pub parallel_for: Option<ParallelFor>,
    /// For `parallel_for`.
    pub user: *mut c_void,
}

impl Workers {
    /// None: parallel loops run serially.
    pub const NONE: Workers = Workers { parallel_for: None, user: std::ptr::null_mut() };
}
