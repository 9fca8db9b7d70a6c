//! The gateway in front of all models: permits, priorities, retries, fallback models, time limits
//! and metrics.
//!
//! A [`ModelGateway`] is a stack of layers around a chat client. [`layer`] has the trait of a
//! layer and the adapters to tower; each layer is a file: [`retry`], [`fallback`] (with
//! [`circuit_breaker`]), [`permits`] (with [`queue`], which orders waiting calls), [`meter`] and
//! [`time_limit`]. [`configured`] builds the gateway that a configuration describes.
//! [`in_flight`] counts calls, for background work that waits until the models are idle.

mod circuit_breaker;
mod configured;
mod fallback;
mod in_flight;
mod layer;
mod meter;
mod permit_ledger;
mod permits;
mod queue;
mod retry;
mod shared_permits;
mod time_limit;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelInfo, ModelTier};
use rockbot_core::support::run_until_stopped;
use tokio::time::sleep_until;
use tower::{Layer, Service};

pub use self::circuit_breaker::CircuitBreaker;
pub use self::fallback::Fallback;
pub use self::layer::{ChatService, GatewayLayer, GatewayLayerService};
pub use self::meter::Meter;
pub use self::permits::Permits;
pub use self::retry::Retry;
pub use self::shared_permits::SharedPermits;

use self::in_flight::InFlight;
use self::layer::{LayeredClient, ServiceClient};
use crate::limits::{PermitLimits, TimeLimit};

/// A [`ChatClient`] in front of all models, so that its limits hold for every call of an agent.
///
/// [`ModelGateway::new`] has [`Retry`], [`Permits`], [`Meter`] and [`TimeLimit`], in this order:
/// a call that waits to be tried again holds no permit, and the time limit does not count the
/// time that a call waits for a permit. [`ModelGateway::builder`] takes others, in any order, and
/// any tower layer; and each of them fits a stack of tower layers elsewhere, such as
/// `AgentHostBuilder::chat_layer`. [`ModelGateway::from_config`] builds the gateway that a
/// configuration describes. Copies share everything.
///
/// ```
/// use rockbot_core::chat::Ledger;
/// use rockbot_llm::{ChatTiers, Fallback, Meter, ModelGateway, OfflineModel, PermitLimits, PriceTable};
///
/// let ledger = Ledger::new(PriceTable::default());
/// let gateway = ModelGateway::builder(ChatTiers::new(OfflineModel::new()))
///     .fallback(Fallback::to("local", OfflineModel::new()))
///     // One call at a time.
///     .default_layers(PermitLimits::serialized(), Meter::new().ledger(ledger.clone()))
///     .build();
/// assert!(gateway.is_idle());
/// ```
///
/// A call ends when it is cancelled or its deadline passes, wherever it is.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use rockbot_core::CallContext;
/// use rockbot_core::chat::{ChatCall, ChatClient, ChatRequest};
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_llm::{ModelGateway, Retry, TimeLimit};
/// use tower::limit::ConcurrencyLimitLayer;
///
/// let gateway = ModelGateway::builder(ScriptedModel::new().says("Hello."))
///     .layer(Retry::default())
///     // Each attempt has a minute …
///     .layer(TimeLimit::of(Duration::from_secs(60)))
///     // … and there is a layer of tower's own.
///     .tower_layer(ConcurrencyLimitLayer::new(100))
///     .build();
///
/// let call = ChatCall::new(ChatRequest::default(), CallContext::new("session"));
/// assert_eq!(gateway.chat(call).await?.text, "Hello.");
/// assert!(gateway.is_idle());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ModelGateway(Arc<Inner>);

struct Inner {
    stack: Arc<dyn ChatClient>,
    /// Calls in flight, including calls that wait for a permit or a retry.
    calls: InFlight,
}

impl ModelGateway {
    /// Creates a gateway with the default layers around `client`.
    pub fn new(client: impl ChatClient) -> Self {
        Self::builder(client)
            .default_layers(PermitLimits::default(), Meter::default())
            .build()
    }

    /// Creates a builder without layers around `client`.
    pub fn builder(client: impl ChatClient) -> ModelGatewayBuilder {
        ModelGatewayBuilder {
            client: Arc::new(client),
            items: Vec::new(),
        }
    }

    /// Returns `true` if no call is in flight, so that background work may begin.
    pub fn is_idle(&self) -> bool {
        self.0.calls.count() == 0
    }

    /// Waits until no call is in flight. Cancellation-safe.
    pub async fn idle(&self) {
        self.0.calls.none().await;
    }
}

#[async_trait]
impl ChatClient for ModelGateway {
    /// Returns the description of the first model, with `busy` set while a call of this gateway is in
    /// flight.
    fn describe(&self, tier: ModelTier) -> ModelInfo {
        let info = self.0.stack.describe(tier);
        let is_busy = info.is_busy || !self.is_idle();
        info.with_busy(is_busy)
    }

    async fn chat(&self, mut call: ChatCall) -> Result<ChatResponse, ChatError> {
        let _under_way = self.0.calls.begin();
        // Layers may be the program's code, and let a call run on when they are dropped.
        if std::mem::take(&mut call.is_supervised) {
            return self.0.stack.chat(call).await;
        }
        let cx = call.cx.clone();
        // Checked here too, not in layers alone: a call may wait for a permit or a retry when its caller
        // loses interest.
        let late = async {
            match cx.deadline() {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let stop = async {
            tokio::select! {
                biased;
                () = cx.cancellation().cancelled() => ChatError::new(ChatErrorKind::Cancelled, "the model call was cancelled"),
                () = late => ChatError::new(ChatErrorKind::TimedOut, "the model did not answer before the deadline of the work"),
            }
        };
        run_until_stopped(self.0.stack.chat(call), stop)
            .await
            .unwrap_or_else(Err)
    }
}

impl fmt::Debug for ModelGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelGateway")
            .field("calls", &self.0.calls.count())
            .finish_non_exhaustive()
    }
}

type Wrap = Arc<dyn Fn(Arc<dyn ChatClient>) -> Arc<dyn ChatClient> + Send + Sync>;

/// A builder of a [`ModelGateway`]. The layer that is added first sees each call first.
#[must_use]
pub struct ModelGatewayBuilder {
    client: Arc<dyn ChatClient>,
    items: Vec<Item>,
}

enum Item {
    Wrap(Wrap),
    Fallback(Fallback),
}

impl ModelGatewayBuilder {
    /// Adds a layer, inside of the layers so far.
    pub fn layer(self, layer: impl GatewayLayer) -> Self {
        self.item(Item::Wrap(wrap_in(Arc::new(layer))))
    }

    /// Adds a tower layer, inside of the layers so far. Costs two boxed futures a call more than
    /// [`layer`](Self::layer).
    pub fn tower_layer<L>(self, layer: L) -> Self
    where
        L: Layer<ChatService> + Send + Sync + 'static,
        L::Service: Service<ChatCall, Response = ChatResponse, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        self.item(Item::Wrap(Arc::new(move |next| {
            Arc::new(ServiceClient::new(layer.layer(ChatService(next.clone())), Some(next)))
        })))
    }

    /// Adds other models for when the first model fails. Layers that are added after it apply to each
    /// of the models.
    pub fn fallback(self, fallback: Fallback) -> Self {
        self.item(Item::Fallback(fallback))
    }

    /// Adds the layers of [`ModelGateway::new`], inside of the layers so far: [`Retry`], [`Permits`]
    /// with `limits`, `meter`, and [`TimeLimit`].
    pub fn default_layers(self, limits: PermitLimits, meter: Meter) -> Self {
        self.layer(Retry::default())
            .layer(Permits::new(limits))
            .layer(meter)
            .layer(TimeLimit::default())
    }

    /// Builds the gateway.
    pub fn build(self) -> ModelGateway {
        // From the inside out. The other models of a fallback get copies of every layer inside of it.
        let mut stack = self.client;
        let mut inside = Vec::<Wrap>::new();
        for item in self.items.into_iter().rev() {
            let wrap: Wrap = match item {
                Item::Wrap(wrap) => wrap,
                Item::Fallback(fallback) => {
                    let others = fallback.around_others(|other| inside.iter().fold(other, |next, wrap| wrap(next)));
                    wrap_in(Arc::new(others))
                }
            };
            stack = wrap(stack);
            inside.push(wrap);
        }
        ModelGateway(Arc::new(Inner {
            stack,
            calls: InFlight::default(),
        }))
    }

    fn item(mut self, item: Item) -> Self {
        self.items.push(item);
        self
    }
}

fn wrap_in(layer: Arc<dyn GatewayLayer>) -> Wrap {
    Arc::new(move |next| {
        Arc::new(LayeredClient {
            layer: layer.clone(),
            next,
        })
    })
}

impl fmt::Debug for ModelGatewayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelGatewayBuilder")
            .field("layers", &self.items.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
