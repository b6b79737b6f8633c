//! What a change of a model would save: plans of the module with other sizes
//! ([`tilewright_graph::resize`]).
//!
//! Asked are sizes that the plan pads, and those that are not a multiple of the target's vectors; each
//! is made smaller and larger, to the next multiple. Sizes that can only change together are asked once,
//! those first that the most time depends on.

use std::sync::{Arc, Mutex, PoisonError};
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_graph::resize::{resize, shapes};
use tilewright_ir::equal::{Equality, fingerprint, tensor_funcs};
use tilewright_ir::{DType, Error, GraphExpr, Module, Remarks, Result, TensorFunc, well_formed};
use tilewright_layout::begin;
use tilewright_layout::flow::{Costs, Moved, Planned, Priced};
use tilewright_layout::policy::roles;

use super::layout::plan;
use super::options::IoLayout;
use super::timings::Timings;

/// Changes that are planned for, the most promising first.
const MOST: usize = 32;

/// A change of a size, and what it costs.
#[derive(Clone, Debug)]
pub struct Change {
    /// A value that has the size.
    pub value: Arc<str>,
    /// The axis.
    pub axis: usize,
    /// What the axis is, where a convolution says it: `channels`, `batch` or `pixels`.
    pub role: Option<&'static str>,
    /// The size.
    pub from: usize,
    /// The other size.
    pub to: usize,
    /// What the plan costs with it.
    pub cost: u64,
    /// What the plan of the model costs.
    pub before: u64,
    /// Inputs and results that have another shape then.
    pub ends: Vec<Arc<str>>,
}

impl Change {
    /// What it saves; negative where it costs more.
    pub fn saved(&self) -> i128 {
        i128::from(self.before) - i128::from(self.cost)
    }
}

/// What changes of a model would save.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    /// Those that save most first.
    pub changes: Vec<Change>,
    /// Sizes that cannot change by themselves: value, axis, and why.
    pub refused: Vec<(Arc<str>, usize, String)>,
    /// How many sizes were not asked, because there were enough others.
    pub left: usize,
}

/// A size that may change.
struct Candidate {
    value: Arc<str>,
    axis: usize,
    size: usize,
    /// The sizes that are good are multiples of this.
    step: usize,
    /// What time may depend on it.
    weight: f64,
}

/// Plans a module with other sizes. `planned` is the plan of its entry; `progress` hears how many changes
/// of how many are done.
///
/// # Errors
/// Those of planning.
pub fn prices(
    module: &Module,
    timings: &Timings,
    io: IoLayout,
    planned: &Planned,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Prices> {
    let module = begin(module);
    let (roles, shapes) = (roles_of(&module), shapes(&module)?);
    let mut candidates = candidates(&shapes, timings, planned);
    candidates.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let (mut done, mut tried) = (HashSet::default(), 0);
    let mut prices = Prices::default();
    let costs = Memo { inner: timings, known: Mutex::default() };
    for c in candidates {
        if done.contains(&(c.value.clone(), c.axis)) {
            continue;
        }
        if tried >= MOST {
            prices.left += 1;
            continue;
        }
        let low = c.size / c.step * c.step;
        for to in [low, low + c.step].into_iter().filter(|to| *to > 0 && *to != c.size) {
            progress(tried, MOST);
            tried += 1;
            let new = match resize(&module, &c.value, c.axis, to as i64) {
                Ok(new) => new,
                Err(Error::Refused(why)) => {
                    prices.refused.push((c.value.clone(), c.axis, why.message.clone()));
                    // Nothing was planned.
                    tried -= 1;
                    break;
                }
                Err(e) => return Err(e),
            };
            well_formed::check_module(&new.module)?;
            let members = new.changed.iter();
            done.extend(members.flat_map(|(v, axes)| axes.iter().map(|d| (v.clone(), *d))));
            let known = new.changed.iter().flat_map(|(v, axes)| axes.iter().map(move |d| (v, d)));
            let mut named = known.filter_map(|(v, d)| {
                let role = roles.get(v)?.get(*d).copied().flatten()?;
                Some((v.clone(), *d, role))
            });
            // What a convolution has says more.
            let best = named
                .find(|(v, d, _)| shapes.get(v).and_then(|shape| shape.get(*d)) == Some(&c.size));
            let (_, plans, _) = plan(&new.module, &costs, io, &mut Remarks::new())?;
            let cost = plans.iter().find(|p| p.graph == planned.graph);
            let Some(cost) = cost.map(|p| p.plan.objective) else { continue };
            let (value, axis, role) = match best {
                Some((value, axis, role)) => (value, axis, Some(role)),
                None => (c.value.clone(), c.axis, None),
            };
            prices.changes.push(Change {
                value,
                axis,
                role,
                from: c.size,
                to,
                cost,
                before: planned.plan.objective,
                ends: new.ends,
            });
        }
    }
    prices.changes.sort_by_key(|c| std::cmp::Reverse(c.saved()));
    Ok(prices)
}

/// The sizes of a plan that may be worth a change.
fn candidates(
    shapes: &HashMap<Arc<str>, Vec<usize>>,
    timings: &Timings,
    planned: &Planned,
) -> Vec<Candidate> {
    let lanes = timings.target().vectors.lanes(DType::F32.bytes()).unsigned_abs() as usize;
    let mut weights = vec![0.0; planned.problem.tensors.len()];
    for (call, chosen) in planned.problem.calls.iter().zip(&planned.plan.calls) {
        let way = &call.alternatives[chosen.choice];
        let touched: HashSet<usize> =
            way.reads.iter().chain(&way.writes).map(|used| used.tensor).collect();
        touched.into_iter().for_each(|t| weights[t] += chosen.cost as f64);
    }
    let mut found = Vec::new();
    for (k, tensor) in planned.plan.tensors.iter().enumerate() {
        let layout = &planned.layouts[k][tensor.layout];
        let Some((value, shape)) = shapes.get_key_value(&*tensor.name) else { continue };
        for (axis, &size) in shape.iter().enumerate() {
            let block = layout.splits.get(axis).and_then(|s| s.digits.last());
            let block = block.filter(|_| layout.pads(axis)).and_then(|n| n.known());
            let step = block.unwrap_or(lanes).max(2);
            if size < 2 || size.is_multiple_of(step) {
                continue;
            }
            let waste = 1.0 - size as f64 / size.next_multiple_of(step) as f64;
            let weight = weights[k] * waste;
            found.push(Candidate { value: value.clone(), axis, size, step, weight });
        }
    }
    found
}

/// What the axes of data and results of convolutions are, by the names of the values.
fn roles_of(module: &Module) -> HashMap<Arc<str>, Vec<Option<&'static str>>> {
    let mut found = HashMap::default();
    let entry = module.entry().and_then(|entry| module.graph(entry));
    for b in entry.iter().flat_map(|f| f.bindings()) {
        let GraphExpr::CallTir { func, args, .. } = &b.value else { continue };
        let Some(of) = module.tensor(func).ok().and_then(|f| Some((f.clone(), roles(f)?))) else {
            continue;
        };
        let (f, [data, result]) = of;
        for (buffer, roles) in [data, result] {
            let at = f.buffers().position(|b| *b == buffer);
            let var = match at.map(|at| args.get(at)) {
                Some(Some(GraphExpr::Var(v))) => v,
                Some(None) => &b.var,
                _ => continue,
            };
            found.insert(var.name().clone(), roles);
        }
    }
    found
}

/// Costs, asked once for equal functions.
struct Memo<'a> {
    inner: &'a dyn Costs,
    known: Mutex<HashMap<Asked, KnownCosts>>,
}

/// A function's fingerprint, which of its arguments are free, which the same kernel makes, and which come
/// from memory; whether its result is stored nowhere.
type Asked = (u64, [Vec<bool>; 3], bool);

/// Functions of one fingerprint with their costs.
type KnownCosts = Vec<(TensorFunc, f64)>;

impl Costs for Memo<'_> {
    fn call(&self, call: &Priced<'_>) -> f64 {
        let func = call.func;
        // What other sizes change of all constants decides nothing.
        let given = [call.free, call.joined, call.cold].map(<[bool]>::to_vec);
        let key = (fingerprint(func), given, call.reduced);
        let known = self.lock_known().get(&key).and_then(|all| {
            all.iter().find(|k| tensor_funcs(&k.0, func, &Equality::loose()).is_ok()).map(|k| k.1)
        });
        known.unwrap_or_else(|| {
            let cost = self.inner.call(call);
            self.lock_known().entry(key).or_default().push((func.clone(), cost));
            cost
        })
    }

    fn conversion(&self, moved: &Moved<'_>) -> f64 {
        self.inner.conversion(moved)
    }

    fn evicts(&self, bytes: u64) -> bool {
        self.inner.evicts(bytes)
    }
}

impl Memo<'_> {
    fn lock_known(&self) -> std::sync::MutexGuard<'_, HashMap<Asked, KnownCosts>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
