//! Handlers of typed messages, and how their errors end a delivery.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;

use super::json_error::describe_json_error;
use super::{Disposition, Message, MessageContext, PayloadError};

/// A handler of the messages of one type. An async closure `|message: M, cx: MessageContext| async { … }` is one.
///
/// `Ok` acknowledges the message. An error makes the bus deliver it again after a delay, as often as its retry policy
/// allows; [`HandlerError::dead_letter`] means that the message can never be handled. Delivery is at least once: the
/// host deduplicates by message id within a window, but a handler whose work must not be repeated should make it
/// idempotent by that id.
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::messaging::{HandlerError, Message, MessageContext, MessageHandler};
///
/// #[derive(serde::Deserialize)]
/// struct Invoice { amount: i64 }
///
/// impl Message for Invoice {
///     const TYPE: &'static str = "billing.Invoice";
/// }
///
/// struct Bookkeeper;
///
/// #[async_trait]
/// impl MessageHandler<Invoice> for Bookkeeper {
///     async fn handle(&self, invoice: Invoice, cx: &MessageContext) -> Result<(), HandlerError> {
///         if invoice.amount < 0 {
///             return Err(HandlerError::dead_letter("an invoice cannot be negative"));
///         }
///         std::fs::write("/books/last", cx.envelope().message_id.as_str())?;
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait MessageHandler<M>: Send + Sync + 'static {
    /// Handles one message.
    ///
    /// # Errors
    ///
    /// Returns an error if the message was not handled. The error decides whether it is redelivered or becomes a dead
    /// letter.
    async fn handle(&self, message: M, cx: &MessageContext) -> Result<(), HandlerError>;
}

#[async_trait]
impl<M, F, Fut> MessageHandler<M> for F
where
    M: Send + 'static,
    F: Fn(M, MessageContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoHandled> + Send + 'static,
{
    async fn handle(&self, message: M, cx: &MessageContext) -> Result<(), HandlerError> {
        self(message, cx.clone()).await.into_handled()
    }
}

/// A value that an async closure which handles messages may return: `()` or a [`Result`].
pub trait IntoHandled: Send {
    /// Converts the value into a handler's result.
    ///
    /// # Errors
    ///
    /// Returns an error if the closure returned one.
    fn into_handled(self) -> Result<(), HandlerError>;
}

impl IntoHandled for () {
    fn into_handled(self) -> Result<(), HandlerError> {
        Ok(())
    }
}

impl<E: Into<HandlerError> + Send> IntoHandled for Result<(), E> {
    fn into_handled(self) -> Result<(), HandlerError> {
        self.map_err(Into::into)
    }
}

/// An error of handling a message.
///
/// Every type that implements [`Error`] converts into one with `?`; a boxed error does not: write
/// `.map_err(HandlerError::retry)?`. A converted error redelivers the message, except for a [`PayloadError`], which
/// no further delivery can fix.
pub struct HandlerError {
    reason: String,
    is_final: bool,
    is_answered: bool,
}

impl HandlerError {
    /// Creates an error after which the message is delivered again.
    pub fn retry(reason: impl fmt::Display) -> Self {
        Self {
            reason: reason.to_string(),
            is_final: false,
            is_answered: false,
        }
    }

    /// Creates an error after which the message becomes a dead letter: it can never be handled.
    pub fn dead_letter(reason: impl fmt::Display) -> Self {
        Self {
            reason: reason.to_string(),
            is_final: true,
            is_answered: false,
        }
    }

    /// Marks the sender as answered. Without this, the sender of a request that can never be handled gets an
    /// [`ErrorReply`](super::ErrorReply); if the attempts run out instead, the sender waits until its own time limit.
    #[must_use]
    pub fn answered(mut self) -> Self {
        self.is_answered = true;
        self
    }

    /// Returns the reason to report to the sender: the message can never be handled, and the sender was not answered.
    pub fn refusal(&self) -> Option<&str> {
        (self.is_final && !self.is_answered).then_some(&*self.reason)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let is_final = (&error as &dyn Any).is::<PayloadError>();
        Self {
            reason: chain(&error),
            is_final,
            is_answered: false,
        }
    }
}

impl From<HandlerError> for Disposition {
    fn from(error: HandlerError) -> Self {
        match error.is_final {
            true => Self::DeadLetter { reason: error.reason },
            false => Self::Retry { reason: error.reason },
        }
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerError")
            .field("reason", &self.reason)
            .field("is_final", &self.is_final)
            .finish()
    }
}

/// Returns the messages of an error and its sources, each once.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = message_of(error);
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = message_of(cause);
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Returns the message of an error. Reasons are logged, so a JSON error is described without quoting the message
/// body.
fn message_of(error: &(dyn Error + 'static)) -> String {
    let of_json = error.downcast_ref().map(describe_json_error);
    of_json.unwrap_or_else(|| error.to_string())
}

/// A handler of one message type, with the Rust type erased.
#[derive(Clone)]
pub struct MessageRoute {
    message_type: Arc<str>,
    topic: Option<&'static str>,
    handler: Arc<dyn ErasedHandler>,
}

impl MessageRoute {
    /// Creates the route of messages of type [`Message::TYPE`] to `handler`.
    pub fn of<M, H>(handler: H) -> Self
    where
        M: Message + DeserializeOwned + Send + 'static,
        H: MessageHandler<M>,
    {
        Self {
            topic: M::TOPIC,
            ..Self::named::<M, H>(M::TYPE, handler)
        }
    }

    /// Creates the route of messages of type `message_type` to `handler`, which reads their bodies as an `M`. Use it
    /// for a name that is only known at run time.
    pub fn named<M, H>(message_type: impl Into<Arc<str>>, handler: H) -> Self
    where
        M: DeserializeOwned + Send + 'static,
        H: MessageHandler<M>,
    {
        Self {
            message_type: message_type.into(),
            topic: None,
            handler: Arc::new(TypedHandler {
                handler,
                message: PhantomData::<fn(M)>,
            }),
        }
    }

    /// Returns the topic of the message type, if it has one.
    pub fn topic(&self) -> Option<&'static str> {
        self.topic
    }

    /// Returns the message type.
    pub fn message_type(&self) -> &Arc<str> {
        &self.message_type
    }

    /// Parses the body and calls the handler.
    ///
    /// # Errors
    ///
    /// Returns the handler's error, or a dead-letter error if the body does not match the type.
    pub fn handle<'a>(
        &'a self,
        cx: &'a MessageContext,
    ) -> Pin<Box<dyn Future<Output = Result<(), HandlerError>> + Send + 'a>> {
        self.handler.handle(cx)
    }
}

impl fmt::Debug for MessageRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageRoute").field(&self.message_type).finish()
    }
}

#[async_trait]
trait ErasedHandler: Send + Sync {
    async fn handle(&self, cx: &MessageContext) -> Result<(), HandlerError>;
}

struct TypedHandler<M, H> {
    handler: H,
    message: PhantomData<fn(M)>,
}

#[async_trait]
impl<M: DeserializeOwned + Send + 'static, H: MessageHandler<M>> ErasedHandler for TypedHandler<M, H> {
    async fn handle(&self, cx: &MessageContext) -> Result<(), HandlerError> {
        let message = serde_json::from_slice(&cx.envelope().body).map_err(|error| {
            let message_type = &cx.envelope().message_type;
            HandlerError::dead_letter(format_args!(
                "the body does not fit `{message_type}`: {}",
                describe_json_error(&error)
            ))
        })?;
        self.handler.handle(message, cx).await
    }
}
