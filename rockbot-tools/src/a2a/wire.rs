//! The messages between agents, as the original writes them: members in camelCase, states as
//! integers. A member that would be null may be missing.

use rockbot_core::messaging::Message;
use rockbot_core::service::{AgentCard, AgentSkill};
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The announcement of an agent: its card, or its leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnnouncedCard {
    pub(super) agent_name: String,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) skills: Option<Vec<AnnouncedSkill>>,
    #[serde(default)]
    pub(super) is_deregistering: bool,
}

/// A skill of an announced agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnnouncedSkill {
    pub(super) id: String,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) tags: Option<Vec<String>>,
    #[serde(default)]
    pub(super) examples: Option<Vec<String>>,
}

/// The request of an agent that begins to listen. Other agents then announce themselves at once,
/// not at their next interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CardsWanted {}

/// A task for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentTaskRequest {
    pub(super) task_id: String,
    #[serde(default)]
    pub(super) context_id: Option<String>,
    pub(super) skill: String,
    pub(super) message: AgentMessage,
}

/// A text of an agent, in parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentMessage {
    /// `user` for a task, `agent` for an answer.
    pub(super) role: String,
    pub(super) parts: Vec<AgentMessagePart>,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentMessagePart {
    /// `text` or `data`.
    pub(super) kind: String,
    #[serde(default)]
    pub(super) text: Option<String>,
    /// JSON: a document as text, or the value itself.
    #[serde(default)]
    pub(super) data: Option<serde_json::Value>,
    #[serde(default)]
    pub(super) mime_type: Option<String>,
}

/// News of a task that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentTaskStatusUpdate {
    pub(super) task_id: String,
    #[serde(default)]
    pub(super) context_id: Option<String>,
    pub(super) state: AgentTaskState,
    #[serde(default)]
    pub(super) message: Option<AgentMessage>,
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentTaskResult {
    pub(super) task_id: String,
    #[serde(default)]
    pub(super) context_id: Option<String>,
    pub(super) state: AgentTaskState,
    #[serde(default)]
    pub(super) artifacts: Option<Vec<AgentArtifact>>,
    #[serde(default)]
    pub(super) message: Option<AgentMessage>,
}

/// A text or document that a task has made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentArtifact {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) description: Option<String>,
    pub(super) parts: Vec<AgentMessagePart>,
}

/// The failure of a task, or of its cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentTaskError {
    pub(super) task_id: String,
    #[serde(default)]
    pub(super) context_id: Option<String>,
    /// A code of [`codes`], or a code of a later version.
    pub(super) code: String,
    pub(super) message: String,
    #[serde(default)]
    pub(super) is_retryable: bool,
}

/// The cancellation of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentTaskCancelRequest {
    pub(super) task_id: String,
    #[serde(default)]
    pub(super) context_id: Option<String>,
}

/// The codes of errors.
pub(super) mod codes {
    /// The agent has no such task.
    pub(in crate::a2a) const TASK_NOT_FOUND: &str = "task_not_found";
    /// The task cannot be cancelled, for example because it has ended.
    pub(in crate::a2a) const TASK_NOT_CANCELABLE: &str = "task_not_cancelable";
    /// The agent does not have the skill, or does not offer it to this caller.
    pub(in crate::a2a) const SKILL_NOT_SUPPORTED: &str = "skill_not_supported";
    /// The agent could not do the task.
    pub(in crate::a2a) const EXECUTION_FAILED: &str = "execution_failed";
    /// The agent does not take the task as it is.
    pub(in crate::a2a) const INVALID_REQUEST: &str = "invalid_request";
}

/// The state of a task: an integer on the wire. The name of the state is read, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentTaskState {
    Submitted,
    Working,
    InputRequired,
    Completed,
    Failed,
    Canceled,
}

impl AgentTaskState {
    const ALL: [(Self, &str); 6] = [
        (Self::Submitted, "submitted"),
        (Self::Working, "working"),
        (Self::InputRequired, "inputRequired"),
        (Self::Completed, "completed"),
        (Self::Failed, "failed"),
        (Self::Canceled, "canceled"),
    ];
}

impl Serialize for AgentTaskState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

impl<'de> Deserialize<'de> for AgentTaskState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(usize),
            Name(String),
        }
        let expected = &"a state from 0 to 5";
        let written = Written::deserialize(deserializer)?;
        let found = match &written {
            Written::Number(number) => Self::ALL.get(*number),
            Written::Name(written) => Self::ALL.iter().find(|(_, name)| name.eq_ignore_ascii_case(written)),
        };
        let found = found.ok_or_else(|| D::Error::invalid_value(Unexpected::Other("another state"), expected));
        found.map(|(state, _)| *state)
    }
}

impl AnnouncedCard {
    /// Returns the card of an agent as it is announced.
    pub(super) fn of(card: &AgentCard) -> Self {
        Self {
            agent_name: card.agent_name.clone(),
            description: card.description.clone(),
            version: card.version.clone(),
            url: card.url.clone(),
            skills: Some(card.skills.iter().map(AnnouncedSkill::of).collect()),
            is_deregistering: false,
        }
    }
}

impl AnnouncedSkill {
    fn of(skill: &AgentSkill) -> Self {
        Self {
            id: skill.id.clone(),
            name: Some(skill.name.clone()),
            description: skill.description.clone(),
            tags: Some(skill.tags.clone()),
            examples: Some(skill.examples.clone()),
        }
    }
}

impl AgentMessage {
    /// Creates a text of `role` without parts.
    pub(super) fn new(role: &str) -> Self {
        Self {
            role: role.to_owned(),
            parts: Vec::new(),
        }
    }

    /// Adds a part of plain text.
    pub(super) fn with_text(mut self, text: impl Into<String>) -> Self {
        self.parts.push(AgentMessagePart {
            kind: "text".to_owned(),
            text: Some(text.into()),
            data: None,
            mime_type: None,
        });
        self
    }

    /// Adds a part of JSON, as the text of a document.
    pub(super) fn with_data(mut self, data: &serde_json::Value) -> Self {
        self.parts.push(AgentMessagePart {
            kind: "data".to_owned(),
            text: None,
            data: Some(serde_json::Value::String(data.to_string())),
            mime_type: Some("application/json".to_owned()),
        });
        self
    }
}

impl Message for AnnouncedCard {
    const TYPE: &'static str = "RockBot.A2A.AgentCard";
}

impl Message for CardsWanted {
    const TYPE: &'static str = "rockbot.AgentCardsWanted";
}

impl Message for AgentTaskRequest {
    const TYPE: &'static str = "RockBot.A2A.AgentTaskRequest";
}

impl Message for AgentTaskStatusUpdate {
    const TYPE: &'static str = "RockBot.A2A.AgentTaskStatusUpdate";
}

impl Message for AgentTaskResult {
    const TYPE: &'static str = "RockBot.A2A.AgentTaskResult";
}

impl Message for AgentTaskError {
    const TYPE: &'static str = "RockBot.A2A.AgentTaskError";
}

impl Message for AgentTaskCancelRequest {
    const TYPE: &'static str = "RockBot.A2A.AgentTaskCancelRequest";
}

#[cfg(test)]
mod tests {
    use rockbot_core::messaging::MessageEnvelope;
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;

    fn written<M: Message + Serialize>(message: &M) -> (String, String) {
        let envelope = MessageEnvelope::of(message).unwrap();
        let body = String::from_utf8(envelope.body.to_vec()).unwrap();
        (envelope.message_type.into_owned(), body)
    }

    /// Reads a body as the original writes it: names in any case, all that is null.
    fn read<M: Message + DeserializeOwned>(body: &serde_json::Value) -> M {
        MessageEnvelope::new(M::TYPE, body.to_string()).payload().unwrap()
    }

    #[test]
    fn messages_are_written_as_the_original_reads_them() {
        let mut card = AgentCard::new("ResearchAgent").with_description("Researches.");
        card.skills = vec![AgentSkill::new("research")];
        let message = || AgentMessage::new("user").with_text("Why?").with_data(&json!({"n": 1}));
        let task_id = "t1".to_owned();
        let context_id = Some("c1".to_owned());
        let messages = [
            written(&AnnouncedCard::of(&card)),
            written(&AgentTaskRequest {
                task_id: task_id.clone(),
                context_id: None,
                skill: "research".to_owned(),
                message: message(),
            }),
            written(&AgentTaskStatusUpdate {
                task_id: task_id.clone(),
                context_id: context_id.clone(),
                state: AgentTaskState::Working,
                message: None,
            }),
            written(&AgentTaskResult {
                task_id: task_id.clone(),
                context_id: context_id.clone(),
                state: AgentTaskState::Completed,
                artifacts: None,
                message: Some(AgentMessage::new("agent").with_text("So.")),
            }),
            written(&AgentTaskError {
                task_id: task_id.clone(),
                context_id: None,
                code: codes::SKILL_NOT_SUPPORTED.to_owned(),
                message: "no".to_owned(),
                is_retryable: false,
            }),
            written(&AgentTaskCancelRequest { task_id, context_id }),
        ];
        let expected = [
            (
                "RockBot.A2A.AgentCard",
                r#"{"agentName":"ResearchAgent","description":"Researches.","version":null,"skills":[{"id":"research","name":"research","description":null,"tags":[],"examples":[]}],"isDeregistering":false}"#,
            ),
            (
                "RockBot.A2A.AgentTaskRequest",
                r#"{"taskId":"t1","contextId":null,"skill":"research","message":{"role":"user","parts":[{"kind":"text","text":"Why?","data":null,"mimeType":null},{"kind":"data","text":null,"data":"{\"n\":1}","mimeType":"application/json"}]}}"#,
            ),
            (
                "RockBot.A2A.AgentTaskStatusUpdate",
                r#"{"taskId":"t1","contextId":"c1","state":1,"message":null}"#,
            ),
            (
                "RockBot.A2A.AgentTaskResult",
                r#"{"taskId":"t1","contextId":"c1","state":3,"artifacts":null,"message":{"role":"agent","parts":[{"kind":"text","text":"So.","data":null,"mimeType":null}]}}"#,
            ),
            (
                "RockBot.A2A.AgentTaskError",
                r#"{"taskId":"t1","contextId":null,"code":"skill_not_supported","message":"no","isRetryable":false}"#,
            ),
            (
                "RockBot.A2A.AgentTaskCancelRequest",
                r#"{"taskId":"t1","contextId":"c1"}"#,
            ),
        ];
        assert_eq!(
            messages,
            expected.map(|(name, body)| (name.to_owned(), body.to_owned()))
        );
    }

    #[test]
    fn messages_are_read_in_any_case_with_what_is_null_or_missing() {
        let card: AnnouncedCard = read(&json!({"AgentName": "A", "Skills": null, "IsDeregistering": true, "later": 1}));
        let expected = AnnouncedCard {
            is_deregistering: true,
            skills: None,
            ..AnnouncedCard::of(&AgentCard::new("A"))
        };
        assert_eq!(card, expected);
        let skilled: AnnouncedCard = read(&json!({"agentName": "A", "skills": [{"id": "s", "tags": null}]}));
        assert_eq!(skilled.skills.unwrap()[0].tags, None);
        let result: AgentTaskResult = read(&json!({
            "TaskId": "t", "State": "inputRequired",
            "Artifacts": [{"Name": "a", "Parts": [{"Kind": "data", "Data": {"deep": [1]}}]}]
        }));
        assert_eq!(result.state, AgentTaskState::InputRequired);
        assert_eq!(result.artifacts.unwrap()[0].parts[0].data, Some(json!({"deep": [1]})));
        let wrong = MessageEnvelope::new(AgentTaskResult::TYPE, r#"{"taskId":"t","state":6}"#);
        assert!(wrong.payload::<AgentTaskResult>().is_err());
        let missing = MessageEnvelope::new(AgentTaskRequest::TYPE, r#"{"taskId":"t"}"#);
        assert!(missing.payload::<AgentTaskRequest>().is_err());
    }
}
