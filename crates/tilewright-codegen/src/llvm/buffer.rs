//! Bytes in LLVM's hands: what it reads from, and what it emits.

use std::ffi::CStr;
use std::ptr::NonNull;

use super::Llvm;
use super::api::MemoryBuffer;

/// A memory buffer that this side owns.
pub(super) struct Buffer<'a> {
    llvm: &'a Llvm,
    raw: *mut MemoryBuffer,
}

impl<'a> Buffer<'a> {
    /// A buffer with a copy of `bytes`. LLVM's messages speak of it under `name`. LLVM
    /// ends the process when memory runs out, so there always is one.
    pub fn copy(llvm: &'a Llvm, bytes: &[u8], name: &CStr) -> Self {
        let create = llvm.functions().LLVMCreateMemoryBufferWithMemoryRangeCopy;
        // SAFETY: LLVM copies the range, and the name, before it returns.
        let raw = unsafe { create(bytes.as_ptr().cast(), bytes.len(), name.as_ptr()) };
        Buffer { llvm, raw }
    }

    /// Takes over a buffer that LLVM handed out.
    ///
    /// # Safety
    /// `raw` is valid, and no other code disposes of it.
    pub unsafe fn own(llvm: &'a Llvm, raw: NonNull<MemoryBuffer>) -> Self {
        Buffer { llvm, raw: raw.as_ptr() }
    }

    /// Hands the buffer to a function of LLVM's that takes it over.
    pub fn into_raw(self) -> *mut MemoryBuffer {
        std::mem::ManuallyDrop::new(self).raw
    }

    pub fn bytes(&self) -> &[u8] {
        let f = self.llvm.functions();
        // SAFETY: the buffer is valid and does not change while it is borrowed.
        unsafe {
            let start = (f.LLVMGetBufferStart)(self.raw);
            let size = (f.LLVMGetBufferSize)(self.raw);
            if size == 0 { &[] } else { std::slice::from_raw_parts(start.cast(), size) }
        }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: owned, and not handed on.
        unsafe { (self.llvm.functions().LLVMDisposeMemoryBuffer)(self.raw) }
    }
}
