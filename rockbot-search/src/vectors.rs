//! The index of vectors.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use super::Ranked;
use super::embedding::{Embedding, dot};

/// An index of vectors with exact nearest-neighbour search: it compares all vectors, which takes
/// about a millisecond per million numbers.
///
/// ```
/// use rockbot_search::Embedding;
/// use rockbot_search::VectorIndex;
///
/// let mut index = VectorIndex::default();
/// index.insert("east", &Embedding::new(vec![1.0, 0.0])?);
/// index.insert("north", &Embedding::new(vec![0.0, 1.0])?);
/// let found = index.search(&Embedding::new(vec![0.9, 0.1])?, 0.5);
/// assert_eq!(found[0].item, "east");
/// assert_eq!(found.len(), 1);
/// # Ok::<_, rockbot_search::NotAnEmbedding>(())
/// ```
#[derive(Clone)]
pub struct VectorIndex<K> {
    /// Values of all vectors, contiguous: sequential reads make the search fast.
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

/// Omits the vectors, which reveal much about the texts.
impl<K> fmt::Debug for VectorIndex<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VectorIndex")
            .field("len", &self.len())
            .field("dimension", &self.dimension)
            .finish_non_exhaustive()
    }
}

impl<K> VectorIndex<K> {
    /// Returns the number of vectors.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns `true` if the index is empty.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl<K: Clone + Ord + Hash> VectorIndex<K> {
    /// Inserts a vector under `key`, in place of the vector there. A vector of another dimension
    /// comes from another model, so all others are dropped.
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

    /// Removes the vector under `key`. Returns `true` if it existed.
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

    /// Returns `true` if there is a vector under `key`.
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.positions.contains_key(key)
    }

    /// Returns all vectors, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &[f32])> {
        // An empty index has no dimension, and no chunks either.
        self.keys.iter().zip(self.values.chunks_exact(self.dimension.max(1)))
    }

    /// Returns the vectors whose similarity to `vector` exceeds `least`, which is 0 or more; most
    /// similar first, of equals the smaller key. Returns none for a vector of another dimension.
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
            let mut index = VectorIndex::default();
            let mut all = BTreeMap::new();
            let query = vector(&query);
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
