//! Full-text search in the chunks of a large result: the passages that a model is shown for its query.
//!
//! Windows are ranked by their terms and by those of their best statement, and longer passages around the best are shown:
//! terms that stand close together say more than the same terms some lines apart, and what answers a question often
//! stands beside the words that find it.

mod escapes;
mod statements;
mod windows;

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use rockbot_core::search::{Bm25Ranker, Bm25Weights, Ranked, normalize};
use rockbot_core::store::WorkingEntry;

use super::outline::push_plain;
use statements::statements_of;
use windows::{Window, next_of, windows_of, word_end, word_start};

/// Approximate size of a passage, in bytes.
const PASSAGE_LEN: usize = 850;

/// Number of windows whose statements are ranked, too.
const CANDIDATES: usize = 1_000;

/// Weight of two words that follow each other in the query, and do so in the text, relative to one word: most are parts of
/// a name.
const BIGRAM: f64 = 1.0;

/// Weight of a window's best statement, relative to the window itself.
const OF_STATEMENT: f64 = 2.0;

/// Weight of a statement that is read together with its heading, relative to one that says all by itself. In code, what
/// looks like a heading is a comment, which belongs to the next line alone.
const OF_HEADING: f64 = 0.85;

/// Returns the `limit` passages of `chunks` that rank best for `query`, each with its key and offset, for a model.
/// The chunks of one result follow each other.
pub(super) fn best(chunks: &[Arc<WorkingEntry>], query: &str, limit: usize) -> String {
    let mut shown: Vec<Passage<'_>> = Vec::new();
    for Ranked { item: window, .. } in ranked(chunks, query) {
        if shown.len() == limit {
            break;
        }
        if !shown.iter().any(|passage| passage.shows(&window)) {
            shown.push(Passage::around(window, chunks));
        }
    }
    if shown.is_empty() {
        return "No passage has any of these words. Try other words, or read the outline.".to_owned();
    }
    let mut text = String::new();
    shown.iter().for_each(|passage| passage.push_to(&mut text));
    text
}

/// Returns the best windows for `query`, at most [`CANDIDATES`]: their own scores and those of their best statements
/// decide. Words that stand in one statement belong together, those of two neighbours need not.
fn ranked<'a>(chunks: &'a [Arc<WorkingEntry>], query: &str) -> Vec<Ranked<Window<'a>>> {
    let ranker = Bm25Ranker::default().with_weights(Bm25Weights::default().with_bigram(BIGRAM));
    let mut windows = ranker.rank_with_scores(windows_of(chunks), |window| window.text(), query);
    windows.truncate(CANDIDATES);
    normalize(&mut windows);
    let mut statements = Vec::new();
    for (number, Ranked { item: window, .. }) in windows.iter().enumerate() {
        for statement in statements_of(&window.text()) {
            if !window.heading.is_empty() {
                statements.push((number, OF_HEADING, [window.heading, "\n", statement].concat()));
            }
            statements.push((number, 1.0, statement.to_owned()));
        }
    }
    let mut statements = ranker.rank_with_scores(statements, |(.., statement)| statement.into(), query);
    normalize(&mut statements);
    let mut best = vec![0.0_f64; windows.len()];
    for Ranked {
        item: (number, factor, _),
        score,
        ..
    } in statements
    {
        best[number] = best[number].max(factor * score);
    }
    windows
        .iter_mut()
        .zip(best)
        .for_each(|(window, statement)| window.score += OF_STATEMENT * statement);
    windows.sort_by(|a, b| b.score.total_cmp(&a.score));
    windows
}

/// The surroundings of a window.
struct Passage<'a> {
    window: Window<'a>,
    range: Range<usize>,
    /// The beginning of the next chunk, if the passage goes on there.
    tail: &'a str,
}

impl<'a> Passage<'a> {
    fn around(window: Window<'a>, chunks: &'a [Arc<WorkingEntry>]) -> Self {
        let text = window.value();
        let more = PASSAGE_LEN.saturating_sub(window.range.len()) / 2;
        let start = text.floor_char_boundary(window.range.start.saturating_sub(more));
        let most = window.range.end + more;
        let end = text.ceil_char_boundary(most.min(text.len()));
        let beyond = next_of(chunks, window.chunk).map_or("", |next| {
            let end = next.value.ceil_char_boundary((most - end).min(next.value.len()));
            &next.value[..word_end(&next.value, end)]
        });
        Self {
            range: word_start(text, start)..word_end(text, end),
            window,
            tail: beyond,
        }
    }

    /// Returns `true` if the passage shows all of `window`.
    fn shows(&self, window: &Window<'_>) -> bool {
        let Range { start, end } = &window.range;
        self.window.chunk == window.chunk && self.range.start <= *start && *end <= self.range.end
    }

    fn push_to(&self, text: &mut String) {
        let value = self.window.value();
        let offset = value[..self.range.start].chars().count();
        let shown = &value[self.range.clone()];
        write!(text, "[from `{}`, offset {offset}", self.window.entry.key).expect(TAKES_ALL);
        // What a section is about often stands in its heading alone.
        if !self.window.heading.is_empty() && !shown.contains(self.window.heading) {
            text.push_str(", under: ");
            push_plain(text, self.window.heading);
        }
        text.push_str("]\n");
        text.push_str(shown);
        text.push_str(self.tail);
        text.truncate(text.trim_end().len());
        text.push_str("\n\n");
    }
}

const TAKES_ALL: &str = "a String takes everything";
