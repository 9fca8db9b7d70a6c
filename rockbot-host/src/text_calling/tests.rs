//! The requests that a wrapped model receives.

use rockbot_core::CallContext;
use rockbot_core::chat::{ChatCall, ChatClient, ChatMessage, ChatRequest, ChatResponse, Role, ToolCall};
use rockbot_core::context::Trust;
use rockbot_core::testing::{ScriptedModel, conformance};

use super::{TextCallFallback, TextCallingClient};

#[tokio::test]
async fn a_result_has_the_name_of_the_call_before_it() {
    let called = |tool: &str| {
        let call = ToolCall::new("text00001", tool, "{}");
        ChatResponse::calls([call]).to_message()
    };
    let request = ChatRequest::new([
        called("look"),
        ChatMessage::tool("text00001".into(), "a chair"),
        called("listen"),
        ChatMessage::tool("text00001".into(), "a hum"),
    ]);
    let model = ScriptedModel::new().says("It hums.");
    let call = ChatCall::new(request, CallContext::new("s"));
    TextCallingClient::new(model.clone()).chat(call).await.unwrap();
    let texts = model.requests()[0]
        .messages
        .iter()
        .map(|message| message.text().into_owned())
        .collect::<Vec<_>>();
    let provenance = model.requests()[0].messages[1].content.parts()[0].provenance().clone();
    assert_eq!(model.requests()[0].messages[1].role, Role::User);
    assert_eq!((&*provenance.source, provenance.trust), ("tool:look", Trust::Untrusted));
    let asked = "Now answer in plain words, or call another tool if one is needed.";
    assert_eq!(texts[1], format!("[Tool result for look]: a chair\n\n{asked}"));
    assert_eq!(texts[3], format!("[Tool result for listen]: a hum\n\n{asked}"));
}

#[test]
fn it_describes_the_models_of_the_wrapped_client() {
    conformance::chat_wrapper(TextCallingClient::new);
    conformance::chat_wrapper(TextCallFallback::new);
}
