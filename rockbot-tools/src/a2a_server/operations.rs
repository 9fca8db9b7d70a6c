//! The operations of the protocol, over the turns of the host. The bindings only read and write them.

use std::sync::Arc;

use rockbot_core::content::Content;
use rockbot_core::context::{CancellationToken, Origin, Priority};
use rockbot_core::store::MediaStore;
use rockbot_core::tool::ToolSelector;
use rockbot_core::trust::{Label, Trust};
use rockbot_core::turn::{TurnProgress, TurnRequest, TurnRunner};
use rockbot_core::{Clock, Digest, Principal, Timestamp, TurnId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::caller::A2aCaller;
use super::card::Card;
use super::content::{artifact_of, content_of};
use super::stream::TaskStream;
use super::tasks::{SessionTurns, Standing, TaskRecord, TaskTable, TaskTurn, refused, words_of};
use super::watch::Watch;
use super::wire::{
    A2aError, ErrorKind, ListTasks, ListedTasks, Message, SendConfiguration, SendMessage, Task, TaskQuery, TaskState,
    TaskStatus,
};

/// Source of the turns, which is a part of their identity.
pub(super) const SOURCE: &str = "a2a";

/// Maximum number of requests that wait for the end of a task or stream it, of all clients.
const MAX_WAITING: usize = 256;

/// Maximum number of questions of the agent in one task; after them it has to answer with what it knows.
const MAX_QUESTIONS: usize = 20;

/// Maximum length of the ids that clients choose, in bytes.
const MAX_ID: usize = 256;

/// Number of tasks of a page by default, and the maximum.
const PAGE: usize = 50;
const MAX_PAGE: usize = 100;

/// The operations, and the parts of the host that they need.
#[derive(Debug)]
pub(super) struct Operations {
    pub(super) turns: Arc<dyn TurnRunner>,
    pub(super) media: Option<Arc<dyn MediaStore>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tasks: TaskTable,
    pub(super) card: Card,
    /// The tools of callers for which nothing else is said.
    pub(super) tools: Vec<ToolSelector>,
    /// Principal that is asked about tool calls that need an approval.
    pub(super) operator: Principal,
    pub(super) waiting: Arc<Semaphore>,
    pub(super) stop: CancellationToken,
    pub(super) running: TaskTracker,
}

/// A message that was accepted as a part of a task.
#[derive(Debug)]
struct Accepted {
    record: TaskRecord,
    turn: TurnId,
    history: Option<i32>,
}

impl Operations {
    pub(super) fn permits() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(MAX_WAITING))
    }

    /// Answers `SendMessage`: with the task once nothing happens before another acts, or at once.
    pub(super) async fn send(self: &Arc<Self>, caller: &A2aCaller, request: SendMessage) -> Result<Task, A2aError> {
        let is_immediate = request
            .configuration
            .as_ref()
            .and_then(|wanted| wanted.return_immediately);
        let permit = match is_immediate {
            Some(true) => None,
            _ => Some(self.permit()?),
        };
        let accepted = self.accept(caller, request).await?;
        let standing = match permit {
            Some(_) => self.settled(&accepted).await?,
            None => self.standing(&accepted.record).await?,
        };
        self.view(&accepted.record, standing, accepted.history, true).await
    }

    /// Answers `SendStreamingMessage`.
    pub(super) async fn send_stream(
        self: &Arc<Self>,
        caller: &A2aCaller,
        request: SendMessage,
    ) -> Result<TaskStream, A2aError> {
        let permit = self.permit()?;
        let accepted = self.accept(caller, request).await?;
        self.stream(accepted, permit).await
    }

    /// Answers `SubscribeToTask`.
    pub(super) async fn subscribe(
        self: &Arc<Self>,
        caller: &A2aCaller,
        query: TaskQuery,
    ) -> Result<TaskStream, A2aError> {
        let permit = self.permit()?;
        let record = self.tasks.find(&caller.principal(), &query.id)?;
        let standing = self.standing(&record).await?;
        if standing.state.is_terminal() {
            return Err(A2aError::new(
                ErrorKind::Unsupported,
                "the task has ended: read it with `GetTask`",
            ));
        }
        let turn = record.last_turn().cloned().ok_or_else(A2aError::no_task)?;
        let history = query.history_length;
        self.stream(Accepted { record, turn, history }, permit).await
    }

    async fn stream(
        self: &Arc<Self>,
        accepted: Accepted,
        permit: OwnedSemaphorePermit,
    ) -> Result<TaskStream, A2aError> {
        let events = self
            .turns
            .events(&accepted.turn, 0)
            .await
            .map_err(|error| refused(&error))?;
        let standing = self.standing(&accepted.record).await?;
        let first = self.view(&accepted.record, standing, accepted.history, false).await?;
        Ok(TaskStream::new(self.clone(), accepted.record, first, events, permit))
    }

    /// Answers `GetTask`.
    pub(super) async fn get(&self, caller: &A2aCaller, query: &TaskQuery) -> Result<Task, A2aError> {
        let record = self.tasks.find(&caller.principal(), &query.id)?;
        let standing = self.standing(&record).await?;
        self.view(&record, standing, query.history_length, true).await
    }

    /// Answers `CancelTask`: once it returns, the cancellation of each turn that had not ended is in the journal.
    pub(super) async fn cancel(&self, caller: &A2aCaller, query: &TaskQuery) -> Result<Task, A2aError> {
        let record = self.tasks.find(&caller.principal(), &query.id)?;
        let standing = self.standing(&record).await?;
        match standing.state {
            state if state.is_terminal() => {
                return Err(A2aError::new(ErrorKind::TaskNotCancelable, "the task has ended"));
            }
            // No turn works on it.
            TaskState::InputRequired => {
                let record = self.tasks.change(&record.id, |record| {
                    (record.state, record.updated) = (TaskState::Canceled, self.clock.now());
                })?;
                return self
                    .view(&record, Standing::open(TaskState::Canceled), query.history_length, true)
                    .await;
            }
            _ => {}
        }
        let open: Vec<_> = SessionTurns::of(&*self.turns, &record)
            .open()
            .into_iter()
            .map(|(turn, _)| turn)
            .collect();
        for turn in open {
            self.turns.cancel(turn).await.map_err(|error| refused(&error))?;
            // It ends soon, with an outcome: the answer is the task as it is then.
            let _ = self.turns.outcome(turn).await;
        }
        let standing = self.standing(&record).await?;
        self.view(&record, standing, query.history_length, true).await
    }

    /// Answers `ListTasks`.
    pub(super) async fn list(&self, caller: &A2aCaller, query: &ListTasks) -> Result<ListedTasks, A2aError> {
        let size = match query.page_size {
            None | Some(0) => PAGE,
            Some(size) => usize::try_from(size)
                .ok()
                .filter(|size| *size <= MAX_PAGE)
                .ok_or_else(|| A2aError::params(format!("`pageSize` is between 1 and {MAX_PAGE}")))?,
        };
        let after = query.after()?;
        let principal = caller.principal();
        let context = query.context_id.as_deref().filter(|id| !id.is_empty());
        let mut found = self.tasks.all(|record| {
            record.principal == principal
                && context.is_none_or(|id| id == record.context)
                && after.is_none_or(|after| record.updated >= after)
        });
        let state = query.status.filter(|state| *state != TaskState::Unspecified);
        if let Some(state) = state {
            let mut matching = Vec::new();
            for record in found {
                if self.state(&record).await == Some(state) {
                    matching.push(record);
                }
            }
            found = matching;
        }
        let total_size = found.len();
        if let Some(token) = query.page_token.as_deref().filter(|token| !token.is_empty()) {
            let (at, id) =
                token_parts(token).ok_or_else(|| A2aError::params("`pageToken` is not one of this server"))?;
            found.retain(|record| (record.updated.as_millis(), &*record.id) < (at, id));
        }
        let has_more = found.len() > size;
        found.truncate(size);
        let next_page_token = match found.last().filter(|_| has_more) {
            Some(last) => format!("{}.{}", last.updated.as_millis(), last.id),
            None => String::new(),
        };
        let mut tasks = Vec::with_capacity(found.len());
        let with_artifacts = query.include_artifacts == Some(true);
        for record in found {
            // One whose turns are not known any more is gone.
            if let Ok(standing) = self.standing(&record).await {
                tasks.push(
                    self.view(&record, standing, query.history_length, with_artifacts)
                        .await?,
                );
            }
        }
        Ok(ListedTasks {
            page_size: size,
            tasks,
            next_page_token,
            total_size,
        })
    }

    fn permit(&self) -> Result<OwnedSemaphorePermit, A2aError> {
        let permit = self.waiting.clone().try_acquire_owned();
        permit.map_err(|_| A2aError::new(ErrorKind::Busy, "too many requests wait for tasks: try again later"))
    }

    /// Returns what a message begins or goes on with.
    async fn accept(self: &Arc<Self>, caller: &A2aCaller, request: SendMessage) -> Result<Accepted, A2aError> {
        let SendMessage {
            message,
            configuration,
            metadata,
        } = request;
        message.check()?;
        let wanted = configuration.unwrap_or_default();
        check_wanted(&wanted)?;
        let skill = message.metadata.as_ref().and_then(|metadata| metadata.skill.clone());
        let skill = skill.or(metadata.and_then(|metadata| metadata.skill));
        self.check_skill(caller, skill.as_deref())?;
        let known = self.task_of(caller, &message).await?;
        let context = match &known {
            Some(record) => record.context.clone(),
            None => context_of(caller, &message)?,
        };
        let questions = known.as_ref().map_or(0, |record| record.turns.len());
        let request = self.request(caller, &message, &context, skill.as_deref(), questions < MAX_QUESTIONS)?;
        let record = self.begin(caller, &message, known, context, request).await?;
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

    /// Returns the task that a message goes on with, if it names one.
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
        let request = named(caller, context, message, content_of(&message.parts)?)
            .with_origin(Origin::Bus)
            .with_priority(Priority::Subagent)
            .with_trust(Trust::Untrusted)
            .with_label(Label::untrusted(caller.principal().as_str()))
            .with_tools(caller.filter(&self.tools, may_ask));
        Ok(match skill {
            Some(skill) => request.with_instructions(format!("The caller asks for your skill `{skill}`.")),
            None => request,
        })
    }

    /// Keeps the task, and then starts the turn: after a crash in between, the task is one whose turn is unknown.
    async fn begin(
        self: &Arc<Self>,
        caller: &A2aCaller,
        message: &Message,
        known: Option<TaskRecord>,
        context: String,
        request: TurnRequest,
    ) -> Result<TaskRecord, A2aError> {
        let (turn, now) = (request.turn_id(), self.clock.now());
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

    /// Takes back what was kept for a turn that was not accepted.
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

    /// Waits until nothing happens in the turn before another acts. Dropped, it leaves the turn alone.
    async fn settled(&self, accepted: &Accepted) -> Result<Standing, A2aError> {
        let events = self.turns.events(&accepted.turn, 0).await;
        let mut events = events.map_err(|error| refused(&error))?;
        let waiting = async {
            while let Some(event) = events.next().await {
                match event.map_err(|error| refused(&error))? {
                    TurnProgress::Final(outcome) => return Ok(Some(Standing::of_outcome(outcome))),
                    TurnProgress::ApprovalNeeded(_) => {
                        let standing = self.standing(&accepted.record).await?;
                        if standing.state.is_settled() {
                            return Ok(Some(standing));
                        }
                    }
                    _ => {}
                }
            }
            Ok(None)
        };
        let stopping = || A2aError::new(ErrorKind::Busy, "the agent stops: ask for the task when it runs again");
        match self.stop.run_until_cancelled(waiting).await {
            Some(Ok(Some(standing))) => Ok(standing),
            Some(Err(error)) => Err(error),
            Some(Ok(None)) | None => Err(stopping()),
        }
    }

    /// Returns the standing of a task, and notes it.
    pub(super) async fn standing(&self, record: &TaskRecord) -> Result<Standing, A2aError> {
        // One that was cancelled while it waited for input has no turn that says so.
        if record.state == TaskState::Canceled {
            return Ok(Standing::open(TaskState::Canceled));
        }
        let standing = SessionTurns::of(&*self.turns, record).standing().await;
        match &standing {
            Ok(standing) => self.tasks.note(&record.id, standing.state, self.clock.now()),
            Err(error) if error.kind == ErrorKind::TaskNotFound => self.tasks.forget(&record.id),
            Err(_) => {}
        }
        standing
    }

    /// Returns the state of a task; that of one that has ended is known without its turns. `None` if it is gone.
    async fn state(&self, record: &TaskRecord) -> Option<TaskState> {
        if record.state.is_terminal() {
            return Some(record.state);
        }
        self.standing(record).await.ok().map(|standing| standing.state)
    }

    /// Returns a task as clients see it.
    pub(super) async fn view(
        &self,
        record: &TaskRecord,
        standing: Standing,
        history: Option<i32>,
        with_artifacts: bool,
    ) -> Result<Task, A2aError> {
        let artifacts = match (&standing.outcome, standing.state) {
            _ if !with_artifacts => None,
            (Some(outcome), TaskState::Completed) => Some(vec![self.artifact(record, outcome).await]),
            _ => Some(Vec::new()),
        };
        Ok(Task {
            id: record.id.clone(),
            context_id: record.context.clone(),
            status: self.status(record, &standing),
            artifacts,
            history: history_of(record, history)?,
        })
    }

    /// Returns the status of a task, with what the agent says.
    pub(super) fn status(&self, record: &TaskRecord, standing: &Standing) -> TaskStatus {
        let known = self.tasks.find(&record.principal, &record.id);
        TaskStatus {
            state: standing.state,
            message: words_of(standing).map(|words| {
                let turn = record.last_turn().map_or("", TurnId::as_str);
                Message::of_agent(format!("{turn}-status"), &record.context, &record.id, words)
            }),
            timestamp: known.map_or(record.updated, |record| record.updated),
        }
    }

    /// Returns the artifact of a task that is completed.
    pub(super) async fn artifact(
        &self,
        record: &TaskRecord,
        outcome: &rockbot_core::turn::TurnOutcome,
    ) -> super::wire::Artifact {
        let url = |index: usize| format!("{}files/{}/{index}", self.card.url(), record.id);
        artifact_of(outcome, &record.principal, self.media.as_deref(), url).await
    }
}

impl ListTasks {
    fn after(&self) -> Result<Option<Timestamp>, A2aError> {
        let Some(text) = self.status_timestamp_after.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let read = rockbot_core::rfc3339::deserialize(serde_json::Value::from(text));
        let wrong = |_| A2aError::params("`statusTimestampAfter` is not a time such as `2026-05-26T10:30:00.000Z`");
        read.map(Some).map_err(wrong)
    }
}

/// Returns the request of a message with all that makes its identity.
fn named(caller: &A2aCaller, context: &str, message: &Message, content: impl Into<Content>) -> TurnRequest {
    TurnRequest::new(context, &*message.message_id, content)
        .with_source(SOURCE)
        .with_principal(caller.principal())
}

/// Returns the context of a message that names no task. Without one of the client's it follows from the message, so that a
/// message that is sent again is the same task.
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
    match id.len() > MAX_ID || id.chars().any(char::is_control) {
        true => Err(A2aError::params(format!(
            "`{name}` has control characters, or more than {MAX_ID} bytes"
        ))),
        false => Ok(()),
    }
}

fn check_wanted(wanted: &SendConfiguration) -> Result<(), A2aError> {
    if wanted.task_push_notification_config.is_some() {
        return Err(A2aError::new(
            ErrorKind::PushNotSupported,
            "this agent sends no push notifications: stream the task, or ask for it",
        ));
    }
    let modes = wanted.accepted_output_modes.as_deref().unwrap_or_default();
    let takes_text = modes.is_empty()
        || modes
            .iter()
            .any(|mode| matches!(&**mode, "text/plain" | "text/*" | "*/*" | "text"));
    match takes_text {
        true => Ok(()),
        false => Err(A2aError::new(
            ErrorKind::ContentType,
            "the agent answers in `text/plain`: accept it in `configuration.acceptedOutputModes`",
        )),
    }
}

/// Returns the last messages of a task.
fn history_of(record: &TaskRecord, length: Option<i32>) -> Result<Vec<Message>, A2aError> {
    let length = match length {
        None => usize::MAX,
        Some(length) => usize::try_from(length).map_err(|_| A2aError::params("`historyLength` is at least 0"))?,
    };
    let kept = record.turns.iter().filter_map(|turn| {
        let mut message = turn.message.clone()?;
        message.task_id = Some(record.id.clone());
        message.context_id = Some(record.context.clone());
        Some(message)
    });
    let mut kept: Vec<_> = kept.collect();
    Ok(kept.split_off(kept.len().saturating_sub(length)))
}

fn token_parts(token: &str) -> Option<(u64, &str)> {
    let (at, id) = token.split_once('.')?;
    Some((at.parse().ok()?, id))
}
