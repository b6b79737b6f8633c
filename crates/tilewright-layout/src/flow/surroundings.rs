//! What the calls of a graph become beside each other, as far as their prices depend on it: which share a
//! kernel, which joins need no code, and which operands no cache holds any more.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{
    Binding, DType, GraphExpr, GraphFunc, GraphType, GraphVar, Module, TensorFunc, dim,
};

use crate::TiledLayout;
use crate::free::{constant_bytes, constants};
use crate::parts::{self, OpenJoins};
use crate::policy::ConvLayout;
use tilewright_graph::fuse::Kernels;
use tilewright_graph::normal::var;
use tilewright_graph::view::relabels;

/// What calls and conversions cost, in one unit of time.
pub trait Costs: Sync {
    /// A call of a function.
    fn call(&self, call: &Priced<'_>) -> f64;

    /// A conversion of a value.
    fn conversion(&self, moved: &Moved<'_>) -> f64;

    /// The layouts of convolutions to choose from, beside the logical one.
    fn policies(&self) -> &'static [ConvLayout] {
        ConvLayout::OF_BUFFERS
    }

    /// Whether caches no longer hold a value after a run has read and written so many other bytes.
    fn evicts(&self, _bytes: u64) -> bool {
        false
    }
}

/// A call whose price is asked.
#[derive(Clone, Copy, Debug)]
pub struct Priced<'a> {
    /// The name of the function in the graph.
    pub name: &'a str,
    /// The function in the layouts in which it is computed.
    pub func: &'a TensorFunc,
    /// For each argument whether it is the same in every run; the other parameters are results. What is
    /// not said is not, here and below.
    pub free: &'a [bool],
    /// Bytes of all constants of its graph, which a run reads, too.
    pub constants: u64,
    /// For each argument whether the same kernel makes it, so that elementwise work finds it in
    /// registers.
    pub joined: &'a [bool],
    /// For each argument whether it comes from memory, since much was touched after it was used last.
    pub cold: &'a [bool],
    /// Whether the same kernel reads the result, and stores nothing in its place: a reduction reads it, or
    /// another call began the kernel.
    pub reduced: bool,
    /// Whether another call began the kernel, of which this one reads nothing.
    pub further: bool,
}

/// A conversion whose price is asked.
#[derive(Clone, Copy, Debug)]
pub struct Moved<'a> {
    /// The type of the value's cells.
    pub dtype: DType,
    /// How it lies.
    pub from: &'a TiledLayout,
    /// How it is to lie.
    pub to: &'a TiledLayout,
    /// Bytes that are read and written.
    pub bytes: u64,
    /// Bytes of the smallest cells of the values in the kernel that makes it, with which it is moved.
    pub smallest: usize,
    /// Bytes of all constants of its graph.
    pub constants: u64,
}

/// What the calls of a graph function become beside each other.
pub struct Surroundings {
    /// Bytes of all constants.
    pub constants: u64,
    kernels: Kernels,
    parts: OpenJoins,
    /// By the value of a call, for each argument the bytes that the run touches after it was used last.
    since: HashMap<u64, Vec<u64>>,
}

impl Surroundings {
    /// Those of a graph function in normal form, whose functions are those of a module.
    pub fn new(module: &Module, func: &GraphFunc) -> Surroundings {
        let kernels = Kernels::collect(module, func);
        let parts = OpenJoins::collect(module, func, &kernels);
        let since = since(func, &kernels, &parts);
        Surroundings { constants: constant_bytes(func), kernels, parts, since }
    }

    /// What a call becomes by its costs.
    pub fn of_call(&self, b: &Binding, costs: &dyn Costs) -> Surrounding {
        let since = self.since.get(&b.var.id()).into_iter().flatten();
        let further = self.kernels.is_further(b);
        Surrounding {
            constants: self.constants,
            joined: self.kernels.joined(b),
            cold: since.map(|bytes| costs.evicts(*bytes)).collect(),
            reduced: self.kernels.is_reduced(b) || further && !self.kernels.is_result(b),
            further,
            parts: self.parts.of_call(b),
        }
    }

    /// By the values of calls, bytes of the smallest cells that their kernels make.
    pub(super) fn smallest_cells(&self, func: &GraphFunc) -> HashMap<u64, usize> {
        let mut smallest: HashMap<u64, usize> = HashMap::default();
        let made: Vec<_> =
            func.bindings().filter_map(|b| Some((b, b.var.ty().as_tensor()?))).collect();
        for (b, ty) in &made {
            let least = smallest.entry(self.kernels.of_call(b)).or_insert(usize::MAX);
            *least = ty.dtype.bytes().min(*least);
        }
        made.iter().map(|(b, _)| (b.var.id(), smallest[&self.kernels.of_call(b)])).collect()
    }

    /// The values that kernels leave in memory, by their ids.
    pub(super) fn results(&self, func: &GraphFunc) -> HashSet<u64> {
        let results = func.bindings().filter(|b| self.kernels.is_result(b));
        results.map(|b| b.var.id()).collect()
    }

    /// The values of calls that their kernels leave in registers for some reader, by their ids.
    pub(super) fn in_registers(&self, func: &GraphFunc) -> HashSet<u64> {
        func.bindings()
            .flat_map(|b| match &b.value {
                GraphExpr::CallTir { args, .. } => {
                    let joined = self.kernels.joined(b);
                    args.iter()
                        .zip(joined)
                        .filter_map(|(arg, joined)| var(arg).filter(|_| joined).map(GraphVar::id))
                        .collect()
                }
                _ => Vec::new(),
            })
            .collect()
    }
}

/// What a call becomes beside others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Surrounding {
    constants: u64,
    joined: Vec<bool>,
    cold: Vec<bool>,
    reduced: bool,
    further: bool,
    /// Which arguments may lie in the result, where this joins them.
    parts: Option<Vec<bool>>,
}

impl Surrounding {
    /// What a call of a function costs: the price of what runs, which is nothing for a view.
    pub fn cost(&self, costs: &dyn Costs, name: &str, func: &TensorFunc, free: &[bool]) -> f64 {
        if relabels(func) {
            return 0.0;
        }
        let call = self.priced(name, func, free);
        let Some(copies) = self.copies(func) else { return costs.call(&call) };
        let each = copies.iter().map(|(k, func)| {
            let [free, cold] =
                [free, &self.cold].map(|all| [all.get(*k).copied().unwrap_or(false)]);
            costs.call(&Priced {
                name: "copy",
                func,
                free: &free,
                cold: &cold,
                joined: &[],
                reduced: false,
                further: false,
                ..call
            })
        });
        each.sum()
    }

    /// A call of a function as its price is asked.
    pub fn priced<'a>(
        &'a self,
        name: &'a str,
        func: &'a TensorFunc,
        free: &'a [bool],
    ) -> Priced<'a> {
        let (constants, joined, cold) = (self.constants, &self.joined[..], &self.cold[..]);
        let (reduced, further) = (self.reduced, self.further);
        Priced { name, func, free, constants, joined, cold, reduced, further }
    }

    /// The functions that run in the place of a call of a join, with the arguments that they copy; `None`
    /// where the function itself runs.
    pub fn copies(&self, func: &TensorFunc) -> Option<Vec<(usize, TensorFunc)>> {
        self.parts.as_ref().and_then(|may| parts::copies(func, may))
    }
}

/// The bytes that a run touches between the last kernel that makes or reads an argument and the call, for
/// each argument of each call; those of all of the run for an input that nothing reads before.
fn since(func: &GraphFunc, kernels: &Kernels, parts: &OpenJoins) -> HashMap<u64, Vec<u64>> {
    let constant = constants(func, true);
    // What was touched before the kernel began that makes a value or was the last to read it.
    let mut last: HashMap<u64, u64> = HashMap::default();
    let (mut sum, mut found, mut unread) = (0u64, HashMap::default(), Vec::new());
    for b in func.bindings() {
        let id = b.var.id();
        let GraphExpr::CallTir { args, outs, .. } = &b.value else {
            let of = match &b.value {
                GraphExpr::Item(of, _) => var(of).and_then(|v| last.get(&v.id()).copied()),
                _ => None,
            };
            last.insert(id, of.unwrap_or(sum));
            continue;
        };
        // A join in place runs no code: its parts are the whole.
        let in_place = parts.of_call(b).is_some();
        let joined = kernels.joined(b);
        let (mut begun, mut read) = (sum, 0u64);
        let mut ago = Vec::with_capacity(args.len());
        for (k, arg) in args.iter().enumerate() {
            let var = var(arg).filter(|v| !constant.contains(&v.id()));
            let at = var.and_then(|v| last.get(&v.id()).copied());
            match (var, joined.get(k)) {
                (Some(_), Some(true)) => begun = begun.min(at.unwrap_or(sum)),
                _ => read = read.saturating_add(bytes(&arg.ty())),
            }
            if var.is_some() && at.is_none() {
                unread.push((id, k));
            }
            ago.push(at.map_or(0, |at| sum - at));
        }
        for var in args.iter().filter_map(var).filter(|_| !in_place) {
            let at = last.entry(var.id()).or_insert(sum);
            *at = sum.max(*at);
        }
        last.insert(id, begun);
        found.insert(id, ago);
        if !in_place {
            let written = outs.iter().map(|ty| bytes(&GraphType::Tensor(ty.clone())));
            let written = written.filter(|_| kernels.is_result(b));
            sum = written.fold(sum.saturating_add(read), u64::saturating_add);
        }
    }
    for (id, k) in unread {
        found.entry(id).and_modify(|ago| ago[k] = sum);
    }
    found
}

/// The bytes of a value, estimated where its size is open.
fn bytes(ty: &GraphType) -> u64 {
    let Some(ty) = ty.as_tensor() else { return 0 };
    let Some(shape) = dim::of_shape(&ty.shape) else { return 0 };
    let cells = dim::product(shape).estimate().unsigned_abs();
    cells.saturating_mul(ty.dtype.bytes() as u64)
}
