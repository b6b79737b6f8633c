//! Functions on devices: what the host does for them, whatever driver runs their kernels.
//!
//! * [`KernelDevice`]: what a driver gives beside memory: kernels that are compiled, images, launches.
//! * `images`: memory that lies in textures, too.
//! * `code`: compiled functions, the steps of the host around their kernels, and assertions that failed.

mod code;
mod images;

use tilewright_ir::Result;
use tilewright_target::Device;

use crate::c::{Image, Kernels};
use crate::cache::ObjectCache;

pub(crate) use code::OnDevice;
pub(crate) use images::Images;

/// A device that runs kernels.
pub(crate) trait KernelDevice: Device + Sized + 'static {
    /// A compiled kernel. One thread at a time launches it.
    type Kernel: Send;
    /// An image on the device.
    type Image: Send + Sync;

    /// Compiles the kernels of a function, or takes from a cache what that gave before; in their order.
    ///
    /// # Errors
    /// [`Error::Toolchain`](tilewright_ir::Error::Toolchain) with what the compiler says.
    fn kernels(&self, kernels: &Kernels, cache: &ObjectCache) -> Result<Vec<Self::Kernel>>;

    /// An image.
    ///
    /// # Errors
    /// [`Error::Execution`](tilewright_ir::Error::Execution) where the device has none of its size.
    fn image(&self, image: &Image) -> Result<Self::Image>;

    /// The images of its memory. What accesses memory, of kernels or of [`Device`], says so to them before.
    fn images(&self) -> &Images<Self::Image>;

    /// Copies memory to an image, row by row, or back.
    ///
    /// # Errors
    /// [`Error::Execution`](tilewright_ir::Error::Execution) if the device fails.
    fn copy_image(&self, image: &Self::Image, address: u64, to_image: bool) -> Result<()>;

    /// Puts a kernel into the queue, which runs what it is asked in order. There is at least one thread.
    ///
    /// # Errors
    /// [`Error::Execution`](tilewright_ir::Error::Execution) where the device takes no such groups.
    fn launch(
        &self,
        kernel: &mut Self::Kernel,
        work: Work,
        arguments: &[Value<'_, Self::Image>],
    ) -> Result<()>;
}

/// Over what a kernel runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// So many items, which share the iterations of a loop: a device may run fewer.
    Items(usize),
    /// Groups along three axes, and the threads of each along the same.
    Groups { groups: [usize; 3], threads: [usize; 3] },
}

impl Work {
    /// Whether nothing runs.
    pub fn is_none(&self) -> bool {
        match self {
            Work::Items(n) => *n == 0,
            Work::Groups { groups, .. } => groups.contains(&0),
        }
    }
}

/// An argument of a kernel.
pub(crate) enum Value<'a, Image> {
    /// Memory from an address on: two parameters, the beginning of an allocation and a byte of it.
    Memory(u64),
    /// The beginning of an allocation: one parameter.
    Whole(u64),
    Image(&'a Image),
    /// A number, by the bytes of its type.
    Number([u8; 8], usize),
}
