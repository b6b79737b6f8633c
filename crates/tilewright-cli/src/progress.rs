//! Progress on standard error, where that is a terminal.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tilewright_driver::options::{Progress, Watcher};

/// A bar that is drawn only on a terminal, and is gone when it is dropped.
pub struct Bar(Option<ProgressBar>);

impl Bar {
    /// A bar that says what is going on first.
    pub fn new(what: &'static str) -> Bar {
        if !std::io::stderr().is_terminal() {
            return Bar(None);
        }
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg:10} {wide_bar} {pos}/{len}")
        {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        Bar(Some(bar))
    }

    /// Says what is going on, and how far it is.
    pub fn say(&self, what: &str, done: usize, total: usize) {
        if let Some(bar) = &self.0 {
            bar.set_message(what.to_owned());
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        }
    }

    /// What [`tilewright_driver::Options::progress`] takes.
    pub fn watcher(&self) -> Option<Watcher> {
        let bar = self.0.clone()?;
        Some(Arc::new(move |progress: Progress| {
            bar.set_message(progress.what);
            bar.set_length(progress.total as u64);
            bar.set_position(progress.done as u64);
        }))
    }
}

/// When each stage of a compilation began, in order.
#[derive(Clone, Default)]
pub struct Stages(Arc<Mutex<Vec<(&'static str, Instant)>>>);

impl Stages {
    /// Tells another watcher as well.
    pub fn watch(&self, other: Option<Watcher>) -> Watcher {
        let stages = self.clone();
        Arc::new(move |progress: Progress| {
            stages.begin(progress.what);
            other.iter().for_each(|watch| watch(progress));
        })
    }

    /// A stage begins, unless it is the one that is under way.
    pub fn begin(&self, name: &'static str) {
        let mut stages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stages.last().is_none_or(|(last, _)| *last != name) {
            stages.push((name, Instant::now()));
        }
    }

    /// How long each took, the last one until now.
    pub fn times(&self) -> Vec<(&'static str, Duration)> {
        let stages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = stages.iter().skip(1).map(|(_, end)| *end).chain([Instant::now()]);
        stages.iter().zip(ends).map(|((name, start), end)| (*name, end - *start)).collect()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
