//! Bodies for pages that have none.

use crate::Page;

/// The synthesised body of resource `index`.
pub fn body(page: &Page, index: usize) -> Vec<u8> {
    vec![b' '; page.resources[index].body_bytes as usize]
}
