//! Running a program over pieces: branches, loops, lists, and sizes that are found on the way.
//!
//! Values lie in registers and go when nothing reads them any more. Each piece has plans and arenas of
//! its own, as any executable has, so that iterations of the same sizes allocate nothing but results.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::plan::OpenStep;
use crate::plan::program::{Block, Operation, Program, Register, Slot, What};
use tilewright_ir::list::{self, Item};
use tilewright_ir::{Dim, Error, Result, Tensor, Var};

use crate::calls::Calls;

/// A program, and its pieces.
pub(crate) struct ControlExecutor {
    program: Program,
    pieces: Vec<Calls>,
}

struct Run<'m> {
    executor: &'m ControlExecutor,
    registers: Vec<Item>,
    sizes: Vec<Option<usize>>,
    /// Where it is added up how long each step of each piece takes.
    times: Option<&'m mut [Duration]>,
}

impl ControlExecutor {
    /// Checks that the program names what is there.
    pub(crate) fn new(program: Program, pieces: Vec<Calls>) -> Result<ControlExecutor> {
        let executor = ControlExecutor { program, pieces };
        executor.check(&executor.program.body)?;
        Ok(executor)
    }

    fn check(&self, block: &Block) -> Result<()> {
        let slots = self.program.sizes.len();
        for Operation { what, free } in &block.operations {
            let all = what.reads().into_iter().chain(what.writes());
            if !all.chain(free.iter().copied()).all(|r| r < self.program.registers) {
                return wrong_program(format!("{what:?}"));
            }
            match what {
                What::Piece { piece, args, sizes, outs } => {
                    let fits = self.pieces.get(*piece).is_some_and(|p| {
                        let plan = &p.plan;
                        (plan.inputs.len(), plan.given.len(), plan.outputs.len())
                            == (args.len(), sizes.len(), outs.len())
                    });
                    if !fits || sizes.iter().any(|s| *s >= slots) {
                        return wrong_program(format!("piece {piece}"));
                    }
                }
                What::Bind { brings, .. } | What::Sizes { brings, .. } => {
                    if brings.iter().any(|(_, s)| *s >= slots) {
                        return wrong_program("a size".to_owned());
                    }
                }
                What::If { then, otherwise, outs, .. } => {
                    if then.results.len() != outs.len() || otherwise.results.len() != outs.len() {
                        return wrong_program("branches".to_owned());
                    }
                    self.check(then)?;
                    self.check(otherwise)?;
                }
                What::Loop { carried, params, body, stacked, outs, .. } => {
                    let n = carried.len();
                    let fits = params.len() == n + 1
                        && outs.len() == n + stacked.len()
                        && body.results.len() == outs.len() + 1;
                    if !fits || !params.iter().all(|r| *r < self.program.registers) {
                        return wrong_program("a loop".to_owned());
                    }
                    self.check(body)?;
                }
                What::Constant(..) | What::Copy(..) | What::List { .. } => {}
            }
        }
        if block.results.iter().all(|r| *r < self.program.registers) {
            Ok(())
        } else {
            wrong_program("a result".to_owned())
        }
    }

    /// The steps of all pieces, in order.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &OpenStep> {
        self.pieces.iter().flat_map(|piece| &piece.plan.steps)
    }

    /// Which of these are the steps of a piece.
    fn steps_of(&self, piece: usize) -> Range<usize> {
        let count = |p: &Calls| p.plan.steps.len();
        let first = self.pieces[..piece].iter().map(count).sum();
        first..first + count(&self.pieces[piece])
    }

    /// Runs on inputs, of the types that the program's signature says, and adds to `times` how long each step takes.
    pub(crate) fn run(
        &self,
        inputs: &[Tensor],
        times: Option<&mut [Duration]>,
    ) -> Result<Vec<Item>> {
        let signature = &self.program.signature;
        let shapes: Vec<&[usize]> = inputs.iter().map(Tensor::shape).collect();
        let values = signature.solve(&shapes)?;
        let mut sizes = vec![None; self.program.sizes.len()];
        for (slot, value) in sizes.iter_mut().zip(values) {
            *slot = Some(value);
        }
        let mut registers = vec![Item::Nothing; self.program.registers];
        for (register, input) in registers.iter_mut().zip(inputs) {
            *register = Item::Tensor(input.clone());
        }
        let mut run = Run { executor: self, registers, sizes, times };
        run.block(&self.program.body)
    }
}

fn wrong_program(what: String) -> Result<()> {
    Err(Error::internal(format!("the program is wrong: {what}")))
}

impl Run<'_> {
    fn block(&mut self, block: &Block) -> Result<Vec<Item>> {
        block.operations.iter().try_for_each(|operation| self.operation(operation))?;
        Ok(block.results.iter().map(|r| self.registers[*r].clone()).collect())
    }

    /// The values of some registers; those that nothing reads any more lose them.
    fn take(&mut self, from: &[Register], free: &[Register]) -> Vec<Item> {
        let values = from.iter().map(|r| self.registers[*r].clone()).collect();
        from.iter().filter(|r| free.contains(r)).for_each(|r| self.registers[*r] = Item::Nothing);
        values
    }

    fn number(&mut self, from: Option<Register>) -> Result<Option<i64>> {
        let tensor = from.map(|r| self.registers[r].clone().tensor()).transpose()?;
        tensor.map(|t| list::integer(&t)).transpose()
    }

    fn put(&mut self, outs: &[Register], values: Vec<Item>) {
        outs.iter().zip(values).for_each(|(r, value)| self.registers[*r] = value);
    }

    fn operation(&mut self, Operation { what, free }: &Operation) -> Result<()> {
        match what {
            What::Constant(tensor, to) => self.registers[*to] = Item::Tensor(tensor.clone()),
            What::Copy(from, to) => {
                let value = self.take(&[*from], free);
                self.put(&[*to], value);
            }
            What::Piece { piece, args, sizes, outs } => {
                let inputs: Vec<Tensor> =
                    self.take(args, free).into_iter().map(Item::tensor).collect::<Result<_>>()?;
                let given = sizes.iter().map(|s| self.size(*s)).collect::<Result<Vec<_>>>()?;
                let steps = self.executor.steps_of(*piece);
                let times = self.times.as_deref_mut().and_then(|times| times.get_mut(steps));
                let outputs = self.executor.pieces[*piece].run_piece(&inputs, &given, times)?;
                self.put(outs, outputs.into_iter().map(Item::Tensor).collect());
            }
            What::Bind { of, name, dtype, shape, brings, why } => {
                let tensor = self.registers[*of].clone().tensor();
                let tensor = tensor.map_err(|e| e.context(format!("`{name}`")))?;
                let sizes = tensor.shape().to_vec();
                let differs = tensor.dtype() != *dtype || sizes.len() != shape.len();
                if differs {
                    let given = tensor.dtype();
                    return Err(Error::execution(format!(
                        "`{name}` is {given} of shape {sizes:?}, but {dtype} of shape {shape:?} is declared"
                    )));
                }
                self.bring(brings, &sizes);
                self.fits(name, shape, &sizes).map_err(|e| with_reason(e, why))?;
            }
            What::Sizes { of, name, shape, brings, why } => {
                let tensor = self.registers[*of].clone().tensor()?;
                let sizes = (0..tensor.len()).map(|k| size_at(k, &tensor, name));
                let sizes = sizes.collect::<Result<Vec<usize>>>();
                let sizes = sizes.map_err(|e| with_reason(e, why))?;
                if sizes.len() != shape.len() {
                    let e = format!("`{name}` is {sizes:?}, but {shape:?} is declared");
                    return Err(with_reason(Error::execution(e), why));
                }
                self.bring(brings, &sizes);
                self.fits(name, shape, &sizes).map_err(|e| with_reason(e, why))?;
            }
            What::List { op, attrs, args, to } => {
                let args = self.take(args, free);
                let value = op.apply(args, attrs).map_err(|e| e.context(op.name()))?;
                self.put(&[*to], vec![value]);
            }
            What::If { cond, then, otherwise, outs } => {
                let cond = self.number(Some(*cond))?.unwrap_or(0) != 0;
                let values = self.block(if cond { then } else { otherwise })?;
                self.put(outs, values);
            }
            What::Loop { trip, cond, carried, params, captured, body, stacked, outs } => {
                let (trip, cond) = (self.number(*trip)?, self.number(*cond)?);
                let lost: Vec<Register> =
                    free.iter().filter(|r| !captured.contains(r)).copied().collect();
                let mut values = self.take(carried, &lost);
                let mut parts: Vec<Vec<Tensor>> = vec![Vec::new(); stacked.len()];
                let (mut go, mut iteration) = (cond != Some(0), 0i64);
                while go && trip.is_none_or(|trip| iteration < trip) {
                    values.insert(0, Item::Tensor(Tensor::from_slice(&[], &[iteration])?));
                    self.put(params, values);
                    let mut given = self.block(body)?.into_iter();
                    // What the body gives lies in its registers no longer than here.
                    body.results.iter().for_each(|r| self.leave(*r, params, body));
                    let next = given.next().unwrap_or(Item::Nothing);
                    go = list::integer(&next.tensor()?)? != 0;
                    values = given.by_ref().take(carried.len()).collect();
                    for (list, item) in parts.iter_mut().zip(given) {
                        list.push(item.tensor()?);
                    }
                    iteration += 1;
                }
                for (parts, (dtype, shape)) in parts.iter().zip(stacked) {
                    let shape: Vec<usize> =
                        shape.iter().map(|d| d.value(&|v| self.size_of(v)).unwrap_or(0)).collect();
                    values.push(Item::Tensor(list::stack(parts, *dtype, &shape)?));
                }
                self.put(outs, values);
            }
        }
        free.iter().for_each(|r| self.registers[*r] = Item::Nothing);
        Ok(())
    }

    /// Forgets a result of a body that the body or its loop wrote.
    fn leave(&mut self, register: Register, params: &[Register], body: &Block) {
        if params.contains(&register)
            || body.operations.iter().any(|o| o.what.writes().contains(&register))
        {
            self.registers[register] = Item::Nothing;
        }
    }

    fn size(&self, slot: Slot) -> Result<usize> {
        self.sizes
            .get(slot)
            .copied()
            .flatten()
            .ok_or_else(|| Error::internal("a piece is told a size that is not known"))
    }

    fn size_of(&self, var: &Var) -> Option<usize> {
        self.executor.program.slot(var).and_then(|slot| self.sizes.get(slot).copied().flatten())
    }

    fn bring(&mut self, brings: &[(usize, Slot)], sizes: &[usize]) {
        for (at, slot) in brings {
            self.sizes[*slot] = sizes.get(*at).copied();
        }
    }

    /// Refuses sizes other than those that are declared.
    fn fits(&self, name: &str, shape: &[Dim], sizes: &[usize]) -> Result<()> {
        match shape
            .iter()
            .zip(sizes)
            .find(|(d, n)| d.value(&|v| self.size_of(v)).is_some_and(|d| d != **n))
        {
            None => Ok(()),
            Some((d, n)) => {
                let needed = d.value(&|v| self.size_of(v)).unwrap_or(0);
                Err(Error::execution(format!(
                    "`{name}` has the shape {sizes:?}, but {shape:?} is declared"
                ))
                .note(format!("`{d}` is {needed} here, not {n}")))
            }
        }
    }
}

fn with_reason(e: Error, why: &Option<Arc<str>>) -> Error {
    match why {
        Some(why) => e.note(&**why),
        None => e,
    }
}

fn size_at(k: usize, tensor: &Tensor, name: &str) -> Result<usize> {
    usize::try_from(tensor.get_i128(k)).map_err(|_| {
        let value = tensor.get_i128(k);
        Error::execution(format!("{value} is no size")).context(format!("`{name}`"))
    })
}
