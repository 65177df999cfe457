//! `firstflight._core`: the interface of the Rust crates for Python. Conversions and error mapping only.

use firstflight_page::{Page, json_schema, synth};
use firstflight_path::Trace;
use firstflight_sim::{Job, SimPage, simulate};
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

/// Parses and checks a profile. Returns it in canonical form.
#[pyfunction]
fn check_page(py: Python<'_>, text: &str) -> PyResult<String> {
    Ok(read_page(py, text)?.to_json())
}

/// `text` as browsers request it, resolved against `base`; `None` if it is no http or https URL.
#[pyfunction]
#[pyo3(signature = (text, base=None))]
fn canonical_url(text: &str, base: Option<&str>) -> Option<String> {
    firstflight_page::canonical_url(text, base)
}

/// The profile `text` with every https URL changed to http.
#[pyfunction]
fn in_the_clear(py: Python<'_>, text: &str) -> PyResult<String> {
    let mut page = read_page(py, text)?;
    page.clear_scheme();
    Ok(page.to_json())
}

/// The profile `text` with every http URL changed to https.
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

/// The resources that `index` of the profile `text` discovers but that no synthesised body has room to refer to.
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

/// Parses a trace of a link. Returns its mean rate in bit/s, and its length in ms.
#[pyfunction]
fn measure_trace(text: &str) -> PyResult<(u64, u32)> {
    let trace = Trace::parse(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((trace.mean_bps(), trace.lasts_ms()))
}

/// A page prepared for many simulations, from any number of threads at once.
#[pyclass(frozen)]
struct Simulator {
    page: SimPage,
}

#[pymethods]
impl Simulator {
    /// Prepares the page of a profile.
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<Self> {
        let page = SimPage::new(&read_page(py, text)?);
        Ok(Self { page })
    }

    /// Simulates one load: a job as JSON in, its record as JSON out. Other threads run meanwhile.
    fn load(&self, py: Python<'_>, job: &str) -> PyResult<String> {
        py.detach(|| {
            let record = simulate(&self.page, &Job::from_json(job)?)?;
            Ok(serde_json::to_string(&record)?)
        })
        .map_err(|error: firstflight_sim::SimError| PyValueError::new_err(error.to_string()))
    }

    /// As `load`, and returns a line per segment on the wire.
    fn trace(&self, py: Python<'_>, job: &str) -> PyResult<(String, Vec<String>)> {
        py.detach(|| {
            let (record, lines) = firstflight_sim::trace(&self.page, &Job::from_json(job)?)?;
            Ok((serde_json::to_string(&record)?, lines))
        })
        .map_err(|error: firstflight_sim::SimError| PyValueError::new_err(error.to_string()))
    }
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("PageError", module.py().get_type::<PageError>())?;
    module.add_class::<Simulator>()?;
    module.add_function(wrap_pyfunction!(canonical_url, module)?)?;
    module.add_function(wrap_pyfunction!(check_page, module)?)?;
    module.add_function(wrap_pyfunction!(in_the_clear, module)?)?;
    module.add_function(wrap_pyfunction!(measure_trace, module)?)?;
    module.add_function(wrap_pyfunction!(over_tls, module)?)?;
    module.add_function(wrap_pyfunction!(page_schema, module)?)?;
    module.add_function(wrap_pyfunction!(synthesize, module)?)?;
    module.add_function(wrap_pyfunction!(unplaced, module)?)
}
