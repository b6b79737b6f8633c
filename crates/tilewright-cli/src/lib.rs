//! The `tilewright` command, for the binary of that name and for the Python package, which has it too.
//!
//! Data goes to standard output, talk to standard error. Exit code 0 means done, 1 "no" (it
//! differs, something is missing), 2 refused or bad input, 3 undecided.

mod answer;
mod certificate;
mod check;
mod compile;
mod diff;
mod doctor;
mod given;
mod layout;
mod measure;
mod native;
mod ops;
mod opt;
mod plan;
mod progress;
mod report;
mod run;
mod sizes;
mod summary;
mod texts;
mod timing;
mod tune;
mod verify;
mod versions;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};

use answer::{Answer, Failure};
use clap::{CommandFactory, Parser, Subcommand};
use tilewright_driver::Error;

/// Compile and run tensor programs.
///
/// MODEL is an ONNX model, or TVMScript with a graph or tensor function.
#[derive(Parser)]
#[command(name = "tilewright", version, max_term_width = 100, after_help = ENVIRONMENT)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The environment variables that are read; `docs` and `doctor` name them, too.
const ENVIRONMENT: &str = "\
Environment:
  TILEWRIGHT_LLVM   the LLVM library to use; found in the Rust toolchain or the system otherwise
  TILEWRIGHT_CACHE  directory of compiled code, or `off`; ~/.cache/tilewright otherwise
  TILEWRIGHT_TUNING file of measured times, or `off`; `tuning.sqlite` beside the compiled code otherwise
  CC                the C compiler that makes libraries; `cc` otherwise, or gcc for another machine
  NO_COLOR          errors without colours, where it is not empty";

#[derive(Subcommand)]
enum Command {
    Run(run::Arguments),
    Compile(compile::Arguments),
    Plan(plan::Arguments),
    Tune(tune::Arguments),
    #[command(hide = true)]
    Measure(tune::Arguments),
    Opt(opt::Arguments),
    Diff(diff::Arguments),
    Verify(verify::Arguments),
    Layout(layout::Arguments),
    Check(check::Arguments),
    Doctor(doctor::Arguments),
    Ops(ops::Arguments),
    Completions(texts::Completions),
    Man(texts::Man),
}

/// Refused or bad input.
const REFUSED: u8 = 2;

/// The question has no answer that could be found.
const UNDECIDED: u8 = 3;

/// Stack of the thread that does the work. Trees are walked by recursion, and the parser and the
/// rules of the IR bound their depth: 800 levels in a text, 1500 in an expression.
const STACK_BYTES: usize = 128 << 20;

/// Runs the command by its arguments, the name of the command among them, and gives its exit code.
/// `program` starts it in another process, with further arguments: tuning measures in processes of its own.
pub fn run_command(arguments: Vec<OsString>, program: Vec<OsString>) -> u8 {
    measure::start_workers_by(program, arguments.clone());
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are answers, and go to standard output.
            let _ = error.print();
            return if error.use_stderr() { REFUSED } else { 0 };
        }
    };
    if cfg!(target_family = "wasm") {
        // There are no threads; the linker has made the stack as large (`.cargo/config.toml`).
        return execute(arguments);
    }
    let work = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(|| execute(arguments));
    // A panic has printed its message.
    work.map(|thread| thread.join().unwrap_or(101)).unwrap_or_else(|error| {
        report::draw(&Error::io(format!("cannot start a thread: {error}")));
        REFUSED
    })
}

fn execute(arguments: Arguments) -> u8 {
    let mut out = BufWriter::new(io::stdout().lock());
    let outcome = match arguments.command {
        Command::Run(a) => run::execute(&a, &mut out),
        Command::Compile(a) => compile::execute(&a, &mut out),
        Command::Plan(a) => plan::execute(&a, &mut out),
        Command::Tune(a) => tune::execute(&a, &mut out),
        Command::Measure(a) => tune::work(&a, &mut out),
        Command::Opt(a) => opt::execute(&a, &mut out),
        Command::Diff(a) => diff::execute(&a, &mut out),
        Command::Verify(a) => verify::execute(&a, &mut out),
        Command::Check(a) => check::execute(&a, &mut out),
        Command::Layout(a) => layout::execute(&a, &mut out),
        Command::Doctor(a) => doctor::execute(&a, &mut out),
        Command::Ops(a) => ops::execute(&a, &mut out),
        Command::Completions(a) => texts::completions(&a, Arguments::command(), &mut out),
        Command::Man(a) => texts::man(&a, Arguments::command(), &mut out),
    };
    let flushed = out.flush().map_err(Failure::from);
    match outcome.and_then(|answer| flushed.map(|()| answer)) {
        Ok(Answer::Yes) => 0,
        Ok(Answer::No) => 1,
        Ok(Answer::Undecided) => UNDECIDED,
        Err(Failure::Error(error)) => {
            report::draw(&error);
            REFUSED
        }
        // The reader of the pipe has closed it.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            // What is still buffered would fail again when the buffer is dropped.
            let _ = out.into_parts();
            0
        }
        Err(Failure::Output(error)) => {
            report::draw(&Error::io(format!("cannot write to standard output: {error}")));
            REFUSED
        }
    }
}
