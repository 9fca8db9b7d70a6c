//! A table of scenarios that the clients of all dialects pass: a dialect states only how its
//! server writes an answer.

mod answers;
mod anthropic;
mod failures;
mod openai;
mod requests;
mod responses;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rockbot_core::chat::{
    ChatCall, ChatClient, ChatDelta, ChatMessage, ChatRequest, DeltaSink, FinishReason, ToolCall,
};
use rockbot_core::testing::conformance::{self, ChatScene};
use rockbot_core::tool::{InMemoryToolRegistry, Owner, ToolRegistry, tool};
use rockbot_core::{CallContext, IdSource};

use self::anthropic::Anthropic;
use self::openai::OpenAi;
use self::responses::Responses;
use crate::fixture::{Reply, Server};
use crate::http::ConnectionOptions;

/// An answer that a server gives, before a dialect writes it.
struct Script {
    thought: &'static [&'static str],
    text: &'static [&'static str],
    calls: &'static [ScriptedCall],
    finish: FinishReason,
    /// Tokens of the whole input, of its cached part, and of the output.
    usage: Option<[u64; 3]>,
}

struct ScriptedCall {
    id: &'static str,
    name: &'static str,
    /// Pieces of the arguments.
    arguments: &'static [&'static str],
}

const EMPTY: Script = Script {
    thought: &[],
    text: &[],
    calls: &[],
    finish: FinishReason::Stop,
    usage: None,
};

const WORDS: Script = Script {
    text: &["so ", "it ", "is"],
    ..EMPTY
};

/// A problem that a server reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    Overloaded,
    RateLimited,
    TooLong,
    TooLarge,
    Invalid,
    WrongKey,
    Forbidden,
    NoCredit,
    UnknownModel,
    TookTooLong,
    Broken,
}

/// A dialect, as its servers speak it.
trait Wire: Sync {
    fn name(&self) -> &'static str;

    /// Returns the name of the provider in answers.
    fn provider(&self) -> &'static str {
        self.name()
    }

    /// Creates a client of one attempt, whose options `change` may change.
    fn client(&self, endpoint: &str, change: &dyn Fn(&mut ConnectionOptions)) -> Arc<dyn ChatClient>;

    /// Writes a whole answer.
    fn whole(&self, script: &Script) -> String;

    /// Writes the events of a streamed answer.
    fn events(&self, script: &Script) -> Vec<String>;

    /// Writes an error, with its status.
    fn error(&self, problem: Problem) -> (u16, String);

    /// Writes an error in the middle of a stream.
    fn error_event(&self, problem: Problem) -> String;

    /// Returns the reason to refuse a request, if a server would.
    fn refusal(&self, request: &str) -> Option<String>;
}

const WIRES: [&dyn Wire; 3] = [&OpenAi, &Anthropic, &Responses];

/// `1`, `2`, …
#[derive(Debug, Default)]
struct Counted(AtomicU32);

impl IdSource for Counted {
    fn next_id(&self) -> String {
        (self.0.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }
}

/// The pieces of an answer that reached a sink, since the last reset.
#[derive(Debug, Default, Clone, PartialEq)]
struct Heard {
    text: String,
    thought: String,
    calls: Vec<String>,
    resets: usize,
}

/// Returns the request of the scenarios: instructions, an exchange with a call, and a question,
/// with a tool.
fn request() -> ChatRequest {
    /// Adds numbers.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Add {
        _x: i64,
    }
    let registry = InMemoryToolRegistry::new();
    let add = tool("add", async |_: Add| "2");
    registry
        .register(&Owner::new("test"), add)
        .expect("the registry is empty");
    let messages = [
        ChatMessage::system("Be brief."),
        ChatMessage::user("1 + 1?"),
        ChatMessage::calls("", vec![ToolCall::new("toolu_z", "add", r#"{"_x":1}"#)]),
        ChatMessage::tool("toolu_z".into(), "2"),
        ChatMessage::assistant("2"),
        ChatMessage::user("hi"),
    ];
    ChatRequest::new(messages).with_tools(registry.snapshot().view().clone())
}

fn call() -> ChatCall {
    ChatCall::new(request(), CallContext::new("s"))
}

#[tokio::test]
async fn every_dialect_keeps_the_promises_of_a_chat_client() {
    for wire in WIRES {
        let make = async |scene| {
            let server = Server::answering(move |raw: String| {
                assert_eq!(wire.refusal(&raw), None, "{}", wire.name());
                let is_streamed = raw.contains(r#""stream":true"#);
                std::future::ready(reply(wire, scene, is_streamed))
            });
            wire.client(&server.await.endpoint(), &|_| {})
        };
        conformance::chat_client(make, request()).await;
    }
}

/// Returns the reply of a server in a scene of the conformance suite.
fn reply(wire: &dyn Wire, scene: ChatScene, is_streamed: bool) -> Reply {
    let script = Script {
        usage: Some([10, 4, 5]),
        ..WORDS
    };
    match scene {
        ChatScene::Answers if is_streamed => Reply::stream(&wire.events(&script).concat()),
        ChatScene::Answers => Reply::json(200, &wire.whole(&script)),
        ChatScene::RateLimited => {
            let (status, body) = wire.error(Problem::RateLimited);
            Reply::json(status, &body)
        }
        ChatScene::CutStream => Reply::stream(&wire.events(&script)[..3].concat()),
        scene => {
            assert_eq!(scene, ChatScene::Hangs);
            Reply::Hang(Vec::new())
        }
    }
}

/// Creates a call that is streamed, and a record of the pieces that its sink hears.
fn streamed() -> (ChatCall, Arc<Mutex<Heard>>) {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let sink = heard.clone();
    let sink = DeltaSink::new(move |delta| {
        let mut heard = sink.lock().unwrap();
        match delta {
            ChatDelta::Text(text) => heard.text.push_str(text),
            ChatDelta::Reasoning(text) => heard.thought.push_str(text),
            ChatDelta::ToolCall { call, .. } => heard.calls.push(call.to_string()),
            _ => {
                let resets = heard.resets + 1;
                *heard = Heard {
                    resets,
                    ..Heard::default()
                };
            }
        }
    });
    let call = call().with_deltas(sink);
    (call, heard)
}
