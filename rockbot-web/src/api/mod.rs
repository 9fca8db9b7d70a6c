//! The interface of our own, below `/api`: sessions, messages, turns and their events, approvals,
//! media, announcements, and a look into what the agent knows and does for the user.
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
//! | `GET /api/announcements` | messages that the agent said unasked, until they are dismissed |
//! | `GET /api/announcements/events` | the same as events, with new and dismissed announcements |
//! | `DELETE /api/announcements/{id}` | 204 once the announcement is dismissed |
//! | `GET /api/me` | the user, and the parts below that the host has |
//! | `GET /api/search?query=` | entries of all the user's conversations that match, best first |
//! | `GET /api/runs` | the turns of the user that work or wait, whatever started them |
//! | `GET /api/costs?session=` | tokens and cost of the user's turns since the host has started |
//! | `GET /api/memories?query=&archived=&limit=` | memories, the newest or best first |
//! | `GET /api/skills?query=`, `GET /api/skills/{name}` | skills, and one with its instructions |
//! | `GET /api/rules` | the standing rules and the time zone |
//! | `GET /api/working-memory?query=`, `GET /api/working-memory/{key}` | entries, and one with its whole text |
//! | `GET /api/schedules` | the scheduled tasks |
//! | `GET /api/wisps`, `GET /api/wisps/{id}` | the wisps that ended last, and one with its definition |
//! | `GET /api/dreams` | the plans of dreams, newest first |
//! | `POST /api/dreams/{plan}/apply`, `…/undo` | the plan as it is then; for operators alone |

mod announcements;
mod approvals;
#[cfg(feature = "dreams")]
mod dreams;
mod events;
mod knowledge;
mod me;
mod media;
mod messages;
mod search;
mod sessions;
mod turns;
mod work;

use axum::Router;
use axum::routing::{delete, get, post};

/// Returns the routes, without the part `/api` of their paths.
pub(crate) fn routes() -> Router {
    conversations().merge(insights()).merge(optional())
}

/// Returns the routes of conversations: asking, reading, deciding.
fn conversations() -> Router {
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
        .route("/announcements", get(announcements::list))
        .route("/announcements/events", get(announcements::events))
        .route("/announcements/{id}", delete(announcements::dismiss))
}

/// Returns the routes that look into what the agent knows and does for the user.
fn insights() -> Router {
    Router::new()
        .route("/me", get(me::show))
        .route("/search", get(search::history))
        .route("/runs", get(work::runs))
        .route("/costs", get(work::costs))
        .route("/memories", get(knowledge::memories))
        .route("/skills", get(knowledge::skills))
        .route("/skills/{*name}", get(knowledge::skill))
        .route("/rules", get(knowledge::rules))
        .route("/working-memory", get(knowledge::notes))
        .route("/working-memory/{*key}", get(knowledge::note))
}

/// Returns the routes of parts that the program may be built without.
fn optional() -> Router {
    let routes = Router::new();
    #[cfg(feature = "schedules")]
    let routes = routes.route("/schedules", get(work::schedules));
    #[cfg(feature = "wisps")]
    let routes = routes
        .route("/wisps", get(work::wisps))
        .route("/wisps/{id}", get(work::wisp));
    #[cfg(feature = "dreams")]
    let routes = routes
        .route("/dreams", get(dreams::list))
        .route("/dreams/{plan}/apply", post(dreams::apply))
        .route("/dreams/{plan}/undo", post(dreams::undo));
    routes
}
