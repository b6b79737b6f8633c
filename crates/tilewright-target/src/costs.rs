//! What work costs on one core of a processor: the constants of the cost model, in one place.
//!
//! `tilewright_autoschedule::tile` and `tilewright_autoschedule::price` say how prices are made of them. Each constant
//! has a written value, so that code for a machine which nobody has measured is the same wherever it is
//! made. A calibration replaces written values by those of one machine, and says how long a cycle takes
//! there; it may move each only so far ([`Costs::bounds`]), since probes are disturbed by what else runs.
//! Where one constant ends and another begins ([`ROW`] and those after it), a calibration does not say.

use crate::features::Features;

/// Declares the constants: what each is, its name and its written value.
macro_rules! costs {
    ($($(#[$doc:meta])* $name:ident: $value:expr,)*) => {
        /// The constants of the cost model, in cycles unless said otherwise.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Costs {
            $($(#[$doc])* pub $name: f64,)*
            /// Nanoseconds of a cycle, where the machine was calibrated.
            pub cycle: Option<f64>,
        }

/// Cells that one thread stores in the time that waking another one takes: less work stays on one thread.
pub const PARALLEL_WORK: i64 = 16 * 1024;

/// Products that are added to sums in registers in the time that a cell takes to be stored.
pub const UPDATES: i64 = 4;

        impl Costs {
            /// The names of the constants, in their order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            const WRITTEN: Costs = Costs { $($name: $value,)* cycle: None };

            /// The constants in their order.
            pub fn values(&self) -> Vec<f64> {
                vec![$(self.$name),*]
            }

            /// The constant of a name.
            pub fn get_mut(&mut self, name: &str) -> Option<&mut f64> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }
        }
    };
}

costs! {
    /// A fused multiply-add of vectors: two start in each cycle.
    fma: 0.5,
    /// A load of a vector: two in each cycle.
    load: 0.5,
    /// From a fused multiply-add to the next one of the same sum.
    latency: 4.0,
    /// A store of a vector of sums.
    store: 1.0,
    /// A store of one cell, with the load of it from the tile.
    scatter: 2.0,
    /// To issue an instruction, where another thread takes every second turn of the core: its caches
    /// and registers are shared by two in most machines that are rented (measured: tiles of 6 x 16 and
    /// 4 x 24 in both states of such a core; alone it issues twice as fast, and other terms decide).
    issue: 0.34,
    /// What a tile costs beside its arithmetic.
    tile: 20.0,
    /// To leave the innermost loop of a reduction that has others around it (measured: convolutions of
    /// 256 to 512 channels in blocks of 8 and 16).
    turn: 17.0,
    /// To add up the lanes of a vector.
    lanes: 6.0,
    /// A cell that is packed at run time.
    pack: 1.0,
    /// A cache line that no step of a reduction before has read.
    line: 1.0,
    /// The same for a line that is far from those before, where a reduction leaves lines before their end
    /// (measured: windows of 3 x 3 over 128 to 512 channels with pixels innermost, whose results have channels
    /// innermost, take a quarter longer than with channels innermost).
    line_apart: 7.0,
    /// The same for a line of one of many rows that lie so far from one another that the core does not read
    /// them ahead (measured: windows over 256 and 512 channels with channels or pixels innermost, in tiles of
    /// 14 to 28 rows).
    line_unforeseen: 4.0,
    /// A line of a packed operand whose panel is in the second cache (measured: products with panels of
    /// 8 kB to 720 kB).
    panel_second: 0.15,
    /// The same for a panel that is in none.
    panel_far: 0.6,
    /// An access of one element where there are no vectors.
    element: 1.0,
    /// An access of 64 bytes in vectors that nothing was computed from before, where all that a stage reads and
    /// writes fits the first cache (measured, as the next four: kernels of seven convolutional models in
    /// all layouts, with vectors of 64 and of 32 bytes).
    vector_first: 1.15,
    /// The same for up to half of the second cache.
    vector_near: 1.25,
    /// The same for up to three times the second cache.
    vector_second: 1.9,
    /// The same for more.
    vector_far: 2.1,
    /// An access of a vector of a small operand, such as one number a channel, which stays in the first
    /// cache.
    vector_kept: 0.1,
    /// A vector of elementwise work whose operand is still in a register: it joins the function that
    /// makes the operand, and its result takes the place of that.
    joined: 0.25,
    /// A step of a reduction of products, whose result stays in a register.
    reduce: 0.72,
    /// The same for a sum of few steps, as those of a pool.
    sum_few: 0.54,
    /// The same for a sum of many steps, which waits for the one before.
    sum: 1.05,
    /// The same for a maximum or minimum, which says what becomes of NaN.
    extreme: 0.95,
    /// An operation on vectors, of functions that take many, and of a division.
    operation: 0.46,
    /// A byte of the weights of a contraction, which a run reads once, from the third cache, where all
    /// weights of a graph stay from run to run (measured: 0.039 for a product with a vector of 4 MB of
    /// 12 MB).
    weight_near: 0.04,
    /// The same from memory (measured: 0.103 to 0.114 for 4 to 411 MB of 300 to 600 MB).
    weight_far: 0.107,
    /// A load or a step of arithmetic that waits for weights from memory meanwhile, for a byte of them
    /// (measured: convolutional models).
    wait: 0.04,
    /// A byte that a small transform reads, with what the product before or after it waits for it, where
    /// all of it fits the third cache (measured, as the next five: convolutions of 64 to 512 channels of
    /// 224 x 224 to 14 x 14 pixels, one behind the other).
    transform_read: 0.15,
    /// A byte that it writes.
    transform_write: 0.25,
    /// A byte that it reads where not all fits.
    transform_read_far: 0.35,
    /// A byte that it writes where not all fits.
    transform_write_far: 0.75,
    /// A vector that a stage of it makes of a few others.
    transform_vector: 2.0,
    /// An element where there are no vectors.
    transform_element: 5.0,
    /// What a kernel costs beside its work where all weights of a graph stay in the second cache
    /// (measured, as the next two: the shortest kernels).
    call_near: 150.0,
    /// The same where its code and arguments come from farther.
    call_far: 500.0,
    /// The same where they come from memory.
    call_memory: 3000.0,
    /// A line that a small kernel reads or writes where caches hold other things, until it costs as much as
    /// the calls above (measured: normalisations of 768 cells between products with 2 to 9 MB).
    call_line: 5.0,
    /// To begin to read or to write a row of a conversion, where at least [`ROW`] cells lie one behind the
    /// other both before and after it (measured, as the next two; a calibration leaves them as they are
    /// written).
    convert_row: 2.3,
    /// What a line that a conversion reads or writes takes beside its access, where fewer than [`ROW`]
    /// cells lie one behind the other both before and after it, so that squares of 16 to 211,000 cells are
    /// transposed.
    convert_square: 1.15,
    /// The same for each cell of less than [`SQUARE_CELL`] bytes, which is moved alone.
    convert_cell: 0.4,
}

/// Cells of conversions that lie one behind the other both before and after, from which on they are moved as
/// rows.
pub const ROW: i64 = 64;
/// Bytes of the smallest cells that conversions move in squares.
pub const SQUARE_CELL: usize = 4;
/// The part of the third cache, as its denominator, that a processor's other cores leave to this one where
/// data streams through it.
pub const SHARE: usize = 2;
/// How many times more cells than an operand a result has for which the operand is small
/// ([`Costs::vector_kept`]).
pub const SMALL: f64 = 8.0;
/// Steps of a sum from which on it waits for the step before ([`Costs::sum`]).
pub const MANY: f64 = 32.0;
/// Operations of a division ([`Costs::operation`]).
pub const DIVISION: usize = 4;

// No constant is NaN: written ones are not, and [`Costs::with`] refuses others.
impl Eq for Costs {}

/// How many times larger or smaller than its written value a constant may be.
const FREE: f64 = 4.0;
/// Nanoseconds that a cycle may take: of a core of 100 MHz to one of 20 GHz.
const CYCLE: (f64, f64) = (0.05, 10.0);

impl Costs {
    /// The written constants of processors with some features.
    pub fn written(_: &Features) -> Costs {
        Costs::WRITTEN
    }

    /// The least and the greatest value that a calibration may give the constants, in their order.
    pub fn bounds(&self) -> Vec<(f64, f64)> {
        self.values().into_iter().map(|value| (value / FREE, value * FREE)).collect()
    }

    /// These constants with the cycle of a machine and other values for some of them, by name. Names
    /// that are not there are passed over, since another version may have others; `None` for what no
    /// machine has.
    pub fn with<'a>(
        &self,
        cycle: f64,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Option<Costs> {
        let mut costs = self.clone();
        let bounds: Vec<_> = Costs::NAMES.iter().zip(self.bounds()).collect();
        for (name, value) in values {
            let Some(constant) = costs.get_mut(name) else { continue };
            let (_, (least, most)) = bounds.iter().find(|(known, _)| **known == name)?;
            // What was written rounds.
            if !(least * 0.999..=most * 1.001).contains(&value) {
                return None;
            }
            *constant = value;
        }
        costs.cycle = Some(cycle).filter(|cycle| (CYCLE.0..=CYCLE.1).contains(cycle));
        costs.cycle.is_some().then_some(costs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    #[test]
    fn constants_have_names_and_are_taken_within_bounds() {
        let written = Target::new("x86_64-unknown-linux-gnu", "znver3", "").costs;
        assert_eq!(Costs::NAMES.len(), written.values().len());
        assert!(written.values().iter().all(|value| *value > 0.0));
        assert_eq!(written.cycle, None);
        let with = |cycle, name, value| written.with(cycle, [(name, value)]);
        let other = with(0.25, "line", 0.5).expect("a machine");
        assert_eq!((other.line, other.cycle, other.fma), (0.5, Some(0.25), written.fma));
        assert_eq!(with(0.25, "of another version", 7.0).expect("passed over").line, written.line);
        for wrong in [f64::NAN, f64::INFINITY, -1.0, 0.0, written.line * 5.0, written.line / 5.0] {
            assert!(with(0.25, "line", wrong).is_none(), "{wrong}");
        }
        for wrong in [f64::NAN, 0.0, -1.0, 1e9] {
            assert!(with(wrong, "line", 1.0).is_none(), "{wrong}");
        }
    }
}
