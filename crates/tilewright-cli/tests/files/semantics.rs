//! What a pass gives computes the same as what it was given.

use tilewright_driver::compare::{Tolerance, compare};
use tilewright_driver::random::Random;
use tilewright_driver::{Sizes, Tensor, parse, print};
use tilewright_graph::sizes;
use tilewright_interp::{
    Arg, Fill, Interpreter, Outcome, Output, RunOptions, State, written_params,
};
use tilewright_ir::{Function, Module, Param, TensorFunc, equal};
use tilewright_verify::Verdict;

use crate::layouts::{Layout, Places};

/// The size of what is open and not said.
const SIZE: usize = 5;
/// Stores and iterations after which a function is given up.
const STEPS: u64 = 20_000_000;
/// A pass may reorder sums where a schedule asks for it.
const TOLERANCE: Tolerance = Tolerance { relative: 1e-5, absolute: 1e-5 };

fn error(e: tilewright_driver::Error) -> String {
    e.render()
}

/// Printed modules read back as what they are.
pub fn round_trips(printed: &str) -> Result<(), String> {
    for part in parts(printed) {
        let module = parse(&part, &Sizes::new()).map_err(error)?;
        let again = print(&module);
        let back = parse(&again, &Sizes::new()).map_err(error)?;
        equal::modules(&module, &back, &equal::Equality::texts())
            .map_err(|d| format!("printed and read again it is another module: {d}"))?;
        if again.trim_end() != part.trim_end() {
            return Err(format!("printed again it is another text:\n{again}"));
        }
    }
    Ok(())
}

/// The modules in what `opt` printed: several with `--print-after-all`.
fn parts(printed: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for line in printed.lines() {
        match (line.starts_with("# after "), parts.last_mut()) {
            (true, Some(last)) if !last.is_empty() => parts.push(String::new()),
            (false, Some(last)) => *last += &format!("{line}\n"),
            _ => {}
        }
    }
    parts
}

/// Runs the input and each module that was printed on the same data.
pub fn computes_the_same(
    input: &str,
    printed: &str,
    given: &[(String, usize)],
    layouts: &[Layout],
) -> Result<(), String> {
    let before = parse(input, &Sizes::new()).map_err(error)?;
    for part in parts(printed) {
        let after = parse(&part, &Sizes::new()).map_err(error)?;
        let mut compared = 0;
        for (name, function) in &before.functions {
            let same = match (function, after.functions.get(name)) {
                (Function::Tensor(_), Some(Function::Tensor(_))) => {
                    tensor(&before, &after, name, given, layouts)
                }
                (Function::Graph(_), Some(Function::Graph(_))) => {
                    graph(&before, &after, name, given)
                }
                // Fusion merges functions; what calls them is compared.
                _ => continue,
            };
            same.map_err(|why| format!("`{name}` is not what it was: {why}"))?;
            compared += 1;
        }
        if compared == 0 {
            return Err("there is no function to compare".to_owned());
        }
    }
    Ok(())
}

/// The function alone, with sizes for all that it leaves open.
fn closed(module: &Module, name: &str, given: &[(String, usize)]) -> Result<Module, String> {
    let mut alone = Module { source: module.source.clone(), ..Module::new() };
    if let Some(Function::Tensor(f)) = module.functions.get(name) {
        alone.functions.insert(name.into(), Function::Tensor(f.clone()));
    } else {
        alone = module.clone();
    }
    let mut known = Sizes::new();
    for open in sizes::open(&alone) {
        let size = given.iter().find(|(n, _)| **n == *open).map_or(SIZE, |(_, size)| *size);
        known = known.dim(&*open, size);
    }
    sizes::fill(&alone, &known).map_err(error)
}

fn options() -> RunOptions {
    RunOptions { fill: Fill::Random(7), steps: Some(STEPS), ..RunOptions::default() }
}

fn tensor(
    before: &Module,
    after: &Module,
    name: &str,
    given: &[(String, usize)],
    layouts: &[Layout],
) -> Result<(), String> {
    let (before, after) = (closed(before, name, given)?, closed(after, name, given)?);
    let of = |module: &Module| module.tensor(name).cloned().map_err(error);
    let (f, g) = (of(&before)?, of(&after)?);
    let mut random = Random::new(1);
    let mut args = Vec::new();
    for p in &f.params {
        let (dtype, shape) = extents(p)?;
        args.push(Arg::Tensor(random.tensor(dtype, &shape).map_err(error)?));
    }
    if layouts.is_empty() {
        symbolic(&before, &after, name)?;
    }
    let old = call(&before, name, &args)?;
    let moved = moved(&f, &g, &old, &mut args, layouts)?;
    let params = g.split_params().0.len();
    if params != args.len() {
        return Err(format!("it has {params} parameters, and had {}", args.len()));
    }
    let mut new = call(&after, name, &args)?;
    // A tensor with states for its elements comes back, written or not.
    let reads = written_params(&g).into_iter().map(|w| !w);
    let only_read: Vec<bool> =
        reads.zip(&moved).map(|(reads, moved)| reads && moved.is_some()).collect();
    new.outputs.retain(|o| only_read.get(o.param) != Some(&true));
    outputs(&f, &old, &new, &moved)
}

/// Puts arguments where the layouts say; for each parameter, how to find its elements there.
fn moved<'a>(
    f: &TensorFunc,
    g: &TensorFunc,
    old: &Outcome,
    args: &mut [Arg],
    layouts: &'a [Layout],
) -> Result<Vec<Option<(&'a Layout, Places)>>, String> {
    let mut moved = Vec::new();
    for (k, (p, q)) in f.params.iter().zip(&g.params).enumerate() {
        let named = |l: &&Layout| p.buffer().is_some_and(|b| *b.name == *l.name);
        let Some(layout) = layouts.iter().find(named) else {
            moved.push(None);
            continue;
        };
        let Arg::Tensor(tensor) = &args[k] else { return Err("an argument of no value".into()) };
        let (shape, written) = (extents(q)?.1, old.outputs.iter().any(|o| o.param == k));
        let places = layout.places(&extents(p)?.1, &shape)?;
        args[k] = layout.moved(tensor, &places, &shape, written)?;
        moved.push(Some((layout, places)));
    }
    Ok(moved)
}

/// Fails where inputs are found for which the results differ. What is undecided is left to data.
fn symbolic(before: &Module, after: &Module, name: &str) -> Result<(), String> {
    // A schedule may ask for another order of a sum.
    let options = tilewright_verify::VerifyOptions {
        reassociate: true,
        terms: 1 << 20,
        steps: STEPS,
        ..tilewright_verify::VerifyOptions::default()
    };
    match tilewright_verify::functions(before, name, after, name, &options).map_err(error)? {
        Verdict::Differ(d) => Err(format!("{d:?}")),
        Verdict::Equal(_) | Verdict::Undecided(_) => Ok(()),
    }
}

fn extents(p: &Param) -> Result<(tilewright_driver::DType, Vec<usize>), String> {
    let buffer = p.buffer().ok_or("a scalar parameter without a value")?;
    let shape = buffer.const_shape().ok_or("a parameter without a constant shape")?;
    let shape = shape.into_iter().map(|d| usize::try_from(d).map_err(|e| e.to_string()));
    Ok((buffer.dtype(), shape.collect::<Result<_, _>>()?))
}

fn call(module: &Module, name: &str, args: &[Arg]) -> Result<Outcome, String> {
    let mut interpreter = Interpreter::new(module, options()).map_err(error)?;
    interpreter.call(name, args).map_err(error)
}

/// Whether every parameter holds the same in the end, where it matters.
fn outputs(
    f: &TensorFunc,
    old: &Outcome,
    new: &Outcome,
    moved: &[Option<(&Layout, Places)>],
) -> Result<(), String> {
    if old.outputs.is_empty() {
        return Err("it writes nothing".to_owned());
    }
    for param in 0..f.params.len() {
        let of = |outcome: &Outcome| outcome.outputs.iter().find(|o| o.param == param).cloned();
        match (of(old), of(new)) {
            (None, None) => {}
            (Some(old), Some(new)) => match moved.get(param) {
                Some(Some((layout, places))) => output(&old, &layout.back(&new, &old, places)?)?,
                _ => output(&old, &new)?,
            },
            (Some(old), None) => return Err(format!("`{}` is not written any more", old.name)),
            (None, Some(new)) => return Err(format!("`{}` is written now", new.name)),
        }
    }
    Ok(())
}

/// Cells that held an arbitrary value may hold any other now.
fn output(old: &Output, new: &Output) -> Result<(), String> {
    let mut got = new.tensor.clone();
    let size = got.dtype().bytes();
    for (i, state) in old.states.iter().flatten().enumerate() {
        if *state != State::Value {
            let at = i * size..(i + 1) * size;
            got.bytes_mut()[at.clone()].copy_from_slice(&old.tensor.bytes()[at]);
        }
    }
    let had = |i: usize| old.states.as_ref().is_none_or(|s| s[i] == State::Value);
    for (i, state) in new.states.iter().flatten().enumerate() {
        if *state != State::Value && had(i) {
            return Err(format!("element {i} of `{}` has no value any more", old.name));
        }
    }
    let comparison = compare(&got, &old.tensor, TOLERANCE);
    if comparison.agrees() { Ok(()) } else { Err(format!("`{}` {comparison}", old.name)) }
}

fn graph(
    before: &Module,
    after: &Module,
    name: &str,
    given: &[(String, usize)],
) -> Result<(), String> {
    let (before, after) = (closed(before, name, given)?, closed(after, name, given)?);
    let mut random = Random::new(1);
    let mut inputs: Vec<Tensor> = Vec::new();
    for p in &before.graph(name).map_err(error)?.params {
        let ty = p.ty().as_tensor().ok_or("a parameter that is no tensor")?;
        let shape = ty.const_shape().ok_or("a parameter without a constant shape")?;
        inputs.push(random.tensor(ty.dtype, &shape).map_err(error)?);
    }
    symbolic(&before, &after, name)?;
    let run = |module: &Module| -> Result<Vec<Output>, String> {
        Interpreter::new(module, options()).and_then(|mut i| i.run(name, &inputs)).map_err(error)
    };
    let (old, new) = (run(&before)?, run(&after)?);
    if old.len() != new.len() {
        return Err(format!("it gives {} tensors, and gave {}", new.len(), old.len()));
    }
    old.iter().zip(&new).try_for_each(|(old, new)| output(old, new))
}
