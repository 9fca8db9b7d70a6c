//! The settings of the original's configuration reference, word for word: every name in it is
//! known.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use metrics_util::debugging::DebuggingRecorder;
use rockbot::testing::ScriptedModel;
use rockbot_core::chat::ChatRequest;
use rockbot_core::config::Config;
use rockbot_core::store::InMemoryWorkingMemory;
use rockbot_core::tool::{Tool, tool};
use rockbot_core::turn::{OutputVerdict, validator_fn};
use rockbot_host::settings::HostSettings;
use rockbot_host::{AgentHost, AgentHostBuilder, Stores};
use rockbot_llm::LlmSettings;
use rockbot_memory::settings::{FeedbackSettings, MemorySettings, SkillsSettings};
use rockbot_memory::{DreamOptions, Memory, SessionEvaluation};

use crate::support::Anything;
use crate::support::log::Log;
use crate::support::metrics::measured;

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

/// The settings of all parts but the models.
fn settings(config: &Config) -> String {
    let host = HostSettings::read(config, Path::new("data")).unwrap();
    let of_the_host = (host.agent_profile, host.agent_host);
    let of_parts = (
        MemorySettings::from_config(config).unwrap(),
        SkillsSettings::from_config(config).unwrap(),
        FeedbackSettings::from_config(config).unwrap(),
        DreamOptions::from_config(config).unwrap(),
    );
    format!("{of_the_host:?} {of_parts:?}")
}

/// The settings and the models of this configuration, in which no key may be unknown to all
/// readers.
fn read(config: &Config) -> (String, [String; 3]) {
    HostSettings::read(config, Path::new("data")).unwrap();
    let llm = LlmSettings::from_config(config).unwrap();
    // What is left to parts is not judged before these have read it.
    assert!(
        config.unknown().iter().all(|key| key.is_unread),
        "{:?}",
        config.unknown()
    );
    let settings = settings(config);
    config.section("RabbitMq").unwrap().ignore();
    assert_eq!(config.unknown(), []);
    let tiers = [Some(llm.balanced), llm.low, llm.high];
    (settings, tiers.map(|tier| tier.unwrap().model))
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
        [AgentHost]
        # The judges are off by default here.
        MaxCompletionReprompts = 2
        MaxFollowUpPasses = 1
    "#;
    assert_eq!(host, settings(&Config::new().with_text("agent.toml", broker).unwrap()));
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

/// A host with these settings in `folder`, and what else is to be said about it.
fn host(folder: &Path, file: &str) -> (Config, AgentHostBuilder) {
    let config = Config::new().with_text("agent.json", file).unwrap();
    let settings = HostSettings::read(&config, folder).unwrap();
    let builder = AgentHost::builder("agent").chat(ScriptedModel::new());
    (config, builder.settings(&settings).data_dir(folder))
}

#[tokio::test]
async fn what_remembers_obeys_the_file_and_code_wins_over_it() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let file = r#"{
        "Memory": { "BasePath": "facts" },
        "Skills": { "BasePath": "abilities", "UsageBasePath": "uses" },
        "Feedback": { "BasePath": "signs" }
    }"#;
    let (config, builder) = host(folder.path(), file);
    let memory = Memory::default()
        .long_term_folder(elsewhere.path().join("memories"))
        .with_conversation_log();
    let host = builder.add(memory).add(SessionEvaluation::default()).build().unwrap();
    let is_there = |name| folder.path().join(name).is_dir();
    let expected = ["abilities", "uses", "signs", "conversation-log"].map(|name| (name, true));
    assert_eq!(expected.map(|(name, _)| (name, is_there(name))), expected);
    let defaults = ["facts", "memory", "skills", "skill-usage", "feedback"].map(|name| (name, false));
    assert_eq!(defaults.map(|(name, _)| (name, is_there(name))), defaults);
    assert!(elsewhere.path().join("memories").is_dir());
    assert_eq!(config.unknown(), []);
    drop(host);
}

#[tokio::test]
async fn folders_that_code_names_win_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let file = r#"{
        "Skills": { "BasePath": "abilities", "UsageBasePath": "uses" },
        "Feedback": { "BasePath": "signals" }
    }"#;
    let (_, builder) = host(folder.path(), file);
    let named = |name| elsewhere.path().join(name);
    let memory = Memory::default()
        .skills_folders(named("skills"), named("skill-usage"))
        .feedback_folder(named("feedback"));
    let _host = builder.add(memory).build().unwrap();
    for name in ["skills", "skill-usage", "feedback"] {
        assert!(named(name).is_dir(), "{name}");
    }
    for name in ["abilities", "uses", "signals"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_the_settings_of_parts_is_said_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = r#"{ "Memory": { "BasePath": 5 }, "Feedback": { "PollInterval": "00:00:00" } }"#;
    let (_, builder) = host(folder.path(), file);
    let error = builder
        .add(Memory::default())
        .add(SessionEvaluation::default())
        .build()
        .unwrap_err();
    let problems: Vec<_> = error.problems.iter().map(ToString::to_string).collect();
    let expected = [
        "`memory`: `Memory.BasePath` in `agent.json`: expected a path, found a number",
        "`session evaluation`: `Feedback.PollInterval` in `agent.json`: expected a time span above zero such as `00:05:00` (`[days.]hours:minutes[:seconds]`), found text",
    ];
    assert_eq!(problems, expected);
}

#[tokio::test]
async fn names_of_parts_are_unknown_when_the_part_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = r#"{ "Memory": { "BassPath": "facts" } }"#;
    let (_, builder) = host(folder.path(), file);
    let log = Log::default();
    let _log = tracing::subscriber::set_default(log.clone());
    builder.build().unwrap();
    let warned =
        "`Memory` in `agent.json` has no effect: no part of the program reads it; add `Memory`, or remove the section";
    assert!(
        log.lines().iter().any(|line| line.contains(warned)),
        "{:?}",
        log.lines()
    );
    let (_, builder) = host(folder.path(), file);
    let error = builder.add(Memory::default()).build().unwrap_err();
    assert_eq!(
        error.problems[0].to_string(),
        "`Memory.BassPath` in `agent.json` is not a setting; did you mean `BasePath`?"
    );
}

/// Runs one turn of a host with these settings of `AgentHost`, in which the model calls `look`
/// and then answers.
async fn read_with(
    settings: &str,
    look: Tool,
    hooks: impl FnOnce(AgentHostBuilder) -> AgentHostBuilder,
) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new()
        .with_text("agent.toml", &format!("[AgentHost]\n{settings}"))
        .unwrap();
    let settings = HostSettings::read(&config, folder.path()).unwrap();
    let model = ScriptedModel::new()
        .calls("look", serde_json::json!({}))
        .says("Seen.")
        .says("Seen.");
    let stores = Stores::new().with_working_memory(InMemoryWorkingMemory::new());
    let builder = AgentHost::builder("agent")
        .chat(model.clone())
        .settings(&settings)
        .stores(stores)
        .tool(look);
    let host = hooks(builder).build().unwrap();
    // It may end without an answer.
    let _ = host.agent().ask("s", "Look!").await;
    assert_eq!(config.check_unknown().unwrap(), []);
    let requests = model.requests();
    let last = |request: &Arc<ChatRequest>| request.messages.last().unwrap().text().into_owned();
    requests.iter().map(last).collect()
}

fn look(text: String) -> Tool {
    tool("look", move |_: Anything| std::future::ready(text.clone())).pure()
}

#[tokio::test]
async fn the_length_of_results_and_the_form_of_their_keys_are_settings() {
    let settings = "ToolResultThreshold = 1000\nToolResultKeyForm = \"colons\"\nToolResultTimeToLive = \"00:01:00\"";
    let read = read_with(settings, look("A line of it.\n".repeat(200)), |builder| builder).await;
    let result = &read[1];
    assert!(result.contains("tool:look:") && result.contains(":chunk0"), "{result}");
    let (_, key) = result.split_once("tool:look:").unwrap();
    let run = key.split(':').next().unwrap();
    assert!(
        run.len() == 8 && run.bytes().all(|digit| digit.is_ascii_hexdigit()),
        "{run}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_time_of_tools_is_a_setting() {
    let slow = tool("look", |_: Anything| async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        "late"
    });
    let read = read_with("ToolTimeLimit = \"00:00:05\"", slow.pure(), |builder| builder).await;
    assert!(read[1].starts_with("the tool timed out after 5s"), "{read:?}");
}

#[tokio::test]
async fn a_tool_that_blocks_its_thread_is_reported() {
    for (settings, tool_blocks, waits_first, is_reported) in [
        ("MaxToolBlocking = \"00:00:00.200\"", true, true, true),
        ("MaxToolBlocking = \"00:00:00.200\"", true, false, true),
        ("MaxToolBlocking = \"00:00:00.200\"", false, true, false),
        ("", true, true, false),
    ] {
        let blocking = tool("look", move |_: Anything| async move {
            if waits_first {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            if tool_blocks {
                std::thread::sleep(Duration::from_millis(250))
            } else {
                tokio::time::sleep(Duration::from_millis(250)).await
            }
            "seen"
        });
        let log = Log::default();
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        let _log = tracing::subscriber::set_default(log.clone());
        let _recorder = metrics::set_default_local_recorder(&recorder);
        assert_eq!(read_with(settings, blocking.pure(), |builder| builder).await[1], "seen");
        let warned = log
            .lines()
            .iter()
            .any(|line| line.contains("a tool blocked its thread"));
        assert_eq!(warned, is_reported, "{settings}: {:?}", log.lines());
        let counted = measured(&snapshotter)
            .get("rockbot.tool.blocked tool_name=look")
            .copied();
        assert_eq!(counted, is_reported.then_some(1), "{settings}");
    }
}

#[tokio::test]
async fn the_corrections_of_output_validators_are_a_setting() {
    let complain = Arc::new(validator_fn(|_, _| async { Ok(OutputVerdict::complain("Say more.")) }));
    for (settings, expected) in [("MaxOutputCorrections = 0", 0), ("MaxOutputCorrections = 1", 1)] {
        let complain = complain.clone();
        let read = read_with(settings, look("all".to_owned()), |builder| {
            builder.output_validator(complain)
        })
        .await;
        let sent_back = read.iter().filter(|text| text.contains("Say more.")).count();
        assert_eq!(sent_back, expected, "{read:?}");
    }
}

#[test]
fn a_limit_that_is_none_says_what_is_expected() {
    let config = Config::new()
        .with_text("agent.toml", "[AgentHost]\nToolResultKeyForm = \"dots\"")
        .unwrap();
    let error = HostSettings::read(&config, Path::new("data")).unwrap_err().to_string();
    let expected = "`AgentHost.ToolResultKeyForm` in `agent.toml`: expected `path` or `colons`, found text";
    assert_eq!(error, expected);
}

#[tokio::test]
async fn nudges_are_settings() {
    for (settings, expected) in [("", 2), ("[AgentHost.Nudges]\nOnLeakedSyntax = true", 3)] {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::new().with_text("agent.toml", settings).unwrap();
        let settings = HostSettings::read(&config, folder.path()).unwrap();
        let model = ScriptedModel::new()
            .calls("look", serde_json::json!({}))
            .says("to=functions.unknown {}")
            .says("Seen.");
        let builder = AgentHost::builder("agent").chat(model.clone()).settings(&settings);
        let host = builder.tool(look("all".to_owned())).build().unwrap();
        host.agent().ask("s", "Look!").await.unwrap();
        assert_eq!(config.check_unknown().unwrap(), []);
        assert_eq!(model.requests().len(), expected);
    }
}

#[test]
fn the_length_and_the_pauses_of_the_shown_conversation_are_settings() {
    let file = "[ConversationMemory]\nMaxShownEntries = 6\nSessionIdleTimeout = \"00:30:00\"";
    let config = Config::new().with_text("agent.toml", file).unwrap();
    let settings = HostSettings::read(&config, Path::new("data")).unwrap();
    let conversations = &settings.conversation_memory;
    assert_eq!(conversations.max_shown_entries.get(), 6);
    assert_eq!(conversations.session_idle_timeout, Duration::from_secs(1800));
    assert_eq!(config.check_unknown().unwrap(), []);
}
