//! The requests of the client against a server that is as strict as the API, and what it makes of
//! recorded answers.

use rockbot_core::CallContext;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatErrorKind, ChatMessage, ChatRequest, ChatResponse, FinishReason,
    ModelSettings, OutputSchema, Reasoning, ReasoningEffort, ToolCall, ToolChoice, Usage,
};
use rockbot_core::content::{Content, MediaPart};
use rockbot_core::tool::{InMemoryToolRegistry, Owner, ToolRegistry, ToolView, tool};
use serde_json::{Value, json};

use super::rules::refusal;
use super::{OpenAiResponses, OpenAiResponsesBuilder};
use crate::fixture::{Reply, Server};

const YES: &str = r#"{"id":"resp_1","object":"response","model":"gpt-5-1","status":"completed","error":null,
    "incomplete_details":null,"output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed",
    "content":[{"type":"output_text","text":"yes","annotations":[]}]}],
    "usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,
    "output_tokens_details":{"reasoning_tokens":3},"total_tokens":14}}"#;

/// Asks `request` of a server that answers `answer`, or refuses as the API does. Returns the
/// answer and the body.
async fn ask(
    request: ChatRequest,
    answer: &'static str,
    change: impl FnOnce(OpenAiResponsesBuilder) -> OpenAiResponsesBuilder,
) -> (Result<ChatResponse, ChatError>, Value) {
    let server = Server::answering(async move |request| match refusal(&request) {
        None => Reply::json(200, answer),
        Some(refusal) => {
            let error = json!({"error": {"type": "invalid_request_error", "code": null, "message": refusal}});
            Reply::json(400, &error.to_string())
        }
    })
    .await;
    let builder = OpenAiResponses::builder(server.endpoint(), "gpt-5").api_key("sk-very-secret".into());
    let client = change(builder.max_attempts(1)).build().unwrap();
    let answer = client.chat(ChatCall::new(request, CallContext::new("s"))).await;
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

fn tools() -> ToolView {
    /// Tells the time.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Now {}
    let registry = InMemoryToolRegistry::new();
    let now = tool("now", async |_: Now| "noon");
    registry.register(&Owner::new("test"), now).unwrap();
    registry.snapshot().view().clone()
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall::new(id, name, arguments)
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

#[tokio::test]
async fn what_is_unset_is_left_out() {
    let body = sent(ChatRequest::new([ChatMessage::user("hi")])).await;
    let expected = json!({
        "model": "gpt-5",
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "input": [user("hi")],
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn every_setting_has_its_place() {
    let settings = ModelSettings::new()
        .with_temperature(0.5)
        .with_top_p(0.25)
        .with_max_output_tokens(100)
        .with_seed(7)
        .with_stop_sequences(["END"])
        .with_reasoning_effort(ReasoningEffort::Low)
        .with_tool_choice(ToolChoice::Tool("now".into()))
        .with_parallel_tool_calls(false)
        .with_extra_body("metadata", json!({"run": "1"}));
    let request = ChatRequest::new([
        ChatMessage::system("Be brief."),
        ChatMessage::user("hi"),
        ChatMessage::system("Be kind."),
    ])
    .with_settings(settings)
    .with_tools(tools())
    .with_output(OutputSchema::new("Answer", json!({"type": "object"})));
    let expected = json!({
        "model": "gpt-5",
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 100,
        "temperature": 0.5,
        "top_p": 0.25,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "Answer", "schema": {"type": "object"}}},
        "tool_choice": {"type": "function", "name": "now"},
        "parallel_tool_calls": false,
        "metadata": {"run": "1"},
        "instructions": "Be brief.\n\nBe kind.",
        "input": [user("hi")],
        "tools": [{
            "type": "function",
            "name": "now",
            "description": "Tells the time.",
            "strict": false,
            "parameters": {"type": "object", "properties": {}},
        }],
    });
    assert_eq!(sent(request).await, expected);
}

#[tokio::test]
async fn a_choice_of_tools_goes_in_only_with_tools() {
    let choices = [
        (ToolChoice::Auto, Value::Null),
        (ToolChoice::None, "none".into()),
        (ToolChoice::Required, "required".into()),
    ];
    for (choice, expected) in choices {
        let settings = ModelSettings::new()
            .with_tool_choice(choice)
            .with_parallel_tool_calls(true);
        let request = ChatRequest::new([ChatMessage::user("hi")]).with_settings(settings);
        let without = sent(request.clone()).await;
        assert_eq!(
            (&without["tool_choice"], &without["parallel_tool_calls"]),
            (&Value::Null, &Value::Null)
        );
        let with = sent(request.with_tools(tools())).await;
        assert_eq!(
            (&with["tool_choice"], &with["parallel_tool_calls"]),
            (&expected, &true.into())
        );
    }
}

#[tokio::test]
async fn a_limit_below_the_least_is_raised_to_it() {
    let settings = ModelSettings::new().with_max_output_tokens(1);
    let body = sent(ChatRequest::new([ChatMessage::user("hi")]).with_settings(settings)).await;
    assert_eq!(body["max_output_tokens"], 16);
}

#[tokio::test]
async fn models_that_do_not_reason_are_not_asked_for_it() {
    let request = || ChatRequest::new([ChatMessage::user("hi")]);
    let (answer, body) = ask(request(), YES, |mut builder| {
        builder.connection.model = "gpt-4.1-mini".into();
        builder
    })
    .await;
    assert_eq!((answer.is_ok(), body.get("include")), (true, None));
    let (_, body) = ask(request(), YES, |builder| builder.keep_reasoning(false)).await;
    assert_eq!(body.get("include"), None);
}

#[tokio::test]
async fn a_conversation_becomes_items() {
    let mut early = ChatMessage::user("what");
    early
        .content
        .extend(ChatMessage::user(" time?").content.parts().to_vec());
    let messages = [
        ChatMessage::assistant("hello"),
        early,
        ChatMessage::user("now"),
        ChatMessage::calls(
            "so",
            vec![call("c1", "now", "{}"), call("c2", "get weather()", "{\"x\"")],
        ),
        ChatMessage::tool("c2".into(), "rain"),
        ChatMessage::tool("c1".into(), ""),
        ChatMessage::user("and?"),
    ];
    let expected = json!([
        user("[The conversation begins here.]"),
        {"type": "message", "role": "assistant", "content": "hello"},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "what time?"},
            {"type": "input_text", "text": "now"},
        ]},
        {"type": "message", "role": "assistant", "content": "so"},
        {"type": "function_call", "call_id": "c1", "name": "now", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "get_weather__", "arguments": r#"{"malformed":"{\"x\""}"#},
        {"type": "function_call_output", "call_id": "c2", "output": "rain"},
        {"type": "function_call_output", "call_id": "c1", "output": ""},
        user("and?"),
    ]);
    assert_eq!(sent(ChatRequest::new(messages)).await["input"], expected);
}

#[tokio::test]
async fn a_conversation_that_lost_parts_is_accepted() {
    let long = "x".repeat(100);
    let messages = [
        ChatMessage::tool("lost".into(), "noon"),
        ChatMessage::calls(String::new(), vec![call("c1", "now", ""), call(&long, "now", "{}")]),
        ChatMessage::tool(long.as_str().into(), "one"),
        ChatMessage::assistant(" "),
        ChatMessage::assistant("well"),
        ChatMessage::calls(String::new(), vec![call("c2", "now", "{}")]),
    ];
    let body = sent(ChatRequest::new(messages)).await;
    let outputs = body["input"].as_array().unwrap().iter().map(|item| &item["output"]);
    let outputs: Vec<&str> = outputs.filter_map(Value::as_str).collect();
    let lost = "No result was recorded for this call.";
    assert_eq!(outputs, ["one", lost, lost]);
    assert_eq!(body["input"][0], user("Result of an earlier tool call:\nnoon"));
    assert_eq!(
        sent(ChatRequest::default()).await["input"],
        json!([user("[The conversation begins here.]")])
    );
}

/// An answer with reasoning, words and a call.
const REASONED: &str = r#"{"id":"resp_1","model":"gpt-5-1","status":"completed","output":[
    {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"so"}],
     "encrypted_content":"c2VjcmV0","content":[],"status":null},
    {"type":"web_search_call","id":"ws_1","content":"?"},
    {"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"let me "},{"type":"refusal","refusal":"not"}]},
    {"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"bW9yZQ=="},
    {"type":"function_call","id":"fc_1","call_id":"c1","name":"now","arguments":"{}"},
    {"type":"reasoning","id":"rs_3","summary":[]}]}"#;

#[tokio::test]
async fn reasoning_goes_back_with_the_items_that_followed_it() {
    let (answer, _) = ask(ChatRequest::new([ChatMessage::user("hi")]), REASONED, |builder| builder).await;
    let answer = answer.unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.finish),
        ("let me not", FinishReason::ToolCalls)
    );
    assert_eq!(answer.reasoning.as_ref().unwrap().text, "hm\n\nso");
    let mut said = answer.to_message();
    let talk =
        |said: ChatMessage| ChatRequest::new([ChatMessage::user("hi"), said, ChatMessage::tool("c1".into(), "noon")]);
    let whole = json!([
        user("hi"),
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "c2VjcmV0", "summary": [
            {"type": "summary_text", "text": "hm"}, {"type": "summary_text", "text": "so"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "let me not", "annotations": []}]},
        {"type": "reasoning", "id": "rs_2", "encrypted_content": "bW9yZQ==", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "now", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "noon"},
    ]);
    assert_eq!(sent(talk(said.clone())).await["input"], whole);
    // Without the words that followed it, the reasoning has no place.
    said.content = "".into();
    let cut = sent(talk(said)).await;
    let call = json!({"type": "function_call", "call_id": "c1", "name": "now", "arguments": "{}"});
    assert_eq!((cut["input"].as_array().unwrap().len(), &cut["input"][1]), (3, &call));
}

#[tokio::test]
async fn reasoning_of_other_dialects_is_left_out() {
    for details in [
        r#"[{"type":"thinking","thinking":"a","signature":"s"}]"#,
        r#"[{"type":"reasoning.text","text":"a"}]"#,
        "{}",
    ] {
        let mut said = ChatMessage::assistant("yes");
        said.reasoning = Some(
            Reasoning::new("hm").with_details(
                serde_json::value::RawValue::from_string(details.into())
                    .ok()
                    .map(std::sync::Arc::from),
            ),
        );
        let body = sent(ChatRequest::new([ChatMessage::user("hi"), said])).await;
        assert_eq!(
            body["input"][1],
            json!({"type": "message", "role": "assistant", "content": "yes"})
        );
    }
}

#[tokio::test]
async fn images_and_documents_are_parts_of_messages_and_outputs() {
    let image = || MediaPart::bytes("image/png", "abc");
    let pdf = MediaPart::bytes("application/pdf", "abc").with_name("a.pdf");
    let question = Content::from("Who?").with_image(image()).with_file(pdf);
    let result = Content::from("a cat").with_image(MediaPart::url("image/*", "https://a.example/cat.png"));
    let talk = || {
        ChatRequest::new([
            ChatMessage::user(question.clone()),
            ChatMessage::calls("", vec![call("c1", "now", "{}")]),
            ChatMessage::tool("c1".into(), result.clone()),
        ])
    };
    let expected = json!([
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "Who?"},
            {"type": "input_image", "image_url": "data:image/png;base64,YWJj"},
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,YWJj"},
        ]},
        {"type": "function_call", "call_id": "c1", "name": "now", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [
            {"type": "input_text", "text": "a cat"},
            {"type": "input_image", "image_url": "https://a.example/cat.png"},
        ]},
    ]);
    assert_eq!(sent(talk()).await["input"], expected);
    let blind = talk().with_settings(ModelSettings::new().with_images(false));
    let body = sent(blind).await["input"].to_string();
    assert!(
        body.contains("this model does not take images and files") && !body.contains("input_image"),
        "{body}"
    );
    let drawn = ChatMessage::assistant(Content::from("Here.").with_image(image()));
    let body = sent(ChatRequest::new([ChatMessage::user("Draw!"), drawn])).await;
    assert_eq!(body["input"][1]["content"], "Here.\n[image image/png, 3 bytes]");
}

#[tokio::test]
async fn usage_counts_cached_and_reasoning_tokens() {
    let (answer, _) = ask(ChatRequest::new([ChatMessage::user("hi")]), YES, |builder| builder).await;
    let usage = Usage::new(9, 5).with_cached(4).with_reasoning(3);
    assert_eq!(answer.unwrap().usage, Some(usage));
}

#[tokio::test]
async fn a_failed_response_is_an_error() {
    for (body, kind) in [
        (
            r#"{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down"},"output":[]}"#,
            ChatErrorKind::RateLimited,
        ),
        (
            r#"{"status":"failed","error":{"code":"server_error","message":"oops"}}"#,
            ChatErrorKind::Overloaded,
        ),
        (
            r#"{"status":"failed","error":{"code":"invalid_prompt","message":"flagged"}}"#,
            ChatErrorKind::ContentFiltered,
        ),
        (
            r#"{"status":"cancelled","error":null,"output":[]}"#,
            ChatErrorKind::Overloaded,
        ),
        (
            r#"{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}"#,
            ChatErrorKind::ContentFiltered,
        ),
    ] {
        let (answer, _) = ask(ChatRequest::new([ChatMessage::user("hi")]), body, |builder| builder).await;
        assert_eq!(answer.unwrap_err().kind(), kind, "{body}");
    }
}

/// Checks the answer that a stream of `events` makes.
async fn check_stream(events: &[Value], text: &str, calls: &[(&str, &str)]) {
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let server = Server::start([Reply::stream(&stream)]).await;
    let client = OpenAiResponses::builder(server.endpoint(), "gpt-5")
        .max_attempts(1)
        .build()
        .unwrap();
    let (call, heard) = crate::testing::streamed();
    let answer = client.chat(call).await.unwrap();
    let called: Vec<_> = answer
        .tool_calls
        .iter()
        .map(|call| (call.id.as_str(), &*call.arguments))
        .collect();
    assert_eq!((answer.text.as_str(), called.as_slice()), (text, calls));
    if calls.is_empty() {
        assert_eq!(heard().concat(), text);
    }
}

#[tokio::test]
async fn two_messages_become_two_paragraphs() {
    let item = |index: u64| json!({"type": "response.output_item.added", "output_index": index, "item": {"type": "message", "id": format!("msg_{index}"), "content": []}});
    let words =
        |index: u64, text: &str| json!({"type": "response.output_text.delta", "output_index": index, "delta": text});
    let end = json!({"type": "response.completed", "response": {"status": "completed"}});
    check_stream(
        &[
            item(0),
            words(0, "Let me "),
            words(0, "see."),
            item(1),
            words(1, "Noon."),
            end,
        ],
        "Let me see.\n\nNoon.",
        &[],
    )
    .await;
}

#[tokio::test]
async fn streams_that_leave_out_events_are_read() {
    let message = json!({"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "yes"}]});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "now", "arguments": "{\"a\":1}"});
    let end = json!({"type": "response.completed", "response": {"status": "completed", "output": [message, call]}});
    let done =
        |index: u64, item: &Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let calls = [("c1", "{\"a\":1}")];
    // The end alone, the ends of items, and the beginnings of items with all that is in them.
    check_stream(std::slice::from_ref(&end), "yes", &calls).await;
    check_stream(&[done(0, &message), done(1, &call), end.clone()], "yes", &calls).await;
    let added =
        |index: u64, item: &Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
    check_stream(
        &[
            added(0, &message),
            done(0, &message),
            added(1, &call),
            done(1, &call),
            end,
        ],
        "yes",
        &calls,
    )
    .await;
}
