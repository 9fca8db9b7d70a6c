//! The binding of JSON-RPC: one address, the method in the body. Clients of 0.3 speak it, too.

use std::sync::Arc;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use serde_json::value::RawValue;

use super::caller::A2aCaller;
use super::form::{ItemForm, RpcForm};
use super::operations::Operations;
use super::reply::Reply;
use super::version::Version;
use crate::a2a_wire::{
    A2aError, ErrorKind, ListTasks, OldPushParams, OldPushQuery, PushConfig, PushQuery, SendMessage, StreamItem,
    old_push, v03,
};

/// Maximum length of the id of a request, in bytes: it is repeated in each item of a stream.
const MAX_ID: usize = 256;

/// The methods of version 1.0 about push notifications.
const OF_PUSH: [&str; 4] = [
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
];

#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(default, borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "given")]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) params: Option<&'a RawValue>,
}

/// Answers a request.
pub(super) async fn answer(
    operations: &Arc<Operations>,
    caller: &A2aCaller,
    version: Result<Version, A2aError>,
    body: &[u8],
) -> Reply {
    let envelope = match envelope(body) {
        Ok(envelope) => envelope,
        Err(error) => return error_reply(RawValue::NULL, &error),
    };
    let id = match envelope.id.filter(|id| is_id(id)) {
        Some(id) => id.to_owned(),
        None => {
            let error = invalid("`id` is a text, a whole number or null, of at most 256 bytes");
            return error_reply(RawValue::NULL, &error);
        }
    };
    let answered = async {
        let (version, method) = method_of(&envelope, version)?;
        let form = RpcForm::new(id.clone(), version);
        dispatch(operations, caller, form, &method, envelope.params).await
    };
    match answered.await {
        Ok(reply) => reply,
        Err(error) => error_reply(&id, &error),
    }
}

/// Reads the members of a request, each as its JSON.
pub(super) fn envelope(body: &[u8]) -> Result<Envelope<'_>, A2aError> {
    let unreadable = |error: &serde_json::Error| {
        A2aError::new(
            ErrorKind::Parse,
            format!(
                "the body is not JSON: see line {} column {}",
                error.line(),
                error.column()
            ),
        )
    };
    let is_object = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if !is_object {
        return match serde_json::from_slice::<IgnoredAny>(body) {
            Ok(_) => Err(invalid("the body is one object: batches are not served")),
            Err(error) => Err(unreadable(&error)),
        };
    }
    serde_json::from_slice(body).map_err(|error| {
        if error.is_data() {
            invalid("a member of the request is there twice")
        } else {
            unreadable(&error)
        }
    })
}

/// Reads a member that is present; `null` is a value, too.
fn given<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn invalid(message: &str) -> A2aError {
    A2aError::new(ErrorKind::InvalidRequest, message)
}

fn is_id(id: &RawValue) -> bool {
    let text = id.get();
    let is_whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    text.len() <= MAX_ID && (text.starts_with('"') || is_whole || text == "null")
}

/// Returns the version that a request speaks, and its method in 1.0.
fn method_of(envelope: &Envelope<'_>, version: Result<Version, A2aError>) -> Result<(Version, String), A2aError> {
    if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Err(invalid("`jsonrpc` is \"2.0\""));
    }
    let method: Option<String> = envelope
        .method
        .and_then(|method| serde_json::from_str(method.get()).ok());
    let method = method.ok_or_else(|| invalid("`method` is the name of a method"))?;
    let version = version?;
    let known = match version {
        Version::V1 => is_method(&method).then_some(&*method),
        Version::V03 => v03::method(&method),
    };
    match known {
        Some(known) => Ok((version, known.to_owned())),
        None if version == Version::V03 && is_method(&method) => Err(A2aError::new(
            ErrorKind::VersionNotSupported,
            "this method is of version 1.0: send the header `A2A-Version: 1.0`",
        )),
        None => Err(A2aError::new(
            ErrorKind::MethodNotFound,
            "there is no such method in this version of the protocol",
        )),
    }
}

fn is_method(name: &str) -> bool {
    const METHODS: [&str; 7] = [
        "SendMessage",
        "SendStreamingMessage",
        "GetTask",
        "ListTasks",
        "CancelTask",
        "SubscribeToTask",
        "GetExtendedAgentCard",
    ];
    METHODS.contains(&name) || OF_PUSH.contains(&name)
}

async fn dispatch(
    operations: &Arc<Operations>,
    caller: &A2aCaller,
    form: RpcForm,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Reply, A2aError> {
    let is_old = form.is_old();
    Ok(match method {
        "SendMessage" => {
            let task = operations.send(caller, (sent(is_old, params)?, is_old)).await?;
            Reply::json(form.result(StreamItem::Task(task)))
        }
        "SendStreamingMessage" => {
            let stream = operations.send_stream(caller, (sent(is_old, params)?, is_old)).await?;
            Reply::Stream(Box::new(stream), ItemForm::Rpc(form))
        }
        "GetTask" => Reply::json(form.result(operations.get(caller, &read(params)?).await?)),
        "CancelTask" => Reply::json(form.result(operations.cancel(caller, &read(params)?).await?)),
        "SubscribeToTask" => {
            let stream = operations.subscribe(caller, read(params)?).await?;
            Reply::Stream(Box::new(stream), ItemForm::Rpc(form))
        }
        "ListTasks" => {
            let query: Option<ListTasks> = params.map(|params| read(Some(params))).transpose()?;
            Reply::json(form.result(operations.list(caller, &query.unwrap_or_default()).await?))
        }
        "GetExtendedAgentCard" => return Err(no_extended_card()),
        _ => Reply::json(push(operations, caller, &form, method, params)?),
    })
}

/// Performs an operation on the addresses of push notifications.
fn push(
    operations: &Arc<Operations>,
    caller: &A2aCaller,
    form: &RpcForm,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Vec<u8>, A2aError> {
    let is_old = form.is_old();
    let shown = |config: PushConfig| {
        if is_old {
            form.written(old_push(&config))
        } else {
            form.written(config)
        }
    };
    let query = || {
        if is_old {
            read::<OldPushQuery>(params).map(PushQuery::from)
        } else {
            read(params)
        }
    };
    Ok(match method {
        "CreateTaskPushNotificationConfig" => {
            let config = if is_old {
                read::<OldPushParams>(params)?.into()
            } else {
                read(params)?
            };
            shown(operations.create_push(caller, config, is_old)?)
        }
        "GetTaskPushNotificationConfig" => shown(operations.find_push(caller, &query()?)?),
        "ListTaskPushNotificationConfigs" => {
            let listed = operations.list_pushes(caller, &query()?.task_id)?;
            if is_old {
                form.written(listed.configs.iter().map(old_push).collect::<Vec<_>>())
            } else {
                form.written(listed)
            }
        }
        _ => {
            operations.delete_push(caller, &query()?)?;
            form.written(if is_old { json!(null) } else { json!({}) })
        }
    })
}

/// Returns the error of the extended card, which no agent here has.
pub(super) fn no_extended_card() -> A2aError {
    A2aError::new(
        ErrorKind::Unsupported,
        "this agent has no extended card: its card says all",
    )
}

fn sent(is_old: bool, params: Option<&RawValue>) -> Result<SendMessage, A2aError> {
    if is_old {
        return Ok(read::<v03::OldSend>(params)?.into());
    }
    read(params)
}

/// Reads the parameters of a method.
fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, A2aError> {
    let params = params.ok_or_else(|| A2aError::params("`params` is missing"))?;
    parsed(params.get().as_bytes(), "params")
}

/// Reads an object of the protocol. An error names the place of the fault, and does not quote it.
pub(super) fn parsed<T: DeserializeOwned>(json: &[u8], what: &str) -> Result<T, A2aError> {
    if json.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(A2aError::params(format!("`{what}` is an object")));
    }
    serde_json::from_slice(json).map_err(|error| {
        let line = error.line();
        let column = error.column();
        if !error.is_data() {
            return A2aError::new(
                ErrorKind::Parse,
                format!("the `{what}` is not JSON: see line {line} column {column}"),
            );
        }
        let text = error.to_string();
        // These errors name a member of the protocol; all other errors may quote the client.
        let is_named = text.starts_with("missing field") || text.starts_with("duplicate field");
        let reason = match text.split(" at line").next() {
            Some(reason) if is_named => reason,
            _ => "a member has a value of the wrong kind",
        };
        A2aError::params(format!("`{what}`: {reason}, line {line} column {column}"))
    })
}

/// Writes an answer with an error, for a request that could not be read, too.
pub(super) fn error_reply(id: &RawValue, error: &A2aError) -> Reply {
    Reply::json(
        json!({"jsonrpc": "2.0", "id": id, "error": error.to_rpc()})
            .to_string()
            .into_bytes(),
    )
}
