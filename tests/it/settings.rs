//! The configuration reference, word for word: every name in it is known.

use std::path::Path;

use rockbot::testing::ScriptedModel;
use rockbot_core::config::Config;
use rockbot_host::AgentHost;
use rockbot_host::settings::HostSettings;
use rockbot_llm::LlmSettings;

const REFERENCE: &str = r#"{
  "AgentProfile": {
    "BasePath": "/data/agent"
  },
  "AgentHost": {
    "MaxToolIterations": 50,
    "MaxCompletionReprompts": 2,
    "MaxFollowUpPasses": 1
  },
  "RabbitMq": {
    "HostName": "rabbitmq.cluster.local",
    "Port": 5672,
    "UserName": "rockbot",
    "Password": "..."
  },
  "LLM": {
    "Balanced": {
      "Endpoint": "https://openrouter.ai/api/v1",
      "ApiKey": "...",
      "ModelId": "anthropic/claude-haiku-4.5"
    },
    "Low": {
      "Endpoint": "https://openrouter.ai/api/v1",
      "ApiKey": "...",
      "ModelId": "google/gemini-flash-1.5-8b"
    },
    "High": {
      "Endpoint": "https://openrouter.ai/api/v1",
      "ApiKey": "...",
      "ModelId": "anthropic/claude-opus-4-6"
    }
  },
  "Memory": {
    "BasePath": "memory"
  },
  "Skills": {
    "BasePath": "skills",
    "UsageBasePath": "skill-usage"
  },
  "Dream": {
    "Enabled": true,
    "InitialDelay": "00:05:00",
    "Interval": "04:00:00",
    "TierRoutingReviewEnabled": true
  },
  "Feedback": {
    "BasePath": "feedback",
    "SessionIdleThreshold": "00:10:00",
    "PollInterval": "00:05:00"
  }
}"#;

/// The settings of the host and the models of this configuration, in which nothing may be unknown.
fn read(config: &Config) -> (String, [String; 3]) {
    let host = HostSettings::read(config, Path::new("data")).unwrap();
    let llm = LlmSettings::from_config(config).unwrap();
    assert_eq!(config.unknown(), []);
    let tiers = [Some(llm.balanced), llm.low, llm.high];
    (format!("{host:?}"), tiers.map(|tier| tier.unwrap().model))
}

#[test]
fn every_name_of_the_reference_is_known_and_its_values_are_the_defaults() {
    let (host, models) = read(&Config::new().with_text("agent.json", REFERENCE).unwrap());
    let expected = [
        "anthropic/claude-haiku-4.5",
        "google/gemini-flash-1.5-8b",
        "anthropic/claude-opus-4-6",
    ];
    assert_eq!(models, expected);
    let broker = r#"
        [AgentProfile]
        BasePath = "/data/agent"
        [RabbitMq]
        HostName = "rabbitmq.cluster.local"
        UserName = "rockbot"
    "#;
    let defaults = HostSettings::read(
        &Config::new().with_text("agent.toml", broker).unwrap(),
        Path::new("data"),
    );
    assert_eq!(host, format!("{:?}", defaults.unwrap()));
}

#[test]
fn the_environment_alone_can_say_all_of_it() {
    let json: serde_json::Value = serde_json::from_str(REFERENCE).unwrap();
    let mut variables = Vec::new();
    flatten("", &json, &mut variables);
    assert_eq!(variables.len(), 27);
    let from_file = read(&Config::new().with_text("agent.json", REFERENCE).unwrap());
    let prefixed = variables
        .iter()
        .map(|(name, value)| (format!("ROCKBOT_{}", name.to_uppercase()), value));
    assert_eq!(read(&Config::new().with_variables(prefixed)), from_file);
    assert_eq!(read(&Config::new().with_variables(variables)), from_file);
}

/// The variables that set the same as `json`.
fn flatten(name: &str, json: &serde_json::Value, variables: &mut Vec<(String, String)>) {
    match json {
        serde_json::Value::Object(members) => {
            for (member, value) in members {
                let separator = if name.is_empty() { "" } else { "__" };
                flatten(&format!("{name}{separator}{member}"), value, variables);
            }
        }
        serde_json::Value::String(text) => variables.push((name.to_owned(), text.clone())),
        other => variables.push((name.to_owned(), other.to_string())),
    }
}

#[tokio::test]
async fn conversations_lie_in_the_data_folder_wherever_that_is() {
    let folder = tempfile::tempdir().unwrap();
    let settings = HostSettings::read(&Config::new(), Path::new("data/chat")).unwrap();
    let builder = AgentHost::builder("agent").chat(ScriptedModel::new().says("hello"));
    let host = builder.settings(&settings).data_dir(folder.path()).build().unwrap();
    host.agent().ask("s", "hi").await.unwrap();
    assert!(folder.path().join("conversations").is_dir());
    assert!(!folder.path().join("data").exists());
}
