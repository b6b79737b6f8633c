//! `tilewright opt`: runs passes over a module.

use std::io::Write;
use std::path::PathBuf;

use tilewright::passes::{self, Config};
use tilewright::pipeline::check;
use tilewright::{Error, ModuleExt, Sizes};

use super::{Answer, Outcome, pair, read_module, size};

/// Run passes over a module of TVMScript and print the result.
#[derive(clap::Args)]
#[command(after_help = passes_help())]
pub struct Arguments {
    /// TVMScript, an ONNX model, or `-` for TVMScript from standard input.
    file: PathBuf,
    /// Passes to run, in this order.
    #[arg(long = "pass", value_name = "NAME,...", value_delimiter = ',')]
    passes: Vec<String>,
    /// A setting of a pass.
    #[arg(long = "pass-config", value_name = "KEY=VALUE", value_parser = pair)]
    config: Vec<(String, String)>,
    /// Print the module after each pass.
    #[arg(long)]
    print_after_all: bool,
    /// A size that the module leaves open; a variable's name, or `INPUT.AXIS`.
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = size)]
    dims: Vec<(String, usize)>,
    /// A schedule to apply first.
    #[arg(long, value_name = "TRACE.py")]
    schedule: Option<PathBuf>,
}

fn passes_help() -> String {
    let mut text = String::from("Passes:\n");
    for pass in passes::PASSES {
        text += &format!("  {:<16} {}\n", pass.name, pass.about);
        for (key, about) in pass.settings {
            text += &format!("  {:<16}   {key}: {about}\n", "");
        }
    }
    text
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    if let Some(path) = &arguments.schedule {
        let error = Error::refused(format!("{}: schedules are not available yet", path.display()));
        return Err(error.help("leave out --schedule").into());
    }
    let passes: Vec<&passes::Pass> =
        arguments.passes.iter().map(|name| passes::find(name.trim())).collect::<Result<_, _>>()?;
    let config: Config = arguments.config.iter().cloned().collect();
    passes::check_config(&config, &passes)?;
    let sizes = Sizes { dims: super::sizes(&arguments.dims)?, ..Sizes::new() };
    let mut module = read_module(&arguments.file, &sizes)?;
    check(&module)?;
    for pass in &passes {
        module = pass.run(&module, &config)?;
        if arguments.print_after_all {
            writeln!(out, "# after {}", pass.name)?;
            writeln!(out, "{}", module.to_script().trim_end())?;
        }
    }
    if passes.is_empty() || !arguments.print_after_all {
        writeln!(out, "{}", module.to_script().trim_end())?;
    }
    Ok(Answer::Yes)
}
