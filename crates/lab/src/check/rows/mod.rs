//! The list. One module for each group of rules.

mod answer;
mod cache;
mod fallback;
mod format;
mod handshake;
mod keys;
mod limits;
pub(super) mod paths;
mod request;

use super::row::Row;

/// Every row, group by group.
pub(super) const GROUPS: &[&[Row]] = &[
    format::ROWS,
    request::ROWS,
    cache::ROWS,
    fallback::ROWS,
    handshake::ROWS,
    answer::ROWS,
    keys::ROWS,
    limits::ROWS,
    paths::ROWS,
];
