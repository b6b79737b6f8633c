//! File tests: each `tests/cases/**/*.py` says what is run and what comes of it.
//!
//! ```python
//! # run: opt --pass lower_blocks
//! @T.prim_func
//! def f(A: T.Buffer((4,), "float32")):
//!     ...
//!
//! # ---- expected
//! ...
//! ```
//!
//! A case is a test, named by its path: `cargo test -p tilewright-cli --test files passes/simplify`
//! runs those whose names contain that.
//!
//! The command runs with the part before the first section as its file. What it prints stands under
//! `# ---- expected`: text of TVMScript as it is, anything else as comments. An exit code other than
//! 0 is written as `# exit: 1`. A diagnostic is written into the input, below the line that it points
//! to, and so do the remarks of `--explain`; the comment begins under the place and is as wide as it:
//!
//! ```python
//!     B[0] = C[0]
//!            #^^^ error: unknown name `C`
//!            # help: ...
//! ```
//!
//! A command of two files gets the section `# ---- other` as its second one. The section
//! `# ---- schedule` is a schedule script, which `opt` applies; a diagnostic that points into it
//! stands there, and the trace that it leaves must give the same module again. With
//! `UPDATE_EXPECT=1` the files are rewritten to what comes out.
//!
//! A module that a pass gave is also checked: it reads back as the same module, and it computes the
//! same as the input, run by the reference interpreter on seeded random data. Sizes that are open
//! are taken from `# sizes: n=5, m=3`, or else are 5. Parameters that lie in another way afterwards
//! are compared element by element, and their padding with what it should hold, where a line
//! `# layout: A[i] at [i // 4, i % 4], padding 0` says so. A transformation whose results may
//! differ, or cannot be interpreted, says why: `# semantics: not compared, because ...`. Where the
//! text of the result is not the point, `# output: not compared, because ...` leaves it out.

mod annotate;
mod layouts;
#[path = "../program/mod.rs"]
mod program;
mod semantics;
mod trace;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::process::{ExitCode, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};

use annotate::{annotate, strip};
use layouts::Layout;
use program::program;

/// The allocator of the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A section of a file.
const SECTION: &str = "# ---- ";

/// Name of the schedule script, as diagnostics show it.
const SCRIPT: &str = "trace.py";

/// Runs the cases whose names the arguments of `cargo test` select.
fn main() -> ExitCode {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut paths = Vec::new();
    collect(&cases, &mut paths);
    paths.sort();
    assert!(!paths.is_empty(), "there are no file tests in {}", cases.display());
    let update = std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1");
    let case = |path: PathBuf| {
        let name = path.strip_prefix(&cases).unwrap_or(&path).with_extension("");
        let name = name.to_string_lossy().replace(MAIN_SEPARATOR, "/");
        Trial::test(name, move || check(&path, update).map_err(Failed::from))
    };
    let mut trials: Vec<Trial> = paths.into_iter().map(case).collect();
    trials.push(Trial::test("annotate::diagnostics_go_in_and_out", || {
        annotate::diagnostics_go_in_and_out();
        Ok(())
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).expect("the directory of the cases can be read");
    for entry in entries {
        let path = entry.expect("an entry of a directory").path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|e| e == "py") {
            paths.push(path);
        }
    }
}

/// A file, taken apart.
struct Case {
    /// The part before the first section, without diagnostics.
    input: String,
    /// The second file.
    other: Option<String>,
    /// The schedule script, without diagnostics.
    schedule: Option<String>,
    /// The command, in words.
    command: Vec<String>,
    /// `NAME=SIZE`.
    sizes: Vec<(String, usize)>,
    /// Parameters of the result that lie in another way.
    layouts: Vec<Layout>,
    /// Whether what the result computes is compared with what the input computes.
    compare: bool,
    /// Whether the output is expected to be the text in the file.
    show: bool,
}

impl Case {
    fn parse(text: &str) -> Result<Case, String> {
        let mut sections = Vec::from([(String::new(), String::new())]);
        for line in text.lines() {
            match line.strip_prefix(SECTION) {
                Some(name) => sections.push((name.trim().to_owned(), String::new())),
                None => {
                    if let Some((_, body)) = sections.last_mut() {
                        *body += line;
                        body.push('\n');
                    }
                }
            }
        }
        let mut sections = sections.into_iter();
        let (_, input) = sections.next().unwrap_or_default();
        let input = format!("{}\n", strip(&input).trim_end());
        let (mut other, mut schedule) = (None, None);
        for (name, body) in sections {
            match name.as_str() {
                "other" => other = Some(format!("{}\n", body.trim())),
                "schedule" => schedule = Some(format!("{}\n", strip(&body).trim())),
                "expected" => {}
                _ => {
                    return Err(format!(
                        "a section `{name}`, where other, schedule and expected are known"
                    ));
                }
            }
        }
        let header = |key: &str| {
            let prefix = format!("# {key}: ");
            input.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::trim)
        };
        let command = header("run").ok_or("there is no line `# run: COMMAND`")?;
        let command = command.split_whitespace().map(str::to_owned).collect();
        let mut sizes = Vec::new();
        for pair in header("sizes").into_iter().flat_map(|s| s.split(',')) {
            let (name, size) = pair.trim().split_once('=').ok_or("expected `NAME=SIZE`")?;
            sizes.push((name.to_owned(), size.parse().map_err(|e| format!("{pair}: {e}"))?));
        }
        let lines = input.lines().filter_map(|line| line.strip_prefix("# layout: "));
        let layouts = lines.map(|l| Layout::parse(l.trim())).collect::<Result<_, _>>()?;
        let (compare, show) = (header("semantics").is_none(), header("output").is_none());
        Ok(Case { input, other, schedule, command, sizes, layouts, compare, show })
    }
}

/// Runs a case. An error says what is wrong with it.
fn check(path: &Path, update: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let case = Case::parse(&text)?;
    let run = run(&case)?;
    if !case.show && run.code != 0 {
        return Err(format!("exit code {}\n{}", run.code, run.stderr));
    }
    let in_script = run.stderr.contains(&format!("--> {SCRIPT}:"));
    let mut now = match run.code {
        2 if !run.stderr.contains("error: ") => {
            return Err(format!("not a diagnostic:\n{}", run.stderr));
        }
        2 if !in_script => annotate(&case.input, &run.stderr)?,
        _ if case.command.iter().any(|word| word == "--explain") => {
            annotate(&case.input, &run.stderr)?
        }
        _ => case.input.clone(),
    };
    if let Some(schedule) = &case.schedule {
        let shown = match run.code {
            2 if in_script => annotate(schedule, &run.stderr.replace(SCRIPT, "<stdin>"))?,
            _ => schedule.clone(),
        };
        let _ = write!(now, "\n{SECTION}schedule\n{shown}");
    }
    if let Some(other) = &case.other {
        let _ = write!(now, "\n{SECTION}other\n{other}");
    }
    let is_script = case.command.first().is_some_and(|word| word == "opt")
        && !case.command.iter().any(|word| word == "--print-trace");
    if run.code != 2 && case.show {
        let _ = write!(now, "\n{SECTION}expected\n");
        if run.code != 0 {
            let _ = writeln!(now, "# exit: {}", run.code);
        }
        for line in run.stdout.lines() {
            let comment = if is_script { "" } else { "# " };
            let _ = writeln!(now, "{}", format!("{comment}{line}").trim_end());
        }
    }
    if is_script && run.code == 0 {
        semantics::round_trips(&run.stdout)?;
        if case.compare {
            semantics::computes_the_same(&case.input, &run.stdout, &case.sizes, &case.layouts)?;
        }
    }
    if let (Some(schedule), 0) = (&case.schedule, run.code) {
        trace::reproduces(&case.input, schedule)?;
    }
    match () {
        _ if now == text => Ok(()),
        _ if update => std::fs::write(path, now).map_err(|e| e.to_string()),
        _ => Err(format!(
            "something else came out, and UPDATE_EXPECT=1 would expect it:\n{}",
            difference(&text, &now)
        )),
    }
}

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs the command of a case on its input.
fn run(case: &Case) -> Result<Run, String> {
    let (name, options) = case.command.split_first().ok_or("an empty command")?;
    let mut command = program();
    command.arg(name).arg("-").args(options);
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    if let Some(other) = &case.other {
        let path = directory.path().join("other.py");
        std::fs::write(&path, other).map_err(|e| e.to_string())?;
        // By its bare name, which is in the output.
        command.arg("other.py").current_dir(directory.path());
    }
    if let Some(schedule) = &case.schedule {
        let path = directory.path().join(SCRIPT);
        std::fs::write(&path, schedule).map_err(|e| e.to_string())?;
        command.args(["--schedule", SCRIPT]).current_dir(directory.path());
    }
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|e| e.to_string())?;
    // A file is smaller than a pipe, or the command reads it all before it writes.
    let stdin = child.stdin.take();
    let written = stdin.map_or(Ok(()), |mut stdin| stdin.write_all(case.input.as_bytes()));
    // One that refuses its arguments reads nothing.
    let written = written.or_else(|e| match e.kind() {
        std::io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(e),
    });
    let done = child.wait_with_output().map_err(|e| e.to_string())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (stdout, stderr) = (text(done.stdout), text(done.stderr));
    match done.status.code() {
        Some(code @ 0..=3) => {
            written.map_err(|e| e.to_string())?;
            Ok(Run { code, stdout, stderr })
        }
        _ => Err(format!("the command crashed: {}\n{stderr}", done.status)),
    }
}

/// The first lines that differ, with some before them.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    let from = same.saturating_sub(2);
    for line in &old[from..same] {
        let _ = writeln!(text, "    {line}");
    }
    for (mark, lines) in [("-", &old), ("+", &new)] {
        for line in lines.iter().skip(same).take(12) {
            let _ = writeln!(text, "  {mark} {line}");
        }
    }
    text
}
