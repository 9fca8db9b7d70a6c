//! OpenAI's interfaces: the wire by its bytes, and the client that others use.

use rockbot_core::chat::{ChatResponse, FinishReason};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::turn::TurnQuery;
use rockbot_host::AgentHost;
use serde_json::{Value, json};

use super::client::Answer;
use super::{Serving, assert_python_says, sdks, server, waiting};
use crate::support::{calls, noting_tool, transcript};

fn ask(text: &str) -> Value {
    json!({"model": "agent", "messages": [{"role": "user", "content": text}]})
}

/// Returns what is the same in each run: without ids that are chosen anew, and times.
fn settled(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            for (name, member) in members {
                *member = match name.as_str() {
                    "id" | "item_id" if member.is_string() => {
                        let text = member.as_str().unwrap_or_default();
                        let kind = text.split(['-', '_']).next().unwrap_or_default();
                        json!(format!("{kind}…"))
                    }
                    "created" | "created_at" => json!("…"),
                    _ => settled(member.take()),
                };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = settled(item.take())),
        _ => {}
    }
    value
}

/// Returns the events of a streamed answer, as they came.
async fn streamed(serving: &Serving, path: &str, body: &Value) -> String {
    let mut body = body.clone();
    body["stream"] = json!(true);
    let read = serving.ann().post(path, &body).await;
    assert_eq!(read.status, 200, "{read:?}");
    let shown = read.body.lines().map(|line| match line.strip_prefix("data: ") {
        Some(data) => match serde_json::from_str(data) {
            Ok(json) => format!("data: {}\n", settled(json)),
            Err(_) => format!("{line}\n"),
        },
        None => format!("{line}\n"),
    });
    shown.collect()
}

#[tokio::test]
async fn an_answer_has_the_wire_of_chat_completions() {
    let (look, _) = noting_tool("look");
    let looking = calls([("c1", "look", r#"{"n":7}"#)]).with_text("Let me look.");
    let model = ScriptedModel::new()
        .says("Tea, then.")
        .answers(looking)
        .says("It is open.");
    let serving = Serving::start(AgentHost::in_memory().chat(model).tool(look).add(server())).await;
    let path = "/v1/chat/completions";
    let whole = settled(serving.ann().post(path, &ask("Coffee is out.")).await.json());
    insta::assert_json_snapshot!(whole);
    let mut body = ask("Is it open?");
    body["stream_options"] = json!({"include_usage": true});
    insta::assert_snapshot!(streamed(&serving, path, &body).await);
    serving.stop().await;
}

#[tokio::test]
async fn an_answer_has_the_wire_of_responses() {
    let cut = ChatResponse::text("It is").with_finish(FinishReason::Length);
    let model = ScriptedModel::new().says("Tea, then.").says("It is open.").answers(cut);
    let serving = Serving::of(&model).await;
    let body = |text: &str| json!({"model": "agent", "input": text});
    let whole = serving
        .ann()
        .post("/v1/responses", &body("Coffee is out."))
        .await
        .json();
    insta::assert_json_snapshot!(settled(whole.clone()));
    insta::assert_snapshot!(streamed(&serving, "/v1/responses", &body("Is it open?")).await);
    let kept = serving
        .ann()
        .get(&format!("/v1/responses/{}", whole["id"].as_str().unwrap()))
        .await
        .json();
    assert_eq!((&kept["status"], &kept["output"]), (&whole["status"], &whole["output"]));
    serving.stop().await;
}

#[tokio::test]
async fn the_client_keeps_the_conversation_unless_it_names_a_session() {
    let model = ScriptedModel::new()
        .says("Hello Ann.")
        .says("You are Ann.")
        .says("Noted.")
        .says("You said 7.");
    let serving = Serving::of(&model).await;
    let ann = serving.ann();
    let path = "/v1/chat/completions";
    let conversation = json!({"model": "agent", "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I am Ann."},
        {"role": "assistant", "content": "Hello Ann."},
        {"role": "user", "content": "Who am I?"},
    ]});
    ann.post(path, &ask("I am Ann.")).await;
    ann.post(path, &conversation).await;
    let read = transcript(&model.requests()[1]);
    assert!(read.contains(&"system: Be brief.".to_owned()), "{read:?}");
    let said: Vec<_> = read
        .iter()
        .filter(|line| !line.starts_with("system"))
        .map(String::as_str)
        .collect();
    assert_eq!(said, ["user: I am Ann.", "assistant: Hello Ann.", "user: Who am I?"]);
    // Nothing is kept of it: the client has it.
    assert_eq!(ann.get("/api/sessions").await.json(), json!({"sessions": []}));

    for text in ["The number is 7.", "Which number?"] {
        let request = ann.json("POST", path, &ask(text)).header("x-session-id", "numbers");
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    let read = transcript(&model.requests()[3]);
    assert!(read.contains(&"assistant: Noted.".to_owned()), "{read:?}");
    assert_eq!(ann.get("/api/sessions").await.json(), json!({"sessions": ["numbers"]}));
    serving.stop().await;
}

#[tokio::test]
async fn the_same_question_is_asked_anew_unless_it_has_an_idempotency_key() {
    let model = ScriptedModel::new().says("1").says("2").says("3");
    let serving = Serving::of(&model).await;
    let ann = serving.ann();
    let mut answers = Vec::new();
    for key in ["", "", "k", "k"] {
        let mut request = ann.json("POST", "/v1/chat/completions", &ask("Count."));
        if !key.is_empty() {
            request = request.header("idempotency-key", key);
        }
        let answer = Answer::of(request.send().await.unwrap()).await.json();
        answers.push(answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned());
    }
    assert_eq!(answers, ["1", "2", "3", "3"]);
    serving.stop().await;
}

#[tokio::test]
async fn a_response_goes_on_from_the_one_before() {
    let model = ScriptedModel::new()
        .says("Hello Ann.")
        .says("You are Ann.")
        .says("Once.");
    let serving = Serving::of(&model).await;
    let ann = serving.ann();
    let body = |text: &str, previous: Option<&Value>| json!({"model": "agent", "input": text, "previous_response_id": previous});
    let first = ann.post("/v1/responses", &body("I am Ann.", None)).await.json();
    let second = ann
        .post("/v1/responses", &body("Who am I?", Some(&first["id"])))
        .await
        .json();
    assert_eq!(second["previous_response_id"], first["id"]);
    let read = transcript(&model.requests()[1]);
    assert!(read.contains(&"assistant: Hello Ann.".to_owned()), "{read:?}");
    let stale = ann.post("/v1/responses", &body("And now?", Some(&first["id"]))).await;
    assert_eq!(stale.summary(), "409 response_continued");
    let of_ann = serving
        .bob()
        .post("/v1/responses", &body("Who is it?", Some(&second["id"])))
        .await;
    assert_eq!(of_ann.summary(), "404 not_found");

    let mut unkept = body("Once only.", None);
    unkept["store"] = json!(false);
    let unkept = ann.post("/v1/responses", &unkept).await.json();
    let further = ann.post("/v1/responses", &body("Again?", Some(&unkept["id"]))).await;
    assert_eq!(further.summary(), "400 invalid_request");
    serving.stop().await;
}

fn tools() -> Value {
    json!([{"type": "function", "function": {"name": "f", "parameters": {}}}])
}

#[tokio::test]
async fn tools_that_a_client_offers_are_ignored_and_counted() {
    let model = ScriptedModel::new()
        .says("Hello.")
        .says("Hello.")
        .says("Hello.")
        .says("Hello.");
    let serving = Serving::of(&model).await;
    let ann = serving.ann();
    for (path, choice, mut body) in [
        ("/v1/chat/completions", Value::Null, ask("hi")),
        ("/v1/chat/completions", json!("auto"), ask("hi")),
        ("/v1/responses", json!("none"), json!({"model": "agent", "input": "hi"})),
    ] {
        body["tools"] = tools();
        body["tool_choice"] = choice;
        let answer = ann.json("POST", path, &body).send().await.unwrap();
        assert_eq!(answer.headers()["x-ignored-tools"], "1");
        let answer = Answer::of(answer).await;
        assert!(answer.status == 200 && answer.body.contains("Hello."), "{answer:?}");
    }
    assert!(model.requests().iter().all(|request| request.tools.is_empty()));
    let mut older = ask("hi");
    older["functions"] = json!([{"name": "f"}, {"name": "g"}]);
    let answer = ann.json("POST", "/v1/chat/completions", &older).send().await.unwrap();
    assert_eq!(answer.headers()["x-ignored-tools"], "2");
    serving.stop().await;
}

#[tokio::test]
async fn what_the_agent_cannot_do_is_refused_in_openais_shape() {
    let serving = Serving::of(&ScriptedModel::new()).await;
    let ann = serving.ann();
    let with = |name: &str, value: Value| {
        let mut body = ask("hi");
        body[name] = value;
        body
    };
    let mut insisting = with("tools", tools());
    insisting["tool_choice"] = json!("required");
    for (body, expected, words) in [
        (insisting, "400 invalid_request", "tools of the client are not called"),
        (with("n", json!(2)), "400 invalid_request", "leave `n` out"),
        (with("messages", json!([])), "400 invalid_request", "of the role `user`"),
        (
            with("model", json!("gpt")),
            "404 model_not_found",
            "there is no agent `gpt` here",
        ),
        (with("temperature", json!(-1)), "400 invalid_request", "temperature"),
        (with("messages", json!("hi")), "400 invalid_request", "messages"),
        (
            with("response_format", json!({"type": "xml"})),
            "400 invalid_request",
            "`xml` is unknown",
        ),
    ] {
        let answer = ann.post("/v1/chat/completions", &body).await;
        assert_eq!(answer.summary(), expected, "{body}");
        let error = &answer.json()["error"];
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        let names: Vec<_> = error.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["code", "message", "param", "type"]);
    }
    let models = ann.get("/v1/models").await.json();
    assert_eq!(models["data"][0]["id"], "agent");
    assert_eq!(ann.get("/v1/models/agent").await.status, 200);
    assert_eq!(ann.get("/v1/models/gpt").await.summary(), "404 model_not_found");
    serving.stop().await;
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_turn_along() {
    let (wait, _gate) = waiting("wait");
    for is_stream in [false, true] {
        let model = ScriptedModel::new().calls("wait", json!({})).says("Done.");
        let host = AgentHost::in_memory().chat(model).tool(wait.clone());
        let serving = Serving::start(host.add(server())).await;
        let turns = serving
            .host
            .parts()
            .require::<dyn rockbot_core::turn::TurnRunner>()
            .unwrap();
        let mut body = ask("Wait.");
        body["stream"] = json!(is_stream);
        let request = serving.ann().json("POST", "/v1/chat/completions", &body);
        let asking = tokio::spawn(async move { request.send().await.unwrap().text().await });
        while turns.live(&TurnQuery::default()).is_empty() {
            tokio::task::yield_now().await;
        }
        let turn = turns.live(&TurnQuery::default())[0].turn.clone();
        asking.abort();
        let ended = turns.outcome(&turn).await.unwrap();
        assert_eq!(ended.status, rockbot_core::turn::TurnStatus::Cancelled);
        serving.stop().await;
    }
}

#[tokio::test]
async fn an_answer_waits_for_an_approval_that_is_given_elsewhere() {
    let (pay, paid) = noting_tool("pay");
    let model = ScriptedModel::new().calls("pay", json!({"n": 7})).says("Paid.");
    let host = AgentHost::in_memory().chat(model).tool(pay.needs_approval());
    let serving = Serving::start(host.add(server())).await;
    let ann = serving.ann();
    let asking = tokio::spawn({
        let ann = ann.clone();
        async move { ann.post("/v1/chat/completions", &ask("Pay 7.")).await.json() }
    });
    let asked = loop {
        let waiting = ann.get("/api/approvals").await.json();
        if let Some(asked) = waiting["approvals"].get(0) {
            break asked.clone();
        }
    };
    let mut decision = asked;
    decision["approved"] = json!(true);
    assert_eq!(ann.post("/api/approvals", &decision).await.status, 204);
    assert_eq!(asking.await.unwrap()["choices"][0]["message"]["content"], "Paid.");
    assert_eq!(paid.all(), ["pay 7"]);
    serving.stop().await;
}

#[tokio::test]
async fn the_sdk_of_openai_uses_the_agent_as_a_model() {
    let Some(sdks) = sdks() else { return };
    let (look, _) = noting_tool("look");
    let model = ScriptedModel::new()
        .says("Tea, then.")
        .calls("look", json!({"n": 7}))
        .says("It is open.")
        .says(r#"{"celsius": 21}"#)
        .says("Hello Ann.")
        .says("You are Ann.")
        .says("Streamed.");
    let serving = Serving::start(AgentHost::in_memory().chat(model).tool(look).add(server())).await;
    let url = format!("http://{}/v1", serving.address);
    let expected = [
        "models: ['agent']",
        "asked: Tea, then. stop 15",
        "streamed: It is open. stop 30",
        "parsed: celsius=21",
        "tools: BadRequestError 400 invalid_request",
        "model: NotFoundError 404 model_not_found",
        "token: AuthenticationError 401 unauthorized",
        "response: completed Hello Ann. 15",
        "continued: completed You are Ann.",
        "retrieved: completed You are Ann.",
        "events: Streamed. completed Streamed.",
    ];
    assert_python_says(&sdks, include_str!("openai.py"), &url, &expected).await;
    serving.stop().await;
}
