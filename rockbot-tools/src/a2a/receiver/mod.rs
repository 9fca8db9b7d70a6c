//! The side of an agent that does tasks of other agents: [`A2aReceiver`].

mod accept;
mod answer;
mod host;
mod inbound;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::config::Config;
use rockbot_core::context::CancellationToken;
use rockbot_core::messaging::{
    Bus, BusError, Delivery, Disposition, MessageSubscriberExt as _, SubscribeOptions, Subscription,
};
use rockbot_core::service::{AgentCard, AgentSkill};
use rockbot_core::subsystem::{Declarations, PartCost, Parts, Running, RunningTask, Subsystem};
use rockbot_core::tool::{ToolRegistry, ToolSelector};
use rockbot_core::turn::TurnRunner;
use rockbot_core::{BoxError, Principal};
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::topics::Topics;
use crate::a2a_callers::chains::Chains;
use crate::a2a_callers::{CallerTrust, is_agent_name};
use accept::Tasks;
use answer::Cancellations;
use host::Receiver;
use inbound::{InboundTask, InboundTasks};
use settings::{ReceiverLimits, ReceiverOptions};

/// Interval of announcements.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(120);

/// Number of tasks and cancellations that are taken concurrently.
const CONCURRENCY: usize = 8;

/// The tasks of other agents on the bus, each done by a turn of this host's agent.
///
/// The agent announces its card at the start and every two minutes, and takes leave at the end. A
/// task of an allowed caller becomes a turn, whose end is the answer: a result, or an error with
/// its code. The turn and its answer survive a restart. A cancellation of the task cancels the
/// turn. Statuses say that the work has begun, and that it waits for an approval.
///
/// Callers are known by the name that they send under, so the bus must authenticate its programs;
/// an unauthenticated channel is refused. Each caller is a principal of its own, `agent:{name}`:
/// it sees no memory and no conversation of other principals. Its words are untrusted, and so is
/// the turn. The operator is asked for approvals, with the agents through which the task came,
/// and decides about them. A task that came through this agent already, or through too many
/// agents, is refused. Turns of tasks have the [tools](Self::tools) that are named, and none by
/// default; [`trust`](Self::trust) narrows them for a caller. They have no tools whose results come
/// later, and may call further agents only if the host says so; such a call waits for its answer.
///
/// | setting (`A2AReceiver`) | default |
/// |---|---|
/// | `AllowedCallers`: list of `name`, `name:skill` or `*`; required | |
/// | `Skills`: list of sections with `Id`, `Name`, `Description`; without any, all skills are taken | none |
/// | `Tools`: list of tools, `source:SOURCE` or `group:GROUP` of all tasks | none |
/// | `Trust`: section of caller, or `*`, and `observe`, `learn`, `propose` or `act` | `act` |
/// | `Description`, `Version`: of the card | none |
/// | `MaxTaskMinutes`: time of a task | 30 |
/// | `MaxTasks`, `MaxTasksOfCaller`: at once | 64, 8 |
/// | `MayCallAgents`: `true` if tasks may be handed on | `false` |
/// | `Operator`: principal that is asked for approvals | `local` |
///
/// ```
/// use rockbot_core::service::AgentSkill;
/// use rockbot_core::subsystem::Subsystem as _;
/// use rockbot_tools::a2a::A2aReceiver;
///
/// let receiver = A2aReceiver::new() // for `AgentHostBuilder::add`
///     .with_description("Researches the web.")
///     .with_skill(AgentSkill::new("research").with_description("Answers a question with sources."))
///     .allow("planner");
/// assert_eq!(receiver.name(), "a2a-receiver");
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct A2aReceiver {
    options: ReceiverOptions,
    /// The first problem with a caller, for the host's `build` to report.
    problem: Option<String>,
    plan: Option<(Topics, ReceiverLimits)>,
    tasks: InboundTasks,
}

impl A2aReceiver {
    /// Creates a receiver without callers of its own. The settings may name some.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows a caller: `name` with all skills, `name:skill` with one, `*` for every caller. Call
    /// it once for each.
    pub fn allow(mut self, caller: impl AsRef<str>) -> Self {
        if let Err(problem) = self.options.callers.allow(caller.as_ref()) {
            self.problem.get_or_insert(problem);
        }
        self
    }

    /// Allows tools to the tasks of all callers: a name, or a [`ToolSelector`]. Default: the
    /// setting `A2AReceiver.Tools`, else none.
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Into<ToolSelector>>) -> Self {
        self.options.tools.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Sets the trust in a caller, or in all others with `*`. Default: the section
    /// `A2AReceiver.Trust`, else `Act`.
    pub fn trust(mut self, caller: impl AsRef<str>, trust: CallerTrust) -> Self {
        self.options.trust.insert(caller.as_ref().to_ascii_lowercase(), trust);
        self
    }

    /// Sets the purpose of the agent on its card. Default: the setting `A2AReceiver.Description`.
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.options.description = Some(description.into());
        self
    }

    /// Adds a skill to the card. If the card has skills, tasks for other skills are refused.
    pub fn with_skill(mut self, skill: AgentSkill) -> Self {
        self.options.skills.push(skill);
        self
    }

    /// Sets the maximum time of a task. Default 30 minutes, or the setting
    /// `A2AReceiver.MaxTaskMinutes`.
    pub fn with_max_time(mut self, max_time: Duration) -> Self {
        self.options.max_time = Some(max_time);
        self
    }

    /// Sets the maximum number of tasks at once, of all callers and of each caller. Default 64 and
    /// 8, or the settings.
    pub fn with_max_tasks(mut self, of_all: usize, of_caller: usize) -> Self {
        (self.options.max_tasks, self.options.max_of_caller) = (Some(of_all), Some(of_caller));
        self
    }

    /// Lets tasks be handed on to further agents. Default: the setting `A2AReceiver.MayCallAgents`,
    /// else no.
    pub fn may_call_agents(mut self) -> Self {
        self.options.may_call_agents = Some(true);
        self
    }

    /// Sets the principal that is asked for approvals, and decides. Default: the setting
    /// `A2AReceiver.Operator`, else `local`.
    pub fn with_operator(mut self, operator: impl Into<Principal>) -> Self {
        self.options.operator = Some(operator.into());
        self
    }

    /// Returns the card of the agent of this name.
    fn card(&self, name: &str) -> AgentCard {
        let mut card = AgentCard::new(name).with_skills(self.options.skills.clone());
        (card.description, card.version) = (self.options.description.clone(), self.options.version.clone());
        card
    }
}

#[async_trait]
impl Subsystem for A2aReceiver {
    fn name(&self) -> &str {
        "a2a-receiver"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        if let Some(problem) = self.problem.take() {
            return Err(problem.into());
        }
        let parts = declarations.parts();
        let config = parts.get::<Config>().unwrap_or_default();
        let limits = self.options.complete(&config)?;
        let name = parts.identity().name();
        if !is_agent_name(name) {
            return Err(format!(
                "an agent that takes tasks has a name of 1 to 64 letters, digits, `-` and `_`, which is part of topics: \
                 `{name}` is none"
            )
            .into());
        }
        self.tasks = InboundTasks::open(parts.data_dir())?;
        self.plan = Some((Topics::read(&config)?, limits));
        declarations.require::<dyn Bus>("give the host a bus with `.bus(…)` or `.shared_bus(…)`: tasks come over it");
        // The server of the same host has the same chains.
        declarations.provide_default::<Chains>(|_| Ok(Arc::default()));
        let cost = PartCost::on("a2a-receiver").with_switch("leave out `.add(A2aReceiver)`");
        declarations.cost(cost.with_model_calls("those of each task of another agent"));
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let card = self.card(parts.identity().name());
        let (topics, limits) = self.plan.ok_or("a subsystem declares before it starts")?;
        let turns = parts
            .get::<dyn TurnRunner>()
            .ok_or("the host does not run turns for its parts")?;
        let (begun, tasks) = mpsc::channel(limits.max_tasks);
        let earlier: Vec<_> = self.tasks.all().cloned().collect();
        let receiver = Arc::new(Receiver {
            identity: parts.identity().clone(),
            clock: parts.clock().clone(),
            bus: parts.require::<dyn Bus>()?,
            turns,
            topics,
            card,
            callers: self.options.callers,
            limits,
            chains: parts.require::<Chains>()?,
            tools: parts.require::<dyn ToolRegistry>()?,
            tasks: Mutex::new(self.tasks),
            begun,
            wanted: Notify::new(),
        });
        for task in &earlier {
            receiver
                .chains
                .set(task.principal(), task.session(), task.chain.clone());
        }
        let subscriptions = listen(&receiver).await?;
        let (task, running) = RunningTask::new(|stop| run(receiver, earlier, tasks, stop));
        tokio::spawn(running);
        Ok(Box::new(RunningReceiver {
            task,
            _subscriptions: subscriptions,
        }))
    }
}

/// The handle of the running subsystem.
struct RunningReceiver {
    task: RunningTask,
    _subscriptions: [Subscription; 3],
}

#[async_trait]
impl Running for RunningReceiver {
    async fn stop(&self) {
        self.task.stop().await;
    }

    fn check(&self) -> Result<(), String> {
        self.task.check()
    }
}

/// Opens the subscriptions of a receiver. They end when they are dropped. Tasks wait in a queue
/// while no process runs.
async fn listen(receiver: &Arc<Receiver>) -> Result<[Subscription; 3], BusError> {
    let identity = &receiver.identity;
    let bus = &receiver.bus;
    let task = receiver.topics.task_of(identity.name());
    let cancel = receiver.topics.cancel_of(identity.name());
    let own = |topic: &str| format!("{}.{}", identity.subscription_name(topic), identity.instance_id());
    let kept = SubscribeOptions::new().with_concurrency(CONCURRENCY);
    let each = || SubscribeOptions::new().ephemeral().with_concurrency(CONCURRENCY);
    let asked = receiver.clone();
    let wanted = move |_: Delivery| {
        asked.wanted.notify_one();
        async { Disposition::Ack }
    };
    Ok([
        bus.on_with(&task, &identity.subscription_name(&task), kept, Tasks(receiver.clone()))
            .await?,
        bus.on_with(&cancel, &own(&cancel), each(), Cancellations(receiver.clone()))
            .await?,
        bus.on_with(
            Topics::wanted(),
            &own(Topics::wanted()),
            SubscribeOptions::new().ephemeral(),
            wanted,
        )
        .await?,
    ])
}

/// Announces the agent and answers tasks until `stop` is cancelled. The next process answers the
/// tasks that have not ended then.
async fn run(
    receiver: Arc<Receiver>,
    earlier: Vec<InboundTask>,
    mut begun: mpsc::Receiver<InboundTask>,
    stop: CancellationToken,
) {
    let mut answering: JoinSet<()> = earlier.into_iter().map(|task| receiver.clone().finish(task)).collect();
    let mut announcing = interval(ANNOUNCE_INTERVAL);
    announcing.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = announcing.tick() => receiver.announce().await,
            () = receiver.wanted.notified() => receiver.announce().await,
            Some(task) = begun.recv() => drop(answering.spawn(receiver.clone().finish(task))),
            Some(_) = answering.join_next() => {}
        }
    }
    receiver.leave().await;
}
