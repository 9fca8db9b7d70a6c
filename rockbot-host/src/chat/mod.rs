//! The host's guarded access to models.
//!
//! A call passes the user's tower layers and then the model client. Around both, panics are
//! caught and the call gets its span and its metrics (`span`, `meters`). Turns and background
//! work use the same [`GuardedChat`].

mod background_client;
mod content;
mod meters;
mod span;

use std::fmt;
use std::future::{Future as _, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::{FutureExt, TryFutureExt};
use rockbot_core::BoxError;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelInfo, ModelTier, WatchedDeltas,
};
use rockbot_core::support::caught;

pub(crate) use background_client::{BackgroundClient, BackgroundHost};

use crate::layer::{Layers, Stack, call};
use meters::{ChatMeters, ModelIds};
use span::{ObservedCall, note_settings};

/// The client of a call through layers that were put around another client.
struct CalledClient(Arc<dyn ChatClient>);

/// The guarded access to the model client of a host.
pub(crate) struct GuardedChat {
    client: Arc<dyn ChatClient>,
    /// `true` if the layers were put around another client.
    is_beside: bool,
    /// `None` without user layers: then the client is called directly.
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
    /// Creates the guarded access to `client` through `layers`.
    pub(crate) fn new(client: Arc<dyn ChatClient>, layers: Layers<ChatCall, ChatResponse>) -> Self {
        let stack = layers.around(&Arc::new(client.clone()), |client, call: ChatCall| async move {
            let beside = call.cx.extension().map(|CalledClient(beside)| beside.clone());
            let client = beside.unwrap_or_else(|| (*client).clone());
            // A layer may attempt a call again, and the reader must not see the text of both attempts.
            WatchedDeltas::reset_earlier(&call);
            let tier = call.request.tier.unwrap_or_default();
            let mut response = client.chat(call).await.map_err(BoxError::from)?;
            // A layer may have chosen another tier than the turn, and the answer has the price of
            // that tier.
            response.tier = Some(tier);
            Ok(response)
        });
        Self {
            client,
            is_beside: false,
            stack,
            meters: ChatMeters::default(),
            captures_content: false,
        }
    }

    /// Creates the guarded access to another client, through the same layers.
    pub(crate) fn beside(&self, client: Arc<dyn ChatClient>) -> Self {
        Self {
            client,
            is_beside: true,
            stack: self.stack.clone(),
            meters: ChatMeters::default(),
            captures_content: self.captures_content,
        }
    }

    /// Sets whether spans record the messages of requests and answers. Default `false`, since these
    /// are private.
    pub(crate) fn capture_content(mut self, captures_content: bool) -> Self {
        self.captures_content = captures_content;
        self
    }

    /// Returns the client's knowledge of the model that it asks for `tier`.
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

    /// Asks the model and records one span, however often layers and gateways retry.
    ///
    /// # Errors
    ///
    /// Returns the error of the client or of a layer; a panic of either is an error, too.
    pub(crate) async fn ask(&self, mut request: ChatCall) -> Result<ChatResponse, ChatError> {
        let tier = request.request.tier.unwrap_or_default();
        let info = self.client.describe(tier);
        let model = ModelIds {
            provider: info.provider,
            asked: info.model,
            answered: None,
        };
        let observed = ObservedCall::begin(&self.meters, self.captures_content, model, &mut request);
        if !observed.span.is_disabled() {
            let settings = request.request.settings_over(info.settings.as_deref());
            note_settings(&observed.span, &settings);
        }
        let mut asking = pin!(self.isolated(request));
        // The span is entered by hand at each poll: `instrument` would move the call into another
        // future, and double the size that every turn has to carry.
        let answer = poll_fn(|cx| observed.span.in_scope(|| asking.as_mut().poll(cx))).await;
        observed.end(&answer);
        let mut response = answer?;
        response.tier = response.tier.filter(|asked| *asked != tier);
        let tier = response.tier.unwrap_or(tier);
        Ok(self.client.name_model(response, tier))
    }

    /// Calls the stack or the client, and catches panics.
    async fn isolated(&self, mut request: ChatCall) -> Result<ChatResponse, ChatError> {
        let answer = match &self.stack {
            None => AssertUnwindSafe(self.client.chat(request)).catch_unwind().await,
            Some(stack) => {
                // Layers are the program's code, and may let a call run on when they are dropped.
                request.is_supervised = false;
                if self.is_beside {
                    request.cx = request.cx.with_extension(CalledClient(self.client.clone()));
                }
                WatchedDeltas::attach(&mut request);
                AssertUnwindSafe(call(stack, request).map_err(ChatError::from))
                    .catch_unwind()
                    .await
            }
        };
        caught(answer).unwrap_or_else(|_| {
            Err(ChatError::new(
                ChatErrorKind::Other,
                "the model client panicked; see its log",
            ))
        })
    }
}
