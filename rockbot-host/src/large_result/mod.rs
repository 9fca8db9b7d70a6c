//! Results that are too long for a conversation: kept in working memory in chunks, with an index for the model.

mod chunker;
mod message;
mod outline;
mod pages;
mod passages;
mod readers;
mod thousands;

use std::fmt;
use std::time::Duration;

pub use chunker::{Chunk, ContentChunker};
pub use outline::outline;
use pages::Pages;
pub use readers::result_readers;
use rockbot_core::chat::Provenance;
use rockbot_core::store::{ChunkKeyForm, ChunkKeys, PathError, StorePath, WorkingMemory, WorkingNote};
use rockbot_core::{Principal, ToolName};
use thousands::grouped;

/// The smallest chunk that results are cut into, in characters: each chunk costs the model a call.
const MIN_CHUNK_LEN: usize = 20_000;

/// About how long an outline gets, in bytes: the model reads it in one piece.
const OUTLINE_LEN: usize = 20_000;

/// When a result is too long, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeResultPolicy {
    /// How many characters a result may have to stay in the conversation: 64 000 by default. Chunks get as long,
    /// but at least 20 000.
    pub threshold: usize,
    /// How many chunks there may be before sections of a result share them: 50 by default.
    pub max_sections: usize,
    /// For how long chunks are kept: 20 minutes by default.
    pub ttl: Duration,
    /// How their keys are written.
    pub key_form: ChunkKeyForm,
}

impl Default for LargeResultPolicy {
    fn default() -> Self {
        Self {
            threshold: 64_000,
            max_sections: 50,
            ttl: Duration::from_secs(20 * 60),
            key_form: ChunkKeyForm::default(),
        }
    }
}

/// A result of a tool that is too long for a conversation.
///
/// ```
/// use rockbot_core::ToolName;
/// use rockbot_core::store::StorePath;
/// use rockbot_host::large_result::{LargeResult, LargeResultPolicy};
///
/// let policy = LargeResultPolicy::default();
/// let (tool, content) = (ToolName::from("dump"), "x".repeat(100_000));
/// let large = LargeResult::of(&tool, &content, &policy).expect("more than 64 000 characters");
/// assert!(large.truncated().ends_with("[result truncated — 36 000 chars omitted]"));
///
/// let chunked = large.split(&large.keys(&StorePath::new("session/a")?, "run-1")?);
/// let keys: Vec<_> = chunked.notes.iter().map(|note| note.key.as_str()).collect();
/// assert_eq!(
///     keys,
///     ["session/a/tool-dump-run-1-chunk0", "session/a/tool-dump-run-1-chunk1", "session/a/tool-dump-run-1-index"],
/// );
/// # Ok::<(), rockbot_core::store::PathError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct LargeResult<'a> {
    tool: &'a ToolName,
    content: &'a str,
    chars: usize,
    policy: &'a LargeResultPolicy,
}

/// A large result in chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkedResult {
    /// What must be kept, all of it or nothing: the chunks in order, then the outline.
    pub notes: Vec<WorkingNote>,
    /// What the model reads instead of the result, once the notes are kept.
    pub message: String,
}

impl<'a> LargeResult<'a> {
    /// What `tool` returned, when it is too long for a conversation; `None` when it may stay there.
    pub fn of(tool: &'a ToolName, content: &'a str, policy: &'a LargeResultPolicy) -> Option<Self> {
        // No text has more characters than bytes.
        let chars = (content.len() > policy.threshold).then(|| content.chars().count())?;
        (chars > policy.threshold).then_some(Self {
            tool,
            content,
            chars,
            policy,
        })
    }

    /// The keys of its chunks in `namespace`; `run` must differ from call to call.
    ///
    /// # Errors
    ///
    /// Fails when `namespace` is too long.
    pub fn keys(&self, namespace: &StorePath, run: &str) -> Result<ChunkKeys, PathError> {
        ChunkKeys::new(namespace, self.tool.as_str(), run, self.policy.key_form)
    }

    /// The result in chunks: each section is one or more, and a heading with nothing but further headings under it
    /// stands with the first of these. When there would be more than
    /// [`max_sections`](LargeResultPolicy::max_sections), sections share chunks.
    pub fn split(&self, keys: &ChunkKeys) -> ChunkedResult {
        let max_len = self.policy.threshold.max(MIN_CHUNK_LEN);
        let chunks = ContentChunker::new(max_len).split(self.content);
        let pages = Pages::of(&chunks, max_len, self.policy.max_sections);
        let shown = keys.shown_prefix();
        let texts = pages.ranges().map(|range| &self.content[range]);
        let notes = texts.enumerate().map(|(page, text)| self.note(keys.chunk(page), text));
        let outline = outline(&chunks, OUTLINE_LEN, |index| {
            let page = pages.page_of(index);
            fmt::from_fn(move |f| write!(f, "{shown}chunk{page}"))
        });
        ChunkedResult {
            notes: notes.chain([self.note(keys.index(), &outline)]).collect(),
            message: self.message(&chunks, &pages, shown),
        }
    }

    /// The beginning of the result, as far as it may stay in the conversation, and how much is missing: for when there
    /// is no working memory.
    pub fn truncated(&self) -> String {
        let end = self.content.char_indices().nth(self.policy.threshold);
        let kept = &self.content[..end.map_or(self.content.len(), |(at, _)| at)];
        let omitted = grouped(self.chars - self.policy.threshold);
        format!("{kept}\n[result truncated — {omitted} chars omitted]")
    }

    /// Keeps all chunks in `memory` and returns what the model reads. When they cannot be kept, none of them is, and
    /// the model reads the beginning of the result, how much is missing, and why.
    pub async fn keep_in(&self, memory: &dyn WorkingMemory, principal: &Principal, keys: &ChunkKeys) -> String {
        let chunked = self.split(keys);
        match memory.put(principal, chunked.notes).await {
            Ok(()) => chunked.message,
            Err(error) => format!("{}\n[the rest could not be kept: {error}]", self.truncated()),
        }
    }

    fn note(&self, key: StorePath, text: &str) -> WorkingNote {
        let provenance = Provenance {
            source: format!("tool:{}", self.tool).into(),
            ..Provenance::TOOL
        };
        WorkingNote {
            category: Some(ChunkKeys::category()),
            tags: vec![self.tool.to_string()],
            ..WorkingNote::new(key, text, provenance).with_ttl(self.policy.ttl)
        }
    }
}

#[cfg(test)]
mod tests;
