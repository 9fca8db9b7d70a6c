//! The binding of plain HTTP: the operation in the method and the path.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use serde::Serialize;
use serde_json::json;

use super::caller::A2aCaller;
use super::form::ItemForm;
use super::operations::Operations;
use super::reply::Reply;
use super::rpc::{no_extended_card, parsed};
use crate::a2a_wire::{A2aError, ListTasks, PushConfig, PushQuery, StreamItem, TaskQuery};

/// Media type of the binding.
pub(super) const MEDIA_TYPE: &str = "application/a2a+json";

/// An operation, as the method and the path name it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    Send,
    Stream,
    List,
    Get(&'a str),
    Cancel(&'a str),
    Subscribe(&'a str),
    Pushes(&'a str),
    Push(&'a str, &'a str),
    ExtendedCard,
}

impl<'a> Route<'a> {
    /// Finds the operation of a path. Returns `None` for an unknown path, and `Some(None)` for a
    /// path that exists with another method.
    pub(super) fn find(method: &Method, path: &'a str) -> Option<Option<Self>> {
        let (route, methods): (Self, &[Method]) = match path {
            "/message:send" => (Self::Send, &[Method::POST]),
            "/message:stream" => (Self::Stream, &[Method::POST]),
            "/tasks" => (Self::List, &[Method::GET]),
            "/extendedAgentCard" => (Self::ExtendedCard, &[Method::GET]),
            _ => {
                let task = path.strip_prefix("/tasks/").filter(|task| !task.is_empty())?;
                match (task.split_once('/'), task.rsplit_once(':')) {
                    (Some((id, "pushNotificationConfigs")), _) => (Self::Pushes(id), &[Method::GET, Method::POST]),
                    (Some((id, rest)), _) if rest.starts_with("pushNotificationConfigs/") => {
                        let config = &rest["pushNotificationConfigs/".len()..];
                        (Self::Push(id, config), &[Method::GET, Method::DELETE])
                    }
                    (Some(_), _) => return None,
                    (None, Some((id, "cancel"))) => (Self::Cancel(id), &[Method::POST]),
                    // The text of the specification says POST, its definition GET.
                    (None, Some((id, "subscribe"))) => (Self::Subscribe(id), &[Method::GET, Method::POST]),
                    (None, Some(_)) => return None,
                    (None, None) => (Self::Get(task), &[Method::GET]),
                }
            }
        };
        Some(methods.contains(method).then_some(route))
    }
}

/// Answers a request.
pub(super) async fn answer(
    operations: &Arc<Operations>,
    caller: &A2aCaller,
    (method, route): (&Method, Route<'_>),
    query: &str,
    body: &[u8],
) -> Reply {
    match perform(operations, caller, (method, route), query, body).await {
        Ok(reply) => reply,
        Err(error) => error_reply(&error),
    }
}

async fn perform(
    operations: &Arc<Operations>,
    caller: &A2aCaller,
    (method, route): (&Method, Route<'_>),
    query: &str,
    body: &[u8],
) -> Result<Reply, A2aError> {
    let of_task = |id: &str| -> Result<TaskQuery, A2aError> {
        Ok(TaskQuery {
            id: id.to_owned(),
            history_length: number(query, "historyLength")?,
        })
    };
    Ok(match route {
        Route::Send => {
            let task = operations.send(caller, (parsed(body, "body")?, false)).await?;
            written(&StreamItem::Task(task))
        }
        Route::Stream => {
            let stream = operations.send_stream(caller, (parsed(body, "body")?, false)).await?;
            Reply::Stream(Box::new(stream), ItemForm::Rest)
        }
        Route::Subscribe(id) => {
            let stream = operations.subscribe(caller, of_task(id)?).await?;
            Reply::Stream(Box::new(stream), ItemForm::Rest)
        }
        Route::List => written(&operations.list(caller, &listed(query)?).await?),
        Route::Get(id) => written(&operations.get(caller, &of_task(id)?).await?),
        Route::Cancel(id) => written(&operations.cancel(caller, &of_task(id)?).await?),
        Route::Pushes(id) if *method == Method::POST => {
            let config = PushConfig {
                task_id: id.to_owned(),
                ..parsed(body, "body")?
            };
            written(&operations.create_push(caller, config, false)?)
        }
        Route::Pushes(id) => written(&operations.list_pushes(caller, id)?),
        Route::Push(task, id) => {
            let query = PushQuery {
                task_id: task.to_owned(),
                id: id.to_owned(),
            };
            if *method == Method::DELETE {
                operations.delete_push(caller, &query)?;
                written(&json!({}))
            } else {
                written(&operations.find_push(caller, &query)?)
            }
        }
        Route::ExtendedCard => return Err(no_extended_card()),
    })
}

fn written(result: &impl Serialize) -> Reply {
    let body = serde_json::to_vec(result).expect("the protocol's objects have no maps with keys that are no text");
    Reply::Document {
        status: StatusCode::OK,
        kind: MEDIA_TYPE,
        body: body.into(),
    }
}

/// Writes an answer with an error.
pub(super) fn error_reply(error: &A2aError) -> Reply {
    let (status, name) = error.kind.http();
    let mut body = json!({"code": status, "status": name, "message": error.message});
    if let Some(details) = error.details() {
        body["details"] = details;
    }
    Reply::Document {
        status: StatusCode::from_u16(status).expect("the kinds of errors have statuses of HTTP"),
        kind: MEDIA_TYPE,
        body: json!({"error": body}).to_string().into(),
    }
}

fn listed(query: &str) -> Result<ListTasks, A2aError> {
    let status = value(query, "status").map(|state| serde_json::from_value(state.into()));
    Ok(ListTasks {
        context_id: value(query, "contextId"),
        status: status
            .transpose()
            .map_err(|_| A2aError::params("`status` is no state of a task"))?,
        page_size: number(query, "pageSize")?,
        page_token: value(query, "pageToken"),
        history_length: number(query, "historyLength")?,
        status_timestamp_after: value(query, "statusTimestampAfter"),
        include_artifacts: match value(query, "includeArtifacts").as_deref() {
            None => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(_) => return Err(A2aError::params("`includeArtifacts` is true or false")),
        },
    })
}

fn number(query: &str, name: &str) -> Result<Option<i32>, A2aError> {
    let number = value(query, name).map(|text| text.parse());
    number
        .transpose()
        .map_err(|_| A2aError::params(format!("`{name}` is a whole number")))
}

/// Returns the first value of a parameter in a query.
pub(super) fn value(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
    let value = value.replace('+', " ");
    Some(
        percent_encoding::percent_decode_str(&value)
            .decode_utf8_lossy()
            .into_owned(),
    )
}
