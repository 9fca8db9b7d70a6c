//! Tests of the search as a model and a message meet it.

use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::content::Provenance;
use rockbot_core::service::{KnownService, ServiceKind, ServiceSource, ServiceSources};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::{StaticGuide, ToolGroup, tool};
use rockbot_core::trust::Trust;
use rockbot_core::{BoxError, CallContext, Principal};
use rockbot_host::{AgentHost, AgentHostBuilder};
use serde_json::{Value, json};

use crate::ServiceSearch;

/// Servers that a bridge would list.
#[derive(Debug)]
struct Servers;

#[async_trait]
impl ServiceSource for Servers {
    fn name(&self) -> &str {
        "servers"
    }

    async fn services(&self, _: &Principal) -> Result<Vec<KnownService>, BoxError> {
        let items = ["search_leads", "update_opportunity", "close", "more"]
            .map(str::to_owned)
            .to_vec();
        let crm = KnownService::new(
            ServiceKind::McpServer,
            "salesforce-mcp",
            "Direct access to accounts and leads.",
        );
        let weather = KnownService::new(ServiceKind::McpServer, "weather-mcp", "Forecasts for any town.");
        let untrusted = Provenance::new("tools:mcp:salesforce-mcp", Trust::Untrusted);
        Ok(vec![crm.with_items(items).with_provenance(untrusted), weather])
    }
}

/// A source that cannot be read.
#[derive(Debug)]
struct Broken;

#[async_trait]
impl ServiceSource for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    async fn services(&self, _: &Principal) -> Result<Vec<KnownService>, BoxError> {
        Err("it is broken".into())
    }
}

/// Takes nothing.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

const AGENTS: &str = r#"[{"agentName": "SalesOpsAgent", "description": "Reports about sales and leads.",
    "skills": [{"id": "generate-qbr-report", "name": "QBR", "tags": ["quarterly"]}, {"id": "audit-pipeline"}]}]"#;

/// A host with an agent in a file, two servers, a tool on demand and a guide.
async fn host(
    search: ServiceSearch,
    with: impl FnOnce(AgentHostBuilder) -> AgentHostBuilder,
) -> (AgentHost, tempfile::TempDir) {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("well-known-agents.json"), AGENTS).unwrap();
    let moving = tool("plan_route", |_: Nothing| async { "north" })
        .pure()
        .description("Plans the route of a lorry.")
        .on_demand(&ToolGroup::new("lorries", "lorries"));
    let builder = AgentHost::in_memory()
        .data_dir(data.path())
        .tool(moving)
        .guide(StaticGuide::new(
            "lorry-guide",
            "How to load a lorry.",
            "Load it from the back.",
        ))
        .add(search);
    let host = with(builder).build().unwrap();
    let sources = host.parts().get::<ServiceSources>().unwrap();
    sources.add(Broken);
    sources.add(Servers);
    host.start().await.unwrap();
    (host, data)
}

async fn found(host: &AgentHost, query: &str) -> Value {
    let entry = host.tools().snapshot().find("search_known_services").unwrap().clone();
    let arguments = json!({"query": query}).to_string();
    let request = rockbot_core::tool::ToolInvokeRequest::new("1", "search_known_services", arguments);
    let response = entry.executor().execute(request, &CallContext::new("s")).await.unwrap();
    serde_json::from_str(&response.content.text()).unwrap()
}

#[tokio::test]
async fn results_have_the_original_s_form_and_an_absolute_relevance() {
    let (host, _data) = host(ServiceSearch::new(), |host| host.chat(ScriptedModel::new())).await;
    assert_eq!(
        found(&host, "quarterly sales report").await,
        json!({"results": [{
            "id": "SalesOpsAgent", "type": "a2a", "summary": "Reports about sales and leads.",
            "relevance_score": 1.0, "relevance": 1.0, "top_skills": ["generate-qbr-report", "audit-pipeline"],
        }]})
    );
    let leads = found(&host, "search leads of accounts").await;
    let first = &leads["results"][0];
    assert_eq!(
        (&first["id"], &first["type"]),
        (&json!("salesforce-mcp"), &json!("mcp"))
    );
    assert_eq!(
        first["top_tools"],
        json!(["search_leads", "update_opportunity", "close"])
    );
    let second = &leads["results"][1];
    assert_eq!(second["id"], "SalesOpsAgent");
    assert!(second["relevance_score"].as_f64().unwrap() < 1.0, "{leads}");
    assert_eq!(second["relevance"], 0.33);
    let kinds = found(&host, "lorry").await;
    let kinds: Vec<_> = kinds["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| &found["type"])
        .collect();
    assert!(
        kinds.contains(&&json!("tool")) && kinds.contains(&&json!("guide")),
        "{kinds:?}"
    );
    assert_eq!(found(&host, "knitting").await, json!({"results": []}));
}

/// The tool on demand is not there before the search, and is called after it.
#[tokio::test]
async fn a_model_calls_the_tool_that_it_found() {
    let model = ScriptedModel::new()
        .calls("search_known_services", json!({"query": "route of a lorry"}))
        .calls("plan_route", json!({}))
        .says("North.");
    let (host, _data) = host(ServiceSearch::new(), |host| host.chat(model.clone())).await;
    let outcome = host.agent().ask("s", "Where to?").await.unwrap();
    assert_eq!(outcome.text, "North.");
    let shown = |at: usize| model.requests()[at].tools.names().any(|name| name == "plan_route");
    assert_eq!([shown(0), shown(1)], [false, true]);
    assert_eq!(model.requests()[2].messages.last().unwrap().text(), "north");
}

/// Reading what another program says of itself makes the turn untrusted; the host's own words do
/// not.
#[tokio::test]
async fn results_have_the_label_of_those_who_described_them() {
    for (query, expected) in [("route of a lorry", Trust::User), ("quarterly sales", Trust::Untrusted)] {
        let model = ScriptedModel::new()
            .calls("search_known_services", json!({"query": query}))
            .says("Done.");
        let (host, _data) = host(ServiceSearch::new(), |host| host.chat(model)).await;
        let outcome = host.agent().ask("s", "Look.").await.unwrap();
        assert_eq!(outcome.label.trust(), expected, "{query}");
    }
}

/// Returns what the model was shown besides the message.
async fn context(search: ServiceSearch, message: &str) -> String {
    let model = ScriptedModel::new().says("Yes.");
    let (host, _data) = host(search, |host| host.chat(model.clone())).await;
    host.agent().ask("s", message).await.unwrap();
    let requests = model.requests();
    let messages = requests[0].messages.iter().map(|message| message.text().into_owned());
    messages.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn hints_are_shown_where_they_are_wanted_and_fit() {
    let asked = "Make a quarterly report of the sales, please";
    let hint = "SalesOpsAgent (a2a): Reports about sales and leads., top skills: generate-qbr-report, audit-pipeline";
    let shown = context(ServiceSearch::new().hints(), asked).await;
    assert!(shown.contains(hint), "{shown}");
    assert!(!context(ServiceSearch::new(), asked).await.contains("SalesOpsAgent"));
    let unrelated = context(
        ServiceSearch::new().hints(),
        "Which poems did Goethe write about leads?",
    )
    .await;
    assert!(!unrelated.contains("SalesOpsAgent"), "{unrelated}");
}

/// A follow-up is shown with the services that fit it, though messages are not.
#[tokio::test]
async fn a_further_task_is_shown_with_services() {
    let model = ScriptedModel::new()
        .calls("plan_route", json!({}))
        .says("Planned.")
        .says(r#"{"hasFollowUps": true, "prompt": "Make a quarterly report of the sales."}"#)
        .says("Reported.");
    let with = |host: AgentHostBuilder| {
        let evaluation = rockbot_host::turn::Evaluation::default().with_max_follow_up_passes(1);
        host.chat(model.clone())
            .policies(rockbot_host::TurnPolicies::new().with_evaluation(evaluation))
    };
    let (host, _data) = host(ServiceSearch::new(), with).await;
    host.agent()
        .ask("s", "Plan the route of the lorry, and tell me when it is done, please.")
        .await
        .unwrap();
    let requests = model.requests();
    let of = |at: usize| {
        let texts = requests[at].messages.iter().map(|message| message.text().into_owned());
        texts.collect::<String>().contains("SalesOpsAgent (a2a)")
    };
    assert_eq!(
        (0..requests.len()).map(of).collect::<Vec<_>>(),
        [false, false, false, true]
    );
}

#[tokio::test(start_paused = true)]
async fn summaries_are_written_once_and_searched_by() {
    let model = ScriptedModel::new()
        .says("Audits the cloud bill.")
        .says("Knits.")
        .says("Paints.");
    let (host, data) = host(ServiceSearch::new().summaries(), |host| host.chat(model.clone())).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let cloud = found(&host, "cloud bill").await;
    assert_eq!(cloud["results"][0]["id"], "SalesOpsAgent", "{cloud}");
    assert_eq!(cloud["results"][0]["summary"], "Audits the cloud bill.");
    assert_eq!(
        found(&host, "quarterly sales").await["results"][0]["id"],
        "SalesOpsAgent"
    );
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(model.requests().len(), 3);
    host.shutdown(Duration::from_secs(5)).await;
    drop(host);

    // The next process asks for none of them again.
    let again = ScriptedModel::new();
    let host = AgentHost::in_memory()
        .data_dir(data.path())
        .chat(again.clone())
        .add(ServiceSearch::new().summaries());
    let host = host.build().unwrap();
    host.parts().get::<ServiceSources>().unwrap().add(Servers);
    host.start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(again.requests().len(), 0);
    assert_eq!(
        found(&host, "cloud bill").await["results"][0]["summary"],
        "Audits the cloud bill."
    );
}

#[test]
fn a_file_of_agents_that_cannot_be_read_keeps_the_host_from_being_built() {
    let search = ServiceSearch::new().agents("/nowhere/agents.json");
    let built = AgentHost::in_memory().chat(ScriptedModel::new()).add(search).build();
    let error = built.unwrap_err().to_string();
    assert!(
        error.contains("the file of agents `/nowhere/agents.json` cannot be read"),
        "{error}"
    );
}
