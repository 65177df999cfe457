//! The same page without TLS.

use url::Url;

use crate::Page;

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
        for resource in &mut self.resources {
            if let Some(url) = in_the_clear(&resource.url) {
                resource.url = url;
            }
        }
    }
}

/// `None`: it is no https URL.
fn in_the_clear(url: &str) -> Option<String> {
    let mut url = Url::parse(url).ok().filter(|url| url.scheme() == "https")?;
    url.set_scheme("http").ok()?;
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::in_the_clear;

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
            assert_eq!(in_the_clear(from).as_deref(), to);
        }
    }
}
