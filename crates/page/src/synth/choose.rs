//! Choosing references when a body has no room for all.

use super::refs::Ref;

/// The largest set of `refs` (by child, ascending) for which `fits` holds.
///
/// References that lead to others go first, then those with short URLs: so the fewest resources are lost.
pub(super) fn choose<'r, 'a>(refs: &'r [Ref<'a>], fits: impl Fn(&[&'r Ref<'a>]) -> bool) -> Vec<usize> {
    let mut ranked: Vec<&Ref<'a>> = refs.iter().collect();
    if fits(&ranked) {
        return ranked.iter().map(|reference| reference.child).collect();
    }
    ranked.sort_by_key(|reference| (!reference.leads_on, reference.url.len(), reference.child));
    let first = |count: usize| {
        let mut first = ranked[..count].to_vec();
        first.sort_by_key(|reference| reference.child);
        first
    };
    let (mut enough, mut too_many) = (0, ranked.len());
    while too_many - enough > 1 {
        let middle = usize::midpoint(enough, too_many);
        if fits(&first(middle)) {
            enough = middle;
        } else {
            too_many = middle;
        }
    }
    first(enough).iter().map(|reference| reference.child).collect()
}
