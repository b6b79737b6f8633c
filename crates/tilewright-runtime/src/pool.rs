//! The threads that share the iterations of a kernel's parallel loops.
//!
//! A model runs hundreds of kernels in a few milliseconds, so what counts is the time to hand out a
//! loop and to see that it is done. A loop is published in memory that the workers watch: no lock,
//! no queue, no system call while they are awake. Each thread has an equal part of the iterations,
//! the same part of every loop of as many: what the loop before wrote is then in the cache of its
//! core. It takes them in chunks from a counter, large ones first, and then those that are left in
//! the parts of others; a worker that comes late finds nothing left, and no thread waits for it. A
//! worker that has seen no work for a while sleeps.
//!
//! One loop runs at a time. A loop that starts while another runs, inside of it or from another
//! thread, runs serially on its own thread.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tilewright_ir::{Error, Result};
use tilewright_target::abi::{Body, ParallelFor, Workers};

/// How long a worker watches for the next loop before it sleeps. Between the loops of one run
/// there are microseconds, between two runs anything.
const WATCH: Duration = Duration::from_micros(100);
/// Looks at the memory between two looks at the clock.
const LOOKS: u32 = 64;
/// A chunk is one of so many equal ones of what is left of a part: a thread that is held up leaves
/// work to the others, and the last chunks are the smallest.
const CHUNKS: i64 = 4;
/// Most threads; more than any machine has cores.
const MAX_THREADS: usize = 1024;

/// A set of threads. Dropping it ends them.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

/// What the threads have in common.
struct Shared {
    /// Counts the loops (upper half), says whether the last one may still be joined ([`OPEN`]),
    /// and counts the workers in it (below).
    gate: Line<AtomicU64>,
    /// The first iteration in the part of each thread that no thread has taken.
    next: Vec<Line<AtomicI64>>,
    /// Written while the gate is closed and no thread is inside, read by the threads inside.
    job: UnsafeCell<Job>,
    /// A loop runs.
    busy: AtomicBool,
    /// Workers that sleep, or are about to.
    sleeping: AtomicUsize,
    /// Held by a worker from its last look at the gate until it sleeps.
    sleep: Mutex<()>,
    wake: Condvar,
    quit: AtomicBool,
    /// The calling thread included.
    threads: usize,
    /// There are cores for all threads, so that watching takes no time from anybody.
    watch: bool,
}

/// A value on a cache line of its own.
#[repr(align(128))]
struct Line<T>(T);

/// Set in the gate while workers may join.
const OPEN: u64 = 1 << 31;
/// The workers inside, in the gate.
const INSIDE: u64 = OPEN - 1;
/// One loop, in the gate.
const LOOP: u64 = 1 << 32;

#[derive(Clone, Copy)]
struct Job {
    body: Option<Body>,
    workers: *const Workers,
    closure: *mut c_void,
    begin: i64,
    count: i64,
}

impl Job {
    /// How many parts there are, for so many threads.
    fn parts(&self, threads: usize) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX).min(threads)
    }

    /// Where a part begins, which is where the one before ends.
    fn part(&self, part: usize, threads: usize) -> i64 {
        let (parts, part) = (self.parts(threads).max(1) as i64, part as i64);
        self.begin + self.count / parts * part + part.min(self.count % parts)
    }
}

// SAFETY: `job` is the only part that is not `Sync`. It is written by the thread that has set
// `busy`, while the gate is closed and empty; a worker reads it after it went through the open gate
// (acquire, of the release that opened it) and before it leaves (release, that the writer acquires
// before it goes on). The pointers inside are for compiled code, which may be called on any thread
// with them: that is what `parallel_for` means.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Pool {
    /// A pool of `threads` threads, of which one is the thread that calls. One is no pool: its loops
    /// run serially.
    ///
    /// # Errors
    /// [`Error::Input`] for no threads or more than 1024; [`Error::Io`] if the system refuses one.
    pub fn new(threads: usize) -> Result<Pool> {
        if !(1..=MAX_THREADS).contains(&threads) {
            return Err(Error::input(format!(
                "{threads} threads, where 1 to {MAX_THREADS} are possible"
            )));
        }
        let shared = Arc::new(Shared {
            gate: Line(AtomicU64::new(0)),
            next: (0..threads).map(|_| Line(AtomicI64::new(0))).collect(),
            job: UnsafeCell::new(Job {
                body: None,
                workers: std::ptr::null(),
                closure: std::ptr::null_mut(),
                begin: 0,
                count: 0,
            }),
            busy: AtomicBool::new(false),
            sleeping: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
            quit: AtomicBool::new(false),
            threads,
            watch: threads <= cores(),
        });
        let mut pool = Pool { shared, workers: Vec::with_capacity(threads - 1) };
        for i in 1..threads {
            let shared = pool.shared.clone();
            let thread = std::thread::Builder::new().name(format!("tilewright-{i}"));
            let worker = thread.spawn(move || shared.work(i));
            pool.workers.push(worker.map_err(|e| {
                Error::io(format!("cannot start thread {i} of {}: {e}", threads - 1))
            })?);
        }
        Ok(pool)
    }

    /// The pool of so many threads that all of this process shares; it ends when it is no longer
    /// used.
    ///
    /// # Errors
    /// As [`Pool::new`].
    pub fn shared(threads: usize) -> Result<Arc<Pool>> {
        static POOLS: Mutex<BTreeMap<usize, Weak<Pool>>> = Mutex::new(BTreeMap::new());
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(&threads).and_then(Weak::upgrade) {
            return Ok(pool);
        }
        let pool = Arc::new(Pool::new(threads)?);
        pools.insert(threads, Arc::downgrade(&pool));
        Ok(pool)
    }

    /// Number of threads, the calling one included.
    pub fn threads(&self) -> usize {
        self.shared.threads
    }

    /// What makes kernels use this pool. It is valid as long as the pool is.
    pub fn workers(&self) -> Workers {
        let shared: *const Shared = &*self.shared;
        let parallel_for: Option<ParallelFor> = match self.threads() {
            1 => None,
            _ => Some(parallel_for),
        };
        Workers { parallel_for, user: shared.cast_mut().cast() }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::SeqCst);
        self.shared.wake_all();
        for worker in self.workers.drain(..) {
            // A worker does not panic, and if it did, the loop is over.
            let _ = worker.join();
        }
    }
}

pub use tilewright_target::cores;

/// [`ParallelFor`] of a pool.
unsafe extern "C" fn parallel_for(
    workers: *const Workers,
    body: Body,
    closure: *mut c_void,
    begin: i64,
    end: i64,
) {
    // SAFETY: the kernel hands on the workers that it was called with, which come from
    // `Pool::workers`; the caller that runs the kernel keeps the pool.
    let shared = unsafe { &*(*workers).user.cast_const().cast::<Shared>() };
    let count = end.saturating_sub(begin);
    if count <= 0 {
        return;
    }
    if count == 1 || shared.busy.swap(true, Ordering::Acquire) {
        // SAFETY: what the kernel asks for.
        unsafe { body(workers, closure, begin, end) };
        return;
    }
    let job = Job { body: Some(body), workers, closure, begin, count };
    // SAFETY: `busy` was not set, so no loop runs: the gate is closed and no thread is inside.
    unsafe { *shared.job.get() = job };
    for (k, next) in shared.next[..job.parts(shared.threads)].iter().enumerate() {
        next.0.store(job.part(k, shared.threads), Ordering::Relaxed);
    }
    let closed = shared.gate.0.load(Ordering::Relaxed);
    shared.gate.0.store(closed.wrapping_add(LOOP) | OPEN, Ordering::Release);
    // Pairs with the fence in `work`: either this thread sees the sleeper, or the sleeper sees the
    // open gate.
    fence(Ordering::SeqCst);
    if shared.sleeping.load(Ordering::Relaxed) > 0 {
        shared.wake_all();
    }
    // SAFETY: this thread published the job.
    unsafe { shared.take_chunks(0) };
    shared.gate.0.fetch_and(!OPEN, Ordering::Relaxed);
    let mut looks = 0u32;
    while shared.gate.0.load(Ordering::Acquire) & INSIDE != 0 {
        // A worker may have lost its core in the middle of a chunk.
        looks += 1;
        if shared.watch && looks < 1 << 14 {
            std::hint::spin_loop()
        } else {
            std::thread::yield_now()
        }
    }
    shared.busy.store(false, Ordering::Release);
}

impl Shared {
    /// Runs chunks of the current loop until none is left, first those of the part of a thread.
    ///
    /// # Safety
    /// The caller has published the job, or has gone through the gate.
    unsafe fn take_chunks(&self, thread: usize) {
        // SAFETY: the job is not written while a thread may be here.
        let job = unsafe { *self.job.get() };
        let Some(body) = job.body else { return };
        let parts = job.parts(self.threads);
        for part in (0..parts).map(|k| (thread + k) % parts) {
            let (next, end) = (&self.next[part].0, job.part(part + 1, self.threads));
            let mut from = next.load(Ordering::Relaxed);
            while from < end {
                let to = from + ((end - from) / CHUNKS).max(1);
                let taken =
                    next.compare_exchange_weak(from, to, Ordering::Relaxed, Ordering::Relaxed);
                if let Err(other) = taken {
                    from = other;
                    continue;
                }
                // SAFETY: the body may be called on any thread, for parts that do not overlap, until
                // `parallel_for` returns; it waits for everybody inside.
                unsafe { body(job.workers, job.closure, from, to) };
                from = next.load(Ordering::Relaxed);
            }
        }
    }

    /// The life of the worker that is a thread of this number.
    fn work(&self, thread: usize) {
        // The last loop that this worker was in.
        let mut seen = 0;
        while !self.quit.load(Ordering::Relaxed) {
            let gate = self.wait(seen);
            if gate & OPEN == 0 {
                continue;
            }
            let entered =
                self.gate.0.compare_exchange(gate, gate + 1, Ordering::Acquire, Ordering::Relaxed);
            if entered.is_ok() {
                seen = gate / LOOP;
                // SAFETY: the gate was open, and counts this worker until it leaves.
                unsafe { self.take_chunks(thread) };
                self.gate.0.fetch_sub(1, Ordering::Release);
            }
        }
    }

    /// Waits for a loop after `seen`, or for the end of the pool; the gate that it saw.
    fn wait(&self, seen: u64) -> u64 {
        let start = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if let Some(gate) = self.news(seen) {
                    return gate;
                }
                if self.watch { std::hint::spin_loop() } else { std::thread::yield_now() }
            }
            if start.elapsed() > WATCH {
                break;
            }
        }
        let mut guard = self.sleep.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleeping.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let gate = loop {
            match self.news(seen) {
                Some(gate) => break gate,
                None => guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner),
            }
        };
        self.sleeping.fetch_sub(1, Ordering::Relaxed);
        drop(guard);
        gate
    }

    fn news(&self, seen: u64) -> Option<u64> {
        let gate = self.gate.0.load(Ordering::Relaxed);
        let open = gate & OPEN != 0 && gate / LOOP != seen;
        (open || self.quit.load(Ordering::Relaxed)).then_some(gate)
    }

    fn wake_all(&self) {
        // A thread that is about to sleep holds the lock until it does.
        drop(self.sleep.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// A loop over `begin..end` whose body is a Rust function of the bounds of a part.
    fn run<F: Fn(*const Workers, i64, i64) + Sync>(workers: &Workers, begin: i64, end: i64, f: &F) {
        unsafe extern "C" fn body<F: Fn(*const Workers, i64, i64) + Sync>(
            workers: *const Workers,
            closure: *mut c_void,
            begin: i64,
            end: i64,
        ) {
            // SAFETY: `run` hands over an `F`, which lives until the loop is done.
            let f = unsafe { &*closure.cast_const().cast::<F>() };
            f(workers, begin, end);
        }
        let closure: *const F = f;
        let closure = closure.cast_mut().cast();
        match workers.parallel_for {
            // SAFETY: the workers are those of a pool that the test holds.
            Some(parallel_for) => unsafe { parallel_for(workers, body::<F>, closure, begin, end) },
            None => f(workers, begin, end),
        }
    }

    /// How often each of `0..n` is run.
    fn counts(workers: &Workers, n: usize) -> Vec<usize> {
        let counts: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
        run(workers, 0, n as i64, &|_, begin, end| {
            for count in &counts[begin as usize..end as usize] {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        counts.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn every_iteration_runs_once_for_any_number_of_threads() {
        for threads in [1, 2, 3, 5, 16] {
            let pool = Pool::new(threads).expect("a pool");
            assert_eq!(pool.threads(), threads);
            let workers = pool.workers();
            assert_eq!(workers.parallel_for.is_none(), threads == 1);
            for n in [0, 1, 2, 3, 7, 64, 65, 1000] {
                assert_eq!(counts(&workers, n), vec![1; n], "{threads} threads");
            }
        }
    }

    #[test]
    fn many_loops_in_a_row_and_with_pauses() {
        let pool = Pool::new(4).expect("a pool");
        let workers = pool.workers();
        let sum = AtomicI64::new(0);
        for i in 0..20_000 {
            run(&workers, -5, 11, &|_, begin, end| {
                sum.fetch_add((begin..end).sum::<i64>(), Ordering::Relaxed);
            });
            if i % 1000 == 0 {
                std::thread::sleep(WATCH * 3);
            }
        }
        assert_eq!(sum.into_inner(), 20_000 * (-5..11).sum::<i64>());
    }

    #[test]
    fn several_threads_are_at_work() {
        let pool = Pool::new(3).expect("a pool");
        let ids = Mutex::new(HashSet::new());
        let here = std::sync::Barrier::new(3);
        run(&pool.workers(), 0, 3, &|_, _, _| {
            // No thread gets past this before three threads have an iteration each.
            here.wait();
            ids.lock().expect("no panic").insert(std::thread::current().id());
        });
        assert_eq!(ids.into_inner().expect("no panic").len(), 3);
    }

    #[test]
    fn a_loop_inside_a_loop_runs_serially() {
        let pool = Pool::new(3).expect("a pool");
        let sum = AtomicI64::new(0);
        run(&pool.workers(), 0, 10, &|workers, begin, end| {
            // SAFETY: the workers that the loop was started with are still there.
            let workers = unsafe { &*workers };
            let outer = std::thread::current().id();
            for i in begin..end {
                run(workers, 0, 7, &|_, begin, end| {
                    assert_eq!((begin, end), (0, 7));
                    assert_eq!(std::thread::current().id(), outer);
                    sum.fetch_add(i, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(sum.into_inner(), 45);
    }

    #[test]
    fn loops_of_several_threads_at_once_all_run() {
        let pool = Pool::new(3).expect("a pool");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let workers = pool.workers();
                    for _ in 0..300 {
                        assert_eq!(counts(&workers, 40), vec![1; 40]);
                    }
                });
            }
        });
    }

    #[test]
    fn a_pool_is_shared_while_it_is_in_use() {
        let pool = Pool::shared(6).expect("a pool");
        assert!(Arc::ptr_eq(&pool, &Pool::shared(6).expect("the same pool")));
        assert!(!Arc::ptr_eq(&pool, &Pool::shared(7).expect("another pool")));
        let weak = Arc::downgrade(&pool);
        drop(pool);
        assert!(weak.upgrade().is_none());
        assert_eq!(counts(&Pool::shared(6).expect("a new pool").workers(), 9), vec![1; 9]);
    }

    #[test]
    fn impossible_numbers_of_threads_are_errors() {
        for n in [0, 1025, usize::MAX] {
            let error = Pool::new(n).map(drop).expect_err("not possible");
            assert!(error.to_string().starts_with(&format!("{n} threads")), "{error}");
        }
    }

    #[test]
    fn a_pool_ends_while_its_workers_watch_and_while_they_sleep() {
        for pause in [Duration::ZERO, WATCH * 5] {
            let pool = Pool::new(4).expect("a pool");
            assert_eq!(counts(&pool.workers(), 100), vec![1; 100]);
            std::thread::sleep(pause);
            drop(pool);
        }
    }
}
