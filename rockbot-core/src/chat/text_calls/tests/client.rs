//! What a model is told that is asked through the client.

use crate::CallContext;
use crate::chat::text_calls::TextCallingClient;
use crate::chat::{ChatCall, ChatClient, ChatMessage, ChatRequest, ChatResponse, ToolCall};
use crate::testing::ScriptedModel;

#[tokio::test]
async fn a_result_has_the_name_of_the_call_before_it() {
    let called = |tool: &str| {
        let call = ToolCall {
            id: "text_1".into(),
            name: tool.into(),
            arguments: "{}".into(),
        };
        ChatResponse::calls([call]).to_message()
    };
    let request = ChatRequest::new([
        called("look"),
        ChatMessage::tool("text_1".into(), "a chair"),
        called("listen"),
        ChatMessage::tool("text_1".into(), "a hum"),
    ]);
    let model = ScriptedModel::new().says("It hums.");
    let call = ChatCall {
        request: request.into(),
        deltas: None,
        cx: CallContext::new("s"),
    };
    TextCallingClient::new(model.clone()).chat(call).await.unwrap();
    let texts = model.requests()[0]
        .messages
        .iter()
        .map(|message| message.text().into_owned())
        .collect::<Vec<_>>();
    assert_eq!(texts[1], "[Tool result for look]: a chair");
    assert_eq!(texts[3], "[Tool result for listen]: a hum");
}
