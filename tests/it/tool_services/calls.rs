//! Calls of a tool service, and their answers.

use std::sync::{Arc, Mutex};

use rockbot::tool_services::ToolServiceServer;
use rockbot_core::Principal;
use rockbot_core::messaging::DeadLetters;
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::ToolErrorCode;
use rockbot_core::turn::TurnProgress;
use rockbot_host::bus::InProcessBus;
use serde_json::json;

use super::{Slowly, agent, call, idle_agent, jokes, replying, serve, started};
use crate::support::{collect, results, settle};

#[tokio::test(start_paused = true)]
async fn a_descriptor_makes_a_service_a_tool_of_the_model() {
    let bus = InProcessBus::new();
    let folder = jokes("pure");
    let seen = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&seen);
    let _service = serve(&bus, move |user, config, arguments| {
        *noted.lock().unwrap() = Some((user.to_owned(), config.clone(), arguments.clone()));
        Ok(format!("Why do {} purr?", arguments["topic"].as_str().unwrap()).into())
    })
    .await;
    let model = ScriptedModel::new()
        .calls("tell-joke", json!({"topic": "cats", "extra": [1]}))
        .says("Ha.");
    let host = started(agent(&model, &bus, folder.path())).await;
    let alice = host.agent().for_principal(Principal::from("alice"));
    let answer = alice.ask("s", "A joke!").await.unwrap();
    assert_eq!(answer.text, "Ha.");
    assert_eq!(results(&model.requests()[1]), ["call_1: Why do cats purr?"]);
    let offered = String::from_utf8(model.requests()[0].tools.json().to_vec()).unwrap();
    assert!(
        offered.contains("Tell a joke on a given topic") && offered.contains("The topic for the joke"),
        "{offered}"
    );
    let (user, config, arguments) = seen.lock().unwrap().clone().unwrap();
    assert_eq!((user.as_str(), config), ("alice", json!({"style": "pun"})));
    assert_eq!(arguments, json!({"topic": "cats", "extra": [1]}), "passed through");
}

#[tokio::test(start_paused = true)]
async fn the_request_is_an_envelope_of_json_texts() {
    let bus = InProcessBus::new();
    let folder = jokes("pure");
    let (_service, requests) = replying(&bus, &[r#"{"response": "ha"}"#]).await;
    let host = idle_agent(&bus, folder.path()).await;
    assert_eq!(call(&host, r#"{"topic": "é"}"#).await, Ok("ha".to_owned()));
    let expected = json!({"user": "local", "config": "{\"style\":\"pun\"}", "arguments": "{\"topic\": \"é\"}"});
    assert_eq!(*requests.lock().unwrap(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_result_are_progress_of_the_turn() {
    let bus = InProcessBus::new();
    let folder = jokes("pure");
    let server = ToolServiceServer::new("joke-service", "joke", Slowly).unwrap();
    let _service = server.serve(Arc::new(bus.clone())).await.unwrap();
    let model = ScriptedModel::new()
        .calls("tell-joke", json!({"topic": "llamas"}))
        .says("Ha.");
    let host = started(agent(&model, &bus, folder.path())).await;
    let reports = collect(host.agent().ask("s", "A joke!").stream()).await;
    let parts: Vec<_> = reports
        .iter()
        .filter_map(|report| match report {
            TurnProgress::ToolProgress { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(parts, ["Why did ", "the llama "]);
    assert_eq!(results(&model.requests()[1]), ["call_1: Why did the llama cross?"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_says_what_happened_and_is_known() {
    let bus = InProcessBus::new();
    let folder = jokes("mutating");
    let host = idle_agent(&bus, folder.path()).await;
    let of_queue = "the tool service on `request:tg:joke`: ";
    let failed = |text: &str| Err((ToolErrorCode::ExecutionFailed, format!("{of_queue}{text}")));
    assert_eq!(
        call(&host, "{}").await,
        failed("no service takes requests there; start it")
    );
    let service = serve(&bus, |_, _, arguments| match arguments["topic"].as_str() {
        Some("panic") => panic!("boom"),
        Some(topic) => Err(format!("no joke about {topic}").into()),
        None => Ok(json!({"jokes": [1, 2]})),
    })
    .await;
    assert_eq!(call(&host, r#"{"topic": "tax"}"#).await, failed("no joke about tax"));
    assert_eq!(
        call(&host, r#"{"topic": "panic"}"#).await,
        failed("the service panicked: boom")
    );
    assert_eq!(call(&host, "").await, Ok(r#"{"jokes":[1,2]}"#.to_owned()));
    let refused = call(&host, "[1]").await.unwrap_err();
    assert_eq!(refused.0, ToolErrorCode::InvalidArguments);
    service.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn foreign_late_and_unreadable_replies_end_no_other_call() {
    let bus = InProcessBus::new();
    let folder = jokes("mutating");
    let host = idle_agent(&bus, folder.path()).await;
    let bodies = &[
        r#"{"response": "foreign"}"#,
        r#"{"response": "mine"}"#,
        r#"{"response": "again"}"#,
    ];
    let (service, _) = replying(&bus, bodies).await;
    for _ in 0..3 {
        assert_eq!(call(&host, "{}").await, Ok("mine".to_owned()));
    }
    service.close().await;
    let (service, _) = replying(&bus, &["[]", r#"{"response": "late"}"#]).await;
    let (code, text) = call(&host, "{}").await.unwrap_err();
    assert_eq!(code, ToolErrorCode::OutcomeUnknown);
    assert!(
        text.contains("its answer cannot be read: it is no JSON object"),
        "{text}"
    );
    service.close().await;
    let (_service, _) = replying(&bus, &[r#"{"error": {"type": "quota", "message": "empty"}}"#]).await;
    let (code, text) = call(&host, "{}").await.unwrap_err();
    assert_eq!(
        (code, text.ends_with(": quota: empty")),
        (ToolErrorCode::ExecutionFailed, true),
        "{text}"
    );
    settle().await;
    assert_eq!(bus.dead_letters(9).await.unwrap(), []);
}
