//! Agents that use real MCP servers: those of npm that `.ci/mcp-servers` installs. The tests of
//! `rockbot-mcp` have the other servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rockbot::agent::AgentHost;
use rockbot::chat::Role;
use rockbot::mcp::{McpServer, McpServerState, McpServers, McpTools};
use rockbot::testing::{ScriptedModel, outside_part};
use rockbot::tool::ToolFilter;
use rockbot::turn::TurnError;
use rockbot_core::tool::ToolSelector;
use serde_json::{Value, json};

use crate::support::unguarded;

/// Returns the folder of the servers, or `None` if the test is to be skipped.
fn folder() -> Option<PathBuf> {
    outside_part(
        "ROCKBOT_TEST_MCP_SERVERS",
        "`.ci/mcp-servers` installs the servers and names their folder",
    )
}

fn of_npm(folder: &Path, name: &str) -> McpServer {
    let script = format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
    McpServer::process(name, "node").args([folder.join(script).display().to_string()])
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
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .add(tools)
        .policies(unguarded())
        .build()
        .unwrap();
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

/// The way around by `mcp_invoke_tool` is none: a tool that the question excludes stays excluded.
#[tokio::test]
async fn a_tool_that_a_question_excludes_cannot_be_called_by_another_name() {
    let Some(folder) = folder() else { return };
    let filters = [
        ToolFilter::all().without(["everything__echo"]),
        ToolFilter::all().without([ToolSelector::Source("mcp:everything".to_owned())]),
        ToolFilter::only(["mcp_invoke_tool"]),
        ToolFilter::only(["mcp_invoke_tool", "everything__echo"]),
    ];
    let mut results = Vec::new();
    for filter in filters {
        let tools = McpTools::default().server(of_npm(&folder, "everything"));
        let (host, model) = host(tools, "mcp_invoke_tool", echo_by_its_server()).await;
        host.agent().ask("s", "Echo something.").tools(filter).await.unwrap();
        results.push(last_result(&model));
        host.shutdown(Duration::from_secs(10)).await;
    }
    let refused = "this turn has no tool `everything__echo`";
    assert_eq!(results, [refused, refused, refused, "Echo: hi"]);
}

/// A tool of a server is asked about by whatever name it is called.
#[tokio::test]
async fn a_person_approves_the_tools_that_the_file_names() {
    let Some(folder) = folder() else { return };
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("mcp.json");
    let script = folder.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let entry = json!({"command": "node", "args": [script], "needsApproval": ["Echo"]});
    std::fs::write(&file, json!({"mcpServers": {"everything": entry}}).to_string()).unwrap();
    for (tool, arguments) in [
        ("everything__echo", json!({"message": "hi"})),
        ("mcp_invoke_tool", echo_by_its_server()),
    ] {
        let (host, model) = host(McpTools::from_file(&file), tool, arguments).await;
        let agent = host.agent();
        let parked = agent.ask("s", "Echo something.").await;
        assert!(matches!(parked, Err(TurnError::NeedsApproval(_))), "{tool}: {parked:?}");
        let asks = agent.approvals();
        assert_eq!(asks.len(), 1, "{tool}");
        agent.decide(asks[0].approve()).await.unwrap();
        agent.outcome(&asks[0].turn).await.unwrap();
        assert_eq!(last_result(&model), "Echo: hi", "{tool}");
        host.shutdown(Duration::from_secs(10)).await;
    }
    let (host, model) = host(
        McpTools::from_file(&file),
        "everything__get-sum",
        json!({"a": 1, "b": 2}),
    )
    .await;
    host.agent().ask("s", "Add.").await.unwrap();
    assert!(last_result(&model).contains('3'));
    host.shutdown(Duration::from_secs(10)).await;
}

fn echo_by_its_server() -> Value {
    json!({"server_name": "everything", "tool_name": "echo", "arguments": {"message": "hi"}})
}

/// Returns the newest result of a tool that the model has read.
fn last_result(model: &ScriptedModel) -> String {
    let requests = model.requests();
    let messages = &requests.last().unwrap().messages;
    let result = messages.iter().rfind(|message| message.role == Role::Tool);
    result.unwrap().text().into_owned()
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
