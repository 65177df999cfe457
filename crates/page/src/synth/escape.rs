//! Writing a URL into HTML, JavaScript and CSS so that it comes out again as it was.

use std::fmt::Write as _;

/// `text` as a quoted attribute value, safe in HTML and XML, in the quotes that cost less.
///
/// An ampersand stays bare where HTML reads it so (`&name=` in an attribute, HTML standard 13.2.5.73): query
/// strings are full of them and a body's bytes are few.
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

fn reads_bare(rest: &str) -> bool {
    let name = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    name.len() < rest.len() && name.starts_with('=')
}

/// `text` as a JavaScript string literal without `<`, `>` or `&`, so that it can also stand in a `<script>`
/// element, be it of HTML or XML.
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

/// `text` as a CSS string, without `<`, `>` or `&` when it stands `inline` in a `<style>` element.
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

/// `text` as a CSS `url()`, unquoted where that is allowed.
pub(super) fn css_url(text: &str, inline: bool) -> String {
    let plain = |c: char| c.is_ascii_graphic() && !"\"'()\\<>".contains(c) && !(inline && c == '&');
    if text.chars().all(plain) {
        format!("url({text})")
    } else {
        format!("url({})", css_string(text, inline))
    }
}
