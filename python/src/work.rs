//! Work that takes long, or deep recursion, away from the thread of Python.
//!
//! Trees are walked by recursion; the parser and the rules of the IR bound their depth for a stack that
//! is larger than those that Python gives its threads.

use pyo3::prelude::*;

/// Bytes of the stack; the command line has the same.
const STACK: usize = 128 << 20;

/// Does something on a large stack, without the lock of the interpreter.
pub fn away<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            match thread.map(|thread| thread.join()) {
                Ok(Ok(value)) => value,
                // What panicked there panics here.
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(error) => panic!("no thread can be started: {error}"),
            }
        })
    })
}
