//! Equivalence of request targets: percent-encoding, and values that change with every visit.
//!
//! `docs/replay.md` states the rules for users. They are narrow on purpose: a request that was not recorded should
//! fail and be counted, instead of getting an answer that belongs to another.

/// A number of at least this many digits counts as a time or a random number: seconds since 1970 have ten, `ord=`
/// of ad servers eight or more.
const MIN_DIGITS: usize = 8;
/// A text of at least this many hexadecimal characters counts as random: half of a UUID. Shorter ones are versions.
const MIN_HEX: usize = 16;

/// A request target, split for comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Everything before the first `?`, `;` or `&`.
    path: Vec<u8>,
    parameters: Vec<Parameter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    separator: u8,
    /// Empty if there is no `=`; then the text is the value, as in `/pixel?1353542341`.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Target {
    /// Parses the target of a request line. Texts that differ only in percent-encoding are equal: wget2 requests
    /// `/a;b` as `/a%3Bb`.
    pub(super) fn of(text: &str) -> Self {
        let text = decoded(text);
        let mut pieces = split_before_separators(&text);
        let path = pieces.next().unwrap_or_default().to_vec();
        let parameters = pieces.map(Parameter::of).collect();
        Self { path, parameters }
    }

    /// Number of values that are equal in `self` and `other`. `None` unless all others look [volatile](is_volatile)
    /// on both sides, and path, separators, names and order agree.
    pub(super) fn likeness(&self, other: &Self) -> Option<usize> {
        if self.path != other.path || self.parameters.len() != other.parameters.len() {
            return None;
        }
        let mut equal = 0;
        for (one, two) in self.parameters.iter().zip(&other.parameters) {
            if (one.separator, &one.name) != (two.separator, &two.name) {
                return None;
            }
            if one.value == two.value {
                equal += 1;
            } else if !is_volatile(&one.value) || !is_volatile(&two.value) {
                return None;
            }
        }
        Some(equal)
    }
}

impl Parameter {
    fn of(text: &[u8]) -> Self {
        let (separator, text) = text
            .split_first()
            .map_or((0, text), |(first, rest)| (*first, rest));
        let (name, value) = match text.iter().position(|&byte| byte == b'=') {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (&text[..0], text),
        };
        Self {
            separator,
            name: name.to_vec(),
            value: value.to_vec(),
        }
    }
}

/// Whether a value looks like a cache buster: a time, a random number, a random hexadecimal text.
fn is_volatile(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_number = value
        .iter()
        .all(|byte| byte.is_ascii_digit() || b".-_:TZ+".contains(byte));
    let is_hex = value.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    (is_number && digits >= MIN_DIGITS) || (is_hex && digits > 0 && value.len() >= MIN_HEX)
}

fn split_before_separators(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let next = text
            .iter()
            .skip(1)
            .position(|byte| b"?;&".contains(byte))
            .map(|at| at + 1);
        rest = next.map(|at| &text[at..]);
        Some(next.map_or(text, |at| &text[..at]))
    })
}

/// Decodes percent-encoding, except of characters that have a meaning in a URL if unencoded. `;` is decoded,
/// because wget2 encodes it even as a separator.
fn decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| first == b'%').and_then(hex_pair);
        match code {
            Some(byte) if b"%/?#&=+".contains(&byte) => {
                out.extend([b'%', after[0].to_ascii_uppercase(), after[1].to_ascii_uppercase()]);
            }
            Some(byte) => out.push(byte),
            None => out.push(first),
        }
        rest = if code.is_some() { &after[2..] } else { after };
    }
    out
}

fn hex_pair(text: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(text[0])? * 16 + digit(text[1])?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likeness(one: &str, two: &str) -> Option<usize> {
        Target::of(one).likeness(&Target::of(two))
    }

    #[test]
    fn percent_encoding_makes_no_difference_where_it_means_none() {
        for (one, two) in [
            ("/a;b=c", "/a%3Bb=c"),
            ("/%7Euser/x%20y", "/~user/x y"),
            ("/%c3%a9", "/%C3%A9"),
            ("/a%2fb", "/a%2Fb"),
            ("/100%", "/100%"),
        ] {
            assert_eq!(Target::of(one), Target::of(two), "{one} {two}");
        }
        for (one, two) in [
            ("/a%2Fb", "/a/b"),
            ("/a%3Fb", "/a?b"),
            ("/?a=%26b", "/?a=&b"),
            ("/a", "/A"),
        ] {
            assert_ne!(Target::of(one), Target::of(two), "{one} {two}");
        }
    }

    #[test]
    fn times_and_random_values_may_differ() {
        assert_eq!(likeness("/p?a=1&t=1353542341", "/p?a=1&t=1753542342123"), Some(1));
        assert_eq!(
            likeness("/adj/x;sz=1x1;ord=12345678?", "/adj/x;sz=1x1;ord=87654321?"),
            Some(2)
        );
        assert_eq!(likeness("/p?r=0.1234567890", "/p?r=0.99887766554"), Some(0));
        assert_eq!(likeness("/p?1353542341", "/p?1353542342"), Some(0));
        assert_eq!(
            likeness(
                "/p?id=123e4567-e89b-12d3-a456-426614174000",
                "/p?id=00112233-4455-6677-8899-aabbccddeeff"
            ),
            Some(0)
        );
    }

    #[test]
    fn nothing_else_may_differ() {
        for (one, two) in [
            ("/p?page=1", "/p?page=2"),
            ("/p?v=abcdef12", "/p?v=abcdef13"),
            ("/p?t=1353542341", "/q?t=1353542342"),
            ("/p?t=1353542341", "/p?u=1353542342"),
            ("/p?t=1353542341", "/p?t="),
            ("/p?t=1353542341", "/p?t=home"),
            ("/p?a=1&t=1353542341", "/p?t=1353542342&a=1"),
            ("/p?t=1353542341", "/p?t=1353542342&a=1"),
            ("/p?t=1353542341", "/p;t=1353542342"),
            ("/p?t=1353542341", "/p"),
            ("/12345678", "/87654321"),
            ("/p?q=deadbeefdeadbeef", "/p?q=cafecafecafecafe"),
        ] {
            assert_eq!(likeness(one, two), None, "{one} {two}");
        }
    }
}
