//! `tilewright plan`: the layouts of a model, what they cost, and which conversions are left.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tilewright_driver::layout::{self, Port};
use tilewright_driver::measuring::file as tuning_file;
use tilewright_driver::pipeline::{self, PipelineStage};
use tilewright_driver::pricing::{Prices, prices};
use tilewright_driver::timings::{Basis, Timings, Unit};
use tilewright_driver::whole::{self, Whole};
use tilewright_driver::winograd::{self, Chosen};
use tilewright_driver::{Error, IoLayout, LayoutPolicy, Module, Options, Result, Session, Target};
use tilewright_ir::Remarks;
use tilewright_ir::show::visible;
use tilewright_layout::flow::Planned;
use tilewright_layout::solver::{Certificate, Cost, Solution};
use tilewright_layout::{ConvLayout, Left};
use tilewright_report::{
    About, Profile, Report, Times, WhatIf, about, add_ports, add_prices, add_times, list, object,
    page, source, time, what_if,
};
use tilewright_runtime::file;
use tilewright_runtime::pool::cores;

use super::answer::{Answer, Outcome, talk};
use super::given::Given;
use super::native::{Rounding, io_layout, planned_target};
use super::progress::Bar;
use super::report;

/// Show the layouts of a model: what each call is computed in and costs, and what is left to convert.
#[derive(clap::Args)]
pub struct Arguments {
    /// An ONNX model, or TVMScript with a graph function, or `-` for TVMScript from standard input.
    model: PathBuf,
    /// The layouts: those that are best for the whole model, or one for all convolutions; everything
    /// else follows where it can.
    #[arg(long, value_name = "plan|none|nhwc|nchw4c|nchw8c|nchw16c", default_value = "plan")]
    layout: String,
    /// The CPU to plan for, as LLVM calls it, also of another family of processors.
    #[arg(long, value_name = "NAME", default_value = "native")]
    cpu: String,
    /// The device to plan for instead of a CPU, as `run --target` takes it.
    #[arg(long, value_name = "opencl[:N|:NAME]|cuda[:N|:sm_N]", conflicts_with = "cpu")]
    target: Option<String>,
    /// What a plan costs in which the call that makes a value is computed in a layout.
    #[arg(long = "what-if", value_name = "VALUE=LAYOUT")]
    what_if: Vec<String>,
    /// Say what a change of a size of the model would save: of sizes that are padded, or no multiple of
    /// the vectors, each made smaller and larger.
    #[arg(long)]
    price: bool,
    /// Threads that share the work, for measured times; one a core unless said otherwise.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Whether inputs and outputs may have other layouts than the model's own, too.
    #[arg(long = "io-layout", value_name = "logical|physical", default_value = "logical", value_parser = io_layout)]
    io_layout: IoLayout,
    #[command(flatten)]
    rounding: Rounding,
    #[command(flatten)]
    given: Given,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Say on standard error what could not follow, and why.
    #[arg(long)]
    explain: bool,
    /// Also write the plan as a page for a browser: the graph with the time of its calls and the
    /// layouts of its tensors.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write what the solver was asked and its answer, without the proof, for other solvers:
    /// GRAPH.problem.json and GRAPH.plan.json.
    #[arg(long, value_name = "FOLDER")]
    problem: Option<PathBuf>,
    /// Show measured times beside those of the plan: what `run --profile=FILE` wrote of the same model
    /// in the same layouts.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let named: Option<Option<ConvLayout>> = match arguments.layout.as_str() {
        "plan" => None,
        "none" => Some(None),
        name => Some(Some(name.parse()?)),
    };
    check(arguments, named.is_some())?;
    let profile = arguments.profile.as_deref().map(read_profile).transpose()?;
    let machine = machine(arguments)?;
    let timings = timings(&machine, arguments.threads)?;
    let module = arguments.given.load(&arguments.model)?.0;
    let pieces = pipeline::pieces(&module)?;
    if pieces.is_some() && arguments.price {
        return Err(Error::input("--price: a model with control flow has no one plan").into());
    }
    // The ends of pieces are the model's own, so they stay logical.
    let io = pieces.as_ref().map_or(arguments.io_layout, |_| IoLayout::Logical);
    let module = pieces.unwrap_or(module);
    let fast_math = arguments.rounding.fast_math;
    let timings = match fast_math {
        Some(error) => timings.with_transforms(&module, error)?,
        None => timings,
    };
    let mut why = Remarks::new();
    let (after, plans, left) = match named {
        Some(None) => (module.clone(), Vec::new(), Vec::new()),
        Some(Some(policy)) => {
            let (after, left) = layout::apply(&module, policy, io, &mut why)?;
            (after, Vec::new(), left)
        }
        None => layout::plan(&module, &timings, io, &mut why)?,
    };
    let ports = match after.entry() {
        Ok(entry) if after.graph(entry).is_ok() => layout::ports(&after)?,
        _ => [Vec::new(), Vec::new()],
    };
    let transforms =
        fast_math.map(|error| reduced(&after, error, timings.target(), &mut why)).transpose()?;
    if arguments.explain {
        report::remarks(&why);
        if arguments.target.is_none() {
            untiled(&after, timings.target())?;
        }
    }
    let times = match profile {
        Some(profile) => measured(profile, &plans, transforms.as_deref(), timings.unit())?,
        None => Vec::new(),
    };
    let whole = whole::measured(&module, &timings, io);
    let mut found = Found {
        unit: timings.unit().name(),
        basis: timings.basis(),
        io,
        plans,
        left,
        ports,
        transforms,
        times,
        whole,
        others: Vec::new(),
        prices: None,
    };
    if let Some(path) = &arguments.html {
        let model = arguments.model.file_name().unwrap_or_default().to_string_lossy();
        let about = about(&module, &timings);
        let options = match &arguments.target {
            Some(target) => Options::new().on(target)?,
            None => Options::new().target(machine),
        };
        let scopes = pipeline::scopes(&after, &options)?;
        let after = (&after, timings.target());
        found.write_page(path, &model, &module, after, &about, &scopes)?;
    }
    if let Some(folder) = &arguments.problem {
        found.plans.iter().try_for_each(|planned| write_problem(folder, planned))?;
    }
    let others = arguments.what_if.iter().map(|text| {
        let other = what_if(text, &found.plans);
        other.map_err(|e| e.context("--what-if"))
    });
    found.others = others.collect::<Result<Vec<WhatIf>>>()?;
    found.prices = match found.plans.iter().find(|p| module.entry().is_ok_and(|e| *e == p.graph)) {
        Some(planned) if arguments.price => {
            let bar = Bar::new("price");
            Some(prices(&module, &timings, io, planned, &mut |done, all| {
                bar.say("sizes", done, all)
            })?)
        }
        _ => None,
    };
    match (arguments.json, &found.plans[..]) {
        (false, _) => found.text(out)?,
        (true, []) if named.is_some() => writeln!(out, "{:#}", list(&found.left))?,
        (true, [one]) => writeln!(out, "{:#}", found.one_as_json(one))?,
        (true, _) => writeln!(out, "{:#}", found.all_as_json())?,
    }
    Ok(Answer::Yes)
}

/// Refuses arguments that do not go together; `named` says that one layout is asked about, and not the plan.
fn check(arguments: &Arguments, named: bool) -> Result<()> {
    if named && !arguments.what_if.is_empty() {
        return Err(Error::input("--what-if asks about the plan, not about one layout"));
    }
    if let Some(path) = &arguments.html {
        if named {
            return Err(Error::input("--html shows the plan, not one layout"));
        }
        file::check(path)?;
    }
    if named && arguments.problem.is_some() {
        return Err(Error::input("--problem is what a plan solves, not one layout"));
    }
    if named && arguments.price {
        return Err(Error::input("--price asks about the plan, not about one layout"));
    }
    if named && arguments.profile.is_some() {
        return Err(Error::input("--profile is compared with the plan, not with one layout"));
    }
    Ok(())
}

/// Writes what the solver was asked for a graph, and what it answered.
fn write_problem(folder: &Path, planned: &Planned) -> Result<()> {
    let plan = Solution { certificate: Certificate::default(), ..planned.plan.clone() };
    write_json("problem", planned.problem.to_json(), folder, planned)?;
    write_json("plan", plan.to_json(), folder, planned)
}

fn write_json(what: &str, text: String, folder: &Path, planned: &Planned) -> Result<()> {
    file::write(folder.join(format!("{}.{what}.json", planned.graph)), text.as_bytes())
}

/// What a profile measured of the calls of plans, of which some are computed by transforms.
fn measured(
    profile: Profile,
    plans: &[Planned],
    transforms: Option<&[Chosen]>,
    unit: Unit,
) -> Result<Vec<Times>> {
    let by_transforms: Vec<&str> =
        transforms.unwrap_or_default().iter().map(|c| &*c.value).collect();
    let profile = profile.joined(&by_transforms);
    let is_time = unit == Unit::Nanoseconds;
    let times: Vec<Times> = plans.iter().map(|p| Times::new(p, &profile, is_time)).collect();
    if !plans.is_empty() && times.iter().all(|t| t.kernels.is_empty()) {
        Err(Error::input("--profile: no kernel of it makes a value of this model"))
    } else {
        Ok(times)
    }
}

/// What is said of a model.
struct Found {
    /// The unit of all costs.
    unit: &'static str,
    basis: Basis,
    io: IoLayout,
    /// The plan of each graph function; none where one layout was asked about.
    plans: Vec<Planned>,
    /// The conversions that run when the model runs.
    left: Vec<Left>,
    ports: [Vec<Port>; 2],
    /// The convolutions that are computed by transforms, where that is allowed.
    transforms: Option<Vec<Chosen>>,
    /// What was measured of each plan; none where nothing was.
    times: Vec<Times>,
    whole: Vec<(f64, Whole)>,
    others: Vec<WhatIf>,
    prices: Option<Prices>,
}

impl Found {
    fn write_page(
        &self,
        path: &Path,
        model: &str,
        module: &Module,
        after: (&Module, &Target),
        about: &About,
        scopes: &BTreeMap<Arc<str>, Arc<str>>,
    ) -> Result<()> {
        let (plans, left, times) = (&self.plans, &self.left, &self.times);
        let (unit, after) = (self.unit, Some(after));
        let report = Report { model, module, after, plans, left, scopes, unit, times, about };
        file::write(path, page(&report).as_bytes())
    }

    /// The object of the only plan.
    fn one_as_json(&self, planned: &Planned) -> Value {
        let others = self.others.iter().collect::<Vec<_>>();
        let mut object = object(planned, self.unit, &self.left, &others);
        add_ports(&mut object, &self.ports);
        if let Some(prices) = &self.prices {
            add_prices(&mut object, prices);
        }
        if let Some(times) = self.times.first() {
            add_times(&mut object, planned, times);
        }
        self.add_measured_and_costs(&mut object);
        object
    }

    /// The other sizes that were looked at for a plan.
    fn others_of(&self, p: &Planned) -> Vec<&WhatIf> {
        self.others.iter().filter(|o| o.graph == p.graph).collect()
    }

    /// The objects of several plans, or of none.
    fn all_as_json(&self) -> Value {
        let mut all: Vec<Value> =
            self.plans.iter().map(|p| object(p, self.unit, &[], &self.others_of(p))).collect();
        for ((object, planned), times) in all.iter_mut().zip(&self.plans).zip(&self.times) {
            add_times(object, planned, times);
        }
        let mut object = json!({"graphs": all, "left": list(&self.left)});
        self.add_measured_and_costs(&mut object);
        add_ports(&mut object, &self.ports);
        object
    }

    fn add_measured_and_costs(&self, object: &mut Value) {
        object["measured"] = measured_list(&self.whole, &self.plans);
        if let Some(transforms) = &self.transforms {
            object["transforms"] = transforms_list(transforms);
        }
        object["costs"] = json!(self.basis.to_string());
    }

    /// All of it for people.
    fn text(&self, out: &mut impl Write) -> std::io::Result<()> {
        let (plans, unit) = (&self.plans, self.unit);
        for (k, planned) in plans.iter().enumerate() {
            if plans.len() > 1 {
                writeln!(out, "graph function {}:", visible(&planned.graph))?;
            }
            calls(planned, unit, self.times.get(k), out)?;
            tensors(planned, out)?;
        }
        if self.io == IoLayout::Physical {
            write_stored_ports(&self.ports, out)?;
        }
        conversions(&self.left, out)?;
        transforms(self.transforms.as_deref().unwrap_or_default(), out)?;
        for planned in plans {
            if plans.len() > 1 {
                write!(out, "{}: ", visible(&planned.graph))?;
            }
            totals(planned, unit, out)?;
        }
        if !plans.is_empty() {
            writeln!(out, "costs: {}", source(self.basis))?;
        }
        for times in &self.times {
            agreement(times, out)?;
        }
        runs(&self.whole, plans, out)?;
        if let Some(prices) = &self.prices {
            changes(prices, unit, out)?;
        }
        for other in &self.others {
            let change = other.cost as i128 - i128::from(other.plan);
            writeln!(out, "what if {}: {} {unit} ({change:+})", other.text, other.cost)?;
        }
        Ok(())
    }
}

/// A session for modules that are laid out.
fn laid_out(target: &Target) -> Result<Session> {
    Ok(Session::new(Options::of_target(target)?.layout(LayoutPolicy::AsWritten)))
}

/// Says which contractions of a laid out module have no register tiles, and which sums no registers, and why.
fn untiled(module: &Module, target: &Target) -> Result<()> {
    let lowered = laid_out(target)?.stages(module, PipelineStage::Lower)?.module;
    pipeline::summary(&lowered).iter().for_each(|text| talk!("note: {text}"));
    Ok(())
}

/// The convolutions of a laid out module that are computed by transforms.
fn reduced(module: &Module, error: f64, target: &Target, why: &mut Remarks) -> Result<Vec<Chosen>> {
    let fused = laid_out(target)?.stages(module, PipelineStage::Fuse)?.module;
    let made = winograd::apply(&fused, error, None, target, why)?;
    Ok(winograd::chosen(&made))
}

/// The same for people.
fn transforms(list: &[Chosen], out: &mut impl Write) -> std::io::Result<()> {
    for Chosen { value, tile, error, limit } in list {
        let name = visible(value);
        writeln!(
            out,
            "{name}: by transforms, tiles of {tile} x {tile}, error {error:.1e} in samples, for data up \
             to {limit:.1e}"
        )?;
    }
    Ok(())
}

/// The same for tools.
fn transforms_list(list: &[Chosen]) -> Value {
    list.iter()
        .map(|c| json!({"value": &*c.value, "tile": c.tile, "error": c.error, "limit": c.limit}))
        .collect()
}

/// What is known of times on a machine.
fn timings(target: &Target, threads: Option<usize>) -> Result<Timings> {
    let threads = threads.unwrap_or_else(cores);
    match tuning_file() {
        Some(file) => Timings::read(target, threads, &file),
        None => Ok(Timings::estimated(target, threads)),
    }
}

/// The machine to plan for.
fn machine(arguments: &Arguments) -> Result<Target> {
    match &arguments.target {
        Some(name) => Options::new().on(name).map_err(|e| e.context("--target"))?.resolve_target(),
        None => planned_target(&arguments.cpu),
    }
}

/// Calls that have a choice, each with its rivals.
fn calls(
    planned: &Planned,
    unit: &str,
    times: Option<&Times>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    writeln!(out, "calls, in {unit}:")?;
    let all = planned.problem.calls.iter().zip(&planned.plan.calls);
    for (c, (call, chosen)) in all.take(planned.calls()).enumerate() {
        let kernel = times.and_then(|times| Some((times, times.kernel(c)?)));
        let measured = kernel.map(|(times, (kernel, own))| {
            if own {
                let with = kernel.calls[1..].iter().map(|c| &planned.problem.calls[*c].name);
                let with: String = with.map(|name| format!(" + {}", visible(name))).collect();
                let predicted = time(times.predicted(kernel.predicted));
                format!("; measured{with}: {}, predicted {predicted}", time(kernel.nanoseconds))
            } else {
                let name = &planned.problem.calls[kernel.calls[0]].name;
                format!("; in the kernel of {}", visible(name))
            }
        });
        let measured = measured.unwrap_or_default();
        if call.alternatives.len() < 2 && measured.is_empty() {
            continue;
        }
        let rivals = call.alternatives.iter().enumerate().filter(|(k, _)| *k != chosen.choice);
        let rivals: Vec<String> =
            rivals.map(|(_, a)| format!("{} {}", short(&a.name), show(a.cost))).collect();
        let name = visible(&call.name);
        writeln!(
            out,
            "  {name}: {} {} ({}){measured}",
            short(&chosen.chosen),
            chosen.cost,
            rivals.join(", ")
        )?;
    }
    Ok(())
}

/// Values that are not in the model's own layout, and how much of each is padding.
fn tensors(planned: &Planned, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "tensors:")?;
    for (k, tensor) in planned.plan.tensors.iter().enumerate() {
        let layout = &planned.layouts[k][tensor.layout];
        if layout.is_identity() {
            continue;
        }
        let (name, waste) = (visible(&tensor.name), layout.waste());
        if waste > 0.0 {
            writeln!(out, "  {name}: {layout}, {:.1} % padding", 100.0 * waste)?
        } else {
            writeln!(out, "  {name}: {layout}")?
        }
    }
    for reordered in &planned.reordered {
        let (name, of) = (visible(&reordered.name), visible(&reordered.of));
        let went = reordered.went.what();
        match &reordered.layout {
            own if own.is_identity() => writeln!(out, "  {name}: as `{of}`: {went}")?,
            layout => writeln!(out, "  {name}: as `{of}` by {layout}: {went}")?,
        }
    }
    Ok(())
}

/// What changes of sizes would save.
fn changes(prices: &Prices, unit: &str, out: &mut impl Write) -> std::io::Result<()> {
    let Prices { changes, refused, left } = prices;
    writeln!(out, "sizes:")?;
    for c in changes {
        let name = visible(&c.value);
        let what = match c.role {
            Some(role) => format!("{role} in {name}"),
            None => format!("along axis {} of {name}", c.axis),
        };
        let (word, change) = match c.saved() {
            saved if saved >= 0 => ("saves", saved),
            saved => ("costs", -saved),
        };
        let amount = match unit {
            "ns" => format!("{:.3} ms", change as f64 / 1e6),
            unit => format!("{change} {unit}"),
        };
        let part = 100.0 * change as f64 / c.before.max(1) as f64;
        write!(out, "  {} -> {} {what}: {word} {amount}, {part:.2} %", c.from, c.to)?;
        match &c.ends[..] {
            [] => writeln!(out)?,
            ends => {
                let ends: Vec<String> = ends.iter().map(|n| visible(n).to_string()).collect();
                writeln!(out, "; changes {}", ends.join(", "))?;
            }
        }
    }
    if !refused.is_empty() {
        let count = refused.len();
        writeln!(out, "  {count} axes cannot be followed when they change; --json says why")?;
    }
    if *left > 0 {
        writeln!(out, "  {left} more sizes were not asked, on which less time depends")?;
    }
    Ok(())
}

/// How inputs and outputs are stored: the index map, the stored extents, what the padding holds.
fn write_stored_ports(
    [inputs, outputs]: &[Vec<Port>; 2],
    out: &mut impl Write,
) -> std::io::Result<()> {
    for (what, ports) in [("input", inputs), ("output", outputs)] {
        for port in ports {
            let name = visible(&port.name);
            let Some(stored) = &port.stored else {
                writeln!(out, "{what} {name}: as in the model")?;
                continue;
            };
            let (logical, physical) = (&stored.logical, stored.physical());
            write!(out, "{what} {name}: {stored}, {logical:?} in {physical:?}")?;
            match (stored.is_padded(), stored.pad) {
                (false, _) => writeln!(out)?,
                (true, Some(pad)) => writeln!(out, ", {pad} in the padding")?,
                (true, None) => writeln!(out, ", anything in the padding")?,
            }
        }
    }
    Ok(())
}

/// What is left to convert at run time, and why.
fn conversions(left: &[Left], out: &mut impl Write) -> std::io::Result<()> {
    for l in left {
        writeln!(out, "{}: {} bytes", visible(&l.value), l.bytes())?;
        writeln!(out, "  from {}\n  to   {}", l.from, l.to)?;
        writeln!(out, "  because {}", visible(&l.reason))?;
    }
    let bytes: u64 = left.iter().map(Left::bytes).sum();
    writeln!(out, "{} conversions, {bytes} bytes", left.len())
}

/// What the plan costs, and what others do.
fn totals(planned: &Planned, unit: &str, out: &mut impl Write) -> std::io::Result<()> {
    let Solution { objective, bound, gap, alternatives, .. } = &planned.plan;
    let others: Vec<String> =
        alternatives.iter().map(|(name, cost)| format!("{name} {}", show(*cost))).collect();
    let proof = if bound == objective {
        "proved to be the least".to_owned()
    } else {
        format!("at least {bound}, {:.2} % less", 100.0 * gap)
    };
    writeln!(out, "plan: {objective} {unit}, {proof}; {}", others.join(", "))
}

/// How well the plan's prices agree with what was measured.
fn agreement(times: &Times, out: &mut impl Write) -> std::io::Result<()> {
    let (near, known) = times.near();
    let total = time(times.total());
    writeln!(out, "profile: {total} in all kernels; {near} of {known} predicted within 20 %")?;
    for step in &times.others {
        writeln!(out, "  not in the plan: {}, {}", visible(&step.value), time(step.median))?;
    }
    Ok(())
}

/// The whole runs that were measured, the fastest first, which is what compilations take.
fn runs(whole: &[(f64, Whole)], plans: &[Planned], out: &mut impl Write) -> std::io::Result<()> {
    for (k, (nanoseconds, layouts)) in whole.iter().enumerate() {
        let taken = if k == 0 { ", which compilations take" } else { "" };
        writeln!(out, "measured: {} in {}{taken}", time(*nanoseconds), name_of(layouts, plans))?;
    }
    Ok(())
}

/// The same for tools, in nanoseconds.
fn measured_list(whole: &[(f64, Whole)], plans: &[Planned]) -> Value {
    whole
        .iter()
        .map(|(time, layouts)| json!({"layout": name_of(layouts, plans), "nanoseconds": time}))
        .collect()
}

/// What the layouts of a whole model are called: `plan` for this plan.
fn name_of(layouts: &Whole, plans: &[Planned]) -> String {
    match layouts {
        Whole::Fixed(layout) => whole::fixed_name(*layout),
        Whole::Plan(ways) => if plans
            .iter()
            .all(|p| whole::choice(ways, &p.graph, &p.problem) == Some(p.plan.choices()))
        {
            "plan"
        } else {
            "another plan"
        }
        .to_owned(),
    }
}

/// Reads what `run --profile=FILE` wrote.
fn read_profile(path: &Path) -> Result<Profile> {
    let text = file::read_text(path)?;
    Profile::parse(&text).map_err(|e| e.context(path.display()))
}

/// A layout in one word where it has one, else its index map.
fn short(name: &str) -> &str {
    name.split_once(": ").map_or(name, |(_, map)| map)
}

fn show(cost: Cost) -> String {
    cost.get().map_or("never".to_owned(), |c| c.to_string())
}
