//! Long texts in pieces: where Markdown may be cut, and an outline of what stands where.
//!
//! Lengths are counted in characters (`char`), never in bytes or tokens.

mod chunker;
mod digits;
mod lines;
mod outline;

pub use chunker::{Chunk, ContentChunker};
pub use outline::outline;

pub(crate) use digits::grouped;
pub(crate) use outline::push_title;

#[cfg(test)]
mod tests;
