//! The client against recorded servers on the loopback, and the fold of streams against every way
//! to cut them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use rockbot_core::chat::{
    ChatDelta, ChatMessage, ChatRequest, DeltaSink, FinishReason, ModelSettings, Reasoning, ToolCall, Usage,
};
use rockbot_core::{CallContext, IdSource, Secret};
use tokio_util::sync::CancellationToken;

use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelTier};
use tokio::time::Instant;

use super::response::Assembler;
use super::{OpenAiChat, OpenAiChatBuilder};
use crate::LlmConfigError;
use crate::fixture::{Reply, Server};
use crate::http::{Fault, Outlet, SettingNames, StreamFold};

const KEY: &str = "sk-very-secret-key";

/// `1`, `2`, …
#[derive(Debug, Default)]
struct Counted(AtomicU32);

impl IdSource for Counted {
    fn next_id(&self) -> String {
        (self.0.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }
}

fn client(server: &Server) -> OpenAiChatBuilder {
    OpenAiChat::builder(server.endpoint(), "m")
        .api_key(Secret::from(KEY))
        .ids(Arc::new(Counted::default()))
        .max_attempts(1)
}

fn call() -> ChatCall {
    ChatCall::new(ChatRequest::new([ChatMessage::user("hi")]), CallContext::new("s"))
}

/// A call whose deltas are noted as text.
fn streamed() -> (ChatCall, Arc<Mutex<Vec<String>>>) {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let notes = noted.clone();
    let sink = DeltaSink::new(move |delta| {
        notes.lock().unwrap().push(match delta {
            ChatDelta::Text(text) => format!("text {text}"),
            ChatDelta::Reasoning(text) => format!("reasoning {text}"),
            ChatDelta::ToolCall { call, tool } => format!("call {call} {tool}"),
            _ => "reset".into(),
        });
    });
    let call = call().with_deltas(sink);
    (call, noted)
}

fn tool_call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall::new(id, name, arguments)
}

#[tokio::test]
async fn settings_of_the_request_win_over_those_of_the_client() {
    let replies = (0..2).map(|_| Reply::json(200, r#"{"choices":[{"message":{"content":"ok"}}]}"#));
    let server = Server::start(replies).await;
    let settings = ModelSettings::new()
        .with_temperature(0.5)
        .with_max_output_tokens(9)
        .with_extra_body("verbosity", "low")
        .with_extra_header("X-Title", "client")
        .with_extra_header("X-Team", "one");
    let client = client(&server).model_settings(settings).build().unwrap();
    client.chat(call()).await.unwrap();
    let own = ModelSettings::new()
        .with_temperature(0.0)
        .with_extra_header("x-title", "request");
    let request = ChatRequest::new([ChatMessage::user("hi")]).with_settings(own);
    client.chat(call().with_request(request)).await.unwrap();
    let requests = server.requests();
    for (request, temperature, title) in [(&requests[0], "0.5", "client"), (&requests[1], "0.0", "request")] {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let expected = format!(
            r#"{{"model":"m","max_completion_tokens":9,"temperature":{temperature},"verbosity":"low","messages":[{{"role":"user","content":"hi"}}]}}"#
        );
        assert_eq!(body, expected);
        assert_eq!(head.matches("x-title: ").count(), 1, "{head}");
        for line in [
            &format!("x-title: {title}"),
            "x-team: one",
            &format!("authorization: Bearer {KEY}"),
        ] {
            assert!(head.contains(line), "{head}");
        }
    }
}

#[tokio::test]
async fn invalid_settings_are_refused_before_anything_is_sent_and_headers_are_never_shown() {
    let error = r#"{"error":{"message":"header x-key: sk-header is unknown"}}"#;
    let server = Server::start([Reply::json(400, error)]).await;
    let invalid = ModelSettings::new().with_temperature(f32::NAN);
    let refused = client(&server).model_settings(invalid.clone()).build().unwrap_err();
    assert!(matches!(refused, LlmConfigError::ModelSettings(_)));
    let settings = ModelSettings::new().with_extra_header("x-key", "sk-header");
    let model = client(&server).model_settings(settings).build().unwrap();
    let request = ChatRequest::default().with_settings(invalid);
    let refused = model.chat(call().with_request(request)).await.unwrap_err();
    assert_eq!(refused.kind(), ChatErrorKind::InvalidRequest);
    assert!(
        refused
            .to_string()
            .contains("`temperature` must be a number of at least 0"),
        "{refused}"
    );
    let refused = model.chat(call()).await.unwrap_err();
    assert!(
        refused.to_string().contains("x-key") && !refused.to_string().contains("sk-header"),
        "{refused}"
    );
    assert_eq!(server.requests().len(), 1);
}

/// The whole answer that a server gives with `body`.
async fn whole(body: &str) -> Result<ChatResponse, ChatError> {
    let server = Server::start([Reply::json(200, body)]).await;
    client(&server).build().unwrap().chat(call()).await
}

async fn check_whole(body: &str, expected: ChatResponse) {
    let expected = from_openai(expected);
    assert_eq!(whole(body).await.unwrap(), expected, "{body}");
}

/// The answer as a client gives it, who knows its server.
fn from_openai(answer: ChatResponse) -> ChatResponse {
    answer.with_provider("openai")
}

/// The answer that `events` fold to, fed in `pieces`.
fn fold<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<ChatResponse, Fault> {
    let ids = Counted::default();
    let messages = [];
    let outlet = Outlet(None);
    let mut fold = StreamFold::new(Assembler::new(&messages, &ids, &outlet), 4096);
    for piece in pieces {
        fold.push(piece)?;
    }
    fold.finish()
}

#[track_caller]
fn check_stream(events: &[&str], expected: &Result<ChatResponse, Fault>) {
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    assert_eq!(&fold([stream.as_bytes()]), expected);
}

fn malformed(why: &str) -> Result<ChatResponse, Fault> {
    Err(Fault::Malformed(why.into()))
}

#[tokio::test]
async fn a_request_goes_where_the_endpoint_says_with_the_key_and_the_headers() {
    let server = Server::start([Reply::json(200, r#"{"choices":[{"message":{"content":"hello"}}]}"#)]).await;
    let client = OpenAiChat::builder(server.endpoint() + "/chat/completions/", "m").api_key(KEY.into());
    client
        .header("X-Title", "Rock")
        .build()
        .unwrap()
        .chat(call())
        .await
        .unwrap();
    let request = server.requests().remove(0);
    assert!(
        request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{request}"
    );
    for line in [
        "content-type: application/json",
        &format!("authorization: Bearer {KEY}"),
        "x-title: Rock",
    ] {
        assert!(request.contains(&format!("\r\n{line}\r\n")), "{request}");
    }
    assert!(request.ends_with("\r\n\r\n{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"));
}

#[tokio::test]
async fn a_whole_answer_is_read_with_all_that_belongs_to_it() {
    check_whole(
        r#"{"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"yes",
           "refusal":null,"reasoning_content":"hm","reasoning":"hm","tool_calls":[]}}],
           "usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":3},
           "completion_tokens_details":{"reasoning_tokens":2}}}"#,
        ChatResponse::text("yes").with_reasoning(Reasoning::new("hm")).with_usage(Usage::new(9, 5).with_cached(3).with_reasoning(2)).with_model("m-1").with_id("chatcmpl-1"),
    )
    .await;
}

#[tokio::test]
async fn tool_calls_of_sloppy_servers_are_put_right() {
    check_whole(
        r#"{"choices":[{"finish_reason":"stop","message":{"content":null,"tool_calls":[
            {"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},
            {"id":"a","function":{"name":"f","arguments":{"y": [1, 2]}}},
            {"id":7,"function":{"name":"g","arguments":""}},
            {"function":{"name":"h"}}]}}]}"#,
        ChatResponse::calls([
            tool_call("a", "f", r#"{"x": 1}"#),
            tool_call("c00000001", "f", r#"{"y": [1, 2]}"#),
            tool_call("c00000002", "g", "{}"),
            tool_call("c00000003", "h", "{}"),
        ]),
    )
    .await;
}

#[tokio::test]
async fn a_call_gets_another_id_when_the_conversation_has_that_one() {
    let body = r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f"}}]}}]}"#;
    let server = Server::start([Reply::json(200, body)]).await;
    let earlier = ChatMessage::calls(String::new(), vec![tool_call("a", "f", "{}")]);
    let call = call().with_request(ChatRequest::new([earlier, ChatMessage::tool("a".into(), "x")]));
    let answer = client(&server).build().unwrap().chat(call).await.unwrap();
    assert_eq!(answer.tool_calls, [tool_call("c00000001", "f", "{}")]);
}

#[tokio::test]
async fn a_cut_answer_has_no_tool_calls() {
    let body = r#"{"choices":[{"finish_reason":"length","message":{"content":"so","tool_calls":[
        {"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}"#;
    let expected = ChatResponse::text("so").with_finish(FinishReason::Length);
    check_whole(body, expected).await;
}

#[tokio::test]
async fn text_and_reasoning_are_found_wherever_they_stand() {
    let answer = |message: &str| format!(r#"{{"choices":[{{"finish_reason":"novel","message":{message}}}]}}"#);
    let other = |text: &str| ChatResponse::text(text).with_finish(FinishReason::Other);
    let parts = r#"{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}"#;
    check_whole(&answer(parts), other("ab")).await;
    check_whole(&answer(r#"{"content":null,"refusal":"no"}"#), other("no")).await;
    let thought = |text: &str, details: Option<&str>| {
        let details = details.map(|raw| Arc::from(serde_json::value::RawValue::from_string(raw.into()).unwrap()));
        Some(Reasoning::new(text).with_details(details))
    };
    let tagged = r#"{"content":"<think>\nhm</think>\n\nyes"}"#;
    let expected = other("yes").with_reasoning(thought("\nhm", None));
    check_whole(&answer(tagged), expected).await;
    let details = r#"[ {"type":"reasoning.encrypted","data":"x"} ]"#;
    let expected = other("yes").with_reasoning(thought("hm", Some(details)));
    check_whole(
        &answer(&format!(
            r#"{{"content":"yes","reasoning":"hm","reasoning_details":{details}}}"#
        )),
        expected,
    )
    .await;
}

#[tokio::test]
async fn what_is_no_answer_is_an_error_of_its_kind() {
    for (body, kind) in [
        (
            r#"{"error":{"message":"busy","code":502},"choices":[]}"#,
            ChatErrorKind::Overloaded,
        ),
        (r#"{"error":{"message":"no","code":429}}"#, ChatErrorKind::RateLimited),
        (
            r#"{"choices":[{"finish_reason":"error","message":{"content":"so"}}]}"#,
            ChatErrorKind::Overloaded,
        ),
        (
            r#"{"choices":[{"finish_reason":"content_filter","message":{}}]}"#,
            ChatErrorKind::ContentFiltered,
        ),
        (r#"{"choices":[]}"#, ChatErrorKind::InvalidResponse),
        (
            r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{}}]}}]}"#,
            ChatErrorKind::InvalidResponse,
        ),
        ("<html>Sign in</html>", ChatErrorKind::InvalidResponse),
        ("", ChatErrorKind::InvalidResponse),
        (r#"{"choices":[{"mess"#, ChatErrorKind::InvalidResponse),
    ] {
        assert_eq!(whole(body).await.unwrap_err().kind(), kind, "{body}");
    }
}

#[tokio::test]
async fn a_web_page_is_no_model_server_and_is_not_asked_again() {
    let page = Reply::new(
        200,
        "content-type: text/html; charset=utf-8\r\n",
        "<html>Sign in</html>",
    );
    for deltas in [None, Some(DeltaSink::new(|_| {}))] {
        let server = Server::start([page.clone()]).await;
        let error = client(&server)
            .build()
            .unwrap()
            .chat(call().with_deltas(deltas))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ChatErrorKind::NotFound);
        assert!(
            error
                .to_string()
                .contains("is no model server: it answered with a web page; check"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_came_instead_of_an_answer_is_quoted() {
    let message = async |body: &str| whole(body).await.unwrap_err().to_string();
    let page = message("<html><title>Sign in</title></html>").await;
    assert!(
        page.contains("cannot be understood: it is not a chat completion (expected value"),
        "{page}"
    );
    assert!(
        page.contains("): a web page, \"Sign in\"; check that the client's endpoint names"),
        "{page}"
    );
    let other = message(r#"{"message":"no such route"}"#).await;
    assert!(other.contains(": it has no choices: no such route; check"), "{other}");
}

#[tokio::test]
async fn errors_name_the_setting_and_never_the_key() {
    let check = async |status, body: &str, expected: &str| {
        let server = Server::start([Reply::json(status, body)]).await;
        let names = SettingNames {
            endpoint: "OPENAI_BASE_URL".into(),
            api_key: "OPENAI_API_KEY".into(),
            model: "OPENAI_MODEL".into(),
        };
        let client = client(&server).setting_names(names).build().unwrap();
        let error = client.chat(call()).await.unwrap_err();
        assert_eq!(error.to_string(), expected.replace("ENDPOINT", &server.endpoint()));
        assert_eq!(error.status(), Some(status));
        assert!(!format!("{error:?} {client:?}").contains(KEY));
    };
    let echo = format!(r#"{{"error":{{"message":"bad key {KEY}\nsee docs"}}}}"#);
    let expected = "`ENDPOINT` refused the key (status 401): bad key [redacted] see docs; check OPENAI_API_KEY";
    check(401, &echo, expected).await;
    let expected = "`ENDPOINT` does not know the model `m` or is no model server (status 404): a web page; check \
                    OPENAI_MODEL, and that OPENAI_BASE_URL is the base URL of an OpenAI-compatible API, such as \
                    https://api.openai.com/v1";
    check(404, "<html>", expected).await;
    let quota = r#"{"error":{"message":"spent","code":"insufficient_quota"}}"#;
    let expected = "the account at `ENDPOINT` has no credit left (status 429): spent; top it up, or set \
                    OPENAI_API_KEY to another key";
    check(429, quota, expected).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let client = OpenAiChat::builder(&endpoint, "m").max_attempts(1).build().unwrap();
    let error = client.chat(call()).await.unwrap_err();
    assert_eq!(error.kind(), ChatErrorKind::Unreachable);
    let message = error.to_string();
    assert!(
        message.starts_with(&format!("cannot reach `{endpoint}`: Connection refused")),
        "{message}"
    );
    assert!(
        message.ends_with("; check that the server runs and that the client's endpoint names it"),
        "{message}"
    );
}

#[test]
fn a_client_that_cannot_work_is_not_built() {
    let build = |endpoint: &str, model: &str| OpenAiChat::builder(endpoint, model);
    for client in [
        build("localhost:1", "m"),
        build("http://h", " "),
        build("http://h", "m").api_key("two words".into()),
        build("http://h", "m").header("bad name", "x"),
        build("http://h", "m").header("x", "bad\nvalue"),
    ] {
        client.build().unwrap_err();
    }
    let shown = format!("{:?}", build("http://h/v1/?key=secret", "m").build().unwrap());
    assert_eq!(shown, "OpenAiChat { endpoint: \"http://h/v1\", model: \"m\", .. }");
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_refused() {
    let endless = format!("data: {}\n\n", "x".repeat(2000));
    for (reply, is_streamed) in [
        (Reply::json(200, &" ".repeat(2000)), false),
        (Reply::stream(&" ".repeat(2000)), false),
        (Reply::stream(&format!("{{{}", " ".repeat(2000))), true),
        (Reply::stream(&endless), true),
        (Reply::stream(&": keep-alive\n\n".repeat(200)), true),
    ] {
        let server = Server::start([reply.clone()]).await;
        let mut client = client(&server);
        client.connection.limits.body = 1000;
        client.connection.limits.event = 900;
        let call = if is_streamed { streamed().0 } else { call() };
        let error = client.build().unwrap().chat(call).await.unwrap_err();
        assert_eq!(error.kind(), ChatErrorKind::InvalidResponse, "{reply:?}");
        assert!(error.to_string().contains("is longer than"), "{error}");
    }
}

/// A stream that has everything: two interleaved calls, a split name, reasoning in pieces, usage
/// at the end.
const RECORDED: &str = concat!(
    "\u{feff}: OPENROUTER PROCESSING\r\n\r\n",
    "data: {\"id\":\"gen-1\",\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\r\n\r\n",
    "data:{\"choices\":[{\"delta\":{\"content\":\"<thi\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"nk>größer\"}}]}\n\n",
    "event: delta\ndata: {\"choices\":[{\"delta\":\ndata: {\"content\":\"</think>\\n Grüße \\ud83d\\ude00 🙂\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"get_\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"x\\\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"time\",\"arguments\":\"{\\\"zo\"}},{\"index\":0,\"function\":{\"arguments\":\":1}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"function\":{\"arguments\":\"ne\\\":\\\"é\\\"}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"index\":0,\"text\":\"a\",\"signature\":null}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"index\":0,\"text\":\"b\",\"signature\":\"s\"}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"prompt_tokens_details\":null}}\n\n",
    "data: [DONE]\n\n",
);

fn recorded() -> ChatResponse {
    let details = r#"[{"index":0,"signature":"s","text":"ab","type":"reasoning.text"}]"#;
    ChatResponse::calls([
        tool_call("a", "add", r#"{"x":1}"#),
        tool_call("b", "get_time", r#"{"zone":"é"}"#),
    ])
    .with_text("Grüße 😀 🙂")
    .with_reasoning(Reasoning::new("größer").with_details(Arc::from(
        serde_json::value::RawValue::from_string(details.into()).unwrap(),
    )))
    .with_usage(Usage::new(3, 4))
    .with_model("m-1")
    .with_id("gen-1")
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_in_any_pieces_gives_the_same_answer(sizes in prop::collection::vec(1usize..200, 1..400)) {
        let mut rest = RECORDED.as_bytes();
        let mut pieces = Vec::new();
        for size in sizes {
            let (piece, after) = rest.split_at(size.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        prop_assert_eq!(fold(pieces), Ok(recorded()));
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), events in "(data: [\\[\\]{}a-z\":0-9,]{0,60}\n\n){0,5}") {
        let _ = fold([bytes.as_slice()]);
        let _ = fold([events.as_bytes()]);
    }
}

#[test]
fn every_cut_of_a_stream_is_an_error() {
    let end = RECORDED.find(",\"finish_reason\"").unwrap();
    for length in 0..end {
        let cut = &RECORDED.as_bytes()[..length];
        let kind = fold([cut]).unwrap_err().kind();
        assert_eq!(kind, ChatErrorKind::CutStream, "cut at {length}");
    }
}

/// The calls that these entries of `delta.tool_calls`, one an event, add up to.
#[track_caller]
fn check_calls(deltas: &[&str], expected: &[ToolCall]) {
    let event = |delta: &&str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{delta}]}}}}]}}"#);
    let mut events: Vec<_> = deltas.iter().map(event).collect();
    events.push(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#.into());
    let events: Vec<_> = events.iter().map(String::as_str).collect();
    check_stream(&events, &Ok(ChatResponse::calls(expected.iter().cloned())));
}

#[test]
fn interleaved_calls_come_out_in_order_with_their_own_arguments() {
    check_calls(
        &[
            r#"{"index":1,"id":"b","function":{"name":"g"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"get_","arguments":null}}"#,
            r#"{"index":2,"id":"c","function":{"name":"h","arguments":"{\"c\""}}"#,
            r#"{"index":0,"function":{"name":"f"}},{"index":1,"function":{"arguments":"{\"b\":1"}}"#,
            r#"{"index":0,"id":"a","function":{"arguments":"{}"}}"#,
            r#"{"index":2,"id":"c","function":{"name":"h","arguments":":3}"}}"#,
            r#"{"index":1,"id":"made-up","function":{"arguments":"}"}}"#,
        ],
        &[
            tool_call("a", "get_f", "{}"),
            tool_call("b", "g", r#"{"b":1}"#),
            tool_call("c", "h", r#"{"c":3}"#),
        ],
    );
}

#[test]
fn calls_without_an_index_are_told_apart() {
    check_calls(
        &[
            r#"{"id":"a","function":{"name":"f","arguments":"{\"x\""}}"#,
            r#"{"function":{"arguments":":1}"}}"#,
            r#"{"id":"b","function":{"name":"f","arguments":"{"}}"#,
            r#"{"id":"b","function":{"arguments":"}"}}"#,
        ],
        &[tool_call("a", "f", r#"{"x":1}"#), tool_call("b", "f", "{}")],
    );
    check_calls(
        &[
            r#"{"function":{"name":"f","arguments":"{}"}}"#,
            r#"{"function":{"name":"f","arguments":"{\"x\":1}"}}"#,
        ],
        &[
            tool_call("c00000001", "f", "{}"),
            tool_call("c00000002", "f", r#"{"x":1}"#),
        ],
    );
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f"}}"#,
            r#"{"function":{"arguments":"{}"}}"#,
        ],
        &[tool_call("a", "f", "{}")],
    );
}

#[test]
fn an_index_that_is_used_again_begins_another_call() {
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"g","arguments":"{\"x\":1}"}}"#,
            r#"{"index":0,"function":{"name":"g","arguments":"{\"x\":2}"}}"#,
        ],
        &[
            tool_call("a", "f", "{}"),
            tool_call("b", "g", r#"{"x":1}"#),
            tool_call("c00000001", "g", r#"{"x":2}"#),
        ],
    );
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
        ],
        &[tool_call("a", "f", "{}"), tool_call("c00000001", "f", "{}")],
    );
}

#[test]
fn a_piece_that_belongs_to_no_call_for_certain_is_an_error() {
    check_stream(
        &[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}"}}]}}]}"#,
        ],
        &malformed("a piece of a tool call does not say of which"),
    );
    check_stream(
        &[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":"stop"}]}"#,
            "[DONE]",
        ],
        &malformed("a tool call has no name"),
    );
}

#[tokio::test]
async fn pieces_reach_the_sink_as_they_come() {
    let server = Server::start([Reply::stream(RECORDED)]).await;
    let (call, deltas) = streamed();
    let expected = from_openai(recorded());
    assert_eq!(client(&server).build().unwrap().chat(call).await.unwrap(), expected);
    let expected = ["reasoning größer", "text Grüße 😀 🙂", "call a add", "call b get_time"];
    assert_eq!(*deltas.lock().unwrap(), expected);
    let request = server.requests().remove(0);
    assert!(
        request.contains(r#","stream":true,"stream_options":{"include_usage":true},"messages":["#),
        "{request}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = r#" {"choices":[{"finish_reason":"stop","message":{"content":"yes"}}]}"#;
    for reply in [Reply::json(200, body), Reply::stream(body)] {
        let server = Server::start([reply]).await;
        let (call, deltas) = streamed();
        assert_eq!(
            client(&server).build().unwrap().chat(call).await.unwrap(),
            from_openai(ChatResponse::text("yes"))
        );
        assert_eq!(*deltas.lock().unwrap(), ["text yes"]);
    }
}

const FIRST_WORD: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"so\"}}]}\n\n";
const LAST_WORD: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

#[tokio::test]
async fn a_stream_that_breaks_off_is_tried_again_after_a_reset() {
    let error = "data: {\"error\":{\"message\":\"provider gone\",\"code\":502}}\n\n";
    for broken in [FIRST_WORD.to_owned(), FIRST_WORD.to_owned() + error] {
        let server = Server::start([
            Reply::stream(&broken),
            Reply::stream(&format!("{FIRST_WORD}{LAST_WORD}")),
        ])
        .await;
        let (call, deltas) = streamed();
        let mut client = client(&server).max_attempts(2);
        client.connection.retry.random = || 0.0;
        assert_eq!(
            client.build().unwrap().chat(call).await.unwrap(),
            from_openai(ChatResponse::text("so"))
        );
        assert_eq!(*deltas.lock().unwrap(), ["text so", "reset", "text so"]);
    }
}

#[tokio::test]
async fn a_stream_that_stays_broken_is_an_error() {
    let server = Server::start([Reply::stream(FIRST_WORD), Reply::stream("")]).await;
    let mut client = client(&server).max_attempts(2);
    client.connection.retry.random = || 0.0;
    let error = client.build().unwrap().chat(streamed().0).await.unwrap_err();
    assert_eq!(error.kind(), ChatErrorKind::CutStream);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn an_answer_that_would_come_again_is_not_tried_again() {
    let long = format!("{{{}", " ".repeat(2000));
    let no_credit = r#"{"error":{"message":"no","code":402}}"#;
    for (body, kind) in [
        (long.as_str(), ChatErrorKind::InvalidResponse),
        (no_credit, ChatErrorKind::QuotaExceeded),
    ] {
        let server = Server::start([Reply::json(200, body)]).await;
        let mut client = client(&server).max_attempts(2);
        client.connection.limits.body = 1000;
        assert_eq!(client.build().unwrap().chat(call()).await.unwrap_err().kind(), kind);
    }
}

#[tokio::test]
async fn a_stream_that_pauses_too_long_is_cut() {
    let mut server = Server::start([Reply::stalling_stream(FIRST_WORD)]).await;
    let client = client(&server).idle_timeout(Duration::from_millis(20)).build().unwrap();
    let error = client.chat(streamed().0).await.unwrap_err();
    assert_eq!(error.kind(), ChatErrorKind::CutStream);
    server.client_gone().await;
}

/// Asks with one retry, when the server first answers `status` with these header lines.
async fn retried(status: u16, headers: &str) -> Result<String, (ChatErrorKind, Option<Duration>)> {
    let refused = Reply::new(status, headers, r#"{"error":"no"}"#);
    let server = Server::start([
        refused,
        Reply::json(200, r#"{"choices":[{"message":{"content":"yes"}}]}"#),
    ])
    .await;
    let mut client = client(&server).max_attempts(2).timeout(Duration::from_secs(20));
    client.connection.retry.random = || 0.0;
    let answer = client.build().unwrap().chat(call()).await;
    answer
        .map(|answer| answer.text)
        .map_err(|error| (error.kind(), error.retry_after()))
}

#[tokio::test]
async fn a_refusal_that_may_pass_is_tried_again_as_the_server_asks() {
    use ChatErrorKind::*;
    let yes = Ok("yes".to_owned());
    assert_eq!(retried(500, "").await, yes);
    assert_eq!(retried(429, "retry-after-ms: 1\r\n").await, yes);
    assert_eq!(
        retried(429, "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n").await,
        yes
    );
    assert_eq!(retried(400, "x-should-retry: true\r\n").await, yes);
    assert_eq!(retried(401, "").await, Err((Auth, None)));
    assert_eq!(retried(400, "").await, Err((InvalidRequest, None)));
    assert_eq!(retried(500, "x-should-retry: false\r\n").await, Err((Overloaded, None)));
    // The wait that is asked for, clamped, does not fit into the call's 20 seconds.
    let clamped = Some(Duration::from_secs(30));
    assert_eq!(
        retried(429, "retry-after: 99999999\r\n").await,
        Err((RateLimited, clamped))
    );
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_and_let_go() {
    let mut server = Server::start([Reply::Hang(Vec::new())]).await;
    let client = client(&server)
        .max_attempts(2)
        .timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    let error = client.chat(call()).await.unwrap_err();
    assert_eq!(error.kind(), ChatErrorKind::TimedOut);
    assert!(
        error
            .to_string()
            .contains("none within the client's time limit of 300ms"),
        "{error}"
    );
    server.client_gone().await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn the_deadline_of_the_work_ends_a_call() {
    let mut server = Server::start([Reply::Hang(Vec::new())]).await;
    let client = client(&server).build().unwrap();
    let deadline = Instant::now() + Duration::from_millis(300);
    let cx = CallContext::new("s").with_deadline(deadline);
    let late = call().with_context(cx);
    for _ in 0..2 {
        let error = client.chat(late.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ChatErrorKind::TimedOut);
        assert!(
            error.to_string().ends_with(": none before the deadline of the work"),
            "{error}"
        );
    }
    server.client_gone().await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_cancelled_call_lets_the_server_go() {
    for is_streamed in [false, true] {
        let mut server = Server::start([Reply::stalling_stream(FIRST_WORD)]).await;
        let client = client(&server).build().unwrap();
        let cancellation = CancellationToken::new();
        let (streamed, deltas) = streamed();
        let call = (if is_streamed { streamed } else { call() })
            .with_context(CallContext::new("s").with_cancellation(cancellation.clone()));
        let asking = tokio::spawn(async move { client.chat(call).await });
        while server.requests().is_empty() || (is_streamed && deltas.lock().unwrap().is_empty()) {
            tokio::task::yield_now().await;
        }
        cancellation.cancel();
        assert_eq!(asking.await.unwrap().unwrap_err().kind(), ChatErrorKind::Cancelled);
        server.client_gone().await;
    }
}

#[tokio::test]
async fn a_supervised_call_is_ended_by_its_caller_or_by_the_clients_own_limit() {
    let mut server = Server::start([Reply::stalling_stream(FIRST_WORD)]).await;
    let cancellation = CancellationToken::new();
    cancellation.cancel();
    let call = |limit| {
        let cx = CallContext::new("s").with_cancellation(cancellation.clone());
        call()
            .with_context(cx.with_deadline(Instant::now() + limit))
            .with_supervision(true)
    };
    let asking = client(&server).build().unwrap();
    let asked = call(Duration::from_secs(60));
    let asking = tokio::spawn(async move { asking.chat(asked).await });
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    // It has not ended by itself, though its context is cancelled.
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    server.client_gone().await;

    let short = client(&server).timeout(Duration::from_millis(50)).build().unwrap();
    let error = short.chat(call(Duration::from_secs(3600))).await.unwrap_err();
    assert_eq!(error.kind(), ChatErrorKind::Cancelled);
}

#[tokio::test]
async fn a_wait_before_a_retry_can_be_cancelled() {
    let server = Server::start([Reply::new(429, "retry-after: 20\r\n", "")]).await;
    let client = client(&server).max_attempts(2).build().unwrap();
    let cancellation = CancellationToken::new();
    let call = call().with_context(CallContext::new("s").with_cancellation(cancellation.clone()));
    let asking = tokio::spawn(async move { client.chat(call).await });
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    cancellation.cancel();
    assert_eq!(asking.await.unwrap().unwrap_err().kind(), ChatErrorKind::Cancelled);
}

#[test]
fn a_provider_is_known_by_its_host() {
    let check = |endpoint: &str, expected: &str| {
        let client = OpenAiChat::builder(endpoint, "m").build().unwrap();
        assert_eq!(
            client.describe(ModelTier::Low).provider.as_deref(),
            Some(expected),
            "{endpoint}"
        );
    };
    check("https://api.openai.com/v1", "openai");
    check("https://mine.openai.azure.com/openai/v1", "azure.ai.openai");
    check("https://openrouter.ai/api/v1", "openrouter");
    check("https://api.x.ai/v1", "x_ai");
    // Only their language is known.
    check("https://notx.ai/v1", "openai");
    check("http://localhost:11434/v1", "openai");
}

#[tokio::test]
async fn a_secret_header_is_sent_and_never_shown() {
    let body = format!(r#"{{"error":{{"message":"bad key {KEY}"}}}}"#);
    let server = Server::start([Reply::json(401, &body)]).await;
    let client = OpenAiChat::builder(server.endpoint(), "m")
        .secret_header("api-key", Secret::from(KEY))
        .build()
        .unwrap();
    let error = client.chat(call()).await.unwrap_err();
    let request = server.requests().remove(0);
    assert!(request.contains(&format!("\r\napi-key: {KEY}\r\n")), "{request}");
    let message = error.to_string();
    assert!(
        message.contains("refused the key (status 401): bad key [redacted]"),
        "{message}"
    );
    assert!(!format!("{error:?} {client:?}").contains(KEY));
}

#[tokio::test]
async fn the_wait_that_a_server_asks_for_is_bounded() {
    let answer = Reply::json(200, r#"{"choices":[{"message":{"content":"yes"}}]}"#);
    let server = Server::start([Reply::new(429, "retry-after: 3600\r\n", ""), answer]).await;
    let client = client(&server)
        .max_attempts(2)
        .max_retry_after(Duration::from_millis(1))
        .build()
        .unwrap();
    assert_eq!(client.chat(call()).await.unwrap().text, "yes");
}
