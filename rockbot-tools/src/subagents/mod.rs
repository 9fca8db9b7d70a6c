//! Subagents: pieces of work that a model gives to itself, each as a turn in the background.
//!
//! Subagents (`rockbot-tools/src/subagents`) are four tools on that contract, which depend on the
//! core alone. A subagent is a started turn with the session `subagent-ID`, the namespace
//! `subagent/ID`, the spawner's tools except the tools that begin further work, and the spawner's
//! session as its recipient; the list of subagents is the list of live turns, so it is the same
//! after a restart. `report_progress` is shown to subagents alone, by a context item that
//! activates its group.

mod briefing;
mod inputs;
mod manage;
mod report;
mod spawn;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::config::Config;
use rockbot_core::store::WorkingMemory;
use rockbot_core::subsystem::{Declarations, Idle, PartCost, Parts, Running, Subsystem};
use rockbot_core::tool::{Tool, ToolError, ToolGroup, stateful_tool};
use rockbot_core::turn::{LiveTurnInfo, TurnQuery, TurnRunner};
use rockbot_core::{BoxError, Principal};
use tokio::sync::Mutex;

use briefing::Briefing;

/// Name of the group of the tools that a subagent does not have.
const GROUP: &str = "subagents";

/// Name of the group of the tools that subagents alone have.
const CHILD_GROUP: &str = "subagent";

/// Beginning of the namespaces of subagents in working memory.
const NAMESPACE: &str = "subagent";

/// Beginning of the sessions of subagents.
const SESSION: &str = "subagent-";

/// Default maximum number of subagents of one principal at once.
const MAX_CONCURRENT: usize = 3;

/// Default time of a subagent, in minutes.
const TIMEOUT_MINUTES: u32 = 10;

/// Tools that give pieces of a model's work to subagents: `spawn_subagent`, `list_subagents`,
/// `cancel_subagent`.
///
/// A subagent is a turn of its own, with its own conversation, the tier that fits its task, and
/// the tools of the turn that spawns it, except the tools for delegation, scheduling and other
/// agents. `spawn_subagent` returns at once, and the turn that called it may end: the result or
/// the error comes as one message of the same conversation, also after a restart of the host, and
/// results that come together are told in one answer. Longer findings stand in working memory
/// under `subagent/{id}`, which the conversation reads. A subagent tells the user how far it is
/// with `report_progress`.
///
/// | setting (`Subagents`) | default |
/// |---|---|
/// | `MaxConcurrentSubagents`: of one principal at once | 3 |
/// | `DefaultTimeoutMinutes`: time of a subagent whose spawner names none | 10 |
///
/// ```
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_tools::subagents::Subagents;
///
/// // A host calls this for `.add(Subagents::new())`.
/// let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// let mut declarations = Declarations::new(parts);
/// Subagents::new().with_max_concurrent(5).declare(&mut declarations)?;
/// let tools = declarations.merge().tools;
/// let names: Vec<_> = tools.iter().map(|tool| tool.registration.name.as_str()).collect();
/// assert_eq!(names, ["spawn_subagent", "list_subagents", "cancel_subagent", "report_progress"]);
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Subagents {
    max_concurrent: Option<usize>,
    timeout: Option<Duration>,
    state: SubagentState,
}

/// The state that the tools share.
#[derive(Debug, Clone, Default)]
struct SubagentState {
    limits: Limits,
    /// Set when the host starts.
    parts: Arc<OnceLock<HostParts>>,
    /// Held from the count of running subagents to the start of one more.
    spawning: Arc<Mutex<()>>,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    max_concurrent: usize,
    timeout: Duration,
}

#[derive(Debug)]
struct HostParts {
    turns: Arc<dyn TurnRunner>,
    memory: Option<Arc<dyn WorkingMemory>>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_concurrent: MAX_CONCURRENT,
            timeout: minutes_long(TIMEOUT_MINUTES),
        }
    }
}

impl Subagents {
    /// Creates the tools with the limits of the settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of subagents of one principal at once. Default 3, or the setting
    /// `Subagents.MaxConcurrentSubagents`.
    pub fn with_max_concurrent(mut self, max_concurrent: usize) -> Self {
        self.max_concurrent = Some(max_concurrent);
        self
    }

    /// Sets the time of a subagent whose spawner names none. Default 10 minutes, or the setting
    /// `Subagents.DefaultTimeoutMinutes`.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn limits(&self, config: &Config) -> Result<Limits, BoxError> {
        let section = config.section("Subagents")?;
        let max_concurrent = section.get_or("MaxConcurrentSubagents", MAX_CONCURRENT)?;
        let minutes = section.get_or("DefaultTimeoutMinutes", TIMEOUT_MINUTES)?;
        let limits = Limits {
            max_concurrent: self.max_concurrent.unwrap_or(max_concurrent),
            timeout: self.timeout.unwrap_or_else(|| minutes_long(minutes)),
        };
        if limits.max_concurrent == 0 || limits.timeout.is_zero() {
            return Err(
                "`Subagents.MaxConcurrentSubagents` and `Subagents.DefaultTimeoutMinutes` are at least 1".into(),
            );
        }
        Ok(limits)
    }
}

#[async_trait]
impl Subsystem for Subagents {
    fn name(&self) -> &str {
        "subagents"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        self.state.limits = self.limits(&config)?;
        let tools = tools(&self.state);
        let names = tools.iter().map(|tool| tool.registration.name.clone());
        let cost = PartCost::on("subagents").with_switch("leave out `.add(Subagents)`");
        declarations.cost(
            cost.with_tools(names)
                .with_model_calls("those of each subagent, and one that tells its result"),
        );
        tools.into_iter().for_each(|tool| declarations.tool(tool));
        declarations.context_source(Briefing);
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let turns = parts
            .get::<dyn TurnRunner>()
            .ok_or("the host does not run turns for its parts")?;
        let memory = parts.get::<dyn WorkingMemory>();
        // A subsystem starts once.
        let _ = self.state.parts.set(HostParts { turns, memory });
        Ok(Box::new(Idle))
    }
}

fn tools(state: &SubagentState) -> [Tool; 4] {
    let group = ToolGroup::new(GROUP, "give long work to subagents, which work in the background")
        .with_guide(include_str!("guides/subagents.md"));
    let spawn = stateful_tool("spawn_subagent", state.clone(), spawn::spawn).on_demand(&group);
    let list = stateful_tool("list_subagents", state.clone(), manage::list)
        .pure()
        .on_demand(&group);
    let cancel = stateful_tool("cancel_subagent", state.clone(), manage::cancel)
        .idempotent()
        .on_demand(&group);
    let report = stateful_tool("report_progress", state.clone(), report::report).when_needed(CHILD_GROUP);
    [spawn, list, cancel, report].map(|tool| tool.source("subagents").internal())
}

impl SubagentState {
    fn parts(&self) -> Result<&HostParts, ToolError> {
        let starting = || ToolError::execution_failed("the host is not started yet: call `AgentHost::start`");
        self.parts.get().ok_or_else(starting)
    }

    /// Returns the subagents of a principal that work or wait here, in order of their ids.
    fn running(&self, principal: &Principal) -> Result<Vec<LiveTurnInfo>, ToolError> {
        let query = TurnQuery::default().with_principal(principal.clone());
        let mut running = self.parts()?.turns.live(&query);
        running.retain(|live| id_of(live).is_some());
        running.sort_by(|a, b| a.request.session.cmp(&b.request.session));
        Ok(running)
    }
}

/// Returns the id of the subagent whose turn this is; `None` for other turns.
fn id_of(live: &LiveTurnInfo) -> Option<&str> {
    let id = live.request.session.as_str().strip_prefix(SESSION);
    id.filter(|_| live.request.recipient.is_some())
}

/// Returns the name of a subagent: its task in a few words.
fn name_of(live: &LiveTurnInfo) -> &str {
    live.request.recipient.as_ref().map_or("", |recipient| &recipient.name)
}

fn minutes_long(minutes: u32) -> Duration {
    Duration::from_secs(60 * u64::from(minutes))
}
