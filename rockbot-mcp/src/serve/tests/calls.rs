//! Tests of lists, calls, progress and cancellation.

use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, NumberOrString, ProgressNotificationParam, ProgressToken,
    RequestMetaObject,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestHandle};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, RoleClient, ServiceExt as _};
use rockbot_core::CallContext;
use rockbot_core::content::{Content, MediaPart};
use rockbot_core::context::{Origin, Trust};
use rockbot_core::tool::{Effect, Owner, Tool, ToolError, ToolRegistry as _, ToolState, stateful_tool, tool};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Host, anywhere};
use crate::{McpServer, McpServerState, McpToolServer};

/// Adds two numbers.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

/// Takes nothing.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn add() -> Tool {
    tool("add", |Add { a, b }: Add| async move { (a + b).to_string() })
        .pure()
        .own_output()
}

fn params(tool: &str, arguments: &Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.as_object().unwrap().clone())
}

#[tokio::test]
async fn effects_are_annotations_and_only_chosen_tools_are_listed() {
    let write = tool("notes_write", |_: Nothing| async { "" });
    let set = tool("notes_set", |_: Nothing| async { "" }).idempotent();
    let secret = tool("secret", |_: Nothing| async { "" });
    let server = McpToolServer::new().listen("127.0.0.1:0".parse().unwrap());
    let server = server.tools(["notes_*"]).matching(|tool| tool.effect == Effect::Pure);
    let host = Host::start(server, vec![write, set, secret, add()]).await;
    let client = host.client().await;
    let listed = serde_json::to_value(client.list_all_tools().await.unwrap()).unwrap();
    let shown: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| (&tool["name"], &tool["annotations"]))
        .collect();
    assert_eq!(
        shown,
        [
            (&json!("add"), &json!({"readOnlyHint": true, "openWorldHint": false})),
            (
                &json!("notes_set"),
                &json!({"readOnlyHint": false, "idempotentHint": true})
            ),
            (
                &json!("notes_write"),
                &json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false})
            ),
        ]
    );
    assert_eq!(listed[0]["inputSchema"]["required"], json!(["a", "b"]));
    let refused = client
        .call_tool(params("secret", &json!({})))
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("Unknown tool: secret"), "{refused}");
    host.running.stop().await;
}

#[tokio::test]
async fn a_call_is_made_for_another_principal_and_untrusted() {
    let host = Host::start(anywhere(), vec![add()]).await;
    let client = host.client().await;
    let result = client
        .call_tool(params("add", &json!({"a": 19, "b": 23})))
        .await
        .unwrap();
    assert_eq!(result.content[0].as_text().unwrap().text, "42");
    let seen = host.tools.seen.lock().unwrap()[0].clone();
    assert_eq!(
        (
            seen.principal().as_str(),
            seen.trust(),
            seen.content_trust(),
            seen.origin()
        ),
        ("mcp", Trust::Untrusted, Trust::Untrusted, Origin::Bus)
    );
}

#[tokio::test]
async fn failures_images_and_long_texts_are_results() {
    let fail = tool("fail", |_: Nothing| async {
        Err::<String, _>(ToolError::execution_failed("no such file"))
    });
    let draw = tool("draw", |_: Nothing| async {
        Content::from("a dot").with_media(MediaPart::bytes("image/png", vec![1, 2, 3]))
    });
    let long = tool("long", |_: Nothing| async { "é".repeat(100) });
    let file = tool("file", |_: Nothing| async {
        Content::EMPTY.with_media(MediaPart::of_file("a b.pdf", vec![0]))
    });
    let host = Host::start(anywhere().max_result_bytes(21), vec![fail, draw, long, file]).await;
    let client = host.client().await;
    let mut results = Vec::new();
    for name in ["fail", "draw", "long", "file"] {
        let result = client.call_tool(params(name, &json!({}))).await.unwrap();
        let result = serde_json::to_value(result).unwrap();
        results.push((result["isError"].clone(), result["content"].clone()));
    }
    let blob = json!({"uri": "result:///a%20b.pdf", "mimeType": "application/pdf", "blob": "AA=="});
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        results,
        [
            (json!(true), json!([text("no such file")])),
            (
                json!(false),
                json!([text("a dot"), {"type": "image", "data": "AQID", "mimeType": "image/png"}])
            ),
            (
                json!(false),
                json!([text(&format!("[truncated: 20 of 200 bytes]\n{}", "é".repeat(10)))])
            ),
            (json!(false), json!([{"type": "resource", "resource": blob}])),
        ]
    );
}

/// A client that keeps what it is told.
#[derive(Clone)]
struct Watching(mpsc::UnboundedSender<String>);

impl ClientHandler for Watching {
    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self
            .0
            .send(format!("{} {}", report.progress, report.message.unwrap_or_default()));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.0.send("changed".to_owned());
    }
}

#[tokio::test]
async fn progress_and_changes_reach_the_client() {
    let slow = tool("slow", |_: Nothing, cx: CallContext| async move {
        cx.progress().report("half");
        cx.progress().report("all");
        "done"
    });
    let host = Host::start(anywhere(), vec![slow]).await;
    let (told, mut telling) = mpsc::unbounded_channel();
    let transport = StreamableHttpClientTransport::from_uri(host.url());
    let client = Watching(told).serve(transport).await.unwrap();
    let mut call = params("slow", &json!({}));
    call.meta = Some(RequestMetaObject::with_progress_token(ProgressToken(
        NumberOrString::Number(7),
    )));
    let result = client.call_tool(call).await.unwrap();
    assert_eq!(result.content[0].as_text().unwrap().text, "done");
    let reports = [telling.recv().await.unwrap(), telling.recv().await.unwrap()];
    assert_eq!(reports, ["1 half", "2 all"]);
    host.tools.registry.register(&Owner::new("later"), add()).unwrap();
    assert_eq!(telling.recv().await.unwrap(), "changed");
}

#[tokio::test]
async fn a_cancelled_call_learns_of_it() {
    let (ended, mut ending) = mpsc::channel(1);
    let wait = stateful_tool(
        "wait",
        ended,
        |ended: ToolState<mpsc::Sender<()>>, _: Nothing, cx: CallContext| async move {
            cx.cancellation().cancelled().await;
            ended.send(()).await.unwrap();
            "cancelled"
        },
    );
    let host = Host::start(anywhere(), vec![wait]).await;
    let client = host.client().await;
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params("wait", &json!({}))));
    let options = PeerRequestOptions::no_options();
    let call: RequestHandle<RoleClient> = client.send_cancellable_request(request, options).await.unwrap();
    while host.tools.seen.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    call.cancel(Some("enough".to_owned())).await.unwrap();
    ending.recv().await.unwrap();
}

/// Our own client speaks today's protocol, without a session.
#[tokio::test]
async fn our_own_client_uses_the_tools() {
    let host = Host::start(anywhere().token("sesame".to_owned()), vec![add()]).await;
    let server = McpServer::http("sums", &host.url()).unwrap();
    let server = server.header("Authorization", "Bearer sesame");
    let client = crate::tests::Host::start(crate::McpTools::default().server(server)).await;
    assert_eq!(
        client.servers.list()[0].state,
        McpServerState::Connected,
        "{:?}",
        client.servers
    );
    let response = client.call("sums__add", json!({"a": 1, "b": 2})).await.unwrap();
    assert_eq!(response.content.into_words(), "3");
    // A tool that comes later is announced.
    host.tools
        .registry
        .register(&Owner::new("later"), tool("zero", |_: Nothing| async { "0" }))
        .unwrap();
    client.until_tools(&["sums__add", "sums__zero"]).await;
    client.running.stop().await;
    host.running.stop().await;
}
