//! Requests: conversations of every shape that a host makes, and all settings. A strict server
//! refuses none of them.

use rockbot_core::CallContext;
use rockbot_core::chat::{
    ChatCall, ChatMessage, ChatRequest, ContextReason, ModelSettings, ReasoningEffort, ToolCall, ToolChoice,
};
use rockbot_core::content::{Content, MediaPart};

use super::{WIRES, WORDS, request};
use crate::fixture::{Reply, Server};

fn user(text: &str) -> ChatMessage {
    ChatMessage::user(text)
}

fn answer(text: &str) -> ChatMessage {
    ChatMessage::assistant(text)
}

/// Creates an answer with calls of these ids.
fn calls(text: &str, ids: &[&str]) -> ChatMessage {
    let calls = ids.iter().map(|id| ToolCall::new(*id, "add", r#"{"_x":1}"#));
    ChatMessage::calls(text, calls.collect())
}

fn result(id: &str) -> ChatMessage {
    ChatMessage::tool(id.into(), "2")
}

fn note(text: &str) -> ChatMessage {
    user(text).because(ContextReason::Policy)
}

/// Conversations, by name. Each is followed by a question.
fn conversations() -> Vec<(&'static str, Vec<ChatMessage>)> {
    let image = MediaPart::bytes("image/png", vec![1, 2, 3]);
    vec![
        ("nothing before", vec![]),
        ("a system message", vec![ChatMessage::system("Be brief.")]),
        (
            "system messages",
            vec![ChatMessage::system("Be brief."), ChatMessage::system("Be kind.")],
        ),
        (
            "a late system message",
            vec![user("a"), answer("b"), ChatMessage::system("Be brief.")],
        ),
        ("an exchange", vec![user("a"), answer("b")]),
        ("neighbouring questions", vec![user("a"), user("b")]),
        ("neighbouring answers", vec![user("a"), answer("b"), answer("c")]),
        (
            "neighbouring answers, the second with a call",
            vec![user("a"), answer("b"), calls("c", &["toolu_1"]), result("toolu_1")],
        ),
        (
            "an empty question between answers",
            vec![user("a"), answer("b"), user(" "), answer("c")],
        ),
        (
            "a system message between answers",
            vec![user("a"), answer("b"), ChatMessage::system("Be brief."), answer("c")],
        ),
        (
            "an answer, then calls alone",
            vec![user("a"), answer("b"), calls("", &["toolu_1"]), result("toolu_1")],
        ),
        ("an answer first", vec![answer("a")]),
        ("an empty answer", vec![user("a"), answer("")]),
        ("an answer of blanks", vec![user("a"), answer(" \n")]),
        ("an empty question", vec![user(""), answer("b")]),
        ("a host's message", vec![user("a"), answer("b"), note("It is noon.")]),
        (
            "host's messages among questions",
            vec![note("It is noon."), user("a"), note("It is one."), user("b")],
        ),
        ("a call", vec![user("a"), calls("", &["toolu_1"]), result("toolu_1")]),
        (
            "a call with words",
            vec![user("a"), calls("b", &["toolu_1"]), result("toolu_1"), answer("c")],
        ),
        (
            "parallel calls",
            vec![
                user("a"),
                calls("", &["toolu_1", "toolu_2"]),
                result("toolu_1"),
                result("toolu_2"),
            ],
        ),
        (
            "results in another order",
            vec![
                user("a"),
                calls("", &["toolu_1", "toolu_2"]),
                result("toolu_2"),
                result("toolu_1"),
            ],
        ),
        (
            "rounds of calls",
            vec![
                user("a"),
                calls("", &["toolu_1"]),
                result("toolu_1"),
                calls("", &["toolu_2"]),
                result("toolu_2"),
            ],
        ),
        ("a call without its result", vec![user("a"), calls("b", &["toolu_1"])]),
        (
            "one of two calls without its result",
            vec![user("a"), calls("", &["toolu_1", "toolu_2"]), result("toolu_1")],
        ),
        (
            "a result without its call",
            vec![user("a"), result("toolu_1"), answer("b")],
        ),
        (
            "a question between a call and its result",
            vec![user("a"), calls("", &["toolu_1"]), user("b"), result("toolu_1")],
        ),
        (
            "a failed call",
            vec![user("a"), calls("", &["toolu_1"]), result("toolu_1").with_error(true)],
        ),
        (
            "an empty result",
            vec![
                user("a"),
                calls("", &["toolu_1"]),
                ChatMessage::tool("toolu_1".into(), ""),
            ],
        ),
        (
            "an image",
            vec![
                user("a"),
                ChatMessage::user(Content::from("b").with_image(image.clone())),
            ],
        ),
        (
            "an image alone",
            vec![
                ChatMessage::user(Content::from("").with_image(image.clone())),
                answer("b"),
            ],
        ),
        (
            "an image of a tool",
            vec![
                user("a"),
                calls("", &["toolu_1"]),
                ChatMessage::tool("toolu_1".into(), Content::from("b").with_image(image)),
            ],
        ),
    ]
}

/// Settings, by name.
fn settings() -> Vec<(&'static str, ModelSettings)> {
    let new = ModelSettings::new;
    vec![
        ("none", new()),
        ("a temperature", new().with_temperature(0.5)),
        ("a high temperature", new().with_temperature(1.8)),
        ("a top_p", new().with_top_p(0.5)),
        ("a temperature and a top_p", new().with_temperature(0.5).with_top_p(0.5)),
        ("little output", new().with_max_output_tokens(1)),
        ("reasoning", new().with_reasoning_effort(ReasoningEffort::High)),
        (
            "reasoning with a temperature and a top_p",
            new()
                .with_reasoning_effort(ReasoningEffort::Low)
                .with_temperature(0.5)
                .with_top_p(0.5),
        ),
        (
            "reasoning with little output",
            new()
                .with_reasoning_effort(ReasoningEffort::High)
                .with_max_output_tokens(100),
        ),
        ("no reasoning", new().with_reasoning_effort(ReasoningEffort::None)),
        ("stop sequences", new().with_stop_sequences(["END", "STOP"])),
        ("a forced call", new().with_tool_choice(ToolChoice::Required)),
        (
            "a forced call with reasoning",
            new()
                .with_tool_choice(ToolChoice::Required)
                .with_reasoning_effort(ReasoningEffort::Low),
        ),
        (
            "a call of one tool",
            new().with_tool_choice(ToolChoice::Tool("add".into())),
        ),
        ("no calls", new().with_tool_choice(ToolChoice::None)),
        ("one call at a time", new().with_parallel_tool_calls(false)),
    ]
}

/// Sends `request` in each dialect, and checks that no server refuses it.
async fn check(name: &str, request: &ChatRequest) {
    for wire in WIRES {
        let server = Server::start([Reply::json(200, &wire.whole(&WORDS))]).await;
        let call = ChatCall::new(request.clone(), CallContext::new("s"));
        let answer = wire.client(&server.endpoint(), &|_| {}).chat(call).await;
        assert!(answer.is_ok(), "{} {name}: {answer:?}", wire.name());
        let sent = server.requests().remove(0);
        assert_eq!(wire.refusal(&sent), None, "{} {name}: {sent}", wire.name());
    }
}

#[tokio::test]
async fn no_conversation_is_refused() {
    let tools = request().tools;
    for (name, mut messages) in conversations() {
        messages.push(user("And now?"));
        check(name, &ChatRequest::new(messages).with_tools(tools.clone())).await;
    }
}

#[tokio::test]
async fn no_settings_are_refused() {
    for (name, settings) in settings() {
        check(name, &request().with_settings(settings)).await;
    }
}

#[tokio::test]
async fn settings_of_calls_are_left_out_without_tools() {
    for (name, settings) in settings() {
        let request = ChatRequest::new([user("hi")]).with_settings(settings);
        check(name, &request).await;
    }
}
