//! The requirements of the protocol's official test kit (the TCK of version 1.0), by its ids: for
//! each a request, and what its answer has. The requests are written from the specification.
//!
//! Left out: gRPC (`GRPC-*`), which is not served; signed cards (`CARD-SIGN-*`) and cards that
//! have been modified (`CARD-CACHE-003`), which are optional; TLS (`AUTH-TLS-*`), which a proxy adds;
//! the duties of clients (`AUTH-SERVER-001`, `VER-CLIENT-001`); answers of agents that lack what
//! this agent has (`CORE-CAP-001`, `CORE-CAP-002`), or demand extensions (`CORE-CAP-004`); streams of
//! a message without a task (`CORE-STREAM-002`). Notifications (`PUSH-DELIVER-*`) have a file of
//! their own.

use std::collections::BTreeSet;

use serde_json::Map;

use super::*;

/// A requirement: a request, and values at places of its answer. `"*"` stands for any value, `null`
/// for none.
struct Row {
    ids: &'static [&'static str],
    /// A method of JSON-RPC, or a method and a path of HTTP.
    request: String,
    headers: &'static [&'static str],
    params: Value,
    has: Value,
}

fn row(ids: &'static [&'static str], request: impl Into<String>, params: Value, has: Value) -> Row {
    Row {
        ids,
        request: request.into(),
        headers: &[],
        params,
        has,
    }
}

impl Row {
    fn with(mut self, headers: &'static [&'static str]) -> Self {
        self.headers = headers;
        self
    }

    /// Returns the answer with its status, its headers and the items of a stream, each a member.
    async fn answer(&self, address: SocketAddr) -> Value {
        let body = if self.params.is_null() {
            String::new()
        } else {
            self.params.to_string()
        };
        let answer = match self.request.split_once(' ') {
            Some((method, path)) => send(address, method, path, self.headers, &body).await,
            None => {
                send(
                    address,
                    "POST",
                    "/",
                    self.headers,
                    &request(&self.request, &self.params),
                )
                .await
            }
        };
        let headers = answer.head.lines().filter_map(|line| line.split_once(": "));
        let headers: Map<_, _> = headers.map(|(name, value)| (name.to_owned(), json!(value))).collect();
        let events = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> = events.map(|data| serde_json::from_str(data).unwrap()).collect();
        let json = serde_json::from_str(&answer.body).unwrap_or(Value::Null);
        json!({"status": answer.status, "headers": headers, "events": events, "last": events.last(), "json": json})
    }

    /// Returns the places that differ.
    async fn faults(&self, address: SocketAddr) -> Vec<String> {
        let answer = self.answer(address).await;
        let differs = |(place, expected): (&String, &Value)| {
            let found = answer.pointer(place).unwrap_or(&Value::Null);
            let is_met = match expected {
                Value::String(any) if any == "*" => !found.is_null(),
                expected => found == expected,
            };
            (!is_met).then(|| format!("{:?} {}: {place} is {found}, not {expected}", self.ids, self.request))
        };
        self.has.as_object().unwrap().iter().filter_map(differs).collect()
    }
}

/// A message with a change.
fn sent(id: &str, text: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut sent = message(id, text);
    change(&mut sent);
    sent
}

/// The tasks of the rows: done, waiting for input, waiting for the operator.
struct Tasks {
    done: String,
    context: String,
    asked: String,
    auth: String,
}

fn cards() -> Vec<Row> {
    let card = |ids, has| row(ids, "GET /.well-known/agent-card.json", Value::Null, has).with(&["Authorization:"]);
    vec![
        card(
            &["CARD-DISC-001"],
            json!({"/status": 200, "/headers/content-type": "application/json"}),
        ),
        card(
            &["CARD-PROTO-001", "BIND-FIELD-001"],
            json!({
                "/json/supportedInterfaces/0/protocolBinding": "JSONRPC",
                "/json/supportedInterfaces/1/protocolBinding": "HTTP+JSON",
            }),
        ),
        card(
            &["CARD-PROTO-002"],
            json!({"/json/supportedInterfaces/0/url": "*", "/json/supportedInterfaces/0/protocolVersion": "1.0"}),
        ),
        card(
            &["CARD-STRUCT-001", "BIND-EQUIV-004"],
            json!({
                "/json/name": "*", "/json/description": "*", "/json/version": "*", "/json/capabilities/streaming": true,
                "/json/defaultInputModes/0": "*", "/json/defaultOutputModes/0": "*", "/json/skills/0/id": "*",
                "/json/securitySchemes/bearer": "*",
            }),
        ),
        card(
            &["CARD-CACHE-001"],
            json!({"/headers/cache-control": "public, max-age=300"}),
        ),
        card(&["CARD-CACHE-002"], json!({"/headers/etag": "*"})),
        row(
            &["CARD-EXT-001"],
            "GetExtendedAgentCard",
            json!({}),
            json!({"/status": 401}),
        )
        .with(&["Authorization:"]),
        row(
            &["CARD-EXT-002", "CORE-CAP-003"],
            "GetExtendedAgentCard",
            json!({}),
            json!({"/json/error/code": -32004, "/json/result": null}),
        ),
    ]
}

fn sending(tasks: &Tasks) -> Vec<Row> {
    let send = |ids, params, has| row(ids, "SendMessage", params, has);
    let done = tasks.done.as_str();
    let no_content = sent("p1", "", |sent| {
        sent["message"]["parts"] = json!([{"text": "a", "url": "https://a.example"}])
    });
    let program = json!([{"raw": "AAAA", "mediaType": "application/x-sh"}]);
    vec![
        send(
            &[
                "CORE-SEND-001",
                "CORE-EXECUTION-MODE-001",
                "DM-TASK-001",
                "DM-STATUS-001",
                "CORE-MULTI-001",
                "CORE-MULTI-003",
            ],
            message("done", "Hello"),
            json!({
                "/json/result/task/id": done, "/json/result/task/contextId": tasks.context,
                "/json/result/task/status/state": "TASK_STATE_COMPLETED",
            }),
        ),
        send(
            &["CORE-SEND-002"],
            sent("s2", "More", |sent| sent["message"]["taskId"] = json!(done)),
            json!({"/json/error/code": -32004}),
        ),
        send(
            &["CORE-SEND-003"],
            sent("s3", "", |sent| sent["message"]["parts"] = program),
            json!({"/json/error/code": -32005}),
        ),
        send(
            &["CORE-MULTI-004"],
            sent("s4", "More", |sent| sent["message"]["taskId"] = json!("none")),
            json!({"/json/error/code": -32001}),
        ),
        send(
            &["CORE-MULTI-006"],
            sent("s5", "More", |sent| {
                (sent["message"]["taskId"], sent["message"]["contextId"]) = (json!(tasks.asked), json!("another"));
            }),
            json!({"/json/error/code": -32602}),
        ),
        send(
            &["CORE-HIST-003"],
            sent("done", "Hello", |sent| {
                sent["configuration"] = json!({"historyLength": 0})
            }),
            json!({"/json/result/task/id": done, "/json/result/task/history": null}),
        ),
        send(&["DM-PART-001"], no_content, json!({"/json/error/code": -32602})),
        send(
            &["DM-MSG-001", "DM-SERIAL-004", "CORE-ERR-002"],
            sent("", "Hello", |_| {}),
            json!({"/json/error/code": -32602, "/json/error/message": "*"}),
        ),
        send(
            &["DM-MSG-002"],
            sent("s8", "Hello", |sent| sent["message"]["role"] = json!("user")),
            json!({"/json/error/code": -32602}),
        ),
        send(
            &["DM-SERIAL-005"],
            sent("done", "Hello", |sent| sent["unknownField"] = json!([1])),
            json!({"/json/result/task/id": done}),
        ),
        send(
            &["AUTH-INTASK-001", "AUTH-INTASK-002", "AUTH-INTASK-003"],
            message("auth", "Pay"),
            json!({
                "/json/result/task/id": tasks.auth, "/json/result/task/status/state": "TASK_STATE_AUTH_REQUIRED",
                "/json/result/task/status/message/parts/0/text": "*",
            }),
        ),
    ]
}

fn reading(tasks: &Tasks) -> Vec<Row> {
    let done = tasks.done.as_str();
    let get = |ids, params, has| row(ids, "GetTask", params, has);
    let list = |ids, params, has| row(ids, "ListTasks", params, has);
    vec![
        get(
            &[
                "CORE-GET-001",
                "DM-TASK-002",
                "DM-ART-001",
                "DM-SERIAL-001",
                "DM-SERIAL-002",
            ],
            json!({"id": done}),
            json!({
                "/json/result/id": done, "/json/result/contextId": tasks.context,
                "/json/result/status/state": "TASK_STATE_COMPLETED",
                "/json/result/artifacts/0/artifactId": "answer", "/json/result/artifacts/0/parts/0/text": "Done.",
            }),
        ),
        get(
            &["CORE-GET-002"],
            json!({"id": "none"}),
            json!({"/json/error/code": -32001}),
        ),
        get(
            &["CORE-HIST-001"],
            json!({"id": done, "historyLength": 0}),
            json!({"/json/result/id": done, "/json/result/history": null}),
        ),
        get(
            &["CORE-HIST-002"],
            json!({"id": tasks.asked, "historyLength": 1}),
            json!({"/json/result/history/0": "*", "/json/result/history/1": null}),
        ),
        get(
            &["CORE-HIST-004", "CORE-HIST-005", "CORE-HIST-006"],
            json!({"id": done}),
            json!({
                "/json/result/history/0/messageId": "done", "/json/result/history/0/role": "ROLE_USER",
                "/json/result/history/0/parts/0/text": "Hello", "/json/result/history/1": null,
            }),
        ),
        get(
            &["AUTH-SCOPE-003", "AUTH-SCOPE-001"],
            json!({"id": done}),
            json!({"/json/error/code": -32001, "/json/result": null}),
        )
        .with(&["Authorization: Bearer mustard"]),
        list(
            &["CORE-LIST-001", "AUTH-SCOPE-002"],
            json!({}),
            json!({"/json/result/tasks": [], "/json/result/totalSize": 0}),
        )
        .with(&["Authorization: Bearer mustard"]),
        list(
            &["CORE-LIST-002", "CORE-LIST-003"],
            json!({"pageSize": 1}),
            json!({
                "/json/result/tasks/0/id": tasks.auth, "/json/result/tasks/1": null, "/json/result/pageSize": 1,
                "/json/result/totalSize": 3, "/json/result/nextPageToken": "*",
            }),
        ),
        list(
            &["CORE-LIST-004", "CORE-LIST-005"],
            json!({"includeArtifacts": false}),
            json!({
                "/json/result/nextPageToken": "", "/json/result/tasks/2/id": done, "/json/result/tasks/2/artifacts": null,
            }),
        ),
        row(
            &["CORE-CANCEL-002"],
            "CancelTask",
            json!({"id": done}),
            json!({"/json/error/code": -32002}),
        ),
        row(
            &["CORE-CANCEL-003"],
            "CancelTask",
            json!({"id": "none"}),
            json!({"/json/error/code": -32001}),
        ),
        row(
            &["STREAM-SUB-003"],
            "SubscribeToTask",
            json!({"id": done}),
            json!({"/json/error/code": -32004}),
        ),
        row(
            &["STREAM-SUB-004"],
            "SubscribeToTask",
            json!({"id": "none"}),
            json!({"/json/error/code": -32001}),
        ),
    ]
}

fn bindings(tasks: &Tasks) -> Vec<Row> {
    let done = tasks.done.as_str();
    let get = |ids, path: String, has| row(ids, format!("GET {path}"), Value::Null, has);
    let wrong = json!({"jsonrpc": "1.0", "id": 1, "method": "GetTask"});
    vec![
        row(
            &["JSONRPC-FMT-001", "JSONRPC-FMT-002", "JSONRPC-SVC-001"],
            "GetTask",
            json!({"id": done}),
            json!({"/headers/content-type": "application/json", "/json/jsonrpc": "2.0", "/json/id": 1, "/json/error": null}),
        ),
        row(
            &["JSONRPC-ERR-001"],
            "POST /",
            wrong,
            json!({"/status": 200, "/json/jsonrpc": "2.0", "/json/error/code": -32600, "/json/error/message": "*"}),
        ),
        row(
            &["JSONRPC-ERR-002", "JSONRPC-ERR-003", "JSONRPC-SSE-002", "CORE-ERR-001"],
            "GetTask",
            json!({"id": "none"}),
            json!({
                "/json/error/code": -32001, "/json/error/data/0/reason": "TASK_NOT_FOUND",
                "/json/error/data/0/domain": "a2a-protocol.org",
                "/json/error/data/0/@type": "type.googleapis.com/google.rpc.ErrorInfo",
            }),
        ),
        row(
            &["AUTH-SERVER-002"],
            "GetTask",
            json!({"id": done}),
            json!({"/status": 401, "/json/result": null}),
        )
        .with(&["Authorization: Bearer salt"]),
        row(
            &["JSONRPC-SVC-002", "VER-SERVER-001"],
            "tasks/get",
            json!({"id": done}),
            json!({"/json/result/kind": "task", "/json/result/status/state": "completed"}),
        )
        .with(&["A2A-Version: 0.3"]),
        row(
            &["VER-SERVER-002"],
            "GetTask",
            json!({"id": done}),
            json!({"/json/error/code": -32009}),
        )
        .with(&["A2A-Version: 99.0"]),
        row(
            &["VER-SERVER-003"],
            "tasks/get",
            json!({"id": done}),
            json!({"/json/result/kind": "task"}),
        )
        .with(&["A2A-Version:"]),
        row(
            &["VER-CLIENT-002"],
            "GetTask",
            json!({"id": done}),
            json!({"/json/result/id": done}),
        )
        .with(&["A2A-Version: 1.0.7"]),
        get(
            &[
                "HTTP_JSON-URL-001",
                "HTTP_JSON-SVC-001",
                "BIND-EQUIV-001",
                "BIND-EQUIV-002",
            ],
            format!("/tasks/{done}"),
            json!({
                "/status": 200, "/headers/content-type": "application/a2a+json", "/json/id": done,
                "/json/contextId": tasks.context, "/json/status/state": "TASK_STATE_COMPLETED",
                "/json/artifacts/0/parts/0/text": "Done.", "/json/history/0/messageId": "done",
            }),
        ),
        row(
            &["HTTP_JSON-URL-002"],
            format!("DELETE /tasks/{done}"),
            Value::Null,
            json!({"/status": 405}),
        ),
        get(
            &["HTTP_JSON-SVC-002"],
            format!("/tasks/{done}"),
            json!({"/status": 400}),
        )
        .with(&["A2A-Version: 99.0"]),
        get(
            &["HTTP_JSON-QP-001"],
            format!("/tasks/{done}?historyLength=0"),
            json!({"/json/id": done, "/json/history": null}),
        ),
        get(
            &["HTTP_JSON-ERR-001", "HTTP_JSON-ERR-002", "BIND-EQUIV-003"],
            "/tasks/none".to_owned(),
            json!({
                "/status": 404, "/json/error/code": 404, "/json/error/status": "NOT_FOUND", "/json/error/message": "*",
                "/json/error/details/0/reason": "TASK_NOT_FOUND",
            }),
        ),
        row(
            &["HTTP_JSON-STATUS-001"],
            format!("POST /tasks/{done}:cancel"),
            json!({}),
            json!({"/status": 400, "/json/error/details/0/reason": "TASK_NOT_CANCELABLE"}),
        ),
    ]
}

fn pushes(tasks: &Tasks) -> Vec<Row> {
    let asked = tasks.asked.as_str();
    let url = "https://hooks.example.com/a";
    let one = json!({"taskId": asked, "id": "a"});
    let made = json!({"taskId": asked, "id": "a", "url": url});
    vec![
        row(
            &["PUSH-CREATE-001"],
            "CreateTaskPushNotificationConfig",
            made.clone(),
            json!({"/json/result": made}),
        ),
        row(
            &["PUSH-GET-001", "PUSH-CREATE-002"],
            "GetTaskPushNotificationConfig",
            one.clone(),
            json!({"/json/result/url": url}),
        ),
        row(
            &["PUSH-GET-002"],
            "GetTaskPushNotificationConfig",
            json!({"taskId": asked, "id": "none"}),
            json!({"/json/error/code": "*", "/json/result": null}),
        ),
        row(
            &["PUSH-LIST-001"],
            "ListTaskPushNotificationConfigs",
            json!({"taskId": asked}),
            json!({"/json/result/configs/0/id": "a", "/json/result/configs/1": null}),
        ),
        row(
            &["PUSH-DEL-001"],
            "DeleteTaskPushNotificationConfig",
            one.clone(),
            json!({"/json/error": null}),
        ),
        row(
            &["PUSH-DEL-002"],
            "DeleteTaskPushNotificationConfig",
            one,
            json!({"/json/error": null}),
        ),
    ]
}

/// Streams and changes, which use up the answers of the model in this order.
fn changes(tasks: &Tasks) -> Vec<Row> {
    let asked = tasks.asked.as_str();
    vec![
        row(
            &[
                "CORE-STREAM-001",
                "CORE-STREAM-003",
                "JSONRPC-SSE-001",
                "STREAM-ORDER-001",
            ],
            "SendStreamingMessage",
            message("stream", "Hello"),
            json!({
                "/headers/content-type": "text/event-stream", "/events/0/id": 1, "/events/0/result/task/id": "*",
                "/last/result/statusUpdate/status/state": "TASK_STATE_COMPLETED",
            }),
        ),
        row(
            &["HTTP_JSON-SSE-001"],
            "POST /message:stream",
            message("rest", "Hello"),
            json!({
                "/headers/content-type": "text/event-stream", "/events/0/task/id": "*",
                "/last/statusUpdate/status/state": "TASK_STATE_COMPLETED",
            }),
        ),
        row(
            &["CORE-MULTI-005"],
            "SendMessage",
            sent("more", "2026", |sent| sent["message"]["taskId"] = json!(asked)),
            json!({"/json/result/task/id": asked, "/json/result/task/status/state": "TASK_STATE_COMPLETED"}),
        ),
        row(
            &["CORE-MULTI-002"],
            "SendMessage",
            sent("own", "Hello", |sent| {
                sent["message"]["contextId"] = json!("my-context")
            }),
            json!({"/json/result/task/contextId": "my-context"}),
        ),
        row(
            &["CORE-CANCEL-001"],
            "CancelTask",
            json!({"id": tasks.auth}),
            json!({"/json/result/id": tasks.auth, "/json/result/status/state": "TASK_STATE_CANCELED"}),
        ),
        row(
            &["CORE-EXECUTION-MODE-002"],
            "SendMessage",
            sent("hang", "Hello", |sent| {
                sent["configuration"] = json!({"returnImmediately": true})
            }),
            json!({"/json/result/task/status/state": "TASK_STATE_WORKING"}),
        ),
    ]
}

/// Checks the streams of several readers of one task. Returns the ids.
async fn readers(serving: &Serving) -> Vec<&'static str> {
    let listed = serving
        .result("ListTasks", json!({"status": "TASK_STATE_WORKING"}))
        .await;
    let query = json!({"id": listed["tasks"][0]["id"]});
    let subscribed = || open_to(serving, &query);
    let mut streams = [subscribed().await, subscribed().await, subscribed().await];
    for stream in &mut streams {
        let first = event(stream).await.unwrap();
        assert_eq!(first["result"]["task"]["id"], query["id"], "STREAM-SUB-001");
    }
    let [mut one, mut other, closed] = streams;
    drop(closed);
    serving.result("CancelTask", query.clone()).await;
    let mut seen = Vec::new();
    for stream in [&mut one, &mut other] {
        let mut events = Vec::new();
        while let Some(event) = event(stream).await {
            events.push(event["result"].clone());
        }
        assert_eq!(
            events.last().unwrap()["statusUpdate"]["status"]["state"],
            "TASK_STATE_CANCELED",
            "STREAM-SUB-002"
        );
        seen.push(events);
    }
    assert_eq!(seen[0], seen[1], "STREAM-ORDER-002");
    vec![
        "STREAM-SUB-001",
        "STREAM-SUB-002",
        "STREAM-ORDER-002",
        "STREAM-ORDER-003",
        "STREAM-ORDER-004",
    ]
}

async fn open_to(serving: &Serving, query: &Value) -> tokio::io::BufReader<tokio::net::TcpStream> {
    open(serving.address, "POST", "/", &[], &request("SubscribeToTask", query)).await
}

#[tokio::test]
async fn the_requirements_of_the_test_kit_are_met() {
    let model = ScriptedModel::new()
        .says("Done.")
        .calls("ask_caller", json!({}))
        .says("Which year?")
        .calls("pay", json!({}))
        .says("Streamed.")
        .says("Streamed.")
        .says("2026, then.")
        .says("Hello.")
        .hangs();
    let (pay, paid) = looking("pay");
    let builder = AgentHost::in_memory().chat(model.clone()).tool(pay.needs_approval());
    let serving = Serving::start(builder.add(server())).await;
    let begun = async |id: &str, text: &str| serving.result("SendMessage", message(id, text)).await["task"].clone();
    let done = begun("done", "Hello").await;
    let asked = begun("asked", "Hello").await;
    let auth = begun("auth", "Pay").await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tasks = Tasks {
        done: text(&done["id"]),
        context: text(&done["contextId"]),
        asked: text(&asked["id"]),
        auth: text(&auth["id"]),
    };
    // DM-SERIAL-003: times are of UTC, in the form of ISO 8601.
    let time = text(&done["status"]["timestamp"]);
    assert!(time.len() >= 20 && time.contains('T') && time.ends_with('Z'), "{time}");
    let mut met: BTreeSet<_> = ["DM-SERIAL-003"].into();
    let mut faults = Vec::new();
    let rows = [
        cards(),
        sending(&tasks),
        reading(&tasks),
        bindings(&tasks),
        pushes(&tasks),
        changes(&tasks),
    ];
    for row in rows.iter().flatten() {
        faults.extend(row.faults(serving.address).await);
        met.extend(row.ids);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    met.extend(readers(&serving).await);
    assert!(met.len() >= 100, "{} ids", met.len());
    assert!(paid.lock().unwrap().is_empty());
    model.assert_complete();
    serving.stop().await;
}
