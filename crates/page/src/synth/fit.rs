//! Choosing references when a body has no room for all.

use super::refs::Ref;

/// The largest set of `refs` for which `length` is at most `size`, in order of discovery, and the rest.
///
/// References that lead to others go first, then short ones: so the fewest resources are lost.
pub(super) fn choose<'r, 'a>(
    refs: &'r [Ref<'a>],
    size: usize,
    length: impl Fn(&[&'r Ref<'a>]) -> usize,
) -> (Vec<&'r Ref<'a>>, Vec<usize>) {
    let mut ranked: Vec<&Ref<'a>> = refs.iter().filter(|reference| reference.possible()).collect();
    let mut unplaced: Vec<usize> = refs.iter().filter(|r| !r.possible()).map(|r| r.child).collect();
    if length(&ranked) <= size {
        return (ranked, unplaced);
    }
    ranked.sort_by_key(|reference| (!reference.leads_on, reference.url.len(), reference.child));
    let chosen = |count: usize| {
        let mut chosen = ranked[..count].to_vec();
        chosen.sort_by_key(|reference| reference.child);
        chosen
    };
    let (mut fits, mut too_many) = (0, ranked.len());
    while too_many - fits > 1 {
        let middle = usize::midpoint(fits, too_many);
        if length(&chosen(middle)) <= size {
            fits = middle;
        } else {
            too_many = middle;
        }
    }
    unplaced.extend(ranked[fits..].iter().map(|reference| reference.child));
    (chosen(fits), unplaced)
}
