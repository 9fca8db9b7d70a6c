//! The official conformance suite, which `.ci/mcp-servers` installs: each scenario for clients
//! that this client passes.
//!
//! The suite starts a client for each scenario: this test program, with [`client`] as its only
//! test.

use rockbot_core::tool::ToolRegistry as _;
use serde_json::{Value, json};

use super::requests::User;
use super::{Host, real};
use crate::{McpServer, McpServerState, McpTools};

/// The scenarios, by the version of the protocol that they run in: all but those of extensions.
const SCENARIOS: [(&str, &[&str]); 2] = [
    (
        "2025-11-25",
        &[
            "initialize",
            "tools_call",
            "elicitation-sep1034-client-defaults",
            "json-schema-2020-12-preservation",
            "sse-retry",
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

/// The scenarios of authorization: all but those of extensions.
#[cfg(feature = "oauth")]
const AUTHORIZED: [(&str, &[&str]); 3] = [
    (
        "2025-03-26",
        &[
            "auth/2025-03-26-oauth-metadata-backcompat",
            "auth/2025-03-26-oauth-endpoint-fallback",
        ],
    ),
    (
        "2025-11-25",
        &[
            "auth/metadata-default",
            "auth/metadata-var1",
            "auth/metadata-var2",
            "auth/metadata-var3",
            "auth/basic-cimd",
            "auth/scope-from-www-authenticate",
            "auth/scope-from-scopes-supported",
            "auth/scope-omitted-when-undefined",
            "auth/scope-step-up",
            "auth/scope-retry-limit",
            "auth/token-endpoint-auth-basic",
            "auth/token-endpoint-auth-post",
            "auth/token-endpoint-auth-none",
            "auth/pre-registration",
        ],
    ),
    (
        "2026-07-28",
        &[
            "auth/metadata-default",
            "auth/metadata-var1",
            "auth/metadata-var2",
            "auth/metadata-var3",
            "auth/basic-cimd",
            "auth/scope-from-www-authenticate",
            "auth/scope-from-scopes-supported",
            "auth/scope-omitted-when-undefined",
            "auth/scope-step-up",
            "auth/scope-retry-limit",
            "auth/token-endpoint-auth-basic",
            "auth/token-endpoint-auth-post",
            "auth/token-endpoint-auth-none",
            "auth/pre-registration",
            "auth/resource-mismatch",
            "auth/offline-access-scope",
            "auth/offline-access-not-supported",
            "auth/authorization-server-migration",
            "auth/iss-supported",
            "auth/iss-not-advertised",
            "auth/iss-supported-missing",
            "auth/iss-wrong-issuer",
            "auth/iss-unexpected",
            "auth/iss-normalized",
            "auth/metadata-issuer-mismatch",
        ],
    ),
];

/// Name of [`client`] among the tests of this program.
const CLIENT: &str = "tests::conformance::client";

#[tokio::test]
async fn the_official_suite_passes() {
    pass(&SCENARIOS).await;
}

#[tokio::test]
#[cfg(feature = "oauth")]
async fn the_official_suite_of_authorization_passes() {
    pass(&AUTHORIZED).await;
}

async fn pass(scenarios: &[(&str, &[&str])]) {
    let Some(folder) = real::folder() else { return };
    let program = std::env::current_exe().unwrap();
    let command = format!("{} --ignored --nocapture --exact {CLIENT}", program.display());
    real::pass_conformance(&folder, &["client", "--command", &command], scenarios).await;
}

/// The client of one scenario: it calls what the scenario names, or else all that the server has.
/// The suite appends the URL.
#[tokio::test]
#[ignore = "the suite starts it"]
#[expect(clippy::print_stdout, reason = "the suite keeps what its client prints")]
async fn client() {
    let url = std::env::args().next_back().unwrap();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let server = McpServer::http("s", &url).unwrap();
    let tools = McpTools::default().elicitation(User::accepting(json!({})));
    #[cfg(feature = "oauth")]
    let (server, tools) = authorized::with_browser(server, tools, &url, &context).await;
    let host = Host::start(tools.server(server)).await;
    // The authorization server of this scenario changes: the next attempt to connect is authorized
    // anew.
    if std::env::var("MCP_CONFORMANCE_SCENARIO").is_ok_and(|name| name == "auth/authorization-server-migration") {
        let mut changes = host.servers.watch().unwrap();
        while host.servers.list()[0].state != McpServerState::Connected {
            changes.changed().await.unwrap();
        }
    }
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

/// Returns a call that the scenario names, without arguments that are null: a model leaves those
/// out.
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

/// The authorization of scenarios.
#[cfg(feature = "oauth")]
mod authorized {
    use async_trait::async_trait;
    use rockbot_tools::egress::EgressPolicy;
    use serde_json::Value;

    use crate::{Authorization, AuthorizationAnswer, AuthorizationHandler, McpOAuth, McpServer, McpTools};

    /// A user whose browser agrees at once.
    #[derive(Debug)]
    struct Browser;

    #[async_trait]
    impl AuthorizationHandler for Browser {
        async fn authorize(&self, authorization: Authorization) -> AuthorizationAnswer {
            let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
            let page = browser.no_proxy().build().unwrap().get(authorization.url).send().await;
            let page = page.unwrap();
            match page.headers().get("location") {
                Some(address) => AuthorizationAnswer::Redirected(address.to_str().unwrap().to_owned()),
                None => AuthorizationAnswer::Decline,
            }
        }
    }

    /// Adds the browser, and the client of the scenario. Its authorization server has another port,
    /// which only its metadata tell.
    pub(super) async fn with_browser(
        server: McpServer,
        tools: McpTools,
        url: &str,
        context: &Value,
    ) -> (McpServer, McpTools) {
        let text = |name: &str| context[name].as_str();
        let oauth = match (text("client_id"), text("client_secret")) {
            (Some(id), Some(secret)) => McpOAuth::default().client(id).secret(secret, issuer(url).await),
            _ => McpOAuth::default().client_metadata_url("https://conformance-test.local/client-metadata.json"),
        };
        let policy = (32_768..=u16::MAX).fold(EgressPolicy::default(), |policy, port| {
            policy.allow_host(&format!("localhost:{port}")).unwrap()
        });
        (server.oauth(oauth), tools.authorization(Browser).egress(policy))
    }

    /// Returns the issuer of a server, which the person who registers a client knows.
    async fn issuer(url: &str) -> String {
        let metadata = url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let metadata = client.get(metadata).send().await.unwrap().bytes().await.unwrap();
        let metadata: Value = serde_json::from_slice(&metadata).unwrap();
        metadata["authorization_servers"][0].as_str().unwrap().to_owned()
    }
}
