//! Tuning: the candidates of a model's plan are measured, and kept for every later compilation.
//!
//! Candidates are the functions that the plan of the module asks the price of: each call in each of
//! its layouts, and the conversions between them. Calls come first that weigh most, in the ways that
//! are estimated to be among their best; elementwise work is not measured, since it joins the function
//! that makes its operand. What is measured already is left alone, so that tuning can be stopped and
//! goes on where it was. At last the best plans that follow ([`PLANS`] of them) and the fixed layouts are
//! run as whole models, and later compilations take the fastest.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tilewright_ir::hash::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use tilewright_graph::sizes;
use tilewright_ir::{
    Binding, DType, Error, GraphExpr, GraphFunc, GraphType, GraphVar, Module, Param, Remarks,
    Result, TensorFunc, TensorType,
};
use tilewright_layout::TiledLayout;
use tilewright_layout::flow::{Costs, Moved, Priced, conversion};
use tilewright_tune::{Key, Kind, Measured, MeasuredPlan, Record, Store};
use tilewright_tvmscript::print_func;

use super::layout::{has_choice, plan};
use super::options::{IoLayout, Options, PLANS};
use super::random::Random;
use super::runs::Runs;
use super::session::compile;
use super::timings::{Timings, kind};
use super::whole::{self, Keys, Whole};

/// Ways of a call that take this many times as long as its best are not measured. What is not measured
/// counts as estimated, in the scale of what was measured of its kind, so that more ways may come near
/// as measurements show what estimates of a kind are worth.
const FAR: f64 = 3.0;
/// The part of the budget that is for candidates; the rest is for whole models.
const CANDIDATES: f64 = 0.7;
/// Conversions that are measured, the largest: the others are scaled by them.
const CONVERSIONS: usize = 24;
/// The largest text of a candidate, in bytes.
const MOST_TEXT: usize = 1 << 20;

/// What is to be measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// A tensor function by its text; `free` says for each argument whether it is the same in every
    /// run.
    Function {
        /// TVMScript.
        text: String,
        /// For each argument.
        free: Vec<bool>,
        /// Threads of a run.
        threads: usize,
    },
    /// The model that is tuned, in some layouts.
    Model {
        /// As the command line calls them.
        layout: String,
        /// For a plan, its text ([`whole`]).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ways: Option<String>,
        /// Threads of a run.
        threads: usize,
    },
}

/// What tuning did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Candidates in all.
    pub candidates: usize,
    /// Those that are measured, now or before.
    pub measured: usize,
    /// Those that were measured now.
    pub new: usize,
    /// Those that failed now: what, and why.
    pub failures: Vec<(String, String)>,
    /// Nanoseconds of a run of the whole model: `plan` by its costs, `plan:2` and so on for the next
    /// best, and each fixed layout.
    pub models: BTreeMap<String, f64>,
}

/// A function that may be measured.
struct Candidate {
    key: Key,
    kind: Kind,
    what: String,
    estimate: f64,
    request: Request,
    /// How much depends on it.
    weight: f64,
    /// For a way of a call, the call: whose other ways it competes with.
    call: Option<usize>,
    /// Whether it is to be measured.
    is_wanted: bool,
}

/// How a module is tuned.
pub struct Tuning<'a> {
    /// Where measurements are kept.
    pub store: &'a Store,
    /// For how long to measure.
    pub budget: Duration,
    /// Whether whole models are measured, too.
    pub whole: bool,
    /// Answers requests.
    pub measure: &'a mut dyn FnMut(&Request) -> Result<Measured>,
    /// Hears what is measured next, and how many of how many are done.
    pub progress: &'a mut dyn FnMut(&str, usize, usize),
}

/// Measures candidates of a module for some time, and keeps what comes of it.
///
/// # Errors
/// Those of planning and of the store; [`Error::Input`] where nothing is to be planned.
pub fn tune(module: &Module, options: &Options, tuning: &mut Tuning<'_>) -> Result<Report> {
    let (start, store) = (Instant::now(), tuning.store);
    let mut measuring = Measuring::new(module, options, store)?;
    let share = if tuning.whole { CANDIDATES } else { 1.0 };
    let is_over = || start.elapsed() > tuning.budget.mul_f64(share);
    let mut left = measuring.left()?;
    while !left.is_empty() {
        for (k, c) in left.iter().enumerate() {
            if is_over() {
                break;
            }
            // Another tuner may be at work on the same file.
            if measuring.is_kept(*c)? {
                continue;
            }
            let (what, request) = measuring.request(*c);
            (tuning.progress)(what, k, left.len());
            let measured = (tuning.measure)(request)?;
            measuring.keep(*c, measured)?;
        }
        left = if is_over() { Vec::new() } else { measuring.left()? };
    }
    if tuning.whole {
        let models = measuring.models(module)?;
        for (k, model) in models.iter().enumerate() {
            if start.elapsed() > tuning.budget {
                continue;
            }
            (tuning.progress)(&model.what, k, models.len());
            let measured = (tuning.measure)(&model.request)?;
            measuring.keep_model(model, measured)?;
        }
    }
    Ok(measuring.report)
}

/// What is to be measured of a module, and what was: whoever measures asks [`Measuring::left`] and keeps
/// each answer as it comes. There is one writer, whoever measures.
pub struct Measuring<S> {
    store: S,
    timings: Timings,
    options: Options,
    candidates: Vec<Candidate>,
    report: Report,
}

/// A whole model that is to be measured in some layouts.
pub struct WholeModel {
    key: Key,
    name: String,
    /// For a plan, what it is found by.
    plan: Option<MeasuredPlan>,
    /// What it is, for people.
    pub what: String,
    /// What to ask for.
    pub request: Request,
}

impl<S: Borrow<Store>> Measuring<S> {
    /// Asks what a plan of the module would ask the price of.
    ///
    /// # Errors
    /// As [`tune`]; [`Error::Input`] where a size is open.
    pub fn new(module: &Module, options: &Options, store: S) -> Result<Measuring<S>> {
        let (target, threads) = (options.resolve_target()?, options.thread_count()?);
        let timings = Timings::from_store(&target, threads, store.borrow())?;
        if !has_choice(module) {
            let what = "the model has no convolution, and so no layout to choose";
            return Err(Error::input(what));
        }
        if let Some(open) = sizes::open(module).first() {
            let what = format!("the size `{open}` is open: times are measured at given sizes");
            return Err(Error::input(what).help(format!("give it: --dim {open}=SIZE")));
        }
        let candidates = candidates(module, &timings, threads)?;
        let (options, report) = (options.clone(), Report::default());
        let mut measuring = Measuring { store, timings, options, candidates, report };
        measuring.want();
        let wanted = measuring.candidates.iter().filter(|c| c.is_wanted);
        measuring.report.measured = wanted.filter(|c| measuring.timings.is_tried(&c.key)).count();
        Ok(measuring)
    }

    /// Marks the ways of calls that are near the best one of their call, by what is known now, and
    /// conversions.
    fn want(&mut self) {
        let mut best: HashMap<usize, f64> = HashMap::default();
        for c in &self.candidates {
            let Some(call) = c.call else { continue };
            let least = best.entry(call).or_insert(f64::INFINITY);
            *least = least.min(self.cost_of(c));
        }
        let wanted: Vec<bool> = self
            .candidates
            .iter()
            .map(|c| {
                c.is_wanted
                    || c.call.is_none_or(|call| self.cost_of(c) <= best[&call] * FAR)
                    || self.timings.is_tried(&c.key)
            })
            .collect();
        self.candidates.iter_mut().zip(wanted).for_each(|(c, wanted)| c.is_wanted = wanted);
        self.report.candidates = self.candidates.iter().filter(|c| c.is_wanted).count();
    }

    fn cost_of(&self, c: &Candidate) -> f64 {
        self.timings.cost(&c.key, c.kind, c.estimate)
    }

    /// The candidates that are not measured, the most important first. Asked again when these are, it
    /// gives those that are worth it by what was found.
    ///
    /// # Errors
    /// Those of the store.
    pub fn left(&mut self) -> Result<Vec<usize>> {
        let (target, threads) = (self.options.resolve_target()?, self.options.thread_count()?);
        self.timings = Timings::from_store(&target, threads, self.store.borrow())?;
        self.want();
        Ok((0..self.candidates.len())
            .filter(|k| {
                let c = &self.candidates[*k];
                c.is_wanted && !self.timings.is_tried(&c.key)
            })
            .collect())
    }

    /// Whether a candidate has been measured since, by another tuner of the same file.
    ///
    /// # Errors
    /// Those of the store.
    pub fn is_kept(&mut self, candidate: usize) -> Result<bool> {
        let is_kept = self.store.borrow().get(&self.candidates[candidate].key)?.is_some();
        self.report.measured += usize::from(is_kept);
        Ok(is_kept)
    }

    /// What a candidate is, for people, and what to ask for.
    pub fn request(&self, candidate: usize) -> (&str, &Request) {
        let c = &self.candidates[candidate];
        (&c.what, &c.request)
    }

    /// Keeps what was measured of a candidate.
    ///
    /// # Errors
    /// Those of the store.
    pub fn keep(&mut self, candidate: usize, measured: Measured) -> Result<()> {
        let c = &self.candidates[candidate];
        match &measured {
            Measured::Failure(why) => self.report.failures.push((c.what.clone(), why.clone())),
            Measured::Nanoseconds(_) => {
                self.report.measured += 1;
                self.report.new += 1;
            }
        }
        let scope = self.timings.scope();
        let record = Record::now(&c.key, scope, c.kind, &c.what, c.estimate, measured);
        self.store.borrow().put(&record).map(drop)
    }

    /// The best plans that follow from what was measured, and the fixed layouts, as far as their times
    /// are not known: what is likely to be the fastest first.
    ///
    /// # Errors
    /// Those of planning and of the store.
    pub fn models(&mut self, module: &Module) -> Result<Vec<WholeModel>> {
        let timings = Timings::from_store(
            &self.options.resolve_target()?,
            self.options.thread_count()?,
            self.store.borrow(),
        )?;
        let (_, plans, _) = plan(module, &timings, IoLayout::Logical, &mut Remarks::new())?;
        let keys = Keys::new(module, &timings);
        let (model, threads) = (keys.model(), timings.scope().threads);
        let plans = whole::ranked(&plans, PLANS)?.into_iter().enumerate();
        let mut all: Vec<(String, Whole)> =
            plans.map(|(k, r)| (whole::plan_name(k), Whole::Plan(r.ways))).collect();
        let fixed = whole::fixed().map(|f| (whole::fixed_name(f), Whole::Fixed(f)));
        // The plan, which is compared with them, then the layouts that differ most from it.
        all.splice(all.len().min(1)..all.len().min(1), fixed);
        let mut left = Vec::new();
        for (name, layouts) in all {
            let key = keys.of_layout(&layouts);
            if let Some(time) = timings.nanoseconds(&key) {
                self.report.models.insert(name, time);
            } else if !timings.is_tried(&key) {
                let what = format!("the model, layout {name}");
                let ways = match layouts {
                    Whole::Plan(ways) => Some(ways),
                    Whole::Fixed(_) => None,
                };
                let plan = ways.clone().map(|ways| MeasuredPlan { model: model.clone(), ways });
                let request = Request::Model { layout: name.clone(), ways, threads };
                left.push(WholeModel { key, name, plan, what, request });
            }
        }
        self.timings = timings;
        Ok(left)
    }

    /// Keeps what was measured of a whole model.
    ///
    /// # Errors
    /// Those of the store.
    pub fn keep_model(&mut self, model: &WholeModel, measured: Measured) -> Result<()> {
        let WholeModel { key, name, plan, .. } = model;
        match &measured {
            Measured::Nanoseconds(time) => drop(self.report.models.insert(name.clone(), *time)),
            Measured::Failure(why) => self.report.failures.push((name.clone(), why.clone())),
        }
        let scope = self.timings.scope();
        let mut record = Record::now(key, scope, Kind::Model, name, 0.0, measured);
        record.plan.clone_from(plan);
        self.store.borrow().put(&record).map(drop)
    }

    /// What was done.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

/// What a plan asks the price of.
struct Recorder<'a> {
    timings: &'a Timings,
    threads: usize,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    /// By the function that is called, each way once.
    calls: BTreeMap<String, Vec<Candidate>>,
    conversions: Vec<Converted>,
    seen: HashSet<Key>,
}

/// A conversion that a plan may need.
struct Converted {
    key: Key,
    dtype: DType,
    from: TiledLayout,
    to: TiledLayout,
    estimate: f64,
}

impl Recorder<'_> {
    /// What there is to measure of a conversion; `None` where that cannot be asked for.
    fn converted(&self, converted: Converted) -> Option<Candidate> {
        let Converted { key, dtype, from, to, estimate } = converted;
        let (func, what) = conversion(dtype, &from, &to, None).ok()?;
        let request = self.request(&func, &[false])?;
        Some(Candidate {
            key,
            kind: Kind::Conversion,
            what: format!("{what} {from} -> {to}"),
            estimate,
            request,
            weight: estimate,
            call: None,
            is_wanted: true,
        })
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, func: &TensorFunc, free: &[bool]) -> Option<Request> {
        let text = print_func("main", func);
        let free = free.to_vec();
        (text.len() <= MOST_TEXT).then_some(Request::Function { text, free, threads: self.threads })
    }
}

impl Costs for Recorder<'_> {
    fn call(&self, call: &Priced<'_>) -> f64 {
        let Priced { name, func, free, .. } = *call;
        let (key, price) = self.timings.estimate(call);
        let kind = kind(&price);
        let has_sum = tilewright_analysis::stages(func)
            .is_some_and(|stages| stages.iter().any(|s| s.reduction().is_some()));
        if let Some(request) = self.request(func, free).filter(|_| has_sum)
            && self.found().seen.insert(key.clone())
        {
            let shapes =
                func.buffers().map(|b| format!("{:?}", b.const_shape().unwrap_or_default()));
            let what = format!("{name} {}", shapes.collect::<Vec<_>>().join(" "));
            let estimate = price.cycles;
            let new = Candidate {
                key,
                kind,
                what,
                estimate,
                request,
                weight: 0.0,
                call: None,
                is_wanted: false,
            };
            self.found().calls.entry(name.to_owned()).or_default().push(new);
        }
        self.timings.call(call)
    }

    fn conversion(&self, moved: &Moved<'_>) -> f64 {
        let Moved { dtype, from, to, .. } = *moved;
        let key = self.timings.conversion_key(moved);
        let mut found = self.found();
        if found.seen.insert(key.clone()) {
            let (from, to) = (from.clone(), to.clone());
            let estimate = self.timings.moving(moved);
            found.conversions.push(Converted { key, dtype, from, to, estimate });
        }
        drop(found);
        self.timings.conversion(moved)
    }

    fn evicts(&self, bytes: u64) -> bool {
        self.timings.evicts(bytes)
    }
}

/// What there is to measure, the most important first.
fn candidates(module: &Module, timings: &Timings, threads: usize) -> Result<Vec<Candidate>> {
    let recorder = Recorder { timings, threads, found: Mutex::default() };
    plan(module, &recorder, IoLayout::Logical, &mut Remarks::new())?;
    let found = std::mem::take(&mut *recorder.found());
    let mut calls: HashMap<&str, f64> = HashMap::default();
    for (_, graph) in module.graphs() {
        for b in graph.bindings() {
            if let GraphExpr::CallTir { func, .. } = &b.value {
                *calls.entry(&**func).or_default() += 1.0;
            }
        }
    }
    let mut all = Vec::new();
    for (call, (name, ways)) in found.calls.into_iter().enumerate() {
        let best = ways.iter().map(|c| c.estimate).fold(f64::INFINITY, f64::min);
        let times = calls.get(&*name).copied().unwrap_or(1.0);
        all.extend(ways.into_iter().map(|c| Candidate {
            weight: times * best * best / c.estimate,
            call: Some(call),
            ..c
        }));
    }
    let mut conversions = found.conversions;
    conversions.sort_by(|a, b| b.estimate.total_cmp(&a.estimate));
    let largest = conversions.into_iter().take(CONVERSIONS);
    all.extend(largest.filter_map(|converted| recorder.converted(converted)));
    all.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    Ok(all)
}

/// Nanoseconds of the shortest of many runs of a function on random data.
///
/// # Errors
/// Those of reading and compiling it.
pub fn measure(text: &str, free: &[bool], options: &Options, least: Duration) -> Result<f64> {
    let parsed = super::load::parse(text, &tilewright_graph::sizes::Sizes::new())?;
    let (_, func) = parsed
        .tensors()
        .next()
        .ok_or_else(|| Error::input("there is no tensor function to measure"))?;
    let module = alone(func, free)?;
    let mut runs = Runs::on_random(compile(&module, options)?, 0)?;
    let mut best = Duration::MAX;
    runs.profile(least, RUNS, |times| best = best.min(times.iter().sum()))?;
    Ok((best.as_nanos() as f64).max(1.0))
}

/// Runs that a measurement has.
const RUNS: Range<usize> = 3..10_000;

/// A module that calls one function: arguments that are the same in every run are constants.
fn alone(func: &TensorFunc, free: &[bool]) -> Result<Module> {
    let types = func.params.iter().map(|p| match p {
        Param::Buffer { buffer, .. } => {
            Ok(TensorType { shape: buffer.shape.clone(), dtype: buffer.dtype() })
        }
        Param::Scalar(_) => Err(no_fixed_shape()),
    });
    let types: Vec<TensorType> = types.collect::<Result<_>>()?;
    let (arguments, results) = types.split_at_checked(free.len()).ok_or_else(no_fixed_shape)?;
    let mut random = Random::new(1);
    let (mut params, mut args) = (Vec::new(), Vec::new());
    for (k, (ty, free)) in arguments.iter().zip(free).enumerate() {
        let shape = ty.const_shape().ok_or_else(no_fixed_shape)?;
        args.push(if *free {
            GraphExpr::Const(random.tensor(ty.dtype, &shape)?)
        } else {
            let param = GraphVar::tensor(format!("x{k}"), ty.clone());
            params.push(param.clone());
            param.expr()
        });
    }
    let value = GraphExpr::call_tir("f", args, results.to_vec());
    let ty = match results {
        [one] => GraphType::Tensor(one.clone()),
        several => GraphType::Tuple(several.iter().cloned().map(GraphType::Tensor).collect()),
    };
    let y = GraphVar::new("y", ty);
    let bindings = vec![Binding { var: y.clone(), value, span: None }];
    let mut module = Module::new();
    module.insert("f", func.clone());
    module.insert("main", GraphFunc::of_dataflow(params, bindings, vec![y]));
    Ok(module)
}

fn no_fixed_shape() -> Error {
    Error::input("a function to measure takes tensors of fixed shape")
}
