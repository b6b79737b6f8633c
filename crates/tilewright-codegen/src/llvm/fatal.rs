//! Errors of LLVM's that end the process otherwise.
//!
//! LLVM reports some errors (an operation that its code generator has no instruction for, for
//! example) by `report_fatal_error`: it calls a handler, and ends the process when that returns. A
//! handler cannot unwind either, since LLVM's frames are not made for it. So LLVM works on threads of
//! its own ([`guarded`]), and the handler keeps such a thread for good: it hands the message to the
//! thread that waits for the result, and sleeps. What LLVM holds at that moment stays held, locks
//! included. After that LLVM is not called any more, since it might wait for one of them for ever;
//! code that was compiled before still runs.
//!
//! A helper process would be the alternative. It would need a program to start, which a library has
//! not, and cost a start for each compilation.

use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

use tilewright_ir::{Error, Result};

/// Stack of a thread that runs LLVM, which walks expressions by recursion.
const STACK_BYTES: usize = 64 << 20;

/// The first fatal error of this process.
static FATAL: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    /// What tells the thread that waits for this one.
    static WAITING: RefCell<Option<Box<dyn Fn()>>> = const { RefCell::new(None) };
}

/// The handler. It does not return.
pub(super) unsafe extern "C" fn report(reason: *const c_char) {
    let text = if reason.is_null() {
        "no reason given".to_owned()
    } else {
        // SAFETY: LLVM hands over a text that ends with a zero and is valid during this call.
        unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned()
    };
    FATAL.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| text.clone());
    match WAITING.with_borrow_mut(Option::take) {
        Some(tell) => {
            tell();
            loop {
                std::thread::park();
            }
        }
        // A thread that LLVM was not meant to fail on: returning would end the process with the
        // exit code 1 and LLVM's own text.
        None => {
            eprintln!("error: LLVM stopped with a fatal error: {}", text.trim_end().escape_debug());
            std::process::exit(2)
        }
    }
}

/// The error after a fatal one, if there was any.
fn earlier() -> Option<Error> {
    let fatal = FATAL.lock().unwrap_or_else(PoisonError::into_inner);
    fatal.as_ref().map(|text| {
        Error::toolchain(format!("LLVM stopped with a fatal error: {}", text.trim_end()))
            .note("LLVM cannot be used any more in this process")
    })
}

/// Runs work of LLVM's, such that a fatal error of it is an error.
///
/// # Errors
/// Those of the work; [`Error::Toolchain`] for a fatal error, now or before; [`Error::Io`] if the
/// system refuses a thread.
pub(super) fn guarded<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if let Some(error) = earlier() {
        return Err(error);
    }
    let (send, receive) = channel::<Option<std::thread::Result<Result<T>>>>();
    let thread = std::thread::Builder::new().name("tilewright-llvm".into()).stack_size(STACK_BYTES);
    let thread = thread.spawn(move || {
        let tell = send.clone();
        WAITING.with_borrow_mut(|waiting| {
            *waiting = Some(Box::new(move || drop(tell.send(None))));
        });
        let result = catch_unwind(AssertUnwindSafe(work));
        WAITING.with_borrow_mut(|waiting| *waiting = None);
        let _ = send.send(Some(result));
    });
    let thread = thread.map_err(|e| Error::io(format!("cannot start a thread: {e}")))?;
    match receive.recv() {
        Ok(Some(result)) => {
            // It is at its end; a stack for each that is still on its way would add up.
            let _ = thread.join();
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }
        Ok(None) | Err(_) => {
            Err(earlier().unwrap_or_else(|| Error::internal("LLVM gave no answer")))
        }
    }
}
