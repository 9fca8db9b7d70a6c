//! Tool results that are too long for a conversation: stored in working memory in chunks, with an
//! index for the model.
//!
//! [`ContentChunker`] splits Markdown at headings and paragraphs, [`outline`] lists the sections
//! with their keys, [`LargeResult`] puts both into working memory, and [`result_readers`] are the
//! tools of the model for reading and searching them. Lengths are counted in characters (`char`),
//! never in bytes or tokens.

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
use rockbot_core::context::Trust;
use rockbot_core::store::{
    ChunkKeyForm, ChunkKeys, PathError, StorePath, WorkingMemory, WorkingMemoryError, WorkingNote,
};
use rockbot_core::support::reference;
use rockbot_core::{Principal, ToolName};
use thousands::grouped;

/// Minimum size of a chunk, in characters. Smaller chunks would cost the model more calls than
/// they save tokens.
const MIN_CHUNK_LEN: usize = 20_000;

/// Approximate maximum size of an outline, in bytes. The model reads it in one piece.
const OUTLINE_LEN: usize = 20_000;

/// The policy for tool results that are too long for a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LargeResultPolicy {
    /// Maximum number of characters of a result that stays in the conversation. Default 64 000. Also
    /// the maximum size of a chunk, but at least 20 000.
    pub threshold: usize,
    /// Number of chunks above which sections of a result share chunks. Default 50.
    pub max_sections: usize,
    /// Time to live of the chunks in working memory. Default 20 minutes.
    pub ttl: Duration,
    /// The notation of the chunks' keys.
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

impl LargeResultPolicy {
    /// Sets the maximum number of characters of a result that stays in the conversation. Default 64
    /// 000.
    #[must_use]
    pub fn with_threshold(mut self, threshold: usize) -> Self {
        self.threshold = threshold;
        self
    }

    /// Sets the number of chunks above which sections of a result share chunks. Default 50.
    #[must_use]
    pub fn with_max_sections(mut self, max_sections: usize) -> Self {
        self.max_sections = max_sections;
        self
    }

    /// Sets the time to live of the chunks in working memory. Default 20 minutes.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the notation of the chunks' keys.
    #[must_use]
    pub fn with_key_form(mut self, key_form: ChunkKeyForm) -> Self {
        self.key_form = key_form;
        self
    }
}

/// A tool result that is too long for a conversation.
///
/// Split into chunks it is kept in working memory, and the model reads an index of the chunks
/// instead.
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
    /// `None`: the tool's, and untrusted.
    origin: Option<&'a Provenance>,
    /// Maximum size of a chunk, in characters. `None`: as the policy says.
    chunk_len: Option<usize>,
}

/// A large result in chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkedResult {
    /// The notes to store, all or none: the chunks in order, then the outline.
    pub notes: Vec<WorkingNote>,
    /// The text that the model reads instead of the result once the notes are stored.
    pub message: String,
}

impl<'a> LargeResult<'a> {
    /// Returns the large result of `tool`, or `None` if `content` may stay in the conversation.
    pub fn of(tool: &'a ToolName, content: &'a str, policy: &'a LargeResultPolicy) -> Option<Self> {
        // No text has more characters than bytes.
        let chars = (content.len() > policy.threshold).then(|| content.chars().count())?;
        (chars > policy.threshold).then_some(Self {
            tool,
            content,
            chars,
            policy,
            origin: None,
            chunk_len: None,
        })
    }

    /// Sets the origin that the chunks keep. Default: the tool, untrusted.
    #[must_use]
    pub fn with_origin(mut self, origin: &'a Provenance) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Sets the maximum size of a chunk, in characters. Default: the threshold of the policy, at
    /// least 20 000.
    #[must_use]
    pub fn with_chunk_len(mut self, chunk_len: usize) -> Self {
        self.chunk_len = Some(chunk_len);
        self
    }

    /// Returns the keys of the chunks in `namespace`. `run` must differ from call to call.
    ///
    /// # Errors
    ///
    /// Returns an error if `namespace` is too long.
    pub fn keys(&self, namespace: &StorePath, run: &str) -> Result<ChunkKeys, PathError> {
        ChunkKeys::new(namespace, self.tool.as_str(), run, self.policy.key_form)
    }

    /// Splits the result into chunks. Each section becomes one or more chunks; a heading without text
    /// joins the section that follows. Above [`max_sections`](LargeResultPolicy::max_sections)
    /// chunks, sections share chunks.
    pub fn split(&self, keys: &ChunkKeys) -> ChunkedResult {
        let max_len = self.chunk_len.unwrap_or(self.policy.threshold.max(MIN_CHUNK_LEN));
        let chunks = ContentChunker::new(max_len).split(self.content);
        let pages = Pages::of(&chunks, max_len, self.policy.max_sections);
        let shown = keys.shown_prefix();
        let texts = pages.ranges().map(|range| &self.content[range]);
        let notes = texts.enumerate().map(|(page, text)| self.note(keys.chunk(page), text));
        let outline = outline(&chunks, OUTLINE_LEN, |index| ShownKey(shown, pages.page_of(index)));
        ChunkedResult {
            notes: notes.chain([self.note(keys.index(), &outline)]).collect(),
            message: self.message(&chunks, &pages, shown),
        }
    }

    /// Returns the beginning of the result, truncated to the threshold, with the number of omitted
    /// characters. For hosts without working memory.
    pub fn truncated(&self) -> String {
        let end = self.content.char_indices().nth(self.policy.threshold);
        let kept = &self.content[..end.map_or(self.content.len(), |(at, _)| at)];
        let omitted = grouped(self.chars - self.policy.threshold);
        format!("{kept}\n[result truncated — {omitted} chars omitted]")
    }

    /// Stores all chunks in `memory` and returns the text for the model. If storing fails no chunk is
    /// stored, and the text is the truncated result with the number of omitted characters and the
    /// error. Further chunks of an earlier, longer result under the same keys are deleted.
    pub async fn keep_in(&self, memory: &dyn WorkingMemory, principal: &Principal, keys: &ChunkKeys) -> String {
        let chunked = self.split(keys);
        let count = chunked.notes.len() - 1;
        match memory.put(principal, chunked.notes).await {
            Ok(()) => {
                delete_chunks(memory, principal, keys, count).await;
                chunked.message
            }
            Err(WorkingMemoryError::Store(error)) => {
                let reference = reference(&error);
                tracing::warn!(reference, %error, "working memory unavailable; the rest of a long result is lost");
                format!(
                    "{}\n[the rest could not be kept (reference {reference})]",
                    self.truncated()
                )
            }
            Err(error) => format!("{}\n[the rest could not be kept: {error}]", self.truncated()),
        }
    }

    fn note(&self, key: StorePath, text: &str) -> WorkingNote {
        let outside = || Provenance::new(format!("tool:{}", self.tool), Trust::Untrusted);
        let provenance = self.origin.cloned().unwrap_or_else(outside);
        WorkingNote::new(key, text, provenance)
            .with_ttl(self.policy.ttl)
            .with_category(ChunkKeys::category())
            .with_tags(vec![self.tool.to_string()])
    }
}

/// Deletes the chunks under `keys` from number `first` on. Their numbers are without gaps, so the
/// first missing one ends it.
pub(crate) async fn delete_chunks(memory: &dyn WorkingMemory, principal: &Principal, keys: &ChunkKeys, first: usize) {
    for number in first.. {
        match memory.delete(principal, &keys.chunk(number)).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return tracing::warn!(%error, "chunks of an earlier result stay until they expire"),
        }
    }
}

/// The key of a chunk as the model reads it: the shared prefix and the number of the chunk,
/// formatted without a copy.
struct ShownKey<'a>(&'a str, usize);

impl fmt::Display for ShownKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(prefix, number) = self;
        write!(f, "{prefix}chunk{number}")
    }
}

#[cfg(test)]
mod tests;
