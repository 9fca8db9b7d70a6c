//! The agent's work for a user: turns that run, scheduled tasks, wisps, and what all of it cost.

use axum::Json;
use rockbot_core::chat::Spent;
use rockbot_core::context::Origin;
use rockbot_core::turn::{LiveTurnInfo, TurnQuery};
use rockbot_core::{SessionId, TurnId};
use serde::{Deserialize, Serialize};
#[cfg(feature = "wisps")]
use serde_json::Value;

#[cfg(feature = "wisps")]
use crate::door::UrlPath;
use crate::door::{Caller, UrlQuery};
use crate::error::WebError;
use crate::host_parts::offered;
#[cfg(feature = "schedules")]
use rockbot_tools::scheduling::{ScheduleError, TaskInfo};

/// Maximum length of the message of a turn in the list, in bytes.
const MAX_MESSAGE: usize = 300;

/// A turn that works or waits.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    turn: TurnId,
    session: SessionId,
    origin: Origin,
    /// Turn that asked for this turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<TurnId>,
    /// Beginning of the message.
    message: String,
    /// `true` if the turn waits for decisions about its calls.
    is_parked: bool,
}

#[derive(Serialize)]
pub(super) struct Runs {
    runs: Vec<Run>,
}

/// Lists the turns of the user that work or wait, whatever started them.
pub(super) async fn runs(caller: Caller) -> Json<Runs> {
    let query = TurnQuery::default().with_principal(caller.principal.clone());
    let mut runs: Vec<_> = caller.door.turns.live(&query).iter().map(run).collect();
    runs.sort_by(|one, other| (&one.session, &one.turn).cmp(&(&other.session, &other.turn)));
    Json(Runs { runs })
}

fn run(live: &LiveTurnInfo) -> Run {
    let request = &live.request;
    let mut message = request.content.text().into_owned();
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    Run {
        turn: live.turn.clone(),
        session: request.session.clone(),
        origin: request.origin,
        parent: request.parent.as_ref().map(|parent| parent.turn.clone()),
        message,
        is_parked: live.is_parked,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CostQuery {
    session: Option<SessionId>,
}

/// Tokens and cost since the host has started.
#[derive(Serialize)]
pub(super) struct Costs {
    /// Of all the user's turns.
    total: Spent,
    /// Of the session that was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Spent>,
}

/// Returns the tokens and the cost of the user's turns.
pub(super) async fn costs(caller: Caller, UrlQuery(query): UrlQuery<CostQuery>) -> Result<Json<Costs>, WebError> {
    let ledger = offered(caller.door.parts.ledger.as_ref(), "ledger of costs")?;
    let of_session = |session| ledger.of_session(&caller.principal, &session);
    Ok(Json(Costs {
        total: ledger.of_principal(&caller.principal),
        session: query.session.map(of_session),
    }))
}

#[cfg(feature = "schedules")]
#[derive(Serialize)]
pub(super) struct Tasks {
    tasks: Vec<TaskInfo>,
}

/// Lists the scheduled tasks of the user.
#[cfg(feature = "schedules")]
pub(super) async fn schedules(caller: Caller) -> Result<Json<Tasks>, WebError> {
    let schedules = offered(caller.door.parts.schedules.as_ref(), "scheduled tasks")?;
    let tasks = schedules.of(caller.principal).tasks().await;
    let tasks = tasks.map_err(|error| match error {
        ScheduleError::NotStarted => WebError::unavailable("not_started", error.to_string()),
        error => WebError::internal(&error),
    });
    Ok(Json(Tasks { tasks: tasks? }))
}

#[cfg(feature = "wisps")]
#[derive(Serialize)]
pub(super) struct Wisps {
    /// The newest 30 as a table in Markdown; none without a wisp.
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<String>,
}

/// Returns the wisps of the user that ended last.
#[cfg(feature = "wisps")]
pub(super) async fn wisps(caller: Caller) -> Result<Json<Wisps>, WebError> {
    let wisps = offered(caller.door.parts.wisps.as_ref(), "wisps")?;
    let table = wisps.of(caller.principal).table(false);
    Ok(Json(Wisps { table }))
}

/// Returns a wisp, with its definition if it succeeded.
#[cfg(feature = "wisps")]
pub(super) async fn wisp(caller: Caller, UrlPath(id): UrlPath<String>) -> Result<Json<Value>, WebError> {
    let wisps = offered(caller.door.parts.wisps.as_ref(), "wisps")?;
    let shown = wisps.of(caller.principal).show(&id);
    let shown = shown.and_then(|text| serde_json::from_str(&text).ok());
    shown
        .map(Json)
        .ok_or_else(|| WebError::not_found("there is no such wisp"))
}
