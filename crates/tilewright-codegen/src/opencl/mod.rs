//! OpenCL: devices of this machine, found at run time.
//!
//! * `api`: the library; `driver`: the devices that its drivers list, and which one is meant.
//! * `device`: one that is open, with memory, a queue and programs.
//! * `backend`: all of it as a [`Backend`](tilewright_target::Backend).
//!
//! What runs is one queue a device, in order. A function with assertions is waited for; nothing else is
//! before results are copied to the host.

mod api;
mod backend;
mod device;
mod driver;

pub use backend::OpenClBackend;
pub use driver::{DeviceInfo, FAMILY, choose, devices};

/// The file of the library, for people.
///
/// # Errors
/// [`Error::Toolchain`](tilewright_ir::Error::Toolchain) if there is no OpenCL.
pub fn library() -> tilewright_ir::Result<&'static std::path::Path> {
    Ok(&api::Api::get()?.file)
}
