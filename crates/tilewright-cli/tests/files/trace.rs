//! The trace of a schedule, printed and run again, gives the same module.

use tilewright_driver::schedule_script::apply;
use tilewright_driver::{Sizes, parse};
use tilewright_ir::{Source, equal};
use tilewright_schedule::{Permissions, Schedule};

/// Applies a script to a module, prints the trace, and applies that to the module again.
pub fn reproduces(input: &str, script: &str) -> Result<(), String> {
    let run = |name: &str, script: &str| {
        let module = parse(input, &Sizes::new()).map_err(|e| e.render())?;
        let mut schedule = Schedule::new(module, Permissions { change_interface: true });
        apply(&mut schedule, &Source::new(name, script), |_, _| Ok(()))
            .map_err(|e| format!("{name}:\n{script}\n{}", e.render()))?;
        Ok::<Schedule, String>(schedule)
    };
    let first = run("the script", script)?;
    let printed = first.trace().to_string();
    let again = run("its trace", &printed)?;
    equal::modules(first.module(), again.module(), &equal::Equality::default())
        .map_err(|d| format!("the trace gives another module: {d}\n{printed}"))
}
