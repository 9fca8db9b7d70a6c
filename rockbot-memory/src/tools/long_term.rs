//! The tools of long-term memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use rockbot_core::chat::Provenance;
use rockbot_core::context::Trust;
use rockbot_core::store::{LongTermMemory, LongTermMemoryExt, MemoryEntry, MemoryQuery, Remembered};
use rockbot_core::tool::{State, Tool, ToolError, stateful_tool};
use rockbot_core::{CallContext, IdSource, MemoryId, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::edited;
use super::taint::least;
use super::{ChangeError, ToolDeps, ago, category, failed, invalid, tags};
use crate::background::{BackgroundQueue, Expansion, new_memory_id};
use crate::storage::blocking::blocking;

/// State of the tools.
#[derive(Debug, Clone)]
pub(crate) struct LongTermTools {
    pub(crate) memory: Arc<dyn LongTermMemory>,
    pub(crate) queue: BackgroundQueue,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) deps: ToolDeps,
}

pub(crate) fn tools(memory: &LongTermTools) -> [Tool; 6] {
    [
        stateful_tool("save_memory", memory.clone(), save),
        stateful_tool("search_memory", memory.clone(), search).pure(),
        stateful_tool("edit_memory", memory.clone(), edit),
        stateful_tool("archive_memory", memory.clone(), archive).idempotent(),
        stateful_tool("restore_memory", memory.clone(), restore).idempotent(),
        stateful_tool("list_memory_categories", memory.clone(), list_categories).pure(),
    ]
    .map(|tool| tool.source("memory"))
}

/// Saves a fact beyond this conversation: about the user, their work, their wishes. It can be found at once and is
/// filed in the background.
#[derive(Debug, Deserialize, JsonSchema)]
struct SaveMemory {
    /// The fact, in words that make sense without this conversation.
    content: String,
    /// The category, such as `projects/rust`.
    #[serde(default)]
    category: Option<String>,
    /// Keywords, separated by commas.
    #[serde(default)]
    tags: Option<String>,
}

async fn save(this: State<LongTermTools>, args: SaveMemory, cx: CallContext) -> Result<String, ToolError> {
    let known = this.memory.list(cx.principal()).await.map_err(failed)?;
    let entry = this.entry(&args, &cx)?;
    if entry.content.is_empty() {
        return Err(ToolError::invalid_arguments(
            "content is empty: say what is to be remembered",
        ));
    }
    // Off the runtime's threads: a principal may have many entries with many words.
    let entry = match blocking(move || Ok(news(&known, entry))).await.map_err(failed)? {
        Ok(entry) => entry,
        Err(standing) => return Ok(standing),
    };
    match this.memory.remember(cx.principal(), entry).await.map_err(failed)? {
        Remembered::Reinforced(entry) => Ok(format!("That is known already, as `{}`: {}", entry.id, entry.content)),
        Remembered::Added(entry) => {
            let answer = format!("Saved as `{}`.", entry.id);
            this.queue.expand(Expansion::of(entry, &cx));
            Ok(answer)
        }
    }
}

/// Returns the part of `entry` that is not known yet.
///
/// An entry that repeats a known one is returned whole and reinforces it. If nothing is new, the error names the
/// entries that contain the text.
fn news(known: &[Arc<MemoryEntry>], mut entry: MemoryEntry) -> Result<MemoryEntry, String> {
    // An entry of lower trust does not make this text redundant.
    let trust = entry.provenance.trust;
    let live = known
        .iter()
        .filter(|known| known.is_live() && known.provenance.trust >= trust);
    let live: Vec<_> = live.collect();
    if !live.iter().any(|known| known.says_the_same_as(&entry)) {
        let (new, standing) = unknown_lines(&entry.content, &live);
        if new.is_empty() {
            return Err(standing);
        }
        entry.content = new;
    }
    Ok(entry)
}

/// Returns the lines of `text` that no entry contains, and the ids of the entries that contain the others.
///
/// A model may repeat what it was shown of its memory. Repeated, it must not become a second memory with a new date
/// and a trust that the first one does not have.
fn unknown_lines(text: &str, entries: &[&Arc<MemoryEntry>]) -> (String, String) {
    let mut new = Vec::new();
    let mut standing = vec![
        "That is known already; nothing was saved. What differs from it can be changed with edit_memory:".to_owned(),
    ];
    for line in text.lines() {
        match entries.iter().find(|entry| entry.has_words_of(without_label(line))) {
            Some(entry) => standing.push(format!("- [{}]: {}", entry.id, entry.content)),
            None => new.push(line),
        }
    }
    standing.dedup();
    (new.join("\n").trim().to_owned(), standing.join("\n"))
}

/// Removes the label and the continuation mark with which a line is shown to the model.
fn without_label(line: &str) -> &str {
    let line = line.trim_end().trim_end_matches("[…]");
    let listed = line.trim_start().trim_start_matches(['-', '*']).trim_start();
    match listed.strip_prefix('[').and_then(|rest| rest.split_once("]")) {
        Some((_, rest)) => rest.split_once("): ").map_or(rest, |(_, fact)| fact),
        None => line,
    }
}

/// Searches memories of other conversations. Search before you say that you do not know something about the user.
#[derive(Debug, Deserialize, JsonSchema)]
struct SearchMemory {
    /// Words to search for; without them the newest memories are listed.
    #[serde(default)]
    query: Option<String>,
    /// Only this category and its subcategories.
    #[serde(default)]
    category: Option<String>,
    /// Only this source, such as `user` or `tool:web_browse`.
    #[serde(default)]
    source: Option<String>,
    /// Includes archived memories. Default: `false`.
    // Older versions called it `with_deleted`; a resumed turn may still use that name.
    #[serde(default, alias = "with_deleted")]
    with_archived: bool,
}

async fn search(this: State<LongTermTools>, args: SearchMemory, cx: CallContext) -> Result<String, ToolError> {
    let mut query = MemoryQuery::new(args.query.unwrap_or_default())
        .with_category(category(args.category.as_deref())?)
        .with_archived(args.with_archived);
    query.source = args.source;
    let found = this.memory.search(cx.principal(), &query).await.map_err(failed)?;
    this.deps.taint.note(&cx, found.iter().map(|hit| &hit.item.provenance));
    if found.is_empty() {
        return Ok(nothing(&query).to_owned());
    }
    let now = this.deps.clock.now();
    let lines: Vec<_> = found.iter().map(|hit| line(&hit.item, now)).collect();
    Ok(lines.join("\n"))
}

fn nothing(query: &MemoryQuery) -> &'static str {
    match query.text.trim().is_empty() {
        true => "Nothing is remembered there.",
        false => {
            "No memory has these words. That is no evidence that it was never said: try other words, or see \
             list_memory_categories."
        }
    }
}

/// Formats an entry for the model: `- [id] (category, remembered today): fact`.
pub(crate) fn line(entry: &MemoryEntry, now: Timestamp) -> String {
    let category = entry.category.as_ref().map_or("general", |category| category.as_str());
    let mut about = vec![
        category.to_owned(),
        format!("remembered {}", ago(entry.last_seen(), now)),
    ];
    if entry.provenance.trust == Trust::Untrusted {
        about.push(format!("from {}, not confirmed by the user", entry.provenance.source));
    }
    if let Some(archived) = entry.archived_at {
        let reason = entry.archive_reason.as_deref().unwrap_or("no reason given");
        about.push(format!("archived {}: {reason}", ago(archived, now)));
    }
    let line = format!("- [{}] ({}): {}", entry.id, about.join(", "), entry.content);
    match entry.tags.is_empty() {
        true => line,
        false => format!("{line}\n  Tags: {}", entry.tags.join(", ")),
    }
}

/// Replaces a part of a memory. Its age and its other properties are kept.
#[derive(Debug, Deserialize, JsonSchema)]
struct EditMemory {
    /// The id, as search_memory shows it.
    id: String,
    /// The text to replace, exactly as it stands there; it must occur once.
    old_string: String,
    /// The new text; empty to remove the old one.
    new_string: String,
    /// Replaces every occurrence.
    #[serde(default)]
    replace_all: bool,
}

async fn edit(this: State<LongTermTools>, args: EditMemory, cx: CallContext) -> Result<String, ToolError> {
    let (id, origin) = (MemoryId::from(args.id.as_str()), this.deps.taint.origin(&cx));
    let change = |entry: &mut MemoryEntry| {
        check_live(entry).map_err(ChangeError::Rejected)?;
        let content = edited(&entry.content, &args.old_string, &args.new_string, args.replace_all);
        let content = content.map_err(|error| ChangeError::Rejected(invalid(&error)))?;
        if content.trim().is_empty() {
            let left = "nothing would be left of it: use archive_memory";
            return Err(ChangeError::Rejected(ToolError::invalid_arguments(left)));
        }
        entry.content = content;
        entry.updated_at = Some(this.deps.clock.now());
        entry.provenance = least(entry.provenance.clone(), origin.clone());
        Ok(())
    };
    let after = this.memory.try_update(cx.principal(), &id, change).await;
    let after = after.map_err(ChangeError::into_error)?.ok_or_else(|| missing(&id))?;
    this.deps.taint.note(&cx, [&after.provenance]);
    Ok(format!("`{id}` now says: {}", after.content))
}

/// Archives a memory that is wrong or no longer wanted: searches no longer find it. restore_memory undoes this.
#[derive(Debug, Deserialize, JsonSchema)]
struct ArchiveMemory {
    /// The id, as search_memory shows it.
    id: String,
    /// The reason, shown with the archived memory.
    #[serde(default)]
    reason: Option<String>,
}

async fn archive(this: State<LongTermTools>, args: ArchiveMemory, cx: CallContext) -> Result<String, ToolError> {
    let id = MemoryId::from(args.id.as_str());
    let entry = this.memory.get(cx.principal(), &id).await.map_err(failed)?;
    check_live(&*entry.ok_or_else(|| missing(&id))?)?;
    let reason = args.reason.as_deref().unwrap_or("archive_memory");
    let now = this.deps.clock.now();
    let archived = this.memory.archive(cx.principal(), &id, reason, now).await;
    let archived = archived.map_err(failed)?.ok_or_else(|| missing(&id))?;
    this.deps.taint.note(&cx, [&archived.provenance]);
    Ok(format!(
        "Archived `{id}`: {}\nrestore_memory brings it back.",
        archived.content
    ))
}

/// Restores an archived memory, also one that other memories superseded.
#[derive(Debug, Deserialize, JsonSchema)]
struct RestoreMemory {
    /// The id of the archived memory.
    id: String,
}

async fn restore(this: State<LongTermTools>, args: RestoreMemory, cx: CallContext) -> Result<String, ToolError> {
    let id = MemoryId::from(args.id.as_str());
    let restored = this.memory.restore(cx.principal(), &id).await.map_err(failed)?;
    restored.ok_or_else(|| missing(&id))?;
    Ok(format!("`{id}` is remembered again."))
}

/// Lists the categories of memories, with the number of memories in each.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListMemoryCategories {}

async fn list_categories(
    this: State<LongTermTools>,
    _: ListMemoryCategories,
    cx: CallContext,
) -> Result<String, ToolError> {
    let entries = this.memory.list(cx.principal()).await.map_err(failed)?;
    let mut categories = BTreeMap::<_, usize>::new();
    for entry in entries.iter().filter(|entry| entry.is_live()) {
        *categories
            .entry(entry.category.as_ref().map_or("", |category| category.as_str()))
            .or_default() += 1;
    }
    if categories.is_empty() {
        return Ok("Nothing is remembered yet.".to_owned());
    }
    let line = |(category, count): (&str, usize)| match category {
        "" => format!("- (no category): {count}"),
        category => format!("- {category}: {count}"),
    };
    Ok(categories.into_iter().map(line).collect::<Vec<_>>().join("\n"))
}

impl LongTermTools {
    fn entry(&self, args: &SaveMemory, cx: &CallContext) -> Result<MemoryEntry, ToolError> {
        let origin: Provenance = self.deps.taint.origin(cx);
        let id = new_memory_id(&*self.ids);
        let entry = MemoryEntry::new(id, args.content.trim(), self.deps.clock.now(), origin);
        Ok(entry
            .with_category(category(args.category.as_deref())?)
            .with_tags(tags(args.tags.as_deref())))
    }
}

/// Checks that searches return the entry, that is, that it is neither archived nor superseded.
fn check_live(entry: &MemoryEntry) -> Result<(), ToolError> {
    let id = &entry.id;
    match (entry.is_live(), &entry.superseded_by) {
        (true, _) => Ok(()),
        (false, Some(by)) => Err(ToolError::invalid_arguments(format!(
            "`{by}` took the place of `{id}`: use that one"
        ))),
        (false, None) => Err(ToolError::invalid_arguments(format!(
            "`{id}` is archived: restore_memory brings it back"
        ))),
    }
}

fn missing(id: &MemoryId) -> ToolError {
    ToolError::invalid_arguments(format!("there is no memory `{id}`: use an id that search_memory shows"))
}
