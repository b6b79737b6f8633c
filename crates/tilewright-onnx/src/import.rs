//! From a decoded model to a module: node by node, in an order in which each finds its inputs.
//!
//! Every size is a number or an expression of open sizes by the time that a node is looked at: the
//! inputs' sizes are settled first ([`crate::dims`]), and what follows from them is computed on the way.
//! A value is a constant, integers that are known but for open sizes, or a variable of the graph
//! function; a node with constants only becomes a constant.
//! Nodes that no output needs are not looked at.
//!
//! Where something must be known that depends on the values of inputs, and these were given, they
//! become constants of the model, and the import starts again. Where two sizes must be equal for an
//! operator, of which the model leaves one open, it starts again with one in the place of the other;
//! what runs the module checks that the inputs have such shapes.

mod apart;
mod equal;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::control::SIZE_REASONS;
use tilewright_ir::dim::{self, SizeRange};
use tilewright_ir::signature::{ValueKind, ValueType};
use tilewright_ir::{Attr, Attrs, DType, Error, GraphVar, Module, Result, Tensor};

use self::equal::with_equal;
use crate::build::{Budget, Builder, Plain, name_list};
use crate::data;
use crate::dims;
use crate::extents::{MAX_RANK, check_extents};
use crate::facts::{Facts, Reason};
use crate::graphs::{Graphs, Misfit, NeedsEqual, NeedsMany, Rest, Stop};
use crate::imported::{Element, Imported};
use crate::label::{label, node_name, operator_name, opset_of};
use crate::model::{Model, is_map, map_keys};
use crate::node::Node;
use crate::operator::{Import, MANY, OPSETS, Operator};
use crate::ops::value;
use crate::order;
use crate::proto::{Bytes, GraphProto, NodeProto};
use crate::registry;
use crate::scope::Scope;
use crate::sizes;
use crate::texts::Texts;
use tilewright_ops::{Operand, Unequal};

/// Choices for an import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Sizes of open dimensions: by name, or by input and axis as `INPUT.AXIS`. The others stay open.
    pub dims: BTreeMap<String, usize>,
    /// What open dimensions may be, by the same keys.
    pub ranges: BTreeMap<String, SizeRange>,
    /// Shapes of inputs, where they are known as a whole.
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// Values of inputs. Where a size depends on one, or something else that must be known, the
    /// input becomes a constant of the module; else only its shape counts.
    pub values: BTreeMap<String, Tensor>,
    /// Most bytes of constants that are computed (not read) while importing.
    pub constant_bytes: usize,
    /// Most element operations spent on computing constants; what exceeds them is left to be
    /// computed when the model runs.
    pub constant_steps: u64,
}

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions {
            dims: BTreeMap::new(),
            ranges: BTreeMap::new(),
            shapes: BTreeMap::new(),
            values: BTreeMap::new(),
            constant_bytes: usize::try_from(4u64 << 30).unwrap_or(usize::MAX),
            constant_steps: 1 << 25,
        }
    }
}

/// Reads and imports a model file: [`Model::read`], then [`Model::import`].
pub fn import_path(path: impl AsRef<Path>, options: &ImportOptions) -> Result<Module> {
    Model::read(path)?.import(options)
}

/// Imports a model in memory: [`Model::decode`], then [`Model::import`].
pub fn import_bytes(
    name: impl Into<String>,
    bytes: impl Into<Bytes>,
    options: &ImportOptions,
) -> Result<Module> {
    Model::decode(name, bytes)?.import(options)
}

impl Model {
    /// The model as a module. Its graph function `main` has the model's inputs as parameters, in
    /// their order and with their names, and calls one tensor function a node; the outputs' names
    /// are in the attribute `output_names`. Inputs that became constants are no parameters; their
    /// names are in the attribute `fixed_inputs` if there are any.
    ///
    /// Fails with [`Error::Input`] where sizes or values are missing or do not fit, with
    /// [`Error::Unsupported`] where the model uses something that is not covered, with
    /// [`Error::Model`] where it contradicts itself, and with [`Error::Io`] where data beside the
    /// model cannot be read. Messages name the file, the node, its operator and the opset.
    pub fn import(&self, options: &ImportOptions) -> Result<Module> {
        let mut fixed = BTreeSet::new();
        let mut facts = Facts::default();
        loop {
            let importer = Importer::new(self, options, &fixed, &mut facts).map_err(Stop::Error);
            match importer.and_then(Importer::run) {
                Ok(module) => return Ok(module),
                Err(Stop::Fix(more)) => fixed.extend(more),
                Err(Stop::Apart(_)) => {
                    return Err(Error::internal("branches of different ranks are left apart"));
                }
                Err(Stop::Error(e)) => {
                    let equal = e
                        .cause()
                        .is_some_and(|NeedsEqual { sizes: (a, b), node }| facts.take(*a, *b, node));
                    let many = e
                        .cause()
                        .is_some_and(|NeedsMany { size, node }| facts.take_many(*size, node));
                    if !equal && !many {
                        return Err(e.context(format!("`{}`", self.name)));
                    }
                }
            }
        }
    }
}

/// As many operators as a message lists.
const LISTED: usize = 16;

/// As many pairs of sizes as one node may need to be equal.
const MOST_EQUATED: usize = 64;

/// As many nodes as a message lists for each operator.
const NODES_LISTED: usize = 4;

struct Importer<'a> {
    model: &'a Model,
    given: &'a BTreeMap<String, Tensor>,
    fixed: &'a BTreeSet<Arc<str>>,
    /// Inputs that hold strings.
    texts_given: Vec<Arc<str>>,
    builder: Builder,
    params: Vec<GraphVar>,
    /// Why extents of inputs must be what they are, as an attribute holds it.
    reasons: Vec<Attr>,
    /// Names of the outputs, and their element types where the file says them.
    outputs: Vec<ValueType>,
    /// The graph that is imported, and those around it, outermost first.
    scopes: Vec<Scope<'a>>,
    /// In as many branches of different ranks is what is imported.
    apart: usize,
    /// Whether a branch is a misfit that leads to outputs of other ranks than the file declares.
    declared: bool,
}

impl<'a> Importer<'a> {
    fn new(
        model: &'a Model,
        options: &'a ImportOptions,
        fixed: &'a BTreeSet<Arc<str>>,
        facts: &mut Facts,
    ) -> Result<Self> {
        let (low, high) = OPSETS;
        if model.opset != 0 && !(low..=high).contains(&model.opset) {
            return Err(Error::unsupported(format!(
                "opset {} is not supported; opsets {low} to {high} are",
                model.opset
            )));
        }
        let signature = model.read_signature()?;
        let mut shapes = options.shapes.clone();
        for (name, value) in &options.values {
            shapes.insert(name.clone(), value.shape().to_vec());
        }
        let parts: Vec<Vec<ValueType>> =
            signature.inputs.iter().map(|v| v.tensors(|key| shapes.contains_key(key))).collect();
        let shapes = dims::resolve(&parts.concat(), &options.dims, &options.ranges, &shapes)?;
        let (shapes, reasons) = facts.apply(shapes);
        let mut shapes = shapes.into_iter();
        let budget = Budget { bytes: options.constant_bytes, steps: options.constant_steps };
        let mut builder = Builder::new(budget, registry::plain);
        builder.facts = facts.clone();
        let graph: &GraphProto = &model.graph;
        let mut scope = Scope::new(graph, model)?;
        let mut params = Vec::new();
        let mut texts_given: Vec<Arc<str>> = Vec::new();
        // One for each input of the signature.
        let mut made = Vec::new();
        for (input, parts) in signature.inputs.iter().zip(&parts) {
            if input.kind == ValueKind::Text {
                let value = options.values.get(&input.name).ok_or_else(|| {
                    Error::input(format!("input `{}` holds strings, and is not given", input.name))
                        .note("strings are known at import only")
                        .help(format!("--input {}=FILE.npy, as bytes", input.name))
                })?;
                input.accepts(value.dtype(), value.shape())?;
                made.push(Imported::Text(
                    Texts::of_bytes(value)
                        .map_err(|e| e.context(format!("input `{}`", input.name)))?,
                ));
                shapes.next();
                texts_given.push(input.name.as_str().into());
                continue;
            }
            let mut values = Vec::with_capacity(parts.len());
            for (part, shape) in parts.iter().zip(&mut shapes) {
                let Some(dtype) = part.dtype else { continue };
                check_extents(&shape).map_err(|e| e.context(format!("input `{}`", part.name)))?;
                let given = options.values.get(&part.name);
                if let Some(t) = given {
                    part.accepts(t.dtype(), t.shape())?;
                }
                values.push(match given.filter(|_| fixed.contains(part.name.as_str())) {
                    Some(t) => Imported::Const(t.clone()),
                    None => {
                        let (var, value) = Imported::var_of(&part.name, Operand { shape, dtype });
                        params.push(var);
                        builder.divided(value)?
                    }
                });
            }
            made.push(match (input.kind, values.as_slice()) {
                (ValueKind::Tensor | ValueKind::Optional, [value]) => value.clone(),
                (kind, values) => {
                    builder.hint = input.name.clone();
                    let rank = input.dims.as_ref().map(Vec::len);
                    let declared = Element {
                        dtype: input.dtype,
                        shape: rank.map(|n| vec![None; n]),
                        ..Element::default()
                    };
                    value::given(&mut builder, kind, values, declared)?
                }
            });
        }
        let protos = graph.input.iter();
        let mut made = made.into_iter();
        for proto in protos.filter(|v| !scope.initializers.contains_key(v.name.as_str())) {
            let mut next = || made.next().ok_or_else(|| Error::internal("an input is missing"));
            let mut value = next()?;
            if is_map(proto) {
                value = Imported::Map { values: Box::new(value), keys: Box::new(next()?) };
            }
            scope.values.insert(proto.name.as_str(), value);
        }
        builder.narrow.declare(graph);
        *facts = builder.facts.clone();
        let names: Vec<Arc<str>> = parts.concat().iter().map(|v| v.name.as_str().into()).collect();
        Ok(Importer {
            model,
            given: &options.values,
            fixed,
            texts_given,
            builder,
            params,
            reasons: reasons.into_iter().map(|r| reason(&names[r.input], r)).collect(),
            outputs: signature.outputs,
            scopes: vec![scope],
            apart: 0,
            declared: false,
        })
    }

    fn run(mut self) -> Result<Module, Stop> {
        self.nodes()?;
        let mut outputs: Vec<(String, Imported)> = Vec::new();
        for (output, proto) in
            std::mem::take(&mut self.outputs).into_iter().zip(&self.model.graph.output)
        {
            let (value, keys) = match self.output(&proto.name)? {
                Imported::Map { values, keys } => (*values, Some(*keys)),
                value => (value, None),
            };
            if keys.is_some() != (output.kind == ValueKind::Map) && output.dtype.is_some() {
                let (declared, computed) = match keys {
                    Some(_) => ("no map", "one"),
                    None => ("a map", "none"),
                };
                return Err(Stop::Error(Error::model(format!(
                    "output `{}` is declared as {declared}, but is computed as {computed}",
                    output.name
                ))));
            }
            let value = self.as_result(value)?;
            if let (Imported::Item { .. }, ValueKind::Tensor, Some(_)) =
                (&value, output.kind, output.dtype)
            {
                return Err(Stop::Error(Error::model(format!(
                    "output `{}` is declared as a tensor, but is computed as a sequence or optional",
                    output.name
                ))));
            }
            if let Some(declared) = output.dtype
                && !matches!(value, Imported::Item { .. })
                && declared != value.dtype()
            {
                return Err(Stop::Error(Error::model(format!(
                    "output `{}` is declared as {declared}, but is computed as {}",
                    output.name,
                    value.dtype()
                ))));
            }
            let name = map_keys(&output.name);
            outputs.push((output.name, value));
            if let Some(keys) = keys {
                if self.model.graph.output.iter().any(|other| other.name == name) {
                    return Err(Stop::Error(Error::unsupported(format!(
                        "an output is named `{name}`, which the keys of a map are"
                    ))));
                }
                outputs.push((name, self.as_result(keys)?));
            }
        }
        let mut attrs = Attrs::new();
        if !(self.fixed.is_empty() && self.texts_given.is_empty()) {
            let fixed = self.fixed.iter().chain(&self.texts_given).cloned();
            attrs.insert("fixed_inputs".into(), name_list(fixed));
        }
        if !self.reasons.is_empty() {
            attrs.insert(SIZE_REASONS.into(), Attr::List(std::mem::take(&mut self.reasons)));
        }
        Ok(self.builder.finish(self.params, attrs, outputs)?)
    }

    /// A value as a result of the module.
    fn as_result(&mut self, value: Imported) -> Result<Imported> {
        match value {
            Imported::Text(texts) => texts.to_bytes().map(Imported::Const),
            Imported::Chosen { at, of } => value::bytes_of(&mut self.builder, &at, &of),
            value => Ok(value),
        }
    }

    /// Imports the nodes of the innermost graph that its outputs need.
    fn nodes(&mut self) -> Result<(), Stop> {
        let Some(scope) = self.scopes.last_mut() else { return Ok(()) };
        let (graph, live) = (scope.graph, scope.live());
        let order = order::sorted(graph, &scope.producers, &live);
        self.check_operators(graph, &live)?;
        let order = order.map_err(|nodes| self.cycle(graph, &nodes))?;
        self.ordered(graph, &order)
    }

    /// Imports nodes of the innermost graph.
    fn ordered(&mut self, graph: &'a GraphProto, order: &[usize]) -> Result<(), Stop> {
        for (k, &at) in order.iter().enumerate() {
            let node = &graph.node[at];
            match self.node(node, at) {
                Ok(()) => {}
                Err(Stop::Apart(cond)) => {
                    let rest = Rest { branches: at, nodes: &order[k + 1..] };
                    return self
                        .import_in_branches(graph, &cond, rest)
                        .map_err(|stop| self.at_node(stop, node, at));
                }
                Err(stop) => return Err(self.at_node(stop, node, at)),
            }
        }
        Ok(())
    }

    /// Why an import ends, with the node at which it does.
    fn at_node(&self, stop: Stop, node: &NodeProto, at: usize) -> Stop {
        let Stop::Error(e) = stop else { return stop };
        let node = label(node, at, self.model);
        match e.cause() {
            Some(Unequal(a, b)) => {
                let cause = NeedsEqual { sizes: (*a, *b), node: node.clone() };
                e.context(node).because(cause).into()
            }
            None => e.context(node).into(),
        }
    }

    /// The error of nodes that need each other.
    fn cycle(&self, graph: &GraphProto, nodes: &[usize]) -> Error {
        let names = nodes.iter().take(LISTED).map(|&at| label(&graph.node[at], at, self.model));
        let names: Vec<String> = names.collect();
        if let [alone] = &names[..] {
            return Error::model(format!("{alone} reads what it computes"));
        }
        let more = if nodes.len() > LISTED { ", ..." } else { "" };
        Error::model(format!(
            "{} nodes form a cycle, in which each reads what the next one computes: {}{more}",
            nodes.len(),
            names.join(", ")
        ))
    }

    /// Refuses the first node whose operator is not supported, and says of each such operator which
    /// other nodes use it.
    fn check_operators(&self, graph: &GraphProto, live: &[bool]) -> Result<()> {
        let nodes = graph.node.iter().enumerate().filter(|(at, _)| live[*at]);
        let mut first = None;
        // The operators in the order of the file, each with the nodes that use it.
        let mut missing: Vec<((&str, &str), Vec<String>)> = Vec::new();
        let mut places: HashMap<(&str, &str), usize> = HashMap::default();
        for (at, node) in nodes {
            let Err(e) = self.operator(node) else { continue };
            let operator = (node.domain.as_str(), node.op_type.as_str());
            if first.is_none() {
                first = Some(e.context(label(node, at, self.model)));
            }
            let place = *places.entry(operator).or_insert_with(|| {
                missing.push((operator, Vec::new()));
                missing.len() - 1
            });
            missing[place].1.push(node_name(node, at));
        }
        let Some(mut error) = first else { return Ok(()) };
        let operators = missing.len();
        for (k, ((domain, name), mut users)) in missing.into_iter().enumerate().take(LISTED) {
            // The error itself names the first one.
            if k == 0 {
                users.remove(0);
            }
            let Some(last) = users.len().checked_sub(1) else { continue };
            let more = match last + 1 {
                all @ ..=NODES_LISTED => users[..all].join(", "),
                all => {
                    format!("{} and {} more", users[..NODES_LISTED].join(", "), all - NODES_LISTED)
                }
            };
            let operator = operator_name(domain, name);
            error = error.note(match k {
                0 => format!("`{operator}` is also used by {more}"),
                _ => format!("`{operator}` is not supported either: {more}"),
            });
        }
        Err(match operators.checked_sub(LISTED) {
            None | Some(0) => error,
            Some(more) => error.note(format!("and {more} more operators")),
        })
    }

    fn operator(&self, node: &NodeProto) -> Result<&'static Operator> {
        let opset = opset_of(self.model, node);
        if opset == 0 && registry::has_domain(&node.domain) {
            let whose = match registry::versions_of(&node.domain) {
                "" => "ONNX's operators".to_owned(),
                other => format!("the operators of `{other}`"),
            };
            return Err(Error::model(format!(
                "the file does not say which version of {whose} it uses"
            )));
        }
        registry::find(&node.domain, &node.op_type, opset)
    }

    fn node(&mut self, proto: &'a NodeProto, at: usize) -> Result<(), Stop> {
        let operator = self.operator(proto)?;
        let node = self.with_inputs(proto, at, operator)?;
        self.builder.narrow.enter(proto)?;
        self.builder.hint = proto.output.first().cloned().unwrap_or_default();
        self.builder.products = self.scopes.last().map_or(0, |scope| scope.products(proto));
        self.builder.of_numbers = self.scopes.last().is_some_and(|scope| scope.of_numbers);
        self.builder.node = node.label.clone();
        let results = match operator.import {
            Import::Plain(import) if operator.moves => self.moved(node, import)?,
            Import::Plain(import) => self.plain(node, import)?,
            Import::WithGraphs(import) => {
                let results = import(self, &node)?;
                node.finish()?;
                results
            }
        };
        let named = proto.output.iter().rposition(|n| !n.is_empty()).map_or(0, |i| i + 1);
        if named > results.len() {
            return Err(Stop::Error(Error::unsupported(format!(
                "output {} is not supported; only the first {} are",
                results.len(),
                results.len()
            ))));
        }
        self.builder.narrow.leave(proto)?;
        for (name, value) in proto.output.iter().zip(results) {
            let Some(scope) = self.scopes.last_mut() else { continue };
            let uses = scope.uses.get(name.as_str()).copied().unwrap_or(0);
            self.builder.note_uses(&value, uses);
            if uses > 0 {
                scope.values.insert(name, value);
            }
        }
        Ok(())
    }

    /// The values of a node that only moves the elements of its first input. Strings are moved as their
    /// positions in a list.
    fn moved(&mut self, node: Node<'a>, import: Plain) -> Result<Vec<Imported>, Stop> {
        let (at, of) = match node.optional(0) {
            Some(Imported::Text(texts)) => {
                let (at, of) = texts.listed()?;
                (Imported::Const(at), of)
            }
            Some(Imported::Chosen { at, of }) => ((**at).clone(), of.clone()),
            _ => return self.plain(node, import),
        };
        let moved = self.plain(node.with_input(0, at)?, import)?;
        Ok(moved.iter().map(|at| Imported::chosen(at, &of)).collect::<Result<_>>()?)
    }

    /// The values of a node without graphs. Where integers must be known that are computed when the
    /// model runs, they are sizes that data decide.
    fn plain(&mut self, mut node: Node<'a>, import: Plain) -> Result<Vec<Imported>, Stop> {
        // What is said where sizes do not help either.
        let mut first: Option<Error> = None;
        let mut equated = 0;
        loop {
            let results = import(&node, &mut self.builder)
                .and_then(|results| node.finish().map(|()| results));
            let e = match results {
                Ok(results) => return Ok(results),
                Err(e) => e,
            };
            let Some(var) = node.unknown() else {
                // Parameters that contradict each other are the model's fault here.
                let e = match e {
                    Error::Input(d) => Error::Model(d),
                    e => e,
                };
                // What a branch or loop needs is no matter where it does not run.
                let nested = self.builder.depth() > 1;
                if let Some(Unequal(a, b)) = e.cause()
                    && equated < MOST_EQUATED
                    && (nested || !self.builder.facts.can_take(*a, *b))
                    && let Some(again) = with_equal(&mut self.builder, &node, *a, *b)?
                {
                    node = again;
                    equated += 1;
                    continue;
                }
                if let Some(first) = first {
                    return Err(first.into());
                }
                // Open sizes that must be equal may become one.
                let misfit = matches!(e, Error::Model(_))
                    && !e
                        .cause()
                        .is_some_and(|Unequal(a, b)| a.known().is_none() || b.known().is_none());
                return Err(if misfit { e.because(Misfit) } else { e }.into());
            };
            match self.unknown(&var, e) {
                Stop::Error(e) => match self.decided_by_data(&node, &var)? {
                    Some(again) => {
                        node = again;
                        first.get_or_insert(e);
                    }
                    None => return Err(first.unwrap_or(e).into()),
                },
                stop => return Err(stop),
            }
        }
    }

    /// The node with sizes in the place of a list of integers that is computed when the model runs.
    fn decided_by_data(&mut self, node: &Node<'a>, var: &GraphVar) -> Result<Option<Node<'a>>> {
        // An input of the model is given when it is imported.
        if self.params.contains(var) {
            return Ok(None);
        }
        let Some(at) = node.inputs_of(var).first().copied() else { return Ok(None) };
        let Some(value @ Imported::Var { shape, dtype, .. }) = node.optional(at) else {
            return Ok(None);
        };
        let count = match shape.as_slice() {
            [] => Some(1),
            [n] => n.known().filter(|n| *n <= MAX_RANK),
            _ => None,
        };
        if count.is_none() || !matches!(*dtype, DType::I64 | DType::I32) {
            return Ok(None);
        }
        let fixed = dim::known(shape).unwrap_or_default();
        let (value, dtype) = (value.clone(), *dtype);
        let sizes = value::integers(&mut self.builder, &value)?;
        node.with_input(at, sizes::value(&fixed, sizes, dtype)?).map(Some)
    }

    /// What to do where a variable must be known, and what to say of it where that cannot be.
    fn unknown(&self, var: &GraphVar, e: Error) -> Stop {
        let sources = self.builder.sources(var);
        let mut names: Vec<Arc<str>> = sources.iter().map(|v| v.name().clone()).collect();
        if names.is_empty()
            && let Some(size) = self.open_size()
        {
            return e
                .note("it is computed from open sizes, and not known for all of them")
                .help(format!("give the sizes, e.g. --dim {size}=SIZE"))
                .into();
        }
        if names.is_empty() {
            return e
                .note("it is computed from constants, in more steps than an import may take")
                .help("raise `constant_steps` in the options of the import")
                .into();
        }
        names.sort();
        let missing: Vec<&Arc<str>> =
            names.iter().filter(|name| !self.given.contains_key(&***name)).collect();
        if missing.is_empty() {
            return Stop::Fix(names);
        }
        let more = if missing.len() > LISTED { ", ..." } else { "" };
        let listed: Vec<String> =
            missing.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
        let flag = format!("give the values of these inputs, e.g. --input {}=FILE.npy", missing[0]);
        let e =
            e.note(format!("it depends on values that are not given: {}{more}", listed.join(", ")));
        e.help(flag).into()
    }

    /// A size of the inputs that is open.
    fn open_size(&self) -> Option<Arc<str>> {
        let types = self.params.iter().filter_map(|param| param.ty().as_tensor());
        let mut sizes = types.flat_map(|ty| dim::of_shape(&ty.shape).unwrap_or_default());
        sizes.find_map(|size| size.vars().first().map(|v| v.name().clone()))
    }

    /// The node with its inputs.
    fn with_inputs(
        &mut self,
        proto: &'a NodeProto,
        at: usize,
        operator: &Operator,
    ) -> Result<Node<'a>> {
        if proto.input.len() > operator.max_inputs {
            return Err(match operator.max_inputs {
                MANY => Error::unsupported(format!(
                    "{} inputs are not supported; at most {} are",
                    proto.input.len(),
                    MANY
                )),
                most => Error::model(format!(
                    "there are {} inputs, but the operator takes at most {most}",
                    proto.input.len()
                )),
            });
        }
        if proto.output.len() > MANY {
            return Err(Error::unsupported(format!(
                "{} outputs are not supported; at most {} are",
                proto.output.len(),
                MANY
            )));
        }
        let mut inputs = Vec::with_capacity(proto.input.len());
        for (position, name) in proto.input.iter().enumerate() {
            if name.is_empty() {
                inputs.push(None);
                continue;
            }
            let value = self.value(name)?.ok_or_else(|| {
                Error::model(format!("input {position}, `{name}`, is defined nowhere"))
            })?;
            if let (Imported::Item { .. }, false) = (&value, operator.takes_lists) {
                return Err(Error::model(format!(
                    "input {position}, `{name}`, is a sequence or optional, and a tensor is needed"
                )));
            }
            if let (Imported::Map { .. }, false) = (&value, operator.takes_maps) {
                return Err(Error::unsupported(format!(
                    "input {position}, `{name}`, is a map, which the operator does not take"
                )));
            }
            let takes_texts = operator.takes_texts || (operator.moves && position == 0);
            if let (Imported::Text(_) | Imported::Chosen { .. }, false) = (&value, takes_texts) {
                return Err(Error::unsupported(format!(
                    "input {position}, `{name}`, holds strings, which the operator does not take here"
                )));
            }
            inputs.push(Some(value));
        }
        let label = label(proto, at, self.model);
        let opset = opset_of(self.model, proto);
        Node::new(proto, label, opset, inputs, self.model.folder.as_ref())
    }

    /// The value of an output of a graph.
    fn output(&mut self, name: &'a str) -> Result<Imported> {
        let value = self.value(name)?.ok_or_else(|| Error::model("nothing computes it"));
        value.map_err(|e| e.context(format!("output `{name}`")))
    }

    /// A value by its name, if it is known: of the innermost graph that has it. Counts as one of its
    /// uses: the last one forgets it.
    fn value(&mut self, name: &'a str) -> Result<Option<Imported>> {
        let folder = self.model.folder.as_ref();
        for scope in self.scopes.iter_mut().rev() {
            let left = scope.uses.get_mut(name).map_or(0, |uses| {
                *uses = uses.saturating_sub(1);
                *uses
            });
            if left > 0
                && let Some(value) = scope.values.get(name)
            {
                return Ok(Some(value.clone()));
            }
            if let Some(value) = scope.values.remove(name) {
                return Ok(Some(value));
            }
            if let Some(&proto) = scope.initializers.get(name) {
                let read = if Texts::is_in(proto) {
                    Texts::read(proto).map(Imported::Text)
                } else {
                    data::tensor(proto, folder).map(Imported::Const)
                };
                let value = read.map_err(|e| e.context(format!("constant `{name}`")))?;
                if left > 0 {
                    scope.values.insert(name, value.clone());
                }
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

impl<'a> Graphs<'a> for Importer<'a> {
    fn builder(&mut self) -> &mut Builder {
        &mut self.builder
    }

    fn given(&self, value: &Imported) -> Option<(Arc<str>, Tensor)> {
        let param = value.var().filter(|var| self.params.contains(var))?;
        Some((param.name().clone(), self.given.get(&**param.name())?.clone()))
    }

    fn graph(&mut self, graph: &'a GraphProto, inputs: &[Imported]) -> Result<Vec<Imported>, Stop> {
        let mut scope = Scope::new(graph, self.model)?;
        let taken =
            graph.input.iter().filter(|v| !scope.initializers.contains_key(v.name.as_str()));
        let names: Vec<&'a str> = taken.map(|v| v.name.as_str()).collect();
        if names.len() != inputs.len() {
            return Err(Stop::Error(Error::model(format!(
                "the graph takes {} inputs, and is given {}",
                names.len(),
                inputs.len()
            ))));
        }
        scope.values.extend(names.into_iter().zip(inputs.iter().cloned()));
        self.scopes.push(scope);
        let outputs = self.nodes().and_then(|()| {
            let outputs = graph.output.iter().map(|v| self.output(&v.name));
            Ok(outputs.collect::<Result<_>>()?)
        });
        self.scopes.pop();
        outputs
    }

    fn graph_and_rest(
        &mut self,
        branch: &'a GraphProto,
        rest: &Rest<'_>,
    ) -> Result<Vec<Imported>, Stop> {
        let before = self.scopes.clone();
        let outputs = self.continued(branch, rest);
        self.scopes = before;
        outputs
    }
}

/// Why an axis of an input has its extent, as [`SIZE_REASONS`] holds it.
fn reason(input: &Arc<str>, Reason { axis, why, .. }: Reason) -> Attr {
    Attr::List(vec![Attr::Str(input.clone()), Attr::Int(axis as i64), Attr::Str(why)])
}
