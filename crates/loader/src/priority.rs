//! The order in which waiting requests are sent.

use firstflight_page::Kind;

/// Rank of a kind of resource; the lowest goes first.
///
/// After Chromium's `TypeToPriority` (`third_party/blink/renderer/platform/loader/fetch/resource_fetcher.cc`):
/// navigations and style sheets highest, then scripts and data, images and media low. It differs where Chromium
/// knows more than a page model does. Chromium ranks fonts with style sheets, and moves scripts up or down by their
/// place in the document; here both come right after the style sheets.
pub(crate) fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Document => 0,
        Kind::Frame => 1,
        Kind::Style => 2,
        Kind::Script | Kind::Font => 3,
        Kind::Xhr => 4,
        Kind::Image => 5,
        Kind::Other => 6,
    }
}
