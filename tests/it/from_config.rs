//! Whole agents from a configuration alone.

use std::path::Path;

use rockbot::agent::{AgentHost, AgentHostBuilder, FromConfig};
use rockbot::config::Config;
use rockbot::service::ServiceSearch;
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

/// Returns the problems of an agent with this configuration and these variables.
fn problems(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let data = tempfile::tempdir().unwrap();
    let config = Config::new().with_text("agent.toml", text).unwrap();
    let config = config.with_variables(variables.iter().copied());
    match AgentHost::configured(&config, data.path()).map(AgentHostBuilder::build) {
        Ok(Ok(_)) => Vec::new(),
        Ok(Err(error)) => error.problems.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

#[test]
fn a_name_that_is_no_setting_is_an_error_with_the_nearest_name() {
    let text = "[LMM.Balanced]\nModelId = \"m\"\n[AgentHost]\nMaxTurnTokns = 5\n[Memory]\nBassPath = \"x\"\n[Shop]\nOpen = true";
    let told = problems(text, &[]);
    let [agent_host, lmm, memory, shop] = &told[..] else {
        panic!("{told:?}");
    };
    let not = |name: &str, meant: &str| format!("`{name}` in `agent.toml` is not a setting; did you mean `{meant}`?");
    assert_eq!(*agent_host, not("AgentHost.MaxTurnTokns", "MaxTurnTokens"));
    assert_eq!(*lmm, not("LMM", "LLM"));
    assert_eq!(*memory, not("Memory.BassPath", "BasePath"));
    assert!(
        shop.starts_with("`Shop` in `agent.toml` is not a setting; known here: `A2A`, "),
        "{shop}"
    );
    assert_eq!(
        problems("[LLM.Balanced]\nModelIdd = \"m\"", &[]),
        ["`LLM.Balanced.ModelIdd` in `agent.toml` is not a setting; did you mean `ModelId`?"]
    );
}

#[test]
fn only_variables_of_the_program_are_held_to_be_its_settings() {
    let of_others = [
        ("SHOP__OPEN", "yes"),
        ("LMM__BALANCED__MODELID", "m"),
        ("MEMORY__SIZE", "5"),
    ];
    assert_eq!(problems("", &of_others), [""; 0]);
    assert_eq!(
        problems("", &[("ROCKBOT_LMM__BALANCED__MODELID", "m")]),
        ["ROCKBOT_LMM__BALANCED__MODELID is not a setting; did you mean `LLM`?"]
    );
}

#[test]
fn a_section_without_the_part_that_reads_it_says_what_to_add() {
    for (section, setting, advice) in [
        ("RabbitMq", "HostName = \"broker\"", "connect `RabbitMqBus`"),
        ("Pulsar", "HostName = \"broker\"", "connect `PulsarBus`"),
        ("ToolServices", "Announced = true", "add `ToolServices`"),
        ("RemoteTools", "Workers = [\"w\"]", "add `RemoteTools`"),
    ] {
        let told = problems(&format!("[{section}]\n{setting}"), &[]);
        let expected = format!("`{section}` in `agent.toml` has no effect: no part of the program reads it; {advice}");
        assert!(told.len() == 1 && told[0].starts_with(&expected), "{told:?}");
        assert!(told[0].ends_with(", or remove the section"), "{told:?}");
    }
}

#[test]
fn a_part_that_is_turned_off_keeps_its_settings() {
    let text = "[ServiceSearch]\nEnabled = false\nHints = true\n[Feedback]\nEnabled = false\nPollInterval = \"00:01:00\"\n\
        [WebTools]\nEnabled = false\nMaxSearchResults = 3\n[Egress]\nAllowedHosts = [\"wiki.intern\"]";
    assert_eq!(problems(text, &[]), [""; 0]);
}

#[test]
fn a_wrong_setting_of_several_parts_is_one_problem() {
    let told = problems("[Feedback]\nPollInterval = \"10m\"", &[]);
    assert_eq!(
        told,
        [
            "`memory`, `session evaluation`: `Feedback.PollInterval` in `agent.toml`: expected a time span \
             such as `00:05:00` (`[days.]hours:minutes[:seconds]`), found text"
        ]
    );
}

#[test]
fn a_search_of_the_program_obeys_the_settings() {
    let built = |text: &str| {
        let data = tempfile::tempdir().unwrap();
        let config = Config::new().with_text("agent.toml", text).unwrap();
        let builder = AgentHost::configured(&config, data.path()).unwrap();
        let host = builder.add(ServiceSearch::new()).build().unwrap();
        host.tools().snapshot().find("search_known_services").is_some()
    };
    assert!(built(""));
    assert!(!built("[ServiceSearch]\nEnabled = false"));
}

#[tokio::test]
async fn the_offline_model_can_be_asked_for_by_name() {
    let data = tempfile::tempdir().unwrap();
    let (host, _) = configured("[LLM]\nProvider = \"offline\"", data.path());
    let answer = host.agent().ask("s", "Hello.").await.unwrap();
    assert!(answer.text.contains("offline model"), "{}", answer.text);
}
