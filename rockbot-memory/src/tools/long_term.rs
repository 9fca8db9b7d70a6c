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

use super::taint::least;
use super::{ChangeError, ToolDeps, ago, category, failed, groups, tags};
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

pub(crate) fn tools(memory: &LongTermTools) -> [Tool; 4] {
    [
        stateful_tool("save_memory", memory.clone(), save),
        stateful_tool("search_memory", memory.clone(), search).pure(),
        stateful_tool("archive_memory", memory.clone(), archive).idempotent(),
        stateful_tool("restore_memory", memory.clone(), restore)
            .idempotent()
            .on_demand(&groups::memory()),
    ]
    .map(|tool| tool.source("memory"))
}

/// Saves a fact for later conversations: about the user, their work, their wishes.
#[derive(Debug, Deserialize, JsonSchema)]
struct SaveMemory {
    /// One fact, clear without this conversation.
    content: String,
    /// Id of a memory that it corrects.
    #[serde(default)]
    id: Option<String>,
    // Rarely given: a model files the text in the background. Hidden, since each argument costs tokens.
    #[serde(default)]
    #[schemars(skip)]
    category: Option<String>,
    #[serde(default)]
    #[schemars(skip)]
    tags: Option<String>,
}

async fn save(this: State<LongTermTools>, args: SaveMemory, cx: CallContext) -> Result<String, ToolError> {
    let corrected = args.id.as_deref().map(str::trim).filter(|id| !id.is_empty());
    if let Some(id) = corrected {
        return this.correct(&MemoryId::from(id), args.content.trim(), &cx).await;
    }
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
    let mut standing =
        vec!["That is known already; nothing was saved. What differs from it can be saved with its id:".to_owned()];
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

/// Searches what earlier conversations saved. Search before you say that you do not know something about the user.
#[derive(Debug, Deserialize, JsonSchema)]
struct SearchMemory {
    /// Words to look for; empty: the newest, and all categories.
    #[serde(default)]
    query: String,
    // Rarely given, and explained in the guide of the group. Hidden, since each argument costs tokens.
    #[serde(default)]
    #[schemars(skip)]
    category: Option<String>,
    #[serde(default)]
    #[schemars(skip)]
    source: Option<String>,
    // Older versions called it `with_deleted`; a resumed turn may still use that name.
    #[serde(default, alias = "with_deleted")]
    #[schemars(skip)]
    with_archived: bool,
}

async fn search(this: State<LongTermTools>, args: SearchMemory, cx: CallContext) -> Result<String, ToolError> {
    let lists_all = args.query.trim().is_empty() && args.category.is_none() && args.source.is_none();
    let mut query = MemoryQuery::new(args.query)
        .with_category(category(args.category.as_deref())?)
        .with_archived(args.with_archived);
    query.source = args.source;
    let found = this.memory.search(cx.principal(), &query).await.map_err(failed)?;
    this.deps.taint.note(&cx, found.iter().map(|hit| &hit.item.provenance));
    if found.is_empty() {
        return Ok(nothing(&query).to_owned());
    }
    let now = this.deps.clock.now();
    let mut lines: Vec<_> = found.iter().map(|hit| line(&hit.item, now)).collect();
    if lists_all {
        lines.push(this.categories(&cx).await?);
    }
    Ok(lines.join("\n"))
}

fn nothing(query: &MemoryQuery) -> &'static str {
    match query.text.trim().is_empty() {
        true => "Nothing is remembered there.",
        false => {
            "No memory has these words. That is no evidence that it was never said: try other words, or none to see \
             what there is."
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

/// Forgets a memory that is wrong or no longer wanted. It can be restored.
#[derive(Debug, Deserialize, JsonSchema)]
struct ArchiveMemory {
    /// Its id.
    id: String,
    // Shown with the archived memory.
    #[serde(default)]
    #[schemars(skip)]
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

impl LongTermTools {
    /// Replaces the text of a memory. Its age and its other properties are kept.
    async fn correct(&self, id: &MemoryId, content: &str, cx: &CallContext) -> Result<String, ToolError> {
        if content.is_empty() {
            let left = "content is empty: use archive_memory to forget a memory";
            return Err(ToolError::invalid_arguments(left));
        }
        let origin = self.deps.taint.origin(cx);
        let change = |entry: &mut MemoryEntry| {
            check_live(entry).map_err(ChangeError::Rejected)?;
            content.clone_into(&mut entry.content);
            entry.updated_at = Some(self.deps.clock.now());
            entry.provenance = least(entry.provenance.clone(), origin.clone());
            Ok(())
        };
        let after = self.memory.try_update(cx.principal(), id, change).await;
        let after = after.map_err(ChangeError::into_error)?.ok_or_else(|| missing(id))?;
        self.deps.taint.note(cx, [&after.provenance]);
        Ok(format!("`{id}` now says: {}", after.content))
    }

    /// Lists the categories of the memories that searches find, with the number of memories in each.
    async fn categories(&self, cx: &CallContext) -> Result<String, ToolError> {
        let entries = self.memory.list(cx.principal()).await.map_err(failed)?;
        let mut categories = BTreeMap::<_, usize>::new();
        for entry in entries.iter().filter(|entry| entry.is_live()) {
            let category = entry.category.as_ref().map_or("general", |category| category.as_str());
            *categories.entry(category).or_default() += 1;
        }
        let counts = categories
            .iter()
            .map(|(category, count)| format!("{category} ({count})"));
        Ok(format!("Categories: {}", counts.collect::<Vec<_>>().join(", ")))
    }

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
