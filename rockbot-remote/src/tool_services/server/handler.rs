//! The handler of requests: runs the service, replies, and acknowledges the request once the bus
//! has the reply.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use rockbot_core::BoxError;
use rockbot_core::messaging::{Bus, Delivery, DeliveryHandler, Disposition};
use rockbot_core::support::{caught, loggable};
use serde_json::Value;
use tokio::time;

use crate::tool_services::tool_service::{ReplyParts, TooManyRequests, ToolService};
use crate::tool_services::wire::{ID, ReplyBody, Request, SERVICE_ERROR, TOO_MANY_REQUESTS, UNKNOWN_ID, text_of};

/// The handler of a service's requests.
pub(super) struct ServiceHandler {
    pub(super) bus: Arc<dyn Bus>,
    /// The topic of the replies.
    pub(super) response: Arc<str>,
    pub(super) service: Arc<dyn ToolService>,
    pub(super) time_limit: Duration,
    pub(super) max_attempts: u32,
}

#[async_trait]
impl DeliveryHandler for ServiceHandler {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        // Read before the body, so that a reply about an unreadable body finds its caller.
        let id = delivery.envelope.headers.get(ID).map_or(UNKNOWN_ID, String::as_str);
        let bus = Arc::clone(&self.bus);
        let topic = Arc::clone(&self.response);
        let replies = ReplyParts::new(bus, topic, id.to_owned(), delivery.attempt);
        let is_last_attempt = delivery.attempt >= self.max_attempts;
        let replied = match self.run(&delivery.envelope.body, &replies).await {
            Ok(value) => replies.end(&ReplyBody::last(&text_of(&value))).await,
            Err(error) => match error.downcast_ref::<TooManyRequests>() {
                Some(busy) if !is_last_attempt => return Disposition::retry(busy),
                Some(busy) => {
                    replies
                        .end(&ReplyBody::error(TOO_MANY_REQUESTS, &busy.to_string()))
                        .await
                }
                None => {
                    tracing::warn!(error = %loggable(&error.to_string()), "a call of the tool service failed");
                    replies.end(&ReplyBody::error(SERVICE_ERROR, &error.to_string())).await
                }
            },
        };
        match replied {
            Ok(()) => Disposition::Ack,
            // Not a retry: the call has run, and must not run twice.
            Err(error) => Disposition::dead_letter(format_args!("the reply could not be delivered: {error}")),
        }
    }
}

impl ServiceHandler {
    async fn run(&self, body: &[u8], parts: &ReplyParts) -> Result<Value, BoxError> {
        let request = Request::parse(body)?;
        let Request {
            user,
            config,
            arguments,
        } = &request;
        let running = self.service.invoke_streaming(user, config, arguments, parts);
        // A panic is the failure of this call alone.
        let running = time::timeout(self.time_limit, AssertUnwindSafe(running).catch_unwind());
        match running.await {
            Ok(ended) => caught(ended).unwrap_or_else(|panic| Err(format!("the service panicked: {panic}").into())),
            Err(_) => Err(format!("the service took longer than {} s", self.time_limit.as_secs_f32()).into()),
        }
    }
}
