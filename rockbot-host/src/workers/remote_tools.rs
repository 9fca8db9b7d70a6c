//! The side of an agent: a subsystem that keeps the tools of workers in the registry.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::messaging::Bus;
use rockbot_core::subsystem::{Declarations, PartCost, Parts, Running, RunningTask, Stage, Subsystem};
use rockbot_core::tool::ToolRegistry;
use tokio::sync::mpsc;

use super::directory::Directory;
use super::options::Options;
use super::remote_worker::Caller;
use super::taken_tools::{TakenTools, listen};

/// Maximum time of a call of a remote tool, unless a setting states another time.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Maximum number of announcements that wait for the subsystem; the bus holds the others back.
const MAX_WAITING: usize = 64;

/// Maximum number of cancellations that wait to be published; further cancellations are dropped,
/// and their calls run to their end.
const MAX_ABANDONED: usize = 256;

/// A subsystem that gives the agent the tools of workers on its bus, for as long as the workers
/// live.
///
/// A worker is a host that [announces its tools](crate::AgentHostBuilder::announce_tools). Its
/// tools appear in the agent's registry when it announces them, change when it announces others,
/// and go when its last process has left or has been silent for its lease. A running turn keeps
/// the tools that its model has seen; a call of a tool that is gone fails with words that say so.
/// A tool of the agent's own takes precedence over a worker's tool of the same name.
///
/// The words of workers about their tools are text of other programs. This text is defused,
/// bounded (2 MiB for a worker, 16 MiB for all), and makes the turns that may see it untrusted,
/// unless the operator [vouches](Self::vouch_for) for the worker. Announcements over an
/// unauthenticated channel ([`Trust::Untrusted`](rockbot_core::context::Trust::Untrusted)) are
/// ignored.
///
/// The section `RemoteTools` of the configuration adds to the options in code: `Workers`,
/// `Vouched` and `Expected`, lists of names, and `TimeLimit`.
///
/// ```
/// use std::time::Duration;
/// use rockbot_host::workers::RemoteTools;
///
/// let tools = RemoteTools::new().only("calculator").expect("calculator").time_limit(Duration::from_secs(20));
/// # let _ = tools;
/// ```
#[derive(Debug)]
pub struct RemoteTools {
    options: Options,
}

impl Default for RemoteTools {
    fn default() -> Self {
        Self::new()
    }
}

impl RemoteTools {
    /// Creates the subsystem, which takes the tools of every worker on the bus.
    pub fn new() -> Self {
        Self {
            options: Options::default(),
        }
    }

    /// Takes the tools of the worker `name`, and of others that are named so. Default: the tools of
    /// all workers.
    #[must_use]
    pub fn only(mut self, name: impl Into<String>) -> Self {
        self.options.only.insert(name.into());
        self
    }

    /// Trusts the words of the worker `name` about its tools like the words of the program itself.
    /// Results of its tools stay text of others.
    #[must_use]
    pub fn vouch_for(mut self, name: impl Into<String>) -> Self {
        self.options.vouched.insert(name.into());
        self
    }

    /// Makes the host [ready](crate::AgentHost::readiness) only while the worker `name` is there.
    #[must_use]
    pub fn expect(mut self, name: impl Into<String>) -> Self {
        self.options.expected.insert(name.into());
        self
    }

    /// Sets the maximum time of a call. Default 60 seconds. A shorter limit that the worker states
    /// takes precedence.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.options.time_limit = Some(limit);
        self
    }
}

#[async_trait]
impl Subsystem for RemoteTools {
    fn name(&self) -> &str {
        "remote-tools"
    }

    fn stage(&self) -> Stage {
        Stage::Bridges
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        declarations.require::<dyn Bus>("give the host a bus with `.bus(…)` or `.shared_bus(…)`");
        declarations.cost(PartCost::on("remote-tools").with_model_calls("none"));
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        self.options.read(&config)
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let bus = parts.require::<dyn Bus>()?;
        let registry = parts.require::<dyn ToolRegistry>()?;
        let identity = parts.identity().clone();
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        let announcements = listen(&*bus, &identity, sender).await?;
        let (abandoned, given_up) = mpsc::channel(MAX_ABANDONED);
        let time_limit = self.options.time_limit.unwrap_or(TIME_LIMIT);
        let caller = Caller::new(bus.clone(), identity.name().clone(), abandoned, time_limit);
        let expected = self.options.expected.clone();
        let present = Arc::<Mutex<BTreeSet<String>>>::default();
        let taking = TakenTools {
            bus,
            registry,
            identity,
            caller,
            options: self.options,
            directory: Directory::default(),
            owners: BTreeMap::new(),
            present: present.clone(),
        };
        let (running, task) = RunningTask::new(|stop| taking.run(announcements, messages, given_up, stop));
        tokio::spawn(task);
        Ok(Box::new(RunningTools {
            task: running,
            expected,
            present,
        }))
    }
}

/// The handle of the running subsystem.
struct RunningTools {
    task: RunningTask,
    expected: BTreeSet<String>,
    present: Arc<Mutex<BTreeSet<String>>>,
}

#[async_trait]
impl Running for RunningTools {
    async fn stop(&self) {
        self.task.stop().await;
    }

    fn check(&self) -> Result<(), String> {
        self.task.check()?;
        let present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: Vec<_> = self.expected.difference(&present).map(String::as_str).collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(format!("no worker has announced its tools as {}", missing.join(", ")))
        }
    }
}
