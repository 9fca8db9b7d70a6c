//! The embedding of a text: a normalized vector.

use std::fmt;
use std::sync::Arc;

/// The embedding of a text: a vector of length 1. Clones share the values.
///
/// ```
/// use rockbot_search::Embedding;
///
/// let one = Embedding::new(vec![3.0, 4.0])?;
/// assert_eq!(one.values(), [0.6, 0.8]);
/// assert_eq!(one.similarity(&Embedding::new(vec![-4.0, 3.0])?), 0.0);
/// # Ok::<_, rockbot_search::NotAnEmbedding>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Embedding(Arc<[f32]>);

/// The reason why numbers are not an [`Embedding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAnEmbedding {
    /// The list is empty.
    #[error("there are no numbers in it")]
    Empty,
    /// A number is infinite or NaN, or the length of the vector overflows.
    #[error("it has numbers that are infinite or none at all")]
    NotFinite,
    /// All numbers are zero, or nearly: the vector has no direction.
    #[error("all its numbers are zero")]
    Zero,
}

impl Embedding {
    /// Creates the embedding by normalizing `values` to length 1.
    ///
    /// # Errors
    ///
    /// Returns an error if the values have no direction.
    pub fn new(mut values: Vec<f32>) -> Result<Self, NotAnEmbedding> {
        if values.is_empty() {
            return Err(NotAnEmbedding::Empty);
        }
        // In `f64` no square of an `f32` is infinite or lost.
        let length = values.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
        if !length.is_finite() {
            return Err(NotAnEmbedding::NotFinite);
        }
        if length == 0.0 {
            return Err(NotAnEmbedding::Zero);
        }
        values
            .iter_mut()
            .for_each(|value| *value = (f64::from(*value) / length) as f32);
        Ok(Self(values.into()))
    }

    /// Returns the values.
    pub fn values(&self) -> &[f32] {
        &self.0
    }

    /// Returns the dimension.
    pub fn dimension(&self) -> usize {
        self.0.len()
    }

    /// Returns the cosine similarity, from -1 to 1; 0 for different dimensions, since such vectors
    /// come from different models.
    pub fn similarity(&self, other: &Self) -> f32 {
        if self.dimension() == other.dimension() {
            dot(&self.0, &other.0)
        } else {
            0.0
        }
    }
}

/// Omits the values: they are many, and reveal much about the text.
impl fmt::Debug for Embedding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedding")
            .field("dimension", &self.dimension())
            .finish_non_exhaustive()
    }
}

/// Number of partial sums: independent lanes let the compiler emit vector instructions.
const LANES: usize = 16;

/// Returns the dot product of two slices of the same length.
pub(crate) fn dot(one: &[f32], other: &[f32]) -> f32 {
    let ones = one.chunks_exact(LANES);
    let others = other.chunks_exact(LANES);
    let rest: f32 = ones
        .remainder()
        .iter()
        .zip(others.remainder())
        .map(|(a, b)| a * b)
        .sum();
    let mut sums = [0.0_f32; LANES];
    for (one, other) in ones.zip(others) {
        for lane in 0..LANES {
            sums[lane] += one[lane] * other[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(values: &[f32], expected: Result<&[f32], NotAnEmbedding>) {
        let embedding = Embedding::new(values.to_vec());
        assert_eq!(
            embedding.as_ref().map(Embedding::values),
            expected.as_ref().map(|values| *values)
        );
    }

    #[test]
    fn only_a_direction_is_an_embedding() {
        check(&[0.0, -2.0], Ok(&[0.0, -1.0]));
        check(
            &[f32::MAX, f32::MAX, 0.0, 0.0],
            Ok(&[0.707_106_77, 0.707_106_77, 0.0, 0.0]),
        );
        check(&[f32::MIN_POSITIVE], Ok(&[1.0]));
        check(&[], Err(NotAnEmbedding::Empty));
        check(&[0.0, -0.0], Err(NotAnEmbedding::Zero));
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            check(&[1.0, value], Err(NotAnEmbedding::NotFinite));
        }
    }

    #[test]
    fn vectors_of_other_dimensions_have_nothing_in_common() {
        let embedding = |values: &[f32]| Embedding::new(values.to_vec()).unwrap();
        assert_eq!(embedding(&[1.0]).similarity(&embedding(&[1.0, 0.0])), 0.0);
    }

    proptest! {
        #[test]
        fn similarity_is_the_cosine(pairs in prop::collection::vec((-1e3_f32..1e3, -1e3_f32..1e3), 1..100)) {
            let (one, other): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            let naive: f64 = one.iter().zip(&other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let length = |values: &[f32]| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
            let expected = naive / (length(&one) * length(&other));
            if let (Ok(one), Ok(other)) = (Embedding::new(one), Embedding::new(other)) {
                prop_assert!((f64::from(one.similarity(&other)) - expected).abs() < 1e-4);
                prop_assert!((one.similarity(&one) - 1.0).abs() < 1e-4);
            }
        }
    }
}
