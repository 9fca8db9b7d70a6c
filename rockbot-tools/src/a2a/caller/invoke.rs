//! The tool that hands a task to another agent.

use std::time::Duration;

use rockbot_core::content::Content;
use rockbot_core::messaging::{MessageEnvelope, Reach, headers};
use rockbot_core::service::AgentCard;
use rockbot_core::store::Namespace;
use rockbot_core::tool::{ToolError, ToolState};
use rockbot_core::{CallContext, Digest, TurnId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::chains;
use super::super::directory::find_skill;
use super::super::wire::{AgentMessage, AgentTaskRequest};
use super::CallerState;
use super::host::Caller;
use super::settings::minutes_long;
use super::tasks::{MAX_TASKS, PendingTask};
use super::tell::content_of;

/// Maximum number of answers that lead to further tasks, one after the other.
const MAX_ROUNDS: u32 = 8;

/// Maximum number of times that a conversation asks one question in the same words.
const MAX_REPETITIONS: usize = 3;

/// Maximum time of a task, in minutes.
pub(super) const MAX_MINUTES: u32 = 24 * 60;

/// Maximum length of message and data together, in bytes.
const MAX_TASK: usize = 64 << 10;

/// Maximum length of the id of a conversation, in bytes.
const MAX_CONTEXT: usize = 128;

/// Beginnings of the sessions of turns that are no conversation: their calls wait for the answer.
const AWAITING: [&str; 1] = ["wisp/"];

/// Hands a task to another agent. Its answer comes later as a message of this conversation,
/// unless the result of this call is the answer already.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct InvokeAgent {
    /// The name of the agent, as list_known_agents or search_known_services shows it.
    agent_name: String,
    /// The id of one of its skills.
    skill: String,
    /// The task, complete: the agent does not see this conversation.
    message: String,
    /// Facts for the task as a JSON object, if the skill asks for them.
    #[serde(default)]
    data: Option<Map<String, Value>>,
    /// Time limit in minutes, 5 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_MINUTES))]
    timeout_minutes: Option<u32>,
    /// The id of a conversation with the agent, to answer a question of it. Leave it out for a new
    /// task.
    #[serde(default)]
    context_id: Option<String>,
}

pub(super) async fn invoke(
    state: ToolState<CallerState>,
    args: InvokeAgent,
    cx: CallContext,
) -> Result<Content, ToolError> {
    check(&args, &cx)?;
    let caller = state.caller()?;
    let turn = cx
        .turn()
        .ok_or_else(|| ToolError::execution_failed("only a turn calls agents"))?;
    let card = caller.agent(&args.agent_name, &args.skill)?;
    let inbound = caller
        .chains
        .as_ref()
        .and_then(|chains| chains.of(cx.principal(), cx.session()));
    let is_awaited = inbound.is_some() || AWAITING.iter().any(|begin| cx.session().as_str().starts_with(begin));
    let mut chain = inbound.unwrap_or_default();
    chain.push(caller.identity.name().to_string());
    chains::check(&chain, &card.agent_name).map_err(ToolError::execution_failed)?;
    let limit = args.timeout_minutes.map_or(state.timeout(), minutes_long);
    let limit = cx
        .time_left()
        .filter(|_| is_awaited)
        .map_or(limit, |left| left.min(limit));
    let task = task(caller, &args, &card, &cx, (turn, limit, is_awaited));
    let task = caller.track(task).await?;
    if !task.is_sent {
        caller.send(&task, &args, &chain, &cx, limit).await?;
    }
    if is_awaited {
        return caller.answer_of(&task, &cx).await;
    }
    Ok(Content::from(format!(
        "The agent `{}` has the task, `{}`. Its answer comes later as a message of this conversation: tell the user that \
         you asked, and do not ask again. cancel_agent_task ends it.",
        task.agent, task.id
    )))
}

fn check(args: &InvokeAgent, cx: &CallContext) -> Result<(), ToolError> {
    let data = args
        .data
        .as_ref()
        .map_or(0, |data| Value::from(data.clone()).to_string().len());
    let len = args.message.len() + data;
    let context = args.context_id.as_deref().unwrap_or("-");
    let problem = if args.message.trim().is_empty() {
        "`message` is empty: describe the task".to_owned()
    } else if len > MAX_TASK {
        format!("the task has {len} bytes, of {MAX_TASK}: leave out what the agent does not need")
    } else if !(1..=MAX_MINUTES).contains(&args.timeout_minutes.unwrap_or(1)) {
        format!("`timeout_minutes` is between 1 and {MAX_MINUTES}")
    } else if context.is_empty() || context.len() > MAX_CONTEXT || context.contains(char::is_control) {
        format!("`context_id` is one that a message named, of 1 to {MAX_CONTEXT} bytes")
    } else if cx.depth() >= MAX_ROUNDS {
        format!("answers led to {MAX_ROUNDS} tasks one after the other already: tell the user what you have")
    } else {
        return Ok(());
    };
    Err(ToolError::invalid_arguments(problem))
}

fn task(
    caller: &Caller,
    args: &InvokeAgent,
    card: &AgentCard,
    cx: &CallContext,
    (turn, limit, is_awaited): (&TurnId, Duration, bool),
) -> PendingTask {
    let data = args.data.as_ref().map(|data| Value::from(data.clone()).to_string());
    let agent = card.agent_name.as_str();
    let context = args.context_id.as_deref().unwrap_or_default();
    let question = [
        agent,
        &args.skill,
        &args.message,
        data.as_deref().unwrap_or_default(),
        context,
    ];
    let question = Digest::of(question).short();
    let asked_at = caller.clock.now();
    // The id as the agent spells it.
    let skill = find_skill(card, &args.skill).map_or(&args.skill, |skill| &skill.id);
    PendingTask {
        agent: agent.to_owned(),
        skill: skill.clone(),
        context: context.to_owned(),
        id: String::new(),
        question,
        principal: cx.principal().clone(),
        session: cx.session().clone(),
        namespace: Namespace::of(cx).path().clone(),
        turn: turn.clone(),
        depth: cx.depth(),
        trust: cx.content_trust(),
        label: cx.label(),
        asked_at,
        deadline: asked_at.after(limit),
        is_sent: false,
        is_awaited,
        statuses: 0,
        end: None,
    }
}

impl Caller {
    /// Returns the card of the agent that has this skill.
    fn agent(&self, name: &str, skill: &str) -> Result<AgentCard, ToolError> {
        let name = name.trim();
        let card = self.directory.known(name)?;
        if card.url.is_some() {
            return Err(ToolError::execution_failed(format!(
                "the agent `{name}` is reached over HTTP, and this tool reaches those on the bus"
            )));
        }
        if !card.skills.is_empty() && find_skill(&card, skill).is_none() {
            let ids: Vec<_> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
            return Err(ToolError::invalid_arguments(format!(
                "the agent `{name}` has no skill `{skill}`. It has: {}",
                ids.join(", ")
            )));
        }
        Ok(card)
    }

    /// Tracks a task before it is sent, so that no answer can come too early. Returns the task with
    /// its id. A call that is repeated after a crash gets the task that is tracked already.
    async fn track(&self, mut task: PendingTask) -> Result<PendingTask, ToolError> {
        let mut tasks = self.tasks.lock().await;
        let times = tasks.times_asked(&task.session, &task.question);
        // The id follows from the turn and the question, so a call that is repeated after a crash
        // gets the same task.
        task.id = Digest::of([task.turn.as_str(), &task.question, &times.to_string()]).short();
        if let Some(known) = tasks.get(&task.id) {
            return Ok(known.clone());
        }
        if task.context.is_empty() {
            task.context.clone_from(&task.id);
        }
        let same = tasks
            .open_tasks()
            .find(|other| other.session == task.session && other.question == task.question);
        let problem = if let Some(same) = same {
            format!(
                "the agent works on this task already, as `{}`: wait for its answer",
                same.id
            )
        } else if times >= MAX_REPETITIONS {
            format!(
                "this conversation has asked the same in the same words {MAX_REPETITIONS} times: tell the user what came \
                 of it"
            )
        } else if tasks.open_tasks().count() >= MAX_TASKS {
            format!("{MAX_TASKS} tasks are with other agents already: wait for answers, or cancel some of them")
        } else {
            let added = tasks.add(task.clone());
            added.map_err(|error| ToolError::execution_failed("the task cannot be kept").with_source(error))?;
            self.changed.send_replace(());
            return Ok(task);
        };
        Err(ToolError::execution_failed(problem))
    }

    /// Publishes a tracked task. If that fails, the task is no longer tracked.
    async fn send(
        &self,
        task: &PendingTask,
        args: &InvokeAgent,
        chain: &[String],
        cx: &CallContext,
        limit: Duration,
    ) -> Result<(), ToolError> {
        let mut message = AgentMessage::new("user").with_text(args.message.trim());
        if let Some(data) = &args.data {
            message = message.with_data(&Value::from(data.clone()));
        }
        let request = AgentTaskRequest {
            task_id: task.id.clone(),
            context_id: Some(task.context.clone()),
            skill: task.skill.clone(),
            message,
        };
        let change = |envelope: MessageEnvelope| {
            let mut envelope = envelope
                // The same task is the same message, so that receivers deduplicate it.
                .with_id(task.id.as_str())
                .with_destination(task.agent.as_str())
                .with_header(headers::TIMEOUT_MS, limit.as_millis().to_string())
                .with_header(chains::HEADER, chain.join(","));
            if let Some(trace) = cx.trace() {
                headers::set_trace(trace, &mut envelope.headers);
            }
            envelope
        };
        let topic = self.topics.task_of(&task.agent);
        let sent = self.publish(&topic, &task.id, &request, change).await;
        let problem = match sent {
            Ok(Reach::NoSubscribers) => ToolError::execution_failed(format!(
                "the agent `{}` does not run: nothing takes its tasks",
                task.agent
            )),
            Ok(Reach::Subscribers | Reach::Unknown) => {
                self.tasks.lock().await.sent(&task.id);
                return Ok(());
            }
            Err(error) => ToolError::execution_failed("the task could not be sent").with_source(error),
        };
        self.tasks.lock().await.remove(&task.id);
        self.changed.send_replace(());
        Err(problem)
    }

    /// Waits for the end of a task. If the call is cancelled, the task is cancelled, too.
    async fn answer_of(&self, task: &PendingTask, cx: &CallContext) -> Result<Content, ToolError> {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            loop {
                changed.mark_unchanged();
                let mut tasks = self.tasks.lock().await;
                match tasks.get(&task.id).map(|task| task.end.clone()) {
                    Some(Some(end)) => {
                        tasks.remove(&task.id);
                        return Ok(content_of(&task.agent, &end));
                    }
                    Some(None) => {}
                    None => return Err(ToolError::execution_failed("the task was cancelled")),
                }
                drop(tasks);
                if changed.changed().await.is_err() {
                    return Err(ToolError::execution_failed("the host is stopping"));
                }
            }
        };
        match cx.cancellation().run_until_cancelled(waiting).await {
            Some(answer) => answer,
            None => {
                self.drop_task(task).await;
                Err(ToolError::execution_failed("the task was cancelled"))
            }
        }
    }
}
