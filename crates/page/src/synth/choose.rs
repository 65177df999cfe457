//! Chooses references when a body has no room for all.

use std::collections::HashSet;

use super::refs::Ref;

/// Keeps as many of `refs` as possible while `fits` holds.
///
/// Immediate requests go before those that must wait, references that lead to others before those that do not, and
/// then short URLs before long ones, so that the fewest resources are lost. `whole`: keeps a reference together
/// with what it carries.
pub(super) fn most<'a>(refs: Vec<Ref<'a>>, whole: bool, fits: impl Fn(&[&Ref<'a>]) -> bool) -> Vec<Ref<'a>> {
    if fits(&borrowed(&refs)) {
        return refs;
    }
    let mut ranked = Vec::new();
    rank(&refs, 0, whole, &mut ranked);
    ranked.sort_unstable();
    let first = |count: usize| {
        let kept: HashSet<usize> = ranked[..count].iter().map(|&(.., child)| child).collect();
        prune(&refs, whole, &kept)
    };
    let (mut enough, mut too_many) = (0, ranked.len());
    while too_many - enough > 1 {
        let middle = usize::midpoint(enough, too_many);
        if fits(&borrowed(&first(middle))) {
            enough = middle;
        } else {
            too_many = middle;
        }
    }
    first(enough)
}

fn borrowed<'r, 'a>(refs: &'r [Ref<'a>]) -> Vec<&'r Ref<'a>> {
    refs.iter().collect()
}

/// Adds to `ranked` the order of each reference: depth, whether it leads no further, URL length, child.
fn rank(refs: &[Ref<'_>], depth: usize, whole: bool, ranked: &mut Vec<(usize, bool, usize, usize)>) {
    for reference in refs {
        ranked.push((depth, !reference.leads_on, reference.url.len(), reference.child));
        if !whole {
            rank(&reference.carried, depth + 1, whole, ranked);
        }
    }
}

fn prune<'a>(refs: &[Ref<'a>], whole: bool, kept: &HashSet<usize>) -> Vec<Ref<'a>> {
    let kept_refs = refs
        .iter()
        .filter(|reference| kept.contains(&reference.child))
        .cloned();
    kept_refs
        .map(|mut reference| {
            if !whole {
                reference.carried = prune(&reference.carried, whole, kept);
            }
            reference
        })
        .collect()
}
