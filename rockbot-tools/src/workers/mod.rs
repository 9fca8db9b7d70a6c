//! Workers: small tasks that a model gives to cheap models, side by side, and waits for.

pub(crate) mod batch;
mod receipt;
mod spawn;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::store::WorkingMemory;
use rockbot_core::subsystem::{Declarations, Idle, PartCost, Parts, Running, Subsystem};
use rockbot_core::tool::{ToolGroup, ToolRegistry};
use rockbot_core::turn::TurnRunner;

use batch::BatchRunner;

/// Name of the group of the tool.
const GROUP: &str = "workers";

/// Beginning of the namespaces of workers in working memory, and of their sessions.
const NAMESPACE: &str = "worker";

/// Default maximum number of workers at once.
const MAX_CONCURRENT: usize = 3;

/// The tool `spawn_workers`, which runs small tasks for a model side by side and waits for all of
/// them.
///
/// A worker is a turn of its own on the low tier, with at most 12 model calls and the tools of
/// the turn that spawns it, except tools that begin further work or save memories and skills. The
/// answer has the result of each worker, failures first, up to 4 000 characters each. The whole
/// results stand in working memory under `worker/{id}`. Workers go on after a restart of the
/// host, and so does the call that waits for them.
///
/// | setting (`Workers`) | default |
/// |---|---|
/// | `MaxConcurrentWorkers`: in the whole host, at once | 3 |
///
/// ```
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_tools::workers::Workers;
///
/// // A host calls this for `.add(Workers::new())`.
/// let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// let mut declarations = Declarations::new(parts);
/// Workers::new().with_max_concurrent(5).declare(&mut declarations)?;
/// assert_eq!(declarations.merge().tools[0].registration.name, "spawn_workers");
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Workers {
    max_concurrent: Option<usize>,
    parts: Arc<OnceLock<HostParts>>,
}

#[derive(Debug)]
struct HostParts {
    batches: BatchRunner,
    registry: Arc<dyn ToolRegistry>,
    memory: Option<Arc<dyn WorkingMemory>>,
}

impl Workers {
    /// Creates the tool with the limit of the settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of workers at once, in the whole host. Default 3, or the setting
    /// `Workers.MaxConcurrentWorkers`.
    pub fn with_max_concurrent(mut self, max_concurrent: usize) -> Self {
        self.max_concurrent = Some(max_concurrent);
        self
    }
}

#[async_trait]
impl Subsystem for Workers {
    fn name(&self) -> &str {
        GROUP
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        let section = config.section("Workers")?;
        let max = section.get_or("MaxConcurrentWorkers", MAX_CONCURRENT)?;
        let max = self.max_concurrent.unwrap_or(max);
        if max == 0 {
            return Err("`Workers.MaxConcurrentWorkers` is at least 1".into());
        }
        self.max_concurrent = Some(max);
        let group = ToolGroup::new(
            GROUP,
            "give small tasks to cheap models, side by side, and wait for them",
        )
        .with_guide(include_str!("guides/workers.md"));
        let tool = spawn::tool(&self.parts).source(GROUP).internal().on_demand(&group);
        let cost = PartCost::on(GROUP).with_switch("leave out `.add(Workers)`");
        let cost = cost.with_tools([tool.registration.name.clone()]);
        declarations.cost(cost.with_model_calls("up to 12 of the low tier for each worker"));
        declarations.tool(tool);
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let turns = parts.require::<dyn TurnRunner>()?;
        let started = HostParts {
            batches: BatchRunner::new(turns, self.max_concurrent.unwrap_or(MAX_CONCURRENT)),
            registry: parts.require::<dyn ToolRegistry>()?,
            memory: parts.get::<dyn WorkingMemory>(),
        };
        // A subsystem starts once.
        let _ = self.parts.set(started);
        Ok(Box::new(Idle))
    }
}
