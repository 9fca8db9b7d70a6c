//! The user who has signed in, and the parts that the agent has for it.

use axum::Json;
use rockbot_core::Principal;
use serde::Serialize;

use crate::door::Caller;

/// The user, and what a page can offer to it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Me {
    principal: Principal,
    /// Name of the host's own agent.
    agent: String,
    /// Agents beside it that the user may ask.
    agents: Vec<String>,
    /// `true` if the user may apply and undo dreams.
    is_operator: bool,
    /// Routes whose part the host has.
    parts: Vec<&'static str>,
}

/// Tells who has signed in.
pub(super) async fn show(caller: Caller) -> Json<Me> {
    Json(Me {
        is_operator: caller.is_operator(),
        agent: caller.door.name.to_string(),
        agents: caller.door.agents.clone(),
        parts: caller.door.parts.names(),
        principal: caller.principal,
    })
}
