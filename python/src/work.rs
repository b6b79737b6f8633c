//! Work that takes long, or deep recursion, away from the thread of Python.
//!
//! Trees are walked by recursion; the parser and the rules of the IR bound their depth for a stack that
//! is larger than those that Python gives its threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use tilewright_driver::Options;
use tilewright_driver::options::Progress;

use crate::error::{Fault, Result};

/// Bytes of the stack; the command line has the same.
const STACK: usize = 128 << 20;

/// How long a wait goes on before signals are looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// What a thread unwinds with when its work is not wanted any more, and the exception that says so, where
/// nobody was told yet.
struct Abandoned(Option<PyErr>);

/// Ends the work of this thread, which was begun by [`away_until_signal`]: that raises the exception.
pub fn abandon(raised: PyErr) -> ! {
    resume_unwind(Box::new(Abandoned(Some(raised))))
}

/// Does something that may take long on a large stack, without the lock of the interpreter, until it is done
/// or Python has a signal that raises (Ctrl-C). After that the work goes on by itself, and nobody waits for it.
pub fn until_signal<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> tilewright_driver::Result<T> + Send + 'static,
) -> Result<T> {
    away_until_signal(py, Options::new(), move |_| work())
}

/// Compiles something on a large stack, without the lock of the interpreter, until it is done or Python
/// has a signal that raises (Ctrl-C), or what is told of progress raises.
///
/// After a signal the work goes on by itself, and ends where it next says how far it is.
pub fn away_until_signal<T: Send + 'static>(
    py: Python<'_>,
    mut options: Options,
    work: impl FnOnce(&Options) -> tilewright_driver::Result<T> + Send + 'static,
) -> Result<T> {
    let is_abandoned = Arc::new(AtomicBool::new(false));
    let told = options.progress.take();
    let flag = is_abandoned.clone();
    // Several threads compile; the payload of those that are not the first is lost on the way.
    let raised = Arc::new(Mutex::new(None));
    let slot = raised.clone();
    options.progress = Some(Arc::new(move |progress: Progress| {
        if flag.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Abandoned(None)));
        }
        let Some(told) = &told else { return };
        let Err(mut panic) = catch_unwind(AssertUnwindSafe(|| told(progress))) else { return };
        if let Some(Abandoned(found)) = panic.downcast_mut::<Abandoned>() {
            flag.store(true, Ordering::Relaxed);
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            *slot = slot.take().or(found.take());
        }
        resume_unwind(panic);
    }));
    let (done, mut result) = mpsc::sync_channel(1);
    let run = move || {
        // Nobody may be there to take it.
        drop(done.send(work(&options)));
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run);
    let thread = thread.map_err(|error| {
        Fault::Own(tilewright_driver::Error::io(format!("no thread can be started: {error}")))
    })?;
    loop {
        let waiting = &mut result;
        match py.detach(move || waiting.recv_timeout(GLANCE)) {
            Ok(value) => return Ok(value?),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(raised) = py.check_signals() {
                    is_abandoned.store(true, Ordering::Relaxed);
                    return Err(raised.into());
                }
            }
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => {
                    let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
                    // What panicked there panics here.
                    return Err(raised.unwrap_or_else(|| resume_unwind(panic)).into());
                }
                Ok(()) => {
                    let what = "a compilation ended without a result";
                    return Err(tilewright_driver::Error::internal(what).into());
                }
            },
        }
    }
}

/// Does something on a large stack, without the lock of the interpreter.
pub fn away<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            match thread.map(|thread| thread.join()) {
                Ok(Ok(value)) => value,
                // What panicked there panics here.
                Ok(Err(panic)) => resume_unwind(panic),
                Err(error) => panic!("no thread can be started: {error}"),
            }
        })
    })
}
