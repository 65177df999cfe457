//! Reads and writes a page as a JSON profile.

use serde_json::error::Category;

use crate::{Page, PageError};

/// The profile format this version reads and writes.
pub const FORMAT: &str = "firstflight-profile/1";

impl Page {
    /// Parses and checks a profile. Its URLs become canonical.
    ///
    /// # Errors
    /// [`PageError`] naming the key, when the text is not JSON, not of the profile format, or not a page that can
    /// be loaded.
    pub fn from_json(text: &str) -> Result<Self, PageError> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let mut page: Self =
            serde_path_to_error::deserialize(&mut deserializer).map_err(|error| unreadable(&error))?;
        deserializer.end().map_err(|error| {
            PageError::new(
                ".",
                error.to_string(),
                "a profile is one JSON object: remove what follows it",
            )
        })?;
        page.validate()?;
        page.canonicalise();
        Ok(page)
    }

    /// Writes the page as a profile: pretty-printed JSON with a final newline.
    ///
    /// # Panics
    /// Never: a page has only serialisable fields.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a page has only serialisable fields");
        text.push('\n');
        text
    }
}

fn unreadable(error: &serde_path_to_error::Error<serde_json::Error>) -> PageError {
    let inner = error.inner();
    let (problem, hint) = match inner.classify() {
        Category::Eof => (
            format!(
                "the text ends too early, at line {} column {}",
                inner.line(),
                inner.column()
            ),
            "copy or export the file again: its end is missing",
        ),
        Category::Syntax => (
            format!("not JSON: {inner}"),
            "write profiles with `firstflight profile`, or mend the text there",
        ),
        Category::Data | Category::Io => (
            inner.to_string(),
            "docs/profile.md explains each key, docs/profile.schema.json checks them",
        ),
    };
    PageError::new(error.path().to_string(), problem, hint)
}

/// The JSON Schema of a profile, as published in `docs/profile.schema.json`.
///
/// # Panics
/// Never: a generated schema is serialisable.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(Page);
    let mut text = serde_json::to_string_pretty(&schema).expect("a generated schema is serialisable");
    text.push('\n');
    text
}
