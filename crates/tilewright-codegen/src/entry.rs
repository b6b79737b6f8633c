//! The function that runs a whole plan.
//!
//! `int32_t PREFIX_run(const context *ctx, const void *const *inputs, void *const *outputs, const
//! void *const *constants, void *arena)` calls the kernels of the plan one after the other, with
//! the places that the plan gives them. Constants and arena are at 64-byte boundaries. The context
//! is that of the kernels (see [`crate::emit`]) and may be null.
//!
//! Where sizes are open, another function comes before it: `int32_t PREFIX_shapes(const context
//! *ctx, const int64_t *sizes, int64_t *shapes)` runs the [shape function](crate::shape_func), and
//! `PREFIX_run` takes the heap that it has filled, `const int64_t *shapes`, after the context.
//!
//! The result of both is 0, or where an assertion failed the number that [`failure`] takes apart: which
//! step, and which of its function's messages.

use std::fmt::{self, Write};
use std::sync::Arc;

use tilewright_ir::{Error, Result, Tensor, TensorFunc};
use tilewright_runtime::plan::{ArgSource, Shared};
use tilewright_runtime::{MemoryPlan, OpenPort, Port, SizedPlan, Slot};
use tilewright_target::Target;

use crate::emit::{self, MAX_MESSAGES, check_prefix};
use crate::shape_func::ShapeFunc;

/// Results of one step's kernel; the number of the step counts in these.
pub(crate) const STEP: usize = MAX_MESSAGES + 1;

/// The symbol of the function under a prefix.
pub fn symbol(prefix: &str) -> String {
    format!("{prefix}_run")
}

/// The symbol of the function that computes shapes.
pub(crate) fn shapes_symbol(prefix: &str) -> String {
    format!("{prefix}_shapes")
}

/// The step that failed and the position of the message among
/// [`assertions`](emit::assertions) of its function; `None` for 0 and what is not a
/// result.
pub fn failure(result: i32) -> Option<(usize, usize)> {
    let result = usize::try_from(result).ok()?;
    Some((result / STEP, (result % STEP).checked_sub(1)?))
}

/// What an entry point runs.
pub enum Planned {
    /// A plan for fixed sizes.
    Fixed(SizedPlan),
    /// A plan whose sizes are open, and what computes the rest of it.
    Open(MemoryPlan, Box<ShapeFunc>),
}

impl Planned {
    /// A plan that may have open sizes.
    ///
    /// # Errors
    /// [`Error::Input`] where a size is open that no input says, or something does not fit in
    /// memory.
    pub fn new(plan: &MemoryPlan) -> Result<Planned> {
        Ok(if plan.is_fixed() {
            plan.check()?;
            Planned::Fixed(plan.at(&[])?)
        } else {
            Planned::Open(plan.clone(), Box::new(ShapeFunc::new(plan)?))
        })
    }

    pub fn constants(&self) -> &[Tensor] {
        match self {
            Planned::Fixed(plan) => &plan.constants,
            Planned::Open(plan, _) => &plan.constants,
        }
    }

    /// The shape function, where sizes are open.
    pub fn shapes(&self) -> Option<&ShapeFunc> {
        match self {
            Planned::Fixed(_) => None,
            Planned::Open(_, shapes) => Some(&**shapes),
        }
    }

    /// The functions that the steps call, in order.
    pub(crate) fn called(&self) -> Vec<&Arc<str>> {
        match self {
            Planned::Fixed(plan) => plan.steps.iter().map(|s| &s.func).collect(),
            Planned::Open(plan, _) => plan.steps.iter().map(|s| &s.func).collect(),
        }
    }

    /// Inputs and outputs that may be the same memory.
    pub(crate) fn shared(&self) -> Vec<Shared> {
        match self {
            Planned::Fixed(plan) => plan.steps.iter().filter_map(|s| s.unless_shared).collect(),
            Planned::Open(plan, _) => plan.shared().collect(),
        }
    }

    /// Inputs and outputs.
    pub(crate) fn ports(&self) -> (Vec<OpenPort>, Vec<OpenPort>) {
        match self {
            Planned::Fixed(plan) => (open_ports(&plan.inputs), open_ports(&plan.outputs)),
            Planned::Open(plan, _) => (plan.inputs.clone(), plan.outputs.clone()),
        }
    }

    /// How many inputs and outputs there are.
    fn counts(&self) -> (usize, usize) {
        match self {
            Planned::Fixed(plan) => (plan.inputs.len(), plan.outputs.len()),
            Planned::Open(plan, _) => (plan.inputs.len(), plan.outputs.len()),
        }
    }

    pub(crate) fn steps(&self) -> Result<Vec<Call<'_>>> {
        let (inputs, outputs) = self.counts();
        let constants = self.constants().len();
        let start = Number::Known(0);
        match self {
            Planned::Fixed(plan) => calls(
                plan.steps.iter().map(|s| (&s.func, &s.args[..], s.unless_shared)),
                |n| if plan.steps[n].idle { Idle::Always } else { Idle::Never },
                |slot| match *slot {
                    Slot::Input(i) => table_argument("inputs", i, start, inputs),
                    Slot::Output(i) => table_argument("outputs", i, start, outputs),
                    Slot::InputAt(i, at) => {
                        table_argument("inputs", i, Number::Known(at as i64), inputs)
                    }
                    Slot::OutputAt(i, at) => {
                        table_argument("outputs", i, Number::Known(at as i64), outputs)
                    }
                    Slot::Constant(i) => table_argument("constants", i, start, constants),
                    Slot::Arena(at) => {
                        let number = Number::Known(at as i64);
                        (at <= plan.arena_bytes).then_some(Argument::Arena(number))
                    }
                    Slot::Number(n) => Some(Argument::Number(Number::Known(n))),
                },
            ),
            Planned::Open(plan, shapes) => calls(
                plan.steps.iter().map(|s| (&s.func, &s.args[..], s.unless_shared)),
                |n| shapes.idle(n).map_or(Idle::Never, Idle::Heap),
                |place| match *place {
                    ArgSource::Input(i) => table_argument("inputs", i, start, inputs),
                    ArgSource::Output(i) => table_argument("outputs", i, start, outputs),
                    ArgSource::Constant(i) => table_argument("constants", i, start, constants),
                    ArgSource::Value(v) => {
                        let at = Number::Heap(shapes.offset(v)?);
                        match plan.values.get(v)?.within.map(|within| within.whole) {
                            Some(ArgSource::Input(i)) => table_argument("inputs", i, at, inputs),
                            Some(ArgSource::Output(i)) => table_argument("outputs", i, at, outputs),
                            _ => Some(Argument::Arena(at)),
                        }
                    }
                    ArgSource::Size(d) => {
                        let known = d.known().map(|n| Number::Known(n as i64));
                        let number = known.or_else(|| shapes.number(d).map(Number::Heap));
                        number.map(Argument::Number)
                    }
                },
            ),
        }
    }
}

fn open_ports(ports: &[Port]) -> Vec<Port<tilewright_ir::Dim>> {
    ports.iter().map(OpenPort::from).collect()
}

fn table_argument(name: &'static str, i: usize, at: Number, count: usize) -> Option<Argument> {
    (i < count).then_some(Argument::Pointer(name, i, at))
}

/// Steps with their arguments; those for which there is none are an error.
fn calls<'a, A: fmt::Debug + 'a>(
    steps: impl Iterator<Item = (&'a Arc<str>, &'a [A], Option<Shared>)>,
    idle: impl Fn(usize) -> Idle,
    argument: impl Fn(&A) -> Option<Argument>,
) -> Result<Vec<Call<'a>>> {
    steps
        .enumerate()
        .map(|(n, (func, args, unless_shared))| {
            let idle = idle(n);
            let args = args.iter().map(|a| {
                argument(a).ok_or_else(|| broken(format!("step {n}, `{func}`, uses {a:?}")))
            });
            Ok(Call { func, idle, unless_shared, args: args.collect::<Result<_>>()? })
        })
        .collect()
}

/// A step as code is written for it.
pub(crate) struct Call<'a> {
    pub func: &'a Arc<str>,
    pub args: Vec<Argument>,
    pub idle: Idle,
    /// As [`Step::unless_shared`](tilewright_runtime::Step::unless_shared).
    pub unless_shared: Option<Shared>,
}

/// Whether a step is left out, because all of its results are empty.
#[derive(Clone, Copy)]
pub(crate) enum Idle {
    Never,
    Always,
    /// Where this number of the shape heap is not zero.
    Heap(usize),
}

pub(crate) enum Argument {
    /// From a byte of what an entry of a table points to.
    Pointer(&'static str, usize, Number),
    /// A byte of the arena.
    Arena(Number),
    Number(Number),
}

#[derive(Clone, Copy)]
pub(crate) enum Number {
    Known(i64),
    /// At this position of the shape heap.
    Heap(usize),
}

/// The LLVM IR of a module with the function and the kernels that it calls.
///
/// # Errors
/// Those of [`emit::module`], [`Error::Input`] if the prefix is not a C identifier, and
/// [`Error::Internal`] if the plan calls a function that is not among these, or uses an input, output,
/// constant or byte that it does not have.
pub fn program(
    prefix: &str,
    plan: &Planned,
    funcs: &[(Arc<str>, &TensorFunc)],
    target: &Target,
) -> Result<String> {
    let kernels = emit::module_with_prefix(prefix, &with_shapes(plan, funcs)?, target)?;
    Ok(function(prefix, plan, Visibility::Default)? + &kernels)
}

/// Whether a symbol can be used outside the library or program that it is linked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visibility {
    Default,
    Hidden,
}

/// [`program`] in modules that are compiled apart and linked together, where the function stays inside the library that it
/// is linked into.
///
/// # Errors
/// Those of [`program`].
pub(crate) fn parts_of_program(
    prefix: &str,
    plan: &Planned,
    funcs: &[(Arc<str>, &TensorFunc)],
    target: &Target,
) -> Result<Vec<String>> {
    let funcs = with_shapes(plan, funcs)?;
    let mut parts = emit::parts_with_prefix(prefix, &funcs, target)?;
    let mut main = function(prefix, plan, Visibility::Hidden)?;
    for (name, _) in &funcs {
        let _ = writeln!(main, "declare hidden i32 @{}(ptr, ptr)", emit::symbol(prefix, name));
    }
    parts.push(main);
    Ok(parts)
}

/// The functions that a plan calls, with the one that computes its shapes.
fn with_shapes<'a>(
    plan: &'a Planned,
    funcs: &[(Arc<str>, &'a TensorFunc)],
) -> Result<Vec<(Arc<str>, &'a TensorFunc)>> {
    if let Some(f) = plan.called().into_iter().find(|f| !funcs.iter().any(|(n, _)| n == *f)) {
        return Err(broken(format!("there is no function `{f}`")));
    }
    let shapes = plan.shapes().map(|s| (s.name.clone(), &s.func));
    Ok(funcs.iter().cloned().chain(shapes).collect())
}

fn broken(what: String) -> Error {
    Error::internal(format!("the memory plan is wrong: {what}"))
}

/// The definition of the function, and of the one that computes shapes.
fn function(prefix: &str, plan: &Planned, visibility: Visibility) -> Result<String> {
    check_prefix(prefix)?;
    let steps = plan.steps()?;
    let most = i32::MAX as usize / STEP;
    if steps.len() > most {
        let text = format!("a plan of {} steps, at most {most} are possible", steps.len());
        return Err(Error::unsupported(text));
    }
    let hidden = if visibility == Visibility::Hidden { "hidden " } else { "" };
    let mut out = String::new();
    let heap = match plan.shapes() {
        Some(shapes) => {
            // Its messages come behind those of all steps.
            let kernel = emit::symbol(prefix, &shapes.name);
            let _ = write!(
                out,
                "define {hidden}i32 @{}(ptr %ctx, ptr %sizes, ptr %shapes) nounwind {{
  %args = alloca [2 x i64], align 8
  store ptr %sizes, ptr %args, align 8
  %slot = getelementptr i64, ptr %args, i64 1
  store ptr %shapes, ptr %slot, align 8
  %code = call i32 @{kernel}(ptr %ctx, ptr %args)
  %failed = icmp ne i32 %code, 0
  %number = add i32 %code, {}
  %result = select i1 %failed, i32 %number, i32 0
  ret i32 %result
}}
",
                shapes_symbol(prefix),
                steps.len() * STEP
            );
            "ptr %shapes, "
        }
        None => "",
    };
    let _ = writeln!(
        out,
        "define {hidden}i32 @{}(ptr %ctx, {heap}ptr %inputs, ptr %outputs, ptr %constants, ptr %arena) nounwind {{",
        symbol(prefix)
    );
    let slots = steps.iter().map(|s| s.args.len()).max().unwrap_or(0);
    let _ = writeln!(out, "  %args = alloca [{} x i64], align 8", slots.max(1));
    let (inputs, outputs) = plan.counts();
    for (table, count) in
        [("inputs", inputs), ("outputs", outputs), ("constants", plan.constants().len())]
    {
        for k in 0..count {
            let _ = writeln!(out, "  %{table}.at{k} = getelementptr ptr, ptr %{table}, i64 {k}");
            let _ = writeln!(out, "  %{table}.{k} = load ptr, ptr %{table}.at{k}, align 8");
        }
    }
    for (n, step) in steps.iter().enumerate() {
        match step.idle {
            Idle::Never => {}
            Idle::Always => continue,
            Idle::Heap(at) => {
                let _ = writeln!(out, "  %idle.at{n} = getelementptr i64, ptr %shapes, i64 {at}");
                let _ = writeln!(out, "  %idle.{n} = load i64, ptr %idle.at{n}, align 8");
                let _ = writeln!(out, "  %left.{n} = icmp ne i64 %idle.{n}, 0");
                let _ = writeln!(out, "  br i1 %left.{n}, label %step{n}, label %call{n}");
                let _ = writeln!(out, "call{n}:");
            }
        }
        if let Some(Shared { input, output }) = step.unless_shared {
            let pair = format!("%inputs.{input}, %outputs.{output}");
            let _ = writeln!(out, "  %shared.{n} = icmp eq ptr {pair}");
            let _ = writeln!(out, "  br i1 %shared.{n}, label %step{n}, label %apart{n}");
            let _ = writeln!(out, "apart{n}:");
        }
        for (k, argument) in step.args.iter().enumerate() {
            let number = |out: &mut String, number: &Number| match *number {
                Number::Known(value) => value.to_string(),
                Number::Heap(at) => {
                    let _ =
                        writeln!(out, "  %heap.{n}.{k} = getelementptr i64, ptr %shapes, i64 {at}");
                    let _ =
                        writeln!(out, "  %number.{n}.{k} = load i64, ptr %heap.{n}.{k}, align 8");
                    format!("%number.{n}.{k}")
                }
            };
            let value = match argument {
                Argument::Pointer(table, i, Number::Known(0)) => format!("ptr %{table}.{i}"),
                Argument::Pointer(table, i, at) => {
                    let at = number(&mut out, at);
                    let from = format!("ptr %{table}.{i}");
                    let _ = writeln!(out, "  %part.{n}.{k} = getelementptr i8, {from}, i64 {at}");
                    format!("ptr %part.{n}.{k}")
                }
                Argument::Arena(at) => {
                    let at = number(&mut out, at);
                    let _ =
                        writeln!(out, "  %arena.{n}.{k} = getelementptr i8, ptr %arena, i64 {at}");
                    format!("ptr %arena.{n}.{k}")
                }
                Argument::Number(value) => format!("i64 {}", number(&mut out, value)),
            };
            let _ = writeln!(out, "  %slot.{n}.{k} = getelementptr i64, ptr %args, i64 {k}");
            let _ = writeln!(out, "  store {value}, ptr %slot.{n}.{k}, align 8");
        }
        let kernel = emit::symbol(prefix, step.func);
        let _ = writeln!(out, "  %code.{n} = call i32 @{kernel}(ptr %ctx, ptr %args)");
        let _ = writeln!(out, "  %failed.{n} = icmp ne i32 %code.{n}, 0");
        let _ = writeln!(out, "  br i1 %failed.{n}, label %fail{n}, label %step{n}");
        let _ = writeln!(out, "fail{n}:");
        let _ = writeln!(out, "  %result.{n} = add i32 %code.{n}, {}", n * STEP);
        let _ = writeln!(out, "  ret i32 %result.{n}");
        let _ = writeln!(out, "step{n}:");
    }
    out.push_str("  ret i32 0\n}\n");
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::DType;
    use tilewright_runtime::Step;

    fn plan(args: Vec<Slot>) -> Planned {
        Planned::Fixed(SizedPlan {
            inputs: vec![tensor_port("x")],
            outputs: vec![tensor_port("y")],
            steps: vec![Step { func: "f".into(), args, idle: false, unless_shared: None }],
            arena_bytes: 64,
            ..SizedPlan::default()
        })
    }

    fn tensor_port(n: &str) -> Port {
        Port { name: n.into(), dtype: DType::F32, shape: vec![4], stored: None }
    }

    #[test]
    fn results_are_taken_apart() {
        assert_eq!(failure(0), None);
        assert_eq!(failure(-3), None);
        assert_eq!(failure(1), Some((0, 0)));
        assert_eq!(failure(3 * 4096 + 5), Some((3, 4)));
        assert_eq!(failure(4096), None);
    }

    #[test]
    fn a_plan_without_end_is_refused() {
        let step = Step { func: "f".into(), args: Vec::new(), idle: false, unless_shared: None };
        let endless =
            SizedPlan { steps: vec![step; i32::MAX as usize / STEP + 1], ..SizedPlan::default() };
        let error = function("m", &Planned::Fixed(endless), Visibility::Default);
        let error = error.expect_err("too many steps");
        assert!(matches!(error, Error::Unsupported(_)));
        assert_eq!(error.to_string(), "a plan of 524288 steps, at most 524287 are possible");
    }

    #[test]
    fn a_plan_that_is_wrong_is_an_error() {
        for slot in [Slot::Input(1), Slot::Output(2), Slot::Constant(0), Slot::Arena(65)] {
            let error = function("m", &plan(vec![slot]), Visibility::Default);
            let error = error.expect_err("there is no such place");
            assert!(matches!(error, Error::Internal(_)), "{error}");
            assert!(error.to_string().contains(&format!("step 0, `f`, uses {slot:?}")), "{error}");
        }
        let target = Target::new("", "", "");
        let error = program("m", &plan(vec![Slot::Input(0)]), &[], &target);
        let error = error.expect_err("there is no such function");
        assert!(error.to_string().contains("there is no function `f`"), "{error}");
        assert!(function("no prefix", &plan(Vec::new()), Visibility::Default).is_err());
    }
}
