//! Control flow in the making: bodies inside of each other, branches, loops, lists, and sizes that data
//! decide.

use std::sync::Arc;

use tilewright_ir::control::{MATCH_CAST, WHY};
use tilewright_ir::dim::SizeRange;
use tilewright_ir::list::ListOp;
use tilewright_ir::{Attr, Attrs, DType, Dim, Error, GraphType, GraphVar, Result, Var};
use tilewright_ops::Operand;

use super::step::{BodyStep, Control, LoopGiven, Nested, OpenBody};
use super::{Builder, identifier};
use crate::imported::{Element, Imported, Kind, Like};
use crate::sizes;

/// The type of values whose type is not written.
fn object() -> GraphType {
    GraphType::Opaque("R.Object".into())
}

/// Sizes of more nodes get names.
const LONG: u32 = 160;

fn is_long(size: Dim) -> bool {
    size.known().is_none() && size.wide().size() > LONG
}

impl Builder {
    /// Adds a step that defines variables.
    pub(super) fn add(&mut self, outs: &[GraphVar], step: BodyStep) {
        let Some(body) = self.bodies.last_mut() else { return };
        let at = (body.number, body.steps.len());
        self.defined_by.extend(outs.iter().map(|v| (v.id(), at)));
        body.steps.push(Some(step));
    }

    fn control(&mut self, control: Control) {
        let outs: Vec<GraphVar> = control.outs().into_iter().cloned().collect();
        self.add(&outs, BodyStep::Control(control));
    }

    /// Whether there is anything but calls of tensor functions.
    pub(super) fn has_control(&self) -> bool {
        let steps = self.bodies.iter().flat_map(|b| b.steps.iter().flatten());
        steps.into_iter().any(|s| matches!(s, BodyStep::Control(_)))
    }

    /// Starts a body.
    pub(crate) fn open_body(&mut self) {
        let number = self.numbered;
        self.numbered += 1;
        self.bodies.push(OpenBody { number, ..OpenBody::default() });
    }

    /// Ends the body that was started last.
    ///
    /// # Errors
    /// Those of making open sizes data.
    pub(crate) fn close_body(&mut self, results: &[Imported]) -> Result<Nested> {
        let results = results.iter().map(|v| self.as_data(v)).collect::<Result<_>>()?;
        let body = self.bodies.pop().ok_or_else(|| Error::internal("no body is open"))?;
        Ok(Nested { steps: body.steps, results, sizes: body.sizes })
    }

    /// How many bodies are being built.
    pub(crate) fn depth(&self) -> usize {
        self.bodies.len()
    }

    /// Forgets all bodies but so many.
    pub(crate) fn drop_bodies(&mut self, depth: usize) {
        self.bodies.truncate(depth);
    }

    /// A size in a range of which nothing else is said yet; known in the body that is being built.
    fn new_size(&mut self, name: &str, range: SizeRange) -> Dim {
        // Functions are found by the text of their parameters, so no two have one name.
        self.sized += 1;
        let name = format!("{}_{}", identifier(name), self.sized);
        let var = Var::size(name, DType::I64, range);
        if let Some(body) = self.bodies.last_mut() {
            body.sizes.push(var.clone());
        }
        self.decided.insert(var.clone());
        Dim::open(&var)
    }

    /// The elements of a list of integers as sizes, from here on.
    pub(crate) fn sizes_of(&mut self, list: &Imported, count: usize) -> Result<Vec<Dim>> {
        self.sizes_within(list, count, SizeRange::WITH_ZERO)
    }

    /// The only element of a list as a size that is at least 1, from here on: no tensor that has it may be without
    /// elements.
    pub(crate) fn positive_size_of(&mut self, list: &Imported) -> Result<Dim> {
        let sizes = self.sizes_within(list, 1, SizeRange::ALL)?;
        sizes.first().copied().ok_or_else(|| Error::internal("a size that data decide is none"))
    }

    /// The elements of a list of integers as sizes in a range, from here on.
    fn sizes_within(
        &mut self,
        list: &Imported,
        count: usize,
        range: SizeRange,
    ) -> Result<Vec<Dim>> {
        // The same list says the same sizes.
        let known = list.var().and_then(|v| self.sizes_by_list.get(&v.id()));
        if let Some((body, sizes)) = known
            && sizes.len() == count
            && self.is_open_body(*body)
        {
            return Ok(sizes.clone());
        }
        let name = identifier(&self.hint);
        let sizes: Vec<Dim> = (0..count)
            .map(|k| match self.expected_size(list, k, range) {
                Some(size) => size,
                None if count == 1 => self.new_size(&name, range),
                None => self.new_size(&format!("{name}_{k}"), range),
            })
            .collect();
        let shape = sizes.iter().map(|d| d.wide()).collect();
        let of = self.as_data(list)?;
        let var = GraphVar::new(format!("{name}_sizes"), GraphType::Shape(shape));
        if let (Some(list), Some(body)) = (list.var(), self.bodies.last()) {
            self.sizes_by_list.insert(list.id(), (body.number, sizes.clone()));
        }
        let why = Attr::Str(format!("{} takes sizes from it", self.node).into());
        self.control(Control::Sizes { of, var, attrs: Attrs::from([(WHY.into(), why)]) });
        Ok(sizes)
    }

    /// Whether a body is being built, so that what it defines is known here.
    pub(super) fn is_open_body(&self, number: usize) -> bool {
        self.bodies.iter().any(|b| b.number == number)
    }

    /// Whether data decide a size, or a part of it.
    pub(crate) fn is_decided(&self, d: Dim) -> bool {
        d.vars().iter().any(|v| self.decided.contains(v))
    }

    /// An input whose sizes are written as the multiples that they must be, which a run checks.
    ///
    /// # Errors
    /// Those of making open sizes data.
    pub(crate) fn divided(&mut self, input: Imported) -> Result<Imported> {
        let mut why: Vec<Arc<str>> = Vec::new();
        for v in input.shape().iter().flat_map(|d| d.vars()) {
            let Some((n, reason)) = self.facts.multiple(&v) else { continue };
            if !why.contains(&reason) {
                why.push(reason);
            }
            if !self.facts.is_divided(&v) {
                self.hint = format!("{}_{n}", v.name());
                let count = sizes::list(&[Dim::open(&v).floordiv(n)])?;
                let part = self.part_of(&count)?;
                self.facts.divide(&v, n, part);
            }
        }
        let shape = input.shape().iter().map(|d| self.facts.in_parts(*d)).collect();
        // Errors name the input.
        if let Imported::Var { var, .. } = &input {
            self.hint = var.name().to_string();
        }
        Ok(self.with_shape(&input, shape, Some(why.join("; ").into())))
    }

    /// The one element of a list as a size that an input decides.
    fn part_of(&mut self, list: &Imported) -> Result<Dim> {
        let sizes = self.sizes_of(list, 1)?;
        for v in sizes[0].vars() {
            self.decided.remove(&v);
        }
        Ok(sizes[0])
    }

    /// Two operands of a broadcast, where data decide sizes of one that the other has otherwise: they
    /// are taken to be equal, and the run ends where they are not.
    pub(crate) fn fitted(&mut self, x: &Imported, y: &Imported) -> (Imported, Imported) {
        let (mut a, mut b) = (x.shape(), y.shape());
        for (a, b) in a.iter_mut().rev().zip(b.iter_mut().rev()) {
            if *a != 1 && *b != 1 {
                self.agree(a, b);
            }
        }
        (self.with_shape(x, a, None), self.with_shape(y, b, None))
    }

    /// Two values that must have the same extents along their first axes, so many of them, as in
    /// [`Builder::fitted`].
    pub(crate) fn alike(&mut self, x: &Imported, y: &Imported, axes: usize) -> [Imported; 2] {
        let (mut a, mut b) = (x.shape(), y.shape());
        a.iter_mut().zip(&mut b).take(axes).for_each(|(a, b)| self.agree(a, b));
        [self.with_shape(x, a, None), self.with_shape(y, b, None)]
    }

    /// Of two extents that must be equal, one that data decide becomes the other.
    fn agree(&self, a: &mut Dim, b: &mut Dim) {
        if self.is_decided(*b) {
            *b = *a;
        } else if self.is_decided(*a) {
            *a = *b;
        }
    }

    /// A value of another shape, which a run sees to; where it does not fit, the run ends with the reason
    /// why it has to, or with what the node needs.
    pub(crate) fn with_shape(
        &mut self,
        value: &Imported,
        shape: Vec<Dim>,
        why: Option<Arc<str>>,
    ) -> Imported {
        let old = value.shape();
        if !matches!(value, Imported::Var { .. }) || old == shape {
            return value.clone();
        }
        let why = why.unwrap_or_else(|| {
            let pairs = old.iter().zip(&shape).filter(|(a, b)| a != b);
            let pairs: Vec<String> = pairs.map(|(a, b)| format!("`{a}` and `{b}`")).collect();
            format!("{} needs {} to be equal", self.node, pairs.join(", ")).into()
        });
        let known: Vec<Option<Dim>> = shape.into_iter().map(Some).collect();
        let (out, cast) = self.tensor_var(value.dtype(), &known);
        self.cast(value.clone(), out, Attrs::from([(WHY.into(), Attr::Str(why))]));
        cast
    }

    /// The value with names for those of its sizes that are long expressions: what is computed of a size would
    /// repeat it, and grow with each step. The same expression has the same name.
    pub(super) fn with_short_sizes(&mut self, value: Imported) -> Imported {
        let Imported::Var { shape, dtype, .. } = &value else { return value };
        if !shape.iter().any(|d| is_long(*d)) {
            return value;
        }
        let (body, dtype) = (self.bodies.last().map_or(0, |b| b.number), *dtype);
        let mut short = Vec::with_capacity(shape.len());
        for (axis, d) in shape.iter().enumerate() {
            let named = self.named.get(d).filter(|(body, _)| self.is_open_body(*body));
            let named = named.map(|(_, name)| *name);
            short.push(match named {
                _ if !is_long(*d) => *d,
                Some(name) => name,
                None => {
                    let name =
                        self.new_size(&format!("{}_{axis}", identifier(&self.hint)), d.range());
                    self.named.insert(*d, (body, name));
                    name
                }
            });
        }
        let (out, cast) = self.tensor_var(dtype, &short.into_iter().map(Some).collect::<Vec<_>>());
        self.cast(value, out, Attrs::new());
        cast
    }

    /// Says of a value that it has the type of a variable.
    fn cast(&mut self, of: Imported, out: GraphVar, attrs: Attrs) {
        self.control(Control::Call { op: MATCH_CAST, attrs, args: vec![of], out });
    }

    /// A new variable of a tensor, in whose shape missing extents are sizes that its value brings.
    fn tensor_var(&mut self, dtype: DType, shape: &[Option<Dim>]) -> (GraphVar, Imported) {
        let name = identifier(&self.hint);
        let shape: Vec<Dim> = shape
            .iter()
            .enumerate()
            .map(|(k, d)| {
                d.unwrap_or_else(|| self.new_size(&format!("{name}_{k}"), SizeRange::WITH_ZERO))
            })
            .collect();
        Imported::var_of(&name, Operand { shape, dtype })
    }

    /// A new variable for a value like this one.
    fn var_like(&mut self, like: &Like) -> (GraphVar, Imported) {
        match like {
            Like {
                kind: Kind::Tensor,
                element: Element { dtype: Some(d), shape: Some(s), .. },
            } => self.tensor_var(*d, s),
            what => {
                let var = GraphVar::new(identifier(&self.hint), object());
                (var.clone(), Imported::Item { var, what: what.clone() })
            }
        }
    }

    /// Variables for the parameters of a body.
    pub(crate) fn params(&mut self, kinds: &[Like]) -> (Vec<GraphVar>, Vec<Imported>) {
        kinds.iter().map(|kind| self.var_like(kind)).unzip()
    }

    /// A list operator whose result is a list or an optional.
    pub(crate) fn list(
        &mut self,
        op: ListOp,
        args: &[Imported],
        attrs: Attrs,
        kind: Kind,
        element: Element,
    ) -> Result<Imported> {
        let args = args.iter().map(|v| self.as_data(v)).collect::<Result<_>>()?;
        let (out, value) = self.var_like(&Like { kind, element });
        self.control(Control::Call { op: op.name(), attrs, args, out });
        Ok(value)
    }

    /// A list operator whose result is a tensor.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where its type or number of dimensions is not known.
    pub(crate) fn out_of_list(
        &mut self,
        op: ListOp,
        args: &[Imported],
        attrs: Attrs,
        element: &Element,
    ) -> Result<Imported> {
        let (Some(dtype), Some(shape)) = (element.dtype, &element.shape) else {
            return Err(Error::unsupported(
                "the type and the number of dimensions of what is taken from it are not known",
            ));
        };
        let args = args.iter().map(|v| self.as_data(v)).collect::<Result<_>>()?;
        let plain = GraphVar::new(identifier(&self.hint), object());
        self.control(Control::Call { op: op.name(), attrs, args, out: plain.clone() });
        let (out, value) = self.tensor_var(dtype, shape);
        let what = Like { kind: Kind::List, element: Element::default() };
        let of = Imported::Item { var: plain, what };
        self.cast(of, out, Attrs::new());
        Ok(value)
    }

    /// Branches; their values come back.
    pub(crate) fn branches(
        &mut self,
        cond: &Imported,
        then: Nested,
        otherwise: Nested,
        kinds: &[Like],
    ) -> Result<Vec<Imported>> {
        let cond = self.as_data(cond)?;
        let (outs, values) = self.params(kinds);
        self.control(Control::If { cond, then, otherwise, outs });
        Ok(values)
    }

    /// A loop; its carried and its stacked values come back.
    pub(crate) fn graph_loop(
        &mut self,
        given: LoopGiven,
        body: Nested,
        kinds: &[Like],
    ) -> Result<Vec<Imported>> {
        let mut data = |v: &Imported| self.as_data(v);
        let trip = given.trip.as_ref().map(&mut data).transpose()?;
        let cond = given.cond.as_ref().map(&mut data).transpose()?;
        let carried = given.carried.iter().map(data).collect::<Result<_>>()?;
        let given = LoopGiven { trip, cond, carried, params: given.params };
        let (outs, values) = self.params(kinds);
        self.control(Control::Loop { given, body, outs });
        Ok(values)
    }
}
