//! `firstflight._core`: what Python needs of the Rust crates. Conversions and error mapping only.

use firstflight_page::{Page, json_schema, synth};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

pyo3::create_exception!(
    _core,
    PageError,
    PyValueError,
    "A page that is refused: `at`, `problem`, `hint`."
);

fn page_error(py: Python<'_>, error: &firstflight_page::PageError) -> PyErr {
    let raised = PageError::new_err(error.to_string());
    let value = raised.value(py);
    for (name, text) in [
        ("at", &error.at),
        ("problem", &error.problem),
        ("hint", &error.hint),
    ] {
        if let Err(failed) = value.setattr(name, text) {
            return failed;
        }
    }
    raised
}

fn read_page(py: Python<'_>, text: &str) -> PyResult<Page> {
    Page::from_json(text).map_err(|error| page_error(py, &error))
}

/// Reads and checks a profile; returns it in canonical form.
#[pyfunction]
fn check_page(py: Python<'_>, text: &str) -> PyResult<String> {
    Ok(read_page(py, text)?.to_json())
}

/// The profile `text` with every https URL made http.
#[pyfunction]
fn in_the_clear(py: Python<'_>, text: &str) -> PyResult<String> {
    let mut page = read_page(py, text)?;
    page.clear_scheme();
    Ok(page.to_json())
}

/// The profile `text` with every http URL made https.
#[pyfunction]
fn over_tls(py: Python<'_>, text: &str) -> PyResult<String> {
    let mut page = read_page(py, text)?;
    page.secure_scheme();
    Ok(page.to_json())
}

/// The JSON Schema of a profile.
#[pyfunction]
fn page_schema() -> String {
    json_schema()
}

/// The synthesised body of resource `index` of the profile `text`, exactly `body_bytes` long.
#[pyfunction]
fn synthesize<'py>(py: Python<'py>, text: &str, index: usize) -> PyResult<Bound<'py, PyBytes>> {
    let page = read_page(py, text)?;
    check_index(&page, index)?;
    Ok(PyBytes::new(py, &synth::body(&page, index)))
}

/// What resource `index` of the profile `text` discovers but no synthesised body has room to refer to.
#[pyfunction]
fn unplaced(py: Python<'_>, text: &str, index: usize) -> PyResult<Vec<usize>> {
    let page = read_page(py, text)?;
    check_index(&page, index)?;
    Ok(synth::unplaced(&page, index))
}

fn check_index(page: &Page, index: usize) -> PyResult<()> {
    if index < page.resources.len() {
        return Ok(());
    }
    Err(PyIndexError::new_err(format!(
        "the page has {} resources",
        page.resources.len()
    )))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("PageError", module.py().get_type::<PageError>())?;
    module.add_function(wrap_pyfunction!(check_page, module)?)?;
    module.add_function(wrap_pyfunction!(in_the_clear, module)?)?;
    module.add_function(wrap_pyfunction!(over_tls, module)?)?;
    module.add_function(wrap_pyfunction!(page_schema, module)?)?;
    module.add_function(wrap_pyfunction!(synthesize, module)?)?;
    module.add_function(wrap_pyfunction!(unplaced, module)?)
}
