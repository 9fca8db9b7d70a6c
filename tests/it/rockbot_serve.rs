//! `rockbot serve`: an agent as a service, from settings alone.

use std::process::Stdio;

use rockbot::mcp::{McpServer, McpServers, McpTools};
use rockbot::prelude::AgentHost;
use rockbot::testing::ScriptedModel;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr};
use tokio::time::timeout;

use crate::example_programs::{OFFLINE, PATIENCE, example, run, send_signal, text};

/// Reads JSON lines of the log until one has this message.
async fn logged(lines: &mut Lines<BufReader<ChildStderr>>, message: &str) -> Value {
    loop {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("it logs").unwrap();
        let line = line.expect("it runs");
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("it logs JSON: {line}"));
        if line["message"] == message {
            return line;
        }
    }
}

/// Asks the service for `path` and returns its answer.
async fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn stopped(mut service: Child) {
    send_signal(&service, "-TERM").await;
    let status = timeout(PATIENCE, service.wait()).await.expect("it ends").unwrap();
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_service_says_where_it_is_and_stops_at_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--port", "0", "--name", "butler", "--serve-mcp", "127.0.0.1:0"];
    let mut service = example("chat", &arguments, folder.path());
    let mut service = service
        .env(OFFLINE.0, OFFLINE.1)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(service.stderr.take().unwrap()).lines();
    let served = logged(&mut lines, "metrics and probes are served").await;
    let address = served["address"].as_str().unwrap().to_owned();
    let tools = logged(&mut lines, "tools are served to MCP clients").await;
    logged(&mut lines, "ready").await;

    let ready = get(&address, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200 OK"), "{ready}");
    let tools = McpTools::default().server(McpServer::http("butler", tools["url"].as_str().unwrap()).unwrap());
    let model = ScriptedModel::new()
        .calls("butler__calculate", json!({"expression": "6 * 7"}))
        .says("Done.");
    let host = AgentHost::in_memory().chat(model.clone()).add(tools).build().unwrap();
    host.start().await.unwrap();
    host.parts().get::<McpServers>().unwrap().settled().await;
    host.agent().ask("s", "What is 6 times 7?").await.unwrap();
    assert_eq!(model.requests()[1].messages.last().unwrap().text(), "42");

    let metrics = get(&address, "/metrics").await;
    assert!(metrics.contains("rockbot_"), "{metrics}");
    stopped(service).await;
}

#[tokio::test]
async fn a_service_without_a_model_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("chat", &["serve", "--port", "0"], folder.path()).await;
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.starts_with("error: no model is configured: set OPENAI_API_KEY"),
        "{told}"
    );
}
