//! Whole agents from a configuration alone.

use std::path::Path;

use rockbot::agent::{AgentHost, FromConfig};
use rockbot::config::Config;
use rockbot::store::{ConversationLog, FeedbackStore, LongTermMemory, RulesStore, SkillStore, WorkingMemory};
use serde_json::{Value, json};

use crate::support::model_server::ModelServer;

fn configured(text: &str, data: &Path) -> (AgentHost, Config) {
    let config = Config::new().with_text("agent.toml", text).unwrap();
    let host = AgentHost::configured(&config, data).unwrap().build().unwrap();
    (host, config)
}

fn stores(host: &AgentHost) -> [bool; 6] {
    let parts = host.parts();
    [
        parts.get::<dyn LongTermMemory>().is_some(),
        parts.get::<dyn WorkingMemory>().is_some(),
        parts.get::<dyn SkillStore>().is_some(),
        parts.get::<dyn RulesStore>().is_some(),
        parts.get::<dyn ConversationLog>().is_some(),
        parts.get::<dyn FeedbackStore>().is_some(),
    ]
}

#[tokio::test]
async fn without_a_setting_an_agent_has_memory_and_the_offline_model() {
    let data = tempfile::tempdir().unwrap();
    let (host, config) = configured("", data.path());
    assert_eq!(host.parts().identity().name().as_ref(), "agent");
    assert_eq!(stores(&host), [true, true, true, true, false, true]);
    assert!(host.tools().snapshot().find("save_memory").is_some());
    assert!(host.routing_log().is_none());
    let answer = host.agent().ask("s", "Hello.").await.unwrap();
    assert!(answer.text.contains("offline model"), "{}", answer.text);
    assert_eq!(config.check_unknown().unwrap(), []);
}

#[tokio::test]
async fn a_setting_turns_its_part_on() {
    let server = ModelServer::start(|_: &str, _: &Value| {
        let message = json!({"role": "assistant", "content": "See https://evil.example/x?q=1 for it."});
        let answer = json!({"choices": [{"message": message, "finish_reason": "stop"}]});
        (200, answer.to_string())
    });
    let data = tempfile::tempdir().unwrap();
    let text = format!(
        r#"
        [AgentHost]
        Name = "butler"
        [LLM.Balanced]
        Endpoint = "{0}/v1"
        ModelId = "ordinary"
        [LLM.Low]
        Endpoint = "{0}/v1"
        ModelId = "small"
        [ConversationLog]
        Enabled = true
        [Feedback]
        PollInterval = "00:01:00"
        "#,
        server.endpoint
    );
    let (host, config) = configured(&text, data.path());
    assert_eq!(host.parts().identity().name().as_ref(), "butler");
    assert_eq!(stores(&host), [true; 6]);
    let answer = host.agent().ask("s", "Thanks!").await.unwrap();
    assert!(!answer.text.contains("evil.example/x"), "{}", answer.text);
    assert_eq!(server.requests()[0]["model"], "small");
    let logged = host.routing_log().unwrap().entries().unwrap().len();
    assert_eq!(logged, 1);
    assert_eq!(config.check_unknown().unwrap(), []);
    let conversation = host.agent().conversation("s").export().await.unwrap();
    assert_eq!(conversation.entries.len(), 2);
}

#[test]
fn a_part_is_off_where_its_setting_says_so() {
    let data = tempfile::tempdir().unwrap();
    let text = "[Feedback]\nEnabled = false\nPollInterval = \"00:01:00\"\n[ConversationLog]\nEnabled = false";
    let (host, _) = configured(text, data.path());
    assert!(host.parts().get::<dyn ConversationLog>().is_none());
}

#[test]
fn an_invalid_setting_says_where_it_is() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("agent.toml");
    std::fs::write(&file, "[Feedback]\nEnabled = \"sometimes\"").unwrap();
    let error = AgentHost::from_config(&file).unwrap_err().to_string();
    let expected = format!(
        "`Feedback.Enabled` in `{}`: expected `true` or `false`, found text",
        file.display()
    );
    assert_eq!(error, expected);
}
