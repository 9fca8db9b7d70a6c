//! OpenAI's strict mode, from the setting of a tier to the schemas on the wire and the calls that
//! come back.

use rockbot::agent::AgentHost;
use rockbot::chat::ModelGateway;
use rockbot::config::Config;
use rockbot::testing::ScriptedModel;
use rockbot::tool::{Tool, tool};
use rockbot_cli::doctor::{Report, examine};
use serde_json::{Value, json};

use crate::support::model_server::ModelServer;
use crate::support::{Notes, dialects};

/// Tells the weather.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Weather {
    city: String,
    #[serde(default = "one_day")]
    days: i64,
    unit: Option<String>,
}

fn one_day() -> i64 {
    1
}

/// Labels something.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Label {
    #[expect(dead_code, reason = "only its schema is needed")]
    labels: std::collections::BTreeMap<String, String>,
}

fn weather(calls: &Notes) -> Tool {
    let calls = calls.clone();
    let weather = tool("weather", move |Weather { city, days, unit }: Weather| {
        calls.add(format!("{city} {days} {unit:?}"));
        async { "sunny" }
    });
    weather.pure()
}

fn label() -> Tool {
    tool("label", async |_: Label| "done").pure()
}

/// Asks a model of `provider`, which calls a tool with all arguments and then answers; returns
/// the tools that it was sent and the calls.
async fn sent(provider: &str, setting: &str) -> (Value, Vec<String>) {
    let server = ModelServer::start(|raw, body| {
        if body.to_string().contains("sunny") {
            dialects::says(raw, "Sunny.")
        } else {
            dialects::calls(raw, "weather", r#"{"city":"Oslo","days":null,"unit":null}"#)
        }
    });
    let text = format!(
        "[LLM.Balanced]\nProvider = \"{provider}\"\nEndpoint = \"{}/v1\"\nApiKey = \"k\"\nModelId = \"gpt-test\"\n{setting}",
        server.endpoint
    );
    let config = Config::new().with_text("agent.toml", &text).unwrap();
    let calls = Notes::default();
    let host = AgentHost::in_memory()
        .chat(ModelGateway::from_config(&config).unwrap())
        .tool(weather(&calls))
        .tool(label())
        .build()
        .unwrap();
    let _ = host.agent().ask("s", "How is it in Oslo?").await;
    (server.requests().remove(0)["tools"].take(), calls.all())
}

fn strict_parameters() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "city": {"type": "string"},
            "days": {"type": ["integer", "null"]},
            "unit": {"type": ["string", "null"]},
        },
        "required": ["city", "days", "unit"],
    })
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}, "unit": {"type": "string"}},
        "required": ["city"],
    })
}

fn open_parameters() -> Value {
    let labels = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({"type": "object", "properties": {"labels": labels}, "required": ["labels"]})
}

#[tokio::test]
async fn chat_completions_get_strict_schemas_where_there_is_one() {
    let tools = |parameters: Value, strict: Option<bool>| {
        let mut weather = json!({"name": "weather", "description": "Tells the weather.", "parameters": parameters});
        if let Some(strict) = strict {
            weather["strict"] = strict.into();
        }
        let label = json!({"name": "label", "description": "Labels something.", "parameters": open_parameters()});
        json!([{"type": "function", "function": weather}, {"type": "function", "function": label}])
    };
    let (strict, calls) = sent("openai", "StrictTools = true").await;
    assert_eq!(strict, tools(strict_parameters(), Some(true)));
    assert_eq!(calls, ["Oslo 1 None"], "a `null` in place of a default is left out");
    for setting in ["", "StrictTools = false"] {
        let (plain, calls) = sent("openai", setting).await;
        assert_eq!(plain, tools(parameters(), None));
        assert_eq!(
            calls,
            ["Oslo 1 None"],
            "models send a `null` without being told to, too"
        );
    }
}

#[tokio::test]
async fn the_responses_api_is_told_the_mode_of_each_tool() {
    let tools = |parameters: Value, is_strict: bool| {
        json!([
            {"type": "function", "name": "weather", "description": "Tells the weather.", "strict": is_strict, "parameters": parameters},
            {"type": "function", "name": "label", "description": "Labels something.", "strict": false, "parameters": open_parameters()},
        ])
    };
    let (strict, calls) = sent("openai-responses", "StrictTools = true").await;
    assert_eq!(strict, tools(strict_parameters(), true));
    assert_eq!(calls, ["Oslo 1 None"]);
    let (plain, _) = sent("openai-responses", "").await;
    assert_eq!(plain, tools(parameters(), false));
}

#[tokio::test]
async fn anthropic_has_no_such_mode() {
    let (strict, _) = sent("anthropic", "StrictTools = true").await;
    assert_eq!(strict[0]["input_schema"], parameters());
}

#[tokio::test]
async fn the_doctor_names_tools_without_a_strict_form() {
    let folder = tempfile::tempdir().unwrap();
    let report = async |setting: &str| -> Report {
        let file = folder.path().join("agent.toml");
        let text = format!("[LLM]\nEndpoint = \"http://127.0.0.1:9/v1\"\nApiKey = \"k\"\nModelId = \"m\"\n{setting}");
        std::fs::write(&file, text).unwrap();
        let mut report = examine(Some(&file), None, &folder.path().join("data"), []).await;
        let builder = AgentHost::in_memory().chat(ScriptedModel::new());
        report.list_parts(Ok(builder.tool(weather(&Notes::default())).tool(label())));
        report
    };
    let line =
        "warning  tool: `label` is sent without `StrictTools`: the argument `labels` accepts properties of any name\n";
    let strict = report("StrictTools = true").await.to_string();
    assert!(
        strict.contains(line) && !strict.contains("`weather` is sent"),
        "{strict}"
    );
    let plain = report("").await.to_string();
    assert!(!plain.contains("StrictTools"), "{plain}");
}
