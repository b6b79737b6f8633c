//! Recurrent networks: loops over time around products and gates.

use tilewright_driver::DType;
use tilewright_ops::elementwise::Unary;
use tilewright_ops::recurrent::{Activation, Cell, Direction, Recurrent, recurrent};

use super::check;

const CELLS: [Cell; 5] = [
    Cell::Rnn,
    Cell::Gru { reset_after: false },
    Cell::Gru { reset_after: true },
    Cell::Lstm { coupled: false },
    Cell::Lstm { coupled: true },
];

/// A network in both directions with everything that an option asks for.
fn network(cell: Cell, hidden: usize, full: bool) -> Recurrent {
    let [sigmoid, tanh] = [Unary::Sigmoid, Unary::Tanh].map(Activation::Unary);
    let activations = match cell {
        Cell::Rnn => vec![tanh],
        Cell::Gru { .. } => vec![sigmoid, tanh],
        Cell::Lstm { .. } => vec![sigmoid, tanh, tanh],
    };
    let direction = |backward| Direction { backward, activations: activations.clone() };
    let lstm = matches!(cell, Cell::Lstm { .. });
    Recurrent {
        cell,
        dtype: if full { DType::F64 } else { DType::F32 },
        steps: 5.into(),
        batch: 2.into(),
        hidden,
        directions: [false, true].map(direction).to_vec(),
        batch_first: full,
        clip: full.then_some(1.5),
        reset_bias: full && cell == Cell::Gru { reset_after: true },
        fed_back: true,
        initial: full,
        initial_cell: full && lstm,
        peepholes: full && lstm,
        lengths: full.then_some(DType::I32),
    }
}

#[test]
fn networks_run_natively() {
    for cell in CELLS {
        for hidden in [1, 3, 4, 9, 16, 33] {
            for full in [false, true] {
                let p = network(cell, hidden, full);
                check(&format!("{cell:?} of {hidden}, {full}"), recurrent(&p));
            }
        }
    }
}
