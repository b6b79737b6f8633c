//! Where the memory is that kernels work on: on the host, or on a device.
//!
//! On the host, kernels get the addresses of inputs, outputs and constants themselves. On a device,
//! constants are copied once, when the executable is made; inputs are copied into a part behind the arena
//! when a run starts, and outputs out of it when it ends. Nothing else is copied.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tilewright_ir::tensor::{ALIGN, byte_count};
use tilewright_ir::{DType, Error, Result, Tensor};
use tilewright_target::{Code, Device, DeviceMemory};

use crate::{Port, SizedPlan};

/// The memory that the kernels of a plan work on.
pub(crate) enum Home {
    Host,
    /// That of a device, with the constants of the plan.
    Device {
        device: Arc<dyn Device>,
        constants: Vec<DeviceMemory>,
    },
}

impl Home {
    /// That of some code; constants are copied to it.
    pub(crate) fn new(code: &dyn Code, constants: &[Tensor]) -> Result<Home> {
        let Some(device) = code.device() else { return Ok(Home::Host) };
        let copies = constants
            .iter()
            .map(|constant| {
                let memory = DeviceMemory::new(&device, constant.bytes().len())?;
                memory.write(0, constant.bytes())?;
                Ok(memory)
            })
            .collect::<Result<_>>();
        let constants = copies.map_err(|e: Error| e.context("memory for constants"))?;
        Ok(Home::Device { device, constants })
    }

    /// The device that it is on.
    pub(crate) fn device(&self) -> Option<&Arc<dyn Device>> {
        match self {
            Home::Host => None,
            Home::Device { device, .. } => Some(device),
        }
    }

    pub(crate) fn is_host(&self) -> bool {
        matches!(self, Home::Host)
    }

    /// The address of a constant.
    pub(crate) fn constant(&self, constants: &[Tensor], at: usize) -> u64 {
        match self {
            Home::Host => constants[at].bytes().as_ptr().expose_provenance() as u64,
            Home::Device { constants, .. } => constants[at].address(),
        }
    }

    /// How long some work takes, where it is done.
    pub(crate) fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
        match self {
            Home::Host => {
                let start = Instant::now();
                work()?;
                Ok(start.elapsed())
            }
            Home::Device { device, .. } => device.timed(work),
        }
    }
}

/// The memory of one run.
pub(crate) enum Arena {
    Host(Tensor),
    Device(DeviceMemory),
}

impl Arena {
    pub(crate) fn new(home: &Home, bytes: usize) -> Result<Arena> {
        match home {
            Home::Host => Tensor::zeros(DType::U8, &[bytes]).map(Arena::Host),
            Home::Device { device, .. } => DeviceMemory::new(device, bytes).map(Arena::Device),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Arena::Host(tensor) => tensor.len(),
            Arena::Device(memory) => memory.bytes(),
        }
    }

    /// The address of its first byte. It never moves: tensors that do not share their bytes are written
    /// in place.
    pub(crate) fn start(&mut self) -> u64 {
        match self {
            Arena::Host(tensor) => tensor.bytes_mut().as_mut_ptr().expose_provenance() as u64,
            Arena::Device(memory) => memory.address(),
        }
    }

    pub(crate) fn fill(&mut self, byte: u8) -> Result<()> {
        match self {
            Arena::Host(tensor) => tensor.bytes_mut().fill(byte),
            Arena::Device(memory) => memory.fill(byte)?,
        }
        Ok(())
    }
}

/// Where inputs and outputs lie on a device: behind the arena, in bytes from its start.
pub(crate) struct Staging {
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    /// Where all of it ends.
    pub(crate) end: usize,
}

impl Staging {
    /// Places behind the arena of a plan.
    pub(crate) fn behind(plan: &SizedPlan) -> Result<Staging> {
        let mut end = plan.arena_bytes;
        let inputs =
            plan.inputs.iter().map(|port| place_behind(port, &mut end)).collect::<Result<_>>()?;
        let outputs =
            plan.outputs.iter().map(|port| place_behind(port, &mut end)).collect::<Result<_>>()?;
        Ok(Staging { inputs, outputs, end })
    }

    /// Copies inputs to a device.
    pub(crate) fn bring(&self, memory: &DeviceMemory, inputs: &[Tensor]) -> Result<()> {
        let mut all = self.inputs.iter().zip(inputs);
        all.try_for_each(|(at, input)| memory.write(*at, input.bytes()))
    }

    /// Copies outputs from a device, when all is done there.
    pub(crate) fn take(&self, memory: &DeviceMemory, outputs: &mut [Tensor]) -> Result<()> {
        // To read waits.
        if outputs.iter().all(|output| output.byte_len() == 0) {
            memory.finish()?;
        }
        let mut all = self.outputs.iter().zip(outputs);
        all.try_for_each(|(at, output)| memory.read(*at, output.bytes_mut()))
    }
}

fn place_behind(port: &Port, end: &mut usize) -> Result<usize> {
    let start = end.checked_next_multiple_of(ALIGN);
    let bytes = byte_count(port.dtype, &port.shape);
    let ends = start.zip(bytes).and_then(|(start, bytes)| start.checked_add(bytes));
    *end = ends.ok_or_else(|| Error::input("inputs and outputs do not fit in memory"))?;
    Ok(start.unwrap_or(0))
}
