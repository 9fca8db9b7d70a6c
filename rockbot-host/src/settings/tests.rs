use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::chat::MicroUsd;
use rockbot_store::file::FileTurnJournal;

use super::*;
use crate::live::BacklogLimits;
use crate::profile::AgentProfileOptions;

fn read(text: &str) -> Result<HostSettings, ConfigError> {
    let config = Config::new().with_text("agent.json", text).unwrap();
    HostSettings::read(&config, Path::new("data"))
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    assert_eq!(read(text).unwrap_err().to_string(), expected);
}

#[test]
fn the_defaults_are_those_of_the_reference() {
    let settings = read(r#"{ "AgentProfile": { "BasePath": "/a" } }"#).unwrap();
    assert_eq!(settings.budget(), Budget::default());
    assert_eq!(settings.agent_profile.options, AgentProfileOptions::new("/a"));
    assert!(!settings.agent_profile.is_there());
    assert_eq!(settings.agent_host, AgentHostSettings::default());
    assert_eq!(settings.conversation_memory.base_path, Path::new("/a/conversations"));
    assert_eq!(settings.conversation_memory.max_turns_per_session.get(), 50);
    assert_eq!(
        settings.conversation_memory.session_idle_timeout,
        Duration::from_secs(3_600)
    );
}

#[test]
fn the_environment_sets_everything_too() {
    let variables = [
        ("RabbitMq__Password", "rabbit-secret"),
        ("ROCKBOT_AGENTHOST__MAXTOOLITERATIONS", "7"),
        ("ConversationMemory__MaxTurnsPerSession", "9"),
        ("ConversationMemory__SessionIdleTimeout", "1.00:00:00"),
    ];
    let config = Config::new().with_variables(variables);
    let settings = HostSettings::read(&config, Path::new("data")).unwrap();
    assert_eq!(settings.budget().max_model_calls, 7);
    let conversations = &settings.conversation_memory;
    assert_eq!(conversations.max_turns_per_session.get(), 9);
    assert_eq!(conversations.session_idle_timeout, Duration::from_secs(24 * 3600));
    assert_eq!(config.unknown(), []);
    assert!(!format!("{settings:?}").contains("rabbit-secret"));
}

#[test]
fn long_results_and_requests_are_what_the_file_says() {
    let text = r#"{ "AgentHost": {
        "ToolResultMaxChars": 8000, "ToolResultStashWatermarkTokens": 0, "ToolResultStashHeadTailRatio": 0.7
    } }"#;
    let mut expected = ContextEconomy::default().with_max_result_len(8_000);
    expected.head_percent = 70;
    assert_eq!(read(text).unwrap().context_economy(), expected);
    let expected = ContextEconomy::default().with_watermark(30_000);
    assert_eq!(read("{}").unwrap().context_economy(), expected);
    check_error(
        r#"{ "AgentHost": { "ToolResultStashHeadTailRatio": 60 } }"#,
        "`AgentHost.ToolResultStashHeadTailRatio` in `agent.json`: expected a number from 0 to 1, found a number",
    );
}

#[test]
fn the_bounds_of_unanswered_messages_are_settings() {
    let settings = read(
        r#"{ "AgentHost": {
            "MaxMessages": 3, "MaxMessageBytes": 4000, "MaxSessionMessages": 5, "MaxSessionMessageBytes": 6000,
            "MaxPrincipalMessages": 7, "MaxPrincipalMessageBytes": 8000
        } }"#,
    );
    let limits = BacklogLimits::new().with_max_messages(3).with_max_bytes(4000);
    let limits = limits.with_max_session_messages(5).with_max_session_bytes(6000);
    let limits = limits.with_max_principal_messages(7).with_max_principal_bytes(8000);
    assert_eq!(settings.unwrap().agent_host.backlog, limits);
    check_error(
        r#"{ "AgentHost": { "MaxMessages": 0 } }"#,
        "`AgentHost.MaxMessages` in `agent.json`: expected a whole number of at least 1, found a number",
    );
}

#[test]
fn what_a_turn_may_spend_is_a_setting() {
    let settings = read(
        r#"{ "AgentHost": {
            "MaxToolIterations": 3, "MaxToolCalls": 4, "MaxTurnTime": "00:02:00", "MaxTurnTokens": 5000, "MaxTurnCost": 0.25
        } }"#,
    );
    let expected = Budget::default()
        .with_max_model_calls(3)
        .with_max_tool_calls(4)
        .with_max_wall_clock(Duration::from_secs(120))
        .with_max_tokens(5_000)
        .with_max_cost(MicroUsd(250_000));
    assert_eq!(settings.unwrap().budget(), expected);
    check_error(
        r#"{ "AgentHost": { "MaxTurnCost": 0 } }"#,
        "`AgentHost.MaxTurnCost` in `agent.json`: expected an amount above zero in US dollars such as `0.50`, found a number",
    );
    check_error(
        r#"{ "AgentHost": { "MaxTurnCost": "a lot" } }"#,
        "`AgentHost.MaxTurnCost` in `agent.json`: expected an amount in US dollars such as `0.50`, found text",
    );
}

#[test]
fn what_would_never_or_always_happen_is_refused() {
    check_error(
        r#"{ "AgentHost": { "MaxToolIterations": 0 } }"#,
        "`AgentHost.MaxToolIterations` in `agent.json`: expected a whole number from 1 to 4294967295, found a number",
    );
}

#[test]
fn the_folder_of_production_is_used_when_it_exists() {
    let production = tempfile::tempdir().unwrap();
    let choose = |configured: Option<&str>, production: &Path| {
        agent_profile::choose(configured.map(PathBuf::from), production, Path::new("data"))
    };
    let there = production.path();
    let missing = production.path().join("missing");
    assert_eq!(choose(Some("own"), there), ("own".into(), FolderChoice::Configured));
    assert_eq!(choose(None, there), (there.to_owned(), FolderChoice::Production));
    assert_eq!(choose(None, &missing), ("data".into(), FolderChoice::OfTheHost));
}

#[test]
fn a_folder_is_looked_at_without_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let entries = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(DataDir::check(folder.path()).unwrap(), DataDir::Ready);
    assert_eq!(DataDir::check(&folder.path().join("a/b")).unwrap(), DataDir::ToBeMade);
    assert_eq!(entries(), 0);
}

#[test]
fn a_folder_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [&file, &file.join("below")] {
        let error = DataDir::check(path).unwrap_err();
        assert!(
            matches!(&error, DataDirError::NotAFolder(path) if *path == file),
            "{error:?}"
        );
    }
    let journal = FileTurnJournal::open(folder.path().join("turns")).unwrap();
    let error = DataDir::check(folder.path()).unwrap_err();
    assert!(matches!(error, DataDirError::InUse(_)), "{error:?}");
    drop(journal);
    assert_eq!(DataDir::check(folder.path()).unwrap(), DataDir::Ready);
}

/// Even an administrator cannot write there.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_named() {
    for folder in ["/proc/self", "/proc/self/rockbot/data"] {
        let error = DataDir::check(Path::new(folder)).unwrap_err();
        let is_refused = matches!(&error, DataDirError::NotWritable { folder, .. } if folder.starts_with("/proc/self"));
        assert!(is_refused, "{error:?}");
    }
}
