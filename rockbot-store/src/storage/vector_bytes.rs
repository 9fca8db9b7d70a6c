//! Vectors as bytes: their numbers as little-endian `f32`.

use rockbot_core::embedding::Embedding;

/// Maximum deviation of a vector's length from 1 that counts as rounding; a larger deviation is
/// damage.
const ROUNDING: f32 = 1e-3;

/// Returns the bytes of a vector.
pub(crate) fn write(vector: &Embedding) -> Vec<u8> {
    vector.values().iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Returns the vector of these bytes; `None` if it is damaged, since vectors have a length of 1.
pub(crate) fn read(bytes: &[u8]) -> Option<Embedding> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    let values: Vec<_> = numbers.iter().map(|&number| f32::from_le_bytes(number)).collect();
    let length: f32 = values.iter().map(|value| value * value).sum();
    let is_whole = rest.is_empty() && (length - 1.0).abs() < ROUNDING;
    Embedding::new(values).ok().filter(|_| is_whole)
}
