//! LSTM whose products are of integers: weights are quantised in the model, inputs and states when it
//! runs.
//!
//! The inputs of all steps have one scale, and so has the state before each step. The products are
//! those of `MatMulInteger`; the gates are those of an LSTM of one step, to which the sums are given.
//! An example that has ended keeps its state, which counts for the scale of the others.

use tilewright_ir::{DType, Dim, Error, Result};
use tilewright_ops::recurrent::{Cell, Direction, Recurrent, recurrent};

use super::compose::{Compose, int};
use super::quantized::dynamic_product;
use super::recurrent::Network;
use crate::graphs::{Graphs, Stop};
use crate::imported::Imported;
use crate::node::Node;
use crate::operator::{Operator, graphs};
use crate::ops::nested::{Repeat, always, looped};
use crate::sizes;

/// Of `com.microsoft`; its loop is imported as one.
pub(crate) static OPERATORS: &[Operator] = &[graphs("DynamicQuantizeLSTM", 9, 12, lstm)];

/// Quantised weights: `[directions, rows, columns]`, with a scale and a zero point for each direction,
/// or for each column of it.
struct Weights<'n> {
    values: &'n Imported,
    scale: &'n Imported,
    zero: &'n Imported,
}

impl Weights<'_> {
    /// The part of one direction.
    fn direction(&self, c: &mut Compose, direction: usize) -> Result<[Imported; 3]> {
        let [values, scale, zero] = [self.values, self.scale, self.zero].map(|x| {
            let one = c.slice(x, 0, direction, direction + 1)?;
            let shape: Vec<Dim> = one.shape()[1..].to_vec();
            c.reshape(&one, &shape)
        });
        Ok([values?, scale?, zero?])
    }
}

/// `x W`, where `x` is quantised by its largest and smallest element.
fn product(c: &mut Compose, x: &Imported, weights: &[Imported; 3]) -> Result<Imported> {
    let [w, scale, zero] = weights;
    dynamic_product(c, x, w, scale, Some(zero))
}

/// A network whose weights are quantised.
struct Quantized<'n> {
    network: Network<'n>,
    of_inputs: Weights<'n>,
    of_state: Weights<'n>,
}

/// What the steps of one direction share.
struct OneDirection {
    backward: bool,
    /// What the inputs give to the gates of each step: `[steps, batch, gates]`.
    sums: Imported,
    weights: [Imported; 3],
    peepholes: Option<Imported>,
    lengths: Option<Imported>,
    step: Recurrent,
}

/// `com.microsoft.DynamicQuantizeLSTM`.
fn lstm<'a>(importer: &mut dyn Graphs<'a>, node: &Node<'a>) -> Result<Vec<Imported>, Stop> {
    let all = Quantized::read(node)?;
    let mut results: [Vec<Imported>; 3] = Default::default();
    for direction in 0..all.network.backward.len() {
        let made = all.direction(importer, node, direction)?;
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

impl<'n> Quantized<'n> {
    /// Reads a node, whose inputs must fit one another.
    fn read(node: &'n Node) -> Result<Quantized<'n>> {
        let cell = Cell::Lstm { coupled: node.flag("input_forget", false)? };
        let network = Network::read(node, cell, true)?;
        let [each, columns] = [network.backward.len(), network.width].map(Dim::from);
        let of_inputs = Weights { values: network.w, scale: node.input(8)?, zero: node.input(9)? };
        let of_state = Weights { values: network.r, scale: node.input(10)?, zero: node.input(11)? };
        for Weights { scale, zero, .. } in [&of_inputs, &of_state] {
            let (scale, zero) = (scale.shape(), zero.shape());
            if [&scale, &zero].iter().any(|s| ***s != [each] && ***s != [each, columns]) {
                return Err(Error::model(format!(
                    "scale and zero point have the shapes {scale:?} and {zero:?}"
                )));
            }
        }
        Ok(Quantized { network, of_inputs, of_state })
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
        let all = &self.network;
        let carried =
            vec![self.state(&mut c, all.initial, at)?, self.state(&mut c, all.initial_cell, at)?];
        let one = OneDirection {
            backward: all.backward[at],
            sums,
            peepholes: all.peepholes.map(|p| c.slice(p, 0, at, at + 1)).transpose()?,
            weights: self.of_state.direction(&mut c, at)?,
            lengths: all.lengths.map(|l| c.cast(l, DType::I64)).transpose()?,
            step: self.one_step(at),
        };
        let trip = sizes::value(&[], vec![all.steps.into()], DType::I64)?;
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
        let all = &self.network;
        let rows = c.reshape(all.x, &[all.steps * all.batch, all.features])?;
        let own = self.of_inputs.direction(c, at)?;
        let mut sums = product(c, &rows, &own)?;
        if let Some(bias) = all.bias {
            let bias = c.slice(bias, 0, at, at + 1)?;
            let bias = c.reshape(&bias, &[2, all.width])?;
            let bias = c.reduce("ReduceSum", &bias, &[0], false)?;
            sums = c.op("Add", &[&sums, &bias])?;
        }
        c.reshape(&sums, &[all.steps, all.batch, all.width.into()])
    }

    /// The first state of a direction: the given one, or zeros.
    fn state(&self, c: &mut Compose, given: Option<&Imported>, at: usize) -> Result<Imported> {
        match given {
            Some(v) => c.slice(v, 0, at, at + 1),
            None => {
                let zero = c.number(DType::F32, 0.0)?;
                c.expand(&zero, &[1.into(), self.network.batch, self.network.hidden.into()])
            }
        }
    }

    /// An LSTM of one step of a direction.
    fn one_step(&self, at: usize) -> Recurrent {
        let all = self.network.parameters(DType::F32, false);
        let direction = Direction { backward: false, ..all.directions[at].clone() };
        Recurrent {
            steps: 1.into(),
            directions: vec![direction],
            fed_back: false,
            initial: false,
            initial_cell: true,
            lengths: None,
            ..all
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
        let step = if one.backward {
            c.counted_back(self.network.steps, iteration)?
        } else {
            iteration.clone()
        };
        let own = c.with("Gather", &[&one.sums, &step], [int("axis", 0)])?;
        let before = c.reshape(h, &[self.network.batch, self.network.hidden.into()])?;
        let fed_back = product(c, &before, &one.weights)?;
        let gates = c.op("Add", &[&own, &fed_back])?;
        let mut args = vec![gates, cell.clone()];
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
        let inside = c.reshape(&inside, &[1.into(), self.network.batch, 1.into()])?;
        let zero = c.number(DType::F32, 0.0)?;
        let y = c.op("Where", &[&inside, next_h, &zero])?;
        let next_h = c.op("Where", &[&inside, next_h, h])?;
        let next_cell = c.op("Where", &[&inside, next_cell, cell])?;
        Ok((vec![next_h, next_cell], y))
    }
}
