//! The turn probe: two small questions to a model, in the shape that the requests of a turn have.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatErrorKind, ChatMessage, ChatRequest, ChatResponse, Provenance, Role, ToolCall,
};
use rockbot_core::tool::{
    InMemoryToolRegistry, Owner, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse,
    ToolRegistration, ToolRegistry, ToolView,
};
use serde_json::json;
use tokio::time::timeout;

/// Time limit of the whole probe: a local server may first load its model.
const LIMIT: Duration = Duration::from_secs(120);

/// The result of asking a model in the shape of a turn's requests.
#[derive(Debug)]
#[non_exhaustive]
pub enum TurnCheck {
    /// The server accepts the requests, and the model calls the tool.
    Ready,
    /// The server accepts the requests, but the model answered without a call that the server could
    /// read.
    NoCall,
    /// The server refuses tools; without them it accepts the request.
    RefusesTools(ChatError),
    /// The server refuses the host's instructions, which are a system message; without them it
    /// accepts the request.
    RefusesInstructions(ChatError),
    /// The server refuses a conversation with a call and its result.
    RefusesResults(ChatError),
    /// The model cannot be asked at all. The error says why, and names the remedy.
    Failed(ChatError),
}

impl TurnCheck {
    /// Returns `true` if turns with tools fail on this model.
    pub fn is_problem(&self) -> bool {
        !matches!(self, Self::Ready | Self::NoCall)
    }

    /// Returns `true` if turns may do less than they could.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::NoCall)
    }
}

impl fmt::Display for TurnCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("a turn's requests are accepted, and the model calls tools"),
            Self::NoCall => f.write_str(
                "a turn's requests are accepted, but the model called no tool when asked to; if it calls none in the \
                 chat either, set `UseTextBasedToolCalling` for it",
            ),
            Self::RefusesTools(error) => write!(f, "requests with tools are refused, others are not: {error}"),
            Self::RefusesInstructions(error) => {
                write!(f, "requests with a system message are refused, others are not: {error}")
            }
            Self::RefusesResults(error) => write!(f, "requests with a tool's result are refused: {error}"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// Asks a model two small questions in the shape of a turn's requests: instructions, a tool, the
/// host's words beside the user's; then the call, its result, and the host's words behind it.
///
/// If a server refuses the questions, it is asked again without tools, then without instructions,
/// to tell which of the two it refuses. It costs a few hundred tokens, takes two minutes at most,
/// and calls no real tool. Wrap `client` as the host would, for a model that calls tools in text.
pub async fn probe_turn(client: &dyn ChatClient) -> TurnCheck {
    timeout(LIMIT, probe(client)).await.unwrap_or_else(|_| {
        let why = format!(
            "the model did not answer within {} seconds; check its server",
            LIMIT.as_secs()
        );
        TurnCheck::Failed(ChatError::new(ChatErrorKind::TimedOut, why))
    })
}

async fn probe(client: &dyn ChatClient) -> TurnCheck {
    let tools = tools();
    let begin = [
        ChatMessage::system(INSTRUCTIONS),
        note(TIME),
        ChatMessage::user(QUESTION),
    ];
    let answer = match ask(client, &begin, &tools).await {
        Ok(answer) => answer,
        Err(error) if is_refusal(&error) => return diagnose(client, error, &tools).await,
        Err(error) => return TurnCheck::Failed(error),
    };
    let is_call = !answer.tool_calls.is_empty();
    let calls = if is_call {
        answer.to_message()
    } else {
        ChatMessage::calls("", vec![call()])
    };
    let results = calls
        .tool_calls
        .iter()
        .map(|call| ChatMessage::tool(call.id.clone(), RESULT));
    let results: Vec<_> = results.collect();
    let next: Vec<_> = begin
        .into_iter()
        .chain([calls])
        .chain(results)
        .chain([note(REMINDER)])
        .collect();
    match ask(client, &next, &tools).await {
        Err(error) if is_refusal(&error) => TurnCheck::RefusesResults(error),
        Err(error) => TurnCheck::Failed(error),
        Ok(_) if is_call => TurnCheck::Ready,
        Ok(_) => TurnCheck::NoCall,
    }
}

/// Asks again without tools, then without instructions, to tell which of them the server refused
/// with `error`.
async fn diagnose(client: &dyn ChatClient, error: ChatError, tools: &ToolView) -> TurnCheck {
    let instructions = || ChatMessage::system(INSTRUCTIONS);
    let question = || ChatMessage::user(QUESTION);
    if ask(client, &[instructions(), question()], &ToolView::default())
        .await
        .is_ok()
    {
        return TurnCheck::RefusesTools(error);
    }
    if ask(client, &[question()], tools).await.is_ok() {
        return TurnCheck::RefusesInstructions(error);
    }
    TurnCheck::Failed(error)
}

async fn ask(client: &dyn ChatClient, messages: &[ChatMessage], tools: &ToolView) -> Result<ChatResponse, ChatError> {
    let request = ChatRequest::new(messages.iter().cloned()).with_tools(tools.clone());
    client.chat(ChatCall::new(request, CallContext::new("probe"))).await
}

/// Returns `true` if the form of a request may be the reason of `error`.
fn is_refusal(error: &ChatError) -> bool {
    matches!(
        error.kind(),
        ChatErrorKind::InvalidRequest | ChatErrorKind::NotFound | ChatErrorKind::Overloaded
    )
}

const INSTRUCTIONS: &str = "You are a helpful assistant. Use your tools when they help. Answer briefly.";
const TIME: &str = "It is Monday, 1 June 2026, 12:00 +00:00 (UTC)";
const QUESTION: &str = "Look up the word `rock` with your tool, and say whether it is there.";
const RESULT: &str = "It is there.";
const REMINDER: &str = "Answer in one short sentence.";
const TOOL: &str = "look_up";

fn note(text: &str) -> ChatMessage {
    ChatMessage::new(Role::User, text.to_owned(), Provenance::HOST)
}

fn call() -> ToolCall {
    // Nine letters and digits: the templates of some models insist on that.
    ToolCall::new("probe0001", TOOL, r#"{"word":"rock"}"#)
}

fn tools() -> ToolView {
    let schema = json!({
        "type": "object",
        "properties": {
            "word": {"type": "string", "description": "The word to look up."},
            "limit": {"type": ["integer", "null"], "description": "Maximum number of hits."},
        },
        "required": ["word"],
    });
    let registration = ToolRegistration::new(TOOL, "Looks up a word in the dictionary.", schema);
    let registry = InMemoryToolRegistry::new();
    let registered = registry.register(&Owner::new("probe"), Tool::new(registration, NeverRuns));
    // A tool of our own with a valid name and schema.
    registered
        .map(|()| registry.snapshot().view().clone())
        .unwrap_or_default()
}

/// The executor of the probe's tool, whose calls are never executed.
#[derive(Debug)]
struct NeverRuns;

#[async_trait]
impl ToolExecutor for NeverRuns {
    async fn execute(&self, _: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        Err(ToolError::execution_failed("the tool of a probe is not executed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Reply, Server};
    use crate::openai::OpenAiChat;

    const CALL: &str = r#"{"content":null,"tool_calls":[{"id":"abcdefgh1","type":"function","function":{"name":"look_up","arguments":"{\"word\":\"rock\"}"}}]}"#;
    const WORDS: &str = r#"{"content":"It is there."}"#;

    fn says(message: &str) -> Reply {
        Reply::json(
            200,
            &format!(r#"{{"choices":[{{"finish_reason":"stop","message":{message}}}]}}"#),
        )
    }

    fn refuses(status: u16, why: &str) -> Reply {
        Reply::json(
            status,
            &format!(r#"{{"error":{{"message":"{why}","type":"invalid_request_error"}}}}"#),
        )
    }

    /// Probes a server that answers each request as `answer` says; returns what was found and the
    /// bodies.
    async fn check(mut answer: impl FnMut(&str) -> Reply + Send + 'static) -> (String, Vec<String>) {
        let server = Server::answering(move |request| std::future::ready(answer(&request))).await;
        let client = OpenAiChat::builder(server.endpoint(), "m").build().unwrap();
        let found = probe_turn(&client)
            .await
            .to_string()
            .replace(&server.endpoint(), "SERVER");
        let bodies = server.requests().into_iter();
        let body = |request: String| request.split_once("\r\n\r\n").unwrap().1.to_owned();
        (found, bodies.map(body).collect())
    }

    #[tokio::test]
    async fn a_server_gets_the_requests_of_a_turn() {
        let answer = |request: &str| {
            says(if request.contains(r#""role":"tool""#) {
                WORDS
            } else {
                CALL
            })
        };
        let (found, bodies) = check(answer).await;
        assert_eq!(found, "a turn's requests are accepted, and the model calls tools");
        let [first, second] = bodies.as_slice() else {
            panic!("{bodies:?}")
        };
        let roles = |body: &str| {
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            let messages = body["messages"].as_array().unwrap().iter();
            messages
                .map(|message| message["role"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            (roles(first), roles(second)),
            ("system user".into(), "system user assistant tool".into())
        );
        for body in [first, second] {
            assert!(
                body.contains("[Note ") && body.contains(r#""name":"look_up""#),
                "{body}"
            );
        }
        assert!(second.contains(RESULT) && second.contains(REMINDER), "{second}");
    }

    #[tokio::test]
    async fn a_model_that_calls_nothing_is_a_warning() {
        let server = Server::answering(|_| std::future::ready(says(WORDS))).await;
        let client = OpenAiChat::builder(server.endpoint(), "m").build().unwrap();
        let found = probe_turn(&client).await;
        assert!(found.is_warning() && !found.is_problem(), "{found}");
    }

    #[tokio::test]
    async fn what_a_server_refuses_is_told_with_what_to_do() {
        let no_tools = |request: &str| {
            if request.contains(r#""tools":"#) {
                refuses(400, "registry.ollama.ai/library/m does not support tools")
            } else {
                says(WORDS)
            }
        };
        assert_eq!(
            check(no_tools).await.0,
            "requests with tools are refused, others are not: `SERVER` refused the request (status 400): \
             registry.ollama.ai/library/m does not support tools; set `UseTextBasedToolCalling` for this model, whose \
             chat template knows no tools"
        );
        let no_system = |request: &str| {
            if request.contains(r#""role":"system""#) {
                refuses(400, "System role not supported")
            } else {
                says(WORDS)
            }
        };
        assert_eq!(
            check(no_system).await.0,
            "requests with a system message are refused, others are not: `SERVER` refused the request (status 400): \
             System role not supported; start its server with a chat template that knows the system's role"
        );
        let no_results = |request: &str| {
            if request.contains(r#""role":"tool""#) {
                refuses(500, "Jinja Exception: Unexpected role")
            } else {
                says(CALL)
            }
        };
        assert_eq!(
            check(no_results).await.0,
            "requests with a tool's result are refused: `SERVER` refused the request (status 500): Jinja Exception: \
             Unexpected role; start its server with another chat template"
        );
    }

    #[tokio::test]
    async fn a_server_that_cannot_parse_its_model_is_asked_once() {
        let why = "The model produced output that does not match the expected peg-native format";
        let (found, bodies) = check(move |_| refuses(500, why)).await;
        assert!(
            found.ends_with(
                "set `UseTextBasedToolCalling` for this model, or start its server with another chat template"
            ),
            "{found}"
        );
        assert_eq!(bodies.len(), 1);
    }
}
