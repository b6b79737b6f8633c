//! A plan whose sizes are known when it runs.
//!
//! Everything that does not depend on sizes is decided once: which kernels run in which order, on
//! which values, and from which step to which each of these is needed. [`MemoryPlan::at`] computes
//! the rest for the shapes of some inputs: it checks that they fit, and places what is computed in
//! one arena. Its cost is that of placing: the square of the number of values that are needed at a
//! time.

use std::ops::Range;
use std::sync::Arc;

use super::arena::{self, Block};
use super::{Port, Shared, SizedPlan, Slot, Step};
use tilewright_ir::control::SIZE_REASONS;
use tilewright_ir::dim::MAX_CELLS;
use tilewright_ir::dim::{self, Dim, SizeRange};
use tilewright_ir::dtype::DType;
use tilewright_ir::error::{Error, Result};
use tilewright_ir::expr::Var;
use tilewright_ir::stmt::{Attr, Attrs};
use tilewright_ir::tensor::{Tensor, byte_count};
use tilewright_ir::text::commas;

/// An input or output whose extents may be open.
pub type OpenPort = Port<Dim>;

impl OpenPort {
    /// A list or optional, whose tensors are known when there is one. Only programs with control flow
    /// have such outputs.
    pub fn item(name: Arc<str>) -> OpenPort {
        OpenPort { name, dtype: DType::HANDLE, shape: Vec::new(), stored: None }
    }

    /// Whether it is a list or optional.
    pub fn is_item(&self) -> bool {
        self.dtype == DType::HANDLE
    }

    /// The extents, where all are numbers.
    ///
    /// # Errors
    /// [`Error::Unsupported`] that names the open size.
    pub fn fixed(&self) -> Result<Vec<usize>> {
        dim::fixed(&self.shape, &format!("`{}`", self.name))
    }
}

impl From<&Port> for OpenPort {
    fn from(port: &Port) -> OpenPort {
        OpenPort {
            name: port.name.clone(),
            dtype: port.dtype,
            shape: dim::shape(&port.shape),
            stored: port.stored.clone(),
        }
    }
}

/// Where an argument of a kernel comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArgSource {
    /// The whole of an input, by position.
    Input(usize),
    /// The whole of an output, by position.
    Output(usize),
    /// A constant, by position.
    Constant(usize),
    /// A value that is computed and needed no longer when the run ends, by position.
    Value(usize),
    /// A size, as a number.
    Size(Dim),
}

/// A value that is computed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Number of elements.
    pub cells: Dim,
    /// Type of the elements.
    pub dtype: DType,
    /// The step that writes it.
    pub first: usize,
    /// The last step that reads it.
    pub last: usize,
    /// Where it lies, if it has no memory of its own.
    pub within: Option<Within>,
}

/// Where a value lies that is a part of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// What it lies in: an input, an output, or a value that has memory of its own and is needed for
    /// as long as its parts are.
    pub whole: ArgSource,
    /// At which byte of that it begins.
    pub byte: Dim,
}

/// One call of a kernel.
#[derive(Clone, Debug)]
pub struct OpenStep {
    /// Name of the tensor function.
    pub func: Arc<str>,
    /// Name of the value that it makes in the graph function; empty where there is none.
    pub value: Arc<str>,
    /// As [`Step::args`].
    pub args: Vec<ArgSource>,
    /// Which arguments are results.
    pub results: Range<usize>,
    /// Whether the function is right for arguments without elements as well.
    pub takes_empty: bool,
    /// As [`Step::unless_shared`].
    pub unless_shared: Option<Shared>,
}

/// Steps in order, and what they need, for sizes that may be open.
#[derive(Clone, Debug, Default)]
pub struct MemoryPlan {
    /// Inputs in order.
    pub inputs: Vec<OpenPort>,
    /// Outputs in order.
    pub outputs: Vec<OpenPort>,
    /// Constants, each 64-byte aligned when the plan runs.
    pub constants: Vec<Tensor>,
    /// Kernel calls in order.
    pub steps: Vec<OpenStep>,
    /// What they compute on the way.
    pub values: Vec<Value>,
    /// Sizes that who runs it says, beside those that inputs have.
    pub given: Vec<Var>,
    /// Why extents of inputs must be what they are, where that is known.
    pub reasons: Vec<Reason>,
    /// Whether open sizes may be zero: those of a piece of a graph with control flow are decided by data. What
    /// is computed of sizes may be zero in any plan.
    pub empty: bool,
}

/// Why an axis of an input has its extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Which input.
    pub input: usize,
    /// Which axis of it.
    pub axis: usize,
    /// What needs it.
    pub why: Arc<str>,
}

impl Reason {
    /// The reasons among the attributes of a graph function ([`SIZE_REASONS`]) with these inputs.
    pub fn list(attrs: &Attrs, inputs: &[OpenPort]) -> Vec<Reason> {
        let Some(Attr::List(all)) = attrs.get(SIZE_REASONS) else { return Vec::new() };
        all.iter()
            .filter_map(|attr| {
                let Attr::List(parts) = attr else { return None };
                let [Attr::Str(name), Attr::Int(axis), Attr::Str(why)] = parts.as_slice() else {
                    return None;
                };
                let input = inputs.iter().position(|port| port.name == *name)?;
                Some(Reason { input, axis: usize::try_from(*axis).ok()?, why: why.clone() })
            })
            .collect()
    }
}

impl MemoryPlan {
    /// The error with the reasons why an axis of an input has its extent.
    fn explained(&self, error: Error, input: usize, axis: usize) -> Error {
        let here = self.reasons.iter().filter(|r| (r.input, r.axis) == (input, axis));
        here.fold(error, |error, reason| error.note(&*reason.why))
    }

    /// The sizes that inputs say, in the order of the inputs; then those that are given.
    pub fn sizes(&self) -> Vec<Var> {
        let mut found: Vec<Var> = Vec::new();
        for dim in self.inputs.iter().flat_map(|port| &port.shape) {
            let new = dim.vars().into_iter().filter(|v| !found.contains(v)).collect::<Vec<_>>();
            found.extend(new);
        }
        let given = self.given.iter().filter(|v| !found.contains(v)).cloned().collect::<Vec<_>>();
        found.extend(given);
        found
    }

    /// Whether all sizes are numbers.
    pub fn is_fixed(&self) -> bool {
        self.given.is_empty() && self.inputs.iter().all(|port| dim::known(&port.shape).is_some())
    }

    /// Refuses a plan with a size that no input says.
    ///
    /// # Errors
    /// [`Error::Input`] that names the size and where it is needed.
    pub fn check(&self) -> Result<()> {
        let plain: Vec<Dim> = self.inputs.iter().flat_map(|port| port.shape.clone()).collect();
        for (what, ports) in [("input", &self.inputs), ("output", &self.outputs)] {
            for port in ports {
                if let Some(v) = port.shape.iter().find_map(|d| self.unsaid(d, &plain)) {
                    return refuse_unsaid(v, format!("the {what} `{}` depends on", port.name));
                }
            }
        }
        for step in &self.steps {
            let mut sizes = step.args.iter().flat_map(|place| match place {
                ArgSource::Size(d) => [Some(d), None],
                ArgSource::Value(at) => {
                    let value = self.values.get(*at);
                    let byte = value.and_then(|value| value.within.as_ref()).map(|w| &w.byte);
                    [value.map(|value| &value.cells), byte]
                }
                _ => [None, None],
            });
            if let Some(v) = sizes.find_map(|d| self.unsaid(d?, &plain)) {
                return refuse_unsaid(v, format!("`{}` takes", step.func));
            }
        }
        Ok(())
    }

    /// A size of an extent that no input says: neither one of these extents nor one that is given.
    fn unsaid(&self, d: &Dim, plain: &[Dim]) -> Option<Var> {
        d.vars().into_iter().find(|v| !plain.contains(&Dim::open(v)) && !self.given.contains(v))
    }

    /// The values of the open sizes for these shapes of the inputs, in the order of
    /// [`MemoryPlan::sizes`].
    ///
    /// # Errors
    /// [`Error::Input`] that names the input, the axis and the size where a shape does not fit.
    pub fn solve(&self, shapes: &[&[usize]]) -> Result<Vec<usize>> {
        self.solve_given(shapes, &[])
    }

    /// [`MemoryPlan::solve`] with the values of those sizes that are given, in order.
    ///
    /// # Errors
    /// As [`MemoryPlan::solve`].
    pub fn solve_given(&self, shapes: &[&[usize]], given: &[usize]) -> Result<Vec<usize>> {
        let sizes = self.sizes();
        let mut values: Vec<Option<(usize, String)>> = vec![None; sizes.len()];
        for (v, value) in self.given.iter().zip(given) {
            if let Some(at) = sizes.iter().position(|s| s == v) {
                values[at] = Some((*value, "what was computed".to_owned()));
            }
        }
        let fitting = || self.inputs.iter().zip(shapes).enumerate();
        for (input, (port, shape)) in fitting() {
            if port.shape.len() != shape.len() {
                return Err(misfit(port, shape));
            }
            for (axis, (dim, &given)) in port.shape.iter().zip(*shape).enumerate() {
                let at = sizes.iter().position(|v| Dim::open(v) == *dim);
                let Some(at) = at.filter(|at| values[*at].is_none()) else { continue };
                let from = format!("dimension {axis} of `{}`", port.name);
                let (least, range) = (self.least(&sizes[at]), sizes[at].range());
                if !self.may_be(&sizes[at], given) {
                    let error = misfit(port, shape).note(format!(
                        "`{}`, {from}, is {given}; it must be {}",
                        sizes[at].name(),
                        range.limits_from(least)
                    ));
                    return Err(self.explained(error, input, axis));
                }
                values[at] = Some((given, from));
            }
        }
        for (input, (port, shape)) in fitting() {
            for (axis, (dim, &given)) in port.shape.iter().zip(*shape).enumerate() {
                let needed = dim.value(&|v| {
                    let at = sizes.iter().position(|s| s == v)?;
                    values[at].as_ref().map(|(value, _)| *value)
                });
                if needed == Some(given) {
                    continue;
                }
                let mut error = misfit(port, shape);
                if let Some(needed) = needed.filter(|_| dim.known().is_none()) {
                    error = error.note(format!("dimension {axis} must be {needed}"));
                }
                for v in dim.vars() {
                    let at = sizes.iter().position(|s| *s == v);
                    if let Some((value, from)) = at.and_then(|at| values[at].as_ref()) {
                        error = error.note(format!("`{}` is {value} by {from}", v.name()));
                    }
                }
                return Err(self.explained(error, input, axis));
            }
        }
        Ok(values.into_iter().map(|v| v.map_or(1, |v| v.0)).collect())
    }

    /// The smallest value of a size.
    fn least(&self, v: &Var) -> usize {
        match v.range() {
            SizeRange::ALL => usize::from(!self.empty),
            range => range.least(),
        }
    }

    /// Whether a size may be so large.
    fn may_be(&self, v: &Var, size: usize) -> bool {
        size >= self.least(v) && (size == 0 || v.range().contains(size))
    }

    /// Whether a size that is given, by its position in `given`, may be so large.
    ///
    /// # Errors
    /// [`Error::Input`] that says what it may be.
    pub(crate) fn check_given(&self, at: usize, size: usize) -> Result<()> {
        let (v, least) = (&self.given[at], self.least(&self.given[at]));
        if self.may_be(v, size) {
            return Ok(());
        }
        let limits = v.range().limits_from(least);
        Err(Error::input(format!("`{}` is {size}; it must be {limits}", v.name())))
    }

    /// Whether there may be versions for some sizes, which inputs choose.
    ///
    /// # Errors
    /// [`Error::Unsupported`] that names a size that no input says.
    pub fn check_versions(&self) -> Result<()> {
        match self.given.first() {
            None => Ok(()),
            Some(v) => Err(Error::unsupported(format!(
                "a version for some sizes, where the shapes of the inputs do not say `{}`",
                v.name()
            ))),
        }
    }

    /// The plan for values of the open sizes, in the order of [`MemoryPlan::sizes`].
    ///
    /// # Errors
    /// [`Error::Input`] where a tensor of open size does not fit in memory, has more than 2^31 - 2^16 elements,
    /// or has none and is read by what needs some, with the sizes that make it so; [`Error::Internal`] where a size is unknown.
    pub fn at(&self, values: &[usize]) -> Result<SizedPlan> {
        let given = Given { plan: self, sizes: self.sizes(), values };
        let blocks: Vec<Block> =
            self.values.iter().map(|value| given.block(value)).collect::<Result<_>>()?;
        let (offsets, arena_bytes) = arena::place(&blocks)
            .ok_or_else(|| given.too_large("the intermediate results".to_owned()))?;
        let (inputs, outputs) = (ports_of(&self.inputs, &given)?, ports_of(&self.outputs, &given)?);
        let placed = Placed { given, blocks, offsets, inputs, outputs };
        let steps = self.steps.iter().map(|step| placed.step(step)).collect::<Result<_>>()?;
        let Placed { inputs, outputs, .. } = placed;
        Ok(SizedPlan { inputs, outputs, constants: self.constants.clone(), steps, arena_bytes })
    }

    /// Whether all results of a step are empty.
    fn is_idle(&self, step: &OpenStep, of: &dyn Fn(&Var) -> Option<usize>) -> bool {
        let mut results = step.args.iter().skip(step.results.start).take(step.results.len());
        !step.results.is_empty()
            && results.all(|place| match *place {
                ArgSource::Output(k) => self
                    .outputs
                    .get(k)
                    .is_some_and(|p| p.shape.iter().any(|d| d.value(of) == Some(0))),
                ArgSource::Value(k) => {
                    self.values.get(k).is_some_and(|value| value.cells.value(of) == Some(0))
                }
                _ => false,
            })
    }

    /// The inputs and outputs that a caller may give the same memory: then nothing of the input is copied, and
    /// what it was is gone.
    pub fn shared(&self) -> impl Iterator<Item = Shared> {
        self.steps.iter().filter_map(|step| step.unless_shared)
    }

    /// The functions that it calls, each once, in the order of their first calls.
    pub fn functions(&self) -> Vec<Arc<str>> {
        super::each_once(self.steps.iter().map(|step| &step.func))
    }
}

fn refuse_unsaid(v: Var, place: String) -> Result<()> {
    Err(Error::input(format!("no input says how large `{}` is, which {place}", v.name()))
        .help(format!("give it when compiling: --dim {}=SIZE", v.name())))
}

fn ports_of(all: &[OpenPort], given: &Given<'_>) -> Result<Vec<Port>> {
    all.iter().map(|port| given.port(port)).collect()
}

/// A plan with values for its sizes.
struct Given<'a> {
    plan: &'a MemoryPlan,
    sizes: Vec<Var>,
    values: &'a [usize],
}

impl Given<'_> {
    fn value(&self, v: &Var) -> Option<usize> {
        let at = self.sizes.iter().position(|s| s == v)?;
        self.values.get(at).copied()
    }

    fn size(&self, d: Dim) -> Option<usize> {
        d.value(&|v: &Var| self.value(v))
    }

    fn too_large(&self, what: String) -> Error {
        let verb = if what.starts_with("the ") { "do" } else { "does" };
        let error = Error::input(format!("{what} {verb} not fit in memory"));
        if self.sizes.is_empty() {
            error
        } else {
            let given = self.sizes.iter().zip(self.values);
            let given = commas(given.map(|(v, n)| format!("`{}` = {n}", v.name())));
            error.note(format!("with {given}"))
        }
    }

    /// A size that a window, say, which is larger than what it slides over, makes what no tensor can have.
    fn unfit(&self, d: Dim, what: &str) -> Error {
        let mut error = Error::input(format!("the size `{d}` is {what}"));
        for v in d.vars() {
            let value = self.value(&v).map_or_else(|| "unknown".to_owned(), |n| n.to_string());
            error = error.note(format!("`{}` is {value}", v.name()));
        }
        error
    }

    fn number(&self, d: Dim) -> Result<usize> {
        match self.size(d) {
            Some(n) => Ok(n),
            None => Err(self.unfit(d, "negative or too large")),
        }
    }

    fn port(&self, port: &OpenPort) -> Result<Port> {
        let shape: Vec<usize> =
            port.shape.iter().map(|d| self.number(*d)).collect::<Result<_>>()?;
        let cells = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        let open = dim::known(&port.shape).is_none();
        let fits = byte_count(port.dtype, &shape).is_some()
            && (!open || cells.is_some_and(|n| n <= MAX_CELLS));
        if fits {
            let (name, stored) = (port.name.clone(), port.stored.clone());
            Ok(Port { name, dtype: port.dtype, shape, stored })
        } else {
            Err(self.too_large(format!("`{}`", port.name)))
        }
    }

    /// The memory that a value takes.
    fn block(&self, value: &Value) -> Result<Block> {
        let cells = self.number(value.cells)?;
        let open = value.cells.known().is_none();
        let bytes = byte_count(value.dtype, &[cells]);
        match bytes.filter(|_| !open || cells <= MAX_CELLS) {
            // A part of another value takes no memory of its own.
            Some(_) if value.within.is_some() => {
                Ok(Block { bytes: 0, first: value.first, last: value.last })
            }
            Some(bytes) => Ok(Block { bytes, first: value.first, last: value.last }),
            None => {
                let func = self.plan.steps.get(value.first).map_or("", |step| &step.func);
                Err(self.too_large(format!("an intermediate result of `{func}`")))
            }
        }
    }
}

/// The same with a place for each value.
struct Placed<'a> {
    given: Given<'a>,
    blocks: Vec<Block>,
    /// Where they lie in the arena.
    offsets: Vec<usize>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

impl Placed<'_> {
    /// Where a part of another value lies, if it lies inside of that.
    fn part(&self, Within { whole, byte }: Within) -> Option<Slot> {
        let byte = self.given.size(byte)?;
        match whole {
            ArgSource::Input(k) => self
                .inputs
                .get(k)
                .and_then(|p| start_in_port(p, byte))
                .map(|at| Slot::InputAt(k, at)),
            ArgSource::Output(k) => self
                .outputs
                .get(k)
                .and_then(|p| start_in_port(p, byte))
                .map(|at| Slot::OutputAt(k, at)),
            ArgSource::Value(k) => {
                let whole = self.given.plan.values.get(k).filter(|whole| whole.within.is_none());
                let start = whole.and_then(|_| start_in(self.blocks[k].bytes, byte));
                start.map(|at| Slot::Arena(self.offsets[k] + at))
            }
            ArgSource::Constant(_) | ArgSource::Size(_) => None,
        }
    }

    /// An argument of a step.
    fn slot(&self, func: &str, place: &ArgSource) -> Result<Slot> {
        Ok(match *place {
            ArgSource::Input(k) => Slot::Input(k),
            ArgSource::Output(k) => Slot::Output(k),
            ArgSource::Constant(k) => Slot::Constant(k),
            ArgSource::Value(k) => {
                let value = self.given.plan.values.get(k);
                let slot = value.and_then(|value| match value.within {
                    Some(within) => self.part(within),
                    None => Some(Slot::Arena(self.offsets[k])),
                });
                slot.ok_or_else(|| {
                    let text = format!("the memory plan is wrong: `{func}` uses {place:?}");
                    Error::internal(text)
                })?
            }
            ArgSource::Size(d) => {
                let size = self
                    .given
                    .size(d)
                    .ok_or_else(|| self.given.unfit(d, "negative or too large"))?;
                Slot::Number(i64::try_from(size).unwrap_or(i64::MAX))
            }
        })
    }

    fn step(&self, step: &OpenStep) -> Result<Step> {
        let (given, plan) = (&self.given, self.given.plan);
        let args = step.args.iter().map(|p| self.slot(&step.func, p)).collect::<Result<_>>()?;
        let idle = plan.is_idle(step, &|v| given.value(v));
        // What a step computes was derived for tensors that have cells, unless their number is known to be zero.
        let sizes = step.args.iter().filter_map(|place| cell_count(place, plan));
        let mut sizes = sizes.filter(|d| plan.empty || d.known().is_none());
        if !idle
            && !step.takes_empty
            && let Some(d) = sizes.find(|d| given.size(*d) == Some(0))
        {
            let error = given.unfit(d, "zero");
            return Err(error.note(format!("`{}` needs at least one element", step.func)));
        }
        Ok(Step { func: step.func.clone(), args, idle, unless_shared: step.unless_shared })
    }
}

/// Where a part that starts at a byte of so many lies. Parts of what has no elements lie at its start.
fn start_in(bytes: usize, byte: usize) -> Option<usize> {
    match bytes {
        0 => Some(0),
        _ => (byte <= bytes).then_some(byte),
    }
}

fn start_in_port(port: &Port, byte: usize) -> Option<usize> {
    start_in(byte_count(port.dtype, &port.shape)?, byte)
}

fn cell_count(place: &ArgSource, plan: &MemoryPlan) -> Option<Dim> {
    match *place {
        // What a function computes was derived for all that its sizes may be.
        ArgSource::Size(d) => (d.range().least() > 0).then_some(d),
        ArgSource::Value(k) => plan.values.get(k).map(|value| value.cells),
        ArgSource::Input(k) => plan.inputs.get(k).map(|p| dim::product(p.shape.clone())),
        ArgSource::Output(_) | ArgSource::Constant(_) => None,
    }
}

fn misfit(port: &OpenPort, shape: &[usize]) -> Error {
    let error = Error::input(format!(
        "input `{}` has the shape {:?}, and was given {shape:?}",
        port.name, port.shape
    ));
    match &port.stored {
        None => error,
        Some(stored) => error.note(stored.note()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_may_be_zero_needs_no_elements() {
        let plan = MemoryPlan::default();
        let [some, any] = [SizeRange::ALL, SizeRange::WITH_ZERO].map(|range| {
            let size = Dim::open(&Var::size("n", DType::I64, range));
            cell_count(&ArgSource::Size(size), &plan).is_some()
        });
        assert_eq!([some, any], [true, false]);
    }

    #[test]
    fn parts_of_what_has_no_elements_lie_at_its_start() {
        assert_eq!([start_in(0, 8), start_in(4, 8), start_in(8, 8)], [Some(0), None, Some(8)]);
    }
    use crate::plan::arena::ALIGN;

    /// `f(x [n, 3]) -> y [n - 1]`, with a value of `n * 2` elements on the way.
    fn plan() -> (MemoryPlan, Dim) {
        let n = Dim::open(&Var::new("n", DType::I64));
        let value = Value { cells: n * 2, dtype: DType::F32, first: 0, last: 0, within: None };
        let args = vec![
            ArgSource::Input(0),
            ArgSource::Output(0),
            ArgSource::Value(0),
            ArgSource::Size(n),
        ];
        let plan = MemoryPlan {
            inputs: vec![tensor_port("x", vec![n, Dim::from(3)])],
            outputs: vec![tensor_port("y", vec![n - 1])],
            constants: Vec::new(),
            steps: vec![OpenStep {
                func: "f".into(),
                value: "y".into(),
                args,
                results: 1..2,
                takes_empty: false,
                unless_shared: None,
            }],
            values: vec![value],
            ..MemoryPlan::default()
        };
        (plan, n)
    }

    fn tensor_port(name: &str, shape: Vec<Dim>) -> Port<Dim> {
        OpenPort { name: name.into(), dtype: DType::F32, shape, stored: None }
    }

    #[test]
    fn shapes_give_sizes_and_sizes_a_plan() {
        let (plan, _) = plan();
        assert!(plan.check().is_ok() && !plan.is_fixed());
        assert_eq!(plan.solve(&[&[5, 3]]).ok(), Some(vec![5]));
        let at = plan.at(&[5]).expect("it fits");
        assert_eq!((at.outputs[0].shape.clone(), at.arena_bytes), (vec![4], ALIGN));
        assert_eq!(at.steps[0].args[3], Slot::Number(5));
        assert_eq!(plan.at(&[100]).expect("it fits").arena_bytes, 832);
    }

    #[test]
    fn sizes_that_do_not_fit_are_named() {
        let (mut plan, n) = plan();
        let e = plan.solve(&[&[0, 3]]).expect_err("no rows").render();
        assert!(e.contains("`n`, dimension 0 of `x`, is 0"), "{e}");
        let e = plan.solve(&[&[2, 4]]).expect_err("four columns").render();
        assert!(e.contains("has the shape [n, 3], and was given [2, 4]"), "{e}");
        // The step is left out where it computes nothing, and needs what it reads where it does.
        let nothing = plan.at(&[1]).expect("an output without elements");
        assert_eq!((&nothing.outputs[0].shape, nothing.steps[0].idle), (&vec![0], true));
        assert!(!plan.at(&[2]).expect("it fits").steps[0].idle);
        let mut all = plan.clone();
        (all.values[0].cells, all.outputs[0].shape) = (n - 1, vec![n]);
        let e = all.at(&[1]).expect_err("nothing is left").render();
        assert!(e.contains("the size `n - 1` is zero") && e.contains("`n` is 1"), "{e}");
        assert!(e.contains("`f` needs at least one element"), "{e}");
        all.steps[0].takes_empty = true;
        assert!(all.at(&[1]).is_ok_and(|at| !at.steps[0].idle));
        // What was derived for an operand without elements needs none.
        all.steps[0].takes_empty = false;
        all.values[0].cells = Dim::from(0);
        assert!(all.at(&[1]).is_ok_and(|at| !at.steps[0].idle));
        let e = plan.at(&[1 << 30]).expect_err("2^31 elements").render();
        assert!(e.contains("an intermediate result of `f` does not fit in memory"), "{e}");
        let other = Dim::open(&Var::new("m", DType::I64));
        plan.outputs[0].shape = vec![n * other];
        let e = plan.check().expect_err("nobody says m").render();
        assert!(
            e.contains("no input says how large `m` is, which the output `y` depends on"),
            "{e}"
        );
    }
}
