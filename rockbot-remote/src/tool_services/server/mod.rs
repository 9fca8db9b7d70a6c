//! The process of a tool service: [`ToolServiceServer`].

mod announcer;
mod handler;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::{Bus, BusError, RetryPolicy, SubscribeOptions, Subscription, TopicPattern};
use serde_json::Value;

use super::announcement::Announced;
use super::descriptor::{Descriptor, DescriptorProblem, Kind, ServiceDescriptor};
use super::queue_id::{QueueId, QueueIdError};
use super::tool_service::ToolService;
use announcer::Announcer;
use handler::ServiceHandler;

/// Runs a [`ToolService`] over a bus.
///
/// A request is acknowledged once the bus has its reply; one whose reply cannot be sent becomes a
/// dead letter, since its call has run. Servers of one id share the requests of their queue;
/// those of different ids on one queue all run each request, and the caller takes the first
/// reply. A panic and a call beyond the [time limit](Self::time_limit) are errors of that call.
///
/// ```no_run
/// use std::sync::Arc;
/// use rockbot_core::messaging::Bus;
/// use rockbot_core::BoxError;
/// use rockbot_remote::tool_services::{ToolService, ToolServiceServer};
///
/// async fn run(bus: Arc<dyn Bus>, jokes: impl ToolService) -> Result<(), BoxError> {
///     let running = ToolServiceServer::new("joke-service", "joke", jokes)?.serve(bus).await?;
///     tokio::signal::ctrl_c().await?;
///     running.shutdown().await;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use]
pub struct ToolServiceServer {
    id: String,
    request: QueueId,
    response: QueueId,
    service: Arc<dyn ToolService>,
    concurrency: usize,
    time_limit: Duration,
    retry: RetryPolicy,
    /// The service's own descriptor, a JSON object, if it has one.
    descriptor: Option<Value>,
    announced: Option<Announced>,
}

impl ToolServiceServer {
    /// Creates the server of the service `id`, with the queues `request:tg:TOPIC` and
    /// `response:tg:TOPIC`.
    ///
    /// # Errors
    ///
    /// Returns an error if `topic` cannot be part of a queue's id.
    pub fn new(id: impl Into<String>, topic: &str, service: impl ToolService) -> Result<Self, QueueIdError> {
        let request = QueueId::request(topic)?;
        let response = QueueId::response(topic)?;
        Ok(Self {
            id: id.into(),
            request,
            response,
            service: Arc::new(service),
            concurrency: 8,
            time_limit: Duration::from_secs(600),
            retry: RetryPolicy::default()
                .with_max_attempts(20)
                .with_first_delay(Duration::from_secs(1)),
            descriptor: None,
            announced: None,
        })
    }

    /// Creates the server of the service that `descriptor`, a JSON text, describes: its id and its
    /// queues.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is no descriptor of a tool service.
    pub fn described(descriptor: &str, service: impl ToolService) -> Result<Self, DescriptorProblem> {
        const PLACE: &str = "descriptor of the service";
        let Descriptor::Service(read) = Descriptor::parse(PLACE, Some(Kind::Service), descriptor.as_bytes())? else {
            return Err(DescriptorProblem::new(PLACE, "it describes no tool service"));
        };
        let ServiceDescriptor {
            id, request, response, ..
        } = read;
        let server = Self::new(id, "tool", service);
        let server = server.map_err(|error| DescriptorProblem::new(PLACE, error.to_string()))?;
        let descriptor = serde_json::from_str(descriptor).ok();
        Ok(Self { descriptor, ..server }.with_queues(request, response))
    }

    /// Sets the queues.
    pub fn with_queues(mut self, request: QueueId, response: QueueId) -> Self {
        (self.request, self.response) = (request, response);
        self
    }

    /// Sets the maximum number of calls that run concurrently in this process. Default 8.
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = calls;
        self
    }

    /// Sets the maximum time of a call; afterwards the caller gets an error. Default 600 seconds,
    /// after which callers give up.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Sets when a request is delivered again after [`TooManyRequests`](super::TooManyRequests), and
    /// how often. After the last attempt the caller gets an error. Default: 20 attempts, after 1 s
    /// and then twice as long each time, up to 30 s.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Announces the service and a tool of it, whose descriptor is this JSON text, on the bus: agents
    /// that [listen](super::ToolServices::announced) have the tool as long as this server runs,
    /// without configuration. Call it for each tool of a server that was made by
    /// [`described`](Self::described).
    ///
    /// # Errors
    ///
    /// Returns an error if the text is no descriptor of a tool, or the server has no descriptor of
    /// its own.
    pub fn announces(mut self, tool: &str) -> Result<Self, DescriptorProblem> {
        const PLACE: &str = "descriptor of the tool";
        let Some(descriptor) = &self.descriptor else {
            let message =
                "a service without a descriptor cannot announce tools: make it by `ToolServiceServer::described`";
            return Err(DescriptorProblem::new(PLACE, message));
        };
        let Descriptor::Tool(read) = Descriptor::parse(PLACE, Some(Kind::Tool), tool.as_bytes())? else {
            return Err(DescriptorProblem::new(PLACE, "it describes no tool"));
        };
        let value = serde_json::from_str(tool).map_err(|error| DescriptorProblem::new(PLACE, error.to_string()))?;
        let announced = self
            .announced
            .get_or_insert_with(|| Announced::service(&self.id, descriptor.clone()));
        announced.add_tool(read.name, value);
        Ok(self)
    }

    /// Takes requests until the returned handle is shut down or dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if the bus cannot subscribe.
    pub async fn serve(self, bus: Arc<dyn Bus>) -> Result<RunningToolService, BusError> {
        let handler = ServiceHandler {
            bus: Arc::clone(&bus),
            response: self.response.topic().into(),
            service: self.service,
            time_limit: self.time_limit,
            max_attempts: self.retry.max_attempts,
        };
        let options = SubscribeOptions::new()
            .with_concurrency(self.concurrency)
            .with_retry(self.retry);
        let topic = self.request.topic();
        let name = format!("{topic}.{}-request", self.id);
        let subscription = bus.subscribe(TopicPattern::new(&topic)?, &name, options, Arc::new(handler));
        let subscription = subscription.await?;
        let announcer = match self.announced {
            Some(mut announced) => {
                announced.set_queues(&self.request, &self.response);
                Some(Announcer::start(announced, bus).await?)
            }
            None => None,
        };
        Ok(RunningToolService {
            subscription,
            announcer,
        })
    }
}

/// A tool service that takes requests. Dropping it ends the service; what runs is finished in the
/// background.
#[derive(Debug)]
#[must_use = "dropping it ends the service"]
pub struct RunningToolService {
    subscription: Subscription,
    announcer: Option<Announcer>,
}

impl RunningToolService {
    /// Withdraws the announcements, takes no further request, and waits for those that run: at most
    /// the server's time limit each.
    pub async fn shutdown(self) {
        if let Some(announcer) = self.announcer {
            announcer.withdraw().await;
        }
        self.subscription.close().await;
    }
}
