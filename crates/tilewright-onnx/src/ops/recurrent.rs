//! LSTM, GRU and RNN.
//!
//! The inputs of all steps are multiplied with the weights of all gates and directions at once, by
//! one `gemm`; the rest is one function with a loop over the steps.

use tilewright_ir::{DType, Dim, Error, Result};
use tilewright_ops::elementwise::Unary;
use tilewright_ops::recurrent::{Activation, Cell, Direction, Recurrent, recurrent};

use super::compose::{Compose, int};
use crate::build::Builder;
use crate::imported::Imported;
use crate::node::Node;
use crate::operator::{Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] =
    &[op("GRU", 7, 6, gru), op("LSTM", 7, 8, lstm), op("RNN", 7, 6, rnn)];

pub(crate) fn rnn(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    network(node, b, Cell::Rnn, &["Tanh"])
}

pub(crate) fn gru(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let reset_after = node.flag("linear_before_reset", false)?;
    network(node, b, Cell::Gru { reset_after }, &["Sigmoid", "Tanh"])
}

pub(crate) fn lstm(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let coupled = node.flag("input_forget", false)?;
    network(node, b, Cell::Lstm { coupled }, &["Sigmoid", "Tanh", "Tanh"])
}

/// The activations of all directions, in order. The lists of parameters hold values for those that
/// take some, in the same order.
pub(crate) fn activations(
    node: &Node,
    defaults: &[&str],
    directions: usize,
) -> Result<Vec<Activation>> {
    let names = match node.texts("activations")? {
        Some(names) if names.len() != defaults.len() * directions => {
            return Err(Error::model(format!(
                "there are {} activations, where {directions} x {} are needed",
                names.len(),
                defaults.len()
            )));
        }
        Some(names) => names,
        None => defaults.repeat(directions).iter().map(|s| (*s).to_owned()).collect(),
    };
    let mut alphas = node.floats("activation_alpha")?.unwrap_or_default().into_iter();
    let mut betas = node.floats("activation_beta")?.unwrap_or_default().into_iter();
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let mut alpha = |default: f32| f64::from(alphas.next().unwrap_or(default));
        let mut beta = |default: f32| f64::from(betas.next().unwrap_or(default));
        found.push(match name.to_ascii_lowercase().as_str() {
            "relu" => Activation::Unary(Unary::Relu),
            "tanh" => Activation::Unary(Unary::Tanh),
            "sigmoid" => Activation::Unary(Unary::Sigmoid),
            "softsign" => Activation::Unary(Unary::Softsign),
            "softplus" => Activation::Unary(Unary::Softplus),
            "leakyrelu" => Activation::Unary(Unary::LeakyRelu { alpha: alpha(0.01) }),
            "thresholdedrelu" => Activation::Unary(Unary::ThresholdedRelu { alpha: alpha(1.0) }),
            "elu" => Activation::Unary(Unary::Elu { alpha: alpha(1.0) }),
            "hardsigmoid" => {
                Activation::Unary(Unary::HardSigmoid { alpha: alpha(0.2), beta: beta(0.5) })
            }
            "affine" => Activation::Affine { alpha: alpha(1.0), beta: beta(0.0) },
            "scaledtanh" => Activation::ScaledTanh { alpha: alpha(1.0), beta: beta(1.0) },
            _ => {
                return Err(node.unsupported_value(
                    "activations",
                    name,
                    "Affine, Elu, HardSigmoid, LeakyRelu, Relu, ScaledTanh, Sigmoid, Softplus, \
                     Softsign, Tanh, ThresholdedRelu",
                ));
            }
        });
    }
    Ok(found)
}

/// For each direction of a node, whether its steps run from the last to the first.
pub(crate) fn backward(node: &Node) -> Result<Vec<bool>> {
    match node.text_or("direction", "forward")? {
        "forward" => Ok(vec![false]),
        "reverse" => Ok(vec![true]),
        "bidirectional" => Ok(vec![false, true]),
        other => {
            let all = "forward, reverse, bidirectional";
            Err(node.unsupported_value("direction", other, all))
        }
    }
}

/// Refuses an operand of another shape or type.
fn demand(what: &str, value: &Imported, shape: &[Dim], dtype: DType) -> Result<()> {
    match value.shape() == shape && value.dtype() == dtype {
        true => Ok(()),
        false => Err(Error::model(format!(
            "the input `{what}` must be {dtype}{shape:?}, but is {}{:?}",
            value.dtype(),
            value.shape()
        ))),
    }
}

/// The operands of a recurrent network, which fit one another.
struct Operands<'n> {
    x: &'n Imported,
    w: &'n Imported,
    r: &'n Imported,
    bias: Option<&'n Imported>,
    lengths: Option<&'n Imported>,
    initial: Option<&'n Imported>,
    initial_cell: Option<&'n Imported>,
    peepholes: Option<&'n Imported>,
    batch_first: bool,
    steps: Dim,
    batch: Dim,
    features: Dim,
    hidden: usize,
    /// Rows of the weights in each direction: those of all gates.
    width: usize,
    /// Whether each direction runs backward.
    backward: Vec<bool>,
}

impl<'n> Operands<'n> {
    fn of(node: &'n Node, cell: Cell) -> Result<Operands<'n>> {
        let (x, w, r) = (node.input(0)?, node.input(1)?, node.input(2)?);
        let (&[first, second, features], &[count, width, _]) =
            (&x.shape()[..], &w.fixed(node)?[..])
        else {
            return Err(Error::model(format!(
                "the data have the shape {:?}, the weights {:?}; both must have three axes",
                x.shape(),
                w.shape()
            )));
        };
        let batch_first = node.opset >= 14 && node.flag("layout", false)?;
        let (steps, batch) = if batch_first { (second, first) } else { (first, second) };
        let backward = backward(node)?;
        let directions = backward.len();
        let gates = match cell {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm { .. } => 4,
        };
        let hidden = r.fixed(node)?.last().copied().unwrap_or(0);
        if let Some(said) = node.int("hidden_size")?
            && usize::try_from(said) != Ok(hidden)
        {
            return Err(Error::model(format!(
                "attribute `hidden_size` is {said}, but the weights are for {hidden}"
            )));
        }
        if gates * hidden != width || count != directions {
            return Err(Error::model(format!(
                "the weights have the shapes {:?} and {:?}, for {directions} directions of {gates} gates",
                w.shape(),
                r.shape()
            )));
        }
        let (bias, lengths, initial) = (node.optional(3), node.optional(4), node.optional(5));
        let (initial_cell, peepholes) = match cell {
            Cell::Lstm { .. } => (node.optional(6), node.optional(7)),
            Cell::Rnn | Cell::Gru { .. } => (None, None),
        };
        let all = Operands {
            x,
            w,
            r,
            bias,
            lengths,
            initial,
            initial_cell,
            peepholes,
            batch_first,
            steps,
            batch,
            features,
            hidden,
            width,
            backward,
        };
        all.check()?;
        Ok(all)
    }

    /// Refuses operands of other shapes or types.
    fn check(&self) -> Result<()> {
        let given = self.x.dtype();
        let [each, columns, elements] =
            [self.backward.len(), self.width, self.hidden].map(Dim::from);
        demand("W", self.w, &[each, columns, self.features], given)?;
        demand("R", self.r, &[each, columns, elements], given)?;
        let state = match self.batch_first {
            true => vec![self.batch, each, elements],
            false => vec![each, self.batch, elements],
        };
        for (what, value, shape) in [
            ("B", self.bias, vec![each, (2 * self.width).into()]),
            ("initial_h", self.initial, state.clone()),
            ("initial_c", self.initial_cell, state),
            ("P", self.peepholes, vec![each, (3 * self.hidden).into()]),
        ] {
            value.map_or(Ok(()), |v| demand(what, v, &shape, given))?;
        }
        if let Some(lengths) = self.lengths
            && (lengths.shape() != [self.batch] || !lengths.dtype().is_int())
        {
            return Err(Error::model(format!(
                "the input `sequence_lens` must be {} integers, but is {}{:?}",
                self.batch,
                lengths.dtype(),
                lengths.shape()
            )));
        }
        Ok(())
    }

    /// The bias that is added to the products of the inputs, and the one that is left for the inside of the
    /// reset, where the reset comes after its product.
    fn biases(
        &self,
        c: &mut Compose,
        work: DType,
        reset_after: bool,
    ) -> Result<(Option<Imported>, Option<Imported>)> {
        let Some(bias) = self.bias else { return Ok((None, None)) };
        let (hidden, width, directions) = (self.hidden, self.width, self.backward.len());
        let bias = c.cast(bias, work)?;
        let of_inputs = c.slice(&bias, 1, 0, width)?;
        let mut of_state = c.slice(&bias, 1, width, 2 * width)?;
        let mut reset_bias = None;
        if reset_after {
            reset_bias = Some(c.slice(&of_state, 1, 2 * hidden, width)?);
            let outside = c.slice(&of_state, 1, 0, 2 * hidden)?;
            let zeros = vec![0.0; directions * hidden];
            let zeros = c.numbers(work, &[directions, hidden], &zeros)?;
            of_state = c.concat(&[&outside, &zeros], 1)?;
        }
        let sum = c.op("Add", &[&of_inputs, &of_state])?;
        Ok((Some(c.reshape(&sum, &[directions * width])?), reset_bias))
    }
}

/// A network: the products of the inputs of all steps with their weights, and the recurrence over them.
fn network(node: &Node, b: &mut Builder, cell: Cell, defaults: &[&str]) -> Result<Vec<Imported>> {
    let all = Operands::of(node, cell)?;
    let (directions, given) = (all.backward.len(), all.x.dtype());
    let activations = activations(node, defaults, directions)?;
    let clip = node.float("clip")?.map(f64::from);
    // Sums over hundreds of steps are kept in float32 at least.
    let work = if given == DType::F64 { DType::F64 } else { DType::F32 };
    let mut c = Compose::new(node, b);
    let x = c.cast(all.x, work)?;
    let w = c.cast(all.w, work)?;
    let r = c.cast(all.r, work)?;
    let r = c.transpose(&r, &[0, 2, 1])?;
    // Both biases are added outside of the loop, but for the one inside of the reset.
    let reset_after = matches!(cell, Cell::Gru { reset_after: true });
    let (bias, reset_bias) = all.biases(&mut c, work, reset_after)?;
    let rows = c.reshape(&x, &[all.steps * all.batch, all.features])?;
    let weights = c.reshape(&w, &[(directions * all.width).into(), all.features])?;
    let inputs = [Some(&rows), Some(&weights), bias.as_ref()];
    let inputs = if bias.is_some() { &inputs[..] } else { &inputs[..2] };
    let sums = c.all("Gemm", inputs, [int("transB", 1)], 1)?.swap_remove(0);
    let each = activations.chunks(cell.activations());
    let params = Recurrent {
        cell,
        dtype: work,
        steps: all.steps,
        batch: all.batch,
        hidden: all.hidden,
        directions: all
            .backward
            .iter()
            .zip(each)
            .map(|(&backward, own)| Direction { backward, activations: own.to_vec() })
            .collect(),
        batch_first: all.batch_first,
        clip,
        reset_bias: reset_bias.is_some(),
        initial: all.initial.is_some(),
        initial_cell: all.initial_cell.is_some(),
        peepholes: all.peepholes.is_some(),
        lengths: all.lengths.map(Imported::dtype),
    };
    let mut args = vec![sums, r];
    args.extend(reset_bias);
    for value in [all.initial, all.initial_cell, all.peepholes].into_iter().flatten() {
        args.push(c.cast(value, work)?);
    }
    args.extend(all.lengths.cloned());
    let name = match cell {
        Cell::Rnn => "rnn",
        Cell::Gru { .. } => "gru",
        Cell::Lstm { .. } => "lstm",
    };
    let results = c.b.call_many(name, &params, &args, || recurrent(&params))?;
    results.iter().map(|v| c.cast(v, given)).collect()
}
