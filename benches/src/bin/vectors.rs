//! Measures a search for the nearest vectors, beside the naive loop.
//!
//! Usage: `vectors [COUNT] [DIMENSION]`, 10 000 and 1536 unless given. Prints one JSON line, in
//! microseconds of CPU time.

use std::error::Error;
use std::hint::black_box;

use rockbot_benches::thread_seconds;
use rockbot_core::embedding::Embedding;
use rockbot_core::search::VectorIndex;

/// Number of searches.
const ROUNDS: u32 = 30;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let count = arguments.next().transpose()?.unwrap_or(10_000);
    let dimension = arguments.next().transpose()?.unwrap_or(1_536);
    let mut numbers = Numbers(1);
    let mut vectors = Vec::with_capacity(count);
    for _ in 0..count {
        vectors.push(Embedding::new(numbers.take(dimension))?);
    }
    let query = Embedding::new(numbers.take(dimension))?;
    let mut index = VectorIndex::default();
    let insert = micros(1, || {
        for (number, vector) in vectors.iter().enumerate() {
            index.insert(number, vector);
        }
    });
    let search = micros(ROUNDS, || drop(black_box(index.search(black_box(&query), 0.3))));
    let floor = micros(ROUNDS, || drop(black_box(naive(&vectors, black_box(&query)))));
    println!(
        "{}",
        serde_json::json!({ "n": count, "dimension": dimension, "insert_us": insert, "search_us": search, "naive_us": floor })
    );
    Ok(())
}

/// Returns the numbers of all vectors above the threshold.
fn naive(vectors: &[Embedding], query: &Embedding) -> Vec<usize> {
    let similarity = |vector: &Embedding| -> f32 {
        let products = vector
            .values()
            .iter()
            .zip(query.values())
            .map(|(one, other)| one * other);
        products.sum()
    };
    let near = vectors
        .iter()
        .enumerate()
        .filter(|(_, vector)| similarity(vector) > 0.3);
    near.map(|(number, _)| number).collect()
}

/// Measures each of `rounds` rounds, in microseconds of CPU time.
fn micros(rounds: u32, mut work: impl FnMut()) -> f64 {
    let start = thread_seconds();
    (0..rounds).for_each(|_| work());
    (thread_seconds() - start) * 1e6 / f64::from(rounds)
}

/// A reproducible sequence of pseudo-random numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn take(&mut self, count: usize) -> Vec<f32> {
        let next = |_| {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(next).collect()
    }
}
