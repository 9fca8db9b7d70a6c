//! The official conformance suite, which `.ci/mcp-servers` installs: each scenario for clients that this client passes.
//!
//! The suite starts a client for each scenario: this test program, with [`client`] as its only test.

use rockbot_core::tool::ToolRegistry as _;
use serde_json::{Value, json};

use super::requests::User;
use super::{Host, real};
use crate::{McpServer, McpServerState, McpTools};

/// The scenarios, by the version of the protocol that they run in. Those that are not here need authorization or an extension;
/// `sse-retry` does not end.
const SCENARIOS: [(&str, &[&str]); 2] = [
    (
        "2025-11-25",
        &[
            "initialize",
            "tools_call",
            "elicitation-sep1034-client-defaults",
            "json-schema-2020-12-preservation",
        ],
    ),
    (
        "2026-07-28",
        &[
            "tools_call",
            "request-metadata",
            "sep-2322-client-request-state",
            "http-standard-headers",
            "http-custom-headers",
            "http-invalid-tool-headers",
            "json-schema-ref-no-deref",
            "json-schema-2020-12-preservation",
        ],
    ),
];

/// Name of [`client`] among the tests of this program.
const CLIENT: &str = "tests::conformance::client";

#[tokio::test]
async fn the_official_suite_passes() {
    let Some(folder) = real::folder() else { return };
    let program = std::env::current_exe().unwrap();
    let command = format!("{} --ignored --nocapture --exact {CLIENT}", program.display());
    real::pass_conformance(&folder, &["client", "--command", &command], &SCENARIOS).await;
}

/// The client of one scenario: it calls what the scenario names, or else all that the server has. The suite appends the URL.
#[tokio::test]
#[ignore = "the suite starts it"]
#[expect(clippy::print_stdout, reason = "the suite keeps what its client prints")]
async fn client() {
    let url = std::env::args().next_back().unwrap();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let tools = McpTools::default()
        .server(McpServer::http("s", &url).unwrap())
        .elicitation(User::accepting(json!({})));
    let host = Host::start(tools).await;
    assert_eq!(
        host.servers.list()[0].state,
        McpServerState::Connected,
        "{:?}",
        host.servers
    );
    for (name, arguments) in calls(&host, &context) {
        let called = json!({"server_name": "s", "tool_name": name, "arguments": arguments});
        println!("{name}: {:?}", host.manage("mcp_invoke_tool", called).await);
    }
    for (tool, arguments) in offers(&host).await {
        println!("{arguments}: {:?}", host.manage(tool, arguments.clone()).await);
    }
    host.running.stop().await;
}

/// Returns the calls of the scenario, or one of each tool.
fn calls(host: &Host, context: &Value) -> Vec<(String, Value)> {
    if let Some(calls) = context["toolCalls"].as_array() {
        return calls.iter().map(given).collect();
    }
    let list = host.servers.list().remove(0);
    let schema = |name: &str| {
        let tool = host.servers.tool_name("s", name).unwrap();
        let snapshot = host.registry.snapshot();
        let found = snapshot.find(tool.as_str());
        found
            .map(|entry| entry.registration().parameters_schema.clone())
            .unwrap_or_default()
    };
    let call = |name: &String| match name.as_str() {
        // It wants to see the schema of another tool, as this client has it.
        "json_schema_echo" => (name.clone(), json!({"schema": schema("json_schema_2020_12_tool")})),
        _ => (name.clone(), arguments_for(&schema(name))),
    };
    list.tools.iter().map(call).collect()
}

/// Returns a call that the scenario names, without arguments that are null: a model leaves those out.
fn given(call: &Value) -> (String, Value) {
    let mut arguments = call["arguments"].as_object().cloned().unwrap_or_default();
    arguments.retain(|_, value| !value.is_null());
    (call["name"].as_str().unwrap().to_owned(), Value::Object(arguments))
}

/// Returns values for the properties of a schema that are required.
fn arguments_for(schema: &Value) -> Value {
    let value = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("number" | "integer") => json!(5),
        Some("boolean") => json!(true),
        Some("object") => json!({}),
        Some("array") => json!([]),
        _ => json!("x"),
    };
    let required = schema["required"].as_array().into_iter().flatten();
    let names = required.filter_map(Value::as_str);
    names.map(|name| (name.to_owned(), value(name))).collect()
}

/// Returns the calls that read each resource and each prompt.
async fn offers(host: &Host) -> Vec<(&'static str, Value)> {
    let list = host
        .manage("mcp_list_resources", json!({"server_name": "s"}))
        .await
        .unwrap_or_default();
    let list: Value = serde_json::from_str(&list).unwrap_or_default();
    let each = |key: &str| list[key].as_array().cloned().unwrap_or_default();
    let resources = each("resources").into_iter();
    let resources = resources.map(|offer| ("mcp_read_resource", json!({"server_name": "s", "uri": offer["uri"]})));
    let prompts = each("prompts").into_iter();
    let prompts = prompts.map(|offer| {
        (
            "mcp_get_prompt",
            json!({"server_name": "s", "prompt_name": offer["name"]}),
        )
    });
    resources.chain(prompts).collect()
}
