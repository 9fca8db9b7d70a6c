//! Handlers of typed messages, and how their errors end a delivery.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;

use super::json_error::describe_json_error;
use super::{HandlerError, Message, MessageContext};
use crate::BoxError;
use crate::shared::Running;
use crate::support::json;

/// A handler of the messages of one type. An async closure `|message: M, cx: MessageContext|
/// async { … }` is one.
///
/// `Ok` acknowledges the message. Any error makes the bus deliver it again after a delay, as
/// often as its retry policy allows; [`HandlerError::dead_letter`] means that the message can
/// never be handled. Delivery is at least once: the host deduplicates by message id within a
/// window, but a handler whose work must not be repeated should make it idempotent by that id.
///
/// A panic of a handler is an error, too: the message is delivered again, and the text of the panic
/// is the [`last_error`](super::DeadLetter::last_error) of the dead letter that it may become.
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::BoxError;
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
///     async fn handle(&self, invoice: Invoice, cx: &MessageContext) -> Result<(), BoxError> {
///         if invoice.amount < 0 {
///             return Err(HandlerError::dead_letter("an invoice cannot be negative").into());
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
    /// Returns an error if the message was not handled. The error decides whether it is redelivered
    /// or becomes a dead letter.
    async fn handle(&self, message: M, cx: &MessageContext) -> Result<(), BoxError>;
}

#[async_trait]
impl<M, F, Fut> MessageHandler<M> for F
where
    M: Send + 'static,
    F: Fn(M, MessageContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoHandled> + Send + 'static,
{
    async fn handle(&self, message: M, cx: &MessageContext) -> Result<(), BoxError> {
        self(message, cx.clone()).await.into_handled()
    }
}

impl<M: Send + 'static, H: MessageHandler<M> + ?Sized> MessageHandler<M> for Arc<H> {
    // Written out, since `async_trait` would box the future of the handler once more.
    fn handle<'a, 'b, 'c>(&'a self, message: M, cx: &'b MessageContext) -> Running<'c, Result<(), BoxError>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        (**self).handle(message, cx)
    }
}

/// A value that an async closure which handles messages may return: `()` or a [`Result`].
pub trait IntoHandled: sealed::Sealed + Send {
    /// Converts the value into a handler's result.
    ///
    /// # Errors
    ///
    /// Returns an error if the closure returned one.
    fn into_handled(self) -> Result<(), BoxError>;
}

impl IntoHandled for () {
    fn into_handled(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError> + Send> IntoHandled for Result<(), E> {
    fn into_handled(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

mod sealed {
    /// Keeps other crates from implementing [`IntoHandled`](super::IntoHandled).
    pub trait Sealed {}

    impl Sealed for () {}

    impl<E> Sealed for Result<(), E> {}
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

    /// Creates the route of messages of type `message_type` to `handler`, which reads their bodies as
    /// an `M`. Use it for a name that is only known at run time.
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
    ) -> Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send + 'a>> {
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
    async fn handle(&self, cx: &MessageContext) -> Result<(), BoxError>;
}

struct TypedHandler<M, H> {
    handler: H,
    message: PhantomData<fn(M)>,
}

#[async_trait]
impl<M: DeserializeOwned + Send + 'static, H: MessageHandler<M>> ErasedHandler for TypedHandler<M, H> {
    async fn handle(&self, cx: &MessageContext) -> Result<(), BoxError> {
        let message = json::read_any_case(&cx.envelope().body).map_err(|error| {
            let message_type = &cx.envelope().message_type;
            let why = describe_json_error(&error);
            HandlerError::dead_letter(format!("the body does not fit `{message_type}`: {why}"))
        })?;
        self.handler.handle(message, cx).await
    }
}
