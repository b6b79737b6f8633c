//! Modules: read, looked at, changed and compiled.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tilewright_driver::load::{Draft, fixed_inputs};
use tilewright_driver::passes::{self, Config};
use tilewright_driver::pipeline::PipelineStage;
use tilewright_driver::session::{OpenSizes, Origin, Request};
use tilewright_driver::{DType, Error, Session, SizeRange, Sizes, print};
use tilewright_graph::sizes;
use tilewright_ir as ir;
use tilewright_ir::signature::{Dim, ValueType};
use tilewright_ir::{Source, Tensor};
use tilewright_tvmscript::{ConstTable, parse_module_with, print_module_with};

use crate::array;
use crate::error::{Result, remarks};
use crate::executable::{Executable, Port};
use crate::options;
use crate::work::{away, away_until_signal, until_signal};

/// A module, or a file whose sizes are not settled yet.
#[pyclass(frozen, module = "tilewright._native")]
pub struct Module {
    /// The file, where it may still be read with other sizes.
    draft: Option<Arc<Draft>>,
    sizes: Sizes,
    made: OnceLock<tilewright_driver::Module>,
    /// The inputs that are constants, where a program that was kept says it.
    fixed: OnceLock<Vec<String>>,
}

impl Module {
    pub fn of(module: tilewright_driver::Module) -> Module {
        let made = OnceLock::from(module);
        Module { draft: None, sizes: Sizes::new(), made, fixed: OnceLock::new() }
    }

    fn of_model(draft: Arc<Draft>, sizes: Sizes) -> Module {
        Module { draft: Some(draft), sizes, made: OnceLock::new(), fixed: OnceLock::new() }
    }

    /// A model keeps its file, so that its sizes may be settled anew; a module leaves them open.
    fn of_draft(draft: Draft, sizes: Sizes) -> tilewright_driver::Result<Module> {
        Ok(if draft.is_model() {
            Module::of_model(Arc::new(draft), sizes)
        } else {
            Module::of(draft.module(&sizes)?)
        })
    }

    /// The module, which is read now where it was not.
    pub fn module(&self) -> tilewright_driver::Result<&tilewright_driver::Module> {
        if let Some(module) = self.made.get() {
            return Ok(module);
        }
        let draft = self.draft.as_ref();
        let draft = draft.ok_or_else(|| Error::internal("a module that is nothing"))?;
        let module = draft.module(&self.sizes)?;
        Ok(self.made.get_or_init(|| module))
    }

    /// The module with one sample in a batch of a model that nothing settles: what planning and tuning
    /// look at.
    pub fn with_batch(&self) -> tilewright_driver::Result<tilewright_driver::Module> {
        if let Some(draft) = &self.draft {
            let mut sizes = self.sizes.clone();
            for key in draft.open_batch(&sizes)? {
                sizes.dims.insert(key, 1);
            }
            if sizes.dims != self.sizes.dims {
                return draft.module(&sizes);
            }
        }
        self.module().cloned()
    }

    /// The same without holding the lock of the interpreter.
    pub fn get(&self, py: Python<'_>) -> Result<&tilewright_driver::Module> {
        match self.made.get() {
            Some(module) => Ok(module),
            None => Ok(away(py, || self.module())?),
        }
    }
}

/// What a call says of a size: the size, or what it may be.
#[derive(FromPyObject)]
pub enum Extent {
    /// A size.
    Size(usize),
    /// The least and the most.
    Range((usize, usize)),
}

/// Sizes and ranges by name.
pub type Extents = BTreeMap<String, Extent>;

/// The sizes and ranges of a call.
pub fn extents(given: Extents) -> tilewright_driver::Result<Sizes> {
    let mut sizes = Sizes::new();
    for (name, extent) in given {
        sizes = match extent {
            Extent::Size(size) => sizes.dim(name, size),
            Extent::Range((least, most)) => sizes.range(name, SizeRange::new(least, most)?),
        };
    }
    Ok(sizes)
}

/// The sizes of a call.
fn given(
    dims: Option<Extents>,
    shapes: Option<BTreeMap<String, Vec<usize>>>,
    values: Option<&Bound<'_, PyDict>>,
) -> Result<Sizes> {
    let mut sizes = extents(dims.unwrap_or_default())?;
    sizes.shapes = shapes.unwrap_or_default();
    for (name, value) in values.into_iter().flatten() {
        let name: String = name.extract()?;
        let value = array::owned(&value, &format!("the value of `{name}`"))?;
        sizes = sizes.value(name, value);
    }
    Ok(sizes)
}

/// Reads a file: ONNX (`.onnx`) or TVMScript.
#[pyfunction]
#[pyo3(signature = (path, dims=None, shapes=None, values=None))]
pub fn load(
    py: Python<'_>,
    path: PathBuf,
    dims: Option<Extents>,
    shapes: Option<BTreeMap<String, Vec<usize>>>,
    values: Option<&Bound<'_, PyDict>>,
) -> Result<Module> {
    let sizes = given(dims, shapes, values)?;
    Ok(away(py, || Module::of_draft(Draft::open(&path)?, sizes))?)
}

/// Reads TVMScript; `name` is what messages call it.
#[pyfunction]
#[pyo3(signature = (text, name, dims=None))]
pub fn parse(py: Python<'_>, text: &str, name: &str, dims: Option<Extents>) -> Result<Module> {
    let sizes = given(dims, None, None)?;
    Ok(away(py, || Module::of_draft(Draft::parse(name, text)?, sizes))?)
}

/// A size as Python has it: a number, or the text of what decides it.
fn size(py: Python<'_>, e: &ir::Expr) -> PyResult<Py<PyAny>> {
    Ok(match e.as_int() {
        Some(n) => n.into_pyobject(py)?.into_any().unbind(),
        None => e.to_string().into_pyobject(py)?.into_any().unbind(),
    })
}

/// An input as a file describes it, with the sizes that are settled.
fn described(py: Python<'_>, input: ValueType, sizes: &Sizes) -> PyResult<Port> {
    let name = &input.name;
    let dim = |(axis, d): (usize, Dim)| {
        let given = sizes.dims.get(&format!("{name}.{axis}"));
        let given = given.or(sizes.shapes.get(name).and_then(|shape| shape.get(axis)));
        let d = match (&d, given) {
            (Dim::Named(name), None) => sizes.dims.get(name).map_or(d, |n| Dim::Fixed(*n)),
            (Dim::Fixed(_), _) | (Dim::Open, None) => d,
            (_, Some(n)) => Dim::Fixed(*n),
        };
        Ok::<_, PyErr>(match d {
            Dim::Fixed(n) => n.into_pyobject(py)?.into_any().unbind(),
            Dim::Named(name) => name.into_pyobject(py)?.into_any().unbind(),
            Dim::Open => "?".into_pyobject(py)?.into_any().unbind(),
        })
    };
    let dims = input.dims.map(|d| d.into_iter().enumerate().map(dim).collect::<PyResult<_>>());
    let dims = dims.transpose()?;
    let dtype = input.dtype.map(|d| d.to_string()).unwrap_or_default();
    Ok((input.name, dtype, dims))
}

#[pymethods]
impl Module {
    /// TVMScript.
    fn text(&self, py: Python<'_>) -> Result<String> {
        let module = self.get(py)?;
        Ok(away(py, || print(module)))
    }

    /// The names of the functions, in order.
    fn functions(&self, py: Python<'_>) -> Result<Vec<String>> {
        Ok(self.get(py)?.functions.keys().map(|name| name.to_string()).collect())
    }

    /// The name of the entry.
    fn entry(&self, py: Python<'_>) -> Result<String> {
        Ok(self.get(py)?.entry()?.to_string())
    }

    /// What can be given: name, element type and sizes of each.
    fn inputs(&self, py: Python<'_>) -> Result<Vec<Port>> {
        if let Some(draft) = &self.draft {
            let inputs = draft.inputs()?;
            let ports = inputs.into_iter().map(|input| described(py, input, &self.sizes));
            return Ok(ports.collect::<PyResult<_>>()?);
        }
        let module = self.get(py)?;
        let mut ports = Vec::new();
        for input in sizes::inputs(module, module.entry()?) {
            let shape: Vec<Py<PyAny>> =
                input.shape.iter().map(|e| size(py, e)).collect::<PyResult<_>>()?;
            ports.push((input.name.to_string(), input.dtype.to_string(), Some(shape)));
        }
        Ok(ports)
    }

    /// The names of the inputs that became constants, because sizes depend on them.
    fn fixed(&self, py: Python<'_>) -> Result<Vec<String>> {
        if let Some(fixed) = self.fixed.get() {
            return Ok(fixed.clone());
        }
        Ok(fixed_inputs(self.get(py)?).iter().map(|name| name.to_string()).collect())
    }

    /// The sizes that are open: names that may be given.
    fn open(&self, py: Python<'_>) -> Result<Vec<String>> {
        Ok(sizes::open(self.get(py)?).iter().map(|name| name.to_string()).collect())
    }

    /// The module with more sizes settled.
    #[pyo3(signature = (dims=None, shapes=None, values=None))]
    fn with_sizes(
        &self,
        py: Python<'_>,
        dims: Option<Extents>,
        shapes: Option<BTreeMap<String, Vec<usize>>>,
        values: Option<&Bound<'_, PyDict>>,
    ) -> Result<Module> {
        let more = given(dims, shapes, values)?;
        let Some(draft) = &self.draft else {
            let module = self.get(py)?;
            return Ok(Module::of(away(py, || sizes::fill(module, &more))?));
        };
        let mut sizes = self.sizes.clone();
        sizes.dims.extend(more.dims);
        sizes.ranges.extend(more.ranges);
        sizes.shapes.extend(more.shapes);
        sizes.values.extend(more.values);
        Ok(Module::of_model(draft.clone(), sizes))
    }

    /// Runs a pass: the new module, the trace of a pass that schedules, and what stays and why.
    fn run_pass<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        options: Vec<(String, String)>,
    ) -> Result<(Module, Option<String>, Vec<Bound<'py, PyAny>>)> {
        let module = self.get(py)?.clone();
        let config = Config::from_iter(options);
        let name = name.to_owned();
        let (new, trace, why) = until_signal(py, move || {
            let pass = passes::find(&name)?;
            passes::check_config(&config, &[pass])?;
            let mut why = Vec::new();
            let (new, trace) = passes::run_traced(pass, &module, &config, &mut why)?;
            Ok((new, trace, why))
        })?;
        Ok((Module::of(new), trace, remarks(py, &why)?))
    }

    /// The module after a stage of compilation.
    #[pyo3(signature = (stage, **options))]
    fn after(
        &self,
        py: Python<'_>,
        stage: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Result<Module> {
        let until = PipelineStage::named(stage)?;
        let module = self.get(py)?.clone();
        let made = away_until_signal(py, options::parse(options)?, move |options| {
            Session::new(options.clone()).stages(&module, until)
        })?;
        Ok(Module::of(made.module))
    }

    /// Compiles the module. That of a model's file is kept for the next process.
    #[pyo3(signature = (**options))]
    fn compile(slf: &Bound<'_, Self>, options: Option<&Bound<'_, PyDict>>) -> Result<Executable> {
        let options = options::parse(options)?;
        let module = slf.clone().unbind();
        let executable = away_until_signal(slf.py(), options, move |options| {
            let module = module.get();
            let session = Session::new(options.clone());
            let Some(draft) = &module.draft else { return session.compile(module.module()?) };
            let mut started = session.start(&Request {
                model: Origin::Draft { draft, made: &module.made },
                inputs: &module.sizes,
                open: OpenSizes::AsGiven,
                kept: true,
            })?;
            session.keep(&mut started);
            module.fixed.get_or_init(|| started.fixed);
            Ok(started.executable)
        })?;
        Ok(Executable::of(executable))
    }

    /// Compiles the module into a file that starts without LLVM.
    #[pyo3(signature = (path, **options))]
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Result<()> {
        let options = options::parse(options)?;
        let module = self.get(py)?.clone();
        away_until_signal(py, options, move |options| {
            Session::new(options.clone()).save(&module, path)
        })
    }

    /// What structural comparison finds first; `None` where there is no difference.
    #[pyo3(signature = (other, strict=false))]
    fn difference(
        &self,
        py: Python<'_>,
        other: &Module,
        strict: bool,
    ) -> Result<Option<Difference>> {
        let (a, b) = (self.get(py)?, other.get(py)?);
        let options =
            if strict { ir::equal::Equality::texts() } else { ir::equal::Equality::loose() };
        Ok(away(py, || ir::equal::modules(a, b, &options)).err().map(|d| {
            let line = |span: Option<ir::Span>, module: &tilewright_driver::Module| {
                Some(module.source.as_ref()?.line_col(span?.start).0)
            };
            let lines = (line(d.left_span, a), line(d.right_span, b));
            (d.to_string(), d.path, d.left, d.right, lines.0, lines.1)
        }))
    }

    /// The module as text and the constants that it names, for pickling.
    fn state<'py>(&self, py: Python<'py>) -> Result<(String, Vec<Constant<'py>>)> {
        let module = self.get(py)?;
        let mut table = ConstTable::default();
        let text = away(py, || print_module_with(module, &mut table));
        let constants = table.iter().map(|(name, t)| {
            let bytes = PyBytes::new(py, t.bytes());
            (name.to_string(), t.dtype().to_string(), t.shape().to_vec(), bytes)
        });
        Ok((text, constants.collect()))
    }

    /// The module of a state.
    #[staticmethod]
    fn from_state(py: Python<'_>, text: String, constants: Vec<Constant<'_>>) -> Result<Module> {
        let mut table = ConstTable::default();
        for (name, dtype, shape, bytes) in constants {
            let dtype: DType = dtype.parse()?;
            table.insert(name, Tensor::from_bytes(dtype, &shape, bytes.as_bytes())?);
        }
        let source = Source::new("<pickle>", text);
        Ok(Module::of(away(py, || parse_module_with(&source, &table))?))
    }
}

/// A difference: the whole as text, where it is, both sides, and their lines.
type Difference = (String, String, String, String, Option<usize>, Option<usize>);

/// A constant: name, element type, shape, bytes.
type Constant<'py> = (String, String, Vec<usize>, Bound<'py, PyBytes>);
