//! The table of passes.

use pyo3::prelude::*;
use tilewright_driver::passes as table;
use tilewright_driver::pipeline::PipelineStage;

/// An option: name, what it means, its values in words, its default as text.
type Choice = (&'static str, &'static str, String, String);

/// Every pass: name, what it does, its options.
#[pyfunction]
pub fn passes() -> Vec<(&'static str, &'static str, Vec<Choice>)> {
    let row = |pass: &&'static table::Pass| {
        let options = pass.options.iter();
        let options = options.map(|o| (o.name(), o.summary(), o.values(), o.default_value()));
        (pass.name, pass.summary, options.collect())
    };
    table::passes().iter().map(row).collect()
}

/// The stages of a compilation, in order.
#[pyfunction]
pub fn stages() -> Vec<&'static str> {
    PipelineStage::all().map(PipelineStage::name).collect()
}
