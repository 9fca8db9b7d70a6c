//! Wisps in skills: a wisp that has proven itself on a schedule becomes a section of a skill, when a
//! person approves that.

use std::sync::{Arc, OnceLock};

use rockbot_core::store::StorePath;
use rockbot_core::support::one_line;
use rockbot_core::tool::{Tool, ToolError, ToolState, stateful_tool};
use rockbot_core::{CallContext, Principal};
use schemars::JsonSchema;
use serde::Deserialize;

use super::HostParts;
use super::definition::Definition;

/// Number of successes of one definition on a schedule from which on it may be kept.
pub(super) const MIN_SUCCESSES: usize = 2;

/// Maximum length of a skill that a wisp is kept in, in bytes.
const MAX_SKILL: usize = 64 << 10;

/// Name of the tool.
pub(super) const SAVE: &str = "save_wisp_in_skill";

/// Keeps the definition of a wisp as a section of a skill, so that later conversations take it from
/// there. It must have succeeded twice in scheduled tasks, and the user is asked. A section of the
/// same description is replaced.
#[derive(Debug, Deserialize, JsonSchema)]
struct SaveWispInSkill {
    /// The id of a successful run, as list_wisp_runs shows it.
    wisp_id: String,
    /// The name of the skill, which save_skill has made.
    skill: String,
}

/// Creates the tool.
pub(super) fn tool(parts: &Arc<OnceLock<HostParts>>) -> Tool {
    stateful_tool(SAVE, parts.clone(), save).idempotent().needs_approval()
}

async fn save(
    parts: ToolState<Arc<OnceLock<HostParts>>>,
    args: SaveWispInSkill,
    cx: CallContext,
) -> Result<String, ToolError> {
    let refused = |words: String| Err(ToolError::execution_failed(words));
    let starting = || ToolError::execution_failed("the host is not started yet: call `AgentHost::start`");
    let parts = parts.get().ok_or_else(starting)?;
    let Some(skills) = &parts.skills else {
        return refused("this host keeps no skills".to_owned());
    };
    let definition = proven(parts, cx.principal(), args.wisp_id.trim())?;
    let unreadable = |error| ToolError::execution_failed("the skill cannot be read or written").with_source(error);
    let name = StorePath::new(args.skill.trim()).map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
    let before = skills.get(cx.principal(), &name).await.map_err(unreadable)?;
    let Some(before) = before.filter(|skill| skill.is_live()) else {
        return refused(format!("there is no skill `{name}`: write it with save_skill first"));
    };
    let content = with_section(&before.content, &definition);
    if content == before.content {
        return Ok(format!("The skill `{name}` has this wisp already."));
    }
    if content.len() > MAX_SKILL {
        return refused(format!(
            "the skill would have more than {MAX_SKILL} bytes: name another one"
        ));
    }
    // A person has approved the section; the rest of the skill is as trusted as before.
    let after = (*before)
        .clone()
        .with_content(content)
        .with_updated_at(parts.clock.now());
    let after = after.replacing(&before);
    skills.save(cx.principal(), after).await.map_err(unreadable)?;
    Ok(format!(
        "The wisp is a section of the skill `{name}` now. restore_skill undoes that."
    ))
}

/// Returns the definition of a successful run, if it has proven itself on a schedule.
fn proven(parts: &HostParts, principal: &Principal, id: &str) -> Result<Definition, ToolError> {
    let run = parts.log.find(principal, |run| run.wisp_id == id);
    let Some((hash, definition)) = run.and_then(|run| Some((run.definition_hash, run.definition_body?))) else {
        return Err(ToolError::execution_failed(format!(
            "no successful wisp `{id}` with a definition is in the log: list_wisp_runs shows its ids"
        )));
    };
    let successes = successes(parts, principal, &hash);
    if successes < MIN_SUCCESSES {
        return Err(ToolError::execution_failed(format!(
            "the wisp has succeeded {successes} times in scheduled tasks, of at least {MIN_SUCCESSES}: wait until it has \
             proven itself"
        )));
    }
    Ok(definition)
}

/// Returns how often a definition has succeeded in scheduled tasks, as far as the log reaches.
pub(super) fn successes(parts: &HostParts, principal: &Principal, hash: &str) -> usize {
    let runs = parts.log.of(principal);
    let runs = runs.iter().filter(|run| run.succeeded && run.is_scheduled);
    runs.filter(|run| run.definition_hash == hash).count()
}

/// Returns the text of a skill with a section that has the definition.
fn with_section(content: &str, definition: &Definition) -> String {
    let heading = format!("## Wisp: {}", one_line(&definition.description));
    let json = serde_json::to_string(definition).unwrap_or_default();
    let section = format!("{heading}\n\nRun it with spawn_wisps:\n\n```json\n{json}\n```\n");
    let mut kept = Vec::new();
    let mut is_old = false;
    for line in content.lines() {
        if line.starts_with("## ") || line.starts_with("# ") {
            is_old = line == heading;
        }
        if !is_old {
            kept.push(line);
        }
    }
    let kept = kept.join("\n");
    let kept = kept.trim_end();
    if kept.is_empty() {
        section
    } else {
        format!("{kept}\n\n{section}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(description: &str, n: u32) -> Definition {
        let step = json!({"id": "a", "work": {"mode": "direct", "tool": "pay", "params": {"n": n}}});
        serde_json::from_value(json!({"description": description, "steps": [step]})).unwrap()
    }

    #[test]
    fn a_section_is_added_once_and_replaced_by_the_next_definition() {
        let first = with_section("# Bills\n\nPay them.\n", &definition("Pay\n# one.", 1));
        let json = serde_json::to_string(&definition("Pay\n# one.", 1)).unwrap();
        let expected = format!(
            "# Bills\n\nPay them.\n\n## Wisp: Pay # one.\n\nRun it with spawn_wisps:\n\n```json\n{json}\n```\n"
        );
        assert_eq!(first, expected);
        assert_eq!(with_section(&first, &definition("Pay\n# one.", 1)), first);
        let more = format!("{first}\n## Notes\n\nAsk Ann.\n");
        let second = with_section(&more, &definition("Pay\n# one.", 2));
        assert_eq!(second.matches("## Wisp").count(), 1);
        assert!(
            second.starts_with("# Bills\n\nPay them.\n\n## Notes\n\nAsk Ann.\n\n## Wisp")
                && second.contains("{\"n\":2}")
        );
        let both = with_section(&second, &definition("Look.", 1));
        assert_eq!(both.matches("## Wisp").count(), 2);
    }
}
