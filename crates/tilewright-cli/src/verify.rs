//! `tilewright verify`: do two modules compute the same outputs for every input?

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use tilewright::unstable::analysis::equivalence;
use tilewright::unstable::interp::symbolic::{self, Proof, Verdict, VerifyOptions};
use tilewright::unstable::ir::show::{shortened, visible};
use tilewright::unstable::ir::{Function, TensorFunc};
use tilewright::unstable::sizes;
use tilewright::{Error, Module, Sizes};

use super::diff::write_place;
use super::{Answer, Outcome, read_module, size, talk};

/// Decide whether two modules compute the same outputs for every input: exit code 0 if they do, 1
/// and the first element that differs if not, 3 and the reason if that cannot be said.
///
/// Functions are paired by name, or by being the entries of the modules; parameters by position.
/// Equality is a proof for all data at the shapes of the functions, and for all values of scalar
/// parameters. Functions of the same statements, with expressions that are provably equal, are equal
/// at all sizes. Otherwise sizes that are open are tried: 0, 1 and some that do not divide one
/// another. That finds differences, and is no proof: where there is none the answer is undecided, and
/// says which sizes were tried. What the first module leaves arbitrary may be anything in the second.
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

/// Sizes that open dimensions take in turn: each set starts elsewhere. Neighbours do not divide one
/// another.
const SAMPLES: [usize; 7] = [5, 7, 8, 3, 11, 4, 9];

/// Sets of ragged sizes that are tried where sizes are open, after all 0 and all 1.
const RAGGED: usize = 3;

/// The sizes of one try, by the position of the name.
fn tries(names: usize) -> impl Iterator<Item = Vec<usize>> {
    let ragged = move |set: usize| {
        (0..names).map(|i| SAMPLES.get((set + i) % SAMPLES.len()).copied().unwrap_or(1)).collect()
    };
    [vec![0; names], vec![1; names]].into_iter().chain((0..RAGGED).map(ragged))
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let read = |path| read_module(path);
    let (a, b) = (read(&arguments.a)?, read(&arguments.b)?);
    let mut options =
        VerifyOptions { reassociate: arguments.reassociate, ..VerifyOptions::default() };
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
        options: &VerifyOptions,
        out: &mut impl Write,
    ) -> Outcome {
        if self.same(equivalence::equivalent) {
            talk!("`{}`: the same statements, with equal expressions", self.name_a);
            return Ok(Answer::Yes);
        }
        if self.same(equivalence::by_flow) {
            talk!("`{}`: the outputs are the same expressions of the inputs", self.name_a);
            return Ok(Answer::Yes);
        }
        let (open_a, open_b) =
            (sizes::open_in(&self.a, &self.name_a), sizes::open_in(&self.b, &self.name_b));
        if open_a != open_b {
            let list = |names: &[Arc<str>]| names.join(", ");
            let text = format!(
                "undecided: `{}`: the open sizes have different names: {} and {}",
                self.name_a,
                list(&open_a),
                list(&open_b)
            );
            writeln!(out, "{}", visible(&shortened(&text)))?;
            return Ok(Answer::Undecided);
        }
        let left: Vec<Arc<str>> =
            open_a.iter().filter(|name| !given.contains_key(&***name)).cloned().collect();
        let known = given.iter().filter(|(name, _)| open_a.iter().any(|open| **open == ***name));
        let known: Vec<(Arc<str>, usize)> =
            known.map(|(name, size)| (name.as_str().into(), *size)).collect();
        let scalars = sizes::free_scalars(&self.a, &self.name_a);
        let mut why = None;
        if left.iter().all(|name| scalars.contains(name)) {
            match self.compare(&known, options)? {
                // A scalar that the code needs as a number may still be tried.
                Verdict::Undecided(u) if !left.is_empty() => why = Some(u),
                verdict => return self.report(verdict, &place(&known), out),
            }
        }
        let answer = self.sample(&left, &known, options, out)?;
        match why.filter(|_| answer == Answer::Undecided) {
            Some(u) => self.report(Verdict::Undecided(u), " for all sizes", out),
            None => Ok(answer),
        }
    }

    /// Tries sizes for what is open, beside those that are known.
    fn sample(
        &self,
        open: &[Arc<str>],
        known: &[(Arc<str>, usize)],
        options: &VerifyOptions,
        out: &mut impl Write,
    ) -> Outcome {
        let name = &self.name_a;
        let (mut equal, mut undecided, mut illegal) = (Vec::new(), None, Vec::new());
        for sizes in tries(open.len()) {
            let tried: Vec<(Arc<str>, usize)> = open.iter().cloned().zip(sizes).collect();
            let all = [known, &tried].concat();
            match self.compare(&all, options) {
                Ok(Verdict::Equal(proof)) => {
                    assumptions(&proof);
                    equal.push(text(&all));
                }
                Ok(verdict @ Verdict::Differ(_)) => return self.report(verdict, &place(&all), out),
                Ok(Verdict::Undecided(u)) => undecided = undecided.or(Some((u, all))),
                Err(_) if self.is_illegal(&all, options) => illegal.push(text(&all)),
                Err(Error::Execution(why)) => {
                    writeln!(out, "`{name}`{} is illegal in the second module only", place(&all))?;
                    writeln!(out, "  second: {}", why.message)?;
                    return Ok(Answer::No);
                }
                Err(e) => return Err(e.into()),
            }
        }
        if !illegal.is_empty() {
            talk!("note: the first `{name}` is illegal at {}", illegal.join("; "));
        }
        if let Some((u, all)) = undecided {
            return self.report(Verdict::Undecided(u), &place(&all), out);
        }
        // What is equal at the sizes that were tried is legal there.
        if !equal.is_empty() && self.same(equivalence::same_outside) {
            talk!("`{name}`: the same statements outside, with equal expressions");
            return Ok(Answer::Yes);
        }
        match equal.is_empty() {
            true => {
                writeln!(out, "undecided: `{name}`: it is illegal at all sizes that were tried")?
            }
            false => writeln!(
                out,
                "undecided: `{name}` is equal at {}, which proves nothing for other sizes",
                equal.join("; ")
            )?,
        }
        Ok(Answer::Undecided)
    }

    /// Compares at sizes for some of what is open.
    fn compare(
        &self,
        known: &[(Arc<str>, usize)],
        options: &VerifyOptions,
    ) -> tilewright::Result<Verdict> {
        let sizes = known.iter().fold(Sizes::new(), |sizes, (name, n)| sizes.dim(&**name, *n));
        let (a, b) = (sizes::fill(&self.a, &sizes)?, sizes::fill(&self.b, &sizes)?);
        symbolic::functions(&a, &self.name_a, &b, &self.name_b, options)
    }

    /// Whether the first function itself is no program at these sizes.
    fn is_illegal(&self, known: &[(Arc<str>, usize)], options: &VerifyOptions) -> bool {
        let sizes = known.iter().fold(Sizes::new(), |sizes, (name, n)| sizes.dim(&**name, *n));
        let a = sizes::fill(&self.a, &sizes);
        a.and_then(|a| symbolic::functions(&a, &self.name_a, &a, &self.name_a, options)).is_err()
    }

    /// Whether the functions are the same but for expressions that are provably equal; that takes
    /// no running, and holds for all sizes.
    fn same(&self, same: impl Fn(&TensorFunc, &TensorFunc) -> tilewright::Result<bool>) -> bool {
        let of = |module: &Module, name: &Arc<str>| match module.functions.get(name) {
            Some(Function::Tensor(f)) => Some(f.clone()),
            _ => None,
        };
        match (of(&self.a, &self.name_a), of(&self.b, &self.name_b)) {
            (Some(f), Some(g)) => same(&f, &g).unwrap_or(false),
            _ => false,
        }
    }

    fn report(&self, verdict: Verdict, place: &str, out: &mut impl Write) -> Outcome {
        let name = &self.name_a;
        match verdict {
            Verdict::Equal(proof) => {
                talk!("`{name}`{place}: {} elements are equal for all data", proof.cells);
                assumptions(&proof);
                Ok(Answer::Yes)
            }
            Verdict::Differ(d) => {
                let [a, b] = &d.terms;
                let [x, y] = &d.values;
                let mut line = |text: String| writeln!(out, "{}", visible(&shortened(&text)));
                line(format!("`{name}`{place} differs in {}", d.cell))?;
                // What was found by running has no terms.
                if d.terms != d.values {
                    line(format!("  first:  {a}"))?;
                    line(format!("  second: {b}"))?;
                }
                let inputs: Vec<String> =
                    d.inputs.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                match inputs.is_empty() {
                    true => line(format!("  that is {x} and {y}"))?,
                    false => line(format!("  with {}: {x} and {y}", inputs.join(", ")))?,
                }
                Ok(Answer::No)
            }
            Verdict::Undecided(u) => {
                let text = format!("undecided: `{name}`{place}: {}", u.why);
                writeln!(out, "{}", visible(&shortened(&text)))?;
                let module = if u.second == Some(true) { &self.b } else { &self.a };
                write_place(u.span, module.source.as_deref(), out)?;
                Ok(Answer::Undecided)
            }
        }
    }
}

/// Says what a proof relies on.
fn assumptions(proof: &Proof) {
    for (relied, which) in proof.relied.iter().zip(["first", "second"]) {
        for text in relied {
            talk!("note: the {which} module assumes `{text}`");
        }
    }
}

/// `n=5, m=7`.
fn text(sizes: &[(Arc<str>, usize)]) -> String {
    let all: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
    all.join(", ")
}

/// ` at n=5, m=7`, or nothing.
fn place(sizes: &[(Arc<str>, usize)]) -> String {
    match sizes.is_empty() {
        true => String::new(),
        false => format!(" at {}", text(sizes)),
    }
}
