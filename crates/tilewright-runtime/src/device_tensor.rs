//! Tensors in memory of a device: what a run reads there without a copy, and what it leaves there.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use tilewright_ir::tensor::byte_count;
use tilewright_ir::{DType, Error, Result, Tensor};
use tilewright_target::{Device, DeviceIdentity, DeviceMemory};

/// A tensor in memory of a device, row after row. Clones share the memory, which nothing writes any more.
#[derive(Clone)]
pub struct DeviceTensor {
    device: Arc<dyn Device>,
    address: u64,
    dtype: DType,
    shape: Arc<[usize]>,
    _owner: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for DeviceTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} at {:#x} of a device", self.dtype, self.shape, self.address)
    }
}

impl DeviceTensor {
    /// A tensor of a shape, whose elements are anything.
    ///
    /// # Errors
    /// [`Error::Execution`] where there is not enough memory.
    pub(crate) fn new(
        device: &Arc<dyn Device>,
        dtype: DType,
        shape: &[usize],
    ) -> Result<DeviceTensor> {
        let bytes = byte_count(dtype, shape)
            .ok_or_else(|| Error::execution(format!("no memory has room for {dtype}{shape:?}")))?;
        let memory = DeviceMemory::new(device, bytes)?;
        let (device, address, shape) = (device.clone(), memory.address(), shape.into());
        Ok(DeviceTensor { device, address, dtype, shape, _owner: Arc::new(memory) })
    }

    /// A copy of a tensor of the host on a device.
    ///
    /// # Errors
    /// [`Error::Execution`] where there is not enough memory, or the device fails.
    pub fn from_host(device: &Arc<dyn Device>, tensor: &Tensor) -> Result<DeviceTensor> {
        let made = DeviceTensor::new(device, tensor.dtype(), tensor.shape())?;
        device.write(made.address, tensor.bytes())?;
        Ok(made)
    }

    /// A tensor in memory that others allocated: by a pointer or handle and a byte from there on, as DLPack has them.
    ///
    /// # Errors
    /// [`Error::Input`] where the device cannot work on that.
    ///
    /// # Safety
    /// The memory is one of the device, has room for all elements, which nothing writes, and stays as long as
    /// `owner` does.
    pub unsafe fn foreign(
        device: &Arc<dyn Device>,
        (pointer, byte): (u64, u64),
        dtype: DType,
        shape: &[usize],
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Result<DeviceTensor> {
        let address = device.imported(pointer, byte)?;
        let device = device.clone();
        Ok(DeviceTensor { device, address, dtype, shape: shape.into(), _owner: owner })
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its address on the device.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Whether it is in memory of a device.
    pub(crate) fn is_on(&self, device: &Arc<dyn Device>) -> bool {
        device.identity() == self.device.identity()
    }

    /// What others call the device.
    pub fn identity(&self) -> DeviceIdentity {
        self.device.identity()
    }

    /// What others call its memory: a pointer or the handle of an allocation, and a byte from there on. All that was
    /// asked of the device before is done.
    ///
    /// # Errors
    /// [`Error::Execution`] if the device failed.
    pub fn exported(&self) -> Result<(u64, u64)> {
        self.device.finish()?;
        self.device.exported(self.address)
    }

    /// A copy on the host.
    ///
    /// # Errors
    /// [`Error::Execution`] if the device failed.
    pub fn to_host(&self) -> Result<Tensor> {
        let mut tensor = Tensor::zeros(self.dtype, &self.shape)?;
        self.device.read(self.address, tensor.bytes_mut())?;
        Ok(tensor)
    }
}

/// What a run on a device takes: a tensor of the host, which is copied there, or one that is there.
#[derive(Clone, Debug)]
pub enum Operand {
    Host(Tensor),
    Device(DeviceTensor),
}

/// What has a type and extents.
pub(crate) trait Shaped {
    fn dtype(&self) -> DType;
    fn shape(&self) -> &[usize];
}

impl Shaped for Tensor {
    fn dtype(&self) -> DType {
        Tensor::dtype(self)
    }

    fn shape(&self) -> &[usize] {
        Tensor::shape(self)
    }
}

impl Shaped for Operand {
    fn dtype(&self) -> DType {
        match self {
            Operand::Host(tensor) => tensor.dtype(),
            Operand::Device(tensor) => tensor.dtype(),
        }
    }

    fn shape(&self) -> &[usize] {
        match self {
            Operand::Host(tensor) => tensor.shape(),
            Operand::Device(tensor) => tensor.shape(),
        }
    }
}
