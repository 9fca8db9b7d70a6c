//! The tools of working memory, beside `get_from_working_memory`, which comes with every working memory.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::store::{
    Access, DEFAULT_TTL, Namespace, StorePath, WorkingEntry, WorkingMemory, WorkingMemoryError, WorkingNote,
};
use rockbot_core::tool::{State, Tool, ToolError, stateful_tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::edited;
use super::taint::least;
use super::{ToolDeps, category, invalid, path, tags};

/// How many entries a list shows.
const MAX_LISTED: usize = 500;

/// How many entries a search shows.
const MAX_FOUND: usize = 20;

/// How much of an entry a search shows, in characters.
const PREVIEW_LEN: usize = 120;

/// The longest that an entry is kept: a week, in minutes.
const MAX_MINUTES: u32 = 7 * 24 * 60;

/// What the tools work on.
#[derive(Debug, Clone)]
pub(crate) struct WorkingTools {
    pub(crate) memory: Arc<dyn WorkingMemory>,
    pub(crate) deps: ToolDeps,
}

pub(crate) fn tools(memory: &WorkingTools) -> [Tool; 5] {
    [
        stateful_tool("save_to_working_memory", memory.clone(), save).idempotent(),
        stateful_tool("list_working_memory", memory.clone(), list).pure(),
        stateful_tool("search_working_memory", memory.clone(), search).pure(),
        stateful_tool("edit_working_memory", memory.clone(), edit),
        stateful_tool("delete_from_working_memory", memory.clone(), delete).idempotent(),
    ]
    .map(|tool| tool.source("memory"))
}

/// Keeps a text for a while, so that you need not repeat it: interim results, lists, drafts. What is to be known in other
/// conversations belongs to save_memory.
#[derive(Debug, Deserialize, JsonSchema)]
struct SaveToWorkingMemory {
    /// Under which key: without a slash it is one of this conversation, `shared/…` is seen by all of the user's.
    key: String,
    /// The text.
    data: String,
    /// For how many minutes: 5 if you do not say, 10080 at most.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_MINUTES))]
    ttl_minutes: Option<u32>,
    /// What it is about, such as `projects/rust`.
    #[serde(default)]
    category: Option<String>,
    /// Words to find it by, with commas between them.
    #[serde(default)]
    tags: Option<String>,
}

async fn save(this: State<WorkingTools>, args: SaveToWorkingMemory, cx: CallContext) -> Result<String, ToolError> {
    let key = reach(&args.key, Access::Full, &cx)?;
    let minutes = args
        .ttl_minutes
        .map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
    let ttl = minutes.unwrap_or(DEFAULT_TTL);
    let note = WorkingNote {
        ttl,
        category: category(args.category.as_deref())?,
        tags: tags(args.tags.as_deref()),
        ..WorkingNote::new(key.clone(), args.data, this.deps.taint.origin(&cx))
    };
    this.memory.put(cx.principal(), vec![note]).await.map_err(refused)?;
    Ok(format!("Kept under `{key}` for {} minutes.", ttl.as_secs() / 60))
}

/// Lists what is kept in working memory: keys and until when, not the texts.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListWorkingMemory {
    /// Only what is kept below this path, such as `shared` or `patrol/mail`, or `*` for everything that you may read; without
    /// it what this conversation kept.
    #[serde(default)]
    namespace: Option<String>,
}

async fn list(this: State<WorkingTools>, args: ListWorkingMemory, cx: CallContext) -> Result<String, ToolError> {
    let entries = this.entries(args.namespace.as_deref(), &cx).await?;
    this.deps.taint.note(&cx, entries.iter().map(|entry| &entry.provenance));
    let lines: Vec<_> = entries.iter().take(MAX_LISTED).map(|entry| this.line(entry)).collect();
    match (lines.is_empty(), entries.len().saturating_sub(MAX_LISTED)) {
        (true, _) => Ok("Nothing is kept there.".to_owned()),
        (false, 0) => Ok(lines.join("\n")),
        (false, more) => Ok(format!(
            "{}\n… and {more} more: name a longer path, or search",
            lines.join("\n")
        )),
    }
}

/// Finds entries of working memory by words in their keys, texts, tags and categories. It shows how they begin; read one with
/// get_from_working_memory.
#[derive(Debug, Deserialize, JsonSchema)]
struct SearchWorkingMemory {
    /// The words.
    query: String,
    /// Only what is filed there or below it.
    #[serde(default)]
    category: Option<String>,
    /// Only what has all of these tags, with commas between them.
    #[serde(default)]
    tags: Option<String>,
    /// Only what is kept below this path, or `*` for everything that you may read; without it what this conversation kept.
    #[serde(default)]
    namespace: Option<String>,
}

async fn search(this: State<WorkingTools>, args: SearchWorkingMemory, cx: CallContext) -> Result<String, ToolError> {
    let (category, tags) = (category(args.category.as_deref())?, tags(args.tags.as_deref()));
    let folder = folder(args.namespace.as_deref(), &cx)?;
    let found = this
        .memory
        .search(cx.principal(), folder.as_ref(), &args.query, usize::MAX);
    let found = found.await.map_err(refused)?.into_iter().map(|hit| hit.item);
    let in_category = |entry: &WorkingEntry| match &category {
        Some(wanted) => entry.category.as_ref().is_some_and(|own| own.is_within(wanted)),
        None => true,
    };
    let has_tags = |entry: &WorkingEntry| tags.iter().all(|tag| entry.tags.contains(tag));
    let admitted = found.filter(|entry| in_category(entry) && has_tags(entry) && is_readable(entry, &cx));
    let found: Vec<_> = admitted.take(MAX_FOUND).collect();
    this.deps.taint.note(&cx, found.iter().map(|entry| &entry.provenance));
    let line = |entry: &Arc<WorkingEntry>| format!("{}\n  {}", this.line(entry), preview(&entry.value));
    match found.is_empty() {
        true => Ok("Nothing there has these words: try others, or list_working_memory.".to_owned()),
        false => Ok(found.iter().map(line).collect::<Vec<_>>().join("\n")),
    }
}

/// Changes a part of an entry of working memory. It is kept as long as before.
#[derive(Debug, Deserialize, JsonSchema)]
struct EditWorkingMemory {
    /// The key; without a slash it is one of this conversation.
    key: String,
    /// The text to be replaced, exactly as it stands there; it must stand there once.
    old_string: String,
    /// What to put there; empty to take the text out.
    new_string: String,
    /// Whether every occurrence is meant.
    #[serde(default)]
    replace_all: bool,
}

async fn edit(this: State<WorkingTools>, args: EditWorkingMemory, cx: CallContext) -> Result<String, ToolError> {
    let key = reach(&args.key, Access::Full, &cx)?;
    let entry = this.memory.get(cx.principal(), &key).await.map_err(refused)?;
    let entry = entry.ok_or_else(|| missing(&key))?;
    let value = edited(&entry.value, &args.old_string, &args.new_string, args.replace_all);
    let note = WorkingNote {
        key: key.clone(),
        value: value.map_err(|error| invalid(&error))?,
        ttl: entry.expires_at.since(this.deps.clock.now()),
        category: entry.category.clone(),
        tags: entry.tags.clone(),
        provenance: least(entry.provenance.clone(), this.deps.taint.origin(&cx)),
    };
    this.deps.taint.note(&cx, [&note.provenance]);
    this.memory.put(cx.principal(), vec![note]).await.map_err(refused)?;
    Ok(format!("`{key}` is changed."))
}

/// Deletes an entry of working memory.
#[derive(Debug, Deserialize, JsonSchema)]
struct DeleteFromWorkingMemory {
    /// The key; without a slash it is one of this conversation.
    key: String,
}

async fn delete(
    this: State<WorkingTools>,
    args: DeleteFromWorkingMemory,
    cx: CallContext,
) -> Result<String, ToolError> {
    let key = reach(&args.key, Access::Take, &cx)?;
    match this.memory.delete(cx.principal(), &key).await.map_err(refused)? {
        true => Ok(format!("Deleted `{key}`.")),
        false => Err(missing(&key)),
    }
}

impl WorkingTools {
    /// What is kept below a path and may be read, the newest first.
    async fn entries(&self, namespace: Option<&str>, cx: &CallContext) -> Result<Vec<Arc<WorkingEntry>>, ToolError> {
        let folder = folder(namespace, cx)?;
        let mut entries = self
            .memory
            .list(cx.principal(), folder.as_ref())
            .await
            .map_err(refused)?;
        entries.retain(|entry| is_readable(entry, cx));
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.stored_at));
        Ok(entries)
    }

    fn line(&self, entry: &WorkingEntry) -> String {
        let left = entry.expires_at.since(self.deps.clock.now()).as_secs();
        let mut about = vec![format!("expires in {}m{:02}s", left / 60, left % 60)];
        about.extend(entry.category.as_ref().map(|category| format!("category {category}")));
        if !entry.tags.is_empty() {
            about.push(format!("tags {}", entry.tags.join(", ")));
        }
        format!("- `{}` ({})", entry.key, about.join(", "))
    }
}

/// The path that a key means, when the work of `cx` may do so much there.
fn reach(key: &str, wanted: Access, cx: &CallContext) -> Result<StorePath, ToolError> {
    let path = Namespace::of(cx).resolve(key).map_err(|error| invalid(&error))?;
    match Namespace::access(cx, &path) {
        access if access >= wanted => Ok(path),
        Access::Take => Err(ToolError::invalid_arguments(format!(
            "`{path}` belongs to other work: it can be read and deleted, not changed"
        ))),
        _ => Err(ToolError::invalid_arguments(format!(
            "`{path}` belongs to another conversation"
        ))),
    }
}

/// Below which path to look: as it is named, or where this conversation keeps its notes.
fn folder(namespace: Option<&str>, cx: &CallContext) -> Result<Option<StorePath>, ToolError> {
    match namespace.map(|named| named.trim().trim_matches('/')) {
        None | Some("") => Ok(Some(Namespace::of(cx).path().clone())),
        Some("*") => Ok(None),
        Some(named) => path(named).map(Some),
    }
}

fn is_readable(entry: &WorkingEntry, cx: &CallContext) -> bool {
    Namespace::access(cx, &entry.key) >= Access::Take
}

/// How a text begins, on one line.
fn preview(value: &str) -> String {
    let words = value.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(PREVIEW_LEN) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

fn missing(key: &StorePath) -> ToolError {
    ToolError::invalid_arguments(format!(
        "nothing is kept under `{key}`: see list_working_memory; if it was kept, its time is over"
    ))
}

fn refused(error: WorkingMemoryError) -> ToolError {
    ToolError::execution_failed(error.to_string()).with_source(error)
}
