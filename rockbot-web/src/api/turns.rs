//! Turns: their state, their events, their cancellation.

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use rockbot_core::turn::{ApprovalRequest, TurnError, TurnOutcome, TurnQuery};
use rockbot_core::{SessionId, TurnId};
use serde::Serialize;

use super::events::{ApiEvents, LastEvent, restarted};
use crate::door::{Caller, UrlPath, text_of};
use crate::error::WebError;
use crate::sse;

/// The state of a turn.
#[derive(Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum TurnState {
    /// The turn works, or waits for its session.
    Working { turn: TurnId, session: SessionId },
    /// The turn waits for decisions about these calls.
    Parked {
        turn: TurnId,
        session: SessionId,
        approvals: Vec<ApprovalRequest>,
    },
    /// The turn has ended.
    Ended { turn: TurnId, outcome: Box<TurnOutcome> },
}

/// Returns the state of a turn.
pub(super) async fn state(caller: Caller, UrlPath(turn): UrlPath<String>) -> Result<Json<TurnState>, WebError> {
    let turn = caller.turn(&turn).await?;
    let turns = &caller.door.turns;
    let live = turns.live(&TurnQuery::default());
    let Some(live) = live.into_iter().find(|live| live.turn == turn) else {
        let outcome = Box::new(turns.outcome(&turn).await?);
        return Ok(Json(TurnState::Ended { turn, outcome }));
    };
    let session = live.request.session.clone();
    if !live.is_parked {
        return Ok(Json(TurnState::Working { turn, session }));
    }
    let mut approvals = turns.approvals(&caller.principal);
    approvals.retain(|approval| approval.turn == turn);
    Ok(Json(TurnState::Parked {
        turn,
        session,
        approvals,
    }))
}

/// Returns the events of a turn, after the event that the client has read last.
pub(super) async fn events(
    caller: Caller,
    UrlPath(turn): UrlPath<String>,
    headers: HeaderMap,
) -> Result<Response, WebError> {
    let turn = caller.turn(&turn).await?;
    let last = text_of(&headers, "last-event-id").map(|id| LastEvent::read(id, &caller.door.epoch));
    let (after, first) = match last {
        // A browser stops to connect again then.
        Some(LastEvent::End) => return Ok(StatusCode::NO_CONTENT.into_response()),
        Some(LastEvent::At(sequence)) => (sequence, Vec::new()),
        Some(LastEvent::Earlier) => (0, vec![restarted()]),
        None => (0, Vec::new()),
    };
    let permit = caller.take_stream()?;
    let events = caller.door.turns.events(&turn, after).await?;
    Ok(sse::stream((&caller, permit), events, ApiEvents::new(&caller), first))
}

/// Cancels a turn that works or waits for a person.
pub(super) async fn cancel(caller: Caller, UrlPath(turn): UrlPath<String>) -> Result<StatusCode, WebError> {
    let turn = caller.turn(&turn).await?;
    match caller.door.turns.cancel(&turn).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(TurnError::NotFound(_)) => Err(WebError::new(
            StatusCode::CONFLICT,
            "turn_ended",
            "the turn has ended: there is nothing to cancel",
        )),
        Err(error) => Err(error.into()),
    }
}
