//! The memory of a tensor.
//!
//! Large tensors are mapped by themselves, and the system is asked for large pages: a kernel that
//! streams weights of some megabytes otherwise waits for the translation of every fourth kilobyte
//! (measured on networks with large weights: runs are shorter by 5 to 10 %). Their memory is zero
//! without being written, and takes no room before it is used.

use bytemuck::Zeroable;
use memmap2::MmapMut;

use super::{ALIGN, Line};

/// Bytes from which a tensor has a mapping of its own. Neighbouring mappings share large pages, so
/// that they need not be as large as these.
const LARGE: usize = 1 << 20;

/// Zeroed bytes at an address that is a multiple of [`ALIGN`], rounded up to whole lines.
pub(super) enum Memory {
    Small(Vec<Line>),
    Large(MmapMut),
}

impl Memory {
    /// Zeros; `None` where there is no memory for them.
    pub fn zeros(bytes: usize) -> Option<Memory> {
        let count = bytes.div_ceil(ALIGN);
        if bytes >= LARGE {
            let map = MmapMut::map_anon(count.checked_mul(ALIGN)?).ok()?;
            // Small pages are as good, only slower.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            return Some(Memory::Large(map));
        }
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).ok()?;
        lines.resize(count, Line::zeroed());
        Some(Memory::Small(lines))
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Memory::Small(lines) => bytemuck::cast_slice(lines),
            Memory::Large(map) => map,
        }
    }

    /// All bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Small(lines) => bytemuck::cast_slice_mut(lines),
            Memory::Large(map) => map,
        }
    }
}

impl Clone for Memory {
    fn clone(&self) -> Memory {
        let copy = match self {
            Memory::Small(lines) => return Memory::Small(lines.clone()),
            Memory::Large(map) => Memory::zeros(map.len()),
        };
        match copy {
            Some(mut copy) => {
                copy.bytes_mut().copy_from_slice(self.bytes());
                copy
            }
            // A `Vec` would end the process in the same way.
            None => std::alloc::handle_alloc_error(std::alloc::Layout::new::<Line>()),
        }
    }
}
