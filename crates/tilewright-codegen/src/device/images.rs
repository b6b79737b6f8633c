//! Memory of a device whose cells lie in an image, too.
//!
//! A texture is an object of its own: no kernel sees it as memory, and no function of memory as a texture. So what lies
//! at an address and is accessed as a texture has an image, which holds it until a kernel or a copy accesses that
//! memory as such:
//!
//! ```text
//! a kernel writes the texture     the image alone holds it
//! a kernel reads the texture      copied to the image, unless it holds it already
//! something reads the memory      copied back, if the image alone holds it: both hold it
//! something writes the memory     copied back as far as it is not written; the memory alone holds it
//! ```
//!
//! What one kernel hands to the next in a texture is never copied so, and constants are copied once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilewright_ir::Result;

use super::KernelDevice;
use crate::c::Image;

/// Most images whose memory has changed that are kept for later.
const MOST_STALE: usize = 64;

/// Which of the two has what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Memory,
    Image,
    Both,
}

/// An image of memory.
struct Resident<I> {
    start: u64,
    bytes: u64,
    rows: usize,
    columns: usize,
    half: bool,
    image: Arc<I>,
    holds: Holds,
}

impl<I> Resident<I> {
    fn meets(&self, start: u64, bytes: u64) -> bool {
        self.start < start.saturating_add(bytes) && start < self.start + self.bytes
    }
}

/// The images of a device's memory.
pub(crate) struct Images<I>(Mutex<Vec<Resident<I>>>);

impl<I> Images<I> {
    /// None.
    pub const fn new() -> Images<I> {
        Images(Mutex::new(Vec::new()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Resident<I>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The image of memory at an address, for a kernel that accesses it as it is said.
    ///
    /// # Errors
    /// [`Error::Execution`](tilewright_ir::Error::Execution) where the device fails, or has none of its size.
    pub fn lend<D>(&self, device: &D, image: &Image, address: u64) -> Result<Arc<I>>
    where
        D: KernelDevice<Image = I>,
    {
        let texel = if image.half { 8 } else { 16 };
        let bytes = (image.rows * image.columns * texel) as u64;
        let shape = (address, image.rows, image.columns, image.half);
        let is_it = |r: &Resident<I>| (r.start, r.rows, r.columns, r.half) == shape;
        let mut all = self.lock();
        settle(device, &mut all, (address, bytes), image.writes, &is_it)?;
        let at = match all.iter().position(is_it) {
            Some(at) => at,
            None => {
                forget_stale(&mut all);
                let Image { rows, columns, half, .. } = *image;
                let image = Arc::new(device.image(image)?);
                let holds = Holds::Memory;
                all.push(Resident { start: address, bytes, rows, columns, half, image, holds });
                all.len() - 1
            }
        };
        let resident = &mut all[at];
        if image.reads && resident.holds == Holds::Memory {
            device.copy_image(&resident.image, address, true)?;
            resident.holds = Holds::Both;
        }
        if image.writes {
            resident.holds = Holds::Image;
        }
        Ok(resident.image.clone())
    }

    /// Before memory is accessed as such.
    ///
    /// # Errors
    /// [`Error::Execution`](tilewright_ir::Error::Execution) where the device fails.
    pub fn access<D>(&self, device: &D, address: u64, bytes: u64, writes: bool) -> Result<()>
    where
        D: KernelDevice<Image = I>,
    {
        settle(device, &mut self.lock(), (address, bytes), writes, &|_| false)
    }

    /// When memory is given back.
    pub fn forget(&self, address: u64, bytes: u64) {
        self.lock().retain(|r| !r.meets(address, bytes));
    }
}

/// Lets memory hold what images alone hold of it; where it is written, images do not hold it from then on. One of them
/// is left out.
fn settle<D: KernelDevice>(
    device: &D,
    all: &mut [Resident<D::Image>],
    (start, bytes): (u64, u64),
    writes: bool,
    but: &dyn Fn(&Resident<D::Image>) -> bool,
) -> Result<()> {
    for r in all.iter_mut().filter(|r| r.meets(start, bytes) && !but(r)) {
        if r.holds == Holds::Image {
            device.copy_image(&r.image, r.start, false)?;
            r.holds = Holds::Both;
        }
        if writes {
            r.holds = Holds::Memory;
        }
    }
    Ok(())
}

/// Makes room where sizes change from run to run.
fn forget_stale<I>(all: &mut Vec<Resident<I>>) {
    let stale = all.iter().filter(|r| r.holds == Holds::Memory).count();
    if stale > MOST_STALE {
        all.retain(|r| r.holds != Holds::Memory);
    }
}
