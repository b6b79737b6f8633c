//! What calls, conversions and whole models cost: as measured, else as estimated.
//!
//! Estimates are in cycles, or in nanoseconds where the machine was calibrated ([`calibrated`]). As soon as
//! something was measured in the same scope (target and number of threads), all costs are in nanoseconds:
//! what was measured counts as it is, and the estimates of all else are scaled by the median of what
//! measurements of their kind say about a cycle.

use std::collections::BTreeMap;
use std::path::Path;

use tilewright_autoschedule::price::{self, Beside, KernelLoops, Price};
use tilewright_graph::winograd::Allowed;
use tilewright_ir::{Buffer, Expr, Module, Result};
use tilewright_layout::ConvLayout;
use tilewright_layout::flow::{Costs, Moved, Priced};
use tilewright_target::Target;
use tilewright_tune::{Key, Kind, Measured, Record, Scope, Store};

use super::calibrated::{self, scope};
use super::winograd;

/// Measurements of a kind from which its own scale is taken; below, that of all kinds.
const ENOUGH: usize = 5;

/// The unit of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nothing was measured.
    Cycles,
    /// Something was.
    Nanoseconds,
}

impl Unit {
    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Cycles => "cycles",
            Unit::Nanoseconds => "ns",
        }
    }
}

/// Where costs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The written constants of the cost model.
    Written,
    /// The constants that this machine was calibrated to.
    Calibrated,
    /// Measurements, of so many functions; the others are estimated.
    Measured(usize),
}

impl std::fmt::Display for Basis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Basis::Written => f.write_str("written"),
            Basis::Calibrated => f.write_str("calibrated"),
            Basis::Measured(_) => f.write_str("measured"),
        }
    }
}

/// What is known of times on a target.
#[derive(Clone, Debug)]
pub struct Timings {
    target: Target,
    scope: Scope,
    measured: BTreeMap<Key, Record>,
    /// Nanoseconds of an estimated cycle, by kind.
    scales: [f64; Kind::ALL.len()],
    /// Whether conversions were measured.
    has_conversions: bool,
    /// The convolutions that may be computed by transforms.
    transforms: Allowed,
}

impl Timings {
    /// Estimates only.
    pub fn estimated(target: &Target, threads: usize) -> Timings {
        let scope = scope(target, threads);
        let cycle = target.costs.cycle.unwrap_or(1.0);
        let (measured, scales) = (BTreeMap::new(), [cycle; Kind::ALL.len()]);
        let transforms = Allowed::default();
        let (target, has_conversions) = (target.clone(), false);
        Timings { target, scope, measured, scales, has_conversions, transforms }
    }

    /// The same for a module whose convolutions may be computed by transforms with an error. Whole
    /// models were measured without.
    ///
    /// # Errors
    /// Those of [`winograd::allowed`].
    pub fn with_transforms(mut self, module: &Module, error: f64) -> Result<Timings> {
        self.transforms = winograd::allowed(module, error)?;
        if !self.transforms.is_empty() {
            self.measured.retain(|_, record| record.kind != Kind::Model);
        }
        Ok(self)
    }

    /// Estimates, and the measurements of a file where it is there.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if it cannot be read, or is no such file.
    pub fn read(target: &Target, threads: usize, file: &Path) -> Result<Timings> {
        match Store::open_existing(file)? {
            Some(store) => Timings::from_store(target, threads, &store),
            None => Ok(Timings::estimated(target, threads)),
        }
    }

    /// Estimates, and the measurements of a store.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if it cannot be read.
    pub fn from_store(target: &Target, threads: usize, store: &Store) -> Result<Timings> {
        let target = calibrated::known(store, target)?;
        let mut timings = Timings::estimated(&target, threads);
        timings.measured = store.of_scope(&timings.scope)?;
        timings.has_conversions = timings.measured.values().any(|r| r.kind == Kind::Conversion);
        let mut all: [Vec<f64>; Kind::ALL.len()] = Default::default();
        for record in timings.measured.values() {
            if let Measured::Nanoseconds(time) = record.measured
                && record.kind != Kind::Model
                && record.estimate > 0.0
            {
                all[record.kind as usize].push(time / record.estimate);
            }
        }
        if let Some(whole) = median(all.concat()) {
            let whole = target.costs.cycle.unwrap_or(whole);
            timings.scales =
                all.map(
                    |kind| if kind.len() >= ENOUGH { median(kind).unwrap_or(whole) } else { whole },
                );
        }
        Ok(timings)
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What measurements must hold for.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The unit of all costs.
    pub fn unit(&self) -> Unit {
        match self.basis() {
            Basis::Written => Unit::Cycles,
            Basis::Calibrated | Basis::Measured(_) => Unit::Nanoseconds,
        }
    }

    /// Where all costs come from.
    pub fn basis(&self) -> Basis {
        let measured = self.measured.values().filter(|r| r.kind != Kind::Model).count();
        match self.target.costs.cycle {
            _ if measured > 0 => Basis::Measured(measured),
            Some(_) => Basis::Calibrated,
            None => Basis::Written,
        }
    }

    /// The measured nanoseconds of a key.
    pub fn nanoseconds(&self, key: &Key) -> Option<f64> {
        match self.measured.get(key)?.measured {
            Measured::Nanoseconds(time) => Some(time),
            Measured::Failure(_) => None,
        }
    }

    /// Whether whole models were measured.
    pub(crate) fn has_models(&self) -> bool {
        self.measured.values().any(|r| r.kind == Kind::Model)
    }

    /// The plans that a whole model was measured with, each with its nanoseconds.
    pub fn plans(&self, model: &Key) -> impl Iterator<Item = (f64, &str)> {
        self.measured
            .values()
            .filter(move |r| r.plan.as_ref().is_some_and(|plan| plan.model == *model))
            .filter_map(|r| match &r.measured {
                Measured::Nanoseconds(time) => Some((*time, r.plan.as_ref()?.ways.as_str())),
                Measured::Failure(_) => None,
            })
    }

    /// Whether a measurement was tried.
    pub(crate) fn is_tried(&self, key: &Key) -> bool {
        self.measured.contains_key(key)
    }

    /// The estimate of a call, and what a measurement of it is kept under.
    pub fn estimate(&self, call: &Priced<'_>) -> (Key, Price) {
        let places = call.free.iter().enumerate().filter(|(_, free)| **free).map(|(k, _)| k);
        (self.scope.function(call.func, places), self.price(call))
    }

    fn price(&self, call: &Priced<'_>) -> Price {
        let form = KernelLoops::from_func(call.func, &beside(call), &self.target);
        let cycles = form.cycles(call.constants, &self.target) * self.in_textures(call);
        Price { cycles, tiled: form.is_tiled() }
    }

    /// What a call takes of the time that it takes with buffers: reads of what lies in textures cost less.
    fn in_textures(&self, call: &Priced<'_>) -> f64 {
        let Some(memory) = self.target.preferred_textures() else { return 1.0 };
        let read = self.target.texture_read.unwrap_or(1.0);
        let bytes = |b: &Buffer| {
            let cells = b.const_shape()?.iter().try_fold(1i64, |n, d| n.checked_mul(*d))?;
            Some(cells as f64 * b.dtype().bytes() as f64)
        };
        let is_free = |k: usize| call.free.get(k).copied().unwrap_or(false);
        let moving = call.func.buffers().enumerate().filter(|(k, _)| !is_free(*k)).map(|(_, b)| b);
        let (mut all, mut texels) = (0.0, 0.0);
        for b in moving {
            let bytes = bytes(b).unwrap_or(0.0);
            let is_texel =
                b.rank() > 2 && b.shape.last().and_then(Expr::as_int) == Some(memory.channels);
            all += bytes;
            texels += if is_texel { bytes } else { 0.0 };
        }
        if all > 0.0 { 1.0 - (1.0 - read) * texels / all } else { 1.0 }
    }

    /// Estimated cycles of a conversion.
    pub(super) fn moving(&self, moved: &Moved<'_>) -> f64 {
        let Moved { dtype, from, to, bytes, smallest, constants } = *moved;
        let cells = [dtype.bytes(), smallest];
        price::conversion(bytes, cells, from.run(to), constants, &self.target)
    }

    /// An estimate in the unit of all costs.
    fn estimated_cost(&self, price: &Price) -> f64 {
        price.cycles * self.scales[kind(price) as usize]
    }

    /// What a measurement of a conversion is kept under: plans ask for each pair of layouts of each value,
    /// so that no function is made for it.
    pub(super) fn conversion_key(&self, moved: &Moved<'_>) -> Key {
        let Moved { dtype, from, to, .. } = moved;
        self.scope.conversion(&format!("{dtype} {:?}: {from} to {to}", from.logical))
    }

    /// What counts for a key: its measurement, else the estimate in the unit of all.
    pub(super) fn cost(&self, key: &Key, kind: Kind, cycles: f64) -> f64 {
        self.nanoseconds(key).unwrap_or(cycles * self.scales[kind as usize])
    }
}

impl Costs for Timings {
    fn call(&self, call: &Priced<'_>) -> f64 {
        let direct = if self.measured.is_empty() {
            self.estimated_cost(&self.price(call))
        } else {
            let (key, price) = self.estimate(call);
            self.cost(&key, kind(&price), price.cycles)
        };
        // As the pass decides that makes the transforms.
        let reduced = self.transforms.least(call.name, call.func, call.free, &|func, free| {
            self.estimated_cost(&price::price(func, free, call.constants, &self.target))
        });
        reduced.map_or(direct, |reduced| reduced.min(direct))
    }

    fn conversion(&self, moved: &Moved<'_>) -> f64 {
        let cycles = self.moving(moved);
        if self.has_conversions {
            self.cost(&self.conversion_key(moved), Kind::Conversion, cycles)
        } else {
            cycles * self.scales[Kind::Conversion as usize]
        }
    }

    fn policies(&self) -> &'static [ConvLayout] {
        match self.target.preferred_textures() {
            Some(_) => ConvLayout::OF_TEXTURES,
            None => ConvLayout::OF_BUFFERS,
        }
    }

    fn evicts(&self, bytes: u64) -> bool {
        price::evicts(bytes, &self.target)
    }
}

/// What the price of a call depends on beside it.
pub(super) fn beside<'a>(call: &Priced<'a>) -> Beside<'a> {
    let Priced { free, joined, cold, reduced, further, .. } = *call;
    Beside { free, joined, cold, reduced, further }
}

/// The kind of a call.
pub(super) fn kind(price: &Price) -> Kind {
    if price.tiled { Kind::Contraction } else { Kind::Other }
}

/// The middle of some numbers.
fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}
