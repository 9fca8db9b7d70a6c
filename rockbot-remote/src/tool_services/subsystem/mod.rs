//! The subsystem that gives an agent the tools of tool services: [`ToolServices`].

mod live;
mod settings;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::config::Config;
use rockbot_core::messaging::Bus;
use rockbot_core::subsystem::{Declarations, PartCost, Parts, Running, Subsystem};
use rockbot_core::tool::ToolRegistry;
use rockbot_core::{BoxError, IdSource, RandomIds, ToolName};

use super::client::{CallLimits, ServiceClients};
use live::{LiveTools, Sources};
pub use settings::ToolServiceSettings;
use watch::Watching;

/// The tools of tool services, as descriptors describe them: in files, in a folder that is
/// watched, and announced on the bus.
///
/// Descriptors are read at start, and again whenever they change: tools appear, change and vanish
/// in the running agent. A running turn keeps the tools that it has seen. A descriptor with a
/// defect is reported in the log with its place and field, keeps its last good form if it had
/// one, and concerns no other. A tool whose name is taken by another part of the host is
/// reported, too.
///
/// Calls are mutating unless the descriptor's `effect` is `pure` or `idempotent`. The arguments
/// of the model are passed through as they are, and the service validates them. Results are
/// outside text.
///
/// It needs a bus: the host's, or [its own](Self::bus), such as a bus that shares a broker with
/// TrustGraph. Settings are in the section `ToolServices` ([`ToolServiceSettings`]); values set
/// in code take precedence.
///
/// ```
/// use rockbot_core::subsystem::Subsystem as _;
/// use rockbot_remote::tool_services::ToolServices;
///
/// let tools = ToolServices::new().folder("descriptors").announced(); // for `AgentHostBuilder::add`
/// assert_eq!(tools.name(), "tool services");
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct ToolServices {
    folder: Option<PathBuf>,
    files: Vec<PathBuf>,
    bus: Option<Arc<dyn Bus>>,
    announced: Option<bool>,
    poll_interval: Option<Duration>,
    time_limit: Option<Duration>,
    message_time_limit: Option<Duration>,
    max_result_bytes: Option<usize>,
    plan: Option<Plan>,
}

/// The outcome of the declarations: the values set in code, completed by the settings.
#[derive(Debug)]
struct Plan {
    sources: Sources,
    announced: bool,
    poll_interval: Duration,
    limits: CallLimits,
}

impl ToolServices {
    /// Creates the subsystem without descriptors, unless the settings name a folder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches a [folder of descriptors](super::DescriptorFolder). It must exist when the host is
    /// built. Default: the setting `ToolServices.Folder`.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Watches a file with a descriptor; call it once for each file. A descriptor with a `type` is a
    /// tool.
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.push(file.into());
        self
    }

    /// Sets the bus that services take requests on. Default: the host's.
    pub fn bus(mut self, bus: Arc<dyn Bus>) -> Self {
        self.bus = Some(bus);
        self
    }

    /// Takes in the tools that running services [announce](super::ToolServiceServer::announces).
    /// Every program that can publish on the bus can then give the agent tools; their descriptions
    /// are text of others. Default: the setting `ToolServices.Announced`, else no.
    pub fn announced(mut self) -> Self {
        self.announced = Some(true);
        self
    }

    /// Sets the interval between two looks at the files. Default: the setting
    /// `ToolServices.PollInterval`, else 5 seconds.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = Some(interval);
        self
    }

    /// Sets the maximum time of a call. Default: the setting `ToolServices.TimeLimit`, else 30 minutes.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Sets the maximum time until the first message of a reply, and between two of them. Default:
    /// the setting `ToolServices.MessageTimeLimit`, else 10 minutes.
    pub fn message_time_limit(mut self, limit: Duration) -> Self {
        self.message_time_limit = Some(limit);
        self
    }

    /// Sets the maximum size of a whole result in bytes. Default: the setting
    /// `ToolServices.MaxResultBytes`, else 1 MiB.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_result_bytes = Some(bytes);
        self
    }

    /// Completes the values set in code by the settings.
    fn plan(&self, parts: &Parts) -> Result<Plan, BoxError> {
        let config = parts.get::<Config>().unwrap_or_default();
        let settings = ToolServiceSettings::from_config(&config)?;
        let below_data = |folder: PathBuf| match parts.data_dir() {
            Some(data) => data.join(folder),
            None => folder,
        };
        let folder = self.folder.clone().or_else(|| settings.folder.map(below_data));
        Ok(Plan {
            sources: Sources {
                folder,
                files: self.files.clone(),
            },
            announced: self.announced.unwrap_or(settings.announced),
            poll_interval: self.poll_interval.unwrap_or(settings.poll_interval),
            limits: CallLimits {
                message_time: self.message_time_limit.unwrap_or(settings.message_time_limit),
                total_time: self.time_limit.unwrap_or(settings.time_limit),
                max_bytes: self.max_result_bytes.unwrap_or(settings.max_result_bytes),
            },
        })
    }
}

#[async_trait]
impl Subsystem for ToolServices {
    fn name(&self) -> &str {
        "tool services"
    }

    fn declare(&mut self, needs: &mut Declarations) -> Result<(), BoxError> {
        let plan = self.plan(needs.parts())?;
        if self.bus.is_none() {
            needs.require::<dyn Bus>("give the host a bus, or `ToolServices::bus` one of its own: calls go over it");
        }
        let mut tools = LiveTools::new(plan.sources.clone());
        tools.read()?;
        let names = tools.derive().tools.into_iter();
        let names = names.map(|tool| ToolName::from(tool.descriptor.name));
        needs.cost(PartCost::on("tool services").with_tools(names));
        self.plan = Some(plan);
        Ok(())
    }

    async fn start(mut self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let plan = self.plan.take().expect("a subsystem declares before it starts");
        let bus = match self.bus {
            Some(bus) => bus,
            None => Arc::new(parts.require::<dyn Bus>()?),
        };
        let ids = parts.get::<dyn IdSource>().unwrap_or_else(|| Arc::new(RandomIds));
        let watching = Watching {
            tools: LiveTools::new(plan.sources),
            registry: parts.require::<dyn ToolRegistry>()?,
            clients: ServiceClients::new(Arc::clone(&bus), ids),
            limits: plan.limits,
            poll_interval: plan.poll_interval,
        };
        Ok(Box::new(watching.start(plan.announced.then_some(bus)).await?))
    }
}
