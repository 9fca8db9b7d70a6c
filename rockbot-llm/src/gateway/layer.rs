//! Layers of a gateway, and the adapters between them, chat clients and tower services.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier, WatchedDeltas};
use tower::{Service, ServiceExt};

/// A layer around model calls: the short way to write a tower layer for them.
///
/// A layer sees each call before the layers further in. It may change the call, ask `next` once,
/// several times or not at all, and change the answer. A call may be dropped at each await, so
/// changes that must be undone are undone in a `Drop`.
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse};
/// use rockbot_llm::{GatewayLayer, GatewayLayerService};
/// use tower::Layer;
///
/// /// Greets politely.
/// #[derive(Clone)]
/// struct Polite;
///
/// #[async_trait]
/// impl GatewayLayer for Polite {
///     async fn call(&self, call: ChatCall, next: &dyn ChatClient) -> Result<ChatResponse, ChatError> {
///         let mut answer = next.chat(call).await?;
///         answer.text.insert_str(0, "Dear user, ");
///         Ok(answer)
///     }
/// }
///
/// // With this it fits `AgentHostBuilder::chat_layer` and every other stack of tower layers too.
/// impl<S> Layer<S> for Polite {
///     type Service = GatewayLayerService<Self, S>;
///
///     fn layer(&self, inner: S) -> Self::Service {
///         GatewayLayerService::new(self.clone(), inner)
///     }
/// }
/// ```
#[async_trait]
pub trait GatewayLayer: Send + Sync + 'static {
    /// Answers `call`, as a rule by asking `next`.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no answer.
    async fn call(&self, call: ChatCall, next: &dyn ChatClient) -> Result<ChatResponse, ChatError>;
}

impl<L: GatewayLayer + ?Sized> GatewayLayer for Arc<L> {
    // Written out, since `async_trait` would box the future of the layer once more.
    fn call<'a, 'b, 'c>(&'a self, call: ChatCall, next: &'b dyn ChatClient) -> Answer<'c>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        (**self).call(call, next)
    }
}

/// A layer around a client, as a client.
pub(super) struct LayeredClient {
    pub(super) layer: Arc<dyn GatewayLayer>,
    pub(super) next: Arc<dyn ChatClient>,
}

impl ChatClient for LayeredClient {
    // Written out, since `async_trait` would box the future of the layer once more.
    fn chat<'a: 'b, 'b>(&'a self, call: ChatCall) -> Answer<'b>
    where
        Self: 'b,
    {
        self.layer.call(call, &*self.next)
    }

    fn describe(&self, tier: ModelTier) -> ModelInfo {
        self.next.describe(tier)
    }
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<ChatResponse, ChatError>> + Send + 'a>>;

/// The tower service of a [`GatewayLayer`] around an inner service of model calls.
#[derive(Debug, Clone)]
pub struct GatewayLayerService<L, S> {
    layer: Arc<L>,
    inner: S,
}

impl<L, S> GatewayLayerService<L, S> {
    /// Creates the service that `layer` makes of `inner`.
    pub fn new(layer: L, inner: S) -> Self {
        Self {
            layer: Arc::new(layer),
            inner,
        }
    }
}

impl<L, S> Service<ChatCall> for GatewayLayerService<L, S>
where
    L: GatewayLayer,
    S: Service<ChatCall, Response = ChatResponse, Error: Into<BoxError>, Future: Send> + Clone + Send + Sync + 'static,
{
    type Response = ChatResponse;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<ChatResponse, BoxError>> + Send>>;

    /// Reports that the service is always ready. A layer may ask more than once, so each call waits
    /// for the readiness of the inner service itself.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ChatCall) -> Self::Future {
        let layer = self.layer.clone();
        let inner = ServiceClient::new(self.inner.clone(), None);
        Box::pin(async move { layer.call(call, &inner).await.map_err(BoxError::from) })
    }
}

/// A tower service of model calls, as a client.
pub(super) struct ServiceClient<S> {
    service: S,
    /// The client that the service wraps, if it is known: a tower service cannot be asked which model
    /// it leads to.
    wrapped: Option<Arc<dyn ChatClient>>,
}

impl<S> ServiceClient<S> {
    /// Creates a client of `service`, which wraps the client `wrapped` if that is known.
    pub(super) fn new(service: S, wrapped: Option<Arc<dyn ChatClient>>) -> Self {
        Self { service, wrapped }
    }
}

#[async_trait]
impl<S> ChatClient for ServiceClient<S>
where
    S: Service<ChatCall, Response = ChatResponse, Error: Into<BoxError>, Future: Send> + Clone + Send + Sync + 'static,
{
    async fn chat(&self, mut call: ChatCall) -> Result<ChatResponse, ChatError> {
        WatchedDeltas::attach(&mut call);
        let answer = self.service.clone().oneshot(call).await;
        answer.map_err(|error| ChatError::from(error.into()))
    }

    fn describe(&self, tier: ModelTier) -> ModelInfo {
        match &self.wrapped {
            Some(client) => client.describe(tier),
            None => ModelInfo::unknown(),
        }
    }
}

/// A chat client as a tower service: the innermost service of a gateway's tower layers.
#[derive(Clone)]
pub struct ChatService(pub(super) Arc<dyn ChatClient>);

impl Service<ChatCall> for ChatService {
    type Response = ChatResponse;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<ChatResponse, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ChatCall) -> Self::Future {
        // A layer may attempt a call again, and the reader must not see the text of both attempts.
        WatchedDeltas::reset_earlier(&call);
        let client = self.0.clone();
        Box::pin(async move { client.chat(call).await.map_err(BoxError::from) })
    }
}

impl fmt::Debug for ChatService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChatService")
    }
}

/// Implements [`tower::Layer`] for a gateway layer that is cheap to clone.
macro_rules! layer_of {
    ($layer:ty) => {
        impl<S> tower::Layer<S> for $layer {
            type Service = $crate::gateway::GatewayLayerService<Self, S>;

            fn layer(&self, inner: S) -> Self::Service {
                $crate::gateway::GatewayLayerService::new(self.clone(), inner)
            }
        }
    };
}

pub(crate) use layer_of;
