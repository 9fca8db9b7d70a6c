//! Wisps: static lists of steps that run as journalled turns. Only the steps with a question ask
//! a model.
//!
//! Wisps and workers (`rockbot-tools/src/{wisps,workers}`). A wisp is a turn of the agent `wisp`,
//! whose chat client is an interpreter: it reads the definition and the results so far, and
//! answers with the next calls. So a step is journalled, guarded, approved and limited as any
//! call, a killed batch goes on, and a step that has ended never runs again. An answer of the low
//! tier is kept by a call of the agent's own tool, so that the conversation has all that a resume
//! needs. Workers are leaf turns on the low tier. Both share the budget of the call by
//! `Delegation`.

mod assignment;
mod breaker;
mod definition;
mod failure;
mod gateway;
mod keep;
mod limits;
mod log;
mod memory;
mod model;
mod output;
mod problem;
mod progress;
mod promote;
mod question;
mod raw;
mod raw_step;
mod record;
mod repair;
mod report;
mod runs;
mod schema;
mod spawn;
mod summary;
mod template;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use rockbot_core::chat::ChatClient;
use rockbot_core::config::Config;
use rockbot_core::store::{FeedbackStore, SkillStore, WorkingMemory};
use rockbot_core::subsystem::{AgentSpec, Declarations, Idle, PartCost, Parts, Running, Subsystem};
use rockbot_core::tool::{ToolGroup, ToolRegistry};
use rockbot_core::turn::TurnRunner;
use rockbot_core::{BoxError, Clock};

use crate::workers::batch::BatchRunner;
use log::ExecutionLog;
use model::WispModel;
pub use runs::WispRuns;

/// Name of the agent whose turns wisps are.
const AGENT: &str = "wisp";

/// Name of the group of the tool.
const GROUP: &str = "wisps";

/// Beginning of the namespaces of wisps in working memory, and of their sessions.
const NAMESPACE: &str = "wisp";

/// Default maximum number of wisps at once.
const MAX_CONCURRENT: usize = 10;

/// The tools `spawn_wisps`, by which a model runs fixed lists of steps side by side and waits for
/// all of them, `list_wisp_runs`, which shows what ran, and `save_wisp_in_skill`, which keeps a
/// wisp that succeeded twice in scheduled tasks in a skill, once a person approves.
///
/// A step calls a tool or asks a model of the low tier, and reads the results of the steps before
/// it. A wisp is a turn whose model is an interpreter: its calls are guarded, approved, limited
/// and journalled as those of a model. A wisp that a crash interrupts goes on where it was, and
/// so does the call that waits for it; no step that ended runs again.
///
/// Each wisp that has ended is a line of `wisp-executions.jsonl` in the data folder, which has
/// the newest 500 to 1 000 of them; `list_wisp_runs` shows them to the model, with the
/// definitions of successful ones, and [`WispRuns`] to a program. When a wisp succeeds whose definition was wrong before, a host
/// with a `FeedbackStore` records that as feedback.
///
/// | setting (`Wisps`) | default |
/// |---|---|
/// | `MaxConcurrentWisps`: in the whole host, at once | 10 |
///
/// ```
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_tools::wisps::Wisps;
///
/// // A host calls this for `.add(Wisps::new())`.
/// let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// let mut declarations = Declarations::new(parts);
/// Wisps::new().with_max_concurrent(20).declare(&mut declarations)?;
/// let merged = declarations.merge();
/// assert_eq!(merged.tools[0].registration.name, "spawn_wisps");
/// assert_eq!(merged.agents[0].0, "wisp");
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Wisps {
    max_concurrent: Option<usize>,
    /// Set when the host starts, as are the parts.
    batches: Arc<OnceLock<BatchRunner>>,
    parts: Arc<OnceLock<HostParts>>,
}

/// The parts of the host that the interpreter needs.
struct HostParts {
    chat: Arc<dyn ChatClient>,
    registry: Arc<dyn ToolRegistry>,
    memory: Option<Arc<dyn WorkingMemory>>,
    feedback: Option<Arc<dyn FeedbackStore>>,
    skills: Option<Arc<dyn SkillStore>>,
    clock: Arc<dyn Clock>,
    log: ExecutionLog,
}

impl Wisps {
    /// Creates the tool with the limit of the settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of wisps at once, in the whole host. Default 10, or the setting
    /// `Wisps.MaxConcurrentWisps`.
    pub fn with_max_concurrent(mut self, max_concurrent: usize) -> Self {
        self.max_concurrent = Some(max_concurrent);
        self
    }
}

#[async_trait]
impl Subsystem for Wisps {
    fn name(&self) -> &str {
        GROUP
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        let section = config.section("Wisps")?;
        let max = section.get_or("MaxConcurrentWisps", MAX_CONCURRENT)?;
        let max = self.max_concurrent.unwrap_or(max);
        if max == 0 {
            return Err("`Wisps.MaxConcurrentWisps` is at least 1".into());
        }
        self.max_concurrent = Some(max);
        let group = ToolGroup::new(GROUP, "run fixed lists of tool calls at once, cheaply")
            .with_guide(include_str!("guides/wisps.md"));
        let tools = [
            spawn::tool(&self.batches, &self.parts),
            runs::tool(&self.parts),
            promote::tool(&self.parts),
        ];
        let tools = tools.map(|tool| tool.source(GROUP).internal().on_demand(&group));
        let names = tools.iter().map(|tool| tool.registration.name.clone());
        let cost = PartCost::on(GROUP).with_switch("leave out `.add(Wisps)`");
        let cost = cost.with_tools(names);
        declarations.cost(cost.with_model_calls("those of the low tier that steps ask for, and one for each repair"));
        tools.into_iter().for_each(|tool| declarations.tool(tool));
        declarations.provide(Arc::new(WispRuns::new(&self.parts)));
        let interpreter = WispModel {
            parts: self.parts.clone(),
        };
        declarations.agent(AGENT, AgentSpec::new().program(interpreter).tool(keep::keep_tool()));
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let turns = parts.require::<dyn TurnRunner>()?;
        let batches = BatchRunner::new(turns, self.max_concurrent.unwrap_or(MAX_CONCURRENT));
        let started = HostParts {
            chat: parts.require::<dyn ChatClient>()?,
            registry: parts.require::<dyn ToolRegistry>()?,
            memory: parts.get::<dyn WorkingMemory>(),
            feedback: parts.get::<dyn FeedbackStore>(),
            skills: parts.get::<dyn SkillStore>(),
            clock: parts.clock().clone(),
            log: ExecutionLog::open(parts.data_dir())?,
        };
        // A subsystem starts once.
        let _ = (self.parts.set(started), self.batches.set(batches));
        Ok(Box::new(Idle))
    }
}

impl fmt::Debug for HostParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostParts").finish_non_exhaustive()
    }
}
