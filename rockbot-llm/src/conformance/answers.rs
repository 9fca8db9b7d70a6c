//! Answers: each is delivered whole, streamed, streamed in pieces of a few bytes, which cut
//! events, words and characters, and whole although a stream was asked for.

use rockbot_core::chat::{ChatCall, ChatResponse, FinishReason, Reasoning, ToolCall, Usage};

use super::{EMPTY, Heard, Script, ScriptedCall, WIRES, WORDS, Wire, call, streamed};
use crate::fixture::{Reply, Server};

const ADD: ScriptedCall = ScriptedCall {
    id: "toolu_a",
    name: "add",
    arguments: &["{\"x\":", "1}"],
};

const NOW: ScriptedCall = ScriptedCall {
    id: "toolu_b",
    name: "now",
    arguments: &["{\"zone\":\"", "Europe/Zürich", "\"}"],
};

/// An id that is longer than any provider's.
const LONG_ID: &str = "tool-0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";

const CALLS: Script = Script {
    finish: FinishReason::ToolCalls,
    ..EMPTY
};

/// The scenarios, by name.
#[rustfmt::skip]
const ANSWERS: &[(&str, Script)] = &[
    ("words", WORDS),
    ("one piece", Script { text: &["yes"], ..EMPTY }),
    ("nothing at all", EMPTY),
    ("unicode", Script { text: &["Grüße ", "🙂", "👩\u{200d}👩\u{200d}👧", "é"], ..EMPTY }),
    ("escapes", Script { text: &["\"a\"\\", "\n\t\u{1}</x>", "data: x\r\n\r\n"], ..EMPTY }),
    ("blanks", Script { text: &[" a", "\n", " b "], ..EMPTY }),
    ("one call", Script { calls: &[ADD], ..CALLS }),
    ("parallel calls", Script { calls: &[ADD, NOW], ..CALLS }),
    ("words and a call", Script { text: &["let me ", "see"], calls: &[ADD], ..CALLS }),
    ("a call without arguments", Script { calls: &[ScriptedCall { arguments: &[], ..ADD }], ..CALLS }),
    ("a call with malformed arguments", Script { calls: &[ScriptedCall { arguments: &["{\"x\"", ": so"], ..ADD }], ..CALLS }),
    ("a call with nested arguments", Script { calls: &[ScriptedCall { arguments: &["{\"a\":{\"b\":[1,", "null]}}"], ..ADD }], ..CALLS }),
    ("a call without an id", Script { calls: &[ScriptedCall { id: "", ..ADD }], ..CALLS }),
    ("calls with a number for an id", Script { calls: &[ScriptedCall { id: "0", ..ADD }, ScriptedCall { id: "1", ..NOW }], ..CALLS }),
    ("calls with the same id", Script { calls: &[ADD, ScriptedCall { id: "toolu_a", ..NOW }], ..CALLS }),
    ("calls that end as words do", Script { calls: &[ADD], ..EMPTY }),
    ("thoughts and words", Script { thought: &["h", "m ü"], text: &["yes"], ..EMPTY }),
    ("thoughts and calls", Script { thought: &["hm"], calls: &[ADD, NOW], ..CALLS }),
    ("words that were cut", Script { finish: FinishReason::Length, ..WORDS }),
    ("calls that were cut", Script { text: &["so"], calls: &[ADD], finish: FinishReason::Length, ..EMPTY }),
    ("words that were filtered", Script { finish: FinishReason::ContentFilter, ..WORDS }),
    ("another end", Script { finish: FinishReason::Other, ..WORDS }),
    ("calls that are missing", Script { text: &["so"], ..CALLS }),
    ("usage", Script { usage: Some([9, 0, 5]), ..WORDS }),
    ("cached usage", Script { usage: Some([119, 100, 5]), ..WORDS }),
    ("usage of one token", Script { usage: Some([1, 0, 1]), ..WORDS }),
    ("usage of calls", Script { calls: &[ADD], usage: Some([9, 0, 5]), ..CALLS }),
    ("usage of words that were cut", Script { finish: FinishReason::Length, usage: Some([9, 9, 5]), ..WORDS }),
    ("words that look like JSON", Script { text: &["{\"type\":\"error\"", ",\"error\":1}"], ..EMPTY }),
    ("words that look like events", Script { text: &["event: error\ndata: {}\n\n", "data: [DONE]"], ..EMPTY }),
    ("many pieces", Script { text: &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"], ..EMPTY }),
    ("thoughts alone", Script { thought: &["h", "m"], ..EMPTY }),
    ("thoughts that were cut", Script { thought: &["hm"], finish: FinishReason::Length, ..EMPTY }),
    ("thoughts, words and a call", Script { thought: &["hm"], text: &["let me see"], calls: &[ADD], ..CALLS }),
    ("thoughts with escapes", Script { thought: &["\"\\\n", "\u{1}🙂"], text: &["yes"], ..EMPTY }),
    ("calls of one tool", Script { calls: &[ADD, ScriptedCall { id: "toolu_c", arguments: &["{\"x\":2}"], ..ADD }], ..CALLS }),
    ("three calls", Script { calls: &[ADD, NOW, ScriptedCall { id: "toolu_c", ..ADD }], ..CALLS }),
    ("a call in many pieces", Script { calls: &[ScriptedCall { arguments: &["{", "\"", "x", "\"", ":", "1", "}"], ..ADD }], ..CALLS }),
    ("a call with escapes", Script { calls: &[ScriptedCall { arguments: &["{\"x\":\"a\\n", "\\\"b\"}"], ..ADD }], ..CALLS }),
    ("a call with an id that is too long", Script { calls: &[ScriptedCall { id: LONG_ID, ..ADD }], ..CALLS }),
    ("a call and words that were filtered", Script { calls: &[ADD], finish: FinishReason::ContentFilter, ..WORDS }),
];

/// Returns the answer that every dialect makes of `script`.
fn expected(script: &Script) -> ChatResponse {
    let was_cut = matches!(script.finish, FinishReason::Length | FinishReason::ContentFilter);
    let mut ids: Vec<String> = Vec::new();
    for call in script.calls {
        let is_usable = call.id.starts_with("toolu") && !ids.iter().any(|id| id == call.id);
        let made = ids.iter().filter(|id| id.starts_with("c0")).count() + 1;
        ids.push(if is_usable {
            call.id.into()
        } else {
            format!("c{made:0>8}")
        });
    }
    let calls = script.calls.iter().zip(ids).map(|(call, id)| {
        ToolCall::new(
            id,
            call.name,
            match call.arguments {
                [] => "{}".to_owned(),
                pieces => pieces.concat(),
            },
        )
    });
    let tool_calls: Vec<_> = if was_cut { Vec::new() } else { calls.collect() };
    let text = script.thought.concat();
    ChatResponse::default()
        .with_text(script.text.concat())
        .with_finish(match (script.finish, tool_calls.is_empty()) {
            (FinishReason::ToolCalls, true) => FinishReason::Other,
            (_, false) => FinishReason::ToolCalls,
            (finish, true) => finish,
        })
        .with_tool_calls(tool_calls)
        .with_reasoning((!text.is_empty()).then_some(Reasoning::new(text)))
        .with_usage(
            script
                .usage
                .map(|[input, cached, output]| Usage::new(input, output).with_cached(cached)),
        )
        .with_model("m-1")
        .with_id("answer-1")
}

/// Checks the answer that a client makes of `reply`, but for members that only its dialect has.
async fn check(wire: &dyn Wire, name: &str, script: &Script, reply: Reply, call: ChatCall) {
    let server = Server::start([reply]).await;
    let client = wire.client(&server.endpoint(), &|_| {});
    let mut answer = client
        .chat(call)
        .await
        .unwrap_or_else(|error| panic!("{} {name}: {error}", wire.name()));
    assert_eq!(
        wire.refusal(&server.requests().remove(0)),
        None,
        "{} {name}",
        wire.name()
    );
    assert_eq!(answer.provider.take().as_deref(), Some(wire.provider()));
    if let Some(reasoning) = &mut answer.reasoning {
        reasoning.details = None;
    }
    assert_eq!(answer, expected(script), "{} {name}", wire.name());
}

fn head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec()
}

#[tokio::test]
async fn whole_answers() {
    for wire in WIRES {
        for (name, script) in ANSWERS {
            check(wire, name, script, Reply::json(200, &wire.whole(script)), call()).await;
        }
    }
}

#[tokio::test]
async fn whole_answers_instead_of_streams() {
    for wire in WIRES {
        for (name, script) in ANSWERS {
            let (call, heard) = streamed();
            check(wire, name, script, Reply::json(200, &wire.whole(script)), call).await;
            let heard = heard.lock().unwrap();
            assert_eq!(heard.text, script.text.concat(), "{} {name}", wire.name());
        }
    }
}

#[tokio::test]
async fn streamed_answers() {
    for wire in WIRES {
        for (name, script) in ANSWERS {
            let (call, heard) = streamed();
            check(wire, name, script, Reply::stream(&wire.events(script).concat()), call).await;
            let answer = expected(script);
            let announced = answer.tool_calls.iter().filter(|call| &*call.arguments != "{}");
            let mut heard = heard.lock().unwrap().clone();
            if answer.tool_calls.is_empty() {
                heard.calls.clear();
            }
            let expected = Heard {
                text: answer.text,
                thought: script.thought.concat(),
                calls: announced.map(|call| call.id.to_string()).collect(),
                resets: 0,
            };
            assert_eq!(heard, expected, "{} {name}", wire.name());
        }
    }
}

#[tokio::test]
async fn streams_in_pieces_of_a_few_bytes() {
    for wire in WIRES {
        for (name, script) in ANSWERS {
            let stream = wire.events(script).concat();
            let pieces = [head()]
                .into_iter()
                .chain(stream.as_bytes().chunks(5).map(<[u8]>::to_vec));
            check(wire, name, script, Reply::Pieces(pieces.collect()), streamed().0).await;
        }
    }
}

#[tokio::test]
async fn unknown_events_and_members_are_skipped() {
    for wire in WIRES {
        let noise = [
            ": keep-alive\n\n",
            "event: novelty\ndata: {\"type\":\"novelty\",\"x\":[1]}\n\n",
            "\n",
        ];
        let events = wire.events(&WORDS);
        let stream: String = events
            .iter()
            .map(|event| noise.concat() + &event.replace("{\"", "{\"new\":{},\""))
            .collect();
        let stream = stream.replace("\"new\":{\"new\":{},", "\"new\":{");
        check(wire, "noise", &WORDS, Reply::stream(&stream), streamed().0).await;
    }
}
