//! Repeated runs of a compiled module on the same data, for whoever measures it.

use std::ops::Range;
use std::time::{Duration, Instant};

use tilewright_ir::{Result, Tensor};
use tilewright_runtime::Executable;

use super::random::Random;

/// A compiled module with its inputs, and outputs that each run writes.
pub struct Runs {
    /// The module.
    pub executable: Executable,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
}

impl Runs {
    /// Runs on inputs. The first one is done now, so that no measured one makes the outputs.
    ///
    /// # Errors
    /// Those of the run.
    pub fn on(executable: Executable, inputs: Vec<Tensor>) -> Result<Runs> {
        let outputs = executable.run(&inputs)?;
        Ok(Runs { executable, inputs, outputs })
    }

    /// Runs on random inputs.
    ///
    /// # Errors
    /// Those of the run; [`Error::Input`](tilewright_ir::Error::Input) where a size is open.
    pub fn on_random(executable: Executable, seed: u64) -> Result<Runs> {
        let mut random = Random::new(seed);
        let ports = executable.inputs().iter();
        let inputs = ports.map(|p| random.tensor(p.dtype, &p.fixed()?)).collect::<Result<_>>()?;
        Runs::on(executable, inputs)
    }

    /// The shortest of so many runs, and of at least so much time, in nanoseconds.
    ///
    /// # Errors
    /// Those of the runs.
    pub fn shortest(&mut self, least: Duration, count: Range<usize>) -> Result<f64> {
        let mut best = Duration::MAX;
        repeat(least, count, || {
            let start = Instant::now();
            self.executable.run_into(&self.inputs, &mut self.outputs)?;
            best = best.min(start.elapsed());
            Ok(())
        })?;
        Ok((best.as_nanos() as f64).max(1.0))
    }

    /// How long the steps of the plan take in each of so many runs, and of at least so much time.
    ///
    /// # Errors
    /// Those of the runs.
    pub fn profile(
        &mut self,
        least: Duration,
        count: Range<usize>,
        mut each: impl FnMut(&[Duration]),
    ) -> Result<()> {
        let mut times = vec![Duration::ZERO; self.executable.steps().count()];
        repeat(least, count, || {
            times.fill(Duration::ZERO);
            self.executable.run_profiled(&self.inputs, &mut self.outputs, &mut times)?;
            each(&times);
            Ok(())
        })
    }
}

/// Repeats something until `count.start` times are done and `least` is over; at most `count.end` times.
fn repeat(least: Duration, count: Range<usize>, mut run: impl FnMut() -> Result<()>) -> Result<()> {
    let (start, mut done) = (Instant::now(), 0);
    while done < count.start || (start.elapsed() < least && done < count.end) {
        run()?;
        done += 1;
    }
    Ok(())
}
