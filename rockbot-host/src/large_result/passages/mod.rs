//! Full-text search in the chunks of a large result: the passages that a model is shown for its
//! query.
//!
//! Statements are ranked, that is sentences, lines and objects: terms that stand in the same
//! statement say more than the same terms some lines apart. The best statements are shown with
//! their surroundings, since the answer to a question often stands beside the words that find it.
//! The next best statements are shown with little more than themselves. The index of each chunk
//! is kept.

mod cache;
mod escapes;
mod index;
mod matches;
mod query;
mod ranking;
mod shown;
mod statements;
mod variety;
mod words;

use std::borrow::Cow;
use std::sync::Arc;

pub(super) use cache::IndexCache;
use matches::{Matches, Place};
use query::Query;
use rockbot_core::store::{ChunkKeys, WorkingEntry};
use shown::Passage;
use statements::MAX_LEN;
use variety::{Wording, varied};
use words::word_end;

/// Number of passages on a page that are shown with their surroundings.
const LONG: usize = 4;

/// Number of passages on a page.
const PASSAGES: usize = 14;

/// Approximate size of a passage with its surroundings, in bytes.
const LONG_LEN: usize = 850;

/// Approximate size of the other passages, in bytes.
const SHORT_LEN: usize = 280;

/// Number of statements that are compared with each other, and shown on all pages.
const CANDIDATES: usize = 200;

/// Returns page number `page`, from 1, of the passages of `chunks` that rank best for `query`,
/// each with its key and offset, for a model. The chunks of one result follow each other.
pub(super) fn best(chunks: &[Arc<WorkingEntry>], query: &str, page: usize, indexes: &IndexCache) -> String {
    let query = Query::read(query);
    let matches = Matches::of(chunks, &query, indexes);
    let ranked = ranking::ranked(&matches, &query, CANDIDATES);
    let ranked = ranked.into_iter().map(|(found, score)| {
        let wording = Wording::of(&text_at(chunks, &found.place), &query);
        (found, score, wording)
    });
    let mut shown: Vec<Passage<'_>> = Vec::new();
    for found in varied(ranked.collect()) {
        if !shown.iter().any(|passage| passage.shows(&found.place)) {
            let length = if shown.len() % PASSAGES < LONG {
                LONG_LEN
            } else {
                SHORT_LEN
            };
            let heading = found.heading.map(|heading| &matches.headings[heading].place);
            let passage = Passage::around(&found.place, heading, length, chunks, &shown);
            shown.push(passage);
        }
    }
    page_of(&shown, page)
}

/// Writes one page of passages.
fn page_of(passages: &[Passage<'_>], page: usize) -> String {
    if passages.is_empty() {
        return "No passage has any of these words. Try other words, or read the outline.".to_owned();
    }
    let mut pages = passages.chunks(PASSAGES);
    let last = pages.len();
    let Some(passages) = pages.nth(page.saturating_sub(1)) else {
        return format!("There are no more passages: the last page is {last}.");
    };
    let mut text = String::new();
    passages.iter().for_each(|passage| passage.push_to(&mut text));
    if page < last {
        text.push_str(&format!("[more passages: search again with page {}]", page.max(1) + 1));
    }
    text
}

/// Returns the text of a chunk with the beginning of the next chunk, where its last statement may
/// end.
fn text_beyond(chunks: &[Arc<WorkingEntry>], chunk: usize) -> Cow<'_, str> {
    let text = chunks[chunk].value.as_str();
    let Some(next) = next_of(chunks, chunk) else {
        return text.into();
    };
    let end = next.value.ceil_char_boundary(MAX_LEN.min(next.value.len()));
    [text, &next.value[..word_end(&next.value, end)]].concat().into()
}

/// Returns the text at `place`.
fn text_at<'a>(chunks: &'a [Arc<WorkingEntry>], place: &Place) -> Cow<'a, str> {
    let text = chunks[place.chunk].value.as_str();
    let beyond = place.range.end.saturating_sub(text.len());
    let own = &text[place.range.start..place.range.end - beyond];
    match next_of(chunks, place.chunk).filter(|_| beyond > 0) {
        Some(next) => [own, &next.value[..beyond]].concat().into(),
        None => own.into(),
    }
}

/// Returns the chunk behind number `chunk`, if it belongs to the same result.
fn next_of(chunks: &[Arc<WorkingEntry>], chunk: usize) -> Option<&WorkingEntry> {
    let one = chunks[chunk].key.as_str();
    let next = chunks.get(chunk + 1)?;
    let other = next.key.as_str();
    let is_next = ChunkKeys::stem_of(one) == ChunkKeys::stem_of(other)
        && ChunkKeys::number_of(one).map(|number| number + 1) == ChunkKeys::number_of(other);
    is_next.then_some(next)
}
