//! Agents that use real MCP servers: those of npm and PyPI that `.ci/mcp-servers` installs.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rockbot::agent::AgentHost;
use rockbot::mcp::{McpServer, McpServerState, McpServers, McpTools};
use rockbot::testing::ScriptedModel;
use serde_json::{Value, json};

/// Returns the folder of the servers, or `None` if the test is to be skipped.
fn folder() -> Option<PathBuf> {
    if let Ok(folder) = std::env::var("ROCKBOT_TEST_MCP_SERVERS") {
        return Some(folder.into());
    }
    let why = "ROCKBOT_TEST_MCP_SERVERS names no folder with MCP servers: `.ci/mcp-servers` installs them";
    let is_required = std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|required| required == "all");
    assert!(!is_required, "{why}");
    println!("SKIPPED: {why}");
    None
}

fn of_npm(folder: &Path, name: &str) -> McpServer {
    let script = format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
    McpServer::process(name, "node").args([folder.join(script).display().to_string()])
}

fn of_python<const N: usize>(folder: &Path, name: &str, arguments: [&str; N]) -> McpServer {
    let packages = folder.join("python").display().to_string();
    McpServer::process(name, "python3")
        .args(arguments)
        .variable("PYTHONPATH", packages)
}

/// A host with the servers, connected, whose model makes one call and then answers.
async fn host(tools: McpTools, tool: &str, arguments: Value) -> (AgentHost, ScriptedModel) {
    let model = ScriptedModel::new().calls(tool, arguments).says("Done.");
    let host = AgentHost::in_memory().chat(model.clone()).add(tools).build().unwrap();
    host.start().await.unwrap();
    let servers = host.parts().get::<McpServers>().unwrap();
    servers.settled().await;
    for server in servers.list() {
        assert_eq!(server.state, McpServerState::Connected, "{}", server.name);
    }
    (host, model)
}

/// Returns the result of one call by an agent's model.
async fn called(tools: McpTools, tool: &str, arguments: Value) -> String {
    let (host, model) = host(tools, tool, arguments).await;
    host.agent().ask("s", "Do it.").await.unwrap();
    let result = model.requests()[1].messages.last().unwrap().text().into_owned();
    host.shutdown(Duration::from_secs(10)).await;
    result
}

#[tokio::test]
async fn the_reference_servers_of_npm_answer() {
    let Some(folder) = folder() else { return };
    let tools = McpTools::default().server(of_npm(&folder, "everything"));
    let echoed = called(tools, "everything__echo", json!({"message": "hi"})).await;
    assert_eq!(echoed, "Echo: hi");

    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("a.txt"), "the text").unwrap();
    let script = folder.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let root = files.path().display().to_string();
    let server = McpServer::process("files", "node").args([script.display().to_string(), root.clone()]);
    let path = files.path().canonicalize().unwrap().join("a.txt").display().to_string();
    let read = called(
        McpTools::default().server(server.clone()),
        "files__read_text_file",
        json!({"path": path}),
    )
    .await;
    assert_eq!(read, "the text");
    let tools = McpTools::default().server(server);
    let refused = called(tools, "files__read_text_file", json!({"path": "/etc/passwd"})).await;
    assert!(refused.contains("Access denied"), "{refused}");

    let notes = files.path().join("memory.json").display().to_string();
    let server = of_npm(&folder, "memory").variable("MEMORY_FILE_PATH", notes);
    let entity = json!({"entities": [{"name": "Miso", "entityType": "cat", "observations": ["likes tuna"]}]});
    let created = called(McpTools::default().server(server), "memory__create_entities", entity).await;
    assert!(created.contains("Miso"), "{created}");
}

#[tokio::test]
async fn servers_of_python_answer_in_today_s_protocol() {
    let Some(folder) = folder() else { return };
    let time = of_python(&folder, "time", ["-m", "mcp_server_time", "--local-timezone", "UTC"]);
    let asked = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let told = called(McpTools::default().server(time), "time__convert_time", asked).await;
    assert!(told.contains("T21:00:00+09:00"), "{told}");

    let program = "from fastmcp import FastMCP\n\
                   mcp = FastMCP('sums')\n\
                   @mcp.tool\n\
                   def add(a: int, b: int) -> int:\n    return a + b\n\
                   mcp.run(show_banner=False)\n";
    let sums = of_python(&folder, "sums", ["-c", program]);
    let sum = called(McpTools::default().server(sums), "sums__add", json!({"a": 19, "b": 23})).await;
    assert_eq!(sum, "42");
}

/// Runs the server `everything` with one of its transports over HTTP, and calls it.
async fn over_http(folder: &Path, transport: &str, path: &str) -> String {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .unwrap()
        .port();
    let script = folder.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let mut program = tokio::process::Command::new("node");
    program
        .arg(script)
        .arg(transport)
        .env("PORT", port.to_string())
        .kill_on_drop(true);
    let _running = program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let server = McpServer::http("web", &format!("http://127.0.0.1:{port}{path}")).unwrap();
    called(
        McpTools::default().server(server),
        "web__echo",
        json!({"message": transport}),
    )
    .await
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

/// The model knows no server: it searches, and calls what it found.
#[tokio::test]
async fn a_model_finds_a_tool_and_calls_it_by_its_own_name() {
    let Some(folder) = folder() else { return };
    let model = ScriptedModel::new()
        .calls("activate_tools", json!({"group": "mcp"}))
        .calls("mcp_find_tools", json!({"query": "echo a message"}))
        .calls("everything__echo", json!({"message": "found"}))
        .says("Done.");
    let tools = McpTools::default().server(of_npm(&folder, "everything"));
    let host = AgentHost::in_memory().chat(model.clone()).add(tools).build().unwrap();
    host.start().await.unwrap();
    host.parts().get::<McpServers>().unwrap().settled().await;
    host.agent().ask("s", "Echo something.").await.unwrap();
    let shown = |at: usize| {
        let tools = model.requests()[at].tools.clone();
        tools.names().any(|name| name == "everything__echo")
    };
    assert_eq!([1, 2].map(shown), [false, true]);
    assert_eq!(model.requests()[3].messages.last().unwrap().text(), "Echo: found");
    host.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_server() {
    let Some(folder) = folder() else { return };
    let tools = McpTools::default().server(of_npm(&folder, "everything"));
    let refused = called(tools, "everything__get-sum", json!({"a": "one"})).await;
    assert!(refused.contains("`b` is required and missing"), "{refused}");
}

/// Every file of the desktop clients' form, from the file to the answer.
#[tokio::test]
async fn a_file_of_servers_is_one_line() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("mcp.json");
    std::fs::write(&file, r#"{"mcpServers": {"gone": {"command": "/nowhere/at/all"}}}"#).unwrap();
    let tools = McpTools::from_file(&file);
    let host = AgentHost::in_memory()
        .chat(ScriptedModel::new())
        .add(tools)
        .build()
        .unwrap();
    host.start().await.unwrap();
    let servers = host.parts().get::<McpServers>().unwrap();
    servers.settled().await;
    let McpServerState::Failed(reason) = &servers.list()[0].state else {
        panic!("{servers:?}");
    };
    assert!(
        reason.starts_with("the program cannot be started: No such file"),
        "{reason}"
    );
    host.shutdown(Duration::from_secs(10)).await;

    std::fs::write(&file, "{").unwrap();
    let broken = AgentHost::in_memory()
        .chat(ScriptedModel::new())
        .add(McpTools::from_file(&file))
        .build();
    assert!(
        broken
            .unwrap_err()
            .to_string()
            .contains("is not JSON, at line 1 column 1")
    );
}
