//! Whether pages that were recorded with TLS are served with it.

use firstflight_page::Page;
use serde::Deserialize;

/// What is spoken with the origins of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// TLS with those that were recorded with it.
    Recorded,
    /// HTTP in the clear with all, as in the paper and the course.
    #[default]
    Http,
    /// TLS with all.
    Https,
}

impl Scheme {
    /// Makes `page` what is to be loaded.
    pub fn apply(self, page: &mut Page) {
        match self {
            Self::Recorded => {}
            Self::Http => page.clear_scheme(),
            Self::Https => page.secure_scheme(),
        }
    }
}
