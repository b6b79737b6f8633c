//! The one error type as exceptions.
//!
//! The classes are Python's, in `tilewright.errors`: one a kind, each with the fields of the
//! diagnostic.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tilewright_driver::Error;

/// What a function of this crate fails with.
pub enum Fault {
    /// An error of the library.
    Own(Error),
    /// An exception.
    Python(PyErr),
}

/// The result of a function of this crate.
pub type Result<T, E = Fault> = std::result::Result<T, E>;

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Own(error)
    }
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Fault {
        Fault::Python(error)
    }
}

impl From<std::convert::Infallible> for Fault {
    fn from(never: std::convert::Infallible) -> Fault {
        match never {}
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> PyErr {
        match fault {
            Fault::Python(error) => error,
            Fault::Own(error) => Python::attach(|py| exception(py, &error).unwrap_or_else(|e| e)),
        }
    }
}

/// The function of Python that makes an exception.
static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The name of the kind of an error, which is that of its class.
fn kind(error: &Error) -> &'static str {
    match error {
        Error::Syntax(_) => "syntax",
        Error::Malformed(_) => "malformed",
        Error::Model(_) => "model",
        Error::Unsupported(_) => "unsupported",
        Error::Input(_) => "input",
        Error::Refused(_) => "refused",
        Error::Execution(_) => "execution",
        Error::Toolchain(_) => "toolchain",
        Error::Io(_) => "io",
        _ => "internal",
    }
}

/// An error as an exception object.
pub fn object<'py>(py: Python<'py>, error: &Error, level: &str) -> PyResult<Bound<'py, PyAny>> {
    let make = MAKE.get_or_try_init(py, || {
        py.import("tilewright.errors")?.getattr("_make").map(Bound::unbind)
    })?;
    let d = error.diagnostic();
    let place = d.span.zip(d.source.as_ref()).map(|(span, source)| {
        let (line, column) = source.line_col(span.start);
        let text = source.text.get(span.start as usize..span.end as usize).unwrap_or("");
        (&source.name, line, column, text)
    });
    let fields = (
        kind(error),
        &d.message,
        place,
        d.help.as_deref(),
        d.notes.clone(),
        error.render_as(level),
    );
    make.bind(py).call1(fields)
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    Ok(PyErr::from_value(object(py, error, "error")?))
}

/// Remarks as exception objects, which are not raised.
pub fn remarks<'py>(py: Python<'py>, all: &[Error]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    all.iter().map(|e| object(py, e, "remark")).collect()
}

/// The error of something that was closed.
pub fn closed(what: &str) -> Fault {
    PyRuntimeError::new_err(format!("this {what} is closed")).into()
}
