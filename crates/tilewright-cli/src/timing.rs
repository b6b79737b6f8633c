//! `run --time` and `run --profile`: how long a compiled module takes.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use tilewright_driver::{Executable, Result, Tensor};
use tilewright_report::{Profile, TimedCall};

/// Runs that are not counted: caches, pages and clocks settle.
const WARM_UP: (usize, Duration) = (2, Duration::from_millis(100));
/// Runs that are counted: at least so many, for at least as long as was asked for ...
const LEAST: usize = 10;
/// ... unless it takes longer than this many times as long, for a run that takes seconds.
const MOST: u32 = 20;

/// Times of repeated runs, shortest first; never empty.
pub struct Times(Vec<Duration>);

impl Times {
    /// Repeats runs for some time, until enough are counted.
    pub fn measure(least: Duration, mut run: impl FnMut() -> Result<()>) -> Result<Times> {
        let warm_up = WARM_UP.1.min(least);
        let start = Instant::now();
        let mut runs = 0;
        while runs < WARM_UP.0 || start.elapsed() < warm_up {
            run()?;
            runs += 1;
        }
        let start = Instant::now();
        let mut times = Vec::new();
        loop {
            let before = Instant::now();
            run()?;
            times.push(before.elapsed());
            let spent = start.elapsed();
            if (times.len() >= LEAST && spent >= least) || spent > least * MOST {
                break;
            }
        }
        times.sort();
        Ok(Times(times))
    }

    /// The time that this part of the runs stays below.
    fn quantile(&self, part: f64) -> Duration {
        let at = (part * self.0.len() as f64) as usize;
        self.0.get(at.min(self.0.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    /// The median in nanoseconds, between the ticks of the clock, which for short kernels are far apart: the
    /// mean of the middle fifth.
    fn median(&self) -> f64 {
        let n = self.0.len();
        let middle = self.0.get(n * 2 / 5..n - n * 2 / 5).unwrap_or_default();
        let sum: f64 = middle.iter().map(|time| time.as_nanos() as f64).sum();
        sum / middle.len().max(1) as f64
    }

    /// What the clock takes itself: the median of times in which nothing runs, in nanoseconds.
    fn clock() -> f64 {
        const READS: usize = 10_000;
        let mut times: Vec<_> = (0..READS).map(|_| Instant::now().elapsed()).collect();
        times.sort();
        Times(times).median()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, middle, high] = [0.1, 0.5, 0.9].map(|part| self.quantile(part));
        write!(
            f,
            "median {}, min {}, p90 {}, spread {}, {} runs",
            Show(middle),
            Show(self.quantile(0.0)),
            Show(high),
            // Between the fast and the slow tenth.
            Show(high.saturating_sub(low)),
            self.0.len()
        )
    }
}

/// A time in four digits.
pub struct Show(pub Duration);

impl fmt::Display for Show {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        let (value, unit) = match seconds {
            s if s >= 1.0 => (s, "s"),
            s if s >= 1e-3 => (s * 1e3, "ms"),
            s => (s * 1e6, "us"),
        };
        let decimals = match value {
            v if v >= 100.0 => 1,
            v if v >= 10.0 => 2,
            _ => 3,
        };
        write!(f, "{value:.decimals$} {unit}")
    }
}

/// How long each call of a kernel takes, over runs for some time.
pub fn profile(
    executable: &Executable,
    inputs: &[Tensor],
    outputs: &mut [Tensor],
    least: Duration,
) -> Result<Profile> {
    let steps: Vec<_> = executable.steps().collect();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); steps.len()];
    executable.run_into(inputs, outputs)?;
    let (start, mut runs) = (Instant::now(), 0u32);
    let mut run = vec![Duration::ZERO; steps.len()];
    while runs < 3 || start.elapsed() < least {
        run.fill(Duration::ZERO);
        executable.run_profiled(inputs, outputs, &mut run)?;
        times.iter_mut().zip(&run).for_each(|(all, time)| all.push(*time));
        runs += 1;
        if start.elapsed() > least * MOST {
            break;
        }
    }
    let clock = Times::clock();
    let steps = steps.into_iter().zip(times).map(|(step, mut times)| {
        times.sort();
        let times = Times(times);
        let least = times.quantile(0.0).as_nanos() as f64;
        let [median, least] = [times.median(), least].map(|time| (time - clock).max(1.0));
        TimedCall { value: step.value.to_string(), func: step.func.to_string(), median, least }
    });
    Ok(Profile { threads: executable.threads(), runs, steps: steps.collect() })
}

/// Lines that say which functions a run spends its time in, the longest first: for each function
/// the median over the runs, and the least, summed over its calls.
pub fn lines(profile: &Profile) -> Vec<String> {
    let mut functions: BTreeMap<&str, (f64, f64, usize)> = BTreeMap::new();
    for step in &profile.steps {
        let (median, least, calls) = functions.entry(&step.func).or_default();
        (*median, *least, *calls) = (*median + step.median, *least + step.least, *calls + 1);
    }
    let total: f64 = functions.values().map(|f| f.0).sum();
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let (count, runs) = (profile.steps.len(), profile.runs);
    let mut lines =
        vec![format!("profile: {} in {count} steps, medians of {runs} runs", duration_text(total))];
    for (name, (time, least, calls)) in functions {
        let share = 100.0 * time / total.max(f64::MIN_POSITIVE);
        let (time, least) = (duration_text(time), duration_text(least));
        lines
            .push(format!("profile: {share:5.1} % {time:>10}, min {least:>10} {calls:4} x {name}"));
    }
    lines
}

fn duration_text(time: f64) -> String {
    Show(Duration::from_nanos(time as u64)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_four_digits_and_a_unit() {
        for (nanos, text) in [
            (0, "0.000 us"),
            (1_234, "1.234 us"),
            (123_456, "123.5 us"),
            (12_345_678, "12.35 ms"),
            (2_000_000_000, "2.000 s"),
        ] {
            assert_eq!(Show(Duration::from_nanos(nanos)).to_string(), text);
        }
    }

    #[test]
    fn quantiles_come_from_the_sorted_times() {
        let times = Times((1..=20).map(Duration::from_millis).collect());
        assert_eq!(
            times.to_string(),
            "median 11.00 ms, min 1.000 ms, p90 19.00 ms, spread 16.00 ms, 20 runs"
        );
        let one = Times(vec![Duration::from_millis(3)]);
        assert_eq!(
            one.to_string(),
            "median 3.000 ms, min 3.000 ms, p90 3.000 ms, spread 0.000 us, 1 runs"
        );
    }

    #[test]
    fn enough_runs_are_counted() {
        let mut runs = 0;
        let times = Times::measure(Duration::from_secs(1), || {
            runs += 1;
            std::thread::sleep(Duration::from_millis(110));
            Ok(())
        });
        assert_eq!(times.expect("it runs").0.len(), LEAST);
        assert_eq!(runs, LEAST + WARM_UP.0);
    }
}
