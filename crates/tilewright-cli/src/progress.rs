//! Progress on standard error, where that is a terminal.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

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

    /// No bar.
    pub fn none() -> Bar {
        Bar(None)
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

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
