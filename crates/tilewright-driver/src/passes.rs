//! Every pass by its name: what `tilewright opt --pass` can run.
//!
//! A pass takes a module and gives a module. Each one is described in its own file, as a
//! [`Pass`]; the crates list theirs, and [`passes`] is all of them.

use std::fmt::Write as _;
use std::sync::LazyLock;

use tilewright_ir::{Error, Module, Remarks, Result};
use tilewright_transform::pass;
pub use tilewright_transform::pass::{Config, Pass};

use super::rules::check_after;
use super::{assume, checked, layout, winograd};

static ALL: LazyLock<Vec<&'static Pass>> = LazyLock::new(|| {
    let lists = [
        tilewright_transform::PASSES,
        tilewright_graph::PASSES,
        tilewright_layout::PASSES,
        tilewright_autoschedule::PASSES,
    ];
    let mut all: Vec<&'static Pass> = lists.into_iter().flatten().copied().collect();
    all.extend([&assume::PASS, &layout::PASS, &winograd::PASS]);
    all.sort_by_key(|p| p.name);
    all
});

/// Every pass, sorted by name.
pub fn passes() -> &'static [&'static Pass] {
    &ALL
}

/// The pass of this name.
///
/// # Errors
/// [`Error::Input`] that lists those there are.
pub fn find(name: &str) -> Result<&'static Pass> {
    pass::find(passes(), name)
}

/// Checks what was given to the passes that are to run.
///
/// # Errors
/// [`Error::Input`] for an option that none of them takes, and for a value that is none.
pub fn check_config(config: &Config, running: &[&Pass]) -> Result<()> {
    pass::check(config, running, passes())
}

/// Runs a pass; what it left as it was, and why, is added to `why`.
///
/// # Errors
/// Those of the pass, with the place in the module's source where there is one;
/// [`Error::Internal`] if the result breaks a rule of the IR or, in debug builds, computes
/// something else.
pub fn run(pass: &Pass, module: &Module, config: &Config, why: &mut Remarks) -> Result<Module> {
    Ok(run_traced(pass, module, config, why)?.0)
}

/// [`run`], and the trace of a pass that schedules.
///
/// # Errors
/// As [`run`].
pub fn run_traced(
    pass: &Pass,
    module: &Module,
    config: &Config,
    why: &mut Remarks,
) -> Result<(Module, Option<String>)> {
    let sourced = |e: Error| module.source.iter().fold(e, |e, source| e.in_source(source));
    let mut remarks = Remarks::new();
    let result = pass.apply_traced(module, config, &mut remarks);
    why.extend(remarks.into_iter().map(sourced));
    let (new, trace) = result.map_err(sourced)?;
    check_after(pass.name, &new)?;
    if pass.is_exact() {
        checked::check(pass.name, module, &new)?;
    }
    Ok((new, trace))
}

/// All passes with their options, as a page of Markdown.
pub fn page() -> String {
    let mut text = String::from(
        "# Passes\n\nThe passes of `tilewright opt --pass NAME,...`. An option is given as \
         `--pass-config NAME.OPTION=VALUE`, or without the pass's name. This page is made from the \
         passes themselves; `UPDATE_EXPECT=1 cargo test -p tilewright-driver --test it library` writes it.\n\n\
         | pass | what it does |\n|---|---|\n",
    );
    for pass in passes() {
        let _ = writeln!(text, "| `{}` | {} |", pass.name, pass.summary);
    }
    text += "\n| option | values | default | what it means |\n|---|---|---|---|\n";
    for pass in passes() {
        for option in pass.options {
            let key = pass.key(option.name());
            let (values, default) = (option.values(), option.default_value());
            let _ = writeln!(text, "| `{key}` | {values} | `{default}` | {} |", option.summary());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_defaults_can_be_given() {
        assert!(passes().is_sorted_by(|a, b| a.name < b.name));
        for pass in passes() {
            assert!(find(pass.name).is_ok_and(|p| p.name == pass.name));
            for (k, option) in pass.options.iter().enumerate() {
                let key = pass.key(option.name());
                let config = Config::new().with(&key, option.default_value());
                assert!(check_config(&config, &[*pass]).is_ok(), "{key}");
                assert!(pass.options[..k].iter().all(|o| o.name() != option.name()), "{key}");
            }
        }
    }
}
