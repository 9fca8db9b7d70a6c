//! Sessions and their conversations.

use axum::Json;
use axum::http::StatusCode;
use rockbot_core::store::{ConversationQuery, ConversationTurn};
use rockbot_core::{SessionId, TurnId};
use serde::{Deserialize, Serialize};

use crate::door::{Caller, UrlPath, UrlQuery, check_id};
use crate::error::WebError;

/// Maximum number of entries of a page.
const MAX_PAGE: usize = 500;

#[derive(Serialize)]
pub(super) struct Sessions {
    sessions: Vec<SessionId>,
}

#[derive(Serialize)]
pub(super) struct NewSession {
    session: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PageQuery {
    before: Option<TurnId>,
    limit: Option<usize>,
}

#[derive(Serialize)]
pub(super) struct History {
    entries: Vec<ConversationTurn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier: Option<TurnId>,
}

/// Lists the sessions that have a conversation.
pub(super) async fn list(caller: Caller) -> Result<Json<Sessions>, WebError> {
    let sessions = caller.door.memory.sessions(&caller.principal).await?;
    Ok(Json(Sessions { sessions }))
}

/// Chooses the id of a new session.
pub(super) async fn create(caller: Caller) -> (StatusCode, Json<NewSession>) {
    let session = caller.door.ids.next_id();
    (StatusCode::CREATED, Json(NewSession { session }))
}

/// Deletes the conversation of a session.
pub(super) async fn forget(caller: Caller, UrlPath(session): UrlPath<String>) -> Result<StatusCode, WebError> {
    check_id("the session", &session)?;
    let session = SessionId::from(session);
    caller.door.memory.clear(&caller.principal, &session).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns a page of the conversation of a session.
pub(super) async fn history(
    caller: Caller,
    UrlPath(session): UrlPath<String>,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Result<Json<History>, WebError> {
    check_id("the session", &session)?;
    let limit = query.limit.map(|limit| limit.min(MAX_PAGE));
    let mut wanted = ConversationQuery::new().with_before(query.before);
    wanted.limit = limit.unwrap_or(wanted.limit);
    let session = SessionId::from(session);
    let page = caller.door.memory.page(&caller.principal, &session, &wanted).await?;
    Ok(Json(History {
        entries: page.entries,
        earlier: page.earlier,
    }))
}
