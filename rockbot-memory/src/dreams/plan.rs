//! Plans: the changes that a dream proposes, with their reasons and all that undoing them needs.

use std::fmt::{self, Write as _};

use rockbot_core::store::{MemoryEntry, Skill};
use rockbot_core::support::one_line;
use rockbot_core::{Digest, MemoryId, Principal, Timestamp};
use serde::{Deserialize, Serialize};

use super::pass::DreamPass;

/// A plan of a dream: changes of the agent's knowledge, before or after they were made.
///
/// With a data folder the plan is the file `dreams/{id}.json`. The file is written before the
/// first change is made, and holds all that undoing the changes needs. Its
/// [`Display`](fmt::Display) is a text for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DreamPlan {
    /// Id, such as `2026-11-27T03-05-00Z-duplicate-fold`.
    pub id: String,
    /// Pass that made the plan.
    pub pass: DreamPass,
    /// Principal whose knowledge the plan changes.
    pub principal: Principal,
    /// Time at which the plan was made.
    #[serde(with = "rockbot_core::rfc3339")]
    pub created_at: Timestamp,
    /// State of the plan.
    pub state: PlanState,
    /// Purpose of the plan, in one line.
    pub summary: String,
    /// Changes, in the order of their application.
    pub changes: Vec<DreamChange>,
    /// Remarks, such as the reason why the plan waits for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Digest of the question to a model that the plan answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) question: Option<Digest>,
}

/// The state of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PlanState {
    /// Nothing is changed: the plan waits for a person.
    Proposed,
    /// The changes are being made. After a crash the rest is made at the next start.
    Applying,
    /// The changes are made.
    Applied,
    /// The changes are being undone. After a crash the rest is undone at the next start.
    Undoing,
    /// The changes are undone.
    Undone,
}

/// A change of the agent's knowledge. No change deletes anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum DreamChange {
    /// A new memory: a view, whose metadata name its sources and the start of its validity.
    AddMemory {
        /// The memory.
        entry: Box<MemoryEntry>,
        /// Reason of the change.
        reason: String,
    },
    /// A memory that another memory takes the place of: searches skip the old memory, and it is
    /// kept.
    Supersede {
        /// Id of the memory.
        id: MemoryId,
        /// Text of the memory when the plan was made. The change is refused if the memory says
        /// something else by then.
        content: String,
        /// Id of the memory that takes its place.
        by: MemoryId,
        /// Reason of the change.
        reason: String,
    },
    /// A memory that was learned more often than it says, since its duplicates are folded into it.
    Reinforce {
        /// The memory before.
        before: Box<MemoryEntry>,
        /// The memory after.
        after: Box<MemoryEntry>,
    },
    /// A memory that may be out of date, since a memory that it rests on is no longer true. It stays,
    /// and models read that.
    MarkStale {
        /// The memory before.
        before: Box<MemoryEntry>,
        /// The memory after, with the mark in its metadata.
        after: Box<MemoryEntry>,
        /// Reason of the change.
        reason: String,
    },
    /// A new, changed or archived skill.
    Skill {
        /// The skill before; `None` for a new skill.
        before: Option<Box<Skill>>,
        /// The skill after.
        after: Box<Skill>,
        /// Reason of the change.
        reason: String,
    },
    /// A new standing rule. Only a person applies such a plan.
    Rule {
        /// The rule.
        rule: String,
        /// Reason of the change.
        reason: String,
    },
    /// New rules of the tier selector: the file `tier-selector.json` of the data folder.
    TierRules {
        /// Text of the file before; `None` if there was no file.
        before: Option<String>,
        /// Text of the file after.
        after: String,
        /// Reason of the change.
        reason: String,
    },
}

impl DreamPlan {
    /// Returns `true` if a person may apply the plan: the plan is proposed, or was undone.
    pub fn can_be_applied(&self) -> bool {
        matches!(self.state, PlanState::Proposed | PlanState::Undone)
    }

    /// Returns the plan in one line: id, state and purpose.
    pub fn line(&self) -> String {
        format!("{} ({}): {}", self.id, self.state.name(), one_line(&self.summary))
    }
}

impl PlanState {
    /// Returns the state as a word, such as `proposed`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Applying => "applying",
            Self::Applied => "applied",
            Self::Undoing => "undoing",
            Self::Undone => "undone",
        }
    }
}

impl fmt::Display for DreamPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())?;
        for change in &self.changes {
            write!(f, "\n{change}")?;
        }
        for note in &self.notes {
            write!(f, "\nnote: {}", one_line(note))?;
        }
        Ok(())
    }
}

impl DreamChange {
    /// Returns the memory that the change supersedes.
    pub(super) fn superseded(&self) -> Option<&MemoryId> {
        match self {
            Self::Supersede { id, .. } => Some(id),
            _ => None,
        }
    }
}

impl fmt::Display for DreamChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, text, reason) = match self {
            Self::AddMemory { entry, reason } => ('+', format!("[{}] {}", entry.id, entry.content), reason.as_str()),
            Self::Supersede {
                id,
                content,
                by,
                reason,
            } => ('-', format!("[{id}] {content} (superseded by {by})"), reason.as_str()),
            Self::Reinforce { after, .. } => {
                let count = after.reinforcement_count;
                let text = format!("[{}] {} (learned {count} times)", after.id, after.content);
                ('=', text, "")
            }
            Self::MarkStale { after, reason, .. } => (
                '?',
                format!("[{}] {} (may be out of date)", after.id, after.content),
                reason.as_str(),
            ),
            Self::Skill { before, after, reason } => return skill(f, before.as_deref(), after, reason),
            Self::Rule { rule, reason } => ('+', format!("rule: {rule}"), reason.as_str()),
            Self::TierRules { after, reason, .. } => ('~', format!("tier-selector.json: {after}"), reason.as_str()),
        };
        line(f, sign, &text, reason)
    }
}

/// Formats a change of a skill, with the lines that are new.
fn skill(f: &mut fmt::Formatter<'_>, before: Option<&Skill>, after: &Skill, reason: &str) -> fmt::Result {
    let name = &after.name;
    let Some(before) = before else {
        return line(f, '+', &format!("skill {name}: {}", after.content), reason);
    };
    if !after.is_live() {
        return line(f, '-', &format!("skill {name}"), reason);
    }
    let mut text = format!("skill {name}:");
    let known: Vec<_> = before.content.lines().collect();
    for new in after.content.lines().filter(|line| !known.contains(line)) {
        let _ = write!(text, " + {new}");
    }
    let kept: Vec<_> = after.content.lines().collect();
    for gone in before.content.lines().filter(|line| !kept.contains(line)) {
        let _ = write!(text, " - {gone}");
    }
    for link in after.see_also.iter().filter(|link| !before.see_also.contains(link)) {
        let _ = write!(text, " see also {link}");
    }
    line(f, '~', &text, reason)
}

fn line(f: &mut fmt::Formatter<'_>, sign: char, text: &str, reason: &str) -> fmt::Result {
    write!(f, "{sign} {}", one_line(text))?;
    if reason.is_empty() {
        Ok(())
    } else {
        write!(f, "; {}", one_line(reason))
    }
}
