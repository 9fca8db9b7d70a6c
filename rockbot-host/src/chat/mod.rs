//! Asking models: the user's layers, then the client, with panics caught; each call with its span and its metrics.

mod background_client;
mod content;
mod meters;
mod span;

use std::fmt;
use std::future::{Future as _, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use rockbot_core::BoxError;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelInfo, ModelTier};

pub(crate) use background_client::{BackgroundClient, BackgroundHost};

use crate::layer::{Layers, Stack, call};
use meters::{ChatMeters, ModelIds};
use span::ObservedCall;

/// The one way to a model.
pub(crate) struct GuardedChat {
    client: Arc<dyn ChatClient>,
    stack: Option<Stack<ChatCall, ChatResponse>>,
    meters: ChatMeters,
    captures_content: bool,
}

impl fmt::Debug for GuardedChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedChat")
            .field("layered", &self.stack.is_some())
            .finish_non_exhaustive()
    }
}

impl GuardedChat {
    pub(crate) fn new(client: Arc<dyn ChatClient>, layers: Layers<ChatCall, ChatResponse>) -> Self {
        let stack = layers.around(&Arc::new(client.clone()), |client, call: ChatCall| async move {
            client.chat(call).await.map_err(BoxError::from)
        });
        Self {
            client,
            stack,
            meters: ChatMeters::default(),
            captures_content: false,
        }
    }

    /// With spans that say what was asked and answered, if `captures_content`.
    pub(crate) fn capture_content(mut self, captures_content: bool) -> Self {
        self.captures_content = captures_content;
        self
    }

    /// Returns what the client knows about the model that it asks for `tier`.
    pub(crate) fn describe(&self, tier: ModelTier) -> ModelInfo {
        self.client.describe(tier)
    }

    /// Returns the id of the model that is asked for `tier`, if the client knows it.
    pub(crate) fn model_of(&self, tier: ModelTier) -> Option<Arc<str>> {
        self.client.describe(tier).model
    }

    /// Returns `true` if the client counts no call in flight, for any tier.
    pub(crate) fn is_idle(&self) -> bool {
        self.client.is_idle()
    }

    /// Asks once, however often layers and gateways try. A panic of theirs is an error like any other.
    pub(crate) async fn ask(&self, mut request: ChatCall) -> Result<ChatResponse, ChatError> {
        let tier = request.request.tier.unwrap_or_default();
        let info = self.client.describe(tier);
        let model = ModelIds {
            provider: info.provider,
            asked: info.model,
            answered: None,
        };
        let observed = ObservedCall::begin(&self.meters, self.captures_content, model, &mut request);
        let mut asking = pin!(self.isolated(request));
        // Entered by hand: moving the call into a span would double what every turn has to carry.
        let answer = poll_fn(|cx| observed.span.in_scope(|| asking.as_mut().poll(cx))).await;
        observed.end(&answer);
        answer
    }

    async fn isolated(&self, request: ChatCall) -> Result<ChatResponse, ChatError> {
        let answer = match &self.stack {
            None => AssertUnwindSafe(self.client.chat(request)).catch_unwind().await,
            Some(stack) => {
                AssertUnwindSafe(call(stack, request).map(|answer| answer.map_err(layer_error)))
                    .catch_unwind()
                    .await
            }
        };
        answer.unwrap_or_else(|_| {
            Err(ChatError::new(
                ChatErrorKind::Other,
                "the model client broke down; its log says why",
            ))
        })
    }
}

/// A stock time-out layer's error is a time-out.
fn layer_error(error: BoxError) -> ChatError {
    if error.is::<tower::timeout::error::Elapsed>() {
        return ChatError::new(
            ChatErrorKind::TimedOut,
            "the model took longer than a time-out layer allows",
        )
        .with_source(error);
    }
    ChatError::from(error)
}
