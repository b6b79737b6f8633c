//! The certificates of what `tilewright opt` does.

use std::path::Path;

use tilewright_driver::Module;
use tilewright_driver::certificate::certificates;
use tilewright_runtime::file;
use tilewright_schedule::value::Lambda;

use super::answer::{Answer, Outcome, talk};

/// A module after a step, with the step as text.
pub struct Step {
    pub what: String,
    pub module: Module,
}

/// Writes the certificates of all steps, of which the first one is the module as it was.
pub fn write(path: &Path, steps: &[Step], maps: &[Lambda]) -> Outcome {
    let mut text = String::new();
    for pair in steps.windows(2) {
        let [before, after] = pair else { continue };
        match certificates(&before.module, &after.module, maps) {
            Ok(certificates) => text += &certificates,
            Err(why) => {
                talk!("`{}` has no certificate: {why}", after.what);
                return Ok(Answer::Undecided);
            }
        }
    }
    if text.is_empty() {
        talk!("nothing was changed, which needs no certificate");
        return Ok(Answer::Undecided);
    }
    file::write(path, text.as_bytes())?;
    Ok(Answer::Yes)
}
