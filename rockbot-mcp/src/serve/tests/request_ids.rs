//! Tests of requests over standard input under the id of one that runs.

use rmcp::model::{CallToolResult, ContentBlock, JsonRpcMessage, NumberOrString, ServerJsonRpcMessage, ServerResult};
use rmcp::transport::Transport as _;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::serve::request_ids::UniqueIds;

fn call(id: u32) -> String {
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "x"}});
    format!("{call}\n")
}

#[tokio::test]
async fn a_request_under_the_id_of_one_that_runs_is_refused() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(ours);
    let mut transport = UniqueIds::around(AsyncRwTransport::new_server(read, write));
    let (read, mut write) = tokio::io::split(theirs);
    let mut answers = BufReader::new(read).lines();
    let mut answer = async || serde_json::from_str::<Value>(&answers.next_line().await.unwrap().unwrap()).unwrap();
    let id_of = |message: Option<_>| match message {
        Some(JsonRpcMessage::Request(request)) => request.id,
        other => panic!("{other:?}"),
    };

    write
        .write_all([call(7), call(7), call(8)].concat().as_bytes())
        .await
        .unwrap();
    assert_eq!(id_of(transport.receive().await), NumberOrString::Number(7));
    assert_eq!(
        id_of(transport.receive().await),
        NumberOrString::Number(8),
        "the second 7 is not seen"
    );
    let refused = answer().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32600)));
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("the request id 7 is in use")
    );

    // Answered, its id is free again; and so is that of a cancelled request.
    let result = ServerResult::CallToolResult(CallToolResult::success(vec![ContentBlock::text("done")]));
    let result = ServerJsonRpcMessage::response(result, NumberOrString::Number(7));
    transport.send(result).await.unwrap();
    assert_eq!(answer().await["id"], 7);
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 8}});
    let sent = [call(7), format!("{cancelled}\n"), call(8)].concat();
    write.write_all(sent.as_bytes()).await.unwrap();
    assert_eq!(id_of(transport.receive().await), NumberOrString::Number(7));
    assert!(matches!(
        transport.receive().await,
        Some(JsonRpcMessage::Notification(_))
    ));
    assert_eq!(id_of(transport.receive().await), NumberOrString::Number(8));
}
