//! The plans of dreams: users read theirs, operators apply and undo theirs.

use axum::Json;
use axum::http::StatusCode;
use rockbot_core::Timestamp;
use rockbot_memory::Dreams;
use rockbot_memory::dreams::{DreamError, DreamPass, DreamPlan, PlanState};
use serde::Serialize;

use crate::door::{Caller, UrlPath, check_id};
use crate::error::WebError;
use crate::host_parts::offered;

/// Maximum number of plans that are listed.
const MAX_LISTED: usize = 100;

/// A plan, for a person.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Plan {
    id: String,
    pass: DreamPass,
    created_at: Timestamp,
    state: PlanState,
    summary: String,
    /// Changes in words, a line each.
    changes: Vec<String>,
    notes: Vec<String>,
    can_be_applied: bool,
    can_be_undone: bool,
}

#[derive(Serialize)]
pub(super) struct Plans {
    plans: Vec<Plan>,
}

impl Plan {
    fn of(plan: &DreamPlan) -> Self {
        Self {
            id: plan.id.clone(),
            pass: plan.pass,
            created_at: plan.created_at,
            state: plan.state,
            summary: plan.summary.clone(),
            changes: plan.changes.iter().map(ToString::to_string).collect(),
            notes: plan.notes.clone(),
            can_be_applied: plan.can_be_applied(),
            can_be_undone: plan.state == PlanState::Applied,
        }
    }
}

/// Lists the newest plans about the user's knowledge, newest first.
pub(super) async fn list(caller: Caller) -> Result<Json<Plans>, WebError> {
    let plans = own(&caller)?.plans()?;
    let newest = plans.iter().rev().take(MAX_LISTED);
    Ok(Json(Plans {
        plans: newest.map(|plan| Plan::of(plan)).collect(),
    }))
}

/// Applies a plan, as an operator.
pub(super) async fn apply(caller: Caller, UrlPath(id): UrlPath<String>) -> Result<Json<Plan>, WebError> {
    let dreams = decided_by(&caller, &id)?;
    Ok(Json(Plan::of(&*dreams.apply(&id).await?)))
}

/// Undoes a plan, as an operator.
pub(super) async fn undo(caller: Caller, UrlPath(id): UrlPath<String>) -> Result<Json<Plan>, WebError> {
    let dreams = decided_by(&caller, &id)?;
    Ok(Json(Plan::of(&*dreams.undo(&id).await?)))
}

fn own(caller: &Caller) -> Result<Dreams, WebError> {
    let dreams = offered(caller.door.parts.dreams.as_ref(), "dreams")?;
    Ok(dreams.of(caller.principal.clone()))
}

/// Returns the plans of an operator, who decides about them.
fn decided_by(caller: &Caller, id: &str) -> Result<Dreams, WebError> {
    check_id("the id of the plan", id)?;
    let dreams = own(caller)?;
    if caller.is_operator() {
        Ok(dreams)
    } else {
        Err(WebError::new(
            StatusCode::FORBIDDEN,
            "operators_only",
            "only operators apply and undo dreams: the setting `WebServer.Operators` names them",
        ))
    }
}

impl From<DreamError> for WebError {
    fn from(error: DreamError) -> Self {
        let text = error.to_string();
        match error {
            DreamError::NotStarted => Self::unavailable("not_started", text),
            DreamError::NotFound(_) => Self::not_found(text),
            DreamError::State(_) | DreamError::Stale(_) => Self::new(StatusCode::CONFLICT, "conflict", text),
            DreamError::Store(error) => error.into(),
            error => Self::internal(&error),
        }
    }
}
