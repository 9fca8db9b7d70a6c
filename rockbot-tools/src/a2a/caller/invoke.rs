//! The tool that hands a task to another agent.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::content::{Content, MediaPart};
use rockbot_core::service::AgentCard;
use rockbot_core::store::Namespace;
use rockbot_core::tool::{ToolError, ToolState};
use rockbot_core::{CallContext, Digest, TurnId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::directory::find_skill;
use super::CallerState;
use super::host::Caller;
use super::settings::minutes_long;
use super::tasks::{MAX_TASKS, PendingTask, RemoteTask};
use super::tell::content_of;
use super::transport::{Handover, Transport};
use super::{ends, files};
use crate::a2a_callers::chains;

/// Maximum number of answers that lead to further tasks, one after the other.
const MAX_ROUNDS: u32 = 8;

/// Maximum number of times that a conversation asks one question in the same words.
const MAX_REPETITIONS: usize = 3;

/// Maximum time of a task, in minutes.
pub(super) const MAX_MINUTES: u32 = 24 * 60;

/// Maximum length of message and data together, in bytes.
const MAX_TASK: usize = 64 << 10;

/// Maximum length of the id of a conversation, in bytes.
const MAX_CONTEXT: usize = ends::MAX_CONTEXT;

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
    /// Files for the task, at most 8: paths of your own files, which are sent whole, or URLs, which
    /// the agent reads itself.
    #[serde(default)]
    #[schemars(length(max = files::MAX_FILES))]
    files: Option<Vec<String>>,
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
    let (card, way) = caller.agent(&args.agent_name, &args.skill).await?;
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
    let files = caller.files(args.files.as_deref().unwrap_or_default()).await?;
    let task = task(caller, (&args, &files), &card, &cx, (turn, limit, is_awaited));
    let task = caller.track(task).await?;
    if !task.is_sent {
        let handover = Handover {
            task: &task,
            message: args.message.trim(),
            data: args.data.as_ref(),
            files: &files,
            context: args.context_id.as_deref(),
            chain: &chain,
            limit,
            trace: cx.trace(),
        };
        caller.send(way, handover).await?;
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
    (args, files): (&InvokeAgent, &[MediaPart]),
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
        &files::identity(files),
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
        remote: card.url.clone().map(|url| RemoteTask {
            url,
            message: None,
            ids: None,
        }),
        end: None,
    }
}

impl Caller {
    /// Returns the card of the agent that has this skill, and the way to the agent.
    async fn agent(&self, name: &str, skill: &str) -> Result<(AgentCard, &Arc<dyn Transport>), ToolError> {
        let name = name.trim();
        let known = self.directory.known(name)?;
        let way = self.way(known.url.is_some())?;
        way.prepare(&known).await?;
        // The card may have been read meanwhile.
        let card = self.directory.known(name)?;
        if !card.skills.is_empty() && find_skill(&card, skill).is_none() {
            let ids: Vec<_> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
            return Err(ToolError::invalid_arguments(format!(
                "the agent `{name}` has no skill `{skill}`. It has: {}",
                ids.join(", ")
            )));
        }
        Ok((card, way))
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

    /// Hands a tracked task over. If that fails, the task is no longer tracked.
    async fn send(&self, way: &Arc<dyn Transport>, handover: Handover<'_>) -> Result<(), ToolError> {
        let id = &handover.task.id;
        let is_followed = handover.task.remote.is_some();
        let sent = way.hand_over(handover).await;
        let mut tasks = self.tasks.lock().await;
        match &sent {
            // The transport notes the moment itself.
            Ok(()) if is_followed => {}
            Ok(()) => tasks.sent(id),
            Err(_) => {
                tasks.remove(id);
                self.changed.send_replace(());
            }
        }
        sent
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
