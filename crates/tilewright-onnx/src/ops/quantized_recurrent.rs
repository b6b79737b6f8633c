//! LSTM whose products are of integers: weights are quantised in the model, inputs and states when it
//! runs.
//!
//! The inputs of all steps have one scale, and so has the state before each step. The products are
//! those of `MatMulInteger`; the gates are those of an LSTM of one step, to which the sums are given.
//! An example that has ended keeps its state, which counts for the scale of the others.

use tilewright_ir::{DType, Dim, Error, Result};
use tilewright_ops::recurrent::{Activation, Cell, Direction, Recurrent, recurrent};

use super::compose::{Compose, int};
use super::recurrent::{activations, backward};
use crate::graphs::{Graphs, Stop};
use crate::imported::Imported;
use crate::node::Node;
use crate::operator::{Operator, WithGraphs, op};
use crate::ops::nested::{Repeat, always, looped};
use crate::sizes;

/// Of `com.microsoft`; its loop is imported as one.
pub(crate) static WITH_GRAPHS: &[Operator<WithGraphs>] = &[op("DynamicQuantizeLSTM", 9, 12, lstm)];

/// Quantised weights: `[directions, rows, columns]`, with a scale and a zero point for each direction,
/// or for each column of it.
struct Weights<'n> {
    values: &'n Imported,
    scale: &'n Imported,
    zero: &'n Imported,
}

impl Weights<'_> {
    /// The part of one direction.
    fn of(&self, c: &mut Compose, direction: usize) -> Result<[Imported; 3]> {
        let mut part = |x: &Imported| -> Result<Imported> {
            let one = c.slice(x, 0, direction, direction + 1)?;
            let shape: Vec<Dim> = one.shape()[1..].to_vec();
            c.reshape(&one, &shape)
        };
        Ok([part(self.values)?, part(self.scale)?, part(self.zero)?])
    }
}

/// `x W`, where `x` is quantised by its largest and smallest element.
fn product(c: &mut Compose, x: &Imported, weights: &[Imported; 3]) -> Result<Imported> {
    let [w, scale, zero] = weights;
    let quantised = c.all("DynamicQuantizeLinear", &[Some(x)], [], 3)?;
    let [q, x_scale, x_zero] = &quantised[..] else {
        return Err(Error::internal("a quantised value has three parts"));
    };
    let sums = c.op("MatMulInteger", &[q, w, x_zero, zero])?;
    let sums = c.cast(&sums, DType::F32)?;
    let scale = c.op("Mul", &[x_scale, scale])?;
    c.op("Mul", &[&sums, &scale])
}

/// The network of a node.
struct Network<'n> {
    x: &'n Imported,
    /// Of the input, as the sizes below.
    steps: Dim,
    batch: Dim,
    features: Dim,
    hidden: usize,
    /// Whether each direction runs backward.
    backward: Vec<bool>,
    of_inputs: Weights<'n>,
    of_state: Weights<'n>,
    bias: Option<&'n Imported>,
    lengths: Option<&'n Imported>,
    initial: Option<&'n Imported>,
    initial_cell: Option<&'n Imported>,
    peepholes: Option<&'n Imported>,
    cell: Cell,
    /// Those of all directions, one after the other.
    activations: Vec<Activation>,
    clip: Option<f64>,
}

/// What the steps of one direction share.
struct OneDirection {
    backward: bool,
    /// What the inputs give to the gates of each step: `[steps, batch, gates]`.
    sums: Imported,
    weights: [Imported; 3],
    /// The inputs' weights of an LSTM to which sums are given.
    none: Imported,
    peepholes: Option<Imported>,
    lengths: Option<Imported>,
    step: Recurrent,
}

/// `com.microsoft.DynamicQuantizeLSTM`.
fn lstm<'a>(importer: &mut dyn Graphs<'a>, node: &Node<'a>) -> Result<Vec<Imported>, Stop> {
    let network = Network::of(node)?;
    let mut results: [Vec<Imported>; 3] = Default::default();
    for direction in 0..network.backward.len() {
        let made = network.direction(importer, node, direction)?;
        results.iter_mut().zip(made).for_each(|(all, one)| all.push(one));
    }
    let mut c = Compose::new(node, importer.builder());
    let mut joined = Vec::new();
    for (parts, axis) in results.iter().zip([1, 0, 0]) {
        joined.push(match &parts[..] {
            [one] => one.clone(),
            several => c.concat(&several.iter().collect::<Vec<_>>(), axis)?,
        });
    }
    Ok(joined)
}

impl<'n> Network<'n> {
    /// Reads a node, whose inputs must fit one another.
    fn of(node: &'n Node) -> Result<Network<'n>> {
        let (x, w, r) = (node.input(0)?, node.input(1)?, node.input(2)?);
        let &[steps, batch, features] = &x.shape()[..] else {
            return Err(Error::model("the data do not have three axes"));
        };
        let backward = backward(node)?;
        let directions = backward.len();
        let hidden = hidden(node, r, directions)?;
        let width = 4 * hidden;
        let [each, columns, elements] = [directions, width, hidden].map(Dim::from);
        if w.shape() != [each, features, columns] {
            return Err(Error::model(format!("the weights have the shape {:?}", w.shape())));
        }
        let weights = |values, at: usize| -> Result<Weights> {
            let (scale, zero) = (node.input(at)?, node.input(at + 1)?);
            let fits = |v: &Imported| v.shape() == [each] || v.shape() == [each, columns];
            match fits(scale) && fits(zero) {
                true => Ok(Weights { values, scale, zero }),
                false => Err(Error::model(format!(
                    "scale and zero point have the shapes {:?} and {:?}",
                    scale.shape(),
                    zero.shape()
                ))),
            }
        };
        let (of_inputs, of_state) = (weights(w, 8)?, weights(r, 10)?);
        let (bias, lengths) = (node.optional(3), node.optional(4));
        let (initial, initial_cell) = (node.optional(5), node.optional(6));
        let peepholes = node.optional(7);
        for (what, value, shape) in [
            ("B", bias, vec![each, (2 * width).into()]),
            ("initial_h", initial, vec![each, batch, elements]),
            ("initial_c", initial_cell, vec![each, batch, elements]),
            ("P", peepholes, vec![each, (3 * hidden).into()]),
        ] {
            if value.is_some_and(|v| v.shape() != shape || v.dtype() != DType::F32) {
                return Err(Error::model(format!("the input `{what}` is not float32 {shape:?}")));
            }
        }
        let cell = Cell::Lstm { coupled: node.flag("input_forget", false)? };
        let activations = activations(node, &["Sigmoid", "Tanh", "Tanh"], directions)?;
        let clip = node.float("clip")?.map(f64::from);
        Ok(Network {
            x,
            steps,
            batch,
            features,
            hidden,
            backward,
            of_inputs,
            of_state,
            bias,
            lengths,
            initial,
            initial_cell,
            peepholes,
            cell,
            activations,
            clip,
        })
    }

    /// The results of one direction: of all steps, and the state and the cell after the last one.
    fn direction<'a>(
        &self,
        importer: &mut dyn Graphs<'a>,
        node: &Node<'a>,
        at: usize,
    ) -> Result<[Imported; 3], Stop> {
        let mut c = Compose::new(node, importer.builder());
        let sums = self.sums_of_inputs(&mut c, at)?;
        let carried =
            vec![self.state(&mut c, self.initial, at)?, self.state(&mut c, self.initial_cell, at)?];
        let (hidden, width) = (self.hidden, 4 * self.hidden);
        let one = OneDirection {
            backward: self.backward[at],
            sums,
            peepholes: self.peepholes.map(|p| c.slice(p, 0, at, at + 1)).transpose()?,
            weights: self.of_state.of(&mut c, at)?,
            none: c.numbers(DType::F32, &[1, hidden, width], &vec![0.0; hidden * width])?,
            lengths: self.lengths.map(|l| c.cast(l, DType::I64)).transpose()?,
            step: self.one_step(at),
        };
        let trip = sizes::value(&[], vec![self.steps.into()], DType::I64)?;
        let given = Repeat { trip: Some(trip), cond: None, carried };
        let made = looped(importer, given, |importer, iteration, carried| {
            let mut c = Compose::new(node, importer.builder());
            let (next, y) = self.step(&mut c, &one, iteration, carried)?;
            Ok((always()?, next, vec![y]))
        })?;
        let Ok([h, cell, mut y]) = <[Imported; 3]>::try_from(made) else {
            return Err(Error::internal("a loop has three results").into());
        };
        if one.backward {
            y = Compose::new(node, importer.builder()).reversed(&y)?;
        }
        Ok([y, h, cell])
    }

    /// What the inputs of all steps give to the gates of a direction, with the bias.
    fn sums_of_inputs(&self, c: &mut Compose, at: usize) -> Result<Imported> {
        let width = 4 * self.hidden;
        let rows = c.reshape(self.x, &[self.steps * self.batch, self.features])?;
        let own = self.of_inputs.of(c, at)?;
        let mut sums = product(c, &rows, &own)?;
        if let Some(bias) = self.bias {
            let bias = c.slice(bias, 0, at, at + 1)?;
            let bias = c.reshape(&bias, &[2, width])?;
            let bias = c.reduce("ReduceSum", &bias, &[0], false)?;
            sums = c.op("Add", &[&sums, &bias])?;
        }
        c.reshape(&sums, &[self.steps, self.batch, width.into()])
    }

    /// The first state of a direction: the given one, or zeros.
    fn state(&self, c: &mut Compose, given: Option<&Imported>, at: usize) -> Result<Imported> {
        match given {
            Some(v) => c.slice(v, 0, at, at + 1),
            None => {
                let zero = c.number(DType::F32, 0.0)?;
                c.expand(&zero, &[1.into(), self.batch, self.hidden.into()])
            }
        }
    }

    /// An LSTM of one step of a direction.
    fn one_step(&self, at: usize) -> Recurrent {
        let count = self.cell.activations();
        Recurrent {
            cell: self.cell,
            dtype: DType::F32,
            steps: 1.into(),
            batch: self.batch,
            hidden: self.hidden,
            directions: vec![Direction {
                backward: false,
                activations: self.activations[at * count..][..count].to_vec(),
            }],
            batch_first: false,
            clip: self.clip,
            reset_bias: false,
            initial: true,
            initial_cell: true,
            peepholes: self.peepholes.is_some(),
            lengths: None,
        }
    }

    /// A step: the state and the cell after it, and its result.
    fn step(
        &self,
        c: &mut Compose,
        one: &OneDirection,
        iteration: &Imported,
        carried: &[Imported],
    ) -> Result<(Vec<Imported>, Imported)> {
        let [h, cell] = carried else {
            return Err(Error::internal("a state has two parts"));
        };
        let step = match one.backward {
            false => iteration.clone(),
            true => c.counted_back(self.steps, iteration)?,
        };
        let own = c.with("Gather", &[&one.sums, &step], [int("axis", 0)])?;
        let before = c.reshape(h, &[self.batch, self.hidden.into()])?;
        let fed_back = product(c, &before, &one.weights)?;
        let gates = c.op("Add", &[&own, &fed_back])?;
        let mut args = vec![gates, one.none.clone(), h.clone(), cell.clone()];
        args.extend(one.peepholes.clone());
        let next = c.b.call_many("lstm", &one.step, &args, || recurrent(&one.step))?;
        let [_, next_h, next_cell] = &next[..] else {
            return Err(Error::internal("an LSTM has three results"));
        };
        let Some(lengths) = &one.lengths else {
            return Ok((vec![next_h.clone(), next_cell.clone()], next_h.clone()));
        };
        // Behind the end of an example its state stays, and its results are zero.
        let inside = c.op("Less", &[&step, lengths])?;
        let inside = c.reshape(&inside, &[1.into(), self.batch, 1.into()])?;
        let zero = c.number(DType::F32, 0.0)?;
        let y = c.op("Where", &[&inside, next_h, &zero])?;
        let next_h = c.op("Where", &[&inside, next_h, h])?;
        let next_cell = c.op("Where", &[&inside, next_cell, cell])?;
        Ok((vec![next_h, next_cell], y))
    }
}

/// The elements of a state, by the recurrent weights, and by the attribute if there is one.
fn hidden(node: &Node, weights: &Imported, directions: usize) -> Result<usize> {
    let hidden = match weights.fixed(node)?[..] {
        [count, hidden, width] if count == directions && width == 4 * hidden => hidden,
        _ => {
            return Err(Error::model(format!(
                "the recurrent weights have the shape {:?}, for {directions} directions of 4 gates",
                weights.shape()
            )));
        }
    };
    let said = node.int("hidden_size")?;
    match said.is_some_and(|said| usize::try_from(said) != Ok(hidden)) {
        true => Err(Error::model(format!("the weights are for {hidden} elements"))),
        false => Ok(hidden),
    }
}
