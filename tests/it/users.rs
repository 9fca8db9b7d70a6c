//! People who write to the agent over a bus: one final reply to each message, whatever becomes of it.

use std::sync::Arc;

use rockbot::testing::ScriptedModel;
use rockbot_core::messaging::{Bus, Delivery, Disposition, MessageEnvelope, MessageSubscriberExt, headers};
use rockbot_core::user::{AgentReply, UserMessage, UserProxy};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{AgentHost, AgentHostBuilder};

fn serving(model: &ScriptedModel, bus: &InProcessBus) -> AgentHostBuilder {
    AgentHost::builder("clerk")
        .chat(model.clone())
        .bus(bus.clone())
        .serve_users()
}

fn proxy(bus: &InProcessBus) -> UserProxy {
    let bus: Arc<dyn Bus> = Arc::new(bus.clone());
    UserProxy::new(bus, "test")
}

fn says(content: &str) -> AgentReply {
    AgentReply {
        content: content.to_owned(),
        session_id: "s".into(),
        agent_name: "clerk".to_owned(),
        is_final: true,
        structured_data: None,
        content_type: None,
    }
}

#[tokio::test]
async fn a_message_gets_its_reply() {
    let (model, bus) = (ScriptedModel::new().says("Hello."), InProcessBus::new());
    let host = serving(&model, &bus).build().unwrap();
    host.start().await.unwrap();
    assert_eq!(proxy(&bus).send("s", "Hi!").await.unwrap(), says("Hello."));
}

#[tokio::test]
async fn an_envelope_of_ones_own_keeps_its_id_and_its_headers() {
    let (model, bus) = (ScriptedModel::new().says("Hello."), InProcessBus::new());
    let host = serving(&model, &bus).build().unwrap();
    host.start().await.unwrap();
    let (sender, mut seen) = tokio::sync::mpsc::channel(1);
    let spy = move |delivery: Delivery| {
        sender.try_send(delivery.envelope).unwrap();
        async { Disposition::Ack }
    };
    let _spy = bus.on("user.message", "spy", spy).await.unwrap();

    let message = MessageEnvelope::of(&UserMessage::new("s", "Hi!")).unwrap();
    let message = message.with_id("m1").with_header(headers::PRINCIPAL, "ada");
    let reply = proxy(&bus).send_envelope(message.clone(), |_| {}).await.unwrap();
    assert_eq!(reply, says("Hello."));

    let sent = seen.recv().await.unwrap();
    let expected = MessageEnvelope {
        source: "test".into(),
        correlation_id: sent.correlation_id.clone(),
        reply_to: sent.reply_to.clone(),
        ..message
    };
    assert_eq!(*sent, expected);
}
