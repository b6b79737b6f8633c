//! Work that takes long, or deep recursion, away from the thread of Python.
//!
//! Trees are walked by recursion; the parser and the rules of the IR bound their depth for a stack that
//! is larger than those that Python gives its threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::prelude::*;
use tilewright_driver::Options;
use tilewright_driver::options::Progress;

use crate::error::{Fault, Result};

/// Bytes of the stack; the command line has the same.
const STACK: usize = 128 << 20;

/// How long a wait goes on before signals are looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// What a thread unwinds with when nobody waits for it any more.
struct Abandoned;

/// Compiles something on a large stack, without the lock of the interpreter, until it is done or Python
/// has a signal that raises (Ctrl-C).
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
    options.progress = Some(Arc::new(move |progress: Progress| {
        if flag.load(Ordering::Relaxed) {
            std::panic::resume_unwind(Box::new(Abandoned));
        }
        if let Some(told) = &told {
            told(progress);
        }
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
                // What panicked there panics here.
                Err(panic) => std::panic::resume_unwind(panic),
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
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(error) => panic!("no thread can be started: {error}"),
            }
        })
    })
}
