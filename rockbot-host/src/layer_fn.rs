//! Layers from async functions, for each of the four services.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use rockbot_core::BoxError;
use rockbot_core::chat::{ChatCall, ChatResponse};
use rockbot_core::messaging::{Disposition, MessageContext};
use rockbot_core::tool::{ToolInvocation, ToolInvokeResponse};
use rockbot_core::turn::TurnOutcome;
use tower::{Layer, Service, ServiceExt};

use crate::engine::TurnCall;
use crate::layer::Stack;

/// The rest of a stack: the layers inside of this layer, and the framework's own service.
///
/// A layer that does not call it answers by itself. A layer that calls it more than once, such as
/// a retry, clones it.
pub struct Next<Request, Response>(Stack<Request, Response>);

impl<Request: Send + 'static, Response: Send + 'static> Next<Request, Response> {
    /// Calls the rest of the stack, after waiting until it is ready: a limit in it may make the call
    /// wait.
    ///
    /// # Errors
    ///
    /// Returns the error of the service or of a layer inside of this layer, in its own type: a
    /// [`ChatError`](rockbot_core::chat::ChatError) of the model client can be downcast.
    pub async fn call(self, request: Request) -> Result<Response, BoxError> {
        self.0.oneshot(request).await
    }
}

impl<Request, Response> Clone for Next<Request, Response> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<Request, Response> fmt::Debug for Next<Request, Response> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}

/// A layer of an async function. [`message_fn`], [`turn_fn`], [`chat_fn`] and [`tool_fn`] create
/// one.
#[derive(Debug)]
pub struct FnLayer<F>(Arc<F>);

impl<F> Clone for FnLayer<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F, Request, Response> Layer<Stack<Request, Response>> for FnLayer<F> {
    type Service = FnService<F, Request, Response>;

    fn layer(&self, inner: Stack<Request, Response>) -> Self::Service {
        FnService {
            function: self.0.clone(),
            inner,
        }
    }
}

/// The service of a [`FnLayer`].
pub struct FnService<F, Request, Response> {
    function: Arc<F>,
    inner: Stack<Request, Response>,
}

impl<F, Request, Response> Clone for FnService<F, Request, Response> {
    fn clone(&self) -> Self {
        Self {
            function: self.function.clone(),
            inner: self.inner.clone(),
        }
    }
}

impl<F, Request, Response> fmt::Debug for FnService<F, Request, Response> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnService").finish_non_exhaustive()
    }
}

impl<F, Fut, Request, Response> Service<Request> for FnService<F, Request, Response>
where
    F: Fn(Request, Next<Request, Response>) -> Fut,
    Fut: Future<Output = Result<Response, BoxError>>,
{
    type Response = Response;
    type Error = BoxError;
    type Future = Fut;

    /// Always ready: the function may not call the inner service at all, so [`Next::call`] waits for
    /// it.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Fut {
        (self.function)(request, Next(self.inner.clone()))
    }
}

/// Creates a layer around messages from an async function, for
/// [`AgentHostBuilder::layer`](crate::AgentHostBuilder::layer).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use rockbot_core::messaging::{Disposition, Message, MessageContext, MessagePublisherExt};
/// use rockbot_host::bus::InProcessBus;
/// use rockbot_host::{AgentHost, message_fn};
/// use tokio::sync::mpsc;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Invoice { amount: u32 }
///
/// impl Message for Invoice {
///     const TYPE: &'static str = "billing.Invoice";
///     const TOPIC: Option<&'static str> = Some("billing.invoice");
/// }
///
/// let (verdicts, mut log) = mpsc::unbounded_channel();
/// let bus = InProcessBus::new();
/// let host = AgentHost::builder("clerk")
///     .bus(bus.clone())
///     .handle(|_: Invoice, _: MessageContext| async {})
///     .layer(message_fn(move |message, next| {
///         let verdicts = verdicts.clone();
///         async move {
///             let verdict = next.call(message).await?;
///             verdicts.send(matches!(verdict, Disposition::Ack))?;
///             Ok(verdict)
///         }
///     }))
///     .build()?;
/// host.start().await?;
///
/// bus.send("shop", &Invoice { amount: 7 }).await?;
/// assert_eq!(log.recv().await, Some(true));
/// # Ok(())
/// # }
/// ```
pub fn message_fn<F, Fut>(function: F) -> FnLayer<F>
where
    F: Fn(MessageContext, Next<MessageContext, Disposition>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Disposition, BoxError>> + Send + 'static,
{
    FnLayer(Arc::new(function))
}

/// Creates a layer around turns from an async function, for
/// [`AgentHostBuilder::turn_layer`](crate::AgentHostBuilder::turn_layer).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_host::{AgentHost, turn_fn};
///
/// let host = AgentHost::in_memory()
///     .chat(ScriptedModel::new().says("It is noon."))
///     .turn_layer(turn_fn(|mut call, next| async move {
///         call.request.content.push_str(" Be brief.");
///         let mut outcome = next.call(call).await?;
///         outcome.text.push_str(" (checked)");
///         Ok(outcome)
///     }))
///     .build()?;
///
/// assert_eq!(host.agent().ask("session", "What is the time?").await?.text, "It is noon. (checked)");
/// # Ok(())
/// # }
/// ```
pub fn turn_fn<F, Fut>(function: F) -> FnLayer<F>
where
    F: Fn(TurnCall, Next<TurnCall, TurnOutcome>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<TurnOutcome, BoxError>> + Send + 'static,
{
    FnLayer(Arc::new(function))
}

/// Creates a layer around model calls from an async function, for
/// [`AgentHostBuilder::chat_layer`](crate::AgentHostBuilder::chat_layer).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use rockbot_core::chat::{ChatError, ChatErrorKind};
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_host::{AgentHost, chat_fn};
///
/// let host = AgentHost::in_memory()
///     .chat(ScriptedModel::new().fails(ChatErrorKind::Unreachable).says("Hello."))
///     .chat_layer(chat_fn(|call, next| async move {
///         match next.clone().call(call.clone()).await {
///             // The error of the client is still a `ChatError`.
///             Err(error) if error.downcast_ref().map(ChatError::kind) == Some(ChatErrorKind::Unreachable) => {
///                 next.call(call).await
///             }
///             answer => answer,
///         }
///     }))
///     .build()?;
///
/// assert_eq!(host.agent().ask("session", "Hi!").await?.text, "Hello.");
/// # Ok(())
/// # }
/// ```
pub fn chat_fn<F, Fut>(function: F) -> FnLayer<F>
where
    F: Fn(ChatCall, Next<ChatCall, ChatResponse>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ChatResponse, BoxError>> + Send + 'static,
{
    FnLayer(Arc::new(function))
}

/// Creates a layer around tool calls from an async function, for
/// [`AgentHostBuilder::tool_layer`](crate::AgentHostBuilder::tool_layer).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_core::tool::tool;
/// use rockbot_host::{AgentHost, tool_fn};
///
/// /// Shows the account.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Account {}
///
/// let model = ScriptedModel::new().calls("account", serde_json::json!({})).says("Done.");
/// let host = AgentHost::in_memory()
///     .chat(model.clone())
///     .tool(tool("account", |_: Account| async { "balance 10, PIN 1234" }).pure())
///     .tool_layer(tool_fn(|call, next| async move {
///         let mut response = next.call(call).await?;
///         let text = response.content.text().replace("1234", "****");
///         response.content.replace_text(text);
///         Ok(response)
///     }))
///     .build()?;
///
/// host.agent().ask("session", "How much is left?").await?;
/// assert_eq!(model.requests()[1].messages[3].text(), "balance 10, PIN ****");
/// # Ok(())
/// # }
/// ```
pub fn tool_fn<F, Fut>(function: F) -> FnLayer<F>
where
    F: Fn(ToolInvocation, Next<ToolInvocation, ToolInvokeResponse>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolInvokeResponse, BoxError>> + Send + 'static,
{
    FnLayer(Arc::new(function))
}
