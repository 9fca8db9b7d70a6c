//! The requests of the client against a server that is as strict as the API, and what it makes of
//! recorded answers.

use std::sync::Arc;

use proptest::prelude::*;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatErrorKind, ChatMessage, ChatRequest, ChatResponse, ContextReason,
    FinishReason, ModelSettings, OutputSchema, Reasoning, ToolCall, ToolChoice, Usage,
};
use rockbot_core::content::{Content, MediaPart};
use rockbot_core::tool::{InMemoryToolRegistry, Owner, ToolRegistry, ToolView, tool};
use rockbot_core::{CallContext, RandomIds};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::response::Assembler;
use super::rules::refusal;
use super::{AnthropicChat, AnthropicChatBuilder};
use crate::fixture::{Reply, Server};
use crate::http::{Fault, Outlet, StreamFold};

const KEY: &str = "sk-ant-very-secret";

const YES: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-1","stop_reason":"end_turn",
    "stop_sequence":null,"content":[{"type":"text","text":"yes"}],"usage":{"input_tokens":9,"output_tokens":5}}"#;

/// A server that answers `body`, or refuses as the API does.
async fn server(body: &'static str) -> Server {
    Server::answering(async move |request| match refusal(&request) {
        None => Reply::json(200, body),
        Some(refusal) => {
            let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": refusal}});
            Reply::json(400, &error.to_string())
        }
    })
    .await
}

fn builder(server: &Server) -> AnthropicChatBuilder {
    AnthropicChat::builder(server.endpoint(), "claude")
        .api_key(KEY.into())
        .max_attempts(1)
}

fn call(request: ChatRequest) -> ChatCall {
    ChatCall::new(request, CallContext::new("s"))
}

/// Asks `request`, and returns the answer and the body that was sent.
async fn ask(
    request: ChatRequest,
    answer: &'static str,
    change: impl FnOnce(AnthropicChatBuilder) -> AnthropicChatBuilder,
) -> (Result<ChatResponse, ChatError>, Value) {
    let server = server(answer).await;
    let client = change(builder(&server)).build().unwrap();
    let answer = client.chat(call(request)).await;
    let request = server.requests().remove(0);
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    (answer, serde_json::from_str(body).unwrap())
}

/// Checks that the API accepts `request`, and returns the body that was sent.
async fn sent(request: ChatRequest) -> Value {
    let (answer, body) = ask(request, YES, |builder| builder).await;
    assert_eq!(answer.unwrap().text, "yes", "{body:#}");
    body
}

/// Checks that a conversation is sent as `expected`, without regard to marks.
#[track_caller]
fn check_messages(body: &Value, expected: &Value) {
    let text = body["messages"]
        .to_string()
        .replace(r#""cache_control":{"type":"ephemeral"},"#, "");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), *expected);
}

fn tools() -> ToolView {
    /// Tells the time.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Now {}
    let registry = InMemoryToolRegistry::new();
    for name in ["now", "today"] {
        let tool = tool(name, async |_: Now| "noon");
        registry.register(&Owner::new("test"), tool).unwrap();
    }
    registry.snapshot().view().clone()
}

fn tool_call(id: &str, arguments: &str) -> ToolCall {
    ToolCall::new(id, "now", arguments)
}

fn calls(ids: &[&str]) -> ChatMessage {
    ChatMessage::calls(String::new(), ids.iter().map(|id| tool_call(id, "{}")).collect())
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call_block(id: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": "now", "input": input})
}

fn result(id: &str, text: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": text})
}

fn user(blocks: &[Value]) -> Value {
    json!({"role": "user", "content": blocks})
}

fn assistant(blocks: &[Value]) -> Value {
    json!({"role": "assistant", "content": blocks})
}

/// The refusal of a good request that was changed by `change`.
fn refused(change: impl FnOnce(&mut Value)) -> String {
    let mut body = json!({
        "model": "m",
        "max_tokens": 9,
        "tools": [{"name": "now", "input_schema": {"type": "object"}}],
        "messages": [
            user(&[text("hi")]),
            assistant(&[call_block("1", &json!({}))]),
            user(&[result("1", "noon")]),
        ]
    });
    change(&mut body);
    refusal(&format!("{HEAD}\r\n\r\n{body}")).unwrap_or_default()
}

const HEAD: &str = "POST /v1/messages HTTP/1.1\r\nx-api-key: k\r\nanthropic-version: 2023-06-01";

#[test]
fn the_server_of_these_tests_is_strict() {
    assert_eq!(refused(|_| {}), "");
    let check = |expected: &str, change: &dyn Fn(&mut Value)| {
        let refusal = refused(change);
        assert!(refusal.contains(expected), "{refusal:?}, not {expected:?}");
    };
    check("max_tokens: Field required", &|body| body["max_tokens"] = Value::Null);
    check("body.top_a: Extra inputs", &|body| body["top_a"] = 1.into());
    check("roles must alternate", &|body| {
        body["messages"][1]["role"] = "user".into()
    });
    check("roles must alternate", &|body| {
        body["messages"][0]["role"] = "system".into()
    });
    check("must end with a user", &|body| {
        body["messages"].as_array_mut().unwrap().push(assistant(&[text("x")]))
    });
    check("at least one message", &|body| body["messages"] = json!([]));
    check("at least one block", &|body| body["messages"][0]["content"] = json!([]));
    check("must be non-empty", &|body| {
        body["messages"][0]["content"][0] = text(" \n")
    });
    check("must be non-empty", &|body| body["system"] = json!([text("")]));
    check("unexpected `tool_use_id`", &|body| {
        body["messages"][2]["content"][0]["tool_use_id"] = "2".into()
    });
    check("without `tool_result`", &|body| {
        body["messages"][2]["content"][0] = text("x")
    });
    check("must stand first", &|body| {
        body["messages"][2]["content"] = json!([text("x"), result("1", "noon")])
    });
    check("should be an object", &|body| {
        body["messages"][1]["content"][0]["input"] = "{}".into()
    });
    check("tools: required", &|body| {
        drop(body.as_object_mut().unwrap().remove("tools"))
    });
    check("input_schema.type", &|body| {
        body["tools"][0]["input_schema"] = json!({})
    });
    check("tool not found", &|body| {
        body["tool_choice"] = json!({"type": "tool", "name": "x"})
    });
    check("temperature: refused", &|body| body["temperature"] = 1.5.into());
    check("out of range", &|body| {
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 9})
    });
    for line in HEAD.lines() {
        let head = HEAD.replace(line, "x: y");
        assert!(refusal(&format!("{head}\r\n\r\n{{}}")).is_some(), "{head}");
    }
}

#[tokio::test]
async fn a_request_has_its_key_its_version_and_a_limit() {
    let server = server(YES).await;
    let endpoint = server.endpoint().replace("/v1", "");
    for endpoint in [endpoint.clone(), endpoint.clone() + "/v1/", endpoint + "/v1/messages"] {
        let client = AnthropicChat::builder(endpoint, "claude")
            .api_key(KEY.into())
            .build()
            .unwrap();
        client
            .chat(call(ChatRequest::new([ChatMessage::user("hi")])))
            .await
            .unwrap();
    }
    for request in server.requests() {
        for line in [&format!("x-api-key: {KEY}"), "anthropic-version: 2023-06-01"] {
            assert!(request.contains(&format!("\r\n{line}\r\n")), "{request}");
        }
        let mark = r#","cache_control":{"type":"ephemeral"}"#;
        let body = format!(
            r#"{{"model":"claude","max_tokens":8192,"messages":[{{"role":"user","content":[{{"type":"text","text":"hi"{mark}}}]}}]}}"#
        );
        assert!(request.ends_with(&body), "{request}");
    }
}

#[tokio::test]
async fn every_knob_has_its_name() {
    let settings = ModelSettings::new()
        .with_tool_choice(ToolChoice::Required)
        .with_parallel_tool_calls(false)
        .with_max_output_tokens(9)
        .with_temperature(1.7)
        .with_top_p(0.5)
        .with_stop_sequences(["END"])
        .with_extra_body("metadata", json!({"user_id": "u"}));
    let request = ChatRequest::new([
        ChatMessage::system("Be brief."),
        ChatMessage::user("hi"),
        ChatMessage::system("Be kind."),
    ])
    .with_settings(settings)
    .with_tools(tools());
    let mark = json!({"type": "ephemeral"});
    let expected = json!({
        "model": "claude",
        "max_tokens": 9,
        "temperature": 1.0,
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u"},
        "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
        "system": [{"type": "text", "text": "Be brief.\n\nBe kind.", "cache_control": mark}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": mark}]}],
        "tools": [
            {"name": "now", "description": "Tells the time.", "input_schema": {"type": "object", "properties": {}}},
            {"name": "today", "description": "Tells the time.", "input_schema": {"type": "object", "properties": {}}, "cache_control": mark},
        ],
    });
    assert_eq!(sent(request.clone()).await, expected);
    let (answer, body) = ask(request, YES, |builder| {
        builder.api_version("2026-10-21").prompt_caching(false)
    })
    .await;
    answer.unwrap();
    assert_eq!((body.get("temperature"), body.get("top_p")), (None, None));
    assert!(!body.to_string().contains("cache_control"));
}

#[tokio::test]
async fn a_top_p_is_sent_without_a_temperature_alone() {
    let request = ChatRequest::new([ChatMessage::user("hi")]).with_settings(ModelSettings::new().with_top_p(0.5));
    let body = sent(request).await;
    assert_eq!((body.get("temperature"), &body["top_p"]), (None, &json!(0.5)));
}

#[tokio::test]
async fn instructions_of_one_request_stand_behind_the_cached_text() {
    let own = ChatMessage::system("Speak French.").because(ContextReason::RequestInstructions);
    let mark = json!({"type": "ephemeral"});
    let lasting = ChatMessage::system("Be brief.");
    let body = sent(ChatRequest::new([lasting, own.clone(), ChatMessage::user("hi")])).await;
    let expected = json!([
        {"type": "text", "text": "Be brief.", "cache_control": mark},
        {"type": "text", "text": "\n\nSpeak French."},
    ]);
    assert_eq!(body["system"], expected);
    let body = sent(ChatRequest::new([own, ChatMessage::user("hi")])).await;
    assert_eq!(body["system"], json!([{"type": "text", "text": "Speak French."}]));
}

#[tokio::test]
async fn an_image_that_is_too_large_for_the_server_is_described() {
    let large = MediaPart::bytes("image/png", vec![0; 5 * 1024 * 1024 / 4 * 3 + 1]);
    let asked = Content::from("Who?").with_image(large);
    let body = sent(ChatRequest::new([ChatMessage::user(asked)])).await;
    let text = body["messages"][0]["content"][1]["text"].as_str().unwrap();
    assert_eq!(
        text,
        "[image image/png, 3 MB: this model does not take images of this size]"
    );
}

#[tokio::test]
async fn an_effort_is_a_budget_of_thoughts() {
    let budget = async |effort: &str| {
        let settings = ModelSettings::new()
            .with_reasoning_effort(effort.into())
            .with_top_p(0.5);
        let request = ChatRequest::new([ChatMessage::user("hi")]).with_settings(settings);
        let (answer, body) = ask(request, YES, |builder| builder.thinking_budget(2000)).await;
        answer.unwrap();
        body["thinking"]["budget_tokens"].as_u64()
    };
    assert_eq!(budget("none").await, None);
    assert_eq!(budget("low").await, Some(4096));
    assert_eq!(budget("max").await, Some(32_768));
    assert_eq!(budget("unheard").await, Some(2000));
}

fn choosing(choice: ToolChoice) -> ModelSettings {
    ModelSettings::new().with_tool_choice(choice)
}

#[tokio::test]
async fn a_choice_is_sent_only_beside_tools() {
    let choice = async |tools, tool_choice| {
        let request = ChatRequest::new([ChatMessage::user("hi")])
            .with_settings(choosing(tool_choice))
            .with_tools(tools);
        sent(request).await["tool_choice"].clone()
    };
    assert_eq!(choice(tools(), ToolChoice::Auto).await, Value::Null);
    assert_eq!(choice(tools(), ToolChoice::None).await, json!({"type": "none"}));
    let named = ToolChoice::Tool("today".into());
    assert_eq!(
        choice(tools(), named.clone()).await,
        json!({"type": "tool", "name": "today"})
    );
    assert_eq!(choice(ToolView::default(), named).await, Value::Null);
}

#[tokio::test]
async fn roles_alternate_and_results_stand_first() {
    let body = sent(
        ChatRequest::new([
            ChatMessage::user("a"),
            ChatMessage::user("b"),
            ChatMessage::assistant("c"),
            calls(&["1", "2"]),
            ChatMessage::tool("1".into(), "one"),
            ChatMessage::user("and?"),
            ChatMessage::tool("2".into(), ""),
            ChatMessage::assistant("d"),
            ChatMessage::user("e"),
        ])
        .with_tools(tools()),
    )
    .await;
    let empty = json!({"type": "tool_result", "tool_use_id": "2"});
    let expected = json!([
        user(&[text("a"), text("b")]),
        assistant(&[text("c"), call_block("1", &json!({})), call_block("2", &json!({}))]),
        user(&[result("1", "one"), empty, text("and?")]),
        assistant(&[text("d")]),
        user(&[text("e")]),
    ]);
    check_messages(&body, &expected);
}

#[tokio::test]
async fn a_shortened_conversation_is_still_accepted() {
    let body = sent(ChatRequest::new([
        ChatMessage::tool("0".into(), "lost"),
        ChatMessage::tool("00".into(), ""),
        calls(&["1", "2"]),
        ChatMessage::tool("2".into(), "two"),
        ChatMessage::tool("2".into(), "again"),
        ChatMessage::user(" \n"),
        ChatMessage::assistant(""),
        calls(&["3"]),
    ]))
    .await;
    let missing = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "is_error": true, "content": "No result was recorded for this call."});
    let expected = json!([
        user(&[text("Result of an earlier tool call:\nlost")]),
        assistant(&[call_block("1", &json!({})), call_block("2", &json!({}))]),
        user(&[
            result("2", "two"),
            missing("1"),
            text("Result of an earlier tool call:\nagain")
        ]),
        assistant(&[call_block("3", &json!({}))]),
        user(&[missing("3")]),
    ]);
    check_messages(&body, &expected);
    assert_eq!(
        body["tools"],
        json!([{"name": "now", "input_schema": {"type": "object"}}])
    );
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    let opening = json!([user(&[text("[The conversation begins here.]")])]);
    check_messages(&sent(ChatRequest::default()).await, &opening);
    let body = sent(ChatRequest::new([
        ChatMessage::assistant("hello"),
        ChatMessage::user("hi"),
    ]))
    .await;
    check_messages(
        &body,
        &json!([opening[0], assistant(&[text("hello")]), user(&[text("hi")])]),
    );
}

#[tokio::test]
async fn the_user_has_the_last_word() {
    let messages = [ChatMessage::user("hi"), ChatMessage::assistant("so ")];
    let body = sent(ChatRequest::new(messages)).await;
    let expected = json!([user(&[text("hi")]), assistant(&[text("so ")]), user(&[text("Go on.")])]);
    check_messages(&body, &expected);
}

#[tokio::test]
async fn calls_of_other_providers_are_made_acceptable() {
    let strange = ToolCall::new("functions.now:0", "get weather()", r#"{"city": "Par"#);
    let calls = vec![
        strange,
        tool_call("b", "[1]"),
        tool_call("c", " "),
        tool_call("d", r#" {"x": 1.50} "#),
    ];
    let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
    let results = ids.into_iter().map(|id| ChatMessage::tool(id, "ok"));
    let messages = [ChatMessage::user("hi"), ChatMessage::calls("so", calls)];
    let body = sent(ChatRequest::new(messages.into_iter().chain(results)).with_tools(tools())).await;
    let blocks = &body["messages"][1]["content"];
    assert_eq!(
        blocks[1],
        json!({"type": "tool_use", "id": "functions_now_0", "name": "get_weather__", "input": {"malformed": "{\"city\": \"Par"}})
    );
    assert_eq!(blocks[2]["input"], json!({"malformed": "[1]"}));
    assert_eq!(
        [&blocks[3]["input"], &blocks[4]["input"]],
        [&json!({}), &json!({"x": 1.5})]
    );
    assert_eq!(body["messages"][2]["content"][0], result("functions_now_0", "ok"));
}

#[tokio::test]
async fn the_stable_beginning_is_marked_for_the_cache() {
    let past = |message: ChatMessage| message.because(ContextReason::History);
    let body = sent(
        ChatRequest::new([
            ChatMessage::system("Be brief."),
            past(ChatMessage::user("a")),
            past(ChatMessage::assistant("b")),
            ChatMessage::user("it is noon"),
            ChatMessage::user("c"),
            calls(&["1"]),
            ChatMessage::tool("1".into(), "one"),
        ])
        .with_tools(tools()),
    )
    .await;
    let is_marked = |block: &Value| block.get("cache_control").is_some();
    let messages = body["messages"].as_array().unwrap();
    let blocks = messages
        .iter()
        .flat_map(|message| message["content"].as_array().unwrap());
    assert_eq!(
        blocks.map(is_marked).collect::<Vec<_>>(),
        [false, true, false, false, false, true]
    );
    assert!(is_marked(&body["system"][0]) && is_marked(&body["tools"][1]) && !is_marked(&body["tools"][0]));
}

fn thought(details: &str) -> Option<Reasoning> {
    Some(Reasoning::new("hm").with_details(Arc::from(RawValue::from_string(details.into()).unwrap())))
}

const SIGNED: &str = r#"{"type":"thinking","thinking":"hm","signature":"c2ln=="}"#;
const REDACTED: &str = r#"{"type":"redacted_thinking","data":"eA=="}"#;

#[tokio::test]
async fn thoughts_are_kept_and_sent_back_unchanged() {
    const ANSWER: &str = r#"{"content":[{"type":"thinking","thinking":"hm","signature":"c2ln=="},{"type":"redacted_thinking","data":"eA=="},
        {"type":"tool_use","id":"toolu_1","name":"now","input":{}}],"stop_reason":"tool_use"}"#;
    let request = ChatRequest::new([ChatMessage::user("hi")])
        .with_settings(ModelSettings::new().with_temperature(0.5))
        .with_tools(tools());
    let (answer, body) = ask(request, ANSWER, |builder| builder.thinking_budget(2000)).await;
    assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": 2000}));
    assert_eq!((&body["max_tokens"], body.get("temperature")), (&json!(10_192), None));
    let answer = answer.unwrap();
    assert_eq!(answer.reasoning, thought(&format!("[{SIGNED},{REDACTED}]")));

    let next = [
        ChatMessage::user("hi"),
        answer.to_message(),
        ChatMessage::tool("toolu_1".into(), "noon"),
    ];
    let request = ChatRequest::new(next).with_tools(tools());
    let (answer, body) = ask(request, YES, |builder| builder.thinking_budget(2000)).await;
    answer.unwrap();
    let blocks = [SIGNED, REDACTED].map(|block| serde_json::from_str(block).unwrap());
    let [signed, redacted]: [Value; 2] = blocks;
    assert_eq!(
        body["messages"][1],
        assistant(&[signed, redacted, call_block("toolu_1", &json!({}))])
    );
    assert!(body.get("thinking").is_some());
}

#[tokio::test]
async fn a_model_thinks_only_where_the_server_lets_it() {
    let thinks = async |request: ChatRequest| {
        let (answer, body) = ask(request, YES, |builder| builder.thinking_budget(1)).await;
        answer.unwrap();
        body.get("thinking").is_some()
    };
    let question = || ChatRequest::new([ChatMessage::user("hi")]).with_tools(tools());
    assert!(thinks(question()).await);
    assert!(!thinks(question().with_settings(choosing(ToolChoice::Required))).await);
    assert!(thinks(question().with_settings(choosing(ToolChoice::None))).await);
    let mut others = calls(&["1"]);
    others.reasoning = thought(r#"[{"type":"reasoning.text","text":"hm"}]"#);
    let results = [ChatMessage::user("hi"), others, ChatMessage::tool("1".into(), "noon")];
    assert!(!thinks(ChatRequest::new(results).with_tools(tools())).await);
}

fn shaped(schema: Value) -> ChatRequest {
    ChatRequest::new([ChatMessage::user("hi")]).with_output(OutputSchema::new("Answer", schema))
}

#[tokio::test]
async fn a_shape_is_a_tool_whose_arguments_are_the_answer() {
    const ANSWER: &str = r#"{"content":[{"type":"text","text":"Here:"},{"type":"tool_use","id":"1","name":"Answer","input":{"x": 1}}],
        "stop_reason":"tool_use"}"#;
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    let (answer, body) = ask(shaped(schema.clone()), ANSWER, |builder| builder.thinking_budget(2000)).await;
    let answer = answer.unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.finish),
        (r#"{"x": 1}"#, FinishReason::Stop)
    );
    assert!(answer.tool_calls.is_empty());
    let forced = json!({"type": "tool", "name": "Answer", "disable_parallel_tool_use": true});
    assert_eq!((&body["tool_choice"], body.get("thinking")), (&forced, None));
    assert_eq!(body["tools"][0]["input_schema"], schema);
}

#[tokio::test]
async fn a_list_is_wrapped_and_unwrapped() {
    const ANSWER: &str = r#"{"content":[{"type":"tool_use","id":"1","name":"Answer","input":{"value": ["a"]}}],"stop_reason":"tool_use"}"#;
    let (answer, _) = ask(shaped(json!({"type": "array"})), ANSWER, |builder| builder).await;
    assert_eq!(answer.unwrap().text, r#"["a"]"#);
}

#[tokio::test]
async fn tools_may_be_called_before_a_shaped_answer() {
    const BOTH: &str = r#"{"content":[{"type":"tool_use","id":"1","name":"Answer","input":{"x":1}},
        {"type":"tool_use","id":"toolu_2","name":"now","input":{}}],"stop_reason":"tool_use"}"#;
    let request = shaped(json!({"type": "object"})).with_tools(tools());
    let (answer, body) = ask(request.clone(), BOTH, |builder| builder).await;
    assert_eq!(
        answer.unwrap(),
        ChatResponse::calls([tool_call("toolu_2", "{}")]).with_provider("anthropic")
    );
    assert_eq!(body["tool_choice"], json!({"type": "any"}));
    let named = request.with_settings(choosing(ToolChoice::Tool("today".into())));
    let (answer, body) = ask(named, BOTH, |builder| builder).await;
    answer.unwrap();
    assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "today"}));
}

#[tokio::test]
async fn results_of_failed_calls_are_marked_unless_they_are_empty() {
    let call = |id: &str| ToolCall::new(id, "now", "{}");
    let result = |id: &str, text: &str| ChatMessage::tool(id.into(), text).with_error(true);
    let body = sent(ChatRequest::new([
        ChatMessage::user("hi"),
        ChatMessage::calls(String::new(), vec![call("c1"), call("c2"), call("c3")]),
        result("c1", "no clock"),
        result("c2", ""),
        ChatMessage::tool("c3".into(), "noon"),
    ]))
    .await;
    let results = body["messages"][2]["content"].as_array().unwrap();
    let marks: Vec<_> = results.iter().map(|result| &result["is_error"]).collect();
    assert_eq!(marks, [&json!(true), &Value::Null, &Value::Null]);
}

#[tokio::test]
async fn errors_name_the_setting_and_never_the_key() {
    let body = format!(
        r#"{{"type":"error","error":{{"type":"authentication_error","message":"invalid {KEY}"}},"request_id":"r"}}"#
    );
    let server = Server::start([Reply::json(401, &body)]).await;
    let client = builder(&server).build().unwrap();
    let error = client
        .chat(call(ChatRequest::new([ChatMessage::user("hi")])))
        .await
        .unwrap_err();
    let expected = format!(
        "`{}` refused the key (status 401, request r): invalid [redacted]; check the client's api_key",
        server.endpoint().replace("/v1", "")
    );
    assert_eq!(error.to_string(), expected);
    assert!(!format!("{error:?} {client:?}").contains(KEY));
}

/// The answer that a stream folds to, fed in `pieces`.
fn fold<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<ChatResponse, Fault> {
    let outlet = Outlet(None);
    let mut fold = StreamFold::new(Assembler::new(&[], None, &RandomIds, &outlet), 4096);
    for piece in pieces {
        fold.push(piece)?;
    }
    fold.finish()
}

/// A stream with everything, in the words of the documentation.
const RECORDED: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-1\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":4,\"output_tokens\":1}}}\n\n",
    "event: ping\r\ndata: {\"type\": \"ping\"}\r\n\r\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"größer\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"c2ln\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"redacted_thinking\",\"data\":\"eA==\"}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"text_delta\",\"text\":\"Grüße \\ud83d\\ude00 🙂\"}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":3,\"content_block\":{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_1\",\"name\":\"web_search\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":4,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"now\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":4,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":4,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"zone\\\":\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":4,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\\\"é\\\"}\"}}\n\n",
    "event: novelty\ndata: {\"type\":\"novelty\"}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":15}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

fn recorded() -> ChatResponse {
    let details =
        r#"[{"signature":"c2ln","thinking":"größer","type":"thinking"},{"data":"eA==","type":"redacted_thinking"}]"#;
    ChatResponse::calls([tool_call("toolu_1", r#"{"zone":"é"}"#)])
        .with_text("Grüße 😀 🙂")
        .with_reasoning(thought(details).map(|reasoning| Reasoning::new("größer").with_details(reasoning.details)))
        .with_usage(Usage::new(7, 15).with_cached(4))
        .with_model("claude-1")
        .with_id("msg_1")
}

#[test]
fn a_stream_cut_in_two_anywhere_gives_the_same_answer() {
    let bytes = RECORDED.as_bytes();
    assert_eq!(fold(bytes.chunks(1)), Ok(recorded()));
    for middle in 0..=bytes.len() {
        let (a, b) = bytes.split_at(middle);
        assert_eq!(fold([a, b]), Ok(recorded()), "cut at {middle}");
    }
}

#[test]
fn a_stream_that_ends_early_is_an_error() {
    let end = RECORDED.find("event: message_delta").unwrap();
    for length in 0..end {
        let kind = fold([&RECORDED.as_bytes()[..length]]).unwrap_err().kind();
        assert_eq!(kind, ChatErrorKind::CutStream, "cut at {length}");
    }
}

#[test]
fn blocks_are_bounded() {
    let block = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let stream = format!("data: {block}\n\n").repeat(5000);
    assert_eq!(
        fold([stream.as_bytes()]),
        Err(Fault::Malformed("it has more than 4096 blocks".into()))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), skipped in 0usize..17, repeated in 0usize..17) {
        let _ = fold([bytes.as_slice()]);
        let mut events: Vec<&str> = RECORDED.split_inclusive("\n\n").collect();
        let event = events[repeated % events.len()];
        events.insert(skipped, event);
        let _ = fold(events.iter().map(|event| event.as_bytes()));
        events.remove(repeated.min(events.len() - 1));
        let _ = fold(events.iter().map(|event| event.as_bytes()));
    }
}
