//! The subject of an evaluation: an agent, or any other program that answers.

use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::MicroUsd;
use rockbot_core::turn::{Approval, ApprovalRequest, TurnOutcome, TurnProgress};
use rockbot_core::{BoxError, CallId, SessionId, ToolName};
use rockbot_host::Agent;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A program that answers questions.
///
/// [`Agent`] is one: each conversation is a session of a principal of its own, so that cases share
/// neither history nor memories. Calls that wait for a person are refused; [`Approving`] approves
/// them.
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    /// Answers a question in a conversation. The questions of a conversation come one after the other.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no answer: the case counts as failed.
    async fn answer(&self, conversation: &SessionId, question: &str) -> Result<Answer, BoxError>;

    /// Forgets a conversation whose last question was answered. Does nothing by default.
    async fn end(&self, conversation: &SessionId) {
        let _ = conversation;
    }
}

/// An answer, with the calls that were made for it and its cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Answer {
    /// The text.
    pub text: String,
    /// The tool calls that ended, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<MadeCall>,
    /// Number of tokens, of questions to the model and its answers together.
    pub tokens: u64,
    /// Price of the model's answers, as far as it is known.
    pub cost: MicroUsd,
    /// Time from the question to the answer.
    pub time: Duration,
}

/// A tool call that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MadeCall {
    /// The tool.
    pub tool: ToolName,
    /// The arguments; [`Value::Null`] if they are no JSON.
    pub arguments: Value,
    /// `true` if the call failed.
    pub is_error: bool,
}

impl Answer {
    /// Creates an answer in words, without calls and cost.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Sets the calls that ended. Default: none.
    #[must_use]
    pub fn with_calls(mut self, calls: impl IntoIterator<Item = MadeCall>) -> Self {
        self.calls = calls.into_iter().collect();
        self
    }

    /// Sets the number of tokens. Default 0.
    #[must_use]
    pub fn with_tokens(mut self, tokens: u64) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets the price. Default 0.
    #[must_use]
    pub fn with_cost(mut self, cost: MicroUsd) -> Self {
        self.cost = cost;
        self
    }

    /// Sets the time from the question to the answer. Default 0; an evaluation sets the time that it
    /// measured.
    #[must_use]
    pub fn with_time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }
}

impl MadeCall {
    /// Creates a call that ended.
    pub fn new(tool: impl Into<ToolName>, arguments: Value, is_error: bool) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            is_error,
        }
    }
}

/// An agent whose calls that wait for a person are approved, all of them.
#[derive(Debug, Clone)]
pub struct Approving(Agent);

impl Approving {
    /// Creates the subject.
    pub fn new(agent: Agent) -> Self {
        Self(agent)
    }
}

#[async_trait]
impl Subject for Agent {
    async fn answer(&self, conversation: &SessionId, question: &str) -> Result<Answer, BoxError> {
        ask(self, conversation, question, false).await
    }

    async fn end(&self, conversation: &SessionId) {
        // A conversation that cannot be forgotten disturbs no later case.
        let _ = self
            .for_principal(conversation.as_str())
            .reset(conversation.clone())
            .await;
    }
}

#[async_trait]
impl Subject for Approving {
    async fn answer(&self, conversation: &SessionId, question: &str) -> Result<Answer, BoxError> {
        ask(&self.0, conversation, question, true).await
    }

    async fn end(&self, conversation: &SessionId) {
        self.0.end(conversation).await;
    }
}

/// Asks an agent as a principal named after the conversation, and decides about all its calls alike.
async fn ask(agent: &Agent, conversation: &SessionId, question: &str, approves: bool) -> Result<Answer, BoxError> {
    let agent = agent.for_principal(conversation.as_str());
    let mut turn = agent.stream(conversation.clone(), question).cancel_on_drop();
    let mut begun: Vec<(CallId, Value)> = Vec::new();
    let mut calls = Vec::new();
    while let Some(progress) = turn.next().await {
        match progress? {
            TurnProgress::ToolStarted { call, arguments, .. } => {
                begun.push((call, serde_json::from_str(&arguments).unwrap_or_default()));
            }
            TurnProgress::ToolFinished {
                call, tool, is_error, ..
            } => {
                let made = begun.iter().rev().find(|(id, _)| *id == call);
                let arguments = made.map_or(Value::Null, |(_, arguments)| arguments.clone());
                calls.push(MadeCall {
                    tool,
                    arguments,
                    is_error,
                });
            }
            TurnProgress::ApprovalNeeded(request) => agent.decide(decision(&request, approves)).await?,
            TurnProgress::Final(outcome) => return answered(outcome, calls),
            _ => {}
        }
    }
    Err("the agent stopped before it answered".into())
}

fn decision(request: &ApprovalRequest, approves: bool) -> Approval {
    if approves {
        request.approve()
    } else {
        request.deny("Nobody is there to approve it.")
    }
}

fn answered(outcome: TurnOutcome, calls: Vec<MadeCall>) -> Result<Answer, BoxError> {
    if !outcome.is_answer() {
        return Err(outcome.text.into());
    }
    Ok(Answer {
        tokens: outcome.usage.total(),
        cost: outcome.spent().cost,
        text: outcome.text,
        calls,
        time: Duration::ZERO,
    })
}
