//! Requests and answers written from the specification, by its sections.

use rockbot_core::testing::ScriptedModel;
use serde_json::{Value, json};

use super::client::send;
use super::{Serving, message, request};

/// A request, and what it comes to.
struct Row {
    name: &'static str,
    method: &'static str,
    path: String,
    headers: Vec<&'static str>,
    body: String,
    expected: &'static str,
}

fn posted(name: &'static str, body: impl Into<String>, expected: &'static str) -> Row {
    Row {
        name,
        method: "POST",
        path: "/".to_owned(),
        headers: Vec::new(),
        body: body.into(),
        expected,
    }
}

fn rpc(name: &'static str, method: &str, params: &Value, expected: &'static str) -> Row {
    posted(name, request(method, params), expected)
}

fn rest(
    name: &'static str,
    method: &'static str,
    path: impl Into<String>,
    body: &Value,
    expected: &'static str,
) -> Row {
    let mut row = posted(
        name,
        if body.is_null() {
            String::new()
        } else {
            body.to_string()
        },
        expected,
    );
    (row.method, row.path) = (method, path.into());
    row
}

impl Row {
    fn with(mut self, headers: &[&'static str]) -> Self {
        self.headers = headers.to_vec();
        self
    }
}

/// Returns the message with a change at a place.
fn changed(place: &str, value: Value) -> Value {
    let mut message = message("x", "Hello");
    let (at, name) = place.rsplit_once('/').unwrap();
    message.pointer_mut(at).unwrap()[name] = value;
    message
}

fn part(part: &Value) -> Value {
    changed("/message/parts", json!([part]))
}

/// The envelope of JSON-RPC (9.3, 9.5).
fn envelopes(done: &str) -> Vec<Row> {
    let get = json!({"id": done});
    let with_id = |id: &str| format!(r#"{{"jsonrpc": "2.0", "id": {id}, "method": "GetTask", "params": {get}}}"#);
    vec![
        posted("no JSON", "{", "200 -32700 -"),
        posted("no text", "", "200 -32700 -"),
        posted("nested too deep", "[".repeat(200), "200 -32700 -"),
        posted("a batch", "[]", "200 -32600 -"),
        posted("a text", "\"hello\"", "200 -32600 -"),
        posted(
            "another protocol",
            r#"{"jsonrpc": "1.0", "id": 1, "method": "GetTask"}"#,
            "200 -32600 -",
        ),
        posted("no method", r#"{"jsonrpc": "2.0", "id": 1}"#, "200 -32600 -"),
        posted(
            "a number as method",
            r#"{"jsonrpc": "2.0", "id": 1, "method": 7}"#,
            "200 -32600 -",
        ),
        posted(
            "a notification",
            r#"{"jsonrpc": "2.0", "method": "GetTask"}"#,
            "200 -32600 -",
        ),
        posted("an object as id", with_id("{}"), "200 -32600 -"),
        posted("a fraction as id", with_id("1.5"), "200 -32600 -"),
        posted(
            "an id of a kilobyte",
            with_id(&format!("\"{}\"", "x".repeat(1_000))),
            "200 -32600 -",
        ),
        posted("a text as id", with_id("\"a\""), "200 TASK_STATE_COMPLETED"),
        posted("null as id", with_id("null"), "200 TASK_STATE_COMPLETED"),
        rpc("unknown method", "SendMassage", &json!({}), "200 -32601 -"),
        rpc("a method of 0.3 in 1.0", "message/send", &json!({}), "200 -32601 -"),
        posted(
            "no params",
            r#"{"jsonrpc": "2.0", "id": 1, "method": "GetTask"}"#,
            "200 -32602 -",
        ),
        rpc("a list as params", "GetTask", &json!([done]), "200 -32602 -"),
        rpc("no id of a task", "GetTask", &json!({}), "200 -32602 -"),
        rpc("a number as id of a task", "GetTask", &json!({"id": 7}), "200 -32602 -"),
        rpc(
            "a member that is not known",
            "GetTask",
            &json!({"id": done, "new": [1]}),
            "200 TASK_STATE_COMPLETED",
        ),
    ]
}

/// Versions, keys, names and bodies (3.6, 7, 9.2, 11.2).
fn doors(done: &str) -> Vec<Row> {
    let get = || rpc("", "GetTask", &json!({"id": done}), "");
    let row = |name, headers: &[&'static str], expected| Row {
        name,
        expected,
        ..get().with(headers)
    };
    let in_query = Row {
        path: "/?A2A-Version=1.0".to_owned(),
        ..row(
            "the version as a parameter",
            &["A2A-Version:"],
            "200 TASK_STATE_COMPLETED",
        )
    };
    let method = |name, method, expected| Row {
        name,
        method,
        body: String::new(),
        expected,
        ..get()
    };
    vec![
        row(
            "a patch of the version",
            &["A2A-Version: 1.0.1"],
            "200 TASK_STATE_COMPLETED",
        ),
        row(
            "a later version",
            &["A2A-Version: 2.0"],
            "200 -32009 VERSION_NOT_SUPPORTED",
        ),
        row(
            "no version is 0.3",
            &["A2A-Version:"],
            "200 -32009 VERSION_NOT_SUPPORTED",
        ),
        in_query,
        rpc("a method of 0.3", "tasks/get", &json!({"id": done}), "200 completed").with(&["A2A-Version: 0.3"]),
        rpc("an unknown one of 0.3", "tasks/list", &json!({}), "200 -32601 -").with(&["A2A-Version:"]),
        row("no key", &["Authorization:"], "401 401 -"),
        row("a wrong key", &["Authorization: Bearer salt"], "401 401 -"),
        row("another scheme", &["Authorization: Basic sesame"], "401 401 -"),
        row(
            "the key in the other header",
            &["Authorization:", "X-API-Key: sesame"],
            "200 TASK_STATE_COMPLETED",
        ),
        row(
            "the task of another caller",
            &["Authorization: Bearer mustard"],
            "200 -32001 TASK_NOT_FOUND",
        ),
        row("another host", &["Host: evil.example"], "403 403 -"),
        row("no host", &["Host:"], "403 403 -"),
        row(
            "a page of another origin",
            &["Origin: https://evil.example"],
            "403 403 -",
        ),
        row(
            "a page of this machine",
            &["Origin: http://localhost:3000"],
            "200 TASK_STATE_COMPLETED",
        ),
        row(
            "a form",
            &["Content-Type: text/plain"],
            "415 -32005 CONTENT_TYPE_NOT_SUPPORTED",
        ),
        row("no type", &["Content-Type:"], "415 -32005 CONTENT_TYPE_NOT_SUPPORTED"),
        row(
            "the type of the other binding",
            &["Content-Type: application/a2a+json"],
            "200 TASK_STATE_COMPLETED",
        ),
        posted("ten megabytes", " ".repeat(10 << 20), "413 -32600 -"),
        method("the address by GET", "GET", "405 405 -"),
        rest("another address", "GET", "/other", &Value::Null, "404 404 -"),
        rest(
            "a card is not written",
            "POST",
            "/.well-known/agent-card.json",
            &json!({}),
            "405 405 -",
        ),
    ]
}

/// Messages (3.1.1, 3.2.2, 3.4, 4.1).
fn messages(done: &str, asked: &str) -> Vec<Row> {
    let send = |name, params: Value, expected| rpc(name, "SendMessage", &params, expected);
    let with = |name: &str, value: Value| {
        let mut params = message("x", "Hello");
        params[name] = value;
        params
    };
    let mut of_done = changed("/message/taskId", json!(done));
    let follow_up = of_done.clone();
    of_done["message"]["contextId"] = json!("another");
    vec![
        send("no message", json!({}), "200 -32602 -"),
        send(
            "no id of the message",
            json!({"message": {"role": "ROLE_USER", "parts": [{"text": "a"}]}}),
            "200 -32602 -",
        ),
        send(
            "an empty id of the message",
            changed("/message/messageId", json!("")),
            "200 -32602 -",
        ),
        send(
            "a long id of the message",
            changed("/message/messageId", json!("x".repeat(300))),
            "200 -32602 -",
        ),
        send("a role of 0.3", changed("/message/role", json!("user")), "200 -32602 -"),
        send(
            "the role of the agent",
            changed("/message/role", json!("ROLE_AGENT")),
            "200 -32602 -",
        ),
        send("no parts", changed("/message/parts", json!([])), "200 -32602 -"),
        send(
            "parts of another kind",
            changed("/message/parts", json!("Hello")),
            "200 -32602 -",
        ),
        send(
            "100 parts",
            changed("/message/parts", json!(vec![json!({"text": "a"}); 100])),
            "200 -32602 -",
        ),
        send("an empty part", part(&json!({})), "200 -32602 -"),
        send(
            "a part with two contents",
            part(&json!({"text": "a", "url": "https://example.com"})),
            "200 -32602 -",
        ),
        send("a text that is a number", part(&json!({"text": 7})), "200 -32602 -"),
        send(
            "bytes that are no Base64",
            part(&json!({"raw": "?", "mediaType": "image/png"})),
            "200 -32602 -",
        ),
        send("spaces alone", part(&json!({"text": "  \n"})), "200 -32602 -"),
        send(
            "a program",
            part(&json!({"raw": "AAAA", "mediaType": "application/x-sh"})),
            "200 -32005 CONTENT_TYPE_NOT_SUPPORTED",
        ),
        send(
            "an answer in pictures alone",
            with("configuration", json!({"acceptedOutputModes": ["image/png"]})),
            "200 -32005 CONTENT_TYPE_NOT_SUPPORTED",
        ),
        send(
            "notifications to an address inside of the network",
            with(
                "configuration",
                json!({"taskPushNotificationConfig": {"url": "http://127.0.0.1/"}}),
            ),
            "200 -32602 -",
        ),
        send(
            "a skill that is not on the card",
            with("metadata", json!({"skill": "magic"})),
            "200 -32602 -",
        ),
        send(
            "a task that is not there",
            changed("/message/taskId", json!("none")),
            "200 -32001 TASK_NOT_FOUND",
        ),
        send("a task that has ended", follow_up, "200 -32004 UNSUPPORTED_OPERATION"),
        send("another context than the task's", of_done, "200 -32602 -"),
        send(
            "a control character in the context",
            changed("/message/contextId", json!("a\nb")),
            "200 -32602 -",
        ),
        send(
            "another content under a known id",
            message("done", "Other words"),
            "200 -32602 -",
        ),
        rpc(
            "a stream of nothing",
            "SendStreamingMessage",
            &json!({}),
            "200 -32602 -",
        ),
        rpc(
            "a negative history",
            "GetTask",
            &json!({"id": done, "historyLength": -1}),
            "200 -32602 -",
        ),
        rpc(
            "cancel of a task that has ended",
            "CancelTask",
            &json!({"id": done}),
            "200 -32002 TASK_NOT_CANCELABLE",
        ),
        rpc(
            "cancel of a task that is not there",
            "CancelTask",
            &json!({"id": "none"}),
            "200 -32001 TASK_NOT_FOUND",
        ),
        rpc(
            "a subscription to a task that has ended",
            "SubscribeToTask",
            &json!({"id": done}),
            "200 -32004 UNSUPPORTED_OPERATION",
        ),
        rpc(
            "a subscription to nothing",
            "SubscribeToTask",
            &json!({"id": "none"}),
            "200 -32001 TASK_NOT_FOUND",
        ),
        rpc("tasks", "ListTasks", &json!({}), "200 2 tasks"),
        rpc(
            "tasks in a state",
            "ListTasks",
            &json!({"status": "TASK_STATE_INPUT_REQUIRED"}),
            "200 1 tasks",
        ),
        rpc(
            "tasks of no context",
            "ListTasks",
            &json!({"contextId": "none"}),
            "200 0 tasks",
        ),
        rpc(
            "tasks since the future",
            "ListTasks",
            &json!({"statusTimestampAfter": "2990-01-01T00:00:00Z"}),
            "200 0 tasks",
        ),
        rpc(
            "an unknown state",
            "ListTasks",
            &json!({"status": "DONE"}),
            "200 -32602 -",
        ),
        rpc(
            "a page of 1000",
            "ListTasks",
            &json!({"pageSize": 1000}),
            "200 -32602 -",
        ),
        rpc(
            "another server's page",
            "ListTasks",
            &json!({"pageToken": "?"}),
            "200 -32602 -",
        ),
        rpc(
            "a time that is none",
            "ListTasks",
            &json!({"statusTimestampAfter": "soon"}),
            "200 -32602 -",
        ),
        rpc(
            "an address of nothing",
            "CreateTaskPushNotificationConfig",
            &json!({}),
            "200 -32602 -",
        ),
        rpc(
            "an address of a task that is not there",
            "CreateTaskPushNotificationConfig",
            &json!({"taskId": "none", "url": "https://example.com/"}),
            "200 -32001 TASK_NOT_FOUND",
        ),
        rpc(
            "an address that is not there",
            "GetTaskPushNotificationConfig",
            &json!({"taskId": "none", "id": "none"}),
            "200 -32001 TASK_NOT_FOUND",
        ),
        rpc(
            "the addresses of a task that is not there",
            "ListTaskPushNotificationConfigs",
            &json!({"taskId": "none"}),
            "200 -32001 TASK_NOT_FOUND",
        ),
        rpc(
            "the end of an address of a task that is not there",
            "DeleteTaskPushNotificationConfig",
            &json!({"taskId": "none", "id": "none"}),
            "200 -32001 TASK_NOT_FOUND",
        ),
        rpc(
            "the extended card",
            "GetExtendedAgentCard",
            &json!({}),
            "200 -32004 UNSUPPORTED_OPERATION",
        ),
        rpc(
            "cancel of a task that waits for input",
            "CancelTask",
            &json!({"id": asked}),
            "200 TASK_STATE_CANCELED",
        ),
        rpc(
            "a task that was cancelled while it waited",
            "GetTask",
            &json!({"id": asked}),
            "200 TASK_STATE_CANCELED",
        ),
    ]
}

/// The binding of plain HTTP (11), with the statuses of 1.0.1.
fn plain(done: &str) -> Vec<Row> {
    let get = |name, path: String, expected| rest(name, "GET", path, &Value::Null, expected);
    let post = |name, path: String, body: &Value, expected| rest(name, "POST", path, body, expected);
    vec![
        get("a task", format!("/tasks/{done}"), "200 TASK_STATE_COMPLETED"),
        get(
            "a task that is not there",
            "/tasks/none".to_owned(),
            "404 404 TASK_NOT_FOUND",
        ),
        get(
            "tasks",
            "/tasks?pageSize=1&status=TASK_STATE_COMPLETED".to_owned(),
            "200 1 tasks",
        ),
        get("a page of words", "/tasks?pageSize=many".to_owned(), "400 400 -"),
        get("an unknown state", "/tasks?status=DONE".to_owned(), "400 400 -"),
        get(
            "an old version",
            format!("/tasks/{done}"),
            "400 400 VERSION_NOT_SUPPORTED",
        )
        .with(&["A2A-Version:"]),
        get("no key", format!("/tasks/{done}"), "401 401 -").with(&["Authorization:"]),
        post(
            "cancel of a task that has ended",
            format!("/tasks/{done}:cancel"),
            &Value::Null,
            "400 400 TASK_NOT_CANCELABLE",
        ),
        get(
            "a subscription to a task that has ended",
            format!("/tasks/{done}:subscribe"),
            "400 400 UNSUPPORTED_OPERATION",
        ),
        get("cancel by GET", format!("/tasks/{done}:cancel"), "405 405 -"),
        post(
            "an unknown action",
            format!("/tasks/{done}:burn"),
            &Value::Null,
            "404 404 -",
        ),
        post("no JSON", "/message:send".to_owned(), &json!("hello"), "400 400 -"),
        post(
            "a form",
            "/message:send".to_owned(),
            &json!({}),
            "400 400 CONTENT_TYPE_NOT_SUPPORTED",
        )
        .with(&["Content-Type: text/plain"]),
        post(
            "the same message",
            "/message:send".to_owned(),
            &message("done", "Hello"),
            "200 TASK_STATE_COMPLETED",
        ),
        post(
            "a stream of nothing",
            "/message:stream".to_owned(),
            &json!({}),
            "400 400 -",
        ),
        get(
            "the addresses of a task",
            format!("/tasks/{done}/pushNotificationConfigs"),
            "200",
        ),
        get(
            "the extended card",
            "/extendedAgentCard".to_owned(),
            "400 400 UNSUPPORTED_OPERATION",
        ),
        get("a file of a task without one", format!("/files/{done}/0"), "404 404 -"),
        get("a file of nothing", "/files/none/x".to_owned(), "404 404 -"),
    ]
}

#[tokio::test]
async fn each_request_has_the_answer_of_the_specification() {
    let model = ScriptedModel::new()
        .says("Done.")
        .calls("ask_caller", json!({}))
        .says("Which?");
    let serving = Serving::of(&model).await;
    let done = serving.result("SendMessage", message("done", "Hello")).await;
    let asked = serving.result("SendMessage", message("asked", "Hello")).await;
    let done = done["task"]["id"].as_str().unwrap();
    let asked = asked["task"]["id"].as_str().unwrap();
    let rows = [envelopes(done), doors(done), plain(done), messages(done, asked)];
    let rows: Vec<_> = rows.into_iter().flatten().collect();
    assert!(rows.len() >= 100, "{}", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let answer = send(serving.address, row.method, &row.path, &row.headers, &row.body).await;
        if answer.summary() != row.expected {
            wrong.push(format!(
                "{} {}: {}, not {}: {}",
                row.method,
                row.name,
                answer.summary(),
                row.expected,
                answer.body
            ));
        }
        // The words of an error never repeat the request, and say something.
        let error = serde_json::from_str::<Value>(&answer.body).unwrap_or_default()["error"].clone();
        assert!(
            error.is_null() || error["message"].as_str().is_some_and(|text| text.len() > 10),
            "{answer:?}"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    model.assert_complete();
    serving.stop().await;
}
