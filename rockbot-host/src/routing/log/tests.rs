//! Behaviour of the routing log in memory and in a file.

use rockbot_core::Timestamp;
use rockbot_core::chat::{MicroUsd, ModelTier};
use rockbot_core::turn::TierDecision;

use super::preview::preview;
use super::*;

fn entry(text: &str) -> RoutingEntry {
    let decision = TierDecision::new(ModelTier::High, 0.5).because("it is hard");
    RoutingEntry::new(Timestamp::from_millis(0), "subagent", text, &decision)
}

fn previews(log: &RoutingLog) -> Vec<String> {
    log.entries()
        .unwrap()
        .into_iter()
        .map(|entry| entry.prompt_preview)
        .collect()
}

#[test]
fn a_line_has_the_shape_of_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    RoutingLog::new(&path).append(entry("two\nlines")).unwrap();
    let expected = r#"{"timestamp":"1970-01-01T00:00:00.000Z","promptPreview":"two\nlines","tier":"High","context":"subagent","complexityScore":0.5,"reasons":["it is hard"]}"#;
    assert_eq!(std::fs::read_to_string(path).unwrap(), format!("{expected}\n"));
}

#[test]
fn the_newest_two_hundred_are_kept_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut longest = 0;
    for number in 0..300 {
        // Every now and then another process takes over.
        let log = RoutingLog::new(&path);
        for step in 0..10 {
            log.append(entry(&format!("{}", number * 10 + step))).unwrap();
            longest = longest.max(std::fs::read_to_string(&path).unwrap().lines().count());
        }
    }
    assert_eq!(longest, 200);
    let expected: Vec<_> = (2800..3_000).map(|number| number.to_string()).collect();
    assert_eq!(previews(&RoutingLog::new(&path)), expected);
}

#[test]
fn buffered_lines_are_written_together_and_never_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let written = || std::fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    let log = RoutingLog::new(&path);
    let buffer = |count: usize| {
        for number in 0..count {
            log.buffer(entry(&number.to_string())).unwrap();
        }
    };
    assert!(log.buffer(entry("the first")).unwrap());
    assert!(!log.buffer(entry("one more")).unwrap());
    log.write().unwrap();
    assert_eq!(written(), 2);
    buffer(99);
    assert_eq!(written(), 2);
    buffer(1);
    assert_eq!(written(), 102);
    buffer(5);
    log.append(entry("at once")).unwrap();
    assert_eq!(written(), 108);
    buffer(5);
    assert_eq!(previews(&log).len(), 113);
    // Full files are rewritten with all buffered lines.
    buffer(1_000);
    assert_eq!(previews(&log).len(), 200);
    buffer(5);
    drop(log);
    assert_eq!(previews(&RoutingLog::new(&path))[195..], ["0", "1", "2", "3", "4"]);
}

#[test]
fn memory_keeps_as_many() {
    let log = RoutingLog::in_memory();
    for number in 0..250 {
        log.append(entry(&number.to_string())).unwrap();
    }
    let expected: Vec<_> = (50..250).map(|number| number.to_string()).collect();
    assert_eq!(previews(&log), expected);
}

#[test]
fn the_result_of_a_decision_is_in_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let log = RoutingLog::new(folder.path().join("log.jsonl"));
    let result = |escalated_to, cost| RoutingResult {
        status: "answered".to_owned(),
        escalated_to,
        model_calls: 2,
        input_tokens: 30,
        output_tokens: 10,
        cost_micro_usd: cost,
        latency_ms: 1_500,
    };
    for result in [result(None, None), result(Some(ModelTier::High), Some(MicroUsd(7)))] {
        let entry = RoutingEntry {
            result: Some(result),
            ..entry("text")
        };
        log.append(entry.clone()).unwrap();
        assert_eq!(log.entries().unwrap().last(), Some(&entry));
    }
    let text = std::fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
    let end = r#""status":"answered","escalatedTo":"High","modelCalls":2,"inputTokens":30,"outputTokens":10,"costMicroUsd":7,"latencyMs":1500}"#;
    assert!(text.trim_end().ends_with(end), "{text}");
}

#[test]
fn unreadable_lines_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let log = RoutingLog::new(&path);
    assert_eq!(previews(&log), Vec::<String>::new());
    std::fs::write(
        &path,
        b"{\xff}\n{}\n{\"timestamp\":\"2026-02-01T00:00:00Z\",\"tier\":\"low\"}\n",
    )
    .unwrap();
    log.append(entry("new")).unwrap();
    assert_eq!(previews(&log), ["", "new"]);
}

#[test]
fn no_key_is_written() {
    let check = |text: &str, expected: &str| assert_eq!(preview(text), expected);
    check("use sk-proj-1234567890 for it", "use [redacted] for it");
    check("Bearer abc.def it is", "Bearer [redacted] it is");
    check("ghp_0123456789abcdefghij is mine", "[redacted] is mine");
    check(
        "an extraordinarily-long-word stays",
        "an extraordinarily-long-word stays",
    );
    check(&"é".repeat(200), &"é".repeat(150));
    check(
        &format!("{} sk-proj-1234567890", "x".repeat(144)),
        &format!("{} [reda", "x".repeat(144)),
    );
    let folder = tempfile::tempdir().unwrap();
    let log = RoutingLog::new(folder.path().join("log.jsonl")).without_previews();
    log.append(entry("secret")).unwrap();
    assert_eq!(previews(&log), [""]);
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let log = RoutingLog::new(&path);
    for _ in 0..1_100 {
        log.append(entry("x")).unwrap();
    }
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
}
