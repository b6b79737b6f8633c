//! Devices: memory that code works on and that the host does not address.
//!
//! An address on a device is a number that means something to it alone: code gets it where code for the
//! host gets an address, and may add to it as long as it stays inside of one allocation. What is asked
//! of a device runs in the order in which it is asked, copies and calls of code alike.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tilewright_ir::{Error, Result};

/// A device with memory of its own.
pub trait Device: Send + Sync {
    /// So many bytes of memory, at least one, at a multiple of 64.
    ///
    /// # Errors
    /// [`Error::Execution`] if there is not so much.
    fn allocate(&self, bytes: usize) -> Result<u64>;

    /// Gives back what was allocated, when all that uses it is done.
    fn free(&self, address: u64);

    /// Copies to the device, inside of one allocation; the bytes are read when this returns.
    ///
    /// # Errors
    /// [`Error::Execution`] if the device fails.
    fn write(&self, to: u64, bytes: &[u8]) -> Result<()>;

    /// Copies from the device, inside of one allocation, when all before is done.
    ///
    /// # Errors
    /// [`Error::Execution`] if the device fails.
    fn read(&self, from: u64, bytes: &mut [u8]) -> Result<()>;

    /// Fills memory inside of one allocation with a byte.
    ///
    /// # Errors
    /// [`Error::Execution`] if the device fails.
    fn fill(&self, to: u64, bytes: usize, byte: u8) -> Result<()>;

    /// Copies from one place on the device to another one, which do not overlap, each inside of one allocation.
    ///
    /// # Errors
    /// [`Error::Execution`] if the device fails.
    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()>;

    /// What others call the device.
    fn identity(&self) -> DeviceIdentity;

    /// What others call an address: a pointer or the handle of an allocation, and a byte from there on.
    ///
    /// # Errors
    /// [`Error::Internal`] for an address that nothing was allocated at.
    fn exported(&self, address: u64) -> Result<(u64, u64)>;

    /// The address of what others call so.
    ///
    /// # Errors
    /// [`Error::Input`] for memory that the device cannot work on.
    fn imported(&self, pointer: u64, byte: u64) -> Result<u64>;

    /// Waits until all that was asked is done.
    ///
    /// # Errors
    /// [`Error::Execution`] if the device failed.
    fn finish(&self) -> Result<()>;

    /// How long the device takes for some work, which asks it for something; it has nothing else to do.
    ///
    /// # Errors
    /// Those of the work, and [`Error::Execution`] if the device failed.
    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
        self.finish()?;
        let start = Instant::now();
        work()?;
        self.finish()?;
        Ok(start.elapsed())
    }
}

/// What others call a device: DLPack's `DLDevice`, and the stream of work that it does in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// A `DLDeviceType`: 2 is CUDA, 4 is OpenCL.
    pub kind: i32,
    /// Which one of this kind.
    pub number: i32,
    /// The stream, where others may wait for it or it for them; a `CUstream`.
    pub stream: Option<u64>,
}

/// Memory on a device, which goes back when it is dropped.
pub struct DeviceMemory {
    device: Arc<dyn Device>,
    address: u64,
    bytes: usize,
}

impl DeviceMemory {
    /// Allocates.
    ///
    /// # Errors
    /// Those of [`Device::allocate`].
    pub fn new(device: &Arc<dyn Device>, bytes: usize) -> Result<DeviceMemory> {
        let address = device.allocate(bytes.max(1))?;
        Ok(DeviceMemory { device: device.clone(), address, bytes })
    }

    /// The address of its first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies bytes into it, from an offset on.
    ///
    /// # Errors
    /// [`Error::Internal`] for bytes outside of it, and those of [`Device::write`].
    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<()> {
        self.device.write(self.inside(at, bytes.len())?, bytes)
    }

    /// Copies bytes out of it, from an offset on.
    ///
    /// # Errors
    /// [`Error::Internal`] for bytes outside of it, and those of [`Device::read`].
    pub fn read(&self, at: usize, bytes: &mut [u8]) -> Result<()> {
        self.device.read(self.inside(at, bytes.len())?, bytes)
    }

    /// Fills all of it with a byte.
    ///
    /// # Errors
    /// Those of [`Device::fill`].
    pub fn fill(&self, byte: u8) -> Result<()> {
        self.device.fill(self.address, self.bytes, byte)
    }

    /// Waits until all that was asked of its device is done.
    ///
    /// # Errors
    /// Those of [`Device::finish`].
    pub fn finish(&self) -> Result<()> {
        self.device.finish()
    }

    fn inside(&self, at: usize, bytes: usize) -> Result<u64> {
        if at.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(Error::internal(format!(
                "bytes {at} and {bytes} more of {} on a device",
                self.bytes
            )));
        }
        Ok(self.address + at as u64)
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        self.device.free(self.address);
    }
}
