//! A message of the program's own: other programs ask over the bus how long the agent has been
//! running.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rockbot::message::{MessageContext, RequestClient, RequestError};
use rockbot::prelude::*;

/// The question.
#[derive(Serialize, Deserialize)]
pub(crate) struct StatusRequest {}

impl Message for StatusRequest {
    const TYPE: &'static str = "full_agent.StatusRequest";
    const TOPIC: Option<&'static str> = Some("full_agent.status");
}

/// The answer.
#[derive(Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) agent: String,
    pub(crate) uptime_seconds: u64,
}

impl Message for Status {
    const TYPE: &'static str = "full_agent.Status";
}

/// Answers [`StatusRequest`]s.
pub(crate) struct StatusHandler {
    began: Instant,
}

impl StatusHandler {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now() }
    }
}

#[async_trait]
impl MessageHandler<StatusRequest> for StatusHandler {
    async fn handle(&self, _: StatusRequest, cx: &MessageContext) -> Result<(), BoxError> {
        let status = Status {
            agent: cx.identity().name().to_string(),
            uptime_seconds: self.began.elapsed().as_secs(),
        };
        cx.reply(&status).await?;
        Ok(())
    }
}

/// Asks the agent on `bus`.
pub(crate) async fn ask(bus: &Arc<dyn Bus>) -> Result<Status, RequestError> {
    let client = RequestClient::new(bus.clone(), "terminal");
    let client = client.with_time_limit(Duration::from_secs(5));
    let question = MessageEnvelope::of(&StatusRequest {})?;
    Ok(client.call("full_agent.status", question).await?.payload()?)
}
