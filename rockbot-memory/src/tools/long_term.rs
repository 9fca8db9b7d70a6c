//! The tools of long-term memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rockbot_core::content::{Content, Provenance};
use rockbot_core::store::{LongTermMemory, LongTermMemoryExt, MemoryEntry, MemoryQuery, Remembered};
use rockbot_core::support::one_line;
use rockbot_core::tool::{Tool, ToolError, ToolState, stateful_tool};
use rockbot_core::trust::{Label, Trust};
use rockbot_core::{CallContext, IdSource, MemoryId, Timestamp};
use rockbot_store::kit::blocking;
use schemars::JsonSchema;
use serde::Deserialize;

use super::taint::{Shown, check_change, is_untrusted_source, least, origin, shown_origin};
use super::{ChangeError, ToolDeps, ago, category, failed, groups, tags};
use crate::background::{BackgroundQueue, Expansion, new_memory_id};
use crate::stale::{self, is_stale};

/// Maximum number of memories that a save names because they mean the same.
const MAX_ALIKE: usize = 3;

/// State of the tools.
#[derive(Debug, Clone)]
pub(crate) struct LongTermTools {
    pub(crate) memory: Arc<dyn LongTermMemory>,
    pub(crate) queue: BackgroundQueue,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) deps: ToolDeps,
}

pub(crate) fn tools(memory: &LongTermTools) -> [Tool; 4] {
    // A new memory is as trusted as the texts that its model read; a change of a memory that the
    // user trusts needs the user.
    let trusted = |tool: Tool| {
        let memory = memory.memory.clone();
        tool.endorsed_when(move |call, cx| {
            let memory = memory.clone();
            async move { is_of_trusted(&*memory, &call.arguments, &cx).await }
        })
    };
    [
        trusted(stateful_tool("save_memory", memory.clone(), save)),
        stateful_tool("search_memory", memory.clone(), search)
            .pure()
            .activates("archive_memory"),
        trusted(stateful_tool("archive_memory", memory.clone(), archive))
            .idempotent()
            .on_demand(&groups::memory()),
        trusted(stateful_tool("restore_memory", memory.clone(), restore))
            .idempotent()
            .on_demand(&groups::memory()),
    ]
    .map(|tool| tool.source("memory").internal().own_output())
}

/// Saves a fact for later conversations: about the user, their work, their wishes.
#[derive(Debug, Deserialize, JsonSchema)]
struct SaveMemory {
    /// One fact, clear without this conversation.
    content: String,
    /// Id of a memory that it corrects.
    #[serde(default)]
    id: Option<String>,
    // Rarely given: a model files the text in the background. Hidden, since each argument costs
    // tokens.
    #[serde(default)]
    #[schemars(skip)]
    category: Option<String>,
    #[serde(default)]
    #[schemars(skip)]
    tags: Option<String>,
}

/// The argument of a call that names a memory.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    id: Option<String>,
}

/// Returns `true` if a call names a trusted memory. A memory that cannot be read counts as
/// trusted.
async fn is_of_trusted(memory: &dyn LongTermMemory, arguments: &str, cx: &CallContext) -> bool {
    let id = serde_json::from_str::<Named>(arguments).ok().and_then(|named| named.id);
    let Some(id) = id.as_deref().map(str::trim).filter(|id| !id.is_empty()) else {
        return false;
    };
    match memory.get(cx.principal(), &MemoryId::from(id)).await {
        Ok(entry) => entry.is_some_and(|entry| !is_untrusted_source(&entry.provenance)),
        Err(_) => true,
    }
}

async fn save(this: ToolState<LongTermTools>, args: SaveMemory, cx: CallContext) -> Result<Content, ToolError> {
    let corrected = args.id.as_deref().map(str::trim).filter(|id| !id.is_empty());
    if let Some(id) = corrected {
        let known = this.correct(&MemoryId::from(id), args.content.trim(), &cx).await?;
        if let Some(known) = known {
            return Ok(known);
        }
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
    let alike = this.alike(&entry, &cx).await?;
    match this.memory.remember(cx.principal(), entry).await.map_err(failed)? {
        Remembered::Reinforced(entry) => {
            let known = format!("That is known already, as `{}`: {}", entry.id, fact(&entry));
            Ok(Shown::of(known, &entry.provenance))
        }
        Remembered::Added(entry) => {
            // A small model makes up an id for a new fact: an error would lose the fact.
            let unknown = match corrected {
                Some(_) => ", since no memory has the id that was given",
                None => "",
            };
            let answer = format!("Saved as `{}`{unknown}.{alike}", entry.id);
            this.queue.expand(Expansion::of(entry, &cx));
            Ok(answer.into())
        }
    }
}

/// Returns the part of `entry` that is not known yet.
///
/// An entry that repeats a known entry is returned whole and reinforces it. If nothing is new,
/// the error names the entries that contain the text.
fn news(known: &[Arc<MemoryEntry>], mut entry: MemoryEntry) -> Result<MemoryEntry, Content> {
    // An entry of lower trust does not make this text redundant.
    let trust = entry.provenance.trust;
    let live = known
        .iter()
        .filter(|known| known.is_live() && known.provenance.trust >= trust);
    let live: Vec<_> = live.collect();
    if !live.iter().any(|known| known.says_the_same_as(&entry)) {
        let (new, standing) = unknown_lines(&entry.content, &live);
        if new.is_empty() {
            return Err(standing.into_content());
        }
        entry.content = new;
    }
    Ok(entry)
}

/// Returns the lines of `text` that no entry contains, and the ids of the entries that contain
/// the others.
///
/// A model may repeat memories that it was shown. A repeated memory must not become a second
/// memory with a new date and a trust that the first memory does not have.
fn unknown_lines(text: &str, entries: &[&Arc<MemoryEntry>]) -> (String, Shown) {
    let mut new = Vec::new();
    let mut known: Vec<&MemoryEntry> = Vec::new();
    for line in text.lines() {
        match entries.iter().find(|entry| entry.has_words_of(without_label(line))) {
            Some(entry) if known.iter().any(|other| other.id == entry.id) => {}
            Some(entry) => known.push(entry),
            None => new.push(line),
        }
    }
    let mut standing = Shown::default();
    standing.own("That is known already; nothing was saved. What differs from it can be saved with its id:");
    for entry in known {
        standing.line(format!("- [{}]: {}", entry.id, fact(entry)), &entry.provenance);
    }
    (new.join("\n").trim().to_owned(), standing)
}

/// Removes the label and the continuation mark that a line has when it is shown to the model.
fn without_label(line: &str) -> &str {
    let line = line.trim_end().trim_end_matches("[…]");
    let listed = line.trim_start().trim_start_matches(['-', '*']).trim_start();
    match listed.strip_prefix('[').and_then(|rest| rest.split_once("]")) {
        Some((_, rest)) => rest.split_once("): ").map_or(rest, |(_, fact)| fact),
        None => line,
    }
}

/// Searches what earlier conversations saved. Search before you say that you do not know
/// something about the user.
#[derive(Debug, Deserialize, JsonSchema)]
struct SearchMemory {
    /// Words to look for; empty: the newest, and all categories.
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

async fn search(this: ToolState<LongTermTools>, args: SearchMemory, cx: CallContext) -> Result<Content, ToolError> {
    let lists_all = args.query.trim().is_empty() && args.category.is_none() && args.source.is_none();
    let mut query = MemoryQuery::new(args.query)
        .with_category(category(args.category.as_deref())?)
        .with_archived(args.with_archived);
    query.source = args.source;
    let found = this.memory.search(cx.principal(), &query).await.map_err(failed)?;
    if found.is_empty() {
        return Ok(nothing(&query).into());
    }
    let now = this.deps.clock.now();
    let mut shown = Shown::default();
    found
        .iter()
        .for_each(|hit| shown.line(line(&hit.item, now), &hit.item.provenance));
    if lists_all {
        this.categories(&cx, &mut shown).await?;
    }
    Ok(shown.into_content())
}

fn nothing(query: &MemoryQuery) -> &'static str {
    if query.text.trim().is_empty() {
        "Nothing is remembered there."
    } else {
        "No memory has these words. That is no evidence that it was never said: try other words, or none to see \
             what there is."
    }
}

/// Formats an entry for the model: `- [id] (category, remembered today): fact`.
pub(crate) fn line(entry: &MemoryEntry, now: Timestamp) -> String {
    let mut about = vec![filed(entry), format!("remembered {}", ago(entry.last_seen(), now))];
    about.extend(mark(&entry.provenance));
    about.extend(is_stale(entry).then(|| stale::WORDS.to_owned()));
    if let Some(archived) = entry.archived_at {
        let reason = entry.archive_reason.as_deref().unwrap_or("no reason given");
        about.push(format!("archived {}: {}", ago(archived, now), one_line(reason)));
    }
    let line = format!("- [{}] ({}): {}", entry.id, about.join(", "), fact(entry));
    if entry.tags.is_empty() {
        line
    } else {
        format!("{line}\n  Tags: {}", one_line(&entry.tags.join(", ")))
    }
}

/// Returns the mark of a text that no user wrote, if it is one.
pub(crate) fn mark(from: &Provenance) -> Option<String> {
    let source = one_line(&from.source);
    (from.trust == Trust::Untrusted).then(|| format!("from {source}, not confirmed by the user"))
}

/// Returns the text of an entry as a model reads it. The text of an untrusted source stays on its
/// line, where it cannot look like another entry.
pub(crate) fn fact(entry: &MemoryEntry) -> Cow<'_, str> {
    if is_untrusted_source(&entry.provenance) {
        one_line(&entry.content)
    } else {
        Cow::Borrowed(&entry.content)
    }
}

/// Returns the name of an entry's category as a model reads it.
pub(crate) fn filed(entry: &MemoryEntry) -> String {
    let category = entry.category.as_ref().map_or("general", |category| category.as_str());
    one_line(category).into_owned()
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

async fn archive(this: ToolState<LongTermTools>, args: ArchiveMemory, cx: CallContext) -> Result<Content, ToolError> {
    let id = MemoryId::from(args.id.as_str());
    let entry = this.memory.get(cx.principal(), &id).await.map_err(failed)?;
    let entry = entry.ok_or_else(|| missing(&id))?;
    check_live(&entry)?;
    check_change(&entry.provenance, &origin(&cx))?;
    let reason = args.reason.as_deref().unwrap_or("archive_memory");
    let now = this.deps.clock.now();
    let archived = this.memory.archive(cx.principal(), &id, reason, now).await;
    let archived = archived.map_err(failed)?.ok_or_else(|| missing(&id))?;
    let told = format!("Archived `{id}`: {}\nrestore_memory brings it back.", fact(&archived));
    Ok(Shown::of(told, &archived.provenance))
}

/// Restores an archived memory, also one that other memories superseded.
#[derive(Debug, Deserialize, JsonSchema)]
struct RestoreMemory {
    /// The id of the archived memory.
    id: String,
}

async fn restore(this: ToolState<LongTermTools>, args: RestoreMemory, cx: CallContext) -> Result<String, ToolError> {
    let id = MemoryId::from(args.id.as_str());
    let entry = this.memory.get(cx.principal(), &id).await.map_err(failed)?;
    let entry = entry.ok_or_else(|| missing(&id))?;
    check_change(&entry.provenance, &origin(&cx))?;
    let restored = this.memory.restore(cx.principal(), &id).await.map_err(failed)?;
    restored.ok_or_else(|| missing(&id))?;
    Ok(format!("`{id}` is remembered again."))
}

impl LongTermTools {
    /// Replaces the text of a memory; `None` if there is no such memory. Its age and its other
    /// properties are kept.
    async fn correct(&self, id: &MemoryId, content: &str, cx: &CallContext) -> Result<Option<Content>, ToolError> {
        if content.is_empty() {
            let left = "content is empty: use archive_memory to forget a memory";
            return Err(ToolError::invalid_arguments(left));
        }
        let origin = origin(cx);
        let change = |entry: &mut MemoryEntry| {
            check_live(entry).map_err(ChangeError::Rejected)?;
            check_change(&entry.provenance, &origin).map_err(ChangeError::Rejected)?;
            content.clone_into(&mut entry.content);
            entry.updated_at = Some(self.deps.clock.now());
            match is_untrusted_source(&entry.provenance) && origin.trust > Trust::Untrusted {
                // Nothing of the untrusted text is left, neither its words nor where it was filed.
                true => {
                    (entry.category, entry.tags) = (None, Vec::new());
                    entry.metadata.clear();
                    entry.provenance = origin.clone();
                }
                false => entry.provenance = least(entry.provenance.clone(), origin.clone()),
            }
            Ok(())
        };
        let after = self.memory.try_update(cx.principal(), id, change).await;
        let after = after.map_err(ChangeError::into_error)?;
        Ok(after.map(|after| {
            let told = format!("`{id}` now says: {}", fact(&after));
            Shown::of(told, &after.provenance)
        }))
    }

    /// Returns a notice of the memories that mean the same as `entry` in other words; empty without
    /// any.
    ///
    /// The entry is saved all the same, since texts that differ in one name or year are near each
    /// other, too.
    async fn alike(&self, entry: &MemoryEntry, cx: &CallContext) -> Result<String, ToolError> {
        let alike = self.memory.similar(cx.principal(), &entry.content, MAX_ALIKE).await;
        let mut alike = alike.map_err(failed)?;
        // The confirmation of a save shows nothing that is trusted less than the text itself.
        alike.retain(|known| known.provenance.trust >= entry.provenance.trust);
        let lines = alike
            .iter()
            .map(|known| format!("\n- [{}]: {}", known.id, known.content));
        Ok(if alike.is_empty() {
            String::new()
        } else {
            format!(
                " It may repeat what is known; archive_memory (group `memory`) forgets the one that is not needed:{}",
                lines.collect::<String>()
            )
        })
    }

    /// Lists the categories of the memories that searches find, with the number of memories in each.
    ///
    /// The names of categories are text, too: the line has the label of all entries.
    async fn categories(&self, cx: &CallContext, shown: &mut Shown) -> Result<(), ToolError> {
        let entries = self.memory.list(cx.principal()).await.map_err(failed)?;
        let mut categories = BTreeMap::<_, usize>::new();
        let mut label = Label::HOST;
        for entry in entries.iter().filter(|entry| entry.is_live()) {
            *categories.entry(filed(entry)).or_default() += 1;
            label.join(&shown_origin(&entry.provenance).label());
        }
        let counts = categories
            .iter()
            .map(|(category, count)| format!("{category} ({count})"));
        let line = format!("Categories: {}", counts.collect::<Vec<_>>().join(", "));
        shown.line(line, &Provenance::labelled("memory", &label));
        Ok(())
    }

    fn entry(&self, args: &SaveMemory, cx: &CallContext) -> Result<MemoryEntry, ToolError> {
        let id = new_memory_id(&*self.ids);
        let entry = MemoryEntry::new(id, args.content.trim(), self.deps.clock.now(), origin(cx));
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
