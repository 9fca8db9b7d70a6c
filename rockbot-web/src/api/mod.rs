//! The interface of our own, below `/api`: sessions, messages, turns and their events, approvals,
//! media.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/sessions` | the sessions of the user that have a conversation |
//! | `POST /api/sessions` | 201 with the id of a new session; it has a conversation after its first message |
//! | `DELETE /api/sessions/{session}` | 204 once the conversation is deleted |
//! | `GET /api/sessions/{session}/history` | a page of the conversation; `?before=TURN&limit=N` pages back |
//! | `POST /api/sessions/{session}/messages` | 202 with the turn, or its events with `Accept: text/event-stream` |
//! | `GET /api/turns/{turn}` | the state of a turn, and its outcome once it has ended |
//! | `GET /api/turns/{turn}/events` | its events; with `Last-Event-ID` the events after it |
//! | `POST /api/turns/{turn}/cancel` | 204 once the cancellation is recorded |
//! | `GET /api/approvals` | the calls that wait for a decision of the user |
//! | `POST /api/approvals` | 204 once the decision is recorded |
//! | `GET /api/media/{digest}` | the bytes of an image or a file; `?type=image/png` names its type |

mod approvals;
mod events;
mod media;
mod messages;
mod sessions;
mod turns;

use axum::Router;
use axum::routing::{delete, get, post};

/// Returns the routes, without the part `/api` of their paths.
pub(crate) fn routes() -> Router {
    Router::new()
        .route("/sessions", get(sessions::list).post(sessions::create))
        .route("/sessions/{session}", delete(sessions::forget))
        .route("/sessions/{session}/history", get(sessions::history))
        .route("/sessions/{session}/messages", post(messages::post))
        .route("/turns/{turn}", get(turns::state))
        .route("/turns/{turn}/events", get(turns::events))
        .route("/turns/{turn}/cancel", post(turns::cancel))
        .route("/approvals", get(approvals::list).post(approvals::decide))
        .route("/media/{digest}", get(media::bytes))
}
