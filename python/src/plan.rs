//! What comparing modules and planning layouts say.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::prelude::*;
use tilewright_driver::Options;
use tilewright_driver::verify::{self, Answer};
use tilewright_driver::{layout, pipeline};
use tilewright_layout::flow::Planned;
use tilewright_layout::{Left, TiledLayout};
use tilewright_report::{About, Report, about, drawings, object, page, tables, what_if};
use tilewright_verify::VerifyOptions;

use crate::error::{Result, remarks};
use crate::executable::sizes;
use crate::module::{Extents, Module, extents};
use crate::work::{away, away_until_signal, until_signal};

/// The first element that differs: which, what it is in both modules, with which inputs.
type Witness = (String, Vec<String>, Vec<String>, Vec<(String, String)>);

/// Compares what modules compute: the answer, the text, the notes, the first difference.
#[pyfunction]
pub fn verify_modules(
    py: Python<'_>,
    a: &Module,
    b: &Module,
    dims: Extents,
    orders: (bool, bool),
    steps: Option<u64>,
) -> Result<(&'static str, String, Vec<String>, Option<Witness>)> {
    let (reassociate, reals) = orders;
    let mut options = VerifyOptions { reassociate, reals, ..VerifyOptions::default() };
    options.steps = steps.unwrap_or(options.steps);
    let (a, b) = (a.get(py)?.clone(), b.get(py)?.clone());
    let given = extents(dims)?;
    let verified = until_signal(py, move || verify::verify(&a, &b, &given, &options))?;
    let answer = match verified.answer {
        Answer::Equal => "equal",
        Answer::Differ => "differ",
        Answer::Undecided => "undecided",
    };
    let witness = verified.difference;
    let witness = witness.map(|d| (d.cell, d.terms.to_vec(), d.values.to_vec(), d.inputs));
    Ok((answer, verified.text, verified.notes, witness))
}

/// A plan of layouts.
#[pyclass(frozen, module = "tilewright._native")]
pub struct Plan {
    /// The module before, and in the layouts of the plan.
    before: tilewright_driver::Module,
    after: tilewright_driver::Module,
    plans: Vec<Planned>,
    left: Vec<Left>,
    /// The memory of values that lie in other memory than buffers.
    scopes: BTreeMap<Arc<str>, Arc<str>>,
    unit: &'static str,
    /// The machine that it is for.
    target: tilewright_driver::Target,
    /// All that it is for, in words.
    about: About,
}

/// Plans the layouts of a module; also what could not follow, and why.
#[pyfunction]
pub fn plan_layouts<'py>(
    py: Python<'py>,
    module: &Module,
    threads: &Bound<'py, PyAny>,
    cpu: Option<&str>,
    io_layout: &str,
) -> Result<(Plan, Vec<Bound<'py, PyAny>>)> {
    let before = away(py, || module.with_batch())?;
    let options = Options::new()
        .threads(crate::options::threads(threads)?)
        .target(crate::options::target(cpu)?)
        .tuning(tilewright_driver::measuring::file())
        .io_layout(io_layout.parse()?);
    let (plan, why) = away_until_signal(py, options, move |options| {
        let mut why = Vec::new();
        let timings = options.timings()?;
        let (after, plans, left) = layout::plan(&before, &timings, options.io_layout, &mut why)?;
        let unit = timings.unit().name();
        let target = options.resolve_target()?;
        let about = about(&before, &timings);
        let scopes = pipeline::scopes(&after, options)?;
        Ok((Plan { before, after, plans, left, scopes, unit, target, about }, why))
    })?;
    Ok((plan, remarks(py, &why)?))
}

impl Plan {
    fn report<'a>(&'a self, name: &'a str) -> Report<'a> {
        let Plan { before, after, plans, left, scopes, unit, target, about } = self;
        let (module, after) = (before, Some((after, target)));
        Report { model: name, module, after, plans, left, scopes, unit, times: &[], about }
    }
}

/// A layout of a tensor: name, index map, logical and physical extents, what part is padding.
type Row = (String, String, Vec<Py<PyAny>>, Vec<Py<PyAny>>, f64);

#[pymethods]
impl Plan {
    /// The module in these layouts.
    fn module(&self) -> Module {
        Module::of(self.after.clone())
    }

    /// The plan of each graph function as JSON.
    fn json(&self) -> Vec<String> {
        let one = |p| object(p, self.unit, &self.left, &[]).to_string();
        self.plans.iter().map(one).collect()
    }

    /// The page for a browser.
    fn html(&self, name: &str) -> String {
        page(&self.report(name))
    }

    /// The drawing of each graph function.
    fn drawings(&self) -> Vec<String> {
        drawings(&self.report(""))
    }

    /// What the plan costs, and one in which the call that makes a value is computed in a layout.
    fn what_if(&self, py: Python<'_>, value: &str, layout: &str) -> Result<(u64, u64)> {
        let text = format!("{value}={layout}");
        let other = away(py, || what_if(&text, &self.plans))?;
        Ok((other.plan, other.cost))
    }

    /// The layouts that were chosen.
    fn tensors(&self, py: Python<'_>) -> PyResult<Vec<Row>> {
        let chosen = self.plans.iter().flat_map(|p| {
            p.plan.tensors.iter().zip(&p.layouts).map(|(t, layouts)| {
                let layout: &TiledLayout = &layouts[t.layout];
                let (map, waste) = (layout.to_string(), layout.waste());
                let logical = sizes(py, &layout.logical)?;
                Ok((t.name.clone(), map, logical, sizes(py, &layout.physical())?, waste))
            })
        });
        chosen.collect()
    }

    /// Tables of the cells of the layout of a tensor, by its position, as HTML.
    fn cells(&self, tensor: usize) -> Vec<String> {
        let layouts = self.plans.iter().flat_map(|p| {
            p.plan.tensors.iter().zip(&p.layouts).map(|(t, layouts)| &layouts[t.layout])
        });
        layouts.skip(tensor).take(1).flat_map(tables).collect()
    }
}
