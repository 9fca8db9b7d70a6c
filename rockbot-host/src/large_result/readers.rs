//! The tools of a model for reading and searching large results.

use std::sync::Arc;

use rockbot_core::content::{ContentPart, Provenance};
use rockbot_core::store::{
    Access, ChunkKeys, Namespace, StorePath, WorkingEntry, WorkingMemory, WorkingMemoryError, is_result_entry,
};
use rockbot_core::tool::{Tool, ToolError, ToolGroup, ToolState, stateful_tool};
use rockbot_core::trust::Label;
use rockbot_core::{CallContext, Principal};
use schemars::JsonSchema;
use serde::Deserialize;

use super::passages::{self, IndexCache};

/// Maximum number of characters of a single read: the default size of a chunk.
const PAGE_LEN: usize = 64_000;

/// Maximum size of the indexes that are kept between searches, in bytes: about the size of the
/// texts.
const INDEXES_LEN: usize = 32 * 1024 * 1024;

/// Creates the tools `get_from_working_memory` and `search_tool_output` over `memory`.
///
/// Both are pure, and their results are never split again. An entry of more than 64 000
/// characters is read in parts. A search returns a page of 14 passages, the first 4 of about 850
/// characters and the others of about 280; the model may ask for further pages. The indexes of
/// the texts are kept between searches, 32 MiB at most. Models see both tools once a conversation
/// has a stored text ([`ToolGroup::STORED_TEXTS`]).
pub fn result_readers(memory: Arc<dyn WorkingMemory>) -> [Tool; 2] {
    let searched = Searched {
        memory: memory.clone(),
        indexes: Arc::new(IndexCache::new(INDEXES_LEN)),
    };
    [
        stateful_tool("get_from_working_memory", memory, read)
            .pure()
            .keeps_results_whole(),
        stateful_tool("search_tool_output", searched, search)
            .pure()
            .keeps_results_whole(),
    ]
    .map(|tool| tool.when_needed(ToolGroup::STORED_TEXTS).own_output())
}

/// Reads an entry of working memory, such as a chunk of a large tool result or its outline.
#[derive(Debug, Deserialize, JsonSchema)]
struct Read {
    /// The key, exactly as it was given; without a slash it is one of this conversation.
    key: String,
    /// Number of characters to skip: only for entries that were returned in part.
    #[serde(default)]
    offset: usize,
}

async fn read(
    memory: ToolState<Arc<dyn WorkingMemory>>,
    args: Read,
    cx: CallContext,
) -> Result<ContentPart, ToolError> {
    let key = resolve(&args.key, &cx)?;
    let entry = memory.get(cx.principal(), &key).await.map_err(unreadable)?;
    let entry = entry.ok_or_else(|| missing(&key))?;
    let mut rest = entry.value.chars();
    if args.offset > 0 {
        rest.nth(args.offset - 1);
    }
    let rest = rest.as_str();
    let text = match rest.char_indices().nth(PAGE_LEN) {
        None => rest.to_owned(),
        Some((end, _)) => {
            let left = rest[end..].chars().count();
            let next = args.offset + PAGE_LEN;
            format!("{}\n[{left} more characters: read on with offset {next}]", &rest[..end])
        }
    };
    Ok(ContentPart::text(text).with_provenance(entry.provenance.clone()))
}

/// Finds passages in large tool results that were split into chunks: cheaper than reading the
/// chunks.
#[derive(Debug, Deserialize, JsonSchema)]
struct Search {
    /// The words to look for: names, numbers and terms as they may stand in the text.
    query: String,
    /// The key of the outline or of any chunk of one result; without it all results of this
    /// conversation are searched.
    #[serde(default)]
    key: Option<String>,
    /// Number of the page of passages, from 1: only after a search that had more.
    #[serde(default)]
    page: usize,
}

/// The state of the search: the texts, and the indexes that are kept of them.
#[derive(Debug, Clone)]
struct Searched {
    memory: Arc<dyn WorkingMemory>,
    indexes: Arc<IndexCache>,
}

async fn search(searched: ToolState<Searched>, args: Search, cx: CallContext) -> Result<ContentPart, ToolError> {
    let key = args.key.as_deref().map(|key| resolve(key, &cx)).transpose()?;
    let chunks = chunks(&*searched.memory, cx.principal(), key.as_ref(), &cx)
        .await
        .map_err(unreadable)?;
    match key {
        Some(key) if chunks.is_empty() => Err(missing(&key)),
        // A result of many megabytes is read for a good part of a second.
        _ => {
            let mut label = Label::HOST;
            chunks.iter().for_each(|chunk| label.join(&chunk.provenance.label()));
            let indexes = searched.indexes.clone();
            let found = move || passages::best(&chunks, &args.query, args.page.max(1), &indexes);
            let found = tokio::task::spawn_blocking(found).await;
            let found = found
                .map_err(|error| ToolError::execution_failed("the search did not end its work").with_source(error))?;
            Ok(ContentPart::text(found).with_provenance(Provenance::labelled("tool", &label)))
        }
    }
}

/// Returns the chunks of the result that `key` belongs to, or of all results of the conversation.
async fn chunks(
    memory: &dyn WorkingMemory,
    principal: &Principal,
    key: Option<&StorePath>,
    cx: &CallContext,
) -> Result<Vec<Arc<WorkingEntry>>, WorkingMemoryError> {
    let stem = key.map(|key| ChunkKeys::stem_of(key.as_str()));
    let folder = stem.and_then(|stem| StorePath::new(stem.rsplit_once('/')?.0).ok());
    let folder = folder.unwrap_or_else(|| Namespace::of(cx).path().clone());
    let mut entries = memory.list(principal, Some(&folder)).await?;
    let is_chunk = |key: &str| match stem {
        Some(stem) => key.strip_prefix(stem).is_some_and(|end| end.starts_with("chunk")),
        None => ChunkKeys::number_of(key).is_some(),
    };
    entries.retain(|entry| is_result_entry(entry) && is_chunk(entry.key.as_str()));
    entries.sort_by_key(|entry| position(entry));
    Ok(entries)
}

/// Returns the sort key of a chunk: the result that it belongs to, then its number in the result.
fn position(entry: &WorkingEntry) -> (String, Option<usize>) {
    let key = entry.key.as_str();
    (ChunkKeys::stem_of(key).to_owned(), ChunkKeys::number_of(key))
}

fn resolve(key: &str, cx: &CallContext) -> Result<StorePath, ToolError> {
    let resolved = Namespace::of(cx).resolve(key);
    let path = resolved.map_err(|error| ToolError::invalid_arguments(error.to_string()).with_source(error))?;
    match Namespace::access(cx, &path) {
        Access::None => Err(ToolError::invalid_arguments(format!(
            "`{path}` belongs to another conversation"
        ))),
        Access::Take | Access::Full => Ok(path),
    }
}

fn missing(key: &StorePath) -> ToolError {
    ToolError::execution_failed(format!(
        "nothing is kept under `{key}`: use a key exactly as it was given; if it was, its time is over, so call the tool again that returned it"
    ))
}

fn unreadable(error: WorkingMemoryError) -> ToolError {
    ToolError::execution_failed("working memory cannot be read").with_source(error)
}
