//! AG-UI: a run, its interrupt and its resume, and the types of the protocol's own package.

use rockbot_core::chat::Reasoning;
use rockbot_core::testing::ScriptedModel;
use rockbot_host::AgentHost;
use serde_json::{Value, json};

use super::client::{Event, Events};
use super::{Serving, assert_python_says, sdks, server};
use crate::support::{calls, noting_tool};

fn input(run: &str, text: &str) -> Value {
    json!({
        "threadId": "till", "runId": run, "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "messages": [{"id": "m1", "role": "user", "content": text}],
    })
}

async fn run(serving: &Serving, input: &Value) -> Vec<Value> {
    let response = serving.ann().json("POST", "/agui", input).send().await.unwrap();
    let events = Events::of(response).all().await;
    events.into_iter().map(|Event { data, .. }| data).collect()
}

/// Returns the events without ids that are chosen anew.
fn shown(events: &[Value], turn: &Value) -> String {
    let turn = turn.as_str().unwrap();
    let lines = events.iter().map(|event| {
        let mut event = event.clone();
        let interrupts = event.pointer_mut("/outcome/interrupts").and_then(Value::as_array_mut);
        if let Some(interrupts) = interrupts {
            for interrupt in interrupts {
                let id = interrupt["id"].as_str().unwrap();
                interrupt["id"] = json!(format!("{}…", id.split('~').next().unwrap()));
                interrupt["metadata"]["approval"]["argsHash"] = json!("…");
            }
        }
        format!("{event}\n").replace(turn, "TURN")
    });
    lines.collect()
}

fn paying() -> (AgentHost, crate::support::Notes) {
    let (pay, paid) = noting_tool("pay");
    let asking = calls([("c1", "pay", r#"{"n":7}"#)])
        .with_text("Let me pay.")
        .with_reasoning(Reasoning::new("Seven is not much."));
    let model = ScriptedModel::new().answers(asking).says("Paid.");
    let host = AgentHost::in_memory()
        .chat(model)
        .tool(pay.needs_approval())
        .add(server());
    (host.build().unwrap(), paid)
}

async fn serving_of(host: AgentHost) -> Serving {
    host.start().await.unwrap();
    let endpoint = host.parts().require::<rockbot::web_server::WebEndpoint>().unwrap();
    Serving {
        address: endpoint.address().unwrap(),
        host,
    }
}

fn resume(run: &str, interrupt: &Value, payload: &Value) -> Value {
    let mut input = input(run, "");
    input["messages"] = json!([]);
    input["resume"] = json!([{"interruptId": interrupt["id"], "status": "resolved", "payload": payload}]);
    input
}

#[tokio::test]
async fn an_approval_interrupts_a_run_and_the_next_run_resumes_it() {
    let (host, paid) = paying();
    let serving = serving_of(host).await;
    let first = run(&serving, &input("r1", "Pay 7.")).await;
    let ended = first.last().unwrap();
    let turn = ended["result"]["turn"].clone();
    insta::assert_snapshot!(shown(&first, &turn));
    let interrupt = ended["outcome"]["interrupts"][0].clone();
    // The same run, sent again, is the same turn.
    assert_eq!(
        run(&serving, &input("r1", "Pay 7.")).await.last().unwrap()["outcome"],
        ended["outcome"]
    );

    let odd = resume("r2", &interrupt, &json!("yes"));
    assert_eq!(serving.ann().post("/agui", &odd).await.summary(), "400 invalid_request");
    let granted = resume("r2", &interrupt, &json!({"approved": true}));
    assert_eq!(serving.bob().post("/agui", &granted).await.summary(), "404 not_found");
    assert!(paid.all().is_empty());
    let second = run(&serving, &granted).await;
    insta::assert_snapshot!(shown(&second, &turn));
    assert_eq!(paid.all(), ["pay 7"]);
    // An interrupt is answered once.
    assert_eq!(serving.ann().post("/agui", &granted).await.summary(), "404 not_found");
    serving.stop().await;
}

#[tokio::test]
async fn a_run_that_cannot_be_done_is_refused() {
    let serving = Serving::of(&ScriptedModel::new()).await;
    let ann = serving.ann();
    let mut tools = input("r", "hi");
    tools["tools"] = json!([{"name": "f", "description": "", "parameters": {}}]);
    assert_eq!(ann.post("/agui", &tools).await.summary(), "400 invalid_request");
    assert_eq!(
        ann.post("/agui", &input("r", " ")).await.summary(),
        "400 invalid_request"
    );
    assert_eq!(
        ann.post("/agui/nobody", &input("r", "hi")).await.summary(),
        "404 model_not_found"
    );
    let unknown = resume("r", &json!({"id": "none"}), &json!(true));
    assert_eq!(ann.post("/agui", &unknown).await.summary(), "404 not_found");
    serving.stop().await;
}

#[tokio::test]
async fn every_event_is_one_of_the_protocols_package() {
    let Some(sdks) = sdks() else { return };
    let (host, _) = paying();
    let serving = serving_of(host).await;
    let url = format!("http://{}/agui", serving.address);
    let expected = [
        "RunStartedEvent",
        "ReasoningStartEvent",
        "ReasoningMessageStartEvent",
        "ReasoningMessageContentEvent Seven is not much.",
        "ReasoningMessageEndEvent",
        "ReasoningEndEvent",
        "TextMessageStartEvent",
        "TextMessageContentEvent Let me pay.",
        "TextMessageEndEvent",
        "ToolCallStartEvent pay",
        r#"ToolCallArgsEvent {"n":7}"#,
        "ToolCallEndEvent",
        "RunFinishedEvent interrupt",
        "RunStartedEvent",
        "ToolCallResultEvent",
        "TextMessageStartEvent",
        "TextMessageContentEvent Paid.",
        "TextMessageEndEvent",
        "RunFinishedEvent success",
    ];
    assert_python_says(&sdks, include_str!("ag_ui.py"), &url, &expected).await;
    serving.stop().await;
}
