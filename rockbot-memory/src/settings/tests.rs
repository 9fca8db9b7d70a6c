use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

use super::*;
use crate::EvaluationOptions;

fn feedback(text: &str) -> Result<FeedbackSettings, ConfigError> {
    FeedbackSettings::from_config(&Config::new().with_text("agent.json", text)?)
}

#[test]
fn the_defaults_are_those_of_the_reference() {
    let nothing = Config::new();
    let days = |days: u64| Duration::from_secs(days * 24 * 60 * 60);
    let memory = MemorySettings {
        base_path: "memory".into(),
        rules_path: "memory-rules.md".into(),
        archive_retention: days(90),
    };
    let skills = SkillsSettings {
        base_path: "skills".into(),
        usage_base_path: "skill-usage".into(),
        usage_retention: days(180),
    };
    let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
    let feedback = FeedbackSettings {
        base_path: "feedback".into(),
        session_idle_threshold: minutes(10),
        poll_interval: minutes(5),
        retention: days(90),
    };
    assert_eq!(MemorySettings::from_config(&nothing).unwrap(), memory);
    assert_eq!(SkillsSettings::from_config(&nothing).unwrap(), skills);
    assert_eq!(FeedbackSettings::from_config(&nothing).unwrap(), feedback);
    assert_eq!(EvaluationOptions::from(feedback), EvaluationOptions::default());
}

#[test]
fn a_file_says_when_sessions_are_judged() {
    let settings =
        feedback(r#"{ "Feedback": { "SessionIdleThreshold": "00:30:00", "PollInterval": "00:01:00" } }"#).unwrap();
    let expected = EvaluationOptions {
        idle_threshold: Duration::from_secs(1_800),
        poll_interval: Duration::from_secs(60),
        ..EvaluationOptions::default()
    };
    assert_eq!(EvaluationOptions::from(settings), expected);
    assert_eq!(
        feedback(r#"{ "Feedback": { "PollInterval": "00:00:00" } }"#)
            .unwrap_err()
            .to_string(),
        "`Feedback.PollInterval` in `agent.json`: expected a time span above zero such as `00:05:00` (`[days.]hours:minutes[:seconds]`), found text",
    );
}
