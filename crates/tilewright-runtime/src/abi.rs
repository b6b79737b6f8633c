//! The C interface of compiled kernels, as code generation emits it.
//!
//! A kernel is `int32_t f(const tilewright_ctx *ctx, const uint64_t *args)`. `args` has one slot a
//! parameter (for a tensor, the address of its first element). The result is zero, or one more than
//! the number of the assertion that failed. A parallel loop in a kernel calls
//! `ctx->parallel_for`, or runs by itself where that is null.

use std::ffi::c_void;
use std::sync::atomic::AtomicI64;

use tilewright_codegen::emit::MAX_VALUES;

/// The body of a parallel loop: runs the iterations from `begin` to before `end`.
pub type Body =
    unsafe extern "C" fn(ctx: *const Context, closure: *mut c_void, begin: i64, end: i64);

/// Runs a parallel loop: calls `body` for parts that together make up `begin..end`, possibly from
/// several threads at once, and returns when all are done.
pub type ParallelFor = unsafe extern "C" fn(
    ctx: *const Context,
    body: Body,
    closure: *mut c_void,
    begin: i64,
    end: i64,
);

/// `tilewright_ctx`: what a kernel gets from who calls it.
#[repr(C)]
#[derive(Debug)]
pub struct Context {
    /// Null: parallel loops run serially.
    pub parallel_for: Option<ParallelFor>,
    /// For `parallel_for`.
    pub user: *mut c_void,
    /// Where the first assertion that fails leaves its values; may be null.
    pub failure: *const Failure,
}

/// What the first assertion that failed left.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Failure {
    /// The result of its kernel; zero as long as none did.
    pub code: AtomicI64,
    /// The values of its message.
    pub values: [AtomicI64; MAX_VALUES],
}

/// A compiled kernel.
pub type Kernel = unsafe extern "C" fn(ctx: *const Context, args: *const u64) -> i32;
