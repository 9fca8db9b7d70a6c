//! An index of vectors that is kept up to date.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use super::Ranked;
use crate::embedding::{Embedding, dot};

/// Finds vectors that lie close to another one, exactly: it compares all of them, which takes about a millisecond for
/// each million numbers.
///
/// ```
/// use rockbot_core::embedding::Embedding;
/// use rockbot_core::search::VectorIndex;
///
/// let mut index = VectorIndex::default();
/// index.insert("east", &Embedding::new(vec![1.0, 0.0])?);
/// index.insert("north", &Embedding::new(vec![0.0, 1.0])?);
/// let found = index.search(&Embedding::new(vec![0.9, 0.1])?, 0.5);
/// assert_eq!(found[0].item, "east");
/// assert_eq!(found.len(), 1);
/// # Ok::<_, rockbot_core::embedding::NotAnEmbedding>(())
/// ```
#[derive(Clone)]
pub struct VectorIndex<K> {
    /// Those of all vectors, one after the other: reading them in a row is what makes it fast.
    values: Vec<f32>,
    keys: Vec<K>,
    positions: HashMap<K, usize>,
    dimension: usize,
}

impl<K> Default for VectorIndex<K> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            keys: Vec::new(),
            positions: HashMap::new(),
            dimension: 0,
        }
    }
}

/// Without its vectors, which tell much about the texts.
impl<K> fmt::Debug for VectorIndex<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VectorIndex")
            .field("len", &self.len())
            .field("dimension", &self.dimension)
            .finish_non_exhaustive()
    }
}

impl<K> VectorIndex<K> {
    /// How many vectors there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no vector.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl<K: Clone + Ord + Hash> VectorIndex<K> {
    /// Adds a vector under `key`, in place of what is there. One of another dimension than the others is of another
    /// model: the others go.
    pub fn insert(&mut self, key: K, vector: &Embedding) {
        if vector.dimension() != self.dimension {
            *self = Self {
                dimension: vector.dimension(),
                ..Self::default()
            };
        }
        match self.positions.get(&key) {
            Some(&position) => {
                self.values[position * self.dimension..][..self.dimension].copy_from_slice(vector.values())
            }
            None => {
                self.positions.insert(key.clone(), self.keys.len());
                self.keys.push(key);
                self.values.extend_from_slice(vector.values());
            }
        }
    }

    /// Removes the vector under `key`. Returns whether there was one.
    pub fn remove<Q>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let Some(position) = self.positions.remove(key) else {
            return false;
        };
        let last = self.keys.len() - 1;
        self.keys.swap_remove(position);
        self.values
            .copy_within(last * self.dimension.., position * self.dimension);
        self.values.truncate(last * self.dimension);
        if let Some(moved) = self.keys.get(position) {
            self.positions.insert(moved.clone(), position);
        }
        true
    }

    /// Whether there is a vector under `key`.
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.positions.contains_key(key)
    }

    /// All vectors, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &[f32])> {
        // An empty index has no dimension, and no chunks either.
        self.keys.iter().zip(self.values.chunks_exact(self.dimension.max(1)))
    }

    /// All that are more similar to `vector` than `least`, which is 0 or more; the most similar first, of equals the one
    /// with the smaller key. Nothing is similar to a vector of another dimension.
    pub fn search(&self, vector: &Embedding, least: f32) -> Vec<Ranked<K>> {
        if vector.dimension() != self.dimension {
            return Vec::new();
        }
        let similar = self.iter().map(|(key, values)| (key, dot(values, vector.values())));
        let mut found: Vec<_> = similar.filter(|(_, similarity)| *similarity > least.max(0.0)).collect();
        found.sort_unstable_by(|(a, one), (b, other)| other.total_cmp(one).then_with(|| a.cmp(b)));
        let ranked = |(key, similarity): (&K, f32)| Ranked {
            item: key.clone(),
            score: f64::from(similarity),
        };
        found.into_iter().map(ranked).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn vector(values: &[f32]) -> Embedding {
        Embedding::new(values.to_vec()).unwrap()
    }

    fn found<K: Clone + Ord + Hash>(index: &VectorIndex<K>, vector: &Embedding) -> Vec<K> {
        index.search(vector, 0.0).into_iter().map(|hit| hit.item).collect()
    }

    #[test]
    fn a_vector_of_another_dimension_begins_anew() {
        let mut index = VectorIndex::default();
        index.insert("flat", &vector(&[1.0, 0.0]));
        assert_eq!(found(&index, &vector(&[1.0, 0.0, 0.0])), [] as [&str; 0]);
        index.insert("deep", &vector(&[1.0, 0.0, 0.0]));
        assert_eq!(found(&index, &vector(&[1.0, 0.0, 0.0])), ["deep"]);
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn an_empty_index_finds_nothing() {
        let index = VectorIndex::<&str>::default();
        assert_eq!(found(&index, &vector(&[1.0])), [] as [&str; 0]);
        assert_eq!(index.iter().count(), 0);
    }

    proptest! {
        #[test]
        fn it_finds_what_comparing_all_finds(
            changes in prop::collection::vec((0_u8..8, prop::option::of([-1.0_f32..1.0, -1.0..1.0, 0.1..1.0])), 0..40),
            query in [-1.0_f32..1.0, -1.0..1.0, 0.1..1.0],
        ) {
            let (mut index, mut all, query) = (VectorIndex::default(), BTreeMap::new(), vector(&query));
            for (key, values) in changes {
                match values {
                    Some(values) => {
                        index.insert(key, &vector(&values));
                        all.insert(key, vector(&values));
                    }
                    None => prop_assert_eq!(index.remove(&key), all.remove(&key).is_some()),
                }
            }
            let mut expected: Vec<_> = all.iter().map(|(key, own)| (*key, own.similarity(&query))).collect();
            expected.retain(|(_, similarity)| *similarity > 0.2);
            expected.sort_by(|(a, one), (b, other)| other.total_cmp(one).then_with(|| a.cmp(b)));
            let hits = index.search(&query, 0.2);
            prop_assert_eq!(hits.iter().map(|hit| (hit.item, hit.score as f32)).collect::<Vec<_>>(), expected);
            prop_assert_eq!((index.len(), index.contains(&0)), (all.len(), all.contains_key(&0)));
        }
    }
}
