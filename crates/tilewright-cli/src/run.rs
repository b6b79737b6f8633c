//! `tilewright run`: runs a model.

use std::collections::BTreeMap;
use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::time::Duration;

use tilewright_driver::compare::{Tolerance, compare, mismatch};
use tilewright_driver::random::Random;
use tilewright_driver::session::{Conversions, OpenSizes, Request, Started, not_an_input};
use tilewright_driver::{Error, Executable, Result, Session, Sizes, Tensor};
use tilewright_ir::show::visible;
use tilewright_ir::{Dim, Var};
use tilewright_polyhedral::Questions;
use tilewright_runtime::OpenPort;
use tilewright_runtime::file;
use tilewright_runtime::npz::{self, Archive};

use super::answer::{Answer, Outcome, talk};
use super::given::Given;
use super::native::Native;
use super::progress::{Bar, Stages};
use super::sizes::Source;
use super::summary;
use super::timing::{self, Show, Times};
use super::versions::Versions;

/// Run a model.
///
/// Inputs that are not given are random. Without --output and --expect, a summary of the outputs is
/// printed.
#[derive(clap::Args)]
pub struct Arguments {
    /// An ONNX model, TVMScript with a graph or tensor function, or `-` for TVMScript from standard
    /// input.
    model: PathBuf,
    #[command(flatten)]
    given: Given,
    /// Compile with the sizes open that the model leaves open, as for a program that runs at any
    /// size; then run at the given ones.
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    versions: Versions,
    /// Seed of random inputs.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Write the outputs there.
    #[arg(long, value_name = "FILE.npz")]
    output: Option<PathBuf>,
    /// Compare the outputs with these; exit code 1 if they differ.
    #[arg(long, value_name = "FILE.npz")]
    expect: Option<PathBuf>,
    /// Allowed error of floats, relative to the expected value.
    #[arg(long, value_name = "R", default_value_t = 1e-4, value_parser = tolerance)]
    rtol: f64,
    /// Allowed error of floats, on top of that.
    #[arg(long, value_name = "A", default_value_t = 1e-5, value_parser = tolerance)]
    atol: f64,
    /// Say how long a run takes: the median of many.
    #[arg(long)]
    time: bool,
    /// For how long --time and --profile measure.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Say which functions a run spends its time in; with a file, also write there how long each
    /// call takes, as JSON, which `plan --profile` shows beside what it predicts.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    profile: Option<Option<PathBuf>>,
    #[command(flatten)]
    native: Native,
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.001..=1000.0).contains(&value) => Ok(value),
        _ => Err("expected seconds, from 0.001 to 1000".to_owned()),
    }
}

fn tolerance(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 => Ok(value),
        _ => Err("expected a number that is not negative".to_owned()),
    }
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    arguments.native.check_here()?;
    let bar = Bar::new("load");
    let mut options = arguments.native.options(&bar)?;
    let stages = Stages::default();
    if arguments.time {
        stages.begin("import");
        options.progress = Some(stages.watch(options.progress.take()));
    }
    let expected = arguments.expect.as_ref().map(Archive::open).transpose()?;
    if let Some(path) = &arguments.output {
        file::check(path)?;
    }
    if let Some(Some(path)) = &arguments.profile {
        file::check(path)?;
    }
    let specialize = arguments.versions.all()?;
    if !arguments.open && !specialize.is_empty() {
        return Err(Error::input(
            "--specialize without --open: the model is compiled for its sizes",
        )
        .into());
    }
    let session = Session::new(options.specialize(specialize));
    let model = Source::from_path(&arguments.model)?;
    let open = if arguments.open { OpenSizes::Stay } else { OpenSizes::BatchOfOne };
    // Of what is kept, values do not have the names of the model.
    let kept = !matches!(arguments.profile, Some(Some(_)));
    let request = Request { kept, ..arguments.given.request(&model, open) };
    let mut started = session.start(&request)?;
    if arguments.time && matches!(started.left, Conversions::Counted(1.., None)) {
        // What conversions of open sizes move in a run is not kept.
        started = session.start(&Request { kept: false, ..request })?;
    }
    drop(bar);
    let stages = stages.times();
    let Started { executable, values, sizes, left, times, .. } = &mut started;
    let given = std::mem::take(values);
    give_sizes(executable, sizes)?;

    let inputs = store_inputs(executable, inputs(executable, given, sizes, arguments.seed)?)?;
    let lists = executable.outputs().iter().any(OpenPort::is_item);
    let mut outputs = if lists { Vec::new() } else { executable.run(&inputs)? };
    let least = Duration::from_secs_f64(arguments.seconds);
    if arguments.time {
        talk!("time: import {}, compile {}", Show(times.import), Show(times.compile));
        if arguments.native.has_layout() {
            let (count, bytes) = conversions_of_a_run(left, executable, &inputs)?;
            let took = Show(times.layout);
            let bytes = bytes.map_or("an unknown number of".to_owned(), |bytes| bytes.to_string());
            talk!("time: layout {took}, {count} conversions a run that move {bytes} bytes");
        }
        if !stages.is_empty() {
            let shown = stages.iter().map(|(name, time)| format!("{name} {}", Show(*time)));
            talk!("time: stages {}", shown.collect::<Vec<_>>().join(", "));
            let Questions { all, by_sets } = Questions::so_far();
            talk!("time: {all} questions, {by_sets} of them to the set engine");
        }
        let times = Times::measure(least, || {
            if lists {
                executable.run_items(&inputs).map(drop)
            } else {
                executable.run_into(&inputs, &mut outputs)
            }
        })?;
        talk!("time: {times}, {} threads", executable.threads());
    }
    if let Some(path) = &arguments.profile {
        let executable = executable.version(&inputs);
        let profile = timing::profile(executable, &inputs, &mut outputs, least)?;
        for line in timing::lines(&profile) {
            talk!("{line}");
        }
        if let Some(path) = path {
            file::write(path, profile.text().as_bytes())?;
        }
    }
    let outputs = if lists {
        let items = executable.run_items(&inputs)?.into_iter().zip(executable.outputs());
        items.flat_map(|(item, port)| item.named(&port.name)).collect()
    } else {
        logical(executable, outputs)?
    };
    if let Some(path) = &arguments.output {
        npz::write(path, outputs.iter().map(|(name, tensor)| (&**name, tensor)))?;
    }
    let mut answer = Answer::Yes;
    if let Some(mut expected) = expected {
        let tolerance = Tolerance { relative: arguments.rtol, absolute: arguments.atol };
        answer = check(&outputs, &mut expected, tolerance, out)?;
    } else if arguments.output.is_none() {
        summary::write_all(&outputs, out)?;
    }
    // Nobody waits for it.
    out.flush()?;
    session.keep(&mut started);
    Ok(answer)
}

/// Says how large what is open and no shape of an input says is: `n` where an input has `(n + 7) // 8` rows.
fn give_sizes(executable: &Executable, sizes: &Sizes) -> Result<()> {
    for v in &executable.plan().given {
        let name = v.name();
        let Some(size) = sizes.dims.get(&**name) else {
            return Err(Error::input(format!("the size `{name}` is not given"))
                .note("the shapes of the inputs do not say it")
                .help(format!("give it: --dim {name}=SIZE")));
        };
        executable.give(name, *size)?;
    }
    Ok(())
}

/// How many conversions a run with these inputs has, and the bytes that they move, if that is known.
fn conversions_of_a_run(
    left: &Conversions,
    executable: &Executable,
    inputs: &[Tensor],
) -> Result<(usize, Option<u64>)> {
    let left = match left {
        Conversions::Counted(count, bytes) => return Ok((*count, *bytes)),
        Conversions::Open(left) => left,
    };
    let (sizes, values) = (executable.plan().sizes(), executable.sizes(inputs)?);
    Ok((left.len(), left.iter().map(|l| l.bytes_for(&|v| size_value(v, &sizes, &values))).sum()))
}

/// Sizes have the names that they have in the graph.
fn size_value(v: &Var, sizes: &[Var], values: &[usize]) -> Option<usize> {
    let place = sizes.iter().position(|own| own.name() == v.name());
    place.and_then(|k| values.get(k)).copied()
}

/// Logical inputs as the executable takes them.
fn store_inputs(executable: &Executable, inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
    executable.inputs().iter().zip(inputs).map(stored_input).collect()
}

fn stored_input((port, tensor): (&OpenPort, Tensor)) -> Result<Tensor> {
    match &port.stored {
        None => Ok(tensor),
        Some(stored) => {
            talk!("note: input `{}` is stored before the run as {stored}", port.name);
            stored.store(&tensor).map_err(|e| e.context(format!("input `{}`", port.name)))
        }
    }
}

/// Outputs as the model has them, with their names.
fn logical(executable: &Executable, outputs: Vec<Tensor>) -> Result<Vec<(String, Tensor)>> {
    executable.outputs().iter().zip(outputs).map(logical_output).collect()
}

fn logical_output((port, tensor): (&OpenPort, Tensor)) -> Result<(String, Tensor)> {
    let tensor = match &port.stored {
        None => tensor,
        Some(stored) => {
            talk!("note: output `{}` is read after the run, stored as {stored}", port.name);
            stored.load(&tensor)?
        }
    };
    Ok((port.name.to_string(), tensor))
}

/// The inputs in order, in the shapes of the model; those that were not given are random.
fn inputs(
    executable: &Executable,
    mut given: BTreeMap<String, Tensor>,
    sizes: &Sizes,
    seed: u64,
) -> Result<Vec<Tensor>> {
    let mut random = Random::new(seed);
    let mut inputs = Vec::with_capacity(executable.inputs().len());
    for port in executable.inputs() {
        let OpenPort { name, dtype, .. } = port;
        inputs.push(match given.remove(&**name) {
            Some(tensor) => tensor,
            None => {
                let shape = shape(executable, port, sizes)?;
                talk!("note: input `{name}` is random (seed {seed}): {dtype} {shape:?}");
                random.tensor(*dtype, &shape)?
            }
        });
    }
    match given.keys().next() {
        None => Ok(inputs),
        Some(name) => Err(not_an_input(name, executable.inputs().iter().map(|p| &*p.name))),
    }
}

/// The shape of an input that was not given, where its open sizes were.
fn shape(executable: &Executable, port: &OpenPort, sizes: &Sizes) -> Result<Vec<usize>> {
    if let Some(stored) = &port.stored {
        return Ok(stored.logical.clone());
    }
    port.shape
        .iter()
        .map(|d| d.value(&|v| open_size(v, sizes, executable)).map_or_else(|| d.fixed("a run"), Ok))
        .collect()
}

fn open_size(v: &Var, sizes: &Sizes, executable: &Executable) -> Option<usize> {
    let named = sizes.dims.get(&**v.name()).copied();
    named.or_else(|| {
        executable.inputs().iter().find_map(|p| {
            let axis = p.shape.iter().position(|d| *d == Dim::open(v))?;
            let given = sizes.shapes.get(&*p.name).and_then(|shape| shape.get(axis));
            given.or_else(|| sizes.dims.get(&format!("{}.{axis}", p.name))).copied()
        })
    })
}

/// Compares the outputs with what was expected, and says for each what came of it.
fn check(
    outputs: &[(String, Tensor)],
    expected: &mut Archive<impl Read + Seek>,
    tolerance: Tolerance,
    out: &mut impl Write,
) -> Outcome {
    let names: Vec<String> = expected.names().map(str::to_owned).collect();
    if names.is_empty() {
        return Err(Error::input("the file with the expected outputs holds no arrays").into());
    }
    let mut answer = Answer::Yes;
    for (own, output) in outputs {
        match names.iter().find(|name| *name == own) {
            Some(name) => {
                // What cannot be equal need not be read.
                let info = expected.info(name)?;
                let comparison = match mismatch(output, info.dtype, &info.shape) {
                    Some(differs) => differs,
                    None => compare(output, &expected.read(name)?, tolerance),
                };
                writeln!(out, "{}: {comparison}", visible(own))?;
                if !comparison.agrees() {
                    answer = Answer::No;
                }
            }
            None => talk!("note: output `{own}` is not compared: nothing is expected"),
        }
    }
    for name in names.iter().filter(|name| outputs.iter().all(|(own, _)| own != *name)) {
        writeln!(out, "{}: is expected, and there is no such output", visible(name))?;
        answer = Answer::No;
    }
    Ok(answer)
}
