//! Work on many trees at once, by as many threads as there are cores.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
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

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn results_come_in_order() {
        assert_eq!(map(0, |k| k), Vec::<usize>::new());
        assert_eq!(map(1000, |k| 2 * k), (0..1000).map(|k| 2 * k).collect::<Vec<_>>());
    }
}
