//! A host's tools for MCP clients: calls through the host's guard, and the example program with
//! real clients.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rockbot::agent::AgentHost;
use rockbot::context::{Origin, Trust};
use rockbot::implement::tool::OutsideTools;
use rockbot::layer::tool_fn;
use rockbot::mcp::{McpEndpoint, McpServer, McpServers, McpToolServer, McpTools};
use rockbot::testing::{ScriptedModel, outside_part};
use rockbot::tool::{Tool, ToolInvokeRequest, tool};
use rockbot::turn::TurnPolicies;
use rockbot::{CallContext, Principal};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::example_programs::{OFFLINE, PATIENCE, example, text};
use crate::support::{Anything, unguarded};

/// A call as a subsystem makes it for a caller outside.
async fn called(host: &AgentHost, name: &str, arguments: &Value) -> String {
    let tools = host.parts().get::<dyn OutsideTools>().unwrap();
    let request = ToolInvokeRequest::new("1", name, arguments.to_string());
    let cx = CallContext::new("s")
        .with_trust(Trust::Untrusted)
        .with_origin(Origin::Bus);
    tools.call(request, &cx).await.content.into_words()
}

fn echo(name: &'static str) -> Tool {
    tool(name, |Anything { n }: Anything| async move { n.to_string() })
}

#[tokio::test]
async fn a_call_from_outside_passes_layers_checks_and_approvals() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let names = seen.clone();
    let audit = tool_fn(
        move |call: rockbot::layer::ToolInvocation, next: rockbot::layer::Next<_, _>| {
            names.lock().unwrap().push(call.request.tool_name.to_string());
            async move { next.call(call).await }
        },
    );
    let host = AgentHost::in_memory()
        .chat(ScriptedModel::new())
        .tool(echo("echo"))
        .tool(echo("send").needs_approval())
        .tool(echo("rule").needs_endorsement())
        .tool_layer(audit)
        .policies(TurnPolicies::new().with_has_approver(false))
        .build()
        .unwrap();
    assert_eq!(called(&host, "echo", &json!({"n": 7})).await, "7");
    let wrong = called(&host, "echo", &json!({"n": "x"})).await;
    assert!(wrong.contains("`n`"), "{wrong}");
    let unapproved = called(&host, "send", &json!({"n": 1})).await;
    assert_eq!(unapproved, "there is no tool `send`");
    let unendorsed = called(&host, "rule", &json!({"n": 1})).await;
    assert!(unendorsed.contains("only the user can approve it"), "{unendorsed}");
    assert_eq!(*seen.lock().unwrap(), ["echo", "echo", "rule"]);
}

/// One agent uses the tools of another, over HTTP: the example of two hosts.
#[tokio::test]
async fn an_agent_uses_the_tools_of_a_host_without_a_model() {
    let seen = Arc::new(Mutex::new(None));
    let kept = seen.clone();
    let who = tool("who", move |_: Anything, cx: CallContext| {
        *kept.lock().unwrap() = Some((cx.principal().clone(), cx.content_trust()));
        async { "you" }
    });
    let server = McpToolServer::new()
        .listen("127.0.0.1:0".parse().unwrap())
        .tools(["who"])
        .token("sesame".to_owned())
        .principal(Principal::from("friend"));
    let workshop = AgentHost::builder("workshop")
        .tool(who)
        .tool(echo("hidden"))
        .add(server);
    let workshop = workshop.build().unwrap();
    workshop.start().await.unwrap();
    let address = workshop.parts().get::<McpEndpoint>().unwrap().address().unwrap();

    let server = McpServer::http("shop", &format!("http://{address}/mcp")).unwrap();
    let server = server.header("Authorization", "Bearer sesame");
    let model = ScriptedModel::new().calls("shop__who", json!({"n": 1})).says("Done.");
    let tools = McpTools::default().server(server);
    let agent = AgentHost::in_memory().chat(model.clone()).add(tools).build().unwrap();
    agent.start().await.unwrap();
    let servers = agent.parts().get::<McpServers>().unwrap();
    servers.settled().await;
    assert_eq!(servers.list()[0].tools, ["who"]);
    agent.agent().ask("s", "Who am I?").await.unwrap();
    assert_eq!(model.requests()[1].messages.last().unwrap().text(), "you");
    assert_eq!(
        *seen.lock().unwrap(),
        Some((Principal::from("friend"), Trust::Untrusted))
    );
    agent.shutdown(Duration::from_secs(10)).await;
    workshop.shutdown(Duration::from_secs(10)).await;
}

/// Returns the example as a server that a client starts.
fn notes() -> McpServer {
    let folder = tempfile::tempdir().unwrap();
    let command = example("mcp_server", &[], folder.path());
    let program = command.as_std().get_program().to_str().unwrap().to_owned();
    McpServer::process("notes", program)
}

/// The first question after the start waits for the server.
#[tokio::test]
async fn our_client_uses_the_example_over_standard_input() {
    let model = ScriptedModel::new()
        .calls("notes__add_note", json!({"text": "buy milk"}))
        .calls("notes__search_notes", json!({"text": "milk"}))
        .says("Done.");
    let tools = McpTools::default().server(notes());
    let host = AgentHost::in_memory()
        .policies(unguarded())
        .chat(model.clone())
        .add(tools)
        .build()
        .unwrap();
    host.start().await.unwrap();
    host.agent().ask("s", "Note it.").await.unwrap();
    assert!(model.requests()[0].tools.names().any(|name| name == "notes__add_note"));
    assert_eq!(model.requests()[2].messages.last().unwrap().text(), "buy milk");
    host.shutdown(Duration::from_secs(10)).await;
}

/// Starts an example that serves its tools, and returns it with the URL after `says`, which it
/// prints to either stream.
async fn serving(name: &str, arguments: &[&str], says: &str, data: &Path) -> (Child, String) {
    let arguments = [
        arguments,
        &["--serve-mcp", "127.0.0.1:0", "--data", data.to_str().unwrap()],
    ]
    .concat();
    let mut running = example(name, &arguments, data)
        .envs([OFFLINE])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(running.stdout.take().unwrap()).lines();
    let mut err = BufReader::new(running.stderr.take().unwrap()).lines();
    let url = async {
        loop {
            let line = tokio::select! {
                Ok(Some(line)) = out.next_line() => line,
                Ok(Some(line)) = err.next_line() => line,
                else => panic!("{name} has ended"),
            };
            if let Some(url) = line.strip_prefix(says) {
                return url.to_owned();
            }
        }
    };
    let url = tokio::time::timeout(PATIENCE, url)
        .await
        .expect("it says where it serves");
    // A program that cannot write its next line would end.
    tokio::spawn(async move { while let Ok(Some(_)) = out.next_line().await {} });
    tokio::spawn(async move { while let Ok(Some(_)) = err.next_line().await {} });
    (running, url)
}

/// The option `--serve-mcp` of the programs, from a client's side.
#[tokio::test]
async fn the_chat_and_the_full_agent_serve_their_tools() {
    let data = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (_chat, chat) = serving("chat", &[], "the tools are served at ", data[0].path()).await;
    let port = ["--port", "0"];
    let (_full, full) = serving("full_agent", &port, "tools for MCP clients at ", data[1].path()).await;
    let tools = McpTools::default()
        .server(McpServer::http("chat", &chat).unwrap())
        .server(McpServer::http("full", &full).unwrap());
    let model = ScriptedModel::new()
        .calls("chat__calculate", json!({"expression": "6 * 7"}))
        .says("Done.");
    let host = AgentHost::in_memory().chat(model.clone()).add(tools).build().unwrap();
    host.start().await.unwrap();
    let servers = host.parts().get::<McpServers>().unwrap();
    servers.settled().await;
    let served: Vec<_> = servers.list().into_iter().map(|server| server.tools).collect();
    let has = |server: usize, tool: &str| served[server].iter().any(|name| name == tool);
    assert!(has(0, "calculate") && has(1, "take_note"), "{served:?}");
    // What needs a person's approval is not served.
    assert!(!has(0, "read_file"), "{served:?}");
    host.agent().ask("s", "What is 6 times 7?").await.unwrap();
    assert_eq!(model.requests()[1].messages.last().unwrap().text(), "42");
    host.shutdown(Duration::from_secs(10)).await;
}

/// Returns the folder of MCP programs, or `None` if the test is to be skipped.
fn folder() -> Option<PathBuf> {
    outside_part(
        "ROCKBOT_TEST_MCP_SERVERS",
        "`.ci/mcp-servers` installs the servers and names their folder",
    )
}

/// A client of PyPI, over standard input and over HTTP.
const CLIENT: &str = r#"
import asyncio, sys
from fastmcp import Client

async def main():
    seen = []
    async def progress(done, total, message):
        seen.append(message)
    where = {"mcpServers": {"notes": {"command": sys.argv[1], "args": []}}} if len(sys.argv) == 2 else sys.argv[2]
    async with Client(where, progress_handler=progress) as client:
        tools = await client.list_tools()
        print(*sorted(f"{tool.name}:{tool.annotations.read_only_hint}" for tool in tools))
        await client.call_tool("add_note", {"text": "buy milk"})
        found = await client.call_tool("search_notes", {})
        print(found.content[0].text)
        await client.call_tool("count_down", {"seconds": 1})
        print(*seen)

asyncio.run(main())
"#;

const SEEN: &str = "add_note:False count_down:True search_notes:True\nbuy milk\n1 …\n";

#[tokio::test]
async fn a_client_of_python_uses_the_example_over_both_transports() {
    let Some(folder) = folder() else { return };
    let data = tempfile::tempdir().unwrap();
    let mut server = example("mcp_server", &["--http", "127.0.0.1:0"], data.path());
    let program = server.as_std().get_program().to_str().unwrap().to_owned();
    let mut running = server.spawn().unwrap();
    let output = BufReader::new(running.stdout.take().unwrap());
    let mut lines = output.lines();
    let line = lines.next_line().await.unwrap().unwrap();
    let url = line.strip_prefix("serving at ").unwrap();
    for arguments in [vec![&*program], vec![&*program, url]] {
        let mut client = Command::new("python3");
        client
            .args(["-c", CLIENT])
            .args(&arguments)
            .env("PYTHONPATH", folder.join("python"))
            .kill_on_drop(true);
        let ended = tokio::time::timeout(PATIENCE, client.output()).await.unwrap().unwrap();
        assert_eq!(text(&ended.stdout), SEEN, "{}", text(&ended.stderr));
    }
}
