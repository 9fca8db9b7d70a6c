//! The part that tells a program where its agent is served, or serves the agent from a server of
//! the program's own.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::middleware::from_fn_with_state;

use crate::door::{DoorSlot, admit};
use crate::{ag_ui, api, openai, page};

/// The place where a host's agent is served over HTTP. Cheap to clone.
///
/// A host with a [`WebServer`](crate::WebServer) provides it as a part.
#[derive(Debug, Clone, Default)]
pub struct WebEndpoint {
    pub(crate) address: Arc<OnceLock<SocketAddr>>,
    pub(crate) door: DoorSlot,
}

impl WebEndpoint {
    /// Returns the address that the server listens at, or `None` before the host has started, and
    /// for a server that a program mounts.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address.get().copied()
    }

    /// Returns all routes but the page, for a program that has an axum app of its own: `/api`, `/v1`
    /// and `/agui`.
    /// The routes check names, tokens and bounds as the built-in server does; before the host has
    /// started they answer 503. The program bounds the connections. A name that a proxy gives is
    /// taken only if the app was served with `into_make_service_with_connect_info::<SocketAddr>()`.
    pub fn router(&self) -> Router {
        let all = self.api_router().merge(self.openai_router());
        all.merge(self.ag_ui_router())
    }

    /// Returns the routes below `/api` alone: sessions, messages, events, approvals.
    pub fn api_router(&self) -> Router {
        self.admitted(Router::new().nest("/api", api::routes()))
    }

    /// Returns the routes of OpenAI's interfaces below `/v1` alone: models, chat completions, responses.
    pub fn openai_router(&self) -> Router {
        self.admitted(Router::new().nest("/v1", openai::routes()))
    }

    /// Returns the routes of AG-UI alone: `/agui`, and `/agui/{agent}` for an agent beside the host's
    /// own.
    pub fn ag_ui_router(&self) -> Router {
        self.admitted(ag_ui::routes())
    }

    /// Returns the page for people: `/`, and its files below `/page`. It asks the routes below `/api`
    /// beside it, so a program that nests it nests [`api_router`](Self::api_router) at the same path,
    /// with a slash at the end: `.nest("/agent/", …)`. The page has no secrets, so it is served before
    /// a user has signed in.
    pub fn page_router(&self) -> Router {
        page::routes()
    }

    fn admitted(&self, routes: Router) -> Router {
        routes.route_layer(from_fn_with_state(self.door.clone(), admit))
    }
}
