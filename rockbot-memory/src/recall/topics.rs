//! Searches by several topics at once: the message, and the messages before it.

use std::collections::HashMap;
use std::hash::Hash;

use rockbot_core::search::Ranked;

/// Weight of a topic relative to the next newer topic.
const FADING: f64 = 0.6;

/// Minimum score relative to the best hit of a topic: below it, a hit only shares a word with the
/// topic.
const WORTH_IT: f64 = 0.3;

/// A hit, with the topic that found it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TopicHit<'a, T> {
    pub(super) item: T,
    pub(super) topic: &'a str,
    /// Score from 0 to 1.
    pub(super) score: f64,
}

/// Merges the hits of all topics, the best first; the first topic has the highest weight.
pub(super) fn merged<'a, T, K: Hash + Eq>(
    found: impl IntoIterator<Item = (&'a str, Vec<Ranked<T>>)>,
    key: impl Fn(&T) -> K,
) -> Vec<TopicHit<'a, T>> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut all: Vec<TopicHit<'a, T>> = Vec::new();
    let mut weight = 1.0;
    for (topic, ranked) in found {
        let best = ranked.first().map_or(1.0, |first| first.score);
        let worth_it = ranked.into_iter().filter(|ranked| ranked.score >= best * WORTH_IT);
        for Ranked { item, score, .. } in worth_it {
            let score = weight * score / best;
            let place = *places.entry(key(&item)).or_insert(all.len());
            match all.get(place) {
                None => all.push(TopicHit { item, topic, score }),
                Some(known) if known.score < score => all[place] = TopicHit { item, topic, score },
                Some(_) => {}
            }
        }
        weight *= FADING;
    }
    all.sort_by(|one, other| other.score.total_cmp(&one.score));
    all
}

/// Formats the reason why a hit is shown.
pub(super) fn reason(topic: &str, score: f64) -> String {
    format!("fits \"{}\" ({score:.2})", super::shortened(topic, 40))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(found: &[(&'static str, f64)]) -> Vec<Ranked<&'static str>> {
        found.iter().map(|&(item, score)| Ranked::new(item, score)).collect()
    }

    #[test]
    fn the_message_counts_more_than_what_was_said_before() {
        let found = [
            ("now", ranked(&[("a", 10.0), ("b", 5.0), ("noise", 1.0)])),
            ("before", ranked(&[("c", 3.0), ("b", 3.0)])),
        ];
        let merged = merged(found, |item| *item);
        let shown: Vec<_> = merged
            .iter()
            .map(|found| (found.item, found.topic, found.score))
            .collect();
        assert_eq!(shown, [("a", "now", 1.0), ("b", "before", 0.6), ("c", "before", 0.6)]);
    }
}
