//! The tools of skills.

use std::sync::Arc;

use rockbot_core::store::{Skill, StorePath};
use rockbot_core::tool::{State, Tool, ToolError, stateful_tool};
use rockbot_core::{CallContext, IdSource, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::edited;
use super::taint::least;
use super::{ChangeError, ToolDeps, ago, failed, groups, invalid, path};
use crate::background::{BackgroundQueue, Summary};
use crate::skill_service::SkillService;

/// State of the tools.
#[derive(Debug, Clone)]
pub(crate) struct SkillTools {
    pub(crate) service: Arc<SkillService>,
    pub(crate) queue: BackgroundQueue,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) deps: ToolDeps,
}

/// Skills and guides are one thing for the model: `get_skill` reads both, and is shown once there is one.
pub(crate) fn tools(skills: &SkillTools) -> [Tool; 4] {
    let group = groups::skills();
    [
        stateful_tool("get_skill", skills.clone(), get)
            .pure()
            .when_needed(groups::KNOWN_SKILLS)
            .reads_guides(),
        stateful_tool("save_skill", skills.clone(), save)
            .on_demand(&group)
            .activates(groups::KNOWN_SKILLS),
        stateful_tool("edit_skill", skills.clone(), edit).on_demand(&group),
        stateful_tool("delete_skill", skills.clone(), delete)
            .idempotent()
            .on_demand(&group),
    ]
    .map(|tool| tool.source("memory"))
}

/// Reads a skill: instructions for a task, step by step. Read it before you do such a task.
#[derive(Debug, Deserialize, JsonSchema)]
struct GetSkill {
    /// The name; empty: lists all.
    #[serde(default)]
    name: String,
    /// One of the files that the skill lists; without it you read the skill itself.
    #[serde(default)]
    file: Option<String>,
}

async fn get(this: State<SkillTools>, args: GetSkill, cx: CallContext) -> Result<String, ToolError> {
    if args.name.trim().is_empty() {
        return this.index(&cx).await;
    }
    let name = path(&args.name)?;
    let skill = this.service.skills.get(cx.principal(), &name).await.map_err(failed)?;
    let Some(skill) = skill else {
        // The words of the host's program: they taint nothing.
        this.deps.taint.note(&cx, []);
        return this.service.guide(&name).ok_or_else(|| missing(&name));
    };
    let files = this.service.files_of(cx.principal(), &name);
    if let Some(file) = args.file {
        let files = files.ok_or_else(|| ToolError::invalid_arguments(format!("`{name}` has no files")))?;
        this.deps.taint.note(&cx, [&files.provenance]);
        return files.read(&file).await.map_err(ToolError::invalid_arguments);
    }
    this.service.used(&skill, this.ids.next_id(), &cx).await;
    this.deps.taint.note(&cx, [&skill.provenance]);
    let mut text = skill.content.clone();
    if !skill.see_also.is_empty() {
        let others: Vec<_> = skill.see_also.iter().map(StorePath::as_str).collect();
        text.push_str(&format!("\n\nSee also the skills: {}", others.join(", ")));
    }
    if let Some(files) = files.filter(|files| !files.names().is_empty()) {
        this.deps.taint.note(&cx, [&files.provenance]);
        text.push_str(&format!(
            "\n\nFiles of this skill, to be read with get_skill: {}",
            files.names().join(", ")
        ));
    }
    Ok(text)
}

/// Saves instructions for a task, so that you can do it again in another conversation. A skill of the same name is
/// replaced; use edit_skill to change a part of one.
#[derive(Debug, Deserialize, JsonSchema)]
struct SaveSkill {
    /// The name, such as `mail/weekly-report`.
    name: String,
    /// The instructions in Markdown: the steps, and what to look out for.
    content: String,
}

async fn save(this: State<SkillTools>, args: SaveSkill, cx: CallContext) -> Result<String, ToolError> {
    let name = path(&args.name)?;
    if args.content.trim().is_empty() {
        return Err(ToolError::invalid_arguments("content is empty: say how it is done"));
    }
    let (now, origin) = (this.service.clock.now(), this.deps.taint.origin(&cx));
    let change = |before: Option<Arc<Skill>>| {
        let known = before.as_deref();
        Ok(Some(
            Skill::new(
                name.clone(),
                args.content,
                known.map_or(now, |known| known.created_at),
                origin,
            )
            .with_updated_at(known.map(|_| now))
            .with_last_used_at(known.and_then(|known| known.last_used_at))
            .with_see_also(known.map(|known| known.see_also.clone()).unwrap_or_default())
            .with_metadata(known.map(|known| known.metadata.clone()).unwrap_or_default()),
        ))
    };
    let saved = this
        .service
        .write(cx.principal(), &name, change)
        .await
        .map_err(failed)?;
    saved
        .iter()
        .for_each(|skill| this.queue.summarize(Summary::of(skill, &cx)));
    this.index(&cx).await
}

/// Replaces a part of a skill.
#[derive(Debug, Deserialize, JsonSchema)]
struct EditSkill {
    /// The name.
    name: String,
    /// The text to replace, exactly as it stands there; it must occur once.
    old_string: String,
    /// The new text; empty to remove the old one.
    new_string: String,
    /// Replaces every occurrence.
    #[serde(default)]
    replace_all: bool,
}

async fn edit(this: State<SkillTools>, args: EditSkill, cx: CallContext) -> Result<String, ToolError> {
    let name = path(&args.name)?;
    let (now, origin) = (this.service.clock.now(), this.deps.taint.origin(&cx));
    let change = |before: Option<Arc<Skill>>| {
        let before = before.ok_or_else(|| missing(&name)).map_err(ChangeError::Rejected)?;
        let content = edited(&before.content, &args.old_string, &args.new_string, args.replace_all);
        let content = content.map_err(|error| ChangeError::Rejected(invalid(&error)))?;
        if content.trim().is_empty() {
            let left = "nothing would be left of it: use delete_skill";
            return Err(ChangeError::Rejected(ToolError::invalid_arguments(left)));
        }
        Ok(Some(
            ((*before).clone())
                .with_content(content)
                .with_updated_at(now)
                .with_provenance(least(before.provenance.clone(), origin)),
        ))
    };
    let edited = this.service.write(cx.principal(), &name, change).await;
    let edited = edited.map_err(ChangeError::into_error)?;
    this.deps.taint.note(&cx, edited.iter().map(|skill| &skill.provenance));
    Ok(format!("`{name}` is changed."))
}

/// Deletes a skill that is wrong or no longer useful, permanently.
#[derive(Debug, Deserialize, JsonSchema)]
struct DeleteSkill {
    /// The name.
    name: String,
}

async fn delete(this: State<SkillTools>, args: DeleteSkill, cx: CallContext) -> Result<String, ToolError> {
    let name = path(&args.name)?;
    let deleted = {
        let _changing = this.service.changing.lock().await;
        this.service
            .skills
            .delete(cx.principal(), &name)
            .await
            .map_err(failed)?
    };
    match deleted {
        true => this.index(&cx).await,
        false => Err(missing(&name)),
    }
}

impl SkillTools {
    /// Lists all skills, one line each.
    async fn index(&self, cx: &CallContext) -> Result<String, ToolError> {
        let skills = self.service.skills.list(cx.principal()).await.map_err(failed)?;
        self.deps.taint.note(cx, skills.iter().map(|skill| &skill.provenance));
        let now = self.service.clock.now();
        let guides = self.service.guides_beside(&skills);
        let guides = guides.iter().map(|(name, summary)| format!("- {name}: {summary}"));
        let lines: Vec<_> = skills.iter().map(|skill| line(skill, now)).chain(guides).collect();
        match lines.is_empty() {
            true => Ok("There are no skills.".to_owned()),
            false => Ok(lines.join("\n")),
        }
    }
}

/// Formats a skill of an index for the model: `- name (written today, never used): purpose`.
pub(crate) fn line(skill: &Skill, now: Timestamp) -> String {
    let written = ago(skill.updated_at.unwrap_or(skill.created_at), now);
    let used = match skill.last_used_at {
        Some(used) => format!("last used {}", ago(used, now)),
        None => "never used".to_owned(),
    };
    let summary = match skill.summary.trim() {
        "" => "(summary pending)",
        summary => summary,
    };
    format!("- {} (written {written}, {used}): {summary}", skill.name)
}

fn missing(name: &StorePath) -> ToolError {
    ToolError::invalid_arguments(format!(
        "there is no skill `{name}`: use a name that get_skill lists when it is given none"
    ))
}
