//! What calls, conversions and whole models cost: as measured, else as estimated.
//!
//! Estimates are in cycles. As soon as something was measured in the same scope (target and number of
//! threads), all costs are in nanoseconds: what was measured counts as it is, and the estimates of all
//! else are scaled by the median of what measurements of their kind say about a cycle.

use std::collections::BTreeMap;
use std::path::Path;

use tilewright_auto::price::{self, Price};
use tilewright_graph::layout::Layout;
use tilewright_graph::layout::flow::{Costs, conversion};
use tilewright_ir::{DType, Result, TensorFunc};
use tilewright_target::Target;
use tilewright_tune::{Key, Kind, Measured, Record, Scope, Store};

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

/// What is known of times on a target.
#[derive(Clone, Debug)]
pub struct Timings {
    target: Target,
    scope: Scope,
    measured: BTreeMap<Key, Record>,
    /// Nanoseconds of an estimated cycle, by kind.
    scales: [f64; Kind::ALL.len()],
}

impl Timings {
    /// Estimates only.
    pub fn estimated(target: &Target, threads: usize) -> Timings {
        let scope = scope(target, threads);
        let (measured, scales) = (BTreeMap::new(), [1.0; Kind::ALL.len()]);
        Timings { target: target.clone(), scope, measured, scales }
    }

    /// Estimates, and the measurements of a file where it is there.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if it cannot be read, or is no such file.
    pub fn read(target: &Target, threads: usize, file: &Path) -> Result<Timings> {
        match Store::open_existing(file)? {
            Some(store) => Timings::of(target, threads, &store),
            None => Ok(Timings::estimated(target, threads)),
        }
    }

    /// Estimates, and the measurements of a store.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if it cannot be read.
    pub fn of(target: &Target, threads: usize, store: &Store) -> Result<Timings> {
        let mut timings = Timings::estimated(target, threads);
        timings.measured = store.of_scope(&timings.scope)?;
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
            timings.scales = all.map(|kind| match kind.len() >= ENOUGH {
                true => median(kind).unwrap_or(whole),
                false => whole,
            });
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
        match self.measured.values().any(|r| r.kind != Kind::Model) {
            true => Unit::Nanoseconds,
            false => Unit::Cycles,
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
    pub fn has_models(&self) -> bool {
        self.measured.values().any(|r| r.kind == Kind::Model)
    }

    /// The plans that a whole model was measured with, each with its nanoseconds.
    pub fn plans(&self, model: &Key) -> impl Iterator<Item = (f64, &str)> {
        let of = move |r: &Record| r.plan.as_ref().is_some_and(|plan| plan.model == *model);
        self.measured.values().filter(move |r| of(r)).filter_map(|r| match &r.measured {
            Measured::Nanoseconds(time) => Some((*time, r.plan.as_ref()?.ways.as_str())),
            Measured::Failure(_) => None,
        })
    }

    /// Whether a measurement was tried.
    pub fn is_tried(&self, key: &Key) -> bool {
        self.measured.contains_key(key)
    }

    /// The estimate of a call beside some bytes of constants, and what a measurement of it is kept under.
    pub fn estimate(&self, func: &TensorFunc, free: &[bool], constants: u64) -> (Key, Price) {
        let places = free.iter().enumerate().filter(|(_, free)| **free).map(|(k, _)| k);
        (self.scope.function(func, places), price::price(func, free, constants, &self.target))
    }

    /// What counts for a key: its measurement, else the estimate in the unit of all.
    pub(super) fn cost(&self, key: &Key, kind: Kind, cycles: f64) -> f64 {
        self.nanoseconds(key).unwrap_or(cycles * self.scales[kind as usize])
    }
}

impl Costs for Timings {
    fn call(&self, _: &str, func: &TensorFunc, free: &[bool], constants: u64) -> f64 {
        if self.measured.is_empty() {
            return price::price(func, free, constants, &self.target).cycles;
        }
        let (key, price) = self.estimate(func, free, constants);
        self.cost(&key, kind(&price), price.cycles)
    }

    fn conversion(&self, dtype: DType, from: &Layout, to: &Layout, bytes: u64) -> f64 {
        let cycles = price::conversion(bytes, from.run(to));
        if self.measured.is_empty() {
            return cycles;
        }
        let key = conversion(dtype, from, to, None).map(|(f, _)| self.scope.function(&f, []));
        match key {
            Ok(key) => self.cost(&key, Kind::Conversion, cycles),
            Err(_) => cycles * self.scales[Kind::Conversion as usize],
        }
    }
}

/// The kind of a call.
pub(super) fn kind(price: &Price) -> Kind {
    if price.tiled { Kind::Contraction } else { Kind::Other }
}

/// What measurements for a target hold for.
fn scope(target: &Target, threads: usize) -> Scope {
    let hash = blake3::hash(target.features.as_bytes()).to_hex();
    let target = format!("{} {} (features {})", target.triple, target.cpu, &hash[..8]);
    Scope { target, threads }
}

/// The middle of some numbers.
fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}
