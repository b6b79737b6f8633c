//! The constants that this machine was calibrated to, as a file of measurements keeps them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tilewright_ir::hash::HashMap;

use tilewright_ir::Result;
use tilewright_target::{Costs, Target, machine};
use tilewright_tune::{Calibration, Scope, Store};

use super::file_state::with_log;

/// What measurements for a target hold for.
pub(super) fn scope(target: &Target, threads: usize) -> Scope {
    let hash = blake3::hash(target.features.as_bytes()).to_hex();
    let target = format!("{} {} (features {})", target.triple, target.cpu, &hash[..8]);
    Scope { target, threads }
}

/// Keeps a calibration for this machine.
///
/// # Errors
/// Those of the store.
pub fn keep(store: &Store, target: &Target, costs: &Costs) -> Result<()> {
    let Some(cycle) = costs.cycle else { return Ok(()) };
    let names = Costs::NAMES.iter().map(|name| (*name).to_owned());
    let values: BTreeMap<String, f64> = names.zip(costs.values()).collect();
    store.calibrate(&Calibration::now(&machine(), &scope(target, 1), cycle, values)).map(drop)
}

/// A target with the constants that this machine was calibrated to, where it was.
///
/// # Errors
/// Those of the store.
pub fn known(store: &Store, target: &Target) -> Result<Target> {
    let mut target = target.clone();
    if target.costs.cycle.is_none()
        && let Some(c) = store.calibration(&machine(), &scope(&target, 1))?
    {
        let values = c.costs.iter().map(|(name, value)| (name.as_str(), *value));
        target.costs = target.costs.with(c.cycle, values).unwrap_or(target.costs);
    }
    Ok(target)
}

/// The same for a file, which is read again only when it has changed. A file that cannot be read says
/// nothing: who asks for its measurements is told.
pub(crate) fn of_file(file: &Path, target: Target) -> Target {
    type Kept = HashMap<(PathBuf, String), (String, Costs)>;
    static KEPT: Mutex<Option<Kept>> = Mutex::new(None);
    let name = (file.to_owned(), scope(&target, 1).code());
    let state = with_log(file);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.get_or_insert_default();
    let costs = match kept.get(&name) {
        Some((then, costs)) if *then == state => costs.clone(),
        _ => {
            let read = Store::open_existing(file).ok().flatten();
            let read = read.and_then(|store| known(&store, &target).ok());
            let costs = read.map_or_else(|| target.costs.clone(), |read| read.costs);
            kept.insert(name, (state, costs.clone()));
            costs
        }
    };
    let mut target = target;
    target.costs = costs;
    target
}
