//! The memory of a tensor.
//!
//! Large tensors are mapped by themselves, and the system is asked for large pages: a kernel that
//! streams weights of some megabytes otherwise waits for the translation of every fourth kilobyte
//! (measured on networks with large weights: runs are shorter by 5 to 10 %). Their memory is zero
//! without being written, and takes no room before it is used.
//!
//! Memory of another owner ([`Foreign`]) and bytes of a file ([`Mapped`]) are copied before a write, unless the
//! owner allows to write. Bytes may also be made where something first asks for them ([`Late`]).

use std::any::Any;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytemuck::{Pod, Zeroable};
use memmap2::{Mmap, MmapMut};

/// Alignment in bytes of a tensor's first element: one cache line, one 512-bit vector.
pub const ALIGN: usize = 64;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line([u8; ALIGN]);

/// Bytes from which a tensor has a mapping of its own. Neighbouring mappings share large pages, so
/// that they need not be as large as these.
const LARGE: usize = 1 << 20;

/// Bytes: of one's own at an address that is a multiple of [`ALIGN`], rounded up to whole lines, or
/// of another owner.
pub(super) enum Memory {
    Small(Vec<Line>),
    Large(MmapMut),
    Foreign(Foreign),
    Mapped(Mapped),
    Late(Late),
}

/// What makes memory.
type Make = Box<dyn Fn() -> Arc<Memory> + Send + Sync>;

/// Bytes that are made where something first asks for them.
pub(super) struct Late {
    /// The memory that was made.
    made: OnceLock<Arc<Memory>>,
    /// What makes it, and of what; let go of once it is made, and what it holds with it.
    from: Mutex<Option<(Arc<dyn Any + Send + Sync>, Make)>>,
}

impl Late {
    pub(super) fn new(origin: Arc<dyn Any + Send + Sync>, make: Make) -> Late {
        Late { made: OnceLock::new(), from: Mutex::new(Some((origin, make))) }
    }

    /// Where the bytes come from; `None` once they are there.
    pub(super) fn origin(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        let from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        from.as_ref().map(|(origin, _)| origin.clone())
    }

    fn bytes(&self) -> &[u8] {
        let made = self.made.get_or_init(|| {
            let from = self.from.lock().unwrap_or_else(PoisonError::into_inner).take();
            // It goes only when it is made.
            from.map_or_else(|| Arc::new(Memory::Small(Vec::new())), |(_, make)| make())
        });
        made.bytes()
    }
}

/// Bytes of a file.
pub(super) struct Mapped {
    pub(super) map: Arc<Mmap>,
    /// Within the file.
    pub(super) range: Range<usize>,
    /// Whether they may stay there for good.
    pub(super) stays: bool,
    /// Where elements do not lie at multiples of their size in the file: a copy where they do, made where something
    /// first asks for it.
    aligned: Option<OnceLock<Arc<Memory>>>,
}

impl Mapped {
    pub(super) fn new(
        map: Arc<Mmap>,
        range: Range<usize>,
        stays: bool,
        is_aligned: bool,
    ) -> Mapped {
        Mapped { map, range, stays, aligned: (!is_aligned).then(OnceLock::new) }
    }

    /// The copy with elements at multiples of their size, where it was made.
    pub(super) fn copy(&self) -> Option<Arc<Memory>> {
        self.aligned.as_ref()?.get().cloned()
    }

    fn in_file(&self) -> &[u8] {
        &self.map[self.range.clone()]
    }

    fn bytes(&self) -> &[u8] {
        let Some(copy) = &self.aligned else { return self.in_file() };
        let copy = copy.get_or_init(|| {
            let copy = Memory::copy_of(self.in_file());
            self.release();
            Arc::new(copy)
        });
        // A copy has whole lines.
        &copy.bytes()[..self.range.len()]
    }

    /// Lets go of their pages: what is read again comes from the file.
    pub(super) fn release(&self) {
        #[cfg(target_os = "linux")]
        {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            // SAFETY: the mapping is of a file and shared, and cannot be written; so what its pages hold is in the
            // file as well, and pages that are read again hold the same.
            let _ = unsafe {
                self.map.unchecked_advise_range(advice, self.range.start, self.range.len())
            };
        }
    }
}

/// Bytes of another owner.
pub(super) struct Foreign {
    start: NonNull<u8>,
    count: usize,
    /// Whether they are written where they are.
    writable: bool,
    /// Keeps them where they are.
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: by the contract of `Foreign::new` the bytes may be read from any thread, and they are written only by
// whoever has the tensor alone. The owner may go from thread to thread by its type.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

// The owner is kept, and nothing else is done with it: there is no state to be seen half changed.
impl std::panic::UnwindSafe for Foreign {}
impl std::panic::RefUnwindSafe for Foreign {}

impl Foreign {
    /// # Safety
    /// As long as the owner is alive, there are `count` bytes from `start` on that any thread may
    /// read, and that are not written while they are read.
    pub unsafe fn new(
        start: NonNull<u8>,
        count: usize,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Foreign {
        Foreign { start, count, writable: false, _owner: owner }
    }

    /// Writes go to the owner's memory from now on: by the contract of `Tensor::from_foreign_mut`.
    pub fn allow_writes(&mut self) {
        self.writable = true;
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: by the contract of `Tensor::from_foreign_mut`, without which this is not called.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.count) }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: by the contract of `new`; the owner lives as long as this.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Memory {
    /// Zeros; `None` where there is no memory for them.
    pub fn zeros(bytes: usize) -> Option<Memory> {
        let count = bytes.div_ceil(ALIGN);
        // A machine without pages, such as WebAssembly, maps nothing.
        if bytes >= LARGE
            && let Ok(map) = MmapMut::map_anon(count.checked_mul(ALIGN)?)
        {
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

    pub fn bytes(&self) -> &[u8] {
        match self {
            Memory::Small(lines) => bytemuck::cast_slice(lines),
            Memory::Large(map) => map,
            Memory::Foreign(foreign) => foreign.bytes(),
            Memory::Mapped(mapped) => mapped.bytes(),
            Memory::Late(late) => late.bytes(),
        }
    }

    /// The bytes at any address: those of a file stay there.
    pub fn unaligned_bytes(&self) -> &[u8] {
        match self {
            Memory::Mapped(mapped) => mapped.in_file(),
            memory => memory.bytes(),
        }
    }

    /// The same bytes in memory of one's own.
    fn copy_of(bytes: &[u8]) -> Memory {
        match Memory::zeros(bytes.len()) {
            Some(mut copy) => {
                copy.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
                copy
            }
            // A `Vec` would end the process in the same way.
            None => std::alloc::handle_alloc_error(std::alloc::Layout::new::<Line>()),
        }
    }

    /// Whether writes go where the bytes are.
    pub fn is_own(&self) -> bool {
        match self {
            Memory::Small(_) | Memory::Large(_) => true,
            Memory::Foreign(foreign) => foreign.writable,
            Memory::Mapped(_) | Memory::Late(_) => false,
        }
    }

    /// All bytes, for writing; those of another owner, of a file or made late are copied first.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if !self.is_own() {
            *self = self.clone();
        }
        match self {
            Memory::Small(lines) => bytemuck::cast_slice_mut(lines),
            Memory::Large(map) => map,
            Memory::Foreign(foreign) => foreign.bytes_mut(),
            // A copy is none of these.
            Memory::Mapped(_) | Memory::Late(_) => &mut [],
        }
    }
}

impl Clone for Memory {
    fn clone(&self) -> Memory {
        match self {
            Memory::Small(lines) => Memory::Small(lines.clone()),
            memory => Memory::copy_of(memory.unaligned_bytes()),
        }
    }
}
