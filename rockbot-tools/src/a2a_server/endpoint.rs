//! The part that tells a program where its agent is served, or serves the agent from a server of
//! the program's own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes};
use hyper::{Request, StatusCode};
use rockbot_core::BoxError;
use rockbot_core::layer::tower::Service;

use super::door::Door;
use super::reply::document;
use crate::http_server::Answer;

/// The place where a host's agent is served. Cheap to clone.
///
/// A host with [`A2aServer`](super::A2aServer) provides it as a part.
#[derive(Debug, Clone, Default)]
pub struct A2aEndpoint {
    pub(super) address: Arc<OnceLock<SocketAddr>>,
    pub(super) door: Arc<OnceLock<Arc<Door>>>,
}

impl A2aEndpoint {
    /// Returns the address that the server listens at, or `None` before the host has started, and
    /// for a server that a program mounts.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address.get().copied()
    }

    /// Returns the agent card as JSON, or `None` before the host has started.
    pub fn card(&self) -> Option<Bytes> {
        self.door.get().map(|door| door.operations.card.json.clone())
    }

    /// Returns the service that answers requests, for a program that has an HTTP server of its own.
    /// The service checks keys and names as the built-in server does. The program bounds the
    /// connections.
    pub fn router(&self) -> A2aRouter {
        A2aRouter(self.clone())
    }
}

/// A `tower::Service` of HTTP requests that serves the agent, such as below a path of an axum
/// router. Before the host has started it answers 503.
#[derive(Debug, Clone)]
pub struct A2aRouter(A2aEndpoint);

impl<B> Service<Request<B>> for A2aRouter
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let door = self.0.door.get().cloned();
        Box::pin(async move {
            Ok(match door {
                Some(door) => door.answer(request).await,
                None => document(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "text/plain",
                    "the agent has not started yet",
                ),
            })
        })
    }
}
