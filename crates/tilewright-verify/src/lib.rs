//! Whether two functions give the same outputs for every input, at constant shapes.
//!
//! Both run on symbols: every element of an input is one, every variable that nothing defines is one
//! for its name, and every element of an output becomes a term over them. Terms are stored once, so
//! that equal ones are recognised at once; they are normalised only by what holds for all data. So
//! *equal* is a proof for all inputs at the shapes of the functions. *Different* always comes with
//! inputs for which the interpreter's arithmetic gives different results. Everything else is
//! *undecided*, with its reason.
//!
//! What is compared is every parameter of a tensor function after the call, its scalar result, and
//! the results of a graph function. Where the first function leaves an arbitrary value (`T.undef()`,
//! or memory that was never written) the second may have anything; the other way round it is a
//! difference. A pure expression of an arbitrary value is arbitrary. Assumptions of both functions
//! count as promises about the inputs, and a proof names those that it depends on. What stops a
//! program for some data only (an integer division by zero) is no part of the comparison.
//!
//! ```
//! use tilewright_verify::{VerifyOptions, Verdict, functions};
//! # use tilewright_ir::{Buffer, DType, Expr, Module, Param, Stmt, TensorFunc, Var};
//! # let make = |n: i32, step: i32| {
//! #     let (a, b) = (
//! #         Buffer::with_extents("A", &[6], DType::F32),
//! #         Buffer::with_extents("B", &[6], DType::F32),
//! #     );
//! #     let (i, j) = (Var::index("i"), Var::index("j"));
//! #     let at = i.expr() * i64::from(step) + j.expr();
//! #     let body = Stmt::store(&b, vec![at.clone()], a.load([at]) * 2.0);
//! #     let body = Stmt::serial(&i, Expr::i32(n), Stmt::serial(&j, Expr::i32(step), body));
//! #     let mut module = Module::new();
//! #     module.insert("f", TensorFunc::new(vec![Param::tensor(&a), Param::tensor(&b)], body));
//! #     module
//! # };
//! // `for i, j in T.grid(3, 2): B[2 * i + j] = A[2 * i + j] * 2`, and with 2 times 3.
//! let (a, b) = (make(3, 2), make(2, 3));
//! let verdict = functions(&a, "f", &b, "f", &VerifyOptions::default())?;
//! assert!(matches!(verdict, Verdict::Equal(_)));
//! # Ok::<(), tilewright_ir::Error>(())
//! ```

use std::rc::Rc;
use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::well_formed::check_open_module;
use tilewright_ir::{DType, Error, Function, GraphType, Module, Param, Result, phases};

mod canon;
mod forms;
mod graph;
mod path;
mod prove;
mod ranges;
mod run;
mod sample;
mod term;
mod verdict;
mod witness;

use canon::Canon;
use graph::{SymbolicValue, run_graph, scratch};
use path::Integers;
use prove::Prover;
use run::{Argument, Cells, Shared, Stop, is_data, run};
use term::{Fast, Term, Terms, Val, Wrong, free};
use tilewright_interp::Uninitialised;
use verdict::Port;
pub use verdict::{Difference, Proof, Undecided, Verdict, VerifyOptions};

/// Pairs of terms for which a witness is sought.
const SOUGHT: usize = 512;

/// Steps and terms of the first try, after which data are tried before more are spent.
const FIRST: (u64, usize) = (500_000, 1 << 17);

/// Assumptions on the inputs that a proof may use beyond values of cells.
const PROMISES: usize = 8;

fn undecided(why: impl Into<String>) -> Verdict {
    Verdict::Undecided(Undecided { why: why.into(), second: None, span: None })
}

/// Which functions of two modules are to be compared.
///
/// Graph functions by their names, where there are any; else tensor functions by their names; else
/// the entries of both modules.
///
/// # Errors
/// [`Error::Input`] if a function of the first module has no partner.
pub fn pairs(a: &Module, b: &Module) -> Result<Vec<(Arc<str>, Arc<str>)>> {
    let graphs = a.graphs().next().is_some() && b.graphs().next().is_some();
    let (left, right) = (names_of(a, graphs), names_of(b, graphs));
    let both: Vec<_> =
        left.iter().filter(|n| right.contains(n)).map(|n| (n.clone(), n.clone())).collect();
    if both.is_empty() {
        if let ([a], [b]) = (left.as_slice(), right.as_slice()) {
            return Ok(vec![(a.clone(), b.clone())]);
        }
        return Ok(vec![(a.entry()?.clone(), b.entry()?.clone())]);
    }
    match left.iter().find(|n| !right.contains(n)) {
        Some(name) => Err(Error::input(format!("the second module has no function `{name}`"))),
        None => Ok(both),
    }
}

fn names_of(m: &Module, graphs: bool) -> Vec<Arc<str>> {
    let all = m.functions.iter();
    let all = all.filter(|(_, f)| matches!(f, Function::Graph(_)) == graphs);
    all.map(|(n, _)| n.clone()).collect()
}

/// Whether two functions give the same outputs for every input.
///
/// # Errors
/// [`Error::Input`] where the functions do not take the same parameters; [`Error::Execution`] where
/// one of them does something illegal whatever the inputs are; [`Error::Malformed`] where a module
/// breaks a rule of the IR.
pub fn functions(
    a: &Module,
    name_a: &str,
    b: &Module,
    name_b: &str,
    options: &VerifyOptions,
) -> Result<Verdict> {
    check_open_module(a)?;
    check_open_module(b)?;
    let (a, b) = (&without_barriers(a)?, &without_barriers(b)?);
    let (Some(left), Some(right)) = (ports(a, name_a)?, ports(b, name_b)?) else {
        return Ok(undecided("a size of the interface is open, or a parameter is no tensor"));
    };
    if let Some(verdict) = interfaces(&left, &right)? {
        return Ok(verdict);
    }
    let sides = [(a, name_a), (b, name_b)];
    let (steps, terms) = FIRST;
    let first = VerifyOptions {
        steps: options.steps.min(steps),
        terms: options.terms.min(terms),
        ..options.clone()
    };
    let verdict = on_symbols(sides, &left, &first)?;
    if !options.samples || !matches!(verdict, Verdict::Undecided(_)) {
        return Ok(verdict);
    }
    if let Some(found) = sample::find(sides[0], sides[1], &left, options) {
        return Ok(Verdict::Differ(Box::new(found)));
    }
    if options.steps > steps || options.terms > terms {
        on_symbols(sides, &left, options)
    } else {
        Ok(verdict)
    }
}

/// A module whose functions are cut at barriers into phases.
fn without_barriers(module: &Module) -> Result<Module> {
    let mut all = module.clone();
    for (name, function) in &mut all.functions {
        let Function::Tensor(f) = function else { continue };
        let cut = phases::split(f).map_err(|e| e.context(format!("function `{name}`")));
        if let Some(cut) = cut.map_err(|e| with_source(module, e))? {
            *f = cut.into();
        }
    }
    Ok(all)
}

/// Compares the terms of all outputs; `left` are the parameters.
fn on_symbols(
    functions: [(&Module, &str); 2],
    left: &[Port],
    options: &VerifyOptions,
) -> Result<Verdict> {
    let names = left.iter().map(|p| (p.name.to_string(), p.shape.clone().unwrap_or_default()));
    let mut shared = Shared {
        terms: Terms::new(options.terms),
        integers: Integers::new(options.steps, options.sets),
        steps: options.steps,
        memory: options.memory,
        fresh: match options.uninitialised {
            Uninitialised::Refuse => Terms::unwritten(),
            Uninitialised::Undef => Terms::undef(),
        },
        constraints: Vec::new(),
        assumed: Fast::default(),
        relied: Vec::new(),
        names: names.collect(),
        free: HashMap::default(),
    };
    let mut inputs = Vec::new();
    for (i, p) in left.iter().enumerate() {
        match symbols(&mut shared, i, p) {
            Some(cells) => inputs.push(cells),
            None => return Ok(undecided(format!("parameter `{}` is too large", p.name))),
        }
    }
    let mut sides = Vec::new();
    let mut relied = [Vec::new(), Vec::new()];
    for (second, (m, name)) in [false, true].into_iter().zip(functions) {
        match side(&mut shared, m, name, &inputs) {
            Ok(outputs) => sides.push(outputs),
            Err(Stop::Error(e)) => return Err(with_source(m, e)),
            Err(Stop::Undecided(why, span)) => {
                return Ok(Verdict::Undecided(Undecided { why, second: Some(second), span }));
            }
        }
        relied[usize::from(second)] = std::mem::take(&mut shared.relied);
    }
    let (Some(second), Some(first)) = (sides.pop(), sides.pop()) else {
        return Err(Error::internal("two sides that are not two"));
    };
    let compare = Compare { shared, options, relied };
    Ok(match compare.outputs(&first, &second) {
        Ok(verdict) => verdict,
        Err(Wrong::Full) => undecided("the programs need more terms than are allowed"),
        Err(Wrong::Fault(f)) => undecided(f.text()),
    })
}

fn with_source(m: &Module, e: Error) -> Error {
    match &m.source {
        Some(source) => e.in_source(source),
        None => e,
    }
}

/// The parameters of a function without scratch memory; `None` where one is open or no tensor.
fn ports(m: &Module, name: &str) -> Result<Option<Vec<Port>>> {
    match m.functions.get(name) {
        Some(Function::Tensor(f)) => {
            let ports = f.split_params().0.iter().map(|p| match p {
                Param::Scalar(v) => {
                    Some(Port { name: v.name().clone(), dtype: v.dtype(), shape: None })
                }
                Param::Buffer { buffer: b, .. } => {
                    let shape = Some(known_shape(b.const_shape())?);
                    Some(Port { name: b.name.clone(), dtype: b.dtype(), shape })
                }
            });
            Ok(ports.collect())
        }
        Some(Function::Graph(f)) => {
            let ports = f.params.iter().map(|p| match p.ty() {
                GraphType::Tensor(t) => {
                    let shape = Some(t.const_shape()?);
                    Some(Port { name: p.name().clone(), dtype: t.dtype, shape })
                }
                _ => None,
            });
            Ok(ports.collect())
        }
        None => Err(Error::input(format!("the module has no function `{name}`"))),
    }
}

fn known_shape(shape: Option<Vec<i64>>) -> Option<Vec<usize>> {
    shape?.into_iter().map(|n| usize::try_from(n).ok()).collect()
}

/// Whether the parameters fit each other.
fn interfaces(left: &[Port], right: &[Port]) -> Result<Option<Verdict>> {
    if left.len() != right.len() {
        let (n, m) = (left.len(), right.len());
        return Err(Error::input(format!("the functions have {n} and {m} parameters")));
    }
    for (i, (a, b)) in left.iter().zip(right).enumerate() {
        if a.dtype != b.dtype || a.shape.is_some() != b.shape.is_some() {
            let e = format!("parameter {i} is {} and {}", kind_text(a), kind_text(b));
            return Err(Error::input(e));
        }
        if !is_data(a.dtype) {
            return Ok(Some(undecided(format!("parameter `{}` is {}", a.name, a.dtype))));
        }
        if let (Some(n), Some(m)) = (&a.shape, &b.shape)
            && n != m
        {
            let e =
                format!("the interfaces differ: parameter `{}` has shape {n:?} and {m:?}", a.name);
            return Ok(Some(undecided(e)));
        }
    }
    Ok(None)
}

fn kind_text(p: &Port) -> String {
    match p.shape {
        Some(_) => format!("a tensor of {}", p.dtype),
        None => format!("a {} scalar", p.dtype),
    }
}

/// The symbols of a parameter.
fn symbols(shared: &mut Shared, param: usize, p: &Port) -> Option<Cells> {
    let shape = p.shape.clone().unwrap_or_default();
    let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
    let param = u32::try_from(param).ok()?;
    let mut cells = Vec::new();
    if count > shared.memory || count > shared.terms.room() {
        return None;
    }
    for at in 0..u32::try_from(count).ok()? {
        cells.push(shared.terms.input(param, at, p.dtype).ok()?);
    }
    Some(Cells { dtype: p.dtype, shape, cells: Rc::new(cells) })
}

/// One output, by name.
type Outputs = Vec<(String, Cells)>;

/// Runs one function.
fn side(shared: &mut Shared, m: &Module, name: &str, inputs: &[Cells]) -> run::Ran<Outputs> {
    match m.functions.get(name) {
        Some(Function::Tensor(f)) => {
            let mut args = Vec::new();
            for (i, p) in f.params.iter().enumerate() {
                args.push(match (p, inputs.get(i)) {
                    (Param::Scalar(_), Some(c)) => {
                        Argument::Scalar(c.cells.first().copied().unwrap_or_else(Terms::undef))
                    }
                    (Param::Buffer { .. }, Some(c)) => Argument::Cells(c.clone()),
                    (_, None) => scratch(shared, p)?,
                });
            }
            let (cells, ret) = run(shared, f, &args)?;
            let buffers = f.buffers().map(|b| format!("`{}`", b.name));
            let mut outputs: Outputs = buffers.zip(cells).collect();
            outputs
                .truncate(inputs.len() - f.params.iter().filter(|p| p.buffer().is_none()).count());
            if let (Some(dtype), Some(v)) = (f.ret, ret) {
                let cells = Cells { dtype, shape: Vec::new(), cells: Rc::new(vec![v]) };
                outputs.push(("the result".to_owned(), cells));
            }
            Ok(outputs)
        }
        Some(Function::Graph(f)) => {
            let args = inputs.iter().cloned().map(SymbolicValue::Cells).collect();
            let value = run_graph(shared, m, f, args, 0)?;
            let mut cells = Vec::new();
            value.flatten(&mut cells);
            let only = cells.len() == 1;
            Ok(cells.into_iter().enumerate().map(|(i, c)| (result_name(i, only), c)).collect())
        }
        None => run::undecided(format!("there is no function `{name}`")),
    }
}

fn result_name(i: usize, only: bool) -> String {
    if only { "the result".to_owned() } else { format!("result {i}") }
}

/// Comparing the outputs of both sides.
struct Compare<'o> {
    shared: Shared,
    options: &'o VerifyOptions,
    relied: [Vec<String>; 2],
}

impl Compare<'_> {
    fn outputs(mut self, first: &Outputs, second: &Outputs) -> Result<Verdict, Wrong> {
        if first.len() != second.len() {
            let (n, m) = (first.len(), second.len());
            return Ok(undecided(format!("the interfaces differ: {n} and {m} results")));
        }
        let mut cells = 0;
        // Cells of which the terms are not the same: output, position, terms.
        let mut open: Vec<(usize, usize, Term, Term)> = Vec::new();
        for (output, ((name, a), (_, b))) in first.iter().zip(second).enumerate() {
            if a.dtype != b.dtype || a.shape != b.shape {
                return Ok(undecided(format!("the interfaces differ: type or shape of {name}")));
            }
            cells += a.cells.len();
            for (at, (x, y)) in a.cells.iter().zip(b.cells.iter()).enumerate() {
                if x != y && !free(&self.shared.terms, *x) {
                    let x = self.shared.terms.term(*x, a.dtype)?;
                    let y = self.shared.terms.term(*y, a.dtype)?;
                    open.push((output, at, x, y));
                }
            }
        }
        let roots: Vec<Term> = open.iter().flat_map(|(_, _, x, y)| [*x, *y]).collect();
        let Shared { terms, assumed, .. } = &mut self.shared;
        let mut canon = Canon::new(terms, self.options.reassociate, assumed);
        canon.prepare(&roots)?;
        let formed: Vec<(Val, Val)> = open
            .iter()
            .map(|(_, _, x, y)| (canon.get(Val::Term(*x)), canon.get(Val::Term(*y))))
            .collect();
        let mut differ: Vec<(usize, usize, Term, Term)> = Vec::new();
        let mut hints = Vec::new();
        for ((output, at, x, y), (a, b)) in open.into_iter().zip(formed) {
            let Shared { terms, steps, integers, constraints, .. } = &mut self.shared;
            let mut prover = Prover::new(terms, self.options.reassociate, steps, integers);
            constraints.iter().take(PROMISES).for_each(|c| prover.assume(*c));
            if !prover.prove(a, b)? {
                hints.push(prover.hints);
                differ.push((output, at, x, y));
                if differ.len() >= SOUGHT {
                    break;
                }
            }
        }
        let Some(&(output, at, x, y)) = differ.first() else {
            let terms = self.shared.terms.len();
            return Ok(Verdict::Equal(Proof { cells, terms, relied: self.relied }));
        };
        let dtype = |output: usize| first.get(output).map_or(DType::VOID, |(_, c)| c.dtype);
        let sought: Vec<(Term, Term, DType)> =
            differ.iter().map(|(o, _, x, y)| (*x, *y, dtype(*o))).collect();
        let given = witness::Given {
            constraints: &self.shared.constraints,
            assumed: &self.shared.assumed,
            hints: &hints,
        };
        let found = witness::find(&self.shared.terms, &sought, &given, self.options.reassociate);
        let Some(found) = found else {
            let (a, b) = (self.term_text(x, dtype(output)), self.term_text(y, dtype(output)));
            return Ok(undecided(format!(
                "{} is `{a}` and `{b}`, which could not be shown equal, and no inputs were found that tell them apart",
                cell_name(output, at, first)
            )));
        };
        let Some(&(output, at, x, y)) = differ.get(found.pair) else {
            return Ok(undecided("a witness for nothing"));
        };
        let of = dtype(output);
        let inputs = found.inputs.iter().take(8).map(|(t, bits)| {
            let dtype = self.shared.terms.dtype(*t);
            (
                self.term_text(*t, dtype),
                tilewright_ir::scalar::Scalar::from_bits(*bits, dtype).to_string(),
            )
        });
        Ok(Verdict::Differ(Box::new(Difference {
            cell: cell_name(output, at, first),
            terms: [self.term_text(x, of), self.term_text(y, of)],
            values: [worth_text(found.values.0, of), worth_text(found.values.1, of)],
            inputs: inputs.collect(),
        })))
    }

    fn term_text(&self, t: Term, dtype: DType) -> String {
        witness::text(&self.shared.terms, self.shared.terms.val(t), dtype, &self.shared.names)
    }
}

fn cell_name(output: usize, at: usize, first: &[(String, Cells)]) -> String {
    match first.get(output) {
        Some((name, c)) => format!("{name}{}", witness::index_text(at, &c.shape)),
        None => String::new(),
    }
}

fn worth_text(w: witness::Worth, of: DType) -> String {
    match w {
        witness::Worth::Bits(bits) => {
            tilewright_ir::scalar::Scalar::from_bits(bits, of).to_string()
        }
        _ => "any value".to_owned(),
    }
}
