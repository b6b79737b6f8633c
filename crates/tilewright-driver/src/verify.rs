//! Do two modules compute the same outputs for every input? What `tilewright verify` and
//! `Module.verify` of Python answer.

use std::cell::OnceCell;
use std::fmt::Write;
use std::sync::Arc;

use tilewright_analysis::equivalence;
use tilewright_graph::control::{initialise_empty, mark_empty};
use tilewright_graph::normal::needed_ids;
use tilewright_graph::sizes;
use tilewright_ir::dim::SizeRange;
use tilewright_ir::show::{shortened, visible};
use tilewright_ir::{
    CallTarget, Error, ExprKind, Function, GraphFunc, GraphVar, Intrin, Module, Result, Source,
    Span, TensorFunc,
};
use tilewright_verify::{Difference, Proof, Verdict, VerifyOptions};

use crate::Sizes;
use crate::congruence::{self, Congruence};
use crate::side_by_side::{Seen, run_both};
use crate::values;

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// They do.
    Equal,
    /// They do not.
    Differ,
    /// That cannot be said.
    Undecided,
}

/// What comparing found.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The answer.
    pub answer: Answer,
    /// What shows that they differ, or why there is no answer; empty where they are equal.
    pub text: String,
    /// How it was proved, and what the proof relies on.
    pub notes: Vec<String>,
    /// The first element that differs.
    pub difference: Option<Difference>,
}

/// What is said on the way.
#[derive(Default)]
struct Findings {
    text: String,
    notes: Vec<String>,
    difference: Option<Difference>,
}

impl Findings {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{}", visible(&shortened(text)));
    }

    fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// The first line of what a span covers.
    fn place(&mut self, span: Option<Span>, source: Option<&Source>) {
        let (Some(span), Some(source)) = (span, source) else { return };
        let (line, column, excerpt) = source.excerpt(span);
        let _ = writeln!(self.text, "  --> {}:{line}:{column}", visible(&source.name));
        let _ = writeln!(self.text, "{line:4} | {}", excerpt.text);
    }
}

/// Compares two modules. Functions are paired by name, or by being the entries of the modules;
/// parameters by position. `given` are sizes that the modules leave open, and the ranges of others:
/// then the answer is for the sizes in the ranges.
///
/// # Errors
/// [`Error::Input`] where functions cannot be paired; those of running the first module, where it is
/// illegal.
pub fn verify(a: &Module, b: &Module, given: &Sizes, options: &VerifyOptions) -> Result<Verified> {
    let reassociate = options.reassociate || options.reals;
    let options = &VerifyOptions { reassociate, ..options.clone() };
    let mut findings = Findings::default();
    let mut answer = Answer::Equal;
    // What is reduced over nothing is what the reduction begins with.
    let [a, b] = &[a, b].map(|module| initialise_empty(&mark_empty(module)));
    for (name_a, name_b) in tilewright_verify::pairs(a, b)? {
        let [a, b] = [(a, &name_a), (b, &name_b)].map(|(module, name)| {
            let alone = alone(module, name);
            let open = sizes::open_in(&alone, name);
            let ranges = given.ranges.iter().filter(|(key, _)| open.iter().any(|n| **n == **key));
            let ranges = ranges.map(|(key, range)| (key.clone(), *range)).collect();
            sizes::fill(&alone, &Sizes { ranges, ..Sizes::new() })
        });
        let (a, b) = (a?, b?);
        let (a, b) = (read_alone(&a, &name_a, &b, &name_b), read_alone(&b, &name_b, &a, &name_a));
        let (a, left_a) = a;
        let (b, left_b) = b;
        for (left, which) in [(left_a, "first"), (left_b, "second")] {
            if let [first, ..] = &left[..] {
                let n = left.len();
                findings.note(format!("note: nothing reads {n} parameters of the {which} `{name_a}` that the other one has not: `{first}`"));
            }
        }
        let pair = Pair { a, b, name_a, name_b };
        match pair.execute(given, options, &mut findings)? {
            Answer::Equal => {}
            Answer::Differ => {
                answer = Answer::Differ;
                break;
            }
            Answer::Undecided => answer = Answer::Undecided,
        }
    }
    let Findings { text, notes, difference } = findings;
    Ok(Verified { answer, text, notes, difference })
}

/// Sizes that open dimensions take in turn: each set starts elsewhere. Neighbours do not divide one
/// another.
const SAMPLES: [usize; 7] = [5, 7, 8, 3, 11, 4, 9];

/// Sets of ragged sizes that are tried where sizes are open, after all 0 and all 1.
const RAGGED: usize = 3;

/// Most sizes that are compared one by one because ranges are given.
const MOST_CASES: usize = 1024;

/// The sizes of one try, by the position of the name. Those with a range stay in it: at its ends, and
/// between them.
fn tries(ranges: &[Option<SizeRange>]) -> impl Iterator<Item = Vec<usize>> {
    let least = ranges.iter().map(|range| range.map_or(0, |r| r.next(r.least()))).collect();
    // A size in the thousands takes long.
    let most = ranges.iter().map(|range| range.map_or(1, |r| r.next(r.most().min(r.least() + 63))));
    [least, most.collect()].into_iter().chain((0..RAGGED).map(|set| ragged(ranges, set)))
}

fn ragged(ranges: &[Option<SizeRange>], set: usize) -> Vec<usize> {
    ranges
        .iter()
        .enumerate()
        .map(|(i, range)| match *range {
            Some(range) => size_inside(range, set + i),
            None => sample_of(set + i),
        })
        .collect()
}

fn sample_of(k: usize) -> usize {
    SAMPLES.get(k % SAMPLES.len()).copied().unwrap_or(1)
}

fn size_inside(range: SizeRange, k: usize) -> usize {
    range.next(range.least() + sample_of(k) % (range.most() - range.least() + 1))
}

/// All sizes of ranges, if they are few.
fn all_sizes(ranges: &[Option<SizeRange>]) -> Option<Vec<Vec<usize>>> {
    let mut all = vec![Vec::new()];
    for range in ranges {
        let range = (*range)?;
        let sizes = (range.least()..=range.most()).filter(|n| range.contains(*n));
        if sizes.clone().count().checked_mul(all.len())? > MOST_CASES {
            return None;
        }
        all = all
            .iter()
            .flat_map(|tried| sizes.clone().map(|n| [tried.as_slice(), &[n]].concat()))
            .collect();
    }
    Some(all)
}

/// A tensor function alone, so that it is the entry; a graph function with what it calls.
fn alone(module: &Module, name: &Arc<str>) -> Module {
    match module.functions.get(name) {
        Some(Function::Tensor(f)) => module.alone(name, f),
        _ => module.clone(),
    }
}

/// A module whose graph function does not take parameters that nothing reads, and that the function of the
/// other module does not have; and their names. Savers of models leave such behind.
fn read_alone(
    module: &Module,
    name: &Arc<str>,
    other: &Module,
    name_of_other: &Arc<str>,
) -> (Module, Vec<Arc<str>>) {
    let (Some(Function::Graph(f)), Some(Function::Graph(g))) =
        (module.functions.get(name), other.functions.get(name_of_other))
    else {
        return (module.clone(), Vec::new());
    };
    if f.params.len() <= g.params.len() {
        return (module.clone(), Vec::new());
    }
    let read = needed_ids(f.bindings().map(|b| &b.value).chain([&f.ret]));
    let (kept, left): (Vec<GraphVar>, Vec<GraphVar>) = f.params.iter().cloned().partition(|p| {
        let is_fixed = p.ty().as_tensor().is_some_and(|t| t.const_shape().is_some());
        read.contains(&p.id()) || !is_fixed || g.params.iter().any(|q| q.name() == p.name())
    });
    let mut module = module.clone();
    module.insert(name.clone(), GraphFunc { params: kept, ..(**f).clone() });
    (module, left.iter().map(|p| p.name().clone()).collect())
}

/// Where floats are real numbers: by how much of the larger one values may differ because of rounding.
const NEAR: f64 = 1e-3;

/// Beyond so many stored elements, both models are run where calls are seen to be unlike: groups of calls take longer to
/// compare. Below, terms show what differs, unless floats are real numbers.
const EARLY: u64 = 20_000;

/// Beyond so many stored elements, both models are run before terms are compared.
const SOON: u64 = 500_000;

/// Most steps of comparing a group of calls where an answer for the reals only saves time.
const FEW_STEPS: u64 = 20_000;

/// Most steps of comparing terms of what is equal in the reals, or is to be.
const MOST_IN_REALS: u64 = 10_000_000;

struct Pair {
    a: Module,
    b: Module,
    name_a: Arc<str>,
    name_b: Arc<str>,
}

impl Pair {
    fn execute(
        &self,
        given: &Sizes,
        options: &VerifyOptions,
        findings: &mut Findings,
    ) -> Result<Answer> {
        let name = &self.name_a;
        let sides = [(&self.a, &**name), (&self.b, &*self.name_b)];
        let seen = OnceCell::new();
        let run = || seen.get_or_init(|| self.run(given)).as_ref();
        let mut differ =
            |stores| (options.reals || stores > EARLY) && matches!(run(), Some(Seen::Apart { .. }));
        let open = match congruence::compare(sides[0], sides[1], options, &mut differ)? {
            Some(Congruence::Refuted) => {
                self.say(run(), findings);
                return Ok(Answer::Differ);
            }
            Some(Congruence::Equal { calls, groups, rounding }) => {
                let but = match groups {
                    0 => String::new(),
                    n => format!(
                        ", {n} of them with those before them as the same expressions of what these read"
                    ),
                };
                let within = match rounding {
                    None => String::new(),
                    Some(part) => format!(
                        " in the reals, where constants that differ by at most {part:.1e} of the larger one count as one number"
                    ),
                };
                findings.note(format!(
                    "`{name}`: all {calls} calls give equal values{within}, call by call{but}"
                ));
                if rounding.is_some() {
                    self.say(run(), findings);
                }
                return Ok(Answer::Equal);
            }
            Some(Congruence::Open { results, stores, unlike }) => Some((results, stores, unlike)),
            None => None,
        };
        let Some((results, stores, unlike)) = open else {
            return self.decide(given, options, findings);
        };
        // What is equal in the reals differs by rounding at most, of which terms seldom say more than that.
        let in_reals = !options.reals && self.is_equal_in_reals(sides, options)?;
        if in_reals {
            findings.note(format!("note: `{name}`: in the reals they are equal, see `--real`"));
        }
        // A run says soon whether models differ much. With floats as real numbers nothing else shows that they do: a
        // witness may be one of rounding.
        let is_first = !in_reals && stores > SOON || options.reals;
        let near = if is_first { self.say(run(), findings) } else { None };
        if near == Some(false) {
            return Ok(Answer::Differ);
        }
        // What would not end is not begun.
        let mut answer = if stores > options.steps {
            findings.line(&format!(
                    "undecided: `{name}`: element by element there are {stores} values to compare, more than the {} steps that are allowed",
                    options.steps
                ));
            Answer::Undecided
        } else {
            // Terms are seldom equal in the reals where calls are not.
            let is_short = options.reals || in_reals;
            let steps = if is_short { options.steps.min(MOST_IN_REALS) } else { options.steps };
            self.decide(given, &VerifyOptions { steps, ..options.clone() }, findings)?
        };
        let is_left = answer == Answer::Undecided && !is_first && !in_reals;
        if is_left && self.say(run(), findings) == Some(false) {
            return Ok(Answer::Differ);
        }
        if answer == Answer::Differ && options.reals && near == Some(true) {
            findings.text.clear();
            findings.difference = None;
            findings.line(&format!(
                "undecided: `{name}`: as floats the results differ, on random data by no more than rounding may"
            ));
            answer = Answer::Undecided;
        }
        if answer == Answer::Undecided {
            let results: Vec<String> = results.iter().map(ToString::to_string).collect();
            let results = results.join(", ");
            findings.note(format!(
                "note: `{name}`: call by call, these results are not seen to be equal: {results}"
            ));
            if let Some(unlike) = unlike {
                findings.note(format!("note: `{name}`: {unlike}"));
            }
        }
        Ok(answer)
    }

    /// Whether they are equal call by call where floats are real numbers.
    fn is_equal_in_reals(
        &self,
        [a, b]: [(&Module, &str); 2],
        options: &VerifyOptions,
    ) -> Result<bool> {
        let steps = options.steps.min(FEW_STEPS);
        let options = VerifyOptions { reals: true, reassociate: true, steps, ..options.clone() };
        let compared = congruence::compare(a, b, &options, &mut |_| false)?;
        Ok(matches!(compared, Some(Congruence::Equal { .. })))
    }

    /// Runs both on random data, where that is possible.
    fn run(&self, given: &Sizes) -> Option<Seen> {
        let open = sizes::open_in(&self.a, &self.name_a);
        let ranges: Vec<Option<SizeRange>> =
            open.iter().map(|name| given.ranges.get(&**name).copied()).collect();
        // Not all sizes are legal for each model.
        let all = (0..RAGGED).map(|set| ragged(&ranges, set)).chain(tries(&ranges).nth(1));
        all.take(if open.is_empty() { 1 } else { usize::MAX }).find_map(|tried| {
            let tried = open.iter().zip(tried).fold(Sizes::new(), |sizes, (name, n)| {
                sizes.dim(&**name, given.dims.get(&**name).copied().unwrap_or(n))
            });
            let (a, b) = (sizes::fill(&self.a, &tried).ok()?, sizes::fill(&self.b, &tried).ok()?);
            run_both(&a, &b)
        })
    }

    /// Says what a run of both showed: whether they differ by no more than rounding may.
    fn say(&self, seen: Option<&Seen>, findings: &mut Findings) -> Option<bool> {
        let name = &self.name_a;
        match seen? {
            Seen::Near(part) => {
                findings.note(format!(
                    "note: `{name}`: compiled and run on random data, results differ by at most {part:.1e} of their largest element"
                ));
                Some(true)
            }
            Seen::Apart { cell, values } => {
                findings.text.clear();
                let [x, y] = values;
                findings.line(&format!("`{name}` differs in {cell}"));
                findings.line(&format!("  that is {x} and {y}"));
                let (cell, terms, values) = (cell.clone(), values.clone(), values.clone());
                findings.difference = Some(Difference { cell, terms, values, inputs: Vec::new() });
                Some(false)
            }
        }
    }

    /// Compares the functions as wholes.
    fn decide(
        &self,
        given: &Sizes,
        options: &VerifyOptions,
        findings: &mut Findings,
    ) -> Result<Answer> {
        if self.same(equivalence::equivalent) {
            findings
                .note(format!("`{}`: the same statements, with equal expressions", self.name_a));
            return Ok(Answer::Equal);
        }
        if self.is_small_with_bits() {
            match self.compare(&[], options)? {
                Verdict::Undecided(_) => {}
                verdict => return self.report(verdict, "", options, findings),
            }
        }
        if self.same(equivalence::by_flow) {
            findings.note(format!(
                "`{}`: the outputs are the same expressions of the inputs",
                self.name_a
            ));
            return Ok(Answer::Equal);
        }
        let (open_a, open_b) =
            (sizes::open_in(&self.a, &self.name_a), sizes::open_in(&self.b, &self.name_b));
        if open_a != open_b {
            let text = format!(
                "undecided: `{}`: the open sizes have different names: {} and {}",
                self.name_a,
                open_a.join(", "),
                open_b.join(", ")
            );
            findings.line(&text);
            return Ok(Answer::Undecided);
        }
        let left: Vec<Arc<str>> =
            open_a.iter().filter(|name| !given.dims.contains_key(&***name)).cloned().collect();
        let known =
            given.dims.iter().filter(|(name, _)| open_a.iter().any(|open| **open == ***name));
        let known: Vec<(Arc<str>, usize)> =
            known.map(|(name, size)| (name.as_str().into(), *size)).collect();
        let scalars = sizes::free_scalars(&self.a, &self.name_a);
        let mut why = None;
        if left.iter().all(|name| scalars.contains(name)) {
            match self.compare(&known, options)? {
                // A scalar that the code needs as a number may still be tried.
                Verdict::Undecided(u) if !left.is_empty() => why = Some(u),
                verdict => return self.report(verdict, &place(&known), options, findings),
            }
        }
        let ranges: Vec<Option<SizeRange>> =
            left.iter().map(|name| given.ranges.get(&**name).copied()).collect();
        if let Some(all) = all_sizes(&ranges).filter(|_| !ranges.is_empty())
            && self.is_equal_at(&left, all, &known, options, findings)
        {
            let within = left.iter().zip(ranges.iter().flatten());
            let within: Vec<String> = within.map(|(n, range)| format!("{n}={range}")).collect();
            findings.note(format!(
                "`{}`: equal at every size of {}, each compared by itself",
                self.name_a,
                within.join(", ")
            ));
            return Ok(Answer::Equal);
        }
        let answer = self.sample(&left, &ranges, &known, options, findings)?;
        match why.filter(|_| answer == Answer::Undecided) {
            Some(u) => self.report(Verdict::Undecided(u), " for all sizes", options, findings),
            None => Ok(answer),
        }
    }

    /// Whether the functions are equal at each of these sizes. Where that is not so, trying a few says
    /// why.
    fn is_equal_at(
        &self,
        open: &[Arc<str>],
        all: Vec<Vec<usize>>,
        known: &[(Arc<str>, usize)],
        options: &VerifyOptions,
        findings: &mut Findings,
    ) -> bool {
        all.into_iter().all(|sizes| {
            let tried: Vec<(Arc<str>, usize)> = open.iter().cloned().zip(sizes).collect();
            match self.compare(&[known, &tried].concat(), options) {
                Ok(Verdict::Equal(proof)) => {
                    assumptions(&proof, findings);
                    true
                }
                _ => false,
            }
        })
    }

    /// Tries sizes for what is open, beside those that are known.
    fn sample(
        &self,
        open: &[Arc<str>],
        ranges: &[Option<SizeRange>],
        known: &[(Arc<str>, usize)],
        options: &VerifyOptions,
        findings: &mut Findings,
    ) -> Result<Answer> {
        let name = &self.name_a;
        let (mut equal, mut undecided, mut illegal) = (Vec::new(), None, Vec::new());
        for sizes in tries(ranges) {
            let tried: Vec<(Arc<str>, usize)> = open.iter().cloned().zip(sizes).collect();
            let all = [known, &tried].concat();
            match self.compare(&all, options) {
                Ok(Verdict::Equal(proof)) => {
                    assumptions(&proof, findings);
                    equal.push(text(&all));
                }
                Ok(verdict @ Verdict::Differ(_)) => {
                    return self.report(verdict, &place(&all), options, findings);
                }
                Ok(Verdict::Undecided(u)) => undecided = undecided.or(Some((u, all))),
                Err(_) if self.is_illegal(&all, options) => illegal.push(text(&all)),
                Err(Error::Execution(why)) => {
                    let place = place(&all);
                    findings.line(&format!("`{name}`{place} is illegal in the second module only"));
                    findings.line(&format!("  second: {}", why.message));
                    return Ok(Answer::Differ);
                }
                Err(e) => return Err(e),
            }
        }
        if !illegal.is_empty() {
            findings.note(format!("note: the first `{name}` is illegal at {}", illegal.join("; ")));
        }
        if let Some((u, all)) = undecided {
            return self.report(Verdict::Undecided(u), &place(&all), options, findings);
        }
        // What is equal at the sizes that were tried is legal there.
        if !equal.is_empty() && self.same(equivalence::same_outside) {
            findings.note(format!("`{name}`: the same statements outside, with equal expressions"));
            return Ok(Answer::Equal);
        }
        if equal.is_empty() {
            findings
                .line(&format!("undecided: `{name}`: it is illegal at all sizes that were tried"))
        } else {
            findings.line(&format!(
                "undecided: `{name}` is equal at {}, which proves nothing for other sizes",
                equal.join("; ")
            ))
        }
        Ok(Answer::Undecided)
    }

    /// Whether these are tensor functions of few elements with operations on bits. Their digits make
    /// questions about flow long, while their elements are compared at once.
    fn is_small_with_bits(&self) -> bool {
        const FEW: u64 = 50_000;
        let sides = [(&self.a, &self.name_a), (&self.b, &self.name_b)];
        let funcs = sides.map(|(module, name)| match module.functions.get(name) {
            Some(Function::Tensor(f)) if sizes::open_in(module, name).is_empty() => Some(f),
            _ => None,
        });
        let [Some(f), Some(g)] = funcs else { return false };
        let has_bits = [f, g].iter().any(|f| {
            f.body.any_expr(|e| match e.kind() {
                ExprKind::Call(CallTarget::Intrin(op), _) => {
                    matches!(op, Intrin::BitAnd | Intrin::BitOr | Intrin::BitXor)
                        && e.dtype().is_int()
                }
                _ => false,
            })
        });
        has_bits && values::stores(f).saturating_add(values::stores(g)) <= FEW
    }

    /// Compares at sizes for some of what is open.
    fn compare(&self, known: &[(Arc<str>, usize)], options: &VerifyOptions) -> Result<Verdict> {
        let sizes = known.iter().fold(Sizes::new(), |sizes, (name, n)| sizes.dim(&**name, *n));
        let (a, b) = (sizes::fill(&self.a, &sizes)?, sizes::fill(&self.b, &sizes)?);
        tilewright_verify::functions(&a, &self.name_a, &b, &self.name_b, options)
    }

    /// Whether the first function itself is no program at these sizes.
    fn is_illegal(&self, known: &[(Arc<str>, usize)], options: &VerifyOptions) -> bool {
        let sizes = known.iter().fold(Sizes::new(), |sizes, (name, n)| sizes.dim(&**name, *n));
        let a = sizes::fill(&self.a, &sizes);
        a.and_then(|a| tilewright_verify::functions(&a, &self.name_a, &a, &self.name_a, options))
            .is_err()
    }

    /// Whether the functions are the same but for expressions that are provably equal; that takes
    /// no running, and holds for all sizes.
    fn same(&self, same: impl Fn(&TensorFunc, &TensorFunc) -> bool) -> bool {
        match (tensor_func_of(&self.a, &self.name_a), tensor_func_of(&self.b, &self.name_b)) {
            (Some(f), Some(g)) => same(&f, &g),
            _ => false,
        }
    }

    /// Whether two values are so near that in the reals they may be one.
    fn is_rounding(&self, values: &[String; 2], options: &VerifyOptions) -> bool {
        let [Ok(x), Ok(y)] = [0, 1].map(|k| values[k].parse::<f64>()) else { return false };
        options.reals && (x - y).abs() <= NEAR * x.abs().max(y.abs()).max(NEAR)
    }

    fn report(
        &self,
        verdict: Verdict,
        place: &str,
        options: &VerifyOptions,
        findings: &mut Findings,
    ) -> Result<Answer> {
        let name = &self.name_a;
        match verdict {
            Verdict::Equal(proof) => {
                findings.note(format!(
                    "`{name}`{place}: {} elements are equal for all data",
                    proof.cells
                ));
                assumptions(&proof, findings);
                Ok(Answer::Equal)
            }
            Verdict::Differ(d) if self.is_rounding(&d.values, options) => {
                let [x, y] = &d.values;
                findings.line(&format!(
                    "undecided: `{name}`{place} differs in {}, {x} and {y}, as rounding may",
                    d.cell
                ));
                Ok(Answer::Undecided)
            }
            Verdict::Differ(d) => {
                let [a, b] = &d.terms;
                let [x, y] = &d.values;
                findings.line(&format!("`{name}`{place} differs in {}", d.cell));
                // What was found by running has no terms.
                if d.terms != d.values {
                    findings.line(&format!("  first:  {a}"));
                    findings.line(&format!("  second: {b}"));
                }
                let inputs: Vec<String> =
                    d.inputs.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                if inputs.is_empty() {
                    findings.line(&format!("  that is {x} and {y}"))
                } else {
                    findings.line(&format!("  with {}: {x} and {y}", inputs.join(", ")))
                }
                findings.difference = Some(*d);
                Ok(Answer::Differ)
            }
            Verdict::Undecided(u) => {
                findings.line(&format!("undecided: `{name}`{place}: {}", u.why));
                let module = if u.second == Some(true) { &self.b } else { &self.a };
                findings.place(u.span, module.source.as_deref());
                Ok(Answer::Undecided)
            }
        }
    }
}

fn tensor_func_of(module: &Module, name: &str) -> Option<Arc<TensorFunc>> {
    match module.functions.get(name) {
        Some(Function::Tensor(f)) => Some(f.clone()),
        _ => None,
    }
}

/// Says what a proof relies on.
fn assumptions(proof: &Proof, findings: &mut Findings) {
    for (relied, which) in proof.relied.iter().zip(["first", "second"]) {
        for text in relied {
            findings.note(format!("note: the {which} module assumes `{text}`"));
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
    if sizes.is_empty() { String::new() } else { format!(" at {}", text(sizes)) }
}
