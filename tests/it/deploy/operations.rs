//! The alarms and the dashboard: their queries ask for metrics and labels that an agent has.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{documents, read};

/// The tables of metrics, which a test of telemetry compares with what a run measures.
const METRICS: &str = include_str!("../../../rockbot-host/src/telemetry/telemetry.md");

/// Metrics of the monitor itself, with their labels.
const OF_MONITOR: (&str, [&str; 2]) = ("up", ["job", "instance"]);

/// Returns the series that a program exports, with their labels.
fn series() -> BTreeMap<String, BTreeSet<String>> {
    let rows = METRICS
        .lines()
        .filter(|line| line.starts_with("| `rockbot.") || line.starts_with("| `gen_ai."));
    let mut series = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = exported(cells[1].trim_matches('`'));
        let mut labels: BTreeSet<String> = cells[4]
            .split(", ")
            .map(|label| exported(label.trim_matches('`')))
            .collect();
        if cells[2] == "histogram" {
            labels.insert("le".to_owned());
            series.insert(format!("{name}_bucket"), labels);
        } else {
            series.insert(name, labels);
        }
    }
    let (name, labels) = OF_MONITOR;
    series.insert(name.to_owned(), labels.map(str::to_owned).into());
    series
}

/// Returns a name as the exporter writes it.
fn exported(name: &str) -> String {
    name.replace('.', "_")
}

/// Splits a query into its words and signs between them.
fn words(query: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let end = if is_word(first) {
            rest.find(|char| !is_word(char)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words.retain(|word| !word.trim().is_empty());
    words
}

/// Returns the metrics of a query, and the labels that it chooses or groups by.
fn asked(query: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let words = words(query);
    let is_metric = |word: &&str| word.starts_with("rockbot_") || word.starts_with("gen_ai_") || *word == "up";
    let metrics = words.iter().copied().filter(is_metric).collect();
    let mut labels = BTreeSet::new();
    let mut groups = false;
    for (at, word) in words.iter().enumerate() {
        match *word {
            "by" => groups = true,
            ")" => groups = false,
            "=" if at > 0 && words[at - 1] != "=" && words[at - 1] != "!" => _ = labels.insert(words[at - 1]),
            "!" if at > 0 => _ = labels.insert(words[at - 1]),
            word if groups && word != "(" && word != "," => _ = labels.insert(word),
            _ => {}
        }
    }
    // A comparison of values is no label.
    labels.retain(|label| !label.starts_with(')') && *label != "=");
    (metrics, labels)
}

fn check(query: &str) {
    let series = series();
    let (metrics, labels) = asked(query);
    assert!(!metrics.is_empty(), "no metric in {query}");
    for metric in metrics {
        let known = series
            .get(metric)
            .unwrap_or_else(|| panic!("no agent has {metric}: {query}"));
        let unknown: Vec<_> = labels.iter().filter(|label| !known.contains(**label)).collect();
        assert!(unknown.is_empty(), "{metric} has no labels {unknown:?}: {query}");
    }
}

#[test]
fn each_alarm_asks_for_what_there_is_and_has_its_runbook() {
    let rules = documents(&read("prometheus/alarms.yml"));
    let rules = rules[0]["groups"][0]["rules"].as_array().unwrap().clone();
    assert_eq!(rules.len(), 10);
    let runbook = read("../docs/operations.md");
    for rule in rules {
        check(rule["expr"].as_str().unwrap().replace("== 0", "").as_str());
        let name = rule["alert"].as_str().unwrap();
        assert!(
            runbook.contains(&format!("\n**{name}**")),
            "{name} is not in the runbook"
        );
    }
}

#[test]
fn each_panel_asks_for_what_there_is() {
    let board: Value = serde_json::from_str(&read("grafana/agents.json")).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    assert_eq!(queries.len(), 16);
    queries.into_iter().for_each(check);
}

#[test]
fn a_query_for_an_unknown_metric_or_label_is_found() {
    for query in [
        "rate(rockbot_agent_turn[5m])",
        "sum by (tier) (rate(rockbot_agent_turns[5m]))",
        "rockbot_agent_turns{state=\"failed\"}",
    ] {
        assert!(std::panic::catch_unwind(|| check(query)).is_err(), "{query}");
    }
    check("histogram_quantile(0.9, sum by (le, tier) (rate(rockbot_llm_request_duration_bucket{tier!=\"low\"}[5m])))");
}
