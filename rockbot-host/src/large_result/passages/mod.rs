//! Full-text search in the chunks of a large result: the passages that a model is shown for its query.
//!
//! Windows are ranked by their terms and by those of their best line, and longer passages around the best are shown:
//! terms that stand close together say more than the same terms some lines apart, and what answers a question often
//! stands beside the words that find it.

mod escapes;
mod windows;

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use rockbot_core::search::{Bm25Ranker, Ranked, normalize};
use rockbot_core::store::WorkingEntry;

use super::outline::push_plain;
use windows::{Window, lines_of, next_of, windows_of, word_end, word_start};

/// Approximate size of a passage, in bytes.
const PASSAGE_LEN: usize = 1_400;

/// Number of windows whose lines are ranked, too.
const CANDIDATES: usize = 200;

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

/// Returns the best windows for `query`, at most [`CANDIDATES`]: the sums of their own scores and those of their best
/// lines decide.
fn ranked<'a>(chunks: &'a [Arc<WorkingEntry>], query: &str) -> Vec<Ranked<Window<'a>>> {
    let ranker = Bm25Ranker::default();
    let mut windows = ranker.rank_with_scores(windows_of(chunks), |window| window.text(), query);
    windows.truncate(CANDIDATES);
    normalize(&mut windows);
    let mut lines = Vec::new();
    for (number, Ranked { item: window, .. }) in windows.iter().enumerate() {
        let with_heading = |line: &str| (number, [window.heading, "\n", line].concat());
        lines.extend(lines_of(&window.text()).map(with_heading));
    }
    let mut lines = ranker.rank_with_scores(lines, |(_, line)| line.into(), query);
    normalize(&mut lines);
    let mut best = vec![0.0_f64; windows.len()];
    for Ranked {
        item: (number, _),
        score,
        ..
    } in lines
    {
        best[number] = best[number].max(score);
    }
    windows
        .iter_mut()
        .zip(best)
        .for_each(|(window, line)| window.score += line);
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
