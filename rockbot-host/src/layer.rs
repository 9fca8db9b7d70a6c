//! The seam between the user's tower layers and the services of the framework.
//!
//! Turns, model calls, tool calls and messages each have a list of [`Layers`]. Building a host
//! wraps them around the framework's own function and erases the result into one [`Stack`].

use std::sync::Arc;

use rockbot_core::BoxError;
use tower::util::{BoxCloneSyncService, MapErrLayer};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

/// The service that layers wrap. Within a stack every error is a [`BoxError`], as tower's own
/// middleware produces it.
pub type Stack<Request, Response> = BoxCloneSyncService<Request, Response, BoxError>;

type Wrap<Request, Response> = Box<dyn FnOnce(Stack<Request, Response>) -> Stack<Request, Response> + Send>;

/// Layers in the order of their addition: the first layer is the outermost and sees the request
/// first.
pub(crate) struct Layers<Request, Response>(Vec<Wrap<Request, Response>>);

impl<Request, Response> Default for Layers<Request, Response> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<Request: Send + 'static, Response: Send + 'static> Layers<Request, Response> {
    /// Adds a layer inside the layers that were added before.
    pub(crate) fn add<L>(&mut self, layer: L)
    where
        L: Layer<Stack<Request, Response>> + Send + 'static,
        L::Service:
            Service<Request, Response = Response, Error: Into<BoxError>, Future: Send> + Clone + Send + Sync + 'static,
    {
        self.0.push(Box::new(move |inner| {
            let stack = ServiceBuilder::new()
                .layer(MapErrLayer::new(Into::into))
                .layer(layer)
                .service(inner);
            BoxCloneSyncService::new(stack)
        }));
    }

    /// Wraps the layers around `call` on `base`.
    ///
    /// Returns `None` without layers: callers then call `base` directly, which saves the boxed future
    /// of a stack.
    pub(crate) fn around<B, F, Fut>(self, base: &Arc<B>, call: F) -> Option<Stack<Request, Response>>
    where
        B: Send + Sync + 'static,
        F: Fn(Arc<B>, Request) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<Response, BoxError>> + Send + 'static,
    {
        if self.0.is_empty() {
            return None;
        }
        let base = base.clone();
        let service = BoxCloneSyncService::new(service_fn(move |request| call(base.clone(), request)));
        // Reversed: each step wraps the service so far, so the last layer to wrap is the outermost.
        Some(self.0.into_iter().rev().fold(service, |inner, wrap| wrap(inner)))
    }
}

/// Calls a stack once, after waiting until it is ready.
pub(crate) async fn call<Request, Response>(
    stack: &Stack<Request, Response>,
    request: Request,
) -> Result<Response, BoxError>
where
    Request: Send + 'static,
    Response: Send + 'static,
{
    // A clone per call: tower ties readiness to the handle that was polled.
    stack.clone().oneshot(request).await
}
