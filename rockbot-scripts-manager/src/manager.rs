//! The subscriptions of a scripts manager.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::messaging::{
    Bus, DeliveryHandler, Message, MessageEnvelope, SubscribeOptions, Subscription, TopicPattern,
};
use rockbot_core::{IdSource as _, RandomIds};
use rockbot_tools::scripts::wire::{ScriptCancelled, ScriptGuaranteesRequest, ScriptInvokeRequest};
use rockbot_tools::scripts::{Guarantees, LocalScriptRunner, ScriptRunner, measure};
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::questions::GuaranteeQuestions;
use crate::requests::{Cancellations, Requests};
use crate::runs::Runs;
use crate::settings::{Backend, MAX_CONCURRENT, ScriptsManagerSettings};

/// Name of the subscription that all managers of a bus share.
const SUBSCRIPTION: &str = "scripts-manager";

/// Topic of the messages by which a manager asks whether the bus answers.
const PROBE_TOPIC: &str = "script.probe";

/// Maximum time for the bus to answer.
const PROBE_TIME: Duration = Duration::from_secs(2);

/// Maximum time for scripts that are killed at the end.
const KILL_TIME: Duration = Duration::from_secs(10);

/// A manager that runs the scripts of agents on a bus.
///
/// Managers of one bus share the requests. A request is acknowledged once the bus has its answer:
/// if the manager dies meanwhile, another one runs the script again. A request that comes again to
/// the same manager waits for the first run, and is answered once.
///
/// ```
/// use std::sync::Arc;
/// use rockbot_core::BoxError;
/// use rockbot_core::config::Config;
/// use rockbot_core::messaging::Bus;
/// use rockbot_scripts_manager::ScriptsManager;
/// use rockbot_tools::scripts::LocalScriptRunner;
///
/// async fn run(bus: Arc<dyn Bus>) -> Result<(), BoxError> {
///     let runner = LocalScriptRunner::from_config(&Config::from_env(), None)?;
///     let manager = ScriptsManager::new(runner).serve(bus).await?;
///     tokio::signal::ctrl_c().await?;
///     manager.shutdown(std::time::Duration::from_secs(25)).await;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use]
pub struct ScriptsManager {
    name: Arc<str>,
    runner: Arc<dyn ScriptRunner>,
    max_concurrent: usize,
    /// `true` if the backend has tried out that scripts have no network.
    has_no_network: bool,
}

impl ScriptsManager {
    /// Creates a manager whose scripts `runner` runs, at most 4 at once.
    pub fn new(runner: impl ScriptRunner) -> Self {
        Self {
            name: "scripts-manager".into(),
            runner: Arc::new(runner),
            max_concurrent: MAX_CONCURRENT,
            has_no_network: false,
        }
    }

    /// Creates the manager of the settings: [`ScriptsManagerSettings`], and the section of its
    /// backend.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting, and if the backend is not built in or cannot
    /// be reached.
    pub async fn from_config(config: &Config) -> Result<Self, BoxError> {
        let settings = ScriptsManagerSettings::from_config(config)?;
        let manager = match settings.backend {
            Backend::Sandbox => Self::new(LocalScriptRunner::from_config(config, None)?),
            Backend::Kubernetes => kubernetes(config).await?,
        };
        Ok(manager
            .with_name(settings.name)
            .with_max_concurrent(settings.max_concurrent))
    }

    /// Sets the source of the answers. Default `scripts-manager`.
    pub fn with_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the number of scripts that run at once. Default 4. Further requests wait in their
    /// queue.
    pub fn with_max_concurrent(mut self, scripts: usize) -> Self {
        self.max_concurrent = scripts.max(1);
        self
    }

    /// Tries the runner's guarantees out, and takes requests until the returned handle is shut down
    /// or dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if the runner runs no scripts here, if it does not keep a guarantee that it
    /// declares, and if the bus cannot subscribe.
    pub async fn serve(self, bus: Arc<dyn Bus>) -> Result<RunningScriptsManager, BoxError> {
        let mut guarantees = measure(&*self.runner).await?;
        guarantees.no_network |= self.has_no_network;
        let runs = Arc::new(Runs::default());
        let cut_off = CancellationToken::new();
        let cancellations = Arc::new(Cancellations(runs.clone()));
        let questions = Arc::new(GuaranteeQuestions {
            bus: bus.clone(),
            name: self.name.clone(),
            guarantees,
        });
        let description = format!("{}: {guarantees}", self.runner.name());
        let requests = Arc::new(Requests {
            bus: bus.clone(),
            name: self.name,
            runner: self.runner,
            guarantees,
            runs,
            cut_off: cut_off.clone(),
        });
        // Every manager gets the cancellations and questions, and each request goes to a single
        // manager.
        let own = SubscribeOptions::new().ephemeral().with_concurrency(8);
        let instance = RandomIds.next_id();
        let cancelled = subscribe::<ScriptCancelled>(&*bus, &instance, own.clone(), cancellations).await?;
        let asked = subscribe::<ScriptGuaranteesRequest>(&*bus, &instance, own, questions).await?;
        let shared = SubscribeOptions::new().with_concurrency(self.max_concurrent);
        let pattern = TopicPattern::new(ScriptInvokeRequest::TOPIC.unwrap_or_default())?;
        let requests = bus.subscribe(pattern, SUBSCRIPTION, shared, requests).await?;
        Ok(RunningScriptsManager {
            description,
            guarantees,
            bus,
            requests: Mutex::new(Some(requests)),
            _others: [cancelled, asked],
            cut_off,
        })
    }
}

/// Creates a manager whose scripts run in pods.
#[cfg(feature = "kubernetes")]
async fn kubernetes(config: &Config) -> Result<ScriptsManager, BoxError> {
    let (runner, has_no_network) = crate::kubernetes::open(config).await?;
    let mut manager = ScriptsManager::new(runner);
    manager.has_no_network = has_no_network;
    Ok(manager)
}

/// Says that the program was built without the backend.
#[cfg(not(feature = "kubernetes"))]
#[expect(clippy::unused_async, reason = "it is asynchronous with the feature `kubernetes`")]
async fn kubernetes(_: &Config) -> Result<ScriptsManager, BoxError> {
    Err("this program was built without Kubernetes: build it with `--features kubernetes`".into())
}

/// Subscribes this manager alone to the topic of `M`.
async fn subscribe<M: Message>(
    bus: &dyn Bus,
    instance: &str,
    options: SubscribeOptions,
    handler: Arc<dyn DeliveryHandler>,
) -> Result<Subscription, BoxError> {
    let topic = M::TOPIC.unwrap_or_default();
    let name = format!("{topic}.{instance}");
    Ok(bus
        .subscribe(TopicPattern::new(topic)?, &name, options, handler)
        .await?)
}

/// A manager that takes requests. Dropping it ends the subscriptions; scripts that run end in the
/// background.
#[derive(Debug)]
#[must_use = "dropping it ends the manager"]
pub struct RunningScriptsManager {
    description: String,
    guarantees: Guarantees,
    bus: Arc<dyn Bus>,
    /// `None` once the manager was shut down.
    requests: Mutex<Option<Subscription>>,
    _others: [Subscription; 2],
    cut_off: CancellationToken,
}

impl RunningScriptsManager {
    /// Returns the name of the runner and its guarantees, in words.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the guarantees that the manager declares.
    pub fn guarantees(&self) -> Guarantees {
        self.guarantees
    }

    /// Asks whether the manager takes requests now, and the bus answers.
    ///
    /// # Errors
    ///
    /// Returns the reason why no request is taken, in words for an operator.
    pub async fn readiness(&self) -> Result<(), String> {
        let is_active = self.lock().as_ref().is_some_and(Subscription::is_active);
        if !is_active {
            return Err("the manager takes no requests any more".to_owned());
        }
        // A broker confirms a message also if nothing takes it.
        let probe = MessageEnvelope::new("rockbot.scripts.probe", "{}").with_source("scripts-manager");
        let published = self.bus.publish(PROBE_TOPIC, Arc::new(probe));
        match time::timeout(PROBE_TIME, published).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("the bus takes no messages: {error}")),
            Err(_) => Err(format!("the bus does not answer within {PROBE_TIME:?}")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Subscription>> {
        // No code that can panic runs under the lock.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes no further request, and waits for the scripts that run. Scripts that still run after
    /// `limit` are killed, and their requests go back to the queue.
    pub async fn shutdown(&self, limit: Duration) {
        let cut_off = self.cut_off.clone();
        let Some(requests) = self.lock().take() else {
            return;
        };
        let closing = requests.close();
        tokio::pin!(closing);
        if time::timeout(limit, closing.as_mut()).await.is_err() {
            tracing::warn!("scripts still run; they are killed, and their requests go back to the queue");
            cut_off.cancel();
            // The end of a killed script is awaited, so that nothing of it is left.
            if time::timeout(KILL_TIME, closing).await.is_err() {
                tracing::warn!("scripts that were killed have not ended");
            }
        }
    }
}
