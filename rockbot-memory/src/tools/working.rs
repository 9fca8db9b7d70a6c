//! The tools of working memory, beside `get_from_working_memory`, which belongs to every working
//! memory.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::content::Content;
use rockbot_core::store::{
    Access, DEFAULT_TTL, Namespace, StorePath, WorkingEntry, WorkingMemory, WorkingMemoryError, WorkingNote,
};
use rockbot_core::support::one_line;
use rockbot_core::tool::{Tool, ToolError, ToolGroup, ToolState, stateful_tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::edited;
use super::long_term::mark;
use super::taint::{Shown, least, origin};
use super::{ToolDeps, category, failed, groups, invalid, path, tags};

/// Maximum number of entries in a list.
const MAX_LISTED: usize = 500;

/// Maximum number of hits of a search.
const MAX_FOUND: usize = 20;

/// Length of the preview of a hit, in characters.
const PREVIEW_LEN: usize = 120;

/// Maximum lifetime of an entry: a week, in minutes.
const MAX_MINUTES: u32 = 7 * 24 * 60;

/// State of the tools.
#[derive(Debug, Clone)]
pub(crate) struct WorkingTools {
    pub(crate) memory: Arc<dyn WorkingMemory>,
    pub(crate) deps: ToolDeps,
}

pub(crate) fn tools(memory: &WorkingTools) -> [Tool; 5] {
    let group = groups::working_memory();
    [
        stateful_tool("save_to_working_memory", memory.clone(), save)
            .idempotent()
            .activates(ToolGroup::STORED_TEXTS),
        stateful_tool("list_working_memory", memory.clone(), list)
            .pure()
            .activates(ToolGroup::STORED_TEXTS),
        stateful_tool("search_working_memory", memory.clone(), search)
            .pure()
            .activates(ToolGroup::STORED_TEXTS),
        stateful_tool("edit_working_memory", memory.clone(), edit),
        stateful_tool("delete_from_working_memory", memory.clone(), delete).idempotent(),
    ]
    .map(|tool| tool.source("memory").internal().on_demand(&group).own_output())
}

/// Keeps a text for a while, so that you need not repeat it: interim results, lists, drafts. Use
/// save_memory for facts that other conversations need.
#[derive(Debug, Deserialize, JsonSchema)]
struct SaveToWorkingMemory {
    /// The key. Without a slash it belongs to this conversation; `shared/…` is visible to all
    /// conversations of the user.
    key: String,
    /// The text.
    data: String,
    /// Lifetime in minutes: 5 by default, 10080 at most.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_MINUTES))]
    ttl_minutes: Option<u32>,
    /// The category, such as `projects/rust`.
    #[serde(default)]
    category: Option<String>,
    /// Keywords, separated by commas.
    #[serde(default)]
    tags: Option<String>,
}

async fn save(this: ToolState<WorkingTools>, args: SaveToWorkingMemory, cx: CallContext) -> Result<String, ToolError> {
    let key = reach(&args.key, Access::Full, &cx)?;
    let minutes = args
        .ttl_minutes
        .map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
    let ttl = minutes.unwrap_or(DEFAULT_TTL);
    let note = WorkingNote::new(key.clone(), args.data, origin(&cx))
        .with_ttl(ttl)
        .with_category(category(args.category.as_deref())?)
        .with_tags(tags(args.tags.as_deref()));
    this.memory.put(cx.principal(), vec![note]).await.map_err(refused)?;
    Ok(format!("Kept under `{key}` for {} minutes.", ttl.as_secs() / 60))
}

/// Lists the entries of working memory: keys and expiry, not the texts.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListWorkingMemory {
    /// Only keys below this path, such as `shared` or `patrol/mail`, or `*` for everything that you
    /// may read; without it the entries of this conversation.
    #[serde(default)]
    namespace: Option<String>,
}

async fn list(this: ToolState<WorkingTools>, args: ListWorkingMemory, cx: CallContext) -> Result<Content, ToolError> {
    let entries = this.entries(args.namespace.as_deref(), &cx).await?;
    let mut shown = Shown::default();
    for entry in entries.iter().take(MAX_LISTED) {
        shown.line(this.line(entry), &entry.provenance);
    }
    match (shown.is_empty(), entries.len().saturating_sub(MAX_LISTED)) {
        (true, _) => shown.own("Nothing is kept there."),
        (false, 0) => {}
        (false, more) => shown.own(format!("… and {more} more: name a longer path, or search")),
    }
    Ok(shown.into_content())
}

/// Searches working memory by words in keys, texts, tags and categories. It shows the beginning
/// of each hit; read one with get_from_working_memory.
#[derive(Debug, Deserialize, JsonSchema)]
struct SearchWorkingMemory {
    /// The words to search for.
    query: String,
    /// Only this category and its subcategories.
    #[serde(default)]
    category: Option<String>,
    /// Only entries with all of these tags, separated by commas.
    #[serde(default)]
    tags: Option<String>,
    /// Only keys below this path, or `*` for everything that you may read; without it the entries of
    /// this conversation.
    #[serde(default)]
    namespace: Option<String>,
}

async fn search(
    this: ToolState<WorkingTools>,
    args: SearchWorkingMemory,
    cx: CallContext,
) -> Result<Content, ToolError> {
    let category = category(args.category.as_deref())?;
    let tags = tags(args.tags.as_deref());
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
    let mut shown = Shown::default();
    for entry in &found {
        let text = format!("{}\n  {}", this.line(entry), preview(&entry.value));
        shown.line(text, &entry.provenance);
    }
    if shown.is_empty() {
        shown.own("Nothing there has these words: try others, or list_working_memory.");
    }
    Ok(shown.into_content())
}

/// Replaces a part of an entry of working memory. Its expiry stays the same.
#[derive(Debug, Deserialize, JsonSchema)]
struct EditWorkingMemory {
    /// The key; without a slash it belongs to this conversation.
    key: String,
    /// The text to replace, exactly as it stands there; it must occur once.
    old_string: String,
    /// The new text; empty to remove the old one.
    new_string: String,
    /// Replaces every occurrence.
    #[serde(default)]
    replace_all: bool,
}

async fn edit(this: ToolState<WorkingTools>, args: EditWorkingMemory, cx: CallContext) -> Result<Content, ToolError> {
    let key = reach(&args.key, Access::Full, &cx)?;
    let entry = this.memory.get(cx.principal(), &key).await.map_err(refused)?;
    let entry = entry.ok_or_else(|| missing(&key))?;
    let value = edited(&entry.value, &args.old_string, &args.new_string, args.replace_all);
    let note = WorkingNote::new(
        key.clone(),
        value.map_err(|error| invalid(&error))?,
        least(entry.provenance.clone(), origin(&cx)),
    )
    .with_ttl(entry.expires_at.since(this.deps.clock.now()))
    .with_category(entry.category.clone())
    .with_tags(entry.tags.clone());
    // The answer tells which text stood there.
    let changed = Shown::of(format!("`{key}` is changed."), &note.provenance);
    this.memory.put(cx.principal(), vec![note]).await.map_err(refused)?;
    Ok(changed)
}

/// Deletes an entry of working memory.
#[derive(Debug, Deserialize, JsonSchema)]
struct DeleteFromWorkingMemory {
    /// The key; without a slash it belongs to this conversation.
    key: String,
}

async fn delete(
    this: ToolState<WorkingTools>,
    args: DeleteFromWorkingMemory,
    cx: CallContext,
) -> Result<String, ToolError> {
    let key = reach(&args.key, Access::Take, &cx)?;
    if this.memory.delete(cx.principal(), &key).await.map_err(refused)? {
        Ok(format!("Deleted `{key}`."))
    } else {
        Err(missing(&key))
    }
}

impl WorkingTools {
    /// Returns the readable entries below a path, the newest first.
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
        let category = entry.category.as_ref().map(|category| one_line(category.as_str()));
        about.extend(category.map(|category| format!("category {category}")));
        if !entry.tags.is_empty() {
            about.push(format!("tags {}", one_line(&entry.tags.join(", "))));
        }
        about.extend(mark(&entry.provenance));
        format!("- `{}` ({})", one_line(entry.key.as_str()), about.join(", "))
    }
}

/// Resolves a key to a path, if the work of `cx` has the wanted access there.
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

/// Resolves the namespace to search: the named path, or the namespace of this conversation;
/// `None` for all.
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

/// Returns the beginning of a text, on one line.
fn preview(value: &str) -> String {
    let words = one_line(value);
    match words.char_indices().nth(PREVIEW_LEN) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words.into_owned(),
    }
}

fn missing(key: &StorePath) -> ToolError {
    ToolError::invalid_arguments(format!(
        "nothing is kept under `{key}`: see list_working_memory; if it was kept, its time is over"
    ))
}

fn refused(error: WorkingMemoryError) -> ToolError {
    match error {
        WorkingMemoryError::Store(error) => failed(error),
        full => ToolError::execution_failed(full.to_string()).with_source(full),
    }
}
