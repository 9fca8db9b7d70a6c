//! The trait of a tool service, and the messages of its code to the process that runs it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::messaging::{Bus, BusError, MessageEnvelope};
use serde_json::Value;
use tokio::time;

use super::wire::{ATTEMPT, ID, RESPONSE_TYPE, ReplyBody, SERVICE_ERROR};

/// Pauses between attempts to publish a reply, which outlast a reconnect of a bus.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(15)];

/// A service that runs calls of tools for agents, in a process of its own.
///
/// [`ToolServiceServer`](super::ToolServiceServer) runs it. A request comes again only when the
/// process died before its reply, and after [`TooManyRequests`].
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::BoxError;
/// use rockbot_remote::tool_services::ToolService;
/// use serde_json::Value;
///
/// #[derive(Debug)]
/// struct JokeService;
///
/// #[async_trait]
/// impl ToolService for JokeService {
///     async fn invoke(&self, user: &str, config: &Value, arguments: &Value) -> Result<Value, BoxError> {
///         let style = config["style"].as_str().unwrap_or("pun");
///         let topic = arguments["topic"].as_str().ok_or("`topic` is missing: say what the joke is about")?;
///         Ok(format!("Hey {user}! Here's a {style} about {topic}.").into())
///     }
/// }
/// ```
#[async_trait]
pub trait ToolService: fmt::Debug + Send + Sync + 'static {
    /// Runs a call for `user`, with the config values of the tool and the arguments of the model,
    /// both JSON objects.
    ///
    /// `user` is empty if the caller names none: the sender states it, so it is a claim. A text is
    /// the result as it is; the caller reads any other value as JSON text.
    ///
    /// # Errors
    ///
    /// Returns any error if the call failed: the model reads its text. After [`TooManyRequests`] the
    /// request is delivered again later.
    async fn invoke(&self, user: &str, config: &Value, arguments: &Value) -> Result<Value, BoxError>;

    /// Runs a call that can send parts of its result before the last part. Override it for long
    /// results; by default it is [`invoke`](Self::invoke).
    ///
    /// The result of the caller is all parts and the returned value, joined. TrustGraph's agent takes
    /// the first message for the whole result.
    ///
    /// # Errors
    ///
    /// Returns an error as [`invoke`](Self::invoke) does.
    async fn invoke_streaming(
        &self,
        user: &str,
        config: &Value,
        arguments: &Value,
        parts: &ReplyParts,
    ) -> Result<Value, BoxError> {
        let _ = parts;
        self.invoke(user, config, arguments).await
    }
}

#[async_trait]
impl<Shared: ToolService + ?Sized> ToolService for Arc<Shared> {
    async fn invoke(&self, user: &str, config: &Value, arguments: &Value) -> Result<Value, BoxError> {
        (**self).invoke(user, config, arguments).await
    }

    async fn invoke_streaming(
        &self,
        user: &str,
        config: &Value,
        arguments: &Value,
        parts: &ReplyParts,
    ) -> Result<Value, BoxError> {
        (**self).invoke_streaming(user, config, arguments, parts).await
    }
}

/// The error of a service that can run the call later, but not now. The request is delivered
/// again after a delay, up to the [attempts](super::ToolServiceServer::retry) of the server.
///
/// ```
/// use rockbot_core::BoxError;
/// use rockbot_remote::tool_services::TooManyRequests;
///
/// fn admit(waiting: usize) -> Result<(), BoxError> {
///     if waiting > 100 {
///         return Err(TooManyRequests::new("100 jokes wait already").into());
///     }
///     Ok(())
/// }
/// # assert!(admit(200).unwrap_err().is::<TooManyRequests>());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TooManyRequests(String);

impl TooManyRequests {
    /// Creates the error with its reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// Returns `true`: the same call may succeed a little later.
    pub fn retry_helps(&self) -> bool {
        true
    }
}

/// The sender of the parts of a result, for [`ToolService::invoke_streaming`].
#[derive(Debug)]
pub struct ReplyParts {
    bus: Arc<dyn Bus>,
    topic: Arc<str>,
    id: String,
    /// The number of the delivery of the request, from 1.
    attempt: u32,
}

impl ReplyParts {
    pub(super) fn new(bus: Arc<dyn Bus>, topic: Arc<str>, id: String, attempt: u32) -> Self {
        Self {
            bus,
            topic,
            id,
            attempt,
        }
    }

    /// Sends a part that more follow, and waits until the bus has it.
    ///
    /// # Errors
    ///
    /// Returns an error if the bus fails or is closed.
    pub async fn send(&self, text: &str) -> Result<(), BusError> {
        self.publish(&self.envelope(&ReplyBody::part(text))).await
    }

    /// Publishes the last reply, again after pauses where that may help. The caller gets an error in
    /// place of a reply that is too large for the bus.
    pub(super) async fn end(&self, body: &ReplyBody<'_>) -> Result<(), BusError> {
        let envelope = self.envelope(body);
        let mut replied = self.publish(&envelope).await;
        for pause in PAUSES {
            match &replied {
                Err(error) if error.retry_helps() => time::sleep(pause).await,
                _ => break,
            }
            replied = self.publish(&envelope).await;
        }
        match replied {
            Err(error @ BusError::TooLarge { .. }) => {
                let message = format!("the call has run, and its result is lost: {error}");
                let error = ReplyBody::error(SERVICE_ERROR, &message);
                self.publish(&self.envelope(&error)).await
            }
            replied => replied,
        }
    }

    fn envelope(&self, body: &ReplyBody<'_>) -> Arc<MessageEnvelope> {
        let envelope = MessageEnvelope::new(RESPONSE_TYPE, body.to_json()).with_header(ID, &self.id);
        Arc::new(match self.attempt {
            0 | 1 => envelope,
            attempt => envelope.with_header(ATTEMPT, attempt.to_string()),
        })
    }

    /// Publishes a reply. A client that no longer listens is no error: it has given up.
    async fn publish(&self, envelope: &Arc<MessageEnvelope>) -> Result<(), BusError> {
        self.bus.publish(&self.topic, Arc::clone(envelope)).await.map(drop)
    }
}
