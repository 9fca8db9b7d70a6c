//! The agents as models.

use axum::Json;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::door::{Caller, UrlPath};
use crate::error::WebError;

/// Lists the host's own agent, and the agents beside it that users may ask.
pub(super) async fn list(caller: Caller) -> Json<Value> {
    let data: Vec<_> = names(&caller).map(model).collect();
    Json(json!({"object": "list", "data": data}))
}

/// Shows one agent.
pub(super) async fn show(caller: Caller, UrlPath(name): UrlPath<String>) -> Result<Json<Value>, WebError> {
    match names(&caller).find(|known| *known == name) {
        Some(name) => Ok(Json(model(name))),
        None => Err(WebError::new(
            StatusCode::NOT_FOUND,
            "model_not_found",
            format!("there is no agent `{name}` here: GET /v1/models lists the agents"),
        )),
    }
}

fn names(caller: &Caller) -> impl Iterator<Item = &str> {
    let beside = caller.door.agents.iter().map(String::as_str);
    std::iter::once(&*caller.door.name).chain(beside)
}

fn model(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": "rockbot"})
}
