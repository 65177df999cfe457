//! Changes the scheme of a page's URLs.

use serde::Deserialize;
use url::Url;

use crate::Page;

/// Which origins of a page use TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Those that were recorded with it.
    Recorded,
    /// None, as in the paper and the course.
    #[default]
    Http,
    /// All.
    Https,
}

impl Scheme {
    /// Changes the URLs of `page` accordingly.
    pub fn apply(self, page: &mut Page) {
        match self {
            Self::Recorded => {}
            Self::Http => page.clear_scheme(),
            Self::Https => page.secure_scheme(),
        }
    }
}

impl Page {
    /// Makes every https URL http: what the paper's and the course's experiments load. Hosts and paths stay,
    /// and so do ports that are not https's own. A URL that was recorded both ways is then listed twice.
    ///
    /// ```
    /// use firstflight_page::Page;
    ///
    /// let mut page = Page::from_json(
    ///     r#"{"format": "firstflight-profile/1", "name": "one", "resources": [
    ///         {"url": "https://example.org/", "kind": "document", "mime": "text/html",
    ///          "request_bytes": 400, "header_bytes": 200, "body_bytes": 300}]}"#,
    /// )?;
    /// page.clear_scheme();
    /// assert_eq!(page.url(), "http://example.org/");
    /// # Ok::<(), firstflight_page::PageError>(())
    /// ```
    pub fn clear_scheme(&mut self) {
        self.change_scheme("https", "http");
    }

    /// Changes every http URL to https: the page over TLS. Hosts, paths and ports other than http's default stay.
    pub fn secure_scheme(&mut self) {
        self.change_scheme("http", "https");
    }

    fn change_scheme(&mut self, from: &str, to: &str) {
        for resource in &mut self.resources {
            if let Some(url) = changed(&resource.url, from, to) {
                resource.url = url;
            }
        }
    }
}

/// The URL with the scheme `to`; `None` if it does not have the scheme `from`.
fn changed(url: &str, from: &str, to: &str) -> Option<String> {
    let mut url = Url::parse(url).ok().filter(|url| url.scheme() == from)?;
    url.set_scheme(to).ok()?;
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::changed;

    #[test]
    fn only_https_changes_and_only_its_own_port() {
        for (from, to) in [
            (
                "https://a.test/x?y=https://b.test/",
                Some("http://a.test/x?y=https://b.test/"),
            ),
            ("https://a.test:443/", Some("http://a.test/")),
            ("https://a.test:8443/", Some("http://a.test:8443/")),
            ("https://a.test:80/", Some("http://a.test/")),
            ("http://a.test/", None),
        ] {
            assert_eq!(changed(from, "https", "http").as_deref(), to);
        }
    }

    #[test]
    fn http_changes_the_same_way() {
        for (from, to) in [
            ("http://a.test/x", Some("https://a.test/x")),
            ("http://a.test:80/", Some("https://a.test/")),
            ("http://a.test:8080/", Some("https://a.test:8080/")),
            ("https://a.test/", None),
        ] {
            assert_eq!(changed(from, "http", "https").as_deref(), to);
        }
    }
}
