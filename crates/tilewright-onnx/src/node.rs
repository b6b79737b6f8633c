//! What an operator's importer sees: its node, with typed access that explains what is wrong.
//!
//! Every attribute must be asked for: [`Node::finish`] refuses one that was not read, so that an
//! attribute cannot be dropped silently.

use std::cell::RefCell;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::dim::{self, Integer};
use tilewright_ir::{Error, GraphVar, Result, Tensor};

use crate::data::{self, Folder};
use crate::imported::Imported;
use crate::proto::{AttributeProto, AttributeType, GraphProto, NodeProto, TensorProto, TypeValue};
use crate::texts::Texts;

impl Imported {
    /// Extents, for an operator that needs numbers.
    pub(crate) fn fixed(&self, node: &Node) -> Result<Vec<usize>> {
        dim::fixed(&self.shape(), node.op())
    }
}

/// A node with its inputs.
pub(crate) struct Node<'a> {
    pub(crate) proto: &'a NodeProto,
    /// What messages call it.
    pub(crate) label: String,
    /// Version of the operator set.
    pub(crate) opset: i64,
    inputs: Vec<Option<Imported>>,
    folder: Option<&'a Folder>,
    attributes: HashMap<&'a str, &'a AttributeProto>,
    read: RefCell<HashSet<&'a str>>,
    /// The variable that had to be known, and was not.
    unknown: RefCell<Option<GraphVar>>,
}

impl<'a> Node<'a> {
    /// Fails where an attribute comes twice.
    pub(crate) fn new(
        proto: &'a NodeProto,
        label: String,
        opset: i64,
        inputs: Vec<Option<Imported>>,
        folder: Option<&'a Folder>,
    ) -> Result<Self> {
        let mut attributes = HashMap::default();
        for a in &proto.attribute {
            if !a.ref_attr_name.is_empty() {
                return Err(Error::model(format!(
                    "attribute `{}` refers to an attribute of a function, but stands in none",
                    a.name
                )));
            }
            if attributes.insert(a.name.as_str(), a).is_some() {
                return Err(Error::model(format!("attribute `{}` is given twice", a.name)));
            }
        }
        let (read, unknown) = (RefCell::default(), RefCell::default());
        Ok(Node { proto, label, opset, inputs, folder, attributes, read, unknown })
    }

    /// The operator's name.
    pub(crate) fn op(&self) -> &'a str {
        &self.proto.op_type
    }

    /// Number of inputs, absent ones at the end not counted.
    pub(crate) fn input_count(&self) -> usize {
        self.inputs.iter().rposition(Option::is_some).map_or(0, |i| i + 1)
    }

    /// Number of outputs that the node names, absent ones at the end not counted.
    pub(crate) fn output_count(&self) -> usize {
        self.proto.output.iter().rposition(|n| !n.is_empty()).map_or(0, |i| i + 1)
    }

    /// Whether the node names the output at a position.
    pub(crate) fn names_output(&self, at: usize) -> bool {
        self.proto.output.get(at).is_some_and(|n| !n.is_empty())
    }

    /// The input at a position, which must be there.
    pub(crate) fn input(&self, at: usize) -> Result<&Imported> {
        required(self.optional(at), &format!("input {at}"))
    }

    /// The input at a position, if there is one.
    pub(crate) fn optional(&self, at: usize) -> Option<&Imported> {
        self.inputs.get(at).and_then(Option::as_ref)
    }

    /// All inputs, each of which must be there.
    pub(crate) fn all_inputs(&self) -> Result<Vec<Imported>> {
        (0..self.input_count()).map(|i| self.input(i).cloned()).collect()
    }

    /// An optional input that must be known at import; `what` is its name in the specification.
    pub(crate) fn constant(&self, at: usize, what: &str) -> Result<Option<&Tensor>> {
        let Some(value) = self.optional(at) else { return Ok(None) };
        if let Imported::Sizes(s) = value {
            let what = format!("the input `{what}`");
            s.values.iter().try_for_each(|v| v.fixed(&what).map(drop))?;
        }
        value.constant().map(Some).ok_or_else(|| self.not_known(value, what))
    }

    fn not_known(&self, value: &Imported, what: &str) -> Error {
        self.unknown.replace(value.var().cloned());
        Error::input(format!("the input `{what}` must be known when the model is imported"))
    }

    /// An optional input of integers that must be known at import but for open sizes: a list, or a
    /// scalar.
    pub(crate) fn integers(&self, at: usize, what: &str) -> Result<Option<Vec<Integer>>> {
        match self.optional(at) {
            None => Ok(None),
            Some(Imported::Sizes(s)) if s.shape.len() > 1 => Err(Error::model(format!(
                "the input `{what}` must be a list of integers, but has the shape {:?}",
                s.shape
            ))),
            Some(Imported::Sizes(s)) => Ok(Some(s.values.to_vec())),
            Some(_) => {
                let list = self.constant_ints(at, what)?;
                Ok(list.map(|list| list.into_iter().map(Integer::from).collect()))
            }
        }
    }

    /// [`Node::integers`] that must be one.
    pub(crate) fn integer(&self, at: usize, what: &str) -> Result<Option<Integer>> {
        match self.integers(at, what)?.as_deref() {
            None => Ok(None),
            Some([one]) => Ok(Some(*one)),
            Some(_) => Err(Error::model(format!("the input `{what}` must be one number"))),
        }
    }

    /// [`Node::integer`] that no open size decides.
    pub(crate) fn constant_int(&self, at: usize, what: &str) -> Result<Option<i64>> {
        self.integer(at, what)?.map(|v| v.fixed(&format!("the input `{what}`"))).transpose()
    }

    /// The variable that had to be known, where the importer failed for that.
    pub(crate) fn unknown(&self) -> Option<GraphVar> {
        self.unknown.borrow().clone()
    }

    /// Takes over what had to be known from a node that this one is made of.
    pub(crate) fn pass_on(&self, inner: &Node) {
        if let Some(var) = inner.unknown() {
            self.unknown.replace(Some(var));
        }
    }

    /// An optional input of integers that must be known at import: a list, or a scalar.
    pub(crate) fn constant_ints(&self, at: usize, what: &str) -> Result<Option<Vec<i64>>> {
        let Some(tensor) = self.constant(at, what)? else { return Ok(None) };
        if tensor.shape().len() > 1 || !tensor.dtype().is_int() {
            return Err(Error::model(format!(
                "the input `{what}` must be a list of integers, but is {} of shape {:?}",
                tensor.dtype(),
                tensor.shape()
            )));
        }
        if tensor.len() > MAX_INTS {
            return Err(Error::model(format!("the input `{what}` has {} elements", tensor.len())));
        }
        (0..tensor.len())
            .map(|i| {
                i64::try_from(tensor.get_i128(i))
                    .map_err(|_| Error::model(format!("the input `{what}` is out of range")))
            })
            .collect::<Result<_>>()
            .map(Some)
    }

    /// An optional input of one number that must be known at import.
    pub(crate) fn constant_scalar(&self, at: usize, what: &str) -> Result<Option<&Tensor>> {
        match self.constant(at, what)? {
            Some(t) if t.len() != 1 => Err(Error::model(format!(
                "the input `{what}` must be one number, but has the shape {:?}",
                t.shape()
            ))),
            other => Ok(other),
        }
    }

    /// An optional attribute, checked to be of a kind.
    fn attribute(
        &self,
        name: &'static str,
        kind: AttributeType,
    ) -> Result<Option<&'a AttributeProto>> {
        self.read.borrow_mut().insert(name);
        let Some(a) = self.attributes.get(name) else { return Ok(None) };
        match AttributeType::try_from(a.r#type) {
            // The oldest files do not say the kind.
            Ok(AttributeType::Undefined) => Ok(Some(a)),
            Ok(found) if found == kind => Ok(Some(a)),
            found => Err(Error::model(format!(
                "attribute `{name}` is of kind {}, not {kind:?}",
                found.map_or_else(|_| a.r#type.to_string(), |f| format!("{f:?}"))
            ))),
        }
    }

    /// Whether the file gives an attribute.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.attributes.contains_key(name)
    }

    /// An integer attribute.
    pub(crate) fn int(&self, name: &'static str) -> Result<Option<i64>> {
        Ok(self.attribute(name, AttributeType::Int)?.map(|a| a.i))
    }

    /// An integer attribute with a default.
    pub(crate) fn int_or(&self, name: &'static str, default: i64) -> Result<i64> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// An integer attribute that is a number of things, with a default.
    pub(crate) fn size_or(&self, name: &'static str, default: i64) -> Result<usize> {
        let given = self.int_or(name, default)?;
        usize::try_from(given).map_err(|_| Error::model(format!("attribute `{name}` is {given}")))
    }

    /// An integer attribute that must be there, and above 0.
    pub(crate) fn positive(&self, name: &'static str) -> Result<usize> {
        match self.int(name)?.map(usize::try_from) {
            Some(Ok(size @ 1..)) => Ok(size),
            _ => Err(Error::model(format!("attribute `{name}` must be a number above 0"))),
        }
    }

    /// An element type by its number in the file; `of` says which it is.
    pub(crate) fn element<T>(
        &self,
        name: &'static str,
        of: fn(i32) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(number) = self.int(name)? else { return Ok(None) };
        let found = of(i32::try_from(number).unwrap_or(-1));
        found.map(Some).map_err(|e| e.context(format!("attribute `{name}`")))
    }

    /// An integer attribute that must be 0 or 1, and is 0 where it is absent.
    pub(crate) fn switch(&self, name: &'static str) -> Result<bool> {
        match self.int_or(name, 0)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.unsupported_value(name, other, "0, 1")),
        }
    }

    /// A flag: an integer attribute that is 0 or another number.
    pub(crate) fn flag(&self, name: &'static str, default: bool) -> Result<bool> {
        Ok(self.int(name)?.map_or(default, |v| v != 0))
    }

    /// A list of integers.
    pub(crate) fn ints(&self, name: &'static str) -> Result<Option<Vec<i64>>> {
        Ok(self.attribute(name, AttributeType::Ints)?.map(|a| a.ints.clone()))
    }

    /// Axes, which are an attribute before an opset, and an input from then on.
    pub(crate) fn axes(&self, input_from: i64) -> Result<Option<Vec<i64>>> {
        match self.opset < input_from {
            true if self.input_count() > 1 => {
                Err(Error::model(format!("axes are no input before opset {input_from}")))
            }
            true => self.ints("axes"),
            false => self.constant_ints(1, "axes"),
        }
    }

    /// A number.
    pub(crate) fn float(&self, name: &'static str) -> Result<Option<f32>> {
        Ok(self.attribute(name, AttributeType::Float)?.map(|a| a.f))
    }

    /// A number with a default.
    pub(crate) fn float_or(&self, name: &'static str, default: f32) -> Result<f32> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    /// A list of numbers.
    pub(crate) fn floats(&self, name: &'static str) -> Result<Option<Vec<f32>>> {
        Ok(self.attribute(name, AttributeType::Floats)?.map(|a| a.floats.clone()))
    }

    /// A text with a default.
    pub(crate) fn text_or(&self, name: &'static str, default: &'static str) -> Result<&'a str> {
        Ok(self.text(name)?.unwrap_or(default))
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<Option<&'a str>> {
        let Some(a) = self.attribute(name, AttributeType::String)? else { return Ok(None) };
        std::str::from_utf8(&a.s)
            .map(Some)
            .map_err(|_| Error::model(format!("attribute `{name}` is not valid UTF-8")))
    }

    /// What a text with a default stands for.
    pub(crate) fn choice<V: Copy>(
        &self,
        name: &'static str,
        default: &'static str,
        all: &[(&str, V)],
    ) -> Result<V> {
        let given = self.text_or(name, default)?;
        let found = all.iter().find(|(text, _)| *text == given);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let texts: Vec<&str> = all.iter().map(|(text, _)| *text).collect();
            self.unsupported_value(name, given, &texts.join(", "))
        })
    }

    /// A list of texts.
    pub(crate) fn texts(&self, name: &'static str) -> Result<Option<Vec<String>>> {
        let Some(a) = self.attribute(name, AttributeType::Strings)? else { return Ok(None) };
        a.strings
            .iter()
            .map(|s| {
                String::from_utf8(s.to_vec())
                    .map_err(|_| Error::model(format!("attribute `{name}` is not valid UTF-8")))
            })
            .collect::<Result<_>>()
            .map(Some)
    }

    pub(crate) fn tensor(&self, name: &'static str) -> Result<Option<Tensor>> {
        let Some(a) = self.attribute(name, AttributeType::Tensor)? else { return Ok(None) };
        let empty = TensorProto::default();
        let proto = a.t.as_deref().unwrap_or(&empty);
        data::tensor(proto, self.folder)
            .map(Some)
            .map_err(|e| e.context(format!("attribute `{name}`")))
    }

    pub(crate) fn type_proto(&self, name: &'static str) -> Result<Option<&'a TypeValue>> {
        let a = self.attribute(name, AttributeType::TypeProto)?;
        Ok(a.and_then(|a| a.tp.as_ref()?.value.as_ref()))
    }

    /// A tensor of strings; nothing where the attribute holds numbers.
    pub(crate) fn text_tensor(&self, name: &'static str) -> Result<Option<Texts>> {
        let proto = self.attribute(name, AttributeType::Tensor)?.and_then(|a| a.t.as_deref());
        let texts = proto.filter(|t| Texts::is_in(t)).map(Texts::read).transpose();
        texts.map_err(|e| e.context(format!("attribute `{name}`")))
    }

    /// A tensor of numbers; nothing where the attribute holds strings.
    pub(crate) fn number_tensor(&self, name: &'static str) -> Result<Option<Tensor>> {
        let proto = self.attribute(name, AttributeType::Tensor)?.and_then(|a| a.t.as_deref());
        if proto.is_some_and(Texts::is_in) { Ok(None) } else { self.tensor(name) }
    }

    /// A subgraph, if there is one.
    pub(crate) fn optional_graph(&self, name: &'static str) -> Result<Option<&'a GraphProto>> {
        Ok(self.attribute(name, AttributeType::Graph)?.and_then(|a| a.g.as_deref()))
    }

    /// A subgraph, which must be there.
    pub(crate) fn graph(&self, name: &'static str) -> Result<&'a GraphProto> {
        required(self.optional_graph(name)?, &format!("the attribute `{name}`"))
    }

    /// The same node with another value for an input.
    pub(crate) fn with_input(&self, at: usize, value: Imported) -> Result<Node<'a>> {
        let mut inputs = self.inputs.clone();
        if let Some(input) = inputs.get_mut(at) {
            *input = Some(value);
        }
        Node::new(self.proto, self.label.clone(), self.opset, inputs, self.folder)
    }

    /// The positions of inputs that are this variable.
    pub(crate) fn inputs_of(&self, var: &GraphVar) -> Vec<usize> {
        (0..self.inputs.len())
            .filter(|at| self.inputs[*at].as_ref().and_then(Imported::var) == Some(var))
            .collect()
    }

    /// The number of inputs and outputs that the file lists, absent ones included.
    pub(crate) fn listed(&self) -> (usize, usize) {
        (self.proto.input.len(), self.proto.output.len())
    }

    /// Some of the attributes as they are, for another node.
    pub(crate) fn attributes(&self, names: &[&'static str]) -> Vec<AttributeProto> {
        self.read.borrow_mut().extend(names);
        names.iter().filter_map(|n| self.attributes.get(n).map(|a| (*a).clone())).collect()
    }

    /// Marks an attribute as read that does not change the result.
    pub(crate) fn ignore(&self, name: &'static str) {
        self.read.borrow_mut().insert(name);
    }

    /// Refuses the value of an attribute.
    pub(crate) fn unsupported_value(
        &self,
        name: &str,
        value: impl std::fmt::Display,
        supported: &str,
    ) -> Error {
        Error::unsupported(format!("attribute `{name}` = {value} is not supported"))
            .note(format!("supported: {supported}"))
    }

    /// Fails where an attribute was not read.
    pub(crate) fn finish(&self) -> Result<()> {
        let read = self.read.borrow();
        let mut rest: Vec<&str> =
            self.attributes.keys().copied().filter(|name| !read.contains(name)).collect();
        rest.sort_unstable();
        match rest.first() {
            None => Ok(()),
            Some(name) => {
                let mut known: Vec<&str> = read.iter().copied().collect();
                known.sort_unstable();
                let known = if known.is_empty() { "none".into() } else { known.join(", ") };
                Err(Error::unsupported(format!("attribute `{name}` is not supported"))
                    .note(format!("supported attributes of {} here: {known}", self.op())))
            }
        }
    }
}

/// What must be there, such as an input or an attribute; `what` it is.
pub(crate) fn required<T>(value: Option<T>, what: &str) -> Result<T> {
    value.ok_or_else(|| Error::model(format!("{what} is missing")))
}

/// Longest list of integers that is a parameter; real ones have one number an axis.
const MAX_INTS: usize = 1 << 20;

/// The position of an axis that may count from the end.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<usize> {
    let at = if axis < 0 { axis.checked_add_unsigned(rank as u64) } else { Some(axis) };
    at.and_then(|at| usize::try_from(at).ok()).filter(|&at| at < rank).ok_or_else(|| {
        Error::model(format!("there is no axis {axis} in a tensor of {rank} dimensions"))
    })
}

/// [`axis`], or the end of all axes.
pub(crate) fn axis_or_end(at: i64, rank: usize) -> Result<usize> {
    if at == rank as i64 { Ok(rank) } else { axis(at, rank) }
}

/// [`axes`] of a list that means all of them where it is absent.
pub(crate) fn axes_or_all(list: Option<Vec<i64>>, rank: usize) -> Result<Vec<usize>> {
    list.map_or_else(|| Ok((0..rank).collect()), |list| axes(&list, rank))
}

/// Positions of axes that may count from the end; none may come twice.
pub(crate) fn axes(list: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut found = Vec::with_capacity(list.len().min(rank));
    for &a in list {
        let at = axis(a, rank)?;
        if found.contains(&at) {
            return Err(Error::model(format!("axis {a} is given twice")));
        }
        found.push(at);
    }
    Ok(found)
}
