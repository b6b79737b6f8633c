//! What [`crate::Engine`] says of the sets of `presburger`.

use std::ffi::c_uint;
use std::path::PathBuf;
use std::sync::OnceLock;

use tilewright_ir::Error;

/// Parameters.
pub(crate) const PARAM: c_uint = 1;
/// Input of a map.
pub(crate) const IN: c_uint = 2;
/// Dimensions of a set; output of a map.
pub(crate) const SET: c_uint = 3;
/// Integer divisions.
pub(crate) const DIV: c_uint = 4;

/// The library: a part of this program.
pub(crate) struct Api {
    pub version: String,
    pub file: PathBuf,
}

impl Api {
    pub fn get() -> Result<&'static Api, Error> {
        static API: OnceLock<Api> = OnceLock::new();
        Ok(API.get_or_init(|| Api { version: "presburger".into(), file: PathBuf::new() }))
    }
}
