//! OpenAI's interfaces, below `/v1`: an agent used as a model, by any client that can name another
//! server.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/models`, `GET /v1/models/{model}` | the agents |
//! | `POST /v1/chat/completions` | an answer, or its chunks with `stream` |
//! | `POST /v1/responses` | a response, or its events with `stream` |
//! | `GET /v1/responses/{response}` | a response that was kept |
//!
//! The agent works with its own tools, and the client sees the answer alone. Tools of the client are
//! ignored, and their number is in the header `x-ignored-tools`: the protocol hands their results in
//! with a new request, which here is a new turn. A client that insists on a call is refused.

mod chat;
mod conversation;
mod models;
mod params;
mod responses;
mod usage;

use axum::Router;
use axum::routing::{get, post};

/// Returns the routes, without the part `/v1` of their paths.
pub(crate) fn routes() -> Router {
    Router::new()
        .route("/models", get(models::list))
        .route("/models/{model}", get(models::show))
        .route("/chat/completions", post(chat::create))
        .route("/responses", post(responses::create))
        .route("/responses/{response}", get(responses::show))
}
