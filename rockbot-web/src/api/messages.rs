//! Messages: accepted with 202, or answered by the events of their turn.

use axum::Json;
use axum::http::header::{ACCEPT, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use rockbot_core::chat::ModelTier;
use rockbot_core::content::Content;
use rockbot_core::turn::BusyPolicy;
use serde::Deserialize;

use super::events::{Accepted, ApiEvents, accepted};
use crate::door::{Caller, JsonBody, UrlPath, text_of};
use crate::error::WebError;
use crate::parts::check_said;
use crate::sse;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewMessage {
    content: Content,
    agent: Option<String>,
    tier: Option<ModelTier>,
    #[serde(default)]
    busy: BusyPolicy,
}

/// Accepts a message. The same `Idempotency-Key` in the same session is the same message.
pub(super) async fn post(
    caller: Caller,
    UrlPath(session): UrlPath<String>,
    headers: HeaderMap,
    JsonBody(message): JsonBody<NewMessage>,
) -> Result<Response, WebError> {
    check_said(&message.content)?;
    let permit = if wants_events(&headers) {
        Some(caller.take_stream()?)
    } else {
        None
    };
    caller.count_message().await?;
    let id = match text_of(&headers, "idempotency-key") {
        Some(key) => key.to_owned(),
        None => caller.door.ids.next_id(),
    };
    let request = caller
        .request(message.agent.as_deref(), &session, &id, message.content)?
        .with_tier(message.tier)
        .with_busy(message.busy);
    let told = Accepted {
        turn: request.turn_id(),
        session: request.session.clone(),
        message: request.message.clone(),
    };
    let turn = caller.door.turns.start(request).await?;
    if let Some(permit) = permit {
        let events = caller.door.turns.events(&turn, 0).await?;
        let form = ApiEvents::new(&caller);
        return Ok(sse::stream((&caller, permit), events, form, [accepted(&told)]));
    }
    let mut response = (StatusCode::ACCEPTED, Json(&told)).into_response();
    // Relative to this address, so that it holds below any path that a program mounts the routes at.
    if let Ok(location) = HeaderValue::from_str(&format!("../../turns/{turn}")) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

fn wants_events(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accepted| accepted.contains("text/event-stream"))
}
