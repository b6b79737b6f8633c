//! A compiled function, and running it on arguments.

use std::borrow::Cow;
use std::sync::Arc;

use tilewright_ir::dim::SizeRange;
use tilewright_ir::tensor::{byte_count, positions};
use tilewright_ir::{
    DType, Error, Expr, Param, Result, Tensor, TensorFunc, Var, phases, well_formed,
};

use crate::alias::{Memories, Mode};
use crate::code::Code;
use crate::code::range_of;
use crate::compile::{Compiler, Run};
use crate::machine::{Machine, UNDEF, UNWRITTEN, WRITTEN};
use crate::place::BufferView;
use crate::scalar::Scalar;
use crate::{Arg, Outcome, Output, RunOptions, State};

/// A compiled function for arguments of certain kinds.
pub struct Program {
    name: String,
    params: Vec<Parameter>,
    /// Variables that shapes, strides and offsets of parameters bind.
    bound: Vec<BoundVar>,
    setup: Vec<Code<()>>,
    memories: Memories,
    slots: usize,
    /// Number of loops whose iterations run at once.
    watches: usize,
    body: Run,
    ret: Option<DType>,
    options: RunOptions,
}

enum Parameter {
    Scalar { name: Arc<str>, slot: usize, dtype: DType },
    Tensor { place: Arc<BufferView>, mode: Mode, shape: String },
}

/// A variable and the places that may give its value, as parameter and axis.
struct BoundVar {
    var: Var,
    slot: usize,
    sources: Vec<Source>,
}

enum Source {
    Extent(usize, usize),
    Stride(usize, usize),
    Offset,
}

impl Program {
    /// Compiles a function for tensor arguments that come as `modes` says, one a tensor
    /// parameter. `name` is for messages. Fails where the function breaks a rule of the IR or
    /// does something that the interpreter does not know.
    pub fn new(
        name: &str,
        func: &TensorFunc,
        modes: &[Mode],
        options: &RunOptions,
    ) -> Result<Self> {
        well_formed::check_tensor(name, func)?;
        let phases = phases::split(func).map_err(|e| e.context(format!("function `{name}`")))?;
        let func = phases.as_ref().unwrap_or(func);
        Self::compile(name, func, modes, options)
            .map_err(|e| e.context(format!("function `{name}`")).at(func.span))
    }

    fn compile(
        name: &str,
        func: &TensorFunc,
        modes: &[Mode],
        options: &RunOptions,
    ) -> Result<Self> {
        let memories = Memories::new(func, modes, options.lenient());
        let mut c = Compiler::new(options, memories);
        let mut params = Vec::new();
        for p in &func.params {
            if let Param::Scalar(v) = p {
                let (lo, hi) = range_of(v.dtype());
                c.define(v, lo, hi);
            }
        }
        let mut bound: Vec<BoundVar> = Vec::new();
        for (i, p) in func.params.iter().enumerate() {
            let Param::Buffer { buffer: b, .. } = p else { continue };
            let shape = b.shape.iter().enumerate().map(|(k, e)| (e, Source::Extent(i, k)));
            let strides = b.strides.iter().enumerate().map(|(k, e)| (e, Source::Stride(i, k)));
            let offset = b.elem_offset.iter().map(|e| (e, Source::Offset));
            for (e, source) in shape.chain(strides).chain(offset) {
                let Some(v) = e.as_var() else { continue };
                match bound.iter_mut().find(|b| b.var == *v) {
                    Some(known) => known.sources.push(source),
                    // The value of a scalar parameter comes from its own argument.
                    None if c.vars.contains_key(v) => {}
                    None => {
                        let (_, hi) = range_of(v.dtype());
                        let slot = c.define(v, 0, hi);
                        bound.push(BoundVar { var: v.clone(), slot, sources: vec![source] });
                    }
                }
            }
        }
        let mut setup = Vec::new();
        let mut number = 0;
        for p in &func.params {
            params.push(match p {
                Param::Scalar(v) if v.dtype() == DType::HANDLE => {
                    return Err(Error::unsupported(format!(
                        "parameter `{}` is a pointer to memory of unknown size",
                        v.name()
                    )));
                }
                Param::Scalar(v) => Parameter::Scalar {
                    name: v.name().clone(),
                    slot: c.vars.get(v).map_or(0, |b| b.slot),
                    dtype: v.dtype(),
                },
                Param::Buffer { buffer, .. } => {
                    if buffer.dtype().lanes > 1 {
                        return Err(Error::unsupported(format!(
                            "parameter `{}` has elements with lanes",
                            buffer.name
                        )));
                    }
                    let place = c.place(buffer, number, &mut setup)?;
                    let mode = modes.get(number).copied().unwrap_or(Mode::Fresh);
                    number += 1;
                    let shape: Vec<String> = buffer.shape.iter().map(Expr::to_string).collect();
                    Parameter::Tensor { place, mode, shape: format!("({})", shape.join(", ")) }
                }
            });
        }
        let body = c.stmt(&func.body)?;
        Ok(Program {
            name: name.to_owned(),
            params,
            bound,
            setup,
            slots: c.slots,
            watches: c.watches,
            memories: c.memories,
            body,
            ret: func.ret,
            options: options.clone(),
        })
    }

    /// Runs the function. Fails with [`Error::Input`] where the arguments do not fit the
    /// parameters, and with [`Error::Execution`] where the program does something illegal.
    pub fn run(&self, args: &[Arg]) -> Result<Outcome> {
        self.execute(args).map_err(|e| e.context(format!("function `{}`", self.name)))
    }

    fn execute(&self, args: &[Arg]) -> Result<Outcome> {
        if args.len() != self.params.len() {
            return Err(Error::input(format!(
                "{} arguments for {} parameters",
                args.len(),
                self.params.len()
            )));
        }
        let memories = self.memories.info.len();
        let mut m = Machine::new(self.slots, memories, self.watches, &self.options);
        let steps = m.steps;
        for (p, arg) in self.params.iter().zip(args) {
            match (p, arg) {
                (Parameter::Scalar { name, slot, dtype }, Arg::Scalar(value)) => {
                    if value.dtype() != *dtype {
                        return Err(Error::input(format!(
                            "argument `{name}` is {}, but {dtype} is declared",
                            value.dtype()
                        )));
                    }
                    m.frame[*slot] = value.bits();
                }
                (Parameter::Scalar { name, .. }, _) => {
                    return Err(Error::input(format!("argument `{name}` is a tensor")));
                }
                (Parameter::Tensor { place, .. }, Arg::Scalar(_)) => {
                    return Err(Error::input(format!("argument `{}` is a scalar", place.name)));
                }
                (Parameter::Tensor { place, mode, shape }, _) => {
                    check_argument(place, *mode, shape, arg)?;
                }
            }
        }
        self.bind_shapes(&mut m, args)?;
        self.setup.iter().for_each(|code| code(&mut m));
        for (p, arg) in self.params.iter().zip(args) {
            if let Parameter::Tensor { place, shape, .. } = p {
                self.load(&mut m, place, shape, arg)?;
            }
        }
        if m.trap.is_none() {
            (self.body)(&mut m);
        }
        if m.trap.is_some() {
            return Err(m.error());
        }
        let mut outputs = Vec::new();
        for (i, (p, arg)) in self.params.iter().zip(args).enumerate() {
            if let Parameter::Tensor { place, .. } = p
                && (self.memories.info[place.memory].written || !matches!(arg, Arg::Tensor(_)))
            {
                outputs.push(self.output(&m, i, place)?);
            }
        }
        let ret = self.ret.zip(m.ret).map(|(dtype, bits)| Scalar::from_bits(bits, dtype));
        Ok(Outcome { outputs, ret, steps: steps - m.steps })
    }

    /// Gives the variables in shapes of parameters their values.
    fn bind_shapes(&self, m: &mut Machine<'_>, args: &[Arg]) -> Result<()> {
        for b in &self.bound {
            let value = b.sources.iter().find_map(|s| match s {
                Source::Extent(p, axis) => args.get(*p).and_then(Arg::shape)?.get(*axis).copied(),
                Source::Stride(p, axis) => {
                    let inner = args.get(*p).and_then(Arg::shape)?.get(axis + 1..)?;
                    inner.iter().try_fold(1usize, |n, &d| n.checked_mul(d))
                }
                Source::Offset => Some(0),
            });
            let (_, most) = range_of(b.var.dtype());
            let value = value.and_then(|v| i64::try_from(v).ok()).filter(|v| *v <= most);
            let Some(value) = value else {
                return Err(Error::input(format!(
                    "no argument gives `{}` a value that fits {}",
                    b.var.name(),
                    b.var.dtype()
                )));
            };
            let range = b.var.range();
            if range != SizeRange::ALL && !range.contains(value as usize) {
                return Err(range.outside(b.var.name(), value as usize));
            }
            m.frame[b.slot] = value as u64;
        }
        Ok(())
    }

    /// Puts a tensor argument into its memory.
    fn load<'a>(
        &self,
        m: &mut Machine<'a>,
        place: &BufferView,
        declared: &str,
        arg: &'a Arg,
    ) -> Result<()> {
        let shape = extents(place, m)?;
        if let Some(given) = arg.shape()
            && given != shape.as_slice()
        {
            return Err(Error::input(format!(
                "argument `{}` has shape {given:?}, but {declared} is declared{}",
                place.name,
                if declared.contains(|c: char| c.is_alphabetic()) {
                    format!(", which is {shape:?} here")
                } else {
                    String::new()
                }
            )));
        }
        let info = &self.memories.info[place.memory];
        let dense = is_dense(place, m, &shape);
        let (tensor, states) = match arg {
            Arg::Tensor(t) => (Some(t), None),
            Arg::Partial(t, states) => (Some(t), Some(states)),
            Arg::Fresh(_) | Arg::Scalar(_) => (None, None),
        };
        if let Some(t) = tensor
            && dense
            && !info.tracked
            && !info.written
        {
            m.memories[place.memory].data = Cow::Borrowed(t.bytes());
            return Ok(());
        }
        let Some(bytes) = place.bytes(m) else {
            return Err(Error::input(format!("argument `{}` has no sane size", place.name)));
        };
        let state = match (tensor, self.options.lenient()) {
            (None, true) => UNDEF,
            _ => UNWRITTEN,
        };
        m.allocate(place.memory, bytes, info.cell, state);
        if m.trap.is_some() {
            return Err(m.error());
        }
        if state == UNDEF {
            m.scramble(place.memory, place.dtype);
        }
        let Some(t) = tensor else { return Ok(()) };
        let size = place.dtype.bytes();
        let offsets = offsets(place, m, &shape);
        let memory = &mut m.memories[place.memory];
        let data = memory.data.to_mut();
        let source = t.bytes().chunks_exact(size.max(1));
        for (i, (from, at)) in source.zip(offsets).enumerate() {
            let state = match states.and_then(|s| s.get(i)) {
                None | Some(State::Value) => WRITTEN,
                Some(State::Undef) => UNDEF,
                Some(State::Unwritten) => UNWRITTEN,
            };
            if let Some(to) = data.get_mut(at * size..(at + 1) * size) {
                to.copy_from_slice(from);
            }
            if let Some(s) = memory.state.get_mut(cells(at, size, info.cell)) {
                s.fill(state);
            }
        }
        Ok(())
    }

    /// Reads a tensor back from its memory.
    fn output(&self, m: &Machine<'_>, param: usize, place: &BufferView) -> Result<Output> {
        let shape = extents(place, m)?;
        let info = &self.memories.info[place.memory];
        let memory = &m.memories[place.memory];
        let size = place.dtype.bytes();
        let mut tensor = Tensor::zeros(place.dtype, &shape)?;
        let mut states = Vec::new();
        let all_written = memory.state.iter().all(|s| *s == WRITTEN);
        if is_dense(place, m, &shape) && (all_written || !info.tracked) {
            let bytes = tensor.bytes_mut();
            bytes.copy_from_slice(memory.data.get(..bytes.len()).unwrap_or_default());
        } else {
            let to = tensor.bytes_mut().chunks_exact_mut(size.max(1));
            for (to, at) in to.zip(offsets(place, m, &shape)) {
                if let Some(from) = memory.data.get(at * size..(at + 1) * size) {
                    to.copy_from_slice(from);
                }
                let state = if info.tracked {
                    let states = memory.state.get(cells(at, size, info.cell));
                    states.unwrap_or_default().iter().copied().min().unwrap_or(WRITTEN)
                } else {
                    WRITTEN
                };
                states.push(match state {
                    UNWRITTEN => State::Unwritten,
                    UNDEF => State::Undef,
                    _ => State::Value,
                });
            }
        }
        let states = states.iter().any(|s| *s != State::Value).then_some(states);
        Ok(Output { param, name: place.name.clone(), tensor, states })
    }
}

fn check_argument(place: &BufferView, mode: Mode, declared: &str, arg: &Arg) -> Result<()> {
    let name = &place.name;
    let fits = match arg {
        Arg::Tensor(_) => true,
        Arg::Partial(..) => mode == Mode::Partial,
        Arg::Fresh(_) | Arg::Scalar(_) => mode == Mode::Fresh,
    };
    if !fits {
        let message = format!("argument `{name}` comes in another way than it was compiled for");
        return Err(Error::input(message));
    }
    if let Arg::Tensor(t) | Arg::Partial(t, _) = arg
        && t.dtype() != place.dtype
    {
        let (want, got) = (place.dtype, t.dtype());
        return Err(Error::input(format!("argument `{name}` is {got}, but {want} is declared")));
    }
    if let Arg::Partial(t, states) = arg
        && states.len() != t.len()
    {
        return Err(Error::input(format!(
            "argument `{name}` has {} elements and {} states",
            t.len(),
            states.len()
        )));
    }
    match arg.shape() {
        Some(shape) if shape.len() != place.dims.len() => Err(Error::input(format!(
            "argument `{name}` has shape {shape:?}, but {declared} is declared"
        ))),
        _ => Ok(()),
    }
}

/// The extents of a parameter.
fn extents(place: &BufferView, m: &Machine<'_>) -> Result<Vec<usize>> {
    let shape = place.dims.iter().map(|d| usize::try_from(d.extent.get(m)).ok());
    let shape: Option<Vec<usize>> = shape.collect();
    match shape {
        Some(shape) if byte_count(place.dtype, &shape).is_some() => Ok(shape),
        _ => Err(Error::input(format!("argument `{}` has no sane shape", place.name))),
    }
}

/// Whether the elements follow each other without gaps from the start of the memory.
fn is_dense(place: &BufferView, m: &Machine<'_>, shape: &[usize]) -> bool {
    let mut stride = 1i64;
    let strides = place.dims.iter().zip(shape).rev().all(|(d, &n)| {
        let fits = n <= 1 || d.stride.get(m) == stride;
        stride = stride.saturating_mul(i64::try_from(n).unwrap_or(i64::MAX));
        fits
    });
    place.offset.get(m) == 0 && strides
}

/// The cells of a memory that an element at a position covers or lies in.
fn cells(at: usize, size: usize, cell: usize) -> std::ops::Range<usize> {
    let cell = cell.max(1);
    at * size / cell..((at + 1) * size).div_ceil(cell)
}

/// Positions of the elements of a buffer in its memory, in row-major order.
fn offsets(
    place: &BufferView,
    m: &Machine<'_>,
    shape: &[usize],
) -> impl Iterator<Item = usize> + use<> {
    let strides: Vec<i64> = place.dims.iter().map(|d| d.stride.get(m)).collect();
    let axes: Vec<(usize, i64)> = shape.iter().copied().zip(strides).collect();
    let at = positions(axes.into_iter(), place.offset.get(m));
    at.map_while(|at| usize::try_from(at).ok())
}
