//! Work on many trees at once, by as many threads as there are cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{Builder, available_parallelism, scope};

/// Stack of a thread: trees are walked by recursion.
const STACK_BYTES: usize = 128 << 20;

/// What `work` makes of each number below `count`, in this order.
///
/// # Panics
/// Where `work` does.
pub fn map<T: Send + Sync>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let results: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let run = || {
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            let Some(result) = results.get(k) else { return };
            result.get_or_init(|| work(k));
        }
    };
    let threads = available_parallelism().map_or(1, usize::from).min(count);
    scope(|scope| {
        for _ in 1..threads {
            // Without more threads this one does it all.
            let _ = Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
        }
        run();
    });
    results.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// Does a piece of work with each part of so many elements, the last one maybe shorter, as many at a time as
/// there are cores: with the number of elements before it, and the part. What `work` gives comes back in order.
///
/// The first write to a page of new memory has the system clear it, which takes longer than a copy: threads share
/// that time.
///
/// # Panics
/// Where `work` does.
pub fn map_parts<T: Send, R: Send + Sync>(
    elements: &mut [T],
    size: usize,
    work: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    let size = size.max(1);
    let parts: Vec<Mutex<&mut [T]>> = elements.chunks_mut(size).map(Mutex::new).collect();
    map(parts.len(), |k| {
        let mut part = parts[k].lock().unwrap_or_else(PoisonError::into_inner);
        work(k * size, &mut part)
    })
}

#[cfg(test)]
mod tests {
    use super::{map, map_parts};

    #[test]
    fn parts_know_what_is_before_them() {
        let mut all = [0; 10];
        let sizes = map_parts(&mut all, 4, |before, part| {
            part.iter_mut().enumerate().for_each(|(k, x)| *x = before + k);
            part.len()
        });
        assert_eq!(sizes, [4, 4, 2]);
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(map_parts(&mut [0; 0], 0, |_, _| ()).len(), 0);
    }

    #[test]
    fn results_come_in_order() {
        assert_eq!(map(0, |k| k), Vec::<usize>::new());
        assert_eq!(map(1000, |k| 2 * k), (0..1000).map(|k| 2 * k).collect::<Vec<_>>());
    }
}
