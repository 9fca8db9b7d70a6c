//! Full-text search in the chunks of a large result: the passages that a model is shown for its query.

use std::fmt::Write;
use std::sync::Arc;

use rockbot_core::search::Bm25Ranker;
use rockbot_core::store::WorkingEntry;

use super::chunker::{Chunk, ContentChunker};

/// Maximum size of a passage, in characters.
const PASSAGE_LEN: usize = 1_500;

/// Returns the `limit` passages of `chunks` that rank best for `query`, each with its key and offset, for a model.
pub(super) fn best(chunks: &[Arc<WorkingEntry>], query: &str, limit: usize) -> String {
    let chunker = ContentChunker::new(PASSAGE_LEN);
    let passages = chunks.iter().flat_map(|entry| {
        let passages = chunker.split(&entry.value).into_iter();
        passages.map(move |passage| (entry, passage))
    });
    let mut found = Bm25Ranker::default().rank(passages, |(_, passage)| passage.text.into(), query);
    found.truncate(limit);
    if found.is_empty() {
        return "No passage has any of these words. Try other words, or read the outline.".to_owned();
    }
    let mut text = String::new();
    for (entry, passage) in found {
        push_passage(&mut text, entry, &passage);
    }
    text
}

fn push_passage(text: &mut String, entry: &WorkingEntry, passage: &Chunk<'_>) {
    let offset = entry.value[..passage.start].chars().count();
    writeln!(text, "[from `{}`, offset {offset}]", entry.key).expect("a String takes everything");
    text.push_str(passage.text.trim_end());
    text.push_str("\n\n");
}
