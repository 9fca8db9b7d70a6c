//! The conformance suite of [`ChatClient`].

use std::sync::{Arc, Mutex};

use crate::CallContext;
use crate::chat::{ChatCall, ChatClient, ChatDelta, ChatRequest, ChatResponse, DeltaSink, Reasoning};

/// Checks that the values that `make` creates keep the contract of [`ChatClient`] while it answers `request`.
///
/// The client must be able to answer: with a model, a recorded server or a script behind it.
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn chat_client<C: ChatClient>(make: impl AsyncFn() -> C, request: ChatRequest) {
    let request = Arc::new(request);
    answers_without_a_listener(&make().await, &request).await;
    hands_out_pieces_that_add_up_to_the_answer(&make().await, &request).await;
}

async fn answers_without_a_listener(client: &impl ChatClient, request: &Arc<ChatRequest>) {
    let response = ask(client, request, None).await;
    assert!(
        !response.text.is_empty() || !response.tool_calls.is_empty(),
        "an answer has text or tool calls"
    );
}

async fn hands_out_pieces_that_add_up_to_the_answer(client: &impl ChatClient, request: &Arc<ChatRequest>) {
    let pieces = Arc::new(Mutex::new(Pieces::default()));
    let sink = DeltaSink::new({
        let pieces = pieces.clone();
        move |delta| pieces.lock().expect("no receiver panics").add(&delta)
    });
    let response = ask(client, request, Some(sink)).await;
    let expected = Pieces {
        text: response.text,
        reasoning: response
            .reasoning
            .map_or_else(String::new, |Reasoning { text, .. }| text),
        calls: response
            .tool_calls
            .iter()
            .map(|call| format!("{} {}", call.id, call.name))
            .collect(),
    };
    let pieces = pieces.lock().expect("no receiver panics");
    assert_eq!(
        *pieces, expected,
        "the pieces since the last reset add up to the answer"
    );
}

/// Text that was streamed since the last reset.
#[derive(Debug, Default, PartialEq)]
struct Pieces {
    text: String,
    reasoning: String,
    calls: Vec<String>,
}

impl Pieces {
    fn add(&mut self, delta: &ChatDelta<'_>) {
        match delta {
            ChatDelta::Text(text) => self.text.push_str(text),
            ChatDelta::Reasoning(text) => self.reasoning.push_str(text),
            ChatDelta::ToolCall { call, tool } => self.calls.push(format!("{call} {tool}")),
            ChatDelta::Reset => *self = Self::default(),
        }
    }
}

async fn ask(client: &impl ChatClient, request: &Arc<ChatRequest>, deltas: Option<DeltaSink>) -> ChatResponse {
    let call = ChatCall::new(request.clone(), CallContext::new("session")).with_deltas(deltas);
    let answered = client.chat(call).await;
    answered.expect("the client can answer the request of the suite")
}
