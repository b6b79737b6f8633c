//! LSTM whose products are of integers: weights are quantised in the model, inputs and states when it
//! runs.
//!
//! The inputs of all steps have one scale, and so has the state before each step. The products are
//! those of `MatMulInteger`; the gates are those of an LSTM of one step, to which the sums are given.
//! An example that has ended keeps its state, which counts for the scale of the others.

use tilewright_ir::{DType, Dim, Error, Result, Tensor};
use tilewright_ops::recurrent::{Cell, Direction, Recurrent, recurrent};

use super::compose::{Compose, int};
use super::recurrent::{activations, backward};
use crate::graphs::{Graphs, Stop};
use crate::imported::Imported;
use crate::node::Node;
use crate::operator::{Operator, WithGraphs, op};
use crate::ops::nested::{Repeat, looped};
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

/// `com.microsoft.DynamicQuantizeLSTM`.
fn lstm<'a>(importer: &mut dyn Graphs<'a>, node: &Node<'a>) -> Result<Vec<Imported>, Stop> {
    let (x, w, r) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let &[steps, batch, features] = &x.shape()[..] else {
        return Err(Error::model("the data do not have three axes").into());
    };
    let backward = backward(node)?;
    let directions = backward.len();
    let hidden = match r.fixed(node)?[..] {
        [count, hidden, width] if count == directions && width == 4 * hidden => hidden,
        _ => {
            return Err(Error::model(format!(
                "the recurrent weights have the shape {:?}, for {directions} directions of 4 gates",
                r.shape()
            ))
            .into());
        }
    };
    let said = node.int("hidden_size")?;
    if said.is_some_and(|said| usize::try_from(said) != Ok(hidden)) {
        return Err(Error::model(format!("the weights are for {hidden} elements")).into());
    }
    let width = 4 * hidden;
    let [each, columns, elements] = [directions, width, hidden].map(Dim::from);
    if w.shape() != [each, features, columns] {
        return Err(Error::model(format!("the weights have the shape {:?}", w.shape())).into());
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
    let (initial, initial_cell, peepholes) = (node.optional(5), node.optional(6), node.optional(7));
    for (what, value, shape) in [
        ("B", bias, vec![each, (2 * width).into()]),
        ("initial_h", initial, vec![each, batch, elements]),
        ("initial_c", initial_cell, vec![each, batch, elements]),
        ("P", peepholes, vec![each, (3 * hidden).into()]),
    ] {
        if value.is_some_and(|v| v.shape() != shape || v.dtype() != DType::F32) {
            return Err(Error::model(format!("the input `{what}` is not float32 {shape:?}")).into());
        }
    }
    let coupled = node.flag("input_forget", false)?;
    let cell = Cell::Lstm { coupled };
    let all = activations(node, &["Sigmoid", "Tanh", "Tanh"], directions)?;
    let clip = node.float("clip")?.map(f64::from);

    let mut results: [Vec<Imported>; 3] = Default::default();
    for (d, backward) in backward.into_iter().enumerate() {
        let mut c = Compose::new(node, importer.builder());
        let single = Dim::from(1);
        let part = |c: &mut Compose, v: &Imported| c.slice(v, 0, d, d + 1);
        let rows = c.reshape(x, &[steps * batch, features])?;
        let own = of_inputs.of(&mut c, d)?;
        let mut sums = product(&mut c, &rows, &own)?;
        if let Some(bias) = bias {
            let bias = part(&mut c, bias)?;
            let bias = c.reshape(&bias, &[2, width])?;
            let bias = c.reduce("ReduceSum", &bias, &[0], false)?;
            sums = c.op("Add", &[&sums, &bias])?;
        }
        let sums = c.reshape(&sums, &[steps, batch, columns])?;
        let state = |c: &mut Compose, v: Option<&Imported>| match v {
            Some(v) => part(c, v),
            None => {
                let zero = c.number(DType::F32, 0.0)?;
                c.expand(&zero, &[single, batch, elements])
            }
        };
        let carried = vec![state(&mut c, initial)?, state(&mut c, initial_cell)?];
        let peepholes = peepholes.map(|p| part(&mut c, p)).transpose()?;
        let recurrent_weights = of_state.of(&mut c, d)?;
        let none = c.numbers(DType::F32, &[1, hidden, width], &vec![0.0; hidden * width])?;
        let lengths = lengths.map(|l| c.cast(l, DType::I64)).transpose()?;
        let params = Recurrent {
            cell,
            dtype: DType::F32,
            steps: single,
            batch,
            hidden,
            directions: vec![Direction {
                backward: false,
                activations: all[d * cell.activations()..][..cell.activations()].to_vec(),
            }],
            batch_first: false,
            clip,
            reset_bias: false,
            initial: true,
            initial_cell: true,
            peepholes: peepholes.is_some(),
            lengths: None,
        };
        let trip = sizes::value(&[], vec![steps.into()], DType::I64)?;
        let given = Repeat { trip: Some(trip), cond: None, carried };
        let mut made = looped(importer, given, |importer, iteration, carried| {
            let [h, cell] = carried else {
                return Err(Error::internal("a state has two parts").into());
            };
            let mut c = Compose::new(node, importer.builder());
            let step = match backward {
                false => iteration.clone(),
                true => {
                    let one = c.number(DType::I64, 1.0)?;
                    let last = c.size(steps)?;
                    let last = c.op("Sub", &[&last, &one])?;
                    c.op("Sub", &[&last, iteration])?
                }
            };
            let own = c.with("Gather", &[&sums, &step], [int("axis", 0)])?;
            let before = c.reshape(h, &[batch, elements])?;
            let fed_back = product(&mut c, &before, &recurrent_weights)?;
            let gates = c.op("Add", &[&own, &fed_back])?;
            let mut args = vec![gates, none.clone(), h.clone(), cell.clone()];
            args.extend(peepholes.clone());
            let next = c.b.call_many("lstm", &params, &args, || recurrent(&params))?;
            let [_, next_h, next_cell] = &next[..] else {
                return Err(Error::internal("an LSTM has three results").into());
            };
            let (mut next_h, mut next_cell) = (next_h.clone(), next_cell.clone());
            let mut y = next_h.clone();
            if let Some(lengths) = &lengths {
                // Behind the end of an example its state stays, and its results are zero.
                let inside = c.op("Less", &[&step, lengths])?;
                let inside = c.reshape(&inside, &[single, batch, single])?;
                let zero = c.number(DType::F32, 0.0)?;
                y = c.op("Where", &[&inside, &next_h, &zero])?;
                next_h = c.op("Where", &[&inside, &next_h, h])?;
                next_cell = c.op("Where", &[&inside, &next_cell, cell])?;
            }
            let go = Imported::Const(Tensor::from_bools(&[], &[true])?);
            Ok((go, vec![next_h, next_cell], vec![y]))
        })?
        .into_iter();
        let (Some(h), Some(cell), Some(mut y)) = (made.next(), made.next(), made.next()) else {
            return Err(Error::internal("a loop has three results").into());
        };
        if backward {
            let mut c = Compose::new(node, importer.builder());
            let [from, to, axes, by] = [-1, i64::MIN + 1, 0, -1]
                .map(|n| Tensor::from_slice(&[1], &[n]).map(Imported::Const));
            y = c.op("Slice", &[&y, &from?, &to?, &axes?, &by?])?;
        }
        results[0].push(y);
        results[1].push(h);
        results[2].push(cell);
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
