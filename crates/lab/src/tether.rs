//! The lab lives as long as its standard input: whoever started it holds the other end.

use std::io::{self, BufRead, Read};

use crate::LabError;

/// Reads the job, one line, and ties the life of this process to the rest of standard input.
///
/// # Errors
/// [`LabError`] when there is no line to read.
pub fn read_job() -> Result<String, LabError> {
    let mut line = String::new();
    io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| LabError::new(format!("reading the job: {error}"), "write one line of JSON"))?;
    Ok(line)
}

/// Ends this process, and with it the lab, when standard input closes.
pub fn die_with_stdin() {
    std::thread::spawn(|| {
        let mut rest = [0; 256];
        while matches!(io::stdin().lock().read(&mut rest), Ok(1..)) {}
        std::process::exit(EXIT_ABANDONED);
    });
}

/// Exit code of a lab whose owner went away.
const EXIT_ABANDONED: i32 = 3;
