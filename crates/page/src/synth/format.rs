//! The format of a synthesised body.

use crate::{Kind, Resource};

use super::image::ImageFormat;

/// The format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// HTML. `xml`: the browser reads it with its XML parser.
    Html {
        xml: bool,
    },
    Css,
    Script,
    /// HTML that the browser does not read as a document.
    Fragment,
    Image(ImageFormat),
    /// A font, with the first bytes of a font file of its type.
    Font(&'static [u8]),
    Json,
    Xml,
    Text,
    Bytes,
}

impl Format {
    /// The format in which a browser reads the body of `resource`. The kind decides if browsers go by the context,
    /// otherwise the MIME type.
    pub(super) fn of(resource: &Resource) -> Self {
        let mime = resource
            .mime
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match resource.kind {
            Kind::Script => Self::Script,
            Kind::Style => Self::Css,
            Kind::Document | Kind::Frame if matches!(&*mime, "" | "text/html") => Self::Html { xml: false },
            Kind::Document | Kind::Frame if mime == "application/xhtml+xml" => Self::Html { xml: true },
            kind => Self::of_mime(&mime).unwrap_or(match kind {
                Kind::Image => Self::Image(ImageFormat::Any),
                _ => Self::Bytes,
            }),
        }
    }

    fn of_mime(mime: &str) -> Option<Self> {
        let (family, name) = mime.split_once('/')?;
        Some(match (family, name) {
            ("text", "html") => Self::Fragment,
            (_, "json") => Self::Json,
            (_, name) if name.ends_with("+json") => Self::Json,
            ("image", name) => Self::Image(ImageFormat::of(name)),
            (_, "xml") => Self::Xml,
            (_, name) if name.ends_with("+xml") => Self::Xml,
            ("text", _) | (_, "javascript" | "x-javascript" | "ecmascript" | "x-www-form-urlencoded") => {
                Self::Text
            }
            (_, name) if name.contains("woff2") => Self::Font(b"wOF2"),
            (_, name) if name.contains("woff") => Self::Font(b"wOFF"),
            (_, name) if name.contains("otf") || name.contains("opentype") => Self::Font(b"OTTO"),
            (_, name) if name.contains("ttf") || name.contains("truetype") => Self::Font(&[0, 1, 0, 0]),
            _ => return None,
        })
    }
}
