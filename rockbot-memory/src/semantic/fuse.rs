//! Fuses hits by words with hits by meaning into one ranking.
//!
//! Normalized scores are added with equal weight. Reciprocal rank fusion would be simpler, but
//! ranks count the last hit of a list nearly as much as the first, and [`recall`](crate::recall),
//! which drops weak hits, could no longer tell a good match from a hit that shares a single word
//! with the query. Combinations of scores also find more: Bruch, Gai and Ingber, "An Analysis of
//! Fusion Functions for Hybrid Retrieval", 2023.
//!
//! Words and meanings are fused by scores, not by ranks: recall drops hits that fit much less
//! than the best, and ranks no longer say how much less.

use std::collections::BTreeMap;

use rockbot_core::search::{Ranked, normalize};

/// Weight of each list.
const WEIGHT: f64 = 0.5;

/// Fuses `words` and `near`, whose scores are above `least`; the best hit comes first, with
/// scores up to 1.
pub(super) fn fuse<T, K: Ord>(
    mut words: Vec<Ranked<T>>,
    mut near: Vec<Ranked<T>>,
    least: f64,
    key: impl Fn(&T) -> K,
) -> Vec<Ranked<T>> {
    near.iter_mut().for_each(|hit| hit.score -= least);
    normalize(&mut words);
    normalize(&mut near);
    let mut places = BTreeMap::new();
    let mut all: Vec<Ranked<T>> = Vec::with_capacity(words.len() + near.len());
    for Ranked { item, score, .. } in words.into_iter().chain(near) {
        let score = score * WEIGHT;
        match places.get(&key(&item)) {
            Some(&place) => {
                let known: &mut Ranked<T> = &mut all[place];
                known.score += score;
            }
            None => {
                places.insert(key(&item), all.len());
                all.push(Ranked::new(item, score));
            }
        }
    }
    all.sort_by(|one, other| other.score.total_cmp(&one.score));
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranked<T: Copy>(found: &[(T, f64)]) -> Vec<Ranked<T>> {
        found.iter().map(|&(item, score)| Ranked::new(item, score)).collect()
    }

    #[track_caller]
    fn check(words: &[(&str, f64)], near: &[(&str, f64)], expected: &[(&str, f64)]) {
        let fused = fuse(ranked(words), ranked(near), 0.25, |item| (*item).to_owned());
        assert_eq!(fused, ranked(expected));
    }

    #[test]
    fn what_both_find_comes_first() {
        check(
            &[("a", 8.0), ("b", 6.0)],
            &[("c", 0.75), ("b", 0.625)],
            &[("b", 0.75), ("a", 0.5), ("c", 0.5)],
        );
    }

    #[test]
    fn one_list_alone_keeps_its_order() {
        check(&[("a", 8.0), ("b", 2.0)], &[], &[("a", 0.5), ("b", 0.125)]);
        check(&[], &[("a", 0.75), ("b", 0.5)], &[("a", 0.5), ("b", 0.25)]);
        check(&[], &[], &[]);
    }

    proptest! {
        #[test]
        fn everything_is_there_once_in_the_order_of_its_score(
            words in prop::collection::btree_map(0_u8..20, 0.01_f64..50.0, 0..12),
            near in prop::collection::btree_map(0_u8..20, 0.31_f64..1.0, 0..12),
        ) {
            let list = |found: &BTreeMap<u8, f64>| {
                let found = found.iter().map(|(&item, &score)| Ranked::new(item, score));
                found.collect::<Vec<_>>()
            };
            let fused = fuse(list(&words), list(&near), 0.3, |item| *item);
            let mut items: Vec<_> = fused.iter().map(|hit| hit.item).collect();
            items.sort_unstable();
            let mut expected: Vec<_> = words.keys().chain(near.keys()).copied().collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(items, expected);
            prop_assert!(fused.iter().all(|hit| hit.score > 0.0 && hit.score <= 1.0));
            prop_assert!(fused.is_sorted_by(|one, other| one.score >= other.score));
        }
    }
}
