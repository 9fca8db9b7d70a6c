//! Approvals: the calls that wait for the user, and the user's decisions.

use axum::Json;
use axum::http::StatusCode;
use rockbot_core::turn::{Approval, ApprovalRequest};
use serde::Serialize;

use crate::door::{Caller, JsonBody};
use crate::error::WebError;

#[derive(Serialize)]
pub(super) struct Approvals {
    approvals: Vec<ApprovalRequest>,
}

/// Lists the calls that wait for a decision of the user.
pub(super) async fn list(caller: Caller) -> Json<Approvals> {
    let approvals = caller.door.turns.approvals(&caller.principal);
    Json(Approvals { approvals })
}

/// Records a decision. The user who decides is the user who signed in, whatever the body says.
pub(super) async fn decide(caller: Caller, JsonBody(mut decision): JsonBody<Approval>) -> Result<StatusCode, WebError> {
    decision.user_id = None;
    caller.door.turns.decide(decision, &caller.principal).await?;
    Ok(StatusCode::NO_CONTENT)
}
