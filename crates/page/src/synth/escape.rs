//! Escapes URLs for HTML, JavaScript and CSS.

use std::fmt::Write as _;

/// The references that HTML knows without a semicolon (HTML standard 13.5).
const LEGACY_NAMES: &str = "\
    AElig AMP Aacute Acirc Agrave Aring Atilde Auml COPY Ccedil ETH Eacute Ecirc Egrave Euml GT Iacute \
    Icirc Igrave Iuml LT Ntilde Oacute Ocirc Ograve Oslash Otilde Ouml QUOT REG THORN Uacute Ucirc \
    Ugrave Uuml Yacute aacute acirc acute aelig agrave amp aring atilde auml brvbar ccedil cedil cent \
    copy curren deg divide eacute ecirc egrave eth euml frac12 frac14 frac34 gt iacute icirc iexcl \
    igrave iquest iuml laquo lt macr micro middot nbsp not ntilde oacute ocirc ograve ordf ordm oslash \
    otilde ouml para plusmn pound quot raquo reg sect shy sup1 sup2 sup3 szlig thorn times uacute ucirc \
    ugrave uml uuml yacute yen yuml";

/// `text` as a quoted attribute value, safe in HTML and XML, with the quotes that take fewer bytes.
///
/// An ampersand stays unescaped if HTML reads it as itself (HTML standard 13.2.5.72 to 77). Query strings have
/// many, a body has few bytes, and wget2 before 2.0 does not know `&amp;`.
pub(super) fn attribute(text: &str, xml: bool) -> String {
    let quote = if text.matches('"').count() > text.matches('\'').count() {
        '\''
    } else {
        '"'
    };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for (at, c) in text.char_indices() {
        match c {
            '&' if xml || !reads_bare(&text[at + 1..]) => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '"' if quote == '"' => out.push_str("&#34;"),
            '\'' if quote == '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// Whether HTML reads an ampersand before `rest` as itself: what follows cannot be a character reference. Either no
/// name follows, or a name without the semicolon that it needs, or one that is a parameter (`&copy=`).
fn reads_bare(rest: &str) -> bool {
    let after = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let name = &rest[..rest.len() - after.len()];
    match after.chars().next() {
        Some('#') if name.is_empty() => false,
        Some('=') => true,
        Some(';') => name.is_empty(),
        _ => !LEGACY_NAMES.split(' ').any(|legacy| legacy == name),
    }
}

/// `text` as a JavaScript string literal without `<`, `>` or `&`, so that it can also be in a `<script>` element of
/// HTML or XML.
pub(super) fn js_string(text: &str, inline: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '&' if !inline => out.push(c),
            '<' | '>' | '&' => _ = write!(out, "\\x{:02X}", c as u32),
            ' '..='~' => out.push(c),
            _ => _ = write!(out, "\\u{{{:X}}}", c as u32),
        }
    }
    out.push('"');
    out
}

/// `text` as a CSS string; without `<`, `>` or `&` if `inline`, for a `<style>` element.
pub(super) fn css_string(text: &str, inline: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '<' | '>' | '&' if inline => _ = write!(out, "\\{:x} ", c as u32),
            ' '..='~' => out.push(c),
            _ => _ = write!(out, "\\{:x} ", c as u32),
        }
    }
    out.push('"');
    out
}

/// `text` as a CSS `url()`, without quotes if possible.
pub(super) fn css_url(text: &str, inline: bool) -> String {
    let plain = |c: char| c.is_ascii_graphic() && !"\"'()\\<>".contains(c) && !(inline && c == '&');
    if text.chars().all(plain) {
        format!("url({text})")
    } else {
        format!("url({})", css_string(text, inline))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads an attribute's value as a browser does.
    fn read_attribute(quoted: &str) -> String {
        let inside = &quoted[1..quoted.len() - 1];
        assert!(
            !inside.contains('<') && !inside.contains(&quoted[..1]),
            "{quoted} ends early"
        );
        let references = [("&lt;", "<"), ("&#34;", "\""), ("&#39;", "'"), ("&amp;", "&")];
        references
            .iter()
            .fold(inside.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    /// Reads a JavaScript (`\xHH`, `\u{H}`) or CSS (`\H `) string.
    fn read_string(quoted: &str) -> String {
        let inside = quoted
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'))
            .expect("quoted");
        let mut out = String::new();
        let mut rest = inside.chars();
        while let Some(c) = rest.next() {
            assert_ne!(c, '"', "{quoted} ends early");
            if c != '\\' {
                out.push(c);
                continue;
            }
            let next = rest.next().expect("a backslash escapes something");
            let digits: String = match next {
                'x' => rest.by_ref().take(2).collect(),
                'u' => rest.by_ref().skip(1).take_while(|&c| c != '}').collect(),
                c if c.is_ascii_hexdigit() => std::iter::once(c)
                    .chain(rest.by_ref().take_while(|&c| c != ' '))
                    .collect(),
                c => {
                    out.push(c);
                    continue;
                }
            };
            let code = u32::from_str_radix(&digits, 16).expect("hexadecimal");
            out.extend(char::from_u32(code));
        }
        out
    }

    #[test]
    fn an_ampersand_is_escaped_only_where_html_would_read_an_entity() {
        assert_eq!(
            attribute("?a=1&copy=2&lt;x&#38;y&", false),
            r#""?a=1&copy=2&amp;lt;x&amp;#38;y&""#
        );
        assert_eq!(
            attribute("?&_=1&copy_x&508&amp", false),
            r#""?&_=1&amp;copy_x&508&amp;amp""#
        );
        assert_eq!(attribute("?a=1&copy=2", true), r#""?a=1&amp;copy=2""#);
    }

    #[test]
    fn a_css_url_has_quotes_only_where_it_needs_them() {
        assert_eq!(css_url("a.png?b=1&c=2", false), "url(a.png?b=1&c=2)");
        assert_eq!(css_url("a(1).png", false), r#"url("a(1).png")"#);
    }

    proptest! {
        #[test]
        fn an_attribute_reads_as_it_was_written(text in "[ -~]{0,40}", xml in any::<bool>()) {
            prop_assert_eq!(read_attribute(&attribute(&text, xml)), text);
        }

        #[test]
        fn a_script_string_reads_as_it_was_written(text in ".{0,40}", inline in any::<bool>()) {
            let written = js_string(&text, inline);
            prop_assert!(!written.contains(['<', '>', '\n', '\u{2028}']), "{}", written);
            prop_assert_eq!(read_string(&written), text);
        }

        #[test]
        fn a_style_string_reads_as_it_was_written(text in ".{0,40}", inline in any::<bool>()) {
            let written = css_string(&text, inline);
            prop_assert!(!inline || !written.contains('<'), "{}", written);
            prop_assert_eq!(read_string(&written), text);
        }
    }
}
