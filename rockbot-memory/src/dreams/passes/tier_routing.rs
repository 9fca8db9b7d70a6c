//! Reviews the routing of messages to tiers, and moves the limits of the tier selector a little.

use rockbot_core::content::Provenance;
use rockbot_core::store::StoreError;
use rockbot_core::trust::Trust;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::ask::{Item, Question};
use super::super::pass_context::PassContext;
use super::super::plan::DreamChange;

/// Minimum number of decisions: fewer say nothing.
const MIN_DECISIONS: usize = 10;

/// Maximum number of decisions that are shown, the newest decisions.
const MAX_DECISIONS: usize = 200;

/// Maximum move of a limit in one review.
const MAX_MOVE: f64 = 0.05;

/// Limits of the original, for hosts without configured limits.
const LOW: f64 = 0.15;
const BALANCED: f64 = 0.46;

const SHAPE: &str = "Answer with one JSON object and nothing else: {\"lowCeiling\": 0.15, \"balancedCeiling\": 0.46, \
    \"reason\": \"a few words\"} with new limits, or {} if nothing is to be changed.";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    low_ceiling: Option<f64>,
    #[serde(default)]
    balanced_ceiling: Option<f64>,
    #[serde(default)]
    reason: String,
}

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let log = cx.stores.routing_log().await?;
    let decisions: Vec<_> = log.lines().filter_map(decision).collect();
    if decisions.len() < MIN_DECISIONS {
        return Ok(());
    }
    let before = cx.stores.tier_rules().await?;
    let Ok(rules) = serde_json::from_str::<Map<String, Value>>(before.as_deref().unwrap_or("{}")) else {
        cx.remark("the rules of the tier selector cannot be read; they stay");
        return Ok(());
    };
    let question = question(&rules, &decisions[decisions.len().saturating_sub(MAX_DECISIONS)..]);
    let Some((digest, review)) = cx.ask::<Review>(&question).await else {
        return Ok(());
    };
    let Some((low, balanced)) = moved(&rules, &review) else {
        return Ok(());
    };
    let mut after = rules;
    after.insert("lowCeiling".to_owned(), json!(low));
    after.insert("balancedCeiling".to_owned(), json!(balanced));
    let text = serde_json::to_string_pretty(&after).unwrap_or_default();
    let reason: String = review.reason.chars().take(200).collect();
    let change = DreamChange::TierRules {
        before,
        after: text,
        reason,
    };
    cx.draft(
        format!("move the limits of tiers to {low} and {balanced}"),
        vec![change],
        Some(digest),
    );
    Ok(())
}

/// Returns a line of the log as the model reads it.
fn decision(line: &str) -> Option<String> {
    let entry: Map<String, Value> = serde_json::from_str(line).ok()?;
    let told = [
        "tier",
        "complexityScore",
        "status",
        "escalatedTo",
        "modelCalls",
        "costMicroUsd",
        "promptPreview",
    ];
    let told = told
        .iter()
        .filter_map(|name| Some(format!("{name}: {}", entry.get(*name)?)));
    entry.contains_key("tier").then(|| told.collect::<Vec<_>>().join(", "))
}

fn question(rules: &Map<String, Value>, decisions: &[String]) -> Question {
    let limits = Item {
        id: "limits".to_owned(),
        text: format!(
            "lowCeiling: {}, balancedCeiling: {}",
            ceiling(rules, "lowCeiling", LOW),
            ceiling(rules, "balancedCeiling", BALANCED)
        ),
        from: Provenance::HOST,
    };
    // A decision has the first words of a message in it.
    let item = |(number, text): (usize, &String)| Item {
        id: format!("d{}", number + 1),
        text: text.clone(),
        from: Provenance::new("message", Trust::Untrusted),
    };
    Question {
        intro: "The limits, and the decisions".to_owned(),
        items: std::iter::once(limits)
            .chain(decisions.iter().enumerate().map(item))
            .collect(),
        shape: SHAPE,
    }
}

/// Returns the new limits: at most [`MAX_MOVE`] from the old limits, and within the range of the
/// original. `None` without a change.
fn moved(rules: &Map<String, Value>, review: &Review) -> Option<(f64, f64)> {
    let low = ceiling(rules, "lowCeiling", LOW);
    let balanced = ceiling(rules, "balancedCeiling", BALANCED);
    let step = |old: f64, wanted: Option<f64>| {
        let wanted = wanted.filter(|wanted| wanted.is_finite()).unwrap_or(old);
        wanted.clamp(old - MAX_MOVE, old + MAX_MOVE)
    };
    let round = |value: f64| (value * 1_000.0).round() / 1_000.0;
    let new_low = round(step(low, review.low_ceiling).clamp(0.05, 0.30));
    let new_balanced = round(step(balanced, review.balanced_ceiling).clamp(new_low + 0.10, 0.70));
    let is_new = (new_low - low).abs() > 1e-9 || (new_balanced - balanced).abs() > 1e-9;
    is_new.then_some((new_low, new_balanced))
}

fn ceiling(rules: &Map<String, Value>, name: &str, default: f64) -> f64 {
    let value = rules.get(name).and_then(Value::as_f64);
    value.filter(|value| value.is_finite()).unwrap_or(default)
}
