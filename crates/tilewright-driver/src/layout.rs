//! Layouts for whole models, from the choice of a policy to what is left to convert at run time.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tilewright_autoschedule::options::{CPU, FEATURES, TRIPLE, target};
use tilewright_graph::fold::DEFAULT_GROWTH;
use tilewright_graph::normal::{output_names, results};
use tilewright_ir::{Error, GraphFunc, Module, Remarks, Result, TensorFunc, well_formed};
use tilewright_layout::flow::{self, Costs, PlanOptions, Planned, plan_layout};
use tilewright_layout::policy::ConvLayout;
use tilewright_layout::recognise::reorders;
use tilewright_layout::solver::Problem;
use tilewright_layout::{Left, cancel_layout, fold_constant};
use tilewright_layout::{begin, has_fixed_places};
use tilewright_runtime::Stored;
use tilewright_runtime::plan::stored;
use tilewright_transform::pass::{OneOf, Pass, Run};

use super::constants::evaluate;
use super::options::{IoLayout, LayoutPolicy, Options};
use super::rules::check_after;
use super::timings::Timings;
use super::whole::{self, Whole};

/// A module in the layouts of the options, and the conversions that are left. A module that was laid out
/// and lowered before stays as it is.
///
/// # Errors
/// As [`apply`], and those of [`Options::timings_of`] and of [`Options::measurer`]; [`Error::Input`] where
/// there are fewer plans.
pub fn lay_out(module: &Module, options: &Options) -> Result<(Module, Vec<Left>)> {
    let (io, mut why) = (options.io_layout, Remarks::new());
    if has_fixed_places(module) {
        return Ok((module.clone(), Vec::new()));
    }
    match options.layout {
        // Layouts are for loops that are found.
        LayoutPolicy::Plan if options.schedule => {
            if let Some(measure) = options.measurer.as_ref().filter(|_| has_choice(module)) {
                measure(module, options)?;
            }
            choose(module, &options.timings_of(module)?, io, &mut why)
        }
        LayoutPolicy::Ranked(place) if has_choice(module) => {
            nth(module, &options.timings_of(module)?, io, place, &mut why)
        }
        LayoutPolicy::Blocked(block) => apply(module, ConvLayout::Blocked(block), io, &mut why),
        LayoutPolicy::ChannelsLast => apply(module, ConvLayout::ChannelsLast, io, &mut why),
        LayoutPolicy::Plan | LayoutPolicy::Ranked(_) | LayoutPolicy::AsWritten => {
            Ok((module.clone(), Vec::new()))
        }
    }
}

/// The module with its convolutions in the layout of a policy, everything else as it follows, and
/// constants converted; and the conversions that are left, each with its reason. What could not
/// follow is added to `why`. Inputs and outputs follow as well where `io` lets them ([`ports`]).
///
/// # Errors
/// [`Error::Malformed`] if the module breaks a rule, and those of the
/// passes.
pub fn apply(
    module: &Module,
    policy: ConvLayout,
    io: IoLayout,
    why: &mut Remarks,
) -> Result<(Module, Vec<Left>)> {
    well_formed::check_module(module)?;
    let (module, left) = flow::apply(&begin(module), policy, io, why)?;
    check_after("flow_layout", &module)?;
    let module = cancel_layout(&module, why)?;
    check_after("cancel_layout", &module)?;
    Ok((fold_constants(&module, why)?, left))
}

/// A module whose constants are converted.
fn fold_constants(module: &Module, why: &mut Remarks) -> Result<Module> {
    let module = fold_constant(module, DEFAULT_GROWTH as usize, &mut evaluate, why)?;
    check_after("fold_constant", &module)?;
    Ok(module)
}

/// Whether inputs and outputs keep their layout.
const IO: OneOf<IoLayout> = OneOf {
    name: "io",
    summary: "inputs and outputs are logical, or physical with zeros in the padding of inputs",
    of: &[("logical", IoLayout::Logical), ("physical", IoLayout::Physical)],
    default: IoLayout::Logical,
};

/// `plan_layout` by name.
pub const PASS: Pass = Pass {
    name: "plan_layout",
    summary: "the layouts of whole graphs that are estimated to be the fastest for a processor",
    options: &[&CPU, &FEATURES, &IO, &TRIPLE],
    run: Run::Module(|module, given, why| {
        let timings = Timings::estimated(&target(given)?, 1);
        Ok(planned(module, &timings, given.get(&IO)?, &|_, _| None, why)?.0)
    }),
};

/// A module in planned layouts, the plans of its graph functions, and the conversions that are left.
pub type LaidOut = (Module, Vec<Planned>, Vec<Left>);

/// A module in the layouts that are estimated to be the fastest as a whole, those of its inputs and
/// outputs among them where `io` lets them ([`ports`]).
///
/// # Errors
/// As [`apply`].
pub fn plan(
    module: &Module,
    costs: &dyn Costs,
    io: IoLayout,
    why: &mut Remarks,
) -> Result<LaidOut> {
    finished(planned(&begin(module), costs, io, &|_, _| None, why)?, why)
}

/// A module in the layouts of a plan that its text names ([`whole`]), as [`plan`] gives it; `None` where
/// a way of the plan is not there.
///
/// # Errors
/// As [`apply`].
pub fn plan_as(
    module: &Module,
    costs: &dyn Costs,
    io: IoLayout,
    ways: &str,
    why: &mut Remarks,
) -> Result<Option<LaidOut>> {
    let missed = Cell::new(false);
    let decided = |graph: &str, problem: &Problem| {
        let choice = whole::choice(ways, graph, problem);
        missed.set(missed.get() || choice.is_none());
        choice
    };
    let planned = planned(&begin(module), costs, io, &decided, why)?;
    if missed.get() { Ok(None) } else { finished(planned, why).map(Some) }
}

/// The module as planned, with conversions of constants still in it.
fn planned(
    module: &Module,
    costs: &dyn Costs,
    io: IoLayout,
    decided: &dyn Fn(&str, &Problem) -> Option<Vec<usize>>,
    why: &mut Remarks,
) -> Result<LaidOut> {
    well_formed::check_module(module)?;
    let options = PlanOptions { policies: costs.policies(), costs, time_limit: TIME, io, decided };
    let planned = plan_layout(module, &options, why)?;
    check_after("plan_layout", &planned.0)?;
    Ok(planned)
}

/// The same without conversions that cancel, and with those of constants done.
fn finished((module, plans, left): LaidOut, why: &mut Remarks) -> Result<LaidOut> {
    let module = cancel_layout(&module, why)?;
    check_after("cancel_layout", &module)?;
    Ok((fold_constants(&module, why)?, plans, left))
}

/// A module in the layouts of the plan at a place in the order of costs, from 1; and the conversions that
/// are left.
///
/// # Errors
/// As [`apply`]; [`Error::Input`] where there are fewer plans.
pub fn nth(
    module: &Module,
    timings: &Timings,
    io: IoLayout,
    place: usize,
    why: &mut Remarks,
) -> Result<(Module, Vec<Left>)> {
    let (best, plans, left) = plan(module, timings, io, why)?;
    if place == 1 {
        return Ok((best, left));
    }
    let all = whole::ranked(&plans, place)?;
    let Some(wanted) = place.checked_sub(1).and_then(|at| all.get(at)) else {
        let what = format!("there is no plan {place}: {} plans were found", all.len());
        return Err(Error::input(what));
    };
    match plan_as(module, timings, io, &wanted.ways, why)? {
        Some((module, _, left)) => Ok((module, left)),
        None => Err(Error::internal("a plan that is not found again")),
    }
}

/// How long the layouts of a graph function are searched for, where no proof ends it.
const TIME: Duration = Duration::from_secs(2);

/// A module in the layouts of its [`plan`], where there is something to plan: a module without
/// convolutions stays as it is. Where whole runs of
/// plans and of fixed layouts were measured, the fastest of them is taken.
///
/// # Errors
/// As [`apply`].
pub fn choose(
    module: &Module,
    timings: &Timings,
    io: IoLayout,
    why: &mut Remarks,
) -> Result<(Module, Vec<Left>)> {
    if !has_choice(module) {
        return as_it_is(module);
    }
    match measured_or_planned(module, timings, io, why) {
        Err(Error::Toolchain(_)) => as_it_is(module),
        result => result,
    }
}

fn measured_or_planned(
    module: &Module,
    timings: &Timings,
    io: IoLayout,
    why: &mut Remarks,
) -> Result<(Module, Vec<Left>)> {
    for (_, layouts) in whole::measured(module, timings, io) {
        match layouts {
            Whole::Fixed(None) => return as_it_is(module),
            Whole::Fixed(Some(policy)) => return apply(module, policy, io, why),
            Whole::Plan(ways) => {
                if let Some((new, _, left)) = plan_as(module, timings, io, &ways, why)? {
                    return Ok((new, left));
                }
            }
        }
    }
    plan(module, timings, io, why).map(|(new, _, left)| (new, left))
}

fn as_it_is(module: &Module) -> Result<(Module, Vec<Left>)> {
    Ok((module.clone(), Vec::new()))
}

/// An input or output of a module's entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Its name.
    pub name: Arc<str>,
    /// How it is stored; `None` where that is as the model has it.
    pub stored: Option<Arc<Stored>>,
}

/// The inputs and the outputs of a module's entry, with how they are stored.
///
/// # Errors
/// [`Error::Input`] for a module without an entry, [`Error::Malformed`] if its attributes contradict it.
pub fn ports(module: &Module) -> Result<[Vec<Port>; 2]> {
    let func = module.graph(module.entry()?)?;
    let inputs = func.params.iter().map(|p| p.name().clone()).collect();
    let outputs = output_names(func, results(&func.ret).len());
    Ok([ports_of(stored::INPUTS, inputs, func)?, ports_of(stored::OUTPUTS, outputs, func)?])
}

fn ports_of(key: &str, names: Vec<Arc<str>>, func: &GraphFunc) -> Result<Vec<Port>> {
    let stored = Stored::list(&func.attrs, key, names.len())?;
    Ok(names.into_iter().zip(stored).map(|(name, stored)| Port { name, stored }).collect())
}

/// Whether there are convolutions, whose layout can be chosen, or values that are others in another order, which need
/// not be made.
pub fn has_choice(module: &Module) -> bool {
    let is_open =
        |f: &Arc<TensorFunc>| ConvLayout::ChannelsLast.layouts(f).is_some() || reorders(f);
    module.graphs().next().is_some() && module.tensors().any(|(_, f)| is_open(f))
}
