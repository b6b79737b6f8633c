//! `tilewright verify`: do two modules compute the same outputs for every input?

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use tilewright::analysis::equivalence::equivalent;
use tilewright::interp::symbolic::{self, Options, Verdict};
use tilewright::ir::show::visible;
use tilewright::ir::{Function, Param};
use tilewright::{Module, Sizes, sizes};

use super::diff::write_place;
use super::{Answer, Outcome, read_module, size, talk};

/// Decide whether two modules compute the same outputs for every input: exit code 0 if they do, 1
/// and the first element that differs if not, 3 and the reason if that cannot be said.
///
/// Functions are paired by name, or by being the entries of the modules; parameters by position.
/// Equality is a proof for all data at the shapes of the functions. Sizes that are open are
/// sampled: three sets of small sizes, which a note says. Functions of the same statements, with
/// expressions that are provably equal, are equal at all sizes. What the first module leaves arbitrary
/// may be anything in the second.
#[derive(clap::Args)]
pub struct Arguments {
    /// TVMScript, an ONNX model, or `-` for TVMScript from standard input.
    a: PathBuf,
    /// The same.
    b: PathBuf,
    /// Sums and products of floats count as equal in any order.
    #[arg(long)]
    reassociate: bool,
    /// A size that the modules leave open; may be given several times.
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = size)]
    dims: Vec<(String, usize)>,
    /// Give up after this many expressions and statements.
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
}

/// Sizes that open dimensions take in turn: each set starts elsewhere. None divides another.
const SAMPLES: [usize; 7] = [5, 7, 8, 3, 11, 4, 9];

/// Sets of sizes that are tried where sizes are open.
const SETS: usize = 3;

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let read = |path| read_module(path);
    let (a, b) = (read(&arguments.a)?, read(&arguments.b)?);
    let mut options = Options { reassociate: arguments.reassociate, ..Options::default() };
    options.steps = arguments.steps.unwrap_or(options.steps);
    let given = super::sizes(&arguments.dims)?;
    let mut answer = Answer::Yes;
    for (name_a, name_b) in symbolic::pairs(&a, &b)? {
        let pair = Pair { a: alone(&a, &name_a), b: alone(&b, &name_b), name_a, name_b };
        match pair.execute(&given, &options, out)? {
            Answer::Yes => {}
            Answer::No => return Ok(Answer::No),
            Answer::Undecided => answer = Answer::Undecided,
        }
    }
    Ok(answer)
}

/// A tensor function alone, so that it is the entry; a graph function with what it calls.
fn alone(module: &Module, name: &Arc<str>) -> Module {
    match module.functions.get(name) {
        Some(Function::Tensor(f)) => {
            let mut alone = Module { source: module.source.clone(), ..Module::new() };
            alone.functions.insert(name.clone(), Function::Tensor(f.clone()));
            alone
        }
        _ => module.clone(),
    }
}

struct Pair {
    a: Module,
    b: Module,
    name_a: Arc<str>,
    name_b: Arc<str>,
}

impl Pair {
    fn execute(
        &self,
        given: &BTreeMap<String, usize>,
        options: &Options,
        out: &mut impl Write,
    ) -> Outcome {
        if self.same() {
            talk!("`{}`: the same statements, with equal expressions", self.name_a);
            return Ok(Answer::Yes);
        }
        let (open_a, open_b) = (open(&self.a, &self.name_a), open(&self.b, &self.name_b));
        if open_a != open_b {
            let list = |names: &[Arc<str>]| names.join(", ");
            let text = format!(
                "undecided: `{}`: the open sizes have different names: {} and {}",
                self.name_a,
                list(&open_a),
                list(&open_b)
            );
            writeln!(out, "{}", visible(&text))?;
            return Ok(Answer::Undecided);
        }
        let sampled = open_a.iter().any(|name| !given.contains_key(&**name));
        let mut tried = Vec::new();
        for set in 0..if sampled { SETS } else { 1 } {
            let mut known = Sizes::new();
            let mut text = Vec::new();
            for (i, name) in open_a.iter().enumerate() {
                let sample = SAMPLES.get((set + i) % SAMPLES.len()).copied().unwrap_or(1);
                let size = given.get(&**name).copied().unwrap_or(sample);
                known = known.dim(&**name, size);
                text.push(format!("{name}={size}"));
            }
            let place = match text.is_empty() {
                true => String::new(),
                false => format!(" at {}", text.join(", ")),
            };
            let (a, b) = (sizes::fill(&self.a, &known)?, sizes::fill(&self.b, &known)?);
            let verdict = symbolic::functions(&a, &self.name_a, &b, &self.name_b, options)?;
            match self.report(verdict, &place, out)? {
                Answer::Yes => tried.push(text.join(", ")),
                other => return Ok(other),
            }
        }
        if sampled {
            talk!(
                "note: sizes were sampled, so that this is no proof for others: `{}` is equal at {}",
                self.name_a,
                tried.join("; ")
            );
        }
        Ok(Answer::Yes)
    }

    /// Whether the functions are the same but for expressions that are provably equal; that takes
    /// no running, and holds for all sizes.
    fn same(&self) -> bool {
        let of = |module: &Module, name: &Arc<str>| match module.functions.get(name) {
            Some(Function::Tensor(f)) => Some(f.clone()),
            _ => None,
        };
        match (of(&self.a, &self.name_a), of(&self.b, &self.name_b)) {
            (Some(f), Some(g)) => equivalent(&f, &g).unwrap_or(false),
            _ => false,
        }
    }

    fn report(&self, verdict: Verdict, place: &str, out: &mut impl Write) -> Outcome {
        let name = &self.name_a;
        match verdict {
            Verdict::Equal(proof) => {
                talk!("`{name}`{place}: {} elements are equal for all data", proof.cells);
                for (relied, which) in proof.relied.iter().zip(["first", "second"]) {
                    for text in relied {
                        talk!("note: the {which} module assumes `{text}`");
                    }
                }
                Ok(Answer::Yes)
            }
            Verdict::Differ(d) => {
                let [a, b] = &d.terms;
                let [x, y] = &d.values;
                let mut line = |text: String| writeln!(out, "{}", visible(&text));
                line(format!("`{name}`{place} differs in {}", d.cell))?;
                line(format!("  first:  {a}"))?;
                line(format!("  second: {b}"))?;
                let inputs: Vec<String> =
                    d.inputs.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                match inputs.is_empty() {
                    true => line(format!("  that is {x} and {y}"))?,
                    false => line(format!("  with {}: {x} and {y}", inputs.join(", ")))?,
                }
                Ok(Answer::No)
            }
            Verdict::Undecided(u) => {
                writeln!(out, "{}", visible(&format!("undecided: `{name}`{place}: {}", u.why)))?;
                let module = if u.second == Some(true) { &self.b } else { &self.a };
                write_place(u.span, module.source.as_deref(), out)?;
                Ok(Answer::Undecided)
            }
        }
    }
}

/// The sizes that a function leaves open. Scalars that are no integers are data.
fn open(module: &Module, name: &str) -> Vec<Arc<str>> {
    let mut names = sizes::open(module);
    if let Some(Function::Tensor(f)) = module.functions.get(name) {
        for p in &f.params {
            if let Param::Scalar(v) = p
                && !v.dtype().is_int()
            {
                names.retain(|n| n != v.name());
            }
        }
    }
    names
}
