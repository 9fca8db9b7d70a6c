//! People who write to the agent over a bus: one final reply to each message, whatever becomes of it.

use std::sync::Arc;

use rockbot_core::messaging::Bus;
use rockbot_core::testing::ScriptedModel;
use rockbot_core::user::{AgentReply, UserProxy};
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
