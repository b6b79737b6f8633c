//! The file that keeps measurements, where the feature `sqlite` is left out: there is none.

use std::collections::BTreeMap;
use std::path::Path;

use tilewright_ir::{Error, Result};

use crate::key::{Key, Scope};
use crate::record::{Calibration, Record};

/// A file of measurements, of which there is none.
pub enum Store {}

fn refused(path: &Path) -> Error {
    Error::unsupported(format!(
        "{}: files of measured times are left out of this program",
        path.display()
    ))
    .help("build it with the feature `tuning` of the crate `tilewright`")
}

impl Store {
    /// Opens no file.
    ///
    /// # Errors
    /// `Unsupported`, always.
    pub fn open(path: &Path) -> Result<Store> {
        Err(refused(path))
    }

    /// Opens no file; `None` where there is none.
    ///
    /// # Errors
    /// `Unsupported` for a file that is there: what it says would be left out.
    pub fn open_existing(path: &Path) -> Result<Option<Store>> {
        if path.exists() { Err(refused(path)) } else { Ok(None) }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        match *self {}
    }

    /// The measurement of a key.
    ///
    /// # Errors
    /// None.
    pub fn get(&self, _: &Key) -> Result<Option<Record>> {
        match *self {}
    }

    /// All measurements of a scope, by their keys.
    ///
    /// # Errors
    /// None.
    pub fn of_scope(&self, _: &Scope) -> Result<BTreeMap<Key, Record>> {
        match *self {}
    }

    /// All measurements.
    ///
    /// # Errors
    /// None.
    pub fn all(&self) -> Result<Vec<Record>> {
        match *self {}
    }

    /// Keeps a measurement.
    ///
    /// # Errors
    /// None.
    pub fn put(&self, _: &Record) -> Result<bool> {
        match *self {}
    }

    /// Keeps a calibration.
    ///
    /// # Errors
    /// None.
    pub fn calibrate(&self, _: &Calibration) -> Result<bool> {
        match *self {}
    }

    /// The calibration of a machine for some code.
    ///
    /// # Errors
    /// None.
    pub fn calibration(&self, _: &str, _: &Scope) -> Result<Option<Calibration>> {
        match *self {}
    }

    /// All calibrations.
    ///
    /// # Errors
    /// None.
    pub fn calibrations(&self) -> Result<Vec<Calibration>> {
        match *self {}
    }

    /// All of it as lines of JSON.
    ///
    /// # Errors
    /// None.
    pub fn export(&self) -> Result<String> {
        match *self {}
    }

    /// Merges lines of JSON into it.
    ///
    /// # Errors
    /// None.
    pub fn import(&self, _: &str) -> Result<(usize, usize)> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_refused_and_none_is_none() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        for opened in [Store::open(&here).map(Some), Store::open_existing(&here)] {
            let error = opened.err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains("measured times are left out of this program"), "{error}");
        }
        let missing = here.with_file_name("nothing.sqlite");
        assert!(Store::open_existing(&missing).is_ok_and(|store| store.is_none()));
        assert!(Store::open(&missing).is_err() && !missing.exists());
    }
}
