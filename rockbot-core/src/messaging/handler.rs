//! Handlers of typed messages, and what becomes of their errors.

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

/// Handles the messages of one type. An async closure `|message: M, cx: MessageContext| async { … }` is one.
///
/// `Ok` means that the message is dealt with. An error means that it is delivered again, a little later and not for
/// ever; [`HandlerError::dead_letter`] means that it never can be dealt with. The same message may come more than
/// once: its id tells.
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
    /// Deals with one message.
    ///
    /// # Errors
    ///
    /// An error says what becomes of the message.
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

/// What an async closure that handles messages may return: nothing, or a [`Result`].
pub trait IntoHandled: Send {
    /// As a handler's result.
    ///
    /// # Errors
    ///
    /// Fails when the closure did.
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

/// A message that was not dealt with. Every type that is an [`Error`] becomes one with `?`; a boxed error is none: write
/// `.map_err(HandlerError::retry)?`. The message is then delivered again, but for a [`PayloadError`], which no further
/// delivery mends.
pub struct HandlerError {
    reason: String,
    is_final: bool,
    is_answered: bool,
}

impl HandlerError {
    /// The message may be dealt with a little later.
    pub fn retry(reason: impl fmt::Display) -> Self {
        Self {
            reason: reason.to_string(),
            is_final: false,
            is_answered: false,
        }
    }

    /// The message can never be dealt with.
    pub fn dead_letter(reason: impl fmt::Display) -> Self {
        Self {
            reason: reason.to_string(),
            is_final: true,
            is_answered: false,
        }
    }

    /// The sender has its answer already. Without this, whoever asked a question that can never be dealt with is told
    /// so with an [`ErrorReply`](super::ErrorReply); one whose attempts run out waits until its time is over.
    #[must_use]
    pub fn answered(mut self) -> Self {
        self.is_answered = true;
        self
    }

    /// What the sender is to be told: why the message can never be dealt with, unless that was said already.
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

/// An error and what caused it, each said once.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = said(error);
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = said(cause);
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// What an error says; reasons are logged, so one of JSON does not quote what it read.
fn said(error: &(dyn Error + 'static)) -> String {
    let of_json = error.downcast_ref().map(describe_json_error);
    of_json.unwrap_or_else(|| error.to_string())
}

/// A handler of one message type, whatever its Rust type is.
#[derive(Clone)]
pub struct MessageRoute {
    message_type: Arc<str>,
    topic: Option<&'static str>,
    handler: Arc<dyn Handles>,
}

impl MessageRoute {
    /// Messages of type [`Message::TYPE`] go to `handler`.
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

    /// Messages of type `message_type` go to `handler`, their bodies read as an `M`.
    pub fn named<M, H>(message_type: impl Into<Arc<str>>, handler: H) -> Self
    where
        M: DeserializeOwned + Send + 'static,
        H: MessageHandler<M>,
    {
        Self {
            message_type: message_type.into(),
            topic: None,
            handler: Arc::new(Typed {
                handler,
                message: PhantomData::<fn(M)>,
            }),
        }
    }

    /// Where such messages are published unless their sender says otherwise, if that is known.
    pub fn topic(&self) -> Option<&'static str> {
        self.topic
    }

    /// The message type that it handles.
    pub fn message_type(&self) -> &Arc<str> {
        &self.message_type
    }

    /// Reads the body and hands the message to its handler.
    ///
    /// # Errors
    ///
    /// Fails as the handler does, and for good when the body does not fit.
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
trait Handles: Send + Sync {
    async fn handle(&self, cx: &MessageContext) -> Result<(), HandlerError>;
}

struct Typed<M, H> {
    handler: H,
    message: PhantomData<fn(M)>,
}

#[async_trait]
impl<M: DeserializeOwned + Send + 'static, H: MessageHandler<M>> Handles for Typed<M, H> {
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
