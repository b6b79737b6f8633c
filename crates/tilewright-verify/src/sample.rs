//! A difference found by running both functions on data, where terms would take long.
//!
//! The interpreter runs both sides on a few sets of small values. Where an element differs, inputs
//! are set to zero as long as some element still differs, so that few of them are left to be shown.

use tilewright_ir::{DType, Function, Module, Tensor};

use tilewright_interp::machine::{Fill, decode, encode};
use tilewright_interp::{Arg, Interpreter, Output, RunOptions, Scalar, State};

use super::verdict::{Difference, Port, VerifyOptions};
use super::witness::{agree, draw, index_text};

/// Sets of data that are tried: whole numbers, then fractions for floats.
const SETS: u64 = 2;

/// Runs of both sides that look for inputs that can be zero, and the steps that they may take.
const ROUNDS: usize = 64;
const SHRINKING: u64 = 20_000_000;

/// Steps of both sides after which there is only one set.
const LONG: u64 = 100_000;

/// Inputs that are listed.
const LISTED: usize = 8;

/// Inputs that show a difference; `None` says nothing.
pub fn find(
    (a, name_a): (&Module, &str),
    (b, name_b): (&Module, &str),
    ports: &[Port],
    options: &VerifyOptions,
) -> Option<Difference> {
    let run = RunOptions {
        uninitialised: options.uninitialised,
        steps: Some(options.steps),
        memory: options.memory.saturating_mul(8),
        ..RunOptions::default()
    };
    let mut pair = Pair {
        first: Side {
            interpreter: Interpreter::new(a, run.clone()).ok()?,
            module: a,
            name: name_a,
        },
        second: Side { interpreter: Interpreter::new(b, run).ok()?, module: b, name: name_b },
        ports,
        reassociate: options.reassociate,
        steps: options.steps,
        taken: 0,
    };
    let mut random = Fill::Random(1);
    for set in 0..SETS {
        let data: Vec<Vec<u64>> = ports
            .iter()
            .map(|p| -> Option<Vec<u64>> {
                let count = p.shape.iter().flatten().try_fold(1usize, |n, d| n.checked_mul(*d))?;
                (count <= options.memory).then_some(())?;
                Some((0..count).map(|_| draw(&mut random, p.dtype, set, true, &[])).collect())
            })
            .collect::<Option<_>>()?;
        if let Some(found) = pair.differs(&data) {
            return Some(pair.shrink(data, found));
        }
        // Where a run takes long, another one would not pay.
        if pair.taken > LONG {
            break;
        }
    }
    None
}

/// An element that differs, and its values; `None` is any value.
struct Found {
    cell: String,
    dtype: DType,
    values: [Option<u64>; 2],
}

/// An element of a result, where it has a value.
fn element(result: &Output, at: usize) -> Option<u64> {
    if result.states.as_ref().and_then(|s| s.get(at)).is_some_and(|s| *s != State::Value) {
        return None;
    }
    let size = result.tensor.dtype().bytes();
    let bytes = result.tensor.bytes().get(at * size..(at + 1) * size)?;
    Some(decode(bytes, result.tensor.dtype()))
}

struct Side<'m> {
    interpreter: Interpreter<'m>,
    module: &'m Module,
    name: &'m str,
}

impl Side<'_> {
    /// Every parameter of a tensor function afterwards and its result, or the results of a graph
    /// function; with the steps that it took, as far as they are counted.
    fn run(&mut self, inputs: &[Tensor]) -> Option<(Vec<Output>, u64)> {
        let Some(Function::Tensor(f)) = self.module.functions.get(self.name) else {
            let mut outputs = self.interpreter.run(self.name, inputs).ok()?;
            outputs.iter_mut().for_each(|o| o.name = format!("result {}", o.param).into());
            return Some((outputs, 1));
        };
        let params = f.split_params().0;
        let args: Vec<Arg> = (params.iter().zip(inputs))
            .map(|(p, t)| match p.buffer() {
                Some(_) => Arg::Tensor(t.clone()),
                None => Arg::Scalar(Scalar::from_bits(decode(t.bytes(), t.dtype()), t.dtype())),
            })
            .collect();
        let outcome = self.interpreter.call(self.name, &args).ok()?;
        let mut results = Vec::new();
        for (i, (p, input)) in params.iter().zip(inputs).enumerate() {
            let Some(buffer) = p.buffer() else { continue };
            let name = format!("`{}`", buffer.name).into();
            results.push(match outcome.outputs.iter().find(|o| o.param == i) {
                Some(written) => Output { name, ..written.clone() },
                None => Output { param: i, name, tensor: input.clone(), states: None },
            });
        }
        if let Some(value) = outcome.ret {
            let mut tensor = Tensor::zeros(value.dtype(), &[]).ok()?;
            encode(value.bits(), tensor.bytes_mut());
            let (param, name) = (params.len(), "the result".into());
            results.push(Output { param, name, tensor, states: None });
        }
        Some((results, outcome.steps))
    }
}

struct Pair<'m> {
    first: Side<'m>,
    second: Side<'m>,
    ports: &'m [Port],
    reassociate: bool,
    /// Steps that may still be taken, and those of the last run of both sides.
    steps: u64,
    taken: u64,
}

impl Pair<'_> {
    /// The first element that differs on some data. There is none where a function stops.
    fn differs(&mut self, data: &[Vec<u64>]) -> Option<Found> {
        let mut inputs = Vec::new();
        for (p, values) in self.ports.iter().zip(data) {
            let mut tensor = Tensor::zeros(p.dtype, p.shape.as_deref().unwrap_or(&[])).ok()?;
            let size = p.dtype.bytes().max(1);
            let cells = tensor.bytes_mut().chunks_exact_mut(size);
            cells.zip(values).for_each(|(bytes, value)| encode(*value, bytes));
            inputs.push(tensor);
        }
        let (left, first) = self.first.run(&inputs)?;
        let (right, second) = self.second.run(&inputs)?;
        self.taken = first.saturating_add(second);
        self.steps = self.steps.checked_sub(self.taken)?;
        let only = left.len() == 1;
        for (x, y) in left.iter().zip(&right) {
            let dtype = x.tensor.dtype();
            if dtype != y.tensor.dtype() || x.tensor.shape() != y.tensor.shape() {
                return None;
            }
            for at in 0..x.tensor.len() {
                let values = [element(x, at), element(y, at)];
                let same = match values {
                    [None, _] => true,
                    [Some(_), None] => false,
                    [Some(x), Some(y)] => agree(x, y, dtype, self.reassociate),
                };
                if !same {
                    let index = index_text(at, x.tensor.shape());
                    let numbered = x.name.starts_with("result ");
                    let name = if only && numbered { "the result" } else { &*x.name };
                    return Some(Found { cell: format!("{name}{index}"), dtype, values });
                }
            }
        }
        None
    }

    /// Sets inputs to zero while a difference stays, in parts of half the size each time.
    fn shrink(&mut self, mut data: Vec<Vec<u64>>, mut found: Found) -> Difference {
        let places = data.iter().enumerate().flat_map(|(i, values)| {
            values.iter().enumerate().filter(|(_, v)| **v != 0).map(move |(at, _)| (i, at))
        });
        let mut kept: Vec<(usize, usize)> = places.collect();
        let (mut parts, mut rounds) = (2, ROUNDS);
        self.steps = self.steps.min(SHRINKING);
        if self.taken > self.steps {
            rounds = 0;
        }
        while kept.len() > 1 && parts <= 2 * kept.len() && rounds > 0 {
            let size = kept.len().div_ceil(parts);
            let mut smaller = None;
            for start in (0..kept.len()).step_by(size) {
                let end = kept.len().min(start + size);
                // A part alone; where there are more than two, also all but a part.
                let (inside, outside) =
                    (&kept[start..end], [&kept[..start], &kept[end..]].concat());
                for rest in [inside.to_vec(), outside].into_iter().take(parts.min(3) - 1) {
                    let Some(left) = rounds.checked_sub(1) else { break };
                    rounds = left;
                    let mut tried: Vec<Vec<u64>> = data.iter().map(|v| vec![0; v.len()]).collect();
                    for &(i, at) in &rest {
                        tried[i][at] = data[i][at];
                    }
                    if let Some(now) = self.differs(&tried) {
                        smaller = Some((rest, tried, now));
                        break;
                    }
                }
                if smaller.is_some() || rounds == 0 {
                    break;
                }
            }
            match smaller {
                Some((rest, tried, now)) => {
                    (kept, data, found) = (rest, tried, now);
                    parts = 2;
                }
                None => parts *= 2,
            }
        }
        let inputs = if kept.len() <= LISTED {
            let rest = ("all else".to_owned(), "0".to_owned());
            kept.iter().filter_map(|cell| self.listed(cell, &data)).chain([rest]).collect()
        } else {
            vec![("all inputs".to_owned(), "small random numbers".to_owned())]
        };
        let values = found.values.map(|v| match v {
            Some(bits) => Scalar::from_bits(bits, found.dtype).to_string(),
            None => "any value".to_owned(),
        });
        Difference { cell: found.cell.clone(), terms: values.clone(), values, inputs }
    }

    fn listed(&self, &(i, at): &(usize, usize), data: &[Vec<u64>]) -> Option<(String, String)> {
        let (p, bits) = (self.ports.get(i)?, data.get(i)?.get(at)?);
        let index = index_text(at, p.shape.as_deref().unwrap_or(&[]));
        let value = Scalar::from_bits(*bits, p.dtype).to_string();
        Some((format!("{}{index}", p.name), value))
    }
}
