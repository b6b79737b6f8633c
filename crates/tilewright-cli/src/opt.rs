//! `tilewright opt`: runs passes over a module.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tilewright_driver::certificate::layout_maps;
use tilewright_driver::passes::{self, Config};
use tilewright_driver::schedule_script::apply;
use tilewright_driver::{Module, print};
use tilewright_ir::well_formed::check_open_module;
use tilewright_ir::{Remarks, Source};
use tilewright_runtime::file;
use tilewright_schedule::table;
use tilewright_schedule::{Permissions, Schedule};

use super::answer::{Answer, Failure, Outcome};
use super::certificate::{self, Step};
use super::given::Given;
use super::report;
use super::sizes::pair;

/// Run passes over a module of TVMScript and print the result.
#[derive(clap::Args)]
#[command(after_help = help())]
pub struct Arguments {
    /// TVMScript, an ONNX model, or `-` for TVMScript from standard input.
    file: PathBuf,
    /// Passes to run, in this order.
    #[arg(long = "pass", value_name = "NAME,...", value_delimiter = ',')]
    passes: Vec<String>,
    /// An option of a pass, by its own name or as `PASS.OPTION`.
    #[arg(long = "pass-config", value_name = "KEY=VALUE", value_parser = pair)]
    config: Vec<(String, String)>,
    /// Print the module after each pass.
    #[arg(long)]
    print_after_all: bool,
    /// Say on standard error what passes left as it was, and why.
    #[arg(long)]
    explain: bool,
    /// Print what passes that schedule did, as a script for `--schedule`, instead of the module.
    #[arg(long)]
    print_trace: bool,
    #[command(flatten)]
    given: Given,
    /// A schedule to apply first.
    #[arg(long, value_name = "TRACE.py")]
    schedule: Option<PathBuf>,
    /// Write a certificate that each step keeps what functions compute, for `check`. Where none is found for a
    /// step, the exit code is 3, and no file is written.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
}

fn help() -> String {
    let mut text = String::from("Passes:\n");
    for pass in passes::passes() {
        text += &format!("  {:<16} {}\n", pass.name, pass.summary);
        for option in pass.options {
            let (key, about) = (pass.key(option.name()), option.summary());
            let (values, default) = (option.values(), option.default_value());
            text += &format!("  {:<16}   {key}: {about}; {values}, default {default}\n", "");
        }
    }
    text += "\nPrimitives of a schedule:\n";
    for p in table::signatures() {
        text += &format!("  {}\n  {:<16} {}\n", p.usage(), "", p.summary());
    }
    text
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let passes: Vec<&passes::Pass> =
        arguments.passes.iter().map(|name| passes::find(name.trim())).collect::<Result<_, _>>()?;
    let config: Config = arguments.config.iter().cloned().collect();
    passes::check_config(&config, &passes)?;
    let mut module = arguments.given.load(&arguments.file)?.0;
    check_open_module(&module)?;
    let mut certified = Vec::new();
    let mut certify = |what: &str, module: &Module| {
        if arguments.certificate.is_some() {
            certified.push(Step { what: what.to_owned(), module: module.clone() });
        }
    };
    certify("", &module);
    let mut maps = Vec::new();
    if let Some(path) = &arguments.schedule {
        let schedule = apply_schedule(module, path, |call, module| {
            certify(call, module);
            if arguments.print_after_all {
                writeln!(out, "# after {call}\n{}", print(module).trim_end())?;
            }
            Ok(())
        })?;
        maps = layout_maps(schedule.trace());
        module = schedule.module().clone();
    }
    for pass in &passes {
        let mut why = Remarks::new();
        let result = passes::run_traced(pass, &module, &config, &mut why);
        if arguments.explain {
            report::remarks(&why);
        }
        let (new, trace) = result?;
        module = new;
        certify(pass.name, &module);
        if let Some(trace) = trace.filter(|_| arguments.print_trace) {
            write!(out, "{trace}")?;
        }
        if arguments.print_after_all {
            writeln!(out, "# after {}", pass.name)?;
            writeln!(out, "{}", print(&module).trim_end())?;
        }
    }
    let steps = !passes.is_empty() || arguments.schedule.is_some();
    if !arguments.print_trace && (!steps || !arguments.print_after_all) {
        writeln!(out, "{}", print(&module).trim_end())?;
    }
    match &arguments.certificate {
        Some(path) => certificate::write(path, &certified, &maps),
        None => Ok(Answer::Yes),
    }
}

/// A module with a schedule script applied to it; `after` sees each call and the module that it leaves.
///
/// A module by itself has no callers, so that arguments of its functions may be
/// transformed; where a graph function calls them they may not.
fn apply_schedule(
    module: Module,
    path: &Path,
    mut after: impl FnMut(&str, &Module) -> io::Result<()>,
) -> Result<Schedule, Failure> {
    let text = file::read_text(path)?;
    let source = Source::new(path.display().to_string(), text);
    let alone = module.graphs().next().is_none();
    let mut schedule = Schedule::new(module, Permissions { change_interface: alone });
    let mut failed = None;
    apply(&mut schedule, &source, |call, module| {
        if failed.is_none() {
            failed = after(call, module).err();
        }
        Ok(())
    })?;
    match failed {
        Some(e) => Err(e.into()),
        None => Ok(schedule),
    }
}
