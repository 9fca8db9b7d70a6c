//! A message from its arrival to the turn that it becomes.

use std::sync::Arc;

use rockbot_core::content::Content;
use rockbot_core::context::{Origin, Priority};
use rockbot_core::trust::{Label, Trust};
use rockbot_core::turn::{Approver, TurnRequest};
use rockbot_core::{Digest, ToolName, TurnId};

use super::caller::A2aCaller;
use super::content::content_of;
use super::operations::Operations;
use super::tasks::{TaskRecord, TaskTurn, refused};
use super::watch::Watch;
use crate::a2a_callers::chains;
use crate::a2a_wire::{A2aError, ErrorKind, Message, PushConfig, SendConfiguration, SendMessage, TaskState};

/// Session of the questions to the operator.
const OPERATOR_SESSION: &str = "a2a";

/// Source of the turns, which is a part of their identity.
const SOURCE: &str = "a2a";

/// Maximum number of questions of the agent in one task. After them the agent has to answer
/// without asking.
const MAX_QUESTIONS: usize = 20;

/// Maximum length of the ids that clients choose, in bytes.
const MAX_ID: usize = 256;

/// A message that was accepted as a part of a task.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) record: TaskRecord,
    pub(super) turn: TurnId,
    pub(super) history: Option<i32>,
}

impl Operations {
    /// Accepts a message, which begins a task or continues one.
    pub(super) async fn accept(
        self: &Arc<Self>,
        caller: &A2aCaller,
        (request, is_old): (SendMessage, bool),
    ) -> Result<Accepted, A2aError> {
        let SendMessage {
            message,
            configuration,
            metadata,
        } = request;
        message.check()?;
        let wanted = configuration.unwrap_or_default();
        check_wanted(&wanted)?;
        if let Some(push) = &wanted.task_push_notification_config {
            self.check_push(push)?;
        }
        let skill = message.metadata.as_ref().and_then(|metadata| metadata.skill.clone());
        let metadata = metadata.unwrap_or_default();
        let skill = skill.or(metadata.skill);
        let chain = chains::read(metadata.chain.as_deref(), caller.name());
        chains::check(&chain, &self.name).map_err(A2aError::params)?;
        self.check_skill(caller, skill.as_deref())?;
        let known = self.task_of(caller, &message).await?;
        let context = match &known {
            Some(record) => record.context.clone(),
            None => context_of(caller, &message)?,
        };
        let questions = known.as_ref().map_or(0, |record| record.turns.len());
        let request = self.request(caller, &message, &context, skill.as_deref(), questions < MAX_QUESTIONS)?;
        let request = request.with_approver(self.approver(caller, &chain));
        self.chains.set(caller.principal(), context.as_str().into(), chain);
        let record = self.begin(caller, &message, known, context, request).await?;
        if let Some(push) = wanted.task_push_notification_config {
            let task_id = record.id.clone();
            self.create_push(caller, PushConfig { task_id, ..push }, is_old)?;
        }
        Ok(Accepted {
            turn: record.last_turn().cloned().ok_or_else(A2aError::no_task)?,
            record,
            history: wanted.history_length,
        })
    }

    fn check_skill(&self, caller: &A2aCaller, skill: Option<&str>) -> Result<(), A2aError> {
        match skill {
            Some(skill) if !self.card.has_skill(skill) || !caller.may_name(skill) => Err(A2aError::params(
                "`metadata.skill` is not a skill that you may use: name one of the agent card, or none",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the task that a message names, if it names one.
    async fn task_of(&self, caller: &A2aCaller, message: &Message) -> Result<Option<TaskRecord>, A2aError> {
        let Some(id) = message.task_id.as_deref().filter(|id| !id.is_empty()) else {
            return Ok(None);
        };
        let record = self.tasks.find(&caller.principal(), id)?;
        let context = message.context_id.as_deref().filter(|id| !id.is_empty());
        if context.is_some_and(|context| context != record.context) {
            return Err(A2aError::params(
                "`message.contextId` is not that of the task: leave it out",
            ));
        }
        // A message that is sent again is answered again.
        let turn = named(caller, &record.context, message, String::new()).turn_id();
        if record.turns.iter().any(|known| known.turn == turn) {
            return Ok(Some(record));
        }
        match self.standing(&record).await?.state {
            TaskState::AuthRequired => Err(A2aError::new(
                ErrorKind::Unsupported,
                "the task waits for the approval of the agent's operator: wait, or cancel it",
            )),
            state if state.is_terminal() => Err(A2aError::new(
                ErrorKind::Unsupported,
                "the task has ended: send the message with its `contextId` alone, as a new task",
            )),
            _ => Ok(Some(record)),
        }
    }

    /// Returns the request of the turn that a message becomes.
    fn request(
        &self,
        caller: &A2aCaller,
        message: &Message,
        context: &str,
        skill: Option<&str>,
        may_ask: bool,
    ) -> Result<TurnRequest, A2aError> {
        check_id("message.messageId", &message.message_id)?;
        let trust = caller.trust_or(self.trust);
        let request = named(caller, context, message, content_of(&message.parts)?)
            .with_origin(Origin::Bus)
            .with_priority(Priority::Subagent)
            .with_trust(Trust::Untrusted)
            .with_label(Label::untrusted(caller.principal().as_str()))
            .with_tools(caller.filter(&self.tools, (trust, &*self.registry), may_ask))
            .with_informing(trust.only_informs());
        Ok(match skill {
            Some(skill) => request.with_instructions(format!("The caller asks for your skill `{skill}`.")),
            None => request,
        })
    }

    /// Returns the operator, who is asked about the calls of a task that came through `chain`. The
    /// last agent is the caller.
    fn approver(&self, caller: &A2aCaller, chain: &[String]) -> Approver {
        let before = &chain[..chain.len().saturating_sub(1)];
        let mut chain: Vec<_> = before.iter().map(|agent| ToolName::from(agent.as_str())).collect();
        chain.push(ToolName::from(caller.principal().as_str()));
        Approver::new(self.operator.clone(), OPERATOR_SESSION).with_chain(chain)
    }

    /// Keeps the task, and then starts the turn. After a crash in between, the kept task names a
    /// turn that the host does not know.
    async fn begin(
        self: &Arc<Self>,
        caller: &A2aCaller,
        message: &Message,
        known: Option<TaskRecord>,
        context: String,
        request: TurnRequest,
    ) -> Result<TaskRecord, A2aError> {
        let turn = request.turn_id();
        let now = self.clock.now();
        let (record, is_new_turn) = match known {
            Some(record) if record.turns.iter().any(|known| known.turn == turn) => (record, false),
            Some(record) => {
                let added = TaskTurn::new(turn.clone(), message);
                let changed = self.tasks.change(&record.id, |record| {
                    record.turns.push(added);
                    (record.state, record.updated) = (TaskState::Working, now);
                })?;
                (changed, true)
            }
            None => self.tasks.add(
                TaskRecord {
                    id: turn.to_string(),
                    principal: caller.principal(),
                    context,
                    turns: vec![TaskTurn::new(turn.clone(), message)],
                    state: TaskState::Working,
                    updated: now,
                    pushes: Vec::new(),
                },
                now,
            )?,
        };
        if let Err(error) = self.turns.start(request).await {
            if is_new_turn {
                self.withdraw(&record, &turn);
            }
            return Err(refused(&error));
        }
        if is_new_turn {
            Watch::new(self, &record, turn).spawn();
        }
        Ok(record)
    }

    /// Takes back the kept record of a turn that was not accepted.
    fn withdraw(&self, record: &TaskRecord, turn: &TurnId) {
        if record.turns.len() == 1 {
            return self.tasks.forget(&record.id);
        }
        let withdrawn = self
            .tasks
            .change(&record.id, |record| record.turns.retain(|known| known.turn != *turn));
        if let Err(error) = withdrawn {
            tracing::warn!(%error, "a message that was not accepted stays in its A2A task");
        }
    }
}

/// Returns the request of a message, with all parts of its identity.
fn named(caller: &A2aCaller, context: &str, message: &Message, content: impl Into<Content>) -> TurnRequest {
    TurnRequest::new(context, &*message.message_id, content)
        .with_source(SOURCE)
        .with_principal(caller.principal())
}

/// Returns the context of a message that names no task. If the client gives none, the context
/// follows from the message, so that a message that is sent again is the same task.
fn context_of(caller: &A2aCaller, message: &Message) -> Result<String, A2aError> {
    match message.context_id.as_deref().filter(|id| !id.is_empty()) {
        Some(id) => {
            check_id("message.contextId", id)?;
            Ok(id.to_owned())
        }
        None => Ok(Digest::of([SOURCE, caller.name(), &message.message_id]).short()),
    }
}

fn check_id(name: &str, id: &str) -> Result<(), A2aError> {
    if id.len() > MAX_ID || id.chars().any(char::is_control) {
        Err(A2aError::params(format!(
            "`{name}` has control characters, or more than {MAX_ID} bytes"
        )))
    } else {
        Ok(())
    }
}

fn check_wanted(wanted: &SendConfiguration) -> Result<(), A2aError> {
    let modes = wanted.accepted_output_modes.as_deref().unwrap_or_default();
    let takes_text = modes.is_empty()
        || modes
            .iter()
            .any(|mode| matches!(&**mode, "text/plain" | "text/*" | "*/*" | "text"));
    if takes_text {
        Ok(())
    } else {
        Err(A2aError::new(
            ErrorKind::ContentType,
            "the agent answers in `text/plain`: accept it in `configuration.acceptedOutputModes`",
        ))
    }
}
