//! Model servers that fail at their own model, over real HTTP on the loopback.

use rockbot::chat::ModelGateway;
use rockbot::config::Config;
use rockbot::turn::TurnStatus;
use rockbot_host::{AgentHost, TurnError};
use serde_json::json;
use tempfile::TempDir;

use crate::support::model_server::ModelServer;
use crate::support::noting_tool;

/// A host that asks through the gateway of its settings, with its retries.
fn host(server: &ModelServer, folder: &TempDir) -> AgentHost {
    let model = json!({"LLM": {"Balanced": {"Endpoint": server.endpoint, "ApiKey": "x", "ModelId": "m"}}});
    let config = Config::new().with_text("agent.json", &model.to_string()).unwrap();
    let models = ModelGateway::from_config_or_offline(&config).unwrap();
    let (look, _) = noting_tool("look");
    let host = AgentHost::builder("m").chat(models).tool(look);
    host.data_dir(folder.path()).build().unwrap()
}

fn says(text: &str) -> (u16, String) {
    let message = json!({"role": "assistant", "content": text});
    (
        200,
        json!({"choices": [{"finish_reason": "stop", "message": message}]}).to_string(),
    )
}

#[tokio::test]
async fn an_answer_that_its_server_cannot_parse_is_asked_for_in_text_and_reported() {
    let server = ModelServer::start(|_, _| {
        let why = "The model produced output that does not match the expected peg-native format";
        (
            500,
            json!({"error": {"code": 500, "message": why, "type": "server_error"}}).to_string(),
        )
    });
    let folder = tempfile::tempdir().unwrap();
    let host = host(&server, &folder);
    let Err(TurnError::Unanswered(outcome)) = host.agent().ask("s", "Look.").await else {
        panic!("the turn has no answer")
    };
    assert!(matches!(outcome.status, TurnStatus::Failed(_)), "{outcome:?}");
    let trace = host.trace(&outcome.turn).await.unwrap().unwrap();
    let trace = format!("{:?}", trace.entries());
    assert!(
        trace.contains("peg-native format") && trace.contains("UseTextBasedToolCalling"),
        "{trace}"
    );
    // Once with native tools, once with tools in words.
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_once_more_with_the_reason_in_the_trace() {
    let mut asked = 0;
    let server = ModelServer::start(move |_, _| {
        asked += 1;
        says(if asked == 1 { "" } else { "Here it is." })
    });
    let folder = tempfile::tempdir().unwrap();
    let host = host(&server, &folder);
    let outcome = host.agent().ask("s", "Look.").await.unwrap();
    assert_eq!((outcome.text.as_str(), server.requests().len()), ("Here it is.", 2));
    let trace = format!("{:?}", host.trace(&outcome.turn).await.unwrap().unwrap().entries());
    assert!(trace.contains("Your last answer was empty."), "{trace}");

    let silent = ModelServer::start(|_, _| says(" \n"));
    let folder = tempfile::tempdir().unwrap();
    let host = self::host(&silent, &folder);
    let Err(TurnError::Unanswered(_)) = host.agent().ask("s", "Look.").await else {
        panic!("the turn has no answer")
    };
    assert_eq!(silent.requests().len(), 2);
}
