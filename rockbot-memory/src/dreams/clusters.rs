//! Clusters of memories that say nearly the same, by their words and, where memory is searched by
//! meaning, in other words, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rockbot_core::chat::Provenance;
use rockbot_core::search::{Analyzer as _, UnicodeAnalyzer};
use rockbot_core::store::{LongTermMemory, MemoryEntry, StoreError};
use rockbot_core::trust::Trust;
use rockbot_core::{MemoryId, Principal};

use super::coverage::{Vocabulary, telling};
use crate::tools::is_untrusted_source;

/// Maximum number of memories of a cluster.
const MAX_SIZE: usize = 6;

/// Maximum number of memories that are compared because of one shared word: a more common word
/// tells little.
const MAX_SHARED: usize = 50;

/// Maximum number of memories whose meaning is compared with all memories in one pass: the newest
/// memories. Older memories were compared when they were new.
const MAX_COMPARED: usize = 200;

/// Memories that say nearly the same, in the order of their ids.
pub(super) type Cluster = Vec<Arc<MemoryEntry>>;

/// Pairs of memories that mean nearly the same.
pub(super) type Near = Vec<(MemoryId, MemoryId)>;

/// Returns the pairs of memories that mean nearly the same; none if `memory` compares words alone.
pub(super) async fn near(
    memory: &dyn LongTermMemory,
    who: &Principal,
    entries: &[Arc<MemoryEntry>],
) -> Result<Near, StoreError> {
    let mut newest: Vec<_> = entries.iter().filter(|entry| entry.is_live()).collect();
    newest.sort_by_key(|entry| std::cmp::Reverse(entry.last_seen()));
    let mut near = Near::new();
    for entry in newest.into_iter().take(MAX_COMPARED) {
        let alike = memory.similar(who, &entry.content, MAX_SIZE).await?;
        let others = alike.iter().filter(|other| other.id != entry.id);
        near.extend(others.map(|other| (entry.id.clone(), other.id.clone())));
    }
    Ok(near)
}

/// Returns the pairs of memories that share a rare name or number, the rarest first: statements
/// about one person or thing, in whatever words.
pub(super) fn of_one_name(entries: &[Arc<MemoryEntry>]) -> Near {
    /// Maximum number of memories with one name: a more common name tells little.
    const MAX_OF_NAME: usize = 8;
    let vocabulary = Vocabulary::of(entries.iter().map(|entry| entry.content.as_str()));
    let mut of_names: BTreeMap<String, Vec<&MemoryId>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.is_live()) {
        for name in telling(&entry.content, &vocabulary) {
            of_names.entry(name).or_default().push(&entry.id);
        }
    }
    let mut groups: Vec<_> = of_names.into_values().filter(|ids| ids.len() <= MAX_OF_NAME).collect();
    groups.sort_by_key(Vec::len);
    let pairs = groups.iter().flat_map(|ids| ids.windows(2));
    pairs.map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// Returns clusters of live memories of one level of trust. Each memory shares at least
/// `similarity` of its words (the Jaccard index, from 0 to 1) with another memory of its cluster,
/// or is a pair with that memory in `near`. The cluster with the newest memory comes first.
///
/// Memories of different trust are never together, so that no text gains or loses trust by a merge.
pub(super) fn clusters(entries: &[Arc<MemoryEntry>], similarity: f64, near: &Near) -> Vec<Cluster> {
    let live: Vec<_> = entries.iter().filter(|entry| entry.is_live()).collect();
    let terms = rare_first(&live);
    let mut groups = Groups::new(live.len());
    let places: HashMap<_, _> = live.iter().enumerate().map(|(at, entry)| (&entry.id, at)).collect();
    for (a, b) in near {
        if let (Some(&a), Some(&b)) = (places.get(a), places.get(b))
            && kind(&live[a].provenance) == kind(&live[b].provenance)
        {
            groups.join(a, b);
        }
    }
    let compared = candidates(&live, &terms, similarity).into_iter();
    let mut similar: Vec<_> = compared
        .map(|(a, b)| (jaccard(&terms[a], &terms[b]), a, b))
        .filter(|(shared, ..)| *shared >= similarity)
        .collect();
    // The pairs in `near` and the most similar come first: a group that is full takes no more.
    similar.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    for (_, a, b) in similar {
        groups.join(a, b);
    }
    let mut clusters = groups.members(|at| live[at].clone());
    clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.iter().map(|entry| entry.last_seen()).max()));
    clusters
}

/// Returns the kind of trust in a memory: only memories of one kind are compared.
pub(super) fn kind(from: &Provenance) -> (bool, Trust) {
    (is_untrusted_source(from), from.trust)
}

/// Returns the terms of each memory as numbers, the rarest first.
fn rare_first(entries: &[&Arc<MemoryEntry>]) -> Vec<Vec<u32>> {
    let analyzer = UnicodeAnalyzer;
    let mut counts: HashMap<String, u32> = HashMap::new();
    let mut of_entries: Vec<BTreeSet<String>> = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut terms = BTreeSet::new();
        analyzer.query_words(&entry.content, &mut |term, _| {
            terms.insert(term.to_owned());
        });
        for term in &terms {
            *counts.entry(term.clone()).or_default() += 1;
        }
        of_entries.push(terms);
    }
    let mut by_rarity: Vec<_> = counts.into_iter().collect();
    by_rarity.sort_by(|(a, rare), (b, other)| rare.cmp(other).then_with(|| a.cmp(b)));
    let ranks = by_rarity.into_iter().zip(0_u32..).map(|((term, _), rank)| (term, rank));
    let ranks: HashMap<String, u32> = ranks.collect();
    let ranked = of_entries.into_iter().map(|terms| {
        let mut ranked: Vec<_> = terms.iter().filter_map(|term| ranks.get(term).copied()).collect();
        ranked.sort_unstable();
        ranked
    });
    ranked.collect()
}

/// Returns the pairs that may be similar enough. Two similar memories share a term that is among
/// the rarest of each (prefix filter), so that few pairs are compared.
fn candidates(entries: &[&Arc<MemoryEntry>], terms: &[Vec<u32>], similarity: f64) -> BTreeSet<(usize, usize)> {
    let mut seen: BTreeMap<(bool, Trust, u32), Vec<usize>> = BTreeMap::new();
    let mut pairs = BTreeSet::new();
    for (at, terms) in terms.iter().enumerate() {
        let shared = (terms.len() as f64 * similarity).ceil() as usize;
        let prefix = (terms.len() + 1).saturating_sub(shared).min(terms.len());
        let (untrusted, trust) = kind(&entries[at].provenance);
        for term in &terms[..prefix] {
            let others = seen.entry((untrusted, trust, *term)).or_default();
            if others.len() < MAX_SHARED {
                pairs.extend(others.iter().map(|other| (*other, at)));
                others.push(at);
            }
        }
    }
    pairs
}

fn jaccard(a: &[u32], b: &[u32]) -> f64 {
    let mut at = 0;
    let mut other = 0;
    let mut common = 0_usize;
    while let (Some(x), Some(y)) = (a.get(at), b.get(other)) {
        common += usize::from(x == y);
        at += usize::from(x <= y);
        other += usize::from(y <= x);
    }
    common as f64 / (a.len() + b.len() - common).max(1) as f64
}

/// Disjoint groups of at most [`MAX_SIZE`] members.
struct Groups(Vec<Vec<usize>>, Vec<usize>);

impl Groups {
    fn new(len: usize) -> Self {
        Self((0..len).map(|at| vec![at]).collect(), (0..len).collect())
    }

    fn join(&mut self, a: usize, b: usize) {
        let into = self.1[a];
        let from = self.1[b];
        if into == from || self.0[into].len() + self.0[from].len() > MAX_SIZE {
            return;
        }
        let moved = std::mem::take(&mut self.0[from]);
        for member in &moved {
            self.1[*member] = into;
        }
        self.0[into].extend(moved);
    }

    fn members<T>(self, find: impl Fn(usize) -> T) -> Vec<Vec<T>> {
        let groups = self.0.into_iter().filter(|group| group.len() > 1);
        let sorted = groups.map(|mut group| {
            group.sort_unstable();
            group.into_iter().map(&find).collect()
        });
        sorted.collect()
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::Timestamp;

    use super::*;

    #[track_caller]
    fn check(entries: &[(&str, Provenance)], expected: &[&[&str]]) {
        let entry = |(at, (content, from)): (usize, &(&str, Provenance))| {
            let now = Timestamp::from_millis(at as u64);
            Arc::new(MemoryEntry::new(format!("m{at}"), *content, now, from.clone()))
        };
        let entries: Vec<_> = entries.iter().enumerate().map(entry).collect();
        let found = clusters(&entries, 0.5, &Near::new());
        let ids: Vec<Vec<_>> = found
            .iter()
            .map(|cluster| cluster.iter().map(|entry| entry.id.as_str()).collect())
            .collect();
        assert_eq!(ids, expected);
    }

    #[test]
    fn similar_words_are_one_cluster_whatever_else_there_is() {
        let user = Provenance::USER;
        check(
            &[
                ("Likes green tea in the morning.", user.clone()),
                ("The garden gate squeaks.", user.clone()),
                ("Likes green tea very much in the morning", user.clone()),
                ("The gate of the garden squeaks loudly", user),
            ],
            &[&["m1", "m3"], &["m0", "m2"]],
        );
    }

    #[test]
    fn texts_of_different_trust_are_never_together() {
        let page = Provenance::new("tool:web", Trust::Untrusted);
        check(
            &[
                ("Likes green tea.", Provenance::USER),
                ("Likes green tea!", page.clone()),
                ("Likes green tea a lot.", page),
            ],
            &[&["m1", "m2"]],
        );
    }
}
