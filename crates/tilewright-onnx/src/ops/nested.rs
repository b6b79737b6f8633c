//! Branches and loops: operators whose graphs are attributes of their nodes.
//!
//! A graph inside of another one sees the values around it. A branch whose condition is known is
//! imported in the place of the node. The shapes of what a loop carries are found by importing its body
//! again and again: an extent that an iteration changes is a size of the body's own.

use std::sync::Arc;

use tilewright_ir::dim::Integer;
use tilewright_ir::list::{ListOp, integer};
use tilewright_ir::{Attrs, DType, Dim, Error, Result, Tensor};
use tilewright_ops::check::Need;
use tilewright_ops::unequal;

use crate::build::{LoopGiven, Nested};
use crate::data;
use crate::extents::checked_shape;
use crate::graphs::{Graphs, Misfit, Rest, Stop};
use crate::imported::{Element, Imported, Kind, Like, RanksDiffer};
use crate::node::{Node, axis};
use crate::operator::{MANY, Operator, graphs};
use crate::ops::check::demand;
use crate::ops::compose::{Compose, ints};
use crate::ops::value;
use crate::proto::{DimensionValue, GraphProto, TypeValue, declared_rank};
use crate::sizes;

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    graphs("If", 7, 1, branches),
    graphs("Loop", 7, MANY, repeat),
    graphs("Scan", 8, MANY, scan),
    graphs("SequenceMap", 17, MANY, map),
];

/// The condition of a loop that nothing ends early.
pub(crate) fn always() -> Result<Imported> {
    Tensor::from_bools(&[], &[true]).map(Imported::Const)
}

/// One `bool` or integer, without axes. That an open extent is one is what a run sees to.
fn scalar(
    importer: &mut dyn Graphs,
    value: &Imported,
    dtype: DType,
    what: &str,
) -> Result<Imported> {
    let (b, shape, single) = (importer.builder(), value.shape(), Dim::from(1));
    let error = || {
        Error::model(format!(
            "the {what} must be one {dtype}, but is {} of shape {shape:?}",
            value.dtype()
        ))
    };
    if value.dtype() != dtype || shape.iter().any(|d| Integer::from(*d).equals(1) == Some(false)) {
        return Err(error());
    }
    if let Some(d) =
        shape.iter().find(|d| **d != 1 && b.depth() == 1 && b.facts.can_take(**d, single))
    {
        return Err(unequal(error(), [(*d, single)]));
    }
    let value = b.with_shape(value, vec![single; shape.len()], None);
    value::reshape_to::<Dim>(b, &value, &[])
}

/// The number of a constant, or of a size that is one.
fn known(value: &Imported) -> Result<Option<i64>> {
    value.constant().map(integer).transpose()
}

/// `If`.
fn branches<'a>(importer: &mut dyn Graphs<'a>, node: &Node<'a>) -> Result<Vec<Imported>, Stop> {
    let graphs @ [yes, no] = [node.graph("then_branch")?, node.graph("else_branch")?];
    let cond = scalar(importer, node.input(0)?, DType::BOOL, "condition")?;
    if let Some(cond) = known(&cond)? {
        return importer.graph(if cond != 0 { yes } else { no }, &[]);
    }
    let (mut then, mut otherwise) = both(importer, node, graphs, &cond, Way::Computed)?;
    let mut results = then.results.iter().zip(&otherwise.results);
    if results.any(|(a, b)| a.rank() != b.rank()) {
        (then, otherwise) = both(importer, node, graphs, &cond, Way::Declared)?;
    }
    match choice(importer, &cond, then, otherwise) {
        Err(Stop::Error(e)) if e.cause::<RanksDiffer>().is_some() => Err(Stop::Apart(cond)),
        results => results,
    }
}

/// An `If` whose branches give values of different ranks: what follows it is imported in each branch. Gives
/// the outputs of the graph around it.
pub(crate) fn branches_apart<'a>(
    importer: &mut dyn Graphs<'a>,
    node: &Node<'a>,
    cond: &Imported,
    rest: Rest<'_>,
) -> Result<Vec<Imported>, Stop> {
    let graphs = [node.graph("then_branch")?, node.graph("else_branch")?];
    let (then, otherwise) = both(importer, node, graphs, cond, Way::WithRest(rest))?;
    choice(importer, cond, then, otherwise)
}

/// The results of two branches, of which a run takes one.
fn choice(
    importer: &mut dyn Graphs,
    cond: &Imported,
    then: Nested,
    otherwise: Nested,
) -> Result<Vec<Imported>, Stop> {
    if then.results.len() != otherwise.results.len() {
        return Err(Stop::Error(Error::model(format!(
            "the branches give {} and {} values",
            then.results.len(),
            otherwise.results.len()
        ))));
    }
    let kinds = then.results.iter().zip(&otherwise.results).map(|(a, b)| {
        let (a, b) = (
            Like::new(a).outside(|d| then.is_outside(d)),
            Like::new(b).outside(|d| otherwise.is_outside(d)),
        );
        a.join(&b).map_err(|e| e.context("the branches give"))
    });
    let kinds = kinds.collect::<Result<Vec<_>>>()?;
    Ok(importer.builder().branches(cond, then, otherwise, &kinds)?)
}

/// How a branch is imported.
#[derive(Clone, Copy)]
enum Way<'r> {
    /// Results have the ranks of their values.
    Computed,
    /// Results of one element have the rank that the file declares, where it does: files exist whose branches
    /// give a scalar and a vector of one element, and call both a scalar.
    Declared,
    /// With what follows the node.
    WithRest(Rest<'r>),
}

/// Both branches. Where one of them cannot be computed, it ends the run that chooses it.
fn both<'a>(
    importer: &mut dyn Graphs<'a>,
    node: &Node<'a>,
    [then, otherwise]: [&'a GraphProto; 2],
    cond: &Imported,
    way: Way<'_>,
) -> Result<(Nested, Nested), Stop> {
    let then = branch(importer, then, way)?;
    Ok(match (then, branch(importer, otherwise, way)?) {
        (Ok(then), Ok(otherwise)) => (then, otherwise),
        (Ok(then), Err(why)) => {
            let otherwise = unreachable(importer, node, cond, ("else_branch", &why), &then)?;
            (then, otherwise)
        }
        (Err(why), Ok(otherwise)) => {
            let then = unreachable(importer, node, cond, ("then_branch", &why), &otherwise)?;
            (then, otherwise)
        }
        (Err(why), Err(_)) => return Err(why.into()),
    })
}

/// Results of a graph, with those of one element in the rank that the graph declares.
fn declared(
    importer: &mut dyn Graphs,
    graph: &GraphProto,
    results: Vec<Imported>,
) -> Result<Vec<Imported>> {
    let results = results.into_iter().zip(&graph.output);
    results
        .map(|(value, info)| match (&value, declared_rank(info)) {
            (Imported::Const(_) | Imported::Sizes(_) | Imported::Var { .. }, Some(rank))
                if value.shape().iter().all(|d| *d == 1) =>
            {
                value::reshape_to::<Dim>(importer.builder(), &value, &vec![1.into(); rank])
            }
            _ => Ok(value),
        })
        .collect()
}

/// A branch; or why its operators cannot take what they are given, at sizes at which a run may never
/// choose it.
fn branch<'a>(
    importer: &mut dyn Graphs<'a>,
    graph: &'a GraphProto,
    way: Way<'_>,
) -> Result<Result<Nested, Error>, Stop> {
    let depth = importer.builder().depth();
    importer.builder().open_body();
    let results = match way {
        Way::Computed => importer.graph(graph, &[]),
        Way::Declared => importer
            .graph(graph, &[])
            .and_then(|results| declared(importer, graph, results).map_err(Stop::Error)),
        Way::WithRest(rest) => importer.graph_and_rest(graph, &rest),
    };
    match results {
        Ok(results) => Ok(Ok(importer.builder().close_body(&results)?)),
        Err(stop) => {
            importer.builder().drop_bodies(depth);
            match stop {
                Stop::Error(e) if e.cause::<Misfit>().is_some() => Ok(Err(e)),
                stop => Err(stop),
            }
        }
    }
}

/// A branch that ends the run with the reason why it cannot be computed, in place of values like those of
/// the other one.
fn unreachable(
    importer: &mut dyn Graphs,
    node: &Node,
    cond: &Imported,
    (name, why): (&str, &Error),
    other: &Nested,
) -> Result<Nested> {
    importer.builder().open_body();
    let why = format!("chooses the `{name}`, which cannot be computed: {why}");
    let flag = Compose::new(node, importer.builder()).cast(cond, DType::I64)?;
    let need = Need::Never(why.clone());
    let never = demand(node, importer.builder(), "condition", &flag, &need)?;
    let mut results = Vec::new();
    for value in &other.results {
        let Like { kind: Kind::Tensor, element } =
            Like::new(value).outside(|d| other.is_outside(d))
        else {
            return Err(Error::model(format!("the condition {why}")));
        };
        let mut c = Compose::new(node, importer.builder());
        let value = c.cast(&never, value.dtype())?;
        let shape = element.shape.unwrap_or_default().into_iter();
        let shape: Vec<Dim> = shape.map(|d| d.unwrap_or_else(|| 1.into())).collect();
        results.push(c.expand(&value, &shape)?);
    }
    importer.builder().close_body(&results)
}

/// A loop: how often, whether at all, and what is carried.
#[derive(Clone)]
pub(crate) struct Repeat {
    /// How often at most.
    pub(crate) trip: Option<Imported>,
    /// Whether at all.
    pub(crate) cond: Option<Imported>,
    /// The first values of what is carried.
    pub(crate) carried: Vec<Imported>,
}

/// What a body is, and what it gives: whether to go on, what is carried, and what is stacked.
pub(crate) type Given = (Imported, Vec<Imported>, Vec<Imported>);

/// Imports a loop whose body `make` gives for the number of the iteration and the carried values.
pub(crate) fn looped<'a>(
    importer: &mut dyn Graphs<'a>,
    given: Repeat,
    mut make: impl FnMut(&mut dyn Graphs<'a>, &Imported, &[Imported]) -> Result<Given, Stop>,
) -> Result<Vec<Imported>, Stop> {
    let Repeat { trip, cond, carried } = given;
    let number = Like { kind: Kind::Tensor, element: Element::scalar(DType::I64) };
    let mut kinds: Vec<Like> = carried.iter().map(Like::new).collect();
    let (params, body, stacked, goes_on) = loop {
        importer.builder().open_body();
        importer.builder().hint = "iteration".to_owned();
        let all: Vec<Like> = [number.clone()].into_iter().chain(kinds.iter().cloned()).collect();
        let (vars, values) = importer.builder().params(&all);
        let (go, next, stacked) = make(importer, &values[0], &values[1..])?;
        if next.len() != kinds.len() {
            return Err(Stop::Error(Error::model(format!(
                "the loop carries {} values, and its body gives {}",
                kinds.len(),
                next.len()
            ))));
        }
        let go = scalar(importer, &go, DType::BOOL, "condition");
        let results: Vec<Imported> =
            [go?].into_iter().chain(next.iter().cloned()).chain(stacked.clone()).collect();
        let goes_on = known(&results[0])? == Some(1);
        let body = importer.builder().close_body(&results)?;
        // What an iteration changes is not known in the next one.
        let mut joined = Vec::with_capacity(kinds.len());
        for (kind, next) in kinds.iter().zip(&next) {
            let next = Like::new(next).outside(|d| body.is_outside(d));
            joined.push(kind.join(&next).map_err(|e| e.context("the loop carries"))?);
        }
        if joined == kinds {
            break (vars, body, stacked, goes_on);
        }
        kinds = joined;
    };
    // The loop runs as often as is said where nothing ends it before.
    let always = goes_on && cond.as_ref().is_none_or(|c| matches!(known(c), Ok(Some(1))));
    let count = match (&trip, always) {
        (Some(Imported::Sizes(s)), true) => s.values.first().and_then(|v| v.dim()),
        (Some(trip), true) => known(trip)?.map(|n| Dim::from(usize::try_from(n).unwrap_or(0))),
        _ => None,
    };
    for value in &stacked {
        let mut like = Like::new(value).outside(|d| body.is_outside(d));
        match &mut like {
            Like { kind: Kind::Tensor, element: Element { shape: Some(shape), .. } } => {
                shape.insert(0, count);
            }
            _ => return Err(Stop::Error(Error::unsupported("a loop that stacks sequences"))),
        }
        kinds.push(like);
    }
    let cond = cond.filter(|c| !matches!(known(c), Ok(Some(1))));
    let given = LoopGiven { trip, cond, carried, params };
    Ok(importer.builder().graph_loop(given, body, &kinds)?)
}

/// `Loop`.
fn repeat<'a>(importer: &mut dyn Graphs<'a>, node: &Node<'a>) -> Result<Vec<Imported>, Stop> {
    let graph = node.graph("body")?;
    let mut optional = |at: usize, dtype: DType, what: &str| {
        node.optional(at).cloned().map(|v| scalar(importer, &v, dtype, what)).transpose()
    };
    let trip = optional(0, DType::I64, "number of iterations")?;
    let cond = optional(1, DType::BOOL, "condition")?;
    let n = node.listed().0.saturating_sub(2);
    let carried: Vec<Imported> =
        (2..2 + n).map(|at| node.input(at).cloned()).collect::<Result<_>>()?;
    if let Some(name) = never_runs(importer, node)? {
        return Err(Stop::Fix(vec![name]));
    }
    if [&trip, &cond].into_iter().flatten().any(|v| matches!(known(v), Ok(Some(..1)))) {
        return without_iterations(node, graph, carried);
    }
    let depth = importer.builder().depth();
    let given = Repeat { trip, cond, carried };
    if let Some(results) = unrolled(importer, graph, &given)? {
        return Ok(results);
    }
    let again = given.clone();
    match looped(importer, given, |importer, at, carried| iterate(importer, graph, at, carried)) {
        Err(Stop::Error(e)) if e.cause::<RanksDiffer>().is_some() => {
            importer.builder().drop_bodies(depth);
            first_apart(importer, node, graph, again)
        }
        results => results,
    }
}

/// Most iterations of a loop that are imported one after the other.
const MOST_UNROLLED: i64 = 16;

/// A `Loop` of a few iterations that carries sequences, and stacks nothing: its iterations one after the other, so
/// that what the sequences hold is known after it. `None` for others.
fn unrolled<'a>(
    importer: &mut dyn Graphs<'a>,
    graph: &'a GraphProto,
    given: &Repeat,
) -> Result<Option<Vec<Imported>>, Stop> {
    let is_list =
        |v: &Imported| matches!(v, Imported::Item { what: Like { kind: Kind::List, .. }, .. });
    let trip = given.trip.as_ref().map(known).transpose()?.flatten();
    let Some(count) = trip.filter(|n| *n <= MOST_UNROLLED) else { return Ok(None) };
    let starts = given.cond.as_ref().is_none_or(|c| matches!(known(c), Ok(Some(1))));
    let stacks = graph.output.len() > given.carried.len() + 1;
    if !starts || stacks || !given.carried.iter().any(is_list) {
        return Ok(None);
    }
    // What a trial adds is dropped: where some condition is not known, no check of an iteration may stay.
    let depth = importer.builder().depth();
    importer.builder().open_body();
    let trial = iterated(importer, graph, given, count);
    importer.builder().drop_bodies(depth);
    if !matches!(trial, Ok(Some(_))) {
        return Ok(None);
    }
    iterated(importer, graph, given, count)
}

/// What is carried after at most so many iterations; `None` where it is not known whether one goes on.
fn iterated<'a>(
    importer: &mut dyn Graphs<'a>,
    graph: &'a GraphProto,
    given: &Repeat,
    count: i64,
) -> Result<Option<Vec<Imported>>, Stop> {
    let mut carried = given.carried.clone();
    for at in 0..count {
        let at = Imported::Const(Tensor::from_slice(&[], &[at])?);
        let (go, next, _) = iterate(importer, graph, &at, &carried)?;
        carried = next;
        match known(&scalar(importer, &go, DType::BOOL, "condition")?)? {
            None => return Ok(None),
            Some(0) => break,
            Some(_) => {}
        }
    }
    Ok(Some(carried))
}

/// An input that says that a `Loop` has no iteration, and is not known yet: what is stacked has another shape
/// then.
fn never_runs(importer: &mut dyn Graphs, node: &Node) -> Result<Option<Arc<str>>> {
    for value in [node.optional(0), node.optional(1)].into_iter().flatten() {
        if let Some((name, given)) = importer.given(value)
            && given.len() == 1
            && integer(&given)? < 1
        {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// What a `Loop` without any iteration gives: what it starts with, and nothing stacked, as large as the body
/// declares its parts. An extent that is not declared is zero, and so is all of one without a shape.
fn without_iterations(
    node: &Node,
    graph: &GraphProto,
    mut results: Vec<Imported>,
) -> Result<Vec<Imported>, Stop> {
    let stacked = graph.output.iter().skip(results.len() + 1);
    for info in stacked.take(node.output_count().saturating_sub(results.len())) {
        let Some(TypeValue::Tensor(ty)) = info.r#type.as_ref().and_then(|t| t.value.as_ref())
        else {
            let error = format!("the body does not declare the type of `{}`", info.name);
            return Err(Error::model(error).into());
        };
        let dims = ty.shape.iter().flat_map(|shape| &shape.dim);
        let extents = dims.map(|d| match d.value {
            Some(DimensionValue::Value(n)) => n,
            _ => 0,
        });
        let shape: Vec<i64> = [0].into_iter().chain(extents).collect();
        let shape = checked_shape(&shape)?;
        let empty = Tensor::zeros(data::element_type(ty.elem_type)?, &shape)?;
        results.push(Imported::Const(empty));
    }
    Ok(results)
}

/// One iteration of the body of a `Loop`.
fn iterate<'a>(
    importer: &mut dyn Graphs<'a>,
    graph: &'a GraphProto,
    iteration: &Imported,
    carried: &[Imported],
) -> Result<Given, Stop> {
    // The body runs only where the condition is true.
    let go = always()?;
    let n = carried.len();
    let inputs: Vec<Imported> =
        [iteration.clone(), go].into_iter().chain(carried.iter().cloned()).collect();
    let mut results = importer.graph(graph, &inputs)?;
    if results.len() <= n {
        return Err(Stop::Error(Error::model(format!(
            "the loop carries {n} values, and its body gives {} outputs",
            results.len()
        ))));
    }
    let stacked = results.split_off(n + 1);
    let next = results.split_off(1);
    Ok((results.swap_remove(0), next, stacked))
}

/// A `Loop` whose first iteration gives values of another number of dimensions than those that it starts
/// with: that iteration by itself, and a loop of the others. A run without any iteration ends, since the
/// results would have another number of dimensions.
fn first_apart<'a>(
    importer: &mut dyn Graphs<'a>,
    node: &Node<'a>,
    graph: &'a GraphProto,
    given: Repeat,
) -> Result<Vec<Imported>, Stop> {
    let Repeat { trip, cond, carried } = given;
    let n = carried.len();
    let one = |at: i64| Tensor::from_slice(&[], &[at]).map(Imported::Const);
    let least = |least: i64, most: i64| Need::Within(vec![(least.into(), most.into())]);
    let trip = match trip {
        None => None,
        Some(trip) => {
            let what = "number of iterations";
            let trip = demand(node, importer.builder(), what, &trip, &least(1, i64::MAX))?;
            Some(Compose::new(node, importer.builder()).op("Sub", &[&trip, &one(1)?])?)
        }
    };
    let (go, mut next, first) = iterate(importer, graph, &one(0)?, &carried)?;
    let mut go = scalar(importer, &go, DType::BOOL, "condition")?;
    let mut c = Compose::new(node, importer.builder());
    if let Some(cond) = cond.filter(|c| !matches!(known(c), Ok(Some(1)))) {
        let cond = c.cast(&cond, DType::I64)?;
        let cond = demand(node, c.b, "condition of the first iteration", &cond, &least(1, 1))?;
        let cond = c.cast(&cond, DType::BOOL)?;
        go = c.op("And", &[&go, &cond])?;
    }
    let front = Imported::Const(Tensor::from_slice(&[1], &[0i64])?);
    let first = first.iter().map(|v| c.op("Unsqueeze", &[v, &front]));
    let first = first.collect::<Result<Vec<_>>>()?;
    if known(&go)? == Some(0) {
        next.extend(first);
        return Ok(next);
    }
    let given = Repeat { trip, cond: Some(go), carried: next };
    let mut results = looped(importer, given, |importer, iteration, carried| {
        let mut c = Compose::new(node, importer.builder());
        let iteration = c.op("Add", &[iteration, &one(1)?])?;
        iterate(importer, graph, &iteration, carried)
    })?;
    let mut c = Compose::new(node, importer.builder());
    for (first, rest) in first.iter().zip(&mut results[n..]) {
        *rest = c.concat(&[first, rest], 0)?;
    }
    Ok(results)
}

/// A list of attributes with one number for each of `count` values.
fn each(node: &Node, name: &'static str, count: usize) -> Result<Vec<i64>> {
    let list = node.ints(name)?.unwrap_or_else(|| vec![0; count]);
    if list.len() == count {
        Ok(list)
    } else {
        Err(Error::model(format!("attribute `{name}` has {} numbers, not {count}", list.len())))
    }
}

/// What a `Scan` goes over, and where its results lie.
struct Scan<'a> {
    graph: &'a GraphProto,
    axes: Vec<i64>,
    backward: Vec<i64>,
    out_axes: Vec<i64>,
    out_backward: Vec<i64>,
}

fn scan<'a>(importer: &mut dyn Graphs<'a>, node: &Node<'a>) -> Result<Vec<Imported>, Stop> {
    let graph = node.graph("body")?;
    // The oldest form has the lengths of the sequences first.
    let batched = node.opset < 9;
    if batched && node.optional(0).is_some() {
        return Err(Stop::Error(
            Error::unsupported("sequences of different lengths are not supported")
                .note("they are input 0 before opset 9"),
        ));
    }
    let inputs: Vec<Imported> = (usize::from(batched)..node.input_count())
        .map(|at| node.input(at).cloned())
        .collect::<Result<_>>()?;
    let scanned = node.int("num_scan_inputs")?.and_then(|n| usize::try_from(n).ok());
    let Some(states) = scanned.filter(|n| *n > 0).and_then(|n| inputs.len().checked_sub(n)) else {
        return Err(Stop::Error(Error::model(format!(
            "attribute `num_scan_inputs` does not fit {} inputs",
            inputs.len()
        ))));
    };
    let (states, over) = inputs.split_at(states);
    let outputs = graph.output.len().checked_sub(states.len()).ok_or_else(|| {
        let (given, states) = (graph.output.len(), states.len());
        Error::model(format!("the body gives {given} values for {states} states"))
    })?;
    if !batched {
        let scan = Scan {
            graph,
            axes: each(node, "scan_input_axes", over.len())?,
            backward: each(node, "scan_input_directions", over.len())?,
            out_axes: each(node, "scan_output_axes", outputs)?,
            out_backward: each(node, "scan_output_directions", outputs)?,
        };
        return scanned_over(importer, node, &scan, states, over);
    }
    let scan = Scan {
        graph,
        axes: vec![0; over.len()],
        backward: each(node, "directions", over.len())?,
        out_axes: vec![0; outputs],
        out_backward: vec![0; outputs],
    };
    // Each sample by itself.
    let batch: Vec<Dim> = inputs.iter().filter_map(|x| x.shape().first().copied()).collect();
    if batch.len() != inputs.len() || batch.iter().any(|d| *d != batch[0]) {
        return Err(Stop::Error(Error::model(
            "the inputs do not have one batch as their first axis",
        )));
    }
    let trip = sizes::value(&[], vec![batch[0].into()], DType::I64)?;
    let given = Repeat { trip: Some(trip), cond: None, carried: Vec::new() };
    looped(importer, given, |importer, sample, _| {
        let mut c = Compose::new(node, importer.builder());

        let mut own = Vec::new();
        for x in &inputs {
            own.push(c.with("Gather", &[x, sample], [crate::ops::compose::int("axis", 0)])?);
        }
        let (states, over) = own.split_at(states.len());
        let results = scanned_over(importer, node, &scan, states, over)?;
        let go = always()?;
        Ok((go, Vec::new(), results))
    })
}

/// The states after the last step, and what the steps gave.
fn scanned_over<'a>(
    importer: &mut dyn Graphs<'a>,
    node: &Node<'a>,
    scan: &Scan<'a>,
    states: &[Imported],
    over: &[Imported],
) -> Result<Vec<Imported>, Stop> {
    let axes: Vec<usize> =
        scan.axes.iter().zip(over).map(|(a, x)| axis(*a, x.rank())).collect::<Result<_>>()?;
    let lengths: Vec<Dim> = over.iter().zip(&axes).map(|(x, a)| x.shape()[*a]).collect();
    let length = lengths[0];
    let error =
        || Error::model(format!("the inputs are scanned over different lengths: {lengths:?}"));
    if lengths.iter().any(|l| Integer::from(*l).equals(length) == Some(false)) {
        return Err(Stop::Error(error()));
    }
    let b = importer.builder();
    let is_other = |l: &&Dim| **l != length && b.depth() == 1 && b.facts.can_take(**l, length);
    if let Some(l) = lengths.iter().find(is_other) {
        return Err(Stop::Error(unequal(error(), [(*l, length)])));
    }
    let trip = sizes::value(&[], vec![length.into()], DType::I64)?;
    let given = Repeat { trip: Some(trip), cond: None, carried: states.to_vec() };
    let results = looped(importer, given, |importer, iteration, carried| {
        let mut inputs = carried.to_vec();
        for ((x, axis), backward) in over.iter().zip(&axes).zip(&scan.backward) {
            let mut c = Compose::new(node, importer.builder());
            let at = match backward {
                0 => iteration.clone(),
                _ => c.counted_back(length, iteration)?,
            };
            let axis = crate::ops::compose::int("axis", *axis as i64);
            inputs.push(c.with("Gather", &[x, &at], [axis])?);
        }
        let mut results = importer.graph(scan.graph, &inputs)?;
        let stacked = results.split_off(states.len().min(results.len()));
        let go = always()?;
        Ok((go, results, stacked))
    })?;
    let (last, stacked) = results.split_at(states.len());
    let mut all = last.to_vec();
    let places = scan.out_axes.iter().zip(&scan.out_backward);
    for (value, (along, backward)) in stacked.iter().zip(places) {
        let mut c = Compose::new(node, importer.builder());
        let mut value = value.clone();
        if *backward != 0 {
            value = c.reversed(&value)?;
        }
        let along = axis(*along, value.rank())?;
        let mut order: Vec<i64> = (1..value.rank() as i64).collect();
        order.insert(along, 0);
        if along > 0 {
            value = c.with("Transpose", &[&value], [ints("perm", &order)])?;
        }
        all.push(value);
    }
    Ok(all)
}

/// `SequenceMap`.
fn map<'a>(importer: &mut dyn Graphs<'a>, node: &Node<'a>) -> Result<Vec<Imported>, Stop> {
    let graph = node.graph("body")?;
    let inputs = node.all_inputs()?;
    let Some(Imported::Item { what: Like { kind: Kind::List, .. }, .. }) = inputs.first() else {
        return Err(Stop::Error(Error::model("the first input is no sequence")));
    };
    let none = Attrs::new();
    let number = Element::scalar(DType::I64);
    let builder = importer.builder();
    let trip = builder.out_of_list(ListOp::Length, &inputs[..1], none.clone(), &number)?;
    let carried = graph
        .output
        .iter()
        .map(|_| builder.list(ListOp::Of, &[], none.clone(), Kind::List, Element::default()))
        .collect::<Result<Vec<_>>>()?;
    let given = Repeat { trip: Some(trip), cond: None, carried };
    looped(importer, given, |importer, iteration, carried| {
        let mut elements = Vec::new();
        for input in &inputs {
            elements.push(match input {
                Imported::Item { what: Like { kind: Kind::List, element }, .. } => {
                    let args = [input.clone(), iteration.clone()];
                    importer.builder().out_of_list(ListOp::At, &args, Attrs::new(), element)?
                }
                tensor => tensor.clone(),
            });
        }
        let results = importer.graph(graph, &elements)?;
        let mut next = Vec::new();
        for (list, value) in carried.iter().zip(results) {
            let Imported::Item { what, .. } = list else {
                return Err(Stop::Error(Error::internal("no list is carried")));
            };
            let element = what.element.join(&Element::from_value(&value))?;
            let args = [list.clone(), value];
            let (op, attrs) = (ListOp::Insert, Attrs::new());
            next.push(importer.builder().list(op, &args, attrs, Kind::List, element)?);
        }
        let go = always()?;
        Ok((go, next, Vec::new()))
    })
}
